/* Convolutions of groups with few channels: lanes are pixels (vector/vector_slide.h). Internal.
 *
 * convolution.c and convolution_weights.c ask sgm__slide_is_faster and call these instead of computing by
 * panels of channels. */
#ifndef SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_SLIDE_H
#define SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_SLIDE_H

#include "handlers/cpu/kernels/convolution.h"

/* How images and results lie. With a stride, the pixels of the padded image under one place of the window,
 * for all its positions, are every second (third...) one of a row. They lie together here: a phase has those
 * rows and columns whose numbers leave one remainder when divided by the stride. Results lie at the same
 * distances as a phase's pixels, with gaps where a window would reach over a row's end. A window's place is
 * then at one distance (a step) from the result, for all positions. */
typedef struct sgm__slide_layout {
    int64_t phases[2];          /* of rows and of columns, as far as a window needs them */
    int64_t reach[2];           /* rows and columns of a phase from a window's first place to its last */
    int64_t rows, pitch, plane; /* of a phase; pitch: columns; plane: elements */
    int64_t positions;          /* of a result: from its first pixel to its last */
    int64_t channel;            /* elements of a channel: all its phases */
} sgm__slide_layout;

/* Whether sliding takes fewer operations on vectors than panels, of which `lanes` channels (or filters) of a
 * group would be the lanes. */
bool sgm__slide_is_faster(const sgm__convolution *c, int64_t lanes);
sgm__slide_layout sgm__slide_layout_make(const sgm__convolution *c);

/* Elements behind copied channels, which are 0 and may be read by vectors. */
#define SGM__SLIDE_SLACK SGM__ALIGNMENT
/* Copies the c->channels channels at `image` into phases, with their padding. */
void sgm__slide_copy(const sgm__convolution *c, const sgm__slide_layout *l, unsigned char *to,
                     const unsigned char *image);

/* --- forward --- */
/* Elements of a thread's memory. */
int64_t sgm__slide_forward_room(const sgm__convolution *c);
/* Fills in channels * places distances of a window's places from its result. */
void sgm__slide_steps(const sgm__convolution *c, int64_t *steps);
/* One group of one example: channels, weights and biases (NULL: none) of the group, and its result. */
void sgm__slide_forward(const sgm__convolution *c, const int64_t *steps, const unsigned char *image,
                        const unsigned char *weights, const unsigned char *biases, sgm__limits limits,
                        unsigned char *own, unsigned char *to);

/* --- gradients: a call's scratch memory, and the call, which posts loops --- */
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
