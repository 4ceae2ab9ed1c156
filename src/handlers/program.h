/* A plan: the compiled form of a graph that handlers run. Internal.
 *
 * sgm__plan_create (plan/plan.c) makes it in three moves. It lowers the graph: operations that the handler
 * does not compute whole are expanded into their parts, dead and duplicate instructions are dropped, and
 * movement of elements (permute, slice, broadcast) becomes views, that is strides on another value's memory.
 * It groups the remaining nodes into steps, the units that a handler runs. And it gives every value a place
 * in memory. A node comes after all nodes whose values it reads, and so does a step. A plan is read-only once
 * it is made, but for large constants, which may come into its block when it is compiled.
 */
#ifndef SGM_HANDLERS_PROGRAM_H
#define SGM_HANDLERS_PROGRAM_H

#include "base/base.h"
#include "graph/graph_internal.h"
#include "handlers/sizes.h"
#include <sigma/handler.h>

/* The kind of memory that a value lies in. */
typedef enum sgm__store {
    /* No memory: the value exists only while its fused step computes an element or a tile. */
    SGM__STORE_NONE,
    /* The memory of intermediate values, which all programs of a session share. */
    SGM__STORE_ARENA,
    SGM__STORE_INPUT,   /* `index` counts plan->inputs */
    SGM__STORE_STATE,   /* `index` counts plan->states */
    SGM__STORE_CONSTANT /* the plan's block of constants */
} sgm__store;

/* Where the elements of a value lie. */
typedef struct sgm__place {
    sgm__store store;
    int32_t index;                 /* which input or state, or, from 1 on, which fill; otherwise 0 */
    int64_t offset;                /* bytes from the start of that memory to element (0, ..., 0) */
    int64_t strides[SGM_MAX_RANK]; /* in elements, one for each axis; 0 repeats, negative runs backwards */
    /* A constant whose value a user may change between plans that are otherwise equal (the rate of dropout).
     * Generated kernels read it from memory: their text, which is the key of the cache of compiled kernels,
     * stays the same. */
    bool live;
} sgm__place;

/* One value of the plan with the operation that computes it: a source (input, state, constant), a view, or a
 * member of a step. Its number, the index in plan->nodes, is the %number in the text of a plan and in
 * messages. */
typedef struct sgm__node {
    const sgm_op *op;
    sgm_attributes attributes;
    sgm_type type;
    /* Its operands are plan->operands[first_input] and the following: node numbers. */
    int32_t first_input, input_count;
    int32_t label; /* the layer's name: an offset into plan->names; may be "" */
    sgm__place place;
} sgm__node;

/* The bytes of a memory that a value spans, from its first to behind its last. */
typedef struct sgm__span {
    int64_t first, last;
    bool gaps; /* bytes between its elements belong to other values */
} sgm__span;

/* The two kinds of steps. A KERNEL step is one node, computed by a kernel or by the operation's `forward`.
 *
 * An ELEMENTWISE step is `count` nodes of elementwise operations whose results have equal shapes, in an order
 * in which operands come first; it is computed in one pass over the elements or tiles. Members with a place
 * are written to memory, the others are only passed on. Operands from outside the step are read by their
 * strides, which broadcasting may have set to 0. For handlers with SGM__HANDLER_DRAWS a member may be
 * random_uniform: the number of its element in row-major order then decides which random number it is. An
 * operand may share memory with a result of the same step only if both have equal offset and strides, so that
 * each element is read before it is overwritten.
 */
typedef enum sgm__step_kind { SGM__STEP_KERNEL, SGM__STEP_ELEMENTWISE } sgm__step_kind;

typedef struct sgm__step {
    sgm__step_kind kind;
    /* Its members are plan->order[first] to plan->order[first + count - 1]: node numbers. */
    int32_t first, count;
} sgm__step;

/* An input, a state or an output, which users address by name. */
typedef struct sgm__binding {
    int32_t name;
    sgm_type type;
    int32_t node; /* of an output: the node with its value, contiguous and in the arena; otherwise -1 */
} sgm__binding;

/* A large constant that is copied into the block when it is asked for. */
typedef struct sgm__fill {
    sgm_tensor *tensor;
    int64_t offset; /* in the block */
    bool filled;
} sgm__fill;

typedef struct sgm__fills {
    sgm__fill *all;
    size_t count, capacity;
    void *lent; /* a copy of a constant that is not in the block, for who asked last; lent_bytes long */
    size_t lent_bytes;
} sgm__fills;

/* A plan. All arrays belong to it. */
typedef struct sgm__plan {
    sgm__node *nodes;
    int32_t node_count;
    /* Node numbers, see sgm__node. */
    int32_t *operands;
    int32_t operand_count;
    /* Node numbers, see sgm__step; sources and views are in no step and so not in here. */
    int32_t *order;
    int32_t order_count;
    sgm__step *steps;
    int32_t step_count;
    sgm__binding *inputs, *states, *outputs;
    int32_t input_count, state_count, output_count;
    unsigned char *constants; /* the contents of the constants block, constant_bytes long */
    /* Until the plan is compiled, for handlers with SGM__HANDLER_FILLS; see sgm__plan_constant. */
    sgm__fills *fills; /* NULL: there are none */
    /* activation_bytes is what all computed values would need if none shared memory with another. */
    int64_t constant_bytes, arena_bytes, activation_bytes;
    int64_t unread_bytes; /* of constants that no kernel reads in the block: they take no memory */
    /* With a budget of memory: arena_bytes without it, and the number of instructions that are computed
     * again. */
    int64_t unsaved_bytes;
    int32_t again_count;
    /* Zero-terminated strings, one after the other; names and labels are offsets into them. */
    sgm__text names;
} sgm__plan;

/* How much memory intermediate values may take: sgm__plan.arena_bytes. Values that gradients read are then
 * computed again (graph/recompute.c). */
typedef struct sgm__memory_budget {
    double share;     /* of what they would take; 0: `bytes` counts */
    int64_t bytes;    /* 0: as much as they take */
    const char *cost; /* an output, behind which gradients are recorded */
} sgm__memory_budget;

/* Lowers and plans a graph for a handler; only the handler's flags and its `support` are asked. The caller
 * owns the plan. */
sgm_status sgm__plan_create(const sgm_graph *graph, const sgm_handler *handler, sgm__plan **plan);
/* The same within a budget of memory; NULL: none. If it cannot be met, the plan is the smallest one found. */
sgm_status sgm__plan_create_within(const sgm_graph *graph, const sgm_handler *handler,
                                   const sgm__memory_budget *budget, sgm__plan **plan);
/* Reads "0.5", "500MB" (kB, MB, GB, TB: powers of 1000); the error says what was expected. */
sgm_status sgm__memory_budget_parse(const char *text, sgm__memory_budget *budget);
/* The bytes of a budget, for a plan that takes `unsaved` without it. */
int64_t sgm__budget_bytes(const sgm__memory_budget *budget, int64_t unsaved);
void sgm__plan_free(sgm__plan *plan);
/* The address of a constant, or of a view of one, whose bytes are in the plan's block from then on. Only
 * while the plan is made or compiled. */
unsigned char *sgm__plan_constant(const sgm__plan *plan, int32_t node);
/* Its bytes for a reader that needs them no longer than until the next constant is lent: a copy, unless they
 * are in the plan's block already. 64 bytes more may be read behind the end. */
sgm_status sgm__plan_lend_constant(const sgm__plan *plan, int32_t node, unsigned char **bytes);
/* No constant is asked for any more; those that were not are zeros. */
void sgm__plan_end_fills(sgm__plan *plan);
/* The plan as lines of text for users; free with sgm_string_free. */
char *sgm__plan_text(const sgm__plan *plan);
/* The string at an offset into plan->names. */
const char *sgm__plan_string(const sgm__plan *plan, int32_t name);
/* Writes "instruction %12 = divide, layer 2-dense", for messages, into `buffer` and returns it. */
char *sgm__plan_describe(const sgm__plan *plan, int32_t node, char *buffer, size_t size);
/* The node whose memory a view reads, through views of views; of a node that is no view, itself. */
static inline int32_t sgm__plan_root(const sgm__plan *plan, int32_t node)
{
    while ((plan->nodes[node].op->flags & SGM_OP_VIEW) != 0)
        node = plan->operands[plan->nodes[node].first_input];
    return node;
}
/* The size of the memory that a place refers to; -1: the plan has no such memory. */
int64_t sgm__plan_memory_bytes(const sgm__plan *plan, const sgm__place *place);
/* How many operands and outputs of the program are this value itself; views of it count as its readers. */
int32_t sgm__plan_readers(const sgm__plan *plan, int32_t node);
/* Whether a node is a member of a step. */
bool sgm__step_makes(const sgm__plan *plan, const sgm__step *step, int32_t node);
/* Strides may be negative, and then reach in front of the first element. A value without elements spans no
 * bytes. */
sgm__span sgm__node_span(const sgm__node *node);

#endif
