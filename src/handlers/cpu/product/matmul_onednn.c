/* The kernel of matmul for bfloat16 by oneDNN, with float32 sums; used only where bfloat16.c chose oneDNN.
 *
 * Each product is cut into parts by its shape alone, so that the bits are the same for any number of threads.
 * oneDNN's objects for a part may be used by one thread at a time, so there is a set of them for each thread,
 * all created when the program is compiled. Operands are taken as they lie: laying the weights out anew, as
 * oneDNN would like them, takes about as long as it saves in the two products in which a step uses them
 * (docs/performance.md, Mixed precision). */
#include "handlers/cpu/product/matmul.h"
#include "handlers/cpu/product/onednn.h"
#include "ops/ops.h"

#include <stdatomic.h>

#define PART_WORK 16777216 /* multiplications of a part: some 20 microseconds with AMX */
#define MAXIMUM_PARTS 16
#define PART_UNIT 32 /* rows or columns */

/* The kernel's plan. Products are cut into `parts` parts of their rows, or else of their columns. */
typedef struct halves {
    sgm__batches batches;
    int64_t parts;
    bool by_rows;
    int32_t threads;
    /* That of thread t for a part is products[t * parts + part]; NULL where a part is empty. */
    sgm__onednn_product **products;
} halves;

/* --- planning --- */

/* All parts of product 0: the others of a batch have the same shapes and strides and differ only in
 * addresses. */
static sgm_status create_products(halves *h, const sgm__onednn *onednn)
{
    sgm__product whole = h->batches.product;
    whole.a = whole.b = whole.c = NULL;
    for (int32_t t = 0; t < h->threads; t++)
        for (int64_t i = 0; i < h->parts; i++) {
            sgm__product p = whole;
            int64_t first, last;
            sgm__pool_part(h->by_rows ? p.m : p.n, PART_UNIT, h->parts, i, &first, &last);
            *(h->by_rows ? &p.m : &p.n) = last - first;
            if (last <= first)
                continue;
            SGM_TRY(sgm__onednn_product_create(onednn, &p, &h->products[t * h->parts + i]));
        }
    return SGM_OK;
}

static sgm_status plan(const sgm__cpu_call *call, void *to)
{
    halves *h = to;
    *h = (halves){.batches = sgm__batches_of(call), .threads = call->cpu->threads};
    const sgm__product *p = &h->batches.product;
    int64_t work = p->m * p->n * p->k;
    h->by_rows = p->m > p->n;
    h->parts = work / PART_WORK < 1 ? 1 : work / PART_WORK > MAXIMUM_PARTS ? MAXIMUM_PARTS : work / PART_WORK;
    if (work == 0 || h->batches.count == 0)
        return SGM_OK;
    h->products = sgm__calloc((size_t)(h->threads * h->parts), sizeof(sgm__onednn_product *));
    return h->products != NULL ? create_products(h, call->cpu->onednn) : SGM_ERROR_MEMORY;
}

static void discard(void *plan)
{
    halves *h = plan;
    for (int64_t i = 0; h->products != NULL && i < h->threads * h->parts; i++)
        sgm__onednn_product_free(h->products[i]);
    sgm__free(h->products);
}

/* --- running --- */

/* A run's view of the plan. `failed` is set by tasks on any thread, as errors belong to the thread that
 * called run. */
typedef struct run_context {
    const halves *h;
    sgm__batches batches;
    atomic_bool failed;
} run_context;

static void run_task(void *context, int64_t index, int32_t thread)
{
    run_context *r = context;
    const halves *h = r->h;
    int64_t part = index % h->parts;
    sgm__onednn_product *product = h->products[thread * h->parts + part];
    if (product == NULL)
        return;
    sgm__product p = sgm__product_part(sgm__batches_at(&r->batches, index / h->parts), h->by_rows, PART_UNIT,
                                       h->parts, part);
    if (!sgm__onednn_product_run(product, p.a, p.b, p.c))
        atomic_store(&r->failed, true);
}

/* Without products (an empty sum, k = 0, or an empty result) the result is zero. */
static sgm_status run(const sgm__cpu_call *call)
{
    const halves *h = call->plan;
    if (h->products == NULL) {
        size_t bytes = sgm__type_bytes(&call->node->type);
        if (bytes > 0)
            memset(call->output.data, 0, bytes);
        return SGM_OK;
    }
    run_context r = {.h = h, .batches = h->batches};
    r.batches.call = call;
    r.batches.product.a = call->inputs[0].data;
    r.batches.product.b = call->inputs[1].data;
    r.batches.product.c = call->output.data;
    const sgm__product *p = &r.batches.product;
    double work = (double)p->m * (double)p->n * (double)p->k * (double)r.batches.count;
    int64_t tasks = r.batches.count * h->parts;
    if (work < SGM__PRODUCT_SMALL_WORK || h->threads == 1)
        for (int64_t i = 0; i < tasks; i++)
            run_task(&r, i, 0);
    else
        sgm__pool_run(call->cpu->pool, tasks, run_task, &r);
    if (atomic_load(&r.failed))
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s failed in a product of bfloat16",
                        sgm__onednn_text(call->cpu->onednn));
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_matmul_onednn = {.op = &sgm__op_matmul,
                                                .types = (uint32_t)1 << SGM_BFLOAT16,
                                                .plan_size = sizeof(halves),
                                                .plan = plan,
                                                .discard = discard,
                                                .run = run};
