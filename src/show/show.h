/* What of a trainer is in the registry. Internal. */
#ifndef SGM_SHOW_SHOW_H
#define SGM_SHOW_SHOW_H

#include "trainer/view.h"

/* trainer_values.c: what the registry shows. */
sgm_status sgm__trainer_publish(sgm_trainer *trainer);
sgm_status sgm__trainer_publish_states(sgm_trainer *trainer);  /* those that are new */
sgm_status sgm__trainer_publish_metrics(sgm_trainer *trainer); /* trainer_values.c */
/* The child that has the metrics of data; belongs to its parent. */
sgm_status sgm__trainer_data_registry(sgm_trainer *trainer, const char *data, sgm_registry **registry);

/* trainer_settings.c: whether the next minibatch completes an update. */
bool sgm__trainer_updates_next(sgm_trainer *trainer);

/* trainer_layers.c: shows the network that the trainer has now, or none. */
sgm_status sgm__trainer_publish_network(sgm_trainer *trainer);
void sgm__trainer_unpublish_network(sgm_trainer *trainer); /* frees what that needed */
/* Outputs of the costs, and of their parts, if the totals do not say them. */
sgm_status sgm__trainer_record_costs(sgm_trainer *trainer, bool part);
sgm_status sgm__trainer_read_costs(sgm_trainer *trainer, sgm_program *program);

/* trainer_iterators.c */
sgm_status sgm__trainer_publish_training(sgm_trainer *trainer);
/* `name` stays. */
sgm_status sgm__trainer_publish_validation(sgm_trainer *trainer, const char *name, sgm_iterator *iterator);

#endif
