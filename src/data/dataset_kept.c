/* Keeps extracted blocks for other runs: a cache file (dataset_cache.c) that gets a name when it is complete.
 *
 * The file's name is the key of all that its blocks depend on (cache/key.h). It is written under another name
 * and then renamed, so that other processes see a whole file or none; two that write the same one at once
 * write the same bytes. Behind the blocks stand a table, with their layout, places and checksums, and a
 * footer, by which the file is recognised. Nothing is synchronised: after a crash of the machine checksums
 * tell. Whatever goes wrong with a file, the blocks are extracted as without one. All functions run on the
 * dataset's busy thread. */
#include "base/cache/cache_folder.h"
#include "data/dataset_internal.h"
#include "data/read/extractor.h"

#include <errno.h>
#include <sigma/base.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x31746164616d6773u /* "sgmadat1" as bytes, with the version of the format */
#define DEFAULT_LIMIT ((uint64_t)4 << 30)
#define MAXIMUM_FILES 1024
#define MAXIMUM_BLOCKS (1 << 24)

typedef struct stored_field {
    char name[SGM__FIELD_NAME];
    int64_t rank, dims[SGM_MAX_RANK]; /* of one example */
} stored_field;

typedef struct stored_block {
    int64_t examples, where;
    uint64_t check;
} stored_block;

/* Followed by `block_count` blocks. */
typedef struct stored_table {
    uint64_t key[2];
    int64_t field_count, block_count;
    stored_field fields[SGM_MAX_FIELDS];
} stored_table;

/* The end of the file. */
typedef struct footer {
    uint64_t magic, table_bytes, check; /* of the table */
} footer;

/* --- folders --- */

char *sgm__kept_folder(const char *given)
{
    if (given != NULL)
        return sgm__strdup(given);
    char *cache = sgm_folder_path(SGM_FOLDER_CACHE);
    char *folder = cache != NULL ? sgm__format("%s/data", cache) : NULL;
    sgm_string_free(cache);
    return folder;
}

sgm_status sgm_kept_data_measure(const char *given, int64_t *files, int64_t *bytes)
{
    if (files == NULL || bytes == NULL)
        return sgm__missing_part("sgm_kept_data_measure: places for the numbers");
    char *folder = sgm__kept_folder(given);
    if (folder == NULL)
        return sgm__last_failure();
    sgm__cache_size size = sgm__cache_folder_measure(folder);
    *files = size.files;
    *bytes = (int64_t)size.bytes;
    sgm__free(folder);
    return SGM_OK;
}

sgm_status sgm_kept_data_clear(const char *given)
{
    char *folder = sgm__kept_folder(given);
    if (folder == NULL)
        return sgm__last_failure();
    sgm__cache_folder_limit(folder, 0, 0);
    sgm__free(folder);
    return SGM_OK;
}

sgm_status sgm__kept_create(sgm_dataset *dataset, const sgm_dataset_options *options)
{
    if (options->keep_limit < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "dataset \"%s\": keep_limit %lld; expected bytes", dataset->name,
                        (long long)options->keep_limit);
    dataset->kept = sgm__calloc(1, sizeof *dataset->kept);
    if (!dataset->kept)
        return SGM_ERROR_MEMORY;
    dataset->kept->limit = options->keep_limit > 0 ? (uint64_t)options->keep_limit : DEFAULT_LIMIT;
    dataset->kept->folder = sgm__kept_folder(options->cache);
    return dataset->kept->folder != NULL ? SGM_OK : sgm__last_failure();
}

void sgm__kept_free(sgm_dataset *dataset)
{
    sgm__kept *kept = dataset->kept;
    if (!kept)
        return;
    if (kept->part)
        unlink(kept->part);
    sgm__free(kept->part);
    sgm__free(kept->path);
    sgm__free(kept->folder);
    sgm__free(kept);
    dataset->kept = NULL;
}

/* Goes on without keeping anything; blocks that were written stay readable while the dataset lives. */
static void give_up(sgm_dataset *dataset, const char *why)
{
    sgm__log(SGM_LOG_INFO, "data", "dataset \"%s\": its blocks are not kept for other runs: %s",
             dataset->name, why);
    sgm__kept_free(dataset);
    sgm__free(dataset->cache);
    dataset->cache = NULL;
}

/* --- reading --- */

/* Bytes of one example; false if they cannot be. */
static bool example_bytes(const stored_table *table, size_t *bytes)
{
    *bytes = 0;
    for (int64_t i = 0; i < table->field_count; i++) {
        const stored_field *field = &table->fields[i];
        size_t own = sizeof(float);
        if (field->rank < 0 || field->rank >= SGM_MAX_RANK ||
            memchr(field->name, 0, sizeof field->name) == NULL)
            return false;
        for (int64_t d = 0; d < field->rank; d++)
            if (field->dims[d] < 0 || __builtin_mul_overflow(own, field->dims[d], &own))
                return false;
        if (__builtin_add_overflow(*bytes, own, bytes))
            return false;
    }
    return *bytes > 0;
}

/* Whether all blocks lie before the table. */
static bool blocks_are_within(const stored_table *table, const stored_block *blocks, int64_t end)
{
    size_t one;
    if (!example_bytes(table, &one))
        return false;
    for (int64_t i = 0; i < table->block_count; i++) {
        int64_t bytes, last;
        if (blocks[i].examples < 1 || blocks[i].where < 0 ||
            __builtin_mul_overflow(blocks[i].examples, one, &bytes) ||
            __builtin_add_overflow(blocks[i].where, bytes, &last) || last > end)
            return false;
    }
    return true;
}

/* The table of a file, which the caller frees; NULL if the file is not whole, or of another key. */
static stored_table *read_table(int file, const sgm__key *key)
{
    struct stat information;
    footer foot = {0};
    int64_t size = fstat(file, &information) == 0 ? information.st_size : 0, end;
    if (size < (int64_t)sizeof foot ||
        sgm__cache_read_bytes(file, &foot, sizeof foot, size - (int64_t)sizeof foot) != SGM_OK ||
        foot.magic != MAGIC || foot.table_bytes < sizeof(stored_table) ||
        foot.table_bytes > (uint64_t)size - sizeof foot)
        return NULL;
    end = size - (int64_t)sizeof foot - (int64_t)foot.table_bytes;
    stored_table *table = sgm__alloc(foot.table_bytes);
    const stored_block *blocks = table != NULL ? (const stored_block *)(table + 1) : NULL;
    if (table != NULL && sgm__cache_read_bytes(file, table, foot.table_bytes, end) == SGM_OK &&
        sgm__hash(table, foot.table_bytes, MAGIC) == foot.check &&
        memcmp(table->key, key->halves, sizeof table->key) == 0 && table->field_count >= 1 &&
        table->field_count <= SGM_MAX_FIELDS && table->block_count >= 1 &&
        table->block_count <= MAXIMUM_BLOCKS &&
        foot.table_bytes == sizeof *table + (size_t)table->block_count * sizeof *blocks &&
        blocks_are_within(table, blocks, end))
        return table;
    sgm__free(table);
    return NULL;
}

static void take_layout(sgm__layout *layout, const stored_table *table)
{
    layout->field_count = (int32_t)table->field_count;
    example_bytes(table, &layout->example_bytes);
    for (int32_t i = 0; i < layout->field_count; i++) {
        memcpy(layout->names[i], table->fields[i].name, sizeof layout->names[i]);
        layout->examples[i] = sgm_shape_create((int32_t)table->fields[i].rank, table->fields[i].dims);
    }
}

static sgm_status take_blocks(sgm_dataset *dataset, const stored_table *table)
{
    const stored_block *blocks = (const stored_block *)(table + 1);
    size_t count = (size_t)table->block_count;
    pthread_mutex_lock(&dataset->mutex);
    sgm_status status = sgm__reserve(&dataset->slots, &dataset->slot_capacity, count, sizeof(sgm__slot));
    for (size_t i = 0; status == SGM_OK && i < count; i++)
        dataset->slots[i] =
            (sgm__slot){.examples = blocks[i].examples, .disk = blocks[i].where, .check = blocks[i].check};
    if (status == SGM_OK) {
        dataset->slot_count = count;
        dataset->ended = true;
    }
    pthread_mutex_unlock(&dataset->mutex);
    return status;
}

/* True if an earlier run has left the blocks. A file that is damaged is deleted. */
static bool take_file(sgm_dataset *dataset)
{
    sgm__kept *kept = dataset->kept;
    int file = -1;
    if (!sgm__file_exists(kept->path) || sgm__file_open(kept->path, &file) != SGM_OK)
        return false;
    stored_table *table = read_table(file, &kept->key);
    bool good = table != NULL && take_blocks(dataset, table) == SGM_OK;
    if (good) {
        take_layout(&dataset->layout, table);
        dataset->disk = file;
        kept->is_complete = true;
        sgm__cache_file_used(kept->path);
    } else {
        close(file);
        unlink(kept->path);
    }
    sgm__free(table);
    sgm__log(SGM_LOG_INFO, "data",
             good ? "dataset \"%s\" is read from '%s'" : "dataset \"%s\": '%s' is damaged, and is made again",
             dataset->name, kept->path);
    return good;
}

void sgm__kept_forget(sgm_dataset *dataset)
{
    sgm__log(SGM_LOG_WARNING, "data", "dataset \"%s\": %s; it is extracted again", dataset->name,
             sgm_last_error());
    sgm_clear_error();
    unlink(dataset->kept->path);
    pthread_mutex_lock(&dataset->mutex);
    for (size_t i = 0; i < dataset->slot_count; i++)
        dataset->slots[i].disk = -1;
    pthread_mutex_unlock(&dataset->mutex);
    sgm__kept_free(dataset);
}

/* --- writing --- */

/* All that blocks depend on: the parts, how many examples make a block, and the code that makes them. */
static void describe(const sgm_dataset *dataset, sgm__key *key)
{
    *key = (sgm__key){0};
    sgm__key_add_text(key, sgm_version());
    sgm__key_add_bytes(key, &dataset->block_size, sizeof dataset->block_size);
    sgm__extractor_describe(dataset->extractor, key);
}

void sgm__kept_begin(sgm_dataset *dataset)
{
    sgm__kept *kept = dataset->kept;
    if (!kept || kept->has_begun)
        return;
    kept->has_begun = true;
    describe(dataset, &kept->key);
    if (kept->key.refused[0] != '\0') {
        char why[160];
        snprintf(why, sizeof why, "it is not known what '%s' depends on", kept->key.refused);
        give_up(dataset, why);
        return;
    }
    kept->path =
        sgm__format("%s/blocks-%016llx%016llx", kept->folder, (unsigned long long)kept->key.halves[0],
                    (unsigned long long)kept->key.halves[1]);
    if (kept->path != NULL && take_file(dataset))
        return;
    sgm_clear_error();
    if (!sgm__key_is_settled(&kept->key)) {
        give_up(dataset, "a file was changed a moment ago");
        return;
    }
    dataset->cache = sgm__strdup(kept->folder);
    dataset->disk = dataset->cache != NULL ? sgm__cache_part_create(kept->folder, &kept->part) : -1;
    if (dataset->disk < 0)
        give_up(dataset, sgm__errno_text(errno));
}

/* Whether all blocks are in the file. */
static bool is_whole(sgm_dataset *dataset)
{
    pthread_mutex_lock(&dataset->mutex);
    bool whole = dataset->ended && dataset->slot_count > 0 && dataset->slot_count <= MAXIMUM_BLOCKS;
    for (size_t i = 0; whole && i < dataset->slot_count; i++)
        whole = dataset->slots[i].disk >= 0;
    pthread_mutex_unlock(&dataset->mutex);
    return whole;
}

/* The table of the dataset's blocks; the caller frees it. */
static stored_table *make_table(const sgm_dataset *dataset, size_t bytes)
{
    const sgm__layout *layout = &dataset->layout;
    stored_table *table = sgm__calloc(1, bytes);
    if (table == NULL)
        return NULL;
    memcpy(table->key, dataset->kept->key.halves, sizeof table->key);
    table->field_count = layout->field_count;
    table->block_count = (int64_t)dataset->slot_count;
    for (int32_t i = 0; i < layout->field_count; i++) {
        stored_field *field = &table->fields[i];
        snprintf(field->name, sizeof field->name, "%s", layout->names[i]);
        field->rank = layout->examples[i].rank;
        memcpy(field->dims, layout->examples[i].dims, (size_t)field->rank * sizeof *field->dims);
    }
    stored_block *blocks = (stored_block *)(table + 1);
    for (size_t i = 0; i < dataset->slot_count; i++)
        blocks[i] =
            (stored_block){dataset->slots[i].examples, dataset->slots[i].disk, dataset->slots[i].check};
    return table;
}

/* Writes the end of the file. False with errno set on failure. */
static bool write_end(const sgm_dataset *dataset)
{
    size_t bytes = sizeof(stored_table) + dataset->slot_count * sizeof(stored_block);
    stored_table *table = make_table(dataset, bytes);
    footer foot = {MAGIC, bytes, table != NULL ? sgm__hash(table, bytes, MAGIC) : 0};
    bool good = table != NULL && sgm__cache_write_bytes(dataset->disk, table, bytes, dataset->disk_end) &&
                sgm__cache_write_bytes(dataset->disk, &foot, sizeof foot, dataset->disk_end + (int64_t)bytes);
    sgm__free(table);
    return good;
}

/* Gives the file its name, unless a source has changed since it was begun. */
static void complete(sgm_dataset *dataset)
{
    sgm__kept *kept = dataset->kept;
    sgm__key now;
    describe(dataset, &now);
    if (now.files != kept->key.files) {
        give_up(dataset, "a file has changed while it was read");
        return;
    }
    if (!write_end(dataset) || rename(kept->part, kept->path) != 0) {
        give_up(dataset, sgm__errno_text(errno));
        return;
    }
    sgm__free(kept->part);
    kept->part = NULL;
    kept->is_complete = true;
    sgm__cache_folder_limit(kept->folder, kept->limit, MAXIMUM_FILES);
}

void sgm__kept_advance(sgm_dataset *dataset)
{
    sgm__kept *kept = dataset->kept;
    if (!kept || !kept->part)
        return;
    if (!dataset->cache)
        give_up(dataset, "the disk is full");
    else if ((uint64_t)dataset->disk_end > kept->limit)
        give_up(dataset, "it is larger than the limit of the folder");
    else if (is_whole(dataset))
        complete(dataset);
}
