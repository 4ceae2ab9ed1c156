/* A compiled graph: what handlers get. Internal.
 *
 * The graph is lowered (compositions that the handler does not claim are expanded; dead and duplicate
 * instructions go; views become strides), grouped into steps, and every value gets a place. Values are in
 * order of execution.
 */
#ifndef SGM_HANDLERS_PROGRAM_H
#define SGM_HANDLERS_PROGRAM_H

#include "base/base.h"
#include "graph/graph_internal.h"
#include <sigma/handler.h>

/* Where a value lives. NONE: only inside a fused step, never in memory. */
typedef enum sgm__store {
    SGM__STORE_NONE,
    SGM__STORE_ARENA,
    SGM__STORE_INPUT,   /* index: program->inputs */
    SGM__STORE_STATE,   /* index: program->states */
    SGM__STORE_CONSTANT /* the program's block of constants */
} sgm__store;

typedef struct sgm__place {
    sgm__store store;
    int32_t index;                 /* of the input or state; else 0 */
    int64_t offset;                /* bytes from the start of that memory to the first element */
    int64_t strides[SGM_MAX_RANK]; /* in elements */
    bool live; /* a constant that is another one in plans which are equal else: no text may have it in it */
} sgm__place;

typedef struct sgm__node {
    const sgm_op *op;
    sgm_attributes attributes;
    sgm_type type;
    int32_t first_input, input_count; /* in program->operands: node numbers */
    int32_t label;                    /* offset in program->names */
    int32_t origin;                   /* the value of the lowered graph, for messages */
    sgm__place place;
} sgm__node;

/* KERNEL: one node. ELEMENTWISE: `count` nodes of elementwise operations and equal element shape, in order,
 * to be computed tile by tile in one pass; those with a place are written, all operands from outside the
 * group are read by their strides. For a handler that draws random numbers where they are wanted
 * (SGM__HANDLER_DRAWS) such numbers can be among them: their place in the array says what they are. An
 * operand may share its place with a result of the same step only element for element (equal strides and
 * offset). */
typedef enum sgm__step_kind { SGM__STEP_KERNEL, SGM__STEP_ELEMENTWISE } sgm__step_kind;

typedef struct sgm__step {
    sgm__step_kind kind;
    int32_t first, count; /* in program->order: node numbers */
} sgm__step;

/* An input, state or output by name. */
typedef struct sgm__binding {
    int32_t name;
    sgm_type type;
    int32_t node; /* outputs: the node; else -1 */
} sgm__binding;

typedef struct sgm__plan {
    sgm__node *nodes;
    int32_t node_count;
    int32_t *operands;
    int32_t operand_count;
    int32_t *order;
    int32_t order_count;
    sgm__step *steps;
    int32_t step_count;
    sgm__binding *inputs, *states, *outputs;
    int32_t input_count, state_count, output_count;
    unsigned char *constants; /* contents of the constants block */
    int64_t constant_bytes, arena_bytes, activation_bytes;
    sgm__text names;
} sgm__plan;

/* Lowers and plans a graph for a handler. */
sgm_status sgm__plan_create(const sgm_graph *graph, const sgm_handler *handler, sgm__plan **plan);
void sgm__plan_free(sgm__plan *plan);
char *sgm__plan_text(const sgm__plan *plan);
const char *sgm__plan_string(const sgm__plan *plan, int32_t name);
/* "instruction %12 = divide in layer 2-dense" for messages. */
char *sgm__plan_describe(const sgm__plan *plan, int32_t node, char *buffer, size_t size);
/* The node whose memory a view shows; of any other node itself. */
int32_t sgm__plan_root(const sgm__plan *plan, int32_t node);

#endif
