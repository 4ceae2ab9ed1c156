/* The tool that waits until a training has come further. */
#include "mcp/tools.h"

#include <poll.h>

#define BETWEEN_LOOKS 200   /* milliseconds */
#define BETWEEN_REPORTS 1.0 /* seconds */
#define MAXIMUM_FAILURES 10 /* in a row */

static const char *const states[] = {"running", "paused", "ended", NULL};
static const mcp_parameter wait_parameters[] = {
    {"iteration", "until so many iterations are done", MCP_INTEGER, .minimum = 1, .maximum = 9e15},
    {"epoch", "until so many epochs are done", MCP_INTEGER, .minimum = 1, .maximum = 9e15},
    {"state", "until the training is in this state", MCP_TEXT, .choices = states},
    {"seconds", "for so long at most", MCP_NUMBER, .minimum = 0.1, .maximum = 600, .default_json = "60"},
    {0}};

/* Whether the wait is over. An iteration or epoch that has been reached counts, whatever the state is. */
static bool is_reached(const mcp_call *call, const json_t *status)
{
    const char *state = json_string_value(json_object_get(status, "state")),
               *wanted = mcp_text(call, "state");
    static const char *const figures[] = {"iteration", "epoch"};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (mcp_has(call, figures[i]) &&
            json_integer_value(json_object_get(status, figures[i])) >= mcp_integer(call, figures[i]))
            return true;
    return wanted != NULL && state != NULL && strcmp(wanted, state) == 0;
}

static void report(const mcp_call *call, const json_t *status)
{
    const char *figure = mcp_has(call, "epoch") ? "epoch" : "iteration";
    double reached = json_number_value(json_object_get(status, figure));
    double wanted = mcp_has(call, figure) ? (double)mcp_integer(call, figure) : 0;
    char message[80];
    snprintf(message, sizeof message, "%s %.0f", figure, reached);
    mcp_tell_progress(call->server, call->request, reached, wanted, message);
}

/* One wait. */
typedef struct waiting {
    json_t *status; /* what the training said last; NULL: nothing yet */
    bool over;      /* it has ended, or what is waited for is there */
    int failures;   /* questions since then that were not answered */
} waiting;

/* Looks at the training once. One that ends may still take a question, and answer it no more: only a training
 * that lets several go without an answer is a failure. */
static sgm_status look(mcp_call *call, const mcp_run *run, waiting *w)
{
    json_t *answer;
    w->over = !sgm__runs_answers(run->descriptor);
    if (w->over)
        return SGM_OK;
    if (mcp_ask(call, run, json_pack("{s:s}", "command", "status"), &answer) != SGM_OK)
        return ++w->failures < MAXIMUM_FAILURES ? SGM_OK : sgm__last_failure();
    json_decref(w->status);
    w->status = answer;
    w->failures = 0;
    w->over = is_reached(call, answer);
    return SGM_OK;
}

static sgm_status wait_until(mcp_call *call, const mcp_run *run, waiting *w)
{
    double began = sgm__now(), reported = began;
    for (;;) {
        SGM_TRY(look(call, run, w));
        if (w->over || sgm__now() - began >= mcp_number(call, "seconds"))
            return SGM_OK;
        if (mcp_is_withdrawn(call->server, call->request))
            return sgm_fail(SGM_ERROR_INTERRUPTED, "the wait was cancelled");
        if (w->status != NULL && sgm__now() - reported >= BETWEEN_REPORTS) {
            report(call, w->status);
            reported = sgm__now();
        }
        poll(NULL, 0, BETWEEN_LOOKS);
    }
}

static void tell(mcp_call *call, const waiting *w, bool running)
{
    const char *wanted = mcp_text(call, "state");
    bool ended = wanted != NULL && strcmp(wanted, "ended") == 0 && !running;
    json_object_set_new(call->answer, "reached", json_boolean(ended || is_reached(call, w->status)));
    json_object_set_new(call->answer, "ended", json_boolean(!running));
    json_object_del(w->status, "ok");
    json_object_set_new(call->answer, "status", w->status != NULL ? json_incref(w->status) : json_null());
}

static sgm_status wait_for_run(mcp_call *call)
{
    mcp_run run;
    waiting w = {0};
    sgm_status status = mcp_call_run(call, &run);
    if (status == SGM_OK)
        status = wait_until(call, &run, &w);
    if (status == SGM_OK)
        tell(call, &w, sgm__runs_answers(run.descriptor));
    mcp_run_close(&run);
    json_decref(w.status);
    return status;
}

const mcp_tool mcp_wait_tools[] = {
    {"wait_for_run", "Wait for a training",
     "Waits until a training has come to an iteration or epoch, or to a state ('ended': its process has "
     "ended), or so many seconds have passed. 'reached' tells whether it came to that, 'ended' whether "
     "nothing trains there any more. Sends progress. Use it between a change and judging what the change "
     "did.",
     wait_for_run, wait_parameters, .of_run = true,
     .output = "{\"type\": \"object\", \"properties\": {\"reached\": {\"type\": \"boolean\"}, \"ended\": "
               "{\"type\": "
               "\"boolean\"}, \"status\": {\"type\": [\"object\", \"null\"]}}, \"required\": [\"reached\", "
               "\"ended\", \"status\"]}"},
    {0}};
