/* Running and showing trainings: environments, monitors, models (the short way), searches.
 *
 * The environment owns trainers and monitors, and gives them seed, handler, precision and memory.
 *
 *     sgm_env_run(env, .epochs = 20);              (all trainers, side by side, to their ends)
 *
 *     sgm_env_run_background(env, .epochs = 20);   (the same, while this thread does something else)
 *     sgm_trainer_pause(trainer);
 *     sgm_env_stop(env, "seen enough");
 *     sgm_env_wait(env);
 *
 * An environment is set up by one thread at a time; sgm_env_stop, sgm_env_status and sgm_env_error may be
 * called from any thread while it runs, and so may the commands to its trainers and its registry. */
#ifndef SIGMA_ENVIRONMENT_H
#define SIGMA_ENVIRONMENT_H

#include <sigma/training.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The environment: trainers, monitors, and what they share. */
typedef struct sgm_env sgm_env;
/* Something that shows trainings, or tells other programs of them. */
typedef struct sgm_monitor sgm_monitor;
typedef struct sgm_env_options {
    size_t struct_size;
    uint64_t seed;       /* of all random numbers; the default 0 is a seed like any other: without one, every
                          * run is the same. The log.txt of a run with a folder has it */
    const char *handler; /* default "cpu" */
    int threads;         /* default: one per processor */
    sgm_dtype precision; /* SGM_FLOAT32 (default) or SGM_FLOAT64; SGM_BFLOAT16: layers compute in bfloat16,
                          * while parameters, optimisers and costs stay float32 (mixed precision) */
    /* How much the intermediate values of a training step may take, so the arena of sgm_trainer_memory: a
     * share of what they take, "0.5", or a size, "500MB". To keep to it values of the forward pass are
     * computed again for the gradients (gradient checkpointing), in up to a third more time and with the
     * same bits. If it is not enough, the least that works is taken, with a warning. Default: what it takes
     */
    const char *memory;
} SGM_BY_NAME sgm_env_options;
/* An environment without trainers; the name stands before messages and in identifiers. NULL on failure.
 * Freeing it frees all that was created from it. */
#define sgm_env_create(...) SGM_WITH_OPTIONS(sgm_env_create_with, sgm_env_options, __VA_ARGS__)
/* The members of sgm_env_options as rows, *count of them. */
SGM_API const sgm_setting *sgm_env_settings(size_t *count);
SGM_API sgm_env *sgm_env_create_with(const char *name, const sgm_env_options *options);
/* Frees all that was created from it, newest first; stops and awaits what runs in the background. */
SGM_API void sgm_env_free(sgm_env *env);
/* The name that it was created with. */
SGM_API const char *sgm_env_name(const sgm_env *env);
/* The newest environment of this name in the process, from any thread; NULL (and no error) if there is none.
 * Several may have one name, as parts of a program know nothing of each other. Whoever asks must know that it
 * is not freed meanwhile. */
SGM_API sgm_env *sgm_env_find(const char *name);
/* Called once when the environment is freed, after all that runs has ended and before anything is freed;
 * newest first. Not called if this fails. */
typedef void (*sgm_shutdown_function)(void *user);
/* Has a function called when the environment is freed. */
SGM_API sgm_status sgm_env_on_shutdown(sgm_env *env, sgm_shutdown_function function, void *user);
/* The first failure that stays in the environment, which later calls repeat, sgm_env_run first of all:
 * "digits: trainer 'a': column 14: unknown layer ..."; "" if there was none. What fails and changes nothing
 * does not stay (evaluating, predicting, saving, loading), so behind a call print sgm_last_error(), which has
 * both. */
SGM_API const char *sgm_env_error(const sgm_env *env);
/* The status of what sgm_env_error tells of; SGM_OK if there was no failure. */
SGM_API sgm_status sgm_env_status(const sgm_env *env);
/* The handler that all trainers share, created now if it was not; NULL on failure. The environment's. */
SGM_API sgm_handler *sgm_env_handler(sgm_env *env);
/* The trainers' registries under the trainers' names: "digits.optimiser.learning_rate". What
 * a part of an identifier cannot hold (dots, spaces, ...) is an underscore there. "env.seed" is the seed,
 * with a sign if it is 2^63 or more. Belongs to the environment. */
SGM_API sgm_registry *sgm_env_registry(sgm_env *env);

/* Belongs to the environment; NULL when that has failed, and while it runs. Names must differ, also as
 * parts of identifiers: "a.b" and "a_b" are an error. */
SGM_API sgm_trainer *sgm_trainer_create(sgm_env *env, const char *name);
/* A trainer that sgm_env_run does not run, but prepares: for predictions and evaluations, with parameters
 * that come from a checkpoint or from another trainer. Everything else is as with other trainers. */
SGM_API sgm_trainer *sgm_trainer_create_unscheduled(sgm_env *env, const char *name);

/* The trainer of this name, such as one that sgm_env_load has made; NULL (and no error) if there is none. It
 * belongs to the environment. Not while that runs, as branches may come then. */
SGM_API sgm_trainer *sgm_env_trainer(const sgm_env *env, const char *name);

/* Frees a trainer and takes it from the registry. SGM_ERROR_STATE while it or the environment runs, and for
 * the trainer of a model, which goes with its environment. */
SGM_API sgm_status sgm_env_remove_trainer(sgm_env *env, sgm_trainer *trainer);

/* Shows all trainers on the monitor, which belongs to the environment then, also on failure. */
SGM_API sgm_status sgm_env_add_monitor(sgm_env *env, sgm_monitor *monitor);

/* Takes a monitor away from its environment, and frees it: it ends as it does with the environment, and is
 * told of nothing more. SGM_ERROR_STATE while the environment runs. */
SGM_API sgm_status sgm_env_remove_monitor(sgm_env *env, sgm_monitor *monitor);

/* Saves all trainers into a folder, which is made: a checkpoint NAME.safetensors for each, as
 * sgm_trainer_save writes it, and behind them environment.json, which lists them with their checksums. A
 * folder that has all of one moment has this file; where it fails, the error names the trainer, and a list
 * that was there before is gone. */
SGM_API sgm_status sgm_env_save(sgm_env *env, const char *folder);
/* Loads what sgm_env_save wrote, each trainer as by sgm_trainer_load. Those that the environment does not
 * have are created, with the network of their checkpoint; one that the folder does not have is an error, as
 * is a file that is missing or another one than was saved: then nothing is changed. If a checkpoint does not
 * fit its trainer, the error names it; the ones before it in the list are loaded. SGM_ERROR_STATE while it
 * runs. */
SGM_API sgm_status sgm_env_load(sgm_env *env, const char *folder);

/* What sgm_env_run does first, without running: parameters of all trainers, unscheduled ones too, are
 * initialised, and monitors begin. */
SGM_API sgm_status sgm_env_prepare(sgm_env *env);

/* Runs all trainers with these options: one on this thread, several side by side, each on a thread of its own
 * and with a folder of its own below `folder`. Each computes what it would compute alone. They share the
 * handler: `cpu` gives its threads to one step at a time, so that no time is lost to trainers in each other's
 * way, nor gained but where one reads data while another computes.
 *
 * When a trainer fails, the others are stopped, and the first failure is the environment's. A signal
 * (.catch_interrupt) stops all. Observers and hooks of a trainer are called on its thread, so what several
 * trainers' functions have in common needs a lock. */
#define sgm_env_run(...) SGM_WITH_OPTIONS(sgm_env_run_with, sgm_run_options, __VA_ARGS__)
SGM_API sgm_status sgm_env_run_with(sgm_env *env, const sgm_run_options *options);
/* The same on another thread; returns when trainers take commands. Every one that succeeded wants a
 * sgm_env_wait. */
#define sgm_env_run_background(...)                                                                          \
    SGM_WITH_OPTIONS(sgm_env_run_background_with, sgm_run_options, __VA_ARGS__)
SGM_API sgm_status sgm_env_run_background_with(sgm_env *env, const sgm_run_options *options);
/* Waits for the end of what runs in the background, and returns what sgm_env_run would have; not from
 * observers and hooks. */
SGM_API sgm_status sgm_env_wait(sgm_env *env);
/* Stops all trainers that run, as sgm_trainer_stop does; from any thread. */
SGM_API sgm_status sgm_env_stop(sgm_env *env, const char *reason);

/* ======== monitors ========
 *
 * Monitors watch the trainers of an environment: sgm_env_add_monitor(env, sgm_terminal_monitor()).
 *
 *     sgm_env_add_monitor(env, sgm_web_monitor());     (a live control room in the browser)
 *     sgm_env_add_monitor(env, sgm_json_lines_monitor(.path = "events.jsonl"));     (for other programs)
 */

/* Frees a monitor that was given to no environment. */
SGM_API void sgm_monitor_free(sgm_monitor *monitor);

/* --- the terminal ---
 *
 * Progress on stdout: one line that is drawn again on a terminal, with a curve of the loss if the locale
 * speaks UTF-8, and plain lines elsewhere; colour unless NO_COLOR is set.
 *
 * With `keys`, while something runs and stdin and stdout are the terminal that this process is in front of,
 * single keys steer all trainers of the environment: space or p pauses and goes on, s does one iteration and
 * then pauses (10s: ten), q stops, c turns the curve on or off, h or ? tells of these. The terminal shows no
 * typed text then; its settings come back at the end of the run, at exit(), before a signal ends or suspends
 * the process (handlers that were there before are called after that); only SIGKILL leaves them as they are.
 * A program that asks for it must not read from stdin meanwhile, nor install handlers of signals that end the
 * process. One monitor of a process at a time has keys. */
typedef struct sgm_terminal_monitor_options {
    size_t struct_size;
    bool keys; /* default: none, and the terminal is left as it is */
} SGM_BY_NAME sgm_terminal_monitor_options;
#define sgm_terminal_monitor(...)                                                                            \
    sgm_terminal_monitor_with(SGM_OPTIONS(sgm_terminal_monitor_options, __VA_ARGS__))
/* NULL: out of memory, or the system refused a thread (sgm_last_error()). */
SGM_API sgm_monitor *sgm_terminal_monitor_with(const sgm_terminal_monitor_options *options);

/* --- the web monitor: charts, values that can be changed, commands, in a browser ---
 *
 * It serves from the first run (or sgm_env_prepare) until the environment is freed, on threads of its own,
 * and prints an address that opens the page by one click. Only who knows the token in it may look or change
 * anything. A training step waits for no browser: values are sampled in between iterations, so rarely that it
 * takes under a hundredth of the time, and with 3 pages that watch, too. */
typedef struct sgm_web_monitor_options {
    size_t struct_size;
    int port; /* default: the first free one from 8080 to 8099, or any; one that was given must be free */
    const char *address;     /* default "127.0.0.1"; others than loopback only with behind_proxy and token */
    bool behind_proxy;       /* browsers come through a proxy that speaks TLS with them ... */
    const char *public_host; /* ... and know it under this name, "example.org" or "example.org:8443" */
    const char *token;       /* at least 16 of A-Z a-z 0-9 - _; default: a new random one */
    /* Tokens for others, a line each: "ROLE TOKEN", and perhaps a name by which the journal knows who has it.
     * With the role "look" nothing can be changed, with "steer" not all; `token` is of the role "admin". */
    const char *tokens;
    double
        changes_per_second; /* of each token, in the long run, after 20; default 5; less than 0: any number */
    const char *title;      /* of the page; default: the environment's name */
    /* What the page shows until its user arranges it otherwise, as JSON: [{"title": "Mine", "panels":
     * [{"kind": "chart", "w": 8, "h": 9, "options": {"series": ["training.loss"]}}]}]. Default: tabs for
     * everything. */
    const char *tabs;
    /* Colours of trainers, of which a user may choose others, as JSON: {"generator": "#e69f00", "critic": 2}.
     * A number from 1 to 8 is one of the page's own, which are told apart in light and dark, by the
     * colour-blind too. Default: those of the page, in the trainers' order. */
    const char *colours;
    const char *configuration; /* shown as what the run was started with */
    bool wait; /* sgm_env_free waits, if anything was run, until somebody ends it on the page, or by Ctrl-C */
    bool quiet; /* the address is not printed, see sgm_web_monitor_url */
} SGM_BY_NAME sgm_web_monitor_options;
#define sgm_web_monitor(...) sgm_web_monitor_with(SGM_OPTIONS(sgm_web_monitor_options, __VA_ARGS__))
/* NULL: an option is wrong, the token or the address too (sgm_last_error()). A port that is taken is found
 * when it begins to serve. */
SGM_API sgm_monitor *sgm_web_monitor_with(const sgm_web_monitor_options *options);
/* "http://127.0.0.1:8080/?token=..."; "" while it does not serve, or of another monitor. */
SGM_API const char *sgm_web_monitor_url(sgm_monitor *monitor);

/* The version of sgm_panel_type. */
#define SGM_PANEL_API 1
/* A kind of panel of your own for the page. The module is text of JavaScript that calls definePanel(NAME,
 * ...); it imports from '../../panel.js', '../../api.js' and so on. web/panel.js describes what a kind has
 * and what it finds; its `title` is what it is called. What it asks the program for goes over the routes that
 * the page's own panels use. */
typedef struct sgm_panel_type {
    uint32_t api;       /* SGM_PANEL_API */
    const char *name;   /* at most 40 of a-z, 0-9, '_', '-', a letter first; of no other panel */
    const char *doc;    /* one line, for lists; may be NULL */
    const char *module; /* UTF-8 */
} sgm_panel_type;
/* `type` and its texts must stay. Any thread; pages that are open have it when they are loaded again. The
 * same table again does nothing. */
SGM_API sgm_status sgm_register_panel(const sgm_panel_type *type);

/* Registers each NAME.js of a folder as the panel NAME: a module as above, of at most 1 MiB. It is read once,
 * now. A folder without such files is an error; a file that cannot be one is an error with its name. */
SGM_API sgm_status sgm_register_panels(const char *folder);

/* --- events as lines of JSON, for other programs ---
 *
 * One object a line: {"event": "epoch", "trainer": "digits", "time": 1763749014.12, "iteration": 40, ...}.
 * The events are start, epoch, pause, resume, move (a reset or a restore), stop, change (of a value), and
 * iteration if asked for; their keys are those of docs/manual/21-other-monitors.md. Each line is written at
 * once; one that cannot be is the last, with a warning in the log, and the training goes on. Into a pipe or a
 * terminal lines go by a thread of their own, which keeps up to 1 MiB of them for a reader that is slow: the
 * training waits for none. */
typedef struct sgm_json_lines_monitor_options {
    size_t struct_size;
    const char *path;         /* lines are added at its end; default: stdout */
    int64_t every_iterations; /* a line for each that is a multiple of this; 0: none */
    double every_seconds;     /* a line for the first iteration after so long; 0: none */
} SGM_BY_NAME sgm_json_lines_monitor_options;
#define sgm_json_lines_monitor(...)                                                                          \
    sgm_json_lines_monitor_with(SGM_OPTIONS(sgm_json_lines_monitor_options, __VA_ARGS__))
/* NULL: an option is wrong, or the file cannot be opened (sgm_last_error()). */
SGM_API sgm_monitor *sgm_json_lines_monitor_with(const sgm_json_lines_monitor_options *options);

/* --- files for TensorBoard, which the training needs nothing of ---
 *
 * FOLDER/TRAINER/events.out.tfevents.*: scalars over iterations (loss, accuracy, validation and what metrics
 * measured at the end of epochs; loss of the minibatch, learning rate and examples per second also within
 * them), and histograms of the parameters of up to a million numbers at the end of epochs, so rarely that
 * they take less than a fiftieth of the time. A file that cannot be written is told of in the log, and the
 * training goes on. */
typedef struct sgm_tensorboard_monitor_options {
    size_t struct_size;
    const char *folder;       /* made if it is not there */
    int64_t every_iterations; /* scalars of each that is a multiple of this; 0: none */
    double every_seconds;     /* of the first iteration after so long; default, if both are 0: 1 */
    bool no_histograms;       /* scalars alone */
} SGM_BY_NAME sgm_tensorboard_monitor_options;
#define sgm_tensorboard_monitor(...)                                                                         \
    sgm_tensorboard_monitor_with(SGM_OPTIONS(sgm_tensorboard_monitor_options, __VA_ARGS__))
/* NULL: an option is wrong, or the folder cannot be made (sgm_last_error()). */
SGM_API sgm_monitor *sgm_tensorboard_monitor_with(const sgm_tensorboard_monitor_options *options);

/* ======== models ========
 *
 * Models: the short way. The same parts, in three lines.
 *
 *     sgm_model *model = sgm_sequential(env, sgm_dense(.size = 10, .activation = "relu"),
 *                                       sgm_dense(.size = 3), sgm_softmax_cross_entropy());
 *     sgm_model_train(model, features, labels, .epochs = 50);
 *     sgm_tensor *prediction = sgm_model_predict(model, samples);
 */

/* A trainer with a network, for the short way. */
typedef struct sgm_model sgm_model;

/* Takes the layers; an input layer is put in front if there is none, mean_squared at the end if there is no
 * cost. The model belongs to the environment. */
SGM_API sgm_model *sgm_sequential_with(sgm_env *env, sgm_layer *const *layers, size_t count);
/* A model of the layers that are listed: sgm_sequential(env, sgm_dense(.size = 3)). */
#define sgm_sequential(env, ...) sgm_sequential_with(env, SGM_LAYERS(__VA_ARGS__))

typedef struct sgm_model_options {
    size_t struct_size;
    int64_t epochs;           /* default 10; training again goes on */
    int64_t batch;            /* examples of a minibatch, default 32 */
    sgm_optimiser *optimiser; /* taken; default adam; one that comes after the model has one fails */
} SGM_BY_NAME sgm_model_options;
/* Trains on features (examples, ...) and labels (examples, ...), which are copied. */
#define sgm_model_train(...) SGM_WITH_OPTIONS_3(sgm_model_train_with, sgm_model_options, __VA_ARGS__)
SGM_API sgm_status sgm_model_train_with(sgm_model *model, sgm_tensor *features, sgm_tensor *labels,
                                        const sgm_model_options *options);
/* What the model gives for samples (examples, ...): a new tensor, (examples, ...). */
SGM_API sgm_tensor *sgm_model_predict(sgm_model *model, sgm_tensor *samples);
/* From now on predictions and evaluations of a trained model multiply integers of 8 bits: type "int8", as
 * sgm_trainer_set_inference has it; NULL: numbers as they were trained. */
SGM_API sgm_status sgm_model_quantize(sgm_model *model, const char *type);
/* Loss and accuracy of the predictions for `features`, against `labels`. */
SGM_API sgm_status sgm_model_evaluate(sgm_model *model, sgm_tensor *features, sgm_tensor *labels,
                                      sgm_metrics *metrics);
SGM_API sgm_trainer *
sgm_model_trainer(sgm_model *model); /* for saving, loading, looking; NULL before the first training */

/* A model around a trainer of the environment, which has a network and is no other model's: the short way for
 * a trainer that was made by hand. The model belongs to the environment; NULL on failure. */
SGM_API sgm_model *sgm_model_of(sgm_env *env, sgm_trainer *trainer);
/* A trained network from a checkpoint, or from the folder of a run: its layers, parameters and precision, and
 * the pipeline of a table by the names of its columns (sigma/table.h). Nothing else is needed to predict.
 * Training it again begins with adam. The model belongs to the environment; NULL on failure. */
SGM_API sgm_model *sgm_model_load(sgm_env *env, const char *path);

/* A cell of a row: a text or a number. All 0: there is no value. */
typedef struct sgm_cell {
    const char *text; /* also of dates; NULL: there is no value */
    double number;    /* with is_number; NaN: there is no value */
    bool is_number;   /* `number` counts, not `text` */
} sgm_cell;
/* A cell with a text, which is not copied; NULL: no value. */
SGM_API sgm_cell sgm_cell_of_text(const char *text);
/* A cell with a number; NaN: no value. */
SGM_API sgm_cell sgm_cell_of_number(double number);

/* Predictions for rows of a table, as it was before the training: `count` names of columns, in any order, and
 * as many cells for each row, one row after the other. Columns that the network does not use are passed over.
 *
 *     sgm_model *model = sgm_model_load(env, "runs/houses");
 *     sgm_cell row[] = {sgm_cell_of_text("Ulm"), sgm_cell_of_number(156.1)};
 *     sgm_tensor *prices = sgm_model_predict_rows(model, (const char *const[]){"town", "area"}, 2, row, 1);
 *
 * The new tensor is (rows, outputs) in float64: numbers in the units of the table, or a probability for each
 * class. NULL and an error with row and column: a column that is missing, a category that was in no row of
 * the training, a text where a number was. */
SGM_API sgm_tensor *sgm_model_predict_rows(sgm_model *model, const char *const *columns, size_t count,
                                           const sgm_cell *cells, int64_t rows);
/* The name of the likeliest class of a row of such predictions; NULL: the model predicts numbers, or there is
 * no such row. */
SGM_API const char *sgm_model_class(const sgm_model *model, const sgm_tensor *predictions, int64_t row);

/* ======== searches ========
 *
 * Search: many trainings with different values, and which of them is best.
 *
 *     static sgm_status set_up(void *user, const sgm_trial *trial, sgm_trainer *trainer)
 *     {
 *         sgm_trainer_set_network(trainer, "input(4) + dense(16, tanh) + dense(3) + softmax_cross_entropy");
 *         int64_t size = (int64_t)sgm_trial_number(trial, "batch");
 *         sgm_trainer_set_data(trainer, sgm_minibatches(iris, .size = size));
 *         return sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.01));
 *     }
 *
 *     sgm_search *search = sgm_search_create(
 *         env, .method = SGM_SEARCH_HALVING, .set_up = set_up, .trials = 27, .epochs = 27, .folder = "found",
 *         .objective = "training.loss",
 *         .values = {{"optimiser.learning_rate", .from = 1e-4, .to = 0.1, .logarithmic = true},
 *                    {"batch", SGM_CHOICES("8", "16", "32")}});
 *     if (sgm_search_run(search) == SGM_OK)
 *         printf("%s\n", sgm_search_best(search)->name);
 *     sgm_search_free(search);
 *
 * A trial is a trainer of the environment that lives while it runs, with a folder of its own below the
 * search's: FOLDER/trial-007. FOLDER/search.jsonl has a line for each piece of training that has ended, so
 * that a search that was interrupted or killed goes on where it was; FOLDER/results.csv is the table. */

/* The most values that a search can vary. */
#define SGM_SEARCH_VALUES 32
/* The most trials of a search. */
#define SGM_SEARCH_MAXIMUM_TRIALS 10000

/* How the values of trials are chosen. */
typedef enum sgm_search_method {
    SGM_SEARCH_GRID,   /* every combination; the last value changes fastest */
    SGM_SEARCH_RANDOM, /* drawn independently (Bergstra and Bengio, 2012); no combination twice */
    /* Successive halving (Jamieson and Talwalkar, 2016), with rungs as Hyperband has them (Li et al., 2018):
     * all trials train a little, the best 1/factor of them go on from their checkpoints, and so on. */
    SGM_SEARCH_HALVING,
    /* Tree-structured Parzen estimator (Bergstra et al., 2011): the first trials are drawn as at random, each
     * later one where the best trials so far lie closer together than the others. */
    SGM_SEARCH_TPE
} sgm_search_method;
/* Whether a trial that looks bad ends early. */
typedef enum sgm_search_pruning {
    SGM_PRUNING_NONE, /* all trials go to their end */
    /* A trial ends early if, at the end of an epoch, its best objective so far is worse than the median of
     * what the trials that have ended had after the same epoch (the rule of Golovin et al., 2017, for single
     * objectives; not for halving, which stops trials itself). */
    SGM_PRUNING_MEDIAN
} sgm_search_pruning;
/* Whether a large or a small objective is good. */
typedef enum sgm_search_goal {
    SGM_SEARCH_BY_NAME, /* as sgm_criteria_parse finds whether a value should fall */
    SGM_SEARCH_MAXIMUM, /* the largest is the best */
    SGM_SEARCH_MINIMUM  /* the smallest is the best */
} sgm_search_goal;

/* What one value may be: choices, or a number in a range. */
typedef struct sgm_search_values {
    const char *name;           /* an identifier of the trainer, or a name that only set_up knows */
    const char *const *choices; /* texts, NULL behind the last; NULL: a range */
    double from, to;            /* a range, both ends included; not for a grid, unless there are steps */
    bool logarithmic;           /* the logarithm is uniform; from > 0 */
    bool whole;                 /* whole numbers only */
    int64_t steps;              /* at least 2: so many choices, evenly spread; 0: any number of the range */
} sgm_search_values;
/* Texts as a list for `choices`: SGM_CHOICES("8", "16"). */
#define SGM_CHOICES(...)                                                                                     \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

/* Where a trial stands. */
typedef enum sgm_trial_state {
    SGM_TRIAL_WAITING, /* has not begun, or was interrupted */
    SGM_TRIAL_RUNNING, /* now */
    SGM_TRIAL_DONE,    /* to the last epoch, or to where a rule or a command has stopped it */
    SGM_TRIAL_DROPPED, /* halving, pruning: others were better */
    SGM_TRIAL_FAILED   /* `error` says why; the search goes on without it */
} sgm_trial_state;
/* "waiting" and so on. */
SGM_API const char *sgm_trial_state_name(sgm_trial_state state);

/* A value of a trial. */
typedef struct sgm_trial_value {
    const char *name, *text; /* which value, and what it is in this trial */
    const char *brief;       /* the text without what all choices of it have in common, if it is long */
    double number;           /* NaN if the text is none */
} sgm_trial_value;
/* A training of a search; the search's, as all in it. */
typedef struct sgm_trial {
    int64_t number;                /* from 1 */
    const char *name;              /* "trial-007": the trainer's */
    const char *folder;            /* of its run */
    const sgm_trial_value *values; /* in the order of the options */
    size_t value_count;            /* 0: TPE chooses the values when the trial begins */
    sgm_trial_state state;         /* where it stands */
    int64_t rung;                  /* rungs that it has climbed: 0 or 1 but for halving */
    int64_t epochs;                /* trained so far */
    double objective;  /* of 9 digits, at the end of the newest rung that it has climbed, or where it was
                        * pruned; NaN: of none */
    double seconds;    /* of training, without what a crash has lost */
    const char *error; /* why it failed; NULL: it did not */
} sgm_trial;
/* A value by name, for set_up; one that the search does not have is NULL or NaN, with an error. */
SGM_API const char *sgm_trial_text(const sgm_trial *trial, const char *name);
/* A value by name as a number; NaN: it is none, or (with an error) the search does not have it. */
SGM_API double sgm_trial_number(const sgm_trial *trial, const char *name);

/* Gives the trainer network, data, optimiser, ... One trial at a time, but on any thread. Values that it asks
 * for are its business; the others are set in the trainer's registry afterwards, where they must be. A value
 * named "seed" is the trainer's seed. */
typedef sgm_status (*sgm_search_set_up)(void *user, const sgm_trial *trial, sgm_trainer *trainer);

/* What a search tells of. */
typedef enum sgm_search_event {
    SGM_SEARCH_TRIAL_BEGINS, /* or goes on */
    SGM_SEARCH_EPOCH,        /* of a trial has ended */
    SGM_SEARCH_TRIAL_ENDS,   /* this piece of it: halving may go on with it */
    SGM_SEARCH_RUNG_ENDS     /* `trial` is the best so far, NULL: none */
} sgm_search_event;
/* How a search stands, for those who watch. */
typedef struct sgm_search_progress {
    sgm_search_event event; /* what has just happened */
    const sgm_trial *trial; /* to which trial */
    size_t rung, rungs;     /* from 0 */
    size_t ended, trials;   /* of this rung */
    const sgm_trial *best;  /* NULL: none yet */
    double objective;       /* EPOCH: just now; NaN: it is not there yet */
    double seconds_left;    /* negative: unknown */
} sgm_search_progress;
/* One call at a time, on the trials' threads; false ends the search, with checkpoints. It must not read what
 * is another running trial's trainer's, which may be waiting for it. */
typedef bool (*sgm_search_function)(void *user, const sgm_search_progress *progress);

typedef struct sgm_search_options {
    size_t struct_size;
    sgm_search_method method;                    /* default: a grid */
    sgm_search_values values[SGM_SEARCH_VALUES]; /* the first one without a name ends them */
    const char *objective;  /* number in the trainer's registry after its last epoch; default
                             * "validation.loss" */
    sgm_search_goal goal;   /* default: by the objective's name */
    int64_t trials;         /* not for a grid: default 20, but halving over choices only: all combinations */
    int64_t startup_trials; /* TPE: that are drawn at random first; default 10 */
    uint64_t seed;          /* of what is drawn; trial n is a function of it and n (TPE: and of the results
                             * that are there when the trial begins) */
    double factor;          /* halving: from 2; default 3 */
    int64_t minimum_epochs; /* halving: of the first rung at least; default 1 */
    sgm_search_pruning pruning; /* default: none */
    int64_t prune_after_trials; /* pruning: none before so many trials have ended; default 5 */
    int64_t prune_after_epochs; /* pruning: none before so many epochs of a trial; default 1 */
    int64_t at_once;            /* trials side by side; default 1 */
    int64_t epochs;             /* of a whole training, which schedules refer to also in earlier rungs */
    int64_t iterations;         /* not for halving */
    int64_t checkpoint_every;   /* epochs, as in sgm_run_options */
    const char *folder;         /* of the search; must be given */
    bool resume; /* go on with what the folder has, if anything; what was searched must be the same */
    bool catch_interrupt;         /* as in sgm_run_options */
    sgm_search_set_up set_up;     /* required */
    sgm_search_function progress; /* NULL: nobody is told */
    void *user;                   /* of both */
} SGM_BY_NAME sgm_search_options;
/* A search: its trials and what they found. */
typedef struct sgm_search sgm_search;
/* Plans: every trial has its values then, but those that TPE chooses later. NULL on failure. Free it before
 * the environment. */
#define sgm_search_create(...) SGM_WITH_OPTIONS(sgm_search_create_with, sgm_search_options, __VA_ARGS__)
SGM_API sgm_search *sgm_search_create_with(sgm_env *env, const sgm_search_options *options);
SGM_API void sgm_search_free(sgm_search *search);

/* How many trials there are. */
SGM_API size_t sgm_search_count(const sgm_search *search);
/* In order of their numbers, from 0. Stays; while the search runs only its own functions may look. */
SGM_API const sgm_trial *sgm_search_trial_at(const sgm_search *search, size_t index);
/* How many trials get so many epochs in all; false: there are not so many rungs. */
SGM_API bool sgm_search_rung(const sgm_search *search, size_t rung, int64_t *trials, int64_t *epochs);

/* Runs the trials, once. The environment takes no other trainers and runs meanwhile; sgm_env_stop ends it,
 * with checkpoints. SGM_ERROR_INTERRUPTED: stopped before the end. A trial that fails does not stop the
 * others; that all did, or that the objective is nowhere after the first epoch, is a failure of the search.
 */
SGM_API sgm_status sgm_search_run(sgm_search *search);
/* The best of those on the highest rung; NULL: there is none. */
SGM_API const sgm_trial *sgm_search_best(const sgm_search *search);
/* The trials, best first, failed ones last: for people, those that have begun; as in results.csv, all. Free
 * with sgm_string_free. */
SGM_API char *sgm_search_text(const sgm_search *search);
/* Trials that must have ended before sgm_search_importance says anything. */
#define SGM_SEARCH_IMPORTANCE_TRIALS 10
/* How much each value matters: the share of the variance of the trials' ranks that the value explains alone,
 * 0 to 1; what is missing to 1 is of several values together, or chance. By fANOVA (Hutter, Hoos and
 * Leyton-Brown, 2014) over a random forest (Breiman, 2001) of 64 trees; ranks are those of the tables, so
 * that a loss that explodes counts no more than the last place. `shares` has room for the values, in their
 * order. SGM_ERROR_STATE: fewer than SGM_SEARCH_IMPORTANCE_TRIALS trials have ended. */
SGM_API sgm_status sgm_search_importance(const sgm_search *search, double *shares, size_t count);
/* All trials as results.csv has them; free with sgm_string_free. */
SGM_API char *sgm_search_csv(const sgm_search *search);

#ifdef __cplusplus
}
#endif
#endif
