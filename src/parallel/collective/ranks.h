/* Ranks: processes that train one network together, started by a launcher (mpirun, srun). Internal.
 *
 * Each rank has a trainer of its own, with its workers. All ranks do the same iterations: each takes its part
 * of the minibatch, gradients are summed over all ranks, and every rank makes the same update. Rank 0 leads:
 * it alone has the run folder, monitors and commands. What it is told between two iterations it tells the
 * other ranks in a meeting. A meeting is held behind an iteration if a rank has wanted one in the iteration
 * before: that wish travels with the iteration's sums.
 *
 * operator_strategy.c (src/parallel) makes these functions available to a run. Unless something else is said,
 * all ranks call a function at the same iteration, on the run's thread. */
#ifndef SGM_PARALLEL_COLLECTIVE_RANKS_H
#define SGM_PARALLEL_COLLECTIVE_RANKS_H

#include "hooks/hooks.h"
#include "parallel/collective/communicator.h"
#include "parallel/collective/launcher.h"
#include "parallel/collective/ranks_intra_node.h"
#include "parallel/workers/workers.h"
#include "trainer/trainer.h"

#define SGM__MAXIMUM_SENT ((size_t)1 << 30) /* bytes of one message */

typedef struct sgm__rank_options {
    double timeout;       /* seconds after which a wait for another rank fails */
    int64_t check_every;  /* iterations from one comparison of states to the next */
    int64_t bucket_bytes; /* of gradients that are summed in one message */
    bool narrow;          /* gradients travel in bfloat16 */
    bool sharded;         /* each rank updates a part of the parameters */
    bool messages;        /* gradients travel as messages, also between ranks of one node */
} sgm__rank_options;

/* A piece of the flat gradients that is summed by itself. */
typedef struct sgm__rank_bucket {
    size_t first, bytes;
    int32_t owner;  /* the rank that gets the sum; -1: all ranks get it */
    int32_t ticket; /* of the sum that is under way */
    double began;   /* when the sum was started (sgm__now) */
    bool done;      /* the sum is complete */
} sgm__rank_bucket;

/* Where a parameter lies among all trained parameters, and its gradient among all gradients: `bytes` bytes
 * from byte `first` on. */
typedef struct sgm__rank_place {
    const char *name; /* belongs to the operator */
    sgm_dtype dtype;
    size_t first, bytes;
    int32_t owner; /* the rank that updates it, where updates are divided */
} sgm__rank_place;

/* The rank that updates a parameter and has its optimiser states, where these are sharded. */
typedef struct sgm__rank_owner {
    char *parameter;
    int32_t rank;
} sgm__rank_owner;

/* Optimiser state of a parameter that another rank updates. */
typedef struct sgm__rank_slot {
    char *state;
    sgm_type type;
} sgm__rank_slot;

/* What a rank has done in this run. All members are doubles, so that accounts are gathered as an array of
 * them. */
typedef struct sgm__rank_account {
    double moment; /* seconds since its run began */
    double computed, waited, bytes, examples;
} sgm__rank_account;

typedef struct sgm__ranks {
    const sgm_communicator *table;
    void *self;
    int32_t rank, count;
    sgm__rank_options options;
    sgm_trainer *trainer;
    bool broken;   /* the other ranks cannot be reached any more */
    char why[512]; /* message of the first failure that showed it */

    /* --- gradients in shared memory (ranks_shared_memory.c) --- */
    sgm__intra_node *node; /* NULL: gradients travel as messages */
    bool looked;           /* whether all ranks are of one node has been found out */
    uint64_t *notes;       /* this rank's block of notes for the others of its node */
    size_t note_words;
    struct sgm__shared_part *parts; /* of the newest iteration, of all ranks */
    size_t part_count, part_capacity;

    /* --- places and owners of parameters (ranks_shard.c) --- */
    sgm__rank_place *places;
    size_t place_count, place_capacity, place_bytes;
    sgm__rank_owner *owners;
    size_t owner_count, owner_capacity;

    /* --- divided updates in shared memory (ranks_shared_memory.c) --- */
    bool divides, placed; /* each rank updates only its own parameters; parameters lie in shared memory */
    int32_t value_block;  /* the number of the block that they lie in */
    unsigned char *value_memory;
    size_t value_bytes;

    /* --- sums of gradients as messages (ranks_merge.c) --- */
    sgm_dtype dtype;
    unsigned char *flat; /* gradients, and later the new values, at their places */
    size_t flat_capacity;
    uint16_t *narrowed; /* the flat gradients as bfloat16, if they travel in that type */
    float *
        lost; /* what rounding to bfloat16 has lost: it is added to the next gradients (Seide et al., 2014) */
    sgm__rank_bucket *buckets;
    size_t bucket_count, bucket_capacity;
    bool reduces;   /* each sum goes to the parameter's owner alone */
    size_t next;    /* the next bucket whose sum is to be started */
    double *shared; /* numbers that all ranks sum in each iteration */
    size_t shared_count, shared_capacity;

    /* --- ranks that do not answer (ranks_wait.c), guarded by `lock`; times are of sgm__now --- */
    double *silent_since;      /* since when each rank has not answered; 0: the rank answers */
    double asked;              /* when this rank last asked all others */
    double spoke, waited_then; /* when the log last told of a silent rank, and how long the wait was then */

    /* --- meetings (ranks_agree.c) --- */
    pthread_mutex_t lock;
    sgm__text lines; /* commands that were done here, as JSON, for the other ranks; guarded by `lock` */
    bool meets, wants_stop; /* this rank wants a meeting; and wants the run to stop */
    bool someone_stops;     /* a rank wants the run to stop */
    bool moved;             /* rank 0 is at another position (a reset or a load): all take its states */
    bool meeting;           /* a meeting is going on, in which the others listen to rank 0 */
    bool saved;             /* rank 0 has made a checkpoint in this meeting, and has to tell the others */
    int64_t saves;          /* epochs from one checkpoint of rank 0 to the next; 0: it makes none */

    /* --- optimiser states of other ranks (ranks_slots.c) --- */
    sgm_bundle *others; /* at rank 0: the optimiser states of the others; NULL: only their owners have them */
    bool anew;          /* at the beginning of the next run the others get the states in `others` */
    sgm__rank_slot *slots; /* names and types of the others' states; `shown` of them are in the registry */
    size_t slot_count, slot_capacity, shown;

    /* --- commands of hooks (ranks_agree.c) --- */
    char newest_command[256]; /* the newest one, in words */
    uint32_t sign;            /* a checksum of all commands so far: it has to be the same on all ranks */
    sgm__command_queue kept;  /* at rank 0: commands of background hooks, for the next meeting */

    /* --- accounts of this run (ranks_registry.c): seconds, bytes sent, examples --- */
    double began, waited, computed;
    uint64_t bytes;
    int64_t examples;
    sgm__rank_account *accounts; /* of all ranks, as of the newest meeting; guarded by `lock` */
    sgm__rank_account *before;   /* of all ranks, as of the meeting before that; guarded by `lock` */
    sgm__rank_account *coming;   /* where the next accounts are received */
    double told;                 /* when accounts were exchanged last (sgm__now) */
    struct sgm__rank_row *rows;
} sgm__ranks;

/* --- ranks.c --- */
/* Joins the other processes that the launcher started; a single rank where there is no launcher. NULL: it
 * failed. */
sgm__ranks *sgm__ranks_open(const sgm__rank_options *options);
void sgm__ranks_close(sgm__ranks *ranks);
/* The ranks of the trainer's operator; NULL: it has none. */
static inline sgm__ranks *sgm__trainer_ranks(const sgm_trainer *trainer)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    return parallel != NULL ? parallel->ranks : NULL;
}
/* Whether this process is one of several ranks, and not rank 0. */
bool sgm__ranks_follow(const sgm_trainer *trainer);
/* Writes ", 2 ranks of 1 worker that share memory"; for a trainer without an operator the empty text. */
void sgm__ranks_describe(const sgm_trainer *trainer, char *text, size_t size);

/* --- ranks_wait.c: communication with a time limit ---
 * `what` names in messages what is waited for: "the gradients". Each wait fails after operator.timeout, and
 * its message names the ranks that did not come. */
/* Starts a work of the communicator; *ticket is -1 if it is complete at once. */
sgm_status sgm__ranks_start(sgm__ranks *ranks, const sgm_communicator_work *work, int32_t *ticket);
/* Waits until the work with this ticket is complete. */
sgm_status sgm__ranks_wait(sgm__ranks *ranks, int32_t ticket, const char *what);
/* As sgm__ranks_wait, with a time limit of its own. */
sgm_status sgm__ranks_wait_for(sgm__ranks *ranks, int32_t ticket, const char *what, double seconds);
/* Waits until `has_come(user)` is true, which other ranks bring about by writing into shared memory. */
sgm_status sgm__ranks_wait_until(sgm__ranks *ranks, bool (*has_come)(const void *user), const void *user,
                                 const char *what);
/* Starts a work and waits for it. */
sgm_status sgm__ranks_do(sgm__ranks *ranks, const sgm_communicator_work *work, const char *what);
/* The newest failure may have its cause in another rank: adds to its message the ranks that do not answer.
 * Returns the failure's status. */
sgm_status sgm__ranks_name_silent(sgm__ranks *ranks, const char *what);
/* "rank 1 (beta, process 4711) has not answered since 12:34:56", if this rank has waited for it long enough
 * to say so; free with sgm__free. NULL: all answer, or there are no other ranks. Any thread may call it. */
char *sgm__ranks_silent(const sgm_trainer *trainer);
/* This rank's run has failed: tells the others, so that they do not wait for operator.timeout. */
void sgm__ranks_fail(sgm__ranks *ranks);
/* Broadcasts `size` bytes of rank 0 to all ranks. */
sgm_status sgm__ranks_send(sgm__ranks *ranks, void *data, size_t size, const char *what);
/* Broadcasts `size` bytes of rank `from` to all ranks. */
sgm_status sgm__ranks_send_from(sgm__ranks *ranks, int32_t from, void *data, size_t size, const char *what);

/* --- ranks_registry.c: accounts of what each rank does, as the registry shows them --- */
/* Makes operator.ranks.N.waiting and the like in the registry. */
sgm_status sgm__ranks_publish(sgm_trainer *trainer, sgm_registry *registry);
/* Clears the accounts of an earlier run. */
void sgm__ranks_forget_accounts(sgm__ranks *ranks);
/* In a meeting: all ranks exchange their accounts. */
sgm_status sgm__ranks_account(sgm__ranks *ranks);

/* --- ranks_shard.c: owners and places of parameters; divided updates --- */
/* Finds the places of the parameters that the operator names, in their order; found ones stay. */
sgm_status sgm__ranks_find_places(sgm__ranks *ranks);
/* Forgets places and owners: names, shapes or sessions may have changed. */
void sgm__ranks_forget(sgm__ranks *ranks);
/* Whether only the owner of a parameter has its optimiser states (operator.sharded). */
bool sgm__ranks_sharded(const sgm__ranks *ranks);
/* The rank that updates a parameter; this rank, where all ranks make the same update. */
int32_t sgm__ranks_owner(const sgm__ranks *ranks, const char *parameter);
/* The rank that alone has a state; -1: all ranks have it. */
int32_t sgm__ranks_slot_owner(const sgm__ranks *ranks, const char *state);
/* Before an update is recorded: gives each parameter that the trainer trains an owner. */
sgm_status sgm__ranks_mark_owned(sgm_trainer *trainer);
/* Whether the sum of a gradient goes to the parameter's owner alone, because no other rank's update reads it.
 */
bool sgm__ranks_reduce(const sgm_trainer *trainer);
/* After an update: where it was divided, all ranks receive the new values from their owners. Ends with
 * sgm__ranks_give_back. */
sgm_status sgm__ranks_bring(sgm_trainer *trainer);

/* --- ranks_merge.c: examples, numbers and gradients of an iteration --- */
/* Has the data give this rank its part of each minibatch only, where the data can do that. */
void sgm__ranks_take_part(const sgm_trainer *trainer);
/* Which examples of a block are this rank's (*first, *count), and how many the whole minibatch has. */
void sgm__ranks_part(const sgm_trainer *trainer, const sgm_block *block, int64_t *first, int64_t *count,
                     int64_t *whole);
/* Operators that merge parameters: sums only the numbers of an iteration. *updates, *accumulated become those
 * of rank 0. */
sgm_status sgm__ranks_share(sgm_trainer *trainer, sgm__metric_sums *sums, int64_t *updates,
                            int64_t *accumulated);
/* Before the workers run: finds the steps of their programs behind which each bucket is complete. */
sgm_status sgm__ranks_cut(sgm_trainer *trainer);
/* While the workers run: starts the sums of complete buckets and lets started ones progress. It should be
 * called again after *rest seconds, or when a worker has completed a bucket. */
sgm_status sgm__ranks_go_on(sgm__ranks *ranks, double *rest);
/* Whether a worker has completed a bucket since the newest sgm__ranks_go_on. With the operator's lock. */
bool sgm__ranks_are_behind(const sgm__ranks *ranks);
/* Sums what this rank's workers computed with what all ranks computed; `whole`: examples of the whole
 * minibatch. The summed gradients are where sgm__ranks_pass finds them, the minibatch's metrics in *sums. */
sgm_status sgm__ranks_merge(sgm_trainer *trainer, int64_t whole, sgm__metric_sums *sums);
/* Feeds the summed gradients into the program of the update. */
sgm_status sgm__ranks_pass(sgm_trainer *trainer, sgm_program *apply);
/* Clears what rounding to bfloat16 has lost. No checkpoint holds it, so all ranks clear it whenever one is
 * made: a run that resumes there computes the same. All ranks call it at the same iteration. */
void sgm__ranks_forget_lost(const sgm_trainer *trainer);

/* --- ranks_shared_memory.c: ranks of one node --- */
#define SGM__VALUE_BLOCK 65 /* this block and the next one of a rank hold values of parameters */
/* Finds out, once, whether all ranks are of one node and can share gradients in memory. */
sgm_status sgm__ranks_look_intra_node(sgm__ranks *ranks);
/* Before the workers run: puts their arenas where the other ranks can read them. */
sgm_status sgm__ranks_prepare_sharing(sgm__ranks *ranks);
/* Waits until the gradients of all ranks are complete, and sums the numbers of the iteration. */
sgm_status sgm__ranks_share_gradients(sgm__ranks *ranks);
/* Feeds the gradients of all ranks, where they lie, into the program of the update. */
sgm_status sgm__ranks_pass_shared(sgm__ranks *ranks, sgm_program *apply);
/* How many workers' gradients the update reads. */
size_t sgm__ranks_count_parts(const sgm__ranks *ranks);
/* Waits until no rank reads this rank's gradients any more. */
sgm_status sgm__ranks_give_back(sgm__ranks *ranks);
/* Whether an update that was recorded as a whole is to be recorded again for this rank's parameters alone. */
bool sgm__ranks_divide(sgm_trainer *trainer);
/* After sgm__ranks_divide: marks parameters of other owners as updated elsewhere. */
sgm_status sgm__ranks_mark_placed(sgm_trainer *trainer);
/* After a divided update: copies the new values from their owners' shared memory. */
sgm_status sgm__ranks_exchange_values(sgm__ranks *ranks);

/* --- ranks_slots.c: optimiser states that only their owners have --- */
/* After owners were found: lists the states that other ranks have. */
sgm_status sgm__ranks_find_slots(const sgm_trainer *trainer);
/* The type of such a state; false: the name is of none. */
bool sgm__ranks_slot_type(const sgm_trainer *trainer, const char *state, sgm_type *type);
/* At rank 0, the value of such a state: in a meeting, or while rank 0 has them all. Free with
 * sgm_tensor_free. */
sgm_tensor *sgm__ranks_get_slot(const sgm_trainer *trainer, const char *state);
/* Whether this rank has a state. */
bool sgm__ranks_have(const sgm_trainer *trainer, const char *state);
/* Fails for a state that not all ranks have: it cannot be set. */
sgm_status sgm__ranks_check_set(const sgm_trainer *trainer, const char *state);
/* All ranks: brings all optimiser states to rank 0, which has them until the next update; nothing, if it has
 * them already. */
sgm_status sgm__ranks_complete(const sgm_trainer *trainer);
/* As sgm__ranks_complete, also if rank 0 has them already. */
sgm_status sgm__ranks_collect(sgm__ranks *ranks);
/* Drops the others' states at rank 0; `knows`: and notes that the others have none, else only they know. */
sgm_status sgm__ranks_know_others(sgm__ranks *ranks, bool knows);
/* The trainer was reset: the others will reset their states, too. */
sgm_status sgm__ranks_begin_anew(const sgm_trainer *trainer);
/* After the trainer has loaded optimiser states of a bundle: keeps those that belong to other ranks, for
 * their owners. taken[i]: whether the trainer took tensor i of the bundle. */
sgm_status sgm__ranks_loaded(const sgm_trainer *trainer, const sgm_bundle *bundle, const bool *taken);
/* Adds the others' states to a checkpoint; fails if rank 0 does not have them. */
struct sgm__parts;
sgm_status sgm__ranks_add_slots(const sgm_trainer *trainer, const struct sgm__parts *wanted,
                                sgm_bundle *bundle);
/* All ranks, in a meeting: `owner` sends one of its states to all; *value NULL: it has no such state. */
sgm_status sgm__ranks_bring_slot(sgm__ranks *ranks, int32_t owner, const char *state, sgm_tensor **value);
/* Sets this rank's optimiser states to zero, before it receives those of a checkpoint. */
sgm_status sgm__ranks_clear_slots(const sgm_trainer *trainer);

/* --- ranks_average.c --- */
/* The trainer's states become the averages of all ranks' states; `all`: optimiser states, too. */
sgm_status sgm__ranks_average(sgm_trainer *trainer, bool all);

/* --- ranks_compare.c: whether ranks are alike --- */
/* Names of the states that all ranks have, in the same order on each, without gradients and updates that are
 * kept for a reader; free *names with sgm__free. */
sgm_status sgm__ranks_states(sgm_trainer *trainer, const char ***names, size_t *count);
/* Whether all ranks have the same values of these states, and the same position. */
sgm_status sgm__ranks_are_alike(sgm__ranks *ranks, bool *alike);
/* Fails, naming the first state that differs between ranks. */
sgm_status sgm__ranks_compare(sgm_trainer *trainer);
/* After an iteration: sgm__ranks_compare in every operator.check_every-th one. */
sgm_status sgm__ranks_compare_when_due(sgm_trainer *trainer);
/* Fails, naming the difference, where a rank was given other data or options than rank 0. */
sgm_status sgm__ranks_compare_given(sgm__ranks *ranks);

/* --- ranks_agree.c: what all ranks do together, between two iterations --- */
/* What rank 0 broadcasts in a meeting. */
typedef struct sgm__rank_message {
    uint64_t bytes; /* that follow: of commands, or of the name of the state that rank 0 asks for */
    uint8_t paused, stopped, interrupted, moved, saved;
    uint8_t asks;  /* rank 0 asks for all optimiser states, or for the named one; the rest comes later */
    int32_t owner; /* the rank that has the named state, as far as rank 0 knows */
} sgm__rank_message;
/* Where rank 0's run stands, for all. */
typedef struct sgm__rank_news {
    bool paused, stopped, interrupted;
} sgm__rank_news;
/* When a hook's command is done. Fails, naming the hook, where all ranks have to stop, pause or reset
 * together and not all hooks command it. */
sgm_status sgm__ranks_decide(sgm_trainer *trainer, sgm__command *command, sgm__command_time *time);
/* The checksum of the hooks' commands and its square, for an iteration's sums: only where all ranks have the
 * same checksum, n times the sum of squares is the square of the sum. */
void sgm__ranks_put_sign(const sgm__ranks *ranks, double signs[2]);
sgm_status sgm__ranks_check_signs(sgm__ranks *ranks, const double signs[2]);
/* Forgets the commands of an earlier run. */
void sgm__ranks_forget_commands(sgm__ranks *ranks);
/* At rank 0: whether a command, a reader of values or an account that is due waits for a meeting. */
bool sgm__ranks_wants_meeting(sgm__ranks *ranks);
/* There is a meeting behind the next iteration. Only where all ranks call it at the same iteration. */
void sgm__ranks_must_meet(sgm_trainer *trainer);
/* Rank 0 is at another position: the others take its states in the next meeting. */
void sgm__ranks_moved(sgm_trainer *trainer);
/* A checkpoint is being made; if that is in a meeting, because of a command, the others are told. */
void sgm__ranks_note_saved(const sgm_trainer *trainer);
/* Before the first iteration: the others receive rank 0's states and position. `saves`: epochs from one
 * checkpoint of this rank to the next, 0: it makes none. */
sgm_status sgm__ranks_begin(sgm_trainer *trainer, int64_t saves);
/* After an epoch: whether rank 0 makes a checkpoint. */
bool sgm__ranks_save_is_due(const sgm_trainer *trainer);
/* All ranks, before rank 0 makes a checkpoint. In a meeting rank 0 calls it alone and asks the others. */
sgm_status sgm__ranks_prepare_save(const sgm_trainer *trainer);
/* Waits until all ranks have come to the end and rank 0 has saved; before that no process should exit. */
sgm_status sgm__ranks_leave(sgm_trainer *trainer);
/* The run has ended: the data give whole minibatches again. */
void sgm__ranks_end(sgm_trainer *trainer);
/* A command was carried out here: {"command": ...}. Any thread that has the trainer's lock. */
struct json_t;
void sgm__ranks_note(sgm_trainer *trainer, const char *who, const struct json_t *request);
/* What a run does between two iterations where there are several ranks, in place of carrying out commands by
 * itself: all ranks do what rank 0 was told. */
sgm_status sgm__ranks_meeting(struct sgm__training_run *run);

#endif
