/* Values that are wanted while a model is recorded: what leads to one is run by itself, from constants and
 * from the inputs that were set. */
#include "onnx/onnx.h"

#define MAXIMUM_KNOWN (1 << 24) /* elements: of shapes, indices and conditions */

static sgm_status reserve(sgm__onnx_import *import, int32_t index)
{
    SGM_TRY(sgm__reserve(&import->known, &import->known_capacity, (size_t)index + 1, sizeof(sgm_tensor *)));
    while (import->known_count <= (size_t)index)
        import->known[import->known_count++] = NULL;
    return SGM_OK;
}

static sgm_status set_input(sgm__onnx_import *import, const char *name, sgm_tensor **tensor)
{
    for (size_t i = 0; i < import->model->input_count; i++) {
        sgm__onnx_input *input = &import->model->inputs[i];
        if (strcmp(input->name, name) != 0)
            continue;
        if (input->set == NULL)
            break;
        input->decides = true;
        *tensor = input->set;
        return SGM_OK;
    }
    return sgm_fail(SGM_ERROR_STATE,
                    "it comes from the input '%.100s', which decides about shapes: set it first", name);
}

/* The tensor of a value that need not be computed; NULL: it must be. */
static sgm_status take_leaf(sgm__onnx_import *import, int32_t index, sgm_tensor **tensor)
{
    const sgm__instruction *instruction = &import->graph->instructions[index];
    *tensor = (size_t)index < import->known_count ? import->known[index] : NULL;
    if (*tensor != NULL)
        return SGM_OK;
    if (instruction->constant >= 0)
        *tensor = import->graph->constants[instruction->constant];
    else if (instruction->op == &sgm__op_input)
        return set_input(import, sgm__graph_string(import->graph, instruction->name), tensor);
    else if (instruction->op == &sgm__op_state)
        return sgm_fail(SGM_ERROR_STATE, "it comes from the state '%.100s', which changes",
                        sgm__graph_string(import->graph, instruction->name));
    return SGM_OK;
}

/* Marks what leads to value `last`, and finds the tensors that it begins with. */
static sgm_status mark(sgm__onnx_import *import, int32_t last, bool *needed, sgm_tensor **leaves)
{
    const sgm_graph *graph = import->graph;
    needed[last] = true;
    for (int32_t i = last; i >= 0; i--) {
        if (!needed[i])
            continue;
        SGM_TRY(take_leaf(import, i, &leaves[i]));
        const sgm__instruction *instruction = &graph->instructions[i];
        for (int32_t k = 0; k < instruction->input_count && leaves[i] == NULL; k++)
            needed[graph->operands[instruction->first_input + k].index] = true;
    }
    return SGM_OK;
}

static sgm_value transcribe(sgm_graph *slice, const sgm_graph *graph, const sgm__instruction *instruction,
                            const sgm_value *map)
{
    sgm_value *inputs = sgm__alloc((size_t)instruction->input_count * sizeof(sgm_value));
    if (inputs == NULL)
        return sgm_graph_fail(slice, SGM_ERROR_MEMORY, "no memory");
    for (int32_t k = 0; k < instruction->input_count; k++)
        inputs[k] = map[graph->operands[instruction->first_input + k].index];
    sgm__instruction copy = *instruction;
    copy.label = copy.name = 0;
    sgm_value value = sgm__graph_append(slice, &copy, inputs);
    sgm__free(inputs);
    return value;
}

static sgm_status run(const sgm_graph *slice, sgm_tensor *result)
{
    sgm_handler *handler = sgm_handler_create("reference", .threads = 1);
    sgm_session *session = handler != NULL ? sgm_session_create(handler) : NULL;
    sgm_program *program = session != NULL ? sgm_session_prepare(session, slice) : NULL;
    sgm_status status = program != NULL ? sgm_session_run(session, program) : sgm__last_failure();
    if (status == SGM_OK)
        status = sgm_session_read(session, program, "known", result);
    sgm_session_free(session);
    sgm_handler_free(handler);
    return status;
}

static sgm_status compute(sgm__onnx_import *import, int32_t last, const bool *needed,
                          sgm_tensor *const *leaves, sgm_value *map)
{
    const sgm_graph *graph = import->graph;
    sgm_graph *slice = sgm_graph_create();
    if (slice == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i <= last; i++)
        if (needed[i])
            map[i] = leaves[i] != NULL ? sgm__onnx_constant(slice, sgm_tensor_retain(leaves[i]))
                                       : transcribe(slice, graph, &graph->instructions[i], map);
    sgm_output(slice, "known", map[last]);
    const sgm_type *type = &graph->instructions[last].type;
    sgm_status status = sgm_graph_status(slice);
    if (status == SGM_OK && sgm_shape_elements(&type->shape) > MAXIMUM_KNOWN)
        status =
            sgm_fail(SGM_ERROR_UNSUPPORTED, "it has %lld elements; at most %d are computed before the run",
                     (long long)sgm_shape_elements(&type->shape), MAXIMUM_KNOWN);
    if (status == SGM_OK) {
        import->known[last] = sgm_tensor_create(type->dtype, &type->shape);
        status = import->known[last] != NULL ? run(slice, import->known[last]) : SGM_ERROR_MEMORY;
    }
    if (status != SGM_OK) {
        sgm_tensor_free(import->known[last]);
        import->known[last] = NULL;
    }
    sgm_graph_free(slice);
    return status;
}

static sgm_status find_out(sgm__onnx_import *import, int32_t last)
{
    size_t count = (size_t)last + 1;
    bool *needed = sgm__calloc(count, sizeof *needed);
    sgm_tensor **leaves = sgm__calloc(count, sizeof *leaves);
    sgm_value *map = sgm__calloc(count, sizeof *map);
    sgm_status status = SGM_ERROR_MEMORY;
    if (needed != NULL && leaves != NULL && map != NULL)
        status = mark(import, last, needed, leaves);
    if (status == SGM_OK)
        status = reserve(import, last);
    if (status == SGM_OK && leaves[last] != NULL)
        import->known[last] =
            leaves[last] == import->known[last] ? leaves[last] : sgm_tensor_retain(leaves[last]);
    else if (status == SGM_OK)
        status = compute(import, last, needed, leaves, map);
    sgm__free(map);
    sgm__free(leaves);
    sgm__free(needed);
    return status;
}

const sgm_tensor *sgm__onnx_known_value(sgm__onnx_import *import, sgm_value value)
{
    if (!sgm_value_is(value) || import->graph->status != SGM_OK) {
        sgm_fail(SGM_ERROR_ARGUMENT, "it is missing");
        return NULL;
    }
    return find_out(import, value.index) == SGM_OK ? import->known[value.index] : NULL;
}
