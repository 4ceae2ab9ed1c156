/* What the files of the web monitor itself share: the monitor, recording of values, and their delivery. Parts
 * that only look at trainers or steer them need web.h alone.
 *
 * How a value reaches a page: sampler.c, on the training's thread, reads it into recording->samples;
 * drain.c, on the monitor's thread, moves samples into series; live.c pushes the new points to pages, and
 * curves.c answers requests for any window of a series. Locks, each held shortly: a recording's `sampling`
 * (with the training's thread, which does not wait for it at iterations), `store` (series), the monitor's
 * `lock` (trainers). A trainer's own lock is taken before `sampling`, never within it. Internal. */
#ifndef SGM_MONITORS_WEB_INTERNAL_H
#define SGM_MONITORS_WEB_INTERNAL_H

#include "monitors/http/http.h"
#include "monitors/web/series.h"
#include "monitors/web/web.h"
#include "trainer/view.h"

/* Time between two ticks of the parts. */
#define SGM__WEB_TICK_SECONDS 0.1

/* The web monitor. */
struct sgm__web {
    sgm_monitor base;
    sgm_web_monitor_options options; /* texts are copies */
    json_t *tabs;                    /* the page's arrangement; NULL: its own */
    json_t *colours;                 /* of trainers, by their names; NULL: the page's own */
    sgm__monitor_host host;          /* copied in join */
    void *states[SGM__WEB_PART_COUNT];
    sgm__http_route *routes; /* of all parts, one after the other */
    size_t route_count;
    sgm__http *_Atomic http; /* NULL: the server does not run */
    atomic_bool started;     /* starting the server was tried, with or without success */
    pthread_t ticker;
    bool ticks;     /* `ticker` runs and is to be joined */
    bool abandoned; /* a request has not returned: this struct must stay */
    /* A run has begun since the monitor exists; the newest run was interrupted. */
    atomic_bool ran, interrupted;
    atomic_bool list_changed; /* pages are to be told that trainers came or went */

    /* Guards what follows, and `borrowed` and `leaving` of trainers. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sgm__web_trainer **trainers; /* in the order in which they came; entries never move */
    size_t trainer_count, trainer_capacity;
    bool ending; /* the ticker is to end */
    /* The monitor waits at its end for people who watch; one of them has said that it may end. */
    bool waiting, finished;
};

/* Starts server and ticker, the first time only; called by the environment or by the first run of a
 * trainer. */
sgm_status sgm__web_start(sgm__web *web);
/* A person has finished watching: ends the wait at the end. */
void sgm__web_finish(sgm__web *web);
bool sgm__web_waits(sgm__web *web);

/* --- session.c --- */

/* Reads the options `tabs` and `colours`. */
sgm_status sgm__web_read_session(sgm__web *web);

/* --- panels.c --- */

/* The names of the panels that the program has added, as a list in JSON. */
void sgm__web_append_panels(sgm__text *text);

/* --- recording.c: what a trainer's values were --- */

/* A value that is recorded. Items exist as long as the recording, so pointers to them stay valid; `active`
 * says whether values are still added. */
typedef struct sgm__web_item {
    char *identifier;
    size_t index;     /* among the items */
    const char *name; /* last part of the identifier */
    /* The registry that has the value, held; NULL: not looked up yet, or there was no value. */
    sgm_registry *parent;
    bool active;
    bool is_default; /* recorded for every trainer */
    /* Its values come with the progress of epochs and are not read from the registry. */
    bool told;
    bool begun;          /* has had a finite value: leading NaNs are not recorded */
    sgm__series *series; /* guarded by `store` */
} sgm__web_item;

/* The values of one moment: `count` entries of the array of values, from `first` on. */
typedef struct sgm__web_sample {
    sgm__web_moment moment;
    size_t first, count; /* entries of the array `values` */
} sgm__web_sample;

typedef struct sgm__web_value {
    sgm__web_item *item;
    double value;
} sgm__web_value;

typedef struct sgm__web_point {
    const sgm__web_sample *sample;
    double value;
} sgm__web_point;

/* A buffer of samples with their values; grows up to limits of recording.c. */
typedef struct sgm__web_samples {
    sgm__web_sample *samples;
    sgm__web_value *values;
    size_t count, value_count, capacity, value_capacity;
} sgm__web_samples;

/* The newest progress, without the pointers in it, and facts about the trainer. `version` changes with it,
 * so that pages are sent it only then. */
typedef struct sgm__web_status {
    sgm_training_progress progress;
    sgm__web_moment moment;
    char reason[256]; /* why the newest run has stopped */
    bool has_folder;
    /* Number of trained values; iterations between two samples. */
    int64_t parameters, stride;
    char *network; /* notation */
    uint64_t version;
} sgm__web_status;

/* Validation sets whose results are recorded. */
#define SGM__WEB_VALIDATIONS 8
/* What the newest epoch has measured. Its validation (count > 0) waits here until the next sample. */
typedef struct sgm__web_epoch {
    sgm__web_moment moment;
    sgm_metrics training; /* no examples: no epoch has ended in this run */
    size_t count;
    const char *names[SGM__WEB_VALIDATIONS]; /* borrowed from the trainer */
    double losses[SGM__WEB_VALIDATIONS], accuracies[SGM__WEB_VALIDATIONS];
    sgm__web_item *loss_items[SGM__WEB_VALIDATIONS], *accuracy_items[SGM__WEB_VALIDATIONS];
} sgm__web_epoch;

/* The newest result of one validation set, kept for metrics.c. */
typedef struct sgm__web_validation {
    char *name;
    double loss, accuracy;
} sgm__web_validation;

/* All that is recorded of one trainer; the state of the part `live`. Survives the trainer. */
typedef struct sgm__web_recording {
    sgm__web_trainer *watched;
    /* Guards the members up to `base`. Held for less time than a sample takes; the training's thread only
     * tries it at iterations. */
    pthread_mutex_t sampling;
    sgm__web_item **items;
    size_t item_count, item_capacity;
    sgm__web_samples samples; /* not yet taken by the ticker */
    sgm__web_status status;
    sgm__web_epoch epoch;
    sgm__web_validation newest[SGM__WEB_VALIDATIONS];
    size_t newest_count;
    /* Identifiers, also with wildcards, that nothing matches yet; they are recorded once something does. */
    char **pending;
    size_t pending_count, pending_capacity;
    /* An epoch has ended, so that everything exists that the trainer will have values of. */
    bool settled;
    /* Epoch and seconds of the run where it began, or where it was moved to: the basis of the time left. */
    double start, start_seconds;
    double base; /* seconds of training before this run */
    /* From here to `next_epoch`: used on the training's thread alone. Seconds that a sample takes, at an
     * iteration and at an epoch: running means. */
    double cost, epoch_cost;
    double step; /* seconds of an iteration, running mean */
    /* Value of sgm__now() at the end of the newest sample; 0: no step can be measured from there. */
    double sampled;
    int64_t iteration; /* of the newest sample */
    /* Iterations between two samples, and the next one that is sampled. */
    int64_t stride, next_iteration;
    /* Epochs that end before this iteration are not sampled. */
    int64_t next_epoch;

    /* Guards the series of all items, and `clock`. */
    pthread_mutex_t store;
    sgm__clock *clock;
    /* From here on the ticker's own. What it has taken last, and its copy of `items`, which grow on other
     * threads. */
    sgm__web_samples drained;
    sgm__web_item **item_copies;
    size_t drained_items, item_copy_capacity;
    /* The drained points ordered by item: those of item i begin at points[starts[i]] and end before
     * points[starts[i + 1]]. */
    sgm__web_point *points;
    size_t *starts, point_capacity, start_capacity;
    int64_t drained_stride;
    int64_t stored; /* iteration of the newest sample in the series */
    /* The drained samples went back to this iteration; INT64_MAX: they did not. */
    int64_t cut;
    uint64_t shown; /* version of the status that pages have */
    sgm__web_standing shown_standing;
} sgm__web_recording;

/* NULL: none of these has that identifier. */
sgm__web_item *sgm__web_find_item(sgm__web_item *const *items, size_t count, const char *identifier);
sgm__web_recording *sgm__web_recording_create(sgm__web_trainer *watched);
void sgm__web_recording_free(sgm__web_recording *recording);
/* The trainer goes: drops everything that belongs to it. */
void sgm__web_recording_leave(sgm__web_recording *recording);
/* Records all values that match from now on, and adds their identifiers to the array. The trainer must be
 * borrowed, and is waited for. If nothing matches, that is an error once the recording is settled; before
 * that, the identifier is kept for later and *pending is true. */
sgm_status sgm__web_watch(sgm__web_recording *recording, const char *identifier, json_t *identifiers,
                          bool *pending);
/* Stops recording what matches; the curves stay. Adds the identifiers to the array. */
void sgm__web_unwatch(sgm__web_recording *recording, const char *identifier, json_t *identifiers);

/* Whether an identifier that is not recorded may get values later. */
bool sgm__web_may_come(sgm__web_recording *recording, const char *identifier);

/* Begins to record pending identifiers that something matches by now; on the training's thread. */
void sgm__web_take_pending(sgm__web_recording *recording);

/* The following are called with the sampling lock. This one returns the item of that identifier, made if
 * there is none; NULL, with an error: there is no room. */
sgm__web_item *sgm__web_add_item(sgm__web_recording *recording, const char *identifier, bool is_default);
/* Records each cost of a trainer that has several. */
void sgm__web_add_costs(sgm__web_recording *recording);
/* Looks up the registries of active items that have none. */
void sgm__web_find_parents(sgm__web_recording *recording);
/* False: the buffer is full until the ticker takes it. */
bool sgm__web_begin_sample(sgm__web_samples *samples, sgm__web_moment moment);
/* Adds a value to the newest sample. */
void sgm__web_add_value(sgm__web_samples *samples, sgm__web_item *item, double value);
/* Makes a sample of all active values; `begins`: the run begins, so NaNs mean nothing yet. */
void sgm__web_take_values(sgm__web_recording *recording, bool begins);

/* --- sampler.c --- */

/* The observer of the trainer; its argument is the recording. */
bool sgm__web_observe(void *recording, const sgm_training_progress *progress);
/* Reads the facts of a trainer that does not run. */
void sgm__web_refresh(sgm__web_recording *recording);

/* --- drain.c --- */

/* Moves the samples into the series. They also stay in `drained` until the next call. */
void sgm__web_drain(sgm__web_recording *recording);
/* Fills in points and starts from `drained`. Samples before a step back are left out. False: there are
 * none, or no memory. */
bool sgm__web_sort_drained(sgm__web_recording *recording);

/* --- json.c --- */

/* These append a number as JSON (not finite: null), a text with its quotes (NULL: null), or either as a
 * member
 * ",\"NAME\":VALUE" of an object, hence not as its first member. */
void sgm__web_append_number(sgm__text *text, double value);
void sgm__web_append_text(sgm__text *text, const char *value);
void sgm__web_append_member(sgm__text *text, const char *name, double value);
void sgm__web_append_named(sgm__text *text, const char *name, const char *value);
/* The same for a list of numbers, which lie `distance` bytes apart. */
void sgm__web_append_numbers(sgm__text *text, const char *name, const double *first, size_t distance,
                             size_t count);
/* Appends a comma, unless a list or an object has just begun. */
void sgm__web_separate(sgm__text *text);
/* Makes a text the body of the answer, and takes it over. */
sgm_status sgm__web_answer(sgm__http_answer *answer, sgm__text *json);

/* --- session.c --- */

/* A copy of the status; free its network with sgm__free. */
sgm__web_status sgm__web_copy_status(sgm__web_recording *recording);
void sgm__web_append_status(sgm__text *text, const sgm__web_trainer *watched, const sgm__web_status *status,
                            const sgm__web_standing *standing);
sgm_status sgm__web_get_session(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_end_waiting(void *web, const sgm__http_request *request, sgm__http_answer *answer);

/* --- curves.c --- */

sgm_status sgm__web_get_list(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_get_series(void *web, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_post_watch(void *watched, const sgm__http_request *request, sgm__http_answer *answer);
sgm_status sgm__web_post_unwatch(void *web, const sgm__http_request *request, sgm__http_answer *answer);

/* --- live.c --- */

sgm__web_recording *sgm__web_recording_of(const sgm__web_trainer *watched);
/* As sgm__web_push, for a text, which it takes over. */
void sgm__web_push_text(sgm__web *web, const char *event, sgm__text *json);

#endif
