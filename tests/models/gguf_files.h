/* Files of GGUF as data of tests, and comparing them. */
#ifndef SIGMA_TEST_MODELS_GGUF_FILES_H
#define SIGMA_TEST_MODELS_GGUF_FILES_H

#include "gguf/gguf.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define GGUF "tests/models/gguf/"

__attribute__((unused)) static char *file_of(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, GGUF "%s.gguf", name);
    return path;
}

__attribute__((unused)) static sgm__gguf *open_file(const char *path)
{
    sgm__gguf *file = sgm__gguf_open(path);
    CHECK_OK(file);
    return file;
}

/* All keys of the other file that begin with `prefix`, of the same types and bytes. */
__attribute__((unused)) static void compare_values(const sgm__gguf *own, const sgm__gguf *other,
                                                   const char *prefix)
{
    size_t count = 0;
    for (size_t i = 0; i < other->value_count; i++) {
        const sgm__gguf_value *wanted = &other->values[i], *value = sgm__gguf_find(own, wanted->key);
        if (strncmp(wanted->key, prefix, strlen(prefix)) != 0)
            continue;
        if (value == NULL)
            TEST_FAIL("there is no key '%s'", wanted->key);
        if (value->kind != wanted->kind || value->size != wanted->size ||
            memcmp(own->header.data + value->at, other->header.data + wanted->at, wanted->size) != 0)
            TEST_FAIL("'%s' has another value", wanted->key);
        count++;
    }
    CHECK(count > 0);
}

#endif
