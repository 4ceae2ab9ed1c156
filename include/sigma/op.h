/* Operations, and how to add one from outside the library.
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
#ifndef SIGMA_OP_H
#define SIGMA_OP_H

#include <sigma/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SGM_OP_API 2

typedef enum sgm_op_flags {
    SGM_OP_ELEMENTWISE = 1, /* inputs are broadcast to one shape, which is the result's */
    SGM_OP_VIEW = 2,        /* the result is its first input's memory, seen by other strides */
    SGM_OP_STRIDED = 4,    /* `forward` reads operands by their strides; otherwise they are made contiguous */
    SGM_OP_SOURCE = 8,     /* input, state, constant: has no kernel */
    SGM_OP_ACTIVATION = 16 /* one input, same shape: may be named as an activation in a network */
} sgm_op_flags;

/* An operand as a kernel sees it: `data` is the first element, strides count elements. */
typedef struct sgm_array {
    sgm_dtype dtype;
    sgm_shape shape;
    int64_t strides[SGM_MAX_RANK];
    void *data;
} sgm_array;

typedef struct sgm_kernel_call {
    const sgm_array *inputs;
    int32_t input_count;
    sgm_array output; /* contiguous */
    const sgm_attributes *attributes;
} sgm_kernel_call;

typedef struct sgm_gradient_call {
    const sgm_value *inputs;
    int32_t input_count;
    sgm_value output;   /* this instruction's value */
    sgm_value gradient; /* of the cost with respect to `output`: same type */
    const sgm_attributes *attributes;
    const bool *wanted; /* which inputs need a gradient */
} sgm_gradient_call;

struct sgm_op {
    uint32_t api; /* SGM_OP_API */
    uint32_t flags;
    const char *name; /* lower case, underscores */
    const char *doc;  /* one line */
    int32_t min_inputs, max_inputs;
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

/* Records one instruction (or what it is composed of). The sgm_add() and so on of sigma/operations.h are
 * this. */
SGM_API sgm_value sgm_record(sgm_graph *graph, const sgm_op *op, const sgm_value *inputs, int32_t count,
                             const sgm_attributes *attributes);
/* Makes an operation known by its name (networks, inspection). `op` must stay. The same name with another
 * table is an error. Any thread. */
SGM_API sgm_status sgm_register_op(const sgm_op *op);
/* NULL and an error with the nearest name if there is none. */
SGM_API const sgm_op *sgm_find_op(const char *name);
/* By index from 0; NULL past the last. */
SGM_API const sgm_op *sgm_op_at(size_t index);

/* For `forward`: an element as double, `offset` counted in elements from `data`. */
SGM_API double sgm_array_load(const sgm_array *array, int64_t offset);
SGM_API void sgm_array_store(const sgm_array *array, int64_t offset, double value);
/* Offset of the element with this row-major number. */
SGM_API int64_t sgm_array_offset(const sgm_array *array, int64_t number);

#ifdef __cplusplus
}
#endif
#endif
