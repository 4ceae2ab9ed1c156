/* accuracy: the share of rows whose predicted class is that of the targets, as one number in float64.
 *
 * Rows are the last axis; the predicted class is the place of a row's first largest element. Targets are
 * rows of shares with the outputs' shape, or one class number for each row. src/trainer/trainer_accuracy.c
 * records it beside the loss, so that a device need not send the outputs to the host. It has no gradient:
 * a step function's is 0 almost everywhere. More elaborate metrics are in src/metrics, on the host. */
#include "ops/rules.h"

#include <math.h>

/* Empty outputs are refused: there would be no share to give. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    char x[SGM__TYPE_TEXT], targets[SGM__TYPE_TEXT];
    const sgm_shape *shape = &inputs[0].shape;
    if (shape->rank == 0 || sgm_shape_elements(shape) == 0)
        return sgm_fail(SGM_ERROR_SHAPE, "wants rows with classes in the last axis (..., classes), got %s",
                        sgm__type_text(&inputs[0], x));
    sgm_shape rows = sgm_shape_create(shape->rank - 1, shape->dims);
    if (!sgm_shape_equal(shape, &inputs[1].shape) && !sgm_shape_equal(&rows, &inputs[1].shape))
        return sgm_fail(SGM_ERROR_SHAPE,
                        "targets have the shape of the outputs, or that of their rows: got %s for %s",
                        sgm__type_text(&inputs[1], targets), sgm__type_text(&inputs[0], x));
    *result = (sgm_type){.dtype = SGM_FLOAT64};
    return SGM_OK;
}

/* The place of a row's first largest element; NaN is before all numbers. */
static int64_t largest_of(const sgm_array *x, int64_t row, int64_t classes)
{
    int64_t best = 0;
    for (int64_t k = 1; k < classes; k++)
        if (sgm__array_beats(x, row * classes + k, row * classes + best, true))
            best = k;
    return best;
}

/* A class number that is no whole number is cut, as its fraction may come from a float field. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0], *targets = &call->inputs[1];
    int64_t classes = x->shape.dims[x->shape.rank - 1], rows = sgm_shape_elements(&x->shape) / classes;
    bool numbers = targets->shape.rank < x->shape.rank;
    int64_t right = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t predicted = largest_of(x, row, classes);
        right += numbers ? trunc(sgm_array_load(targets, row)) == (double)predicted
                         : largest_of(targets, row, classes) == predicted;
    }
    *(double *)call->output.data = (double)right / (double)rows;
    return SGM_OK;
}

const sgm_op sgm__op_accuracy = {
    SGM__OP("accuracy", 2, "share of the rows whose first largest element is where that of the targets is"),
    .infer = infer, .forward = forward};

sgm_value sgm_accuracy(sgm_graph *graph, sgm_value x, sgm_value targets)
{
    return sgm_record(graph, &sgm__op_accuracy, (const sgm_value[]){x, targets}, 2, NULL);
}
