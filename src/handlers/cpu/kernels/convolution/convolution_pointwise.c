/* Convolutions of one place: (filters, channels) times (channels, pixels) for each image, as product.c
 * computes it. Lanes are pixels, so nothing is transposed, and few filters leave no lanes empty.
 *
 * An image is cut into blocks of pixels, whose results get their biases and limits while they are in the
 * second cache. Blocks depend on shapes alone. */
#include "handlers/cpu/kernels/convolution/convolution_pointwise.h"
#include "handlers/cpu/product/product.h"

/* Bytes of a block's results, about, and its pixels at least and at most: of more, weights would be packed
 * for each block (product.c). */
#define BLOCK_BYTES (1 << 18)
#define MINIMUM_PIXELS 64
#define MAXIMUM_PIXELS 256

/* A call and how it is cut; tasks get a copy. */
typedef struct pointwise_run {
    const sgm__cpu_call *call;
    sgm__convolution c;
    int64_t pixels, blocks; /* of a block; of an image */
    size_t own_bytes;       /* of each thread's scratch memory */
} pointwise_run;

bool sgm__pointwise_is_faster(const sgm__convolution *c)
{
    const sgm__window *w = &c->window;
    if (c->places != 1 || w->groups != 1 || c->pads || c->pixels != c->plane || c->channels == 0)
        return false;
    int64_t lanes = c->tiles->vector_lanes, by_pixels = sgm__divide_up(c->pixels, lanes) * c->filters;
    int64_t by_filters = c->pixels * sgm__convolution_width(c, c->filters) / lanes;
    return 10 * by_pixels <= 11 * by_filters; /* a tenth, since those by filters are transposed */
}

static sgm__product product_of(const pointwise_run *r)
{
    const sgm__convolution *c = &r->c;
    return (sgm__product){.dtype = r->call->output.dtype,
                          .m = c->filters,
                          .n = r->pixels,
                          .k = c->channels,
                          .a = r->call->inputs[1].data,
                          .a_row = c->channels,
                          .a_column = 1,
                          .b_row = c->plane,
                          .b_column = 1,
                          .c_row = c->pixels};
}

static pointwise_run plan(const sgm__cpu_call *call, const sgm__convolution *c)
{
    pointwise_run r = {.call = call, .c = *c};
    int64_t lanes = c->tiles->columns, fitting = BLOCK_BYTES / (c->filters * (int64_t)c->size + 1);
    fitting = fitting < MINIMUM_PIXELS ? MINIMUM_PIXELS : sgm__minimum(fitting, MAXIMUM_PIXELS);
    r.blocks = sgm__divide_up(c->pixels, fitting);
    r.pixels = sgm__divide_up(sgm__divide_up(c->pixels, r.blocks > 0 ? r.blocks : 1), lanes) * lanes;
    r.blocks = sgm__divide_up(c->pixels, r.pixels > 0 ? r.pixels : 1);
    sgm__product product = product_of(&r);
    r.own_bytes = sgm__align(sgm__product_scratch(call->cpu->vector, &product, 1));
    return r;
}

size_t sgm__pointwise_scratch(const sgm__cpu_call *call, const sgm__convolution *c)
{
    return plan(call, c).own_bytes * (size_t)call->cpu->threads;
}

/* Adds biases, and keeps results between limits. */
static void finish(const pointwise_run *r, const sgm__product *p)
{
    const sgm__cpu_call *call = r->call;
    const unsigned char *biases = call->input_count == 3 ? call->inputs[2].data : NULL;
    bool limited = call->limits.low > -INFINITY || call->limits.high < INFINITY;
    int64_t size = (int64_t)r->c.size;
    for (int64_t filter = 0; filter < p->m && (biases != NULL || limited); filter++)
        r->c.tiles->finish(p->n, (unsigned char *)p->c + filter * p->c_row * size,
                           biases != NULL ? biases + filter * size : NULL, call->limits);
}

/* Block `block` of an example, whose result is at `to`. */
static void compute_block(const pointwise_run *r, int64_t example, int64_t block, int32_t thread,
                          unsigned char *to)
{
    const sgm__convolution *c = &r->c;
    int64_t first = block * r->pixels, size = (int64_t)c->size;
    sgm__product p = product_of(r);
    p.n = sgm__minimum(p.n, c->pixels - first);
    p.b = (const unsigned char *)r->call->inputs[0].data + (example * c->channels * c->plane + first) * size;
    p.c = to + first * size;
    sgm__product_post(r->call->cpu->vector, NULL, &p, r->call->scratch + (size_t)thread * r->own_bytes);
    finish(r, &p);
}

static void block_task(void *context, int64_t index, int32_t thread)
{
    const pointwise_run *r = context;
    int64_t example = index / r->blocks;
    unsigned char *to = r->call->output.data;
    compute_block(r, example, index % r->blocks, thread,
                  to + (size_t)(example * r->c.filters * r->c.pixels) * r->c.size);
}

void sgm__pointwise_run(const sgm__cpu_call *call, const sgm__convolution *c)
{
    pointwise_run r = plan(call, c);
    sgm__pool_post(call->cpu->pool, c->window.batch * r.blocks, block_task, &r, sizeof r);
}

void sgm__pointwise_part(const sgm__cpu_call *call, const sgm__convolution *c, int64_t example,
                         int32_t thread, unsigned char *to)
{
    pointwise_run r = plan(call, c);
    for (int64_t block = 0; block < r.blocks; block++)
        compute_block(&r, example, block, thread, to);
}
