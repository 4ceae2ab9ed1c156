/* Loaded ONNX models: reading the file, describing inputs and outputs, running (the functions of
 * sigma/onnx.h).
 *
 * A model is the unpacked message plus the tensors that its inputs are set to. It is recorded and compiled
 * only when it runs, because shapes come from those tensors: programs.c keeps the compiled programs,
 * import.c records them. The order of a run is sgm_onnx_set for each input, sgm_onnx_run, sgm_onnx_get;
 * setting an input invalidates the outputs.
 *
 * Called by programs that use the library, and by `sigma predict` and `sigma inspect`. */
#include "handlers/session.h"
#include "onnx/nodes/onnx.h"
#include "tensor/tensor_internal.h"

/* protobuf limits a message to 2 GiB. */
#define MAXIMUM_BYTES INT32_MAX
/* The newest operator set whose changes to the operators of the table have been checked against the build
 * functions. A newer model is refused rather than computed by rules that may have changed. */
#define NEWEST_OPSET 28

/* --- loading --- */

/* The declared type of an input. A dimension that is a name, or missing, or negative is open (-1); a
 * missing shape is an open rank (-1). */
static sgm_status read_declared(const Onnx__ValueInfoProto *info, sgm__onnx_input *input)
{
    sgm_type *type = &input->type;
    *type = (sgm_type){.shape = {.rank = -1}};
    if (info->type == NULL || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "it is no tensor (a sequence, map, optional or sparse tensor)");
    const Onnx__TypeProto__Tensor *tensor = info->type->tensor_type;
    SGM_TRY(sgm__onnx_dtype(tensor->elem_type, &type->dtype));
    input->element = tensor->elem_type;
    if (tensor->shape == NULL)
        return SGM_OK;
    if (tensor->shape->n_dim > SGM_MAX_RANK)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "it has %zu dimensions, at most %d are supported",
                        tensor->shape->n_dim, SGM_MAX_RANK);
    type->shape.rank = (int32_t)tensor->shape->n_dim;
    for (int32_t i = 0; i < type->shape.rank; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = tensor->shape->dim[i];
        bool known = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        type->shape.dims[i] = known && dim->dim_value >= 0 ? dim->dim_value : -1;
    }
    return SGM_OK;
}

/* Up to IR version 3, initialisers are listed among the inputs as well; the caller need not set those. */
static bool is_initialiser(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(sgm__onnx_text(graph->initializer[i]->name), name) == 0)
            return true;
    return false;
}

/* Makes an entry for each input that must be set. */
static sgm_status read_inputs(sgm_onnx *model)
{
    const Onnx__GraphProto *graph = model->proto->graph;
    model->inputs = sgm__calloc(graph->n_input, sizeof(sgm__onnx_input));
    if (model->inputs == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < graph->n_input; i++) {
        sgm__onnx_input input = {.name = sgm__onnx_text(graph->input[i]->name)};
        if (is_initialiser(graph, input.name))
            continue;
        if (read_declared(graph->input[i], &input) != SGM_OK)
            return sgm__fail_within("input '%.100s'", input.name);
        model->inputs[model->input_count++] = input;
    }
    return SGM_OK;
}

/* Outputs may leave out their type. A sequence of maps is what ZipMap declares, which gives a tensor here. */
static sgm_status check_outputs(const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_output; i++) {
        const Onnx__TypeProto *type = graph->output[i]->type;
        if (type == NULL || type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET ||
            type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            continue;
        const Onnx__TypeProto *entries =
            type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE ? type->sequence_type->elem_type : NULL;
        if (entries == NULL || entries->value_case != ONNX__TYPE_PROTO__VALUE_MAP_TYPE)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "output '%.100s': it is no tensor (a sequence, map, optional or sparse tensor)",
                            sgm__onnx_text(graph->output[i]->name));
    }
    return SGM_OK;
}

/* Reads the initialisers, also those in other files, and takes their data out of the message. */
static sgm_status read_initialisers(sgm_onnx *model)
{
    Onnx__GraphProto *graph = model->proto->graph;
    model->initialisers = sgm__calloc(graph->n_initializer + 1, sizeof *model->initialisers);
    if (model->initialisers == NULL)
        return SGM_ERROR_MEMORY;
    if (graph->n_sparse_initializer > 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "sparse initialisers are not supported");
    for (size_t i = 0; i < graph->n_initializer; i++) {
        Onnx__TensorProto *proto = graph->initializer[i];
        bool is_text = proto->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING; /* check.c has looked */
        model->initialisers[i] =
            is_text ? sgm__onnx_class_numbers(proto) : sgm__onnx_tensor(proto, model->folder);
        if (model->initialisers[i] == NULL)
            return sgm__last_failure();
        sgm__onnx_drop_data(proto);
    }
    return SGM_OK;
}

/* Finds the opset, the inputs and the initialisers, and checks the nodes. A model without an entry for the
 * default domain is of opset 1. */
static sgm_status read_model(sgm_onnx *model)
{
    const Onnx__ModelProto *proto = model->proto;
    if (proto->graph == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "it has no graph: it is no ONNX model, or damaged");
    model->opset = sgm__onnx_opset(proto->opset_import, proto->n_opset_import, 1);
    if (model->opset < 1 || model->opset > NEWEST_OPSET)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "it is of opset %lld: those from 1 to %d are known here; convert it to one of them "
                        "(version_converter of the Python package onnx)",
                        (long long)model->opset, NEWEST_OPSET);
    SGM_TRY(read_inputs(model));
    SGM_TRY(sgm__onnx_check(model));
    SGM_TRY(check_outputs(proto->graph));
    return read_initialisers(model);
}

/* The handler is the model's own, so that two models never share its threads. */
static sgm_status open_handler(sgm_onnx *model, const sgm_onnx_options *given)
{
    sgm_onnx_options options;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_onnx_load"));
    SGM_TRY(sgm__quantize_read(options.quantize, &model->int8));
    model->handler =
        sgm_handler_create(options.handler != NULL ? options.handler : "cpu", .threads = options.threads);
    model->graph = sgm_graph_create();
    return model->handler != NULL && model->graph != NULL ? SGM_OK : sgm__last_failure();
}

/* The bytes may be freed afterwards: unpacking copies all of them. `path` NULL: the model has no folder. */
static sgm_onnx *parse(const void *bytes, size_t length, const char *path, const sgm_onnx_options *options)
{
    if (bytes == NULL || length > MAXIMUM_BYTES) {
        sgm_fail(SGM_ERROR_ARGUMENT, "an ONNX model has up to %d bytes, got %zu", MAXIMUM_BYTES, length);
        return NULL;
    }
    sgm_onnx *model = sgm__calloc(1, sizeof *model);
    if (model == NULL)
        return NULL;
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    if (path != NULL)
        model->folder = sgm__format("%.*s", slash != NULL ? (int)(slash - path) + 1 : 0, path);
    model->proto = path == NULL || model->folder != NULL ? sgm__onnx_unpack_model(bytes, length) : NULL;
    sgm_status status = model->proto != NULL ? read_model(model) : sgm__last_failure();
    if (status == SGM_OK)
        status = open_handler(model, options);
    if (status == SGM_OK)
        return model;
    sgm_onnx_free(model);
    return NULL;
}

sgm_onnx *sgm_onnx_parse(const void *bytes, size_t length, const sgm_onnx_options *options)
{
    return parse(bytes, length, NULL, options);
}

/* Errors begin with the path; those of parsing a model in memory have none. */
sgm_onnx *sgm_onnx_load_with(const char *path, const sgm_onnx_options *options)
{
    char *bytes;
    size_t length;
    if (path == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the path of the ONNX model is NULL");
        return NULL;
    }
    if (sgm__file_read(path, MAXIMUM_BYTES, &bytes, &length) != SGM_OK)
        return NULL;
    sgm_onnx *model = parse(bytes, length, path, options);
    sgm__free(bytes);
    if (model == NULL)
        sgm__fail_within("'%s'", path);
    return model;
}

/* Also for a model that was made in part. Sessions of programs go before the handler that runs them. */
void sgm_onnx_free(sgm_onnx *model)
{
    if (model == NULL)
        return;
    for (size_t i = 0; i < model->input_count; i++)
        sgm_tensor_free(model->inputs[i].set);
    sgm__free(model->inputs);
    size_t count =
        model->proto != NULL && model->initialisers != NULL ? model->proto->graph->n_initializer : 0;
    for (size_t i = 0; i < count; i++)
        sgm_tensor_free(model->initialisers[i]);
    sgm__free(model->initialisers);
    for (size_t i = 0; i < model->class_count; i++)
        sgm__free(model->classes[i]);
    sgm__free(model->classes);
    sgm__free(model->folder);
    sgm_graph_free(model->graph);
    sgm__onnx_free_programs(model);
    sgm_handler_free(model->handler);
    sgm__onnx_free_model(model->proto);
    sgm__free(model);
}

/* --- inputs and outputs --- */

const char *sgm_onnx_metadata(const sgm_onnx *model, const char *key)
{
    for (size_t i = 0; i < model->proto->n_metadata_props; i++)
        if (strcmp(sgm__onnx_text(model->proto->metadata_props[i]->key), key) == 0)
            return sgm__onnx_text(model->proto->metadata_props[i]->value);
    return NULL;
}

const char *sgm_onnx_input_at(const sgm_onnx *model, size_t index, sgm_type *type)
{
    if (model == NULL || index >= model->input_count)
        return NULL;
    if (type != NULL)
        *type = model->inputs[index].type;
    return model->inputs[index].name;
}

/* Only the name: types of outputs follow from those of the inputs when the model is recorded. */
const char *sgm_onnx_output_at(const sgm_onnx *model, size_t index)
{
    if (model == NULL || index >= model->proto->graph->n_output)
        return NULL;
    return sgm__onnx_text(model->proto->graph->output[index]->name);
}

/* NULL and an error that lists the inputs. */
static sgm__onnx_input *find_input(sgm_onnx *model, const char *name)
{
    sgm__text known = {0};
    for (size_t i = 0; i < model->input_count; i++)
        if (strcmp(model->inputs[i].name, name) == 0)
            return &model->inputs[i];
    for (size_t i = 0; i < model->input_count; i++)
        sgm__text_append(&known, "%s'%.60s'", i > 0 ? ", " : "", model->inputs[i].name);
    sgm_fail(SGM_ERROR_NOT_FOUND, "the model has no input '%.100s'; it has %.300s", name,
             known.length > 0 ? known.data : "none");
    sgm__text_free(&known);
    return NULL;
}

/* The type must be the declared one, and so must each dimension that is declared. */
static sgm_status check_fit(const sgm__onnx_input *input, const sgm_tensor *value)
{
    const sgm_shape *shape = sgm_tensor_shape(value), *declared = &input->type.shape;
    char a[128], b[128];
    bool fits = declared->rank < 0 || declared->rank == shape->rank;
    for (int32_t i = 0; i < declared->rank && fits; i++)
        fits = declared->dims[i] < 0 || declared->dims[i] == shape->dims[i];
    if (fits && sgm_tensor_dtype(value) == input->type.dtype)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE, "input '%.100s' wants %s %s (-1: any), got %s %s", input->name,
                    sgm_dtype_name(input->type.dtype),
                    declared->rank < 0 ? "" : sgm_shape_text(declared, a, sizeof a),
                    sgm_dtype_name(sgm_tensor_dtype(value)), sgm_shape_text(shape, b, sizeof b));
}

/* Whether the memory of the tensor that is set can take the new value: a program that keeps the tensor, to
 * compare with, must not see it change. */
static bool takes_value(const sgm__onnx_input *input, const sgm_tensor *value)
{
    return input->set != NULL && !input->kept && sgm_tensor_dtype(input->set) == sgm_tensor_dtype(value) &&
           sgm_shape_equal(sgm_tensor_shape(input->set), sgm_tensor_shape(value));
}

/* Copies the tensor before the old one is freed, so that a failure leaves the input as it was. */
sgm_status sgm_onnx_set(sgm_onnx *model, const char *name, const sgm_tensor *value)
{
    if (model == NULL || name == NULL || value == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "setting an input wants a model, a name and a tensor");
    sgm__onnx_input *input = find_input(model, name);
    if (input == NULL)
        return sgm__last_failure();
    SGM_TRY(check_fit(input, value));
    if (takes_value(input, value)) {
        model->newest = NULL;
        return sgm_tensor_assign(input->set, value);
    }
    sgm_tensor *copy = sgm_tensor_copy(value);
    if (copy == NULL)
        return sgm__last_failure();
    sgm_tensor_free(input->set);
    input->set = copy;
    input->kept = false;
    model->newest = NULL;
    return SGM_OK;
}

/* --- running --- */

/* A program on the host reads the tensor that is set where it lies, until the next run. Inputs whose value
 * was used up while recording (a shape for Reshape, say) may be absent from the program. */
static sgm_status give_input(const sgm__onnx_program *used, const sgm__onnx_input *input)
{
    int32_t index = sgm__program_input(used->program, input->name);
    if (index < 0)
        return SGM_OK;
    const void *data = sgm_tensor_const_data(input->set);
    bool same = used->program->plan->inputs[index].type.dtype == sgm_tensor_dtype(input->set);
    if (!same || !sgm__session_is_host(used->session) || !sgm_tensor_is_contiguous(input->set))
        return sgm__session_feed_at(used->session, used->program, index, input->set);
    SGM_TRY(sgm__program_check_index(used->program, index, data));
    return sgm__session_share_memory(used->session, used->program, index, data);
}

/* `newest` is set last, so that a failed run leaves no outputs to read. */
sgm_status sgm_onnx_run(sgm_onnx *model)
{
    if (model == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "running an ONNX model wants a model");
    model->newest = NULL;
    for (size_t i = 0; i < model->input_count; i++)
        if (model->inputs[i].set == NULL)
            return sgm_fail(SGM_ERROR_STATE, "input '%.100s' is not set", model->inputs[i].name);
    sgm__onnx_program *used = sgm__onnx_prepare(model);
    if (used == NULL)
        return sgm__last_failure();
    for (size_t i = 0; i < model->input_count; i++)
        SGM_TRY(give_input(used, &model->inputs[i]));
    SGM_TRY(sgm_session_run(used->session, used->program));
    model->newest = used;
    return SGM_OK;
}

/* Reads the output from the session of the newest program into a new tensor, which the caller frees. */
sgm_tensor *sgm_onnx_get(sgm_onnx *model, const char *output)
{
    if (model == NULL || output == NULL || model->newest == NULL) {
        sgm_fail(SGM_ERROR_STATE, "an output is there after a run, and until an input is set");
        return NULL;
    }
    const sgm__onnx_program *newest = model->newest;
    if (!sgm_program_has_output(newest->program, output)) {
        sgm_fail(SGM_ERROR_NOT_FOUND, "the model has no output '%.100s'; its first one is '%.100s'", output,
                 sgm__onnx_text(sgm_onnx_output_at(model, 0)));
        return NULL;
    }
    sgm_type type = sgm_program_output_type(newest->program, output);
    sgm_tensor *value = sgm__tensor_create_unset(type.dtype, &type.shape);
    if (value != NULL && sgm_session_read(newest->session, newest->program, output, value) != SGM_OK) {
        sgm_tensor_free(value);
        value = NULL;
    }
    return value;
}
