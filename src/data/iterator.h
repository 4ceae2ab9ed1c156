/* The inside of an iterator. Internal to iterator.c and iterator_batches.c.
 *
 * An iterator stands at (epoch, batches given in it); all else is derived from these two numbers, the seed
 * and the dataset, or is a buffer. So a position can be saved and gone back to (sgm_iterator_get_state,
 * sgm_iterator_set_state) without a list of the examples that were seen. An iterator is used by one thread at
 * a time and has no lock; the threads behind it, prefetching and augmenting, have their own. */
#ifndef SGM_DATA_ITERATOR_H
#define SGM_DATA_ITERATOR_H

#include "data/augment.h"
#include "data/dataset.h"

#define SGM__NO_EPOCH (-1)

/* SGM__MINIBATCHES copies `size` examples at a time. SGM__BY_BLOCK gives each block of the dataset as one
 * batch, without a copy. SGM__FULL_BATCH gives one batch per epoch: all blocks joined. */
typedef enum sgm__iterator_kind { SGM__MINIBATCHES, SGM__BY_BLOCK, SGM__FULL_BATCH } sgm__iterator_kind;

struct sgm_iterator {
    sgm__iterator_kind kind;
    sgm_dataset *dataset; /* retained */
    uint64_t seed;        /* of the orders of all epochs */
    /* `size` (examples of a minibatch), `shuffle` and `drop_last` hold for the current epoch. `wanted` has
     * what was set last, with defaults filled in, and holds from the next epoch on. So an epoch has each
     * example exactly once even if the size changes in the middle of it. */
    int64_t size;
    bool shuffle, drop_last;
    bool prefetches; /* the next block may be read ahead on a thread */
    sgm_iterator_options wanted;
    char *augment; /* owns the text that wanted.augment points to */
    sgm_iterator_state state;

    /* A dataset that grows has `limit` examples in the epoch `limited`: as many as it had at its beginning.
     * Others have no limit. */
    int64_t limit, limited;

    /* Blocks and examples of the dataset, if they had to be counted: shuffling needs the number of blocks,
     * and so reads the whole source once. */
    bool counted;
    int64_t block_count, example_count;

    /* Where the iterator stands in the epoch: `place` and `used` below. `placed` is false after a failure and
     * after a change of `state`; then both are computed from `state` again (find_place). */
    bool placed;
    /* The order of blocks when shuffled, that of epoch `order_epoch`. NULL: no epoch was shuffled yet. */
    int64_t *order;
    int64_t order_epoch; /* SGM__NO_EPOCH: `order` has to be drawn */
    int64_t place;       /* the current block's position in the order */
    int64_t used;        /* examples of the current block that were copied or skipped */

    sgm__example_range range; /* the current block; its block NULL: not fetched yet */
    int64_t *rows;            /* the order of the current block's examples, when shuffled */
    size_t rows_capacity;
    bool no_thread;          /* no thread could be had for prefetching: it is not tried again */
    sgm__prefetch *prefetch; /* NULL: not needed yet */

    /* Only part `part` of `parts` of each minibatch is copied; parts 1: all of it (sgm__iterator_set_part).
     */
    int32_t part, parts;
    bool skips;            /* the next minibatch is counted but not copied */
    sgm__given_part given; /* what was copied of the newest minibatch */
    /* The buffer that minibatches are copied to, and a block of slices of its front for a smaller minibatch,
     * such as the last one. Both are made once and used again, so that an epoch allocates nothing. */
    sgm_block *full, *rest;
    /* The ring that augments minibatches, NULL without augmentation. Its slots have buffers of their own in
     * place of `full` and `rest`. */
    sgm__ahead *ahead;
    int64_t filled;  /* with `ahead`: minibatches of this epoch that were handed to the ring, taken or not */
    bool all_filled; /* with `ahead`: the epoch has no more examples for the ring */
    /* For iterators over whole blocks: the dataset's block number `held_index` that was given last. */
    const sgm_block *held;
    int64_t held_index;
    sgm_block *joined; /* SGM__FULL_BATCH: all blocks as one, kept for all epochs */
};

/* --- iterator.c --- */
/* The number of examples of a block in this epoch; 0 past the last block. */
sgm_status sgm__iterator_block_examples(sgm_iterator *iterator, int64_t index, int64_t *examples);
/* Counts blocks and examples of the dataset, once. Reads the source up to its end if it was not read yet. */
sgm_status sgm__iterator_count_blocks(sgm_iterator *iterator);
/* Fetches block `index`, and has the block `next` read meanwhile on a thread of its own if that is allowed;
 * `next` -1: none. */
sgm_status sgm__iterator_acquire(sgm_iterator *iterator, int64_t index, int64_t next,
                                 sgm__example_range *range);

/* --- iterator_batches.c --- */
/* Makes the next minibatch; *batch stays NULL at the end of the epoch. The batch is valid until the next
 * call. */
sgm_status sgm__iterator_next_minibatch(sgm_iterator *iterator, const sgm_block **batch);
/* Frees all buffers of minibatches; with another size, or another part, they are made anew. */
void sgm__iterator_free_batches(sgm_iterator *iterator);

#endif
