/* Planning: moves large products down to right before the first step that reads them, as compilers sink code.
 *
 * A gradient that waits for another part (of an embedding that also makes the logits, at the other end of the
 * network) takes memory all that time. If what the product is made of takes less, it is that which waits.
 * Besides, the product may then run together with its reader (cpu/run/fused.c) and need no memory at all.
 * Called after plan_order.c, whose order it changes in nothing else. */
#include "handlers/plan/plan_build.h"
#include "ops/ops.h"

/* Bytes of a product from which on it is moved: smaller ones stay in the cache until they are read. */
#define LARGE (1 << 20)

/* Steps: which step each one precedes directly (-1: it stays in its place), the first step that precedes this
 * one, the next one that precedes the same (-1: none), and the new number. One allocation, beginning at
 * `before`. */
typedef struct lateness {
    sgm__plan_build *build;
    int32_t count;
    int32_t *before, *first, *next, *numbers;
} lateness;

/* The first and the last step, apart from `step` itself, that read the memory of a root; -1: none does. */
static void find_readers(const lateness *l, int32_t root, int32_t step, int32_t *first, int32_t *last)
{
    const sgm__plan_build *build = l->build;
    *first = *last = -1;
    for (int32_t r = build->first_reader[root]; r < build->first_reader[root + 1]; r++) {
        int32_t at = build->notes[build->readers[r].node].step;
        if (at < 0 || at == step)
            continue;
        *first = *first < 0 || at < *first ? at : *first;
        *last = at > *last ? at : *last;
    }
}

static bool is_output(const sgm__plan_build *build, int32_t root)
{
    for (int32_t i = 0; i < build->plan->output_count; i++)
        if (build->notes[build->plan->outputs[i].node].root == root)
            return true;
    return false;
}

/* Bytes that stay allocated for longer if the product is computed at `later`; -1: an operand is a state,
 * which may be overwritten until then. */
static int64_t cost_of(const lateness *l, int32_t product, int32_t later)
{
    const sgm__plan *plan = l->build->plan;
    const sgm__node *node = &plan->nodes[product];
    int64_t cost = 0;
    for (int32_t k = 0; k < node->input_count; k++) {
        int32_t first, last, root = l->build->notes[plan->operands[node->first_input + k]].root;
        if (plan->nodes[root].op == &sgm__op_state)
            return -1;
        find_readers(l, root, l->build->notes[product].step, &first, &last);
        if (l->build->notes[root].step >= 0 && last < later)
            cost += (int64_t)sgm__type_bytes(&plan->nodes[root].type);
    }
    return cost;
}

/* The step that a product shall directly precede; -1: it stays where it is. A reader that is moved itself is
 * no place to go to. */
static int32_t find_place(const lateness *l, int32_t node)
{
    const sgm__plan_node_notes *notes = &l->build->notes[node];
    const sgm__node *product = &l->build->plan->nodes[node];
    int64_t bytes = (int64_t)sgm__type_bytes(&product->type);
    int32_t first, last;
    if (product->op != &sgm__op_matmul || bytes < LARGE || notes->buffer >= 0 || is_output(l->build, node))
        return -1;
    find_readers(l, node, notes->step, &first, &last);
    if (first <= notes->step + 1 || l->before[first] >= 0)
        return -1;
    int64_t cost = cost_of(l, node, first);
    return cost >= 0 && cost < bytes ? first : -1;
}

/* Each step in its order, after those that precede it. */
static void number_steps(const lateness *l)
{
    int32_t number = 0;
    for (int32_t s = l->count; s-- > 0;)
        if (l->before[s] >= 0) {
            l->next[s] = l->first[l->before[s]];
            l->first[l->before[s]] = s;
        }
    for (int32_t s = 0; s < l->count; s++) {
        if (l->before[s] >= 0)
            continue;
        for (int32_t m = l->first[s]; m >= 0; m = l->next[m])
            l->numbers[m] = number++;
        l->numbers[s] = number++;
    }
}

/* Goes from the last product to the first, so that it is known of a product's reader whether it moves. Nodes
 * come in an order in which operands come first. */
sgm_status sgm__plan_delay_products(sgm__plan_build *build, int32_t count)
{
    size_t steps = (size_t)count;
    lateness l = {.build = build, .count = count, .before = sgm__calloc(4 * steps + 1, sizeof(int32_t))};
    if (l.before == NULL)
        return SGM_ERROR_MEMORY;
    l.first = l.before + steps;
    l.next = l.first + steps;
    l.numbers = l.next + steps;
    for (int32_t s = 0; s < count; s++)
        l.before[s] = l.first[s] = -1;
    for (int32_t i = build->plan->node_count; i-- > 0;)
        if (build->notes[i].step >= 0 && build->notes[i].root == i)
            l.before[build->notes[i].step] = find_place(&l, i);
    number_steps(&l);
    for (int32_t i = 0; i < build->plan->node_count; i++)
        build->notes[i].step = build->notes[i].step >= 0 ? l.numbers[build->notes[i].step] : -1;
    sgm__free(l.before);
    return SGM_OK;
}
