/* Planning, second part: groups nodes into steps.
 *
 * The grouping is greedy and goes once through the nodes in recorded order: an elementwise node joins the
 * newest step whose results it reads element by element, as long as everything else that it needs is computed
 * before that step; otherwise it begins a step. Nodes of other operations are steps of their own. Then
 * plan_merge.c merges steps, plan_order.c and plan_late.c move some, and plan->steps and plan->order are
 * written. Handlers with SGM__HANDLER_UNFUSED get one node in each step.
 */
#include "handlers/plan/plan_build.h"

/* A step while steps are found: its kind, the number of its members so far, and the shape that all of them
 * have. */
typedef struct step_notes {
    bool elementwise;
    int32_t count;
    sgm_shape shape;
} step_notes;

typedef struct grouping {
    sgm__plan_build *build;
    step_notes *steps;
    size_t capacity;
    int32_t count;
} grouping;

/* *after: the newest step that must have ended before the node can be computed, because the node reads one of
 * its results as a whole or through a view. *joined: the newest step with a result that the node reads
 * element by element. -1: none. */
static void find_bounds(const sgm__plan_build *build, int32_t index, int32_t *after, int32_t *joined)
{
    const sgm__node *node = &build->plan->nodes[index];
    *after = *joined = -1;
    for (int32_t k = 0; k < node->input_count; k++) {
        int32_t operand = build->plan->operands[node->first_input + k];
        int32_t root = build->notes[operand].root, step = build->notes[root].step;
        bool direct = root == operand && sgm__plan_is_tiled(build, operand);
        int32_t *bound = direct ? joined : after;
        if (step > *bound)
            *bound = step;
    }
}

/* A node that overwrites a state must come after all that read the old value. Returns the newest step that
 * does so, apart from reads element by element in step `group`, which the node may join: there each element
 * is read before it is overwritten. -1: none. */
static int32_t last_reader(const sgm__plan_build *build, int32_t writer, int32_t group)
{
    int32_t state = build->notes[writer].writes, last = -1;
    for (int32_t r = build->first_reader[state]; r < build->first_reader[state + 1]; r++) {
        const sgm__plan_reader *reader = &build->readers[r];
        int32_t step = build->notes[reader->node].step;
        if (reader->node < writer && step > last && !(reader->operand == state && step == group))
            last = step;
    }
    return last;
}

/* Joining an old step computes the result early, and it takes memory until its reader runs. That is worth it
 * for the newest step, for assignments, and where an operand need not be in memory then, as nothing outside
 * its step has read it so far. Otherwise (values that only gradients need, say) it is better to read the
 * operand again later. What is computed again to save memory would be early, too. */
static bool is_worth_joining(const sgm__plan_build *build, int32_t index, int32_t step, int32_t newest)
{
    const sgm__node *node = &build->plan->nodes[index];
    bool worth = step == newest || build->notes[index].writes >= 0;
    for (int32_t k = 0; k < node->input_count && !worth && !build->notes[index].is_again; k++) {
        const sgm__plan_node_notes *operand = &build->notes[build->plan->operands[node->first_input + k]];
        worth = operand->step == step && operand->last_use <= step;
    }
    return worth;
}

/* Records that the node's step reads its operands' roots. */
static void note_use(sgm__plan_build *build, int32_t index)
{
    const sgm__node *node = &build->plan->nodes[index];
    for (int32_t k = 0; k < node->input_count; k++) {
        int32_t root = build->notes[build->plan->operands[node->first_input + k]].root;
        if (build->notes[root].last_use < build->notes[index].step)
            build->notes[root].last_use = build->notes[index].step;
    }
}

static bool can_join(const grouping *work, int32_t index, int32_t step)
{
    if (step < 0 || step >= work->count)
        return false;
    const step_notes *group = &work->steps[step];
    return group->elementwise && group->count < SGM__PLAN_LONGEST_CHAIN &&
           sgm_shape_equal(&group->shape, &work->build->plan->nodes[index].type.shape);
}

static sgm_status new_step(grouping *work, int32_t index, bool elementwise, int32_t *step)
{
    SGM_TRY(sgm__reserve(&work->steps, &work->capacity, (size_t)work->count + 1, sizeof(step_notes)));
    *step = work->count++;
    work->steps[*step] = (step_notes){
        .elementwise = elementwise, .count = 0, .shape = work->build->plan->nodes[index].type.shape};
    return SGM_OK;
}

static sgm_status place_in_step(grouping *work, int32_t index, bool fuse)
{
    sgm__plan_build *build = work->build;
    bool elementwise = sgm__plan_is_tiled(build, index);
    int32_t after, joined, step = -1;
    find_bounds(build, index, &after, &joined);
    if (build->notes[index].writes >= 0) {
        int32_t reader = last_reader(build, index, joined);
        after = reader > after ? reader : after;
    }
    if (fuse && elementwise && joined > after && can_join(work, index, joined) &&
        is_worth_joining(build, index, joined, work->count - 1))
        step = joined;
    else
        SGM_TRY(new_step(work, index, elementwise, &step));
    build->notes[index].step = step;
    build->notes[index].position = work->steps[step].count++;
    note_use(build, index);
    return SGM_OK;
}

/* Writes plan->steps and plan->order from the notes of nodes. The notes of steps and the last uses are made
 * anew, since merging and moving have changed only the nodes' steps and positions. */
static sgm_status write_order(grouping *work)
{
    sgm__plan *plan = work->build->plan;
    plan->steps = sgm__calloc((size_t)work->count + 1, sizeof(sgm__step));
    plan->order = sgm__calloc((size_t)plan->node_count + 1, sizeof(int32_t));
    if (plan->steps == NULL || plan->order == NULL)
        return SGM_ERROR_MEMORY;
    if (work->steps == NULL) /* the graph computes nothing */
        return SGM_OK;
    for (int32_t s = 0; s < work->count; s++)
        work->steps[s].count = 0;
    for (int32_t i = 0; i < plan->node_count; i++) {
        int32_t step = work->build->notes[i].step;
        work->build->notes[i].last_use = -1;
        if (step < 0)
            continue;
        note_use(work->build, i);
        work->steps[step].elementwise = sgm__plan_is_tiled(work->build, i);
        work->steps[step].count++;
    }
    for (int32_t s = 0; s < work->count; s++) {
        plan->steps[s] = (sgm__step){work->steps[s].elementwise ? SGM__STEP_ELEMENTWISE : SGM__STEP_KERNEL,
                                     plan->order_count, work->steps[s].count};
        plan->order_count += work->steps[s].count;
    }
    plan->step_count = work->count;
    for (int32_t i = 0; i < plan->node_count; i++) {
        const sgm__plan_node_notes *notes = &work->build->notes[i];
        if (notes->step >= 0)
            plan->order[plan->steps[notes->step].first + notes->position] = i;
    }
    return SGM_OK;
}

sgm_status sgm__plan_build_steps(sgm__plan_build *build)
{
    grouping work = {.build = build};
    bool fuse = (build->handler->type->flags & SGM__HANDLER_UNFUSED) == 0;
    sgm_status status = SGM_OK;
    for (int32_t i = 0; i < build->plan->node_count && status == SGM_OK; i++) {
        uint32_t flags = build->plan->nodes[i].op->flags;
        if ((flags & (SGM_OP_SOURCE | SGM_OP_VIEW)) == 0)
            status = place_in_step(&work, i, fuse);
    }
    if (status == SGM_OK && fuse)
        status = sgm__plan_merge_steps(build, &work.count);
    if (status == SGM_OK && fuse)
        status = sgm__plan_order_steps(build, work.count);
    if (status == SGM_OK && fuse)
        status = sgm__plan_delay_products(build, work.count);
    if (status == SGM_OK)
        status = write_order(&work);
    sgm__free(work.steps);
    return status;
}
