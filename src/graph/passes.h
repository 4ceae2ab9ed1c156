/* From a graph as recorded to one worth running: each pass reads a graph and makes a new one. Internal. */
#ifndef SGM_GRAPH_PASSES_H
#define SGM_GRAPH_PASSES_H

#include "graph/graph_internal.h"

/* Whether an operation on this type is of the kind that a pass asks for. */
typedef bool (*sgm__keep_function)(void *user, const sgm_op *op, sgm_dtype dtype);

/* An equal graph. NULL: no memory. */
sgm_graph *sgm__graph_copy(const sgm_graph *graph);
/* Composed operations become their parts unless `keep` wants them whole. */
sgm_graph *sgm__pass_expand(const sgm_graph *graph, sgm__keep_function keep, void *user);
/* Operations that give bfloat16 and that `widens` names are done in float32, between casts. */
sgm_graph *sgm__pass_widen(const sgm_graph *graph, sgm__keep_function widens, void *user);
/* Without what no output and no assignment needs, without duplicates, and without operations that do nothing.
 */
sgm_graph *sgm__pass_simplify(const sgm_graph *graph);

/* Powers of small whole numbers become products (powers.c). */
sgm_graph *sgm__pass_powers(const sgm_graph *graph);
/* Sums of padded parts become concatenations, sums of products of matrices one product (joined_sums.c). */
sgm_graph *sgm__pass_sums(const sgm_graph *graph);
/* A concatenation of neighbours in another, longer one is a slice of that (nested_concatenations.c). */
sgm_graph *sgm__pass_runs(const sgm_graph *graph);

#endif
