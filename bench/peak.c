/* The most that the processor can do: multiply-adds in registers, nothing read from memory; and how fast
 * memory is.
 *
 *   peak [-t THREADS]                GFLOP/s of float32 (a multiply-add counts two)
 *   peak -p bfloat16 [-t THREADS]    the same of bfloat16, by AMX or AVX512_BF16 where that is there and
 * faster peak -b [-t THREADS]             GB/s: reading and updating (w += r * g, two reads and a write)
 * memory, then the same in the third-level cache
 *
 * The best of some short measurements, as a neighbour on the machine can only take away.
 */
#include "measure.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define CHAINS 12 /* independent sums: more than two units with a delay of 4 or 5 need */
#define ROUNDS 20000
#define MAXIMUM_THREADS 256
#define REPEATS 15
#define SECONDS 0.02 /* each repeat, at least */

#define MEMORY_REPEATS 5
#define MINIMUM_MEMORY (256 << 20) /* bytes of two arrays that are in no cache */
#define MAXIMUM_MEMORY (2LL << 30)
#define CACHE_BYTES (16 << 20) /* of two arrays that are in the third-level cache, and not in the second */

/* A thread's part of the two arrays, where memory is measured. */
typedef struct part {
    float *weights, *gradients;
    long long count;
} part;

typedef long long work_function(const part *p); /* returns the operations, or bytes, that it did */

/* The empty assembly keeps the compiler from joining sums that grow alike. */
#define WORK(name, attributes, type, lanes, splat, fma, constraint)                                          \
    attributes static long long name(const part *p)                                                          \
    {                                                                                                        \
        (void)p;                                                                                             \
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
/* Each lane of a sum takes a pair of products. */
#define MULTIPLY_PAIRS(sum, a, b) _mm512_dpbf16_ps(sum, (__m512bh)(a), (__m512bh)(b))
WORK(work_pairs, __attribute__((target("avx512f,avx512bf16"))), __m512, 32, _mm512_set1_ps, MULTIPLY_PAIRS,
     "+v")
/* AMX: each of four sums of 16 x 16 takes 32 products a step. */
#define TILE_REGISTERS 8
__attribute__((target("amx-tile,amx-bf16"))) static long long work_tiles(const part *p)
{
    struct {
        unsigned char palette, start_row, reserved[14];
        unsigned short row_bytes[16];
        unsigned char rows[16];
    } configuration = {.palette = 1};
    (void)p;
    for (int i = 0; i < TILE_REGISTERS; i++) {
        configuration.row_bytes[i] = 64;
        configuration.rows[i] = 16;
    }
    __asm__ volatile("" : : "r"(&configuration) : "memory");
    _tile_loadconfig(&configuration);
    for (int round = 0; round < ROUNDS; round++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
    return 4LL * 16 * 16 * 32 * 2 * ROUNDS;
}

/* Whether there is AMX for bfloat16, and the system lets this process use it. */
static bool has_amx(void)
{
    const unsigned leaf = 7, amx_bf16 = 1U << 22;
    const long ask = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM */
    unsigned a, b, c, d;
    return __get_cpuid_count(leaf, 0, &a, &b, &c, &d) != 0 && (d & amx_bf16) != 0 &&
           syscall(SYS_arch_prctl, ask, tile_data) == 0;
}

#define MULTIPLY_ADD_128(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
WORK(work_plain, , __m128, 4, _mm_set1_ps, MULTIPLY_ADD_128, "+x")
#elif defined(__aarch64__)
#define NEON_MULTIPLY_ADD(a, b, c) vfmaq_f32(c, a, b)
WORK(work_plain, , float32x4_t, 4, vdupq_n_f32, NEON_MULTIPLY_ADD, "+w")
#else
WORK(work_plain, , float, 1, AS_IS, MULTIPLY_ADD, "+m")
#endif

/* Vectors of sixteen, which the compiler cuts to what the processor has. */
typedef float sixteen __attribute__((vector_size(64), aligned(64)));

#if defined(__x86_64__)
#define WIDE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE_CLONES
#endif

WIDE_CLONES static long long read_arrays(const part *p)
{
    const sixteen *weights = (const sixteen *)p->weights, *gradients = (const sixteen *)p->gradients;
    sixteen sums[4] = {{0}};
    for (long long i = 0; i < p->count / 16; i += 2) {
        sums[0] += weights[i];
        sums[1] += gradients[i];
        sums[2] += weights[i + 1];
        sums[3] += gradients[i + 1];
    }
    sums[0] += sums[1] + sums[2] + sums[3];
    __asm__ volatile("" : : "m"(sums[0]));
    return 2 * p->count * (long long)sizeof(float);
}

WIDE_CLONES static long long update_array(const part *p)
{
    sixteen *weights = (sixteen *)p->weights;
    const sixteen *gradients = (const sixteen *)p->gradients;
    for (long long i = 0; i < p->count / 16; i++)
        weights[i] += gradients[i] * 1e-6f;
    __asm__ volatile("" : : : "memory");
    return 3 * p->count * (long long)sizeof(float);
}

typedef struct measurement {
    work_function *work;
    part part;
    pthread_barrier_t *start;
    double rate;
} measurement;

static void *measure(void *argument)
{
    measurement *m = argument;
    m->work(&m->part);
    pthread_barrier_wait(m->start);
    double begin = now(), seconds = 0;
    long long operations = 0;
    while (seconds < SECONDS) {
        operations += m->work(&m->part);
        seconds = now() - begin;
    }
    m->rate = (double)operations / seconds * 1e-9;
    return NULL;
}

/* The sum of all threads that work at the same time; 0 if they cannot be started. */
static double rate_of(work_function *work, int threads, const part *all)
{
    pthread_t ids[MAXIMUM_THREADS];
    measurement parts[MAXIMUM_THREADS];
    pthread_barrier_t start;
    double rate = 0;
    if (pthread_barrier_init(&start, NULL, (unsigned)threads) != 0)
        return 0;
    for (int i = 0; i < threads; i++) {
        parts[i] = (measurement){.work = work, .start = &start};
        if (all != NULL) {
            long long share = all->count / threads / 32 * 32;
            parts[i].part = (part){all->weights + i * share, all->gradients + i * share, share};
        }
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

static double best_of(work_function *work, int threads, const part *all, int repeats)
{
    double best = 0;
    for (int repeat = 0; repeat < repeats; repeat++) {
        double rate = rate_of(work, threads, all);
        best = rate > best ? rate : best;
    }
    return best;
}

static void *pages(size_t bytes)
{
    void *memory = aligned_alloc(4096, bytes);
    if (memory == NULL) {
        fprintf(stderr, "peak: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

/* Twice the caches' size, as they are shared, but no more than a quarter of the memory. */
static long long memory_bytes(void)
{
    long long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), bytes = MINIMUM_MEMORY;
    long long quarter = (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 4;
    if (bytes < 2 * cache)
        bytes = 2 * cache;
    if (bytes > MAXIMUM_MEMORY)
        bytes = MAXIMUM_MEMORY;
    return (bytes < quarter ? bytes : quarter) / 8192 * 8192;
}

static void print_bandwidth(int threads)
{
    size_t bytes = (size_t)memory_bytes() / 2;
    part large = {pages(bytes), pages(bytes), (long long)(bytes / sizeof(float))};
    part small = {large.weights, large.gradients, CACHE_BYTES / 2 / (long long)sizeof(float)};
    printf("%.1f %.1f %.1f %.1f\n", best_of(read_arrays, threads, &large, MEMORY_REPEATS),
           best_of(update_array, threads, &large, MEMORY_REPEATS),
           best_of(read_arrays, threads, &small, REPEATS), best_of(update_array, threads, &small, REPEATS));
    free(large.weights);
    free(large.gradients);
}

/* The best of what this processor has for the type: narrower vectors may have a higher clock. */
static double best_peak(bool bfloat16, int threads)
{
    double best = best_of(work_plain, threads, NULL, REPEATS);
#if defined(__x86_64__)
    const struct {
        bool is_here;
        work_function *work;
    } others[] = {
        {__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), work_256},
        {__builtin_cpu_supports("avx512f"), work_512},
        {bfloat16 && __builtin_cpu_supports("avx512bf16"), work_pairs},
        {bfloat16 && has_amx(), work_tiles},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        double rate = others[i].is_here ? best_of(others[i].work, threads, NULL, REPEATS) : 0;
        best = rate > best ? rate : best;
    }
#else
    (void)bfloat16;
#endif
    return best;
}

int main(int argc, char **argv)
{
    long threads = 1;
    bool bandwidth = false, bfloat16 = false, known = true;
    for (int option; (option = getopt(argc, argv, "bp:t:")) != -1;) {
        if (option == 'b')
            bandwidth = true;
        else if (option == 'p')
            known = (bfloat16 = strcmp(optarg, "bfloat16") == 0) || strcmp(optarg, "float32") == 0;
        else
            threads = option == 't' ? strtol(optarg, NULL, 10) : 0;
    }
    if (!known || threads < 1 || threads > MAXIMUM_THREADS) {
        fprintf(stderr, "usage: peak [-b | -p float32|bfloat16] [-t THREADS]   (1 to %d)\n", MAXIMUM_THREADS);
        return 2;
    }
    if (bandwidth)
        print_bandwidth((int)threads);
    else
        printf("%.1f\n", best_peak(bfloat16, (int)threads));
    return 0;
}
