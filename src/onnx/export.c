/* Writes a graph as an ONNX model: its instructions, in their order, become nodes; states and constants
 * become initialisers.
 *
 * sgm_onnx_export_with is the entry, called by users and, for networks, by src/infer/export/export_onnx.c
 * with the graph of a prediction. The graph is first expanded, so that operations without an operator in
 * ONNX become those that have one (operators.c), and simplified. write.c writes each instruction, parts.c
 * has the pieces of the message. Broadcasts are explicit instructions here but implicit in most operators
 * of ONNX; they become Expand nodes only where a reader needs the broadcast shape. */
#include "onnx/nodes/export.h"
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

/* The number of examples may be left open. An instruction does not say which of its numbers depend on it,
 * so the caller gives the same graph recorded with two numbers of examples: whatever dimension or
 * attribute differs between the two depends on that number. A list of a shape that depends on it is
 * computed in the file, from the shape of an input. */
bool sgm__onnx_is_open(const sgm__onnx_export *e, sgm_value value, int32_t axis)
{
    return e->other != NULL && shape_of(e->graph, value)->dims[axis] != shape_of(e->other, value)->dims[axis];
}

/* For operators whose attribute cannot be computed in the file (pads of a window, the axis sizes of iota). */
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

/* The number of an input of the graph whose first dimension is the number of examples; -1: none is. The
 * file computes the number from this input's shape. */
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

/* The name of a list of one integer, `factor` times the number of examples, computed by Shape, Slice and
 * Mul. The list for factor 1 is made once and kept in e->examples. */
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

/* With a = examples of this graph and b = examples of the other, a quantity that is proportional to the
 * number of examples is here = f a and there = f b with a whole f. Anything else (a sum such as n + 1) is
 * not supported and gives NULL. */
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

/* The name of a list of dimensions `a`, of which some are `b` with the other number of examples: a Concat
 * of its entries. "" on a lack of memory; NULL if a dimension is no multiple of the number of examples. */
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

/* Writes an Expand from before the broadcast to the broadcast shape. In Expand's list of dimensions a 1
 * leaves the dimension as it is; using it wherever possible makes fewer lists depend on the number of
 * examples. */
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

/* A broadcast is written when its name is first asked for, and at most once; all else has its name
 * already. */
const char *sgm__onnx_name(sgm__onnx_export *e, sgm_value value)
{
    const char *name = e->names[value.index];
    if (name == NULL && e->graph->instructions[value.index].op == &sgm__op_broadcast)
        name = e->names[value.index] = expand(e, value, NULL);
    return name != NULL ? name : "";
}

/* The name of the first output of the graph that is this value; NULL: it is no output. A node whose value
 * is an output gets that name directly, so that no Identity is needed. */
static const char *output_name(const sgm__onnx_export *e, int32_t index)
{
    for (size_t i = 0; i < e->graph->output_count; i++)
        if (e->graph->outputs[i].value.index == index)
            return sgm__graph_string(e->graph, e->graph->outputs[i].name);
    return NULL;
}

/* --- instructions --- */

/* An initialiser with the state's value in the session, under the state's name. */
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

/* Inputs and states keep their names; constants and numbers get new ones. A constant with an open
 * dimension would have to be of both sizes at once. */
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

/* Writes one instruction. A broadcast that is no output waits until a reader asks for its name
 * (sgm__onnx_name); one that is an output is written here, since the output needs its shape. */
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

/* A failure names the operation and the label (the layer) that it was recorded under. At the end come
 * Identity nodes for outputs whose value has another name: those of a value that is an output twice, or is
 * a source. */
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

/* The declaration of an input or output: its type, and its shape with names for open dimensions. The first
 * dimension is named "batch" wherever it is open, which tells ONNX that these are equal; others get names
 * of their own. */
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

/* The lists of the graph's message: inputs and outputs with their declarations, nodes, initialisers.
 * States are initialisers and no inputs. */
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

/* Serialises into memory and writes through a temporary file, so that a failure leaves an old file whole. */
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

/* The entries as messages of the export's memory. */
static void fill_metadata(sgm__onnx_export *e, Onnx__ModelProto *model, const sgm_onnx_entry *entries)
{
    Onnx__StringStringEntryProto **list = sgm__onnx_take(e, SGM_ONNX_MAX_METADATA * sizeof *list),
                                 *each = sgm__onnx_take(e, SGM_ONNX_MAX_METADATA * sizeof *each);
    if (e->status != SGM_OK)
        return;
    for (size_t i = 0; i < SGM_ONNX_MAX_METADATA; i++) {
        if (entries[i].key == NULL || entries[i].text == NULL)
            continue;
        Onnx__StringStringEntryProto *entry = &each[model->n_metadata_props];
        onnx__string_string_entry_proto__init(entry);
        entry->key = sgm__onnx_take_text(e, entries[i].key);
        entry->value = sgm__onnx_take_text(e, entries[i].text);
        list[model->n_metadata_props++] = entry;
    }
    model->metadata_props = list;
}

/* The protobuf structs on the stack live until the message is packed; everything that they point to is
 * memory of the export. */
static sgm_status write_model(sgm__onnx_export *e, const char *path, const sgm_onnx_export_options *options)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    SGM_TRY(write_instructions(e));
    SGM_TRY(fill_graph(e, &graph));
    graph.name = sgm__onnx_take_text(e, options->name != NULL ? options->name : "sigma");
    fill_metadata(e, &model, options->metadata);
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

/* For sgm__pass_expand: an operation stays whole if a row writes it. */
static bool keep(void *user, const sgm_op *op, sgm_dtype dtype)
{
    (void)user, (void)dtype;
    return sgm__onnx_operator_for(op) != NULL;
}

/* The graph as it will be written; the caller frees *ready. Expansion first, so that simplification also
 * sees the parts. */
static sgm_status prepare(const sgm_graph *graph, sgm_graph **ready)
{
    SGM_TRY(sgm_graph_status(graph));
    sgm_graph *expanded = sgm__pass_expand(graph, keep, NULL);
    *ready = expanded != NULL ? sgm__pass_simplify(expanded) : NULL;
    sgm_graph_free(expanded);
    return *ready != NULL ? SGM_OK : sgm__last_failure();
}

/* Both graphs must have the same instructions in the same order, with equal ranks and types: only then do
 * values correspond by number, as everything above assumes. Operands are not compared: they follow from
 * the order in graphs that one function has recorded twice. */
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

/* Assignments would be lost: an ONNX model has no state that changes. */
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
    return write_model(e, path, options);
}

/* Everything is freed here, whether the export succeeded or not. */
sgm_status sgm_onnx_export_with(const char *path, const sgm_graph *graph, sgm_session *session,
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
