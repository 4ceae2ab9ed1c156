/* Programs that threads share: the same bits for any number of them, no meeting where none is needed, one
 * thread where one is faster. */
#include "base/allocator.h"
#include "graphs.h"
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/run/program.h"
#include <sigma/graph.h>
#include <sigma/handler.h>

#include <math.h>

#define STATES 6

static const int64_t sizes[] = {70, 90, 64, 12};

/* A step of three dense layers with momentum, batch 48. */
static void record_step(sgm_graph *g)
{
    static const char *const weights[] = {"w0", "w1", "w2"}, *const memories[] = {"m0", "m1", "m2"};
    sgm_shape shape = sgm_shape_of(48, sizes[0]), classes = sgm_shape_of(48, sizes[3]);
    sgm_value x = sgm_input_value(g, "x", SGM_FLOAT32, &shape), w[3], m[3], gradients[3];
    sgm_value targets = sgm_input_value(g, "targets", SGM_FLOAT32, &classes);
    for (int i = 0; i < 3; i++) {
        shape = sgm_shape_of(sizes[i], sizes[i + 1]);
        w[i] = sgm_state(g, weights[i], SGM_FLOAT32, &shape);
        m[i] = sgm_state(g, memories[i], SGM_FLOAT32, &shape);
        x = sgm_matmul(g, x, w[i]);
        if (i < 2)
            x = sgm_tanh(g, x);
    }
    sgm_value cost = sgm_mean(g, sgm_softmax_cross_entropy_values(g, x, targets));
    sgm_gradients(g, cost, w, 3, gradients);
    for (int i = 0; i < 3; i++) {
        sgm_value next = sgm_add(g, sgm_multiply(g, m[i], sgm_number(g, 0.9)), gradients[i]);
        sgm_assign(g, m[i], next);
        sgm_assign(g, w[i], sgm_subtract(g, w[i], sgm_multiply(g, next, sgm_number(g, 0.1))));
    }
    sgm_graph_add_output(g, "cost", cost);
    CHECK_OK(sgm_graph_status(g));
}

static sgm_tensor *waves(int64_t rows, int64_t columns, double scale, double speed)
{
    sgm_shape shape = sgm_shape_of(rows, columns);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_OK(tensor);
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)sgm_tensor_data(tensor))[i] = (float)(scale * sin(speed * (double)i));
    return tensor;
}

typedef struct training {
    sgm_handler *handler;
    sgm_session *session;
    sgm_program *program;
} training;

static void set(sgm_session *session, const char *name, sgm_tensor *value)
{
    CHECK(sgm_session_set(session, name, value) == SGM_OK);
    sgm_tensor_free(value);
}

static training begin(int threads, bool shares_all)
{
    static const char *const names[] = {"w0", "w1", "w2", "m0", "m1", "m2"};
    training t = {.handler = sgm_handler_create("cpu", .threads = threads)};
    sgm_graph *graph = sgm_graph_create();
    CHECK_OK(t.handler);
    ((sgm__cpu *)t.handler->self)->shares_all = shares_all;
    CHECK_OK(t.session = sgm_session_create(t.handler));
    for (int i = 0; i < STATES; i++)
        set(t.session, names[i], waves(sizes[i % 3], sizes[i % 3 + 1], i < 3 ? 0.2 : 0, 0.7 + i));
    record_step(graph);
    CHECK_OK(t.program = sgm_session_prepare(t.session, graph));
    sgm_graph_free(graph);
    sgm_tensor *x = waves(48, sizes[0], 1, 0.37), *targets = waves(48, sizes[3], 0, 1);
    for (int64_t i = 0; i < 48; i++)
        ((float *)sgm_tensor_data(targets))[i * sizes[3] + i * 5 % sizes[3]] = 1;
    CHECK(sgm_session_feed(t.session, t.program, "x", x) == SGM_OK);
    CHECK(sgm_session_feed(t.session, t.program, "targets", targets) == SGM_OK);
    sgm_tensor_free(x);
    sgm_tensor_free(targets);
    return t;
}

static void end(training *t)
{
    sgm_session_free(t->session);
    sgm_handler_free(t->handler);
}

static void run(const training *t, int steps)
{
    for (int i = 0; i < steps; i++)
        CHECK(sgm_session_run(t->session, t->program) == SGM_OK);
}

TEST(gives_the_same_bits_for_any_number_of_threads)
{
    training one = begin(1, false);
    run(&one, 20);
    for (int threads = 2; threads <= 9; threads += threads < 4 ? 1 : 5) {
        training many = begin(threads, true);
        run(&many, 20);
        for (size_t i = 0; i < STATES; i++) {
            const char *name = sgm_session_state_at(one.session, i);
            sgm_tensor *a = sgm_session_get(one.session, name), *b = sgm_session_get(many.session, name);
            size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(a)) * sizeof(float);
            CHECK(memcmp(sgm_tensor_data(a), sgm_tensor_data(b), bytes) == 0);
            sgm_tensor_free(a);
            sgm_tensor_free(b);
        }
        end(&many);
    }
    end(&one);
}

static int64_t loops_of(const training *t)
{
    return sgm__pool_posted(((const sgm__cpu *)t->handler->self)->pool);
}

TEST(each_run_has_as_many_loops)
{
    training t = begin(2, true);
    run(&t, 1);
    int64_t first = loops_of(&t);
    run(&t, 10);
    CHECK(first > 0 && first < 40);
    CHECK_INT(loops_of(&t), 11 * first);
    end(&t);
}

TEST(small_programs_have_one_thread)
{
    training t = begin(2, false);
    sgm_program_memory memory = sgm_program_get_memory(t.program);
    CHECK_INT(memory.threads, 1);
    CHECK(memory.seconds_of_one > 0);
    run(&t, 3);
    CHECK_INT(loops_of(&t), 0);
    end(&t);
}

static sgm_program_memory plan_product(sgm_handler *handler, int64_t side)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *g = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(side, side);
    sgm_value a = sgm_input_value(g, "a", SGM_FLOAT32, &shape);
    sgm_graph_add_output(g, "0", sgm_matmul(g, a, a));
    sgm_program *program = sgm_session_prepare(session, g);
    CHECK_OK(program);
    sgm_program_memory memory = sgm_program_get_memory(program);
    sgm_graph_free(g);
    sgm_session_free(session);
    return memory;
}

TEST(large_programs_have_all_threads)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2), *null = sgm_handler_create("null");
    sgm_program_memory small = plan_product(handler, 16), large = plan_product(handler, 1024);
    CHECK_INT(small.threads, 1);
    CHECK_INT(large.threads, 2);
    CHECK(large.seconds_of_threads > large.seconds_of_one / 2);
    CHECK(large.seconds_of_threads < large.seconds_of_one * 0.7);
    CHECK_INT(plan_product(null, 64).threads, 0);
    sgm_handler_free(null);
    sgm_handler_free(handler);
}

#define PRODUCTS 7
#define ROWS 33
#define DEPTH 301
#define COLUMNS 90

/* Products of PRODUCTS inputs by one, or by its transpose, in `threads` threads, for two values of it; only
 * product `only`, or all: -1. */
static void multiply_by_one(sgm_dtype dtype, bool transposed, int32_t threads, int only,
                            unsigned char (*results)[ROWS * COLUMNS * sizeof(float)])
{
    static const char *const names[PRODUCTS] = {"0", "1", "2", "3", "4", "5", "6"};
    sgm_handler *handler = sgm_handler_create("cpu", .threads = threads, .bfloat16 = "own");
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *g = sgm_graph_create();
    sgm_shape left = sgm_shape_of(ROWS, DEPTH), right = sgm_shape_of(DEPTH, COLUMNS);
    right = transposed ? sgm_shape_of(COLUMNS, DEPTH) : right;
    sgm_value b = sgm_input_value(g, "b", dtype, &right), by = transposed ? sgm_transpose(g, b) : b;
    for (int i = 0; i < PRODUCTS; i++)
        if (only < 0 || only == i) {
            sgm_value a = sgm_input_value(g, names[i], dtype, &left);
            sgm_graph_add_output(g, names[i], sgm_matmul(g, a, by));
        }
    sgm_program *program = sgm_session_prepare(session, g);
    CHECK_OK(program);
    static double numbers[ROWS * DEPTH + DEPTH * COLUMNS];
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < ROWS * DEPTH + DEPTH * COLUMNS; i++)
            numbers[i] = (double)((i * 7919 + 13 + run) % 257) / 128 - 1;
        feed(session, program, "b", dtype, &right, numbers);
        for (int i = 0; i < PRODUCTS; i++)
            if (only < 0 || only == i)
                feed(session, program, names[i], dtype, &left, numbers + 100 * i);
        CHECK_OK(sgm_session_run(session, program));
        for (int i = 0; i < PRODUCTS; i++)
            if (only < 0 || only == i) {
                sgm_tensor *tensor = sgm_tensor_create(dtype, DIMS(ROWS, COLUMNS));
                CHECK_OK(sgm_session_read(session, program, names[i], tensor));
                memcpy(results[run * PRODUCTS + i], sgm_tensor_const_data(tensor),
                       ROWS * COLUMNS * sgm_dtype_size(dtype));
                sgm_tensor_free(tensor);
            }
    }
    sgm_graph_free(g);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

/* An operand that several products read is packed once in a run, anew in the next one. */
TEST(products_by_one_operand_are_those_that_each_would_be)
{
    static unsigned char alone[2 * PRODUCTS][ROWS * COLUMNS * sizeof(float)],
        all[2 * PRODUCTS][sizeof *alone];
    for (int way = 0; way < 4; way++) {
        sgm_dtype dtype = way & 1 ? SGM_BFLOAT16 : SGM_FLOAT32;
        for (int only = 0; only < PRODUCTS; only++)
            multiply_by_one(dtype, way & 2, 1, only, alone);
        CHECK(memcmp(alone[0], alone[PRODUCTS], sizeof *alone) != 0);
        for (int32_t threads = 1; threads <= 3; threads++) {
            multiply_by_one(dtype, way & 2, threads, -1, all);
            CHECK(memcmp(all, alone, sizeof all) == 0);
        }
    }
}

/* x w0, x w1, (x w0) w1, x w2 */
TEST(steps_need_only_what_they_touch)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2);
    sgm_graph *g = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(64, 64);
    sgm_value x = sgm_input_value(g, "x", SGM_FLOAT32, &shape), w[3];
    for (int i = 0; i < 3; i++)
        w[i] = sgm_state(g, (const char *[]){"w0", "w1", "w2"}[i], SGM_FLOAT32, &shape);
    sgm_value first = sgm_matmul(g, x, w[0]);
    sgm_graph_add_output(g, "0", first);
    sgm_graph_add_output(g, "1", sgm_matmul(g, x, w[1]));
    sgm_graph_add_output(g, "2", sgm_matmul(g, first, w[1]));
    sgm_graph_add_output(g, "3", sgm_matmul(g, x, w[2]));
    sgm__plan *plan = NULL;
    CHECK(sgm__plan_create(g, handler, &plan) == SGM_OK);
    CHECK_INT(plan->step_count, 4);
    sgm__flow flow[4];
    for (int i = 0; i < 4; i++)
        flow[i] = (sgm__flow){.posts = true, .partner = -1, .product = -1, .packer = -1};
    sgm__flow_plan(plan, flow);
    CHECK_INT(flow[0].needs, -1);
    CHECK_INT(flow[1].needs, -1);
    CHECK_INT(flow[2].needs, 0); /* its operand */
    CHECK_INT(flow[3].needs, 0); /* its scratch memory is the first's */
    CHECK(flow[0].area != flow[1].area && flow[1].area != flow[2].area && flow[3].area == flow[0].area);
    sgm__plan_free(plan);
    sgm_graph_free(g);
    sgm_handler_free(handler);
}

TEST(nothing_is_allocated_while_it_runs)
{
    training t = begin(3, true);
    run(&t, 3);
    allocator_start(0);
    run(&t, 50);
    long allocations = atomic_load(&allocator_calls);
    allocator_stop();
    CHECK_INT(allocations, 0);
    end(&t);
}

TEST(handlers_come_and_go)
{
    for (int i = 0; i < 20; i++) {
        training t = begin(1 + i % 5, true);
        run(&t, 1 + i % 3);
        end(&t);
    }
}

#define MANY 300000

/* The bits of the largest and the smallest of x, found by `threads` threads. */
static void find_extremes(int threads, const float *x, uint32_t bits[2])
{
    const sgm_shape shape = sgm_shape_of(MANY);
    sgm_graph *graph = sgm_graph_create();
    sgm_handler *handler = sgm_handler_create("cpu", .threads = threads);
    sgm_session *session = sgm_session_create(handler);
    sgm_value value = sgm_input_value(graph, "x", SGM_FLOAT32, &shape);
    sgm_graph_add_output(graph, "0", sgm_reduce_max(graph, value, NULL, 0, false));
    sgm_graph_add_output(graph, "1", sgm_reduce_min(graph, value, NULL, 0, false));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    sgm_tensor *fed = sgm_tensor_create_from(SGM_FLOAT32, &shape, x);
    CHECK_OK(sgm_session_feed(session, program, "x", fed));
    CHECK_OK(sgm_session_run(session, program));
    for (int i = 0; i < 2; i++) {
        const sgm_shape scalar = sgm_scalar_shape();
        sgm_tensor *result = sgm_tensor_create(SGM_FLOAT32, &scalar);
        CHECK_OK(sgm_session_read(session, program, i == 0 ? "0" : "1", result));
        memcpy(&bits[i], sgm_tensor_const_data(result), sizeof bits[i]);
        sgm_tensor_free(result);
    }
    sgm_tensor_free(fed);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}

/* Of equal values the first is taken, and of NaNs the last, wherever the parts are that threads search. */
TEST(extremes_have_the_same_bits_for_any_number_of_threads)
{
    const uint32_t nans[] = {0x7fc00001, 0x7fc00002};
    uint32_t bits[2];
    float *x = calloc(MANY, sizeof *x);
    CHECK(x != NULL);
    for (int round = 0; round < 3; round++) {
        x[0] = round == 0 ? 0 : -0.0f; /* the others are 0 */
        if (round == 2) {
            memcpy(&x[MANY / 2], &nans[0], sizeof *x);
            memcpy(&x[MANY / 2 + 50000], &nans[1], sizeof *x);
        }
        for (int threads = 1; threads < 4; threads++) {
            find_extremes(threads, x, bits);
            for (int i = 0; i < 2; i++)
                CHECK_INT(bits[i], round == 0 ? 0 : round == 1 ? 0x80000000 : nans[1]);
        }
    }
    x[MANY / 2] = x[MANY / 2 + 50000] = 0;
    x[MANY - 1] = 2;
    x[123456] = -3;
    for (int threads = 1; threads < 4; threads++) {
        const float expected[] = {2, -3};
        find_extremes(threads, x, bits);
        CHECK(memcmp(bits, expected, sizeof expected) == 0);
    }
    free(x);
}
