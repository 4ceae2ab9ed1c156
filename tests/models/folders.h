/* Copies of the fixtures' folders, and changes in their files, for tests. */
#ifndef SIGMA_TEST_MODELS_FOLDERS_H
#define SIGMA_TEST_MODELS_FOLDERS_H

#include "test.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIXTURES "tests/models/fixtures/"

/* The bytes of a file, and a 0 behind them; the caller frees them. */
__attribute__((unused)) static char *read_file(const char *folder, const char *name, size_t *size)
{
    char path[600];
    struct stat information;
    snprintf(path, sizeof path, "%s/%.200s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        TEST_FAIL("there is no file '%s'", path);
    CHECK(fstat(fileno(file), &information) == 0);
    *size = (size_t)information.st_size;
    char *bytes = calloc(*size + 1, 1);
    CHECK(fread(bytes, 1, *size, file) == *size);
    fclose(file);
    return bytes;
}

__attribute__((unused)) static void write_file(const char *folder, const char *name, const char *bytes,
                                               size_t size)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%.200s", folder, name);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

static char folders_root[] = "/tmp/sigma-models-XXXXXX";

static int remove_one(const char *path, const struct stat *information, int kind, struct FTW *place)
{
    (void)information;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_folders(void)
{
    nftw(folders_root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A new folder, which is removed when the program ends; the last 16 names stay. */
__attribute__((unused)) static const char *new_folder(void)
{
    static char folders[16][64];
    static int next;
    if (next == 0)
        CHECK(mkdtemp(folders_root) != NULL && atexit(remove_folders) == 0);
    char *folder = folders[next % 16];
    snprintf(folder, sizeof folders[0], "%s/%d", folders_root, next++);
    CHECK(mkdir(folder, 0700) == 0);
    return folder;
}

/* Files of a fixture's folder that are no part of the model: what it is expected to compute. */
__attribute__((unused)) static bool is_of_the_model(const char *name)
{
    return name[0] != '.' && strcmp(name, "expected.safetensors") != 0 &&
           strcmp(name, "generation.safetensors") != 0;
}

/* A copy of a fixture. */
__attribute__((unused)) static const char *copy_of(const char *fixture)
{
    const char *folder = new_folder();
    char path[300];
    snprintf(path, sizeof path, FIXTURES "%s", fixture);
    DIR *entries = opendir(path);
    CHECK(entries != NULL);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        size_t size;
        if (!is_of_the_model(entry->d_name))
            continue;
        char *bytes = read_file(path, entry->d_name, &size);
        write_file(folder, entry->d_name, bytes, size);
        free(bytes);
    }
    closedir(entries);
    return folder;
}

/* Replaces the first `old` in a text file. */
__attribute__((unused)) static void replace(const char *folder, const char *name, const char *old,
                                            const char *new)
{
    size_t size;
    char *text = read_file(folder, name, &size), *at = strstr(text, old);
    if (at == NULL)
        TEST_FAIL("%s has no '%s'", name, old);
    char *changed = calloc(size + strlen(new) + 1, 1);
    snprintf(changed, size + strlen(new) + 1, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    write_file(folder, name, changed, strlen(changed));
    free(changed);
    free(text);
}

#endif
