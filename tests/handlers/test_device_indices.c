/* Indices on devices: those out of range are told of and harm nothing; sums by index are in order. */
#include "each_device.h"

#include <sigma/graph.h>

static void run_with_index(sgm_handler *handler, double index, char *message, size_t size)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value table = sgm_input_value(graph, "table", SGM_FLOAT32, DIMS(3, 2));
    sgm_value indices = sgm_input_value(graph, "indices", SGM_INT32, DIMS(2));
    sgm_value y = sgm_gather(graph, table, indices, 0);
    sgm_graph_add_output(graph, "y", sgm_multiply(graph, y, sgm_number(graph, 2)));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "table", SGM_FLOAT32, DIMS(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(2, index));
    sgm_tensor *read = sgm_tensor_create(SGM_FLOAT32, &(sgm_shape){.rank = 2, .dims = {2, 2}});
    message[0] = '\0';
    if (sgm_session_run(session, program) != SGM_OK ||
        sgm_session_read(session, program, "y", read) != SGM_OK)
        snprintf(message, size, "%s", sgm_last_error());
    sgm_tensor_free(read);
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(1, 0));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "y", NUMBERS(6, 8, 2, 4), 0);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

static void check_faults(sgm_handler *handler)
{
    static const double indices[] = {3, -1, 2147483647, 0};
    char expected[512], message[512];
    sgm_handler *cpu = sgm_handler_create("cpu");
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
        run_with_index(cpu, indices[i], expected, sizeof expected);
        run_with_index(handler, indices[i], message, sizeof message);
        CHECK_STR(message, expected);
    }
    sgm_handler_free(cpu);
}

TEST(indices_out_of_range_are_told_as_by_the_cpu)
{
    with_devices(check_faults);
}

/* --- which one is told --- */

#define INDICES 30000

/* A graph of "x" and "at", int64; its output "y". */
typedef struct mistake {
    sgm_shape x, at;
    sgm_value (*build)(sgm_graph *graph, sgm_value x, sgm_value at);
    int64_t first; /* of the indices: those before are 0 */
} mistake;

static sgm_value gather_rows(sgm_graph *graph, sgm_value x, sgm_value at)
{
    return sgm_gather(graph, x, at, 0);
}

static sgm_value gather_columns(sgm_graph *graph, sgm_value x, sgm_value at)
{
    return sgm_gather(graph, x, at, 1);
}

static sgm_value scatter_to_none(sgm_graph *graph, sgm_value x, sgm_value at)
{
    return sgm_scatter_add(graph, x, at, 0, 0);
}

static sgm_value scatter_to_three(sgm_graph *graph, sgm_value x, sgm_value at)
{
    return sgm_scatter_add(graph, x, at, 0, 3);
}

static sgm_value one_hot_of_three(sgm_graph *graph, sgm_value x, sgm_value at)
{
    (void)x;
    return sgm_one_hot_classes(graph, at, 3, SGM_FLOAT32);
}

/* The second step meets a wrong one at its beginning, but does so after the first. */
static sgm_value gather_twice(sgm_graph *graph, sgm_value x, sgm_value at)
{
    sgm_value once = sgm_gather(graph, x, at, 0);
    return sgm_gather(graph, once, sgm_subtract(graph, at, sgm_number(graph, 7)), 0);
}

static sgm_status infer_nothing(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                sgm_type *result)
{
    (void)count, (void)attributes;
    *result = (sgm_type){.dtype = inputs[0].dtype, .shape = {.rank = 1, .dims = {0}}};
    return SGM_OK;
}

static sgm_status want_zeros(const sgm_kernel_call *call)
{
    const sgm_array *at = &call->inputs[0];
    for (int64_t i = 0; i < sgm_shape_elements(&at->shape); i++)
        if (sgm_array_load(at, i) != 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "element %lld is %g", (long long)i, sgm_array_load(at, i));
    return SGM_OK;
}

static const sgm_op own_check = {.api = SGM_OP_API,
                                 .name = "test_zeros",
                                 .doc = "of a test",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .infer = infer_nothing,
                                 .forward = want_zeros};

static sgm_value check_zeros(sgm_graph *graph, sgm_value x, sgm_value at)
{
    (void)x;
    return sgm_record(graph, &own_check, &at, 1, NULL);
}

/* Each wrong index is another number, beyond 32 bits, so that it tells where it was. */
static void tell_mistake(sgm_handler *handler, const mistake *m, char *message, size_t size)
{
    int64_t count = sgm_shape_elements(&m->at);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &m->x);
    sgm_value at = sgm_input_value(graph, "at", SGM_INT64, &m->at);
    sgm_graph_add_output(graph, "y", m->build(graph, x, at));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    double *numbers = calloc((size_t)(sgm_shape_elements(&m->x) + 1), sizeof *numbers);
    double *indices = calloc((size_t)count, sizeof *indices);
    for (int64_t i = m->first; i < count; i++)
        indices[i] = i % 3 == m->first % 3 ? 0x1p33 + (double)i : -0x1p33 - (double)i;
    if (sgm_program_has_input(program, "x"))
        feed(session, program, "x", SGM_FLOAT32, &m->x, numbers);
    feed(session, program, "at", SGM_INT64, &m->at, indices);
    sgm_type type = sgm_program_output_type(program, "y");
    sgm_tensor *read = sgm_tensor_create(type.dtype, &type.shape);
    message[0] = '\0';
    if (sgm_session_run(session, program) != SGM_OK ||
        sgm_session_read(session, program, "y", read) != SGM_OK)
        snprintf(message, size, "%s", sgm_last_error());
    sgm_tensor_free(read);
    sgm_graph_free(graph);
    sgm_session_free(session);
    free(numbers);
    free(indices);
}

static void check_mistakes(sgm_handler *handler, const mistake *mistakes, size_t count)
{
    static const char *const others[] = {"reference", "cpu"};
    char expected[512], message[512], number[32];
    for (size_t i = 0; i < count; i++) {
        tell_mistake(handler, &mistakes[i], message, sizeof message);
        for (size_t k = 0; k < 2; k++) {
            sgm_handler *other = sgm_handler_create_with(others[k], NULL);
            tell_mistake(other, &mistakes[i], expected, sizeof expected);
            CHECK_STR(message, expected);
            sgm_handler_free(other);
        }
        snprintf(number, sizeof number, " %lld ", (1LL << 33) + (long long)mistakes[i].first);
        if (strstr(message, number) == NULL)
            TEST_FAIL("%zu: '%s' has no%s", i, message, number);
    }
}

static void check_without_results(sgm_handler *handler)
{
    const mistake mistakes[] = {
        {{.rank = 2, .dims = {4, 2}}, {.rank = 1, .dims = {4}}, scatter_to_none, 0},
        {{.rank = 2, .dims = {4, 0}}, {.rank = 1, .dims = {4}}, scatter_to_three, 1},
        {{.rank = 2, .dims = {0, 2}}, {.rank = 1, .dims = {4}}, gather_rows, 0},
        {{.rank = 2, .dims = {0, 2}}, {.rank = 2, .dims = {2, 2}}, gather_columns, 3},
        {{.rank = 2, .dims = {3, 0}}, {.rank = 0}, gather_rows, 0},
        {{.rank = 2, .dims = {0, 0}}, {.rank = 1, .dims = {1}}, gather_columns, 0},
    };
    check_mistakes(handler, mistakes, sizeof mistakes / sizeof *mistakes);
}

TEST(indices_are_looked_at_even_if_the_result_is_empty)
{
    with_devices(check_without_results);
}

static void check_own_without_results(sgm_handler *handler)
{
    char message[512];
    tell_mistake(handler, &(mistake){{.rank = 0}, {.rank = 1, .dims = {4}}, check_zeros, 2}, message,
                 sizeof message);
    CHECK(strstr(message, "element 2 is 8.58993e+09") != NULL);
}

TEST(own_operations_are_run_even_if_the_result_is_empty)
{
    CHECK_OK(sgm_register_op(&own_check));
    with_devices(check_own_without_results);
}

static void check_first_ones(sgm_handler *handler)
{
    const mistake mistakes[] = {
        {{.rank = 2, .dims = {3, 2}}, {.rank = 1, .dims = {INDICES}}, gather_rows, 0},
        {{.rank = 2, .dims = {3, 2}}, {.rank = 1, .dims = {INDICES}}, gather_rows, INDICES / 2},
        {{.rank = 3, .dims = {4, 3, 2}}, {.rank = 2, .dims = {100, INDICES / 100}}, gather_columns, 317},
        {{.rank = 2, .dims = {INDICES, 2}}, {.rank = 1, .dims = {INDICES}}, scatter_to_three, 12345},
        {{.rank = 0}, {.rank = 3, .dims = {3, 100, INDICES / 300}}, one_hot_of_three, 12345},
        {{.rank = 2, .dims = {3, 2}}, {.rank = 1, .dims = {INDICES}}, gather_twice, 21000},
    };
    check_mistakes(handler, mistakes, sizeof mistakes / sizeof *mistakes);
}

TEST(the_first_of_many_wrong_indices_is_told)
{
    with_devices(check_first_ones);
}

/* Each state is written in another way: by a chain, by a gather, a one-hot and a scatter that end in it. */
static sgm_program *index_program(sgm_session *session, sgm_graph *graph)
{
    sgm_value table = sgm_input_value(graph, "table", SGM_FLOAT32, DIMS(3, 2));
    sgm_value indices = sgm_input_value(graph, "indices", SGM_INT32, DIMS(2));
    sgm_value taken = sgm_gather(graph, table, indices, 0);
    sgm_value chain = sgm_state(graph, "chain", SGM_FLOAT32, DIMS(2, 2));
    sgm_assign(graph, chain, sgm_add(graph, chain, taken));
    sgm_assign(graph, sgm_state(graph, "gathered", SGM_FLOAT32, DIMS(2, 2)), taken);
    sgm_assign(graph, sgm_state(graph, "one_hot", SGM_FLOAT32, DIMS(2, 3)),
               sgm_one_hot_values(graph, indices, 3, SGM_FLOAT32));
    sgm_assign(graph, sgm_state(graph, "scattered", SGM_FLOAT32, DIMS(3, 2)),
               sgm_scatter_add(graph, taken, indices, 0, 3));
    return sgm_session_prepare(session, graph);
}

static void check_state(sgm_session *session, const char *name, const double *expected)
{
    sgm_tensor *value = sgm_session_get(session, name);
    CHECK_OK(value);
    for (int64_t i = 0; i < sgm_shape_elements(sgm_tensor_shape(value)); i++)
        CHECK_NEAR(((const float *)sgm_tensor_const_data(value))[i], expected[i], 0);
    sgm_tensor_free(value);
}

static void check_states(sgm_session *session, const double *chain, const double *gathered,
                         const double *one_hot, const double *scattered)
{
    check_state(session, "chain", chain);
    check_state(session, "gathered", gathered);
    check_state(session, "one_hot", one_hot);
    check_state(session, "scattered", scattered);
}

static void check_unharmed(sgm_handler *handler)
{
    static const char out_of_range[] = "index 3 is out of range: axis 0 has 3 entries";
    double sum;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create(), *other = sgm_graph_create();
    set_state(session, "chain", SGM_FLOAT32, DIMS(2, 2), NUMBERS(1, 2, 3, 4));
    set_state(session, "gathered", SGM_FLOAT32, DIMS(2, 2), NUMBERS(5, 6, 7, 8));
    set_state(session, "one_hot", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    set_state(session, "scattered", SGM_FLOAT32, DIMS(3, 2), NUMBERS(6, 5, 4, 3, 2, 1));
    sgm_program *program = index_program(session, graph);
    CHECK_OK(program);
    sgm_graph_add_output(
        other, "sum",
        sgm_reduce_sum(other, sgm_state(other, "chain", SGM_FLOAT32, DIMS(2, 2)), NULL, 0, false));
    sgm_program *reader = sgm_session_prepare(session, other);
    CHECK_OK(reader);
    feed(session, program, "table", SGM_FLOAT32, DIMS(3, 2), NUMBERS(10, 20, 30, 40, 50, 60));
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(1, 3));
    CHECK_OK(sgm_session_run(session, program));
    /* Nobody has looked yet: the next run writes nothing either. */
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(1, 2));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_ERROR(sgm_session_get(session, "chain"), out_of_range);
    check_states(session, NUMBERS(1, 2, 3, 4), NUMBERS(5, 6, 7, 8), NUMBERS(1, 2, 3, 4, 5, 6),
                 NUMBERS(6, 5, 4, 3, 2, 1));
    CHECK_OK(sgm_session_run(session, program)); /* and all goes on */
    check_states(session, NUMBERS(31, 42, 53, 64), NUMBERS(30, 40, 50, 60), NUMBERS(0, 1, 0, 0, 0, 1),
                 NUMBERS(0, 0, 30, 40, 50, 60));
    /* Another program does not compute with states of a run that went wrong. */
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(3, 0));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_ERROR(sgm_session_run(session, reader), out_of_range);
    CHECK_OK(sgm_session_run(session, reader));
    CHECK_OK(sgm_session_read_number(session, reader, "sum", &sum));
    CHECK_NEAR(sum, 31 + 42 + 53 + 64, 0);
    /* Who never reads is told, too. */
    CHECK_OK(sgm_session_run(session, program));
    sgm_status status = SGM_OK;
    for (int i = 0; i < 16 && status == SGM_OK; i++)
        status = sgm_session_run(session, program);
    CHECK_INT(status, SGM_ERROR_ARGUMENT);
    sgm_graph_free(graph);
    sgm_graph_free(other);
    sgm_session_free(session);
}

TEST(indices_out_of_range_harm_no_state)
{
    with_devices(check_unharmed);
}

/* --- sums of rows by many indices: in order, so that the same bits come each time --- */

#define MANY 20000
#define ROWS 3001

/* Half of the indices are the same one, as those of padding are. */
static int64_t row_of(int64_t i)
{
    return i % 2 == 0 ? 7 : i * 7919 % ROWS;
}

static float value_of(int64_t i)
{
    return (float)(i * 31 % 1009) * 1.37f - 500;
}

static void check_rows(sgm_handler *handler)
{
    static float expected[ROWS];
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(MANY));
    sgm_value at = sgm_input_value(graph, "at", SGM_INT64, DIMS(MANY));
    sgm_graph_add_output(graph, "sums", sgm_scatter_add(graph, x, at, 0, ROWS));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    double *values = malloc(MANY * sizeof *values), *indices = malloc(MANY * sizeof *indices);
    memset(expected, 0, sizeof expected);
    for (int64_t i = 0; i < MANY; i++) {
        values[i] = (double)value_of(i);
        indices[i] = (double)row_of(i);
        expected[row_of(i)] += value_of(i);
    }
    feed(session, program, "x", SGM_FLOAT32, DIMS(MANY), values);
    feed(session, program, "at", SGM_INT64, DIMS(MANY), indices);
    CHECK_OK(sgm_session_run(session, program));
    sgm_tensor *sums = sgm_tensor_create(SGM_FLOAT32, DIMS(ROWS));
    CHECK_OK(sgm_session_read(session, program, "sums", sums));
    CHECK_INT(memcmp(sgm_tensor_const_data(sums), expected, sizeof expected), 0);
    sgm_tensor_free(sums);
    free(values);
    free(indices);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(rows_are_summed_in_order)
{
    with_devices(check_rows);
}
