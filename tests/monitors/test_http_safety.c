/* What the monitor's server refuses, and what it survives. */
#include "base/allocator.h"
#include "http_client.h"
#include "monitors/http/http.h"

#include <stdatomic.h>

#define TOKEN "0123456789abcdef-TOKEN"
#define HOST "Host: 127.0.0.1:8080\r\n"
#define BEARER "Authorization: Bearer " TOKEN "\r\n"
#define JSON "Content-Type: application/json\r\n"
#define MOST_CONNECTIONS 64

static atomic_int acted;         /* how often a route was reached */
static atomic_bool hold, may_go; /* see hang() */

static sgm_status act(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)request, (void)answer;
    atomic_fetch_add(&acted, 1);
    return SGM_OK;
}

/* Waits as for a trainer, until the server stops. */
static sgm_status wait_here(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)answer;
    atomic_fetch_add(&acted, 1);
    while (!atomic_load(request->ending))
        usleep(1000);
    return sgm_fail(SGM_ERROR_STATE, "the run has just ended");
}

/* Waits for good, as for a trainer that hangs. */
static sgm_status hang(void *user, const sgm__http_request *request, sgm__http_answer *answer)
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
    {.method = "GET", .path = "/api/wait", .act = wait_here},
    {.method = "GET", .path = "/api/hang", .act = hang},
};

static sgm__http *start_with(sgm__http_options options)
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

static sgm__http *start(void)
{
    return start_with((sgm__http_options){0});
}

/* One request, of which all but the first line and the end is in `headers`. */
static void check_body(const sgm__http *server, const char *line, const char *headers, const char *body,
                       int code)
{
    client_answer answer = client_ask(sgm__http_port(server), "%s HTTP/1.1\r\n%s\r\n%s", line, headers, body);
    if (answer.code != code)
        TEST_FAIL("%s with %s gives %d, expected %d: %s", line, headers, answer.code, code, answer.all);
    client_free(&answer);
}

static void check(const sgm__http *server, const char *line, const char *headers, int code)
{
    check_body(server, line, headers, "", code);
}

/* Where time runs so fast that a request may come too late. */
static void check_alive(const sgm__http *server)
{
    client_answer answer = {0};
    for (double end = sgm__now() + CLIENT_PATIENCE; answer.code != 200 && sgm__now() < end;) {
        client_free(&answer);
        answer = client_ask(sgm__http_port(server), "GET /api/get HTTP/1.1\r\n" HOST BEARER "\r\n");
    }
    CHECK_INT(answer.code, 200);
    client_free(&answer);
}

static void wait_until(const atomic_int *counter, int value)
{
    for (double end = sgm__now() + CLIENT_PATIENCE; atomic_load(counter) != value && sgm__now() < end;)
        usleep(1000);
    CHECK_INT(atomic_load(counter), value);
}

TEST(hosts_that_are_not_this_machine)
{
    static const char *const own[] = {"localhost",      "localhost:8080", "LOCALHOST:1", "127.0.0.1",
                                      "127.0.0.1:9000", "127.1.2.3:80",   "[::1]",       "[::1]:8080"};
    static const char *const foreign[] = {"evil.example",
                                          "evil.example:8080",
                                          "127.0.0.1.evil.example",
                                          "localhost.evil.example",
                                          "evil.localhost",
                                          "128.0.0.1",
                                          "0.0.0.0:8080",
                                          "10.0.0.1",
                                          "[::2]:8080",
                                          "[::1",
                                          "[::1].example",
                                          "127.0.0.1:8080:1",
                                          "127.0.0.1:",
                                          "127.0.0.1:8o80",
                                          "localhost:",
                                          "127.1",
                                          "2130706433",
                                          "localhost, evil.example",
                                          "user@localhost",
                                          "localhost/",
                                          "-",
                                          ":8080"};
    sgm__http *server = start();
    char headers[256];
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        snprintf(headers, sizeof headers, "Host: %s\r\n" BEARER, own[i]);
        check(server, "GET /api/get", headers, 200);
    }
    int reached = atomic_load(&acted);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        /* DNS rebinding: the browser believes that this is evil.example, and sends its cookie of old. */
        snprintf(headers, sizeof headers, "Host: %s\r\n" BEARER, foreign[i]);
        check(server, "GET /api/get", headers, 403);
    }
    check(server, "GET /api/get", "Host: localhost\r\nHost: evil.example\r\n" BEARER, 403);
    check(server, "GET /api/get", "Host: localhost\r\nHost: localhost\r\n" BEARER, 403);
    check(server, "GET /api/get", BEARER, 400);
    client_answer old = client_ask(sgm__http_port(server), "GET /api/get HTTP/1.0\r\n" BEARER "\r\n");
    CHECK_INT(old.code, 403);
    client_free(&old);
    CHECK_INT(atomic_load(&acted), reached);
    CHECK(sgm__http_stop(server));
}

TEST(origins_of_other_servers)
{
    static const char *const foreign[] = {"http://evil.example",
                                          "https://127.0.0.1:8080",
                                          "http://127.0.0.1:8081",
                                          "http://localhost:8080",
                                          "null",
                                          "",
                                          "http://127.0.0.1:8080.evil.example",
                                          "http://127.0.0.1:80800",
                                          "http://127.0.0.1",
                                          "127.0.0.1:8080"};
    sgm__http *server = start();
    check(server, "GET /api/get", HOST BEARER "Origin: http://127.0.0.1:8080\r\n", 200);
    check_body(server, "POST /api/set",
               HOST BEARER JSON "Origin: http://127.0.0.1:8080\r\nContent-Length: 2\r\n", "{}", 200);
    int reached = atomic_load(&acted);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        char headers[512];
        snprintf(headers, sizeof headers, HOST BEARER JSON "Content-Length: 2\r\nOrigin: %s\r\n", foreign[i]);
        check_body(server, "POST /api/set", headers, "{}", 403);
        snprintf(headers, sizeof headers, HOST BEARER "Origin: %s\r\n", foreign[i]);
        check(server, "GET /api/get", headers, 403);
    }
    check(server, "GET /api/get",
          HOST BEARER "Origin: http://127.0.0.1:8080\r\nOrigin: http://127.0.0.1:8080\r\n", 403);
    check(server, "GET /api/get", HOST BEARER "Sec-Fetch-Site: cross-site\r\n", 403);
    check(server, "GET /api/get", HOST BEARER "Sec-Fetch-Site: same-site\r\n", 403);
    check(server, "GET /api/get", HOST BEARER "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n",
          403);
    check(server, "GET /", HOST BEARER "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", 403);
    CHECK_INT(atomic_load(&acted), reached);
    check(server, "GET /api/get", HOST BEARER "Sec-Fetch-Site: same-origin\r\n", 200);
    check(server, "GET /api/get", HOST BEARER "Sec-Fetch-Site: none\r\n", 200);
    check(server, "GET /", HOST BEARER "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", 200);
    CHECK(sgm__http_stop(server));
}

TEST(tokens_that_are_missing_or_wrong)
{
    static const char *const wrong[] = {
        "",
        "Authorization: Bearer 0123456789abcdef-TOKEM\r\n",
        "Authorization: Bearer 0123456789abcdef-TOKE\r\n",
        "Authorization: Bearer 0123456789abcdef-TOKENN\r\n",
        "Authorization: Bearer 0123456789abcdef-token\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Basic 0123456789abcdef-TOKEN\r\n",
        "Authorization: " TOKEN "\r\n",
        BEARER "Authorization: Bearer x\r\n",
        "Cookie: sigma=" TOKEN "\r\n",
        "Cookie: sigma-1=" TOKEN "\r\n",
        "X-Sigma-Token: " TOKEN "\r\n",
    };
    sgm__http *server = start();
    char headers[512];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(headers, sizeof headers, HOST "%s", wrong[i]);
        check(server, "GET /api/get", headers, 401);
        check(server, "GET /", headers, 401);
        check(server, "GET /api/events", headers, 401);
        check(server, "GET /main.js", headers, 401);
        check(server, "GET /api/unknown", headers, 401);
    }
    check(server, "GET /?token=", HOST, 401);
    check(server, "GET /?token=0123456789abcdef-TOKE", HOST, 401);
    check(server, "GET /api/get?token=" TOKEN, HOST, 401);
    CHECK_INT(atomic_load(&acted), 0);
    snprintf(headers, sizeof headers, HOST "Cookie: sigma-%d=x\r\n", sgm__http_port(server));
    check(server, "GET /api/get", headers, 401);
    snprintf(headers, sizeof headers, HOST "Cookie: a=b; sigma-%d=%s\r\n", sgm__http_port(server), TOKEN);
    check(server, "GET /api/get", headers, 200);
    snprintf(headers, sizeof headers, HOST "Cookie: sigma-%d=x; sigma-%d=%s\r\n", sgm__http_port(server),
             sgm__http_port(server), TOKEN);
    check(server, "GET /api/get", headers, 200);
    CHECK(sgm__http_stop(server));
}

/* As a browser does: the address, its cookie, the page, a change. */
TEST(a_browser_gets_in_by_the_printed_address)
{
    sgm__http *server = start_with((sgm__http_options){.token = "another-TOKEN_of-16"});
    int port = sgm__http_port(server);
    char address[128], cookie[256], text[256], page_token[40] = "", headers[512];
    snprintf(address, sizeof address, "http://127.0.0.1:%d", port);
    CHECK(strncmp(sgm__http_url(server), address, strlen(address)) == 0);
    const char *path = sgm__http_url(server) + strlen(address);
    CHECK_STR(path, "/?token=another-TOKEN_of-16");
    client_answer answer = client_ask(port, "GET %s HTTP/1.1\r\n" HOST "\r\n", path);
    CHECK_INT(answer.code, 303);
    CHECK_STR(client_header(&answer, "Location", text, sizeof text), "/");
    client_header(&answer, "Set-Cookie", cookie, sizeof cookie);
    snprintf(text, sizeof text, "sigma-%d=another-TOKEN_of-16; Path=/; HttpOnly; SameSite=Strict", port);
    CHECK_STR(cookie, text);
    *strchr(cookie, ';') = '\0';
    client_free(&answer);

    answer = client_ask(port, "GET / HTTP/1.1\r\n" HOST "Cookie: %s\r\n\r\n", cookie);
    CHECK_INT(answer.code, 200);
    const char *place = strstr(answer.body, "name=\"sigma-token\" content=\"");
    CHECK(place != NULL && sscanf(place, "name=\"sigma-token\" content=\"%32[0-9a-f]\"", page_token) == 1);
    client_free(&answer);

    snprintf(headers, sizeof headers, HOST JSON "Content-Length: 2\r\nCookie: %s\r\n", cookie);
    check_body(server, "POST /api/set", headers, "{}", 403);
    snprintf(headers, sizeof headers,
             HOST JSON "Content-Length: 2\r\nCookie: %s\r\nX-Sigma-Token: %.31s0\r\n", cookie,
             page_token[31] == '0' ? "0" : page_token);
    check_body(server, "POST /api/set", headers, "{}", 403);
    CHECK_INT(atomic_load(&acted), 0);
    snprintf(headers, sizeof headers, HOST JSON "Content-Length: 2\r\nCookie: %s\r\nX-Sigma-Token: %s\r\n",
             cookie, page_token);
    check_body(server, "POST /api/set", headers, "{}", 200);
    snprintf(headers, sizeof headers, HOST JSON "Content-Length: 2\r\nX-Sigma-Token: %s\r\n", page_token);
    check_body(server, "POST /api/set", headers, "{}", 401);
    CHECK_INT(atomic_load(&acted), 1);
    CHECK(sgm__http_stop(server));
}

/* The browser keeps the cookie back when it follows a link from elsewhere; it sends it once it asks from
 * here. */
TEST(a_link_from_elsewhere_asks_again)
{
    sgm__http *server = start();
    client_answer answer =
        client_ask(sgm__http_port(server), "GET / HTTP/1.1\r\n" HOST
                                           "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n\r\n");
    CHECK_INT(answer.code, 401);
    CHECK(strstr(answer.body, "http-equiv=\"refresh\" content=\"0;url=/\"") != NULL);
    client_free(&answer);
    answer =
        client_ask(sgm__http_port(server), "GET / HTTP/1.1\r\n" HOST "Sec-Fetch-Site: same-origin\r\n\r\n");
    CHECK_INT(answer.code, 401);
    CHECK(strstr(answer.body, "refresh") == NULL);
    CHECK(strstr(answer.body, "open the address that the program printed") != NULL);
    client_free(&answer);
    CHECK(sgm__http_stop(server));
}

TEST(changes_only_by_post_with_the_right_type)
{
    static const char *const types[] = {"",
                                        "Content-Type: text/plain\r\n",
                                        "Content-Type: application/x-www-form-urlencoded\r\n",
                                        "Content-Type: multipart/form-data\r\n",
                                        "Content-Type: application/jsonp\r\n",
                                        "Content-Type: application/octet-stream\r\n",
                                        JSON JSON};
    sgm__http *server = start();
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char headers[512];
        snprintf(headers, sizeof headers, HOST BEARER "Content-Length: 2\r\n%s", types[i]);
        check_body(server, "POST /api/set", headers, "{}", 415);
    }
    check(server, "GET /api/set", HOST BEARER, 405);
    check(server, "HEAD /api/set", HOST BEARER, 405);
    check(server, "PUT /api/set", HOST BEARER "Content-Length: 0\r\n", 405);
    check(server, "DELETE /api/get", HOST BEARER, 405);
    check(server, "OPTIONS /api/set", HOST BEARER, 405);
    check(server, "TRACE /api/get", HOST BEARER, 405);
    check_body(server, "POST /api/upload", HOST BEARER JSON "Content-Length: 2\r\n", "{}", 415);
    CHECK_INT(atomic_load(&acted), 0);
    check_body(server, "POST /api/set",
               HOST BEARER "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 2\r\n", "{}",
               200);
    check_body(server, "POST /api/upload",
               HOST BEARER "Content-Type: application/octet-stream\r\nContent-Length: 2\r\n", "{}", 200);
    CHECK_INT(atomic_load(&acted), 2);
    CHECK(sgm__http_stop(server));
}

TEST(paths_that_want_out)
{
    static const char *const bad[] = {"/../etc/passwd",
                                      "/..",
                                      "/./main.js",
                                      "/api/below/../get",
                                      "/api/below/%2e%2e/get",
                                      "/api/below/%2E%2e%2Fget",
                                      "/api/below/..%2f..%2fetc%2fpasswd",
                                      "/api/below/%5c..%5cx",
                                      "/api/below/a\\b",
                                      "/api/below//x",
                                      "//etc/passwd",
                                      "/api/below/x%00.js",
                                      "/main.js%00",
                                      "/api/below/%",
                                      "/api/below/%4",
                                      "/api/below/%zz",
                                      "/api/below/%ff",
                                      "/api/below/%c0%ae%c0%ae",
                                      "/api/below/%ed%a0%80",
                                      "/api/below/%f4%90%80%80",
                                      "/api/below/%0d%0aX:y",
                                      "/api/below/.hidden",
                                      "http://127.0.0.1:8080/api/get",
                                      "*",
                                      "api/get",
                                      "/api/get?x=%00",
                                      "/api/get?x=%ff",
                                      "/api/get?%=1",
                                      "/%2e%2e/%2e%2e/etc/passwd"};
    static const char *const unknown[] = {"/etc/passwd", "/web/index.html", "/index.htm",
                                          "/API/GET",    "/api/get/",       "/api",
                                          "/main.js/",   "/%2findex.html?", "/src"};
    sgm__http *server = start();
    char line[512];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(line, sizeof line, "GET %s", bad[i]);
        check(server, line, HOST BEARER, 400);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        snprintf(line, sizeof line, "GET %s", unknown[i]);
        client_answer answer = client_ask(sgm__http_port(server), "%s HTTP/1.1\r\n" HOST BEARER "\r\n", line);
        if (answer.code != 404 && answer.code != 400)
            TEST_FAIL("%s gives %d", line, answer.code);
        client_free(&answer);
    }
    CHECK_INT(atomic_load(&acted), 0);
    check(server, "GET /api/below/a%20b", HOST BEARER, 200);
    CHECK(sgm__http_stop(server));
}

TEST(too_much_at_once)
{
    sgm__http *server = start();
    char *many = sgm__calloc(1, 70001), *request = NULL;
    memset(many, 'x', 70000);
    client_answer answer =
        client_ask(sgm__http_port(server), "GET /?%.5000s HTTP/1.1\r\n" HOST BEARER "\r\n", many);
    CHECK_INT(answer.code, 414);
    client_free(&answer);
    answer = client_ask(sgm__http_port(server), "GET /api/get HTTP/1.1\r\n" HOST BEARER "X: %.60000s\r\n\r\n",
                        many);
    CHECK(answer.code == 431 || answer.code == 0);
    client_free(&answer);
    answer = client_ask(sgm__http_port(server), "GET /%.60000s HTTP/1.1\r\n" HOST BEARER "\r\n", many);
    CHECK(answer.code == 414 || answer.code == 0);
    client_free(&answer);
    check_body(server, "POST /api/set", HOST BEARER JSON "Content-Length: 1001\r\n", many + 70000 - 1001,
               413);
    check_body(server, "POST /api/set", HOST BEARER JSON "Content-Length: 99999999999\r\n", "{", 413);
    check_body(server, "POST /api/set", HOST JSON "Content-Length: 99999999999\r\n", "{", 401);
    check_body(server, "POST /api/set", HOST BEARER JSON "Transfer-Encoding: chunked\r\n",
               "2\r\n{}\r\n0\r\n\r\n", 411);
    check_body(server, "POST /api/set", HOST BEARER JSON "", "", 411);
    check_body(server, "GET /api/get", HOST BEARER "Content-Length: 2\r\n", "{}", 400);
    for (int i = 0; i < 80; i++)
        memcpy(many + 3 * i, "&a=", 3);
    many[240] = '\0';
    request = sgm__format("GET /api/get?%s", many);
    check(server, request, HOST BEARER, 400);
    sgm__free(request);
    CHECK_INT(atomic_load(&acted), 0);
    check_body(server, "POST /api/set", HOST BEARER JSON "Content-Length: 2\r\n", "{}", 200);
    sgm__free(many);
    CHECK(sgm__http_stop(server));
}

/* Two lengths would be read differently by a proxy. */
TEST(ambiguous_lengths)
{
    static const char *const bad[] = {"Content-Length: 2\r\nContent-Length: 3\r\n", "Content-Length: -1\r\n",
                                      "Content-Length: 2x\r\n", "Content-Length: 0x2\r\n",
                                      "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"};
    sgm__http *server = start();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        client_answer answer = client_ask(sgm__http_port(server),
                                          "POST /api/set HTTP/1.1\r\n" HOST BEARER JSON "%s\r\n{}", bad[i]);
        CHECK(answer.code == 400 || answer.code == 411 || answer.code == 413);
        client_free(&answer);
    }
    CHECK_INT(atomic_load(&acted), 0);
    CHECK(sgm__http_stop(server));
}

TEST(every_answer_has_the_headers_of_safety)
{
    static const char *const lines[] = {"GET /",     "GET /main.js",       "GET /api/get", "GET /api/nothing",
                                        "GET /../x", "GET /?token=" TOKEN, "POST /"};
    sgm__http *server = start();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[512];
        client_answer answer = client_ask(
            sgm__http_port(server), "%s HTTP/1.1\r\n" HOST BEARER "Content-Length: 0\r\n\r\n", lines[i]);
        client_header(&answer, "Content-Security-Policy", text, sizeof text);
        CHECK(strstr(text, "default-src 'self';") == text && strstr(text, "frame-ancestors 'none'") != NULL);
        CHECK_STR(client_header(&answer, "X-Content-Type-Options", text, sizeof text), "nosniff");
        CHECK_STR(client_header(&answer, "X-Frame-Options", text, sizeof text), "DENY");
        CHECK_STR(client_header(&answer, "Referrer-Policy", text, sizeof text), "no-referrer");
        CHECK_STR(client_header(&answer, "Cross-Origin-Resource-Policy", text, sizeof text), "same-origin");
        CHECK(strlen(client_header(&answer, "Cache-Control", text, sizeof text)) > 0);
        CHECK_STR(client_header(&answer, "Access-Control-Allow-Origin", text, sizeof text), "");
        client_free(&answer);
    }
    CHECK(sgm__http_stop(server));
}

/* --- who is slow --- */

/* One byte now and then; true: the connection is cut before all are sent and answered. */
static bool is_cut(int port, const char *request, double pause)
{
    int descriptor = client_connect(port);
    char byte;
    bool cut = false;
    double end = sgm__now() + CLIENT_PATIENCE;
    for (size_t i = 0; !cut && request[i % strlen(request)] != '\0' && sgm__now() < end; i++) {
        client_send(descriptor, request + i % strlen(request), 1);
        cut = client_receive(descriptor, &byte, 1, pause) >= 0;
    }
    close(descriptor);
    return cut;
}

TEST(who_sends_byte_by_byte_is_cut_off)
{
    sgm__http *server = start_with((sgm__http_options){.hurry = 50});
    int port = sgm__http_port(server);
    CHECK(is_cut(port, "\r\n", 0.02));
    CHECK(is_cut(port, "GET /xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0.02));
    CHECK(is_cut(port, "GET / HTTP/1.1\r\nX: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0.02));
    int descriptor = client_connect(port);
    char byte;
    CHECK_INT(client_receive(descriptor, &byte, 1, CLIENT_PATIENCE), 0);
    close(descriptor);
    descriptor = client_connect(port);
    static const char begin[] = "POST /api/set HTTP/1.1\r\n" HOST BEARER JSON "Content-Length: 999\r\n\r\n{";
    CHECK(client_send(descriptor, begin, sizeof begin - 1));
    CHECK_INT(client_receive(descriptor, &byte, 1, CLIENT_PATIENCE), 0);
    close(descriptor);
    CHECK_INT(atomic_load(&acted), 0);
    check_alive(server);
    CHECK(sgm__http_stop(server));
}

/* Those that ask for nothing make room for one who does. */
TEST(idle_connections_make_room)
{
    sgm__http *server = start();
    int idle[2 * MOST_CONNECTIONS];
    for (int i = 0; i < 2 * MOST_CONNECTIONS; i++)
        idle[i] = client_connect(sgm__http_port(server));
    check(server, "GET /api/get", HOST BEARER, 200);
    int cut = 0;
    for (int i = 0; i < 2 * MOST_CONNECTIONS; i++) {
        char byte;
        cut += recv(idle[i], &byte, 1, MSG_DONTWAIT) == 0;
        close(idle[i]);
    }
    CHECK(cut >= MOST_CONNECTIONS);
    CHECK(sgm__http_stop(server));
}

TEST(too_many_that_are_busy)
{
    static const char wait[] = "GET /api/wait HTTP/1.1\r\n" HOST BEARER "\r\n";
    sgm__http *server = start();
    int busy[MOST_CONNECTIONS];
    char byte;
    for (int i = 0; i < MOST_CONNECTIONS; i++) {
        busy[i] = client_connect(sgm__http_port(server));
        CHECK(client_send(busy[i], wait, sizeof wait - 1));
    }
    wait_until(&acted, 1); /* one runs, the others wait; when all have arrived there is no room */
    client_answer answer = {0};
    for (double end = sgm__now() + CLIENT_PATIENCE; answer.code != 503 && sgm__now() < end;) {
        client_free(&answer);
        answer = client_ask(sgm__http_port(server), "GET / HTTP/1.1\r\n" HOST BEARER "\r\n");
    }
    CHECK_INT(answer.code, 503);
    CHECK_STR(answer.body, "{\"error\":\"too many connections\"}");
    client_free(&answer);
    CHECK(sgm__http_stop(server));
    for (int i = 0; i < MOST_CONNECTIONS; i++) {
        CHECK(client_receive(busy[i], &byte, 1, CLIENT_PATIENCE) >= 0);
        close(busy[i]);
    }
}

TEST(who_asks_too_often_waits)
{
    static const char wrong[] = "GET /api/get HTTP/1.1\r\n" HOST "\r\n";
    static const char right[] = "GET /api/get HTTP/1.1\r\n" HOST BEARER "\r\n";
    sgm__http *server = start();
    int descriptor = client_connect(sgm__http_port(server));
    int code = 0;
    for (int i = 0; i < 20000 && code != 429; i++) {
        CHECK(client_send(descriptor, wrong, sizeof wrong - 1));
        client_answer answer = client_read(descriptor);
        code = answer.code;
        client_free(&answer);
        CHECK(code == 401 || code == 429);
    }
    CHECK_INT(code, 429);
    check(server, "GET /api/get", HOST BEARER,
          200); /* others of the same address, who know the token, do not */
    for (int i = 0; i < 200000 && code != 200; i++) {
        CHECK(client_send(descriptor, right, sizeof right - 1));
        client_answer answer = client_read(descriptor);
        code = answer.code;
        client_free(&answer);
    }
    CHECK_INT(code, 200);
    close(descriptor);
    CHECK(sgm__http_stop(server));
}

/* --- events --- */

static int listen_to(const sgm__http *server, int room)
{
    static const char text[] = "GET /api/events HTTP/1.1\r\n" HOST BEARER "\r\n";
    size_t before = sgm__http_listeners(server);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)sgm__http_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (room > 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    CHECK_INT(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    CHECK(client_send(descriptor, text, sizeof text - 1));
    for (double end = sgm__now() + CLIENT_PATIENCE;
         sgm__http_listeners(server) == before && sgm__now() < end;)
        usleep(1000);
    CHECK_INT(sgm__http_listeners(server), before + 1);
    return descriptor;
}

/* Of the events that came: those with numbers, in order, and how many are said to be lost. */
static void count_events(const sgm__text *text, long *came, long *lost)
{
    static const char numbered[] = "event: n\ndata: {\"n\":", dropped[] = "event: dropped\ndata: {\"count\":";
    const char *end = text->data + text->length;
    long last = -1;
    *came = *lost = 0;
    for (const char *at = text->data; (at = memmem(at, (size_t)(end - at), "event: ", 7)) != NULL; at++) {
        if (strncmp(at, numbered, strlen(numbered)) == 0) {
            long number = strtol(at + strlen(numbered), NULL, 10);
            CHECK(number > last);
            last = number;
            ++*came;
        } else if (strncmp(at, dropped, strlen(dropped)) == 0) {
            *lost += strtol(at + strlen(dropped), NULL, 10);
        }
    }
}

#define PUSHED 20000

/* Chunks of HTTP have their lengths between the events: without them, so that a number is in one piece. */
static sgm__text join_chunks(const sgm__text *text)
{
    sgm__text all = {0};
    const char *at = memmem(text->data, text->length, "\r\n\r\n", 4), *end = text->data + text->length;
    CHECK(at != NULL);
    for (at += 4; at < end;) {
        size_t length = strtoul(at, NULL, 16);
        at = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (at == NULL || length == 0 || (size_t)(end - at) < length + 4)
            break;
        sgm__text_append_bytes(&all, at + 2, length);
        at += length + 4;
    }
    return all;
}

TEST(a_browser_that_reads_nothing_holds_nobody_up)
{
    sgm__http *server = start();
    char *json = sgm__calloc(1, 600);
    int slow = listen_to(server, 4096);
    long came = 0, lost = 0;
    double longest = 0;
    for (int i = 0; i < PUSHED; i++) {
        snprintf(json, 600, "{\"n\":%d,\"padding\":\"%0500d\"}", i, 0);
        double before = sgm__now();
        sgm__http_push(server, "n", json);
        longest = fmax(longest, sgm__now() - before);
    }
    CHECK(longest < 5);
    CHECK(sgm__http_dropped(server) > PUSHED / 2);
    check(server, "GET /api/get", HOST BEARER, 200);
    sgm__text text = {0};
    char part[65536];
    for (double end = sgm__now() + 3 * CLIENT_PATIENCE; came + lost < PUSHED && sgm__now() < end;) {
        ssize_t count;
        while ((count = client_receive(slow, part, sizeof part, 0.3)) > 0)
            sgm__text_append_bytes(&text, part, (size_t)count);
        sgm__text all = join_chunks(&text);
        count_events(&all, &came, &lost);
        sgm__text_free(&all);
    }
    CHECK(came > 0);
    CHECK_INT(came + lost, PUSHED);
    CHECK_INT(lost, sgm__http_dropped(server));
    sgm__text_free(&text);
    close(slow);
    sgm__free(json);
    CHECK(sgm__http_stop(server));
}

TEST(listeners_are_limited)
{
    sgm__http *server = start();
    int listeners[16];
    for (int i = 0; i < 16; i++)
        listeners[i] = listen_to(server, 0);
    check(server, "GET /api/events", HOST BEARER, 503);
    for (int i = 0; i < 16; i++)
        close(listeners[i]);
    for (double end = sgm__now() + CLIENT_PATIENCE; sgm__http_listeners(server) > 0 && sgm__now() < end;) {
        sgm__http_push(server, "n", "{}");
        usleep(1000);
    }
    CHECK_INT(sgm__http_listeners(server), 0);
    close(listen_to(server, 0));
    CHECK(sgm__http_stop(server));
}

/* A browser that has gone without a word is found out by writing. */
TEST(silent_listeners_are_found_out)
{
    sgm__http *server = start_with((sgm__http_options){.hurry = 10});
    close(listen_to(server, 0));
    for (double end = sgm__now() + CLIENT_PATIENCE; sgm__http_listeners(server) > 0 && sgm__now() < end;)
        usleep(1000);
    CHECK_INT(sgm__http_listeners(server), 0);
    CHECK(sgm__http_stop(server));
}

/* --- the end --- */

TEST(stopping_lets_go_of_everybody)
{
    static const char wait[] = "GET /api/wait HTTP/1.1\r\n" HOST BEARER "\r\n", half[] = "GET / HT";
    sgm__http *server = start();
    int others[4] = {listen_to(server, 4096), client_connect(sgm__http_port(server)),
                     client_connect(sgm__http_port(server)), client_connect(sgm__http_port(server))};
    CHECK(client_send(others[1], half, sizeof half - 1));
    CHECK(client_send(others[2], wait, sizeof wait - 1));
    wait_until(&acted, 1);
    CHECK(client_send(others[3], wait, sizeof wait - 1)); /* waits behind the other */
    char *large = sgm__calloc(1, 100001);
    memset(large, ' ', 100000);
    for (int i = 0; i < 100; i++)
        sgm__http_push(server, "n", large);
    double before = sgm__now();
    CHECK(sgm__http_stop(server));
    CHECK(sgm__now() - before < 4); /* a quarter of a second, on a machine that has time */
    for (int i = 0; i < 4; i++)
        close(others[i]);
    sgm__free(large);
}

TEST(a_function_that_hangs_is_left_behind)
{
    static const char text[] = "GET /api/hang HTTP/1.1\r\n" HOST BEARER "\r\n";
    sgm__http *server = start_with((sgm__http_options){.hurry = 5});
    int descriptor = client_connect(sgm__http_port(server));
    atomic_store(&may_go, false);
    CHECK(client_send(descriptor, text, sizeof text - 1));
    while (!atomic_load(&hold))
        usleep(1000);
    /* Others are not held up by it: not events and files, nor functions that are quick. */
    check(server, "GET /", HOST BEARER, 200);
    check_body(server, "POST /api/set", HOST BEARER JSON "Content-Length: 2\r\n", "{}", 200);
    close(listen_to(server, 0));
    CHECK(!sgm__http_stop(server));
    client_answer answer = client_read(descriptor);
    CHECK_INT(answer.code, 503);
    client_free(&answer);
    close(descriptor);
    atomic_store(&may_go, true);
    while (atomic_load(&hold))
        usleep(1000);
    usleep(50000); /* its thread frees what is left, and nothing tells when */
}

/* Longer than a silent connection is kept: a step of a trainer may take its time. */
TEST(an_answer_may_take_long)
{
    static const char text[] = "GET /api/hang HTTP/1.1\r\n" HOST BEARER "\r\n";
    sgm__http *server = start_with((sgm__http_options){.hurry = 15});
    int descriptor = client_connect(sgm__http_port(server));
    atomic_store(&may_go, false);
    CHECK(client_send(descriptor, text, sizeof text - 1));
    usleep(4500000); /* silence ends after 2 s, an answer must be read after as long */
    CHECK(atomic_load(&hold));
    atomic_store(&may_go, true);
    client_answer answer = client_read(descriptor);
    CHECK_INT(answer.code, 200);
    CHECK_STR(answer.body, "{}");
    client_free(&answer);
    close(descriptor);
    CHECK(sgm__http_stop(server));
}

/* --- start --- */

#define START(...) sgm__http_start(&(sgm__http_options){__VA_ARGS__})

TEST(ports_that_are_taken)
{
    sgm__http *server = start(), *other = NULL;
    int port = sgm__http_port(server);
    char message[64];
    snprintf(message, sizeof message, "port %d is taken by another program", port);
    CHECK_ERROR(START(.port = port), message);
    CHECK_ERROR(START(.port = 65536), "a port is 1 to 65535");
    CHECK_ERROR(START(.port = -1), "a port is 1 to 65535");
    other = start();
    CHECK(sgm__http_port(other) != port);
    CHECK(sgm__http_stop(server));
    server = start_with((sgm__http_options){.port = port}); /* at once, though connections to it may linger */
    CHECK_INT(sgm__http_port(server), port);
    CHECK(sgm__http_stop(server));
    CHECK(sgm__http_stop(other));
    CHECK(sgm__http_stop(NULL));
}

TEST(servers_of_one_process_know_only_their_own_tokens)
{
    sgm__http *one = START(0), *two = START(0);
    CHECK(one != NULL && two != NULL);
    const char *first = strstr(sgm__http_url(one), "token=") + 6,
               *second = strstr(sgm__http_url(two), "token=") + 6;
    char headers[256];
    CHECK_INT(strlen(first), 32);
    CHECK_INT(strspn(first, "0123456789abcdef"), 32);
    CHECK(strcmp(first, second) != 0);
    snprintf(headers, sizeof headers, HOST "Authorization: Bearer %s\r\n", first);
    check(one, "GET /", headers, 200);
    check(two, "GET /", headers, 401);
    snprintf(headers, sizeof headers, HOST "Cookie: sigma-%d=%s; sigma-%d=%s\r\n", sgm__http_port(one), first,
             sgm__http_port(two), second);
    check(one, "GET /", headers, 200);
    check(two, "GET /", headers, 200);
    CHECK(sgm__http_stop(one));
    check(two, "GET /", headers, 200);
    CHECK(sgm__http_stop(two));
}

TEST(addresses_that_others_reach_need_a_proxy)
{
    CHECK_ERROR(START(.address = "0.0.0.0"), "others could read along at the address 0.0.0.0");
    CHECK_ERROR(START(.address = "::"), "ssh -L");
    CHECK_ERROR(START(.address = "192.168.1.1"), "TLS");
    CHECK_ERROR(START(.address = "example.org"), "expected an address");
    CHECK_ERROR(START(.address = "0.0.0.0", .behind_proxy = true), "the name under which browsers know it");
    CHECK_ERROR(START(.public_host = "example.org"), "only there");
    CHECK_ERROR(START(.behind_proxy = true, .public_host = "example.org/x"), "must be given");
    CHECK_ERROR(START(.token = "short"), "a token has 16 to 128");
    CHECK_ERROR(START(.token = "0123456789abcde;"), "a token has 16 to 128");
    CHECK_ERROR(START(.page = "nothing.html"), "there is no page 'nothing.html'");
    sgm__http *server = START(.address = "127.0.0.5");
    CHECK_OK(server);
    CHECK(strncmp(sgm__http_url(server), "http://127.0.0.5:", 17) == 0);
    CHECK(sgm__http_stop(server));
    server = START(.address = "::1");
    if (server != NULL) /* a machine may have no IPv6 */
        CHECK(strncmp(sgm__http_url(server), "http://[::1]:", 13) == 0);
    CHECK(sgm__http_stop(server));
}

TEST(behind_a_proxy_the_public_name_is_known)
{
    sgm__http *server = start_with(
        (sgm__http_options){.address = "0.0.0.0", .behind_proxy = true, .public_host = "example.org:8443"});
    CHECK_STR(sgm__http_url(server), "https://example.org:8443/?token=" TOKEN);
    check(server, "GET /api/get", "Host: example.org:8443\r\nOrigin: https://example.org:8443\r\n" BEARER,
          200);
    check(server, "GET /api/get", "Host: example.org:8443\r\nOrigin: http://example.org:8443\r\n" BEARER,
          403);
    check(server, "GET /api/get", "Host: example.org\r\n" BEARER, 403);
    client_answer answer = client_ask(sgm__http_port(server),
                                      "GET /?token=" TOKEN " HTTP/1.1\r\nHost: example.org:8443\r\n\r\n");
    CHECK_INT(answer.code, 303);
    CHECK(strstr(answer.all, "SameSite=Strict; Secure\r\n") != NULL);
    client_free(&answer);
    CHECK(sgm__http_stop(server));
}

/* --- whatever comes --- */

TEST(noise)
{
    static const char *const seeds[] = {
        "GET /api/get?x=%20 HTTP/1.1\r\n" HOST BEARER "Cookie: a=b; sigma-1=c\r\n\r\n",
        "POST /api/set HTTP/1.1\r\n" HOST BEARER JSON "Content-Length: 2\r\n\r\n{}",
        "GET / HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
    };
    sgm__http *server = start_with((sgm__http_options){.hurry = 300});
    sgm__random random = sgm__random_make(5, 0);
    for (int round = 0; round < 10; round++) {
        int descriptors[30];
        char bytes[512];
        for (int i = 0; i < 30; i++) {
            const char *seed = seeds[i % 3];
            size_t length = strlen(seed);
            memcpy(bytes, seed, length);
            for (uint64_t changes = 1 + sgm__random_below(&random, 8); changes > 0; changes--)
                bytes[sgm__random_below(&random, length)] = (char)sgm__random_below(&random, 256);
            descriptors[i] = client_connect(sgm__http_port(server));
            client_send(descriptors[i], bytes, length);
            shutdown(descriptors[i], SHUT_WR);
        }
        for (int i = 0; i < 30; i++) { /* until each is answered, or cut off */
            while (client_receive(descriptors[i], bytes, sizeof bytes, CLIENT_PATIENCE) > 0)
                ;
            close(descriptors[i]);
        }
    }
    check_alive(server);
    CHECK(sgm__http_stop(server));
}
