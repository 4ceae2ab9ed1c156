/* Tensors that commands bring and take: from a text, from and to .npy files. */
#include "control/control_tensor.h"
#include <sigma/data.h>

#include <jansson.h>

static sgm_status fail_shape(const sgm_shape *got, const sgm_shape *wanted)
{
    char has[128], wants[128];
    return sgm_fail(SGM_ERROR_SHAPE, "expected values of shape %s, got %s",
                    sgm_shape_text(wanted, wants, sizeof wants), sgm_shape_text(got, has, sizeof has));
}

/* Takes `values` (NULL: it failed) over; the result has the type of `like`. */
static sgm_status convert(sgm_tensor *values, const sgm_tensor *like, sgm_tensor **made)
{
    *made = NULL;
    if (values == NULL)
        return sgm__last_failure();
    sgm_status status = SGM_OK;
    if (!sgm_shape_equal(sgm_tensor_shape(values), sgm_tensor_shape(like)))
        status = fail_shape(sgm_tensor_shape(values), sgm_tensor_shape(like));
    else if ((*made = sgm_tensor_cast(values, sgm_tensor_dtype(like))) == NULL)
        status = sgm__last_failure();
    sgm_tensor_free(values);
    return status;
}

/* --- texts --- */

/* The shape that the first elements say; check() sees whether the others agree. */
static sgm_status shape_of(const json_t *value, sgm_shape *shape)
{
    *shape = sgm_shape_scalar();
    for (; json_is_array(value); value = json_array_get(value, 0)) {
        if (shape->rank == SGM_MAX_RANK || json_array_size(value) == 0)
            return sgm_fail(SGM_ERROR_FORMAT, "the list is empty, or nested too deeply");
        shape->dims[shape->rank++] = (int64_t)json_array_size(value);
    }
    return SGM_OK;
}

static sgm_status fill(const json_t *value, const sgm_shape *shape, int32_t depth, double **to)
{
    if (depth == shape->rank) {
        if (!json_is_number(value))
            return sgm_fail(SGM_ERROR_FORMAT, "the list has something in it that is no number, or is uneven");
        *(*to)++ = json_number_value(value);
        return SGM_OK;
    }
    if (!json_is_array(value) || (int64_t)json_array_size(value) != shape->dims[depth])
        return sgm_fail(SGM_ERROR_FORMAT, "the list is uneven: its parts have different lengths");
    for (size_t i = 0; i < json_array_size(value); i++)
        SGM_TRY(fill(json_array_get(value, i), shape, depth + 1, to));
    return SGM_OK;
}

static sgm_tensor *tensor_of(const json_t *list)
{
    sgm_shape shape;
    if (shape_of(list, &shape) != SGM_OK)
        return NULL;
    double *values = sgm__calloc((size_t)sgm_shape_elements(&shape) + 1, sizeof *values), *to = values;
    sgm_tensor *tensor = NULL;
    if (values != NULL && fill(list, &shape, 0, &to) == SGM_OK)
        tensor = sgm_tensor_from(SGM_FLOAT64, &shape, values);
    sgm__free(values);
    return tensor;
}

sgm_status sgm__tensor_parse(const char *text, const sgm_tensor *like, sgm_tensor **made)
{
    *made = NULL;
    json_t *list = json_loads(text, JSON_DECODE_ANY, NULL);
    sgm_status status =
        json_is_array(list) || json_is_number(list)
            ? convert(tensor_of(list), like, made)
            : sgm_fail(SGM_ERROR_FORMAT, "expected a list such as [0, 1, 2], or a .npy file, got '%.60s'",
                       text);
    json_decref(list);
    return status;
}

/* --- files --- */

static sgm_tensor *read_npy(const char *path, int64_t count)
{
    sgm_reader *reader = sgm_npy_reader(sgm_file_source(path), NULL);
    sgm_examples examples = {0};
    sgm_tensor *tensor = NULL;
    if (reader != NULL && sgm_reader_prepare(reader) == SGM_OK &&
        sgm_reader_read(reader, count + 1, &examples) == SGM_OK) {
        if (examples.values != NULL && examples.count > 0)
            tensor = sgm_tensor_copy(examples.values);
        else
            sgm_fail(SGM_ERROR_FORMAT, "'%s' has no numbers", path);
    }
    sgm_reader_free(reader);
    return tensor;
}

/* One example more than wanted shows that there are too many. */
sgm_status sgm__tensor_load(const char *path, const sgm_tensor *like, sgm_tensor **made)
{
    const sgm_shape *shape = sgm_tensor_shape(like);
    sgm_status status = convert(read_npy(path, shape->rank > 0 ? shape->dims[0] : 1), like, made);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("%s", path);
}
