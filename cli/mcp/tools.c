/* The list of tools, and calling one. */
#include "mcp/tools.h"
#include "text/json_text.h"

static const mcp_tool *const groups[] = {mcp_look_tools,   mcp_curve_tools, mcp_compare_tools,
                                         mcp_live_tools,   mcp_wait_tools,  mcp_steer_tools,
                                         mcp_branch_tools, mcp_replay_tools};
#define GROUP_COUNT (sizeof groups / sizeof *groups)

/* --- the list --- */

static json_t *describe(const mcp_server *server, const mcp_tool *tool)
{
    json_t *item = json_pack("{s:s, s:s, s:s, s:o}", "name", tool->name, "title", tool->title, "description",
                             tool->description, "inputSchema", mcp_schema(server, tool));
    bool reads = tool->role == SGM__ROLE_LOOK;
    if (tool->output != NULL)
        json_object_set_new(item, "outputSchema", json_loads(tool->output, 0, NULL));
    json_object_set_new(item, "annotations",
                        json_pack("{s:s, s:b, s:b, s:b, s:b}", "title", tool->title, "readOnlyHint", reads,
                                  "destructiveHint", tool->destructive, "idempotentHint",
                                  reads || tool->idempotent, "openWorldHint", 0));
    return item;
}

/* Those of the server's role, always in the same order. There are few enough for one page. */
json_t *mcp_tools_list(mcp_server *server, mcp_request *request, mcp_failure *failure)
{
    if (json_object_get(request->params, "cursor") != NULL)
        return mcp_refuse(failure, RPC_INVALID_PARAMETERS, "tools/list: there is one page, and no 'cursor'");
    json_t *list = json_array();
    for (size_t i = 0; i < GROUP_COUNT; i++)
        for (const mcp_tool *tool = groups[i]; tool->name != NULL; tool++)
            if (tool->role <= server->role)
                json_array_append_new(list, describe(server, tool));
    return json_pack("{s:o}", "tools", list);
}

/* --- a call --- */

#define MAXIMUM_TOOLS 64

/* The tool of a name; NULL: *near is the nearest name, or NULL. */
static const mcp_tool *find(const char *name, const char **near)
{
    const char *names[MAXIMUM_TOOLS];
    size_t count = 0;
    for (size_t i = 0; i < GROUP_COUNT; i++)
        for (const mcp_tool *tool = groups[i]; tool->name != NULL; tool++) {
            if (strcmp(tool->name, name) == 0)
                return tool;
            if (count < MAXIMUM_TOOLS)
                names[count++] = tool->name;
        }
    *near = sgm__nearest(name, names, count);
    return NULL;
}

static json_t *text_content(json_t *text)
{
    return json_pack("[{s:s, s:o}]", "type", "text", "text", text);
}

/* An error that a model is to read. */
static json_t *error_result(void)
{
    return json_pack("{s:o, s:b}", "content", text_content(mcp_json_text(sgm_last_error())), "isError", 1);
}

/* The answer both as an object and as its text, for clients that know only texts. */
static json_t *result_of(json_t *answer)
{
    char *text = sgm__json_text(answer);
    json_t *result = json_pack("{s:o, s:O, s:b}", "content", text_content(mcp_json_text(text)),
                               "structuredContent", answer, "isError", 0);
    sgm__free(text);
    return result;
}

static sgm_status check_role(const mcp_call *call)
{
    if (call->tool->role <= call->server->role)
        return SGM_OK;
    const char *needed = sgm__role_name(call->tool->role);
    return sgm_fail(SGM_ERROR_STATE,
                    "%s needs the role '%s', and this server has the role '%s'. Whoever starts it gives it "
                    "another one by 'sigma mcp FOLDER --role %s'",
                    call->tool->name, needed, sgm__role_name(call->server->role), needed);
}

static sgm_status act(mcp_call *call, json_t *given)
{
    SGM_TRY(check_role(call));
    SGM_TRY(mcp_arguments_check(call->server, call->tool, given, &call->arguments));
    if (call->tool->role > SGM__ROLE_LOOK)
        sgm__log(SGM_LOG_INFO, "mcp", "%s: %s %s%s: %s", call->request->by, call->tool->name,
                 mcp_text(call, "run") != NULL ? mcp_text(call, "run") : "",
                 mcp_flag(call, "dry_run") ? ", to be told of only" : "", mcp_text(call, "reason"));
    return call->tool->act(call);
}

json_t *mcp_tools_call(mcp_server *server, mcp_request *request, mcp_failure *failure)
{
    const char *name = json_string_value(json_object_get(request->params, "name")), *near = NULL;
    json_t *given = json_object_get(request->params, "arguments");
    const mcp_tool *tool = name != NULL ? find(name, &near) : NULL;
    if (name == NULL)
        return mcp_refuse(failure, RPC_INVALID_PARAMETERS, "tools/call needs the text 'name'");
    if (tool == NULL)
        return mcp_refuse(failure, RPC_INVALID_PARAMETERS, "there is no tool '%.100s'%s%s%s", name,
                          near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                          near != NULL ? "'?" : "");
    if (given != NULL && !json_is_object(given))
        return mcp_refuse(failure, RPC_INVALID_PARAMETERS, "%s: 'arguments' must be an object", name);
    mcp_call call = {.server = server, .request = request, .tool = tool, .answer = json_object()};
    json_t *result = act(&call, given) == SGM_OK ? result_of(call.answer) : error_result();
    json_decref(call.arguments);
    json_decref(call.answer);
    return result;
}

/* --- what tools read their arguments with --- */

const char *mcp_text(const mcp_call *call, const char *name)
{
    return json_string_value(json_object_get(call->arguments, name));
}

int64_t mcp_integer(const mcp_call *call, const char *name)
{
    return json_integer_value(json_object_get(call->arguments, name));
}

double mcp_number(const mcp_call *call, const char *name)
{
    return json_number_value(json_object_get(call->arguments, name));
}

bool mcp_flag(const mcp_call *call, const char *name)
{
    return json_is_true(json_object_get(call->arguments, name));
}

const json_t *mcp_list(const mcp_call *call, const char *name)
{
    return json_object_get(call->arguments, name);
}

bool mcp_has(const mcp_call *call, const char *name)
{
    return json_object_get(call->arguments, name) != NULL;
}

sgm_status mcp_call_run(const mcp_call *call, mcp_run *run)
{
    return mcp_run_open(&call->server->folder, mcp_text(call, "run"), run);
}

/* --- small things --- */

json_t *mcp_json_text(const char *text)
{
    json_t *value = json_string(text != NULL ? text : "");
    char *copy = value == NULL ? sgm__strdup(text) : NULL;
    if (copy != NULL)
        value = json_string(sgm__make_printable(copy));
    sgm__free(copy);
    return value != NULL ? value : json_string("");
}
