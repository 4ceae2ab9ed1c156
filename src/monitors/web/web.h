/* What the parts of the web monitor (live, process, steer, inspect, play, metrics) share.
 *
 * The web monitor shows trainings in a browser. web.c keeps the trainers and calls the parts; a part is a
 * table (sgm__web_part) of routes, which get the sgm__web as their user, and of functions that are called as
 * trainers come and go. A new part adds its name to SGM__WEB_PARTS and needs no other registration. Threads:
 *
 * - routes: the server's two lanes (monitors/http/lanes.c). One runs routes that are `quick`; the other runs
 *   those that may wait for a trainer, which they have borrowed.
 * - progress: a trainer's thread, between two iterations; must be quick and must wait for nothing.
 * - tick: the monitor's thread, ten times a second; must wait for no trainer.
 * - create, attach, detach, free: the thread that sets the environment up. No route uses that trainer then.
 *
 * Internal. */
#ifndef SGM_MONITORS_WEB_WEB_H
#define SGM_MONITORS_WEB_WEB_H

#include "monitors/http/http.h"
#include "monitors/monitor.h"

typedef struct sgm__web sgm__web;

/* The parts; each defines const sgm__web_part sgm__web_NAME and has the number SGM__WEB_NAME. */
#define SGM__WEB_PARTS(X) X(live) X(process) X(steer) X(inspect) X(play) X(metrics)
enum {
#define SGM__WEB_PART_NUMBER(name) SGM__WEB_##name,
    SGM__WEB_PARTS(SGM__WEB_PART_NUMBER)
#undef SGM__WEB_PART_NUMBER
        SGM__WEB_PART_COUNT
};

/* A position in a training. */
typedef struct sgm__web_moment {
    int64_t iteration;
    double epoch;   /* with a fraction: 2.5 is the middle of the third epoch */
    double seconds; /* time of training in all runs, without pauses */
} sgm__web_moment;

/* A trainer that is watched, or was. Entries are never removed while the monitor lives, so that curves
 * remain visible; a trainer that comes under the name of one that has gone takes over its entry. */
typedef struct sgm__web_trainer {
    sgm__web *web;
    char *name;
    bool unscheduled;
    /* NULL: gone. A route must borrow the entry before it uses the trainer, which stays until it is given
     * back. */
    sgm_trainer *trainer;
    /* What each part keeps of it, for example states[SGM__WEB_steer]. */
    void *states[SGM__WEB_PART_COUNT];
    int borrowed; /* how often; guarded by the monitor's lock */
    /* The trainer is being attached or detached, and cannot be borrowed; guarded by the same. */
    bool leaving;
} sgm__web_trainer;

/* A part of the monitor. Functions may be NULL. */
typedef struct sgm__web_part {
    const sgm__http_route *routes;
    size_t route_count;
    /* Once per monitor: sets *state, which sgm__web_state returns, to what the part needs. free frees it. */
    sgm_status (*create)(sgm__web *web, void **state);
    void (*free)(void *state);
    /* A trainer comes or goes. In `attach`, *state is what the former trainer of that name has left, or
     * NULL. The state outlives the trainer; free_trainer frees it with the monitor. */
    sgm_status (*attach)(sgm__web_trainer *watched, void **state);
    void (*detach)(sgm__web_trainer *watched, void *state);
    void (*free_trainer)(void *state);
    /* Called for starts, pauses, moves, epochs, ends, and for those iterations that are sampled
     * (sampler.c). */
    void (*progress)(sgm__web_trainer *watched, void *state, const sgm_training_progress *progress);
    void (*tick)(sgm__web *web, void *state);
} sgm__web_part;
#define SGM__WEB_PART_DECLARED(name) extern const sgm__web_part sgm__web_##name;
SGM__WEB_PARTS(SGM__WEB_PART_DECLARED)
#undef SGM__WEB_PART_DECLARED

/* --- web.c --- */

const sgm__monitor_host *sgm__web_host(const sgm__web *web);
void *sgm__web_state(const sgm__web *web, int part);

/* Borrows the trainer of this name (NULL: the only one that runs with its environment), which then exists
 * until it is given back. Fails if there is no such trainer, if it is gone, or if several exist and none
 * was named. */
sgm_status sgm__web_borrow(sgm__web *web, const char *name, sgm__web_trainer **watched);
void sgm__web_give_back(sgm__web_trainer *watched);
/* The function of routes on one trainer, which the query names, or the member "trainer" of a POST's body:
 * borrows it for as long as the route's `action` takes, whose first argument it is. */
sgm_status sgm__web_on_trainer(void *web, const sgm__http_request *request, sgm__http_answer *answer);
/* Finds the entry of a trainer, also of one that is gone: for what is remembered of it. */
sgm_status sgm__web_find(sgm__web *web, const char *name, sgm__web_trainer **watched);
/* What a trainer is doing; one that has gone is idle. */
typedef struct sgm__web_standing {
    sgm_trainer_state state;
    bool unscheduled, gone;
    bool undoable; /* a person's change exists that can be undone */
    /* Why it does not proceed: which rank is silent, or which hook has paused it; "": no known reason. */
    char held[256];
} sgm__web_standing;
sgm__web_standing sgm__web_standing_of(sgm__web_trainer *watched);
/* Calls `each` for all entries, oldest first; none is borrowed and no lock is held during a call. `each`
 * ends the loop by returning false. */
void sgm__web_each(sgm__web *web, bool (*each)(void *user, sgm__web_trainer *watched), void *user);

/* The text of a member of a request's body, borrowed from it. If the member is missing, *text is NULL, and
 * the function fails if it is `wanted`. */
sgm_status sgm__web_text(const json_t *body, const char *name, bool wanted, const char **text);

/* --- live.c --- */

/* Sends an event to every page that listens. Takes the reference of `data`; NULL sends nothing. Any
 * thread; never waits for a browser. */
void sgm__web_push(sgm__web *web, const char *event, json_t *data);
size_t sgm__web_listeners(const sgm__web *web);
/* The position at the newest sample. */
sgm__web_moment sgm__web_now(sgm__web_trainer *watched);
/* Trainers have come or gone, or the monitor's state has changed: pages fetch the session again. */
void sgm__web_trainers_changed(sgm__web *web);

#endif
