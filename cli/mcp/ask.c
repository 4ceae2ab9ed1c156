/* Questions to trainings, over the control sockets in their folders. */
#include "mcp/tools.h"
#include "runs/ctl_ask.h"
#include "text/json_text.h"

/* Seconds that a question which changes nothing waits for an iteration that takes long. */
#define DEFAULT_SECONDS 20

static bool is_withdrawn(void *user)
{
    const mcp_call *call = user;
    return mcp_is_withdrawn(call->server, call->request);
}

/* Sends the line and reads what came back. */
static sgm_status ask(const mcp_call *call, const mcp_run *run, const char *text, double seconds,
                      json_t **answer)
{
    sgm__text line = {0};
    const ctl_question question = {.folder = run->path,
                                   .reach = run->reach,
                                   .text = text,
                                   .seconds = seconds,
                                   .limit = "timeout_seconds",
                                   .is_withdrawn = is_withdrawn,
                                   .user = (void *)(uintptr_t)call};
    sgm_status status = ctl_ask(&question, &line);
    if (status == SGM_OK)
        *answer = json_loadb(line.data != NULL ? line.data : "", line.length, 0, NULL);
    sgm__text_free(&line);
    return status;
}

/* An answer that says what went wrong is an error of ours. */
static sgm_status check_answer(const json_t *answer)
{
    const char *error = json_string_value(json_object_get(answer, "error"));
    if (json_is_true(json_object_get(answer, "ok")))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_STATE, "%s", error != NULL ? error : "the answer is not what a run answers");
}

sgm_status mcp_ask(const mcp_call *call, const mcp_run *run, json_t *question, json_t **answer)
{
    double seconds = mcp_has(call, "timeout_seconds") ? mcp_number(call, "timeout_seconds") : DEFAULT_SECONDS;
    *answer = NULL;
    if (!sgm__runs_answers(run->descriptor)) {
        json_decref(question);
        return sgm_fail(
            SGM_ERROR_STATE,
            "run '%s' does not train now (it is %s), so that nothing of it can be asked or changed; "
            "get_run, get_curves, list_interventions and read_log tell what it left",
            run->run->name, mcp_run_state(run->run));
    }
    json_object_set_new(question, "within", json_real(seconds));
    char *text = sgm__json_text(question);
    json_decref(question);
    sgm_status status = text != NULL ? ask(call, run, text, seconds, answer) : sgm__last_failure();
    sgm__free(text);
    if (status == SGM_OK)
        status = check_answer(*answer);
    if (status == SGM_OK)
        return SGM_OK;
    json_decref(*answer);
    *answer = NULL;
    return sgm__fail_within("run '%s'", run->run->name);
}

/* The members that every command which changes something may have. */
static void say_who(const mcp_call *call, json_t *question)
{
    json_object_set_new(question, "by", mcp_json_text(call->request->by));
    json_object_set_new(question, "reason", json_string(mcp_text(call, "reason")));
    json_object_set_new(question, "role", json_string(sgm__role_name(call->server->role)));
    if (mcp_flag(call, "dry_run"))
        json_object_set_new(question, "dry_run", json_true());
}

sgm_status mcp_ask_run(const mcp_call *call, json_t *question, json_t **answer)
{
    mcp_run run;
    *answer = NULL;
    sgm_status status = mcp_call_run(call, &run);
    if (status == SGM_OK)
        status = mcp_ask(call, &run, question, answer);
    else
        json_decref(question);
    mcp_run_close(&run);
    return status;
}

sgm_status mcp_change(const mcp_call *call, json_t *question)
{
    json_t *answer;
    say_who(call, question);
    SGM_TRY(mcp_ask_run(call, question, &answer));
    json_object_update(call->answer, answer);
    json_decref(answer);
    return SGM_OK;
}
