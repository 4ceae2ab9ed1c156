/* Preprocessors that learn the range of the data, then normalise with it: one range for a field, or one for
 * each element of its examples.
 *
 * Learning goes over the whole dataset before the first block is given (read/extractor.c:sgm__extractor_fit
 * calls adaptive_fit for every block), or, with the option per_block, over each block by itself. What was
 * learnt is the preprocessor's state: a checkpoint keeps it (sgm_dataset_get_state), so that validation, a
 * resumed run and prediction scale as the training did. Ranges that are given beforehand are in preprocess.c.
 */
#include "data/preprocess.h"

#include <math.h>

/* The ranges that were learnt of a field. */
typedef struct learnt {
    size_t elements; /* number of ranges: 0 before learning; 1, or the elements of an example */
    double *ranges;  /* pairs minimum, maximum */
} learnt;

/* `output` has only the output half of a range; the input half comes from `fields` when it is applied. */
typedef struct adaptive {
    char field[SGM__FIELD_NAME];
    bool per_index;
    sgm__range output;
    int32_t field_count; /* fields that ranges were learnt for */
    learnt fields[SGM_MAX_FIELDS];
} adaptive;

static void forget(adaptive *self)
{
    for (int32_t i = 0; i < SGM_MAX_FIELDS; i++)
        sgm__free(self->fields[i].ranges);
    memset(self->fields, 0, sizeof self->fields);
    self->field_count = 0;
}

static void adaptive_free(void *self)
{
    forget(self);
    sgm__free(self);
}

/* Begins to learn: each range is empty, from +infinity to -infinity, so that the first value becomes both of
 * its ends. */
static sgm_status start(learnt *known, size_t elements)
{
    known->ranges = sgm__calloc(elements, 2 * sizeof *known->ranges);
    if (!known->ranges)
        return SGM_ERROR_MEMORY;
    known->elements = elements;
    for (size_t i = 0; i < elements; i++) {
        known->ranges[2 * i] = INFINITY;
        known->ranges[2 * i + 1] = -INFINITY;
    }
    return SGM_OK;
}

/* How many ranges the field needs. It must be as many as were learnt before: examples of another size, or a
 * checkpoint of other data, have other elements. */
static sgm_status count_ranges(const adaptive *self, const sgm_field *field, const learnt *known,
                               size_t *elements)
{
    const sgm_shape *shape = sgm_tensor_shape(field->values);
    *elements = self->per_index ? (size_t)(sgm_shape_elements(shape) / shape->dims[0]) : 1;
    if (known->elements != 0 && known->elements != *elements)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "field \"%s\" has %zu elements an example, but %zu ranges were learnt", field->name,
                        *elements, known->elements);
    return SGM_OK;
}

/* Widens the ranges of a field by the values of a block, (examples, elements). With one range for the field,
 * `elements` is 1, and every value widens it. The comparisons leave a range as it is where a value is NaN. */
static sgm_status learn(void *user, sgm_field *field, int32_t index)
{
    adaptive *self = user;
    learnt *known = &self->fields[index];
    size_t elements;
    float *values;
    SGM_TRY(sgm__field_values(field, &values));
    SGM_TRY(count_ranges(self, field, known, &elements));
    if (known->elements == 0)
        SGM_TRY(start(known, elements));
    if (index >= self->field_count)
        self->field_count = index + 1;
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(field->values));
    for (size_t i = 0; i < count; i += elements) {
        for (size_t k = 0; k < elements; k++) {
            double value = values[i + k], *range = &known->ranges[2 * k];
            range[0] = value < range[0] ? value : range[0];
            range[1] = value > range[1] ? value : range[1];
        }
    }
    return SGM_OK;
}

/* Normalises a field with its ranges, element by element: each is a column with a stride of `elements`. */
static sgm_status apply(void *user, sgm_field *field, int32_t index)
{
    const adaptive *self = user;
    const learnt *known = &self->fields[index];
    size_t elements;
    float *values;
    if (index >= self->field_count)
        return sgm_fail(SGM_ERROR_STATE, "field \"%s\": no range was learnt for it", field->name);
    SGM_TRY(sgm__field_values(field, &values));
    SGM_TRY(count_ranges(self, field, known, &elements));
    int64_t count = sgm_shape_elements(sgm_tensor_shape(field->values)) / (int64_t)elements;
    for (size_t k = 0; k < elements; k++) {
        sgm__range range = self->output;
        range.input_min = known->ranges[2 * k];
        range.input_max = known->ranges[2 * k + 1];
        sgm__range_apply(values + k, count, elements, &range);
    }
    return SGM_OK;
}

/* The block belongs to the caller and is constant, but `learn` may replace a field's tensor by a contiguous
 * copy. So it gets a copy of the struct whose tensors are retained: a replacement frees the reference of the
 * copy only. */
static sgm_status adaptive_fit(void *pointer, const sgm_block *block)
{
    adaptive *self = pointer;
    sgm_block seen = *block; /* its fields may be made contiguous, which changes this copy's pointers only */
    sgm_status status = SGM_OK;
    for (int32_t i = 0; i < seen.field_count; i++)
        sgm_tensor_retain(seen.fields[i].values);
    status = sgm__preprocess_fields(&seen, self->field, learn, self);
    for (int32_t i = 0; i < seen.field_count; i++)
        sgm_tensor_free(seen.fields[i].values);
    return status;
}

static sgm_status adaptive_extract(void *pointer, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    adaptive *self = pointer;
    SGM_TRY(sgm_extractor_extract(parent, count, block));
    return *block ? sgm__preprocess_fields(*block, self->field, apply, self) : SGM_OK;
}

/* Learns from the block that it is about to normalise. There is no state to keep, so this kind has no
 * get_state. */
static sgm_status per_block_extract(void *pointer, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    adaptive *self = pointer;
    SGM_TRY(sgm_extractor_extract(parent, count, block));
    if (!*block)
        return SGM_OK;
    forget(self);
    SGM_TRY(sgm__preprocess_fields(*block, self->field, learn, self));
    return sgm__preprocess_fields(*block, self->field, apply, self);
}

/* --- state: for each field the number of ranges, then their pairs --- */

/* `numbers` NULL: only counts them. */
static sgm_status adaptive_get_state(void *pointer, double *numbers, size_t *count)
{
    const adaptive *self = pointer;
    size_t used = 0;
    for (int32_t i = 0; i < self->field_count; i++) {
        const learnt *known = &self->fields[i];
        if (numbers) {
            numbers[used] = (double)known->elements;
            memcpy(numbers + used + 1, known->ranges, 2 * known->elements * sizeof *numbers);
        }
        used += 1 + 2 * known->elements;
    }
    *count = used;
    return SGM_OK;
}

/* Reads the ranges of one field from *used on, after checking that the number of ranges is whole, fits what
 * is left, and fits this kind of preprocessor: the numbers come from a file. */
static sgm_status read_field(adaptive *self, const double *numbers, size_t count, size_t *used)
{
    double elements = numbers[*used];
    size_t maximum = (count - *used - 1) / 2;
    if (!(elements >= 1 && elements <= (double)maximum) || elements != floor(elements) ||
        (!self->per_index && elements != 1) || self->field_count == SGM_MAX_FIELDS)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "learnt ranges: number %zu of %zu is %g, no number of ranges that fits", *used, count,
                        elements);
    learnt *known = &self->fields[self->field_count];
    SGM_TRY(start(known, (size_t)elements));
    memcpy(known->ranges, numbers + *used + 1, 2 * known->elements * sizeof *numbers);
    self->field_count++;
    *used += 1 + 2 * known->elements;
    return SGM_OK;
}

/* Reads into a second struct first, so that what is known stays when the numbers are refused. */
static sgm_status adaptive_set_state(void *pointer, const double *numbers, size_t count)
{
    adaptive *self = pointer;
    adaptive other = {.per_index = self->per_index};
    sgm_status status = SGM_OK;
    for (size_t used = 0; used < count && status == SGM_OK;)
        status = read_field(&other, numbers, count, &used);
    if (status != SGM_OK) {
        forget(&other);
        return status;
    }
    forget(self);
    memcpy(self->fields, other.fields, sizeof self->fields);
    self->field_count = other.field_count;
    return SGM_OK;
}

/* `per_index`: a range for each element of an example instead of one for the field. Takes over the extractor,
 * also on failure. */
static sgm_extractor *create(sgm_extractor *extractor, const sgm_preprocess_options *options, bool per_index)
{
    static const sgm_extractor_type over_all = {.name = "adaptive normalise",
                                                .extract = adaptive_extract,
                                                .fit = adaptive_fit,
                                                .get_state = adaptive_get_state,
                                                .set_state = adaptive_set_state,
                                                .free = adaptive_free};
    static const sgm_extractor_type by_block = {
        .name = "adaptive normalise", .extract = per_block_extract, .free = adaptive_free};
    sgm_preprocess_options copy;
    adaptive *self = sgm__calloc(1, sizeof *self);
    if (!self || sgm__options_read(&copy, sizeof copy, options, over_all.name) != SGM_OK ||
        (copy.field && sgm__field_name(self->field, copy.field, over_all.name) != SGM_OK) ||
        sgm__preprocess_range(&copy, over_all.name, &self->output) != SGM_OK) {
        sgm_extractor_free(extractor);
        sgm__free(self);
        return NULL;
    }
    self->per_index = per_index;
    return sgm__preprocess_create(&(sgm__preprocess_parts){
        .type = copy.per_block ? &by_block : &over_all, .self = self, .parent = extractor});
}

sgm_extractor *sgm_adaptive_normalise_with(sgm_extractor *extractor, const sgm_preprocess_options *options)
{
    return create(extractor, options, false);
}

sgm_extractor *sgm_adaptive_per_index_with(sgm_extractor *extractor, const sgm_preprocess_options *options)
{
    return create(extractor, options, true);
}
