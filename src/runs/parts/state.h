/* Sections of a checkpoint's JSON text: what each part of a trainer writes into it and takes from it.
 * Internal.
 *
 * A section belongs to one of the parts that a user can save and load (SGM_PART_...), and has the functions
 * for both ways side by side. state.c has the table of all sections and goes through it; the sections are
 * state_position.c (where training stands), state_pipeline.c, state_hooks.c and state_metrics.c. Tensors are
 * no matter of sections: they are in the bundle under their own names (trainer_checkpoint.c). */
#ifndef SGM_RUNS_STATE_H
#define SGM_RUNS_STATE_H

#include "runs/parts/parts.h"

/* Numbers that a preprocessor or the hooks remember; `items` is freed with sgm__free. */
typedef struct sgm__number_list {
    double *items;
    size_t count;
} sgm__number_list;

/* One row of the table in state.c: how a part is written, checked, and set. */
typedef struct sgm__section {
    unsigned part;
    /* Writes its keys into the JSON object. */
    sgm_status (*describe)(const sgm_trainer *trainer, json_t *state);
    /* Reads into `state` what must be right, before anything is set; false: a number is missing or out of
     * bounds. NULL: nothing must be. */
    bool (*check)(sgm__saved_state *state);
    /* Likewise, for what says itself what is wrong with it. */
    sgm_status (*read)(sgm__saved_state *state);
    /* Sets numbers that their owner (a preprocessor, a hook) may refuse. `before` gets the numbers that the
     * owner had, or stays empty if nothing was set; put_back sets them again when a later section refuses.
     * NULL: nothing may be refused. */
    sgm_status (*learn)(sgm_trainer *trainer, const sgm__saved_state *state, sgm__number_list *before);
    void (*put_back)(sgm_trainer *trainer, const sgm__number_list *before);
    /* Sets the rest, once nothing can be refused any more; it fails only for want of memory. `parts` are all
     * parts that are wanted. NULL: there is no rest. */
    sgm_status (*set)(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts);
} sgm__section;

/* --- state_position.c --- */
extern const sgm__section sgm__averages_section;
extern const sgm__section sgm__optimiser_section;
extern const sgm__section sgm__preprocessors_section;
extern const sgm__section sgm__position_section;
/* --- state_pipeline.c --- */
extern const sgm__section sgm__pipeline_section;
/* --- state_hooks.c --- */
extern const sgm__section sgm__hooks_section;
/* --- state_metrics.c --- */
/* Forgets what was measured on the validation data so far. */
void sgm__state_forget_validations(sgm_trainer *trainer);
extern const sgm__section sgm__metrics_section;

/* --- state.c: values in JSON --- */
/* A number as a text with seventeen digits: JSON has no infinity, and hooks remember some. */
json_t *sgm__state_number(double value);
/* Reads a whole number from 0 to 2^53, and a double that sgm__state_number wrote; false: the value is
 * missing, or something else. */
bool sgm__state_count(const json_t *state, const char *key, int64_t *value);
bool sgm__state_exact(const json_t *text, double *value);
/* Reads a list of numbers; `what` is for messages. */
sgm_status sgm__state_read_list(const json_t *json, const char *what, sgm__number_list *list);

#endif
