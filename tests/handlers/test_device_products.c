/* Products and the step after each: which the driver's library can be asked for as one, and what it gives. */
#include "handlers/device/run/device.h"
#include "handlers/devices.h"
#include "handlers/graphs.h"
#include "handlers/session.h"
#include "ops/ops.h"

#include "cuda_stand_in.h"

/* --- which are one --- */

static const char *support(void *self, const sgm_op *op, sgm_dtype dtype)
{
    (void)self, (void)dtype;
    return sgm__device_code_has(op) ? "kernel" : "reference loop";
}

static const sgm__handler_type planned = {
    .name = "planned", .flags = SGM__HANDLER_PARTS | SGM__HANDLER_DRAWS, .support = support};

typedef struct wanted {
    bool one, bias, addend, rectified;
} wanted;

/* The graph, of one product, is freed. */
static void check_plan(const char *what, sgm_graph *graph, wanted w)
{
    static const sgm_handler handler = {.type = &planned, .name = "planned"};
    sgm__device_product product;
    sgm__plan *plan = NULL;
    int32_t step = 0;
    CHECK_OK(sgm__plan_create(graph, &handler, &plan));
    while (plan->nodes[plan->order[plan->steps[step].first]].op != &sgm__op_matmul)
        step++;
    CHECK(sgm__device_product_of(plan, step, false, &product));
    bool one = sgm__device_product_continue(plan, step, &product);
    if (one != w.one || (one && (product.asked.has_bias != w.bias || product.asked.has_addend != w.addend ||
                                 product.asked.rectified != w.rectified)))
        TEST_FAIL("%s: one %d, bias %d, addend %d, rectified %d", what, one, product.asked.has_bias,
                  product.asked.has_addend, product.asked.rectified);
    if (one)
        CHECK_INT(product.result, plan->order[plan->steps[step + 1].first + plan->steps[step + 1].count - 1]);
    sgm__plan_free(plan);
    sgm_graph_free(graph);
}

typedef struct maker {
    sgm_graph *graph;
    sgm_value product, bias, other; /* 8 x 6, 6, 8 x 6 */
} maker;

#define ADD(a, b) sgm_add(m->graph, a, b)
#define NUMBER(x) sgm_number(m->graph, x)

static sgm_value biased(const maker *m)
{
    return ADD(m->product, m->bias);
}

static sgm_value biased_relu(const maker *m)
{
    return sgm_relu(m->graph, ADD(m->bias, m->product));
}

static sgm_value relu(const maker *m)
{
    return sgm_relu(m->graph, m->product);
}

static sgm_value residual(const maker *m)
{
    return ADD(m->other, ADD(m->product, m->bias));
}

static sgm_value all(const maker *m)
{
    return sgm_relu(m->graph, ADD(ADD(m->product, m->other), m->bias));
}

static sgm_value two_biases(const maker *m)
{
    return ADD(ADD(m->product, m->bias), m->bias);
}

static sgm_value relu_first(const maker *m)
{
    return ADD(sgm_relu(m->graph, m->product), m->bias);
}

static sgm_value at_least_one(const maker *m)
{
    return sgm_maximum(m->graph, NUMBER(1), ADD(m->product, m->bias));
}

static sgm_value gelu(const maker *m)
{
    return sgm_gelu(m->graph, ADD(m->product, m->bias));
}

static sgm_value same_number(const maker *m)
{
    return ADD(m->product, NUMBER(3));
}

static sgm_value of_rows(const maker *m)
{
    return ADD(m->product, sgm_slice(m->graph, m->other, 1, 0, 1, 1));
}

static sgm_value transposed(const maker *m)
{
    sgm_value across = sgm_reshape(m->graph, m->other, &(sgm_shape){2, {6, 8}});
    return ADD(m->product, sgm_transpose(m->graph, across));
}

static sgm_value with_itself(const maker *m)
{
    return ADD(m->product, m->product);
}

static sgm_value read_twice(const maker *m)
{
    sgm_graph_add_output(m->graph, "before", m->product);
    return ADD(m->product, m->bias);
}

static sgm_value kept_between(const maker *m)
{
    sgm_value sum = ADD(m->product, m->bias);
    sgm_graph_add_output(m->graph, "between", sum);
    return sgm_relu(m->graph, sum);
}

static const struct {
    const char *name;
    sgm_value (*make)(const maker *m);
    wanted wanted;
} continuations[] = {
    {"a bias", biased, {true, true, false, false}},
    {"a bias and relu", biased_relu, {true, true, false, true}},
    {"relu", relu, {true, false, false, true}},
    {"a bias and what goes round", residual, {true, true, true, false}},
    {"everything", all, {true, true, true, true}},
    {"two biases", two_biases, {0}},
    {"a bias after relu", relu_first, {0}},
    {"at least 1", at_least_one, {0}},
    {"gelu", gelu, {0}},
    {"one number for all", same_number, {0}},
    {"a number for each row", of_rows, {0}},
    {"what lies another way", transposed, {0}},
    {"twice itself", with_itself, {0}},
    {"a product that is wanted, too", read_twice, {0}},
    {"a sum that is wanted, too", kept_between, {0}},
};

/* x + x w and its like: the sum may take the place of x, which the product still reads. */
typedef enum itself { LEFT, RIGHT, TRANSPOSED, BOTH, WAYS } itself;

static sgm_graph *with_operand(itself which)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_tanh(graph, sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(8, 8)));
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(8, 8));
    sgm_value product = which == LEFT    ? sgm_matmul(graph, x, w)
                        : which == RIGHT ? sgm_matmul(graph, w, x)
                        : which == BOTH  ? sgm_matmul(graph, x, x)
                                         : sgm_matmul(graph, sgm_transpose(graph, x), w);
    sgm_graph_add_output(graph, "y", sgm_add(graph, x, product));
    return graph;
}

TEST(a_sum_on_an_operand_of_the_product_waits_for_it)
{
    for (int i = 0; i < WAYS; i++)
        check_plan("an operand's place", with_operand((itself)i), (wanted){0});
}

#define CASES (sizeof continuations / sizeof *continuations)
#define EVERYTHING 4 /* the case of that name */

static sgm_graph *make(size_t which, sgm_dtype dtype)
{
    maker m = {.graph = sgm_graph_create()};
    m.product = sgm_matmul(m.graph, sgm_input_value(m.graph, "x", dtype, DIMS(8, 5)),
                           sgm_state(m.graph, "w", dtype, DIMS(5, 6)));
    m.bias = sgm_state(m.graph, "b", dtype, DIMS(6));
    m.other = sgm_input_value(m.graph, "z", dtype, DIMS(8, 6));
    sgm_graph_add_output(m.graph, "y", continuations[which].make(&m));
    return m.graph;
}

TEST(what_follows_a_product_is_its_epilogue_where_a_library_can_do_it)
{
    for (size_t i = 0; i < CASES; i++)
        check_plan(continuations[i].name, make(i, SGM_FLOAT32), continuations[i].wanted);
}

/* --- what they give --- */

#define RESULTS 48 /* of y */

static int kernels_compiled; /* as the log tells */

static void count_kernels(void *user, sgm_log_level level, const char *component, const char *message)
{
    int count, of;
    (void)user, (void)level;
    if (strcmp(component, "cuda") == 0 && sscanf(message, "%d of %d kernels", &count, &of) == 2)
        kernels_compiled += count;
}

/* Small whole numbers, which all types hold. */
static void fill(double *values, int count, int which)
{
    for (int i = 0; i < count; i++)
        values[i] = (i * 3 + which) % 7 - 3;
}

static sgm_program *prepare(sgm_session *session, sgm_graph *graph, sgm_dtype dtype)
{
    double values[RESULTS];
    fill(values, 30, 1);
    set_state(session, "w", dtype, DIMS(5, 6), values);
    set_state(session, "b", dtype, DIMS(6), NUMBERS(-3, 5, 1, 0, -1, 8));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    fill(values, 40, 2);
    feed(session, program, "x", dtype, DIMS(8, 5), values);
    fill(values, RESULTS, 3);
    if (sgm_program_has_input(program, "z"))
        feed(session, program, "z", dtype, DIMS(8, 6), values);
    return program;
}

static void read_results(sgm_session *session, sgm_program *program, double *results)
{
    sgm_type type = sgm_program_output_type(program, "y");
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_session_read(session, program, "y", tensor));
    CHECK_OK(sgm_tensor_read(tensor, results, RESULTS));
    sgm_tensor_free(tensor);
}

static void run_reference(size_t which, double *results)
{
    sgm_handler *handler = sgm_handler_create("reference");
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = make(which, SGM_FLOAT64);
    sgm_program *program = prepare(session, graph, SGM_FLOAT64);
    CHECK_OK(sgm_session_run(session, program));
    read_results(session, program, results);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

/* `kernels`: how many are compiled for it, -1: any number. */
static void check_run(const char *name, size_t which, sgm_dtype dtype, int kernels)
{
    double expected[RESULTS], results[RESULTS];
    run_reference(which, expected);
    sgm_handler *handler = sgm_handler_create(name);
    CHECK_OK(handler);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = make(which, dtype);
    kernels_compiled = 0;
    sgm_program *program = prepare(session, graph, dtype);
    for (int run = 0; run < 4; run++) { /* the later ones are recorded */
        CHECK_OK(sgm_session_run(session, program));
        read_results(session, program, results);
        for (int i = 0; i < RESULTS; i++)
            CHECK_NEAR(results[i], expected[i], dtype == SGM_BFLOAT16 ? 0.1 : 1e-5);
    }
    if (kernels >= 0 && kernels_compiled != kernels)
        TEST_FAIL("%s on %s: %d kernels were compiled, not %d", continuations[which].name, name,
                  kernels_compiled, kernels);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

TEST(a_product_and_its_epilogue_need_no_kernel_and_give_the_same)
{
    use_cuda();
    sgm_set_logger(count_kernels, NULL, SGM_LOG_DEBUG);
    for (size_t i = 0; i < CASES; i++) {
        int kernels = continuations[i].wanted.one && !cuda_is_real() ? 0 : -1;
        check_run("cuda", i, SGM_FLOAT32, kernels);
        if (continuations[i].wanted.one)
            check_run("cuda", i, SGM_BFLOAT16, kernels);
    }
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
}

/* Scores of attention: queries and keys lie in one matrix (examples, places, 2 * heads * width). */
static sgm_graph *scores(int64_t examples, int64_t heads)
{
    const int64_t places = 3, width = 2;
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(examples, places, 2 * heads * width)),
              parts[2];
    x = sgm_reshape(graph, x, DIMS(examples, places, 2, heads, width));
    for (int64_t i = 0; i < 2; i++) {
        parts[i] =
            sgm_reshape(graph, sgm_slice(graph, x, 2, i, i + 1, 1), DIMS(examples, places, heads, width));
        parts[i] = sgm_permute(graph, parts[i], (const int32_t[]){0, 2, 1, 3});
    }
    sgm_graph_add_output(graph, "y", sgm_matmul(graph, parts[0], sgm_transpose(graph, parts[1])));
    return graph;
}

static void check_scores(int64_t examples, int64_t heads)
{
    enum { MAXIMUM = 72 };
    double values[MAXIMUM], expected[MAXIMUM];
    fill(values, (int)(examples * heads * 12), 5);
    for (int64_t i = 0; i < examples * heads * 9; i++) {
        int64_t example = i / 9 / heads, head = i / 9 % heads, row = i / 3 % 3, column = i % 3;
        const double *q = values + (example * 3 + row) * heads * 4 + head * 2;
        const double *k = values + (example * 3 + column) * heads * 4 + (heads + head) * 2;
        expected[i] = q[0] * k[0] + q[1] * k[1];
    }
    sgm_handler *handler = sgm_handler_create("cuda");
    CHECK_OK(handler);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = scores(examples, heads);
    kernels_compiled = 0;
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(examples, 3, 4 * heads), values);
    for (int run = 0; run < 4; run++) { /* the later ones are recorded */
        CHECK_OK(sgm_session_run(session, program));
        check_output(session, program, "y", expected, 0);
    }
    if (!cuda_is_real())
        CHECK_INT(kernels_compiled, 0);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

TEST(heads_of_attention_are_products_of_the_library)
{
    use_cuda();
    sgm_set_logger(count_kernels, NULL, SGM_LOG_DEBUG);
    check_scores(2, 3);
    check_scores(3, 2);
    check_scores(1, 4);
    check_scores(5, 1);
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
}

TEST(an_epilogue_that_is_not_taken_is_a_kernel)
{
    use_cuda();
    sgm_set_logger(count_kernels, NULL, SGM_LOG_DEBUG);
    check_run("cuda", EVERYTHING, SGM_FLOAT64, cuda_is_real() ? -1 : 1); /* the stand-in has none there */
    setenv("SIGMA_FAKE_CUDA_PRODUCTS", "promised", 1);
    check_run("cuda", EVERYTHING, SGM_FLOAT32, cuda_is_real() ? -1 : 2);
    unsetenv("SIGMA_FAKE_CUDA_PRODUCTS");
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
}

static bool take_nothing(void *self, const sgm_device_product *product)
{
    (void)self, (void)product;
    return false;
}

static sgm_device_result fail_to_multiply(void *self, const sgm_device_product *product, char *text)
{
    (void)self, (void)product;
    snprintf(text, SGM_DEVICE_MESSAGE, "it was never asked whether it takes this");
    return SGM_DEVICE_FAILED;
}

TEST(a_library_multiplies_only_what_it_takes)
{
    use_cuda();
    sgm_handler *handler = sgm_handler_create("cuda");
    CHECK_OK(handler);
    sgm__device *device = handler->self;
    sgm_device_driver driver = *device->driver;
    driver.takes = take_nothing;
    driver.multiply = fail_to_multiply;
    device->driver = &driver;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = make(EVERYTHING, SGM_FLOAT32);
    sgm_program *program = prepare(session, graph, SGM_FLOAT32);
    CHECK_OK(sgm_session_run(session, program));
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

static void check_told(const char *products, const char *words)
{
    setenv("SIGMA_FAKE_CUDA_PRODUCTS", products, 1);
    sgm_handler *handler = sgm_handler_create("cuda");
    CHECK_OK(handler);
    char *text = sgm_handler_describe(handler);
    CHECK(strstr(text, words) != NULL);
    sgm_string_free(text);
    sgm_handler_free(handler);
    unsetenv("SIGMA_FAKE_CUDA_PRODUCTS");
}

TEST(whose_products_they_are_is_told)
{
    use_cuda();
    if (cuda_is_real())
        SKIP("the stand-in for CUDA is wanted");
    check_told("yes", "matrix products: the vendor's library\n");
    check_told("no", "matrix products: own kernels\n");
}

TEST(one_step_at_a_time_each_gives_its_own_result)
{
    use_cuda();
    check_run("debug:cuda", EVERYTHING, SGM_FLOAT32, -1);
}

TEST(the_time_of_an_epilogue_is_its_products)
{
    use_cuda();
    sgm_handler *handler = sgm_handler_create("cuda");
    CHECK_OK(handler);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = make(EVERYTHING, SGM_FLOAT32);
    sgm_program *program = prepare(session, graph, SGM_FLOAT32);
    sgm__step_time times[2];
    CHECK_INT(program->plan->step_count, 2);
    CHECK_OK(sgm__session_run_timed(session, program, times));
    CHECK_INT(times[0].with, -1);
    CHECK(times[0].seconds > 0);
    CHECK_INT(times[1].with, 0);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
}
