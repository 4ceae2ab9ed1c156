/* Metadata of a file of GGUF as config.json, and back. */
#include "gguf/names.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* --- from a file --- */

/* A file that becomes a config.json. */
typedef struct reading {
    const sgm__gguf *file;
    const sgm__gguf_architecture *a;
    json_t *config;
    char key[128]; /* the last one that was made by `key_of` */
} reading;

/* "llama.block_count" */
static const char *key_of(reading *r, const char *name)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->a->type, name);
    return r->key;
}

/* Takes the reference. */
static sgm_status set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_MEMORY, "no memory for the settings of a model");
}

static sgm_status read_setting(reading *r, const sgm__gguf_setting *setting)
{
    const char *key = key_of(r, setting->theirs);
    int64_t whole = (int64_t)setting->otherwise;
    double number = setting->otherwise;
    if (sgm__gguf_find(r->file, key) == NULL && setting->otherwise == 0)
        return sgm__gguf_fail(r->file, key, "is missing; without it the file is no model '%s'", r->a->type);
    if (setting->fraction) {
        SGM__PASS(sgm__gguf_number(r->file, key, &number));
        return set(r->config, setting->own, json_real(number));
    }
    SGM__PASS(sgm__gguf_integer(r->file, key, &whole));
    return set(r->config, setting->own, json_integer(whole));
}

/* The tensor of a name; NULL: there is none. */
static const sgm__gguf_tensor *find_tensor(const sgm__gguf *file, const char *name)
{
    for (size_t i = 0; i < file->tensor_count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

static sgm_status read_tokens(reading *r)
{
    const sgm__gguf_tensor *tokens = find_tensor(r->file, "token_embd.weight");
    if (tokens == NULL || tokens->shape.rank != 2)
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "'%s' has no tensor 'token_embd.weight' of two dimensions; without it, it is no model '%s'",
            r->file->path, r->a->type);
    return set(r->config, "vocab_size", json_integer(tokens->shape.dims[0]));
}

/* Heads are of one size, and positions rotate all of their numbers. */
static sgm_status read_heads(reading *r)
{
    const int64_t features = json_integer_value(json_object_get(r->config, "hidden_size"));
    const int64_t heads = json_integer_value(json_object_get(r->config, "num_attention_heads"));
    int64_t shared = heads, size = heads > 0 ? features / heads : 0;
    SGM__PASS(sgm__gguf_integer(r->file, key_of(r, "attention.head_count_kv"), &shared));
    SGM__PASS(set(r->config, "num_key_value_heads", json_integer(shared)));
    SGM__PASS(sgm__gguf_integer(r->file, key_of(r, "attention.key_length"), &size));
    static const char *const others[] = {"attention.value_length", "rope.dimension_count"};
    for (size_t i = 0; i < 2; i++) {
        int64_t other = size;
        SGM__PASS(sgm__gguf_integer(r->file, key_of(r, others[i]), &other));
        if (other != size)
            return sgm__gguf_fail(r->file, r->key,
                                  "is %lld; models are only read where it is the size of a head, %lld",
                                  (long long)other, (long long)size);
    }
    return set(r->config, "head_dim", json_integer(size));
}

/* The factors of a tensor as the numbers that they come of. */
static sgm_status read_bands(reading *r, const sgm__gguf_tensor *tensor, double base, json_t *scaling)
{
    sgm__gguf_bands bands = {.base = base};
    sgm_tensor *factors = sgm__gguf_read(r->file, tensor);
    if (factors == NULL)
        return sgm_last_status();
    const bool found = tensor->shape.rank == 1 && sgm__gguf_bands_find(&bands, sgm_tensor_const_data(factors),
                                                                       (size_t)tensor->shape.dims[0]);
    sgm_tensor_free(factors);
    if (!found)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "'%s': the factors of '" SGM__GGUF_FREQUENCIES
                        "' do not rise from 1 as those of Llama 3.1, and no others are known",
                        r->file->path);
    SGM__PASS(set(scaling, "rope_type", json_string("llama3")));
    SGM__PASS(set(scaling, "factor", json_real(bands.factor)));
    SGM__PASS(set(scaling, "low_freq_factor", json_real(bands.low)));
    SGM__PASS(set(scaling, "high_freq_factor", json_real(bands.high)));
    return set(scaling, "original_max_position_embeddings", json_integer(bands.steps));
}

/* Positions are divided by a factor, which older files have under another key. */
static sgm_status read_linear(reading *r, json_t *scaling)
{
    const char *type = "linear";
    size_t size = strlen(type);
    double factor = 1;
    SGM__PASS(sgm__gguf_text(r->file, key_of(r, "rope.scaling.type"), &type, &size));
    if (size == 4 && memcmp(type, "none", size) == 0)
        return SGM_OK;
    if (size != 6 || memcmp(type, "linear", size) != 0)
        return sgm__gguf_fail(r->file, r->key, "is '%.*s'; these are known: none, linear",
                              (int)(size < 40 ? size : 40), type);
    SGM__PASS(sgm__gguf_number(r->file, key_of(r, "rope.scale_linear"), &factor));
    SGM__PASS(sgm__gguf_number(r->file, key_of(r, "rope.scaling.factor"), &factor));
    if (factor == 1)
        return SGM_OK;
    SGM__PASS(set(scaling, "rope_type", json_string("linear")));
    return set(scaling, "factor", json_real(factor));
}

static sgm_status read_rotary(reading *r)
{
    double base = 10000;
    const sgm__gguf_tensor *factors = find_tensor(r->file, SGM__GGUF_FREQUENCIES);
    json_t *scaling = json_object();
    SGM__PASS(set(r->config, "rope_scaling", scaling));
    SGM__PASS(sgm__gguf_number(r->file, key_of(r, "rope.freq_base"), &base));
    SGM__PASS(set(r->config, "rope_theta", json_real(base)));
    SGM__PASS(read_linear(r, scaling));
    if (factors != NULL && json_object_size(scaling) > 0)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s': positions are scaled by '%s.rope.scaling.factor' and by the tensor '" SGM__GGUF_FREQUENCIES
            "'; models are only read where it is one of both",
            r->file->path, r->a->type);
    if (factors != NULL)
        SGM__PASS(read_bands(r, factors, base, scaling));
    if (json_object_size(scaling) == 0)
        json_object_del(r->config, "rope_scaling");
    return SGM_OK;
}

static sgm_status read_flags(reading *r)
{
    static const struct {
        const char *own, *tensor;
    } biases[] = {{"attention_bias", "blk.0.attn_output.bias"}, {"mlp_bias", "blk.0.ffn_down.bias"}};
    for (size_t i = 0; r->a->rotary && i < 2; i++)
        SGM__PASS(
            set(r->config, biases[i].own, json_boolean(find_tensor(r->file, biases[i].tensor) != NULL)));
    return set(r->config, "tie_word_embeddings", json_boolean(find_tensor(r->file, "output.weight") == NULL));
}

/* The tokens that begin and end a text, for who reads config.json. */
static sgm_status read_ends(reading *r)
{
    static const char *const keys[][2] = {{"tokenizer.ggml.bos_token_id", "bos_token_id"},
                                          {"tokenizer.ggml.eos_token_id", "eos_token_id"}};
    for (size_t i = 0; i < 2; i++) {
        int64_t id = -1;
        SGM__PASS(sgm__gguf_integer(r->file, keys[i][0], &id));
        if (id >= 0)
            SGM__PASS(set(r->config, keys[i][1], json_integer(id)));
    }
    return SGM_OK;
}

/* Whether a key of the architecture is read somewhere here, or changes nothing. */
static bool is_known(const sgm__gguf_architecture *a, const char *name)
{
    static const char *const rotary[] = {
        "attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.dimension_count",
        "rope.freq_base",          "rope.scaling.type",    "rope.scaling.factor",    "rope.scale_linear"};
    static const char *const idle[] = {"vocab_size", "tensor_data_layout", "rope.scaling.finetuned",
                                       "rope.scaling.original_context_length"};
    for (const sgm__gguf_setting *setting = a->settings; setting->own != NULL; setting++)
        if (strcmp(setting->theirs, name) == 0)
            return true;
    for (size_t i = 0; a->rotary && i < sizeof rotary / sizeof *rotary; i++)
        if (strcmp(rotary[i], name) == 0)
            return true;
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (strcmp(idle[i], name) == 0)
            return true;
    return false;
}

/* One that is not known may change what the model computes. Without experts, their counts are 0. */
static sgm_status check_keys(reading *r)
{
    const size_t prefix = strlen(r->a->type);
    for (size_t i = 0; i < r->file->value_count; i++) {
        const char *key = r->file->values[i].key;
        int64_t experts = 0;
        if (strncmp(key, r->a->type, prefix) != 0 || key[prefix] != '.' || is_known(r->a, key + prefix + 1))
            continue;
        const bool counts =
            strcmp(key + prefix, ".expert_count") == 0 || strcmp(key + prefix, ".expert_used_count") == 0;
        if (counts)
            SGM__PASS(sgm__gguf_integer(r->file, key, &experts));
        if (!counts || experts != 0)
            return sgm__gguf_fail(r->file, key, "is not known here, and may change what the model computes");
    }
    return SGM_OK;
}

/* A file has a Mistral as llama, whose config.json may not have features that are no multiple of the heads.
 * A Mistral has no biases. */
static sgm_status read_type(reading *r)
{
    const int64_t features = json_integer_value(json_object_get(r->config, "hidden_size"));
    const int64_t heads = json_integer_value(json_object_get(r->config, "num_attention_heads"));
    const bool is_biased = json_is_true(json_object_get(r->config, "attention_bias")) ||
                           json_is_true(json_object_get(r->config, "mlp_bias"));
    if (strcmp(r->a->model_type, "llama") != 0 || is_biased || heads < 1 || features % heads == 0)
        return set(r->config, "model_type", json_string(r->a->model_type));
    SGM__PASS(set(r->config, "sliding_window", json_null()));
    return set(r->config, "model_type", json_string("mistral"));
}

static sgm_status read_all(reading *r)
{
    for (const sgm__gguf_setting *setting = r->a->settings; setting->own != NULL; setting++)
        SGM__PASS(read_setting(r, setting));
    SGM__PASS(set(r->config, r->a->activation, json_string(r->a->activations[0])));
    SGM__PASS(read_tokens(r));
    if (r->a->rotary) {
        SGM__PASS(read_heads(r));
        SGM__PASS(read_rotary(r));
    }
    SGM__PASS(read_flags(r));
    SGM__PASS(read_type(r));
    SGM__PASS(read_ends(r));
    return check_keys(r);
}

sgm_status sgm__gguf_config(const sgm__gguf *file, const sgm__gguf_architecture *a, json_t **config)
{
    reading r = {.file = file, .a = a, .config = json_object()};
    sgm_status status =
        r.config != NULL ? read_all(&r) : sgm_fail(SGM_ERROR_MEMORY, "no memory for settings");
    if (status != SGM_OK) {
        json_decref(r.config);
        r.config = NULL;
    }
    *config = r.config;
    return status;
}

/* --- to a file --- */

/* A key of config.json, "a.b" for the key b within a; NULL: it is not there, or null. */
static const json_t *find(const json_t *config, const char *key)
{
    const char *dot = strchr(key, '.');
    char group[32];
    snprintf(group, sizeof group, "%.*s", dot != NULL ? (int)(dot - key) : 0, key);
    const json_t *value =
        json_object_get(dot != NULL ? json_object_get(config, group) : config, dot != NULL ? dot + 1 : key);
    return json_is_null(value) ? NULL : value;
}

static double number_of(const json_t *value, double otherwise)
{
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static void put_integer(sgm__gguf_draft *draft, const sgm__gguf_architecture *a, const char *name,
                        int64_t number)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", a->type, name);
    sgm__gguf_put_integer(draft, key, number);
}

static void put_number(sgm__gguf_draft *draft, const sgm__gguf_architecture *a, const char *name,
                       double number)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", a->type, name);
    sgm__gguf_put_number(draft, key, number);
}

/* GPT-2's config.json leaves out what is four times the features. */
static void put_settings(sgm__gguf_draft *draft, const sgm__gguf_model *model)
{
    const json_t *features = find(model->config, "n_embd");
    for (const sgm__gguf_setting *setting = model->a->settings; setting->own != NULL; setting++) {
        const double usual =
            strcmp(setting->own, "n_inner") == 0 ? 4 * number_of(features, 0) : setting->otherwise;
        const double number = number_of(find(model->config, setting->own), usual);
        if (strcmp(setting->theirs, "context_length") == 0)
            put_integer(draft, model->a, setting->theirs, model->longest);
        else if (setting->fraction)
            put_number(draft, model->a, setting->theirs, number);
        else
            put_integer(draft, model->a, setting->theirs, (int64_t)number);
    }
}

/* Where config.json says how positions are rotated: an older group with members stands for the newer one. */
static const json_t *rotary_group(const json_t *config)
{
    const json_t *older = find(config, "rope_scaling");
    return json_object_size(older) > 0 ? older : find(config, "rope_parameters");
}

/* What the group does not say is beside it. */
static double base_of(const json_t *config)
{
    const double beside = number_of(find(config, "rope_theta"), 10000);
    return number_of(json_object_get(rotary_group(config), "rope_theta"), beside);
}

static bool has_scaling(const json_t *config, const char *name)
{
    const json_t *group = rotary_group(config);
    const char *type = json_string_value(json_object_get(group, "rope_type"));
    if (type == NULL)
        type = json_string_value(json_object_get(group, "type"));
    return type != NULL && strcmp(type, name) == 0;
}

static void put_rotary(sgm__gguf_draft *draft, const sgm__gguf_model *model)
{
    const double heads = number_of(find(model->config, "num_attention_heads"), 0);
    put_integer(draft, model->a, "attention.head_count_kv",
                (int64_t)number_of(find(model->config, "num_key_value_heads"), heads));
    put_integer(draft, model->a, "attention.key_length", model->head_size);
    put_integer(draft, model->a, "attention.value_length", model->head_size);
    put_integer(draft, model->a, "rope.dimension_count", model->head_size);
    put_number(draft, model->a, "rope.freq_base", base_of(model->config));
    if (!has_scaling(model->config, "linear"))
        return;
    char key[128];
    snprintf(key, sizeof key, "%s.rope.scaling.type", model->a->type);
    sgm__gguf_put_text(draft, key, "linear", 6);
    put_number(draft, model->a, "rope.scaling.factor",
               number_of(json_object_get(rotary_group(model->config), "factor"), 1));
}

bool sgm__gguf_has_bands(const sgm__gguf_model *model, sgm__gguf_bands *bands)
{
    const json_t *config = model->config;
    const json_t *scaling = rotary_group(config);
    *bands = (sgm__gguf_bands){
        .base = base_of(config),
        .factor = number_of(json_object_get(scaling, "factor"), 1),
        .low = number_of(json_object_get(scaling, "low_freq_factor"), 1),
        .high = number_of(json_object_get(scaling, "high_freq_factor"), 4),
        .steps = json_integer_value(json_object_get(scaling, "original_max_position_embeddings"))};
    return model->a->rotary && has_scaling(config, "llama3");
}

static sgm_status check_activation(const sgm__gguf_model *model)
{
    const sgm__gguf_architecture *a = model->a;
    const char *name = json_string_value(find(model->config, a->activation));
    for (size_t i = 0; i < sizeof a->activations / sizeof *a->activations; i++)
        if (name == NULL || (a->activations[i] != NULL && strcmp(a->activations[i], name) == 0))
            return SGM_OK;
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "'%s' is \"%.40s\", and a file of GGUF has a model '%s' with \"%s\" alone; 'sigma export --hf' "
        "writes it as it is",
        a->activation, name, a->type, a->activations[0]);
}

/* llama.cpp reads the factors of rotary positions for the architecture "llama" alone. */
static sgm_status check_scaling(const sgm__gguf_model *model)
{
    if (strcmp(model->a->type, "llama") == 0 || !has_scaling(model->config, "llama3"))
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "positions are scaled as \"llama3\", which a file of GGUF does not have for a model '%s'; "
        "'sigma export --hf' writes it as it is",
        model->a->type);
}

sgm_status sgm__gguf_put_config(sgm__gguf_draft *draft, const sgm__gguf_model *model)
{
    const sgm__gguf_architecture *a = model->a;
    SGM__PASS(check_activation(model));
    SGM__PASS(check_scaling(model));
    sgm__gguf_put_text(draft, "general.architecture", a->type, strlen(a->type));
    put_settings(draft, model);
    put_integer(draft, a, "vocab_size", (int64_t)number_of(find(model->config, "vocab_size"), 0));
    if (a->rotary)
        put_rotary(draft, model);
    return draft->status;
}
