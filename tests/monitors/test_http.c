/* The server of the monitor: pages, routes, events. What it refuses is in test_http_safety.c. */
#include "http_client.h"
#include "monitors/http/assets.h"
#include "monitors/http/http.h"

#include <fcntl.h>

#define TOKEN "0123456789abcdef-TOKEN"

static sgm_status say_hello(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *name = sgm__http_query(request, "name", 0), *second = sgm__http_query(request, "name", 1);
    if (name == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a name");
    return sgm__http_answer_json(answer, json_pack("{s:s, s:s, s:s}", "hello", name, "second",
                                                   second != NULL ? second : "none", "user", (char *)user));
}

static sgm_status echo(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user;
    json_t *object = sgm__http_object(request);
    if (object == NULL)
        return SGM_ERROR_ARGUMENT;
    return sgm__http_answer_json(answer, json_pack("{s:O, s:s}", "got", object, "path", request->path));
}

static sgm_status fail_with(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user;
    int64_t status;
    answer->body = sgm__strdup("half an answer");
    if (!sgm__parse_int64(request->path, &status))
        return sgm_fail(SGM_ERROR_ARGUMENT, "no number: \"%s\"", request->path);
    return sgm_fail((sgm_status)status, "failed with %d \xff", (int)status);
}

static sgm_status give_file(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)request;
    char path[] = "/tmp/sigma-http-XXXXXX";
    answer->descriptor = mkstemp(path);
    answer->is_file = true;
    unlink(path);
    answer->length = (size_t)write(answer->descriptor, "file\0bytes", 10);
    answer->type = "application/octet-stream";
    snprintf(answer->file_name, sizeof answer->file_name, "epoch \"3\"\r\nX: y/\xc3\xa4.bin");
    return SGM_OK;
}

static const sgm__http_route routes[] = {
    {.method = "GET", .path = "/api/hello", .act = say_hello, .quick = true},
    {.method = "POST", .path = "/api/echo", .act = echo},
    {.method = "GET", .path = "/api/fail/", .act = fail_with},
    {.method = "POST", .path = "/api/fail/", .act = echo},
    {.method = "GET", .path = "/api/fail/deep", .act = give_file},
};

static char name[] = "somebody";

static sgm__http *start(void)
{
    sgm__http *server = sgm__http_start(&(sgm__http_options){
        .token = TOKEN, .routes = routes, .route_count = sizeof routes / sizeof routes[0], .user = name});
    if (server == NULL)
        TEST_FAIL("no server: %s", sgm_last_error());
    return server;
}

#define KNOWN "Host: localhost\r\nAuthorization: Bearer " TOKEN "\r\n"

static client_answer get(const sgm__http *server, const char *path)
{
    return client_ask(sgm__http_port(server), "GET %s HTTP/1.1\r\n" KNOWN "\r\n", path);
}

static client_answer post(const sgm__http *server, const char *path, const char *body)
{
    return client_ask(sgm__http_port(server),
                      "POST %s HTTP/1.1\r\n" KNOWN
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                      path, strlen(body), body);
}

static void check_answer(client_answer answer, int code, const char *part)
{
    if (answer.code != code || strstr(answer.all, part) == NULL)
        TEST_FAIL("expected %d with \"%s\", got: %s", code, part, answer.all);
    client_free(&answer);
}

/* Made of parts: all are there, and so is each file that its head names. */
static void check_page(const sgm__asset *asset)
{
    size_t modules = 0;
    CHECK(strstr(asset->bytes, "{{") == NULL);
    for (const char *link = asset->bytes; (link = strstr(link, "<link rel=\"")) != NULL; link++) {
        char path[128] = "/";
        CHECK_INT(sscanf(strstr(link, " href=\"") + 7, "%120[^\"]", path + 1), 1);
        if (sgm__asset_find(path) == NULL)
            TEST_FAIL("%s names %s, which is not there", asset->path, path);
        modules += strncmp(link + 11, "modulepreload", 13) == 0;
    }
    CHECK(modules > (strcmp(asset->path, "/serve.html") == 0 ? 1 : 10)); /* that page is small */
}

TEST(all_files_of_the_page_are_in_the_library)
{
    size_t count;
    const sgm__asset *assets = sgm__assets(&count);
    bool has_index = false;
    sgm__http *server = start();
    for (size_t i = 0; i < count; i++) {
        const sgm__asset *asset = &assets[i];
        char path[512], tag[64];
        char *bytes = NULL;
        size_t length;
        client_answer answer = get(server, asset->path);
        CHECK_INT(answer.code, 200);
        CHECK_INT(answer.length - (size_t)(answer.body - answer.all), asset->length);
        CHECK(memcmp(answer.body, asset->bytes, asset->length) == 0);
        CHECK_STR(client_header(&answer, "ETag", tag, sizeof tag), asset->tag);
        snprintf(path, sizeof path, "web%s", asset->path);
        if (strstr(asset->path, ".html") != NULL) {
            check_page(asset);
        } else if (strcmp(asset->path, "/panels/index.js") == 0) { /* made of what is in its folder */
            CHECK(memmem(asset->bytes, asset->length, "import './network.js';", 22) != NULL);
        } else if (strncmp(asset->path, "/dygraph.", 9) != 0) {
            CHECK_OK(sgm__file_read(path, SIZE_MAX, &bytes, &length));
            CHECK_INT(length, asset->length);
            CHECK(memcmp(bytes, asset->bytes, length) == 0);
            sgm__free(bytes);
        }
        has_index |= strcmp(asset->path, "/index.html") == 0;
        client_free(&answer);
    }
    CHECK(has_index);
    CHECK(sgm__asset_find("/dygraph.min.js")->length > 100000);
    CHECK_STR(sgm__asset_find("/dygraph.min.js")->type, "text/javascript; charset=utf-8");
    CHECK_STR(sgm__asset_find("/dygraph.min.css")->type, "text/css; charset=utf-8");
    CHECK(sgm__asset_find("/dygraph") == NULL);
    CHECK(sgm__http_stop(server));
}

TEST(a_file_that_the_browser_has_is_not_sent_again)
{
    sgm__http *server = start();
    const sgm__asset *asset = sgm__asset_find("/dygraph.min.css");
    client_answer answer =
        client_ask(sgm__http_port(server),
                   "GET /dygraph.min.css HTTP/1.1\r\n" KNOWN "If-None-Match: \"x\", %s\r\n\r\n", asset->tag);
    CHECK_INT(answer.code, 304);
    CHECK_STR(answer.body, "");
    client_free(&answer);
    CHECK(sgm__http_stop(server));
}

/* It is the same for everybody, and no answer of it may be found in a cache. */
TEST(the_page_holds_no_token)
{
    sgm__http *server = start();
    client_answer page = get(server, "/");
    CHECK_INT(page.code, 200);
    CHECK_STR(page.body, sgm__asset_find("/index.html")->bytes);
    CHECK(strstr(page.all, "Cache-Control: no-store") != NULL);
    client_free(&page);
    CHECK(sgm__http_stop(server));
}

TEST(routes_answer)
{
    sgm__http *server = start();
    check_answer(get(server, "/api/hello?name=a%20b+c%C3%A4&x=1&name=%26"), 200,
                 "{\"hello\":\"a b c\xc3\xa4\",\"second\":\"&\",\"user\":\"somebody\"}");
    check_answer(get(server, "/api/hello"), 400, "{\"error\":\"expected a name\"}");
    check_answer(post(server, "/api/echo", "{\"a\":[1,2]}"), 200, "{\"got\":{\"a\":[1,2]},\"path\":\"\"}");
    check_answer(post(server, "/api/echo", "{\"a\":[1,2}"), 400, "expected a JSON object: ");
    check_answer(post(server, "/api/echo", "[1]"), 400, "this is another value");
    check_answer(post(server, "/api/echo", ""), 400, "expected a JSON object: ");
    check_answer(get(server, "/api/nothing"), 404, "{\"error\":\"there is nothing here\"}");
    check_answer(get(server, "/api/hello/"), 404, "nothing");
    check_answer(get(server, "/api/fail/"), 404, "nothing");
    check_answer(get(server, "/api/echo"), 405, "Allow: POST");
    check_answer(post(server, "/api/hello", "{}"), 405, "Allow: GET");
    check_answer(post(server, "/", "{}"), 405, "Allow: GET");
    CHECK(sgm__http_stop(server));
}

TEST(the_longest_path_is_taken)
{
    sgm__http *server = start();
    check_answer(post(server, "/api/fail/x/y", "{}"), 200, "\"path\":\"x/y\"");
    check_answer(get(server, "/api/fail/deep"), 200, "application/octet-stream");
    check_answer(get(server, "/api/fail/deeper"), 400, "no number: \\\"deeper\\\"");
    check_answer(post(server, "/api/fail/deep", "{}"), 405, "method");
    CHECK(sgm__http_stop(server));
}

TEST(failures_have_codes)
{
    static const struct {
        const char *path;
        int code;
    } cases[] = {{"/api/fail/-1", 400}, {"/api/fail/-7", 404}, {"/api/fail/-11", 409},
                 {"/api/fail/-4", 500}, {"/api/fail/-8", 501}, {"/api/fail/-12", 503}};
    sgm__http *server = start();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_answer(get(server, cases[i].path), cases[i].code, "{\"error\":\"failed with -");
    check_answer(get(server, "/api/fail/x"), 400, "{\"error\":\"no number: \\\"x\\\"\"}");
    CHECK(sgm__http_stop(server));
}

TEST(files_are_sent_under_a_harmless_name)
{
    sgm__http *server = start();
    client_answer answer = get(server, "/api/fail/deep");
    char text[256];
    CHECK_INT(answer.code, 200);
    CHECK_STR(client_header(&answer, "Content-Disposition", text, sizeof text),
              "attachment; filename=\"epoch _3___X: y___.bin\"");
    CHECK_STR(client_header(&answer, "X", text, sizeof text), "");
    CHECK_INT(answer.length - (size_t)(answer.body - answer.all), 10);
    CHECK(memcmp(answer.body, "file\0bytes", 10) == 0);
    client_free(&answer);
    CHECK(sgm__http_stop(server));
}

TEST(several_requests_on_one_connection)
{
    sgm__http *server = start();
    int descriptor = client_connect(sgm__http_port(server));
    for (int i = 0; i < 20; i++) {
        static const char text[] = "GET /api/hello?name=again HTTP/1.1\r\n" KNOWN "\r\n";
        CHECK(client_send(descriptor, text, sizeof text - 1));
        check_answer(client_read(descriptor), 200, "again");
    }
    close(descriptor);
    CHECK(sgm__http_stop(server));
}

/* --- events --- */

/* Reads on until `part` has come; what came is in `text`. */
static void read_until(int descriptor, sgm__text *text, const char *part)
{
    char bytes[4096];
    while (text->data == NULL || strstr(text->data, part) == NULL) {
        ssize_t count = client_receive(descriptor, bytes, sizeof bytes, CLIENT_PATIENCE);
        if (count <= 0)
            TEST_FAIL("\"%s\" did not come; so far: %.2000s", part, text->data ? text->data : "");
        sgm__text_append_bytes(text, bytes, (size_t)count);
    }
}

TEST(events_reach_all_listeners)
{
    sgm__http *server = start();
    sgm__text text[2] = {{0}};
    int descriptors[2];
    sgm__http_push(server, "lost", "{}");
    for (int i = 0; i < 2; i++)
        descriptors[i] = client_listen(server, KNOWN, 0);
    sgm__http_push(server, "progress", "{\"epoch\":1}");
    for (int i = 0; i < 2; i++) {
        read_until(descriptors[i], &text[i], "event: progress\ndata: {\"epoch\":1}\n\n");
        CHECK(strstr(text[i].data, "Content-Type: text/event-stream") != NULL);
        CHECK(strstr(text[i].data, "lost") == NULL);
    }
    sgm__http_push(server, "log", "{\n}");
    for (int i = 0; i < 2; i++)
        read_until(descriptors[i], &text[i], "event: log\ndata: {\ndata: }\n\n");
    close(descriptors[0]);
    for (double end = sgm__now() + CLIENT_PATIENCE; sgm__http_listeners(server) > 1 && sgm__now() < end;) {
        sgm__http_push(server, "more", "{}");
        usleep(1000);
    }
    CHECK_INT(sgm__http_listeners(server), 1);
    CHECK_INT(sgm__http_dropped(server), 0);
    sgm__http_push(server, "last", "{}");
    CHECK(sgm__http_stop(server));
    read_until(descriptors[1], &text[1], "event: last\ndata: {}\n\n");
    read_until(descriptors[1], &text[1], "\r\n0\r\n\r\n"); /* whole, for those who check */
    close(descriptors[1]);
    for (int i = 0; i < 2; i++)
        sgm__text_free(&text[i]);
}
