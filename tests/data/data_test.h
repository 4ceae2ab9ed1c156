/* Helpers of the tests of sources and readers: a folder of its own that is removed at the end, files in it,
 * streams read to the end. */
#ifndef SIGMA_DATA_TEST_H
#define SIGMA_DATA_TEST_H

#include "test.h"
#include <ftw.h>
#include <sigma/data.h>
#include <sys/stat.h>
#include <unistd.h>

static char data_folder[64];

static int data_remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static void data_remove_folder(void)
{
    nftw(data_folder, data_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A path in the test's folder; one of four buffers in turn. */
__attribute__((unused)) static const char *data_path(const char *name)
{
    static char paths[4][256];
    static int next;
    if (data_folder[0] == '\0') {
        strcpy(data_folder, "/tmp/sigma-test-XXXXXX");
        if (mkdtemp(data_folder) == NULL)
            exit(1);
        atexit(data_remove_folder);
    }
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", data_folder, name);
    return path;
}

__attribute__((unused)) static const char *data_write(const char *name, const void *bytes, size_t length)
{
    const char *path = data_path(name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
        exit(1);
    return path;
}

/* The content of a source as text (up to 64 KB), "ERROR" when it cannot be read; the source is freed. */
__attribute__((unused)) static const char *data_text(sgm_source *source)
{
    static char text[65537];
    size_t got = 0;
    sgm_stream *stream = sgm_source_open(source);
    if (stream == NULL || sgm_stream_read(stream, text, sizeof text - 1, &got) != SGM_OK)
        strcpy(text, "ERROR");
    else
        text[got] = '\0';
    sgm_stream_close(stream);
    sgm_source_free(source);
    return text;
}

#define CHECK_CONTAINS(text, part)                                                                           \
    do {                                                                                                     \
        if (strstr(text, part) == NULL)                                                                      \
            TEST_FAIL("'%s' has no '%s'", text, part);                                                       \
    } while (0)

#endif
