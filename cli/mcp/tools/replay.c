/* Tools about replays: a run once more, with what was done to it, as a process that the server starts. */
#include "mcp/tools.h"
#include "monitors/runs/jobs.h"

#include <poll.h>

#define BETWEEN_LOOKS 100 /* milliseconds */
#define CHECK_SECONDS 120 /* for which a check may last */

/* Numbers of a list as "12,15"; sgm__free. NULL: there are none. */
static char *joined(const json_t *numbers)
{
    sgm__text text = {0};
    for (size_t i = 0; i < json_array_size(numbers); i++)
        sgm__text_append(&text, "%s%.0f", i > 0 ? "," : "", json_number_value(json_array_get(numbers, i)));
    return sgm__text_take(&text);
}

static const char *const command[] = {"/proc/self/exe", "replay", NULL};

/* Begins what the call asks for; `into` NULL: a check. */
static sgm_status start(mcp_call *call, const mcp_run *run, const char *name, const char *into,
                        sgm__job **job)
{
    bool some = json_array_size(mcp_list(call, "without")) > 0;
    char *without = some ? joined(mcp_list(call, "without")) : NULL;
    sgm__job_order order = {.command = command,
                            .run = run->run->name,
                            .name = name,
                            .folder = run->path,
                            .into = into,
                            .without = without,
                            .until = mcp_has(call, "until") ? mcp_integer(call, "until") : 0,
                            .inexact = mcp_flag(call, "inexact"),
                            .check = into == NULL};
    sgm_status status = !some || without != NULL
                            ? sgm__job_start(&call->server->folder.runs->jobs, &order, job)
                            : SGM_ERROR_MEMORY;
    sgm__free(without);
    return status;
}

/* What became of a replay, into the call's answer. */
static void tell_job(mcp_call *call, sgm__job *job)
{
    bool runs = sgm__job_runs(job);
    char *output = sgm__job_output(job);
    json_object_set_new(call->answer, "run", json_string(job->name));
    json_object_set_new(call->answer, "state",
                        json_string(runs                     ? "running"
                                    : job->process.code == 0 ? "done"
                                                             : "failed"));
    if (!runs)
        json_object_set_new(call->answer, "exit_code", json_integer(job->process.code));
    json_object_set_new(call->answer, "output", mcp_json_text(output));
    json_object_set_new(call->answer, "seconds", json_real(sgm__now() - job->began));
    sgm__free(output);
}

/* Waits for the end of a job, tells its progress, and gives up after so many seconds, which is no failure. */
static sgm_status wait_for(mcp_call *call, sgm__job *job, double seconds)
{
    double began = sgm__now(), told = began;
    while (sgm__job_runs(job) && sgm__now() - began < seconds) {
        if (mcp_is_withdrawn(call->server, call->request))
            return sgm_fail(SGM_ERROR_INTERRUPTED, "the wait was cancelled");
        if (sgm__now() - told >= 1) {
            told = sgm__now();
            mcp_tell_progress(call->server, call->request, told - began, 0, job->name);
        }
        poll(NULL, 0, BETWEEN_LOOKS);
    }
    return SGM_OK;
}

/* --- replay_run --- */

static const mcp_parameter replay_parameters[] = {
    {"into", "name of the new run; left out: RUN-replay-N", .kind = MCP_TEXT},
    {"until", "end after so many iterations", MCP_INTEGER, .minimum = 1, .maximum = 9e15},
    {"without", "leave out what has these numbers in list_interventions: what would have been?",
     .kind = MCP_INTEGERS},
    {"inexact", "also if the result cannot be the same to the bit", MCP_FLAG, .default_json = "false"},
    {0}};

/* A check is a process, too; it is waited for, and what it says is the answer. */
static sgm_status check(mcp_call *call, const mcp_run *run)
{
    sgm__job *job;
    SGM_TRY(start(call, run, "check", NULL, &job));
    sgm_status status = wait_for(call, job, CHECK_SECONDS);
    sgm__job_stop(job);
    SGM_TRY(status);
    char *output = sgm__job_output(job);
    json_object_set_new(call->answer, "possible", json_boolean(job->process.code == 0));
    json_object_set_new(call->answer, "output", mcp_json_text(output));
    sgm__free(output);
    return SGM_OK;
}

static sgm_status begin(mcp_call *call, const mcp_run *run)
{
    char *path, *name;
    sgm__job *job;
    SGM_TRY(mcp_folder_place(&call->server->folder, mcp_text(call, "into"), run->run->name, &path, &name));
    sgm_status status = start(call, run, name, path, &job);
    if (status == SGM_OK)
        tell_job(call, job);
    sgm__free(path);
    sgm__free(name);
    return status;
}

static sgm_status replay_run(mcp_call *call)
{
    mcp_run run;
    sgm_status status = mcp_call_run(call, &run);
    if (status == SGM_OK)
        status = mcp_run_check_file(&run, "config.yaml");
    if (status == SGM_OK)
        status = mcp_run_check_file(&run, "journal.jsonl");
    if (status == SGM_OK)
        status = mcp_flag(call, "dry_run") ? check(call, &run) : begin(call, &run);
    mcp_run_close(&run);
    return status;
}

/* --- replay_result, stop_replay --- */

static const mcp_parameter result_parameters[] = {
    {"run", "name of the new run, as replay_run gave it", MCP_TEXT, .required = true},
    {"wait_seconds", "wait for its end for so long at most", MCP_NUMBER, .minimum = 0, .maximum = 600,
     .default_json = "0"},
    {0}};

static sgm_status find_job(mcp_call *call, sgm__job **job)
{
    *job = sgm__job_find(&call->server->folder.runs->jobs, mcp_text(call, "run"));
    return *job != NULL
               ? SGM_OK
               : sgm_fail(SGM_ERROR_NOT_FOUND,
                          "this server has begun no replay '%.200s'; get_run tells of runs of others",
                          mcp_text(call, "run"));
}

static sgm_status replay_result(mcp_call *call)
{
    sgm__job *job;
    SGM_TRY(find_job(call, &job));
    SGM_TRY(wait_for(call, job, mcp_number(call, "wait_seconds")));
    tell_job(call, job);
    return SGM_OK;
}

static const mcp_parameter stop_parameters[] = {
    {"run", "name of the new run, as replay_run gave it", MCP_TEXT, .required = true}, {0}};

static sgm_status stop_replay(mcp_call *call)
{
    sgm__job *job;
    SGM_TRY(find_job(call, &job));
    if (!mcp_flag(call, "dry_run"))
        sgm__job_stop(job);
    tell_job(call, job);
    return SGM_OK;
}

static const char job_output[] =
    "{\"type\": \"object\", \"properties\": {\"run\": {\"type\": \"string\"}, \"state\": {\"type\": "
    "\"string\", "
    "\"enum\": [\"running\", \"done\", \"failed\"]}, \"exit_code\": {\"type\": \"integer\"}, \"output\": "
    "{\"type\": "
    "\"string\"}, \"seconds\": {\"type\": \"number\"}}, \"required\": [\"run\", \"state\", \"output\"]}";

const mcp_tool mcp_replay_tools[] = {
    {"replay_run", "Replay a run",
     "Trains a run again in a new folder, from its journal, with all that was done to it, to the same bits; "
     "or 'without' some of it, which shows what that was good for. Returns at once with the name of the new "
     "run: replay_result tells when it is done and whether it is the same, get_curves its curves meanwhile. "
     "It ends when this server ends. 'dry_run' checks whether it can be done, and tells all reasons why not.",
     replay_run, replay_parameters, SGM__ROLE_ADMIN, .of_run = true},
    {"replay_result", "Result of a replay",
     "What became of a replay that replay_run began: 'state' is running, done (exit code 0: what it made is "
     "the same, unless something was left out) or failed, 'output' what it printed.",
     replay_result, result_parameters, .output = job_output},
    {"stop_replay", "Stop a replay", "Ends a replay that replay_run began.", stop_replay, stop_parameters,
     SGM__ROLE_ADMIN, .destructive = true, .output = job_output},
    {0}};
