/* Products of bfloat16 through float32, of large weights that are kept in float32: the product rounds them as
 * it reads them. The same bits as of rounded copies, which the debug handler makes, and no such copy in
 * memory. */
#include "handlers/graphs.h"
#include "handlers/handler.h"

#include <math.h>

#define SIDE 520 /* SIDE * SIDE floats are large enough */

/* Both products of a layer's weights: as they are, and transposed as gradients want them. */
static sgm_graph *products(int64_t rows)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_BFLOAT16, DIMS(rows, SIDE));
    sgm_value w = sgm_cast(graph, sgm_state(graph, "w", SGM_FLOAT32, DIMS(SIDE, SIDE)), SGM_BFLOAT16);
    sgm_value y = sgm_matmul(graph, x, w);
    sgm_graph_add_output(graph, "y", y);
    sgm_graph_add_output(graph, "z", sgm_matmul(graph, sgm_tanh(graph, y), sgm_transpose(graph, w)));
    CHECK_OK(sgm_graph_status(graph));
    return graph;
}

static sgm_tensor *waves(sgm_dtype dtype, int64_t rows, int64_t columns)
{
    sgm_tensor *values = sgm_tensor_create(SGM_FLOAT32, DIMS(rows, columns));
    sgm_tensor *tensor = sgm_tensor_create(dtype, DIMS(rows, columns));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)sgm_tensor_data(values))[i] = (float)(sin((double)i * 0.37) * 0.1);
    CHECK_OK(sgm_tensor_assign(tensor, values));
    sgm_tensor_free(values);
    return tensor;
}

typedef struct outcome {
    sgm_tensor *y, *z;
} outcome;

static outcome run(const sgm_graph *graph, const char *name, int threads, int64_t rows)
{
    sgm_handler *handler = sgm_handler_create(name, .threads = threads, .bfloat16 = "float32");
    CHECK_OK(handler);
    sgm_session *session = sgm_session_create(handler);
    sgm_tensor *w = waves(SGM_FLOAT32, SIDE, SIDE), *x = waves(SGM_BFLOAT16, rows, SIDE);
    CHECK_OK(sgm_session_set(session, "w", w));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    CHECK_OK(sgm_session_feed(session, program, "x", x));
    CHECK_OK(sgm_session_run(session, program));
    outcome o = {sgm_tensor_create(SGM_BFLOAT16, DIMS(rows, SIDE)),
                 sgm_tensor_create(SGM_BFLOAT16, DIMS(rows, SIDE))};
    CHECK_OK(sgm_session_read(session, program, "y", o.y));
    CHECK_OK(sgm_session_read(session, program, "z", o.z));
    sgm_tensor_free(w);
    sgm_tensor_free(x);
    sgm_session_free(session);
    sgm_handler_free(handler);
    return o;
}

static void check_equal(const outcome *a, const outcome *b, int64_t rows)
{
    size_t bytes = (size_t)(rows * SIDE) * 2;
    CHECK(memcmp(sgm_tensor_const_data(a->y), sgm_tensor_const_data(b->y), bytes) == 0);
    CHECK(memcmp(sgm_tensor_const_data(a->z), sgm_tensor_const_data(b->z), bytes) == 0);
}

static void discard(const outcome *o)
{
    sgm_tensor_free(o->y);
    sgm_tensor_free(o->z);
}

/* Few rows, some that do not fill tiles, and so many that tasks pack their own rows. */
TEST(the_bits_are_those_of_rounded_copies)
{
    const int64_t rows[] = {1, 63, 64, 71, 700};
    for (int i = 0; i < 5; i++) {
        sgm_graph *graph = products(rows[i]);
        outcome expected = run(graph, "debug:cpu", 1, rows[i]);
        for (int threads = 1; threads <= 3; threads++) {
            outcome o = run(graph, "cpu", threads, rows[i]);
            check_equal(&o, &expected, rows[i]);
            discard(&o);
        }
        discard(&expected);
        sgm_graph_free(graph);
    }
}

/* How many results the plan has with so many elements. */
static int count_of_size(const sgm_graph *graph, int64_t elements)
{
    sgm_handler *handler = sgm_handler_create("cpu", .bfloat16 = "float32");
    sgm__plan *plan;
    int count = 0;
    CHECK_OK(sgm__plan_create(graph, handler, &plan));
    for (int32_t i = 0; i < plan->order_count; i++)
        count += sgm_shape_elements(&plan->nodes[plan->order[i]].type.shape) == elements;
    sgm__plan_free(plan);
    sgm_handler_free(handler);
    return count;
}

TEST(no_copy_of_the_weights)
{
    for (int64_t rows = 63; rows <= 64; rows++) {
        sgm_graph *graph = products(rows);
        CHECK_INT(count_of_size(graph, (int64_t)SIDE * SIDE) == 0, rows == 64);
        sgm_graph_free(graph);
    }
}

/* An embedding rounds the rows that it looks up, not all that it has. */
TEST(rows_are_rounded_after_they_are_looked_up)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value ids = sgm_input_value(graph, "ids", SGM_INT64, DIMS(2));
    sgm_value w = sgm_cast(graph, sgm_state(graph, "w", SGM_FLOAT32, DIMS(5, 3)), SGM_BFLOAT16);
    sgm_graph_add_output(graph, "rows", sgm_gather(graph, w, ids, 0));
    CHECK_INT(count_of_size(graph, 15), 0);
    sgm_handler *handler = sgm_handler_create("cpu");
    sgm_session *session = sgm_session_create(handler);
    sgm_tensor *x = waves(SGM_FLOAT32, 5, 3), *rounded = waves(SGM_BFLOAT16, 5, 3);
    CHECK_OK(sgm_session_set(session, "w", x));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "ids", SGM_INT64, DIMS(2), NUMBERS(4, 1));
    CHECK_OK(sgm_session_run(session, program));
    double all[15], expected[6];
    CHECK_OK(sgm_tensor_read(rounded, all, 15));
    for (int i = 0; i < 6; i++)
        expected[i] = all[(i < 3 ? 12 : 0) + i];
    check_output(session, program, "rows", expected, 0);
    sgm_tensor_free(x);
    sgm_tensor_free(rounded);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}
