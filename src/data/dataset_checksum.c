/* A checksum of what a dataset begins with, by which a run that is done again sees that its data are others.
 *
 * Not all is read: a run should begin soon, and data may be larger than the memory. Blocks that are read here
 * are those that the first iterations want, and stay in the dataset's memory until then. */
#include "data/dataset_internal.h"

#include <zlib.h>

#define MAXIMUM_SUMMED ((size_t)4 << 20) /* bytes */

/* Adds the examples of a range, field by field; *left: bytes that may still be added. */
static uint32_t add_range(uint32_t checksum, const sgm__example_range *range, size_t *left)
{
    for (int32_t i = 0; i < range->block->field_count; i++) {
        const sgm_field *field = &range->block->fields[i];
        int64_t examples = sgm_tensor_shape(field->values)->dims[0];
        size_t elements = (size_t)sgm_shape_elements(sgm_tensor_shape(field->values));
        size_t row = examples > 0 ? elements / (size_t)examples * sizeof(float) : 0;
        size_t bytes = row * (size_t)(range->end - range->begin);
        const char *values = (const char *)sgm_tensor_const_data(field->values) + row * (size_t)range->begin;
        bytes = bytes < *left ? bytes : *left;
        checksum = (uint32_t)crc32_z(checksum, (const Bytef *)field->name, strlen(field->name));
        if (bytes > 0)
            checksum = (uint32_t)crc32_z(checksum, (const Bytef *)values, bytes);
        *left -= bytes;
    }
    return checksum;
}

/* No more than half of what stays in memory, so that nothing is read twice. */
static size_t bytes_to_sum(const sgm_dataset *dataset)
{
    while (dataset->kind != SGM__BLOCKS)
        dataset = dataset->base;
    return dataset->limit / 2 < MAXIMUM_SUMMED ? dataset->limit / 2 : MAXIMUM_SUMMED;
}

sgm_status sgm__dataset_checksum(sgm_dataset *dataset, uint32_t *checksum)
{
    size_t left = bytes_to_sum(dataset);
    *checksum = 0;
    for (int64_t index = 0; left > 0; index++) {
        sgm__example_range range;
        SGM_TRY(sgm__dataset_fetch_range(dataset, index, &range));
        if (range.block == NULL)
            break;
        *checksum = add_range(*checksum, &range, &left);
        sgm__example_range_release(&range);
    }
    return SGM_OK;
}
