/* A request from its first line to the start of its answer.
 *
 * libmicrohttpd calls the three functions sgm__http_on_target, sgm__http_on_request (several times) and
 * sgm__http_on_completed, always on the loop's thread. Everything that can be judged from the headers is
 * judged before the body is read (`inspect`). Then the request is refused (respond.c), answered with a
 * file, turned into a stream of events (events.c), or given to a lane (lanes.c), during which its
 * connection is suspended; what the function sends meanwhile is in stream.c. */
#include "monitors/http/http_internal.h"

#include <strings.h>
#include <unistd.h>

/* Time limits: for the headers of a request; for a body, a second more for each BODY_RATE bytes of it;
 * between two requests. */
#define HEADER_SECONDS 10.0
#define BODY_SECONDS 10.0
#define BODY_RATE 65536.0
#define IDLE_SECONDS 30.0

/* The first line has come: makes the exchange, which libmicrohttpd keeps as the state of the request.
 * NULL: no memory; sgm__http_on_request then closes the connection. */
void *sgm__http_on_target(void *user, const char *target, struct MHD_Connection *connection)
{
    sgm__http *server = user;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    sgm__http_connection *place = info != NULL ? info->socket_context : NULL;
    sgm__http_exchange *exchange = place != NULL ? sgm__calloc(1, sizeof *exchange) : NULL;
    if (exchange == NULL)
        return NULL;
    *exchange = (sgm__http_exchange){.server = server, .connection = connection, .place = place};
    exchange->request =
        (sgm__http_request){.path = "", .body = "", .name = "", .file = -1, .ending = &server->ending};
    if (strlen(target) > SGM__HTTP_LONGEST_TARGET)
        sgm__http_refuse(exchange, MHD_HTTP_URI_TOO_LONG, "an address has at most %d bytes here",
                         SGM__HTTP_LONGEST_TARGET);
    else
        exchange->target = sgm__strdup(target);
    place->exchange = exchange;
    sgm__http_phase_set(server, place, SGM__HTTP_OPENING, HEADER_SECONDS);
    return exchange;
}

/* The answer's file is open only if the answer was never given to libmicrohttpd. */
void sgm__http_exchange_free(sgm__http_exchange *exchange)
{
    sgm__free(exchange->target);
    sgm__http_body_free(exchange);
    sgm__free(exchange->answer.body);
    sgm__text_free(&exchange->stream.waiting);
    if (exchange->answer.is_file)
        close(exchange->answer.descriptor);
    sgm__free(exchange->error);
    sgm__free(exchange);
}

/* The request is over, answered or broken off. If a function is still running, its lane has the exchange
 * and frees it (`abandoned`); otherwise it is taken out of the list of answers, if it is there, and freed
 * here. */
void sgm__http_on_completed(void *user, struct MHD_Connection *connection, void **state,
                            enum MHD_RequestTerminationCode code)
{
    (void)connection, (void)code;
    sgm__http *server = user;
    sgm__http_exchange *exchange = *state;
    *state = NULL;
    if (exchange == NULL)
        return;
    exchange->place->exchange = NULL;
    if (exchange->place->phase != SGM__HTTP_FREE)
        sgm__http_phase_set(exchange->server, exchange->place,
                            exchange->refusal != 0 ? SGM__HTTP_REFUSED : SGM__HTTP_IDLE, IDLE_SECONDS);
    if (exchange->listener != NULL)
        sgm__http_events_close(exchange->listener);
    pthread_mutex_lock(&server->lock);
    bool runs = exchange->stage == SGM__HTTP_RUNNING;
    exchange->abandoned = runs;
    sgm__http_exchange **link = &server->done;
    while (*link != NULL && *link != exchange)
        link = &(*link)->next;
    if (*link != NULL)
        *link = exchange->next;
    pthread_mutex_unlock(&server->lock);
    if (!runs)
        sgm__http_exchange_free(exchange);
}

/* --- headers --- */

/* Finds the route with the longest fitting path and the right method. Returns 0 for a route or a file,
 * otherwise the code of the refusal that an owner gets: a sender that may not ask must not learn which paths
 * exist. */
static int find_route(sgm__http_exchange *exchange)
{
    const sgm__http_options *options = &exchange->server->options;
    const char *path = exchange->path;
    size_t longest = 0;
    for (size_t i = 0; i < options->route_count; i++) {
        const sgm__http_route *route = &options->routes[i];
        size_t length = strlen(route->path);
        bool is_prefix = route->path[length - 1] == '/';
        if (strncmp(path, route->path, length) != 0 || length < longest ||
            is_prefix == (path[length] == '\0'))
            continue;
        /* A longer path hides routes of shorter paths, whatever their methods are. */
        if (length > longest)
            exchange->request.route = NULL;
        longest = length;
        if (strcmp(route->method, exchange->request.method) == 0) {
            exchange->request.route = route;
            exchange->request.path = path + length;
        }
    }
    if (exchange->request.route != NULL)
        return 0;
    bool is_file =
        exchange->server->page != NULL &&
        (strcmp(path, "/") == 0 || strcmp(path, "/api/events") == 0 || sgm__asset_find(path) != NULL);
    if (is_file && strcmp(exchange->request.method, "GET") == 0)
        return 0;
    return longest > 0 || is_file ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND;
}

/* The length must be known in advance, and be given once: neither chunked bodies nor two lengths, which a
 * proxy and this server might read differently (request smuggling). *length is the number of bytes. */
static void check_body(sgm__http_exchange *exchange, bool is_post, double *length)
{
    const char *text, *coding;
    int64_t bytes = 0;
    bool once = sgm__http_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH, &text);
    size_t maximum = exchange->request.route != NULL && exchange->request.route->longest_body > 0
                         ? exchange->request.route->longest_body
                         : SGM__HTTP_DEFAULT_BODY;
    bool is_number =
        text == NULL || (strspn(text, "0123456789") == strlen(text) && sgm__parse_int64(text, &bytes));
    if (!sgm__http_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING, &coding) || coding != NULL || !once ||
        !is_number || (text == NULL && is_post))
        sgm__http_refuse(exchange, MHD_HTTP_LENGTH_REQUIRED, "the length of the body must be given, once");
    else if (!is_post && bytes > 0)
        sgm__http_refuse(exchange, MHD_HTTP_BAD_REQUEST, "only POST has a body");
    else if ((uint64_t)bytes > maximum)
        sgm__http_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "the body has at most %zu bytes here",
                         maximum);
    /* A refused request with a short body is read to its end all the same: closing a connection with
     * unread bytes resets it, and the client may lose the answer. */
    exchange->unread = coding != NULL || !once || !is_number || bytes > SGM__HTTP_DEFAULT_BODY;
    *length = (double)bytes;
}

/* A server without pages is asked by programs, whose authors want to know the paths. */
static void refuse_path(sgm__http_exchange *exchange)
{
    const sgm__http_options *options = &exchange->server->options;
    char paths[sizeof exchange->why] = "";
    size_t length = 0;
    for (size_t i = 0; exchange->server->page == NULL && i < options->route_count; i++)
        if (length < sizeof paths)
            length += (size_t)snprintf(paths + length, sizeof paths - length, "%s%s %s",
                                       i > 0 ? ", " : "; the paths are: ", options->routes[i].method,
                                       options->routes[i].path);
    sgm__http_refuse(exchange, MHD_HTTP_NOT_FOUND, "there is nothing here%s", paths);
}

/* Judges a request by its headers, in the order: target, route, guard, body. The guard comes before the
 * refusals of the route, since these tell which paths exist. */
static void inspect(sgm__http_exchange *exchange, const char *method)
{
    bool is_post = strcmp(method, "POST") == 0;
    double length = 0;
    exchange->request.method = is_post ? "POST" : "GET";
    exchange->path = "";
    if (exchange->target == NULL)
        sgm__http_refuse(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    else
        sgm__http_target_read(exchange);
    int lost = exchange->refusal == 0 ? find_route(exchange) : 0;
    if (!is_post && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        lost = MHD_HTTP_METHOD_NOT_ALLOWED;
    sgm__http_guard(exchange);
    if (lost == MHD_HTTP_NOT_FOUND)
        refuse_path(exchange);
    else if (lost != 0)
        sgm__http_refuse(exchange, lost, "this path does not know the method");
    check_body(exchange, is_post, &length);
    if (exchange->refusal == 0)
        sgm__http_body_open(exchange, (size_t)length);
    sgm__http_phase_set(exchange->server, exchange->place, sgm__http_busy_phase(exchange),
                        BODY_SECONDS + length / BODY_RATE);
}

/* --- the whole of it --- */

/* Answers "/". A right token in the address leads to the welcome, which removes it from there; wrong
 * tokens are removed by a redirection. */
static enum MHD_Result respond_root(sgm__http_exchange *exchange)
{
    if (sgm__http_query(&exchange->request, "token", 0) != NULL)
        return exchange->standing == SGM__HTTP_OWNER ? sgm__http_respond_welcome(exchange)
                                                     : sgm__http_respond_elsewhere(exchange);
    bool is_wrong = sgm__http_query(&exchange->request, "page-token", 0) != NULL &&
                    sgm__http_page_token(exchange) == NULL;
    return is_wrong ? sgm__http_respond_elsewhere(exchange) : sgm__http_respond_page(exchange);
}

/* Sends a complete and allowed request on its way. A route's connection is suspended before a lane gets
 * the request, and has no deadline while the function runs. */
static enum MHD_Result dispatch(sgm__http_exchange *exchange)
{
    const char *path = exchange->path;
    if (exchange->request.route != NULL) {
        exchange->place->deadline = 0;
        exchange->suspended = true;
        MHD_suspend_connection(exchange->connection);
        sgm__http_lanes_take(exchange->server, exchange);
        return MHD_YES;
    }
    if (strcmp(path, "/api/events") == 0)
        return sgm__http_events_open(exchange);
    if (strcmp(path, "/") != 0)
        return sgm__http_respond_asset(exchange, sgm__asset_find(path));
    return respond_root(exchange);
}

/* Reads the stage with the lock: a lane writes it. */
static sgm__http_stage stage_of(sgm__http_exchange *exchange)
{
    pthread_mutex_lock(&exchange->server->lock);
    sgm__http_stage stage = exchange->stage;
    pthread_mutex_unlock(&exchange->server->lock);
    return stage;
}

/* libmicrohttpd calls this when the headers have come, for each part of the body, at its end, and whenever
 * a suspended connection goes on. The default case is a request that waited for a lane when the server
 * stopped. */
enum MHD_Result sgm__http_on_request(void *user, struct MHD_Connection *connection, const char *url,
                                     const char *method, const char *version, const char *data, size_t *size,
                                     void **state)
{
    (void)user, (void)connection, (void)url, (void)version;
    sgm__http_exchange *exchange = *state;
    if (exchange == NULL)
        return MHD_NO;
    if (sgm__http_stream_has_begun(exchange))
        return sgm__http_stream_open(exchange);
    switch (stage_of(exchange)) {
    case SGM__HTTP_HEADERS:
        exchange->stage = SGM__HTTP_BODY;
        inspect(exchange, method);
        return exchange->refusal != 0 && exchange->unread ? sgm__http_respond_refusal(exchange) : MHD_YES;
    case SGM__HTTP_BODY:
        if (*size > 0) {
            if (exchange->refusal == 0)
                sgm__http_body_append(exchange, data, *size);
            *size = 0;
            return MHD_YES;
        }
        sgm__http_body_finish(exchange);
        if (atomic_load(&exchange->server->ending))
            sgm__http_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "the run has ended");
        return exchange->refusal != 0 ? sgm__http_respond_refusal(exchange) : dispatch(exchange);
    case SGM__HTTP_DONE:
        return sgm__http_respond_answer(exchange);
    default:
        sgm__http_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "the run has ended");
        return sgm__http_respond_refusal(exchange);
    }
}
