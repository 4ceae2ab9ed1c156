/* The operators of ONNX that are read or written, and what declares their functions.
 *
 * One table serves both directions: operators.c makes the rows of it, this header the prototypes of the
 * functions that the rows name. sgm__onnx_NAME, in one of the files build_*.c, records a node; it makes the
 * graph fail, or returns no value, where the node is wrong or not supported. sgm__onnx_write_NAME, in
 * write.c, writes an operation; it returns the failures that concern the operation, a lack of memory is in
 * e->status. docs/onnx.md lists the names in the same order. */
#ifndef SGM_ONNX_NODES_OPERATORS_H
#define SGM_ONNX_NODES_OPERATORS_H

/* In alphabetical order of ONNX's names, then those of the domain ai.onnx.ml, then the operations that are
 * written as several nodes, and last second rows of a name: reading finds the first one, writing finds the
 * row of the operation, so stop_gradient is written as Identity but Identity is read as a copy.
 *
 *     READ(name, inputs that must be present, build)
 *     RECORDED(name, operation): read as that operation of one input, written as what it is composed of
 *     BOTH(name, inputs that must be present, build, operation, write)
 *     WRITTEN(operation, write)
 *
 * `same` as build function records the operation with the needed inputs and no attributes. */
#define SGM__ONNX_OPERATORS(READ, RECORDED, BOTH, WRITTEN)                                                   \
    BOTH("Abs", 1, same, absolute, same)                                                                     \
    BOTH("Acos", 1, same, acos, same)                                                                        \
    READ("Acosh", 1, acosh)                                                                                  \
    BOTH("Add", 2, same, add, same)                                                                          \
    BOTH("And", 2, same, logical_and, same)                                                                  \
    BOTH("ArgMax", 1, arg_max, arg_max, place)                                                               \
    BOTH("ArgMin", 1, arg_min, arg_min, place)                                                               \
    BOTH("Asin", 1, same, asin, same)                                                                        \
    READ("Asinh", 1, asinh)                                                                                  \
    BOTH("Atan", 1, same, atan, same)                                                                        \
    READ("Atanh", 1, atanh)                                                                                  \
    READ("Attention", 3, attention)                                                                          \
    BOTH("AveragePool", 1, average_pool, average_pooling, average_pool)                                      \
    READ("BatchNormalization", 5, batch_normalisation)                                                       \
    READ("BitCast", 1, bit_cast)                                                                             \
    READ("BitShift", 2, bit_shift)                                                                           \
    READ("BitwiseAnd", 2, bitwise_and)                                                                       \
    READ("BitwiseNot", 1, bitwise_not)                                                                       \
    READ("BitwiseOr", 2, bitwise_or)                                                                         \
    READ("BitwiseXor", 2, bitwise_xor)                                                                       \
    BOTH("Cast", 1, cast, cast, cast)                                                                        \
    READ("CastLike", 2, cast_like_other)                                                                     \
    READ("Ceil", 1, ceil)                                                                                    \
    READ("Celu", 1, celu)                                                                                    \
    READ("CenterCropPad", 2, center_crop_pad)                                                                \
    READ("Clip", 1, clip)                                                                                    \
    READ("Compress", 2, compress)                                                                            \
    BOTH("Concat", 1, concat, concatenate, along)                                                            \
    READ("ConcatFromSequence", 1, concat_from_sequence)                                                      \
    READ("Constant", 0, constant_node)                                                                       \
    READ("ConstantOfShape", 1, constant_of_shape)                                                            \
    BOTH("Conv", 2, conv, convolution, convolution)                                                          \
    READ("ConvInteger", 2, conv_integer)                                                                     \
    BOTH("ConvTranspose", 2, conv_transpose, convolution_input_gradient, transposed)                         \
    BOTH("Cos", 1, same, cos, same)                                                                          \
    READ("Cosh", 1, cosh)                                                                                    \
    READ("CumProd", 2, cumulative_product)                                                                   \
    BOTH("CumSum", 2, cumulative_sum, cumulative_sum, cumulative_sum)                                        \
    READ("DepthToSpace", 1, depth_to_space)                                                                  \
    READ("DequantizeLinear", 2, dequantise)                                                                  \
    BOTH("Det", 1, determinant, determinant, same)                                                           \
    BOTH("Div", 2, divide, divide, same)                                                                     \
    READ("Dropout", 1, dropout)                                                                              \
    READ("DynamicQuantizeLinear", 1, dynamic_quantise)                                                       \
    READ("Einsum", 1, einsum)                                                                                \
    READ("Elu", 1, elu)                                                                                      \
    BOTH("Equal", 2, same, equal, same)                                                                      \
    BOTH("Erf", 1, same, erf, same)                                                                          \
    BOTH("Exp", 1, same, exp, same)                                                                          \
    READ("Expand", 2, expand)                                                                                \
    READ("EyeLike", 1, eye_like)                                                                             \
    READ("Flatten", 1, flatten)                                                                              \
    BOTH("Floor", 1, same, floor, same)                                                                      \
    READ("GRU", 3, gru)                                                                                      \
    BOTH("Gather", 2, gather, gather, along)                                                                 \
    READ("GatherElements", 2, gather_elements)                                                               \
    READ("GatherND", 2, gather_nd)                                                                           \
    READ("Gelu", 1, gelu)                                                                                    \
    READ("Gemm", 2, gemm)                                                                                    \
    READ("GlobalAveragePool", 1, global_average_pool)                                                        \
    READ("GlobalMaxPool", 1, global_max_pool)                                                                \
    BOTH("Greater", 2, same, greater, same)                                                                  \
    BOTH("GreaterOrEqual", 2, same, greater_equal, same)                                                     \
    READ("GridSample", 2, grid_sample)                                                                       \
    READ("GroupNormalization", 3, group_normalisation)                                                       \
    READ("HardSigmoid", 1, hard_sigmoid)                                                                     \
    RECORDED("HardSwish", hard_silu)                                                                         \
    READ("Hardmax", 1, hardmax)                                                                              \
    BOTH("Identity", 1, same, copy, same)                                                                    \
    READ("If", 1, if_else)                                                                                   \
    READ("InstanceNormalization", 3, instance_normalisation)                                                 \
    READ("IsInf", 1, is_inf)                                                                                 \
    BOTH("IsNaN", 1, same, is_nan, same)                                                                     \
    READ("LRN", 1, lrn)                                                                                      \
    READ("LSTM", 3, lstm)                                                                                    \
    BOTH("LayerNormalization", 2, layer_normalisation, layer_norm, layer_norm)                               \
    READ("LeakyRelu", 1, leaky_relu)                                                                         \
    BOTH("Less", 2, same, less, same)                                                                        \
    BOTH("LessOrEqual", 2, same, less_equal, same)                                                           \
    BOTH("Log", 1, same, log, same)                                                                          \
    BOTH("LogSoftmax", 1, log_softmax, log_softmax, last_axis)                                               \
    READ("Loop", 0, loop)                                                                                    \
    READ("LpNormalization", 1, lp_normalisation)                                                             \
    READ("LpPool", 1, lp_pool)                                                                               \
    BOTH("MatMul", 2, matmul, matmul, matmul)                                                                \
    READ("MatMulInteger", 2, matmul_integer)                                                                 \
    BOTH("Max", 1, variadic_max, maximum, same)                                                              \
    BOTH("MaxPool", 1, max_pool, max_pooling, max_pool)                                                      \
    READ("Mean", 1, variadic_mean)                                                                           \
    READ("MeanVarianceNormalization", 1, mean_variance_normalisation)                                        \
    BOTH("Min", 1, variadic_min, minimum, same)                                                              \
    RECORDED("Mish", mish)                                                                                   \
    BOTH("Mod", 2, mod, onnx_modulo, modulo)                                                                 \
    BOTH("Mul", 2, same, multiply, same)                                                                     \
    BOTH("Neg", 1, same, negate, same)                                                                       \
    READ("NegativeLogLikelihoodLoss", 2, negative_log_likelihood)                                            \
    READ("NonMaxSuppression", 2, non_max_suppression)                                                        \
    READ("NonZero", 1, non_zero)                                                                             \
    BOTH("Not", 1, same, logical_not, same)                                                                  \
    BOTH("OneHot", 3, one_hot, one_hot, one_hot)                                                             \
    BOTH("Or", 2, same, logical_or, same)                                                                    \
    READ("PRelu", 2, prelu)                                                                                  \
    BOTH("Pad", 1, pad, pad, pad)                                                                            \
    BOTH("Pow", 2, power, power, same)                                                                       \
    READ("QLinearConv", 8, qlinear_conv)                                                                     \
    READ("QLinearMatMul", 8, qlinear_matmul)                                                                 \
    READ("QuantizeLinear", 2, quantise)                                                                      \
    READ("RMSNormalization", 2, rms_normalisation)                                                           \
    READ("RNN", 3, rnn)                                                                                      \
    READ("Range", 3, range)                                                                                  \
    BOTH("Reciprocal", 1, same, reciprocal, same)                                                            \
    READ("ReduceL1", 1, reduce_l1)                                                                           \
    READ("ReduceL2", 1, reduce_l2)                                                                           \
    READ("ReduceLogSum", 1, reduce_log_sum)                                                                  \
    READ("ReduceLogSumExp", 1, reduce_log_sum_exp)                                                           \
    BOTH("ReduceMax", 1, reduce_max, reduce_max, reduce)                                                     \
    READ("ReduceMean", 1, reduce_mean)                                                                       \
    BOTH("ReduceMin", 1, reduce_min, reduce_min, reduce)                                                     \
    READ("ReduceProd", 1, reduce_product)                                                                    \
    BOTH("ReduceSum", 1, reduce_sum, reduce_sum, reduce_sum)                                                 \
    READ("ReduceSumSquare", 1, reduce_sum_square)                                                            \
    BOTH("Relu", 1, same, relu, same)                                                                        \
    BOTH("Reshape", 1, reshape, reshape, reshape)                                                            \
    READ("Resize", 1, resize)                                                                                \
    READ("ReverseSequence", 2, reverse_sequence)                                                             \
    READ("RotaryEmbedding", 3, rotary_embedding)                                                             \
    READ("Round", 1, round)                                                                                  \
    READ("Scan", 1, scan)                                                                                    \
    READ("Scatter", 3, scatter_elements)                                                                     \
    READ("ScatterElements", 3, scatter_elements)                                                             \
    READ("ScatterND", 3, scatter_nd)                                                                         \
    READ("Selu", 1, selu)                                                                                    \
    READ("SequenceAt", 2, sequence_at)                                                                       \
    READ("SequenceConstruct", 1, sequence_construct)                                                         \
    READ("SequenceEmpty", 0, sequence_empty)                                                                 \
    READ("SequenceErase", 1, sequence_erase)                                                                 \
    READ("SequenceInsert", 2, sequence_insert)                                                               \
    READ("SequenceLength", 1, sequence_length)                                                               \
    READ("SequenceMap", 1, sequence_map)                                                                     \
    READ("Shape", 1, shape)                                                                                  \
    READ("Shrink", 1, shrink)                                                                                \
    BOTH("Sigmoid", 1, same, sigmoid, same)                                                                  \
    BOTH("Sign", 1, same, sign, same)                                                                        \
    BOTH("Sin", 1, same, sin, same)                                                                          \
    READ("Sinh", 1, sinh)                                                                                    \
    READ("Size", 1, size)                                                                                    \
    BOTH("Slice", 1, slice, slice, slice)                                                                    \
    BOTH("Softmax", 1, softmax, softmax, last_axis)                                                          \
    READ("SoftmaxCrossEntropyLoss", 2, softmax_cross_entropy)                                                \
    BOTH("Softplus", 1, same, softplus, same)                                                                \
    BOTH("Softsign", 1, same, softsign, same)                                                                \
    READ("SpaceToDepth", 1, space_to_depth)                                                                  \
    READ("Split", 1, split)                                                                                  \
    READ("SplitToSequence", 1, split_to_sequence)                                                            \
    BOTH("Sqrt", 1, same, square_root, same)                                                                 \
    READ("Squeeze", 1, squeeze)                                                                              \
    BOTH("Sub", 2, same, subtract, same)                                                                     \
    READ("Sum", 1, variadic_sum)                                                                             \
    READ("SwiGLU", 2, swish_gate)                                                                            \
    READ("Swish", 1, swish)                                                                                  \
    BOTH("Tan", 1, same, tan, same)                                                                          \
    BOTH("Tanh", 1, same, tanh, same)                                                                        \
    READ("ThresholdedRelu", 1, thresholded_relu)                                                             \
    READ("Tile", 2, tile)                                                                                    \
    BOTH("TopK", 1, top_k, argsort, argsort)                                                                 \
    BOTH("Transpose", 1, transpose, permute, permute)                                                        \
    READ("Trilu", 1, trilu)                                                                                  \
    READ("Unsqueeze", 1, unsqueeze)                                                                          \
    READ("Upsample", 1, upsample)                                                                            \
    BOTH("Where", 3, same, select, same)                                                                     \
    READ("Xor", 2, xor)                                                                                      \
    READ("ai.onnx.ml.ArrayFeatureExtractor", 2, ml_array_feature_extractor)                                  \
    READ("ai.onnx.ml.Binarizer", 1, ml_binarizer)                                                            \
    READ("ai.onnx.ml.FeatureVectorizer", 1, ml_feature_vectorizer)                                           \
    READ("ai.onnx.ml.Imputer", 1, ml_imputer)                                                                \
    READ("ai.onnx.ml.LinearClassifier", 1, ml_linear_classifier)                                             \
    READ("ai.onnx.ml.LinearRegressor", 1, ml_linear_regressor)                                               \
    READ("ai.onnx.ml.Normalizer", 1, ml_normalizer)                                                          \
    READ("ai.onnx.ml.SVMClassifier", 1, ml_svm_classifier)                                                   \
    READ("ai.onnx.ml.SVMRegressor", 1, ml_svm_regressor)                                                     \
    READ("ai.onnx.ml.Scaler", 1, ml_scaler)                                                                  \
    READ("ai.onnx.ml.TreeEnsembleClassifier", 1, ml_tree_ensemble_classifier)                                \
    READ("ai.onnx.ml.TreeEnsembleRegressor", 1, ml_tree_ensemble_regressor)                                  \
    READ("ai.onnx.ml.ZipMap", 1, ml_zip_map)                                                                 \
    WRITTEN(flip, flip)                                                                                      \
    WRITTEN(gelu, gelu)                                                                                      \
    WRITTEN(iota, iota)                                                                                      \
    WRITTEN(is_finite, is_finite)                                                                            \
    WRITTEN(log1p, log1p)                                                                                    \
    WRITTEN(not_equal, not_equal)                                                                            \
    WRITTEN(quantized_matmul, quantized_matmul)                                                              \
    BOTH("Identity", 1, same, stop_gradient, same)                                                           \
    BOTH("Div", 2, divide, onnx_divide, same)                                                                \
    BOTH("Pow", 2, power, onnx_power, same)

#define SGM__ONNX_DECLARE_READ(name, needed, build) sgm_value sgm__onnx_##build(sgm__onnx_node *n);
#define SGM__ONNX_DECLARE_WRITTEN(op, write)                                                                 \
    sgm_status sgm__onnx_write_##write(sgm__onnx_export *e, sgm_value value);
#define SGM__ONNX_DECLARE_BOTH(name, needed, build, op, write)                                               \
    SGM__ONNX_DECLARE_READ(name, needed, build) SGM__ONNX_DECLARE_WRITTEN(op, write)
#define SGM__ONNX_DECLARE_RECORDED(name, op)
SGM__ONNX_OPERATORS(SGM__ONNX_DECLARE_READ, SGM__ONNX_DECLARE_RECORDED, SGM__ONNX_DECLARE_BOTH,
                    SGM__ONNX_DECLARE_WRITTEN)
#undef SGM__ONNX_DECLARE_RECORDED
#undef SGM__ONNX_DECLARE_BOTH
#undef SGM__ONNX_DECLARE_WRITTEN
#undef SGM__ONNX_DECLARE_READ

#endif
