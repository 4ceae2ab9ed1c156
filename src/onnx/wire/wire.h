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

/* --- types --- */
/* The tensor type with ONNX's number (TensorProto.DataType); fails with ONNX's name of the type if tensors
 * cannot have it. */
sgm_status sgm__onnx_dtype(int64_t number, sgm_dtype *dtype);
int32_t sgm__onnx_type_number(sgm_dtype dtype);

/* --- tensors --- */
/* A new tensor with the message's values. NULL and an error with the tensor's name if it holds more or
 * fewer elements than its shape says. */
sgm_tensor *sgm__onnx_tensor(const Onnx__TensorProto *proto);
/* Optional strings of a message are NULL where they are left out. */
static inline const char *sgm__onnx_text(const char *text)
{
    return text != NULL ? text : "";
}

#endif
