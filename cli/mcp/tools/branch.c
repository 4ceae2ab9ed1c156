/* The tool that begins a branch: a training beside one that runs, from where it is, with a value set in it
 * alone.
 *
 * The training itself has an action for that, which rules name; so a rule that is due once is attached, and
 * the run that comes of it is waited for. */
#include "mcp/tools.h"
#include "text/json_text.h"

#include <poll.h>

#define BETWEEN_LOOKS 100 /* milliseconds */

static const mcp_parameter branch_parameters[] = {
    {"name", "of the branch: the new run is called RUN-NAME", MCP_TEXT, .required = true},
    {"identifier", "of a value that is set in the branch alone, as list_settings has it", .kind = MCP_TEXT},
    {"value", "that it is set to: a number, true, false or a word", .kind = MCP_VALUE},
    {0}};

/* The text of the rule; sgm__free. NULL with an error. */
static char *rule_of(const mcp_call *call)
{
    const char *name = mcp_text(call, "name"), *identifier = mcp_text(call, "identifier");
    const json_t *value = json_object_get(call->arguments, "value");
    if (!sgm__is_plain_name(name)) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "a branch cannot be named '%.100s': expected 1 to %d letters, digits, '-', '_' and '.', "
                 "beginning with a letter, a digit or '_'",
                 name, SGM__PLAIN_NAME_LONGEST);
        return NULL;
    }
    if ((identifier != NULL) != (value != NULL) || json_is_array(value)) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "branch_run takes both 'identifier' and 'value', which is no list, or neither");
        return NULL;
    }
    if (identifier == NULL)
        return sgm__format("after 1 iteration branch \"%s\"", name);
    char *text = json_is_string(value) ? sgm__strdup(json_string_value(value)) : sgm__json_text(value);
    char *rule = text != NULL
                     ? sgm__format("after 1 iteration branch \"%s\" with %s = %s", name, identifier, text)
                     : NULL;
    sgm__free(text);
    return rule;
}

/* The branch of a run is beside it: RUN-NAME, or, of one of several trainers in a folder, FOLDER/NAME. */
typedef struct places {
    char *names[2];
} places;

static sgm_status find_places(const mcp_call *call, places *p)
{
    const sgm__runs *runs = call->server->folder.runs;
    const char *run = mcp_text(call, "run"), *name = mcp_text(call, "name"), *slash = strrchr(run, '/');
    p->names[0] = sgm__format("%s-%s", run, name);
    p->names[1] = slash != NULL ? sgm__format("%.*s/%s", (int)(slash - run), run, name) : NULL;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; p->names[i] != NULL && k < runs->count; k++)
            if (strcmp(runs->runs[k]->name, p->names[i]) == 0)
                return sgm_fail(SGM_ERROR_STATE, "there is a run '%s' already: choose another name",
                                p->names[i]);
    return SGM_OK;
}

/* Whether the branch is there; if so, the answer names it. */
static bool is_begun(mcp_call *call, const places *p)
{
    const sgm__runs *runs = call->server->folder.runs;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; p->names[i] != NULL && k < runs->count; k++)
            if (strcmp(runs->runs[k]->name, p->names[i]) == 0) {
                json_object_set_new(call->answer, "run", json_string(p->names[i]));
                return true;
            }
    return false;
}

/* A training that is paused begins it only when it goes on. */
static sgm_status wait_for_branch(mcp_call *call, const places *p)
{
    double until = sgm__now() + mcp_number(call, "timeout_seconds");
    for (;;) {
        SGM_TRY(mcp_folder_look(&call->server->folder));
        if (is_begun(call, p))
            return SGM_OK;
        if (mcp_is_withdrawn(call->server, call->request) || sgm__now() > until)
            return sgm_fail(
                SGM_ERROR_STATE,
                "the branch has not begun yet: a rule begins it after the next iteration; read_log tells "
                "if it cannot");
        poll(NULL, 0, BETWEEN_LOOKS);
    }
}

static sgm_status branch_run(mcp_call *call)
{
    places p = {{NULL, NULL}};
    if (call->server->folder.only != NULL)
        return sgm_fail(SGM_ERROR_STATE,
                        "a branch is a run beside this one, which is all that this server was "
                        "started for: start it for the folder of runs");
    char *rule = rule_of(call);
    sgm_status status = rule != NULL ? mcp_folder_look(&call->server->folder) : sgm__last_failure();
    if (status == SGM_OK)
        status = find_places(call, &p);
    if (status == SGM_OK)
        status = mcp_change(call, json_pack("{s:s, s:s*}", "command", "attach", "hook", rule));
    bool waits = json_object_get(call->answer, "pending") != NULL; /* for an administrator's approval */
    if (status == SGM_OK && !waits && !mcp_flag(call, "dry_run"))
        status = wait_for_branch(call, &p);
    sgm__free(rule);
    sgm__free(p.names[0]);
    sgm__free(p.names[1]);
    return status;
}

const mcp_tool mcp_branch_tools[] = {{"branch_run", "Begin a branch",
                                      "Begins a training beside one that runs, which goes on from where that "
                                      "is, to the same end, with a value set in it "
                                      "alone; the other one stays as it is. So two ways can be compared "
                                      "(compare_runs, get_curves). Answers with the name "
                                      "of the new run.",
                                      branch_run, branch_parameters, SGM__ROLE_STEER, .of_run = true},
                                     {0}};
