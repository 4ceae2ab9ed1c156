/* A network apart from its trainer, with copies of the parameters. Internal. */
#ifndef SGM_TRAINING_FROZEN_H
#define SGM_TRAINING_FROZEN_H

#include "base/base.h"
#include <sigma/training.h>

typedef struct sgm__frozen {
    sgm_network *network;
    sgm_graph *graph;
    sgm_recording recording;
    sgm_session *session;
} sgm__frozen;

/* Records the network for `batch` records. Free it also when this failed. */
sgm_status sgm__frozen_record(sgm__frozen *frozen, sgm_handler *handler, const char *notation, int64_t batch,
                              sgm_dtype dtype, bool costs);
/* Gives a parameter its value: a new tensor, NULL on failure. */
typedef sgm_tensor *(*sgm__parameter_function)(void *user, const char *name);
sgm_status sgm__frozen_fill(sgm__frozen *frozen, sgm__parameter_function get, void *user);
/* The program of the graph, as far as it was recorded; NULL on failure. */
sgm_program *sgm__frozen_prepare(sgm__frozen *frozen);
void sgm__frozen_free(sgm__frozen *frozen);

#endif
