/* docs/openapi/: the description of the routes for programs, against the library's tables, both ways. */
#include "http_tables.h"

#include "control/command_table.h"
#include "monitors/http/http_internal.h"

/* --- reading --- */

static json_t *read_description(const char *name)
{
    json_error_t error;
    char *path = sgm__format("%s/docs/openapi/%s.json", getenv("SIGMA_SOURCE_DIR"), name);
    json_t *made = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (made == NULL)
        TEST_FAIL("%s, line %d: %s", path, error.line, error.text);
    sgm__free(path);
    return made;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* What "#/components/responses/401" stands for; NULL: nothing. */
static const json_t *follow(const json_t *root, const char *reference)
{
    char part[100];
    CHECK(strncmp(reference, "#/", 2) == 0);
    for (const char *at = reference + 2; root != NULL; at += strlen(part) + 1) {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(at, "/"), at);
        root = json_object_get(root, part);
        if (at[strlen(part)] == '\0')
            break;
    }
    return root;
}

/* All references lead somewhere. */
static void check_references(const json_t *root, const json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        if (strcmp(key, "$ref") == 0 && follow(root, json_string_value(member)) == NULL)
            TEST_FAIL("there is no %s", json_string_value(member));
        check_references(root, member);
    }
    json_array_foreach(value, i, member)
    {
        check_references(root, member);
    }
}

/* --- one route --- */

/* "/api/run/" is described as "/api/run/{name}". */
static const json_t *operation_of(const json_t *root, const sgm__http_route *route)
{
    char path[200], method[8];
    bool below = route->path[strlen(route->path) - 1] == '/';
    snprintf(path, sizeof path, "%s%s", route->path, below ? "{name}" : "");
    snprintf(method, sizeof method, "%s", strcmp(route->method, "POST") == 0 ? "post" : "get");
    return json_object_get(json_object_get(json_object_get(root, "paths"), path), method);
}

static void check_body(const char *name, const sgm__http_route *route, const json_t *operation)
{
    const json_t *body = json_object_get(operation, "requestBody"),
                 *content = json_object_get(body, "content");
    size_t most = route->longest_body > 0 ? route->longest_body : SGM__HTTP_DEFAULT_BODY, count = 0;
    if (strcmp(route->method, "POST") != 0) {
        CHECK(body == NULL);
        return;
    }
    if ((size_t)json_integer_value(json_object_get(operation, "x-longest-body")) != most)
        TEST_FAIL("%s: %s: the longest body has %zu bytes", name, route->path, most);
    const char *types = route->type != NULL ? route->type : "application/json";
    for (const char *at = types; *at != '\0'; count++) {
        char type[100];
        snprintf(type, sizeof type, "%.*s", (int)strcspn(at, " "), at);
        if (json_object_get(json_object_get(content, type), "schema") == NULL)
            TEST_FAIL("%s: %s: a body may be %s", name, route->path, type);
        at += strlen(type) + (at[strlen(type)] == ' ');
    }
    CHECK_INT(json_object_size(content), count);
}

/* Each operation says what every route can answer. */
static void check_answers(const char *name, const sgm__http_route *route, const json_t *operation)
{
    static const char *const all[] = {"200", "401", "403", "405", "429"}, *const of_post[] = {"400", "411",
                                                                                              "413", "415"};
    const json_t *answers = json_object_get(operation, "responses");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (json_object_get(answers, all[i]) == NULL)
            TEST_FAIL("%s: %s %s does not say when it answers %s", name, route->method, route->path, all[i]);
    for (size_t i = 0; strcmp(route->method, "POST") == 0 && i < sizeof of_post / sizeof *of_post; i++)
        if (json_object_get(answers, of_post[i]) == NULL)
            TEST_FAIL("%s: %s does not say when it answers %s", name, route->path, of_post[i]);
}

/* A path's parameter is described. */
static void check_parameters(const char *name, const sgm__http_route *route, const json_t *operation)
{
    bool below = route->path[strlen(route->path) - 1] == '/', found = false;
    json_t *parameter;
    size_t i;
    json_array_foreach(json_object_get(operation, "parameters"), i, parameter)
    {
        CHECK(text_of(parameter, "name")[0] != '\0' && json_object_get(parameter, "schema") != NULL);
        bool in_path = strcmp(text_of(parameter, "in"), "path") == 0;
        CHECK(in_path || strcmp(text_of(parameter, "in"), "query") == 0);
        CHECK(!in_path || json_is_true(json_object_get(parameter, "required")));
        found |= in_path;
    }
    if (found != below)
        TEST_FAIL("%s: %s: its name is%s described", name, route->path, below ? " not" : "");
}

TEST(each_route_is_described)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        table t = table_at(i);
        json_t *root = read_description(t.name);
        for (size_t r = 0; r < t.count; r++) {
            const sgm__http_route *route = &t.routes[r];
            const json_t *operation = operation_of(root, route);
            if (operation == NULL)
                TEST_FAIL("docs/openapi/%s.json has no %s %s", t.name, route->method, route->path);
            if (strcmp(text_of(operation, "x-role"), sgm__role_name(route->role)) != 0)
                TEST_FAIL("%s: %s %s needs the role %s", t.name, route->method, route->path,
                          sgm__role_name(route->role));
            CHECK(text_of(operation, "summary")[0] != '\0');
            check_body(t.name, route, operation);
            check_answers(t.name, route, operation);
            check_parameters(t.name, route, operation);
        }
        json_decref(root);
    }
}

/* --- the other way --- */

static bool is_route(const table *t, const char *path, const char *method)
{
    size_t length = strcspn(path, "{");
    for (size_t i = 0; i < t->count; i++)
        if (strlen(t->routes[i].path) == length && strncmp(t->routes[i].path, path, length) == 0 &&
            strcasecmp(t->routes[i].method, method) == 0)
            return true;
    return strcmp(method, "get") == 0 && (strcmp(path, "/") == 0 || strcmp(path, "/api/events") == 0);
}

TEST(what_is_described_is_there)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        table t = table_at(i);
        json_t *root = read_description(t.name), *item, *operation, *names = json_object();
        const char *path, *method;
        CHECK(strncmp(text_of(root, "openapi"), "3.1.", 4) == 0);
        CHECK(text_of(json_object_get(root, "info"), "title")[0] != '\0');
        CHECK(text_of(json_object_get(root, "info"), "version")[0] != '\0');
        check_references(root, root);
        json_object_foreach(json_object_get(root, "paths"), path, item)
        {
            json_object_foreach(item, method, operation)
            {
                if (!is_route(&t, path, method))
                    TEST_FAIL("docs/openapi/%s.json has %s %s, the server has not", t.name, method, path);
                const char *id = text_of(operation, "operationId");
                CHECK(id[0] != '\0' && json_object_get(names, id) == NULL);
                json_object_set_new(names, id, json_true());
            }
        }
        CHECK_INT(json_object_size(names), t.count + 2);
        json_decref(names);
        json_decref(root);
    }
}

/* --- commands --- */

static void check_field(const sgm__command_row *row, const json_t *schema, const sgm_option *field)
{
    const json_t *described = json_object_get(json_object_get(schema, "properties"), field->name);
    json_t *name;
    size_t i;
    bool required = false;
    if (strcmp(field->name, "file") == 0) { /* not from a page */
        CHECK(described == NULL);
        return;
    }
    if (described == NULL)
        TEST_FAIL("the command %s has no field %s in docs/openapi/monitor.json", row->name, field->name);
    CHECK_STR(text_of(described, "description"), field->doc);
    if (field->minimum != field->maximum) {
        CHECK_NEAR(json_number_value(json_object_get(described, "minimum")), field->minimum, 0);
        CHECK_NEAR(json_number_value(json_object_get(described, "maximum")), field->maximum, 0);
    }
    json_array_foreach(json_object_get(schema, "required"), i, name)
    {
        required |= strcmp(json_string_value(name), field->name) == 0;
    }
    CHECK_INT(required, field->required);
}

TEST(each_command_is_described)
{
    json_t *root = read_description("monitor");
    const json_t *schemas = json_object_get(json_object_get(root, "components"), "schemas");
    const sgm__command_row *row;
    size_t count = 0, own;
    for (; (row = sgm__command_at(count)) != NULL; count++) {
        char name[100];
        snprintf(name, sizeof name, "command_%s", row->name);
        const json_t *schema = json_object_get(schemas, name),
                     *properties = json_object_get(schema, "properties");
        if (schema == NULL)
            TEST_FAIL("docs/openapi/monitor.json has no %s", name);
        CHECK_STR(text_of(schema, "x-role"), sgm__role_name(row->role));
        CHECK_STR(text_of(schema, "x-effect"), row->when != NULL ? row->when : "");
        CHECK_INT(strncasecmp(text_of(schema, "description"), row->doc, strlen(row->doc)), 0);
        own = 2; /* trainer, command */
        for (size_t i = 0; i < row->field_count; i++) {
            check_field(row, schema, &row->fields[i]);
            own += strcmp(row->fields[i].name, "file") != 0 && strcmp(row->fields[i].name, "reason") != 0;
        }
        for (size_t i = 0; i < sgm__request_term_count; i++, own++)
            CHECK(json_object_get(properties, sgm__request_terms[i].name) != NULL);
        CHECK_INT(json_object_size(properties), own);
    }
    const json_t *command = json_object_get(json_object_get(root, "paths"), "/api/command");
    const json_t *body = follow(command, "#/post/requestBody/content");
    const json_t *one = json_object_get(json_object_get(body, "application/json"), "schema");
    CHECK_INT(json_array_size(json_object_get(one, "oneOf")), count);
    json_decref(root);
}
