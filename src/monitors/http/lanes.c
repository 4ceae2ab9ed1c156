/* The two threads ("lanes") on which functions of routes run.
 *
 * The loop gives a request to the lane of its route (sgm__http_lanes_take); the lane's thread runs the
 * function and puts the exchange into the list `done`; the loop resumes the connection
 * (sgm__http_lanes_deliver), whereupon libmicrohttpd asks for the answer. All queues and stages are
 * guarded by the server's lock, which is not held while a function runs. Quick functions have a lane of
 * their own, so that a function that waits for a trainer does not delay them. */
#include "base/clock.h"
#include "monitors/http/http_internal.h"

#include <poll.h>

/* Seconds that a stopping server waits for a running function; after that its thread is left to itself. */
#define PATIENCE 5.0

/* With the lock. Waits for a request and marks it as running; NULL: the server ends. */
static sgm__http_exchange *take_next(sgm__http_lane *lane)
{
    sgm__http *server = lane->server;
    while (lane->first == NULL && !atomic_load(&server->ending))
        pthread_cond_wait(&lane->more, &server->lock);
    sgm__http_exchange *exchange = lane->first;
    if (exchange == NULL || atomic_load(&server->ending))
        return NULL;
    lane->first = exchange->next;
    if (lane->first == NULL)
        lane->last = NULL;
    exchange->next = NULL;
    exchange->stage = SGM__HTTP_RUNNING;
    lane->acting = true;
    return exchange;
}

/* A client that has closed its sending direction counts as gone too: it was to be there for the answer. */
bool sgm__http_has_left(const sgm__http_request *request)
{
    const sgm__http_exchange *exchange = (const sgm__http_exchange *)request;
    pthread_mutex_lock(&exchange->server->lock);
    bool is_gone = exchange->abandoned;
    pthread_mutex_unlock(&exchange->server->lock);
    if (is_gone)
        return true;
    struct pollfd look = {.fd = exchange->descriptor, .events = POLLRDHUP};
    return poll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

/* Runs the function, without the lock. The message of a failure is copied, as it belongs to this thread. */
static void act(sgm__http_exchange *exchange)
{
    const sgm__http_options *options = &exchange->server->options;
    sgm_clear_error();
    if (options->enter != NULL)
        options->enter(&exchange->request);
    exchange->status = exchange->request.route->act(options->user, &exchange->request, &exchange->answer);
    if (exchange->status != SGM_OK)
        exchange->error = sgm__strdup(sgm_last_error());
    if (options->leave != NULL)
        options->leave();
    json_decref(exchange->object);
    exchange->object = NULL;
}

/* A lane's thread. If the connection has gone meanwhile, nobody waits for the exchange and it is freed
 * here. */
static void *run_lane(void *user)
{
    sgm__http_lane *lane = user;
    sgm__http *server = lane->server;
    pthread_mutex_lock(&server->lock);
    for (sgm__http_exchange *exchange; (exchange = take_next(lane)) != NULL;) {
        pthread_mutex_unlock(&server->lock);
        act(exchange);
        pthread_mutex_lock(&server->lock);
        bool abandoned = exchange->abandoned;
        exchange->stage = SGM__HTTP_DONE;
        lane->acting = false;
        pthread_cond_broadcast(&server->left);
        if (!abandoned) {
            exchange->next = server->done;
            server->done = exchange;
            sgm__http_wake(server);
        } else {
            sgm__http_exchange_free(exchange);
        }
    }
    pthread_mutex_unlock(&server->lock);
    sgm__http_release(server);
    return NULL;
}

/* Each lane holds a reference to the server. */
sgm_status sgm__http_lanes_start(sgm__http *server)
{
    for (size_t i = 0; i < 2; i++) {
        sgm__http_lane *lane = &server->lanes[i];
        lane->server = server;
        atomic_fetch_add(&server->users, 1);
        int error = sgm__thread_start(&lane->thread, run_lane, lane);
        lane->made = error == 0;
        if (error != 0) {
            atomic_fetch_sub(&server->users, 1);
            return sgm_fail(SGM_ERROR_STATE, "a thread of the server cannot be made: %s",
                            sgm__errno_text(error));
        }
    }
    return SGM_OK;
}

/* Loop: appends to the queue. The descriptor is copied because the lane must not touch the connection's
 * place. */
void sgm__http_lanes_take(sgm__http *server, sgm__http_exchange *exchange)
{
    sgm__http_lane *lane = &server->lanes[exchange->request.route->quick ? 0 : 1];
    pthread_mutex_lock(&server->lock);
    exchange->stage = SGM__HTTP_WAITING;
    exchange->request.asked = sgm__now();
    exchange->descriptor = exchange->place->descriptor;
    if (lane->last != NULL)
        lane->last->next = exchange;
    else
        lane->first = exchange;
    lane->last = exchange;
    pthread_cond_signal(&lane->more);
    pthread_mutex_unlock(&server->lock);
}

/* The list is taken over as a whole; each connection is resumed on the loop's thread, as libmicrohttpd
 * requires. */
void sgm__http_lanes_deliver(sgm__http *server)
{
    pthread_mutex_lock(&server->lock);
    sgm__http_exchange *list = server->done;
    server->done = NULL;
    pthread_mutex_unlock(&server->lock);
    while (list != NULL) {
        sgm__http_exchange *next = list->next;
        if (list->suspended) /* one whose answer is being written is not */
            MHD_resume_connection(list->connection);
        list->suspended = false;
        list = next;
    }
}

/* Takes waiting requests back and resumes all suspended connections, so that libmicrohttpd can answer and
 * close them. The stage BODY makes sgm__http_on_request refuse them. A function that is running keeps its
 * exchange. */
void sgm__http_lanes_clear(sgm__http *server)
{
    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < 2; i++) {
        sgm__http_lane *lane = &server->lanes[i];
        for (sgm__http_exchange *exchange = lane->first; exchange != NULL; exchange = exchange->next)
            exchange->stage = SGM__HTTP_BODY;
        lane->first = lane->last = NULL;
    }
    pthread_mutex_unlock(&server->lock);
    for (size_t i = 0; i < SGM__HTTP_CONNECTIONS; i++) {
        sgm__http_exchange *exchange = server->connections[i].exchange;
        if (exchange != NULL && exchange->suspended) {
            exchange->suspended = false;
            MHD_resume_connection(exchange->connection);
        }
    }
}

/* Waits for running functions, with a limit. A lane without a running function ends at once and is joined;
 * one with a function is detached and frees its part when the function returns. True: none is left. */
bool sgm__http_lanes_stop(sgm__http *server)
{
    struct timespec until = sgm__time_in(PATIENCE / server->options.hurry);
    int error = 0;
    pthread_mutex_lock(&server->lock);
    pthread_cond_broadcast(&server->lanes[0].more);
    pthread_cond_broadcast(&server->lanes[1].more);
    while ((server->lanes[0].acting || server->lanes[1].acting) && error == 0)
        error = pthread_cond_timedwait(&server->left, &server->lock, &until);
    bool acting[] = {server->lanes[0].acting, server->lanes[1].acting};
    pthread_mutex_unlock(&server->lock);
    for (size_t i = 0; i < 2; i++) {
        if (acting[i])
            pthread_detach(server->lanes[i].thread);
        else if (server->lanes[i].made)
            pthread_join(server->lanes[i].thread, NULL);
    }
    return !acting[0] && !acting[1];
}
