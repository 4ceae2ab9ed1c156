/* Large constants come into the plan's block only when a handler asks for them as it compiles.
 *
 * A handler that packs weights reads them once, one after the other. The block has a place for each, which
 * takes pages of the system only once it has bytes: a weight that is read only as it was packed is lent from
 * one buffer for all of them, and is in memory once. The tensors may be memory of others, as that of a
 * session's state is, so they are kept no longer than it takes to compile. */
#include "handlers/host.h"
#include "handlers/plan/plan_build.h"

/* Bytes from which on a constant is large. */
#define LARGE ((size_t)1 << 16)

bool sgm__plan_fills_later(const sgm_handler *handler, size_t bytes)
{
    return bytes >= LARGE && (handler->type->flags & SGM__HANDLER_FILLS) != 0;
}

sgm_status sgm__plan_add_fill(sgm__plan *plan, sgm_tensor *tensor, sgm__place *place)
{
    if (plan->fills == NULL && (plan->fills = sgm__calloc(1, sizeof *plan->fills)) == NULL)
        return SGM_ERROR_MEMORY;
    sgm__fills *fills = plan->fills;
    SGM_TRY(sgm__reserve(&fills->all, &fills->capacity, fills->count + 1, sizeof *fills->all));
    fills->all[fills->count++] = (sgm__fill){.tensor = sgm_tensor_retain(tensor)};
    *place = (sgm__place){.store = SGM__STORE_CONSTANT, .index = (int32_t)fills->count};
    return SGM_OK;
}

static size_t bytes_of(const sgm__fill *fill)
{
    return (size_t)sgm_shape_elements(sgm_tensor_shape(fill->tensor)) *
           sgm_dtype_size(sgm_tensor_dtype(fill->tensor));
}

/* The constant that a node is, or is a view of, if it is listed. */
static sgm__fill *find(const sgm__plan *plan, int32_t node)
{
    const sgm__place *place = &plan->nodes[sgm__plan_root(plan, node)].place;
    return plan->fills != NULL && place->store == SGM__STORE_CONSTANT && place->index > 0
               ? &plan->fills->all[place->index - 1]
               : NULL;
}

int64_t sgm__plan_lay_out_fills(sgm__plan *plan, int64_t offset)
{
    for (size_t i = 0; i < plan->fills->count; i++) {
        sgm__fill *fill = &plan->fills->all[i];
        fill->offset = offset;
        offset += (int64_t)sgm__align(bytes_of(fill));
    }
    for (int32_t i = 0; i < plan->node_count; i++) {
        const sgm__fill *fill = find(plan, i);
        if (fill != NULL)
            plan->nodes[i].place.offset = fill->offset;
    }
    return offset;
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

sgm_status sgm__plan_lend_constant(const sgm__plan *plan, int32_t node, unsigned char **bytes)
{
    const sgm__fill *fill = find(plan, node);
    sgm__fills *fills = plan->fills;
    *bytes = plan->constants + plan->nodes[node].place.offset;
    if (fill == NULL || fill->filled)
        return SGM_OK;
    const size_t size = bytes_of(fill);
    if (size > fills->lent_bytes) {
        sgm__host_release(NULL, fills->lent);
        fills->lent = NULL;
        fills->lent_bytes = 0;
        SGM_TRY(sgm__host_allocate(NULL, size, &fills->lent));
        fills->lent_bytes = size;
    }
    memcpy(fills->lent, sgm_tensor_const_data(fill->tensor), size);
    *bytes = (unsigned char *)fills->lent + (plan->nodes[node].place.offset - fill->offset);
    return SGM_OK;
}

void sgm__plan_end_fills(sgm__plan *plan)
{
    sgm__fills *fills = plan->fills;
    if (fills == NULL)
        return;
    for (size_t i = 0; i < fills->count; i++) {
        plan->unread_bytes += fills->all[i].filled ? 0 : (int64_t)bytes_of(&fills->all[i]);
        sgm_tensor_free(fills->all[i].tensor);
    }
    sgm__host_release(NULL, fills->lent);
    sgm__free(fills->all);
    sgm__free(fills);
    plan->fills = NULL;
}
