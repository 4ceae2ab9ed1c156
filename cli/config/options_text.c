/* Writes a struct of options as text: YAML that can be read again, differences between two structs, and
 * help; and divides the texts of joined lists (option.joins).
 *
 * The counterpart of options.c, with the same tables (options.h). What is written has every value that is
 * set, defaults included, so that a file written by one version means the same when the defaults of
 * another differ. Lists are written on one line; maps and groups in blocks indented by two blanks. */
#include "config/options.h"

#include <math.h>
#include <stdio.h>

/* The member of the option in the struct. */
static const void *field(const void *base, const option *o)
{
    return (const char *)base + o->offset;
}

/* Whether an option has a value to write. A flag always has one. A group has one if its first option does,
 * which says what the others refine (data without a source and a schedule without a kind are not there),
 * or if another option without a default does. */
static bool has_value(const option *given, const void *base)
{
    const option whole = option_complete(given), *o = &whole;
    const void *value = field(base, o);
    switch (o->kind) {
    case OPTION_TEXT:
    case OPTION_PATH:
        return *(char *const *)value != NULL;
    case OPTION_INTEGER:
        return *(const int64_t *)value != OPTION_UNSET;
    case OPTION_NUMBER:
        return !isnan(*(const double *)value);
    case OPTION_LIST:
        return ((const text_list *)value)->count > 0;
    case OPTION_MAP:
        return ((const text_map *)value)->count > 0;
    case OPTION_GROUP:
        /* A group is there if its first option is: data without a source, a schedule without a kind are not.
         */
        if (has_value(&o->children->rows[0], value))
            return true;
        for (size_t i = 1; i < o->children->count; i++) {
            const option child = option_complete(&o->children->rows[i]);
            if (option_default(&child) == NULL && has_value(&child, value))
                return true;
        }
        return false;
    default:
        return true;
    }
}

static void write_table(const option_table *table, const void *base, int depth, sgm__text *out);

/* A map that is no more than the text which may stand for it is written as that text. */
static const char *text_of_map(const option *o, const text_map *map)
{
    return map->count == 1 && o->key_of_text != NULL && strcmp(map->keys[0], o->key_of_text) == 0
               ? map->values[0]
               : NULL;
}

/* Appends the value behind "key:", and a line end. `depth` is the indentation level of the key. */
static void write_value(const option *given, const void *base, int depth, sgm__text *out)
{
    const option whole = option_complete(given), *o = &whole;
    const void *value = field(base, o);
    const text_list *list = value;
    const text_map *map = value;
    char number[32];
    switch (o->kind) {
    case OPTION_TEXT:
    case OPTION_PATH:
        yaml_write_text(out, *(char *const *)value);
        sgm__text_append(out, "\n");
        return;
    case OPTION_INTEGER:
        sgm__text_append(out, "%lld\n", (long long)*(const int64_t *)value);
        return;
    case OPTION_NUMBER:
        sgm__text_append(out, "%s\n", sgm__number_text(*(const double *)value, number, sizeof number));
        return;
    case OPTION_FLAG:
        sgm__text_append(out, "%s\n", *(const bool *)value ? "true" : "false");
        return;
    case OPTION_LIST:
        for (size_t i = 0; i < list->count; i++) {
            sgm__text_append(out, "%s", i > 0 ? ", " : "[");
            yaml_write_text(out, list->items[i]);
        }
        sgm__text_append(out, "]\n");
        return;
    case OPTION_MAP:
        if (text_of_map(o, map) != NULL)
            yaml_write_text(out, text_of_map(o, map));
        sgm__text_append(out, "\n");
        if (text_of_map(o, map) != NULL)
            return;
        for (size_t i = 0; i < map->count; i++) {
            sgm__text_append(out, "%*s", 2 * depth + 2, "");
            yaml_write_text(out, map->keys[i]);
            sgm__text_append(out, ": ");
            yaml_write_text(out, map->values[i]);
            sgm__text_append(out, "\n");
        }
        return;
    case OPTION_GROUP:
        sgm__text_append(out, "\n");
        write_table(o->children, value, depth + 1, out);
        return;
    case OPTION_SETTING: /* not a complete option's */
        return;
    }
}

/* Appends the options of a struct that have values, a line or block for each. */
static void write_table(const option_table *table, const void *base, int depth, sgm__text *out)
{
    for (size_t i = 0; i < table->count; i++) {
        if (!has_value(&table->rows[i], base))
            continue;
        bool is_block = table->rows[i].kind == OPTION_GROUP ||
                        (table->rows[i].kind == OPTION_MAP &&
                         text_of_map(&table->rows[i], field(base, &table->rows[i])) == NULL);
        const char *space = is_block ? "" : " ";
        sgm__text_append(out, "%*s%s:%s", 2 * depth, "", table->rows[i].row.name, space);
        write_value(&table->rows[i], base, depth, out);
    }
}

void options_write(const option_table *table, const void *base, sgm__text *out)
{
    write_table(table, base, 0, out);
}

/* The value as it would be written, on one line with single blanks; "nothing" if there is none. sgm__free;
 * NULL: out of memory. In the loop `blank` is true at the beginning and behind each blank, so that runs
 * become one. */
static char *value_text(const option *o, const void *base)
{
    sgm__text text = {0};
    if (!has_value(o, base))
        return sgm__strdup("nothing");
    /* The indentation of a block becomes single blanks below, so the depth does not matter. */
    write_value(o, base, 0, &text);
    char *line = sgm__text_take(&text);
    size_t kept = 0;
    bool blank = true; /* what is in front, and each run of blanks and ends of lines */
    for (const char *c = line; c != NULL && *c != '\0'; c++) {
        bool is_blank = *c == ' ' || *c == '\n';
        if (!is_blank)
            line[kept++] = *c;
        else if (!blank && strspn(c, " \n") < strlen(c))
            line[kept++] = ' ';
        blank = is_blank;
    }
    if (line != NULL)
        line[kept] = '\0';
    return line;
}

/* Whether a single value is the option's default, compared as text. Lists, maps and groups have no
 * defaults. */
static bool is_default(const option *o, const void *base)
{
    const char *default_value = option_default(o);
    const void *value = field(base, o);
    char number[32] = "";
    if (default_value == NULL)
        return false;
    if (o->kind == OPTION_FLAG)
        return strcmp(default_value, *(const bool *)value ? "true" : "false") == 0;
    if (o->kind == OPTION_INTEGER)
        snprintf(number, sizeof number, "%lld", (long long)*(const int64_t *)value);
    else if (o->kind == OPTION_NUMBER)
        snprintf(number, sizeof number, "%.15g", *(const double *)value);
    bool text = o->kind == OPTION_TEXT || o->kind == OPTION_PATH;
    return strcmp(default_value, text ? *(char *const *)value : number) == 0;
}

/* Rows are completed, since the default of a setting is in the library's table. */
const char *options_first_given(const option_table *table, const void *base)
{
    for (size_t i = 0; i < table->count; i++) {
        const option whole = option_complete(&table->rows[i]);
        if (has_value(&whole, base) && !is_default(&whole, base))
            return table->rows[i].row.name;
    }
    return NULL;
}

/* Texts without the quotes that YAML would need: an argument takes them as they are. */
char *options_key_text(const option_table *table, const void *base, const char *key)
{
    const char *entry;
    const option *o = options_find(table, key, &base, &entry);
    if (o == NULL)
        return NULL;
    if (entry != NULL)
        return sgm__strdup(text_map_get(field(base, o), entry));
    const option_kind kind = option_complete(o).kind;
    if (kind == OPTION_TEXT || kind == OPTION_PATH)
        return sgm__strdup(*(char *const *)field(base, o));
    return value_text(o, base);
}

/* Compares values as they would be written. `prefix` is the key of the struct that `table` describes. */
static void compare(const option_table *table, const char *prefix, const void *old, const void *new,
                    const char *const *ignored, size_t ignored_count, sgm__text *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const option *o = &table->rows[i];
        char name[120];
        bool skip = false;
        snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", o->row.name);
        for (size_t k = 0; k < ignored_count; k++)
            skip |= strcmp(ignored[k], name) == 0;
        if (skip)
            continue;
        if (o->kind == OPTION_GROUP) {
            compare(o->children, name, field(old, o), field(new, o), ignored, ignored_count, out);
            continue;
        }
        char *before = value_text(o, old), *after = value_text(o, new);
        if (before != NULL && after != NULL && strcmp(before, after) != 0)
            sgm__text_append(out, "  %s: was %s, is %s\n", name, before, after);
        sgm__free(before);
        sgm__free(after);
    }
}

void options_compare(const option_table *table, const void *old, const void *new, const char *const *ignored,
                     size_t ignored_count, sgm__text *out)
{
    compare(table, "", old, new, ignored, ignored_count, out);
}

/* Columns of the help: where its third column begins, and where lines are wrapped. */
enum { HELP_INDENT = 40, HELP_WIDTH = 110 }; /* columns */

/* A line of the help in three columns: key, kind, and `text` wrapped between words. */
static void help_line(const char *name, const char *kind, const char *text, sgm__text *out)
{
    size_t column = HELP_INDENT;
    sgm__text_append(out, "  %-28s %-8s", name, kind);
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        bool wrap = column + length > HELP_WIDTH && column > HELP_INDENT;
        if (wrap)
            sgm__text_append(out, "\n%*s", HELP_INDENT - 1, "");
        sgm__text_append(out, " %.*s", (int)length, text);
        column = (wrap ? HELP_INDENT : column) + length + 1;
        text += length;
        text += strspn(text, " ");
    }
    sgm__text_append(out, "\n");
}

/* The third column: the option's words, what `more` adds, choices, bounds with the unit, default. The
 * kinds are in the order of option_kind. */
static void help_option(const option *o, const char *name, sgm__text *lines)
{
    static const char *const kinds[] = {"text", "file", "integer", "number", "flag", "list", "map", "", ""};
    sgm__text text = {0}, *out = &text;
    sgm__text_append(out, "%s", o->row.doc);
    if (o->more != NULL)
        o->more(o, out);
    for (size_t i = 0; o->row.choices != NULL && o->row.choices[i] != NULL; i++)
        sgm__text_append(out, "%s%s", i > 0 ? ", " : ": ", o->row.choices[i]);
    const char *space = o->row.unit != NULL ? " " : "", *unit = o->row.unit != NULL ? o->row.unit : "";
    if (o->row.minimum != o->row.maximum && o->row.maximum >= OPTION_ANY)
        sgm__text_append(out, " [from %.15g%s%s]", o->row.minimum, space, unit);
    else if (o->row.minimum != o->row.maximum)
        sgm__text_append(out, " [%.15g to %.15g%s%s]", o->row.minimum, o->row.maximum, space, unit);
    if (option_default(o) != NULL)
        sgm__text_append(out, " (default %s)", option_default(o));
    help_line(name, kinds[o->kind], text.data != NULL ? text.data : "", lines);
    sgm__text_free(&text);
}

/* Lines for a table and the groups in it, with the keys' prefix in front. data.training, .validation and
 * .test have the same children: they are listed once, under the first. */
static void help_table(const option_table *table, const char *prefix, sgm__text *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const option whole = option_complete(&table->rows[i]), *o = &whole;
        char name[120];
        snprintf(name, sizeof name, "%s%s", prefix, o->row.name);
        if (o->kind == OPTION_GROUP) {
            if (o->row.doc[0] != '\0')
                help_line(name, "map", o->row.doc, out);
            snprintf(name, sizeof name, "%s%s.", prefix, o->row.name);
            /* The same keys are shown once. */
            if (i == 0 || table->rows[i - 1].children != o->children)
                help_table(o->children, name, out);
            continue;
        }
        help_option(o, name, out);
    }
}

void options_help(const option_table *table, sgm__text *out)
{
    help_table(table, "", out);
}

/* Whether the key is the name, or ends in it: "data.batch" is "batch". */
static bool is_key(const char *key, const char *name)
{
    size_t all = strlen(key), length = strlen(name);
    return all >= length && strcmp(key + all - length, name) == 0 &&
           (all == length || key[all - length - 1] == '.');
}

bool option_has_choice(const sgm_option *row, const char *word)
{
    for (size_t i = 0; row->choices != NULL && row->choices[i] != NULL; i++)
        if (strcmp(row->choices[i], word) == 0)
            return true;
    return false;
}

static size_t help_of(const option_table *table, const char *prefix, const char *name, bool choices,
                      sgm__text *out)
{
    size_t found = 0;
    for (size_t i = 0; i < table->count; i++) {
        char key[120];
        const option whole = option_complete(&table->rows[i]);
        snprintf(key, sizeof key, "%s%s", prefix, table->rows[i].row.name);
        if (is_key(key, name) || (choices && option_has_choice(&whole.row, name))) {
            help_table(&(option_table){&table->rows[i], 1}, prefix, out);
            found++;
        } else if (table->rows[i].kind == OPTION_GROUP &&
                   (i == 0 || table->rows[i - 1].children != table->rows[i].children)) {
            snprintf(key, sizeof key, "%s%s.", prefix, table->rows[i].row.name);
            found += help_of(table->rows[i].children, key, name, choices, out);
        }
    }
    return found;
}

size_t options_help_of(const option_table *table, const char *name, bool choices, sgm__text *out)
{
    return help_of(table, "", name, choices, out);
}

/* --- texts of a list --- */

/* The word without blanks around it; ended in place. */
static char *trimmed(char *word)
{
    word += strspn(word, " \t");
    size_t length = strlen(word);
    while (length > 0 && (word[length - 1] == ' ' || word[length - 1] == '\t'))
        length--;
    word[length] = '\0';
    return word;
}

/* One block of memory: the pointers, then the text, which strsep divides in place. Unlike sgm__words it
 * keeps empty words, so that a check can refuse them. */
char **options_split(const char *texts)
{
    size_t maximum = 1, length = strlen(texts), count = 0;
    for (const char *c = texts; *c != '\0'; c++)
        maximum += *c == ',';
    char **words = sgm__alloc((maximum + 1) * sizeof *words + length + 1);
    if (words == NULL)
        return NULL;
    char *rest = (char *)(words + maximum + 1), *word;
    memcpy(rest, texts, length + 1);
    while ((word = strsep(&rest, ",")) != NULL)
        words[count++] = trimmed(word);
    words[count] = NULL;
    return words;
}
