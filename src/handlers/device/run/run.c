/* Compiles plans for a device and runs them: `compile`, `discard`, `run`, `check` and `time` of the device
 * handlers.
 *
 * Each step of a plan is one of three things: a product that the driver's library computes (product.c),
 * launches of generated kernels (../code/), or a step of the host (host.c). Which one may change: a library
 * can decline a product when it is asked with other memory, and then its kernels are compiled and take over.
 * Everything is queued in order and not waited for. A run that is repeated with the same memory is recorded
 * once and replayed, where the driver can do that (CUDA graphs).
 *
 * Kernels cannot fail when they meet an index out of range: they note it in the fault words
 * (SGM__DEVICE_FAULT_WORDS in ../code/code.h), kernels that write states look at those first, and `check`
 * reads them.
 */
#include "handlers/device/run/device.h"
#include "ops/ops.h"

#include <stdio.h>

/* A compiled plan. `products` and `longer` describe what the library computes now: asked.batch becomes 0 when
 * it does not. */
typedef struct executable {
    const sgm__plan *plan;
    sgm__device_code *code;
    sgm__device_kernels kernels;
    sgm_device_place *places; /* one for each of code->arguments: where they lie now */
    int32_t place_count;
    sgm__device_product *products; /* of steps: the product alone */
    sgm__device_product *longer;   /* of steps: the product with the step after it as epilogue */
    int32_t *host_of;              /* of steps: the number among the steps of `host`; -1: not the host's */
    int32_t host_count;
    sgm__device_host *host;
    sgm__device_buffer *scratch, *fault; /* memory of one step; the fault words */
    bool can_fault;                      /* some kernel reads indices */
    void **memory;   /* the driver's handles in the newest run: arena, constants, inputs, states */
    int32_t same;    /* how many runs in a row had the same memory, after the first */
    void *recording; /* the driver's, of a run of all steps; NULL: none */
    bool can_record, is_recording;
    bool has_run; /* all kernels have been started once; see run_first */
} executable;

/* --- compiling --- */

/* Frees the recording, which refers to memory that has changed. */
static void forget(sgm__device *device, executable *exe)
{
    if (exe->recording != NULL)
        device->driver->forget(device->self, exe->recording);
    exe->recording = NULL;
}

void sgm__device_discard(void *self, void *compiled)
{
    sgm__device *device = self;
    executable *exe = compiled;
    pthread_mutex_lock(&device->lock);
    forget(device, exe);
    sgm__device_kernels_free(device, &exe->kernels);
    sgm__device_give(device, exe->scratch);
    sgm__device_give(device, exe->fault);
    pthread_mutex_unlock(&device->lock);
    sgm__device_host_free(exe->host);
    sgm__device_code_free(exe->code);
    sgm__free(exe->places);
    sgm__free(exe->products);
    sgm__free(exe->longer);
    sgm__free(exe->host_of);
    sgm__free(exe->memory);
    sgm__free(exe);
}

static sgm_status check_bindings(const sgm__device *device, const sgm__plan *plan,
                                 const sgm__binding *bindings, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (bindings[i].type.dtype == SGM_FLOAT64)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "%s '%s' has no float64, which '%s' is of: use float32, or another device",
                            device->driver->name, device->info.name,
                            sgm__plan_string(plan, bindings[i].name));
    return SGM_OK;
}

/* Without float64 in the device, steps that compute in it are the host's (a share of right predictions). All
 * of a program that is given float64 would be, so it is refused. */
static sgm_status check_types(const sgm__device *device, const sgm__plan *plan)
{
    if (device->info.has_float64)
        return SGM_OK;
    SGM_TRY(check_bindings(device, plan, plan->inputs, plan->input_count));
    return check_bindings(device, plan, plan->states, plan->state_count);
}

static void find_product(const sgm__device *device, executable *exe, int32_t s)
{
    sgm__device_product product, longer;
    if (!sgm__device_product_of(exe->plan, s, device->narrow, &product))
        return;
    exe->products[s] = longer = product;
    if (sgm__device_product_continue(exe->plan, s, &longer))
        exe->longer[s] = longer;
}

/* Decides for each step whether the host runs it, and whether the library can be asked for it. */
static sgm_status sort_steps(const sgm__device *device, executable *exe)
{
    size_t steps = (size_t)exe->plan->step_count;
    exe->products = sgm__calloc(steps + 1, sizeof *exe->products);
    exe->longer = sgm__calloc(steps + 1, sizeof *exe->longer);
    exe->host_of = sgm__calloc(steps + 1, sizeof *exe->host_of);
    int32_t *hosted = sgm__calloc(steps + 1, sizeof *hosted);
    if (exe->products == NULL || exe->longer == NULL || exe->host_of == NULL || hosted == NULL) {
        sgm__free(hosted);
        return SGM_ERROR_MEMORY;
    }
    for (int32_t s = 0; s < exe->plan->step_count; s++) {
        sgm__device_step_kind kind = exe->code->steps[s].kind;
        exe->host_of[s] = -1;
        if (kind == SGM__DEVICE_HOST) {
            hosted[exe->host_count] = s;
            exe->host_of[s] = exe->host_count++;
        }
        if (kind == SGM__DEVICE_PRODUCT && device->driver->takes != NULL)
            find_product(device, exe, s);
    }
    sgm_status status = exe->host_count > 0
                            ? sgm__device_host_create(exe->plan, hosted, exe->host_count, &exe->host)
                            : SGM_OK;
    sgm__free(hosted);
    return status;
}

/* Counts the arguments of all launches, and allocates what place() fills in. */
static sgm_status make_places(executable *exe)
{
    const sgm__plan *plan = exe->plan;
    for (int32_t s = 0; s < plan->step_count; s++) {
        const sgm__device_step *step = &exe->code->steps[s];
        for (int32_t c = step->first_call; c < step->first_call + step->call_count; c++) {
            const sgm__device_call *call = &exe->code->calls[c];
            int32_t end = call->first_argument + call->argument_count;
            exe->place_count = end > exe->place_count ? end : exe->place_count;
            for (int32_t a = call->first_argument; a < end; a++)
                exe->can_fault = exe->can_fault || exe->code->arguments[a].kind == SGM__DEVICE_FAULT;
        }
    }
    size_t memories = (size_t)plan->input_count + (size_t)plan->state_count + 2;
    exe->places = sgm__calloc((size_t)exe->place_count + 1, sizeof *exe->places);
    exe->memory = sgm__calloc(memories, sizeof *exe->memory);
    return exe->places != NULL && exe->memory != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Where a node lies. `memory` NULL: only the offset is known, when compiling. */
static sgm_device_place place_of(const executable *exe, const sgm__memory *memory, int32_t number)
{
    const sgm__place *place = &exe->plan->nodes[number].place;
    const sgm__device_buffer *buffer = memory != NULL ? sgm__place_memory(place, memory) : NULL;
    return (sgm_device_place){buffer != NULL ? buffer->memory : NULL, (uint64_t)place->offset};
}

/* The product as it is asked for the `time`-th time. */
static sgm_device_product at_time(const sgm__device_product *product, int64_t time)
{
    sgm_device_product asked = product->asked;
    asked.left.place.offset += (uint64_t)(time * product->apart[0]);
    asked.right.place.offset += (uint64_t)(time * product->apart[1]);
    asked.result.place.offset += (uint64_t)(time * product->apart[2]);
    return asked;
}

/* Fills in a product's places and asks the driver whether its library takes it; if not, asked.batch becomes
 * 0. A product that is asked for several times is taken if the second has the same alignment: all further
 * ones lie equally far apart. */
static bool takes(const sgm__device *device, const executable *exe, const sgm__memory *memory,
                  sgm__device_product *product)
{
    sgm_device_product *asked = &product->asked;
    if (asked->batch == 0)
        return false;
    asked->left.place = place_of(exe, memory, product->left);
    asked->right.place = place_of(exe, memory, product->right);
    asked->result.place = place_of(exe, memory, product->result);
    if (asked->has_addend)
        asked->addend.place = place_of(exe, memory, product->addend);
    if (asked->has_bias)
        asked->bias = place_of(exe, memory, product->bias);
    const sgm_device_product second = at_time(product, 1);
    if (!device->driver->takes(device->self, asked) ||
        (product->times > 1 && !device->driver->takes(device->self, &second)))
        asked->batch = 0;
    return asked->batch > 0;
}

/* Asks for all products with their present places, and compiles the kernels of all steps that the library
 * does not compute. The step behind a longer product is skipped: it is the epilogue. */
static sgm_status load_kernels(sgm__device *device, executable *exe, const sgm__memory *memory)
{
    for (int32_t s = 0; s < exe->plan->step_count; s++) {
        bool alone = takes(device, exe, memory, &exe->products[s]);
        if (!alone) {
            exe->longer[s].asked.batch = 0;
            sgm__device_kernels_want(&exe->kernels, s);
        } else if (takes(device, exe, memory, &exe->longer[s])) {
            s++;
        }
    }
    return sgm__device_kernels_load(device, &exe->kernels);
}

static void log_products(const sgm__device *device, const executable *exe)
{
    int32_t products = 0, longer = 0;
    for (int32_t s = 0; s < exe->plan->step_count; s++) {
        products += exe->products[s].asked.batch > 0;
        longer += exe->longer[s].asked.batch > 0;
    }
    if (products > 0)
        sgm__log(SGM_LOG_DEBUG, device->driver->name, "%d products are a library's, %d with an epilogue",
                 products, longer);
}

static sgm_status load(sgm__device *device, executable *exe)
{
    if (exe->code->scratch_bytes > 0)
        SGM_TRY(sgm__device_take(device, (uint64_t)exe->code->scratch_bytes, &exe->scratch));
    if (exe->can_fault)
        SGM_TRY(sgm__device_take(device, SGM__DEVICE_FAULT_WORDS * sizeof(int32_t), &exe->fault));
    if (exe->host_count > 0)
        sgm__log(SGM_LOG_DEBUG, device->driver->name, "%d of %d steps are the host's", exe->host_count,
                 exe->plan->step_count);
    SGM_TRY(load_kernels(device, exe, NULL));
    log_products(device, exe);
    return SGM_OK;
}

/* Everything that needs no driver is done before the lock is taken: writing the code takes time. */
static sgm_status prepare(sgm__device *device, executable *exe)
{
    SGM_TRY(check_types(device, exe->plan));
    SGM_TRY(sgm__device_code_create(exe->plan, &device->info, &exe->code));
    SGM_TRY(make_places(exe));
    SGM_TRY(sgm__device_kernels_create(exe->code, &exe->kernels));
    pthread_mutex_lock(&device->lock);
    sgm_status status = sort_steps(device, exe);
    if (status == SGM_OK)
        status = load(device, exe);
    pthread_mutex_unlock(&device->lock);
    exe->can_record = device->driver->record != NULL && exe->host_count == 0;
    return status;
}

sgm_status sgm__device_compile(void *self, const sgm__plan *plan, void **compiled)
{
    executable *exe = sgm__calloc(1, sizeof *exe);
    if (exe == NULL)
        return SGM_ERROR_MEMORY;
    exe->plan = plan;
    sgm_status status = prepare(self, exe);
    if (status == SGM_OK)
        *compiled = exe;
    else
        sgm__device_discard(self, exe);
    return status;
}

/* --- where everything is --- */

/* Notes the memory of a buffer; true: it is not what was known before. */
static bool note(void **known, const sgm__device_buffer *buffer)
{
    void *memory = buffer != NULL ? buffer->memory : NULL;
    bool changed = *known != memory;
    *known = memory;
    return changed;
}

/* Finds the places of all arguments if memory is not the same as in the run before, which is rare: another
 * program needed a larger arena, or an input is shared. Then the recording is void and products are asked for
 * again, as alignments may differ. */
static sgm_status place(sgm__device *device, executable *exe, const sgm__memory *memory)
{
    const sgm__plan *plan = exe->plan;
    bool changed = note(&exe->memory[0], memory->arena);
    changed = note(&exe->memory[1], memory->constants) || changed;
    for (int32_t i = 0; i < plan->input_count; i++)
        changed = note(&exe->memory[2 + i], memory->inputs[i]) || changed;
    for (int32_t i = 0; i < plan->state_count; i++)
        changed = note(&exe->memory[2 + plan->input_count + i], memory->states[i]) || changed;
    exe->same = changed ? 0 : exe->same + (exe->same < INT32_MAX);
    if (!changed) /* usually nothing is to be loaded, but the run before may have failed to */
        return sgm__device_kernels_load(device, &exe->kernels);
    forget(device, exe);
    for (int32_t a = 0; a < exe->place_count; a++) {
        const sgm__device_argument *argument = &exe->code->arguments[a];
        if (argument->kind == SGM__DEVICE_NODE)
            exe->places[a] = place_of(exe, memory, argument->node);
        else
            exe->places[a] = (sgm_device_place){
                (argument->kind == SGM__DEVICE_FAULT ? exe->fault : exe->scratch)->memory, 0};
        exe->places[a].offset += (uint64_t)argument->offset;
    }
    return load_kernels(device, exe, memory);
}

/* --- indices out of range --- */

/* Fails as the operation itself does on the host, and names the instruction. */
static sgm_status fail_index(const sgm__plan *plan, int32_t number, int64_t value)
{
    const sgm__node *node = &plan->nodes[number];
    const int64_t *integers = node->attributes.integers;
    const sgm_shape *first = &plan->nodes[plan->operands[node->first_input]].type.shape;
    char where[320];
    if (node->op == &sgm__op_one_hot)
        sgm__fail_class(value, integers[1]);
    else
        sgm__fail_entry(value, integers[0],
                        node->op == &sgm__op_scatter_add ? integers[1] : first->dims[integers[0]]);
    return sgm__fail_within("%s", sgm__plan_describe(plan, number, where, sizeof where));
}

/* Reads the fault words, which waits for the queue, and clears them if a failure is in them. With the lock
 * held. */
static sgm_status check_fault(sgm__device *device, const executable *exe)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    int32_t words[SGM__DEVICE_FAULT_WORDS];
    if (!exe->can_fault)
        return SGM_OK;
    const sgm_device_place place = {exe->fault->memory, 0};
    SGM__DEVICE_TRY(device, device->driver->read(device->self, place, words, sizeof words, message));
    device->runs = 0;
    if (words[0] == 0)
        return SGM_OK;
    SGM__DEVICE_TRY(device, device->driver->clear(device->self, place, sizeof words, message));
    int32_t node = words[1] - 1;
    int64_t value = (int64_t)((uint64_t)(uint32_t)words[4] << 32 | (uint32_t)words[3]);
    if (node < 0 || node >= exe->plan->node_count)
        return sgm_fail(SGM_ERROR_ARGUMENT, "index %lld is out of range", (long long)value);
    return fail_index(exe->plan, node, value);
}

/* --- running --- */

/* Queues the launches of a step. */
static sgm_status run_calls(sgm__device *device, executable *exe, int32_t s)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    const sgm__device_step *step = &exe->code->steps[s];
    for (int32_t c = step->first_call; c < step->first_call + step->call_count; c++) {
        const sgm__device_call *call = &exe->code->calls[c];
        const sgm_device_launch launch = {.kernel = exe->kernels.loaded[call->kernel],
                                          .groups = call->groups,
                                          .group = call->group,
                                          .place_count = (uint32_t)call->argument_count,
                                          .places = exe->places + call->first_argument};
        SGM__DEVICE_TRY(device, device->driver->launch(device->self, &launch, message));
    }
    return SGM_OK;
}

/* Compiles the kernels of a step that has needed none so far: it was an epilogue, or its product was the
 * library's. */
static sgm_status load_step(sgm__device *device, executable *exe, int32_t s)
{
    sgm__device_kernels_want(&exe->kernels, s);
    return sgm__device_kernels_load(device, &exe->kernels);
}

/* Asks the library for a product. If it declines after all, asked.batch becomes 0, and the caller goes
 * another way from now on. While a run is recorded, nothing may change, so a product that is declined then is
 * a failure of the recording. */
static sgm_status multiply(sgm__device *device, const executable *exe, sgm__device_product *product)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    sgm_device_result result = SGM_DEVICE_OK;
    for (int64_t time = 0; time < product->times && result == SGM_DEVICE_OK; time++) {
        const sgm_device_product asked = at_time(product, time);
        result = device->driver->multiply(device->self, &asked, message);
    }
    if (result != SGM_DEVICE_DECLINED || exe->is_recording)
        return result == SGM_DEVICE_OK ? SGM_OK : sgm__device_fail(device, result, message);
    sgm__log(SGM_LOG_DEBUG, device->driver->name, "%s; it is done by other kernels", message);
    product->asked.batch = 0;
    return SGM_OK;
}

/* One step by whichever way it goes now. Before a step of the host, which may write states, the fault words
 * are read; reading its operands waits in any case. */
static sgm_status run_step(sgm__device *device, executable *exe, const sgm__memory *memory, int32_t s)
{
    if (exe->host_of[s] >= 0) {
        SGM_TRY(check_fault(device, exe)); /* the step may write a state */
        return sgm__device_host_run(device, exe->host, memory, exe->host_of[s]);
    }
    if (exe->products[s].asked.batch > 0) {
        SGM_TRY(multiply(device, exe, &exe->products[s]));
        if (exe->products[s].asked.batch > 0)
            return SGM_OK;
    }
    SGM_TRY(load_step(device, exe, s));
    return run_calls(device, exe, s);
}

/* Runs step *s and, if the library does both in one and both are before `end`, its epilogue; advances *s
 * behind them. */
static sgm_status run_next(sgm__device *device, executable *exe, const sgm__memory *memory, int32_t end,
                           int32_t *s)
{
    int32_t here = (*s)++;
    if (here + 1 < end && exe->longer[here].asked.batch > 0) {
        SGM_TRY(multiply(device, exe, &exe->longer[here]));
        if (exe->longer[here].asked.batch > 0) {
            (*s)++;
            return SGM_OK;
        }
    }
    return run_step(device, exe, memory, here);
}

static sgm_status run_steps(sgm__device *device, executable *exe, const sgm__memory *memory, int32_t first,
                            int32_t count)
{
    for (int32_t s = first; s < first + count;)
        SGM_TRY(run_next(device, exe, memory, first + count, &s));
    return SGM_OK;
}

/* OpenCL on a processor compiles a kernel when it is first started, which can take longer than all else. So
 * the first run waits for each step and reports progress as a task. */
static sgm_status run_first(sgm__device *device, executable *exe, const sgm__memory *memory)
{
    char message[SGM_DEVICE_MESSAGE] = "", what[160];
    int32_t count = exe->plan->step_count;
    snprintf(what, sizeof what, "kernels for %.80s, as each is first started", device->info.name);
    sgm__log(SGM_LOG_INFO, device->driver->name, "compiling %s", what);
    sgm_task task = sgm_task_begin(SGM_TASK_COMPILE, what, "steps");
    sgm_status status = SGM_OK;
    for (int32_t s = 0; s < count && status == SGM_OK;) {
        status = run_next(device, exe, memory, count, &s);
        sgm_device_result result = device->driver->wait(device->self, message);
        if (status == SGM_OK && result != SGM_DEVICE_OK)
            status = sgm__device_fail(device, result, message);
        sgm_task_set_progress(task, (uint64_t)s, (uint64_t)count);
    }
    exe->has_run = status == SGM_OK;
    sgm_task_end(task, status);
    return status;
}

/* Records a run of all steps. If that fails, runs are queued step by step as before, and the error is only
 * logged. */
static void record(sgm__device *device, executable *exe, const sgm__memory *memory)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    exe->can_record = device->driver->record(device->self, message) == SGM_DEVICE_OK;
    if (!exe->can_record)
        return;
    exe->is_recording = true;
    sgm_status status = run_steps(device, exe, memory, 0, exe->plan->step_count);
    exe->is_recording = false;
    sgm_device_result result = device->driver->keep(device->self, &exe->recording, message);
    if (status == SGM_OK && result == SGM_DEVICE_OK)
        return;
    if (result == SGM_DEVICE_OK)
        forget(device, exe);
    exe->recording = NULL;
    exe->can_record = false;
    sgm__log(SGM_LOG_DEBUG, device->driver->name, "a run cannot be recorded: %s",
             status != SGM_OK ? sgm_last_error() : message);
    sgm_clear_error();
}

/* Runs steps of a plan. A run of all steps is recorded from the second run with the same memory on. */
static sgm_status run_part(sgm__device *device, executable *exe, const sgm__memory *memory, int32_t first,
                           int32_t count)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    bool whole = first == 0 && count == exe->plan->step_count;
    SGM_TRY(place(device, exe, memory));
    if (whole && exe->can_record && exe->recording == NULL && exe->same > 0)
        record(device, exe, memory);
    if (whole && exe->recording != NULL)
        SGM__DEVICE_TRY(device, device->driver->replay(device->self, exe->recording, message));
    else if (whole && device->info.is_processor && !exe->has_run)
        SGM_TRY(run_first(device, exe, memory));
    else
        SGM_TRY(run_steps(device, exe, memory, first, count));
    device->runs++;
    return SGM_OK;
}

sgm_status sgm__device_run(void *self, void *compiled, const sgm__memory *memory, int32_t first,
                           int32_t count)
{
    sgm__device *device = self;
    pthread_mutex_lock(&device->lock);
    sgm_status status = run_part(device, compiled, memory, first, count);
    pthread_mutex_unlock(&device->lock);
    return status;
}

sgm_status sgm__device_check(void *self, void *compiled)
{
    sgm__device *device = self;
    pthread_mutex_lock(&device->lock);
    sgm_status status = check_fault(device, compiled);
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Times steps by waiting after each. A product and its epilogue are one pass: the time is the product's, and
 * the epilogue's step refers to it. */
static sgm_status time_steps(sgm__device *device, executable *exe, const sgm__memory *memory,
                             sgm__step_time *times)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    SGM_TRY(place(device, exe, memory));
    SGM__DEVICE_TRY(device, device->driver->wait(device->self, message));
    double since = sgm__now();
    for (int32_t s = 0, at = 0; s < exe->plan->step_count; at = s) {
        SGM_TRY(run_next(device, exe, memory, exe->plan->step_count, &s));
        SGM__DEVICE_TRY(device, device->driver->wait(device->self, message));
        double now = sgm__now();
        times[at].seconds = now - since;
        for (int32_t with = at + 1; with < s; with++)
            times[with].with = at;
        since = now;
    }
    return SGM_OK;
}

sgm_status sgm__device_time(void *self, void *compiled, const sgm__memory *memory, sgm__step_time *times)
{
    sgm__device *device = self;
    pthread_mutex_lock(&device->lock);
    sgm_status status = time_steps(device, compiled, memory, times);
    pthread_mutex_unlock(&device->lock);
    return status;
}
