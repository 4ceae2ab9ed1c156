/* Keeps extracted blocks in a file, so that a dataset larger than its memory limit need not read its source
 * again.
 *
 * The file lies in the folder that the option `cache` names and is unlinked at once: without a name no other
 * process can meet it, it cannot be left over from an older run, and it goes with the process. One that is to
 * stay for other runs has a name, and is opened in dataset_kept.c. It has the fields of block after block as
 * raw float32 in the processor's byte order; sizes and shapes are those of the dataset's layout and slots, so
 * there are no headers. dataset_extract.c calls sgm__cache_write after an extraction and sgm__cache_read
 * before one, both on the busy thread only, so nothing here is locked. */
#include "data/dataset_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* -1 with errno set on failure. */
static int open_nameless(const char *folder)
{
    char *path = sgm__format("%s/blocks-XXXXXX", folder);
    if (!path)
        return -1;
    int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        unlink(path);
    sgm__free(path);
    return file;
}

bool sgm__cache_write_bytes(int file, const void *begin, size_t length, int64_t where)
{
    const char *bytes = begin;
    while (length > 0) {
        ssize_t done = pwrite(file, bytes, length, where);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        length -= (size_t)done;
        where += done;
    }
    return true;
}

sgm_status sgm__cache_read_bytes(int file, void *begin, size_t length, int64_t where)
{
    char *bytes = begin;
    while (length > 0) {
        ssize_t done = pread(file, bytes, length, where);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return sgm_fail(SGM_ERROR_FILE, "reading a block back from the cache: %s",
                            done < 0 ? sgm__errno_text(errno) : "the file is too short");
        bytes += done;
        length -= (size_t)done;
        where += done;
    }
    return SGM_OK;
}

/* Writes the fields one behind the other from disk_end on. disk_end itself moves only when all are written.
 */
static bool write_block(const sgm_dataset *dataset, const sgm_block *block, uint64_t *check)
{
    int64_t where = dataset->disk_end;
    *check = 0; /* only what other processes find may be damaged */
    for (int32_t i = 0; i < block->field_count; i++) {
        const sgm_tensor *values = block->fields[i].values;
        size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(values)) * sizeof(float);
        if (!sgm__cache_write_bytes(dataset->disk, sgm_tensor_const_data(values), bytes, where))
            return false;
        if (dataset->kept)
            *check = sgm__hash(sgm_tensor_const_data(values), bytes, *check);
        where += (int64_t)bytes;
    }
    return true;
}

/* A failure, mostly a full disk, ends writing for good: `cache` becomes NULL. Blocks that were written before
 * stay readable. */
void sgm__cache_write(sgm_dataset *dataset, const sgm_block *block, int64_t *where, uint64_t *check)
{
    *where = -1;
    if (dataset->disk < 0)
        dataset->disk = open_nameless(dataset->cache);
    if (dataset->disk < 0 || !write_block(dataset, block, check)) {
        sgm__log(SGM_LOG_WARNING, "data", "dataset \"%s\" goes on without its cache in %s: %s", dataset->name,
                 dataset->cache, sgm__errno_text(errno));
        sgm__free(dataset->cache);
        dataset->cache = NULL;
        return;
    }
    *where = dataset->disk_end;
    dataset->disk_end += (int64_t)sgm__block_bytes(block);
}

/* Reads field `index` at *where and moves *where behind it. `check` NULL: its hash is not asked for. */
static sgm_status read_field(const sgm_dataset *dataset, int32_t index, int64_t *where, uint64_t *check,
                             sgm_block *block)
{
    sgm_shape shape = sgm__examples_shape(block->count, &dataset->layout.examples[index]);
    sgm_tensor *values = sgm_tensor_create(SGM_FLOAT32, &shape);
    if (!values)
        return sgm_last_status();
    size_t bytes = (size_t)sgm_shape_elements(&shape) * sizeof(float);
    sgm_status status = sgm__cache_read_bytes(dataset->disk, sgm_tensor_data(values), bytes, *where);
    if (check)
        *check = sgm__hash(sgm_tensor_data(values), bytes, *check);
    *where += (int64_t)bytes;
    if (status == SGM_OK)
        return sgm_block_add(block, dataset->layout.names[index], values);
    sgm_tensor_free(values);
    return status;
}

sgm_status sgm__cache_read(const sgm_dataset *dataset, const sgm__slot *slot, sgm_block **block)
{
    *block = sgm_block_create(slot->examples);
    if (!*block)
        return sgm_last_status();
    int64_t where = slot->disk;
    uint64_t check = 0;
    sgm_status status = SGM_OK;
    for (int32_t i = 0; i < dataset->layout.field_count && status == SGM_OK; i++)
        status = read_field(dataset, i, &where, slot->check ? &check : NULL, *block);
    if (status == SGM_OK && check != slot->check)
        status = sgm_fail(SGM_ERROR_FORMAT, "reading a block back from the cache: its bytes have changed");
    if (status == SGM_OK)
        return SGM_OK;
    sgm_block_free(*block);
    *block = NULL;
    return status;
}
