/* A configuration as one flat object: what compares runs knows dotted keys, not maps in maps. */
#include "runs/flat.h"
#include "config/yaml_tree.h"

/* A scalar as JSON. Only unquoted ones may be numbers or truth values; quoted ones are texts. */
static json_t *value_of(const yaml_node *node)
{
    int64_t whole;
    double number;
    if (node->plain && sgm__parse_int64(node->text, &whole))
        return json_integer(whole);
    if (node->plain && sgm__parse_double(node->text, &number))
        return json_real(number);
    if (node->plain && (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0))
        return json_boolean(node->text[0] == 't');
    return json_string(node->text);
}

/* Whether a node is a list whose items are all scalars. */
static bool is_plain_list(const yaml_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->kind != YAML_TEXT)
            return false;
    return node->kind == YAML_LIST;
}

/* A list of scalars as one text, "a, b". */
static void put_list(json_t *flat, const char *name, const yaml_node *node)
{
    sgm__text text = {0};
    for (size_t i = 0; i < node->count; i++)
        sgm__text_append(&text, "%s%s", i > 0 ? ", " : "", node->children[i]->text);
    json_object_set_new(flat, name, json_string(text.data != NULL ? text.data : ""));
    sgm__text_free(&text);
}

/* Adds all values below `node` to `flat` under dotted names: {optimiser: {type: adam}} becomes
 * "optimiser.type". Items of lists that contain lists or maps are numbered from 1. */
static void flatten(json_t *flat, const char *name, const yaml_node *node)
{
    if (node->kind == YAML_TEXT) {
        json_object_set_new(flat, name, value_of(node));
        return;
    }
    if (is_plain_list(node)) {
        put_list(flat, name, node);
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        const char *dot = *name != '\0' ? "." : "";
        char *inner = node->kind == YAML_MAP ? sgm__format("%s%s%s", name, dot, node->keys[i]->text)
                                             : sgm__format("%s%s%zu", name, dot, i + 1);
        if (inner != NULL)
            flatten(flat, inner, node->children[i]);
        sgm__free(inner);
    }
}

json_t *flat_configuration(const char *text, size_t length)
{
    yaml_node *tree = yaml_tree_parse("config.yaml", text, length);
    if (tree == NULL)
        return NULL;
    json_t *flat = json_object();
    if (flat == NULL)
        sgm__fail_memory(64);
    else if (tree->kind == YAML_MAP)
        flatten(flat, "", tree);
    yaml_tree_free(tree);
    return flat;
}
