/* Branches: trainers that are added while others run, each going on from a checkpoint with some values set
 * differently.
 *
 * The web monitor asks for them through sgm__monitor_host (sgm__env_branch), rules through their trainer
 * (src/runs/branch_beside.c). env_run.c opens a run to branches and ends it with sgm__env_end_branches. A
 * branch is made completely on the asking thread, with `branches.adding` held: runner, trainer, parts,
 * checkpoint, values; then a thread is started that runs it. From then on it is in `branches.items`, so that
 * sgm_env_stop reaches it, until the run has joined it. The invariant is that `adding` excludes the end of
 * the run: a branch starts only in a run that will wait for it. */
#include "control/control.h"
#include "environment/environment.h"
#include "journal/changes.h"
#include "journal/run_lines.h"
#include "loop/trainer_run.h"
#include "monitors/monitor.h"
#include "runs/branch_beside.h"
#include "runs/origin.h"
#include "runs/trainer_copy.h"
#include "show/show.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"

#include <stdio.h>

/* Limit for the size of config.yaml in bytes, which people write. */
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

/* Waits for a branch and frees its runner. The branch remains in the list until its thread has ended, so
 * that a stop reaches it while it is being waited for. The index is searched after the join, as the list
 * may have changed meanwhile. */
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

/* Joins branch after branch. The run is over, and closed to branches, when the list is found empty while
 * `adding` is held: no branch is then being made. Joining happens outside of the locks, so that branches
 * can be added meanwhile. */
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

/* The thread of one branch. A failure is only logged: it neither stops other trainers nor becomes the
 * environment's. */
static void *run_branch(void *argument)
{
    sgm__runner *runner = argument;
    runner->status = sgm__trainer_run_reserved(runner->trainer, &runner->options);
    if (runner->status != SGM_OK && runner->status != SGM_ERROR_INTERRUPTED)
        sgm__log(SGM_LOG_ERROR, sgm_trainer_name(runner->trainer), "the branch has failed: %s",
                 sgm_last_error());
    return NULL;
}

/* With sgm__env_lock. The runner of a trainer in the current run, whether it began with the run or is a
 * branch; NULL: the trainer does not run with the environment. */
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

/* The branch's folder. In a run of several trainers, FOLDER/A has the sibling FOLDER/NAME; the single
 * trainer of a run in FOLDER has the sibling FOLDER-NAME. The caller frees it. */
static char *folder_beside(const char *folder, bool several, const char *name)
{
    const char *slash = strrchr(folder, '/');
    if (!several)
        return sgm__format("%s-%s", folder, name);
    return slash != NULL ? sgm__format("%.*s/%s", (int)(slash - folder), folder, name) : sgm__strdup(name);
}

/* Refuses a folder with a checkpoint: it belongs to another run, which must not be overwritten. */
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

/* A branch in the making. */
typedef struct branching {
    sgm_env *env;
    sgm_trainer *from;
    const sgm__branch_request *request;
    char *folder;        /* run folder of `from`; NULL: none */
    sgm__runner *runner; /* freed by `undo`, or by `join` once the branch has started */
    bool entered;        /* the environment owns the trainer: `undo` must not free it */
} branching;

/* With sgm__env_lock. Copies the options of the run of `from`: same end, same checkpoints. `resume` is
 * off, because the branch's state comes from the checkpoint that set_up loads. */
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

/* Decides on options and folder before anything expensive is made. */
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

/* Copies config.yaml, if the folder of `from` has one, into the branch's folder. The command `sigma train`
 * writes that file and resumes a run by it, so that it can resume the branch as well. */
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

/* Sets one value through the command "set" of the control socket, so that it is parsed and checked as a
 * person's. The journal has it in the line of the branch's beginning (src/runs/origin.h). */
static sgm_status set_value(sgm_trainer *trainer, const sgm__branch_request *branch, const char *identifier,
                            const char *value)
{
    const sgm__control_call call = {.trainer = trainer, .who = branch->who, .role = SGM__ROLE_ADMIN};
    json_t *answer = json_object(),
           *request = json_pack("{s:s, s:s, s:s, s:s*}", "command", "set", "identifier", identifier, "value",
                                value, "reason", branch->reason);
    sgm_status status =
        request != NULL ? sgm__control_obey(&call, request, answer)
                        : sgm_fail(SGM_ERROR_FORMAT, "the value of '%.100s' is no text in UTF-8", identifier);
    json_decref(request);
    json_decref(answer);
    return status;
}

/* Gives the trainer the parts of `from`, the checkpoint's state, and the requested values. The values come
 * last, since the checkpoint has values of its own. States have to be in the registry before they can be
 * set. */
static sgm_status set_up(const branching *b)
{
    sgm_trainer *trainer = b->runner->trainer;
    const sgm__branch_request *request = b->request;
    SGM_TRY(sgm__trainer_copy_setup(trainer, b->from));
    SGM_TRY(sgm_trainer_load(trainer, request->checkpoint));
    SGM_TRY(sgm__trainer_publish_states(trainer));
    /* The seconds of metrics continue from where the training was at the checkpoint. */
    if (b->folder != NULL) /* for the axis of seconds: how long the training had been running there */
        sgm__progress_of(trainer)->running_time = sgm__run_folder_seconds(trainer, b->folder);
    for (size_t i = 0; i < request->count; i++)
        SGM_TRY(set_value(trainer, request, request->identifiers[i], request->values[i]));
    SGM_TRY(sgm_trainer_status(trainer));
    SGM_TRY(sgm__origin_note(trainer, b->from, request));
    sgm__log(SGM_LOG_INFO, request->name, "branches off '%s' after epoch %lld, iteration %lld",
             sgm_trainer_name(b->from), (long long)sgm__position_of(trainer)->epoch,
             (long long)sgm__position_of(trainer)->iteration);
    return SGM_OK;
}

/* Reserves the trainer and starts its thread, all with sgm__env_lock, so that sgm_env_stop sees either no
 * branch or one that can be stopped. Then monitors hear of the new number of trainers. */
static sgm_status start(sgm_env *env, sgm__runner *runner)
{
    sgm__env_branches *branches = &env->branches;
    sgm__env_lock();
    sgm_status status =
        sgm__reserve(&branches->items, &branches->capacity, branches->count + 1, sizeof(sgm__runner *));
    if (status == SGM_OK)
        status = sgm__trainer_reserve(runner->trainer, runner->options.paused);
    if (status == SGM_OK && pthread_create(&runner->thread, NULL, run_branch, runner) != 0) {
        sgm__control_end(sgm__control_of(runner->trainer));
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

/* Frees what was made, and keeps the error message of the failure, which freeing may overwrite. */
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

/* The phases of a branch, with `adding` held. The trainer is shown to monitors (sgm__env_enter_trainer)
 * only when everything that is likely to fail has succeeded. */
static sgm_status add(branching *b)
{
    if (!b->env->branches.open)
        return sgm_fail(SGM_ERROR_STATE, "%s does not run now, so nothing would train a branch",
                        b->env->name);
    SGM_TRY(plan(b));
    SGM_TRY(sgm__env_make_trainer(b->env, b->request->name, &b->runner->trainer));
    sgm__membership_of(b->runner->trainer)->branched = true;
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

/* Has the journal of `from` tell of its branch. The branch runs by now, so a failure is only a warning. */
static void tell(sgm_trainer *from, const sgm__branch_request *request)
{
    sgm_status status = sgm__trainer_enter(from);
    if (status == SGM_OK) {
        status = sgm__branch_tell(from, request);
        sgm__trainer_unlock(from);
    }
    if (status != SGM_OK)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(from), "the journal does not tell of the branch '%s': %s",
                 request->name, sgm_last_error());
}

/* Any thread, but with no trainer's lock: loading a checkpoint takes time and takes locks of both
 * trainers. */
sgm_status sgm__env_branch(void *env, sgm_trainer *from, const sgm__branch_request *request)
{
    branching b = {.env = env, .from = from, .request = request};
    pthread_mutex_lock(&b.env->branches.adding);
    sgm_status status = add(&b);
    if (status != SGM_OK)
        undo(&b, status);
    pthread_mutex_unlock(&b.env->branches.adding);
    if (status == SGM_OK)
        tell(from, request);
    sgm__free(b.folder);
    return status;
}
