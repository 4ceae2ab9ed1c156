/* Hooks: code that runs at chosen moments of a training, on chosen values.
 *
 *     static sgm_status print_cost(void *self, sgm_hook_call *call)
 *     {
 *         double cost;
 *         if (sgm_hook_number(call, "optimiser.loss", &cost) == SGM_OK)
 *             printf("%lld: %g\n", (long long)call->iteration, cost);
 *         return SGM_OK;
 *     }
 *     static const sgm_hook_type printer = {.api = SGM_HOOK_API, .name = "printer", .invoke = print_cost};
 *     static const char *const wanted[] = {"optimiser.loss", NULL};
 *     sgm_trainer_hook(trainer, sgm_hook_create(&printer, NULL, .when = sgm_every(100, SGM_ITERATION),
 *                                               .reads = wanted));
 *
 * Hooks due at one event run by priority, but after those that they require. A background hook runs on a
 * thread of its own with copies of just what it reads, and must not wait for its trainer: reading that one's
 * registry, or saving it, is SGM_ERROR_STATE there. Background hooks that depend on each other share one
 * thread and run in order.
 */
#ifndef SIGMA_HOOK_H
#define SIGMA_HOOK_H

#include <sigma/criteria.h>
#include <sigma/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SGM_HOOK_API 1

typedef struct sgm_hook sgm_hook; /* reference-counted */
typedef struct sgm_trainer sgm_trainer;

/* What a hook sees of the training while it runs; valid until it returns. */
typedef struct sgm_hook_call {
    sgm_registry *registry; /* of the trainer; for a background hook a copy of what it reads */
    const char *trainer;
    sgm_time_scale scale; /* of the event */
    int64_t epoch, iteration;
    bool background;
    void *control; /* for the sgm_hook_request functions */
} sgm_hook_call;

/* A static table: it outlives its hooks. invoke() and the state functions of one hook are called by one
 * thread at a time. */
typedef struct sgm_hook_type {
    uint32_t api; /* SGM_HOOK_API */
    const char *name, *doc;
    sgm_status (*invoke)(void *self, sgm_hook_call *call);
    /* Whether two hooks of this type do the same: of equal hooks only one is attached. NULL: the same self.
     * Must not call the trainer. */
    bool (*equal)(const void *self, const void *other);
    /* What must survive a resume, as numbers. `numbers` NULL: only *count; else there is room for *count.
     * NULL functions: nothing. */
    sgm_status (*get_state)(void *self, double *numbers, size_t *count);
    sgm_status (*set_state)(void *self, const double *numbers, size_t count);
    void (*free)(void *self);
    /* A self of its own for each worker that a local hook runs for; returns NULL on failure. NULL function:
     * all workers share one self, and their calls take turns. */
    void *(*copy)(const void *self);
    /* Why a hook of this type cannot be local, as the end of "hook 'save' cannot be local: "; NULL: it can.
     */
    const char *only_global;
    /* Whether what it is told to do can be done, as far as that is known before the first iteration; an error
     * ends the run before it begins. It changes and asks for nothing. NULL: nothing can be known. */
    sgm_status (*check)(void *self, sgm_hook_call *call);
} sgm_hook_type;

typedef enum sgm_hook_failure {
    SGM_HOOK_DETACH, /* log what failed, and take the hook off (default) */
    SGM_HOOK_STOP,   /* stop the run with the hook's error */
    SGM_HOOK_GO_ON   /* log it, call again next time */
} sgm_hook_failure;

#define SGM_MAX_REQUIRED_HOOKS 8
typedef struct sgm_hook_options {
    size_t struct_size;
    sgm_time_step when; /* default: every iteration */
    /* When it is due, it runs only if they hold; taken over. NULL: always, so see first whether they could be
     * made. */
    sgm_criteria *only_if;
    /* Identifiers, NULL at the end; copied; those of only_if come by themselves. In the second epoch that a
     * foreground hook is due in, the log warns of those that nothing matches. */
    const char *const *reads;
    sgm_hook
        *requires_hooks[SGM_MAX_REQUIRED_HOOKS]; /* run before it, and are attached with it; taken over */
    int32_t priority;                            /* smaller first; default 0 */
    bool background;
    /* Seconds: a foreground hook that takes longer is moved to the background, with those that require it; so
     * it has to name all that it reads. 0: none. */
    double time_limit;
    sgm_hook_failure failure;
    /* Runs once for each worker of an operator (operator.h), with what that worker has: its registry, its
     * `shared`, counts and criteria of its own. Without an operator there is one worker, the trainer. */
    bool local;
} sgm_hook_options;
/* Takes over `self` (freed by the type's function, once, also on failure), criteria and required hooks. */
#define sgm_hook_create(type, ...) SGM_HOOK_CREATE(type, __VA_ARGS__, )
#define SGM_HOOK_CREATE(type, self, ...)                                                                     \
    sgm_hook_create_options(type, self, SGM_OPTIONS(sgm_hook_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_hook_create_options(const sgm_hook_type *type, void *self,
                                          const sgm_hook_options *options);
/* One more hook that runs before `hook` and is attached with it; `required` is taken over, also on failure.
 * Refused: circles, and a hook that was attached before. */
SGM_API sgm_status sgm_hook_require(sgm_hook *hook, sgm_hook *required);
/* Makes a hook local, with those that it requires; before it is attached, and if its type can be. Returns the
 * hook; on failure NULL, and the hook is let go. */
SGM_API sgm_hook *sgm_hook_make_local(sgm_hook *hook);
SGM_API sgm_hook *sgm_hook_retain(sgm_hook *hook);
SGM_API void sgm_hook_free(sgm_hook *hook); /* drops one reference */
SGM_API const char *sgm_hook_name(const sgm_hook *hook);
SGM_API void *sgm_hook_self(sgm_hook *hook);
/* Its only_if, for sgm_criteria_toggle and sgm_criteria_hold; NULL: none. It belongs to the hook. */
SGM_API sgm_criteria *sgm_hook_criteria(sgm_hook *hook);

/* A hook that is attached to a trainer. */
typedef struct sgm_attached_hook {
    char *name;      /* "early_stopper#2", "local accumulator#1": no other one has it */
    char *when;      /* "every 2 epochs" */
    char *condition; /* "" : none */
    char *text;      /* that it was parsed from; "": a program made it */
    bool background;
    int64_t due, runs; /* how often its time had come, and how often its condition held then */
    double seconds;    /* of a run, on average */
} sgm_attached_hook;
SGM_API void sgm_attached_hooks_free(sgm_attached_hook *list, size_t count);

/* For invoke(): values by identifier ("optimiser.loss"); one that is not there is SGM_ERROR_NOT_FOUND.
 */
SGM_API sgm_status sgm_hook_number(sgm_hook_call *call, const char *identifier, double *value);
SGM_API sgm_status sgm_hook_get(sgm_hook_call *call, const char *identifier, sgm_content *content);
/* The trainer, to evaluate, predict, or read its states in between two iterations; NULL in the background. */
SGM_API sgm_trainer *sgm_hook_trainer(const sgm_hook_call *call);
/* Where hooks leave results for one another and for whoever watches: "shared.NAME". */
SGM_API sgm_status sgm_hook_share(sgm_hook_call *call, const char *name, sgm_content content);
/* What a hook may ask for; done by the training's thread after the current iteration. Texts are copied. */
SGM_API sgm_status sgm_hook_request_stop(sgm_hook_call *call, const char *reason);
SGM_API sgm_status sgm_hook_request_pause(sgm_hook_call *call);
SGM_API sgm_status sgm_hook_request_reset(sgm_hook_call *call);
SGM_API sgm_status sgm_hook_request_save(sgm_hook_call *call, const char *name);
SGM_API sgm_status sgm_hook_request_set(sgm_hook_call *call, const char *identifier, sgm_content content);

#ifdef __cplusplus
}
#endif
#endif
