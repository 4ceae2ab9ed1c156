/* The programs that a trainer has made, by what they do and for how many examples. */
#include "trainer/trainer.h"

void sgm__trainer_drop_programs(sgm_trainer *trainer)
{
    trainer->recorded.rerecording.program = NULL;
    trainer->recorded.program_count = 0; /* they stay in the session, where an equal graph finds them */
}

void sgm__trainer_forget_programs(sgm_trainer *trainer)
{
    sgm__trainer_drop_programs(trainer->owner);
    if (trainer->owner->strategy != NULL)
        trainer->owner->strategy->forget_programs(trainer->owner);
}

sgm__known_program *sgm__trainer_find_program(const sgm_trainer *trainer, sgm__step_purpose purpose,
                                              int64_t batch)
{
    for (size_t i = 0; i < trainer->recorded.program_count; i++)
        if (trainer->recorded.programs[i].purpose == purpose && trainer->recorded.programs[i].batch == batch)
            return &trainer->recorded.programs[i];
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
    SGM_TRY(sgm__reserve(&trainer->recorded.programs, &trainer->recorded.program_capacity,
                         trainer->recorded.program_count + 1, sizeof(sgm__known_program)));
    trainer->recorded.programs[trainer->recorded.program_count++] =
        (sgm__known_program){purpose, batch, program};
    return SGM_OK;
}
