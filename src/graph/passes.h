/* Declares the passes, which turn a graph as recorded into one that is worth running: each reads a graph and
 * makes a new one. Internal.
 *
 * The planner (src/handlers/plan/plan.c) calls them in this order: expand, widen if the graph has bfloat16,
 * then powers, simplify, sums, simplify, runs, simplify, transposed products; within a budget of memory
 * (plan_memory.c) recompute, of the result. Each returns NULL on failure, and leaves the old graph as it is,
 * owned by the caller. The new graph has the same inputs, states, outputs and assignments by name, as far as
 * they are needed. */
#ifndef SGM_GRAPH_PASSES_H
#define SGM_GRAPH_PASSES_H

#include "graph/graph_internal.h"

/* Asks the handler about an operation with a result of this type; the pass says what the answer means. */
typedef bool (*sgm__keep_function)(void *user, const sgm_op *op, sgm_dtype dtype);

/* An equal graph; NULL: out of memory. */
sgm_graph *sgm__graph_copy(const sgm_graph *graph);
/* Replaces composed operations by their parts, unless `keep` returns true for them. */
sgm_graph *sgm__pass_expand(const sgm_graph *graph, sgm__keep_function keep, void *user);

/* How a handler computes what it does not compute in bfloat16. */
typedef struct sgm__widening {
    sgm__keep_function widens;
    void *user;
    bool rounds;       /* products of float32 may be told to round their right operand */
    bool reads_halves; /* products of bfloat16 by a constant stay as they are */
} sgm__widening;
/* Computes those operations with results of type bfloat16 for which `widens` returns true in float32, between
 * casts: handlers without kernels for bfloat16 still get one rounding per operation. Rows that are looked up
 * are rounded after that. */
sgm_graph *sgm__pass_widen(const sgm_graph *graph, const sgm__widening *how);
/* Drops instructions that no output and no assignment needs, duplicates, and operations that change nothing.
 */
sgm_graph *sgm__pass_simplify(const sgm_graph *graph);

/* powers.c: powers with small whole exponents become products. */
sgm_graph *sgm__pass_powers(const sgm_graph *graph);
/* joined_sums.c: sums of padded parts become concatenations, sums of matrix products one matrix product. */
sgm_graph *sgm__pass_sums(const sgm_graph *graph);
/* nested_concatenations.c: a concatenation whose operands are neighbours in a longer one becomes a slice of
 * it. */
sgm_graph *sgm__pass_runs(const sgm_graph *graph);
/* transposed_products.c: a product that is only read transposed is made transposed. */
sgm_graph *sgm__pass_transposed_products(const sgm_graph *graph);

/* scaled_convolutions.c: constant factors and terms of channels go into weights and biases. Called by
 * sessions before planning (src/handlers/session_fold.c), as what it records is computed once. */
sgm_graph *sgm__pass_scaled_convolutions(const sgm_graph *graph);

/* constant_states.c: states that the graph does not assign to become constants. `get` gives the value of one:
 * a new tensor, or NULL and an error. */
typedef sgm_tensor *(*sgm__value_function)(void *user, const char *state);
sgm_graph *sgm__pass_constant_states(const sgm_graph *graph, sgm__value_function get, void *user);
/* quantized_products.c: products of float32 with constant weights become ones of integers of 8 bits; *count
 * is how many. Both are called by sessions before planning (src/handlers/session_inference.c). */
sgm_graph *sgm__pass_quantized_products(const sgm_graph *graph, int32_t *count);

/* recompute.c: what of the forward pass is computed again for the gradients. */
typedef struct sgm__recomputing {
    int32_t turn;           /* the value behind which gradients are recorded: the cost */
    int32_t segments;       /* into which the forward pass is cut; the last one is kept */
    int32_t whole_segments; /* the first so many compute products again, too; the others keep them */
} sgm__recomputing;
sgm_graph *sgm__pass_recompute(const sgm_graph *graph, const sgm__recomputing *choice);

#endif
