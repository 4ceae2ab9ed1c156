/* Tables of options: from one table come reading, bounds, messages, help and writing. */
#ifndef SGM_CLI_CONFIG_OPTIONS_H
#define SGM_CLI_CONFIG_OPTIONS_H

#include "config/yaml_tree.h"
#include <sigma/registry.h>

typedef enum option_kind {
    OPTION_TEXT,    /* char * */
    OPTION_PATH,    /* char *: made absolute, beginning at the folder of the file that names it */
    OPTION_INTEGER, /* int64_t */
    OPTION_NUMBER,  /* double */
    OPTION_FLAG,    /* bool */
    OPTION_LIST,    /* text_list */
    OPTION_MAP,     /* text_map */
    OPTION_GROUP,   /* a struct with options of its own; a single value stands for the first of them */
    OPTION_SETTING  /* kind, bounds, default, choices and words are those of the library's row */
} option_kind;

typedef struct text_list {
    char **items;
    size_t count, capacity;
} text_list;

typedef struct text_map {
    char **keys, **values;
    size_t count, key_capacity, capacity;
} text_map;

/* What only the command knows stands here; what the library knows too stands in the library's tables. */
typedef struct option {
    const char *name;
    option_kind kind;
    size_t offset;                                 /* in the struct */
    const sgm_setting *(*settings)(size_t *count); /* the library's table; then the members below are its */
    const char *setting;                           /* the name there; NULL: the same */
    const char *const *choices;                    /* of a text */
    const char *unit;
    double minimum, maximum;   /* numbers; equal: no bounds */
    const char *default_value; /* as it would be written; NULL: none (NULL, NAN, OPTION_UNSET) */
    const char *doc;
    sgm_status (*check)(const char *value);               /* texts, items, values of maps */
    void (*more)(const struct option *o, sgm__text *out); /* adds to the words of the help */
    bool joins;                                           /* a map: a list is a text with commas */
    const char *path_after; /* a text that begins so goes on with a path, as OPTION_PATH has them */
    const struct option *children;
    size_t child_count;
    char default_room[32];
} option;

#define OPTION_ANY 1e15        /* a `maximum` from here on is not shown */
#define OPTION_UNSET INT64_MIN /* an integer that was not given */

/* Where values come from, for messages and relative paths. */
typedef struct option_source {
    const char *name;   /* a file's; NULL: an argument */
    const char *folder; /* "" is the current one */
    const char *argument;
} option_source;

/* The option with what the library's row says filled in. */
option option_complete(const option *o);
const char *option_default(const option *o); /* of a complete one; NULL: none */
sgm_status options_set_defaults(const option *table, size_t count, void *base);
/* Applies a map of a file. */
sgm_status options_apply(const option *table, size_t count, void *base, const option_source *source,
                         const yaml_node *map);
/* Applies "path.to.key=value". */
sgm_status options_apply_argument(const option *table, size_t count, void *base, const char *argument);
/* Applies a value of a file to "path.to.key". */
sgm_status options_apply_key(const option *table, size_t count, void *base, const option_source *source,
                             const char *key, const yaml_node *value);
/* The option that "path.to.key" names, the first one of a group; NULL: none. *base becomes the struct that it
 * is in, *entry the rest of the key in a map (else NULL). */
const option *options_find(const option *table, size_t count, const char *key, const void **base,
                           const char **entry);
/* The value of "path.to.key" as an argument would give it; sgm__free. */
char *options_key_text(const option *table, size_t count, const void *base, const char *key);
/* The first option whose value is not its default; NULL: none. */
const char *options_first_given(const option *table, size_t count, const void *base);
/* Everything that has a value, as YAML. */
void options_write(const option *table, size_t count, const void *base, sgm__text *out);
/* Appends a line "  KEY: was OLD, is NEW" for each option that differs; `ignored` are left out. */
void options_compare(const option *table, size_t count, const void *old, const void *new,
                     const char *const *ignored, size_t ignored_count, sgm__text *out);
/* A table for people. */
void options_help(const option *table, size_t count, sgm__text *out);
void options_free(const option *table, size_t count, void *base);
const char *text_map_get(const text_map *map, const char *key);

#endif
