/* Chooses kernels for matrix products, convolutions and their gradients (code_contraction.h).
 *
 * Small products, products of integers and shallow ones have a work-item for each result. Others go to
 * code_blocks.c on a computer's own processor and to code_tiles.c on graphics cards, where the depth may be
 * divided into parts; then a second kernel adds the parts up in order, so that results are the same in each
 * run.
 */
#include "handlers/device/code/code_contraction.h"

/* Multiplications in all, up to which tiles are not worth while. */
#define SMALL 4096

/* Begins a kernel with a work-item, "n", for each result, at "row" and "column" of matrix "batch". */
static void begin_results(sgm__device_render *r, const sgm__contraction *p)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r);
    sgm__device_begin(r);
    sgm__device_items(r, "n", p->batch * p->rows * p->columns);
    sgm__source_line(w, "const %s column = n %% %lld;", counter, (long long)p->columns);
    sgm__source_line(w, "const %s row = n / %lld %% %lld;", counter, (long long)p->columns,
                     (long long)p->rows);
    if (p->batch > 1)
        sgm__source_line(w, "const %s batch = n / %lld;", counter, (long long)(p->columns * p->rows));
    sgm__contraction_begin(r, p);
}

/* A work-item for each result sums over the whole depth. Integers are summed in 64 bits and limited to their
 * type's range. */
static sgm_status write_each(sgm__device_render *r, const sgm__contraction *p)
{
    sgm__source_writer *w = &r->writer;
    begin_results(r, p);
    sgm_dtype dtype = sgm__device_node(r, p->node)->type.dtype;
    sgm__source_line(w, "%s sum = 0;", sgm__source_sum_type(w, dtype));
    sgm__source_open(w, "for (%s k = 0; k < %lld; k++)", sgm__device_counter(r), (long long)p->depth);
    const char *left = sgm__contraction_left(r, p, "l", "row", "k");
    const char *right = sgm__contraction_right(r, p, "r", "k", "column");
    sgm__source_line(w, "const %s left = %s, right = %s;", p->type, left, right);
    sgm__source_add_product(w, dtype, "left", "right");
    sgm__source_close(w, 1);
    sgm__contraction_store(r, p, "c", "row", "column", sgm__source_of_sum(w, dtype, "sum"));
    return sgm__device_end(r);
}

/* A work-item for each result adds up the sums of all parts. */
static sgm_status add_parts(sgm__device_render *r, const sgm__contraction *p,
                            const sgm__contraction_parts *parts)
{
    sgm__source_writer *w = &r->writer;
    begin_results(r, p);
    const char *from = sgm__device_scratch(r, parts->scratch, p->type, false);
    sgm__source_line(w, "%s sum = 0;", p->type);
    sgm__source_line(w, "for (%s k = 0; k < %lld; k++)", sgm__device_counter(r), (long long)parts->count);
    sgm__source_line(w, "    sum += %s[k * %lld + n];", from, (long long)(p->batch * p->rows * p->columns));
    sgm__contraction_store(r, p, "c", "row", "column", "sum");
    return sgm__device_end(r);
}

/* Writes the kernels of one node. */
sgm_status sgm__device_write_product(sgm__device_render *r, int32_t number)
{
    sgm__contraction p;
    sgm__contraction_parts parts = {.count = 1};
    SGM_TRY(sgm__contraction_of(r, number, &p));
    int64_t results = p.batch * p.rows * p.columns;
    bool is_float = sgm_dtype_is_float(sgm__device_node(r, number)->type.dtype);
    if (!is_float || results * p.depth <= SMALL || p.depth < 4)
        return write_each(r, &p);
    SGM_TRY(r->info->is_processor ? sgm__device_write_blocks(r, &p, &parts)
                                  : sgm__device_write_tiles(r, &p, &parts));
    return parts.count > 1 ? add_parts(r, &p, &parts) : SGM_OK;
}
