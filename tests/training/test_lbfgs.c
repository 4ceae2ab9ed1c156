/* L-BFGS: a small network's parameters and losses after updates are PyTorch's (lbfgs_torch.py); what it does
 * where nothing can be learnt from a step; runs that go on, and what it refuses. */
#include "lbfgs_torch.h"
#include "torch_numbers.h"
#include "waves.h"

#include "optim/optimiser.h"
#include <sigma/sigma.h>
#include <unistd.h>

#define PARAMETERS 3
#define MAXIMUM_UPDATES 20
#define ELEMENTS (12 + 4 + 8)

static const char *const names[PARAMETERS] = {"weights", "biases", "out"};

typedef struct bench {
    sgm_handler *handler;
    sgm_session *session;
    sgm_graph *graph;
    sgm_program *program;
    sgm_dtype dtype;
} bench;

static sgm_shape shape_of(int i)
{
    return i == 0 ? sgm_shape_of(3, 4) : i == 1 ? sgm_shape_of(4) : sgm_shape_of(4, 2);
}

/* All states of the graph that the session has not begin at 0. */
static void define_slots(const bench *b, int64_t history)
{
    for (int i = 0; i < PARAMETERS; i++)
        for (int64_t k = -2; k < 2 * history; k++) {
            char name[64];
            sgm_shape shape = shape_of(i);
            if (k < 0)
                snprintf(name, sizeof name, "optimiser.%s.%s", k == -2 ? "gradient" : "step", names[i]);
            else
                snprintf(name, sizeof name, "optimiser.%s_%d.%s", k % 2 == 0 ? "step" : "change", (int)k / 2,
                         names[i]);
            sgm_tensor *zeros = sgm_tensor_create(b->dtype, &shape);
            CHECK_OK(sgm_session_set(b->session, name, zeros));
            sgm_tensor_free(zeros);
        }
}

static sgm_value network_loss(sgm_graph *graph, sgm_dtype dtype, const sgm__trained_parameter *parameters)
{
    sgm_shape examples = sgm_shape_of(16, 3), targets = sgm_shape_of(16, 2);
    sgm_value x = sgm_input_value(graph, "x", dtype, &examples);
    sgm_value t = sgm_input_value(graph, "t", dtype, &targets);
    sgm_value inner = sgm_add(graph, sgm_matmul(graph, x, parameters[0].value), parameters[1].value);
    sgm_value y = sgm_matmul(graph, sgm_tanh(graph, inner), parameters[2].value);
    return sgm_mean(graph, sgm_square(graph, sgm_subtract(graph, y, t)));
}

static bench start(const sgm_optimiser *optimiser, const char *handler, sgm_dtype dtype)
{
    bench b = {
        .handler = sgm_handler_create_with(handler, NULL), .graph = sgm_graph_create(), .dtype = dtype};
    sgm__trained_parameter parameters[PARAMETERS];
    b.session = sgm_session_create(b.handler);
    for (int i = 0; i < PARAMETERS; i++) {
        sgm_shape shape = shape_of(i);
        parameters[i] =
            (sgm__trained_parameter){.name = names[i], .value = sgm_state(b.graph, names[i], dtype, &shape)};
        sgm_tensor *values = torch_numbers(dtype, &shape, i);
        CHECK_OK(sgm_session_set(b.session, names[i], values));
        sgm_tensor_free(values);
    }
    sgm_value loss = network_loss(b.graph, dtype, parameters);
    sgm_graph_add_output(b.graph, "loss", loss);
    CHECK_OK(sgm__optimiser_record(
        optimiser, b.graph,
        &(sgm__update_request){.cost = loss, .parameters = parameters, .count = PARAMETERS, .update = true}));
    CHECK_OK(sgm_graph_verify(b.graph));
    define_slots(&b, optimiser->options.history);
    b.program = sgm_session_prepare(b.session, b.graph);
    CHECK_OK(b.program);
    return b;
}

static void stop(bench *b)
{
    sgm_graph_free(b->graph);
    sgm_session_free(b->session);
    sgm_handler_free(b->handler);
}

static double update(const bench *b, double rate, int which)
{
    double loss;
    sgm_shape examples = sgm_shape_of(16, 3), targets = sgm_shape_of(16, 2);
    sgm_tensor *x = torch_numbers(b->dtype, &examples, which),
               *t = torch_numbers(b->dtype, &targets, which + 1);
    CHECK_OK(sgm_session_feed(b->session, b->program, "x", x));
    CHECK_OK(sgm_session_feed(b->session, b->program, "t", t));
    CHECK_OK(sgm_session_feed_number(b->session, b->program, "optimiser.learning_rate", rate));
    CHECK_OK(sgm_session_run(b->session, b->program));
    CHECK_OK(sgm_session_read_number(b->session, b->program, "loss", &loss));
    sgm_tensor_free(x);
    sgm_tensor_free(t);
    return loss;
}

static void check_parameters(const bench *b, const double *expected, double tolerance)
{
    for (int i = 0; i < PARAMETERS; i++) {
        double values[MAXIMUM_TORCH_NUMBERS];
        sgm_shape shape = shape_of(i);
        size_t count = (size_t)sgm_shape_elements(&shape);
        sgm_tensor *now = sgm_session_get(b->session, names[i]);
        CHECK_OK(sgm_tensor_read(now, values, count));
        for (size_t k = 0; k < count; k++)
            if (!test_near(values[k], expected[k], tolerance))
                TEST_FAIL("element %zu of %s is %.17g, expected %.17g", k, names[i], values[k], expected[k]);
        expected += count;
        sgm_tensor_free(now);
    }
}

static void check(sgm_optimiser *optimiser, double rate, int moves, int updates, const double *expected)
{
    static const struct {
        const char *handler;
        sgm_dtype dtype;
        double tolerance;
    } ways[] = {{"reference", SGM_FLOAT64, 1e-10}, {"cpu", SGM_FLOAT64, 1e-10}, {"cpu", SGM_FLOAT32, 1e-4}};
    CHECK_OK(optimiser);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        bench b = start(optimiser, ways[i].handler, ways[i].dtype);
        for (int k = 0; k < updates; k++)
            CHECK_NEAR(update(&b, rate, 10 + moves * k), expected[ELEMENTS + k], ways[i].tolerance);
        check_parameters(&b, expected, ways[i].tolerance);
        stop(&b);
    }
    sgm_optimiser_free(optimiser);
}

TEST(steps_are_pytorchs)
{
    check(sgm_lbfgs(.history = 4), 0.5, 0, 12, torch_lbfgs);
    check(sgm_lbfgs(), 1, 0, 20, torch_lbfgs_all);
}

/* Of pairs of different minibatches some tell nothing. */
TEST(steps_on_other_data_each_time_are_pytorchs)
{
    check(sgm_lbfgs(.history = 3), 0.1, 2, 8, torch_lbfgs_moving);
}

TEST(a_gradient_below_the_tolerance_moves_nothing)
{
    check(sgm_lbfgs(.history = 4, .tolerance = 0.05), 0.5, 0, 12, torch_lbfgs_tolerance);
}

/* --- trainings --- */

static wave_trainer make(int64_t batch, sgm_dtype precision)
{
    return make_wave_trainer((wave_options){
        .handler = "cpu",
        .precision = precision,
        .optimiser = sgm_lbfgs(.learning_rate = 0.5, .history = 5, .clip_norm = 10, .weight_decay = 1e-5),
        .seed = 3,
        .batch = batch});
}

static void check_same(sgm_trainer *a, sgm_trainer *b, double tolerance)
{
    static const char *const states[] = {"1-dense.weights", "3-dense.biases",
                                         "optimiser.change_2.2-dense.weights"};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        sgm_tensor *one = sgm_trainer_get(a, states[i]), *other = sgm_trainer_get(b, states[i]);
        double x[48], y[48];
        size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(one));
        CHECK_OK(sgm_tensor_read(one, x, count));
        CHECK_OK(sgm_tensor_read(other, y, count));
        for (size_t k = 0; k < count; k++)
            CHECK_NEAR(x[k], y[k], tolerance);
        sgm_tensor_free(one);
        sgm_tensor_free(other);
    }
}

/* Of a problem with one valley the gradient is 0 at its bottom, where gradient descent takes a thousand
 * steps. */
TEST(the_bottom_of_a_valley_is_found)
{
    double values[18];
    wave_trainer made =
        make_wave_trainer((wave_options){.network = "input(6) + dense(3) + softmax_cross_entropy",
                                         .handler = "cpu",
                                         .precision = SGM_FLOAT64,
                                         .optimiser = sgm_lbfgs(.weight_decay = 1e-3),
                                         .batch = WAVE_EXAMPLES});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 40));
    sgm_tensor *gradient = sgm_trainer_get(made.trainer, "optimiser.gradient.1-dense.weights");
    CHECK_OK(sgm_tensor_read(gradient, values, 18));
    for (int i = 0; i < 18; i++)
        CHECK_NEAR(values[i], 0, 1e-5);
    sgm_tensor_free(gradient);
    free_wave_trainer(made);
}

TEST(a_run_goes_on_as_if_it_had_not_stopped)
{
    char path[128];
    snprintf(path, sizeof path, "/tmp/sigma-lbfgs-%d", (int)getpid());
    wave_trainer one = make(10, SGM_FLOAT64), first = make(10, SGM_FLOAT64), second = make(10, SGM_FLOAT64);
    CHECK_OK(sgm_trainer_run(one.trainer, .iterations = 14));
    CHECK_OK(sgm_trainer_run(first.trainer, .iterations = 6));
    CHECK_OK(sgm_trainer_save(first.trainer, path));
    CHECK_OK(sgm_trainer_load(second.trainer, path));
    unlink(path);
    CHECK_OK(sgm_trainer_run(second.trainer, .iterations = 14));
    check_same(one.trainer, second.trainer, 0);
    free_wave_trainer(one);
    free_wave_trainer(first);
    free_wave_trainer(second);
}

TEST(workers_whose_gradients_are_merged_take_the_same_steps)
{
    wave_trainer one = make(10, SGM_FLOAT64), parallel = make(10, SGM_FLOAT64);
    CHECK_OK(sgm_trainer_set_operator(parallel.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_OK(sgm_trainer_run(one.trainer, .iterations = 12));
    CHECK_OK(sgm_trainer_run(parallel.trainer, .iterations = 12));
    check_same(one.trainer, parallel.trainer, 1e-9);
    free_wave_trainer(one);
    free_wave_trainer(parallel);
}

static char warning[512];
static int warnings;

static void note_warning(void *user, sgm_log_level level, const char *source, const char *message)
{
    (void)user, (void)level, (void)source;
    snprintf(warning, sizeof warning, "%s", message);
    warnings++;
}

/* Forty examples. */
static void check_warnings(int64_t batch, sgm_optimiser *optimiser, const char *expected)
{
    wave_trainer made = make_wave_trainer((wave_options){.optimiser = optimiser, .batch = batch});
    warnings = 0;
    sgm_set_logger(note_warning, NULL, SGM_LOG_WARNING);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    CHECK_INT(warnings, expected != NULL);
    if (expected != NULL)
        CHECK(strstr(warning, expected) != NULL);
    free_wave_trainer(made);
}

TEST(minibatches_are_warned_of_once)
{
    check_warnings(10, sgm_lbfgs(.learning_rate = 0.1),
                   "an epoch has 4 updates; let a minibatch have all examples");
    check_warnings(10, sgm_lbfgs(.learning_rate = 0.1, .accumulate = 2), "an epoch has 2 updates");
    check_warnings(10, sgm_lbfgs(.learning_rate = 0.1, .accumulate = 4), NULL);
    check_warnings(40, sgm_lbfgs(.learning_rate = 0.1), NULL);
    check_warnings(10, sgm_adam(), NULL);
}

TEST(the_number_of_steps_remembered_may_change)
{
    wave_trainer made = make(10, SGM_FLOAT32);
    sgm_registry *registry = sgm_trainer_registry(made.trainer);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 8));
    CHECK_OK(sgm_registry_resolve_set(registry, "optimiser.history", sgm_integer_content(7), NULL, NULL));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 16));
    sgm_tensor *oldest = sgm_trainer_get(made.trainer, "optimiser.step_6.2-dense.weights");
    CHECK_OK(oldest);
    sgm_tensor_free(oldest);
    CHECK_ERROR(sgm_registry_resolve_set(registry, "optimiser.history", sgm_integer_content(101), NULL, NULL),
                "from 1 to 100");
    CHECK_ERROR(sgm_registry_resolve_set(registry, "optimiser.beta1", sgm_number_content(0.5), NULL, NULL),
                "tolerance, history");
    free_wave_trainer(made);
}

TEST(what_others_do_not_have_is_not_theirs)
{
    CHECK_ERROR(sgm_lbfgs(.history = 101), "history");
    sgm_optimiser *adam = sgm_adam();
    CHECK_ERROR(sgm__optimiser_check_used(adam, "history"), "has no history");
    CHECK_OK(sgm__optimiser_check_used(adam, "beta1"));
    const sgm_content half = sgm_number_content(0.5);
    CHECK_ERROR(sgm_optimiser_set(adam, "momentum", &half), "the optimiser adam has no momentum; it has");
    CHECK_ERROR(sgm_adam(.momentum = 0.5),
                "the optimiser adam has no momentum; it has learning_rate, beta1, beta2, epsilon, "
                "weight_decay, clip_value, clip_norm, average, accumulate");
    sgm_optimiser_free(adam);
}
