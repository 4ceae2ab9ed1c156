/* Replays that a person asks for on the page over a folder of runs; jobs.h says how they train. All of this
 * happens on the one thread of the routes. */
#include "monitors/runs/replays.h"

#include <fcntl.h>
#include <sigma/replay.h>
#include <stdio.h>
#include <unistd.h>

#define MAXIMUM_LEFT_OUT 1000
#define SHOWN_NUMBERS 4 /* of what is left out, in the name of the folder */
#define LONGEST_NAME 200

/* --- what was done to a run --- */

static json_t *intervention_json(const sgm_intervention *one)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:b}", "number", (json_int_t)one->number,
                     "branch", (json_int_t)one->branch, "epoch", (json_int_t)one->epoch, "iteration",
                     (json_int_t)one->iteration, "event", one->event, "who", one->who, "text", one->text,
                     "reason", one->reason, "removable", one->removable);
}

/* The folder was named by its descriptor, which means nothing to the asker: the message names the file. */
static sgm_status fail_in_folder(const char *path, sgm_status status)
{
    const char *message = sgm_last_error();
    size_t length = strlen(path);
    if (message[0] != '\'' || strncmp(message + 1, path, length) != 0 || message[1 + length] != '/')
        return status;
    char *copy = sgm__strdup(message + length + 2);
    sgm_fail(status, "'%s", copy != NULL ? copy : "journal.jsonl' cannot be read");
    sgm__free(copy);
    return status;
}

sgm_status sgm__run_interventions(int folder, json_t **list)
{
    char path[64];
    sgm_intervention *items;
    size_t count;
    snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
    sgm_status status = sgm_run_interventions(path, &items, &count);
    *list = json_array();
    if (status == SGM_ERROR_NOT_FOUND)
        return SGM_OK;
    for (size_t i = 0; status == SGM_OK && i < count; i++)
        json_array_append_new(*list, intervention_json(&items[i]));
    sgm_interventions_free(items, count);
    return status == SGM_OK ? SGM_OK : fail_in_folder(path, status);
}

static json_t *job_json(const sgm__runs *runs, sgm__job *job)
{
    bool running = sgm__job_runs(job), failed = !running && job->process.code != 0;
    char *message = failed ? sgm__job_output(job) : NULL;
    if (message != NULL && message[0] == '\0') {
        sgm__free(message);
        message = sgm__strdup("it ended with an error");
    }
    json_t *object = json_pack("{s:s, s:s, s:b, s:s?}", "into", job->name, "state",
                               running  ? "running"
                               : failed ? "failed"
                                        : "ended",
                               "begun", sgm__runs_find(runs, job->name) != NULL, "message", message);
    sgm__free(message);
    return object;
}

/* Those of a run, the oldest first: {"into", "state": "running" | "ended" | "failed", "begun":
 * there is a folder, "message"}. */
static json_t *list_replays(sgm__runs *runs, const char *run)
{
    json_t *list = json_array();
    for (size_t i = 0; i < runs->jobs.count; i++)
        if (strcmp(runs->jobs.items[i].run, run) == 0)
            json_array_append_new(list, job_json(runs, &runs->jobs.items[i]));
    return list;
}

sgm_status sgm__runs_interventions(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__runs *runs = user;
    const sgm__run *run;
    json_t *list = NULL;
    int folder = sgm__runs_open_run(runs, request->path, &run);
    if (folder < 0)
        return sgm__last_failure();
    sgm_status status = sgm__run_interventions(folder, &list);
    close(folder);
    if (status != SGM_OK) {
        json_decref(list);
        return sgm__fail_within("'%s/%s'", runs->path, request->path);
    }
    bool can = runs->replay != NULL && run->configuration != NULL;
    return sgm__http_answer_json(answer, json_pack("{s:o, s:b, s:o}", "interventions", list, "can_replay",
                                                   can, "replays", list_replays(runs, run->name)));
}

/* --- beginning one --- */

/* What a person asks for. */
typedef struct wish {
    const char *run;
    char numbers[MAXIMUM_LEFT_OUT * 12]; /* "5,12"; "": nothing is left out */
    char ending[96];                     /* of the new name */
    bool inexact;
} wish;

static sgm_status read_numbers(const json_t *list, wish *asked)
{
    size_t index, length = 0, ending = (size_t)snprintf(asked->ending, sizeof asked->ending, "-without");
    const json_t *number;
    if (json_array_size(list) > MAXIMUM_LEFT_OUT)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a replay leaves out at most %d interventions", MAXIMUM_LEFT_OUT);
    json_array_foreach(list, index, number)
    {
        long long value = json_integer_value(number);
        if (value <= 0 || value > INT32_MAX)
            return sgm_fail(SGM_ERROR_ARGUMENT, "'without' must be numbers of interventions");
        length += (size_t)snprintf(asked->numbers + length, sizeof asked->numbers - length, "%s%lld",
                                   index > 0 ? "," : "", value);
        if (index < SHOWN_NUMBERS)
            ending += (size_t)snprintf(asked->ending + ending, sizeof asked->ending - ending, "-%lld", value);
    }
    if (json_array_size(list) > SHOWN_NUMBERS)
        snprintf(asked->ending + ending, sizeof asked->ending - ending, "-and-%zu-more",
                 json_array_size(list) - SHOWN_NUMBERS);
    if (json_array_size(list) == 0)
        snprintf(asked->ending, sizeof asked->ending, "-again");
    return SGM_OK;
}

static sgm_status read_wish(const json_t *body, wish *asked)
{
    const json_t *without = json_object_get(body, "without"), *inexact = json_object_get(body, "inexact");
    *asked =
        (wish){.run = json_string_value(json_object_get(body, "name")), .inexact = json_is_true(inexact)};
    if (asked->run == NULL || (without != NULL && !json_is_array(without)) ||
        (inexact != NULL && !json_is_boolean(inexact)))
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a JSON object with the text 'name', the list 'without' "
                                            "of numbers and the boolean 'inexact'");
    return read_numbers(without, asked);
}

/* A name beside the run that no folder has yet; the caller frees it. */
static char *new_name(const sgm__runs *runs, const wish *asked)
{
    struct stat info;
    char *name = NULL;
    for (int number = 1; number < 1000; number++) {
        char count[16] = "";
        if (number > 1)
            snprintf(count, sizeof count, "-%d", number);
        name = sgm__format("%s%s%s", asked->run, asked->ending, count);
        if (name == NULL || fstatat(runs->folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            return name;
        sgm__free(name);
    }
    sgm_fail(SGM_ERROR_STATE, "there are a thousand replays of '%s'; delete some", asked->run);
    return NULL;
}

static sgm_status begin(sgm__runs *runs, const wish *asked, const char *name, sgm__job **made)
{
    if (strlen(name) > LONGEST_NAME)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the name '%.200s' is too long for a replay's name behind it; rename the run",
                        asked->run);
    char *folder = sgm__format("%s/%s", runs->path, asked->run);
    char *into = sgm__format("%s/%s", runs->path, name);
    sgm__job_order order = {.command = runs->replay,
                            .run = asked->run,
                            .name = name,
                            .folder = folder,
                            .into = into,
                            .without = asked->numbers[0] != '\0' ? asked->numbers : NULL,
                            .inexact = asked->inexact};
    sgm_status status =
        folder != NULL && into != NULL ? sgm__job_start(&runs->jobs, &order, made) : SGM_ERROR_MEMORY;
    sgm__free(folder);
    sgm__free(into);
    return status;
}

static sgm_status begin_named(sgm__runs *runs, const wish *asked, sgm__job **made)
{
    char *name = new_name(runs, asked);
    sgm_status status = name != NULL ? begin(runs, asked, name, made) : sgm__last_failure();
    sgm__free(name);
    return status;
}

static bool can_be_left_out(const sgm_intervention *list, size_t count, int64_t number)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].number == number)
            return list[i].removable;
    return false;
}

/* Refuses numbers of what cannot be left out here, where the asker sees it, and not in the process that
 * replays. */
static sgm_status check_numbers(const sgm__runs *runs, const char *run, const json_t *numbers)
{
    sgm_intervention *list = NULL;
    size_t count = 0, index;
    const json_t *number;
    sgm_status status = SGM_OK;
    char *folder = json_array_size(numbers) > 0 ? sgm__format("%s/%s", runs->path, run) : NULL;
    if (folder != NULL)
        status = sgm_run_interventions(folder, &list, &count);
    json_array_foreach(numbers, index, number)
    {
        if (status == SGM_OK && !can_be_left_out(list, count, json_integer_value(number)))
            status = sgm_fail(SGM_ERROR_NOT_FOUND,
                              "%lld is no intervention of '%.200s' that can be left out; GET "
                              "/api/run-interventions lists those that are removable",
                              (long long)json_integer_value(number), run);
    }
    sgm_interventions_free(list, count);
    sgm__free(folder);
    return status;
}

sgm_status sgm__runs_replay(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__runs *runs = user;
    sgm__job *made;
    wish *asked = sgm__calloc(1, sizeof *asked);
    sgm_status status = asked != NULL ? read_wish(sgm__http_object(request), asked) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__runs_scan(runs);
    if (status == SGM_OK && sgm__runs_find(runs, asked->run) == NULL)
        status = sgm__last_failure();
    if (status == SGM_OK && runs->replay == NULL)
        status = sgm_fail(SGM_ERROR_UNSUPPORTED, "this page replays no runs");
    if (status == SGM_OK)
        status = check_numbers(runs, asked->run, json_object_get(sgm__http_object(request), "without"));
    if (status == SGM_OK)
        status = begin_named(runs, asked, &made);
    sgm__free(asked);
    SGM_TRY(status);
    return sgm__http_answer_json(answer, json_pack("{s:s}", "into", made->name));
}
