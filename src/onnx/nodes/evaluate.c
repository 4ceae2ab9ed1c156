/* Computes values that must be known while a model is recorded: shapes, indices, conditions.
 *
 * sgm__onnx_known_value is the entry, called through node.c by build functions. It finds the instructions
 * that lead to the value, transcribes them into a graph of their own, with constants in the place of
 * everything known, and runs that graph on the `reference` handler: shapes are small, and the reference
 * needs no compilation worth mentioning. An input of the model counts as known if it is set; using it
 * marks it (`decides`), because another value would need another recording (programs.c). Results are kept
 * in import->known, so a chain of shape arithmetic is not computed again from its beginning. */
#include "onnx/nodes/onnx.h"

#include <stdio.h>
#include <stdlib.h>

/* Elements of a result: far more than any shape or list of indices needs, and little enough for the
 * reference. */
#define MAXIMUM_KNOWN (1 << 24)
/* Elements of a value on the way to a result that is kept as well. In a loop that counts, the next condition
 * then begins where this one ended, and not at the first round. */
#define MAXIMUM_KEPT 64

/* The values that lead to one, by their numbers in the graph. Those in it have `copy` in import->known. */
typedef struct path {
    int32_t *items;
    size_t count, capacity;
} path;

/* Makes import->known long enough for this value. */
static sgm_status reserve(sgm__onnx_import *import, int32_t index)
{
    SGM_TRY(sgm__reserve(&import->known, &import->known_capacity, (size_t)index + 1, sizeof *import->known));
    while (import->known_count <= (size_t)index)
        import->known[import->known_count++] = (sgm__onnx_known_entry){NULL, { -1 }};
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

/* The tensor of a value that need not be computed: a constant, an input that is set. *tensor is NULL for an
 * ordinary operation. Fails for an input that is not set, and for a state, whose value may differ from run to
 * run. Nothing is retained. */
static sgm_status take_leaf(sgm__onnx_import *import, int32_t index, sgm_tensor **tensor)
{
    const sgm__instruction *instruction = &import->graph->instructions[index];
    *tensor = NULL;
    if (instruction->constant >= 0)
        *tensor = import->graph->constants[instruction->constant];
    else if (instruction->op == &sgm__op_input)
        return set_input(import, sgm__graph_string(import->graph, instruction->name), tensor);
    else if (instruction->op == &sgm__op_state)
        return sgm_fail(SGM_ERROR_STATE, "it comes from the state '%.100s', which changes",
                        sgm__graph_string(import->graph, instruction->name));
    return SGM_OK;
}

/* Appends a value to the path, unless it is there. A leaf becomes known. */
static sgm_status add(sgm__onnx_import *import, path *p, int32_t index)
{
    sgm__onnx_known_entry *entry = &import->known[index];
    sgm_tensor *leaf = NULL;
    if (sgm_value_exists(entry->copy))
        return SGM_OK;
    SGM_TRY(sgm__reserve(&p->items, &p->capacity, p->count + 1, sizeof *p->items));
    if (entry->tensor == NULL)
        SGM_TRY(take_leaf(import, index, &leaf));
    if (leaf != NULL)
        entry->tensor = sgm_tensor_retain(leaf);
    entry->copy = (sgm_value){0};
    p->items[p->count++] = index;
    return SGM_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* Finds what leads to value `last`, back to what is known. In the order of the graph operands come before
 * their instruction. */
static sgm_status find_path(sgm__onnx_import *import, int32_t last, path *p)
{
    const sgm_graph *graph = import->graph;
    SGM_TRY(add(import, p, last));
    for (size_t i = 0; i < p->count; i++) {
        const sgm__instruction *instruction = &graph->instructions[p->items[i]];
        for (int32_t k = 0; k < instruction->input_count && import->known[p->items[i]].tensor == NULL; k++)
            SGM_TRY(add(import, p, graph->operands[instruction->first_input + k].index));
    }
    if (p->items != NULL)
        qsort(p->items, p->count, sizeof *p->items, compare_numbers);
    return SGM_OK;
}

/* Copies one instruction into the slice, whose operands have been copied. Appended as it is, without the
 * broadcasting and casting of sgm_record: the graph's instructions have been through that. Labels and names
 * are offsets into the other graph's texts, so they are dropped. */
static sgm_value transcribe(sgm_graph *slice, const sgm__onnx_import *import,
                            const sgm__instruction *instruction)
{
    sgm_value *inputs = sgm__alloc((size_t)instruction->input_count * sizeof(sgm_value));
    if (inputs == NULL)
        return sgm__onnx_fail(slice);
    for (int32_t k = 0; k < instruction->input_count; k++)
        inputs[k] = import->known[import->graph->operands[instruction->first_input + k].index].copy;
    sgm__instruction copy = *instruction;
    copy.label = copy.name = 0;
    sgm_value value = sgm__graph_append(slice, &copy, inputs);
    sgm__free(inputs);
    return value;
}

/* The name of a value among the outputs of the slice. */
static const char *output_name(int32_t index, char text[16])
{
    snprintf(text, 16, "%d", index);
    return text;
}

/* Copies the path into the slice, with constants in the place of what is known. Outputs are the last value,
 * and others that are small. */
static sgm_status fill(sgm_graph *slice, const sgm__onnx_import *import, const path *p)
{
    char name[16];
    for (size_t i = 0; i < p->count; i++) {
        int32_t index = p->items[i];
        const sgm__instruction *instruction = &import->graph->instructions[index];
        sgm__onnx_known_entry *entry = &import->known[index];
        int64_t elements = sgm_shape_elements(&instruction->type.shape);
        if (entry->tensor != NULL) {
            entry->copy = sgm__onnx_constant(slice, sgm_tensor_retain(entry->tensor));
            continue;
        }
        entry->copy = transcribe(slice, import, instruction);
        if (i + 1 == p->count && elements > MAXIMUM_KNOWN)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "it has %lld elements; at most %d are computed before the run",
                            (long long)elements, MAXIMUM_KNOWN);
        if (i + 1 == p->count || elements <= MAXIMUM_KEPT)
            sgm_graph_add_output(slice, output_name(index, name), entry->copy);
    }
    return sgm_graph_status(slice);
}

/* Runs the slice and reads its outputs into import->known. */
static sgm_status run(sgm__onnx_import *import, const path *p, sgm_session *session, const sgm_graph *slice)
{
    char name[16];
    sgm_program *program = sgm_session_prepare(session, slice);
    if (program == NULL)
        return sgm__last_failure();
    SGM_TRY(sgm_session_run(session, program));
    for (size_t i = 0; i < p->count; i++) {
        const sgm_type *type = &import->graph->instructions[p->items[i]].type;
        if (!sgm_program_has_output(program, output_name(p->items[i], name)))
            continue;
        sgm_tensor *tensor = sgm_tensor_create(type->dtype, &type->shape);
        import->known[p->items[i]].tensor = tensor;
        if (tensor == NULL)
            return sgm__last_failure();
        SGM_TRY(sgm_session_read(session, program, name, tensor));
    }
    return SGM_OK;
}

/* Computes the last value of the path. */
static sgm_status compute(sgm__onnx_import *import, const path *p)
{
    sgm_graph *slice = sgm_graph_create();
    sgm_handler *handler = slice != NULL ? sgm_handler_create("reference", .threads = 1) : NULL;
    sgm_session *session = handler != NULL ? sgm_session_create(handler) : NULL;
    sgm_status status = session != NULL ? fill(slice, import, p) : sgm__last_failure();
    if (status == SGM_OK)
        status = run(import, p, session, slice);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(slice);
    return status;
}

/* Fills import->known[last]. Time and memory are those of the path, not of the graph. */
static sgm_status find_out(sgm__onnx_import *import, int32_t last)
{
    path p = {0};
    SGM_TRY(reserve(import, last));
    sgm_status status = find_path(import, last, &p);
    if (status == SGM_OK && import->known[last].tensor == NULL)
        status = compute(import, &p);
    for (size_t i = 0; i < p.count; i++)
        import->known[p.items[i]].copy = (sgm_value){-1};
    sgm__free(p.items);
    return status;
}

const sgm_tensor *sgm__onnx_known_value(sgm__onnx_import *import, sgm_value value)
{
    if (!sgm_value_exists(value) || import->graph->status != SGM_OK) {
        sgm_fail(SGM_ERROR_ARGUMENT, "it is missing");
        return NULL;
    }
    return find_out(import, value.index) == SGM_OK ? import->known[value.index].tensor : NULL;
}
