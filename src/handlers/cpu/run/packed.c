/* What kernels make of operands that are read often: of constant ones once for all runs, weights of a network
 * that predicts, say, in the order in which tiles read them; of the weights of a recurrent layer, which each
 * of its steps multiplies by, once in a run.
 *
 * A kernel that has `pack` (cpu.h) is asked when a step is compiled (compile.c); steps that read the same
 * operand in the same way share what it makes. What is made of constants is kept in the handler's store
 * (packed_store.h) until the program is discarded; what of a constant is read only as it was packed takes no
 * memory any more. */
#include "handlers/cpu/product/matmul.h"
#include "handlers/cpu/run/executable.h"
#include "handlers/cpu/run/packed_store.h"
#include "handlers/host.h"

/* Whether two calls of one kernel have the same second operand, and read it in the same way. */
static bool reads_alike(const sgm__plan *plan, const sgm__cpu_call *a, const sgm__cpu_call *b)
{
    const sgm__node *x = a->node, *y = b->node;
    return plan->operands[x->first_input + 1] == plan->operands[y->first_input + 1] &&
           sgm__attributes_equal(&x->attributes, &y->attributes) && x->type.dtype == y->type.dtype;
}

/* Whether they pack it to the same, which may depend on the first operand's shape. */
static bool packs_alike(const sgm__plan *plan, const sgm__cpu_call *a, const sgm__cpu_call *b)
{
    return reads_alike(plan, a, b) && sgm_shape_equal(&a->inputs[0].shape, &b->inputs[0].shape);
}

/* What was packed before for a call like this one; NULL: nothing. */
static const unsigned char *find(const sgm__packings *packings, const sgm__plan *plan,
                                 const sgm__cpu_kernel *kernel, const sgm__cpu_call *call)
{
    for (size_t i = 0; i < packings->count; i++)
        if (packings->all[i].packer < 0 && packings->all[i].kernel == kernel &&
            packs_alike(plan, packings->all[i].call, call))
            return packings->all[i].kept;
    return NULL;
}

static sgm_status add(sgm__packings *packings, const sgm__plan *plan, const sgm__cpu_kernel *kernel,
                      sgm__cpu_call *call, size_t bytes)
{
    const int32_t weights = plan->operands[call->node->first_input + 1];
    const unsigned char *made;
    SGM_TRY(sgm__reserve(&packings->all, &packings->capacity, packings->count + 1, sizeof *packings->all));
    unsigned char *source;
    if (kernel->reads_packed_only)
        SGM_TRY(sgm__plan_lend_constant(plan, weights, &source));
    else
        source = sgm__plan_constant(plan, weights);
    call->inputs[1].data = source;
    SGM_TRY(sgm__packed_store_take(call->cpu->store, kernel, call, bytes, &made));
    packings->all[packings->count++] =
        (sgm__packing){.kernel = kernel, .call = call, .kept = made, .kept_bytes = bytes, .packer = -1};
    call->packed = made;
    return SGM_OK;
}

sgm_status sgm__packings_give(sgm__packings *packings, const sgm__plan *plan, const sgm__cpu_kernel *kernel,
                              sgm__cpu_call *call)
{
    if (kernel == NULL || kernel->pack == NULL || call->input_count < 2)
        return SGM_OK;
    const sgm__node *weights = &plan->nodes[plan->operands[call->node->first_input + 1]];
    call->packs = weights->place.store == SGM__STORE_CONSTANT;
    size_t bytes = call->packs ? kernel->packed_bytes(call) : 0;
    if (bytes == 0)
        return SGM_OK;
    call->packed = find(packings, plan, kernel, call);
    return call->packed != NULL ? SGM_OK : add(packings, plan, kernel, call, bytes);
}

size_t sgm__packings_kept(const sgm__packings *packings)
{
    size_t bytes = 0;
    for (size_t i = 0; i < packings->count; i++)
        bytes += packings->all[i].kept_bytes;
    return bytes;
}

/* --- constants that are read as they are --- */

/* Whether operand `k` of the step's operation is read only as what was packed of it. */
static bool reads_packed(const sgm__cpu_step *step, int32_t k)
{
    return k == 1 && step->call.packs && step->call.packed != NULL && step->kernel->reads_packed_only;
}

void sgm__packings_fill_others(const sgm__executable *e)
{
    const sgm__plan *plan = e->plan;
    for (int32_t i = 0; i < e->step_count; i++)
        for (int32_t m = 0; m < plan->steps[i].count; m++) {
            const sgm__node *node = &plan->nodes[plan->order[plan->steps[i].first + m]];
            for (int32_t k = 0; k < node->input_count; k++)
                if (!reads_packed(&e->steps[i], k))
                    (void)sgm__plan_constant(plan, plan->operands[node->first_input + k]);
        }
}

/* --- operands that are no constants --- */

/* Products by one operand from which on it is packed for all of them. */
#define SHARED_FROM 4

/* How many of the calls from `first` on read its panels. */
static int32_t count_readers(const sgm__plan *plan, sgm__cpu_call *const *calls, int32_t count, int32_t first)
{
    int32_t readers = 0;
    for (int32_t i = first; i < count; i++)
        readers += calls[i] != NULL && reads_alike(plan, calls[first], calls[i]);
    return readers;
}

sgm_status sgm__packings_share(sgm__packings *packings, const sgm__plan *plan, sgm__cpu_call *const *calls,
                               int32_t count, int32_t *packers)
{
    for (int32_t i = 0; i < count; i++)
        packers[i] = -1;
    for (int32_t i = 0; i < count; i++) {
        if (calls[i] == NULL || packers[i] >= 0 || count_readers(plan, calls, count, i) < SHARED_FROM)
            continue;
        SGM_TRY(
            sgm__reserve(&packings->all, &packings->capacity, packings->count + 1, sizeof *packings->all));
        void *bytes;
        SGM_TRY(sgm__host_allocate(NULL, sgm__cpu_matmul.packed_bytes(calls[i]), &bytes));
        packings->all[packings->count++] =
            (sgm__packing){.kernel = &sgm__cpu_matmul, .call = calls[i], .bytes = bytes, .packer = i};
        for (int32_t k = i; k < count; k++)
            if (calls[k] != NULL && reads_alike(plan, calls[i], calls[k])) {
                calls[k]->packed = bytes;
                packers[k] = i;
            }
    }
    return SGM_OK;
}

static void pack_task(void *context, int64_t index, int32_t thread)
{
    (void)index, (void)thread;
    const sgm__packing *packing = context;
    packing->kernel->pack(packing->call, packing->bytes);
}

void sgm__packings_post(const sgm__packings *packings, int32_t step)
{
    for (size_t i = 0; i < packings->count; i++)
        if (packings->all[i].packer == step)
            sgm__pool_post(packings->all[i].call->cpu->pool, 1, pack_task, &packings->all[i],
                           sizeof packings->all[i]);
}

void sgm__packings_free(sgm__cpu *cpu, sgm__packings *packings)
{
    for (size_t i = 0; i < packings->count; i++) {
        if (packings->all[i].kept != NULL)
            sgm__packed_store_release(cpu->store, packings->all[i].kept);
        sgm__host_release(NULL, packings->all[i].bytes);
    }
    sgm__free(packings->all);
}
