/* Augmentation from the inside: chains of steps, and the threads that apply them ahead. Internal. */
#ifndef SGM_DATA_AUGMENT_H
#define SGM_DATA_AUGMENT_H

#include "data/dataset.h"

/* --- pictures (augment_picture.c): one example, (channels, height, width), changed where it lies --- */

typedef struct sgm__picture {
    float *pixels;
    float *scratch; /* room for as many numbers */
    int64_t channels, height, width;
} sgm__picture;

void sgm__picture_mirror(const sgm__picture *picture, bool left_right, bool top_bottom);
/* So many pixels down and to the right, up and to the left if below 0. */
void sgm__picture_shift(const sgm__picture *picture, int64_t down, int64_t right, float fill);
/* Around its centre, counter-clockwise as it is looked at; bilinear. */
void sgm__picture_rotate(const sgm__picture *picture, double degrees, float fill);
/* The part that begins at `top`, `left` (pixels) and is `share` as high and as wide, enlarged to the whole
 * size; bilinear, pixel centres at halves, the edge goes on outside. */
void sgm__picture_crop(const sgm__picture *picture, double share, double top, double left);
/* The part of the square with the upper left corner `top`, `left` that lies in the picture. */
void sgm__picture_erase(const sgm__picture *picture, int64_t top, int64_t left, int64_t size, float fill);

/* --- chains (augment.c) --- */

typedef struct sgm__augmentation sgm__augmentation;
/* NULL and an error if the text is not one. */
sgm__augmentation *sgm__augmentation_parse(const char *text);
void sgm__augmentation_free(sgm__augmentation *chain);
/* Whether blocks like this one can be augmented; *scratch becomes the numbers of room that it takes. */
sgm_status sgm__augmentation_fits(const sgm__augmentation *chain, sgm_block *block, size_t *scratch);
/* Changes the first `count` examples of a block that fits. `first` is the number of its first example in the
 * epoch, `seed` the epoch's. */
void sgm__augmentation_apply(const sgm__augmentation *chain, sgm_block *block, int64_t count, uint64_t seed,
                             int64_t first, float *scratch);
/* From 0 to 1, density symmetric around 1/2: Beta(alpha, alpha). */
double sgm__random_beta(sgm__random *random, double alpha);

/* --- minibatches that threads augment while others are in use (augmentation_ring.c) --- */

typedef struct sgm__ahead sgm__ahead;
/* A minibatch on its way. */
typedef struct sgm__ahead_slot {
    sgm_block *full, *rest; /* as an iterator has them; they stay from use to use */
    float *scratch;
    int64_t count; /* examples; below those of `full`: `rest` is the minibatch */
    int64_t first;
    uint64_t seed;
    int stage;
} sgm__ahead_slot;

/* Takes the chain, also on failure. Works with fewer threads, and with none, if there are no more to be had.
 */
sgm__ahead *sgm__ahead_create(sgm__augmentation *chain, int64_t threads);
void sgm__ahead_free(sgm__ahead *ahead);
const sgm__augmentation *sgm__ahead_chain(const sgm__ahead *ahead);
/* A free place behind those that were submitted, NULL: all are in use. */
sgm__ahead_slot *sgm__ahead_room(sgm__ahead *ahead);
/* The place that sgm__ahead_room gave, filled. */
void sgm__ahead_submit(sgm__ahead *ahead);
/* The oldest one, when it is ready; NULL: none was submitted. It is free again at the next call. */
sgm__ahead_slot *sgm__ahead_take(sgm__ahead *ahead);
/* The next one that is taken need not be waited for. */
bool sgm__ahead_is_ready(sgm__ahead *ahead);
bool sgm__ahead_is_empty(sgm__ahead *ahead); /* but for one that was taken */
/* Frees the one that was taken last. */
void sgm__ahead_release(sgm__ahead *ahead);
/* Forgets all, when threads are done with theirs; `blocks`: frees the blocks too. */
void sgm__ahead_drop(sgm__ahead *ahead, bool blocks);

#endif
