/* The words of CUDA C++ for the system's C++ compiler: put before each kernel's text. */
#pragma once
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

struct fake_index {
    unsigned x, y, z;
};
extern "C" {
fake_index fake_indices[4];
void (*fake_barrier)(void);
}
#define threadIdx (fake_indices[0])
#define blockIdx (fake_indices[1])
#define blockDim (fake_indices[2])
#define gridDim (fake_indices[3])
#define __syncthreads() fake_barrier()

#define FAKE_FUNCTION(name)                                                                                  \
    static inline float name(float x)                                                                        \
    {                                                                                                        \
        return __builtin_##name##f(x);                                                                       \
    }                                                                                                        \
    static inline double name(double x)                                                                      \
    {                                                                                                        \
        return __builtin_##name(x);                                                                          \
    }
FAKE_FUNCTION(exp)
FAKE_FUNCTION(log)
FAKE_FUNCTION(log1p)
FAKE_FUNCTION(sqrt)
FAKE_FUNCTION(sin)
FAKE_FUNCTION(cos)
FAKE_FUNCTION(tan)
FAKE_FUNCTION(asin)
FAKE_FUNCTION(acos)
FAKE_FUNCTION(atan)
FAKE_FUNCTION(tanh)
FAKE_FUNCTION(erf)
FAKE_FUNCTION(erfc)
FAKE_FUNCTION(floor)
FAKE_FUNCTION(fabs)
#undef FAKE_FUNCTION

static inline float fma(float x, float y, float z)
{
    return __builtin_fmaf(x, y, z);
}
static inline double fma(double x, double y, double z)
{
    return __builtin_fma(x, y, z);
}
static inline float pow(float x, float y)
{
    return __builtin_powf(x, y);
}
static inline double pow(double x, double y)
{
    return __builtin_pow(x, y);
}

template <typename To, typename From> static inline To fake_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits of equal size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
static inline float __int_as_float(int x)
{
    return fake_bits<float>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return fake_bits<float>(x);
}
static inline int __float_as_int(float x)
{
    return fake_bits<int>(x);
}
static inline unsigned __float_as_uint(float x)
{
    return fake_bits<unsigned>(x);
}
static inline double __longlong_as_double(long long x)
{
    return fake_bits<double>(x);
}
static inline long long __double_as_longlong(double x)
{
    return fake_bits<long long>(x);
}

/* Items run one after the other. */
template <typename T> static inline T atomicCAS(T *at, T expected, T value)
{
    T old = *at;
    if (old == expected)
        *at = value;
    return old;
}
template <typename T> static inline T atomicExch(T *at, T value)
{
    T old = *at;
    *at = value;
    return old;
}
template <typename T> static inline T atomicMax(T *at, T value)
{
    T old = *at;
    *at = old > value ? old : value;
    return old;
}
static inline void __threadfence(void)
{
}
template <typename T> static inline T atomicAdd(T *at, T value)
{
    T old = *at;
    *at = old + value;
    return old;
}
