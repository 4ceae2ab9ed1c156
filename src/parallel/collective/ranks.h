/* Ranks: processes that train one network together, started by a launcher (mpirun, srun). Internal.
 *
 * Each rank has a trainer of its own, with its workers. They do the same iterations: each takes its part of
 * the minibatch, gradients are summed over all, and every rank makes the same update. Rank 0 leads: it alone
 * has the folder, monitors and commands. What it is told between two iterations is told to all in a meeting,
 * which there is when somebody wanted one in the iteration before.
 */
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
    double timeout; /* seconds that another rank may let this one wait */
    int64_t check_every;
    int64_t bucket_bytes;
    bool narrow;   /* gradients travel in bfloat16 */
    bool sharded;  /* each rank updates a part of the parameters */
    bool messages; /* gradients travel, also between ranks that see each other's memory */
} sgm__rank_options;

/* A piece of the flat gradients that is summed by itself. */
typedef struct sgm__rank_bucket {
    size_t first, bytes;
    int32_t owner; /* who gets the sum; -1: all */
    int32_t ticket;
    double began;
    bool done;
} sgm__rank_bucket;

/* Where a parameter lies among all that are trained, and its gradient among all gradients. */
typedef struct sgm__rank_place {
    const char *name; /* the operator's */
    sgm_dtype dtype;
    size_t first, bytes;
    int32_t owner; /* the rank that updates it, where updates are divided */
} sgm__rank_place;

/* Who updates a parameter, and has the optimiser state of it. */
typedef struct sgm__rank_owner {
    char *parameter;
    int32_t rank;
} sgm__rank_owner;

/* Optimiser state of a parameter that another rank updates. */
typedef struct sgm__rank_slot {
    char *state;
    sgm_type type;
} sgm__rank_slot;

/* What a rank has done in this run; numbers of 8 bytes. */
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
    bool broken;   /* the others cannot be reached any more; */
    char why[512]; /* the first failure that said so */

    /* sharing gradients in memory; ranks_shared_memory.c */
    sgm__intra_node *node; /* NULL: gradients travel */
    bool looked;           /* for ranks of this node */
    uint64_t *notes;       /* of this rank */
    size_t note_words;
    struct sgm__shared_part *parts; /* of the newest iteration, of all ranks */
    size_t part_count, part_capacity;

    /* what lies where, and whose it is; ranks_shard.c */
    sgm__rank_place *places;
    size_t place_count, place_capacity, place_bytes;
    sgm__rank_owner *owners;
    size_t owner_count, owner_capacity;

    /* dividing the update; ranks_shared_memory.c */
    bool divides, placed; /* what is trained lies where others see it, */
    int32_t value_block;  /* in this block */
    unsigned char *value_memory;
    size_t value_bytes;

    /* merging; ranks_merge.c */
    sgm_dtype dtype;
    unsigned char *flat; /* gradients, and later the new values, at their places */
    size_t flat_capacity;
    uint16_t *narrowed; /* what travels of the flat ones, if that is bfloat16, */
    float *lost;        /* and what is missing in it: it goes with the next ones (Seide et al., 2014) */
    sgm__rank_bucket *buckets;
    size_t bucket_count, bucket_capacity;
    bool reduces;   /* each sum goes to the parameter's owner alone */
    size_t next;    /* bucket to start */
    double *shared; /* numbers that are summed in each iteration; ranks_merge.c */
    size_t shared_count, shared_capacity;

    /* who does not answer; ranks_wait.c, guarded by the lock */
    double *silent_since;      /* of each rank, sgm__now's; 0: it answers */
    double asked;              /* when this rank asked all, */
    double spoke, waited_then; /* and when it told of it, after which wait */

    /* agreeing; ranks_agree.c */
    pthread_mutex_t lock;
    sgm__text lines;        /* commands that were done here, for the others; guarded by the lock */
    bool meets, wants_stop; /* a meeting is due; this rank wants to stop */
    bool someone_stops;
    bool moved;    /* rank 0 stands somewhere else: all get its states */
    bool meeting;  /* the others listen to what rank 0 has for them, */
    bool saved;    /* and have to be told of a checkpoint that it has made */
    int64_t saves; /* epochs from one checkpoint of rank 0 to the next; 0: it makes none */

    /* the optimiser state, divided; ranks_slots.c */
    sgm_bundle *others;    /* rank 0: the optimiser state of the others; NULL: only they know */
    bool anew;             /* that is what they are to begin with */
    sgm__rank_slot *slots; /* what others have; `shown`: so many are in the registry */
    size_t slot_count, slot_capacity, shown;

    /* what hooks have asked for; ranks_agree.c */
    char newest_command[256]; /* the newest, in words */
    uint32_t sign;            /* of all of them */
    sgm__command_queue kept;  /* for the next meeting, of rank 0 */

    /* what it took, in this run */
    double began, waited, computed;
    uint64_t bytes;
    int64_t examples;
    sgm__rank_account
        *accounts;             /* of all ranks, as they were in the newest meeting, and the one before; ... */
    sgm__rank_account *before; /* ... guarded by the lock; the next ones come beside them */
    sgm__rank_account *coming;
    double told; /* when that was */
    struct sgm__rank_row *rows;
} sgm__ranks;

/* --- ranks.c --- */
/* Joins the others; alone where no launcher has started this process. */
sgm__ranks *sgm__ranks_open(const sgm__rank_options *options);
void sgm__ranks_close(sgm__ranks *ranks);
/* The trainer's; NULL: it has none. */
static inline sgm__ranks *sgm__trainer_ranks(const sgm_trainer *trainer)
{
    return sgm__sharing_of(trainer)->operator!= NULL ? sgm__sharing_of(trainer)->operator->ranks : NULL;
}
/* Whether this is one of several processes of which another leads. */
bool sgm__ranks_follow(const sgm_trainer *trainer);
/* ", 2 ranks of 1 worker that share memory"; empty for a trainer without. */
void sgm__ranks_describe(const sgm_trainer *trainer, char *text, size_t size);

/* --- ranks_wait.c --- */
/* Starts a work; -1 in *ticket: it is done already. */
sgm_status sgm__ranks_start(sgm__ranks *ranks, const sgm_communicator_work *work, int32_t *ticket);
/* Waits for a work; fails, naming who did not come, after the timeout. `what`: "the gradients". */
sgm_status sgm__ranks_wait(sgm__ranks *ranks, int32_t ticket, const char *what);
/* The same with another time than operator.timeout. */
sgm_status sgm__ranks_wait_for(sgm__ranks *ranks, int32_t ticket, const char *what, double seconds);
/* Waits for what other ranks write to memory, as long. */
sgm_status sgm__ranks_wait_until(sgm__ranks *ranks, bool (*has_come)(const void *user), const void *user,
                                 const char *what);
/* Starts a work and waits for it. */
sgm_status sgm__ranks_do(sgm__ranks *ranks, const sgm_communicator_work *work, const char *what);
/* The newest failure may be another rank's doing: those who do not answer are named behind its message.
 * Returns its status. */
sgm_status sgm__ranks_name_silent(sgm__ranks *ranks, const char *what);
/* "rank 1 (beta, process 4711) has not answered since 12:34:56", as far as this rank has had to wait for it;
 * sgm__free. NULL: all answer, or there are none. Any thread. */
char *sgm__ranks_silent(const sgm_trainer *trainer);
/* This rank's run has failed: the others must not wait for it for long. */
void sgm__ranks_fail(sgm__ranks *ranks);
/* What rank 0 has for all. */
sgm_status sgm__ranks_send(sgm__ranks *ranks, void *data, size_t size, const char *what);
/* What rank `from` has. */
sgm_status sgm__ranks_send_from(sgm__ranks *ranks, int32_t from, void *data, size_t size, const char *what);

/* --- ranks_registry.c --- */
/* operator.ranks.N.waiting ... */
sgm_status sgm__ranks_publish(sgm_trainer *trainer, sgm_registry *registry);
/* Of a run before. */
void sgm__ranks_forget_accounts(sgm__ranks *ranks);
/* In a meeting: everybody's account for everybody. */
sgm_status sgm__ranks_account(sgm__ranks *ranks);

/* --- ranks_shard.c --- */
/* Of the parameters that the operator names, in their order; what is known already stays. */
sgm_status sgm__ranks_find_places(sgm__ranks *ranks);
/* Owners of places whose names and bytes are given. */
void sgm__ranks_forget(sgm__ranks *ranks); /* names, shapes or sessions may be others */
/* Whether each rank alone has the optimiser state of its parameters. Then: */
bool sgm__ranks_sharded(const sgm__ranks *ranks);
/* Who updates a parameter; this rank, where all make the same update. */
int32_t sgm__ranks_owner(const sgm__ranks *ranks, const char *parameter);
/* Who alone has a state; -1: all have it. */
int32_t sgm__ranks_slot_owner(const sgm__ranks *ranks, const char *state);

/* --- ranks_merge.c --- */
/* Before the workers run: after which steps their buckets are complete. */
sgm_status sgm__ranks_cut(sgm_trainer *trainer);
/* While they run: starts what is ready, and lets it go on. It should be called again after *rest seconds, or
 * when a worker has done a piece. */
sgm_status sgm__ranks_go_on(sgm__ranks *ranks, double *rest);
/* A worker has done a piece since the newest call of that; with the operator's lock. */
bool sgm__ranks_are_behind(const sgm__ranks *ranks);
/* What this rank's workers have computed, summed with that of all ranks; `whole`: examples of all. Leaves the
 * sums where `apply` reads them, and the minibatch's metrics in *sums. */
sgm_status sgm__ranks_merge(sgm_trainer *trainer, int64_t whole, sgm__metric_sums *sums);
/* The sums become the inputs of the update. */
sgm_status sgm__ranks_pass(sgm_trainer *trainer, sgm_program *apply);
/* What rounding has lost is in no checkpoint: wherever one is made, all ranks go on without it, as those do
 * that resume there. For each rank at the same iteration. */
void sgm__ranks_forget_lost(const sgm_trainer *trainer);

/* --- ranks_merge.c --- */
/* The data give this rank's part of the minibatches only, as far as they can. */
void sgm__ranks_take_part(const sgm_trainer *trainer);
/* Which examples of a block are this rank's, of how many in the whole minibatch. */
void sgm__ranks_part(const sgm_trainer *trainer, const sgm_block *block, int64_t *first, int64_t *count,
                     int64_t *whole);
/* For parameters: only what all learn of the iteration; *updates: of rank 0. */
sgm_status sgm__ranks_share(sgm_trainer *trainer, sgm__metric_sums *sums, int64_t *updates,
                            int64_t *accumulated);

/* --- ranks_shared_memory.c --- */
/* Whether all ranks are of one node, and share their gradients in memory; once. */
sgm_status sgm__ranks_look_intra_node(sgm__ranks *ranks);
/* Before the workers run: others can see their arenas. */
sgm_status sgm__ranks_prepare_sharing(sgm__ranks *ranks);
/* Waits for the gradients of all ranks, and sums what all learn of the iteration. */
sgm_status sgm__ranks_share_gradients(sgm__ranks *ranks);
sgm_status sgm__ranks_pass_shared(sgm__ranks *ranks, sgm_program *apply);
/* Of the gradients that the update takes. */
size_t sgm__ranks_count_parts(const sgm__ranks *ranks);
/* Nobody reads what this rank shares any more. */
sgm_status sgm__ranks_give_back(sgm__ranks *ranks);

/* --- ranks_shared_memory.c --- */
#define SGM__VALUE_BLOCK 65 /* and the one after it: blocks of a rank for values */
/* Whether an update that was recorded as a whole is to be recorded for this rank's parameters alone. */
bool sgm__ranks_divide(sgm_trainer *trainer);
/* Then: others' are marked as what is updated elsewhere. */
sgm_status sgm__ranks_mark_placed(sgm_trainer *trainer);
/* After it: the new values come from their owners. */
sgm_status sgm__ranks_exchange_values(sgm__ranks *ranks);

/* --- ranks_shard.c: updates and the optimiser state divided among the ranks --- */
/* Before an update is recorded: what the trainer trains finds its owners. */
sgm_status sgm__ranks_mark_owned(sgm_trainer *trainer);
/* Whether sums of gradients go to their owners alone, as no update looks at others'. */
bool sgm__ranks_reduce(const sgm_trainer *trainer);
/* After an update: the owners' new parameters for all, where it was divided; and sgm__ranks_give_back. */
sgm_status sgm__ranks_bring(sgm_trainer *trainer);

/* --- ranks_slots.c: the optimiser state in checkpoints, where it is divided --- */
/* All ranks: rank 0 has all of it from here to the next update. */
sgm_status sgm__ranks_complete(const sgm_trainer *trainer);
/* The same, whatever it knows already. */
sgm_status sgm__ranks_collect(sgm__ranks *ranks);
/* From here on rank 0 knows nothing of the others' (it is free), or that they have none. */
sgm_status sgm__ranks_know_others(sgm__ranks *ranks, bool knows);
/* The trainer was reset: so will be the others. */
sgm_status sgm__ranks_begin_anew(const sgm_trainer *trainer);
/* It has loaded the optimiser state: what is others' is kept for them. */
sgm_status sgm__ranks_loaded(const sgm_trainer *trainer, const sgm_bundle *bundle, const bool *taken);
/* Whether a state is for this rank. */
bool sgm__ranks_have(const sgm_trainer *trainer, const char *state);
/* What the others have, into a checkpoint; fails where that cannot be known. */
struct sgm__parts;
sgm_status sgm__ranks_add_slots(const sgm_trainer *trainer, const struct sgm__parts *wanted,
                                sgm_bundle *bundle);
/* All ranks, in a meeting: its owner gives it to the others; NULL: it has none. */
sgm_status sgm__ranks_bring_slot(sgm__ranks *ranks, int32_t owner, const char *state, sgm_tensor **value);
/* Of this rank's part; before it gets that of a checkpoint. */
sgm_status sgm__ranks_clear_slots(const sgm_trainer *trainer);
/* Fails for a state that not all have. */
sgm_status sgm__ranks_check_set(const sgm_trainer *trainer, const char *state);

/* --- ranks_slots.c --- */
/* After the updates' owners were found: which slots others have. */
sgm_status sgm__ranks_find_slots(const sgm_trainer *trainer);
/* False: it is none of them. */
bool sgm__ranks_slot_type(const sgm_trainer *trainer, const char *state, sgm_type *type);
/* One of another rank, at rank 0, in a meeting or where it knows them all; sgm_tensor_free. */
sgm_tensor *sgm__ranks_get_slot(const sgm_trainer *trainer, const char *state);

/* --- ranks_average.c --- */
/* The trainer's states become the averages of all ranks'; `all`: also the optimiser states. */
sgm_status sgm__ranks_average(sgm_trainer *trainer, bool all);

/* --- ranks_compare.c --- */
/* Names of the states that all ranks have, in their order, without what is kept for who looks; sgm__free. */
sgm_status sgm__ranks_states(sgm_trainer *trainer, const char ***names, size_t *count);
/* Whether all ranks have the same of them, and are at the same place. */
sgm_status sgm__ranks_are_alike(sgm__ranks *ranks, bool *alike);
/* The same; fails with the first that differs. */
sgm_status sgm__ranks_compare(sgm_trainer *trainer);
/* The same after an iteration, when it is time. */
sgm_status sgm__ranks_compare_now_and_then(sgm_trainer *trainer);

/* --- ranks_compare.c --- */
/* Fails, naming what, where a rank was given other data or options than rank 0. */
sgm_status sgm__ranks_compare_given(sgm__ranks *ranks);

/* --- ranks_agree.c --- */
/* Fails, naming the hook, where all ranks want to stop, pause or be reset together, and not all ask for it.
 */
sgm_status sgm__ranks_decide(sgm_trainer *trainer, sgm__command *command, sgm__command_time *time);
/* For an iteration's sums: two numbers that tell whether hooks have asked for the same on all ranks. */
void sgm__ranks_put_sign(const sgm__ranks *ranks, double signs[2]);
sgm_status sgm__ranks_check_signs(sgm__ranks *ranks, const double signs[2]);
void sgm__ranks_forget_commands(sgm__ranks *ranks); /* of the run before */
/* Whether somebody waits for something to be told here. */
bool sgm__ranks_wants_meeting(sgm__ranks *ranks);

/* --- ranks_slots.c --- */
/* What rank 0 says in a meeting. */
typedef struct sgm__rank_message {
    uint64_t bytes; /* of commands, which follow, or of the name of what is asked for */
    uint8_t paused, stopped, interrupted, moved, saved;
    uint8_t asks;  /* for the optimiser state, or what of it is named; all else comes behind that */
    int32_t owner; /* who has that, as rank 0 knows it */
} sgm__rank_message;

/* --- ranks_agree.c --- */
/* For all, from the next one on; only from what all ranks do alike. */
void sgm__ranks_must_meet(sgm_trainer *trainer);
void sgm__ranks_moved(sgm_trainer *trainer); /* rank 0 stands somewhere else now */
/* A checkpoint is being made; in a meeting (a command has asked for it) the others hear of it. */
void sgm__ranks_note_saved(const sgm_trainer *trainer);
/* Before the first iteration: the followers get what rank 0 has. `saves`: epochs from one checkpoint of this
 * rank to the next, 0: it makes none. */
sgm_status sgm__ranks_begin(sgm_trainer *trainer, int64_t saves);
/* After an epoch: whether rank 0 makes a checkpoint. */
bool sgm__ranks_save_is_due(const sgm_trainer *trainer);
/* All ranks, before rank 0 makes one. In a meeting it needs no others: it asks them. */
sgm_status sgm__ranks_prepare_save(const sgm_trainer *trainer);
/* All have come to the end, and what rank 0 keeps is kept: before, no process should end. */
sgm_status sgm__ranks_leave(sgm_trainer *trainer);
void sgm__ranks_end(sgm_trainer *trainer); /* the run: the data are for everybody again */
/* What rank 0 tells all. */
typedef struct sgm__rank_news {
    bool paused, stopped, interrupted;
} sgm__rank_news;
/* A command was done here: {"command": ...}. Any thread that has the trainer's lock. */
struct json_t;
void sgm__ranks_note(sgm_trainer *trainer, const char *who, const struct json_t *request);

/* --- ranks_agree.c --- */
/* What the run does between two iterations, as all ranks agree. */
sgm_status sgm__ranks_meeting(struct sgm__training_run *run);

#endif
