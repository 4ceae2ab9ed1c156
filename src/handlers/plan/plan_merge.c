/* Planning: merges an elementwise step into the first step that reads its results, if that is elementwise
 * too.
 *
 * plan_steps.c makes steps in recorded order, so where two chains meet (an optimiser's running averages and
 * the gradient, the gates of a recurrent layer) one of them is a step of its own. Computed within its
 * reader's step, its values need no memory and no traffic; those that later steps read, too, are still
 * written. Moving a step back keeps its operands alive for longer, so the bytes gained and lost are compared.
 * Neighbouring steps that are computed for one reader of another kind (the gradients of a recurrent layer's
 * gates, for a matrix product) are merged as well, since most of their operands are the same.
 *
 * The plan itself is not written here, only `step` and `position` of the nodes.
 */
#include "handlers/plan/plan_build.h"

/* Steps: within this distance the reader follows so soon that it does not matter how long operands stay
 * alive. */
#define NEAR 4

/* Steps as linked lists of their members, so that merging two is cheap. */
typedef struct merge {
    sgm__plan_build *build;
    int32_t count;
    int32_t *sizes;  /* of steps: the number of members; 0: merged into another */
    int32_t *first;  /* of steps: a member, with the others behind it in `next`; -1: none */
    int32_t *next;   /* of nodes: the next member of the same step; -1: the last */
    int32_t *writer; /* of nodes that are states: the node that overwrites it; -1: none does */
} merge;

static const sgm__node *node_at(const merge *m, int32_t index)
{
    return &m->build->plan->nodes[index];
}

static int32_t operand_of(const merge *m, int32_t index, int32_t k)
{
    return m->build->plan->operands[node_at(m, index)->first_input + k];
}

static int32_t root_of(const merge *m, int32_t index)
{
    return m->build->notes[index].root;
}

static int32_t step_of(const merge *m, int32_t index)
{
    return m->build->notes[index].step;
}

static bool is_elementwise(const merge *m, int32_t step)
{
    return m->sizes[step] > 0 && sgm__plan_is_tiled(m->build, m->first[step]);
}

static const sgm__plan_reader *readers_of(const merge *m, int32_t root, int32_t *count)
{
    const int32_t *first = &m->build->first_reader[root];
    *count = first[1] - first[0];
    return &m->build->readers[first[0]];
}

/* The first later step that reads a result of `step`; -1: none does. *direct: that step reads at least one
 * result element by element, without a view. */
static int32_t find_reader(const merge *m, int32_t step, bool *direct)
{
    int32_t first = INT32_MAX, count;
    *direct = false;
    for (int32_t i = m->first[step]; i >= 0; i = m->next[i]) {
        const sgm__plan_reader *readers = readers_of(m, i, &count);
        for (int32_t r = 0; r < count; r++) {
            int32_t at = step_of(m, readers[r].node);
            if (at < 0 || at == step || at > first)
                continue;
            *direct = readers[r].operand == i && (at < first || *direct);
            first = at;
        }
    }
    return first < INT32_MAX ? first : -1;
}

/* Whether a state that `step` reads would be overwritten before `step` runs as a part of `later`. Overwriting
 * within `later` itself is allowed where the old value is read element by element. */
static bool is_overtaken(const merge *m, int32_t step, int32_t later)
{
    for (int32_t i = m->first[step]; i >= 0; i = m->next[i])
        for (int32_t k = 0; k < node_at(m, i)->input_count; k++) {
            int32_t operand = operand_of(m, i, k), root = root_of(m, operand);
            int32_t at = m->writer[root] >= 0 ? step_of(m, m->writer[root]) : -1;
            if (at > step && at <= later && !(at == later && operand == root))
                return true;
        }
    return false;
}

static bool is_read_after(const merge *m, int32_t root, int32_t step)
{
    int32_t count;
    const sgm__plan_reader *readers = readers_of(m, root, &count);
    for (int32_t r = 0; r < count; r++)
        if (step_of(m, readers[r].node) > step)
            return true;
    return false;
}

/* Bytes that stay allocated for longer if the step moves back: computed operands whose last reader it is. */
static int64_t cost_of(const merge *m, int32_t step)
{
    int64_t cost = 0;
    for (int32_t i = m->first[step]; i >= 0; i = m->next[i])
        for (int32_t k = 0; k < node_at(m, i)->input_count; k++) {
            int32_t root = root_of(m, operand_of(m, i, k));
            if (step_of(m, root) >= 0 && step_of(m, root) != step && !is_read_after(m, root, step))
                cost += (int64_t)sgm__type_bytes(&node_at(m, root)->type);
        }
    return cost;
}

/* Bytes of results that later steps read; merged with the reader, they need no memory. */
static int64_t gain_of(const merge *m, int32_t step)
{
    int64_t gain = 0;
    for (int32_t i = m->first[step]; i >= 0; i = m->next[i])
        if (is_read_after(m, i, step))
            gain += (int64_t)sgm__type_bytes(&node_at(m, i)->type);
    return gain;
}

/* Whether `step` can become a part of the elementwise step `reader`, and whether that is worth it. */
static bool can_move(const merge *m, int32_t step, int32_t reader)
{
    return is_elementwise(m, reader) && m->sizes[step] + m->sizes[reader] <= SGM__PLAN_LONGEST_CHAIN &&
           sgm_shape_equal(&node_at(m, m->first[step])->type.shape,
                           &node_at(m, m->first[reader])->type.shape) &&
           !is_overtaken(m, step, reader) && (reader - step <= NEAR || cost_of(m, step) <= gain_of(m, step));
}

/* A step at most NEAR behind this one that also computes something for `reader`, so that both become one; -1:
 * there is none. */
static int32_t find_neighbour(const merge *m, int32_t step, int32_t reader)
{
    bool direct;
    for (int32_t s = step + 1; s <= step + NEAR && s < reader; s++)
        if (is_elementwise(m, s) && find_reader(m, s, &direct) == reader && can_move(m, step, s))
            return s;
    return -1;
}

/* The later step that this one is merged into; -1: it stays. */
static int32_t find_place(const merge *m, int32_t step)
{
    bool direct;
    int32_t reader = is_elementwise(m, step) ? find_reader(m, step, &direct) : -1;
    if (reader < 0)
        return -1;
    if (is_elementwise(m, reader))
        return direct && can_move(m, step, reader) ? reader : -1;
    return find_neighbour(m, step, reader);
}

/* Moves all members of `step` into `reader`. */
static void move(merge *m, int32_t step, int32_t reader)
{
    int32_t last = m->first[step];
    for (int32_t i = last; i >= 0; i = m->next[i]) {
        m->build->notes[i].step = reader;
        last = i;
    }
    m->next[last] = m->first[reader];
    m->first[reader] = m->first[step];
    m->first[step] = -1;
    m->sizes[reader] += m->sizes[step];
    m->sizes[step] = 0;
}

/* Numbers the remaining steps from 0, and the members of each by node number, so that operands come before
 * their readers. */
static void renumber(merge *m)
{
    int32_t kept = 0, *numbers = m->first;
    for (int32_t s = 0; s < m->count; s++)
        numbers[s] = m->sizes[s] > 0 ? kept++ : -1;
    memset(m->sizes, 0, (size_t)m->count * sizeof *m->sizes);
    for (int32_t i = 0; i < m->build->plan->node_count; i++) {
        sgm__plan_node_notes *notes = &m->build->notes[i];
        if (notes->step < 0)
            continue;
        notes->step = numbers[notes->step];
        notes->position = m->sizes[notes->step]++;
    }
    m->count = kept;
}

/* Builds the lists from the nodes' notes; going backwards keeps members in ascending order. */
static void list_members(merge *m)
{
    for (int32_t s = 0; s < m->count; s++)
        m->first[s] = -1;
    for (int32_t i = m->build->plan->node_count; i-- > 0;)
        m->writer[i] = -1;
    for (int32_t i = m->build->plan->node_count; i-- > 0;) {
        int32_t step = step_of(m, i), state = m->build->notes[i].writes;
        if (state >= 0)
            m->writer[state] = i;
        if (step < 0)
            continue;
        m->sizes[step]++;
        m->next[i] = m->first[step];
        m->first[step] = i;
    }
}

/* Goes from the last step to the first, so that whole sequences of steps end up in the last one. One
 * allocation holds all four arrays. */
sgm_status sgm__plan_merge_steps(sgm__plan_build *build, int32_t *count)
{
    merge m = {.build = build, .count = *count};
    size_t steps = (size_t)*count, nodes = (size_t)build->plan->node_count;
    m.sizes = sgm__calloc(2 * (steps + nodes) + 1, sizeof(int32_t));
    if (m.sizes == NULL)
        return SGM_ERROR_MEMORY;
    m.first = m.sizes + steps;
    m.next = m.first + steps;
    m.writer = m.next + nodes;
    list_members(&m);
    for (int32_t s = *count; s-- > 0;) {
        int32_t place = find_place(&m, s);
        if (place >= 0)
            move(&m, s, place);
    }
    renumber(&m);
    *count = m.count;
    sgm__free(m.sizes);
    return SGM_OK;
}
