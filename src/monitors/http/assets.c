/* Puts files into the library and finds them by path.
 *
 * The assembler includes the files (.incbin), so that a megabyte of them costs the compiler nothing.
 * web_assets.h is written by CMake and has one line SGM__ASSET(number, path in the server, path of the
 * file) for each file; it is included twice, with two meanings of that macro. Types and ETags are computed
 * once, at the first use. Files that a program adds stand in a list of their own. */
#include "monitors/http/assets.h"

#include <nettle/sha2.h>
#include <pthread.h>
#include <stdio.h>

/* Bytes of SHA-256 in an ETag: enough that two versions of a file never have the same. */
#define TAG_BYTES 16

/* First meaning: the bytes of the file between two symbols, which are hidden so that they do not leave the
 * shared library. The 0 byte behind keeps the symbol of the end inside the section. */
#define SGM__ASSET(number, path, file)                                                                       \
    __asm__(".pushsection .rodata\n"                                                                         \
            ".hidden sgm__asset_" #number "\n"                                                               \
            ".hidden sgm__asset_end_" #number "\n"                                                           \
            "sgm__asset_" #number ":\n"                                                                      \
            ".incbin \"" file "\"\n"                                                                         \
            "sgm__asset_end_" #number ":\n"                                                                  \
            ".byte 0\n"                                                                                      \
            ".popsection\n");                                                                                \
    extern const char sgm__asset_##number[], sgm__asset_end_##number[];
#pragma GCC visibility push(hidden)
#include "web_assets.h"
#pragma GCC visibility pop
#undef SGM__ASSET

/* Second meaning: a row of the table of files. */
static const struct {
    const char *path, *bytes, *end;
} files[] = {
#define SGM__ASSET(number, path, file) {path, sgm__asset_##number, sgm__asset_end_##number},
#include "web_assets.h"
#undef SGM__ASSET
};
#define FILE_COUNT (sizeof files / sizeof files[0])

static sgm__asset assets[FILE_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* An added file. It is never removed, so it may be used without the lock. */
typedef struct added_asset {
    sgm__asset asset;
    struct added_asset *next;
} added_asset;
static added_asset *added; /* the newest first */
static pthread_mutex_t added_lock = PTHREAD_MUTEX_INITIALIZER;

/* The media type by the file's ending. With "nosniff" (respond.c) browsers rely on it. */
static const char *type_of(const char *path)
{
    static const struct {
        const char *ending, *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".json", "application/json"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".ico", "image/vnd.microsoft.icon"},
        {".woff2", "font/woff2"},
        {".webmanifest", "application/manifest+json"},
    };
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; ending != NULL && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(ending, types[i].ending) == 0)
            return types[i].type;
    return "text/plain; charset=utf-8";
}

static sgm__asset describe(const char *path, const char *bytes, size_t length)
{
    sgm__asset asset = {.path = path, .bytes = bytes, .length = length, .type = type_of(path), .tag = "\""};
    struct sha256_ctx context;
    uint8_t digest[TAG_BYTES];
    sha256_init(&context);
    sha256_update(&context, length, (const uint8_t *)bytes);
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(asset.tag + 1 + 2 * i, 3, "%02x", (unsigned)digest[i]);
    memcpy(asset.tag + 1 + 2 * TAG_BYTES, "\"", 2);
    return asset;
}

/* Fills `assets` from `files`. */
static void describe_all(void)
{
    for (size_t i = 0; i < FILE_COUNT; i++)
        assets[i] = describe(files[i].path, files[i].bytes, (size_t)(files[i].end - files[i].bytes));
}

static const sgm__asset *find_added(const char *path)
{
    pthread_mutex_lock(&added_lock);
    const added_asset *at = added;
    while (at != NULL && strcmp(at->asset.path, path) != 0)
        at = at->next;
    pthread_mutex_unlock(&added_lock);
    return at != NULL ? &at->asset : NULL;
}

const sgm__asset *sgm__assets(size_t *count)
{
    pthread_once(&once, describe_all);
    *count = FILE_COUNT;
    return assets;
}

const sgm__asset *sgm__asset_find(const char *path)
{
    size_t count;
    const sgm__asset *all = sgm__assets(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].path, path) == 0)
            return &all[i];
    return find_added(path);
}

sgm_status sgm__asset_add(const char *path, const char *bytes, size_t length)
{
    added_asset *new = sgm__calloc(1, sizeof *new);
    if (new == NULL)
        return SGM_ERROR_MEMORY;
    new->asset = describe(path, bytes, length);
    pthread_mutex_lock(&added_lock);
    new->next = added;
    added = new;
    pthread_mutex_unlock(&added_lock);
    return SGM_OK;
}
