/* Random search: candidates around the present point, at normally distributed distances, and the best of them
 * becomes the next point if it is better than the present one (Rastrigin, 1963; Rechenberg, 1973). All are
 * judged by the same minibatch, so that a comparison never is one of examples. It remembers nothing. */
#include "base/base.h"
#include "optim/gradient_free.h"

#include <math.h>

int64_t sgm__gradient_free_candidates(const sgm_optimiser_options *options, size_t count)
{
    return options->population > 0 ? options->population : 4 + (int64_t)(3 * log((double)count));
}

void sgm__gradient_free_draw(uint64_t seed, int64_t candidate, double *normal, size_t count)
{
    sgm__random random = sgm__random_make(seed, (uint64_t)candidate);
    for (size_t i = 0; i < count; i++)
        normal[i] = sgm__random_normal(&random);
}

static size_t no_size(size_t count)
{
    (void)count;
    return 0;
}

static size_t a_point(size_t count)
{
    return count;
}

static void ask(const sgm_gradient_free_call *call, int64_t candidate, double *point)
{
    sgm__gradient_free_draw(call->seed, candidate, point, call->count);
    for (size_t i = 0; i < call->count; i++)
        point[i] = call->point[i] + call->learning_rate * point[i];
}

/* Any loss that is a number is better than one that is not. */
static void tell(const sgm_gradient_free_call *call, double loss, const double *losses)
{
    int64_t best = -1;
    for (int64_t k = 0; k < call->candidates; k++)
        if (losses[k] < (best < 0 ? loss : losses[best]) || (best < 0 && isnan(loss) && !isnan(losses[k])))
            best = k;
    if (best < 0)
        return;
    ask(call, best, call->scratch);
    memcpy(call->point, call->scratch, call->count * sizeof *call->point);
}

const sgm_gradient_free_method sgm__random_search = {
    .numbers = no_size, .scratch = a_point, .ask = ask, .tell = tell};
