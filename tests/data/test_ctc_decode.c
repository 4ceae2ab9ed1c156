/* What outputs of a network with the cost ctc say. */
#include "test.h"

#include <sigma/text.h>

static sgm_tensor *outputs_of(const double *classes, int64_t batch, int64_t time)
{
    sgm_shape shape = sgm_shape_of(batch, time, 4);
    sgm_tensor *outputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; i < batch; i++)
        for (int64_t t = 0; t < time; t++)
            sgm_tensor_set(outputs, (const int64_t[]){i, t, (int64_t)classes[i * time + t]}, 0.9);
    return outputs;
}

static void check_labels(sgm_tensor *labels, const int64_t *expected, int64_t count)
{
    CHECK_OK(labels);
    CHECK_INT(sgm_tensor_dtype(labels), SGM_INT64);
    CHECK_INT(sgm_shape_elements(sgm_tensor_shape(labels)), count);
    const int64_t *said = sgm_tensor_const_data(labels);
    for (int64_t i = 0; i < count; i++)
        CHECK_INT(said[i], expected[i]);
    sgm_tensor_free(labels);
}

TEST(equal_neighbours_are_one_and_blanks_are_silent)
{
    sgm_tensor *outputs = outputs_of((const double[]){0, 1, 1, 0, 1, 3, 2, 2, 2, 2, 0, 0}, 2, 6);
    check_labels(sgm_ctc_decode(outputs, NULL, 0),
                 (const int64_t[]){1, 1, 3, -1, -1, -1, 2, -1, -1, -1, -1, -1}, 12);
    check_labels(sgm_ctc_decode(outputs, (const int64_t[]){3, 0}, 0),
                 (const int64_t[]){1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}, 12);
    check_labels(sgm_ctc_decode(outputs, NULL, 2),
                 (const int64_t[]){0, 1, 0, 1, 3, -1, 0, -1, -1, -1, -1, -1}, 12);
    sgm_tensor_free(outputs);
}

TEST(wrong_arguments_are_told)
{
    sgm_tensor *outputs = outputs_of((const double[]){0, 1}, 1, 2);
    sgm_shape flat = sgm_shape_of(2, 4);
    sgm_tensor *reshaped = sgm_tensor_reshape(outputs, &flat);
    CHECK_ERROR(sgm_ctc_decode(NULL, NULL, 0), "wants outputs (batch, time, classes), not NULL");
    CHECK_ERROR(sgm_ctc_decode(reshaped, NULL, 0), "wants outputs (batch, time, classes), got (2, 4)");
    CHECK_ERROR(sgm_ctc_decode(outputs, NULL, 4), "the blank 4 is none of the 4 classes");
    CHECK_ERROR(sgm_ctc_decode(outputs, (const int64_t[]){3}, 0),
                "example 0 has a length of 3, but there are 2 steps");
    sgm_tensor_free(reshaped);
    sgm_tensor_free(outputs);
}
