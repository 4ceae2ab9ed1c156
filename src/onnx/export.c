/* Writing a graph as an ONNX model: its instructions, one after the other, as nodes.
 *
 * What is composed and has no row in the table is expanded first. Broadcasts become nodes only where somebody
 * reads them who does not broadcast by itself. */
#include "onnx/export.h"
#include "graph/passes.h"

#include <stdio.h>

/* --- the number of examples --- */

const sgm_graph *sgm__onnx_written(const sgm__onnx_export *e)
{
    return e->graph;
}

static const sgm_shape *shape_of(const sgm_graph *graph, sgm_value value)
{
    return &graph->instructions[value.index].type.shape;
}

bool sgm__onnx_is_open(const sgm__onnx_export *e, sgm_value value, int32_t axis)
{
    return e->other != NULL && shape_of(e->graph, value)->dims[axis] != shape_of(e->other, value)->dims[axis];
}

sgm_status sgm__onnx_want_fixed(const sgm__onnx_export *e, sgm_value value)
{
    if (e->other == NULL || sgm__attributes_equal(e->graph->instructions[value.index].attributes,
                                                  e->other->instructions[value.index].attributes))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "it depends on the number of examples in a way that ONNX's operators have no place for: "
                    "export it with a fixed number");
}

int64_t sgm__onnx_other_integer(const sgm__onnx_export *e, sgm_value value, int32_t index)
{
    return (e->other != NULL ? e->other : e->graph)->instructions[value.index].attributes->integers[index];
}

/* An input of the graph whose first dimension is open; -1: none. */
static int32_t open_input(const sgm__onnx_export *e)
{
    for (size_t i = 0; i < e->graph->source_count; i++) {
        int32_t index = e->graph->sources[i];
        const sgm__instruction *source = &e->graph->instructions[index];
        if (source->op == &sgm__op_input && source->type.shape.rank > 0 &&
            sgm__onnx_is_open(e, (sgm_value){index}, 0))
            return index;
    }
    return -1;
}

/* A list of one integer, `factor` times the number of examples. */
static const char *examples(sgm__onnx_export *e, int32_t input, int64_t factor)
{
    static const int64_t ends[] = {0, 1};
    if (e->examples == NULL) {
        const char *shape = sgm__onnx_call(e, NULL, "Shape", e->names[input], NULL, NULL);
        e->examples = sgm__onnx_call(e, NULL, "Slice", shape, sgm__onnx_name_integers(e, ends, 1),
                                     sgm__onnx_name_integers(e, ends + 1, 1));
    }
    if (factor == 1)
        return e->examples;
    return sgm__onnx_call(e, NULL, "Mul", e->examples, sgm__onnx_name_integers(e, &factor, 1), NULL);
}

const char *sgm__onnx_name_count(sgm__onnx_export *e, int64_t here, int64_t there)
{
    if (here == there)
        return sgm__onnx_name_integers(e, &here, 1);
    int32_t input = open_input(e);
    int64_t a = input < 0 ? 0 : shape_of(e->graph, (sgm_value){input})->dims[0];
    if (a == 0 || here % a != 0 || here / a * shape_of(e->other, (sgm_value){input})->dims[0] != there)
        return NULL;
    return examples(e, input, here / a);
}

/* The name of a list of dimensions, some of which are those of `b` with the other number of examples. */
static const char *open_shape(sgm__onnx_export *e, const sgm_shape *a, const sgm_shape *b)
{
    const char *parts[SGM_MAX_RANK] = {NULL};
    for (int32_t i = 0; i < a->rank; i++) {
        parts[i] = sgm__onnx_name_count(e, a->dims[i], b->dims[i]);
        if (parts[i] == NULL)
            return NULL;
    }
    Onnx__NodeProto *node = sgm__onnx_emit(e, "Concat", NULL, a->rank, parts);
    sgm__onnx_put_integer(e, node, "axis", 0);
    return node != NULL ? node->output[0] : "";
}

/* --- values --- */

sgm_value sgm__onnx_before_broadcast(const sgm__onnx_export *e, sgm_value value)
{
    while (e->graph->instructions[value.index].op == &sgm__op_broadcast)
        value = e->graph->operands[e->graph->instructions[value.index].first_input];
    return value;
}

/* The shape as Expand has it: 1 where the dimension stays as it is. */
static const char *expand(sgm__onnx_export *e, sgm_value value, const char *output)
{
    sgm_value from = sgm__onnx_before_broadcast(e, value);
    sgm_shape shape = *shape_of(e->graph, value),
              other = e->other != NULL ? *shape_of(e->other, value) : shape;
    const sgm_shape *old = shape_of(e->graph, from);
    for (int32_t i = 0; i < old->rank; i++) {
        int32_t axis = shape.rank - old->rank + i;
        if (old->dims[i] == shape.dims[axis])
            shape.dims[axis] = other.dims[axis] = 1;
    }
    const char *list = sgm_shape_equal(&shape, &other) ? sgm__onnx_name_integers(e, shape.dims, shape.rank)
                                                       : open_shape(e, &shape, &other);
    if (list == NULL) {
        e->status =
            sgm_fail(SGM_ERROR_UNSUPPORTED, "a value is expanded to no multiple of the number of examples");
        return "";
    }
    return sgm__onnx_call(e, output, "Expand", sgm__onnx_name(e, from), list, NULL);
}

const char *sgm__onnx_name(sgm__onnx_export *e, sgm_value value)
{
    const char *name = e->names[value.index];
    if (name == NULL && e->graph->instructions[value.index].op == &sgm__op_broadcast)
        name = e->names[value.index] = expand(e, value, NULL);
    return name != NULL ? name : "";
}

/* Name of the first output that a value is; NULL: it is none. */
static const char *output_name(const sgm__onnx_export *e, int32_t index)
{
    for (size_t i = 0; i < e->graph->output_count; i++)
        if (e->graph->outputs[i].value.index == index)
            return sgm__graph_string(e->graph, e->graph->outputs[i].name);
    return NULL;
}

/* --- instructions --- */

static sgm_status write_state(sgm__onnx_export *e, const char *name)
{
    sgm_tensor *tensor = e->session != NULL ? sgm_session_get(e->session, name) : NULL;
    if (tensor == NULL)
        return e->session == NULL ? sgm_fail(SGM_ERROR_ARGUMENT, "state '%.100s': there is no session", name)
                                  : sgm__last_failure();
    sgm__onnx_add_tensor(e, sgm__onnx_take_text(e, name), tensor);
    sgm_tensor_free(tensor);
    return e->status;
}

/* Inputs and states keep their names; constants and numbers get some. */
static sgm_status write_source(sgm__onnx_export *e, sgm_value value, const sgm__instruction *source)
{
    const char *name = sgm__graph_string(e->graph, source->name);
    if (source->op == &sgm__op_number) {
        e->names[value.index] = sgm__onnx_name_number(e, source->type.dtype, source->attributes->numbers[0]);
        return e->status;
    }
    if (source->op == &sgm__op_constant) {
        for (int32_t i = 0; i < source->type.shape.rank; i++)
            if (sgm__onnx_is_open(e, value, i))
                return sgm_fail(SGM_ERROR_UNSUPPORTED, "a constant has an entry for each example");
        e->names[value.index] =
            sgm__onnx_name_tensor(e, sgm_tensor_retain(e->graph->constants[source->constant]));
        return e->status;
    }
    e->names[value.index] = sgm__onnx_take_text(e, name);
    return source->op == &sgm__op_state ? write_state(e, name) : e->status;
}

static sgm_status write_instruction(sgm__onnx_export *e, sgm_value value)
{
    const sgm__instruction *instruction = &e->graph->instructions[value.index];
    const char *output = output_name(e, value.index);
    if ((instruction->op->flags & SGM_OP_SOURCE) != 0)
        return write_source(e, value, instruction);
    if (instruction->op == &sgm__op_broadcast && output == NULL)
        return SGM_OK;
    const sgm__onnx_operator *row = sgm__onnx_operator_for(instruction->op);
    if (row == NULL && instruction->op != &sgm__op_broadcast)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "ONNX has no operator for it");
    e->names[value.index] =
        output != NULL
            ? sgm__onnx_take_text(e, output)
            : sgm__onnx_fresh_name(e, sgm__graph_string(e->graph, instruction->label), instruction->op->name);
    if (e->status == SGM_OK && row == NULL)
        expand(e, value, e->names[value.index]);
    return e->status == SGM_OK && row != NULL ? row->write(e, value) : e->status;
}

static sgm_status write_instructions(sgm__onnx_export *e)
{
    for (int32_t i = 0; i < (int32_t)e->graph->count; i++) {
        sgm_status status = write_instruction(e, (sgm_value){i});
        if (status == SGM_OK)
            status = e->status;
        if (status != SGM_OK)
            return sgm__fail_within("operation '%s' of '%.100s'", e->graph->instructions[i].op->name,
                                    sgm__graph_string(e->graph, e->graph->instructions[i].label));
    }
    /* A value that is an output twice, or a source, has another name than the output. */
    for (size_t i = 0; i < e->graph->output_count; i++) {
        const char *name = sgm__graph_string(e->graph, e->graph->outputs[i].name);
        const char *have = sgm__onnx_name(e, e->graph->outputs[i].value);
        if (strcmp(name, have) != 0)
            sgm__onnx_call(e, name, "Identity", have, NULL, NULL);
    }
    return e->status;
}

/* --- the message --- */

static Onnx__ValueInfoProto *describe(sgm__onnx_export *e, const char *name, sgm_value value)
{
    const sgm_type *type = &e->graph->instructions[value.index].type;
    size_t rank = (size_t)type->shape.rank;
    Onnx__ValueInfoProto *info = sgm__onnx_take(e, sizeof *info);
    Onnx__TypeProto *wrap = sgm__onnx_take(e, sizeof *wrap);
    Onnx__TypeProto__Tensor *tensor = sgm__onnx_take(e, sizeof *tensor);
    Onnx__TensorShapeProto *shape = sgm__onnx_take(e, sizeof *shape);
    Onnx__TensorShapeProto__Dimension **dims = sgm__onnx_take(e, rank * sizeof *dims),
                                      *each = sgm__onnx_take(e, rank * sizeof *each);
    if (e->status != SGM_OK)
        return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(wrap);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    for (size_t i = 0; i < rank; i++) {
        dims[i] = &each[i];
        onnx__tensor_shape_proto__dimension__init(dims[i]);
        bool is_open = sgm__onnx_is_open(e, value, (int32_t)i);
        dims[i]->value_case = is_open ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                      : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (is_open && i == 0)
            dims[i]->dim_param = sgm__onnx_take_text(e, "batch");
        else if (is_open)
            dims[i]->dim_param = sgm__onnx_fresh_name(e, "", "size");
        else
            dims[i]->dim_value = type->shape.dims[i];
    }
    shape->n_dim = rank;
    shape->dim = dims;
    tensor->has_elem_type = true;
    tensor->elem_type = sgm__onnx_type_number(type->dtype);
    tensor->shape = shape;
    wrap->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    wrap->tensor_type = tensor;
    info->name = sgm__onnx_take_text(e, name);
    info->type = wrap;
    return info;
}

static sgm_status fill_graph(sgm__onnx_export *e, Onnx__GraphProto *proto)
{
    const sgm_graph *graph = e->graph;
    proto->input = sgm__onnx_take(e, graph->source_count * sizeof *proto->input);
    proto->output = sgm__onnx_take(e, graph->output_count * sizeof *proto->output);
    for (size_t i = 0; i < graph->source_count && e->status == SGM_OK; i++) {
        const sgm__instruction *source = &graph->instructions[graph->sources[i]];
        if (source->op == &sgm__op_input)
            proto->input[proto->n_input++] =
                describe(e, sgm__graph_string(graph, source->name), (sgm_value){graph->sources[i]});
    }
    for (size_t i = 0; i < graph->output_count && e->status == SGM_OK; i++)
        proto->output[proto->n_output++] =
            describe(e, sgm__graph_string(graph, graph->outputs[i].name), graph->outputs[i].value);
    proto->n_node = e->node_count;
    proto->node = e->nodes;
    proto->n_initializer = e->tensor_count;
    proto->initializer = e->tensors;
    return e->status;
}

static sgm_status pack(const Onnx__ModelProto *model, const char *path)
{
    size_t size = onnx__model_proto__get_packed_size(model);
    if (size > INT32_MAX)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "a file of ONNX has less than 2 GiB, this would have %zu bytes", size);
    uint8_t *bytes = sgm__alloc(size);
    if (bytes == NULL)
        return SGM_ERROR_MEMORY;
    onnx__model_proto__pack(model, bytes);
    sgm_status status = sgm__file_write_atomic(path, bytes, size);
    sgm__free(bytes);
    return status;
}

static sgm_status write_model(sgm__onnx_export *e, const char *path, const char *name)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    SGM_TRY(write_instructions(e));
    SGM_TRY(fill_graph(e, &graph));
    graph.name = sgm__onnx_take_text(e, name);
    opset.domain = sgm__onnx_take_text(e, "");
    opset.has_version = true;
    opset.version = SGM__ONNX_OPSET;
    model.has_ir_version = true;
    model.ir_version = SGM__ONNX_IR_VERSION;
    model.producer_name = sgm__onnx_take_text(e, "Sigma");
    model.producer_version = sgm__onnx_take_text(e, sgm_version());
    model.graph = &graph;
    model.n_opset_import = 1;
    model.opset_import = &(Onnx__OperatorSetIdProto *){&opset};
    return e->status == SGM_OK ? pack(&model, path) : e->status;
}

/* --- from the caller's graph --- */

static bool keep(void *user, const sgm_op *op, sgm_dtype dtype)
{
    (void)user, (void)dtype;
    return sgm__onnx_operator_for(op) != NULL;
}

static sgm_status prepare(const sgm_graph *graph, sgm_graph **ready)
{
    SGM_TRY(sgm_graph_status(graph));
    sgm_graph *expanded = sgm__pass_expand(graph, keep, NULL);
    *ready = expanded != NULL ? sgm__pass_simplify(expanded) : NULL;
    sgm_graph_free(expanded);
    return *ready != NULL ? SGM_OK : sgm__last_failure();
}

static sgm_status check_other(const sgm__onnx_export *e)
{
    bool same = e->graph->count == e->other->count;
    for (size_t i = 0; i < e->graph->count && same; i++) {
        const sgm__instruction *a = &e->graph->instructions[i], *b = &e->other->instructions[i];
        same = a->op == b->op && a->input_count == b->input_count &&
               a->type.shape.rank == b->type.shape.rank && a->type.dtype == b->type.dtype;
    }
    if (!same)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the other graph differs in more than the number of examples");
    return SGM_OK;
}

static sgm_status export_to(sgm__onnx_export *e, const char *path, const sgm_graph *graph,
                            const sgm_onnx_export_options *options)
{
    SGM_TRY(prepare(graph, &e->graph));
    if (options->other != NULL) {
        SGM_TRY(prepare(options->other, &e->other));
        SGM_TRY(check_other(e));
    }
    if (e->graph->output_count == 0 || e->graph->assignment_count > 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a graph with outputs and without assignments is needed");
    e->names = sgm__calloc(e->graph->count, sizeof *e->names);
    if (e->names == NULL)
        return SGM_ERROR_MEMORY;
    return write_model(e, path, options->name != NULL ? options->name : "sigma");
}

sgm_status sgm_onnx_export_file(const char *path, const sgm_graph *graph, sgm_session *session,
                                const sgm_onnx_export_options *given)
{
    sgm_onnx_export_options options;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_onnx_export"));
    if (path == NULL || *path == '\0' || graph == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "exporting as ONNX wants a path and a graph");
    sgm__onnx_export e = {.session = session};
    sgm_status status = export_to(&e, path, graph, &options);
    while (e.blocks != NULL) {
        sgm__onnx_block *next = e.blocks->next;
        sgm__free(e.blocks);
        e.blocks = next;
    }
    sgm__onnx_scope_free(&e.known);
    sgm__free(e.nodes);
    sgm__free(e.tensors);
    sgm__free(e.names);
    sgm_graph_free(e.graph);
    sgm_graph_free(e.other);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("exporting as ONNX to '%.200s'", path);
}
