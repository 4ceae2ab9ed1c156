/* How a trainer shares its work with several workers. Internal.
 *
 * A trainer without a strategy (NULL) computes everything itself. A strategy is a table of functions that the
 * trainer calls instead, or in addition, where work is done by replicas in this process and by other
 * processes (ranks). The trainer and the folders above it know workers and ranks by this table alone;
 * parallel/operator_strategy.c fills it in.
 *
 * A replica is a trainer that computes for another trainer, its owner (sgm__sharing.owner). It has no
 * strategy of its own and calls its owner's.
 */
#ifndef SGM_TRAINER_STRATEGY_H
#define SGM_TRAINER_STRATEGY_H

#include "hooks/hooks.h"
#include <sigma/data.h>
#include <sigma/tensor.h>

#define SGM__MAXIMUM_WORKERS 64 /* replicas of one trainer */

struct json_t;
struct sgm__parts;
struct sgm__training_run;

/* When a hook's command is carried out: now, as the hooks of all ranks give the same command; or in the next
 * meeting of the ranks, until which the strategy keeps it; or never. */
typedef enum sgm__command_time { SGM__COMMAND_NOW, SGM__COMMAND_LATER, SGM__COMMAND_NEVER } sgm__command_time;

typedef struct sgm__strategy {
    /* --- the trainer's life --- */
    void (*free)(sgm_trainer *trainer);
    /* Gives `to` an operator with the same settings. */
    sgm_status (*copy)(sgm_trainer *to, const sgm_trainer *from);

    /* --- a run: these are called on its thread --- */
    /* Before the first iteration: gives all ranks the states and the position of rank 0, and starts the
     * threads of replicas. `saves`: epochs from one checkpoint of this process to the next, 0: it makes none.
     */
    sgm_status (*start)(sgm_trainer *trainer, int64_t saves);
    /* Gives the replicas the trainer's states now, if they are to take them at the next iteration. */
    sgm_status (*synchronise)(sgm_trainer *trainer);
    /* Writes ", 2 ranks of 1 worker". */
    void (*describe)(const sgm_trainer *trainer, char *text, size_t size);
    /* The next minibatch, NULL at the end of an epoch. */
    sgm_status (*next)(sgm_trainer *trainer, const sgm_block **block);
    /* Does one iteration, of which `block` is the first minibatch, and moves the positions on. */
    sgm_status (*iterate)(sgm_trainer *trainer, const sgm_block *block, double rate);
    /* After an iteration: fails if the ranks' states differ. */
    sgm_status (*check)(sgm_trainer *trainer);
    /* Runs the replicas' hooks of an event. */
    sgm_status (*event)(sgm_trainer *trainer, sgm_time_scale scale);
    sgm_status (*end_epoch)(sgm_trainer *trainer);
    /* All ranks, before rank 0 makes a checkpoint. `at_epoch`: the call is at the end of an epoch, and does
     * nothing unless a checkpoint is made there. */
    sgm_status (*prepare_save)(sgm_trainer *trainer, bool at_epoch);
    /* After the last iteration: brings the trainer's states up to date, so that they can be saved. */
    sgm_status (*finish)(sgm_trainer *trainer);
    /* Waits until all ranks have saved. */
    sgm_status (*leave)(sgm_trainer *trainer);
    /* The run has ended. `failed`: other ranks are told not to wait for this one. */
    void (*end)(sgm_trainer *trainer, bool failed);

    /* --- between two iterations: ranks agree on what is done (a meeting) --- */
    /* Carries out commands on all ranks, in place of the run itself. NULL: there is one process. */
    sgm_status (*meet)(struct sgm__training_run *run);
    /* Whether another process is rank 0, which alone has the run folder and receives commands. */
    bool (*follows)(const sgm_trainer *trainer);
    /* There is a meeting after the next iteration. Only where all ranks call it at the same iteration. */
    void (*must_meet)(sgm_trainer *trainer);
    /* The trainer was moved to another position (a reset or a load). */
    void (*moved)(sgm_trainer *trainer);
    /* A command was carried out here: {"command": ...}. Any thread that has the trainer's lock. */
    void (*note)(sgm_trainer *trainer, const char *who, const struct json_t *command);
    /* The next command of a replica's hook; NULL: there is none. */
    sgm__command *(*next_command)(sgm_trainer *trainer);
    /* When a hook's command is carried out. Fails where hooks of other ranks give another command. */
    sgm_status (*decide)(sgm_trainer *trainer, sgm__command *command, sgm__command_time *time);
    /* Names the ranks that do not answer; free with sgm__free. NULL: all answer. Any thread. */
    char *(*silent)(const sgm_trainer *trainer);

    /* --- programs --- */
    /* Adds to a recording the values that workers exchange: gradients as outputs of a replica, the update by
     * the sums of gradients, moving averages. `purpose`: sgm__step_purpose. */
    sgm_status (*record)(sgm_trainer *trainer, int purpose, int64_t batch);
    /* Before an update is recorded: finds which rank updates each parameter. */
    sgm_status (*find_owners)(sgm_trainer *trainer);
    /* The network was recorded anew, for the trainer or a replica. */
    void (*recorded)(sgm_trainer *trainer);
    void (*forget_programs)(sgm_trainer *trainer);

    /* --- states --- */
    /* Brings the trainer's states up to date with its replicas'. */
    sgm_status (*collect)(sgm_trainer *trainer);
    /* The replicas continue with the trainer's states from the next iteration on. */
    void (*restart)(sgm_trainer *trainer);
    /* The trainer is reset: resets hooks and results of the replicas. */
    sgm_status (*reset)(sgm_trainer *trainer);
    /* Before the trainer's session is replaced by another one. */
    sgm_status (*new_session)(sgm_trainer *trainer);
    /* Gives a new state of a replica its first value. */
    sgm_status (*define_state)(sgm_trainer *replica, const char *name, const sgm_type *type);
    /* A state of the trainer was set: the replicas get it. */
    sgm_status (*state_was_set)(sgm_trainer *trainer, const char *name);
    /* The trainer or replica that keeps the gradients or updates (`what`, for messages) of a parameter; fails
     * where that is another process. */
    sgm_status (*find_kept)(sgm_trainer *trainer, const char *parameter, const char *what,
                            sgm_trainer **keeper);

    /* --- states that only other ranks have: optimiser states, where they are sharded --- */
    /* Whether this process has a state. */
    bool (*has_state)(const sgm_trainer *trainer, const char *state);
    /* The next such state that the registry does not show yet; NULL: there is none. */
    const char *(*next_elsewhere)(sgm_trainer *trainer);
    /* The type of such a state; false: the name is of no such state. */
    bool (*type_elsewhere)(const sgm_trainer *trainer, const char *state, sgm_type *type);
    /* Its value; free with sgm_tensor_free. */
    sgm_tensor *(*get_elsewhere)(const sgm_trainer *trainer, const char *state);
    /* Fails for a state that not all ranks have: it cannot be set. */
    sgm_status (*check_set)(const sgm_trainer *trainer, const char *state);

    /* --- local hooks, of which each replica has a copy --- */
    sgm_status (*attach)(sgm_trainer *trainer, sgm_hook *hook, sgm__attachment how, bool *attached,
                         char **name);
    sgm_status (*detach)(sgm_trainer *trainer, const char *name, char **full, char **text);
    /* As sgm__hooks_press, of the hooks of all replicas. */
    void (*press)(sgm_trainer *trainer, const char *name, size_t *count);
    sgm_status (*list_hooks)(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count);
    /* The first replica; all replicas have the same hooks. */
    const sgm_trainer *(*first_replica)(const sgm_trainer *trainer);

    /* --- checkpoints --- */
    /* Adds positions and hooks' states of workers to the JSON text; tensors to the bundle. */
    sgm_status (*describe_state)(const sgm_trainer *trainer, struct json_t *state);
    sgm_status (*add_states)(sgm_trainer *trainer, const struct sgm__parts *wanted, sgm_bundle *bundle);
    /* Before anything changes: fails if the workers' states of a checkpoint cannot be loaded. */
    sgm_status (*check_states)(sgm_trainer *trainer, const sgm_bundle *bundle, const struct json_t *state,
                               const char *source);
    /* The trainer has loaded optimiser states; `taken`: of each tensor of the bundle, whether it was. */
    sgm_status (*loaded)(const sgm_trainer *trainer, const sgm_bundle *bundle, const bool *taken);
    /* Gives the workers their states of a checkpoint. `state` NULL: only parts of the checkpoint are loaded.
     */
    sgm_status (*take_over)(sgm_trainer *trainer, const sgm_bundle *bundle, const struct json_t *state,
                            const char *source);
    /* The registry in which the owner shows the results of a replica's hooks. */
    sgm_registry *(*results)(const sgm_trainer *replica);
} sgm__strategy;

#endif
