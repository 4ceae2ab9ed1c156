/* What the monitor's server refuses. */
#include "http_tried.h"

#include <arpa/inet.h>

TEST(hosts_that_are_not_this_machine)
{
    static const char *const own[] = {"localhost", "localhost:8080", "LOCALHOST:1",
                                      "127.0.0.1", "127.0.0.1:9000", "127.1.2.3:80",
                                      "[::1]",     "[::1]:8080",     "localhost:65535"};
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
                                          "127.0.0.1:123456",
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
                                          "file://127.0.0.1:8080",
                                          "127.0.0.1:8080"};
    sgm__http *server = start();
    check(server, "GET /api/get", HOST BEARER "Origin: http://127.0.0.1:8080\r\n", 200);
    check(server, "GET /api/get", "Host: localhost:8080\r\n" BEARER "Origin: HTTP://LocalHost:8080\r\n", 200);
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
    check(server, "GET /", HOST "Cookie: sigma-8080=x\r\n", 401);
    check(server, "GET /", HOST "Cookie: sigma-8080=" TOKEN "\r\n", 401);
    CHECK(sgm__http_stop(server));
}

/* What a browser has once it has opened the printed address, by the name of a host: the cookie's name and
 * value, and the page token. */
typedef struct visit {
    char cookie[64], page_token[64];
} visit;

static visit enter(const sgm__http *server, const char *host)
{
    visit e = {0};
    char text[256];
    const char *query = strchr(sgm__http_url(server), '?');
    client_answer answer =
        client_ask(sgm__http_port(server), "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", query, host);
    CHECK_INT(answer.code, 303);
    client_header(&answer, "Location", text, sizeof text);
    CHECK_INT(sscanf(text, "/?page-token=%63s", e.page_token), 1);
    client_header(&answer, "Set-Cookie", text, sizeof text);
    CHECK_STR(strchr(text, ';'), "; Path=/; HttpOnly; SameSite=Strict");
    CHECK_INT(sscanf(text, "%63[^;]", e.cookie), 1);
    client_free(&answer);
    return e;
}

/* As a browser does: the address, its cookie, the page, a change. Each half of what it got opens nothing. */
TEST(a_browser_gets_in_by_the_printed_address)
{
    sgm__http *server = start_with((sgm__http_options){.token = "another-TOKEN_of-16"});
    int port = sgm__http_port(server);
    char address[128], headers[512], line[160];
    snprintf(address, sizeof address, "http://127.0.0.1:%d/?token=another-TOKEN_of-16", port);
    CHECK_STR(sgm__http_url(server), address);
    visit e = enter(server, "127.0.0.1:8080");
    CHECK_INT(strncmp(e.cookie, "sigma-8080=", 11), 0);
    CHECK_INT(strspn(e.cookie + 11, "0123456789abcdef"), 32);
    CHECK_INT(strspn(e.page_token, "0123456789abcdef"), 32);
    CHECK(strcmp(e.cookie + 11, e.page_token) != 0);

    /* The cookie, which other ports are sent: files of the page, which hold nothing. */
    snprintf(headers, sizeof headers, HOST "Cookie: a=b; sigma-8080=x; %s\r\n", e.cookie);
    check(server, "GET /", headers, 200);
    check(server, "GET /main.js", headers, 200);
    check(server, "GET /api/get", headers, 403);
    check(server, "GET /api/events", headers, 403);
    check(server, "GET /api/nothing", headers, 403);
    check(server, "GET /icon.svg", headers, 403);
    client_answer page = client_ask(port, "GET / HTTP/1.1\r\n%s\r\n", headers);
    CHECK(strstr(page.all, e.page_token) == NULL && strstr(page.all, "another-TOKEN") == NULL);
    client_free(&page);
    snprintf(headers, sizeof headers, HOST "Authorization: Bearer %s\r\n", e.cookie + 11);
    check(server, "GET /api/get", headers, 401);
    snprintf(line, sizeof line, "GET /?token=%s", e.cookie + 11);
    check(server, line, HOST, 401);

    /* The page token alone. */
    snprintf(headers, sizeof headers, HOST JSON "Content-Length: 2\r\nX-Sigma-Token: %s\r\n", e.page_token);
    check_body(server, "POST /api/set", headers, "{}", 401);
    snprintf(headers, sizeof headers, HOST "X-Sigma-Token: %s\r\n", e.page_token);
    check(server, "GET /api/get", headers, 401);
    check(server, "GET /main.js", headers, 401);
    snprintf(line, sizeof line, "GET /?page-token=%s", e.page_token);
    check(server, line, HOST, 401);

    /* Both, and nearly both. */
    CHECK_INT(atomic_load(&acted), 0);
    snprintf(headers, sizeof headers,
             HOST JSON "Content-Length: 2\r\nCookie: %s\r\nX-Sigma-Token: %.31s%c\r\n", e.cookie,
             e.page_token, e.page_token[31] == '0' ? '1' : '0');
    check_body(server, "POST /api/set", headers, "{}", 403);
    snprintf(headers, sizeof headers, HOST "Cookie: %s\r\nX-Sigma-Token: %s\r\nX-Sigma-Token: %s\r\n",
             e.cookie, e.page_token, e.page_token);
    check(server, "GET /api/get", headers, 403);
    CHECK_INT(atomic_load(&acted), 0);
    snprintf(headers, sizeof headers, HOST JSON "Content-Length: 2\r\nCookie: %s\r\nX-Sigma-Token: %s\r\n",
             e.cookie, e.page_token);
    check_body(server, "POST /api/set", headers, "{}", 200);
    snprintf(headers, sizeof headers, HOST "Cookie: %s\r\nX-Sigma-Token: %s\r\n", e.cookie, e.page_token);
    check(server, "GET /api/get", headers, 200);
    close(client_listen(server, headers, 0));
    CHECK_INT(atomic_load(&acted), 2);
    CHECK(sgm__http_stop(server));
}

static void check_redirection(const sgm__http *server, const char *line, const char *headers)
{
    char text[256];
    client_answer answer = client_ask(sgm__http_port(server), "%s HTTP/1.1\r\n%s\r\n", line, headers);
    CHECK_INT(answer.code, 303);
    CHECK_STR(client_header(&answer, "Location", text, sizeof text), "/");
    CHECK_STR(client_header(&answer, "Set-Cookie", text, sizeof text), "");
    client_free(&answer);
}

/* A link from elsewhere brings no page token of its own, and the cookie gets none out of the server. */
TEST(the_page_is_shown_with_the_right_page_token_or_none)
{
    sgm__http *server = start();
    visit e = enter(server, "127.0.0.1:8080");
    char headers[256], line[128];
    snprintf(headers, sizeof headers, HOST "Cookie: %s\r\n", e.cookie);
    snprintf(line, sizeof line, "GET /?page-token=%s", e.page_token);
    check(server, line, headers, 200);
    check_redirection(server, "GET /?page-token=0123456789abcdef0123456789abcdef", headers);
    check_redirection(server, "GET /?page-token=", headers);
    check_redirection(server, "GET /?token=0123456789abcdef", headers);
    CHECK(sgm__http_stop(server));
}

/* Two programs that have the same port on two machines may be two ports of this one, by tunnels. */
TEST(the_cookie_is_named_after_the_port_that_the_browser_knows)
{
    sgm__http *server = start();
    visit one = enter(server, "127.0.0.1:9001"), two = enter(server, "localhost:9002"),
          three = enter(server, "localhost");
    char headers[256];
    CHECK_INT(strncmp(one.cookie, "sigma-9001=", 11), 0);
    CHECK_INT(strncmp(two.cookie, "sigma-9002=", 11), 0);
    CHECK_INT(strncmp(three.cookie, "sigma=", 6), 0);
    snprintf(headers, sizeof headers, "Host: 127.0.0.1:9001\r\nCookie: %s\r\n", one.cookie);
    check(server, "GET /", headers, 200);
    snprintf(headers, sizeof headers, "Host: 127.0.0.1:9002\r\nCookie: %s\r\n", one.cookie);
    check(server, "GET /", headers, 401);
    CHECK(sgm__http_stop(server));
}

/* Browsers send all cookies of a host with each request, those of other ports too: Chromium keeps 180 of 4
 * kB. */
TEST(cookies_of_others_do_not_lock_the_page_out)
{
    sgm__http *server = start();
    visit e = enter(server, "127.0.0.1:8080");
    sgm__text request = {0};
    sgm__text_append(&request, "GET / HTTP/1.1\r\n" HOST "Cookie: ");
    for (int i = 0; i < 180; i++)
        sgm__text_append(&request, "other%03d=%04086d; ", i, i);
    sgm__text_append(&request, "%s\r\n\r\n", e.cookie);
    CHECK(!request.failed && request.length > 700000);
    client_answer answer = client_ask_bytes(sgm__http_port(server), request.data, request.length);
    CHECK_INT(answer.code, 200);
    client_free(&answer);
    sgm__text_free(&request);
    CHECK(sgm__http_stop(server));
}

/* As browsers send them: a value is whatever the other server, or its page, has set. */
TEST(cookies_of_others_may_be_written_in_any_way)
{
    static const char *const others[] = {
        "a=\"not closed; %s",     "a=\\\"; %s", "a={\"b\": \"c, d\"}; %s",
        "%s; a=\"not closed",     "a; %s",      "=b; %s",
        "a=b\r\nCookie: %s",      "a=;%s",      "sigma-8080=\"; %s; sigma-8080=",
        "a=\xc3\xa9 \xff ' b; %s"};
    static const char *const wrong[] = {"xsigma-8080=%s", "a=sigma-8080=%s", "sigma-8080=%sx",
                                        "sigma-808=%s"};
    sgm__http *server = start();
    visit e = enter(server, "127.0.0.1:8080");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char *cookies = sgm__format(others[i], e.cookie),
             *headers = sgm__format(HOST "Cookie: %s\r\n", cookies);
        check(server, "GET /", headers, 200);
        sgm__free(cookies);
        sgm__free(headers);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char *cookies = sgm__format(wrong[i], e.cookie + strlen("sigma-8080=")),
             *headers = sgm__format(HOST "Cookie: %s\r\n", cookies);
        check(server, "GET /", headers, 401);
        sgm__free(cookies);
        sgm__free(headers);
    }
    CHECK(sgm__http_stop(server));
}

/* A page of another port opens one with the browser's cookies; the browser tells whose page it is. */
TEST(web_sockets_get_nothing)
{
#define SOCKET                                                                                               \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                             \
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
    sgm__http *server = start();
    visit e = enter(server, "127.0.0.1:8080");
    char headers[512];
    snprintf(headers, sizeof headers, HOST SOCKET "Origin: http://127.0.0.1:8081\r\nCookie: %s\r\n",
             e.cookie);
    check(server, "GET /api/events", headers, 403);
    check(server, "GET /", headers, 403);
    snprintf(headers, sizeof headers, HOST SOCKET "Origin: http://127.0.0.1:8080\r\nCookie: %s\r\n",
             e.cookie);
    check(server, "GET /api/events", headers, 403);
    CHECK_INT(sgm__http_listeners(server), 0);
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
    /* The printed address in a chat: the browser gets the cookie with the first answer, and keeps it back
     * too. */
    visit e = enter(server, "127.0.0.1:8080");
    char wanted[128];
    snprintf(wanted, sizeof wanted, "http-equiv=\"refresh\" content=\"0;url=/?page-token=%s\"", e.page_token);
    answer = client_ask(sgm__http_port(server),
                        "GET /?page-token=%s HTTP/1.1\r\n" HOST
                        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n\r\n",
                        e.page_token);
    CHECK_INT(answer.code, 401);
    CHECK(strstr(answer.body, wanted) != NULL);
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
    static const char *const lines[] = {
        "GET /",     "GET /main.js",         "GET /api/get", "GET /api/nothing",
        "GET /../x", ("GET /?token=" TOKEN), "POST /"};
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

/* --- start --- */

#define START(...) sgm__http_start(&(sgm__http_options){__VA_ARGS__})

/* An address of this machine that no other process uses, so that none takes the port between two servers. */
static const char *own_address(void)
{
    static char address[INET_ADDRSTRLEN];
    unsigned process = (unsigned)getpid();
    snprintf(address, sizeof address, "127.%u.%u.%u", 1 + (process >> 16) % 254, process >> 8 & 255,
             process & 255);
    return address;
}

TEST(ports_that_are_taken)
{
    const char *address = own_address();
    sgm__http *server = start_with((sgm__http_options){.address = address}), *other = NULL;
    int port = sgm__http_port(server);
    char message[64];
    snprintf(message, sizeof message, "port %d is taken by another program", port);
    CHECK_ERROR(START(.address = address, .port = port), message);
    CHECK_ERROR(START(.port = 65536), "a port is 1 to 65535");
    CHECK_ERROR(START(.port = -1), "a port is 1 to 65535");
    other = start_with((sgm__http_options){.address = address});
    CHECK(sgm__http_port(other) != port);
    CHECK(sgm__http_stop(server));
    server = start_with((sgm__http_options){.address = address, .port = port}); /* at once */
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
    char headers[512];
    CHECK_INT(strlen(first), 32);
    CHECK_INT(strspn(first, "0123456789abcdef"), 32);
    CHECK(strcmp(first, second) != 0);
    snprintf(headers, sizeof headers, HOST "Authorization: Bearer %s\r\n", first);
    check(one, "GET /", headers, 200);
    check(two, "GET /", headers, 401);
    visit a = enter(one, "127.0.0.1:8080"), b = enter(two, "127.0.0.1:8081");
    snprintf(headers, sizeof headers, HOST "Cookie: %s; %s\r\n", a.cookie, b.cookie);
    check(one, "GET /", headers, 200);
    snprintf(headers, sizeof headers, "Host: 127.0.0.1:8081\r\nCookie: %s; %s\r\n", a.cookie, b.cookie);
    check(two, "GET /", headers, 200);
    check(one, "GET /", headers, 401);
    snprintf(headers, sizeof headers, HOST "Authorization: Bearer %s\r\n", second);
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

#define PUBLIC "X-Forwarded-Host: example.org:8443\r\n"

/* As nginx does that is told nothing else: Host is the server's own name, and what it was is said apart. */
TEST(what_a_proxy_says_of_the_browser_counts)
{
    sgm__http *server =
        start_with((sgm__http_options){.behind_proxy = true, .public_host = "example.org:8443"});
    check(server, "GET /api/get", HOST PUBLIC "X-Forwarded-Proto: https\r\n" BEARER, 200);
    check(server, "GET /api/get", "Host: trainer:8080\r\n" PUBLIC BEARER, 200);
    check_body(server, "POST /api/set",
               HOST PUBLIC JSON "Origin: https://example.org:8443\r\nContent-Length: 2\r\n" BEARER, "{}",
               200);
    check_body(server, "POST /api/set",
               HOST PUBLIC JSON "Origin: http://127.0.0.1:8080\r\nContent-Length: 2\r\n" BEARER, "{}", 403);
    check(server, "GET /api/get", HOST "X-Forwarded-Host: evil.example\r\n" BEARER, 403);
    check(server, "GET /api/get", HOST "X-Forwarded-Host: example.org:8443, evil.example\r\n" BEARER, 403);
    check(server, "GET /api/get", HOST "X-Forwarded-Host: evil.example, example.org:8443\r\n" BEARER, 200);
    check(server, "GET /api/get", HOST PUBLIC "X-Forwarded-Host: evil.example\r\n" BEARER, 403);
    check(server, "GET /api/get", HOST PUBLIC "X-Forwarded-Proto: http\r\n" BEARER, 403);
    check(server, "GET /api/get", HOST PUBLIC "X-Forwarded-Proto: https, http\r\n" BEARER, 403);
    CHECK(sgm__http_stop(server));
    server = start(); /* there is none: anybody may say so */
    check(server, "GET /api/get", "Host: trainer:8080\r\n" PUBLIC BEARER, 403);
    check(server, "GET /api/get",
          HOST "X-Forwarded-Host: 127.0.0.1:8080\r\nX-Forwarded-Proto: http\r\n" BEARER, 200);
    CHECK(sgm__http_stop(server));
}

static char logged[4096];

static void note_message(void *user, sgm_log_level level, const char *source, const char *message)
{
    (void)user, (void)level;
    if (strcmp(source, "http") == 0)
        snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", message);
}

TEST(the_log_names_who_was_refused)
{
    sgm__http *server = start_with((sgm__http_options){.behind_proxy = true, .public_host = "example.org"});
    sgm_set_logger(note_message, NULL, SGM_LOG_DEBUG);
    check(server, "GET /api/get", HOST "X-Forwarded-For: 10.0.0.1, 192.0.2.7\r\n", 401);
    check(server, "GET /api/get", HOST, 401);
    CHECK(sgm__http_stop(server));
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    CHECK(strstr(logged, "192.0.2.7: 401, the token is missing or wrong") != NULL);
    CHECK(strstr(logged, "127.0.0.1: 401, ") != NULL);
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
