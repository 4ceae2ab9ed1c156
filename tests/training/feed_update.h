/* What a trainer feeds an optimiser's update, for tests without one. */
#ifndef SIGMA_TEST_FEED_UPDATE_H
#define SIGMA_TEST_FEED_UPDATE_H

#include "test.h"

#include "optim/optimiser.h"
#include <sigma/sigma.h>

__attribute__((unused)) static void feed_update(const sgm_optimiser *optimiser, sgm_session *session,
                                                sgm_program *program, double rate, int64_t step)
{
    for (int i = 0; i < SGM__FED_COUNT; i++)
        if (sgm_program_has_input(program, sgm__fed_names[i]))
            CHECK_OK(sgm_session_feed_number(session, program, sgm__fed_names[i],
                                             sgm__fed_value(optimiser, (sgm__fed_number)i, rate, step)));
}

#endif
