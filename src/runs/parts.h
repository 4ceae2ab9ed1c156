/* Parts of checkpoints: which state belongs to which, what was asked for, and what fits. Internal. */
#ifndef SGM_RUNS_PARTS_H
#define SGM_RUNS_PARTS_H

#include "trainer/trainer.h"
#include <jansson.h>
#include <sigma/checkpoint.h>

/* --- parts.c: what was asked for --- */
typedef struct sgm__parts {
    unsigned parts; /* 0: what the file has */
    bool skip_mismatch;
    const char *names; /* PyTorch's; NULL: our own */
    char **patterns;
    size_t pattern_count; /* 0: all states */
} sgm__parts;
/* The part that a state of this name belongs to. */
unsigned sgm__part_of_state(const char *name);
#define SGM__WORKER_PREFIX "workers."
/* The worker's number, and the name of the state in it; -1: it is no worker's state. */
long sgm__worker_of_state(const char *name, const char **state);
bool sgm__is_worker_state(const char *name); /* "workers.0.STATE" */
/* Everything, with what workers have of their own. */
bool sgm__parts_are_all(const sgm__parts *wanted);
bool sgm__parts_have(const sgm__parts *wanted, const char *state);

/* --- parts_fit.c: comparing a bundle with a trainer, of which nothing changes --- */
typedef struct sgm__fit {
    const sgm_trainer *trainer;
    const sgm_bundle *bundle;
    const sgm__parts *wanted;
    const char *source; /* a path, or who it is from */
    char *notation;     /* of the network to compare with: the trainer's, or the bundle's */
    sgm_network *network;
    sgm_graph *graph;
    sgm_recording recording;
    sgm__text differences;
    size_t difference_count;
    size_t fitting;        /* states of the bundle that will be taken over */
    sgm_bundle *converted; /* NULL: the types are the trainer's already */
    size_t conversions;
    sgm__text first_conversion;
} sgm__fit;
sgm_status sgm__fit_open(sgm__fit *fit, const sgm_trainer *trainer, const sgm_bundle *bundle,
                         const sgm__parts *wanted, const char *source);
void sgm__fit_close(sgm__fit *fit);
void sgm__fit_differs(sgm__fit *fit, const char *format, ...) SGM_PRINTF(2, 3);
void sgm__fit_compare_network(sgm__fit *fit);
/* Names no state that is not there: patterns that match nothing are an error. */
sgm_status sgm__fit_compare_states(sgm__fit *fit);
/* Fails if something differs and that was not allowed. */
sgm_status sgm__fit_decide(const sgm__fit *fit);
/* From here on `bundle` has the trainer's types: floats of another precision are rounded to nearest. A finite
 * number that would become infinite is an error. */
sgm_status sgm__fit_convert(sgm__fit *fit);
/* Whether the bundle's state of this name is asked for, known, and of the right shape and kind of type. */
bool sgm__fit_takes(const sgm__fit *fit, const char *name);

/* --- parts_state.c: everything that is no tensor --- */
#define SGM__NETWORK_KEY "sigma.network"
#define SGM__STATE_KEY "sigma.state"
typedef struct sgm__saved_state {
    json_t *json; /* NULL: the file has none */
    unsigned parts;
    sgm__training_position position;
    const char *optimiser; /* NULL: none */
} sgm__saved_state;
sgm_status sgm__state_add(sgm_trainer *trainer, unsigned parts, sgm_bundle *bundle);
/* For workers, too: what these parts say of a trainer, and checking and reading that. */
sgm_status sgm__state_describe(const sgm_trainer *trainer, unsigned parts, json_t *state);
sgm_status sgm__state_read(sgm__saved_state *state, const char *source);
/* Reads and checks; free with sgm__state_close, also when that fails. */
sgm_status sgm__state_open(sgm__saved_state *state, const sgm_bundle *bundle, const char *source);
void sgm__state_close(sgm__saved_state *state);
/* trainer_checkpoint.c: whether a trainer, which the caller has locked, can be loaded with all that the
 * bundle has. */
sgm_status sgm__checkpoint_fits(sgm_trainer *trainer, const sgm_bundle *bundle, const sgm__saved_state *state,
                                const char *source);
/* A count from 0 on, and a number that was written as a text; false: it is none, or not there. */
bool sgm__state_count(const json_t *state, const char *key, int64_t *value);
bool sgm__state_exact(const json_t *text, double *value);
/* --- parts_take.c: into a trainer --- */
/* What can be refused: when it is, everything is as it was. */
sgm_status sgm__state_set_learnt(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts);
/* The rest. */
sgm_status sgm__state_set_position(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts);

#endif
