/* Declarations that the files of src/network share: descriptions, networks, and the state of one layer's
 * recording. Internal.
 *
 * A network passes through three forms. Text or calls make a description, a tree of sgm_layer (notation.c,
 * layer.c). sgm_network_create (network.c) walks the tree once and makes a network: a flat list of entries,
 * each knowing the numbers of the entries whose values it takes. sgm_network_record (record.c) calls
 * `forward` of each entry's type in order, which appends instructions to a graph. Nothing here is locked: a
 * network belongs to one thread at a time. Only the registry of layer types (layer_types.c) may be used from
 * any thread. */
#ifndef SGM_NETWORK_NETWORK_INTERNAL_H
#define SGM_NETWORK_NETWORK_INTERNAL_H

#include "base/name_index.h"
#include "graph/graph_internal.h"
#include "network/rerecord.h"
#include "text/names.h"

/* Bounds on what a text of a few bytes can ask for: layers with repeats multiplied out, levels of nesting
 * (the recursion of parser, writer and walk is as deep), bytes of a name or text argument, bytes of the
 * whole notation. */
#define SGM__MAX_LAYERS 20000
#define SGM__MAX_DEPTH 100
#define SGM__MAX_NAME 100
#define SGM__MAX_NETWORK_TEXT (1 << 20)

/* --- descriptions (layer.c) --- */
/* The kinds of nodes of a description. A chain has one child for each item; a repeat and a definition
 * have exactly one child; branches have one child for each branch and the join's type; layers and references
 * have none. */
typedef enum sgm__node_kind {
    SGM__NODE_LAYER,
    SGM__NODE_CHAIN,
    SGM__NODE_REPEAT,
    SGM__NODE_BRANCHES,
    SGM__NODE_REFERENCE,
    SGM__NODE_DEFINITION,
    SGM__NODE_STATEMENTS
} sgm__node_kind;

/* How an argument of a layer is written and kept, which follows from its row. */
typedef enum sgm__form {
    SGM__FORM_INTEGER,
    SGM__FORM_NUMBER,
    SGM__FORM_TEXT,
    SGM__FORM_FLAG,
    SGM__FORM_SHAPE,  /* a list of integers */
    SGM__FORM_NUMBERS /* a list of numbers */
} sgm__form;
sgm__form sgm__form_of(const sgm_option *row);

/* The value of one argument of a layer. The kind in the type's table says which member counts: integers and
 * flags are in `integer`, a shape in `shape`, lists of numbers in `numbers`. `text` and `numbers` belong to
 * the description. */
typedef struct sgm__argument_value {
    bool given;
    int64_t integer; /* flags: 0 or 1 */
    double number;
    char *text;
    sgm_shape shape;
    double *numbers;
    size_t number_count, number_capacity;
} sgm__argument_value;

/* A node of a description. A parent owns its children (`owned` is set in them), and a network owns the root.
 */
struct sgm_layer {
    sgm__node_kind kind;
    const sgm_layer_type *type; /* layer, branches: of the join */
    char *name;  /* layer, branches: NULL if not given; reference and definition: of the value */
    char *share; /* layer: the name of the layer whose trained parameters it uses; NULL: its own */
    sgm__argument_value *arguments; /* as many as the type has */
    int32_t times;                  /* repeat */
    sgm_layer **children;
    size_t child_count;
    int32_t layers, depth; /* of the tree, repeats multiplied out */
    int32_t line, column;  /* in the text, from 1; 0: made by calls */
    bool owned;            /* belongs to another description or a network */
};

/* A node of its own; NULL on failure. */
sgm_layer *sgm__layer_new(sgm__node_kind kind, const sgm_layer_type *type);
/* Puts a statement behind a description that belongs to a network. The caller keeps it on failure. */
sgm_status sgm__layer_append(sgm_layer **root, sgm_layer *statement);
/* Gives `children` to `parent` and checks the limits; on failure the children not owned before are freed. */
sgm_status sgm__layer_adopt(sgm_layer *parent, sgm_layer *const *children, size_t count);

/* --- arguments (arguments.c) --- */
/* Index of an argument of the type, -1 if there is none. */
int32_t sgm__argument_find(const sgm_layer_type *type, const char *name);
/* The argument that a name of another program can only mean; NULL: none, and `hint` is what to say of it. */
const char *sgm__argument_meant(const sgm_layer_type *type, const char *name, char hint[SGM__NAME_HINT]);
/* The setters check kind-independent rules: an argument is given only once, and a number lies within the
 * bounds of the table. Shapes and
 * lists grow by one element with each call. */
sgm_status sgm__argument_set_integer(sgm_layer *layer, int32_t argument, int64_t value);
sgm_status sgm__argument_set_number(sgm_layer *layer, int32_t argument, double value);
sgm_status sgm__argument_set_text(sgm_layer *layer, int32_t argument, const char *value);
sgm_status sgm__argument_set_flag(sgm_layer *layer, int32_t argument, bool value);
sgm_status sgm__argument_append_dimension(sgm_layer *layer, int32_t argument, int64_t value);
sgm_status sgm__argument_append_number(sgm_layer *layer, int32_t argument, double value);
/* Sets the name that the layer gets in the network; one '#' in it stands for the layer's number. */
sgm_status sgm__layer_set_name(sgm_layer *layer, const char *name);
/* Sets the name of the layer before it whose trained parameters it uses. */
sgm_status sgm__layer_set_share(sgm_layer *layer, const char *of);
/* Checks that nothing required is missing. */
sgm_status sgm__arguments_finish(const sgm_layer *layer);
/* "size, activation, no_bias, name, share"; returns `buffer`. */
char *sgm__arguments_list(const sgm_layer_type *type, char *buffer, size_t size);
/* A name that may stand in identifiers; `what` is for the message. */
sgm_status sgm__name_check(const char *name, const char *what, bool number_sign);
/* The operation behind an activation's name; NULL and an error with the nearest activation. */
const sgm_op *sgm__activation_find(const char *name);
/* The same by its name or one of another program; NULL without an error. */
const sgm_op *sgm__activation_meant(const char *name);
/* True for NULL, "" and "none": values pass unchanged. */
bool sgm__activation_is_none(const char *name);

/* --- types of layers (layer_types.c) --- */
/* All of them: a layer's file and its name here are all that it takes. */
#define SGM__LAYERS(X)                                                                                       \
    X(input)                                                                                                 \
    X(output)                                                                                                \
    X(dense)                                                                                                 \
    X(embedding)                                                                                             \
    X(convolution)                                                                                           \
    X(convolution_1d)                                                                                        \
    X(transposed_convolution)                                                                                \
    X(transposed_convolution_1d)                                                                             \
    X(max_pooling)                                                                                           \
    X(max_pooling_1d)                                                                                        \
    X(average_pooling)                                                                                       \
    X(average_pooling_1d)                                                                                    \
    X(global_average_pooling)                                                                                \
    X(global_max_pooling)                                                                                    \
    X(adaptive_average_pooling)                                                                              \
    X(adaptive_average_pooling_1d)                                                                           \
    X(adaptive_max_pooling)                                                                                  \
    X(adaptive_max_pooling_1d)                                                                               \
    X(upsampling)                                                                                            \
    X(upsampling_1d)                                                                                         \
    X(batch_norm)                                                                                            \
    X(group_norm)                                                                                            \
    X(instance_norm)                                                                                         \
    X(rnn)                                                                                                   \
    X(gru)                                                                                                   \
    X(lstm)                                                                                                  \
    X(elementwise)                                                                                           \
    X(activation)                                                                                            \
    X(prelu)                                                                                                 \
    X(glu)                                                                                                   \
    X(swiglu)                                                                                                \
    X(geglu)                                                                                                 \
    X(dropout)                                                                                               \
    X(flatten)                                                                                               \
    X(reshape)                                                                                               \
    X(permute)                                                                                               \
    X(select)                                                                                                \
    X(layer_norm)                                                                                            \
    X(rms_norm)                                                                                              \
    X(unit_norm)                                                                                             \
    X(learned_tokens)                                                                                        \
    X(positions)                                                                                             \
    X(attention)                                                                                             \
    X(transformer)                                                                                           \
    X(tied_dense)                                                                                            \
    X(lora)                                                                                                  \
    X(identity)                                                                                              \
    X(add)                                                                                                   \
    X(concatenate)                                                                                           \
    X(softmax_cross_entropy)                                                                                 \
    X(squared_difference)                                                                                    \
    X(mean_squared)                                                                                          \
    X(root_mean_squared)                                                                                     \
    X(binary_cross_entropy)                                                                                  \
    X(negative_log_likelihood)                                                                               \
    X(gaussian_nll)                                                                                          \
    X(mean_absolute)                                                                                         \
    X(huber)                                                                                                 \
    X(cosine_distance)                                                                                       \
    X(kl_divergence)                                                                                         \
    X(focal)                                                                                                 \
    X(hinge)                                                                                                 \
    X(multi_class_hinge)                                                                                     \
    X(triplet)                                                                                               \
    X(info_nce)                                                                                              \
    X(ctc)
#define SGM__LAYER_DECLARATION(name) extern const sgm_layer_type sgm__layer_##name;
SGM__LAYERS(SGM__LAYER_DECLARATION)
#undef SGM__LAYER_DECLARATION
/* NULL without an error if there is none. */
const sgm_layer_type *sgm__layer_type_find(const char *name);
/* The type that a name of another program can only mean (names.h); NULL without an error if there is none. */
const sgm_layer_type *sgm__layer_type_meant(const char *name, const sgm__name_row **row);
/* What to say of a name that is no layer's; `more` are other names that would do. */
char *sgm__layer_type_hint(const char *name, const char *const *more, size_t more_count,
                           char hint[SGM__NAME_HINT]);

/* --- text (lexer.c, notation_text.c) --- */
/* True if `text` can stand in the notation without quotes. */
bool sgm__is_word(const char *text);
/* "1", or "(1, 2.5)". */
void sgm__numbers_write(sgm__text *text, const double *numbers, size_t count);

/* --- networks (network.c, record.c) --- */
/* One layer of a network. A node below a repeat has as many entries as copies; all of them point to the same
 * node, so they share its arguments until sgm_network_set_argument gives one of them a copy. */
typedef struct sgm__entry {
    const sgm_layer *layer;
    char *name;
    int32_t first_input, input_count; /* in network->slots */
    /* A copy of the arguments once one was changed, whose texts stay the layer's; else NULL. */
    sgm__argument_value *own;
} sgm__entry;

/* One output of the network, which predicting returns under the producer's name. */
typedef struct sgm__network_output {
    int32_t producer; /* entry whose value is predicted */
    int32_t cost;     /* entry whose predict() turns it into the output; -1: the value itself */
} sgm__network_output;

/* How much had been recorded before a layer, or after the last one: lengths of the graph's and the network's
 * lists, and the sum of costs so far. rerecord.c goes back to a mark to record a dynamic layer again. */
typedef struct sgm__layer_mark {
    sgm__graph_mark graph;
    size_t parameter_count, input_count, target_count, cost_count, string_count, index_count, rotation_count;
    int64_t streams;
    sgm_value total;
} sgm__layer_mark;

/* The newest recording and the options that it was made with, so that rerecord.c can tell whether the next
 * one may differ from it only in dynamic layers. */
typedef struct sgm__newest {
    const sgm_graph *graph; /* NULL: there is none to compare with */
    uint64_t serial;        /* the graph's serial number when it was recorded */
    int64_t batch;
    sgm_dtype dtype;
    bool training, costs, part, step;
    int64_t steps;
    sgm_recording recording;
} sgm__newest;

/* A field that a layer takes as whole numbers from 0 to `maximum`. */
typedef struct sgm__index_use {
    const char *field, *layer;
    int64_t maximum;
    bool may_ignore; /* negative numbers, by an argument of the layer that was not given */
} sgm__index_use;

/* Settings of rotary positions (layers/rotary.c), and what was recorded for them: the cosines and sines of
 * all places, or of the steps that are read, (time, 1, size / 2). */
typedef struct sgm__rotation {
    int64_t time, size;
    double base, factor, bands[3];
    bool has_bands;
    sgm_value cosines, sines;
} sgm__rotation;

/* Adapters of a network: a statement of its description. */
typedef struct sgm__adapter {
    const sgm_layer *layer;
    /* Of the newest recording: products that it adapts, parameters that it leaves trained, matrices that it
     * keeps as 8 bits. */
    size_t products, trained, quantized;
} sgm__adapter;

/* A network and what it recorded last. Recording resets the counts of the lists below
 * `values` and keeps their memory, so that recording the same again allocates nothing. */
struct sgm_network {
    sgm_layer *root;
    sgm__entry *entries; /* in the order of the text: an entry's index is its number */
    size_t entry_count, entry_capacity;
    int32_t *order; /* entries in the order of recording */
    size_t order_count, order_capacity;
    int32_t *slots; /* inputs of entries: entries */
    size_t slot_count, slot_capacity;
    sgm__network_output *outputs;
    size_t output_count, output_capacity;
    bool dynamic;
    sgm__adapter *adapters;
    size_t adapter_count, adapter_capacity;
    /* The newest recording. */
    sgm_value *values; /* one for each entry */
    /* One for each entry: how many steps of each example count, int64 (batch), if the value is a sequence;
     * nothing: all count. */
    sgm_value *lengths;
    /* Names that recorded values and parameters point to. The first `string_next` are in use; keep_string in
     * layer_call.c reuses the others in order. */
    char **strings;
    size_t string_count, string_capacity, string_next;
    sgm_parameter *parameters;
    size_t parameter_count, parameter_capacity;
    sgm__name_index parameter_index; /* of their names in `parameters`, once all are recorded */
    sgm_named_value *inputs, *targets, *predictions, *costs;
    size_t input_count, input_capacity, target_count, target_capacity, prediction_count, prediction_capacity,
        cost_count, cost_capacity;
    struct sgm__index_use *indices; /* fields that layers take as numbers of something */
    size_t index_count, index_capacity;
    sgm__rotation *rotations; /* which layers of the same settings share */
    size_t rotation_count, rotation_capacity;
    /* A stream is the number that keeps random numbers of different sgm_layer_random calls apart. */
    int64_t streams; /* handed out so far */
    char **memories; /* names of states that begin as zeros in each epoch */
    size_t memory_count, memory_capacity;
    /* If single steps, or fewer than declared, are recorded: how many the input declares, and how many of
     * them the layers can tell apart (0: any number). */
    int64_t steps, places;
    /* Of rows that several sequences stand in: where that of each step began, int64 (batch, time), and the
     * input that it comes with; nothing: a row is one sequence. */
    sgm_value starts;
    const sgm__entry *packed;
    sgm__layer_mark *marks; /* before each layer, in the order of recording, and after the last */
    sgm__newest newest;
    /* `compares`: a dynamic layer is re-recorded; what it adds to the lists above is compared with what it
     * added before, and `differs` becomes true at a difference. The graph compares instructions itself. */
    bool compares, differs;
};

/* The arguments of this entry as they will be recorded: its own copy where one was changed, else the
 * description's. */
static inline const sgm__argument_value *sgm__entry_arguments(const sgm__entry *entry)
{
    return entry->own != NULL ? entry->own : entry->layer->arguments;
}

/* The argument of a layer's `forward` and `predict`; it lives on the recorder's stack for that one call. */
struct sgm_layer_call {
    sgm_network *network;
    const sgm__entry *entry;
    sgm_graph *graph;
    const sgm_recording_options *options;
    size_t first_parameter;  /* index of this layer's first one in the network's parameters */
    size_t newest_parameter; /* index of the one that was asked for last */
    size_t shared;           /* how many of another layer it has asked for */
    sgm_value lengths;       /* of the first input that has some; sgm__layer_set_lengths replaces them */
    bool other_lengths;      /* sgm__layer_set_lengths was called */
    sgm_value count;         /* a cost: the number that it is a mean over; nothing: the examples */
    /* Adapters: what stands before the names of their parameters (NULL: it is a layer's call), the parameter
     * that they adapt, and their number. */
    const char *stem, *adapts;
    size_t adapter;
};

/* --- adapters (adapters.c) --- */
bool sgm__is_adapter(const sgm_layer *layer);
/* Notes a statement of the description; its patterns are checked. */
sgm_status sgm__network_add_adapter(sgm_network *network, const sgm_layer *layer);
/* Whether adapters keep a layer's trainable parameter, "2-dense.weights", as it is. */
bool sgm__adapters_freeze(const sgm_layer_call *call, const char *parameter);
/* Whether they keep it as 8 bits. */
bool sgm__adapters_quantize(const sgm_layer_call *call, const char *parameter);
/* Before a recording, and behind it: adapters that have found nothing to adapt are an error. */
void sgm__adapters_begin(sgm_network *network);
sgm_status sgm__adapters_check(const sgm_network *network);

/* --- states that go on from run to run (memory.c) --- */
/* A state "LAYER.name" that is not trained: the trainer fills it with zeros at the beginning of each epoch,
 * and what a run assigns to it is there in the next run. */
sgm_value sgm__layer_memory(sgm_layer_call *call, sgm_graph *graph, const char *name, const sgm_shape *shape);
/* The state "LAYER.name" in which a layer keeps what later steps need, zeros at first: in the layer's own
 * type, as it is read as it was written, and nothing is summed in it. */
sgm_value sgm__layer_cache(sgm_layer_call *call, sgm_graph *graph, const char *name, const sgm_shape *shape);
/* The index of the step that is recorded, or of the first of several, from 0, int64 of rank 0. Asking for it
 * limits the network to as many steps as the input declares, since the layer tells that many places apart. */
sgm_value sgm__layer_place(sgm_layer_call *call, sgm_graph *graph);
/* The indices of all steps that are recorded, int64 (steps), or of rank 0 if it is one. */
sgm_value sgm__layer_places(sgm_layer_call *call, sgm_graph *graph);
/* For a layer that needs later steps or all steps at once. Where single steps are recorded, or several
 * sequences stand in a row, it makes the graph fail with the reason `why` and returns true; otherwise it
 * returns false. */
bool sgm__layer_refuses_step(const sgm_layer_call *call, sgm_graph *graph, const char *why);
/* For a layer that takes the steps of a row as one sequence. Where several stand in a row it makes the graph
 * fail with the reason `why` and returns true; otherwise it returns false. */
bool sgm__layer_refuses_packing(const sgm_layer_call *call, sgm_graph *graph, const char *why);
/* How many steps come in at a run, where steps are recorded. */
int64_t sgm__step_count(const sgm_recording_options *options);
/* Records that the run adds so many to the place, so that the next run reads the next steps. */
void sgm__network_next_place(sgm_graph *graph, int64_t steps);

/* --- parts of a minibatch (part.c) --- */
/* The summand of this worker's part in a cost of the whole minibatch: cost * share, or the cost itself if it
 * is a sum. */
sgm_value sgm__part_of_cost(sgm_layer_call *call, sgm_value cost);
/* The sum of importance * part of a recording's costs. */
sgm_value sgm__part_of_costs(sgm_graph *graph, const sgm_named_value *costs, size_t count);

/* --- whole numbers (indices.c) --- */
/* `x`, a field of the data, as int64. Every minibatch that is fed to it is checked to have whole numbers
 * from 0 to `maximum`. */
sgm_value sgm__layer_index(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int64_t maximum);
/* `x` as int64 without that check, for fields with other numbers in places that do not count. A fraction
 * becomes SGM__NO_WHOLE_NUMBER, which one_hot and ctc refuse where it counts. */
sgm_value sgm__layer_whole(sgm_graph *graph, sgm_value x);

/* --- functions for layers (layer_call.c) --- */
/* The field of a layer that is an input whose lengths are named, and the shape that it declares; NULL: it is
 * none (layers/input.c). */
const char *sgm__network_sequence(const sgm_network *network, size_t layer, sgm_shape *declared);
/* Says that the layer's result has these lengths in place of its input's; nothing: all its steps count. */
void sgm__layer_set_lengths(sgm_layer_call *call, sgm_value lengths);
/* The parameter that was asked for last is sparse (sgm_parameter). */
void sgm__layer_sparse(sgm_layer_call *call);
/* A layer that shares must have asked for a parameter of the other one; else its graph fails. */
void sgm__layer_check_share(const sgm_layer_call *call, sgm_graph *graph);
/* Costs are recorded only while training or where the options want costs; their value is reduced to one
 * number. */
bool sgm__entry_is_cost(const sgm__entry *entry);
/* Makes the thread's newest error the graph's, so that a failure outside the graph stops the recording;
 * returns nothing. */
sgm_value sgm__record_fail(sgm_graph *graph);
/* Appends to one of the network's lists (inputs, targets, predictions, costs). While a dynamic layer is
 * re-recorded, it also compares with the element that the list had in this place, and sets `differs`. */
sgm_status sgm__network_add_named(sgm_network *network, sgm_named_value **list, size_t *count,
                                  size_t *capacity, sgm_named_value value);

/* --- recording (record.c) --- */
/* The lengths of all lists at this moment, with the sum of costs `total`. */
sgm__layer_mark sgm__network_mark(const sgm_network *network, const sgm_graph *graph, sgm_value total);
/* Records the layers from place `first` of the order on, then the outputs, and fills in `recording`. */
sgm_status sgm__network_record_from(sgm_network *network, sgm_graph *graph,
                                    const sgm_recording_options *options, size_t first, sgm_value *total,
                                    sgm_recording *recording);
/* Records one entry under its name as label and keeps its value and lengths. A cost is added to *total,
 * times its importance. Costs are skipped unless the options train or want costs. */
sgm_status sgm__network_record_layer(sgm_network *network, sgm_graph *graph,
                                     const sgm_recording_options *options, int32_t entry, sgm_value *total);

/* --- mixed precision (mixed.c) --- */
/* The type of states, inputs, costs and outputs: float32 for a recording in bfloat16, else the recording's
 * own type. */
sgm_dtype sgm__master_dtype(const sgm_recording_options *options);
/* `value` in float32 or bfloat16. A bfloat16 value that was cast from float32 gives that float32 value
 * again, with all its digits. Values of other types stay as they are. */
sgm_value sgm__mixed_cast(sgm_graph *graph, sgm_value value, sgm_dtype dtype);
/* Records an activation. One that works on whole rows (softmax) is computed in float32, from the value
 * before it was rounded. */
sgm_value sgm__mixed_activation(sgm_graph *graph, const sgm_op *op, sgm_value x);

/* Defines the type of a layer with one input, whose forward pass is forward_NAME; `table` is its arguments
 * and `count` their number. */
#define SGM__LAYER(layer_name, layer_doc, table, count, ...)                                                 \
    const sgm_layer_type sgm__layer_##layer_name = {.api = SGM_LAYER_API,                                    \
                                                    .name = #layer_name,                                     \
                                                    .doc = layer_doc,                                        \
                                                    .arguments = table,                                      \
                                                    .argument_count = count,                                 \
                                                    .min_inputs = 1,                                         \
                                                    .max_inputs = 1,                                         \
                                                    .forward = forward_##layer_name,                         \
                                                    __VA_ARGS__}
#define SGM__COUNT(table) (sizeof(table) / sizeof *(table))

#endif
