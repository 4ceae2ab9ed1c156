/* Time in a training: scales of events, and steps that count them. */
#ifndef SIGMA_TIME_H
#define SIGMA_TIME_H

#include <sigma/units.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, text; determinate ones first, from short to long */
#define SGM_TIME_SCALE_LIST(X)                                                                               \
    X(ITERATION, "iteration")                                                                                \
    X(EPOCH, "epoch")                                                                                        \
    X(START, "start")                                                                                        \
    X(STOP, "stop")                                                                                          \
    X(PAUSE, "pause")                                                                                        \
    X(RESUME, "resume")                                                                                      \
    X(RESET, "reset")
typedef enum sgm_time_scale {
#define SGM_TIME_SCALE_ENUM(name, text) SGM_##name,
    SGM_TIME_SCALE_LIST(SGM_TIME_SCALE_ENUM)
#undef SGM_TIME_SCALE_ENUM
        SGM_TIME_SCALE_COUNT
} sgm_time_scale;
SGM_API const char *sgm_time_scale_name(sgm_time_scale scale);
SGM_API sgm_status sgm_time_scale_parse(const char *name, sgm_time_scale *scale);

/* When: every `interval` events of a scale, first at the interval-th; `live` times in all (0: for ever). */
typedef struct sgm_time_step {
    sgm_time_scale scale;
    int64_t interval; /* 0 counts as 1 */
    int64_t live;
} sgm_time_step;
SGM_API sgm_time_step sgm_every(int64_t interval, sgm_time_scale scale);
SGM_API sgm_time_step sgm_after(int64_t count, sgm_time_scale scale); /* once, at the count-th event */
SGM_API sgm_time_step sgm_live(sgm_time_step step, int64_t times);
SGM_API bool sgm_time_step_equal(const sgm_time_step *a, const sgm_time_step *b);
/* Whether everything due at `b` is due at `a` too: `a` may be required by `b`. Same scale: b's interval is a
 * multiple of a's; an iteration step goes with an epoch step; lifecycle scales only with themselves; `a` must
 * live long enough. */
SGM_API bool sgm_time_step_covers(const sgm_time_step *a, const sgm_time_step *b);
/* "every 5 epochs", "after 3 iterations", "at start", as sgm_time_step_parse reads it; returns `buffer` (96
 * bytes are always enough). */
SGM_API char *sgm_time_step_text(const sgm_time_step *step, char *buffer, size_t size);
/* "every 5 epochs", "every epoch", "every 10 epochs, 3 times", "after 100 iterations", "at epoch 5" (the same
 * as "after 5 epochs"), "at stop" (at every stop); errors name the column. */
SGM_API sgm_status sgm_time_step_parse(const char *text, sgm_time_step *step);

/* A holder's count of a step: every holder (a hook in a worker) has its own. */
typedef struct sgm_time_count {
    int64_t left; /* events until due; 0: not begun */
    int64_t used; /* times it was due */
} sgm_time_count;
/* Counts one event of `scale`; true: due now. A step that has lived is never due again. */
SGM_API bool sgm_time_count_event(const sgm_time_step *step, sgm_time_count *count, sgm_time_scale scale);
SGM_API bool sgm_time_count_is_dead(const sgm_time_step *step, const sgm_time_count *count);

#ifdef __cplusplus
}
#endif
#endif
