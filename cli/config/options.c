/* Reads values into a struct by a table of options, with the place of each mistake: files, arguments,
 * defaults.
 *
 * A value arrives as a YAML node (yaml_tree.c) together with its source and the key so far (`arrival`);
 * options_value.c checks it by the option's kind, and stores it. An argument of the command line goes the
 * same way as a node made of its text. Defaults too, so that they pass the same checks. The counterpart
 * that writes is options_text.c; tables are named in config.h and search_file.h.
 *
 * A value that fails leaves its member as it was; of a map the entries before the wrong one stay. */
#include "config/options_value.h"
#include "text/names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Kinds of the library become kinds of options. A default that is a number 0 usually means "off" or
 * "chosen by the library" and is not shown, except for integers whose bounds make 0 or less an ordinary
 * value. */
option option_complete(const option *o)
{
    static const option_kind kinds[] = {[SGM_KIND_BOOLEAN] = OPTION_FLAG,
                                        [SGM_KIND_INTEGER] = OPTION_INTEGER,
                                        [SGM_KIND_NUMBER] = OPTION_NUMBER,
                                        [SGM_KIND_TEXT] = OPTION_TEXT};
    option whole = *o;
    size_t count;
    if (o->kind != OPTION_SETTING)
        return whole;
    const sgm_setting *settings = o->settings(&count);
    whole.row = sgm_setting_find(settings, count, o->setting != NULL ? o->setting : o->row.name)->option;
    whole.row.name = o->row.name;
    whole.kind = kinds[whole.row.kind];
    const sgm_option *row = &whole.row;
    if (row->kind == SGM_KIND_BOOLEAN)
        whole.row.default_text = row->default_value != 0 ? "true" : "false";
    else if (row->kind != SGM_KIND_TEXT &&
             (row->default_value != 0 ||
              (row->kind == SGM_KIND_INTEGER && row->minimum <= 0 && row->maximum > row->minimum)))
        snprintf(whole.default_room, sizeof whole.default_room, "%.15g", row->default_value);
    return whole;
}

const char *option_default(const option *o)
{
    return o->default_room[0] != '\0' ? o->default_room : o->row.default_text;
}

/* The path of an arrival without its last part, `key`. */
static char *parent_path(const arrival *at, const char *key, char *buffer)
{
    size_t length = strlen(at->path), last = strlen(key);
    snprintf(buffer, MAX_PATH_TEXT, "%s", at->path);
    buffer[length > last ? length - last - 1 : 0] = '\0';
    return buffer;
}

/* The option whose name is the first `length` characters of `key`. */
static const option *find(const option_table *table, const char *key, size_t length)
{
    for (size_t i = 0; i < table->count; i++)
        if (strlen(table->rows[i].row.name) == length && memcmp(table->rows[i].row.name, key, length) == 0)
            return &table->rows[i];
    return NULL;
}

/* --- keys of other programs --- */

/* Whether the table has an option "path.to.key". */
static bool has_path(const option_table *table, const char *path)
{
    const void *base = table;
    const char *entry;
    return options_find(table, path, &base, &entry) != NULL;
}

/* The row of the table of names for a key at this place, of those with a real key (`near`: or one that is
 * only likely meant); *rest becomes that key, seen from here. A row's key is a whole path, or one that is
 * seen from wherever it is found. */
static const sgm__name_row *find_key(const option_table *table, const char *here, const char *key, bool near,
                                     const char **rest)
{
    const sgm__name_row *row;
    size_t length = strlen(here);
    for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++) {
        if (row->kind != SGM__NAME_KEY || row->near != near || !sgm__name_row_says(row, key))
            continue;
        *rest = row->real;
        if (row->real == NULL || has_path(table, row->real))
            return row;
        bool below = length > 0 && strncmp(row->real, here, length) == 0 && row->real[length] == '.';
        *rest = row->real + length + 1;
        if (below && has_path(table, *rest))
            return row;
    }
    return NULL;
}

/* "; there are name, network, ...", all keys of a table. */
static void append_known(const option_table *table, sgm__text *out)
{
    for (size_t i = 0; i < table->count; i++)
        sgm__text_append(out, "%s%s", i > 0 ? ", " : "; there are ", table->rows[i].row.name);
}

/* The error for an unknown key: what it means elsewhere, or it belongs to a group of this table, or to the
 * table around it, or is nearly a known one, or all known ones are listed. */
static sgm_status fail_unknown(const option_table *table, const arrival *at, const char *key)
{
    const char *names[64] = {NULL}, *below = NULL, *rest = NULL;
    char where[MAX_PLACE_TEXT];
    for (size_t i = 0; i < table->count && i < 64; i++)
        names[i] = table->rows[i].row.name;
    const char *near = sgm__nearest(key, names, table->count < 64 ? table->count : 64);
    for (size_t i = 0; i < table->count && below == NULL; i++)
        if (table->rows[i].kind == OPTION_GROUP && find(table->rows[i].children, key, strlen(key)))
            below = table->rows[i].row.name;
    option_place(at, where, sizeof where);
    char here[MAX_PATH_TEXT];
    const sgm__name_row *row = find_key(table, parent_path(at, key, here), key, true, &rest);
    if (row != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: unknown key%s%s%s%s%s", where,
                        row->real != NULL ? " (did you mean '" : "", row->real != NULL ? row->real : "",
                        row->real != NULL ? "'?)" : "", row->advice != NULL ? ": " : "",
                        row->advice != NULL ? row->advice : "");
    if (below != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: unknown key here; '%s' belongs below '%s'", where, key,
                        below);
    if (at->outer != NULL && find(at->outer, key, strlen(key)) != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: unknown key here; '%s' belongs beside '%s'", where, key,
                        here);
    if (near != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: unknown key (did you mean '%s'?)", where, near);
    sgm__text known = {0};
    append_known(table, &known);
    sgm_status status =
        sgm_fail(SGM_ERROR_ARGUMENT, "%s: unknown key%s", where, known.data != NULL ? known.data : "");
    sgm__text_free(&known);
    return status;
}

static sgm_status apply_map(const option_table *table, void *base, const arrival *at);
static sgm_status apply_path(const option_table *table, void *base, arrival *at, const char *key);

/* Stores a node into the member of any option. A single value for a group goes to the group's first
 * option: `optimiser: adam` is optimiser.type. */
static sgm_status set_option(const option *given, void *base, const arrival *at)
{
    const option whole = option_complete(given), *o = &whole;
    const yaml_node *node = at->node;
    SGM_TRY(option_note_place(at));
    if (o->kind != OPTION_GROUP)
        return option_set_value(o, base, at);
    void *group = option_member(o, base);
    if (node->kind == YAML_MAP)
        return apply_map(o->children, group, at);
    if ((node->kind == YAML_TEXT && !(node->plain && node->text[0] == '\0')) ||
        (node->kind == YAML_LIST && o->children->rows[0].kind == OPTION_LIST))
        return set_option(&o->children->rows[0], group, at);
    return option_fail(o, at, node);
}

/* Stores the value of a key that the table does not have: under the name that it has here, which is noted.
 * `behind`: what follows the key in an argument, such as ".kind", or "". */
static sgm_status apply_foreign(const option_table *table, void *base, const arrival *at,
                                const yaml_node *key_node, const char *key, const char *behind)
{
    const char *rest = NULL;
    const sgm__name_row *row = find_key(table, at->path, key, false, &rest);
    if (row == NULL) {
        arrival unknown = option_inside(at, key_node, key);
        unknown.outer = at->outer;
        return fail_unknown(table, &unknown, key);
    }
    char *whole = sgm__format("%s%s", rest, behind);
    if (whole == NULL)
        return sgm_last_status();
    sgm__name_note(key, row->real);
    arrival real = *at;
    sgm_status status = apply_path(table, base, &real, whole);
    sgm__free(whole);
    return status;
}

/* The key that a path leads to from a map on; NULL: it is not there. */
static const yaml_node *find_node(const yaml_node *map, const char *path)
{
    const char *dot = strchr(path, '.');
    size_t length = dot != NULL ? (size_t)(dot - path) : strlen(path);
    for (size_t i = 0; map->kind == YAML_MAP && i < map->count; i++) {
        const yaml_node *key = map->keys[i];
        if (strlen(key->text) == length && memcmp(key->text, path, length) == 0)
            return dot != NULL ? find_node(map->children[i], dot + 1) : key;
    }
    return NULL;
}

/* Fails if what key number `index` of a map means, by another name, is there under its own one, or under a
 * third one before it: one of the two values would be lost without a word. */
static sgm_status check_once(const option_table *table, const arrival *at, size_t index)
{
    const yaml_node *map = at->node, *key = map->keys[index];
    const char *rest = NULL, *other_rest = NULL;
    const sgm__name_row *row = find_key(table, at->path, key->text, false, &rest);
    const yaml_node *other = row != NULL ? find_node(map, rest) : NULL;
    for (size_t i = 0; row != NULL && other == NULL && i < index; i++) {
        const char *word = map->keys[i]->text;
        bool is_known = find(table, word, strlen(word)) != NULL;
        if (!is_known && find_key(table, at->path, word, false, &other_rest) != NULL &&
            strcmp(rest, other_rest) == 0)
            other = map->keys[i];
    }
    if (other == NULL)
        return SGM_OK;
    char where[MAX_PLACE_TEXT];
    arrival twice = option_inside(at, key, key->text);
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "%s: is the same as '%s', which line %d gives as '%s'; remove one of them",
                    option_place(&twice, where, sizeof where), rest, other->line, other->text);
}

/* Stores each pair of a map by the table. */
static sgm_status apply_map(const option_table *table, void *base, const arrival *at)
{
    for (size_t i = 0; i < at->node->count; i++) {
        const yaml_node *key = at->node->keys[i];
        const option *o = find(table, key->text, strlen(key->text));
        if (o == NULL) {
            arrival foreign = *at;
            foreign.node = at->node->children[i];
            SGM_TRY(check_once(table, at, i));
            SGM_TRY(apply_foreign(table, base, &foreign, key, key->text, ""));
            continue;
        }
        arrival child = option_inside(at, at->node->children[i], key->text);
        child.outer = table;
        SGM_TRY(set_option(o, base, &child));
    }
    return SGM_OK;
}

/* The outermost node of a file must be a map. A data file that was given instead of a configuration is the
 * likeliest mistake. */
sgm_status options_apply(const option_table *table, void *base, const option_source *source,
                         const yaml_node *map)
{
    arrival at = {.source = source, .node = map};
    if (map->kind != YAML_MAP) {
        char where[MAX_PLACE_TEXT], got[100];
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "%s: expected a map of options, got %s; a file of data is named in one, 'data: {training: "
            "{csv: FILE, ...}}'",
            option_place(&at, where, sizeof where), yaml_node_describe(map, got, sizeof got));
    }
    return apply_map(table, base, &at);
}

/* Follows "path.to.key" down the groups to the option that it names and stores the node there. Behind a
 * map the rest of the key, dots included, is the key of an entry: initialisers.0-dense.weights=he. */
static sgm_status apply_path(const option_table *table, void *base, arrival *at, const char *key)
{
    for (;;) {
        const char *dot = strchr(key, '.');
        size_t length = dot != NULL ? (size_t)(dot - key) : strlen(key);
        const option *o = find(table, key, length);
        char name[MAX_PATH_TEXT];
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), key);
        if (o == NULL)
            return apply_foreign(table, base, at, at->node, name, dot != NULL ? dot : "");
        *at = option_inside(at, at->node, name);
        at->outer = table;
        if (dot == NULL)
            return set_option(o, base, at);
        key = dot + 1;
        if (o->kind == OPTION_MAP) {
            *at = option_inside(at, at->node, key);
            return option_set_entry(o, base, at, key, at->node);
        }
        if (o->kind != OPTION_GROUP) {
            char where[MAX_PLACE_TEXT];
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s has no keys of its own",
                            option_place(at, where, sizeof where));
        }
        base = option_member(o, base);
        table = o->children;
    }
}

sgm_status options_apply_key(const option_table *table, void *base, const option_source *source,
                             const char *key, const yaml_node *value)
{
    arrival at = {.source = source, .node = value};
    return apply_path(table, base, &at, key);
}

/* As apply_path, without storing. */
const option *options_find(const option_table *table, const char *key, const void **base, const char **entry)
{
    *entry = NULL;
    for (;;) {
        const char *dot = strchr(key, '.');
        const option *o = find(table, key, dot != NULL ? (size_t)(dot - key) : strlen(key));
        if (o == NULL || (dot != NULL && o->kind != OPTION_GROUP && o->kind != OPTION_MAP))
            return NULL;
        if (o->kind == OPTION_MAP) {
            *entry = dot != NULL ? dot + 1 : NULL;
            return o;
        }
        if (o->kind != OPTION_GROUP)
            return o;
        if (*base != NULL) /* else only the option is looked for */
            *base = (const char *)*base + o->offset;
        table = o->children;
        key = dot != NULL ? dot + 1 : table->rows[0].row.name;
    }
}

/* Splits at the first '=', so values may contain it. */
sgm_status options_apply_argument(const option_table *table, void *base, const char *argument,
                                  text_map *places)
{
    const char *equals = strchr(argument, '=');
    if (equals == NULL || equals == argument)
        return sgm_fail(SGM_ERROR_ARGUMENT, "argument '%.200s': expected KEY=VALUE, such as epochs=10",
                        argument);
    option_source source = {.folder = "", .argument = argument, .places = places};
    char *key = sgm__strndup(argument, (size_t)(equals - argument));
    const char *value = equals + 1;
    yaml_node text = {.kind = YAML_TEXT, .text = NULL, .plain = true};
    yaml_node *tree = NULL;
    /* Lists and maps are YAML; everything else is taken as it is, so that a network needs no quotes. */
    if (value[0] == '[' || value[0] == '{') {
        char *name = sgm__format("argument '%.200s'", argument);
        tree = name != NULL ? yaml_tree_parse(name, value, strlen(value)) : NULL;
        sgm__free(name);
    } else {
        text.text = sgm__strdup(value);
    }
    sgm_status status = SGM_OK;
    if (key == NULL || (tree == NULL && text.text == NULL)) {
        status = sgm_last_status();
    } else {
        arrival at = {.source = &source, .node = tree != NULL ? tree : &text};
        status = apply_path(table, base, &at, key);
    }
    yaml_tree_free(tree);
    sgm__free(text.text);
    sgm__free(key);
    return status;
}

/* Numbers get their marks for "no value" first; the other members must be zero already. Defaults go
 * through set_option as if they were written. */
sgm_status options_set_defaults(const option_table *table, void *base)
{
    option_source source = {.folder = "", .argument = "default"};
    for (size_t i = 0; i < table->count; i++) {
        const option whole = option_complete(&table->rows[i]), *o = &whole;
        void *target = option_member(o, base);
        if (o->kind == OPTION_GROUP) {
            SGM_TRY(options_set_defaults(o->children, target));
            continue;
        }
        if (o->kind == OPTION_INTEGER)
            *(int64_t *)target = OPTION_UNSET;
        else if (o->kind == OPTION_NUMBER)
            *(double *)target = NAN;
        if (option_default(o) == NULL || o->stays_unset)
            continue;
        char *value = sgm__strdup(option_default(o));
        if (value == NULL)
            return sgm_last_status();
        yaml_node node = {.kind = YAML_TEXT, .text = value, .plain = true};
        arrival at = {.source = &source, .node = &node};
        sgm_status status = set_option(o, base, &at);
        sgm__free(value);
        SGM_TRY(status);
    }
    return SGM_OK;
}

void options_free(const option_table *table, void *base)
{
    for (size_t i = 0; i < table->count; i++) {
        const option whole = option_complete(&table->rows[i]), *o = &whole;
        if (o->kind == OPTION_GROUP)
            options_free(o->children, option_member(o, base));
        else
            option_free_value(o, base);
    }
}
