/* Planning, third part: gives every value its memory.
 *
 * The steps are walked through in the order of execution. A result takes the smallest free block of the arena
 * that is large enough (best fit), and its block is free again after the step with its last reader. An
 * elementwise result, and one of an operation of SGM_OP_IN_PLACE, may take over the block of an operand that
 * dies in its step. Values that only members of their own step read get no memory at all. Operands of
 * concatenations share the block of the concatenation (plan_buffers.c). Everything is decided once, when
 * planning: in a run nothing is allocated.
 */
#include "handlers/plan/plan_build.h"

/* A free range of the arena, in bytes. */
typedef struct block {
    int64_t offset, size;
} block;

/* The arena while it is planned. Free blocks are sorted by offset and never adjacent to each other. */
typedef struct arena {
    block *free; /* sorted by offset */
    size_t count, capacity;
    int64_t end; /* bytes in use at the most so far: the arena's size in the end */
} arena;

/* All sizes, and so all offsets in the arena, are aligned. A value without elements takes a block, too, so
 * that its offset is its own. */
static int64_t bytes_of(const sgm__node *node)
{
    size_t bytes = sgm__type_bytes(&node->type);
    return (int64_t)(bytes == 0 ? SGM__ALIGNMENT : sgm__align(bytes));
}

/* The offset of `size` bytes: the smallest free block that is large enough, else new memory at the end,
 * beginning with the last block if that reaches the end. */
static int64_t take(arena *memory, int64_t size)
{
    size_t best = memory->count;
    for (size_t i = 0; i < memory->count; i++)
        if (memory->free[i].size >= size &&
            (best == memory->count || memory->free[i].size < memory->free[best].size))
            best = i;
    if (best == memory->count) {
        bool extends =
            memory->count > 0 &&
            memory->free[memory->count - 1].offset + memory->free[memory->count - 1].size == memory->end;
        int64_t offset = extends ? memory->free[--memory->count].offset : memory->end;
        memory->end = offset + size;
        return offset;
    }
    block *found = &memory->free[best];
    int64_t offset = found->offset;
    found->offset += size;
    found->size -= size;
    if (found->size == 0) {
        memmove(found, found + 1, (memory->count - best - 1) * sizeof(block));
        memory->count--;
    }
    return offset;
}

/* Returns a range to the free blocks and joins it with the neighbours before and behind it. */
static sgm_status give_back(arena *memory, int64_t offset, int64_t size)
{
    SGM_TRY(sgm__reserve(&memory->free, &memory->capacity, memory->count + 1, sizeof(block)));
    size_t at = 0;
    while (at < memory->count && memory->free[at].offset < offset)
        at++;
    memmove(memory->free + at + 1, memory->free + at, (memory->count - at) * sizeof(block));
    memory->free[at] = (block){offset, size};
    memory->count++;
    for (size_t i = at > 0 ? at - 1 : 0; i + 1 < memory->count && i <= at;) {
        if (memory->free[i].offset + memory->free[i].size != memory->free[i + 1].offset) {
            i++;
            continue;
        }
        memory->free[i].size += memory->free[i + 1].size;
        memmove(memory->free + i + 1, memory->free + i + 2, (memory->count - i - 2) * sizeof(block));
        memory->count--;
    }
    return SGM_OK;
}

/* --- who reads what, and when --- */

/* Marks roots that need memory: another step reads them, or a member of their own step reads them through a
 * view, that is not element by element, or they are outputs. Outputs also stay alive to the end. */
static void find_outside_uses(sgm__plan_build *build, bool *outside)
{
    sgm__plan *plan = build->plan;
    for (int32_t i = 0; i < plan->node_count; i++) {
        const sgm__node *node = &plan->nodes[i];
        if (build->notes[i].step < 0)
            continue;
        for (int32_t k = 0; k < node->input_count; k++) {
            int32_t operand = plan->operands[node->first_input + k], root = build->notes[operand].root;
            if (root != operand || build->notes[root].step != build->notes[i].step)
                outside[root] = true;
        }
    }
    for (int32_t i = 0; i < plan->output_count; i++) {
        int32_t root = build->notes[plan->outputs[i].node].root;
        build->notes[root].last_use = INT32_MAX;
        outside[root] = true;
    }
}

/* An operand whose memory the result `node` of an elementwise step can take over; -1: there is none. The
 * operand must lie in memory of its own in the arena, die in this step, and have elements of the same size.
 * Every read of its memory in the step must be element by element (operand == candidate, no view) and must
 * come no later than `node` does (q <= position), so that each element is read before it is overwritten. An
 * operand of random_uniform, the single seed, is read by every element. */
static int32_t find_donor(const sgm__plan_build *build, const sgm__step *step, int32_t node,
                          const bool *taken)
{
    const sgm__plan *plan = build->plan;
    int32_t position = build->notes[node].position, now = build->notes[node].step;
    for (int32_t p = 0; p <= position; p++) {
        const sgm__node *member = &plan->nodes[plan->order[step->first + p]];
        for (int32_t k = 0; k < member->input_count; k++) {
            int32_t candidate = plan->operands[member->first_input + k];
            const sgm__node *old = &plan->nodes[candidate];
            if (build->notes[candidate].root != candidate || old->place.store != SGM__STORE_ARENA ||
                build->notes[candidate].last_use != now || build->notes[candidate].step == now ||
                taken[candidate] || build->notes[candidate].buffer >= 0 ||
                build->notes[candidate].is_in_place ||
                sgm_dtype_size(old->type.dtype) != sgm_dtype_size(plan->nodes[node].type.dtype) ||
                /* Reads a single seed for all elements. */
                sgm__plan_is_drawn(build, plan->order[step->first + p]))
                continue;
            bool safe = true;
            for (int32_t q = 0; q < step->count && safe; q++) {
                const sgm__node *reader = &plan->nodes[plan->order[step->first + q]];
                for (int32_t j = 0; j < reader->input_count; j++) {
                    int32_t operand = plan->operands[reader->first_input + j];
                    bool reads = build->notes[operand].root == candidate;
                    safe = safe && !(reads && (operand != candidate || q > position));
                }
            }
            if (safe)
                return candidate;
        }
    }
    return -1;
}

/* The same for a step that is one operation of SGM_OP_IN_PLACE: the memory of its first operand, if that dies
 * in this step, has the result's type, lies without gaps from its root's first element on, and the operation
 * reads nothing else there. */
static int32_t find_overwritten(const sgm__plan_build *build, int32_t index, const bool *taken)
{
    const sgm__plan *plan = build->plan;
    const sgm__node *node = &plan->nodes[index];
    if ((node->op->flags & SGM_OP_IN_PLACE) == 0)
        return -1;
    int32_t operand = plan->operands[node->first_input], root = build->notes[operand].root;
    const sgm__plan_node_notes *notes = &build->notes[root];
    if (plan->nodes[root].place.store != SGM__STORE_ARENA || taken[root] || notes->buffer >= 0 ||
        notes->is_in_place || notes->step < 0 || notes->last_use != build->notes[index].step ||
        plan->nodes[operand].type.dtype != node->type.dtype || build->notes[operand].view_offset != 0 ||
        sgm_shape_elements(&plan->nodes[root].type.shape) != sgm_shape_elements(&node->type.shape) ||
        sgm__node_span(&plan->nodes[operand]).gaps)
        return -1;
    for (int32_t k = 1; k < node->input_count; k++)
        if (build->notes[plan->operands[node->first_input + k]].root == root)
            return -1;
    return root;
}

/* Roots in the arena, listed by the last step that reads them: first[step], then next[node]; -1 at the
 * end. */
typedef struct deaths {
    int32_t *first, *next;
} deaths;

static sgm_status find_deaths(const sgm__plan_build *build, deaths *dying)
{
    int32_t nodes = build->plan->node_count, steps = build->plan->step_count;
    dying->first = sgm__calloc((size_t)nodes + (size_t)steps + 1, sizeof(int32_t));
    if (dying->first == NULL)
        return SGM_ERROR_MEMORY;
    dying->next = dying->first + steps;
    for (int32_t s = 0; s < steps; s++)
        dying->first[s] = -1;
    for (int32_t i = nodes; i-- > 0;) {
        const sgm__plan_node_notes *notes = &build->notes[i];
        if (notes->root != i || notes->buffer >= 0 || notes->step < 0 || notes->last_use < 0 ||
            notes->last_use >= steps)
            continue;
        dying->next[i] = dying->first[notes->last_use];
        dying->first[notes->last_use] = i;
    }
    return SGM_OK;
}

/* Gives back the memory of roots that die in a step, except where a result took it over. */
static sgm_status free_dead(sgm__plan_build *build, int32_t first, const deaths *dying, arena *memory,
                            const bool *taken)
{
    for (int32_t i = first; i >= 0; i = dying->next[i]) {
        const sgm__node *node = &build->plan->nodes[i];
        if (node->place.store == SGM__STORE_ARENA && !taken[i])
            SGM_TRY(give_back(memory, node->place.offset, bytes_of(node)));
    }
    return SGM_OK;
}

/* A concatenation with operands in its memory lives until the last use of any of them, and from the first of
 * them on: the offset -1 marks that none has taken the memory yet. */
static void extend_buffers(sgm__plan_build *build)
{
    for (int32_t i = 0; i < build->plan->node_count; i++) {
        const sgm__plan_node_notes *notes = &build->notes[i];
        if (notes->buffer >= 0 && notes->last_use > build->notes[notes->buffer].last_use)
            build->notes[notes->buffer].last_use = notes->last_use;
        if (notes->is_in_place)
            build->plan->nodes[i].place.offset = -1;
    }
}

/* Places a concatenation or one of its parts; the first of them to be computed takes memory for all. */
static void place_in_buffer(sgm__plan_build *build, int32_t node, arena *memory)
{
    const sgm__plan_node_notes *notes = &build->notes[node];
    sgm__node *buffer = &build->plan->nodes[notes->buffer >= 0 ? notes->buffer : node];
    if (buffer->place.offset < 0)
        buffer->place.offset = take(memory, bytes_of(buffer));
    if (notes->buffer >= 0)
        build->plan->nodes[node].place.offset = buffer->place.offset + notes->buffer_offset;
}

/* Places the results of a step, then frees what dies in it. The order matters: a result must not take memory
 * of an operand that the same step still reads, apart from what find_donor allows. */
static sgm_status place_step(sgm__plan_build *build, int32_t index, const deaths *dying, arena *memory,
                             bool *taken, const bool *outside)
{
    sgm__plan *plan = build->plan;
    const sgm__step *step = &plan->steps[index];
    for (int32_t p = 0; p < step->count; p++) {
        int32_t current = plan->order[step->first + p];
        sgm__node *node = &plan->nodes[current];
        if (node->place.store != SGM__STORE_ARENA)
            continue;
        bool is_within = build->notes[current].buffer >= 0 || build->notes[current].is_in_place;
        if (build->notes[current].buffer < 0 &&
            __builtin_add_overflow(plan->activation_bytes, bytes_of(node), &plan->activation_bytes))
            return sgm__fail_memory(SIZE_MAX);
        if (is_within) {
            place_in_buffer(build, current, memory);
            continue;
        }
        if (!outside[current]) {
            node->place.store = SGM__STORE_NONE;
            continue;
        }
        /* Handlers draw the random numbers of a tile before its other members read their operands, so drawn
         * numbers must not overwrite an operand. */
        bool takes_over = step->kind == SGM__STEP_ELEMENTWISE && !sgm__plan_is_drawn(build, current);
        int32_t donor = takes_over                       ? find_donor(build, step, current, taken)
                        : step->kind == SGM__STEP_KERNEL ? find_overwritten(build, current, taken)
                                                         : -1;
        if (donor >= 0)
            taken[donor] = true;
        node->place.offset = donor >= 0 ? plan->nodes[donor].place.offset : take(memory, bytes_of(node));
    }
    return free_dead(build, dying->first[index], dying, memory, taken);
}

/* Gives views the memory of their roots, with their offsets. */
static void place_views(sgm__plan_build *build)
{
    for (int32_t i = 0; i < build->plan->node_count; i++) {
        const sgm__plan_node_notes *notes = &build->notes[i];
        if (notes->root == i)
            continue;
        sgm__place *place = &build->plan->nodes[i].place;
        const sgm__place *root = &build->plan->nodes[notes->root].place;
        place->store = root->store;
        place->index = root->index;
        place->live = root->live;
        place->offset =
            root->offset + notes->view_offset * (int64_t)sgm_dtype_size(build->plan->nodes[i].type.dtype);
    }
}

sgm_status sgm__plan_build_places(sgm__plan_build *build)
{
    arena memory = {0};
    bool *flags = sgm__calloc((size_t)build->plan->node_count + 1, 2 * sizeof(bool));
    if (flags == NULL)
        return SGM_ERROR_MEMORY;
    bool *taken = flags, *outside = flags + build->plan->node_count;
    find_outside_uses(build, outside);
    extend_buffers(build);
    deaths dying = {0};
    sgm_status status = find_deaths(build, &dying);
    for (int32_t s = 0; s < build->plan->step_count && status == SGM_OK; s++)
        status = place_step(build, s, &dying, &memory, taken, outside);
    if (status == SGM_OK)
        place_views(build);
    build->plan->arena_bytes = memory.end;
    sgm__free(dying.first);
    sgm__free(memory.free);
    sgm__free(flags);
    return status;
}
