/* Writes the code of a plan: chooses a writer for each step and puts the text together.
 *
 * sgm__device_code_create goes over the steps; elementwise steps go to code_elementwise.c, all others to the
 * writer in the table below. A step that cannot be written is marked for the host, and what it has added is
 * taken back. The functions that the kernels call are known only at the end, and are put in front.
 */
#include "handlers/device/code/code_internal.h"

/* Elements of an axis that argsort compares all with all, n^2 comparisons; longer ones are sorted on the
 * host. */
#define LONGEST_SORT 16384

/* An operation and the function that writes its kernels. */
typedef struct step_writer {
    const sgm_op *op;
    sgm_status (*write)(sgm__device_render *r, int32_t node);
} step_writer;

static const step_writer writers[] = {
    {&sgm__op_reduce_sum, sgm__device_write_reduction},
    {&sgm__op_reduce_max, sgm__device_write_reduction},
    {&sgm__op_reduce_min, sgm__device_write_reduction},
    {&sgm__op_arg_max, sgm__device_write_shared},
    {&sgm__op_arg_min, sgm__device_write_shared},
    {&sgm__op_cumulative_sum, sgm__device_write_shared},
    {&sgm__op_iota, sgm__device_write_shared},
    {&sgm__op_accuracy, sgm__device_write_accuracy},
    {&sgm__op_pad, sgm__device_write_pad},
    {&sgm__op_concatenate, sgm__device_write_concatenate},
    {&sgm__op_gather, sgm__device_write_gather},
    {&sgm__op_scatter_add, sgm__device_write_scatter},
    {&sgm__op_one_hot, sgm__device_write_one_hot},
    {&sgm__op_argsort, sgm__device_write_argsort},
    {&sgm__op_random_uniform, sgm__device_write_random},
    {&sgm__op_matmul, sgm__device_write_product},
    {&sgm__op_convolution, sgm__device_write_product},
    {&sgm__op_convolution_input_gradient, sgm__device_write_product},
    {&sgm__op_convolution_weights_gradient, sgm__device_write_product},
    {&sgm__op_max_pooling, sgm__device_write_shared},
    {&sgm__op_max_pooling_pick, sgm__device_write_shared},
    {&sgm__op_max_pooling_gradient, sgm__device_write_pooling},
    {&sgm__op_average_pooling, sgm__device_write_shared},
    {&sgm__op_average_pooling_gradient, sgm__device_write_pooling},
    {&sgm__op_softmax, sgm__device_write_rows},
    {&sgm__op_log_softmax, sgm__device_write_rows},
    {&sgm__op_softmax_cross_entropy, sgm__device_write_rows},
    {&sgm__op_softmax_cross_entropy_gradient, sgm__device_write_rows},
    {&sgm__op_layer_norm, sgm__device_write_rows},
    {&sgm__op_layer_norm_gradient, sgm__device_write_rows},
    {&sgm__op_rms_norm, sgm__device_write_rows},
    {&sgm__op_rms_norm_gradient, sgm__device_write_rows},
};

static const step_writer *find_writer(const sgm_op *op)
{
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (writers[i].op == op)
            return &writers[i];
    return NULL;
}

bool sgm__device_code_has(const sgm_op *op)
{
    return find_writer(op) != NULL || sgm__source_has_formula(op);
}

/* --- steps --- */

/* Operations that must report an index out of range. */
static bool reads_indices(const sgm__node *node)
{
    return node->op == &sgm__op_gather || node->op == &sgm__op_scatter_add || node->op == &sgm__op_one_hot;
}

/* Whether the device has the types of the step's results and operands. */
static bool has_types(const sgm__device_render *r, const sgm__step *step)
{
    bool has = true;
    for (int32_t p = 0; p < step->count && !r->info->has_float64; p++) {
        int32_t number = r->writer.plan->order[step->first + p];
        const sgm__node *node = sgm__device_node(r, number);
        has = has && node->type.dtype != SGM_FLOAT64;
        for (int32_t k = 0; k < node->input_count; k++)
            has = has && sgm__device_operand(r, number, k)->type.dtype != SGM_FLOAT64;
    }
    return has;
}

/* Whether the step has a writer, and the device its types. */
static bool is_written_here(const sgm__device_render *r, int32_t s)
{
    const sgm__plan *plan = r->writer.plan;
    const sgm__step *step = &plan->steps[s];
    const sgm__node *node = &plan->nodes[plan->order[step->first]];
    if (!has_types(r, step))
        return false;
    if (step->kind == SGM__STEP_KERNEL)
        return find_writer(node->op) != NULL &&
               (node->op != &sgm__op_argsort ||
                node->type.shape.dims[node->attributes.integers[0]] <= LONGEST_SORT);
    bool known = true;
    for (int32_t p = 0; p < step->count; p++) {
        const sgm_op *op = plan->nodes[plan->order[step->first + p]].op;
        known = known && (sgm__source_has_formula(op) || op == &sgm__op_random_uniform);
    }
    return known;
}

/* A step with a kernel has one node, which finds its writer. */
static sgm_status write_kernels(sgm__device_render *r, int32_t s)
{
    const sgm__plan *plan = r->writer.plan;
    const sgm__step *step = &plan->steps[s];
    int32_t node = plan->order[step->first];
    if (step->kind == SGM__STEP_ELEMENTWISE)
        return sgm__device_write_elementwise(r, s);
    return find_writer(plan->nodes[node].op)->write(r, node);
}

/* The first operations of a step and its shape, for the comment before its kernels. */
static void describe(sgm__device_render *r, const sgm__step *step, sgm__text *text)
{
    const sgm__plan *plan = r->writer.plan;
    char shape[128];
    for (int32_t p = 0; p < step->count && p < 4; p++)
        sgm__text_append(text, "%s%s", p > 0 ? ", " : "", plan->nodes[plan->order[step->first + p]].op->name);
    sgm__text_append(text, "%s -> %s", step->count > 4 ? ", ..." : "",
                     sgm_shape_text(&plan->nodes[plan->order[step->first]].type.shape, shape, sizeof shape));
    r->about = text->data != NULL ? text->data : "";
}

/* Writes one step. Steps without elements compute nothing, but indices must be checked even if the result is
 * empty. What a step that fails has added is taken back, but for the marks of functions that it needed, which
 * do no harm. */
static sgm_status write_step(sgm__device_render *r, int32_t s)
{
    const sgm__plan *plan = r->writer.plan;
    const sgm__step *step = &plan->steps[s];
    const sgm__node *node = &plan->nodes[plan->order[step->first]];
    sgm__device_step *made = &r->code->steps[s];
    *made = (sgm__device_step){.kind = SGM__DEVICE_HOST, .first_call = r->call_count};
    if (!is_written_here(r, s))
        return SGM_OK;
    made->kind = SGM__DEVICE_NOTHING;
    if (sgm_shape_elements(&node->type.shape) == 0 && !reads_indices(node))
        return SGM_OK;
    made->kind = SGM__DEVICE_HOST;
    int32_t argument_count = r->argument_count, kernel_count = r->code->kernel_count;
    size_t length = r->kernels_text.length;
    sgm__text about = {0};
    describe(r, step, &about);
    r->scratch = 0;
    r->writer.failed = false;
    sgm_status status = write_kernels(r, s);
    if (status == SGM_OK && !r->writer.failed) {
        made->call_count = r->call_count - made->first_call;
        made->kind = made->call_count == 0         ? SGM__DEVICE_NOTHING
                     : node->op == &sgm__op_matmul ? SGM__DEVICE_PRODUCT
                                                   : SGM__DEVICE_CALLS;
    } else {
        r->call_count = made->first_call;
        r->argument_count = argument_count;
        r->code->kernel_count = kernel_count;
        r->kernels_text.length = length;
    }
    sgm__text_free(&about);
    return status;
}

/* --- all of them --- */

/* Computes where kernels will begin when their text stands behind the functions. */
static sgm_status note_kernels(const sgm__device_render *r)
{
    sgm__device_code *code = r->code;
    code->kernel_at = sgm__calloc((size_t)code->kernel_count + 1, sizeof *code->kernel_at);
    if (code->kernel_at == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t k = 0; k < code->kernel_count; k++)
        code->kernel_at[k] = code->source.length + r->kernels[k].begin;
    code->kernel_at[code->kernel_count] = code->source.length + r->kernels_text.length;
    return SGM_OK;
}

/* Writes all steps. can_fault must be known before the first, as it changes all kernels that write states. */
static sgm_status write_steps(sgm__device_render *r)
{
    const sgm__plan *plan = r->writer.plan;
    bool wide = false;
    for (int32_t i = 0; i < plan->node_count; i++)
        r->can_fault = r->can_fault || reads_indices(&plan->nodes[i]);
    SGM_TRY(sgm__source_note_steps(&r->writer));
    for (int32_t s = 0; s < plan->step_count; s++)
        SGM_TRY(write_step(r, s));
    for (int32_t i = 0; i < plan->node_count && r->info->has_float64; i++)
        wide = wide || plan->nodes[i].type.dtype == SGM_FLOAT64;
    if (r->code->kernel_count == 0)
        return SGM_OK;
    sgm__device_write_functions(r->writer.functions, wide, &r->code->source);
    SGM_TRY(note_kernels(r));
    sgm__text_append_bytes(&r->code->source, r->kernels_text.data, r->kernels_text.length);
    return r->code->source.failed || r->kernels_text.failed ? SGM_ERROR_MEMORY : SGM_OK;
}

/* The prefix "sgm" and float stand for what the writer of C takes from its request. */
sgm_status sgm__device_code_create(const sgm__plan *plan, const sgm_device_info *info,
                                   sgm__device_code **code)
{
    static const sgm__source_request request = {.name = "sgm", .real = SGM_FLOAT32};
    sgm__device_render *r = sgm__calloc(1, sizeof *r);
    sgm__device_code *made = sgm__calloc(1, sizeof *made);
    if (made != NULL)
        made->steps = sgm__calloc((size_t)plan->step_count + 1, sizeof *made->steps);
    sgm_status status = SGM_ERROR_MEMORY;
    if (r != NULL && made != NULL && made->steps != NULL) {
        r->writer.dialect = sgm__device_dialect(plan);
        r->writer.request = &request;
        r->writer.plan = plan;
        memcpy(r->writer.real, "float", sizeof "float");
        r->info = info;
        r->code = made;
        status = write_steps(r);
        sgm__free(r->writer.step_of);
        sgm__free(r->kernels);
        sgm__text_free(&r->writer.text);
        sgm__text_free(&r->kernels_text);
    }
    sgm__free(r);
    if (status == SGM_OK)
        *code = made;
    else
        sgm__device_code_free(made);
    return status;
}

void sgm__device_code_free(sgm__device_code *code)
{
    if (code == NULL)
        return;
    sgm__text_free(&code->source);
    sgm__free(code->kernel_at);
    sgm__free(code->steps);
    sgm__free(code->calls);
    sgm__free(code->arguments);
    sgm__free(code);
}
