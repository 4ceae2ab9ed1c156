/* The handler `debug:NAME`: runs another handler one node at a time and checks every value.
 *
 * A NaN or an infinity stops the run, or is only logged with the option report_only; the message names the
 * instruction, its layer, the position, the run, and what the operands were. When compiling, every place is
 * checked to lie within its memory. SGM__HANDLER_UNFUSED makes the planner give every value memory
 * and a step of its own. All memory functions are passed on to the watched handler, through whose `read`
 * values come back, so this works with devices as well. handler.c calls sgm__debug_open.
 */
#include <math.h>
#include <stdio.h>

#include "handlers/handler.h"
#include "tensor/tensor_internal.h"

/* The watched handler, which this one owns. report_only: log instead of failing. */
typedef struct debug {
    sgm_handler *watched;
    bool report_only;
} debug;

/* What a value contains, for messages about the values that are computed from it. */
typedef struct summary {
    double minimum, maximum;   /* of the finite elements; minimum > maximum: none is finite */
    int64_t elements, strange; /* of all, and of those that are NaN or infinite */
    int64_t first; /* the row-major number of the first strange element; `found` is that element */
    double found;
} summary;

typedef struct executable {
    const sgm__plan *plan;
    void *watched;          /* the watched handler's executable */
    unsigned char *scratch; /* on the host, room for the largest value of the plan */
    summary *summaries;     /* one for each node, of its newest value; views use their root's */
    int64_t runs;           /* so far, for messages */
} executable;

/* Bytes of a message: fits the library's buffer for errors. */
#define MESSAGE_SIZE 900

/* "debug" alone, without the name of another handler. */
static sgm_status open(const sgm_handler_options *options, void **self)
{
    (void)options, (void)self;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "handler 'debug' watches another: name that too, as in 'debug:reference'");
}

/* The options are passed on; report_only is this handler's own. */
sgm_status sgm__debug_open(const char *watched, const sgm_handler_options *options, void **self)
{
    debug *handler = sgm__calloc(1, sizeof(debug));
    if (handler == NULL)
        return SGM_ERROR_MEMORY;
    handler->report_only = options->report_only;
    handler->watched = sgm_handler_create_with(watched, options);
    if (handler->watched == NULL) {
        sgm__free(handler);
        return sgm_last_status();
    }
    *self = handler;
    return SGM_OK;
}

static void close(void *self)
{
    debug *handler = self;
    sgm_handler_free(handler->watched);
    sgm__free(handler);
}

/* --- what is passed on --- */

/* The table and the `self` of the watched handler. */
static const sgm__handler_type *type_of(const void *self)
{
    return ((const debug *)self)->watched->type;
}

static void *self_of(const void *self)
{
    return ((const debug *)self)->watched->self;
}

static void describe(void *self, sgm__text *text)
{
    sgm__text_append(text,
                     "debug: %s at NaN, infinity and places outside memory; one instruction at a time\n",
                     ((const debug *)self)->report_only ? "warns" : "stops");
    type_of(self)->describe(self_of(self), text);
}

static const char *bfloat16(void *self)
{
    return sgm_handler_bfloat16(((const debug *)self)->watched);
}

static const char *support(void *self, const sgm_op *op, sgm_dtype dtype)
{
    return type_of(self)->support(self_of(self), op, dtype);
}

static sgm_status allocate(void *self, size_t bytes, void **buffer)
{
    return type_of(self)->allocate(self_of(self), bytes, buffer);
}

static void release(void *self, void *buffer)
{
    type_of(self)->release(self_of(self), buffer);
}

static sgm_status write(void *self, void *buffer, size_t offset, const void *host, size_t bytes)
{
    return type_of(self)->write(self_of(self), buffer, offset, host, bytes);
}

static sgm_status read(void *self, void *buffer, size_t offset, void *host, size_t bytes)
{
    return type_of(self)->read(self_of(self), buffer, offset, host, bytes);
}

static sgm_status wait(void *self)
{
    return type_of(self)->wait(self_of(self));
}

/* --- compiling --- */

/* Inputs, states and constants: no step computes them. */
static bool is_source(const sgm__node *node)
{
    return (node->op->flags & SGM_OP_SOURCE) != 0;
}

static bool is_view(const sgm__node *node)
{
    return (node->op->flags & SGM_OP_VIEW) != 0;
}

/* Checks that all elements of a node lie within its memory, and that computed values have no gaps, which no
 * kernel but elementwise ones writes. */
static sgm_status check_place(const sgm__plan *plan, int32_t index)
{
    const sgm__node *node = &plan->nodes[index];
    char where[320], shape[128];
    sgm__span span = sgm__node_span(node);
    int64_t memory = sgm__plan_memory_bytes(plan, &node->place);
    if (sgm_shape_elements(&node->type.shape) == 0)
        return SGM_OK;
    if (span.first < 0 || span.last > memory)
        return sgm_fail(SGM_ERROR_SHAPE, "%s, shape %s, lies at bytes %lld to %lld of a memory of %lld",
                        sgm__plan_describe(plan, index, where, sizeof where),
                        sgm_shape_text(&node->type.shape, shape, sizeof shape), (long long)span.first,
                        (long long)span.last, (long long)memory);
    if (span.gaps && !is_view(node))
        return sgm_fail(SGM_ERROR_SHAPE, "%s, shape %s, is a result with gaps in memory",
                        sgm__plan_describe(plan, index, where, sizeof where),
                        sgm_shape_text(&node->type.shape, shape, sizeof shape));
    return SGM_OK;
}

/* `values` is contiguous. */
static summary summarise(const sgm_type *type, const unsigned char *values)
{
    summary result = {
        .minimum = INFINITY, .maximum = -INFINITY, .elements = sgm_shape_elements(&type->shape)};
    size_t size = sgm_dtype_size(type->dtype);
    for (int64_t i = 0; i < result.elements; i++) {
        double value = sgm__element_load(type->dtype, values + (size_t)i * size);
        if (isfinite(value)) {
            result.minimum = value < result.minimum ? value : result.minimum;
            result.maximum = value > result.maximum ? value : result.maximum;
        } else if (result.strange++ == 0) {
            result.first = i;
            result.found = value;
        }
    }
    return result;
}

/* Checks all places, allocates memory for looking at values, and looks at constants, which never change. */
static sgm_status prepare(executable *exe)
{
    const sgm__plan *plan = exe->plan;
    int64_t largest = 0;
    exe->summaries = sgm__calloc((size_t)plan->node_count, sizeof(summary));
    if (exe->summaries == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < plan->node_count; i++) {
        const sgm__node *node = &plan->nodes[i];
        SGM_TRY(check_place(plan, i));
        if (node->place.store == SGM__STORE_CONSTANT && !is_view(node))
            exe->summaries[i] = summarise(&node->type, plan->constants + node->place.offset);
        int64_t bytes = (int64_t)sgm__type_bytes(&node->type);
        if (!is_view(node) && bytes > largest)
            largest = bytes;
    }
    exe->scratch = sgm__alloc_aligned((size_t)largest);
    return exe->scratch != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static void discard(void *self, void *compiled)
{
    executable *exe = compiled;
    if (exe->watched != NULL)
        type_of(self)->discard(self_of(self), exe->watched);
    sgm__free_aligned(exe->scratch);
    sgm__free(exe->summaries);
    sgm__free(exe);
}

/* The watched handler compiles the same plan; it runs it step by step. */
static sgm_status compile(void *self, const sgm__plan *plan, void **compiled)
{
    executable *exe = sgm__calloc(1, sizeof(executable));
    if (exe == NULL)
        return SGM_ERROR_MEMORY;
    exe->plan = plan;
    sgm_status status = prepare(exe);
    if (status == SGM_OK)
        status = type_of(self)->compile(self_of(self), plan, &exe->watched);
    if (status != SGM_OK) {
        discard(self, exe);
        return status;
    }
    *compiled = exe;
    return SGM_OK;
}

/* --- looking at values --- */

/* Appends to a message of MESSAGE_SIZE bytes; what does not fit is cut off. */
static void append(char *message, const char *format, ...) SGM_PRINTF(2, 3);
static void append(char *message, const char *format, ...)
{
    size_t length = strlen(message);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + length, MESSAGE_SIZE - length, format, arguments);
    va_end(arguments);
}

/* Appends "NaN at (3, 7)"; the position comes from the row-major number. */
static void append_finding(char *message, const summary *seen, const sgm_shape *shape)
{
    sgm_shape index = {.rank = shape->rank};
    int64_t rest = seen->first;
    for (int32_t i = shape->rank; i-- > 0;) {
        index.dims[i] = rest % shape->dims[i];
        rest /= shape->dims[i];
    }
    char text[128];
    append(message, "%s", isnan(seen->found) ? "NaN" : seen->found > 0 ? "infinity" : "-infinity");
    if (shape->rank > 0)
        append(message, " at %s", sgm_shape_text(&index, text, sizeof text));
}

/* Appends "inputs were finite: %3 from -1 to 2, %4 from 0 to 0", which tells whether this instruction is the
 * one that went wrong. */
static void append_operands(char *message, const executable *exe, const sgm__node *node)
{
    const sgm__plan *plan = exe->plan;
    char list[MESSAGE_SIZE] = "";
    bool finite = true;
    for (int32_t k = 0; k < node->input_count; k++) {
        int32_t operand = plan->operands[node->first_input + k], root = sgm__plan_root(plan, operand);
        const summary *seen = &exe->summaries[root];
        append(list, "%s%%%d", k > 0 ? ", " : "", operand);
        if (seen->strange > 0) {
            finite = false;
            append(list, " with ");
            append_finding(list, seen, &plan->nodes[root].type.shape);
        }
        if (seen->minimum <= seen->maximum)
            append(list, " from %.6g to %.6g", seen->minimum, seen->maximum);
    }
    if (node->input_count == 0)
        append(message, "it has no inputs");
    else
        append(message, "%s: %s", finite ? "inputs were finite" : "not all inputs were finite", list);
}

/* Appends the whole message about node `index`: an instruction, an input as it was fed, or a state from
 * before the run. */
static void describe_violation(char *message, const executable *exe, int32_t index)
{
    const sgm__plan *plan = exe->plan;
    const sgm__node *node = &plan->nodes[index];
    const summary *seen = &exe->summaries[index];
    char where[320];
    append_finding(message, seen, &node->type.shape);
    if (!is_source(node))
        append(message, " of %s", sgm__plan_describe(plan, index, where, sizeof where));
    else if (node->place.store == SGM__STORE_INPUT)
        append(message, " of input '%s'", sgm__plan_string(plan, plan->inputs[node->place.index].name));
    else
        append(message, " of state '%s'", sgm__plan_string(plan, plan->states[node->place.index].name));
    append(message, ", run %lld (%lld of %lld values): ", (long long)exe->runs, (long long)seen->strange,
           (long long)seen->elements);
    if (!is_source(node))
        append_operands(message, exe, node);
    else
        append(message, node->place.store == SGM__STORE_INPUT ? "it was fed so" : "it was so before the run");
}

/* The buffer that a value lies in. Constants are never read back, so what is left is the arena. */
static void *buffer_of(const sgm__place *place, const sgm__memory *memory)
{
    if (place->store == SGM__STORE_INPUT)
        return memory->inputs[place->index];
    return place->store == SGM__STORE_STATE ? memory->states[place->index] : memory->arena;
}

/* Reads a value back and checks it. Only for nodes with contiguous memory of their own: no views. */
static sgm_status inspect(const debug *handler, executable *exe, int32_t index, const sgm__memory *memory)
{
    const sgm__node *node = &exe->plan->nodes[index];
    SGM_TRY(type_of(handler)->read(self_of(handler), buffer_of(&node->place, memory),
                                   (size_t)node->place.offset, exe->scratch, sgm__type_bytes(&node->type)));
    exe->summaries[index] = summarise(&node->type, exe->scratch);
    if (exe->summaries[index].strange == 0)
        return SGM_OK;
    char message[MESSAGE_SIZE] = "";
    describe_violation(message, exe, index);
    if (!handler->report_only)
        return sgm_fail(SGM_ERROR_NUMERIC, "%s", message);
    sgm__log(SGM_LOG_WARNING, "debug", "%s", message);
    return SGM_OK;
}

/* Checks inputs and states, so that a wrong value is blamed on the input or state that it came with. */
static sgm_status inspect_sources(const debug *handler, executable *exe, const sgm__memory *memory)
{
    for (int32_t i = 0; i < exe->plan->node_count; i++) {
        const sgm__node *node = &exe->plan->nodes[i];
        if (is_source(node) && node->place.store != SGM__STORE_CONSTANT)
            SGM_TRY(inspect(handler, exe, i, memory));
    }
    return SGM_OK;
}

/* Runs one step, asks the handler for failures that it may report late, and checks the results. */
static sgm_status run_step(const debug *handler, executable *exe, const sgm__memory *memory, int32_t number)
{
    const sgm__handler_type *type = type_of(handler);
    const sgm__step *step = &exe->plan->steps[number];
    sgm_status status = type->run(self_of(handler), exe->watched, memory, number, 1);
    if (status == SGM_OK)
        status = type->wait(self_of(handler));
    if (status == SGM_OK && type->check != NULL)
        status = type->check(self_of(handler), exe->watched);
    if (status != SGM_OK)
        return sgm__fail_within("run %lld", (long long)exe->runs);
    for (int32_t p = 0; p < step->count; p++)
        SGM_TRY(inspect(handler, exe, exe->plan->order[step->first + p], memory));
    return SGM_OK;
}

/* Inputs and states are checked when a run begins, that is with its first step. */
static sgm_status run(void *self, void *compiled, const sgm__memory *memory, int32_t first, int32_t count)
{
    executable *exe = compiled;
    if (first == 0) {
        exe->runs++;
        SGM_TRY(inspect_sources(self, exe, memory));
    }
    for (int32_t s = first; s < first + count; s++)
        SGM_TRY(run_step(self, exe, memory, s));
    return SGM_OK;
}

const sgm__handler_type sgm__debug_handler = {
    .name = "debug",
    .doc = "watches another handler for NaN, infinity and places outside memory",
    .flags = SGM__HANDLER_UNFUSED,
    .open = open,
    .close = close,
    .describe = describe,
    .bfloat16 = bfloat16,
    .support = support,
    .allocate = allocate,
    .release = release,
    .write = write,
    .read = read,
    .compile = compile,
    .discard = discard,
    .run = run,
    .wait = wait,
};
