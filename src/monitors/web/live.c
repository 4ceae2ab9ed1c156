/* What pages see move: trainers and curves, pushed as they come, and fetched. */
#include "monitors/web/web_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_LIVE 40      /* points of a curve in one event */
#define LIVE_GROUPS 13    /* if there are more: of each the extremes, and what is no number */
#define USUAL_POINTS 1000 /* of a curve that is fetched */
#define MOST_POINTS 10000
#define MOST_SERIES 1000 /* of a request */

/* --- JSON --- */

/* Up to nine digits of a number from 1e-4 to 1e9, many times as fast as printf. */
static size_t write_plain(char *to, double value)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};
    int decimals = 8 - (int)floor(log10(fabs(value)));
    uint64_t scaled = (uint64_t)llrint(fabs(value) * powers[decimals]), unit = (uint64_t)powers[decimals];
    char digits[32] = "";
    size_t length = 0, count = 0;
    if (value < 0)
        to[length++] = '-';
    for (uint64_t whole = scaled / unit; whole > 0 || count == 0; whole /= 10)
        digits[count++] = (char)('0' + whole % 10);
    while (count > 0)
        to[length++] = digits[--count];
    uint64_t rest = scaled % unit;
    if (rest > 0)
        to[length++] = '.';
    for (; rest > 0; rest %= unit) {
        unit /= 10;
        to[length++] = (char)('0' + rest / unit);
    }
    return length;
}

/* Nine digits; with a dot, whatever the program's locale has. */
static size_t write_any(char *to, size_t room, double value)
{
    char digits[64];
    size_t length = 0;
    snprintf(digits, sizeof digits, "%.9g", value);
    for (const char *c = digits; *c != '\0' && length < room; c++)
        if (strchr("0123456789+-e", *c) != NULL)
            to[length++] = *c;
        else if (length > 0 && to[length - 1] != '.')
            to[length++] = '.';
    return length;
}

void sgm__web_append_number(sgm__text *text, double value)
{
    char digits[64];
    double size = fabs(value);
    if (!isfinite(value))
        sgm__text_append_bytes(text, "null", 4);
    else if (size < 1e15 && value == rint(value))
        sgm__text_append_bytes(text, digits,
                               (size_t)snprintf(digits, sizeof digits, "%lld", (long long)value));
    else if (size >= 1e-4 && size < 9e8)
        sgm__text_append_bytes(text, digits, write_plain(digits, value));
    else
        sgm__text_append_bytes(text, digits, write_any(digits, sizeof digits, value));
}

void sgm__web_append_text(sgm__text *text, const char *value)
{
    json_t *made = json_string(value);
    char *quoted = made != NULL ? json_dumps(made, JSON_ENCODE_ANY) : NULL;
    sgm__text_append(text, "%s", quoted != NULL ? quoted : "\"?\"");
    free(quoted);
    json_decref(made);
}

sgm_status sgm__web_answer(sgm__http_answer *answer, sgm__text *json)
{
    answer->length = json->length;
    answer->body = sgm__text_take(json);
    return answer->body != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__web_text(const json_t *body, const char *name, bool wanted, const char **text)
{
    const json_t *value = json_object_get(body, name);
    *text = json_string_value(value);
    if (value != NULL && !json_is_null(value) && *text == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' must be a text", name);
    if (wanted && *text == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a text '%s' in the request", name);
    return SGM_OK;
}

/* --- pushing --- */

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
    char *text = data != NULL && http != NULL ? json_dumps(data, JSON_COMPACT) : NULL;
    if (text != NULL)
        sgm__http_push(http, event, text);
    free(text);
    json_decref(data);
}

/* --- trainers --- */

static sgm__web_recording *recording_of(const sgm__web_trainer *watched)
{
    return watched->states[SGM__WEB_live];
}

sgm__web_moment sgm__web_now(sgm__web_trainer *watched)
{
    sgm__web_recording *recording = recording_of(watched);
    pthread_mutex_lock(&recording->sampling);
    sgm__web_moment moment = recording->status.moment;
    pthread_mutex_unlock(&recording->sampling);
    return moment;
}

static void append_member(sgm__text *text, const char *name, double value)
{
    sgm__text_append(text, ",\"%s\":", name);
    sgm__web_append_number(text, value);
}

static void append_status(sgm__text *text, const sgm__web_status *status, sgm_trainer_state state)
{
    const sgm_training_progress *progress = &status->progress;
    append_member(text, "epoch", (double)progress->epoch);
    append_member(text, "epochs", (double)progress->epochs);
    append_member(text, "batch", (double)progress->batch);
    append_member(text, "batches", (double)progress->batches);
    append_member(text, "iteration", (double)progress->iteration);
    append_member(text, "seconds", status->moment.seconds);
    append_member(text, "rate", progress->rate);
    append_member(text, "seconds_left",
                  state != SGM_TRAINER_IDLE && progress->seconds_left >= 0 ? progress->seconds_left : NAN);
    append_member(text, "loss", progress->training.loss);
    append_member(text, "accuracy", progress->training.accuracy);
    append_member(text, "learning_rate", progress->learning_rate);
    append_member(text, "parameters", (double)status->parameters);
    append_member(text, "stride", (double)status->stride);
    sgm__text_append(text, ",\"folder\":%s,\"network\":", status->has_folder ? "true" : "false");
    sgm__web_append_text(text, status->network != NULL ? status->network : "");
    sgm__text_append(text, ",\"reason\":");
    if (status->reason[0] != '\0' && state == SGM_TRAINER_IDLE)
        sgm__web_append_text(text, status->reason);
    else
        sgm__text_append(text, "null");
}

static sgm__web_status copy_status(sgm__web_recording *recording)
{
    pthread_mutex_lock(&recording->sampling);
    sgm__web_status status = recording->status;
    status.network = sgm__strdup(status.network);
    pthread_mutex_unlock(&recording->sampling);
    return status;
}

static void append_with(sgm__text *text, const sgm__web_trainer *watched, const sgm__web_status *status,
                        const sgm__web_standing *standing)
{
    static const char *const names[] = {"idle", "running", "paused"};
    sgm__text_append(text, "{\"name\":");
    sgm__web_append_text(text, watched->name);
    sgm__text_append(text, ",\"state\":\"%s\",\"ghost\":%s,\"gone\":%s", names[standing->state],
                     standing->ghost ? "true" : "false", standing->gone ? "true" : "false");
    append_status(text, status, standing->state);
    sgm__text_append(text, "}");
}

void sgm__web_append_trainer(sgm__text *text, sgm__web_trainer *watched)
{
    sgm__web_standing standing = sgm__web_standing_of(watched);
    sgm__web_status status = copy_status(recording_of(watched));
    append_with(text, watched, &status, &standing);
    sgm__free(status.network);
}

/* --- the session --- */

static bool append_listed(void *user, sgm__web_trainer *watched)
{
    sgm__text *text = user;
    if (text->data[text->length - 1] != '[')
        sgm__text_append(text, ",");
    sgm__web_append_trainer(text, watched);
    return true;
}

static void append_named(sgm__text *text, const char *name, const char *value)
{
    sgm__text_append(text, ",\"%s\":", name);
    sgm__web_append_text(text, value);
}

static sgm_status get_session(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__web *web = user;
    (void)request;
    sgm__text text = {0};
    char *tabs = web->tabs != NULL ? json_dumps(web->tabs, JSON_COMPACT) : NULL;
    sgm__text_append(&text, "{\"name\":");
    sgm__web_append_text(&text, web->host.name);
    append_named(&text, "version", sgm_version());
    append_named(&text, "handler", web->host.handler);
    append_named(&text, "precision", sgm_dtype_name(web->host.precision));
    append_member(&text, "threads", web->host.threads > 0 ? web->host.threads : sgm__processors());
    append_named(&text, "title", web->options.title != NULL ? web->options.title : web->host.name);
    sgm__text_append(&text, ",\"tabs\":%s,\"language\":null,\"waiting\":%s,\"trainers\":[",
                     tabs != NULL ? tabs : "null", sgm__web_waits(web) ? "true" : "false");
    free(tabs);
    if (!text.failed)
        sgm__web_each(web, append_listed, &text);
    sgm__text_append(&text, "]}");
    return sgm__web_answer(answer, &text);
}

static sgm_status end_waiting(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)request, (void)answer;
    if (!sgm__web_waits(user))
        return sgm_fail(SGM_ERROR_STATE, "the program does not wait for anybody");
    sgm__web_finish(user);
    sgm__web_trainers_changed(user);
    return SGM_OK;
}

/* --- series --- */

static sgm_status find_by_query(sgm__web *web, const sgm__http_request *request,
                                sgm__web_recording **recording)
{
    sgm__web_trainer *watched;
    SGM_TRY(sgm__web_find(web, sgm__http_query(request, "trainer", 0), &watched));
    *recording = recording_of(watched);
    return SGM_OK;
}

/* The items that are recorded now, which stay; free with sgm__free. */
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

static sgm_status get_list(void *user, const sgm__http_request *request, sgm__http_answer *answer)
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
        append_member(&text, "count", (double)points);
        sgm__text_append(&text, "}");
    }
    sgm__free(items);
    sgm__text_append(&text, "]}");
    return sgm__web_answer(answer, &text);
}

typedef struct window {
    sgm__axis axis;
    double from, to;
    int64_t points;
} window;

static sgm_status read_number(const sgm__http_request *request, const char *name, double *value)
{
    const char *text = sgm__http_query(request, name, 0);
    if (text != NULL && !sgm__parse_double(text, value))
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s': expected a number, got '%.40s'", name, text);
    return SGM_OK;
}

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
    double points = USUAL_POINTS;
    SGM_TRY(read_number(request, "points", &points));
    if (!(points >= 2 && points <= MOST_POINTS))
        return sgm_fail(SGM_ERROR_ARGUMENT, "points: expected 2 to %d", MOST_POINTS);
    w->points = (int64_t)points;
    return SGM_OK;
}

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

typedef enum column { LEAST, MOST, LAST } column;

static void append_column(sgm__text *text, const char *name, const sgm__series_bucket *buckets, size_t count,
                          column which)
{
    sgm__text_append(text, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        const sgm__series_bucket *b = &buckets[i];
        if (i > 0)
            sgm__text_append_bytes(text, ",", 1);
        sgm__web_append_number(text, which == LEAST ? b->least : which == MOST ? b->most : b->last);
    }
    sgm__text_append_bytes(text, "]", 1);
}

/* Only where there are some. */
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
        append_member(text, "count", (double)count);
        append_member(text, "stride", (double)stride);
        sgm__text_append(text, ",\"x\":[");
        for (size_t i = 0; i < made; i++) {
            if (i > 0)
                sgm__text_append_bytes(text, ",", 1);
            sgm__web_append_number(text, xs[i]);
        }
        sgm__text_append(text, "]");
        append_column(text, "min", buckets, made, LEAST);
        append_column(text, "max", buckets, made, MOST);
        append_column(text, "last", buckets, made, LAST);
        append_bad(text, buckets, made);
        sgm__text_append(text, "}");
    }
    bool good = buckets != NULL && xs != NULL && !text->failed;
    sgm__free(buckets);
    sgm__free(xs);
    return good ? SGM_OK : SGM_ERROR_MEMORY;
}

static const sgm__web_item *find_item(sgm__web_item *const *items, size_t count, const char *identifier)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(items[i]->identifier, identifier) == 0)
            return items[i];
    return NULL;
}

/* One that nobody has recorded has no points. */
static sgm_status append_unknown(sgm__text *text, const char *identifier)
{
    sgm__text_append(text, "{\"id\":");
    sgm__web_append_text(text, identifier);
    sgm__text_append(text, ",\"count\":0,\"stride\":1,\"x\":[],\"min\":[],\"max\":[],\"last\":[]}");
    return SGM_OK;
}

static sgm_status get_series(void *user, const sgm__http_request *request, sgm__http_answer *answer)
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
         i < MOST_SERIES && status == SGM_OK && (identifier = sgm__http_query(request, "id", i)) != NULL;
         i++) {
        const sgm__web_item *item = find_item(items, count, identifier);
        if (i > 0)
            sgm__text_append(&text, ",");
        status = item != NULL ? append_series(&text, recording, item, &w, stride)
                              : append_unknown(&text, identifier);
    }
    sgm__free(items);
    sgm__text_append(&text, "]}");
    if (status == SGM_OK)
        return sgm__web_answer(answer, &text);
    sgm__text_free(&text);
    return status;
}

/* --- watching --- */

static sgm_status read_watch(const sgm__http_request *request, json_t **body, const char **trainer,
                             const char **identifier)
{
    *body = sgm__http_object(request);
    if (*body == NULL)
        return sgm__last_failure();
    sgm_status status = sgm__web_text(*body, "trainer", false, trainer);
    if (status == SGM_OK)
        status = sgm__web_text(*body, "identifier", true, identifier);
    if (status != SGM_OK)
        json_decref(*body);
    return status;
}

static sgm_status answer_identifiers(sgm__http_answer *answer, json_t *identifiers, sgm_status status)
{
    if (status == SGM_OK)
        return sgm__http_answer_json(answer, json_pack("{s:o}", "identifiers", identifiers));
    json_decref(identifiers);
    return status;
}

static sgm_status watch(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    json_t *body, *identifiers = json_array();
    const char *name, *identifier;
    sgm__web_trainer *watched;
    sgm_status status = read_watch(request, &body, &name, &identifier);
    if (status == SGM_OK) {
        status = sgm__web_borrow(user, name, &watched);
        if (status == SGM_OK) {
            status = sgm__web_watch(recording_of(watched), identifier, identifiers);
            sgm__web_give_back(watched);
        }
        json_decref(body);
    }
    return answer_identifiers(answer, identifiers, status);
}

static sgm_status unwatch(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    json_t *body, *identifiers = json_array();
    const char *name, *identifier;
    sgm__web_trainer *watched;
    sgm_status status = read_watch(request, &body, &name, &identifier);
    if (status == SGM_OK) {
        status = sgm__web_find(user, name, &watched);
        if (status == SGM_OK)
            sgm__web_unwatch(recording_of(watched), identifier, identifiers);
        json_decref(body);
    }
    return answer_identifiers(answer, identifiers, status);
}

/* --- ten times a second --- */

static void show_status(sgm__web *web, sgm__web_trainer *watched)
{
    sgm__web_recording *recording = recording_of(watched);
    sgm__text text = {0};
    sgm__web_standing standing = sgm__web_standing_of(watched);
    sgm__web_status status = copy_status(recording);
    if (status.version != recording->shown || standing.state != recording->shown_state) {
        recording->shown = status.version;
        recording->shown_state = standing.state;
        append_with(&text, watched, &status, &standing);
        sgm__web_push_text(web, "progress", &text);
    }
    sgm__free(status.network);
}

static void append_point(sgm__text *text, const sgm__web_point *point, bool is_first)
{
    const sgm__web_moment *moment = &point->sample->moment;
    sgm__text_append(text, "%s[%lld,", is_first ? "" : ",", (long long)moment->iteration);
    sgm__web_append_number(text, moment->epoch);
    sgm__text_append_bytes(text, ",", 1);
    sgm__web_append_number(text, moment->seconds);
    sgm__text_append_bytes(text, ",", 1);
    sgm__web_append_number(text, point->value);
    sgm__text_append_bytes(text, "]", 1);
}

/* Of these points the least, the most and one that is no number, in their order; then the last one. */
static void append_extremes(sgm__text *text, const sgm__web_point *points, size_t count, bool *is_first)
{
    size_t least = count, most = count, bad = count;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(points[i].value)) {
            bad = i;
            continue;
        }
        if (least == count || points[i].value < points[least].value)
            least = i;
        if (most == count || points[i].value > points[most].value)
            most = i;
    }
    for (size_t i = 0; i < count; i++)
        if (i == least || i == most || i == bad) {
            append_point(text, &points[i], *is_first);
            *is_first = false;
        }
}

static void append_points(sgm__text *text, const sgm__web_point *points, size_t count)
{
    bool is_first = true;
    if (count <= MOST_LIVE) {
        for (size_t i = 0; i < count; i++)
            append_point(text, &points[i], i == 0);
        return;
    }
    for (size_t group = 0; group < LIVE_GROUPS; group++) {
        size_t start = (count - 1) * group / LIVE_GROUPS, end = (count - 1) * (group + 1) / LIVE_GROUPS;
        append_extremes(text, points + start, end - start, &is_first);
    }
    append_point(text, &points[count - 1], false);
}

/* Of what was drained. */
static void show_points(sgm__web *web, sgm__web_trainer *watched)
{
    sgm__web_recording *recording = recording_of(watched);
    sgm__text text = {0};
    if (!sgm__web_sort_drained(recording))
        return;
    sgm__text_append(&text, "{\"trainer\":");
    sgm__web_append_text(&text, watched->name);
    append_member(&text, "stride", (double)recording->drained_stride);
    if (recording->cut != INT64_MAX)
        append_member(&text, "cut", (double)recording->cut);
    sgm__text_append(&text, ",\"series\":{");
    bool is_first = true;
    for (size_t i = 0; i < recording->drained_items; i++) {
        size_t start = recording->starts[i], end = recording->starts[i + 1];
        if (start == end)
            continue;
        sgm__text_append(&text, is_first ? "" : ",");
        sgm__web_append_text(&text, recording->item_copies[i]->identifier);
        sgm__text_append(&text, ":[");
        append_points(&text, recording->points + start, end - start);
        sgm__text_append(&text, "]");
        is_first = false;
    }
    sgm__text_append(&text, "}}");
    sgm__web_push_text(web, "points", &text);
}

typedef struct live {
    uint64_t ticks;
    size_t listeners;
} live;

static bool tick_trainer(void *user, sgm__web_trainer *watched)
{
    const live *self = user;
    sgm__web *web = watched->web;
    if (self->ticks % 2 == 0)
        sgm__web_drain(recording_of(watched));
    if (self->listeners == 0)
        return true;
    show_status(web, watched);
    if (self->ticks % 2 == 0)
        show_points(web, watched);
    return true;
}

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
    {.method = "GET", .path = "/api/session", .act = get_session, .quick = true},
    {.method = "POST", .path = "/api/finish", .act = end_waiting, .quick = true},
    {.method = "GET", .path = "/api/series", .act = get_series, .quick = true},
    {.method = "GET", .path = "/api/series/list", .act = get_list, .quick = true},
    {.method = "POST", .path = "/api/watch", .act = watch},
    {.method = "POST", .path = "/api/unwatch", .act = unwatch, .quick = true},
};

const sgm__web_part sgm__web_live = {.routes = routes,
                                     .route_count = sizeof routes / sizeof *routes,
                                     .create = create,
                                     .free = sgm__free,
                                     .attach = attach,
                                     .detach = detach,
                                     .free_trainer = free_recording,
                                     .tick = tick};
