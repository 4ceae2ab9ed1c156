/* Products: a work-item for each result. */
#include "handlers/device/product.h"

sgm_status sgm__device_write_product(sgm__device_render *r, int32_t number)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r);
    sgm__device_product p;
    SGM_TRY(sgm__device_product_of(r, number, &p));
    sgm__device_begin(r);
    sgm__device_items(r, "n", p.batch * p.rows * p.columns);
    sgm__source_line(w, "const %s column = n %% %lld, row = n / %lld %% %lld, batch = n / %lld;", counter,
                     (long long)p.columns, (long long)p.columns, (long long)p.rows,
                     (long long)(p.columns * p.rows));
    sgm__device_product_begin(r, &p);
    sgm__source_line(w, "%s sum = 0;", p.type);
    sgm__source_line(w, "for (%s k = 0; k < %lld; k++) {", counter, (long long)p.depth);
    w->depth++;
    const char *left = sgm__device_product_left(r, &p, "l", "row", "k");
    const char *right = sgm__device_product_right(r, &p, "r", "k", "column");
    sgm__source_line(w, "const %s left = %s, right = %s;", p.type, left, right);
    sgm__source_line(w, "sum += left * right;");
    w->depth--;
    sgm__source_line(w, "}");
    sgm__device_product_store(r, &p, "c", "row", "column", "sum");
    return sgm__device_end(r);
}
