/* Requests about curves: which there are, any window of them, and which values are recorded.
 *
 * The data are the series of recording.c; requests read them with the `store` lock, held for one series at
 * a time, so that the monitor's thread is not held up. A window is given on an axis (iteration, epoch or
 * seconds), which the recording's clock translates to iterations and back. Answers are columns: x,
 * minimum, maximum, last. */
#include "monitors/web/web_internal.h"

#include <math.h>
#include <stdio.h>

/* Points of a curve in one answer, usually and at most; curves of one request. */
#define DEFAULT_POINTS 1000
#define MAXIMUM_POINTS 10000
#define MAXIMUM_SERIES 1000

/* --- series --- */

/* The recording of the trainer in the query, also of one that has gone. */
static sgm_status find_by_query(sgm__web *web, const sgm__http_request *request,
                                sgm__web_recording **recording)
{
    sgm__web_trainer *watched;
    SGM_TRY(sgm__web_find(web, sgm__http_query(request, "trainer", 0), &watched));
    *recording = sgm__web_recording_of(watched);
    return SGM_OK;
}

/* A copy of the array of items, which the caller frees. The items themselves never move, and live as long
 * as the recording. */
static sgm__web_item **list_items(sgm__web_recording *recording, size_t *count)
{
    pthread_mutex_lock(&recording->sampling);
    *count = recording->item_count;
    sgm__web_item **items = sgm__calloc(*count + 1, sizeof(sgm__web_item *));
    if (items != NULL)
        memcpy(items, recording->items, *count * sizeof(sgm__web_item *));
    pthread_mutex_unlock(&recording->sampling);
    return items;
}

/* GET /api/series/list: the identifiers with their numbers of points. */
sgm_status sgm__web_get_list(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__web_recording *recording;
    sgm__text text = {0};
    size_t count;
    SGM_TRY(find_by_query(user, request, &recording));
    sgm__web_item **items = list_items(recording, &count);
    if (items == NULL)
        return SGM_ERROR_MEMORY;
    sgm__text_append(&text, "{\"series\":[");
    for (size_t i = 0; i < count; i++) {
        pthread_mutex_lock(&recording->store);
        uint64_t points = sgm__series_count(items[i]->series);
        pthread_mutex_unlock(&recording->store);
        sgm__text_append(&text, "%s{\"id\":", i > 0 ? "," : "");
        sgm__web_append_text(&text, items[i]->identifier);
        sgm__web_append_member(&text, "count", (double)points);
        sgm__text_append(&text, "}");
    }
    sgm__free(items);
    sgm__text_append(&text, "]}");
    return sgm__web_answer(answer, &text);
}

/* What a request wants to see of a curve. */
typedef struct window {
    sgm__axis axis;
    double from, to;
    int64_t points;
} window;

static sgm_status read_number(const sgm__http_request *request, const char *name, double *value)
{
    const char *text = sgm__http_query(request, name, 0);
    if (text != NULL && (!sgm__parse_double(text, value) || isnan(*value)))
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s': expected a number, got '%.40s'", name, text);
    return SGM_OK;
}

/* Without from and to the window is everything. */
static sgm_status read_window(const sgm__http_request *request, window *w)
{
    static const char *const axes[] = {"iteration", "epoch", "seconds"};
    const char *axis = sgm__http_query(request, "axis", 0);
    *w = (window){.from = -INFINITY, .to = INFINITY};
    while (axis != NULL && w->axis < 3 && strcmp(axes[w->axis], axis) != 0)
        w->axis++;
    if (w->axis == 3)
        return sgm_fail(SGM_ERROR_ARGUMENT, "axis: expected iteration, epoch or seconds, got '%.40s'", axis);
    SGM_TRY(read_number(request, "from", &w->from));
    SGM_TRY(read_number(request, "to", &w->to));
    double points = DEFAULT_POINTS;
    SGM_TRY(read_number(request, "points", &points));
    if (!(points >= 2 && points <= MAXIMUM_POINTS))
        return sgm_fail(SGM_ERROR_ARGUMENT, "points: expected 2 to %d", MAXIMUM_POINTS);
    w->points = (int64_t)points;
    return SGM_OK;
}

/* Fills buckets and their positions on the axis (`xs`), both with room for points + 2; returns their
 * number. One lock for all, so that clock and series fit each other. */
static size_t reduce(sgm__web_recording *recording, const sgm__web_item *item, const window *w,
                     sgm__series_bucket *buckets, double *xs, uint64_t *count)
{
    pthread_mutex_lock(&recording->store);
    int64_t from = sgm__clock_find(recording->clock, w->axis, w->from),
            to = sgm__clock_find(recording->clock, w->axis, w->to);
    size_t made = sgm__series_reduce(item->series, from, to, (size_t)w->points, buckets);
    for (size_t i = 0; i < made; i++) {
        sgm__clock_tick tick = {.iteration = buckets[i].iteration};
        if (w->axis != SGM__AXIS_ITERATION)
            tick = sgm__clock_at(recording->clock, tick.iteration);
        xs[i] = sgm__clock_tick_on(&tick, w->axis);
    }
    *count = sgm__series_count(item->series);
    pthread_mutex_unlock(&recording->store);
    return made;
}

/* How many points of each bucket are not finite; left out where there are none. */
static void append_bad(sgm__text *text, const sgm__series_bucket *buckets, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any = any || buckets[i].bad > 0;
    if (!any)
        return;
    sgm__text_append(text, ",\"bad\":[");
    for (size_t i = 0; i < count; i++)
        sgm__text_append(text, "%s%u", i > 0 ? "," : "", buckets[i].bad);
    sgm__text_append(text, "]");
}

/* One curve of the answer. */
static sgm_status append_series(sgm__text *text, sgm__web_recording *recording, const sgm__web_item *item,
                                const window *w, int64_t stride)
{
    size_t room = (size_t)w->points + 2;
    sgm__series_bucket *buckets = sgm__calloc(room, sizeof *buckets);
    double *xs = sgm__calloc(room, sizeof *xs);
    uint64_t count = 0;
    if (buckets != NULL && xs != NULL) {
        size_t made = reduce(recording, item, w, buckets, xs, &count);
        sgm__text_append(text, "{\"id\":");
        sgm__web_append_text(text, item->identifier);
        sgm__web_append_member(text, "count", (double)count);
        sgm__web_append_member(text, "stride", (double)stride);
        sgm__web_append_numbers(text, "x", xs, sizeof *xs, made);
        sgm__web_append_numbers(text, "min", &buckets->minimum, sizeof *buckets, made);
        sgm__web_append_numbers(text, "max", &buckets->maximum, sizeof *buckets, made);
        sgm__web_append_numbers(text, "last", &buckets->last, sizeof *buckets, made);
        append_bad(text, buckets, made);
        sgm__text_append(text, "}");
    }
    bool good = buckets != NULL && xs != NULL && !text->failed;
    sgm__free(buckets);
    sgm__free(xs);
    return good ? SGM_OK : SGM_ERROR_MEMORY;
}

/* The error for an identifier that is not recorded: names the nearest one, and those that exist as far as
 * the message has room. */
static sgm_status fail_unknown(const sgm__web_recording *recording, sgm__web_item *const *items, size_t count,
                               const char *identifier)
{
    char list[300] = "";
    const char **names = sgm__calloc(count + 1, sizeof *names);
    if (names == NULL)
        return SGM_ERROR_MEMORY;
    size_t shown = 0, length = 0;
    for (size_t i = 0; i < count; i++)
        names[i] = items[i]->identifier;
    for (; shown < count && length + strlen(names[shown]) + 3 < sizeof list; shown++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", shown > 0 ? ", " : "",
                                   names[shown]);
    const char *near = sgm__nearest(identifier, names, count);
    sgm_status status = sgm_fail(
        SGM_ERROR_NOT_FOUND,
        "nothing named '%.200s' is recorded of trainer '%.100s'%s%.200s%s; there are %s%s, and what is "
        "watched (POST /api/watch)",
        identifier, recording->watched->name, near != NULL ? " (did you mean '" : "",
        near != NULL ? near : "", near != NULL ? "'?)" : "", list, shown < count ? " and others" : "");
    sgm__free(names);
    return status;
}

/* A value that will be recorded has an empty curve, so that pages can show its chart before the first
 * point. */
static sgm_status append_unknown(sgm__text *text, sgm__web_recording *recording, sgm__web_item *const *items,
                                 size_t count, const char *identifier)
{
    if (!sgm__web_may_come(recording, identifier))
        return fail_unknown(recording, items, count, identifier);
    sgm__text_append(text, "{\"id\":");
    sgm__web_append_text(text, identifier);
    sgm__text_append(text, ",\"count\":0,\"stride\":1,\"x\":[],\"min\":[],\"max\":[],\"last\":[]}");
    return SGM_OK;
}

/* GET /api/series?id=..&id=..&axis=..&from=..&to=..&points=..: all curves on the same window. */
sgm_status sgm__web_get_series(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__web_recording *recording;
    window w;
    size_t count;
    const char *identifier;
    SGM_TRY(find_by_query(user, request, &recording));
    SGM_TRY(read_window(request, &w));
    sgm__web_item **items = list_items(recording, &count);
    if (items == NULL)
        return SGM_ERROR_MEMORY;
    pthread_mutex_lock(&recording->sampling);
    int64_t stride = recording->status.stride;
    pthread_mutex_unlock(&recording->sampling);
    static const char *const axes[] = {"iteration", "epoch", "seconds"};
    sgm__text text = {0};
    sgm_status status = SGM_OK;
    sgm__text_append(&text, "{\"axis\":\"%s\",\"series\":[", axes[w.axis]);
    for (size_t i = 0;
         i < MAXIMUM_SERIES && status == SGM_OK && (identifier = sgm__http_query(request, "id", i)) != NULL;
         i++) {
        const sgm__web_item *item = sgm__web_find_item(items, count, identifier);
        sgm__web_separate(&text);
        status = item != NULL ? append_series(&text, recording, item, &w, stride)
                              : append_unknown(&text, recording, items, count, identifier);
    }
    sgm__free(items);
    sgm__text_append(&text, "]}");
    if (status == SGM_OK)
        return sgm__web_answer(answer, &text);
    sgm__text_free(&text);
    return status;
}

/* --- watching --- */

/* Takes `identifiers`. */
static sgm_status answer_identifiers(sgm__http_answer *answer, json_t *identifiers, bool pending,
                                     sgm_status status)
{
    if (status == SGM_OK)
        return sgm__http_answer_json(answer,
                                     json_pack("{s:o, s:b}", "identifiers", identifiers, "pending", pending));
    json_decref(identifiers);
    return status;
}

/* POST /api/watch {"trainer", "identifier"}: waits for the trainer, so it is not a quick route. */
sgm_status sgm__web_post_watch(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *identifier;
    bool pending = false;
    SGM_TRY(sgm__web_text(sgm__http_object(request), "identifier", true, &identifier));
    json_t *identifiers = json_array();
    sgm_status status = sgm__web_watch(sgm__web_recording_of(watched), identifier, identifiers, &pending);
    return answer_identifiers(answer, identifiers, pending, status);
}

/* POST /api/unwatch: also of a trainer that has gone. */
sgm_status sgm__web_post_unwatch(void *web, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *name, *identifier;
    sgm__web_trainer *watched;
    const json_t *body = sgm__http_object(request);
    if (body == NULL)
        return sgm__last_failure();
    SGM_TRY(sgm__web_text(body, "trainer", false, &name));
    SGM_TRY(sgm__web_text(body, "identifier", true, &identifier));
    SGM_TRY(sgm__web_find(web, name, &watched));
    json_t *identifiers = json_array();
    sgm__web_unwatch(sgm__web_recording_of(watched), identifier, identifiers);
    return answer_identifiers(answer, identifiers, false, SGM_OK);
}
