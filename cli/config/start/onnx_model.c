/* ONNX models that run as they are: what they take and give.
 *
 * A model is described as a network is (sgm__signature), so that files are read and predictions told by the
 * same functions. Its predictions are its first output of floats, as a classifier of scikit-learn gives its
 * probabilities behind the classes; the first output if there is none. The class of each prediction is told
 * by an output of classes that have texts as names, or of whole numbers under one of the names that skl2onnx
 * and onnxmltools give to it. */
#include "config/start/onnx_model.h"
#include "base/base.h"
#include "tensor/tensor_internal.h"

/* The first dimension counts the examples; the others must be known. */
sgm_status onnx_model_open(onnx_model *m, const char *path, bool int8)
{
    sgm_type type;
    *m = (onnx_model){.signature.blank = -1};
    m->onnx = sgm_onnx_load(path, .quantize = int8 ? "int8" : NULL);
    if (m->onnx == NULL)
        return sgm__last_failure();
    while (sgm_onnx_input_at(m->onnx, m->signature.inputs, NULL) != NULL)
        m->signature.inputs++;
    if (m->signature.inputs != 1)
        return SGM_OK;
    sgm_onnx_input_at(m->onnx, 0, &type);
    if (type.shape.rank < 1)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "'%s': its input has no dimension of examples", path);
    m->signature.example = sgm_shape_create(type.shape.rank - 1, type.shape.dims + 1);
    char text[128];
    if (sgm_shape_elements(&m->signature.example) < 0)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s': an example of its input has the open shape %s (-1: any); a file of arrays, FILE.npz, "
            "cannot say which: fix the shape when the model is exported",
            path, sgm_shape_text(&m->signature.example, text, sizeof text));
    return SGM_OK;
}

bool onnx_model_class(const onnx_model *m, int64_t example, int64_t *number, const char **name)
{
    if (m->classes == NULL || example >= sgm_shape_elements(sgm_tensor_shape(m->classes)))
        return false;
    *number = ((const int64_t *)sgm_tensor_const_data(m->classes))[example];
    *name = *number >= 0 ? sgm_onnx_class_at(m->onnx, (size_t)*number) : NULL;
    return true;
}

/* Whether an output tells a class for each example. One of numbers that stands alone is the prediction. */
static bool tells_classes(const sgm_onnx *onnx, size_t output)
{
    const char *name = sgm_onnx_output_at(onnx, output);
    bool is_label = strcmp(name, "label") == 0 || strcmp(name, "output_label") == 0;
    return sgm_onnx_output_is_class(onnx, output) || (is_label && sgm_onnx_output_at(onnx, 1) != NULL);
}

/* Keeps the classes of the newest run, one for each of `count` examples, where an output tells them. */
static void keep_classes(onnx_model *m, int64_t count)
{
    sgm_tensor_free(m->classes);
    m->classes = NULL;
    for (size_t i = 0; sgm_onnx_output_at(m->onnx, i) != NULL && m->classes == NULL; i++)
        if (tells_classes(m->onnx, i))
            m->classes = sgm_onnx_get(m->onnx, sgm_onnx_output_at(m->onnx, i));
    if (m->classes == NULL)
        return;
    const sgm_shape *shape = sgm_tensor_shape(m->classes);
    bool is_one_each = shape->rank > 0 && shape->dims[0] == count && sgm_shape_elements(shape) == count;
    if (!is_one_each || sgm_tensor_dtype(m->classes) != SGM_INT64) {
        sgm_tensor_free(m->classes);
        m->classes = NULL;
    }
}

/* The predictions of a run with what is set. */
static sgm_tensor *run(onnx_model *m)
{
    sgm_tensor *first = NULL;
    if (sgm_onnx_run(m->onnx) != SGM_OK)
        return NULL;
    for (size_t i = 0; sgm_onnx_output_at(m->onnx, i) != NULL; i++) {
        sgm_tensor *output = sgm_onnx_get(m->onnx, sgm_onnx_output_at(m->onnx, i));
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

/* Runs the model with what is set: a prediction for each of `count` examples. */
static sgm_tensor *run_for(onnx_model *m, int64_t count)
{
    char text[128];
    sgm_tensor *outputs = run(m);
    if (outputs == NULL)
        return NULL;
    keep_classes(m, count);
    if (sgm_tensor_shape(outputs)->rank > 0 && sgm_tensor_shape(outputs)->dims[0] == count && count > 0)
        return outputs;
    sgm_fail(SGM_ERROR_SHAPE, "the model gives %s, not a prediction for each of %lld examples",
             sgm_shape_text(sgm_tensor_shape(outputs), text, sizeof text), (long long)count);
    sgm_tensor_free(outputs);
    return NULL;
}

/* --- models that were exported for a number of examples --- */

static size_t row_bytes(const sgm_tensor *rows)
{
    const sgm_shape *shape = sgm_tensor_shape(rows);
    return (size_t)(sgm_shape_elements(shape) / shape->dims[0]) * sgm_dtype_size(sgm_tensor_dtype(rows));
}

/* `count` rows of a tensor from `first` on; behind its last row the first of them again. NULL on failure. */
static sgm_tensor *take_rows(const sgm_tensor *rows, int64_t first, int64_t count)
{
    sgm_shape shape = *sgm_tensor_shape(rows);
    int64_t left = shape.dims[0] - first;
    size_t bytes = row_bytes(rows);
    shape.dims[0] = count;
    sgm_tensor *taken = sgm_tensor_create(sgm_tensor_dtype(rows), &shape);
    const char *from = sgm_tensor_const_data(rows);
    for (int64_t i = 0; taken != NULL && i < count; i++)
        memcpy((char *)sgm_tensor_data(taken) + (size_t)i * bytes,
               from + (size_t)(first + (i < left ? i : 0)) * bytes, bytes);
    return taken;
}

/* Puts rows into those of all `count`, which are made by the first call: from `first` on, as many as fit. */
static sgm_status put_rows(sgm_tensor **all, int64_t count, int64_t first, const sgm_tensor *rows)
{
    sgm_shape shape = *sgm_tensor_shape(rows);
    int64_t given = shape.dims[0] < count - first ? shape.dims[0] : count - first;
    size_t bytes = row_bytes(rows);
    shape.dims[0] = count;
    if (*all == NULL)
        *all = sgm_tensor_create(sgm_tensor_dtype(rows), &shape);
    if (*all == NULL)
        return sgm__last_failure();
    if (!sgm_shape_equal(sgm_tensor_shape(*all), &shape) || sgm_tensor_dtype(*all) != sgm_tensor_dtype(rows))
        return sgm_fail(SGM_ERROR_SHAPE, "the model gives other shapes for other examples");
    memcpy((char *)sgm_tensor_data(*all) + (size_t)first * bytes, sgm_tensor_const_data(rows),
           (size_t)given * bytes);
    return SGM_OK;
}

static sgm_tensor *run_examples(onnx_model *m, const sgm_tensor *examples)
{
    bool is_set = sgm_onnx_set(m->onnx, sgm_onnx_input_at(m->onnx, 0, NULL), examples) == SGM_OK;
    return is_set ? run_for(m, sgm_tensor_shape(examples)->dims[0]) : NULL;
}

/* Runs the model as often as the examples need, `size` at a time. */
static sgm_tensor *run_in_parts(onnx_model *m, const sgm_tensor *examples, int64_t size)
{
    int64_t count = sgm_tensor_shape(examples)->dims[0];
    sgm_tensor *all = NULL, *classes = NULL;
    sgm_status status = SGM_OK;
    for (int64_t first = 0; first < count && status == SGM_OK; first += size) {
        sgm_tensor *part = take_rows(examples, first, size);
        sgm_tensor *outputs = part != NULL ? run_examples(m, part) : NULL;
        status = outputs != NULL ? put_rows(&all, count, first, outputs) : sgm__last_failure();
        if (status == SGM_OK && m->classes != NULL)
            status = put_rows(&classes, count, first, m->classes);
        sgm_tensor_free(outputs);
        sgm_tensor_free(part);
    }
    sgm_tensor_free(m->classes);
    m->classes = classes;
    if (status == SGM_OK)
        return all;
    sgm_tensor_free(all);
    return NULL;
}

sgm_tensor *onnx_model_predict(onnx_model *m, const sgm_tensor *examples)
{
    sgm_type type;
    sgm_onnx_input_at(m->onnx, 0, &type);
    int64_t size = type.shape.rank > 0 ? type.shape.dims[0] : -1, count = sgm_tensor_shape(examples)->dims[0];
    sgm_tensor *cast = sgm_tensor_cast(examples, type.dtype);
    if (cast == NULL)
        return NULL;
    sgm_tensor *outputs = size > 0 && size != count ? run_in_parts(m, cast, size) : run_examples(m, cast);
    sgm_tensor_free(cast);
    return outputs;
}

/* --- several inputs --- */

sgm_tensor *onnx_model_predict_archive(onnx_model *m, const char *path)
{
    sgm_bundle *bundle = sgm_bundle_load(path);
    sgm_status status = bundle != NULL ? SGM_OK : sgm__last_failure();
    sgm_type type;
    const char *name;
    int64_t count = 0;
    for (size_t i = 0; status == SGM_OK && (name = sgm_onnx_input_at(m->onnx, i, &type)) != NULL; i++) {
        sgm_tensor *given = sgm_bundle_get(bundle, name);
        sgm_tensor *cast = given != NULL ? sgm_tensor_cast(given, type.dtype) : NULL;
        status = cast != NULL ? sgm_onnx_set(m->onnx, name, cast) : sgm__last_failure();
        if (i == 0 && cast != NULL && sgm_tensor_shape(cast)->rank > 0)
            count = sgm_tensor_shape(cast)->dims[0];
        sgm_tensor_free(cast);
    }
    sgm_bundle_free(bundle);
    if (status != SGM_OK) {
        sgm__fail_within("%s", path);
        return NULL;
    }
    return run_for(m, count);
}

char *onnx_model_inputs(const onnx_model *m)
{
    sgm__text names = {0};
    const char *name;
    for (size_t i = 0; (name = sgm_onnx_input_at(m->onnx, i, NULL)) != NULL; i++)
        sgm__text_append(&names, "%s'%.60s'", i > 0 ? ", " : "", name);
    return sgm__text_take(&names);
}

void onnx_model_close(onnx_model *m)
{
    sgm_tensor_free(m->classes);
    sgm_onnx_free(m->onnx);
    *m = (onnx_model){0};
}
