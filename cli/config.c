/* The table of everything that a file may say, and the checks that need no data. */
#include "config.h"
#include "registry/pattern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- checks of texts --- */

static sgm_status check_network(const char *value)
{
    sgm_network *network = sgm_network_parse(value);
    if (network == NULL)
        return sgm_last_status();
    sgm_network_free(network);
    return SGM_OK;
}

static sgm_status check_modifier(const char *value)
{
    sgm_modifier *modifier = sgm_modifier_parse(value);
    if (modifier == NULL)
        return sgm__last_failure();
    sgm_modifier_free(modifier);
    return SGM_OK;
}

static sgm_status check_initialiser(const char *value)
{
    sgm_initialiser *initialiser = sgm_initialiser_parse(value);
    if (initialiser == NULL)
        return sgm_last_status();
    sgm_initialiser_free(initialiser);
    return SGM_OK;
}

static sgm_status check_rule(const char *value)
{
    sgm_rule *rule = sgm_rule_parse(value);
    sgm_rule_free(rule);
    return rule != NULL ? SGM_OK : sgm_last_status();
}

static sgm_status check_hook(const char *value)
{
    sgm_hook *hook = sgm_hook_parse(value);
    sgm_hook_free(hook);
    return hook != NULL ? SGM_OK : sgm__last_failure();
}

static sgm_status check_part(const char *value)
{
    unsigned parts;
    return sgm_parts_parse(value + (value[0] == '-'), &parts); /* one that is taken away: its name */
}

static sgm_status check_optimiser(const char *value)
{
    sgm_optimiser *optimiser = SGM_OPTIMISER(value, .learning_rate = 0);
    if (optimiser == NULL)
        return sgm_last_status();
    sgm_optimiser_free(optimiser);
    return SGM_OK;
}

static sgm_status check_schedule(const char *value)
{
    sgm_schedule_kind kind;
    return sgm_schedule_kind_parse(value, &kind);
}

static sgm_status fail_choice(const char *value, const char *const *names, size_t count)
{
    const char *near = sgm__nearest(value, names, count);
    sgm__text known = {0};
    for (size_t i = 0; i < count; i++)
        sgm__text_append(&known, "%s%s", i > 0 ? ", " : "", names[i]);
    sgm_status status =
        near != NULL ? sgm_fail(SGM_ERROR_ARGUMENT, "unknown '%.60s' (did you mean '%s'?)", value, near)
                     : sgm_fail(SGM_ERROR_ARGUMENT, "unknown '%.60s'; there are %s", value,
                                known.data != NULL ? known.data : "");
    sgm__text_free(&known);
    return status;
}

/* It names a folder. */
static sgm_status check_name(const char *value)
{
    if (value[0] == '.' || strchr(value, '/') != NULL || strlen(value) > 200)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "expected at most 200 characters without '/', not beginning with '.', got '%.60s'",
                        value);
    return SGM_OK;
}

static sgm_status check_handler(const char *value)
{
    const char *names[32];
    size_t count = 0;
    for (; count < 32 && (names[count] = sgm_handler_name_at(count)) != NULL; count++)
        if (strcmp(names[count], value) == 0)
            return SGM_OK;
    return fail_choice(value, names, count);
}

static sgm_status check_precision(const char *value)
{
    static const char *const names[] = {"float32", "float64"};
    if (strcmp(value, names[0]) == 0 || strcmp(value, names[1]) == 0)
        return SGM_OK;
    return fail_choice(value, names, 2);
}

static sgm_status check_dataset(const char *value)
{
    size_t count;
    const char *const *names = sgm_dataset_names(&count);
    if (strncmp(value, "text:", 5) == 0)
        return SGM_OK;
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], value) == 0)
            return SGM_OK;
    return fail_choice(value, names, count);
}

static sgm_status check_separator(const char *value)
{
    return strlen(value) == 1 ? SGM_OK
                              : sgm_fail(SGM_ERROR_ARGUMENT, "expected one character, got '%.20s'", value);
}

static sgm_status check_range_number(const char *value)
{
    double number;
    return sgm__parse_double(value, &number) && isfinite(number)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "expected a number, got '%.40s'", value);
}

static sgm_status check_columns(const char *value)
{
    char *end;
    long first = strtol(value, &end, 10), last = first;
    if (end != value && *end == '-') {
        const char *second = end + 1;
        last = strtol(second, &end, 10);
        if (end == second)
            end = NULL;
    }
    if (value[0] < '0' || value[0] > '9' || end == NULL || *end != '\0' || last < first || last > 1000000)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected columns from 0, such as 0-3 or 4, got '%.40s'", value);
    return SGM_OK;
}

/* --- the table --- */

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define OF(type, member) .offset = offsetof(type, member)
#define NUMBER(type, member, low, high, text)                                                                \
    {                                                                                                        \
        .name = #member, .kind = OPTION_NUMBER, OF(type, member), .least = low, .most = high, .doc = text    \
    }

static const option data_table[] = {
    {.name = "dataset",
     .kind = OPTION_TEXT,
     OF(data_config, dataset),
     .check = check_dataset,
     .path_after = "text:",
     .doc = "a ready-made one (see 'sigma info'), or text:PATH"},
    {.name = "csv", .kind = OPTION_PATH, OF(data_config, csv), .doc = "a table, with `sections`"},
    {.name = "inputs", .kind = OPTION_PATH, OF(data_config, inputs), .doc = "an array, .npy or idx"},
    {.name = "targets", .kind = OPTION_PATH, OF(data_config, targets), .doc = "the array that belongs to it"},
    {.name = "skip_rows",
     .kind = OPTION_INTEGER,
     OF(data_config, skip_rows),
     .least = 0,
     .most = 1e6,
     .doc = "csv: header rows"},
    {.name = "separator",
     .kind = OPTION_TEXT,
     OF(data_config, separator),
     .check = check_separator,
     .doc = "csv: one character, a comma if not given"},
    {.name = "missing",
     .kind = OPTION_TEXT,
     OF(data_config, missing),
     .doc = "csv: a cell with this text is missing and becomes 0"},
    {.name = "skip_ragged",
     .kind = OPTION_FLAG,
     OF(data_config, skip_ragged),
     .standard = "false",
     .doc = "csv: leave out rows with another number of columns"},
    {.name = "sections",
     .kind = OPTION_MAP,
     OF(data_config, sections),
     .check = check_columns,
     .doc = "csv: columns, such as {inputs: 0-3, targets: 4}"},
    {.name = "class_names",
     .kind = OPTION_LIST,
     OF(data_config, class_names),
     .doc = "csv: texts in the targets' column, class 0 first"},
    {.name = "classes",
     .kind = OPTION_INTEGER,
     OF(data_config, classes),
     .least = 2,
     .most = 1e6,
     .doc = "targets are numbers of classes, so many"},
    {.name = "input_range",
     .kind = OPTION_LIST,
     OF(data_config, input_range),
     .check = check_range_number,
     .doc = "[least, most] of the inputs, brought to 0 to 1"},
    {.name = "shuffled",
     .kind = OPTION_FLAG,
     OF(data_config, shuffled),
     .standard = "false",
     .doc = "files: all records in one random order (of the seed), before begin and share apply"},
    NUMBER(data_config, begin, 0, 1, "leave so large a part out at the beginning of each block"),
    NUMBER(data_config, share, 1e-9, 1, "the part that is used"),
};

static const option data_group_table[] = {
    {.name = "training",
     .kind = OPTION_GROUP,
     OF(data_group, training),
     .children = data_table,
     .child_count = COUNT(data_table),
     .doc = "what is learnt from; a name or the keys below"},
    {.name = "validation",
     .kind = OPTION_GROUP,
     OF(data_group, validation),
     .children = data_table,
     .child_count = COUNT(data_table),
     .doc = "measured after each epoch; the same keys"},
    {.name = "test",
     .kind = OPTION_GROUP,
     OF(data_group, test),
     .children = data_table,
     .child_count = COUNT(data_table),
     .doc = "measured at the end; the same keys"},
    {.name = "batch",
     .kind = OPTION_INTEGER,
     OF(data_group, batch),
     .least = 1,
     .most = 1e7,
     .standard = "32",
     .doc = "records of a minibatch"},
    {.name = "shuffle",
     .kind = OPTION_FLAG,
     OF(data_group, shuffle),
     .standard = "true",
     .doc = "another order in each epoch"},
    {.name = "drop_last",
     .kind = OPTION_FLAG,
     OF(data_group, drop_last),
     .standard = "false",
     .doc = "leave a smaller last minibatch out"},
};

static const option schedule_table[] = {
    {.name = "kind",
     .kind = OPTION_TEXT,
     OF(schedule_config, kind),
     .check = check_schedule,
     .doc = "constant, step, exponential, cosine, one_cycle or plateau"},
    NUMBER(schedule_config, period, 1e-6, 1e9, "epochs; cosine, one_cycle: those of the run"),
    NUMBER(schedule_config, factor, 0, 1, "of the learning rate"),
    NUMBER(schedule_config, warm_up, 0, 1e9, "epochs of linear rise at the beginning"),
};

static const option optimiser_table[] = {
    {.name = "type",
     .kind = OPTION_TEXT,
     OF(optimiser_config, type),
     .check = check_optimiser,
     .standard = "adam",
     .doc = "gradient_descent, momentum, nesterov, adagrad, adadelta, rmsprop, adam, adamw"},
    NUMBER(optimiser_config, learning_rate, 1e-12, 1e6, "if not given: the type's"),
    NUMBER(optimiser_config, momentum, 1e-9, 0.999999999, "momentum, nesterov; 0.9"),
    NUMBER(optimiser_config, decay_rate, 1e-9, 0.999999999, "adadelta 0.9, rmsprop 0.99"),
    NUMBER(optimiser_config, beta1, 1e-9, 0.999999999, "adam, adamw; 0.9"),
    NUMBER(optimiser_config, beta2, 1e-9, 0.999999999, "adam, adamw; 0.999"),
    NUMBER(optimiser_config, epsilon, 1e-30, 1, "against division by 0"),
    NUMBER(optimiser_config, weight_decay, 0, 1e6, "adamw 0.01 (0 means that too), others none"),
    NUMBER(optimiser_config, clip_value, 0, 1e30, "largest gradient; 0: any"),
    NUMBER(optimiser_config, clip_norm, 0, 1e30, "largest norm of all gradients; 0: any"),
    NUMBER(optimiser_config, average, 0, 0.999999999, "decay of a moving average of parameters; 0: none"),
    {.name = "accumulate",
     .kind = OPTION_INTEGER,
     OF(optimiser_config, accumulate),
     .least = 1,
     .most = 1e6,
     .doc = "minibatches for one update; 1"},
    {.name = "schedule",
     .kind = OPTION_GROUP,
     OF(optimiser_config, schedule),
     .children = schedule_table,
     .child_count = COUNT(schedule_table),
     .doc = "of the learning rate; a kind or the keys below"},
};

static const option start_table[] = {
    {.name = "run",
     .kind = OPTION_PATH,
     OF(start_config, run),
     .doc = "a folder of a run, or a checkpoint; only where the own run begins anew"},
    {.name = "parts",
     .kind = OPTION_LIST,
     OF(start_config, parts),
     .check = check_part,
     .doc = "of it; if not given: [parameters]; also network, optimiser, position, random, hooks, metrics, "
            "settings, everything"},
    {.name = "states",
     .kind = OPTION_LIST,
     OF(start_config, states),
     .check = sgm__pattern_check,
     .doc = "only those whose names match, [\"*.weights\"]"},
    {.name = "relaxed",
     .kind = OPTION_FLAG,
     OF(start_config, relaxed),
     .standard = "false",
     .doc = "take what fits and leave the rest, instead of refusing"},
};

const option config_table[] = {
    {.name = "name",
     .kind = OPTION_TEXT,
     OF(config, name),
     .check = check_name,
     .doc = "of the experiment; if not given: the file's"},
    {.name = "network",
     .kind = OPTION_TEXT,
     OF(config, network),
     .check = check_network,
     .doc = "layers, \"input(4) + dense(10, relu) + dense(3) + softmax_cross_entropy\""},
    {.name = "data",
     .kind = OPTION_GROUP,
     OF(config, data),
     .children = data_group_table,
     .child_count = COUNT(data_group_table),
     .doc = "a name (training only) or the keys below"},
    {.name = "optimiser",
     .kind = OPTION_GROUP,
     OF(config, optimiser),
     .children = optimiser_table,
     .child_count = COUNT(optimiser_table),
     .doc = "a type or the keys below"},
    {.name = "initialisers",
     .kind = OPTION_MAP,
     OF(config, initialisers),
     .check = check_initialiser,
     .doc = "by parameter, {\"*.weights\": he}"},
    {.name = "modifiers",
     .kind = OPTION_MAP,
     OF(config, modifiers),
     .check = check_modifier,
     .doc = "after each update, by parameter, {\"*.weights\": max_norm(3)}"},
    {.name = "freeze",
     .kind = OPTION_LIST,
     OF(config, freeze),
     .check = sgm__pattern_check,
     .doc = "parameters that stay as they are"},
    {.name = "rules",
     .kind = OPTION_LIST,
     OF(config, rules),
     .check = check_rule,
     .doc = "what to do when, \"if validation.loss stalls 5 epochs then stop\""},
    {.name = "hooks",
     .kind = OPTION_LIST,
     OF(config, hooks),
     .check = check_hook,
     .doc = "what else runs in a training, \"early_stopper(validation.loss)\"; see 'sigma info --hooks'"},
    {.name = "start_from",
     .kind = OPTION_GROUP,
     OF(config, start_from),
     .children = start_table,
     .child_count = COUNT(start_table),
     .doc = "another training, whose parameters this one begins with; a folder or the keys below"},
    {.name = "epochs",
     .kind = OPTION_INTEGER,
     OF(config, epochs),
     .least = 1,
     .most = 1e9,
     .doc = "through the data; 1 if there are no iterations either"},
    {.name = "iterations",
     .kind = OPTION_INTEGER,
     OF(config, iterations),
     .least = 1,
     .most = 1e15,
     .doc = "minibatches in all"},
    {.name = "seed",
     .kind = OPTION_INTEGER,
     OF(config, seed),
     .least = 0,
     .most = 9e18,
     .standard = "0",
     .doc = "of all that is random"},
    {.name = "handler",
     .kind = OPTION_TEXT,
     OF(config, handler),
     .check = check_handler,
     .standard = "cpu",
     .doc = "who computes (see 'sigma info')"},
    {.name = "threads",
     .kind = OPTION_INTEGER,
     OF(config, threads),
     .least = 1,
     .most = 1024,
     .doc = "if not given: one per processor"},
    {.name = "precision",
     .kind = OPTION_TEXT,
     OF(config, precision),
     .check = check_precision,
     .standard = "float32",
     .doc = "float32 or float64"},
    {.name = "folder",
     .kind = OPTION_TEXT,
     OF(config, folder),
     .doc = "of the run; if not given: runs/NAME-TIME"},
    {.name = "checkpoint_every",
     .kind = OPTION_INTEGER,
     OF(config, checkpoint_every),
     .least = -1,
     .most = 1e9,
     .standard = "1",
     .doc = "epochs; -1: only at the end"},
};
const size_t config_table_count = COUNT(config_table);

/* --- whole files --- */

bool data_config_is_empty(const data_config *data)
{
    return data->dataset == NULL && data->csv == NULL && data->inputs == NULL;
}

static sgm_status check_data(const char *name, const char *role, const data_config *data)
{
    int sources = (data->dataset != NULL) + (data->csv != NULL) + (data->inputs != NULL);
    if (sources > 1)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s: expected one of dataset, csv, inputs; got %d of them", name, role,
                        sources);
    if (sources == 0 && (data->targets != NULL || data->sections.count > 0))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s: expected one of dataset, csv, inputs; got none",
                        name, role);
    if (data->shuffled && data->dataset != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s.shuffled: is for csv and inputs; ready-made datasets are shuffled "
                        "where that makes sense",
                        name, role);
    if (data->csv != NULL && text_map_get(&data->sections, "inputs") == NULL)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: data.%s.sections: expected columns for inputs, such as {inputs: 0-3, targets: 4}", name,
            role);
    if (data->input_range.count != 0 && data->input_range.count != 2)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: data.%s.input_range: expected [least, most], got %zu numbers", name, role,
                        data->input_range.count);
    if (data->sections.count > 8)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: data.%s.sections: at most 8, got %zu", name, role,
                        data->sections.count);
    return SGM_OK;
}

static sgm_status check_whole(const config *c, const char *name)
{
    if (c->network == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: network: is missing, such as network: \"input(4) + dense(3) + "
                        "softmax_cross_entropy\"",
                        name);
    SGM_TRY(check_data(name, "training", &c->data.training));
    SGM_TRY(check_data(name, "validation", &c->data.validation));
    SGM_TRY(check_data(name, "test", &c->data.test));
    sgm_optimiser *optimiser = config_optimiser(&c->optimiser);
    if (optimiser == NULL)
        return sgm__fail_within("%s: optimiser", name);
    sgm_optimiser_free(optimiser);
    return SGM_OK;
}

/* "runs/digits.yaml" is "digits". */
static sgm_status name_after_file(config *c, const char *path)
{
    if (c->name != NULL)
        return SGM_OK;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    c->name = dot != NULL && dot != name ? sgm__strndup(name, (size_t)(dot - name)) : sgm__strdup(name);
    return c->name != NULL ? SGM_OK : sgm_last_status();
}

static sgm_status fill(config *c, const char *name, const yaml_node *root, const char *const *arguments,
                       size_t count)
{
    SGM_TRY(options_set_defaults(config_table, config_table_count, c));
    const char *slash = strrchr(name, '/');
    char *folder = slash != NULL ? sgm__strndup(name, (size_t)(slash - name)) : sgm__strdup("");
    if (folder == NULL)
        return sgm_last_status();
    option_source source = {.name = name, .folder = folder};
    sgm_status status = options_apply(config_table, config_table_count, c, &source, root);
    sgm__free(folder);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = options_apply_argument(config_table, config_table_count, c, arguments[i]);
    SGM_TRY(status);
    SGM_TRY(name_after_file(c, name));
    return check_whole(c, name);
}

static sgm_status from_tree(config *c, const char *name, yaml_node *root, const char *const *arguments,
                            size_t count)
{
    memset(c, 0, sizeof *c);
    if (root == NULL)
        return sgm_last_status();
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
    memset(c, 0, sizeof *c);
}

char *config_text(const config *c)
{
    sgm__text out = {0};
    options_write(config_table, config_table_count, c, &out);
    return sgm__text_take(&out);
}

/* The library's defaults are behind 0. */
static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

sgm_optimiser *config_optimiser(const optimiser_config *o)
{
    sgm_optimiser_options options = {
        .struct_size = sizeof options,
        .learning_rate = or_zero(o->learning_rate),
        .momentum = or_zero(o->momentum),
        .decay_rate = or_zero(o->decay_rate),
        .beta1 = or_zero(o->beta1),
        .beta2 = or_zero(o->beta2),
        .epsilon = or_zero(o->epsilon),
        .weight_decay = or_zero(o->weight_decay),
        .clip_value = or_zero(o->clip_value),
        .clip_norm = or_zero(o->clip_norm),
        .average = or_zero(o->average),
        .accumulate = o->accumulate != OPTION_UNSET ? o->accumulate : 0,
        .schedule = {.period = or_zero(o->schedule.period),
                     .factor = or_zero(o->schedule.factor),
                     .warm_up = or_zero(o->schedule.warm_up)},
    };
    if (o->schedule.kind != NULL &&
        sgm_schedule_kind_parse(o->schedule.kind, &options.schedule.kind) != SGM_OK)
        return NULL;
    return sgm_optimiser_create(o->type, &options);
}

sgm_dtype config_precision(const config *c)
{
    return strcmp(c->precision, "float64") == 0 ? SGM_FLOAT64 : SGM_FLOAT32;
}
