/* Sources and streams as such, and the plain ones: files, memory, the first that exists of several.
 *
 * Public functions check and count here and leave the rest to the source's type (source.h). References keep
 * a source alive while streams of it are open. Functions that take a source own it from then on, also when
 * they fail; NULL is passed on with the error of the call that made it, so that constructors can be nested.
 */
#include "data/read/source.h"
#include <errno.h>
#include <fcntl.h>
#include <sigma/base.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void *sgm__source_create(size_t size, const sgm__source_type *type, const char *name)
{
    sgm_source *source = sgm__calloc(1, size);
    if (source == NULL)
        return NULL;
    source->name = sgm__strdup(name);
    if (source->name == NULL) {
        sgm__free(source);
        return NULL;
    }
    source->type = type;
    atomic_init(&source->references, 1);
    return source;
}

/* Adds a reference; sgm_source_free drops it. */
static sgm_source *retain(sgm_source *source)
{
    if (source != NULL)
        atomic_fetch_add(&source->references, 1);
    return source;
}

void sgm_source_free(sgm_source *source)
{
    if (source == NULL || atomic_fetch_sub(&source->references, 1) > 1)
        return;
    if (source->type->free != NULL)
        source->type->free(source);
    sgm__free(source->name);
    sgm__free(source);
}

sgm_status sgm__fail_missing(const char *what)
{
    if (sgm_last_status() != SGM_OK)
        return sgm_last_status();
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "a %s was expected, NULL came; check the call that should have made it", what);
}

const char *sgm_source_name(const sgm_source *source)
{
    return source != NULL ? source->name : "";
}

bool sgm_source_exists(sgm_source *source)
{
    return source != NULL && source->type->exists(source);
}

/* Makes the bytes available; doing it again costs little. */
sgm_status sgm_source_prepare(sgm_source *source)
{
    if (source == NULL)
        return sgm__fail_missing("source");
    return source->type->prepare != NULL ? source->type->prepare(source) : SGM_OK;
}

sgm_stream *sgm_source_open(sgm_source *source)
{
    if (sgm_source_prepare(source) != SGM_OK)
        return NULL;
    return source->type->open(source);
}

/* What cannot be made available is reported when it is read. */
void sgm__source_describe(sgm_source *source, sgm__key *key)
{
    if (source->type->describe == NULL || sgm_source_prepare(source) != SGM_OK) {
        sgm__key_refuse(key, source->name);
        sgm_clear_error();
        return;
    }
    source->type->describe(source, key);
}

/* --- streams --- */

void *sgm__stream_create(size_t size, const sgm__stream_type *type, sgm_source *source, const char *name)
{
    sgm_stream *stream = sgm__calloc(1, size);
    if (stream == NULL)
        return NULL;
    stream->name = sgm__strdup(name);
    if (stream->name == NULL) {
        sgm__free(stream);
        return NULL;
    }
    stream->type = type;
    stream->source = retain(source);
    return stream;
}

/* Reads until `size` bytes came or the stream has ended; *got is then smaller. Streams themselves may give
 * fewer at a time. */
sgm_status sgm_stream_read(sgm_stream *stream, void *buffer, size_t size, size_t *got)
{
    *got = 0;
    if (stream == NULL)
        return sgm__fail_missing("stream");
    while (*got < size) {
        size_t part = 0;
        SGM_TRY(stream->type->read(stream, (char *)buffer + *got, size - *got, &part));
        if (part == 0)
            break;
        *got += part;
        stream->position += part;
    }
    return SGM_OK;
}

sgm_status sgm__stream_read_exactly(sgm_stream *stream, void *buffer, size_t size, const char *what)
{
    size_t got;
    SGM_TRY(sgm_stream_read(stream, buffer, size, &got));
    if (got == size)
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: %s needs %zu bytes at byte %llu, but the file ends after %zu of them; it is incomplete "
        "or of another format: get it again",
        stream->name, what, size, (unsigned long long)(stream->position - got), got);
}

/* Seeks if the stream can, and reads what seeking has left. The end of the stream within the bytes is an
 * error. */
sgm_status sgm_stream_skip(sgm_stream *stream, uint64_t bytes)
{
    if (stream == NULL)
        return sgm__fail_missing("stream");
    uint64_t start = stream->position, left = bytes;
    if (stream->type->skip != NULL && bytes > 0) {
        uint64_t skipped = 0;
        SGM_TRY(stream->type->skip(stream, bytes, &skipped));
        stream->position += skipped;
        left -= skipped;
    }
    char scrap[16384];
    while (left > 0) {
        size_t got;
        SGM_TRY(sgm_stream_read(stream, scrap, left < sizeof scrap ? (size_t)left : sizeof scrap, &got));
        if (got == 0)
            return sgm_fail(
                SGM_ERROR_FORMAT,
                "%s: %llu bytes are to be skipped at byte %llu, but the file ends at byte %llu; it is "
                "incomplete, or the number is too large",
                stream->name, (unsigned long long)bytes, (unsigned long long)start,
                (unsigned long long)stream->position);
        left -= got;
    }
    return SGM_OK;
}

void sgm_stream_close(sgm_stream *stream)
{
    if (stream == NULL)
        return;
    if (stream->type->close != NULL)
        stream->type->close(stream);
    sgm_source_free(stream->source);
    sgm__free(stream->name);
    sgm__free(stream);
}

/* --- extractions --- */

/* The extraction that this thread is doing, for monitors; task 0: none. A stream need not know what it is
 * read for. */
static _Thread_local struct {
    sgm_task task;
    uint64_t bytes;
} extraction;

void sgm__extraction_begin(const char *name)
{
    extraction.bytes = 0;
    extraction.task = sgm_task_begin(SGM_TASK_EXTRACT, name, "bytes");
}

void sgm__extraction_end(sgm_status status)
{
    sgm_task_end(extraction.task, status);
    extraction.task = 0;
}

/* --- files --- */

/* `seekable` is false for pipes and devices, which can only be read. */
typedef struct file_stream {
    sgm_stream base;
    int descriptor;
    bool seekable;
} file_stream;

/* One read of the system, repeated if a signal interrupts it. Counts towards the thread's extraction. */
static sgm_status file_read(sgm_stream *stream, void *buffer, size_t size, size_t *got)
{
    const file_stream *self = (const file_stream *)stream;
    const size_t maximum = (size_t)1 << 30; /* more at once is cut by the kernel anyway */
    ssize_t count;
    do
        count = read(self->descriptor, buffer, size < maximum ? size : maximum);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return sgm_fail(SGM_ERROR_FILE, "%s: cannot be read at byte %llu: %s", stream->name,
                        (unsigned long long)stream->position, sgm__errno_text(errno));
    *got = (size_t)count;
    if (extraction.task != 0)
        sgm_task_set_progress(extraction.task, extraction.bytes += (uint64_t)count, 0);
    return SGM_OK;
}

/* Seeks, but never past the end of the file: the bytes beyond are left to be read, so that their absence is
 * noticed. */
static sgm_status file_skip(sgm_stream *stream, uint64_t bytes, uint64_t *skipped)
{
    const file_stream *self = (const file_stream *)stream;
    struct stat info;
    if (!self->seekable || fstat(self->descriptor, &info) != 0)
        return SGM_OK;
    uint64_t size = info.st_size > 0 ? (uint64_t)info.st_size : 0;
    if (size <= stream->position)
        return SGM_OK;
    uint64_t step = size - stream->position < bytes ? size - stream->position : bytes;
    if (lseek(self->descriptor, (off_t)step, SEEK_CUR) >= 0)
        *skipped = step;
    return SGM_OK;
}

static void file_close(sgm_stream *stream)
{
    close(((file_stream *)stream)->descriptor);
}

static const sgm__stream_type file_stream_type = {file_read, file_skip, file_close};

bool sgm__is_readable_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode) && access(path, R_OK) == 0;
}

static bool file_exists(sgm_source *source)
{
    return sgm__is_readable_file(source->name);
}

/* Passes on the error of sgm__file_open, and for a file that is missing adds how relative paths are meant.
 * Always NULL. */
static sgm_stream *fail_open(const char *name)
{
    char message[512];
    if (access(name, F_OK) == 0)
        return NULL;
    snprintf(message, sizeof message, "%s", sgm_last_error());
    sgm_fail(SGM_ERROR_NOT_FOUND, "%s; check the path%s", message,
             name[0] != '/' ? " (relative ones start at the working directory)" : "");
    return NULL;
}

/* Only regular files are seekable. */
static sgm_stream *file_open(sgm_source *source)
{
    struct stat info;
    int descriptor;
    if (sgm__file_open(source->name, &descriptor) != SGM_OK)
        return fail_open(source->name);
    file_stream *stream = sgm__stream_create(sizeof *stream, &file_stream_type, source, source->name);
    if (stream == NULL) {
        close(descriptor);
        return NULL;
    }
    stream->descriptor = descriptor;
    stream->seekable = fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
    return &stream->base;
}

static void file_describe(const sgm_source *source, sgm__key *key)
{
    sgm__key_add_file(key, source->name);
}

/* Does not look at the file, which may come into being before it is opened. */
sgm_source *sgm_file_source(const char *path)
{
    static const sgm__source_type type = {file_exists, NULL, file_open, NULL, file_describe};
    if (path == NULL || *path == '\0') {
        sgm_fail(SGM_ERROR_ARGUMENT, "a file source needs a path, an empty one came; name the file");
        return NULL;
    }
    return sgm__source_create(sizeof(sgm_source), &type, path);
}

/* --- folders --- */

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int sgm__folder_list(const char *path, struct dirent ***entries)
{
    return scandir(path, entries, is_visible, compare_entries);
}

void sgm__folder_list_free(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        free(entries[i]); /* of the C library, as scandir made them */
    free(entries);
}

/* --- memory --- */

/* A copy of the caller's bytes. */
typedef struct memory_source {
    sgm_source base;
    char *bytes;
    size_t length;
} memory_source;

/* The stream's position, which sgm_stream_read counts, is the only state of a stream of memory. */
static sgm_status memory_read(sgm_stream *stream, void *buffer, size_t size, size_t *got)
{
    const memory_source *memory = (const memory_source *)stream->source;
    size_t left = memory->length - (size_t)stream->position;
    *got = left < size ? left : size;
    if (*got > 0)
        memcpy(buffer, memory->bytes + stream->position, *got);
    return SGM_OK;
}

static sgm_status memory_skip(sgm_stream *stream, uint64_t bytes, uint64_t *skipped)
{
    const memory_source *memory = (const memory_source *)stream->source;
    uint64_t left = memory->length - stream->position;
    *skipped = left < bytes ? left : bytes;
    return SGM_OK;
}

static bool memory_exists(sgm_source *source)
{
    (void)source;
    return true;
}

static sgm_stream *memory_open(sgm_source *source)
{
    static const sgm__stream_type type = {memory_read, memory_skip, NULL};
    return sgm__stream_create(sizeof(sgm_stream), &type, source, source->name);
}

static void memory_free(sgm_source *source)
{
    sgm__free(((memory_source *)source)->bytes);
}

static void memory_describe(const sgm_source *source, sgm__key *key)
{
    const memory_source *self = (const memory_source *)source;
    sgm__key_add_bytes(key, self->bytes, self->length);
}

sgm_source *sgm_memory_source(const char *name, const void *bytes, size_t length)
{
    static const sgm__source_type type = {memory_exists, NULL, memory_open, memory_free, memory_describe};
    if (bytes == NULL && length > 0) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a memory source of %zu bytes was asked for, NULL came for them",
                 length);
        return NULL;
    }
    memory_source *memory = sgm__source_create(sizeof *memory, &type, name != NULL ? name : "memory");
    if (memory == NULL)
        return NULL;
    memory->bytes = sgm__alloc(length);
    if (memory->bytes == NULL) {
        sgm_source_free(&memory->base);
        return NULL;
    }
    if (length > 0)
        memcpy(memory->bytes, bytes, length);
    memory->length = length;
    return &memory->base;
}

/* --- the first that exists --- */

/* Several sources, of which the first that exists is chosen when it is prepared, and kept from then on. */
typedef struct first_source {
    sgm_source base;
    sgm_source **sources;
    size_t count;
    sgm_source *chosen; /* one of `sources`, once prepared */
} first_source;

/* True if any of the sources exists; it need not be the same one that prepare chooses later. */
static bool first_exists(sgm_source *source)
{
    const first_source *self = (const first_source *)source;
    for (size_t i = 0; i < self->count; i++)
        if (sgm_source_exists(self->sources[i]))
            return true;
    return false;
}

/* Chooses once: a source that appears later does not replace the chosen one. */
static sgm_status first_prepare(sgm_source *source)
{
    first_source *self = (first_source *)source;
    for (size_t i = 0; i < self->count && self->chosen == NULL; i++)
        if (sgm_source_exists(self->sources[i]))
            self->chosen = self->sources[i];
    if (self->chosen != NULL)
        return sgm_source_prepare(self->chosen);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "none of these exists: %s; put one of them in place", source->name);
}

static sgm_stream *first_open(sgm_source *source)
{
    return sgm_source_open(((first_source *)source)->chosen);
}

static void first_free(sgm_source *source)
{
    first_source *self = (first_source *)source;
    for (size_t i = 0; i < self->count; i++)
        sgm_source_free(self->sources[i]);
    sgm__free(self->sources);
}

static void first_describe(const sgm_source *source, sgm__key *key)
{
    sgm__source_describe(((const first_source *)source)->chosen, key);
}

static const sgm__source_type first_type = {first_exists, first_prepare, first_open, first_free,
                                            first_describe};

/* The name of the source is "A or B or C". Does not free the sources on failure. */
static first_source *first_create(sgm_source *const *sources, size_t count)
{
    sgm__text name = {0};
    for (size_t i = 0; i < count; i++) {
        if (sources[i] == NULL) {
            sgm__fail_missing("source");
            sgm__text_free(&name);
            return NULL;
        }
        sgm__text_append(&name, "%s%s", i > 0 ? " or " : "", sources[i]->name);
    }
    char *text = sgm__text_take(&name);
    if (text == NULL)
        return NULL;
    first_source *self = sgm__source_create(sizeof *self, &first_type, text);
    sgm__free(text);
    if (self == NULL)
        return NULL;
    self->sources = sgm__calloc(count, sizeof *self->sources);
    if (self->sources == NULL) {
        sgm_source_free(&self->base);
        return NULL;
    }
    memcpy(self->sources, sources, count * sizeof *sources);
    self->count = count;
    return self;
}

/* Takes all sources, also on failure. */
sgm_source *sgm_first_source_with(sgm_source *const *sources, size_t count)
{
    if (sources == NULL || count == 0) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "the first of several sources was asked for, none came; give at least one");
        return NULL;
    }
    first_source *self = first_create(sources, count);
    if (self == NULL) {
        for (size_t i = 0; i < count; i++)
            sgm_source_free(sources[i]);
        return NULL;
    }
    return &self->base;
}
