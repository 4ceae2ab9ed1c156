/* Each optimiser against its formula, written out for one number: cost (p - 3)^2 / 2, so that the gradient is
 * p - 3. */
#include "test.h"

#include "training/optimiser.h"
#include <sigma/sigma.h>

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
    sgm_shape scalar = sgm_shape_scalar();
    sgm_value p = sgm_state(graph, "p", SGM_FLOAT64, &scalar);
    sgm_value difference = sgm_subtract(graph, p, sgm_number(graph, 3));
    sgm_value cost = sgm_multiply(graph, sgm_square(graph, difference), sgm_number(graph, 0.5));
    sgm__trained_parameter parameter = {.name = "p", .value = p};
    CHECK_OK(sgm__optimiser_record(
        optimiser, graph,
        &(sgm__update_request){.cost = cost, .parameters = &parameter, .count = 1, .update = true}));
    double start = 10;
    sgm_tensor *value = sgm_tensor_from(SGM_FLOAT64, &scalar, &start),
               *zero = sgm_tensor_create(SGM_FLOAT64, &scalar);
    CHECK_OK(sgm_session_set(session, "p", value));
    CHECK_OK(sgm_session_set(session, "optimiser.momentum.p", zero));
    CHECK_OK(sgm_session_set(session, "optimiser.squared_gradient.p", zero));
    CHECK_OK(sgm_session_set(session, "optimiser.squared_update.p", zero));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    follower state = {.p = start};
    for (int t = 1; t <= STEPS; t++) {
        CHECK_OK(sgm_session_feed_number(session, program, "optimiser.learning_rate", rate));
        if (sgm_program_has_input(program, "optimiser.step"))
            CHECK_OK(sgm_session_feed_number(session, program, "optimiser.step", t));
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

TEST(bad_options_are_refused)
{
    CHECK_ERROR(sgm_optimiser_create(NULL, NULL), "expects a type");
    CHECK_ERROR(sgm_momentum(.momentum = 1.5),
                "optimiser momentum: momentum: expected a number from 0 to 0.9999999999, got 1.5");
    CHECK_ERROR(sgm_adam(.learning_rate = -1), "learning_rate: expected a number of at least 0, got -1");
    CHECK_ERROR(sgm_adam(.accumulate = -3),
                "accumulate: expected an integer from 1 to 1000000 minibatches, got -3");
    CHECK_ERROR(sgm_optimiser_create("adma", &(sgm_optimiser_options){0}), "did you mean 'adam'");
}
