/* What passes share: they walk an old graph in order and record what shall stay into a new one. Internal. */
#ifndef SGM_GRAPH_REBUILD_H
#define SGM_GRAPH_REBUILD_H

#include "graph/graph_internal.h"

typedef struct sgm__rebuild {
    const sgm_graph *old;
    sgm_graph *graph;
    sgm_value *map;    /* old value -> new value; nothing: not needed */
    sgm_value *inputs; /* of the current instruction, mapped */
    int32_t *buckets;  /* hash table of new values, -1: empty */
    size_t bucket_count;
} sgm__rebuild;

bool sgm__rebuild_begin(sgm__rebuild *work, const sgm_graph *old);
void sgm__rebuild_end(sgm__rebuild *work);
/* Fills `inputs` with where the instruction's operands are now. */
void sgm__rebuild_map(sgm__rebuild *work, const sgm__instruction *instruction);
/* The same instruction with mapped operands. */
sgm_value sgm__rebuild_transcribe(sgm__rebuild *work, const sgm__instruction *instruction);
/* What is recorded from here on belongs to the instruction's layer; false: no memory. */
bool sgm__rebuild_label(sgm__rebuild *work, const sgm__instruction *instruction);
/* The new graph with the old one's ends, checked; NULL on failure. */
sgm_graph *sgm__rebuild_finish(sgm__rebuild *work);

#endif
