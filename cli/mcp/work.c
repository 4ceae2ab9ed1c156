/* The queue of requests and the thread that works it off. */
#include "mcp/server.h"

/* Requests that may wait at once: a client that sends more without reading answers is told to wait. */
#define MAXIMUM_WAITING 64

static mcp_request *take(mcp_work *work)
{
    pthread_mutex_lock(&work->lock);
    while (work->first == NULL && !work->closing)
        pthread_cond_wait(&work->more, &work->lock);
    mcp_request *request = work->first;
    if (request != NULL) {
        work->first = request->next;
        work->waiting--;
        if (work->first == NULL)
            work->last = &work->first;
    }
    work->current = request;
    pthread_mutex_unlock(&work->lock);
    return request;
}

/* A request is freed when nobody can cancel it any more. */
static void drop(mcp_work *work, mcp_request *request)
{
    pthread_mutex_lock(&work->lock);
    work->current = NULL;
    pthread_mutex_unlock(&work->lock);
    mcp_request_free(request);
}

static void *run(void *user)
{
    mcp_server *server = user;
    for (mcp_request *request; (request = take(&server->work)) != NULL;) {
        if (atomic_load(&request->cancelled) || atomic_load(&server->output.broken))
            rpc_answer(&server->output, request->batch, NULL);
        else
            mcp_obey(server, request);
        drop(&server->work, request);
    }
    return NULL;
}

sgm_status mcp_work_begin(mcp_server *server)
{
    mcp_work *work = &server->work;
    work->last = &work->first;
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->more, NULL);
    int error = pthread_create(&work->thread, NULL, run, server);
    return error == 0 ? SGM_OK
                      : sgm_fail(SGM_ERROR_STATE, "no thread can be started: %s", sgm__errno_text(error));
}

bool mcp_work_add(mcp_server *server, mcp_request *request)
{
    mcp_work *work = &server->work;
    pthread_mutex_lock(&work->lock);
    bool taken = work->waiting < MAXIMUM_WAITING;
    if (taken) {
        *work->last = request;
        work->last = &request->next;
        work->waiting++;
        pthread_cond_signal(&work->more);
    }
    pthread_mutex_unlock(&work->lock);
    return taken;
}

void mcp_work_cancel(mcp_server *server, const json_t *id)
{
    mcp_work *work = &server->work;
    pthread_mutex_lock(&work->lock);
    for (mcp_request *request = work->first; request != NULL; request = request->next)
        if (json_equal(request->id, id))
            atomic_store(&request->cancelled, true);
    if (work->current != NULL && json_equal(work->current->id, id))
        atomic_store(&work->current->cancelled, true);
    pthread_mutex_unlock(&work->lock);
}

void mcp_work_end(mcp_server *server, double seconds)
{
    mcp_work *work = &server->work;
    atomic_store(&work->ending, sgm__now() + seconds);
    pthread_mutex_lock(&work->lock);
    work->closing = true;
    pthread_cond_signal(&work->more);
    pthread_mutex_unlock(&work->lock);
    pthread_join(work->thread, NULL);
    pthread_cond_destroy(&work->more);
    pthread_mutex_destroy(&work->lock);
}

bool mcp_is_withdrawn(const mcp_server *server, const mcp_request *request)
{
    double ending = atomic_load(&server->work.ending);
    return atomic_load(&request->cancelled) || atomic_load(&server->output.broken) ||
           (ending > 0 && sgm__now() >= ending);
}

void mcp_tell_progress(mcp_server *server, const mcp_request *request, double progress, double total,
                       const char *message)
{
    json_t *token = json_object_get(json_object_get(request->params, "_meta"), "progressToken");
    if ((!json_is_string(token) && !json_is_integer(token)) || mcp_is_withdrawn(server, request))
        return;
    json_t *params = json_object();
    json_object_set(params, "progressToken", token);
    json_object_set_new(params, "progress", json_real(progress));
    if (total > 0)
        json_object_set_new(params, "total", json_real(total));
    json_object_set_new(params, "message", json_string(message));
    rpc_send(&server->output, rpc_notification("notifications/progress", params));
}
