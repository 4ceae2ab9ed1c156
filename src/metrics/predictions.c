/* Outputs and targets as rows of columns, and which class a row predicts: what all metrics begin with.
 *
 * sgm__predictions_open checks the shapes once, so that a metric's compute() need not. Outputs are (...,
 * columns) of any type, targets of the same shape, or class numbers (one for each row), which become rows
 * of shares with a 1 at the class. float32 and float64 are read where they lie, other types are converted;
 * metrics read by sgm__output_at and sgm__target_at, in double. */
#include "metrics/metrics.h"

#include <math.h>

/* The tensor contiguous and of a type that metrics read: itself, retained, or a copy. */
static sgm_tensor *as_rows(sgm_tensor *tensor)
{
    sgm_dtype dtype = sgm_tensor_dtype(tensor);
    bool fits = (dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64) && sgm_tensor_is_contiguous(tensor);
    return fits ? sgm_tensor_retain(tensor)
                : sgm_tensor_cast(tensor, dtype == SGM_FLOAT32 ? SGM_FLOAT32 : SGM_FLOAT64);
}

/* Whether targets are a number of a class for each row of outputs: as many elements as rows, and the same
 * first dimension, so that (rows) and (rows, 1) both do. One column of outputs has no classes to number. */
static bool are_numbers(const sgm_shape *outputs, const sgm_shape *targets)
{
    int64_t classes = outputs->rank > 1 ? outputs->dims[outputs->rank - 1] : 0;
    return classes > 1 && targets->rank > 0 && outputs->dims[0] == targets->dims[0] &&
           sgm_shape_elements(targets) == sgm_shape_elements(outputs) / classes;
}

/* Writes a 1 at each row's class; the error tells which number is no class. */
static sgm_status set_shares(sgm_tensor *shares, const double *numbers, int64_t rows, int64_t classes)
{
    float *to = sgm_tensor_data(shares);
    for (int64_t row = 0; row < rows; row++) {
        double number = numbers[row];
        if (!(number >= 0 && number < (double)classes))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "class %g is out of range: there are %lld classes, numbered from 0", number,
                            (long long)classes);
        if (number != floor(number))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "row %lld of the targets: %g is no whole number, and classes are numbered",
                            (long long)row, number);
        to[row * classes + (int64_t)number] = 1;
    }
    return SGM_OK;
}

/* Numbers of classes as shares, float32 of the outputs' shape: 1 at the class, 0 elsewhere (one-hot). */
static sgm_tensor *as_shares(const sgm_shape *shape, const sgm_tensor *targets)
{
    int64_t classes = shape->dims[shape->rank - 1], rows = sgm_shape_elements(shape) / classes;
    sgm_tensor *shares = sgm_tensor_create(SGM_FLOAT32, shape);
    double *numbers = sgm__calloc((size_t)rows + 1, sizeof *numbers);
    bool good = shares != NULL && numbers != NULL &&
                sgm_tensor_read(targets, numbers, (size_t)rows) == SGM_OK &&
                set_shares(shares, numbers, rows, classes) == SGM_OK;
    sgm__free(numbers);
    if (good)
        return shares;
    sgm_tensor_free(shares);
    return NULL;
}

/* The tensors that were retained or made go with sgm__predictions_close, also after a failure. A tensor of
 * rank 1 is rows of one column. */
sgm_status sgm__predictions_open(sgm__predictions *predictions, sgm_tensor *outputs, sgm_tensor *targets)
{
    char one[128], other[128];
    *predictions = (sgm__predictions){.cost = NAN};
    const sgm_shape *shape = sgm_tensor_shape(outputs), *given = sgm_tensor_shape(targets);
    bool same = sgm_shape_equal(shape, given);
    if (shape->rank < 1 || (!same && !are_numbers(shape, given)))
        return sgm_fail(SGM_ERROR_SHAPE,
                        "metrics compare outputs with targets of the same shape, examples first, or with a "
                        "number of a class for each row; got %s and %s",
                        sgm_shape_text(shape, one, sizeof one), sgm_shape_text(given, other, sizeof other));
    predictions->output_tensor = as_rows(outputs);
    if (predictions->output_tensor != NULL)
        predictions->target_tensor = same ? as_rows(targets) : as_shares(shape, targets);
    if (predictions->target_tensor == NULL)
        return sgm__last_failure();
    predictions->outputs = sgm_tensor_const_data(predictions->output_tensor);
    predictions->targets = sgm_tensor_const_data(predictions->target_tensor);
    predictions->wide_outputs = sgm_tensor_dtype(predictions->output_tensor) == SGM_FLOAT64;
    predictions->wide_targets = sgm_tensor_dtype(predictions->target_tensor) == SGM_FLOAT64;
    predictions->columns = shape->rank > 1 ? shape->dims[shape->rank - 1] : 1;
    predictions->rows = predictions->columns > 0 ? sgm_shape_elements(shape) / predictions->columns : 0;
    return SGM_OK;
}

void sgm__predictions_close(sgm__predictions *predictions)
{
    sgm_tensor_free(predictions->output_tensor);
    sgm_tensor_free(predictions->target_tensor);
    *predictions = (sgm__predictions){0};
}

/* One output tells two classes apart. */
int64_t sgm__predictions_classes(const sgm__predictions *predictions)
{
    return predictions->columns == 1 ? 2 : predictions->columns;
}

/* sgm__output_at or sgm__target_at. */
typedef double (*value_at)(const sgm__predictions *predictions, int64_t index);

/* The place of a row's largest value, the first of equal ones; of one column, whether it is above the
 * threshold. NaN is larger than nothing: it is the place only if it comes first. */
static int64_t largest(const sgm__predictions *a, int64_t row, value_at at, double threshold)
{
    int64_t first = row * a->columns, best = 0;
    if (a->columns == 1)
        return at(a, first) > threshold;
    for (int64_t i = 1; i < a->columns; i++)
        if (at(a, first + i) > at(a, first + best))
            best = i;
    return best;
}

int64_t sgm__class_of(const sgm__predictions *predictions, int64_t row, double threshold)
{
    return largest(predictions, row, sgm__output_at, threshold);
}

/* Targets may be shares of several classes (label smoothing): the largest counts. */
int64_t sgm__target_of(const sgm__predictions *predictions, int64_t row)
{
    return largest(predictions, row, sgm__target_at, 0.5);
}

double sgm__share(int64_t part, int64_t all)
{
    return all > 0 ? (double)part / (double)all : NAN;
}
