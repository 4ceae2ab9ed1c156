/* One step at a time gives what all steps at once give; limits and mistakes. */
#define TIME 6
#define TOKENS 5
#include "training/generators.h"

#include "handlers/handler.h"

#include <math.h>

static sgm_env *env;

static sgm_trainer *trainer_of(const char *network, sgm_dtype precision)
{
    env = sgm_env_create("generator", .seed = 5, .precision = precision, .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "generator");
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_add_initialiser(trainer, "*.*", sgm_gaussian(.standard_deviation = 0.5));
    CHECK_OK(sgm_trainer_prepare(trainer));
    return trainer;
}

static void check_steps(const char *network, sgm_dtype precision, const char *quantize, double tolerance)
{
    sgm_trainer *trainer = trainer_of(network, precision);
    CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = quantize));
    sgm_generator *generator = sgm_generator_create(trainer);
    CHECK_OK(generator);
    CHECK_INT(sgm_generator_vocabulary(generator), TOKENS);
    double expected[TOKENS];
    for (int round = 0; round < 2; round++) {
        for (int64_t t = 0; t < TIME; t++) {
            const double *probabilities;
            CHECK_OK(sgm_generator_read(generator, token_at(t), &probabilities));
            predict(trainer, 0, t + 1, strstr(network, "input(6, 5)") != NULL, expected);
            for (int64_t k = 0; k < TOKENS; k++)
                if (!test_near(probabilities[k], expected[k], tolerance))
                    TEST_FAIL("%s: probability %lld behind step %lld is %.17g, not %.17g", network,
                              (long long)k, (long long)t, probabilities[k], expected[k]);
        }
        CHECK_OK(sgm_generator_reset(generator));
    }
    sgm_generator_free(generator);
    sgm_env_free(env);
}

static const char *const networks[] = {
    "input(6) + embedding(5, 4) + rnn(6) + dense(5, time_distributed) + softmax_cross_entropy",
    "input(6) + embedding(5, 4) + gru(6) + dropout(0.5) + lstm(4, forget_bias=1) + dense(5, time_distributed)"
    " + softmax_cross_entropy",
    "input(6, 5) + dense(4, time_distributed, no_bias) + lstm(6) + dense(5, time_distributed) + "
    "softmax_cross_entropy(shares)",
    "input(6) + embedding(5, 8) + positions + 2 * transformer(2, causal) + layer_norm + dense(5, "
    "time_distributed)"
    " + softmax_cross_entropy",
    "input(6) + embedding(5, 8) + transformer(4, causal, key_heads=2, rotary) + attention(4, causal, "
    "key_heads=1, rotary)"
    " + rms_norm + dense(5, time_distributed) + softmax_cross_entropy",
};

TEST(one_step_at_a_time_gives_what_all_at_once_give)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        check_steps(networks[i], SGM_FLOAT64, NULL, 1e-12);
        check_steps(networks[i], SGM_FLOAT32, NULL, 1e-5);
    }
    check_steps(networks[3], SGM_BFLOAT16, NULL, 0.03);
    check_steps(networks[4], SGM_BFLOAT16, NULL, 0.03);
    check_steps("input(6) + embedding(5, 64) + 2 * transformer(4, causal, rotary) + layer_norm + dense(5, "
                "time_distributed) + softmax_cross_entropy",
                SGM_FLOAT32, "int8", 0.01);
}

/* --- sequences side by side, as a program reads them that records steps itself --- */

#define BATCH 3

static sgm_recording record(sgm_network *network, sgm_graph *graph, int64_t batch, sgm_dtype dtype, bool step)
{
    sgm_recording recording;
    const sgm_recording_options options = {
        .struct_size = sizeof options, .batch = batch, .dtype = dtype, .step = step};
    CHECK_OK(sgm_network_record(network, graph, &options, &recording));
    sgm_graph_add_output(graph, "y", recording.outputs[0].value);
    return recording;
}

/* Random parameters; what steps keep, and their count, stay zeros. */
static void fill_parameters(sgm_session *session, const sgm_recording *recording)
{
    double next = 1;
    for (size_t i = 0; i < recording->parameter_count; i++) {
        const sgm_parameter *p = &recording->parameters[i];
        sgm_tensor *tensor = sgm_tensor_create(p->type.dtype, &p->type.shape);
        float *values = sgm_tensor_data(tensor);
        for (int64_t k = 0; p->trainable && k < sgm_shape_elements(&p->type.shape); k++)
            values[k] = (float)(0.7 * sin(next++));
        CHECK_OK(sgm_session_set(session, p->name, tensor));
        sgm_tensor_free(tensor);
    }
    sgm_tensor *place = sgm_tensor_create(SGM_INT64, &(const sgm_shape){0});
    CHECK_OK(sgm_session_set(session, "step.place", place));
    sgm_tensor_free(place);
}

/* Sequence n says token_at(5 n + t). */
static void run_tokens(sgm_session *session, sgm_program *program, int64_t first, int64_t count, float *y)
{
    sgm_shape shape = sgm_shape_of(BATCH, count);
    sgm_tensor *in = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t n = 0; n < BATCH; n++)
        for (int64_t t = 0; t < count; t++)
            sgm_tensor_set(in, (const int64_t[]){n, t}, (double)token_at(5 * n * n + 2 * n + first + t));
    CHECK_OK(sgm_session_feed(session, program, "inputs", in));
    CHECK_OK(sgm_session_run(session, program));
    sgm_type type = sgm_program_output_type(program, "y");
    sgm_tensor *out = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_INT(sgm_shape_elements(&type.shape), BATCH * count * TOKENS);
    CHECK_OK(sgm_session_read(session, program, "y", out));
    memcpy(y, sgm_tensor_const_data(out), (size_t)(BATCH * count * TOKENS) * sizeof *y);
    sgm_tensor_free(out);
    sgm_tensor_free(in);
}

TEST(sequences_side_by_side_do_not_mix)
{
    for (size_t i = 3; i < sizeof networks / sizeof *networks; i++) {
        sgm_network *network = sgm_network_parse(networks[i]), *steps = sgm_network_parse(networks[i]);
        sgm_graph *graph = sgm_graph_create(), *step_graph = sgm_graph_create();
        sgm_handler *handler = sgm_handler_create("cpu");
        sgm_session *session = sgm_session_create(handler);
        record(network, graph, BATCH, SGM_FLOAT32, false);
        sgm_recording recording = record(steps, step_graph, BATCH, SGM_FLOAT32, true);
        fill_parameters(session, &recording);
        sgm_program *all = sgm_session_prepare(session, graph);
        sgm_program *one = sgm_session_prepare(session, step_graph);
        CHECK_OK(all);
        CHECK_OK(one);
        float expected[BATCH * TIME * TOKENS], y[BATCH * TOKENS];
        run_tokens(session, all, 0, TIME, expected);
        for (int64_t t = 0; t < TIME; t++) {
            run_tokens(session, one, t, 1, y);
            for (int64_t k = 0; k < BATCH * TOKENS; k++)
                CHECK_NEAR(y[k], expected[(k / TOKENS * TIME + t) * TOKENS + k % TOKENS], 1e-5);
        }
        CHECK_ERROR(sgm_session_run(session, one), "index 6 is out of range");
        sgm_session_free(session);
        sgm_handler_free(handler);
        sgm_graph_free(graph);
        sgm_graph_free(step_graph);
        sgm_network_free(network);
        sgm_network_free(steps);
    }
}

/* Keys and values are written into their states, place by place: no step of the program makes anything else
 * as large as one of them. */
static void check_plan(sgm_dtype dtype)
{
    sgm_network *network =
        sgm_network_parse("input(100) + embedding(5, 8) + 2 * transformer(2, causal, rotary) "
                          "+ dense(5, time_distributed) + softmax_cross_entropy");
    sgm_graph *graph = sgm_graph_create();
    sgm_handler *handler = sgm_handler_create("cpu");
    record(network, graph, 1, dtype, true);
    sgm__plan *plan = NULL;
    CHECK_OK(sgm__plan_create(graph, handler, &plan));
    int32_t written = 0;
    for (int32_t i = 0; i < plan->order_count; i++) {
        const sgm__node *node = &plan->nodes[plan->order[i]];
        bool writes = strcmp(node->op->name, "write_at") == 0;
        written += writes && node->place.store == SGM__STORE_STATE && node->type.dtype == dtype;
        if (!writes && sgm_shape_elements(&node->type.shape) >= 800)
            TEST_FAIL("%s makes %lld numbers", node->op->name,
                      (long long)sgm_shape_elements(&node->type.shape));
    }
    CHECK_INT(written, 4);
    sgm__plan_free(plan);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(a_step_writes_its_place_alone)
{
    check_plan(SGM_FLOAT32);
    check_plan(SGM_BFLOAT16);
}

TEST(the_averages_are_what_is_read_with)
{
    env = sgm_env_create("averages", .seed = 5, .precision = SGM_FLOAT64);
    sgm_trainer *trainer = sgm_trainer_create(env, "averages");
    sgm_tokenizer *bytes = sgm_byte_tokenizer();
    sgm_dataset *data = sgm_token_dataset("text", bytes, "\1\2\3\4\1\2\3\4\1\2\3\4\1\2\3\4", 16,
                                          SGM_TOKENS(.window = TIME, .step = 1));
    sgm_trainer_set_network(trainer, networks[0]);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 4));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.05, .average = 0.9));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 2));
    sgm_generator *generator = sgm_generator_create(trainer);
    CHECK_OK(generator);
    const double *probabilities;
    double expected[TOKENS];
    CHECK_OK(sgm_generator_read(generator, token_at(0), &probabilities));
    predict(trainer, 0, 1, false, expected);
    for (int64_t k = 0; k < TOKENS; k++)
        CHECK_NEAR(probabilities[k], expected[k], 1e-12);
    sgm_generator_free(generator);
    sgm_env_free(env);
    sgm_dataset_free(data);
    sgm_tokenizer_free(bytes);
}

/* Where places end, the newest half of them is the new beginning. */
TEST(what_is_longer_than_the_places_goes_on)
{
    sgm_trainer *trainer = trainer_of(networks[3], SGM_FLOAT64);
    sgm_generator *generator = sgm_generator_create(trainer);
    CHECK_INT(sgm_generator_places(generator), TIME);
    double expected[TOKENS];
    int64_t first = 0;
    for (int64_t t = 0; t < 4 * TIME; t++) {
        const double *probabilities;
        CHECK_OK(sgm_generator_read(generator, token_at(t), &probabilities));
        if (t - first >= TIME)
            first = t - TIME / 2;
        predict(trainer, first, t - first + 1, false, expected);
        for (int64_t k = 0; k < TOKENS; k++)
            CHECK_NEAR(probabilities[k], expected[k], 1e-12);
    }
    sgm_generator_free(generator);
    sgm_env_free(env);
    trainer = trainer_of(networks[0], SGM_FLOAT64);
    generator = sgm_generator_create(trainer);
    CHECK_INT(sgm_generator_places(generator), 0);
    sgm_generator_free(generator);
    sgm_env_free(env);
}

static bool enough(void *user, int64_t token)
{
    int64_t *told = user;
    CHECK(token >= 0 && token < TOKENS);
    return ++*told < 7;
}

TEST(the_same_seed_says_the_same)
{
    sgm_trainer *trainer = trainer_of(networks[4], SGM_FLOAT32);
    sgm_generator *generator = sgm_generator_create(trainer);
    int64_t a[40], b[40], c[40], told = 0;
    CHECK_OK(sgm_generator_generate(generator, (const int64_t[]){1, 2}, 2, a, 40, SGM_GENERATION(.seed = 1)));
    CHECK_OK(sgm_generator_reset(generator));
    CHECK_OK(sgm_generator_generate(generator, (const int64_t[]){1, 2}, 2, b, 40, SGM_GENERATION(.seed = 1)));
    CHECK_OK(sgm_generator_reset(generator));
    CHECK_OK(sgm_generator_generate(generator, (const int64_t[]){1, 2}, 2, c, 40, SGM_GENERATION(.seed = 2)));
    CHECK_INT(memcmp(a, b, sizeof a), 0);
    CHECK(memcmp(a, c, sizeof a) != 0);
    CHECK_OK(sgm_generator_generate(generator, (const int64_t[]){1}, 1, NULL, 40,
                                    SGM_GENERATION(.told = enough, .user = &told)));
    CHECK_INT(told, 7);
    CHECK_ERROR(sgm_generator_generate(generator, NULL, 0, a, 40, NULL),
                "at least 1 token is wanted to begin with");
    CHECK_ERROR(sgm_generator_generate(generator, (const int64_t[]){5}, 1, a, 4, NULL),
                "5 is no token: there are 5");
    CHECK_ERROR(sgm_generator_generate(generator, (const int64_t[]){1}, 1, a, 4, SGM_GENERATION(.top_p = 2)),
                "top_p is above 0");
    CHECK_ERROR(sgm_generator_generate(generator, (const int64_t[]){1}, 1, a, 4,
                                       SGM_GENERATION(.repetition_penalty = -1)),
                "the repetition_penalty is above 0, not -1");
    sgm_generator_free(generator);
    sgm_env_free(env);
}

TEST(a_repetition_penalty_needs_logits)
{
    sgm_trainer *trainer = trainer_of("input(6) + embedding(5, 4) + lstm(4) + dense(5, time_distributed) + "
                                      "binary_cross_entropy",
                                      SGM_FLOAT32);
    sgm_generator *generator = sgm_generator_create(trainer);
    CHECK_OK(generator);
    CHECK_ERROR(sgm_generator_generate(generator, (const int64_t[]){1}, 1, NULL, 4,
                                       SGM_GENERATION(.repetition_penalty = 1.5)),
                "the network's output is not the softmax of some");
    CHECK_OK(sgm_generator_generate(generator, (const int64_t[]){1}, 1, NULL, 4,
                                    SGM_GENERATION(.repetition_penalty = 1))); /* that is none */
    sgm_generator_free(generator);
    sgm_env_free(env);
}

/* What was read before is seen, too, until the generator is reset. */
TEST(tokens_that_were_read_are_penalised)
{
    sgm_trainer *trainer = trainer_of(networks[4], SGM_FLOAT64);
    sgm_generator *generator = sgm_generator_create(trainer);
    const sgm_generation_options *options = SGM_GENERATION(.greedy = true, .repetition_penalty = 1e6);
    int64_t said[4], fresh;
    for (int64_t token = 0; token < 3; token++)
        CHECK_OK(sgm_generator_read(generator, token, NULL));
    CHECK_OK(sgm_generator_generate(generator, (const int64_t[]){3}, 1, said, 1, options));
    CHECK_INT(said[0], 4);
    CHECK_OK(sgm_generator_reset(generator));
    CHECK_OK(sgm_generator_generate(generator, (const int64_t[]){4}, 1, &fresh, 1, options));
    CHECK(fresh != 4);
    sgm_generator_free(generator);
    sgm_env_free(env);
}

static void check_refused(const char *network, const char *message)
{
    sgm_trainer *trainer = trainer_of(network, SGM_FLOAT32);
    CHECK_ERROR(sgm_generator_create(trainer), message);
    CHECK_OK(sgm_trainer_status(trainer)); /* asking in vain breaks nothing */
    sgm_env_free(env);
}

TEST(networks_that_look_ahead_are_told)
{
    check_refused("input(6) + embedding(5, 4) + lstm(4, bidirectional) + dense(5, time_distributed) + "
                  "softmax_cross_entropy",
                  "layer 2-lstm: lstm: sequences cannot be read step by step: it begins with the last one");
    check_refused(
        "input(6) + embedding(5, 4) + attention(2) + dense(5, time_distributed) + softmax_cross_entropy",
        "attention: sequences cannot be read step by step: a place sees those behind it");
    check_refused("input(6) + embedding(5, 4) + global_max_pooling(steps) + dense(5) + softmax_cross_entropy",
                  "it looks at all steps");
    check_refused("input(6) + embedding(5, 4) + convolution_1d(6, 3, same) + dense(5, time_distributed) + "
                  "softmax_cross_entropy",
                  "its windows may lie across steps");
    check_refused("input(6) + embedding(5, 4) + permute(2, 1) + dense(5) + softmax_cross_entropy",
                  "it puts another dimension in the place of the steps");
    check_refused("input(6) + embedding(5, 4) + reshape(24) + dense(5) + softmax_cross_entropy",
                  "its shape is that of all steps together");
    check_refused("input(6) + embedding(5, 4) + dense(5) + softmax_cross_entropy",
                  "2-dense.weights is (4, 5) for one step, but (24, 5) for all");
    check_refused("input(6, 3) + lstm(4) + dense(5, time_distributed) + softmax_cross_entropy",
                  "the network reads 3 different tokens, but gives probabilities of 5");
    CHECK_ERROR(sgm_generator_create(NULL), "");
}
