/* The struct behind sgm_env, and what the files of this folder share.
 *
 * env.c makes environments and what they own; env_life.c has the table of all environments, preparation and
 * the end; env_run.c runs trainers side by side; env_branch.c adds trainers to a run; env_status.c keeps the
 * first failure; search*.c run many trials one after the other.
 *
 * Threads: an environment is set up by one thread at a time, which no lock guards. What other threads may
 * ask or do while it runs (status, stop, branches) is guarded by one lock for all environments,
 * sgm__env_lock. It is held briefly: neither a step nor a join happens under it. Lock order:
 * branches.adding, then sgm__env_lock. Internal. */
#ifndef SGM_ENVIRONMENT_ENVIRONMENT_H
#define SGM_ENVIRONMENT_ENVIRONMENT_H

#include "base/base.h"
#include "handlers/program.h"
#include <pthread.h>
#include <sigma/environment.h>

/* An object that goes with the environment, and the function that frees it. */
typedef struct sgm__owned_object {
    void *object;
    void (*release)(void *object);
} sgm__owned_object;

/* One trainer's part of one run: the options for it, its thread and how it has ended. The fields `status`
 * and `message` are written by the trainer's thread and read after it was joined. */
typedef struct sgm__runner {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_run_options options;
    char *folder; /* its run folder, which `options.folder` points to; NULL: none */
    pthread_t thread;
    sgm_status status;
    char message[800];
} sgm__runner;

/* The trainers that were added by branches while others ran; see env_branch.c. They are runners of their
 * own, each on a thread, and outlive the trainers that they were branched from. */
typedef struct sgm__env_branches {
    /* Held while a branch is made, and while the run decides whether it has ended. */
    pthread_mutex_t adding;
    bool open; /* the run accepts branches; guarded by `adding` */
    /* Those that have not been joined yet, in no order; guarded by sgm__env_lock, with `count` and
     * `capacity`. */
    sgm__runner **items;
    size_t count, capacity;
} sgm__env_branches;

/* A function that sgm_env_on_shutdown has registered. */
typedef struct sgm__shutdown {
    sgm_shutdown_function function;
    void *user;
} sgm__shutdown;

/* `objects` has everything that the environment frees, in the order of creation: trainers, monitors,
 * models, the handler. The arrays `trainers` and `monitors` point to some of them. */
struct sgm_env {
    sgm_env *older; /* next environment in the table of env_life.c; guarded by sgm__env_lock */
    char *name, *handler_name;
    uint64_t seed;
    int threads;
    sgm_dtype precision;
    sgm__memory_budget memory; /* of a training step */
    sgm_registry *registry;
    /* Made when it is first needed; freed as one of `objects`. */
    sgm_handler *handler;
    sgm__owned_object *objects;
    size_t object_count, object_capacity;
    sgm_trainer **trainers;
    size_t trainer_count, trainer_capacity;
    sgm_monitor **monitors;
    size_t monitor_count, monitor_capacity;
    size_t monitors_started; /* the first so many of `monitors` have had their `start` */
    sgm__shutdown *shutdowns;
    size_t shutdown_count, shutdown_capacity;
    int64_t number; /* of names given so far, see sgm__env_number */
    /* From here to `branches`, members are guarded by sgm__env_lock. The first failure, and its message,
     * which is written once, together with the status. */
    sgm_status status;
    char message[800];
    /* In sgm_env_run, in a run in the background or in a search: the program can add neither trainers nor
     * monitors. */
    bool running;
    /* sgm_env_run_background has succeeded and sgm_env_wait has not returned yet. */
    bool in_background;
    bool awaited;         /* a thread is in sgm_env_wait */
    sgm_search *search;   /* the search that runs; NULL: none */
    sgm__runner *runners; /* of the current run; constant while `running` */
    size_t runner_count;
    bool several; /* runners have folders of their own below the run's folder */
    sgm__env_branches branches;
    /* The run in the background. The status and the message belong to its thread until that was joined. */
    pthread_t background;
    sgm_status background_status;
    char background_message[800];
};

/* --- env_status.c --- */
void sgm__env_lock(void);
void sgm__env_unlock(void);
/* Records a failure: the thread's newest error becomes the environment's, with the environment's name in
 * front, unless there is an earlier one. SGM_OK and SGM_ERROR_INTERRUPTED are not recorded. Returns
 * `status`. */
sgm_status sgm__env_keep(sgm_env *env, sgm_status status);
/* Returns the environment's own first failure, and makes it this thread's newest error. SGM_OK: none. */
sgm_status sgm__env_check(const sgm_env *env);
/* Returns false, with an error, while trainers run: adding a `what` ("trainer", "monitor") would disturb
 * them. */
bool sgm__env_is_free(const sgm_env *env, const char *what);

/* Adds to and removes from the table of environments (env_life.c). */
void sgm__env_enter(sgm_env *env);
void sgm__env_leave(sgm_env *env);
/* Calls `start` of each monitor that has not been started yet. */
sgm_status sgm__env_start_monitors(sgm_env *env);
/* Detaches all monitors from one trainer. */
void sgm__env_hide_trainer(const sgm_env *env, sgm_trainer *trainer);
/* Calls `finish` of all monitors, which may wait for people, then detaches them from all trainers. */
void sgm__env_leave_monitors(const sgm_env *env);
/* Calls the functions of sgm_env_on_shutdown, newest first. */
void sgm__env_shut_down(sgm_env *env);
/* Stops the run in the background, if there is one, and waits for its end (env_run.c). */
void sgm__env_end(sgm_env *env);

/* Hands `object` to the environment, which frees it before all objects that it was given earlier. On
 * failure the object is freed at once. */
sgm_status sgm__env_own(sgm_env *env, void *object, void (*release)(void *object));
/* Makes a trainer and adds it to the environment, also while the environment is running a search.
 * `unscheduled`: sgm_env_run does not run the trainer. To be called by one thread at a time. */
sgm_status sgm__env_add_trainer(sgm_env *env, const char *name, bool unscheduled, sgm_trainer **added);
/* The two halves of sgm__env_add_trainer. After the first the trainer is the caller's and nobody else
 * knows of it. The second hands it to the environment, which frees it on failure, and shows it to
 * monitors. */
sgm_status sgm__env_make_trainer(sgm_env *env, const char *name, sgm_trainer **made);
sgm_status sgm__env_enter_trainer(sgm_env *env, sgm_trainer *trainer);
/* Takes a trainer from monitors, registry and environment, and frees it; by the same thread as the others. */
void sgm__env_drop_trainer(sgm_env *env, sgm_trainer *trainer);
/* Tells all monitors how many trainers run side by side (env_run.c). */
void sgm__env_expect(const sgm_env *env, size_t trainers);
struct sgm__branch_request;
/* The function `branch` of sgm__monitor_host; `env` is the sgm_env (env_branch.c). */
sgm_status sgm__env_branch(void *env, sgm_trainer *from, const struct sgm__branch_request *request);
/* A run accepts branches from sgm__env_open_branches on. sgm__env_end_branches waits for the end of all of
 * them, also of those that are added meanwhile, and closes the run to further ones. sgm__env_free_branches
 * is for the end of the environment. */
void sgm__env_open_branches(sgm_env *env);
void sgm__env_end_branches(sgm_env *env);
void sgm__env_free_branches(sgm_env *env);
/* Marks the environment as running `search`, so that nothing else runs and sgm_env_stop ends the search. */
sgm_status sgm__env_begin_search(sgm_env *env, sgm_search *search);
void sgm__env_end_search(sgm_env *env);
/* Starts no more trials and stops the running ones; any thread (search_run.c). */
void sgm__search_stop(sgm_search *search);
/* The next of the numbers 1, 2, ..., for the names of objects without one. */
int64_t sgm__env_number(sgm_env *env);
uint64_t sgm__env_seed(const sgm_env *env);

#endif
