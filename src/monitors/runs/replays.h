/* Replays that a person asks for on the page over a folder of runs. Internal. */
#ifndef SGM_MONITORS_RUNS_REPLAYS_H
#define SGM_MONITORS_RUNS_REPLAYS_H

#include "monitors/runs/runs_internal.h"

/* What was done to the run in an open folder, as a list of objects; a run of before there was a journal has
 * an empty one. *list is set also after a failure. */
sgm_status sgm__run_interventions(int folder, json_t **list);
/* GET /api/run-interventions/NAME: what was done to the run, and the replays of it that the page began. */
sgm_status sgm__runs_interventions(void *runs, const sgm__http_request *request, sgm__http_answer *answer);
/* POST /api/run-replay {"name", "without": [NUMBER, ...], "inexact"}: begins one, in a folder beside the run,
 * whose name it answers as "into". */
sgm_status sgm__runs_replay(void *runs, const sgm__http_request *request, sgm__http_answer *answer);

#endif
