/* Which steps have to be done before a step begins.
 *
 * A few steps may be under way at a time, each with scratch memory of its own, so only those just before have
 * to be looked at: whether one of the two writes what the other one reads or writes. */
#include "handlers/cpu/cpu.h"

typedef struct range {
    const sgm__place *place;
    int64_t first, last; /* bytes; last: past the end */
} range;

static range range_of(const sgm__node *node)
{
    int64_t size = (int64_t)sgm_dtype_size(node->type.dtype);
    range r = {&node->place, node->place.offset, node->place.offset + size};
    for (int32_t i = 0; i < node->type.shape.rank; i++) {
        int64_t reach = (node->type.shape.dims[i] - 1) * node->place.strides[i] * size;
        *(reach < 0 ? &r.first : &r.last) += reach;
    }
    return r;
}

static bool overlap(const sgm__node *a, const sgm__node *b)
{
    if (a->place.store == SGM__STORE_NONE || a->place.store != b->place.store ||
        a->place.index != b->place.index)
        return false;
    range x = range_of(a), y = range_of(b);
    return x.first < y.last && y.first < x.last;
}

/* Something in step `reader` is read or written where something in step `writer` is written. */
static bool touches_written(const sgm__plan *plan, int32_t writer, int32_t reader)
{
    const sgm__step *w = &plan->steps[writer], *r = &plan->steps[reader];
    for (int32_t i = 0; i < w->count; i++) {
        const sgm__node *written = &plan->nodes[plan->order[w->first + i]];
        for (int32_t k = 0; k < r->count; k++) {
            const sgm__node *node = &plan->nodes[plan->order[r->first + k]];
            bool touches = overlap(written, node);
            for (int32_t o = 0; o < node->input_count && !touches; o++)
                touches = overlap(written, &plan->nodes[plan->operands[node->first_input + o]]);
            if (touches)
                return true;
        }
    }
    return false;
}

static bool conflict(const sgm__plan *plan, int32_t a, int32_t b)
{
    return a >= 0 && b >= 0 && (touches_written(plan, a, b) || touches_written(plan, b, a));
}

/* With the products that they compute, too. */
static bool depend(const sgm__plan *plan, const sgm__flow *steps, int32_t a, int32_t b)
{
    return conflict(plan, a, b) || conflict(plan, steps[a].partner, b) ||
           conflict(plan, a, steps[b].partner) || conflict(plan, steps[a].partner, steps[b].partner);
}

void sgm__flow_plan(const sgm__plan *plan, sgm__flow *steps)
{
    int32_t under_way[SGM__FLOW_AREAS], next = 0; /* the newest steps that post, the oldest at `next` */
    for (int32_t i = 0; i < SGM__FLOW_AREAS; i++)
        under_way[i] = -1;
    for (int32_t i = 0; i < plan->step_count; i++) {
        steps[i].needs = under_way[next];
        steps[i].area = next;
        for (int32_t k = 1; k < SGM__FLOW_AREAS; k++) {
            int32_t before = under_way[(next + k) % SGM__FLOW_AREAS];
            if (before >= 0 && depend(plan, steps, before, i))
                steps[i].needs = before;
        }
        if (!steps[i].posts)
            continue;
        under_way[next] = i;
        next = (next + 1) % SGM__FLOW_AREAS;
    }
}
