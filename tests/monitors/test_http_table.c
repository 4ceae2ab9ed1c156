/* Every route, method and file of the monitor's page, the runs page and `sigma serve`: what each answers to
 * those who may not ask, in which role they come, and what is sent wrongly, too large or too slowly.
 *
 * The routes are those of the library's own tables, so that a new one is tried without anybody thinking of
 * it; their functions are replaced by one that counts. A client takes another address of the loopback for
 * each request, as an address that is refused often is refused for that. */
#include "http_tables.h"

#include "monitors/http/http_internal.h"

#include <arpa/inet.h>
#include <stdatomic.h>

#define OWN_HOST "Host: 127.0.0.1:8080\r\n"
#define BEARER(token) "Authorization: Bearer " token "\r\n"

/* --- a client --- */

static int connect_from_anywhere(int port)
{
    static uint32_t next = 0;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002u + next++ % 60000)},
                       to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&from, sizeof from) != 0 ||
        connect(descriptor, (struct sockaddr *)&to, sizeof to) != 0)
        TEST_FAIL("cannot connect to port %d: %s", port, strerror(errno));
    return descriptor;
}

/* The code of the answer; 0: the connection was closed without one. */
static int code_of(const sgm__http *server, const char *method, const char *path, const char *headers,
                   const char *body)
{
    char *text = sgm__format("%s %s HTTP/1.1\r\n%sConnection: close\r\n\r\n%s", method, path, headers, body);
    int descriptor = connect_from_anywhere(sgm__http_port(server));
    client_send(descriptor, text, strlen(text));
    client_answer answer = client_read_to(descriptor, strcmp(method, "HEAD") == 0);
    close(descriptor);
    int code = answer.code;
    client_free(&answer);
    sgm__free(text);
    return code;
}

/* --- who asks --- */

/* What a browser has that came with a token: the cookie, and the page token of that token. */
typedef struct visit {
    char cookie[100], page[64];
} visit;

static visit visit_with(const sgm__http *server, const char *token)
{
    visit v;
    char text[200], *request = sgm__format("GET /?token=%s HTTP/1.1\r\n" OWN_HOST "\r\n", token);
    int descriptor = connect_from_anywhere(sgm__http_port(server));
    client_send(descriptor, request, strlen(request));
    client_answer answer = client_read(descriptor);
    close(descriptor);
    CHECK_INT(answer.code, 303);
    CHECK_INT(sscanf(client_header(&answer, "Set-Cookie", text, sizeof text), "%99[^;]", v.cookie), 1);
    CHECK_INT(sscanf(client_header(&answer, "Location", text, sizeof text), "/?page-token=%63s", v.page), 1);
    client_free(&answer);
    sgm__free(request);
    return v;
}

/* What comes of a request that is right but for who sends it. ROLE: 200 if the route is for that role. */
#define ROLE(role) (-1 - (int)SGM__ROLE_##role)
typedef struct sender {
    const char *name;
    const char *headers; /* NULL: those of a browser, see below */
    const char *token;   /* of a browser that came with it; NULL: no browser */
    bool page_token;     /* the browser sends the page token, too */
    int route, file;     /* the codes of a route and of a file of the page */
} sender;

static const sender senders[] = {
    {"nobody", OWN_HOST, NULL, false, 401, 401},
    {"a wrong token", OWN_HOST BEARER("0123456789abcdef-WRONG"), NULL, false, 401, 401},
    {"a token as a password", OWN_HOST "Authorization: Basic " ADMIN_TOKEN "\r\n", NULL, false, 401, 401},
    {"two tokens", OWN_HOST BEARER(LOOK_TOKEN) BEARER(ADMIN_TOKEN), NULL, false, 401, 401},
    {"look", OWN_HOST BEARER(LOOK_TOKEN), NULL, false, ROLE(LOOK), 200},
    {"steer", OWN_HOST BEARER(STEER_TOKEN), NULL, false, ROLE(STEER), 200},
    {"admin", OWN_HOST BEARER(ADMIN_TOKEN), NULL, false, ROLE(ADMIN), 200},
    {"a browser, by its cookie alone", NULL, ADMIN_TOKEN, false, 403, 200},
    {"a browser of look", NULL, LOOK_TOKEN, true, ROLE(LOOK), 200},
    {"a browser of steer", NULL, STEER_TOKEN, true, ROLE(STEER), 200},
    {"a browser of admin", NULL, ADMIN_TOKEN, true, ROLE(ADMIN), 200},
    {"another name", "Host: evil.example\r\n" BEARER(ADMIN_TOKEN), NULL, false, 403, 403},
    {"a name that is added", "Host: 127.0.0.1.evil.example\r\n" BEARER(ADMIN_TOKEN), NULL, false, 403, 403},
    {"two names", OWN_HOST OWN_HOST BEARER(ADMIN_TOKEN), NULL, false, 403, 403},
    {"another page", OWN_HOST BEARER(ADMIN_TOKEN) "Origin: http://evil.example\r\n", NULL, false, 403, 403},
    {"no page", OWN_HOST BEARER(ADMIN_TOKEN) "Origin: null\r\n", NULL, false, 403, 403},
    {"another port", OWN_HOST BEARER(ADMIN_TOKEN) "Origin: http://127.0.0.1:8081\r\n", NULL, false, 403, 403},
    {"another site", OWN_HOST BEARER(ADMIN_TOKEN) "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
     NULL, false, 403, 403},
};

/* The headers of a sender; sgm__free. */
static char *headers_of(const sgm__http *server, const sender *s)
{
    if (s->headers != NULL)
        return sgm__strdup(s->headers);
    visit v = visit_with(server, s->token);
    return sgm__format(OWN_HOST "Cookie: %s\r\n%s%s%s", v.cookie, s->page_token ? "X-Sigma-Token: " : "",
                       s->page_token ? v.page : "", s->page_token ? "\r\n" : "");
}

/* --- routes --- */

/* A route's path as a request has it. */
static const char *path_of(const sgm__http_route *route)
{
    static char path[200];
    size_t length = strlen(route->path);
    snprintf(path, sizeof path, "%s%s", route->path, route->path[length - 1] == '/' ? "one" : "");
    return path;
}

static const char *type_of(const sgm__http_route *route)
{
    static char type[100];
    const char *types = route->type != NULL ? route->type : "application/json";
    snprintf(type, sizeof type, "%.*s", (int)strcspn(types, " "), types);
    return type;
}

/* The right headers of a route's body, which is "{}"; sgm__free. */
static char *with_body(const sgm__http_route *route, const char *headers)
{
    return strcmp(route->method, "POST") == 0
               ? sgm__format("%sContent-Type: %s\r\nContent-Length: 2\r\n", headers, type_of(route))
               : sgm__strdup(headers);
}

static const char *body_of(const sgm__http_route *route)
{
    return strcmp(route->method, "POST") == 0 ? "{}" : "";
}

/* Sends it, and checks the code and whether the route's function was reached. */
static void expect(const table *t, const sgm__http *server, const char *what, const char *method,
                   const char *path, const char *headers, const char *body, int code)
{
    int before = atomic_load(&table_acted), got = code_of(server, method, path, headers, body);
    if (got != code)
        TEST_FAIL("%s: %s %s, %s: %d, expected %d", t->name, method, path, what, got, code);
    if (code != 200 && atomic_load(&table_acted) != before)
        TEST_FAIL("%s: %s %s, %s: refused, but done", t->name, method, path, what);
}

TEST(each_route_and_each_sender)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        table t = table_at(i);
        sgm__http *server = table_serve(&t, (sgm__http_options){.changes_per_second = -1});
        for (size_t k = 0; k < sizeof senders / sizeof *senders; k++) {
            char *who = headers_of(server, &senders[k]);
            for (size_t r = 0; r < t.count; r++) {
                const sgm__http_route *route = &t.routes[r];
                char *headers = with_body(route, who);
                int code = senders[k].route >= 0                       ? senders[k].route
                           : (int)route->role <= -1 - senders[k].route ? 200
                                                                       : 403;
                expect(&t, server, senders[k].name, route->method, path_of(route), headers, body_of(route),
                       code);
                sgm__free(headers);
            }
            sgm__free(who);
        }
        CHECK(sgm__http_stop(server));
    }
}

TEST(each_file_and_each_sender)
{
    size_t count;
    const sgm__asset *assets = sgm__assets(&count);
    table t = table_at(0);
    sgm__http *server = table_serve(&t, (sgm__http_options){0});
    CHECK(count > 50);
    for (size_t k = 0; k < sizeof senders / sizeof *senders; k++) {
        char *who = headers_of(server, &senders[k]);
        for (size_t i = 0; i < count; i++)
            expect(&t, server, senders[k].name, "GET", assets[i].path, who, "", senders[k].file);
        expect(&t, server, senders[k].name, "GET", "/", who, "", senders[k].file);
        expect(&t, server, senders[k].name, "HEAD", "/main.js", who, "", senders[k].file);
        if (senders[k].route > 0)
            expect(&t, server, senders[k].name, "GET", "/api/events", who, "", senders[k].route);
        sgm__free(who);
    }
    for (size_t i = 0; i < count; i++)
        expect(&t, server, "a body for a file", "POST", assets[i].path,
               OWN_HOST BEARER(ADMIN_TOKEN) "Content-Type: application/json\r\nContent-Length: 2\r\n", "{}",
               405);
    CHECK(sgm__http_stop(server));
}

/* --- what is sent --- */

static bool has_method(const table *t, const char *path, const char *method)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->routes[i].path, path) == 0 && strcmp(t->routes[i].method, method) == 0)
            return true;
    return false;
}

static void try_methods(const table *t, const sgm__http *server, const sgm__http_route *route)
{
    static const char *const methods[] = {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"};
    const char *path = path_of(route);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        expect(t, server, "another method", methods[i], path, OWN_HOST BEARER(ADMIN_TOKEN), "", 405);
    if (!has_method(t, route->path, "POST"))
        expect(t, server, "another method", "POST", path,
               OWN_HOST BEARER(ADMIN_TOKEN) "Content-Type: application/json\r\nContent-Length: 2\r\n", "{}",
               405);
    if (!has_method(t, route->path, "GET"))
        expect(t, server, "another method", "GET", path, OWN_HOST BEARER(ADMIN_TOKEN), "", 405);
}

static void try_bodies(const table *t, const sgm__http *server, const sgm__http_route *route)
{
    static const char *const wrong[] = {"text/html", "application/x-www-form-urlencoded",
                                        "multipart/form-data; boundary=x"};
    const char *path = path_of(route);
    char *headers;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (route->type != NULL && strncmp(wrong[i], "multipart", 9) == 0 &&
            strstr(route->type, "multipart") != NULL)
            continue;
        headers =
            sgm__format(OWN_HOST BEARER(ADMIN_TOKEN) "Content-Type: %s\r\nContent-Length: 2\r\n", wrong[i]);
        expect(t, server, wrong[i], "POST", path, headers, "{}", 415);
        sgm__free(headers);
    }
    expect(t, server, "no type", "POST", path, OWN_HOST BEARER(ADMIN_TOKEN) "Content-Length: 2\r\n", "{}",
           415);
    size_t most = route->longest_body > 0 ? route->longest_body : SGM__HTTP_DEFAULT_BODY;
    headers = sgm__format(OWN_HOST BEARER(ADMIN_TOKEN) "Content-Type: %s\r\nContent-Length: %zu\r\n",
                          type_of(route), most + 1);
    expect(t, server, "too large", "POST", path, headers, "", 413);
    sgm__free(headers);
    headers = sgm__format(OWN_HOST BEARER(ADMIN_TOKEN) "Content-Type: %s\r\n", type_of(route));
    expect(t, server, "no length", "POST", path, headers, "", 411);
    sgm__free(headers);
    headers = sgm__format(OWN_HOST BEARER(ADMIN_TOKEN) "Content-Type: %s\r\nTransfer-Encoding: chunked\r\n",
                          type_of(route));
    expect(t, server, "in chunks", "POST", path, headers, "2\r\n{}\r\n0\r\n\r\n", 411);
    sgm__free(headers);
}

TEST(each_route_and_each_mistake)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        table t = table_at(i);
        sgm__http *server = table_serve(&t, (sgm__http_options){.changes_per_second = -1});
        for (size_t r = 0; r < t.count; r++) {
            try_methods(&t, server, &t.routes[r]);
            if (strcmp(t.routes[r].method, "POST") == 0)
                try_bodies(&t, server, &t.routes[r]);
            else
                expect(&t, server, "a body", "GET", path_of(&t.routes[r]),
                       OWN_HOST BEARER(ADMIN_TOKEN) "Content-Length: 2\r\n", "{}", 400);
        }
        expect(&t, server, "what is not there", "GET", "/api/nothing", OWN_HOST BEARER(ADMIN_TOKEN), "", 404);
        expect(&t, server, "what is not there, of nobody", "GET", "/api/nothing", OWN_HOST, "", 401);
        CHECK(sgm__http_stop(server));
    }
}

/* Headers, or a body, of which the end does not come: all routes at once, then each must have been closed
 * without an answer, though a byte came now and then. */
static void try_slowly(table *t, const char *headers, const char *more)
{
    sgm__http *server = table_serve(t, (sgm__http_options){.hurry = 20, .changes_per_second = -1});
    int descriptors[TABLE_LARGEST], before = atomic_load(&table_acted);
    char rest[400];
    CHECK(t->count < SGM__HTTP_CONNECTIONS);
    for (size_t r = 0; r < t->count; r++) {
        const sgm__http_route *route = &t->routes[r];
        char *text = sgm__format("%s %s HTTP/1.1\r\n%sContent-Type: %s\r\n%s", route->method, path_of(route),
                                 headers, type_of(route), more);
        descriptors[r] = connect_from_anywhere(sgm__http_port(server));
        CHECK(client_send(descriptors[r], text, strlen(text)));
        sgm__free(text);
    }
    for (double end = sgm__now() + 0.3; sgm__now() < end; usleep(20000))
        for (size_t r = 0; r < t->count; r++)
            client_send(descriptors[r], "x", 1);
    for (size_t r = 0; r < t->count; r++) {
        ssize_t count = client_receive(descriptors[r], rest, sizeof rest - 1, CLIENT_PATIENCE);
        rest[count > 0 ? count : 0] = '\0';
        if (count != 0)
            TEST_FAIL("%s: %s %s, slowly: %s", t->name, t->routes[r].method, t->routes[r].path,
                      count < 0 ? "waits" : rest);
        close(descriptors[r]);
    }
    CHECK_INT(atomic_load(&table_acted), before);
    CHECK(sgm__http_stop(server));
}

TEST(each_route_and_a_slow_sender)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        table t = table_at(i), posts = {.name = t.name};
        try_slowly(&t, OWN_HOST BEARER(ADMIN_TOKEN), "X-Slow: ");
        try_slowly(&t, OWN_HOST, "X-Slow: ");
        for (size_t r = 0; r < t.count; r++)
            if (strcmp(t.routes[r].method, "POST") == 0)
                table_add(&posts, &t.routes[r], 1);
        try_slowly(&posts, OWN_HOST BEARER(ADMIN_TOKEN), "Content-Length: 2000\r\n\r\n{");
    }
}

/* --- how often --- */

TEST(changes_are_limited_for_each_token)
{
    table t = table_at(1);
    sgm__http *server = table_serve(&t, (sgm__http_options){.changes_per_second = 0.5});
    const char *json = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    char *steer = sgm__format(OWN_HOST BEARER(STEER_TOKEN) "%s", json),
         *admin = sgm__format(OWN_HOST BEARER(ADMIN_TOKEN) "%s", json);
    for (int i = 0; i < (int)SGM__RATE_BURST; i++)
        expect(&t, server, "a change", "POST", "/api/run-notes", steer, "{}", 200);
    char *request = sgm__format("POST /api/run-notes HTTP/1.1\r\n%sConnection: close\r\n\r\n{}", steer);
    client_answer answer = client_ask_bytes(sgm__http_port(server), request, strlen(request));
    CHECK_INT(answer.code, 429);
    if (strstr(answer.all, "too many changes: at most 20 at once and 0.5 a second; wait ") == NULL ||
        strstr(answer.all, "Retry-After: 1\r\n") == NULL)
        TEST_FAIL("%s", answer.all);
    client_free(&answer);
    sgm__free(request);
    expect(&t, server, "reading", "GET", "/api/runs", OWN_HOST BEARER(STEER_TOKEN), "", 200);
    expect(&t, server, "another token", "POST", "/api/run-notes", admin, "{}", 200);
    sgm__free(steer);
    sgm__free(admin);
    CHECK(sgm__http_stop(server));
}

/* --- tokens as text --- */

TEST(tokens_are_read_strictly)
{
    static const struct {
        const char *text, *error;
    } wrong[] = {
        {"root 0123456789abcdef", "line 1 of the tokens: a role is 'look', 'steer' or 'admin', not 'root'"},
        {"\nlook", "line 2 of the tokens: there is no token behind the role 'look'"},
        {"look short", "line 1 of the tokens: a token has 16 to 128 of the characters"},
        {"look 0123456789abcde!", "line 1 of the tokens: a token has 16 to 128 of the characters"},
        {"look 0123456789abcdef anna maria", "a name is one word of at most 40 of"},
        {"look 0123456789abcdef a:b", "a name is one word of at most 40 of"},
        {"look 0123456789abcdef\nsteer 0123456789abcdef", "line 2 of the tokens: the token is there already"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const sgm__http_options options = {.tokens = wrong[i].text};
        CHECK_ERROR(sgm__http_check(&options), wrong[i].error);
        CHECK(strstr(sgm_last_error(), "0123456789abcde") == NULL);
    }
    CHECK_OK(sgm__http_check(&(const sgm__http_options){.tokens = "look 0123456789abcdef\r\n# all\n"}));
}
