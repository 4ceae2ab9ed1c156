/* Opens checkpoints and folders of runs for the subcommands that use a trained network (eval, predict,
 * export, serve, generate, inspect).
 *
 * A checkpoint knows its network; how it was trained, and on which data, is in config.yaml beside it.
 * Without that file a configuration is made of what the checkpoint shows, which suffices to load it. Also
 * here: the keys `from` and `start_from`, by which a training begins with the parameters of a model of
 * others, which sigma_models reads, or of another run. */
#include "config/saved.h"
#include "config/arguments.h"
#include <sigma/models.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The file in the folder of a run. */
#define CHECKPOINT "checkpoint.safetensors"

bool has_file(const char *folder, const char *name)
{
    char *path = sgm__format("%s/%s", folder, name);
    bool there = path != NULL && sgm__file_exists(path);
    sgm__free(path);
    return there;
}

char *file_of(const char *path, const char *name)
{
    return sgm__is_folder(path) ? sgm__format("%s/%s", path, name) : sgm__strdup(path);
}

sgm_status save_text(const char *folder, const char *name, char *text)
{
    char *path = sgm__format("%s/%s", folder, name);
    sgm_status status =
        text != NULL && path != NULL ? sgm__file_write_atomic(path, text, strlen(text)) : sgm__last_failure();
    sgm_string_free(text);
    sgm__free(path);
    return status;
}

/* When FOLDER/NAME/FILE was written last, in nanoseconds; negative: it is not there. */
static int64_t written_at(const char *folder, const char *name, const char *file)
{
    struct stat about;
    char *path = name[0] != '.' ? sgm__format("%s/%s/%s", folder, name, file) : NULL;
    bool is_there = path != NULL && stat(path, &about) == 0;
    sgm__free(path);
    return is_there ? (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec : -1;
}

char *newest_run(const char *folder, const char *file)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    int64_t newest = -1;
    char *run = NULL;
    for (int i = 0; i < count; i++) {
        int64_t written = written_at(folder, entries[i]->d_name, file);
        if (written >= 0 && written >= newest) {
            sgm__free(run);
            run = sgm__format("%s/%s", folder, entries[i]->d_name);
            newest = written;
        }
        free(entries[i]);
    }
    free(entries);
    return run;
}

/* Says that a folder has no checkpoint, and which of the folders in it has the newest. */
static sgm_status fail_folder(const char *folder)
{
    char *run = newest_run(folder, CHECKPOINT);
    sgm_status status =
        run != NULL ? sgm_fail(SGM_ERROR_NOT_FOUND, FOLDER_OF_RUNS, folder, run)
                    : sgm_fail(SGM_ERROR_NOT_FOUND,
                               "there is no " CHECKPOINT " in '%s'; a training writes it there, by default "
                               "after each epoch",
                               folder);
    sgm__free(run);
    return status;
}

bool is_file_of_data(const char *name)
{
    return name != NULL && strchr(name, '.') != NULL && sgm__file_exists(name);
}

char *saved_path(const char *path)
{
    char *checkpoint = file_of(path, CHECKPOINT);
    if (checkpoint == NULL || sgm__file_exists(checkpoint))
        return checkpoint;
    if (sgm__is_folder(path))
        fail_folder(path);
    else
        sgm_fail(SGM_ERROR_NOT_FOUND, "there is no checkpoint and no folder of a run '%s'", path);
    sgm__free(checkpoint);
    return NULL;
}

bool is_model_of_others(const char *path)
{
    return sgm_pretrained_is_there(path) && !has_file(path, CHECKPOINT);
}

bool is_run_of_model(const char *path)
{
    return has_file(path, "model/tensors.json");
}

/* Makes s->c from the network and `count` other overrides of an empty configuration, "{}", so that everything
 * else has its default. */
static sgm_status config_of_network(saved *s, const char *path, const char *const *others, size_t count)
{
    char *network = sgm__format("network=%s", s->network);
    if (network == NULL)
        return sgm_last_status();
    const char *overrides[3] = {network};
    memcpy(overrides + 1, others, count * sizeof *others);
    sgm_status status = config_parse(&s->c, path, "{}", 2, overrides, count + 1);
    sgm__free(network);
    return status;
}

/* Makes s->c from the checkpoint alone: the precision (float64 if any tensor is), and whether the optimiser
 * keeps averages of the parameters, since the trainer must have those states to load them. */
static sgm_status config_of_checkpoint(saved *s, const char *path)
{
    sgm_bundle *bundle = sgm_bundle_load(s->checkpoint);
    if (bundle == NULL)
        return sgm_last_status();
    const char *overrides[2];
    size_t count = 0;
    bool averages = false, wide = false;
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
        const char *name = sgm_bundle_name_at(bundle, i);
        sgm_tensor *tensor = sgm_bundle_get(bundle, name);
        averages |= strncmp(name, "average.", 8) == 0;
        wide |= tensor != NULL && sgm_tensor_dtype(tensor) == SGM_FLOAT64;
    }
    if (averages)
        overrides[count++] = "optimiser.average=0.5"; /* any value: they are only read */
    if (wide)
        overrides[count++] = "precision=float64";
    sgm_bundle_free(bundle);
    return config_of_network(s, path, overrides, count);
}

/* Reads config.yaml beside the checkpoint, or makes a configuration if the checkpoint was moved elsewhere. */
static sgm_status find_config(saved *s, const char *path)
{
    const char *slash = strrchr(s->checkpoint, '/');
    int length = slash != NULL ? (int)(slash - s->checkpoint) + 1 : 0;
    char *file = sgm__format("%.*sconfig.yaml", length, s->checkpoint);
    if (file == NULL)
        return sgm_last_status();
    s->has_config = sgm__file_exists(file);
    sgm_status status = s->has_config ? config_load(&s->c, file, NULL, 0) : config_of_checkpoint(s, path);
    sgm__free(file);
    return status;
}

static sgm_status describe_model(saved *s, const char *path)
{
    s->checkpoint = sgm__strdup(path);
    s->model = s->checkpoint != NULL ? sgm_pretrained_open(path) : NULL;
    s->network = s->model != NULL ? sgm__strdup(sgm_pretrained_network(s->model)) : NULL;
    if (s->network == NULL)
        return sgm__last_failure();
    bool wide = sgm_pretrained_describe(s->model)->precision == SGM_FLOAT64;
    return config_of_network(s, path, (const char *const[]){"precision=float64"}, wide ? 1 : 0);
}

/* Fills checkpoint, network and configuration. The messages name what a user may have meant instead. */
static sgm_status describe(saved *s, const char *path)
{
    if (is_model_of_others(path))
        return describe_model(s, path);
    s->checkpoint = saved_path(path);
    if (s->checkpoint == NULL)
        return sgm_last_status();
    s->network = sgm_checkpoint_network(s->checkpoint);
    if (s->network == NULL && (ends_with(path, ".yaml") || ends_with(path, ".yml")))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "a checkpoint or the folder of a run is expected here; '%s' describes a training: "
                        "'sigma train' makes a folder of it",
                        path);
    if (s->network == NULL)
        return sgm_last_status() == SGM_ERROR_FORMAT
                   ? sgm__fail_within("a checkpoint or the folder of a run is expected here")
                   : sgm_last_status();
    return find_config(s, path);
}

/* On failure nothing is left to close. */
sgm_status saved_describe(saved *s, const char *path)
{
    memset(s, 0, sizeof *s);
    sgm_status status = describe(s, path);
    if (status != SGM_OK)
        saved_close(s);
    return status;
}

/* How the layer of one segment is written in a model's network and in a checkpoint's. */
static const char *const one_segment[] = {", same, name=segments)", ", same=true, name=segments)"};
#define TWO_SEGMENTS ", segments=segments, name=segments)"

/* Whether a layer has no vector for a second segment, as RoBERTa's; its text ends at `end`. */
static bool is_of_one(const char *network, const char *end)
{
    static const char of_one[] = "positions(1";
    const size_t length = sizeof of_one - 1;
    return (size_t)(end - network) >= length && memcmp(end - length, of_one, length) == 0;
}

sgm_status saved_take_pairs(saved *s)
{
    const char *found = NULL;
    size_t length = 0;
    for (size_t i = 0; i < sizeof one_segment / sizeof *one_segment && found == NULL; i++) {
        found = strstr(s->network, one_segment[i]);
        length = strlen(one_segment[i]);
    }
    if (found == NULL || is_of_one(s->network, found))
        return SGM_OK;
    char *network =
        sgm__format("%.*s" TWO_SEGMENTS "%s", (int)(found - s->network), s->network, found + length);
    char *own = network != NULL ? sgm__strdup(network) : NULL;
    if (own == NULL) {
        sgm__free(network);
        return SGM_ERROR_MEMORY;
    }
    sgm_string_free(s->network);
    sgm__free(s->c.network);
    s->network = network;
    s->c.network = own;
    text_list_clear(&s->c.adapters); /* statements of the checkpoint's network */
    s->has_pairs = true;
    return SGM_OK;
}

/* Inference takes the settings as well, since arguments of layers are among them; of another network than the
 * checkpoint's, the parameters alone. */
static sgm_status load_parameters(const saved *s, bool training)
{
    if (s->model != NULL)
        return sgm_pretrained_load(s->model, s->trainer);
    if (s->has_pairs)
        return sgm_trainer_load_parts(s->trainer, s->checkpoint, .parts = SGM_PART_PARAMETERS);
    return training
               ? sgm_trainer_load(s->trainer, s->checkpoint)
               : sgm_trainer_load_parts(s->trainer, s->checkpoint,
                                        .parts = SGM_PART_NETWORK | SGM_PART_PARAMETERS | SGM_PART_SETTINGS);
}

/* What a trainer is opened for. */
typedef enum saved_use {
    USE_PREDICTS,
    USE_UPDATES, /* its step is written, by its optimiser */
    USE_TRAINS
} saved_use;

/* Makes environment and trainer, and loads what the network has learnt. */
static sgm_status load(saved *s, saved_use use)
{
    s->env = experiment_env(&s->c);
    s->trainer = s->env != NULL ? sgm_trainer_create(s->env, s->c.name) : NULL;
    if (s->trainer == NULL)
        return sgm_last_status();
    SGM_TRY(use == USE_TRAINS ? experiment_fill(s->trainer, &s->c)
                              : experiment_fill_inference(s->trainer, &s->c, use == USE_UPDATES));
    SGM_TRY(load_parameters(s, use == USE_TRAINS));
    sgm_pipeline *pipeline = sgm_trainer_get_pipeline(s->trainer);
    s->c.data.pipeline = pipeline != NULL ? sgm_pipeline_retain(pipeline) : NULL;
    return SGM_OK;
}

static sgm_status load_or_close(saved *s, saved_use use)
{
    sgm_status status = load(s, use);
    if (status != SGM_OK)
        saved_close(s);
    return status;
}

sgm_status saved_load(saved *s)
{
    return load_or_close(s, USE_PREDICTS);
}

sgm_status saved_open(saved *s, const char *path, bool updates)
{
    SGM_TRY(saved_describe(s, path));
    return load_or_close(s, updates ? USE_UPDATES : USE_PREDICTS);
}

sgm_status saved_infer(const saved *s, bool int8)
{
    return sgm_trainer_set_inference(s->trainer, .quantize = int8 ? "int8" : NULL);
}

sgm_status saved_open_training(saved *s, const char *path)
{
    SGM_TRY(saved_describe(s, path));
    return load_or_close(s, USE_TRAINS);
}

/* The trainer belongs to the environment. */
void saved_close(saved *s)
{
    sgm_env_free(s->env);
    config_free(&s->c);
    sgm_pretrained_free(s->model);
    sgm_string_free(s->network);
    sgm__free(s->checkpoint);
    memset(s, 0, sizeof *s);
}

bool has_tokenizer(const char *folder)
{
    static const char *const files[] = {"tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.gguf"};
    bool found = ends_with(folder, ".gguf") && sgm__file_exists(folder);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        found = found || has_file(folder, files[i]);
    return found;
}

/* What 'sigma import' kept, with a tokenizer or, if that is not asked for, without; sgm__free. A folder of
 * this name that it has not written, such as the download of another model beside the run's folder, is none:
 * it has no tensors.json. */
static char *kept_model(const saved *s, bool with_tokenizer)
{
    static const char *const places[] = {"model", "../model"};
    const char *slash = strrchr(s->checkpoint, '/');
    int length = slash != NULL ? (int)(slash - s->checkpoint) : 1;
    for (size_t i = 0; i < 2; i++) {
        char *folder = sgm__format("%.*s/%s", length, slash != NULL ? s->checkpoint : ".", places[i]);
        if (folder == NULL ||
            ((!with_tokenizer || has_tokenizer(folder)) && has_file(folder, "tensors.json")))
            return folder;
        sgm__free(folder);
    }
    return NULL;
}

/* The tokenizer that the run's texts were read by, if it lies elsewhere than in the run. NULL: it does not.
 */
static const char *named_tokenizer(const saved *s)
{
    const data_config *training = &s->c.data.training;
    const char *named = s->has_config && data_config_is_of_model(training) ? training->tokenizer : NULL;
    return named != NULL && (has_tokenizer(named) || is_file_of_data(named)) ? named : NULL;
}

/* That of the model is kept in the run, and another one may have been named in its place. */
char *saved_tokenizer(const saved *s)
{
    if (s->model != NULL)
        return sgm_pretrained_describe(s->model)->tokenizer != NULL && has_tokenizer(s->checkpoint)
                   ? sgm__strdup(s->checkpoint)
                   : NULL;
    const char *named = named_tokenizer(s);
    const bool is_another = named != NULL && s->c.from != NULL && !sgm__begins_with(named, s->c.from);
    char *folder = is_another ? NULL : kept_model(s, true);
    return folder == NULL && named != NULL ? sgm__strdup(named) : folder;
}

char *saved_missing_tokenizer(const saved *s)
{
    char *there = saved_tokenizer(s);
    sgm__free(there);
    if (there != NULL)
        return NULL;
    if (s->model != NULL)
        return sgm__strdup(s->checkpoint);
    const char *slash = strrchr(s->checkpoint, '/');
    char *folder = sgm__format("%.*s/model", slash != NULL ? (int)(slash - s->checkpoint) : 1,
                               slash != NULL ? s->checkpoint : ".");
    if (folder != NULL && has_file(folder, "tensors.json"))
        return folder;
    sgm__free(folder);
    return NULL;
}

char *saved_model(const saved *s)
{
    char *tokenizer = saved_tokenizer(s);
    if (tokenizer == NULL || s->model != NULL)
        return tokenizer;
    sgm__free(tokenizer);
    char *folder = kept_model(s, false), *run = folder != NULL ? sgm__format("%s/..", folder) : NULL;
    sgm__free(folder);
    return run;
}

bool saved_range(const saved *s, double *minimum, double *maximum)
{
    return s->has_config && experiment_range(&s->c.data.training, minimum, maximum) && *maximum != *minimum;
}

/* A name of the run's own data wins over a ready-made dataset of that name. */
sgm_dataset *saved_dataset(saved *s, const char *name)
{
    if (s->has_config) {
        const data_config *parts[] = {&s->c.data.training, &s->c.data.validation, &s->c.data.test};
        static const char *const names[] = {"training", "validation", "test"};
        for (int i = 0; i < 3; i++)
            if (strcmp(name, names[i]) == 0)
                return experiment_split(&s->c.data, s->c.seed) != SGM_OK
                           ? NULL
                           : experiment_dataset(&s->c.data, parts[i], name, (uint64_t)s->c.seed);
    }
    return sgm_dataset_open(name);
}

/* --- beginning with what another training has learnt --- */

/* The items with blanks between them, as the library reads lists of parts and patterns; sgm__free. */
static char *joined(const text_list *list)
{
    sgm__text text = {0};
    for (size_t i = 0; i < list->count; i++)
        sgm__text_append(&text, "%s%s", i > 0 ? " " : "", list->items[i]);
    return sgm__text_take(&text);
}

/* Loads the given parts (default: the parameters) from a checkpoint. *left becomes the names of what did
 * not fit, where that is allowed. If it is not, the error says how to allow it. */
static sgm_status load_start(sgm_trainer *trainer, const char *path, const start_config *start,
                             const char *parts_text, const char *states, char **left)
{
    unsigned parts = SGM_PART_PARAMETERS;
    if (start->parts.count > 0)
        SGM_TRY(sgm_parts_parse(parts_text, &parts));
    sgm_status status = sgm_trainer_load_parts(
        trainer, path, .parts = parts, .states = start->states.count > 0 ? states : NULL,
        .skip_mismatch = start->skip_mismatch, .left = left, .names = start->names);
    if (status == SGM_ERROR_FORMAT && !start->skip_mismatch &&
        strstr(sgm_last_error(), "' does not fit the trainer: ") != NULL)
        return sgm__fail_within("start_from (with start_from.skip_mismatch=true what fits would be taken)");
    return status != SGM_OK ? sgm__fail_within("start_from") : SGM_OK;
}

/* Lists of the configuration become texts for the library (joined). A NULL from a lack of memory is found
 * by the library. */
sgm_status saved_start_from(sgm_trainer *trainer, const start_config *start, bool quiet)
{
    char *path = saved_path(start->run), *left = NULL;
    if (path == NULL)
        return sgm__fail_within("start_from");
    char *parts = joined(&start->parts), *states = joined(&start->states);
    sgm_status status = load_start(trainer, path, start, parts, states, &left);
    if (status == SGM_OK && !quiet)
        printf("starting from %s: %s\n", path, start->parts.count > 0 ? parts : "parameters");
    if (left != NULL)
        printf("left as it is: %s\n", left);
    sgm_string_free(left);
    sgm__free(states);
    sgm__free(parts);
    sgm__free(path);
    return status;
}

/* --- the key `from`: a model of others, or another run --- */

/* NULL: out of memory, or nothing that can be read. */
static char *network_of(const char *path)
{
    if (!is_model_of_others(path)) {
        char *checkpoint = saved_path(path);
        char *network = checkpoint != NULL ? sgm_checkpoint_network(checkpoint) : NULL;
        sgm__free(checkpoint);
        return network;
    }
    sgm_pretrained *model = sgm_pretrained_open(path);
    char *network = model != NULL ? sgm__strdup(sgm_pretrained_network(model)) : NULL;
    sgm_pretrained_free(model);
    return network;
}

sgm_status from_take_network(config *c)
{
    if (c->from == NULL || c->network != NULL)
        return SGM_OK;
    c->network = network_of(c->from);
    if (c->network == NULL && sgm__last_failure() == SGM_ERROR_FORMAT && !is_model_of_others(c->from))
        return sgm_fail(SGM_ERROR_FORMAT, "%s; 'network' beside 'from' says which it is for",
                        sgm_last_error());
    return c->network != NULL ? SGM_OK : sgm__last_failure();
}

/* What the training makes of the model. */
static sgm_pretrained *open_from(const config *c)
{
    return data_config_has_texts(&c->data.training) ? text_data_model(c) : sgm_pretrained_open(c->from);
}

static sgm_status load_model(sgm_trainer *trainer, const config *c, bool quiet)
{
    sgm_pretrained *model = open_from(c);
    sgm_status status = model != NULL ? sgm_pretrained_load(model, trainer) : sgm__last_failure();
    if (status == SGM_OK && !quiet)
        printf("starting from %s: %s\n", c->from, sgm_pretrained_describe(model)->architecture);
    sgm_pretrained_free(model);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("from");
}

/* A run of a model of others begins anew what its network has not, such as a layer for other classes. */
static bool is_loaded_as_model(const config *c)
{
    return is_model_of_others(c->from) ||
           (data_config_has_texts(&c->data.training) && is_run_of_model(c->from));
}

sgm_status from_load(sgm_trainer *trainer, const config *c, bool quiet)
{
    if (c->from != NULL && !is_loaded_as_model(c))
        SGM_TRY(saved_start_from(trainer, &(const start_config){.run = c->from}, quiet));
    else if (c->from != NULL)
        SGM_TRY(load_model(trainer, c, quiet));
    char *adapters = c->from != NULL && !quiet ? adapters_of_run(c->from) : NULL;
    if (adapters != NULL)
        printf("its adapters are trained on: %s\n", adapters);
    sgm__free(adapters);
    return c->start_from.run != NULL ? saved_start_from(trainer, &c->start_from, quiet) : SGM_OK;
}

sgm_status from_keep(const config *c)
{
    if (c->from == NULL || c->folder == NULL || (!is_model_of_others(c->from) && !is_run_of_model(c->from)))
        return SGM_OK;
    sgm_pretrained *model = open_from(c);
    sgm_status status = model != NULL ? sgm_pretrained_keep(model, c->folder) : sgm__last_failure();
    sgm_pretrained_free(model);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("from");
}
