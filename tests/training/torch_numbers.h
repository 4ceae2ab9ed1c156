/* Numbers that tests and the programs for PyTorch beside them make alike. */
#ifndef SIGMA_TEST_TORCH_NUMBERS_H
#define SIGMA_TEST_TORCH_NUMBERS_H

#include "test.h"

#include <sigma/sigma.h>

#define MAXIMUM_TORCH_NUMBERS 48

/* The formula of lbfgs_torch.py and optimisers_torch.py; `which` tells tensors apart. */
static sgm_tensor *torch_numbers(sgm_dtype dtype, const sgm_shape *shape, int64_t which)
{
    double values[MAXIMUM_TORCH_NUMBERS];
    int64_t count = sgm_shape_elements(shape);
    CHECK(count <= MAXIMUM_TORCH_NUMBERS);
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)((i * 7919 + which * 104729 + 13) % 2003) / 1000 - 1;
    sgm_tensor *tensor = sgm_tensor_create(dtype, shape);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)count));
    return tensor;
}

#endif
