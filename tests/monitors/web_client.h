/* A program that watches a web monitor: requests in JSON, and the events that are pushed. For tests. */
#ifndef SIGMA_WEB_CLIENT_H
#define SIGMA_WEB_CLIENT_H

#include "monitors/http_client.h"

#include <jansson.h>
#include <sigma/sigma.h>

typedef struct web_client {
    int port;
    char token[130];
    int code;       /* of the newest answer */
    json_t *answer; /* of the newest web_got or web_posted */
} web_client;

static inline web_client web_client_of(const char *url)
{
    web_client client = {0};
    const char *colon = strrchr(url, ':'), *token = strstr(url, "token=");
    if (colon == NULL || token == NULL)
        TEST_FAIL("this is no address of a monitor: '%s'", url);
    client.port = atoi(colon + 1);
    snprintf(client.token, sizeof client.token, "%s", token + 6);
    return client;
}

static inline json_t *web_read(web_client *client, client_answer answer)
{
    json_error_t error;
    client->code = answer.code;
    json_t *json = json_loads(answer.body, JSON_DECODE_ANY, &error);
    if (json == NULL)
        TEST_FAIL("no JSON: %s in '%.300s'", error.text, answer.all);
    client_free(&answer);
    return json;
}

/* The answer belongs to the caller. */
static inline json_t *web_get(web_client *client, const char *path)
{
    return web_read(client, client_ask(client->port,
                                       "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
                                       "%s\r\nConnection: close\r\n\r\n",
                                       path, client->port, client->token));
}

static inline json_t *web_post(web_client *client, const char *path, const char *body)
{
    return web_read(client, client_ask(client->port,
                                       "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
                                       "%s\r\nContent-Type: application/json\r\nContent-Length: "
                                       "%zu\r\nConnection: close\r\n\r\n%s",
                                       path, client->port, client->token, strlen(body), body));
}

/* The answer stays until the next one comes, or the client is closed. */
static inline const json_t *web_got(web_client *client, const char *path)
{
    json_decref(client->answer);
    client->answer = NULL;
    return client->answer = web_get(client, path);
}

static inline const json_t *web_posted(web_client *client, const char *path, const char *body)
{
    json_decref(client->answer);
    client->answer = NULL;
    return client->answer = web_post(client, path, body);
}

static inline void web_client_close(web_client *client)
{
    json_decref(client->answer);
    client->answer = NULL;
}

/* Everything that is pushed, until it is closed. */
typedef struct web_listener {
    int descriptor;
    sgm__text text;
    size_t read;
} web_listener;

static inline web_listener web_listen(web_client *client)
{
    web_listener listener = {.descriptor = client_connect(client->port)};
    char *request = sgm__format("GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
                                "%s\r\nAccept: text/event-stream\r\n\r\n",
                                client->port, client->token);
    client_send(listener.descriptor, request, strlen(request));
    sgm__free(request);
    return listener;
}

/* The bytes of all events of this name so far, one JSON after the other; NULL: there is none. The newest
 * counts. Waits for `seconds` at most, until `wanted` (NULL: anything) is in one. */
static inline json_t *web_event(web_listener *listener, const char *name, const char *wanted, double seconds)
{
    char part[65536], *line = sgm__format("event: %s\ndata: ", name);
    double end = sgm__now() + seconds;
    for (;;) {
        char *text = listener->text.data != NULL ? listener->text.data + listener->read : NULL, *found;
        while (text != NULL && (found = strstr(text, line)) != NULL) {
            char *data = found + strlen(line), *stop = strchr(data, '\n');
            if (stop == NULL)
                break;
            *stop = '\0';
            bool fits = wanted == NULL || strstr(data, wanted) != NULL;
            json_t *event = fits ? json_loads(data, 0, NULL) : NULL;
            *stop = '\n';
            if (fits) {
                listener->read = (size_t)(stop - listener->text.data);
                sgm__free(line);
                return event;
            }
            text = stop;
        }
        ssize_t count =
            sgm__now() < end ? client_receive(listener->descriptor, part, sizeof part, end - sgm__now()) : -1;
        if (count <= 0)
            break;
        /* chunks have their lengths between them, which no event's data looks like */
        sgm__text_append_bytes(&listener->text, part, (size_t)count);
    }
    sgm__free(line);
    return NULL;
}

static inline void web_listener_close(web_listener *listener)
{
    close(listener->descriptor);
    sgm__text_free(&listener->text);
}

/* By a path of keys and numbers: "series.0.last.3". NULL: it is not there. */
static inline const json_t *web_at(const json_t *json, const char *path)
{
    char part[200];
    for (; json != NULL && *path != '\0'; path += *path == '/') {
        size_t length = strcspn(path, "/");
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        json = json_is_array(json) ? json_array_get(json, (size_t)atol(part)) : json_object_get(json, part);
        path += length;
    }
    return json;
}

static inline double web_number(const json_t *json, const char *path)
{
    return json_is_number(web_at(json, path)) ? json_number_value(web_at(json, path)) : (double)NAN;
}

static inline const char *web_string(const json_t *json, const char *path)
{
    const char *text = json_string_value(web_at(json, path));
    return text != NULL ? text : "(none)";
}

/* What the newest kept answer of a client was: done, or refused with this code and this in its error. */
#define CHECK_DONE(client)                                                                                   \
    do {                                                                                                     \
        if ((client)->code != 200)                                                                           \
            TEST_FAIL("answered %d: %s", (client)->code, web_string((client)->answer, "error"));             \
    } while (0)

#define CHECK_REFUSED(client, wanted, part)                                                                  \
    do {                                                                                                     \
        CHECK_INT((client)->code, wanted);                                                                   \
        if (strstr(web_string((client)->answer, "error"), part) == NULL)                                     \
            TEST_FAIL("the error is '%s', expected '%s' in it", web_string((client)->answer, "error"),       \
                      part);                                                                                 \
    } while (0)

#define CHECK_POST_REFUSED(client, path, body, wanted, part)                                                 \
    do {                                                                                                     \
        web_posted(client, path, body);                                                                      \
        CHECK_REFUSED(client, wanted, part);                                                                 \
    } while (0)

#endif
