/* Gradients where a worker's program leaves them: outputs of the program, which others read in place, or a
 * copy of them where the memory is a device's.
 *
 * The update of this process (sgm__worker_pass_gradients) reads them, and the ranks: collective/ranks_merge.c
 * adds them up into messages, collective/ranks_shared_memory.c tells other processes where they lie.
 * Gradients have the order of the operator's names (parallel/operator_record.c). They are valid until the
 * worker's next run. Peers do not use this file: their gradients are states (parallel/operator_peers.c). */
#include "handlers/session.h"
#include "parallel/workers/workers.h"
#include "trainer/trainer.h"

/* The name of the output that has the gradient of a parameter. The text is the worker's and valid until the
 * next call; NULL: no memory. Its memory is used again, so that finding outputs allocates nothing after the
 * first time. */
static const char *name_of(sgm__worker *worker, const char *parameter)
{
    worker->name.length = 0;
    sgm__text_append(&worker->name, SGM__PART_PREFIX "%s", parameter);
    return worker->name.failed ? NULL : worker->name.data;
}

/* Finds the place of each gradient among the outputs of the worker's program. Programs alternate where
 * minibatches have different sizes, so this is done whenever the program is another one than at the last
 * call. */
static sgm_status find_outputs(sgm__worker *worker)
{
    const sgm_operator *parallel = worker->parallel;
    if (worker->from == worker->program)
        return SGM_OK;
    SGM_TRY(
        sgm__reserve(&worker->outputs, &worker->output_capacity, parallel->name_count + 1, sizeof(int32_t)));
    for (size_t i = 0; i < parallel->name_count; i++) {
        const char *output = name_of(worker, parallel->names[i]);
        if (output == NULL)
            return SGM_ERROR_MEMORY;
        worker->outputs[i] = sgm__program_output(worker->program, output);
        if (worker->outputs[i] < 0)
            return sgm_fail(SGM_ERROR_STATE,
                            "worker %d has no gradient of '%s': all workers must train the "
                            "same parameters",
                            worker->number, parallel->names[i]);
    }
    worker->from = worker->program;
    return SGM_OK;
}

/* Copies a gradient out of a device's memory into a new tensor, which the caller frees. */
static sgm_status copy_gradient(sgm__worker *worker, size_t index, sgm_tensor **copy)
{
    const char *output = name_of(worker, worker->parallel->names[index]);
    if (output == NULL)
        return SGM_ERROR_MEMORY;
    sgm_type type = sgm_program_output_type(worker->program, output);
    *copy = sgm_tensor_create(type.dtype, &type.shape);
    return *copy != NULL
               ? sgm_session_read(sgm__learner_of(worker->replica)->session, worker->program, output, *copy)
               : SGM_ERROR_MEMORY;
}

sgm_status sgm__worker_gradient(sgm__worker *worker, size_t index, const void **memory, sgm_tensor **copy)
{
    const sgm_session *session = sgm__learner_of(worker->replica)->session;
    SGM_TRY(find_outputs(worker));
    if (sgm__session_is_host(session)) {
        *memory = sgm__session_output_memory(session, worker->program, worker->outputs[index]);
        return SGM_OK;
    }
    SGM_TRY(copy_gradient(worker, index, copy));
    *memory = sgm_tensor_const_data(*copy);
    return SGM_OK;
}

sgm_status sgm__worker_gradient_ready(sgm__worker *worker, size_t index, int32_t *steps)
{
    SGM_TRY(find_outputs(worker));
    *steps = sgm__program_output_ready(worker->program, worker->outputs[index]);
    return SGM_OK;
}

/* Where both sessions compute in the host's memory, the update's inputs point to the gradients; otherwise
 * each gradient is copied. */
sgm_status sgm__worker_pass_gradients(sgm__worker *worker, const sgm_trainer *trainer, sgm_program *apply)
{
    bool shares = sgm__session_is_host(sgm__learner_of(worker->replica)->session) &&
                  sgm__session_is_host(sgm__learner_of(trainer)->session);
    for (size_t i = 0; i < worker->parallel->name_count; i++) {
        const void *memory = NULL;
        sgm_tensor *copy = NULL;
        sgm_status status = shares ? sgm__worker_gradient(worker, i, &memory, &copy) : SGM_OK;
        if (!shares)
            status = find_outputs(worker) == SGM_OK ? copy_gradient(worker, i, &copy) : sgm_last_status();
        if (status == SGM_OK)
            status = sgm__feed_part(worker->parallel, (size_t)worker->number, apply, i, memory, copy);
        sgm_tensor_free(copy);
        SGM_TRY(status);
    }
    return SGM_OK;
}
