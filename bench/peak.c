/* The most that the processor can do: float32 multiply-adds in registers, nothing read from memory.
 *
 *   peak [-t THREADS]
 *
 * Prints GFLOP/s (a multiply-add counts two): the best of some short measurements, as a neighbour on the
 * machine can only take away.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define CHAINS 12 /* independent sums: more than two units with a delay of 4 or 5 need */
#define ROUNDS 20000
#define MOST_THREADS 256
#define REPEATS 15
#define SECONDS 0.02 /* each repeat, at least */

typedef long long work_function(void); /* returns the operations that it did */

/* The empty assembly keeps the compiler from joining sums that grow alike. */
#define WORK(name, attributes, type, lanes, splat, fma, constraint)                                          \
    attributes static long long name(void)                                                                   \
    {                                                                                                        \
        type sums[CHAINS], factor = splat(0.999999f), step = splat(1e-7f);                                   \
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sums[i] = splat((float)i);                 \
        for (int round = 0; round < ROUNDS; round++) {                                                       \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)                                        \
            {                                                                                                \
                sums[i] = fma(sums[i], factor, step);                                                        \
                __asm__ volatile("" : constraint(sums[i]));                                                  \
            }                                                                                                \
        }                                                                                                    \
        return 2LL * (lanes)*CHAINS * ROUNDS;                                                                \
    }

#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#define AS_IS(a) (a)
#if defined(__x86_64__)
WORK(work_512, __attribute__((target("avx512f"))), __m512, 16, _mm512_set1_ps, _mm512_fmadd_ps, "+v")
WORK(work_256, __attribute__((target("avx2,fma"))), __m256, 8, _mm256_set1_ps, _mm256_fmadd_ps, "+x")
#define MULTIPLY_ADD_128(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
WORK(work_plain, , __m128, 4, _mm_set1_ps, MULTIPLY_ADD_128, "+x")
#elif defined(__aarch64__)
#define NEON_MULTIPLY_ADD(a, b, c) vfmaq_f32(c, a, b)
WORK(work_plain, , float32x4_t, 4, vdupq_n_f32, NEON_MULTIPLY_ADD, "+w")
#else
WORK(work_plain, , float, 1, AS_IS, MULTIPLY_ADD, "+m")
#endif

typedef struct measurement {
    work_function *work;
    pthread_barrier_t *start;
    double rate;
} measurement;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *measure(void *argument)
{
    measurement *m = argument;
    m->work();
    pthread_barrier_wait(m->start);
    double begin = now(), seconds = 0;
    long long operations = 0;
    while (seconds < SECONDS) {
        operations += m->work();
        seconds = now() - begin;
    }
    m->rate = (double)operations / seconds * 1e-9;
    return NULL;
}

/* The sum of all threads that work at the same time; 0 if they cannot be started. */
static double rate_of(work_function *work, int threads)
{
    pthread_t ids[MOST_THREADS];
    measurement parts[MOST_THREADS];
    pthread_barrier_t start;
    double rate = 0;
    if (pthread_barrier_init(&start, NULL, (unsigned)threads) != 0)
        return 0;
    for (int i = 0; i < threads; i++) {
        parts[i] = (measurement){.work = work, .start = &start};
        if (pthread_create(&ids[i], NULL, measure, &parts[i]) != 0) {
            fprintf(stderr, "peak: %d threads could not be started\n", threads);
            exit(1);
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        rate += parts[i].rate;
    }
    pthread_barrier_destroy(&start);
    return rate;
}

int main(int argc, char **argv)
{
    long threads = 1;
    for (int option; (option = getopt(argc, argv, "t:")) != -1;)
        threads = option == 't' ? strtol(optarg, NULL, 10) : 0;
    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: peak [-t THREADS]   (1 to %d)\n", MOST_THREADS);
        return 2;
    }
    work_function *widest = work_plain, *narrower = NULL;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        narrower = widest;
        widest = work_256;
    }
    if (__builtin_cpu_supports("avx512f")) {
        narrower = widest;
        widest = work_512;
    }
#endif
    double best = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double rate = rate_of(widest, (int)threads);
        double other = narrower != NULL ? rate_of(narrower, (int)threads) : 0; /* whose clock may be higher */
        best = rate > best ? rate : best;
        best = other > best ? other : best;
    }
    printf("%.1f\n", best);
    return 0;
}
