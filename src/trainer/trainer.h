/* What a trainer consists of, in groups, and what the folders that train ask of each other. Internal.
 *
 * The struct itself is in trainer_struct.h. Monitors and ready-made hooks see a trainer by view.h alone. */
#ifndef SGM_TRAINER_TRAINER_H
#define SGM_TRAINER_TRAINER_H

#include "base/turn_lock.h"
#include "handlers/program.h"
#include "hooks/hooks.h"
#include "metrics/metrics.h"
#include "optim/optimiser.h"
#include "trainer/strategy.h"
#include "trainer/view.h"
#include <sigma/base.h>
#include <sigma/tensor.h>
#include <stdatomic.h>

typedef struct sgm__trainer_settings {
    uint64_t seed;
    sgm_handler *handler;      /* outlives the trainer */
    sgm_dtype precision;       /* float32, float64, or bfloat16 with float32 parameters */
    sgm__memory_budget memory; /* of a training step; none: what it takes */
    uint32_t inference;        /* how predictions are made: several sgm__inference (handlers/session.h) */
    double command_seconds;    /* how long a command of a rule may run; 0: rules run none */
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
    int64_t next; /* it is not called for iterations before this one */
} sgm__observer;

/* What a program of a trainer does with a minibatch. */
typedef enum sgm__step_purpose {
    SGM__ACCUMULATE,  /* forward, backward; the gradients are added up for a later update */
    SGM__UPDATE,      /* forward, backward, update */
    SGM__VALIDATE,    /* forward and costs */
    SGM__PREDICT,     /* forward */
    SGM__GRADIENTS,   /* a worker with a whole minibatch: forward, backward; gradients are outputs */
    SGM__PART,        /* a worker with a part of a minibatch: the same */
    SGM__APPLY,       /* gradients of workers are inputs: update */
    SGM__APPLY_LATER, /* gradients of workers are inputs, added up for a later update */
    SGM__AVERAGE      /* moving averages of the parameters, after updates that leave them out */
} sgm__step_purpose;

/* The newest recording of a dynamic network, which is still in the trainer's graph. */
typedef struct sgm__rerecording {
    sgm__step_purpose purpose;
    sgm_program *program; /* NULL: there is none */
} sgm__rerecording;

typedef struct sgm__known_program {
    sgm__step_purpose purpose;
    int64_t batch; /* examples of a minibatch; for SGM__APPLY: the number of workers */
    sgm_program *program;
    int64_t steps; /* of sequences, if fewer than the network declares; else 0 */
} sgm__known_program;

/* Sums over the examples of an epoch so far. */
typedef struct sgm__metric_sums {
    double loss, correct;
    int64_t examples;
    bool has_accuracy;
} sgm__metric_sums;

/* The position of a training; a checkpoint has all of it. */
typedef struct sgm__training_position {
    int64_t epoch, batch, iteration, updates;
    int64_t accumulated; /* minibatches since the newest update */
    sgm__metric_sums sums;
    double best_loss; /* of an epoch, for a plateau schedule */
    int64_t bad_epochs, reductions;
} sgm__training_position;

/* Outputs and targets that a pass over data gathered for a hook: NAME.outputs, NAME.targets in the registry.
 */
typedef struct sgm__pass_result {
    char *data, *output, *field; /* output, field NULL: the first */
    int64_t iteration;           /* at which they were gathered; valid while `current` */
    bool current;                /* the parameters have not changed since */
    bool wanted;           /* a hook has read them since the newest validation: the next one gathers them */
    const sgm_hook *owner; /* the hook that wants them; only its address is used */
} sgm__pass_result;

/* A value that a hook left in the registry. */
typedef struct sgm__hook_result {
    const sgm_hook *owner; /* only its address is used */
    char *data, *name;     /* DATA.NAME */
} sgm__hook_result;

/* What the run's thread is doing, for threads that cannot wait for the trainer's lock. */
typedef struct sgm__whereabouts {
    _Atomic(const char *) doing; /* a string literal; NULL: nothing */
    atomic_llong epoch, iteration;
} sgm__whereabouts;

/* How the run ended whose checkpoint was loaded last. */
typedef struct sgm__ending {
    char *by;                   /* the hook that ended it for good, and why; NULL: none did */
    int64_t epochs, iterations; /* the length that the run was to have */
} sgm__ending;

/* The folder in which the trainer's checkpoints are. */
typedef struct sgm__checkpoint_place sgm__checkpoint_place;
struct sgm__checkpoint_place {
    char *folder; /* NULL: none yet */
    bool own;     /* it is no run's folder, and is removed with the trainer */
    void (*release)(sgm__checkpoint_place *place); /* NULL: nothing to do */
};

/* Who asked for something and why, for the journal; NULL: that is not said. */
typedef struct sgm__asker {
    char *who, *reason;
} sgm__asker;

/* What other threads want of a running trainer: pause, stop, commands. */
typedef struct sgm__control {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sgm_trainer_state state;
    bool pause, stop;
    int64_t steps;     /* iterations until the next pause; -1: none */
    atomic_bool asked; /* one of these three was set in this run; false: no need to take the lock to look */
    char *reason;      /* of the newest stop */
    char *paused_by;   /* the hook that paused it, with its text; NULL: a person or the program did */
    sgm__asker pauser, resumer; /* who asked for the newest pause, and for its end */
    sgm__command_queue commands;
    sgm__checkpoint_place place; /* guarded by the lock */
    sgm__whereabouts whereabouts;
    sgm__turn_lock turn; /* held during a step: see trainer_lock.h */
    struct json_t
        *approve; /* patterns of what needs an administrator's leave; set before a run; NULL: nothing */
    /* Requests that wait for it, guarded by the lock (src/control/approval.c); NULL: there was none. */
    struct json_t *pending;
    double approval_seconds;     /* after which they expire; 0: SGM__APPROVAL_SECONDS */
    int64_t pending_made;        /* number of the newest */
    atomic_uint pending_version; /* grows with each change of the list */
} sgm__control;

/* Names of outputs of programs that are no layer's; no layer can have such a name. */
#define SGM__LOSS "trainer.loss"
#define SGM__CORRECT "trainer.correct"
#define SGM__LENGTHS "trainer.lengths" /* of each example: how many time steps of the first output count */
#define SGM__COST_PREFIX "trainer.cost."
/* What a worker's part of a minibatch adds to these values of the whole minibatch: */
#define SGM__LOSS_PART "trainer.part_of.loss"
#define SGM__CORRECT_PART "trainer.part_of.correct" /* missing: parts are weighted by their examples */
#define SGM__COST_PART_PREFIX "trainer.part_of.cost."
typedef struct sgm__cost {
    char *output, *part;
    double newest; /* value for the newest minibatch */
} sgm__cost;

/* The data that a trainer trains and measures on. */
typedef struct sgm__trainer_data {
    sgm_iterator *training;
    sgm__named_iterator *validation;
    size_t validation_count, validation_capacity;
    sgm_named_metrics *metrics; /* of the newest validation, one for each of `validation` */
    sgm_pipeline *pipeline;     /* of the checkpoint that was loaded; NULL: it had none. The training data's
                                   counts first. */
} sgm__trainer_data;

/* Patterns of the parameters that are frozen (trainer/frozen.h). */
typedef struct sgm__frozen {
    char **items;
    size_t count, capacity;
} sgm__frozen;

/* Rules for parameters whose names match patterns: first values, changes after each update, freezing. */
typedef struct sgm__trainer_patterns {
    sgm__initialiser_rule *rules;
    size_t rule_count, rule_capacity;
    sgm__modifier_rule *modifiers;
    size_t modifier_count, modifier_capacity;
    sgm__frozen frozen;
} sgm__trainer_patterns;

/* Messages of rules to addresses of the web (src/runs/rules/rule_webhook.h). */
typedef struct sgm__trainer_webhooks {
    char **allowed; /* addresses that the program or the file has named */
    size_t count, capacity;
    struct sgm__rule_webhook *sent; /* that are on their way; NULL: none */
} sgm__trainer_webhooks;

/* Functions of the program that are called for each event (sgm_trainer_on_progress). */
typedef struct sgm__trainer_observers {
    sgm__observer *items;
    size_t count, capacity;
    int64_t next_told; /* the smallest `next` of all observers */
} sgm__trainer_observers;

/* What hooks and passes over data left in the registry and for the epoch's line of metrics.jsonl. */
typedef struct sgm__trainer_results {
    sgm__pass_result *passes;
    size_t pass_count, pass_capacity;
    sgm_score *scores;  /* since the newest epoch's line was written */
    char **score_texts; /* owns the scores' texts */
    size_t score_count, score_capacity, score_text_capacity;
    sgm__hook_result *hook_results;
    size_t hook_result_count, hook_result_capacity;
    pthread_mutex_t hook_results_lock;
} sgm__trainer_results;

/* The network, the optimiser, and the graph and the programs that were recorded from them. A replica has a
 * learner of its own, with the network and the optimiser of its owner. */
typedef struct sgm__learner {
    sgm_network *network;
    sgm_optimiser *optimiser;
    sgm_session *session;
    sgm_graph *graph;                                    /* recorded into again and again */
    sgm_recording recording;                             /* the newest */
    char first_targets[sizeof((sgm_field *)NULL)->name]; /* field of the first cost */
    sgm__trained_parameter *trained;
    size_t trained_count, trained_capacity;
    int64_t steps; /* that programs are made and looked for with; 0: all that the network declares */
    sgm__known_program *programs;
    size_t program_count, program_capacity;
    sgm__rerecording rerecording;
    bool *stale; /* for each state, in the session's order: the next recording gives it its first values */
    size_t stale_count;
    /* While a load defines states: whether it sets a parameter right after, which is then left as zeros and
     * not drawn (src/runs/parts/take_over.c). NULL: all are drawn. */
    bool (*comes)(void *loading, const char *name, const sgm_tensor *parameter);
    void *loading;
    sgm__cost **costs; /* one for each layer that is a cost */
    size_t cost_count, cost_capacity;
    sgm_option **rows; /* of layers' arguments */
    size_t row_count, row_capacity;
    size_t published; /* so many states of the session are in the registry */
    bool averages_in; /* parameters and their moving averages have been exchanged */
} sgm__learner;

/* How a trainer shares its work with workers; in a replica, which trainer it works for. */
typedef struct sgm__sharing {
    _Atomic(const sgm__strategy *) strategy; /* NULL: the trainer itself does the work; any thread may look */
    sgm_operator *parallel;                  /* what the strategy shares the work out with */
    sgm_trainer *owner; /* in a replica the trainer that it computes for; else the trainer itself */
    int32_t worker;     /* in a replica its number */
} sgm__sharing;

/* How a trainer belongs to its environment. */
typedef struct sgm__membership {
    bool unscheduled; /* sgm_env_run of the environment does not run it */
    bool branched;    /* it was branched off a running trainer; its failure is not the environment's */
    bool held;        /* a model uses it: it cannot be dropped before the environment */
    /* Begins a branch: makes a trainer with the same parts as `from` and runs it side by side with the
     * running trainers, to the same end. If the run of `from` has a folder, the branch gets a folder of its
     * own beside that. Once the branch has started, its failure stops no other trainer. The caller must hold
     * no trainer's lock. NULL: the trainer has no environment. */
    sgm_status (*branch)(void *env, sgm_trainer *from, const struct sgm__branch_request *request);
    void *env; /* first argument of `branch` */
} sgm__membership;

#define SGM__KEPT_RATES 256
/* How long a run is to be, and how far the training has come. */
typedef struct sgm__trainer_progress {
    sgm__ending resumed_end;     /* of the run whose checkpoint was loaded last */
    int64_t next_accumulate;     /* optimiser.accumulate from the next update on; 0: unchanged */
    int64_t epochs;              /* that the run is to have; 0: no limit */
    int64_t iterations;          /* that the run is to have; 0: no limit */
    int64_t batches;             /* minibatches of an epoch; 0: unknown */
    sgm__metric_sums last_epoch; /* sums of the epoch before, shown until this epoch has a minibatch */
    char *ended_by;              /* the hook that ends this run for good, and why; NULL: none */
    double newest_loss;
    int64_t newest_examples;            /* of the newest minibatch */
    int64_t memory_told;                /* examples of the largest step whose memory the log tells of */
    double waited;                      /* seconds that the run has waited for minibatches */
    double rates[SGM__KEPT_RATES];      /* learning rate of iteration i, at i % SGM__KEPT_RATES */
    double running_time;                /* seconds of training, up to running_since */
    struct sgm__rule_command *commands; /* of rules, that run beside this run; NULL: none */
    double running_since;               /* since when it has been running (sgm__now); 0: it does not run */
} sgm__trainer_progress;

/* Changes of values: who makes them, and where they are noted (src/journal). */
typedef struct sgm__trainer_journal {
    const char *folder;                 /* the run's folder, which has journal.jsonl; NULL: none */
    const char *changed_by;             /* the source of changes at this moment: "ctl", a hook's name, ... */
    const char *reason;                 /* why it is made, as who asked for it says; NULL: that is not said */
    struct sgm__change_record *changes; /* NULL in a replica */
    struct sgm__journal_entries
        *planned; /* what it does again at later iterations (planned.h); NULL: nothing */
    const struct sgm__journal_entry *making; /* what is being made again; NULL: nothing is */
    struct json_t *branched;     /* how it left another training (src/runs/origin.h); NULL: it did not */
    struct sgm__replay *replay;  /* of the present run (src/runs/replay.h); NULL: it replays no other */
    sgm_tensor *setting_average; /* the moving average that goes with the tensor being set; NULL: none */
    struct sgm__changed_setting *changed; /* values that differ from what the program set (settings.c) */
    size_t changed_count, changed_capacity;
    struct sgm__temporary *temporary; /* values that go back after some time (temporary.h) */
    size_t temporary_count, temporary_capacity;
    bool restoring; /* a checkpoint is being loaded: what it sets is not noted as a change */
    int64_t branch; /* number of the run's branch: each reset or restore begins a new one */
} sgm__trainer_journal;

/* Until when gradients and updates are kept as states because somebody reads them (trainer_states.c). */
typedef struct sgm__trainer_kept {
    double gradients_until, updates_until; /* moments of sgm__now; 0: they are not kept */
    double read_for;                       /* seconds for which the present reader wants them; 0: for ever */
    int64_t from;                          /* number of updates when keeping them began */
} sgm__trainer_kept;

/* --- trainer_view.c: the groups of a trainer ---
 * Files outside src/trainer, src/train and src/loop use these instead of the struct (trainer_struct.h). They
 * never fail, and return memory of the trainer; of a const trainer it must only be read. */
sgm__learner *sgm__learner_of(const sgm_trainer *trainer);
sgm__trainer_settings *sgm__settings_of(const sgm_trainer *trainer);
sgm__training_position *sgm__position_of(const sgm_trainer *trainer);
sgm__trainer_progress *sgm__progress_of(const sgm_trainer *trainer);
sgm__trainer_data *sgm__data_of(const sgm_trainer *trainer);
sgm__trainer_patterns *sgm__patterns_of(const sgm_trainer *trainer);
sgm__trainer_webhooks *sgm__webhooks_of(const sgm_trainer *trainer);
sgm__trainer_results *sgm__results_of(const sgm_trainer *trainer);
sgm__trainer_journal *sgm__journal_of(const sgm_trainer *trainer);
sgm__trainer_kept *sgm__kept_of(const sgm_trainer *trainer);
sgm__control *sgm__control_of(const sgm_trainer *trainer);
sgm__sharing *sgm__sharing_of(const sgm_trainer *trainer);
sgm__membership *sgm__membership_of(const sgm_trainer *trainer);
sgm__hooks *sgm__hooks_of(const sgm_trainer *trainer);
sgm_registry *sgm__registry_of(const sgm_trainer *trainer);
/* Whether it has data to train on. One without only predicts, and is told nothing of what training lacks. */
bool sgm__trainer_can_train(const sgm_trainer *trainer);

/* Keeps a failure's message as the trainer's first failure, with the trainer's name in front; returns
 * `status`.
 */
sgm_status sgm__trainer_keep(sgm_trainer *trainer, sgm_status status);
/* The message of the trainer's first failure, which the trainer owns; "" and SGM_OK: none. */
const char *sgm__trainer_failure(const sgm_trainer *trainer, sgm_status *status);
/* The status of a constructor that returned NULL; `what` names what was to be made. */
sgm_status sgm__trainer_missing(const char *what);
/* Around a change of the trainer's parts. Open takes the lock and fails if the trainer has failed before;
 * close keeps `status` as the trainer's and returns it. */
sgm_status sgm__trainer_open(sgm_trainer *trainer);
sgm_status sgm__trainer_close(sgm_trainer *trainer, sgm_status status);

/* --- program_cache.c --- */
/* The program for this purpose and size; NULL: there is none yet. */
sgm__known_program *sgm__trainer_find_program(const sgm_trainer *trainer, sgm__step_purpose purpose,
                                              int64_t batch);
/* Adds a program. `program` NULL: it was recorded, which defined its states, but not compiled. */
sgm_status sgm__trainer_remember_program(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch,
                                         sgm_program *program);
/* Programs of the trainer and of its replicas will be recorded anew. */
void sgm__trainer_forget_programs(sgm_trainer *trainer);
/* The same, without replicas. */
void sgm__trainer_drop_programs(sgm_trainer *trainer);
bool sgm__trainer_is_frozen(const sgm_trainer *trainer, const char *parameter);

/* --- trainer_status.c: what a strategy, if there is one, is told or asked --- */
/* States were set: all workers continue with the trainer's. */
void sgm__trainer_restart_workers(sgm_trainer *trainer);
/* One state of the trainer's session was set: workers get it. */
sgm_status sgm__trainer_state_was_set(sgm_trainer *trainer, const char *name);
/* Whether this process has a state. sgm__trainer_check_set fails for a state that not all processes have: it
 * cannot be set. */
bool sgm__trainer_has_state(const sgm_trainer *trainer, const char *name);
sgm_status sgm__trainer_check_set(const sgm_trainer *trainer, const char *name);

/* --- trainer_control.c: pausing and stopping --- */
void sgm__control_init(sgm__control *control);
void sgm__control_destroy(sgm__control *control);
/* The trainer counts as running from now on, and commands are queued for it; `paused`: it begins with a
 * pause. SGM_ERROR_STATE if it runs already. */
sgm_status sgm__trainer_reserve(sgm_trainer *trainer, bool paused);
/* Makes the trainer idle; queued commands that no thread waits for are dropped. */
void sgm__control_end(sgm__control *control);
/* Makes the trainer idle, unless commands are queued that no thread waits for; then returns false. */
bool sgm__control_try_end(sgm__control *control);
/* Between two iterations: whether to pause now; counts one of the steps until the next pause. */
bool sgm__control_wants_pause(sgm__control *control);
/* As sgm_trainer_pause, for a hook: "rule (if ... then pause)". */
sgm_status sgm__trainer_pause_by(sgm_trainer *trainer, const char *who);
/* As sgm_trainer_pause, sgm_trainer_resume (`iterations` -1) and sgm_trainer_step, in the name of an asker.
 */
sgm_status sgm__trainer_pause_for(sgm_trainer *trainer, const char *who, const char *reason);
sgm_status sgm__trainer_go_on_for(sgm_trainer *trainer, int64_t iterations, const char *who,
                                  const char *reason);
/* Who asked for the newest pause, or for its end; sgm__asker_clear. */
sgm__asker sgm__control_asker(sgm__control *control, bool of_pause);
void sgm__asker_clear(sgm__asker *asker);
/* Before the first iteration: whether to pause now; counts no step. */
bool sgm__control_is_held(sgm__control *control);
/* Whether a pause or a stop is wanted, or steps are counted. */
bool sgm__control_is_due(sgm__control *control);
/* Waits until the pause ends (true), or a command is queued or `seconds` are over (false: call it again).
 * `interrupted` is asked now and then whether a signal ends the pause; NULL: none does. */
bool sgm__control_wait(sgm__control *control, bool (*interrupted)(void), double seconds);
/* Takes the wish to stop back. */
void sgm__control_forget_stop(sgm__control *control);
/* Whether the run is to stop; then `reason` (may be NULL) is filled in. */
bool sgm__control_stops(sgm__control *control, char *reason, size_t size);

/* --- trainer_states.c --- */
/* Sets a state, also of workers that have their own. If it is a parameter, its moving average begins anew at
 * this value: the old average would make evaluation measure other parameters. */
sgm_status sgm__trainer_put_state(sgm_trainer *trainer, const char *name, const sgm_tensor *value);
/* --- trainer_matrices.c: matrices that adapters keep as 8 bits, by the name that they have without that ---
 */
/* Whether there is one of that name, in the newest recording. */
bool sgm__trainer_has_codes(const sgm_trainer *trainer, const char *matrix);
/* Its codes and scales for a value of its own type and shape. */
sgm_status sgm__trainer_quantize(const sgm_trainer *trainer, const char *matrix, const sgm_tensor *value,
                                 sgm_tensor **codes, sgm_tensor **scales);
/* What its codes and scales stand for; NULL and an error. */
sgm_tensor *sgm__trainer_get_matrix(const sgm_trainer *trainer, const char *matrix);
/* --- trainer_status.c --- */
/* Sets the moving average of a parameter, by the parameter's identifier, if it has one. */
sgm_status sgm__trainer_put_average(sgm_trainer *trainer, const char *identifier, const sgm_tensor *value);
/* Parameters were changed by something else than an iteration: what passes over data left is out of date. */
void sgm__trainer_parameters_changed(sgm_trainer *trainer);

/* --- trainer_accuracy.c --- */
/* Records the share of correct predictions as an output, if the network's targets are classes; `part`: of a
 * part of a minibatch. */
void sgm__trainer_record_correct(sgm_trainer *trainer, bool part);

/* --- hooks_check.c --- */
/* Before the first event: fails if a hook cannot do its work. Hooks that a checkpoint attached are not
 * checked.
 */
sgm_status sgm__hooks_check(sgm__hooks *hooks, int64_t epoch, int64_t iteration);
/* The same for a hook that is to be attached during a run; also fails if its criteria read a value that does
 * not exist. */
sgm_status sgm__hooks_check_new(sgm__hooks *hooks, sgm_trainer *trainer, sgm_hook *hook);

/* --- trainer_patterns.c --- */
/* Whether a parameter of the network, as it was recorded last, matches the pattern. */
bool sgm__trainer_matches_any(const sgm_trainer *trainer, const char *pattern);
/* Fails, naming it, if a pattern of the trainer matches no parameter. */
sgm_status sgm__trainer_check_patterns(const sgm_trainer *trainer);
/* Whether all parameters are known: a network was recorded, and it is none that may record others later. */
bool sgm__trainer_knows_parameters(const sgm_trainer *trainer);
/* Fails, naming it and the nearest one that would do, if a pattern matches none of the parameters that are
 * known. `what` begins the message: "freezing". */
sgm_status sgm__trainer_check_pattern(const sgm_trainer *trainer, const char *what, const char *pattern);

/* Whether a state is a parameter that is trained. */
bool sgm__trainer_trains(const sgm_trainer *trainer, const char *state);
/* Whether a layer changes the state itself (running means of batch_norm, say). */
bool sgm__trainer_is_layer_state(const sgm_trainer *trainer, const char *state);

/* Means over the examples. */
sgm_metrics sgm__metrics_of(const sgm__metric_sums *sums);
/* The learning rate of the next update by the schedule; `batches`: minibatches of an epoch, 0: unknown. */
double sgm__trainer_learning_rate(const sgm_trainer *trainer, int64_t batches);

#endif
