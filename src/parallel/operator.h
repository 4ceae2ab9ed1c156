/* How an operator has its workers train: what the files of src/parallel call of each other. Internal.
 *
 * The run's thread coordinates. Each worker has a replica, which is a trainer with its own session, registry,
 * hooks and position, and with the network, optimiser and patterns of its owner. Workers' threads only run
 * the program that the run's thread has prepared for them; the run's thread computes the last worker's part
 * itself or waits. Everything else, such as hooks and commands, happens on the run's thread between two
 * iterations.
 */
#ifndef SGM_PARALLEL_OPERATOR_H
#define SGM_PARALLEL_OPERATOR_H

#include "parallel/workers/workers.h"
#include <sigma/data.h>
#include <sigma/tensor.h>

/* --- reducer.c --- */
sgm_reducer *sgm__reducer_copy(const sgm_reducer *reducer); /* NULL: out of memory */
/* Fails if the reducer cannot merge the values of so many workers. */
sgm_status sgm__reducer_check(const sgm_reducer *reducer, size_t workers);
/* The pattern of names that a rule of the reducer is for; NULL: there is no rule of this index. */
const char *sgm__reducer_pattern(const sgm_reducer *reducer, size_t index);
/* Merges `count` values of a state, each of `type`, into `result`. The reducer has been checked. */
void sgm__reducer_reduce(const sgm_reducer *reducer, const char *state, const sgm_type *type, void *result,
                         const void *const *values, size_t count);

/* result = sum of weights[i] * values[i], element by element. */
void sgm__merge_weighted(const double *weights, const sgm_type *type, void *result, const void *const *values,
                         size_t count);

/* --- operator.c --- */
/* An operator with the same settings, which has no trainer yet. NULL: it failed. */
sgm_operator *sgm__operator_copy(const sgm_operator *parallel);
/* Makes worker `number` with its handler and its replica of the trainer. */
sgm_status sgm__worker_create(sgm_operator *parallel, sgm_trainer *trainer, int32_t number);
/* Call it before the trainer's session is replaced by another: gives the workers new sessions, too. */
sgm_status sgm__operator_new_sessions(sgm_trainer *trainer);
/* Gives a replica the network, optimiser and patterns of its owner, which may have changed since the last
 * iteration. */
void sgm__replica_take_settings(sgm_trainer *replica);
/* Programs of all replicas will be recorded anew. */
void sgm__operator_forget_programs(sgm_trainer *trainer);

/* --- operator_record.c --- */
/* Forgets the names of gradients, which the next recording finds anew. */
void sgm__operator_forget_names(sgm_operator *parallel);
/* Adds to the newest recording, by `purpose` (sgm__step_purpose): the gradients of what a replica's examples
 * add to the loss of the whole minibatch, as outputs; or the update by the sums of the replicas' gradients,
 * which are inputs (where peers sum among themselves: states); or moving averages. */
sgm_status sgm__operator_record(sgm_trainer *trainer, int purpose, int64_t batch);
/* The network was recorded anew, for the trainer or a replica. */
void sgm__operator_recorded(sgm_trainer *trainer);

/* --- operator_reduce.c: sums over all workers in the middle of their programs --- */
/* A worker's number among the workers of all ranks, from 0. */
int32_t sgm__worker_number(const sgm_operator *parallel, int32_t worker);
/* Before the program runs: finds the steps behind which it makes such sums. */
sgm_status sgm__worker_find_reductions(sgm__worker *worker, const sgm_program *program);
/* The worker's program has come to sum `index`: waits for the others and gives the program the sum. */
sgm_status sgm__worker_reduce(sgm__worker *worker, size_t index);
/* Where no worker of this rank has examples: takes part in the other ranks' sums with zeros, by the program
 * of the first worker. */
sgm_status sgm__operator_reduce_nothing(sgm_operator *parallel);

/* --- operator_peers.c --- */
/* Starts the worker's thread. */
sgm_status sgm__worker_start(sgm__worker *worker);
/* The task of an iteration: runs the worker's program. */
sgm_status sgm__worker_run(sgm__worker *worker);
/* Has each worker that has examples (`all`: each worker) do a task in its thread; returns when all have
 * ended.
 */
sgm_status sgm__workers_do(sgm_operator *parallel, sgm_status (*task)(sgm__worker *worker), bool all);
/* Ends and joins the workers' threads. */
void sgm__operator_end(sgm_trainer *trainer);
/* At the beginning of a run: finds out whether the workers of all ranks can sum among themselves (peers), and
 * joins them. */
sgm_status sgm__peers_begin(sgm_trainer *trainer);
/* In a recording: stores a replica's gradient `index` as the part that is summed; reads the sum. */
void sgm__peers_record_part(const sgm_trainer *replica, size_t index, sgm_value gradient);
sgm_value sgm__peers_record_sum(const sgm_trainer *replica, size_t index);
/* Defines the state of such a part, with zeros. */
sgm_status sgm__peers_define(sgm_trainer *replica, const char *state, const sgm_type *type);
/* Before the task: finds the memory of the parts that are summed, and clears those of a worker without
 * examples.
 */
sgm_status sgm__peers_prepare(sgm__worker *worker);
/* All workers run their programs and sum their gradients with all others'. */
sgm_status sgm__peers_sum(sgm_operator *parallel);
/* Fails, naming the first state that differs between workers of this process. */
sgm_status sgm__peers_compare(const sgm_operator *parallel);

/* --- operator_run.c --- */
/* At the beginning of a run: prepares the replicas and starts their threads. */
sgm_status sgm__operator_start(sgm_trainer *trainer);
/* Does one iteration; `block` is the newest minibatch of the trainer's iterator. Moves the positions on. */
sgm_status sgm__operator_iterate(sgm_trainer *trainer, const sgm_block *block, double rate);
/* The next minibatch to train on, NULL at the end of an epoch. */
sgm_status sgm__operator_next(sgm_trainer *trainer, const sgm_block **block);
/* Moves the workers' positions to the next epoch. Peers are compared here; parameters are merged here where
 * there are ranks, or where they are merged once an epoch (`every` 0). */
sgm_status sgm__operator_end_epoch(sgm_trainer *trainer);

/* --- operator_state.c --- */
/* Gives a new state of a replica its first value: mostly its owner's. */
sgm_status sgm__replica_define_state(sgm_trainer *replica, const char *name, const sgm_type *type);
/* Brings the trainer's states up to date with the workers'. Call it before they are read. */
sgm_status sgm__operator_collect(sgm_trainer *trainer);
/* A state of the trainer was set: workers get it. */
sgm_status sgm__operator_was_set(sgm_trainer *trainer, const char *name);
/* Operators that sum gradients: merges into the trainer's session the states that layers change themselves
 * (running means of batch_norm, say). */
sgm_status sgm__operator_merge_others(sgm_operator *parallel);
/* Gives these states to the workers. */
sgm_status sgm__operator_spread_others(sgm_operator *parallel);
/* Merges the workers' parameters into the trainer's states and gives the result to the workers. */
sgm_status sgm__operator_merge(sgm_operator *parallel);
sgm_status sgm__operator_merge_all(sgm_trainer *trainer);
/* Gives all workers the trainer's states and position, unless they have them. */
sgm_status sgm__operator_synchronise(sgm_trainer *trainer);
/* Before the next iteration the workers get the trainer's states and position. */
void sgm__operator_restart(sgm_trainer *trainer);

/* --- operator_registry.c --- */
/* Shows operator.* in the trainer's registry: settings, workers, ranks. */
sgm_status sgm__operator_publish(sgm_trainer *trainer);

#endif
