/* Parts of checkpoints: which part a state belongs to, which parts are wanted, what of a file fits a
 * trainer, and the JSON text. Internal to src/runs and to the strategies of src/parallel, which have parts
 * of their own. */
#ifndef SGM_RUNS_PARTS_H
#define SGM_RUNS_PARTS_H

#include "trainer/trainer.h"
#include <jansson.h>
#include <sigma/training.h>

/* --- part_names.c: the parts that are wanted --- */
/* What a caller of save, load or copy asked for. */
typedef struct sgm__parts {
    unsigned parts;              /* SGM_PART_..., a sum; 0: all that the file has */
    bool skip_mismatch, trained; /* trained: without what adapters freeze */
    const char *names;           /* "torch(...)": names are PyTorch's; NULL: names are our own */
    char **patterns;
    size_t pattern_count; /* of patterns that states must match, one of them; 0: all states are wanted */
} sgm__parts;
/* "network, parameters"; sgm__free. NULL: out of memory. */
char *sgm__parts_text(unsigned parts);
/* The part that a state of this name belongs to. */
unsigned sgm__part_of_state(const char *name);
#define SGM__WORKER_PREFIX "workers."
/* The number of the worker that a state "workers.0.STATE" belongs to, and STATE in *state; -1: it is no
 * worker's state. */
long sgm__worker_of_state(const char *name, const char **state);
bool sgm__is_worker_state(const char *name);
/* Whether the whole checkpoint is wanted, with the workers' own states. */
bool sgm__parts_are_all(const sgm__parts *wanted);
/* Whether a state of this name is wanted. */
bool sgm__parts_have(const sgm__parts *wanted, const char *state);

/* --- state_order.c --- */
/* The names of all states of the trainer's session, in the order of checkpoints; they are the session's.
 * sgm__free the list. NULL: out of memory. */
const char **sgm__state_order(const sgm_trainer *trainer, size_t *count);

/* --- parts_fit.c: comparing a bundle with a trainer, of which nothing changes --- */
/* A comparison of a bundle with a trainer: what they are, what differs, and what was converted. */
typedef struct sgm__fit {
    const sgm_trainer *trainer;
    const sgm_bundle *bundle;
    const sgm__parts *wanted;
    const char *source; /* a path, or the name of the trainer that the bundle was copied from; for messages */
    char *notation;     /* of the network below: the trainer's, or the bundle's if the trainer has none */
    sgm_network *network;
    sgm_graph *graph;
    sgm_recording recording;
    sgm__text differences;
    size_t difference_count;
    size_t fitting;        /* number of the bundle's states that will be taken over */
    sgm_bundle *converted; /* the bundle in the trainer's types; NULL: nothing needed converting */
    size_t conversions;    /* number of converted tensors; the text names the first */
    sgm__text first_conversion;
} sgm__fit;
/* Records the network aside, so that all parameters and their shapes are known. Call sgm__fit_close also
 * after a failure. */
sgm_status sgm__fit_open(sgm__fit *fit, const sgm_trainer *trainer, const sgm_bundle *bundle,
                         const sgm__parts *wanted, const char *source);
void sgm__fit_close(sgm__fit *fit);
/* Adds a sentence to the differences. */
void sgm__fit_differs(sgm__fit *fit, const char *format, ...) SGM_PRINTF(2, 3);
/* Notes a difference if the bundle's network is another one and the network is wanted. */
void sgm__fit_compare_network(sgm__fit *fit);
/* Compares the wanted states. A pattern that matches no state of the bundle is an error. */
sgm_status sgm__fit_compare_states(sgm__fit *fit);
/* Fails, listing the differences, unless they are allowed (skip_mismatch). */
sgm_status sgm__fit_decide(const sgm__fit *fit);
/* Converts the bundle's tensors to the trainer's types: floats of another precision are rounded to nearest. A
 * finite number that would become infinite is an error. */
sgm_status sgm__fit_convert(sgm__fit *fit);
/* Whether a state of the bundle is wanted, known to the trainer, and has its shape and a type that
 * converts. */
bool sgm__fit_takes(const sgm__fit *fit, const char *name);

/* --- state.c: the JSON text of a checkpoint, which has everything that is no tensor --- */
#define SGM__NETWORK_KEY "sigma.network"
#define SGM__STATE_KEY "sigma.state"
/* The JSON text of a checkpoint as it was read. */
typedef struct sgm__saved_state {
    json_t *json; /* NULL: the file has no such text, as those of other programs */
    unsigned parts;
    sgm__training_position position;
    sgm_pipeline *pipeline; /* owned; NULL: there is none */
    const char *optimiser;  /* name of its type, which belongs to `json`; NULL: the trainer had none */
} sgm__saved_state;
/* Adds the JSON text to a bundle. */
sgm_status sgm__state_add(sgm_trainer *trainer, unsigned parts, sgm_bundle *bundle);
/* Writes these parts of a trainer, or of a replica, into a JSON object; reads and checks such an object. */
sgm_status sgm__state_describe(const sgm_trainer *trainer, unsigned parts, json_t *state);
sgm_status sgm__state_read(sgm__saved_state *state, const char *source);
/* Finds the JSON text of a bundle, reads and checks it. Call sgm__state_close also after a failure. */
sgm_status sgm__state_open(sgm__saved_state *state, const sgm_bundle *bundle, const char *source);
void sgm__state_close(sgm__saved_state *state);
/* Sets what preprocessors of the data and hooks remember. If one of them refuses its numbers, all are as
 * they were before. */
sgm_status sgm__state_set_learnt(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts);
/* Sets everything else: settings, metrics, the optimiser's numbers, the position. */
sgm_status sgm__state_set_rest(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts);
/* --- take_over.c --- */
/* Everything that changes the trainer when a file is loaded that fits it; with the trainer's lock. After a
 * failure the trainer is as it was. */
sgm_status sgm__take_over(sgm_trainer *trainer, sgm__fit *fit, const sgm__saved_state *state);

/* Fails unless the whole bundle can be loaded into the trainer; with the trainer's lock
 * (trainer_checkpoint.c). */
sgm_status sgm__checkpoint_fits(sgm_trainer *trainer, const sgm_bundle *bundle, const sgm__saved_state *state,
                                const char *source);

#endif
