/* What a trainer does: from its parts to programs, steps and passes over data. Internal. */
#ifndef SGM_TRAIN_TRAIN_H
#define SGM_TRAIN_TRAIN_H

#include "hooks/hooks.h"
#include "metrics/metrics.h"
#include "train/measure.h"
#include "trainer/trainer.h"
#include "trainer/view.h"

/* --- trainer_setup.c: making one --- */
sgm_trainer *sgm__trainer_create(const char *name, const sgm__trainer_settings *settings);
/* A replica of `owner`. */
sgm_trainer *sgm__trainer_create_replica(sgm_trainer *owner, const sgm__trainer_settings *settings);
void sgm__trainer_free(sgm_trainer *trainer);

/* To the trainer, or a local hook to its replicas. */
sgm_status sgm__trainer_attach_as(sgm_trainer *trainer, sgm_hook *hook, sgm__attachment how, bool *attached,
                                  char **name);

/* trainer_program.c: records (or finds) the program for a minibatch; defines states that are new. */
sgm_program *sgm__trainer_program(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch);
/* Records it without compiling it, which defines its states. */
sgm_status sgm__trainer_record(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch);
sgm_status sgm__trainer_define_state(sgm_trainer *trainer, const char *name, const sgm_type *type);
/* trainer_predict.c: sgm__trainer_prepare without the name of the trainer in a message. */
sgm_status sgm__trainer_define_states(sgm_trainer *trainer);
/* For strategies: records an update by gradients; NULL: by those of the recorded cost. `averages_apart`: it
 * leaves moving averages out. */
sgm_status sgm__trainer_record_update(sgm_trainer *trainer, bool update, const sgm_value *gradients,
                                      bool averages_apart);
void sgm__trainer_record_random_step(sgm_graph *graph); /* the stream of random numbers moves on */

/* trainer_step.c. Feeds a block's fields into the program's inputs of their names. */
sgm_status sgm__trainer_feed(sgm_trainer *trainer, sgm_program *program, const sgm_block *block);
/* Tells a failure to feed an input as what the network wants of the field. */
sgm_status sgm__trainer_shape_mismatch(const sgm_trainer *trainer, const sgm_program *program, int32_t input,
                                       const sgm_tensor *values);
/* The learning rate and the number of the update, as far as the program wants them. */
sgm_status sgm__trainer_feed_update(sgm_trainer *trainer, sgm_program *program, double rate, int64_t step);
/* Adds loss and correct predictions of a run to the sums. */
sgm_status sgm__trainer_count(sgm_trainer *trainer, sgm_program *program, int64_t examples,
                              sgm__metric_sums *sums);

/* trainer_predict.c: all states get their first values again. */
sgm_status sgm__trainer_refill(sgm_trainer *trainer);
/* What layers remember from minibatch to minibatch becomes zeros. */
sgm_status sgm__trainer_forget_memories(sgm_trainer *trainer);

/* trainer_step.c. Data stand where the training stands, whoever else has used them, or brought new ones. */
sgm_status sgm__trainer_place_data(sgm_trainer *trainer);
/* The next minibatch to train on, NULL at the end of an epoch; measures how long it takes. */
sgm_status sgm__trainer_next_block(sgm_trainer *trainer, const sgm_block **block);
/* One step of training with this learning rate; counts it. */
sgm_status sgm__trainer_step(sgm_trainer *trainer, const sgm_block *block, double rate);
/* Whether the loss is a finite number. */
sgm_status sgm__trainer_check_loss(const sgm_trainer *trainer);
/* After an epoch of this loss, for a plateau schedule. */
void sgm__trainer_watch_plateau(sgm_trainer *trainer, double loss);

/* trainer_pass.c: measuring without training */
sgm_status sgm__trainer_validate(sgm_trainer *trainer, size_t index); /* into metrics[index] */
void sgm__trainer_free_passes(sgm_trainer *trainer);

/* trainer_pass.c: what hooks measured */
/* Removes what these hooks left. (What was left by a hook whose time is over stays.) Any thread. */
void sgm__trainer_drop_left(sgm_trainer *trainer, const sgm__detached *hooks);
void sgm__trainer_forget_scores(sgm_trainer *trainer);
void sgm__trainer_free_results(sgm_trainer *trainer);

#endif
