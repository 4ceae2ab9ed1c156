/* Which values of a graph are the same in every run, and the part of a graph that makes them. Internal. */
#ifndef SGM_GRAPH_CONSTANTS_H
#define SGM_GRAPH_CONSTANTS_H

#include "graph/graph_internal.h"

typedef enum sgm__constancy {
    SGM__CHANGES,  /* it depends on inputs, states, or numbers that may be others in the next recording */
    SGM__NUMBERS,  /* it is made of numbers alone */
    SGM__CONSTANTS /* it is made of constants, and perhaps of numbers */
} sgm__constancy;
/* Of each value; free with sgm__free. NULL: out of memory. */
sgm__constancy *sgm__constancy_of(const sgm_graph *graph);

/* The constant values that are worth computing once: those that are computed, not views, read by something
 * that changes, perhaps through views, and hardly larger than what they are made of. Sets `chosen`, which is
 * false for all on entry, for each of them. */
sgm_status sgm__constants_choose(const sgm_graph *graph, const sgm__constancy *constancy, bool *chosen);
/* The name of a chosen value among the outputs of the slice. */
#define SGM__CONSTANT_NAME 24
const char *sgm__constant_name(size_t value, char text[SGM__CONSTANT_NAME]);
/* A graph of what makes the chosen values, which are its outputs. */
sgm_graph *sgm__constants_slice(const sgm_graph *graph, const bool *chosen);
/* The graph with constants in place of chosen values: the tensor of each, others are not read. */
sgm_graph *sgm__constants_replace(const sgm_graph *graph, const bool *chosen, sgm_tensor *const *tensors);

#endif
