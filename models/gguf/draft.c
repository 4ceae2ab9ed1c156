/* Writing files of GGUF: metadata is put together in memory, tensors are written one after the other. */
#include "gguf/gguf.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION 3

/* --- metadata --- */

void sgm__gguf_draft_free(sgm__gguf_draft *draft)
{
    sgm__buffer_free(&draft->bytes);
    *draft = (sgm__gguf_draft){0};
}

static void add(sgm__gguf_draft *draft, const void *bytes, size_t size)
{
    if (draft->status == SGM_OK)
        draft->status = sgm__buffer_add(&draft->bytes, bytes, size);
}

void sgm__gguf_add_text(sgm__gguf_draft *draft, const char *text, size_t size)
{
    add(draft, &(uint64_t){size}, sizeof(uint64_t));
    add(draft, text, size);
}

void sgm__gguf_add_int32(sgm__gguf_draft *draft, int32_t number)
{
    add(draft, &number, sizeof number);
}

void sgm__gguf_add_float32(sgm__gguf_draft *draft, float number)
{
    add(draft, &number, sizeof number);
}

static void put_key(sgm__gguf_draft *draft, const char *key, sgm__gguf_kind kind)
{
    sgm__gguf_add_text(draft, key, strlen(key));
    add(draft, &(uint32_t){kind}, sizeof(uint32_t));
    draft->count++;
}

void sgm__gguf_put_integer(sgm__gguf_draft *draft, const char *key, int64_t number)
{
    put_key(draft, key, SGM__GGUF_UINT32);
    add(draft, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
}

void sgm__gguf_put_number(sgm__gguf_draft *draft, const char *key, double number)
{
    put_key(draft, key, SGM__GGUF_FLOAT32);
    sgm__gguf_add_float32(draft, (float)number);
}

void sgm__gguf_put_flag(sgm__gguf_draft *draft, const char *key, bool flag)
{
    put_key(draft, key, SGM__GGUF_BOOL);
    add(draft, &(uint8_t){flag}, 1);
}

void sgm__gguf_put_text(sgm__gguf_draft *draft, const char *key, const char *text, size_t size)
{
    put_key(draft, key, SGM__GGUF_TEXT);
    sgm__gguf_add_text(draft, text, size);
}

void sgm__gguf_put_array(sgm__gguf_draft *draft, const char *key, sgm__gguf_kind kind, uint64_t count)
{
    put_key(draft, key, SGM__GGUF_ARRAY);
    add(draft, &(uint32_t){kind}, sizeof(uint32_t));
    add(draft, &count, sizeof count);
}

void sgm__gguf_put_copy(sgm__gguf_draft *draft, const sgm__gguf *file, const sgm__gguf_value *value)
{
    add(draft, file->header.data + value->start, value->at + value->size - value->start);
    draft->count++;
}

/* --- the file --- */

static uint64_t size_of(const sgm__gguf_entry *entry)
{
    return (uint64_t)sgm_shape_elements(&entry->shape) / entry->type->block * entry->type->bytes;
}

static uint64_t padded(uint64_t size)
{
    return (size + SGM__GGUF_ALIGNMENT - 1) / SGM__GGUF_ALIGNMENT * SGM__GGUF_ALIGNMENT;
}

/* What stands before the tensors' numbers. */
static sgm_status put_header(sgm__gguf_draft *header, const sgm__gguf_draft *metadata,
                             const sgm__gguf_entry *entries, size_t count)
{
    uint64_t at = 0;
    add(header, "GGUF", 4);
    add(header, &(uint32_t){VERSION}, sizeof(uint32_t));
    add(header, &(uint64_t){count}, sizeof(uint64_t));
    add(header, &metadata->count, sizeof metadata->count);
    add(header, metadata->bytes.data, metadata->bytes.size);
    for (size_t i = 0; i < count; i++) {
        const sgm_shape *shape = &entries[i].shape;
        sgm__gguf_add_text(header, entries[i].name, strlen(entries[i].name));
        sgm__gguf_add_int32(header, shape->rank);
        for (int32_t k = shape->rank; k-- > 0;)
            add(header, &shape->dims[k], sizeof shape->dims[k]);
        add(header, &entries[i].type->number, sizeof entries[i].type->number);
        add(header, &at, sizeof at);
        at += padded(size_of(&entries[i]));
    }
    static const char zeros[SGM__GGUF_ALIGNMENT];
    add(header, zeros, count > 0 ? padded(header->bytes.size) - header->bytes.size : 0);
    return header->status;
}

static sgm_status fail_write(const char *path)
{
    return sgm_fail(SGM_ERROR_FILE, "cannot write '%s': %s", path, strerror(errno));
}

static sgm_status write_tensor(const char *path, FILE *file, const sgm__gguf_entry *entry,
                               const sgm_tensor *value)
{
    const uint64_t size = size_of(entry), room = padded(size);
    unsigned char *bytes = sgm__allocate_zero((size_t)room, 1);
    if (bytes == NULL)
        return SGM_ERROR_MEMORY;
    entry->type->write(sgm_tensor_const_data(value), bytes, (size_t)sgm_shape_elements(&entry->shape));
    const bool written = fwrite(bytes, 1, (size_t)room, file) == room;
    free(bytes);
    return written ? SGM_OK : fail_write(path);
}

static sgm_status write_tensors(const char *path, FILE *file, const sgm__gguf_entry *entries, size_t count,
                                sgm_tensor *(*value)(void *user, size_t index), void *user)
{
    for (size_t i = 0; i < count; i++) {
        sgm_tensor *numbers = value(user, i);
        sgm_status status =
            numbers != NULL ? write_tensor(path, file, &entries[i], numbers) : sgm_last_status();
        sgm_tensor_free(numbers);
        if (status != SGM_OK)
            return status;
    }
    return SGM_OK;
}

sgm_status sgm__gguf_write(const char *path, const sgm__gguf_draft *metadata, const sgm__gguf_entry *entries,
                           size_t count, sgm_tensor *(*value)(void *user, size_t index), void *user)
{
    sgm__gguf_draft header = {.status = metadata->status};
    char *partial = sgm__new_text("%s.tmp", path);
    sgm_status status = partial != NULL ? put_header(&header, metadata, entries, count) : SGM_ERROR_MEMORY;
    FILE *file = status == SGM_OK ? fopen(partial, "wb") : NULL;
    if (status == SGM_OK &&
        (file == NULL || fwrite(header.bytes.data, 1, header.bytes.size, file) != header.bytes.size))
        status = fail_write(path);
    if (status == SGM_OK)
        status = write_tensors(path, file, entries, count, value, user);
    if (status == SGM_OK && (fflush(file) != 0 || fsync(fileno(file)) != 0))
        status = fail_write(path);
    if (file != NULL && fclose(file) != 0 && status == SGM_OK)
        status = fail_write(path);
    if (status == SGM_OK && rename(partial, path) != 0)
        status = fail_write(path);
    if (status != SGM_OK && file != NULL)
        unlink(partial);
    sgm__gguf_draft_free(&header);
    free(partial);
    return status;
}
