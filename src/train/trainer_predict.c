/* Predictions, parameters and programs of a trainer; and giving its states other values: their first ones
 * (after a reset) or those of their moving averages.
 *
 * The public functions here (sgm_trainer_predict, sgm_trainer_get, sgm_trainer_set, sgm_trainer_graph_text
 * ...) take the trainer's lock, so they can be called from any thread, also while the trainer runs.
 * Predictions of a copy of the network that shares nothing with the trainer are in src/infer.
 *
 * A reset marks every state of the session as stale and records anew; recording gives a stale state its first
 * value as if the state were new (trainer_program.c). So a reset draws exactly what a fresh trainer with the
 * same seed would draw. */
#include "handlers/session.h"
#include "network/network_internal.h"
#include "network/rerecord.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"
#include <sigma/hooks.h>

/* Gives stale states that the new recording does not contain their first values at once, if these do not
 * depend on a layer: optimiser states and the random generator's. Parameters that the recording does not
 * contain (of a layer that a dynamic network does not use at this time) stay stale until they are recorded,
 * as only their recording knows their initialiser. */
static sgm_status refill_memories(sgm_trainer *trainer)
{
    for (size_t i = 0; i < trainer->learner.stale_count; i++) {
        const char *name = sgm_session_state_at(trainer->learner.session, i);
        sgm_type type;
        if (!trainer->learner.stale[i] ||
            !(sgm__begins_with(name, SGM__SLOT_PREFIX) || sgm__begins_with(name, "random.")))
            continue;
        SGM_TRY(sgm_session_state_type(trainer->learner.session, name, &type));
        SGM_TRY(sgm__trainer_define_state(trainer, name, &type));
        trainer->learner.stale[i] = false;
    }
    return SGM_OK;
}

/* Marks all states as stale and records the network, which gives them their first values. A session without
 * states has drawn nothing yet, so it is left as it is. */
sgm_status sgm__trainer_refill(sgm_trainer *trainer)
{
    size_t count = 0;
    while (sgm_session_state_at(trainer->learner.session, count) != NULL)
        count++;
    if (count == 0)
        return SGM_OK;
    bool *stale = sgm__realloc(trainer->learner.stale, count * sizeof *stale);
    if (stale == NULL)
        return SGM_ERROR_MEMORY;
    memset(stale, true, count * sizeof *stale);
    trainer->learner.stale = stale;
    trainer->learner.stale_count = count;
    sgm__trainer_forget_programs(trainer);
    SGM_TRY(sgm__trainer_prepare(trainer));
    return refill_memories(trainer);
}

/* What the optimiser remembers becomes zeros; sums of gradients go, too, so that an update begins anew. */
static sgm_status clear_slots(sgm_trainer *trainer)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(trainer->learner.session, i)) != NULL; i++) {
        sgm_type type;
        if (!sgm__begins_with(name, SGM__SLOT_PREFIX) ||
            sgm__network_parameter(trainer->learner.network, name) != NULL)
            continue;
        SGM_TRY(sgm_session_state_type(trainer->learner.session, name, &type));
        SGM_TRY(sgm__trainer_define_state(trainer, name, &type));
    }
    trainer->position.updates = 0;
    trainer->position.accumulated = 0;
    sgm__trainer_restart_workers(trainer);
    return SGM_OK;
}

sgm_status sgm_trainer_clear_optimiser(sgm_trainer *trainer)
{
    if (trainer == NULL)
        return sgm__fail_null("sgm_trainer_clear_optimiser: expected a trainer, got NULL");
    SGM_TRY(sgm__trainer_enter(trainer));
    sgm_status status = sgm__trainer_collect(trainer);
    if (status == SGM_OK)
        status = clear_slots(trainer);
    sgm__trainer_unlock(trainer);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("trainer '%s'", trainer->name);
}

/* Sets what recurrent layers carry over from one minibatch to the next to zero: the end of an epoch's data is
 * not what comes before the next epoch's beginning. */
sgm_status sgm__trainer_forget_memories(sgm_trainer *trainer)
{
    const char *name;
    for (size_t i = 0; (name = sgm__network_memory_at(trainer->learner.network, i)) != NULL; i++) {
        sgm_type type;
        if (!sgm_session_has(trainer->learner.session, name))
            continue;
        SGM_TRY(sgm_session_state_type(trainer->learner.session, name, &type));
        sgm_tensor *zeros = sgm_tensor_create(type.dtype, &type.shape);
        sgm_status status =
            zeros != NULL ? sgm_session_set(trainer->learner.session, name, zeros) : SGM_ERROR_MEMORY;
        sgm_tensor_free(zeros);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* --- predictions, parameters, programs --- */

/* Examples of one program of sgm_trainer_predict; more examples are predicted in turns, which bounds memory.
 */
#define LARGEST_BATCH 1000

/* Records a program, which defines all states, without data: the number of examples is made up. 1 is tried
 * first, and 2 if 1 fails for its shape: one example is too few for layers that compute a variance over the
 * minibatch, and two are too many for layers that accept a single stream. If both fail, the message is that
 * of 1 example. */
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
        status = sgm_fail(status, "%s", message);
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

/* Parameters that a caller sets itself. */
typedef struct given {
    const sgm_network *network;
    const char *const *names;
    size_t count;
} given;

/* A matrix that is kept as 8 bits is given by its own name, which no state has. */
static bool is_given(void *user, const char *name, const sgm_tensor *parameter)
{
    (void)parameter;
    const given *g = user;
    const char *matrix = sgm__network_parameter(g->network, name)->quantizes;
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->names[i], matrix != NULL ? matrix : name) == 0)
            return true;
    return false;
}

sgm_status sgm_trainer_prepare_undrawn(sgm_trainer *trainer, const char *const *parameters, size_t count)
{
    if (parameters == NULL && count > 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_trainer_prepare_undrawn: expected %zu names, got NULL",
                        count);
    SGM_TRY(sgm__trainer_open(trainer));
    sgm__learner *learner = &trainer->learner;
    given g = {learner->network, parameters, count};
    learner->comes = is_given;
    learner->loading = &g;
    sgm_status status = sgm__trainer_define_states(trainer);
    learner->comes = NULL;
    learner->loading = NULL;
    return sgm__trainer_close(trainer, status);
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
    if (sgm__trainer_prepare(trainer) != SGM_OK || sgm__trainer_collect(trainer) != SGM_OK)
        return NULL;
    return state != NULL && sgm__trainer_has_codes(trainer, state)
               ? sgm__trainer_get_matrix(trainer, state)
               : sgm_session_get(trainer->learner.session, state);
}

sgm_tensor *sgm_trainer_get(sgm_trainer *trainer, const char *state)
{
    if (sgm__trainer_open(trainer) != SGM_OK)
        return NULL;
    sgm_tensor *value = get(trainer, state);
    sgm__trainer_unlock(trainer);
    return value;
}

/* The name must be that of an existing state: a new name is a typing error. What earlier passes left for
 * hooks is out of date afterwards. The caller holds the lock. */
static sgm_status set(sgm_trainer *trainer, const char *state, const sgm_tensor *value)
{
    SGM_TRY(sgm__trainer_prepare(trainer));
    sgm_type type;
    SGM_TRY(sgm__trainer_check_set(trainer, state));
    if (state == NULL || !sgm__trainer_has_codes(trainer, state))
        SGM_TRY(sgm_session_state_type(trainer->learner.session, state, &type));
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

/* Finds the names of the only input and of the wanted output (*output NULL: the first) in the newest
 * recording. A plain tensor can feed one input only; networks with several need a block. */
static sgm_status find_ends(const sgm_trainer *trainer, const char **input, const char **output)
{
    const sgm_recording *recording = &trainer->learner.recording;
    if (recording->input_count != 1)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "the network has %zu inputs: sgm_trainer_predict_block takes a block with a field for each, "
            "and texts go through sgm_pretrained_predict_texts of sigma_models",
            recording->input_count);
    *input = recording->inputs[0].name;
    if (*output == NULL && recording->output_count > 0)
        *output = recording->outputs[0].name;
    return *output != NULL ? SGM_OK : sgm_fail(SGM_ERROR_NOT_FOUND, "the network has no outputs");
}

/* Predicts examples [first, first + count) and writes them to the same rows of *result, which the first call
 * makes for all examples: only a program knows the output's type and shape. `inputs` has the shape (examples,
 * ...). */
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

/* Predicts in turns of LARGEST_BATCH examples. The caller frees the result, (examples, ...); NULL: it failed.
 */
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

/* The steps of the block's sequences where they are fewer than those of the only input that names lengths;
 * else 0. */
static int64_t find_steps(const sgm_trainer *trainer, const sgm_block *block)
{
    const sgm_network *network = trainer->learner.network;
    int64_t steps = 0;
    int32_t inputs = 0;
    for (size_t i = 0; network != NULL && i < sgm_network_layers(network); i++) {
        sgm_shape declared;
        const char *field = sgm__network_sequence(network, i, &declared);
        const sgm_tensor *values = field != NULL ? sgm_block_field(block, field) : NULL;
        const sgm_shape *shape = values != NULL ? sgm_tensor_shape(values) : NULL;
        inputs += field != NULL;
        if (shape != NULL && shape->rank == declared.rank + 1 && shape->dims[1] < declared.dims[0])
            steps = shape->dims[1];
    }
    return inputs == 1 ? steps : 0;
}

/* As predict, for networks with any number of inputs: each is fed from the block's field of the same name.
 * The whole block is one program's minibatch. */
static sgm_tensor *run_block(sgm_trainer *trainer, const sgm_block *block, const char *output)
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

/* By a program for as many steps as the block's sequences have. The caller holds the lock. */
static sgm_tensor *predict_block(sgm_trainer *trainer, const sgm_block *block, const char *output)
{
    trainer->learner.steps = find_steps(trainer, block);
    sgm_tensor *result = run_block(trainer, block, output);
    trainer->learner.steps = 0;
    return result;
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

/* The program of a training step, or of a prediction if there is no optimiser. The cache is forgotten first,
 * since the trainer's graph must be recorded again: it may hold another program's recording by then.
 * Compiling costs nothing, as the session finds the program of an equal graph. The caller holds the lock. */
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
        *memory = sgm_program_get_memory(program);
    sgm__trainer_unlock(trainer);
    return program != NULL ? SGM_OK : sgm_last_status();
}

/* --- parameters and their moving averages change places, and back --- */

/* Exchanges the values of a moving average, "average.NAME", and of its parameter NAME. */
static sgm_status exchange(sgm_session *session, const char *average)
{
    const char *parameter = average + strlen(SGM__AVERAGE_PREFIX);
    sgm_tensor *a = sgm_session_get(session, average), *b = sgm_session_get(session, parameter);
    sgm_status status = a && b ? sgm_session_set(session, parameter, a) : sgm_last_status();
    if (status == SGM_OK)
        status = sgm_session_set(session, average, b);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    return status;
}

/* Exchanges all parameters with their averages, and notes that they are exchanged; a second call exchanges
 * them back. Programs are forgotten, as predictions read "average.NAME" only while the averages are not in
 * the parameters' place (record in trainer_program.c). Workers have copies of the parameters, which this
 * would not reach: hence the error with a strategy. */
sgm_status sgm__trainer_swap_averages(sgm_trainer *trainer)
{
    const char *name;
    size_t count = 0;
    if (trainer->sharing.strategy)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "averages are not swapped while several workers train");
    for (size_t i = 0; (name = sgm_session_state_at(trainer->learner.session, i)); i++) {
        if (!sgm__begins_with(name, SGM__AVERAGE_PREFIX))
            continue;
        SGM_TRY(exchange(trainer->learner.session, name));
        count++;
    }
    if (count == 0)
        return sgm_fail(SGM_ERROR_STATE, "there are no averages of parameters: set the optimiser's average "
                                         "to a number such as 0.999");
    trainer->learner.averages_in = !trainer->learner.averages_in;
    sgm__trainer_forget_programs(trainer);
    return SGM_OK;
}

/* Preparing records programs and may draw new states, which must not happen while averages are in the
 * parameters' place; then everything is prepared already. */
sgm_status sgm_trainer_swap_averages(sgm_trainer *trainer)
{
    SGM_TRY(sgm_trainer_status(trainer));
    SGM_TRY(sgm__trainer_enter(trainer));
    sgm_status status = trainer->learner.averages_in ? SGM_OK : sgm__trainer_prepare(trainer);
    if (status == SGM_OK)
        status = sgm__trainer_swap_averages(trainer);
    sgm__trainer_unlock(trainer);
    return status;
}

bool sgm_trainer_has_swapped_averages(const sgm_trainer *trainer)
{
    return trainer && trainer->learner.averages_in;
}
