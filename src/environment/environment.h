/* The inside of an environment. Internal. */
#ifndef SGM_ENVIRONMENT_ENVIRONMENT_H
#define SGM_ENVIRONMENT_ENVIRONMENT_H

#include "base/base.h"
#include <pthread.h>
#include <sigma/search.h>

typedef struct sgm__owned_object {
    void *object;
    void (*release)(void *object);
} sgm__owned_object;

/* A trainer on its way through one run. */
typedef struct sgm__runner {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_run_options options;
    char *folder; /* its own; NULL: none */
    pthread_t thread;
    sgm_status status;
    char message[800];
} sgm__runner;

/* A trainer that came while others ran; env_branch.c. */
typedef struct sgm__env_branches {
    pthread_mutex_t adding; /* held while one is made, and while the run ends */
    bool open;              /* the run takes some; guarded by `adding` */
    sgm__runner **items;    /* that have not been joined; guarded by sgm__env_lock, as is: */
    size_t count, capacity;
} sgm__env_branches;

typedef struct sgm__shutdown {
    sgm_shutdown_function function;
    void *user;
} sgm__shutdown;

struct sgm_env {
    sgm_env *older; /* in the table of environments */
    char *name, *handler_name;
    uint64_t seed;
    int threads;
    sgm_dtype precision;
    sgm_registry *registry;
    sgm_handler *handler; /* made when it is needed first; in `objects` too */
    sgm__owned_object *objects;
    size_t object_count, object_capacity;
    sgm_trainer **trainers;
    size_t trainer_count, trainer_capacity;
    sgm_monitor **monitors;
    size_t monitor_count, monitor_capacity;
    size_t monitors_started;
    sgm__shutdown *shutdowns;
    size_t shutdown_count, shutdown_capacity;
    int64_t number;
    /* what follows is guarded by sgm__env_lock */
    sgm_status status;
    char message[800];    /* written once, with the status */
    bool running;         /* by sgm_run or in the background: trainers and monitors stay those they are */
    bool in_background;   /* until somebody has waited */
    bool awaited;         /* somebody waits */
    sgm_search *search;   /* that runs; NULL: none */
    sgm__runner *runners; /* of the run; stay while `running` */
    size_t runner_count;
    bool several; /* runners have folders of their own below the run's */
    sgm__env_branches branches;
    /* of the run in the background; the last two are its thread's until it was joined */
    pthread_t background;
    sgm_status background_status;
    char background_message[800];
};

/* --- env_status.c --- */
void sgm__env_lock(void);
void sgm__env_unlock(void);
/* Keeps the thread's newest error, with the environment's name in front, unless there is one already. */
sgm_status sgm__env_keep(sgm_env *env, sgm_status status);
/* The environment's first failure, again as this thread's newest; SGM_OK if there is none. */
sgm_status sgm__env_check(const sgm_env *env);
/* False, with an error, while its trainers run: a new `what` would disturb them. */
bool sgm__env_is_free(const sgm_env *env, const char *what);

/* env_life.c: the table of environments; monitors that have not begun yet do; the functions of the end. */
void sgm__env_enter(sgm_env *env);
void sgm__env_leave(sgm_env *env);
sgm_status sgm__env_start_monitors(sgm_env *env);
/* Monitors let go of a trainer, or of all and of the environment. */
void sgm__env_hide_trainer(const sgm_env *env, sgm_trainer *trainer);
void sgm__env_leave_monitors(const sgm_env *env);
void sgm__env_shut_down(sgm_env *env);
/* env_run.c: stops what runs in the background, and waits for it. */
void sgm__env_end(sgm_env *env);

/* Gives `object` to the environment, which frees it before everything that it was given earlier. On failure
 * the object is freed at once. */
sgm_status sgm__env_own(sgm_env *env, void *object, void (*release)(void *object));
/* A trainer also while the environment is running, and the end of one; by one thread at a time. */
sgm_status sgm__env_add_trainer(sgm_env *env, const char *name, bool unscheduled, sgm_trainer **added);
/* In two steps: one that nobody knows of yet, and which is the caller's; then it is the environment's, also
 * on failure. */
sgm_status sgm__env_make_trainer(sgm_env *env, const char *name, sgm_trainer **made);
sgm_status sgm__env_enter_trainer(sgm_env *env, sgm_trainer *trainer);
void sgm__env_drop_trainer(sgm_env *env, sgm_trainer *trainer);
/* env_run.c: tells monitors how many trainers run side by side. */
void sgm__env_expect(const sgm_env *env, size_t trainers);
/* env_branch.c: for monitors; `env` is the environment. */
struct sgm__branch_request;
sgm_status sgm__env_branch(void *env, sgm_trainer *from, const struct sgm__branch_request *request);
/* The run takes branches from here on; until all trainers have ended, those that came too. */
void sgm__env_open_branches(sgm_env *env);
void sgm__env_end_branches(sgm_env *env);
void sgm__env_free_branches(sgm_env *env);
/* env_run.c: nothing else runs until the end of the search; `search` is what sgm_stop ends. */
sgm_status sgm__env_begin_search(sgm_env *env, sgm_search *search);
void sgm__env_end_search(sgm_env *env);
/* search_run.c: no more trials, and those that run stop; any thread. */
void sgm__search_stop(sgm_search *search);
/* 1, 2, ...: for the names of what nobody named. */
int64_t sgm__env_number(sgm_env *env);
uint64_t sgm__env_seed(const sgm_env *env);

#endif
