/* Tensors that are set from outside: of the shape and type that the entry has, from any numbers or a .npy
 * file. */
#include "show/tensor_file.h"
#include <sigma/data.h>

static sgm_status fail_shape(const sgm_shape *got, const sgm_shape *wanted)
{
    char has[128], wants[128];
    return sgm_fail(SGM_ERROR_SHAPE, "expected values of shape %s, got %s",
                    sgm_shape_text(wanted, wants, sizeof wants), sgm_shape_text(got, has, sizeof has));
}

sgm_status sgm__tensor_convert(sgm_tensor *values, const sgm_tensor *like, sgm_tensor **made)
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

/* Reads at most count + 1 entries along the first dimension of a .npy file; NULL with an error. */
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

/* One entry more than wanted is asked for: if the file has it, the shapes differ, and a large file need not
 * be read in full to see that. */
sgm_status sgm__tensor_load(const char *path, const sgm_tensor *like, sgm_tensor **made)
{
    const sgm_shape *shape = sgm_tensor_shape(like);
    sgm_status status = sgm__tensor_convert(read_npy(path, shape->rank > 0 ? shape->dims[0] : 1), like, made);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("%s", path);
}
