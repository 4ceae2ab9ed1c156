/* Makes, checks and grows blocks: named float32 fields with the same number of examples.
 *
 * block.h says what a block is and who uses it. The public functions (sgm_block_...) are for extractors that
 * programs write; the others are for the rest of src/data. Nothing here locks: a block belongs to one thread
 * until a dataset shares it, and after that its fields no longer change. */
#include "data/block/block.h"

/* Keeps the message of the call that gave NULL, since it says what really went wrong. */
sgm_status sgm__missing_part(const char *what)
{
    if (sgm_last_status() != SGM_OK)
        return sgm_last_status();
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s is needed, got NULL", what);
}

/* The whole sgm__block is allocated, so that a dataset can share any block; its owner is NULL until then. */
sgm_block *sgm_block_create(int64_t count)
{
    if (count < 1) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a block needs at least one example, got %lld", (long long)count);
        return NULL;
    }
    sgm__block *made = sgm__calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->block.count = count;
    return &made->block;
}

void sgm_block_free(sgm_block *block)
{
    if (!block)
        return;
    for (int32_t i = 0; i < block->field_count; i++)
        sgm_tensor_free(block->fields[i].values);
    sgm__free(block);
}

sgm_status sgm__field_name(char *target, const char *name, const char *who)
{
    if (!name || !*name)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: a field needs a name", who);
    if (strlen(name) >= SGM__FIELD_NAME)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: field name \"%s\" is longer than %d characters", who, name,
                        (int)SGM__FIELD_NAME - 1);
    memcpy(target, name, strlen(name) + 1);
    return SGM_OK;
}

/* A field is float32, examples first, with as many of them as the block has. `who` begins the message. */
static sgm_status check_field(const sgm_block *block, const char *name, const sgm_tensor *values,
                              const char *who)
{
    const sgm_shape *shape = sgm_tensor_shape(values);
    if (sgm_tensor_dtype(values) != SGM_FLOAT32)
        return sgm_fail(SGM_ERROR_TYPE, "%s: field \"%s\" has to be float32, but is %s", who, name,
                        sgm_dtype_name(sgm_tensor_dtype(values)));
    if (shape->rank < 1 || shape->dims[0] != block->count) {
        char text[128];
        return sgm_fail(
            SGM_ERROR_SHAPE,
            "%s: field \"%s\" has shape %s in a block of %lld examples; its first dimension has to "
            "be %lld, as of the first field",
            who, name, sgm_shape_text(shape, text, sizeof text), (long long)block->count,
            (long long)block->count);
    }
    return SGM_OK;
}

/* sgm_block_add without its promise to take the tensor also on failure. */
static sgm_status add(sgm_block *block, const char *name, sgm_tensor *values)
{
    if (!block || !values)
        return sgm__missing_part("sgm_block_add: a block and a tensor");
    char checked[SGM__FIELD_NAME];
    SGM_TRY(sgm__field_name(checked, name, "block"));
    if (sgm__block_find(block, name))
        return sgm_fail(SGM_ERROR_ARGUMENT, "block: there is a field \"%s\" already", name);
    if (block->field_count == SGM_MAX_FIELDS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "block: no room for field \"%s\" beside %d others", name,
                        SGM_MAX_FIELDS);
    SGM_TRY(check_field(block, name, values, "block"));
    sgm_field *field = &block->fields[block->field_count++];
    memcpy(field->name, checked, sizeof checked);
    field->values = values;
    return SGM_OK;
}

/* Takes the tensor, also on failure. */
sgm_status sgm_block_add(sgm_block *block, const char *name, sgm_tensor *values)
{
    sgm_status status = add(block, name, values);
    if (status != SGM_OK)
        sgm_tensor_free(values);
    return status;
}

sgm_field *sgm__block_find(sgm_block *block, const char *name)
{
    for (int32_t i = 0; i < block->field_count; i++)
        if (strcmp(block->fields[i].name, name) == 0)
            return &block->fields[i];
    return NULL;
}

/* The message of a failure lists the names that there are, since a misspelt name is the usual reason. */
sgm_tensor *sgm_block_field(const sgm_block *block, const char *name)
{
    if (!block || !name) {
        sgm__missing_part("sgm_block_field: a block and a name");
        return NULL;
    }
    for (int32_t i = 0; i < block->field_count; i++)
        if (strcmp(block->fields[i].name, name) == 0)
            return block->fields[i].values;
    sgm__text known = {0};
    for (int32_t i = 0; i < block->field_count; i++)
        sgm__text_append(&known, "%s\"%s\"", i > 0 ? ", " : "", block->fields[i].name);
    sgm_fail(SGM_ERROR_NOT_FOUND, "there is no field \"%s\": the block has %s", name,
             known.data ? known.data : "none");
    sgm__text_free(&known);
    return NULL;
}

/* The bytes that the values take, for the memory limits of datasets; all fields are float32. */
size_t sgm__block_bytes(const sgm_block *block)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < block->field_count; i++)
        bytes += (size_t)sgm_shape_elements(sgm_tensor_shape(block->fields[i].values)) * sizeof(float);
    return bytes;
}

sgm_status sgm__block_check(const sgm_block *block, const char *maker)
{
    if (block->count < 1 || block->field_count < 1)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s gave a block of %lld examples in %d fields; the end is a NULL block", maker,
                        (long long)block->count, (int)block->field_count);
    for (int32_t i = 0; i < block->field_count; i++)
        SGM_TRY(check_field(block, block->fields[i].name, block->fields[i].values, maker));
    return SGM_OK;
}

/* Views come from preprocessors that slice or permute; a copy made here replaces them for good. */
sgm_status sgm__field_values(sgm_field *field, float **values)
{
    if (!sgm_tensor_is_contiguous(field->values)) {
        sgm_tensor *copy = sgm_tensor_copy(field->values);
        if (!copy)
            return sgm_last_status();
        sgm_tensor_free(field->values);
        field->values = copy;
    }
    *values = sgm_tensor_data(field->values);
    return SGM_OK;
}

/* The shape of one example: without the first dimension. */
sgm_shape sgm__example_shape(const sgm_tensor *values)
{
    const sgm_shape *shape = sgm_tensor_shape(values);
    return sgm_shape_create(shape->rank - 1, shape->dims + 1);
}

/* The shape of `count` examples. An example has fewer than SGM_MAX_RANK dimensions (sgm__builder_add_field
 * checks it); the bound on i keeps the loop inside `dims` in any case. */
sgm_shape sgm__examples_shape(int64_t count, const sgm_shape *example)
{
    sgm_shape shape = {.rank = example->rank + 1, .dims = {count}};
    for (int32_t i = 0; i < example->rank && i + 1 < SGM_MAX_RANK; i++)
        shape.dims[i + 1] = example->dims[i];
    return shape;
}

/* Datasets choose the size of their blocks by it. One example is always allowed, or nothing could be read. */
int64_t sgm__examples_in(size_t budget, size_t bytes, int64_t maximum)
{
    size_t fit = bytes > 0 ? budget / bytes : budget;
    if (fit > (size_t)maximum)
        return maximum;
    return fit < 1 ? 1 : (int64_t)fit;
}

/* The inside-out form of the shuffle of Fisher and Yates (1938): element i is swapped with a random one of
 * those up to itself, so that the array need not be filled beforehand. */
void sgm__permutation(sgm__random *random, int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t other = (int64_t)sgm__random_below(random, (uint64_t)i + 1);
        order[i] = order[other];
        order[other] = i;
    }
}

/* --- blocks that grow --- */

sgm_status sgm__builder_add_field(sgm__builder *builder, const char *name, const sgm_shape *example)
{
    int64_t elements = sgm_shape_elements(example);
    if (elements < 1 || example->rank >= SGM_MAX_RANK) {
        char text[128];
        return sgm_fail(
            SGM_ERROR_SHAPE,
            "field \"%s\": an example has shape %s; it needs an element and at most %d dimensions", name,
            sgm_shape_text(example, text, sizeof text), SGM_MAX_RANK - 1);
    }
    if (builder->field_count == SGM_MAX_FIELDS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "field \"%s\": a block has at most %d fields", name,
                        SGM_MAX_FIELDS);
    sgm__builder_field *field = &builder->fields[builder->field_count];
    *field = (sgm__builder_field){.example = *example, .elements = (size_t)elements};
    SGM_TRY(sgm__field_name(field->name, name, "block"));
    builder->field_count++;
    return SGM_OK;
}

/* Grows by half, so that appending n examples copies each of them a constant number of times on average.
 * Sizes are checked for overflow, since the number of examples may come from a file's header. If memory ends
 * in the middle, fields that have grown stay so; `capacity` is the smallest of all. */
sgm_status sgm__builder_reserve(sgm__builder *builder, int64_t examples)
{
    int64_t needed;
    if (__builtin_add_overflow(builder->count, examples, &needed))
        return sgm__fail_memory(SIZE_MAX);
    if (needed <= builder->capacity)
        return SGM_OK;
    int64_t grown = builder->capacity > INT64_MAX / 2 ? needed : builder->capacity + builder->capacity / 2;
    if (grown < needed)
        grown = needed;
    for (int32_t i = 0; i < builder->field_count; i++) {
        sgm__builder_field *field = &builder->fields[i];
        size_t bytes;
        if (sgm__mul_overflows((size_t)grown, field->elements, &bytes) ||
            sgm__mul_overflows(bytes, sizeof(float), &bytes))
            return sgm__fail_memory(SIZE_MAX);
        float *values = sgm__realloc(field->values, bytes);
        if (!values)
            return SGM_ERROR_MEMORY;
        field->values = values;
    }
    builder->capacity = grown;
    return SGM_OK;
}

float *sgm__builder_end(const sgm__builder *builder, int32_t field)
{
    const sgm__builder_field *target = &builder->fields[field];
    return target->values + (size_t)builder->count * target->elements;
}

/* Copies each field in one piece, as examples of a contiguous field lie one behind the other. Fields are
 * matched by position. */
sgm_status sgm__builder_append(sgm__builder *builder, const sgm_block *block, int64_t begin, int64_t end)
{
    for (int32_t i = builder->field_count; i < block->field_count; i++) {
        sgm_shape example = sgm__example_shape(block->fields[i].values);
        SGM_TRY(sgm__builder_add_field(builder, block->fields[i].name, &example));
    }
    SGM_TRY(sgm__builder_reserve(builder, end - begin));
    for (int32_t i = 0; i < builder->field_count; i++) {
        size_t elements = builder->fields[i].elements;
        const float *values = sgm_tensor_const_data(block->fields[i].values);
        memcpy(sgm__builder_end(builder, i), values + (size_t)begin * elements,
               (size_t)(end - begin) * elements * sizeof(float));
    }
    builder->count += end - begin;
    return SGM_OK;
}

/* Turns a field's array into a tensor of the block, after giving back the memory behind the last example. */
static sgm_status take_field(sgm__builder *builder, int32_t index, sgm_block *block)
{
    sgm__builder_field *field = &builder->fields[index];
    sgm_shape shape = sgm__examples_shape(builder->count, &field->example);
    float *values = sgm__realloc(field->values, (size_t)builder->count * field->elements * sizeof(float));
    if (!values)
        return SGM_ERROR_MEMORY;
    field->values = NULL; /* sgm_tensor_wrap takes the array, also on failure */
    sgm_tensor *tensor = sgm_tensor_wrap(SGM_FLOAT32, &shape, values, sgm__free, values);
    return tensor ? sgm_block_add(block, field->name, tensor) : sgm_last_status();
}

/* Turns the builder into a block. The builder is empty afterwards, also on failure; a builder without
 * examples is an error. */
sgm_block *sgm__builder_take(sgm__builder *builder)
{
    sgm_block *block = sgm_block_create(builder->count);
    for (int32_t i = 0; block && i < builder->field_count; i++) {
        if (take_field(builder, i, block) != SGM_OK) {
            sgm_block_free(block);
            block = NULL;
        }
    }
    sgm__builder_free(builder);
    return block;
}

sgm_status sgm__builder_finish(sgm__builder *builder, sgm_status status, sgm_block **block)
{
    if (status != SGM_OK || builder->count == 0) {
        sgm__builder_free(builder);
        return status;
    }
    *block = sgm__builder_take(builder);
    return *block ? SGM_OK : sgm_last_status();
}

void sgm__builder_free(sgm__builder *builder)
{
    for (int32_t i = 0; i < builder->field_count; i++)
        sgm__free(builder->fields[i].values);
    *builder = (sgm__builder){0};
}
