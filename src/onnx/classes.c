/* Classes that have texts as names, as scikit-learn's pipelines have them that were trained on such targets.
 *
 * Tensors have no texts, so what is a tensor of names in the file holds the numbers of the classes here, and
 * the names are the model's (sgm_onnx_class_at). They come from the attribute "classlabels_strings" of a
 * classifier, or from an initialiser of texts from which ArrayFeatureExtractor chooses. All must be one list:
 * a number then stands for the same name everywhere. While a model is recorded such values are marked as of
 * ONNX's type string (nodes/narrow.c), so that no operator computes with them as with numbers. */
#include "onnx/nodes/onnx.h"

/* --- loading --- */

static bool is_name(const char *name, const ProtobufCBinaryData *text)
{
    return strlen(name) == text->len && (text->len == 0 || memcmp(name, text->data, text->len) == 0);
}

static sgm_status compare_names(const sgm_onnx *model, const ProtobufCBinaryData *names, size_t count)
{
    bool same = count == model->class_count;
    for (size_t i = 0; i < count && same; i++)
        same = is_name(model->classes[i], &names[i]);
    return same ? SGM_OK
                : sgm_fail(SGM_ERROR_UNSUPPORTED,
                           "it names %zu classes, from '%.*s' on, where another part of the model names %zu, "
                           "from '%.60s' on; one list of names is supported: export a model for each",
                           count, (int)(names[0].len < 60 ? names[0].len : 60), (const char *)names[0].data,
                           model->class_count, model->classes[0]);
}

sgm_status sgm__onnx_name_classes(sgm_onnx *model, const ProtobufCBinaryData *names, size_t count)
{
    if (count == 0)
        return SGM_OK;
    if (model->class_count > 0)
        return compare_names(model, names, count);
    model->classes = sgm__calloc(count, sizeof *model->classes);
    if (model->classes == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (names[i].len > 0 && memchr(names[i].data, 0, names[i].len) != NULL)
            return sgm_fail(SGM_ERROR_FORMAT, "the name of class %zu has a zero in it", i);
        model->classes[i] = sgm__format("%.*s", (int)names[i].len, (const char *)names[i].data);
        if (model->classes[i] == NULL)
            return SGM_ERROR_MEMORY;
        model->class_count++;
    }
    return SGM_OK;
}

bool sgm__onnx_lists_classes(const Onnx__GraphProto *graph, const Onnx__TensorProto *tensor)
{
    const char *name = sgm__onnx_text(tensor->name);
    bool used = false;
    if (tensor->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__STRING || tensor->n_dims != 1 ||
        tensor->dims[0] != (int64_t)tensor->n_string_data || tensor->n_string_data == 0)
        return false;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        bool chooses = strcmp(sgm__onnx_text(node->op_type), "ArrayFeatureExtractor") == 0;
        for (size_t k = 0; k < node->n_input; k++) {
            if (strcmp(sgm__onnx_text(node->input[k]), name) != 0)
                continue;
            if (!chooses || k > 0)
                return false;
            used = true;
        }
    }
    return used;
}

sgm_tensor *sgm__onnx_class_numbers(const Onnx__TensorProto *tensor)
{
    sgm_tensor *numbers = sgm_tensor_create(SGM_INT64, SGM__ONNX_SHAPE((int64_t)tensor->n_string_data));
    for (size_t i = 0; numbers != NULL && i < tensor->n_string_data; i++)
        ((int64_t *)sgm_tensor_data(numbers))[i] = (int64_t)i;
    return numbers;
}

/* --- recording --- */

/* Operators that move the elements of their first input and compute nothing with them. */
static const char *const moving[] = {"ArrayFeatureExtractor",
                                     "Flatten",
                                     "Gather",
                                     "Identity",
                                     "Reshape",
                                     "Slice",
                                     "Squeeze",
                                     "Transpose",
                                     "Unsqueeze"};

static bool is_moving(const sgm__onnx_node *n)
{
    for (size_t i = 0; i < sizeof moving / sizeof moving[0]; i++)
        if (strcmp(moving[i], sgm__onnx_text(n->proto->op_type)) == 0)
            return true;
    return false;
}

sgm_status sgm__onnx_refuse_texts(const sgm__onnx_node *n)
{
    for (int32_t i = is_moving(n) ? 1 : 0; i < n->input_count; i++)
        if (sgm_value_exists(n->inputs[i]) &&
            sgm__onnx_element(n, n->inputs[i]) == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "its input %d is of names of classes, with which nothing can be computed here",
                            i);
    return SGM_OK;
}

/* --- what a program asks --- */

const char *sgm_onnx_class_at(const sgm_onnx *model, size_t index)
{
    return model != NULL && index < model->class_count ? model->classes[index] : NULL;
}

bool sgm_onnx_output_is_class(const sgm_onnx *model, size_t index)
{
    if (model == NULL || index >= model->proto->graph->n_output)
        return false;
    const Onnx__TypeProto *type = model->proto->graph->output[index]->type;
    return type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
           type->tensor_type->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
}
