/* What a trainer consists of, in groups, and what the rooms that train ask of each other. Internal.
 *
 * The struct itself is in trainer_struct.h. Monitors and ready-made hooks see a trainer by view.h alone. */
#ifndef SGM_TRAINER_TRAINER_H
#define SGM_TRAINER_TRAINER_H

#include "base/turn_lock.h"
#include "hooks/hooks.h"
#include "metrics/metrics.h"
#include "optim/optimiser.h"
#include "trainer/strategy.h"
#include "trainer/view.h"
#include <sigma/persistence.h>
#include <sigma/task.h>
#include <stdatomic.h>

typedef struct sgm__trainer_settings {
    uint64_t seed;
    sgm_handler *handler; /* outlives the trainer */
    sgm_dtype precision;  /* float32, float64, or bfloat16 with float32 parameters */
} sgm__trainer_settings;

typedef struct sgm__named_iterator {
    char *name;
    sgm_iterator *iterator;
} sgm__named_iterator;

typedef struct sgm__initialiser_rule {
    char *pattern;
    sgm_initialiser *initialiser;
} sgm__initialiser_rule;

typedef struct sgm__observer {
    sgm_training_function function;
    void *user;
    int64_t next; /* iterations before this one are not told */
} sgm__observer;

/* What a program of a trainer does with a minibatch. */
typedef enum sgm__step_purpose {
    SGM__ACCUMULATE,  /* forward, backward, gradients are kept for later */
    SGM__UPDATE,      /* forward, backward, update */
    SGM__VALIDATE,    /* forward and costs */
    SGM__PREDICT,     /* forward */
    SGM__GRADIENTS,   /* of a worker with a whole minibatch: forward, backward, gradients are outputs */
    SGM__PART,        /* the same of a part of a minibatch, which several workers share */
    SGM__APPLY,       /* gradients of workers are inputs: update */
    SGM__APPLY_LATER, /* gradients of workers are inputs, kept for later */
    SGM__AVERAGE      /* moving averages of the parameters, after updates that leave them out */
} sgm__step_purpose;

/* The newest recording of a dynamic network, which the trainer's graph still has. */
typedef struct sgm__rerecording {
    sgm__step_purpose purpose;
    sgm_program *program; /* NULL: there is none */
} sgm__rerecording;

typedef struct sgm__known_program {
    sgm__step_purpose purpose;
    int64_t batch; /* examples; of what applies gradients: how many workers they come from */
    sgm_program *program;
} sgm__known_program;

/* Sums over the examples of an epoch so far. */
typedef struct sgm__metric_sums {
    double loss, correct;
    int64_t examples;
    bool has_accuracy;
} sgm__metric_sums;

/* Where training stands: all of it goes into a checkpoint. */
typedef struct sgm__training_position {
    int64_t epoch, batch, iteration, updates;
    int64_t accumulated; /* minibatches since the newest update */
    sgm__metric_sums sums;
    double best_loss; /* of an epoch, for a plateau schedule */
    int64_t bad_epochs, reductions;
} sgm__training_position;

/* What hooks had gathered in a pass over data: NAME.outputs and NAME.targets of the registry. */
typedef struct sgm__passed {
    char *data, *output, *field; /* output, field NULL: the first */
    int64_t iteration;           /* when it was, if `current` */
    bool current;                /* the registry has what these parameters give */
    bool wanted;                 /* since the newest validation, which the next one gathers for */
    const sgm_hook *owner;       /* who wanted it; only the address */
} sgm__passed;

/* What a hook left in the registry. */
typedef struct sgm__left {
    const sgm_hook *owner; /* only the address */
    char *data, *name;     /* DATA.NAME */
} sgm__left;

/* Where the run's thread is, for those who cannot wait until it lets them look. */
typedef struct sgm__whereabouts {
    _Atomic(const char *) doing; /* a string that stays; NULL: nothing */
    atomic_llong epoch, iteration;
} sgm__whereabouts;

/* What the newest checkpoint that was loaded says of the end of its run. */
typedef struct sgm__ending {
    char *by;                   /* a hook, and why; NULL: nothing ended it for good */
    int64_t epochs, iterations; /* that were wanted */
} sgm__ending;

/* Where checkpoints are named. */
typedef struct sgm__checkpoint_place sgm__checkpoint_place;
struct sgm__checkpoint_place {
    char *folder;                                  /* NULL: none yet */
    bool own;                                      /* not of a run: it goes with the trainer */
    void (*release)(sgm__checkpoint_place *place); /* NULL: nothing to do */
};

/* What other threads ask of a running trainer. */
typedef struct sgm__control {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sgm_trainer_state state;
    bool pause, stop;
    int64_t steps;     /* iterations until the next pause; -1: none */
    atomic_bool asked; /* one of these three was set in this run: else nobody needs the lock to look */
    char *reason;      /* of the newest stop */
    char *paused_by;   /* a hook, and what it was made from; NULL: somebody else, or nobody */
    sgm__command_queue commands;
    sgm__checkpoint_place place; /* guarded by the lock */
    sgm__whereabouts whereabouts;
    sgm__turn_lock turn; /* held during a step: see trainer_lock.h */
} sgm__control;

/* Outputs of programs beside the network's, under names that no layer can have. */
#define SGM__LOSS "trainer.loss"
#define SGM__CORRECT "trainer.correct"
#define SGM__LENGTHS "trainer.lengths" /* how many steps of the first output of each example count */
#define SGM__COST_PREFIX "trainer.cost."
/* Of a part of a minibatch, what it adds to these of the whole: */
#define SGM__LOSS_PART "trainer.part_of.loss"
#define SGM__CORRECT_PART "trainer.part_of.correct" /* without it: by the share of the examples */
#define SGM__COST_PART_PREFIX "trainer.part_of.cost."
typedef struct sgm__cost {
    char *output, *part;
    double newest; /* of the newest minibatch */
} sgm__cost;

/* What it trains and measures on. */
typedef struct sgm__trainer_data {
    sgm_iterator *training;
    sgm__named_iterator *validation;
    size_t validation_count, validation_capacity;
    sgm_named_metrics *metrics; /* of the newest validation, one for each iterator */
} sgm__trainer_data;

/* What is done to parameters whose names match patterns. */
typedef struct sgm__trainer_patterns {
    sgm__initialiser_rule *rules;
    size_t rule_count, rule_capacity;
    sgm__modifier_rule *modifiers;
    size_t modifier_count, modifier_capacity;
    char **frozen;
    size_t frozen_count, frozen_capacity;
} sgm__trainer_patterns;

/* Who is told how it goes. */
typedef struct sgm__trainer_observers {
    sgm__observer *items;
    size_t count, capacity;
    int64_t next_told; /* the smallest `next` of observers */
} sgm__trainer_observers;

/* What hooks and passes over data left in the registry, and for the epoch's line. */
typedef struct sgm__trainer_results {
    sgm__passed *passed;
    size_t passed_count, passed_capacity;
    sgm_score *scores;  /* since the newest epoch's line */
    char **score_texts; /* what their texts are in */
    size_t score_count, score_capacity, score_text_capacity;
    sgm__left *left;
    size_t left_count, left_capacity;
    pthread_mutex_t left_lock;
} sgm__trainer_results;

/* What learns: the network, the optimiser, and what was recorded of them and compiled. A replica has one of
 * its own, with the network and the optimiser of its owner. */
typedef struct sgm__learner {
    sgm_network *network;
    sgm_optimiser *optimiser;
    sgm_session *session;
    sgm_graph *graph;                                    /* recorded into again and again */
    sgm_recording recording;                             /* the newest */
    char first_targets[sizeof((sgm_field *)NULL)->name]; /* field of the first cost */
    sgm__trained_parameter *trained;
    size_t trained_count, trained_capacity;
    sgm__known_program *programs;
    size_t program_count, program_capacity;
    sgm__rerecording rerecording;
    bool *stale; /* states, in the session's order, that have to be filled anew when recorded */
    size_t stale_count;
    sgm__cost **costs; /* one for each layer that is a cost */
    size_t cost_count, cost_capacity;
    sgm_option **rows; /* of layers' arguments */
    size_t row_count, row_capacity;
    size_t published; /* states of the session that the registry shows */
    bool averages_in; /* parameters and their averages have changed places */
} sgm__learner;

/* With whom a trainer shares its work. */
typedef struct sgm__sharing {
    _Atomic(const sgm__strategy *) strategy; /* NULL: the trainer itself does the work; any thread may look */
    sgm_operator *parallel;                  /* what the strategy shares the work out with */
    sgm_trainer *owner; /* of a replica: whom it computes for, with its network and optimiser; else itself */
    int32_t worker;     /* of a replica: its number */
} sgm__sharing;

/* How an environment has a trainer. */
typedef struct sgm__membership {
    bool unscheduled; /* does not run with its environment */
    bool branched;    /* off another one while that ran: its run was its only one, its failure its own */
    bool held;        /* by a model, which needs it as long as there is the environment */
} sgm__membership;

#define SGM__KEPT_RATES 256
/* What a run wants, and how it goes. */
typedef struct sgm__trainer_progress {
    sgm__ending ending;
    int64_t next_accumulate; /* after the update that is being accumulated for; 0: as before */
    int64_t epochs;          /* wanted by the run, 0: no limit */
    int64_t maximum;         /* iterations, the same */
    int64_t batches;         /* of an epoch, 0: unknown */
    sgm__metric_sums ended;  /* of the epoch before, until this one has a minibatch */
    char *ended_by;          /* the hook, and why, that ends this run; NULL: none */
    double newest_loss;
    int64_t given;                      /* examples of the newest minibatch */
    double waited;                      /* seconds in all that the data took for minibatches to train on */
    double rates[SGM__KEPT_RATES];      /* learning rates of the newest iterations, by number */
    double running_time, running_since; /* seconds before; the moment it began to run, 0: it does not */
} sgm__trainer_progress;

/* Who changed what. */
typedef struct sgm__trainer_journal {
    const char *folder;                 /* of the run, for changes.jsonl; NULL: none */
    const char *changed_by;             /* who sets values just now */
    struct sgm__change_record *changes; /* in memory; NULL for a worker's replica */
    struct sgm__remade *remade;         /* changes that a resume makes again; changes.c */
    size_t remade_count, remade_capacity;
    struct sgm__changed_setting *changed; /* values that are not what the program set; settings.c */
    size_t changed_count, changed_capacity;
    bool restoring; /* changes that a checkpoint brings are no new ones */
    int64_t branch; /* of the run's history: each reset or restore begins another one */
} sgm__trainer_journal;

/* Gradients and updates that are kept because somebody reads them (trainer_states.c). */
typedef struct sgm__trainer_kept {
    double gradients_until, updates_until; /* when they are kept no more; 0: they are not */
    double read_for;                       /* seconds for which who reads just now wants them; 0: for good */
    int64_t from;                          /* updates when keeping them began */
} sgm__trainer_kept;

/* --- trainer_view.c: the groups of a trainer ---
 * Who is not of src/trainer, src/train or src/loop takes what it works with by these, and sees no more of
 * the struct (trainer_struct.h). They never fail. A group is the trainer's: through a const trainer it is
 * only looked at. */
sgm__learner *sgm__learner_of(const sgm_trainer *trainer);
sgm__trainer_settings *sgm__settings_of(const sgm_trainer *trainer);
sgm__training_position *sgm__position_of(const sgm_trainer *trainer);
sgm__trainer_progress *sgm__progress_of(const sgm_trainer *trainer);
sgm__trainer_data *sgm__data_of(const sgm_trainer *trainer);
sgm__trainer_patterns *sgm__patterns_of(const sgm_trainer *trainer);
sgm__trainer_results *sgm__results_of(const sgm_trainer *trainer);
sgm__trainer_journal *sgm__journal_of(const sgm_trainer *trainer);
sgm__trainer_kept *sgm__kept_of(const sgm_trainer *trainer);
sgm__control *sgm__control_of(const sgm_trainer *trainer);
sgm__sharing *sgm__sharing_of(const sgm_trainer *trainer);
sgm__membership *sgm__membership_of(const sgm_trainer *trainer);
sgm__hooks *sgm__hooks_of(const sgm_trainer *trainer);
sgm_registry *sgm__registry_of(const sgm_trainer *trainer);

/* Keeps the thread's newest error as the trainer's, with its name in front; returns `status`. */
sgm_status sgm__trainer_keep(sgm_trainer *trainer, sgm_status status);
/* The trainer's first failure, and its message, which is the trainer's; "" and SGM_OK: none. */
const char *sgm__trainer_failure(const sgm_trainer *trainer, sgm_status *status);
/* Of a constructor that gave NULL: its error; `what`: what was to be made. */
sgm_status sgm__trainer_missing(const char *what);
/* Around a change of the trainer's parts: a trainer that has not failed, with its lock; `status` is kept. */
sgm_status sgm__trainer_open(sgm_trainer *trainer);
sgm_status sgm__trainer_close(sgm_trainer *trainer, sgm_status status);

/* program_cache.c. NULL: there is none. */
sgm__known_program *sgm__trainer_find_program(const sgm_trainer *trainer, sgm__step_purpose purpose,
                                              int64_t batch);
/* `program` NULL: it was recorded, so that its states are defined, but not compiled. */
sgm_status sgm__trainer_remember_program(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch,
                                         sgm_program *program);
/* From here on programs are recorded anew: of the trainer and its replicas; of this one alone. */
void sgm__trainer_forget_programs(sgm_trainer *trainer);
void sgm__trainer_drop_programs(sgm_trainer *trainer);
bool sgm__trainer_is_frozen(const sgm_trainer *trainer, const char *parameter);

/* The states were set from outside: all workers go on from them. */
void sgm__trainer_restart_workers(sgm_trainer *trainer);
sgm_status sgm__trainer_state_was_set(sgm_trainer *trainer, const char *name); /* in the trainer's session */
/* Whether a state is in this process; fails where a state that is to be set is not in all. */
bool sgm__trainer_has_state(const sgm_trainer *trainer, const char *name);
sgm_status sgm__trainer_check_set(const sgm_trainer *trainer, const char *name);

/* trainer_control.c. Between two iterations: whether to pause (counts one step), waiting for the pause to
 * end, whether to stop. */
void sgm__control_init(sgm__control *control);
void sgm__control_destroy(sgm__control *control);
/* From here on the trainer counts as running, and commands reach it; `paused`: a pause was the first.
 * SGM_ERROR_STATE if it runs already. */
sgm_status sgm__trainer_reserve(sgm_trainer *trainer, bool paused);
/* The trainer is idle from here on; commands that nobody waits for are dropped, */
void sgm__control_end(sgm__control *control);
bool sgm__control_try_end(sgm__control *control); /* or have to be done before: false */
bool sgm__control_wants_pause(sgm__control *control);
/* As sgm_trainer_pause, for a hook: "rule (if ... then pause)". */
sgm_status sgm__trainer_pause_by(sgm_trainer *trainer, const char *who);
/* The same before the first iteration: no step has been done. */
bool sgm__control_is_held(sgm__control *control);
/* A pause or a stop is wanted, or steps are counted. */
bool sgm__control_is_due(sgm__control *control);
/* Until the pause ends (true), there is a command or so many seconds are over (false: call it again).
 * `interrupted` NULL: nothing interrupts. */
bool sgm__control_wait(sgm__control *control, bool (*interrupted)(void), double seconds);
bool sgm__control_stops(sgm__control *control, char *reason,
                        size_t size); /* `reason`: filled in if it does */

/* trainer_states.c: puts a value into a state, and into those of workers that have their own. The moving
 * average of a parameter begins anew at it: of what was there before, evaluation would tell nothing. */
sgm_status sgm__trainer_put_state(sgm_trainer *trainer, const char *name, const sgm_tensor *value);
/* Puts a value into the moving average of a parameter, by the parameter's identifier, if there is one. */
sgm_status sgm__trainer_put_average(sgm_trainer *trainer, const char *identifier, const sgm_tensor *value);
void sgm__trainer_parameters_changed(sgm_trainer *trainer); /* otherwise than by an iteration */

/* trainer_accuracy.c: outputs of the share of correct predictions, if the network gives such. */
void sgm__trainer_record_correct(sgm_trainer *trainer, bool part);

/* --- hooks_check.c --- */
/* Whether hooks can do what they are told, before the first event; those that a checkpoint brought back are
 * not asked. */
sgm_status sgm__hooks_check(sgm__hooks *hooks, int64_t epoch, int64_t iteration);
/* The same of one that is to be attached in the middle of a run, and whether there is what its criteria read.
 */
sgm_status sgm__hooks_check_new(sgm__hooks *hooks, sgm_trainer *trainer, sgm_hook *hook);

/* trainer_patterns.c: whether the network, as it was recorded last, has a parameter like that. */
bool sgm__trainer_matches_any(const sgm_trainer *trainer, const char *pattern);
/* Whether each pattern matches a parameter. */
sgm_status sgm__trainer_check_patterns(const sgm_trainer *trainer);
/* Whether training can go on with these frozen. */
sgm_status sgm__trainer_check_frozen(const sgm_trainer *trainer, char *const *patterns, size_t count);

/* Whether a state is a parameter that is trained; whether layers change it themselves. */
bool sgm__trainer_trains(const sgm_trainer *trainer, const char *state);
bool sgm__trainer_is_layer_state(const sgm_trainer *trainer, const char *state);

sgm_metrics sgm__metrics_of(const sgm__metric_sums *sums);
double sgm__trainer_learning_rate(const sgm_trainer *trainer, int64_t batches);

#endif
