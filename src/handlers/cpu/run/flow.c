/* Which earlier step must be done before a step of a program begins.
 *
 * Up to SGM__FLOW_AREAS posted steps may be under way at a time, each with an area of scratch memory of its
 * own. Loops of the pool end in their order, so one number says it all: the newest earlier step that has to
 * be done. A step has to wait for another one if it touches bytes that that one writes, or writes bytes that
 * that one touches. Memory of values that are dead is used again by later values of the plan, so what counts
 * is where values lie, not which value reads which. Called by compile.c when a program is compiled for
 * several threads. */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/run/program.h"

bool sgm__flow_touches(const sgm__plan *plan, int32_t step, const sgm__node *written)
{
    for (int32_t i = 0; i < plan->steps[step].count; i++) {
        const sgm__node *node = &plan->nodes[plan->order[plan->steps[step].first + i]];
        bool touches = sgm__cpu_overlap(written, node);
        for (int32_t k = 0; k < node->input_count && !touches; k++)
            touches = sgm__cpu_overlap(written, &plan->nodes[plan->operands[node->first_input + k]]);
        if (touches)
            return true;
    }
    return false;
}

static bool touches_written(const sgm__plan *plan, int32_t writer, int32_t reader)
{
    bool touches = false;
    for (int32_t i = 0; i < plan->steps[writer].count && !touches; i++)
        touches = sgm__flow_touches(plan, reader, &plan->nodes[plan->order[plan->steps[writer].first + i]]);
    return touches;
}

/* -1 stands for no step. */
static bool conflict(const sgm__plan *plan, int32_t a, int32_t b)
{
    return a >= 0 && b >= 0 && (touches_written(plan, a, b) || touches_written(plan, b, a));
}

/* Whether two steps conflict, each taken together with the steps that it also does. */
static bool depend(const sgm__plan *plan, const sgm__flow *steps, int32_t a, int32_t b)
{
    const int32_t of_a[] = {a, steps[a].partner, steps[a].product};
    const int32_t of_b[] = {b, steps[b].partner, steps[b].product};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            if (conflict(plan, of_a[i], of_b[k]))
                return true;
    return false;
}

/* A step takes the area of the oldest posted step, so at least that one must be done; newer ones only if they
 * conflict. */
void sgm__flow_plan(const sgm__plan *plan, sgm__flow *steps)
{
    /* The newest steps that post, in a ring; the oldest one, whose area is next, is at `next`. */
    int32_t under_way[SGM__FLOW_AREAS], next = 0;
    for (int32_t i = 0; i < SGM__FLOW_AREAS; i++)
        under_way[i] = -1;
    for (int32_t i = 0; i < plan->step_count; i++) {
        steps[i].needs = under_way[next];
        steps[i].area = next;
        for (int32_t k = 1; k < SGM__FLOW_AREAS; k++) {
            int32_t before = under_way[(next + k) % SGM__FLOW_AREAS];
            if (before >= 0 && (before == steps[i].packer || depend(plan, steps, before, i)))
                steps[i].needs = before;
        }
        if (!steps[i].posts)
            continue;
        under_way[next] = i;
        next = (next + 1) % SGM__FLOW_AREAS;
    }
}
