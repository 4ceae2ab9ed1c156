/* Runs programs for rules: starting them, reading what they write, killing those that take too long.
 *
 * The training's thread starts a program (base/process/process.h); a thread for each program reads its output
 * and waits for it, so that the training goes on. The end of the run waits for all of them. Nothing of the
 * training depends on a program. */
#include "runs/rules/rule_command.h"
#include "base/clock.h"
#include "base/process/process.h"
#include "base/turn_lock.h"
#include "registry/registry_internal.h"
#include "text/command_words.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAXIMUM_RUNNING 8    /* programs of one trainer at a time */
#define MAXIMUM_LINES 200    /* of a program's output that the log gets */
#define LONGEST_LINE 1000    /* bytes; a longer line becomes several */
#define LOOK_MILLISECONDS 50 /* between two looks whether a program has ended */
#define SHOWN "run '%.60s'"  /* how the log names a command */

extern char **environ;

/* A program that was started. */
typedef struct sgm__rule_command {
    char *source, *command; /* the trainer's name; the text */
    double seconds;         /* how long it may run */
    sgm__process process;
    int output; /* the reading end of a pipe, which does not block; -1: it is at its end */
    pthread_t thread;
    atomic_bool over;
    char line[LONGEST_LINE + 1]; /* what was read of the present line */
    size_t length;
    int lines; /* so many are in the log */
    struct sgm__rule_command *next;
} rule_command;

static void free_command(rule_command *one)
{
    if (one->output >= 0)
        close(one->output);
    sgm__free(one->source);
    sgm__free(one->command);
    sgm__free(one);
}

/* --- output --- */

/* Control characters could change what a terminal shows of the log. */
static void end_line(rule_command *one)
{
    for (size_t i = 0; i < one->length; i++)
        if (((unsigned char)one->line[i] < ' ' && one->line[i] != '\t') || one->line[i] == 0x7f)
            one->line[i] = '?';
    one->line[one->length] = '\0';
    if (one->lines < MAXIMUM_LINES)
        sgm__log(SGM_LOG_INFO, one->source, SHOWN ": %s", one->command, one->line);
    else if (one->lines == MAXIMUM_LINES)
        sgm__log(SGM_LOG_INFO, one->source, SHOWN ": what it writes more is left out", one->command);
    one->lines++;
    one->length = 0;
}

static void take(rule_command *one, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '\n')
            one->line[one->length++] = bytes[i];
        if (bytes[i] == '\n' || one->length == LONGEST_LINE)
            end_line(one);
    }
}

/* Reads what is there. */
static void read_output(rule_command *one)
{
    char bytes[4096];
    ssize_t count = 0;
    while (one->output >= 0 && (count = read(one->output, bytes, sizeof bytes)) > 0)
        take(one, bytes, (size_t)count);
    if (one->output >= 0 && (count == 0 || (errno != EAGAIN && errno != EINTR))) {
        close(one->output);
        one->output = -1;
    }
}

/* --- its end --- */

static void tell_end(const rule_command *one, bool killed)
{
    if (killed)
        sgm__log(SGM_LOG_WARNING, one->source, SHOWN " was killed: it took longer than %g s", one->command,
                 one->seconds);
    else if (one->process.signal != 0)
        sgm__log(SGM_LOG_WARNING, one->source, SHOWN " was ended by signal %d", one->command,
                 one->process.signal);
    else if (one->process.code != 0)
        sgm__log(SGM_LOG_WARNING, one->source, SHOWN " ended with exit code %d", one->command,
                 one->process.code);
    else
        sgm__log(SGM_LOG_INFO, one->source, SHOWN " has ended", one->command);
}

/* The thread of a program. */
static void *watch(void *argument)
{
    rule_command *one = argument;
    double until = sgm__now() + one->seconds;
    while (sgm__process_runs(&one->process) && sgm__now() < until) {
        struct pollfd look = {.fd = one->output, .events = POLLIN};
        poll(&look, 1, LOOK_MILLISECONDS);
        read_output(one);
    }
    bool killed = sgm__process_runs(&one->process);
    sgm__process_kill(&one->process);
    read_output(one);
    if (one->length > 0)
        end_line(one);
    tell_end(one, killed);
    atomic_store(&one->over, true);
    return NULL;
}

/* --- starting --- */

/* The run's values, as NAME=VALUE; NULL at the end. */
#define VALUES 5
typedef struct values {
    char *items[VALUES];
} values;

static void free_values(values *own)
{
    for (size_t i = 0; i < VALUES; i++)
        sgm__free(own->items[i]);
}

/* "" where there is no loss yet. */
static void loss_text(const sgm_trainer *trainer, char *text, size_t size)
{
    sgm_content content = {0};
    bool known = sgm_registry_resolve_one(sgm__registry_of(trainer), "training.loss", &content) == SGM_OK &&
                 content.kind == SGM_KIND_NUMBER;
    text[0] = '\0';
    if (known)
        snprintf(text, size, "%.9g", content.as.number);
    sgm_content_clear(&content);
}

static sgm_status read_values(const sgm_trainer *trainer, values *own)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    const char *folder = sgm__journal_of(trainer)->folder;
    char loss[32], *whole = folder != NULL ? realpath(folder, NULL) : NULL;
    loss_text(trainer, loss, sizeof loss);
    *own = (values){{sgm__format("SIGMA_TRAINER=%s", sgm_trainer_name(trainer)),
                     sgm__format("SIGMA_FOLDER=%s", whole != NULL ? whole : ""),
                     sgm__format("SIGMA_EPOCH=%lld", (long long)position->epoch),
                     sgm__format("SIGMA_ITERATION=%lld", (long long)position->iteration),
                     sgm__format("SIGMA_LOSS=%s", loss)}};
    free(whole);
    for (size_t i = 0; i < VALUES; i++)
        if (own->items[i] == NULL)
            return SGM_ERROR_MEMORY;
    return SGM_OK;
}

/* This process's environment with the values in front, whose names replace those that it has. The list alone
 * is the caller's. */
static char **environment_of(const values *own)
{
    size_t count = 0, made = VALUES;
    while (environ[count] != NULL)
        count++;
    char **list = sgm__calloc(count + VALUES + 1, sizeof *list);
    if (list == NULL)
        return NULL;
    memcpy(list, own->items, sizeof own->items);
    for (size_t i = 0; i < count; i++) {
        bool replaced = false;
        for (size_t k = 0; k < VALUES; k++)
            replaced |= strncmp(environ[i], own->items[k],
                                (size_t)(strchr(own->items[k], '=') - own->items[k]) + 1) == 0;
        if (!replaced)
            list[made++] = environ[i];
    }
    return list;
}

/* Starts the program of a command that has its texts. */
static sgm_status start_process(const sgm_trainer *trainer, rule_command *one, char *const *words)
{
    values own = {{NULL}};
    int ends[2] = {-1, -1};
    sgm_status status = read_values(trainer, &own);
    char **environment = status == SGM_OK ? environment_of(&own) : NULL;
    if (environment == NULL)
        status = SGM_ERROR_MEMORY;
    else if (pipe2(ends, O_CLOEXEC) != 0)
        status = sgm_fail(SGM_ERROR_FILE, "there is no pipe for its output: %s", sgm__errno_text(errno));
    else
        status = sgm__process_start(&one->process,
                                    &(sgm__program){(const char *const *)words, environment, ends[1]});
    if (ends[1] >= 0)
        close(ends[1]);
    one->output = ends[0];
    if (status == SGM_OK)
        fcntl(one->output, F_SETFL, O_NONBLOCK);
    sgm__free(environment);
    free_values(&own);
    return status == SGM_OK ? SGM_OK : sgm__fail_within(SHOWN, one->command);
}

/* Frees programs that have ended; returns how many still run. */
static size_t clear_ended(sgm_trainer *trainer, bool all)
{
    size_t running = 0;
    rule_command **at = &sgm__progress_of(trainer)->commands;
    while (*at != NULL) {
        rule_command *one = *at;
        if (!all && !atomic_load(&one->over)) {
            running++;
            at = &one->next;
            continue;
        }
        pthread_join(one->thread, NULL);
        *at = one->next;
        free_command(one);
    }
    return running;
}

static sgm_status start(sgm_trainer *trainer, rule_command *one, char *const *words)
{
    SGM_TRY(start_process(trainer, one, words));
    if (pthread_create(&one->thread, NULL, watch, one) != 0) {
        sgm__process_kill(&one->process);
        return sgm_fail(SGM_ERROR_MEMORY, SHOWN ": the system refused a thread", one->command);
    }
    one->next = sgm__progress_of(trainer)->commands;
    sgm__progress_of(trainer)->commands = one;
    sgm__log(SGM_LOG_INFO, one->source, SHOWN " was started, after epoch %lld, iteration %lld", one->command,
             (long long)sgm__position_of(trainer)->epoch, (long long)sgm__position_of(trainer)->iteration);
    return SGM_OK;
}

static sgm_status start_words(sgm_trainer *trainer, const char *command, char *const *words)
{
    rule_command *one = sgm__calloc(1, sizeof *one);
    if (one == NULL)
        return SGM_ERROR_MEMORY;
    one->output = -1;
    one->seconds = sgm__settings_of(trainer)->command_seconds;
    one->source = sgm__strdup(sgm_trainer_name(trainer));
    one->command = sgm__strdup(command);
    sgm_status status =
        one->source != NULL && one->command != NULL ? start(trainer, one, words) : SGM_ERROR_MEMORY;
    if (status != SGM_OK)
        free_command(one);
    return status;
}

sgm_status sgm__rule_command_start(sgm_trainer *trainer, const char *command)
{
    char **words;
    if (sgm__journal_of(trainer)->replay != NULL) {
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer), SHOWN " is left out: this is a replay", command);
        return SGM_OK;
    }
    if (sgm__settings_of(trainer)->command_seconds <= 0) /* a hook that came another way than attached */
        return sgm_fail(SGM_ERROR_STATE, SHOWN ": this training does not allow commands", command);
    if (clear_ended(trainer, false) >= MAXIMUM_RUNNING)
        return sgm_fail(SGM_ERROR_STATE, SHOWN " is left out: %d commands are running", command,
                        MAXIMUM_RUNNING);
    SGM_TRY(sgm__command_words(command, &words));
    sgm_status status = start_words(trainer, command, words);
    sgm__command_words_free(words);
    return status;
}

void sgm__rule_commands_end(sgm_trainer *trainer)
{
    if (sgm__progress_of(trainer)->commands == NULL)
        return;
    sgm__give_way_begin();
    clear_ended(trainer, true);
    sgm__give_way_end();
}
