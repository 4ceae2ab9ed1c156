/* The routes of the page over a folder of runs, its start and its end.
 *
 * Each request scans the folder first (scan.c), which is cheap when nothing has changed; there is no
 * thread that watches it. A page sends the revision that it knows, and gets the list only if there is a
 * newer one. All routes run on one thread of the server. */
#include "monitors/runs/replays.h"
#include "monitors/runs/report.h"
#include "monitors/runs/runs_internal.h"
#include "monitors/terms.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* --- what is asked --- */

static const char *state_name(sgm__run_state state)
{
    static const char *const names[] = {"finished", "stopped", "failed", "running"};
    return names[state];
}

/* null for NULL and for text that is no UTF-8. */
static void set_text(json_t *object, const char *key, const char *text)
{
    json_t *value =
        text != NULL ? json_string(text) : NULL; /* json_string gives NULL for text that is no UTF-8 */
    json_object_set_new(object, key, value != NULL ? value : json_null());
}

/* Whole numbers as integers: epochs and iterations are some. */
static json_t *number_of(double value)
{
    return value == floor(value) && fabs(value) < 0x1p53 ? json_integer((json_int_t)value) : json_real(value);
}

/* A number of all metrics, by name. */
static json_t *numbers_of(const sgm__run_columns *metrics, size_t offset)
{
    json_t *object = json_object();
    for (size_t i = 0; i < metrics->count; i++) {
        const sgm__run_column *column = &metrics->columns[i];
        const void *number = (const char *)column + offset;
        json_object_set_new(object, column->name, number_of(*(const double *)number));
    }
    return object;
}

json_t *sgm__run_describe(const sgm__run *run)
{
    json_t *object = json_pack("{s:s, s:s, s:b, s:f, s:I, s:I, s:o, s:o, s:o}", "name", run->name, "state",
                               state_name(run->state), "reading", run->reading, "started", run->started,
                               "lines", (json_int_t)run->lines, "bad", (json_int_t)run->bad, "metrics",
                               numbers_of(&run->metrics, offsetof(sgm__run_column, newest)), "minimum",
                               numbers_of(&run->metrics, offsetof(sgm__run_column, minimum)), "maximum",
                               numbers_of(&run->metrics, offsetof(sgm__run_column, maximum)));
    static const char *const figures[][2] = {
        {"epochs", "epoch"}, {"iteration", "iteration"}, {"seconds", "seconds"}};
    for (size_t i = 0; i < 3; i++) {
        const sgm__run_column *column = sgm__run_column_named(&run->metrics, figures[i][1]);
        json_object_set_new(object, figures[i][0], column != NULL ? number_of(column->newest) : json_null());
    }
    json_object_set_new(object, "configuration", sgm__run_configuration(run));
    set_text(object, "configuration_error",
             run->version_error != NULL ? run->version_error : run->configuration_error);
    set_text(object, "reason", run->reason);
    sgm__run_describe_notes(run, object);
    return object;
}

/* GET /api/runs?after=REVISION: {"revision", "same": true}, or the whole list. */
static sgm_status list_runs(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__runs *runs = user;
    const char *after = sgm__http_query(request, "after", 0);
    int64_t known = -1;
    sgm__jobs_look(&runs->jobs);
    SGM_TRY(sgm__runs_scan(runs));
    if (after != NULL && sgm__parse_int64(after, &known) && known == runs->revision)
        return sgm__http_answer_json(answer,
                                     json_pack("{s:I, s:b}", "revision", (json_int_t)known, "same", true));
    json_t *list = json_array();
    for (size_t i = 0; i < runs->count; i++)
        json_array_append_new(list, sgm__run_describe(runs->runs[i]));
    return sgm__http_answer_json(
        answer, json_pack("{s:I, s:s, s:s, s:s, s:I, s:o}", "revision", (json_int_t)runs->revision, "role",
                          sgm__role_name(request->role), "version", sgm_version(), "folder", runs->path,
                          "left_out", (json_int_t)runs->left_out, "runs", list));
}

int sgm__runs_open_run(sgm__runs *runs, const char *name, const sgm__run **run)
{
    const char *leaf;
    if (sgm__runs_scan(runs) != SGM_OK)
        return -1;
    *run = sgm__runs_find(runs, name);
    if (*run != NULL && (*run)->version_error != NULL) {
        sgm_fail(SGM_ERROR_FORMAT, "'%s/%s': %s", runs->path, (*run)->name, (*run)->version_error);
        return -1;
    }
    int parent = *run != NULL ? sgm__runs_open_parent(runs, name, &leaf) : -1;
    int folder = parent >= 0 ? sgm__runs_open_folder(parent, leaf) : -1;
    if (parent >= 0)
        close(parent);
    if (folder < 0 && *run != NULL)
        sgm_fail(SGM_ERROR_NOT_FOUND, "there is no run '%.200s' any more", name);
    return folder;
}

/* GET /api/run/NAME: the run with all of its metrics and changes. */
static sgm_status show_run(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__runs *runs = user;
    const sgm__run *run;
    json_t *columns = NULL, *changes = NULL;
    int folder = sgm__runs_open_run(runs, request->path, &run);
    if (folder < 0)
        return sgm__last_failure();
    sgm_status status = sgm__run_all_metrics(run, folder, &columns);
    if (status == SGM_OK)
        status = sgm__run_changes(folder, &changes);
    close(folder);
    if (status != SGM_OK) {
        json_decref(columns);
        return status;
    }
    json_t *object = sgm__run_describe(run);
    json_object_set_new(object, "columns", columns);
    json_object_set_new(object, "changes", changes);
    return sgm__http_answer_json(answer, object);
}

/* GET /api/run-log/NAME: {"lines": [...], "cut": bool} with the newest lines of its log; cut: there are
 * older ones. */
static sgm_status show_log(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    const sgm__run *run;
    json_t *lines = NULL;
    bool cut = false;
    int folder = sgm__runs_open_run(user, request->path, &run);
    if (folder < 0)
        return sgm__last_failure();
    sgm_status status = sgm__run_log(folder, &lines, &cut);
    close(folder);
    SGM_TRY(status);
    return sgm__http_answer_json(answer, json_pack("{s:o, s:b}", "lines", lines, "cut", cut));
}

/* --- what is to be done --- */

/* What each change of runs goes through, whatever it does: its terms are read and taken out of the body, one
 * that is only to be tried or lowers its role too far is refused, and the log tells who did it and why. */
static sgm_status change(void *runs, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__terms terms = {0};
    json_t *body = sgm__http_object(request);
    if (body == NULL)
        return sgm__last_failure();
    sgm_status status = sgm__monitor_terms(request, body, &terms);
    json_t *reason = json_incref(json_object_get(body, "reason")); /* which `terms` borrows */
    json_object_del(body, "reason");
    if (status == SGM_OK)
        status = request->route->action(runs, request, answer);
    if (status == SGM_OK)
        sgm__terms_log("runs", &terms, "%s %.200s", request->route->path + strlen("/api/"),
                       json_string_value(json_object_get(body, "name")));
    json_decref(reason);
    sgm__free(terms.who);
    return status;
}

static sgm_status answer_done(sgm_status status, sgm__http_answer *answer)
{
    SGM_TRY(status);
    return sgm__http_answer_json(answer, json_pack("{s:b}", "ok", true));
}

/* The texts "name" and `second` of the body, borrowed from it. A body that is NULL has none. */
static sgm_status two_texts(const json_t *body, const char *second, const char **texts)
{
    texts[0] = json_string_value(json_object_get(body, "name"));
    texts[1] = json_string_value(json_object_get(body, second));
    if (texts[0] != NULL && texts[1] != NULL)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "expected a JSON object with the texts 'name' and '%s'", second);
}

/* A request with two texts, handed to `act`. */
static sgm_status act_with_two(sgm__runs *runs, const sgm__http_request *request, sgm__http_answer *answer,
                               const char *second, sgm_status (*act)(sgm__runs *, const char *, const char *))
{
    const char *texts[2];
    sgm_status status = two_texts(sgm__http_object(request), second, texts);
    if (status == SGM_OK)
        status = act(runs, texts[0], texts[1]);
    return answer_done(status, answer);
}

static sgm_status rename_run(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    return act_with_two(user, request, answer, "to", sgm__runs_rename);
}

static sgm_status delete_run(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    return act_with_two(user, request, answer, "confirmation", sgm__runs_delete);
}

/* {"before": {...}}: the members as they were, to be sent by who undoes it. */
static sgm_status note_run(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    json_t *body = sgm__http_object(request);
    const char *name = json_string_value(json_object_get(body, "name"));
    json_t *before = json_object();
    sgm_status status = name != NULL
                            ? sgm__runs_note(user, name, body, before)
                            : sgm_fail(SGM_ERROR_ARGUMENT, "expected a JSON object with the text 'name'");
    if (status == SGM_OK)
        return sgm__http_answer_json(answer, json_pack("{s:o}", "before", before));
    json_decref(before);
    return status;
}

const sgm__http_route sgm__runs_routes[] = {
    {"GET", "/api/runs", .act = list_runs},
    {"GET", "/api/run/", .act = show_run},
    {"GET", "/api/run-log/", .act = show_log},
    {"POST", "/api/run-rename", .act = change, .action = rename_run, .role = SGM__ROLE_STEER},
    {"POST", "/api/run-notes", .act = change, .action = note_run, .role = SGM__ROLE_STEER},
    {"POST", "/api/run-delete", .act = change, .action = delete_run, .role = SGM__ROLE_ADMIN},
    {"GET", "/api/report", .act = sgm__runs_report},
    {"GET", "/api/run-interventions/", .act = sgm__runs_interventions},
    {"POST", "/api/run-replay", .act = change, .action = sgm__runs_replay, .role = SGM__ROLE_ADMIN},
};
const size_t sgm__runs_route_count = sizeof sgm__runs_routes / sizeof *sgm__runs_routes;

/* --- beginning and end --- */

static sgm_status open_folder(sgm__runs *runs, const char *folder)
{
    runs->path = sgm__strdup(folder);
    if (runs->path == NULL)
        return sgm__last_failure();
    runs->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (runs->folder < 0)
        return sgm_fail(errno == ENOENT ? SGM_ERROR_NOT_FOUND : SGM_ERROR_FILE,
                        "the folder '%s' cannot be opened: %s", folder, sgm__errno_text(errno));
    return SGM_OK;
}

sgm__runs *sgm__runs_open(const char *folder, sgm__runs_configuration configuration)
{
    sgm__runs *runs = sgm__calloc(1, sizeof *runs);
    if (runs == NULL)
        return NULL;
    *runs = (sgm__runs){.folder = -1, .revision = 1, .configuration = configuration};
    if (open_folder(runs, folder) == SGM_OK)
        return runs;
    sgm__runs_close(runs);
    return NULL;
}

void sgm__runs_close(sgm__runs *runs)
{
    if (runs == NULL)
        return;
    sgm__jobs_end(&runs->jobs);
    for (size_t i = 0; i < runs->count; i++)
        sgm__run_free(runs->runs[i]);
    if (runs->folder >= 0)
        close(runs->folder);
    sgm__free(runs->runs);
    sgm__free(runs->path);
    sgm__free(runs);
}

sgm__runs *sgm__runs_start(const sgm__runs_options *options)
{
    sgm__runs *runs = sgm__runs_open(options->folder, options->configuration);
    if (runs == NULL)
        return NULL;
    const sgm__http_options serving = {.port = options->port,
                                       .token = options->token,
                                       .tokens = options->tokens,
                                       .page = "runs.html",
                                       .routes = sgm__runs_routes,
                                       .route_count = sgm__runs_route_count,
                                       .user = runs};
    runs->replay = options->replay;
    runs->http = sgm__http_start(&serving);
    if (runs->http != NULL)
        return runs;
    sgm__runs_close(runs);
    return NULL;
}

const char *sgm__runs_url(const sgm__runs *runs)
{
    return sgm__http_url(runs->http);
}

/* If a function does not return in time, its thread still uses `runs`, which then stays allocated. */
void sgm__runs_stop(sgm__runs *runs)
{
    if (runs != NULL && sgm__http_stop(runs->http)) /* otherwise a function still runs */
        sgm__runs_close(runs);
}
