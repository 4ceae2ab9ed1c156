/* Augmentation: changes of pictures, chains of such steps, and a ring of threads that apply chains ahead of
 * time. Internal to src/data.
 *
 * augment.c parses a text such as "rotate(10) + mixup(0.2)" into a chain and applies it to a minibatch with
 * the functions of augment_picture.c; augmentation_ring.c calls it on threads; iterator_batches.c fills the
 * ring. The public part and the meaning of the text are in <sigma/data.h>. What is drawn for an example
 * depends on the iterator's seed, the epoch, the example's number in the epoch and the step's number in the
 * chain alone, so neither the number of threads nor an interruption of the run changes a result. */
#ifndef SGM_DATA_AUGMENT_H
#define SGM_DATA_AUGMENT_H

#include "data/dataset.h"

/* --- pictures (augment_picture.c): one example, (channels, height, width), changed where it lies --- */

/* One example as a picture, changed in place: `channels` planes of height * width float32, row by row. */
typedef struct sgm__picture {
    float *pixels;
    /* as many numbers as the picture has, for those changes that read pixels after others were written */
    float *scratch;
    int64_t channels, height, width;
    bool is_mask; /* pixels are classes: of those around a place the nearest counts, and none is mixed */
} sgm__picture;

void sgm__picture_mirror(const sgm__picture *picture, bool left_right, bool top_bottom);
/* Moves the picture by whole pixels: down and to the right if positive, up and to the left if negative.
 * Pixels that come in from outside are `fill`. */
void sgm__picture_shift(const sgm__picture *picture, int64_t down, int64_t right, float fill);
/* Turns the picture around its centre, counter-clockwise as a viewer sees it (row 0 on top). Bilinear
 * interpolation; outside the picture every pixel is `fill`. */
void sgm__picture_rotate(const sgm__picture *picture, double degrees, float fill);
/* Enlarges a part of the picture to its whole size. The part begins at row `top` and column `left` (in
 * pixels) and has `share` of the height and of the width. Bilinear interpolation with pixel centres at
 * halves; beyond the edge the picture goes on with its edge pixels. */
void sgm__picture_crop(const sgm__picture *picture, double share, double top, double left);
/* Sets a square of `size` pixels to `fill`. Its upper left corner is at `top`, `left`; what lies outside the
 * picture is left out. */
void sgm__picture_erase(const sgm__picture *picture, int64_t top, int64_t left, int64_t size, float fill);

/* --- chains (augment.c) --- */

typedef struct sgm__augmentation sgm__augmentation;
/* A chain from its text; NULL and an error if the text is no chain. The text "none" gives a chain without
 * steps. */
sgm__augmentation *sgm__augmentation_parse(const char *text);
void sgm__augmentation_free(sgm__augmentation *chain);
/* Checks that minibatches like this one can be augmented. *scratch becomes how many floats
 * sgm__augmentation_apply needs. */
sgm_status sgm__augmentation_fits(const sgm__augmentation *chain, sgm_block *block, size_t *scratch);
/* Changes the first `count` examples of a block that fits, in place. `first` is the number of its first
 * example in the epoch's order, `seed` the epoch's seed, `scratch` as large as sgm__augmentation_fits said.
 * Cannot fail; any thread may call it. */
void sgm__augmentation_apply(const sgm__augmentation *chain, sgm_block *block, int64_t count, uint64_t seed,
                             int64_t first, float *scratch);
/* Draws from Beta(alpha, alpha), between 0 and 1 with a density symmetric around 1/2. */
double sgm__random_beta(sgm__random *random, double alpha);

/* --- minibatches that threads augment while others are in use (augmentation_ring.c) --- */

typedef struct sgm__ahead sgm__ahead;
/* One minibatch of the ring. The iterator's thread fills it, then one thread augments it, then the iterator
 * gives it out; who may touch it at a time follows from `stage`. Its memory stays from use to use. */
typedef struct sgm__ahead_slot {
    sgm_block *full, *rest; /* the buffer and a slice of its front, as in struct sgm_iterator */
    float *scratch;         /* for sgm__augmentation_apply */
    int64_t count;          /* examples; if fewer than those of `full`, the minibatch is `rest` */
    int64_t first;          /* number of its first example in the epoch's order */
    uint64_t seed;          /* the epoch's, for augmentation */
    int stage;              /* FREE, WANTED, BUSY or READY: see augmentation_ring.c */
} sgm__ahead_slot;

/* Starts `threads` threads with a slot each, and one slot more, which is in use outside. If fewer threads, or
 * none, can be had, sgm__ahead_take does their work. Takes over the chain, also on failure. */
sgm__ahead *sgm__ahead_create(sgm__augmentation *chain, int64_t threads);
void sgm__ahead_free(sgm__ahead *ahead);
const sgm__augmentation *sgm__ahead_chain(const sgm__ahead *ahead);
/* The free slot behind those that were submitted, for the caller to fill; NULL when all are in use. */
sgm__ahead_slot *sgm__ahead_room(sgm__ahead *ahead);
/* Hands the slot that sgm__ahead_room gave to the threads. The caller does not touch it until it takes it. */
void sgm__ahead_submit(sgm__ahead *ahead);
/* Gives the oldest submitted slot once it is augmented; NULL when none was submitted. The slot is free again
 * at the next call of this function, of sgm__ahead_release or of sgm__ahead_drop. */
sgm__ahead_slot *sgm__ahead_take(sgm__ahead *ahead);
/* True if the slot that is taken next is augmented already. */
bool sgm__ahead_is_ready(sgm__ahead *ahead);
bool sgm__ahead_is_empty(sgm__ahead *ahead); /* a slot that was taken does not count */
/* Frees the slot that was taken last, if it is not free yet. */
void sgm__ahead_release(sgm__ahead *ahead);
/* Forgets all slots, after waiting for threads that are augmenting one. `blocks`: frees their memory, too,
 * for when minibatches get another size. */
void sgm__ahead_drop(sgm__ahead *ahead, bool blocks);

#endif
