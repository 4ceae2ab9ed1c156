/* One description of each operation: how it is recorded, on which inputs, and how far it can be
 * differentiated. The tests of gradients and of handlers, and the benchmark of operations, read it. */
#ifndef OP_CASES_H
#define OP_CASES_H

#include <sigma/graph.h>
#include <stddef.h>
#include <stdint.h>

typedef enum op_kind {
    OP_FLOATS, /* of the type that is tested */
    OP_WHOLE,  /* the same, whole numbers: equal ones are likely */
    OP_INT64,
    OP_INT32,
    OP_UINT8,
    OP_BOOL
} op_kind;

typedef struct op_input {
    op_kind kind;
    sgm_shape shape;
    double low, high; /* random numbers from here to there; integers: below `high` */
} op_input;

#define OP_MAX_INPUTS 4
typedef enum op_case_flags {
    OP_FIRST = 1,      /* has a gradient where the inputs are random */
    OP_SECOND = 2 | 1, /* and its gradient has one */
    OP_SHAPES = 4,     /* elementwise: to be tested with op_shapes instead of its own */
    OP_COPIES = 8,     /* must be exact on every handler: it moves or counts */
    /* rounds operands to 8 bits: a device's division, off in its last bit, may make another code of one */
    OP_CODES = 16
} op_case_flags;

typedef struct op_case {
    const char *name; /* of the operation, or of the function where that is composed */
    sgm_value (*record)(sgm_graph *g, const sgm_value *x, sgm_dtype dtype);
    int32_t input_count;
    uint32_t flags;
    op_input inputs[OP_MAX_INPUTS];
    double loose; /* factor on tolerances; 0: 1 */
} op_case;

#define OP_SHAPE(...)                                                                                        \
    {                                                                                                        \
        .rank = SGM_SHAPE_COUNT(__VA_ARGS__), .dims = { __VA_ARGS__ }                                        \
    }
#define OP_SCALAR                                                                                            \
    {                                                                                                        \
        .rank = 0                                                                                            \
    }

/* --- how each is recorded --- */

#define OP_RECORD(name, expression)                                                                          \
    static sgm_value op_record_##name(sgm_graph *g, const sgm_value *x, sgm_dtype dtype)                     \
    {                                                                                                        \
        (void)x, (void)dtype;                                                                                \
        return expression;                                                                                   \
    }
#define OP_AXES(...) ((const int32_t[]){__VA_ARGS__})
#define OP_DIMS(...) (&(const sgm_shape)OP_SHAPE(__VA_ARGS__))

/* x with 3 added on the diagonal, so that it can be inverted. */
static sgm_value op_regular(sgm_graph *g, sgm_value x)
{
    sgm_type type = sgm_value_type(g, x);
    int32_t rank = type.shape.rank;
    sgm_value rows = sgm_iota(g, SGM_INT64, &type.shape, rank - 2);
    sgm_value columns = sgm_iota(g, SGM_INT64, &type.shape, rank - 1);
    sgm_value diagonal = sgm_cast(g, sgm_equal(g, rows, columns), type.dtype);
    return sgm_add(g, x, sgm_multiply(g, diagonal, sgm_number(g, 3)));
}

/* name, smallest and largest input, flags */
#define OP_UNARY_CASES(X)                                                                                    \
    X(negate, -2, 2, OP_SECOND)                                                                              \
    X(absolute, -2, 2, OP_SECOND)                                                                            \
    X(sign, -2, 2, OP_SECOND)                                                                                \
    X(square_root, 0.1, 4, OP_SECOND)                                                                        \
    X(exp, -3, 3, OP_SECOND)                                                                                 \
    X(log, 0.1, 9, OP_SECOND)                                                                                \
    X(log1p, -0.7, 5, OP_SECOND)                                                                             \
    X(sin, -7, 7, OP_SECOND)                                                                                 \
    X(cos, -7, 7, OP_SECOND)                                                                                 \
    X(tan, -1.2, 1.2, OP_SECOND)                                                                             \
    X(asin, -0.9, 0.9, OP_SECOND)                                                                            \
    X(acos, -0.9, 0.9, OP_SECOND)                                                                            \
    X(atan, -4, 4, OP_SECOND)                                                                                \
    X(tanh, -4, 4, OP_SECOND)                                                                                \
    X(erf, -3, 3, OP_SECOND)                                                                                 \
    X(floor, -5, 5, OP_SECOND)                                                                               \
    X(copy, -2, 2, OP_SECOND | OP_COPIES)                                                                    \
    X(stop_gradient, -2, 2, OP_COPIES)                                                                       \
    X(is_nan, -2, 2, OP_COPIES)                                                                              \
    X(is_finite, -2, 2, OP_COPIES)                                                                           \
    X(square, -3, 3, OP_SECOND)                                                                              \
    X(reciprocal, 0.2, 3, OP_SECOND)                                                                         \
    X(relu, -2, 2, OP_SECOND)                                                                                \
    X(leaky_relu, -2, 2, OP_SECOND)                                                                          \
    X(elu, -2, 2, OP_SECOND)                                                                                 \
    X(sigmoid, -9, 9, OP_SECOND)                                                                             \
    X(softplus, -9, 9, OP_SECOND)                                                                            \
    X(gelu, -4, 4, OP_SECOND)                                                                                \
    X(gelu_gradient, -4, 4, OP_SECOND)                                                                       \
    X(gelu_tanh, -4, 4, OP_SECOND)                                                                           \
    X(silu, -9, 9, OP_SECOND)                                                                                \
    X(mish, -5, 5, OP_SECOND)                                                                                \
    X(selu, -3, 3, OP_SECOND)                                                                                \
    X(relu6, -2, 9, OP_SECOND)                                                                               \
    X(hard_sigmoid, -4, 4, OP_SECOND)                                                                        \
    X(hard_silu, -4, 4, OP_SECOND)                                                                           \
    X(hard_tanh, -2, 2, OP_SECOND)                                                                           \
    X(softsign, -3, 3, OP_SECOND)                                                                            \
    X(identity, -2, 2, OP_SECOND | OP_COPIES)
#define OP_BINARY_CASES(X)                                                                                   \
    X(add, -2, 2, OP_SECOND)                                                                                 \
    X(subtract, -2, 2, OP_SECOND)                                                                            \
    X(multiply, -2, 2, OP_SECOND)                                                                            \
    X(divide, 0.3, 3, OP_SECOND)                                                                             \
    X(power, 0.3, 3, OP_SECOND)                                                                              \
    X(maximum, -2, 2, OP_SECOND)                                                                             \
    X(minimum, -2, 2, OP_SECOND)                                                                             \
    X(equal, -2, 2, OP_COPIES)                                                                               \
    X(not_equal, -2, 2, OP_COPIES)                                                                           \
    X(less, -2, 2, OP_COPIES)                                                                                \
    X(less_equal, -2, 2, OP_COPIES)                                                                          \
    X(greater, -2, 2, OP_COPIES)                                                                             \
    X(greater_equal, -2, 2, OP_COPIES)

#define OP_RECORD_UNARY(name, low, high, flags) OP_RECORD(name, sgm_##name(g, x[0]))
OP_UNARY_CASES(OP_RECORD_UNARY)
#define OP_RECORD_BINARY(name, low, high, flags) OP_RECORD(name, sgm_##name(g, x[0], x[1]))
OP_BINARY_CASES(OP_RECORD_BINARY)

OP_RECORD(logical_not, sgm_logical_not(g, x[0]))
OP_RECORD(logical_and, sgm_logical_and(g, x[0], x[1]))
OP_RECORD(logical_or, sgm_logical_or(g, x[0], x[1]))
OP_RECORD(select, sgm_select(g, x[0], x[1], x[2]))
OP_RECORD(clip, sgm_clip(g, x[0], -1, 1.5))
OP_RECORD(power_2, sgm_power(g, x[0], sgm_number(g, 2)))
OP_RECORD(power_3, sgm_power(g, sgm_number(g, 3), x[0]))
OP_RECORD(power_minus_1, sgm_power(g, x[0], sgm_number(g, -1.5)))
OP_RECORD(power_0, sgm_power(g, x[0], sgm_number(g, 0)))
OP_RECORD(cast_same, sgm_cast(g, sgm_cast(g, x[0], SGM_FLOAT64), dtype))
OP_RECORD(cast_int32, sgm_cast(g, x[0], SGM_INT32))
OP_RECORD(cast_int64, sgm_cast(g, x[0], SGM_INT64))
OP_RECORD(cast_uint8, sgm_cast(g, x[0], SGM_UINT8))
OP_RECORD(cast_bool, sgm_cast(g, x[0], SGM_BOOL))
OP_RECORD(cast_bfloat16, sgm_cast(g, x[0], SGM_BFLOAT16))
OP_RECORD(cast_float, sgm_cast(g, x[0], dtype))
/* long chains: one fused step, with a value used twice and one that is an output's operand */
OP_RECORD(chain, sgm_add(g, sgm_tanh(g, sgm_multiply(g, sgm_add(g, x[0], x[1]), x[1])),
                         sgm_maximum(g, sgm_add(g, x[0], x[1]), sgm_number(g, 0.1))))

OP_RECORD(sum_all, sgm_sum(g, x[0]))
OP_RECORD(sum_0, sgm_reduce_sum(g, x[0], OP_AXES(0), 1, false))
OP_RECORD(sum_1_keep, sgm_reduce_sum(g, x[0], OP_AXES(1), 1, true))
OP_RECORD(sum_0_2, sgm_reduce_sum(g, x[0], OP_AXES(0, -1), 2, false))
OP_RECORD(max_all, sgm_reduce_max(g, x[0], NULL, 0, false))
OP_RECORD(max_1, sgm_reduce_max(g, x[0], OP_AXES(1), 1, false))
OP_RECORD(max_0_2_keep, sgm_reduce_max(g, x[0], OP_AXES(0, 2), 2, true))
OP_RECORD(min_1, sgm_reduce_min(g, x[0], OP_AXES(1), 1, false))
OP_RECORD(min_0, sgm_reduce_min(g, x[0], OP_AXES(0), 1, true))
OP_RECORD(mean_1, sgm_reduce_mean(g, x[0], OP_AXES(1), 1, false))
OP_RECORD(variance_1, sgm_reduce_variance(g, x[0], OP_AXES(1), 1, false))
OP_RECORD(standard_deviation_0, sgm_reduce_standard_deviation(g, x[0], OP_AXES(0), 1, true))
OP_RECORD(arg_max_0, sgm_arg_max(g, x[0], 0))
OP_RECORD(arg_max_1, sgm_arg_max(g, x[0], -1))
OP_RECORD(arg_min_0, sgm_arg_min(g, x[0], 0))
OP_RECORD(arg_min_1, sgm_arg_min(g, x[0], 1))
OP_RECORD(accuracy, sgm_accuracy(g, x[0], x[1]))
OP_RECORD(cumulative_sum_0, sgm_cumulative_sum(g, x[0], 0, false))
OP_RECORD(cumulative_sum_1, sgm_cumulative_sum(g, x[0], 1, true))

OP_RECORD(reshape, sgm_reshape(g, x[0], OP_DIMS(3, -1)))
OP_RECORD(reshape_scalar, sgm_reshape(g, x[0], &(const sgm_shape){.rank = 0}))
OP_RECORD(flatten, sgm_flatten(g, x[0], 0))
OP_RECORD(permute, sgm_permute(g, x[0], OP_AXES(2, 0, 1)))
OP_RECORD(transpose, sgm_transpose(g, x[0]))
OP_RECORD(broadcast, sgm_broadcast(g, x[0], OP_DIMS(4, 2, 3)))
OP_RECORD(slice_0, sgm_slice(g, x[0], 0, 1, -1, 1))
OP_RECORD(slice_1, sgm_slice(g, x[0], 1, 1, INT64_MAX, 2))
OP_RECORD(slice_none, sgm_slice(g, x[0], 1, 2, 2, 3))
OP_RECORD(flip, sgm_flip(g, x[0], -1))
OP_RECORD(flip_0, sgm_flip(g, x[0], 0))
OP_RECORD(pad_0, sgm_pad(g, x[0], 0, 1, 2, 0))
OP_RECORD(pad_1, sgm_pad(g, x[0], 1, 2, 0, 3))
OP_RECORD(concatenate_0, sgm_concatenate(g, x, 3, 0))
OP_RECORD(concatenate_1, sgm_concatenate(g, x, 2, -1))
OP_RECORD(gather_0, sgm_gather(g, x[0], x[1], 0))
OP_RECORD(gather_1, sgm_gather(g, x[0], x[1], 1))
OP_RECORD(scatter_0, sgm_scatter_add(g, x[0], x[1], 0, 5))
OP_RECORD(scatter_1, sgm_scatter_add(g, x[0], x[1], 1, 4))
OP_RECORD(write_at_0, sgm_write_at(g, x[0], x[1], x[2], 0))
OP_RECORD(write_at_1, sgm_write_at(g, x[0], x[1], x[2], -2))
OP_RECORD(gather_along, sgm_gather_along(g, x[0], x[1], 1))
OP_RECORD(argsort_up, sgm_argsort(g, x[0], 0, false))
OP_RECORD(argsort_down, sgm_argsort(g, x[0], 1, true))
OP_RECORD(sort, sgm_sort(g, x[0], -1, false))
OP_RECORD(top_k, sgm_top_k(g, x[0], 1, 2))
OP_RECORD(top_k_indices, sgm_top_k_indices(g, x[0], 0, 2))
OP_RECORD(iota, sgm_iota(g, dtype, OP_DIMS(2, 5, 3), 1))
OP_RECORD(iota_int64, sgm_iota(g, SGM_INT64, OP_DIMS(7), 0))
OP_RECORD(iota_empty, sgm_iota(g, dtype, OP_DIMS(2, 0), 0))
OP_RECORD(one_hot, sgm_one_hot_values(g, x[0], 4, dtype))
OP_RECORD(one_hot_classes, sgm_one_hot_classes(g, x[0], 5, dtype))

OP_RECORD(matmul, sgm_matmul(g, x[0], x[1]))
OP_RECORD(matmul_transposed, sgm_matmul(g, sgm_transpose(g, x[0]), sgm_transpose(g, x[1])))
OP_RECORD(dense, sgm_relu(g, sgm_add(g, sgm_matmul(g, x[0], x[1]), x[2])))
OP_RECORD(products, sgm_matmul(g, sgm_matmul(g, sgm_transpose(g, x[0]), x[1]), sgm_transpose(g, x[1])))
OP_RECORD(dot, sgm_dot(g, x[0], x[1]))
OP_RECORD(inverse, sgm_inverse(g, op_regular(g, x[0])))
OP_RECORD(determinant, sgm_determinant(g, op_regular(g, x[0])))
OP_RECORD(solve, sgm_solve(g, op_regular(g, x[0]), x[1]))
/* attributes as in src/ops/window.h: size, stride, before, after, dilation, extent, groups, flag */
#define OP_WINDOW(...) (&(const sgm_attributes){.integer_count = 14, .integers = {__VA_ARGS__}})
#define OP_OF(name, count, ...) sgm_record(g, sgm_find_op(name), x, count, OP_WINDOW(__VA_ARGS__))
#define OP_NONE ((sgm_value){-1})
OP_RECORD(convolution, sgm_convolution(g, x[0], x[1], x[2], NULL))
OP_RECORD(convolution_strided, sgm_convolution(g, x[0], x[1], OP_NONE,
                                               SGM_WINDOW(.stride = {2, 3}, .before = {1}, .after = {2, 1})))
OP_RECORD(convolution_dilated,
          sgm_convolution(g, x[0], x[1], x[2],
                          SGM_WINDOW(.dilation = {2, 1}, .before = {2, 1}, .after = {2, 1}, .groups = 2)))
OP_RECORD(convolution_line, sgm_convolution(g, x[0], x[1], x[2], SGM_WINDOW(.stride = {2}, .before = {3})))
OP_RECORD(transposed, sgm_transposed_convolution(g, x[0], x[1], OP_NONE, NULL,
                                                 SGM_WINDOW(.stride = {2, 1}, .before = {1})))
OP_RECORD(transposed_groups, sgm_transposed_convolution(g, x[0], x[1], x[2], (const int64_t[]){1},
                                                        SGM_WINDOW(.stride = {3}, .after = {1}, .groups = 2)))
OP_RECORD(weights_gradient,
          OP_OF("convolution_weights_gradient", 2, 2, 3, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 1, 0))
OP_RECORD(weights_gradient_strided,
          OP_OF("convolution_weights_gradient", 2, 3, 2, 2, 2, 1, 1, 1, 1, 1, 2, 0, 0, 2, 0))
OP_RECORD(max_pooling, sgm_max_pooling(g, x[0], SGM_WINDOW(.size = {2, 2}, .stride = {2, 2})))
OP_RECORD(max_pooling_over, sgm_max_pooling(g, x[0],
                                            SGM_WINDOW(.size = {3, 2}, .stride = {2, 1}, .before = {1, 1},
                                                       .after = {2, 1}, .dilation = {1, 2})))
OP_RECORD(max_pooling_line, sgm_max_pooling(g, x[0], SGM_WINDOW(.size = {3}, .stride = {2})))
OP_RECORD(max_pick, OP_OF("max_pooling_pick", 2, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0))
OP_RECORD(max_pick_over, OP_OF("max_pooling_pick", 2, 3, 3, 1, 2, 1, 0, 1, 1, 1, 1, 0, 0, 1, 0))
OP_RECORD(max_gradient, OP_OF("max_pooling_gradient", 2, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0))
OP_RECORD(max_gradient_over, OP_OF("max_pooling_gradient", 2, 3, 3, 1, 2, 1, 0, 1, 1, 1, 1, 0, 0, 1, 0))
OP_RECORD(average_pooling, sgm_average_pooling(g, x[0], SGM_WINDOW(.size = {2, 2}, .stride = {2, 2})))
OP_RECORD(average_pooling_over,
          sgm_average_pooling(g, x[0],
                              SGM_WINDOW(.size = {3, 2}, .stride = {2, 1}, .before = {1, 1}, .after = {2, 1},
                                         .exclude_padding = true)))
OP_RECORD(average_pooling_line,
          sgm_average_pooling(g, x[0], SGM_WINDOW(.size = {3}, .stride = {2}, .before = {1}, .after = {1})))
OP_RECORD(average_gradient, OP_OF("average_pooling_gradient", 1, 2, 3, 2, 2, 0, 1, 0, 1, 1, 1, 5, 6, 1, 1))

OP_RECORD(random_uniform, sgm_random_uniform(g, x[0], x[1], 3, dtype, OP_DIMS(5, 7)))
OP_RECORD(random_normal, sgm_random_normal(g, x[0], x[1], 4, dtype, OP_DIMS(3, 33)))
OP_RECORD(softmax, sgm_softmax(g, x[0]))
OP_RECORD(log_softmax, sgm_log_softmax(g, x[0]))
OP_RECORD(cross_entropy_gradient, sgm_record(g, sgm_find_op("softmax_cross_entropy_gradient"), x, 3, NULL))
OP_RECORD(cross_entropy, sgm_softmax_cross_entropy_values(g, x[0], x[1]))
OP_RECORD(class_cross_entropy, sgm_class_cross_entropy(g, x[0], x[1]))
OP_RECORD(class_cross_entropy_gradient,
          sgm_record(g, sgm_find_op("class_cross_entropy_gradient"), x, 3, NULL))
OP_RECORD(layer_norm, sgm_layer_norm(g, x[0], 1e-3))
OP_RECORD(rms_norm, sgm_rms_norm(g, x[0], 1e-3))
#define OP_EPSILON (&(const sgm_attributes){.number_count = 1, .numbers = {1e-3}})
OP_RECORD(layer_norm_gradient, sgm_record(g, sgm_find_op("layer_norm_gradient"), x, 3, OP_EPSILON))
OP_RECORD(rms_norm_gradient, sgm_record(g, sgm_find_op("rms_norm_gradient"), x, 3, OP_EPSILON))
OP_RECORD(quantized_matmul, sgm_quantized_matmul(g, x[0], x[1], x[2]))
OP_RECORD(code_matmul, sgm_record(g, sgm_find_op("code_matmul"), x, 2, NULL))
OP_RECORD(code_matmul_transposed,
          sgm_record(g, sgm_find_op("code_matmul"), (sgm_value[]){x[0], sgm_transpose(g, x[1])}, 2, NULL))
OP_RECORD(dequantized_matmul, sgm_dequantized_matmul(g, x[0], x[1], x[2]))
OP_RECORD(attention, sgm_attention(g, x[0], x[1], x[2], false))
OP_RECORD(attention_causal, sgm_attention(g, x[0], x[1], x[2], true))
OP_RECORD(attention_at, sgm_attention_at(g, x[0], x[1], x[2], x[3]))
OP_RECORD(packed_attention, sgm_packed_attention(g, x[0], 2, x[1]))
OP_RECORD(packed_attention_gradient,
          sgm_record(g, sgm_find_op("packed_attention_gradient"), x, 3,
                     &(const sgm_attributes){.integer_count = 2, .integers = {2, 1}}))
OP_RECORD(self_attention, sgm_self_attention(g, x[0], 2, false))
OP_RECORD(self_attention_causal, sgm_self_attention(g, x[0], 1, true))
/* what its gradient is multiplied with comes from the second input */
OP_RECORD(self_attention_gradient,
          sgm_record(g, sgm_find_op("self_attention_gradient"), x, 2,
                     &(const sgm_attributes){.integer_count = 2, .integers = {3, 1}}))
OP_RECORD(ctc, sgm_ctc(g, x[0], x[1], x[2], 0, true))
/* the parts see what their inputs should be, logarithms of probabilities, and as states themselves */
#define OP_CTC(name, count, ...)                                                                             \
    sgm_record(g, sgm_find_op(name), (const sgm_value[]){x[0], x[1], x[2], __VA_ARGS__}, count,              \
               &(const sgm_attributes){.integer_count = 2, .integers = {0, 1}})
OP_RECORD(ctc_alphas, OP_CTC("ctc_alphas", 3, OP_NONE))
OP_RECORD(ctc_states, OP_CTC("ctc_states", 4, OP_CTC("ctc_alphas", 3, OP_NONE)))
OP_RECORD(ctc_classes, OP_CTC("ctc_classes", 4, OP_CTC("ctc_alphas", 3, OP_NONE)))

/* --- the cases --- */

#define OP_IN(kind, low, high, ...)                                                                          \
    {                                                                                                        \
        kind, OP_SHAPE(__VA_ARGS__), low, high                                                               \
    }
#define OP_IN_SCALAR(kind, low, high)                                                                        \
    {                                                                                                        \
        kind, OP_SCALAR, low, high                                                                           \
    }
#define OP_X(...) OP_IN(OP_FLOATS, -2, 2, __VA_ARGS__)
#define OP_NUMBERS(...) OP_IN(OP_WHOLE, -3, 3, __VA_ARGS__)

#define OP_UNARY_CASE(name, low, high, flags)                                                                \
    {#name, op_record_##name, 1, (flags) | OP_SHAPES, {OP_IN(OP_FLOATS, low, high, 300, 500)}, 0},
#define OP_BINARY_CASE(name, low, high, flags)                                                               \
    {#name,                                                                                                  \
     op_record_##name,                                                                                       \
     2,                                                                                                      \
     (flags) | OP_SHAPES,                                                                                    \
     {OP_IN(OP_FLOATS, low, high, 300, 500), OP_IN(OP_FLOATS, low, high, 300, 500)},                         \
     0},

/* One case a line, or two. */
/* clang-format off */
static const op_case op_cases[] = {
    OP_UNARY_CASES(OP_UNARY_CASE)
    OP_BINARY_CASES(OP_BINARY_CASE)
    {"equal", op_record_equal, 2, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_WHOLE, 0, 3, 300, 500), OP_IN(OP_WHOLE, 0, 3, 300, 500)}, 0},
    {"less_equal", op_record_less_equal, 2, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_INT64, 0, 3, 300, 500), OP_IN(OP_INT64, 0, 3, 300, 500)}, 0},
    {"greater_equal", op_record_greater_equal, 2, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_INT32, 0, 3, 300, 500), OP_IN(OP_INT32, 0, 3, 300, 500)}, 0},
    {"not_equal", op_record_not_equal, 2, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_UINT8, 0, 3, 300, 500), OP_IN(OP_UINT8, 0, 3, 300, 500)}, 0},
    {"add", op_record_add, 2, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_INT64, -9, 9, 300, 500), OP_IN(OP_INT64, -9, 9, 300, 500)}, 0},
    {"multiply", op_record_multiply, 2, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_INT32, -9, 9, 300, 500), OP_IN(OP_INT32, -9, 9, 300, 500)}, 0},
    {"maximum", op_record_maximum, 2, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_UINT8, 0, 9, 300, 500), OP_IN(OP_UINT8, 0, 9, 300, 500)}, 0},
    {"negate", op_record_negate, 1, OP_SHAPES | OP_COPIES, {OP_IN(OP_INT64, -9, 9, 300, 500)}, 0},
    {"copy", op_record_copy, 1, OP_SHAPES | OP_COPIES, {OP_IN(OP_UINT8, 0, 255, 300, 500)}, 0},
    {"logical_not", op_record_logical_not, 1, OP_SHAPES | OP_COPIES, {OP_IN(OP_BOOL, 0, 2, 300, 500)}, 0},
    {"logical_and", op_record_logical_and, 2, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_BOOL, 0, 2, 300, 500), OP_IN(OP_BOOL, 0, 2, 300, 500)}, 0},
    {"logical_or", op_record_logical_or, 2, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_BOOL, 0, 2, 300, 500), OP_IN(OP_BOOL, 0, 2, 300, 500)}, 0},
    {"select", op_record_select, 3, OP_SHAPES | OP_SECOND | OP_COPIES,
     {OP_IN(OP_BOOL, 0, 2, 300, 500), OP_X(300, 500), OP_X(300, 500)}, 0},
    {"select", op_record_select, 3, OP_SHAPES | OP_COPIES,
     {OP_IN(OP_BOOL, 0, 2, 300, 500), OP_IN(OP_INT64, -9, 9, 300, 500), OP_IN(OP_INT64, -9, 9, 300, 500)}, 0},
    {"clip", op_record_clip, 1, OP_SHAPES | OP_SECOND, {OP_X(300, 500)}, 0},
    {"power", op_record_power_2, 1, OP_SHAPES | OP_SECOND, {OP_X(300, 500)}, 0},
    {"power", op_record_power_3, 1, OP_SHAPES | OP_SECOND, {OP_X(300, 500)}, 0},
    {"power", op_record_power_minus_1, 1, OP_SHAPES | OP_SECOND, {OP_IN(OP_FLOATS, 0.3, 3, 300, 500)}, 0},
    {"power", op_record_power_0, 1, OP_SHAPES | OP_SECOND, {OP_X(300, 500)}, 0},
    {"cast", op_record_cast_same, 1, OP_SHAPES | OP_SECOND, {OP_X(300, 500)}, 0},
    {"cast", op_record_cast_int32, 1, OP_SHAPES | OP_COPIES, {OP_IN(OP_FLOATS, -5, 5, 300, 500)}, 0},
    {"cast", op_record_cast_int64, 1, OP_SHAPES | OP_COPIES, {OP_IN(OP_BOOL, 0, 2, 300, 500)}, 0},
    {"cast", op_record_cast_uint8, 1, OP_SHAPES | OP_COPIES, {OP_IN(OP_INT32, -9, 400, 300, 500)}, 0},
    {"cast", op_record_cast_bool, 1, OP_SHAPES | OP_COPIES, {OP_IN(OP_WHOLE, -1, 2, 300, 500)}, 0},
    {"cast", op_record_cast_bfloat16, 1, OP_SHAPES | OP_COPIES, {OP_IN(OP_FLOATS, -9, 9, 300, 500)}, 0},
    {"cast", op_record_cast_float, 1, OP_SHAPES | OP_COPIES, {OP_IN(OP_INT64, -9, 9, 300, 500)}, 0},
    {"chain", op_record_chain, 2, OP_SHAPES | OP_SECOND, {OP_X(300, 500), OP_X(300, 500)}, 0},

    {"reduce_sum", op_record_sum_all, 1, OP_SECOND, {OP_X(2, 3, 4)}, 0},
    {"reduce_sum", op_record_sum_all, 1, OP_SECOND, {OP_IN_SCALAR(OP_FLOATS, -2, 2)}, 0},
    {"reduce_sum", op_record_sum_0, 1, OP_SECOND, {OP_X(5, 37)}, 0},
    {"reduce_sum", op_record_sum_0, 1, OP_SECOND, {OP_X(0, 3)}, 0},
    {"reduce_sum", op_record_sum_1_keep, 1, OP_SECOND, {OP_X(3, 37)}, 0},
    {"reduce_sum", op_record_sum_0_2, 1, OP_SECOND, {OP_X(2, 3, 4)}, 0},
    {"reduce_sum", op_record_sum_0_2, 1, OP_COPIES, {OP_IN(OP_INT64, -9, 9, 2, 3, 4)}, 0},
    {"reduce_max", op_record_max_all, 1, OP_SECOND, {OP_X(3, 4)}, 0},
    {"reduce_max", op_record_max_1, 1, OP_SECOND, {OP_X(3, 37)}, 0},
    {"reduce_max", op_record_max_1, 1, OP_SECOND, {OP_X(0, 3)}, 0},
    {"reduce_max", op_record_max_0_2_keep, 1, OP_SECOND, {OP_X(2, 3, 4)}, 0},
    {"reduce_max", op_record_max_1, 1, OP_COPIES, {OP_IN(OP_INT64, -99, 99, 4, 5)}, 0},
    {"reduce_min", op_record_min_1, 1, OP_SECOND, {OP_X(3, 37)}, 0},
    {"reduce_min", op_record_min_0, 1, OP_SECOND, {OP_X(4, 3)}, 0},
    {"reduce_mean", op_record_mean_1, 1, OP_SECOND, {OP_X(3, 5)}, 0},
    {"reduce_variance", op_record_variance_1, 1, OP_SECOND, {OP_X(3, 5)}, 0},
    {"reduce_standard_deviation", op_record_standard_deviation_0, 1, OP_SECOND, {OP_X(5, 3)}, 0},
    {"arg_max", op_record_arg_max_0, 1, OP_COPIES, {OP_NUMBERS(9, 4)}, 0},
    {"arg_max", op_record_arg_max_1, 1, OP_COPIES, {OP_NUMBERS(3, 37)}, 0},
    {"arg_max", op_record_arg_max_1, 1, OP_COPIES, {OP_NUMBERS(0, 4)}, 0},
    {"arg_min", op_record_arg_min_0, 1, OP_COPIES, {OP_NUMBERS(9)}, 0},
    {"arg_min", op_record_arg_min_1, 1, OP_COPIES, {OP_IN(OP_INT32, -3, 3, 3, 9, 2)}, 0},
    {"accuracy", op_record_accuracy, 2, OP_COPIES, {OP_NUMBERS(9, 4), OP_NUMBERS(9, 4)}, 0},
    {"accuracy", op_record_accuracy, 2, OP_COPIES, {OP_NUMBERS(2, 7, 3), OP_IN(OP_WHOLE, 0, 3, 2, 7)}, 0},
    {"accuracy", op_record_accuracy, 2, OP_COPIES, {OP_NUMBERS(2, 7, 3), OP_IN(OP_INT64, 0, 3, 2, 7)}, 0},
    {"cumulative_sum", op_record_cumulative_sum_0, 1, OP_SECOND, {OP_X(5, 3)}, 0},
    {"cumulative_sum", op_record_cumulative_sum_1, 1, OP_SECOND, {OP_X(2, 5, 3)}, 0},
    {"cumulative_sum", op_record_cumulative_sum_1, 1, OP_SECOND, {OP_X(2, 0)}, 0},
    {"cumulative_sum", op_record_cumulative_sum_1, 1, OP_COPIES, {OP_IN(OP_INT64, -9, 9, 2, 5)}, 0},

    {"reshape", op_record_reshape, 1, OP_SECOND | OP_COPIES, {OP_X(2, 6)}, 0},
    {"reshape", op_record_reshape, 1, OP_SECOND | OP_COPIES, {OP_X(0, 2)}, 0},
    {"reshape", op_record_reshape, 1, OP_COPIES, {OP_IN(OP_INT64, -9, 9, 2, 3, 2)}, 0},
    {"reshape", op_record_reshape_scalar, 1, OP_SECOND | OP_COPIES, {OP_X(1, 1)}, 0},
    {"flatten", op_record_flatten, 1, OP_SECOND | OP_COPIES, {OP_X(2, 3, 2)}, 0},
    {"permute", op_record_permute, 1, OP_SECOND | OP_COPIES, {OP_X(2, 3, 4)}, 0},
    {"permute", op_record_permute, 1, OP_COPIES, {OP_IN(OP_UINT8, 0, 255, 2, 0, 4)}, 0},
    {"transpose", op_record_transpose, 1, OP_SECOND | OP_COPIES, {OP_X(2, 3, 4)}, 0},
    {"broadcast", op_record_broadcast, 1, OP_SECOND | OP_COPIES, {OP_X(2, 1)}, 0},
    {"broadcast", op_record_broadcast, 1, OP_SECOND | OP_COPIES, {OP_IN_SCALAR(OP_FLOATS, -2, 2)}, 0},
    {"slice", op_record_slice_0, 1, OP_SECOND | OP_COPIES, {OP_X(5, 3)}, 0},
    {"slice", op_record_slice_1, 1, OP_SECOND | OP_COPIES, {OP_X(2, 6)}, 0},
    {"slice", op_record_slice_none, 1, OP_SECOND | OP_COPIES, {OP_X(2, 6)}, 0},
    {"flip", op_record_flip, 1, OP_SECOND | OP_COPIES, {OP_X(2, 5)}, 0},
    {"flip", op_record_flip_0, 1, OP_SECOND | OP_COPIES, {OP_X(0, 5)}, 0},
    {"pad", op_record_pad_0, 1, OP_SECOND | OP_COPIES, {OP_X(2, 3)}, 0},
    {"pad", op_record_pad_1, 1, OP_SECOND | OP_COPIES, {OP_X(2, 4, 2)}, 0},
    {"pad", op_record_pad_1, 1, OP_SECOND | OP_COPIES, {OP_X(2, 0)}, 0},
    {"pad", op_record_pad_1, 1, OP_COPIES, {OP_IN(OP_BOOL, 0, 2, 2, 1)}, 0},
    {"concatenate", op_record_concatenate_0, 3, OP_SECOND | OP_COPIES,
     {OP_X(2, 3), OP_X(0, 3), OP_X(1, 3)}, 0},
    {"concatenate", op_record_concatenate_1, 2, OP_SECOND | OP_COPIES, {OP_X(2, 3), OP_X(2, 1)}, 0},
    {"concatenate", op_record_concatenate_1, 2, OP_COPIES,
     {OP_IN(OP_INT64, -9, 9, 2, 3), OP_IN(OP_INT64, -9, 9, 2, 1)}, 0},
    {"gather", op_record_gather_0, 2, OP_SECOND | OP_COPIES, {OP_X(4, 3), OP_IN(OP_INT64, 0, 4, 5)}, 0},
    {"gather", op_record_gather_0, 2, OP_SECOND | OP_COPIES, {OP_X(4), OP_IN_SCALAR(OP_INT64, 0, 4)}, 0},
    {"gather", op_record_gather_1, 2, OP_SECOND | OP_COPIES, {OP_X(2, 4, 3), OP_IN(OP_INT32, 0, 4, 2, 3)}, 0},
    {"gather", op_record_gather_0, 2, OP_SECOND | OP_COPIES, {OP_X(4, 3), OP_IN(OP_INT64, 0, 4, 0)}, 0},
    {"scatter_add", op_record_scatter_0, 2, OP_SECOND, {OP_X(7, 3), OP_IN(OP_INT64, 0, 5, 7)}, 0},
    {"scatter_add", op_record_scatter_1, 2, OP_SECOND, {OP_X(2, 2, 3, 2), OP_IN(OP_INT32, 0, 4, 2, 3)}, 0},
    {"scatter_add", op_record_scatter_0, 2, OP_SECOND, {OP_X(0, 3), OP_IN(OP_INT64, 0, 5, 0)}, 0},
    {"write_at", op_record_write_at_0, 3, OP_SECOND | OP_COPIES,
     {OP_X(4, 3), OP_X(1, 3), OP_IN_SCALAR(OP_INT64, 0, 4)}, 0},
    {"write_at", op_record_write_at_0, 3, OP_SECOND | OP_COPIES,
     {OP_X(5), OP_X(5), OP_IN_SCALAR(OP_INT32, 0, 1)}, 0},
    {"write_at", op_record_write_at_1, 3, OP_SECOND | OP_COPIES,
     {OP_X(2, 5, 3), OP_X(2, 2, 3), OP_IN_SCALAR(OP_INT32, 0, 4)}, 0},
    {"write_at", op_record_write_at_1, 3, OP_COPIES,
     {OP_IN(OP_BOOL, 0, 2, 3, 5, 2), OP_IN(OP_BOOL, 0, 2, 3, 3, 2), OP_IN_SCALAR(OP_INT64, 0, 3)}, 0},
    {"write_at", op_record_write_at_1, 3, OP_COPIES,
     {OP_IN(OP_INT64, -9, 9, 0, 4, 2), OP_IN(OP_INT64, -9, 9, 0, 1, 2), OP_IN_SCALAR(OP_INT64, 0, 4)}, 0},
    {"gather_along", op_record_gather_along, 2, OP_SECOND | OP_COPIES,
     {OP_X(3, 4), OP_IN(OP_INT64, 0, 4, 3, 6)}, 0},
    {"gather_along", op_record_gather_along, 2, OP_SECOND | OP_COPIES,
     {OP_X(2, 4, 3), OP_IN(OP_INT32, 0, 4, 2, 2, 3)}, 0},
    {"argsort", op_record_argsort_up, 1, OP_COPIES, {OP_NUMBERS(70, 2)}, 0},
    {"argsort", op_record_argsort_down, 1, OP_COPIES, {OP_NUMBERS(2, 50)}, 0},
    {"argsort", op_record_argsort_down, 1, OP_COPIES, {OP_IN(OP_INT64, -3, 3, 2, 0, 3)}, 0},
    {"sort", op_record_sort, 1, OP_SECOND | OP_COPIES, {OP_X(3, 9)}, 0},
    {"top_k", op_record_top_k, 1, OP_SECOND | OP_COPIES, {OP_X(3, 9)}, 0},
    {"top_k_indices", op_record_top_k_indices, 1, OP_COPIES, {OP_NUMBERS(9)}, 0},
    {"iota", op_record_iota, 0, OP_COPIES, {OP_X(1)}, 0},
    {"iota", op_record_iota_int64, 0, OP_COPIES, {OP_X(1)}, 0},
    {"iota", op_record_iota_empty, 0, OP_COPIES, {OP_X(1)}, 0},
    {"one_hot", op_record_one_hot_classes, 1, OP_COPIES, {OP_IN(OP_INT64, 0, 5, 3, 2)}, 0},
    {"one_hot", op_record_one_hot_classes, 1, OP_COPIES, {OP_IN(OP_INT32, 0, 5, 70)}, 0},
    {"one_hot_values", op_record_one_hot, 1, OP_COPIES, {OP_IN(OP_INT64, 0, 5, 3, 2)}, 0},

    {"matmul", op_record_matmul, 2, OP_SECOND, {OP_X(3, 4), OP_X(4, 2)}, 0},
    {"matmul", op_record_matmul, 2, OP_SECOND, {OP_X(1, 7), OP_X(7, 1)}, 0},
    {"matmul", op_record_matmul, 2, OP_SECOND, {OP_X(2, 3, 4), OP_X(2, 4, 2)}, 0},
    {"matmul", op_record_matmul, 2, OP_SECOND, {OP_X(2, 1, 2, 3), OP_X(3, 3, 2)}, 0},
    {"matmul", op_record_matmul, 2, OP_SECOND, {OP_X(3, 4), OP_X(2, 4, 3)}, 0},
    {"matmul", op_record_matmul, 2, OP_SECOND, {OP_X(3, 0), OP_X(0, 2)}, 0},
    {"matmul", op_record_matmul, 2, OP_SECOND, {OP_X(0, 4), OP_X(4, 2)}, 0},
    {"matmul", op_record_matmul_transposed, 2, OP_SECOND, {OP_X(4, 3), OP_X(2, 4)}, 0},
    {"matmul", op_record_dense, 3, OP_SECOND, {OP_X(5, 33), OP_X(33, 17), OP_X(17)}, 4},
    {"quantized_matmul", op_record_quantized_matmul, 3, OP_CODES,
     {OP_X(2, 3, 7), OP_IN(OP_UINT8, 1, 256, 7, 5), OP_IN(OP_FLOATS, 0.01, 0.02, 5)}, 8},
    {"code_matmul", op_record_code_matmul, 2, OP_SECOND, {OP_X(3, 7), OP_IN(OP_UINT8, 1, 256, 7, 5)}, 8},
    {"code_matmul", op_record_code_matmul_transposed, 2, OP_SECOND,
     {OP_X(3, 7), OP_IN(OP_UINT8, 1, 256, 5, 7)}, 8},
    {"code_matmul", op_record_dequantized_matmul, 3, OP_SECOND,
     {OP_X(2, 3, 7), OP_IN(OP_UINT8, 1, 256, 7, 5), OP_IN(OP_FLOATS, 0.01, 0.02, 5)}, 8},
    {"dot", op_record_dot, 2, OP_SECOND, {OP_X(9), OP_X(9)}, 0},
    {"convolution", op_record_convolution, 3, OP_SECOND, {OP_X(2, 2, 4, 5), OP_X(3, 2, 3, 2), OP_X(3)}, 8},
    {"convolution", op_record_convolution, 3, OP_SECOND, {OP_X(1, 1, 4, 4), OP_X(2, 1, 4, 4), OP_X(2)}, 8},
    {"convolution", op_record_convolution, 3, OP_SECOND, {OP_X(0, 1, 4, 4), OP_X(2, 1, 2, 2), OP_X(2)}, 8},
    {"convolution", op_record_convolution, 3, 0, {OP_X(3, 5, 13, 11), OP_X(35, 5, 3, 3), OP_X(35)}, 40},
    {"convolution", op_record_convolution, 3, 0, {OP_X(2, 33, 9, 20), OP_X(17, 33, 2, 5), OP_X(17)}, 60},
    {"convolution", op_record_convolution, 3, 0, {OP_X(1, 2, 40, 41), OP_X(3, 2, 3, 3), OP_X(3)}, 8},
    {"convolution", op_record_convolution_strided, 2, OP_SECOND, {OP_X(2, 2, 4, 5), OP_X(2, 2, 3, 2)}, 8},
    {"convolution", op_record_convolution_strided, 2, 0, {OP_X(2, 4, 24, 25), OP_X(20, 4, 3, 2)}, 20},
    {"convolution", op_record_convolution_dilated, 3, OP_SECOND,
     {OP_X(1, 4, 3, 3), OP_X(2, 2, 2, 2), OP_X(2)}, 8},
    {"convolution", op_record_convolution_dilated, 3, 0,
     {OP_X(3, 4, 16, 19), OP_X(34, 2, 3, 3), OP_X(34)}, 20},
    {"convolution", op_record_convolution_line, 3, OP_SECOND, {OP_X(2, 3, 7), OP_X(2, 3, 4), OP_X(2)}, 8},
    {"convolution", op_record_convolution_line, 3, 0, {OP_X(2, 3, 70), OP_X(2, 3, 4), OP_X(2)}, 8},
    {"convolution_input_gradient", op_record_transposed, 2, OP_SECOND,
     {OP_X(2, 2, 3, 2), OP_X(2, 2, 3, 2)}, 8},
    {"convolution_input_gradient", op_record_transposed, 2, 0, {OP_X(3, 40, 12, 9), OP_X(40, 17, 3, 3)}, 80},
    {"convolution_input_gradient", op_record_transposed_groups, 3, OP_SECOND,
     {OP_X(2, 4, 3), OP_X(4, 1, 2), OP_X(2)}, 8},
    {"convolution_input_gradient", op_record_transposed_groups, 3, 0,
     {OP_X(2, 6, 30), OP_X(6, 5, 7), OP_X(10)}, 20},
    {"convolution_weights_gradient", op_record_weights_gradient, 2, OP_SECOND,
     {OP_X(2, 2, 3, 4), OP_X(2, 3, 2, 4)}, 8},
    {"convolution_weights_gradient", op_record_weights_gradient, 2, 0,
     {OP_X(5, 9, 13, 14), OP_X(5, 35, 12, 14)}, 200},
    {"convolution_weights_gradient", op_record_weights_gradient_strided, 2, OP_SECOND,
     {OP_X(1, 4, 5, 4), OP_X(1, 2, 3, 2)}, 8},
    {"convolution_weights_gradient", op_record_weights_gradient_strided, 2, 0,
     {OP_X(3, 4, 21, 20), OP_X(3, 6, 11, 10)}, 80},
    {"max_pooling", op_record_max_pooling, 1, OP_SECOND | OP_COPIES, {OP_X(2, 1, 4, 5)}, 0},
    {"max_pooling", op_record_max_pooling, 1, OP_COPIES, {OP_NUMBERS(2, 3, 9, 83)}, 0},
    {"max_pooling", op_record_max_pooling, 1, OP_COPIES, {OP_X(3, 5, 24, 24)}, 0},
    {"max_pooling", op_record_max_pooling_over, 1, OP_SECOND | OP_COPIES, {OP_X(1, 2, 4, 5)}, 0},
    {"max_pooling", op_record_max_pooling_over, 1, OP_COPIES, {OP_NUMBERS(2, 3, 12, 40)}, 0},
    {"max_pooling", op_record_max_pooling_line, 1, OP_SECOND | OP_COPIES, {OP_X(2, 2, 7)}, 0},
    {"max_pooling_pick", op_record_max_pick, 2, OP_SECOND | OP_COPIES,
     {OP_X(1, 2, 4, 5), OP_X(1, 2, 4, 5)}, 0},
    {"max_pooling_pick", op_record_max_pick_over, 2, OP_SECOND | OP_COPIES,
     {OP_X(1, 1, 4, 5), OP_X(1, 1, 4, 5)}, 0},
    {"max_pooling_gradient", op_record_max_gradient, 2, OP_SECOND | OP_COPIES,
     {OP_X(1, 2, 4, 5), OP_X(1, 2, 2, 2)}, 0},
    {"max_pooling_gradient", op_record_max_gradient, 2, OP_COPIES,
     {OP_NUMBERS(2, 3, 9, 83), OP_X(2, 3, 4, 41)}, 0},
    {"max_pooling_gradient", op_record_max_gradient, 2, OP_COPIES,
     {OP_NUMBERS(2, 3, 24, 24), OP_X(2, 3, 12, 12)}, 0},
    {"max_pooling_gradient", op_record_max_gradient_over, 2, OP_SECOND,
     {OP_X(1, 1, 4, 5), OP_X(1, 1, 4, 2)}, 0},
    {"max_pooling_gradient", op_record_max_gradient_over, 2, 0,
     {OP_NUMBERS(2, 3, 9, 33), OP_X(2, 3, 9, 16)}, 4},
    {"average_pooling", op_record_average_pooling, 1, OP_SECOND, {OP_X(2, 1, 4, 5)}, 0},
    {"average_pooling", op_record_average_pooling, 1, 0, {OP_X(3, 3, 9, 83)}, 2},
    {"average_pooling", op_record_average_pooling_over, 1, OP_SECOND, {OP_X(1, 2, 4, 5)}, 0},
    {"average_pooling", op_record_average_pooling_line, 1, OP_SECOND, {OP_X(2, 2, 7)}, 0},
    {"average_pooling_gradient", op_record_average_gradient, 1, OP_SECOND, {OP_X(2, 2, 2, 3)}, 0},
    {"average_pooling_gradient", op_record_average_gradient, 1, 0, {OP_X(7, 9, 2, 3)}, 0},

    {"inverse", op_record_inverse, 1, OP_SECOND, {OP_IN(OP_FLOATS, -1, 1, 3, 3)}, 20},
    {"inverse", op_record_inverse, 1, OP_SECOND, {OP_IN(OP_FLOATS, -1, 1, 2, 2, 2)}, 20},
    {"inverse", op_record_inverse, 1, OP_SECOND, {OP_IN(OP_FLOATS, -1, 1, 0, 2, 2)}, 20},
    {"determinant", op_record_determinant, 1, OP_SECOND, {OP_IN(OP_FLOATS, -1, 1, 3, 3)}, 20},
    {"determinant", op_record_determinant, 1, OP_SECOND, {OP_IN(OP_FLOATS, -1, 1, 2, 4, 4)}, 20},
    {"solve", op_record_solve, 2, OP_SECOND, {OP_IN(OP_FLOATS, -1, 1, 3, 3), OP_X(3, 2)}, 20},
    {"solve", op_record_solve, 2, OP_SECOND, {OP_IN(OP_FLOATS, -1, 1, 3, 3), OP_X(3)}, 20},
    {"random_uniform", op_record_random_uniform, 2, OP_COPIES,
     {OP_IN_SCALAR(OP_INT64, 0, 99), OP_IN_SCALAR(OP_INT64, 0, 99)}, 0},
    {"random_normal", op_record_random_normal, 2, 0,
     {OP_IN_SCALAR(OP_INT64, 0, 99), OP_IN_SCALAR(OP_INT64, 0, 99)}, 10},
    {"softmax", op_record_softmax, 1, OP_SECOND, {OP_X(3, 5)}, 0},
    {"softmax", op_record_softmax, 1, OP_SECOND, {OP_IN(OP_FLOATS, -20, 20, 2, 2, 33)}, 0},
    {"softmax", op_record_softmax, 1, OP_SECOND, {OP_X(0, 5)}, 0},
    {"log_softmax", op_record_log_softmax, 1, OP_SECOND, {OP_X(3, 5)}, 0},
    {"log_softmax", op_record_log_softmax, 1, OP_SECOND, {OP_X(1)}, 0},
    {"softmax_cross_entropy", op_record_cross_entropy, 2, OP_SECOND,
     {OP_X(3, 5), OP_IN(OP_FLOATS, 0, 1, 3, 5)}, 0},
    {"softmax_cross_entropy", op_record_cross_entropy, 2, OP_SECOND, {OP_X(5), OP_IN(OP_FLOATS, 0, 1, 5)}, 0},
    {"softmax_cross_entropy", op_record_cross_entropy, 2, OP_SECOND,
     {OP_X(0, 5), OP_IN(OP_FLOATS, 0, 1, 0, 5)}, 0},
    {"softmax_cross_entropy_gradient", op_record_cross_entropy_gradient, 3, OP_SECOND,
     {OP_X(3, 5), OP_IN(OP_FLOATS, 0, 1, 3, 5), OP_X(3)}, 0},
    {"softmax_cross_entropy_gradient", op_record_cross_entropy_gradient, 3, 0,
     {OP_X(131, 97), OP_IN(OP_FLOATS, 0, 1, 131, 97), OP_X(131)}, 4},
    {"class_cross_entropy", op_record_class_cross_entropy, 2, OP_SECOND,
     {OP_X(3, 5), OP_IN(OP_INT64, 0, 5, 3)}, 0},
    {"class_cross_entropy", op_record_class_cross_entropy, 2, OP_SECOND,
     {OP_X(2, 3, 20), OP_IN(OP_INT32, 0, 20, 2, 3)}, 0},
    {"class_cross_entropy", op_record_class_cross_entropy, 2, OP_SECOND,
     {OP_X(5), OP_IN_SCALAR(OP_INT64, 0, 5)}, 0},
    {"class_cross_entropy", op_record_class_cross_entropy, 2, OP_SECOND,
     {OP_X(0, 5), OP_IN(OP_INT64, 0, 5, 0)}, 0},
    {"class_cross_entropy_gradient", op_record_class_cross_entropy_gradient, 3, OP_SECOND,
     {OP_X(3, 5), OP_IN(OP_INT64, 0, 5, 3), OP_X(3)}, 0},
    {"class_cross_entropy_gradient", op_record_class_cross_entropy_gradient, 3, 0,
     {OP_X(131, 97), OP_IN(OP_INT32, 0, 97, 131), OP_X(131)}, 4},

    {"layer_norm", op_record_layer_norm, 1, OP_SECOND, {OP_X(3, 7)}, 0},
    {"layer_norm", op_record_layer_norm, 1, OP_SECOND, {OP_X(2, 0, 5)}, 0},
    {"rms_norm", op_record_rms_norm, 1, OP_SECOND, {OP_X(2, 3, 5)}, 0},
    {"layer_norm_gradient", op_record_layer_norm_gradient, 3, OP_SECOND, {OP_X(2, 5), OP_X(2, 5), OP_X(2, 5)}, 0},
    {"rms_norm_gradient", op_record_rms_norm_gradient, 3, OP_SECOND, {OP_X(2, 5), OP_X(2, 5), OP_X(2, 5)}, 0},
    {"attention", op_record_attention, 3, OP_SECOND, {OP_X(2, 3, 4), OP_X(2, 5, 4), OP_X(2, 5, 2)}, 0},
    {"attention", op_record_attention_causal, 3, OP_SECOND, {OP_X(3, 2), OP_X(3, 2), OP_X(3, 5)}, 0},
    {"attention_at", op_record_attention_at, 4, OP_SECOND,
     {OP_X(2, 3, 4), OP_X(2, 5, 4), OP_X(2, 5, 2), OP_IN_SCALAR(OP_INT64, 0, 5)}, 0},
    {"attention_at", op_record_attention_at, 4, OP_SECOND,
     {OP_X(1, 3), OP_X(1, 3), OP_X(1, 1), OP_IN_SCALAR(OP_INT32, 0, 1)}, 0},
    {"attention_at", op_record_attention_at, 4, OP_SECOND,
     {OP_X(0, 1, 3), OP_X(0, 4, 3), OP_X(0, 4, 2), OP_IN_SCALAR(OP_INT64, 0, 4)}, 0},
    {"attention_at", op_record_attention_at, 4, OP_SECOND,
     {OP_X(2, 3, 4), OP_X(2, 5, 4), OP_X(2, 5, 2), OP_IN(OP_INT32, 0, 5, 3)}, 0},
    {"self_attention", op_record_self_attention, 1, OP_SECOND, {OP_X(2, 3, 12)}, 0},
    {"self_attention", op_record_self_attention_causal, 1, OP_SECOND, {OP_X(4, 6)}, 0},
    {"self_attention", op_record_self_attention_causal, 1, OP_SECOND, {OP_X(0, 2, 6)}, 0},
    {"self_attention_gradient", op_record_self_attention_gradient, 2, OP_SECOND, {OP_X(2, 3, 9), OP_X(2, 3, 3)}, 0},
    {"ctc", op_record_ctc, 3, OP_FIRST,
     {OP_X(4, 6, 5), OP_IN(OP_INT64, 0, 5, 4, 3), OP_IN(OP_INT64, 1, 7, 4)}, 0},
    {"ctc", op_record_ctc, 3, OP_FIRST,
     {OP_X(3, 5, 3), OP_IN(OP_INT64, 1, 3, 3, 3), OP_IN(OP_INT64, 0, 6, 3)}, 0},
    {"ctc", op_record_ctc, 3, 0, {OP_X(7, 80, 30), OP_IN(OP_INT64, 1, 30, 7, 20), OP_IN(OP_INT64, 50, 81, 7)}, 4},
    {"ctc_alphas", op_record_ctc_alphas, 3, 0,
     {OP_IN(OP_FLOATS, -9, 0, 3, 6, 5), OP_IN(OP_INT64, 0, 5, 3, 3), OP_IN(OP_INT64, 0, 7, 3)}, 0},
    {"ctc_states", op_record_ctc_states, 3, 0,
     {OP_IN(OP_FLOATS, -9, 0, 3, 6, 5), OP_IN(OP_INT64, 0, 5, 3, 3), OP_IN(OP_INT64, 0, 7, 3)}, 0},
    {"ctc_classes", op_record_ctc_classes, 3, 0,
     {OP_IN(OP_FLOATS, -9, 0, 3, 6, 5), OP_IN(OP_INT64, 1, 5, 3, 2), OP_IN(OP_INT64, 5, 7, 3)}, 0},

    /* long ones, for handlers that work tile by tile and in threads */
    {"layer_norm", op_record_layer_norm, 1, 0, {OP_X(70, 131)}, 4},
    {"rms_norm", op_record_rms_norm, 1, 0, {OP_X(3, 70, 131)}, 4},
    {"layer_norm_gradient", op_record_layer_norm_gradient, 3, 0, {OP_X(70, 131), OP_X(70, 131), OP_X(70, 131)}, 4},
    {"rms_norm_gradient", op_record_rms_norm_gradient, 3, 0, {OP_X(9, 37), OP_X(9, 37), OP_X(9, 37)}, 4},
    {"attention_at", op_record_attention_at, 4, 0,
     {OP_X(7, 1, 64), OP_X(7, 150, 64), OP_X(7, 150, 64), OP_IN_SCALAR(OP_INT64, 149, 150)}, 4},
    {"attention_at", op_record_attention_at, 4, 0,
     {OP_X(2, 3, 3, 83), OP_X(2, 3, 131, 83), OP_X(2, 3, 131, 35), OP_IN_SCALAR(OP_INT64, 100, 131)}, 4},
    {"attention_at", op_record_attention_at, 4, 0,
     {OP_X(3, 70, 64), OP_X(3, 150, 64), OP_X(3, 150, 64), OP_IN(OP_INT64, 0, 150, 70)}, 4},
    {"write_at", op_record_write_at_1, 3, OP_COPIES,
     {OP_X(3, 70, 97), OP_X(3, 31, 97), OP_IN_SCALAR(OP_INT64, 0, 40)}, 0},
    {"packed_attention", op_record_packed_attention, 2, OP_SECOND,
     {OP_X(2, 5, 12), OP_IN(OP_INT64, 0, 4, 2, 5)}, 4},
    {"packed_attention", op_record_packed_attention, 2, 0, {OP_X(2, 150, 12), OP_IN(OP_INT64, 0, 4, 2, 150)}, 4},
    {"packed_attention_gradient", op_record_packed_attention_gradient, 3, 0,
     {OP_X(2, 5, 12), OP_IN(OP_INT64, 0, 4, 2, 5), OP_X(2, 5, 4)}, 20},
    {"self_attention", op_record_self_attention, 1, 0, {OP_X(3, 70, 66)}, 4},
    {"self_attention", op_record_self_attention_causal, 1, 0, {OP_X(2, 150, 99)}, 4},
    {"self_attention_gradient", op_record_self_attention_gradient, 2, 0, {OP_X(2, 150, 99), OP_X(2, 150, 33)}, 20},
    {"quantized_matmul", op_record_quantized_matmul, 3, OP_CODES,
     {OP_X(70, 131), OP_IN(OP_UINT8, 1, 256, 131, 67), OP_IN(OP_FLOATS, 0.01, 0.02, 67)}, 20},
    {"code_matmul", op_record_code_matmul, 2, 0, {OP_X(70, 131), OP_IN(OP_UINT8, 124, 133, 131, 67)}, 40},
    {"code_matmul", op_record_code_matmul_transposed, 2, 0,
     {OP_X(70, 131), OP_IN(OP_UINT8, 124, 133, 67, 131)}, 40},
    {"code_matmul", op_record_code_matmul, 2, 0, {OP_X(1, 700), OP_IN(OP_UINT8, 124, 133, 700, 900)}, 120},
    {"matmul", op_record_matmul, 2, 0, {OP_X(70, 131), OP_X(131, 67)}, 20},
    {"matmul", op_record_matmul, 2, 0, {OP_X(1, 700), OP_X(700, 300)}, 60},
    {"matmul", op_record_matmul, 2, 0, {OP_X(5, 33, 40), OP_X(5, 40, 33)}, 20},
    {"matmul", op_record_products, 2, 0, {OP_X(67, 70), OP_X(67, 97)}, 400},
    {"matmul", op_record_dense, 3, 0, {OP_X(64, 150), OP_X(150, 65), OP_X(65)}, 40},
    {"reduce_sum", op_record_sum_all, 1, 0, {OP_X(131, 97)}, 20},
    {"reduce_sum", op_record_sum_0, 1, 0, {OP_X(300, 35)}, 20},
    {"reduce_sum", op_record_sum_1_keep, 1, 0, {OP_X(17, 500)}, 20},
    {"reduce_sum", op_record_sum_0_2, 1, 0, {OP_X(9, 30, 11)}, 20},
    {"reduce_max", op_record_max_1, 1, OP_COPIES, {OP_X(17, 500)}, 0},
    {"reduce_max", op_record_max_0_2_keep, 1, OP_COPIES, {OP_X(9, 30, 11)}, 0},
    {"reduce_variance", op_record_variance_1, 1, 0, {OP_X(17, 500)}, 20},
    {"arg_max", op_record_arg_max_1, 1, OP_COPIES, {OP_X(17, 500)}, 0},
    {"accuracy", op_record_accuracy, 2, OP_COPIES, {OP_NUMBERS(700, 33), OP_NUMBERS(700, 33)}, 0},
    {"cumulative_sum", op_record_cumulative_sum_1, 1, 0, {OP_X(7, 1000)}, 60},
    {"softmax", op_record_softmax, 1, 0, {OP_IN(OP_FLOATS, -20, 20, 131, 97)}, 4},
    {"log_softmax", op_record_log_softmax, 1, 0, {OP_IN(OP_FLOATS, -20, 20, 131, 97)}, 4},
    {"softmax_cross_entropy", op_record_cross_entropy, 2, 0,
     {OP_X(131, 97), OP_IN(OP_FLOATS, 0, 1, 131, 97)}, 40},
    {"class_cross_entropy", op_record_class_cross_entropy, 2, 0,
     {OP_X(131, 97), OP_IN(OP_INT64, 0, 97, 131)}, 40},
    {"gather", op_record_gather_0, 2, OP_COPIES, {OP_X(300, 64), OP_IN(OP_INT64, 0, 300, 200)}, 0},
    {"scatter_add", op_record_scatter_0, 2, 0, {OP_X(300, 64), OP_IN(OP_INT64, 0, 5, 300)}, 40},
    {"transpose", op_record_transpose, 1, OP_COPIES, {OP_X(131, 97)}, 0},
    {"argsort", op_record_argsort_down, 1, OP_COPIES, {OP_X(2, 1500)}, 0},
};
/* clang-format on */
#define OP_CASES_COUNT ((int32_t)(sizeof op_cases / sizeof *op_cases))

#endif
