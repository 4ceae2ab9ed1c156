/* What ranks bring together in each iteration: the examples that each takes of a minibatch, the numbers that
 * all learn (loss, correct predictions, states that the network changes itself), and the gradients.
 *
 * Gradients are summed in pieces (buckets) while workers still compute. They lie one behind another in one
 * piece of memory (`flat`), in the order of the parameters. It is divided into buckets from the end, as the
 * last layers' gradients are complete first. A worker's program is cut where each bucket becomes complete;
 * when all workers have passed a cut, the run's thread adds the workers' gradients of that bucket up and
 * starts its sum (Li et al., PyTorch Distributed, 2020). Ranks of one node read each other's memory instead
 * (ranks_shared_memory.c). As bfloat16, what rounding loses is added to the next iteration's gradient (Seide
 * et al., 2014). */
#include "data/dataset.h"
#include "handlers/session.h"
#include "parallel/collective/ranks.h"
#include "tensor/tensor_internal.h"

#include <math.h>

/* --- examples --- */

void sgm__ranks_take_part(const sgm_trainer *trainer)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks != NULL && sgm__sharing_of(trainer)->parallel->merges_gradients)
        sgm__iterator_set_part(sgm__data_of(trainer)->training, ranks->rank, ranks->count);
}

/* This rank's examples of the minibatch: whole * rank / count up to whole * (rank + 1) / count, within the
 * part that its iterator has copied. */
void sgm__ranks_part(const sgm_trainer *trainer, const sgm_block *block, int64_t *first, int64_t *count,
                     int64_t *whole)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__given_part given;
    sgm__iterator_given(sgm__data_of(trainer)->training, block, &given);
    int64_t begin = given.whole * ranks->rank / ranks->count;
    int64_t end = given.whole * (ranks->rank + 1) / ranks->count;
    *whole = given.whole;
    *first = begin - given.first;
    *count = end - begin;
}

/* --- numbers that all ranks sum --- */

/* What all ranks learn of an iteration, as sums; costs and states that the network changes follow. */
enum { LOSS, CORRECT, EXAMPLES, HAS_ACCURACY, MEETS, STOPS, UPDATES, ACCUMULATED, SIGNS, SHARED = SIGNS + 2 };

/* What is done with each state that layers change themselves (running statistics), which become the mean over
 * the examples of all ranks. *at: the place of the state's first number in ranks->shared, which moves on. */
typedef sgm_status (*each_state)(sgm__ranks *ranks, const char *name, size_t *at, double share);

/* Writes a state into the numbers that are summed, multiplied by this rank's share of the examples, so that
 * the sum over ranks is the mean over examples. */
static sgm_status put_state(sgm__ranks *ranks, const char *name, size_t *at, double share)
{
    sgm_tensor *value = sgm_session_get(sgm__learner_of(ranks->trainer)->session, name);
    if (value == NULL)
        return sgm_last_status();
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(value));
    sgm_status status =
        sgm__reserve(&ranks->shared, &ranks->shared_capacity, *at + count, sizeof *ranks->shared);
    if (status == SGM_OK)
        status = sgm_tensor_read(value, ranks->shared + *at, count);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        ranks->shared[*at + i] *= share;
    *at += count;
    sgm_tensor_free(value);
    return status;
}

/* Sets a state to the sum over all ranks. Integers are rounded, as a weighted sum of equal integers may miss
 * them by a rounding error. */
static sgm_status get_state(sgm__ranks *ranks, const char *name, size_t *at, double share)
{
    (void)share;
    sgm_tensor *value = sgm_session_get(sgm__learner_of(ranks->trainer)->session, name);
    if (value == NULL)
        return sgm_last_status();
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(value));
    sgm_dtype dtype = sgm_tensor_dtype(value);
    bool rounds = dtype != SGM_FLOAT32 && dtype != SGM_FLOAT64 && dtype != SGM_BFLOAT16;
    for (size_t i = 0; i < count && rounds; i++)
        ranks->shared[*at + i] = rint(ranks->shared[*at + i]);
    sgm_status status = sgm_tensor_write(value, ranks->shared + *at, count);
    if (status == SGM_OK)
        status = sgm_session_set(sgm__learner_of(ranks->trainer)->session, name, value);
    *at += count;
    sgm_tensor_free(value);
    return status;
}

/* Calls the function for each state that layers change themselves, in the session's order. */
static sgm_status for_others(sgm__ranks *ranks, each_state function, size_t *at, double share)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(sgm__learner_of(ranks->trainer)->session, i)) != NULL;
         i++)
        if (sgm__trainer_is_layer_state(ranks->trainer, name))
            SGM_TRY(function(ranks, name, at, share));
    return SGM_OK;
}

/* Appends these states to the numbers that are summed. */
static sgm_status put_states(sgm__ranks *ranks, double share)
{
    return for_others(ranks, put_state, &ranks->shared_count, share);
}

/* Takes these states from the summed numbers, behind the costs. */
static sgm_status get_states(sgm__ranks *ranks)
{
    size_t at = SHARED + sgm__learner_of(ranks->trainer)->cost_count;
    return for_others(ranks, get_state, &at, 0);
}

/* Everything that all ranks learn of an iteration goes as one list of doubles, in one sum: losses, counts,
 * whether someone wants to meet or to stop, a signature of what hooks requested. */
static sgm_status put_shared(sgm__ranks *ranks, const sgm__metric_sums *own)
{
    const sgm_trainer *trainer = ranks->trainer;
    const sgm__training_position *first =
        sgm__position_of(sgm__sharing_of(trainer)->parallel->workers[0].replica);
    size_t count = SHARED + sgm__learner_of(trainer)->cost_count;
    SGM_TRY(sgm__reserve(&ranks->shared, &ranks->shared_capacity, count, sizeof *ranks->shared));
    ranks->shared[LOSS] = own->loss;
    ranks->shared[CORRECT] = own->correct;
    ranks->shared[EXAMPLES] = (double)own->examples;
    ranks->shared[HAS_ACCURACY] = own->has_accuracy;
    ranks->shared[MEETS] = sgm__ranks_wants_meeting(ranks);
    ranks->shared[STOPS] = ranks->wants_stop;
    ranks->shared[UPDATES] = ranks->rank == 0 ? (double)first->updates : 0;
    ranks->shared[ACCUMULATED] = ranks->rank == 0 ? (double)first->accumulated : 0;
    sgm__ranks_put_sign(ranks, &ranks->shared[SIGNS]);
    for (size_t i = 0; i < sgm__learner_of(trainer)->cost_count; i++)
        ranks->shared[SHARED + i] =
            own->examples > 0 ? sgm__learner_of(trainer)->costs[i]->newest * (double)own->examples : 0;
    ranks->shared_count = count;
    return SGM_OK;
}

/* Reads the sums over all ranks: metrics of the whole minibatch, and whether a meeting follows. */
static sgm_status get_shared(sgm__ranks *ranks, sgm__metric_sums *sums)
{
    const sgm_trainer *trainer = ranks->trainer;
    const double *shared = ranks->shared;
    *sums = (sgm__metric_sums){.loss = shared[LOSS],
                               .correct = shared[CORRECT],
                               .examples = (int64_t)shared[EXAMPLES],
                               .has_accuracy = shared[HAS_ACCURACY] > 0};
    ranks->someone_stops = shared[STOPS] > 0;
    ranks->meets = shared[MEETS] > 0 || shared[STOPS] > 0;
    for (size_t i = 0; i < sgm__learner_of(trainer)->cost_count; i++)
        sgm__learner_of(trainer)->costs[i]->newest = shared[SHARED + i] / shared[EXAMPLES];
    return sgm__ranks_check_signs(ranks, &shared[SIGNS]);
}

/* Starts the sum of these numbers as a message. */
static sgm_status sum_shared(sgm__ranks *ranks, int32_t *ticket)
{
    const sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_SUM,
                                        .type = SGM_COMMUNICATOR_FLOAT64,
                                        .data = ranks->shared,
                                        .count = ranks->shared_count};
    return sgm__ranks_start(ranks, &work, ticket);
}

sgm_status sgm__ranks_share(sgm_trainer *trainer, sgm__metric_sums *sums, int64_t *updates,
                            int64_t *accumulated)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    int32_t ticket;
    SGM_TRY(put_shared(ranks, sums));
    SGM_TRY(sum_shared(ranks, &ticket));
    SGM_TRY(sgm__ranks_wait(ranks, ticket, "the costs"));
    SGM_TRY(get_shared(ranks, sums));
    *updates = (int64_t)ranks->shared[UPDATES];
    *accumulated = (int64_t)ranks->shared[ACCUMULATED];
    return SGM_OK;
}

/* --- gradients: summed in buckets --- */

#define MAXIMUM_BUCKETS 128 /* all may be under way at once */
#define LOOK_SECONDS 50e-6  /* the shortest time between two looks at sums that are under way */
#define MAXIMUM_LOOK 1e-3   /* the longest; each look takes the processor from a worker that computes */

void sgm__ranks_forget_lost(const sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks != NULL && ranks->lost != NULL)
        memset(ranks->lost, 0, ranks->place_bytes);
}

static sgm_status add_bucket(sgm__ranks *ranks, size_t first, size_t bytes, int32_t owner)
{
    SGM_TRY(sgm__reserve(&ranks->buckets, &ranks->bucket_capacity, ranks->bucket_count + 1,
                         sizeof *ranks->buckets));
    ranks->buckets[ranks->bucket_count++] =
        (sgm__rank_bucket){.first = first, .bytes = bytes, .owner = owner};
    return SGM_OK;
}

/* Divides the bytes [first, end) into buckets, from the end on. The first bytes become one bucket of up to
 * one and a half times the size, so that no small one is left. Buckets are larger than options.bucket_bytes
 * where there would be more than about MAXIMUM_BUCKETS of them. */
static sgm_status divide_range(sgm__ranks *ranks, size_t first, size_t end, int32_t owner)
{
    size_t each = sgm_dtype_size(ranks->dtype);
    size_t maximum = (size_t)ranks->options.bucket_bytes / each;
    size_t minimum = ranks->place_bytes / each / MAXIMUM_BUCKETS + 1;
    size_t bytes = (maximum > minimum ? maximum : minimum) * each;
    while (end > first) {
        size_t left = end - first, part = left < bytes + bytes / 2 ? left : bytes;
        end -= part;
        SGM_TRY(add_bucket(ranks, end, part, owner));
    }
    return SGM_OK;
}

/* With divided optimiser states a bucket has one owner, and its sum goes to that rank alone. */
static sgm_status divide(sgm__ranks *ranks)
{
    size_t end = ranks->place_bytes;
    if (!ranks->reduces)
        return divide_range(ranks, 0, end, -1);
    for (size_t i = ranks->place_count; i-- > 0;) {
        bool begins = i == 0 || ranks->places[i - 1].owner != ranks->places[i].owner;
        if (!begins)
            continue;
        SGM_TRY(divide_range(ranks, ranks->places[i].first, end, ranks->places[i].owner));
        end = ranks->places[i].first;
    }
    return SGM_OK;
}

/* Room for the rounded gradients and for what rounding lost. */
static sgm_status make_narrow(sgm__ranks *ranks)
{
    if (!ranks->options.narrow)
        return SGM_OK;
    if (ranks->dtype != SGM_FLOAT32)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "gradients travel as bfloat16 where they are of float32, not of %s",
                        sgm_dtype_name(ranks->dtype));
    size_t count = ranks->place_bytes / sizeof(float);
    sgm__free(ranks->narrowed);
    sgm__free(ranks->lost);
    ranks->narrowed = sgm__calloc(count, sizeof *ranks->narrowed);
    ranks->lost = sgm__calloc(count, sizeof *ranks->lost);
    return ranks->narrowed != NULL && ranks->lost != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* All gradients lie in one array of one type. */
static sgm_status find_type(sgm__ranks *ranks)
{
    const sgm__rank_place *places = ranks->places;
    for (size_t i = 1; i < ranks->place_count; i++)
        if (places[i].dtype != places[0].dtype)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "ranks want all parameters of one type: '%s' is of %s, '%s' of %s",
                            places[0].name, sgm_dtype_name(places[0].dtype), places[i].name,
                            sgm_dtype_name(places[i].dtype));
    ranks->dtype = places[0].dtype;
    return ranks->dtype == SGM_FLOAT32 || ranks->dtype == SGM_FLOAT64
               ? SGM_OK
               : sgm_fail(SGM_ERROR_UNSUPPORTED, "ranks sum gradients of float32 and float64, not of %s",
                          sgm_dtype_name(ranks->dtype));
}

/* Finds places and buckets and allocates the flat gradients; done again when the trained parameters are
 * others. Gaps between parameters are summed, too, so they are cleared. */
static sgm_status lay_out(sgm__ranks *ranks)
{
    const sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->parallel;
    ranks->bucket_count = 0;
    SGM_TRY(sgm__ranks_find_places(ranks));
    SGM_TRY(find_type(ranks));
    ranks->reduces = sgm__ranks_reduce(ranks->trainer);
    for (int32_t i = 0; i < parallel->count; i++)
        parallel->workers[i].cut = NULL;
    if (ranks->place_bytes > ranks->flat_capacity) {
        sgm__free_aligned(ranks->flat);
        ranks->flat = sgm__alloc_aligned(ranks->place_bytes);
        ranks->flat_capacity = ranks->flat != NULL ? ranks->place_bytes : 0;
    }
    if (ranks->flat == NULL)
        return SGM_ERROR_MEMORY;
    memset(ranks->flat, 0, ranks->place_bytes);
    SGM_TRY(make_narrow(ranks));
    return divide(ranks);
}

/* --- this rank's part --- */

static void add_float(float *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

static void add_double(double *to, const double *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* Copies `bytes` bytes of gradients to place `first` of the flat ones, or adds them to what is there. */
static void take(const sgm__ranks *ranks, size_t first, const void *from, size_t bytes, bool adds)
{
    void *to = ranks->flat + first;
    if (!adds)
        memcpy(to, from, bytes);
    else if (ranks->dtype == SGM_FLOAT32)
        add_float(to, from, bytes / sizeof(float));
    else
        add_double(to, from, bytes / sizeof(double));
}

/* Adds the workers' gradients of one parameter up, for the bytes [first, end) of it. */
static sgm_status combine(const sgm__ranks *ranks, size_t index, size_t first, size_t end)
{
    const sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->parallel;
    size_t at = ranks->places[index].first + first;
    bool adds = false;
    for (int32_t k = 0; k < parallel->count; k++) {
        sgm__worker *worker = &parallel->workers[k];
        if (worker->examples == 0)
            continue;
        sgm_tensor *copy = NULL;
        const void *memory;
        SGM_TRY(sgm__worker_gradient(worker, index, &memory, &copy));
        take(ranks, at, (const unsigned char *)memory + first, end - first, adds);
        sgm_tensor_free(copy);
        adds = true;
    }
    if (!adds)
        memset(ranks->flat + at, 0, end - first);
    return SGM_OK;
}

/* Combines the workers' gradients for a bucket, which may have the end of one parameter and the beginning of
 * the next. */
static sgm_status combine_bucket(const sgm__ranks *ranks, const sgm__rank_bucket *bucket)
{
    size_t end = bucket->first + bucket->bytes;
    for (size_t i = 0; i < ranks->place_count; i++) {
        const sgm__rank_place *place = &ranks->places[i];
        size_t from = place->first > bucket->first ? place->first : bucket->first;
        size_t to = place->first + place->bytes < end ? place->first + place->bytes : end;
        if (from < to)
            SGM_TRY(combine(ranks, i, from - place->first, to - place->first));
    }
    return SGM_OK;
}

/* Rounds to bfloat16, with the loss of the iteration before added, and keeps the new loss. */
static void narrow(sgm__ranks *ranks, const sgm__rank_bucket *bucket)
{
    const float *flat = (const float *)(const void *)ranks->flat;
    size_t end = (bucket->first + bucket->bytes) / sizeof(float);
    for (size_t i = bucket->first / sizeof(float); i < end; i++) {
        float wanted = flat[i] + ranks->lost[i];
        ranks->narrowed[i] = sgm__bfloat16_from_float(wanted);
        ranks->lost[i] = wanted - sgm__bfloat16_to_float(ranks->narrowed[i]);
    }
}

/* The sums come back as bfloat16; the update reads float32. */
static void widen(sgm__ranks *ranks)
{
    float *flat = (float *)(void *)ranks->flat;
    for (size_t i = 0; i < ranks->place_bytes / sizeof(float); i++)
        flat[i] = sgm__bfloat16_to_float(ranks->narrowed[i]);
}

/* Starts the sum of a bucket: to all ranks, or to the owner of its parameters alone. */
static sgm_status start_bucket(sgm__ranks *ranks, sgm__rank_bucket *bucket)
{
    sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_SUM,
                                  .type = ranks->dtype == SGM_FLOAT32 ? SGM_COMMUNICATOR_FLOAT32
                                                                      : SGM_COMMUNICATOR_FLOAT64,
                                  .data = ranks->flat + bucket->first,
                                  .count = bucket->bytes / sgm_dtype_size(ranks->dtype)};
    if (bucket->owner >= 0) {
        work.kind = SGM_COMMUNICATOR_REDUCE;
        work.root = bucket->owner;
    }
    if (ranks->options.narrow) {
        narrow(ranks, bucket);
        work.type = SGM_COMMUNICATOR_BFLOAT16;
        work.data = ranks->narrowed + bucket->first / sizeof(float);
    }
    return sgm__ranks_start(ranks, &work, &bucket->ticket);
}

/* --- an iteration --- */

/* Raises *steps to the number of steps of a worker's program after which all gradients in the bucket are
 * complete. Buckets complete in their order, so *steps never falls. */
static sgm_status steps_for(sgm__ranks *ranks, const sgm__rank_bucket *bucket, sgm__worker *worker,
                            int32_t *steps)
{
    for (size_t i = 0; i < ranks->place_count; i++) {
        const sgm__rank_place *place = &ranks->places[i];
        int32_t own;
        if (place->first >= bucket->first + bucket->bytes || place->first + place->bytes <= bucket->first)
            continue;
        SGM_TRY(sgm__worker_gradient_ready(worker, i, &own));
        *steps = own > *steps ? own : *steps;
    }
    return SGM_OK;
}

/* Cuts the worker's program behind the steps that complete each bucket. Sums that layers make amid the
 * program come first, as all ranks make these in the same order. One bucket, or a device's memory, waits
 * for the end. */
static sgm_status cut(sgm__ranks *ranks, sgm__worker *worker)
{
    int32_t steps = 0;
    if (worker->cut == worker->program)
        return SGM_OK;
    size_t before = worker->reduction_count;
    worker->end_count = before;
    worker->cut = worker->program;
    if (before > 0) /* all ranks make the same sums in the same order: gradients come last */
        steps = worker->ends[before - 1];
    if (ranks->bucket_count < 2 || !sgm__session_is_host(sgm__learner_of(worker->replica)->session))
        return SGM_OK;
    SGM_TRY(sgm__reserve(&worker->ends, &worker->end_capacity, before + ranks->bucket_count,
                         sizeof *worker->ends));
    for (size_t i = 0; i < ranks->bucket_count; i++) {
        SGM_TRY(steps_for(ranks, &ranks->buckets[i], worker, &steps));
        worker->ends[before + i] = steps;
    }
    worker->end_count = before + ranks->bucket_count;
    return SGM_OK;
}

/* Called before the workers run. Ranks of one node have no buckets: they share the workers' memory instead.
 */
sgm_status sgm__ranks_cut(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    ranks->next = 0;
    if (ranks->node != NULL)
        return sgm__ranks_prepare_sharing(ranks);
    if (ranks->bucket_count == 0 || ranks->reduces != sgm__ranks_reduce(trainer))
        SGM_TRY(lay_out(ranks));
    for (size_t i = 0; i < ranks->bucket_count; i++)
        ranks->buckets[i].done = false;
    for (int32_t i = 0; i < parallel->count; i++)
        if (parallel->workers[i].examples > 0)
            SGM_TRY(cut(ranks, &parallel->workers[i]));
    return SGM_OK;
}

/* How many buckets all workers have completed. Called with the operator's lock. */
static size_t count_ready(const sgm__ranks *ranks)
{
    const sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->parallel;
    size_t minimum = ranks->bucket_count;
    for (int32_t i = 0; i < parallel->count; i++)
        if (parallel->workers[i].examples > 0 && parallel->workers[i].pieces < minimum)
            minimum = parallel->workers[i].pieces;
    return minimum;
}

bool sgm__ranks_are_behind(const sgm__ranks *ranks)
{
    return ranks != NULL && count_ready(ranks) > ranks->next;
}

/* At most MAXIMUM_BUCKETS sums are under way, as MPI libraries limit the number of operations: before another
 * one is started, the oldest is waited for. */
static sgm_status make_room(sgm__ranks *ranks)
{
    sgm__rank_bucket *oldest =
        ranks->next < MAXIMUM_BUCKETS ? NULL : &ranks->buckets[ranks->next - MAXIMUM_BUCKETS];
    if (oldest == NULL || oldest->done)
        return SGM_OK;
    oldest->done = true;
    return sgm__ranks_wait(ranks, oldest->ticket, "the gradients");
}

static sgm_status start_next(sgm__ranks *ranks)
{
    SGM_TRY(make_room(ranks));
    sgm__rank_bucket *bucket = &ranks->buckets[ranks->next++];
    SGM_TRY(combine_bucket(ranks, bucket));
    bucket->began = sgm__now();
    return start_bucket(ranks, bucket);
}

/* Called while workers compute: starts the buckets that are complete, and looks at the oldest sum that is
 * under way, which also lets the MPI make progress. *rest: how long to wait before the next look, longer
 * the longer the sum has taken, as a look takes the processor from those who compute. */
sgm_status sgm__ranks_go_on(sgm__ranks *ranks, double *rest)
{
    sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->parallel;
    pthread_mutex_lock(&parallel->lock);
    size_t ready = count_ready(ranks);
    pthread_mutex_unlock(&parallel->lock);
    while (ranks->next < ready)
        SGM_TRY(start_next(ranks));
    /* One look carries all sums on, and they end in their order. */
    for (size_t i = 0; i < ranks->next; i++) {
        char message[SGM_COMMUNICATOR_MESSAGE];
        sgm__rank_bucket *bucket = &ranks->buckets[i];
        if (bucket->done)
            continue;
        if (ranks->table->test(ranks->self, bucket->ticket, 0, &bucket->done, message) != SGM_COMMUNICATOR_OK)
            return sgm_fail(SGM_ERROR_STATE, "the gradients of rank %d: %s", ranks->rank, message);
        if (!bucket->done) {
            double under_way = (sgm__now() - bucket->began) / 8;
            *rest = fmin(fmax(under_way, LOOK_SECONDS), MAXIMUM_LOOK);
            return SGM_OK;
        }
    }
    return SGM_OK;
}

/* The numbers of the iteration are started behind all buckets, on every rank alike. */
static sgm_status sum_by_messages(sgm__ranks *ranks)
{
    int32_t ticket;
    SGM_TRY(sum_shared(ranks, &ticket));
    for (size_t i = 0; i < ranks->bucket_count; i++)
        if (!ranks->buckets[i].done)
            SGM_TRY(sgm__ranks_wait(ranks, ranks->buckets[i].ticket, "the gradients"));
    SGM_TRY(sgm__ranks_wait(ranks, ticket, "the costs"));
    if (ranks->options.narrow)
        widen(ranks);
    return SGM_OK;
}

/* Starts the buckets that are left, sums what all ranks learn of the iteration, and waits for everything. */
sgm_status sgm__ranks_merge(sgm_trainer *trainer, int64_t whole, sgm__metric_sums *sums)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    while (ranks->next < ranks->bucket_count)
        SGM_TRY(start_next(ranks));
    double share = (double)sums->examples / (double)whole;
    SGM_TRY(put_shared(ranks, sums));
    SGM_TRY(put_states(ranks, share));
    SGM_TRY(ranks->node != NULL ? sgm__ranks_share_gradients(ranks) : sum_by_messages(ranks));
    SGM_TRY(get_shared(ranks, sums));
    return get_states(ranks);
}

/* Feeds a gradient into an update that runs on a device, by way of a tensor. */
static sgm_status feed_copy(const sgm__ranks *ranks, sgm_program *apply, size_t index, const void *memory)
{
    sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->parallel;
    sgm_type type;
    SGM_TRY(sgm_session_state_type(sgm__learner_of(ranks->trainer)->session, parallel->names[index], &type));
    sgm_tensor *value = sgm_tensor_create(type.dtype, &type.shape);
    if (value == NULL)
        return SGM_ERROR_MEMORY;
    memcpy(sgm_tensor_data(value), memory, ranks->places[index].bytes);
    sgm_status status = sgm__feed_part(parallel, 0, apply, index, memory, value);
    sgm_tensor_free(value);
    return status;
}

/* Gradients that other ranks' updates read have not arrived here, and are left out. */
sgm_status sgm__ranks_pass(sgm_trainer *trainer, sgm_program *apply)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    bool shares = sgm__session_is_host(sgm__learner_of(trainer)->session);
    if (ranks->node != NULL)
        return sgm__ranks_pass_shared(ranks, apply);
    for (size_t i = 0; i < ranks->place_count; i++) {
        const void *memory = ranks->flat + ranks->places[i].first;
        if (ranks->reduces && ranks->places[i].owner != ranks->rank)
            continue;
        SGM_TRY(shares ? sgm__feed_part(parallel, 0, apply, i, memory, NULL)
                       : feed_copy(ranks, apply, i, memory));
    }
    return SGM_OK;
}
