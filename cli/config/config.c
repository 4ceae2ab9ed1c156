/* The table of everything that a configuration file may say, the checks of a whole file, and optimiser and
 * operator made of it.
 *
 * Rows of the kind OPTION_SETTING refer to the library's own table of settings (sgm_optimiser_settings and
 * so on), which has their bounds, defaults and words; rows that spell these out are keys that only the
 * command knows. options.c reads by these tables, options_text.c writes. Checks of single texts are in
 * config_checks.c; what experiments are made of a config is in experiment.c.
 *
 * Loading (config_load, config_parse): defaults, the file, the arguments, then check_whole for what
 * concerns several keys. The order of rows is the order in files that are written and in the help. */
#include "config/config.h"
#include "config/config_checks.h"
#include "config/options.h"
#include "handlers/handler.h"
#include "hooks/hooks.h"
#include "optim/optimiser.h"
#include "registry/pattern.h"
#include "text/web_address.h"

#include <math.h>
#include <stdio.h>

/* --- the table --- */

#define COUNT(table) (sizeof(table) / sizeof *(table))
/* A member of the same name as the library's setting. */
#define SETTING(type, member, table) OPTION_ROW(type, member, OPTION_SETTING, .settings = table)

/* --- names of values, for the completion of shells --- */

static const char *dataset_at(size_t index)
{
    size_t count;
    const char *const *names = sgm_dataset_names(&count);
    return index < count ? names[index] : NULL;
}

static const char *optimiser_at(size_t index)
{
    const sgm_optimiser_type *type = sgm_optimiser_type_at(index);
    return type != NULL ? type->name : NULL;
}

static const char *augmentation_at(size_t index)
{
    const sgm_augmentation_type *type = sgm_augmentation_at(index);
    return type != NULL ? type->name : NULL;
}

static const char *operator_at(size_t index)
{
    static const char *const names[] = {"gradients", "parameters", "mpi", "none"};
    return index < COUNT(names) ? names[index] : NULL;
}

/* Keys of one dataset. The three groups training, validation, test share this table. */
static const option data_table[] = {
    OPTION_ROW(data_config, dataset, OPTION_TEXT, .check = check_dataset, .name_at = dataset_at,
               .path_after = "text:", .row.doc = "a ready-made one (see 'sigma info'), or text:PATH"),
    OPTION_ROW(data_config, csv, OPTION_PATH,
               .row.doc =
                   "a table, with `target` or `fields`; a path, or an address, https://...#sha256=DIGITS"),
    OPTION_ROW(data_config, target, OPTION_LIST,
               .row.doc = "csv: the column to predict, by its name; or several, of numbers"),
    OPTION_ROW(data_config, drop, OPTION_LIST, .row.doc = "target: columns that are not used, [id, name]"),
    OPTION_ROW(data_config, categorical, OPTION_LIST,
               .row.doc = "target: columns of numbers that are kinds and not sizes"),
    OPTION_ROW(data_config, embedding, OPTION_MAP, .check = check_embedding, .value_of_texts = "auto",
               .row.doc = "target: columns of categories that are fields of their own, for an embedding: a "
                          "list, or {town: 8} with its size"),
    OPTION_ROW(data_config, text_columns, OPTION_LIST,
               .row.doc = "target: columns of texts that are read as tokens, each a field of its own"),
    OPTION_ROW(data_config, scale, OPTION_MAP, .check = check_column_scale, .key_of_text = EVERY_COLUMN,
               .row.doc = "target: of numbers: standard (if not given), min_max, robust or none; of some "
                          "columns, {price: none, \"*\": robust}"),
    OPTION_ROW(
        data_config, impute, OPTION_MAP, .check = check_impute, .key_of_text = EVERY_COLUMN,
        .row.doc =
            "target: what a missing value becomes: mean (if not given), median, most_frequent, flag; or "
            "refuse; of some columns, {age: median, town: flag}"),
    OPTION_ROW(data_config, missing_target, OPTION_TEXT, .check = check_missing_target,
               .row.doc = "target: rows without one: refuse (if not given), an error; skip leaves them out"),
    OPTION_ROW(data_config, dates, OPTION_MAP, .check = check_dates,
               .row.doc =
                   "target: what dates become, {born: age, sold: parts}: days (if not given); age, days "
                   "until the newest one, or until another, age(2026-01-31); parts, the year, and month, "
                   "weekday and hour on circles"),
    OPTION_ROW(data_config, weights, OPTION_TEXT,
               .row.doc = "target: a column of numbers, no input then: how much the cost of a row counts"),
    OPTION_ROW(data_config, decimal, OPTION_TEXT, .check = check_decimal,
               .row.doc = "target: the sign before decimals, \".\" or \",\""),
    OPTION_ROW(data_config, inputs, OPTION_PATH, .row.doc = "an array, .npy, .npz:NAME or idx"),
    OPTION_ROW(data_config, targets, OPTION_PATH, .row.doc = "the array with the targets of these inputs"),
    OPTION_ROW(data_config, arrays, OPTION_MAP, .is_path = true,
               .row.doc = "inputs: more arrays, for a network with several inputs, by their fields, {town: "
                          "data.npz:town}"),
    OPTION_ROW(data_config, images, OPTION_PATH,
               .row.doc = "a folder of PNG and JPEG pictures, in a folder for each class"),
    OPTION_ROW(data_config, masks, OPTION_PATH,
               .row.doc =
                   "images: a folder of PNG masks of their names, whose values are the classes of pixels"),
    OPTION_ROW(data_config, size, OPTION_LIST, .check = check_side,
               .row.doc =
                   "images: [width, height] to which all are scaled; if not given all must be of one size"),
    OPTION_ROW(data_config, channels, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 3,
               .row.doc = "images: 3 (if not given) for colours, 1 for grey"),
    OPTION_ROW(
        data_config, sounds, OPTION_PATH,
        .row.doc =
            "a folder of WAV and FLAC sounds, in a folder for each class; or a table with the columns file "
            "and text, of what is said"),
    OPTION_ROW(data_config, rate, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 768000,
               .row.doc =
                   "sounds: samples a second to which all are brought; if not given all must have one rate"),
    OPTION_ROW(data_config, seconds, OPTION_NUMBER, .row.minimum = 1e-6, .row.maximum = 86400,
               .row.doc = "sounds: to which all are cut, or filled with silence; the longest if not given"),
    OPTION_ROW(data_config, features, OPTION_TEXT, .check = check_features,
               .row.doc = "sounds: log_mel (if not given), a spectrogram, or waveform, the samples"),
    OPTION_ROW(data_config, mels, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1024,
               .row.doc = "sounds: bands of a spectrogram; 64 if not given"),
    OPTION_ROW(data_config, hop, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1 << 24,
               .row.doc = "sounds: samples from frame to frame of a spectrogram; 10 ms if not given"),
    OPTION_ROW(data_config, text, OPTION_PATH,
               .row.doc = "a text: windows of tokens; the targets are the same, one token later"),
    OPTION_ROW(data_config, text_folder, OPTION_PATH,
               .row.doc = "a folder of TXT files, in a folder for each class"),
    OPTION_ROW(data_config, tokenizer, OPTION_PATH,
               .row.doc = "text, text_columns, text_folder: a file of 'sigma tokenize'; bytes if not given"),
    OPTION_ROW(
        data_config, window, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1 << 24,
        .row.doc =
            "text: tokens of an example, 64 if not given; text_columns, text_folder: of a text, those of the "
            "longest up to 512 if not given; sounds: samples of a frame, 25 ms if not given"),
    OPTION_ROW(data_config, step, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1 << 24,
               .row.doc = "text: tokens from one example to the next; the window if not given"),
    OPTION_ROW(
        data_config, streams, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1 << 24,
        .row.doc =
            "text: number of parts whose windows continue from minibatch to minibatch; 1 if not given"),
    OPTION_ROW(data_config, skip_rows, OPTION_INTEGER, .row.minimum = 0, .row.maximum = 1e6,
               .row.doc = "csv: header rows"),
    OPTION_ROW(data_config, separator, OPTION_TEXT, .check = check_separator,
               .row.doc =
                   "csv: one character; if not given a comma, with `target` what the first line has most"),
    OPTION_ROW(data_config, missing, OPTION_TEXT,
               .row.doc = "csv: a cell with this text, or with none, is missing: it becomes 0, with `target` "
                          "what `impute` says"),
    OPTION_ROW(data_config, skip_ragged, OPTION_FLAG, .row.default_text = "false",
               .row.doc = "csv: leave out rows with another number of columns"),
    OPTION_ROW(data_config, fields, OPTION_MAP, .check = check_columns,
               .row.doc = "csv: columns, such as {inputs: 0-3, targets: 4}"),
    OPTION_ROW(data_config, class_names, OPTION_LIST,
               .row.doc = "csv: texts in the targets' column, class 0 first"),
    OPTION_ROW(data_config, texts, OPTION_MAP, .check = check_texts, .joins = true,
               .row.doc = "csv: texts of other columns as numbers from 0, such as {1: [red, green, blue]}"),
    OPTION_ROW(data_config, classes, OPTION_INTEGER, .row.minimum = 2, .row.maximum = 1e6,
               .row.doc = "number of classes; targets are numbers from 0, and become one-hot"),
    OPTION_ROW(data_config, input_range, OPTION_LIST, .check = check_range_number,
               .row.doc = "[minimum, maximum] of the inputs, scaled to 0 to 1"),
    OPTION_ROW(data_config, shuffled, OPTION_FLAG, .row.default_text = "false",
               .row.doc =
                   "files: all examples in one random order (of the seed), before begin and share apply"),
    OPTION_ROW(data_config, begin, OPTION_NUMBER, .row.minimum = 0, .row.maximum = 1,
               .row.doc = "share that is left out at the beginning of each block"),
    OPTION_ROW(data_config, share, OPTION_NUMBER, .row.minimum = 1e-9, .row.maximum = 1,
               .row.doc = "share of each block that is used"),
};

/* For the help: "; there are crop, flip, ...", all augmentations of the library. */
static void list_augmentations(const option *o, sgm__text *out)
{
    (void)o;
    for (size_t i = 0; sgm_augmentation_at(i) != NULL; i++)
        sgm__text_append(out, "%s%s", i > 0 ? ", " : "; there are ", sgm_augmentation_at(i)->name);
}

/* Keys below data.split. The first one, share, is what a single value stands for: `split: 0.8`. */
static const option split_table[] = {
    OPTION_ROW(split_config, share, OPTION_LIST, .check = check_share,
               .row.doc =
                   "of training, the rest validates; or of training, validation and test, [0.7, 0.15, 0.15]"),
    OPTION_ROW(
        split_config, by, OPTION_TEXT, .check = check_split_by,
        .row.doc =
            "stratified, each part with its share of each class (if not given, for classes), or random"),
    OPTION_ROW(split_config, group, OPTION_TEXT,
               .row.doc = "a column, no input then: rows of one value are in one part"),
    OPTION_ROW(split_config, time, OPTION_TEXT,
               .row.doc = "a column: the earliest rows train, the latest ones are measured"),
    OPTION_ROW(split_config, folds, OPTION_INTEGER, .row.minimum = 2, .row.maximum = SGM_MAX_PARTS,
               .row.doc =
                   "in place of share: one training for each of so many equal parts, which validates it"),
    OPTION_ROW(split_config, fold, OPTION_INTEGER, .row.minimum = 0, .row.maximum = SGM_MAX_PARTS - 1,
               .row.doc = "folds: only the training that this one validates, from 0"),
};

/* Keys below `data`. The first one, training, is what a single value stands for: `data: iris`. */
static const option data_group_table[] = {
    OPTION_GROUP_ROW(data_group, training, data_table,
                     .row.doc = "the data to train on; a name or the keys below"),
    OPTION_GROUP_ROW(data_group, validation, data_table,
                     .row.doc = "measured after each epoch; the same keys"),
    OPTION_GROUP_ROW(data_group, test, data_table, .row.doc = "measured at the end; the same keys"),
    OPTION_GROUP_ROW(data_group, split, split_table,
                     .row.doc =
                         "takes validation and test data from the training data; a share or the keys below"),
    OPTION_ROW(data_group, batch, OPTION_SETTING, .settings = sgm_iterator_settings,
               .setting = "minibatch_size"),
    SETTING(data_group, shuffle, sgm_iterator_settings),
    SETTING(data_group, drop_last, sgm_iterator_settings),
    OPTION_ROW(data_group, augment, OPTION_SETTING, .settings = sgm_iterator_settings,
               .check = sgm_augmentation_check, .name_at = augmentation_at, .more = list_augmentations),
    SETTING(data_group, prefetch_threads, sgm_iterator_settings),
    OPTION_ROW(data_group, cache, OPTION_TEXT, .check = check_cache,
               .row.doc = "whether files, once extracted, are kept for other runs; if not given: images are"),
    OPTION_ROW(data_group, cache_folder, OPTION_PATH,
               .row.doc = "where they are kept; if not given: data in $SIGMA_CACHE_DIR or ~/.cache/sigma"),
};

/* Keys below optimiser.schedule. The first SCHEDULE_OF_KIND of them say nothing without a kind. */
static const option schedule_table[] = {
    SETTING(schedule_config, kind, sgm_schedule_settings),
    SETTING(schedule_config, period, sgm_schedule_settings),
    SETTING(schedule_config, factor, sgm_schedule_settings),
#define SCHEDULE_OF_KIND 3 /* a warm-up needs no kind */
    SETTING(schedule_config, warm_up, sgm_schedule_settings),
};

/* For the help: ": adam, ...", all types of optimisers. */
static void list_types(const option *o, sgm__text *out)
{
    const sgm_optimiser_type *type;
    (void)o;
    for (size_t i = 0; (type = sgm_optimiser_type_at(i)) != NULL; i++)
        sgm__text_append(out, "%s%s", i > 0 ? ", " : ": ", type->name);
}

/* The value of a setting among a type's defaults, as a number. */
static double default_of(const sgm_optimiser_type *type, const sgm_setting *setting)
{
    sgm_content content = {0};
    sgm_setting_get(setting, &type->defaults, &content);
    return content.kind == SGM_KIND_INTEGER ? (double)content.as.integer : content.as.number;
}

/* For the help: "; adam, adamw 0.9; momentum 0.95", the defaults of a setting by optimiser. Types with the
 * same default are listed together, under the first of them (`told`: an earlier type had this default). A
 * default of 0 means that the type does not use the setting. */
static void list_defaults(const option *o, sgm__text *out)
{
    const sgm_optimiser_type *type, *other;
    size_t count;
    const sgm_setting *settings = sgm_optimiser_settings(&count);
    const sgm_setting *setting = sgm_setting_find(settings, count, o->row.name);
    for (size_t i = 0; (type = sgm_optimiser_type_at(i)) != NULL; i++) {
        double default_value = default_of(type, setting);
        bool told = false;
        for (size_t k = 0; k < i && (other = sgm_optimiser_type_at(k)) != NULL; k++)
            told |= default_of(other, setting) == default_value;
        if (default_value == 0 || told)
            continue;
        for (size_t k = i; (other = sgm_optimiser_type_at(k)) != NULL; k++)
            if (default_of(other, setting) == default_value)
                sgm__text_append(out, "%s%s", k == i ? "; " : ", ", other->name);
        sgm__text_append(out, " %.15g", default_value);
    }
}

/* A setting of the optimiser whose default depends on the type. */
#define OPTIMISER(member)                                                                                    \
    OPTION_ROW(optimiser_config, member, OPTION_SETTING, .settings = sgm_optimiser_settings,                 \
               .stays_unset = true, .more = list_defaults)

/* Keys below `optimiser`. Numbers have no default in the file's sense: what is not given stays unset, so
 * that the type's own default applies (`give`), and the help lists those defaults by type (list_defaults). */
static const option optimiser_table[] = {
    OPTION_ROW(optimiser_config, type, OPTION_TEXT, .check = check_optimiser, .name_at = optimiser_at,
               .row.default_text = "adam", .row.doc = "how parameters are updated", .more = list_types),
    OPTIMISER(learning_rate),
    OPTIMISER(momentum),
    OPTIMISER(decay_rate),
    OPTIMISER(beta1),
    OPTIMISER(beta2),
    OPTIMISER(epsilon),
    OPTIMISER(tolerance),
    OPTIMISER(history),
    OPTIMISER(population),
    OPTIMISER(weight_decay),
    OPTIMISER(clip_value),
    OPTIMISER(clip_norm),
    OPTIMISER(average),
    OPTIMISER(accumulate),
    OPTION_GROUP_ROW(optimiser_config, schedule, schedule_table,
                     .row.doc = "of the learning rate; a kind or the keys below"),
};

/* Keys below start_from. The first one names the run; the others need it. */
static const option start_table[] = {
    OPTION_ROW(start_config, run, OPTION_PATH,
               .row.doc = "a folder of a run, or a checkpoint; only where the own run begins anew"),
    OPTION_ROW(
        start_config, parts, OPTION_LIST, .check = check_part,
        .row.doc =
            "of it; if not given: [parameters]; also network, optimiser, position, random, hooks, metrics, "
            "settings, everything"),
    OPTION_ROW(start_config, states, OPTION_LIST, .check = sgm__pattern_check,
               .row.doc = "only those whose names match, [\"*.weights\"]"),
    OPTION_ROW(start_config, skip_mismatch, OPTION_FLAG, .row.default_text = "false",
               .row.doc = "take what fits and leave the rest, instead of refusing"),
    OPTION_ROW(start_config, names, OPTION_TEXT,
               .row.doc = "torch, or \"torch(LAYER=MODULE, ...)\": a safetensors or npz file of PyTorch's"),
};

/* Keys below `operator`. The first one is the type; the others need it. */
static const option operator_table[] = {
    OPTION_ROW(
        operator_config, type, OPTION_TEXT, .check = check_operator, .name_at = operator_at,
        .row.doc =
            "what workers merge: gradients, in each iteration, or parameters; mpi: of all ranks of mpirun; "
            "none"),
    SETTING(operator_config, workers, sgm_operator_settings),
    SETTING(operator_config, share, sgm_operator_settings),
    SETTING(operator_config, every, sgm_operator_settings),
    OPTION_ROW(operator_config, reducer, OPTION_TEXT, .check = check_reducer,
               .row.doc = "parameters: average (if not given), maximum or weighted(3, 8)"),
    OPTION_ROW(operator_config, reducers, OPTION_MAP, .check = check_reducer,
               .row.doc = "parameters: others, by parameter, {\"*.biases\": maximum}"),
    OPTION_ROW(operator_config, handlers, OPTION_SETTING, .settings = sgm_operator_settings,
               .check = check_handlers),
    SETTING(operator_config, threads, sgm_operator_settings),
    SETTING(operator_config, timeout, sgm_operator_settings),
    SETTING(operator_config, check_every, sgm_operator_settings),
    SETTING(operator_config, bucket, sgm_operator_settings),
    SETTING(operator_config, bfloat16, sgm_operator_settings),
    SETTING(operator_config, sharded, sgm_operator_settings),
};

/* For the help: ": cpu, ..., debug:NAME". The library's list has debug:cpu and the like behind all others:
 * names with a ':' end it here, and are named once. */
static void list_handlers(const option *o, sgm__text *out)
{
    (void)o;
    const char *name;
    for (size_t i = 0; (name = sgm_handler_name_at(i)) != NULL && strchr(name, ':') == NULL; i++)
        sgm__text_append(out, "%s%s", i > 0 ? ", " : ": ", name);
    sgm__text_append(out, ", debug:NAME");
}

static sgm_status check_memory(const char *text)
{
    sgm__memory_budget budget;
    return sgm__memory_budget_parse(text, &budget);
}

/* The outermost keys of a file. */
const option config_table[] = {
    OPTION_ROW(config, name, OPTION_TEXT, .check = check_name,
               .row.doc = "of the experiment; if not given: the file's"),
    OPTION_ROW(
        config, network, OPTION_TEXT, .check = check_network_or_auto, .rewrite = real_network,
        .row.doc =
            "layers, \"input(4) + dense(10, relu) + dense(3) + softmax_cross_entropy\"; auto (if not given "
            "with `target`): proposed for the table"),
    OPTION_GROUP_ROW(config, data, data_group_table, .row.doc = "a name (training only) or the keys below"),
    OPTION_ROW(config, class_weights, OPTION_TEXT, .check = check_class_weights,
               .forms = "the text is balanced; " CLASS_WEIGHTS_OF_ONES_OWN,
               .row.doc = "balanced: rare classes count as much as frequent ones (softmax_cross_entropy)"),
    OPTION_GROUP_ROW(config, optimiser, optimiser_table, .row.doc = "a type or the keys below"),
    OPTION_ROW(config, initialisers, OPTION_MAP, .check = check_initialiser,
               .row.doc = "by parameter, {\"*.weights\": he}"),
    OPTION_ROW(config, modifiers, OPTION_MAP, .check = check_modifier,
               .row.doc = "after each update, by parameter, {\"*.weights\": max_norm(3)}"),
    OPTION_ROW(config, freeze, OPTION_LIST, .check = sgm__pattern_check,
               .row.doc = "parameters that stay as they are"),
    OPTION_ROW(config, approve, OPTION_LIST, .check = sgm__pattern_check,
               .row.doc =
                   "commands and values that wait for an administrator's approval, [stop, \"optimiser.*\"]"),
    OPTION_ROW(config, rules, OPTION_LIST, .check = check_rule,
               .row.doc = "what to do when, \"if validation.loss stalls 5 epochs then stop\""),
    OPTION_ROW(config, allow_commands, OPTION_FLAG, .row.default_text = "false",
               .row.doc = "rules may run programs, 'run \"./publish\"'; else a rule that does is an error"),
    OPTION_ROW(config, command_seconds, OPTION_NUMBER, .row.minimum = 0.001, .row.maximum = 86400,
               .row.default_text = "60", .row.doc = "after which a program of a rule is killed"),
    OPTION_ROW(
        config, webhooks, OPTION_LIST, .check = sgm__web_address_check,
        .row.doc =
            "addresses that rules may send to, webhook \"https://...\"; else a rule that does is an error"),
    OPTION_ROW(
        config, hooks, OPTION_LIST, .check = check_hook, .name_at = sgm_hook_name_at,
        .row.doc =
            "what else runs in a training, \"early_stopper(validation.loss)\"; see 'sigma info --hooks'"),
    OPTION_ROW(config, monitors, OPTION_LIST,
               .row.doc =
                   "monitors that plug-ins bring, \"losses:file.txt\"; what they are told changes nothing"),
    OPTION_GROUP_ROW(config, operator, operator_table,
                     .row.doc = "several workers; a type or the keys below"),
    OPTION_GROUP_ROW(
        config, start_from, start_table,
        .row.doc = "another training, whose parameters this one begins with; a folder or the keys below"),
    SETTING(config, epochs, sgm_run_settings),
    SETTING(config, iterations, sgm_run_settings),
    SETTING(config, seed, sgm_env_settings),
    OPTION_ROW(config, handler, OPTION_SETTING, .settings = sgm_env_settings,
               .check = sgm__handler_check_name, .name_at = sgm_handler_name_at, .more = list_handlers),
    SETTING(config, threads, sgm_env_settings),
    SETTING(config, precision, sgm_env_settings),
    OPTION_ROW(config, memory, OPTION_SETTING, .settings = sgm_env_settings, .check = check_memory),
    OPTION_ROW(config, folder, OPTION_TEXT, .row.doc = "of the run; if not given: runs/NAME-TIME"),
    SETTING(config, checkpoint_every, sgm_run_settings),
    OPTION_ROW(config, plugins, OPTION_LIST, .is_path = true,
               .row.doc = "shared libraries with layers, hooks and so on of your own, [./mine.so]"),
};
const size_t config_table_count = COUNT(config_table);

/* --- whole files --- */

/* The first key of a group says what the others refine: fails if another is given without it. `count` may
 * leave out the last keys of the table. */
static sgm_status check_first(const char *name, const char *group, const option *table, size_t count,
                              const void *base)
{
    const char *given = options_first_given(table, count, base);
    if (given == NULL || given == table[0].row.name)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s: %s: %s is given, but no %s (%s)", name, group, given,
                    table[0].row.name, option_complete(&table[0]).row.doc);
}

static bool names_webhook(const void *webhooks, const char *address)
{
    const text_list *list = webhooks;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], address) == 0)
            return true;
    return false;
}

/* Fails if a rule sends to an address that the file does not name. Texts that cannot be read have errors of
 * their own. */
static sgm_status check_webhooks(const config *c, const char *name)
{
    const text_list *lists[] = {&c->rules, &c->hooks};
    static const char *const keys[] = {"rules", "hooks"};
    sgm_status status = SGM_OK;
    for (size_t k = 0; k < COUNT(lists); k++)
        for (size_t i = 0; i < lists[k]->count && status == SGM_OK; i++) {
            sgm_hook *hook = sgm_hook_parse(lists[k]->items[i]);
            const char *refused =
                hook != NULL ? sgm__hook_refused_webhook(hook, names_webhook, &c->webhooks) : NULL;
            if (refused != NULL)
                status =
                    sgm_fail(SGM_ERROR_ARGUMENT,
                             "%s: %s: a rule sends to '%.200s', which must be named: webhooks: [\"%.200s\"]",
                             name, keys[k], refused, refused);
            sgm_hook_free(hook);
        }
    if (status == SGM_OK)
        sgm_clear_error();
    return status;
}

/* Fails if a rule runs a command, and the file does not allow it. Texts that cannot be read have errors of
 * their own. */
static sgm_status check_commands(const config *c, const char *name)
{
    const text_list *lists[] = {&c->rules, &c->hooks};
    static const char *const keys[] = {"rules", "hooks"};
    for (size_t k = 0; k < COUNT(lists) && !c->allow_commands; k++)
        for (size_t i = 0; i < lists[k]->count; i++) {
            sgm_hook *hook = sgm_hook_parse(lists[k]->items[i]);
            bool runs = hook != NULL && sgm__hook_runs_commands(hook);
            sgm_hook_free(hook);
            if (runs)
                return sgm_fail(
                    SGM_ERROR_ARGUMENT,
                    "%s: %s: '%.200s' runs a command, which must be allowed: allow_commands: true", name,
                    keys[k], lists[k]->items[i]);
        }
    sgm_clear_error();
    return SGM_OK;
}

/* Fails, with its place, for a setting that the type of optimiser does not use. */
static sgm_status check_used(const config *c)
{
    sgm_optimiser *optimiser = sgm_optimiser_create(c->optimiser.type, NULL);
    sgm_status status = optimiser != NULL ? SGM_OK : sgm__last_failure();
    for (size_t i = 0; i < COUNT(optimiser_table) && status == SGM_OK; i++) {
        char key[64];
        snprintf(key, sizeof key, "optimiser.%s", optimiser_table[i].row.name);
        const char *place = text_map_get(&c->places, key);
        if (place != NULL && sgm__optimiser_check_used(optimiser, optimiser_table[i].row.name) != SGM_OK)
            status = sgm__fail_within("%s", place);
    }
    sgm_optimiser_free(optimiser);
    return status;
}

/* Everything that can be wrong without data or a handler. The optimiser is made once, since its values
 * must go together. */
static sgm_status check_whole(const config *c, const char *name)
{
    const data_config *parts[] = {&c->data.training, &c->data.validation, &c->data.test};
    static const char *const roles[] = {"training", "validation", "test"};
    for (size_t i = 0; i < COUNT(parts); i++)
        SGM_TRY(check_data(name, roles[i], parts[i],
                           options_first_given(data_table, COUNT(data_table), parts[i])));
    SGM_TRY(check_parts(name, &c->data));
    SGM_TRY(split_check(name, &c->data));
    if (c->network == NULL && !data_config_has_pipeline(&c->data.training))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: network: is missing, such as network: \"input(4) + dense(3) + "
                        "softmax_cross_entropy\"",
                        name);
    SGM_TRY(check_first(name, "operator", operator_table, COUNT(operator_table), &c->operator));
    SGM_TRY(
        check_first(name, "optimiser.schedule", schedule_table, SCHEDULE_OF_KIND, &c->optimiser.schedule));
    SGM_TRY(check_commands(c, name));
    SGM_TRY(check_webhooks(c, name));
    SGM_TRY(check_first(name, "start_from", start_table, COUNT(start_table), &c->start_from));
    SGM_TRY(check_used(c));
    sgm_optimiser *optimiser = config_optimiser(&c->optimiser);
    if (optimiser == NULL)
        return sgm__fail_within("%s: optimiser", name);
    sgm_optimiser_free(optimiser);
    return SGM_OK;
}

/* An experiment without a name is called like its file: "runs/digits.yaml" is "digits". */
static sgm_status name_after_file(config *c, const char *path)
{
    if (c->name != NULL)
        return SGM_OK;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    c->name = dot != NULL && dot != name ? sgm__strndup(name, (size_t)(dot - name)) : sgm__strdup(name);
    return c->name != NULL ? SGM_OK : sgm_last_status();
}

/* Loads the plug-ins before anything else is read, because names are checked while they are read. Of the
 * arguments only plugins=... is looked at, which replaces what the file says. */
static sgm_status load_plugins(config *c, const option_source *source, const yaml_node *root,
                               const char *const *arguments, size_t count)
{
    for (size_t i = 0; root->kind == YAML_MAP && i < root->count; i++)
        if (strcmp(root->keys[i]->text, "plugins") == 0)
            SGM_TRY(
                options_apply_key(config_table, config_table_count, c, source, "plugins", root->children[i]));
    for (size_t i = 0; i < count; i++)
        if (strncmp(arguments[i], "plugins=", 8) == 0)
            SGM_TRY(options_apply_argument(config_table, config_table_count, c, arguments[i], &c->places));
    return plugins_load_of(source->name, &c->plugins);
}

/* Fills the zeroed struct: defaults, the file, the arguments in order (so the last one of a key counts),
 * the name, the checks. Relative paths in the file begin at its folder, those of arguments at the current
 * one. */
static sgm_status fill(config *c, const char *name, const yaml_node *root, const char *const *arguments,
                       size_t count)
{
    SGM_TRY(options_set_defaults(config_table, config_table_count, c));
    const char *slash = strrchr(name, '/');
    char *folder = slash != NULL ? sgm__strndup(name, (size_t)(slash - name)) : sgm__strdup("");
    if (folder == NULL)
        return sgm_last_status();
    option_source source = {.name = name, .folder = folder, .places = &c->places};
    sgm_status status = load_plugins(c, &source, root, arguments, count);
    if (status == SGM_OK)
        status = options_apply(config_table, config_table_count, c, &source, root);
    sgm__free(folder);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = options_apply_argument(config_table, config_table_count, c, arguments[i], &c->places);
    SGM_TRY(status);
    if (c->network != NULL && strcmp(c->network, "auto") == 0) {
        sgm__free(c->network);
        c->network = NULL;
    }
    SGM_TRY(
        plugins_load_of(name, &c->plugins)); /* the list was read anew: what --plugin gave belongs to it */
    SGM_TRY(name_after_file(c, name));
    return check_whole(c, name);
}

/* Takes the tree, which may be NULL for a file that could not be read. The section `search` is left out
 * here: search_file.c reads it, and the rest is an experiment for `sigma train` too. */
static sgm_status from_tree(config *c, const char *name, yaml_node *root, const char *const *arguments,
                            size_t count)
{
    memset(c, 0, sizeof *c);
    if (root == NULL)
        return sgm_last_status();
    yaml_tree_free(yaml_tree_take(root, "search")); /* for `sigma search`; the rest is an experiment */
    sgm_status status = fill(c, name, root, arguments, count);
    yaml_tree_free(root);
    if (status != SGM_OK)
        config_free(c);
    return status;
}

sgm_status config_load(config *c, const char *path, const char *const *arguments, size_t count)
{
    return from_tree(c, path, yaml_tree_load(path), arguments, count);
}

sgm_status config_parse(config *c, const char *name, const char *text, size_t length,
                        const char *const *arguments, size_t count)
{
    return from_tree(c, name, yaml_tree_parse(name, text, length), arguments, count);
}

void config_free(config *c)
{
    options_free(config_table, config_table_count, c);
    text_map_clear(&c->places);
    sgm_pipeline_free(c->data.pipeline);
    sgm_split_free(c->data.parts);
    memset(c, 0, sizeof *c);
}

const char *config_place(const config *c, const char *key)
{
    const char *place = text_map_get(&c->places, key);
    return place != NULL ? place : key;
}

char *config_text(const config *c)
{
    sgm__text out = {0};
    options_write(config_table, config_table_count, c, &out);
    return sgm__text_take(&out);
}

char *config_data_text(const data_config *data)
{
    sgm__text out = {0};
    options_write(data_table, COUNT(data_table), data, &out);
    return sgm__text_take(&out);
}

/* Sets what was given on an optimiser, by the library's names (`prefix` "schedule." for the schedule's).
 * What was not given keeps the type's default. Rows that only the command knows (type, schedule) are
 * skipped. */
static sgm_status give(const option *table, size_t count, const void *base, const char *prefix,
                       sgm_optimiser *optimiser)
{
    for (size_t i = 0; i < count; i++) {
        const option whole = option_complete(&table[i]);
        const void *value = (const char *)base + whole.offset;
        char name[64];
        sgm_content content = {0};
        if (table[i].kind != OPTION_SETTING)
            continue;
        if (whole.kind == OPTION_INTEGER && *(const int64_t *)value != OPTION_UNSET)
            content = sgm_integer_content(*(const int64_t *)value);
        else if (whole.kind == OPTION_NUMBER && !isnan(*(const double *)value))
            content = sgm_number_content(*(const double *)value);
        else if (whole.kind == OPTION_TEXT && *(char *const *)value != NULL)
            content = sgm_text_content(*(char *const *)value);
        else
            continue;
        snprintf(name, sizeof name, "%s%s", prefix, whole.row.name);
        SGM_TRY(sgm_optimiser_set(optimiser, name, &content));
    }
    return SGM_OK;
}

/* The library takes 0 for its default. */
static int64_t given_or_0(int64_t value)
{
    return value != OPTION_UNSET ? value : 0;
}

/* The type none lets an argument take away the operator that a file names. */
bool config_has_operator(const operator_config *o)
{
    return o->type != NULL && strcmp(o->type, "none") != 0;
}

/* The operator takes options.reducer, unless adding to the reducer fails before. */
sgm_operator *config_operator(const operator_config *o)
{
    bool gradients = strcmp(o->type, "gradients") == 0, ranks = strcmp(o->type, "mpi") == 0;
    sgm_operator_options options = {.struct_size = sizeof options,
                                    .workers = (int32_t)given_or_0(o->workers),
                                    .share = isnan(o->share) ? 0 : o->share,
                                    .handlers = o->handlers,
                                    .threads = (int32_t)given_or_0(o->threads),
                                    .every = given_or_0(o->every),
                                    .timeout = isnan(o->timeout) ? 0 : o->timeout,
                                    .check_every = given_or_0(o->check_every),
                                    .bucket = given_or_0(o->bucket),
                                    .bfloat16 = o->bfloat16,
                                    .sharded = o->sharded};
    /* Reducers of single parameters are exceptions to a reducer of all, which is the average if none is
     * given. */
    if (o->reducer != NULL || o->reducers.count > 0)
        options.reducer = o->reducer != NULL ? sgm_reducer_parse(o->reducer) : sgm_average_reducer();
    for (size_t i = 0; i < o->reducers.count; i++)
        if (sgm_reducer_add(options.reducer, o->reducers.keys[i], sgm_reducer_parse(o->reducers.values[i])) !=
            SGM_OK) {
            sgm_reducer_free(options.reducer);
            return NULL;
        }
    return ranks       ? sgm_mpi_operator_with(&options)
           : gradients ? sgm_gradient_operator_with(&options)
                       : sgm_parameter_operator_with(&options);
}

/* Creates the optimiser of the given type with its defaults, then sets what was given. Also called by
 * check_whole, to find values that do not go together while the file is read. */
sgm_optimiser *config_optimiser(const optimiser_config *o)
{
    sgm_optimiser *optimiser = sgm_optimiser_create(o->type, NULL);
    if (optimiser == NULL)
        return NULL;
    if (give(optimiser_table, COUNT(optimiser_table), o, "", optimiser) == SGM_OK &&
        give(schedule_table, COUNT(schedule_table), &o->schedule, "schedule.", optimiser) == SGM_OK)
        return optimiser;
    sgm_optimiser_free(optimiser);
    return NULL;
}

sgm_dtype config_precision(const config *c)
{
    sgm_dtype dtype;
    return sgm_dtype_parse(c->precision, &dtype) == SGM_OK ? dtype
                                                           : SGM_FLOAT32; /* the table has checked it */
}
