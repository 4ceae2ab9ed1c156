/* Compiled programs of a loaded model, one for each set of input shapes.
 *
 * A model whose inputs differ in length from call to call (texts) would otherwise be recorded and compiled
 * at each call. sgm_onnx_run calls sgm__onnx_prepare, which looks for a program that fits, else records
 * (import.c) and compiles one. Values of inputs matter only where recording used them (Reshape's shape):
 * such values are part of the comparison.
 *
 * The least recently used programs are dropped when there are too many, or when they take too much memory. */
#include "handlers/session.h"
#include "onnx/nodes/onnx.h"

/* The array has this size from the beginning, so that model->newest, which points into it, stays valid. */
#define MAXIMUM_PROGRAMS 16
/* Memory of all programs but the newest. Each has a session, and so a copy of the model's constants, but for
 * those that are packed: these are kept once for all that pack them alike (packed_store.h). */
#define MAXIMUM_BYTES (512 << 20)

/* Also for a program that was made in part: what is missing is NULL. */
static void free_program(sgm__onnx_program *p, size_t input_count)
{
    for (size_t i = 0; p->values != NULL && i < input_count; i++)
        sgm_tensor_free(p->values[i]);
    sgm__free(p->values);
    sgm__free(p->shapes);
    sgm_session_free(p->session);
}

void sgm__onnx_free_programs(sgm_onnx *model)
{
    for (size_t i = 0; i < model->program_count; i++)
        free_program(&model->programs[i], model->input_count);
    sgm__free(model->programs);
}

/* For tensors of equal shape and type. Bit for bit: a NaN equals itself here, and 0 differs from -0, which
 * costs at worst a compilation. */
static bool equal_values(const sgm_tensor *a, const sgm_tensor *b)
{
    size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(a)) * sgm_dtype_size(sgm_tensor_dtype(a));
    return memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), bytes) == 0;
}

/* Whether a program that was recorded earlier is right for the inputs that are set. */
static bool fits(const sgm_onnx *model, const sgm__onnx_program *p)
{
    for (size_t i = 0; i < model->input_count; i++) {
        const sgm_tensor *set = model->inputs[i].set;
        if (!sgm_shape_equal(&p->shapes[i], sgm_tensor_shape(set)) ||
            (p->values[i] != NULL && !equal_values(p->values[i], set)))
            return false;
    }
    return true;
}

/* Remembers for which inputs the program is right. Called after recording, which has marked the inputs
 * whose values it used (`decides`). The tensors are retained, not copied: sgm_onnx_set writes into no
 * tensor that is `kept`. */
static sgm_status note_inputs(sgm_onnx *model, sgm__onnx_program *p)
{
    p->values = sgm__calloc(model->input_count + 1, sizeof *p->values);
    p->shapes = sgm__calloc(model->input_count + 1, sizeof *p->shapes);
    if (p->values == NULL || p->shapes == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < model->input_count; i++) {
        sgm__onnx_input *input = &model->inputs[i];
        p->shapes[i] = *sgm_tensor_shape(input->set);
        input->kept = input->kept || input->decides;
        p->values[i] = input->decides ? sgm_tensor_retain(input->set) : NULL;
    }
    return SGM_OK;
}

/* Records and compiles a program for the inputs that are set, in a session of its own. */
static sgm_status make(sgm_onnx *model, sgm__onnx_program *p)
{
    p->session = sgm_session_create(model->handler);
    if (p->session == NULL)
        return sgm__last_failure();
    for (size_t i = 0; i < model->input_count; i++)
        model->inputs[i].decides = false;
    sgm_graph_clear(model->graph);
    SGM_TRY(sgm_onnx_import(model, model->graph, 0));
    SGM_TRY(note_inputs(model, p));
    p->program =
        sgm__session_prepare_as(p->session, model->graph, NULL, model->int8 ? SGM__INFERENCE_INT8 : 0);
    if (p->program == NULL)
        return sgm__last_failure();
    sgm_program_memory memory = sgm_program_get_memory(p->program);
    p->bytes = (size_t)(memory.constants + memory.state + memory.inputs + memory.arena);
    return SGM_OK;
}

/* The memory that a new program cannot share: that of each program alone, and what only others than the last
 * one to run have packed. The new one, of other lengths, mostly packs as that one does. */
static int64_t count_bytes(const sgm_onnx *model)
{
    const sgm__onnx_program *last = model->programs;
    int64_t bytes = 0;
    for (size_t i = 0; i < model->program_count; i++) {
        bytes += (int64_t)model->programs[i].bytes;
        last = model->programs[i].run > last->run ? &model->programs[i] : last;
    }
    sgm_program_memory memory = sgm_program_get_memory(model->program_count > 0 ? last->program : NULL);
    return bytes + (memory.packed < memory.packed_by_all ? memory.packed_by_all - memory.packed : 0);
}

/* Frees the least recently used programs until one more has a place, and those that stay take at most
 * MAXIMUM_BYTES. Called before the new one is made, so its memory is not counted. The last entry moves
 * into the gap; nothing points to it then, as sgm_onnx_run has reset model->newest. */
static void drop_old(sgm_onnx *model)
{
    while (model->program_count == MAXIMUM_PROGRAMS || count_bytes(model) > MAXIMUM_BYTES) {
        size_t oldest = 0;
        for (size_t i = 0; i < model->program_count; i++)
            oldest = model->programs[i].run < model->programs[oldest].run ? i : oldest;
        free_program(&model->programs[oldest], model->input_count);
        model->programs[oldest] = model->programs[--model->program_count];
    }
}

/* A program that fails to be made leaves no trace. One that is found or made becomes the newest by
 * model->runs. */
sgm__onnx_program *sgm__onnx_prepare(sgm_onnx *model)
{
    sgm__onnx_program *found = NULL, made = {0};
    for (size_t i = 0; i < model->program_count && found == NULL; i++)
        found = fits(model, &model->programs[i]) ? &model->programs[i] : NULL;
    if (found == NULL && model->programs == NULL)
        model->programs = sgm__calloc(MAXIMUM_PROGRAMS, sizeof *model->programs);
    if (model->programs == NULL)
        return NULL;
    if (found == NULL) {
        drop_old(model);
        if (make(model, &made) != SGM_OK) {
            free_program(&made, model->input_count);
            return NULL;
        }
        found = &model->programs[model->program_count++];
        *found = made;
    }
    found->run = ++model->runs;
    return found;
}
