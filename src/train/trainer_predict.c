/* Looking at a trainer: predictions, parameters, programs. */
#include "handlers/session.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"

#define LARGEST_BATCH 1000

/* One example is too few for a variance over the minibatch, two are too many for a single stream. */
sgm_status sgm__trainer_define_states(sgm_trainer *trainer)
{
    sgm__step_purpose purpose = trainer->learner.optimiser != NULL ? SGM__UPDATE : SGM__PREDICT;
    sgm_status status = sgm__trainer_record(trainer, purpose, 1);
    if (status == SGM_OK)
        return SGM_OK;
    if (status != SGM_ERROR_SHAPE || purpose != SGM__UPDATE)
        return status;
    char *message = sgm__strdup(sgm_last_error());
    if (message != NULL && sgm__trainer_record(trainer, purpose, 2) != SGM_OK)
        status = sgm_fail(status, "%s", message); /* that of the fewest examples */
    else
        status = message != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    sgm__free(message);
    return status;
}

sgm_status sgm_trainer_prepare(sgm_trainer *trainer)
{
    SGM_TRY(sgm__trainer_open(trainer));
    return sgm__trainer_close(trainer, sgm__trainer_define_states(trainer));
}

sgm_status sgm__trainer_prepare(sgm_trainer *trainer)
{
    SGM_TRY(sgm_trainer_status(trainer));
    return sgm__trainer_define_states(trainer) == SGM_OK ? SGM_OK
                                                         : sgm__fail_within("trainer '%s'", trainer->name);
}

const sgm_parameter *sgm_trainer_parameters(sgm_trainer *trainer, size_t *count)
{
    *count = trainer != NULL ? trainer->learner.recording.parameter_count : 0;
    return trainer != NULL ? trainer->learner.recording.parameters : NULL;
}

static sgm_tensor *get(sgm_trainer *trainer, const char *state)
{
    return sgm__trainer_prepare(trainer) == SGM_OK && sgm__trainer_collect(trainer) == SGM_OK
               ? sgm_session_get(trainer->learner.session, state)
               : NULL;
}

sgm_tensor *sgm_trainer_get(sgm_trainer *trainer, const char *state)
{
    if (sgm__trainer_open(trainer) != SGM_OK)
        return NULL;
    sgm_tensor *value = get(trainer, state);
    sgm__trainer_unlock(trainer);
    return value;
}

static sgm_status set(sgm_trainer *trainer, const char *state, const sgm_tensor *value)
{
    SGM_TRY(sgm__trainer_prepare(trainer));
    sgm_type type;
    SGM_TRY(sgm__trainer_check_set(trainer, state));
    SGM_TRY(
        sgm_session_state_type(trainer->learner.session, state, &type)); /* a new name would be a mistake */
    sgm__trainer_parameters_changed(trainer);
    return sgm__trainer_put_state(trainer, state, value);
}

sgm_status sgm_trainer_set(sgm_trainer *trainer, const char *state, const sgm_tensor *value)
{
    SGM_TRY(sgm__trainer_open(trainer));
    sgm_status status = set(trainer, state, value);
    sgm__trainer_unlock(trainer);
    return status;
}

/* --- prediction --- */

/* Names of the first input and of the wanted output, as the newest recording has them. */
static sgm_status find_ends(const sgm_trainer *trainer, const char **input, const char **output)
{
    const sgm_recording *recording = &trainer->learner.recording;
    if (recording->input_count != 1)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "the network has %zu inputs; predict with a block of them",
                        recording->input_count);
    *input = recording->inputs[0].name;
    if (*output == NULL && recording->output_count > 0)
        *output = recording->outputs[0].name;
    return *output != NULL ? SGM_OK : sgm_fail(SGM_ERROR_NOT_FOUND, "the network has no outputs");
}

static sgm_status predict_part(sgm_trainer *trainer, sgm_tensor *inputs, int64_t first, int64_t count,
                               const char *output, sgm_tensor **result)
{
    const char *input = NULL;
    sgm_program *program = sgm__trainer_program(trainer, SGM__PREDICT, count);
    if (program == NULL)
        return sgm_last_status();
    SGM_TRY(find_ends(trainer, &input, &output));
    if (!sgm_program_has_output(program, output))
        return sgm_fail(SGM_ERROR_NOT_FOUND, "the network has no output '%s'", output);
    sgm_tensor *part = sgm_tensor_slice(inputs, 0, first, first + count, 1);
    sgm_status status =
        part != NULL ? sgm_session_feed(trainer->learner.session, program, input, part) : sgm_last_status();
    if (part != NULL && status == SGM_ERROR_SHAPE)
        status = sgm__trainer_shape_mismatch(trainer, program, sgm__program_input(program, input), part);
    sgm_tensor_free(part);
    SGM_TRY(status);
    SGM_TRY(sgm_session_run(trainer->learner.session, program));
    sgm_type type = sgm_program_output_type(program, output);
    if (*result == NULL) {
        type.shape.dims[0] = sgm_tensor_shape(inputs)->dims[0];
        *result = sgm_tensor_create(type.dtype, &type.shape);
    }
    sgm_tensor *target = sgm_tensor_slice(*result, 0, first, first + count, 1);
    status = target != NULL ? sgm_session_read(trainer->learner.session, program, output, target)
                            : sgm_last_status();
    sgm_tensor_free(target);
    return status;
}

static sgm_tensor *predict(sgm_trainer *trainer, sgm_tensor *inputs, const char *output)
{
    sgm_tensor *result = NULL;
    int64_t examples = sgm_tensor_shape(inputs)->dims[0];
    for (int64_t first = 0; first < examples; first += LARGEST_BATCH) {
        int64_t count = examples - first < LARGEST_BATCH ? examples - first : LARGEST_BATCH;
        if (predict_part(trainer, inputs, first, count, output, &result) != SGM_OK) {
            sgm__fail_within("trainer '%s'", trainer->name);
            sgm_tensor_free(result);
            return NULL;
        }
    }
    return result;
}

static sgm_status check_inputs(const sgm_tensor *inputs)
{
    if (inputs == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_trainer_predict: expected a tensor of inputs, got NULL");
    const sgm_shape *shape = sgm_tensor_shape(inputs);
    return shape->rank >= 1 && shape->dims[0] >= 1
               ? SGM_OK
               : sgm_fail(SGM_ERROR_SHAPE, "inputs must be examples: a first dimension of at least 1");
}

sgm_tensor *sgm_trainer_predict(sgm_trainer *trainer, sgm_tensor *inputs, const char *output)
{
    if (sgm_trainer_status(trainer) != SGM_OK || check_inputs(inputs) != SGM_OK ||
        sgm__trainer_open(trainer) != SGM_OK)
        return NULL;
    sgm_tensor *result = predict(trainer, inputs, output);
    sgm__trainer_unlock(trainer);
    return result;
}

/* Feeds any number of inputs by their fields' names. */
static sgm_tensor *predict_block(sgm_trainer *trainer, const sgm_block *block, const char *output)
{
    sgm_program *program = sgm__trainer_program(trainer, SGM__PREDICT, block->count);
    if (program == NULL || sgm__trainer_feed(trainer, program, block) != SGM_OK ||
        sgm_session_run(trainer->learner.session, program) != SGM_OK)
        return NULL;
    if (output == NULL && trainer->learner.recording.output_count > 0)
        output = trainer->learner.recording.outputs[0].name;
    if (output == NULL || !sgm_program_has_output(program, output)) {
        sgm_fail(SGM_ERROR_NOT_FOUND, "the network has no output '%s'", output != NULL ? output : "");
        return NULL;
    }
    sgm_type type = sgm_program_output_type(program, output);
    sgm_tensor *result = sgm_tensor_create(type.dtype, &type.shape);
    if (result == NULL || sgm_session_read(trainer->learner.session, program, output, result) == SGM_OK)
        return result;
    sgm_tensor_free(result);
    return NULL;
}

sgm_tensor *sgm_trainer_predict_block(sgm_trainer *trainer, const sgm_block *block, const char *output)
{
    if (sgm_trainer_status(trainer) != SGM_OK)
        return NULL;
    if (block == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "sgm_trainer_predict_block: expected a block, got NULL");
        return NULL;
    }
    if (sgm__trainer_open(trainer) != SGM_OK)
        return NULL;
    sgm_tensor *result = predict_block(trainer, block, output);
    sgm__trainer_unlock(trainer);
    return result;
}

/* --- programs --- */

/* With the lock. */
static sgm_program *step_program(sgm_trainer *trainer, int64_t batch)
{
    sgm__trainer_forget_programs(trainer); /* so that the graph is re-recorded */
    return sgm__trainer_program(trainer, trainer->learner.optimiser != NULL ? SGM__UPDATE : SGM__PREDICT,
                                batch);
}

char *sgm_trainer_graph_text(sgm_trainer *trainer, int64_t batch)
{
    if (sgm__trainer_open(trainer) != SGM_OK)
        return NULL;
    char *text = step_program(trainer, batch) != NULL ? sgm_graph_text(trainer->learner.graph) : NULL;
    sgm__trainer_unlock(trainer);
    return text;
}

char *sgm_trainer_program_text(sgm_trainer *trainer, int64_t batch)
{
    if (sgm__trainer_open(trainer) != SGM_OK)
        return NULL;
    sgm_program *program = step_program(trainer, batch);
    char *text = program != NULL ? sgm_program_text(program) : NULL;
    sgm__trainer_unlock(trainer);
    return text;
}

sgm_status sgm_trainer_memory(sgm_trainer *trainer, int64_t batch, sgm_program_memory *memory)
{
    SGM_TRY(sgm__trainer_open(trainer));
    sgm_program *program = step_program(trainer, batch);
    if (program != NULL)
        *memory = sgm_program_memory_of(program);
    sgm__trainer_unlock(trainer);
    return program != NULL ? SGM_OK : sgm_last_status();
}
