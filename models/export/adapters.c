/* Writes the adapters of a trainer as PEFT keeps them: the reverse of import/adapters.c.
 *
 * PEFT has one rank and one alpha for all, and patterns of the modules that have others; one dropout, and one
 * rule of scaling. Layers of classes that are trained whole (train=...) are written beside, and named by
 * "modules_to_save". An adapter of several matrices that lie side by side here becomes one for each, with the
 * same A. */
#include "import/pretrained.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What a statement of the network says. */
typedef struct statement {
    int64_t rank, first, count; /* columns; count 0: all */
    double alpha, dropout;
    bool stabilised;
} statement;

typedef struct writing {
    sgm_pretrained *p;
    sgm_trainer *trainer;
    sgm_network *network; /* a copy of the trainer's */
    statement first;      /* of the network: what it says is said of all modules that no pattern names */
    sgm_bundle *bundle;
    json_t *modules;        /* names of the matrices that have adapters */
    json_t *ranks, *alphas; /* of modules for which the first statement says others */
    json_t *whole;          /* names of the modules that were trained whole */
    bool fan_in_fan_out;    /* the model has them as (inputs, outputs), which PEFT calls so */
} writing;

/* --- what the network says --- */

static double number_of(const sgm_network *network, size_t index, const char *argument)
{
    sgm_content content = {0};
    if (sgm_network_get_adapter(network, index, argument, &content) != SGM_OK)
        return 0;
    return content.kind == SGM_KIND_INTEGER   ? (double)content.as.integer
           : content.kind == SGM_KIND_BOOLEAN ? content.as.boolean
           : content.kind == SGM_KIND_NUMBER  ? content.as.number
                                              : 0;
}

/* "" for one that was not given; free with sgm_content_clear. */
static sgm_content text_of(const sgm_network *network, size_t index, const char *argument)
{
    sgm_content content = {0};
    if (sgm_network_get_adapter(network, index, argument, &content) == SGM_OK &&
        content.kind == SGM_KIND_TEXT)
        return content;
    sgm_content_clear(&content);
    return sgm_text_content("");
}

static statement read_statement(const sgm_network *network, size_t index)
{
    statement s = {.rank = (int64_t)number_of(network, index, "rank"),
                   .alpha = number_of(network, index, "alpha"),
                   .dropout = number_of(network, index, "dropout"),
                   .stabilised = number_of(network, index, "rank_stabilised") != 0};
    sgm_content columns = text_of(network, index, "columns");
    long long first, count;
    if (sscanf(columns.as.text, "%lld, %lld", &first, &count) == 2) {
        s.first = first;
        s.count = count;
    }
    sgm_content_clear(&columns);
    if (s.alpha == 0)
        s.alpha = (double)s.rank;
    return s;
}

static sgm_status read_statements(writing *w)
{
    for (size_t i = 0; i < sgm_network_adapters(w->network); i++) {
        statement s = read_statement(w->network, i);
        if (i == 0)
            w->first = s;
        if (s.dropout != w->first.dropout || s.stabilised != w->first.stabilised)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "adapters that differ in %s cannot be written for PEFT, which has one for all: "
                            "merge them and write the whole model",
                            s.dropout != w->first.dropout ? "dropout" : "rank_stabilised");
    }
    return sgm_network_adapters(w->network) > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE, "the network of '%s' has no adapters",
                          sgm_trainer_name(w->trainer));
}

/* --- tensors --- */

static const sgm__made *find_made(const sgm_pretrained *p, const char *name)
{
    for (size_t i = 0; i < p->made_count; i++)
        if (strcmp(p->made[i].name, name) == 0)
            return &p->made[i];
    return NULL;
}

/* Adds a tensor in float32; frees the name and the tensor, of which NULL is a failure that was reported. */
static sgm_status add_floats(const writing *w, char *name, sgm_tensor *tensor)
{
    sgm_tensor *floats = tensor != NULL ? sgm_tensor_cast(tensor, SGM_FLOAT32) : NULL;
    sgm_status status =
        name != NULL && floats != NULL ? sgm_bundle_add(w->bundle, name, floats) : sgm_last_status();
    sgm_tensor_free(floats);
    sgm_tensor_free(tensor);
    free(name);
    return status;
}

/* Adds columns of a matrix with its sides exchanged. */
static sgm_status add_tensor(const writing *w, sgm_tensor *matrix, int64_t first, int64_t count,
                             const char *module, char side)
{
    char *name = sgm__new_text(SGM__PEFT_PREFIX "%s.lora_%c.weight", module, side);
    sgm_tensor *cut = sgm_tensor_slice(matrix, 1, first, first + count, 1);
    sgm_tensor *transposed = cut != NULL ? sgm_tensor_permute(cut, (const int32_t[]){1, 0}) : NULL;
    sgm_tensor_free(cut);
    return add_floats(w, name, transposed);
}

/* The adapter of one module: its tensors, its name, and its rank and alpha where the first ones differ.
 * Columns of B from `first` on are the module's. */
static sgm_status add_module(const writing *w, const char *module, const statement *s, sgm_tensor *a,
                             sgm_tensor *b, int64_t first, int64_t columns)
{
    SGM__TRY(add_tensor(w, a, 0, s->rank, module, 'A'));
    SGM__TRY(add_tensor(w, b, first, columns, module, 'B'));
    bool failed = json_array_append_new(w->modules, json_string(module)) != 0;
    if (s->rank != w->first.rank)
        failed |= json_object_set_new(w->ranks, module, json_integer((json_int_t)s->rank)) != 0;
    if (s->alpha != w->first.alpha)
        failed |= json_object_set_new(w->alphas, module, json_real(s->alpha)) != 0;
    return failed ? sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of adapters") : SGM_OK;
}

/* The matrices of a parameter that lie within the columns of an adapter. */
static sgm_status add_parts(writing *w, const sgm__made *made, const statement *s, sgm_tensor *a,
                            sgm_tensor *b)
{
    int64_t end = s->first + (s->count > 0 ? s->count : made->shape.dims[1]);
    for (size_t part = 0; part < sgm__part_count(made->weight); part++) {
        int64_t start, columns = sgm__part_columns(w->p, made, part, &start);
        if (start >= end || start + columns <= s->first)
            continue;
        if (start < s->first || start + columns > end)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "an adapter of columns %lld to %lld of '%s' has only some of '%s': it cannot be "
                            "written for PEFT",
                            (long long)s->first, (long long)end - 1, made->name, made->parts[part]->name);
        char *module = sgm__weights_module(w->p, made, part);
        sgm_status status =
            module != NULL ? add_module(w, module, s, a, b, start - s->first, columns) : sgm_last_status();
        free(module);
        SGM__TRY(status);
    }
    w->fan_in_fan_out = !made->weight->transposed;
    return SGM_OK;
}

/* `a` is the parameter A of an adapter, whose B has a name with another last letter. */
static sgm_status add_adapter(writing *w, const sgm_parameter *a)
{
    const sgm__made *made = find_made(w->p, a->adapts);
    if (made == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "'%s' is no parameter of the model: its adapters cannot be written", a->adapts);
    statement s = read_statement(w->network, a->adapter);
    char *name = sgm__new_text("%s", a->name);
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    sgm_tensor *left = sgm_trainer_get(w->trainer, name);
    name[strlen(name) - 1] = 'b';
    sgm_tensor *right = sgm_trainer_get(w->trainer, name);
    sgm_status status =
        left != NULL && right != NULL ? add_parts(w, made, &s, left, right) : sgm_last_status();
    sgm_tensor_free(right);
    sgm_tensor_free(left);
    free(name);
    return status;
}

/* Which module PEFT keeps a copy of: a head of classes by the name that it knows heads by, which may have
 * several modules in it, others alone. Shortens the name of a tensor, "classifier.dense.weight". */
static void shorten_to_module(char *name)
{
    const char *head = "classifier.";
    char *end = strncmp(name, head, strlen(head)) == 0 ? strchr(name, '.') : strrchr(name, '.');
    if (end != NULL)
        *end = '\0';
}

static bool has_text(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
            return true;
    return false;
}

/* A tensor under its own name, and its module in the list. */
static sgm_status add_named(const writing *w, const sgm__made *made, sgm_tensor *value, char *module)
{
    char *name = sgm__new_text(SGM__PEFT_PREFIX "%s", module);
    bool turns = made->weight->transposed && made->shape.rank == 2;
    sgm_tensor *turned =
        turns ? sgm_tensor_permute(value, (const int32_t[]){1, 0}) : sgm_tensor_retain(value);
    sgm_status status = add_floats(w, name, turned);
    shorten_to_module(module);
    if (status == SGM_OK && !has_text(w->whole, module) &&
        json_array_append_new(w->whole, json_string(module)) != 0)
        status = sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of modules");
    return status;
}

/* A parameter that is trained beside the adapters: one of the layers of classes. */
static sgm_status add_whole(const writing *w, const sgm_parameter *parameter)
{
    const sgm__made *made = find_made(w->p, parameter->name);
    if (made == NULL || (!made->weight->head && !made->weight->before_head))
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s' is trained beside the adapters (train=...), which is written for PEFT of layers "
            "of classes alone: merge the adapters and write the whole model",
            parameter->name);
    char *module = sgm__weights_tensor(w->p, made, 0);
    sgm_tensor *value = module != NULL ? sgm_trainer_get(w->trainer, parameter->name) : NULL;
    sgm_status status = value != NULL ? add_named(w, made, value, module) : sgm_last_status();
    sgm_tensor_free(value);
    free(module);
    return status;
}

static sgm_status add_adapters(writing *w)
{
    size_t count;
    SGM__TRY(sgm_trainer_prepare(w->trainer));
    const sgm_parameter *parameters = sgm_trainer_parameters(w->trainer, &count);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(parameters[i].name);
        if (parameters[i].adapts == NULL && parameters[i].trainable && !parameters[i].frozen)
            SGM__TRY(add_whole(w, &parameters[i]));
        if (parameters[i].adapts != NULL && length > 7 &&
            strcmp(parameters[i].name + length - 7, "_lora_a") == 0)
            SGM__TRY(add_adapter(w, &parameters[i]));
    }
    return SGM_OK;
}

/* --- files --- */

/* By the model's task, what PEFT calls the class that it is read into. */
static json_t *task_of(const sgm_pretrained *p)
{
    const char *task = p->description.task;
    return strcmp(task, "generate") == 0   ? json_string("CAUSAL_LM")
           : strcmp(task, "classify") == 0 ? json_string("SEQ_CLS")
           : strcmp(task, "embed") == 0    ? json_string("FEATURE_EXTRACTION")
                                           : json_null();
}

/* The matrices are named one by one, as a last part such as "dense" may be that of others, too. */
static sgm_status write_config(const writing *w, const char *folder)
{
    json_t *config = json_pack("{s:s, s:o, s:O*, s:n, s:b, s:I, s:f, s:O, s:O, s:f, s:O, s:s, s:b, s:b}",
                               "peft_type", "LORA", "task_type", task_of(w->p), "modules_to_save",
                               json_array_size(w->whole) > 0 ? w->whole : NULL, "base_model_name_or_path",
                               "inference_mode", 1, "r", (json_int_t)w->first.rank, "lora_alpha",
                               w->first.alpha, "rank_pattern", w->ranks, "alpha_pattern", w->alphas,
                               "lora_dropout", w->first.dropout, "target_modules", w->modules, "bias", "none",
                               "fan_in_fan_out", w->fan_in_fan_out, "use_rslora", w->first.stabilised);
    char *text = config != NULL ? json_dumps(config, JSON_INDENT(2)) : NULL;
    sgm_status status = text != NULL ? sgm__write_file(folder, SGM__PEFT_CONFIG, text, strlen(text))
                                     : sgm_fail(SGM_ERROR_MEMORY, "no memory for " SGM__PEFT_CONFIG);
    free(text);
    json_decref(config);
    return status;
}

/* What a run calls its classes, PEFT has no place for. */
static sgm_status write_classes(const sgm_pretrained *p, const char *folder)
{
    json_t *names = json_array();
    bool failed = names == NULL;
    const char *name;
    for (int64_t i = 0; !failed && (name = sgm_pretrained_class(p, i)) != NULL; i++)
        failed = json_array_append_new(names, json_string(name)) != 0;
    const bool has_all = !failed && (int64_t)json_array_size(names) == p->description.classes;
    char *text = has_all ? json_dumps(names, JSON_INDENT(2)) : NULL;
    sgm_status status = text != NULL        ? sgm__write_file(folder, SGM__PEFT_CLASSES, text, strlen(text))
                        : failed || has_all ? sgm_fail(SGM_ERROR_MEMORY, "no memory for " SGM__PEFT_CLASSES)
                                            : SGM_OK; /* some have no names */
    free(text);
    json_decref(names);
    return status;
}

static sgm_status write_folder(writing *w, const char *folder)
{
    SGM__TRY(read_statements(w));
    SGM__TRY(sgm_bundle_set_text(w->bundle, "format", "pt"));
    SGM__TRY(add_adapters(w));
    if (sgm__folder_has(folder, SGM__PEFT_CONFIG))
        return sgm_fail(SGM_ERROR_FILE, "'%s' has an " SGM__PEFT_CONFIG " already; choose another folder",
                        folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return sgm_fail(SGM_ERROR_FILE, "cannot make '%s': %s", folder, strerror(errno));
    char *path = sgm__new_text("%s/" SGM__PEFT_WEIGHTS, folder);
    sgm_status status = path != NULL ? sgm_bundle_save(w->bundle, path) : SGM_ERROR_MEMORY;
    free(path);
    if (status == SGM_OK && json_array_size(w->whole) > 0 && w->p->description.classes > 0)
        status = write_classes(w->p, folder);
    return status == SGM_OK ? write_config(w, folder) : status;
}

sgm_status sgm_pretrained_export_adapters(sgm_pretrained *p, sgm_trainer *trainer, const char *folder)
{
    if (p == NULL || trainer == NULL || folder == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "writing adapters needs their model, a trainer and a folder, got NULL");
    char *network = sgm_trainer_network(trainer);
    writing w = {.p = p,
                 .trainer = trainer,
                 .network = network != NULL ? sgm_network_parse(network) : NULL,
                 .bundle = sgm_bundle_create(),
                 .modules = json_array(),
                 .ranks = json_object(),
                 .alphas = json_object(),
                 .whole = json_array()};
    bool made = w.network != NULL && w.bundle != NULL && w.modules != NULL && w.ranks != NULL &&
                w.alphas != NULL && w.whole != NULL;
    sgm_status status = made ? SGM_OK : SGM_ERROR_MEMORY;
    if (network == NULL)
        status = sgm_fail(SGM_ERROR_STATE, "the trainer has no network, so it has no adapters");
    if (status == SGM_OK)
        status = write_folder(&w, folder);
    json_decref(w.whole);
    json_decref(w.alphas);
    json_decref(w.ranks);
    json_decref(w.modules);
    sgm_bundle_free(w.bundle);
    sgm_network_free(w.network);
    sgm_string_free(network);
    return status;
}
