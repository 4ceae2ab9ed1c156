/* The structs of sources and of their streams. Internal to the data pipeline.
 *
 * A source says where bytes come from (a file, memory, a URL, an archive in another source) and can be
 * opened several times; a stream is one pass over its bytes. Both are structs that begin with the base below
 * and whose type is a table of functions. source.c has what they share and the plain sources, source_url.c,
 * source_archive.c, source_gzip.c and source_datasets.c the others; readers (reader.h) open them. A stream is
 * used by one thread at a time. */
#ifndef SGM_DATA_READ_SOURCE_H
#define SGM_DATA_READ_SOURCE_H

#include "base/base.h"
#include "data/cache/key.h"
#include <dirent.h>
#include <sigma/data.h>
#include <stdatomic.h>

/* The functions of a kind of source. `prepare` does what takes long, such as a download; sgm_source_open
 * calls it first. */
typedef struct sgm__source_type {
    bool (*exists)(sgm_source *source);
    sgm_status (*prepare)(sgm_source *source); /* NULL: nothing to do */
    sgm_stream *(*open)(sgm_source *source);   /* NULL and the error set on failure */
    void (*free)(sgm_source *source);          /* frees what the concrete source holds; NULL: nothing */
    /* Adds what its bytes depend on; called after `prepare`. NULL: nobody knows. */
    void (*describe)(const sgm_source *source, sgm__key *key);
} sgm__source_type;

/* First member of every concrete source. A stream holds a reference on its source, so that a source may be
 * freed while streams of it are open. */
struct sgm_source {
    const sgm__source_type *type;
    char *name;
    atomic_int references;
};

/* The functions of a kind of stream. */
typedef struct sgm__stream_type {
    /* Up to `size` bytes (size > 0), fewer at will, 0 only at the end. */
    sgm_status (*read)(sgm_stream *stream, void *buffer, size_t size, size_t *got);
    /* Skips up to `bytes` without reading them; what *skipped leaves is read. NULL: everything is read. */
    sgm_status (*skip)(sgm_stream *stream, uint64_t bytes, uint64_t *skipped);
    void (*close)(sgm_stream *stream); /* frees what the concrete stream holds; NULL: nothing */
} sgm__stream_type;

/* First member of every concrete stream. */
struct sgm_stream {
    const sgm__stream_type *type;
    sgm_source *source;
    char *name;        /* of what is read, for messages */
    uint64_t position; /* bytes read and skipped */
};

/* For a part that came as NULL: its error is passed on, since it failed earlier; `what` names the part. */
sgm_status sgm__fail_missing(const char *what);
/* Allocates a zeroed concrete source of `size` bytes with its name (copied); NULL on failure. */
void *sgm__source_create(size_t size, const sgm__source_type *type, const char *name);
/* The same for a stream; retains `source`, which may be NULL for a stream on top of another one. */
void *sgm__stream_create(size_t size, const sgm__stream_type *type, sgm_source *source, const char *name);
/* Adds what the bytes of a source depend on. */
void sgm__source_describe(sgm_source *source, sgm__key *key);
/* Exactly `size` bytes; `what` ("the header") is named when the stream ends before. */
sgm_status sgm__stream_read_exactly(sgm_stream *stream, void *buffer, size_t size, const char *what);

/* Unpacks `inner`, which belongs to the new stream from then on, also when the call fails. */
sgm_stream *sgm__archive_open(sgm_stream *inner, const char *member);
/* Takes the stream. The name of the archive's only file; several are an error that names them. */
char *sgm__archive_only_member(sgm_stream *inner);
/* Takes the stream. The names of the archive's files, for sgm__archive_free_members. */
sgm_status sgm__archive_members(sgm_stream *inner, char ***names, size_t *count);
void sgm__archive_free_members(char **names, size_t count);
/* Inflates gzip from `inner` (taken over likewise), checking the checksums that libarchive does not look at.
 */
sgm_stream *sgm__gzip_open(sgm_stream *inner);

bool sgm__is_readable_file(const char *path); /* and no folder */
/* The entries of a folder that are not hidden, in the order of their names' bytes, which is the same in all
 * locales. Returns their number, or -1 with errno set; the caller frees them with sgm__folder_list_free. */
int sgm__folder_list(const char *path, struct dirent ***entries);
void sgm__folder_list_free(struct dirent **entries, int count);
/* Whether the name ends like a compressed file or archive. */
bool sgm__is_compressed_name(const char *name);
/* Takes the source and unpacks it if `name`, that of its file, says that it is packed. NULL is passed on. */
sgm_source *sgm__unpacked_source(sgm_source *source, const char *name);

/* --- paths (source_url.c) --- */
/* Whether a path is an address, http:// or https://. */
bool sgm__is_url(const char *path);
/* The file at a path. One at an address is fetched once into the cache, and with #sha256=DIGITS behind the
 * address it is checked. The source's name is the path. */
sgm_source *sgm__path_source(const char *path);
/* The same, unpacked if its name says that it is packed. */
sgm_source *sgm__unpacked_path_source(const char *path);

/* Begins and ends a task that monitors show as the extraction of the data set `name`: the bytes that this
 * thread reads from files in between are its progress.
 */
void sgm__extraction_begin(const char *name);
void sgm__extraction_end(sgm_status status);

/* Makes libcurl ready, once in a process; to be called before each use of it. Any thread. */
void sgm__curl_begin(void);

#endif
