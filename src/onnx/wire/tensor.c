/* Converts ONNX's tensor messages (TensorProto) and type numbers to the library's tensors and types.
 *
 * Called for initialisers and constants (import.c, build_shape.c), for declared types (model.c), for casts
 * (build_elementwise.c), and by export (parts.c) for type numbers. Writing tensors is in parts.c. A
 * message has its values in one of two places: as raw little-endian bytes, or as a typed list whose
 * elements may be wider than the tensor's. Both are compared with the shape before a tensor is made. */
#include "onnx/wire/wire.h"

/* Indexed by TensorProto.DataType. Rows without a type of the library have a name only, for the error. */
static const struct type_row {
    const char *name;
    bool known;
    sgm_dtype dtype;
} types[] = {
    [1] = {"float", true, SGM_FLOAT32},
    [2] = {"uint8", true, SGM_UINT8},
    [3] = {"int8", false, 0},
    [4] = {"uint16", false, 0},
    [5] = {"int16", false, 0},
    [6] = {"int32", true, SGM_INT32},
    [7] = {"int64", true, SGM_INT64},
    [8] = {"string", false, 0},
    [9] = {"bool", true, SGM_BOOL},
    [10] = {"float16", false, 0},
    [11] = {"double", true, SGM_FLOAT64},
    [12] = {"uint32", false, 0},
    [13] = {"uint64", false, 0},
    [14] = {"complex64", false, 0},
    [15] = {"complex128", false, 0},
    [16] = {"bfloat16", true, SGM_BFLOAT16},
};
#define TYPE_COUNT ((int64_t)(sizeof types / sizeof types[0]))

sgm_status sgm__onnx_dtype(int64_t number, sgm_dtype *dtype)
{
    if (number < 1 || number >= TYPE_COUNT)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "type number %lld is unknown here", (long long)number);
    if (!types[number].known)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "type %s is not supported: tensors are of float, double, bfloat16, int32, int64, uint8 or bool",
            types[number].name);
    *dtype = types[number].dtype;
    return SGM_OK;
}

int32_t sgm__onnx_type_number(sgm_dtype dtype)
{
    for (int32_t i = 1; i < TYPE_COUNT; i++)
        if (types[i].known && types[i].dtype == dtype)
            return i;
    return 0;
}

/* sgm_shape_elements is negative if a dimension is, or if the product does not fit. */
static sgm_status read_shape(const Onnx__TensorProto *proto, sgm_shape *shape)
{
    char text[128];
    if (proto->n_dims > SGM_MAX_RANK)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "it has %zu dimensions, at most %d are supported",
                        proto->n_dims, SGM_MAX_RANK);
    *shape = (sgm_shape){.rank = (int32_t)proto->n_dims};
    for (size_t i = 0; i < proto->n_dims; i++)
        shape->dims[i] = proto->dims[i];
    if (sgm_shape_elements(shape) < 0)
        return sgm_fail(SGM_ERROR_FORMAT, "its shape %s is impossible",
                        sgm_shape_text(shape, text, sizeof text));
    return SGM_OK;
}

/* Values in the message: how many, and the size in bytes of one as it is stored there (not of the tensor's
 * element). */
typedef struct source {
    const void *values;
    size_t count, size;
} source;

/* The list in which the proto file keeps a type's values when they are not raw. uint8, bool and the bits
 * of bfloat16 are stored in 32-bit integers. */
static source typed_values(const Onnx__TensorProto *proto, sgm_dtype dtype)
{
    switch ((int)dtype) {
    case SGM_FLOAT32:
        return (source){proto->float_data, proto->n_float_data, sizeof(float)};
    case SGM_FLOAT64:
        return (source){proto->double_data, proto->n_double_data, sizeof(double)};
    case SGM_INT64:
        return (source){proto->int64_data, proto->n_int64_data, sizeof(int64_t)};
    default: /* all that is smaller lies in numbers of 32 bits */
        return (source){proto->int32_data, proto->n_int32_data, sizeof(int32_t)};
    }
}

/* Takes the first `size` bytes of each stored number. That narrows an integer correctly because both the
 * host and the format are little-endian. */
static void copy_values(unsigned char *target, size_t size, const source *from)
{
    for (size_t i = 0; i < from->count; i++)
        memcpy(target + i * size, (const unsigned char *)from->values + i * from->size, size);
}

/* Data in another file and tensors in segments are refused: neither occurs in models that are one file. */
static sgm_status check_plain(const Onnx__TensorProto *proto)
{
    if (proto->has_data_location && proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "its data lies in another file; save the model as one file");
    if (proto->segment != NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "it is one segment of a tensor; save the model with whole ones");
    return SGM_OK;
}

/* A raw bool may be any byte, so each is normalised to 0 or 1: kernels read them as such. */
static sgm_status read_tensor(const Onnx__TensorProto *proto, sgm_tensor **tensor)
{
    sgm_dtype dtype;
    sgm_shape shape;
    char text[128];
    SGM_TRY(check_plain(proto));
    SGM_TRY(sgm__onnx_dtype(proto->data_type, &dtype));
    SGM_TRY(read_shape(proto, &shape));
    size_t size = sgm_dtype_size(dtype), count = (size_t)sgm_shape_elements(&shape), bytes;
    source from = typed_values(proto, dtype);
    if (proto->has_raw_data)
        from = (source){proto->raw_data.data, proto->raw_data.len / size, size};
    if (sgm__mul_overflows(count, size, &bytes) || from.count != count ||
        (proto->has_raw_data && proto->raw_data.len != bytes))
        return sgm_fail(SGM_ERROR_FORMAT, "its shape %s wants %zu elements, but there are %zu",
                        sgm_shape_text(&shape, text, sizeof text), count, from.count);
    bool equal = from.size == size; /* as the tensor has them */
    *tensor = equal ? sgm_tensor_create_from(dtype, &shape, from.values) : sgm_tensor_create(dtype, &shape);
    if (*tensor == NULL)
        return sgm__last_failure();
    unsigned char *data = sgm_tensor_data(*tensor);
    if (!equal)
        copy_values(data, size, &from);
    for (size_t i = 0; i < count && dtype == SGM_BOOL; i++)
        data[i] = data[i] != 0;
    return SGM_OK;
}

sgm_tensor *sgm__onnx_tensor(const Onnx__TensorProto *proto)
{
    sgm_tensor *tensor = NULL;
    if (read_tensor(proto, &tensor) != SGM_OK)
        sgm__fail_within("tensor '%.100s'", sgm__onnx_text(proto->name));
    return tensor;
}
