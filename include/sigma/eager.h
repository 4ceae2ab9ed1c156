/* Operations on tensors that are computed at once, on any handler: for trying things out, and for tests.
 *
 *     sgm_handler *handler = sgm_handler_create("cpu");
 *     sgm_tensor *p = sgm_eager_matmul(handler, a, b);
 *     sgm_tensor *y = sgm_eager_tanh(handler, p);
 *
 * Each is the operation of sigma/graph.h of the same name, without its graph: the same rules of shapes and
 * types, the same numbers. An operation that is added to the lists there is here by that; one that a program
 * has registered, and every other in the table of operations, is found by its name (sgm_eager_op), and
 * whatever can be recorded is computed by sgm_eager.
 *
 * Operands stay the caller's, and may be views. The result is a new tensor, contiguous, which the caller
 * frees. NULL and an error, which names the operation: an operand is NULL, shapes or types do not fit, a
 * number is out of range, memory is short. In operations of several operands that are elementwise, one of
 * rank 0 takes the type of the others, as numbers in a graph do.
 *
 * Each call makes a program and throws it away, which costs some ten microseconds; what runs again and again
 * belongs into a graph (sigma/handler.h). Any thread may call them, also with one handler.
 */
#ifndef SIGMA_EAGER_H
#define SIGMA_EAGER_H

#include <sigma/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is computed: records it of the operands, which come as inputs of the graph. */
typedef sgm_value (*sgm_eager_function)(sgm_graph *graph, const sgm_value *operands, int32_t count,
                                        void *user);
/* What `function` records of the operands. */
SGM_API sgm_tensor *sgm_eager(sgm_handler *handler, sgm_eager_function function, void *user,
                              const sgm_tensor *const *operands, int32_t count);
/* An operation by its name, with the attributes that its file in src/ops tells; NULL: none. */
SGM_API sgm_tensor *sgm_eager_op(sgm_handler *handler, const char *operation,
                                 const sgm_tensor *const *operands, int32_t count,
                                 const sgm_attributes *attributes);

/* --- all operations of the lists: sgm_eager_exp(handler, x), sgm_eager_add(handler, a, b), ... --- */
#define SGM_EAGER_UNARY_FUNCTION(name, doc)                                                                  \
    SGM_API sgm_tensor *sgm_eager_##name(sgm_handler *handler, const sgm_tensor *x);
SGM_UNARY_LIST(SGM_EAGER_UNARY_FUNCTION)
SGM_COMPOSED_UNARY_LIST(SGM_EAGER_UNARY_FUNCTION)
#define SGM_EAGER_BINARY_FUNCTION(name, doc)                                                                 \
    SGM_API sgm_tensor *sgm_eager_##name(sgm_handler *handler, const sgm_tensor *a, const sgm_tensor *b);
SGM_BINARY_LIST(SGM_EAGER_BINARY_FUNCTION)

/* --- and those whose functions in sigma/graph.h take values alone --- */
/* Of one tensor: name, what it is. */
#define SGM_EAGER_OF_ONE_LIST(X)                                                                             \
    X(softplus, "log(1 + exp(x)), without overflow")                                                         \
    X(sum, "the sum of all elements")                                                                        \
    X(mean, "the mean of all elements")                                                                      \
    X(transpose, "the last two axes swapped")                                                                \
    X(inverse, "of matrices (..., n, n)")                                                                    \
    X(determinant, "of matrices (..., n, n)")                                                                \
    X(softmax, "exp(x) / sum(exp(x)) over the last axis")                                                    \
    X(log_softmax, "the logarithm of softmax")
/* Of two tensors: name, what it is. */
#define SGM_EAGER_OF_TWO_LIST(X)                                                                             \
    X(matmul, "(..., m, k) x (..., k, n)")                                                                   \
    X(dot, "the dot product of two vectors")                                                                 \
    X(solve, "the x with a x = b")
SGM_EAGER_OF_ONE_LIST(SGM_EAGER_UNARY_FUNCTION)
SGM_EAGER_OF_TWO_LIST(SGM_EAGER_BINARY_FUNCTION)
#undef SGM_EAGER_UNARY_FUNCTION
#undef SGM_EAGER_BINARY_FUNCTION

/* --- over `count` axes (0 axes: all), which stay as dimensions of 1 with `keep` --- */
/* Name, what it is. */
#define SGM_EAGER_REDUCTION_LIST(X)                                                                          \
    X(reduce_sum, "the sum")                                                                                 \
    X(reduce_max, "the largest")                                                                             \
    X(reduce_min, "the smallest")                                                                            \
    X(reduce_mean, "the mean")                                                                               \
    X(reduce_variance, "the variance of the population")                                                     \
    X(reduce_standard_deviation, "its square root")
#define SGM_EAGER_REDUCTION(name, doc)                                                                       \
    SGM_API sgm_tensor *sgm_eager_##name(sgm_handler *handler, const sgm_tensor *x, const int32_t *axes,     \
                                         int32_t count, bool keep);
SGM_EAGER_REDUCTION_LIST(SGM_EAGER_REDUCTION)
#undef SGM_EAGER_REDUCTION

/* --- along one axis --- */
/* Name, what it is. */
#define SGM_EAGER_ALONG_LIST(X)                                                                              \
    X(arg_max, "position (int64) of the first largest element")                                              \
    X(arg_min, "position (int64) of the first smallest element")                                             \
    X(flip, "the elements in the opposite order")
#define SGM_EAGER_ALONG(name, doc)                                                                           \
    SGM_API sgm_tensor *sgm_eager_##name(sgm_handler *handler, const sgm_tensor *x, int32_t axis);
SGM_EAGER_ALONG_LIST(SGM_EAGER_ALONG)
#undef SGM_EAGER_ALONG
/* The elements along an axis in order. */
SGM_API sgm_tensor *sgm_eager_sort(sgm_handler *handler, const sgm_tensor *x, int32_t axis, bool descending);
/* Entries `indices` (int64 or int32) of an axis: numpy.take. */
SGM_API sgm_tensor *sgm_eager_gather(sgm_handler *handler, const sgm_tensor *x, const sgm_tensor *indices,
                                     int32_t axis);
/* `count` tensors one behind the other. */
SGM_API sgm_tensor *sgm_eager_concatenate(sgm_handler *handler, const sgm_tensor *const *tensors,
                                          int32_t count, int32_t axis);

/* --- and elementwise --- */
/* An element of a where `condition` (bool) is true, else of b. */
SGM_API sgm_tensor *sgm_eager_select(sgm_handler *handler, const sgm_tensor *condition, const sgm_tensor *a,
                                     const sgm_tensor *b);
/* x where it lies between the bounds, else the nearer one. */
SGM_API sgm_tensor *sgm_eager_clip(sgm_handler *handler, const sgm_tensor *x, double minimum, double maximum);

#ifdef __cplusplus
}
#endif
#endif
