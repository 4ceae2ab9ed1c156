/* Finds matrix products that a vendor's library (cuBLASLt) can compute, and elementwise steps that it can do
 * with them.
 *
 * A library knows matrices with one stride for rows or columns and one for the batch; plans have up to 8 axes
 * with any strides. This file translates one into the other where that is possible; whether the library takes
 * a product is asked in run.c, with places. What cannot be translated is computed by our own kernels
 * (../code/code_product.c). Both descriptions of a product with an epilogue are kept, as a library may
 * decline the longer one.
 */
#include "handlers/device/run/device.h"
#include "ops/ops.h"

static bool type_of(sgm_dtype dtype, sgm_device_type *type)
{
    *type = dtype == SGM_FLOAT64    ? SGM_DEVICE_FLOAT64
            : dtype == SGM_BFLOAT16 ? SGM_DEVICE_BFLOAT16
                                    : SGM_DEVICE_FLOAT32;
    return dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64 || dtype == SGM_BFLOAT16;
}

/* Makes the axes `first` to `end - 1` of a result one axis of a batch: *stride is the distance between an
 * operand's matrices along it, in elements, 0 where the operand is repeated. False: no single stride does, or
 * it is negative. */
static bool join_axes(const sgm__node *node, const int64_t *dims, int32_t first, int32_t end, int64_t *stride)
{
    int64_t next = 0; /* the stride that the axis in front must have to continue */
    bool any = false;
    *stride = 0;
    for (int32_t i = end; i-- > first;) {
        int64_t own = node->type.shape.dims[i] == 1 ? 0 : node->place.strides[i];
        if (dims[i] == 1)
            continue;
        if (!any)
            *stride = own;
        else if (own != next)
            return false;
        next = own * dims[i];
        any = true;
    }
    return *stride >= 0;
}

/* The strides of an operand's last two axes. False: neither rows nor columns are contiguous, or the type is
 * none of the library's. The stride of an axis of length 1 is never used, so it may be set to what the
 * library accepts. */
static bool matrix_of(const sgm__node *node, sgm_device_matrix *matrix)
{
    int32_t row = node->type.shape.rank - 2, column = row + 1;
    const int64_t *dims = node->type.shape.dims;
    matrix->row = node->place.strides[row];
    matrix->column = node->place.strides[column];
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
    return type_of(node->type.dtype, &matrix->type) && dense;
}

/* The same with all leading axes as one batch. */
static bool matrices_of(const sgm__node *node, sgm_device_matrix *matrix)
{
    const sgm_shape *shape = &node->type.shape;
    return matrix_of(node, matrix) && join_axes(node, shape->dims, 0, shape->rank - 2, &matrix->batch);
}

/* Makes leading axes a batch of the library. Where no single stride does (the examples and the heads of
 * attention, cut out of one matrix), axes are split into two groups: the larger one is the batch, and the
 * library is asked once for each element of the smaller one, product->times times. */
static bool set_batch(const sgm__node *const *nodes, sgm__device_product *product)
{
    const sgm_shape *shape = &nodes[2]->type.shape;
    int32_t axes = shape->rank - 2;
    int64_t inner[3], outer[3];
    bool joined = false;
    for (int32_t split = 0; (split == 0 || split < axes) && !joined; split++) {
        joined = true;
        product->asked.batch = product->times = 1;
        for (int32_t i = 0; i < axes; i++)
            *(i < split ? &product->times : &product->asked.batch) *= shape->dims[i];
        for (int i = 0; i < 3 && joined; i++)
            joined = join_axes(nodes[i], shape->dims, split, axes, &inner[i]) &&
                     join_axes(nodes[i], shape->dims, 0, split, &outer[i]);
    }
    bool swap = product->times > product->asked.batch;
    if (swap) {
        int64_t times = product->times;
        product->times = product->asked.batch;
        product->asked.batch = times;
    }
    sgm_device_matrix *matrices[3] = {&product->asked.left, &product->asked.right, &product->asked.result};
    for (int i = 0; i < 3 && joined; i++) {
        matrices[i]->batch = swap ? outer[i] : inner[i];
        product->apart[i] = (swap ? inner[i] : outer[i]) * (int64_t)sgm_dtype_size(nodes[i]->type.dtype);
    }
    return joined;
}

/* Describes the product in *product->asked without places. A product over 0 elements is left to kernels. */
bool sgm__device_product_of(const sgm__plan *plan, int32_t step, bool narrow, sgm__device_product *product)
{
    int32_t number = plan->order[plan->steps[step].first];
    const sgm__node *node = &plan->nodes[number];
    if (node->op != &sgm__op_matmul || sgm_shape_elements(&node->type.shape) == 0)
        return false;
    product->left = plan->operands[node->first_input];
    product->right = plan->operands[node->first_input + 1];
    product->result = number;
    const sgm__node *nodes[3] = {&plan->nodes[product->left], &plan->nodes[product->right], node};
    int32_t row = node->type.shape.rank - 2;
    sgm_device_product *asked = &product->asked;
    *asked = (sgm_device_product){.rows = node->type.shape.dims[row],
                                  .columns = node->type.shape.dims[row + 1],
                                  .depth = nodes[0]->type.shape.dims[row + 1],
                                  .narrow = narrow};
    return asked->depth > 0 && matrix_of(nodes[0], &asked->left) && matrix_of(nodes[1], &asked->right) &&
           matrix_of(node, &asked->result) && set_batch(nodes, product);
}

/* --- the step after a product --- */

/* Whether a value is the number 0, as in maximum(x, 0). */
static bool is_zero(const sgm__plan *plan, int32_t number)
{
    const sgm__node *node = &plan->nodes[sgm__plan_root(plan, number)];
    return node->op == &sgm__op_number && node->attributes.numbers[0] == 0;
}

/* Whether a value is one number for each column, contiguous and repeated along all other axes. */
static bool is_bias(const sgm__node *node)
{
    int32_t column = node->type.shape.rank - 1;
    bool same = node->type.shape.dims[column] == 1 || node->place.strides[column] == 1;
    for (int32_t i = 0; i < column; i++)
        same = same && (node->type.shape.dims[i] == 1 || node->place.strides[i] == 0);
    return same;
}

static bool is_like(const sgm_device_matrix *a, const sgm_device_matrix *b)
{
    return a->type == b->type && a->row == b->row && a->column == b->column && a->batch == b->batch;
}

/* Adds one operation on the product's result and another operand to the epilogue: a bias, an addend of the
 * result's layout, or relu, which must be the last. False: the library cannot do it. */
static bool continue_with(const sgm__plan *plan, const sgm_op *op, int32_t other,
                          sgm__device_product *product)
{
    const sgm__node *node = &plan->nodes[other];
    sgm_device_product *asked = &product->asked;
    sgm_device_type type;
    if (asked->rectified)
        return false;
    if (op == &sgm__op_maximum)
        return asked->rectified = is_zero(plan, other);
    if (op != &sgm__op_add || node->place.store == SGM__STORE_NONE || !type_of(node->type.dtype, &type) ||
        type != asked->result.type)
        return false;
    if (!asked->has_bias && is_bias(node)) {
        product->bias = other;
        return asked->has_bias = true;
    }
    if (asked->has_addend || !matrices_of(node, &asked->addend) || !is_like(&asked->addend, &asked->result))
        return false;
    product->addend = other;
    return asked->has_addend = true;
}

static bool share_place(const sgm__place *a, const sgm__place *b)
{
    return a->store == b->store && a->index == b->index && a->offset == b->offset;
}

/* An epilogue is written one step early, while the product's operands are still read. So the result may lie
 * only where the product's result would, or on the addend, which is read element by element, unless the
 * product reads the addend, too (as in x + x w). */
static bool can_be_early(const sgm__plan *plan, const sgm__device_product *product, int32_t number)
{
    const sgm__place *place = &plan->nodes[number].place;
    if (place->store != SGM__STORE_ARENA)
        return false;
    if (share_place(place, &plan->nodes[product->result].place))
        return true;
    int32_t addend = product->asked.has_addend ? sgm__plan_root(plan, product->addend) : -1;
    return addend >= 0 && share_place(place, &plan->nodes[product->addend].place) &&
           sgm__plan_root(plan, product->left) != addend && sgm__plan_root(plan, product->right) != addend;
}

/* Of an operation on `number` and one other value: that value; -1: the operation is of another kind. */
static int32_t other_operand(const sgm__plan *plan, const sgm__node *node, int32_t number)
{
    const int32_t *operands = plan->operands + node->first_input;
    if (node->input_count != 2 || (operands[0] != number && operands[1] != number))
        return -1;
    return operands[0] == number ? operands[1] : operands[0];
}

/* Follows the members of the elementwise step: each must continue the value of the one before it, which must
 * not be in memory itself. A product that is asked for several times has no epilogue. */
bool sgm__device_product_continue(const sgm__plan *plan, int32_t step, sgm__device_product *product)
{
    sgm_device_matrix result;
    if (product->times > 1 || step + 1 >= plan->step_count ||
        plan->steps[step + 1].kind != SGM__STEP_ELEMENTWISE || sgm__plan_readers(plan, product->result) != 1)
        return false;
    const sgm__step *next = &plan->steps[step + 1];
    int32_t number = product->result;
    for (int32_t p = 0; p < next->count; p++) {
        int32_t following = plan->order[next->first + p];
        int32_t other = other_operand(plan, &plan->nodes[following], number);
        bool in_passing = p == 0 || plan->nodes[number].place.store == SGM__STORE_NONE;
        if (other < 0 || !in_passing || !continue_with(plan, plan->nodes[following].op, other, product))
            return false;
        number = following;
    }
    if (!can_be_early(plan, product, number) || !matrices_of(&plan->nodes[number], &result) ||
        !is_like(&result, &product->asked.result))
        return false;
    product->result = number;
    return true;
}
