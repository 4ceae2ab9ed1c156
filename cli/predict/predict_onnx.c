/* ONNX models for `sigma predict`: what they take and give, and how they are run.
 *
 * A model is described as a network is (sgm__signature), so that files are read and predictions printed by
 * the same functions. Its predictions are its first output of floats, as a classifier of scikit-learn gives
 * its probabilities behind the classes; the first output if there is none. An output of classes that have
 * texts as names gives each prediction its class. */
#include "predict/predict.h"
#include "tensor/tensor_internal.h"

/* The first dimension counts the examples; the others must be known. */
sgm_status predict_onnx_open(prediction *p, const char *path)
{
    sgm_type type;
    p->onnx = sgm_onnx_load(path, .quantize = p->int8 ? "int8" : NULL);
    if (p->onnx == NULL)
        return sgm__last_failure();
    p->signature = (sgm__signature){.blank = -1};
    while (sgm_onnx_input_at(p->onnx, p->signature.inputs, NULL) != NULL)
        p->signature.inputs++;
    if (p->signature.inputs != 1)
        return SGM_OK;
    sgm_onnx_input_at(p->onnx, 0, &type);
    if (type.shape.rank < 1)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "'%s': its input has no dimension of examples", path);
    p->signature.example = sgm_shape_create(type.shape.rank - 1, type.shape.dims + 1);
    char text[128];
    if (sgm_shape_elements(&p->signature.example) < 0)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s': an example of its input has the open shape %s (-1: any); a file of arrays, FILE.npz, "
            "cannot say which: fix the shape when the model is exported",
            path, sgm_shape_text(&p->signature.example, text, sizeof text));
    return SGM_OK;
}

const char *predict_onnx_class(const prediction *p, int64_t example)
{
    if (p->onnx_classes == NULL || example >= sgm_shape_elements(sgm_tensor_shape(p->onnx_classes)))
        return NULL;
    int64_t number = ((const int64_t *)sgm_tensor_const_data(p->onnx_classes))[example];
    return number >= 0 ? sgm_onnx_class_at(p->onnx, (size_t)number) : NULL;
}

/* Keeps the classes of the newest run, where an output tells them. */
static void keep_classes(prediction *p)
{
    sgm_tensor_free(p->onnx_classes);
    p->onnx_classes = NULL;
    for (size_t i = 0; sgm_onnx_output_at(p->onnx, i) != NULL && p->onnx_classes == NULL; i++)
        if (sgm_onnx_output_is_class(p->onnx, i))
            p->onnx_classes = sgm_onnx_get(p->onnx, sgm_onnx_output_at(p->onnx, i));
    if (p->onnx_classes != NULL && sgm_tensor_dtype(p->onnx_classes) != SGM_INT64) { /* declared wrongly */
        sgm_tensor_free(p->onnx_classes);
        p->onnx_classes = NULL;
    }
}

/* Runs the model with what is set. */
static sgm_tensor *run(prediction *p)
{
    sgm_tensor *first = NULL;
    if (sgm_onnx_run(p->onnx) != SGM_OK)
        return NULL;
    keep_classes(p);
    for (size_t i = 0; sgm_onnx_output_at(p->onnx, i) != NULL; i++) {
        sgm_tensor *output = sgm_onnx_get(p->onnx, sgm_onnx_output_at(p->onnx, i));
        if (output != NULL && sgm_dtype_is_float(sgm_tensor_dtype(output))) {
            sgm_tensor_free(first);
            return output;
        }
        if (first == NULL)
            first = output;
        else
            sgm_tensor_free(output);
    }
    return first;
}

/* A prediction for each of `count` examples; takes the outputs. */
static sgm_tensor *checked(sgm_tensor *outputs, int64_t count)
{
    char text[128];
    if (outputs == NULL ||
        (sgm_tensor_shape(outputs)->rank > 0 && sgm_tensor_shape(outputs)->dims[0] == count && count > 0))
        return outputs;
    sgm_fail(SGM_ERROR_SHAPE, "the model gives %s, not a prediction for each of %lld examples",
             sgm_shape_text(sgm_tensor_shape(outputs), text, sizeof text), (long long)count);
    sgm_tensor_free(outputs);
    return NULL;
}

sgm_tensor *predict_onnx(prediction *p, const sgm_tensor *examples)
{
    sgm_type type;
    const char *name = sgm_onnx_input_at(p->onnx, 0, &type);
    sgm_tensor *cast = sgm_tensor_cast(examples, type.dtype);
    sgm_status status = cast != NULL ? sgm_onnx_set(p->onnx, name, cast) : sgm__last_failure();
    sgm_tensor_free(cast);
    return status == SGM_OK ? checked(run(p), sgm_tensor_shape(examples)->dims[0]) : NULL;
}

sgm_tensor *predict_onnx_archive(prediction *p, const char *path)
{
    sgm_bundle *bundle = sgm_bundle_load(path);
    sgm_status status = bundle != NULL ? SGM_OK : sgm__last_failure();
    sgm_type type;
    const char *name;
    int64_t count = 0;
    for (size_t i = 0; status == SGM_OK && (name = sgm_onnx_input_at(p->onnx, i, &type)) != NULL; i++) {
        sgm_tensor *given = sgm_bundle_get(bundle, name);
        sgm_tensor *cast = given != NULL ? sgm_tensor_cast(given, type.dtype) : NULL;
        status = cast != NULL ? sgm_onnx_set(p->onnx, name, cast) : sgm__last_failure();
        if (i == 0 && cast != NULL && sgm_tensor_shape(cast)->rank > 0)
            count = sgm_tensor_shape(cast)->dims[0];
        sgm_tensor_free(cast);
    }
    sgm_bundle_free(bundle);
    if (status != SGM_OK) {
        sgm__fail_within("%s", path);
        return NULL;
    }
    return checked(run(p), count);
}
