/* The web monitor itself: which trainers there are, its thread, its start and its end.
 *
 * What the page shows is the business of the parts (web.h); this file calls their functions.
 * sgm_web_monitor_with makes the monitor, the environment calls join, attach, start, finish and free
 * (monitors/monitor.h). The server (monitors/http/) and the monitor's thread (`tick`) start with the first
 * run and end in `finish`.
 *
 * The table of trainers is guarded by web->lock. A route borrows a trainer (a count in its entry);
 * `detach` waits until all have given it back, so that a route may use a trainer without any lock of the
 * monitor. */
#include "base/clock.h"
#include "journal/change_record.h"
#include "monitors/web/web_internal.h"
#include "text/json_text.h"
#include "train/measure.h"
#include "trainer/signals.h"
#include "trainer/trainer_lock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static const sgm__web_part *const parts[SGM__WEB_PART_COUNT] = {
#define PART_ADDRESS(name) &sgm__web_##name,
    SGM__WEB_PARTS(PART_ADDRESS)
#undef PART_ADDRESS
};

const sgm__monitor_host *sgm__web_host(const sgm__web *web)
{
    return &web->host;
}

void *sgm__web_state(const sgm__web *web, int part)
{
    return web->states[part];
}

/* --- trainers --- */

/* With the lock. NULL: there is no such entry. */
static sgm__web_trainer *find(const sgm__web *web, const char *name)
{
    for (size_t i = 0; i < web->trainer_count; i++)
        if (strcmp(web->trainers[i]->name, name) == 0)
            return web->trainers[i];
    return NULL;
}

/* With the lock. The only entry of a trainer that runs with its environment; NULL: there is none, or
 * several. */
static sgm__web_trainer *find_only(const sgm__web *web)
{
    sgm__web_trainer *found = NULL;
    for (size_t i = 0; i < web->trainer_count; i++) {
        if (web->trainers[i]->unscheduled)
            continue;
        if (found != NULL)
            return NULL;
        found = web->trainers[i];
    }
    return found;
}

/* With the lock; see sgm__web_find. */
static sgm_status find_locked(const sgm__web *web, const char *name, sgm__web_trainer **watched)
{
    *watched = name != NULL ? find(web, name) : find_only(web);
    if (*watched != NULL)
        return SGM_OK;
    if (name == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "there are %zu trainers: say which one, as 'trainer'",
                        web->trainer_count);
    sgm__text names = {0};
    for (size_t i = 0; i < web->trainer_count; i++)
        sgm__text_append(&names, "%s%s", i > 0 ? ", " : "", sgm_trainer_name(web->trainers[i]->trainer));
    sgm_status status = sgm_fail(SGM_ERROR_NOT_FOUND, "there is no trainer '%.100s'; there %s%.300s", name,
                                 names.length > 0 ? "are: " : "is none", names.length > 0 ? names.data : "");
    sgm__text_free(&names);
    return status;
}

sgm_status sgm__web_find(sgm__web *web, const char *name, sgm__web_trainer **watched)
{
    pthread_mutex_lock(&web->lock);
    sgm_status status = find_locked(web, name, watched);
    pthread_mutex_unlock(&web->lock);
    return status;
}

/* A trainer that is leaving cannot be borrowed any more: `detach` is waiting for the others. */
sgm_status sgm__web_borrow(sgm__web *web, const char *name, sgm__web_trainer **watched)
{
    pthread_mutex_lock(&web->lock);
    sgm_status status = find_locked(web, name, watched);
    if (status == SGM_OK && ((*watched)->trainer == NULL || (*watched)->leaving))
        status = sgm_fail(SGM_ERROR_STATE, "trainer '%s' is gone; what it was can be seen, but not changed",
                          (*watched)->name);
    if (status == SGM_OK)
        (*watched)->borrowed++;
    pthread_mutex_unlock(&web->lock);
    return status;
}

void sgm__web_give_back(sgm__web_trainer *watched)
{
    sgm__web *web = watched->web;
    pthread_mutex_lock(&web->lock);
    watched->borrowed--;
    pthread_cond_broadcast(&web->changed);
    pthread_mutex_unlock(&web->lock);
}

sgm_status sgm__web_on_trainer(void *web, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *name = sgm__http_query(request, "trainer", 0);
    sgm__web_trainer *watched;
    if (strcmp(request->method, "POST") == 0 && !request->route->in_file) {
        const json_t *body = sgm__http_object(request);
        SGM_TRY(body != NULL ? sgm__web_text(body, "trainer", false, &name) : sgm__last_failure());
    }
    SGM_TRY(sgm__web_borrow(web, name, &watched));
    sgm_status status = request->route->action(watched, request, answer);
    sgm__web_give_back(watched);
    return status;
}

/* Why a trainer does not proceed. A silent rank comes first, as it holds up everything. */
static void describe_hold(sgm_trainer *trainer, sgm__web_standing *standing)
{
    char *silent = sgm__trainer_silent(trainer), *by = sgm__trainer_paused_by(trainer);
    if (silent != NULL)
        snprintf(standing->held, sizeof standing->held, "%s", silent);
    else if (by != NULL && standing->state == SGM_TRAINER_PAUSED)
        snprintf(standing->held, sizeof standing->held, "paused by %s", by);
    sgm__free(by);
    sgm__free(silent);
}

/* With the lock throughout, so that the trainer cannot go in between; what is asked here never waits for a
 * step. */
sgm__web_standing sgm__web_standing_of(sgm__web_trainer *watched)
{
    pthread_mutex_lock(&watched->web->lock);
    sgm__web_standing standing = {.unscheduled = watched->unscheduled,
                                  .gone = watched->trainer == NULL || watched->leaving};
    if (!standing.gone) {
        standing.state = sgm_trainer_get_state(watched->trainer);
        standing.undoable = sgm__changes_can_undo(watched->trainer);
        describe_hold(watched->trainer, &standing);
    }
    pthread_mutex_unlock(&watched->web->lock);
    return standing;
}

/* The lock is taken for each entry anew. That is safe because entries are never removed or moved. */
void sgm__web_each(sgm__web *web, bool (*each)(void *user, sgm__web_trainer *watched), void *user)
{
    for (size_t i = 0;; i++) {
        pthread_mutex_lock(&web->lock);
        sgm__web_trainer *watched = i < web->trainer_count ? web->trainers[i] : NULL;
        pthread_mutex_unlock(&web->lock);
        if (watched == NULL || !each(user, watched))
            return;
    }
}

void sgm__web_trainers_changed(sgm__web *web)
{
    atomic_store(&web->list_changed, true);
}

static void free_trainer(sgm__web_trainer *watched)
{
    for (size_t i = 0; i < SGM__WEB_PART_COUNT; i++)
        if (parts[i]->free_trainer != NULL && watched->states[i] != NULL)
            parts[i]->free_trainer(watched->states[i]);
    sgm__free(watched->name);
    sgm__free(watched);
}

static sgm__web_trainer *create_trainer(sgm__web *web, const char *name)
{
    sgm__web_trainer *watched = sgm__calloc(1, sizeof *watched);
    if (watched == NULL)
        return NULL;
    watched->web = web;
    watched->name = sgm__strdup(name);
    if (watched->name != NULL)
        return watched;
    free_trainer(watched);
    return NULL;
}

/* Attaches all parts, or none: those that were attached are detached again. */
static sgm_status attach_parts(sgm__web_trainer *watched)
{
    for (size_t i = 0; i < SGM__WEB_PART_COUNT; i++) {
        sgm_status status =
            parts[i]->attach != NULL ? parts[i]->attach(watched, &watched->states[i]) : SGM_OK;
        if (status == SGM_OK)
            continue;
        while (i-- > 0)
            if (parts[i]->detach != NULL)
                parts[i]->detach(watched, watched->states[i]);
        return status;
    }
    return SGM_OK;
}

/* The entry for a trainer: that of a former trainer of the same name, or a new one (*is_new), which is not
 * in the table yet. Room in the table is reserved here, so that `enter` cannot fail. */
static sgm_status find_place(sgm__web *web, sgm_trainer *trainer, sgm__web_trainer **watched, bool *is_new)
{
    pthread_mutex_lock(&web->lock);
    sgm_status status = sgm__reserve(&web->trainers, &web->trainer_capacity, web->trainer_count + 1,
                                     sizeof(sgm__web_trainer *));
    *watched = find(web, sgm_trainer_name(trainer));
    *is_new = *watched == NULL;
    if (!*is_new)
        (*watched)->leaving = true; /* not to be borrowed before `enter` */
    pthread_mutex_unlock(&web->lock);
    if (status == SGM_OK && *is_new) {
        *watched = create_trainer(web, sgm_trainer_name(trainer));
        status = *watched != NULL ? SGM_OK : sgm__last_failure();
    }
    return status;
}

static void set_trainer(sgm__web_trainer *watched, sgm_trainer *trainer)
{
    pthread_mutex_lock(&watched->web->lock);
    watched->trainer = trainer;
    watched->unscheduled = trainer != NULL ? sgm__trainer_is_unscheduled(trainer) : watched->unscheduled;
    pthread_mutex_unlock(&watched->web->lock);
}

/* From here on others find the trainer. */
static void enter(sgm__web *web, sgm__web_trainer *watched, bool is_new)
{
    pthread_mutex_lock(&web->lock);
    if (is_new)
        web->trainers[web->trainer_count++] = watched;
    watched->leaving = false;
    pthread_mutex_unlock(&web->lock);
    sgm__web_trainers_changed(web);
}

static void detach_parts(sgm__web_trainer *watched)
{
    for (size_t i = SGM__WEB_PART_COUNT; i-- > 0;)
        if (parts[i]->detach != NULL)
            parts[i]->detach(watched, watched->states[i]);
}

/* The observer comes last, since it cannot be removed and its argument must stay valid. On failure an
 * entry that existed before remains, as one of a trainer that is gone. */
static sgm_status attach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    sgm__web *web = (sgm__web *)monitor;
    sgm__web_trainer *watched;
    bool is_new;
    SGM_TRY(find_place(web, trainer, &watched, &is_new));
    set_trainer(watched, trainer);
    sgm_status status = attach_parts(watched);
    if (status == SGM_OK) {
        status = sgm__trainer_add_observer(trainer, sgm__web_observe, sgm__web_recording_of(watched));
        if (status == SGM_OK) {
            enter(web, watched, is_new);
            return SGM_OK;
        }
        detach_parts(watched);
    }
    set_trainer(watched, NULL);
    if (is_new)
        free_trainer(watched);
    return status;
}

/* Waits for routes that have borrowed the trainer. Entries are compared by trainer, too: another one may
 * have taken over the name. */
static void detach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    sgm__web *web = (sgm__web *)monitor;
    pthread_mutex_lock(&web->lock);
    sgm__web_trainer *watched = find(web, sgm_trainer_name(trainer));
    bool known = watched != NULL && watched->trainer == trainer;
    if (known)
        watched->leaving = true;
    while (known && watched->borrowed > 0)
        pthread_cond_wait(&web->changed, &web->lock);
    pthread_mutex_unlock(&web->lock);
    if (!known)
        return;
    detach_parts(watched);
    set_trainer(watched, NULL);
    sgm__web_trainers_changed(web);
}

/* --- the monitor's thread --- */

/* The monitor's thread. `changed` is also signalled when a trainer is given back; the loop then waits on
 * for the same moment. After `ending` every part gets one last tick. */
static void *tick(void *argument)
{
    sgm__web *web = argument;
    for (;;) {
        pthread_mutex_lock(&web->lock);
        struct timespec until = sgm__time_in(SGM__WEB_TICK_SECONDS);
        while (!web->ending && pthread_cond_timedwait(&web->changed, &web->lock, &until) != ETIMEDOUT)
            continue;
        bool ending = web->ending;
        pthread_mutex_unlock(&web->lock);
        for (size_t i = 0; i < SGM__WEB_PART_COUNT; i++)
            if (parts[i]->tick != NULL)
                parts[i]->tick(web, web->states[i]);
        if (ending)
            return NULL;
    }
}

/* --- beginning and end --- */

#define PATIENCE 10.0 /* seconds that a request waits for a trainer which is busy */

/* sgm__http_has_left for sgm__patience, whose functions get untyped pointers. */
static bool has_left(const void *request)
{
    return sgm__http_has_left(request);
}

/* How long the request on this lane waits for a trainer's lock. A person is told after PATIENCE seconds
 * what the trainer is doing instead of being left without an answer; a request whose sender has gone
 * changes nothing. */
static _Thread_local sgm__patience patience;

/* Called by the server before and after each function of a route. The time counts from when the request
 * came, not from when its lane was free. */
static void begin_patience(const sgm__http_request *request)
{
    patience = (sgm__patience){.asked = request->asked,
                               .until = request->asked + PATIENCE,
                               .ending = request->ending,
                               .has_left = has_left,
                               .asker = request};
    sgm__patience_set(&patience);
}

static void end_patience(void)
{
    sgm__patience_set(NULL);
}

/* Options of the server; also used to check them before the start. */
static sgm__http_options server_options(sgm__web *web)
{
    const sgm_web_monitor_options *own = &web->options;
    return (sgm__http_options){.address = own->address,
                               .port = own->port,
                               .token = own->token,
                               .tokens = own->tokens,
                               .changes_per_second = own->changes_per_second,
                               .behind_proxy = own->behind_proxy,
                               .public_host = own->public_host,
                               .routes = web->routes,
                               .route_count = web->route_count,
                               .user = web,
                               .enter = begin_patience,
                               .leave = end_patience};
}

/* Starts the server and the thread. The address with the token is printed, not logged: logs are kept and
 * shared. */
static sgm_status serve(sgm__web *web)
{
    const sgm__http_options options = server_options(web);
    sgm__http *http = sgm__http_start(&options);
    if (http == NULL)
        return sgm__fail_within("the web monitor");
    atomic_store(&web->http, http);
    if (pthread_create(&web->ticker, NULL, tick, web) != 0)
        return sgm_fail(SGM_ERROR_MEMORY, "the web monitor: the system refused a thread for it");
    web->ticks = true;
    sgm__log(SGM_LOG_INFO, "monitor", "serves at port %d", sgm__http_port(http));
    if (!web->options.quiet) {
        printf("monitor: %s\n", sgm__http_url(http));
        fflush(stdout);
    }
    return SGM_OK;
}

/* A second call succeeds at once, also if the first has failed: that failure was reported. */
sgm_status sgm__web_start(sgm__web *web)
{
    return atomic_exchange(&web->started, true) ? SGM_OK : serve(web);
}

static bool refresh(void *user, sgm__web_trainer *watched)
{
    (void)user;
    sgm__web_refresh(sgm__web_recording_of(watched));
    return true;
}

/* The monitor's `start`, called by the environment before the first run. */
static sgm_status start(sgm_monitor *monitor)
{
    sgm__web *web = (sgm__web *)monitor;
    sgm__web_each(web, refresh, NULL);
    return sgm__web_start(web);
}

static sgm_status join(sgm_monitor *monitor, const sgm__monitor_host *host)
{
    ((sgm__web *)monitor)->host = *host;
    return SGM_OK;
}

void sgm__web_finish(sgm__web *web)
{
    pthread_mutex_lock(&web->lock);
    web->finished = true;
    pthread_cond_broadcast(&web->changed);
    pthread_mutex_unlock(&web->lock);
}

bool sgm__web_waits(sgm__web *web)
{
    pthread_mutex_lock(&web->lock);
    bool waits = web->waiting && !web->finished;
    pthread_mutex_unlock(&web->lock);
    return waits;
}

/* Blocks until somebody ends the wait on the page or a signal comes. A signal cannot wake a condition
 * variable, so the wait is interrupted every tenth of a second. At the end the server still gets a moment
 * to answer the request that has ended the wait. */
static void wait_for_people(sgm__web *web)
{
    if (!web->options.quiet) {
        printf("monitor: stays until you end it on the page, or with Ctrl-C\n");
        fflush(stdout);
    }
    sgm__web_trainers_changed(web);
    sgm__signals_catch(true);
    pthread_mutex_lock(&web->lock);
    web->waiting = true;
    while (!web->finished && !sgm__signals_came()) {
        struct timespec until = sgm__time_in(0.1);
        pthread_cond_timedwait(&web->changed, &web->lock, &until);
    }
    bool finished = web->finished;
    pthread_mutex_unlock(&web->lock);
    sgm__signals_release(true);
    if (finished) /* the server answers the page meanwhile */
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
}

/* The monitor's `finish`; also called by `release` for a monitor that no environment had. Ends the thread,
 * then the server. A second call finds neither, and changes nothing. */
static void finish(sgm_monitor *monitor)
{
    sgm__web *web = (sgm__web *)monitor;
    if (web->options.wait && web->ticks && atomic_load(&web->ran) && !atomic_load(&web->interrupted))
        wait_for_people(web);
    pthread_mutex_lock(&web->lock);
    web->ending = true;
    pthread_cond_broadcast(&web->changed);
    pthread_mutex_unlock(&web->lock);
    if (web->ticks)
        pthread_join(web->ticker, NULL);
    web->ticks = false;
    if (sgm__http_stop(atomic_exchange(&web->http, NULL)))
        return;
    web->abandoned = true;
    sgm__log(SGM_LOG_WARNING, "monitor", "a request did not end within five seconds; it is left alone");
}

/* --- making and freeing --- */

/* Offsets of all texts in the options, for copying and freeing them. */
static const size_t texts[] = {
    offsetof(sgm_web_monitor_options, address), offsetof(sgm_web_monitor_options, public_host),
    offsetof(sgm_web_monitor_options, token),   offsetof(sgm_web_monitor_options, tokens),
    offsetof(sgm_web_monitor_options, title),   offsetof(sgm_web_monitor_options, tabs),
    offsetof(sgm_web_monitor_options, colours), offsetof(sgm_web_monitor_options, configuration)};

static char **text_of(sgm_web_monitor_options *options, size_t index)
{
    return (char **)(void *)((char *)options + texts[index]);
}

/* Replaces each text by a copy, also after a failure, so that `release` frees only copies. */
static sgm_status copy_texts(sgm_web_monitor_options *options)
{
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char **text = text_of(options, i), *given = *text;
        *text = sgm__strdup(given);
        if (*text == NULL && given != NULL)
            status = SGM_ERROR_MEMORY;
    }
    return status;
}

/* The parts' states go first, since parts may have threads that look at trainers. */
static void release(sgm_monitor *monitor)
{
    sgm__web *web = (sgm__web *)monitor;
    finish(monitor); /* for a monitor that no environment had; does nothing the second time */
    if (web->abandoned)
        return; /* a request is still using the monitor */
    for (size_t i = SGM__WEB_PART_COUNT; i-- > 0;)
        if (parts[i]->free != NULL && web->states[i] != NULL)
            parts[i]->free(web->states[i]);
    for (size_t i = 0; i < web->trainer_count; i++)
        free_trainer(web->trainers[i]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sgm__free(*text_of(&web->options, i));
    json_decref(web->tabs);
    json_decref(web->colours);
    sgm__free(web->trainers);
    sgm__free(web->routes);
    pthread_cond_destroy(&web->changed);
    pthread_mutex_destroy(&web->lock);
    sgm__free(web);
}

/* One table of all parts' routes, as the server wants it. */
static sgm_status join_routes(sgm__web *web)
{
    size_t count = 0;
    for (size_t i = 0; i < SGM__WEB_PART_COUNT; i++)
        count += parts[i]->route_count;
    web->routes = sgm__calloc(count + 1, sizeof *web->routes);
    if (web->routes == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < SGM__WEB_PART_COUNT; i++)
        for (size_t k = 0; k < parts[i]->route_count; k++)
            web->routes[web->route_count++] = parts[i]->routes[k];
    return SGM_OK;
}

/* Checks everything that can be wrong in the options, so that mistakes are reported at creation, and
 * creates the parts. */
static sgm_status fill(sgm__web *web)
{
    if (web->options.port < 0 || web->options.port > 65535)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the web monitor: expected a port from 1 to 65535, got %d",
                        web->options.port);
    const sgm__http_options options = server_options(web);
    if (sgm__http_check(&options) != SGM_OK)
        return sgm__fail_within("the web monitor");
    SGM_TRY(sgm__web_read_session(web));
    SGM_TRY(join_routes(web));
    for (size_t i = 0; i < SGM__WEB_PART_COUNT; i++)
        if (parts[i]->create != NULL)
            SGM_TRY(parts[i]->create(web, &web->states[i]));
    return SGM_OK;
}

sgm_monitor *sgm_web_monitor_with(const sgm_web_monitor_options *given)
{
    sgm_web_monitor_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_web_monitor") != SGM_OK)
        return NULL;
    sgm__web *web = sgm__calloc(1, sizeof *web);
    if (web == NULL)
        return NULL;
    pthread_mutex_init(&web->lock, NULL);
    sgm__cond_init(&web->changed);
    web->base = (sgm_monitor){
        .join = join, .attach = attach, .detach = detach, .start = start, .finish = finish, .free = release};
    web->options = options;
    if (copy_texts(&web->options) == SGM_OK && fill(web) == SGM_OK)
        return &web->base;
    release(&web->base);
    return NULL;
}

/* Another kind of monitor is recognised by its `free`. */
const char *sgm_web_monitor_url(sgm_monitor *monitor)
{
    const sgm__http *http =
        monitor != NULL && monitor->free == release ? atomic_load(&((sgm__web *)monitor)->http) : NULL;
    return http != NULL ? sgm__http_url(http) : "";
}
