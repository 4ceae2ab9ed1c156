/* What goes into a trainer's programs and what comes out: fields of a minibatch, learning rate and step
 * number; loss and correct predictions.
 *
 * A step of a small network takes microseconds, less than comparing the names of its inputs. So each
 * program notes the places of inputs and outputs that every step needs when it is first fed. */
#include "handlers/session.h"
#include "network/rerecord.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"

enum { LOSS = SGM__FED_COUNT, CORRECT, PLACE_COUNT }; /* after the places of the numbers that are fed */
_Static_assert(PLACE_COUNT <= SGM__NOTED_PLACES, "a program notes all places");

/* The places of the numbers that are fed and read in each step; -1: the program does not have it. Found by
 * name once. */
static const int32_t *places_in(sgm_program *program)
{
    if (!program->noted) {
        for (int i = 0; i < SGM__FED_COUNT; i++)
            program->places[i] = sgm__program_input(program, sgm__fed_names[i]);
        program->places[LOSS] = sgm__program_output(program, SGM__LOSS);
        program->places[CORRECT] = sgm__program_output(program, SGM__CORRECT);
        program->noted = true;
    }
    return program->places;
}

/* Makes the message of a field that does not fit as the network wants it: shapes of one example, without
 * the minibatch's dimension. The failure of the session stays where the elements do fit, as it is about
 * something else then. */
sgm_status sgm__trainer_shape_mismatch(const sgm_trainer *trainer, const sgm_program *program, int32_t input,
                                       const sgm_tensor *values)
{
    const sgm_shape *fed = sgm_tensor_shape(values), *shape = &program->plan->inputs[input].type.shape;
    if (fed->rank == 0 || shape->rank == 0)
        return sgm_last_status();
    sgm_shape there = sgm_shape_make(fed->rank - 1, fed->dims + 1),
              wanted = sgm_shape_make(shape->rank - 1, shape->dims + 1);
    if (sgm_shape_elements(&there) == sgm_shape_elements(&wanted))
        return sgm_last_status();
    return sgm__network_shape_mismatch(trainer->learner.network, program->graph,
                                       sgm_program_input_at(program, (size_t)input), &there, &wanted);
}

/* Whether an input is one of the numbers of an update, not a field of the data. */
static bool is_fed_number(const int32_t *places, int32_t input)
{
    bool found = false;
    for (int i = 0; i < SGM__FED_COUNT && !found; i++)
        found = places[i] == input;
    return found;
}

/* Feeds by the names of the program's own inputs: the trainer's newest recording may be another program's. */
sgm_status sgm__trainer_feed(sgm_trainer *trainer, sgm_program *program, const sgm_block *block)
{
    const int32_t *places = places_in(program);
    const char *name;
    for (int32_t i = 0; (name = sgm_program_input_at(program, (size_t)i)) != NULL; i++) {
        if (is_fed_number(places, i))
            continue;
        sgm_tensor *values = sgm_block_field(block, name);
        if (values == NULL)
            return sgm_last_status();
        sgm_status status = sgm__session_feed_at(trainer->learner.session, program, i, values);
        if (status != SGM_OK)
            return status == SGM_ERROR_SHAPE ? sgm__trainer_shape_mismatch(trainer, program, i, values)
                                             : status;
    }
    return SGM_OK;
}

/* Learning rate, step number and bias corrections are inputs, not constants: so one program serves the
 * whole training. They are computed in double, whatever type they are fed in. */
sgm_status sgm__trainer_feed_update(sgm_trainer *trainer, sgm_program *program, double rate, int64_t step)
{
    const int32_t *places = places_in(program);
    for (int i = 0; i < SGM__FED_COUNT; i++)
        if (places[i] >= 0)
            SGM_TRY(sgm__session_feed_number_at(
                trainer->learner.session, program, places[i],
                sgm__fed_value(trainer->learner.optimiser, (sgm__fed_number)i, rate, step)));
    return SGM_OK;
}

/* Adds a minibatch's mean loss, weighted by its examples, and its number of correct predictions to the
 * sums. All sums are doubles: float32 would lose examples of large epochs. */
sgm_status sgm__trainer_count(sgm_trainer *trainer, sgm_program *program, int64_t examples,
                              sgm__metric_sums *sums)
{
    const int32_t *places = places_in(program);
    double loss, correct = 0;
    if (places[LOSS] < 0)
        return sgm_session_read_number(trainer->learner.session, program, SGM__LOSS,
                                       &loss); /* says what there is */
    SGM_TRY(sgm__session_read_number_at(trainer->learner.session, program, places[LOSS], &loss));
    if (places[CORRECT] >= 0)
        SGM_TRY(sgm__session_read_number_at(trainer->learner.session, program, places[CORRECT], &correct));
    sums->loss += loss * (double)examples;
    sums->correct += correct * (double)examples;
    sums->examples += examples;
    sums->has_accuracy = places[CORRECT] >= 0;
    return SGM_OK;
}
