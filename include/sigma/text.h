/* Texts and other sequences of numbers: what a network's answers say. */
#ifndef SIGMA_TEXT_H
#define SIGMA_TEXT_H

#include <sigma/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the steps of a network with the cost `ctc` say: the likeliest class of each step, of equal neighbours
 * one, without the class `blank` (Graves et al., 2006, best path). `answers`: (batch, time, classes);
 * `lengths`: how many steps of each record count, or NULL for all. (batch, time) of int64, which the caller
 * frees, -1 behind a record's last label; NULL on failure. */
SGM_API sgm_tensor *sgm_ctc_decode(const sgm_tensor *answers, const int64_t *lengths, int64_t blank);

#ifdef __cplusplus
}
#endif
#endif
