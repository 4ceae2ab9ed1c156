/* How fast a network the size of SmolLM-135M reads a prompt and goes on: 30 blocks of 576 features, 9 heads,
 * 3 of keys, 49,152 tokens, random weights.
 *
 *   generate [THREADS [PROMPT [COUNT [float32|bfloat16|int8 [large]]]]]
 *
 * `large`: 24 blocks of 1024, 16 heads, 4 of keys, 32,000 tokens, so that weights of 8 bits are more than
 * most third-level caches hold.
 *
 * Prints the seconds until the first token behind a prompt of PROMPT (512) tokens, at first, which makes
 * programs, and at best of 3; then tokens in a second, of COUNT (32); then those of 8 texts side by side, of
 * prompts of 32, and of one text by 4 beams. */
#include "language_model.h"
#include "measure.h"

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "generate: %s\n", sgm_last_error());
    exit(1);
}

/* Seconds to read a prompt of tokens and to draw `count` more. */
static double time_of(sgm_generator *generator, const int64_t *prompt, size_t read, size_t count)
{
    check(sgm_generator_reset(generator) == SGM_OK);
    double begin = now();
    check(sgm_generator_generate(generator, prompt, read, NULL, count, SGM_GENERATION(.greedy = true)) ==
          SGM_OK);
    return now() - begin;
}

#define SIDE_BY_SIDE 8
#define SHORT 32
#define BEAMS 4

/* Tokens in a second of several texts, or of one by so many beams, without the time to read what they begin
 * with. */
static double speed_of_many(sgm_trainer *trainer, const int64_t *prompt, size_t text_count, int64_t beams,
                            size_t count)
{
    sgm_generator *generator =
        sgm_generator_create(trainer, .sequences = beams > 1 ? beams : (int64_t)text_count);
    double took[2] = {1e9, 1e9};
    check(generator != NULL);
    for (int i = 0; i < 6; i++) {
        sgm_continuation texts[SIDE_BY_SIDE];
        for (size_t k = 0; k < text_count; k++)
            texts[k] = (sgm_continuation){
                .begin = prompt + k, .begin_count = SHORT, .count = i % 2 == 0 ? 1 : count + 1};
        double begin = now();
        check(sgm_generator_generate_all(generator, texts, text_count,
                                         SGM_GENERATION(.greedy = true, .beams = beams)) == SGM_OK);
        double one = now() - begin;
        took[i % 2] = one < took[i % 2] ? one : took[i % 2];
    }
    sgm_generator_free(generator);
    return (double)(text_count * count) / (took[1] - took[0]);
}

static int64_t argument(int argc, char **argv, int index, int64_t otherwise)
{
    return argc > index ? strtol(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    int64_t read = argument(argc, argv, 2, 512), count = argument(argc, argv, 3, 32);
    const char *precision = argc > 4 ? argv[4] : "float32";
    bool large = argc > 5 && strcmp(argv[5], "large") == 0;
    int64_t tokens = large ? LARGE_TOKENS : SMALL_TOKENS;
    sgm_env *env;
    sgm_trainer *trainer = language_model(&env, (int)argument(argc, argv, 1, 2), precision, large);
    int64_t *prompt = calloc((size_t)read + SIDE_BY_SIDE + SHORT, sizeof *prompt);
    check(trainer != NULL && prompt != NULL);
    for (int64_t i = 0; i < read + SIDE_BY_SIDE + SHORT; i++)
        prompt[i] = i * 7919 % tokens;
    double begin = now();
    sgm_generator *generator = sgm_generator_create(trainer);
    check(generator != NULL);
    printf("generator made: %.2f s\n", now() - begin);
    printf("%lld tokens, at first: %.2f s\n", (long long)read, time_of(generator, prompt, (size_t)read, 1));
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        double took = time_of(generator, prompt, (size_t)read, 1);
        best = took < best ? took : best;
    }
    double longer = time_of(generator, prompt, (size_t)read, (size_t)count + 1);
    printf("%lld tokens, at best: %.2f s, %.0f a second\n", (long long)read, best, (double)read / best);
    printf("%lld more: %.1f tokens a second\n", (long long)count, (double)count / (longer - best));
    sgm_generator_free(generator);
    printf("%d texts side by side: %.1f tokens a second\n", SIDE_BY_SIDE,
           speed_of_many(trainer, prompt, SIDE_BY_SIDE, 1, (size_t)count));
    printf("%d beams: %.1f tokens a second\n", BEAMS,
           speed_of_many(trainer, prompt, 1, BEAMS, (size_t)count));
    sgm_env_free(env);
    free(prompt);
    return 0;
}
