/* Workers of an operator: what each has, and gradients on their way from them to the update. Internal. */
#ifndef SGM_PARALLEL_WORKERS_WORKERS_H
#define SGM_PARALLEL_WORKERS_WORKERS_H

#include "base/base.h"
#include "handlers/session.h"
#include "hooks/hooks.h"
#include "trainer/strategy.h"
#include <sigma/data.h>
#include <sigma/handler.h>
#include <sigma/operator.h>
#include <sigma/persistence.h>

/* Names of gradients as outputs of a worker (where workers sum among themselves: states), then the
 * parameter's; as inputs of the update, then the worker's number and the parameter's name. */
#define SGM__PART_PREFIX "trainer.part."

struct sgm__ranks;
typedef struct sgm__worker {
    sgm_operator *parallel;
    int32_t number;
    sgm_handler *handler;
    sgm_trainer *replica;
    sgm_registry *results; /* of its hooks, as the trainer shows them: operator.local.N.shared */
    pthread_t thread;
    pthread_cond_t wake;
    bool started, busy, quit; /* guarded by the operator's lock */
    sgm_status (*task)(struct sgm__worker *worker);
    sgm_program *program; /* to run: inputs are fed */
    int64_t examples;     /* of the newest task; 0: it had none */
    sgm_status status;    /* how that ended */
    char message[768];
    bool sums;      /* with others: it has come so far */
    bool follows;   /* it failed after another one had; guarded by the operator's lock */
    double seconds; /* spent computing in this run */
    /* The program runs in pieces: up to each sum that it makes with other workers amid its steps, and then,
     * with ranks, to where each bucket of gradients is complete. */
    int32_t *ends; /* steps */
    size_t end_count, end_capacity;
    const sgm_program *reduces; /* that the sums are of (operator_reduce.c) */
    sgm__program_sum *reductions;
    size_t reduction_count, reduction_capacity;
    double *reduced; /* what this worker adds to the newest one */
    size_t reduced_capacity;
    const sgm_program *cut; /* that the ends of buckets are of */
    size_t pieces;          /* buckets done of the newest run; guarded by the operator's lock */
    /* Where gradients lie: outputs of `from`, in the order of the operator's names. */
    const sgm_program *from;
    int32_t *outputs;
    size_t output_capacity;
    sgm__text name;
    /* What is summed with other workers, in the order of the operator's names; none: not found yet. */
    sgm__addend *addends;
    size_t addend_count, addend_capacity;
    sgm_dtype dtype;
} sgm__worker;

/* What the update takes of one worker, of this or another rank. */
typedef struct sgm__update_part {
    const sgm_program *to; /* whose inputs these are, in the order of the operator's names */
    int32_t *inputs;
    size_t capacity;
} sgm__update_part;

/* Copies of local hooks: one for each worker. */
typedef struct sgm__local_hook {
    sgm_hook *hook;                         /* as the program made it */
    sgm_hook *copies[SGM__MAXIMUM_WORKERS]; /* NULL: not made yet */
} sgm__local_hook;

struct sgm_operator {
    bool merges_gradients; /* in each iteration; else parameters */
    char *handlers;
    int32_t threads, count;
    int64_t every;
    sgm_reducer *reducer;
    struct sgm__ranks *ranks; /* NULL: the workers are of this process alone */
    sgm_trainer *trainer;     /* NULL: not given to one yet */
    sgm__worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t done;
    int32_t pending;   /* workers that run */
    bool synchronised; /* the replicas go on from the trainer's states */
    bool changed;      /* the trainer's states are older than the workers' */
    bool at_end;       /* parameters: the epoch gave its last minibatch */
    /* Gradients: the workers sum them among themselves, and each makes the update (operator_peers.c). */
    bool together, joined;
    bool gave_up; /* a worker has failed in the newest task; guarded by the lock */
    bool ended;   /* a worker has done it; guarded by the lock */
    /* Sums amid programs (operator_reduce.c); guarded by the lock. */
    int32_t waiting;    /* workers that have come to the next one */
    uint64_t sums_made; /* so many */
    pthread_cond_t summed;
    double *sum; /* the newest one, until all have come to the next */
    size_t sum_capacity;
    int64_t whole;         /* gradients: examples of the newest minibatch, of all workers of all ranks */
    sgm__peer_place place; /* of the first worker among all */
    /* Of the newest program of gradients. */
    char **names;
    size_t name_count;
    bool random;
    sgm__update_part *parts; /* operator_parts.c */
    size_t part_count, part_capacity;
    sgm__text part_name;
    pthread_mutex_t hook_lock;
    sgm__local_hook *hooks;
    size_t hook_count, hook_capacity;
};

/* --- operator_gradients.c --- */
/* Gradient `index` of a worker's newest run, in *memory or, where that is not the computer's, in a tensor,
 * which is the caller's. */
sgm_status sgm__worker_gradient(sgm__worker *worker, size_t index, const void **memory, sgm_tensor **copy);
/* After how many steps that gradient is complete. */
sgm_status sgm__worker_gradient_ready(sgm__worker *worker, size_t index, int32_t *steps);
/* Feeds the gradients of a worker's newest run to `apply`, which is the trainer's update. */
sgm_status sgm__worker_pass_gradients(sgm__worker *worker, const sgm_trainer *trainer, sgm_program *apply);

/* --- operator_parts.c --- */
/* What the update takes as gradient `index` of a part: from memory on the host, which stays until the update
 * has run, or `value`. */
sgm_status sgm__feed_part(sgm_operator *parallel, size_t part, sgm_program *apply, size_t index,
                          const void *memory, const sgm_tensor *value);
void sgm__forget_update_parts(sgm_operator *parallel); /* programs may be others, or the names */
void sgm__free_update_parts(sgm_operator *parallel);

#endif
