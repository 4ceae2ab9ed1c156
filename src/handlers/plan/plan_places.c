/* Planning, third part: places. Memory in the arena is given when a value is made and taken back after its
 * last reader; an elementwise result may take the place of an operand that nobody needs any more. */
#include "handlers/plan/plan_build.h"

#define ALIGNMENT 64

typedef struct block {
    int64_t offset, size;
} block;

typedef struct arena {
    block *free; /* by offset */
    size_t count, capacity;
    int64_t end;
} arena;

static int64_t bytes_of(const sgm__node *node)
{
    int64_t bytes = sgm_shape_elements(&node->type.shape) * (int64_t)sgm_dtype_size(node->type.dtype);
    return bytes == 0 ? ALIGNMENT : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The smallest free block that is large enough, else new memory at the end. */
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

/* Marks the nodes that are read by other steps than their own, or by other strides: those need memory. */
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

/* The node whose place `node` of an elementwise step may take: it dies here, has the same layout, and no one
 * reads it in this step after `node` wrote, nor by other strides. */
static int32_t find_heir(const sgm__plan_build *build, const sgm__step *step, int32_t node,
                         const bool *inherited)
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
                inherited[candidate] || build->notes[candidate].buffer >= 0 ||
                build->notes[candidate].is_in_place ||
                sgm_dtype_size(old->type.dtype) != sgm_dtype_size(plan->nodes[node].type.dtype) ||
                sgm__plan_is_drawn(build, plan->order[step->first + p])) /* of a single seed */
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

/* Nodes by the last step that reads their memory: first[step], then next[node], -1 at the end. */
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

static sgm_status free_dead(sgm__plan_build *build, int32_t first, const deaths *dying, arena *memory,
                            const bool *inherited)
{
    for (int32_t i = first; i >= 0; i = dying->next[i]) {
        const sgm__node *node = &build->plan->nodes[i];
        if (node->place.store == SGM__STORE_ARENA && !inherited[i])
            SGM_TRY(give_back(memory, node->place.offset, bytes_of(node)));
    }
    return SGM_OK;
}

/* What others lie in lives from the first of them to the last use of any. */
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

/* In the memory of a concatenation, which the first of its parts to be made takes. */
static void place_in_buffer(sgm__plan_build *build, int32_t node, arena *memory)
{
    const sgm__plan_node_notes *notes = &build->notes[node];
    sgm__node *buffer = &build->plan->nodes[notes->buffer >= 0 ? notes->buffer : node];
    if (buffer->place.offset < 0)
        buffer->place.offset = take(memory, bytes_of(buffer));
    if (notes->buffer >= 0)
        build->plan->nodes[node].place.offset = buffer->place.offset + notes->buffer_offset;
}

static sgm_status place_step(sgm__plan_build *build, int32_t index, const deaths *dying, arena *memory,
                             bool *inherited, const bool *outside)
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
        /* Random numbers are drawn before all else in a tile, while operands are still read. */
        bool inherits = step->kind == SGM__STEP_ELEMENTWISE && !sgm__plan_is_drawn(build, current);
        int32_t heir = inherits ? find_heir(build, step, current, inherited) : -1;
        if (heir >= 0)
            inherited[heir] = true;
        node->place.offset = heir >= 0 ? plan->nodes[heir].place.offset : take(memory, bytes_of(node));
    }
    return free_dead(build, dying->first[index], dying, memory, inherited);
}

/* Views see their root's memory. */
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
    bool *inherited = flags, *outside = flags + build->plan->node_count;
    find_outside_uses(build, outside);
    extend_buffers(build);
    deaths dying = {0};
    sgm_status status = find_deaths(build, &dying);
    for (int32_t s = 0; s < build->plan->step_count && status == SGM_OK; s++)
        status = place_step(build, s, &dying, &memory, inherited, outside);
    if (status == SGM_OK)
        place_views(build);
    build->plan->arena_bytes = memory.end;
    sgm__free(dying.first);
    sgm__free(memory.free);
    sgm__free(flags);
    return status;
}
