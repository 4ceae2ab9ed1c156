/* A text to begin with is read in pieces of several steps: what follows is what all steps at once give. */
#define TIME 90
#define TOKENS 7
#include "training/generators.h"

#include "infer/generator.h"

static sgm_trainer *trainer_of(sgm_env *env, const char *network)
{
    sgm_trainer *trainer = sgm_trainer_create(env, "pieces");
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_add_initialiser(trainer, "*.*", sgm_gaussian(.standard_deviation = 0.5));
    CHECK_OK(sgm_trainer_prepare(trainer));
    return trainer;
}

/* Reads `count` tokens from `first` on, then one more, whose probabilities are compared with those of all
 * steps from `seen` on. */
static void read_on(sgm_trainer *trainer, sgm_generator *generator, bool one_hot, int64_t first,
                    int64_t count, int64_t seen, double tolerance)
{
    int64_t tokens[2 * TIME];
    double expected[TOKENS];
    const double *probabilities;
    for (int64_t i = 0; i < count; i++)
        tokens[i] = token_at(first + i);
    CHECK_OK(sgm_generator_generate(generator, tokens, (size_t)count, NULL, 0, NULL));
    CHECK_OK(sgm_generator_read(generator, token_at(first + count), &probabilities));
    predict(trainer, seen, first + count + 1 - seen, one_hot, expected);
    for (int64_t k = 0; k < TOKENS; k++)
        if (!test_near(probabilities[k], expected[k], tolerance))
            TEST_FAIL("probability %lld behind %lld tokens is %.17g, not %.17g", (long long)k,
                      (long long)(first + count), probabilities[k], expected[k]);
}

/* A piece with a rest, and a short one; then one that ends with the last place but two, so it begins earlier;
 * then more than there is room for, of which the newest half and what comes is left. */
static void check_pieces(const char *network, sgm_dtype precision, const char *quantize, bool pieces,
                         double tolerance)
{
    sgm_env *env = sgm_env_create("pieces", .seed = 5, .precision = precision, .handler = "cpu");
    sgm_trainer *trainer = trainer_of(env, network);
    CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = quantize));
    sgm_generator *generator = sgm_generator_create(trainer);
    bool one_hot = strstr(network, "input(90, 7)") != NULL;
    CHECK_OK(generator);
    for (int round = 0; round < 2; round++) {
        read_on(trainer, generator, one_hot, 0, 60, 0, tolerance);
        read_on(trainer, generator, one_hot, 61, 8, 0, tolerance);
        read_on(trainer, generator, one_hot, 70, 18, 0, tolerance);
        if (sgm_generator_places(generator) > 0)
            read_on(trainer, generator, one_hot, 89, 40, 45, tolerance);
        CHECK(pieces == (generator->piece.program != NULL));
        CHECK_OK(sgm_generator_reset(generator));
    }
    sgm_generator_free(generator);
    sgm_env_free(env);
}

TEST(pieces_give_what_all_steps_at_once_give)
{
    static const char *const networks[] = {
        "input(90) + embedding(7, 8) + positions + 2 * transformer(2, causal) + layer_norm + dense(7, "
        "time_distributed) + softmax_cross_entropy",
        "input(90) + embedding(7, 8) + transformer(4, causal, key_heads=2, rotary) + attention(4, causal, "
        "key_heads=1, rotary, query_norm) + rms_norm + dense(7, time_distributed) + softmax_cross_entropy",
        "input(90, 7) + dense(8, time_distributed, no_bias) + transformer(2, causal, rotary) + dense(7, "
        "time_distributed) + softmax_cross_entropy(shares)"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        check_pieces(networks[i], SGM_FLOAT64, NULL, true, 1e-12);
        check_pieces(networks[i], SGM_FLOAT32, NULL, true, 2e-5);
    }
    check_pieces(networks[1], SGM_BFLOAT16, NULL, true, 0.05);
    check_pieces("input(90) + embedding(7, 64) + 2 * transformer(4, causal, rotary) + layer_norm + dense(7, "
                 "time_distributed) + softmax_cross_entropy",
                 SGM_FLOAT32, "int8", true, 0.02);
}

TEST(what_recurrent_layers_remember_is_read_step_by_step)
{
    check_pieces("input(90) + embedding(7, 4) + lstm(5) + dense(7, time_distributed) + softmax_cross_entropy",
                 SGM_FLOAT64, NULL, false, 1e-12);
    check_pieces(
        "input(90) + embedding(7, 4) + lstm(4) + transformer(2, causal) + dense(7, time_distributed) "
        "+ softmax_cross_entropy",
        SGM_FLOAT32, NULL, false, 2e-5);
}

TEST(more_steps_at_a_time_than_there_are_places_is_an_error)
{
    sgm_network *network = sgm_network_parse("input(6) + embedding(5, 4) + dense(5, time_distributed)");
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    const sgm_recording_options options = {
        .struct_size = sizeof options, .batch = 1, .dtype = SGM_FLOAT32, .step = true, .steps = 7};
    CHECK_ERROR(sgm_network_record(network, graph, &options, &recording),
                "7 steps at a time are wanted of sequences of 6");
    sgm_graph_free(graph);
    sgm_network_free(network);
}
