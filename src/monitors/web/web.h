/* The web monitor's inside: what its parts (live, steer, inspect, play) share. Internal.
 *
 * A part is a table: routes, which get the sgm__web as their user, and functions that are called as trainers
 * come and go. It adds its name to SGM__WEB_PARTS, and has nothing else to tell. Threads:
 *
 * - routes: the server's two workers, of which one runs those that are `quick`, and the other those that may
 *   wait for a trainer, which they have borrowed.
 * - progress: the trainer's thread, in between two iterations. Quick, and waits for nobody.
 * - tick: the monitor's thread, ten times a second. Waits for nobody.
 * - create, attach, detach, free: whoever sets the environment up; no route of that trainer is running then.
 */
#ifndef SGM_MONITORS_WEB_WEB_H
#define SGM_MONITORS_WEB_WEB_H

#include "monitors/http/http.h"
#include "monitors/monitor.h"

typedef struct sgm__web sgm__web;

/* Each defines const sgm__web_part sgm__web_NAME. */
#define SGM__WEB_PARTS(X) X(live) X(process) X(steer) X(inspect) X(play) X(metrics)
enum {
#define SGM__WEB_PART_NUMBER(name) SGM__WEB_##name,
    SGM__WEB_PARTS(SGM__WEB_PART_NUMBER)
#undef SGM__WEB_PART_NUMBER
        SGM__WEB_PART_COUNT
};

/* Where a training stands. */
typedef struct sgm__web_moment {
    int64_t iteration;
    double epoch;   /* with the part of it that is done */
    double seconds; /* of training, pauses and other runs' too */
} sgm__web_moment;

/* One that is watched, or was: entries stay as long as the monitor, and a trainer that comes under the name
 * of one that has gone takes its place. */
typedef struct sgm__web_trainer {
    sgm__web *web;
    char *name;
    bool unscheduled;
    sgm_trainer *trainer;              /* NULL: it is gone; borrow it, and it stays until you return it */
    void *states[SGM__WEB_PART_COUNT]; /* of the parts: states[SGM__WEB_steer] */
    int borrowed;
    bool leaving;
} sgm__web_trainer;

typedef struct sgm__web_part {
    const sgm__http_route *routes;
    size_t route_count;
    /* What the part needs, *state for sgm__web_state; any may be NULL. */
    sgm_status (*create)(sgm__web *web, void **state);
    void (*free)(void *state);
    /* A trainer has come (*state: what was left in states[] by the one of that name before, or NULL), goes;
     * the state stays and is freed with the monitor. */
    sgm_status (*attach)(sgm__web_trainer *watched, void **state);
    void (*detach)(sgm__web_trainer *watched, void *state);
    void (*free_trainer)(void *state);
    /* Told of starts, pauses, moves, epochs, ends, and of those iterations that are sampled. */
    void (*progress)(sgm__web_trainer *watched, void *state, const sgm_training_progress *progress);
    void (*tick)(sgm__web *web, void *state);
} sgm__web_part;
#define SGM__WEB_PART_DECLARED(name) extern const sgm__web_part sgm__web_##name;
SGM__WEB_PARTS(SGM__WEB_PART_DECLARED)
#undef SGM__WEB_PART_DECLARED

/* --- web.c --- */

const sgm__monitor_host *sgm__web_host(const sgm__web *web);
void *sgm__web_state(const sgm__web *web, int part);

/* The trainer of this name (NULL: the only one), which is there until it is given back. Errors: there is no
 * such trainer, it is gone, or it is not said which of several. */
sgm_status sgm__web_borrow(sgm__web *web, const char *name, sgm__web_trainer **watched);
void sgm__web_give_back(sgm__web_trainer *watched);
/* Also one that is gone: for what is remembered. */
sgm_status sgm__web_find(sgm__web *web, const char *name, sgm__web_trainer **watched);
/* What it is doing; of one that has gone, that it idles. */
typedef struct sgm__web_standing {
    sgm_trainer_state state;
    bool unscheduled, gone;
    bool undoable;  /* there is a change of a person that can be taken back */
    char held[256]; /* what holds it up: which rank is silent, or which hook has paused it; "": nothing known
                     */
} sgm__web_standing;
sgm__web_standing sgm__web_standing_of(sgm__web_trainer *watched);
/* Calls `each` for all, oldest first, with none borrowed; false ends it. */
void sgm__web_each(sgm__web *web, bool (*each)(void *user, sgm__web_trainer *watched), void *user);

/* A text of a request's body (sgm__http_object); `wanted`: without it the request fails, else it is NULL. */
sgm_status sgm__web_text(const json_t *body, const char *name, bool wanted, const char **text);

/* --- live.c --- */

/* To every page that listens; takes `data`, NULL: without memory, nothing is sent. Any thread; never waits.
 */
void sgm__web_push(sgm__web *web, const char *event, json_t *data);
size_t sgm__web_listeners(const sgm__web *web);
sgm__web_moment sgm__web_now(sgm__web_trainer *watched); /* of the newest sample */
/* Trainers came, went or have another name: pages fetch the session again. */
void sgm__web_trainers_changed(sgm__web *web);

#endif
