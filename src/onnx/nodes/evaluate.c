/* Computes values that must be known while a model is recorded: shapes, indices, conditions.
 *
 * sgm__onnx_known_value is the entry, called through node.c by build functions. It finds the instructions
 * that lead to the value, transcribes them into a graph of their own, with constants in the place of
 * everything known, and runs that graph on the `reference` handler: shapes are small, and the reference
 * needs no compilation worth mentioning. An input of the model counts as known if it is set; using it
 * marks it (`decides`), because another value would need another recording (programs.c). Results are kept
 * in import->known, so a chain of shape arithmetic is not computed again from its beginning. */
#include "onnx/nodes/onnx.h"

/* Elements of a result: far more than any shape or list of indices needs, and little enough for the
 * reference. */
#define MAXIMUM_KNOWN (1 << 24)

/* Makes import->known long enough for this value; new entries are NULL. */
static sgm_status reserve(sgm__onnx_import *import, int32_t index)
{
    SGM_TRY(sgm__reserve(&import->known, &import->known_capacity, (size_t)index + 1, sizeof(sgm_tensor *)));
    while (import->known_count <= (size_t)index)
        import->known[import->known_count++] = NULL;
    return SGM_OK;
}

/* The tensor that an input of the model is set to; it still belongs to the model. */
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

/* The tensor of a value that need not be computed: one computed before, a constant, an input that is set.
 * *tensor is NULL for an ordinary operation. Fails for an input that is not set, and for a state, whose
 * value may differ from run to run. Nothing is retained. */
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

/* Marks what leads to value `last`, and fills `leaves` with the tensors where the walk ends. Operands come
 * before their instruction, so one pass downwards visits each instruction after everything that needs it. */
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

/* Copies one instruction into the slice; `map` has the slice's value for each value of the graph. Appended
 * as it is, without the broadcasting and casting of sgm_record: the graph's instructions have been through
 * that. Labels and names are offsets into the other graph's texts, so they are dropped. */
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

/* Runs the slice and reads its output "known" into `result`. */
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

/* Computes value `last` into import->known, from the marked instructions in the order of the graph. The
 * size is checked before the tensor is made. The entry stays NULL on failure. */
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

/* Fills import->known[last]. A leaf is retained, so that import->known owns each of its tensors; a value
 * that was known already is left as it is. The three arrays have an entry for each value up to `last`. */
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
