/* Answers that are sent while their function still runs.
 *
 * The function, on its lane's thread, appends parts to exchange->stream.waiting, under the lock, and wakes
 * the loop. At the first part the loop resumes the connection, which was suspended when the lane got the
 * request; libmicrohttpd then asks for the answer (open), and for its bytes (read_parts), as fast as the
 * client reads. When nothing waits the connection is suspended again. No thread ever waits for a client: one
 * that leaves too much unread is cut off. */
#include "monitors/http/http_internal.h"

#include <string.h>

#define BLOCK 16384 /* bytes that libmicrohttpd asks for at once */

/* --- on the lane's thread --- */

static sgm__http_exchange *exchange_of(const sgm__http_request *request)
{
    return (sgm__http_exchange *)(uintptr_t)request;
}

bool sgm__http_send(const sgm__http_request *request, const char *type, const char *bytes, size_t length)
{
    sgm__http_exchange *exchange = exchange_of(request);
    sgm__http *server = exchange->server;
    sgm__http_stream *stream = &exchange->stream;
    pthread_mutex_lock(&server->lock);
    stream->type = type;
    stream->cut = stream->cut || stream->waiting.length + length > SGM__HTTP_QUEUE_BYTES;
    if (!stream->cut)
        sgm__text_append_bytes(&stream->waiting, bytes, length);
    bool goes_on = !stream->cut && !stream->waiting.failed && !exchange->abandoned;
    pthread_mutex_unlock(&server->lock);
    sgm__http_wake(server);
    return goes_on;
}

/* --- the loop --- */

/* With the lock. Takes up to `room` bytes from the front; returns how many. */
static size_t take_part(sgm__text *waiting, char *to, size_t room)
{
    size_t part = waiting->length < room ? waiting->length : room;
    if (part > 0) {
        memcpy(to, waiting->data, part);
        waiting->length -= part;
        memmove(waiting->data, waiting->data + part, waiting->length);
    }
    return part;
}

/* Callback of libmicrohttpd that fills a block. An answer that is not complete ends without the mark of its
 * end, so that the client knows. The time limit to read the rest begins when the function has returned. */
static ssize_t read_parts(void *user, uint64_t position, char *to, size_t room)
{
    (void)position;
    sgm__http_exchange *exchange = user;
    sgm__http_stream *stream = &exchange->stream;
    pthread_mutex_lock(&exchange->server->lock);
    bool is_cut = stream->cut || stream->waiting.failed;
    size_t filled = is_cut ? 0 : take_part(&stream->waiting, to, room);
    bool is_done = exchange->stage == SGM__HTTP_DONE;
    pthread_mutex_unlock(&exchange->server->lock);
    if (is_done && exchange->place->deadline == 0)
        sgm__http_phase_set(exchange->server, exchange->place, sgm__http_busy_phase(exchange),
                            SGM__HTTP_ANSWER_SECONDS);
    if (filled > 0)
        return (ssize_t)filled;
    if (is_done && !is_cut && exchange->status == SGM_OK)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (is_done || is_cut || atomic_load(&exchange->server->ending))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    exchange->suspended = true;
    MHD_suspend_connection(exchange->connection);
    return 0;
}

bool sgm__http_stream_has_begun(sgm__http_exchange *exchange)
{
    pthread_mutex_lock(&exchange->server->lock);
    bool has_begun = exchange->stream.type != NULL;
    pthread_mutex_unlock(&exchange->server->lock);
    return has_begun;
}

enum MHD_Result sgm__http_stream_open(sgm__http_exchange *exchange)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_parts, exchange, NULL);
    if (response == NULL)
        return MHD_NO;
    pthread_mutex_lock(&exchange->server->lock);
    const char *type = exchange->stream.type;
    pthread_mutex_unlock(&exchange->server->lock);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    enum MHD_Result result = sgm__http_respond(exchange, MHD_HTTP_OK, response);
    exchange->place->deadline = 0;
    return result;
}

void sgm__http_streams_deliver(sgm__http *server)
{
    for (size_t i = 0; i < SGM__HTTP_CONNECTIONS; i++) {
        sgm__http_exchange *exchange = server->connections[i].exchange;
        if (exchange == NULL || !exchange->suspended)
            continue;
        pthread_mutex_lock(&server->lock);
        bool has = exchange->stream.waiting.length > 0 || exchange->stream.cut;
        pthread_mutex_unlock(&server->lock);
        if (has) {
            exchange->suspended = false;
            MHD_resume_connection(exchange->connection);
        }
    }
}
