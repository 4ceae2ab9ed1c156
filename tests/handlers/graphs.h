/* What tests of handlers share: tensors from numbers, sessions that check as they go. */
#ifndef SIGMA_TEST_GRAPHS_H
#define SIGMA_TEST_GRAPHS_H

#include "test.h"
#include <sigma/graph.h>
#include <sigma/handler.h>

#define DIMS(...) (&(const sgm_shape)TEST_SHAPE(__VA_ARGS__))
#define TEST_SHAPE(...)                                                                                      \
    {                                                                                                        \
        (int32_t) SGM_SHAPE_COUNT(__VA_ARGS__),                                                              \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define SCALAR (&(const sgm_shape){0})
#define NUMBERS(...) ((const double[]){__VA_ARGS__})

__attribute__((unused)) static sgm_tensor *tensor_of(sgm_dtype dtype, const sgm_shape *shape,
                                                     const double *values)
{
    sgm_tensor *tensor = sgm_tensor_create(dtype, shape);
    CHECK_OK(tensor);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)sgm_shape_elements(shape)));
    return tensor;
}

__attribute__((unused)) static void set_state(sgm_session *session, const char *name, sgm_dtype dtype,
                                              const sgm_shape *shape, const double *values)
{
    sgm_tensor *tensor = tensor_of(dtype, shape, values);
    CHECK_OK(sgm_session_set(session, name, tensor));
    sgm_tensor_free(tensor);
}

__attribute__((unused)) static void feed(sgm_session *session, sgm_program *program, const char *name,
                                         sgm_dtype dtype, const sgm_shape *shape, const double *values)
{
    sgm_tensor *tensor = tensor_of(dtype, shape, values);
    CHECK_OK(sgm_session_feed(session, program, name, tensor));
    sgm_tensor_free(tensor);
}

/* An output's elements, in its own shape, are `expected`. */
__attribute__((unused)) static void check_output(sgm_session *session, sgm_program *program, const char *name,
                                                 const double *expected, double tolerance)
{
    sgm_type type = sgm_program_output_type(program, name);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    double values[64];
    size_t count = (size_t)sgm_shape_elements(&type.shape);
    CHECK(count <= 64);
    CHECK_OK(sgm_session_read(session, program, name, tensor));
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(values[i], expected[i], tolerance);
    sgm_tensor_free(tensor);
}

#endif
