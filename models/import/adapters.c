/* Low-rank adapters in a folder as the library PEFT writes it: adapter_config.json says how large they are,
 * adapter_model.safetensors has A (rank, inputs) and B (outputs, rank) of each matrix.
 *
 * All matrices of one row of the architecture's table, and of one part where several lie side by side, get
 * one statement lora(...) in the network, if their ranks and alphas are equal. Which matrices have adapters
 * is said by the tensors; "target_modules" and "layers_to_transform" are not needed.
 *
 * Layers of classes, which were trained whole beside the adapters, are there as they are
 * ("modules_to_save"), and are trained here, too (train=...). */
#include "import/peft_config.h"
#include "import/pretrained.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that a text in the notation may have. */
#define LONGEST_TEXT 100

/* The two tensors of one part of a parameter, and what the settings say of it. */
typedef struct pair {
    const sgm__made *made;
    size_t part;
    size_t a, b; /* in the file */
    int64_t rank;
    double alpha;
} pair;

/* The tensor of a parameter that was trained whole. */
typedef struct whole {
    const sgm__made *made;
    size_t tensor; /* in the file */
} whole;

typedef struct reading {
    sgm_pretrained *p;
    const char *folder;
    sgm__peft_config config;
    sgm_tensor_file *file;
    pair *pairs;
    size_t count; /* of `pairs`, which has room for all parts */
    whole *wholes;
    size_t whole_count; /* of `wholes`, which has room for all parameters */
} reading;

/* --- adapter_model.safetensors --- */

/* The number of a tensor in the file, by a name that is freed; SIZE_MAX: there is none. */
static size_t find_named(const reading *r, char *name)
{
    sgm_tensor_entry entry;
    size_t found = SIZE_MAX;
    for (size_t i = 0; name != NULL && found == SIZE_MAX && sgm_tensor_file_entry(r->file, i, &entry); i++)
        if (strcmp(entry.name, name) == 0)
            found = i;
    free(name);
    return found;
}

static size_t find_tensor(const reading *r, const char *module, char side)
{
    return find_named(r, sgm__new_text(SGM__PEFT_PREFIX "%s.lora_%c.weight", module, side));
}

static sgm_status check_shape(const reading *r, size_t tensor, sgm_shape shape, const char *by)
{
    sgm_tensor_entry entry;
    char there[128], wanted[128];
    sgm_tensor_file_entry(r->file, tensor, &entry);
    if (sgm_shape_equal(&shape, &entry.shape) && sgm_dtype_is_float(entry.dtype))
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_SHAPE,
        "'%s/" SGM__PEFT_WEIGHTS "': the tensor '%.100s' is %s %s, but floats of %s are wanted by %s",
        r->folder, entry.name, sgm_dtype_name(entry.dtype), sgm_shape_text(&entry.shape, there, sizeof there),
        sgm_shape_text(&shape, wanted, sizeof wanted), by);
}

/* The tensors of `module`, which is part `part` of `made`, if the file has some. */
static sgm_status find_module(reading *r, const sgm__made *made, size_t part, const char *module)
{
    int64_t start, columns = sgm__part_columns(r->p, made, part, &start);
    pair found = {made, part, .a = find_tensor(r, module, 'A'), .b = find_tensor(r, module, 'B')};
    if ((found.a == SIZE_MAX) != (found.b == SIZE_MAX))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "'%s/" SGM__PEFT_WEIGHTS "': of '%.100s' there is only one of lora_A "
                        "and lora_B",
                        r->folder, module);
    if (found.a == SIZE_MAX)
        return SGM_OK;
    SGM__TRY(sgm__peft_config_sizes(&r->config, module, &found.rank, &found.alpha));
    SGM__TRY(
        check_shape(r, found.a, sgm_shape_of(found.rank, made->shape.dims[0]), "the model and the rank"));
    SGM__TRY(check_shape(r, found.b, sgm_shape_of(columns, found.rank), "the model and the rank"));
    r->pairs[r->count++] = found;
    return SGM_OK;
}

static sgm_status find_pair(reading *r, const sgm__made *made, size_t part)
{
    char *module = sgm__weights_module(r->p, made, part);
    sgm_status status = module != NULL ? find_module(r, made, part, module) : sgm_last_status();
    free(module);
    return status;
}

static bool is_of_classes(const sgm__made *made)
{
    return made->weight->head || made->weight->before_head;
}

/* The tensor of a parameter itself, if the file has it. */
static sgm_status find_whole(reading *r, const sgm__made *made)
{
    char *name = sgm__weights_tensor(r->p, made, 0);
    size_t tensor = name != NULL ? find_named(r, sgm__new_text(SGM__PEFT_PREFIX "%s", name)) : SIZE_MAX;
    free(name);
    if (tensor == SIZE_MAX)
        return SGM_OK;
    const bool turns = made->weight->transposed && made->shape.rank == 2;
    const sgm_shape shape = turns ? sgm_shape_of(made->shape.dims[1], made->shape.dims[0]) : made->shape;
    sgm_tensor_entry entry;
    const bool has_rows = sgm_tensor_file_entry(r->file, tensor, &entry) && entry.shape.rank > 0 &&
                          entry.shape.dims[0] == shape.dims[0];
    SGM__TRY(check_shape(r, tensor, shape,
                         has_rows ? "the model; one of both is of another model"
                                  : "the model; --classes of 'sigma import' begins it with another number "
                                    "of classes"));
    r->wholes[r->whole_count++] = (whole){made, tensor};
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
        for (size_t k = 0; k < r->whole_count && !used; k++)
            used = r->wholes[k].tensor == i;
        if (!used && strstr(entry.name, ".lora_") == NULL)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "'%s/" SGM__PEFT_WEIGHTS
                            "': '%.100s' was trained whole (modules_to_save), which is read of layers of "
                            "classes alone" SGM__PEFT_REMEDY,
                            r->folder, entry.name);
        if (!used)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "'%s/" SGM__PEFT_WEIGHTS
                            "': the tensor '%.100s' is of no matrix of '%s' that has "
                            "adapters here",
                            r->folder, entry.name, r->p->path);
    }
    return SGM_OK;
}

/* Says what the file's first tensor is called, and what an adapter of the model would be. */
static sgm_status fail_others(const reading *r)
{
    const sgm_pretrained *p = r->p;
    sgm_tensor_entry entry;
    const bool has_any = sgm_tensor_file_entry(r->file, 0, &entry);
    size_t last = p->made_count;
    while (last > 0 && p->made[last - 1].shape.rank != 2)
        last--;
    char *module = last > 0 ? sgm__weights_module(p, &p->made[last - 1], 0) : NULL;
    sgm_status status = sgm_fail(
        SGM_ERROR_NOT_FOUND,
        "'%s/" SGM__PEFT_WEIGHTS
        "' has no adapters of '%s', to %s: its first tensor is '%.100s', a matrix of the model "
        "'%.100s': name the model that they were made for, and its task (--task of 'sigma import')",
        r->folder, p->path, p->description.task, has_any ? entry.name : "none", module != NULL ? module : "");
    free(module);
    return status;
}

static sgm_status find_pairs(reading *r)
{
    const sgm_pretrained *p = r->p;
    r->count = r->whole_count = 0;
    r->pairs = calloc(p->made_count * SGM__MOST_PARTS + 1, sizeof *r->pairs);
    r->wholes = calloc(p->made_count + 1, sizeof *r->wholes);
    if (r->pairs == NULL || r->wholes == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of adapters");
    for (size_t i = 0; i < p->made_count; i++)
        for (size_t part = 0; p->made[i].shape.rank == 2 && part < sgm__part_count(p->made[i].weight); part++)
            SGM__TRY(find_pair(r, &p->made[i], part));
    for (size_t i = 0; i < p->made_count; i++)
        if (is_of_classes(&p->made[i]))
            SGM__TRY(find_whole(r, &p->made[i]));
    return r->count > 0 ? check_all_used(r) : fail_others(r);
}

/* --- into the network --- */

/* Whether two pairs are in one statement. */
static bool is_alike(const pair *a, const pair *b)
{
    return a->made->weight == b->made->weight && a->part == b->part && a->rank == b->rank &&
           a->alpha == b->alpha;
}

static bool is_first(const reading *r, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (is_alike(&r->pairs[i], &r->pairs[index]))
            return false;
    return true;
}

/* Whether all blocks have a pair that is like this one. */
static bool is_everywhere(const reading *r, const pair *own)
{
    size_t wanted = 0, there = 0;
    for (size_t i = 0; i < r->p->made_count; i++)
        wanted += r->p->made[i].weight == own->made->weight;
    for (size_t i = 0; i < r->count; i++)
        there += is_alike(&r->pairs[i], own);
    return there == wanted;
}

/* ", train="classifier.weights classifier.biases"" for what was trained whole; free with free. */
static char *train_text(const reading *r)
{
    char *text = sgm__new_text("%s", r->whole_count > 0 ? ", train=\"" : "");
    for (size_t i = 0; i < r->whole_count && text != NULL; i++) {
        char *more =
            sgm__new_text("%s%s%s", text, r->wholes[i].made->name, i + 1 < r->whole_count ? " " : "\"");
        free(text);
        text = more;
    }
    return text;
}

/* lora(...) for the parameters that `patterns` match; the first one says what is trained whole. Free with
 * free. */
static char *statement_of(const reading *r, const pair *own, const char *patterns)
{
    char *train = own == r->pairs ? train_text(r) : sgm__new_text("%s", "");
    char alpha[SGM__NUMBER_TEXT], dropout[SGM__NUMBER_TEXT];
    char *columns = NULL, *statement = NULL, *stem = sgm__adapter_stem(r->p, own->made, own->part);
    int64_t start, count = sgm__part_columns(r->p, own->made, own->part, &start);
    sgm__network_number(own->alpha, alpha);
    sgm__network_number(r->config.dropout, dropout);
    bool is_one = sgm__part_count(own->made->weight) == 1;
    if (stem != NULL)
        columns = is_one ? sgm__new_text("%s", "")
                         : sgm__new_text(", columns=(%lld, %lld), name=%s", (long long)start,
                                         (long long)count, stem);
    if (columns != NULL && train != NULL)
        statement =
            sgm__new_text("lora(%lld, alpha=%s, dropout=%s, on=\"%s\"%s%s%s)", (long long)own->rank, alpha,
                          dropout, patterns, r->config.stabilised ? ", rank_stabilised" : "", columns, train);
    free(train);
    free(columns);
    free(stem);
    return statement;
}

static sgm_status add_statement(const reading *r, sgm_trainer *trainer, const pair *own, const char *patterns)
{
    char *statement = statement_of(r, own, patterns);
    sgm_status status =
        statement != NULL ? sgm_trainer_adapt(trainer, sgm_layer_parse(statement)) : SGM_ERROR_MEMORY;
    free(statement);
    return status;
}

/* "attention*.weights" for "attention#.weights" of all blocks. */
static sgm_status adapt_all(const reading *r, sgm_trainer *trainer, const pair *own)
{
    char *pattern = sgm__new_text("%s", own->made->weight->own);
    for (char *c = pattern; c != NULL && *c != '\0'; c++)
        *c = *c == '#' ? '*' : *c;
    sgm_status status = pattern != NULL ? add_statement(r, trainer, own, pattern) : SGM_ERROR_MEMORY;
    free(pattern);
    return status;
}

/* The names of the parameters, with spaces between them, in as many statements as their texts need. */
static sgm_status adapt_some(const reading *r, sgm_trainer *trainer, size_t first)
{
    char names[LONGEST_TEXT + 1] = "";
    size_t length = 0;
    for (size_t i = first; i < r->count; i++) {
        const char *name = r->pairs[i].made->name;
        if (!is_alike(&r->pairs[i], &r->pairs[first]))
            continue;
        if (length > 0 && length + 1 + strlen(name) > LONGEST_TEXT) {
            SGM__TRY(add_statement(r, trainer, &r->pairs[first], names));
            length = 0;
        }
        length +=
            (size_t)snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? " " : "", name);
    }
    return add_statement(r, trainer, &r->pairs[first], names);
}

static sgm_status adapt(const reading *r, sgm_trainer *trainer)
{
    for (size_t i = 0; i < r->count; i++)
        if (is_first(r, i))
            SGM__TRY(is_everywhere(r, &r->pairs[i]) ? adapt_all(r, trainer, &r->pairs[i])
                                                    : adapt_some(r, trainer, i));
    return sgm_trainer_prepare(trainer);
}

/* A tensor of the file, with its sides exchanged if `turns`, in the parameter's type. */
static sgm_status set(const reading *r, sgm_trainer *trainer, const char *name, size_t tensor, bool turns)
{
    sgm_tensor *old = sgm_trainer_get(trainer, name);
    sgm_tensor *read = old != NULL ? sgm_tensor_file_read(r->file, tensor) : NULL;
    sgm_tensor *turned = read == NULL ? NULL
                         : turns      ? sgm_tensor_permute(read, (const int32_t[]){1, 0})
                                      : sgm_tensor_retain(read);
    sgm_tensor *value = turned != NULL ? sgm_tensor_cast(turned, sgm_tensor_dtype(old)) : NULL;
    sgm_status status = value != NULL ? sgm_trainer_set(trainer, name, value) : sgm_last_status();
    sgm_tensor_free(value);
    sgm_tensor_free(turned);
    sgm_tensor_free(read);
    sgm_tensor_free(old);
    return status;
}

/* A or B of one part. */
static sgm_status set_side(const reading *r, sgm_trainer *trainer, const pair *own, char side)
{
    char *stem = sgm__adapter_stem(r->p, own->made, own->part), *name = NULL;
    if (stem != NULL)
        name =
            sgm__new_text("%.*s.%s_lora_%c", (int)strcspn(own->made->name, "."), own->made->name, stem, side);
    free(stem);
    sgm_status status =
        name != NULL ? set(r, trainer, name, side == 'a' ? own->a : own->b, true) : sgm_last_status();
    free(name);
    return status;
}

static sgm_status read_adapters(reading *r, sgm_trainer *trainer)
{
    SGM__TRY(sgm__peft_config_read(&r->config, r->folder));
    char *path = sgm__folder_path(r->folder, SGM__PEFT_WEIGHTS);
    r->file = path != NULL ? sgm_tensor_file_open(path) : NULL;
    free(path);
    if (r->file == NULL)
        return sgm_last_status();
    SGM__TRY(find_pairs(r));
    SGM__TRY(adapt(r, trainer));
    for (size_t i = 0; i < r->count; i++) {
        SGM__TRY(set_side(r, trainer, &r->pairs[i], 'a'));
        SGM__TRY(set_side(r, trainer, &r->pairs[i], 'b'));
    }
    for (size_t i = 0; i < r->whole_count; i++) {
        const sgm__made *made = r->wholes[i].made;
        SGM__TRY(set(r, trainer, made->name, r->wholes[i].tensor,
                     made->weight->transposed && made->shape.rank == 2));
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
    sgm__peft_config_clear(&r.config);
    free(r.pairs);
    free(r.wholes);
    return status;
}
