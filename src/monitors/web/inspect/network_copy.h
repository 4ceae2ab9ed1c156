/* A copy of a trainer's network, with which the monitor computes beside the training.
 *
 * example_pass.c and play.c predict with such copies. It stands on infer/inference_copy.h and adds what
 * concerns the trainer: its lock, and the moment whose parameters the copy has. Internal. */
#ifndef SGM_MONITORS_WEB_INSPECT_NETWORK_COPY_H
#define SGM_MONITORS_WEB_INSPECT_NETWORK_COPY_H

#include "infer/inference_copy.h"
#include "monitors/web/web.h"

/* A recorded network in a session of its own, on the trainer's handler. */
typedef struct sgm__web_copy {
    sgm__inference_copy copied;
    int64_t iteration; /* after which the parameters were copied */
} sgm__web_copy;

/* What to do with a trainer whose parameters have not been initialised. */
typedef enum sgm__web_readiness {
    SGM__WEB_AS_IT_IS, /* fail with SGM_ERROR_STATE */
    SGM__WEB_PREPARED  /* initialise the parameters first */
} sgm__web_readiness;

/* Makes a copy for a batch of so many examples. A training waits only while its parameters are copied, not
 * while the network is recorded. The caller frees copy->copied, also after a failure, and keeps the
 * trainer borrowed until then, because its handler computes. */
sgm_status sgm__web_copy_network(sgm__web_copy *copy, const sgm__web_trainer *watched, int64_t examples,
                                 sgm__web_readiness readiness);

#endif
