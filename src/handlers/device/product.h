/* What products, convolutions and their gradients have in common: rows times columns, summed over a depth.
 * Internal to the renderer. */
#ifndef SGM_HANDLERS_DEVICE_PRODUCT_H
#define SGM_HANDLERS_DEVICE_PRODUCT_H

#include "handlers/device/render.h"

typedef enum sgm__device_product_kind {
    SGM__DEVICE_MATRICES,
    SGM__DEVICE_CONVOLUTION,     /* filters times places of the window, for each place of the result */
    SGM__DEVICE_INPUT_GRADIENT,  /* channels times places of the window, for each place of the input */
    SGM__DEVICE_WEIGHTS_GRADIENT /* filters times places of the result, for each place of the window */
} sgm__device_product_kind;

typedef struct sgm__device_product {
    sgm__device_product_kind kind;
    int32_t node;
    int64_t batch, rows, columns, depth; /* batch: of matrices, or groups of channels */
    sgm__window window;
    const char *type; /* what is computed in */
} sgm__device_product;

sgm_status sgm__device_product_of(const sgm__device_render *r, int32_t node, sgm__device_product *product);
/* Lines for what depends on the batch alone; "batch" is its variable, or 0 if there is one only. */
void sgm__device_product_begin(sgm__device_render *r, const sgm__device_product *product);
/* An element of the left or right side, or of the result, by variables. Lines before it may prepare that,
 * with variables whose names begin with `prefix`. */
const char *sgm__device_product_left(sgm__device_render *r, const sgm__device_product *product,
                                     const char *prefix, const char *row, const char *depth);
const char *sgm__device_product_right(sgm__device_render *r, const sgm__device_product *product,
                                      const char *prefix, const char *depth, const char *column);
void sgm__device_product_store(sgm__device_render *r, const sgm__device_product *product, const char *prefix,
                               const char *row, const char *column, const char *value);

#endif
