/* What is found out about a model when it is loaded, before anything is recorded.
 *
 * All nodes are visited, also those of subgraphs, of branches that will not be taken and of functions that
 * the model brings: an operator, a domain or a type that is not known is an error here, with the node's name
 * and the opset, and so is one that would compute with names of classes (classes.c). What depends on shapes
 * (a mode that is not supported for them) is found when the model is recorded. The message's depth is bounded
 * (wire.c), and so is the recursion here. */
#include "onnx/nodes/onnx.h"

const char *sgm__onnx_domain(const char *domain)
{
    domain = sgm__onnx_text(domain);
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int64_t sgm__onnx_opset(Onnx__OperatorSetIdProto *const *sets, size_t count, int64_t otherwise)
{
    for (size_t i = 0; i < count; i++)
        if (*sgm__onnx_domain(sets[i]->domain) == '\0')
            otherwise = sets[i]->version;
    return otherwise;
}

const char *sgm__onnx_node_name(const Onnx__NodeProto *node)
{
    if (*sgm__onnx_text(node->name) != '\0')
        return node->name;
    return node->n_output > 0 ? sgm__onnx_text(node->output[0]) : "";
}

sgm_status sgm__onnx_fail_at(const Onnx__NodeProto *node, size_t index, int64_t opset)
{
    return sgm__fail_within("node %zu, '%.60s' (%.60s of opset %lld)", index, sgm__onnx_node_name(node),
                            sgm__onnx_text(node->op_type), (long long)opset);
}

const Onnx__FunctionProto *sgm__onnx_function(const sgm_onnx *model, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < model->proto->n_functions; i++) {
        const Onnx__FunctionProto *function = model->proto->functions[i];
        if (strcmp(sgm__onnx_text(function->name), sgm__onnx_text(node->op_type)) == 0 &&
            strcmp(sgm__onnx_domain(function->domain), sgm__onnx_domain(node->domain)) == 0)
            return function;
    }
    return NULL;
}

/* --- nodes --- */

static sgm_status check_nodes(sgm_onnx *model, Onnx__NodeProto *const *nodes, size_t count, int64_t opset);

static sgm_status check_tensor(const Onnx__TensorProto *tensor)
{
    sgm_dtype dtype;
    if (sgm__onnx_dtype(tensor->data_type, &dtype) != SGM_OK)
        return sgm__fail_within("tensor '%.100s'", sgm__onnx_text(tensor->name));
    return SGM_OK;
}

static sgm_status check_graph(sgm_onnx *model, const Onnx__GraphProto *graph, int64_t opset)
{
    if (graph->n_sparse_initializer > 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "sparse initialisers are not supported");
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = graph->initializer[i];
        if (graph == model->proto->graph && sgm__onnx_lists_classes(graph, tensor))
            SGM_TRY(sgm__onnx_name_classes(model, tensor->string_data, tensor->n_string_data));
        else
            SGM_TRY(check_tensor(tensor));
    }
    return check_nodes(model, graph->node, graph->n_node, opset);
}

static sgm_status check_attribute(sgm_onnx *model, const Onnx__AttributeProto *attribute, int64_t opset)
{
    if (attribute->sparse_tensor != NULL || attribute->n_sparse_tensors > 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "its attribute '%.100s' is a sparse tensor, which is not supported",
                        sgm__onnx_text(attribute->name));
    if (*sgm__onnx_text(attribute->ref_attr_name) != '\0' &&
        strcmp(sgm__onnx_text(attribute->name), "classlabels_strings") == 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "its names of classes are an attribute of the function around it, which is not "
                        "supported: export the model without functions");
    if (attribute->t != NULL)
        SGM_TRY(check_tensor(attribute->t));
    if (attribute->g != NULL)
        SGM_TRY(check_graph(model, attribute->g, opset));
    for (size_t i = 0; i < attribute->n_graphs; i++)
        SGM_TRY(check_graph(model, attribute->graphs[i], opset));
    return SGM_OK;
}

static sgm_status check_node(sgm_onnx *model, const Onnx__NodeProto *node, int64_t opset)
{
    const char *type = sgm__onnx_text(node->op_type), *domain = sgm__onnx_domain(node->domain);
    const sgm__onnx_operator *row = sgm__onnx_operator_find(node->domain, type);
    if ((row == NULL || row->build == NULL) && sgm__onnx_function(model, node) == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        *domain != '\0' ? "operator '%.100s' of the domain '%.100s' is not supported"
                                        : "operator '%.100s' is not supported",
                        type, domain);
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = node->attribute[i];
        SGM_TRY(check_attribute(model, attribute, opset));
        if (sgm__onnx_names_classes(node, attribute))
            SGM_TRY(sgm__onnx_name_classes(model, attribute->strings, attribute->n_strings));
    }
    return SGM_OK;
}

static sgm_status check_nodes(sgm_onnx *model, Onnx__NodeProto *const *nodes, size_t count, int64_t opset)
{
    for (size_t i = 0; i < count; i++)
        if (check_node(model, nodes[i], opset) != SGM_OK)
            return sgm__onnx_fail_at(nodes[i], i, opset);
    return SGM_OK;
}

sgm_status sgm__onnx_check(sgm_onnx *model)
{
    const Onnx__ModelProto *proto = model->proto;
    for (size_t i = 0; i < proto->n_functions; i++) {
        const Onnx__FunctionProto *function = proto->functions[i];
        int64_t opset = sgm__onnx_opset(function->opset_import, function->n_opset_import, model->opset);
        if (check_nodes(model, function->node, function->n_node, opset) != SGM_OK)
            return sgm__fail_within("function '%.60s'", sgm__onnx_text(function->name));
    }
    SGM_TRY(check_graph(model, proto->graph, model->opset));
    return sgm__onnx_follow_classes(model);
}
