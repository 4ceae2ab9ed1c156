/* Tables of options: from one table come reading, checks, messages, help and writing of a struct of
 * values.
 *
 * options.c reads YAML (yaml_tree.h) and command-line arguments into the struct, options_text.c writes it,
 * compares two, and prints help. config.h and search_file.h name the tables. Functions take
 * (table, base), where `base` is the struct. It must be zeroed before options_set_defaults, and is freed by
 * options_free. A member without a value is NULL, NAN, OPTION_UNSET, or empty. */
#ifndef SGM_CLI_CONFIG_OPTIONS_H
#define SGM_CLI_CONFIG_OPTIONS_H

#include "config/yaml_tree.h"
#include <sigma/registry.h>

/* The type of a value and of the member that holds it. */
typedef enum option_kind {
    OPTION_TEXT,    /* char * */
    OPTION_PATH,    /* char *; relative paths begin at the folder of the file that names them */
    OPTION_INTEGER, /* int64_t */
    OPTION_NUMBER,  /* double */
    OPTION_FLAG,    /* bool */
    OPTION_LIST,    /* text_list */
    OPTION_MAP,     /* text_map */
    OPTION_GROUP,   /* a struct with options of its own; a single value stands for the first of them */
    OPTION_SETTING  /* kind, bounds, default, choices and words are those of the library's row */
} option_kind;

/* A list of texts, all owned. */
typedef struct text_list {
    char **items;
    size_t count, capacity;
} text_list;

/* Pairs of texts in the order of the file, all owned; keys[i] belongs to values[i]. Keys are unique. */
typedef struct text_map {
    char **keys, **values;
    size_t count, key_capacity, capacity;
} text_map;

/* A row of a table: the library's row (sgm_option), and where the value goes, the offset of a struct's
 * member:
 *
 *     typedef struct run { char *name; int64_t epochs; } run;
 *     static const option rows[] = {
 *         {.row = {.name = "name", .doc = "of the run"}, .kind = OPTION_TEXT, .offset = offsetof(run, name)},
 *         {.row = {.name = "epochs", .minimum = 1, .maximum = 1e9, .default_text = "10", .doc = "passes"},
 *          .kind = OPTION_INTEGER, .offset = offsetof(run, epochs)}};
 *     static const option_table table = OPTION_TABLE(rows);
 *
 * OPTION_SETTING rows have all but their name from the library's own table (`settings`), so that nothing is
 * said twice; option_complete fills them in. All other rows say these things themselves; their default, of
 * whatever kind, is default_text, and without one the member stays NULL, NAN or OPTION_UNSET. Of the
 * library's row, a key that only the command knows uses name (in a file), choices, unit, bounds, default_text
 * and doc; `kind` here says the rest. */
typedef struct option {
    sgm_option row;
    option_kind kind;
    size_t offset;                                 /* of the member in the struct */
    const sgm_setting *(*settings)(size_t *count); /* OPTION_SETTING: the library's table */
    const char *setting; /* OPTION_SETTING: the name in that table; NULL: the row's */
    bool stays_unset;    /* where it is not given: whether the default applies depends on another option */
    /* Checks a text, each item of a list, each value of a map; its message needs no place. NULL: nothing to
     * check. Not called where there are choices. */
    sgm_status (*check)(const char *value);
    /* The names that a text may be, or begin with; NULL: past the last. For the completion of shells. */
    const char *(*name_at)(size_t index);
    /* A text with names of other programs, with the real ones; sgm__free. NULL: word by word. */
    char *(*rewrite)(const char *value);
    void (*more)(const struct option *o, sgm__text *out); /* appends to the words of the help */
    bool is_path;      /* a list or map: each item, or value, is a path, as of OPTION_PATH */
    const char *forms; /* for the message of a value of the wrong kind: what it takes; NULL: nothing */
    bool joins;        /* a map: a value that is a list becomes one text with commas */
    /* A map for which less than a map may stand: a text as the value of this key, or texts as keys with this
     * value. NULL: it is an error. */
    const char *key_of_text, *value_of_texts;
    /* A text that begins with this prefix goes on with a path, which is treated as OPTION_PATH's is. */
    const char *path_after;
    /* OPTION_GROUP: the options of the struct at `offset`. */
    const struct option_table *children;
    char default_room[32]; /* a default that option_complete has printed; see option_default */
} option;

typedef struct option_table {
    const option *rows;
    size_t count;
} option_table;

#define OPTION_TABLE(array)                                                                                  \
    {                                                                                                        \
        .rows = (array), .count = sizeof(array) / sizeof *(array)                                            \
    }

#define OPTION_ANY 1e15        /* the help shows no `maximum` from here on */
#define OPTION_UNSET INT64_MIN /* an integer without a value */

/* Where a value comes from, for messages and for relative paths. */
typedef struct option_source {
    const char *name;     /* of a file; NULL: an argument of the command line */
    const char *folder;   /* where relative paths begin; "": the current folder */
    const char *argument; /* the whole argument, "key=value" */
    text_map *places;     /* gets the place of each key that is given (options_place); NULL: not asked for */
} option_source;

/* A copy of the row with what the library's table says filled in. The copy may own its default
 * (default_room), so ask option_default for it, of the copy, while the copy lives. */
option option_complete(const option *o);
/* The default of a completed option as text; NULL: none. */
const char *option_default(const option *o);
sgm_status options_set_defaults(const option_table *table, void *base);
/* Applies a map of a file to the struct. An unknown key or a bad value fails with its place. */
sgm_status options_apply(const option_table *table, void *base, const option_source *source,
                         const yaml_node *map);
/* Applies an argument "path.to.key=value": a value that begins with '[' or '{' is YAML, everything else a
 * text as it stands. `places`: as option_source has it. */
sgm_status options_apply_argument(const option_table *table, void *base, const char *argument,
                                  text_map *places);
/* Applies a node of a file to the option "path.to.key". */
sgm_status options_apply_key(const option_table *table, void *base, const option_source *source,
                             const char *key, const yaml_node *value);
/* The option that "path.to.key" names; of a group that is named itself, its first option. NULL: there is
 * none. *base becomes the struct that contains the option's member; *entry the rest of the key if the
 * option is a map, else NULL. */
const option *options_find(const option_table *table, const char *key, const void **base, const char **entry);
/* The value of "path.to.key" as an argument would give it; sgm__free. NULL: no such option, or no value. */
char *options_key_text(const option_table *table, const void *base, const char *key);
/* The name of the first option whose value is not its default; NULL: all are. */
const char *options_first_given(const option_table *table, const void *base);
/* Appends everything that has a value, as YAML. */
void options_write(const option_table *table, const void *base, sgm__text *out);
/* Appends a line "  KEY: was OLD, is NEW" for each option that differs. An option whose key, such as
 * optimiser.type, is in `ignored` is left out, with all that is below it. */
void options_compare(const option_table *table, const void *old, const void *new, const char *const *ignored,
                     size_t ignored_count, sgm__text *out);
/* Appends the table for people: key, kind, meaning, bounds, default. */
void options_help(const option_table *table, sgm__text *out);
/* Appends the same of those whose key is `name`, or ends in it behind a dot, with all below them, and with
 * `choices` of those that take it as a choice; returns how many there are. */
size_t options_help_of(const option_table *table, const char *name, bool choices, sgm__text *out);
/* Whether the word is one of the row's choices. */
bool option_has_choice(const sgm_option *row, const char *word);
/* Frees texts, lists and maps in the struct; does not reset the members. */
void options_free(const option_table *table, void *base);
/* "red, green" as its words without blanks around them, NULL at the end; one block, sgm__free. NULL: out
 * of memory. */
char **options_split(const char *texts);
/* NULL: the map has no such key. */
const char *text_map_get(const text_map *map, const char *key);
/* Adds an entry, or replaces its value. Both texts are copied. */
sgm_status text_map_set(text_map *map, const char *key, const char *value);
void text_map_clear(text_map *map);
void text_list_clear(text_list *list);

/* --- plugins.c: plug-ins of the command --- */
/* A plug-in is code, so a file that came from elsewhere must not load one unasked. What the user typed is
 * loaded: --plugin FILE, and the `plugins` of a FILE.yaml that a command is given. Both are remembered, by
 * their paths, in the user's state folder. The config.yaml or search.yaml in the folder of a run loads only
 * what is remembered there, or was given by --plugin. */
/* Loads a plug-in that the user named, and remembers it. */
sgm_status plugins_load(const char *path);
/* Loads the plug-ins of the file `name`, if it may; `paths` are absolute. Then adds to the list those that
 * were loaded by --plugin, so that what is written into a run's folder names them. */
sgm_status plugins_load_of(const char *name, text_list *paths);

#endif
