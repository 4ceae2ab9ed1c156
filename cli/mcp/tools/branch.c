/* The tool that begins a branch: a training beside one that runs, from where it is or from a checkpoint, with
 * some values set in it alone. The training begins it by its command `branch`; here the run that comes of it
 * is waited for. */
#include "mcp/tools.h"

#include <poll.h>

#define BETWEEN_LOOKS 100 /* milliseconds */

static const mcp_parameter branch_parameters[] = {
    {"name", "of the branch: the new run is called RUN-NAME", MCP_TEXT, .required = true},
    {"set",
     "values that are set in the branch alone, by their identifiers, as list_settings has them: "
     "{\"optimiser.learning_rate\": 0.001, \"optimiser.beta1\": 0.8}",
     .kind = MCP_VALUES},
    {"checkpoint", "of the run, that the branch begins with; left out: where the run is now",
     .kind = MCP_TEXT},
    {"paused", "it waits for resume_run or step_run", MCP_FLAG, .default_json = "false"},
    {0}};

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

/* Whether a run is there and can be asked, or has ended already. */
static bool is_reached(mcp_call *call, const char *name)
{
    mcp_run run = {.descriptor = -1};
    bool is = mcp_run_again(&call->server->folder, name, &run) == SGM_OK &&
              (sgm__runs_answers(run.descriptor) || strcmp(mcp_run_state(run.run), "finished") == 0);
    mcp_run_close(&run);
    sgm_clear_error();
    return is;
}

/* Whether the branch is there; if so, the answer names it. */
static bool is_begun(mcp_call *call, const places *p)
{
    for (size_t i = 0; i < 2; i++)
        if (p->names[i] != NULL && is_reached(call, p->names[i]))
            return json_object_set_new(call->answer, "run", json_string(p->names[i])) == 0;
    return false;
}

/* The branch has begun; its folder is there soon. */
static sgm_status wait_for_branch(mcp_call *call, const places *p)
{
    double until = sgm__now() + mcp_number(call, "timeout_seconds");
    for (;;) {
        SGM_TRY(mcp_folder_look(&call->server->folder));
        if (is_begun(call, p))
            return SGM_OK;
        if (mcp_is_withdrawn(call->server, call->request) || sgm__now() > until)
            return sgm_fail(SGM_ERROR_STATE,
                            "the branch has begun, but its run is not there yet: list_runs tells when it is");
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
    sgm_status status = mcp_folder_look(&call->server->folder);
    if (status == SGM_OK)
        status = find_places(call, &p);
    if (status == SGM_OK)
        status = mcp_change(call, json_pack("{s:s, s:s, s:s*, s:b, s:O*}", "command", "branch", "name",
                                            mcp_text(call, "name"), "checkpoint",
                                            mcp_text(call, "checkpoint"), "paused", mcp_flag(call, "paused"),
                                            "set", json_object_get(call->arguments, "set")));
    bool waits = json_object_get(call->answer, "pending") != NULL; /* for an administrator's approval */
    if (status == SGM_OK && !waits && !mcp_flag(call, "dry_run"))
        status = wait_for_branch(call, &p);
    sgm__free(p.names[0]);
    sgm__free(p.names[1]);
    return status;
}

const mcp_tool mcp_branch_tools[] = {{"branch_run", "Begin a branch",
                                      "Begins a training beside one that runs, which goes on from where that "
                                      "is, or from a checkpoint, to the same end, with some values set in it "
                                      "alone; the other one stays as it is. So two ways can be compared "
                                      "(compare_runs, get_curves). Answers with the name "
                                      "of the new run.",
                                      branch_run, branch_parameters, SGM__ROLE_STEER, .of_run = true},
                                     {0}};
