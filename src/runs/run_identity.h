/* What a run is made of, as the first line of its journal says it, so that a replay can tell beforehand that
 * it cannot give the same bits. Internal. */
#ifndef SGM_RUNS_RUN_IDENTITY_H
#define SGM_RUNS_RUN_IDENTITY_H

#include "trainer/view.h"
#include <jansson.h>

/* A prepared trainer, with the trainer's lock: {"sigma", "computes", "precision", "seed", "network",
 * "optimiser", "data", "parameters"}, each a text: versions, how the handler computes, names, and checksums
 * of the data's first examples and of the states that training begins with. NULL, with an error, on failure.
 */
json_t *sgm__run_identity(sgm_trainer *trainer);
/* Appends to `reasons` what differs, a sentence each: "the network was ..., and is ...". `moment` says when
 * the first was. Parameters are left out with `without_parameters`. */
void sgm__run_identity_compare(const json_t *was, const json_t *is, const char *moment,
                               bool without_parameters, sgm__text *reasons);

#endif
