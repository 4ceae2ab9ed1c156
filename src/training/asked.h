/* Asking a trained network, for the command and for servers: what it wants of a question, and what it
 * answers. Internal. */
#ifndef SGM_TRAINING_ASKED_H
#define SGM_TRAINING_ASKED_H

#include "base/base.h"
#include <sigma/text.h>
#include <sigma/training.h>

typedef struct sgm__asked {
    size_t inputs;               /* beside lengths */
    char input[32], lengths[32]; /* sections, the last of them; lengths "": all steps count */
    sgm_shape record, output;    /* of one record; that of the last input */
    bool classifies;             /* the output's last dimension holds shares of classes */
    int64_t blank;               /* of a network with the cost ctc: its answers are labels; else -1 */
} sgm__asked;
/* Of a network that was recorded for one record, with its costs. */
sgm_status sgm__asked_find(const sgm_network *network, const sgm_graph *graph, const sgm_recording *recording,
                           sgm__asked *asked);
/* Fails if a question is more than the records of one input, and perhaps their lengths. */
sgm_status sgm__asked_check_one(const sgm__asked *asked);
/* The first output for records (count, ...); lengths (count) or NULL: all steps count. A new tensor. */
sgm_tensor *sgm__asked_answer(const sgm__asked *asked, sgm_trainer *trainer, sgm_tensor *records,
                              const double *lengths);
/* Labels of answers of a network with ctc: (count, steps) int64, -1 behind the last of a record. */
sgm_tensor *sgm__asked_labels(const sgm__asked *asked, const sgm_tensor *answers, const double *lengths);
/* Steps of a record's answer that count, of `steps` that there are. */
int64_t sgm__asked_steps(const double *lengths, int64_t record, int64_t steps);

#endif
