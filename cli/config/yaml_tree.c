/* Builds a tree from libyaml's events, and writes scalars.
 *
 * libyaml can compose whole documents by itself, but only without limits; reading events lets every node
 * be counted before it is made (new_node). Each function that reads gets the event that begins its node
 * and leaves the stream behind that node's end; events are deleted by the function that fetched them. NULL
 * means that the error is set and everything that was made is freed. */
#include "config/yaml_tree.h"

#include <stdio.h>
#include <yaml.h>

/* A parser, the name for messages, and how many nodes there are so far. */
typedef struct yaml_reader {
    yaml_parser_t parser;
    const char *name;
    size_t nodes;
} yaml_reader;

/* libyaml counts lines and columns from 0. */
static void fail_at(const yaml_reader *reader, yaml_mark_t mark, const char *message)
{
    sgm_fail(SGM_ERROR_FORMAT, "%s:%zu:%zu: %s", reader->name, mark.line + 1, mark.column + 1, message);
}

/* Recursion is bounded by YAML_MAX_DEPTH. */
void yaml_tree_free(yaml_node *node)
{
    if (node == NULL)
        return;
    for (size_t i = 0; i < node->count; i++) {
        yaml_tree_free(node->children[i]);
        if (node->keys != NULL)
            yaml_tree_free(node->keys[i]);
    }
    sgm__free(node->children);
    sgm__free(node->keys);
    sgm__free(node->text);
    sgm__free(node);
}

/* The pairs behind it move up, so the order stays. */
yaml_node *yaml_tree_take(yaml_node *map, const char *key)
{
    for (size_t i = 0; map->kind == YAML_MAP && i < map->count; i++) {
        if (strcmp(map->keys[i]->text, key) != 0)
            continue;
        yaml_node *taken = map->children[i];
        size_t behind = --map->count - i;
        yaml_tree_free(map->keys[i]);
        memmove(&map->keys[i], &map->keys[i + 1], behind * sizeof(yaml_node *));
        memmove(&map->children[i], &map->children[i + 1], behind * sizeof(yaml_node *));
        return taken;
    }
    return NULL;
}

/* Fetches the next event, which the caller deletes. False: the error is set, with the place where libyaml
 * found it. */
static bool next_event(yaml_reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return true;
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR) {
        sgm__fail_memory(0);
        return false;
    }
    yaml_mark_t mark = parser->problem_mark;
    /* Errors of the encoding come with an offset only. */
    if (parser->error == YAML_READER_ERROR)
        mark = parser->mark;
    bool is_token = parser->problem != NULL && strstr(parser->problem, "cannot start any token") != NULL;
    char message[200]; /* a tab is what mostly stands there, and cannot be seen */
    snprintf(message, sizeof message, "this is not YAML: %s%s%s%s",
             parser->problem != NULL ? parser->problem : "unknown problem",
             parser->context != NULL ? " " : "", parser->context != NULL ? parser->context : "",
             is_token ? "; lines are indented by blanks, not by tabs" : "");
    fail_at(reader, mark, message);
    return false;
}

/* A node without contents, if depth and number allow. */
static yaml_node *new_node(yaml_reader *reader, yaml_kind kind, yaml_mark_t mark, int depth)
{
    if (depth > YAML_MAX_DEPTH || ++reader->nodes > YAML_MAX_NODES) {
        char message[100];
        snprintf(message, sizeof message, "too much: at most %d values, %d levels deep, are read",
                 YAML_MAX_NODES, YAML_MAX_DEPTH);
        fail_at(reader, mark, message);
        return NULL;
    }
    yaml_node *node = sgm__calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    node->kind = kind;
    node->line = (int)mark.line + 1;
    node->column = (int)mark.column + 1;
    return node;
}

static yaml_node *read_node(yaml_reader *reader, const yaml_event_t *event, int depth);

/* A scalar. A zero byte inside (possible as "\0" in quotes) would cut the text short, so it is refused. */
static yaml_node *read_text(yaml_reader *reader, const yaml_event_t *event, int depth)
{
    const char *value = (const char *)event->data.scalar.value;
    if (strlen(value) != event->data.scalar.length) {
        fail_at(reader, event->start_mark, "a text with a zero character in it");
        return NULL;
    }
    yaml_node *node = new_node(reader, YAML_TEXT, event->start_mark, depth);
    if (node == NULL)
        return NULL;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = sgm__strdup(value);
    if (node->text == NULL) {
        yaml_tree_free(node);
        return NULL;
    }
    return node;
}

/* Appends an item, or a value with its key, both of which are taken, also on failure. `key` is NULL for a
 * list. */
static bool add_child(yaml_node *parent, yaml_node *key, yaml_node *child)
{
    bool fits = sgm__reserve(&parent->children, &parent->capacity, parent->count + 1,
                             sizeof *parent->children) == SGM_OK &&
                (parent->kind != YAML_MAP || sgm__reserve(&parent->keys, &parent->key_capacity,
                                                          parent->count + 1, sizeof *parent->keys) == SGM_OK);
    if (!fits) {
        yaml_tree_free(key);
        yaml_tree_free(child);
        return false;
    }
    if (parent->kind == YAML_MAP)
        parent->keys[parent->count] = key;
    parent->children[parent->count++] = child;
    return true;
}

/* Keys are scalars and unique. The search is linear: a map has few keys. */
static bool check_key(yaml_reader *reader, const yaml_node *map, const yaml_node *key, yaml_mark_t mark)
{
    if (key->kind != YAML_TEXT) {
        fail_at(reader, mark, "a key must be a word, not a list or a map");
        return false;
    }
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i]->text, key->text) == 0) {
            sgm_fail(SGM_ERROR_FORMAT, "%s:%d:%d: key '%.100s' is here twice, first in line %d", reader->name,
                     key->line, key->column, key->text, map->keys[i]->line);
            return false;
        }
    return true;
}

/* Reads the items of a list, or keys and values in turn, up to the parent's end. In a map `key` holds a
 * key whose value has not come yet. False: the parent keeps what was added, and its owner frees it. */
static bool read_children(yaml_reader *reader, yaml_node *parent, int depth)
{
    yaml_event_type_t end = parent->kind == YAML_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    yaml_node *key = NULL;
    for (;;) {
        yaml_event_t event;
        if (!next_event(reader, &event))
            break;
        if (event.type == end) {
            yaml_event_delete(&event);
            return true;
        }
        yaml_node *node = read_node(reader, &event, depth + 1);
        yaml_mark_t mark = event.start_mark;
        yaml_event_delete(&event);
        if (node == NULL)
            break;
        if (parent->kind == YAML_MAP && key == NULL) {
            key = node;
            if (!check_key(reader, parent, key, mark))
                break;
            continue;
        }
        yaml_node *own_key = key;
        key = NULL;
        if (!add_child(parent, own_key, node))
            break;
    }
    yaml_tree_free(key);
    return false;
}

/* Whether a node has an anchor or a tag. */
static bool is_marked(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

/* Reads the node that begins with this event. */
static yaml_node *read_node(yaml_reader *reader, const yaml_event_t *event, int depth)
{
    if (event->type == YAML_ALIAS_EVENT || is_marked(event)) {
        fail_at(reader, event->start_mark,
                "anchors (&), aliases (*) and tags (!) are not read here; put a text that begins with such a "
                "character in quotes");
        return NULL;
    }
    if (event->type == YAML_SCALAR_EVENT)
        return read_text(reader, event, depth);
    yaml_kind kind = event->type == YAML_MAPPING_START_EVENT ? YAML_MAP : YAML_LIST;
    yaml_node *node = new_node(reader, kind, event->start_mark, depth);
    if (node != NULL && !read_children(reader, node, depth)) {
        yaml_tree_free(node);
        return NULL;
    }
    return node;
}

/* Whether an event begins a node. */
static bool is_content(yaml_event_type_t type)
{
    return type == YAML_SCALAR_EVENT || type == YAML_ALIAS_EVENT || type == YAML_SEQUENCE_START_EVENT ||
           type == YAML_MAPPING_START_EVENT;
}

/* Reads the whole stream: a second document is an error, as it would be ignored. */
static yaml_node *read_document(yaml_reader *reader)
{
    yaml_node *root = NULL;
    yaml_event_t event;
    bool good = true, more = true;
    while (good && more && (good = next_event(reader, &event))) {
        more = event.type != YAML_STREAM_END_EVENT;
        if (root != NULL && event.type == YAML_DOCUMENT_START_EVENT) {
            fail_at(reader, event.start_mark, "a second document begins here; one is read");
            good = false;
        } else if (is_content(event.type)) {
            root = read_node(reader, &event, 1);
            good = root != NULL;
        }
        yaml_event_delete(&event);
    }
    if (good && root != NULL)
        return root;
    if (good)
        sgm_fail(SGM_ERROR_FORMAT, "%s:1:1: there is nothing in it", reader->name);
    yaml_tree_free(root);
    return NULL;
}

/* The length is checked before libyaml sees the text: its memory grows with it. */
yaml_node *yaml_tree_parse(const char *name, const char *text, size_t length)
{
    yaml_reader reader = {.name = name};
    if (length > YAML_MAX_BYTES) {
        sgm_fail(SGM_ERROR_FORMAT, "%s: %zu bytes, at most %zu are read", name, length, YAML_MAX_BYTES);
        return NULL;
    }
    if (!yaml_parser_initialize(&reader.parser)) {
        sgm__fail_memory(0);
        return NULL;
    }
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, length);
    yaml_node *root = read_document(&reader);
    yaml_parser_delete(&reader.parser);
    return root;
}

/* sgm__file_read refuses files beyond the limit, so that none is read whole only to be refused. */
yaml_node *yaml_tree_load(const char *path)
{
    char *text;
    size_t length;
    if (sgm__file_read(path, YAML_MAX_BYTES, &text, &length) != SGM_OK)
        return NULL;
    yaml_node *root = yaml_tree_parse(path, text, length);
    sgm__free(text);
    return root;
}

char *yaml_node_describe(const yaml_node *node, char *buffer, size_t size)
{
    if (node->kind != YAML_TEXT)
        snprintf(buffer, size, "%s", node->kind == YAML_LIST ? "a list" : "a map");
    else if (node->text[0] == '\0' && node->plain)
        snprintf(buffer, size, "nothing");
    else
        snprintf(buffer, size, "%s'%.60s'", node->plain ? "" : "the text ", node->text);
    return buffer;
}

/* Words that need no quotes anywhere in a file: they begin with a letter or '/', have no character with a
 * meaning in YAML, and are none of the words that YAML readers take for truth values or null. */
static bool is_simple(const char *text)
{
    if (!(sgm__is_letter(text[0]) || text[0] == '/'))
        return false;
    for (const char *c = text; *c != '\0'; c++)
        if (!(sgm__is_alphanumeric(*c) || strchr("_-./", *c) != NULL))
            return false;
    static const char *const others[] = {"true", "false", "null", "yes", "no", "on", "off"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcasecmp(text, others[i]) == 0)
            return false;
    return true;
}

/* In double quotes control characters are written as \xNN; UTF-8 stays as it is. */
void yaml_write_text(sgm__text *out, const char *text)
{
    if (is_simple(text)) {
        sgm__text_append(out, "%s", text);
        return;
    }
    sgm__text_append(out, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            sgm__text_append(out, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            sgm__text_append(out, "\\x%02x", *c);
        else
            sgm__text_append_bytes(out, (const char *)c, 1);
    }
    sgm__text_append(out, "\"");
}
