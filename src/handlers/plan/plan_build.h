/* What the parts of the planner share while they make a plan. Internal.
 *
 * sgm__plan_create (plan.c) runs them in this order: buffers (plan_buffers.c), nodes (plan_nodes.c), an index
 * of readers (plan.c), steps (plan_steps.c, which calls plan_merge.c, plan_order.c and plan_late.c), places
 * (plan_places.c). Each part reads what those before it wrote into sgm__plan_build. Value means a value of
 * the lowered graph, node a node of the plan; there are more nodes than values, since copies are added. With
 * a budget of memory (plan_memory.c) they run for several graphs, of which the cheapest that fits is kept.
 */
#ifndef SGM_HANDLERS_PLAN_PLAN_BUILD_H
#define SGM_HANDLERS_PLAN_PLAN_BUILD_H

#include "handlers/handler.h"

/* The largest number of nodes in an elementwise step. */
#define SGM__PLAN_LONGEST_CHAIN 64

/* What the planner knows about a node besides the node itself. A root is a node that is no view: sources and
 * computed values are their own root. */
typedef struct sgm__plan_node_notes {
    int32_t root;          /* the node whose memory this one shows; itself unless it is a view */
    int64_t view_offset;   /* from the root's first element to this node's, in elements */
    int32_t contiguous;    /* a contiguous copy of this view, made for kernels that need one; -1: not made */
    int32_t writes;        /* the state (a node) that this copy overwrites; -1: none */
    int32_t step;          /* the step that computes it; -1: none does (sources and views) */
    int32_t position;      /* among the members of its step */
    int32_t buffer;        /* the concatenation in whose memory it is computed; -1: memory of its own */
    bool is_in_place;      /* a concatenation with operands that are computed in its memory */
    bool is_again;         /* computed again to save memory: it joins no step that is already over */
    int64_t buffer_offset; /* from the first byte of `buffer` to this node's, in bytes */
    /* Of roots: the last step that reads their memory; -1: none; INT32_MAX: an output. */
    int32_t last_use;
} sgm__plan_node_notes;

/* One read of a root's memory, by `node` through its operand `operand` (the root itself or a view of it). The
 * reads of a root are readers[first_reader[root]] up to, and without, readers[first_reader[root + 1]], in
 * ascending order of `node`. */
typedef struct sgm__plan_reader {
    int32_t node, operand;
} sgm__plan_reader;

/* Whether a value is computed directly in the memory of a concatenation. */
typedef struct sgm__plan_buffer {
    int32_t value; /* the outermost concatenation, a value; -1: the value has memory of its own */
    /* A value whose rows contain this one's, so that its strides apply; -1: the part is contiguous. */
    int32_t rows;
    int64_t offset; /* elements from the beginning of `value` to this one's first */
} sgm__plan_buffer;

/* The state of planning. `plan` becomes the result; everything else is freed by sgm__plan_create. */
typedef struct sgm__plan_build {
    const sgm_graph *graph; /* the lowered graph */
    const sgm_handler *handler;
    sgm__plan *plan;
    int32_t *node_of;  /* of values: the node that has it */
    int32_t *products; /* of values: how many matrix products have it as their right operand */
    sgm__plan_node_notes *notes;
    sgm__plan_buffer *buffers; /* one for each value */
    size_t node_capacity, notes_capacity, operand_capacity;
    size_t constant_capacity; /* bytes of plan->constants */
    int32_t *first_reader; /* `first_reader` and `readers`: made when all nodes exist, see sgm__plan_reader */
    sgm__plan_reader *readers;
} sgm__plan_build;

/* plan.c: plans a lowered graph. The caller owns the plan. */
sgm_status sgm__plan_lowered(const sgm_graph *lowered, const sgm_handler *handler, sgm__plan **plan);
/* plan_memory.c: replaces *plan, which is of the lowered graph, by one that computes values again, if it
 * takes more than the budget. */
sgm_status sgm__plan_save_memory(const sgm_graph *lowered, const sgm_handler *handler,
                                 const sgm__memory_budget *budget, sgm__plan **plan);
/* plan_buffers.c: decides which values are computed in the memory of a concatenation. */
sgm_status sgm__plan_find_buffers(sgm__plan_build *build);
/* plan_nodes.c: makes the nodes with their strides: views, copies where a kernel needs contiguous memory,
 * sources, outputs. */
sgm_status sgm__plan_build_nodes(sgm__plan_build *build);
/* plan_fills.c: whether a constant of so many bytes is only listed; lists one, and notes that in its place;
 * gives all that are listed places from `offset` on, and returns the end of the last. */
bool sgm__plan_fills_later(const sgm_handler *handler, size_t bytes);
sgm_status sgm__plan_add_fill(sgm__plan *plan, sgm_tensor *tensor, sgm__place *place);
int64_t sgm__plan_lay_out_fills(sgm__plan *plan, int64_t offset);
/* plan_steps.c: groups nodes into steps and writes plan->steps and plan->order. */
sgm_status sgm__plan_build_steps(sgm__plan_build *build);
/* plan_merge.c: merges elementwise steps into a later step that reads them; changes `step` and `position` of
 * nodes and the number of steps. */
sgm_status sgm__plan_merge_steps(sgm__plan_build *build, int32_t *count);
/* plan_order.c: moves updates of large states forward; changes `step` of nodes. */
sgm_status sgm__plan_order_steps(sgm__plan_build *build, int32_t count);
/* plan_late.c: moves large products down to their readers; changes `step` of nodes. */
sgm_status sgm__plan_delay_products(sgm__plan_build *build, int32_t count);
/* plan_places.c: gives every value its memory. */
sgm_status sgm__plan_build_places(sgm__plan_build *build);

/* Whether an operation has a formula for one element, so that it can be a member of an elementwise step. */
bool sgm__plan_is_fusable(const sgm_op *op);
/* Whether a node's random numbers are drawn by the elementwise step that reads them, as one of its
 * members. */
bool sgm__plan_is_drawn(const sgm__plan_build *build, int32_t node);
/* Whether a node can be a member of an elementwise step: fusable or drawn. */
bool sgm__plan_is_tiled(const sgm__plan_build *build, int32_t node);

#endif
