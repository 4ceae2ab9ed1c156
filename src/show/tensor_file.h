/* Tensors that an entry of the registry is set to. Internal. */
#ifndef SGM_SHOW_TENSOR_FILE_H
#define SGM_SHOW_TENSOR_FILE_H

#include "base/base.h"
#include <sigma/tensor.h>

/* Makes a tensor of the type of `like` from `values`, which is taken over (NULL: its maker has failed).
 * The shapes must be equal: nothing is broadcast, as that would hide a slip. */
sgm_status sgm__tensor_convert(sgm_tensor *values, const sgm_tensor *like, sgm_tensor **made);
/* Reads a tensor of the shape and type of `like` from a .npy file. */
sgm_status sgm__tensor_load(const char *path, const sgm_tensor *like, sgm_tensor **made);

#endif
