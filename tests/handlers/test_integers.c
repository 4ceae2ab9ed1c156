/* Whole numbers at the ends of their types: the reference by numbers worked out here, then all other handlers
 * and exported C by the reference, bit by bit. */
#include "compiled.h"
#include "devices.h"
#include "graphs.h"

#include "handlers/source/source.h"
#include "tensor/tensor_internal.h"
#include <sigma/graph.h>

__extension__ typedef __int128 wide; /* of all sums and products of two int64 */

#define EDGES 11
#define MANY 70000 /* enough to be summed in parts */
#define SLOTS 7

typedef struct whole_type {
    sgm_dtype dtype;
    int64_t minimum, maximum;
    int64_t edges[EDGES];
} whole_type;

/* Sums of int64 wrap around, and their products. */
static const whole_type types[] = {
    {SGM_INT64,
     INT64_MIN,
     INT64_MAX,
     {0, 1, -1, 2, -3, (INT64_C(1) << 53) + 1, -(INT64_C(1) << 60) - 7, INT64_MAX, INT64_MIN, 3037000501,
      INT64_MAX - 1}},
    {SGM_INT32,
     INT32_MIN,
     INT32_MAX,
     {0, 1, -1, 2, -3, 46340, -46341, INT32_MAX, INT32_MIN, INT32_MAX - 1, 65536}},
    {SGM_UINT8, 0, UINT8_MAX, {0, 1, 2, 3, 15, 16, 17, 127, 128, 254, 255}},
};
#define TYPES ((int)(sizeof types / sizeof *types))

static const int64_t slots[EDGES] = {0, 3, 3, 6, 0, 3, 1, 3, 3, 0, 1};

/* --- what is computed --- */

typedef struct operands {
    sgm_value a, b, many, at;
} operands;

/* name, value */
#define OUTPUTS(X)                                                                                           \
    X(negate, sgm_negate(g, x.a))                                                                            \
    X(absolute, sgm_absolute(g, x.a))                                                                        \
    X(sign, sgm_sign(g, x.a))                                                                                \
    X(floor, sgm_floor(g, x.a))                                                                              \
    X(add, sgm_add(g, x.a, x.b))                                                                             \
    X(subtract, sgm_subtract(g, x.a, x.b))                                                                   \
    X(multiply, sgm_multiply(g, x.a, x.b))                                                                   \
    X(maximum, sgm_maximum(g, x.a, x.b))                                                                     \
    X(minimum, sgm_minimum(g, x.a, x.b))                                                                     \
    X(less_of_sum, sgm_less(g, sgm_add(g, x.a, x.b), x.a))                                                   \
    X(there_and_back, sgm_subtract(g, sgm_add(g, x.a, x.b), x.b))                                            \
    X(negated_product, sgm_negate(g, sgm_subtract(g, sgm_multiply(g, x.a, x.b), x.a)))                       \
    X(sum_to_int64, sgm_cast(g, sgm_add(g, x.a, x.b), SGM_INT64))                                            \
    X(product_to_int32, sgm_cast(g, sgm_multiply(g, x.a, x.b), SGM_INT32))                                   \
    X(sum_to_uint8, sgm_cast(g, sgm_add(g, x.a, x.b), SGM_UINT8))                                            \
    X(product_to_bool, sgm_cast(g, sgm_multiply(g, x.a, x.b), SGM_BOOL))                                     \
    X(sum_to_float, sgm_cast(g, sgm_add(g, x.a, x.b), SGM_FLOAT32))                                          \
    X(sum_of_rows, sgm_reduce_sum(g, x.b, (int32_t[]){1}, 1, false))                                         \
    X(sum_of_columns, sgm_reduce_sum(g, x.b, (int32_t[]){0}, 1, false))                                      \
    X(sum_of_many, sgm_sum(g, x.many))                                                                       \
    X(largest, sgm_reduce_max(g, x.a, (int32_t[]){0}, 1, false))                                             \
    X(smallest, sgm_reduce_min(g, x.a, (int32_t[]){0}, 1, false))                                            \
    X(place_of_largest, sgm_arg_max(g, x.a, 0))                                                              \
    X(cumulative_sum, sgm_cumulative_sum(g, x.b, 1, false))                                                  \
    X(reverse_sum, sgm_cumulative_sum(g, x.a, 0, true))                                                      \
    X(matmul, sgm_matmul(g, x.a, x.b))                                                                       \
    X(matmul_of_columns, sgm_matmul(g, sgm_transpose(g, x.a), x.b))                                          \
    X(matmul_of_rows, sgm_matmul(g, x.b, sgm_transpose(g, x.b)))                                             \
    X(scatter_add, sgm_scatter_add(g, x.a, x.at, 0, SLOTS))                                                  \
    X(gather, sgm_gather(g, x.b, x.at, 1))                                                                   \
    X(concatenate, sgm_concatenate(g, (sgm_value[]){x.a, x.b}, 2, 0))                                        \
    X(pad, sgm_pad(g, x.a, 0, 1, 2, 1))                                                                      \
    X(one_constant, sgm_select(g, sgm_less(g, x.a, x.b), constant(g, 1), sgm_cast(g, x.a, SGM_INT64)))       \
    X(constants, sgm_select(g, sgm_less(g, x.a, x.b), constant(g, 1), constant(g, EDGES)))

/* What no double holds. */
static const int64_t beyond_double[EDGES] = {(INT64_C(1) << 53) + 1,
                                             INT64_MAX,
                                             INT64_MIN,
                                             INT64_MIN + 1,
                                             -(INT64_C(1) << 53) - 1,
                                             INT64_MAX - 1,
                                             7,
                                             INT64_C(1) << 60,
                                             -7,
                                             INT64_MIN + 2,
                                             0};

/* The first of those, or all. */
static sgm_value constant(sgm_graph *graph, int64_t count)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_INT64, DIMS(count));
    memcpy(sgm_tensor_data(tensor), beyond_double, (size_t)count * sizeof *beyond_double);
    sgm_value value = sgm_constant(graph, tensor);
    sgm_tensor_free(tensor);
    return value;
}

#define NAME(name, value) #name,
static const char *const outputs[] = {OUTPUTS(NAME)};
#define OUTPUT_COUNT ((int32_t)(sizeof outputs / sizeof *outputs))

static const char *const inputs[] = {"a", "b", "many", "at"};
#define INPUT_COUNT ((int32_t)(sizeof inputs / sizeof *inputs))

static int32_t number_in(const char *const *names, int32_t count, const char *name)
{
    for (int32_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    TEST_FAIL("there is no '%s'", name);
    return 0;
}

static sgm_graph *record(sgm_dtype dtype)
{
    sgm_graph *g = sgm_graph_create();
    operands x = {.a = sgm_input_value(g, "a", dtype, DIMS(EDGES, EDGES)),
                  .b = sgm_input_value(g, "b", dtype, DIMS(EDGES, EDGES)),
                  .many = sgm_input_value(g, "many", dtype, DIMS(MANY)),
                  .at = sgm_input_value(g, "at", SGM_INT64, DIMS(EDGES))};
#define OUTPUT(name, value) sgm_graph_add_output(g, #name, value);
    OUTPUTS(OUTPUT)
    CHECK_OK(sgm_graph_status(g));
    return g;
}

/* --- inputs --- */

/* `a` has an edge in each row, `b` in each column: all pairs. */
static int64_t input_value(const whole_type *type, int32_t input, int64_t i)
{
    const int64_t values[] = {type->edges[i / EDGES % EDGES], type->edges[i % EDGES],
                              type->edges[i * 7 % EDGES], slots[i % EDGES]};
    return values[input];
}

static int64_t input_size(int32_t input)
{
    const int64_t sizes[] = {EDGES * EDGES, EDGES * EDGES, MANY, EDGES};
    return sizes[input];
}

static sgm_tensor *make_input(const whole_type *type, int32_t input)
{
    int64_t count = input_size(input);
    sgm_dtype dtype = input == 3 ? SGM_INT64 : type->dtype;
    sgm_tensor *tensor = sgm_tensor_create(dtype, input < 2 ? DIMS(EDGES, EDGES) : DIMS(count));
    unsigned char *data = sgm_tensor_data(tensor);
    for (int64_t i = 0; i < count; i++, data += sgm_dtype_size(dtype)) {
        int64_t value = input_value(type, input, i);
        sgm__element_convert(dtype, data, SGM_INT64, &value);
    }
    return tensor;
}

/* --- handlers --- */

typedef struct results {
    sgm_tensor *tensors[OUTPUT_COUNT];
} results;

static void discard(results *r)
{
    for (int32_t i = 0; i < OUTPUT_COUNT; i++)
        sgm_tensor_free(r->tensors[i]);
}

static results run(sgm_handler *handler, const whole_type *type)
{
    results r;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = record(type->dtype);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    for (int32_t i = 0; i < INPUT_COUNT; i++) {
        sgm_tensor *tensor = make_input(type, i);
        CHECK_OK(sgm_session_feed(session, program, inputs[i], tensor));
        sgm_tensor_free(tensor);
    }
    CHECK_OK(sgm_session_run(session, program));
    for (int32_t i = 0; i < OUTPUT_COUNT; i++) {
        sgm_type of = sgm_program_output_type(program, outputs[i]);
        r.tensors[i] = sgm_tensor_create(of.dtype, &of.shape);
        CHECK_OK(sgm_session_read(session, program, outputs[i], r.tensors[i]));
    }
    sgm_graph_free(graph);
    sgm_session_free(session);
    return r;
}

static results run_reference(const whole_type *type)
{
    sgm_handler *handler = sgm_handler_create("reference");
    results r = run(handler, type);
    sgm_handler_free(handler);
    return r;
}

static double element(const sgm_tensor *tensor, const void *data, int64_t i)
{
    sgm_array array = {.dtype = sgm_tensor_dtype(tensor), .data = (void *)(uintptr_t)data};
    return sgm_array_load(&array, i);
}

static void check_same(const char *output, const sgm_tensor *expected, const void *data)
{
    const void *wanted = sgm_tensor_const_data(expected);
    int64_t count = sgm_shape_elements(sgm_tensor_shape(expected));
    size_t size = sgm_dtype_size(sgm_tensor_dtype(expected));
    for (int64_t i = 0; i < count; i++)
        if (memcmp((const char *)data + (size_t)i * size, (const char *)wanted + (size_t)i * size, size) != 0)
            TEST_FAIL("%s: element %lld is %.17g, the reference gives %.17g", output, (long long)i,
                      element(expected, data, i), element(expected, wanted, i));
}

static void check_handler(const char *name)
{
    compile_in_haste();
    sgm_handler *handler = sgm_handler_create_with(name, NULL);
    if (handler == NULL)
        SKIP(sgm_last_error());
    for (int t = 0; t < TYPES; t++) {
        results expected = run_reference(&types[t]), got = run(handler, &types[t]);
        for (int32_t i = 0; i < OUTPUT_COUNT; i++)
            check_same(outputs[i], expected.tensors[i], sgm_tensor_const_data(got.tensors[i]));
        discard(&expected);
        discard(&got);
    }
    sgm_handler_free(handler);
}

/* --- the reference --- */

/* What a type makes of it: int64 wraps around, others end at their minimum and maximum. */
static int64_t limited(const whole_type *type, wide value)
{
    if (type->dtype == SGM_INT64)
        return (int64_t)value;
    return (int64_t)(value < type->minimum ? type->minimum : value > type->maximum ? type->maximum : value);
}

static void check_element(const results *r, const char *output, int64_t i, int64_t expected)
{
    const sgm_tensor *tensor = r->tensors[number_in(outputs, OUTPUT_COUNT, output)];
    sgm_dtype dtype = sgm_tensor_dtype(tensor);
    int64_t got;
    sgm__element_convert(SGM_INT64, &got, dtype,
                         (const char *)sgm_tensor_const_data(tensor) + (size_t)i * sgm_dtype_size(dtype));
    if (got != expected)
        TEST_FAIL("%s of %s: element %lld is %lld, expected %lld", output, sgm_dtype_name(dtype),
                  (long long)i, (long long)got, (long long)expected);
}

TEST(the_reference_gives_the_minimum_or_maximum_of_a_type)
{
    for (int t = 0; t < TYPES; t++) {
        const whole_type *type = &types[t];
        results r = run_reference(type);
        wide sum = 0, many = 0;
        for (int64_t i = 0; i < EDGES * EDGES; i++) {
            wide a = input_value(type, 0, i), b = input_value(type, 1, i);
            check_element(&r, "negate", i, limited(type, -a));
            check_element(&r, "absolute", i, limited(type, a < 0 ? -a : a));
            check_element(&r, "sign", i, (a > 0) - (a < 0));
            check_element(&r, "floor", i, (int64_t)a);
            check_element(&r, "add", i, limited(type, a + b));
            check_element(&r, "subtract", i, limited(type, a - b));
            check_element(&r, "multiply", i, limited(type, a * b));
            check_element(&r, "maximum", i, (int64_t)(a > b ? a : b));
            check_element(&r, "minimum", i, (int64_t)(a < b ? a : b));
            check_element(&r, "less_of_sum", i, limited(type, a + b) < a);
            check_element(&r, "there_and_back", i, limited(type, limited(type, a + b) - b));
            const sgm_tensor *constants = r.tensors[number_in(outputs, OUTPUT_COUNT, "constants")];
            CHECK_INT(((const int64_t *)sgm_tensor_const_data(constants))[i],
                      beyond_double[a < b ? 0 : i % EDGES]);
            sum = i % EDGES == 0 ? b : sum + b;
            check_element(&r, "cumulative_sum", i, limited(type, sum));
            if (i % EDGES == EDGES - 1)
                check_element(&r, "sum_of_rows", i / EDGES, limited(type, sum));
            wide product = (wide)type->edges[i / EDGES] * type->edges[i % EDGES];
            if (type->dtype == SGM_INT64) /* before so many of them */
                product = (int64_t)product;
            check_element(&r, "matmul", i, limited(type, EDGES * product));
        }
        for (int64_t i = 0; i < MANY; i++)
            many += input_value(type, 2, i);
        check_element(&r, "sum_of_many", 0, limited(type, many));
        discard(&r);
    }
}

/* --- a user's own formula --- */

static sgm_status infer_own(const sgm_type *given, int32_t count, const sgm_attributes *attributes,
                            sgm_type *result)
{
    (void)count, (void)attributes;
    *result = given[0];
    return SGM_OK;
}

static double own_scalar(const double *x, const sgm_attributes *attributes)
{
    (void)attributes;
    return 3 * x[0] - x[1];
}

static int64_t own_whole(const int64_t *x, const sgm_attributes *attributes)
{
    (void)attributes;
    return (int64_t)(3 * (uint64_t)x[0] - (uint64_t)x[1]);
}

static const sgm_op own = {.api = SGM_OP_API,
                           .flags = SGM_OP_ELEMENTWISE,
                           .name = "test_own_whole",
                           .doc = "of a test",
                           .min_inputs = 2,
                           .max_inputs = 2,
                           .infer = infer_own,
                           .scalar = own_scalar,
                           .whole = own_whole};

static void check_own(const char *name)
{
    sgm_handler *handler = sgm_handler_create_with(name, NULL);
    if (handler == NULL && is_device_name(name))
        return;
    CHECK_OK(handler);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = constant(graph, EDGES), narrow = sgm_cast(graph, x, SGM_INT32);
    sgm_graph_add_output(graph, "y",
                         sgm_record(graph, &own, (sgm_value[]){x, sgm_negate(graph, x)}, 2, NULL));
    sgm_graph_add_output(graph, "z", sgm_record(graph, &own, (sgm_value[]){narrow, narrow}, 2, NULL));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    CHECK_OK(sgm_session_run(session, program));
    sgm_tensor *y = sgm_tensor_create(SGM_INT64, DIMS(EDGES)), *z = sgm_tensor_create(SGM_INT32, DIMS(EDGES));
    CHECK_OK(sgm_session_read(session, program, "y", y));
    CHECK_OK(sgm_session_read(session, program, "z", z));
    for (int i = 0; i < EDGES; i++) {
        int64_t end = beyond_double[i] > 7    ? INT32_MAX
                      : beyond_double[i] < -7 ? INT32_MIN
                                              : 2 * beyond_double[i];
        CHECK_INT(((const int64_t *)sgm_tensor_const_data(y))[i], (int64_t)(4 * (uint64_t)beyond_double[i]));
        CHECK_INT(((const int32_t *)sgm_tensor_const_data(z))[i], end);
    }
    sgm_tensor_free(y);
    sgm_tensor_free(z);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

TEST(a_formula_of_int64_is_used_for_that_alone)
{
    static const char *const handlers[] = {"reference", "cpu", "opencl", "cuda"};
    CHECK_OK(sgm_register_op(&own));
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        check_own(handlers[i]);
}

/* --- all handlers --- */

TEST(cpu)
{
    check_handler("cpu");
}

TEST(opencl)
{
    check_handler("opencl");
}

TEST(cuda)
{
    check_handler("cuda");
}

/* --- exported C --- */

/* The function that runs the program, and "test", which calls it with arrays of all inputs and outputs. */
static void write_source(const sgm__plan *plan, sgm__text *text)
{
    char names[INPUT_COUNT + OUTPUT_COUNT][32];
    const char *given[OUTPUT_COUNT];
    sgm__source_input parameters[INPUT_COUNT];
    sgm__text calls = {0};
    CHECK_INT(plan->input_count, INPUT_COUNT);
    CHECK_INT(plan->output_count, OUTPUT_COUNT);
    for (int32_t i = 0; i < INPUT_COUNT; i++) {
        const char *name = sgm__plan_string(plan, plan->inputs[i].name);
        snprintf(names[i], sizeof names[i], "in_%s", name);
        parameters[i] = (sgm__source_input){.name = names[i]};
        sgm__text_append(&calls, "%sin[%d]", i > 0 ? ", " : "", number_in(inputs, INPUT_COUNT, name));
    }
    for (int32_t i = 0; i < OUTPUT_COUNT; i++) {
        const char *name = sgm__plan_string(plan, plan->outputs[i].name);
        given[i] = names[INPUT_COUNT + i];
        snprintf(names[INPUT_COUNT + i], sizeof names[0], "out_%s", name);
        sgm__text_append(&calls, ", out[%d]", number_in(outputs, OUTPUT_COUNT, name));
    }
    sgm__source_program program = {
        .function = "run", .doc = "All.", .plan = plan, .inputs = parameters, .outputs = given};
    sgm__source_request request = {.name = "whole",
                                   .about = "Whole numbers.",
                                   .real = SGM_FLOAT32,
                                   .programs = &program,
                                   .program_count = 1};
    CHECK_OK(sgm__source_write(&request, text));
    sgm__text_append(text,
                     "int test(const void *const *in, void *const *out);\n"
                     "int test(const void *const *in, void *const *out)\n{\n    return whole_run(%s);\n}\n",
                     calls.data);
    CHECK(!text->failed && !calls.failed);
    sgm__text_free(&calls);
}

typedef int (*test_function)(const void *const *in, void *const *out);

/* Into tensors like those of `expected`. */
static results run_source(const whole_type *type, test_function function, const results *expected)
{
    sgm_tensor *tensors[INPUT_COUNT];
    const void *in[INPUT_COUNT];
    void *out[OUTPUT_COUNT];
    results r;
    for (int32_t i = 0; i < INPUT_COUNT; i++) {
        tensors[i] = make_input(type, i);
        in[i] = sgm_tensor_const_data(tensors[i]);
    }
    for (int32_t i = 0; i < OUTPUT_COUNT; i++) {
        const sgm_tensor *like = expected->tensors[i];
        r.tensors[i] = sgm_tensor_create(sgm_tensor_dtype(like), sgm_tensor_shape(like));
        out[i] = sgm_tensor_data(r.tensors[i]);
    }
    CHECK_INT(function(in, out), 0);
    for (int32_t i = 0; i < INPUT_COUNT; i++)
        sgm_tensor_free(tensors[i]);
    return r;
}

/* What no C compiler promises to do, such as sums beyond a type, ends the process. */
#define TRAPPING "-Wno-type-limits -O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error"

TEST(exported_c)
{
    for (int t = 0; t < TYPES; t++) {
        sgm_graph *graph = record(types[t].dtype);
        sgm__plan *plan = NULL;
        sgm__text text = {0};
        test_function function;
        CHECK_OK(sgm__plan_create(graph, sgm__source_handler(), &plan));
        write_source(plan, &text);
        void *library = load_c(&text, TRAPPING);
        find_c(library, "test", &function);
        results expected = run_reference(&types[t]), got = run_source(&types[t], function, &expected);
        for (int32_t i = 0; i < OUTPUT_COUNT; i++)
            check_same(outputs[i], expected.tensors[i], sgm_tensor_const_data(got.tensors[i]));
        discard(&expected);
        discard(&got);
        dlclose(library);
        sgm__plan_free(plan);
        sgm_graph_free(graph);
    }
}
