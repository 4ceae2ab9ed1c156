/* Planning: moves updates of large states to the earliest possible place in the order of steps.
 *
 * Updates are recorded last, which would keep all gradients in memory until the end. Moved to right behind
 * the step that makes the gradient, or the last one that reads the old state, the gradient's memory is free
 * early, the gradient is still in the cache, and the product that makes it may run together with the update
 * (cpu/run/fused.c). Two more kinds of steps move: elementwise steps whose only reader is a sum to one number
 * (the squares of a gradient, for clipping by the norm), with that sum; and steps that compute single numbers
 * from inputs and states alone (an optimiser's factors), which come first, as all updates wait for them.
 * docs/performance.md has what it is worth: 28 instead of 34 MB for 784-1024-1024-10.
 */
#include "handlers/plan/plan_build.h"
#include "ops/ops.h"

/* Smaller updates stay in their place, as, moved, they would separate a product from the step that runs with
 * it. */
#define LARGE                                                                                                \
    (1 << 20) /* bytes of a state whose update is moved: smaller gradients stay in the cache anyway */

/* Elements of terms that are summed to one number, for both to be moved; fewer are still in the cache
 * later. */
#define MINIMUM_SUMMED 4096

/* Steps with their members, and for each step the step that it shall follow. One allocation, beginning at
 * `member`, holds all arrays. */
typedef struct ordering {
    sgm__plan_build *build;
    int32_t count;
    /* Of steps: the first member; of nodes: the next member of the same step; -1: none. */
    int32_t *member, *next_member;
    int32_t *after; /* of steps: the step that this one shall follow, or OWN_PLACE or FIRST */
    /* Of steps: the first step that follows this one; the next one that follows the same; -1: none. */
    int32_t *moved, *next_moved;
    int32_t *numbers; /* of steps: the new number */
} ordering;

/* Values of ordering.after besides numbers of steps: the step stays in the recorded order; the step precedes
 * all others. */
#define OWN_PLACE INT32_MAX
#define FIRST (-1)

static int32_t step_of(const ordering *o, int32_t node)
{
    return o->build->notes[node].step;
}

/* The newest step other than `step` that reads the memory of `root`; -1: none does. */
static int32_t last_reader(const ordering *o, int32_t root, int32_t step)
{
    int32_t last = -1;
    for (int32_t r = o->build->first_reader[root]; r < o->build->first_reader[root + 1]; r++) {
        int32_t at = step_of(o, o->build->readers[r].node);
        last = at != step && at > last ? at : last;
    }
    return last;
}

/* Whether the step overwrites large states and computes nothing that other steps read. */
static bool is_update(const ordering *o, int32_t step)
{
    bool writes = false;
    const sgm_type *type = &o->build->plan->nodes[o->member[step]].type;
    if ((int64_t)sgm__type_bytes(type) < LARGE)
        return false;
    for (int32_t i = o->member[step]; i >= 0; i = o->next_member[i]) {
        if (last_reader(o, i, step) >= 0)
            return false;
        writes = writes || o->build->notes[i].writes >= 0;
    }
    return writes;
}

/* Whether all members are single numbers that depend only on sources or on other such steps. A state that the
 * step overwrites must have no other reader, which would then come too late. */
static bool is_of_numbers(const ordering *o, int32_t step)
{
    const sgm__plan *plan = o->build->plan;
    for (int32_t i = o->member[step]; i >= 0; i = o->next_member[i]) {
        const sgm__node *node = &plan->nodes[i];
        int32_t state = o->build->notes[i].writes;
        if (!sgm__plan_is_fusable(node->op) || sgm_shape_elements(&node->type.shape) != 1 ||
            (state >= 0 && last_reader(o, state, step) >= 0))
            return false;
        for (int32_t k = 0; k < node->input_count; k++) {
            int32_t from = step_of(o, o->build->notes[plan->operands[node->first_input + k]].root);
            if (from >= 0 && from != step && o->after[from] != FIRST)
                return false;
        }
    }
    return true;
}

static bool is_moved(const ordering *o, int32_t step)
{
    return o->after[step] != OWN_PLACE && o->after[step] != FIRST;
}

/* The step with a sum to one number that is the only reader of all results of this elementwise step; -1:
 * there is none. */
static int32_t find_sum(const ordering *o, int32_t step)
{
    const sgm__plan *plan = o->build->plan;
    int32_t sum = -1;
    const sgm__node *first = &plan->nodes[o->member[step]];
    if (!sgm__plan_is_fusable(first->op) || sgm_shape_elements(&first->type.shape) < MINIMUM_SUMMED)
        return -1;
    for (int32_t i = o->member[step]; i >= 0; i = o->next_member[i]) {
        if (o->build->notes[i].writes >= 0)
            return -1;
        for (int32_t r = o->build->first_reader[i]; r < o->build->first_reader[i + 1]; r++) {
            int32_t reader = o->build->readers[r].node;
            if (step_of(o, reader) == step)
                continue;
            if (plan->nodes[reader].op != &sgm__op_reduce_sum ||
                sgm_shape_elements(&plan->nodes[reader].type.shape) != 1 ||
                (sum >= 0 && sum != step_of(o, reader)))
                return -1;
            sum = step_of(o, reader);
        }
    }
    return sum;
}

/* The newest step that must run before this one: those that make its operands and those that read a state
 * that it overwrites. OWN_PLACE if one of them has been moved itself, since its new place cannot be compared
 * by number. */
static int32_t awaited(const ordering *o, int32_t step)
{
    const sgm__plan *plan = o->build->plan;
    int32_t newest = FIRST;
    for (int32_t i = o->member[step]; i >= 0; i = o->next_member[i]) {
        int32_t state = o->build->notes[i].writes, reader = state >= 0 ? last_reader(o, state, step) : -1;
        if (reader >= 0 && is_moved(o, reader))
            return OWN_PLACE;
        newest = reader > newest ? reader : newest;
        for (int32_t k = 0; k < plan->nodes[i].input_count; k++) {
            int32_t from = step_of(o, o->build->notes[plan->operands[plan->nodes[i].first_input + k]].root);
            if (from >= 0 && from != step && is_moved(o, from))
                return OWN_PLACE;
            if (from > newest && from != step && o->after[from] != FIRST)
                newest = from;
        }
    }
    return newest;
}

/* If the step's results are only summed to one number, the step follows the one that makes its operands, and
 * the sum follows the step. */
static void place_terms(const ordering *o, int32_t step)
{
    int32_t sum = o->after[step] == OWN_PLACE ? find_sum(o, step) : -1,
            after = sum >= 0 ? awaited(o, step) : -1;
    if (after < 0 || after == OWN_PLACE || after == step - 1)
        return;
    o->after[step] = after;
    o->after[sum] = step;
}

/* Builds the lists of members, then decides for each step in recorded order. */
static void choose_places(const ordering *o)
{
    for (int32_t s = 0; s < o->count; s++)
        o->member[s] = o->moved[s] = -1;
    for (int32_t i = o->build->plan->node_count; i-- > 0;)
        if (step_of(o, i) >= 0) {
            o->next_member[i] = o->member[step_of(o, i)];
            o->member[step_of(o, i)] = i;
        }
    for (int32_t s = 0; s < o->count; s++)
        o->after[s] = OWN_PLACE;
    for (int32_t s = 0; s < o->count; s++) {
        if (is_moved(o, s))
            continue; /* a sum that place_terms has placed behind its terms */
        o->after[s] = is_of_numbers(o, s) ? FIRST : is_update(o, s) ? awaited(o, s) : OWN_PLACE;
        place_terms(o, s);
    }
}

/* Assigns the new numbers: steps that come first, then each step in recorded order, followed by the steps
 * that follow it. Only sums follow a step that was moved itself. */
static void number_steps(const ordering *o)
{
    int32_t number = 0;
    for (int32_t s = o->count; s-- > 0;)
        if (o->after[s] != OWN_PLACE && o->after[s] != FIRST) {
            o->next_moved[s] = o->moved[o->after[s]];
            o->moved[o->after[s]] = s;
        }
    for (int32_t s = 0; s < o->count; s++)
        if (o->after[s] == FIRST)
            o->numbers[s] = number++;
    for (int32_t s = 0; s < o->count; s++) {
        if (o->after[s] == OWN_PLACE)
            o->numbers[s] = number++;
        for (int32_t m = is_moved(o, s) ? -1 : o->moved[s]; m >= 0; m = o->next_moved[m]) {
            o->numbers[m] = number++;
            if (o->moved[m] >= 0) /* the sum of the terms computed in m */
                o->numbers[o->moved[m]] = number++;
        }
    }
}

/* Writes the new numbers into the nodes' notes. */
static void renumber(const ordering *o)
{
    sgm__plan_node_notes *notes = o->build->notes;
    for (int32_t i = 0; i < o->build->plan->node_count; i++)
        notes[i].step = notes[i].step >= 0 ? o->numbers[notes[i].step] : -1;
}

sgm_status sgm__plan_order_steps(sgm__plan_build *build, int32_t count)
{
    size_t steps = (size_t)count;
    ordering o = {.build = build, .count = count};
    o.member = sgm__calloc(5 * steps + (size_t)build->plan->node_count + 1, sizeof(int32_t));
    if (o.member == NULL)
        return SGM_ERROR_MEMORY;
    o.after = o.member + steps;
    o.moved = o.after + steps;
    o.next_moved = o.moved + steps;
    o.numbers = o.next_moved + steps;
    o.next_member = o.numbers + steps;
    choose_places(&o);
    number_steps(&o);
    renumber(&o);
    sgm__free(o.member);
    return SGM_OK;
}
