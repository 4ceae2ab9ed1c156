/* Tools that read: which runs there are, how one does, its log, what was done to it. */
#include "journal/run_lines.h"
#include "mcp/tools.h"
#include "mcp/tools/summary.h"

#include <sigma/replay.h>

/* --- list_runs --- */

static const char *const states[] = {"running", "finished", "stopped", "failed", NULL};
static const mcp_parameter list_parameters[] = {
    {"pattern", "only runs whose name matches, '*' for any characters", MCP_TEXT, .default_json = "\"*\""},
    {"state", "only runs in this state", MCP_TEXT, .choices = states},
    {"metrics", "newest values to show of each run, by name or pattern", MCP_TEXTS,
     .default_json = "[\"loss\", \"accuracy\", \"validation.loss\", \"validation.accuracy\"]"},
    {"archived", "also runs that a person has put into the archive", MCP_FLAG, .default_json = "false"},
    {"first", "number of the first run to list, from 0", MCP_INTEGER, .minimum = 0, .maximum = 1e6,
     .default_json = "0"},
    {"limit", "how many at most", MCP_INTEGER, .minimum = 1, .maximum = 500, .default_json = "50"},
    {0}};

static bool is_listed(const mcp_call *call, const sgm__run *run)
{
    const char *state = mcp_text(call, "state");
    return mcp_matches(run->name, mcp_text(call, "pattern")) &&
           (state == NULL || strcmp(state, mcp_run_state(run)) == 0) &&
           (mcp_flag(call, "archived") || !json_is_true(json_object_get(run->notes, "archived")));
}

static sgm_status list_runs(mcp_call *call)
{
    sgm__runs *runs = call->server->folder.runs;
    int64_t first = mcp_integer(call, "first"), limit = mcp_integer(call, "limit"), count = 0;
    json_t *list = json_array();
    json_object_set_new(call->answer, "folder", mcp_json_text(runs->path));
    json_object_set_new(call->answer, "runs", list);
    SGM_TRY(mcp_folder_look(&call->server->folder));
    for (size_t i = 0; i < runs->count; i++) {
        const sgm__run *run = runs->runs[i];
        if (!is_listed(call, run))
            continue;
        if (count >= first && count < first + limit) {
            json_t *item = mcp_summary(run);
            json_object_set_new(item, "metrics", mcp_numbers(run, MCP_NEWEST, mcp_list(call, "metrics")));
            json_array_append_new(list, item);
        }
        count++;
    }
    json_object_set_new(call->answer, "total", json_integer((json_int_t)count));
    return SGM_OK;
}

/* --- get_run --- */

static const char run_output[] =
    "{\"type\": \"object\", \"properties\": {"
    "\"run\": {\"type\": \"string\"},"
    "\"state\": {\"type\": \"string\", \"enum\": [\"running\", \"finished\", \"stopped\", \"failed\"]},"
    "\"reason\": {\"type\": \"string\", \"description\": \"why it was stopped or failed\"},"
    "\"started\": {\"type\": [\"string\", \"null\"]},"
    "\"epoch\": {\"type\": \"number\"}, \"iteration\": {\"type\": \"number\"}, \"seconds\": {\"type\": "
    "\"number\"},"
    "\"newest\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"number\"}},"
    "\"minimum\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"number\"}},"
    "\"maximum\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"number\"}},"
    "\"configuration\": {\"type\": \"object\"},"
    "\"now\": {\"type\": \"object\", \"description\": \"what the training itself says, if it runs\"},"
    "\"now_error\": {\"type\": \"string\"},"
    "\"interventions\": {\"type\": \"integer\"}"
    "}, \"required\": [\"run\", \"state\", \"newest\", \"configuration\"]}";

/* What the process says that trains; that it cannot say it is no failure of the tool. */
static void add_now(mcp_call *call, const mcp_run *run)
{
    json_t *now = NULL;
    if (run->run->state != SGM__RUN_RUNNING)
        return;
    if (mcp_ask(call, run, json_pack("{s:s}", "command", "status"), &now) == SGM_OK) {
        json_object_del(now, "ok");
        json_object_set_new(call->answer, "now", now);
    } else {
        json_object_set_new(call->answer, "now_error", mcp_json_text(sgm_last_error()));
        sgm_clear_error();
    }
}

static sgm_status tell_run(mcp_call *call, const mcp_run *run)
{
    const sgm__run *r = run->run;
    sgm_intervention *list;
    size_t count;
    json_t *summary = mcp_summary(r);
    json_object_update(call->answer, summary);
    json_decref(summary);
    json_object_set_new(call->answer, "newest", mcp_numbers(r, MCP_NEWEST, NULL));
    json_object_set_new(call->answer, "minimum", mcp_numbers(r, MCP_MINIMUM, NULL));
    json_object_set_new(call->answer, "maximum", mcp_numbers(r, MCP_MAXIMUM, NULL));
    json_object_set_new(call->answer, "configuration", sgm__run_configuration(r));
    add_now(call, run);
    if (mcp_run_check_file(run, SGM__JOURNAL_FILE) == SGM_OK &&
        sgm_run_interventions(run->path, &list, &count) == SGM_OK) {
        json_object_set_new(call->answer, "interventions", json_integer((json_int_t)count));
        sgm_interventions_free(list, count);
    }
    sgm_clear_error(); /* a run of other programs has no journal */
    return SGM_OK;
}

/* Calls `tell` with the run that the call is about. */
static sgm_status with_run(mcp_call *call, sgm_status (*tell)(mcp_call *call, const mcp_run *run))
{
    mcp_run run;
    sgm_status status = mcp_call_run(call, &run);
    if (status == SGM_OK)
        status = tell(call, &run);
    mcp_run_close(&run);
    return status;
}

static sgm_status get_run(mcp_call *call)
{
    return with_run(call, tell_run);
}

/* --- list_interventions --- */

static const mcp_parameter intervention_parameters[] = {{"limit", "how many at most, the newest", MCP_INTEGER,
                                                         .minimum = 1, .maximum = 1000,
                                                         .default_json = "100"},
                                                        {0}};

static sgm_status tell_interventions(mcp_call *call, const mcp_run *run)
{
    sgm_intervention *list;
    size_t count, limit = (size_t)mcp_integer(call, "limit");
    SGM_TRY(mcp_run_check_file(run, SGM__JOURNAL_FILE));
    SGM_TRY(sgm_run_interventions(run->path, &list, &count));
    json_t *items = json_array();
    for (size_t i = count > limit ? count - limit : 0; i < count; i++) {
        json_t *item = json_pack("{s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:b}", "number",
                                 (json_int_t)list[i].number, "branch", (json_int_t)list[i].branch, "epoch",
                                 (json_int_t)list[i].epoch, "iteration", (json_int_t)list[i].iteration,
                                 "event", list[i].event, "who", mcp_json_text(list[i].who), "text",
                                 mcp_json_text(list[i].text), "removable", list[i].removable);
        if (list[i].reason[0] != '\0')
            json_object_set_new(item, "reason", mcp_json_text(list[i].reason));
        json_array_append_new(items, item);
    }
    sgm_interventions_free(list, count);
    json_object_set_new(call->answer, "interventions", items);
    json_object_set_new(call->answer, "total", json_integer((json_int_t)count));
    return SGM_OK;
}

static sgm_status list_interventions(mcp_call *call)
{
    return with_run(call, tell_interventions);
}

/* --- read_log --- */

static const mcp_parameter log_parameters[] = {
    {"lines", "how many, from the end", MCP_INTEGER, .minimum = 1, .maximum = 1000, .default_json = "50"},
    {"containing", "only lines with this text, such as 'warning'", .kind = MCP_TEXT},
    {0}};

static sgm_status tell_log(mcp_call *call, const mcp_run *run)
{
    json_t *lines, *chosen = json_array(), *line;
    const char *containing = mcp_text(call, "containing");
    size_t i, wanted = (size_t)mcp_integer(call, "lines");
    bool cut;
    json_object_set_new(call->answer, "lines", chosen);
    SGM_TRY(sgm__run_log(run->descriptor, &lines, &cut));
    json_array_foreach(lines, i, line)
    {
        if (containing == NULL || strstr(json_string_value(line), containing) != NULL)
            json_array_append(chosen, line);
        if (json_array_size(chosen) > wanted) {
            json_array_remove(chosen, 0);
            cut = true;
        }
    }
    json_decref(lines);
    json_object_set_new(call->answer, "older", json_boolean(cut));
    return SGM_OK;
}

static sgm_status read_log(mcp_call *call)
{
    return with_run(call, tell_log);
}

const mcp_tool mcp_look_tools[] = {
    {"list_runs", "List runs",
     "Lists the trainings (runs) of the folder: name, state (running, finished, stopped, failed), when they "
     "started, how far they are, and the newest values of some metrics. Begin here: all other tools take the "
     "names that this one gives.",
     list_runs, list_parameters,
     .output =
         "{\"type\": \"object\", \"properties\": {\"folder\": {\"type\": \"string\"}, \"total\": "
         "{\"type\": \"integer\"}, \"runs\": {\"type\": \"array\", \"items\": {\"type\": \"object\", "
         "\"properties\": {\"run\": {\"type\": \"string\"}, \"state\": {\"type\": \"string\"}, \"metrics\": "
         "{\"type\": \"object\"}}, \"required\": [\"run\", \"state\", \"metrics\"]}}}, \"required\": "
         "[\"folder\", \"runs\", \"total\"]}"},
    {"get_run", "Look at a run",
     "Tells all about one run: its state, its configuration (network, data, optimiser, as dotted keys), of "
     "each metric the newest, lowest and highest value, and for one that trains now what the training itself "
     "says: epoch, iteration, loss, learning rate, whether it is paused.",
     get_run, NULL, .of_run = true, .output = run_output},
    {"list_interventions", "What was done to a run",
     "Lists what was done to a run from outside while it trained, oldest first: values that were set, rules "
     "that came or went, restores, resets, with the iteration, who did it and why. The numbers are those "
     "that replay takes as 'without'.",
     list_interventions, intervention_parameters, .of_run = true},
    {"read_log", "Read a run's log", "The newest lines of a run's log: warnings, errors, what was done.",
     read_log, log_parameters, .of_run = true},
    {0}};
