/* Hooks that were attached while the trainer ran: checkpoints keep their texts. Internal. */
#ifndef SGM_TRAIN_TRAINER_HOOKS_H
#define SGM_TRAIN_TRAINER_HOOKS_H

#include "trainer/view.h"
#include <jansson.h>

/* Adds their texts as "attached" to the JSON text of a checkpoint. */
sgm_status sgm__trainer_save_hooks(const sgm_trainer *trainer, json_t *state);
/* While a checkpoint is loaded: attaches the hooks of its list before their states are set. At the end `stay`
 * says whether loading succeeded; if not, the hooks that are new are detached again. */
typedef struct sgm__loaded_hooks {
    sgm_hook **items;
    size_t count;
} sgm__loaded_hooks;
void sgm__trainer_load_hooks(sgm_trainer *trainer, const json_t *state, sgm__loaded_hooks *loaded);
void sgm__loaded_hooks_end(sgm_trainer *trainer, sgm__loaded_hooks *loaded, bool stay);

/* Whether the trainer's program or file has named this address (sgm_trainer_allow_webhook). */
bool sgm__trainer_allows_webhook(const sgm_trainer *trainer, const char *address);

#endif
