/* Workers of an operator: the struct of each, the operator itself, and how gradients get from workers to the
 * update. Internal.
 *
 * The run's thread writes all members, unless a comment says that the operator's lock guards one; a worker's
 * thread reads them while it does a task, and writes the task's results. Files of src/parallel include
 * operator.h, which says what they call of each other. */
#ifndef SGM_PARALLEL_WORKERS_WORKERS_H
#define SGM_PARALLEL_WORKERS_WORKERS_H

#include "base/base.h"
#include "handlers/session.h"
#include "hooks/hooks.h"
#include "trainer/strategy.h"
#include <sigma/data.h>
#include <sigma/handler.h>
#include <sigma/operator.h>
#include <sigma/tensor.h>

/* What names of gradients begin with. The output of a worker that has a gradient (a state, where peers sum
 * among themselves) is called "trainer.part.PARAMETER"; the input of the update for a worker's gradient
 * "trainer.part.WORKER.PARAMETER". */
#define SGM__PART_PREFIX "trainer.part."

struct sgm__ranks;
typedef struct sgm__worker {
    sgm_operator *parallel;
    int32_t number;
    sgm_handler *handler;
    sgm_trainer *replica;
    sgm_registry *results; /* of the replica's hooks; the trainer shows it as operator.local.N.shared */
    pthread_t thread;
    pthread_cond_t wake;
    bool started, busy, quit; /* guarded by the operator's lock */
    sgm_status (*task)(struct sgm__worker *worker);
    sgm_program *program; /* the program that the worker runs next; its inputs are fed already */
    int64_t examples;     /* of the newest task; 0: the worker had no part of the minibatch */
    sgm_status status;    /* of the newest task */
    char message[768];
    bool sums;      /* the worker has begun to sum gradients with other peers */
    bool follows;   /* it failed after another worker had failed; guarded by the operator's lock */
    double seconds; /* that the worker has computed in this run */
    /* The program runs in pieces. A piece ends where a sum over all workers is made and, with ranks, where a
     * bucket of gradients is complete. */
    int32_t *ends; /* the number of steps up to the end of each piece */
    size_t end_count, end_capacity;
    const sgm_program *reduces; /* the program whose sums `reductions` describes (operator_reduce.c) */
    sgm__program_sum *reductions;
    size_t reduction_count, reduction_capacity;
    double *reduced; /* the numbers that this worker adds to the newest sum */
    size_t reduced_capacity;
    const sgm_program *cut; /* the program for which the ends of buckets were found */
    size_t pieces;          /* complete buckets of the newest run; guarded by the operator's lock */
    /* Places of the gradients among the outputs of the program `from`, in the order of the operator's names.
     */
    const sgm_program *from;
    int32_t *outputs;
    size_t output_capacity;
    sgm__text name;
    /* Memory that peers sum, in the order of the operator's names; empty: not found yet. */
    sgm__addend *addends;
    size_t addend_count, addend_capacity;
    sgm_dtype dtype;
} sgm__worker;

/* The places of one part's gradients among the inputs of the update. A part is a worker of this or another
 * rank. */
typedef struct sgm__update_part {
    const sgm_program *to; /* the update's program; inputs are in the order of the operator's names */
    int32_t *inputs;
    size_t capacity;
} sgm__update_part;

/* A local hook and its copies, one for each worker. */
typedef struct sgm__local_hook {
    sgm_hook *hook;                         /* that was attached */
    sgm_hook *copies[SGM__MAXIMUM_WORKERS]; /* NULL: not made yet */
} sgm__local_hook;

/* An operator: how one trainer shares its work out. It owns its workers, reducer, ranks and local hooks. */
struct sgm_operator {
    bool merges_gradients; /* gradients in each iteration; false: parameters in each `every`-th */
    char *handlers;
    int32_t threads, count;
    int64_t every;
    sgm_reducer *reducer;
    struct sgm__ranks *ranks; /* NULL: the workers are of this process alone */
    sgm_trainer *trainer;     /* whose work the operator shares out; NULL: none yet */
    sgm__worker *workers;
    pthread_mutex_t lock; /* guards what comments here and in sgm__worker say */
    pthread_cond_t done;  /* wakes the run's thread: a worker has ended its task or completed a bucket */
    int32_t pending;      /* workers whose task has not ended */
    bool synchronised;    /* the replicas go on from the trainer's states; false: they get them before an
                             iteration */
    bool changed;         /* the workers' states are newer than the trainer's */
    bool at_end;          /* merging parameters: the epoch has given its last minibatch */
    /* Peers: workers that sum gradients among themselves, and each make the update (operator_peers.c). */
    bool together, joined; /* workers are peers in this run; they have joined each other */
    bool gave_up;          /* a worker has failed in the newest task; guarded by the lock */
    bool ended;            /* a worker has completed the newest task; guarded by the lock */
    /* Sums in the middle of programs (operator_reduce.c); guarded by the lock. */
    int32_t waiting;    /* number of workers that have come to the next sum */
    uint64_t sums_made; /* number of sums so far */
    pthread_cond_t summed;
    double *sum; /* the newest sum; valid until all workers have come to the next one */
    size_t sum_capacity;
    int64_t whole;         /* examples of the newest minibatch, of all workers of all ranks */
    sgm__peer_place place; /* number of this process's first worker among all peers */

    /* Names of the gradients in the newest program; whether that draws random numbers. */
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
/* Gradient `index` of a worker's newest run: *memory points to it, or, if it is in a device's memory, *copy
 * is a tensor with it, which the caller frees. */
sgm_status sgm__worker_gradient(sgm__worker *worker, size_t index, const void **memory, sgm_tensor **copy);
/* The number of the program's steps after which that gradient is complete. */
sgm_status sgm__worker_gradient_ready(sgm__worker *worker, size_t index, int32_t *steps);
/* Feeds the gradients of a worker's newest run into the trainer's update, `apply`. */
sgm_status sgm__worker_pass_gradients(sgm__worker *worker, const sgm_trainer *trainer, sgm_program *apply);

/* --- operator_parts.c --- */
/* Feeds gradient `index` of a part (a worker) into the update: `memory` on the host, which must stay until
 * the update has run, or, if that is NULL, `value`. */
sgm_status sgm__feed_part(sgm_operator *parallel, size_t part, sgm_program *apply, size_t index,
                          const void *memory, const sgm_tensor *value);
/* Programs or names may have changed: inputs will be found anew. */
void sgm__forget_update_parts(sgm_operator *parallel);
void sgm__free_update_parts(sgm_operator *parallel);

#endif
