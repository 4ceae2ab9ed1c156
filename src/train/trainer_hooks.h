/* What checkpoints keep of hooks that came while the trainer ran. Internal. */
#ifndef SGM_TRAIN_TRAINER_HOOKS_H
#define SGM_TRAIN_TRAINER_HOOKS_H

#include "trainer/view.h"
#include <jansson.h>

/* Adds "attached", their texts, to the state of a checkpoint. */
sgm_status sgm__trainer_save_hooks(const sgm_trainer *trainer, json_t *state);
/* Attaches them again; before their states are set. Then says whether they stay: if not, those that are new
 * go.
 */
typedef struct sgm__loaded_hooks {
    sgm_hook **items;
    size_t count;
} sgm__loaded_hooks;
void sgm__trainer_load_hooks(sgm_trainer *trainer, const json_t *state, sgm__loaded_hooks *loaded);
void sgm__loaded_hooks_end(sgm_trainer *trainer, sgm__loaded_hooks *loaded, bool stay);

#endif
