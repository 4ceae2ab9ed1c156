/* Declarations that the files of src/onnx share: a loaded model, the recording of one, and the table of
 * operators. Internal; the public interface is sigma/onnx.h, and the file format itself is read in wire/.
 *
 * Import (import.c) visits the nodes of a model in their order and calls the `build` function of the
 * operator's row, which records instructions into a graph. Some operators need the value of an input while
 * they are recorded (Reshape needs its shape): evaluate.c computes that value at once, from constants and
 * from the inputs that were set. Arithmetic on shapes therefore costs nothing at run time.
 *
 * Export (export.c) visits the instructions of a graph in their order and calls `write` of the row that
 * has the instruction's operation. One table (operators.c) serves both directions. */
#ifndef SGM_ONNX_NODES_ONNX_H
#define SGM_ONNX_NODES_ONNX_H

#include "graph/graph_internal.h"
#include "onnx/wire/wire.h"
#include "ops/ops.h"
#include <sigma/handler.h>
#include <sigma/onnx.h>

/* The address of a temporary shape: SGM__ONNX_SHAPE(2, 3). A dimension of -1 is deduced by sgm_reshape. */
#define SGM__ONNX_SHAPE(...)                                                                                 \
    (&(const sgm_shape){.rank = (int32_t)SGM_SHAPE_COUNT(__VA_ARGS__), .dims = {__VA_ARGS__}})

/* --- a loaded model (model.c) --- */

/* One input of the model that is not an initialiser. */
typedef struct sgm__onnx_input {
    const char *name; /* owned by the model's protobuf message */
    sgm_type type;    /* as the model declares it: an open dimension is -1, an open rank is -1 */
    int32_t element;  /* ONNX's number of its type, which may be narrower */
    sgm_tensor *set;  /* the caller's value, owned here; NULL: not set */
    bool decides;     /* the newest recording used the value, not only the shape */
    bool kept;        /* a program keeps the tensor that is set */
} sgm__onnx_input;

/* A program compiled for inputs of certain shapes. It has a session of its own, because a session keeps
 * its programs until it is freed; dropping an old program is freeing its session. */
typedef struct sgm__onnx_program {
    sgm_session *session;
    sgm_program *program;
    sgm_tensor **values; /* by input: the value that the recording used; NULL: only the shape matters */
    sgm_shape *shapes;   /* by input: the shape that the program was compiled for */
    size_t bytes;        /* memory of the session alone: constants, states, inputs, arena */
    /* Number of the newest run that used this program, from 1. The smallest number is dropped first. */
    uint64_t run;
} sgm__onnx_program;

/* A loaded model. Used by one thread at a time; no lock guards the members. */
struct sgm_onnx {
    /* The unpacked file. Names elsewhere point into it, so it lives as long as the model. */
    Onnx__ModelProto *proto;
    /* Where files with data of tensors lie: the model's folder; NULL: it was read from memory. */
    char *folder;
    sgm_tensor *
        *initialisers; /* of the model's own graph, in its order; the message has no longer their data */
    int64_t opset;     /* version of the default operator set that the model was written for */
    sgm__onnx_input *inputs; /* those without an initialiser of the same name */
    size_t input_count;
    char **classes; /* their names, where the file has texts for them */
    size_t class_count;
    sgm_handler *handler;
    bool int8;        /* products with constant weights are of integers of 8 bits */
    sgm_graph *graph; /* of the newest recording; cleared before each */
    sgm__onnx_program *programs;
    size_t program_count;
    /* What sgm_onnx_get reads; points into `programs`. NULL: an input was set since the last run, or the run
     * failed. */
    sgm__onnx_program *newest;
    uint64_t runs; /* runs so far: the clock for sgm__onnx_program.run */
};

/* --- what is known before a run (check.c) --- */
/* Fails unless all nodes, also those of subgraphs and functions, are of operators in the table or of
 * functions of the model, with tensors of types that are known. */
sgm_status sgm__onnx_check(sgm_onnx *model);
/* The function that a node calls; NULL: it calls none of the model. */
const Onnx__FunctionProto *sgm__onnx_function(const sgm_onnx *model, const Onnx__NodeProto *node);
/* Puts the place in front of the thread's newest error: node `index` of a graph or function. */
sgm_status sgm__onnx_fail_at(const Onnx__NodeProto *node, size_t index, int64_t opset);
/* For messages and labels: the node's name, which is optional, or that of its first output. */
const char *sgm__onnx_node_name(const Onnx__NodeProto *node);
/* The version of the default domain's operator set among these; `otherwise` if it is not among them. */
int64_t sgm__onnx_opset(Onnx__OperatorSetIdProto *const *sets, size_t count, int64_t otherwise);
/* "" for the default domain, which may be spelled "ai.onnx". */
const char *sgm__onnx_domain(const char *domain);

/* --- classes that have texts as names (classes.c) --- */
/* Takes the names that a node has for its classes; none change nothing. Fails if the model has others. */
sgm_status sgm__onnx_name_classes(sgm_onnx *model, const ProtobufCBinaryData *names, size_t count);
/* Whether the attribute has the names of the classes that the node makes. */
bool sgm__onnx_names_classes(const Onnx__NodeProto *node, const Onnx__AttributeProto *attribute);
/* Follows the values that are of names through all nodes. Fails, with the node's name, where an operator does
 * more than moving them. Once the names are known. */
sgm_status sgm__onnx_follow_classes(const sgm_onnx *model);
/* Whether an initialiser of the model's own graph is a list of texts from which numbers of classes choose. */
bool sgm__onnx_lists_classes(const Onnx__GraphProto *graph, const Onnx__TensorProto *tensor);
/* The numbers that stand for such a list. NULL on failure. */
sgm_tensor *sgm__onnx_class_numbers(const Onnx__TensorProto *tensor);

/* --- compiled programs (programs.c) --- */
/* The program for the inputs that are set: an old one that fits, or a new one. NULL on failure. The
 * pointer stays valid until the next call. */
sgm__onnx_program *sgm__onnx_prepare(sgm_onnx *model);
void sgm__onnx_free_programs(sgm_onnx *model);

/* --- recording one (import.c) --- */

/* The names that a graph of the model defines, with their values in the recorded graph. A subgraph (the
 * body of If, Loop, Scan) has a scope of its own, whose `outer` is the scope of the graph that contains
 * it: lookups go outwards. */
typedef struct sgm__onnx_scope sgm__onnx_scope;
typedef struct sgm__onnx_entry {
    const char *name;
    sgm_value value;
} sgm__onnx_entry;
/* A hash table with open addressing and linear probing, at most half full; `capacity` is a power of two. */
struct sgm__onnx_scope {
    const sgm__onnx_scope *outer;
    sgm__onnx_entry *entries; /* name NULL: the slot is free; names belong to the message */
    size_t capacity, count;
};

/* What import->known has of a value. */
typedef struct sgm__onnx_known_entry {
    sgm_tensor *tensor; /* owned; NULL: not known */
    sgm_value copy;     /* its copy in the graph that evaluate.c computes; index -1: not in it */
} sgm__onnx_known_entry;

/* A sequence of a recording: `count` of import->items (build_sequence.c). */
typedef struct sgm__onnx_sequence {
    size_t first;
    int32_t count;
} sgm__onnx_sequence;

/* One recording of a model into a graph, from sgm_onnx_import to its end. */
typedef struct sgm__onnx_import {
    sgm_onnx *model;
    sgm_graph *graph;
    int64_t batch; /* replaces an open first dimension of an input that is not set; 0: nothing does */
    int depth;     /* of the subgraph that is being recorded; 0: the model's own graph */
    int64_t nodes; /* recorded so far; a node in a loop counts once for each round, inputs of functions too */
    int64_t opset; /* of the nodes that are being recorded: the model's, or that of a function */
    const struct sgm__onnx_node *caller; /* of the function that is being recorded; NULL: none */
    int32_t *elements; /* by number of a value in the graph: its narrow type (narrow.c); 0: none */
    size_t element_capacity, element_count;
    sgm__onnx_known_entry *known; /* by number of a value in the graph */
    size_t known_capacity, known_count;
    sgm_value *items; /* entries of all sequences, one behind the other */
    size_t item_capacity, item_count;
    sgm__onnx_sequence *sequences; /* value -2 - i stands for the sequence i */
    size_t sequence_capacity, sequence_count;
} sgm__onnx_import;

/* Whether a value in a scope stands for a sequence. */
static inline bool sgm__onnx_is_sequence(sgm_value value)
{
    return value.index < -1;
}

/* The value of a name, from the innermost scope outwards; no value (index -1) if no scope has it. */
sgm_value sgm__onnx_find(const sgm__onnx_scope *scope, const char *name);
/* Whether a scope has the name: of a function, also an input that the caller leaves out. */
bool sgm__onnx_is_defined(const sgm__onnx_scope *scope, const char *name);
/* Fails if the scope itself has the name already; a name of an outer scope may be hidden. The text is not
 * copied. */
sgm_status sgm__onnx_define(sgm__onnx_scope *scope, const char *name, sgm_value value);
void sgm__onnx_scope_free(sgm__onnx_scope *scope);
/* Records the nodes of a function of the model in the place of the node that calls it, of which it sets the
 * outputs. Fails with an error of the thread. */
sgm_status sgm__onnx_record_function(struct sgm__onnx_node *n, const Onnx__FunctionProto *function);
/* Records the nodes of a subgraph. `inputs` become the values of its declared inputs, in order; `outputs`
 * gets as many values as the subgraph declares (graph->n_output), so it must have that room. Fails with an
 * error of the thread, not of the graph. */
sgm_status sgm__onnx_record_subgraph(sgm__onnx_import *import, const Onnx__GraphProto *graph,
                                     const sgm__onnx_scope *outer, const sgm_value *inputs,
                                     size_t input_count, sgm_value *outputs);
/* Fails if an input is a sequence, and the node's operator takes none (build_sequence.c). */
sgm_status sgm__onnx_refuse_sequences(const struct sgm__onnx_node *n);

/* --- one node (node.c) --- */

/* Split has the most outputs of all operators; a node with more than this many is refused. */
#define SGM__ONNX_MAXIMUM_OUTPUTS 64
/* Parts that SplitToSequence makes. */
#define SGM__ONNX_MAXIMUM_PARTS 4096
typedef struct sgm__onnx_operator sgm__onnx_operator;
/* The node that is being recorded, as its `build` function sees it. Lives on the stack of record_node in
 * import.c. */
typedef struct sgm__onnx_node {
    sgm__onnx_import *import;
    sgm_graph *graph;
    const Onnx__NodeProto *proto;
    const sgm__onnx_operator *row;
    const sgm__onnx_scope *scope;
    const struct sgm__onnx_node *caller; /* of the function that the node belongs to; NULL: of none */
    int64_t opset;
    sgm_value *inputs; /* input_count values; an optional input that is left out has index -1 */
    int32_t input_count, output_count;
    sgm_value outputs[SGM__ONNX_MAXIMUM_OUTPUTS]; /* `build` sets those behind the first; -1: unsupported */
    bool *asked;                                  /* by attribute of `proto`: some function has read it */
} sgm__onnx_node;

/* An input by its number; no value (index -1) where the node has fewer inputs or leaves that one out. */
static inline sgm_value sgm__onnx_in(const sgm__onnx_node *n, int32_t index)
{
    return index < n->input_count ? n->inputs[index] : (sgm_value){-1};
}
/* A product of dimensions that wraps around. Where another dimension is 0, the shape is valid although a
 * product of the others may not fit into 64 bits; signed overflow would be undefined then. */
static inline int64_t sgm__onnx_times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
sgm_type sgm__onnx_type(const sgm__onnx_node *n, sgm_value value);
/* Attributes. Each function returns the default where the node has no such attribute, and makes the graph
 * fail where the attribute is of another kind. Each notes in n->asked that the attribute was read:
 * import.c refuses a node with an attribute that no function read, so that nothing which might change the
 * result is ignored. */
const Onnx__AttributeProto *sgm__onnx_attribute(const sgm__onnx_node *n, const char *name);
int64_t sgm__onnx_integer(const sgm__onnx_node *n, const char *name, int64_t default_value);
double sgm__onnx_number(const sgm__onnx_node *n, const char *name, double default_value);
bool sgm__onnx_text_is(const sgm__onnx_node *n, const char *name, const char *default_value,
                       const char *text);
/* A list of at most `maximum` integers; returns its length, -1 if there is no such attribute. A longer
 * list makes the graph fail. */
int32_t sgm__onnx_integers(sgm__onnx_node *n, const char *name, int64_t *list, int32_t maximum);
/* A list that is an attribute in older opsets and an input in newer ones (the axes of Squeeze): takes
 * whichever the node has. Returns its length, -1 if the node has neither or on failure. */
int32_t sgm__onnx_list(sgm__onnx_node *n, const char *name, int32_t input, int64_t *list, int32_t maximum);
/* An axis below `rank`; negative ones count from the end. -1 and a failure of the graph if it is out of
 * range. */
int32_t sgm__onnx_axis(sgm__onnx_node *n, int64_t axis, int32_t rank);
/* The value of an input while the model is recorded (evaluate.c); belongs to the import. NULL and a
 * failure of the graph if it depends on an input that is not set, or is missing. sgm__onnx_known_value
 * fails with an error of the thread only. */
const sgm_tensor *sgm__onnx_known(sgm__onnx_node *n, int32_t input);
const sgm_tensor *sgm__onnx_known_value(sgm__onnx_import *import, sgm_value value);
/* Elements of an integer input, in row-major order; returns how many, -1 on failure. */
int32_t sgm__onnx_known_integers(sgm__onnx_node *n, int32_t input, int64_t *list, int32_t maximum);
/* The one element of an input; the default where the input is left out. */
double sgm__onnx_known_number(sgm__onnx_node *n, int32_t input, double default_value);
/* Makes the thread's newest error one of the graph; returns no value. */
sgm_value sgm__onnx_fail(sgm_graph *graph);
/* Records a constant and takes the tensor. NULL stands for a failure that was reported, and becomes one of
 * the graph. */
sgm_value sgm__onnx_constant(sgm_graph *graph, sgm_tensor *tensor);
/* A constant of a message, with its narrow type. */
sgm_value sgm__onnx_constant_tensor(sgm__onnx_import *import, const Onnx__TensorProto *proto);
sgm_value sgm__onnx_constant_integers(sgm_graph *graph, const int64_t *list, int32_t count);
/* A reduction over `count` axes; count 0: over all. `keep` leaves the axes as dimensions of 1. */
typedef sgm_value (*sgm__onnx_reduction)(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count,
                                         bool keep);
/* Reduces all axes behind batch and channels; they stay as dimensions of 1. */
sgm_value sgm__onnx_over_places(sgm__onnx_node *n, sgm_value x, sgm__onnx_reduction function);
/* Indices as int64 from 0 on: `size` is added to negative ones. `size` may be a list where sizes differ along
 * the last axis of the indices. A number that is out of range is an error when the model runs. */
sgm_value sgm__onnx_from_start(sgm_graph *graph, sgm_value indices, sgm_value size);
/* x with its axis `axis` and its last axis exchanged; the function is its own inverse. An axis of -1 gives
 * no value. */
sgm_value sgm__onnx_swap_last(sgm_graph *graph, sgm_value x, int32_t axis);
/* x in the type of `like`; x itself if it has that type. */
sgm_value sgm__onnx_cast_like(sgm_graph *graph, sgm_value x, sgm_value like);

/* --- types that tensors hold in wider ones (narrow.c) --- */
/* ONNX's number of a value's type. */
int32_t sgm__onnx_element(const sgm__onnx_node *n, sgm_value value);
/* Notes that a value is of this type, if it is a narrow one; returns the value. */
sgm_value sgm__onnx_mark(sgm__onnx_import *import, sgm_value value, int64_t element);
/* What a cast does with numbers that its type does not hold (sgm__onnx_narrow). */
typedef struct sgm__onnx_cast_options {
    bool saturates;
    sgm__onnx_direction direction;
} sgm__onnx_cast_options;
/* x as a new value of any of ONNX's types. */
sgm_value sgm__onnx_cast_to(sgm__onnx_node *n, sgm_value x, int64_t element, sgm__onnx_cast_options how);
/* A copy of a value, its floats rounded to their type: an output of the model. */
sgm_value sgm__onnx_output_copy(const sgm__onnx_import *import, sgm_value value);
/* Gives the outputs that have been recorded their narrow types, where they have none yet. */
void sgm__onnx_mark_outputs(sgm__onnx_node *n);

/* A convolution with the window that the node's attributes describe (Conv, ConvInteger, QLinearConv). */
sgm_value sgm__onnx_convolve(sgm__onnx_node *n, sgm_value x, sgm_value weights, sgm_value biases);
/* What an update does with the element at its place. */
typedef enum sgm__onnx_scatter_kind {
    SGM__ONNX_SCATTER_MULTIPLY,
    SGM__ONNX_SCATTER_MAXIMUM,
    SGM__ONNX_SCATTER_MINIMUM
} sgm__onnx_scatter_kind;
/* A list of elements that has met a list of updates at these places (int64), one after the other. */
sgm_value sgm__onnx_scatter_by(sgm_graph *g, sgm__onnx_scatter_kind kind, sgm_value x, sgm_value updates,
                               sgm_value places);
/* Operations that only ONNX has (build_whole.c): what is left of a division, quotients of integers towards 0,
 * and powers of integers; of int64 exactly. */
extern const sgm_op sgm__op_onnx_modulo, sgm__op_onnx_divide, sgm__op_onnx_power;
/* The nearest whole number; halves go to the even neighbour, as ONNX demands for Round and quantisation. */
sgm_value sgm__onnx_round_even(sgm_graph *g, sgm_value x);
#define sgm__onnx_unsupported(n, ...) sgm_graph_fail((n)->graph, SGM_ERROR_UNSUPPORTED, __VA_ARGS__)

typedef struct sgm__onnx_export sgm__onnx_export;

/* --- parts of what is written (parts.c) --- */
/* Zeroed memory of the message, freed with it. NULL: out of memory, which e->status records. */
void *sgm__onnx_take(sgm__onnx_export *e, size_t size);
/* Appends a node with `count` inputs (NULL: left out) and one output, whose name is `output`, or a new
 * name if that is NULL. NULL: out of memory, which e->status records; functions that take a node accept
 * NULL. */
Onnx__NodeProto *sgm__onnx_emit(sgm__onnx_export *e, const char *type, const char *output, int32_t count,
                                const char *const *inputs);
/* The same for up to three inputs; a NULL ends them. Returns the name of the output, "" on failure:
 * writers need not check it, since e->status ends the export. */
const char *sgm__onnx_call(sgm__onnx_export *e, const char *output, const char *type, const char *a,
                           const char *b, const char *c);
void sgm__onnx_put_integer(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name, int64_t value);
void sgm__onnx_put_number(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name, double value);
void sgm__onnx_put_integers(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name, const int64_t *list,
                            int32_t count);
/* Gives the node `count` outputs, at most 3: the first one that it has, one named `second`, others, and that
 * if it is NULL, with new names. */
sgm_status sgm__onnx_put_outputs(sgm__onnx_export *e, Onnx__NodeProto *node, size_t count,
                                 const char *second);
/* The name of an initialiser that holds a list of int64, or a number of rank 0. Equal ones are stored
 * once. */
const char *sgm__onnx_name_integers(sgm__onnx_export *e, const int64_t *list, int32_t count);
const char *sgm__onnx_name_number(sgm__onnx_export *e, sgm_dtype dtype, double number);
/* The name of a new initialiser with this value; takes the tensor. */
const char *sgm__onnx_name_tensor(sgm__onnx_export *e, sgm_tensor *tensor);

/* --- writing (export.c) --- */
/* The name that stands for a value in the file; writes an Expand for a broadcast that is needed as such. */
const char *sgm__onnx_name(sgm__onnx_export *e, sgm_value value);
/* The value before the broadcasts that lead to this one. Its name may replace this one's where ONNX's
 * operator broadcasts by itself. */
sgm_value sgm__onnx_before_broadcast(const sgm__onnx_export *e, sgm_value value);
/* The graph that is written: expanded and simplified. */
const sgm_graph *sgm__onnx_written(const sgm__onnx_export *e);
/* Whether dimension `axis` of a value changes with the number of examples. */
bool sgm__onnx_is_open(const sgm__onnx_export *e, sgm_value value, int32_t axis);
/* Integer `index` of the instruction's attributes in the graph of the other number of examples; in the
 * same graph if there is no other. */
int64_t sgm__onnx_other_integer(const sgm__onnx_export *e, sgm_value value, int32_t index);
/* The name of a list of one integer: `here` in the graph that is written, `there` in the graph of the
 * other number of examples. NULL if it differs and is not a multiple of the number of examples. */
const char *sgm__onnx_name_count(sgm__onnx_export *e, int64_t here, int64_t there);
/* Fails unless the instruction's attributes are the same in both graphs. */
sgm_status sgm__onnx_want_fixed(const sgm__onnx_export *e, sgm_value value);

/* --- the table (operators.c) --- */
typedef sgm_status (*sgm__onnx_write)(sgm__onnx_export *e, sgm_value value);
typedef sgm_value (*sgm__onnx_build)(sgm__onnx_node *n);
/* A row of the table: an operator of ONNX, the function that records it, and the function that writes it. */
struct sgm__onnx_operator {
    const char *name; /* in ONNX; "": the operation has no operator, `write` makes several nodes of it */
    int32_t needed;   /* inputs that must be present */
    /* Records a node: returns its first output, sets the others in n->outputs. NULL: cannot be read. */
    sgm__onnx_build build;
    const sgm_op *op;      /* what `same` records and `write` writes; NULL: none */
    sgm__onnx_write write; /* NULL: cannot be written */
};
/* The first row of an operator; NULL: it is not supported. Rows of other domains than the default one have
 * the domain in front of the name: "ai.onnx.ml.Scaler". */
const sgm__onnx_operator *sgm__onnx_operator_find(const char *domain, const char *name);
/* The row that writes an operation; NULL: no row does, so the operation must be expanded into others. */
const sgm__onnx_operator *sgm__onnx_operator_for(const sgm_op *op);

#include "onnx/nodes/operators.h"
/* Defines a build function that is one expression of its node. */
#define SGM__ONNX_BUILD(name, node, value)                                                                   \
    sgm_value sgm__onnx_##name(sgm__onnx_node *node)                                                         \
    {                                                                                                        \
        return value;                                                                                        \
    }

#endif
