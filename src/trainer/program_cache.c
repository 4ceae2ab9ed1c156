/* The programs that a trainer has made, by what they do with a minibatch and for how many examples.
 *
 * trainer_program.c (src/train) looks here before it records and compiles, and adds what it has made. A
 * program belongs to the session, which keeps it: forgetting one here only has its graph recorded again, and
 * if the new graph is equal to an old one, the session gives back the old program without compiling. So
 * whatever changes what might be recorded simply forgets all programs. A trainer has few programs (some
 * purposes, two sizes of minibatches, and where predictions are of sequences some lengths), so a list is
 * searched. */
#include "trainer/trainer_struct.h"

void sgm__trainer_drop_programs(sgm_trainer *trainer)
{
    trainer->learner.rerecording.program = NULL;
    trainer->learner.program_count = 0;
}

/* Replicas record the same network and optimiser as their owner, so the programs of the owner and of all
 * replicas are forgotten, whichever of them calls this. */
void sgm__trainer_forget_programs(sgm_trainer *trainer)
{
    sgm__trainer_drop_programs(trainer->sharing.owner);
    if (trainer->sharing.owner->sharing.strategy != NULL)
        trainer->sharing.owner->sharing.strategy->forget_programs(trainer->sharing.owner);
}

sgm__known_program *sgm__trainer_find_program(const sgm_trainer *trainer, sgm__step_purpose purpose,
                                              int64_t batch)
{
    for (size_t i = 0; i < trainer->learner.program_count; i++)
        if (trainer->learner.programs[i].purpose == purpose && trainer->learner.programs[i].batch == batch &&
            trainer->learner.programs[i].steps == trainer->learner.steps)
            return &trainer->learner.programs[i];
    return NULL;
}

sgm_status sgm__trainer_remember_program(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch,
                                         sgm_program *program)
{
    sgm__known_program *known = sgm__trainer_find_program(trainer, purpose, batch);
    if (known != NULL) {
        known->program = program;
        return SGM_OK;
    }
    SGM_TRY(sgm__reserve(&trainer->learner.programs, &trainer->learner.program_capacity,
                         trainer->learner.program_count + 1, sizeof(sgm__known_program)));
    trainer->learner.programs[trainer->learner.program_count++] =
        (sgm__known_program){purpose, batch, program, trainer->learner.steps};
    return SGM_OK;
}
