/* Models of others: opening a folder, and giving its network and parameters to a trainer. */
#include "import/pretrained.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- opening --- */

static sgm_status read_options(sgm_pretrained_options *options, const sgm_pretrained_options *given)
{
    SGM__TRY(sgm__take_options(options, sizeof *options, given));
    if (options->context < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a context of %lld steps is wanted; at least 1 is possible",
                        (long long)options->context);
    if (options->classes < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%lld classes are wanted; at least 1 is possible",
                        (long long)options->classes);
    for (int64_t i = 0; options->class_names != NULL && i < options->classes; i++)
        if (options->class_names[i] == NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%lld classes are wanted, and %lld have names",
                            (long long)options->classes, (long long)i);
    return SGM_OK;
}

/* All architectures, with commas between them; free with free. */
static char *known_architectures(void)
{
    char *all = NULL;
    size_t size;
    FILE *text = open_memstream(&all, &size);
    for (size_t i = 0; text != NULL && sgm_architecture_at(i) != NULL; i++)
        fprintf(text, "%s%s", i > 0 ? ", " : "", sgm_architecture_at(i));
    if (text != NULL)
        fclose(text);
    return all;
}

static sgm_status find_architecture(sgm_pretrained *p)
{
    if (!json_is_object(p->config))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': an object, {...}, is wanted", p->settings);
    const json_t *type = json_object_get(p->config, "model_type");
    if (!json_is_string(type))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': 'model_type' is missing or no text", p->settings);
    const sgm__architecture *a;
    for (size_t i = 0; (a = sgm__architecture_at(i)) != NULL; i++)
        if (strcmp(a->type, json_string_value(type)) == 0) {
            p->architecture = a;
            return SGM_OK;
        }
    char *all = known_architectures();
    sgm_status status =
        sgm_fail(SGM_ERROR_UNSUPPORTED, "'%s': the architecture '%.60s' is not known; these are: %s",
                 p->settings, json_string_value(type), all != NULL ? all : "");
    free(all);
    return status;
}

/* How many numbers all tensors have; enough, where that cannot be counted. */
static int64_t count_elements(const sgm_pretrained *p)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->stored_count; i++) {
        int64_t count = sgm_shape_elements(&p->stored[i].shape);
        if (count < 0 || __builtin_add_overflow(sum, count, &sum))
            return INT64_MAX;
    }
    return sum;
}

/* Where a method has packed numbers into whole ones, tensors have names and shapes of its own; where
 * config.json names a method, but all numbers are floats, they are the model's. */
static sgm_status refuse_packed(const sgm_pretrained *p)
{
    const json_t *packed = json_object_get(p->config, "quantization_config");
    const char *method = json_string_value(json_object_get(packed, "quant_method"));
    for (size_t i = 0; json_is_object(packed) && i < p->stored_count; i++)
        if (!sgm_dtype_is_float(p->stored[i].dtype) && strstr(p->stored[i].name, "position_ids") == NULL)
            return sgm_fail(
                SGM_ERROR_UNSUPPORTED,
                "'%s': 'quantization_config' says that tensors are packed (%.40s), as '%.100s' is: "
                "take the model's folder with floats, or a file of GGUF",
                p->settings, method != NULL ? method : "no method is named", p->stored[i].name);
    return SGM_OK;
}

/* transformers computes with adapters that lie beside the weights. */
static sgm_status refuse_adapters(const sgm_pretrained *p)
{
    if (p->gguf != NULL || p->kept || !sgm__folder_has(p->path, SGM__PEFT_CONFIG))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "'%s/" SGM__PEFT_CONFIG
                    "' says that the model has adapters of PEFT beside its weights: 'sigma import %s --peft "
                    "%s' takes both; without the file the model is the weights alone",
                    p->path, p->path, p->path);
}

/* Writes the network by what config.json says. */
static sgm_status describe(sgm_pretrained *p, const sgm_pretrained_options *options)
{
    sgm__description *d = &p->description;
    sgm__description sentences = {.pooling = "mean"};
    SGM__TRY(sgm__sentences_read(p, &sentences));
    char *processor_path = sgm__new_text("%s/preprocessor_config.json", p->path);
    if (processor_path == NULL)
        return SGM_ERROR_MEMORY;
    char kept_task[sizeof d->task];
    memcpy(kept_task, d->task, sizeof kept_task); /* of the run, where the folder is one of a run */
    const char *wanted_task =
        options->task != NULL || options->classes > 0 || kept_task[0] == '\0' ? options->task : kept_task;
    *d = (sgm__description){.config = p->config,
                            .processor = p->processor,
                            .gguf = p->gguf_architecture,
                            .path = p->settings,
                            .processor_path = processor_path,
                            .wanted_task = wanted_task,
                            .wanted_context = options->context,
                            .pairs = options->pairs,
                            .wanted_classes = options->classes,
                            .wanted_names = options->class_names,
                            .elements = count_elements(p),
                            .normalised = sentences.normalised,
                            .pooling = sentences.pooling,
                            .usual_context = sentences.usual_context,
                            .tensor_count = (int64_t)p->stored_count,
                            .text = open_memstream(&p->network, &p->network_size)};
    if (d->text == NULL)
        d->status = sgm_fail(SGM_ERROR_MEMORY, "no memory for the network");
    else
        p->architecture->describe(d);
    if (d->text != NULL && fclose(d->text) != 0 && d->status == SGM_OK)
        d->status = sgm_fail(SGM_ERROR_MEMORY, "no memory for the network");
    d->text = NULL;
    d->path = NULL;
    d->processor_path = NULL;
    d->wanted_task = NULL;
    free(processor_path);
    if (d->status == SGM_OK && d->wanted_context > 0 && d->context == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a context of %lld steps is wanted, but '%s' is a model of pictures (%s), which has "
                        "none: leave the context out",
                        (long long)d->wanted_context, p->path, p->architecture->type);
    if (d->status == SGM_OK && d->wanted_classes > 0 && d->classes != d->wanted_classes)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "other classes are for models that classify, and '%s' is one to %s; choose the task "
                        "'classify' if its architecture has that",
                        p->path, d->task);
    if (d->status == SGM_OK && p->kept && kept_task[0] != '\0' && strcmp(kept_task, "embed") != 0 &&
        strcmp(kept_task, d->task) != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'%s' is of a run to %s, which has not all that the task '%s' needs; begin with the "
                        "folder that it was imported from",
                        p->path, kept_task, d->task);
    return d->status;
}

static sgm_status find_tokenizer(sgm_pretrained *p)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "vocab.txt", SGM__GGUF_KEPT,
                                        "tokenizer.model"};
    for (size_t i = 0; i < sizeof names / sizeof *names && p->tokenizer == NULL; i++)
        if (sgm__folder_has(p->path, names[i]) &&
            (p->tokenizer = sgm__new_text("%s/%s", p->path, names[i])) == NULL)
            return SGM_ERROR_MEMORY;
    return SGM_OK;
}

static void fill_info(sgm_pretrained *p)
{
    const sgm__description *d = &p->description;
    p->info.architecture = p->architecture->type;
    p->info.task = d->task;
    p->info.tokenizer = p->tokenizer;
    p->info.tokens = d->tokens;
    p->info.context = d->context;
    p->info.longest = d->longest;
    p->info.classes = d->classes;
    p->info.height = d->picture.height;
    p->info.width = d->picture.width;
    for (size_t i = 0; i < p->stored_count; i++)
        if (p->stored[i].used && p->stored[i].dtype == SGM_FLOAT64)
            p->info.precision = SGM_FLOAT64;
}

static bool is_there(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

static bool is_file(const char *path)
{
    struct stat information;
    return stat(path, &information) == 0 && S_ISREG(information.st_mode);
}

/* One that lies beside a config.json is mostly a part of the model. */
static sgm_status refuse_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL   ? sgm__new_text(".")
                   : slash == path ? sgm__new_text("/")
                                   : sgm__new_text("%.*s", (int)(slash - path), path);
    if (folder == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status =
        sgm__folder_has(folder, "config.json")
            ? sgm_fail(SGM_ERROR_UNSUPPORTED,
                       "'%s' is a file of the model in the folder '%s': name the folder", path, folder)
            : sgm_fail(SGM_ERROR_UNSUPPORTED,
                       "'%s' is a file, where a folder with config.json, or a file of GGUF or ONNX, is "
                       "expected; a file of tensors alone says nothing of a network: write one, and 'from: "
                       "%s' beside it, into the file of a training",
                       path, path);
    free(folder);
    return status;
}

/* Reads what a folder has, which is one of transformers, or of a run that was imported. */
static sgm_status open_folder(sgm_pretrained *p, const char *path)
{
    char *kept = sgm__new_text("%s/" SGM__KEPT_FOLDER, path);
    if (kept == NULL)
        return SGM_ERROR_MEMORY;
    p->kept = sgm__folder_has(kept, SGM__KEPT_TENSORS);
    p->path = p->kept ? kept : sgm__new_text("%s", path);
    if (!p->kept)
        free(kept);
    p->settings = p->path != NULL ? sgm__new_text("%s/config.json", p->path) : NULL;
    p->says = "config.json";
    if (p->settings == NULL)
        return SGM_ERROR_MEMORY;
    if (!p->kept && is_file(path))
        return refuse_file(path);
    if (!is_there(path))
        return sgm_fail(SGM_ERROR_NOT_FOUND,
                        "there is no folder '%s', and no file; nothing is fetched from a network: a model is "
                        "downloaded before, as by 'hf download OWNER/NAME --local-dir FOLDER'",
                        path);
    if (!sgm__folder_has(p->path, "config.json"))
        return sgm_fail(
            SGM_ERROR_NOT_FOUND,
            "there is no config.json in '%s'; a folder as the library transformers writes it is wanted%s",
            path,
            sgm__folder_has(path, SGM__CHECKPOINT) ? ", and this is a run, which sgm_model_load reads"
            : sgm__folder_has(path, "adapter_config.json")
                ? ", and this one has adapters of PEFT for a model: 'sigma import MODEL --peft FOLDER' takes "
                  "both, each "
                  "from its folder"
                : "");
    SGM__TRY(sgm__folder_json(p->path, "config.json", &p->config));
    SGM__TRY(find_architecture(p));
    SGM__TRY(sgm__folder_optional_json(p->path, "preprocessor_config.json", &p->processor));
    SGM__TRY(p->kept ? sgm__kept_open_tensors(p) : sgm__folder_open_tensors(p));
    return find_tokenizer(p);
}

static sgm_status open_gguf(sgm_pretrained *p, const char *path)
{
    SGM__TRY(sgm__gguf_open_model(p, path));
    return find_architecture(p);
}

/* Gives the cost at the network's end its argument. */
static sgm_status ignore_negative(sgm_pretrained *p)
{
    static const char cost[] = "+ softmax_cross_entropy";
    const size_t length = strlen(p->network), tail = strlen(cost);
    if (length < tail || strcmp(p->network + length - tail, cost) != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "ignore_negative is for networks that end in softmax_cross_entropy, and that of '%s' "
                        "does not",
                        p->path);
    char *network = sgm__new_text("%s(ignore_negative)", p->network);
    if (network == NULL)
        return SGM_ERROR_MEMORY;
    free(p->network);
    p->network = network;
    return SGM_OK;
}

/* Call sgm_pretrained_free also on failure. */
static sgm_status open_path(sgm_pretrained *p, const char *path, const sgm_pretrained_options *given)
{
    sgm_pretrained_options options;
    SGM__TRY(read_options(&options, given));
    if (sgm__is_onnx(path)) {
        if (options.ignore_negative)
            return sgm_fail(
                SGM_ERROR_ARGUMENT,
                "'%s' is an ONNX model, whose cost stays as the file has it; ignore_negative is for "
                "folders and files of GGUF",
                path);
        return sgm__onnx_open(p, path, &options);
    }
    SGM__TRY(sgm__is_gguf(path) ? open_gguf(p, path) : open_folder(p, path));
    SGM__TRY(refuse_packed(p));
    if (options.peft != NULL)
        SGM__TRY(sgm__peft_classes(p, &options));
    if (!options.without_adapters && options.peft == NULL)
        SGM__TRY(refuse_adapters(p));
    SGM__TRY(describe(p, &options));
    SGM__TRY(sgm__weights_pair(p));
    p->description.wanted_names = NULL; /* are in the configuration now, and were the caller's */
    fill_info(p);
    if (options.ignore_negative)
        SGM__TRY(ignore_negative(p));
    return p->kept ? sgm__run_take_adapters(p) : SGM_OK;
}

bool sgm_pretrained_is_there(const char *path)
{
    return path != NULL && (sgm__is_onnx(path) || sgm__is_gguf(path) || sgm__folder_has(path, "config.json"));
}

sgm_pretrained *sgm_pretrained_open_with(const char *path, const sgm_pretrained_options *options)
{
    if (path == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the path of the model's folder is NULL");
        return NULL;
    }
    sgm_pretrained *p = calloc(1, sizeof *p);
    if (p == NULL) {
        sgm_fail(SGM_ERROR_MEMORY, "no memory for a model");
        return NULL;
    }
    if (open_path(p, path, options) == SGM_OK)
        return p;
    sgm_pretrained_free(p);
    return NULL;
}

void sgm_pretrained_free(sgm_pretrained *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->made_count; i++)
        free(p->made[i].name);
    for (size_t i = 0; i < p->stored_count; i++)
        free(p->stored[i].name);
    for (size_t i = 0; i < p->shard_count; i++) {
        free(p->shards[i].name);
        sgm_tensor_file_close(p->shards[i].file);
    }
    sgm_tensor_file_close(p->rest);
    sgm_tensor_file_close(p->checkpoint);
    sgm__gguf_close(p->gguf);
    free(p->class_names);
    json_decref(p->peft_classes);
    json_decref(p->processor);
    json_decref(p->config);
    free(p->made);
    free(p->stored);
    free(p->shards);
    for (size_t i = 0; i < p->adapter_count; i++)
        sgm_string_free(p->adapters[i]);
    free(p->adapters);
    free(p->network);
    free(p->tokenizer);
    sgm__translated_free(&p->translated);
    free(p->settings);
    free(p->path);
    free(p);
}

const sgm_pretrained_info *sgm_pretrained_describe(const sgm_pretrained *p)
{
    return p != NULL ? &p->info : NULL;
}

const char *sgm_pretrained_network(const sgm_pretrained *p)
{
    return p != NULL ? p->network : NULL;
}

/* --- loading --- */

/* Whether this is the parameter, or the codes of it, which sgm_trainer_set makes. */
static bool is_parameter(const sgm_parameter *parameter, const char *name)
{
    return strcmp(parameter->name, name) == 0 ||
           (parameter->quantizes != NULL && strcmp(parameter->quantizes, name) == 0);
}

/* The type of a parameter of the trainer, which must have it in this shape; of one that is kept as 8 bits,
 * that of its scales, which come behind its codes. */
static sgm_status find_parameter(sgm_trainer *trainer, const char *name, const sgm_shape *shape,
                                 sgm_dtype *dtype)
{
    size_t count;
    const sgm_parameter *parameters = sgm_trainer_parameters(trainer, &count);
    for (size_t i = 0; i < count; i++)
        if (is_parameter(&parameters[i], name) && sgm_shape_equal(&parameters[i].type.shape, shape)) {
            *dtype = parameters[i + (parameters[i].quantizes != NULL ? 1 : 0)].type.dtype;
            return SGM_OK;
        }
    return sgm_fail(SGM_ERROR_SHAPE,
                    "the trainer '%s' has another network than the model: its parameter '%s' is not "
                    "there, or of another shape",
                    sgm_trainer_name(trainer), name);
}

static sgm_status load_made(sgm_pretrained *p, sgm_trainer *trainer, const sgm__made *made)
{
    sgm_dtype dtype = SGM_FLOAT32;
    SGM__TRY(find_parameter(trainer, made->name, &made->shape, &dtype));
    if (!p->kept)
        SGM__TRY(sgm__weights_check_copies(p, made));
    sgm_tensor *value = sgm__run_read(p, made, dtype);
    sgm_status status = value != NULL ? sgm_trainer_set(trainer, made->name, value) : sgm_last_status();
    sgm_tensor_free(value);
    return status;
}

static sgm_status load_translated(sgm_trainer *trainer, const sgm__translated_value *v)
{
    sgm_dtype dtype;
    SGM__TRY(find_parameter(trainer, v->parameter, sgm_tensor_shape(v->value), &dtype));
    return sgm_trainer_set(trainer, v->parameter, v->value);
}

/* Defines the trainer's parameters; those that the model has are not drawn, as they are set next. */
static sgm_status prepare(const sgm_pretrained *p, sgm_trainer *trainer)
{
    size_t count = 0;
    const char **names = calloc(p->made_count + p->translated.count + 1, sizeof *names);
    if (names == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of parameters");
    for (size_t i = 0; i < p->made_count; i++)
        if (!p->made[i].parts[0]->anew)
            names[count++] = p->made[i].name;
    for (size_t i = 0; i < p->translated.count; i++)
        names[count++] = p->translated.values[i].parameter;
    sgm_status status = sgm_trainer_prepare_undrawn(trainer, names, count);
    free(names);
    return status;
}

static sgm_status load(sgm_pretrained *p, sgm_trainer *trainer)
{
    if (p->kept)
        SGM__TRY(sgm__run_open_checkpoint(p));
    char *own = sgm_trainer_network(trainer);
    if (own == NULL)
        SGM__TRY(sgm_trainer_set_network(trainer, p->network));
    sgm_string_free(own);
    if (p->kept)
        SGM__TRY(sgm__run_check_adapters(p, trainer));
    SGM__TRY(prepare(p, trainer));
    for (size_t i = 0; i < p->made_count; i++)
        if (!p->made[i].parts[0]->anew && !sgm__run_has_codes(p, p->made[i].name))
            SGM__TRY(load_made(p, trainer, &p->made[i]));
    if (p->kept)
        SGM__TRY(sgm__run_load_adapters(p, trainer));
    for (size_t i = 0; i < p->translated.count; i++)
        SGM__TRY(load_translated(trainer, &p->translated.values[i]));
    return sgm__classes_give_pipeline(p, trainer);
}

/* Draws all parameters, of which some are zeros that would have been set, and nothing is learnt from zeros.
 * The reported error stays that of the load. */
static void draw(sgm_trainer *trainer)
{
    sgm_status status = sgm_last_status();
    char *message = sgm__new_text("%s", sgm_last_error());
    if (message != NULL && sgm_trainer_reset(trainer) == SGM_OK)
        sgm_fail(status, "%s", message);
    free(message);
}

sgm_status sgm_pretrained_load(sgm_pretrained *p, sgm_trainer *trainer)
{
    size_t initialised;
    if (p == NULL || trainer == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "loading a model needs the model and a trainer, got NULL");
    sgm_trainer_parameters(trainer, &initialised);
    sgm_status status = load(p, trainer);
    if (status != SGM_OK && initialised == 0)
        draw(trainer);
    return status;
}

/* "model", or with a number if that is taken. */
static sgm_trainer *create_trainer(sgm_env *env)
{
    char name[32] = "model";
    for (int i = 2; env != NULL && sgm_env_trainer(env, name) != NULL; i++)
        snprintf(name, sizeof name, "model-%d", i);
    return sgm_trainer_create(env, name);
}

sgm_model *sgm_model_import_with(sgm_env *env, const char *path, const sgm_pretrained_options *options)
{
    sgm_pretrained *p = sgm_pretrained_open_with(path, options);
    sgm_trainer *trainer = p != NULL ? create_trainer(env) : NULL;
    sgm_model *model = NULL;
    if (trainer != NULL && sgm_pretrained_load(p, trainer) == SGM_OK)
        model = sgm_model_of(env, trainer);
    sgm_pretrained_free(p);
    return model;
}
