/* A budget of memory (sgm_env_options.memory): values of the forward pass are computed again, and every state
 * and every loss have the bits that they have without it. */
#include "../base/allocator.h"
#include "test.h"

#include "handlers/handler.h"
#include <sigma/sigma.h>
#include <unistd.h>

#define EXAMPLES 24
#define BATCH 8
#define CLASSES 4
#define STEPS 3
#define ALL_PARAMETERS 64

typedef struct experiment {
    const char *network;
    sgm_shape input; /* of one example */
    int vocabulary;  /* inputs are whole numbers below this; 0: they are not */
    /* The rest has defaults: adam, float32, cpu, one thread, no workers. */
    const char *optimiser, *handler;
    sgm_dtype precision;
    int threads, workers, accumulate;
} experiment;

/* What a training leaves behind. */
typedef struct result {
    sgm_tensor *states[ALL_PARAMETERS];
    size_t count;
    double losses[STEPS];
    sgm_program_memory memory;
} result;

static sgm_dataset *make_data(const experiment *e)
{
    int64_t dims[SGM_MAX_RANK] = {EXAMPLES};
    memcpy(dims + 1, e->input.dims, (size_t)e->input.rank * sizeof *dims);
    sgm_shape shapes[] = {sgm_shape_create(e->input.rank + 1, dims), sgm_shape_of(EXAMPLES, CLASSES)};
    sgm_tensor *tensors[] = {sgm_tensor_create(SGM_FLOAT32, &shapes[0]),
                             sgm_tensor_create(SGM_FLOAT32, &shapes[1])};
    CHECK(tensors[0] != NULL && tensors[1] != NULL);
    float *inputs = sgm_tensor_data(tensors[0]), *targets = sgm_tensor_data(tensors[1]);
    for (int64_t i = 0; i < sgm_shape_elements(&shapes[0]); i++)
        inputs[i] = e->vocabulary > 0 ? (float)(i * 7 % e->vocabulary) : (float)sin(1.7 * (double)i);
    for (int64_t i = 0; i < EXAMPLES; i++)
        targets[i * CLASSES + i * 7 % CLASSES] = 1;
    sgm_dataset *data =
        sgm_dataset_create_from("waves", (const char *const[]){"inputs", "targets"}, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    CHECK_OK(data);
    return data;
}

static bool note_loss(void *user, const sgm_training_progress *progress)
{
    result *made = user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration <= STEPS)
        made->losses[progress->iteration - 1] = progress->training.loss;
    return true;
}

/* A trainer with a budget (NULL: none) in an environment of its own. */
static sgm_trainer *make_trainer(const experiment *e, const char *memory, sgm_env **env)
{
    *env = sgm_env_create("memory", .seed = 3, .handler = e->handler, .memory = memory,
                          .threads = e->threads > 0 ? e->threads : 1, .precision = e->precision);
    CHECK_OK(*env);
    sgm_dataset *data = make_data(e);
    sgm_trainer *trainer = sgm_trainer_create(*env, "t");
    sgm_trainer_set_network(trainer, e->network);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = BATCH));
    sgm_dataset_free(data);
    sgm_trainer_set_optimiser(
        trainer, SGM_OPTIMISER(e->optimiser != NULL ? e->optimiser : "adam", .accumulate = e->accumulate));
    if (e->workers > 0)
        sgm_trainer_set_operator(trainer, sgm_gradient_operator(.workers = e->workers));
    return trainer;
}

/* Runs to the end and reads the parameters. */
static void run(sgm_trainer *trainer, result *made)
{
    *made = (result){0};
    sgm_trainer_on_progress(trainer, note_loss, made);
    CHECK_OK(sgm_trainer_run(trainer, .iterations = STEPS));
    size_t count;
    const sgm_parameter *parameters = sgm_trainer_parameters(trainer, &count);
    CHECK(count > 0 && count < ALL_PARAMETERS);
    for (size_t i = 0; i < count; i++)
        made->states[made->count++] = sgm_trainer_get(trainer, parameters[i].name);
    CHECK_OK(sgm_trainer_memory(trainer, BATCH, &made->memory));
}

static void train(const experiment *e, const char *memory, result *made)
{
    sgm_env *env;
    run(make_trainer(e, memory, &env), made);
    sgm_env_free(env);
}

static void forget(result *made)
{
    for (size_t i = 0; i < made->count; i++)
        sgm_tensor_free(made->states[i]);
}

static void check_equal(const result *a, const result *b)
{
    CHECK_INT(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(a->states[i])) *
                       sgm_dtype_size(sgm_tensor_dtype(a->states[i]));
        CHECK(memcmp(sgm_tensor_data(a->states[i]), sgm_tensor_data(b->states[i]), bytes) == 0);
    }
    CHECK(memcmp(a->losses, b->losses, sizeof a->losses) == 0);
}

/* Trains without a budget, with one of a share, and with the smallest that there is. */
static void check_bits(const experiment *e)
{
    static const char *const budgets[] = {"0.8", "1B"};
    result plain;
    train(e, NULL, &plain);
    CHECK_INT(plain.memory.again, 0);
    CHECK_INT(plain.memory.arena, plain.memory.unsaved);
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        result saved;
        train(e, budgets[i], &saved);
        CHECK_INT(saved.memory.unsaved, plain.memory.arena);
        CHECK(saved.memory.again > 0 && saved.memory.arena < plain.memory.arena);
        check_equal(&plain, &saved);
        forget(&saved);
    }
    forget(&plain);
}

#define MLP                                                                                                  \
    "input(32) + dense(40, relu) + dense(40, tanh) + dropout(0.3) + dense(40, gelu) + dense(40, relu) + "    \
    "dense(40, sigmoid) + dense(40, relu) + dense(4) + softmax_cross_entropy"
#define BLOCK                                                                                                \
    " + add(identity, convolution(8, 3, same, no_bias) + batch_norm + activation(relu) + "                   \
    "convolution(8, 3, same, no_bias) + batch_norm) + activation(relu)"
#define CNN                                                                                                  \
    "input(3, 8, 8) + convolution(8, 3, same) + batch_norm + activation(relu)" BLOCK BLOCK BLOCK             \
    " + max_pooling(2) + dropout(0.2) + flatten + dense(4) + softmax_cross_entropy"
#define LSTM "input(16) + embedding(11, 12) + lstm(16) + gru(16) + flatten + dense(4) + softmax_cross_entropy"
#define TRANSFORMER                                                                                          \
    "input(16) + embedding(11, 16) + positions + transformer(2, causal, dropout=0.1) + "                     \
    "transformer(2, dropout=0.1) + transformer(2) + layer_norm + flatten + dense(4) + softmax_cross_entropy"

static const experiment networks[] = {
    {.network = MLP, .input = {1, {32}}},
    {.network = CNN, .input = {3, {3, 8, 8}}},
    {.network = LSTM, .input = {1, {16}}, .vocabulary = 11},
    {.network = TRANSFORMER, .input = {1, {16}}, .vocabulary = 11},
};
#define NETWORKS (sizeof networks / sizeof *networks)

TEST(bits_are_those_without_it_of_all_networks)
{
    for (size_t i = 0; i < NETWORKS; i++)
        check_bits(&networks[i]);
}

TEST(bits_are_those_without_it_in_all_precisions)
{
    static const sgm_dtype precisions[] = {SGM_FLOAT64, SGM_BFLOAT16};
    for (size_t i = 0; i < NETWORKS; i++)
        for (size_t k = 0; k < 2; k++) {
            experiment e = networks[i];
            e.precision = precisions[k];
            check_bits(&e);
        }
}

TEST(bits_are_those_without_it_of_the_reference_and_of_threads_and_workers)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        experiment e = networks[i];
        e.threads = 2;
        check_bits(&e);
        e.workers = 2;
        check_bits(&e);
        e = networks[i];
        e.handler = "reference";
        check_bits(&e);
    }
}

TEST(bits_are_those_without_it_of_all_optimisers)
{
    static const char *const optimisers[] = {"gradient_descent", "momentum", "lion", "muon"};
    for (size_t k = 0; k < sizeof optimisers / sizeof *optimisers; k++) {
        experiment e = networks[1];
        e.optimiser = optimisers[k];
        check_bits(&e);
    }
    experiment e = networks[0];
    e.accumulate = 2;
    check_bits(&e);
}

TEST(a_resumed_training_may_have_another_budget)
{
    char path[] = "/tmp/sigma-test-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && close(file) == 0);
    sgm_env *first, *second;
    sgm_trainer *begun = make_trainer(&networks[0], NULL, &first);
    CHECK_OK(sgm_trainer_run(begun, .iterations = STEPS - 1));
    CHECK_OK(sgm_trainer_save(begun, path));
    sgm_trainer *resumed = make_trainer(&networks[0], "1B", &second);
    CHECK_OK(sgm_trainer_load(resumed, path));
    result plain, saved;
    run(begun, &plain);
    run(resumed, &saved);
    CHECK(saved.memory.again > 0);
    check_equal(&plain, &saved);
    forget(&plain);
    forget(&saved);
    sgm_env_free(first);
    sgm_env_free(second);
    remove(path);
}

static char noted[600];
static int warnings;

static void note(void *user, sgm_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)source;
    if (level == SGM_LOG_WARNING || strstr(message, "memory") != NULL)
        snprintf(noted, sizeof noted, "%s: %s", level == SGM_LOG_WARNING ? "warning" : "info", message);
    warnings += level == SGM_LOG_WARNING;
}

TEST(half_of_the_memory_is_kept_to_and_what_is_impossible_is_told)
{
    result saved;
    sgm_set_logger(note, NULL, SGM_LOG_INFO);
    train(&networks[3], "0.5", &saved);
    CHECK(2 * saved.memory.arena <= saved.memory.unsaved && saved.memory.again > 0);
    CHECK(strncmp(noted, "info: memory: a step of 8 examples takes ", 41) == 0 &&
          strstr(noted, " of its instructions are computed again") != NULL);
    forget(&saved);
    train(&networks[0], "1kB", &saved);
    CHECK(strncmp(noted, "warning: memory: a step of 8 examples takes ", 44) == 0 &&
          strstr(noted, ", more than 1.0 kB: ") != NULL);
    forget(&saved);
    experiment divided = networks[0]; /* of a minibatch of 8 each worker has 4 */
    divided.workers = 2;
    train(&divided, "1kB", &saved);
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    CHECK(strncmp(noted, "warning: memory: a step of 4 examples takes ", 44) == 0);
    forget(&saved);
}

/* Minibatches of 10, 10 and 4 examples: gradients of the first are only added, the second is an update, and
 * the smaller last one is added again. Each has a program of its own. */
TEST(a_budget_that_is_not_kept_to_is_told_once)
{
    experiment e = networks[0];
    e.accumulate = 2;
    sgm_env *env;
    sgm_trainer *trainer = make_trainer(&e, "1kB", &env);
    sgm_dataset *data = make_data(&e);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 10));
    sgm_dataset_free(data);
    warnings = 0;
    sgm_set_logger(note, NULL, SGM_LOG_INFO);
    sgm_status status = sgm_trainer_run(trainer, .epochs = 2);
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    CHECK_OK(status);
    CHECK_INT(warnings, 1);
    CHECK(strncmp(noted, "warning: memory: a step of 10 examples takes ", 45) == 0);
    sgm_env_free(env);
}

TEST(what_is_no_budget_is_an_error)
{
    static const char *const wrong[] = {"-1",  "0",  "2x",  "abc",    "1.5",
                                        "50%", "MB", "0MB", "1e-3MB", "1.5.0MB"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[200];
        snprintf(message, sizeof message,
                 "digits: memory: expected a share of what a training step takes, more than 0 and at most 1, "
                 "such as 0.5, or a size such as 500MB, got '%s'",
                 wrong[i]);
        CHECK_ERROR(sgm_env_create("digits", .memory = wrong[i]), message);
    }
    static const char *const right[] = {"", "1", "0.001", "500MB", "1.5 gb", "200 bytes"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        sgm_env *env = sgm_env_create("digits", .memory = right[i]);
        CHECK_OK(env);
        sgm_env_free(env);
    }
}

#define DEPTH 8

/* A forward pass of layers of 32 x 32 for 256 examples, with the gradients of their weights. */
static sgm_graph *deep_graph(void)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape square = sgm_shape_of(32, 32), examples = sgm_shape_of(256, 32);
    sgm_value weights[DEPTH], gradients[DEPTH], value = sgm_input_value(graph, "x", SGM_FLOAT32, &examples);
    for (int i = 0; i < DEPTH; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        weights[i] = sgm_state(graph, name, SGM_FLOAT32, &square);
        value = sgm_tanh(graph, sgm_matmul(graph, value, weights[i]));
    }
    value = sgm_mean(graph, sgm_square(graph, value));
    sgm_graph_add_output(graph, "cost", value);
    CHECK_OK(sgm_gradients(graph, value, weights, DEPTH, gradients));
    for (int i = 0; i < DEPTH; i++)
        sgm_assign(graph, weights[i], gradients[i]);
    CHECK_OK(sgm_graph_status(graph));
    return graph;
}

/* Without a failure there is a plan. With one there is an error, and nothing is left. */
TEST(any_allocation_of_the_search_may_fail)
{
    sgm_graph *graph = deep_graph();
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1);
    CHECK_OK(handler);
    sgm_status status = SGM_ERROR_MEMORY;
    for (long n = 1; status != SGM_OK; n++) {
        sgm__plan *plan = NULL;
        allocator_start_once(n);
        status = sgm__plan_create_within(graph, handler, &(sgm__memory_budget){.share = 0.01, .cost = "cost"},
                                         &plan);
        CHECK((status == SGM_OK) == (plan != NULL));
        if (status == SGM_OK)
            CHECK(plan->again_count > 0 && plan->arena_bytes < plan->unsaved_bytes);
        sgm__plan_free(plan);
        CHECK_INT(allocator_live, 0);
        allocator_stop();
    }
    sgm_graph_free(graph);
    sgm_handler_free(handler);
}
