/* How an operator lets its workers train. Internal.
 *
 * The run's thread coordinates. Each worker has a replica, which is a trainer of its own: session, registry,
 * hooks and position are its own, while network, optimiser and patterns are the global trainer's. Workers'
 * threads do one thing only: they run the program that the coordinator prepared for them, while it waits or
 * runs the last one's. So all else, hooks and commands too, happens between iterations on the run's thread.
 */
#ifndef SGM_PARALLEL_OPERATOR_H
#define SGM_PARALLEL_OPERATOR_H

#include "parallel/workers/workers.h"
#include <sigma/data.h>
#include <sigma/persistence.h>

/* --- reducer.c --- */
sgm_reducer *sgm__reducer_copy(const sgm_reducer *reducer); /* NULL: no memory */
sgm_status sgm__reducer_check(const sgm_reducer *reducer, size_t workers);
const char *sgm__reducer_pattern(const sgm_reducer *reducer, size_t index); /* NULL: past the last */
/* Merges memory of `type`; the reducer was checked. */
void sgm__reducer_reduce(const sgm_reducer *reducer, const char *state, const sgm_type *type, void *result,
                         const void *const *values, size_t count);

void sgm__merge_weighted(const double *weights, const sgm_type *type, void *result, const void *const *values,
                         size_t count);

/* --- operator.c --- */
sgm_operator *sgm__operator_copy(const sgm_operator *parallel);
sgm_status sgm__worker_create(sgm_operator *parallel, sgm_trainer *trainer, int32_t number);
/* The trainer's session is replaced by another: after that nothing of it is in use. Call it before. */
sgm_status sgm__operator_new_sessions(sgm_trainer *trainer);
/* Gives a replica what it uses of its trainer; it may have changed since the iteration before. */
void sgm__replica_take_settings(sgm_trainer *replica);
/* Records and programs: */
void sgm__operator_forget_programs(sgm_trainer *trainer);
/* operator_record.c */
void sgm__operator_forget_names(sgm_operator *parallel);
/* Adds to the newest recording of a replica the gradients, as outputs, of what its examples add to the cost
 * of the whole minibatch; or records the update by the sums of the replicas' gradients, which are inputs (of
 * a replica: the sums that it has made with the others); or moving averages. */
sgm_status sgm__operator_record(sgm_trainer *trainer, int purpose, int64_t batch);
void sgm__operator_recorded(sgm_trainer *trainer); /* the network recorded, for the trainer or a replica */

/* --- operator_reduce.c: sums that workers make amid their programs --- */
/* A worker's number among the workers of all ranks, from 0. */
int32_t sgm__worker_number(const sgm_operator *parallel, int32_t worker);
/* Before the program runs: where it makes such sums. */
sgm_status sgm__worker_find_reductions(sgm__worker *worker, const sgm_program *program);
/* The program stands behind sum `index`: waits for the others, and takes what all have. */
sgm_status sgm__worker_reduce(sgm__worker *worker, size_t index);
/* The same sums for other ranks, where no worker of this one has examples; as the first one's program has
 * them. */
sgm_status sgm__operator_reduce_nothing(sgm_operator *parallel);

/* --- operator_peers.c --- */
sgm_status sgm__worker_start(sgm__worker *worker); /* its thread */
/* A task: runs the worker's program. */
sgm_status sgm__worker_run(sgm__worker *worker);
/* Workers that have examples, or all, do a task, each in its thread; returns when all are done. */
sgm_status sgm__workers_do(sgm_operator *parallel, sgm_status (*task)(sgm__worker *worker), bool all);
void sgm__operator_end(sgm_trainer *trainer); /* joins the threads */
/* A run: whether all workers, of all ranks, can sum among themselves; then they join. */
sgm_status sgm__peers_begin(sgm_trainer *trainer);
/* Recorded for a replica: its part of a gradient is left for the sum; the sum. */
void sgm__peers_record_part(const sgm_trainer *replica, size_t index, sgm_value gradient);
sgm_value sgm__peers_record_sum(const sgm_trainer *replica, size_t index);
sgm_status sgm__peers_define(sgm_trainer *replica, const char *state, const sgm_type *type); /* as zeros */
/* Before the task. */
sgm_status sgm__peers_prepare(sgm__worker *worker);
/* Workers run their programs, and sum gradients with all others. */
sgm_status sgm__peers_sum(sgm_operator *parallel);
/* Whether all workers of this process have the same states; fails with the first that differs. */
sgm_status sgm__peers_compare(const sgm_operator *parallel);

/* --- operator_run.c --- */
sgm_status sgm__operator_start(sgm_trainer *trainer); /* replicas, and their threads */
/* One iteration; `block` is the newest of the trainer's iterator. Moves the positions on. */
sgm_status sgm__operator_iterate(sgm_trainer *trainer, const sgm_block *block, double rate);
/* The next minibatch to train on, NULL at the end of an epoch. */
sgm_status sgm__operator_next(sgm_trainer *trainer, const sgm_block **block);
sgm_status sgm__operator_end_epoch(sgm_trainer *trainer);

/* --- operator_state.c --- */
/* For a replica: the first value of a state that its program uses. */
sgm_status sgm__replica_define_state(sgm_trainer *replica, const char *name, const sgm_type *type);
/* Brings the trainer's states up to date with the workers'; before anyone looks at them. */
sgm_status sgm__operator_collect(sgm_trainer *trainer);
/* A state of the trainer was set: workers get it. */
sgm_status sgm__operator_was_set(sgm_trainer *trainer, const char *name);
/* Gradients: merges states that the network changes itself, and gives them to the workers. */
sgm_status sgm__operator_merge_others(sgm_operator *parallel);
sgm_status sgm__operator_spread_others(sgm_operator *parallel);
/* Merges parameters into the trainer's states, and gives them to the workers. */
sgm_status sgm__operator_merge(sgm_operator *parallel);
sgm_status sgm__operator_merge_all(sgm_trainer *trainer);
/* All states of the trainer, and its position, become the workers'. */
sgm_status sgm__operator_synchronise(sgm_trainer *trainer);
/* From the next run (or iteration) on, the workers go on from the trainer's states. */
void sgm__operator_restart(sgm_trainer *trainer);

/* --- operator_registry.c --- */
sgm_status sgm__operator_publish(sgm_trainer *trainer);

#endif
