/* Blocks, extractors and datasets from the inside: what the files of this folder share. */
#ifndef SGM_DATA_DATASET_H
#define SGM_DATA_DATASET_H

#include "base/base.h"

#include <sigma/data.h>

/* Field names are stored in the block, so their length is limited. */
#define SGM__FIELD_NAME sizeof((sgm_field){0}.name)

/* --- blocks (block.c) --- */
/* Reports a missing part, unless the part's own failure is known already. */
sgm_status sgm__missing_part(const char *what);

/* Examples of one block of a dataset: [begin, end) of `block`, which belongs to `owner`. */
typedef struct sgm__run {
    sgm_dataset *owner;
    const sgm_block *block; /* NULL: past the last one */
    int64_t begin, end;
} sgm__run;

/* What a block carries beside its public part, for the dataset that shares it. */
typedef struct sgm__block {
    sgm_block block; /* first: the public pointer is the pointer to the whole */
    sgm_dataset *owner;
    sgm__run source; /* of a block that is a part of another one */
    int64_t index;
    int32_t users;                    /* fetched and not yet released */
    bool stale;                       /* no longer the dataset's: goes when its last user releases it */
    struct sgm__block *newer, *older; /* by last use */
} sgm__block;

sgm_field *sgm__block_find(sgm_block *block, const char *name); /* NULL without an error */
size_t sgm__block_bytes(const sgm_block *block);
/* Every field has `count` examples of float32. `maker` is named in the message. */
sgm_status sgm__block_check(const sgm_block *block, const char *maker);
/* Copies a field name that comes from outside, after checking it. */
sgm_status sgm__field_name(char *target, const char *name, const char *who);
/* Makes the field contiguous if it is not; gives its values. */
sgm_status sgm__field_values(sgm_field *field, float **values);
sgm_shape sgm__example_shape(const sgm_tensor *values);                 /* without the first dimension */
sgm_shape sgm__examples_shape(int64_t count, const sgm_shape *example); /* with it again */
/* How many examples of `bytes` each fit in `budget` bytes: 1 to `maximum`. */
int64_t sgm__examples_in(size_t budget, size_t bytes, int64_t maximum);

/* 0 to count - 1 in a random order. */
void sgm__permutation(sgm__random *random, int64_t *order, int64_t count);

/* A block that grows while its examples come in. */
typedef struct sgm__builder_field {
    char name[SGM__FIELD_NAME];
    sgm_shape example;
    size_t elements; /* of an example */
    float *values;
} sgm__builder_field;
typedef struct sgm__builder {
    int32_t field_count;
    sgm__builder_field fields[SGM_MAX_FIELDS];
    int64_t count, capacity; /* examples */
} sgm__builder;
sgm_status sgm__builder_add_field(sgm__builder *builder, const char *name, const sgm_shape *example);
/* Room for `examples` more; the caller writes them behind the `count` there are, and raises `count`. */
sgm_status sgm__builder_reserve(sgm__builder *builder, int64_t examples);
float *sgm__builder_end(const sgm__builder *builder, int32_t field);
/* Appends examples [begin, end) of a contiguous block; the first one decides the fields. */
sgm_status sgm__builder_append(sgm__builder *builder, const sgm_block *block, int64_t begin, int64_t end);
sgm_block *sgm__builder_take(sgm__builder *builder); /* empties the builder, also on failure */
void sgm__builder_free(sgm__builder *builder);

/* --- extractors (extractor.c) --- */

/* What the library's own kinds have beside the public type. */
typedef struct sgm__extractor_parts {
    const sgm_extractor_type *type;
    void *self;
    sgm_extractor *parent, *second; /* `second`: of a merge */
    sgm_status (*rewind)(void *self);
    /* Reads by itself: passes over up to `count` examples without making a block; fewer only at the end. */
    sgm_status (*skip)(void *self, int64_t count, int64_t *skipped);
    /* Gives one block for each of its parent's, with as many examples: passing over is the parent's work. */
    bool follows_parent;
    void (*passed_over)(void *self); /* told that a block went by unseen; NULL: needs not know */
} sgm__extractor_parts;
sgm_extractor *sgm__extractor_create(const sgm__extractor_parts *parts);
/* Lets adaptive preprocessors learn, in blocks of `count` examples (0: as many as fit in a few megabytes). */
sgm_status sgm__extractor_fit(sgm_extractor *extractor, int64_t count);
/* Like extract, without the block. */
sgm_status sgm__extractor_skip(sgm_extractor *extractor, int64_t count, int64_t *skipped);
/* State of the whole chain: for each adaptive part, innermost first, a count and that many numbers. */
sgm_status sgm__extractor_get_state(sgm_extractor *extractor, double *numbers, size_t *count);
sgm_status sgm__extractor_set_state(sgm_extractor *extractor, const double *numbers, size_t count);
/* Reads a few megabytes at a time from a reader, however many examples are asked for. */
typedef struct sgm__chunks {
    sgm_reader *reader;
    int64_t size; /* examples of the next chunk; 0 at first */
} sgm__chunks;
sgm_status sgm__chunks_read(sgm__chunks *chunks, int64_t count, sgm_examples *examples);
sgm_status sgm__chunks_rewind(sgm__chunks *chunks);
sgm_status sgm__chunks_skip(sgm__chunks *chunks, int64_t count, int64_t *skipped);

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
