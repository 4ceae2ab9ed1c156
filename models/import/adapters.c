/* Low-rank adapters in a folder as the library PEFT writes it: adapter_config.json says how large they are,
 * adapter_model.safetensors has A (rank, inputs) and B (outputs, rank) of each matrix.
 *
 * All matrices of one row of the architecture's table, and of one part where several lie side by side, get
 * one statement lora(...) in the network. So either all blocks have adapters of a part, or none has. Which
 * parts these are is said by the tensors; "target_modules" is not needed. */
#include "import/pretrained.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What adapter_config.json says of all adapters. */
typedef struct settings {
    int64_t rank;
    double alpha, dropout;
    bool stabilised;
} settings;

/* The two tensors of one part of a parameter. */
typedef struct pair {
    const sgm__made *made;
    size_t part;
    size_t a, b; /* in the file */
} pair;

typedef struct reading {
    sgm_pretrained *p;
    const char *folder;
    settings s;
    sgm_tensor_file *file;
    pair *pairs;
    size_t count, tensors; /* of `pairs`, which has room for all parts; of the file */
} reading;

/* --- adapter_config.json --- */

static sgm_status fail_setting(const reading *r, const char *key, const char *problem)
{
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "'%s/" SGM__PEFT_CONFIG "': '%.60s' %s", r->folder, key, problem);
}

/* What has no say in what adapters compute, or says how they were made. */
static bool is_irrelevant(const char *key)
{
    static const char *const keys[] = {"auto_mapping",      "base_model_name_or_path",
                                       "exclude_modules",   "fan_in_fan_out",
                                       "inference_mode",    "megatron_config",
                                       "megatron_core",     "peft_version",
                                       "qalora_group_size", "revision",
                                       "runtime_config",    "target_modules",
                                       "task_type"};
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

static sgm_status read_setting(reading *r, const char *key, const json_t *value)
{
    const char *text = json_string_value(value);
    double number = json_number_value(value);
    if (strcmp(key, "r") == 0) {
        r->s.rank = json_integer_value(value);
        return r->s.rank >= 1 && r->s.rank <= SGM__LARGEST_SIZE ? SGM_OK : fail_setting(r, key, "is no rank");
    }
    if (strcmp(key, "lora_alpha") == 0) {
        r->s.alpha = number;
        return number > 0 && number < 1e9 ? SGM_OK : fail_setting(r, key, "is no number above 0");
    }
    if (strcmp(key, "lora_dropout") == 0) {
        r->s.dropout = number;
        return json_is_number(value) && number >= 0 && number < 1
                   ? SGM_OK
                   : fail_setting(r, key, "is no number from 0 to below 1");
    }
    if (strcmp(key, "use_rslora") == 0) {
        r->s.stabilised = json_is_true(value);
        return json_is_boolean(value) ? SGM_OK : fail_setting(r, key, "is neither true nor false");
    }
    if (strcmp(key, "peft_type") == 0)
        return text != NULL && strcmp(text, "LORA") == 0 ? SGM_OK : fail_setting(r, key, "is not LORA");
    if (strcmp(key, "bias") == 0)
        return text != NULL && strcmp(text, "none") == 0
                   ? SGM_OK
                   : fail_setting(r, key, "is not none: biases that were trained are not read");
    /* Others, such as pissa, change the model's own weights as well. */
    if (strcmp(key, "init_lora_weights") == 0)
        return json_is_boolean(value) || (text != NULL && strcmp(text, "gaussian") == 0)
                   ? SGM_OK
                   : fail_setting(r, key, "is of adapters that change the weights of the model, too");
    return is_irrelevant(key) || is_absent(value) ? SGM_OK : fail_setting(r, key, "is not known here");
}

static sgm_status read_settings(reading *r)
{
    json_t *config, *value;
    const char *key;
    sgm_status status = sgm__folder_json(r->folder, SGM__PEFT_CONFIG, &config);
    SGM__TRY(status);
    if (!json_is_object(config))
        status =
            sgm_fail(SGM_ERROR_FORMAT, "'%s/" SGM__PEFT_CONFIG "': an object, {...}, is wanted", r->folder);
    json_object_foreach(config, key, value)
    {
        if (status == SGM_OK)
            status = read_setting(r, key, value);
    }
    json_decref(config);
    if (status == SGM_OK && (r->s.rank == 0 || r->s.alpha == 0))
        status = fail_setting(r, r->s.rank == 0 ? "r" : "lora_alpha", "is missing");
    return status;
}

/* --- adapter_model.safetensors --- */

/* The number of a tensor in the file; SIZE_MAX: there is none. */
static size_t find_tensor(const reading *r, const char *module, char side)
{
    sgm_tensor_entry entry;
    char *name = sgm__new_text(SGM__PEFT_PREFIX "%s.lora_%c.weight", module, side);
    size_t found = SIZE_MAX;
    for (size_t i = 0; name != NULL && found == SIZE_MAX && sgm_tensor_file_entry(r->file, i, &entry); i++)
        if (strcmp(entry.name, name) == 0)
            found = i;
    free(name);
    return found;
}

static sgm_status check_shape(const reading *r, size_t tensor, int64_t rows, int64_t columns)
{
    sgm_tensor_entry entry;
    char there[128], wanted[128];
    sgm_shape shape = sgm_shape_of(rows, columns);
    sgm_tensor_file_entry(r->file, tensor, &entry);
    if (sgm_shape_equal(&shape, &entry.shape) && sgm_dtype_is_float(entry.dtype))
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_SHAPE,
        "'%s/" SGM__PEFT_WEIGHTS "': the tensor '%.100s' is %s %s, but floats of %s are wanted by "
        "the model and the rank",
        r->folder, entry.name, sgm_dtype_name(entry.dtype), sgm_shape_text(&entry.shape, there, sizeof there),
        sgm_shape_text(&shape, wanted, sizeof wanted));
}

/* Adds the adapters of a part, if the file has some. */
static sgm_status find_pair(reading *r, const sgm__made *made, size_t part)
{
    int64_t start, columns = sgm__part_columns(r->p, made, part, &start);
    char *module = sgm__weights_module(r->p, made, part);
    if (module == NULL)
        return sgm_last_status();
    size_t a = find_tensor(r, module, 'A'), b = find_tensor(r, module, 'B');
    sgm_status status = SGM_OK;
    if ((a == SIZE_MAX) != (b == SIZE_MAX))
        status = sgm_fail(SGM_ERROR_FORMAT,
                          "'%s/" SGM__PEFT_WEIGHTS "': of '%.100s' there is only one of lora_A "
                          "and lora_B",
                          r->folder, module);
    free(module);
    if (a == SIZE_MAX || status != SGM_OK)
        return status;
    SGM__TRY(check_shape(r, a, r->s.rank, made->shape.dims[0]));
    SGM__TRY(check_shape(r, b, columns, r->s.rank));
    r->pairs[r->count++] = (pair){made, part, a, b};
    return SGM_OK;
}

/* Tensors that are of no matrix here would be lost. */
static sgm_status check_all_used(const reading *r)
{
    sgm_tensor_entry entry;
    for (size_t i = 0; sgm_tensor_file_entry(r->file, i, &entry); i++) {
        bool used = false;
        for (size_t k = 0; k < r->count && !used; k++)
            used = r->pairs[k].a == i || r->pairs[k].b == i;
        if (!used)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "'%s/" SGM__PEFT_WEIGHTS
                            "': the tensor '%.100s' is of no matrix of '%s' that has "
                            "adapters here",
                            r->folder, entry.name, r->p->path);
    }
    return SGM_OK;
}

static sgm_status find_pairs(reading *r)
{
    const sgm_pretrained *p = r->p;
    r->pairs = calloc(p->made_count * SGM__MOST_PARTS + 1, sizeof *r->pairs);
    if (r->pairs == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of adapters");
    for (size_t i = 0; i < p->made_count; i++)
        for (size_t part = 0; p->made[i].shape.rank == 2 && part < sgm__part_count(p->made[i].weight); part++)
            SGM__TRY(find_pair(r, &p->made[i], part));
    if (r->count == 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "'%s/" SGM__PEFT_WEIGHTS "' has no adapters of '%s'", r->folder,
                        p->path);
    return check_all_used(r);
}

/* --- into the network --- */

/* Whether a pair is the first one of its row and part; and all blocks of that row must have one, too. */
static sgm_status is_first(const reading *r, size_t index, bool *first)
{
    const pair *own = &r->pairs[index];
    size_t wanted = 0, there = 0;
    *first = true;
    for (size_t i = 0; i < r->p->made_count; i++)
        wanted += r->p->made[i].weight == own->made->weight;
    for (size_t i = 0; i < r->count; i++)
        if (r->pairs[i].made->weight == own->made->weight && r->pairs[i].part == own->part) {
            *first &= i >= index;
            there++;
        }
    if (there == wanted)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "'%s/" SGM__PEFT_WEIGHTS
                    "': %zu of %zu matrices like '%.100s' have adapters; all or none "
                    "must have some",
                    r->folder, there, wanted, own->made->parts[own->part]->name);
}

/* "attention*.weights" for "attention#.weights"; free with free. */
static char *pattern_of(const sgm__weight *weight)
{
    char *pattern = sgm__new_text("%s", weight->own);
    for (char *c = pattern; c != NULL && *c != '\0'; c++)
        *c = *c == '#' ? '*' : *c;
    return pattern;
}

/* lora(...) for all parameters of a pair's row and part; free with free. */
static char *statement_of(const reading *r, const pair *own)
{
    char alpha[SGM__NUMBER_TEXT], dropout[SGM__NUMBER_TEXT], *pattern = pattern_of(own->made->weight);
    char *columns = NULL, *statement = NULL, *stem = sgm__adapter_stem(r->p, own->made, own->part);
    int64_t start, count = sgm__part_columns(r->p, own->made, own->part, &start);
    sgm__network_number(r->s.alpha, alpha);
    sgm__network_number(r->s.dropout, dropout);
    bool whole = sgm__part_count(own->made->weight) == 1;
    if (stem != NULL)
        columns = whole ? sgm__new_text("%s", "")
                        : sgm__new_text(", columns=(%lld, %lld), name=%s", (long long)start, (long long)count,
                                        stem);
    if (pattern != NULL && columns != NULL)
        statement =
            sgm__new_text("lora(%lld, alpha=%s, dropout=%s, on=\"%s\"%s%s)", (long long)r->s.rank, alpha,
                          dropout, pattern, r->s.stabilised ? ", rank_stabilised" : "", columns);
    free(columns);
    free(stem);
    free(pattern);
    return statement;
}

static sgm_status adapt(const reading *r, sgm_trainer *trainer)
{
    for (size_t i = 0; i < r->count; i++) {
        bool first;
        SGM__TRY(is_first(r, i, &first));
        char *statement = first ? statement_of(r, &r->pairs[i]) : NULL;
        sgm_status status = SGM_OK;
        if (first)
            status =
                statement != NULL ? sgm_trainer_adapt(trainer, sgm_layer_parse(statement)) : SGM_ERROR_MEMORY;
        free(statement);
        SGM__TRY(status);
    }
    return sgm_trainer_prepare(trainer);
}

/* One tensor, with its sides exchanged, in the parameter's type. */
static sgm_status set(const reading *r, sgm_trainer *trainer, const pair *own, char side)
{
    char *stem = sgm__adapter_stem(r->p, own->made, own->part), *name = NULL;
    if (stem != NULL)
        name =
            sgm__new_text("%.*s.%s_lora_%c", (int)strcspn(own->made->name, "."), own->made->name, stem, side);
    free(stem);
    sgm_tensor *old = name != NULL ? sgm_trainer_get(trainer, name) : NULL;
    sgm_tensor *read = old != NULL ? sgm_tensor_file_read(r->file, side == 'a' ? own->a : own->b) : NULL;
    sgm_tensor *transposed = read != NULL ? sgm_tensor_permute(read, (const int32_t[]){1, 0}) : NULL;
    sgm_tensor *value = transposed != NULL ? sgm_tensor_cast(transposed, sgm_tensor_dtype(old)) : NULL;
    sgm_status status = value != NULL ? sgm_trainer_set(trainer, name, value) : sgm_last_status();
    sgm_tensor_free(value);
    sgm_tensor_free(transposed);
    sgm_tensor_free(read);
    sgm_tensor_free(old);
    free(name);
    return status;
}

static sgm_status read_adapters(reading *r, sgm_trainer *trainer)
{
    SGM__TRY(read_settings(r));
    char *path = sgm__folder_path(r->folder, SGM__PEFT_WEIGHTS);
    r->file = path != NULL ? sgm_tensor_file_open(path) : NULL;
    free(path);
    if (r->file == NULL)
        return sgm_last_status();
    SGM__TRY(find_pairs(r));
    SGM__TRY(adapt(r, trainer));
    for (size_t i = 0; i < r->count; i++) {
        SGM__TRY(set(r, trainer, &r->pairs[i], 'a'));
        SGM__TRY(set(r, trainer, &r->pairs[i], 'b'));
    }
    return SGM_OK;
}

sgm_status sgm_pretrained_adapt(sgm_pretrained *p, sgm_trainer *trainer, const char *folder)
{
    if (p == NULL || trainer == NULL || folder == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "adapters need their model, a trainer and a folder, got NULL");
    reading r = {.p = p, .folder = folder};
    sgm_status status = read_adapters(&r, trainer);
    sgm_tensor_file_close(r.file);
    free(r.pairs);
    return status;
}
