/* Build functions of ai.onnx.ml's operators on features: scaling, normalising, linear models.
 *
 * They are what scikit-learn's pipelines become (skl2onnx). Data is (examples, features); results are float,
 * but those of float64 where the operator keeps that. Called by import.c through the table in operators.c. */
#include "onnx/ml/ml.h"

#include <math.h>

/* --- attributes --- */

sgm_value sgm__onnx_ml_floats(sgm__onnx_node *n, const char *name, sgm_dtype dtype, size_t *count)
{
    const Onnx__AttributeProto *attribute = sgm__onnx_attribute(n, name);
    *count = attribute != NULL ? attribute->n_floats : 0;
    if (*count == 0)
        return (sgm_value){-1};
    sgm_value list = sgm__onnx_constant(
        n->graph, sgm_tensor_create_from(SGM_FLOAT32, SGM__ONNX_SHAPE((int64_t)*count), attribute->floats));
    return sgm_cast(n->graph, list, dtype);
}

/* --- features --- */

/* Numbers of any type as floats: float64 stays, the others become float32. */
sgm_value sgm__onnx_ml_features(sgm__onnx_node *n)
{
    sgm_value x = n->inputs[0];
    sgm_shape shape = sgm__onnx_type(n, x).shape;
    if (shape.rank == 1)
        x = sgm_reshape(n->graph, x, SGM__ONNX_SHAPE(1, shape.dims[0]));
    else if (shape.rank != 2)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "data of examples and features is needed");
    return sgm__onnx_type(n, x).dtype == SGM_FLOAT64 ? x : sgm_cast(n->graph, x, SGM_FLOAT32);
}

static sgm_dtype type_of(const sgm__onnx_node *n, sgm_value value)
{
    return sgm__onnx_type(n, value).dtype;
}

/* (x - offset) * scale */
sgm_value sgm__onnx_ml_scaler(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    size_t count;
    sgm_value x = sgm__onnx_ml_features(n);
    sgm_value offset = sgm__onnx_ml_floats(n, "offset", type_of(n, x), &count);
    if (sgm_value_exists(offset))
        x = sgm_subtract(g, x, offset);
    sgm_value scale = sgm__onnx_ml_floats(n, "scale", type_of(n, x), &count);
    return sgm_value_exists(scale) ? sgm_multiply(g, x, scale) : sgm_copy(g, x);
}

/* Each example divided by its largest feature, the sum of all, or their length; by no less than 1e-30. */
sgm_value sgm__onnx_ml_normalizer(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = sgm__onnx_ml_features(n), size;
    const int32_t axis = 1;
    if (sgm__onnx_text_is(n, "norm", "MAX", "MAX"))
        size = sgm_reduce_max(g, sgm_absolute(g, x), &axis, 1, true);
    else if (sgm__onnx_text_is(n, "norm", "MAX", "L1"))
        size = sgm_reduce_sum(g, sgm_absolute(g, x), &axis, 1, true);
    else if (sgm__onnx_text_is(n, "norm", "MAX", "L2"))
        size = sgm_square_root(g, sgm_reduce_sum(g, sgm_square(g, x), &axis, 1, true));
    else
        return sgm__onnx_unsupported(n, "'norm' is none of MAX, L1 and L2");
    return sgm_divide(g, x, sgm_maximum(g, size, sgm_number(g, 1e-30)));
}

/* 1 above the threshold, else 0. */
sgm_value sgm__onnx_ml_binarizer(sgm__onnx_node *n)
{
    sgm_value threshold = sgm_number(n->graph, sgm__onnx_number(n, "threshold", 0));
    return sgm__onnx_cast_like(n->graph, sgm_greater(n->graph, n->inputs[0], threshold), n->inputs[0]);
}

/* Entries of the last axis. */
sgm_value sgm__onnx_ml_array_feature_extractor(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], places = sgm_reshape(g, n->inputs[1], SGM__ONNX_SHAPE(-1));
    int32_t rank = sgm__onnx_type(n, x).shape.rank;
    sgm_value y = sgm_gather(g, x, places, rank - 1);
    return rank == 1 ? sgm_reshape(g, y, SGM__ONNX_SHAPE(1, -1)) : y;
}

/* Numbers that are missing, NaN or another one, become those of the attribute: one for all features, or one
 * for each. */
sgm_value sgm__onnx_ml_imputer(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    size_t count;
    sgm_value x = sgm__onnx_ml_features(n);
    double replaced = sgm__onnx_number(n, "replaced_value_float", 0);
    sgm_value numbers = sgm__onnx_ml_floats(n, "imputed_value_floats", type_of(n, x), &count);
    if (!sgm_value_exists(numbers))
        return sgm__onnx_unsupported(n, "'imputed_value_floats' is missing");
    sgm_value missing = isnan(replaced) ? sgm_is_nan(g, x) : sgm_equal(g, x, sgm_number(g, replaced));
    return sgm_select(g, missing, numbers, x);
}

/* All features of all inputs. */
sgm_value sgm__onnx_ml_feature_vectorizer(sgm__onnx_node *n)
{
    sgm_value *inputs = sgm__alloc((size_t)n->input_count * sizeof *inputs);
    if (inputs == NULL)
        return sgm__onnx_fail(n->graph);
    sgm__onnx_attribute(n, "inputdimensions"); /* the inputs have them themselves */
    for (int32_t i = 0; i < n->input_count; i++)
        inputs[i] = sgm_cast(n->graph, n->inputs[i], SGM_FLOAT32);
    sgm_value y = sgm_concatenate(n->graph, inputs, n->input_count, 1);
    sgm__free(inputs);
    return y;
}

/* ONNX makes a map of each example's probabilities, from the classes that the attribute lists; here it stays
 * the matrix, whose columns are these classes. */
sgm_value sgm__onnx_ml_zip_map(sgm__onnx_node *n)
{
    sgm__onnx_attribute(n, "classlabels_int64s");
    sgm__onnx_attribute(n, "classlabels_strings");
    return sgm_copy(n->graph, n->inputs[0]);
}

/* --- what becomes of scores --- */

sgm_value sgm__onnx_ml_transformed(sgm__onnx_node *n, sgm_value scores)
{
    if (sgm__onnx_text_is(n, "post_transform", "NONE", "NONE"))
        return scores;
    if (sgm__onnx_text_is(n, "post_transform", "NONE", "LOGISTIC"))
        return sgm_sigmoid(n->graph, scores);
    if (sgm__onnx_text_is(n, "post_transform", "NONE", "SOFTMAX"))
        return sgm_softmax(n->graph, scores);
    return sgm__onnx_unsupported(n, "'post_transform' is none of NONE, LOGISTIC and SOFTMAX");
}

/* Texts count where a file has both, as in ONNX Runtime. */
static bool has_texts(const sgm__onnx_node *n)
{
    const Onnx__AttributeProto *texts = sgm__onnx_attribute(n, "classlabels_strings");
    return texts != NULL && texts->n_strings > 0;
}

int64_t sgm__onnx_ml_class_count(const sgm__onnx_node *n, const char *name)
{
    const Onnx__AttributeProto *numbers = sgm__onnx_attribute(n, name);
    if (has_texts(n))
        return (int64_t)sgm__onnx_attribute(n, "classlabels_strings")->n_strings;
    return numbers != NULL ? (int64_t)numbers->n_ints : 0;
}

sgm_value sgm__onnx_ml_classes(sgm__onnx_node *n, const char *name, sgm_value scores)
{
    sgm_graph *g = n->graph;
    sgm_shape shape = sgm__onnx_type(n, scores).shape;
    int64_t count = sgm__onnx_ml_class_count(n, name);
    if (count < 1 || count != shape.dims[1])
        return sgm__onnx_unsupported(n, "it has %lld classes ('%s' or 'classlabels_strings') for %lld scores",
                                     (long long)count, name, (long long)shape.dims[1]);
    if (has_texts(n))
        return sgm_arg_max(g, scores, 1);
    const int64_t *numbers = sgm__onnx_attribute(n, name)->ints;
    sgm_value table =
        sgm__onnx_constant(g, sgm_tensor_create_from(SGM_INT64, SGM__ONNX_SHAPE(count), numbers));
    return sgm_gather(g, table, sgm_arg_max(g, scores, 1), 0);
}

/* --- linear models --- */

/* x times the coefficients, one row of them for each of `rows` scores, plus the intercepts. */
static sgm_value linear(sgm__onnx_node *n, int64_t rows)
{
    sgm_graph *g = n->graph;
    size_t count, intercept_count;
    sgm_value x = sgm__onnx_ml_features(n);
    sgm_value weights = sgm__onnx_ml_floats(n, "coefficients", type_of(n, x), &count);
    sgm_value intercepts = sgm__onnx_ml_floats(n, "intercepts", type_of(n, x), &intercept_count);
    if (g->status != SGM_OK)
        return (sgm_value){-1};
    int64_t features = sgm__onnx_type(n, x).shape.dims[1];
    rows = rows > 0 ? rows : features > 0 ? (int64_t)count / features : 0;
    if (rows < 1 || (int64_t)count / rows != features || (int64_t)count % rows != 0)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "%zu coefficients for %lld features", count,
                              (long long)features);
    sgm_value y =
        sgm_matmul(g, x, sgm_transpose(g, sgm_reshape(g, weights, SGM__ONNX_SHAPE(rows, features))));
    return sgm_value_exists(intercepts) ? sgm_add(g, y, intercepts) : y;
}

SGM__ONNX_BUILD(ml_linear_regressor, n,
                sgm__onnx_ml_transformed(n, linear(n, sgm__onnx_integer(n, "targets", 1))))

/* One row of coefficients for two classes is the score of the second; the first has its negative. */
sgm_value sgm__onnx_ml_linear_classifier(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value scores = linear(n, 0);
    if (g->status != SGM_OK)
        return (sgm_value){-1};
    sgm__onnx_integer(n, "multi_class", 0); /* as the reference, which does not look at it */
    if (sgm__onnx_type(n, scores).shape.dims[1] == 1)
        scores = sgm_concatenate(g, (const sgm_value[]){sgm_negate(g, scores), scores}, 2, 1);
    scores = sgm__onnx_ml_transformed(n, scores);
    n->outputs[1] = scores;
    return sgm__onnx_ml_classes(n, "classlabels_ints", scores);
}
