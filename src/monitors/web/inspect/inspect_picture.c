/* GET /api/picture: a parameter as one or several grey pictures.
 *
 * A copy of the tensor (sgm__inspect_tensor) is arranged as pictures by its shape: `pictures` says with
 * which steps to walk through it, so nothing is transposed. The answer has the values with four digits,
 * and the page colours them between the minimum and maximum of the whole tensor. */
#include "monitors/web/inspect/inspect.h"
#include "trainer/trainer_lock.h"

#include <math.h>

/* Pictures in an answer, usually and at most; values in an answer. */
#define DEFAULT_PICTURES 64
#define MAXIMUM_PICTURES 400
#define MAXIMUM_VALUES ((int64_t)1 << 20)
/* Rows or columns of one picture; larger ones are thinned. */
#define LARGEST_SIDE 1024

/* How a tensor is arranged: the value at (picture, row, column) lies at picture * picture_step + row *
 * row_step + column * column_step. */
typedef struct pictures {
    int64_t count, rows, columns, picture_step, row_step, column_step;
} pictures;

/* Whether an example of this shape is an image with one channel, (rows, columns), (1, rows, columns) or
 * (rows, columns, 1), of `elements` values. */
static bool image_of(const sgm_shape *example, int64_t elements, int64_t *rows, int64_t *columns)
{
    int32_t first = example->rank == 3 && example->dims[0] == 1 ? 1 : 0;
    int32_t rank = example->rank - first - (example->rank == 3 && first == 0 && example->dims[2] == 1);
    if (rank != 2 || example->dims[first] * example->dims[first + 1] != elements || example->dims[first] < 2)
        return false;
    *rows = example->dims[first];
    *columns = example->dims[first + 1];
    return true;
}

/* Weights (inputs, units) of a layer that reads the input image: one image for each unit, whose values are
 * a column of the matrix. Tensors of rank 3 or more, such as convolutions' weights: one picture of the
 * last two axes for each index of the others. Other matrices are one picture; vectors are one row. */
static pictures arrange(const sgm_shape *shape, const sgm_shape *input)
{
    int32_t rank = shape->rank;
    int64_t rows, columns;
    if (rank == 2 && image_of(input, shape->dims[0], &rows, &columns))
        return (pictures){shape->dims[1], rows, columns, 1, columns * shape->dims[1], shape->dims[1]};
    if (rank < 2) {
        columns = sgm_shape_elements(shape);
        return (pictures){1, 1, columns, columns, columns, 1};
    }
    rows = shape->dims[rank - 2];
    columns = shape->dims[rank - 1];
    int64_t each = rows * columns;
    return (pictures){each > 0 ? sgm_shape_elements(shape) / each : 0, rows, columns, each, columns, 1};
}

/* The distance between two rows or columns that are shown, so that no side exceeds LARGEST_SIDE. */
static int64_t stride_of(const pictures *all)
{
    int64_t side = all->rows > all->columns ? all->rows : all->columns;
    return side > 0 ? (side + LARGEST_SIDE - 1) / LARGEST_SIDE : 1;
}

/* The values of `count` pictures from number `index` on, row by row. */
static void append_values(sgm__text *text, const pictures *all, const float *values, int64_t index,
                          int64_t count, int64_t stride)
{
    const char *separator = "";
    for (int64_t i = index; i < index + count; i++)
        for (int64_t row = 0; row < all->rows; row += stride)
            for (int64_t column = 0; column < all->columns; column += stride) {
                sgm__text_append(text, "%s", separator);
                sgm__inspect_append_short(
                    text, values[i * all->picture_step + row * all->row_step + column * all->column_step]);
                separator = ",";
            }
}

/* Over the whole tensor, so that pictures of several requests have the same scale. Without finite values
 * the results are infinite, which JSON shows as null. */
static void measure(const float *values, int64_t count, double *minimum, double *maximum)
{
    *minimum = INFINITY;
    *maximum = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            *minimum = values[i] < *minimum ? values[i] : *minimum;
            *maximum = values[i] > *maximum ? values[i] : *maximum;
        }
}

/* Writes the answer. `index` and `count` are cut to what exists and to MAXIMUM_VALUES. */
static sgm_status give(const sgm_tensor *floats, const pictures *all, int64_t index, int64_t count,
                       int64_t iteration, sgm__http_answer *answer)
{
    const float *values = sgm_tensor_const_data(floats);
    double minimum, maximum;
    sgm__text text = {0};
    int64_t stride = stride_of(all), rows = (all->rows + stride - 1) / stride,
            columns = (all->columns + stride - 1) / stride;
    int64_t room = rows * columns > 0 ? MAXIMUM_VALUES / (rows * columns) : 0;
    index = index < all->count ? index : all->count;
    count = count < all->count - index ? count : all->count - index;
    count = count < room ? count : room;
    measure(values, sgm_shape_elements(sgm_tensor_shape(floats)), &minimum, &maximum);
    sgm__text_append(&text, "{\"iteration\":%lld,\"shape\":", (long long)iteration);
    sgm__inspect_append_shape(&text, sgm_tensor_shape(floats), 0);
    sgm__web_append_member(&text, "rows", (double)rows);
    sgm__web_append_member(&text, "columns", (double)columns);
    sgm__web_append_member(&text, "channels", 1);
    sgm__web_append_member(&text, "pictures", (double)all->count);
    sgm__web_append_member(&text, "index", (double)index);
    sgm__web_append_member(&text, "count", (double)count);
    sgm__web_append_member(&text, "minimum", minimum);
    sgm__web_append_member(&text, "maximum", maximum);
    sgm__text_append(&text, ",\"values\":[");
    append_values(&text, all, values, index, count, stride);
    sgm__text_append(&text, "]}");
    return sgm__web_answer(answer, &text);
}

/* The shape of one example of the network's first input, as it was recorded; rank 0: nothing was recorded
 * yet. */
static sgm_status input_shape(sgm__web_trainer *watched, sgm_shape *shape)
{
    SGM_TRY(sgm__trainer_enter(watched->trainer));
    *shape = sgm__trainer_look(watched->trainer).input;
    sgm__trainer_unlock(watched->trainer);
    return SGM_OK;
}

sgm_status sgm__inspect_picture(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *identifier = sgm__http_query(request, "id", 0);
    sgm__inspect_copy copy = {0};
    sgm_shape input;
    int64_t index, count;
    if (identifier == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected the identifier of a tensor, as 'id'");
    SGM_TRY(sgm__inspect_count(request, "index", 0, 0, (int64_t)1 << 50, &index));
    SGM_TRY(sgm__inspect_count(request, "count", DEFAULT_PICTURES, 1, MAXIMUM_PICTURES, &count));
    SGM_TRY(input_shape(watched, &input));
    SGM_TRY(sgm__inspect_tensor(watched, identifier, &copy));
    bool fits = sgm_tensor_dtype(copy.values) == SGM_FLOAT32 && sgm_tensor_is_contiguous(copy.values);
    sgm_tensor *floats = fits ? sgm_tensor_retain(copy.values) : sgm_tensor_cast(copy.values, SGM_FLOAT32);
    pictures all = arrange(sgm_tensor_shape(copy.values), &input);
    sgm_tensor_free(copy.values);
    if (floats == NULL)
        return sgm__last_failure();
    sgm_status status = give(floats, &all, index, count, copy.iteration, answer);
    sgm_tensor_free(floats);
    return status;
}
