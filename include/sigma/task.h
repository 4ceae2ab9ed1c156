/* Tasks: what takes long, for everyone who wants to see it or to end it.
 *
 *     sgm_task task = sgm_task_begin(SGM_TASK_LOAD, "the recordings", "files");
 *     for (i = 0; i < count && sgm_task_progress(task, i, count); i++)
 *         ...
 *     sgm_task_end(task, status);
 *
 * The library tells of its own: downloads, extractions, preparing and training, kernels that a device's
 * compiler makes, checkpoints. They are in one
 * table of the process; when it is full (64), or a task is 0, nothing is told and the work goes on. Telling
 * takes no memory, and some nanoseconds while nobody watches. All functions may be called from any thread,
 * for one task from one thread at a time. */
#ifndef SIGMA_TASK_H
#define SIGMA_TASK_H

#include <sigma/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, noun, while it goes on */
#define SGM_TASK_LIST(X)                                                                                     \
    X(DOWNLOAD, "download", "downloading")                                                                   \
    X(UNPACK, "unpack", "unpacking")                                                                         \
    X(EXTRACT, "extract", "extracting")                                                                      \
    X(PREPARE, "prepare", "preparing")                                                                       \
    X(COMPILE, "compile", "compiling")                                                                       \
    X(TRAIN, "train", "training")                                                                            \
    X(SEARCH, "search", "searching")                                                                         \
    X(LOAD, "load", "loading")                                                                               \
    X(SAVE, "save", "saving")
typedef enum sgm_task_kind {
#define SGM_TASK_ENUM(name, noun, going) SGM_TASK_##name,
    SGM_TASK_LIST(SGM_TASK_ENUM)
#undef SGM_TASK_ENUM
        SGM_TASK_KIND_COUNT
} sgm_task_kind;
SGM_API const char *sgm_task_kind_name(sgm_task_kind kind);  /* "download" */
SGM_API const char *sgm_task_kind_going(sgm_task_kind kind); /* "downloading" */

typedef enum sgm_task_status {
    SGM_TASK_RUNNING,
    SGM_TASK_ENDED,
    SGM_TASK_FAILED,
    SGM_TASK_CANCELLED
} sgm_task_status;
typedef int64_t sgm_task; /* never twice the same in a process; 0: none */
typedef struct sgm_task_info {
    sgm_task task;
    sgm_task_kind kind;
    sgm_task_status status;
    char description[160]; /* "train-images-idx3-ubyte.gz" */
    char unit[16];         /* of done and total: "bytes", "iterations"; "": nothing is counted */
    uint64_t done, total;  /* total 0: unknown */
    double progress;       /* 0 to 1; negative: unknown */
    double rate;           /* units per second since it began; 0: unknown */
    double began;          /* seconds since 1970 */
    double seconds;        /* since then */
    bool can_cancel;
} sgm_task_info;

/* Texts are copied; `unit` may be NULL. */
SGM_API sgm_task sgm_task_begin(sgm_task_kind kind, const char *description, const char *unit);
/* The task looks at what sgm_task_progress returns. */
SGM_API void sgm_task_can_cancel(sgm_task task);
/* `done` of `total` (0: unknown). False: it was cancelled, and the work should end. */
SGM_API bool sgm_task_progress(sgm_task task, uint64_t done, uint64_t total);
/* SGM_OK: ended, SGM_ERROR_INTERRUPTED: cancelled, another one: failed. */
SGM_API void sgm_task_end(sgm_task task, sgm_status status);

/* Those that are running, oldest first: copies up to `room` of them, and returns how many there are. */
SGM_API size_t sgm_tasks(sgm_task_info *infos, size_t room);
/* Asks a running task to end. SGM_ERROR_NOT_FOUND: it is not running any more; SGM_ERROR_UNSUPPORTED: it
 * cannot be. */
SGM_API sgm_status sgm_task_cancel(sgm_task task);
/* Told when a task begins, at most ten times a second about its progress, and when it has ended; on the
 * task's thread, one call at a time. Of what such a function begins itself nobody is told. All other tasks
 * wait for it, so it must not wait for them: not for a trainer's values, for one. */
typedef void (*sgm_task_function)(void *user, const sgm_task_info *info);
SGM_API sgm_status sgm_task_watch(sgm_task_function function, void *user); /* at most 16 */
/* Not called any more once this has returned. */
SGM_API void sgm_task_unwatch(sgm_task_function function, void *user);

#ifdef __cplusplus
}
#endif
#endif
