/* The words of kernels in CUDA C++, as NVRTC knows it without any header. Internal; stands alone.
 *
 * plugins/cuda/driver.c includes it. code.h lists the words. The conversion to bfloat16 rounds to nearest
 * even and keeps NaN.
 */
#ifndef SGM_HANDLERS_DEVICE_CODE_PRELUDE_CUDA_H
#define SGM_HANDLERS_DEVICE_CODE_PRELUDE_CUDA_H

#include "handlers/device/code/prelude.h"

#define SGM_PRELUDE_CUDA                                                                                     \
    "typedef long long int64_t;\n"                                                                           \
    "typedef unsigned long long uint64_t;\n"                                                                 \
    "typedef int int32_t;\n"                                                                                 \
    "typedef unsigned int uint32_t;\n"                                                                       \
    "typedef unsigned short uint16_t;\n"                                                                     \
    "typedef unsigned char uint8_t;\n"                                                                       \
    "#define INT64_MAX 9223372036854775807LL\n"                                                              \
    "#define INT64_MIN (-INT64_MAX - 1)\n"                                                                   \
    "#define INFINITY __int_as_float(0x7F800000)\n"                                                          \
    "#define NAN __int_as_float(0x7FFFFFFF)\n"                                                               \
    "#define KERNEL(group) extern \"C\" __global__ void __launch_bounds__(group)\n"                          \
    "#define PLACE(a) unsigned char *a\n"                                                                    \
    "#define POINTER(type, a) reinterpret_cast<type *>(a)\n"                                                 \
    "#define GLOBAL\n"                                                                                       \
    "#define LOCAL __shared__\n"                                                                             \
    "#define RESTRICT __restrict__\n"                                                                        \
    "#define FUNCTION [[maybe_unused]] static __device__ __forceinline__\n"                                  \
    "#define GROUP ((int)blockIdx.x)\n"                                                                      \
    "#define ITEM ((int)threadIdx.x)\n"                                                                      \
    "#define BARRIER __syncthreads()\n"                                                                      \
    "#define sgm_tanh tanh\n" SGM_PRELUDE_FUNCTIONS "FUNCTION float sgm_widen(uint16_t x)\n"                 \
    "{\n"                                                                                                    \
    "    return __uint_as_float((uint32_t)x << 16);\n"                                                       \
    "}\n"                                                                                                    \
    "FUNCTION uint16_t sgm_narrow(float x)\n"                                                                \
    "{\n"                                                                                                    \
    "    uint32_t bits = __float_as_uint(x);\n"                                                              \
    "    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)\n"                                                          \
    "        return (uint16_t)(bits >> 16 | 64);\n"                                                          \
    "    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);\n"                                    \
    "}\n"                                                                                                    \
    "#define SWAP_IF(at, old, value) atomicCAS(at, old, value)\n"                                            \
    "#define SWAP(at, value) atomicExch(at, value)\n"                                                        \
    "#define LARGEST(at, value) atomicMax(at, value)\n"                                                      \
    "#define FENCE __threadfence()\n" SGM_PRELUDE_FAULT

#endif
