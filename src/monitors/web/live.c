/* The part `live`: pushes the state of trainers and the new points of curves to pages, and owns the
 * recordings.
 *
 * Ten times a second `tick` goes over all trainers. The state of a trainer is pushed if it has changed
 * (event "progress"), the new points of all its curves five times a second ("points"), and a hint that
 * trainers came or went ("trainers"). Points are drained into the series even when nobody listens. The
 * routes of session.c and curves.c are in the table here. */
#include "monitors/web/web_internal.h"
#include "text/json_text.h"

#include <math.h>

/* Points of one curve in one event at most. If there are more, LIVE_GROUPS groups with at most three points
 * each (minimum, maximum, one that is not finite) are sent, and the last point. */
#define MAXIMUM_LIVE 40
#define LIVE_GROUPS 13

sgm__web_recording *sgm__web_recording_of(const sgm__web_trainer *watched)
{
    return watched->states[SGM__WEB_live];
}

/* --- pushing --- */

/* 0 while the server does not run. */
size_t sgm__web_listeners(const sgm__web *web)
{
    const sgm__http *http = atomic_load(&web->http);
    return http != NULL ? sgm__http_listeners(http) : 0;
}

void sgm__web_push_text(sgm__web *web, const char *event, sgm__text *json)
{
    sgm__http *http = atomic_load(&web->http);
    char *text = sgm__text_take(json);
    if (http != NULL && text != NULL)
        sgm__http_push(http, event, text);
    sgm__free(text);
}

void sgm__web_push(sgm__web *web, const char *event, json_t *data)
{
    sgm__http *http = atomic_load(&web->http);
    char *text = data != NULL && http != NULL ? sgm__json_text(data) : NULL;
    if (text != NULL)
        sgm__http_push(http, event, text);
    sgm__free(text);
    json_decref(data);
}

/* --- ten times a second --- */

/* Pushes the state if anything that pages show has changed since the last time. */
static void show_status(sgm__web *web, sgm__web_trainer *watched)
{
    sgm__web_recording *recording = sgm__web_recording_of(watched);
    sgm__text text = {0};
    sgm__web_standing standing = sgm__web_standing_of(watched);
    sgm__web_status status = sgm__web_copy_status(recording);
    if (status.version != recording->shown || standing.state != recording->shown_standing.state ||
        standing.undoable != recording->shown_standing.undoable ||
        strcmp(standing.held, recording->shown_standing.held) != 0) {
        recording->shown = status.version;
        recording->shown_standing = standing;
        sgm__web_append_status(&text, watched, &status, &standing);
        sgm__web_push_text(web, "progress", &text);
    }
    sgm__free(status.network);
}

/* [iteration, epoch, seconds, value] */
static void append_point(sgm__text *text, const sgm__web_point *point)
{
    const sgm__web_moment *moment = &point->sample->moment;
    sgm__web_separate(text);
    sgm__text_append(text, "[%lld,", (long long)moment->iteration);
    sgm__web_append_number(text, moment->epoch);
    sgm__text_append_bytes(text, ",", 1);
    sgm__web_append_number(text, moment->seconds);
    sgm__text_append_bytes(text, ",", 1);
    sgm__web_append_number(text, point->value);
    sgm__text_append_bytes(text, "]", 1);
}

/* The points with the minimum and the maximum of these, and one that is not finite if there is any, in the
 * order of time: no spike is lost by thinning. */
static void append_extremes(sgm__text *text, const sgm__web_point *points, size_t count)
{
    size_t minimum = count, maximum = count, bad = count;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(points[i].value)) {
            bad = i;
            continue;
        }
        if (minimum == count || points[i].value < points[minimum].value)
            minimum = i;
        if (maximum == count || points[i].value > points[maximum].value)
            maximum = i;
    }
    for (size_t i = 0; i < count; i++)
        if (i == minimum || i == maximum || i == bad)
            append_point(text, &points[i]);
}

/* All points, or if they are too many, the extremes of groups. The last point is always itself, as the
 * page shows its value. */
static void append_points(sgm__text *text, const sgm__web_point *points, size_t count)
{
    if (count <= MAXIMUM_LIVE) {
        for (size_t i = 0; i < count; i++)
            append_point(text, &points[i]);
        return;
    }
    for (size_t group = 0; group < LIVE_GROUPS; group++) {
        size_t start = (count - 1) * group / LIVE_GROUPS, end = (count - 1) * (group + 1) / LIVE_GROUPS;
        append_extremes(text, points + start, end - start);
    }
    append_point(text, &points[count - 1]);
}

/* Pushes what was drained, as {"trainer", "stride", "cut", "series": {IDENTIFIER: [points]}}. "cut": the
 * training went back to this iteration, so pages forget what is behind. */
static void show_points(sgm__web *web, sgm__web_trainer *watched)
{
    sgm__web_recording *recording = sgm__web_recording_of(watched);
    sgm__text text = {0};
    if (!sgm__web_sort_drained(recording))
        return;
    sgm__text_append(&text, "{\"trainer\":");
    sgm__web_append_text(&text, watched->name);
    sgm__web_append_member(&text, "stride", (double)recording->drained_stride);
    if (recording->cut != INT64_MAX)
        sgm__web_append_member(&text, "cut", (double)recording->cut);
    sgm__text_append(&text, ",\"series\":{");
    for (size_t i = 0; i < recording->drained_items; i++) {
        size_t start = recording->starts[i], end = recording->starts[i + 1];
        if (start == end)
            continue;
        sgm__web_separate(&text);
        sgm__web_append_text(&text, recording->item_copies[i]->identifier);
        sgm__text_append(&text, ":[");
        append_points(&text, recording->points + start, end - start);
        sgm__text_append(&text, "]");
    }
    sgm__text_append(&text, "}}");
    sgm__web_push_text(web, "points", &text);
}

/* The part's state, used by the ticker alone. */
typedef struct live {
    uint64_t ticks;
    size_t listeners;
} live;

/* For sgm__web_each. */
static bool tick_trainer(void *user, sgm__web_trainer *watched)
{
    const live *self = user;
    sgm__web *web = watched->web;
    if (self->ticks % 2 == 0)
        sgm__web_drain(sgm__web_recording_of(watched));
    if (self->listeners == 0)
        return true;
    show_status(web, watched);
    if (self->ticks % 2 == 0)
        show_points(web, watched);
    return true;
}

/* Every half second pages may hear that the list has changed; several changes make one event. */
static void tick(sgm__web *web, void *state)
{
    live *self = state;
    self->ticks++;
    self->listeners = sgm__web_listeners(web);
    if (self->ticks % 5 == 0 && atomic_exchange(&web->list_changed, false))
        sgm__web_push(web, "trainers", json_object());
    sgm__web_each(web, tick_trainer, self);
}

/* --- the part --- */

static sgm_status create(sgm__web *web, void **state)
{
    (void)web;
    *state = sgm__calloc(1, sizeof(live));
    return *state != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* A trainer under a known name goes on with the recording of the former one. */
static sgm_status attach(sgm__web_trainer *watched, void **state)
{
    if (*state == NULL)
        *state = sgm__web_recording_create(watched);
    return *state != NULL ? SGM_OK : sgm__last_failure();
}

static void detach(sgm__web_trainer *watched, void *state)
{
    (void)watched;
    sgm__web_recording_leave(state);
}

static void free_recording(void *state)
{
    sgm__web_recording_free(state);
}

static const sgm__http_route routes[] = {
    {"GET", "/api/session", .act = sgm__web_get_session, .quick = true},
    {"POST", "/api/finish", .act = sgm__web_end_waiting, .quick = true, .role = SGM__ROLE_STEER},
    {"GET", "/api/series", .act = sgm__web_get_series, .quick = true},
    {"GET", "/api/series/list", .act = sgm__web_get_list, .quick = true},
    {"POST", "/api/watch", .act = sgm__web_on_trainer, .action = sgm__web_post_watch},
    {"POST", "/api/unwatch", .act = sgm__web_post_unwatch, .quick = true},
};

const sgm__web_part sgm__web_live = {.routes = routes,
                                     .route_count = sizeof routes / sizeof *routes,
                                     .create = create,
                                     .free = sgm__free,
                                     .attach = attach,
                                     .detach = detach,
                                     .free_trainer = free_recording,
                                     .tick = tick};
