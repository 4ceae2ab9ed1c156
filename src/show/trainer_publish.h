/* What the rooms of a trainer's registry share. Internal. */
#ifndef SGM_SHOW_TRAINER_PUBLISH_H
#define SGM_SHOW_TRAINER_PUBLISH_H

#include "trainer/view.h"

/* --- trainer_values.c --- */

typedef struct sgm__bound sgm__bound;
/* How a value is read and set, with the trainer's lock. A set is checked against the option before. */
typedef struct sgm__access {
    bool guarded; /* `get` needs no such lock, as another one guards what it reads */
    sgm_status (*get)(const sgm__bound *bound, sgm_content *content);
    sgm_status (*set)(const sgm__bound *bound, const sgm_content *content); /* NULL: read-only */
} sgm__access;
struct sgm__bound {
    sgm_trainer *trainer;
    const sgm__access *access;
    const void *row; /* what get and set need to know */
    char identifier[];
};

/* Shows a value as PREFIX.NAME (from the trainer's registry on); what is set is recorded, and kept by
 * checkpoints, under this identifier. */
sgm_status sgm__publish_value(sgm_trainer *trainer, sgm_registry *registry, const char *prefix,
                              const sgm_option *option, const sgm__access *access, const void *row);
/* The child of this name, made if it is not there; retained by its parent only. */
sgm_status sgm__publish_child(sgm_registry *registry, const char *name, const char *tag,
                              sgm_registry **child);

/* --- rooms --- */
sgm_status sgm__publish_settings(sgm_trainer *trainer);
/* For the run's thread, between two iterations: gradients and updates that nobody wants any more. */
void sgm__trainer_let_go_of_kept(sgm_trainer *trainer);
/* Rows that are made stay as long as the trainer, for copies of the registry use them too. NULL without
 * memory. */
const sgm_option *sgm__trainer_keep_row(sgm_trainer *trainer, const sgm_option *row);

/* When what is set counts: "from the next iteration on", unless the row (NULL: there is none) says otherwise.
 */
const char *sgm__option_effect(const sgm_option *option);
/* trainer_states.c: of a tensor, by its identifier, without reading it; with the lock. */
sgm_status sgm__trainer_tensor_type(const sgm_trainer *trainer, const char *identifier, sgm_type *type);

#endif
