/* Runs chains of extractors: extracting, learning, skipping and state, and reading in chunks.
 *
 * sgm_extractor_extract asks the last part of a chain, which calls this function again for its parent, and so
 * on down to the part that reads. The parts themselves are in ../csv/extractor_csv.c, extractor_array.c,
 * ../preprocess.c and ../preprocess_adaptive.c, or in a program. ../dataset_extract.c is the caller; it
 * decides the size of blocks. A block belongs to the part that works on it, which may change it in place;
 * after a failure nobody may use it, so it is freed here. */
#include "data/read/extractor.h"

/* Bytes that are read from a reader, or learnt from, at once. The first chunk has FIRST_CHUNK examples, since
 * the size of an example is not known before. */
#define CHUNK_BYTES ((size_t)4 << 20)
#define FIRST_CHUNK 64
#define MAXIMUM_EXAMPLES 65536

/* Whether an adaptive part has learnt. After a failure in the middle it knows the range of a part of the data
 * only, which must not be used silently. */
typedef enum { NOT_FITTED, FITTED, FIT_FAILED } fit_state;

struct sgm_extractor {
    sgm__extractor_parts parts;
    sgm_extractor_type type; /* a copy, since the caller's own may go; its name is never NULL */
    fit_state fit;
};

/* A part without a parent reads by itself and must be able to start again; a part that learns needs a parent
 * to learn from. */
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

/* A loop down the chain, which may be long; only second parents are freed by recursion. */
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

/* Parents first, so that a part that reads during its own rewind finds its parents at the start. */
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

/* Extracts a block and checks it: programs write extractors, too. The block of a failed call is freed. */
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

/* Lets one adaptive part learn from all blocks of its parent, then rewinds the parent. */
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

/* Innermost first: an outer part learns from what the inner ones have changed. */
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

/* --- what blocks depend on --- */

void sgm__extractor_describe(const sgm_extractor *extractor, sgm__key *key)
{
    const sgm__extractor_parts *parts = &extractor->parts;
    if (parts->parent)
        sgm__extractor_describe(parts->parent, key);
    if (parts->second)
        sgm__extractor_describe(parts->second, key);
    sgm__key_add_text(key, extractor->type.name);
    if (parts->describe)
        parts->describe(parts->self, key);
    else
        sgm__key_refuse(key, extractor->type.name);
}

void sgm__extractor_describe_nothing(const void *self, sgm__key *key)
{
    (void)self, (void)key;
}

/* --- passing over --- */

/* Skips in the cheapest way that the part has: by its own function; by its parents, for one that follows
 * them; else by extracting a block and freeing it. With two parents both must skip as many. */
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

/* Walks the chain, parents first. A part counts only if it can also set its state. The room is compared by
 * subtraction, which cannot overflow. */
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

/* Walks the chain in the order of get_state. With `apply` false it only checks the form, so that numbers of
 * other preprocessors are refused before any part has changed. A part whose state is set counts as having
 * learnt. */
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

/* Bytes of one example as the reader gives it. For text it is a guess: a pointer and a short text for each
 * cell. */
static size_t example_bytes(const sgm_examples *examples)
{
    if (!examples->values) /* a guess: a pointer and a short text for each cell */
        return (size_t)examples->columns * (sizeof(char *) + 8);
    sgm_shape example = sgm__example_shape(examples->values);
    return (size_t)sgm_shape_elements(&example) * sgm_dtype_size(sgm_tensor_dtype(examples->values));
}

/* Checks that the reader gave what it says, before memory of that size is read. */
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

/* The size of a chunk is computed anew from each chunk, so it follows rows that grow longer. */
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

/* A reader that was not read yet is at its start, and must not be opened only for this. */
sgm_status sgm__chunks_rewind(sgm__chunks *chunks)
{
    return chunks->size > 0 ? sgm_reader_rewind(chunks->reader) : SGM_OK;
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
