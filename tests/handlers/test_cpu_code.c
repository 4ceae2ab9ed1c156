/* Elementwise steps as machine code against the same steps interpreted: the same bits, in each instruction
 * set that has an encoder and runs here. Where there is none, this compares the interpreter with itself. */
#include "base/base.h"
#include "handlers/cpu/vector/vector.h"
#include "handlers/graphs.h"

#include <math.h>
#include <string.h>

#define MAXIMUM_VALUES 80
#define SIMPLE 8

static const float special[] = {0.0f,      -0.0f, 1.0f,    -1.0f,   0.5f,   3e38f,   -3e38f,     INFINITY,
                                -INFINITY, NAN,   1e-38f,  -1e-38f, 1e-42f, 88.0f,   -90.0f,     2.5f,
                                -2.5f,     1e10f, 7.1e-5f, 0.999f,  1.001f, -0.999f, 16777217.0f};
#define SPECIAL ((int64_t)(sizeof special / sizeof *special))

typedef struct pair {
    sgm_handler *handlers[2]; /* machine code, interpreted */
    sgm_session *sessions[2];
    sgm_program *programs[2];
} pair;

/* Of both handlers: their turn now. */
static const char *instructions;

static void in_each_set(void (*check)(void))
{
    const sgm__vector *vector;
    bool here;
    for (int32_t i = 0; (vector = sgm__vector_at(i, &here)) != NULL; i++) {
        if (!here || (vector->functions == NULL && vector != sgm__vector_best()))
            continue;
        instructions = vector->name;
        check();
    }
}

static pair pair_create(int threads, bool approximate)
{
    pair p = {.handlers = {sgm_handler_create("cpu", .threads = threads, .approximate = approximate,
                                              .instructions = instructions),
                           sgm_handler_create("cpu", .threads = threads, .approximate = approximate,
                                              .instructions = instructions, .no_machine_code = true)}};
    for (int i = 0; i < 2; i++)
        CHECK_OK(p.sessions[i] = sgm_session_create(p.handlers[i]));
    return p;
}

static void set_pair(pair *p, const char *name, const sgm_tensor *value)
{
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_session_set(p->sessions[i], name, value));
}

static void prepare_pair(pair *p, const sgm_graph *graph)
{
    for (int i = 0; i < 2; i++)
        CHECK_OK(p->programs[i] = sgm_session_prepare(p->sessions[i], graph));
}

static void pair_free(pair *p)
{
    for (int i = 0; i < 2; i++) {
        sgm_session_free(p->sessions[i]);
        sgm_handler_free(p->handlers[i]);
    }
}

static void feed_pair(pair *p, const char *name, const sgm_tensor *value)
{
    for (int i = 0; i < 2; i++)
        if (sgm_program_has_input(p->programs[i], name))
            CHECK_OK(sgm_session_feed(p->sessions[i], p->programs[i], name, value));
}

static void run_pair(pair *p)
{
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_session_run(p->sessions[i], p->programs[i]));
}

/* NaNs are equal, whatever their sign. */
static bool is_same(sgm_dtype dtype, const void *a, const void *b, int64_t index)
{
    if (dtype == SGM_BFLOAT16) {
        uint16_t x = ((const uint16_t *)a)[index], y = ((const uint16_t *)b)[index];
        return x == y || ((x & 0x7fff) > 0x7f80 && (y & 0x7fff) > 0x7f80);
    }
    if (dtype == SGM_BOOL)
        return ((const uint8_t *)a)[index] == ((const uint8_t *)b)[index];
    const float *x = (const float *)a + index, *y = (const float *)b + index;
    return (isnan(*x) && isnan(*y)) || memcmp(x, y, sizeof *x) == 0;
}

static void check_pair(pair *p, const char *name)
{
    sgm_type type = sgm_program_output_type(p->programs[0], name);
    sgm_tensor *values[2];
    for (int i = 0; i < 2; i++) {
        CHECK_OK(values[i] = sgm_tensor_create(type.dtype, &type.shape));
        CHECK_OK(sgm_session_read(p->sessions[i], p->programs[i], name, values[i]));
    }
    int64_t different = 0, count = sgm_shape_elements(&type.shape);
    for (int64_t i = 0; i < count; i++)
        different += !is_same(type.dtype, sgm_tensor_data(values[0]), sgm_tensor_data(values[1]), i);
    CHECK_INT(different, 0);
    sgm_tensor_free(values[0]);
    sgm_tensor_free(values[1]);
}

/* Every pair of special numbers comes up, in both orders. */
static sgm_tensor *operand(const sgm_shape *shape, int which)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, shape);
    CHECK_OK(tensor);
    float *values = sgm_tensor_data(tensor);
    int64_t count = sgm_shape_elements(shape);
    for (int64_t i = 0; i < count; i++)
        values[i] = special[(which == 0 ? i : i / SPECIAL) % SPECIAL];
    return tensor;
}

static void check_operation(const sgm_op *op, int64_t count, sgm_dtype dtype, bool approximate)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(count);
    sgm_value x[2] = {sgm_input_value(graph, "x", SGM_FLOAT32, &shape),
                      sgm_input_value(graph, "y", SGM_FLOAT32, &shape)};
    for (int i = 0; i < 2; i++)
        x[i] = sgm_cast(graph, x[i], dtype);
    sgm_value value = sgm_record(graph, op, x, op->min_inputs, NULL);
    sgm_graph_add_output(graph, "value", value);
    /* A bool is stored, and read in the same step. */
    if (sgm_value_type(graph, value).dtype == SGM_BOOL) {
        sgm_value both = sgm_logical_or(graph, value, sgm_logical_not(graph, sgm_less(graph, x[0], x[1])));
        sgm_graph_add_output(graph, "chosen", sgm_select(graph, both, x[0], sgm_cast(graph, value, dtype)));
    } else {
        sgm_value chosen = sgm_multiply(graph, value, sgm_number(graph, 0.75));
        for (int i = 0; i < SIMPLE; i++) /* so many that calls are worth it */
            chosen = sgm_add(graph, sgm_multiply(graph, chosen, x[0]), value);
        sgm_graph_add_output(graph, "chosen", chosen);
    }
    CHECK_OK(sgm_graph_status(graph));
    pair p = pair_create(1, approximate);
    prepare_pair(&p, graph);
    for (int i = 0; i < 2; i++) {
        sgm_tensor *value_of = operand(&shape, i);
        feed_pair(&p, i == 0 ? "x" : "y", value_of);
        sgm_tensor_free(value_of);
    }
    run_pair(&p);
    check_pair(&p, "value");
    check_pair(&p, "chosen");
    pair_free(&p);
    sgm_graph_free(graph);
}

static void check_operations(void)
{
    static const char *const operations[] = {"add",   "subtract",   "multiply",  "divide",    "square_root",
                                             "floor", "maximum",    "minimum",   "equal",     "not_equal",
                                             "less",  "less_equal", "greater",   "is_nan",    "greater_equal",
                                             "log",   "negate",     "absolute",  "is_finite", "exp",
                                             "log1p", "tanh",       "erf",       "copy",      "stop_gradient",
                                             "relu",  "gelu",       "hard_tanh", "mish",      "sign"};
    static const int64_t counts[] = {1, 2, 5, 7, 8, 11, 15, 16, 17, 31, SPECIAL * SPECIAL};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            for (int d = 0; d < 2; d++)
                check_operation(sgm_find_op(operations[i]), counts[k], d == 0 ? SGM_FLOAT32 : SGM_BFLOAT16,
                                false);
}

TEST(each_operation)
{
    in_each_set(check_operations);
}

/* A compiler that passes vectors in another way than machine code does shows here. */
static void check_functions(void)
{
    const sgm__vector *vector = sgm__vector_named(instructions);
    CHECK_OK(vector);
    for (int i = 0; i < vector->function_count; i++)
        for (int k = 0; k < 4; k++)
            check_operation(vector->functions[i].op, SPECIAL * SPECIAL,
                            k % 2 == 0 ? SGM_FLOAT32 : SGM_BFLOAT16, k / 2 == 1);
}

TEST(each_function_that_is_called)
{
    in_each_set(check_functions);
}

/* Of two NaNs it is the first: with all of its bits, of which is_same knows nothing. */
static void check_nans(const char *operation)
{
    static const uint32_t nans[] = {0x7fc00001, 0xffc00002}; /* of either sign, with numbers of their own */
    static const char *const inputs[] = {"x", "y"};
    uint32_t found;
    sgm_graph *graph = sgm_graph_create();
    sgm_value in[2];
    for (int i = 0; i < 2; i++)
        in[i] = sgm_input_value(graph, inputs[i], SGM_FLOAT32, DIMS(1));
    sgm_graph_add_output(graph, "value", sgm_record(graph, sgm_find_op(operation), in, 2, NULL));
    pair p = pair_create(1, false);
    prepare_pair(&p, graph);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, DIMS(1));
    for (int i = 0; i < 2; i++) {
        memcpy(sgm_tensor_data(tensor), &nans[i], sizeof nans[i]);
        feed_pair(&p, inputs[i], tensor);
    }
    run_pair(&p);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sgm_session_read(p.sessions[i], p.programs[i], "value", tensor));
        memcpy(&found, sgm_tensor_data(tensor), sizeof found);
        CHECK_INT(found, nans[0]);
    }
    sgm_tensor_free(tensor);
    pair_free(&p);
    sgm_graph_free(graph);
}

static void check_first_nans(void)
{
    check_nans("maximum");
    check_nans("minimum");
}

TEST(the_first_of_two_nans)
{
    in_each_set(check_first_nans);
}

/* --- random steps --- */

typedef struct maker {
    sgm_graph *graph;
    sgm__random random;
    sgm_value floats[MAXIMUM_VALUES], bools[MAXIMUM_VALUES];
    int float_count, bool_count;
} maker;

static sgm_value some_float(maker *m)
{
    return m->floats[sgm__random_below(&m->random, (uint64_t)m->float_count)];
}

static sgm_value some_bool(maker *m)
{
    return m->bools[sgm__random_below(&m->random, (uint64_t)m->bool_count)];
}

/* Of a float that may have been rounded to bfloat16 and back. */
static sgm_value make_rounded(maker *m)
{
    sgm_value narrow = sgm_cast(m->graph, some_float(m), SGM_BFLOAT16);
    sgm_value factor = sgm_cast(m->graph, some_float(m), SGM_BFLOAT16);
    return sgm_cast(m->graph, sgm_multiply(m->graph, narrow, factor), SGM_FLOAT32);
}

static void make_bool(maker *m)
{
    sgm_value a = some_bool(m), b = some_bool(m);
    m->bools[m->bool_count++] = sgm_logical_and(m->graph, a, sgm_logical_not(m->graph, b));
}

static void make_value(maker *m)
{
    static const char *const two[] = {"add", "subtract", "multiply", "divide", "maximum", "minimum"};
    static const char *const one[] = {"negate", "absolute", "square_root", "exp", "tanh", "floor", "erf"};
    static const char *const tests[] = {"less", "greater_equal", "equal", "not_equal"};
    sgm_graph *graph = m->graph;
    sgm_value in[2] = {some_float(m), some_float(m)};
    uint64_t kind = sgm__random_below(&m->random, m->bool_count > 0 ? 9 : 7);
    if (kind < 4)
        m->floats[m->float_count++] =
            sgm_record(graph, sgm_find_op(two[sgm__random_below(&m->random, 6)]), in, 2, NULL);
    else if (kind == 4)
        m->floats[m->float_count++] =
            sgm_record(graph, sgm_find_op(one[sgm__random_below(&m->random, 7)]), in, 1, NULL);
    else if (kind == 5)
        m->bools[m->bool_count++] =
            sgm_record(graph, sgm_find_op(tests[sgm__random_below(&m->random, 4)]), in, 2, NULL);
    else if (kind == 6)
        m->floats[m->float_count++] = make_rounded(m);
    else if (kind == 7)
        m->floats[m->float_count++] = sgm_select(graph, some_bool(m), in[0], in[1]);
    else
        make_bool(m);
}

/* Operands that lie along rows, along columns, or are one number. */
#define OPERANDS 5
static const char *const names[OPERANDS] = {"a", "row", "column", "number", "state"};

/* So many values that registers do, or do not, hold those that are read again at the end. */
static void make_graph(maker *m, uint64_t seed, const sgm_shape *shapes)
{
    for (int i = 0; i < OPERANDS; i++)
        m->floats[m->float_count++] = i + 1 < OPERANDS
                                          ? sgm_input_value(m->graph, names[i], SGM_FLOAT32, &shapes[i])
                                          : sgm_state(m->graph, names[i], SGM_FLOAT32, &shapes[i]);
    sgm_value state = m->floats[OPERANDS - 1];
    int values = 1 + (int)sgm__random_below(&m->random, 70);
    for (int i = 0; i < values; i++)
        make_value(m);
    sgm_value sum = sgm_add(m->graph, m->floats[0], m->floats[m->float_count - 1]);
    for (int i = 0; i < m->float_count; i += 1 + (int)(seed % 3))
        sum = sgm_add(m->graph, sum, m->floats[i]);
    sgm_graph_add_output(m->graph, "sum", sum);
    sgm_graph_add_output(m->graph, "last", m->floats[m->float_count - 1]);
    if (m->bool_count > 0)
        sgm_graph_add_output(m->graph, "test", m->bools[m->bool_count - 1]);
    sgm_assign(m->graph, state, sgm_multiply(m->graph, sum, sgm_number(m->graph, 0.25)));
    CHECK_OK(sgm_graph_status(m->graph));
}

static sgm_tensor *random_operand(maker *m, const sgm_shape *shape)
{
    sgm_tensor *value = sgm_tensor_create(SGM_FLOAT32, shape);
    CHECK_OK(value);
    float *elements = sgm_tensor_data(value);
    for (int64_t k = 0; k < sgm_shape_elements(shape); k++)
        elements[k] = (float)sgm__random_normal(&m->random);
    return value;
}

static void check_random(uint64_t seed)
{
    maker m = {.graph = sgm_graph_create(), .random = sgm__random_make(seed, 0)};
    int64_t rows = 1 + (int64_t)sgm__random_below(&m.random, 40);
    int64_t columns = 1 + (int64_t)sgm__random_below(&m.random, 90);
    sgm_shape shapes[OPERANDS] = {sgm_shape_of(rows, columns),
                                  sgm_shape_of(columns),
                                  sgm_shape_of(rows, 1),
                                  {.rank = 0},
                                  sgm_shape_of(rows, columns)};
    make_graph(&m, seed, shapes);
    pair p = pair_create(1 + (int)(seed % 2), false);
    sgm_tensor *start = random_operand(&m, &shapes[OPERANDS - 1]);
    set_pair(&p, "state", start);
    sgm_tensor_free(start);
    prepare_pair(&p, m.graph);
    for (int i = 0; i + 1 < OPERANDS; i++) {
        sgm_tensor *value = random_operand(&m, &shapes[i]);
        feed_pair(&p, names[i], value);
        sgm_tensor_free(value);
    }
    for (int run = 0; run < 2; run++) {
        run_pair(&p);
        check_pair(&p, "sum");
        check_pair(&p, "last");
        if (m.bool_count > 0)
            check_pair(&p, "test");
    }
    pair_free(&p);
    sgm_graph_free(m.graph);
}

/* Parts of wider rows, one row for all, numbers, and results that lie as parts of rows: in planes, too, which
 * tasks of threads cut anywhere. */
static void check_rows(int64_t planes, int64_t rows, int64_t columns, int threads)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape wide = sgm_shape_of(planes, rows, 4 * columns), line = sgm_shape_of(columns);
    sgm_shape tall = sgm_shape_of(rows, planes, columns);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &wide), parts[4], by[4];
    sgm_value y = sgm_input_value(graph, "y", SGM_FLOAT32, &line);
    sgm_value z =
        sgm_permute(graph, sgm_input_value(graph, "z", SGM_FLOAT32, &tall), (const int32_t[]){1, 0, 2});
    for (int i = 0; i < 4; i++)
        parts[i] = sgm_slice(graph, x, 2, i * columns, (i + 1) * columns, 1);
    by[0] = sgm_add(graph, parts[0], y);
    by[1] = sgm_multiply(graph, by[0], sgm_tanh(graph, parts[1]));
    by[2] = sgm_select(graph, sgm_less(graph, parts[2], z), by[1], sgm_sigmoid(graph, by[0]));
    by[3] = sgm_maximum(graph, sgm_multiply(graph, by[2], sgm_number(graph, 0.75)), parts[3]);
    sgm_graph_add_output(graph, "whole", sgm_concatenate(graph, by, 4, 2));
    sgm_graph_add_output(graph, "last", sgm_gelu(graph, by[3]));
    CHECK_OK(sgm_graph_status(graph));
    pair p = pair_create(threads, false);
    prepare_pair(&p, graph);
    const char *const inputs[] = {"x", "y", "z"};
    const sgm_shape *const shapes[] = {&wide, &line, &tall};
    for (int i = 0; i < 3; i++) {
        sgm_tensor *value = operand(shapes[i], i % 2);
        feed_pair(&p, inputs[i], value);
        sgm_tensor_free(value);
    }
    run_pair(&p);
    check_pair(&p, "whole");
    check_pair(&p, "last");
    pair_free(&p);
    sgm_graph_free(graph);
}

static void check_all_rows(void)
{
    static const int64_t columns[] = {31, 32, 33, 64, 100, 257};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        for (int threads = 1; threads <= 3; threads++) {
            check_rows(1, 32, columns[i], threads);
            check_rows(3, 7, columns[i], threads);
            check_rows(2, 1, columns[i], threads);
        }
    check_rows(5, 40, 96, 3);
}

TEST(rows)
{
    in_each_set(check_all_rows);
}

/* gelu and its gradient of the same number are one call; apart, or of other numbers, they are two. */
static void check_gelu(void)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(SPECIAL * SPECIAL);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &shape), half[3], y;
    y = sgm_input_value(graph, "y", SGM_FLOAT32, &shape);
    sgm_value sum = sgm_add(graph, x, y);
    sgm_graph_add_output(graph, "gelu", sgm_gelu(graph, sum));
    sgm_graph_add_output(graph, "gradient",
                         sgm_multiply(graph, sgm_gelu_gradient(graph, sum), sgm_tanh(graph, y)));
    sgm_graph_add_output(graph, "gradient before", sgm_gelu_gradient(graph, y));
    sgm_graph_add_output(graph, "gelu after",
                         sgm_add(graph, sgm_gelu(graph, y), sgm_gelu_gradient(graph, x)));
    half[0] = sgm_cast(graph, sum, SGM_BFLOAT16);
    half[1] = sgm_gelu(graph, half[0]);
    half[2] = sgm_gelu_gradient(graph, half[0]);
    sgm_graph_add_output(graph, "half", sgm_multiply(graph, half[1], half[2]));
    CHECK_OK(sgm_graph_status(graph));
    pair p = pair_create(2, false);
    prepare_pair(&p, graph);
    for (int i = 0; i < 2; i++) {
        sgm_tensor *value = operand(&shape, i);
        feed_pair(&p, i == 0 ? "x" : "y", value);
        sgm_tensor_free(value);
    }
    run_pair(&p);
    check_pair(&p, "gelu");
    check_pair(&p, "gradient");
    check_pair(&p, "gradient before");
    check_pair(&p, "gelu after");
    check_pair(&p, "half");
    pair_free(&p);
    sgm_graph_free(graph);
}

TEST(gelu_with_its_gradient)
{
    in_each_set(check_gelu);
}

static void check_steps(void)
{
    for (uint64_t seed = 0; seed < 400; seed++)
        check_random(seed);
}

TEST(random_steps)
{
    in_each_set(check_steps);
}

/* Large enough for several threads and many tiles, and a product that runs together with its update. */
static void check_update(void)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape inputs = sgm_shape_of(20, 300), gradients = sgm_shape_of(20, 500),
              weights = sgm_shape_of(300, 500);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &inputs);
    sgm_value y = sgm_input_value(graph, "y", SGM_FLOAT32, &gradients);
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, &weights);
    sgm_value gradient = sgm_matmul(graph, sgm_transpose(graph, x), y);
    sgm_value root =
        sgm_square_root(graph, sgm_add(graph, sgm_square(graph, gradient), sgm_number(graph, 0.1)));
    sgm_assign(graph, w, sgm_subtract(graph, w, sgm_divide(graph, gradient, root)));
    maker m = {.random = sgm__random_make(5, 0)};
    pair p = pair_create(2, false);
    sgm_tensor *start = random_operand(&m, &weights);
    set_pair(&p, "w", start);
    sgm_tensor_free(start);
    prepare_pair(&p, graph);
    sgm_tensor *values[2] = {random_operand(&m, &inputs), random_operand(&m, &gradients)};
    feed_pair(&p, "x", values[0]);
    feed_pair(&p, "y", values[1]);
    run_pair(&p);
    sgm_tensor *results[2];
    for (int i = 0; i < 2; i++) {
        CHECK_OK(results[i] = sgm_session_get(p.sessions[i], "w"));
        sgm_tensor_free(values[i]);
    }
    CHECK(memcmp(sgm_tensor_data(results[0]), sgm_tensor_data(results[1]), 300 * 500 * sizeof(float)) == 0);
    sgm_tensor_free(results[0]);
    sgm_tensor_free(results[1]);
    pair_free(&p);
    sgm_graph_free(graph);
}

TEST(update_of_many_parameters)
{
    in_each_set(check_update);
}

TEST(says_which_way)
{
    sgm_handler *handlers[] = {sgm_handler_create("cpu", .threads = 1),
                               sgm_handler_create("cpu", .threads = 1, .no_machine_code = true)};
    char *made = sgm_handler_describe(handlers[0]), *told = sgm_handler_describe(handlers[1]);
    bool here = strstr(made, "instructions: avx") != NULL;
    CHECK(strstr(made, here ? "elementwise steps: machine code"
                            : "elementwise steps: interpreted: no AVX2") != NULL);
    CHECK(!here || strstr(told, "elementwise steps: interpreted, as told") != NULL);
    sgm_string_free(made);
    sgm_string_free(told);
    sgm_handler_free(handlers[0]);
    sgm_handler_free(handlers[1]);
}
