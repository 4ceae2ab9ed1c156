/* The web monitor itself: beginning and end, what is recorded, and what is told of it. Internal to these;
 * other parts need web.h only. */
#ifndef SGM_MONITORS_WEB_INTERNAL_H
#define SGM_MONITORS_WEB_INTERNAL_H

#include "monitors/http/http.h"
#include "monitors/web/series.h"
#include "monitors/web/web.h"
#include "trainer/view.h"

#define SGM__WEB_TICK_SECONDS 0.1

struct sgm__web {
    sgm_monitor base;
    sgm_web_monitor_options options; /* texts are its own */
    json_t *tabs;                    /* NULL: none */
    sgm__monitor_host host;
    void *states[SGM__WEB_PART_COUNT];
    sgm__http_route *routes; /* of all parts */
    size_t route_count;
    sgm__http *_Atomic http; /* NULL: does not serve */
    atomic_bool started;     /* it was tried */
    pthread_t ticker;
    bool ticks;     /* the thread is there */
    bool abandoned; /* a request did not come back: this struct stays */
    atomic_bool ran, interrupted;
    atomic_bool list_changed; /* trainers came or went */

    pthread_mutex_t lock; /* guards what follows, and borrowed and leaving of trainers; held shortly */
    pthread_cond_t changed;
    sgm__web_trainer **trainers; /* entries stay where they are */
    size_t trainer_count, trainer_capacity;
    bool ending;            /* the ticker is to end */
    bool waiting, finished; /* for people who watch; they have said so */
};

sgm_status sgm__web_start(sgm__web *web); /* once; what began it may be any run */
void sgm__web_finish(sgm__web *web);      /* whoever watches has seen enough */
bool sgm__web_waits(sgm__web *web);

/* --- recording.c: what a trainer's values were --- */

/* A value that is recorded. Items stay as long as the recording. */
typedef struct sgm__web_item {
    char *identifier;
    size_t index;         /* among the items */
    const char *name;     /* its last part */
    sgm_registry *parent; /* that has it; NULL: not known, or it has no value now */
    bool active;
    bool is_default; /* recorded for all */
    bool told;       /* by the progress of epochs: not read */
    bool begun;      /* had a number */
    sgm__series *series;
} sgm__web_item;

typedef struct sgm__web_sample {
    sgm__web_moment moment;
    size_t first, count; /* of its values */
} sgm__web_sample;

typedef struct sgm__web_value {
    sgm__web_item *item;
    double value;
} sgm__web_value;

typedef struct sgm__web_point {
    const sgm__web_sample *sample;
    double value;
} sgm__web_point;

typedef struct sgm__web_samples {
    sgm__web_sample *samples;
    sgm__web_value *values;
    size_t count, value_count, capacity, value_capacity;
} sgm__web_samples;

/* The newest progress without what it points at, and facts. */
typedef struct sgm__web_status {
    sgm_training_progress progress;
    sgm__web_moment moment;
    char reason[256];
    bool has_folder;
    int64_t parameters, stride;
    char *network; /* notation */
    uint64_t version;
} sgm__web_status;

/* What the newest epoch measured; its validation (count > 0) until it is sampled. */
#define SGM__WEB_VALIDATIONS 8
typedef struct sgm__web_epoch {
    sgm__web_moment moment;
    sgm_metrics training; /* no examples: there was none in this run */
    size_t count;
    const char *names[SGM__WEB_VALIDATIONS]; /* the trainer's */
    double losses[SGM__WEB_VALIDATIONS], accuracies[SGM__WEB_VALIDATIONS];
    sgm__web_item *loss_items[SGM__WEB_VALIDATIONS], *accuracy_items[SGM__WEB_VALIDATIONS];
} sgm__web_epoch;

/* What an epoch's validation gave. */
typedef struct sgm__web_validation {
    char *name;
    double loss, accuracy;
} sgm__web_validation;

typedef struct sgm__web_recording {
    sgm__web_trainer *watched;
    pthread_mutex_t sampling; /* guards what follows; held for less than a sample takes */
    sgm__web_item **items;
    size_t item_count, item_capacity;
    sgm__web_samples samples; /* that the ticker has not yet */
    sgm__web_status status;
    sgm__web_epoch epoch;
    sgm__web_validation newest[SGM__WEB_VALIDATIONS];
    size_t newest_count;
    char **pending; /* identifiers, wildcards too, that are recorded once they are there */
    size_t pending_count, pending_capacity;
    bool settled;                /* it has ended an epoch, so that all that it has values of is there */
    double start, start_seconds; /* epoch and seconds of the run at which it began, or was moved to */
    double base;                 /* the training's seconds less the run's */
    /* of the training's thread */
    double cost, epoch_cost; /* of a sample, seconds */
    double step;             /* seconds of an iteration */
    double sampled;          /* when the newest sample was done; 0: nothing to compare with */
    int64_t iteration;       /* of the newest sample */
    int64_t stride, next_iteration;
    int64_t next_epoch; /* epochs that end before this iteration are not sampled */

    pthread_mutex_t store; /* guards items' series, and: */
    sgm__clock *clock;
    /* the ticker's own */
    sgm__web_samples drained;
    sgm__web_item **item_copies;
    size_t drained_items, item_copy_capacity;
    sgm__web_point *points; /* what was drained, item by item: from starts[i] to starts[i + 1] - 1 */
    size_t *starts, point_capacity, start_capacity;
    int64_t drained_stride;
    int64_t stored; /* iteration of the newest sample in the series */
    int64_t cut;    /* what was drained began anew from here on; INT64_MAX: it did not */
    uint64_t shown; /* version of the status that pages know */
    sgm__web_standing shown_standing;
} sgm__web_recording;

sgm__web_recording *sgm__web_recording_create(sgm__web_trainer *watched);
void sgm__web_recording_free(sgm__web_recording *recording);
void sgm__web_recording_leave(sgm__web_recording *recording); /* nothing is read any more */
/* Records all that match; the trainer is borrowed, and waited for. Adds their identifiers to the array. None:
 * an error, but for a run that is not settled; there what comes later is recorded then, and *pending is true.
 */
sgm_status sgm__web_watch(sgm__web_recording *recording, const char *identifier, json_t *identifiers,
                          bool *pending);
void sgm__web_unwatch(sgm__web_recording *recording, const char *identifier, json_t *identifiers);

/* Whether a value that is not recorded may be one day. */
bool sgm__web_may_come(sgm__web_recording *recording, const char *identifier);

void sgm__web_take_pending(sgm__web_recording *recording); /* on the training's thread */

/* With the sampling lock: */
/* The one of that name, made if it is not there. NULL: an error says why. */
sgm__web_item *sgm__web_add_item(sgm__web_recording *recording, const char *identifier, bool is_default);
void sgm__web_add_costs(sgm__web_recording *recording);
void sgm__web_find_parents(sgm__web_recording *recording);
/* False: there is no room, until the monitor's thread has come. */
bool sgm__web_begin_sample(sgm__web_samples *samples, sgm__web_moment moment);
void sgm__web_add_value(sgm__web_samples *samples, sgm__web_item *item, double value); /* to the newest */
void sgm__web_take_values(sgm__web_recording *recording, bool begins); /* of all that is watched */

/* --- sampler.c --- */

/* An observer of the trainer. */
bool sgm__web_observe(void *recording, const sgm_training_progress *progress);
/* Facts of a trainer that does not run. */
void sgm__web_refresh(sgm__web_recording *recording);

/* --- drain.c --- */

/* Takes the samples into the series; they stay in `drained` until the next call. */
void sgm__web_drain(sgm__web_recording *recording);
/* Fills in points and starts; false: there are none, or no memory. Only what came after a cut. */
bool sgm__web_sort_drained(sgm__web_recording *recording);

/* --- json.c --- */

/* A number as JSON, and a text with its quotes; both as a member of an object, which is not its first. */
void sgm__web_append_number(sgm__text *text, double value);
void sgm__web_append_text(sgm__text *text, const char *value);
void sgm__web_append_member(sgm__text *text, const char *name, double value);
void sgm__web_append_named(sgm__text *text, const char *name, const char *value);
sgm_status sgm__web_answer(sgm__http_answer *answer, sgm__text *json); /* takes the text */

/* --- session.c --- */

sgm__web_status sgm__web_copy_status(sgm__web_recording *recording); /* free its network */
void sgm__web_append_status(sgm__text *text, const sgm__web_trainer *watched, const sgm__web_status *status,
                            const sgm__web_standing *standing);
sgm_status sgm__web_get_session(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_end_waiting(void *web, const sgm__http_request *request, sgm__http_answer *answer);

/* --- curves.c --- */

sgm_status sgm__web_get_list(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_get_series(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_post_watch(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_post_unwatch(void *web, const sgm__http_request *request, sgm__http_answer *answer);

/* --- live.c --- */

sgm__web_recording *sgm__web_recording_of(const sgm__web_trainer *watched);
/* Takes the text. */
void sgm__web_push_text(sgm__web *web, const char *event, sgm__text *json);

#endif
