/* Commands to a trainer, which it carries out between two iterations; and attaching and detaching hooks while
 * it runs. The command's record and the queue are in hooks/commands.h. Internal. */
#ifndef SGM_RUNS_TRAINER_COMMANDS_H
#define SGM_RUNS_TRAINER_COMMANDS_H

#include "hooks/commands.h"
#include "trainer/view.h"

/* --- trainer_commands.c: any thread --- */
/* Has a command carried out: by this thread if the trainer is idle, else by the run's thread. This thread
 * waits for the outcome, no longer than its patience (trainer_lock.h); if it gives up, the command is not
 * carried out, except for a note. A busy thread (sgm__is_busy) does not wait, and a failure of its command
 * is logged. The fields are copied. */
sgm_status sgm__trainer_command(sgm_trainer *trainer, sgm__command_kind kind, sgm__command_fields fields);

/* --- trainer_commands.c: the training's thread, with the trainer's lock --- */
typedef struct sgm__command_outcome {
    bool moved;  /* the command (a reset or a restore) has moved the trainer to another position */
    bool broken; /* the command failed half-way: the run has to end */
} sgm__command_outcome;
/* Carries out a command on this thread; the command stays the caller's. */
sgm_status sgm__trainer_do(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome);
/* Takes the next command from the queue; NULL: there is none. sgm__trainer_command_done hands its outcome
 * to the waiting caller, or frees the command if nobody waits. */
sgm__command *sgm__trainer_take_command(sgm_trainer *trainer);
void sgm__trainer_command_done(sgm_trainer *trainer, sgm__command *command, sgm_status status);
size_t sgm__trainer_commands_count(sgm_trainer *trainer);
/* After an event: carries out the commands that its hooks have asked for. Fails if the hooks of other
 * ranks have asked for others. */
sgm_status sgm__trainer_do_hooks_commands(sgm_trainer *trainer);
/* Carries out a hook's command and frees it; a reset or a restore is queued instead. A failure is logged. */
void sgm__trainer_do_for_hook(sgm_trainer *trainer, sgm__command *command);
/* Ends the run in a way that checkpoints keep: a resume of the same length ends at once. */
sgm_status sgm__trainer_end_for_good(sgm_trainer *trainer, const char *by);

/* --- trainer_branch.c: reset and restore --- */
sgm_status sgm__trainer_go_back(sgm_trainer *trainer, const sgm__command *command,
                                sgm__command_outcome *outcome);
sgm_status sgm__trainer_go_to(sgm_trainer *trainer, const sgm__command *command,
                              sgm__command_outcome *outcome);

/* --- trainer_attach.c: any thread --- */
/* The name of whoever attaches or detaches a hook, and the number of the change that this takes back (0:
 * none). */
typedef struct sgm__hook_change {
    const char *who;
    int64_t undoes;
    bool locked; /* the caller has the trainer's lock: the change is recorded before the function returns */
} sgm__hook_change;
sgm_status sgm__trainer_attach(sgm_trainer *trainer, sgm_hook *hook, sgm__hook_change change, char **name);
sgm_status sgm__trainer_detach(sgm_trainer *trainer, const char *name, sgm__hook_change change);
/* The present name of the attached hook with this text, of which there is one at most; sgm__free. NULL: none
 * is attached, or memory is short. */
char *sgm__trainer_hook_of(sgm_trainer *trainer, const char *text);
/* SGM_ERROR_NOT_FOUND, with those that there are, if no attached hook has this button. */
sgm_status sgm__trainer_check_button(sgm_trainer *trainer, const char *name);
/* Presses a button of all hooks, also of workers, in the name of `who`, with the trainer's lock. */
sgm_status sgm__trainer_press(sgm_trainer *trainer, const char *name, const char *who);
/* As a resumed run or a replay does it again, in the name of `who`, with the trainer's lock. A hook that is
 * there, or gone, stays so. `hook` stays the caller's. */
sgm_status sgm__trainer_attach_again(sgm_trainer *trainer, sgm_hook *hook, const char *who);
sgm_status sgm__trainer_detach_again(sgm_trainer *trainer, const char *text, const char *who);
/* Before a run: prepares the trainer and fails if a hook cannot do its work (`check` of sgm_hook_type). */
sgm_status sgm__trainer_check_hooks(sgm_trainer *trainer);

#endif
