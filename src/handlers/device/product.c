/* Matrix products as a vendor's library knows them: one stride for the batch, rows or columns without gaps.
 */
#include "handlers/device/device.h"
#include "ops/ops.h"

static bool type_of(sgm_dtype dtype, sgm_device_type *type)
{
    *type = dtype == SGM_FLOAT64    ? SGM_DEVICE_FLOAT64
            : dtype == SGM_BFLOAT16 ? SGM_DEVICE_BFLOAT16
                                    : SGM_DEVICE_FLOAT32;
    return dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64 || dtype == SGM_BFLOAT16;
}

/* The leading axes as one: false if they do not follow each other in memory. */
static bool batch_of(const sgm__node *node, int64_t *stride)
{
    int32_t last = -1;
    *stride = 0;
    for (int32_t i = node->type.shape.rank - 2; i-- > 0;) {
        if (node->type.shape.dims[i] == 1)
            continue;
        if (last < 0)
            *stride = node->place.strides[i];
        else if (node->place.strides[i] != node->place.strides[last] * node->type.shape.dims[last])
            return false;
        last = i;
    }
    return true;
}

static bool matrix_of(const sgm__node *node, sgm_device_matrix *matrix)
{
    int32_t row = node->type.shape.rank - 2, column = row + 1;
    const int64_t *dims = node->type.shape.dims;
    matrix->row = node->place.strides[row];
    matrix->column = node->place.strides[column];
    /* The stride of an axis of 1 is never used: it may be what suits the library. */
    if (dims[column] == 1 && matrix->row != 1)
        matrix->column = 1;
    else if (dims[row] == 1 && matrix->column != 1)
        matrix->row = 1;
    if (dims[row] == 1 && matrix->column == 1)
        matrix->row = dims[column];
    if (dims[column] == 1 && matrix->row == 1)
        matrix->column = dims[row];
    bool dense = (matrix->column == 1 && matrix->row >= dims[column]) ||
                 (matrix->row == 1 && matrix->column >= dims[row]);
    return type_of(node->type.dtype, &matrix->type) && dense && batch_of(node, &matrix->batch) &&
           matrix->batch >= 0;
}

bool sgm__device_product(const sgm__plan *plan, int32_t step, bool narrow, sgm_device_product *product)
{
    const sgm__node *node = &plan->nodes[plan->order[plan->steps[step].first]];
    if (node->op != &sgm__op_matmul || sgm_shape_elements(&node->type.shape) == 0)
        return false;
    const sgm__node *left = &plan->nodes[plan->operands[node->first_input]];
    const sgm__node *right = &plan->nodes[plan->operands[node->first_input + 1]];
    int32_t rank = node->type.shape.rank;
    *product = (sgm_device_product){.rows = node->type.shape.dims[rank - 2],
                                    .columns = node->type.shape.dims[rank - 1],
                                    .depth = left->type.shape.dims[rank - 1],
                                    .batch = 1,
                                    .narrow = narrow};
    for (int32_t i = 0; i < rank - 2; i++)
        product->batch *= node->type.shape.dims[i];
    return product->depth > 0 && matrix_of(left, &product->left) && matrix_of(right, &product->right) &&
           matrix_of(node, &product->result);
}
