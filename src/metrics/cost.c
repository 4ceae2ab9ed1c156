/* The mean loss of a pass, which the trainer knows: the shares of outputs and targets alone do not tell it.
 */
#include "metrics/metrics.h"

#include <math.h>

static sgm_status compute(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results)
{
    (void)options;
    if (isnan(predictions->cost))
        return sgm_fail(SGM_ERROR_STATE, "the cost is that of a trainer's pass over data: from outputs and "
                                         "targets alone it cannot be told");
    return sgm__leave_number(results, "cost", predictions->cost);
}

const sgm__metric_record sgm__metric_cost = {
    .compute = compute,
    .results = {SGM__NUMBER("cost", "mean loss of the newest pass", SGM_MINIMUM, SGM__HEADLINE)},
};
