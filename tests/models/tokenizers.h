/* What tests of tokenizers share: the files in data/, JSON of strangers, tokens that are compared. */
#ifndef SIGMA_TEST_MODELS_TOKENIZERS_H
#define SIGMA_TEST_MODELS_TOKENIZERS_H

#include "models/folders.h"

#include <jansson.h>
#include <sigma/tokenizer.h>

#define DATA "tests/models/data/"

/* A file of data/, which the caller frees with json_decref. */
__attribute__((unused)) static json_t *data_json(const char *name)
{
    char path[200];
    json_t *root;
    snprintf(path, sizeof path, DATA "%s", name);
    root = json_load_file(path, JSON_ALLOW_NUL, NULL);
    if (!root)
        TEST_FAIL("%s cannot be read", path);
    return root;
}

__attribute__((unused)) static const char *text_in(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* A tokenizer of data/, which the caller frees. */
__attribute__((unused)) static sgm_pretrained_tokenizer *data_tokenizer(const char *name)
{
    char path[200];
    sgm_pretrained_tokenizer *tokenizer;
    snprintf(path, sizeof path, DATA "%s", name);
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(path));
    return tokenizer;
}

__attribute__((unused)) static void write_json(const char *folder, const char *name, const json_t *root)
{
    char *text = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY);
    write_file(folder, name, text, strlen(text));
    free(text);
}

__attribute__((unused)) static size_t count_of(const sgm_tensor *ids)
{
    return (size_t)sgm_tensor_shape(ids)->dims[0];
}

/* Whether a tensor has the numbers of a JSON array. */
__attribute__((unused)) static bool is_equal(const sgm_tensor *ids, const json_t *expected)
{
    const int64_t *list = sgm_tensor_const_data(ids);
    bool equal = count_of(ids) == json_array_size(expected);
    for (size_t i = 0; equal && i < json_array_size(expected); i++)
        equal = list[i] == json_integer_value(json_array_get(expected, i));
    return equal;
}

#endif
