/* Answers that are sent while their function runs, who reads them or does not, and servers without pages. */
#include "http_client.h"
#include "monitors/http/http_internal.h"

#define TOKEN "0123456789abcdef-TOKEN"
#define KNOWN "Host: localhost\r\nAuthorization: Bearer " TOKEN "\r\n"

static atomic_bool may_go; /* the function goes on */
static atomic_int ended;   /* how many functions have returned */

static bool say(const sgm__http_request *request, const char *text)
{
    return sgm__http_send(request, "text/event-stream", text, strlen(text));
}

static sgm_status return_with(sgm_status status)
{
    atomic_fetch_add(&ended, 1);
    return status;
}

/* Waits between two parts. */
static sgm_status two_parts(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)answer;
    CHECK(say(request, "first;"));
    while (!atomic_load(&may_go))
        usleep(1000);
    CHECK(say(request, "second;"));
    return return_with(SGM_OK);
}

static sgm_status one_then_failure(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)answer;
    say(request, "first;");
    return return_with(sgm_fail(SGM_ERROR_STATE, "no more"));
}

/* Until nobody reads any more. */
static sgm_status small_parts(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)answer;
    while (say(request, "part;") && !sgm__http_has_left(request) && !atomic_load(request->ending))
        usleep(1000);
    return return_with(sgm_fail(SGM_ERROR_INTERRUPTED, "nobody reads any more"));
}

static sgm_status many_bytes(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)answer;
    char *bytes = sgm__calloc(1, 65536);
    memset(bytes, 'x', 65536);
    while (sgm__http_send(request, "text/plain", bytes, 65536))
        continue;
    sgm__free(bytes);
    return return_with(SGM_OK);
}

static sgm_status refuse(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)request, (void)answer;
    return sgm_fail(SGM_ERROR_ARGUMENT, "not so");
}

static json_t *describe_error(int code, const char *why)
{
    return json_pack("{s:{s:i, s:s}}", "error", "code", code, "message", why);
}

static sgm__http *start(void)
{
    static const sgm__http_route routes[] = {{.method = "GET", .path = "/two", .act = two_parts},
                                             {.method = "GET", .path = "/failure", .act = one_then_failure},
                                             {.method = "GET", .path = "/small", .act = small_parts},
                                             {.method = "GET", .path = "/many", .act = many_bytes},
                                             {.method = "GET", .path = "/refuse", .act = refuse}};
    sgm__http *server = sgm__http_start(&(sgm__http_options){.routes = routes,
                                                             .route_count = sizeof routes / sizeof *routes,
                                                             .token = TOKEN,
                                                             .page = "",
                                                             .error = describe_error});
    if (server == NULL)
        TEST_FAIL("no server: %s", sgm_last_error());
    atomic_store(&may_go, false);
    atomic_store(&ended, 0);
    return server;
}

static int ask(const sgm__http *server, const char *path, int room)
{
    int descriptor = client_connect_with(sgm__http_port(server), room);
    char *text = sgm__format("GET %s HTTP/1.1\r\n" KNOWN "\r\n", path);
    CHECK(client_send(descriptor, text, strlen(text)));
    sgm__free(text);
    return descriptor;
}

/* Reads until `wanted` has come; what came is sgm__free'd by the caller. */
static char *read_until(int descriptor, const char *wanted)
{
    sgm__text text = {0};
    char part[4096];
    while (text.length == 0 || strstr(text.data, wanted) == NULL) {
        ssize_t count = client_receive(descriptor, part, sizeof part, CLIENT_PATIENCE);
        if (count <= 0)
            TEST_FAIL("'%s' has not come; so far: %s", wanted, text.data != NULL ? text.data : "");
        sgm__text_append_bytes(&text, part, (size_t)count);
    }
    return sgm__text_take(&text);
}

static void wait_for_end(void)
{
    for (double end = sgm__now() + CLIENT_PATIENCE; atomic_load(&ended) == 0 && sgm__now() < end;)
        usleep(1000);
    CHECK_INT(atomic_load(&ended), 1);
}

TEST(a_part_comes_while_the_function_runs)
{
    sgm__http *server = start();
    int descriptor = ask(server, "/two", 0);
    char *text = read_until(descriptor, "first;");
    CHECK(strstr(text, "HTTP/1.1 200 ") == text);
    CHECK(strstr(text, "Content-Type: text/event-stream\r\n") != NULL);
    CHECK(strstr(text, "X-Content-Type-Options: nosniff\r\n") != NULL);
    CHECK_INT(atomic_load(&ended), 0);
    sgm__free(text);
    atomic_store(&may_go, true);
    text = read_until(descriptor, "\r\n0\r\n\r\n");
    CHECK(strstr(text, "second;") != NULL);
    sgm__free(text);
    /* The connection takes another request. */
    static const char again[] = "GET /refuse HTTP/1.1\r\n" KNOWN "\r\n";
    CHECK(client_send(descriptor, again, strlen(again)));
    sgm__free(read_until(descriptor, "not so"));
    close(descriptor);
    CHECK(sgm__http_stop(server));
}

/* The client sees that the answer is not whole: the mark of its end is missing. */
TEST(a_failure_cuts_the_answer_off)
{
    sgm__http *server = start();
    client_answer answer = client_ask(sgm__http_port(server), "GET /failure HTTP/1.1\r\n" KNOWN "\r\n");
    CHECK_INT(answer.code, 200);
    CHECK(strstr(answer.body, "\r\n0\r\n") == NULL);
    client_free(&answer);
    CHECK(sgm__http_stop(server));
}

TEST(a_function_learns_that_its_client_has_gone)
{
    sgm__http *server = start();
    int descriptor = ask(server, "/small", 0);
    sgm__free(read_until(descriptor, "part;"));
    CHECK_INT(atomic_load(&ended), 0);
    close(descriptor);
    wait_for_end();
    CHECK(sgm__http_stop(server));
}

/* Nothing waits for it: its lane is free for others. */
TEST(a_client_that_does_not_read_is_cut_off)
{
    sgm__http *server = start();
    int descriptor = ask(server, "/many", 4096);
    wait_for_end();
    client_answer answer = client_ask(sgm__http_port(server), "GET /refuse HTTP/1.1\r\n" KNOWN "\r\n");
    CHECK_INT(answer.code, 400);
    client_free(&answer);
    answer = client_read(descriptor);
    CHECK(answer.length > 0 && strcmp(answer.all + answer.length - 5, "0\r\n\r\n") != 0);
    client_free(&answer);
    close(descriptor);
    CHECK(sgm__http_stop(server));
}

TEST(the_end_of_the_server_ends_answers)
{
    sgm__http *server = start();
    int descriptor = ask(server, "/small", 0);
    sgm__free(read_until(descriptor, "part;"));
    CHECK(sgm__http_stop(server));
    CHECK_INT(atomic_load(&ended), 1);
    client_answer answer = client_read(descriptor);
    CHECK(strstr(answer.all, "\r\n0\r\n\r\n") == NULL);
    client_free(&answer);
    close(descriptor);
}

static void check_error(const sgm__http *server, const char *line, const char *headers, int code,
                        const char *part)
{
    client_answer answer = client_ask(sgm__http_port(server), "%s HTTP/1.1\r\n%s\r\n", line, headers);
    json_t *made = json_loads(answer.body, 0, NULL);
    const json_t *error = json_object_get(made, "error");
    CHECK_INT(answer.code, code);
    CHECK_INT(json_integer_value(json_object_get(error, "code")), code);
    const char *why = json_string_value(json_object_get(error, "message"));
    if (why == NULL || strstr(why, part) == NULL)
        TEST_FAIL("\"%s\", expected \"%s\" in it", answer.body, part);
    json_decref(made);
    client_free(&answer);
}

/* There are no files, no pages and no events where "page" is empty, and errors have the form of the options.
 */
TEST(a_server_without_pages_has_errors_of_its_own_form)
{
    sgm__http *server = start();
    check_error(server, "GET /refuse", KNOWN, 400, "not so");
    check_error(server, "GET /refuse", "Host: localhost\r\n", 401, "the token is missing or wrong");
    check_error(server, "GET /", KNOWN, 404, "there is nothing here");
    check_error(server, "GET /index.html", KNOWN, 404, "there is nothing here");
    check_error(server, "GET /api/events", KNOWN, 404, "there is nothing here");
    check_error(server, "GET /?token=" TOKEN, "Host: localhost\r\n", 404, "there is nothing here");
    CHECK(sgm__http_stop(server));
}
