/* What the kernels of convolution share. Internal.
 *
 * All three are products whose right operand is packed in panels of channels (lanes) and whose left operand
 * is read where it lies: element (row, step) is image[rows[row] + steps[step]]. What they give has channels
 * innermost, block by block in the first caches, and is transposed back from there. There is no copy of
 * patches. Images with padding are copied with their zeros, one at a time for each thread.
 */
#ifndef SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_H
#define SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_H

#include "handlers/cpu/cpu.h"
#include "ops/window.h"

#define SGM__CONVOLUTION_PANEL_BYTES (24 << 10) /* of the right operand: half of the first cache */

/* `in` and so on as in the window; sizes in elements. */
typedef struct sgm__convolution {
    sgm__window window;
    const sgm__tiles *tiles;
    size_t size;                     /* bytes of an element */
    int64_t channels, filters;       /* of one group */
    int64_t padded[2], padded_plane; /* the image with its padding */
    bool pads;
    int64_t pixels, places, plane; /* of the result, of the kernel, of the image */
} sgm__convolution;

/* A panel of `width` lanes, of which `count` from `first` on are channels. */
typedef struct sgm__panel {
    int64_t first, count, width;
    const sgm__gather_function *functions;
} sgm__panel;

sgm__convolution sgm__convolution_make(const sgm__cpu *cpu, sgm_dtype dtype, const sgm__window *window);
int64_t sgm__convolution_panels(const sgm__convolution *c, int64_t lanes);
sgm__panel sgm__convolution_panel(const sgm__convolution *c, int64_t lanes, int64_t index);
/* Lanes of all panels together, filled up. */
int64_t sgm__convolution_width(const sgm__convolution *c, int64_t lanes);
/* Steps that a panel of `width` lanes may have to stay in the first cache. */
int64_t sgm__convolution_depth(const sgm__convolution *c, int64_t width);
/* Where the window at a pixel begins in a padded image; where a step (channel, place) lies in a window. */
void sgm__convolution_pixels(const sgm__convolution *c, int64_t *offsets);
void sgm__convolution_steps(const sgm__convolution *c, int64_t *offsets);
/* `count` channels of an image with padding, from `image` (channels without). */
void sgm__convolution_pad(const sgm__convolution *c, unsigned char *to, const unsigned char *image,
                          int64_t count);
/* All rows of a product, in tiles: rows `first` to `last` - 1 by their offsets, into rows c_rows of c. */
void sgm__convolution_rows(const sgm__panel *panel, sgm__gather *tile, const int64_t *rows,
                           const int64_t *c_rows, int64_t count);

static inline size_t sgm__convolution_align(int64_t bytes)
{
    return ((size_t)bytes + 127) / 64 * 64; /* and room to read to the end of a vector */
}

#endif
