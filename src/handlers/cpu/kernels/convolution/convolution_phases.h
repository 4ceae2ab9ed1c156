/* The pixels of images sorted by stride: a phase has those whose numbers, on one axis, leave one remainder
 * when divided by the stride. Internal.
 *
 * The pixels under one place of a window, for all its positions, are every second (third...) one of a row of
 * the padded image. Sorted, they are neighbours, as vectors want them (convolution_slide.c), and so are those
 * of Winograd's tiles, whose stride is two or four. Sizes are in elements. */
#ifndef SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_PHASES_H
#define SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_PHASES_H

#include "handlers/cpu/kernels/convolution/convolution.h"

#define SGM__PHASES_TURNS 4

/* Phases of columns, as far as a window needs them. With a stride of two, pixel 0 of a row is column left[0]
 * of phase turn[0], pixel 1 is column left[1] of the other, and so on in turns for `whole` strides, which may
 * be all of the row; so with a stride of four of float32. Other strides have no turns. */
typedef struct sgm__phases {
    int64_t count, pitch; /* pitch: columns of each */
    int64_t turn[SGM__PHASES_TURNS], left[SGM__PHASES_TURNS], whole;
    bool all;
} sgm__phases;

sgm__phases sgm__phases_make(const sgm__convolution *c);
/* One row of an image to its phases, `apart` elements apart (of bfloat16: as float32); and back. What of a
 * phase lies outside of the image, and what of the image is in no phase, is left as it is. */
void sgm__phases_split(const sgm__convolution *c, const sgm__phases *p, int64_t apart, unsigned char *to,
                       const unsigned char *image);
void sgm__phases_join(const sgm__convolution *c, const sgm__phases *p, int64_t apart, unsigned char *image,
                      const unsigned char *from);
/* One channel to phases of rows and of columns, 2 x 2 for a stride of two: each is a `plane`, the columns'
 * innermost. What lies outside of the image becomes 0, and so do some elements behind all planes, which
 * vectors may read. */
int64_t sgm__phases_plane(const sgm__convolution *c);
void sgm__phases_copy(const sgm__convolution *c, unsigned char *to, const unsigned char *image);
#define SGM__PHASES_SLACK SGM__ALIGNMENT

/* The rows (axis 0) or columns (1) *first to *last - 1 of `count` of a phase that lie in the image. */
void sgm__phases_inside(const sgm__window *w, int axis, int64_t phase, int64_t count, int64_t *first,
                        int64_t *last);
/* Where a phase's row or column lies in the image without padding. */
static inline int64_t sgm__phases_unpadded(const sgm__window *w, int axis, int64_t phase, int64_t index)
{
    return index * w->stride[axis] + phase - w->before[axis];
}
/* Rows or columns of the padded image from a window's first place to its last. */
static inline int64_t sgm__phases_reach(const sgm__window *w, int axis)
{
    return (w->size[axis] - 1) * w->dilation[axis];
}

#endif
