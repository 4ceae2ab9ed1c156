/* How a value of a trainer becomes an entry of its registry; shared by the files of src/show and by
 * workers' registries (src/parallel). Internal. */
#ifndef SGM_SHOW_TRAINER_PUBLISH_H
#define SGM_SHOW_TRAINER_PUBLISH_H

#include "trainer/view.h"

/* --- trainer_values.c --- */

typedef struct sgm__bound sgm__bound;
/* How a value is read and set; a constant table. Both functions are called with the trainer's lock, and a
 * new value has been checked against the option (kind, bounds, choices) before. What `get` gives belongs
 * to the caller. */
typedef struct sgm__access {
    bool guarded; /* `get` is called without the trainer's lock, as another lock guards what it reads */
    sgm_status (*get)(const sgm__bound *bound, sgm_content *content);
    sgm_status (*set)(const sgm__bound *bound, const sgm_content *content); /* NULL: read-only */
} sgm__access;
/* What an entry is bound to; the registry's binding owns it. */
struct sgm__bound {
    sgm_trainer *trainer;
    const sgm__access *access;
    const void *row; /* for get and set: which of several values this is */
    char identifier[];
};

/* Shows a value in `registry` under the option's name; `option`, `access` and `row` must live as long as
 * the entry. PREFIX.NAME is the identifier from the trainer's registry on (`prefix` ends with its dot):
 * changes are noted, and kept by checkpoints, under it. */
sgm_status sgm__publish_value(sgm_trainer *trainer, sgm_registry *registry, const char *prefix,
                              const sgm_option *option, const sgm__access *access, const void *row);
/* Gives the child of this name, made with the tag (NULL: none) if it is missing; its parent owns it. */
sgm_status sgm__publish_child(sgm_registry *registry, const char *name, const char *tag,
                              sgm_registry **child);

/* --- trainer_frozen.c --- */
extern const sgm_option sgm__frozen_row;
extern const sgm__access sgm__frozen_access;
/* --- trainer_settings.c --- */
sgm_status sgm__publish_settings(sgm_trainer *trainer);
/* --- trainer_states.c --- */
/* Stops keeping gradients and updates that nobody reads any more. The training's thread calls this between
 * two iterations. */
void sgm__trainer_let_go_of_kept(sgm_trainer *trainer);
/* Copies an option's row that was made at run time. The copy lives as long as the trainer, as copies of
 * the registry point to it. NULL: out of memory. */
const sgm_option *sgm__trainer_keep_row(sgm_trainer *trainer, const sgm_option *row);

/* Says in words from when on a new value takes effect: "from the next iteration on", unless the option
 * says otherwise. `option` may be NULL. */
const char *sgm__option_effect(const sgm_option *option);
/* The type of a tensor by its identifier, without reading its values. With the trainer's lock. */
sgm_status sgm__trainer_tensor_type(const sgm_trainer *trainer, const char *identifier, sgm_type *type);

#endif
