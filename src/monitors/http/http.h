/* A server of pages, answers in JSON, and events for one person's browser. It knows nothing of training.
 *
 * One thread holds all connections (libmicrohttpd) and never waits for anything else: neither for a function
 * of a route nor for a browser. Functions run on two other threads, one after the other on each: rows that
 * are `quick` on one, those that may wait for a trainer on the other.
 *
 * Who may ask: programs that send "Authorization: Bearer TOKEN", and the page in a browser that opened the
 * address with the token. It got a cookie, and the page token, as "?page-token=" of its address, which it
 * sends as X-Sigma-Token with each request; the files of the page need the cookie only. Hosts and origins
 * that are not this server's own get nothing (guard.c). Internal. */
#ifndef SGM_MONITORS_HTTP_HTTP_H
#define SGM_MONITORS_HTTP_HTTP_H

#include "base/base.h"
#include <jansson.h>
#include <stdatomic.h>

typedef struct sgm__http sgm__http;

typedef struct sgm__http_request {
    const char *method; /* "GET" or "POST" */
    const char *path; /* behind a route's path that ends in '/', else ""; UTF-8, decoded, may hold slashes */
    const char *body; /* ends in an extra 0 byte; "" without one */
    size_t length;    /* of the body */
    int file; /* a route with `in_file`: the body, from its beginning, closed by the server; else -1 */
    const atomic_bool *ending; /* the server is to stop: who waits gives up */
    double asked;              /* when all of it had come: sgm__now's */
} sgm__http_request;
/* Nobody waits for the answer any more: the other side has closed its connection. On a lane's thread. */
bool sgm__http_has_left(const sgm__http_request *request);
/* The nth value of that name in the query, decoded (UTF-8); NULL: there are not so many. */
const char *sgm__http_query(const sgm__http_request *request, const char *name, size_t nth);
/* The body as a JSON object; the caller releases it. NULL: it is none. */
json_t *sgm__http_object(const sgm__http_request *request);

/* What a function fills; all zero: {}. */
typedef struct sgm__http_answer {
    int code;            /* 0: 200 */
    const char *type;    /* a string that stays; NULL: application/json */
    char *body;          /* from sgm__alloc and its like; taken */
    size_t length;       /* of the body, or of the file */
    bool is_file;        /* then the bytes are those of a file, from its beginning: */
    int descriptor;      /* taken, closed when they are sent */
    char file_name[128]; /* not "": the browser saves it under this name */
} sgm__http_answer;
/* Takes `json` over, also when it fails; NULL: as much as no memory. */
sgm_status sgm__http_answer_json(sgm__http_answer *answer, json_t *json);

/* A failure is answered as {"error": sgm_last_error()} with the code that fits its status (400, 404, 409
 * ...); what `answer` holds then is freed. */
typedef sgm_status (*sgm__http_function)(void *user, const sgm__http_request *request,
                                         sgm__http_answer *answer);
typedef struct sgm__http_route {
    const char *method; /* "GET", "POST" */
    const char *path; /* "/api/series": exactly that; "/api/checkpoint/": all below it. The longest that fits
                         is taken. */
    sgm__http_function act;
    size_t longest_body; /* of a POST; 0: 64 kB */
    const char *type;    /* of a POST's body; NULL: application/json */
    bool in_file;        /* the body is request->file, not in memory */
    bool quick;          /* never waits, for a trainer above all */
} sgm__http_route;

typedef struct sgm__http_options {
    const char *address;           /* NULL: 127.0.0.1; others than loopback only with behind_proxy */
    int port;                      /* 0: the first free one from 8080 to 8099, or any */
    const char *token;             /* at least 16 of A-Z a-z 0-9 - _; NULL: a random one */
    bool behind_proxy;             /* browsers come through a proxy that speaks TLS with them ... */
    const char *public_host;       /* ... and know it under this name, "example.org" or "example.org:8443" */
    const char *page;              /* the file of web/ that "/" shows; NULL: "index.html" */
    const sgm__http_route *routes; /* stay while the server runs */
    size_t route_count;
    void *user; /* for the routes */
    /* Before and after each function of a route, on its thread; NULL: nothing. */
    void (*enter)(const sgm__http_request *request);
    void (*leave)(void);
    double hurry; /* tests: limits of time are that many times shorter; 0: 1 */
} sgm__http_options;
/* Whether token, address and public host may be so; nothing is started. */
sgm_status sgm__http_check(const sgm__http_options *options);
/* NULL: an error says why. */
sgm__http *sgm__http_start(const sgm__http_options *options);
/* "http://127.0.0.1:8080/?token=...": opens the page by one click. */
const char *sgm__http_url(const sgm__http *server);
int sgm__http_port(const sgm__http *server);

/* To every page that listens at /api/events; any thread; never waits for a browser. A page whose queue is
 * full loses the event, and is told later how many it lost (an event "dropped"). Both texts are copied. */
void sgm__http_push(sgm__http *server, const char *event, const char *json);
size_t sgm__http_listeners(const sgm__http *server);
/* Counted since the start, over all pages. */
uint64_t sgm__http_dropped(const sgm__http *server);

/* Lets go of all browsers after a quarter of a second, in which they may read what is still in their queues.
 * True: no function of a route runs any more. False: one did not come back within five seconds; it goes on,
 * so `user` must stay. The server is gone in either case. NULL: true. */
bool sgm__http_stop(sgm__http *server);

#endif
