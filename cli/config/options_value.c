/* Checks values by their options' kinds, choices and checks, and stores them: texts, paths, numbers, lists,
 * maps.
 *
 * Names of other programs are replaced by those that are meant here before a text is kept (text/names.h). */
#include "config/options_value.h"
#include "data/read/source.h"
#include "text/names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *option_place(const arrival *at, char *buffer, size_t size)
{
    const char *colon = at->path[0] != '\0' ? ": " : "";
    if (at->source->name != NULL)
        snprintf(buffer, size, "%s:%d:%d%s%s", at->source->name, at->node->line, at->node->column, colon,
                 at->path);
    else
        snprintf(buffer, size, "argument '%.200s'%s%s", at->source->argument, colon, at->path);
    return buffer;
}

arrival option_inside(const arrival *at, const yaml_node *node, const char *key)
{
    arrival child = {.source = at->source, .node = node};
    int length =
        snprintf(child.path, sizeof child.path, "%s%s%s", at->path, at->path[0] != '\0' ? "." : "", key);
    if (length >= (int)sizeof child.path)
        memcpy(child.path + sizeof child.path - 4, "...", 4);
    return child;
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

sgm_status option_fail(const option *o, const arrival *at, const yaml_node *node)
{
    char where[MAX_PLACE_TEXT], wanted[120], got[100];
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected %s, got %s%s%s", option_place(at, where, sizeof where),
                    expectation(o, wanted, sizeof wanted), yaml_node_describe(node, got, sizeof got),
                    o->forms != NULL ? "; " : "", o->forms != NULL ? o->forms : "");
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
    char where[MAX_PLACE_TEXT], hint[SGM__NAME_HINT];
    sgm_status status = SGM_OK;
    if (sgm__name_real(SGM__NAME_CHOICE, value, o->row.choices, count, NULL) == NULL)
        status = sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected one of %s, got '%.60s'%s",
                          option_place(at, where, sizeof where), known.data != NULL ? known.data : "", value,
                          sgm__name_hint(SGM__NAME_CHOICE, value, o->row.choices, count, hint));
    sgm__text_free(&known);
    return status;
}

/* Checks one text by the option's choices or its check, and puts the place before the check's message. *kept
 * becomes the text with real names in place of those of other programs, or NULL if it has none; sgm__free. */
static sgm_status check_value(const option *o, const arrival *at, const char *value, char **kept)
{
    sgm__names_replaced replaced;
    char where[MAX_PLACE_TEXT];
    sgm_status status = SGM_OK;
    *kept = NULL;
    sgm__names_begin(&replaced);
    if (o->row.choices != NULL)
        status = check_choice(o, at, value);
    else if (o->check != NULL && o->check(value) != SGM_OK)
        status = sgm__fail_within("%s", option_place(at, where, sizeof where));
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
    void *target = option_member(o, base);
    int64_t integer;
    double number;
    if (node->kind != YAML_TEXT || (node->text[0] == '\0' && node->plain))
        return option_fail(o, at, node);
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
        return option_fail(o, at, node);
    switch (o->kind) {
    case OPTION_INTEGER:
        if (!sgm__parse_int64(node->text, &integer) || !in_bounds(o, (double)integer))
            return option_fail(o, at, node);
        memcpy(target, &integer, sizeof integer);
        return SGM_OK;
    case OPTION_NUMBER:
        if (!sgm__parse_double(node->text, &number) || !in_bounds(o, number))
            return option_fail(o, at, node);
        memcpy(target, &number, sizeof number);
        return SGM_OK;
    default:
        if (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0)
            return option_fail(o, at, node);
        *(bool *)target = node->text[0] == 't';
        return SGM_OK;
    }
}

void text_list_clear(text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        sgm__free(list->items[i]);
    sgm__free(list->items);
    *list = (text_list){0};
}

/* Whether YAML has cut an item at a comma between its brackets: [top_k(validation, 1)] has two items. */
static bool is_cut(const yaml_node *item)
{
    int open = 0;
    for (const char *c = item->text; *c != '\0'; c++)
        open += (*c == '(') - (*c == ')');
    return item->plain && open > 0;
}

static sgm_status fail_cut(const arrival *at)
{
    char place[MAX_PLACE_TEXT];
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "%s: '%.100s' ends amid its brackets, since a comma between [ and ] begins another item: "
                    "put quotes around each item, or each on a line of its own behind '- '",
                    option_place(at, place, sizeof place), at->node->text);
}

/* Checks one item of a list and appends a copy. */
static sgm_status append_item(const option *o, text_list *list, const arrival *at, const yaml_node *item)
{
    arrival here = *at;
    here.node = item;
    if (item->kind != YAML_TEXT || (item->plain && item->text[0] == '\0'))
        return option_fail(o, &here, item);
    if (is_cut(item))
        return fail_cut(&here);
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

sgm_status option_note_place(const arrival *at)
{
    char place[MAX_PLACE_TEXT];
    return at->source->places != NULL
               ? text_map_set(at->source->places, at->path, option_place(at, place, sizeof place))
               : SGM_OK;
}

/* Notes where the item stands that was appended last, as "rules[0]". */
static sgm_status note_item(const text_list *list, const arrival *at, const yaml_node *item)
{
    char place[MAX_PLACE_TEXT];
    arrival here = *at;
    here.node = item;
    if (at->source->places == NULL)
        return SGM_OK;
    char *key = sgm__format("%s[%zu]", at->path, list->count - 1);
    sgm_status status = key != NULL
                            ? text_map_set(at->source->places, key, option_place(&here, place, sizeof place))
                            : SGM_ERROR_MEMORY;
    sgm__free(key);
    return status;
}

/* A new list replaces the old one, once all its items are good. A single text is a list of one. */
static sgm_status set_list(const option *o, void *base, const arrival *at, const yaml_node *node)
{
    text_list list = {0}, *target = option_member(o, base);
    sgm_status status = SGM_OK;
    if (node->kind == YAML_TEXT)
        status = append_item(o, &list, at, node);
    else if (node->kind != YAML_LIST)
        return option_fail(o, at, node);
    else
        for (size_t i = 0; i < node->count && status == SGM_OK; i++) {
            status = append_item(o, &list, at, node->children[i]);
            if (status == SGM_OK)
                status = note_item(&list, at, node->children[i]);
        }
    if (status != SGM_OK) {
        text_list_clear(&list);
        return status;
    }
    text_list_clear(target);
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

/* The value of a key, NULL at first if the map does not have the key yet. NULL: out of memory. */
static char **value_place(text_map *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i], key) == 0)
            return &map->values[i];
    char *copy =
        sgm__reserve(&map->keys, &map->key_capacity, map->count + 1, sizeof *map->keys) == SGM_OK &&
                sgm__reserve(&map->values, &map->capacity, map->count + 1, sizeof *map->values) == SGM_OK
            ? sgm__strdup(key)
            : NULL;
    if (copy == NULL)
        return NULL;
    map->keys[map->count] = copy;
    map->values[map->count] = NULL;
    return &map->values[map->count++];
}

/* Takes the last entry away, which has got no value. */
static sgm_status without_last(text_map *map, sgm_status status)
{
    if (status != SGM_OK && map->count > 0 && map->values[map->count - 1] == NULL)
        sgm__free(map->keys[--map->count]);
    return status;
}

static sgm_status put_entry(const option *o, text_map *map, const arrival *at, const char *key,
                            const char *value)
{
    char **place = value_place(map, key);
    return place != NULL ? without_last(map, put_value(o, at, value, place)) : sgm_last_status();
}

sgm_status text_map_set(text_map *map, const char *key, const char *value)
{
    char **place = value_place(map, key);
    return place != NULL ? without_last(map, replace(place, value)) : sgm_last_status();
}

/* Sets one entry of a map; an old value of the key is replaced, so arguments add to what the file says.
 * `joins` allows a list as value. Errors say what a value should be (a text, a list of texts), therefore
 * the copies of the option with another kind. */
sgm_status option_set_entry(const option *o, void *base, const arrival *at, const char *key,
                            const yaml_node *value)
{
    text_map *map = option_member(o, base);
    if (value->kind == YAML_LIST && o->joins) {
        const yaml_node joined = {
            .kind = YAML_TEXT, .text = join(value), .line = value->line, .column = value->column};
        option list = *o;
        list.kind = OPTION_LIST;
        sgm_status status =
            joined.text != NULL ? option_set_entry(o, base, at, key, &joined) : option_fail(&list, at, value);
        sgm__free(joined.text);
        return status;
    }
    if (value->kind != YAML_TEXT || (value->plain && value->text[0] == '\0')) {
        option text = *o;
        text.kind = OPTION_TEXT;
        return option_fail(&text, at, value);
    }
    char *kept;
    SGM_TRY(check_value(o, at, value->text, &kept));
    sgm_status status = put_entry(o, map, at, key, kept != NULL ? kept : value->text);
    sgm__free(kept);
    return status == SGM_OK ? option_note_place(at) : status;
}

void text_map_clear(text_map *map)
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
    text_map_clear(option_member(o, base));
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        arrival entry = option_inside(at, keys[i], keys[i]->kind == YAML_TEXT ? keys[i]->text : "");
        status = keys[i]->kind == YAML_TEXT && keys[i]->text[0] != '\0'
                     ? option_set_entry(o, base, &entry, keys[i]->text, &value)
                     : option_fail(o, at, keys[i]);
    }
    sgm__free(text);
    return status;
}

/* Adds or replaces entry by entry. */
static sgm_status set_map(const option *o, void *base, const arrival *at, const yaml_node *node)
{
    if (o->key_of_text != NULL && node->kind == YAML_TEXT)
        return option_set_entry(o, base, at, o->key_of_text, node);
    if (o->value_of_texts != NULL && node->kind != YAML_MAP)
        return set_keys(o, base, at, node);
    if (node->kind != YAML_MAP)
        return option_fail(o, at, node);
    for (size_t i = 0; i < node->count; i++) {
        arrival entry = option_inside(at, node->children[i], node->keys[i]->text);
        SGM_TRY(option_set_entry(o, base, &entry, node->keys[i]->text, node->children[i]));
    }
    return SGM_OK;
}

sgm_status option_set_value(const option *o, void *base, const arrival *at)
{
    if (o->kind == OPTION_LIST)
        return set_list(o, base, at, at->node);
    if (o->kind == OPTION_MAP)
        return set_map(o, base, at, at->node);
    return set_scalar(o, base, at, at->node);
}

/* Only kinds that own memory. */
void option_free_value(const option *o, void *base)
{
    if (o->kind == OPTION_TEXT || o->kind == OPTION_PATH)
        sgm__free(*(char **)option_member(o, base));
    else if (o->kind == OPTION_LIST)
        text_list_clear(option_member(o, base));
    else if (o->kind == OPTION_MAP)
        text_map_clear(option_member(o, base));
}
