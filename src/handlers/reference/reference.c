/* The handler `reference`: every operation by its own formula or loop in double precision, on one thread.
 *
 * It is slow and is what all other handlers are tested against. Devices also use it for steps that they have
 * no kernel for (device/run/host.c). Elementwise operations use `scalar`, or `whole` for int64, from the
 * operation's table, all others `forward`; so operations that a program registers run here at once. It runs
 * the same fused steps as other handlers, one element at a time through all members; "debug:reference" runs
 * one node at a time. Only the session's thread computes, and scratch memory of the executable makes a run
 * free of allocations.
 */
#include "handlers/host.h"
#include "ops/ops.h"
#include "tensor/tensor_internal.h"

/* One element in its own type: the beginning of the union is the element as it lies in memory. */
typedef union slot {
    int64_t integer;
    double number;
} slot;

/* A walk through an operand or a result, element by element. Cursors on slots have steps of 0, so they stay
 * where they are. */
typedef struct cursor {
    sgm_dtype dtype;
    unsigned char *at;
    int64_t steps[SGM_MAX_RANK]; /* bytes from one element to the next along each axis */
} cursor;

typedef struct executable {
    const sgm__plan *plan;
    /* Of nodes that an elementwise step computes: the step, or -1, and the place among its members. */
    int32_t *step_of, *position_of;
    /* Scratch memory, large enough for every step of the plan: */
    slot *slots;     /* the present element of each member of an elementwise step */
    cursor *cursors; /* of all operands of all members, then of those results that lie in memory */
    double *numbers; /* the operands of one formula; `wholes`: of a formula of int64 */
    int64_t *wholes;
    sgm_array *arrays; /* the operands of one call of `forward` */
} executable;

static void describe(void *self, sgm__text *text)
{
    (void)self;
    sgm__text_append(text, "reference: plain loops in double precision, one thread\n");
}

/* Composed operations are answered with "none", so that the planner expands them: the reference computes each
 * by its parts. */
static const char *support(void *self, const sgm_op *op, sgm_dtype dtype)
{
    (void)self, (void)dtype;
    bool loops = op->compose == NULL && (op->scalar != NULL || op->forward != NULL);
    return loops ? "reference loop" : "none";
}

/* --- compiling --- */

static void discard(void *self, void *compiled)
{
    (void)self;
    executable *exe = compiled;
    sgm__free(exe->step_of);
    sgm__free(exe->position_of);
    sgm__free(exe->slots);
    sgm__free(exe->cursors);
    sgm__free(exe->numbers);
    sgm__free(exe->wholes);
    sgm__free(exe->arrays);
    sgm__free(exe);
}

/* A KERNEL step needs `forward`, a member of an elementwise step `scalar`. A plan made for a device may have
 * random_uniform among the members, which has no `scalar`; `draw` computes it. */
static sgm_status check_member(const sgm__plan *plan, int32_t index, sgm__step_kind kind)
{
    const sgm_op *op = plan->nodes[index].op;
    bool drawn = op == &sgm__op_random_uniform;
    if (kind == SGM__STEP_ELEMENTWISE ? op->scalar != NULL || drawn : op->forward != NULL)
        return SGM_OK;
    char where[320];
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s: the operation has no %s; give its table one",
                    sgm__plan_describe(plan, index, where, sizeof where),
                    kind == SGM__STEP_ELEMENTWISE ? "`scalar`" : "`forward`");
}

/* Checks every step, notes which step computes each node, and finds the largest scratch memory that a step
 * needs. */
static sgm_status measure(executable *exe, size_t *members, size_t *cursors, size_t *operands)
{
    const sgm__plan *plan = exe->plan;
    *members = *cursors = *operands = 0;
    for (int32_t s = 0; s < plan->step_count; s++) {
        const sgm__step *step = &plan->steps[s];
        size_t walks = 0;
        for (int32_t p = 0; p < step->count; p++) {
            int32_t index = plan->order[step->first + p];
            SGM_TRY(check_member(plan, index, step->kind));
            size_t inputs = (size_t)plan->nodes[index].input_count;
            walks += inputs + 1;
            *operands = inputs > *operands ? inputs : *operands;
            if (step->kind == SGM__STEP_ELEMENTWISE) {
                exe->step_of[index] = s;
                exe->position_of[index] = p;
            }
        }
        *members = (size_t)step->count > *members ? (size_t)step->count : *members;
        *cursors = walks > *cursors ? walks : *cursors;
    }
    return SGM_OK;
}

/* Allocates the tables and, once their size is known, the scratch memory. */
static sgm_status prepare(executable *exe)
{
    size_t nodes = (size_t)exe->plan->node_count, members, cursors, operands;
    exe->step_of = sgm__calloc(nodes, sizeof(int32_t));
    exe->position_of = sgm__calloc(nodes, sizeof(int32_t));
    if (exe->step_of == NULL || exe->position_of == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < nodes; i++)
        exe->step_of[i] = -1;
    SGM_TRY(measure(exe, &members, &cursors, &operands));
    exe->slots = sgm__calloc(members, sizeof(slot));
    exe->cursors = sgm__calloc(cursors, sizeof(cursor));
    exe->numbers = sgm__calloc(operands, sizeof(double));
    exe->wholes = sgm__calloc(operands, sizeof(int64_t));
    exe->arrays = sgm__calloc(operands, sizeof(sgm_array));
    if (exe->slots == NULL || exe->cursors == NULL || exe->numbers == NULL || exe->wholes == NULL ||
        exe->arrays == NULL)
        return SGM_ERROR_MEMORY;
    return SGM_OK;
}

static sgm_status compile(void *self, const sgm__plan *plan, void **compiled)
{
    executable *exe = sgm__calloc(1, sizeof(executable));
    if (exe == NULL)
        return SGM_ERROR_MEMORY;
    exe->plan = plan;
    sgm_status status = prepare(exe);
    if (status != SGM_OK) {
        discard(self, exe);
        return status;
    }
    *compiled = exe;
    return SGM_OK;
}

/* --- elementwise steps --- */

/* A cursor that begins at a value's first element. */
static cursor cursor_in_memory(const executable *exe, int32_t node, const sgm__memory *memory)
{
    sgm_array array = sgm__plan_array(exe->plan, node, memory);
    cursor walk = {.dtype = array.dtype, .at = array.data};
    for (int32_t i = 0; i < array.shape.rank; i++)
        walk.steps[i] = array.strides[i] * (int64_t)sgm_dtype_size(array.dtype);
    return walk;
}

/* Points the cursors to the operands and results of a step, in the order in which compute_element uses them.
 * Operands that are members of the same step are read from their slots. Returns the number of cursors. */
static int32_t place_cursors(executable *exe, int32_t number, const sgm__memory *memory)
{
    const sgm__plan *plan = exe->plan;
    const sgm__step *step = &plan->steps[number];
    int32_t count = 0;
    for (int32_t p = 0; p < step->count; p++) {
        const sgm__node *node = &plan->nodes[plan->order[step->first + p]];
        for (int32_t k = 0; k < node->input_count; k++) {
            int32_t operand = plan->operands[node->first_input + k];
            if (exe->step_of[operand] == number)
                exe->cursors[count++] =
                    (cursor){.dtype = plan->nodes[operand].type.dtype,
                             .at = (unsigned char *)&exe->slots[exe->position_of[operand]]};
            else
                exe->cursors[count++] = cursor_in_memory(exe, operand, memory);
        }
    }
    for (int32_t p = 0; p < step->count; p++) {
        int32_t index = plan->order[step->first + p];
        if (plan->nodes[index].place.store != SGM__STORE_NONE)
            exe->cursors[count++] = cursor_in_memory(exe, index, memory);
    }
    return count;
}

/* For operations that only copy or select: the operand whose element is the result, which is converted
 * without going through double, as a double does not hold every int64. -1: the operation computes. */
static int32_t moved_operand(const sgm_op *op, const cursor *operands)
{
    if (op == &sgm__op_copy || op == &sgm__op_stop_gradient || op == &sgm__op_cast)
        return 0;
    if (op == &sgm__op_select)
        return sgm__element_load(operands[0].dtype, operands[0].at) != 0 ? 1 : 2;
    return -1;
}

/* Random number `element`, in row-major order, of a random_uniform in an elementwise step: Philox4x32-10
 * (Salmon et al., 2011) with the seed as key and (stream, block, step) as counter, like the operation itself.
 * A block is four words; 24 bits of a word make a number in [0, 1) that float32 holds exactly. */
static double draw(const sgm__node *node, const cursor *operands, int64_t element)
{
    int64_t key[2]; /* the seed and the step, whatever type they are stored in */
    uint32_t words[4];
    for (int k = 0; k < 2; k++)
        sgm__element_convert(SGM_INT64, &key[k], operands[k].dtype, operands[k].at);
    uint64_t stream = (uint64_t)node->attributes.integers[0] << 40;
    sgm__philox((uint64_t)key[0], (uint64_t)key[1], stream | (uint64_t)(element / 4), words);
    return (double)(words[element % 4] >> 8) * 0x1p-24;
}

/* A formula of int64, exact where double is not. */
static void compute_whole(const executable *exe, const sgm__node *node, const cursor *operands, slot *result)
{
    for (int32_t k = 0; k < node->input_count; k++)
        sgm__element_convert(SGM_INT64, &exe->wholes[k], operands[k].dtype, operands[k].at);
    int64_t value = node->op->whole(exe->wholes, &node->attributes);
    sgm__element_convert(node->type.dtype, result, SGM_INT64, &value);
}

/* Computes one element of one member into its slot, in the way that its operation and type need. */
static void compute_member(const executable *exe, const sgm__node *node, const cursor *operands,
                           int64_t element, slot *result)
{
    if (node->op == &sgm__op_random_uniform) {
        sgm__element_store(node->type.dtype, result, draw(node, operands, element));
        return;
    }
    int32_t moved = moved_operand(node->op, operands);
    if (moved >= 0) {
        sgm__element_convert(node->type.dtype, result, operands[moved].dtype, operands[moved].at);
        return;
    }
    if (node->op->whole != NULL && operands[0].dtype == SGM_INT64) {
        compute_whole(exe, node, operands, result);
        return;
    }
    for (int32_t k = 0; k < node->input_count; k++)
        exe->numbers[k] = sgm__element_load(operands[k].dtype, operands[k].at);
    sgm__element_store(node->type.dtype, result, node->op->scalar(exe->numbers, &node->attributes));
}

/* Computes one element of every member, then stores those that lie in memory: a result may share its place
 * with an operand, so all operands are read first. */
static void compute_element(const executable *exe, const sgm__step *step, int64_t element)
{
    const sgm__plan *plan = exe->plan;
    const cursor *walk = exe->cursors;
    for (int32_t p = 0; p < step->count; p++) {
        const sgm__node *node = &plan->nodes[plan->order[step->first + p]];
        compute_member(exe, node, walk, element, &exe->slots[p]);
        walk += node->input_count;
    }
    for (int32_t p = 0; p < step->count; p++)
        if (plan->nodes[plan->order[step->first + p]].place.store != SGM__STORE_NONE) {
            memcpy(walk->at, &exe->slots[p], sgm_dtype_size(walk->dtype));
            walk++;
        }
}

/* Moves all cursors to the next element in row-major order. Where an axis ends, its cursors go back to its
 * beginning and the axis before it advances. */
static void advance(executable *exe, int32_t count, const sgm_shape *shape, int64_t *index)
{
    for (int32_t axis = shape->rank; axis-- > 0;) {
        bool wraps = ++index[axis] == shape->dims[axis];
        int64_t moves = wraps ? 1 - shape->dims[axis] : 1;
        for (int32_t c = 0; c < count; c++)
            exe->cursors[c].at += exe->cursors[c].steps[axis] * moves;
        if (!wraps)
            return;
        index[axis] = 0;
    }
}

/* All cursors advance together, as all operands and results have the step's shape, by strides of their
 * own. */
static void run_elementwise(executable *exe, int32_t number, const sgm__memory *memory)
{
    const sgm__step *step = &exe->plan->steps[number];
    const sgm_shape *shape = &exe->plan->nodes[exe->plan->order[step->first]].type.shape;
    int64_t index[SGM_MAX_RANK] = {0}, elements = sgm_shape_elements(shape);
    int32_t count = place_cursors(exe, number, memory);
    for (int64_t i = 0; i < elements; i++) {
        compute_element(exe, step, i);
        advance(exe, count, shape, index);
    }
}

/* --- kernels --- */

/* One call of the operation's `forward`; a failure names the instruction and its layer. */
static sgm_status run_kernel(executable *exe, int32_t number, const sgm__memory *memory)
{
    const sgm__plan *plan = exe->plan;
    int32_t index = plan->order[plan->steps[number].first];
    const sgm__node *node = &plan->nodes[index];
    for (int32_t k = 0; k < node->input_count; k++)
        exe->arrays[k] = sgm__plan_array(plan, plan->operands[node->first_input + k], memory);
    sgm_kernel_call call = {.inputs = exe->arrays,
                            .input_count = node->input_count,
                            .output = sgm__plan_array(plan, index, memory),
                            .attributes = &node->attributes};
    sgm_status status = node->op->forward(&call);
    char where[320];
    if (status != SGM_OK)
        sgm__fail_within("%s", sgm__plan_describe(plan, index, where, sizeof where));
    return status;
}

static sgm_status run(void *self, void *compiled, const sgm__memory *memory, int32_t first, int32_t count)
{
    (void)self;
    executable *exe = compiled;
    for (int32_t s = first; s < first + count; s++) {
        if (exe->plan->steps[s].kind == SGM__STEP_ELEMENTWISE)
            run_elementwise(exe, s, memory);
        else
            SGM_TRY(run_kernel(exe, s, memory));
    }
    return SGM_OK;
}

const sgm__handler_type sgm__reference_handler = {
    .name = "reference",
    .doc = "plain loops in double precision",
    .flags = SGM__HANDLER_HOST,
    .open = sgm__host_open,
    .close = sgm__host_close,
    .describe = describe,
    .support = support,
    SGM__HOST_BUFFERS,
    .compile = compile,
    .discard = discard,
    .run = run,
};
