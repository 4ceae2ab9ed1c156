/* Reads values into a struct by a table of options, with the place of each mistake: files, arguments,
 * defaults.
 *
 * A value arrives as a YAML node (yaml_tree.c) together with its source and the key so far (`arrival`);
 * set_option dispatches by the option's kind, checks, and stores. An argument of the command line goes the
 * same way as a node made of its text. Defaults too, so that they pass the same checks. The counterpart
 * that writes is options_text.c; tables are in config.c and search_file.c.
 *
 * A value that fails leaves its member as it was; of a map the entries before the wrong one stay. */
#include "config/options.h"
#include "data/read/source.h"
#include "text/names.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Bytes of a key in messages; a longer one ends in "...". */
#define MAX_PATH_TEXT 200

/* A value on its way in: its source, its node, and the key that leads to it, such as
 * "optimiser.schedule.kind". */
typedef struct arrival {
    const option_source *source;
    const yaml_node *node;
    char path[MAX_PATH_TEXT];
} arrival;

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

static void *field(void *base, const option *o)
{
    return (char *)base + o->offset;
}

/* "digits.yaml:3:7: optimiser.momentum" or "argument 'epochs=x': epochs". Writes into `buffer`, which it
 * returns. */
static char *place(const arrival *at, char *buffer, size_t size)
{
    const char *colon = at->path[0] != '\0' ? ": " : "";
    if (at->source->name != NULL)
        snprintf(buffer, size, "%s:%d:%d%s%s", at->source->name, at->node->line, at->node->column, colon,
                 at->path);
    else
        snprintf(buffer, size, "argument '%.200s'%s%s", at->source->argument, colon, at->path);
    return buffer;
}

/* The arrival of a child: its node, and the key with `key` appended. */
static arrival inside(const arrival *at, const yaml_node *node, const char *key)
{
    arrival child = {.source = at->source, .node = node};
    int length =
        snprintf(child.path, sizeof child.path, "%s%s%s", at->path, at->path[0] != '\0' ? "." : "", key);
    if (length >= (int)sizeof child.path)
        memcpy(child.path + sizeof child.path - 4, "...", 4);
    return child;
}

/* The path of an arrival without its last part, `key`. */
static char *parent_path(const arrival *at, const char *key, char *buffer)
{
    size_t length = strlen(at->path), last = strlen(key);
    snprintf(buffer, MAX_PATH_TEXT, "%s", at->path);
    buffer[length > last ? length - last - 1 : 0] = '\0';
    return buffer;
}

static char *number_text(double value, char *buffer, size_t size)
{
    snprintf(buffer, size, "%.15g", value);
    return buffer;
}

/* What an option wants, "a whole number from 1 to 100". The kinds are in the order of option_kind. */
static char *expectation(const option *o, char *buffer, size_t size)
{
    static const char *const kinds[] = {"a text",         "a path",        "a whole number",
                                        "a number",       "true or false", "a list of texts",
                                        "a map of texts", "a map",         ""};
    char minimum[32], maximum[32];
    if (o->row.minimum == o->row.maximum)
        snprintf(buffer, size, "%s", kinds[o->kind]);
    else if (!isfinite(o->row.maximum))
        snprintf(buffer, size, "%s from %s", kinds[o->kind],
                 number_text(o->row.minimum, minimum, sizeof minimum));
    else
        snprintf(buffer, size, "%s from %s to %s", kinds[o->kind],
                 number_text(o->row.minimum, minimum, sizeof minimum),
                 number_text(o->row.maximum, maximum, sizeof maximum));
    return buffer;
}

/* "PLACE: expected WANTED, got WHAT". */
static sgm_status fail_expected(const option *o, const arrival *at, const yaml_node *node)
{
    char where[PATH_MAX + 400], wanted[120], got[100];
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected %s, got %s", place(at, where, sizeof where),
                    expectation(o, wanted, sizeof wanted), yaml_node_describe(node, got, sizeof got));
}

/* The option whose name is the first `length` characters of `key`. */
static const option *find(const option *table, size_t count, const char *key, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(table[i].row.name) == length && memcmp(table[i].row.name, key, length) == 0)
            return &table[i];
    return NULL;
}

/* --- keys of other programs --- */

/* Whether the table has an option "path.to.key". */
static bool has_path(const option *table, size_t count, const char *path)
{
    const void *base = table;
    const char *entry;
    return options_find(table, count, path, &base, &entry) != NULL;
}

/* The row of the table of names for a key at this place, of those with a real key (`near`: or one that is
 * only likely meant); *rest becomes that key, seen from here. A row's key is a whole path, or one that is
 * seen from wherever it is found. */
static const sgm__name_row *find_key(const option *table, size_t count, const char *here, const char *key,
                                     bool near, const char **rest)
{
    const sgm__name_row *row;
    size_t length = strlen(here);
    for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++) {
        if (row->kind != SGM__NAME_KEY || row->near != near || !sgm__name_row_says(row, key))
            continue;
        *rest = row->real;
        if (row->real == NULL || has_path(table, count, row->real))
            return row;
        bool below = length > 0 && strncmp(row->real, here, length) == 0 && row->real[length] == '.';
        *rest = row->real + length + 1;
        if (below && has_path(table, count, *rest))
            return row;
    }
    return NULL;
}

/* "; there are name, network, ...", all keys of a table. */
static void append_known(const option *table, size_t count, sgm__text *out)
{
    for (size_t i = 0; i < count; i++)
        sgm__text_append(out, "%s%s", i > 0 ? ", " : "; there are ", table[i].row.name);
}

/* The error for an unknown key: what it means elsewhere, or it belongs to a group of this table, or is nearly
 * a known one, or all known ones are listed. */
static sgm_status fail_unknown(const option *table, size_t count, const arrival *at, const char *key)
{
    const char *names[64] = {NULL}, *below = NULL, *rest = NULL;
    char where[PATH_MAX + 400];
    for (size_t i = 0; i < count && i < 64; i++)
        names[i] = table[i].row.name;
    const char *near = sgm__nearest(key, names, count < 64 ? count : 64);
    for (size_t i = 0; i < count && below == NULL; i++)
        if (table[i].kind == OPTION_GROUP && find(table[i].children, table[i].child_count, key, strlen(key)))
            below = table[i].row.name;
    place(at, where, sizeof where);
    char here[MAX_PATH_TEXT];
    const sgm__name_row *row = find_key(table, count, parent_path(at, key, here), key, true, &rest);
    if (row != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: unknown key%s%s%s%s%s", where,
                        row->real != NULL ? " (did you mean '" : "", row->real != NULL ? row->real : "",
                        row->real != NULL ? "'?)" : "", row->advice != NULL ? ": " : "",
                        row->advice != NULL ? row->advice : "");
    if (below != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: unknown key here; '%s' belongs below '%s'", where, key,
                        below);
    if (near != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: unknown key (did you mean '%s'?)", where, near);
    sgm__text known = {0};
    append_known(table, count, &known);
    sgm_status status =
        sgm_fail(SGM_ERROR_ARGUMENT, "%s: unknown key%s", where, known.data != NULL ? known.data : "");
    sgm__text_free(&known);
    return status;
}

/* Fails with the nearest choice if the value is none of them. */
static sgm_status check_choice(const option *o, const arrival *at, const char *value)
{
    size_t count = 0;
    sgm__text known = {0};
    for (; o->row.choices[count] != NULL; count++) {
        if (strcmp(o->row.choices[count], value) == 0) {
            sgm__text_free(&known);
            return SGM_OK;
        }
        sgm__text_append(&known, "%s%s", count > 0 ? ", " : "", o->row.choices[count]);
    }
    char where[PATH_MAX + 400], hint[SGM__NAME_HINT];
    sgm_status status = SGM_OK;
    if (sgm__name_real(SGM__NAME_CHOICE, value, o->row.choices, count, NULL) == NULL)
        status = sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected one of %s, got '%.60s'%s",
                          place(at, where, sizeof where), known.data != NULL ? known.data : "", value,
                          sgm__name_hint(SGM__NAME_CHOICE, value, o->row.choices, count, hint));
    sgm__text_free(&known);
    return status;
}

/* Checks one text by the option's choices or its check, and puts the place before the check's message. *kept
 * becomes the text with real names in place of those of other programs, or NULL if it has none; sgm__free. */
static sgm_status check_value(const option *o, const arrival *at, const char *value, char **kept)
{
    sgm__names_replaced replaced;
    char where[PATH_MAX + 400];
    sgm_status status = SGM_OK;
    *kept = NULL;
    sgm__names_begin(&replaced);
    if (o->row.choices != NULL)
        status = check_choice(o, at, value);
    else if (o->check != NULL && o->check(value) != SGM_OK)
        status = sgm__fail_within("%s", place(at, where, sizeof where));
    sgm__names_end(&replaced);
    if (status != SGM_OK || replaced.count == 0)
        return status;
    *kept = o->rewrite != NULL ? o->rewrite(value) : sgm__names_replace(value, &replaced);
    return *kept != NULL ? SGM_OK : sgm_last_status();
}

/* Replaces an owned text by a copy of `value`; the old one stays on failure. */
static sgm_status replace(char **text, const char *value)
{
    char *copy = sgm__strdup(value);
    if (copy == NULL)
        return sgm_last_status();
    sgm__free(*text);
    *text = copy;
    return SGM_OK;
}

/* Makes a path absolute, beginning at the folder of the file that names it: the config then means the same
 * from any working directory, also when it is written into a run's folder. Paths of arguments begin at the
 * current folder. */
static sgm_status set_path(char **field_text, const arrival *at, const char *value)
{
    char here[PATH_MAX];
    const char *folder = at->source->folder;
    if (value[0] == '/' || sgm__is_url(value))
        return replace(field_text, value);
    if (folder[0] != '/' && getcwd(here, sizeof here) == NULL)
        return sgm_fail(SGM_ERROR_FILE, "the current folder cannot be read");
    char *full = folder[0] == '/'    ? sgm__format("%s/%s", folder, value)
                 : folder[0] == '\0' ? sgm__format("%s/%s", here, value)
                                     : sgm__format("%s/%s/%s", here, folder, value);
    if (full == NULL)
        return sgm_last_status();
    sgm__free(*field_text);
    *field_text = full;
    return SGM_OK;
}

/* A text with a prefix such as "text:" has a path behind it, which is made absolute. */
static sgm_status set_text(const option *o, char **field_text, const arrival *at, const char *value)
{
    size_t length = o->path_after != NULL ? strlen(o->path_after) : 0;
    if (length == 0 || strncmp(value, o->path_after, length) != 0 || value[length] == '\0')
        return replace(field_text, value);
    char *path = NULL;
    SGM_TRY(set_path(&path, at, value + length));
    char *full = sgm__format("%s%s", o->path_after, path);
    sgm__free(path);
    if (full == NULL)
        return sgm_last_status();
    sgm__free(*field_text);
    *field_text = full;
    return SGM_OK;
}

/* NaN and infinity are never within bounds. */
static bool in_bounds(const option *o, double value)
{
    return isfinite(value) &&
           (o->row.minimum == o->row.maximum || (value >= o->row.minimum && value <= o->row.maximum));
}

/* Stores a text, path, number or flag. Quoted scalars are texts only: "3" in quotes is no number. An
 * empty unquoted scalar is what YAML has for a key without a value, and fits no kind. */
static sgm_status set_scalar(const option *o, void *base, const arrival *at, const yaml_node *node)
{
    void *target = field(base, o);
    int64_t integer;
    double number;
    if (node->kind != YAML_TEXT || (node->text[0] == '\0' && node->plain))
        return fail_expected(o, at, node);
    if (o->kind == OPTION_TEXT || o->kind == OPTION_PATH) {
        char *kept;
        SGM_TRY(check_value(o, at, node->text, &kept));
        const char *text = kept != NULL ? kept : node->text;
        sgm_status status =
            o->kind == OPTION_PATH ? set_path(target, at, text) : set_text(o, target, at, text);
        sgm__free(kept);
        return status;
    }
    if (!node->plain)
        return fail_expected(o, at, node);
    switch (o->kind) {
    case OPTION_INTEGER:
        if (!sgm__parse_int64(node->text, &integer) || !in_bounds(o, (double)integer))
            return fail_expected(o, at, node);
        memcpy(target, &integer, sizeof integer);
        return SGM_OK;
    case OPTION_NUMBER:
        if (!sgm__parse_double(node->text, &number) || !in_bounds(o, number))
            return fail_expected(o, at, node);
        memcpy(target, &number, sizeof number);
        return SGM_OK;
    default:
        if (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0)
            return fail_expected(o, at, node);
        *(bool *)target = node->text[0] == 't';
        return SGM_OK;
    }
}

static void clear_list(text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        sgm__free(list->items[i]);
    sgm__free(list->items);
    *list = (text_list){0};
}

/* Checks one item of a list and appends a copy. */
static sgm_status append_item(const option *o, text_list *list, const arrival *at, const yaml_node *item)
{
    arrival here = *at;
    here.node = item;
    if (item->kind != YAML_TEXT || (item->plain && item->text[0] == '\0'))
        return fail_expected(o, &here, item);
    char *kept, *copy = NULL;
    SGM_TRY(check_value(o, &here, item->text, &kept));
    const char *text = kept != NULL ? kept : item->text;
    sgm_status status = o->is_path ? set_path(&copy, at, text) : replace(&copy, text);
    sgm__free(kept);
    if (status == SGM_OK)
        status = sgm__reserve(&list->items, &list->capacity, list->count + 1, sizeof *list->items);
    if (status == SGM_OK)
        list->items[list->count++] = copy;
    else
        sgm__free(copy);
    return status;
}

/* A new list replaces the old one, once all its items are good. A single text is a list of one. */
static sgm_status set_list(const option *o, void *base, const arrival *at, const yaml_node *node)
{
    text_list list = {0}, *target = field(base, o);
    sgm_status status = SGM_OK;
    if (node->kind == YAML_TEXT)
        status = append_item(o, &list, at, node);
    else if (node->kind != YAML_LIST)
        return fail_expected(o, at, node);
    else
        for (size_t i = 0; i < node->count && status == SGM_OK; i++)
            status = append_item(o, &list, at, node->children[i]);
    if (status != SGM_OK) {
        clear_list(&list);
        return status;
    }
    clear_list(target);
    *target = list;
    return SGM_OK;
}

const char *text_map_get(const text_map *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i], key) == 0)
            return map->values[i];
    return NULL;
}

/* The items of a list as one text, "red, green"; sgm__free. NULL: out of memory, or an item that is no
 * text. */
static char *join(const yaml_node *list)
{
    sgm__text text = {0};
    for (size_t i = 0; i < list->count; i++) {
        if (list->children[i]->kind != YAML_TEXT) {
            sgm__text_free(&text);
            return NULL;
        }
        sgm__text_append(&text, "%s%s", i > 0 ? ", " : "", list->children[i]->text);
    }
    return sgm__text_take(&text);
}

/* A text, or a path if the values of the map are paths. */
static sgm_status put_value(const option *o, const arrival *at, const char *value, char **place_of_it)
{
    return o->is_path ? set_path(place_of_it, at, value) : replace(place_of_it, value);
}

static sgm_status put_entry(const option *o, text_map *map, const arrival *at, const char *key,
                            const char *value)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i], key) == 0)
            return put_value(o, at, value, &map->values[i]);
    SGM_TRY(sgm__reserve(&map->keys, &map->key_capacity, map->count + 1, sizeof *map->keys));
    SGM_TRY(sgm__reserve(&map->values, &map->capacity, map->count + 1, sizeof *map->values));
    char *key_copy = sgm__strdup(key), *value_copy = NULL;
    sgm_status status = key_copy != NULL ? put_value(o, at, value, &value_copy) : sgm_last_status();
    if (status != SGM_OK) {
        sgm__free(key_copy);
        return status;
    }
    map->keys[map->count] = key_copy;
    map->values[map->count++] = value_copy;
    return SGM_OK;
}

/* Sets one entry of a map; an old value of the key is replaced, so arguments add to what the file says.
 * `joins` allows a list as value. Errors say what a value should be (a text, a list of texts), therefore
 * the copies of the option with another kind. */
static sgm_status set_entry(const option *o, void *base, const arrival *at, const char *key,
                            const yaml_node *value)
{
    text_map *map = field(base, o);
    if (value->kind == YAML_LIST && o->joins) {
        const yaml_node joined = {
            .kind = YAML_TEXT, .text = join(value), .line = value->line, .column = value->column};
        option list = *o;
        list.kind = OPTION_LIST;
        sgm_status status =
            joined.text != NULL ? set_entry(o, base, at, key, &joined) : fail_expected(&list, at, value);
        sgm__free(joined.text);
        return status;
    }
    if (value->kind != YAML_TEXT || (value->plain && value->text[0] == '\0')) {
        option text = *o;
        text.kind = OPTION_TEXT;
        return fail_expected(&text, at, value);
    }
    char *kept;
    SGM_TRY(check_value(o, at, value->text, &kept));
    sgm_status status = put_entry(o, map, at, key, kept != NULL ? kept : value->text);
    sgm__free(kept);
    return status;
}

static void clear_map(text_map *map)
{
    for (size_t i = 0; i < map->count; i++) {
        sgm__free(map->keys[i]);
        sgm__free(map->values[i]);
    }
    sgm__free(map->keys);
    sgm__free(map->values);
    *map = (text_map){0};
}

/* Keys that share a value replace the map. */
static sgm_status set_keys(const option *o, void *base, const arrival *at, const yaml_node *node)
{
    char *text = sgm__strdup(o->value_of_texts);
    const yaml_node value = {.kind = YAML_TEXT, .text = text, .line = node->line, .column = node->column};
    yaml_node *const alone[] = {(yaml_node *)(uintptr_t)node};
    yaml_node *const *keys = node->kind == YAML_LIST ? node->children : alone;
    size_t count = node->kind == YAML_LIST ? node->count : 1;
    sgm_status status = text != NULL ? SGM_OK : sgm_last_status();
    clear_map(field(base, o));
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        arrival entry = inside(at, keys[i], keys[i]->kind == YAML_TEXT ? keys[i]->text : "");
        status = keys[i]->kind == YAML_TEXT && keys[i]->text[0] != '\0'
                     ? set_entry(o, base, &entry, keys[i]->text, &value)
                     : fail_expected(o, at, keys[i]);
    }
    sgm__free(text);
    return status;
}

/* Adds or replaces entry by entry. */
static sgm_status set_map(const option *o, void *base, const arrival *at, const yaml_node *node)
{
    if (o->key_of_text != NULL && node->kind == YAML_TEXT)
        return set_entry(o, base, at, o->key_of_text, node);
    if (o->value_of_texts != NULL && node->kind != YAML_MAP)
        return set_keys(o, base, at, node);
    if (node->kind != YAML_MAP)
        return fail_expected(o, at, node);
    for (size_t i = 0; i < node->count; i++) {
        arrival entry = inside(at, node->children[i], node->keys[i]->text);
        SGM_TRY(set_entry(o, base, &entry, node->keys[i]->text, node->children[i]));
    }
    return SGM_OK;
}

static sgm_status apply_map(const option *table, size_t count, void *base, const arrival *at);
static sgm_status apply_path(const option *table, size_t count, void *base, arrival *at, const char *key);

/* Stores a node into the member of any option. A single value for a group goes to the group's first
 * option: `optimiser: adam` is optimiser.type. */
static sgm_status set_option(const option *given, void *base, const arrival *at)
{
    const option whole = option_complete(given), *o = &whole;
    const yaml_node *node = at->node;
    switch (o->kind) {
    case OPTION_LIST:
        return set_list(o, base, at, node);
    case OPTION_MAP:
        return set_map(o, base, at, node);
    case OPTION_GROUP:
        if (node->kind == YAML_MAP)
            return apply_map(o->children, o->child_count, field(base, o), at);
        if (node->kind == YAML_TEXT && !(node->plain && node->text[0] == '\0'))
            return set_option(&o->children[0], field(base, o), at);
        if (node->kind == YAML_LIST && o->children[0].kind == OPTION_LIST)
            return set_option(&o->children[0], field(base, o), at);
        return fail_expected(o, at, node);
    default:
        return set_scalar(o, base, at, node);
    }
}

/* Stores the value of a key that the table does not have: under the name that it has here, which is noted.
 * `behind`: what follows the key in an argument, such as ".kind", or "". */
static sgm_status apply_foreign(const option *table, size_t count, void *base, const arrival *at,
                                const yaml_node *key_node, const char *key, const char *behind)
{
    const char *rest = NULL;
    const sgm__name_row *row = find_key(table, count, at->path, key, false, &rest);
    if (row == NULL) {
        arrival unknown = inside(at, key_node, key);
        return fail_unknown(table, count, &unknown, key);
    }
    char *whole = sgm__format("%s%s", rest, behind);
    if (whole == NULL)
        return sgm_last_status();
    sgm__name_note(key, row->real);
    arrival real = *at;
    sgm_status status = apply_path(table, count, base, &real, whole);
    sgm__free(whole);
    return status;
}

/* Stores each pair of a map by the table. */
static sgm_status apply_map(const option *table, size_t count, void *base, const arrival *at)
{
    for (size_t i = 0; i < at->node->count; i++) {
        const yaml_node *key = at->node->keys[i];
        const option *o = find(table, count, key->text, strlen(key->text));
        if (o == NULL) {
            arrival foreign = *at;
            foreign.node = at->node->children[i];
            SGM_TRY(apply_foreign(table, count, base, &foreign, key, key->text, ""));
            continue;
        }
        arrival child = inside(at, at->node->children[i], key->text);
        SGM_TRY(set_option(o, base, &child));
    }
    return SGM_OK;
}

/* The outermost node of a file must be a map. A data file that was given instead of a configuration is the
 * likeliest mistake. */
sgm_status options_apply(const option *table, size_t count, void *base, const option_source *source,
                         const yaml_node *map)
{
    arrival at = {.source = source, .node = map};
    if (map->kind != YAML_MAP) {
        char where[PATH_MAX + 400], got[100];
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "%s: expected a map of options, got %s; a file of data is named in one, 'data: {training: "
            "{csv: FILE, ...}}'",
            place(&at, where, sizeof where), yaml_node_describe(map, got, sizeof got));
    }
    return apply_map(table, count, base, &at);
}

/* Follows "path.to.key" down the groups to the option that it names and stores the node there. Behind a
 * map the rest of the key, dots included, is the key of an entry: initialisers.0-dense.weights=he. */
static sgm_status apply_path(const option *table, size_t count, void *base, arrival *at, const char *key)
{
    for (;;) {
        const char *dot = strchr(key, '.');
        size_t length = dot != NULL ? (size_t)(dot - key) : strlen(key);
        const option *o = find(table, count, key, length);
        char name[MAX_PATH_TEXT];
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), key);
        if (o == NULL)
            return apply_foreign(table, count, base, at, at->node, name, dot != NULL ? dot : "");
        *at = inside(at, at->node, name);
        if (dot == NULL)
            return set_option(o, base, at);
        key = dot + 1;
        if (o->kind == OPTION_MAP) {
            *at = inside(at, at->node, key);
            return set_entry(o, base, at, key, at->node);
        }
        if (o->kind != OPTION_GROUP) {
            char where[PATH_MAX + 400];
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s has no keys of its own", place(at, where, sizeof where));
        }
        base = field(base, o);
        table = o->children;
        count = o->child_count;
    }
}

sgm_status options_apply_key(const option *table, size_t count, void *base, const option_source *source,
                             const char *key, const yaml_node *value)
{
    arrival at = {.source = source, .node = value};
    return apply_path(table, count, base, &at, key);
}

/* As apply_path, without storing. */
const option *options_find(const option *table, size_t count, const char *key, const void **base,
                           const char **entry)
{
    *entry = NULL;
    for (;;) {
        const char *dot = strchr(key, '.');
        const option *o = find(table, count, key, dot != NULL ? (size_t)(dot - key) : strlen(key));
        if (o == NULL || (dot != NULL && o->kind != OPTION_GROUP && o->kind != OPTION_MAP))
            return NULL;
        if (o->kind == OPTION_MAP) {
            *entry = dot != NULL ? dot + 1 : NULL;
            return o;
        }
        if (o->kind != OPTION_GROUP)
            return o;
        *base = (const char *)*base + o->offset;
        table = o->children;
        count = o->child_count;
        key = dot != NULL ? dot + 1 : table[0].row.name;
    }
}

/* Splits at the first '=', so values may contain it. */
sgm_status options_apply_argument(const option *table, size_t count, void *base, const char *argument)
{
    const char *equals = strchr(argument, '=');
    if (equals == NULL || equals == argument)
        return sgm_fail(SGM_ERROR_ARGUMENT, "argument '%.200s': expected KEY=VALUE, such as epochs=10",
                        argument);
    option_source source = {.folder = "", .argument = argument};
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
        status = apply_path(table, count, base, &at, key);
    }
    yaml_tree_free(tree);
    sgm__free(text.text);
    sgm__free(key);
    return status;
}

/* Numbers get their marks for "no value" first; the other members must be zero already. Defaults go
 * through set_option as if they were written. */
sgm_status options_set_defaults(const option *table, size_t count, void *base)
{
    option_source source = {.folder = "", .argument = "default"};
    for (size_t i = 0; i < count; i++) {
        const option whole = option_complete(&table[i]), *o = &whole;
        void *target = field(base, o);
        if (o->kind == OPTION_GROUP) {
            SGM_TRY(options_set_defaults(o->children, o->child_count, target));
            continue;
        }
        if (o->kind == OPTION_INTEGER)
            *(int64_t *)target = OPTION_UNSET;
        else if (o->kind == OPTION_NUMBER)
            *(double *)target = NAN;
        if (option_default(o) == NULL)
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

/* Only kinds that own memory. */
void options_free(const option *table, size_t count, void *base)
{
    for (size_t i = 0; i < count; i++) {
        const option whole = option_complete(&table[i]), *o = &whole;
        if (o->kind == OPTION_TEXT || o->kind == OPTION_PATH) {
            sgm__free(*(char **)field(base, o));
        } else if (o->kind == OPTION_LIST) {
            clear_list(field(base, o));
        } else if (o->kind == OPTION_MAP) {
            clear_map(field(base, o));
        } else if (o->kind == OPTION_GROUP) {
            options_free(o->children, o->child_count, field(base, o));
        }
    }
}
