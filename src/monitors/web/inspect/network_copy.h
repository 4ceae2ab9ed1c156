/* A copy of a trainer's network, with which the monitor computes beside the training. Internal. */
#ifndef SGM_MONITORS_WEB_INSPECT_NETWORK_COPY_H
#define SGM_MONITORS_WEB_INSPECT_NETWORK_COPY_H

#include "infer/inference_copy.h"
#include "monitors/web/web.h"

typedef struct sgm__web_copy {
    sgm__inference_copy copied;
    int64_t iteration; /* whose parameters it has */
} sgm__web_copy;

typedef enum sgm__web_readiness {
    SGM__WEB_AS_IT_IS, /* SGM_ERROR_STATE before the parameters are there */
    SGM__WEB_PREPARED  /* they are made if they are not there yet */
} sgm__web_readiness;

/* For so many examples at once. A training waits only while its parameters are copied, not while the network
 * is recorded. Free the copy's `copied` also when this failed; the trainer stays borrowed until then, as its
 * handler computes. */
sgm_status sgm__web_copy_network(sgm__web_copy *copy, const sgm__web_trainer *watched, int64_t examples,
                                 sgm__web_readiness readiness);

#endif
