/* What the files of src/onnx/ml share: build functions of operators of the domain ai.onnx.ml. Internal. */
#ifndef SGM_ONNX_ML_ML_H
#define SGM_ONNX_ML_ML_H

#include "onnx/nodes/onnx.h"

/* The first input as (examples, features) of float64 or float32. */
sgm_value sgm__onnx_ml_features(sgm__onnx_node *n);
/* An attribute that is a list of floats, in this type; no value: there is none, or it is empty. */
sgm_value sgm__onnx_ml_floats(sgm__onnx_node *n, const char *name, sgm_dtype dtype, size_t *count);
/* Scores as the attribute post_transform says. */
sgm_value sgm__onnx_ml_transformed(sgm__onnx_node *n, sgm_value scores);
/* How many classes a classifier has: texts, or else numbers in the attribute `name`. */
int64_t sgm__onnx_ml_class_count(const sgm__onnx_node *n, const char *name);
/* The class with the largest score of each example: the place of its text, or where classes have none, its
 * number in the attribute `name`. */
sgm_value sgm__onnx_ml_classes(sgm__onnx_node *n, const char *name, sgm_value scores);

#endif
