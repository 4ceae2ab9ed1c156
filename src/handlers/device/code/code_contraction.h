/* What matrix products, convolutions and the two gradients of convolutions have in common. Internal to this
 * folder.
 *
 * All are a sum over a depth, result(row, column) = sum over k of left(row, k) right(k, column), for each
 * matrix of a batch; only how an element is loaded or stored differs. So the kernels (code_product.c,
 * code_tiles.c, code_blocks.c) are written once for all four. Convolutions need no copy of patches (im2col):
 * an element of the right side is loaded where it lies in the image.
 */
#ifndef SGM_HANDLERS_DEVICE_CODE_CODE_CONTRACTION_H
#define SGM_HANDLERS_DEVICE_CODE_CODE_CONTRACTION_H

#include "handlers/device/code/code_internal.h"

/* Which operation it is; the comments name rows times columns, and the depth. */
typedef enum sgm__contraction_kind {
    SGM__MATRICES,
    SGM__CONVOLUTION,     /* (filters, places of the result); depth: channels and places of the window */
    SGM__INPUT_GRADIENT,  /* (channels, places of the input); depth: filters and places of the window */
    SGM__WEIGHTS_GRADIENT /* (filters, channels and places of the window); depth: places of the result */
} sgm__contraction_kind;

/* One such operation with its sizes. The batch counts leading axes of matrices, or groups of channels. */
typedef struct sgm__contraction {
    sgm__contraction_kind kind;
    int32_t node;
    int64_t batch, rows, columns, depth; /* places include the examples of a minibatch */
    sgm__window window;
    const char *type; /* the type that sums are computed in */
} sgm__contraction;

/* Fills in *product for a node with one of the four operations. */
sgm_status sgm__contraction_of(const sgm__device_render *r, int32_t node, sgm__contraction *product);
/* Lines that compute the batch's axes from "batch", which is not declared if there is only one. */
void sgm__contraction_begin(sgm__device_render *r, const sgm__contraction *product);
/* An expression for an element of the left or right side. `row`, `depth` and `column` are expressions. Lines
 * written before it may declare variables whose names begin with `prefix`, so two sides in one scope need
 * different prefixes. */
const char *sgm__contraction_left(sgm__device_render *r, const sgm__contraction *product, const char *prefix,
                                  const char *row, const char *depth);
const char *sgm__contraction_right(sgm__device_render *r, const sgm__contraction *product, const char *prefix,
                                   const char *depth, const char *column);
void sgm__contraction_store(sgm__device_render *r, const sgm__contraction *product, const char *prefix,
                            const char *row, const char *column, const char *value);

/* Whether neighbours along the depth are neighbours in memory, rather than those along rows or columns.
 * Work-items are distributed accordingly, so that they read neighbouring elements. */
bool sgm__contraction_left_is_deep(const sgm__device_render *r, const sgm__contraction *contraction);
bool sgm__contraction_right_is_deep(const sgm__device_render *r, const sgm__contraction *contraction);

/* The depth may be divided into parts where there are too few results to keep a device busy. The sums of each
 * part go to scratch memory, (part, batch, row, column), and another kernel adds them up in order. */
typedef struct sgm__contraction_parts {
    int64_t count, depth; /* the number of parts, and the depth of each but the last, which may be less */
    int64_t scratch;      /* offset of the parts' sums; unused for one part */
} sgm__contraction_parts;
/* Takes the scratch memory of parts. Lines for "part", "batch", "row_tile" and "column_tile" from "tile", and
 * the part's range of the depth, "from" to "to". */
void sgm__contraction_open(sgm__device_render *r, const sgm__contraction *contraction,
                           sgm__contraction_parts *parts, int64_t row_tiles, int64_t column_tiles);
/* Lines that store the sum at "row" and "column" as the result, or as the part's sum. */
void sgm__contraction_keep(sgm__device_render *r, const sgm__contraction *contraction,
                           const sgm__contraction_parts *parts, const char *value);

/* Kernels for the sums of all parts, which these functions choose: tiles in local memory for graphics cards,
 * blocks in vector registers for processors. */
sgm_status sgm__device_write_tiles(sgm__device_render *r, const sgm__contraction *contraction,
                                   sgm__contraction_parts *parts);
sgm_status sgm__device_write_blocks(sgm__device_render *r, const sgm__contraction *contraction,
                                    sgm__contraction_parts *parts);

#endif
