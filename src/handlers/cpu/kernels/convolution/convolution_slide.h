/* Convolutions of groups with few channels: lanes are pixels (vector/vector_slide.h). Internal.
 *
 * convolution.c and convolution_weights.c ask sgm__slide_is_faster and call these instead of computing by
 * panels of channels. */
#ifndef SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_SLIDE_H
#define SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_SLIDE_H

#include "handlers/cpu/kernels/convolution/convolution_phases.h"

/* How a band lies in memory: the rows of a group's image, with their padding, under some rows of the result.
 * The columns of each row are sorted into phases, one after the other. So a place of the window is at one
 * distance (a step) from the result, for a whole row. Sizes are in elements. */
typedef struct sgm__slide_layout {
    int64_t rows; /* of the result, at most: as many as keep a band in the first cache */
    sgm__phases columns;
    int64_t line, channel; /* from one row to the next; from one channel to the next */
} sgm__slide_layout;

/* Whether sliding takes fewer operations on vectors than panels, of which `lanes` channels (or filters) of a
 * group would be the lanes. */
bool sgm__slide_is_faster(const sgm__convolution *c, int64_t lanes);
sgm__slide_layout sgm__slide_layout_make(const sgm__convolution *c);
/* Elements of a thread's memory for a band, with zeros behind it that vectors may read. */
int64_t sgm__slide_room(const sgm__convolution *c, const sgm__slide_layout *l);
/* Fills such memory with zeros, once before any bands, which leave the padding's columns alone. */
void sgm__slide_clear(const sgm__convolution *c, const sgm__slide_layout *l, unsigned char *own);
/* Copies what lies under `rows` rows of the result from `first` on, of all channels at `image`. */
void sgm__slide_copy(const sgm__convolution *c, const sgm__slide_layout *l, unsigned char *own,
                     const unsigned char *image, int64_t first, int64_t rows);
/* Fills in the steps of the window's columns. */
void sgm__slide_steps(const sgm__convolution *c, const sgm__slide_layout *l, int64_t *steps);

/* --- forward --- */
/* One group of one example: channels, weights and biases (NULL: none) of the group, and its result. `own`:
 * cleared memory. */
void sgm__slide_forward(const sgm__convolution *c, const int64_t *steps, const unsigned char *image,
                        const unsigned char *weights, const unsigned char *biases, sgm__limits limits,
                        unsigned char *own, unsigned char *to);

/* --- gradients (convolution_slide_gradients.c): a call's scratch memory, and the call, which posts loops ---
 */
size_t sgm__slide_input_scratch(const sgm__cpu_call *call, const sgm__convolution *c);
void sgm__slide_input_run(const sgm__cpu_call *call, const sgm__convolution *c);
size_t sgm__slide_weights_scratch(const sgm__cpu_call *call, const sgm__convolution *c);
void sgm__slide_weights_run(const sgm__cpu_call *call, const sgm__convolution *c);

/* Groups that one task does, so that tasks are large enough to be worth sharing: results do not depend on
 * it. */
int64_t sgm__slide_bundle(const sgm__convolution *c);
/* How many such tasks an example makes. */
int64_t sgm__slide_bundles(const sgm__convolution *c);

#endif
