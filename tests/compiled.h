/* C that the library has written: compiled as strictly as a compiler is, and loaded. */
#ifndef SIGMA_TEST_COMPILED_H
#define SIGMA_TEST_COMPILED_H

#include "test.h"

#include "base/base.h"

#include <dlfcn.h>
#include <unistd.h>

static void compile_c(const char *source, const char *options, const char *object)
{
    char command[512];
    snprintf(command, sizeof command, "cc -x c -std=c99 -pedantic -Wall -Wextra -Werror %s -o %s %s", options,
             object, source);
    CHECK_INT(system(command), 0);
}

__attribute__((unused)) static void *load_c_file(const char *source, const char *options, const char *object)
{
    char all[256];
    snprintf(all, sizeof all, "-fPIC -shared %s", options);
    compile_c(source, all, object);
    void *library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        TEST_FAIL("%s", dlerror());
    return library;
}

/* No file stays; frees the text. */
__attribute__((unused)) static void *load_c(sgm__text *text, const char *options)
{
    char path[] = "/tmp/sigma-compiled-XXXXXX", object[64];
    int file = mkstemp(path);
    CHECK(file >= 0 && !text->failed);
    close(file);
    CHECK_OK(sgm__file_write_atomic(path, text->data, text->length));
    sgm__text_free(text);
    snprintf(object, sizeof object, "%s.so", path);
    void *library = load_c_file(path, options, object);
    unlink(path);
    unlink(object);
    return library;
}

/* The pointer to it is `*function`. */
__attribute__((unused)) static void find_c(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    if (found == NULL)
        TEST_FAIL("%s", dlerror());
    memcpy(function, &found, sizeof found);
}

#endif
