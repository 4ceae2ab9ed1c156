/* Writes one tensor as a NumPy file (.npy), version 1.0 of the format.
 *
 * sgm_npy_save writes it to a path, npz.c puts many into an archive. A file is the magic, the version, the
 * length of the header in 2 bytes, the header (a Python dictionary as text, see src/tensor/npy.c, which reads
 * it), and the elements in row-major order. Types are written little-endian, as the machine's are
 * (safetensors.h asserts that). */
#include "persistence/bundle.h"

/* NumPy's code of the type; NULL: NumPy has no bfloat16. */
static const char *numpy_type(sgm_dtype dtype)
{
    switch (dtype) {
    case SGM_FLOAT32:
        return "<f4";
    case SGM_FLOAT64:
        return "<f8";
    case SGM_INT32:
        return "<i4";
    case SGM_INT64:
        return "<i8";
    case SGM_UINT8:
        return "|u1";
    case SGM_BOOL:
        return "|b1";
    case SGM_BFLOAT16:
    case SGM_DTYPE_COUNT:
        break;
    }
    return NULL;
}

/* Pads the header with spaces so that the elements begin at a multiple of 64 bytes, as the format asks; the
 * 10 bytes before the header and the line end count. A tuple of one dimension needs its comma. */
static void write_header(sgm__text *text, const char *type, const sgm_shape *shape)
{
    sgm__text header = {0};
    sgm__text_append(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int32_t i = 0; i < shape->rank; i++)
        sgm__text_append(&header,
                         shape->rank == 1 ? "%lld,"
                         : i > 0          ? ", %lld"
                                          : "%lld",
                         (long long)shape->dims[i]);
    sgm__text_append(&header, "), }");
    while ((10 + header.length + 1) % 64 != 0 && !header.failed)
        sgm__text_append(&header, " ");
    sgm__text_append(&header, "\n");
    const char start[] = {
        '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(header.length & 255), (char)(header.length >> 8)};
    sgm__text_append_bytes(text, start, sizeof start);
    if (!header.failed)
        sgm__text_append_bytes(text, header.data, header.length);
    text->failed = text->failed || header.failed;
    sgm__text_free(&header);
}

/* Strided tensors are copied first, as the file is row-major. */
sgm_status sgm__npy_append(sgm__text *file, const char *what, const sgm_tensor *tensor)
{
    const char *type = numpy_type(sgm_tensor_dtype(tensor));
    if (type == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "'%s': NumPy has no type for %s; cast the tensor to float32 first", what,
                        sgm_dtype_name(sgm_tensor_dtype(tensor)));
    sgm_tensor *copy = sgm_tensor_copy(tensor);
    if (copy == NULL)
        return sgm_last_status();
    const sgm_shape *shape = sgm_tensor_shape(copy);
    write_header(file, type, shape);
    size_t bytes = (size_t)sgm_shape_elements(shape) * sgm_dtype_size(sgm_tensor_dtype(copy));
    if (bytes > 0)
        sgm__text_append_bytes(file, sgm_tensor_const_data(copy), bytes);
    sgm_tensor_free(copy);
    return file->failed ? SGM_ERROR_MEMORY : SGM_OK;
}

sgm_status sgm_npy_save(const char *path, const sgm_tensor *tensor)
{
    if (path == NULL || tensor == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "saving a NumPy file needs a path and a tensor");
    sgm__text file = {0};
    sgm_status status = sgm__npy_append(&file, path, tensor);
    if (status == SGM_OK)
        status = sgm__file_write_atomic(path, file.data, file.length);
    sgm__text_free(&file);
    return status;
}
