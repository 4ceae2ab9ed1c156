/* What preprocessors share. Internal to preprocess*.c. */
#ifndef SGM_DATA_PREPROCESS_H
#define SGM_DATA_PREPROCESS_H

#include "data/dataset.h"

/* Changes one field; `index` counts the fields that are changed in this block. */
typedef sgm_status (*sgm__field_change)(void *user, sgm_field *field, int32_t index);
/* Calls `change` for the field of that name, or for all when the name is "". */
sgm_status sgm__preprocess_fields(sgm_block *block, const char *name, sgm__field_change change, void *user);

typedef struct sgm__range {
    double input_min, input_max, output_min, output_max;
} sgm__range;
/* The options' range; outputs from 0 to 1 if they are not set. */
sgm_status sgm__preprocess_range(const sgm_preprocess_options *options, const char *who, sgm__range *range);
/* Linear, every `stride`-th of the values; an input range without width goes to output_min. */
void sgm__range_apply(float *values, int64_t count, size_t stride, const sgm__range *range);

typedef struct sgm__preprocess_parts {
    const sgm_extractor_type *type;
    void *self; /* freed by the type */
    sgm_extractor *parent;
    sgm_status (*rewind)(void *self);
    void (*passed_over)(void *self);
} sgm__preprocess_parts;
sgm_extractor *sgm__preprocess_create(const sgm__preprocess_parts *parts);

#endif
