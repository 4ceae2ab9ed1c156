/* Compiles plans into lists of steps.
 *
 * Each step of a plan (built in src/handlers/plan) becomes either compiled elementwise code
 * (elementwise/step.h) or a call of a kernel (run/kernels.c) or of the operation's own loop; then this looks
 * for steps that can run together (fused.c, summed.c), decides which are shared among threads (cost.c) and
 * which may be under way at once (flow.c), and allocates one block of scratch memory. */
#include "handlers/cpu/elementwise/assembler.h"
#include "handlers/cpu/elementwise/step.h"
#include "handlers/cpu/kernels/kernels.h"
#include "handlers/cpu/product/matmul.h"
#include "handlers/cpu/run/executable.h"
#include "handlers/cpu/run/packed_store.h"

/* Share of a program's estimated time that threads have to save: for less, the other processors are better
 * left to other programs. */
#define MINIMUM_GAIN 0.05
/* Bytes after each area of scratch memory: vector loops may read to the end of a vector. */
#define PADDING 64

/* Also frees executables that were half compiled. */
void sgm__cpu_discard(void *self, void *compiled)
{
    sgm__executable *e = compiled;
    if (e == NULL)
        return;
    for (int32_t i = 0; i < e->step_count; i++) {
        sgm__bound_free(e->steps[i].bound);
        sgm__elementwise_free(e->steps[i].elementwise);
        sgm__fused_free(e->steps[i].fused);
        sgm__summed_free(e->steps[i].summed);
        if (e->steps[i].plan != NULL && e->steps[i].kernel->discard != NULL)
            e->steps[i].kernel->discard(e->steps[i].plan);
        sgm__free(e->steps[i].plan);
    }
    sgm__packings_free(self, &e->packings);
    sgm__free(e->steps);
    sgm__free(e->flow);
    sgm__free(e->arrays);
    sgm__free(e->memory);
    sgm__free_aligned(e->scratch);
    sgm__code_unmap(e->code, e->code_size);
    sgm__free(e);
}

/* The node's value as kernels see it, without an address. */
static sgm_array array_of(const sgm__node *node)
{
    sgm_array array = {.dtype = node->type.dtype, .shape = node->type.shape};
    memcpy(array.strides, node->place.strides, sizeof array.strides);
    return array;
}

/* Appends arrays of the step's operands and of its result to e->arrays, from `*used` on. */
static void add_arrays(sgm__executable *e, sgm__cpu_step *step, int32_t *used)
{
    const sgm__node *node = &e->plan->nodes[step->node];
    step->first_array = *used;
    for (int32_t k = 0; k < node->input_count; k++)
        e->arrays[(*used)++] = array_of(&e->plan->nodes[e->plan->operands[node->first_input + k]]);
    e->arrays[(*used)++] = array_of(node);
}

/* The call's `inputs` point into e->arrays; set_addresses fills in their addresses there, and that of
 * `output`, which is a copy, in the call. */
static sgm__cpu_call call_of(sgm__cpu *cpu, const sgm__executable *e, const sgm__cpu_step *step)
{
    const sgm__node *node = &e->plan->nodes[step->node];
    sgm_array *arrays = e->arrays + step->first_array;
    return (sgm__cpu_call){.cpu = cpu,
                           .node = node,
                           .inputs = arrays,
                           .input_count = node->input_count,
                           .output = arrays[node->input_count],
                           .limits = SGM__NO_LIMITS};
}

/* Finds and plans the kernel of a step that is one operation. A kernel that does not accept the operands
 * gives way to the operation's own loop; having neither is an error. */
static sgm_status compile_kernel(sgm__cpu *cpu, sgm__executable *e, sgm__cpu_step *step, size_t *scratch)
{
    const sgm__node *node = &e->plan->nodes[step->node];
    sgm__cpu_call *call = &step->call;
    *call = call_of(cpu, e, step);
    step->kernel = sgm__cpu_find_kernel(cpu, node->op, node->type.dtype,
                                        node->input_count > 0 ? call->inputs[0].dtype : node->type.dtype);
    if (step->kernel != NULL && step->kernel->accepts != NULL && !step->kernel->accepts(call))
        step->kernel = NULL;
    if (step->kernel == NULL && node->op->forward == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "operation %s for %s has no kernel on the cpu handler",
                        node->op->name, sgm_dtype_name(node->type.dtype));
    SGM_TRY(sgm__packings_give(&e->packings, e->plan, step->kernel, call));
    if (step->kernel != NULL && step->kernel->scratch != NULL)
        *scratch = step->kernel->scratch(call);
    if (step->kernel == NULL || step->kernel->plan == NULL)
        return SGM_OK;
    step->plan = sgm__calloc(1, step->kernel->plan_size);
    if (step->plan == NULL)
        return SGM_ERROR_MEMORY;
    call->plan = step->plan;
    return step->kernel->plan(call, step->plan);
}

/* Compiles one step by itself. `arrays`: how many of e->arrays are used; `maximum`: the largest scratch
 * memory so far, which all steps share. */
static sgm_status compile_step(sgm__cpu *cpu, sgm__executable *e, int32_t index, sgm__assembler *assembler,
                               int32_t *arrays, size_t *maximum)
{
    const sgm__step *step = &e->plan->steps[index];
    sgm__cpu_step *to = &e->steps[index];
    size_t scratch = 0;
    to->partner = to->product = to->packer = -1;
    if (step->kind == SGM__STEP_ELEMENTWISE) {
        SGM_TRY(sgm__elementwise_compile(cpu, e->plan, step, cpu->interprets ? NULL : assembler,
                                         &to->elementwise));
        SGM_TRY(sgm__bound_create(cpu, to->elementwise, &to->bound));
        scratch = sgm__elementwise_scratch(to->elementwise);
    } else {
        to->node = e->plan->order[step->first];
        add_arrays(e, to, arrays);
        SGM_TRY(compile_kernel(cpu, e, to, &scratch));
        to->done = sgm__cpu_is_put_together(e->plan, &e->plan->nodes[to->node]);
    }
    *maximum = scratch > *maximum ? scratch : *maximum;
    return SGM_OK;
}

/* Finds kernels that can run together with the one elementwise step that reads their result. That reader then
 * leads: it comes later in the plan, and does both. */
static sgm_status fuse_steps(sgm__cpu *cpu, sgm__executable *e, size_t *maximum)
{
    for (int32_t i = 0; i < e->step_count; i++) {
        const sgm__cpu_step *step = &e->steps[i];
        int32_t reader = step->kernel != NULL ? sgm__fused_find(e->plan, i, step->kernel, &step->call) : -1;
        if (reader < 0 || e->steps[reader].fused != NULL)
            continue;
        SGM_TRY(sgm__fused_create(cpu, e->plan, i, step->kernel, &step->call, reader,
                                  e->steps[reader].elementwise, &e->steps[reader].fused));
        if (e->steps[reader].fused == NULL)
            continue;
        e->steps[i].partner = reader;
        e->steps[reader].partner = i;
        size_t scratch = sgm__fused_scratch(e->steps[reader].fused, cpu);
        *maximum = scratch > *maximum ? scratch : *maximum;
    }
    return SGM_OK;
}

/* Finds sums that can run together with the elementwise step just before them, and perhaps the product before
 * that. The sum leads. After fuse_steps, whose pairs are left alone. */
static sgm_status fuse_sums(sgm__cpu *cpu, sgm__executable *e, size_t *maximum)
{
    for (int32_t i = 1; i < e->step_count; i++) {
        sgm__cpu_step *sum = &e->steps[i], *before = sum - 1;
        if (sum->kernel != &sgm__cpu_reduce_sum || before->elementwise == NULL || before->bound != NULL ||
            before->partner >= 0 || !sgm__summed_is_possible(e->plan, i))
            continue;
        SGM_TRY(sgm__summed_create(e->plan, &sum->call, before->elementwise, &sum->summed));
        if (sum->summed == NULL)
            continue;
        sum->partner = i - 1;
        before->partner = i;
        sgm__cpu_step *product = i > 1 ? sum - 2 : NULL;
        if (product != NULL && product->kernel == &sgm__cpu_matmul && product->partner < 0 &&
            sgm__summed_add_product(cpu, e->plan, i, &product->call, sum->summed)) {
            product->partner = i;
            sum->product = i - 2;
        }
        size_t scratch = sgm__summed_scratch(sum->summed, cpu);
        *maximum = scratch > *maximum ? scratch : *maximum;
    }
    return SGM_OK;
}

/* Finds products by one operand that read it as panels which are packed once in a run. Those that run
 * together with other steps are left alone. */
static sgm_status share_packings(sgm__executable *e)
{
    size_t count = (size_t)e->step_count + 1;
    sgm__cpu_call **calls = sgm__calloc(count, sizeof *calls);
    int32_t *packers = sgm__calloc(count, sizeof *packers);
    sgm_status status = calls != NULL && packers != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < e->step_count && status == SGM_OK; i++)
        if (e->steps[i].kernel == &sgm__cpu_matmul && e->steps[i].partner < 0 &&
            e->steps[i].call.packed == NULL && sgm__cpu_matmul.packed_bytes(&e->steps[i].call) > 0)
            calls[i] = &e->steps[i].call;
    if (status == SGM_OK)
        status = sgm__packings_share(&e->packings, e->plan, calls, e->step_count, packers);
    for (int32_t i = 0; i < e->step_count && status == SGM_OK; i++)
        e->steps[i].packer = packers[i];
    sgm__free(calls);
    sgm__free(packers);
    return status;
}

/* Marks the results of a shared step: all threads write them. */
static void note_spread(const sgm__executable *e, int32_t step, bool *spread)
{
    for (int32_t i = 0; i < e->plan->steps[step].count; i++)
        spread[e->plan->order[e->plan->steps[step].first + i]] = true;
}

/* Decides for each step whether it is shared, and sums up the program's estimates. `*worth`: threads save at
 * least MINIMUM_GAIN of the program's time, or a step whose cost is not known might gain. `spread` is false
 * for all nodes on entry. */
static void choose_sharing(const sgm__cpu *cpu, sgm__executable *e, bool *spread, bool *worth)
{
    bool unknown = cpu->shares_all;
    for (int32_t i = 0; i < e->step_count; i++) {
        sgm__cpu_step *step = &e->steps[i];
        if (step->partner >= 0 && !sgm__cpu_leads(step))
            continue; /* the step that leads counts this one, too */
        int32_t partner = sgm__cpu_leads(step) ? step->partner : -1;
        sgm__cost cost = sgm__cost_of(cpu, e->plan, i, partner, step->product, spread);
        bool known = sgm__cost_is_known(e->plan, i) && (partner < 0 || sgm__cost_is_known(e->plan, partner));
        bool gains = cost.shared < cost.alone && step->bound == NULL;
        step->alone = step->bound != NULL || (known && !gains && !cpu->shares_all);
        unknown = unknown || (!known && gains);
        e->cost.alone += cost.time;
        e->cost.shared += gains ? cost.shared : cost.alone;
        if (!step->alone)
            note_spread(e, i, spread);
    }
    *worth = unknown || e->cost.shared < e->cost.alone * (1 - MINIMUM_GAIN);
}

/* Decides which steps may be under way together. Leaves e->flow NULL where one thread is as good. */
static sgm_status plan_flow(const sgm__cpu *cpu, sgm__executable *e)
{
    bool worth = false, *spread = sgm__calloc((size_t)e->plan->node_count + 1, sizeof *spread);
    if (spread == NULL)
        return SGM_ERROR_MEMORY;
    choose_sharing(cpu, e, spread, &worth);
    sgm__free(spread);
    if (cpu->threads == 1 || !worth)
        return SGM_OK;
    e->flow = sgm__calloc((size_t)e->step_count + 1, sizeof *e->flow);
    if (e->flow == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < e->step_count; i++) {
        const sgm__cpu_step *step = &e->steps[i];
        /* The step that leads does this one: no step waits for it. */
        bool left_out = step->partner >= 0 && !sgm__cpu_leads(step);
        bool posts = step->elementwise != NULL || (step->kernel != NULL && step->kernel->posts);
        e->flow[i].posts = posts && !left_out && !step->alone;
        e->flow[i].partner = sgm__cpu_leads(step) ? step->partner : -1;
        e->flow[i].product = step->product;
        e->flow[i].packer = step->packer;
    }
    sgm__flow_plan(e->plan, e->flow);
    return SGM_OK;
}

/* One area that all waiting steps share, and SGM__FLOW_AREAS more that steps take in turn which may be under
 * way together. */
static sgm_status give_scratch(sgm__executable *e, size_t bytes)
{
    size_t area = sgm__align(bytes + PADDING);
    e->scratch = sgm__alloc_aligned(e->flow != NULL ? area * (SGM__FLOW_AREAS + 1) : area);
    if (e->scratch == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < e->step_count; i++) {
        sgm__cpu_step *step = &e->steps[i];
        bool posts = e->flow != NULL && e->flow[i].posts;
        step->scratch = e->scratch + (posts ? area * (size_t)(1 + e->flow[i].area) : 0);
        step->call.scratch = step->scratch;
    }
    return SGM_OK;
}

/* Makes the assembled code runnable. Where the system gives no memory for code, steps stay interpreted. */
static void set_code(sgm__executable *e, const sgm__assembler *assembler)
{
    e->code = sgm__code_map(assembler, &e->code_size);
    for (int32_t i = 0; i < e->step_count && e->code != NULL; i++)
        if (e->steps[i].elementwise != NULL)
            sgm__elementwise_set_code(e->steps[i].elementwise, e->code);
}

/* The order of these phases matters: sums are fused after products, sharing is chosen knowing what runs
 * together, and scratch memory is allocated when its largest user is known. */
static sgm_status compile_steps(sgm__cpu *cpu, sgm__executable *e, sgm__assembler *assembler)
{
    int32_t arrays = 0;
    size_t scratch = 0;
    for (int32_t i = 0; i < e->step_count; i++)
        SGM_TRY(compile_step(cpu, e, i, assembler, &arrays, &scratch));
    set_code(e, assembler);
    SGM_TRY(fuse_steps(cpu, e, &scratch));
    SGM_TRY(fuse_sums(cpu, e, &scratch));
    SGM_TRY(share_packings(e));
    sgm__packings_fill_others(e);
    SGM_TRY(plan_flow(cpu, e));
    return give_scratch(e, scratch);
}

sgm_status sgm__cpu_compile(void *self, const sgm__plan *plan, void **compiled)
{
    sgm__executable *e = sgm__calloc(1, sizeof *e);
    if (e == NULL)
        return SGM_ERROR_MEMORY;
    *e = (sgm__executable){.plan = plan};
    e->steps = sgm__calloc((size_t)plan->step_count + 1, sizeof *e->steps);
    e->arrays = sgm__calloc((size_t)plan->operand_count + (size_t)plan->node_count + 1, sizeof *e->arrays);
    e->memory = sgm__calloc((size_t)plan->input_count + (size_t)plan->state_count + 2, sizeof *e->memory);
    sgm_status status =
        e->steps == NULL || e->arrays == NULL || e->memory == NULL ? SGM_ERROR_MEMORY : SGM_OK;
    e->step_count = e->steps == NULL ? 0 : plan->step_count;
    sgm__assembler assembler = {0};
    if (status == SGM_OK)
        status = compile_steps(self, e, &assembler);
    sgm__assembler_free(&assembler);
    if (status == SGM_OK)
        *compiled = e;
    else
        sgm__cpu_discard(self, e);
    return status;
}

/* For the text of `sigma info` and the log: in seconds. */
void sgm__cpu_estimate(void *self, const void *compiled, sgm__estimate *to)
{
    const sgm__cpu *cpu = self;
    const sgm__executable *e = compiled;
    *to = (sgm__estimate){.threads = e->flow != NULL ? cpu->threads : 1,
                          .of_threads = cpu->threads,
                          .alone = e->cost.alone * 1e-9,
                          .shared = e->cost.shared * 1e-9,
                          .packed = (int64_t)sgm__packings_kept(&e->packings),
                          .packed_by_all = (int64_t)sgm__packed_store_bytes(cpu->store)};
}
