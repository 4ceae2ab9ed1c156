/* YAML as a tree whose nodes know their line and column. The text may come from anywhere and is bounded in
 * every way.
 *
 * Of YAML this is what configurations need: scalars, lists, maps with scalar keys. Anchors, aliases and
 * tags are refused, so the tree cannot be larger than the text. Numbers are not interpreted here:
 * options.c does that by the option's kind. */
#ifndef SGM_CLI_CONFIG_YAML_TREE_H
#define SGM_CLI_CONFIG_YAML_TREE_H

#include "base/base.h"

/* Bounds on bytes of a file, levels of nesting, and nodes: far more than an experiment needs, and little
 * enough to be harmless. The depth bounds the recursion of everything that walks a tree. */
#define YAML_MAX_BYTES ((size_t)1 << 20)
#define YAML_MAX_DEPTH 32
#define YAML_MAX_NODES 20000

typedef enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP } yaml_kind;

/* A scalar, list or map; owns everything below it. */
typedef struct yaml_node {
    yaml_kind kind;
    int line, column;            /* from 1 */
    char *text;                  /* YAML_TEXT: never NULL; "" and plain: nothing was written */
    bool plain;                  /* without quotes, so that it may be a number or a truth value */
    struct yaml_node **children; /* list: items; map: values */
    struct yaml_node **keys;     /* map: as many as children */
    size_t count, capacity, key_capacity;
} yaml_node;

/* One document; NULL and an error "NAME:LINE:COLUMN: ..." if it is no YAML, or has keys twice, or anything
 * that is refused. Free with yaml_tree_free. yaml_tree_load reads a file. */
yaml_node *yaml_tree_parse(const char *name, const char *text, size_t length);
yaml_node *yaml_tree_load(const char *path);
void yaml_tree_free(yaml_node *node);
/* Removes a key and its value from a map and returns the value, which the caller owns; NULL: there is
 * none. */
yaml_node *yaml_tree_take(yaml_node *map, const char *key);
/* What a node is, for messages: "'many'", "a list", "a map", "nothing". Writes into `buffer` and returns
 * it. */
char *yaml_node_describe(const yaml_node *node, char *buffer, size_t size);
/* Appends the text as a scalar that reads back as the same text, in quotes where that is needed. */
void yaml_write_text(sgm__text *out, const char *text);

#endif
