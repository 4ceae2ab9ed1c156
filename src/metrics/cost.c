/* The mean loss of a pass, which the trainer has measured: outputs and targets alone do not tell it, since
 * only the network knows its loss function, its weights and what padding leaves out. */
#include "metrics/metrics.h"

#include <math.h>

/* The cost comes with the predictions: from the pass (DATA.cost), or NaN from sgm_metrics_compute. */
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
    .formula = "mean of the cost over all examples",
    .compute = compute,
    .results = {SGM__NUMBER("cost", "mean loss of the newest pass", SGM_MINIMUM, SGM__HEADLINE)},
};
