/* The cpu handler: opens and describes itself, compiles plans into lists of steps, and runs them.
 *
 * `compile` makes of each step of a plan (built in src/handlers/plan) either compiled elementwise code
 * (elementwise/step.h) or a call of a kernel (run/kernels.c) or of the operation's own loop; then it looks
 * for steps that can run together (fused.c, summed.c), decides which are shared among threads (cost.c) and
 * which may be under way at once (flow.c), and allocates one block of scratch memory. `run` goes through the
 * list and allocates nothing. The interface that sessions call is sgm__handler_type in
 * src/handlers/handler.h, filled in at the end of this file.
 *
 * Runs of one handler exclude each other (`busy`), as they share the pool. Memory of values belongs to the
 * session; an executable owns the rest. */
#include "handlers/cpu/elementwise/assembler.h"
#include "handlers/cpu/elementwise/step.h"
#include "handlers/cpu/flush.h"
#include "handlers/cpu/kernels/kernels.h"
#include "handlers/cpu/product/dense.h"
#include "handlers/cpu/product/matmul.h"
#include "handlers/cpu/product/onednn.h"
#include "handlers/cpu/product/quantized.h"
#include "handlers/cpu/run/cost.h"
#include "handlers/cpu/run/program.h"
#include "handlers/host.h"

/* Share of a program's estimated time that threads have to save: for less, the other processors are better
 * left to other programs. */
#define MINIMUM_GAIN 0.05
/* Bytes after each area of scratch memory: vector loops may read to the end of a vector. */
#define PADDING 64

/* A step of the plan, ready to run. Members that do not apply to its kind are NULL. */
typedef struct compiled_step {
    sgm__elementwise *elementwise; /* NULL: the step is one operation, `node` */
    sgm__bound *bound;             /* the same elementwise step with addresses; NULL: more than one tile */
    const sgm__cpu_kernel *kernel; /* NULL: the operation's own loop */
    void *plan;                    /* what the kernel's `plan` filled in; owned */
    int32_t node;
    int32_t first_array; /* in executable->arrays */
    /* Elementwise: how to run it together with the kernel of step `partner`. NULL: each alone. */
    sgm__fused *fused;
    /* A sum: how to run it together with the elementwise step `partner`. NULL: each alone. */
    sgm__summed *summed;
    /* The step that this one can do too, or that can do this one (`leads` tells which); -1: none. */
    int32_t partner;
    /* A sum: another step, a product, that it can do, too; -1: none. */
    int32_t product;
    sgm__cpu_call call;     /* of a kernel or of the operation's own loop */
    unsigned char *scratch; /* the step's area of executable->scratch */
    bool alone;             /* one thread is estimated to be faster */
    int64_t posted;         /* how many loops the pool had after this step, in the newest run */
    bool done;              /* nothing to do: the steps before wrote their results here (a concatenation) */
    int32_t packer;         /* the step that packs the second operand in each run; -1: none does */
} compiled_step;

/* A compiled program. Only one run at a time uses it, with sgm__cpu.busy held. */
typedef struct executable {
    const sgm__plan *plan;
    compiled_step *steps;
    int32_t step_count;
    /* Operands and results of all steps that are one operation; `data` is set by `set_addresses`. */
    sgm_array *arrays;
    /* The addresses that the newest run had: arena, constants, inputs, states. */
    void **memory;
    /* For each step, which earlier step it waits for. NULL: the program runs with one thread, one step after
     * the other. */
    sgm__flow *flow;
    /* Estimates for the whole program: `alone` with one thread, `shared` as the steps are run. */
    sgm__cost cost;
    unsigned char *scratch;
    sgm__packings packings; /* of operands that are constant or read often */
    void *code;             /* machine code of all elementwise steps; NULL: none */
    size_t code_size;
} executable;

/* --- the handler --- */

static void close_cpu(void *self)
{
    sgm__cpu *cpu = self;
    if (cpu == NULL)
        return;
    sgm__pool_free(cpu->pool);
    sgm__dense_free(cpu->dense);
    sgm__onednn_free(cpu->onednn);
    pthread_mutex_destroy(&cpu->busy);
    sgm__free(cpu);
}

/* On failure the error is set by whatever failed: an unknown instruction set, library, or number of threads.
 */
static sgm_status open_cpu(const sgm_handler_options *options, void **self)
{
    sgm__cpu *cpu = sgm__calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return SGM_ERROR_MEMORY;
    pthread_mutex_init(&cpu->busy, NULL);
    cpu->interprets = options->no_machine_code || !sgm__code_allowed();
    cpu->told = options->no_machine_code;
    cpu->keeps_subnormals = options->keep_subnormals;
    cpu->exact = options->exact;
    const sgm__vector *vector =
        options->instructions != NULL ? sgm__vector_named(options->instructions) : sgm__vector_best();
    if (vector != NULL) {
        cpu->table = *vector;
        cpu->table.approximate = options->approximate;
        cpu->vector = &cpu->table;
        cpu->int8 = sgm__int8_tiles_for(cpu->vector);
    }
    cpu->dense = vector != NULL ? sgm__dense_create(options->dense) : NULL;
    bool good = cpu->dense != NULL && sgm__cpu_choose_bfloat16(cpu, options) == SGM_OK;
    cpu->pool = good ? sgm__pool_create(options->threads, options->keep_subnormals) : NULL;
    if (cpu->pool == NULL) {
        close_cpu(cpu);
        return sgm_last_status();
    }
    cpu->threads = sgm__pool_threads(cpu->pool);
    *self = cpu;
    return SGM_OK;
}

/* Fails if the options name an instruction set or a library that does not exist. A library that exists may
 * still not be installed on this computer. */
sgm_status sgm__cpu_check(const sgm_handler_options *options)
{
    if (options->instructions != NULL && sgm__vector_named(options->instructions) == NULL)
        return sgm__last_failure();
    SGM_TRY(sgm__cpu_check_bfloat16(options->bfloat16));
    return sgm__dense_check(options->dense);
}

/* The processor's name as /proc/cpuinfo gives it; "" if it does not. */
static void processor_name(char *name, size_t size)
{
    char *text = NULL;
    size_t length = 0;
    name[0] = '\0';
    if (sgm__file_read("/proc/cpuinfo", (size_t)1 << 24, &text, &length) != SGM_OK) {
        sgm_clear_error();
        return;
    }
    const char *line = strstr(text, "model name");
    const char *value = line != NULL ? strchr(line, ':') : NULL;
    if (value != NULL) {
        value += 1 + strspn(value + 1, " ");
        size_t end = strcspn(value, "\n");
        end = end < size - 1 ? end : size - 1;
        memcpy(name, value, end);
        name[end] = '\0';
    }
    sgm__free(text);
}

/* The lines of `sigma info`. */
static void describe(void *self, sgm__text *text)
{
    const sgm__cpu *cpu = self;
    char name[128];
    processor_name(name, sizeof name);
    sgm__text_append(text, "cpu: %s\n", name[0] != '\0' ? name : "unknown");
    sgm__text_append(text, "instructions: %s\n", cpu->vector->name);
    if (cpu->vector->approximate)
        sgm__text_append(text, "approximate: exp to 0.011 %%, tanh to 0.0001\n");
    if (cpu->exact)
        sgm__text_append(text, "convolutions: as they are defined\n");
    if (cpu->keeps_subnormals)
        sgm__text_append(text, "subnormal numbers: kept\n");
    sgm__text_append(text, "threads: %d\n", cpu->threads);
    sgm__text_append(text, "elementwise steps: %s\n",
                     cpu->vector->functions == NULL ? "interpreted: no AVX2"
                     : cpu->told                    ? "interpreted, as told"
                     : cpu->interprets              ? "interpreted: the system lets no code be made"
                                                    : "machine code");
    sgm__text_append(text, "matrix products: %s\n", sgm__dense_text(cpu->dense));
    sgm__text_append(text, "products of bfloat16: %s\n", sgm__cpu_bfloat16(self));
    sgm__text_append(text, "products of int8: %s\n", cpu->int8->name);
    if (cpu->bfloat16_speed > 0)
        sgm__text_append(text, "measured: AVX512_BF16 multiplies %.2g times as fast as float32\n",
                         cpu->bfloat16_speed);
}

/* Whether an operation in bfloat16 is computed by the float32 kernel, with casts that the planner adds.
 * Called where no kernel takes bfloat16; elementwise steps compute bfloat16 themselves. */
static bool goes_through_float32(const sgm__cpu *cpu, const sgm_op *op, sgm_dtype dtype)
{
    const sgm__cpu_kernel *kernel = sgm__cpu_find_kernel(cpu, op, SGM_FLOAT32, SGM_FLOAT32);
    return dtype == SGM_BFLOAT16 && (op->flags & (SGM_OP_ELEMENTWISE | SGM_OP_VIEW | SGM_OP_SOURCE)) == 0 &&
           kernel != NULL && !kernel->by_operand;
}

/* What the planner and the tables of operations ask: how the handler computes `op` with operands of `dtype`.
 * The order matters: composed operations without a kernel are expanded before vector loops are looked for. */
static const char *support(void *self, const sgm_op *op, sgm_dtype dtype)
{
    const sgm__cpu *cpu = self;
    if (sgm__cpu_find_kernel(cpu, op, dtype, dtype) != NULL)
        return "kernel";
    if (goes_through_float32(cpu, op, dtype))
        return SGM__THROUGH_FLOAT32;
    if (op->compose != NULL)
        return "composed";
    if (sgm__vector_find(cpu->vector, op, dtype, dtype) != NULL ||
        sgm__vector_find(cpu->vector, op, dtype, SGM_BOOL) != NULL)
        return "kernel";
    bool known =
        op->forward != NULL || op->scalar != NULL || (op->flags & (SGM_OP_VIEW | SGM_OP_SOURCE)) != 0;
    return known ? "reference loop" : "none";
}

/* Libraries read operands as they are. */
static bool rounds(const void *self)
{
    const sgm__cpu *cpu = self;
    return cpu->products == SGM__BFLOAT16_WIDENED && sgm__dense_is_own(cpu->dense);
}

/* --- compiling --- */

/* Also frees executables that were half compiled. */
static void discard(void *self, void *compiled)
{
    (void)self;
    executable *e = compiled;
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
    sgm__packings_free(&e->packings);
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
static void add_arrays(executable *e, compiled_step *step, int32_t *used)
{
    const sgm__node *node = &e->plan->nodes[step->node];
    step->first_array = *used;
    for (int32_t k = 0; k < node->input_count; k++)
        e->arrays[(*used)++] = array_of(&e->plan->nodes[e->plan->operands[node->first_input + k]]);
    e->arrays[(*used)++] = array_of(node);
}

/* The call's `inputs` point into e->arrays; set_addresses fills in their addresses there, and that of
 * `output`, which is a copy, in the call. */
static sgm__cpu_call call_of(sgm__cpu *cpu, const executable *e, const compiled_step *step)
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
static sgm_status compile_kernel(sgm__cpu *cpu, executable *e, compiled_step *step, size_t *scratch)
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
static sgm_status compile_step(sgm__cpu *cpu, executable *e, int32_t index, sgm__assembler *assembler,
                               int32_t *arrays, size_t *maximum)
{
    const sgm__step *step = &e->plan->steps[index];
    compiled_step *to = &e->steps[index];
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
static sgm_status fuse_steps(sgm__cpu *cpu, executable *e, size_t *maximum)
{
    for (int32_t i = 0; i < e->step_count; i++) {
        const compiled_step *step = &e->steps[i];
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
static sgm_status fuse_sums(sgm__cpu *cpu, executable *e, size_t *maximum)
{
    for (int32_t i = 1; i < e->step_count; i++) {
        compiled_step *sum = &e->steps[i], *before = sum - 1;
        if (sum->kernel != &sgm__cpu_reduce_sum || before->elementwise == NULL || before->bound != NULL ||
            before->partner >= 0 || !sgm__summed_is_possible(e->plan, i))
            continue;
        SGM_TRY(sgm__summed_create(e->plan, &sum->call, before->elementwise, &sum->summed));
        if (sum->summed == NULL)
            continue;
        sum->partner = i - 1;
        before->partner = i;
        compiled_step *product = i > 1 ? sum - 2 : NULL;
        if (product != NULL && product->kernel == &sgm__cpu_matmul && product->partner < 0 &&
            sgm__summed_add_product(cpu, e->plan, i, sum->summed)) {
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
static sgm_status share_packings(executable *e)
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

/* Of the steps that run together the last one does the work of all (it leads); the others are skipped. */
static bool leads(const compiled_step *step)
{
    return step->fused != NULL || step->summed != NULL;
}

/* Marks the results of a shared step: all threads write them. */
static void note_spread(const executable *e, int32_t step, bool *spread)
{
    for (int32_t i = 0; i < e->plan->steps[step].count; i++)
        spread[e->plan->order[e->plan->steps[step].first + i]] = true;
}

/* Decides for each step whether it is shared, and sums up the program's estimates. `*worth`: threads save at
 * least MINIMUM_GAIN of the program's time, or a step whose cost is not known might gain. `spread` is false
 * for all nodes on entry. */
static void choose_sharing(const sgm__cpu *cpu, executable *e, bool *spread, bool *worth)
{
    bool unknown = cpu->shares_all;
    for (int32_t i = 0; i < e->step_count; i++) {
        compiled_step *step = &e->steps[i];
        if (step->partner >= 0 && !leads(step))
            continue; /* the step that leads counts this one, too */
        int32_t partner = leads(step) ? step->partner : -1;
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
static sgm_status plan_flow(const sgm__cpu *cpu, executable *e)
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
        const compiled_step *step = &e->steps[i];
        /* The step that leads does this one: no step waits for it. */
        bool left_out = step->partner >= 0 && !leads(step);
        bool posts = step->elementwise != NULL || (step->kernel != NULL && step->kernel->posts);
        e->flow[i].posts = posts && !left_out && !step->alone;
        e->flow[i].partner = leads(step) ? step->partner : -1;
        e->flow[i].product = step->product;
        e->flow[i].packer = step->packer;
    }
    sgm__flow_plan(e->plan, e->flow);
    return SGM_OK;
}

/* One area that all waiting steps share, and SGM__FLOW_AREAS more that steps take in turn which may be under
 * way together. */
static sgm_status give_scratch(executable *e, size_t bytes)
{
    size_t area = sgm__align(bytes + PADDING);
    e->scratch = sgm__alloc_aligned(e->flow != NULL ? area * (SGM__FLOW_AREAS + 1) : area);
    if (e->scratch == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < e->step_count; i++) {
        compiled_step *step = &e->steps[i];
        bool posts = e->flow != NULL && e->flow[i].posts;
        step->scratch = e->scratch + (posts ? area * (size_t)(1 + e->flow[i].area) : 0);
        step->call.scratch = step->scratch;
    }
    return SGM_OK;
}

/* Makes the assembled code runnable. Where the system gives no memory for code, steps stay interpreted. */
static void set_code(executable *e, const sgm__assembler *assembler)
{
    e->code = sgm__code_map(assembler, &e->code_size);
    for (int32_t i = 0; i < e->step_count && e->code != NULL; i++)
        if (e->steps[i].elementwise != NULL)
            sgm__elementwise_set_code(e->steps[i].elementwise, e->code);
}

/* The order of these phases matters: sums are fused after products, sharing is chosen knowing what runs
 * together, and scratch memory is allocated when its largest user is known. */
static sgm_status compile_steps(sgm__cpu *cpu, executable *e, sgm__assembler *assembler)
{
    int32_t arrays = 0;
    size_t scratch = 0;
    for (int32_t i = 0; i < e->step_count; i++)
        SGM_TRY(compile_step(cpu, e, i, assembler, &arrays, &scratch));
    set_code(e, assembler);
    SGM_TRY(fuse_steps(cpu, e, &scratch));
    SGM_TRY(fuse_sums(cpu, e, &scratch));
    SGM_TRY(share_packings(e));
    SGM_TRY(plan_flow(cpu, e));
    return give_scratch(e, scratch);
}

static sgm_status compile(void *self, const sgm__plan *plan, void **compiled)
{
    executable *e = sgm__calloc(1, sizeof *e);
    if (e == NULL)
        return SGM_ERROR_MEMORY;
    *e = (executable){.plan = plan};
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
        discard(self, e);
    return status;
}

/* --- where everything is --- */

/* Whether all addresses are those of the run before. */
static bool same_memory(const executable *e, const sgm__memory *memory)
{
    size_t inputs = (size_t)e->plan->input_count, states = (size_t)e->plan->state_count;
    return e->memory[0] == memory->arena && e->memory[1] == memory->constants &&
           memcmp(e->memory + 2, memory->inputs, inputs * sizeof(void *)) == 0 &&
           memcmp(e->memory + 2 + inputs, memory->states, states * sizeof(void *)) == 0;
}

/* Sets the addresses of a step that is one operation. */
static void set_operand_addresses(const executable *e, compiled_step *step, const sgm__memory *memory)
{
    const sgm__plan *plan = e->plan;
    const sgm__node *node = step->call.node;
    for (int32_t k = 0; k < node->input_count; k++)
        step->call.inputs[k].data =
            sgm__place_address(&plan->nodes[plan->operands[node->first_input + k]].place, memory);
    step->call.output.data = sgm__place_address(&node->place, memory);
}

/* Tells all steps where their values lie, if that changed since the run before. It seldom does: when another
 * program of the session needed a larger arena, or an input is shared memory of another session. Interpreted
 * elementwise steps of several tiles find addresses as they run. */
static void set_addresses(executable *e, const sgm__memory *memory)
{
    size_t inputs = (size_t)e->plan->input_count, states = (size_t)e->plan->state_count;
    if (same_memory(e, memory))
        return;
    e->memory[0] = memory->arena;
    e->memory[1] = memory->constants;
    memcpy(e->memory + 2, memory->inputs, inputs * sizeof(void *));
    memcpy(e->memory + 2 + inputs, memory->states, states * sizeof(void *));
    for (int32_t i = 0; i < e->step_count; i++) {
        if (e->steps[i].bound != NULL)
            sgm__bound_place(e->steps[i].bound, memory);
        else if (e->steps[i].elementwise == NULL)
            set_operand_addresses(e, &e->steps[i], memory);
    }
}

/* --- running --- */

/* An error of a kernel is completed with the place in the graph where the operation was recorded. */
static sgm_status run_operation(const executable *e, compiled_step *step)
{
    const sgm__plan *plan = e->plan;
    const sgm__node *node = step->call.node;
    sgm_status status;
    if (step->kernel != NULL)
        status = step->kernel->run(&step->call);
    else
        status = node->op->forward(&(sgm_kernel_call){.inputs = step->call.inputs,
                                                      .input_count = node->input_count,
                                                      .output = step->call.output,
                                                      .attributes = &node->attributes});
    if (status == SGM_OK)
        return SGM_OK;
    char place[256];
    return sgm__fail_within("%s", sgm__plan_describe(plan, step->node, place, sizeof place));
}

/* Before a step of a program with several threads: tells the pool which loops the step needs. A step that
 * posts leaves the waiting to the pool; any other step waits here. */
static void begin_step(const sgm__cpu *cpu, const executable *e, int32_t index)
{
    const sgm__flow *flow = &e->flow[index];
    sgm__pool_alone(cpu->pool, false);
    sgm__pool_needs(cpu->pool, flow->needs >= 0 ? e->steps[flow->needs].posted : 0);
    if (!flow->posts)
        sgm__pool_ready(cpu->pool);
    sgm__pool_alone(cpu->pool, e->steps[index].alone);
}

/* Waits until the step is done and notes the time since the step before was. The way to the step counts with
 * it, so that the times of all steps add up to the whole run. Steps that were done together refer to the one
 * that did them (`with`). */
static void note_time(const sgm__cpu *cpu, const compiled_step *step, int32_t index, bool together,
                      sgm__step_time *times, double *since)
{
    sgm__pool_finish(cpu->pool);
    double now = sgm__now();
    times[index].seconds = now - *since;
    *since = now;
    if (together)
        times[step->partner].with = index;
    if (together && step->product >= 0)
        times[step->product].with = index;
}

/* Runs steps `first` to `first + count - 1`. `times`: NULL, or an array for all steps of the plan. Steps run
 * together only if all of them are in this range; else each runs alone, and its result goes to memory. */
static sgm_status run_steps(sgm__cpu *cpu, const executable *e, const sgm__memory *memory, int32_t first,
                            int32_t count, sgm__step_time *times)
{
    sgm_status status = SGM_OK;
    double since = times != NULL ? sgm__now() : 0;
    for (int32_t i = first; i < first + count && status == SGM_OK; i++) {
        compiled_step *step = &e->steps[i];
        bool together = step->partner >= first && step->partner < first + count;
        if (step->done || (together && !leads(step)))
            continue; /* the step that leads does this one */
        if (e->flow != NULL)
            begin_step(cpu, e, i);
        if (step->packer == i)
            sgm__packings_post(&e->packings, i);
        if (together && step->summed != NULL)
            sgm__summed_run(cpu, step->summed, step->product >= first, memory, step->scratch);
        else if (together)
            status = sgm__fused_run(cpu, e->plan, step->fused, memory, step->scratch);
        else if (step->bound != NULL)
            sgm__bound_run(step->bound, memory);
        else if (step->elementwise != NULL)
            sgm__elementwise_run(cpu, step->elementwise, memory, step->scratch);
        else
            status = run_operation(e, step);
        if (step->partner >= 0 && !leads(step))
            /* Its partner is not in this range. No later step waits for this one, since the flow counts on
             * the partner to do its work: so the wait is here. */
            sgm__pool_finish(cpu->pool);
        if (times != NULL)
            note_time(cpu, step, i, together, times, &since);
        step->posted = e->flow != NULL ? sgm__pool_posted(cpu->pool) : 0;
    }
    return status;
}

/* A run from lock to unlock, on the thread of a session. Results too small for full precision become zero
 * meanwhile. All loops are done on return, also after an error. */
static sgm_status run_part(void *self, void *compiled, const sgm__memory *memory, int32_t first,
                           int32_t count, sgm__step_time *times)
{
    sgm__cpu *cpu = self;
    pthread_mutex_lock(&cpu->busy);
    uint64_t before = sgm__flush_begin(cpu->keeps_subnormals);
    set_addresses(compiled, memory);
    sgm__pool_alone(cpu->pool, ((const executable *)compiled)->flow == NULL);
    sgm_status status = run_steps(cpu, compiled, memory, first, count, times);
    sgm__pool_alone(cpu->pool, false);
    sgm__pool_finish(cpu->pool);
    sgm__flush_end(before);
    pthread_mutex_unlock(&cpu->busy);
    return status;
}

static sgm_status run(void *self, void *compiled, const sgm__memory *memory, int32_t first, int32_t count)
{
    return run_part(self, compiled, memory, first, count, NULL);
}

static sgm_status run_and_time(void *self, void *compiled, const sgm__memory *memory, sgm__step_time *times)
{
    return run_part(self, compiled, memory, 0, ((const executable *)compiled)->step_count, times);
}

/* For the text of `sigma info` and the log: in seconds. */
static void estimate(void *self, const void *compiled, sgm__estimate *to)
{
    const sgm__cpu *cpu = self;
    const executable *e = compiled;
    *to = (sgm__estimate){.threads = e->flow != NULL ? cpu->threads : 1,
                          .of_threads = cpu->threads,
                          .alone = e->cost.alone * 1e-9,
                          .shared = e->cost.shared * 1e-9};
}

const sgm__handler_type sgm__cpu_handler = {
    .name = "cpu",
    .doc = "vector loops and threads of this computer",
    .flags = SGM__HANDLER_HOST | SGM__HANDLER_PARTS | SGM__HANDLER_DRAWS | SGM__HANDLER_SCALES,
    .open = open_cpu,
    .close = close_cpu,
    .describe = describe,
    .bfloat16 = sgm__cpu_bfloat16,
    .support = support,
    .rounds = rounds,
    SGM__HOST_BUFFERS,
    .compile = compile,
    .discard = discard,
    .run = run,
    .time = run_and_time,
    .estimate = estimate,
};
