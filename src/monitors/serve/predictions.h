/* What a request is answered with. Internal to src/monitors/serve. */
#ifndef SGM_MONITORS_SERVE_PREDICTIONS_H
#define SGM_MONITORS_SERVE_PREDICTIONS_H

#include "infer/signature.h"
#include "monitors/http/http.h"

/* The predictions of a request; all is borrowed. `numbers` has the outputs of `examples` rows at least, in
 * the units that are written. */
typedef struct sgm__serve_predictions {
    const sgm__signature *signature;
    char *const *classes; /* names, NULL behind the last; NULL: none */
    bool wide;            /* outputs are float64 and are written with all of their digits */
    const double *numbers, *lengths;
    const sgm_tensor *labels; /* (count, steps), of a network with the cost ctc; else NULL */
    const int64_t *told;      /* the class of each example, of a model that tells it; else NULL */
    int64_t examples;
} sgm__serve_predictions;

/* Puts {"output": ..., "class" or "labels": ..., "label": their names} into the response. */
sgm_status sgm__serve_write(const sgm__serve_predictions *predictions, sgm__http_answer *answer);

#endif
