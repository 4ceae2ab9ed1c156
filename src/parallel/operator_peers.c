/* Workers' threads, and workers that sum among themselves (peers: devices with NCCL, say).
 *
 * Each thread does the task that all are given, while the run's thread waits. Peers keep gradients where they
 * are computed: each sums its own with those of all others, also of other ranks, and then makes the update by
 * itself. So all workers have the same states, and the trainer's are brought up to date when somebody looks.
 * Whether that is possible is agreed at the beginning of a run: all workers of all ranks need the same kind
 * of handler, and each a device of its own. At the end of each epoch states of this process's workers are
 * compared, byte by byte. */
#include "base/clock.h"
#include "handlers/session.h"
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"
#include <sigma/graph.h>

#include <stdio.h>

/* Called by the worker's session behind each piece of its program, on the worker's thread. The first pieces
 * end in sums with other workers, the later ones in complete buckets of gradients, which the run's thread is
 * told of. A program without buckets has no pieces behind its sums. */
static sgm_status piece_done(void *user, size_t piece)
{
    sgm__worker *worker = user;
    sgm_operator *parallel = worker->parallel;
    if (piece < worker->reduction_count)
        return sgm__worker_reduce(worker, piece);
    if (worker->end_count == worker->reduction_count) /* no buckets: gradients wait for the end */
        return SGM_OK;
    pthread_mutex_lock(&parallel->lock);
    worker->pieces = piece - worker->reduction_count + 1;
    pthread_cond_signal(&parallel->done);
    pthread_mutex_unlock(&parallel->lock);
    return SGM_OK;
}

sgm_status sgm__worker_run(sgm__worker *worker)
{
    const sgm__pieces pieces = {worker->ends, worker->end_count, piece_done, worker};
    return worker->end_count > 0
               ? sgm__session_run_pieces(sgm__learner_of(worker->replica)->session, worker->program, &pieces)
               : sgm_session_run(sgm__learner_of(worker->replica)->session, worker->program);
}

/* A worker with such sums has ended its program: a worker that still waits for a sum with it has recorded
 * another network, and must not wait for ever (wait_for_sum in operator_reduce.c). */
static void leave_sums(sgm_operator *parallel)
{
    pthread_mutex_lock(&parallel->lock);
    parallel->ended = true;
    pthread_cond_broadcast(&parallel->summed);
    pthread_mutex_unlock(&parallel->lock);
}

static const sgm__peers *peers_of(const sgm__worker *worker)
{
    return worker->handler->type->peers;
}

/* A worker has failed: workers that wait for it, in a sum of this process or in a sum of devices, stop
 * waiting and fail, too. `follows` marks those that fail after another one, so that first_failure reports the
 * cause. */
static void give_up(sgm__worker *worker)
{
    sgm_operator *parallel = worker->parallel;
    pthread_mutex_lock(&parallel->lock);
    worker->follows = parallel->gave_up;
    parallel->gave_up = true;
    pthread_cond_broadcast(&parallel->summed);
    pthread_mutex_unlock(&parallel->lock);
    for (int32_t i = 0; i < parallel->count && parallel->joined; i++)
        peers_of(worker)->give_up(parallel->workers[i].handler->self);
}

/* Does the worker's task on the calling thread: the worker's own, or the run's. Errors belong to threads, so
 * the message is copied. */
static void compute(sgm__worker *worker)
{
    double began = sgm__now();
    worker->status = worker->task(worker);
    if (worker->status != SGM_OK) {
        snprintf(worker->message, sizeof worker->message, "%s", sgm_last_error());
        give_up(worker);
    }
    if (worker->reduction_count > 0)
        leave_sums(worker->parallel);
    worker->seconds += sgm__now() - began;
}

/* A worker's thread: waits for a task, does it without the lock, and tells the run's thread when the last
 * task has ended. */
static void *work(void *argument)
{
    sgm__worker *worker = argument;
    sgm_operator *parallel = worker->parallel;
    pthread_mutex_lock(&parallel->lock);
    for (;;) {
        while (!worker->busy && !worker->quit)
            pthread_cond_wait(&worker->wake, &parallel->lock);
        if (worker->quit)
            break;
        pthread_mutex_unlock(&parallel->lock);
        sgm_clear_error();
        compute(worker);
        pthread_mutex_lock(&parallel->lock);
        worker->busy = false;
        if (--parallel->pending == 0)
            pthread_cond_signal(&parallel->done);
    }
    pthread_mutex_unlock(&parallel->lock);
    return NULL;
}

sgm_status sgm__worker_start(sgm__worker *worker)
{
    worker->quit = false;
    int error = sgm__thread_start(&worker->thread, work, worker);
    worker->started = error == 0;
    return error == 0 ? SGM_OK
                      : sgm_fail(SGM_ERROR_STATE, "the system refused a thread for worker %d: %s",
                                 worker->number, sgm__errno_text(error));
}

/* Waits until all tasks have ended. Called with the operator's lock. With ranks, this thread meanwhile starts
 * the sums of buckets that the workers have completed, and lets started sums make progress
 * (sgm__ranks_go_on), which needs the lock released. After a failure of the ranks it only waits. */
static sgm_status wait_for_tasks(sgm_operator *parallel)
{
    sgm_status status = SGM_OK;
    while (parallel->pending > 0) {
        double rest = 1;
        if (parallel->ranks != NULL && status == SGM_OK) {
            pthread_mutex_unlock(&parallel->lock);
            status = sgm__ranks_go_on(parallel->ranks, &rest);
            pthread_mutex_lock(&parallel->lock);
        }
        struct timespec until = sgm__time_in(rest);
        if (parallel->pending > 0 && !sgm__ranks_are_behind(parallel->ranks))
            pthread_cond_timedwait(&parallel->done, &parallel->lock, &until);
    }
    return status;
}

/* The failure to report: that of the first worker, by number, that did not fail because another one had
 * failed. */
static sgm_status first_failure(const sgm_operator *parallel)
{
    const sgm__worker *first = NULL;
    for (int32_t i = 0; i < parallel->count; i++) {
        const sgm__worker *worker = &parallel->workers[i];
        if (worker->status != SGM_OK && (first == NULL || (first->follows && !worker->follows)))
            first = worker;
    }
    return first != NULL ? sgm_fail(first->status, "worker %d: %s", first->number, first->message) : SGM_OK;
}

/* Whether the run's thread has messages to carry while workers compute. Ranks of one node have none: they
 * read each other's memory. */
static bool carries_sums(const sgm_operator *parallel)
{
    return parallel->ranks != NULL && parallel->ranks->node == NULL;
}

/* Gives each worker that takes part its task and wakes it. Called with the operator's lock. *own becomes the
 * last of these workers: the run's thread does that task itself, since a thread that only waits costs two
 * switches of context; NULL: the run's thread has sums to carry, or no worker has a task. */
static void start_tasks(sgm_operator *parallel, sgm_status (*task)(sgm__worker *worker), bool all,
                        sgm__worker **own)
{
    parallel->gave_up = parallel->ended = false;
    parallel->waiting = 0;
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm__worker *worker = &parallel->workers[i];
        worker->status = SGM_OK;
        worker->pieces = 0;
        worker->follows = false;
        worker->task = task;
        worker->busy = all || worker->examples > 0;
        if (worker->busy)
            *own = worker;
    }
    if (carries_sums(parallel))
        *own = NULL;
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm__worker *worker = &parallel->workers[i];
        if (worker == *own)
            worker->busy = false;
        parallel->pending += worker->busy;
        if (worker->busy)
            pthread_cond_signal(&worker->wake);
    }
}

sgm_status sgm__workers_do(sgm_operator *parallel, sgm_status (*task)(sgm__worker *worker), bool all)
{
    sgm__worker *own = NULL;
    pthread_mutex_lock(&parallel->lock);
    start_tasks(parallel, task, all, &own);
    pthread_mutex_unlock(&parallel->lock);
    if (own != NULL)
        compute(own);
    pthread_mutex_lock(&parallel->lock);
    sgm_status status = wait_for_tasks(parallel);
    pthread_mutex_unlock(&parallel->lock);
    sgm_status failure = first_failure(parallel);
    return failure != SGM_OK ? failure : status;
}

static sgm_status leave(sgm__worker *worker)
{
    peers_of(worker)->leave(worker->handler->self);
    return SGM_OK;
}

/* All workers leave at the same time, as they have joined. */
static void peers_end(sgm_operator *parallel)
{
    if (parallel->joined)
        sgm__workers_do(parallel, leave, true);
    parallel->joined = false;
}

/* Wakes the threads with `quit` set and joins them. The workers stay, for the next run. */
void sgm__operator_end(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    if (parallel == NULL)
        return;
    peers_end(parallel);
    pthread_mutex_lock(&parallel->lock);
    for (int32_t i = 0; i < parallel->count; i++) {
        parallel->workers[i].quit = true;
        pthread_cond_signal(&parallel->workers[i].wake);
    }
    pthread_mutex_unlock(&parallel->lock);
    for (int32_t i = 0; i < parallel->count; i++) {
        if (parallel->workers[i].started)
            pthread_join(parallel->workers[i].thread, NULL);
        parallel->workers[i].started = false;
    }
}

/* --- peers: whether devices can sum among themselves --- */

/* Seconds that a peer waits for others where there are no ranks, and so no operator.timeout. */
#define ALONE_SECONDS 60.0

/* What a rank tells all others about its own workers. It is sent as it is, so it has no pointers. */
typedef struct candidate {
    int32_t workers;
    uint8_t able; /* whether all of this rank's workers can be peers */
    char handler[16];
    char why_not[256]; /* the reason, for the log; empty where nobody would expect peers (a cpu, say) */
    unsigned char identities[SGM__MAXIMUM_WORKERS][SGM__IDENTITY]; /* of the workers' devices */
} candidate;

/* Notes that this rank's workers cannot be peers, and why. */
static void refuse(candidate *own, const char *why_not)
{
    own->able = false;
    snprintf(own->why_not, sizeof own->why_not, "%s", why_not);
}

/* Fills in what this rank tells about its workers. All workers must have one kind of handler, one that can
 * sum between devices. A reason is given only where a user might expect that devices sum: not for handlers
 * that never can. */
static void introduce(const sgm_trainer *trainer, candidate *own)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    const sgm__handler_type *type = parallel->workers[0].handler->type;
    const sgm__peers *peers = type->peers;
    *own = (candidate){.workers = parallel->count, .able = peers != NULL};
    snprintf(own->handler, sizeof own->handler, "%s", type->name);
    if (peers == NULL)
        return;
    for (int32_t i = 0; i < parallel->count && own->able; i++) {
        const sgm__worker *worker = &parallel->workers[i];
        if (worker->handler->type != type) {
            own->able = false;
        } else if (peers->identify(worker->handler->self, own->identities[i]) != SGM_OK) {
            refuse(own, sgm_last_error());
            sgm_clear_error();
        }
    }
    if (own->able && sgm_network_is_dynamic(sgm__learner_of(trainer)->network))
        refuse(own, "the network is recorded anew for each minibatch");
    if (own->able && parallel->ranks != NULL && parallel->ranks->options.narrow)
        refuse(own, "operator.bfloat16 rounds them there");
    if (own->able && sgm__ranks_sharded(parallel->ranks))
        refuse(own, "operator.sharded divides the update, which each worker makes whole");
}

/* Whether two workers of any ranks have the same device. They cannot be peers: a sum occupies the device
 * until all peers have come to it, so the second worker never would. Compares each pair of workers once. */
static bool same_device(const candidate *all, int32_t ranks)
{
    for (int32_t a = 0; a < ranks; a++)
        for (int32_t i = 0; i < all[a].workers; i++)
            for (int32_t b = 0; b <= a; b++)
                for (int32_t k = 0; k < (b < a ? all[b].workers : i); k++)
                    if (memcmp(all[a].identities[i], all[b].identities[k], SGM__IDENTITY) == 0)
                        return true;
    return false;
}

/* Whether all workers of all ranks can be peers. Each rank decides by the same gathered numbers, so all
 * decide alike. *why_not becomes the reason of the first rank that cannot; it may be empty. */
static bool can_together(const candidate *all, int32_t ranks, const char **why_not)
{
    *why_not = "";
    for (int32_t i = 0; i < ranks; i++) {
        bool fits = all[i].able != 0 && strcmp(all[i].handler, all[0].handler) == 0;
        if (!fits && (*why_not)[0] == '\0')
            *why_not = all[i].why_not;
        if (!fits)
            return false;
    }
    if (!same_device(all, ranks))
        return true;
    *why_not = "two workers have one device";
    return false;
}

/* Each rank gets the candidates of all ranks. */
static sgm_status gather(sgm__ranks *ranks, candidate *all)
{
    const sgm_communicator_work work = {
        .kind = SGM_COMMUNICATOR_GATHER, .type = SGM_COMMUNICATOR_BYTES, .data = all, .count = sizeof *all};
    return ranks != NULL && ranks->count > 1 ? sgm__ranks_do(ranks, &work, "the devices of workers") : SGM_OK;
}

/* Finds the number of this rank's first worker among the workers of all ranks, and how many there are. */
static void find_place(const sgm_operator *parallel, const candidate *all, sgm__peer_place *place)
{
    int32_t own = parallel->ranks != NULL ? parallel->ranks->rank : 0;
    *place = (sgm__peer_place){.seconds = parallel->ranks != NULL ? parallel->ranks->options.timeout
                                                                  : ALONE_SECONDS};
    for (int32_t i = 0; i < sgm_operator_ranks(parallel); i++) {
        place->number += i < own ? all[i].workers : 0;
        place->of += all[i].workers;
    }
}

/* All ranks agree on whether the workers become peers. One worker alone is none. */
static sgm_status agree(const sgm_trainer *trainer, bool *together)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    int32_t ranks = sgm_operator_ranks(parallel), own = sgm_operator_rank(parallel);
    candidate *all = sgm__calloc((size_t)ranks, sizeof *all);
    const char *why_not;
    if (all == NULL)
        return SGM_ERROR_MEMORY;
    introduce(trainer, &all[own]);
    sgm_status status = gather(parallel->ranks, all);
    if (status == SGM_OK) {
        *together = can_together(all, ranks, &why_not);
        find_place(parallel, all, &parallel->place);
        *together = *together && parallel->place.of > 1;
        if (!*together && why_not[0] != '\0' && parallel->place.of > 1 && own == 0)
            sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer),
                     "gradients are merged in the computer's memory: %s", why_not);
    }
    sgm__free(all);
    return status;
}

/* --- joining and leaving --- */

/* Switches between peers and workers without: recorded programs differ, and so does which session has the
 * newest states (with peers, the workers'). So states are collected before, and programs and places
 * forgotten. */
static sgm_status change(sgm_trainer *trainer, bool together)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    if (parallel->together == together)
        return SGM_OK;
    SGM_TRY(sgm__operator_collect(trainer));
    parallel->together = together;
    sgm__trainer_forget_programs(trainer);
    sgm__ranks_forget(parallel->ranks);
    return SGM_OK;
}

/* The invitation as rank 0 sends it; is_there is 0 if it could not be made, so that all ranks fail together.
 */
typedef struct letter {
    uint8_t is_there;
    unsigned char invitation[SGM__INVITATION];
} letter;

/* The first worker of rank 0 makes the invitation, an opaque token, which all others join by. */
static sgm_status invite(sgm_operator *parallel)
{
    letter sent = {0};
    sgm_status status = SGM_OK;
    const sgm__worker *first = &parallel->workers[0];
    if (sgm_operator_rank(parallel) == 0) {
        status = peers_of(first)->invite(first->handler->self, sent.invitation);
        sent.is_there = status == SGM_OK;
    }
    if (sgm_operator_ranks(parallel) > 1)
        SGM_TRY(sgm__ranks_send(parallel->ranks, &sent, sizeof sent, "the invitation of devices"));
    SGM_TRY(status);
    memcpy(parallel->place.invitation, sent.invitation, sizeof sent.invitation);
    return sent.is_there ? SGM_OK
                         : sgm_fail(SGM_ERROR_STATE, "rank 0 could not invite the devices of the others");
}

/* A task, as all peers must join at the same time, each on a thread of its own. */
static sgm_status join(sgm__worker *worker)
{
    sgm__peer_place own = worker->parallel->place;
    own.number += worker->number;
    return peers_of(worker)->join(worker->handler->self, &own);
}

/* `joined` is set before the workers join, so that a failure half-way has all of them leave (peers_end). */
sgm_status sgm__peers_begin(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    bool together = false;
    if (!parallel->merges_gradients)
        return SGM_OK;
    SGM_TRY(agree(trainer, &together));
    SGM_TRY(change(trainer, together));
    if (!together)
        return SGM_OK;
    SGM_TRY(invite(parallel));
    parallel->joined = true;
    SGM_TRY(sgm__workers_do(parallel, join, true));
    if (sgm_operator_rank(parallel) == 0)
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer), "gradients are summed between %d devices",
                 parallel->place.of);
    return SGM_OK;
}

/* --- what is recorded --- */

/* A gradient lies in a state of the session, so that it keeps its place on the device between the program
 * that computes it, the sum, and the program that updates by it. */
static sgm_value gradient_state(const sgm_trainer *replica, const sgm__trained_parameter *parameter)
{
    const sgm__learner *learner = sgm__learner_of(replica);
    sgm_type type = sgm_value_type(learner->graph, parameter->value);
    char *name = sgm__format(SGM__PART_PREFIX "%s", parameter->name);
    if (name == NULL)
        return sgm_graph_fail(learner->graph, SGM_ERROR_MEMORY, "no memory for the name of a gradient");
    sgm_value state = sgm_state(learner->graph, name, type.dtype, &type.shape);
    sgm__free(name);
    return state;
}

void sgm__peers_record_part(const sgm_trainer *replica, size_t index, sgm_value gradient)
{
    const sgm__learner *learner = sgm__learner_of(replica);
    sgm_assign(learner->graph, gradient_state(replica, &learner->trained[index]), gradient);
}

sgm_value sgm__peers_record_sum(const sgm_trainer *replica, size_t index)
{
    return gradient_state(replica, &sgm__learner_of(replica)->trained[index]);
}

sgm_status sgm__peers_define(sgm_trainer *replica, const char *state, const sgm_type *type)
{
    sgm_tensor *zeros = sgm_tensor_create(type->dtype, &type->shape);
    sgm_status status =
        zeros != NULL ? sgm_session_set(sgm__learner_of(replica)->session, state, zeros) : SGM_ERROR_MEMORY;
    sgm_tensor_free(zeros);
    return status;
}

/* --- an iteration --- */

/* Calls the function for each gradient, with the name of the state that it lies in, and stops at the first
 * failure. */
static sgm_status each_gradient(sgm__worker *worker,
                                sgm_status (*function)(sgm__worker *worker, size_t index, const char *state))
{
    for (size_t i = 0; i < worker->parallel->name_count; i++) {
        char *state = sgm__format(SGM__PART_PREFIX "%s", worker->parallel->names[i]);
        sgm_status status = state != NULL ? function(worker, i, state) : SGM_ERROR_MEMORY;
        sgm__free(state);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* Sets a gradient to zero, for a worker without examples, which takes part in the sum all the same. */
static sgm_status clear(sgm__worker *worker, size_t index, const char *state)
{
    sgm_type type;
    SGM_TRY(sgm_session_state_type(sgm__learner_of(worker->parallel->trainer)->session,
                                   worker->parallel->names[index], &type));
    return sgm__peers_define(worker->replica, state, &type);
}

/* Finds where a gradient lies on the device. All gradients must have one type, as devices sum arrays of one
 * type at a time. */
static sgm_status find_addend(sgm__worker *worker, size_t index, const char *state)
{
    sgm_type type;
    SGM_TRY(sgm_session_state_type(sgm__learner_of(worker->replica)->session, state, &type));
    if (index > 0 && type.dtype != worker->dtype)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "devices sum gradients of one type: '%s' is of %s, '%s' of %s",
                        worker->parallel->names[0], sgm_dtype_name(worker->dtype),
                        worker->parallel->names[index], sgm_dtype_name(type.dtype));
    worker->dtype = type.dtype;
    SGM_TRY(sgm__session_addend(sgm__learner_of(worker->replica)->session, state, &worker->addends[index]));
    worker->addend_count = index + 1;
    return SGM_OK;
}

sgm_status sgm__peers_prepare(sgm__worker *worker)
{
    const sgm_operator *parallel = worker->parallel;
    if (worker->examples == 0)
        SGM_TRY(each_gradient(worker, clear));
    if (worker->addend_count == parallel->name_count)
        return SGM_OK;
    SGM_TRY(
        sgm__reserve(&worker->addends, &worker->addend_capacity, parallel->name_count, sizeof(sgm__addend)));
    return each_gradient(worker, find_addend);
}

/* A worker's task: runs its program, if it has examples, and sums its gradients with those of all other
 * peers, in place. The session is checked in between: devices report some failures (an index out of range)
 * only later, and a sum reads the gradients without the session. */
static sgm_status compute_and_sum(sgm__worker *worker)
{
    if (worker->examples > 0) {
        SGM_TRY(sgm__worker_run(worker));
        SGM_TRY(sgm__session_check(sgm__learner_of(worker->replica)->session));
    }
    worker->sums = true;
    return peers_of(worker)->sum(worker->handler->self, worker->addends, worker->addend_count, worker->dtype,
                                 worker->parallel->place.seconds);
}

/* If a sum fails though all workers of this process came to it, another process is missing: the error names
 * the silent ranks. */
sgm_status sgm__peers_sum(sgm_operator *parallel)
{
    sgm__ranks *ranks = parallel->ranks;
    bool all_sum = true;
    for (int32_t i = 0; i < parallel->count; i++)
        parallel->workers[i].sums = false;
    sgm_status status = sgm__workers_do(parallel, compute_and_sum, true);
    for (int32_t i = 0; i < parallel->count; i++)
        all_sum = all_sum && parallel->workers[i].sums;
    if (ranks != NULL && status == SGM_OK)
        for (size_t i = 0; i < parallel->workers[0].addend_count; i++)
            ranks->bytes += (uint64_t)parallel->workers[0].addends[i].elements *
                            sgm_dtype_size(parallel->workers[0].dtype);
    return status == SGM_OK || ranks == NULL || !all_sum ? status
                                                         : sgm__ranks_name_silent(ranks, "a sum of devices");
}

/* --- comparing the workers' states --- */

/* Whether workers may have different values of a state: each draws random numbers of its own, and what is
 * kept for a reader may be kept at one worker alone. */
static bool differs_anyway(const char *state)
{
    return strcmp(state, "random.seed") == 0 || sgm__begins_with(state, SGM__KEPT_PREFIX);
}

/* Compares bytes, not numbers: peers make the same update of the same sum, so they must agree to the bit. */
static sgm_status compare_with(const sgm__worker *worker, const char *state, const sgm_tensor *expected)
{
    size_t bytes =
        (size_t)sgm_shape_elements(sgm_tensor_shape(expected)) * sgm_dtype_size(sgm_tensor_dtype(expected));
    sgm_tensor *own = sgm_session_get(sgm__learner_of(worker->replica)->session, state);
    sgm_status status = own != NULL ? SGM_OK : sgm_last_status();
    if (own != NULL && memcmp(sgm_tensor_const_data(own), sgm_tensor_const_data(expected), bytes) != 0)
        status = sgm_fail(
            SGM_ERROR_STATE,
            "worker %d has other values of '%s' than worker 0 after iteration %lld: the devices "
            "have come apart; the newest checkpoint is from before",
            worker->number, state, (long long)sgm__position_of(worker->parallel->trainer)->iteration);
    sgm_tensor_free(own);
    return status;
}

/* Compares a state of each worker with that of worker 0. */
static sgm_status compare(const sgm_operator *parallel, const char *state)
{
    sgm_tensor *expected = sgm_session_get(sgm__learner_of(parallel->workers[0].replica)->session, state);
    sgm_status status = expected != NULL ? SGM_OK : sgm_last_status();
    for (int32_t k = 1; k < parallel->count && status == SGM_OK; k++)
        status = compare_with(&parallel->workers[k], state, expected);
    sgm_tensor_free(expected);
    return status;
}

sgm_status sgm__peers_compare(const sgm_operator *parallel)
{
    const sgm_session *first = sgm__learner_of(parallel->workers[0].replica)->session;
    const char *state;
    for (size_t i = 0;
         parallel->together && parallel->count > 1 && (state = sgm_session_state_at(first, i)) != NULL; i++)
        if (!differs_anyway(state))
            SGM_TRY(compare(parallel, state));
    return SGM_OK;
}
