/* What layers of attention share: parts of layers that record parameters of their own. Internal. */
#ifndef SGM_NETWORK_LAYERS_BLOCKS_H
#define SGM_NETWORK_LAYERS_BLOCKS_H

#include "network/network_internal.h"

/* A parameter "PREFIXNAME" of this layer. Matrices have (inputs, outputs). */
sgm_value sgm__layer_prefixed(sgm_layer_call *call, sgm_graph *graph, const char *prefix, const char *name,
                              const sgm_shape *shape, const char *initialiser);
/* (..., features) as (rows, features). */
sgm_value sgm__layer_rows(sgm_graph *graph, sgm_value x);
/* x * weights + biases of rows (rows, features); parameters "PREFIXweights" and "PREFIXbiases". */
sgm_value sgm__layer_project(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int64_t size,
                             const char *prefix, bool biased);
/* Times "PREFIXgains" and, if biased, plus "PREFIXbiases". `centred`: layer_norm, else rms_norm. */
sgm_value sgm__layer_normalise(sgm_layer_call *call, sgm_graph *graph, sgm_value x, bool centred, bool biased,
                               const char *prefix, double epsilon);
/* Of sequences of `time` rows each, with its projections: "PREFIXweights", "PREFIXbiases",
 * "PREFIXoutput_weights", "PREFIXoutput_biases". */
sgm_value sgm__layer_attend(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int64_t time,
                            const char *prefix);
/* Dropout at this rate, while training. */
sgm_value sgm__layer_drop(sgm_layer_call *call, sgm_graph *graph, sgm_value x, double rate);

#endif
