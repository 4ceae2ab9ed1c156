/* Compressed files and archives, recognised by their content and unpacked as a stream (libarchive).
 *
 * sgm_compressed_source wraps another source; opening it unpacks while reading, so nothing is written to
 * disk and no memory grows with the file. Known are gzip, bzip2, xz and zstd, and tar and zip archives, also
 * compressed ones; anything else passes through as it is. Only formats and filters that are decoded in this
 * process are switched on: libarchive would otherwise start programs such as lrzip on a file that looks like
 * theirs. gzip is inflated by source_gzip.c, below libarchive. */
#include "data/read/source.h"
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>

/* Bytes that are read from the source below at a time; a tar archive consists of records of TAR_RECORD
 * bytes. */
#define BLOCK_SIZE 65536
#define TAR_RECORD 512
#define MAXIMUM_LISTED 8 /* names of members in a message */

/* A stream over one file of an archive. It owns `inner`, the stream of packed bytes. */
typedef struct archive_stream {
    sgm_stream base;
    sgm_stream *inner;
    struct archive *archive;
    sgm_status inner_status; /* of the last read of `inner`: its own message is better than libarchive's */
    bool ended;
    size_t held; /* bytes in `block` that were read to look at them */
    char block[BLOCK_SIZE];
} archive_stream;

/* libarchive asks for the next packed bytes: first for those that were read to look at them, then for new
 * ones. 0 means the end. */
static la_ssize_t archive_pull(struct archive *archive, void *user, const void **block)
{
    archive_stream *self = user;
    size_t got = self->held;
    self->held = 0;
    self->inner_status =
        got > 0 ? SGM_OK : sgm_stream_read(self->inner, self->block, sizeof self->block, &got);
    if (self->inner_status != SGM_OK) {
        archive_set_error(archive, EIO, "the file below cannot be read");
        return ARCHIVE_FATAL;
    }
    *block = self->block;
    return (la_ssize_t)got;
}

/* The error of the stream below if it failed, else libarchive's with the place in the archive. */
static sgm_status archive_fail(archive_stream *self)
{
    if (self->inner_status != SGM_OK)
        return self->inner_status;
    const char *text = archive_error_string(self->archive);
    return sgm_fail(
        SGM_ERROR_FORMAT,
        "%s: cannot be unpacked at byte %llu of the archive: %s; it is damaged or incomplete: get it "
        "again",
        self->base.name, (unsigned long long)self->inner->position, text != NULL ? text : "unknown format");
}

/* The data of the member. After its end libarchive must not be asked again. */
static sgm_status archive_stream_read(sgm_stream *stream, void *buffer, size_t size, size_t *got)
{
    archive_stream *self = (archive_stream *)stream;
    if (self->ended)
        return SGM_OK;
    la_ssize_t count = archive_read_data(self->archive, buffer, size);
    if (count < 0)
        return archive_fail(self);
    self->ended = count == 0;
    *got = (size_t)count;
    return SGM_OK;
}

static void archive_stream_close(sgm_stream *stream)
{
    archive_stream *self = (archive_stream *)stream;
    archive_read_free(self->archive);
    sgm_stream_close(self->inner);
}

static const sgm__stream_type archive_stream_type = {archive_stream_read, NULL, archive_stream_close};

/* The path of an entry without "./" at its beginning, as archives made in a folder have it. */
static const char *entry_name(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    if (name == NULL) /* not expressible in the locale */
        name = archive_entry_pathname_utf8(entry);
    if (name == NULL)
        return "";
    return strncmp(name, "./", 2) == 0 ? name + 2 : name;
}

/* Goes to the member of that name, or to the first file if `member` is NULL. `seen` collects the names that
 * were passed, for the message. A compressed file that is no archive has one nameless entry; an empty file
 * has none and is an empty stream. */
static sgm_status find_member(archive_stream *self, const char *member, sgm__text *seen)
{
    for (int passed = 0;;) {
        struct archive_entry *entry;
        int result = archive_read_next_header(self->archive, &entry);
        if (result == ARCHIVE_EOF)
            break;
        if (result != ARCHIVE_OK && result != ARCHIVE_WARN)
            return archive_fail(self);
        bool is_plain = archive_format(self->archive) == ARCHIVE_FORMAT_RAW;
        if (is_plain && member != NULL)
            return sgm_fail(
                SGM_ERROR_NOT_FOUND,
                "%s: the member '%s' was asked for, but this is a single compressed file, not an archive; "
                "leave the member out",
                self->base.name, member);
        if (archive_entry_filetype(entry) != AE_IFREG)
            continue;
        const char *name = entry_name(entry);
        if (member == NULL || strcmp(name, member) == 0)
            return SGM_OK;
        if (passed++ < MAXIMUM_LISTED)
            sgm__text_append(seen, "%s%s", passed > 1 ? ", " : "", name);
        else if (passed == MAXIMUM_LISTED + 1)
            sgm__text_append(seen, ", ...");
    }
    if (member == NULL && archive_format(self->archive) == ARCHIVE_FORMAT_EMPTY) {
        self->ended = true;
        return SGM_OK;
    }
    return sgm_fail(SGM_ERROR_NOT_FOUND, "%s: the archive has no file%s%s; it has: %s", self->base.name,
                    member != NULL ? " " : "", member != NULL ? member : "",
                    seen->data != NULL ? seen->data : "no files");
}

/* The names of the archive's files, owned by the caller, also after a failure. Reads the whole archive. */
static sgm_status list_members(archive_stream *self, char ***names, size_t *count)
{
    struct archive_entry *entry;
    size_t capacity = 0;
    int result;
    while ((result = archive_read_next_header(self->archive, &entry)) == ARCHIVE_OK ||
           result == ARCHIVE_WARN) {
        if (archive_entry_filetype(entry) != AE_IFREG)
            continue;
        SGM_TRY(sgm__reserve(names, &capacity, *count + 1, sizeof **names));
        (*names)[*count] = sgm__strdup(entry_name(entry));
        if ((*names)[*count] == NULL)
            return SGM_ERROR_MEMORY;
        (*count)++;
    }
    return result == ARCHIVE_EOF ? SGM_OK : archive_fail(self);
}

static sgm_status fail_several(const archive_stream *self, char *const *names, size_t count)
{
    sgm__text seen = {0};
    for (size_t i = 0; i < count && i < MAXIMUM_LISTED; i++)
        sgm__text_append(&seen, "%s%s", i > 0 ? ", " : "", names[i]);
    sgm_status status =
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "%s: expected one file in the archive, it has %zu: %s%s; name the one that is meant, as in "
                 "%s:NAME (in C an argument of the source or reader)",
                 self->base.name, count, seen.data != NULL ? seen.data : "no files",
                 count > MAXIMUM_LISTED ? ", ..." : "", self->base.name);
    sgm__text_free(&seen);
    return status;
}

/* Reads the first record into `block`, from where archive_pull hands it on. A tar archive ends in records of
 * zeros, so libarchive would take data that begin with zeros for an empty archive. */
static sgm_status begins_with_zeros(archive_stream *self, bool *zeros)
{
    static const char none[TAR_RECORD];
    size_t got = 1;
    while (got > 0 && self->held < TAR_RECORD) {
        SGM_TRY(sgm_stream_read(self->inner, self->block + self->held, TAR_RECORD - self->held, &got));
        self->held += got;
    }
    *zeros = self->held == TAR_RECORD && memcmp(self->block, none, TAR_RECORD) == 0;
    return SGM_OK;
}

/* Sets libarchive up. Data that begin with zeros are not looked at as tar. */
static sgm_status archive_begin(archive_stream *self)
{
    bool zeros;
    SGM_TRY(begins_with_zeros(self, &zeros));
    self->archive = archive_read_new();
    if (self->archive == NULL)
        return sgm__fail_memory(BLOCK_SIZE);
    archive_read_support_filter_bzip2(self->archive);
    archive_read_support_filter_compress(self->archive);
    archive_read_support_filter_xz(self->archive);
    archive_read_support_filter_zstd(self->archive);
    if (!zeros)
        archive_read_support_format_tar(self->archive);
    archive_read_support_format_zip_streamable(self->archive);
    archive_read_support_format_raw(self->archive);
    archive_read_support_format_empty(self->archive);
    if (archive_read_open(self->archive, self, NULL, archive_pull, NULL) != ARCHIVE_OK)
        return archive_fail(self);
    return SGM_OK;
}

/* A stream before the first entry of what `inner` holds. Takes `inner`, also on failure. */
static archive_stream *open_archive(sgm_stream *inner)
{
    inner = sgm__gzip_open(inner);
    if (inner == NULL)
        return NULL;
    archive_stream *self = sgm__stream_create(sizeof *self, &archive_stream_type, NULL, inner->name);
    if (self == NULL) {
        sgm_stream_close(inner);
        return NULL;
    }
    self->inner = inner;
    if (archive_begin(self) == SGM_OK)
        return self;
    sgm_stream_close(&self->base);
    return NULL;
}

/* A member of NULL means the first file. libarchive converts names to the characters of the thread's locale,
 * which have to be UTF-8. */
sgm_stream *sgm__archive_open(sgm_stream *inner, const char *member)
{
    archive_stream *self = open_archive(inner);
    if (self == NULL)
        return NULL;
    sgm__text seen = {0};
    locale_t own = sgm__use_c_locale();
    sgm_status status = find_member(self, member, &seen);
    uselocale(own);
    sgm__text_free(&seen);
    if (status == SGM_OK)
        return &self->base;
    sgm_stream_close(&self->base);
    return NULL;
}

/* The names of an opened archive, in the locale that they need. */
static sgm_status list(archive_stream *self, char ***names, size_t *count)
{
    locale_t own = sgm__use_c_locale();
    sgm_status status = list_members(self, names, count);
    uselocale(own);
    return status;
}

void sgm__archive_free_members(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sgm__free(names[i]);
    sgm__free(names);
}

sgm_status sgm__archive_members(sgm_stream *inner, char ***names, size_t *count)
{
    archive_stream *self = open_archive(inner);
    *names = NULL;
    *count = 0;
    if (self == NULL)
        return sgm__last_failure();
    sgm_status status = list(self, names, count);
    sgm_stream_close(&self->base);
    if (status == SGM_OK)
        return SGM_OK;
    sgm__archive_free_members(*names, *count);
    return status;
}

char *sgm__archive_only_member(sgm_stream *inner)
{
    char **names = NULL, *only = NULL;
    size_t count = 0;
    archive_stream *self = open_archive(inner);
    if (self == NULL)
        return NULL;
    sgm_status status = list(self, &names, &count);
    if (status == SGM_OK && count != 1)
        status = fail_several(self, names, count);
    sgm_stream_close(&self->base);
    if (status == SGM_OK) {
        only = names[0];
        names[0] = NULL;
    }
    sgm__archive_free_members(names, count);
    return only;
}

/* --- the source --- */

/* The source below, which is owned, and the member to unpack; NULL: the first file. */
typedef struct compressed_source {
    sgm_source base;
    sgm_source *packed;
    char *member;
} compressed_source;

static bool compressed_exists(sgm_source *source)
{
    return sgm_source_exists(((compressed_source *)source)->packed);
}

static sgm_status compressed_prepare(sgm_source *source)
{
    return sgm_source_prepare(((compressed_source *)source)->packed);
}

/* Every stream unpacks from the beginning of the archive, since packed data cannot be entered in the middle.
 */
static sgm_stream *compressed_open(sgm_source *source)
{
    const compressed_source *self = (const compressed_source *)source;
    sgm_stream *inner = sgm_source_open(self->packed);
    return inner != NULL ? sgm__archive_open(inner, self->member) : NULL;
}

static void compressed_free(sgm_source *source)
{
    compressed_source *self = (compressed_source *)source;
    sgm_source_free(self->packed);
    sgm__free(self->member);
}

static void compressed_describe(const sgm_source *source, sgm__key *key)
{
    const compressed_source *self = (const compressed_source *)source;
    sgm__source_describe(self->packed, key);
    sgm__key_add_text(key, self->member);
}

/* Takes `source`, also on failure. */
sgm_source *sgm_compressed_source(sgm_source *source, const char *member)
{
    static const sgm__source_type type = {compressed_exists, compressed_prepare, compressed_open,
                                          compressed_free, compressed_describe};
    if (source == NULL) {
        sgm__fail_missing("source");
        return NULL;
    }
    compressed_source *self = sgm__source_create(sizeof *self, &type, source->name);
    if (self == NULL) {
        sgm_source_free(source);
        return NULL;
    }
    self->packed = source;
    self->member = sgm__strdup(member);
    if (member != NULL && self->member == NULL) {
        sgm_source_free(&self->base);
        return NULL;
    }
    return &self->base;
}

/* For callers that decide by name whether to unpack; the content decides how. */
bool sgm__is_compressed_name(const char *name)
{
    static const char *const endings[] = {".gz", ".bz2", ".xz", ".zst", ".Z", ".zip", ".tgz", ".tar"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(name + length - ending, endings[i]) == 0)
            return true;
    }
    return false;
}

sgm_source *sgm__unpacked_source(sgm_source *source, const char *name)
{
    return source != NULL && sgm__is_compressed_name(name) ? sgm_compressed_source(source, NULL) : source;
}
