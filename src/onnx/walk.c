/* What a model is made of, as sigma/onnx.h gives it to others: nodes, their attributes, and the values that
 * the file has. Everything is read from the message, which lives as long as the model. */
#include "onnx/nodes/onnx.h"

static const Onnx__NodeProto *find_node(const sgm_onnx *model, size_t node)
{
    return model != NULL && node < model->proto->graph->n_node ? model->proto->graph->node[node] : NULL;
}

bool sgm_onnx_node_at(const sgm_onnx *model, size_t node, sgm_onnx_node_info *info)
{
    const Onnx__NodeProto *proto = find_node(model, node);
    if (proto != NULL && info != NULL)
        *info = (sgm_onnx_node_info){.type = sgm__onnx_text(proto->op_type),
                                     .domain = sgm__onnx_domain(proto->domain),
                                     .name = sgm__onnx_node_name(proto),
                                     .input_count = proto->n_input,
                                     .output_count = proto->n_output,
                                     .attribute_count = proto->n_attribute};
    return proto != NULL;
}

const char *sgm_onnx_node_input(const sgm_onnx *model, size_t node, size_t index)
{
    const Onnx__NodeProto *proto = find_node(model, node);
    return proto != NULL && index < proto->n_input ? sgm__onnx_text(proto->input[index]) : NULL;
}

const char *sgm_onnx_node_output(const sgm_onnx *model, size_t node, size_t index)
{
    const Onnx__NodeProto *proto = find_node(model, node);
    return proto != NULL && index < proto->n_output ? sgm__onnx_text(proto->output[index]) : NULL;
}

bool sgm_onnx_node_attribute(const sgm_onnx *model, size_t node, size_t index, sgm_onnx_attribute *attribute)
{
    const Onnx__NodeProto *proto = find_node(model, node);
    if (proto == NULL || index >= proto->n_attribute)
        return false;
    const Onnx__AttributeProto *a = proto->attribute[index];
    if (attribute == NULL)
        return true;
    *attribute = (sgm_onnx_attribute){.name = sgm__onnx_text(a->name)};
    switch (a->type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        attribute->integers = &a->i;
        attribute->count = 1;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        attribute->integers = a->ints;
        attribute->count = a->n_ints;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        attribute->numbers = &a->f;
        attribute->count = 1;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        attribute->numbers = a->floats;
        attribute->count = a->n_floats;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        attribute->text = (const char *)a->s.data;
        attribute->length = a->s.len;
        break;
    default: /* tensors, graphs and lists of texts are none of what it tells */
        break;
    }
    return true;
}

/* --- values of the file --- */

/* A Constant has its value in one of several attributes; here are those of numbers. */
static sgm_tensor *constant_of(const sgm_onnx *model, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        const char *name = sgm__onnx_text(a->name);
        if (a->t != NULL)
            return sgm__onnx_tensor(a->t, model->folder);
        if (strcmp(name, "value_int") == 0)
            return sgm_tensor_create_from(SGM_INT64, &(sgm_shape){0}, &a->i);
        if (strcmp(name, "value_float") == 0)
            return sgm_tensor_create_from(SGM_FLOAT32, &(sgm_shape){0}, &a->f);
        if (strcmp(name, "value_ints") == 0)
            return sgm_tensor_create_from(SGM_INT64, SGM__ONNX_SHAPE((int64_t)a->n_ints), a->ints);
        if (strcmp(name, "value_floats") == 0)
            return sgm_tensor_create_from(SGM_FLOAT32, SGM__ONNX_SHAPE((int64_t)a->n_floats), a->floats);
    }
    return NULL;
}

sgm_tensor *sgm_onnx_constant(const sgm_onnx *model, const char *name)
{
    if (model == NULL || name == NULL || *name == '\0')
        return NULL;
    const Onnx__GraphProto *graph = model->proto->graph;
    /* From the last node to the first, as each takes what nodes before it make. */
    for (size_t i = graph->n_node; i-- > 0;) {
        const Onnx__NodeProto *node = graph->node[i];
        if (*sgm__onnx_domain(node->domain) != '\0' || node->n_output == 0 ||
            strcmp(sgm__onnx_text(node->output[0]), name) != 0)
            continue;
        if (strcmp(sgm__onnx_text(node->op_type), "Constant") == 0)
            return constant_of(model, node);
        if (strcmp(sgm__onnx_text(node->op_type), "Identity") != 0 || node->n_input != 1)
            return NULL;
        name = sgm__onnx_text(node->input[0]);
    }
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(sgm__onnx_text(graph->initializer[i]->name), name) == 0)
            return sgm_tensor_retain(model->initialisers[i]);
    return NULL;
}
