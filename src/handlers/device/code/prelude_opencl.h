/* The words of kernels in OpenCL C 1.2. Internal; stands alone.
 *
 * plugins/opencl/opencl.c includes it. code.h lists the words. The conversion to bfloat16 rounds to nearest
 * even and keeps NaN.
 */
#ifndef SGM_HANDLERS_DEVICE_CODE_PRELUDE_OPENCL_H
#define SGM_HANDLERS_DEVICE_CODE_PRELUDE_OPENCL_H

#include "handlers/device/code/prelude.h"

/* A place is two parameters, a buffer and an offset, since the host cannot compute pointers into buffers. */
#define SGM_PRELUDE_OPENCL                                                                                   \
    "#ifdef cl_khr_fp64\n"                                                                                   \
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"                                                        \
    "#endif\n"                                                                                               \
    "typedef long int64_t;\n"                                                                                \
    "typedef ulong uint64_t;\n"                                                                              \
    "typedef int int32_t;\n"                                                                                 \
    "typedef uint uint32_t;\n"                                                                               \
    "typedef ushort uint16_t;\n"                                                                             \
    "typedef uchar uint8_t;\n"                                                                               \
    "#define INT64_MAX LONG_MAX\n"                                                                           \
    "#define INT64_MIN LONG_MIN\n"                                                                           \
    "#define KERNEL(group) __kernel __attribute__((reqd_work_group_size(group, 1, 1))) void\n"               \
    "#define PLACE(a) __global uchar *a##_buffer, ulong a##_offset\n"                                        \
    "#define POINTER(type, a) ((__global type *)(a##_buffer + a##_offset))\n"                                \
    "#define GLOBAL __global\n"                                                                              \
    "#define LOCAL __local\n"                                                                                \
    "#define RESTRICT restrict\n"                                                                            \
    "#define FUNCTION __attribute__((overloadable)) static\n"                                                \
    "#define GROUP ((int)get_group_id(0))\n"                                                                 \
    "#define ITEM ((int)get_local_id(0))\n"                                                                  \
    "#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)\n"                                                         \
    "#define VECTOR(type) type##16\n"                                                                        \
    "#define LOAD_VECTOR(from) vload16(0, from)\n"                                                           \
    "#define STORE_VECTOR(vector, to) vstore16(vector, 0, to)\n"                                             \
    "/* Exactly 1 far off, where OpenCL allows a little less, and factors would show it. */\n"               \
    "#define sgm_tanh(x) (fabs(x) > 20 ? sign(x) : tanh(x))\n" SGM_PRELUDE_FUNCTIONS                         \
    "static inline float sgm_widen(uint16_t x)\n"                                                            \
    "{\n"                                                                                                    \
    "    return as_float((uint32_t)x << 16);\n"                                                              \
    "}\n"                                                                                                    \
    "static inline uint16_t sgm_narrow(float x)\n"                                                           \
    "{\n"                                                                                                    \
    "    const uint32_t bits = as_uint(x);\n"                                                                \
    "    return (uint16_t)(x != x ? bits >> 16 | 0x40u : (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);\n"     \
    "}\n"                                                                                                    \
    "#define SWAP_IF(at, old, value) atomic_cmpxchg(at, old, value)\n"                                       \
    "#define SWAP(at, value) atomic_xchg(at, value)\n"                                                       \
    "#define LARGEST(at, value) atomic_max(at, value)\n"                                                     \
    "#define FENCE mem_fence(CLK_GLOBAL_MEM_FENCE)\n" SGM_PRELUDE_FAULT

#endif
