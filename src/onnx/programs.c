/* Compiled programs of a loaded model, one for each set of shapes: a model whose inputs differ in length from
 * call to call does not compile at each of them. The ones that were not used for the longest time go first.
 */
#include "onnx/onnx.h"

#define MAXIMUM_PROGRAMS 16
#define MAXIMUM_BYTES (512 << 20) /* of all but the newest: each has its own copy of the weights */

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

static bool equal_values(const sgm_tensor *a, const sgm_tensor *b)
{
    size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(a)) * sgm_dtype_size(sgm_tensor_dtype(a));
    return memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), bytes) == 0;
}

/* Whether what was recorded then is also right for what is set now. */
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

/* Remembers for which inputs the program is right, once recording has told which of them decide. */
static sgm_status note_inputs(const sgm_onnx *model, sgm__onnx_program *p)
{
    p->values = sgm__calloc(model->input_count + 1, sizeof *p->values);
    p->shapes = sgm__calloc(model->input_count + 1, sizeof *p->shapes);
    if (p->values == NULL || p->shapes == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < model->input_count; i++) {
        const sgm__onnx_input *input = &model->inputs[i];
        p->shapes[i] = *sgm_tensor_shape(input->set);
        p->values[i] = input->decides ? sgm_tensor_retain(input->set) : NULL;
    }
    return SGM_OK;
}

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
    p->program = sgm_session_prepare(p->session, model->graph);
    if (p->program == NULL)
        return sgm__last_failure();
    sgm_program_memory memory = sgm_program_memory_of(p->program);
    p->bytes = (size_t)(memory.constants + memory.state + memory.inputs + memory.arena);
    return SGM_OK;
}

/* Makes room for one more: those that ran the longest time ago go. */
static void drop_old(sgm_onnx *model)
{
    for (;;) {
        size_t oldest = 0, bytes = 0;
        for (size_t i = 0; i < model->program_count; i++) {
            bytes += model->programs[i].bytes;
            oldest = model->programs[i].run < model->programs[oldest].run ? i : oldest;
        }
        if (model->program_count < MAXIMUM_PROGRAMS && bytes <= MAXIMUM_BYTES)
            return;
        free_program(&model->programs[oldest], model->input_count);
        model->programs[oldest] = model->programs[--model->program_count];
    }
}

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
