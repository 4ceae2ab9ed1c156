/* The inside of a graph. Internal. */
#ifndef SGM_GRAPH_INTERNAL_H
#define SGM_GRAPH_INTERNAL_H

#include "base/base.h"
#include <sigma/graph.h>
#include <sigma/op.h>

typedef struct sgm__instruction {
    const sgm_op *op;
    const sgm_attributes *attributes; /* the graph's: instructions with equal ones share them */
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

/* A name, and the newest of each thing that was recorded under it. A graph that goes back to a mark leaves
 * these numbers as they are: a reader checks that what a number points to is there and has the name. */
typedef struct sgm__name {
    int32_t text; /* offset in graph->names; 0: the slot is free */
    int32_t input, state;
    int32_t assignment; /* of the state: index in graph->assignments */
    int32_t output;     /* index in graph->outputs */
} sgm__name;

/* How much of everything has been recorded. */
typedef struct sgm__graph_mark {
    size_t count, operand_count, source_count, constant_count, output_count, assignment_count;
} sgm__graph_mark;

#define SGM__MAX_LABEL_DEPTH 32
struct sgm_graph {
    sgm__instruction *instructions;
    size_t count, capacity;
    sgm_value *operands;
    size_t operand_count, operand_capacity;
    int32_t *sources; /* inputs and states */
    size_t source_count, source_capacity;
    sgm__text names;  /* strings one after the other, each with its 0 */
    sgm__name *slots; /* a hash table of the names, at most half full */
    size_t slot_count, name_count;
    sgm_attributes **attributes; /* a hash table, at most half full; NULL: the slot is free */
    size_t attribute_slots, attribute_count;
    sgm_tensor **constants;
    size_t constant_count, constant_capacity;
    sgm__named *outputs;
    size_t output_count, output_capacity;
    sgm__assignment *assignments;
    size_t assignment_count, assignment_capacity;
    char label[256];                             /* of what is recorded now */
    uint16_t label_starts[SGM__MAX_LABEL_DEPTH]; /* its length before each push; deeper labels do not show */
    int32_t label_names[SGM__MAX_LABEL_DEPTH];   /* the label before each push */
    int32_t label_depth, label_name;
    uint64_t serial;      /* another one after each clearing, in no other graph */
    bool compares;        /* what is recorded is compared with what was there (rerecord.c), */
    sgm__graph_mark kept; /* up to here */
    sgm_status status;    /* first failure */
    char message[512];
};

/* Operations that a graph itself needs (src/graph/sources.c): no inputs, no kernels. */
extern const sgm_op sgm__op_input, sgm__op_state, sgm__op_constant, sgm__op_number;
/* Whether it is a sgm_live_number(). */
bool sgm__number_is_live(const sgm__instruction *instruction);

/* Operations that broadcasting, autodiff and passes record (src/ops). */
extern const sgm_op sgm__op_broadcast, sgm__op_reshape, sgm__op_permute, sgm__op_copy, sgm__op_stop_gradient,
    sgm__op_cast, sgm__op_add, sgm__op_subtract, sgm__op_multiply, sgm__op_divide, sgm__op_power;

/* Appends an instruction without any of recording's help; nothing on failure. */
sgm_value sgm__graph_append(sgm_graph *graph, const sgm__instruction *instruction, const sgm_value *inputs);
int32_t sgm__graph_name(sgm_graph *graph, const char *text); /* interned; -1 on failure */
const char *sgm__graph_string(const sgm_graph *graph, int32_t name);
/* The input or state (its operation tells which) that was recorded under an interned name; NULL: none was. */
const sgm__instruction *sgm__graph_source(const sgm_graph *graph, const sgm_op *op, int32_t name);
bool sgm__graph_structure_equal(const sgm_graph *a, const sgm_graph *b);
/* Adds `constant` (retained) to the table; -1 on failure. */
int32_t sgm__graph_add_constant(sgm_graph *graph, sgm_tensor *constant);

/* --- attributes (attributes.c) --- */
/* A graph that is cleared keeps so many for its next recording, which mostly has the same ones. */
#define SGM__MAXIMUM_ATTRIBUTES 4096
/* The graph's copy, which stays where it is until the graph is cleared; NULL on failure. `given` NULL: none.
 */
const sgm_attributes *sgm__graph_attributes(sgm_graph *graph, const sgm_attributes *given);
void sgm__graph_free_attributes(sgm_graph *graph);
bool sgm__attributes_equal(const sgm_attributes *a, const sgm_attributes *b); /* bit for bit */
uint64_t sgm__attributes_hash(const sgm_attributes *attributes, uint64_t seed);

/* --- recording again (rerecord.c) ---
 *
 * A graph goes back to where it was, keeping what came behind. As long as the same is re-recorded, it is
 * only compared; with the first difference all that is behind it is gone, and recording goes on as ever. */
sgm__graph_mark sgm__graph_mark_now(const sgm_graph *graph);
bool sgm__graph_marks_equal(const sgm__graph_mark *a, const sgm__graph_mark *b);
/* Begins to compare with what is there now; false: better clear the graph. */
bool sgm__graph_compare(sgm_graph *graph);
/* To a mark of what is kept, forward too. */
void sgm__graph_go_to(sgm_graph *graph, const sgm__graph_mark *mark);
/* All that was kept is there again, and nothing is compared any more. */
void sgm__graph_restore(sgm_graph *graph);
/* What is behind this place is gone. */
void sgm__graph_drop_kept(sgm_graph *graph);
/* True: that is what was here, and it counts as recorded. False: it differs, and the rest is gone. Only while
 * the graph compares. */
bool sgm__graph_repeats(sgm_graph *graph, const sgm__instruction *instruction, const sgm_value *inputs);
bool sgm__graph_repeats_constant(sgm_graph *graph, const sgm_tensor *constant);
bool sgm__graph_repeats_output(sgm_graph *graph, sgm__named output);
bool sgm__graph_repeats_assignment(sgm_graph *graph, sgm__assignment assignment);

#endif
