/* What the registry shows of a trainer: called where parts of the trainer come, go or change. Internal.
 *
 * The registry of a trainer holds no copies of numbers: most entries are bound to the trainer and read or
 * set it when they are read or set (trainer_publish.h). Monitors, the control socket, hooks and
 * checkpoints see a trainer through it. All functions need the trainer's lock, or a trainer that no other
 * thread has yet. */
#ifndef SGM_SHOW_SHOW_H
#define SGM_SHOW_SHOW_H

#include "trainer/view.h"

/* --- trainer_values.c --- */
/* Fills the registry of a new trainer. */
sgm_status sgm__trainer_publish(sgm_trainer *trainer);
/* Adds entries for states that the session has got since the last call, and for gradients and updates
 * (trainer_states.c). */
sgm_status sgm__trainer_publish_states(sgm_trainer *trainer);
/* Sets loss and accuracy of the newest validation of each data set. */
sgm_status sgm__trainer_publish_metrics(sgm_trainer *trainer);
/* Gives the child of the registry that has the metrics of these data, made if it is missing; its parent
 * owns it. */
sgm_status sgm__trainer_data_registry(sgm_trainer *trainer, const char *data, sgm_registry **registry);

/* --- trainer_settings.c --- */
/* Whether the next minibatch completes an update, that is, it is the last of those whose gradients are
 * accumulated. A new number of these (optimiser.accumulate) takes effect here, at the first minibatch of
 * an update. */
bool sgm__trainer_updates_next(sgm_trainer *trainer);

/* --- trainer_frozen.c --- */
#define SGM__FROZEN "optimiser.frozen" /* the entry that lists what is frozen */
/* What the entry will be when a pattern is frozen, or trained again; sgm__free. NULL: the pattern matches no
 * parameter, nothing would be left to train, or memory is short. */
char *sgm__trainer_frozen_with(const sgm_trainer *trainer, const char *pattern, bool freeze);
/* Freezes a pattern, or trains it again, by setting the entry. No change where it was so already. */
sgm_status sgm__trainer_set_frozen(sgm_trainer *trainer, const char *pattern, bool freeze);

/* --- trainer_layers.c --- */
/* Shows the layers of the trainer's network; nothing without one. */
sgm_status sgm__trainer_publish_network(sgm_trainer *trainer);
/* Frees what showing the network needed, when the trainer is freed. */
void sgm__trainer_unpublish_network(sgm_trainer *trainer);

/* --- trainer_iterators.c: minibatch size, position and preprocessors of data --- */
/* Shows the iterator of the training data as iterator.*, in place of the one before. */
sgm_status sgm__trainer_publish_training(sgm_trainer *trainer);
/* Shows the iterator of validation data as NAME.iterator.*. `name` is borrowed and must live as long as
 * the trainer. */
sgm_status sgm__trainer_publish_validation(sgm_trainer *trainer, const char *name, sgm_iterator *iterator);

#endif
