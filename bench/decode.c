/* Tokens a second of a generator beside what memory gives for its weights.
 *
 *   decode [THREADS [float32|bfloat16|int8 [large [ROUNDS]]]]      (`small` for the smaller network)
 *
 * A round draws TOKENS tokens and then sums a buffer as large as the weights as often, by as many threads.
 * The two are in alternation, as other programs, and other machines beside a virtual one, take memory's time.
 * Each token reads all weights once, as each sum does the buffer, so what caches keep from one to the next
 * they keep for both. Prints, of each round and at the median of all, tokens a second, bytes of weights a
 * second, those of the buffer, and the one by the other; then the median of the seconds until the first token
 * behind a prompt of PROMPT tokens, and the most memory that the process had. */
#include "language_model.h"
#include "measure.h"

#include <pthread.h>
#include <sys/mman.h>

#define TOKENS 24
#define PROMPT 512
#define CONTEXT 32
#define MAXIMUM_ROUNDS 64
#define MAXIMUM_THREADS 64
#define HUGE_PAGE ((size_t)2 << 20)

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "decode: %s\n", sgm_last_error());
    exit(1);
}

/* --- memory --- */

typedef uint64_t numbers __attribute__((vector_size(64)));
#define TOGETHER 8

/* A thread's part of the buffer, and what its numbers sum to, so that they are read. */
typedef struct part {
    pthread_t thread;
    const numbers *first;
    size_t count, passes;
    numbers sum;
} part;

/* With the widest vectors there are, so that it is memory that limits it. */
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
add_all(part *p)
{
    numbers sums[TOGETHER] = {{0}};
    for (size_t i = 0; i + TOGETHER <= p->count; i += TOGETHER)
        for (size_t k = 0; k < TOGETHER; k++)
            sums[k] += p->first[i + k];
    for (size_t k = 0; k < TOGETHER; k++)
        p->sum += sums[k];
}

static void *sum(void *argument)
{
    part *p = argument;
    for (size_t pass = 0; pass < p->passes; pass++)
        add_all(p);
    return NULL;
}

/* Bytes a second of reading the buffer `passes` times. */
static double speed_of_memory(const void *buffer, size_t bytes, int threads, size_t passes)
{
    static part parts[MAXIMUM_THREADS];
    size_t count = bytes / sizeof(numbers) / (size_t)threads;
    double begin = now();
    for (int i = 0; i < threads; i++) {
        parts[i] =
            (part){.first = (const numbers *)buffer + (size_t)i * count, .count = count, .passes = passes};
        if (pthread_create(&parts[i].thread, NULL, sum, &parts[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(parts[i].thread, NULL);
    return (double)(bytes * passes) / (now() - begin);
}

/* Of huge pages, if the system has some, so that it is read as fast as can be. */
static void *make_buffer(size_t bytes)
{
    void *buffer = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (buffer == NULL)
        exit(1);
#ifdef MADV_HUGEPAGE
    (void)madvise(buffer, bytes, MADV_HUGEPAGE);
#endif
    memset(buffer, 1, bytes);
    return buffer;
}

/* --- tokens --- */

static double time_of(sgm_generator *generator, size_t read, size_t count)
{
    static int64_t prompt[PROMPT];
    for (size_t i = 0; i < read; i++)
        prompt[i] = (int64_t)i * 7919 % LARGE_TOKENS;
    check(sgm_generator_reset(generator) == SGM_OK);
    double begin = now();
    check(sgm_generator_generate(generator, prompt, read, NULL, count, SGM_GENERATION(.greedy = true)) ==
          SGM_OK);
    return now() - begin;
}

/* Tokens a second, without the time of what they follow. */
static double speed_of_tokens(sgm_generator *generator)
{
    double first = time_of(generator, CONTEXT, 1);
    return TOKENS / (time_of(generator, CONTEXT, TOKENS + 1) - first);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 4 ? atoi(argv[4]) : 7;
    const char *precision = argc > 2 ? argv[2] : "float32";
    bool large = argc > 3 && strcmp(argv[3], "large") == 0;
    size_t each = strcmp(precision, "float32") == 0 ? 4 : strcmp(precision, "bfloat16") == 0 ? 2 : 1;
    size_t bytes = (size_t)(large ? LARGE_PARAMETERS : SMALL_PARAMETERS) * each;
    double tokens[MAXIMUM_ROUNDS], memory[MAXIMUM_ROUNDS], ratio[MAXIMUM_ROUNDS], prompt[MAXIMUM_ROUNDS];
    if (threads < 1 || threads > MAXIMUM_THREADS || rounds < 1 || rounds > MAXIMUM_ROUNDS)
        return 1;
    sgm_env *env;
    sgm_trainer *trainer = language_model(&env, threads, precision, large);
    check(trainer != NULL);
    sgm_generator *generator = sgm_generator_create(trainer);
    check(generator != NULL);
    (void)time_of(generator, PROMPT, 1);
    const double peak = peak_megabytes();
    void *buffer = make_buffer(bytes);
    printf("%s, %d threads, %.0f MB of weights\n", precision, threads, (double)bytes * 1e-6);
    for (int i = 0; i < rounds; i++) {
        tokens[i] = speed_of_tokens(generator);
        memory[i] = speed_of_memory(buffer, bytes, threads, TOKENS);
        ratio[i] = tokens[i] * (double)bytes / memory[i];
        prompt[i] = time_of(generator, PROMPT, 1);
        printf("%6.1f tokens/s, %5.1f GB/s of %5.1f: %.2f\n", tokens[i], tokens[i] * (double)bytes * 1e-9,
               memory[i] * 1e-9, ratio[i]);
        fflush(stdout);
    }
    size_t count = (size_t)rounds;
    double token = median(tokens, count);
    printf("median: %.1f tokens/s, %.1f GB/s of %.1f: %.2f; prompt of %d: %.2f s; at most %.0f MB\n", token,
           token * (double)bytes * 1e-9, median(memory, count) * 1e-9, median(ratio, count), PROMPT,
           median(prompt, count), peak);
    sgm_generator_free(generator);
    sgm_env_free(env);
    free(buffer);
    return 0;
}
