/* Replays that a person asks for on the page over a folder of runs.
 *
 * A replay is a training, so a process of its own does it: the command that the options name (`sigma
 * replay`), with the folder of the run and a new one beside it. From then on the new folder is a run like all
 * others. What the process writes as errors is kept in a file without a name, since a replay that is refused
 * leaves no folder behind. All of this happens on the one thread of the routes. */
#include "monitors/runs/replays.h"

#include <errno.h>
#include <fcntl.h>
#include <sigma/replay.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAXIMUM_RUNNING 2 /* each has threads of its own */
#define MAXIMUM_KEPT 64   /* of which the oldest are forgotten */
#define MAXIMUM_LEFT_OUT 1000
#define SHOWN_NUMBERS 4 /* of what is left out, in the name of the folder */
#define LONGEST_MESSAGE 4000
#define LONGEST_NAME 200

extern char **environ;

typedef struct sgm__replaying {
    char *run, *into; /* names in the folder of runs */
    pid_t process;    /* 0: it has ended */
    int errors;       /* descriptor of what it writes as errors; -1: read */
    char *message;    /* why it failed; NULL: it has not */
} replaying;

static void forget(replaying *one)
{
    sgm__free(one->run);
    sgm__free(one->into);
    sgm__free(one->message);
    if (one->errors >= 0)
        close(one->errors);
    *one = (replaying){.errors = -1};
}

/* --- ends --- */

/* The end of what was written, without the line end behind it; the caller frees it. */
static char *read_errors(int file)
{
    char text[LONGEST_MESSAGE + 1];
    off_t size = lseek(file, 0, SEEK_END);
    off_t start = size > LONGEST_MESSAGE ? size - LONGEST_MESSAGE : 0;
    ssize_t length = pread(file, text, LONGEST_MESSAGE, start);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        length--;
    return length > 0 ? sgm__strndup(text, (size_t)length) : sgm__strdup("it ended with an error");
}

void sgm__replays_look(sgm__runs *runs)
{
    int state;
    for (size_t i = 0; i < runs->replay_count; i++) {
        replaying *one = &runs->replays[i];
        if (one->process == 0 || waitpid(one->process, &state, WNOHANG) == 0)
            continue;
        one->process = 0;
        if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
            one->message = read_errors(one->errors);
        close(one->errors);
        one->errors = -1;
    }
}

void sgm__replays_stop(sgm__runs *runs)
{
    for (size_t i = 0; i < runs->replay_count; i++) {
        if (runs->replays[i].process != 0)
            kill(runs->replays[i].process, SIGTERM);
        forget(&runs->replays[i]);
    }
    sgm__free(runs->replays);
    runs->replays = NULL;
    runs->replay_count = runs->replay_capacity = 0;
}

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

/* Those of a run, the oldest first: {"into", "state": "running" | "ended" | "failed", "begun":
 * there is a folder, "message"}. */
static json_t *list_replays(const sgm__runs *runs, const char *run)
{
    json_t *list = json_array();
    for (size_t i = 0; i < runs->replay_count; i++) {
        const replaying *one = &runs->replays[i];
        const char *state = one->process != 0 ? "running" : one->message != NULL ? "failed" : "ended";
        if (strcmp(one->run, run) == 0)
            json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s?}", "into", one->into, "state", state,
                                                  "begun", sgm__runs_find(runs, one->into) != NULL, "message",
                                                  one->message));
    }
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
    sgm__replays_look(runs);
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

static size_t count_running(const sgm__runs *runs)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->replay_count; i++)
        count += runs->replays[i].process != 0;
    return count;
}

/* Room for one more at the end of the list; NULL: no memory. */
static replaying *add(sgm__runs *runs)
{
    if (runs->replay_count >= MAXIMUM_KEPT && runs->replays[0].process == 0) {
        forget(&runs->replays[0]);
        runs->replay_count--;
        memmove(runs->replays, runs->replays + 1, runs->replay_count * sizeof *runs->replays);
    }
    if (sgm__reserve(&runs->replays, &runs->replay_capacity, runs->replay_count + 1, sizeof *runs->replays) !=
        SGM_OK)
        return NULL;
    return &runs->replays[runs->replay_count];
}

/* A process group of its own, so that Ctrl-C reaches it by sgm__replays_stop alone; no input, no output. */
static int spawn(char *const *words, int errors, pid_t *process)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&how, &none);
    int failure = posix_spawn(process, words[0], &files, &how, words, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return failure;
}

/* Starts the command for a replay whose names are filled in. */
static sgm_status start(const sgm__runs *runs, wish *asked, replaying *made)
{
    char *run = sgm__format("%s/%s", runs->path, made->run);
    char *into = sgm__format("%s/%s", runs->path, made->into);
    char *words[12];
    size_t count = 0;
    for (; count < 3 && runs->replay[count] != NULL; count++)
        words[count] = (char *)(uintptr_t)runs->replay[count];
    words[count++] = run;
    words[count++] = (char *)(uintptr_t) "--quiet";
    words[count++] = (char *)(uintptr_t) "--no-keys";
    words[count++] = (char *)(uintptr_t) "--into";
    words[count++] = into;
    if (asked->inexact)
        words[count++] = (char *)(uintptr_t) "--inexact";
    if (asked->numbers[0] != '\0') {
        words[count++] = (char *)(uintptr_t) "--without";
        words[count++] = asked->numbers;
    }
    words[count] = NULL;
    int failure = run != NULL && into != NULL ? spawn(words, made->errors, &made->process) : ENOMEM;
    sgm__free(run);
    sgm__free(into);
    return failure == 0 ? SGM_OK
                        : sgm_fail(SGM_ERROR_STATE, "the system refused a process for the replay: %s",
                                   sgm__errno_text(failure));
}

static sgm_status begin(sgm__runs *runs, wish *asked, replaying **made)
{
    *made = add(runs);
    if (*made == NULL)
        return SGM_ERROR_MEMORY;
    **made = (replaying){.run = sgm__strdup(asked->run),
                         .into = new_name(runs, asked),
                         .errors = memfd_create("errors of a replay", MFD_CLOEXEC)};
    sgm_status status =
        (*made)->run == NULL || (*made)->into == NULL ? sgm__last_failure()
        : strlen((*made)->into) > LONGEST_NAME        ? sgm_fail(SGM_ERROR_ARGUMENT,
                                                                 "the name '%.200s' is too long for a replay's name "
                                                                        "behind it; rename the run",
                                                                 asked->run)
        : (*made)->errors < 0
            ? sgm_fail(SGM_ERROR_FILE, "cannot keep errors of a replay: %s", sgm__errno_text(errno))
            : start(runs, asked, *made);
    if (status != SGM_OK)
        forget(*made);
    else
        runs->replay_count++;
    return status;
}

sgm_status sgm__runs_replay(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__runs *runs = user;
    replaying *made;
    wish *asked = sgm__calloc(1, sizeof *asked);
    sgm_status status = asked != NULL ? read_wish(sgm__http_object(request), asked) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__runs_scan(runs);
    if (status == SGM_OK && sgm__runs_find(runs, asked->run) == NULL)
        status = sgm__last_failure();
    if (status == SGM_OK && runs->replay == NULL)
        status = sgm_fail(SGM_ERROR_UNSUPPORTED, "this page replays no runs");
    sgm__replays_look(runs);
    if (status == SGM_OK && count_running(runs) >= MAXIMUM_RUNNING)
        status = sgm_fail(SGM_ERROR_STATE, "%d replays train already; wait for one, or stop it (sigma ctl)",
                          MAXIMUM_RUNNING);
    if (status == SGM_OK)
        status = begin(runs, asked, &made);
    sgm__free(asked);
    SGM_TRY(status);
    return sgm__http_answer_json(answer, json_pack("{s:s}", "into", made->into));
}
