/* Helpers of the tests from extractors on: readers that make their examples. */
#ifndef SIGMA_PIPELINE_TEST_H
#define SIGMA_PIPELINE_TEST_H

#include "base/allocator.h"
#include "test.h"
#include <pthread.h>
#include <sigma/data.h>

/* Counts in all tests: what is alive is known at any time. */
__attribute__((constructor)) static void pipeline_set_allocator(void)
{
    allocator_start(0);
}

/* --- a reader that counts: example i holds i, i + 0.5, ... --- */

typedef struct counting_reader {
    int64_t total, next;
    int32_t width;
    int64_t reads; /* examples given in all */
    sgm_tensor *values;
} counting_reader;

static sgm_status counting_read(void *pointer, int64_t count, sgm_examples *examples)
{
    counting_reader *self = pointer;
    int64_t left = self->total - self->next;
    examples->count = count < left ? count : left;
    if (examples->count == 0)
        return SGM_OK;
    sgm_shape shape = sgm_shape_of(examples->count, self->width);
    sgm_tensor_free(self->values);
    self->values = sgm_tensor_create(SGM_FLOAT32, &shape);
    if (!self->values)
        return sgm_last_status();
    float *values = sgm_tensor_data(self->values);
    for (int64_t i = 0; i < examples->count; i++)
        for (int32_t k = 0; k < self->width; k++)
            values[i * self->width + k] = (float)(self->next + i) + 0.5F * (float)k;
    self->next += examples->count;
    self->reads += examples->count;
    examples->values = self->values;
    return SGM_OK;
}

static sgm_status counting_rewind(void *pointer)
{
    ((counting_reader *)pointer)->next = 0;
    return SGM_OK;
}

static void counting_free(void *pointer)
{
    sgm_tensor_free(((counting_reader *)pointer)->values);
    free(pointer);
}

static counting_reader *counting_newest; /* to ask how much was read */

__attribute__((unused)) static sgm_reader *counting_make(int64_t total, int32_t width)
{
    static const sgm_reader_type type = {
        .name = "counting", .read = counting_read, .rewind = counting_rewind, .free = counting_free};
    counting_reader *self = calloc(1, sizeof *self);
    *self = (counting_reader){.total = total, .width = width};
    counting_newest = self;
    return sgm_reader_create(&type, self, "counting");
}

/* Fields "inputs" (all) and "targets" (the first element). */
__attribute__((unused)) static sgm_extractor *counting_extractor(int64_t total, int32_t width)
{
    return sgm_array_extractor(
        counting_make(total, width),
        .regions = {{.field = "inputs"}, {"targets", sgm_shape_of(0), sgm_shape_of(1), {0}, 0}});
}

/* --- looking at blocks --- */

__attribute__((unused)) static double pipeline_at(const sgm_block *block, const char *field, int64_t example,
                                                  int64_t element)
{
    sgm_tensor *values = sgm_block_field(block, field);
    if (!values)
        return NAN;
    const sgm_shape *shape = sgm_tensor_shape(values);
    int64_t elements = sgm_shape_elements(shape) / shape->dims[0];
    if (!sgm_tensor_is_contiguous(values) || example >= shape->dims[0] || element >= elements)
        return NAN;
    return (double)((const float *)sgm_tensor_const_data(values))[example * elements + element];
}

__attribute__((unused)) static const char *pipeline_shape(const sgm_block *block, const char *field)
{
    static char text[128];
    sgm_tensor *values = sgm_block_field(block, field);
    return values ? sgm_shape_text(sgm_tensor_shape(values), text, sizeof text) : "(none)";
}

#endif
