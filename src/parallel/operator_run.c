/* Running with workers: what an iteration is.
 *
 * Three ways. (1) Parameters are merged (parameter operator): each worker trains on a minibatch of its own,
 * and every so often the parameters become one. (2) Gradients are merged: a minibatch is divided among the
 * workers, each computes the gradients of its examples, and the trainer makes one update of their sum, here
 * or together with other ranks. (3) The same where workers' devices sum among themselves
 * (operator_peers.c): each worker makes the update.
 *
 * Everything but the running of programs happens on the run's thread. Sums are added in the order of the
 * workers, so that each run gives the same bits. */
#include "data/dataset.h"
#include "handlers/session.h"
#include "network/rerecord.h"
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"
#include "show/show.h"
#include "train/train.h"

#include <stdio.h>

/* A reducer whose pattern matches no parameter is a mistake of the user's. */
static sgm_status check_patterns(const sgm_trainer *trainer)
{
    const sgm_reducer *reducer = sgm__sharing_of(trainer)->parallel->reducer;
    const char *pattern;
    if (reducer == NULL || sgm_network_is_dynamic(sgm__learner_of(trainer)->network))
        return SGM_OK;
    for (size_t i = 0; (pattern = sgm__reducer_pattern(reducer, i)) != NULL; i++)
        if (!sgm__trainer_matches_any(trainer, pattern))
            return sgm_fail(SGM_ERROR_NOT_FOUND, "the reducer for '%s' matches no parameter of the network",
                            pattern);
    return SGM_OK;
}

/* Before a run: gives the replicas their settings and states, shows them in the registry, starts the workers'
 * threads, and finds out whether workers can sum among themselves. */
sgm_status sgm__operator_start(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    SGM_TRY(check_patterns(trainer));
    parallel->at_end = false;
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm__replica_take_settings(parallel->workers[i].replica);
        parallel->workers[i].seconds = 0;
    }
    SGM_TRY(sgm__operator_synchronise(trainer));
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm_trainer *replica = parallel->workers[i].replica;
        SGM_TRY(sgm__trainer_publish_network(replica));
        SGM_TRY(sgm__trainer_publish_states(replica));
        sgm__hooks_ask(sgm__hooks_of(replica), sgm__registry_of(replica));
        SGM_TRY(sgm__worker_start(&parallel->workers[i]));
    }
    return sgm__peers_begin(trainer);
}

/* --- what an iteration has in common --- */

/* Gives a worker the program for its part of a minibatch and feeds the examples [first, first + count) of the
 * block into it. Inputs that are numbers (the learning rate, say) are fed elsewhere: with the update, or as
 * the worker's share in prepare_part. The examples are copied, so that the worker's
 * thread needs the block no more. */
static sgm_status prepare(sgm__worker *worker, sgm__step_purpose purpose, const sgm_block *block,
                          int64_t first, int64_t count)
{
    sgm_trainer *replica = worker->replica;
    const char *name;
    sgm__replica_take_settings(replica);
    worker->program = sgm__trainer_program(replica, purpose, count);
    if (worker->program == NULL)
        return sgm_last_status();
    SGM_TRY(sgm__worker_find_reductions(worker, worker->program));
    for (size_t i = 0; (name = sgm_program_input_at(worker->program, i)) != NULL; i++) {
        if (sgm__fed_number_of(name) != SGM__FED_COUNT || strcmp(name, SGM__SHARE) == 0)
            continue;
        sgm_tensor *values = sgm_block_field(block, name);
        if (values == NULL)
            return sgm_last_status();
        sgm_status status = sgm__session_feed_part(sgm__learner_of(replica)->session, worker->program, name,
                                                   values, first, count);
        if (status != SGM_OK)
            return status == SGM_ERROR_SHAPE
                       ? sgm__trainer_shape_mismatch(worker->parallel->trainer, worker->program, (int32_t)i,
                                                     values)
                       : status;
    }
    worker->examples = sgm__progress_of(replica)->newest_examples = count;
    return SGM_OK;
}

/* Reads what a worker's part adds to a number of the whole minibatch. A program that has all of the
 * minibatch has no such output: its own number counts then. */
static sgm_status read_part(const sgm__worker *worker, const char *part, const char *whole, double *value)
{
    const char *output = sgm_program_has_output(worker->program, part) ? part : whole;
    return sgm_session_read_number(sgm__learner_of(worker->replica)->session, worker->program, output, value);
}

/* The trainer's sums weight each minibatch's loss by its examples. A part's loss is a share of the whole
 * minibatch's, so it is multiplied by the examples of the whole. */
static sgm_status count_part(const sgm__worker *worker, double own_correct, sgm__metric_sums *all)
{
    double loss, whole = (double)worker->parallel->whole;
    SGM_TRY(read_part(worker, SGM__LOSS_PART, SGM__LOSS, &loss));
    all->loss += loss * whole;
    all->examples += worker->examples;
    all->has_accuracy = sgm_program_has_output(worker->program, SGM__CORRECT);
    if (!sgm_program_has_output(worker->program, SGM__CORRECT_PART)) {
        all->correct += own_correct;
        return SGM_OK;
    }
    double correct;
    SGM_TRY(sgm_session_read_number(sgm__learner_of(worker->replica)->session, worker->program,
                                    SGM__CORRECT_PART, &correct));
    all->correct += correct * whole;
    return SGM_OK;
}

/* Adds what a worker computed to its own sums, which its local hooks see, and to the trainer's. */
static sgm_status count_worker(sgm__worker *worker, sgm__metric_sums *all)
{
    sgm_trainer *replica = worker->replica;
    sgm__metric_sums before = sgm__position_of(replica)->sums;
    SGM_TRY(sgm__trainer_count(replica, worker->program, worker->examples, &sgm__position_of(replica)->sums));
    sgm__progress_of(replica)->newest_loss =
        (sgm__position_of(replica)->sums.loss - before.loss) / (double)worker->examples;
    SGM_TRY(sgm__trainer_read_costs(replica, worker->program));
    return worker->parallel->merges_gradients
               ? count_part(worker, sgm__position_of(replica)->sums.correct - before.correct, all)
               : sgm__trainer_count(replica, worker->program, worker->examples, all);
}

/* Adds one cost of the trainer, times examples, as a worker computed it: of the worker's own minibatch where
 * parameters are merged, else of its part of the minibatch, which is a share of the whole minibatch's cost.
 */
static sgm_status cost_of(const sgm__worker *worker, const sgm__cost *cost, double newest, double *sum)
{
    double part;
    if (!worker->parallel->merges_gradients) {
        *sum += newest * (double)worker->examples;
        return SGM_OK;
    }
    bool single = !sgm_program_has_output(worker->program, cost->output); /* the total says it */
    SGM_TRY(
        read_part(worker, single ? SGM__LOSS_PART : cost->part, single ? SGM__LOSS : cost->output, &part));
    *sum += part * (double)worker->parallel->whole;
    return SGM_OK;
}

/* Each cost of the trainer is the mean over the examples of all workers. */
static sgm_status merge_costs(sgm_trainer *trainer, int64_t examples)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    for (size_t i = 0; i < learner->cost_count; i++) {
        double sum = 0;
        for (int32_t k = 0; k < parallel->count; k++)
            if (parallel->workers[k].examples > 0 &&
                i < sgm__learner_of(parallel->workers[k].replica)->cost_count)
                SGM_TRY(cost_of(&parallel->workers[k], learner->costs[i],
                                sgm__learner_of(parallel->workers[k].replica)->costs[i]->newest, &sum));
        learner->costs[i]->newest = sum / (double)examples;
    }
    return SGM_OK;
}

/* Adds what all workers of this process computed to the trainer's sums, in the order of the workers, so that
 * each run gives the same bits. */
static sgm_status count_all(sgm_trainer *trainer)
{
    sgm__trainer_progress *progress = sgm__progress_of(trainer);
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm__metric_sums *sums = &sgm__position_of(trainer)->sums;
    double before = sums->loss;
    int64_t examples = sums->examples;
    for (int32_t i = 0; i < parallel->count; i++) {
        if (parallel->workers[i].examples == 0)
            continue;
        SGM_TRY(count_worker(&parallel->workers[i], sums));
    }
    examples = sums->examples - examples;
    progress->newest_loss = (sums->loss - before) / (double)examples;
    progress->newest_examples = examples;
    return merge_costs(trainer, examples);
}

/* Counts this rank's workers into *own and leaves the trainer's sums as they were: the sums of all ranks,
 * which arrive later, are added to those (take_sums). */
static sgm_status count_own(sgm_trainer *trainer, sgm__metric_sums *own)
{
    sgm__training_position *position = sgm__position_of(trainer);
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm__metric_sums before = position->sums;
    position->sums = (sgm__metric_sums){0};
    bool any = false;
    for (int32_t i = 0; i < parallel->count; i++)
        any |= parallel->workers[i].examples > 0;
    sgm_status status = any ? count_all(trainer) : SGM_OK;
    *own = position->sums;
    position->sums = before;
    parallel->ranks->examples += own->examples;
    return status;
}

/* Adds the sums of all ranks for this iteration to the trainer's. */
static void take_sums(sgm_trainer *trainer, const sgm__metric_sums *all)
{
    sgm__trainer_progress *progress = sgm__progress_of(trainer);
    sgm__metric_sums *sums = &sgm__position_of(trainer)->sums;
    sums->loss += all->loss;
    sums->correct += all->correct;
    sums->examples += all->examples;
    sums->has_accuracy = all->has_accuracy;
    progress->newest_loss = all->loss / (double)all->examples;
    progress->newest_examples = all->examples;
}

static bool updates_next(const sgm_trainer *replica)
{
    return sgm__position_of(replica)->accumulated + 1 >=
           sgm__learner_of(replica)->optimiser->options.accumulate;
}

static void count_update(sgm__training_position *position, bool update)
{
    position->updates += update;
    position->accumulated = update ? 0 : position->accumulated + 1;
    position->iteration++;
}

/* The trainer's update from the gradients of `parts` workers; then states that layers change themselves
 * (running statistics) are averaged and given to all workers. */
static sgm_status apply_gradients(sgm_trainer *trainer, int32_t parts, bool update, double rate)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm_program *apply = sgm__trainer_program(trainer, update ? SGM__APPLY : SGM__APPLY_LATER, parts);
    if (apply == NULL)
        return sgm_last_status();
    for (int32_t i = 0; i < parts; i++)
        SGM_TRY(sgm__worker_pass_gradients(&parallel->workers[i], trainer, apply));
    SGM_TRY(sgm__trainer_feed_update(trainer, apply, rate, sgm__position_of(trainer)->updates + 1));
    SGM_TRY(sgm_session_run(sgm__learner_of(trainer)->session, apply));
    SGM_TRY(sgm__operator_merge_others(parallel));
    return sgm__operator_spread_others(parallel);
}

/* For a rank whose share of a small minibatch is empty: records a program for one example without running it,
 * as the rank must know the names of what is trained and take part in all sums. */
static sgm_status record_without_examples(sgm__worker *worker, sgm__step_purpose purpose)
{
    sgm__replica_take_settings(worker->replica);
    const sgm_program *program = sgm__trainer_program(worker->replica, purpose, 1);
    return program != NULL ? sgm__worker_find_reductions(worker, program) : sgm_last_status();
}

/* A minibatch of one example, or a single worker, needs no division: the gradients are then recorded of the
 * loss itself, not of a part of it. */
static sgm__step_purpose purpose_of(const sgm_operator *parallel, int64_t whole)
{
    return whole > 1 && parallel->count * sgm_operator_ranks(parallel) > 1 ? SGM__PART : SGM__GRADIENTS;
}

/* As prepare, and feeds the worker's share of the minibatch, by which means over the minibatch are weighted,
 * to programs that have this input. */
static sgm_status prepare_part(sgm__worker *worker, const sgm_block *block, int64_t first, int64_t count)
{
    double whole = (double)worker->parallel->whole;
    SGM_TRY(prepare(worker, purpose_of(worker->parallel, worker->parallel->whole), block, first, count));
    return sgm_program_has_input(worker->program, SGM__SHARE)
               ? sgm_session_feed_number(sgm__learner_of(worker->replica)->session, worker->program,
                                         SGM__SHARE, (double)count / whole)
               : SGM_OK;
}

/* Divides `count` examples among the workers; their numbers differ by at most one. A minibatch with fewer
 * examples than workers leaves some without. */
static sgm_status divide_block(sgm_operator *parallel, const sgm_block *block, int64_t first, int64_t count,
                               int64_t whole)
{
    parallel->whole = whole;
    int32_t parts = count < parallel->count ? (int32_t)count : parallel->count;
    for (int32_t i = 0; i < parallel->count; i++)
        parallel->workers[i].examples = 0;
    for (int32_t i = 0; i < parts; i++) {
        int64_t begin = count * i / parts, end = count * (i + 1) / parts;
        if (prepare_part(&parallel->workers[i], block, first + begin, end - begin) != SGM_OK) {
            if (sgm__failed_example() >= 0)
                sgm__fail_example(first + begin + sgm__failed_example());
            return sgm__fail_within("worker %d", i);
        }
    }
    return parts > 0 ? SGM_OK : record_without_examples(&parallel->workers[0], purpose_of(parallel, whole));
}

/* One iteration in this process alone: workers compute gradients, the trainer makes the update. */
static sgm_status step_here(sgm_trainer *trainer, const sgm_block *block, bool update, double rate)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    SGM_TRY(divide_block(parallel, block, 0, block->count, block->count));
    SGM_TRY(sgm__workers_do(parallel, sgm__worker_run, false));
    int32_t parts = block->count < parallel->count ? (int32_t)block->count : parallel->count;
    SGM_TRY(apply_gradients(trainer, parts, update, rate));
    return count_all(trainer);
}

/* One iteration with other ranks: this rank's share is divided among its workers, gradients and sums travel
 * while workers still compute (ranks_merge.c), and every rank makes the same update. With divided optimiser
 * states each rank updates its parameters and brings them to all. */
static sgm_status step_with_ranks(sgm_trainer *trainer, const sgm_block *block, bool update, double rate)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm__metric_sums sums;
    int64_t first, count, whole;
    sgm__ranks_part(trainer, block, &first, &count, &whole);
    SGM_TRY(divide_block(parallel, block, first, count, whole));
    SGM_TRY(sgm__ranks_cut(trainer));
    double began = sgm__now();
    if (count == 0)
        SGM_TRY(sgm__operator_reduce_nothing(parallel));
    SGM_TRY(sgm__workers_do(parallel, sgm__worker_run, false));
    parallel->ranks->computed += sgm__now() - began;
    SGM_TRY(count_own(trainer, &sums));
    SGM_TRY(sgm__operator_merge_others(parallel));
    SGM_TRY(sgm__ranks_merge(trainer, whole, &sums));
    sgm_program *apply = sgm__trainer_program(trainer, update ? SGM__APPLY : SGM__APPLY_LATER,
                                              (int64_t)sgm__ranks_count_parts(parallel->ranks));
    if (apply == NULL)
        return sgm_last_status();
    SGM_TRY(sgm__ranks_pass(trainer, apply));
    SGM_TRY(sgm__trainer_feed_update(trainer, apply, rate, sgm__position_of(trainer)->updates + 1));
    SGM_TRY(sgm__ranks_know_others(parallel->ranks, false));
    SGM_TRY(sgm_session_run(sgm__learner_of(trainer)->session, apply));
    SGM_TRY(update ? sgm__ranks_bring(trainer) : sgm__ranks_give_back(parallel->ranks));
    take_sums(trainer, &sums);
    return sgm__operator_spread_others(parallel);
}

/* The task of an update. It never runs in pieces: sums and buckets belong to the program of the gradients. */
static sgm_status run_update(sgm__worker *worker)
{
    return sgm_session_run(sgm__learner_of(worker->replica)->session, worker->program);
}

/* Each worker makes the update by the summed gradients on its own device; all updates have the same result.
 * The trainer's own states are out of date from here on, until sgm__operator_collect brings them up to date
 * for a reader. */
static sgm_status update_together(sgm_trainer *trainer, bool update, double rate)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm_trainer *replica = parallel->workers[i].replica;
        sgm_program *apply = sgm__trainer_program(replica, update ? SGM__APPLY : SGM__APPLY_LATER, 1);
        if (apply == NULL)
            return sgm__fail_within("worker %d", i);
        SGM_TRY(sgm__trainer_feed_update(replica, apply, rate, sgm__position_of(trainer)->updates + 1));
        parallel->workers[i].program = apply;
    }
    parallel->changed = true;
    return sgm__workers_do(parallel, run_update, true);
}

/* One iteration whose gradients stay on the devices. The sums come before any state is changed, so that a
 * failed sum leaves all workers at the iteration before. */
static sgm_status step_together(sgm_trainer *trainer, const sgm_block *block, bool update, double rate)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm__metric_sums sums;
    int64_t first = 0, count = block->count, whole = count;
    if (parallel->ranks != NULL)
        sgm__ranks_part(trainer, block, &first, &count, &whole);
    SGM_TRY(divide_block(parallel, block, first, count, whole));
    for (int32_t i = 0; i < parallel->count; i++)
        SGM_TRY(sgm__peers_prepare(&parallel->workers[i]));
    double began = sgm__now();
    if (count == 0)
        SGM_TRY(sgm__operator_reduce_nothing(parallel));
    SGM_TRY(sgm__peers_sum(parallel));
    if (parallel->ranks != NULL)
        parallel->ranks->computed += sgm__now() - began;
    SGM_TRY(parallel->ranks != NULL ? count_own(trainer, &sums) : count_all(trainer));
    SGM_TRY(sgm__operator_merge_others(parallel));
    if (parallel->ranks != NULL) {
        SGM_TRY(sgm__ranks_merge(trainer, whole, &sums));
        take_sums(trainer, &sums);
    }
    SGM_TRY(sgm__operator_spread_others(parallel));
    return update_together(trainer, update, rate);
}

/* An iteration of the ways (2) and (3). Workers have no positions of their own; they follow the trainer's,
 * for their hooks. */
static sgm_status iterate_gradients(sgm_trainer *trainer, const sgm_block *block, double rate)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm__training_position *position = sgm__position_of(trainer);
    bool update = sgm__trainer_updates_next(trainer);
    SGM_TRY(parallel->together        ? step_together(trainer, block, update, rate)
            : parallel->ranks != NULL ? step_with_ranks(trainer, block, update, rate)
                                      : step_here(trainer, block, update, rate));
    count_update(position, update);
    position->batch++;
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm__training_position *own = sgm__position_of(parallel->workers[i].replica);
        own->iteration = position->iteration;
        own->updates = position->updates;
        own->accumulated = position->accumulated;
        own->batch = position->batch;
    }
    return SGM_OK;
}

/* --- parameters --- */

/* Gives a worker a minibatch of its own and the numbers of its own update. The minibatch is copied into the
 * worker's program, so the iterator may move on to the next worker's. */
static sgm_status prepare_update(sgm__worker *worker, const sgm_block *block, double rate)
{
    const sgm__training_position *own = sgm__position_of(worker->replica);
    bool update = updates_next(worker->replica);
    sgm_status status = prepare(worker, update ? SGM__UPDATE : SGM__ACCUMULATE, block, 0, block->count);
    if (status == SGM_OK)
        status = sgm__trainer_feed_update(worker->replica, worker->program, rate, own->updates + 1);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("worker %d", worker->number);
}

/* The next minibatch of the data, or this rank's part of it (sgm__ranks_take_part). */
static sgm_status take_block(sgm_trainer *trainer, const sgm_block **block)
{
    sgm__ranks_take_part(trainer);
    return sgm__trainer_next_minibatch(trainer, block);
}

/* Deals minibatches out to the workers of all ranks in turn, one each: every rank's iterator gives the same
 * minibatches in the same order, and a rank skips those of other ranks' workers without reading them. `block`
 * is the first one; *taken: how many minibatches there were, fewer than workers at the end of an epoch, which
 * at_end remembers. */
static sgm_status prepare_updates(sgm_trainer *trainer, const sgm_block *block, double rate, int64_t *taken)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    int32_t all = parallel->count * sgm_operator_ranks(parallel), first = sgm__worker_number(parallel, 0);
    for (int32_t i = 0; i < parallel->count; i++)
        parallel->workers[i].examples = 0;
    for (int32_t i = 0; i < all; i++) {
        bool own = i >= first && i < first + parallel->count;
        if (i > 0 && !own)
            sgm__iterator_skip_next(sgm__data_of(trainer)->training);
        if (i > 0)
            SGM_TRY(take_block(trainer, &block));
        parallel->at_end = block == NULL;
        if (block == NULL)
            return SGM_OK;
        ++*taken;
        if (own)
            SGM_TRY(prepare_update(&parallel->workers[i - first], block, rate));
    }
    return SGM_OK;
}

/* Adds the numbers of the iteration to the trainer's sums: those of this process, or of all ranks. */
static sgm_status share_counts(sgm_trainer *trainer)
{
    sgm__training_position *position = sgm__position_of(trainer);
    sgm__metric_sums sums;
    if (sgm__sharing_of(trainer)->parallel->ranks == NULL)
        return count_all(trainer);
    SGM_TRY(count_own(trainer, &sums));
    SGM_TRY(sgm__ranks_share(trainer, &sums, &position->updates, &position->accumulated));
    take_sums(trainer, &sums);
    return SGM_OK;
}

/* An iteration of way (1): each worker makes a whole step on a minibatch of its own, and every `every`
 * iterations the parameters are merged. The trainer's position counts all minibatches, and has the updates of
 * worker 0. */
static sgm_status iterate_parameters(sgm_trainer *trainer, const sgm_block *block, double rate)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm__training_position *position = sgm__position_of(trainer);
    int64_t taken = 0;
    sgm__trainer_updates_next(trainer); /* another number of minibatches for an update begins here */
    SGM_TRY(prepare_updates(trainer, block, rate, &taken));
    double began = sgm__now();
    SGM_TRY(sgm__workers_do(parallel, sgm__worker_run, false));
    parallel->changed = true;
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm__training_position *own = sgm__position_of(parallel->workers[i].replica);
        if (parallel->workers[i].examples == 0)
            continue;
        count_update(own, updates_next(parallel->workers[i].replica));
        own->batch++;
    }
    position->iteration++;
    position->batch += taken;
    position->updates = sgm__position_of(parallel->workers[0].replica)->updates;
    position->accumulated = sgm__position_of(parallel->workers[0].replica)->accumulated;
    if (parallel->ranks != NULL)
        parallel->ranks->computed += sgm__now() - began;
    SGM_TRY(share_counts(trainer));
    return parallel->every > 0 && position->iteration % parallel->every == 0 ? sgm__operator_merge(parallel)
                                                                             : SGM_OK;
}

sgm_status sgm__operator_iterate(sgm_trainer *trainer, const sgm_block *block, double rate)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    SGM_TRY(sgm__operator_synchronise(trainer));
    if (sgm__position_of(trainer)->sums.examples == 0) /* an epoch begins */
        for (int32_t i = 0; i < parallel->count; i++)
            sgm__position_of(parallel->workers[i].replica)->sums = (sgm__metric_sums){0};
    return parallel->merges_gradients ? iterate_gradients(trainer, block, rate)
                                      : iterate_parameters(trainer, block, rate);
}

/* An iteration of a parameter operator asks for as many minibatches as there are workers, and may meet the
 * end of the epoch: the iterator then stands at the next epoch already, and the end is reported here first.
 */
sgm_status sgm__operator_next(sgm_trainer *trainer, const sgm_block **block)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    bool at_end = parallel->at_end; /* the iteration before met it when it asked for minibatches */
    parallel->at_end = false;
    *block = NULL;
    return at_end ? SGM_OK : take_block(trainer, block);
}

/* Workers begin the next epoch at its first minibatch. Then what must be equal is compared, and what is
 * merged once an epoch is merged. */
sgm_status sgm__operator_end_epoch(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm_trainer *replica = parallel->workers[i].replica;
        sgm__position_of(replica)->epoch = sgm__position_of(trainer)->epoch + 1;
        sgm__position_of(replica)->batch = 0;
    }
    if (parallel->merges_gradients)
        return sgm__peers_compare(parallel);
    if (parallel->ranks != NULL)
        return sgm__operator_merge_all(trainer);
    return parallel->every == 0 ? sgm__operator_merge(parallel) : SGM_OK;
}
