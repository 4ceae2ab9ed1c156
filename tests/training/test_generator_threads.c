/* A generator gives the same bits for any number of threads, in each precision: what a prompt is read as, in
 * pieces, and the single steps behind it. The network is large enough that threads share its products. */
#define TIME 64
#define TOKENS 300
#include "training/generators.h"

#define PROMPT 41
#define STEPS 6
#define NETWORK                                                                                              \
    "input(64) + embedding(300, 256, name=tokens) + 2 * (add(identity, rms_norm + attention(4, causal, "     \
    "key_heads=2, no_bias, rotary)) + add(identity, rms_norm + dense(1024, time_distributed, no_bias) + "    \
    "glu(silu) + dense(256, time_distributed, no_bias))) + rms_norm + tied_dense(of=tokens) + "              \
    "softmax_cross_entropy"

typedef struct answers {
    double of[STEPS][TOKENS];
} answers;

/* The probabilities behind a prompt and behind each of some more tokens. */
static void answer(sgm_dtype precision, const char *quantize, int threads, answers *to)
{
    int64_t prompt[PROMPT];
    sgm_env *env =
        sgm_env_create("threads", .seed = 3, .precision = precision, .handler = "cpu", .threads = threads);
    sgm_trainer *trainer = sgm_trainer_create(env, "threads");
    CHECK_OK(sgm_trainer_set_network(trainer, NETWORK));
    CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = quantize));
    sgm_generator *generator = sgm_generator_create(trainer);
    CHECK_OK(generator);
    for (int64_t i = 0; i < PROMPT; i++)
        prompt[i] = token_at(i);
    CHECK_OK(sgm_generator_generate(generator, prompt, PROMPT, NULL, 0, NULL));
    for (int64_t i = 0; i < STEPS; i++) {
        const double *probabilities;
        CHECK_OK(sgm_generator_read(generator, token_at(PROMPT + i), &probabilities));
        memcpy(to->of[i], probabilities, sizeof to->of[i]);
    }
    sgm_generator_free(generator);
    sgm_env_free(env);
}

static void check_threads(sgm_dtype precision, const char *quantize)
{
    answers one, many;
    answer(precision, quantize, 1, &one);
    double sum = 0, largest = 0;
    for (int64_t k = 0; k < TOKENS; k++) {
        sum += one.of[0][k];
        largest = one.of[0][k] > largest ? one.of[0][k] : largest;
    }
    CHECK_NEAR(sum, 1, 0.02);
    CHECK(largest > 1.5 / TOKENS);
    for (int threads = 2; threads <= 5; threads++) {
        answer(precision, quantize, threads, &many);
        for (int64_t i = 0; i < STEPS; i++)
            if (memcmp(one.of[i], many.of[i], sizeof one.of[i]) != 0)
                TEST_FAIL("step %lld has other bits with %d threads than with one", (long long)i, threads);
    }
}

TEST(float32_has_the_same_bits_for_any_number_of_threads)
{
    check_threads(SGM_FLOAT32, NULL);
}

TEST(bfloat16_has_the_same_bits_for_any_number_of_threads)
{
    check_threads(SGM_BFLOAT16, NULL);
}

TEST(int8_has_the_same_bits_for_any_number_of_threads)
{
    check_threads(SGM_FLOAT32, "int8");
}
