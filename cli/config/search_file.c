/* Reads the file of a search: the section `search` by a table, its values each with the place of every
 * mistake, and makes trials' configurations.
 *
 * Called by search.c. Values cannot be read by a table, because their keys are those of any option of an
 * experiment: each choice is applied to a scratch configuration (options_apply_key), which checks it by
 * that option's own rules, and read back as text (options_key_text). The texts are what the library hands
 * to trials. */
#include "config/search_file.h"
#include "config/config_checks.h"

#include <math.h>
#include <stdio.h>

/* --- the section --- */

/* In the order of sgm_search_method, and of sgm_search_pruning. */
static const char *const methods[] = {"grid", "random", "halving", "tpe"};
static const char *const prunings[] = {"none", "median"};
static const char *const goals[] = {"maximum", "minimum"};

static sgm_status check_method(const char *value)
{
    return check_choice(value, methods, 4);
}

static sgm_status check_pruning(const char *value)
{
    return check_choice(value, prunings, 2);
}

static sgm_status check_goal(const char *value)
{
    return check_choice(value, goals, 2);
}

/* Keys of the section. `values` is taken out of the tree before this table is applied. */
static const option section_rows[] = {
    OPTION_ROW(search_config, method, OPTION_TEXT, .check = check_method, .row.default_text = "grid",
               .row.doc = "grid, random, halving or tpe"),
    OPTION_ROW(search_config, objective, OPTION_TEXT,
               .row.doc = "a trainer's number; if not given: validation.loss, or training.loss"),
    OPTION_ROW(search_config, goal, OPTION_TEXT, .check = check_goal,
               .row.doc = "maximum or minimum; if not given: minimum of losses, costs, errors"),
    OPTION_ROW(search_config, values, OPTION_MAP,
               .row.doc = "by key: a list, or {from: 1e-4, to: 0.1, scale: log, steps: 4}"),
    OPTION_ROW(search_config, trials, OPTION_INTEGER, .row.minimum = 1,
               .row.maximum = SGM_SEARCH_MAXIMUM_TRIALS,
               .row.doc = "not for a grid; 20, but halving over lists: all combinations"),
    OPTION_ROW(search_config, startup_trials, OPTION_INTEGER, .row.minimum = 1,
               .row.maximum = SGM_SEARCH_MAXIMUM_TRIALS, .row.doc = "tpe: drawn at random first; 10"),
    OPTION_ROW(search_config, seed, OPTION_INTEGER, .row.minimum = 0, .row.maximum = 9e18,
               .row.doc = "of what is drawn; if not given: the experiment's"),
    OPTION_ROW(search_config, factor, OPTION_NUMBER, .row.minimum = 2, .row.maximum = 1000,
               .row.doc = "halving: so many fewer trials on each rung; 3"),
    OPTION_ROW(search_config, minimum_epochs, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1e9,
               .row.doc = "halving: of the first rung at least; 1"),
    OPTION_ROW(search_config, pruning, OPTION_TEXT, .check = check_pruning, .row.default_text = "none",
               .row.doc = "median: ends trials that are worse than the median after as many epochs; none"),
    OPTION_ROW(search_config, prune_after_trials, OPTION_INTEGER, .row.minimum = 1,
               .row.maximum = SGM_SEARCH_MAXIMUM_TRIALS,
               .row.doc = "pruning: none before so many trials have ended; 5"),
    OPTION_ROW(search_config, prune_after_epochs, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1e9,
               .row.doc = "pruning: none before so many epochs of a trial; 1"),
    OPTION_ROW(search_config, at_once, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 256,
               .row.default_text = "1", .row.doc = "trials side by side"),
};
static const option_table section_table = OPTION_TABLE(section_rows);

static const option root_rows[] = {
    OPTION_GROUP_ROW(search_root, search, section_table, .row.doc = "what to try"),
};
const option_table search_table = OPTION_TABLE(root_rows);

/* --- values --- */

/* A value that is a range, {from: 1e-4, to: 0.1, scale: log, steps: 4}. */
typedef struct range_config {
    double from, to;
    char *scale;
    int64_t steps;
} range_config;

static sgm_status check_scale(const char *value)
{
    static const char *const scales[] = {"linear", "log"};
    return check_choice(value, scales, 2);
}

static const option range_rows[] = {
    OPTION_ROW(range_config, from, OPTION_NUMBER, .row.doc = ""),
    OPTION_ROW(range_config, to, OPTION_NUMBER, .row.doc = ""),
    OPTION_ROW(range_config, scale, OPTION_TEXT, .check = check_scale, .row.doc = ""),
    OPTION_ROW(range_config, steps, OPTION_INTEGER, .row.minimum = 2,
               .row.maximum = SGM_SEARCH_MAXIMUM_TRIALS, .row.doc = ""),
};
static const option_table range_table = OPTION_TABLE(range_rows);

/* Reading the values of a file: the value that is being read, and where mistakes are reported. */
typedef struct reader {
    search_file *file;
    option_source source;
    config scratch; /* values are applied to this one after the other, to check them */
    const yaml_node *key;
    option_kind kind; /* of the option that the key names */
} reader;

static sgm_status fail_at(const reader *r, const yaml_node *node, const char *format, ...) SGM_PRINTF(3, 4);
/* Fails with the place of a node and the key of the value. */
static sgm_status fail_at(const reader *r, const yaml_node *node, const char *format, ...)
{
    char message[400];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s:%d:%d: search.values.%s: %s", r->source.name, node->line,
                    node->column, r->key->text, message);
}

/* Puts "search.values.KEY" into the newest message behind its place: "f.yaml:3:5: expected ..." becomes
 * "f.yaml:3:5: search.values.KEY: expected ...". The message is of options.c, which does not know where
 * the map stands. `key` NULL: without it. */
static void name_values(const reader *r, const char *key)
{
    static const char where[] = "search.values";
    char message[600];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    size_t place = strlen(r->source.name), digits = 0;
    if (strncmp(message, r->source.name, place) == 0)
        digits = strspn(message + place, ":0123456789");
    if (digits == 0 || message[place + digits] != ' ')
        sgm__fail_within("%s%s%s", where, key != NULL ? "." : "", key != NULL ? key : "");
    else
        sgm_fail(sgm_last_status(), "%.*s %s%s%s: %s", (int)(place + digits), message, where,
                 key != NULL ? "." : "", key != NULL ? key : "", message + place + digits + 1);
}

/* Applies a node to the scratch configuration under the current key, which checks it. */
static sgm_status apply(reader *r, const yaml_node *node)
{
    return options_apply_key(&config_table, &r->scratch, &r->source, r->key->text, node);
}

/* The value that was applied, as text; sgm__free. */
static char *applied_text(const reader *r)
{
    char *text = options_key_text(&config_table, &r->scratch, r->key->text);
    if (text == NULL)
        sgm_fail(SGM_ERROR_STATE, "a value of '%s' cannot be kept as text", r->key->text);
    return text;
}

/* Adds one choice to a list that has room for it. Two that read the same are refused: the search would
 * train the same twice. */
static sgm_status add_choice(reader *r, const yaml_node *node, const char **choices, size_t count)
{
    SGM_TRY(apply(r, node));
    char *text = applied_text(r);
    if (text == NULL)
        return sgm__last_failure();
    choices[count] = text;
    for (size_t i = 0; i < count; i++)
        if (strcmp(choices[i], text) == 0)
            return fail_at(r, node, "'%.60s' is here twice", text);
    return SGM_OK;
}

/* A list of choices, or a single one. values->choices owns what was added so far, also on failure. */
static sgm_status read_choices(reader *r, const yaml_node *node, sgm_search_values *values)
{
    size_t count = node->kind == YAML_LIST ? node->count : 1;
    if (count == 0)
        return fail_at(r, node, "expected at least one value in the list");
    const char **choices = sgm__calloc(count + 1, sizeof *choices);
    if (choices == NULL)
        return sgm__last_failure();
    values->choices = choices;
    for (size_t i = 0; i < count; i++)
        SGM_TRY(add_choice(r, node->kind == YAML_LIST ? node->children[i] : node, choices, i));
    return SGM_OK;
}

/* The value of a key; NULL: none. */
static const yaml_node *child_of(const yaml_node *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i]->text, key) == 0)
            return map->children[i];
    return NULL;
}

/* Both ends must be values of the key (its bounds, whole numbers), in order, and above 0 on a logarithmic
 * scale. A grid cannot try infinitely many values. */
static sgm_status check_range(reader *r, const yaml_node *node, const sgm_search_values *values)
{
    const yaml_node *from = child_of(node, "from"), *to = child_of(node, "to");
    if (from == NULL || to == NULL)
        return fail_at(r, node, "expected a list, or a range such as {from: 0.001, to: 0.1, scale: log}");
    if (r->kind == OPTION_NUMBER || r->kind == OPTION_INTEGER) {
        SGM_TRY(apply(r, from)); /* the bounds of the key, and whole numbers */
        SGM_TRY(apply(r, to));
    } else {
        return fail_at(r, node, "a range is for numbers; expected a list");
    }
    if (!(values->from < values->to))
        return fail_at(r, to, "expected more than %.9g, where the range begins", values->from);
    if (values->logarithmic && !(values->from > 0))
        return fail_at(r, from, "a logarithmic scale begins above 0");
    if (values->steps == 0 && search_file_method(r->file) == SGM_SEARCH_GRID)
        return fail_at(r, node, "a grid wants a list, or steps in the range");
    return SGM_OK;
}

/* Fills in a range from a map; *values is complete even if the check fails. */
static sgm_status read_range(reader *r, const yaml_node *node, sgm_search_values *values)
{
    range_config range = {0};
    sgm_status status = options_set_defaults(&range_table, &range);
    if (status == SGM_OK) {
        status = options_apply(&range_table, &range, &r->source, node);
        if (status != SGM_OK)
            name_values(r, r->key->text);
    }
    values->from = range.from;
    values->to = range.to;
    values->logarithmic = range.scale != NULL && strcmp(range.scale, "log") == 0;
    values->whole = r->kind == OPTION_INTEGER;
    values->steps = range.steps != OPTION_UNSET ? range.steps : 0;
    options_free(&range_table, &range);
    return status == SGM_OK ? check_range(r, node, values) : status;
}

/* Checks the key and finds its kind. Keys that all trials must have in common are refused; an unknown key
 * is applied only for the message, which has the nearest name. */
static sgm_status check_key(reader *r)
{
    static const char *const common[] = {"name",   "folder", "handler",    "threads",         "precision",
                                         "memory", "epochs", "iterations", "checkpoint_every"};
    const char *entry;
    const void *base = &r->scratch;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(r->key->text, common[i]) == 0)
            return fail_at(r, r->key,
                           "all trials of a search have this in common; give it outside of 'search'");
    const option *o = options_find(&config_table, r->key->text, &base, &entry);
    if (o == NULL) { /* whose message knows the nearest name */
        sgm_status status = apply(r, r->key);
        name_values(r, NULL);
        return status != SGM_OK ? status : SGM_ERROR_ARGUMENT;
    }
    r->kind = option_complete(o).kind;
    if (r->kind == OPTION_MAP && entry == NULL)
        return fail_at(r, r->key, "expected one entry of the map, such as %s.NAME", r->key->text);
    return SGM_OK;
}

/* Each key of the map becomes an entry of f->values. The entry is counted before it is filled, so that
 * search_file_free finds it. */
static sgm_status read_values(reader *r, const yaml_node *map)
{
    search_file *f = r->file;
    for (size_t i = 0; i < map->count; i++) {
        r->key = map->keys[i];
        const yaml_node *node = map->children[i];
        if (f->value_count == SGM_SEARCH_VALUES)
            return fail_at(r, r->key, "at most %d values are searched at once", SGM_SEARCH_VALUES);
        SGM_TRY(check_key(r));
        sgm_search_values *values = &f->values[f->value_count++];
        values->name = sgm__strdup(r->key->text);
        if (values->name == NULL)
            return sgm__last_failure();
        SGM_TRY(node->kind == YAML_MAP ? read_range(r, node, values) : read_choices(r, node, values));
    }
    return SGM_OK;
}

/* Values are a map that is not empty. */
static sgm_status read_all_values(search_file *f, const option_source *source, const yaml_node *map)
{
    reader r = {.file = f, .source = *source};
    if (map == NULL || map->kind != YAML_MAP || map->count == 0) {
        char got[100];
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: search.values: expected a map from keys to lists, such as "
                        "{optimiser.learning_rate: [0.1, 0.01]}, got %s",
                        f->path,
                        map == NULL             ? "nothing"
                        : map->kind == YAML_MAP ? "an empty one"
                                                : yaml_node_describe(map, got, sizeof got));
    }
    sgm_status status = options_set_defaults(&config_table, &r.scratch);
    if (status == SGM_OK)
        status = read_values(&r, map);
    config_free(&r.scratch);
    return status;
}

/* --- the file --- */

/* Reads the section and sorts the arguments: those of the section are applied here, the others kept for
 * the experiment. The section is wrapped in a map with the key `search`, on the stack, so that messages
 * have that in front. */
static sgm_status read_section(search_file *f, yaml_node *section, const char *const *arguments, size_t count)
{
    const char *slash = strrchr(f->path, '/');
    char *folder = slash != NULL ? sgm__strndup(f->path, (size_t)(slash - f->path)) : sgm__strdup("");
    if (folder == NULL)
        return sgm__last_failure();
    yaml_node *values = yaml_tree_take(section, "values");
    yaml_node key = {.kind = YAML_TEXT, .text = (char[]){"search"}, .line = section->line, .column = 1};
    yaml_node root = {.kind = YAML_MAP,
                      .line = section->line,
                      .column = 1,
                      .children = &section,
                      .keys = (yaml_node *[]){&key},
                      .count = 1};
    const option_source source = {.name = f->path, .folder = folder};
    sgm_status status = options_apply(&search_table, &f->root, &source, &root);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        if (strncmp(arguments[i], "search.values", 13) == 0)
            status =
                sgm_fail(SGM_ERROR_ARGUMENT, "argument '%.200s': values are given in the file", arguments[i]);
        else if (strncmp(arguments[i], "search.", 7) == 0)
            status = options_apply_argument(&search_table, &f->root, arguments[i], NULL);
        else
            f->overrides[f->override_count++] = arguments[i];
    if (status == SGM_OK)
        status = read_all_values(f, &source, values);
    yaml_tree_free(values);
    sgm__free(folder);
    return status;
}

/* The experiment with the first choice of each value; the beginning of a range stands for it. */
static sgm_status read_base(search_file *f)
{
    sgm_trial_value first[SGM_SEARCH_VALUES];
    char numbers[SGM_SEARCH_VALUES][32];
    for (size_t i = 0; i < f->value_count; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%.15g", f->values[i].from);
        first[i] =
            (sgm_trial_value){.name = f->values[i].name,
                              .text = f->values[i].choices != NULL ? f->values[i].choices[0] : numbers[i]};
    }
    return search_file_config(f, first, f->value_count, &f->base);
}

/* The rest of the tree is not used: config_parse reads the text again for each configuration. */
static sgm_status load(search_file *f, const char *path, const char *const *arguments, size_t count)
{
    f->path = sgm__strdup(path);
    f->overrides = sgm__calloc(count + 1, sizeof *f->overrides);
    if (f->path == NULL || f->overrides == NULL)
        return sgm__last_failure();
    SGM_TRY(options_set_defaults(&search_table, &f->root));
    SGM_TRY(sgm__file_read(path, YAML_MAX_BYTES, &f->text, &f->length));
    yaml_node *root = yaml_tree_parse(path, f->text, f->length);
    if (root == NULL)
        return sgm__last_failure();
    yaml_node *section = yaml_tree_take(root, "search");
    yaml_tree_free(root);
    if (section == NULL)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: search: is missing, such as search: {values: {optimiser.learning_rate: [0.1, 0.01]}}", path);
    sgm_status status = read_section(f, section, arguments, count);
    yaml_tree_free(section);
    return status == SGM_OK ? read_base(f) : status;
}

sgm_status search_file_load(search_file *f, const char *path, const char *const *arguments, size_t count)
{
    memset(f, 0, sizeof *f);
    sgm_status status = load(f, path, arguments, count);
    if (status != SGM_OK)
        search_file_free(f);
    return status;
}

/* The casts take away const: the library's struct of values has constant texts, which are owned here. */
void search_file_free(search_file *f)
{
    for (size_t i = 0; i < f->value_count; i++) {
        const char *const *choices = f->values[i].choices;
        for (size_t k = 0; choices != NULL && choices[k] != NULL; k++)
            sgm_string_free((char *)(uintptr_t)choices[k]);
        sgm__free((void *)(uintptr_t)choices);
        sgm_string_free((char *)(uintptr_t)f->values[i].name);
    }
    options_free(&search_table, &f->root);
    config_free(&f->base);
    sgm__free((void *)(uintptr_t)f->overrides);
    sgm__free(f->text);
    sgm__free(f->path);
    memset(f, 0, sizeof *f);
}

/* Overrides come first and the trial's values last, so the values win. */
sgm_status search_file_config(const search_file *f, const sgm_trial_value *values, size_t count, config *c)
{
    memset(c, 0, sizeof *c);
    const char **arguments = sgm__calloc(f->override_count + count + 1, sizeof *arguments);
    char *own[SGM_SEARCH_VALUES] = {NULL};
    sgm_status status = arguments != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (size_t i = 0; i < f->override_count && status == SGM_OK; i++)
        arguments[i] = f->overrides[i];
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        arguments[f->override_count + i] = own[i] = sgm__format("%s=%s", values[i].name, values[i].text);
        status = own[i] != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    }
    if (status == SGM_OK)
        status = config_parse(c, f->path, f->text, f->length, arguments, f->override_count + count);
    for (size_t i = 0; i < count; i++)
        sgm__free(own[i]);
    sgm__free((void *)(uintptr_t)arguments);
    return status;
}

/* --- as text --- */

/* A choice as it was given: lists, numbers and truth values without quotes, texts with them where needed. */
static void write_choice(sgm__text *out, const char *choice)
{
    double number;
    if (choice[0] == '[' || sgm__parse_double(choice, &number) || strcmp(choice, "true") == 0 ||
        strcmp(choice, "false") == 0)
        sgm__text_append(out, "%s", choice);
    else
        yaml_write_text(out, choice);
}

/* One line of the map `values`. */
static void write_values(sgm__text *out, const sgm_search_values *values)
{
    sgm__text_append(out, "    ");
    yaml_write_text(out, values->name);
    if (values->choices == NULL) {
        sgm__text_append(out, ": {from: %.15g, to: %.15g, scale: %s", values->from, values->to,
                         values->logarithmic ? "log" : "linear");
        if (values->steps > 0)
            sgm__text_append(out, ", steps: %lld", (long long)values->steps);
        sgm__text_append(out, "}\n");
        return;
    }
    for (size_t i = 0; values->choices[i] != NULL; i++) {
        sgm__text_append(out, "%s", i == 0 ? ": [" : ", ");
        write_choice(out, values->choices[i]);
    }
    sgm__text_append(out, "]\n");
}

/* The folder is left out: it is where the file lies. */
char *search_file_text(const search_file *f)
{
    sgm__text out = {0};
    config experiment = f->base;
    experiment.folder = NULL; /* it lies where it is */
    options_write(&config_table, &experiment, &out);
    options_write(&search_table, &f->root, &out);
    sgm__text_append(&out, "  values:\n");
    for (size_t i = 0; i < f->value_count; i++)
        write_values(&out, &f->values[i]);
    return sgm__text_take(&out);
}

sgm_search_method search_file_method(const search_file *f)
{
    size_t index = 0;
    while (index < 3 && strcmp(f->root.search.method, methods[index]) != 0)
        index++;
    return (sgm_search_method)index;
}

sgm_search_pruning search_file_pruning(const search_file *f)
{
    return strcmp(f->root.search.pruning, prunings[1]) == 0 ? SGM_PRUNING_MEDIAN : SGM_PRUNING_NONE;
}

sgm_search_goal search_file_goal(const search_file *f)
{
    const char *name = f->root.search.goal;
    return name == NULL                  ? SGM_SEARCH_BY_NAME
           : strcmp(name, goals[0]) == 0 ? SGM_SEARCH_MAXIMUM
                                         : SGM_SEARCH_MINIMUM;
}
