/* The inside of a graph. Internal. */
#ifndef SGM_GRAPH_INTERNAL_H
#define SGM_GRAPH_INTERNAL_H

#include "base/base.h"
#include <sigma/graph.h>
#include <sigma/op.h>

typedef struct sgm__instruction {
    const sgm_op *op;
    sgm_attributes attributes;
    sgm_type type;
    int32_t first_input, input_count; /* in graph->operands */
    int32_t label;                    /* offset in graph->names; 0: "" */
    int32_t name;                     /* input, state; 0: "" */
    int32_t constant;                 /* constant tensor: index in graph->constants, else -1 */
} sgm__instruction;

typedef struct sgm__named {
    int32_t name; /* outputs: offset in graph->names */
    sgm_value value;
} sgm__named;

typedef struct sgm__assignment {
    sgm_value state, value;
} sgm__assignment;

#define SGM__MAX_LABEL_DEPTH 32
struct sgm_graph {
    sgm__instruction *instructions;
    size_t count, capacity;
    sgm_value *operands;
    size_t operand_count, operand_capacity;
    int32_t *sources; /* inputs and states */
    size_t source_count, source_capacity;
    sgm__text names; /* strings one after the other, each with its 0 */
    int32_t *slots;  /* offsets of the names, hashed; 0: free */
    size_t slot_count, name_count;
    sgm_tensor **constants;
    size_t constant_count, constant_capacity;
    sgm__named *outputs;
    size_t output_count, output_capacity;
    sgm__assignment *assignments;
    size_t assignment_count, assignment_capacity;
    char label[256];                             /* of what is recorded now */
    uint16_t label_starts[SGM__MAX_LABEL_DEPTH]; /* its length before each push; deeper labels do not show */
    int32_t label_depth, label_name;
    sgm_status status; /* first failure */
    char message[512];
};

/* Operations that a graph itself needs (src/graph/sources.c): no inputs, no kernels. */
extern const sgm_op sgm__op_input, sgm__op_state, sgm__op_constant, sgm__op_number;

/* Operations that broadcasting, autodiff and passes record (src/ops). */
extern const sgm_op sgm__op_broadcast, sgm__op_reshape, sgm__op_permute, sgm__op_copy, sgm__op_stop_gradient,
    sgm__op_cast, sgm__op_add, sgm__op_subtract, sgm__op_multiply, sgm__op_divide;

/* Appends an instruction without any of recording's help; nothing on failure. */
sgm_value sgm__graph_append(sgm_graph *graph, const sgm__instruction *instruction, const sgm_value *inputs);
int32_t sgm__graph_name(sgm_graph *graph, const char *text); /* interned; -1 on failure */
const char *sgm__graph_string(const sgm_graph *graph, int32_t name);
bool sgm__attributes_equal(const sgm_attributes *a, const sgm_attributes *b); /* bit for bit */
bool sgm__graph_structure_equal(const sgm_graph *a, const sgm_graph *b);
/* Adds `constant` (retained) to the table; -1 on failure. */
int32_t sgm__graph_add_constant(sgm_graph *graph, sgm_tensor *constant);

#endif
