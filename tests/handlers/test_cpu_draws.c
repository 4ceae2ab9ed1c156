/* Random numbers that elementwise steps draw for themselves: the same as the reference handler's, wherever a
 * tile begins, for any number of threads, with machine code and without. */
#include "handlers/comparison.h"

#define WAYS 5

/* Each way of computing them. */
static sgm_handler *handler_of(int way)
{
    static const sgm_handler_options options[WAYS] = {
        {.struct_size = sizeof(sgm_handler_options), .threads = 1},
        {.struct_size = sizeof(sgm_handler_options), .threads = 2},
        {.struct_size = sizeof(sgm_handler_options), .threads = 5},
        {.struct_size = sizeof(sgm_handler_options), .threads = 3, .no_machine_code = true},
        {.struct_size = sizeof(sgm_handler_options), .threads = 2, .instructions = "portable"}};
    sgm_handler *handler = sgm_handler_create_with("cpu", &options[way]);
    CHECK_OK(handler);
    ((sgm__cpu *)handler->self)->shares_all = true;
    return handler;
}

typedef struct random_states {
    sgm_value seed, step;
} random_states;

static random_states states_of(sgm_graph *graph)
{
    return (random_states){sgm_state(graph, "seed", SGM_INT64, SCALAR),
                           sgm_state(graph, "step", SGM_INT64, SCALAR)};
}

static sgm_value draw(sgm_graph *graph, random_states s, int64_t stream, sgm_dtype dtype,
                      const sgm_shape *shape)
{
    return sgm_random_uniform(graph, s.seed, s.step, stream, dtype, shape);
}

#define READ_MAXIMUM 3

/* Runs twice; the results of the second run, and with `plan` the program's text. Frees the handler. */
static void run_twice(sgm_handler *handler, const sgm_graph *graph, const input *inputs, int count,
                      const char *const *outputs, sgm_tensor **results, int output_count, char **plan)
{
    static const char *const names[] = {"0", "1", "2"};
    sgm_session *session = sgm_session_create(handler);
    set_state(session, "seed", SGM_INT64, SCALAR, NUMBERS(77));
    set_state(session, "step", SGM_INT64, SCALAR, NUMBERS(5));
    sgm_tensor *kept = sgm_tensor_create(SGM_FLOAT32, DIMS(40, 64));
    CHECK_OK(sgm_session_set(session, "kept", kept));
    sgm_tensor_free(kept);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    sgm__random random = sgm__random_make(9, 1);
    for (int i = 0; i < count; i++) {
        sgm_tensor *tensor = random_input(&inputs[i], &random);
        if (sgm_program_has_input(program, names[i]))
            CHECK_OK(sgm_session_feed(session, program, names[i], tensor));
        sgm_tensor_free(tensor);
    }
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_run(session, program));
    for (int i = 0; i < output_count; i++) {
        sgm_type type = sgm_program_output_type(program, outputs[i]);
        results[i] = sgm_tensor_create(type.dtype, &type.shape);
        CHECK_OK(sgm_session_read(session, program, outputs[i], results[i]));
    }
    if (plan != NULL)
        *plan = sgm_program_text(program);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

static sgm_tensor *result_of(sgm_handler *handler, const sgm_graph *graph, const input *inputs, int count,
                             const char *output, char **plan)
{
    sgm_tensor *result = NULL;
    run_twice(handler, graph, inputs, count, &output, &result, 1, plan);
    return result;
}

static void check_outputs(const sgm_graph *graph, const input *inputs, int count, const char *const *outputs,
                          int output_count)
{
    sgm_tensor *expected[READ_MAXIMUM], *got[READ_MAXIMUM];
    CHECK_OK(sgm_graph_status(graph));
    run_twice(sgm_handler_create("reference"), graph, inputs, count, outputs, expected, output_count, NULL);
    for (int way = 0; way < WAYS; way++) {
        run_twice(handler_of(way), graph, inputs, count, outputs, got, output_count, NULL);
        for (int i = 0; i < output_count; i++) {
            if (!same_bits(got[i], expected[i]))
                TEST_FAIL("'%s' of way %d differs from the reference", outputs[i], way);
            sgm_tensor_free(got[i]);
        }
    }
    for (int i = 0; i < output_count; i++)
        sgm_tensor_free(expected[i]);
}

static void check_all(const sgm_graph *graph, const input *inputs, int count, const char *output)
{
    check_outputs(graph, inputs, count, &output, 1);
}

/* relu(x + bias), then dropout; the numbers, the mask, or both are wanted outside, too. */
static sgm_graph *dropout(const sgm_shape *shape, bool mask, bool numbers, bool steps)
{
    sgm_graph *g = sgm_graph_create();
    sgm_shape row = {.rank = 1, .dims = {shape->dims[shape->rank - 1]}};
    random_states s = states_of(g);
    sgm_value x = sgm_input_value(g, "0", SGM_FLOAT32, shape),
              bias = sgm_input_value(g, "1", SGM_FLOAT32, &row);
    sgm_value y = sgm_maximum(g, sgm_add(g, x, bias), sgm_number(g, 0));
    sgm_value random = draw(g, s, 3, SGM_FLOAT32, shape),
              kept = sgm_greater_equal(g, random, sgm_number(g, 0.25));
    y = sgm_select(g, kept, sgm_multiply(g, y, sgm_number(g, 2)), sgm_filled_like(g, y, 0));
    sgm_graph_add_output(g, "y", y);
    if (mask)
        sgm_graph_add_output(g, "mask", kept);
    if (numbers)
        sgm_graph_add_output(g, "numbers", random);
    if (steps)
        sgm_assign(g, s.step, sgm_add(g, s.step, sgm_number(g, 1)));
    return g;
}

TEST(masks_are_the_references_for_all_shapes)
{
    static const sgm_shape shapes[] = {TEST_SHAPE(3),       TEST_SHAPE(4099),     TEST_SHAPE(20000),
                                       TEST_SHAPE(7, 3),    TEST_SHAPE(30, 33),   TEST_SHAPE(100, 7),
                                       TEST_SHAPE(9, 128),  TEST_SHAPE(70, 1000), TEST_SHAPE(3, 5003),
                                       TEST_SHAPE(5, 6, 35)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        sgm_shape row = {.rank = 1, .dims = {shapes[i].dims[shapes[i].rank - 1]}};
        input inputs[] = {{SGM_FLOAT32, shapes[i], -2, 2}, {SGM_FLOAT32, row, -1, 1}};
        for (int outside = 0; outside < 8; outside++) {
            sgm_graph *g = dropout(&shapes[i], (outside & 1) != 0, (outside & 2) != 0, (outside & 4) != 0);
            const char *outputs[READ_MAXIMUM] = {"y"};
            int output_count = 1;
            if ((outside & 1) != 0)
                outputs[output_count++] = "mask";
            if ((outside & 2) != 0)
                outputs[output_count++] = "numbers";
            check_outputs(g, inputs, 2, outputs, output_count);
            sgm_graph_free(g);
        }
    }
}

/* Elements lie elsewhere than the numbers: transposed, and every other one. */
TEST(numbers_follow_the_results_order)
{
    sgm_graph *g = sgm_graph_create();
    random_states s = states_of(g);
    sgm_value x = sgm_input_value(g, "0", SGM_FLOAT32, DIMS(60, 50)),
              y = sgm_permute(g, x, (const int32_t[]){1, 0});
    sgm_value z = sgm_slice(g, sgm_input_value(g, "1", SGM_FLOAT32, DIMS(50, 120)), 1, 0, 120, 2);
    sgm_graph_add_output(g, "y", sgm_add(g, sgm_multiply(g, y, draw(g, s, 0, SGM_FLOAT32, DIMS(50, 60))), z));
    check_all(g, (input[]){F32(60, 50), F32(50, 120)}, 2, "y");
    sgm_graph_free(g);
}

TEST(numbers_of_double_precision)
{
    sgm_graph *g = sgm_graph_create();
    random_states s = states_of(g);
    sgm_value x = sgm_input_value(g, "0", SGM_FLOAT64, DIMS(21, 31)),
              r = draw(g, s, 1, SGM_FLOAT64, DIMS(21, 31));
    sgm_value more = draw(g, s, 2, SGM_FLOAT64, DIMS(21, 31));
    sgm_graph_add_output(g, "y", sgm_add(g, sgm_multiply(g, x, r), more));
    check_all(g, (input[]){{SGM_FLOAT64, TEST_SHAPE(21, 31), -2, 2}}, 1, "y");
    sgm_graph_free(g);
}

/* Nothing elementwise reads them; they are parts of something; they become a state; there is but one, whose
 * seed is made of numbers in steps of the same shape. */
TEST(numbers_that_go_elsewhere)
{
    for (int kind = 0; kind < 5; kind++) {
        sgm_graph *g = sgm_graph_create();
        random_states s = states_of(g);
        sgm_value r = draw(g, s, 0, SGM_FLOAT32, DIMS(40, 64)),
                  x = sgm_input_value(g, "0", SGM_FLOAT32, DIMS(40, 64));
        sgm_value y = r;
        if (kind == 1) {
            y = sgm_concatenate(g, (sgm_value[]){x, r, sgm_negate(g, r)}, 3, 1);
        } else if (kind == 2) {
            y = sgm_concatenate(g, (sgm_value[]){x, r, sgm_negate(g, r)}, 3, 0);
        } else if (kind == 3) {
            sgm_value kept = sgm_state(g, "kept", SGM_FLOAT32, DIMS(40, 64));
            y = sgm_subtract(g, x, kept);
            sgm_assign(g, kept, r);
        } else if (kind == 4) {
            s.step = sgm_add(g, s.step, sgm_add(g, s.step, s.seed));
            y = sgm_multiply(g, draw(g, s, 9, SGM_FLOAT32, SCALAR), sgm_cast(g, s.step, SGM_FLOAT32));
        }
        sgm_graph_add_output(g, "y", y);
        check_all(g, (input[]){F32(40, 64)}, 1, "y");
        sgm_graph_free(g);
    }
}

/* A product's blocks, whose rows begin anywhere. */
TEST(products_run_with_dropout)
{
    sgm_graph *g = sgm_graph_create();
    random_states s = states_of(g);
    sgm_shape shape = TEST_SHAPE(301, 1003);
    sgm_value x = sgm_input_value(g, "0", SGM_FLOAT32, DIMS(301, 24)),
              w = sgm_input_value(g, "1", SGM_FLOAT32, DIMS(24, 1003));
    sgm_value y = sgm_add(g, sgm_matmul(g, x, w), sgm_input_value(g, "2", SGM_FLOAT32, DIMS(1003)));
    sgm_value kept = sgm_greater_equal(g, draw(g, s, 2, SGM_FLOAT32, &shape), sgm_number(g, 0.5));
    sgm_graph_add_output(g, "mask", kept);
    sgm_graph_add_output(g, "y", sgm_select(g, kept, y, sgm_filled_like(g, y, 0)));
    input inputs[] = {F32(301, 24), F32(24, 1003), F32(1003)};
    check_all(g, inputs, 3, "mask");
    sgm_tensor *expected = result_of(sgm_handler_create("reference"), g, inputs, 3, "y", NULL), *first = NULL;
    for (int way = 0; way < WAYS; way++) {
        sgm_tensor *got = result_of(handler_of(way), g, inputs, 3, "y", NULL);
        check_near(got, expected, 1e-5, "dropout of a product");
        if (way > 0 && way < 4)
            CHECK(same_bits(got, first));
        if (way > 0)
            sgm_tensor_free(got);
        else
            first = got;
    }
    sgm_tensor_free(first);
    sgm_tensor_free(expected);
    sgm_graph_free(g);
}

TEST(numbers_never_reach_memory)
{
    char *plan = NULL;
    sgm_graph *g = dropout(DIMS(30, 64), true, false, true);
    sgm_tensor_free(result_of(handler_of(0), g, (input[]){F32(30, 64), F32(64)}, 2, "y", &plan));
    const char *line = strstr(plan, "random_uniform");
    CHECK(line != NULL);
    CHECK(strncmp(strchr(line, ')') + 2, "in passing", 10) == 0);
    CHECK(strstr(plan, "step 0 elementwise") != NULL);
    sgm_string_free(plan);
    sgm_graph_free(g);
}
