/* Declarations that preprocess.c and preprocess_adaptive.c share. Internal to these two.
 *
 * A preprocessor is an extractor (read/extractor.h) with a parent: it changes the blocks that the parent
 * gives, field by field, and keeps their number of examples. Both files change a field by name, or all fields
 * where no name was given. */
#ifndef SGM_DATA_PREPROCESS_H
#define SGM_DATA_PREPROCESS_H

#include "data/cache/key.h"
#include "data/dataset.h"

/* Changes one field of a block, in place or by replacing its tensor. `index` numbers the fields that are
 * changed: 0 for a field that was named, else the field's position in the block. Adaptive preprocessors keep
 * what they learn by this number. */
typedef sgm_status (*sgm__field_change)(void *user, sgm_field *field, int32_t index);
/* Calls `change` for the field of this name, or for all fields when the name is "". A name that the block
 * does not have is an error. */
sgm_status sgm__preprocess_fields(sgm_block *block, const char *name, sgm__field_change change, void *user);

/* A linear map: input_min becomes output_min, input_max becomes output_max. */
typedef struct sgm__range {
    double input_min, input_max, output_min, output_max;
} sgm__range;
/* The range of the options. Outputs are from 0 to 1 if both are 0, that is, not set. `who` is named in
 * messages. */
sgm_status sgm__preprocess_range(const sgm_preprocess_options *options, const char *who, sgm__range *range);
/* Maps `count` values that are `stride` floats apart, in place: every stride-th, so that one element of all
 * examples can have a range of its own. Where the input range has no width (a constant column), all become
 * output_min. */
void sgm__range_apply(float *values, int64_t count, size_t stride, const sgm__range *range);

/* The parts of a preprocessor, as in sgm__extractor_parts. */
typedef struct sgm__preprocess_parts {
    const sgm_extractor_type *type;
    void *self; /* freed by the type */
    sgm_extractor *parent;
    sgm_status (*rewind)(void *self);
    void (*passed_over)(void *self); /* told that a block was skipped; NULL: it need not know */
    void (*describe)(const void *self, sgm__key *key); /* as in sgm__extractor_parts */
} sgm__preprocess_parts;
/* Takes over `self` and the parent, also on failure. The preprocessor gives one block for each block of its
 * parent. */
sgm_extractor *sgm__preprocess_create(const sgm__preprocess_parts *parts);

#endif
