/* Constants: what is computed of them alone is computed once, weights that are constant give the values of
 * those that are fed, and what was packed of them is kept once. */
#include "handlers/cpu/run/packed_store.h"
#include "handlers/graphs.h"
#include "handlers/session.h"

#include <math.h>

#define MAXIMUM 8

/* A graph of an input x and of tensors that are constants or, for comparison, inputs as well. */
typedef struct network {
    sgm_graph *graph;
    bool constant;
    sgm_tensor *tensors[MAXIMUM];
    int count;
} network;

static sgm_tensor *numbers(const sgm_shape *shape, int seed)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, shape);
    CHECK_OK(tensor);
    float *data = sgm_tensor_data(tensor);
    for (int64_t i = 0; i < sgm_shape_elements(shape); i++)
        data[i] = (float)sin((double)(i * 7 + 13 * seed + 1));
    return tensor;
}

static const char *name_of(int index)
{
    static const char *const names[MAXIMUM] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    return names[index];
}

static sgm_value given(network *n, const sgm_shape *shape)
{
    sgm_tensor *tensor = n->tensors[n->count] = numbers(shape, n->count + 2);
    const char *name = name_of(n->count++);
    return n->constant ? sgm_constant(n->graph, tensor) : sgm_input_value(n->graph, name, SGM_FLOAT32, shape);
}

typedef sgm_value (*body)(network *n, sgm_value x);

/* The output for x of this shape; *text, if given, is the program's. */
static sgm_tensor *run(const char *handler_name, body record, const sgm_shape *shape, bool constant,
                       char **text)
{
    network n = {.graph = sgm_graph_create(), .constant = constant};
    sgm_handler *handler = sgm_handler_create(handler_name, .threads = 2);
    sgm_session *session = sgm_session_create(handler);
    sgm_value y = record(&n, sgm_input_value(n.graph, "x", SGM_FLOAT32, shape));
    sgm_graph_add_output(n.graph, "y", y);
    sgm_program *program = sgm_session_prepare(session, n.graph);
    CHECK_OK(program);
    sgm_tensor *x = numbers(shape, 1), *output;
    CHECK_OK(sgm_session_feed(session, program, "x", x));
    for (int i = 0; i < n.count; i++) {
        if (!constant)
            CHECK_OK(sgm_session_feed(session, program, name_of(i), n.tensors[i]));
        sgm_tensor_free(n.tensors[i]);
    }
    sgm_type type = sgm_program_output_type(program, "y");
    output = sgm_tensor_create(type.dtype, &type.shape);
    for (int i = 0; i < 2; i++) /* the second run finds what the first one left */
        CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_read(session, program, "y", output));
    if (text != NULL)
        *text = sgm_program_text(program);
    sgm_tensor_free(x);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(n.graph);
    return output;
}

/* Constants give what inputs give on the reference, up to `tolerance` of the largest element, or, if it is 0,
 * the bits of inputs on the same handler. */
static void compare(body record, const sgm_shape *shape, double tolerance)
{
    sgm_tensor *actual = run("cpu", record, shape, true, NULL);
    sgm_tensor *expected = run(tolerance > 0 ? "reference" : "cpu", record, shape, false, NULL);
    const float *a = sgm_tensor_const_data(actual), *b = sgm_tensor_const_data(expected);
    int64_t count = sgm_shape_elements(sgm_tensor_shape(expected));
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(b[i]));
    CHECK(largest > 0);
    for (int64_t i = 0; i < count; i++)
        CHECK_NEAR(a[i], b[i], tolerance * (double)largest);
    sgm_tensor_free(actual);
    sgm_tensor_free(expected);
}

/* Whether the program of constants has the operation as a step. */
static bool computes(const char *handler, body record, const sgm_shape *shape, const char *operation)
{
    char *text, line[64];
    sgm_tensor_free(run(handler, record, shape, true, &text));
    snprintf(line, sizeof line, " = %s ", operation);
    bool found = strstr(text, line) != NULL;
    sgm_string_free(text);
    return found;
}

/* --- computed once --- */

/* x * sqrt(a a), beside a view of what is computed, and something too large to be kept. */
static sgm_value arithmetic(network *n, sgm_value x)
{
    sgm_graph *g = n->graph;
    sgm_value a = given(n, DIMS(1, 300)), b = given(n, DIMS(300, 1));
    sgm_value root = sgm_square_root(g, sgm_multiply(g, a, a));
    sgm_value turned = sgm_permute(g, sgm_exp(g, b), (const int32_t[]){1, 0});
    sgm_value large = sgm_sigmoid(g, sgm_matmul(g, b, a)); /* 300 x 300 of 600 */
    return sgm_add(g, sgm_multiply(g, x, root), sgm_multiply(g, sgm_matmul(g, x, large), turned));
}

TEST(what_is_computed_of_constants_is_computed_once)
{
    compare(arithmetic, DIMS(3, 300), 0);
    CHECK(!computes("cpu", arithmetic, DIMS(3, 300), "square_root"));
    CHECK(!computes("cpu", arithmetic, DIMS(3, 300), "exp"));
    CHECK(computes("cpu", arithmetic, DIMS(3, 300), "sigmoid"));
    CHECK(!computes("reference", arithmetic, DIMS(3, 300), "square_root"));
}

static sgm_value constants_alone(network *n, sgm_value x)
{
    sgm_value a = given(n, DIMS(2, 3));
    sgm_graph_add_output(n->graph, "also", sgm_exp(n->graph, a));
    return sgm_add(n->graph, x, sgm_live_number(n->graph, 2));
}

/* A program that gives what constants make does not look for it in a program that does the same. */
TEST(an_output_may_be_made_of_constants_alone)
{
    compare(constants_alone, DIMS(2, 3), 0);
    CHECK(computes("cpu", constants_alone, DIMS(2, 3), "exp"));
}

/* --- convolutions --- */

/* A batch norm as it predicts. */
static sgm_value normalised(network *n, sgm_value x)
{
    sgm_graph *g = n->graph;
    sgm_value weights = given(n, DIMS(6, 4, 3, 3)), means = given(n, DIMS(6, 1, 1));
    sgm_value deviations = given(n, DIMS(1, 6, 1, 1)), gains = given(n, DIMS(6, 1, 1));
    sgm_value y =
        sgm_convolution(g, x, weights, (sgm_value){-1}, SGM_WINDOW(.before = {1, 1}, .after = {1, 1}));
    y = sgm_divide(g, sgm_subtract(g, y, means), sgm_add(g, deviations, sgm_number(g, 2)));
    return sgm_add(g, sgm_multiply(g, gains, y), sgm_number(g, 0.5));
}

TEST(a_batch_norm_behind_a_convolution_is_in_its_weights)
{
    const char *const operations[] = {"subtract", "divide", "multiply", "add"};
    compare(normalised, DIMS(2, 4, 9, 9), 1e-5);
    for (int i = 0; i < 4; i++) {
        CHECK(!computes("cpu", normalised, DIMS(2, 4, 9, 9), operations[i]));
        CHECK(i == 3 || computes("reference", normalised, DIMS(2, 4, 9, 9), operations[i]));
    }
}

/* The convolution has two readers; a factor for each column is none of a channel. */
static sgm_value read_twice(network *n, sgm_value x)
{
    sgm_graph *g = n->graph;
    sgm_value weights = given(n, DIMS(3, 3, 1, 1)), gains = given(n, DIMS(3, 1, 1)), more = given(n, DIMS(5));
    sgm_value y = sgm_convolution(g, x, weights, (sgm_value){-1}, NULL);
    sgm_value z = sgm_convolution(g, x, sgm_negate(g, weights), (sgm_value){-1}, NULL);
    return sgm_add(g, sgm_add(g, sgm_multiply(g, y, gains), y), sgm_multiply(g, z, more));
}

TEST(a_convolution_with_other_readers_or_factors_stays)
{
    compare(read_twice, DIMS(2, 3, 4, 5), 1e-5);
    CHECK(computes("cpu", read_twice, DIMS(2, 3, 4, 5), "multiply"));
}

/* Every way in which convolutions are computed: by panels with groups and a stride, Winograd's, slid,
 * pointwise with several blocks of pixels. Each keeps its results between limits, as it writes them. */
static sgm_value convolutions(network *n, sgm_value x)
{
    sgm_graph *g = n->graph;
    const sgm_value none = {-1};
    x = sgm_convolution(g, x, given(n, DIMS(6, 10, 1, 1)), given(n, DIMS(6)), NULL);
    x = sgm_minimum(g, sgm_relu(g, x), sgm_number(g, 1.5));
    x = sgm_convolution(g, x, given(n, DIMS(32, 3, 5, 5)), given(n, DIMS(32)),
                        SGM_WINDOW(.stride = {2, 2}, .before = {2, 2}, .after = {2, 2}, .groups = 2));
    x = sgm_maximum(g, sgm_minimum(g, x, sgm_number(g, 2)), sgm_number(g, -1));
    x = sgm_convolution(g, x, given(n, DIMS(48, 32, 3, 3)), none,
                        SGM_WINDOW(.before = {1, 1}, .after = {1, 1}));
    x = sgm_minimum(g, sgm_relu(g, x), sgm_number(g, 6));
    x = sgm_convolution(g, x, given(n, DIMS(48, 1, 3, 3)), none, SGM_WINDOW(.groups = 48));
    return sgm_maximum(g, x, sgm_number(g, -0.5));
}

TEST(convolutions_of_constant_weights)
{
    compare(convolutions, DIMS(2, 10, 31, 35), 1e-5);
}

/* --- products --- */

/* Weights that are read by several products, as they lie and transposed, of which depths, and columns at the
 * edge of a panel, differ. */
static sgm_value products(network *n, sgm_value x)
{
    sgm_graph *g = n->graph;
    sgm_value wide = given(n, DIMS(70, 530)), back = given(n, DIMS(70, 530)), last = given(n, DIMS(70, 9));
    sgm_value turned = sgm_permute(g, back, (const int32_t[]){1, 0});
    for (int i = 0; i < 3; i++)
        x = sgm_tanh(g, sgm_matmul(g, sgm_tanh(g, sgm_matmul(g, x, wide)), turned));
    return sgm_matmul(g, x, last);
}

TEST(products_of_constant_weights)
{
    compare(products, DIMS(1, 70), 0);
    compare(products, DIMS(5, 70), 0);
    compare(products, DIMS(130, 70), 0);
    compare(products, DIMS(3, 5, 70), 0);
}

/* Bytes of results are more than one program makes. */
static sgm_value large_products(network *n, sgm_value x)
{
    sgm_graph *g = n->graph;
    for (int i = 0; i < 4; i++)
        x = sgm_tanh(g, sgm_matmul(g, x, sgm_tanh(g, given(n, DIMS(1600, 1600)))));
    return x;
}

TEST(large_constants_are_computed_in_parts)
{
    compare(large_products, DIMS(2, 1600), 0);
}

/* --- memory --- */

#define ROWS 1300              /* of 256 numbers: more than 1 MiB, so that programs need not hold them */
#define PAGE ((size_t)1 << 16) /* no system has larger ones */

/* Whether all pages behind the first and before the last are 0, of ROWS rows of 256 numbers. */
static bool is_forgotten(const unsigned char *bytes)
{
    for (size_t i = PAGE; i < (size_t)ROWS * 256 * sizeof(float) - PAGE; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* The weights of a product are packed; those that something else reads, too, stay as they were. */
TEST(packed_constants_take_no_other_memory)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2);
    sgm_session *session = sgm_session_create(handler);
    sgm_tensor *weights = numbers(DIMS(ROWS, 256), 1), *table = numbers(DIMS(ROWS, 256), 2);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(8, ROWS));
    sgm_value y = sgm_matmul(graph, x, sgm_constant(graph, weights)), t = sgm_constant(graph, table);
    sgm_graph_add_output(graph, "y", sgm_add(graph, y, sgm_matmul(graph, x, t)));
    sgm_graph_add_output(graph, "z",
                         sgm_gather(graph, t, sgm_input_value(graph, "i", SGM_INT64, DIMS(1)), 0));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    int found = 0, kept = 0;
    for (int32_t i = 0; i < program->plan->node_count; i++) {
        const sgm__node *node = &program->plan->nodes[i];
        if (node->place.store != SGM__STORE_CONSTANT || sgm__type_bytes(&node->type) < ROWS * 256 * 4)
            continue;
        bool forgotten = is_forgotten(program->plan->constants + node->place.offset);
        found += forgotten;
        kept += !forgotten;
    }
    CHECK_INT(found, 1);
    CHECK_INT(kept, 1);
    const int64_t bytes = ROWS * 256 * (int64_t)sizeof(float);
    sgm_program_memory memory = sgm_program_get_memory(program);
    CHECK(memory.constants >= bytes && memory.constants < bytes + 4096);
    CHECK(memory.packed >= 2 * bytes && memory.packed < 3 * bytes);
    CHECK(memory.packed_by_all >= memory.packed);
    sgm_tensor_free(weights);
    sgm_tensor_free(table);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}

/* x W, of `rows` rows of x, in a session of its own. */
static sgm_session *multiply(sgm_handler *handler, sgm_tensor *weights, int64_t rows)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_session *session = sgm_session_create(handler);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(rows, ROWS));
    sgm_graph_add_output(graph, "y", sgm_matmul(graph, x, sgm_constant(graph, weights)));
    CHECK_OK(sgm_session_prepare(session, graph));
    sgm_graph_free(graph);
    return session;
}

/* Programs of one handler that pack the same share it, however many they are; others do not, and nothing is
 * left behind. */
TEST(what_is_packed_is_kept_once)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2);
    sgm__packed_store *store = ((sgm__cpu *)handler->self)->store;
    sgm_tensor *weights = numbers(DIMS(ROWS, 256), 1), *others = numbers(DIMS(ROWS, 256), 2);
    for (int round = 0; round < 3; round++) {
        sgm_session *first = multiply(handler, weights, 1);
        size_t bytes = sgm__packed_store_bytes(store);
        CHECK(bytes >= (size_t)ROWS * 256 * sizeof(float));
        sgm_session *second = multiply(handler, weights, 64);
        CHECK_INT(sgm__packed_store_bytes(store), bytes);
        sgm_session *third = multiply(handler, others, 1);
        CHECK(sgm__packed_store_bytes(store) >= 2 * bytes);
        sgm_session_free(first);
        sgm_session_free(third);
        CHECK_INT(sgm__packed_store_bytes(store), bytes);
        sgm_session_free(second);
        CHECK_INT(sgm__packed_store_bytes(store), 0);
    }
    sgm_tensor_free(weights);
    sgm_tensor_free(others);
    sgm_handler_free(handler);
}
