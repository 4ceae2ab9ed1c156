#include "import/peft_config.h"
#include "import/pretrained.h"

#include <stdlib.h>
#include <string.h>

static sgm_status fail_setting(const sgm__peft_config *c, const char *key, const char *problem)
{
    return sgm_fail(SGM_ERROR_FORMAT, "'%s/" SGM__PEFT_CONFIG "': '%.60s' %s", c->folder, key, problem);
}

static sgm_status fail_unsupported(const sgm__peft_config *c, const char *key, const char *problem)
{
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "'%s/" SGM__PEFT_CONFIG "': '%.60s' %s" SGM__PEFT_REMEDY,
                    c->folder, key, problem);
}

/* --- patterns --- */

static bool is_rank(const json_t *value)
{
    return json_integer_value(value) >= 1 && json_integer_value(value) <= SGM__LARGEST_SIZE;
}

static bool is_alpha(const json_t *value)
{
    return json_number_value(value) > 0 && json_number_value(value) < 1e9;
}

/* An expression is for the last part of a module's name, or for several of them. */
static sgm_status open_expression(const sgm__peft_config *c, const char *key, sgm__peft_pattern *pattern)
{
    char *whole = sgm__new_text("(.*\\.)?(%s)$", pattern->text);
    sgm_status status = whole != NULL ? sgm__pattern_open_regex(&pattern->expression, whole, strlen(whole))
                                      : SGM_ERROR_MEMORY;
    free(whole);
    if (status == SGM_OK || status == SGM_ERROR_MEMORY)
        return status;
    return sgm_fail(status, "'%s/" SGM__PEFT_CONFIG "': '%s' has '%.100s', which is no regular expression",
                    c->folder, key, pattern->text);
}

static sgm_status read_patterns(const sgm__peft_config *c, const char *key, json_t *object,
                                bool (*is_number)(const json_t *), sgm__peft_patterns *patterns)
{
    const char *text;
    json_t *value;
    if (json_is_null(object))
        return SGM_OK;
    if (!json_is_object(object))
        return fail_setting(c, key, "is no object of expressions and numbers, {\"q_proj\": 4}");
    patterns->list = calloc(json_object_size(object) + 1, sizeof *patterns->list);
    if (patterns->list == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for '%s' of adapters", key);
    json_object_foreach(object, text, value)
    {
        if (!is_number(value))
            return sgm_fail(SGM_ERROR_FORMAT, "'%s/" SGM__PEFT_CONFIG "': '%s' of '%.100s' is no %s",
                            c->folder, key, text, is_number == is_rank ? "rank" : "number above 0");
        sgm__peft_pattern *pattern = &patterns->list[patterns->count++];
        pattern->number = json_number_value(value);
        pattern->text = sgm__new_text("%s", text);
        SGM__TRY(pattern->text != NULL ? open_expression(c, key, pattern) : SGM_ERROR_MEMORY);
    }
    return SGM_OK;
}

/* The first pattern counts that matches from the first character on. */
static sgm_status find_number(sgm__peft_config *c, const sgm__peft_patterns *patterns, const char *module,
                              double *number)
{
    for (size_t i = 0; i < patterns->count; i++) {
        const sgm__peft_pattern *pattern = &patterns->list[i];
        sgm__match match = {0};
        if (sgm__pattern_next(&pattern->expression, &c->matcher, module, strlen(module), &match) != SGM_OK)
            return sgm_fail(SGM_ERROR_LIMIT,
                            "'%s/" SGM__PEFT_CONFIG "': the expression '%.100s' takes too long for '%.100s'; "
                            "write a simpler one, such as the name itself",
                            c->folder, pattern->text, module);
        if (match.found && match.start == 0) {
            *number = pattern->number;
            return SGM_OK;
        }
    }
    return SGM_OK;
}

sgm_status sgm__peft_config_sizes(sgm__peft_config *config, const char *module, int64_t *rank, double *alpha)
{
    double found = (double)config->rank;
    *alpha = config->alpha;
    SGM__TRY(find_number(config, &config->ranks, module, &found));
    *rank = (int64_t)found;
    return find_number(config, &config->alphas, module, alpha);
}

static void clear_patterns(sgm__peft_patterns *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        sgm__pattern_free(&patterns->list[i].expression);
        free(patterns->list[i].text);
    }
    free(patterns->list);
    *patterns = (sgm__peft_patterns){0};
}

void sgm__peft_config_clear(sgm__peft_config *config)
{
    clear_patterns(&config->ranks);
    clear_patterns(&config->alphas);
    sgm__matcher_free(&config->matcher);
}

/* --- settings --- */

/* What has no say in what adapters compute, says how they were made, or which matrices were to have some or
 * to be trained whole: the tensors say which ones did. */
static bool is_irrelevant(const char *key)
{
    static const char *const keys[] = {
        "auto_mapping",      "base_model_name_or_path",
        "eva_config",        "exclude_modules",
        "fan_in_fan_out",    "inference_mode",
        "layers_pattern",    "layers_to_transform",
        "modules_to_save",   "megatron_config",
        "megatron_core",     "peft_version",
        "qalora_group_size", "revision",
        "runtime_config",    "target_modules",
        "task_type",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* null, false, {} and the like, by which an extension of PEFT is not used. */
static bool is_absent(const json_t *value)
{
    return json_is_null(value) || json_is_false(value) ||
           ((json_is_array(value) || json_is_object(value)) && json_array_size(value) == 0 &&
            json_object_size(value) == 0);
}

/* First values that leave the model's own weights as they are; with others, such as pissa, these change. */
static bool is_plain_start(const json_t *value)
{
    static const char *const plain[] = {"gaussian", "eva", "orthogonal"};
    const char *text = json_string_value(value);
    for (size_t i = 0; i < sizeof plain / sizeof *plain && text != NULL; i++)
        if (strcmp(text, plain[i]) == 0)
            return true;
    return json_is_boolean(value);
}

/* What is asked for beyond A and B. */
static sgm_status read_extension(const sgm__peft_config *c, const char *key, const json_t *value)
{
    static const struct {
        const char *key, *problem;
    } known[] = {
        {"use_dora", "asks for DoRA, which scales columns by what it has learnt besides"},
        {"lora_bias", "gives adapters biases, which are not read"},
        {"target_parameters", "adapts parameters that are no module's weight, which is not done here"},
        {"trainable_token_indices", "has tokens whose vectors were trained, which are not read"},
        {"layer_replication", "uses layers several times, which the model here does not"},
    };
    if (is_absent(value) || is_irrelevant(key))
        return SGM_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].key, key) == 0)
            return fail_unsupported(c, key, known[i].problem);
    return fail_unsupported(c, key, "is not known here");
}

static sgm_status read_kind(const sgm__peft_config *c, const char *key, const json_t *value)
{
    const char *text = json_string_value(value);
    if (strcmp(key, "peft_type") == 0)
        return text != NULL && strcmp(text, "LORA") == 0 ? SGM_OK : fail_unsupported(c, key, "is not LORA");
    if (strcmp(key, "bias") == 0)
        return text != NULL && strcmp(text, "none") == 0
                   ? SGM_OK
                   : fail_unsupported(c, key, "is not none: biases that were trained are not read");
    if (strcmp(key, "init_lora_weights") == 0)
        return is_plain_start(value)
                   ? SGM_OK
                   : fail_unsupported(c, key, "is of adapters that change the weights of the model, too");
    return read_extension(c, key, value);
}

static sgm_status read_setting(sgm__peft_config *c, const char *key, json_t *value)
{
    if (strcmp(key, "r") == 0) {
        c->rank = json_integer_value(value);
        return is_rank(value) ? SGM_OK : fail_setting(c, key, "is no rank");
    }
    if (strcmp(key, "lora_alpha") == 0) {
        c->alpha = json_number_value(value);
        return is_alpha(value) ? SGM_OK : fail_setting(c, key, "is no number above 0");
    }
    if (strcmp(key, "lora_dropout") == 0) {
        c->dropout = json_number_value(value);
        return json_is_number(value) && c->dropout >= 0 && c->dropout < 1
                   ? SGM_OK
                   : fail_setting(c, key, "is no number from 0 to below 1");
    }
    if (strcmp(key, "use_rslora") == 0) {
        c->stabilised = json_is_true(value);
        return json_is_boolean(value) ? SGM_OK : fail_setting(c, key, "is neither true nor false");
    }
    if (strcmp(key, "rank_pattern") == 0)
        return read_patterns(c, key, value, is_rank, &c->ranks);
    if (strcmp(key, "alpha_pattern") == 0)
        return read_patterns(c, key, value, is_alpha, &c->alphas);
    return read_kind(c, key, value);
}

sgm_status sgm__peft_config_read(sgm__peft_config *config, const char *folder)
{
    json_t *json, *value;
    const char *key;
    config->folder = folder;
    SGM__TRY(sgm__folder_json(folder, SGM__PEFT_CONFIG, &json));
    sgm_status status = SGM_OK;
    if (!json_is_object(json))
        status = sgm_fail(SGM_ERROR_FORMAT, "'%s/" SGM__PEFT_CONFIG "': an object, {...}, is wanted", folder);
    json_object_foreach(json, key, value)
    {
        if (status == SGM_OK)
            status = read_setting(config, key, value);
    }
    json_decref(json);
    if (status == SGM_OK && (config->rank == 0 || config->alpha == 0))
        status = fail_setting(config, config->rank == 0 ? "r" : "lora_alpha", "is missing");
    return status;
}
