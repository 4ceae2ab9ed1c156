/* Training a network, checkpoints and parts of them, export to C and ONNX, and generation of text. What
 * changes the parameters, optimisers and the like, is in <sigma/optimisers.h>.
 *
 *     sgm_trainer_set_network(trainer, "input(8, 8) + dense(64, relu) + dense(10) + softmax_cross_entropy");
 *     sgm_trainer_set_data(trainer, sgm_minibatches(digits, .size = 32));
 *     sgm_trainer_add_data(trainer, "validation", sgm_by_block(held_out));
 *     sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.001,
 *                                                 .schedule = {.kind = SGM_COSINE, .period = 20}));
 *     sgm_trainer_add_initialiser(trainer, "*.weights", sgm_he());
 *     sgm_trainer_run(trainer, .epochs = 20, .folder = "runs/digits");
 *
 * Parts given to a trainer belong to it, also when the call fails. The first failure stays with the trainer:
 * later calls do nothing and return it, so a program may check once, at the run. A trainer is used by one
 * thread at a time.
 */
#ifndef SIGMA_TRAINING_H
#define SIGMA_TRAINING_H

#include <sigma/data.h>
#include <sigma/handler.h>
#include <sigma/network.h>
#include <sigma/operator.h>
#include <sigma/optimisers.h>
#include <sigma/registry.h>
#include <sigma/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A network that learns: its data, parameters, optimiser and hooks. */
typedef struct sgm_trainer sgm_trainer;
/* What runs beside a training (hooks.h); reference-counted. */
typedef struct sgm_hook sgm_hook;

/* --- the trainer --- */
/* The network in its notation; errors have the column. */
SGM_API sgm_status sgm_trainer_set_network(sgm_trainer *trainer, const char *notation);
/* A network that is made already, which belongs to the trainer then. */
SGM_API sgm_status sgm_trainer_adopt_network(sgm_trainer *trainer, sgm_network *network);
/* Gives its network adapters, such as sgm_lora(.rank = 8), which belong to it then, also on failure. States
 * that are there already keep their values; all parameters are frozen but for the adapters' own. */
SGM_API sgm_status sgm_trainer_adapt(sgm_trainer *trainer, sgm_layer *adapter);
/* Merges adapters into the parameters that they adapt, which act by themselves then as both did before. The
 * network has no adapters any more, and nothing is frozen but by patterns. */
SGM_API sgm_status sgm_trainer_merge(sgm_trainer *trainer);
/* The notation of its network, with adapters; free with sgm_string_free. NULL: it has none, or memory is
 * lacking. */
SGM_API char *sgm_trainer_network(sgm_trainer *trainer);
/* The iterator that is trained on; taken over. */
SGM_API sgm_status sgm_trainer_set_data(sgm_trainer *trainer, sgm_iterator *iterator);
/* One more iterator, taken over, on which loss and accuracy are measured after each epoch: "validation". */
SGM_API sgm_status sgm_trainer_add_data(sgm_trainer *trainer, const char *name, sgm_iterator *iterator);
/* The optimiser, taken over; there is none without this call. */
SGM_API sgm_status sgm_trainer_set_optimiser(sgm_trainer *trainer, sgm_optimiser *optimiser);
/* First values of parameters whose name matches the pattern ("*.weights"). Of several rules that match the
 * most specific one counts; the same pattern twice is an error. */
SGM_API sgm_status sgm_trainer_add_initialiser(sgm_trainer *trainer, const char *pattern,
                                               sgm_initialiser *initialiser);
/* Changes parameters whose name matches the pattern after each update; several modifiers act in the order in
 * which they were added. */
SGM_API sgm_status sgm_trainer_add_modifier(sgm_trainer *trainer, const char *pattern,
                                            sgm_modifier *modifier);
/* Parameters whose name matches the pattern are not trained. Of several patterns that match one, of this and
 * the next call, the last one counts. */
SGM_API sgm_status sgm_trainer_freeze(sgm_trainer *trainer, const char *pattern);
/* Trains the parameters of a pattern again, also as a part of what a wider one froze; SGM_ERROR_NOT_FOUND if
 * nothing that it matches was frozen. */
SGM_API sgm_status sgm_trainer_unfreeze(sgm_trainer *trainer, const char *pattern);
/* Trains with several workers from the next run on; without an operator the trainer itself does the work.
 * `parallel` is taken over, also on failure; NULL, as constructors return on failure, is an error. */
SGM_API sgm_status sgm_trainer_set_operator(sgm_trainer *trainer, sgm_operator *parallel);

/* A mean over examples since the epoch began (training) or over a whole iterator (validation). */
typedef struct sgm_metrics {
    double loss;      /* the sum of importance times cost */
    double accuracy;  /* share of examples whose largest output is at their largest target; NaN where that
                         means nothing */
    int64_t examples; /* over which it is a mean */
} sgm_metrics;
/* Metrics of the data with a name. */
typedef struct sgm_named_metrics {
    const char *name;    /* "validation" */
    sgm_metrics metrics; /* after the epoch */
} sgm_named_metrics;
/* A number that a hook measured (hooks.h). */
typedef struct sgm_score {
    const char *data, *name; /* "validation", "f1" */
    double value;            /* of the newest measurement */
    bool headline;           /* worth a place in a short line */
} sgm_score;
/* What has happened. */
typedef enum sgm_progress_kind {
    SGM_PROGRESS_START,     /* the run begins */
    SGM_PROGRESS_ITERATION, /* an iteration has ended */
    SGM_PROGRESS_EPOCH,     /* an epoch has ended, and was validated */
    SGM_PROGRESS_STOP,      /* the run has ended */
    SGM_PROGRESS_PAUSE,     /* training rests until RESUME or STOP */
    SGM_PROGRESS_RESUME,    /* training goes on */
    SGM_PROGRESS_MOVE       /* a reset or a restore has moved the training to another position */
} sgm_progress_kind;
/* How a training stands, for those who watch; valid during the call. */
typedef struct sgm_training_progress {
    sgm_progress_kind kind; /* what has happened */
    const char *trainer;    /* its name */
    int64_t epoch, epochs;  /* epochs that have ended, and that the run is to have (0: no limit) */
    int64_t batch, batches; /* minibatches of this epoch so far, and in all (0: unknown yet) */
    int64_t iteration;      /* iterations so far, over all epochs */
    sgm_metrics training;   /* of this epoch so far */
    const sgm_named_metrics *validation; /* EPOCH only */
    size_t validation_count;             /* how many */
    double learning_rate;                /* schedule included */
    double seconds;                      /* since the run began, without pauses */
    double rate;                         /* examples per second */
    double seconds_left;                 /* negative: unknown */
    bool interrupted;                    /* STOP: by a signal or by a callback */
    const char *reason; /* STOP: why a hook or a command ended the run; PAUSE: the hook that wanted it, and
                         * what it was made from; NULL: none did */
    const sgm_score *scores; /* EPOCH only: since the epoch before */
    size_t score_count;      /* how many */
} sgm_training_progress;
/* Called at the start, after iterations, after epochs, at pauses and their ends, at the end; returning false
 * stops the run after this step. */
typedef bool (*sgm_training_function)(void *user, const sgm_training_progress *progress);
/* Adds a function that is told of the training's progress, on its thread. */
SGM_API sgm_status sgm_trainer_on_progress(sgm_trainer *trainer, sgm_training_function function, void *user);

/* Attaches a hook, which belongs to the trainer then. If an equal hook is attached already, `hook` is freed.
 */
SGM_API sgm_status sgm_trainer_add_hook(sgm_trainer *trainer, sgm_hook *hook);
/* Everything of the trainer that has a name, such as optimiser.learning_rate and
 * network.layers.2-dense.weights. Reading and setting wait for the step that is running; what is set counts
 * from the next iteration on, and is written to the run directory's journal.jsonl. Belongs to the trainer. */
SGM_API sgm_registry *sgm_trainer_registry(sgm_trainer *trainer);

typedef struct sgm_run_options {
    size_t struct_size;
    int64_t epochs;           /* in all, those before a resume counted; 0: no limit */
    int64_t iterations;       /* the same; both 0: one epoch */
    const char *folder;       /* run directory: checkpoint.safetensors, metrics.jsonl, log.txt; NULL: none */
    int64_t checkpoint_every; /* epochs; default 1; -1: only at the end */
    /* go on from the folder's checkpoint if there is one; else what the folder has of a run that ended before
     * its first is kept under other names ("metrics-before-1.jsonl"), with a warning, and the run begins anew
     */
    bool resume;
    /* SIGINT and SIGTERM stop the run after the step, with a checkpoint, and so do SIGHUP, SIGXCPU, SIGUSR1
     * and SIGUSR2 where the program neither handles nor ignores them; a second SIGINT acts as it did before
     */
    bool catch_interrupt;
    bool paused;                     /* begins paused: nothing is trained until sgm_trainer_resume or _step */
    const struct sgm_replay *replay; /* of another run: sgm_replay_of (replay.h); NULL: none */
} SGM_BY_NAME sgm_run_options;
/* The members of sgm_run_options as rows, *count of them. */
SGM_API const sgm_setting *sgm_run_settings(size_t *count);
#define sgm_trainer_run(...) SGM_WITH_OPTIONS(sgm_trainer_run_with, sgm_run_options, __VA_ARGS__)
/* SGM_ERROR_INTERRUPTED when it was stopped; the checkpoint is there then. */
SGM_API sgm_status sgm_trainer_run_with(sgm_trainer *trainer, const sgm_run_options *options);
/* Whether a trainer runs. */
typedef enum sgm_trainer_state {
    SGM_TRAINER_IDLE,    /* it does not run */
    SGM_TRAINER_RUNNING, /* it trains */
    SGM_TRAINER_PAUSED   /* it runs, and waits */
} sgm_trainer_state;
/* What it does now; any thread. */
SGM_API sgm_trainer_state sgm_trainer_get_state(sgm_trainer *trainer);
/* Waits until it does that, for so many seconds at most (INFINITY: however long); any thread but the
 * trainer's own, whose hooks and observers would wait for themselves. SGM_ERROR_STATE: it did not within that
 * time. */
SGM_API sgm_status sgm_trainer_wait_for(sgm_trainer *trainer, sgm_trainer_state state, double seconds);
/* Forgets what the optimiser remembers (velocities, means of squares, sums of gradients), as if it had just
 * been given to the trainer; parameters, position and settings stay. While it runs, between two iterations;
 * any thread. */
SGM_API sgm_status sgm_trainer_clear_optimiser(sgm_trainer *trainer);
/* Waits after the iteration that is running. This and the next ones are commands: from any thread;
 * SGM_ERROR_STATE if the trainer does not run. */
SGM_API sgm_status sgm_trainer_pause(sgm_trainer *trainer);
/* Goes on after a pause. */
SGM_API sgm_status sgm_trainer_resume(sgm_trainer *trainer);
/* Runs so many iterations, then pauses. */
SGM_API sgm_status sgm_trainer_step(sgm_trainer *trainer, int64_t iterations);
/* Ends the run after the iteration that is running, with a checkpoint, as a finished run. */
SGM_API sgm_status sgm_trainer_stop(sgm_trainer *trainer, const char *reason);
/* Back to before the first iteration: position, parameters (drawn anew: the same numbers from the same seed),
 * what the optimiser remembers, metrics, results and states of hooks and their counts. Values that were set
 * stay, such as a learning rate. A running trainer goes on from there after its iteration, a paused one waits
 * there. The hooks' event is SGM_RESET. */
SGM_API sgm_status sgm_trainer_reset(sgm_trainer *trainer);
/* Back to a checkpoint: a name in the folder of the run, or a path. With a folder both of these keep what
 * they leave: see docs/manual/05-runs.md on branches. A checkpoint that cannot be taken changes nothing.
 *
 * These two wait until it is done, and return how it went; but in a hook or an observer they return at once,
 * and it is done after the iteration (a failure is logged then). An idle trainer is changed at once. Any
 * thread. */
SGM_API sgm_status sgm_trainer_restore(sgm_trainer *trainer, const char *checkpoint);
/* Attaches a hook (taken over, also on failure) now, in whatever state the trainer is; unlike with
 * sgm_trainer_add_hook a failure is not the trainer's, and an equal hook is one. Checkpoints of a running
 * trainer bring back what was attached if it came from a text. *name (NULL: not wanted) is freed with
 * sgm_string_free. Any thread, as the next ones. */
SGM_API sgm_status sgm_trainer_attach_hook(sgm_trainer *trainer, sgm_hook *hook, char **name);
/* Lets rules of this trainer run commands (rules.h), each for at most so many seconds, up to 86400; 0: none,
 * as at first. Before rules that run one are attached, which is SGM_ERROR_STATE otherwise, and while nothing
 * runs. */
SGM_API sgm_status sgm_trainer_allow_commands(sgm_trainer *trainer, double seconds);
/* Adds a pattern of commands ("stop", "restore") or of identifiers ("optimiser.*"). What an asker who is no
 * administrator requests of these, over the socket or the page, waits until an administrator approves of it,
 * or denies it; after ten minutes it expires. A request whose identifier has wildcards, and an undo, wait if
 * there is any pattern of identifiers. While nothing runs. */
SGM_API sgm_status sgm_trainer_require_approval(sgm_trainer *trainer, const char *pattern);
/* Lets rules of this trainer send to an address, "https://hooks.example.org/x", which they name with the same
 * letters (rules.h); several by several calls. Before such rules are attached, which is SGM_ERROR_STATE
 * otherwise, and while nothing runs. */
SGM_API sgm_status sgm_trainer_allow_webhook(sgm_trainer *trainer, const char *address);
/* By the name, "early_stopper#2"; without the number if there is only one. */
SGM_API sgm_status sgm_trainer_detach_hook(sgm_trainer *trainer, const char *name);
/* A hook that is attached to a trainer. */
typedef struct sgm_attached_hook {
    char *name;        /* "early_stopper#2", "local accumulator#1": no other one has it */
    char *when;        /* "every 2 epochs" */
    char *condition;   /* "" : none */
    char *text;        /* that it was parsed from; "": a program made it */
    char **buttons;    /* names of its external criteria (sgm_trainer_press); NULL at the end */
    bool background;   /* on a thread of its own */
    int64_t due, runs; /* how often its time had come, and how often its condition held then */
    double seconds;    /* of a run, on average */
} sgm_attached_hook;
SGM_API void sgm_attached_hooks_free(sgm_attached_hook *list, size_t count);
/* What is attached, in order of running; free with sgm_attached_hooks_free. */
SGM_API sgm_status sgm_trainer_hooks(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count);
/* Presses a button: lets one more check of each criterion `external "NAME"` fire, of all hooks and rules that
 * have it, of all workers. Any thread; done between two iterations, written into the journal, and repeated by
 * a replay. Where several processes train together, the first one presses for all. SGM_ERROR_NOT_FOUND: no
 * hook has such a criterion; the error lists those that there are. */
SGM_API sgm_status sgm_trainer_press(sgm_trainer *trainer, const char *name);
/* Records the network and initialises its parameters, unless that is done, without training. */
SGM_API sgm_status sgm_trainer_prepare(sgm_trainer *trainer);
/* The same for parameters of which the caller sets some next, from a file of others, say: the `count` named
 * ones begin as zeros, as drawing large ones takes longer than reading them. Those that are initialised
 * already stay as they are. */
SGM_API sgm_status sgm_trainer_prepare_undrawn(sgm_trainer *trainer, const char *const *parameters,
                                               size_t count);
/* Means over a whole iterator, which then stands where it stood before. */
SGM_API sgm_status sgm_trainer_evaluate(sgm_trainer *trainer, sgm_iterator *iterator, sgm_metrics *metrics);
/* The output with this name (NULL: the first) for `inputs`, (examples, ...) of the first input. The new
 * tensor is freed with sgm_tensor_free. */
SGM_API sgm_tensor *sgm_trainer_predict(sgm_trainer *trainer, sgm_tensor *inputs, const char *output);
/* As sgm_trainer_predict, for networks with several inputs: each gets the block's field of its name. Where
 * one input names the field of its lengths, its sequences may have fewer steps than it declares: a program
 * for so many is made and kept, so that short sequences cost less. */
SGM_API sgm_tensor *sgm_trainer_predict_block(sgm_trainer *trainer, const sgm_block *block,
                                              const char *output);
/* How a trainer predicts and evaluates. */
typedef struct sgm_inference_options {
    size_t struct_size;
    /* "int8": dynamic quantization. Weights of dense layers, of recurrent ones and of projections of
     * attention are rounded to 8 bits in advance, with a scale for each output; their inputs are rounded in
     * each prediction, with a scale for each row. Convolutions, embeddings and small layers (below 4,096
     * weights) stay as they are. Default NULL: as it was trained. */
    const char *quantize;
} SGM_BY_NAME sgm_inference_options;
/* sgm_trainer_set_inference(trainer, .quantize = "int8"): from now on predictions, and generators that are
 * made, take parameters as constants, which makes them faster; and so do evaluations with .quantize. Results
 * may differ in last digits, as batch norms go into convolutions. When parameters have changed, the next
 * prediction compiles again: for trainers that are done training, or predict seldom while they train.
 * Training itself stays as it is. With an operator nothing changes. */
#define sgm_trainer_set_inference(...)                                                                       \
    SGM_WITH_OPTIONS(sgm_trainer_set_inference_with, sgm_inference_options, __VA_ARGS__)
SGM_API sgm_status sgm_trainer_set_inference_with(sgm_trainer *trainer, const sgm_inference_options *options);
/* A parameter or other state by name ("2-dense.weights", "optimiser.momentum.2-dense.weights"); a copy. */
SGM_API sgm_tensor *sgm_trainer_get(sgm_trainer *trainer, const char *state);
/* The moving average of a parameter that is set begins anew at its value; "average.2-dense.weights" sets the
 * average alone. */
SGM_API sgm_status sgm_trainer_set(sgm_trainer *trainer, const char *state, const sgm_tensor *value);
/* Saves everything that is needed to continue exactly from here. */
SGM_API sgm_status sgm_trainer_save(sgm_trainer *trainer, const char *path);
/* Loads what sgm_trainer_save wrote; a file of another network is an error, and changes nothing. The path of
 * a run's folder is that of its newest checkpoint.
 *
 * A trainer with data, but without an optimiser, takes the optimiser and the hooks as well, as the program of
 * the checkpoint had given them, with all that they remember and all that was changed since: sgm_trainer_run
 * then goes on as that training would, to the bit. Hooks without a text (sgm_hook_create, and constructors
 * such as sgm_early_stopper; those of sgm_hook_parse and sgm_rule_hook have one) must have been attached to
 * this trainer before, in which they find their state: else SGM_ERROR_STATE, which names them. Operator,
 * initialisers, modifiers and what is frozen are given by the program. A trainer that has an optimiser keeps
 * it, and its hooks. */
SGM_API sgm_status sgm_trainer_load(sgm_trainer *trainer, const char *path);
/* The notation of the network in a checkpoint, of which only the header is read; free with sgm_string_free.
 */
SGM_API char *sgm_checkpoint_network(const char *path);
/* The pipeline that the rows of a table go through before they reach the network (table.h): that of the
 * training data, else that of the checkpoint that was loaded; it stays the trainer's. NULL: there is none. */
SGM_API sgm_pipeline *sgm_trainer_get_pipeline(const sgm_trainer *trainer);
/* Gives a trainer without data a pipeline, which it keeps a reference of: that of its predictions and of its
 * checkpoints, as long as no training data has one of its own. During setup. */
SGM_API sgm_status sgm_trainer_set_pipeline(sgm_trainer *trainer, sgm_pipeline *pipeline);
/* The pipeline in a checkpoint, of which only the header is read; the caller frees it. NULL: there is none.
 */
SGM_API sgm_status sgm_checkpoint_pipeline(const char *path, sgm_pipeline **pipeline);
/* The training step of `batch` examples as recorded (sgm_graph_text); free with sgm_string_free. */
SGM_API char *sgm_trainer_graph_text(sgm_trainer *trainer, int64_t batch);
/* The training step of `batch` examples as compiled (sgm_program_text); free with sgm_string_free. */
SGM_API char *sgm_trainer_program_text(sgm_trainer *trainer, int64_t batch);
/* What a training step of `batch` examples takes. */
SGM_API sgm_status sgm_trainer_memory(sgm_trainer *trainer, int64_t batch, sgm_program_memory *memory);
/* The parameters of a prepared trainer, *count of them, which stay the trainer's. */
SGM_API const sgm_parameter *sgm_trainer_parameters(sgm_trainer *trainer, size_t *count);
/* The first failure that stays with the trainer; SGM_OK: none did. */
SGM_API sgm_status sgm_trainer_status(const sgm_trainer *trainer);
/* The name that it was created with. */
SGM_API const char *sgm_trainer_name(const sgm_trainer *trainer);

/* ======== checkpoints in parts ========
 *
 * Checkpoints in parts: what of a training is saved, loaded, or given to another trainer.
 *
 *     sgm_trainer_save(trainer, "all.safetensors");                      (everything, to go on exactly)
 *     sgm_trainer_save_parts(trainer, "model.safetensors", .parts = SGM_PART_NETWORK | SGM_PART_PARAMETERS);
 *     sgm_trainer_load_parts(trainer, "runs/old/checkpoint.safetensors", .parts = SGM_PART_PARAMETERS,
 *                            .skip_mismatch = true);                           (another last layer)
 *
 * Keeping is to name parts, discarding to leave them out: SGM_PART_EVERYTHING & ~SGM_PART_OPTIMISER. A file
 * of SGM_PART_NETWORK alone is an untrained network.
 */

/* What of a training a checkpoint has; several may be set. */
typedef enum sgm_part {
    SGM_PART_NETWORK = 1,    /* its notation */
    SGM_PART_PARAMETERS = 2, /* and their moving averages */
    SGM_PART_OPTIMISER = 4,  /* what it remembers: slots, updates so far, the plateau of a schedule */
    SGM_PART_POSITION = 8,   /* epochs, iterations, the place in the data and what its preprocessing learnt */
    SGM_PART_RANDOM = 16,    /* of dropout and the like */
    SGM_PART_HOOKS = 32,     /* what hooks, criteria and rules remember and share */
    SGM_PART_METRICS = 64,   /* of the newest validation */
    SGM_PART_SETTINGS = 128, /* values that were changed while it ran, such as optimiser.learning_rate */
    SGM_PART_EVERYTHING = 255 /* all of these */
} sgm_part;

typedef struct sgm_part_options {
    size_t struct_size;
    unsigned parts; /* several sgm_part; 0: saving: everything, loading: what the file has */
    /* Of parameters and the optimiser's slots only those whose names match one of these patterns, separated
     * by spaces: "*.weights 0-dense.*"; NULL: all */
    const char *states;
    /* Loading: takes what fits by name, shape and type, and leaves the rest as it is, instead of refusing. A
     * failure then only if nothing fits. */
    bool skip_mismatch;
    char **
        left; /* receives a list of what did not fit, as text (NULL: all fitted); free with sgm_string_free */
    /* Of parameters alone. "torch": names and layouts of PyTorch's state_dict(), of a module for each layer:
     * the one that is called as the layer is; if none is, modules and layers go together in their order
     * (loading). "torch(1-dense=fc1, 2-dense=encoder.0)" says which module is which layer. What has no name
     * in PyTorch is saved under its own, with a warning, and loaded from there. */
    const char *names;
    /* Without the parameters that adapters freeze, which a trainer that loads such a file keeps as it has
     * them. */
    bool trained;
} SGM_BY_NAME sgm_part_options;

/* A checkpoint with some of the parts; NumPy's format if the path ends in .npz, else safetensors. */
#define sgm_trainer_save_parts(...)                                                                          \
    SGM_WITH_OPTIONS_2(sgm_trainer_save_parts_with, sgm_part_options, __VA_ARGS__)
SGM_API sgm_status sgm_trainer_save_parts_with(sgm_trainer *trainer, const char *path,
                                               const sgm_part_options *options);
/* Loads parts of a file: of a checkpoint, or any safetensors file with parameters of these names. A trainer
 * without a network takes the file's. First all of it is compared; if it does not fit, nothing is changed and
 * the error lists what differs: the notation, missing and surplus states, shapes, types, the optimiser. Parts
 * that are named must be there. Floats of another precision (float16, bfloat16, float32, float64) are rounded
 * to nearest to the trainer's, which is logged; finite numbers that would become infinite are refused. */
#define sgm_trainer_load_parts(...)                                                                          \
    SGM_WITH_OPTIONS_2(sgm_trainer_load_parts_with, sgm_part_options, __VA_ARGS__)
SGM_API sgm_status sgm_trainer_load_parts_with(sgm_trainer *trainer, const char *path,
                                               const sgm_part_options *options);
/* Loads parts of `from` into `to`, without a file; `from` may run in another thread and is read between two
 * iterations. */
#define sgm_trainer_copy_parts(...)                                                                          \
    SGM_WITH_OPTIONS_2(sgm_trainer_copy_parts_with, sgm_part_options, __VA_ARGS__)
SGM_API sgm_status sgm_trainer_copy_parts_with(sgm_trainer *to, sgm_trainer *from,
                                               const sgm_part_options *options);
/* Copies all parameters and their averages, and the network if `to` has none. */
SGM_API sgm_status sgm_trainer_copy_parameters(sgm_trainer *to, sgm_trainer *from);

/* "network parameters", "everything -optimiser": names from left to right, a minus takes away. */
SGM_API sgm_status sgm_parts_parse(const char *text, unsigned *parts);
/* The name of a single part: "network"; NULL: it is no part. */
SGM_API const char *sgm_part_name(unsigned part);
/* The parts that a checkpoint has. */
SGM_API sgm_status sgm_checkpoint_parts(const char *path, unsigned *parts);

/* ======== export ========
 *
 * A trained network for other programs.
 *
 *     sgm_trainer_export_onnx(trainer, "digits.onnx");                (for other runtimes; see onnx.h)
 *     sgm_trainer_export_c(trainer, "digits.c", .name = "digits");    (for places where no library can be)
 *
 * The file is C99, calls no library and takes no memory: weights are constant arrays, and what is computed
 * has its places in one static array, as they were planned. It says at its top how it is used:
 *
 *     int digits_predict(const float *inputs, float *outputs);
 *
 * A network that was trained on a table by its columns' names takes its pipeline along: the C has also a
 * struct of a row and NAME_predict_rows, the ONNX model has an input for each column ((examples, 1): numbers,
 * and dates as days since 1970-01-01, in float64, NaN for a missing value; categories by number in int64, -1
 * for a missing one) and the pipeline's JSON in its metadata, under "sigma.pipeline". Predictions have the
 * table's units. */

typedef struct sgm_export_c_options {
    size_t struct_size;
    const char *name; /* what all names begin with: letters, digits and _; default "model" */
    int64_t batch;    /* examples that one call of predict takes; default 1 */
    int64_t train;    /* examples that one call of train_step takes; default 0: there is no train_step */
} SGM_BY_NAME sgm_export_c_options;
/* Writes the network with the parameters of now, through a temporary file. With `train` also a function that
 * does what a step of the trainer does: forward, gradients, the optimiser's update, with the same random
 * numbers. Networks in bfloat16 are written in float32. Errors name what cannot be written and its layer:
 * operations that come from outside the library without being composed, argsort, inverse and determinant;
 * networks that are recorded anew at each iteration; gradients that are accumulated over several
 * minibatches. */
SGM_API sgm_status sgm_trainer_export_c_with(sgm_trainer *trainer, const char *path,
                                             const sgm_export_c_options *options);
#define sgm_trainer_export_c(...)                                                                            \
    SGM_WITH_OPTIONS_2(sgm_trainer_export_c_with, sgm_export_c_options, __VA_ARGS__)

/* What "int8" did to the matrix products of a network, and to their weights. */
typedef struct sgm_quantized {
    int64_t products;     /* that are of integers now */
    int64_t others;       /* that are not: small weights, and products of two values that are computed */
    int64_t bytes_before; /* of the weights that were rounded, in float32 */
    int64_t bytes_after;  /* of their integers and scales */
} sgm_quantized;
typedef struct sgm_export_onnx_options {
    size_t struct_size;
    const char *name; /* of the graph in the file; default: the trainer's */
    int64_t batch;    /* examples in a prediction; default 0: any number */
    /* "int8": products that sgm_trainer_set_inference would quantize are DynamicQuantizeLinear and
     * MatMulInteger, with one scale for all rows of a run; parameters have no names then. Default NULL:
     * numbers as they were trained. */
    const char *quantize;
    sgm_quantized *quantized; /* with `quantize`: gets what it did; default NULL: that is not told */
} SGM_BY_NAME sgm_export_onnx_options;
/* Writes what the network predicts as an ONNX model of opset 17: inputs and outputs under their names,
 * parameters as initialisers under theirs ("2-dense.weights"). Networks in bfloat16 are written in float32.
 * An error names the operation that ONNX does not have, and its layer, or what depends on the number of
 * examples in a way that needs `batch`. */
SGM_API sgm_status sgm_trainer_export_onnx_with(sgm_trainer *trainer, const char *path,
                                                const sgm_export_onnx_options *options);
#define sgm_trainer_export_onnx(...)                                                                         \
    SGM_WITH_OPTIONS_2(sgm_trainer_export_onnx_with, sgm_export_onnx_options, __VA_ARGS__)

/* ======== generation ========
 *
 * Continuing a sequence, token by token, with a trained network.
 *
 *     sgm_generator *generator = sgm_generator_create(trainer);
 *     sgm_generator_generate(generator, prompt, prompt_count, tokens, 100,
 *                            SGM_GENERATION(.seed = 1, .temperature = 0.8));
 *     sgm_generator_free(generator);
 *
 * The network reads a sequence of tokens, input(TIME) of numbers or input(TIME, TOKENS) of one-hot rows, and
 * gives a probability for each token that may come next, at each step or behind the last one. It is run one
 * step at a time: what layers need of the steps before (keys and values of attention, what recurrent layers
 * remember) they keep. So a token costs one step, not TIME of them, and the probabilities are those of all
 * steps at once. */

/* A trained network that continues sequences. */
typedef struct sgm_generator sgm_generator;
/* How a generator is made. */
typedef struct sgm_generator_options {
    size_t struct_size;
    /* That it reads side by side, for sgm_generator_generate_all and for beams: a step of several costs
     * little more than one, as it reads the parameters once. Default 1. */
    int64_t sequences;
} SGM_BY_NAME sgm_generator_options;
/* With the parameters that the trainer has now, which are copied; its environment must outlive the generator.
 * A network that looks ahead (bidirectional, attention without `causal`, convolutions) is an error. */
SGM_API sgm_generator *sgm_generator_create_with(sgm_trainer *trainer, const sgm_generator_options *options);
#define sgm_generator_create(...)                                                                            \
    SGM_WITH_OPTIONS(sgm_generator_create_with, sgm_generator_options, __VA_ARGS__)
SGM_API void sgm_generator_free(sgm_generator *generator);
/* The number of tokens in the vocabulary. */
SGM_API int64_t sgm_generator_vocabulary(const sgm_generator *generator);
/* The number of steps that it can look back; 0: any number. */
SGM_API int64_t sgm_generator_places(const sgm_generator *generator);
/* Forgets all tokens that were read. */
SGM_API sgm_status sgm_generator_reset(sgm_generator *generator);
/* Of a generator of one sequence: reads one more token. *probabilities then points to the probability of each
 * token to come next, valid until the next call (NULL: not wanted). When as many tokens were read as there
 * are places, it continues with the newest half of them, which it reads again. */
SGM_API sgm_status sgm_generator_read(sgm_generator *generator, int64_t token, const double **probabilities);

/* How tokens are drawn. */
typedef struct sgm_generation_options {
    size_t struct_size;
    uint64_t seed;                           /* of what is drawn */
    double temperature;                      /* this and the next three: as in sgm_sample_options */
    int64_t top_k;                           /* as in sgm_sample_options */
    double top_p;                            /* as in sgm_sample_options */
    bool greedy;                             /* as in sgm_sample_options */
    bool (*told)(void *user, int64_t token); /* called for each token that is drawn; returns false to end */
    void *user;                              /* passed to `told`, and to `proceed` */
    double min_p;                            /* as in sgm_sample_options */
    /* Logits of tokens that were read since the newest reset are divided by it where they are positive and
     * multiplied by it where negative, before all else: above 1 such tokens come less often, below 1 more
     * often; default 1 (Keskar et al., 2019). */
    double repetition_penalty;
    /* Tokens that end a text, which is their last then; the vocabulary of a model of others has one or a few.
     */
    const int64_t *ends;
    size_t end_count; /* how many; default none */
    /* Beam search: so many texts are kept at each step, and the likeliest of those that have ended is what
     * follows, as transformers finds it (early_stopping=False). The generator has as many sequences
     * (`.sequences`), reads them without what was read before, and is to be reset behind it; `told` gets the
     * tokens at the end. Temperature, top_k, top_p and min_p are for drawing; a repetition penalty multiplies
     * logarithms of probabilities. Default 1: tokens are drawn. */
    int64_t beams;
    double length_penalty; /* of beams: the sum of a text's logarithms is divided by its length to this power:
                            * above 0 favours long texts, below 0 short ones; default 1 */
    /* Called before each piece of a beginning and before each token is read, of texts side by side once for
     * all; gets `user` of these options. Returns false to end all texts: the call then fails with
     * SGM_ERROR_INTERRUPTED, texts keep the tokens that were drawn, and the generator is to be reset. Where a
     * beginning is long, `told` comes late. NULL: nothing is called. */
    bool (*proceed)(void *user);
} SGM_BY_NAME sgm_generation_options;
/* The options that say how tokens are drawn, from temperature to seed, as rows of sgm_generation_options. */
SGM_API const sgm_setting *sgm_generation_settings(size_t *count);
/* Options for sgm_generator_generate: SGM_GENERATION(.seed = 1). */
#define SGM_GENERATION(...) SGM_OPTIONS(sgm_generation_options, __VA_ARGS__)
/* Of a generator of one sequence, or of as many as there are beams: reads `begin_count` tokens (at least 1)
 * after what was read before, then draws up to `count` that follow, each of which is read in turn, into
 * `tokens` (NULL: not wanted). The same seed gives the same tokens. Where a text has ended before, -1
 * follows. What it begins with is read several tokens at a time where nothing but keys and values of
 * attention is kept, which costs less than as many steps. */
SGM_API sgm_status sgm_generator_generate(sgm_generator *generator, const int64_t *begin, size_t begin_count,
                                          int64_t *tokens, size_t count,
                                          const sgm_generation_options *options);

/* A text that is gone on with, of several. */
typedef struct sgm_continuation {
    const int64_t *begin; /* tokens to begin with, at least 1 */
    size_t begin_count;   /* how many */
    int64_t *tokens;      /* room for `count` tokens that follow; NULL: not wanted */
    size_t count;         /* how many may follow; then, how many did */
    void *user;           /* passed to `told` */
    uint64_t seed;        /* added to the options' seed, so that texts with one beginning may differ */
} sgm_continuation;
/* Goes on with each text from its own beginning, without what was read before, and as sgm_generator_generate
 * would with each alone and the same options, up to rounding. As many as the generator has sequences are read
 * side by side: each may have its own length, and ends by itself (`told`, `ends`, `count`); the next ones
 * begin when all of them have ended, so texts of like lengths go fastest together. With beams it is one at a
 * time. */
SGM_API sgm_status sgm_generator_generate_all(sgm_generator *generator, sgm_continuation *texts, size_t count,
                                              const sgm_generation_options *options);

#ifdef __cplusplus
}
#endif
#endif
