/* Tensors that commands bring. Internal. */
#ifndef SGM_CONTROL_CONTROL_TENSOR_H
#define SGM_CONTROL_CONTROL_TENSOR_H

#include "base/base.h"
#include <sigma/tensor.h>

/* From "[[0, 1], [2, 3]]", or a .npy file: of the type of `like`, whose shape it must have. */
sgm_status sgm__tensor_parse(const char *text, const sgm_tensor *like, sgm_tensor **made);
sgm_status sgm__tensor_load(const char *path, const sgm_tensor *like, sgm_tensor **made);

#endif
