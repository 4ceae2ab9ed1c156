/* Trainers that come while others run: branches off a checkpoint, with some values set otherwise. */
#include "control/control.h"
#include "environment/environment.h"
#include "journal/changes.h"
#include "journal/run_lines.h"
#include "loop/trainer_run.h"
#include "monitors/monitor.h"
#include "runs/trainer_copy.h"
#include "show/show.h"
#include "train/train.h"

#include <stdio.h>

#define LARGEST_DESCRIPTION (1 << 20)

void sgm__env_open_branches(sgm_env *env)
{
    pthread_mutex_lock(&env->branches.adding);
    env->branches.open = true;
    pthread_mutex_unlock(&env->branches.adding);
}

static void free_runner(sgm__runner *runner)
{
    sgm__free(runner->folder);
    sgm__free(runner);
}

/* Until then it is among those that are stopped. */
static void join(sgm__env_branches *branches, sgm__runner *runner)
{
    pthread_join(runner->thread, NULL);
    sgm__env_lock();
    size_t i = 0;
    while (branches->items[i] != runner)
        i++;
    branches->items[i] = branches->items[--branches->count];
    sgm__env_unlock();
    free_runner(runner);
}

/* The run is over when there is none left while nobody adds one. */
void sgm__env_end_branches(sgm_env *env)
{
    sgm__env_branches *branches = &env->branches;
    for (bool over = false; !over;) {
        pthread_mutex_lock(&branches->adding);
        sgm__env_lock();
        sgm__runner *next = branches->count > 0 ? branches->items[0] : NULL;
        sgm__env_unlock();
        over = next == NULL;
        branches->open = !over;
        pthread_mutex_unlock(&branches->adding);
        if (next != NULL)
            join(branches, next);
    }
}

void sgm__env_free_branches(sgm_env *env)
{
    sgm__free(env->branches.items);
    pthread_mutex_destroy(&env->branches.adding);
}

/* --- making one --- */

/* Its failure is its own: it stops nobody, and the run goes on. */
static void *run_branch(void *argument)
{
    sgm__runner *runner = argument;
    runner->status = sgm__trainer_run_reserved(runner->trainer, &runner->options);
    if (runner->status != SGM_OK && runner->status != SGM_ERROR_INTERRUPTED)
        sgm__log(SGM_LOG_ERROR, sgm_trainer_name(runner->trainer), "the branch has failed: %s",
                 sgm_last_error());
    return NULL;
}

/* With sgm__env_lock: the run of a trainer, NULL: it has none. */
static const sgm__runner *runner_of(const sgm_env *env, const sgm_trainer *trainer)
{
    for (size_t i = 0; i < env->runner_count; i++)
        if (env->runners[i].trainer == trainer)
            return &env->runners[i];
    for (size_t i = 0; i < env->branches.count; i++)
        if (env->branches.items[i]->trainer == trainer)
            return env->branches.items[i];
    return NULL;
}

/* A sibling of the folder: below the one of a run of several trainers, else with the name behind. */
static char *folder_beside(const char *folder, bool several, const char *name)
{
    const char *slash = strrchr(folder, '/');
    if (!several)
        return sgm__format("%s-%s", folder, name);
    return slash != NULL ? sgm__format("%.*s/%s", (int)(slash - folder), folder, name) : sgm__strdup(name);
}

static sgm_status check_folder(const char *folder)
{
    char *checkpoint = sgm__format("%s/" SGM__CHECKPOINT_FILE, folder);
    bool there = checkpoint != NULL && sgm__file_exists(checkpoint);
    sgm__free(checkpoint);
    return there
               ? sgm_fail(SGM_ERROR_STATE,
                          "the branch would write into '%s', which holds a run already; choose another name",
                          folder)
               : SGM_OK;
}

typedef struct branching {
    sgm_env *env;
    sgm_trainer *from;
    const sgm__branch_request *request;
    char *folder; /* of `from`; NULL: none */
    sgm__runner *runner;
    bool entered; /* its trainer is the environment's */
} branching;

/* The run that it shall have, as that of the first. With sgm__env_lock. */
static sgm_status copy_run(branching *b)
{
    const sgm__runner *own = runner_of(b->env, b->from);
    if (own == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' does not run with '%s' now, so it has no branches",
                        sgm_trainer_name(b->from), b->env->name);
    b->runner->env = b->env;
    b->runner->options = own->options;
    b->runner->options.resume = false;
    b->runner->options.paused = b->request->paused;
    if (own->folder == NULL)
        return SGM_OK;
    b->folder = sgm__strdup(own->folder);
    b->runner->folder = folder_beside(own->folder, b->env->several, b->request->name);
    b->runner->options.folder = b->runner->folder;
    return b->folder != NULL && b->runner->folder != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status plan(branching *b)
{
    b->runner = sgm__calloc(1, sizeof *b->runner);
    if (b->runner == NULL)
        return SGM_ERROR_MEMORY;
    sgm__env_lock();
    sgm_status status = copy_run(b);
    sgm__env_unlock();
    return status == SGM_OK && b->runner->folder != NULL ? check_folder(b->runner->folder) : status;
}

/* What else describes the run: with it, `sigma train` resumes the branch, too. */
static sgm_status copy_description(const branching *b)
{
    char *from = sgm__format("%s/config.yaml", b->folder), *text = NULL;
    char *to = sgm__format("%s/config.yaml", b->runner->folder);
    size_t length;
    sgm_status status = from != NULL && to != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && sgm__file_exists(from)) {
        status = sgm__file_read(from, LARGEST_DESCRIPTION, &text, &length);
        if (status == SGM_OK)
            status = sgm__make_folders(b->runner->folder);
        if (status == SGM_OK)
            status = sgm__file_write_atomic(to, text, length);
    }
    sgm__free(text);
    sgm__free(from);
    sgm__free(to);
    return status;
}

static sgm_status set_value(sgm_trainer *trainer, const char *who, const char *identifier, const char *value)
{
    const sgm__control_call call = {.trainer = trainer, .who = who};
    json_t *answer = json_object(), *request = json_pack("{s:s, s:s, s:s}", "command", "set", "identifier",
                                                         identifier, "value", value);
    sgm_status status =
        request != NULL ? sgm__control_obey(&call, request, answer)
                        : sgm_fail(SGM_ERROR_FORMAT, "the value of '%.100s' is no text in UTF-8", identifier);
    json_decref(request);
    json_decref(answer);
    return status;
}

static sgm_status set_up(const branching *b)
{
    sgm_trainer *trainer = b->runner->trainer;
    const sgm__branch_request *request = b->request;
    SGM_TRY(sgm__trainer_copy_setup(trainer, b->from));
    SGM_TRY(sgm_trainer_load(trainer, request->checkpoint));
    SGM_TRY(sgm__trainer_publish_states(trainer));
    if (b->folder != NULL) /* for the axis of seconds: how long the training had been running there */
        trainer->progress.running_time = sgm__run_folder_seconds(trainer, b->folder);
    for (size_t i = 0; i < request->count; i++)
        SGM_TRY(set_value(trainer, request->who, request->identifiers[i], request->values[i]));
    SGM_TRY(sgm_trainer_status(trainer));
    sgm__log(SGM_LOG_INFO, request->name, "branches off '%s' after epoch %lld, iteration %lld",
             sgm_trainer_name(b->from), (long long)trainer->position.epoch,
             (long long)trainer->position.iteration);
    return SGM_OK;
}

/* From here on it is stopped with the others. */
static sgm_status start(sgm_env *env, sgm__runner *runner)
{
    sgm__env_branches *branches = &env->branches;
    sgm__env_lock();
    sgm_status status =
        sgm__reserve(&branches->items, &branches->capacity, branches->count + 1, sizeof(sgm__runner *));
    if (status == SGM_OK)
        status = sgm__trainer_reserve(runner->trainer, runner->options.paused);
    if (status == SGM_OK && pthread_create(&runner->thread, NULL, run_branch, runner) != 0) {
        sgm__control_end(&runner->trainer->control);
        status = sgm_fail(SGM_ERROR_MEMORY, "the system refused a thread for trainer '%s'",
                          sgm_trainer_name(runner->trainer));
    }
    if (status == SGM_OK)
        branches->items[branches->count++] = runner;
    size_t count = env->runner_count + branches->count;
    sgm__env_unlock();
    if (status == SGM_OK)
        sgm__env_expect(env, count);
    return status;
}

/* The message stays that of the failure. */
static void undo(const branching *b, sgm_status status)
{
    char *message = sgm__strdup(sgm_last_error());
    if (b->runner != NULL && !b->entered)
        sgm__trainer_free(b->runner->trainer);
    if (b->runner != NULL)
        free_runner(b->runner);
    sgm_fail(status, "%s", message != NULL ? message : "no memory");
    sgm__free(message);
}

/* Nobody hears of a trainer that cannot be. */
static sgm_status add(branching *b)
{
    if (!b->env->branches.open)
        return sgm_fail(SGM_ERROR_STATE, "%s does not run now, so nothing would train a branch",
                        b->env->name);
    SGM_TRY(plan(b));
    SGM_TRY(sgm__env_make_trainer(b->env, b->request->name, &b->runner->trainer));
    b->runner->trainer->branched = true;
    SGM_TRY(set_up(b));
    if (b->folder != NULL)
        SGM_TRY(copy_description(b));
    b->entered = true;
    SGM_TRY(sgm__env_enter_trainer(b->env, b->runner->trainer));
    sgm_status status = start(b->env, b->runner);
    if (status != SGM_OK)
        sgm__env_drop_trainer(b->env, b->runner->trainer);
    return status;
}

sgm_status sgm__env_branch(void *env, sgm_trainer *from, const sgm__branch_request *request)
{
    branching b = {.env = env, .from = from, .request = request};
    pthread_mutex_lock(&b.env->branches.adding);
    sgm_status status = add(&b);
    if (status != SGM_OK)
        undo(&b, status);
    pthread_mutex_unlock(&b.env->branches.adding);
    sgm__free(b.folder);
    return status;
}
