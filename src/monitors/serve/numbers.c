/* Examples and lengths of a request's JSON as tensors and numbers. */
#include "monitors/serve/numbers.h"

#include <math.h>

int64_t sgm__serve_rounded(int64_t examples)
{
    int64_t room = 1;
    while (room < examples)
        room *= 2;
    return room;
}

sgm_status sgm__serve_check_count(int64_t count)
{
    return count <= SGM__SERVE_MAXIMUM_EXAMPLES
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "'input' has %lld examples; at most %d are predicted at once",
                          (long long)count, SGM__SERVE_MAXIMUM_EXAMPLES);
}

sgm_dtype sgm__serve_dtype(const sgm__serve *serve)
{
    return serve->model.predict != NULL ? SGM_FLOAT64 : SGM_FLOAT32;
}

/* An error that says which shape an example must have; `what` names the mistake. */
static sgm_status wrong_shape(const sgm__serve *serve, int64_t example, const char *what)
{
    char shape[128];
    return sgm_fail(
        SGM_ERROR_SHAPE,
        "example %lld of 'input': expected the shape %s, as nested lists or one list of %lld numbers; %s",
        (long long)example, sgm_shape_text(&serve->signature.example, shape, sizeof shape),
        (long long)serve->elements, what);
}

/* Reads the numbers of nested lists in order into *to, which it advances. The lists must have exactly the
 * lengths of `shape` from `axis` on. False: *bad says what is wrong. */
static bool read_nested(const json_t *value, const sgm_shape *shape, int32_t axis, double **to,
                        const char **bad)
{
    if (axis == shape->rank) {
        *(*to)++ = json_number_value(value);
        *bad = json_is_number(value) ? NULL : "there is something that is no number";
        return *bad == NULL;
    }
    if (!json_is_array(value) || (int64_t)json_array_size(value) != shape->dims[axis]) {
        *bad = json_is_array(value)    ? "a list has another length"
               : json_is_number(value) ? "there is a number in place of a list"
                                       : "there is something that is no list of numbers";
        return false;
    }
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!read_nested(json_array_get(value, i), shape, axis + 1, to, bad))
            return false;
    return true;
}

/* Reads one example, as lists nested like its shape or as one flat list. A number that is no finite
 * float32 is refused: it would spread over all results. The range is scaled in double precision. */
static sgm_status read_example(const sgm__serve *serve, const json_t *value, int64_t number, double *to)
{
    sgm_shape flat = sgm_shape_of(serve->elements);
    bool is_flat = json_is_array(value) && (int64_t)json_array_size(value) == serve->elements &&
                   !json_is_array(json_array_get(value, 0));
    const char *bad = NULL;
    double *next = to;
    if (!read_nested(value, is_flat ? &flat : &serve->signature.example, 0, &next, &bad))
        return wrong_shape(serve, number, bad);
    for (int64_t i = 0; i < serve->elements; i++)
        if (!isfinite((float)to[i]))
            return sgm_fail(SGM_ERROR_NUMERIC,
                            "example %lld of 'input', number %lld (from 0): %g is too large for float32",
                            (long long)number, (long long)i, to[i]);
    for (int64_t i = 0; i < serve->elements && serve->scales; i++)
        to[i] = (to[i] - serve->minimum) / (serve->maximum - serve->minimum);
    return SGM_OK;
}

sgm_status sgm__serve_read_examples(const sgm__serve *serve, const json_t *body, sgm_tensor **inputs,
                                    int64_t *count)
{
    const json_t *list = json_object_get(body, "input");
    char shape[128];
    sgm_shape_text(&serve->signature.example, shape, sizeof shape);
    *count = (int64_t)json_array_size(list);
    if (!json_is_array(list) || *count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "expected {\"input\": [EXAMPLE, ...]}, where an example has the shape %s%s%s%s",
                        shape,
                        serve->takes != NULL            ? "; or files of one of the types "
                        : sgm__serve_takes_texts(serve) ? ", or is a text"
                        : serve->pipeline != NULL       ? ", or is an object with the table's columns"
                                                        : "",
                        serve->takes != NULL ? serve->takes->media_types : "",
                        serve->takes != NULL ? " or multipart/form-data" : "");
    SGM_TRY(sgm__serve_check_count(*count));
    int64_t room = sgm__serve_rounded(*count);
    sgm_shape batch = {.rank = serve->signature.example.rank + 1, .dims = {room}};
    memcpy(batch.dims + 1, serve->signature.example.dims,
           (size_t)serve->signature.example.rank * sizeof *batch.dims);
    double *numbers = sgm__calloc((size_t)(room * serve->elements) + 1, sizeof *numbers);
    sgm_status status = numbers != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < *count && status == SGM_OK; i++)
        status = read_example(serve, json_array_get(list, (size_t)i), i, numbers + i * serve->elements);
    for (int64_t i = *count; i < room && status == SGM_OK; i++)
        memcpy(numbers + i * serve->elements, numbers, (size_t)serve->elements * sizeof *numbers);
    *inputs = status == SGM_OK ? sgm_tensor_create(sgm__serve_dtype(serve), &batch) : NULL;
    if (status == SGM_OK)
        status = *inputs != NULL ? sgm_tensor_write(*inputs, numbers, (size_t)(room * serve->elements))
                                 : sgm__last_failure();
    sgm__free(numbers);
    return status;
}

sgm_status sgm__serve_read_lengths(const sgm__serve *serve, const json_t *body, int64_t count,
                                   double **lengths)
{
    const json_t *list = json_object_get(body, "lengths");
    int64_t steps = serve->signature.example.rank > 0 ? serve->signature.example.dims[0] : 0,
            room = sgm__serve_rounded(count);
    *lengths = NULL;
    if (list == NULL)
        return SGM_OK;
    if (serve->signature.lengths[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "'lengths': the network's input has none");
    if ((int64_t)json_array_size(list) != count)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'lengths': expected a list of %lld numbers, one for each example", (long long)count);
    *lengths = sgm__calloc((size_t)room, sizeof **lengths);
    if (*lengths == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < room; i++) {
        const json_t *length = json_array_get(list, i < count ? (size_t)i : 0);
        (*lengths)[i] = json_number_value(length);
        if (json_is_integer(length) && (*lengths)[i] >= 0 && (*lengths)[i] <= (double)steps)
            continue;
        sgm__free(*lengths);
        *lengths = NULL;
        return sgm_fail(SGM_ERROR_ARGUMENT, "'lengths', example %lld: expected a whole number from 0 to %lld",
                        (long long)i, (long long)steps);
    }
    return SGM_OK;
}
