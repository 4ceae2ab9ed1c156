/* Large constants come into the plan's block only when a handler asks for them as it compiles.
 *
 * A handler that packs weights reads them once, one after the other. The block has a place for each, which
 * takes pages of the system only while it has bytes: so weights are in memory once, as they were packed, and
 * not all of them twice at a time. The tensors may be memory of others, as that of a session's state is, so
 * they are kept no longer than it takes to compile. */
#include "handlers/host.h"
#include "handlers/plan/plan_build.h"

/* Bytes from which on a constant is large. */
#define LARGE ((size_t)1 << 20)

bool sgm__plan_fills_later(const sgm_handler *handler, size_t bytes)
{
    return bytes >= LARGE && (handler->type->flags & SGM__HANDLER_FILLS) != 0;
}

sgm_status sgm__plan_add_fill(sgm__plan_build *build, sgm_tensor *tensor, int64_t offset)
{
    sgm__plan *plan = build->plan;
    SGM_TRY(
        sgm__reserve(&plan->fills, &build->fill_capacity, (size_t)plan->fill_count + 1, sizeof *plan->fills));
    plan->fills[plan->fill_count++] = (sgm__fill){.tensor = sgm_tensor_retain(tensor), .offset = offset};
    return SGM_OK;
}

static sgm__fill *find(const sgm__plan *plan, int32_t node)
{
    const sgm__place *place = &plan->nodes[sgm__plan_root(plan, node)].place;
    for (int32_t i = 0; i < plan->fill_count && place->store == SGM__STORE_CONSTANT; i++)
        if (plan->fills[i].offset == place->offset)
            return &plan->fills[i];
    return NULL;
}

static size_t bytes_of(const sgm__fill *fill)
{
    return (size_t)sgm_shape_elements(sgm_tensor_shape(fill->tensor)) *
           sgm_dtype_size(sgm_tensor_dtype(fill->tensor));
}

unsigned char *sgm__plan_constant(const sgm__plan *plan, int32_t node)
{
    sgm__fill *fill = find(plan, node);
    if (fill != NULL && !fill->filled) {
        memcpy(plan->constants + fill->offset, sgm_tensor_const_data(fill->tensor), bytes_of(fill));
        fill->filled = true;
    }
    return plan->constants + plan->nodes[node].place.offset;
}

void sgm__plan_forget_constant(const sgm__plan *plan, int32_t node)
{
    sgm__fill *fill = find(plan, node);
    if (fill == NULL || !fill->filled)
        return;
    sgm__host_forget(plan->constants, (size_t)fill->offset, (size_t)fill->offset + bytes_of(fill));
    fill->filled = false;
}

void sgm__plan_end_fills(sgm__plan *plan)
{
    for (int32_t i = 0; i < plan->fill_count; i++) {
        plan->unread_bytes += plan->fills[i].filled ? 0 : (int64_t)bytes_of(&plan->fills[i]);
        sgm_tensor_free(plan->fills[i].tensor);
    }
    sgm__free(plan->fills);
    plan->fills = NULL;
    plan->fill_count = 0;
}
