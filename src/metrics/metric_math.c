/* Formulas of metrics.h. */
#include "metrics/metrics.h"

#include <math.h>
#include <stdlib.h>

/* --- predictions --- */

static sgm_tensor *as_rows(sgm_tensor *tensor)
{
    sgm_dtype dtype = sgm_tensor_dtype(tensor);
    bool fits = (dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64) && sgm_tensor_is_contiguous(tensor);
    return fits ? sgm_tensor_retain(tensor)
                : sgm_tensor_cast(tensor, dtype == SGM_FLOAT32 ? SGM_FLOAT32 : SGM_FLOAT64);
}

/* True if the targets are a number of a class for each row of outputs. */
static bool are_numbers(const sgm_shape *outputs, const sgm_shape *targets)
{
    int64_t classes = outputs->rank > 1 ? outputs->dims[outputs->rank - 1] : 0;
    return classes > 1 && targets->rank > 0 && outputs->dims[0] == targets->dims[0] &&
           sgm_shape_elements(targets) == sgm_shape_elements(outputs) / classes;
}

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

/* Numbers of classes as one share of 1 in each row. */
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

int64_t sgm__predictions_classes(const sgm__predictions *predictions)
{
    return predictions->columns == 1 ? 2 : predictions->columns;
}

typedef double (*value_at)(const sgm__predictions *predictions, int64_t index);

static int64_t class_of(const sgm__predictions *a, int64_t row, value_at at, double threshold)
{
    int64_t first = row * a->columns, best = 0;
    if (a->columns == 1)
        return at(a, first) > threshold;
    for (int64_t i = 1; i < a->columns; i++)
        if (at(a, first + i) > at(a, first + best))
            best = i;
    return best;
}

static int64_t target_of(const sgm__predictions *a, int64_t row)
{
    return class_of(a, row, sgm__target_at, 0.5);
}

static double share(int64_t part, int64_t all)
{
    return all > 0 ? (double)part / (double)all : NAN;
}

/* --- classes --- */

/* The comparison is the other way round for NaN, which is among no largest ones. */
static bool is_among(const sgm__predictions *a, int64_t row, int64_t class, int64_t k)
{
    int64_t first = row * a->columns, larger = 0;
    double own = sgm__output_at(a, first + class);
    for (int64_t i = 0; i < a->columns && larger < k; i++) {
        double other = sgm__output_at(a, first + i);
        larger += i < class ? !(other < own) : i > class && !(other <= own);
    }
    return larger < k;
}

double sgm__top_k(const sgm__predictions *a, int64_t k)
{
    int64_t right = 0;
    for (int64_t row = 0; row < a->rows; row++)
        right += is_among(a, row, target_of(a, row), k);
    return share(right, a->rows);
}

/* Equal bounds are a threshold, without an in between. */
double sgm__binary_accuracy(const sgm__predictions *a, double lower, double upper)
{
    int64_t right = 0;
    for (int64_t row = 0; row < a->rows; row++) {
        double value = sgm__output_at(a, row);
        bool one = value > upper, zero = value < lower || (lower == upper && value == lower);
        right += target_of(a, row) == 1 ? one : zero;
    }
    return share(right, a->rows);
}

void sgm__confusion(const sgm__predictions *a, double threshold, int64_t *counts)
{
    int64_t classes = sgm__predictions_classes(a);
    for (int64_t row = 0; row < a->rows; row++)
        counts[target_of(a, row) * classes + class_of(a, row, sgm__output_at, threshold)]++;
}

size_t sgm__worst_mistakes(const sgm__predictions *a, double threshold,
                           sgm__mistake mistakes[SGM__MAXIMUM_MISTAKES])
{
    size_t count = 0;
    for (int64_t row = 0; row < a->rows; row++) {
        sgm__mistake made = {.row = row,
                             .target = target_of(a, row),
                             .prediction = class_of(a, row, sgm__output_at, threshold)};
        if (made.target == made.prediction)
            continue;
        double output = sgm__output_at(a, row * a->columns + (a->columns > 1 ? made.prediction : 0));
        made.output = a->columns == 1 && made.prediction == 0 ? 1 - output : output;
        size_t at = count;
        while (at > 0 && !(mistakes[at - 1].output >= made.output))
            at--;
        if (at == SGM__MAXIMUM_MISTAKES)
            continue;
        count += count < SGM__MAXIMUM_MISTAKES;
        memmove(&mistakes[at + 1], &mistakes[at], (count - 1 - at) * sizeof *mistakes);
        mistakes[at] = made;
    }
    return count;
}

static double share_or_zero(int64_t part, int64_t all)
{
    return all > 0 ? (double)part / (double)all : 0;
}

sgm__class_score sgm__class_score_of(const int64_t *counts, int64_t classes, int64_t class)
{
    int64_t examples = 0, predictions = 0, right = counts[class * classes + class];
    for (int64_t i = 0; i < classes; i++) {
        examples += counts[class * classes + i];
        predictions += counts[i * classes + class];
    }
    if (examples + predictions == 0)
        return (sgm__class_score){NAN, NAN, NAN, 0};
    return (sgm__class_score){share_or_zero(right, predictions), share_or_zero(right, examples),
                              share_or_zero(2 * right, examples + predictions), examples};
}

/* --- area under the curve --- */

typedef struct ranked {
    double value;
    bool positive;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    double left = ((const ranked *)a)->value, right = ((const ranked *)b)->value;
    return (left > right) - (left < right);
}

/* Sum of the positives' ranks from 1; equal values share the mean of theirs. */
static double positive_ranks(const ranked *sorted, int64_t count)
{
    double sum = 0;
    for (int64_t first = 0, end; first < count; first = end) {
        int64_t positives = 0;
        for (end = first; end < count && sorted[end].value == sorted[first].value; end++)
            positives += sorted[end].positive;
        sum += (double)positives * ((double)(first + 1) + (double)end) / 2;
    }
    return sum;
}

sgm_status sgm__roc_auc(const sgm__predictions *a, int64_t column, double *area)
{
    int64_t positives = 0;
    bool ordered = true;
    ranked *values = sgm__calloc((size_t)a->rows, sizeof *values);
    if (values == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t at = row * a->columns + column;
        values[row] = (ranked){sgm__output_at(a, at), sgm__target_at(a, at) > 0.5};
        positives += values[row].positive;
        ordered = ordered && !isnan(values[row].value);
    }
    int64_t negatives = a->rows - positives;
    *area = NAN;
    if (ordered && positives > 0 && negatives > 0) {
        qsort(values, (size_t)a->rows, sizeof *values, compare_ranked);
        double above = positive_ranks(values, a->rows) - (double)positives * (double)(positives + 1) / 2;
        *area = above / ((double)positives * (double)negatives);
    }
    sgm__free(values);
    return SGM_OK;
}

/* --- numbers --- */

/* False: the targets are constant. */
static bool r_squared_of(const sgm__predictions *a, int64_t column, double *r_squared)
{
    double sum = 0, residual = 0, total = 0, first = sgm__target_at(a, column);
    bool constant = true;
    for (int64_t row = 0; row < a->rows; row++) {
        double target = sgm__target_at(a, row * a->columns + column);
        sum += target;
        constant = constant && target == first;
    }
    double mean = sum / (double)a->rows;
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t at = row * a->columns + column;
        double target = sgm__target_at(a, at), error = target - sgm__output_at(a, at);
        residual += error * error;
        total += (target - mean) * (target - mean);
    }
    *r_squared = 1 - residual / total;
    return !constant;
}

sgm__errors sgm__regression(const sgm__predictions *a)
{
    int64_t count = a->rows * a->columns, columns = 0;
    double absolute = 0, squares = 0, largest = 0, r_squared = 0;
    if (count == 0)
        return (sgm__errors){NAN, NAN, NAN, NAN};
    for (int64_t i = 0; i < count; i++) {
        double error = fabs(sgm__target_at(a, i) - sgm__output_at(a, i));
        absolute += error;
        squares += error * error;
        if (!(error <= largest) && !isnan(largest)) /* NaN stays */
            largest = error;
    }
    for (int64_t column = 0; column < a->columns; column++) {
        double one;
        if (!r_squared_of(a, column, &one))
            continue;
        columns++;
        r_squared += one;
    }
    return (sgm__errors){absolute / (double)count, sqrt(squares / (double)count), largest,
                         columns > 0 ? r_squared / (double)columns : NAN};
}

/* 0 log 0 is 0. */
static double surprise(double target, double probability)
{
    return target > 0 ? -target * log(probability) : 0;
}

sgm_status sgm__perplexity(const sgm__predictions *a, double *perplexity)
{
    double sum = 0;
    int64_t counted = 0;
    for (int64_t row = 0; row < a->rows; row++) {
        double targets = a->columns == 1;
        for (int64_t i = row * a->columns; i < (row + 1) * a->columns; i++) {
            double target = sgm__target_at(a, i), output = sgm__output_at(a, i);
            if (output < 0 || output > 1.001)
                return sgm_fail(SGM_ERROR_NUMERIC,
                                "perplexity wants probabilities from 0 to 1, but an output is %g: use "
                                "softmax_cross_entropy or binary_cross_entropy",
                                output);
            sum += surprise(target, output);
            if (a->columns == 1)
                sum += surprise(1 - target, 1 - output);
            targets += fabs(target);
        }
        counted += targets > 0;
    }
    *perplexity = counted > 0 ? exp(sum / (double)counted) : NAN;
    return SGM_OK;
}
