/* A client of HTTP that can misbehave: it sends any bytes. For tests. */
#ifndef SIGMA_HTTP_CLIENT_H
#define SIGMA_HTTP_CLIENT_H

#include "base/base.h"
#include "monitors/http/http.h"
#include "test.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENT_PATIENCE 20.0 /* seconds for an answer, on a busy machine */

typedef struct client_answer {
    int code;  /* 0: closed without an answer */
    char *all; /* from the first line on, 0 behind */
    size_t length;
    const char *body; /* in all */
} client_answer;

/* `room`: bytes of the buffer that it reads into; 0: as many as usual. */
static inline int client_connect_with(int port, int room)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor >= 0 && room > 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0)
        TEST_FAIL("cannot connect to port %d: %s", port, strerror(errno));
    return descriptor;
}

static inline int client_connect(int port)
{
    return client_connect_with(port, 0);
}

static inline bool client_send(int descriptor, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t part = send(descriptor, bytes, length, MSG_NOSIGNAL);
        if (part <= 0)
            return false;
        bytes += part;
        length -= (size_t)part;
    }
    return true;
}

/* Listens to a server's events, with these headers; `room`: bytes of its buffer, 0: the usual. */
static inline int client_listen(const sgm__http *server, const char *headers, int room)
{
    size_t before = sgm__http_listeners(server);
    char *text = sgm__format("GET /api/events HTTP/1.1\r\n%s\r\n", headers);
    int descriptor = client_connect_with(sgm__http_port(server), room);
    CHECK(client_send(descriptor, text, strlen(text)));
    sgm__free(text);
    for (double end = sgm__now() + CLIENT_PATIENCE;
         sgm__http_listeners(server) == before && sgm__now() < end;)
        usleep(1000);
    CHECK_INT(sgm__http_listeners(server), before + 1);
    return descriptor;
}

/* Waits for bytes; 0: closed, or cut; -1: nothing came in time. */
static inline ssize_t client_receive(int descriptor, char *to, size_t room, double seconds)
{
    double end = sgm__now() + seconds;
    for (;;) {
        double left = end - sgm__now();
        struct pollfd wait = {.fd = descriptor, .events = POLLIN};
        if (left <= 0)
            return -1;
        if (poll(&wait, 1, (int)(left * 1000) + 1) <= 0)
            continue;
        ssize_t part = recv(descriptor, to, room, 0);
        return part < 0 ? 0 : part;
    }
}

/* One answer with a Content-Length, or all until the end; one to HEAD has no body. */
static inline client_answer client_read_to(int descriptor, bool is_head)
{
    sgm__text text = {0};
    char part[4096];
    size_t wanted = SIZE_MAX;
    while (text.length < wanted) {
        ssize_t count = client_receive(descriptor, part, sizeof part, CLIENT_PATIENCE);
        if (count < 0)
            TEST_FAIL("no answer within %g s; so far: %.200s", CLIENT_PATIENCE, text.data ? text.data : "");
        if (count <= 0)
            break;
        sgm__text_append_bytes(&text, part, (size_t)count);
        const char *end = strstr(text.data, "\r\n\r\n"),
                   *length = strcasestr(text.data, "\r\nContent-Length:");
        if (wanted == SIZE_MAX && end != NULL && length != NULL && length < end)
            wanted = (size_t)(end + 4 - text.data) + (size_t)atol(length + 17);
        if (end != NULL && (is_head || strstr(text.data, "HTTP/1.1 304") == text.data))
            break;
    }
    client_answer answer = {.length = text.length};
    answer.all = text.data != NULL ? sgm__text_take(&text) : sgm__strdup("");
    const char *end = strstr(answer.all, "\r\n\r\n");
    answer.body = end != NULL ? end + 4 : "";
    if (strncmp(answer.all, "HTTP/1.", 7) == 0)
        answer.code = atoi(answer.all + 9);
    return answer;
}

static inline client_answer client_read(int descriptor)
{
    return client_read_to(descriptor, false);
}

/* A whole request on a connection of its own. */
static inline client_answer client_ask_bytes(int port, const char *bytes, size_t length)
{
    int descriptor = client_connect(port);
    client_send(descriptor, bytes, length);
    client_answer answer = client_read_to(descriptor, strncmp(bytes, "HEAD ", 5) == 0);
    close(descriptor);
    return answer;
}

static inline client_answer client_ask(int port, const char *format, ...) SGM_PRINTF(2, 3);
static inline client_answer client_ask(int port, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    client_answer answer = client_ask_bytes(port, text, (size_t)length);
    free(text);
    return answer;
}

/* The value of a header, in a buffer of the caller; "" without one. */
static inline const char *client_header(const client_answer *answer, const char *name, char *to, size_t room)
{
    char *wanted = sgm__format("\r\n%s: ", name);
    const char *found = strcasestr(answer->all, wanted);
    to[0] = '\0';
    if (found != NULL && found < answer->body) {
        found += strlen(wanted);
        snprintf(to, room, "%.*s", (int)strcspn(found, "\r\n"), found);
    }
    sgm__free(wanted);
    return to;
}

static inline void client_free(client_answer *answer)
{
    sgm__free(answer->all);
    *answer = (client_answer){0};
}

#endif
