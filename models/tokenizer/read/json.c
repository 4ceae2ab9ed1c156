#include "tokenizer/read/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *load(const char *path, size_t flags)
{
    json_error_t problem;
    sgm__buffer text = {0};
    json_t *root = NULL;

    if (sgm__read_file(path, &text) == SGM_OK) {
        root = json_loadb(text.data, text.size, JSON_ALLOW_NUL | flags, &problem);
        if (!root)
            sgm_fail(SGM_ERROR_FORMAT, "%s: line %d, column %d: no JSON: %s", path, problem.line,
                     problem.column, problem.text);
    }
    sgm__buffer_free(&text);
    if (!root || json_is_object(root))
        return root;
    sgm_fail(SGM_ERROR_FORMAT, "%s: expected an object", path);
    json_decref(root);
    return NULL;
}

json_t *sgm__json_load(const char *path)
{
    return load(path, 0);
}

json_t *sgm__json_load_settings(const char *path)
{
    return load(path, JSON_DECODE_INT_AS_REAL);
}

sgm__node sgm__node_get(const sgm__node *parent, const char *key)
{
    sgm__node node = {json_object_get(parent->value, key), parent->file, ""};
    if (json_is_null(node.value))
        node.value = NULL;
    snprintf(node.place, sizeof node.place, "%.90s%s%.28s", parent->place, *parent->place ? "." : "", key);
    return node;
}

sgm__node sgm__node_at(const sgm__node *parent, size_t index)
{
    sgm__node node = {json_array_get(parent->value, index), parent->file, ""};
    snprintf(node.place, sizeof node.place, "%.90s[%zu]", parent->place, index);
    return node;
}

sgm_status sgm__node_fail(const sgm__node *node, sgm_status status, const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sgm_fail(status, "%s: %s: %s", node->file, node->place, message);
}

sgm_status sgm__node_within(const sgm__node *node, sgm_status status)
{
    char message[400];
    if (status == SGM_OK)
        return SGM_OK;
    snprintf(message, sizeof message, "%s", sgm_last_error());
    return sgm__node_fail(node, status, "%s", message);
}

sgm_status sgm__node_bool(const sgm__node *parent, const char *key, bool missing, bool *out)
{
    const sgm__node node = sgm__node_get(parent, key);
    if (node.value && !json_is_boolean(node.value))
        return sgm__node_fail(&node, SGM_ERROR_TYPE, "expected true or false");
    *out = node.value ? json_is_true(node.value) : missing;
    return SGM_OK;
}

sgm_status sgm__node_count(const sgm__node *parent, const char *key, uint64_t most, uint64_t *out)
{
    const sgm__node node = sgm__node_get(parent, key);
    if (!json_is_integer(node.value) || json_integer_value(node.value) < 0 ||
        (uint64_t)json_integer_value(node.value) > most)
        return sgm__node_fail(&node, SGM_ERROR_TYPE, "expected a whole number from 0 to %llu",
                              (unsigned long long)most);
    *out = (uint64_t)json_integer_value(node.value);
    return SGM_OK;
}

sgm_status sgm__node_text(const sgm__node *parent, const char *key, const char **out, size_t *size)
{
    const sgm__node node = sgm__node_get(parent, key);
    *out = "";
    *size = 0;
    if (!json_is_string(node.value))
        return sgm__node_fail(&node, SGM_ERROR_TYPE, "expected a text");
    *out = json_string_value(node.value);
    *size = json_string_length(node.value);
    return SGM_OK;
}

sgm_status sgm__node_copy(const sgm__node *parent, const char *key, char **out, size_t *size)
{
    const char *text;
    *out = NULL;
    *size = 0;
    if (!sgm__node_get(parent, key).value)
        return SGM_OK;
    SGM__PASS(sgm__node_text(parent, key, &text, size));
    return (*out = sgm__copy_text(text, *size)) ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__node_array(const sgm__node *parent, const char *key, sgm__node *out)
{
    *out = sgm__node_get(parent, key);
    return json_is_array(out->value) ? SGM_OK : sgm__node_fail(out, SGM_ERROR_TYPE, "expected an array");
}

sgm_status sgm__read_pattern(const sgm__node *parent, sgm__pattern *pattern)
{
    const sgm__node node = sgm__node_get(parent, "pattern");
    const char *text;
    size_t size;

    if (json_is_object(node.value) && sgm__node_get(&node, "String").value) {
        SGM__PASS(sgm__node_text(&node, "String", &text, &size));
        return sgm__pattern_open_string(pattern, text, size);
    }
    if (!json_is_object(node.value) || !sgm__node_get(&node, "Regex").value)
        return sgm__node_fail(&node, SGM_ERROR_TYPE, "expected {\"String\": ...} or {\"Regex\": ...}");
    SGM__PASS(sgm__node_text(&node, "Regex", &text, &size));
    return sgm__node_within(&node, sgm__pattern_open_regex(pattern, text, size));
}
