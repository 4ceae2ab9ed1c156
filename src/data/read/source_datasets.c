/* Files of known datasets: where they may already be, and from where they are fetched.
 *
 * sgm_known_source(FILE, URL, SHA256) looks for FILE or FILE.gz in the data folder (SIGMA_DATA_DIR) and two
 * levels below it, in the cache, in ./data and in the folder that was chosen at installation; only if it is
 * nowhere, it is downloaded from URL into the cache (source_url.c). Packed files are unpacked while they are
 * read. Ready-made datasets (ready_made.c) are built on it. The search is done once, when the source is
 * first used. */
#include "data/read/source.h"
#include <errno.h>
#include <sigma/base.h>
#include <stdlib.h>

#define SEARCH_DEPTH 2 /* folders below the data folder */

/* `found` is the source that the calls are passed on to; it is owned. */
typedef struct known_source {
    sgm_source base; /* its name is the file's */
    char *url, *sha256;
    sgm_source *found; /* NULL until it was looked for */
} known_source;

/* FOLDER/FILE or FOLDER/FILE.gz into *path, which stays NULL when there is neither. */
static sgm_status look_in(const char *folder, const char *file, char **path)
{
    static const char *const endings[] = {"", ".gz"};
    for (size_t i = 0; i < 2; i++) {
        char *candidate = sgm__format("%s/%s%s", folder, file, endings[i]);
        if (candidate == NULL)
            return SGM_ERROR_MEMORY;
        if (sgm__is_readable_file(candidate)) {
            *path = candidate;
            return SGM_OK;
        }
        sgm__free(candidate);
    }
    return SGM_OK;
}

/* The folder itself first, then its folders in the order of their names' bytes, `depth` levels deep. A folder
 * that cannot be listed is passed over. */
static sgm_status look_below(const char *folder, const char *file, int depth, char **path)
{
    SGM_TRY(look_in(folder, file, path));
    struct dirent **entries;
    int count = *path == NULL && depth > 0 ? sgm__folder_list(folder, &entries) : -1;
    if (count < 0)
        return SGM_OK;
    sgm_status status = SGM_OK;
    for (int i = 0; i < count && status == SGM_OK && *path == NULL; i++) {
        char *below = sgm__format("%s/%s", folder, entries[i]->d_name);
        if (below == NULL)
            status = SGM_ERROR_MEMORY;
        else if (sgm__is_folder(below))
            status = look_below(below, file, depth - 1, path);
        sgm__free(below);
    }
    sgm__folder_list_free(entries, count);
    return status;
}

/* Looks in all places in turn until *path is found, which the caller owns. `places` collects the names of
 * the places for the message. */
static sgm_status look_around(const char *file, char **path, sgm__text *places)
{
    char *own = sgm_folder_path(SGM_FOLDER_DATA);
    if (own != NULL) {
        sgm__text_append(places, "%s (with its folders), ", own);
        sgm_status status = look_below(own, file, SEARCH_DEPTH, path);
        sgm__free(own);
        SGM_TRY(status);
    }
    char *cache = *path == NULL ? sgm_folder_path(SGM_FOLDER_CACHE) : NULL;
    if (cache != NULL) {
        sgm__text_append(places, "%s, ", cache);
        sgm_status status = look_in(cache, file, path);
        sgm__free(cache);
        SGM_TRY(status);
    }
    sgm__text_append(places, "data");
    if (*path == NULL)
        SGM_TRY(look_in("data", file, path));
#ifdef SIGMA_INSTALLED_DATA_DIR
    sgm__text_append(places, ", %s", SIGMA_INSTALLED_DATA_DIR);
    if (*path == NULL)
        SGM_TRY(look_in(SIGMA_INSTALLED_DATA_DIR, file, path));
#endif
    return SGM_OK;
}

/* The ending of the URL's file if that is packed and FILE is not, so that the file in the cache has the name
 * of what it is; else "". */
static const char *extra_ending(const char *file, const char *url)
{
    const char *dot = strrchr(url, '.');
    if (sgm__is_compressed_name(file) || dot == NULL || !sgm__is_compressed_name(url))
        return "";
    return dot;
}

/* The file in the cache, downloaded when it is prepared. */
static sgm_source *from_url(const known_source *self)
{
    char *folder = sgm_folder_path(SGM_FOLDER_CACHE);
    if (folder == NULL)
        return NULL;
    char *path = sgm__format("%s/%s%s", folder, self->base.name, extra_ending(self->base.name, self->url));
    sgm_source *source =
        path != NULL ? sgm_url_source(self->url, .path = path, .sha256 = self->sha256) : NULL;
    if (source != NULL)
        source = sgm__unpacked_source(source, path);
    sgm__free(path);
    sgm__free(folder);
    return source;
}

/* Sets `found`, unless it is set; an error if the file is nowhere and there is no URL. */
static sgm_status known_find(known_source *self)
{
    if (self->found != NULL)
        return SGM_OK;
    char *path = NULL;
    sgm__text places = {0};
    sgm_status status = look_around(self->base.name, &path, &places);
    if (status == SGM_OK && path != NULL)
        self->found = sgm__unpacked_source(sgm_file_source(path), path);
    else if (status == SGM_OK && self->url != NULL)
        self->found = from_url(self);
    else if (status == SGM_OK)
        status =
            sgm_fail(SGM_ERROR_NOT_FOUND,
                     "%s: not found (nor with .gz at its end) in %s; put the file into one of them, or set "
                     "SIGMA_DATA_DIR to its folder",
                     self->base.name, places.data != NULL ? places.data : "the usual places");
    sgm__free(path);
    sgm__text_free(&places);
    return status == SGM_OK && self->found == NULL ? sgm_last_status() : status;
}

static bool known_exists(sgm_source *source)
{
    known_source *self = (known_source *)source;
    return known_find(self) == SGM_OK && sgm_source_exists(self->found);
}

/* A failed download is told with the places where the file could have been. */
static sgm_status known_prepare(sgm_source *source)
{
    known_source *self = (known_source *)source;
    SGM_TRY(known_find(self));
    if (sgm_source_prepare(self->found) == SGM_OK)
        return SGM_OK;
    if (self->url == NULL)
        return sgm_last_status();
    const char *folder = getenv("SIGMA_DATA_DIR");
    return sgm__fail_within("%s, which is not in SIGMA_DATA_DIR (%s), the cache or data/", source->name,
                            folder != NULL && folder[0] != '\0' ? folder : "not set");
}

static sgm_stream *known_open(sgm_source *source)
{
    return sgm_source_open(((known_source *)source)->found);
}

static void known_free(sgm_source *source)
{
    known_source *self = (known_source *)source;
    sgm_source_free(self->found);
    sgm__free(self->url);
    sgm__free(self->sha256);
}

static void known_describe(const sgm_source *source, sgm__key *key)
{
    sgm__source_describe(((const known_source *)source)->found, key);
}

/* `url` and `sha256` may be NULL. FILE must be a relative name without "..", since it becomes part of paths.
 */
sgm_source *sgm_known_source(const char *file, const char *url, const char *sha256)
{
    static const sgm__source_type type = {known_exists, known_prepare, known_open, known_free,
                                          known_describe};
    if (file == NULL || *file == '\0' || *file == '/' || strstr(file, "..") != NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "the name of a dataset's file was expected, '%s' came; for a path use "
                 "sgm_file_source",
                 file != NULL ? file : "NULL");
        return NULL;
    }
    known_source *self = sgm__source_create(sizeof *self, &type, file);
    if (self == NULL)
        return NULL;
    self->url = sgm__strdup(url);
    self->sha256 = sgm__strdup(sha256);
    if ((url != NULL && self->url == NULL) || (sha256 != NULL && self->sha256 == NULL)) {
        sgm_source_free(&self->base);
        return NULL;
    }
    return &self->base;
}
