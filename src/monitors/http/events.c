/* Server-sent events (WHATWG HTML, section 9.2): streams of events to the browsers that have asked for
 * /api/events.
 *
 * Each listening browser has a bounded ring of events. sgm__http_push, on any thread, makes an event once
 * and puts pointers to it into all rings, under the lock; it never waits. The loop writes from the rings
 * as fast as each browser reads (read_events, called by libmicrohttpd). A listener whose ring is empty has
 * its connection suspended, until sgm__http_events_deliver resumes it. Events are counted references,
 * since several rings share one. */
#include "monitors/http/http_internal.h"

#include <stdio.h>

/* Bytes that libmicrohttpd asks for at once. */
#define BLOCK 16384
#define HEARTBEAT                                                                                            \
    10.0 /* seconds without an event after which an empty one is sent: writing alone shows who has gone */

/* Drops a reference; NULL is allowed. */
static void release(sgm__http_event *event)
{
    if (event != NULL && atomic_fetch_sub(&event->references, 1) == 1)
        sgm__free(event);
}

/* The text of an event: "event: NAME", "data: LINE" for each line of `json`, an empty line. The caller has
 * one reference. NULL: out of memory. */
static sgm__http_event *make_event(const char *name, const char *json)
{
    sgm__text text = {0};
    sgm__text_append(&text, "event: %s\n", name);
    for (const char *line = json; line != NULL;) {
        const char *end = strchr(line, '\n');
        size_t length = end != NULL ? (size_t)(end - line) : strlen(line);
        sgm__text_append_bytes(&text, "data: ", 6);
        sgm__text_append_bytes(&text, line, length);
        sgm__text_append_bytes(&text, "\n", 1);
        line = end != NULL ? end + 1 : NULL;
    }
    sgm__text_append_bytes(&text, "\n", 1);
    sgm__http_event *event = text.failed ? NULL : sgm__alloc(sizeof *event + text.length);
    if (event != NULL) {
        atomic_init(&event->references, 1);
        event->length = text.length;
        memcpy(event->bytes, text.data, text.length);
    }
    sgm__text_free(&text);
    return event;
}

/* --- any thread --- */

/* With the lock. False: there is no room, or there is no event for want of memory; the listener counts it
 * as lost. */
static bool enqueue(sgm__http_listener *listener, sgm__http_event *event)
{
    if (event == NULL || listener->count == SGM__HTTP_QUEUE ||
        listener->bytes + event->length > SGM__HTTP_QUEUE_BYTES) {
        if (listener->dropped++ == 0)
            listener->before = listener->count;
        return false;
    }
    listener->queue[(listener->first + listener->count++) % SGM__HTTP_QUEUE] = event;
    listener->bytes += event->length;
    atomic_fetch_add(&event->references, 1);
    return true;
}

/* Without listeners this costs one comparison. */
void sgm__http_push(sgm__http *server, const char *event, const char *json)
{
    if (server == NULL || atomic_load(&server->listeners) == 0)
        return;
    sgm__http_event *made = make_event(event, json);
    uint64_t dropped = 0;
    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < SGM__HTTP_LISTENERS; i++)
        if (server->listener_places[i].used && !enqueue(&server->listener_places[i], made))
            dropped++;
    pthread_mutex_unlock(&server->lock);
    if (dropped > 0)
        atomic_fetch_add(&server->dropped, dropped);
    release(made);
    sgm__http_wake(server);
}

size_t sgm__http_listeners(const sgm__http *server)
{
    return atomic_load(&server->listeners);
}

uint64_t sgm__http_dropped(const sgm__http *server)
{
    return atomic_load(&server->dropped);
}

/* --- the loop --- */

/* The event that says how many events were lost. */
static sgm__http_event *notice_of(uint64_t dropped)
{
    char json[64];
    snprintf(json, sizeof json, "{\"count\":%llu}", (unsigned long long)dropped);
    return make_event("dropped", json);
}

/* The next event to send, or NULL. The notice of losses is sent behind the events that had come before them,
 * so that whoever gets a newer one has been told. */
static sgm__http_event *take_next(sgm__http_listener *listener)
{
    sgm__http_event *event = NULL;
    uint64_t dropped = 0;
    pthread_mutex_lock(&listener->server->lock);
    if (listener->dropped > 0 && listener->before == 0) {
        dropped = listener->dropped;
        listener->dropped = 0;
    } else if (listener->count > 0) {
        event = listener->queue[listener->first];
        listener->first = (listener->first + 1) % SGM__HTTP_QUEUE;
        listener->count--;
        listener->bytes -= event->length;
        listener->before -= listener->before > 0;
    }
    pthread_mutex_unlock(&listener->server->lock);
    return dropped > 0 ? notice_of(dropped) : event;
}

/* Copies as much of the current event as there is room for; returns how many bytes. */
static size_t copy_part(sgm__http_listener *listener, char *to, size_t room)
{
    size_t left = listener->current->length - listener->sent, part = left < room ? left : room;
    memcpy(to, listener->current->bytes + listener->sent, part);
    listener->sent += part;
    if (part == left) {
        release(listener->current);
        listener->current = NULL;
    }
    return part;
}

/* Callback of libmicrohttpd that fills a block. The first block begins with the time after which the
 * browser connects again (1 s). If there is nothing to send, the connection is suspended here, and 0 is
 * returned, which is allowed because of that. */
static ssize_t read_events(void *user, uint64_t position, char *to, size_t room)
{
    static const char greeting[] = "retry: 1000\n\n", beat[] = ":\n\n";
    (void)position;
    sgm__http_listener *listener = user;
    size_t filled = 0;
    if ((!listener->greeted || listener->beat) && room >= sizeof greeting) {
        const char *text = listener->greeted ? beat : greeting;
        filled = strlen(text);
        memcpy(to, text, filled);
        listener->greeted = true;
        listener->beat = false;
    }
    while (filled < room) {
        if (listener->current == NULL) {
            listener->current = take_next(listener);
            listener->sent = 0;
        }
        if (listener->current == NULL)
            break;
        filled += copy_part(listener, to + filled, room - filled);
    }
    listener->active = sgm__now();
    if (filled > 0)
        return (ssize_t)filled;
    if (atomic_load(&listener->server->ending))
        return MHD_CONTENT_READER_END_OF_STREAM;
    listener->suspended = true;
    MHD_suspend_connection(listener->connection);
    return 0;
}

static sgm__http_listener *find_place(sgm__http *server)
{
    for (size_t i = 0; i < SGM__HTTP_LISTENERS; i++)
        if (!server->listener_places[i].used)
            return &server->listener_places[i];
    return NULL;
}

/* Begins a stream. The listener's place is written with the lock, because sgm__http_push looks at all
 * places. */
enum MHD_Result sgm__http_events_open(sgm__http_exchange *exchange)
{
    sgm__http *server = exchange->server;
    sgm__http_listener *listener = find_place(server);
    if (listener == NULL) {
        sgm__http_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "%d pages listen already: close one of them",
                         SGM__HTTP_LISTENERS);
        return sgm__http_respond_refusal(exchange);
    }
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_events, listener, NULL);
    if (response == NULL)
        return MHD_NO;
    pthread_mutex_lock(&server->lock);
    *listener = (sgm__http_listener){
        .used = true, .server = server, .connection = exchange->connection, .active = sgm__now()};
    pthread_mutex_unlock(&server->lock);
    atomic_fetch_add(&server->listeners, 1);
    exchange->listener = listener;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    return sgm__http_respond(exchange, MHD_HTTP_OK, response);
}

/* The connection has gone: releases all events of the listener. */
void sgm__http_events_close(sgm__http_listener *listener)
{
    sgm__http *server = listener->server;
    atomic_fetch_sub(&server->listeners, 1);
    pthread_mutex_lock(&server->lock);
    for (; listener->count > 0; listener->count--) {
        release(listener->queue[listener->first]);
        listener->first = (listener->first + 1) % SGM__HTTP_QUEUE;
    }
    release(listener->current);
    listener->used = false;
    pthread_mutex_unlock(&server->lock);
}

/* The lock is taken for each listener anew, so that sgm__http_push never waits for more than one. */
void sgm__http_events_deliver(sgm__http *server, bool all)
{
    double now = sgm__now();
    for (size_t i = 0; i < SGM__HTTP_LISTENERS; i++) {
        sgm__http_listener *listener = &server->listener_places[i];
        if (!listener->used || !listener->suspended)
            continue;
        pthread_mutex_lock(&server->lock);
        bool has = listener->count > 0 || listener->dropped > 0;
        pthread_mutex_unlock(&server->lock);
        listener->beat = now - listener->active > HEARTBEAT / server->options.hurry;
        if (has || listener->beat || all) {
            listener->suspended = false;
            MHD_resume_connection(listener->connection);
        }
    }
}

bool sgm__http_events_wait(sgm__http *server)
{
    bool waits = false;
    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < SGM__HTTP_LISTENERS; i++)
        waits |= server->listener_places[i].used && server->listener_places[i].count > 0;
    pthread_mutex_unlock(&server->lock);
    return waits;
}
