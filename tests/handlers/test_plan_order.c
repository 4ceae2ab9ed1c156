/* Updates of large states come early: what they make is the same as in the order of recording, they come
 * after all that reads the old values, and gradients need less memory. */
#include "handlers/graphs.h"
#include "handlers/handler.h"

#include <math.h>

#define SIZE 512 /* states of SIZE * SIZE floats are large enough */
#define BATCH 6

static const char *const states[] = {"w", "v", "momentum_w", "momentum_v", "old"};
#define STATES ((int)(sizeof states / sizeof *states))

/* Two layers; the rate falls with a count that goes on. With `late` reads `old` becomes what w was, and an
 * output is made of v at the end. */
static sgm_graph *two_layers(bool late)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(BATCH, SIZE)), of[5], gradients[2];
    sgm_value count = sgm_state(graph, "count", SGM_FLOAT32, SCALAR);
    for (int i = 0; i < STATES; i++)
        of[i] = sgm_state(graph, states[i], SGM_FLOAT32, DIMS(SIZE, SIZE));
    sgm_value hidden = sgm_relu(graph, sgm_matmul(graph, x, of[0]));
    sgm_value cost = sgm_reduce_sum(graph, sgm_square(graph, sgm_matmul(graph, hidden, of[1])),
                                    (const int32_t[]){0, 1}, 2, false);
    sgm_graph_add_output(graph, "cost", cost);
    CHECK_OK(sgm_gradients(graph, cost, of, 2, gradients));
    sgm_value later = sgm_add(graph, count, sgm_number(graph, 1));
    sgm_value rate = sgm_divide(graph, sgm_number(graph, 1e-3), sgm_square_root(graph, later));
    for (int i = 0; i < 2; i++) {
        sgm_value momentum =
            sgm_add(graph, sgm_multiply(graph, of[2 + i], sgm_number(graph, 0.9)), gradients[i]);
        sgm_assign(graph, of[2 + i], momentum);
        sgm_assign(graph, of[i], sgm_subtract(graph, of[i], sgm_multiply(graph, momentum, rate)));
    }
    sgm_assign(graph, count, later);
    sgm_assign(graph, of[4], late ? of[0] : of[4]);
    if (late)
        sgm_graph_add_output(graph, "sum", sgm_reduce_sum(graph, of[1], (const int32_t[]){0, 1}, 2, false));
    CHECK_OK(sgm_graph_status(graph));
    return graph;
}

static sgm_tensor *waves(const sgm_shape *shape, double step)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, shape);
    CHECK_OK(tensor);
    float *values = sgm_tensor_data(tensor);
    for (int64_t i = 0; i < sgm_shape_elements(shape); i++)
        values[i] = (float)(sin((double)i * step) * 0.05);
    return tensor;
}

/* All states after three runs. */
static void train(const sgm_graph *graph, const char *handler_name, int threads, sgm_tensor **results)
{
    sgm_handler *handler = sgm_handler_create(handler_name, .threads = threads);
    sgm_session *session = sgm_session_create(handler);
    for (int i = 0; i < STATES; i++) {
        sgm_tensor *start = waves(DIMS(SIZE, SIZE), 0.7 + i);
        CHECK_OK(sgm_session_set(session, states[i], start));
        sgm_tensor_free(start);
    }
    set_state(session, "count", SGM_FLOAT32, SCALAR, NUMBERS(0));
    sgm_program *program = sgm_session_prepare(session, graph);
    sgm_tensor *x = waves(DIMS(BATCH, SIZE), 0.3);
    CHECK_OK(program);
    CHECK_OK(sgm_session_feed(session, program, "x", x));
    for (int run = 0; run < 3; run++)
        CHECK_OK(sgm_session_run(session, program));
    for (int i = 0; i < STATES; i++)
        CHECK_OK(results[i] = sgm_session_get(session, states[i]));
    sgm_tensor_free(x);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

static void check_values(bool late)
{
    sgm_graph *graph = two_layers(late);
    sgm_tensor *expected[STATES], *values[STATES];
    train(graph, "debug:cpu", 1, expected); /* in the order of recording */
    for (int threads = 1; threads <= 3; threads++) {
        train(graph, "cpu", threads, values);
        for (int i = 0; i < STATES; i++) {
            const float *a = sgm_tensor_const_data(expected[i]), *b = sgm_tensor_const_data(values[i]);
            double largest = 0;
            for (int64_t k = 0; k < (int64_t)SIZE * SIZE; k++)
                largest = fmax(largest, fabs((double)a[k] - (double)b[k]));
            CHECK_NEAR(largest, 0, 0);
            sgm_tensor_free(values[i]);
        }
    }
    for (int i = 0; i < STATES; i++)
        sgm_tensor_free(expected[i]);
    sgm_graph_free(graph);
}

TEST(the_same_values)
{
    check_values(false);
    check_values(true);
}

/* The step that writes a state; the last one that reads what it was, or a view of that. */
static void find_steps(const sgm__plan *plan, const char *name, int32_t *writer, int32_t *reader)
{
    *writer = *reader = -1;
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t i = 0; i < plan->steps[s].count; i++) {
            const sgm__node *node = &plan->nodes[plan->order[plan->steps[s].first + i]];
            if (node->place.store == SGM__STORE_STATE &&
                strcmp(sgm__plan_string(plan, plan->states[node->place.index].name), name) == 0)
                *writer = s;
            for (int32_t k = 0; k < node->input_count; k++) {
                const sgm__place *place = &plan->nodes[plan->operands[node->first_input + k]].place;
                if (place->store == SGM__STORE_STATE &&
                    strcmp(sgm__plan_string(plan, plan->states[place->index].name), name) == 0)
                    *reader = s;
            }
        }
}

static int64_t check_plan(bool late)
{
    sgm_graph *graph = two_layers(late);
    sgm_handler *handler = sgm_handler_create("cpu");
    sgm__plan *plan;
    CHECK_OK(sgm__plan_create(graph, handler, &plan));
    int32_t w, v, w_reader, v_reader;
    find_steps(plan, "w", &w, &w_reader);
    find_steps(plan, "v", &v, &v_reader);
    CHECK(w_reader <= w);
    CHECK(v_reader <= v);
    CHECK(late || v < w);
    int64_t bytes = plan->arena_bytes;
    sgm__plan_free(plan);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    return bytes;
}

/* Two gradients would be 2 MB. */
TEST(early_but_after_all_readers)
{
    CHECK(check_plan(false) < (int64_t)SIZE * SIZE * 4 * 2);
    check_plan(true);
}
