/* The internal interface of datasets, iterators and prefetching, for the files of src/data and for the
 * trainer.
 *
 * A dataset is a list of blocks, each with some thousand examples of named float32 fields; an iterator walks
 * over a dataset and makes minibatches. The public part is <sigma/data.h>. The insides are in
 * dataset_internal.h (datasets) and iterator.h (iterators); blocks themselves are in block/block.h, and the
 * parts that read them from files in read/. A range (sgm__example_range) refers to consecutive examples of a
 * block that a dataset keeps; a view of a dataset hands out ranges of its base's blocks, so that nothing is
 * copied. */
#ifndef SGM_DATA_DATASET_H
#define SGM_DATA_DATASET_H

#include "data/block/block.h"
#include "data/cache/key.h"

#include <sigma/data.h>
#include <sigma/split.h>

/* --- datasets (dataset.c, dataset_view.c) --- */

/* Gives the examples of block `index` in *range, without a copy; range->block is NULL past the last block.
 * The block stays in memory until sgm__example_range_release, so a caller must release each range. Reads the
 * source where the block is in neither memory nor the cache file, which may take long; allocates nothing when
 * the block is in memory. Any thread may call it. */
sgm_status sgm__dataset_fetch_range(sgm_dataset *dataset, int64_t index, sgm__example_range *range);
void sgm__example_range_release(sgm__example_range *range);
/* Makes a block of its own from a range: the range's block itself if the range covers all of it, else a new
 * block whose fields are slices of that one's. Give it back with sgm_dataset_release_block. Takes over the
 * range, also on failure (then NULL). */
const sgm_block *sgm__example_range_block(sgm__example_range *range);
/* Sets *examples to the number of examples of block `index`, 0 past the last block. Reads the source up to
 * this block the first time; afterwards the number is remembered, whether or not the block is. */
sgm_status sgm__dataset_block_examples(sgm_dataset *dataset, int64_t index, int64_t *examples);
/* Sets *number to the position of example `row` of block `index` among all examples, from 0. For a view this
 * is the position in the dataset at the bottom, below all views, since that is where the user finds the
 * example. For error messages. */
sgm_status sgm__dataset_number(sgm_dataset *dataset, int64_t index, int64_t row, int64_t *number);
/* True when it is known without reading that the dataset has no more than `count` blocks. False may also mean
 * "not known". */
bool sgm__dataset_ends_at(sgm_dataset *dataset, int64_t count);

/* --- dataset_append.c --- */
/* Whether examples can be appended to it, as long as there are no views of it: it has one block, which may
 * have more examples at each look. */
bool sgm__dataset_grows(const sgm_dataset *dataset);

/* --- dataset_checksum.c --- */
/* The CRC-32 of the names and values of the first 4 MiB of examples. Other values there, or another number
 * of examples if there are fewer, give another one. Reads the first blocks. */
sgm_status sgm__dataset_checksum(sgm_dataset *dataset, uint32_t *checksum);

/* --- what is kept for other runs (dataset_kept.c) --- */
/* The folder that was given, or the usual one; sgm__free. NULL and an error: there is none. */
char *sgm__kept_folder(const char *given);

/* --- splits (split.c) --- */
/* Adds which examples belong to a part, or to all others; without a split (NULL) all do. */
void sgm__split_describe(const sgm_split *split, int32_t part, bool others, sgm__key *key);

/* --- ready-made datasets (ready_made.c) --- */

/* The file that a ready-made dataset is read from, for sgm_known_source, and whether it is fetched where it
 * is not on this machine; of several files the first. NULL: it is computed, or there is none of this name. */
const char *sgm__dataset_file(const char *name, bool *is_fetched);

/* --- iterators (iterator.c) --- */

/* True when the next minibatch can be made without waiting for a block or for augmentation. The trainer
 * (src/train/trainer_step.c) then leaves out measuring how long it waited, since reading a clock costs more
 * than a small minibatch. */
bool sgm__iterator_is_ready(const sgm_iterator *iterator);
/* How many of the settings in sgm_iterator_settings this iterator has: the first so many of that list. 0 for
 * iterators that give whole blocks. */
size_t sgm__iterator_setting_count(const sgm_iterator *iterator);
/* From the next minibatch on the iterator copies only part `part` (from 0) of `parts` equal parts of each
 * minibatch: a rank that trains together with other processes needs only its own examples. Minibatches with
 * fewer examples than parts stay whole, and so do all minibatches of an iterator that augments.
 * sgm__iterator_given tells which examples were copied. */
void sgm__iterator_set_part(sgm_iterator *iterator, int32_t part, int32_t parts);
/* The next minibatch belongs to another worker or rank: sgm_iterator_next counts it and moves on past its
 * examples, but copies none of them, so its content is undefined. An iterator that augments makes it all the
 * same. */
void sgm__iterator_skip_next(sgm_iterator *iterator);
/* Which examples of the newest minibatch were copied: `first` to `first + count - 1` of the `whole`
 * minibatch's examples. */
typedef struct sgm__given_part {
    int64_t first, count, whole;
} sgm__given_part;
void sgm__iterator_given(const sgm_iterator *iterator, const sgm_block *batch, sgm__given_part *given);
/* Names the example that a failure is about. When an operation has failed because of one example of the
 * newest minibatch (sgm__fail_example), this puts the dataset's name and the example's number in it (from 0)
 * before the message; other failures stay as they are. Returns the status. */
sgm_status sgm__iterator_fail(sgm_iterator *iterator, sgm_status status);
uint64_t sgm__iterator_seed(const sgm_iterator *iterator);
/* examples of a minibatch, from the next epoch on */
int64_t sgm__iterator_size(const sgm_iterator *iterator);
/* True if the current epoch is in a shuffled order. */
bool sgm__iterator_shuffles(const sgm_iterator *iterator);
bool sgm__iterator_augments(const sgm_iterator *iterator);
/* Another iterator over the same dataset, at its beginning, with the same seed and the options that hold from
 * the next epoch on. Which part of minibatches is copied (sgm__iterator_set_part) is not taken over. */
sgm_iterator *sgm__iterator_copy(const sgm_iterator *iterator);

/* --- prefetching (prefetch.c) --- */
/* One thread that reads the block after the current one while the current one is in use. At most one block is
 * requested at a time. Only the iterator's thread calls these functions. */
typedef struct sgm__prefetch sgm__prefetch;
sgm__prefetch *
/* NULL without an error when there is no thread or memory to be had */
sgm__prefetch_create(sgm_dataset *dataset);
/* Starts reading block `index` and returns. A block that was requested before and not taken is given back
 * first. */
void sgm__prefetch_request(sgm__prefetch *prefetch, int64_t index);
/* Gives the range of block `index`: waits for the request if it was for this block, else reads the block on
 * the calling thread. A failure of the prefetching thread is reported here, with its message. */
sgm_status sgm__prefetch_take(sgm__prefetch *prefetch, int64_t index, sgm__example_range *range);
void sgm__prefetch_free(sgm__prefetch *prefetch);

#endif
