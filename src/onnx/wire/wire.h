/* ONNX's messages as bytes and in memory, and its tensors as ours. Internal.
 *
 * The structs and their readers are made from ONNX's proto file (cmake/onnx.cmake). */
#ifndef SGM_ONNX_WIRE_WIRE_H
#define SGM_ONNX_WIRE_WIRE_H

#include "base/base.h"
#include <onnx.pb-c.h>
#include <sigma/tensor.h>

/* The newest set of operators that is known here, and that exported models want. */
#define SGM__ONNX_OPSET 17
#define SGM__ONNX_IR_VERSION 8

/* NULL: malformed. Messages may be nested in each other a limited number of times. */
Onnx__ModelProto *sgm__onnx_unpack_model(const void *bytes, size_t length);
void sgm__onnx_free_model(Onnx__ModelProto *model);

/* --- types --- */
/* A type by ONNX's number; fails with the type's name if tensors cannot have it. */
sgm_status sgm__onnx_dtype(int64_t number, sgm_dtype *dtype);
int32_t sgm__onnx_type_number(sgm_dtype dtype);

/* --- tensors --- */
/* Checks that what the message holds is as much as its shape says. */
sgm_tensor *sgm__onnx_tensor(const Onnx__TensorProto *proto);
/* "x", for messages; never NULL. */
static inline const char *sgm__onnx_text(const char *text)
{
    return text != NULL ? text : "";
}

#endif
