/* The inside of ONNX models: one table of operators for both directions, and what its functions use.
 * Internal.
 *
 * Import goes over the nodes in their order and calls the `build` function of each operator, which records
 * into a graph. Some operators want a value while they are recorded (Reshape its shape): it is computed there
 * and then from constants and from the inputs that were set (evaluate.c). So shapes that a model computes
 * cost nothing at run time. Export goes over a graph's instructions and calls `write` of the row that has the
 * operation.
 */
#ifndef SGM_ONNX_ONNX_H
#define SGM_ONNX_ONNX_H

#include "graph/graph_internal.h"
#include "onnx/wire/wire.h"
#include "ops/ops.h"
#include <sigma/handler.h>
#include <sigma/onnx.h>

/* The address of a shape: SGM__ONNX_SHAPE(2, 3). */
#define SGM__ONNX_SHAPE(...)                                                                                 \
    (&(const sgm_shape){.rank = (int32_t)SGM_SHAPE_COUNT(__VA_ARGS__), .dims = {__VA_ARGS__}})

/* --- a loaded model (model.c) --- */

typedef struct sgm__onnx_input {
    const char *name; /* in the message */
    sgm_type type;    /* as declared: open dimensions are -1; rank -1: open */
    sgm_tensor *set;  /* NULL: not set */
    bool decides;     /* its value was used while recording */
} sgm__onnx_input;

/* What was recorded and compiled for inputs of certain shapes, in a session of its own, as programs stay as
 * long as theirs. */
typedef struct sgm__onnx_program {
    sgm_session *session;
    sgm_program *program;
    sgm_tensor **values; /* of the inputs: of those that decided about shapes what they were; else NULL */
    sgm_shape *shapes;
    size_t bytes; /* that the session takes */
    uint64_t run; /* the newest one, counted from 1 */
} sgm__onnx_program;

struct sgm_onnx {
    Onnx__ModelProto *proto;
    int64_t opset;
    sgm__onnx_input *inputs; /* without initialisers */
    size_t input_count;
    sgm_handler *handler;
    sgm_graph *graph; /* of the newest recording */
    sgm__onnx_program *programs;
    size_t program_count;
    sgm__onnx_program *newest; /* that ran, for the inputs that are set; NULL: none did */
    uint64_t runs;
};

/* --- compiled programs (programs.c) --- */
/* The program for the inputs that are set: found, or recorded and compiled; NULL on failure. */
sgm__onnx_program *sgm__onnx_prepare(sgm_onnx *model);
void sgm__onnx_free_programs(sgm_onnx *model);

/* --- recording one (import.c) --- */

/* A name and its value; subgraphs see the names of what is around them. */
typedef struct sgm__onnx_scope sgm__onnx_scope;
typedef struct sgm__onnx_entry {
    const char *name;
    sgm_value value;
} sgm__onnx_entry;
struct sgm__onnx_scope {
    const sgm__onnx_scope *outer;
    sgm__onnx_entry *entries; /* hashed; name NULL: free */
    size_t capacity, count;
};

typedef struct sgm__onnx_import {
    sgm_onnx *model;
    sgm_graph *graph;
    int64_t batch;      /* for open first dimensions; 0: there are none */
    int depth;          /* of subgraphs */
    int64_t nodes;      /* recorded so far, those of loops each time */
    sgm_tensor **known; /* by number of the value; NULL: not known yet */
    size_t known_capacity, known_count;
} sgm__onnx_import;

sgm_value sgm__onnx_find(const sgm__onnx_scope *scope, const char *name);
sgm_status sgm__onnx_define(sgm__onnx_scope *scope, const char *name, sgm_value value);
void sgm__onnx_scope_free(sgm__onnx_scope *scope);
/* Records the nodes of a subgraph with these inputs; fills `outputs`, as many as it declares. */
sgm_status sgm__onnx_record_subgraph(sgm__onnx_import *import, const Onnx__GraphProto *graph,
                                     const sgm__onnx_scope *outer, const sgm_value *inputs,
                                     size_t input_count, sgm_value *outputs);

/* --- one node (node.c) --- */

#define SGM__ONNX_MAXIMUM_OUTPUTS 64
typedef struct sgm__onnx_operator sgm__onnx_operator;
typedef struct sgm__onnx_node {
    sgm__onnx_import *import;
    sgm_graph *graph;
    const Onnx__NodeProto *proto;
    const sgm__onnx_operator *row;
    const sgm__onnx_scope *scope;
    int64_t opset;
    sgm_value *inputs; /* what is left out is nothing */
    int32_t input_count, output_count;
    sgm_value outputs[SGM__ONNX_MAXIMUM_OUTPUTS];
    bool *asked; /* of the node's attributes: somebody looked at it */
} sgm__onnx_node;

/* Nothing, if there is no such input. */
static inline sgm_value sgm__onnx_in(const sgm__onnx_node *n, int32_t index)
{
    return index < n->input_count ? n->inputs[index] : (sgm_value){-1};
}
/* Dimensions of an empty shape may have a product that does not fit; then it is some number. */
static inline int64_t sgm__onnx_times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
sgm_type sgm__onnx_type(const sgm__onnx_node *n, sgm_value value);
/* Attributes; the default where there is none, and a failure of the graph where one is of another kind. An
 * attribute that a node has, and nobody asks about while it is built, is an error: nothing is ignored that
 * might count. */
const Onnx__AttributeProto *sgm__onnx_attribute(const sgm__onnx_node *n, const char *name);
int64_t sgm__onnx_integer(const sgm__onnx_node *n, const char *name, int64_t default_value);
double sgm__onnx_number(const sgm__onnx_node *n, const char *name, double default_value);
bool sgm__onnx_text_is(const sgm__onnx_node *n, const char *name, const char *default_value,
                       const char *text);
/* A list of at most `most` integers; its length, -1 if there is none. Too many is a failure of the graph. */
int32_t sgm__onnx_integers(sgm__onnx_node *n, const char *name, int64_t *list, int32_t maximum);
/* An attribute up to opset `before` - 1, then an input (Squeeze's axes): as above. */
int32_t sgm__onnx_list(sgm__onnx_node *n, const char *name, int32_t input, int64_t *list, int32_t maximum);
/* An axis of `rank`, negative ones counted from the end; -1 and a failure of the graph if there is none. */
int32_t sgm__onnx_axis(sgm__onnx_node *n, int64_t axis, int32_t rank);
/* The value of an input, known while recording (evaluate.c). NULL and a failure if it is not. It belongs to
 * the import. */
const sgm_tensor *sgm__onnx_known(sgm__onnx_node *n, int32_t input);
const sgm_tensor *sgm__onnx_known_value(sgm__onnx_import *import, sgm_value value);
int32_t sgm__onnx_known_integers(sgm__onnx_node *n, int32_t input, int64_t *list, int32_t maximum);
double sgm__onnx_known_number(sgm__onnx_node *n, int32_t input, double default_value);
sgm_value sgm__onnx_constant(sgm_graph *graph, sgm_tensor *tensor); /* takes the tensor; NULL is passed on */
sgm_value sgm__onnx_constant_integers(sgm_graph *graph, const int64_t *list, int32_t count);
/* The same with axis `axis` in the place of the last one, and the last one in its place. */
sgm_value sgm__onnx_swap_last(sgm_graph *graph, sgm_value x, int32_t axis);
/* Integers in x's type or another, as the same type as `like`. */
sgm_value sgm__onnx_cast_like(sgm_graph *graph, sgm_value x, sgm_value like);
/* What several operators are made of: a convolution by the node's attributes, rounding halves to even. */
sgm_value sgm__onnx_convolve(sgm__onnx_node *n, sgm_value x, sgm_value weights, sgm_value biases);
sgm_value sgm__onnx_round_even(sgm_graph *g, sgm_value x);
#define sgm__onnx_unsupported(n, ...) sgm_graph_fail((n)->graph, SGM_ERROR_UNSUPPORTED, __VA_ARGS__)

typedef struct sgm__onnx_export sgm__onnx_export;

/* --- parts of what is written (parts.c) --- */
/* A new node; `count` names of inputs. Its output is `output`, or a new name where that is NULL. NULL: no
 * memory, which is noted in the export. */
Onnx__NodeProto *sgm__onnx_emit(sgm__onnx_export *e, const char *type, const char *output, int32_t count,
                                const char *const *inputs);
/* The same for up to three inputs (the others NULL); gives the name of the output. */
const char *sgm__onnx_call(sgm__onnx_export *e, const char *output, const char *type, const char *a,
                           const char *b, const char *c);
void sgm__onnx_put_integer(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name, int64_t value);
void sgm__onnx_put_number(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name, double value);
void sgm__onnx_put_integers(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name, const int64_t *list,
                            int32_t count);
/* A node's second output is the value, and its first is for nobody. */
sgm_status sgm__onnx_put_second_output(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name);
/* The name of a list of integers, and of a number of a type, which become initialisers. */
const char *sgm__onnx_name_integers(sgm__onnx_export *e, const int64_t *list, int32_t count);
const char *sgm__onnx_name_number(sgm__onnx_export *e, sgm_dtype dtype, double number);
/* The name of an initialiser that holds the tensor, which is taken. */
const char *sgm__onnx_name_tensor(sgm__onnx_export *e, sgm_tensor *tensor);

/* --- writing (export.c) --- */
/* The name of a value. */
const char *sgm__onnx_name(sgm__onnx_export *e, sgm_value value);
/* The value whose name may stand for this one where ONNX broadcasts by itself. */
sgm_value sgm__onnx_before_broadcast(const sgm__onnx_export *e, sgm_value value);
const sgm_graph *sgm__onnx_written(const sgm__onnx_export *e);
/* Whether dimension `axis` of a value is another with another number of examples. */
bool sgm__onnx_is_open(const sgm__onnx_export *e, sgm_value value, int32_t axis);
/* Integer `index` of the instruction's attributes with the other number of examples. */
int64_t sgm__onnx_other_integer(const sgm__onnx_export *e, sgm_value value, int32_t index);
/* The name of a list of one integer, which is `there` with the other number of examples; NULL: it is no
 * multiple of it. */
const char *sgm__onnx_name_count(sgm__onnx_export *e, int64_t here, int64_t there);
/* The attribute is the same whatever the number of examples is; else this fails. */
sgm_status sgm__onnx_want_fixed(const sgm__onnx_export *e, sgm_value value);

/* --- the table (operators.c) --- */
typedef sgm_status (*sgm__onnx_write)(sgm__onnx_export *e, sgm_value value);
typedef sgm_value (*sgm__onnx_build)(sgm__onnx_node *n);
struct sgm__onnx_operator {
    const char *name;      /* in ONNX; "": is only written, as several nodes */
    int32_t needed;        /* inputs that must be there */
    sgm__onnx_build build; /* records a node: gives its first output, and sets the others in n->outputs */
    const sgm_op *op;      /* what sgm__onnx_same records, and what `write` is for; NULL: none */
    sgm__onnx_write write; /* NULL: is not written */
};
/* NULL: there is none. */
const sgm__onnx_operator *sgm__onnx_operator_find(const char *name);
/* The row that writes an operation; NULL: none does. */
const sgm__onnx_operator *sgm__onnx_operator_for(const sgm_op *op);

#define SGM__ONNX_BUILDERS(X)                                                                                \
    X(same)                                                                                                  \
    X(acosh)                                                                                                 \
    X(arg_max)                                                                                               \
    X(arg_min)                                                                                               \
    X(asinh)                                                                                                 \
    X(atanh)                                                                                                 \
    X(average_pool)                                                                                          \
    X(batch_normalisation)                                                                                   \
    X(bit_shift)                                                                                             \
    X(cast)                                                                                                  \
    X(cast_like_other)                                                                                       \
    X(ceil)                                                                                                  \
    X(celu)                                                                                                  \
    X(clip)                                                                                                  \
    X(compress)                                                                                              \
    X(concat)                                                                                                \
    X(constant_node)                                                                                         \
    X(constant_of_shape)                                                                                     \
    X(conv)                                                                                                  \
    X(conv_integer)                                                                                          \
    X(conv_transpose)                                                                                        \
    X(cosh)                                                                                                  \
    X(cumulative_sum)                                                                                        \
    X(depth_to_space)                                                                                        \
    X(dequantise)                                                                                            \
    X(determinant)                                                                                           \
    X(divide)                                                                                                \
    X(dropout)                                                                                               \
    X(dynamic_quantise)                                                                                      \
    X(elu)                                                                                                   \
    X(expand)                                                                                                \
    X(eye_like)                                                                                              \
    X(flatten)                                                                                               \
    X(gru)                                                                                                   \
    X(gather)                                                                                                \
    X(gather_elements)                                                                                       \
    X(gather_nd)                                                                                             \
    X(gelu)                                                                                                  \
    X(gemm)                                                                                                  \
    X(global_average_pool)                                                                                   \
    X(global_max_pool)                                                                                       \
    X(hard_sigmoid)                                                                                          \
    X(hardmax)                                                                                               \
    X(if_else)                                                                                               \
    X(instance_normalisation)                                                                                \
    X(is_inf)                                                                                                \
    X(lrn)                                                                                                   \
    X(lstm)                                                                                                  \
    X(layer_normalisation)                                                                                   \
    X(leaky_relu)                                                                                            \
    X(log_softmax)                                                                                           \
    X(loop)                                                                                                  \
    X(matmul)                                                                                                \
    X(matmul_integer)                                                                                        \
    X(variadic_max)                                                                                          \
    X(max_pool)                                                                                              \
    X(variadic_mean)                                                                                         \
    X(mean_variance_normalisation)                                                                           \
    X(variadic_min)                                                                                          \
    X(mod)                                                                                                   \
    X(negative_log_likelihood)                                                                               \
    X(non_zero)                                                                                              \
    X(one_hot)                                                                                               \
    X(prelu)                                                                                                 \
    X(pad)                                                                                                   \
    X(power)                                                                                                 \
    X(qlinear_conv)                                                                                          \
    X(qlinear_matmul)                                                                                        \
    X(quantise)                                                                                              \
    X(rnn)                                                                                                   \
    X(range)                                                                                                 \
    X(reduce_l1)                                                                                             \
    X(reduce_l2)                                                                                             \
    X(reduce_log_sum)                                                                                        \
    X(reduce_log_sum_exp)                                                                                    \
    X(reduce_max)                                                                                            \
    X(reduce_mean)                                                                                           \
    X(reduce_min)                                                                                            \
    X(reduce_product)                                                                                        \
    X(reduce_sum)                                                                                            \
    X(reduce_sum_square)                                                                                     \
    X(reshape)                                                                                               \
    X(resize)                                                                                                \
    X(reverse_sequence)                                                                                      \
    X(round)                                                                                                 \
    X(scan)                                                                                                  \
    X(scatter_elements)                                                                                      \
    X(scatter_nd)                                                                                            \
    X(selu)                                                                                                  \
    X(shape)                                                                                                 \
    X(shrink)                                                                                                \
    X(sinh)                                                                                                  \
    X(size)                                                                                                  \
    X(slice)                                                                                                 \
    X(softmax)                                                                                               \
    X(softmax_cross_entropy)                                                                                 \
    X(space_to_depth)                                                                                        \
    X(split)                                                                                                 \
    X(squeeze)                                                                                               \
    X(variadic_sum)                                                                                          \
    X(thresholded_relu)                                                                                      \
    X(tile)                                                                                                  \
    X(top_k)                                                                                                 \
    X(transpose)                                                                                             \
    X(trilu)                                                                                                 \
    X(unsqueeze)                                                                                             \
    X(upsample)                                                                                              \
    X(xor)
#define SGM__ONNX_DECLARE(name) sgm_value sgm__onnx_##name(sgm__onnx_node *n);
SGM__ONNX_BUILDERS(SGM__ONNX_DECLARE)
#define SGM__ONNX_WRITERS(X)                                                                                 \
    X(same)                                                                                                  \
    X(place)                                                                                                 \
    X(average_pool)                                                                                          \
    X(cast)                                                                                                  \
    X(concatenate)                                                                                           \
    X(convolution)                                                                                           \
    X(transposed)                                                                                            \
    X(cumulative_sum)                                                                                        \
    X(gather)                                                                                                \
    X(layer_norm)                                                                                            \
    X(last_axis)                                                                                             \
    X(matmul)                                                                                                \
    X(max_pool)                                                                                              \
    X(one_hot)                                                                                               \
    X(pad)                                                                                                   \
    X(reduce)                                                                                                \
    X(reduce_sum)                                                                                            \
    X(reshape)                                                                                               \
    X(slice)                                                                                                 \
    X(argsort)                                                                                               \
    X(permute)                                                                                               \
    X(flip)                                                                                                  \
    X(gelu)                                                                                                  \
    X(iota)                                                                                                  \
    X(is_finite)                                                                                             \
    X(log1p)                                                                                                 \
    X(not_equal)
#define SGM__ONNX_DECLARE_WRITER(name)                                                                       \
    sgm_status sgm__onnx_write_##name(sgm__onnx_export *e, sgm_value value);
SGM__ONNX_WRITERS(SGM__ONNX_DECLARE_WRITER)
#undef SGM__ONNX_DECLARE_WRITER
#undef SGM__ONNX_DECLARE

#endif
