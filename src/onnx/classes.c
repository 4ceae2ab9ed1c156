/* Classes that have texts as names, as scikit-learn's pipelines have them that were trained on such targets.
 *
 * Tensors have no texts, so what is a tensor of names in the file holds the numbers of the classes here, and
 * the names are the model's (sgm_onnx_class_at). They come from the attribute "classlabels_strings" of a
 * classifier, or from an initialiser of texts from which ArrayFeatureExtractor chooses. All must be one list:
 * a number then stands for the same name everywhere. No operator may compute with such values as with
 * numbers: when a model is loaded they are followed from node to node, also into subgraphs and functions. */
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

/* --- which values are of names --- */

/* Subgraphs and functions in each other, as when a model is recorded (import.c), and nodes that are visited:
 * those of a function, and its inputs, count at each call. Pipelines with names of classes have some hundred.
 */
#define DEEPEST_SUBGRAPH 8
#define MAXIMUM_NODES 100000

/* What a value's entry in a scope says here. */
enum { NUMBERS, NAMES };

/* One visit of all nodes of a model. */
typedef struct follower {
    const sgm_onnx *model;
    int depth;
    int64_t nodes, opset;
} follower;

/* By output of a node, a graph or a function: whether it is of names. */
typedef struct named_outputs {
    bool named[SGM__ONNX_MAXIMUM_OUTPUTS];
} named_outputs;

static sgm_status follow_nodes(follower *f, Onnx__NodeProto *const *nodes, size_t count,
                               sgm__onnx_scope *scope);

static bool is_named(const sgm__onnx_scope *scope, const char *name)
{
    return sgm__onnx_find(scope, sgm__onnx_text(name)).index == NAMES;
}

static sgm_status define(sgm__onnx_scope *scope, const char *name, bool named)
{
    return sgm__onnx_define(scope, sgm__onnx_text(name), (sgm_value){named ? NAMES : NUMBERS});
}

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

static bool is_moving(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < sizeof moving / sizeof moving[0]; i++)
        if (strcmp(moving[i], sgm__onnx_text(node->op_type)) == 0)
            return true;
    return false;
}

bool sgm__onnx_names_classes(const Onnx__NodeProto *node, const Onnx__AttributeProto *attribute)
{
    return attribute->n_strings > 0 && strcmp(sgm__onnx_text(attribute->name), "classlabels_strings") == 0 &&
           strcmp(sgm__onnx_text(node->op_type), "ZipMap") != 0; /* which makes no classes */
}

static sgm_status define_graph(const Onnx__GraphProto *graph, bool inside, sgm__onnx_scope *scope)
{
    for (size_t i = 0; i < graph->n_input && inside; i++)
        SGM_TRY(define(scope, graph->input[i]->name, false));
    for (size_t i = 0; i < graph->n_initializer; i++)
        SGM_TRY(define(scope, graph->initializer[i]->name,
                       graph->initializer[i]->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING));
    return SGM_OK;
}

/* A subgraph sees the names around it. What it makes of names is added to `outputs`. */
static sgm_status follow_subgraph(follower *f, const Onnx__GraphProto *graph, const sgm__onnx_scope *outer,
                                  named_outputs *outputs)
{
    sgm__onnx_scope scope = {.outer = outer};
    sgm_status status = define_graph(graph, true, &scope);
    if (status == SGM_OK)
        status = follow_nodes(f, graph->node, graph->n_node, &scope);
    for (size_t i = 0; i < graph->n_output && i < SGM__ONNX_MAXIMUM_OUTPUTS && status == SGM_OK; i++)
        outputs->named[i] |= is_named(&scope, graph->output[i]->name);
    sgm__onnx_scope_free(&scope);
    return status;
}

/* Branches of If give names as they are; Loop and Scan put together what their rounds make. */
static sgm_status follow_subgraphs(follower *f, const Onnx__NodeProto *node, const sgm__onnx_scope *scope,
                                   named_outputs *outputs)
{
    bool chooses = strcmp(sgm__onnx_text(node->op_type), "If") == 0;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g != NULL)
            SGM_TRY(follow_subgraph(f, node->attribute[i]->g, scope, outputs));
    for (size_t i = 0; i < SGM__ONNX_MAXIMUM_OUTPUTS && !chooses; i++)
        if (outputs->named[i])
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "output %zu of its subgraph is of names of classes, which only If gives on; "
                            "export the classifier with whole numbers as classes",
                            i);
    return SGM_OK;
}

/* A function's names are its own. One that calls itself ends at the depth of subgraphs. */
static sgm_status follow_function(follower *f, const Onnx__NodeProto *node,
                                  const Onnx__FunctionProto *function, const sgm__onnx_scope *outer,
                                  named_outputs *outputs)
{
    sgm__onnx_scope scope = {0};
    sgm_status status = SGM_OK;
    int64_t opset = f->opset;
    f->opset = sgm__onnx_opset(function->opset_import, function->n_opset_import, opset);
    f->nodes += (int64_t)function->n_input;
    for (size_t i = 0; i < function->n_input && status == SGM_OK; i++)
        status = define(&scope, function->input[i], i < node->n_input && is_named(outer, node->input[i]));
    if (status == SGM_OK)
        status = follow_nodes(f, function->node, function->n_node, &scope);
    f->opset = opset;
    for (size_t i = 0; i < function->n_output && i < SGM__ONNX_MAXIMUM_OUTPUTS && status == SGM_OK; i++)
        outputs->named[i] = is_named(&scope, function->output[i]);
    sgm__onnx_scope_free(&scope);
    return status;
}

/* An operator of the table. */
static sgm_status follow_operator(follower *f, const Onnx__NodeProto *node, const sgm__onnx_scope *scope,
                                  named_outputs *outputs)
{
    for (size_t i = is_moving(node) ? 1 : 0; i < node->n_input; i++)
        if (is_named(scope, node->input[i]))
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "its input %zu, '%.60s', is of names of classes, with which nothing can be "
                            "computed here; export the classifier with whole numbers as classes",
                            i, node->input[i]);
    SGM_TRY(follow_subgraphs(f, node, scope, outputs));
    if (is_moving(node) && node->n_input > 0)
        outputs->named[0] = is_named(scope, node->input[0]);
    for (size_t i = 0; i < node->n_attribute; i++)
        outputs->named[0] |= sgm__onnx_names_classes(node, node->attribute[i]);
    return SGM_OK;
}

static sgm_status follow_node(follower *f, const Onnx__NodeProto *node, sgm__onnx_scope *scope)
{
    const Onnx__FunctionProto *function = sgm__onnx_function(f->model, node);
    named_outputs outputs = {0};
    SGM_TRY(function != NULL ? follow_function(f, node, function, scope, &outputs)
                             : follow_operator(f, node, scope, &outputs));
    for (size_t i = 0; i < node->n_output; i++)
        if (*sgm__onnx_text(node->output[i]) != '\0')
            SGM_TRY(define(scope, node->output[i], i < SGM__ONNX_MAXIMUM_OUTPUTS && outputs.named[i]));
    return SGM_OK;
}

static sgm_status follow_nodes(follower *f, Onnx__NodeProto *const *nodes, size_t count,
                               sgm__onnx_scope *scope)
{
    sgm_status status = SGM_OK;
    if (f->depth > DEEPEST_SUBGRAPH || (int64_t)count > MAXIMUM_NODES - f->nodes)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "functions and subgraphs lie in each other more than %d deep, or have more than %d "
                        "nodes and inputs together",
                        DEEPEST_SUBGRAPH, MAXIMUM_NODES);
    f->nodes += (int64_t)count;
    f->depth++;
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        if ((status = follow_node(f, nodes[i], scope)) != SGM_OK)
            status = sgm__onnx_fail_at(nodes[i], i, f->opset);
    f->depth--;
    return status;
}

sgm_status sgm__onnx_follow_classes(const sgm_onnx *model)
{
    const Onnx__GraphProto *graph = model->proto->graph;
    follower f = {.model = model, .opset = model->opset};
    sgm__onnx_scope scope = {0};
    if (model->class_count == 0)
        return SGM_OK;
    sgm_status status = define_graph(graph, false, &scope);
    if (status == SGM_OK)
        status = follow_nodes(&f, graph->node, graph->n_node, &scope);
    sgm__onnx_scope_free(&scope);
    return status;
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
