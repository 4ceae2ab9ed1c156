/* Small graphs on the reference handler: numbers in, numbers out. */
#ifndef OP_VALUES_H
#define OP_VALUES_H

#include "test.h"
#include <sigma/graph.h>
#include <sigma/handler.h>

#define OP_LIST(...)                                                                                         \
    sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[])                                       \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define OP_DIMS(...) (&(const sgm_shape){SGM_SHAPE_COUNT(__VA_ARGS__), {__VA_ARGS__}})
#define OP_AXES(...) ((const int32_t[]){__VA_ARGS__})

/* A constant of a shape; a NULL shape: a vector of all numbers. */
static inline sgm_value op_constant(sgm_graph *graph, sgm_dtype dtype, const sgm_shape *shape, size_t count,
                                    const double *numbers)
{
    sgm_shape line = sgm_shape_of((int64_t)count);
    sgm_tensor *tensor = sgm_tensor_create(dtype, shape != NULL ? shape : &line);
    CHECK_OK(tensor);
    CHECK_OK(sgm_tensor_write(tensor, numbers, count));
    sgm_value value = sgm_constant(graph, tensor);
    sgm_tensor_free(tensor);
    return value;
}

/* The value, computed; NULL and an error if that fails. */
static inline sgm_tensor *op_compute(sgm_graph *graph, sgm_value value)
{
    sgm_graph_add_output(graph, "y", value);
    sgm_handler *handler = sgm_handler_create("reference");
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    sgm_tensor *result = NULL;
    if (program != NULL && sgm_session_run(session, program) == SGM_OK) {
        sgm_type type = sgm_program_output_type(program, "y");
        result = sgm_tensor_create(type.dtype, &type.shape);
        CHECK_OK(sgm_session_read(session, program, "y", result));
    }
    sgm_session_free(session);
    sgm_handler_free(handler);
    return result;
}

/* Computes `value`, compares it with the numbers and frees the graph. */
static inline void op_expect(sgm_graph *graph, sgm_value value, size_t count, const double *expected)
{
    sgm_tensor *result = op_compute(graph, value);
    if (result == NULL)
        TEST_FAIL("%s", sgm_last_error());
    double numbers[256];
    CHECK(count <= 256);
    CHECK_INT(sgm_shape_elements(sgm_tensor_shape(result)), count);
    CHECK_OK(sgm_tensor_read(result, numbers, count));
    for (size_t i = 0; i < count; i++)
        if (!test_near(numbers[i], expected[i], 1e-14 * (1 + fabs(expected[i]))))
            TEST_FAIL("element %zu is %.17g, expected %.17g", i, numbers[i], expected[i]);
    sgm_tensor_free(result);
    sgm_graph_free(graph);
}

/* The gradient of the sum of `value` by `x`. */
static inline sgm_value op_gradient(sgm_graph *graph, sgm_value value, sgm_value x)
{
    sgm_value gradient;
    CHECK_OK(sgm_gradients(graph, sgm_sum(graph, value), &x, 1, &gradient));
    return gradient;
}

#endif
