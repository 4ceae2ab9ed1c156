/* A server with routes that answer at once, wait, or hang, and how it answers what is sent to it. For the
 * tests of what it refuses and what it survives. */
#ifndef SIGMA_HTTP_TRIED_H
#define SIGMA_HTTP_TRIED_H

#include "http_client.h"
#include "monitors/http/http.h"

#include <stdatomic.h>

#define TOKEN "0123456789abcdef-TOKEN"
#define HOST "Host: 127.0.0.1:8080\r\n"
#define BEARER "Authorization: Bearer " TOKEN "\r\n"
#define JSON "Content-Type: application/json\r\n"

static atomic_int acted;         /* how often a route was reached */
static atomic_bool hold, may_go; /* see hang() */

static inline sgm_status act(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)request, (void)answer;
    atomic_fetch_add(&acted, 1);
    return SGM_OK;
}

/* Waits as for a trainer, until the server stops. */
static inline sgm_status wait_here(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)answer;
    atomic_fetch_add(&acted, 1);
    while (!atomic_load(request->ending))
        usleep(1000);
    return sgm_fail(SGM_ERROR_STATE, "the run has just ended");
}

/* Waits for good, as for a trainer that hangs. */
static inline sgm_status hang(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)request, (void)answer;
    atomic_store(&hold, true);
    while (!atomic_load(&may_go))
        usleep(1000);
    atomic_store(&hold, false);
    return SGM_OK;
}

static const sgm__http_route routes[] = {
    {.method = "GET", .path = "/api/get", .act = act},
    {.method = "GET", .path = "/api/below/", .act = act},
    {.method = "POST", .path = "/api/set", .act = act, .longest_body = 1000, .quick = true},
    {.method = "POST", .path = "/api/upload", .act = act, .type = "application/octet-stream"},
    {.method = "GET", .path = "/icon.svg", .act = act}, /* data, though a file of the page has the name */
    {.method = "GET", .path = "/api/wait", .act = wait_here},
    {.method = "GET", .path = "/api/hang", .act = hang},
};

static inline sgm__http *start_with(sgm__http_options options)
{
    options.routes = routes;
    options.route_count = sizeof routes / sizeof routes[0];
    if (options.token == NULL)
        options.token = TOKEN;
    sgm__http *server = sgm__http_start(&options);
    if (server == NULL)
        TEST_FAIL("no server: %s", sgm_last_error());
    atomic_store(&acted, 0);
    return server;
}

static inline sgm__http *start(void)
{
    return start_with((sgm__http_options){0});
}

/* One request, of which all but the first line and the end is in `headers`. */
static inline void check_body(const sgm__http *server, const char *line, const char *headers,
                              const char *body, int code)
{
    client_answer answer = client_ask(sgm__http_port(server), "%s HTTP/1.1\r\n%s\r\n%s", line, headers, body);
    if (answer.code != code)
        TEST_FAIL("%s with %s gives %d, expected %d: %s", line, headers, answer.code, code, answer.all);
    client_free(&answer);
}

static inline void check(const sgm__http *server, const char *line, const char *headers, int code)
{
    check_body(server, line, headers, "", code);
}

#endif
