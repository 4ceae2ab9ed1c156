/* What the three kernels of convolution share: shapes, panels of channels, and tables of offsets. Internal.
 *
 * Forward, gradient by the input (convolution.c) and gradient by the weights (convolution_weights.c) are
 * matrix products. Their right operand is packed in panels of channels (the lanes of vectors); their left
 * operand is read in place: element (row, step) is image[rows[row] + steps[step]], so there is no copy of
 * patches (im2col). Tiles are those of vector/vector_convolution.h. Results have channels innermost, block
 * by block in the first cache, and are transposed from there to (channels, pixels). Images with padding are
 * copied with their zeros, one at a time for each thread. Which operand is what for which product:
 * docs/performance.md, Convolutions. The functions are in convolution_shapes.c. */
#ifndef SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_H
#define SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_H

#include "handlers/cpu/cpu.h"
#include "ops/window.h"

/* Of the right operand: half of the first cache, so that a panel stays there with a block of results and the
 * image's rows. */
#define SGM__CONVOLUTION_PANEL_BYTES (24 << 10)

/* Shapes, from the window (ops/window.h); `in`, `out` and so on as there. Sizes are in elements. */
typedef struct sgm__convolution {
    sgm__window window;
    const sgm__tiles *tiles;
    size_t size;   /* bytes of an element, as it is computed */
    size_t stored; /* and in operands and results: 2 of bfloat16, whose elements become pairs or float32 */
    /* Of bfloat16: tiles of its pairs, and its loops to and from float32; NULL: of other types. Panels of
     * these have two numbers in each element, of two steps. */
    const sgm__tiles *pairs;
    sgm__vector_function widen, narrow;
    int64_t channels, filters;       /* of one group */
    int64_t padded[2], padded_plane; /* height and width of the image with its padding; both multiplied */
    bool pads;                       /* there is padding, so that images are copied */
    /* Of a channel: of the result, of the kernel, of the image without padding. */
    int64_t pixels, places, plane;
} sgm__convolution;

/* A panel of `width` lanes: channels `first` to `first + count - 1` of the group, then zeros. `functions`:
 * the tiles of its width, by rows - 1. */
typedef struct sgm__panel {
    int64_t first, count, width;
    const sgm__gather_function *functions;
} sgm__panel;

sgm__convolution sgm__convolution_make(const sgm__cpu *cpu, sgm_dtype dtype, const sgm__window *window);
/* How many panels `lanes` channels (or filters) of a group make. The last one may be narrow. */
int64_t sgm__convolution_panels(const sgm__convolution *c, int64_t lanes);
sgm__panel sgm__convolution_panel(const sgm__convolution *c, int64_t lanes, int64_t index);
/* Lanes of all panels together, with those that are filled up. */
int64_t sgm__convolution_width(const sgm__convolution *c, int64_t lanes);
/* Steps of a panel of `width` lanes that fit into SGM__CONVOLUTION_PANEL_BYTES. */
int64_t sgm__convolution_depth(const sgm__convolution *c, int64_t width);
/* Fills in `pixels` offsets: where the window at each pixel of the result begins in a channel of the padded
 * image. */
void sgm__convolution_pixels(const sgm__convolution *c, int64_t *offsets);
/* Fills in `planes` * `places` offsets: where a step (channel or pair, place of the kernel) lies from the
 * window's beginning. */
void sgm__convolution_steps(const sgm__convolution *c, int64_t planes, int64_t *offsets);
/* What reads operands, multiplies, and writes results of the type that is stored: of bfloat16 its pairs. */
static inline const sgm__tiles *sgm__convolution_tiles(const sgm__convolution *c)
{
    return c->pairs != NULL ? c->pairs : c->tiles;
}
/* Into how many planes `count` channels, filters or images go that are steps: of bfloat16 two into one. */
static inline int64_t sgm__convolution_planes(const sgm__convolution *c, int64_t count)
{
    return c->pairs != NULL ? sgm__divide_up(count, 2) : count;
}
/* Copies `count` channels of an image to `to`, with padding. Of bfloat16, each gets a partner that lies
 * `partner` elements behind it; 0: zeros, for all of them. */
void sgm__convolution_pad(const sgm__convolution *c, unsigned char *to, const unsigned char *image,
                          int64_t count, int64_t partner);
/* The same of channels that are steps, whose partners are those after them. */
void sgm__convolution_pad_steps(const sgm__convolution *c, unsigned char *to, const unsigned char *image,
                                int64_t count);
/* `count` rows of a product, in tiles of up to SGM__GATHER_ROWS: `rows` are the rows' offsets in the left
 * operand, `c_rows` their rows of tile->c. Rows are divided evenly among tiles. */
void sgm__convolution_rows(const sgm__panel *panel, sgm__gather *tile, const int64_t *rows,
                           const int64_t *c_rows, int64_t count);

/* Whether the kernel of float32 takes bfloat16 of such shapes as well. */
bool sgm__convolution_is_native(const sgm__cpu_call *call);
bool sgm__convolution_input_is_native(const sgm__cpu_call *call);
bool sgm__convolution_weights_is_native(const sgm__cpu_call *call);

/* Rounded up, with room for reading to the end of a vector. */
static inline size_t sgm__convolution_align(int64_t bytes)
{
    return sgm__align((size_t)bytes + SGM__ALIGNMENT);
}

#endif
