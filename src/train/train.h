/* What a trainer does: from its parts to programs, steps and passes over data. Internal. */
#ifndef SGM_TRAIN_TRAIN_H
#define SGM_TRAIN_TRAIN_H

#include "hooks/hooks.h"
#include "metrics/metrics.h"
#include "train/measure.h"
#include "trainer/trainer.h"
#include "trainer/view.h"

/* --- trainer_setup.c --- */
/* A new trainer without network, data or optimiser; free with sgm__trainer_free. NULL: it failed. */
sgm_trainer *sgm__trainer_create(const char *name, const sgm__trainer_settings *settings);
/* A trainer that computes for `owner`, with the owner's network, optimiser and patterns. */
sgm_trainer *sgm__trainer_create_replica(sgm_trainer *owner, const sgm__trainer_settings *settings);
void sgm__trainer_free(sgm_trainer *trainer);
/* Before a change of the network: states are collected from the workers, and all programs go. */
sgm_status sgm__trainer_end_network(sgm_trainer *trainer);
/* Behind it: the newest recording, which points to names of the network as it was, is cleared, also in
 * replicas. */
sgm_status sgm__trainer_begin_network(sgm_trainer *trainer);

/* --- trainer_hooks.c --- */
/* Attaches a hook to the trainer; a local hook is attached to its replicas instead. *attached: false where
 * the hook was attached already; *name: its name in lists, free with sgm__free (NULL: not wanted). */
sgm_status sgm__trainer_attach_as(sgm_trainer *trainer, sgm_hook *hook, sgm__attachment how, bool *attached,
                                  char **name);

/* --- trainer_program.c --- */
/* The program for minibatches of `batch` examples, compiled when it is first needed; defines states that are
 * new. NULL: it failed. */
sgm_program *sgm__trainer_program(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch);
/* Records the program without compiling it: enough to define its states. */
sgm_status sgm__trainer_record(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch);
sgm_status sgm__trainer_define_state(sgm_trainer *trainer, const char *name, const sgm_type *type);
/* Gives a parameter that is defined its first values again, for workers as well. */
sgm_status sgm__trainer_draw(sgm_trainer *trainer, const char *name);
/* For strategies. Records the update of the parameters by `gradients`, one for each trained parameter; NULL:
 * by the gradients of the recorded loss. `update` false: the gradients are only accumulated.
 * `averages_apart`: without moving averages. */
sgm_status sgm__trainer_record_update(sgm_trainer *trainer, bool update, const sgm_value *gradients,
                                      bool averages_apart);
void sgm__trainer_record_random_step(sgm_graph *graph); /* the stream of random numbers moves on */

/* --- trainer_predict.c --- */
/* As sgm__trainer_prepare (measure.h), without the trainer's name in messages. */
sgm_status sgm__trainer_define_states(sgm_trainer *trainer);
/* Gives all states their initial values again. */
sgm_status sgm__trainer_refill(sgm_trainer *trainer);
/* Sets to zero what layers remember from one minibatch to the next (recurrent layers' states). */
sgm_status sgm__trainer_forget_memories(sgm_trainer *trainer);

/* --- trainer_step.c --- */
/* Feeds each field of a block into the program's input of the same name. */
sgm_status sgm__trainer_feed(sgm_trainer *trainer, sgm_program *program, const sgm_block *block);
/* The error of an input that `values` do not fit: which shape the network wants of this field. */
sgm_status sgm__trainer_shape_mismatch(const sgm_trainer *trainer, const sgm_program *program, int32_t input,
                                       const sgm_tensor *values);
/* Feeds the learning rate and the number of the update, where the program has inputs for them. */
sgm_status sgm__trainer_feed_update(sgm_trainer *trainer, sgm_program *program, double rate, int64_t step);
/* Adds the loss and the correct predictions of the program's newest run to the sums. */
sgm_status sgm__trainer_count(sgm_trainer *trainer, sgm_program *program, int64_t examples,
                              sgm__metric_sums *sums);
/* Reads the value of each cost after a run of the program. */
sgm_status sgm__trainer_read_costs(sgm_trainer *trainer, sgm_program *program);

/* Sets the training data to the training's position: others may have used the data meanwhile. */
sgm_status sgm__trainer_place_data(sgm_trainer *trainer);
/* The next minibatch to train on, NULL at the end of an epoch; adds the time that it took to the progress. */
sgm_status sgm__trainer_next_minibatch(sgm_trainer *trainer, const sgm_block **minibatch);
/* One step of training with this learning rate; moves the position on. */
sgm_status sgm__trainer_step(sgm_trainer *trainer, const sgm_block *minibatch, double rate);
/* The step of an optimiser without gradients (trainer_search.c). */
sgm_status sgm__trainer_search(sgm_trainer *trainer, const sgm_block *minibatch, double rate);
/* Fails with SGM_ERROR_NUMERIC if the newest loss is NaN or infinite. */
sgm_status sgm__trainer_check_loss(const sgm_trainer *trainer);
/* After an epoch: tells the plateau schedule of the epoch's loss. */
void sgm__trainer_watch_plateau(sgm_trainer *trainer, double loss);

/* --- trainer_pass.c --- */
/* Measures on the validation data of this index, into data.metrics[index]. */
sgm_status sgm__trainer_validate(sgm_trainer *trainer, size_t index);

/* --- trainer_results.c --- */
/* Removes from the registry what these hooks left there. The results of a hook that ended by itself
 * stay. Any thread. */
void sgm__trainer_drop_left(sgm_trainer *trainer, const sgm__detached *hooks);
void sgm__trainer_forget_scores(sgm_trainer *trainer);
void sgm__trainer_free_results(sgm_trainer *trainer);

#endif
