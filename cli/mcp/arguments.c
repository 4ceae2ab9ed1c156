/* What tools are called with: the schema that clients see, and the check of what they send. */
#include "mcp/tools.h"

#include <math.h>

/* Parameters that tools have in common. */
static const mcp_parameter of_run[] = {
    {"run", "name of the run, as list_runs has it", MCP_TEXT, .required = true}, {0}};
static const mcp_parameter of_only_run[] = {
    {"run", "name of the run, as list_runs has it; may be left out: the one that the server was started for",
     .kind = MCP_TEXT},
    {0}};
static const mcp_parameter of_change[] = {
    {"reason", "why, in at most 500 bytes: the run's journal keeps it beside your name", MCP_TEXT,
     .required = true},
    {"dry_run", "only tell what would change", MCP_FLAG, .default_json = "false"},
    {"timeout_seconds", "how long to wait for an iteration that takes long", MCP_NUMBER, .minimum = 1,
     .maximum = 600, .default_json = "60"},
    {0}};
#define LONGEST_REASON 500 /* bytes */

/* The parameter of an index, in the order of the schema; NULL: there are no more. */
static const mcp_parameter *parameter_at(const mcp_server *server, const mcp_tool *tool, size_t index)
{
    const mcp_parameter *tables[] = {!tool->of_run                 ? NULL
                                     : server->folder.only == NULL ? of_run
                                                                   : of_only_run,
                                     tool->parameters, tool->role > SGM__ROLE_LOOK ? of_change : NULL};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const mcp_parameter *p = tables[i]; p != NULL && p->name != NULL; p++)
            if (index-- == 0)
                return p;
    return NULL;
}

/* --- the schema --- */

static json_t *types_of_value(void)
{
    return json_pack("[s, s, s, s]", "string", "number", "boolean", "array");
}

static json_t *schema_of(const mcp_parameter *p)
{
    static const char *const types[] = {"string", "integer", "number", "boolean",
                                        "array",  "array",   NULL,     "object"};
    json_t *schema = json_object();
    json_object_set_new(schema, "type",
                        p->kind == MCP_VALUE ? types_of_value() : json_string(types[p->kind]));
    if (p->kind == MCP_VALUES)
        json_object_set_new(schema, "additionalProperties", json_pack("{s:o}", "type", types_of_value()));
    json_object_set_new(schema, "description", json_string(p->doc));
    if (p->kind == MCP_TEXTS || p->kind == MCP_INTEGERS)
        json_object_set_new(schema, "items",
                            json_pack("{s:s}", "type", p->kind == MCP_TEXTS ? "string" : "integer"));
    if (p->minimum != p->maximum) {
        json_object_set_new(schema, "minimum", json_real(p->minimum));
        json_object_set_new(schema, "maximum", json_real(p->maximum));
    }
    if (p->choices != NULL) {
        json_t *choices = json_array();
        for (size_t i = 0; p->choices[i] != NULL; i++)
            json_array_append_new(choices, json_string(p->choices[i]));
        json_object_set_new(schema, "enum", choices);
    }
    if (p->default_json != NULL)
        json_object_set_new(schema, "default", json_loads(p->default_json, JSON_DECODE_ANY, NULL));
    return schema;
}

json_t *mcp_schema(const mcp_server *server, const mcp_tool *tool)
{
    json_t *properties = json_object(), *required = json_array();
    const mcp_parameter *p;
    for (size_t i = 0; (p = parameter_at(server, tool, i)) != NULL; i++) {
        json_object_set_new(properties, p->name, schema_of(p));
        if (p->required)
            json_array_append_new(required, json_string(p->name));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", 0);
}

/* --- the check --- */

static bool is_whole(const json_t *value)
{
    double number = json_number_value(value);
    return json_is_integer(value) || (json_is_real(value) && fabs(number) < 9e15 && number == floor(number));
}

static bool is_list_of(const json_t *value, bool (*is)(const json_t *item))
{
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!is(json_array_get(value, i)))
            return false;
    return json_is_array(value);
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_value(const json_t *value)
{
    return json_is_string(value) || json_is_number(value) || json_is_boolean(value) || json_is_array(value);
}

static bool is_values(const json_t *object)
{
    const char *name;
    const json_t *value;
    bool are = json_is_object(object);
    json_object_foreach((json_t *)(uintptr_t)object, name, value) /* the macro changes nothing */
    {
        are &= is_value(value);
    }
    return are;
}

static sgm_status check_kind(const mcp_tool *tool, const mcp_parameter *p, const json_t *value)
{
    static const char *const kinds[] = {"a text",
                                        "a whole number",
                                        "a number",
                                        "true or false",
                                        "a list of texts",
                                        "a list of whole numbers",
                                        "a text, a number, true, false or a list of numbers",
                                        "an object of identifiers and their values"};
    bool right = false;
    switch (p->kind) {
    case MCP_TEXT:
        right = json_is_string(value);
        break;
    case MCP_INTEGER:
        right = is_whole(value);
        break;
    case MCP_NUMBER:
        right = json_is_number(value);
        break;
    case MCP_FLAG:
        right = json_is_boolean(value);
        break;
    case MCP_TEXTS:
        right = is_list_of(value, is_text);
        break;
    case MCP_INTEGERS:
        right = is_list_of(value, is_whole);
        break;
    case MCP_VALUE:
        right = is_value(value);
        break;
    case MCP_VALUES:
        right = is_values(value);
        break;
    }
    return right ? SGM_OK
                 : sgm_fail(SGM_ERROR_TYPE, "%s: '%s' must be %s", tool->name, p->name, kinds[p->kind]);
}

static sgm_status check_choice(const mcp_tool *tool, const mcp_parameter *p, const char *text)
{
    sgm__text there = {0};
    for (size_t i = 0; p->choices[i] != NULL; i++) {
        if (strcmp(text, p->choices[i]) == 0) {
            sgm__text_free(&there);
            return SGM_OK;
        }
        sgm__text_append(&there, "%s%s", i > 0 ? ", " : "", p->choices[i]);
    }
    sgm_status status = sgm_fail(SGM_ERROR_ARGUMENT, "%s: '%s' must be one of %s, not '%.100s'", tool->name,
                                 p->name, there.data, text);
    sgm__text_free(&there);
    return status;
}

static sgm_status check_value(const mcp_tool *tool, const mcp_parameter *p, const json_t *value)
{
    SGM_TRY(check_kind(tool, p, value));
    double number = json_number_value(value);
    if (json_is_number(value) && p->minimum != p->maximum && !(number >= p->minimum && number <= p->maximum))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: '%s' must be from %.10g to %.10g, not %.10g", tool->name,
                        p->name, p->minimum, p->maximum, number);
    return p->choices != NULL ? check_choice(tool, p, json_string_value(value)) : SGM_OK;
}

static bool has_parameter(const mcp_server *server, const mcp_tool *tool, const char *name)
{
    const mcp_parameter *p;
    for (size_t i = 0; (p = parameter_at(server, tool, i)) != NULL; i++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

static sgm_status fail_unknown(const mcp_server *server, const mcp_tool *tool, const char *key)
{
    sgm__text there = {0};
    const mcp_parameter *p;
    for (size_t i = 0; (p = parameter_at(server, tool, i)) != NULL; i++)
        sgm__text_append(&there, "%s%s", i > 0 ? ", " : "; there is ", p->name);
    sgm_status status = sgm_fail(SGM_ERROR_ARGUMENT, "%s has no argument '%.100s'%s", tool->name, key,
                                 there.data != NULL ? there.data : "");
    sgm__text_free(&there);
    return status;
}

/* Puts what came, or the default, into the copy. null counts as left out. */
static sgm_status take(const mcp_tool *tool, const mcp_parameter *p, json_t *value, json_t *arguments)
{
    if (value == NULL || json_is_null(value)) {
        if (p->default_json != NULL)
            json_object_set_new(arguments, p->name, json_loads(p->default_json, JSON_DECODE_ANY, NULL));
        return !p->required ? SGM_OK
                            : sgm_fail(SGM_ERROR_ARGUMENT, "%s needs the argument '%s': %s", tool->name,
                                       p->name, p->doc);
    }
    SGM_TRY(check_value(tool, p, value));
    if (p->kind == MCP_INTEGER)
        return json_object_set_new(arguments, p->name, json_integer((json_int_t)json_number_value(value))) ==
                       0
                   ? SGM_OK
                   : sgm__fail_memory(32);
    return json_object_set_new(arguments, p->name, json_deep_copy(value)) == 0 ? SGM_OK
                                                                               : sgm__fail_memory(32);
}

/* The journal has it on one line. */
static sgm_status check_reason(const mcp_tool *tool, json_t *arguments)
{
    char *line = sgm__strdup(json_string_value(json_object_get(arguments, "reason")));
    if (tool->role == SGM__ROLE_LOOK || line == NULL) {
        sgm__free(line);
        return tool->role == SGM__ROLE_LOOK ? SGM_OK : sgm__last_failure();
    }
    for (char *c = line; *c != '\0'; c++)
        *c = strchr("\t\n\r", *c) != NULL ? ' ' : *c;
    bool says = line[strspn(line, " ")] != '\0' && strlen(line) <= LONGEST_REASON;
    json_object_set_new(arguments, "reason", json_string(line));
    sgm__free(line);
    return says ? SGM_OK
                : sgm_fail(SGM_ERROR_ARGUMENT, "%s: 'reason' must say why, in 1 to %d bytes", tool->name,
                           LONGEST_REASON);
}

sgm_status mcp_arguments_check(const mcp_server *server, const mcp_tool *tool, json_t *given,
                               json_t **arguments)
{
    const mcp_parameter *p;
    const char *key;
    json_t *value;
    *arguments = json_object();
    for (size_t i = 0; (p = parameter_at(server, tool, i)) != NULL; i++)
        SGM_TRY(take(tool, p, json_object_get(given, p->name), *arguments));
    json_object_foreach(given, key, value)
    {
        if (!has_parameter(server, tool, key))
            return fail_unknown(server, tool, key);
    }
    return check_reason(tool, *arguments);
}
