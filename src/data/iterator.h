/* The inside of an iterator. Internal to iterator*.c. */
#ifndef SGM_DATA_ITERATOR_H
#define SGM_DATA_ITERATOR_H

#include "data/augment.h"
#include "data/dataset.h"

#define SGM__NO_EPOCH (-1)

typedef enum sgm__iterator_kind { SGM__MINIBATCHES, SGM__FULL_BATCH, SGM__BY_BLOCK } sgm__iterator_kind;

struct sgm_iterator {
    sgm__iterator_kind kind;
    sgm_dataset *dataset;
    int64_t size;
    uint64_t seed;
    bool shuffle, drop_last, prefetches;
    sgm_iterator_options wanted; /* from the next epoch on; defaults filled in */
    char *augment;               /* that of `wanted` */
    sgm_iterator_state state;

    /* the blocks, as far as they had to be counted */
    bool counted;
    int64_t block_count, example_count;

    /* where it stands; unplaced after a failure and a change of state */
    bool placed;
    int64_t *order; /* of blocks, when shuffled; that of `order_epoch` */
    int64_t order_epoch;
    int64_t place; /* in the order */
    int64_t used;  /* examples of the block there */

    sgm__run run;  /* the block at hand; its block NULL: none */
    int64_t *rows; /* the order of its examples, when shuffled */
    size_t rows_capacity;
    bool no_thread; /* there is none to be had */
    sgm__prefetch *prefetch;

    /* Of each minibatch only a part is wanted, of so many; 1: all of it. */
    int32_t part, parts;
    bool skips;             /* the next one is not wanted at all */
    sgm__given_part given;  /* of the newest minibatch */
    sgm_block *full, *rest; /* the batch, and its front part for a smaller one */
    sgm__ahead *ahead;      /* instead of these, when batches are augmented */
    int64_t filled;         /* batches of this epoch that were filled, given or not */
    bool all_filled;        /* there are no more in this epoch */
    const sgm_block *held;  /* full batch, by block: a block of the dataset's */
    int64_t held_index;
    sgm_block *joined; /* by block: several blocks as one */
};

/* --- iterator.c --- */
sgm_status sgm__iterator_count_blocks(sgm_iterator *iterator);
/* Block `index`, and the request for the one after it; `next` -1: none. */
sgm_status sgm__iterator_acquire(sgm_iterator *iterator, int64_t index, int64_t next, sgm__run *run);

/* --- iterator_batches.c --- */
/* The next minibatch; NULL in *batch at the end of the epoch. */
sgm_status sgm__iterator_next_minibatch(sgm_iterator *iterator, const sgm_block **batch);
/* Lets go of all minibatches, which have another size from now on. */
void sgm__iterator_free_batches(sgm_iterator *iterator);

#endif
