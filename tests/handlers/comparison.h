/* Runs of one graph on several handlers, with random inputs. */
#ifndef SIGMA_TEST_COMPARISON_H
#define SIGMA_TEST_COMPARISON_H

#include "base/base.h"
#include "handlers/cpu/cpu.h"
#include "handlers/graphs.h"

#define MAXIMUM_INPUTS 3
#define MAXIMUM_OUTPUTS 4

typedef struct input {
    sgm_dtype dtype;
    sgm_shape shape;
    double minimum, maximum;
} input;

__attribute__((unused)) static sgm_tensor *random_input(const input *description, sgm__random *random)
{
    sgm_tensor *tensor = sgm_tensor_create(description->dtype, &description->shape);
    CHECK_OK(tensor);
    sgm_array array = {.dtype = description->dtype, .data = sgm_tensor_data(tensor)};
    int64_t count = sgm_shape_elements(&description->shape);
    for (int64_t i = 0; i < count; i++)
        sgm_array_store(&array, i,
                        description->minimum +
                            (description->maximum - description->minimum) * sgm__random_uniform(random));
    return tensor;
}

/* Runs on one handler; outputs "0", "1", ... as new tensors. */
__attribute__((unused)) static int run_on(const char *name, int threads, const char *dense,
                                          const sgm_graph *graph, const input *inputs, int count,
                                          sgm_tensor **outputs)
{
    static const char *const names[] = {"0", "1", "2", "3"};
    sgm_handler_options options = {.struct_size = sizeof options, .threads = threads, .dense = dense};
    sgm_handler *handler = sgm_handler_create_with(name, &options);
    CHECK_OK(handler);
    if (strcmp(name, "cpu") == 0)
        ((sgm__cpu *)handler->self)->shares_all = true; /* small ones, too */
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    sgm__random random = sgm__random_make(9, 1);
    for (int i = 0; i < count; i++) {
        sgm_tensor *tensor = random_input(&inputs[i], &random);
        if (sgm_program_has_input(program, names[i]))
            CHECK_OK(sgm_session_feed(session, program, names[i], tensor));
        sgm_tensor_free(tensor);
    }
    CHECK_OK(sgm_session_run(session, program));
    int output = 0;
    for (; output < MAXIMUM_OUTPUTS && sgm_program_has_output(program, names[output]); output++) {
        sgm_type type = sgm_program_output_type(program, names[output]);
        outputs[output] = sgm_tensor_create(type.dtype, &type.shape);
        CHECK_OK(sgm_session_read(session, program, names[output], outputs[output]));
    }
    sgm_session_free(session);
    sgm_handler_free(handler);
    return output;
}

__attribute__((unused)) static void check_near(const sgm_tensor *got, const sgm_tensor *expected,
                                               double tolerance, const char *what)
{
    sgm_array a = {.dtype = sgm_tensor_dtype(got), .data = (void *)(uintptr_t)sgm_tensor_const_data(got)};
    sgm_array b = {.dtype = sgm_tensor_dtype(got),
                   .data = (void *)(uintptr_t)sgm_tensor_const_data(expected)};
    int64_t count = sgm_shape_elements(sgm_tensor_shape(got));
    for (int64_t i = 0; i < count; i++) {
        double x = sgm_array_load(&a, i), y = sgm_array_load(&b, i);
        if (!test_near(x, y, tolerance * fmax(1, fabs(y))))
            TEST_FAIL("element %lld is %.9g, the reference has %.9g (%s)", (long long)i, x, y, what);
    }
}

__attribute__((unused)) static bool same_bits(const sgm_tensor *a, const sgm_tensor *b)
{
    size_t size = sgm_dtype_size(sgm_tensor_dtype(a));
    return memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b),
                  (size_t)sgm_shape_elements(sgm_tensor_shape(a)) * size) == 0;
}

#define F32(...)                                                                                             \
    {                                                                                                        \
        SGM_FLOAT32, TEST_SHAPE(__VA_ARGS__), -2, 2                                                          \
    }

#endif
