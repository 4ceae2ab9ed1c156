/* ONNX's messages as bytes and in memory, and its tensors as the library's own. Internal.
 *
 * What reads files that may be damaged or hostile is here: sizes and depths are checked before they are
 * believed. What the messages mean is in src/onnx. The structs and their readers (onnx.pb-c.h) are
 * generated from ONNX's proto file by protoc-c when Sigma is built (cmake/onnx.cmake). */
#ifndef SGM_ONNX_WIRE_WIRE_H
#define SGM_ONNX_WIRE_WIRE_H

#include "base/base.h"
#include <onnx.pb-c.h>
#include <sigma/tensor.h>

/* Exported models demand this set of operators (ONNX 1.12); models that are read may be of newer sets
 * (model.c). */
#define SGM__ONNX_OPSET 17
#define SGM__ONNX_IR_VERSION 8

/* A copy of everything in the bytes. NULL and an error: malformed, or messages nested too deeply. Free
 * with sgm__onnx_free_model. */
Onnx__ModelProto *sgm__onnx_unpack_model(const void *bytes, size_t length);
void sgm__onnx_free_model(Onnx__ModelProto *model);
/* Frees the raw data of a tensor of a model. */
void sgm__onnx_drop_data(Onnx__TensorProto *proto);

/* --- types of elements (element.c) --- */
/* The tensor type that holds ONNX's type of that number (TensorProto.DataType): the same one, or the next
 * wider one that the library has. Fails with ONNX's name of the type if there is none. */
sgm_status sgm__onnx_dtype(int64_t number, sgm_dtype *dtype);
/* ONNX's number of a tensor type. */
int32_t sgm__onnx_type_number(sgm_dtype dtype);
/* Whether tensors hold this type in a wider one. The functions below take numbers that sgm__onnx_dtype
 * knows. */
bool sgm__onnx_is_narrow(int64_t number);
int sgm__onnx_bits(int32_t number);
bool sgm__onnx_is_integer(int32_t number);
bool sgm__onnx_is_unsigned(int32_t number);
/* The smallest and the largest number of a type, infinities aside. */
void sgm__onnx_limits(int32_t number, double *minimum, double *maximum);
/* Where a number goes that lies between two powers of two (float8e8m0). */
typedef enum sgm__onnx_direction { SGM__ONNX_UP, SGM__ONNX_DOWN, SGM__ONNX_NEAREST } sgm__onnx_direction;
/* What a cast makes of a number: floats are rounded; one beyond the largest becomes that if it saturates (of
 * fewer than 16 bits only), else infinite or NaN. Integers wrap around. */
double sgm__onnx_narrow(int32_t number, double value, bool saturates, sgm__onnx_direction direction);
/* The same of integers, exactly. */
int64_t sgm__onnx_wrap(int32_t number, int64_t value);
/* Writes `count` numbers of the wider type to `target`; their codes begin every `stride` bits, from the
 * lowest bit of each byte on. */
sgm_status sgm__onnx_widen(int32_t number, const uint8_t *bytes, size_t stride, size_t count, void *target);

/* --- tensors --- */
/* A new tensor with the message's values, also those in another file of `folder` (NULL: there is none). NULL
 * and an error with the tensor's name if it holds more or fewer elements than its shape says. */
sgm_tensor *sgm__onnx_tensor(const Onnx__TensorProto *proto, const char *folder);

/* Bytes of another file, mapped into memory. */
typedef struct sgm__onnx_bytes {
    const void *data;
    size_t length;
    void *map; /* what sgm__onnx_external_close unmaps */
    size_t map_length;
} sgm__onnx_bytes;
/* The bytes of a tensor whose data lies in another file (external.c). Names that lead out of the folder,
 * links, and places beyond the file's end are errors. Close it also where it failed. */
sgm_status sgm__onnx_external_open(const Onnx__TensorProto *proto, const char *folder,
                                   sgm__onnx_bytes *bytes);
void sgm__onnx_external_close(sgm__onnx_bytes *bytes);

/* Optional strings of a message are NULL where they are left out. */
static inline const char *sgm__onnx_text(const char *text)
{
    return text != NULL ? text : "";
}

#endif
