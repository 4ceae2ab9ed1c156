/* Declares the frame of all passes: they walk through an old graph in order, and record into a new one.
 * Internal.
 *
 * A pass calls sgm__rebuild_begin, sets map[i] for each instruction i that is needed, usually to
 * sgm__rebuild_transcribe of it, and ends with sgm__rebuild_finish. Since operands come before their readers,
 * their map entries are set when they are asked for. */
#ifndef SGM_GRAPH_REBUILD_H
#define SGM_GRAPH_REBUILD_H

#include "graph/graph_internal.h"

typedef struct sgm__rebuild {
    const sgm_graph *old;
    sgm_graph *graph;
    sgm_value *map;    /* by old value: the new value; nothing: not needed, or not made yet */
    sgm_value *inputs; /* of the instruction at hand, mapped; room for the one with the most operands */
    int32_t *buckets;  /* used by simplify: hash table of new values, -1: free */
    size_t bucket_count;
} sgm__rebuild;

/* False: out of memory; nothing needs to be freed then. */
bool sgm__rebuild_begin(sgm__rebuild *work, const sgm_graph *old);
/* Frees the tables, but not the new graph. */
void sgm__rebuild_end(sgm__rebuild *work);
/* Fills work->inputs with the new values of the instruction's operands. */
void sgm__rebuild_map(sgm__rebuild *work, const sgm__instruction *instruction);
/* Records the same instruction in the new graph, with work->inputs as operands. */
sgm_value sgm__rebuild_transcribe(sgm__rebuild *work, const sgm__instruction *instruction);
/* Gives everything recorded from here on the label of this instruction's layer; false: out of memory. */
bool sgm__rebuild_label(sgm__rebuild *work, const sgm__instruction *instruction);
/* Records the old graph's outputs and assignments, frees the tables, and returns the new graph, verified in
 * builds with assertions; NULL on failure, with the new graph freed. */
sgm_graph *sgm__rebuild_finish(sgm__rebuild *work);

#endif
