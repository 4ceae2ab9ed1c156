/* What models of others say, against generate() of transformers (fixtures.py). */
#include "models/compare.h"

#define BEGIN 5
#define SAID (TIME - BEGIN)

static const char *const names[] = {"gpt2",         "gpt2_half", "llama", "llama3",
                                    "llama_linear", "mistral",   "qwen2", "qwen3"};
#define NAME_COUNT (sizeof names / sizeof *names)

/* A model with its generator, and tokens to begin with: rows of TIME, of which BEGIN are read. */
typedef struct speaker {
    const char *name;
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_generator *generator;
    sgm_bundle *expected, *generation;
    const int64_t *inputs;
} speaker;

static speaker open_speaker(const char *name)
{
    speaker s = {.name = name, .env = sgm_env_create("generation")};
    sgm_model *model = sgm_model_import(s.env, path_of(name), .context = TIME);
    CHECK_OK(model);
    s.trainer = sgm_model_trainer(model);
    s.generator = sgm_generator_create(s.trainer);
    CHECK_OK(s.generator);
    s.expected = expected_of(name);
    s.generation = bundle_of(name, "generation");
    s.inputs = sgm_tensor_const_data(sgm_bundle_get(s.expected, "inputs"));
    return s;
}

static void close_speaker(speaker *s)
{
    sgm_generator_free(s->generator);
    sgm_bundle_free(s->expected);
    sgm_bundle_free(s->generation);
    sgm_env_free(s->env);
}

/* What follows the beginning of a row, without what was read before. */
static void check_said(const speaker *s, int row, const int64_t *expected,
                       const sgm_generation_options *options)
{
    int64_t said[SAID];
    CHECK_OK(sgm_generator_reset(s->generator));
    CHECK_OK(sgm_generator_generate(s->generator, s->inputs + row * TIME, BEGIN, said, SAID, options));
    for (int i = 0; i < SAID; i++)
        if (said[i] != expected[i])
            TEST_FAIL("%s: token %d behind input %d is %lld, not %lld", s->name, i, row, (long long)said[i],
                      (long long)expected[i]);
}

/* Rows of `said` are -1 behind the end of a text. */
TEST(beams_are_those_of_transformers)
{
    static const struct {
        int64_t beams;
        double length_penalty, repetition_penalty;
    } cases[] = {{2, 1, 1}, {3, 1, 1}, {3, 2, 1}, {4, -1, 1}, {4, 1, 1.3}};
    static const int64_t ends[] = {7, 12, 19, 24, 31, 46, 49};
    for (size_t n = 0; n < NAME_COUNT; n++) {
        speaker s = open_speaker(names[n]);
        const int64_t *said = sgm_tensor_const_data(sgm_bundle_get(s.generation, "beams"));
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            sgm_generator_free(s.generator);
            s.generator = sgm_generator_create(s.trainer, .sequences = cases[i].beams);
            CHECK_OK(s.generator);
            for (int row = 0; row < 2; row++)
                check_said(&s, row, said + (2 * (int)i + row) * SAID,
                           SGM_GENERATION(.beams = cases[i].beams, .length_penalty = cases[i].length_penalty,
                                          .repetition_penalty = cases[i].repetition_penalty, .ends = ends,
                                          .end_count = 7));
        }
        close_speaker(&s);
    }
}

/* Both inputs side by side, after other texts. */
TEST(texts_side_by_side_are_those_of_transformers)
{
    for (size_t n = 0; n < NAME_COUNT; n++) {
        speaker s = open_speaker(names[n]);
        sgm_generator *generator = sgm_generator_create(s.trainer, .sequences = 2);
        const int64_t *expected = sgm_tensor_const_data(sgm_bundle_get(s.generation, "penalised"));
        int64_t said[4 * SAID];
        sgm_continuation texts[4];
        CHECK_OK(generator);
        for (int i = 0; i < 4; i++)
            texts[i] = (sgm_continuation){.begin = s.inputs + i % 2 * TIME,
                                          .begin_count = i < 2 ? 2 : BEGIN,
                                          .tokens = said + i * SAID,
                                          .count = SAID};
        CHECK_OK(sgm_generator_generate_all(generator, texts, 4,
                                            SGM_GENERATION(.greedy = true, .repetition_penalty = 1.5)));
        for (int i = 0; i < 2 * SAID; i++)
            CHECK_INT(said[2 * SAID + i], expected[i]);
        sgm_generator_free(generator);
        close_speaker(&s);
    }
}

TEST(repetitions_are_penalised_as_transformers_does)
{
    static const double penalties[] = {1.5, 0.7};
    for (size_t n = 0; n < NAME_COUNT; n++) {
        speaker s = open_speaker(names[n]);
        const int64_t *said = sgm_tensor_const_data(sgm_bundle_get(s.generation, "penalised"));
        for (int i = 0; i < 4; i++)
            check_said(&s, i % 2, said + i * SAID,
                       SGM_GENERATION(.greedy = true, .repetition_penalty = penalties[i / 2]));
        close_speaker(&s);
    }
}
