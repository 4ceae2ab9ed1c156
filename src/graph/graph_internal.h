/* Declares the inside of a graph: its arrays of instructions, operands, names and constants. Internal.
 *
 * Files: graph.c (the container), record.c (from a call to an instruction), sources.c (inputs, states,
 * numbers), attributes.c, rerecord.c (recording the same again), gradient.c (autodiff), text.c (printing,
 * hashing, comparing), verify.c; rebuild.c and the passes (passes.c, powers.c, joined_sums.c,
 * nested_concatenations.c, recompute.c) make new graphs out of old ones. A graph is used by one thread at a
 * time. Instruction i produces value i, and reads only values before it, so one loop from 0 on sees operands
 * first. All arrays grow while something is recorded: pointers into them are invalid after the next call that
 * records, so code copies what it needs. */
#ifndef SGM_GRAPH_INTERNAL_H
#define SGM_GRAPH_INTERNAL_H

#include "base/base.h"
#include <sigma/graph.h>

typedef struct sgm__instruction {
    const sgm_op *op;
    const sgm_attributes *attributes; /* owned by the graph: instructions with equal ones share them */
    sgm_type type;
    int32_t first_input, input_count; /* operands: graph->operands[first_input] and on */
    int32_t label;                    /* the layer's label: offset in graph->names; 0: "" */
    int32_t name;                     /* of an input or a state: offset in graph->names; 0: "" */
    int32_t constant;                 /* of a constant: index in graph->constants; else -1 */
    bool is_again; /* computed before and again here, to save memory (recompute.c): not to be moved forward */
} sgm__instruction;

/* An output of the graph. */
typedef struct sgm__named {
    int32_t name; /* outputs: offset in graph->names */
    sgm_value value;
} sgm__named;

/* At the end of a run `state` takes `value`. Both are instructions of the graph, the first one a state. */
typedef struct sgm__assignment {
    sgm_value state, value;
} sgm__assignment;

/* A slot of the table of names, with the newest input, state, assignment and output that was recorded under
 * the name; -1: none. A graph that goes back to a mark leaves these numbers unchanged, so a reader checks
 * that the number is below the present count and that the thing found there has this name. */
typedef struct sgm__name {
    int32_t text;         /* offset in graph->names; 0: the slot is free */
    int32_t input, state; /* indices in graph->instructions */
    int32_t assignment;   /* of the state: index in graph->assignments */
    int32_t output;       /* index in graph->outputs */
} sgm__name;

/* A place in the recording: how many of each thing were recorded before it. */
typedef struct sgm__graph_mark {
    size_t count, operand_count, source_count, constant_count, output_count, assignment_count;
} sgm__graph_mark;

#define SGM__MAX_LABEL_DEPTH 32
struct sgm_graph {
    sgm__instruction *instructions;
    size_t count, capacity;
    sgm_value *operands;
    size_t operand_count, operand_capacity;
    int32_t *sources; /* indices of inputs and states in `instructions` */
    size_t source_count, source_capacity;
    sgm__text names;  /* all names and labels, one after the other, each with its 0; offset 0 is "" */
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
    char label[256];                             /* of the layer that records at present: "outer.inner" */
    uint16_t label_starts[SGM__MAX_LABEL_DEPTH]; /* its length before each push; deeper labels do not show */
    int32_t label_names[SGM__MAX_LABEL_DEPTH];   /* the label before each push */
    int32_t label_depth, label_name;             /* label_name: `label` as an offset in `names` */
    uint64_t serial; /* unique in the process, another one after each clearing: tells whether a graph is the
                        one seen before */
    /* While `compares`, each thing recorded is compared with the one kept at its place, up to `kept`
     * (rerecord.c). */
    bool compares;
    sgm__graph_mark kept;
    sgm_status status; /* first failure */
    char message[512];
};

/* Operations of the graph itself (sources.c): values without operands, for which handlers have no kernels. */
extern const sgm_op sgm__op_input, sgm__op_state, sgm__op_constant, sgm__op_number;
/* Whether the instruction is a sgm_live_number: its value may be another one in a later recording, so the
 * result of a computation with it is live, too, and no pass may rely on its present value. */
bool sgm__number_is_live(const sgm__instruction *instruction);

/* Operations that broadcasting, autodiff and passes record (src/ops). */
extern const sgm_op sgm__op_broadcast, sgm__op_reshape, sgm__op_permute, sgm__op_copy, sgm__op_stop_gradient,
    sgm__op_cast, sgm__op_add, sgm__op_subtract, sgm__op_multiply, sgm__op_divide, sgm__op_power;

/* Appends an instruction as it is, without broadcasting, checks or inference. On failure returns a value that
 * is nothing, and the graph keeps the error. */
sgm_value sgm__graph_append(sgm_graph *graph, const sgm__instruction *instruction, const sgm_value *inputs);
/* Interns a name: its offset in graph->names, the same for equal texts; -1 on failure. */
int32_t sgm__graph_name(sgm_graph *graph, const char *text);
const char *sgm__graph_string(const sgm_graph *graph, int32_t name);
/* The input or state (`op` says which) that was recorded under a name; NULL: none. */
const sgm__instruction *sgm__graph_source(const sgm_graph *graph, const sgm_op *op, int32_t name);
bool sgm__graph_structure_equal(const sgm_graph *a, const sgm_graph *b);
/* Retains the tensor, which must be contiguous and must not change; returns its index in graph->constants, -1
 * on failure. */
int32_t sgm__graph_add_constant(sgm_graph *graph, sgm_tensor *constant);

/* --- attributes (attributes.c) --- */
/* A graph that is cleared keeps its attributes for the next recording, which mostly needs the same ones;
 * beyond this number it drops them. */
#define SGM__MAXIMUM_ATTRIBUTES 4096
/* The graph's copy of the attributes, whose address stays valid until the graph is cleared; NULL on failure.
 * `given` NULL: no attributes. */
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
/* Begins to compare with what is recorded at present; the caller then goes back to a mark (sgm__graph_go_to).
 * False: comparing would not pay or is not possible, so the caller should clear the graph. */
bool sgm__graph_compare(sgm_graph *graph);
/* Sets the counts to those of a mark, backwards or forwards within what is kept. */
void sgm__graph_go_to(sgm_graph *graph, const sgm__graph_mark *mark);
/* Goes to the end of what was kept, and ends comparing: the graph is as it was before sgm__graph_compare. */
void sgm__graph_restore(sgm_graph *graph);
/* Drops everything that was kept behind the present place, and ends comparing. Without comparing, nothing
 * happens. */
void sgm__graph_drop_kept(sgm_graph *graph);
/* True: the thing equals the one kept at this place and now counts as recorded. False: it differs; the rest
 * of what was kept is dropped, and the caller records the thing. To be called only while the graph compares.
 */
bool sgm__graph_repeats(sgm_graph *graph, const sgm__instruction *instruction, const sgm_value *inputs);
bool sgm__graph_repeats_constant(sgm_graph *graph, const sgm_tensor *constant);
bool sgm__graph_repeats_output(sgm_graph *graph, sgm__named output);
bool sgm__graph_repeats_assignment(sgm_graph *graph, sgm__assignment assignment);

#endif
