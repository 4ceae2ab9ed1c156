/* Predicting with a trained network, for the command and for servers: what it takes as input, and what its
 * predictions are. Internal. */
#ifndef SGM_INFER_SIGNATURE_H
#define SGM_INFER_SIGNATURE_H

#include "base/base.h"
#include <sigma/text.h>
#include <sigma/training.h>

typedef struct sgm__signature {
    size_t inputs;               /* beside lengths */
    char input[32], lengths[32]; /* fields, the last of them; lengths "": all steps count */
    char segments[32];           /* the field of the numbers of segments of steps; "": there is none */
    sgm_shape example, output;   /* of one example; that of the last input */
    bool classifies;             /* the output's last dimension holds shares of classes */
    bool deviates;               /* the output's last dimension holds means, then standard deviations */
    int64_t blank;               /* of a network with the cost ctc: its predictions are labels; else -1 */
} sgm__signature;
/* Of a network that was recorded for one example, with its costs. */
sgm_status sgm__signature_find(const sgm_network *network, const sgm_graph *graph,
                               const sgm_recording *recording, sgm__signature *signature);
/* Fails if the network takes more than the examples of one input, and perhaps their lengths. */
sgm_status sgm__signature_check_one(const sgm__signature *signature);
/* The first output for examples (count, ...); lengths (count) or NULL: all steps count. All
 * steps are of the first segment. A new tensor. */
sgm_tensor *sgm__signature_predict(const sgm__signature *signature, sgm_trainer *trainer,
                                   sgm_tensor *examples, const double *lengths);
/* Labels of predictions of a network with ctc: (count, steps) int64, -1 behind the last of an example. */
sgm_tensor *sgm__signature_labels(const sgm__signature *signature, const sgm_tensor *predictions,
                                  const double *lengths);
/* How much of the predictions lies between the ends of the interval that is told. */
#define SGM__INTERVAL_PERCENT 95
/* The ends of the interval around a mean with a standard deviation, of a normal distribution. */
void sgm__signature_interval(double mean, double deviation, double *lower, double *upper);
/* Steps of an example's prediction that count, of `steps` that there are. */
int64_t sgm__signature_steps(const double *lengths, int64_t example, int64_t steps);

#endif
