/* Monitors watch the trainers of an environment: sgm_env_monitor(env, sgm_terminal_monitor()).
 *
 *     sgm_env_monitor(env, sgm_web_monitor());     (a live control room in the browser)
 *     sgm_env_monitor(env, sgm_json_lines_monitor(.path = "events.jsonl"));     (for other programs)
 */
#ifndef SIGMA_MONITOR_H
#define SIGMA_MONITOR_H

#include <sigma/training.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_monitor sgm_monitor;
SGM_API void sgm_monitor_free(sgm_monitor *monitor); /* only for one that was given to no environment */

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
} sgm_terminal_monitor_options;
#define sgm_terminal_monitor(...)                                                                            \
    sgm_terminal_monitor_create(SGM_OPTIONS(sgm_terminal_monitor_options, __VA_ARGS__))
/* NULL: out of memory, or the system refused a thread (sgm_last_error()). */
SGM_API sgm_monitor *sgm_terminal_monitor_create(const sgm_terminal_monitor_options *options);

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
    const char *title;       /* of the page; default: the environment's name */
    /* What the page shows until its user arranges it otherwise, as JSON: [{"title": "Mine", "panels":
     * [{"kind": "chart", "w": 8, "h": 9, "options": {"series": ["training.loss"]}}]}]. Default: tabs for
     * everything. */
    const char *tabs;
    const char *configuration; /* shown as what the run was started with */
    bool wait; /* sgm_env_free waits, if anything was run, until somebody ends it on the page, or by Ctrl-C */
    bool quiet; /* the address is not printed, see sgm_web_monitor_url */
} sgm_web_monitor_options;
#define sgm_web_monitor(...) sgm_web_monitor_create(SGM_OPTIONS(sgm_web_monitor_options, __VA_ARGS__))
/* NULL: an option is wrong, the token or the address too (sgm_last_error()). A port that is taken is found
 * when it begins to serve. */
SGM_API sgm_monitor *sgm_web_monitor_create(const sgm_web_monitor_options *options);
/* "http://127.0.0.1:8080/?token=..."; "" while it does not serve, or of another monitor. */
SGM_API const char *sgm_web_monitor_url(sgm_monitor *monitor);

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
} sgm_json_lines_monitor_options;
#define sgm_json_lines_monitor(...)                                                                          \
    sgm_json_lines_monitor_create(SGM_OPTIONS(sgm_json_lines_monitor_options, __VA_ARGS__))
/* NULL: an option is wrong, or the file cannot be opened (sgm_last_error()). */
SGM_API sgm_monitor *sgm_json_lines_monitor_create(const sgm_json_lines_monitor_options *options);

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
    bool no_histograms;
} sgm_tensorboard_monitor_options;
#define sgm_tensorboard_monitor(...)                                                                         \
    sgm_tensorboard_monitor_create(SGM_OPTIONS(sgm_tensorboard_monitor_options, __VA_ARGS__))
/* NULL: an option is wrong, or the folder cannot be made (sgm_last_error()). */
SGM_API sgm_monitor *sgm_tensorboard_monitor_create(const sgm_tensorboard_monitor_options *options);

#ifdef __cplusplus
}
#endif
#endif
