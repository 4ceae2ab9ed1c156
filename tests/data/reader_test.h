/* Helpers of the tests of readers. */
#ifndef SIGMA_READER_TEST_H
#define SIGMA_READER_TEST_H

#include "data_test.h"

__attribute__((unused)) static sgm_source *memory(const char *text)
{
    return sgm_memory_source("m.txt", text, strlen(text));
}

/* Element `index` in row-major order. */
__attribute__((unused)) static double at(const sgm_examples *examples, int64_t index)
{
    const sgm_shape *shape = sgm_tensor_shape(examples->values);
    int64_t indices[SGM_MAX_RANK];
    for (int i = shape->rank - 1; i >= 0; i--) {
        indices[i] = index % shape->dims[i];
        index /= shape->dims[i];
    }
    return sgm_tensor_get(examples->values, indices);
}

__attribute__((unused)) static const char *cell(const sgm_examples *examples, int64_t row, int column)
{
    return examples->cells[row * examples->columns + column];
}

#endif
