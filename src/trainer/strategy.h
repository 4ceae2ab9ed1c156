/* How a trainer shares its work out. Internal.
 *
 * A trainer without a strategy (NULL) has one worker: itself. With one, the functions of this table stand
 * between the trainer and whoever computes for it, replicas in this process and other processes (ranks). The
 * trainer and all that stands on it know no more of them than this table; operator_strategy.c fills it in.
 *
 * A replica is a trainer that computes for another one, its owner (sgm_trainer.owner). It has no strategy;
 * what it has to ask it asks of its owner's.
 */
#ifndef SGM_TRAINER_STRATEGY_H
#define SGM_TRAINER_STRATEGY_H

#include "hooks/hooks.h"
#include <sigma/data.h>
#include <sigma/persistence.h>

#define SGM__MAXIMUM_WORKERS 64 /* replicas of one trainer */

struct json_t;
struct sgm__parts;
struct sgm__training_run;

/* What becomes of a hook's command: it is done now, as the hooks of all processes ask for it; or in the next
 * meeting, until which the strategy keeps it; or never. */
typedef enum sgm__command_time { SGM__COMMAND_NOW, SGM__COMMAND_LATER, SGM__COMMAND_NEVER } sgm__command_time;

typedef struct sgm__strategy {
    /* --- the trainer's life --- */
    void (*free)(sgm_trainer *trainer);
    sgm_status (*copy)(sgm_trainer *to, const sgm_trainer *from); /* gives `to` the like */

    /* --- a run; its thread calls these --- */
    /* Before the first iteration: all processes stand where the first one stands, replicas have their
     * threads. `saves`: epochs from one checkpoint of this process to the next, 0: it makes none. */
    sgm_status (*start)(sgm_trainer *trainer, int64_t saves);
    void (*describe)(const sgm_trainer *trainer, char *text, size_t size); /* ", 2 ranks of 1 worker" */
    /* The next minibatch, NULL at the end of an epoch. */
    sgm_status (*next)(sgm_trainer *trainer, const sgm_block **block);
    /* One iteration, of which `block` is the first minibatch. Moves the positions on. */
    sgm_status (*iterate)(sgm_trainer *trainer, const sgm_block *block, double rate);
    sgm_status (*check)(sgm_trainer *trainer); /* behind an iteration: whether all still have the same */
    sgm_status (*event)(sgm_trainer *trainer, sgm_time_scale scale); /* tells the replicas' hooks */
    sgm_status (*end_epoch)(sgm_trainer *trainer);
    /* All processes, before one makes a checkpoint; `at_epoch`: only if one is made now, behind this epoch.
     */
    sgm_status (*prepare_save)(sgm_trainer *trainer, bool at_epoch);
    /* Behind the last iteration: the trainer has all that was learnt, and may save it. */
    sgm_status (*finish)(sgm_trainer *trainer);
    sgm_status (*leave)(sgm_trainer *trainer); /* all have saved */
    void (*end)(sgm_trainer *trainer, bool failed);

    /* --- between two iterations: where several processes agree on what is done --- */
    /* Does what was asked for, in place of the run itself. NULL: there is one process, which the run leads.
     */
    sgm_status (*meet)(struct sgm__training_run *run);
    bool (*follows)(const sgm_trainer *trainer); /* another process leads, has the folder and the commands */
    void (*must_meet)(sgm_trainer *trainer);     /* in the next iteration; only from what all do alike */
    void (*moved)(sgm_trainer *trainer);         /* the training stands somewhere else now */
    /* A command was done here: {"command": ...}. Any thread that has the trainer's lock. */
    void (*note)(sgm_trainer *trainer, const char *who, const struct json_t *command);
    /* What a replica's hook has asked for; NULL: no more. */
    sgm__command *(*next_command)(sgm_trainer *trainer);
    /* When it is done. Fails where hooks of other processes ask for something else. */
    sgm_status (*decide)(sgm_trainer *trainer, sgm__command *command, sgm__command_time *time);
    char *(*silent)(
        const sgm_trainer *trainer); /* who does not answer; sgm__free. NULL: nobody. Any thread. */

    /* --- programs --- */
    /* What gradients of replicas add to a recording: their outputs, the update by them, moving averages. */
    sgm_status (*record)(sgm_trainer *trainer, int purpose, int64_t batch);
    sgm_status (*find_owners)(sgm_trainer *trainer); /* before an update is recorded: of what it changes */
    void (*recorded)(sgm_trainer *trainer);          /* the network, for the trainer or a replica of it */
    void (*forget_programs)(sgm_trainer *trainer);

    /* --- states --- */
    sgm_status (*collect)(sgm_trainer *trainer); /* the trainer gets what its replicas have learnt */
    void (*restart)(sgm_trainer *trainer);       /* replicas begin with what the trainer has */
    sgm_status (*reset)(sgm_trainer *trainer);
    sgm_status (*new_session)(sgm_trainer *trainer); /* the trainer gets another one: before */
    sgm_status (*define_state)(sgm_trainer *replica, const char *name, const sgm_type *type);
    sgm_status (*state_was_set)(sgm_trainer *trainer, const char *name);
    /* Who keeps gradients and updates of a parameter, `what`; fails where that is another process. */
    sgm_status (*find_kept)(sgm_trainer *trainer, const char *parameter, const char *what,
                            sgm_trainer **keeper);

    /* --- states that other processes have: the optimiser's, where it is sharded --- */
    bool (*has_state)(const sgm_trainer *trainer, const char *state); /* this process has */
    const char *(*next_elsewhere)(sgm_trainer *trainer); /* that the registry does not show yet; NULL: none */
    bool (*type_elsewhere)(const sgm_trainer *trainer, const char *state, sgm_type *type);
    sgm_tensor *(*get_elsewhere)(const sgm_trainer *trainer, const char *state); /* sgm_tensor_free */
    sgm_status (*check_set)(const sgm_trainer *trainer, const char *state); /* fails where not all have it */

    /* --- hooks of replicas, which each have a copy --- */
    sgm_status (*attach)(sgm_trainer *trainer, sgm_hook *hook, sgm__attachment how, bool *attached,
                         char **name);
    sgm_status (*detach)(sgm_trainer *trainer, const char *name, char **full, char **text);
    sgm_status (*list_hooks)(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count);
    const sgm_trainer *(*first_replica)(const sgm_trainer *trainer); /* whose hooks are like all others' */

    /* --- checkpoints --- */
    sgm_status (*describe_state)(const sgm_trainer *trainer, struct json_t *state);
    sgm_status (*add_states)(sgm_trainer *trainer, const struct sgm__parts *wanted, sgm_bundle *bundle);
    sgm_status (*check_states)(sgm_trainer *trainer, const sgm_bundle *bundle, const struct json_t *state,
                               const char *source);
    /* The optimiser states that were taken from a bundle. */
    sgm_status (*loaded)(const sgm_trainer *trainer, const sgm_bundle *bundle, const bool *taken);
    /* `state` NULL: only parts of the checkpoint are loaded. */
    sgm_status (*take_over)(sgm_trainer *trainer, const sgm_bundle *bundle, const struct json_t *state,
                            const char *source);
    sgm_registry *(*results)(const sgm_trainer *replica); /* of a replica's hooks, as its owner shows them */
} sgm__strategy;

#endif
