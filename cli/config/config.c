/* The outermost keys of a configuration file, the checks of a whole file, and how one is read and written.
 *
 * Rows of the kind OPTION_SETTING refer to the library's own table of settings (sgm_optimiser_settings and
 * so on), which has their bounds, defaults and words; rows that spell these out are keys that only the
 * command knows. options.c reads by these tables, options_text.c writes. The keys of the section data are in
 * data/keys.c, those of the optimiser in optimiser.c, checks of single texts in config_checks.c; what
 * experiments are made of a config is in experiment.c.
 *
 * Loading (config_load, config_parse): defaults, the file, the arguments, then check_whole for what
 * concerns several keys. The order of rows is the order in files that are written and in the help. */
#include "config/config.h"
#include "config/config_checks.h"
#include "config/files.h"
#include "config/options.h"
#include "config/saved.h"
#include "handlers/handler.h"
#include "hooks/hooks.h"
#include "registry/pattern.h"
#include "text/phrase.h"
#include "text/web_address.h"

#include <math.h>
#include <stdio.h>

/* --- the tables --- */

/* Keys below start_from. The first one names the run; the others need it. */
static const option start_rows[] = {
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
static const option_table start_table = OPTION_TABLE(start_rows);

/* How tokens are drawn. What is not given is left to the hook, so that it stands in no text. */
#define SAMPLE_DRAWING(member)                                                                               \
    OPTION_ROW(sample_config, member, OPTION_SETTING, .settings = sgm_generation_settings,                   \
               .stays_unset = true)

/* Keys below `sample`. */
static const option sample_rows[] = {
    OPTION_ROW(sample_config, prompts, OPTION_LIST, .check = check_prompt,
               .row.doc =
                   "texts that a language model goes on with after each epoch, [\"Once upon a time\"]"),
    OPTION_ROW(sample_config, count, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 100000,
               .row.default_text = "40", .row.doc = "of tokens, at most"),
    SAMPLE_DRAWING(temperature),
    SAMPLE_DRAWING(top_k),
    SAMPLE_DRAWING(top_p),
    SAMPLE_DRAWING(min_p),
    SAMPLE_DRAWING(repetition_penalty),
    SAMPLE_DRAWING(greedy),
    SAMPLE_DRAWING(seed),
    OPTION_ROW(sample_config, chat, OPTION_FLAG, .row.default_text = "false",
               .row.doc = "prompts are what a user says, in the template of a model of others"),
};
static const option_table sample_table = OPTION_TABLE(sample_rows);

static const char *operator_at(size_t index)
{
    static const char *const names[] = {"gradients", "parameters", "mpi", "none"};
    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

/* Keys below `operator`. The first one is the type; the others need it. */
static const option operator_rows[] = {
    OPTION_ROW(
        operator_config, type, OPTION_TEXT, .check = check_operator, .name_at = operator_at,
        .row.doc =
            "what workers merge: gradients, in each iteration, or parameters; mpi: of all ranks of mpirun; "
            "none"),
    OPTION_SETTING_ROW(operator_config, workers, sgm_operator_settings),
    OPTION_SETTING_ROW(operator_config, share, sgm_operator_settings),
    OPTION_SETTING_ROW(operator_config, every, sgm_operator_settings),
    OPTION_ROW(operator_config, reducer, OPTION_TEXT, .check = check_reducer,
               .row.doc = "parameters: average (if not given), maximum or weighted(3, 8)"),
    OPTION_ROW(operator_config, reducers, OPTION_MAP, .check = check_reducer,
               .row.doc = "parameters: others, by parameter, {\"*.biases\": maximum}"),
    OPTION_ROW(operator_config, handlers, OPTION_SETTING, .settings = sgm_operator_settings,
               .check = check_handlers),
    OPTION_SETTING_ROW(operator_config, threads, sgm_operator_settings),
    OPTION_SETTING_ROW(operator_config, timeout, sgm_operator_settings),
    OPTION_SETTING_ROW(operator_config, check_every, sgm_operator_settings),
    OPTION_SETTING_ROW(operator_config, bucket, sgm_operator_settings),
    OPTION_SETTING_ROW(operator_config, bfloat16, sgm_operator_settings),
    OPTION_SETTING_ROW(operator_config, sharded, sgm_operator_settings),
};
static const option_table operator_table = OPTION_TABLE(operator_rows);

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
static const option config_rows[] = {
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
    OPTION_ROW(config, adapters, OPTION_LIST, .check = check_adapter,
               .row.doc = "what is trained in the place of the network's own parameters, lora(8)"),
    OPTION_ROW(config, freeze, OPTION_LIST, .check = check_freeze,
               .row.doc = "parameters that stay as they are, [\"1-dense.*\"]; one with ! in front is an "
                          "exception of those before it"),
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
    OPTION_GROUP_ROW(
        config, sample, sample_table,
        .row.doc = "texts that a language model goes on with after each epoch; a list or the keys below"),
    OPTION_ROW(config, monitors, OPTION_LIST,
               .row.doc =
                   "monitors that plug-ins bring, \"losses:file.txt\"; what they are told changes nothing"),
    OPTION_GROUP_ROW(config, operator, operator_table,
                     .row.doc = "several workers; a type or the keys below"),
    OPTION_ROW(config, from, OPTION_PATH,
               .row.doc =
                   "a model to go on from, as 'sigma import' takes it, or a run: its parameters, and its "
                   "network if none is given"),
    OPTION_GROUP_ROW(
        config, start_from, start_table,
        .row.doc = "another training, whose parameters this one begins with; a folder or the keys below"),
    OPTION_SETTING_ROW(config, epochs, sgm_run_settings),
    OPTION_SETTING_ROW(config, iterations, sgm_run_settings),
    OPTION_SETTING_ROW(config, seed, sgm_env_settings),
    OPTION_ROW(config, handler, OPTION_SETTING, .settings = sgm_env_settings,
               .check = sgm__handler_check_name, .name_at = sgm_handler_name_at, .more = list_handlers),
    OPTION_SETTING_ROW(config, threads, sgm_env_settings),
    OPTION_SETTING_ROW(config, precision, sgm_env_settings),
    OPTION_ROW(config, memory, OPTION_SETTING, .settings = sgm_env_settings, .check = check_memory),
    OPTION_ROW(config, folder, OPTION_TEXT, .row.doc = "of the run; if not given: runs/NAME-TIME"),
    OPTION_SETTING_ROW(config, checkpoint_every, sgm_run_settings),
    OPTION_ROW(config, plugins, OPTION_LIST, .is_path = true,
               .row.doc = "shared libraries with layers, hooks and so on of your own, [./mine.so]"),
};
const option_table config_table = OPTION_TABLE(config_rows);

/* --- whole files --- */

sgm_status check_first_key(const char *name, const char *group, const option_table *table, const void *base)
{
    const option *first = &table->rows[0];
    const char *given = options_first_given(table, base);
    if (given == NULL || given == first->row.name)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s: %s: %s is given, but no %s (%s)", name, group, given,
                    first->row.name, option_complete(first).row.doc);
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
static sgm_status check_webhooks(const config *c)
{
    const text_list *lists[] = {&c->rules, &c->hooks};
    static const char *const keys[] = {"rules", "hooks"};
    sgm_status status = SGM_OK;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (size_t i = 0; i < lists[k]->count && status == SGM_OK; i++) {
            sgm_hook *hook = sgm_hook_parse(lists[k]->items[i]);
            const char *refused =
                hook != NULL ? sgm__hook_refused_webhook(hook, names_webhook, &c->webhooks) : NULL;
            if (refused != NULL)
                status = sgm_fail(SGM_ERROR_ARGUMENT,
                                  "%s: a rule sends to '%.200s', which must be named: webhooks: [\"%.200s\"]",
                                  config_place(c, keys[k]), refused, refused);
            sgm_hook_free(hook);
        }
    if (status == SGM_OK)
        sgm_clear_error();
    return status;
}

/* Fails if a rule runs a command, and the file does not allow it. Texts that cannot be read have errors of
 * their own. */
static sgm_status check_commands(const config *c)
{
    const text_list *lists[] = {&c->rules, &c->hooks};
    static const char *const keys[] = {"rules", "hooks"};
    for (size_t k = 0; k < sizeof lists / sizeof *lists && !c->allow_commands; k++)
        for (size_t i = 0; i < lists[k]->count; i++) {
            sgm_hook *hook = sgm_hook_parse(lists[k]->items[i]);
            bool runs = hook != NULL && sgm__hook_runs_commands(hook);
            sgm_hook_free(hook);
            if (runs)
                return sgm_fail(SGM_ERROR_ARGUMENT,
                                "%s: '%.200s' runs a command, which must be allowed: allow_commands: true",
                                config_place(c, keys[k]), lists[k]->items[i]);
        }
    sgm_clear_error();
    return SGM_OK;
}

/* Everything that can be wrong without data or a handler. */
static sgm_status check_whole(const config *c, const char *name)
{
    SGM_TRY(check_datasets(name, &c->data, c->from));
    SGM_TRY(split_check(name, &c->data));
    if (c->network == NULL && c->from == NULL && !data_config_has_pipeline(&c->data.training))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: network: is missing, such as network: \"input(4) + dense(3) + "
                        "softmax_cross_entropy\"",
                        name);
    SGM_TRY(check_first_key(name, "operator", &operator_table, &c->operator));
    SGM_TRY(check_commands(c));
    SGM_TRY(check_webhooks(c));
    SGM_TRY(check_first_key(name, "start_from", &start_table, &c->start_from));
    return optimiser_check(name, &c->optimiser, &c->places);
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
            SGM_TRY(options_apply_key(&config_table, c, source, "plugins", root->children[i]));
    for (size_t i = 0; i < count; i++)
        if (strncmp(arguments[i], "plugins=", 8) == 0)
            SGM_TRY(options_apply_argument(&config_table, c, arguments[i], &c->places));
    return plugins_load_of(source->name, &c->plugins);
}

/* Fills the zeroed struct: defaults, the file, the arguments in order (so the last one of a key counts),
 * the name, the checks. Relative paths in the file begin at its folder, those of arguments at the current
 * one. */
static sgm_status fill(config *c, const char *name, const yaml_node *root, const char *const *arguments,
                       size_t count)
{
    SGM_TRY(options_set_defaults(&config_table, c));
    const char *slash = strrchr(name, '/');
    char *folder = slash != NULL ? sgm__strndup(name, (size_t)(slash - name)) : sgm__strdup("");
    if (folder == NULL)
        return sgm_last_status();
    option_source source = {.name = name, .folder = folder, .places = &c->places};
    sgm_status status = load_plugins(c, &source, root, arguments, count);
    if (status == SGM_OK)
        status = options_apply(&config_table, c, &source, root);
    sgm__free(folder);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = options_apply_argument(&config_table, c, arguments[i], &c->places);
    SGM_TRY(status);
    if (c->network != NULL && strcmp(c->network, "auto") == 0) {
        sgm__free(c->network);
        c->network = NULL;
    }
    SGM_TRY(
        plugins_load_of(name, &c->plugins)); /* the list was read anew: what --plugin gave belongs to it */
    SGM_TRY(name_after_file(c, name));
    if (text_data_complete(c) != SGM_OK)
        return sgm__fail_within("%s: data.training", name);
    if (from_take_network(c) != SGM_OK)
        return sgm__fail_within("%s: from", name);
    adapters_take_known(c);
    SGM_TRY(files_complete(c));
    if (chats_complete(c) != SGM_OK)
        return sgm__fail_within("%s: data.training", name);
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
    options_free(&config_table, c);
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

/* --- the key `sample` --- */

/* A text of hooks has no control characters, so line ends are written as \n. */
static char *escape(const char *text)
{
    sgm__text out = {0};
    sgm__text_append(&out, "%s", "");
    for (; *text != '\0'; text++)
        if (*text == '\n' || *text == '\t' || *text == '\\')
            sgm__text_append(&out, "\\%c", *text == '\n' ? 'n' : *text == '\t' ? 't' : '\\');
        else
            sgm__text_append_bytes(&out, text, 1);
    return sgm__text_take(&out);
}

/* Appends ", top_p=0.9" for each that was given. */
static void append_drawing(const sample_config *s, sgm__text *text)
{
    for (size_t i = 0; i < sample_table.count; i++) {
        const option o = option_complete(&sample_rows[i]);
        const void *value = (const char *)s + o.offset;
        if (sample_rows[i].kind != OPTION_SETTING)
            continue;
        if (o.kind == OPTION_FLAG && *(const bool *)value) {
            sgm__text_append(text, ", %s=true", o.row.name);
        } else if (o.kind == OPTION_INTEGER && *(const int64_t *)value != OPTION_UNSET) {
            sgm__text_append(text, ", %s=%lld", o.row.name, (long long)*(const int64_t *)value);
        } else if (o.kind == OPTION_NUMBER && !isnan(*(const double *)value)) {
            sgm__text_append(text, ", %s=", o.row.name);
            sgm__append_number(text, *(const double *)value);
        }
    }
}

char *sample_text(const sample_config *s, const char *prompt)
{
    sgm__text text = {0};
    char *escaped = escape(prompt);
    sgm__text_append(&text, "every epoch sample(");
    sgm__append_string(&text, escaped != NULL ? escaped : "");
    sgm__text_append(&text, ", count=%lld", (long long)s->count);
    append_drawing(s, &text);
    sgm__text_append(&text, "%s)", s->chat ? ", chat=true" : "");
    text.failed |= escaped == NULL;
    sgm__free(escaped);
    return sgm__text_take(&text);
}

/* --- errors of the library about items of a file --- */

/* Lists of a file whose items the library checks beside the network, and the words before an item in its
 * errors. */
typedef struct blamed_list {
    const char *key, *before;
    const text_list *list;
} blamed_list;
typedef struct blamed_map {
    const char *key, *before;
    const text_map *map;
} blamed_map;

/* As the error has the item: a pattern without the mark, a prompt as the hook that it stands for; sgm__free.
 */
static char *blamed_item(const config *c, const blamed_list *l, const char *item)
{
    if (l->list == &c->sample.prompts)
        return sample_text(&c->sample, item);
    return sgm__strdup(item + (l->list == &c->freeze && item[0] == TRAINED_MARK ? 1 : 0));
}

static bool is_blamed(const config *c, const blamed_list *l, const char *item)
{
    char *shown = blamed_item(c, l, item);
    char *named = shown != NULL ? sgm__format("%s '%s'", l->before, shown) : NULL;
    bool found = named != NULL && strstr(sgm_last_error(), named) != NULL;
    sgm__free(named);
    sgm__free(shown);
    return found;
}

/* A list that stands for a whole section has that one's name: `sample: [...]`. */
static const char *item_place(const config *c, const char *key, size_t index)
{
    const size_t lengths[] = {strlen(key), strcspn(key, ".")};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char item[64];
        snprintf(item, sizeof item, "%.*s[%zu]", (int)lengths[i], key, index);
        const char *place = text_map_get(&c->places, item);
        if (place != NULL)
            return place;
    }
    return config_place(c, key);
}

/* Whether the error names the pattern of an entry; then it gets the place of that one. */
static bool fail_at_entry(const config *c, const char *key, const char *before, const char *pattern)
{
    char *named = sgm__format("%s '%s'", before, pattern), *entry = sgm__format("%s.%s", key, pattern);
    bool found = named != NULL && entry != NULL && strstr(sgm_last_error(), named) != NULL;
    if (found)
        sgm__fail_within("%s", config_place(c, entry));
    sgm__free(named);
    sgm__free(entry);
    return found;
}

/* The same of maps, whose keys are patterns. */
static sgm_status fail_at_pattern(const config *c)
{
    const blamed_map maps[] = {{"initialisers", "the initialiser for", &c->initialisers},
                               {"modifiers", "the modifier for", &c->modifiers}};
    for (size_t k = 0; k < sizeof maps / sizeof *maps; k++)
        for (size_t i = 0; i < maps[k].map->count; i++)
            if (fail_at_entry(c, maps[k].key, maps[k].before, maps[k].map->keys[i]))
                return sgm_last_status();
    return sgm_last_status();
}

/* "freezing 'x'" is also what the error of "unfreezing 'x'" ends in. */
sgm_status config_fail_at_item(const config *c)
{
    const blamed_list lists[] = {{"rules", "hook", &c->rules},
                                 {"hooks", "hook", &c->hooks},
                                 {"freeze", "freezing", &c->freeze},
                                 {"sample.prompts", "hook", &c->sample.prompts}};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (size_t i = 0; i < lists[k].list->count; i++)
            if (is_blamed(c, &lists[k], lists[k].list->items[i]))
                return sgm__fail_within("%s", item_place(c, lists[k].key, i));
    return fail_at_pattern(c);
}

/* --- as text --- */

char *config_text(const config *c)
{
    sgm__text out = {0};
    options_write(&config_table, c, &out);
    return sgm__text_take(&out);
}

sgm_dtype config_precision(const config *c)
{
    sgm_dtype dtype;
    return sgm_dtype_parse(c->precision, &dtype) == SGM_OK ? dtype
                                                           : SGM_FLOAT32; /* the table has checked it */
}
