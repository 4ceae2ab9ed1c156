/* Extractors as a chain: the part that is asked asks its parent, and so on down to the one that reads. */
#include "data/read/extractor.h"

/* Read from a reader, or learnt from, at once. */
#define CHUNK_BYTES ((size_t)4 << 20)
#define FIRST_CHUNK 64
#define MAXIMUM_EXAMPLES 65536

typedef enum { NOT_FITTED, FITTED, FIT_FAILED } fit_state;

struct sgm_extractor {
    sgm__extractor_parts parts;
    sgm_extractor_type type; /* a copy: parts.type may be gone */
    fit_state fit;
};

static sgm_status check_parts(const sgm__extractor_parts *parts)
{
    if (!parts->type || !parts->type->extract)
        return sgm_fail(SGM_ERROR_ARGUMENT, "an extractor needs a type with an `extract` function");
    if (!parts->parent && !parts->rewind)
        return sgm__missing_part("an extractor's parent, or a function that rewinds it,");
    if (parts->type->fit && !parts->parent)
        return sgm_fail(SGM_ERROR_ARGUMENT, "extractor \"%s\" learns, so it needs a parent to learn from",
                        parts->type->name);
    return SGM_OK;
}

sgm_extractor *sgm__extractor_create(const sgm__extractor_parts *parts)
{
    sgm_extractor *made = check_parts(parts) == SGM_OK ? sgm__calloc(1, sizeof *made) : NULL;
    if (!made) {
        sgm_extractor_free(parts->parent);
        sgm_extractor_free(parts->second);
        if (parts->type && parts->type->free)
            parts->type->free(parts->self);
        return NULL;
    }
    made->parts = *parts;
    made->type = *parts->type;
    if (!made->type.name)
        made->type.name = "extractor";
    return made;
}

sgm_extractor *sgm_extractor_create(const sgm_extractor_type *type, void *self, sgm_extractor *parent,
                                    sgm_status (*rewind)(void *self))
{
    return sgm__extractor_create(
        &(sgm__extractor_parts){.type = type, .self = self, .parent = parent, .rewind = rewind});
}

void sgm_extractor_free(sgm_extractor *extractor)
{
    while (extractor) {
        sgm_extractor *parent = extractor->parts.parent;
        sgm_extractor_free(extractor->parts.second);
        if (extractor->type.free)
            extractor->type.free(extractor->parts.self);
        sgm__free(extractor);
        extractor = parent;
    }
}

sgm_status sgm_extractor_rewind(sgm_extractor *extractor)
{
    if (!extractor)
        return sgm__missing_part("sgm_extractor_rewind: an extractor");
    if (extractor->parts.parent)
        SGM_TRY(sgm_extractor_rewind(extractor->parts.parent));
    if (extractor->parts.second)
        SGM_TRY(sgm_extractor_rewind(extractor->parts.second));
    return extractor->parts.rewind ? extractor->parts.rewind(extractor->parts.self) : SGM_OK;
}

static sgm_status extract(sgm_extractor *extractor, int64_t count, sgm_block **block)
{
    sgm_status status = extractor->type.extract(extractor->parts.self, extractor->parts.parent, count, block);
    if (status == SGM_OK && *block)
        status = sgm__block_check(*block, extractor->type.name);
    if (status != SGM_OK) {
        sgm_block_free(*block);
        *block = NULL;
    }
    return status;
}

sgm_status sgm_extractor_extract(sgm_extractor *extractor, int64_t count, sgm_block **block)
{
    *block = NULL;
    if (!extractor)
        return sgm__missing_part("sgm_extractor_extract: an extractor");
    if (count < 1)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: a block needs at least one example, got %lld",
                        extractor->type.name, (long long)count);
    SGM_TRY(sgm__extractor_fit(extractor, count));
    return extract(extractor, count, block);
}

/* --- learning --- */

static sgm_status fit_all(sgm_extractor *extractor, int64_t count)
{
    int64_t size = count > 0 ? count : FIRST_CHUNK;
    for (;;) {
        sgm_block *block;
        SGM_TRY(sgm_extractor_extract(extractor->parts.parent, size, &block));
        if (!block)
            return sgm_extractor_rewind(extractor->parts.parent);
        if (count <= 0)
            size = sgm__examples_in(CHUNK_BYTES, sgm__block_bytes(block) / (size_t)block->count,
                                    MAXIMUM_EXAMPLES);
        sgm_status status = extractor->type.fit(extractor->parts.self, block);
        sgm_block_free(block);
        SGM_TRY(status);
    }
}

sgm_status sgm__extractor_fit(sgm_extractor *extractor, int64_t count)
{
    if (extractor->parts.parent)
        SGM_TRY(sgm__extractor_fit(extractor->parts.parent, count));
    if (extractor->parts.second)
        SGM_TRY(sgm__extractor_fit(extractor->parts.second, count));
    if (!extractor->type.fit || extractor->fit == FITTED)
        return SGM_OK;
    if (extractor->fit == FIT_FAILED) /* what it has learnt so far is of a part of the set */
        return sgm_fail(SGM_ERROR_STATE, "%s: learning from the data has failed before",
                        extractor->type.name);
    sgm_status status = fit_all(extractor, count);
    extractor->fit = status == SGM_OK ? FITTED : FIT_FAILED;
    return status == SGM_OK ? SGM_OK : sgm__fail_within("%s", extractor->type.name);
}

/* --- passing over --- */

sgm_status sgm__extractor_skip(sgm_extractor *extractor, int64_t count, int64_t *skipped)
{
    const sgm__extractor_parts *parts = &extractor->parts;
    *skipped = 0;
    if (parts->skip)
        return parts->skip(parts->self, count, skipped);
    if (parts->follows_parent) {
        SGM_TRY(sgm__extractor_skip(parts->parent, count, skipped));
        int64_t others = *skipped;
        if (parts->second)
            SGM_TRY(sgm__extractor_skip(parts->second, count, &others));
        if (others != *skipped)
            return sgm_fail(SGM_ERROR_FORMAT, "%s: one part has %lld examples where the other one has %lld",
                            extractor->type.name, (long long)*skipped, (long long)others);
        if (parts->passed_over && *skipped > 0)
            parts->passed_over(parts->self);
        return SGM_OK;
    }
    sgm_block *block;
    SGM_TRY(sgm_extractor_extract(extractor, count, &block));
    if (block)
        *skipped = block->count;
    sgm_block_free(block);
    return SGM_OK;
}

/* --- state --- */

static sgm_status get_state(sgm_extractor *extractor, double *numbers, size_t room, size_t *used)
{
    if (extractor->parts.parent)
        SGM_TRY(get_state(extractor->parts.parent, numbers, room, used));
    if (extractor->parts.second)
        SGM_TRY(get_state(extractor->parts.second, numbers, room, used));
    if (!extractor->type.get_state || !extractor->type.set_state)
        return SGM_OK;
    size_t own = 0;
    SGM_TRY(extractor->type.get_state(extractor->parts.self, NULL, &own));
    if (numbers) {
        if (*used >= room || own > room - *used - 1)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there is room for %zu numbers of state, which is too little",
                            room);
        numbers[*used] = (double)own;
        SGM_TRY(extractor->type.get_state(extractor->parts.self, numbers + *used + 1, &own));
    }
    *used += own + 1;
    return SGM_OK;
}

sgm_status sgm__extractor_get_state(sgm_extractor *extractor, double *numbers, size_t *count)
{
    size_t used = 0;
    SGM_TRY(get_state(extractor, numbers, *count, &used));
    *count = used;
    return SGM_OK;
}

/* Walks the chain as get_state does; `apply` false only checks that the numbers have its form. */
static sgm_status set_state(sgm_extractor *extractor, const double *numbers, size_t count, size_t *used,
                            bool apply)
{
    if (extractor->parts.parent)
        SGM_TRY(set_state(extractor->parts.parent, numbers, count, used, apply));
    if (extractor->parts.second)
        SGM_TRY(set_state(extractor->parts.second, numbers, count, used, apply));
    if (!extractor->type.get_state || !extractor->type.set_state)
        return SGM_OK;
    double own = *used < count ? numbers[*used] : -1;
    if (!(own >= 0 && own <= (double)(count - *used - 1)) || own != (double)(size_t)own)
        return sgm_fail(SGM_ERROR_FORMAT, "state of %s: %zu numbers do not fit these preprocessors",
                        extractor->type.name, count);
    if (apply) {
        SGM_TRY(extractor->type.set_state(extractor->parts.self, numbers + *used + 1, (size_t)own));
        extractor->fit = FITTED;
    }
    *used += (size_t)own + 1;
    return SGM_OK;
}

sgm_status sgm__extractor_set_state(sgm_extractor *extractor, const double *numbers, size_t count)
{
    size_t used = 0;
    SGM_TRY(set_state(extractor, numbers, count, &used, false));
    if (used != count)
        return sgm_fail(SGM_ERROR_FORMAT, "state of preprocessors: expected %zu numbers, got %zu", used,
                        count);
    used = 0;
    return set_state(extractor, numbers, count, &used, true);
}

/* --- readers in small pieces --- */

static size_t example_bytes(const sgm_examples *examples)
{
    if (!examples->values) /* a guess: a pointer and a short text for each cell */
        return (size_t)examples->columns * (sizeof(char *) + 8);
    sgm_shape example = sgm__example_shape(examples->values);
    return (size_t)sgm_shape_elements(&example) * sgm_dtype_size(sgm_tensor_dtype(examples->values));
}

static sgm_status check_examples(const sgm__chunks *chunks, const sgm_examples *examples)
{
    bool good = examples->count > 0;
    if (examples->values) {
        const sgm_shape *shape = sgm_tensor_shape(examples->values);
        good = good && shape->rank >= 1 && shape->dims[0] == examples->count;
    } else {
        good = good && examples->columns > 0 && examples->cells;
    }
    return good ? SGM_OK
                : sgm_fail(SGM_ERROR_FORMAT, "%s: the reader says %lld examples, but gave other ones",
                           sgm_reader_name(chunks->reader), (long long)examples->count);
}

sgm_status sgm__chunks_read(sgm__chunks *chunks, int64_t count, sgm_examples *examples)
{
    if (chunks->size == 0) {
        SGM_TRY(sgm_reader_prepare(chunks->reader));
        chunks->size = FIRST_CHUNK;
    }
    *examples = (sgm_examples){0};
    SGM_TRY(sgm_reader_read(chunks->reader, count < chunks->size ? count : chunks->size, examples));
    if (examples->count == 0)
        return SGM_OK;
    SGM_TRY(check_examples(chunks, examples));
    chunks->size = sgm__examples_in(CHUNK_BYTES, example_bytes(examples), MAXIMUM_EXAMPLES);
    return SGM_OK;
}

sgm_status sgm__chunks_rewind(sgm__chunks *chunks)
{
    return chunks->size > 0 ? sgm_reader_rewind(chunks->reader) : SGM_OK; /* 0: nothing was read yet */
}

sgm_status sgm__chunks_skip(sgm__chunks *chunks, int64_t count, int64_t *skipped)
{
    *skipped = 0;
    while (*skipped < count) {
        sgm_examples examples;
        SGM_TRY(sgm__chunks_read(chunks, count - *skipped, &examples));
        if (examples.count == 0)
            break;
        *skipped += examples.count;
    }
    return SGM_OK;
}
