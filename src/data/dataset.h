/* Datasets and iterators from the inside: what the files of this folder share. */
#ifndef SGM_DATA_DATASET_H
#define SGM_DATA_DATASET_H

#include "data/block/block.h"

#include <sigma/data.h>

/* --- datasets (dataset.c, dataset_view.c) --- */

/* The examples of block `index`, wherever they lie; give them back with sgm__run_release. Allocates nothing
 * when the block is in memory. */
sgm_status sgm__dataset_fetch_run(sgm_dataset *dataset, int64_t index, sgm__run *run);
void sgm__run_release(sgm__run *run);
/* A run as a block of its own: the block itself if the run is all of it. Takes the run, also on failure. */
const sgm_block *sgm__run_block(sgm__run *run);
/* Number of examples of block `index`, 0 past the last one. Reads the source if it must. */
sgm_status sgm__dataset_block_examples(sgm_dataset *dataset, int64_t index, int64_t *examples);
/* The place of example `row` of block `index` among all of the dataset's, or of what it is a view of. */
sgm_status sgm__dataset_number(sgm_dataset *dataset, int64_t index, int64_t row, int64_t *number);
/* True when it is known, without reading, that there are no more than `count` blocks. */
bool sgm__dataset_ends_at(sgm_dataset *dataset, int64_t count);

/* --- iterators (iterator.c) --- */

/* The next minibatch is copied from a block that is at hand: nothing is waited for. */
bool sgm__iterator_is_ready(const sgm_iterator *iterator);
/* How many of sgm_iterator_settings it has, the first ones. */
size_t sgm__iterator_setting_count(const sgm_iterator *iterator);
/* From the next minibatch on only part `part` (from 0) of so many is given; minibatches with fewer examples,
 * and what is augmented, stay whole. */
void sgm__iterator_set_part(sgm_iterator *iterator, int32_t part, int32_t parts);
/* The next minibatch is for somebody else: it is counted, and not copied. */
void sgm__iterator_skip_next(sgm_iterator *iterator);
/* What the newest minibatch is: examples `first` to `first + count - 1` of `whole`. */
typedef struct sgm__given_part {
    int64_t first, count, whole;
} sgm__given_part;
void sgm__iterator_given(const sgm_iterator *iterator, const sgm_block *batch, sgm__given_part *given);
/* Puts the dataset's name, and which of its examples it was, from 0, before a failure that is about an
 * example of the newest minibatch (sgm__fail_example); returns its status. */
sgm_status sgm__iterator_fail(sgm_iterator *iterator, sgm_status status);
uint64_t sgm__iterator_seed(const sgm_iterator *iterator);
int64_t sgm__iterator_size(const sgm_iterator *iterator); /* examples of a minibatch, as it is wanted */
bool sgm__iterator_shuffles(const sgm_iterator *iterator);
bool sgm__iterator_augments(const sgm_iterator *iterator);
/* Another one over the same dataset, with the same options as they are wanted now, at its beginning. */
sgm_iterator *sgm__iterator_copy(const sgm_iterator *iterator);

/* --- prefetching (prefetch.c) --- */
typedef struct sgm__prefetch sgm__prefetch;
sgm__prefetch *
sgm__prefetch_create(sgm_dataset *dataset); /* NULL when there is no thread or memory to be had */
void sgm__prefetch_request(sgm__prefetch *prefetch, int64_t index);
/* The run of block `index`: what was requested, or read now. */
sgm_status sgm__prefetch_take(sgm__prefetch *prefetch, int64_t index, sgm__run *run);
void sgm__prefetch_free(sgm__prefetch *prefetch);

#endif
