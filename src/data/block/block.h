/* Blocks of examples from the inside, and how one grows. Internal to the data pipeline. */
#ifndef SGM_DATA_BLOCK_BLOCK_H
#define SGM_DATA_BLOCK_BLOCK_H

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

#endif
