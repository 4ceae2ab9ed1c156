/* Parameters under the names and in the layout that PyTorch has for them. Internal. */
#ifndef SGM_RUNS_TORCH_NAMES_H
#define SGM_RUNS_TORCH_NAMES_H

#include "base/base.h"

#include <sigma/network.h>
#include <sigma/tensor.h>

/* `names` is "torch", or "torch(LAYER=MODULE, ...)". */
sgm_status sgm__torch_names_check(const char *names);
/* Makes a bundle with the parameters of the network under their own names, from one with the names of
 * PyTorch's state_dict(). Tensors that no layer takes are an error, unless `skip_mismatch`. NULL: failed,
 * with an error. */
sgm_bundle *sgm__torch_import(const sgm_network *network, const char *names, const sgm_bundle *theirs,
                              bool skip_mismatch);
/* The reverse. Parameters without a name in PyTorch keep their own, which sgm__torch_import takes; a
 * warning by `source` lists them. */
sgm_bundle *sgm__torch_export(const sgm_network *network, const char *names, const sgm_bundle *own,
                              const char *source);

#endif
