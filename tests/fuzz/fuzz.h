/* Fuzzers of readers: each gives a reader bytes that libFuzzer changes until they reach new code. What a
 * reader refuses is right, whatever it says; a crash, a leak, undefined behaviour, more than a GB or ten
 * seconds is not.
 *
 *     make fuzz SECONDS=600       all of them, ten minutes each; findings lie in build/fuzz/findings
 *
 * A fuzzer is fuzz_NAME.c here, with one function LLVMFuzzerTestOneInput; run.sh says where its seeds are. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <sigma/sigma.h>

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_expect(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    abort();
}

/* A folder of this process alone, within that of run.sh. */
static inline const char *fuzz_folder(void)
{
    static char folder[PATH_MAX];
    const char *within = getenv("SIGMA_FUZZ_FOLDER");
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "%s/XXXXXX", within != NULL ? within : "/tmp");
        fuzz_expect(mkdtemp(folder) != NULL, "mkdtemp");
    }
    return folder;
}

/* The path of a file in that folder, good until the next call. */
static inline const char *fuzz_path(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return path;
}

/* Writes a file into the folder, and gives its path. */
static inline const char *fuzz_write(const char *name, const uint8_t *data, size_t size)
{
    const char *path = fuzz_path(name);
    FILE *file = fopen(path, "wb");
    fuzz_expect(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0, path);
    return path;
}

/* Puts a copy of a file of the sources, such as "tests/models/fixtures/gpt2/model.safetensors", there: a link
 * would be refused. */
static inline void fuzz_copy(const char *source, const char *name)
{
    uint8_t *bytes = malloc(1 << 20);
    FILE *file = fopen(source, "rb");
    fuzz_expect(bytes != NULL && file != NULL, source);
    size_t size = fread(bytes, 1, 1 << 20, file);
    fuzz_expect(size < 1 << 20 && fclose(file) == 0, source);
    fuzz_write(name, bytes, size);
    free(bytes);
}

#endif
