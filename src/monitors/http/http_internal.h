/* What the files of the server share. Internal to this folder.
 *
 * Threads: while the server runs, only the loop's thread calls libmicrohttpd. Other threads put
 * events into queues and answers into a list, under `lock`, and wake the loop through an eventfd; `lock`
 * is never held for longer than it takes to move some pointers. Where a member says "loop only", no lock
 * guards it. */
#ifndef SGM_MONITORS_HTTP_INTERNAL_H
#define SGM_MONITORS_HTTP_INTERNAL_H

#include "monitors/http/assets.h"
#include "monitors/http/http.h"
#include <microhttpd.h>
#include <netinet/in.h>

#define SGM__HTTP_TOKEN_BYTES 16 /* of a random token; its text has twice as many characters */
/* Limits of memory: pages that listen at once, events that wait for one page, and their bytes (which also
 * limit a single event, and what waits of an answer that is sent in parts), connections, client addresses
 * whose rates are known, parameters of a query. */
#define SGM__HTTP_LISTENERS 16
#define SGM__HTTP_QUEUE 256
#define SGM__HTTP_QUEUE_BYTES 1048576
#define SGM__HTTP_CONNECTIONS 64
#define SGM__HTTP_ADDRESSES 32
#define SGM__HTTP_PARAMETERS 64
#define SGM__HTTP_DEFAULT_BODY 65536
#define SGM__HTTP_ANSWER_SECONDS 30.0 /* to read an answer; longer ones get more */
/* What an IPv4 address has before it where there is room for one of IPv6 (RFC 4291, section 2.5.5.2). */
#define SGM__HTTP_FOUR "\0\0\0\0\0\0\0\0\0\0\xff\xff"
#define SGM__HTTP_FOUR_LENGTH 12
/* Bytes of path and query. */
#define SGM__HTTP_LONGEST_TARGET 4096
#define SGM__HTTP_COOKIE_SIZE 24
#define SGM__HTTP_TOKENS 32 /* of one server */
#define SGM__HTTP_LONGEST_TOKEN 128
#define SGM__HTTP_NAME_SIZE 41

/* --- connections (connections.c): loop only --- */
/* What a connection is doing. When all places are taken and another client wants one, the connection with
 * the smallest phase is closed; of several, the one that has been in its phase for longest. */
typedef enum sgm__http_phase {
    SGM__HTTP_FREE,
    /* A request was refused; its body may still come, and the answer may not be read yet. */
    SGM__HTTP_REFUSED,
    SGM__HTTP_OPENING,  /* the headers of a request have not come completely */
    SGM__HTTP_IDLE,     /* between two requests, of which the first was allowed */
    SGM__HTTP_VISITING, /* busy with a file for a browser that has shown the cookie only */
    SGM__HTTP_BUSY      /* busy with a request of an owner; is never closed for others */
} sgm__http_phase;

/* What the sender of a request has proved; see guard.c. */
typedef enum sgm__http_standing {
    SGM__HTTP_STRANGER, /* has proved nothing */
    SGM__HTTP_VISITOR,  /* the cookie, which opens the files of the page and nothing else */
    SGM__HTTP_OWNER,    /* the token, or the cookie and the page token */
    SGM__HTTP_STANDINGS
} sgm__http_standing;
typedef struct sgm__http_exchange sgm__http_exchange;
/* One of the places for connections; loop only. */
typedef struct sgm__http_connection {
    sgm__http_phase phase;
    int descriptor;
    sgm__http_exchange *exchange; /* the current request; NULL: none */
    double deadline;              /* sgm__now() when the connection is cut; 0: never */
    double since;                 /* sgm__now() when this phase began */
    size_t address;               /* index into `rates` */
} sgm__http_connection;

/* How many requests one address may still send: a token bucket for each standing. Requests that are
 * refused count as those of a stranger. */
typedef struct sgm__http_rate {
    unsigned char address[16]; /* IPv6, or IPv4 behind SGM__HTTP_FOUR */
    /* Requests that may come at once, as of `time`. */
    double left[SGM__HTTP_STANDINGS];
    double time; /* sgm__now() at the newest request; 0: unused */
} sgm__http_rate;

/* --- tokens (tokens.c) --- */
typedef struct sgm__http_token {
    char text[SGM__HTTP_LONGEST_TOKEN + 1];
    char page[2 * SGM__HTTP_TOKEN_BYTES + 1]; /* the other half of a browser's proof, see guard.c */
    char name[SGM__HTTP_NAME_SIZE];           /* of who has it; "": none was given */
    sgm__role role;
    sgm__rate changes;
} sgm__http_token;

/* --- requests (request.c) --- */
typedef struct sgm__http_parameter {
    const char *name, *value;
} sgm__http_parameter;

/* How far a request has come. */
typedef enum sgm__http_stage {
    SGM__HTTP_HEADERS, /* the headers have not come completely */
    SGM__HTTP_BODY,
    SGM__HTTP_WAITING, /* in a lane's queue */
    SGM__HTTP_RUNNING, /* on a lane's thread */
    SGM__HTTP_DONE     /* the function has returned, its answer is to be sent */
} sgm__http_stage;

/* An answer that is sent while its function runs (stream.c); under the lock. */
typedef struct sgm__http_stream {
    const char *type;  /* media type; NULL: nothing was sent, the answer comes as a whole */
    sgm__text waiting; /* what libmicrohttpd has not taken yet */
    bool cut;          /* the client has left too much unread */
} sgm__http_stream;

typedef struct sgm__http_listener sgm__http_listener;
/* A request and its answer. Belongs to the loop, except in the stages WAITING and RUNNING, in which a lane
 * has it and the connection is suspended. */
struct sgm__http_exchange {
    /* The first member: functions of routes are given a pointer to it. */
    sgm__http_request request;
    sgm__http *server;
    struct MHD_Connection *connection;
    sgm__http_connection *place;
    int descriptor;        /* of the connection, for the lane: `place` is the loop's */
    sgm__http_stage stage; /* under the lock from WAITING to DONE */
    bool suspended;        /* loop only: the connection waits for a lane */
    bool abandoned;        /* under the lock: the connection is gone, the lane frees the exchange */
    char *target;          /* path and query, decoded in place; `path` and the parameters point into it */
    /* The whole path. */
    const char *path;
    sgm__http_parameter parameters[SGM__HTTP_PARAMETERS];
    size_t parameter_count;
    json_t *object; /* the body, once sgm__http_object has parsed it; NULL after the function */
    /* The cookie's name for this request, see name_cookie in guard.c. */
    char cookie[SGM__HTTP_COOKIE_SIZE];
    sgm__http_standing standing;
    sgm__http_token *token; /* of an owner; else NULL */
    int refusal;            /* HTTP code with which the request is refused; 0: it is not */
    char why[256];          /* text of the refusal */
    bool allow_retry;       /* the refusal's page asks again, see error_page in respond.c */
    bool unread;            /* the body of a refused request is too long to be read to its end */
    sgm__text body;
    sgm__http_answer answer;
    sgm__http_stream stream;
    sgm_status status;
    char *error; /* message of a function that has failed */
    sgm__http_listener *listener;
    sgm__http_exchange *next; /* in a lane's queue or in the list `done` */
};

/* A thread that runs functions of routes, and the queue of requests for it; all under the lock. */
typedef struct sgm__http_lane {
    sgm__http *server;
    pthread_t thread;
    pthread_cond_t more;
    sgm__http_exchange *first, *last;
    bool made;   /* the thread exists and is to be joined */
    bool acting; /* a function is running */
} sgm__http_lane;

/* --- events (events.c) --- */
/* The text of an event, shared by the queues of all listeners. */
typedef struct sgm__http_event {
    atomic_size_t references;
    size_t length;
    char bytes[];
} sgm__http_event;
/* A browser that listens for events. The first members are under the lock: a ring of events that wait. */
struct sgm__http_listener {
    bool used; /* the place is taken */
    sgm__http_event *queue[SGM__HTTP_QUEUE];
    /* Index of the oldest event, number of events, sum of their lengths. */
    size_t first, count, bytes;
    /* Lost events of which the browser was not told yet, and how many that wait came before them. */
    uint64_t dropped;
    size_t before;
    /* From here on loop only. */
    sgm__http *server;
    struct MHD_Connection *connection;
    sgm__http_event *current; /* the event that is being sent */
    size_t sent;              /* bytes of `current` that were handed to libmicrohttpd */
    /* The connection waits for events; the first text was sent; a heartbeat is due. */
    bool suspended, greeted, beat;
    double active; /* sgm__now() when something was last sent */
};

/* The server. `options` to `epoll` do not change after the start. */
struct sgm__http {
    sgm__http_options options;
    sgm__http_token tokens[SGM__HTTP_TOKENS]; /* the first is that of the printed address */
    size_t token_count;
    char cookie_token[2 * SGM__HTTP_TOKEN_BYTES + 1]; /* the cookie's value */
    char *url, *public_host;
    const sgm__asset *page; /* what "/" shows; NULL: there are no pages */
    /* The port, and descriptors: listening socket, eventfd that wakes the loop, libmicrohttpd's epoll. */
    int port, listener, wake, epoll;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    atomic_bool ending; /* the server is to stop */
    atomic_size_t listeners;
    atomic_uint_least64_t dropped;
    atomic_size_t users; /* references to this struct: the owner's and each lane's */
    sgm__http_connection connections[SGM__HTTP_CONNECTIONS];
    sgm__http_rate rates[SGM__HTTP_ADDRESSES];
    /* Index in `connections` of the connection that is being added to libmicrohttpd. */
    size_t adding;

    pthread_mutex_t lock;
    pthread_cond_t left;      /* a function of a route has returned */
    sgm__http_lane lanes[2];  /* for quick functions, for all others */
    sgm__http_exchange *done; /* answered requests on their way back to the loop */
    sgm__http_listener listener_places[SGM__HTTP_LISTENERS];
};

/* Makes the loop look for answers and events; any thread. */
void sgm__http_wake(sgm__http *server);
/* Drops one reference to the server; the last one frees it. */
void sgm__http_release(sgm__http *server);

/* --- guard.c --- */
/* Sets the standing of a request, and a refusal if the sender may not ask this. */
void sgm__http_guard(sgm__http_exchange *exchange);
/* The token whose page token stands in the address, where the welcome has put it; NULL: none does. */
const sgm__http_token *sgm__http_page_token(const sgm__http_exchange *exchange);

/* --- tokens.c --- */
/* Fills `text` with 2 * SGM__HTTP_TOKEN_BYTES hexadecimal characters and a 0. */
sgm_status sgm__http_random_token(char *text);
sgm_status sgm__http_check_token(const char *token);
/* Appends the tokens of a text to the first `count` of SGM__HTTP_TOKENS; errors name the line. */
sgm_status sgm__http_tokens_read(const char *text, sgm__http_token *tokens, size_t *count);
sgm_status sgm__http_tokens_make(sgm__http *server);
void sgm__http_tokens_free(sgm__http *server);
/* Compares in constant time for a given length; the length is no secret. */
bool sgm__http_is_same(const char *given, const char *right);
/* The token that was sent, or with `page` whose page token was; NULL: it is none. */
sgm__http_token *sgm__http_token_find(sgm__http *server, const char *given, bool page);

/* --- headers.c --- */
/* The value of a header, NULL if there is none. False: the header is there more than once. */
bool sgm__http_header(const sgm__http_exchange *exchange, const char *name, const char **value);
/* The value of the last header of that name; false: there is none. */
bool sgm__http_last_header(const sgm__http_exchange *exchange, const char *name, const char **value);

/* --- forwarded.c --- */
/* What a trusted proxy says of a request. All return false without such a proxy, and if its
 * header is missing. Here: the host that the browser asked for. */
bool sgm__http_forwarded_host(const sgm__http_exchange *exchange, char *host, size_t room);
/* The browser has come without TLS. */
bool sgm__http_forwarded_plain(const sgm__http_exchange *exchange);
/* The client's address, in the form of sgm__http_rate. */
bool sgm__http_forwarded_for(const sgm__http_exchange *exchange, unsigned char key[16]);

/* --- connections.c --- */
/* Accepts all clients that wait at the listening socket. */
void sgm__http_accept(sgm__http *server);
/* Closes connections whose deadline has passed. */
void sgm__http_cut_late(sgm__http *server);
void sgm__http_on_connection(void *user, struct MHD_Connection *connection, void **place,
                             enum MHD_ConnectionNotificationCode code);
/* Enters a phase that may last so many seconds; 0: without a limit. */
void sgm__http_phase_set(const sgm__http *server, sgm__http_connection *place, sgm__http_phase phase,
                         double seconds);
/* The phase of a connection while it is busy with this request. */
sgm__http_phase sgm__http_busy_phase(const sgm__http_exchange *exchange);
/* The index of an address in `rates`, which is added if it is new. */
size_t sgm__http_rate_of(sgm__http *server, const unsigned char address[16]);
/* Counts a request; false: this address has asked too often. */
bool sgm__http_rate_allows(sgm__http *server, size_t address, sgm__http_standing standing);

/* --- request.c, respond.c, target.c --- */
/* Callbacks of libmicrohttpd: the first line has come; headers or body have come, or a suspended
 * connection goes on; a request is over. */
void *sgm__http_on_target(void *user, const char *target, struct MHD_Connection *connection);
enum MHD_Result sgm__http_on_request(void *user, struct MHD_Connection *connection, const char *url,
                                     const char *method, const char *version, const char *data, size_t *size,
                                     void **state);
void sgm__http_on_completed(void *user, struct MHD_Connection *connection, void **state,
                            enum MHD_RequestTerminationCode code);
void sgm__http_exchange_free(sgm__http_exchange *exchange);
/* Splits and decodes exchange->target; refuses everything that is no plain path. */
void sgm__http_target_read(sgm__http_exchange *exchange);
/* Refuses a request with an HTTP code and a text. The first refusal stays. */
void sgm__http_refuse(sgm__http_exchange *exchange, int code, const char *format, ...) SGM_PRINTF(3, 4);
enum MHD_Result sgm__http_respond_refusal(sgm__http_exchange *exchange);
enum MHD_Result sgm__http_respond_answer(sgm__http_exchange *exchange);
enum MHD_Result sgm__http_respond_asset(sgm__http_exchange *exchange, const sgm__asset *asset);
enum MHD_Result sgm__http_respond_page(sgm__http_exchange *exchange);
/* Sets the cookie and redirects to "/" with the page token. */
enum MHD_Result sgm__http_respond_welcome(sgm__http_exchange *exchange);
/* Redirects to "/". */
enum MHD_Result sgm__http_respond_elsewhere(sgm__http_exchange *exchange);
enum MHD_Result sgm__http_respond(sgm__http_exchange *exchange, int code, struct MHD_Response *response);

/* --- body.c --- */
/* Each refuses the request if the body cannot be kept. */
void sgm__http_body_open(sgm__http_exchange *exchange, size_t length);
void sgm__http_body_append(sgm__http_exchange *exchange, const char *bytes, size_t length);
void sgm__http_body_finish(sgm__http_exchange *exchange);
void sgm__http_body_free(sgm__http_exchange *exchange);

/* --- lanes.c --- */
sgm_status sgm__http_lanes_start(sgm__http *server);
void sgm__http_lanes_take(sgm__http *server, sgm__http_exchange *exchange);
/* Loop: resumes the connections whose functions have returned. */
void sgm__http_lanes_deliver(sgm__http *server);
bool sgm__http_lanes_stop(sgm__http *server);
/* Loop, at the end: requests that still wait for a lane are answered with 503. */
void sgm__http_lanes_clear(sgm__http *server);

/* --- stream.c: loop only --- */
/* Whether the function of a request has sent a part of its answer. */
bool sgm__http_stream_has_begun(sgm__http_exchange *exchange);
/* Answers with what the function sends, and has sent. */
enum MHD_Result sgm__http_stream_open(sgm__http_exchange *exchange);
/* Resumes the connections whose functions have sent something. */
void sgm__http_streams_deliver(sgm__http *server);

/* --- events.c --- */
/* Begins the stream of events to a browser. */
enum MHD_Result sgm__http_events_open(sgm__http_exchange *exchange);
void sgm__http_events_close(sgm__http_listener *listener);
/* Loop: resumes listeners that have events, are due a heartbeat, or (`all`) every one. */
void sgm__http_events_deliver(sgm__http *server, bool all);
/* Whether any queue still holds events. */
bool sgm__http_events_wait(sgm__http *server);

#endif
