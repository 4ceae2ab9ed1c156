/* A network for inference, apart from its trainer, with copies of the parameters. Internal. */
#ifndef SGM_INFER_INFERENCE_COPY_H
#define SGM_INFER_INFERENCE_COPY_H

#include "base/base.h"
#include <sigma/training.h>

typedef struct sgm__inference_copy {
    sgm_network *network;
    sgm_graph *graph;
    sgm_recording recording;
    sgm_session *session;
} sgm__inference_copy;

/* Records the network of this notation for `batch` examples; `costs`: with its costs. Call
 * sgm__inference_copy_free also after a failure. */
sgm_status sgm__inference_copy_record(sgm__inference_copy *copy, sgm_handler *handler, const char *notation,
                                      int64_t batch, sgm_dtype dtype, bool costs);
/* Returns the value of a parameter: a new tensor, which the caller frees; NULL: it failed. */
typedef sgm_tensor *(*sgm__parameter_function)(void *user, const char *name);
sgm_status sgm__inference_copy_fill(sgm__inference_copy *copy, sgm__parameter_function get, void *user);
/* Compiles the graph, to which outputs may have been added; the program belongs to the session. NULL: it
 * failed.
 */
sgm_program *sgm__inference_copy_prepare(sgm__inference_copy *copy);
void sgm__inference_copy_free(sgm__inference_copy *copy);

#endif
