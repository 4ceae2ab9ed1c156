/* Commands to a training, which are done between two of its iterations; and hooks that come and go while it
 * runs. The record and the queue are in hooks/commands.h. Internal. */
#ifndef SGM_RUNS_TRAINER_COMMANDS_H
#define SGM_RUNS_TRAINER_COMMANDS_H

#include "hooks/commands.h"
#include "trainer/view.h"

/* --- trainer_commands.c: any thread --- */
/* Has a command done: by this thread if the trainer is idle, else by the training's, which this one waits for
 * with its patience (trainer_lock.h), unless it is busy (then a failure is logged). The fields are copied.
 * What nobody waits for any more is not done, but a note is. */
sgm_status sgm__trainer_command(sgm_trainer *trainer, sgm__command_kind kind, sgm__command_fields fields);

/* --- trainer_commands.c: the training's thread, with the trainer's lock --- */
typedef struct sgm__command_outcome {
    bool moved;  /* the training stands somewhere else now */
    bool broken; /* it failed half-way, and nothing can go on */
} sgm__command_outcome;
sgm_status sgm__trainer_do(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome);
/* The next one in the queue, or NULL; then say how it went, which frees what nobody waits for. */
sgm__command *sgm__trainer_take_command(sgm_trainer *trainer);
void sgm__trainer_command_done(sgm_trainer *trainer, sgm__command *command, sgm_status status);
size_t sgm__trainer_commands_count(sgm_trainer *trainer);
/* After an event: does what hooks have asked for. Fails where the hooks of other processes ask for something
 * else. */
sgm_status sgm__trainer_do_hooks_commands(sgm_trainer *trainer);
/* Does one of them now, and frees it; what moves the training is queued. A failure is logged. */
void sgm__trainer_do_for_hook(sgm_trainer *trainer, sgm__command *command);
/* A stop that checkpoints keep, for a resume. */
sgm_status sgm__trainer_end_for_good(sgm_trainer *trainer, const char *by);

/* --- trainer_branch.c: what reset and restore do --- */
sgm_status sgm__trainer_go_back(sgm_trainer *trainer, const sgm__command *command,
                                sgm__command_outcome *outcome);
sgm_status sgm__trainer_go_to(sgm_trainer *trainer, const sgm__command *command,
                              sgm__command_outcome *outcome);

/* --- trainer_attach.c: any thread --- */
/* Who does it, and which change it takes back (0: none). */
typedef struct sgm__hook_change {
    const char *who;
    int64_t undoes;
} sgm__hook_change;
sgm_status sgm__trainer_attach(sgm_trainer *trainer, sgm_hook *hook, sgm__hook_change change, char **name);
sgm_status sgm__trainer_detach(sgm_trainer *trainer, const char *name, sgm__hook_change change);
/* Whether its hooks can do what they are told, before it runs: see `check` of hook.h. Prepares the trainer.
 */
sgm_status sgm__trainer_check_hooks(sgm_trainer *trainer);

#endif
