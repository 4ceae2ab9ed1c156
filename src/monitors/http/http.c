/* Starts the server, runs its loop, and stops it.
 *
 * sgm__http_start checks the options, takes a port, starts libmicrohttpd without a thread or listening socket
 * of its own, the lanes (lanes.c) and the loop. The loop is the only thread that handles connections: it
 * polls, accepts clients (connections.c), hands on answers of lanes and events, and lets libmicrohttpd read
 * and write. Requests themselves are in request.c.
 *
 * Lifetime: the struct is counted (`users`), because a lane whose function does not return outlives the
 * server. */
#include "base/clock.h"
#include "monitors/http/http_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_PORT 8080
#define LAST_PORT 8099
/* Bytes that libmicrohttpd may use for each connection, in which the headers must fit: browsers send all
 * cookies of a host, also those of its other ports, up to 180 of 4 kB each, and libmicrohttpd copies them
 * once more. What a first request does not use takes no memory; a connection that stays for a second
 * request takes all of it. */
#define CONNECTION_MEMORY ((size_t)2 << 20)
/* Bytes that are read at once, also of bodies. */
#define MEMORY_STEP 32768
/* Seconds without a byte in either direction after which libmicrohttpd closes a connection. */
#define SILENCE_SECONDS 30.0
/* Milliseconds after which the loop looks for late connections and heartbeats, if nothing else wakes it. */
#define TICK 1000
/* At the end: seconds in which browsers may read queued events, and then rounds of writing for the last
 * bytes of answers. */
#define FAREWELL 0.25
#define LAST_ROUNDS 4

void sgm__http_wake(sgm__http *server)
{
    eventfd_write(server->wake, 1);
}

/* --- the loop --- */

/* Milliseconds to poll: libmicrohttpd's own wish, at most a tick. */
static int timeout_of(sgm__http *server)
{
    MHD_UNSIGNED_LONG_LONG wait;
    int tick = (int)(TICK / server->options.hurry) + 1;
    return MHD_get_timeout(server->daemon, &wait) == MHD_YES && wait < (unsigned)tick ? (int)wait : tick;
}

/* Sleeps until another thread wakes the loop, a connection is ready, or a client wants to connect. */
static void wait_for_something(sgm__http *server)
{
    struct pollfd waits[] = {{.fd = server->wake, .events = POLLIN},
                             {.fd = server->epoll, .events = POLLIN},
                             {.fd = server->listener, .events = POLLIN}};
    eventfd_t count;
    if (poll(waits, 3, timeout_of(server)) > 0) {
        if (waits[0].revents != 0)
            eventfd_read(server->wake, &count);
        if (waits[2].revents != 0)
            sgm__http_accept(server);
    }
}

/* The loop's thread. When the server ends, it goes on for a moment while queues still hold events; then
 * requests that wait are refused, streams of events end, and a few rounds write what is left. */
static void *run_loop(void *user)
{
    sgm__http *server = user;
    double end = 0;
    for (;;) {
        wait_for_something(server);
        sgm__http_lanes_deliver(server);
        sgm__http_streams_deliver(server);
        sgm__http_events_deliver(server, false);
        MHD_run(server->daemon);
        sgm__http_cut_late(server);
        if (!atomic_load(&server->ending))
            continue;
        if (end == 0)
            end = sgm__now() + FAREWELL;
        if (sgm__now() > end || !sgm__http_events_wait(server))
            break;
    }
    sgm__http_lanes_clear(server);
    sgm__http_lanes_deliver(server);
    sgm__http_events_deliver(server, true);
    for (int i = 0; i < LAST_ROUNDS; i++)
        MHD_run(server->daemon);
    MHD_stop_daemon(server->daemon);
    return NULL;
}

/* --- options --- */

/* The public host is required with behind_proxy and forbidden without. Only characters of host names and
 * ports may be in it, as it becomes part of the printed address. */
static sgm_status check_public_host(const sgm__http_options *options)
{
    const char *host = options->public_host;
    if (!options->behind_proxy && host == NULL)
        return SGM_OK;
    if (!options->behind_proxy || host == NULL ||
        strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.:[]") != strlen(host) ||
        *host == '\0')
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "behind a proxy, and only there, the name under which browsers know it must be given, such as "
            "\"example.org\" or \"example.org:8443\"");
    return SGM_OK;
}

/* Draws the cookie's value and the page token at each start, so that nobody can use those of an earlier
 * server at the same port. */
static sgm_status set_names(sgm__http *server)
{
    const sgm__http_options *options = &server->options;
    SGM_TRY(sgm__http_random_token(server->cookie_token));
    SGM_TRY(sgm__http_tokens_make(server));
    server->public_host = sgm__strdup(options->public_host);
    return server->public_host != NULL || options->public_host == NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Parses the address to listen at. Anything but loopback needs a proxy that speaks TLS, because tokens
 * must not travel unencrypted. */
static sgm_status read_address(const sgm__http_options *options, struct sockaddr_storage *address,
                               socklen_t *length)
{
    const char *text = options->address != NULL ? options->address : "127.0.0.1";
    struct sockaddr_in *four = (struct sockaddr_in *)address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
    bool is_loopback;
    if (strcmp(text, "localhost") == 0)
        text = "127.0.0.1";
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        *length = sizeof *four;
        is_loopback = ntohl(four->sin_addr.s_addr) >> 24 == 127;
    } else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        *length = sizeof *six;
        is_loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    } else {
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected an address such as 127.0.0.1 or ::1, got '%.100s'",
                        text);
    }
    if (is_loopback || options->behind_proxy)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "others could read along at the address %s: leave it out and reach this machine by "
                    "'ssh -L 8080:127.0.0.1:8080 HOST', or put a proxy that speaks TLS before it and say so",
                    text);
}

sgm_status sgm__http_check(const sgm__http_options *options)
{
    struct sockaddr_storage address;
    socklen_t length;
    if (options->token != NULL)
        SGM_TRY(sgm__http_check_token(options->token));
    sgm__http_token *tokens = sgm__calloc(SGM__HTTP_TOKENS, sizeof *tokens);
    size_t count = 0;
    sgm_status status =
        tokens != NULL ? sgm__http_tokens_read(options->tokens, tokens, &count) : SGM_ERROR_MEMORY;
    sgm__free(tokens);
    SGM_TRY(status);
    SGM_TRY(check_public_host(options));
    return read_address(options, &address, &length);
}

/* --- the port --- */

/* A listening socket, or -1 with errno. A long backlog (SOMAXCONN), so that a browser that opens many
 * connections at once need not retry a second later. */
static int bind_to(struct sockaddr_storage *address, socklen_t length, int port)
{
    int descriptor = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ((struct sockaddr_in *)address)->sin_port =
        htons((uint16_t)port); /* sockaddr_in6 has the port at the same place */
    if (descriptor < 0)
        return -1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(descriptor, (struct sockaddr *)address, length) == 0 && listen(descriptor, SOMAXCONN) == 0)
        return descriptor;
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}

static sgm_status fail_port(int port)
{
    if (errno == EADDRINUSE)
        return sgm_fail(SGM_ERROR_STATE,
                        "port %d is taken by another program: end that, choose another port, or none for the "
                        "first that is free",
                        port);
    return sgm_fail(SGM_ERROR_STATE, "port %d cannot be listened at: %s", port, sgm__errno_text(errno));
}

/* Takes the port that was asked for, or else the first free one of the usual range, or else any. Then
 * builds the address that is printed, with the token in it. */
static sgm_status listen_somewhere(sgm__http *server)
{
    struct sockaddr_storage address;
    socklen_t length;
    int port = server->options.port;
    SGM_TRY(read_address(&server->options, &address, &length));
    if (port < 0 || port > 65535)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a port is 1 to 65535, or 0 for any that is free; got %d", port);
    if (port != 0) {
        server->listener = bind_to(&address, length, port);
    } else {
        for (int next = FIRST_PORT; next <= LAST_PORT && server->listener < 0; next++)
            server->listener = bind_to(&address, length, next);
        if (server->listener < 0)
            server->listener = bind_to(&address, length, 0);
    }
    if (server->listener < 0)
        return fail_port(port);
    getsockname(server->listener, (struct sockaddr *)&address, &length);
    server->port = ntohs(((struct sockaddr_in *)&address)->sin_port);
    char host[INET6_ADDRSTRLEN];
    bool is_six = address.ss_family == AF_INET6;
    inet_ntop(address.ss_family,
              is_six ? (void *)&((struct sockaddr_in6 *)&address)->sin6_addr
                     : (void *)&((struct sockaddr_in *)&address)->sin_addr,
              host, sizeof host);
    server->url = server->public_host != NULL
                      ? sgm__format("https://%s/?token=%s", server->public_host, server->tokens[0].text)
                      : sgm__format(is_six ? "http://[%s]:%d/?token=%s" : "http://%s:%d/?token=%s", host,
                                    server->port, server->tokens[0].text);
    return server->url != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* --- start and stop --- */

/* Messages of libmicrohttpd go to the log: most are about clients that break off. */
static void on_trouble(void *user, const char *format, va_list arguments)
{
    (void)user;
    sgm__vlog(SGM_LOG_DEBUG, "http", format, arguments);
}

/* Keeps libmicrohttpd from decoding percent sequences: target.c does that, strictly and in one place. */
static size_t leave_encoded(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user, (void)connection;
    return strlen(text);
}

/* libmicrohttpd with neither a thread (the loop calls MHD_run) nor a listening socket (connections.c
 * accepts). Suspending connections is what lets a request wait for a lane. */
static sgm_status start_daemon(sgm__http *server)
{
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    unsigned silence = (unsigned)(SILENCE_SECONDS / server->options.hurry);
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, sgm__http_on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_trouble, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, sgm__http_on_target, server, MHD_OPTION_NOTIFY_COMPLETED,
        sgm__http_on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, sgm__http_on_connection, server,
        MHD_OPTION_UNESCAPE_CALLBACK, leave_encoded, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_MEMORY, MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)MEMORY_STEP,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)SGM__HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        silence > 1 ? silence : 1, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        server->daemon != NULL ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (info == NULL)
        return sgm_fail(SGM_ERROR_STATE, "libmicrohttpd cannot be started: %s", sgm__errno_text(errno));
    server->epoll = info->epoll_fd;
    return SGM_OK;
}

/* SIGPIPE is among the signals that are blocked in the thread. */
static sgm_status start_loop(sgm__http *server)
{
    int error = sgm__thread_start(&server->thread, run_loop, server);
    return error == 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE, "the server's thread cannot be made: %s", sgm__errno_text(error));
}

void sgm__http_release(sgm__http *server)
{
    if (atomic_fetch_sub(&server->users, 1) != 1)
        return;
    if (server->wake >= 0)
        close(server->wake);
    pthread_cond_destroy(&server->left);
    for (size_t i = 0; i < 2; i++)
        pthread_cond_destroy(&server->lanes[i].more);
    pthread_mutex_destroy(&server->lock);
    sgm__http_tokens_free(server);
    sgm__free(server->url);
    sgm__free(server->public_host);
    sgm__free(server);
}

/* The page, if there is to be one, must be among the files that the build has put into the library. */
static sgm_status find_page(sgm__http *server)
{
    char path[128];
    const char *name = server->options.page != NULL ? server->options.page : "index.html";
    if (*name == '\0')
        return SGM_OK;
    snprintf(path, sizeof path, "/%s", name);
    server->page = sgm__asset_find(path);
    return server->page != NULL
               ? SGM_OK
               : sgm_fail(SGM_ERROR_NOT_FOUND, "there is no page '%.100s' in this build", name);
}

/* The steps of a start; after a failure the caller takes down what exists. */
static sgm_status start(sgm__http *server)
{
    SGM_TRY(sgm__http_check(&server->options));
    SGM_TRY(set_names(server));
    SGM_TRY(find_page(server));
    server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wake < 0)
        return sgm_fail(SGM_ERROR_STATE, "the server cannot be started: %s", sgm__errno_text(errno));
    SGM_TRY(listen_somewhere(server));
    SGM_TRY(start_daemon(server));
    SGM_TRY(sgm__http_lanes_start(server));
    return start_loop(server);
}

/* Frees a server whose loop has ended, or never began. Returns whether all lanes have ended. */
static bool take_down(sgm__http *server)
{
    atomic_store(&server->ending, true);
    bool all = sgm__http_lanes_stop(server);
    if (server->listener >= 0)
        close(server->listener);
    sgm__http_release(server);
    return all;
}

sgm__http *sgm__http_start(const sgm__http_options *options)
{
    sgm__http *server = sgm__calloc(1, sizeof *server);
    if (server == NULL)
        return NULL;
    server->options = *options;
    if (server->options.hurry <= 0)
        server->options.hurry = 1;
    server->listener = server->wake = -1;
    atomic_init(&server->users, 1);
    pthread_mutex_init(&server->lock, NULL);
    sgm__cond_init(&server->left);
    for (size_t i = 0; i < 2; i++)
        pthread_cond_init(&server->lanes[i].more, NULL);
    if (start(server) == SGM_OK)
        return server;
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    take_down(server);
    return NULL;
}

const char *sgm__http_url(const sgm__http *server)
{
    return server->url;
}

int sgm__http_port(const sgm__http *server)
{
    return server->port;
}

/* `ending` is set with the lock, so that no lane misses it between its test and its wait. */
bool sgm__http_stop(sgm__http *server)
{
    if (server == NULL)
        return true;
    pthread_mutex_lock(&server->lock);
    atomic_store(&server->ending, true);
    pthread_mutex_unlock(&server->lock);
    sgm__http_wake(server);
    pthread_join(server->thread, NULL);
    return take_down(server);
}
