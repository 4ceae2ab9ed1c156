/* Graphs, what an operation is, and the operations that come with Sigma.
 *
 * Graphs: computations that are recorded first, and compiled and run later.
 *
 *     sgm_graph *graph = sgm_graph_create();
 *     sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &shape);
 *     sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, &weights);
 *     sgm_value cost = sgm_mean(graph, sgm_square(graph, sgm_matmul(graph, x, w)));
 *     sgm_value gradient;
 *     sgm_gradients(graph, cost, &w, 1, &gradient);
 *     sgm_assign(graph, w, sgm_subtract(graph, w, sgm_multiply(graph, sgm_number(graph, 0.1), gradient)));
 *     sgm_graph_add_output(graph, "cost", cost);
 *
 * An instruction has one result, and value i is instruction i's. A failed call returns a value that is
 * nothing (index -1); calls given nothing return nothing, and sgm_graph_status() has the first failure. So a
 * recording function is checked once, at its end. A graph is used by one thread at a time.
 */
#ifndef SIGMA_GRAPH_H
#define SIGMA_GRAPH_H

#include <sigma/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Instructions that were recorded; nothing is computed yet. */
typedef struct sgm_graph sgm_graph;
/* The result of an instruction, which is known in its graph alone. */
typedef struct sgm_value {
    int32_t index; /* of the instruction; -1: nothing */
} sgm_value;

/* What a value is made of. */
typedef struct sgm_type {
    sgm_dtype dtype; /* of its elements */
    sgm_shape shape; /* its dimensions */
} sgm_type;

/* The most integers among the attributes of an instruction. */
#define SGM_MAX_INTEGERS 24
/* The most numbers among the attributes of an instruction. */
#define SGM_MAX_NUMBERS 4
/* What an operation needs to know beside its inputs; unused entries are 0. */
typedef struct sgm_attributes {
    int32_t integer_count, number_count; /* how many there are of each */
    int64_t integers[SGM_MAX_INTEGERS];  /* axes, sizes and the like, as the operation has them */
    double numbers[SGM_MAX_NUMBERS];     /* factors, bounds and the like */
} sgm_attributes;

/* An operation, which is a constant table; the struct is below. */
typedef struct sgm_op sgm_op;

/* An empty graph, which the caller frees; NULL: out of memory. */
SGM_API sgm_graph *sgm_graph_create(void);
SGM_API void sgm_graph_free(sgm_graph *graph);
/* Forgets all instructions and the failure, keeps the memory. */
SGM_API void sgm_graph_clear(sgm_graph *graph);
/* The first failure since the graph was created or cleared; it is set again as this thread's newest error. */
SGM_API sgm_status sgm_graph_status(const sgm_graph *graph);
/* Reports a failure from a recording function; returns nothing. */
SGM_API sgm_value sgm_graph_fail(sgm_graph *graph, sgm_status status, const char *format, ...)
    SGM_PRINTF(3, 4);

/* Instructions recorded until the matching pop belong to `label` (a layer); it nests as "outer.inner" and
 * names the place in errors. */
SGM_API void sgm_graph_push_label(sgm_graph *graph, const char *label);
/* Ends what the newest sgm_graph_push_label began. */
SGM_API void sgm_graph_pop_label(sgm_graph *graph);

/* --- where values come from --- */
/* A value that is fed anew at each run, under this name. */
SGM_API sgm_value sgm_input_value(sgm_graph *graph, const char *name, sgm_dtype dtype,
                                  const sgm_shape *shape);
/* Outlives runs, under this name in the session; the same name gives the same value. */
SGM_API sgm_value sgm_state(sgm_graph *graph, const char *name, sgm_dtype dtype, const sgm_shape *shape);
/* A value that never changes; the tensor is copied. */
SGM_API sgm_value sgm_constant(sgm_graph *graph, const sgm_tensor *tensor);
/* A number of rank 0; in an elementwise operation it takes the type of the other operands. */
SGM_API sgm_value sgm_number(sgm_graph *graph, double number);
/* A number of rank 0, as sgm_number, that is another one in a later recording, such as a layer's argument
 * that is set while training runs: devices read it where they would have it in the text of their kernels,
 * which so stay. */
SGM_API sgm_value sgm_live_number(sgm_graph *graph, double number);
/* `number` in the type and shape of `like`. */
SGM_API sgm_value sgm_filled_like(sgm_graph *graph, sgm_value like, double number);

/* --- what a run does with them --- */
/* The value can be read under this name after a run. */
SGM_API void sgm_graph_add_output(sgm_graph *graph, const char *name, sgm_value value);
/* After the run `state` has this value; all reads in the run see the old one. Types must be equal; one
 * assignment each. */
SGM_API void sgm_assign(sgm_graph *graph, sgm_value state, sgm_value value);

/* --- autodiff --- */
/* Records d`cost`/d`with_respect_to[i]` for `count` values into `gradients`; cost is one number of a float
 * type. What cost does not depend on gets zeros. Gradients are values like any other: they have gradients
 * too. */
SGM_API sgm_status sgm_gradients(sgm_graph *graph, sgm_value cost, const sgm_value *with_respect_to,
                                 int32_t count, sgm_value *gradients);
/* The same value, through which no gradient flows. */
SGM_API sgm_value sgm_stop_gradient(sgm_graph *graph, sgm_value value);

/* --- looking --- */
/* Whether it is a value; false: it is nothing. */
SGM_API bool sgm_value_exists(sgm_value value);
/* How many instructions there are. */
SGM_API int32_t sgm_graph_count(const sgm_graph *graph);
/* Type and shape of a value; those of nothing are float32 of rank 0. */
SGM_API sgm_type sgm_value_type(const sgm_graph *graph, sgm_value value);
/* The operation that gives it; NULL for nothing. */
SGM_API const sgm_op *sgm_value_op(const sgm_graph *graph, sgm_value value);
/* What the operation knows beside its inputs; NULL for nothing. The graph's. */
SGM_API const sgm_attributes *sgm_value_attributes(const sgm_graph *graph, sgm_value value);
/* How many; `inputs` lie in the graph, and move when more is recorded; NULL if there are none. */
SGM_API int32_t sgm_value_inputs(const sgm_graph *graph, sgm_value value, const sgm_value **inputs);
/* The name of an input or a state, "" of other values. */
SGM_API const char *sgm_value_name(const sgm_graph *graph, sgm_value value);
/* The label of the layer that recorded it, "" if there is none. */
SGM_API const char *sgm_value_label(const sgm_graph *graph, sgm_value value);
/* One line per instruction: "%4 = add %2 %3 : float32 (100, 10)  # 2-dense"; free with sgm_string_free. */
SGM_API char *sgm_graph_text(const sgm_graph *graph);
/* Equal for graphs of equal structure: the key of compiled programs. Labels do not count, names do. */
SGM_API uint64_t sgm_graph_hash(const sgm_graph *graph);
/* The grammar of instructions, checked: operands come before, types obey the operations' rules, names are
 * unique, ... */
SGM_API sgm_status sgm_graph_verify(const sgm_graph *graph);

/* ======== operations, and new ones ========
 *
 * Operations, and how to add one from outside the library.
 *
 * An operation is one constant table. It is either composed (`compose`: built from other operations; gradient
 * and every handler for nothing) or native (`infer` and `scalar` or `forward`; `gradient` as soon as
 * something trains through it).
 *
 *     static sgm_value swish(sgm_graph *graph, const sgm_value *inputs, int32_t count,
 *                            const sgm_attributes *attributes)
 *     {
 *         return sgm_multiply(graph, inputs[0], sgm_sigmoid(graph, inputs[0]));
 *     }
 *     const sgm_op swish_op = {.api = SGM_OP_API, .name = "swish", .doc = "x * sigmoid(x)",
 *                              .min_inputs = 1, .max_inputs = 1, .compose = swish};
 */

/* The version of sgm_op. */
#define SGM_OP_API 2

/* What kind of operation it is; several may be set. */
typedef enum sgm_op_flags {
    SGM_OP_ELEMENTWISE = 1, /* inputs are broadcast to one shape, which is the result's */
    SGM_OP_VIEW = 2,        /* the result is its first input's memory, seen by other strides */
    SGM_OP_STRIDED = 4, /* `forward` reads operands by their strides; otherwise they are made contiguous */
    SGM_OP_SOURCE = 8,  /* input, state, constant: has no kernel */
    SGM_OP_ACTIVATION = 16, /* one input, same shape: may be named as an activation in a network */
    /* the result may be written over the first input, which has its type and lies without gaps, where
     * nothing else reads that any more, also over a state that it is assigned to: `forward` then finds both
     * at the same address */
    SGM_OP_IN_PLACE = 32
} sgm_op_flags;

/* An operand as a kernel sees it: `data` is the first element, strides count elements. */
typedef struct sgm_array {
    sgm_dtype dtype;               /* of its elements */
    sgm_shape shape;               /* its dimensions */
    int64_t strides[SGM_MAX_RANK]; /* elements from one index of a dimension to the next */
    void *data;                    /* its first element */
} sgm_array;

/* What `forward` gets. */
typedef struct sgm_kernel_call {
    const sgm_array *inputs;          /* the operands */
    int32_t input_count;              /* how many */
    sgm_array output;                 /* contiguous */
    const sgm_attributes *attributes; /* of the instruction */
} sgm_kernel_call;

/* What `gradient` gets. */
typedef struct sgm_gradient_call {
    const sgm_value *inputs;          /* of the instruction */
    int32_t input_count;              /* how many */
    sgm_value output;                 /* this instruction's value */
    sgm_value gradient;               /* of the cost with respect to `output`: same type */
    const sgm_attributes *attributes; /* of the instruction */
    const bool *wanted;               /* which inputs need a gradient */
} sgm_gradient_call;

/* An operation: a constant table. */
struct sgm_op {
    uint32_t api;                   /* SGM_OP_API */
    uint32_t flags;                 /* several sgm_op_flags */
    const char *name;               /* lower case, underscores */
    const char *doc;                /* one line */
    int32_t min_inputs, max_inputs; /* how many inputs it takes */
    /* Built from other operations. With `infer` given too, it stays one instruction, and is expanded for
     * handlers that have no kernel of their own for it; `gradient` is then optional (else that of the parts).
     */
    sgm_value (*compose)(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                         const sgm_attributes *attributes);
    /* Shape and type rule; a failure's message needs no place, the recorder adds layer and operation. */
    sgm_status (*infer)(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result);
    /* Records the gradient with respect to each wanted input (same type as that input); entries come as
     * nothing, and what stays nothing counts as zero. */
    void (*gradient)(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients);
    /* Elementwise: the formula for one element. This is the reference that all handlers are tested against.
     */
    double (*scalar)(const double *inputs, const sgm_attributes *attributes);
    /* Elementwise, of int64: the same, exactly; what int64 does not hold wraps around. NULL: by `scalar`,
     * which is exact up to 2^53. */
    int64_t (*whole)(const int64_t *inputs, const sgm_attributes *attributes);
    /* Others: the whole array by plain loops, in double precision. Must not allocate. */
    sgm_status (*forward)(const sgm_kernel_call *call);
};

/* Records one instruction (or what it is composed of). sgm_add() and so on are this. */
SGM_API sgm_value sgm_record(sgm_graph *graph, const sgm_op *op, const sgm_value *inputs, int32_t count,
                             const sgm_attributes *attributes);
/* Makes an operation known by its name (networks, inspection). `op` must stay. The same name with another
 * table is an error. Any thread. */
SGM_API sgm_status sgm_register_op(const sgm_op *op);
/* NULL and an error with the nearest name if there is none. */
SGM_API const sgm_op *sgm_find_op(const char *name);
/* The operations that are known, by index from 0; NULL past the last. */
SGM_API const sgm_op *sgm_op_at(size_t index);

/* For `forward`: an element as double, `offset` counted in elements from `data`. */
SGM_API double sgm_array_load(const sgm_array *array, int64_t offset);
/* Writes an element, converted to the array's type. */
SGM_API void sgm_array_store(const sgm_array *array, int64_t offset, double value);
/* Offset of the element with this row-major number. */
SGM_API int64_t sgm_array_offset(const sgm_array *array, int64_t number);

/* ======== the operations that come with Sigma ========
 *
 * The operations that come with Sigma, as functions that record them.
 *
 * Elementwise operations broadcast as NumPy does and want equal types (numbers adapt). Axes may be negative
 * (-1: the last). Comparisons and logic give bool. Indices are int64 or int32.
 */

/* Elementwise operations of one input: the name of the operation, and of its function with sgm_ in front,
 * and what it does. */
#define SGM_UNARY_LIST(X)                                                                                    \
    X(negate, "-x")                                                                                          \
    X(absolute, "|x|")                                                                                       \
    X(sign, "-1, 0 or 1")                                                                                    \
    X(square_root, "square root of x")                                                                       \
    X(exp, "e to the x")                                                                                     \
    X(log, "natural logarithm of x")                                                                         \
    X(log1p, "log(1 + x), exact for small x")                                                                \
    X(sin, "sine")                                                                                           \
    X(cos, "cosine")                                                                                         \
    X(tan, "tangent")                                                                                        \
    X(asin, "inverse sine")                                                                                  \
    X(acos, "inverse cosine")                                                                                \
    X(atan, "inverse tangent")                                                                               \
    X(tanh, "hyperbolic tangent")                                                                            \
    X(erf, "Gauss error function")                                                                           \
    X(sigmoid, "1 / (1 + exp(-x))")                                                                          \
    X(gelu, "x times the normal distribution function of x (Hendrycks and Gimpel, 2016)")                    \
    X(gelu_gradient, "the derivative of gelu")                                                               \
    X(floor, "largest integer not above x")                                                                  \
    X(copy, "x itself, in memory of its own")                                                                \
    X(stop_gradient, "x, through which no gradient flows")                                                   \
    X(logical_not, "true where x is false")                                                                  \
    X(is_nan, "true where x is not a number")                                                                \
    X(is_finite, "true where x is neither infinite nor not a number")
/* Elementwise operations of two inputs: name, and what it does. */
#define SGM_BINARY_LIST(X)                                                                                   \
    X(add, "a + b")                                                                                          \
    X(subtract, "a - b")                                                                                     \
    X(multiply, "a * b")                                                                                     \
    X(divide, "a / b")                                                                                       \
    X(power, "a to the b")                                                                                   \
    X(maximum, "the larger; its gradient goes to a where they are equal")                                    \
    X(minimum, "the smaller; its gradient goes to a where they are equal")                                   \
    X(equal, "a == b")                                                                                       \
    X(not_equal, "a != b")                                                                                   \
    X(less, "a < b")                                                                                         \
    X(less_equal, "a <= b")                                                                                  \
    X(greater, "a > b")                                                                                      \
    X(greater_equal, "a >= b")                                                                               \
    X(logical_and, "a and b")                                                                                \
    X(logical_or, "a or b")
/* Elementwise operations of one input that are composed of others: name, and what it does. */
#define SGM_COMPOSED_UNARY_LIST(X)                                                                           \
    X(square, "x * x")                                                                                       \
    X(reciprocal, "1 / x")                                                                                   \
    X(relu, "max(x, 0)")                                                                                     \
    X(leaky_relu, "x where it is above 0, else x / 100 (Maas et al., 2013)")                                 \
    X(elu, "x where it is above 0, else exp(x) - 1 (Clevert et al., 2015)")                                  \
    X(gelu_tanh, "gelu with tanh in place of erf: the approximation of the same paper")                      \
    X(silu, "x * sigmoid(x), also called swish (Elfwing et al., 2017)")                                      \
    X(mish, "x * tanh(softplus(x)) (Misra, 2019)")                                                           \
    X(selu, "elu at the scale that keeps mean 0 and standard deviation 1 (Klambauer et al., 2017)")          \
    X(relu6, "min(max(x, 0), 6)")                                                                            \
    X(hard_sigmoid, "min(max(x / 6 + 1 / 2, 0), 1)")                                                         \
    X(hard_silu, "x * hard_sigmoid(x), also called hard swish (Howard et al., 2019)")                        \
    X(hard_tanh, "min(max(x, -1), 1)")                                                                       \
    X(softsign, "x / (1 + |x|)")                                                                             \
    X(identity, "x itself")

#define SGM_UNARY_FUNCTION(name, doc) SGM_API sgm_value sgm_##name(sgm_graph *graph, sgm_value x);
SGM_UNARY_LIST(SGM_UNARY_FUNCTION)
SGM_COMPOSED_UNARY_LIST(SGM_UNARY_FUNCTION)
#undef SGM_UNARY_FUNCTION
SGM_API sgm_value sgm_softplus(sgm_graph *graph, sgm_value x); /* log(1 + exp(x)), without overflow */
#define SGM_BINARY_FUNCTION(name, doc)                                                                       \
    SGM_API sgm_value sgm_##name(sgm_graph *graph, sgm_value a, sgm_value b);
SGM_BINARY_LIST(SGM_BINARY_FUNCTION)
#undef SGM_BINARY_FUNCTION

/* An element of a where `condition` (bool) is true, else of b. */
SGM_API sgm_value sgm_select(sgm_graph *graph, sgm_value condition, sgm_value a, sgm_value b);
/* The same numbers in another type, to nearest; floats become integers towards 0, within the limits of the
 * type. */
SGM_API sgm_value sgm_cast(sgm_graph *graph, sgm_value x, sgm_dtype dtype);
/* x where it lies between the bounds, else the nearer one. */
SGM_API sgm_value sgm_clip(sgm_graph *graph, sgm_value x, double minimum, double maximum);

/* --- reductions over `count` axes (0 axes: all); `keep` leaves them as dimensions of 1 --- */
/* The sum over the axes. */
SGM_API sgm_value sgm_reduce_sum(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count,
                                 bool keep);
/* The largest element over the axes. Equal ones share the gradient equally; with a NaN it is NaN. */
SGM_API sgm_value sgm_reduce_max(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count,
                                 bool keep);
/* The smallest element over the axes. Equal ones share the gradient equally; with a NaN it is NaN. */
SGM_API sgm_value sgm_reduce_min(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count,
                                 bool keep);
/* The mean over the axes. */
SGM_API sgm_value sgm_reduce_mean(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count,
                                  bool keep);
/* The variance of the population over the axes: divided by n. */
SGM_API sgm_value sgm_reduce_variance(sgm_graph *graph, sgm_value x, const int32_t *axes, int32_t count,
                                      bool keep);
/* The square root of the variance over the axes. */
SGM_API sgm_value sgm_reduce_standard_deviation(sgm_graph *graph, sgm_value x, const int32_t *axes,
                                                int32_t count, bool keep);
/* The sum of all elements. */
SGM_API sgm_value sgm_sum(sgm_graph *graph, sgm_value x);
/* The mean of all elements. */
SGM_API sgm_value sgm_mean(sgm_graph *graph, sgm_value x);
/* Position (int64) of the first largest element along an axis, which goes away. */
SGM_API sgm_value sgm_arg_max(sgm_graph *graph, sgm_value x, int32_t axis);
/* Position (int64) of the first smallest element along an axis, which goes away. */
SGM_API sgm_value sgm_arg_min(sgm_graph *graph, sgm_value x, int32_t axis);
/* The share (float64, rank 0) of x's rows (..., classes) whose first largest element is where that of the
 * targets is; or whose number, without fraction, the target is, if there is one for each row. A NaN counts as
 * largest. */
SGM_API sgm_value sgm_accuracy(sgm_graph *graph, sgm_value x, sgm_value targets);
/* Each element and those before it along an axis, added up; with `reverse` it and those behind it. */
SGM_API sgm_value sgm_cumulative_sum(sgm_graph *graph, sgm_value x, int32_t axis, bool reverse);

/* --- movement --- */
/* The elements in another shape of as many; one dimension may be -1. */
SGM_API sgm_value sgm_reshape(sgm_graph *graph, sgm_value x, const sgm_shape *shape);
/* Dimension i of the result is dimension axes[i] of x. */
SGM_API sgm_value sgm_permute(sgm_graph *graph, sgm_value x, const int32_t *axes);
/* x with its last two axes swapped. */
SGM_API sgm_value sgm_transpose(sgm_graph *graph, sgm_value x);
/* x repeated to this shape, by the rules of NumPy. */
SGM_API sgm_value sgm_broadcast(sgm_graph *graph, sgm_value x, const sgm_shape *shape);
/* start to stop (exclusive) by step > 0 along one axis; negative start or stop count from the end, a stop of
 * INT64_MAX is the end. */
SGM_API sgm_value sgm_slice(sgm_graph *graph, sgm_value x, int32_t axis, int64_t start, int64_t stop,
                            int64_t step);
/* The elements along an axis in the opposite order. */
SGM_API sgm_value sgm_flip(sgm_graph *graph, sgm_value x, int32_t axis);
/* Zeros before, after, and `between` between neighbours along one axis. */
SGM_API sgm_value sgm_pad(sgm_graph *graph, sgm_value x, int32_t axis, int64_t before, int64_t after,
                          int64_t between);
/* The values one behind the other along an axis; all other dimensions are equal. */
SGM_API sgm_value sgm_concatenate(sgm_graph *graph, const sgm_value *values, int32_t count, int32_t axis);
/* (d0, d1, ...) to (d0 * ... up to and with axis, the rest): sgm_flatten(x, 0) keeps the batch, flattens the
 * others. */
SGM_API sgm_value sgm_flatten(sgm_graph *graph, sgm_value x, int32_t axis);
/* x.shape[:axis] + indices.shape + x.shape[axis+1:]: numpy.take. An index out of range is an error at run
 * time. */
SGM_API sgm_value sgm_gather(sgm_graph *graph, sgm_value x, sgm_value indices, int32_t axis);
/* Zeros of gather's input shape (`size` along `axis`) with `updates` added where gather would have read. */
SGM_API sgm_value sgm_scatter_add(sgm_graph *graph, sgm_value updates, sgm_value indices, int32_t axis,
                                  int64_t size);
/* `all` with `part` in place of its entries `place`, place + 1, ... of an axis, where `place` is one index
 * (int64 or int32, rank 0) that is known when the program runs: XLA's dynamic_update_slice along one axis.
 * `part` has the shape of `all`, but may have fewer entries on that axis; if they do not fit behind the
 * place, that stops the run. A program that assigns the result to the state `all` writes only the part, if it
 * reads the old value nowhere behind that and its handler has a kernel for it. */
SGM_API sgm_value sgm_write_at(sgm_graph *graph, sgm_value all, sgm_value part, sgm_value place,
                               int32_t axis);
/* numpy.take_along_axis: indices have x's rank. */
SGM_API sgm_value sgm_gather_along(sgm_graph *graph, sgm_value x, sgm_value indices, int32_t axis);
/* Positions (int64) of the elements along an axis in their order; equal ones stay as they stand. */
SGM_API sgm_value sgm_argsort(sgm_graph *graph, sgm_value x, int32_t axis, bool descending);
/* The elements along an axis in order; equal ones stay as they stand. */
SGM_API sgm_value sgm_sort(sgm_graph *graph, sgm_value x, int32_t axis, bool descending);
/* The k largest along an axis, largest first; their positions are sgm_top_k_indices. */
SGM_API sgm_value sgm_top_k(sgm_graph *graph, sgm_value x, int32_t axis, int64_t k);
/* Positions (int64) of the k largest along an axis, largest first. */
SGM_API sgm_value sgm_top_k_indices(sgm_graph *graph, sgm_value x, int32_t axis, int64_t k);
/* 0, 1, 2, ... along `axis`, equal along the others. */
SGM_API sgm_value sgm_iota(sgm_graph *graph, sgm_dtype dtype, const sgm_shape *shape, int32_t axis);
/* (...) of integers to (..., classes) of dtype; what is no class gives zeros. */
SGM_API sgm_value sgm_one_hot_values(sgm_graph *graph, sgm_value indices, int64_t classes, sgm_dtype dtype);
/* As sgm_one_hot_values, but what is no class is an error at run time. */
SGM_API sgm_value sgm_one_hot_classes(sgm_graph *graph, sgm_value indices, int64_t classes, sgm_dtype dtype);

/* --- linear algebra --- */
/* (..., m, k) x (..., k, n) to (..., m, n); leading dimensions broadcast. */
SGM_API sgm_value sgm_matmul(sgm_graph *graph, sgm_value a, sgm_value b);
/* (..., m, k) x (k, n) to (..., m, n), of float32 or float64, with weights of 8 bits: codes of uint8, where
 * 128 stands for 0, and a scale for each column, (n). Each row of x is rounded to 8 bits by itself: to whole
 * multiples, -127 to 127, of a 127th of its largest magnitude. Products are summed as integers. A row with
 * NaN or infinity gives NaN. No gradient. */
SGM_API sgm_value sgm_quantized_matmul(sgm_graph *graph, sgm_value x, sgm_value weights, sgm_value scales);
/* Codes and scales of weights (k, n) for sgm_quantized_matmul: a column's scale is a 127th of its largest
 * magnitude. */
SGM_API void sgm_quantize(sgm_graph *graph, sgm_value weights, sgm_value *codes, sgm_value *scales);
/* (..., m, k) x (k, n) to (..., m, n), of floats, with weights of 8 bits and scales as above, which stand for
 * weights (codes - 128) * scales: x is not rounded, and has a gradient, which goes through the codes, too. */
SGM_API sgm_value sgm_dequantized_matmul(sgm_graph *graph, sgm_value x, sgm_value weights, sgm_value scales);
/* The dot product of two vectors of one length: rank 0. */
SGM_API sgm_value sgm_dot(sgm_graph *graph, sgm_value a, sgm_value b);
/* (..., n, n); a singular matrix is an error at run time. */
SGM_API sgm_value sgm_inverse(sgm_graph *graph, sgm_value x);
/* (..., n, n) to (...), n at most 64; its gradient wants matrices that are not singular. */
SGM_API sgm_value sgm_determinant(sgm_graph *graph, sgm_value x);
/* The x with a x = b: b is (..., n, m), or one vector. */
SGM_API sgm_value sgm_solve(sgm_graph *graph, sgm_value a, sgm_value b);

/* --- windows: convolution and pooling of one or two dimensions --- */
/* Data is (batch, channels, height, width), or (batch, channels, length); then the first entry of each pair
 * counts. What is 0 has its default. With stride s, padding b and a, dilation d and a window of k, n elements
 * give (n + b + a - d (k - 1) - 1) / s + 1. */
typedef struct sgm_window_options {
    size_t struct_size;
    int64_t size[2];             /* height, width; poolings only: weights have their own */
    int64_t stride[2];           /* default 1 */
    int64_t before[2], after[2]; /* zeros around the data; poolings: nothing, which no maximum sees */
    int64_t dilation[2];         /* elements from one place of the window to the next; default 1 */
    int64_t groups;              /* convolutions: of channels that do not see each other; default 1 */
    bool exclude_padding;        /* averages: of the data alone, not of the padding's zeros */
} SGM_BY_NAME sgm_window_options;
/* Options for the operations below: SGM_WINDOW(.size = {2, 2}). */
#define SGM_WINDOW(...) SGM_OPTIONS(sgm_window_options, __VA_ARGS__)
/* weights: (filters, channels / groups, [height,] width); biases: (filters,), or nothing. The kernel is not
 * flipped. Its gradients are operations of their own, "convolution_input_gradient" (gradient, weights)
 * and "convolution_weights_gradient" (x, gradient). */
SGM_API sgm_value sgm_convolution(sgm_graph *graph, sgm_value x, sgm_value weights, sgm_value biases,
                                  const sgm_window_options *options);
/* convolution's gradient by its input, as an operation: weights are (channels of x, filters / groups, ...).
 * Where several sizes would give x, the result is the smallest, and larger by `output_padding` (one number
 * for each axis, less than the stride; NULL: 0). */
SGM_API sgm_value sgm_transposed_convolution(sgm_graph *graph, sgm_value x, sgm_value weights,
                                             sgm_value biases, const int64_t *output_padding,
                                             const sgm_window_options *options);
/* The largest element; NaN if there is one. Of equal ones the first (of several NaN the last) gets the
 * gradient, as in PyTorch. The stride is 1 unless given. */
SGM_API sgm_value sgm_max_pooling(sgm_graph *graph, sgm_value x, const sgm_window_options *options);
/* The mean; padding counts as zeros unless exclude_padding. No dilation. */
SGM_API sgm_value sgm_average_pooling(sgm_graph *graph, sgm_value x, const sgm_window_options *options);

/* --- random numbers: Philox4x32-10, so the same seed and step give the same numbers on every handler --- */
/* [0, 1), multiples of 2^-24. `seed` and `step`: int64 of rank 0; `stream` tells draws of one step apart. */
SGM_API sgm_value sgm_random_uniform(sgm_graph *graph, sgm_value seed, sgm_value step, int64_t stream,
                                     sgm_dtype dtype, const sgm_shape *shape);
/* Of mean 0 and standard deviation 1, none beyond 5.8 (Box and Muller, 1958). */
SGM_API sgm_value sgm_random_normal(sgm_graph *graph, sgm_value seed, sgm_value step, int64_t stream,
                                    sgm_dtype dtype, const sgm_shape *shape);

/* --- composed for networks; the last axis holds the classes --- */
/* exp(x) / sum(exp(x)) over the last axis, without overflow. */
SGM_API sgm_value sgm_softmax(sgm_graph *graph, sgm_value x);
/* The logarithm of softmax, exact also where softmax is nearly 0. */
SGM_API sgm_value sgm_log_softmax(sgm_graph *graph, sgm_value x);
/* -sum(targets * log_softmax(x)) over the last axis, which goes away. */
SGM_API sgm_value sgm_softmax_cross_entropy_values(sgm_graph *graph, sgm_value x, sgm_value targets);
/* -log_softmax(x) at the class whose number `classes` (int64 or int32) has for each row: what
 * sgm_softmax_cross_entropy_values gives for one_hot targets, without a row of them. A number that is no
 * class stops the run. */
SGM_API sgm_value sgm_class_cross_entropy(sgm_graph *graph, sgm_value x, sgm_value classes);
/* (x - mean) / sqrt(variance + epsilon) over the last axis; epsilon 0 or more. */
SGM_API sgm_value sgm_layer_norm(sgm_graph *graph, sgm_value x, double epsilon);
/* x / sqrt(mean(x^2) + epsilon) over the last axis. */
SGM_API sgm_value sgm_rms_norm(sgm_graph *graph, sgm_value x, double epsilon);
/* softmax(queries keys' / sqrt(d)) values: (..., t, d), (..., s, d), (..., s, e) to (..., t, e). Causal: t =
 * s, and position t takes nothing from later ones. */
SGM_API sgm_value sgm_attention(sgm_graph *graph, sgm_value queries, sgm_value keys, sgm_value values,
                                bool causal);
/* The same, where queries see the keys and values 0 to `place` (int64 or int32; rank 0: of all queries, or
 * (t): of each) of the s, which need not be filled behind it, but with finite numbers. A place that is none
 * stops the run. With write_at it is how a sequence is read step by step. */
SGM_API sgm_value sgm_attention_at(sgm_graph *graph, sgm_value queries, sgm_value keys, sgm_value values,
                                   sgm_value place);
/* Attention of `heads` heads: (..., time, 3 features), in which features of the queries lie before those of
 * the keys and of the values, head by head, to (..., time, features). */
SGM_API sgm_value sgm_self_attention(sgm_graph *graph, sgm_value x, int64_t heads, bool causal);
/* The same, causal, where several sequences stand one behind the other in a row: position t sees those from
 * starts[t] to t, itself at least, with starts (..., time) of int32 or int64. */
SGM_API sgm_value sgm_packed_attention(sgm_graph *graph, sgm_value x, int64_t heads, sgm_value starts);
/* -log of the probability that the steps of x (batch, time, classes), whose softmax is taken, say the labels
 * (batch, longest; int64), each in one step or more, with or without steps of the class `blank` between them
 * (Graves et al., 2006: connectionist temporal classification): (batch). An example's labels end before the
 * first that is negative or the blank; its steps after `lengths` (batch; int64) do not count. What is no
 * class, and too few steps for the labels, is an error at run time; with `skip` too few steps cost nothing.
 */
SGM_API sgm_value sgm_ctc(sgm_graph *graph, sgm_value x, sgm_value labels, sgm_value lengths, int64_t blank,
                          bool skip);

#ifdef __cplusplus
}
#endif
#endif
