/* Each optimiser against its formula, written out for one number: cost (p - 3)^2 / 2, so that the gradient is
 * p - 3. */
#include "test.h"

#include "feed_update.h"

#define STEPS 5

typedef struct follower {
    double p, a, b; /* the parameter and two memories */
} follower;

/* Runs STEPS updates on the reference handler and compares with `update`, written in plain C. */
static void check_optimiser(sgm_optimiser *optimiser, void (*update)(follower *state, double g, int t),
                            double rate)
{
    CHECK_OK(optimiser);
    sgm_handler *handler = sgm_handler_create("reference");
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_shape scalar = sgm_scalar_shape();
    sgm_value p = sgm_state(graph, "p", SGM_FLOAT64, &scalar);
    sgm_value difference = sgm_subtract(graph, p, sgm_number(graph, 3));
    sgm_value cost = sgm_multiply(graph, sgm_square(graph, difference), sgm_number(graph, 0.5));
    sgm__trained_parameter parameter = {.name = "p", .value = p};
    CHECK_OK(sgm__optimiser_record(
        optimiser, graph,
        &(sgm__update_request){.cost = cost, .parameters = &parameter, .count = 1, .update = true}));
    double start = 10;
    sgm_tensor *value = sgm_tensor_create_from(SGM_FLOAT64, &scalar, &start),
               *zero = sgm_tensor_create(SGM_FLOAT64, &scalar);
    CHECK_OK(sgm_session_set(session, "p", value));
    CHECK_OK(sgm_session_set(session, "optimiser.momentum.p", zero));
    CHECK_OK(sgm_session_set(session, "optimiser.squared_gradient.p", zero));
    CHECK_OK(sgm_session_set(session, "optimiser.squared_update.p", zero));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    follower state = {.p = start};
    for (int t = 1; t <= STEPS; t++) {
        feed_update(optimiser, session, program, rate, t);
        CHECK_OK(sgm_session_run(session, program));
        update(&state, state.p - 3, t);
        sgm_tensor *now = sgm_session_get(session, "p");
        CHECK_NEAR(sgm_tensor_get(now, NULL), state.p, 1e-13);
        sgm_tensor_free(now);
    }
    sgm_tensor_free(value);
    sgm_tensor_free(zero);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_optimiser_free(optimiser);
}

static void plain(follower *state, double g, int t)
{
    (void)t;
    state->p -= 0.1 * g;
}

static void with_momentum(follower *state, double g, int t)
{
    (void)t;
    state->a = 0.8 * state->a + g;
    state->p -= 0.1 * state->a;
}

static void with_nesterov(follower *state, double g, int t)
{
    (void)t;
    state->a = 0.8 * state->a + g;
    state->p -= 0.1 * (g + 0.8 * state->a);
}

static void with_adagrad(follower *state, double g, int t)
{
    (void)t;
    state->a += g * g;
    state->p -= 0.1 * g / sqrt(state->a + 1e-6);
}

static void with_adadelta(follower *state, double g, int t)
{
    (void)t;
    state->a = 0.9 * state->a + 0.1 * g * g;
    double update = g * sqrt(state->b + 1e-6) / sqrt(state->a + 1e-6);
    state->b = 0.9 * state->b + 0.1 * update * update;
    state->p -= 0.1 * update;
}

static void with_rmsprop(follower *state, double g, int t)
{
    (void)t;
    state->a = 0.99 * state->a + 0.01 * g * g;
    state->p -= 0.1 * g / (sqrt(state->a) + 1e-8);
}

static void with_adam(follower *state, double g, int t)
{
    state->a = 0.9 * state->a + 0.1 * g;
    state->b = 0.999 * state->b + 0.001 * g * g;
    double mean = state->a / (1 - pow(0.9, t)), square = state->b / (1 - pow(0.999, t));
    state->p -= 0.1 * mean / (sqrt(square) + 1e-8);
}

static void with_adamw(follower *state, double g, int t)
{
    state->p -= 0.1 * 0.02 * state->p;
    with_adam(state, g, t);
}

static void with_default_decay(follower *state, double g, int t)
{
    state->p -= 0.1 * 0.01 * state->p;
    with_adam(state, g, t);
}

static void with_decay_and_clipping(follower *state, double g, int t)
{
    (void)t;
    g = g > 2 ? 2 : g < -2 ? -2 : g;
    state->p -= 0.1 * (g + 0.05 * state->p);
}

static void with_norm(follower *state, double g, int t)
{
    (void)t;
    double norm = fabs(g);
    state->p -= 0.1 * (norm > 1.5 ? g / norm * 1.5 : g);
}

TEST(gradient_descent)
{
    check_optimiser(sgm_gradient_descent(.learning_rate = 0.1), plain, 0.1);
}

TEST(momentum)
{
    check_optimiser(sgm_momentum(.momentum = 0.8), with_momentum, 0.1);
}

TEST(nesterov)
{
    check_optimiser(sgm_nesterov(.momentum = 0.8), with_nesterov, 0.1);
}

TEST(adagrad)
{
    check_optimiser(sgm_adagrad(), with_adagrad, 0.1);
}

TEST(adadelta)
{
    check_optimiser(sgm_adadelta(), with_adadelta, 0.1);
}

TEST(rmsprop)
{
    check_optimiser(sgm_rmsprop(), with_rmsprop, 0.1);
}

TEST(adam)
{
    check_optimiser(sgm_adam(), with_adam, 0.1);
}

TEST(adamw)
{
    check_optimiser(sgm_adamw(.weight_decay = 0.02), with_adamw, 0.1);
    check_optimiser(sgm_adamw(), with_default_decay, 0.1);
}

TEST(weight_decay_and_clipping_by_value)
{
    check_optimiser(sgm_gradient_descent(.weight_decay = 0.05, .clip_value = 2), with_decay_and_clipping,
                    0.1);
}

TEST(clipping_by_norm)
{
    check_optimiser(sgm_gradient_descent(.clip_norm = 1.5), with_norm, 0.1);
}

/* --- bias corrections in float32 --- */

/* The change of a parameter by update number t with empty memories and a learning rate of 1. */
static double change_of(const sgm_optimiser *optimiser, const char *handler_name, int64_t t, double gradient)
{
    sgm_handler *handler = sgm_handler_create_with(handler_name, NULL);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_shape scalar = sgm_scalar_shape();
    sgm_value p = sgm_state(graph, "p", SGM_FLOAT32, &scalar);
    sgm_value g = sgm_input_value(graph, "g", SGM_FLOAT32, &scalar);
    sgm__trained_parameter parameter = {.name = "p", .value = p};
    CHECK_OK(sgm__optimiser_record(
        optimiser, graph,
        &(sgm__update_request){.gradients = &g, .parameters = &parameter, .count = 1, .update = true}));
    sgm_tensor *zero = sgm_tensor_create(SGM_FLOAT32, &scalar);
    CHECK_OK(sgm_session_set(session, "p", zero));
    CHECK_OK(sgm_session_set(session, "optimiser.momentum.p", zero));
    CHECK_OK(sgm_session_set(session, "optimiser.squared_gradient.p", zero));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    CHECK_OK(sgm_session_feed_number(session, program, "g", gradient));
    feed_update(optimiser, session, program, 1, t);
    CHECK_OK(sgm_session_run(session, program));
    sgm_tensor *now = sgm_session_get(session, "p");
    double value = sgm_tensor_get(now, NULL);
    sgm_tensor_free(now);
    sgm_tensor_free(zero);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
    return value;
}

static void check_corrections(sgm_optimiser *optimiser)
{
    static const int64_t numbers[] = {1, 2, 3, 10, 1000, 100000, 20000000};
    const sgm_optimiser_options *options = &optimiser->options;
    CHECK_OK(optimiser);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double t = (double)numbers[i], g = 0.75;
        double mean = (1 - options->beta1) * g / (1 - pow(options->beta1, t));
        double squares = (1 - options->beta2) * g * g / (1 - pow(options->beta2, t));
        double expected = -mean / (sqrt(squares) + options->epsilon);
        static const char *const handlers[] = {"reference", "cpu"};
        for (int k = 0; k < 2; k++)
            CHECK_NEAR(change_of(optimiser, handlers[k], numbers[i], g) / expected, 1, 4e-7);
    }
    sgm_optimiser_free(optimiser);
}

TEST(bias_corrections_are_as_exact_as_float32)
{
    check_corrections(sgm_adam());
    check_corrections(sgm_adamw());
    check_corrections(sgm_adam(.beta2 = 0.999999));
    check_corrections(sgm_adam(.beta1 = 0.9999, .beta2 = 0.9999999));
    check_corrections(sgm_muon()); /* which leaves what is no matrix to adamw */
}

TEST(no_options_are_the_defaults)
{
    check_optimiser(sgm_optimiser_create("gradient_descent", NULL), plain, 0.1);
    sgm_optimiser *adam = sgm_optimiser_create("adam", NULL);
    CHECK_OK(adam);
    CHECK_NEAR(adam->options.learning_rate, 0.001, 0);
    CHECK_NEAR(adam->options.beta2, 0.999, 0);
    CHECK_INT(adam->options.accumulate, 1);
    sgm_optimiser_free(adam);
}

TEST(default_learning_rates)
{
    static const struct {
        const char *type;
        double rate;
    } expected[] = {{"gradient_descent", 0.01},
                    {"momentum", 0.01},
                    {"nesterov", 0.01},
                    {"adagrad", 0.01},
                    {"adadelta", 1},
                    {"rmsprop", 0.001},
                    {"adam", 0.001},
                    {"adamw", 0.001},
                    {"lion", 0.0001},
                    {"lamb", 0.001},
                    {"adafactor", 0.01},
                    {"muon", 0.001},
                    {"lbfgs", 1}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        sgm_optimiser *optimiser = sgm_optimiser_create(expected[i].type, NULL);
        CHECK_OK(optimiser);
        CHECK_NEAR(optimiser->options.learning_rate, expected[i].rate, 0);
        CHECK_STR(sgm_optimiser_type_at(i)->name, expected[i].type);
        sgm_optimiser_free(optimiser);
    }
}

TEST(bad_options_are_refused)
{
    CHECK_ERROR(sgm_optimiser_create(NULL, NULL), "expects a type");
    CHECK_ERROR(sgm_momentum(.momentum = 1.5),
                "optimiser momentum: momentum: expected a number from 0 to 0.9999999999, got 1.5");
    CHECK_ERROR(sgm_adam(.learning_rate = -1), "learning_rate: expected a number of at least 0, got -1");
    CHECK_ERROR(sgm_adam(.accumulate = -3),
                "accumulate: expected an integer from 1 to 1000000 minibatches, got -3");
    CHECK_ERROR(sgm_optimiser_create("adma", &(sgm_optimiser_options){.struct_size = 0}),
                "did you mean 'adam'");
}
