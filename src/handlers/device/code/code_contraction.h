/* What products, convolutions and their gradients have in common: rows times columns, summed over a depth.
 * Internal to the renderer. */
#ifndef SGM_HANDLERS_DEVICE_CODE_CODE_CONTRACTION_H
#define SGM_HANDLERS_DEVICE_CODE_CODE_CONTRACTION_H

#include "handlers/device/code/code_internal.h"

typedef enum sgm__contraction_kind {
    SGM__MATRICES,
    SGM__CONVOLUTION,     /* filters times places of the window, for each place of the result */
    SGM__INPUT_GRADIENT,  /* channels times places of the window, for each place of the input */
    SGM__WEIGHTS_GRADIENT /* filters times places of the result, for each place of the window */
} sgm__contraction_kind;

typedef struct sgm__contraction {
    sgm__contraction_kind kind;
    int32_t node;
    int64_t batch, rows, columns, depth; /* batch: of matrices, or groups of channels */
    sgm__window window;
    const char *type; /* what is computed in */
} sgm__contraction;

sgm_status sgm__contraction_of(const sgm__device_render *r, int32_t node, sgm__contraction *product);
/* Lines for what depends on the batch alone; "batch" is its variable, or 0 if there is one only. */
void sgm__contraction_begin(sgm__device_render *r, const sgm__contraction *product);
/* An element of the left or right side, or of the result, by variables. Lines before it may prepare that,
 * with variables whose names begin with `prefix`. */
const char *sgm__contraction_left(sgm__device_render *r, const sgm__contraction *product, const char *prefix,
                                  const char *row, const char *depth);
const char *sgm__contraction_right(sgm__device_render *r, const sgm__contraction *product, const char *prefix,
                                   const char *depth, const char *column);
void sgm__contraction_store(sgm__device_render *r, const sgm__contraction *product, const char *prefix,
                            const char *row, const char *column, const char *value);

/* Whether neighbours along the depth lie side by side in memory, rather than neighbours along the other axis.
 */
bool sgm__contraction_left_is_deep(const sgm__device_render *r, const sgm__contraction *contraction);
bool sgm__contraction_right_is_deep(const sgm__device_render *r, const sgm__contraction *contraction);

/* The depth may be divided: each part's sums go to scratch memory, and are added up in order. */
typedef struct sgm__contraction_parts {
    int64_t count, depth; /* so many, each so deep at most */
    int64_t scratch;      /* where; not used for one part */
} sgm__contraction_parts;
/* Lines for "part", "batch", "row_tile" and "column_tile" from "tile", and for the part's "from" and "to". */
void sgm__contraction_open(sgm__device_render *r, const sgm__contraction *contraction,
                           const sgm__contraction_parts *parts, int64_t row_tiles, int64_t column_tiles);
/* A sum at "row" and "column" becomes the result, or the part's. */
void sgm__contraction_keep(sgm__device_render *r, const sgm__contraction *contraction,
                           const sgm__contraction_parts *parts, const char *value);

/* Kernels for the sums of all parts: with tiles in the memory of a group, and with blocks for a processor. */
sgm_status sgm__device_write_tiles(sgm__device_render *r, const sgm__contraction *contraction,
                                   sgm__contraction_parts *parts);
sgm_status sgm__device_write_blocks(sgm__device_render *r, const sgm__contraction *contraction,
                                    sgm__contraction_parts *parts);

#endif
