/* Averages of states over all ranks, for operators that merge parameters (`every`) instead of gradients.
 *
 * operator_state.c calls sgm__ranks_average after it has merged the states of this rank's workers: with `all`
 * false every `every` iterations, for parameters, and with `all` true at the end of an epoch or run, for
 * optimiser states, too. All ranks call it at the same iteration. Every state is one sum over ranks, divided
 * by their number: each rank has the same weight, whatever its number of workers or examples. Gradients are
 * summed in ranks_merge.c. */
#include "handlers/session.h"
#include "parallel/collective/ranks.h"

/* Divides in the state's own type, on each rank alike, so that all ranks have the same bits. */
static void divide(void *memory, sgm_dtype dtype, size_t count, double by)
{
    for (size_t i = 0; i < count && dtype == SGM_FLOAT32; i++)
        ((float *)memory)[i] /= (float)by;
    for (size_t i = 0; i < count && dtype == SGM_FLOAT64; i++)
        ((double *)memory)[i] /= by;
}

/* `memory`: `count` elements of float32 or float64, in place. A message has at most SGM__MAXIMUM_SENT bytes,
 * as counts of MPI have 32 bits. */
static sgm_status average_memory(sgm__ranks *ranks, sgm_dtype dtype, unsigned char *memory, size_t count)
{
    bool single = dtype == SGM_FLOAT32;
    size_t size = sgm_dtype_size(dtype), maximum = SGM__MAXIMUM_SENT / size;
    for (size_t done = 0; done < count; done += maximum) {
        size_t part = count - done < maximum ? count - done : maximum;
        const sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_SUM,
                                            .type =
                                                single ? SGM_COMMUNICATOR_FLOAT32 : SGM_COMMUNICATOR_FLOAT64,
                                            .data = memory + done * size,
                                            .count = part};
        SGM_TRY(sgm__ranks_do(ranks, &work, "the average"));
    }
    divide(memory, dtype, count, ranks->count);
    return SGM_OK;
}

/* Averages a tensor in place. Values of other types than float32 and float64 (counters, the random
 * generator's step) have no meaningful mean: all ranks take rank 0's. */
static sgm_status average_tensor(sgm__ranks *ranks, sgm_tensor *value)
{
    sgm_dtype dtype = sgm_tensor_dtype(value);
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(value));
    if (dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64)
        return average_memory(ranks, dtype, sgm_tensor_data(value), count);
    return sgm__ranks_send(ranks, sgm_tensor_data(value), count * sgm_dtype_size(dtype), "the average");
}

/* By way of a copy, which works for sessions of any handler. */
static sgm_status average_state(sgm__ranks *ranks, const char *name)
{
    sgm_tensor *value = sgm_session_get(sgm__learner_of(ranks->trainer)->session, name);
    sgm_status status = value != NULL ? average_tensor(ranks, value) : sgm_last_status();
    if (status == SGM_OK)
        status = sgm_session_set(sgm__learner_of(ranks->trainer)->session, name, value);
    sgm_tensor_free(value);
    return status;
}

/* States are taken in the order of their sorted names, which is the same on all ranks, since each state is a
 * message of its own. The seed of the random generator stays: it differs between ranks on purpose. */
sgm_status sgm__ranks_average(sgm_trainer *trainer, bool all)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    const char **names;
    size_t count;
    if (ranks == NULL || ranks->count < 2)
        return SGM_OK;
    SGM_TRY(sgm__ranks_states(trainer, &names, &count));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        if ((all || !sgm__begins_with(names[i], SGM__SLOT_PREFIX)) && strcmp(names[i], "random.seed") != 0)
            status = average_state(ranks, names[i]);
    sgm__free(names);
    return status;
}
