/* An embedding that also makes the logits, of so many classes that copies of the logits would be most of the
 * memory: the step's numbers against a calculation in double, its bits against costs of one-hot rows, and
 * what the plan keeps in memory. */
#include "handlers/graphs.h"
#include "handlers/handler.h"

#include <math.h>
#include <stdlib.h>

#define CLASSES 1100
#define WIDTH 256 /* CLASSES * WIDTH floats are large enough to be moved */
#define BATCH 24

static int64_t id_of(int i)
{
    return (i * 37 + 5) % 11 * 97; /* some come twice */
}

static int64_t class_of(int i)
{
    return (int64_t)i * 131 % CLASSES;
}

static double weight_of(int64_t i)
{
    return sin((double)i * 0.7) * 0.3;
}

/* A step of gradient descent with rate 1. `shares`: the cost takes one-hot rows. `seen`: the logits are an
 * output. */
static sgm_graph *step_of(bool shares, bool seen)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value ids = sgm_input_value(graph, "ids", SGM_INT64, DIMS(BATCH));
    sgm_value classes = sgm_input_value(graph, "classes", SGM_INT64, DIMS(BATCH));
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(CLASSES, WIDTH)), gradient;
    sgm_value x = sgm_tanh(graph, sgm_gather(graph, w, ids, 0));
    sgm_value logits = sgm_matmul(graph, x, sgm_transpose(graph, w));
    sgm_value cost = shares ? sgm_softmax_cross_entropy_values(
                                  graph, logits, sgm_one_hot_classes(graph, classes, CLASSES, SGM_FLOAT32))
                            : sgm_class_cross_entropy(graph, logits, classes);
    cost = sgm_mean(graph, cost);
    sgm_graph_add_output(graph, "cost", cost);
    if (seen)
        sgm_graph_add_output(graph, "logits", logits);
    CHECK_OK(sgm_gradients(graph, cost, &w, 1, &gradient));
    sgm_assign(graph, w, sgm_subtract(graph, w, gradient));
    CHECK_OK(sgm_graph_status(graph));
    return graph;
}

typedef struct outcome {
    double cost;
    float *w, *logits; /* of the newest run; logits NULL: not seen */
} outcome;

static void feed_numbers(sgm_session *session, sgm_program *program, const char *name, int64_t (*of)(int i))
{
    double numbers[BATCH];
    for (int i = 0; i < BATCH; i++)
        numbers[i] = (double)of(i);
    feed(session, program, name, SGM_INT64, DIMS(BATCH), numbers);
}

static outcome run(sgm_graph *graph, const char *name, int threads, int steps, bool seen)
{
    sgm_handler *handler = sgm_handler_create(name, .threads = threads);
    sgm_session *session = sgm_session_create(handler);
    sgm_tensor *w = sgm_tensor_create(SGM_FLOAT32, DIMS(CLASSES, WIDTH));
    outcome o = {.w = malloc(sizeof(float) * CLASSES * WIDTH)};
    for (int64_t i = 0; i < (int64_t)CLASSES * WIDTH; i++)
        ((float *)sgm_tensor_data(w))[i] = (float)weight_of(i);
    CHECK_OK(sgm_session_set(session, "w", w));
    sgm_tensor_free(w);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed_numbers(session, program, "ids", id_of);
    feed_numbers(session, program, "classes", class_of);
    for (int i = 0; i < steps; i++)
        CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_read_number(session, program, "cost", &o.cost));
    if (seen) {
        sgm_tensor *logits = sgm_tensor_create(SGM_FLOAT32, DIMS(BATCH, CLASSES));
        CHECK_OK(sgm_session_read(session, program, "logits", logits));
        o.logits = malloc(sizeof(float) * BATCH * CLASSES);
        memcpy(o.logits, sgm_tensor_const_data(logits), sizeof(float) * BATCH * CLASSES);
        sgm_tensor_free(logits);
    }
    CHECK_OK(w = sgm_session_get(session, "w"));
    memcpy(o.w, sgm_tensor_const_data(w), sizeof(float) * CLASSES * WIDTH);
    sgm_tensor_free(w);
    sgm_session_free(session);
    sgm_handler_free(handler);
    return o;
}

static void discard(const outcome *o)
{
    free(o->w);
    free(o->logits);
}

/* The logits of one example, and the cost; `x` are its features. */
static double forward_in_double(int example, double *x, double *logits)
{
    double sum = 0;
    for (int64_t f = 0; f < WIDTH; f++)
        x[f] = tanh((double)(float)weight_of(id_of(example) * WIDTH + f));
    for (int64_t c = 0; c < CLASSES; c++) {
        logits[c] = 0;
        for (int64_t f = 0; f < WIDTH; f++)
            logits[c] += x[f] * (double)(float)weight_of(c * WIDTH + f);
        sum += exp(logits[c]);
    }
    return log(sum) - logits[class_of(example)];
}

/* The same step in double. Returns the cost. */
static double step_in_double(double *w, double *logits)
{
    double x[WIDTH], cost = 0;
    for (int64_t i = 0; i < (int64_t)CLASSES * WIDTH; i++)
        w[i] = (double)(float)weight_of(i);
    for (int e = 0; e < BATCH; e++) {
        double *own = logits + (int64_t)e * CLASSES, one = forward_in_double(e, x, own);
        double sum = exp(one + own[class_of(e)]), inner[WIDTH] = {0};
        cost += one / BATCH;
        for (int64_t c = 0; c < CLASSES; c++) {
            double g = (exp(own[c]) / sum - (c == class_of(e))) / BATCH;
            for (int64_t f = 0; f < WIDTH; f++) {
                w[c * WIDTH + f] -= g * x[f];
                inner[f] += g * (double)(float)weight_of(c * WIDTH + f);
            }
        }
        for (int64_t f = 0; f < WIDTH; f++)
            w[id_of(e) * WIDTH + f] -= inner[f] * (1 - x[f] * x[f]);
    }
    return cost;
}

static double largest_difference(const float *a, const double *b, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)a[i] - b[i]));
    return largest;
}

TEST(a_step_is_that_in_double)
{
    double *w = malloc(sizeof(double) * CLASSES * WIDTH), *logits = malloc(sizeof(double) * BATCH * CLASSES);
    double cost = step_in_double(w, logits);
    sgm_graph *graph = step_of(false, true);
    const char *const names[] = {"cpu", "debug:cpu", "reference"};
    for (int i = 0; i < 3; i++) {
        outcome o = run(graph, names[i], 2, 1, true);
        CHECK_NEAR(o.cost, cost, 1e-5);
        CHECK_NEAR(largest_difference(o.w, w, (int64_t)CLASSES * WIDTH), 0, 1e-6);
        CHECK_NEAR(largest_difference(o.logits, logits, (int64_t)BATCH * CLASSES), 0, 3e-5);
        discard(&o);
    }
    sgm_graph_free(graph);
    free(w);
    free(logits);
}

/* After three steps, for any number of threads, whether or not somebody looks at the logits. */
TEST(the_bits_are_those_of_one_hot_rows)
{
    sgm_graph *rows = step_of(true, false);
    outcome expected = run(rows, "cpu", 1, 3, false);
    for (int threads = 1; threads <= 3; threads++)
        for (int seen = 0; seen < 2; seen++) {
            sgm_graph *graph = step_of(false, seen);
            outcome o = run(graph, "cpu", threads, 3, seen);
            CHECK(o.cost == expected.cost);
            CHECK(memcmp(o.w, expected.w, sizeof(float) * CLASSES * WIDTH) == 0);
            discard(&o);
            sgm_graph_free(graph);
        }
    discard(&expected);
    sgm_graph_free(rows);
}

/* The step that makes the result of an operation with so many elements, and its node; -1: none does. */
static int32_t find(const sgm__plan *plan, const char *op, int64_t elements, int32_t *node)
{
    for (int32_t s = 0; s < plan->step_count; s++)
        for (int32_t i = 0; i < plan->steps[s].count; i++) {
            *node = plan->order[plan->steps[s].first + i];
            if (strcmp(plan->nodes[*node].op->name, op) == 0 &&
                sgm_shape_elements(&plan->nodes[*node].type.shape) == elements)
                return s;
        }
    *node = -1;
    return -1;
}

/* Without an output of them the logits become their gradient; the weights' gradient is made right before the
 * update, in the order of the weights; and there are no rows of shares. */
TEST(the_plan_keeps_the_logits_alone)
{
    int64_t bytes[2];
    for (int seen = 0; seen < 2; seen++) {
        sgm_graph *graph = step_of(false, seen);
        sgm_handler *handler = sgm_handler_create("cpu");
        sgm__plan *plan;
        int32_t logits, gradient, product, update, node;
        CHECK_OK(sgm__plan_create(graph, handler, &plan));
        CHECK_INT(find(plan, "one_hot", (int64_t)BATCH * CLASSES, &node), -1);
        CHECK(find(plan, "matmul", (int64_t)BATCH * CLASSES, &logits) >= 0);
        CHECK(find(plan, "class_cross_entropy_gradient", (int64_t)BATCH * CLASSES, &gradient) >= 0);
        CHECK_INT(plan->nodes[logits].place.offset == plan->nodes[gradient].place.offset, !seen);
        int32_t made = find(plan, "matmul", (int64_t)CLASSES * WIDTH, &product);
        int32_t written = find(plan, "subtract", (int64_t)CLASSES * WIDTH, &update);
        CHECK_INT(made + 1, written);
        CHECK_INT(plan->nodes[product].type.shape.dims[0], CLASSES);
        bytes[seen] = plan->arena_bytes;
        sgm__plan_free(plan);
        sgm_handler_free(handler);
        sgm_graph_free(graph);
    }
    CHECK(bytes[1] - bytes[0] >= (int64_t)BATCH * CLASSES * 4);
}

/* |(A B)'|. `seen`: A B itself is an output, too, and so it is not transposed. */
static sgm_graph *transposed_product(int64_t m, int64_t k, int64_t n, bool seen)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value a = sgm_input_value(graph, "a", SGM_FLOAT32, DIMS(m, k));
    sgm_value product = sgm_matmul(graph, a, sgm_input_value(graph, "b", SGM_FLOAT32, DIMS(k, n)));
    sgm_graph_add_output(graph, "y", sgm_absolute(graph, sgm_transpose(graph, product)));
    if (seen)
        sgm_graph_add_output(graph, "product", product);
    return graph;
}

static sgm_tensor *waves(int64_t rows, int64_t columns)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, DIMS(rows, columns));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)sgm_tensor_data(tensor))[i] = (float)weight_of(i);
    return tensor;
}

static sgm_tensor *run_transposed(int64_t m, int64_t k, int64_t n, bool seen)
{
    sgm_graph *graph = transposed_product(m, k, n, seen);
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2);
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    sgm_tensor *a = waves(m, k), *b = waves(k, n), *y = sgm_tensor_create(SGM_FLOAT32, DIMS(n, m));
    CHECK_OK(sgm_session_feed(session, program, "a", a));
    CHECK_OK(sgm_session_feed(session, program, "b", b));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_read(session, program, "y", y));
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    return y;
}

/* Products that are small, that fill no tile, whose sums have several parts. */
TEST(transposed_products_have_the_same_bits)
{
    const int64_t sizes[][3] = {{5, 7, 3}, {65, 100, 128}, {300, 700, 90}, {64, 256, 1100}, {1100, 256, 64}};
    for (int i = 0; i < 5; i++) {
        const int64_t *s = sizes[i];
        sgm_tensor *transposed = run_transposed(s[0], s[1], s[2], false);
        sgm_tensor *plain = run_transposed(s[0], s[1], s[2], true);
        CHECK(memcmp(sgm_tensor_const_data(transposed), sgm_tensor_const_data(plain),
                     sizeof(float) * (size_t)(s[0] * s[2])) == 0);
        sgm_tensor_free(transposed);
        sgm_tensor_free(plain);
    }
}

TEST(a_wrong_class_stops_the_run)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value classes = sgm_input_value(graph, "classes", SGM_INT64, DIMS(2));
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 3));
    sgm_graph_add_output(graph, "cost", sgm_class_cross_entropy(graph, x, classes));
    const char *const names[] = {"cpu", "reference"};
    for (int i = 0; i < 2; i++) {
        sgm_handler *handler = sgm_handler_create(names[i]);
        sgm_session *session = sgm_session_create(handler);
        sgm_program *program = sgm_session_prepare(session, graph);
        CHECK_OK(program);
        feed(session, program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(0, 1, 2, 3, 4, 5));
        for (int wrong = -1; wrong <= 3; wrong += 4) {
            feed(session, program, "classes", SGM_INT64, DIMS(2), NUMBERS(0, wrong));
            CHECK_ERROR(sgm_session_run(session, program), "out of range: there are 3 classes");
        }
        sgm_session_free(session);
        sgm_handler_free(handler);
    }
    sgm_graph_free(graph);
}

/* Infinite logits of other classes (masked ones) cost nothing, that of the right one infinitely much. */
TEST(masked_classes)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value classes = sgm_input_value(graph, "classes", SGM_INT64, DIMS(2));
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 3)), gradient;
    sgm_value cost = sgm_class_cross_entropy(graph, x, classes);
    sgm_graph_add_output(graph, "cost", cost);
    CHECK_OK(sgm_gradients(graph, sgm_slice(graph, cost, 0, 0, 1, 1), &x, 1, &gradient));
    sgm_graph_add_output(graph, "gradient", gradient);
    sgm_handler *handler = sgm_handler_create("cpu");
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(0, 0, -INFINITY, 0, 0, -INFINITY));
    feed(session, program, "classes", SGM_INT64, DIMS(2), NUMBERS(1, 2));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "gradient", NUMBERS(0.5, -0.5, 0, 0, 0, 0), 1e-7);
    sgm_tensor *costs = sgm_tensor_create(SGM_FLOAT32, DIMS(2));
    CHECK_OK(sgm_session_read(session, program, "cost", costs));
    CHECK_NEAR(((const float *)sgm_tensor_const_data(costs))[0], 0.6931471805599453, 1e-6);
    CHECK(isinf(((const float *)sgm_tensor_const_data(costs))[1]));
    sgm_tensor_free(costs);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}
