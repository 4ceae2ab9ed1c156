/* What the parts of planning share while a plan is made: nodes, then steps, then places. Internal. */
#ifndef SGM_HANDLERS_PLAN_PLAN_BUILD_H
#define SGM_HANDLERS_PLAN_PLAN_BUILD_H

#include "handlers/handler.h"

#define SGM__PLAN_LONGEST_CHAIN 64 /* nodes of an elementwise step */

typedef struct sgm__plan_node_notes {
    int32_t root;          /* the node whose memory this one sees; itself unless it is a view */
    int64_t view_offset;   /* elements from the root's first element */
    int32_t contiguous;    /* a copy of this node in memory of its own, once one was needed; -1 */
    int32_t writes;        /* state that this node's value goes to; -1 */
    int32_t step;          /* -1: none (sources and views) */
    int32_t position;      /* in its step */
    int32_t buffer;        /* node in whose memory it lies; -1 */
    bool is_in_place;      /* others lie in its memory */
    int64_t buffer_offset; /* bytes */
    int32_t last_use;      /* last step that reads the root's memory; INT32_MAX: it is an output */
} sgm__plan_node_notes;

/* Who reads a root's memory, itself or through a view: readers[first[root]] to readers[first[root + 1]]. */
typedef struct sgm__plan_reader {
    int32_t node, operand;
} sgm__plan_reader;

/* Where a value is made that lies in a concatenation's memory. */
typedef struct sgm__plan_buffer {
    int32_t value;  /* the outermost concatenation; -1: it has memory of its own */
    int32_t rows;   /* the concatenation whose rows it is a part of; -1: it is a block */
    int64_t offset; /* elements */
} sgm__plan_buffer;

typedef struct sgm__plan_build {
    const sgm_graph *graph; /* lowered */
    const sgm_handler *handler;
    sgm__plan *plan;
    int32_t *node_of;  /* graph value -> node */
    int32_t *products; /* of values: the products that have it as their right side */
    sgm__plan_node_notes *notes;
    sgm__plan_buffer *buffers; /* of values */
    size_t node_capacity, notes_capacity, operand_capacity;
    int32_t *first_reader; /* these two: once all nodes are there */
    sgm__plan_reader *readers;
} sgm__plan_build;

/* plan_buffers.c: which values are made in the memory of a concatenation. */
sgm_status sgm__plan_find_buffers(sgm__plan_build *build);
/* plan_nodes.c: nodes, views, copies where contiguous memory is wanted, inputs, states, constants, outputs.
 */
sgm_status sgm__plan_build_nodes(sgm__plan_build *build);
/* plan_steps.c: the order of execution, elementwise chains in one step. */
sgm_status sgm__plan_build_steps(sgm__plan_build *build);
/* plan_merge.c: elementwise steps join the only step that reads them; nodes' steps and positions change. */
sgm_status sgm__plan_merge_steps(sgm__plan_build *build, int32_t *count);
/* plan_order.c: updates of states come as early as they can; nodes' steps change. */
sgm_status sgm__plan_order_steps(sgm__plan_build *build, int32_t count);
/* plan_places.c: every value's memory. */
sgm_status sgm__plan_build_places(sgm__plan_build *build);

bool sgm__plan_is_fusable(const sgm_op *op);
/* Random numbers that the step that reads them draws itself. */
bool sgm__plan_is_drawn(const sgm__plan_build *build, int32_t node);
/* One of both: it can be computed tile by tile. */
bool sgm__plan_is_tiled(const sgm__plan_build *build, int32_t node);

#endif
