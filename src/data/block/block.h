/* Blocks of examples, ranges of them, and builders that put blocks together. Internal to src/data.
 *
 * A block has `count` examples in up to SGM_MAX_FIELDS named fields; a field is a float32 tensor (examples,
 * ...) whose first dimension is `count`. Extractors make blocks, preprocessors change them, datasets keep and
 * share them, iterators copy minibatches out of them. A minibatch is a block, too. The extractors (read/) and
 * sgm_full_batch (iterator.c) use builders, since they do not know beforehand how many examples will come. */
#ifndef SGM_DATA_BLOCK_BLOCK_H
#define SGM_DATA_BLOCK_BLOCK_H

#include "base/base.h"
#include <sigma/data.h>

/* Field names are stored in the block, so their length is limited. */
#define SGM__FIELD_NAME sizeof((sgm_field){0}.name)

/* --- blocks (block.c) --- */
/* Fails because `what` came as NULL. Calls nest (a reader made from a source made from a path), so a NULL is
 * mostly the result of a call that has failed already: then that failure is returned, and its message stays.
 */
sgm_status sgm__missing_part(const char *what);

/* Examples of one block of a dataset: [begin, end) of `block`, which belongs to `owner`. */
typedef struct sgm__example_range {
    sgm_dataset *owner;     /* the dataset that keeps `block`; under its mutex users are counted */
    const sgm_block *block; /* NULL: past the last one */
    int64_t begin, end;
} sgm__example_range;

/* A block with what the dataset that shares it needs to know. Every sgm_block is the first member of an
 * sgm__block (sgm_block_create), so that a pointer to the one is a pointer to the other. */
typedef struct sgm__block {
    sgm_block block;    /* first: the public pointer is the pointer to the whole */
    sgm_dataset *owner; /* NULL: the block is not shared */
    /* of a part of a block: the range that the part's slices point into; its block NULL: not a part */
    sgm__example_range source;
    int64_t index; /* among its owner's blocks */
    int32_t users; /* fetched and not yet released */
    /* the dataset has forgotten it (its state has changed): freed when its last user releases it */
    bool stale;
    struct sgm__block *newer, *older; /* the dataset's list of unused blocks, by last use */
} sgm__block;

sgm_field *sgm__block_find(sgm_block *block, const char *name); /* NULL without an error */
size_t sgm__block_bytes(const sgm_block *block);
/* Checks that a block has an example and a field, and that every field is float32 with `count` examples.
 * `maker`, the extractor that made the block, is named in the message. */
sgm_status sgm__block_check(const sgm_block *block, const char *maker);
/* Checks a field name that comes from outside and copies it to `target`, which has SGM__FIELD_NAME bytes.
 * `who` is named in the message. */
sgm_status sgm__field_name(char *target, const char *name, const char *who);
/* Gives the float32 values of a field for changing in place, after replacing its tensor by a contiguous copy
 * if it is none. */
sgm_status sgm__field_values(sgm_field *field, float **values);
sgm_shape sgm__example_shape(const sgm_tensor *values);                 /* without the first dimension */
sgm_shape sgm__examples_shape(int64_t count, const sgm_shape *example); /* with it again */
/* How many examples of `bytes` bytes each fit in `budget` bytes: at least 1, at most `maximum`. */
int64_t sgm__examples_in(size_t budget, size_t bytes, int64_t maximum);

/* Fills `order` with 0 to count - 1 in a random order; each order is equally likely. */
void sgm__permutation(sgm__random *random, int64_t *order, int64_t count);

/* A block that grows while its examples come in: fields with their values in one array each, (capacity,
 * elements) float32. */
typedef struct sgm__builder_field {
    char name[SGM__FIELD_NAME];
    sgm_shape example;
    size_t elements; /* of an example */
    float *values;
} sgm__builder_field;
/* Zeroed: empty. Fields are added first, then examples are reserved and written in all fields, then `count`
 * is raised. */
typedef struct sgm__builder {
    int32_t field_count;
    sgm__builder_field fields[SGM_MAX_FIELDS];
    int64_t count, capacity; /* examples */
} sgm__builder;
sgm_status sgm__builder_add_field(sgm__builder *builder, const char *name, const sgm_shape *example);
/* Makes room for `examples` more examples. The caller writes them from sgm__builder_end on in each field, and
 * then adds them to `count`. Pointers from sgm__builder_end are no longer valid afterwards. */
sgm_status sgm__builder_reserve(sgm__builder *builder, int64_t examples);
/* Where the next example of a field goes. */
float *sgm__builder_end(const sgm__builder *builder, int32_t field);
/* Appends examples [begin, end) of a contiguous block. The first block decides the fields; later ones must
 * have the same. */
sgm_status sgm__builder_append(sgm__builder *builder, const sgm_block *block, int64_t begin, int64_t end);
sgm_block *sgm__builder_take(sgm__builder *builder); /* empties the builder, also on failure */
/* Ends an extraction that came out as `status`: *block becomes what was built, if anything was, and stays as
 * it is otherwise. Empties the builder. */
sgm_status sgm__builder_finish(sgm__builder *builder, sgm_status status, sgm_block **block);
void sgm__builder_free(sgm__builder *builder);

#endif
