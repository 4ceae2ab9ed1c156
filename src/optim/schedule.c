/* Schedules: the factor by which the learning rate is multiplied, as a function of the epoch.
 *
 * Epochs count with fractions, so the rate changes at each iteration. The trainer computes the factor on the
 * host and feeds the product (sgm__trainer_learning_rate): no schedule is recorded, and a change of one needs
 * no new program. What a plateau schedule counts, the reductions so far, is kept by the trainer
 * (sgm__trainer_watch_plateau). In a schedule's options 0 means the default, which is here. */
#include "optim/modifier.h"
#include "optim/optimiser.h"
#include "text/names.h"

#include <math.h>

const char *const sgm__schedule_kind_names[] = {"constant",  "step",    "exponential", "cosine",
                                                "one_cycle", "plateau", NULL};
#define NAME_COUNT (sizeof sgm__schedule_kind_names / sizeof *sgm__schedule_kind_names - 1)
#define PI 3.14159265358979323846

sgm_status sgm_schedule_kind_parse(const char *name, sgm_schedule_kind *kind)
{
    if (name == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a schedule expects a name, such as 'cosine'; got NULL");
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (strcmp(name, sgm__schedule_kind_names[i]) == 0) {
            *kind = (sgm_schedule_kind)i;
            return SGM_OK;
        }
    const char *real = sgm__name_real(SGM__NAME_CHOICE, name, sgm__schedule_kind_names, NAME_COUNT, NULL);
    char hint[SGM__NAME_HINT];
    if (real != NULL)
        return sgm_schedule_kind_parse(real, kind);
    return sgm_fail(
        SGM_ERROR_NOT_FOUND,
        "unknown schedule '%s'%s; there are constant, step, exponential, cosine, one_cycle, plateau", name,
        sgm__name_hint(SGM__NAME_CHOICE, name, sgm__schedule_kind_names, NAME_COUNT, hint));
}

const char *sgm_schedule_kind_name(sgm_schedule_kind kind)
{
    return (size_t)kind < NAME_COUNT ? sgm__schedule_kind_names[kind] : "unknown";
}

bool sgm__schedule_describe(size_t index, sgm__described *described)
{
    static const char *const texts[][3] = {
        {"the learning rate stays", "1", "optimiser: {schedule: constant}"},
        {"falls at once after each period", "factor^floor(epoch / period)",
         "optimiser: {schedule: {kind: step, period: 10, factor: 0.1}}"},
        {"falls by the same factor in each period, in all its iterations", "factor^(epoch / period)",
         "optimiser: {schedule: {kind: exponential, factor: 0.95}}"},
        {"falls along half a cosine, slowly at both ends (Loshchilov and Hutter, 2016)",
         "factor + (1 - factor) (1 + cos(pi epoch / period)) / 2", "optimiser: {schedule: cosine}"},
        {"rises in the first 0.3 of the way, and falls to almost 0 in the rest (Smith, 2018)",
         "from factor to 1, then from 1 to 0.0001, along half a cosine each",
         "optimiser: {schedule: {kind: one_cycle, factor: 0.04}}"},
        {"falls each time when the loss has not fallen for a period", "factor^(how often that was)",
         "optimiser: {schedule: {kind: plateau, period: 5, factor: 0.1}}"},
    };
    if (index >= NAME_COUNT)
        return false;
    *described = (sgm__described){.name = sgm__schedule_kind_names[index],
                                  .doc = texts[index][0],
                                  .formula = texts[index][1],
                                  .example = texts[index][2]};
    return true;
}

static double or_default(double value, double default_value)
{
    return value != 0 ? value : default_value;
}

/* The value at `share` (cut to [0, 1]) of the way between two others along half a cosine: to + (from - to) (1
 * + cos(pi share)) / 2 (Loshchilov and Hutter, 2016). */
static double cosine(double from, double to, double share)
{
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return to + (from - to) * (1 + cos(PI * share)) / 2;
}

/* Rises from `start` to 1 in the first 0.3 of the way, then falls to start / 10000, both along half a cosine
 * (Smith, 2018). */
static double one_cycle(double share, double start)
{
    const double rise = 0.3;
    return share < rise ? cosine(start, 1, share / rise)
                        : cosine(1, start / 10000, (share - rise) / (1 - rise));
}

/* `epoch`: since the beginning, with a fraction; `epochs`: length of the run, 0: no limit; `reductions`: for
 * SGM_PLATEAU. The warm-up is a linear rise from 0 to 1, behind which the schedule begins at epoch 0. A
 * period of 0 is the rest of the run for cosine and one_cycle, and one epoch for step and exponential. */
double sgm_schedule_factor(const sgm_schedule *schedule, double epoch, double epochs, int64_t reductions)
{
    double warm_up = schedule->warm_up;
    if (epoch < warm_up)
        return epoch / warm_up;
    epoch -= warm_up;
    double whole = or_default(schedule->period, epochs > warm_up ? epochs - warm_up : 1);
    switch (schedule->kind) {
    case SGM_STEP:
        return pow(or_default(schedule->factor, 0.1), floor(epoch / or_default(schedule->period, 1)));
    case SGM_EXPONENTIAL:
        return pow(or_default(schedule->factor, 0.95), epoch / or_default(schedule->period, 1));
    case SGM_COSINE:
        return cosine(1, schedule->factor, epoch / whole);
    case SGM_ONE_CYCLE:
        return one_cycle(epoch / whole, or_default(schedule->factor, 0.04));
    case SGM_PLATEAU:
        return pow(or_default(schedule->factor, 0.1), (double)reductions);
    case SGM_CONSTANT:
        break;
    }
    return 1;
}
