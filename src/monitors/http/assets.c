/* Files inside of the library: the assembler includes them, so that a megabyte costs the build nothing. */
#include "monitors/http/assets.h"

#include <nettle/sha2.h>
#include <stdio.h>

#define TAG_BYTES 16

/* web_assets.h is written by CMake: SGM__ASSET(number, path in the server, path of the file) for each. */
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

static void describe(void)
{
    for (size_t i = 0; i < FILE_COUNT; i++) {
        sgm__asset *asset = &assets[i];
        struct sha256_ctx context;
        uint8_t digest[TAG_BYTES];
        *asset = (sgm__asset){.path = files[i].path,
                              .bytes = files[i].bytes,
                              .length = (size_t)(files[i].end - files[i].bytes),
                              .type = type_of(files[i].path)};
        sha256_init(&context);
        sha256_update(&context, asset->length, (const uint8_t *)asset->bytes);
        sha256_digest(&context, sizeof digest, digest);
        asset->tag[0] = '"';
        for (size_t k = 0; k < sizeof digest; k++)
            snprintf(asset->tag + 1 + 2 * k, 3, "%02x", (unsigned)digest[k]);
        memcpy(asset->tag + 1 + 2 * TAG_BYTES, "\"", 2);
    }
}

const sgm__asset *sgm__assets(size_t *count)
{
    pthread_once(&once, describe);
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
    return NULL;
}
