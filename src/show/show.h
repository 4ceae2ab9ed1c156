/* What the registry shows of a trainer: called where parts of the trainer come, go or change. Internal. */
#ifndef SGM_SHOW_SHOW_H
#define SGM_SHOW_SHOW_H

#include "trainer/view.h"

/* --- trainer_values.c --- */
/* Fills the registry of a new trainer. */
sgm_status sgm__trainer_publish(sgm_trainer *trainer);
/* Adds states that the session has got since the last call (trainer_states.c). */
sgm_status sgm__trainer_publish_states(sgm_trainer *trainer);
/* Sets the metrics of the newest validation. */
sgm_status sgm__trainer_publish_metrics(sgm_trainer *trainer);
/* The registry's child with the metrics of these data; it belongs to its parent. */
sgm_status sgm__trainer_data_registry(sgm_trainer *trainer, const char *data, sgm_registry **registry);

/* --- trainer_settings.c --- */
/* Whether the next minibatch completes an update: it is the last of those whose gradients are accumulated. A
 * new number of these (optimiser.accumulate) is taken over here, at the first minibatch of an update. */
bool sgm__trainer_updates_next(sgm_trainer *trainer);

/* --- trainer_layers.c --- */
/* Shows the layers of the trainer's network; nothing without one. */
sgm_status sgm__trainer_publish_network(sgm_trainer *trainer);
/* Frees what showing the network needed. */
void sgm__trainer_unpublish_network(sgm_trainer *trainer);

/* --- trainer_iterators.c: minibatch size, position and preprocessors of data --- */
sgm_status sgm__trainer_publish_training(sgm_trainer *trainer);
/* `name` is borrowed and must live as long as the trainer. */
sgm_status sgm__trainer_publish_validation(sgm_trainer *trainer, const char *name, sgm_iterator *iterator);

#endif
