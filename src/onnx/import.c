/* Records a model: visits its nodes in the order of the file and calls each operator's build function.
 *
 * sgm_onnx_import is the entry, called by programs.c and by users who want the graph. ONNX guarantees that
 * a node comes after the nodes that make its inputs, so one pass with a table of names (scopes) suffices.
 * Subgraphs of If, Loop and Scan are recorded in place by the same functions (build_control.c); the result
 * is one flat graph. A file is not trusted: the number of nodes, the depth of subgraphs and the size of
 * each result are bounded. Errors name the node, its operator and the opset; those of build functions are
 * the graph's (sgm_graph_fail), those of this file the thread's (sgm_fail). */
#include "onnx/nodes/onnx.h"

/* Subgraphs in each other. Each level is a recursion through the build function of If, Loop or Scan, which
 * has arrays of 64 values on the stack. */
#define DEEPEST_SUBGRAPH 8
/* Recorded nodes; those of a loop's body count once for each round. Bounds the time and memory that a
 * small file with nested loops can cost. */
#define MAXIMUM_NODES 1000000
/* Elements that one node may make out of smaller inputs; see check_size. */
#define MAXIMUM_MADE ((int64_t)1 << 28)

/* --- nodes --- */

/* Whether there is a value of the graph, or a sequence. */
static bool is_made(sgm_value value)
{
    return sgm_value_exists(value) || sgm__onnx_is_sequence(value);
}

/* Looks up the values of the node's inputs. An empty name stands for an optional input that is left out. */
static sgm_status take_inputs(sgm__onnx_node *n)
{
    for (int32_t i = 0; i < n->input_count; i++) {
        const char *name = sgm__onnx_text(n->proto->input[i]);
        n->inputs[i] = (sgm_value){-1};
        if (*name == '\0')
            continue;
        n->inputs[i] = sgm__onnx_find(n->scope, name);
        if (!sgm__onnx_is_defined(n->scope, name))
            return sgm_fail(SGM_ERROR_FORMAT, "its input '%.100s' is made by nothing before it", name);
    }
    return SGM_OK;
}

/* Defines the names of the node's outputs. Only outputs with a name are wanted; a wanted one that `build`
 * did not make is an error, so an unsupported output does no harm where the model does not use it. */
static sgm_status give_outputs(const sgm__onnx_node *n, sgm__onnx_scope *scope)
{
    for (int32_t i = 0; i < n->output_count; i++) {
        const char *name = sgm__onnx_text(n->proto->output[i]);
        if (*name == '\0')
            continue;
        if (!is_made(n->outputs[i]))
            return sgm_fail(SGM_ERROR_UNSUPPORTED, "its output %d, '%.100s', is not supported here", i, name);
        SGM_TRY(sgm__onnx_define(scope, name, n->outputs[i]));
    }
    return SGM_OK;
}

/* Attributes that may be ignored. They concern training only, the precision of sums, memory reuse of opset 1,
 * outputs that are not supported (storage_order), or permit what is done anyway (TopK's results are sorted,
 * whether `sorted` or not). */
static const struct {
    const char *type, *attribute; /* type "": of any operator */
} harmless[] = {
    {"", "consumed_inputs"},
    {"BatchNormalization", "is_test"},
    {"BatchNormalization", "momentum"},
    {"Dropout", "is_test"},
    {"Dropout", "ratio"},
    {"Dropout", "seed"},
    {"Gemm", "broadcast"},
    {"LayerNormalization", "stash_type"},
    {"MaxPool", "storage_order"}, /* numbering of the second output, which is not supported */
    {"QuantizeLinear", "precision"},
    {"QuantizeLinear", "saturate"},
    {"Range", "stash_type"},
    {"TopK", "sorted"},
};

static bool is_harmless(const char *type, const char *attribute)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if ((harmless[i].type[0] == '\0' || strcmp(harmless[i].type, type) == 0) &&
            strcmp(harmless[i].attribute, attribute) == 0)
            return true;
    return false;
}

/* Refuses attributes that were not read while the node was built (n->asked), so that there is no second
 * list of what each operator knows. */
static sgm_status check_attributes(const sgm__onnx_node *n)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const char *name = sgm__onnx_text(n->proto->attribute[i]->name);
        if (!n->asked[i] && !is_harmless(n->row->name, name))
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "its attribute '%.100s' is not known, or not supported here", name);
    }
    return SGM_OK;
}

/* A file of a few bytes must not take all memory: a result of more than MAXIMUM_MADE elements is accepted
 * only if the inputs together have as many elements. Recording allocates nothing of this size; the check
 * comes before anything is compiled or run. */
static sgm_status check_size(const sgm__onnx_node *n, sgm_value made)
{
    sgm_shape shape = sgm__onnx_type(n, made).shape;
    int64_t elements = sgm_shape_elements(&shape), given = 0;
    for (int32_t i = 0; i < n->input_count && elements > MAXIMUM_MADE; i++)
        if (sgm_value_exists(n->inputs[i])) {
            shape = sgm__onnx_type(n, n->inputs[i]).shape;
            given += sgm_shape_elements(&shape);
        }
    return elements <= MAXIMUM_MADE || elements <= given
               ? SGM_OK
               : sgm_fail(SGM_ERROR_UNSUPPORTED,
                          "it makes %lld elements of %lld; where that is more, at most %lld are made",
                          (long long)elements, (long long)given, (long long)MAXIMUM_MADE);
}

/* Records one node of the table: the build function, then the checks that need its result. A build
 * function may fail in three ways (the graph's status, no value, or an unread attribute); the graph's
 * message is the most exact, so it goes first. */
static sgm_status build(sgm__onnx_node *n)
{
    for (int32_t i = 0; i < n->row->needed; i++)
        if (!is_made(sgm__onnx_in(n, i)))
            return sgm_fail(SGM_ERROR_FORMAT, "its input %d is missing", i);
    SGM_TRY(sgm__onnx_refuse_sequences(n));
    for (int32_t i = 0; i < n->output_count; i++)
        n->outputs[i] = (sgm_value){-1};
    sgm_value first = n->row->build(n);
    SGM_TRY(sgm_graph_status(n->graph));
    SGM_TRY(check_attributes(n));
    if (!is_made(first))
        return sgm_fail(SGM_ERROR_FORMAT, "it could not be recorded");
    n->outputs[0] = first;
    sgm__onnx_mark_outputs(n);
    SGM_TRY(sgm_graph_status(n->graph));
    for (int32_t i = 0; i < n->output_count; i++)
        if (sgm_value_exists(n->outputs[i]))
            SGM_TRY(check_size(n, n->outputs[i]));
    return SGM_OK;
}

/* Checks of a node before its build function sees it; check.c has found its row. INT16_MAX inputs keep counts
 * and array sizes far from overflow. */
static sgm_status check_node(const sgm__onnx_node *n)
{
    const Onnx__NodeProto *proto = n->proto;
    if (proto->n_input > INT16_MAX || proto->n_output > SGM__ONNX_MAXIMUM_OUTPUTS || proto->n_output == 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "it has %zu inputs and %zu outputs; at most %d and 1 to %d are "
                        "supported",
                        proto->n_input, proto->n_output, INT16_MAX, SGM__ONNX_MAXIMUM_OUTPUTS);
    return SGM_OK;
}

/* Records a node and defines its outputs in the scope. */
static sgm_status record_node(sgm__onnx_import *import, const Onnx__NodeProto *proto, sgm__onnx_scope *scope)
{
    sgm__onnx_node n = {.import = import,
                        .graph = import->graph,
                        .proto = proto,
                        .row = sgm__onnx_operator_find(proto->domain, sgm__onnx_text(proto->op_type)),
                        .scope = scope,
                        .caller = import->caller,
                        .opset = import->opset};
    const Onnx__FunctionProto *function = sgm__onnx_function(import->model, proto);
    SGM_TRY(check_node(&n));
    if (import->nodes++ >= MAXIMUM_NODES)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "there are more than %d nodes, those in loops counted each time", MAXIMUM_NODES);
    n.input_count = (int32_t)proto->n_input;
    n.output_count = (int32_t)proto->n_output;
    n.inputs = sgm__alloc(proto->n_input * sizeof(sgm_value));
    n.asked = sgm__calloc(proto->n_attribute + 1, sizeof(bool));
    sgm_status status = n.inputs != NULL && n.asked != NULL ? take_inputs(&n) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = function != NULL ? sgm__onnx_record_function(&n, function) : build(&n);
    sgm__free(n.inputs);
    sgm__free(n.asked);
    return status == SGM_OK ? give_outputs(&n, scope) : status;
}

/* Initialisers become constants of the graph, not states: a loaded model is not trained. Those of the model's
 * own graph have been read when it was loaded. */
static sgm_status record_initialisers(sgm__onnx_import *import, const Onnx__GraphProto *graph,
                                      sgm__onnx_scope *scope)
{
    const sgm_onnx *model = import->model;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *proto = graph->initializer[i];
        sgm_value value =
            graph == model->proto->graph
                ? sgm__onnx_mark(import,
                                 sgm__onnx_constant(import->graph, sgm_tensor_retain(model->initialisers[i])),
                                 proto->data_type)
                : sgm__onnx_constant_tensor(import, proto);
        SGM_TRY(sgm_graph_status(import->graph));
        SGM_TRY(sgm__onnx_define(scope, sgm__onnx_text(graph->initializer[i]->name), value));
    }
    return SGM_OK;
}

/* Records a graph whose inputs are in the scope already. The label makes instructions carry the name of
 * their node, in listings and in errors of a handler. */
static sgm_status record_nodes(sgm__onnx_import *import, Onnx__NodeProto *const *nodes, size_t count,
                               sgm__onnx_scope *scope)
{
    for (size_t i = 0; i < count; i++) {
        const Onnx__NodeProto *proto = nodes[i];
        sgm_graph_push_label(import->graph, sgm__onnx_node_name(proto));
        sgm_status status = record_node(import, proto, scope);
        sgm_graph_pop_label(import->graph);
        if (status != SGM_OK)
            return sgm__onnx_fail_at(proto, i, import->opset);
    }
    return SGM_OK;
}

static sgm_status record_graph(sgm__onnx_import *import, const Onnx__GraphProto *graph,
                               sgm__onnx_scope *scope)
{
    SGM_TRY(record_initialisers(import, graph, scope));
    return record_nodes(import, graph->node, graph->n_node, scope);
}

/* An output may also be an input, an initialiser, or (in a subgraph) a value of the graph around it. */
static sgm_status find_outputs(const Onnx__GraphProto *graph, const sgm__onnx_scope *scope,
                               sgm_value *outputs)
{
    for (size_t i = 0; i < graph->n_output; i++) {
        outputs[i] = sgm__onnx_find(scope, sgm__onnx_text(graph->output[i]->name));
        if (!is_made(outputs[i]))
            return sgm_fail(SGM_ERROR_FORMAT, "output '%.100s' is made by no node",
                            sgm__onnx_text(graph->output[i]->name));
    }
    return SGM_OK;
}

/* The scope of the subgraph ends with it; the values recorded in it stay in the graph. */
sgm_status sgm__onnx_record_subgraph(sgm__onnx_import *import, const Onnx__GraphProto *graph,
                                     const sgm__onnx_scope *outer, const sgm_value *inputs,
                                     size_t input_count, sgm_value *outputs)
{
    if (import->depth >= DEEPEST_SUBGRAPH)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "subgraphs lie in each other more than %d deep",
                        DEEPEST_SUBGRAPH);
    if (graph->n_input != input_count)
        return sgm_fail(SGM_ERROR_FORMAT, "its subgraph has %zu inputs, expected %zu", graph->n_input,
                        input_count);
    sgm__onnx_scope scope = {.outer = outer};
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < input_count && status == SGM_OK; i++)
        status = sgm__onnx_define(&scope, sgm__onnx_text(graph->input[i]->name), inputs[i]);
    import->depth++;
    if (status == SGM_OK)
        status = record_graph(import, graph, &scope);
    import->depth--;
    if (status == SGM_OK)
        status = find_outputs(graph, &scope, outputs);
    sgm__onnx_scope_free(&scope);
    return status;
}

/* --- functions --- */

/* Inputs that the caller leaves out stay without a value. */
static sgm_status define_inputs(const sgm__onnx_node *n, const Onnx__FunctionProto *function,
                                sgm__onnx_scope *scope)
{
    if ((size_t)n->input_count > function->n_input || (size_t)n->output_count > function->n_output)
        return sgm_fail(SGM_ERROR_FORMAT, "its function has %zu inputs and %zu outputs, the node %d and %d",
                        function->n_input, function->n_output, n->input_count, n->output_count);
    for (size_t i = 0; i < function->n_input; i++)
        SGM_TRY(sgm__onnx_define(scope, sgm__onnx_text(function->input[i]), sgm__onnx_in(n, (int32_t)i)));
    return SGM_OK;
}

/* Its names are its own: the scope has none around it. A function that calls itself ends at the depth of
 * subgraphs; its inputs count as nodes do, as a small file can call one of many inputs often. */
sgm_status sgm__onnx_record_function(sgm__onnx_node *n, const Onnx__FunctionProto *function)
{
    sgm__onnx_import *import = n->import;
    const sgm__onnx_node *caller = import->caller;
    int64_t opset = import->opset;
    sgm__onnx_scope scope = {0};
    if (import->depth >= DEEPEST_SUBGRAPH)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "functions and subgraphs lie in each other more than %d deep",
                        DEEPEST_SUBGRAPH);
    sgm_status status = define_inputs(n, function, &scope);
    import->nodes += (int64_t)function->n_input;
    import->depth++;
    import->caller = n;
    import->opset = sgm__onnx_opset(function->opset_import, function->n_opset_import, opset);
    if (status == SGM_OK)
        status = record_nodes(import, function->node, function->n_node, &scope);
    import->opset = opset;
    import->caller = caller;
    import->depth--;
    for (int32_t i = 0; i < n->output_count && status == SGM_OK; i++)
        n->outputs[i] = sgm__onnx_find(&scope, sgm__onnx_text(function->output[i]));
    sgm__onnx_scope_free(&scope);
    return status;
}

/* --- the whole model --- */

/* The shape comes from the tensor that is set, else from the declaration with `batch` in the place of an
 * open first dimension. Compilation needs every dimension, so what is still open is an error. */
static sgm_status record_input(sgm__onnx_import *import, const sgm__onnx_input *input, sgm__onnx_scope *scope)
{
    sgm_type type = input->type;
    char text[128];
    if (input->set != NULL)
        type.shape = *sgm_tensor_shape(input->set);
    else if (type.shape.rank > 0 && type.shape.dims[0] < 0 && import->batch > 0)
        type.shape.dims[0] = import->batch;
    for (int32_t i = 0; i < type.shape.rank || type.shape.rank < 0; i++)
        if (type.shape.rank < 0 || type.shape.dims[i] < 0)
            return sgm_fail(SGM_ERROR_SHAPE, "input '%.100s' has the open shape %s: set the input first",
                            input->name, sgm_shape_text(&input->type.shape, text, sizeof text));
    sgm_value value = sgm_input_value(import->graph, input->name, type.dtype, &type.shape);
    SGM_TRY(sgm_graph_status(import->graph));
    sgm__onnx_mark(import, value, input->element);
    return sgm__onnx_define(scope, input->name, value);
}

/* Each output is a copy of its value, with the digits that its type has: a value may be several outputs, or
 * an input itself, and the output must still have a name of its own in the program. */
static sgm_status record_outputs(sgm__onnx_import *import, const Onnx__GraphProto *proto,
                                 const sgm__onnx_scope *scope)
{
    sgm_value *outputs = sgm__alloc(proto->n_output * sizeof(sgm_value));
    if (outputs == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = find_outputs(proto, scope, outputs);
    for (size_t i = 0; i < proto->n_output && status == SGM_OK; i++)
        if (sgm__onnx_is_sequence(outputs[i]))
            status = sgm_fail(SGM_ERROR_UNSUPPORTED, "output '%.100s' is a sequence, not a tensor",
                              sgm__onnx_text(proto->output[i]->name));
        else
            sgm_graph_add_output(import->graph, sgm__onnx_text(proto->output[i]->name),
                                 sgm__onnx_output_copy(import, outputs[i]));
    sgm__free(outputs);
    return status == SGM_OK ? sgm_graph_status(import->graph) : status;
}

static sgm_status record_all(sgm__onnx_import *import, sgm__onnx_scope *scope)
{
    const Onnx__GraphProto *proto = import->model->proto->graph;
    for (size_t i = 0; i < import->model->input_count; i++)
        SGM_TRY(record_input(import, &import->model->inputs[i], scope));
    SGM_TRY(record_graph(import, proto, scope));
    return record_outputs(import, proto, scope);
}

/* The tensors computed while recording (import.known) are freed once the graph is complete:
 * what depended on them was recorded as constants. */
sgm_status sgm_onnx_import(sgm_onnx *model, sgm_graph *graph, int64_t batch)
{
    if (model == NULL || graph == NULL || batch < 0)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "importing an ONNX model wants the model, a graph, and a number of examples (0: none)");
    SGM_TRY(sgm_graph_status(graph));
    sgm__onnx_import import = {.model = model, .graph = graph, .batch = batch, .opset = model->opset};
    sgm__onnx_scope scope = {0};
    sgm_status status = record_all(&import, &scope);
    sgm__onnx_scope_free(&scope);
    for (size_t i = 0; i < import.known_count; i++)
        sgm_tensor_free(import.known[i].tensor);
    sgm__free(import.known);
    sgm__free(import.elements);
    sgm__free(import.items);
    sgm__free(import.sequences);
    return status;
}
