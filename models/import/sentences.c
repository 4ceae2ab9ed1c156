/* What the library sentence-transformers makes of an encoder's vectors: modules.json lists its steps, of
 * which 1_Pooling/config.json says how the vectors of all tokens become one, and sentence_bert_config.json
 * how many tokens are read. */
#include "import/pretrained.h"

#include <stdlib.h>
#include <string.h>

/* The last part of a name in Python. */
static const char *class_of(const json_t *module)
{
    const char *type = json_string_value(json_object_get(module, "type"));
    const char *dot = type != NULL ? strrchr(type, '.') : NULL;
    return dot != NULL ? dot + 1 : "";
}

static sgm_status read_module(const sgm_pretrained *p, const json_t *module, sgm__description *d)
{
    const char *class = class_of(module), *path = json_string_value(json_object_get(module, "path"));
    if (strcmp(class, "Normalize") == 0)
        d->normalised = true;
    else if (strcmp(class, "Transformer") != 0 && strcmp(class, "Pooling") != 0)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s/modules.json': the module '%.60s' is not known; these are: Transformer, Pooling, "
            "Normalize",
            p->path, class);
    if (strcmp(class, "Pooling") == 0 && path != NULL && strcmp(path, SGM__POOLING_FOLDER) != 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "'%s/modules.json': the module Pooling is in '%.60s'; it is only read in "
                        "'" SGM__POOLING_FOLDER "'",
                        p->path, path);
    return SGM_OK;
}

static sgm_status read_modules(const sgm_pretrained *p, sgm__description *d)
{
    json_t *modules;
    SGM__TRY(sgm__folder_optional_json(p->path, "modules.json", &modules));
    sgm_status status = modules == NULL || json_is_array(modules)
                            ? SGM_OK
                            : sgm_fail(SGM_ERROR_FORMAT, "'%s/modules.json': a list is wanted", p->path);
    for (size_t i = 0; status == SGM_OK && i < json_array_size(modules); i++)
        status = read_module(p, json_array_get(modules, i), d);
    json_decref(modules);
    return status;
}

/* Older files have a flag for each kind, newer ones a name. */
static sgm_status read_pooling(const sgm_pretrained *p, sgm__description *d)
{
    static const char *const kinds[] = {"mean", "cls", "max"};
    static const char *const flags[] = {"pooling_mode_mean_tokens", "pooling_mode_cls_token",
                                        "pooling_mode_max_tokens"};
    json_t *pooling, *value;
    const char *key;
    size_t found = 0, others = 0;
    SGM__TRY(sgm__folder_optional_json(p->path, SGM__POOLING_CONFIG, &pooling));
    if (pooling == NULL)
        return SGM_OK;
    const char *mode = json_string_value(json_object_get(pooling, "pooling_mode"));
    json_object_foreach(pooling, key, value) others +=
        json_is_true(value) && strncmp(key, "pooling_mode_", 13) == 0;
    for (size_t i = 0; i < 3; i++)
        if (json_is_true(json_object_get(pooling, flags[i])) ||
            (mode != NULL && strcmp(mode, kinds[i]) == 0)) {
            d->pooling = kinds[i];
            found++;
        }
    json_decref(pooling);
    if (found == 1 && others <= 1)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "'%s/" SGM__POOLING_CONFIG
                    "': one of mean, cls and max is known, and no other way from the vectors of "
                    "tokens to one",
                    p->path);
}

/* Whether a tokenizer gives both texts the same tokens. */
static bool are_alike(const sgm_pretrained_tokenizer *tokenizer, const char *a, const char *b)
{
    sgm_tensor *tokens[] = {sgm_pretrained_tokenizer_encode(tokenizer, a, strlen(a)),
                            sgm_pretrained_tokenizer_encode(tokenizer, b, strlen(b))};
    const bool alike = tokens[0] != NULL && tokens[1] != NULL &&
                       sgm_shape_equal(sgm_tensor_shape(tokens[0]), sgm_tensor_shape(tokens[1])) &&
                       memcmp(sgm_tensor_const_data(tokens[0]), sgm_tensor_const_data(tokens[1]),
                              (size_t)sgm_shape_elements(sgm_tensor_shape(tokens[0])) * sizeof(int64_t)) == 0;
    sgm_tensor_free(tokens[0]);
    sgm_tensor_free(tokens[1]);
    return alike;
}

/* sentence-transformers makes texts lower case then, which changes nothing where the tokenizer does so. */
static sgm_status check_lower_case(const sgm_pretrained *p)
{
    static const char text[] = "THE QUICK BROWN FOX", lower[] = "the quick brown fox";
    sgm_pretrained_tokenizer *tokenizer =
        p->tokenizer != NULL ? sgm_pretrained_tokenizer_open(p->tokenizer) : NULL;
    const bool alike = tokenizer == NULL || are_alike(tokenizer, text, lower); /* without one it reads none */
    sgm_pretrained_tokenizer_free(tokenizer);
    return alike
               ? SGM_OK
               : sgm_fail(SGM_ERROR_UNSUPPORTED,
                          "'%s/sentence_bert_config.json': 'do_lower_case' is true, but the tokenizer tells "
                          "upper from lower case; such models are not read",
                          p->path);
}

sgm_status sgm__sentences_read(const sgm_pretrained *p, sgm__description *d)
{
    json_t *settings;
    SGM__TRY(read_modules(p, d));
    SGM__TRY(read_pooling(p, d));
    SGM__TRY(sgm__folder_optional_json(p->path, "sentence_bert_config.json", &settings));
    json_int_t longest = json_integer_value(json_object_get(settings, "max_seq_length"));
    const bool lowers = json_is_true(json_object_get(settings, "do_lower_case"));
    json_decref(settings);
    d->usual_context = longest > 0 ? longest : 0;
    return lowers ? check_lower_case(p) : SGM_OK;
}
