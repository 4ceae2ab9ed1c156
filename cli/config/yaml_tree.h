/* YAML as a tree whose nodes know their place, from text that nobody vouches for. */
#ifndef SGM_CLI_CONFIG_YAML_TREE_H
#define SGM_CLI_CONFIG_YAML_TREE_H

#include "base/base.h"

/* Far more than any experiment needs, and little enough to be harmless. */
#define YAML_MAX_BYTES ((size_t)1 << 20)
#define YAML_MAX_DEPTH 32
#define YAML_MAX_NODES 20000

typedef enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP } yaml_kind;

typedef struct yaml_node {
    yaml_kind kind;
    int line, column;            /* from 1 */
    char *text;                  /* YAML_TEXT */
    bool plain;                  /* written without quotes, so that it may be a number or a truth value */
    struct yaml_node **children; /* list: items; map: values */
    struct yaml_node **keys;     /* map: as many as children */
    size_t count, capacity, key_capacity;
} yaml_node;

/* One document; aliases, anchors, tags and keys that come twice are errors ("NAME:LINE:COLUMN: ..."). */
yaml_node *yaml_tree_parse(const char *name, const char *text, size_t length);
yaml_node *yaml_tree_load(const char *path);
void yaml_tree_free(yaml_node *node);
/* Takes the value of a key out of a map, which then has neither; NULL: there is none. */
yaml_node *yaml_tree_take(yaml_node *map, const char *key);
/* What a node is, for messages: "'many'", "a list", "a map", "nothing". */
char *yaml_node_describe(const yaml_node *node, char *buffer, size_t size);
/* Appends `text` as a scalar that reads back as the same text. */
void yaml_write_text(sgm__text *out, const char *text);

#endif
