/* An HTTP server for pages, answers in JSON, and events, meant for one person's browser. It knows nothing of
 * training.
 *
 * A program of the library (web/web.c, serve/serve.c, runs/runs.c) starts one server with a table of routes;
 * a route's function fills an answer. Everything else is done here: who may ask (guard.c), how long anything
 * may take (connections.c), the files of the page (assets.c), events to browsers (events.c).
 *
 * Threads: one thread, the loop, holds all connections (libmicrohttpd) and never waits, neither for a
 * function of a route nor for a browser. Functions run on two other threads, called lanes, one after the
 * other on each: routes that are `quick` on one lane, those that may wait for a trainer on the other.
 *
 * Who may ask: programs that send "Authorization: Bearer TOKEN", and the page in a browser that has opened
 * the address with the token. A token has a role (control/role.h), and a route the role that it needs. That
 * browser has got a cookie, and the page token, as "?page-token=" in its address; the page sends the latter
 * as X-Sigma-Token with each request. The files of the page need the cookie only. Internal. */
#ifndef SGM_MONITORS_HTTP_HTTP_H
#define SGM_MONITORS_HTTP_HTTP_H

#include "control/rate.h"
#include "control/role.h"
#include <jansson.h>
#include <stdatomic.h>

typedef struct sgm__http sgm__http;

typedef struct sgm__http_route sgm__http_route;
/* A request as the function of a route sees it; valid until the function returns. */
typedef struct sgm__http_request {
    const sgm__http_route *route; /* NULL: there is none, and so no function sees it */
    const char *method;           /* "GET" or "POST" */
    /* For a route whose path ends in '/': what follows that path, decoded UTF-8, possibly with slashes;
     * else "". */
    const char *path;
    const char *body; /* followed by a 0 byte; "" if there is none, and with `in_file` */
    size_t length;    /* of the body */
    char type[160];   /* media type of a POST's body with its parameters, as sent */
    /* For a route with `in_file`: an open file with the body, at its beginning; the server closes it. Else
     * -1. */
    int file;
    const atomic_bool *ending; /* the server stops: a function that waits must give up */
    double asked;              /* sgm__now() when the request had come completely */
    sgm__role role;            /* of the token that it came with */
    const char *name;          /* of who has that token; "": it has none */
    sgm__rate *changes;        /* how often changes may come with that token */
} sgm__http_request;
/* Whether the other side has closed its connection, so that nobody waits for the answer. On a lane's
 * thread. */
bool sgm__http_has_left(const sgm__http_request *request);
/* Decoded value number `nth` (from 0) of that name in the query; NULL: there are not so many. */
const char *sgm__http_query(const sgm__http_request *request, const char *name, size_t nth);
/* The body as a JSON object, which the server releases when the function has returned. NULL, with an error:
 * it is none. */
json_t *sgm__http_object(const sgm__http_request *request);

/* What a route's function fills in. All zero is the answer {} with code 200. The server frees and closes
 * what is in here, also when the function fails. */
typedef struct sgm__http_answer {
    int code;            /* of HTTP; 0: 200 */
    const char *type;    /* media type, a text that stays; NULL: application/json */
    char *body;          /* from sgm__alloc, sgm__strdup or a sgm__text; the server frees it */
    size_t length;       /* of the body, or of the file */
    bool is_file;        /* the answer is the first `length` bytes of `descriptor` */
    int descriptor;      /* closed by the server when the bytes are sent */
    char file_name[128]; /* not "": the browser saves the answer under this name */
} sgm__http_answer;
/* Makes `json` the body. Takes the reference, also on failure. NULL counts as a lack of memory. */
sgm_status sgm__http_answer_json(sgm__http_answer *answer, json_t *json);

/* Sends a part of the answer while the function runs, with code 200 and a media type, a text that stays and
 * is the same for all parts. The bytes are copied; it never waits for the client. Once something was sent
 * `answer` is ignored, and after a failure of the function the answer ends without the mark of its end.
 * False: nobody reads any more, or much too slowly, or there is no memory; the function should return. */
bool sgm__http_send(const sgm__http_request *request, const char *type, const char *bytes, size_t length);

/* The function of a route. After a failure the server answers {"error": sgm_last_error()} with the code
 * that belongs to the status (400, 404, 409 ...) and ignores what `answer` holds. */
typedef sgm_status (*sgm__http_function)(void *user, const sgm__http_request *request,
                                         sgm__http_answer *answer);
struct sgm__http_route {
    const char *method; /* "GET", "POST" */
    /* "/api/series": exactly this path; "/api/checkpoint/", with a slash at the end: every path below it. Of
     * several routes that fit, the longest counts. */
    const char *path;
    sgm__http_function act;
    /* For an `act` that several routes have: what it calls, as it chooses. NULL: nothing. */
    sgm__http_function action;
    size_t longest_body; /* limit of a POST's body in bytes; 0: 64 kB */
    /* Media types that a POST's body may have, with blanks between them; NULL: application/json. */
    const char *type;
    bool in_file; /* the body is request->file, not in memory */
    bool quick;   /* the function never waits, above all not for a trainer */
    /* Which role a token needs for it; above "look", requests count as changes, which are limited. */
    sgm__role role;
};

typedef struct sgm__http_options {
    const char *address;       /* NULL: 127.0.0.1; others than loopback only with behind_proxy */
    int port;                  /* 0: the first free port from 8080 to 8099, or any */
    const char *token;         /* at least 16 of A-Z a-z 0-9 - _; NULL: a random token */
    const char *tokens;        /* further ones: lines "ROLE TOKEN [NAME]"; NULL: none */
    double changes_per_second; /* for each token; 0: SGM__RATE_DEFAULT, less: any number */
    bool behind_proxy;         /* browsers come through a proxy that speaks TLS with them ... */
    const char *public_host;   /* ... and know it under this name, "example.org" or "example.org:8443" */
    const char *page;          /* the file of web/ that "/" shows; NULL: "index.html"; "": no pages */
    /* The body of an answer with this HTTP code, of a request that was refused or has failed; `why` is UTF-8.
     * NULL: {"error": why}. */
    json_t *(*error)(int code, const char *why);
    const sgm__http_route *routes; /* remain valid while the server runs */
    size_t route_count;
    void *user; /* first argument of routes' functions */
    /* Called before and after each function of a route, on its thread; NULL: nothing is called. */
    void (*enter)(const sgm__http_request *request);
    void (*leave)(void);
    double hurry; /* for tests: all time limits are divided by this; 0: 1 */
} sgm__http_options;
/* Checks lines of tokens, as options.tokens has them; the error names the line. */
sgm_status sgm__http_tokens_check(const char *text);
/* Checks token, address and public host without starting anything. */
sgm_status sgm__http_check(const sgm__http_options *options);
/* NULL: failed, with an error. */
sgm__http *sgm__http_start(const sgm__http_options *options);
/* The address that opens the page: "http://127.0.0.1:8080/?token=...". */
const char *sgm__http_url(const sgm__http *server);
int sgm__http_port(const sgm__http *server);

/* Sends an event to every page that listens at /api/events; both texts are copied. Any thread; never waits
 * for a browser. A page whose queue is full loses the event, and later gets an event "dropped" with the
 * number of lost ones. */
void sgm__http_push(sgm__http *server, const char *event, const char *json);
/* How many pages listen for events now. */
size_t sgm__http_listeners(const sgm__http *server);
/* How many events were lost since the start, over all pages. */
uint64_t sgm__http_dropped(const sgm__http *server);

/* Stops the server. Browsers get a quarter of a second to read what is in their queues. True: no function
 * of a route runs any more. False: one has not returned within five seconds and goes on running, so `user`
 * must stay valid for ever. The server is gone in either case. NULL: true. */
bool sgm__http_stop(sgm__http *server);

#endif
