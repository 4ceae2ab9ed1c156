/* Converts ONNX's tensor messages (TensorProto) to the library's tensors.
 *
 * Called for initialisers (model.c, import.c) and constants (build_shape.c). Writing tensors is in parts.c. A
 * message has its values in one of three places: as raw little-endian bytes, as a typed list whose elements
 * may be wider than the tensor's, or in another file (external.c). All are compared with the shape before a
 * tensor is made. */
#include "onnx/wire/wire.h"

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

/* Values as they lie in the message or its file: so many entries of `size` bytes. */
typedef struct source {
    const void *values;
    size_t count, size;
} source;

/* The list in which the proto file keeps a type's values when they are not raw. What is smaller than 32 bits
 * lies in integers of 32 bits. */
static source typed_values(const Onnx__TensorProto *proto)
{
    switch (proto->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        return (source){proto->float_data, proto->n_float_data, sizeof(float)};
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        return (source){proto->double_data, proto->n_double_data, sizeof(double)};
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        return (source){proto->int64_data, proto->n_int64_data, sizeof(int64_t)};
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
        return (source){proto->uint64_data, proto->n_uint64_data, sizeof(uint64_t)};
    default:
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

/* Bits from one element to the next, in raw data and in the list, where each entry has `*entry` bytes of
 * them. Types of 2 and 4 bits are packed in both, those of 6 bits in raw data only. */
static size_t stride_of(const Onnx__TensorProto *proto, bool raw, size_t *entry)
{
    size_t bits = (size_t)sgm__onnx_bits(proto->data_type);
    *entry = bits < 8 ? 1 : bits / 8;
    return bits == 6 && !raw ? 8 : bits;
}

/* A type that the library lacks: its codes become numbers of the wider type. */
static sgm_status fill_wider(const Onnx__TensorProto *proto, const source *from, size_t stride,
                             sgm_tensor *tensor)
{
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor)), entry;
    if (from->size == 1)
        return sgm__onnx_widen(proto->data_type, from->values, stride, count, sgm_tensor_data(tensor));
    stride_of(proto, false, &entry);
    uint8_t *codes = sgm__alloc(from->count * entry + 1);
    if (codes == NULL)
        return SGM_ERROR_MEMORY;
    copy_values(codes, entry, from);
    sgm_status status = sgm__onnx_widen(proto->data_type, codes, stride, count, sgm_tensor_data(tensor));
    sgm__free(codes);
    return status;
}

/* Tensors in segments are refused: nothing writes them. */
static sgm_status find_values(const Onnx__TensorProto *proto, const sgm__onnx_bytes *external, source *from)
{
    if (proto->segment != NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "it is one segment of a tensor; save the model with whole ones");
    *from = typed_values(proto);
    if (external != NULL)
        *from = (source){external->data, external->length, 1};
    else if (proto->has_raw_data)
        *from = (source){proto->raw_data.data, proto->raw_data.len, 1};
    return SGM_OK;
}

/* The entries that are there must be those that the shape wants. */
static sgm_status check_count(const source *from, const sgm_shape *shape, size_t stride, size_t entry)
{
    char text[128];
    size_t count = (size_t)sgm_shape_elements(shape), bits, wanted;
    bool fits = !sgm__mul_overflows(count, stride, &bits) && bits <= SIZE_MAX - 7;
    size_t bytes = fits ? (bits + 7) / 8 : 0;
    wanted = from->size == 1 ? bytes : bytes / entry; /* packed elements share an entry */
    if (fits && from->count == wanted)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_FORMAT, "its shape %s wants %zu elements, but there are %zu",
                    sgm_shape_text(shape, text, sizeof text), count,
                    from->size == 1 ? from->count * 8 / stride : from->count);
}

/* A raw bool may be any byte, so each is normalised to 0 or 1: kernels read them as such. */
static sgm_status read_tensor(const Onnx__TensorProto *proto, const sgm__onnx_bytes *external,
                              sgm_tensor **tensor)
{
    sgm_dtype dtype;
    sgm_shape shape;
    source from;
    size_t entry;
    SGM_TRY(sgm__onnx_dtype(proto->data_type, &dtype));
    SGM_TRY(read_shape(proto, &shape));
    SGM_TRY(find_values(proto, external, &from));
    size_t stride = stride_of(proto, from.size == 1, &entry), count = (size_t)sgm_shape_elements(&shape);
    SGM_TRY(check_count(&from, &shape, stride, entry));
    bool narrow = sgm__onnx_is_narrow(proto->data_type);
    bool equal = !narrow && (from.size == 1 || from.size == entry); /* as the tensor has them */
    *tensor = equal ? sgm_tensor_create_from(dtype, &shape, from.values) : sgm_tensor_create(dtype, &shape);
    if (*tensor == NULL)
        return sgm__last_failure();
    unsigned char *data = sgm_tensor_data(*tensor);
    if (narrow)
        return fill_wider(proto, &from, stride, *tensor);
    if (!equal)
        copy_values(data, entry, &from);
    for (size_t i = 0; i < count && dtype == SGM_BOOL; i++)
        data[i] = data[i] != 0;
    return SGM_OK;
}

sgm_tensor *sgm__onnx_tensor(const Onnx__TensorProto *proto, const char *folder)
{
    sgm_tensor *tensor = NULL;
    sgm__onnx_bytes external;
    bool elsewhere =
        proto->has_data_location && proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    sgm_status status = elsewhere ? sgm__onnx_external_open(proto, folder, &external) : SGM_OK;
    if (status == SGM_OK)
        status = read_tensor(proto, elsewhere ? &external : NULL, &tensor);
    if (elsewhere)
        sgm__onnx_external_close(&external);
    if (status == SGM_OK)
        return tensor;
    sgm_tensor_free(tensor);
    sgm__fail_within("tensor '%.100s'", sgm__onnx_text(proto->name));
    return NULL;
}
