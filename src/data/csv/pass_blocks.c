/* The rows of a pass as examples: each piece becomes numbers on a thread of the pass, and blocks of any size
 * are put together out of them. See pass.h. */
#include "data/csv/pass.h"

#include "data/read/reader.h"

/* Row by row up to the first that fails. */
static void convert_singly(const sgm__pass_blocks *blocks, const sgm__csv_rows *rows, sgm__builder *builder)
{
    sgm__csv_rows row = *rows;
    for (int64_t i = 0; i < rows->count; i++) {
        row.count = 1;
        row.cells = rows->cells + i * rows->columns;
        row.lengths = rows->lengths + i * rows->columns;
        row.lines = rows->lines + i;
        if (blocks->convert(blocks->user, &row, builder) != SGM_OK)
            return;
    }
}

/* Where a row fails, those before it are kept, since they may be all that is asked for. The failure is the
 * one of all rows together, which go column by column. */
static sgm_status convert_rows(void *user, size_t slot, size_t worker, sgm__csv_rows *rows)
{
    const sgm__pass_blocks *blocks = user;
    sgm__builder *builder = &blocks->builders[slot];
    (void)worker;
    builder->count = 0;
    sgm_status status = rows->count > 0 ? blocks->convert(blocks->user, rows, builder) : SGM_OK;
    if (status == SGM_OK)
        return SGM_OK;
    char *message = sgm__strdup(sgm_last_error());
    convert_singly(blocks, rows, builder);
    status = message != NULL ? sgm_fail(status, "%s", message) : SGM_ERROR_MEMORY;
    sgm__free(message);
    return status;
}

static sgm_status begin(sgm__pass_blocks *blocks)
{
    if (blocks->builders == NULL)
        blocks->builders = sgm__calloc(SGM__PASS_SLOTS, sizeof *blocks->builders);
    if (blocks->builders == NULL)
        return SGM_ERROR_MEMORY;
    if (blocks->pass == NULL) {
        blocks->pass =
            sgm__pass_create(blocks->reader, blocks->threads, blocks->numbers_per_cell, convert_rows, blocks);
        blocks->slot = SGM__PASS_SLOTS;
    }
    return blocks->pass != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__pass_blocks_header(sgm__pass_blocks *blocks, sgm_examples *header)
{
    SGM_TRY(begin(blocks));
    return sgm_reader_read(blocks->reader, 1, header);
}

/* How many examples can be taken from the present slot; 0 only at the end. */
static sgm_status find_examples(sgm__pass_blocks *blocks, int64_t *count)
{
    for (;;) {
        *count = blocks->slot < SGM__PASS_SLOTS ? blocks->builders[blocks->slot].count - blocks->taken : 0;
        if (*count > 0)
            return SGM_OK;
        sgm_status status = sgm__pass_next(blocks->pass, &blocks->slot);
        if (blocks->slot < SGM__PASS_SLOTS)
            blocks->taken = blocks->has_failed ? blocks->builders[blocks->slot].count : 0;
        if (blocks->slot == SGM__PASS_SLOTS || blocks->has_failed)
            return status;
        blocks->has_failed = status != SGM_OK;
    }
}

static sgm_status copy_examples(sgm__pass_blocks *blocks, int64_t count, sgm__builder *builder)
{
    const sgm__builder *from = &blocks->builders[blocks->slot];
    SGM_TRY(sgm__builder_reserve(builder, count));
    for (int32_t i = 0; i < builder->field_count; i++) {
        size_t elements = builder->fields[i].elements;
        memcpy(sgm__builder_end(builder, i), from->fields[i].values + (size_t)blocks->taken * elements,
               (size_t)count * elements * sizeof(float));
    }
    builder->count += count;
    return SGM_OK;
}

sgm_status sgm__pass_blocks_take(sgm__pass_blocks *blocks, int64_t count, sgm__builder *builder)
{
    SGM_TRY(begin(blocks));
    while (builder->count < count) {
        int64_t there;
        SGM_TRY(find_examples(blocks, &there));
        if (there == 0)
            break;
        if (there > count - builder->count)
            there = count - builder->count;
        SGM_TRY(copy_examples(blocks, there, builder));
        blocks->taken += there;
    }
    return SGM_OK;
}

sgm_status sgm__pass_blocks_skip(sgm__pass_blocks *blocks, int64_t count, int64_t *skipped)
{
    *skipped = 0;
    SGM_TRY(begin(blocks));
    while (*skipped < count) {
        int64_t there;
        SGM_TRY(find_examples(blocks, &there));
        if (there == 0)
            break;
        if (there > count - *skipped)
            there = count - *skipped;
        *skipped += there;
        blocks->taken += there;
    }
    return SGM_OK;
}

/* A reader that was not read yet is at its start, and must not be opened only for this. */
sgm_status sgm__pass_blocks_rewind(sgm__pass_blocks *blocks)
{
    if (blocks->pass == NULL)
        return SGM_OK;
    sgm__pass_stop(blocks->pass);
    blocks->slot = SGM__PASS_SLOTS;
    blocks->taken = 0;
    blocks->has_failed = false;
    return sgm_reader_rewind(blocks->reader);
}

void sgm__pass_blocks_free(sgm__pass_blocks *blocks)
{
    sgm__pass_free(blocks->pass);
    for (size_t i = 0; blocks->builders != NULL && i < SGM__PASS_SLOTS; i++)
        sgm__builder_free(&blocks->builders[i]);
    sgm__free(blocks->builders);
    sgm_reader_free(blocks->reader);
}
