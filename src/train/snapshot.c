/* A snapshot of a training in memory: everything that a training step changes, copied, so that the trainer
 * can be set back to it.
 *
 * The hook nan_watch (src/loop/nan_watch.c) takes snapshots to repeat the steps before a value that is not
 * finite; the learning rate finder (src/loop/rate_finder.c) takes one to undo its trial steps. What outlives
 * the process is a checkpoint (src/runs), not this.
 *
 * A snapshot has a copy of each state of the trainer's session (parameters, optimiser states, running
 * statistics, the random generator's counter), the position, the newest loss, the place of the training
 * data's iterator and what preprocessors of the dataset have learnt. It has no hooks' states and no settings.
 * It owns all of its copies. All functions are called with the trainer's lock or on the run's thread. */
#include "train/snapshot.h"
#include "trainer/trainer_struct.h"

/* Copies every state of the session into `states`, under its own name. */
static sgm_status copy_states(sgm_trainer *trainer, sgm_bundle *states)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(trainer->learner.session, i)) != NULL; i++) {
        sgm_tensor *value = sgm_session_get(trainer->learner.session, name);
        sgm_status status = value != NULL ? sgm_bundle_add(states, name, value) : sgm_last_status();
        sgm_tensor_free(value);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* Copies the iterator's place, and the numbers that the dataset's preprocessors have learnt. The dataset is
 * asked twice: with NULL for how many numbers there are, then for the numbers themselves. One number more
 * than needed is allocated, so that a dataset without numbers does not ask for 0 bytes. */
static sgm_status copy_data(sgm_trainer *trainer, sgm__snapshot *snapshot)
{
    snapshot->has_data = trainer->data.training != NULL;
    if (!snapshot->has_data)
        return SGM_OK;
    sgm_iterator_get_state(trainer->data.training, &snapshot->place);
    sgm_dataset *dataset = sgm_iterator_dataset(trainer->data.training);
    SGM_TRY(sgm_dataset_get_state(dataset, NULL, &snapshot->dataset_count));
    snapshot->dataset = sgm__calloc(snapshot->dataset_count + 1, sizeof(double));
    if (snapshot->dataset == NULL)
        return SGM_ERROR_MEMORY;
    return sgm_dataset_get_state(dataset, snapshot->dataset, &snapshot->dataset_count);
}

/* States are collected from the workers before they are copied: between two iterations workers may have newer
 * ones than the trainer's session. */
sgm__snapshot *sgm__snapshot_take(sgm_trainer *trainer)
{
    sgm__snapshot *snapshot = sgm__calloc(1, sizeof *snapshot);
    if (snapshot == NULL)
        return NULL;
    snapshot->position = trainer->position;
    snapshot->newest_loss = trainer->progress.newest_loss;
    snapshot->states = sgm_bundle_create();
    if (snapshot->states != NULL && sgm__trainer_collect(trainer) == SGM_OK &&
        copy_states(trainer, snapshot->states) == SGM_OK && copy_data(trainer, snapshot) == SGM_OK)
        return snapshot;
    sgm__snapshot_free(snapshot);
    return NULL;
}

/* Sets states, position and the data's place back. Workers begin the next iteration from the restored states.
 * The iterator is set last, as it may have to read the block that the place is in. */
sgm_status sgm__snapshot_restore(sgm_trainer *trainer, const sgm__snapshot *snapshot)
{
    for (size_t i = 0; i < sgm_bundle_count(snapshot->states); i++) {
        const char *name = sgm_bundle_name_at(snapshot->states, i);
        SGM_TRY(sgm_session_set(trainer->learner.session, name, sgm_bundle_get(snapshot->states, name)));
    }
    sgm__trainer_restart_workers(trainer);
    trainer->position = snapshot->position;
    trainer->progress.newest_loss = snapshot->newest_loss;
    if (!snapshot->has_data || trainer->data.training == NULL)
        return SGM_OK;
    if (snapshot->dataset_count > 0)
        SGM_TRY(sgm_dataset_set_state(sgm_iterator_dataset(trainer->data.training), snapshot->dataset,
                                      snapshot->dataset_count));
    return sgm_iterator_set_state(trainer->data.training, &snapshot->place);
}

void sgm__snapshot_free(sgm__snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    sgm_bundle_free(snapshot->states);
    sgm__free(snapshot->dataset);
    sgm__free(snapshot);
}

/* Whether no element is NaN or infinite: a float32 or float64 number is not finite if all bits of its
 * exponent are 1. The test is made on integers and without a branch, since compilers turn this loop into
 * vector instructions; isfinite would branch for each element. Other types count as finite. */
static bool is_finite(const sgm_tensor *tensor)
{
    const void *data = sgm_tensor_const_data(tensor);
    int64_t count = sgm_shape_elements(sgm_tensor_shape(tensor));
    bool bad = false;
    if (sgm_tensor_dtype(tensor) == SGM_FLOAT32)
        for (int64_t i = 0; i < count; i++)
            bad |= (((const uint32_t *)data)[i] & 0x7f800000U) == 0x7f800000U;
    else if (sgm_tensor_dtype(tensor) == SGM_FLOAT64)
        for (int64_t i = 0; i < count; i++)
            bad |= (((const uint64_t *)data)[i] & 0x7ff0000000000000U) == 0x7ff0000000000000U;
    return !bad;
}

/* The name belongs to the snapshot. States are tested in the session's order, so that the first bad one is
 * the one that was recorded first, which is nearest to the network's input. */
const char *sgm__snapshot_bad_state(const sgm__snapshot *snapshot)
{
    for (size_t i = 0; i < sgm_bundle_count(snapshot->states); i++) {
        const char *name = sgm_bundle_name_at(snapshot->states, i);
        if (!is_finite(sgm_bundle_get(snapshot->states, name)))
            return name;
    }
    return NULL;
}
