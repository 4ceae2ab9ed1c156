/* Functions that layers of sequences share: parts of layers that record parameters of their own, and which
 * steps count. Internal. */
#ifndef SGM_NETWORK_LAYERS_BLOCKS_H
#define SGM_NETWORK_LAYERS_BLOCKS_H

#include "network/network_internal.h"

/* Which steps count: true where step < lengths of the example. `lengths` is int64 (batch), the result bool
 * (batch, time). */
sgm_value sgm__layer_steps(sgm_graph *graph, sgm_value lengths, int64_t time);
/* A trainable parameter "PREFIXNAME" of this layer. A matrix is (inputs, outputs), which its initialiser
 * takes as fans, and is used with sgm_layer_matmul alone; anything else has no fans. */
sgm_value sgm__layer_prefixed(sgm_layer_call *call, sgm_graph *graph, const char *prefix, const char *name,
                              const sgm_shape *shape, const char *initialiser);
/* While training, each element is 0 with probability `rate`, else x / (1 - rate); otherwise x itself. `rate`
 * is below 1. */
sgm_value sgm__layer_drop(sgm_layer_call *call, sgm_graph *graph, sgm_value x, double rate, int64_t seed);
/* --- norms.c --- */
/* layer_norm of x if `centred`, else rms_norm, times "PREFIXgains" and, if `biased`, plus "PREFIXbiases". */
sgm_value sgm__layer_normalise(sgm_layer_call *call, sgm_graph *graph, sgm_value x, bool centred, bool biased,
                               const char *prefix, double epsilon);
/* x / |x| over the last axis. */
sgm_value sgm__layer_normalise_length(sgm_graph *graph, sgm_value x);
/* --- rotary.c --- */
/* Queries or keys (batch, time, heads, size), of which each is turned by its place; `size` is even. */
sgm_value sgm__layer_rotate(sgm_layer_call *call, sgm_graph *graph, sgm_value x);
/* --- heads.c --- */
/* The number of heads of keys and values; each serves heads / key_heads heads of queries. */
int64_t sgm__layer_key_heads(sgm_layer_call *call);
/* How many features a head has, of `features` that come into the layer. */
int64_t sgm__layer_head_size(sgm_layer_call *call, int64_t features);
/* The heads' result, (batch * time, heads * size), from queries, keys and values side by side in each row of
 * `all`; `size` is that of a head. If single steps are recorded, keys and values of the steps before are kept
 * in the states "PREFIXcache_keys" and "PREFIXcache_values". */
sgm_value sgm__layer_look(sgm_layer_call *call, sgm_graph *graph, sgm_value all, int64_t time, int64_t size,
                          const char *prefix);

#endif
