/* A network apart from its trainer, with copies of the parameters. Internal. */
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

/* Records the network for `batch` examples. Free it also when this failed. */
sgm_status sgm__inference_copy_record(sgm__inference_copy *frozen, sgm_handler *handler, const char *notation,
                                      int64_t batch, sgm_dtype dtype, bool costs);
/* Gives a parameter its value: a new tensor, NULL on failure. */
typedef sgm_tensor *(*sgm__parameter_function)(void *user, const char *name);
sgm_status sgm__inference_copy_fill(sgm__inference_copy *frozen, sgm__parameter_function get, void *user);
/* The program of the graph, as far as it was recorded; NULL on failure. */
sgm_program *sgm__inference_copy_prepare(sgm__inference_copy *frozen);
void sgm__inference_copy_free(sgm__inference_copy *frozen);

#endif
