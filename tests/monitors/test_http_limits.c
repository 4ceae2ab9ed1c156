/* What the monitor's server survives: too much, too slow, too often, and its own end. */
#include "base/allocator.h"
#include "http_tried.h"
#include "monitors/http/http_internal.h"

#define MAXIMUM_CONNECTIONS 64
#define HEADERS_LIMIT ((size_t)2 << 20) /* bytes of all headers of a request are fewer */

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

TEST(too_much_at_once)
{
    sgm__http *server = start();
    char *many = sgm__calloc(1, HEADERS_LIMIT + 1), *request = NULL;
    memset(many, 'x', HEADERS_LIMIT);
    client_answer answer =
        client_ask(sgm__http_port(server), "GET /?%.5000s HTTP/1.1\r\n" HOST BEARER "\r\n", many);
    CHECK_INT(answer.code, 414);
    client_free(&answer);
    answer =
        client_ask(sgm__http_port(server), "GET /api/get HTTP/1.1\r\n" HOST BEARER "X: %s\r\n\r\n", many);
    CHECK(answer.code == 431 || answer.code == 0);
    client_free(&answer);
    answer = client_ask(sgm__http_port(server), "GET /%.60000s HTTP/1.1\r\n" HOST BEARER "\r\n", many);
    CHECK(answer.code == 414 || answer.code == 0);
    client_free(&answer);
    check_body(server, "POST /api/set", HOST BEARER JSON "Content-Length: 1001\r\n",
               many + HEADERS_LIMIT - 1001, 413);
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

/* --- who takes all places --- */

/* As much of a text, over and over, as the server takes without being read; `times`: at most. */
static int connect_and_send(const sgm__http *server, const char *text, int times)
{
    int descriptor = client_connect_with(sgm__http_port(server), times > 1 ? 4096 : 0);
    size_t length = strlen(text);
    for (int i = 0; i < times && send(descriptor, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) > 0; i++)
        ;
    return descriptor;
}

/* Twice as many connections as there are places do what they can without the token: the owner gets in all the
 * same, and a page that listens is not cut off for them. */
static void check_room_of(sgm__http *server, const char *sent, int times)
{
    int others[2 * MAXIMUM_CONNECTIONS], cut = 0;
    char byte, part[4096] = "";
    int page = client_listen(server, HOST BEARER, 0);
    for (int i = 0; i < 2 * MAXIMUM_CONNECTIONS; i++)
        others[i] = connect_and_send(server, sent, times);
    check(server, "GET /api/get", HOST BEARER, 200);
    check_body(server, "POST /api/set", HOST BEARER JSON "Content-Length: 2\r\n", "{}", 200);
    for (int i = 0; i < 2 * MAXIMUM_CONNECTIONS; i++) {
        ssize_t count;
        while ((count = recv(others[i], part, sizeof part, MSG_DONTWAIT)) > 0)
            ;
        cut += count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
        close(others[i]);
    }
    CHECK(cut >= MAXIMUM_CONNECTIONS);
    sgm__http_push(server, "n", "{}");
    CHECK_INT(client_receive(page, &byte, 1, CLIENT_PATIENCE), 1);
    close(page);
    CHECK(sgm__http_stop(server));
}

static void check_room(const char *sent)
{
    check_room_of(start(), sent, 1);
}

/* Those that ask for nothing make room for one who does. */
TEST(idle_connections_make_room)
{
    check_room("");
}

TEST(requests_without_an_end_make_room)
{
    check_room("GET /api/get HTTP/1.1\r\n" HOST);
}

/* The body of a refused request is read, as a browser sends it before it looks at the answer. */
TEST(refused_requests_without_their_bodies_make_room)
{
    check_room("POST /api/set HTTP/1.1\r\n" HOST JSON "Content-Length: 65536\r\n\r\n");
    check_room("POST /api/set HTTP/1.1\r\n" HOST JSON "Content-Length: 65536\r\n\r\n{\"half\": ");
    check_room("POST /api/upload HTTP/1.1\r\n" HOST "Content-Length: 99999999999\r\n\r\n");
}

/* A connection that stays takes megabytes. */
TEST(refused_requests_do_not_stay_connected)
{
    static const char *const refused[] = {
        "GET / HTTP/1.1\r\n" HOST "\r\n", "GET /api/events HTTP/1.1\r\n" HOST "\r\n",
        "POST /api/set HTTP/1.1\r\n" HOST JSON "Content-Length: 2\r\n\r\n{}"};
    sgm__http *server = start();
    char byte, text[64];
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        int descriptor = client_connect(sgm__http_port(server));
        CHECK(client_send(descriptor, refused[i], strlen(refused[i])));
        client_answer answer = client_read(descriptor);
        CHECK_INT(answer.code, 401);
        client_free(&answer);
        CHECK_INT(client_receive(descriptor, &byte, 1, CLIENT_PATIENCE), 0);
        close(descriptor);
    }
    client_answer answer =
        client_ask(sgm__http_port(server), "GET /api/nothing HTTP/1.1\r\n" HOST BEARER "\r\n");
    CHECK_INT(answer.code, 404);
    CHECK_STR(client_header(&answer, "Connection", text, sizeof text), "");
    client_free(&answer);
    CHECK(sgm__http_stop(server));
}

/* Refused for what the owner's token does not make good: they stay, as a program of the owner may. */
TEST(refused_requests_that_stay_connected_make_room)
{
    check_room("GET /api/get HTTP/1.1\r\nHost: evil.example\r\n" BEARER "\r\n");
}

TEST(refusals_that_nobody_reads_make_room)
{
    check_room_of(start(), "GET /api/get HTTP/1.1\r\n" HOST "\r\n", 4000);
}

/* Who knows the cookie, as other ports of this machine may, has the files of the page, but not the places. */
TEST(files_that_nobody_reads_make_room)
{
    sgm__http *server = start();
    char text[256], cookie[128];
    client_answer answer =
        client_ask(sgm__http_port(server), "GET /?token=" TOKEN " HTTP/1.1\r\n" HOST "\r\n");
    snprintf(text, sizeof text, "GET /dygraph.min.js HTTP/1.1\r\n" HOST "Cookie: %s\r\n\r\n",
             client_header(&answer, "Set-Cookie", cookie, sizeof cookie));
    client_free(&answer);
    check_room_of(server, text, 1000);
}

TEST(too_many_that_are_busy)
{
    static const char wait[] = "GET /api/wait HTTP/1.1\r\n" HOST BEARER "\r\n";
    sgm__http *server = start();
    int busy[MAXIMUM_CONNECTIONS];
    char byte;
    for (int i = 0; i < MAXIMUM_CONNECTIONS; i++) {
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
    for (int i = 0; i < MAXIMUM_CONNECTIONS; i++) /* none of the owner's was cut off */
        CHECK(recv(busy[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    CHECK(sgm__http_stop(server));
    for (int i = 0; i < MAXIMUM_CONNECTIONS; i++) {
        CHECK(client_receive(busy[i], &byte, 1, CLIENT_PATIENCE) >= 0);
        close(busy[i]);
    }
}

/* Until it is told to wait; the last code. */
static int ask_often(const sgm__http *server, const char *headers, int maximum)
{
    int code = 0;
    for (int i = 0; i < maximum && code != 429; i++) {
        client_answer answer =
            client_ask(sgm__http_port(server), "GET /api/get HTTP/1.1\r\n" HOST "%s\r\n", headers);
        code = answer.code;
        client_free(&answer);
    }
    return code;
}

/* Whether the second is told to wait because the first has asked too often. A rate refills by the clock, so
 * that on a busy machine the second may come a moment too late: then both try again. */
static bool share_a_rate(const sgm__http *server, const char *first, const char *second)
{
    for (int i = 0; i < 20; i++)
        if (ask_often(server, first, 20000) == 429 && ask_often(server, second, 1) == 429)
            return true;
    return false;
}

/* Others of the same address, who know the token, do not. */
TEST(who_asks_too_often_waits)
{
    sgm__http *server = start();
    CHECK_INT(ask_often(server, "", 1), 401);
    CHECK_INT(ask_often(server, "", 20000), 429);
    check(server, "GET /api/get", HOST BEARER, 200);
    CHECK(sgm__http_stop(server));
}

/* Of somebody else's page: what is refused does not use up what the owner may ask. */
TEST(refusals_do_not_count_against_the_owner)
{
    sgm__http *server = start();
    CHECK_INT(ask_often(server, BEARER "Origin: http://evil.example\r\n", 20000), 429);
    check(server, "GET /api/get", HOST BEARER, 200);
    CHECK(sgm__http_stop(server));
}

/* All come by the proxy's address: each has a rate of its own, by the address that the proxy has added. */
TEST(behind_a_proxy_each_client_has_a_rate)
{
    sgm__http *server = start_with((sgm__http_options){.behind_proxy = true, .public_host = "example.org"});
    CHECK(share_a_rate(server, "X-Forwarded-For: 192.0.2.1\r\n",
                       "X-Forwarded-For: 203.0.113.9, 192.0.2.1:4711\r\n"));
    CHECK_INT(ask_often(server, "X-Forwarded-For: 192.0.2.1, 192.0.2.2\r\n", 1), 401);
    CHECK(share_a_rate(server, "X-Forwarded-For: [2001:db8::1]:80\r\n", "X-Forwarded-For: 2001:db8::1\r\n"));
    CHECK_INT(ask_often(server, "X-Forwarded-For: 203.0.113.0\r\n", 20000), 429);
    CHECK_INT(ask_often(server, "X-Forwarded-For: cb00:7100::\r\n", 1), 401); /* the same four bytes */
    CHECK_INT(ask_often(server, "X-Forwarded-For: nobody\r\n", 1), 401);      /* the proxy's own */
    CHECK(sgm__http_stop(server));
    server = start(); /* there is none: who says so is one and the same */
    CHECK(share_a_rate(server, "X-Forwarded-For: 192.0.2.1\r\n", "X-Forwarded-For: 192.0.2.2\r\n"));
    CHECK(sgm__http_stop(server));
}

/* --- events --- */

/* Of the events that came: those with numbers, in order, and how many are said to be lost. Whoever gets an
 * event has been told of all that were lost before it, but for the `gone`. */
static void count_events(const sgm__text *text, long gone, long *came, long *lost)
{
    static const char numbered[] = "event: n\ndata: {\"n\":", dropped[] = "event: dropped\ndata: {\"count\":";
    const char *end = text->data + text->length;
    long last = -1;
    *came = *lost = 0;
    for (const char *at = text->data; (at = memmem(at, (size_t)(end - at), "event: ", 7)) != NULL; at++) {
        if (strncmp(at, numbered, strlen(numbered)) == 0) {
            long number = strtol(at + strlen(numbered), NULL, 10);
            CHECK(number > last);
            CHECK(number <= *came + *lost + gone);
            last = number;
            ++*came;
        } else if (strncmp(at, dropped, strlen(dropped)) == 0) {
            *lost += strtol(at + strlen(dropped), NULL, 10);
        }
    }
}

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

#define PUSHED 20000
#define MORE 5

static bool is_losing(sgm__http *server)
{
    pthread_mutex_lock(&server->lock);
    bool is = server->listener_places[0].dropped > 0;
    pthread_mutex_unlock(&server->lock);
    return is;
}

/* As if the browser had read up to ten of the events that wait in front of those that are lost: newer ones
 * find room behind these. Returns how many there were. */
static long make_room(sgm__http *server)
{
    long gone = 0;
    pthread_mutex_lock(&server->lock);
    sgm__http_listener *listener = &server->listener_places[0];
    for (; gone < 10 && listener->before > 0; gone++) {
        sgm__http_event *event = listener->queue[listener->first];
        listener->first = (listener->first + 1) % SGM__HTTP_QUEUE;
        listener->bytes -= event->length;
        listener->count--;
        listener->before--;
        sgm__free(event);
    }
    pthread_mutex_unlock(&server->lock);
    return gone;
}

static void push_padded(sgm__http *server, long number)
{
    char json[600];
    snprintf(json, sizeof json, "{\"n\":%ld,\"padding\":\"%0500d\"}", number, 0);
    sgm__http_push(server, "n", json);
}

TEST(a_browser_that_reads_nothing_holds_nobody_up)
{
    sgm__http *server = start();
    /* Through a smaller window the megabytes that the system holds for it would come in drops. */
    int slow = client_listen(server, HOST BEARER, 65536);
    long came = 0, lost = 0, pushed = 0;
    double longest = 0;
    while (pushed < PUSHED || !is_losing(server)) {
        double before = sgm__now();
        push_padded(server, pushed++);
        longest = fmax(longest, sgm__now() - before);
    }
    CHECK(longest < 5);
    CHECK(sgm__http_dropped(server) > PUSHED / 2);
    long gone = make_room(server);
    for (int i = 0; i < MORE; i++)
        push_padded(server, pushed++);
    check(server, "GET /api/get", HOST BEARER, 200);
    sgm__text text = {0};
    char part[65536];
    for (double end = sgm__now() + 3 * CLIENT_PATIENCE; came + lost + gone < pushed && sgm__now() < end;) {
        ssize_t count;
        while (sgm__now() < end && (count = client_receive(slow, part, sizeof part, 0.3)) > 0)
            sgm__text_append_bytes(&text, part, (size_t)count);
        sgm__text all = join_chunks(&text);
        count_events(&all, gone, &came, &lost);
        sgm__text_free(&all);
    }
    CHECK(came > 0);
    CHECK_INT(came + lost + gone, pushed);
    CHECK_INT(lost, sgm__http_dropped(server));
    sgm__text_free(&text);
    close(slow);
    CHECK(sgm__http_stop(server));
}

TEST(listeners_are_limited)
{
    sgm__http *server = start();
    int listeners[16];
    for (int i = 0; i < 16; i++)
        listeners[i] = client_listen(server, HOST BEARER, 0);
    check(server, "GET /api/events", HOST BEARER, 503);
    for (int i = 0; i < 16; i++)
        close(listeners[i]);
    for (double end = sgm__now() + CLIENT_PATIENCE; sgm__http_listeners(server) > 0 && sgm__now() < end;) {
        sgm__http_push(server, "n", "{}");
        usleep(1000);
    }
    CHECK_INT(sgm__http_listeners(server), 0);
    close(client_listen(server, HOST BEARER, 0));
    CHECK(sgm__http_stop(server));
}

/* A browser that has gone without a word is found out by writing. */
TEST(silent_listeners_are_found_out)
{
    sgm__http *server = start_with((sgm__http_options){.hurry = 10});
    close(client_listen(server, HOST BEARER, 0));
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
    int others[4] = {client_listen(server, HOST BEARER, 4096), client_connect(sgm__http_port(server)),
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
    close(client_listen(server, HOST BEARER, 0));
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

/* --- whatever comes --- */

TEST(noise)
{
    static const char *const seeds[] = {
        "GET /api/get?x=%20 HTTP/1.1\r\n" HOST BEARER "Cookie: a=b; sigma-1=c\r\n\r\n",
        "POST /api/set HTTP/1.1\r\n" HOST BEARER JSON "Content-Length: 2\r\n\r\n{}",
        "GET / HTTP/1.1\r\n" HOST "\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
    };
    sgm__http *server = start_with((sgm__http_options){.hurry = 50});
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
