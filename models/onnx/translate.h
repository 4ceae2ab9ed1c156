/* An ONNX model as a network in Sigma's notation, so that it can be trained, and all else that a network can.
 *
 * translate.c visits the nodes that lead to the output, in their order; layers.c has a function for each type
 * of node, which writes the layers that it is and names their parameters; check.c compares the results of
 * both. */
#ifndef SIGMA_MODELS_ONNX_TRANSLATE_H
#define SIGMA_MODELS_ONNX_TRANSLATE_H

#include <sigma/models.h>
#include <sigma/onnx.h>

#include <stdio.h>

/* A parameter of the network, "conv1.weights", and its value. */
typedef struct sgm__translated_value {
    char *parameter;
    sgm_tensor *value;
} sgm__translated_value;

/* What a model is as a network. */
typedef struct sgm__translated {
    char *text;
    sgm__translated_value *values;
    size_t count, capacity;
    bool classifies;   /* it ends with a cost of classes ... */
    bool adds_softmax; /* ... which the model does not have: it gives logits */
    int64_t
        untrained; /* numbers of its values that no gradient changes, as sgm__translated_check finds them */
} sgm__translated;

/* Translates a model; `path` is for messages. With `classify` the output, where it has no softmax, is one of
 * logits. An error names the node that no layer does the same as. Free the network in either case. */
sgm_status sgm__translate(const char *path, const sgm_onnx *model, bool classify, sgm__translated *network);
void sgm__translated_free(sgm__translated *network);
/* Fails if the network gives something else than the model for the same examples; counts `untrained`. */
sgm_status sgm__translated_check(const char *path, sgm_onnx *model, sgm__translated *network);

/* --- between translate.c and layers.c --- */

#define SGM__TRANSLATION_MOST_DIMENSIONS 8

/* A value on the way: the chain of layers that makes it. */
typedef struct sgm__translation_chain {
    const char *name; /* in the model */
    char *text;       /* "x3 + dense(10)" */
    int32_t rank;     /* with the batch */
} sgm__translation_chain;

typedef struct sgm__translation {
    const char *path;
    const sgm_onnx *model;
    sgm__translated *network;
    bool classify;
    sgm_status status; /* the first failure; functions below do nothing after it */
    size_t node;       /* that is translated */
    sgm_onnx_node_info info;
    bool *done;  /* by node: it has become a part of a layer before it, or nothing needs it */
    bool *asked; /* by attribute of the node */
    sgm__translation_chain *chains;
    size_t chain_count, chain_capacity;
    int names;   /* of values that have been given so far */
    FILE *text;  /* of the network */
    FILE *layer; /* that is being written; NULL: none */
    char *layer_text, *layer_name;
    bool layer_is_named; /* it has parameters, so that its name matters */
    size_t layer_size;
} sgm__translation;

/* Ends the translation with an error that names the node: "convolutions with ... have no layer". */
void sgm__translation_refuse(sgm__translation *t, const char *format, ...) SGM_PRINTF(2, 3);

/* Attributes of the node, as in onnx/nodes/onnx.h: the default where it has none. */
int64_t sgm__translation_integer(sgm__translation *t, const char *name, int64_t otherwise);
double sgm__translation_number(sgm__translation *t, const char *name, double otherwise);
/* How many there are; -1 if there is no such attribute. */
int32_t sgm__translation_integers(sgm__translation *t, const char *name, int64_t *list, int32_t maximum);
bool sgm__translation_text_is(sgm__translation *t, const char *name, const char *otherwise, const char *text);

/* The value of an input that the file has; NULL: it has none. The caller frees it. */
sgm_tensor *sgm__translation_constant(sgm__translation *t, size_t input);
/* The same, of whole numbers: how many; -1: none, or more than `maximum`. */
int32_t sgm__translation_constant_integers(sgm__translation *t, size_t input, int64_t *list, int32_t maximum);
/* The one number of an input; the default where it is left out. Another value ends the translation. */
double sgm__translation_constant_number(sgm__translation *t, size_t input, double otherwise);
/* The chain that makes an input; NULL and an end where it is a value of the file, or left out. */
const sgm__translation_chain *sgm__translation_input(sgm__translation *t, size_t input);
/* The one node that takes the node's first output, which is not the model's; SIZE_MAX: none, or several. */
size_t sgm__translation_consumer(const sgm__translation *t, size_t node);
/* Whether the node's first output is the model's. */
bool sgm__translation_is_last(const sgm__translation *t, size_t node);

/* Begins a layer and gives it a name, after the tensor `input` of the node where that says one. */
void sgm__translation_begin(sgm__translation *t, size_t input, const char *format, ...) SGM_PRINTF(3, 4);
/* More arguments of the layer: ", stride=2". */
void sgm__translation_argument(sgm__translation *t, const char *format, ...) SGM_PRINTF(2, 3);
/* The layer's parameter has this value, which it takes. */
void sgm__translation_parameter(sgm__translation *t, const char *name, sgm_tensor *value);
/* Ends the layer: its chain, behind that of `input`, makes the node's first output, or that of `node`. */
void sgm__translation_end(sgm__translation *t, size_t input, size_t node, int32_t rank);
/* The chain of an input makes the output as well, with `layers` behind it ("" : as it is). */
void sgm__translation_follow(sgm__translation *t, size_t input, const char *layers, int32_t rank);
/* The node's first output is made by this text, which it takes. */
void sgm__translation_give(sgm__translation *t, size_t node, char *text, int32_t rank);

/* --- layers_weights.c: rows of the table --- */
void sgm__translation_matmul(sgm__translation *t);
void sgm__translation_gemm(sgm__translation *t);
void sgm__translation_gather(sgm__translation *t);
void sgm__translation_convolution(sgm__translation *t);
void sgm__translation_transposed_convolution(sgm__translation *t);
void sgm__translation_max_pool(sgm__translation *t);
void sgm__translation_average_pool(sgm__translation *t);
void sgm__translation_global_average(sgm__translation *t);
void sgm__translation_global_maximum(sgm__translation *t);
void sgm__translation_reduce_mean(sgm__translation *t);
void sgm__translation_batch_norm(sgm__translation *t);
void sgm__translation_layer_norm(sgm__translation *t);

/* --- layers.c --- */
typedef struct sgm__translation_layer {
    const char *type; /* of the node */
    void (*translate)(sgm__translation *t);
} sgm__translation_layer;
/* NULL: no layer does what the node does. */
const sgm__translation_layer *sgm__translation_layer_find(const char *type);

#endif
