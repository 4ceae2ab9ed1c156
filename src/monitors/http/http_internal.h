/* What the files of the server share. Internal to this folder.
 *
 * Whatever libmicrohttpd is told, the loop's thread tells it. Other threads only put events into queues and
 * answers into a list, under `lock`, which nobody holds for longer than some pointers take, and wake the
 * loop. */
#ifndef SGM_MONITORS_HTTP_INTERNAL_H
#define SGM_MONITORS_HTTP_INTERNAL_H

#include "monitors/http/assets.h"
#include "monitors/http/http.h"
#include <microhttpd.h>
#include <netinet/in.h>

#define SGM__HTTP_TOKEN_BYTES 16 /* of a random token; twice as many letters */
#define SGM__HTTP_LISTENERS 16
#define SGM__HTTP_QUEUE 256           /* events that wait for one browser */
#define SGM__HTTP_QUEUE_BYTES 1048576 /* of those, and of one event */
#define SGM__HTTP_CONNECTIONS 64
#define SGM__HTTP_ADDRESSES 32  /* whose rates are known */
#define SGM__HTTP_PARAMETERS 64 /* of a query */
#define SGM__HTTP_USUAL_BODY 65536
#define SGM__HTTP_LONGEST_TARGET 4096 /* path and query */
#define SGM__HTTP_COOKIE_SIZE 24

/* --- connections (connections.c): loop only --- */
/* In the order in which connections go when others want to come; of one phase the oldest goes first. */
typedef enum sgm__http_phase {
    SGM__HTTP_FREE,
    SGM__HTTP_REFUSED,  /* its request was refused: the body may still come, the answer may not be read yet */
    SGM__HTTP_OPENING,  /* the headers of its request are not all there */
    SGM__HTTP_IDLE,     /* between two requests, of which the first was allowed */
    SGM__HTTP_VISITING, /* busy with a file for a browser that has shown the cookie only */
    SGM__HTTP_BUSY      /* with a request of an owner: stays */
} sgm__http_phase;

/* What a request proves. */
typedef enum sgm__http_standing {
    SGM__HTTP_STRANGER, /* nothing */
    SGM__HTTP_VISITOR,  /* the cookie, which opens the files of the page and nothing else */
    SGM__HTTP_OWNER,    /* the token, or the cookie and the page token */
    SGM__HTTP_STANDINGS
} sgm__http_standing;
typedef struct sgm__http_exchange sgm__http_exchange;
typedef struct sgm__http_connection {
    sgm__http_phase phase;
    int descriptor;
    sgm__http_exchange *exchange; /* the request that it is busy with */
    double deadline;              /* when it is cut off; 0: never */
    double since;                 /* when this phase began */
    size_t address;               /* in `rates` */
} sgm__http_connection;

typedef struct sgm__http_rate {
    unsigned char address[16];
    double left[SGM__HTTP_STANDINGS]; /* requests that may come at once, of those that were allowed by their
                                         standing; those that were refused count as of a stranger */
    double time;                      /* when that was so; 0: unused */
} sgm__http_rate;

/* --- requests (request.c) --- */
typedef struct sgm__http_parameter {
    const char *name, *value;
} sgm__http_parameter;

typedef enum sgm__http_stage {
    SGM__HTTP_HEADERS, /* are not all there yet */
    SGM__HTTP_BODY,
    SGM__HTTP_WAITING, /* in a lane's queue */
    SGM__HTTP_RUNNING, /* on a lane's thread */
    SGM__HTTP_DONE
} sgm__http_stage;

typedef struct sgm__http_listener sgm__http_listener;
struct sgm__http_exchange {
    sgm__http_request request; /* first: sgm__http_query gets the others from it */
    sgm__http *server;
    struct MHD_Connection *connection;
    sgm__http_connection *place;
    int descriptor;        /* of the connection, once a lane has it */
    sgm__http_stage stage; /* under the server's lock from WAITING to DONE */
    bool suspended;        /* loop only: waits for a lane */
    bool abandoned;        /* under the lock: its connection is gone, the lane frees it */
    char *target;          /* decoded in place */
    const char *path;      /* the whole, in target */
    sgm__http_parameter parameters[SGM__HTTP_PARAMETERS];
    size_t parameter_count;
    const sgm__http_route *route;
    char cookie[SGM__HTTP_COOKIE_SIZE]; /* its name: cookies do not tell ports apart, several servers must */
    sgm__http_standing standing;
    int refusal; /* HTTP code, 0: none */
    char why[256];
    bool allow_retry; /* of a refusal: see sgm__http_guard */
    bool unread;      /* the body: of a request that is refused */
    sgm__text body;
    sgm__http_answer answer;
    sgm_status status;
    char *error;
    sgm__http_listener *listener;
    sgm__http_exchange *next;
};

typedef struct sgm__http_lane {
    sgm__http *server;
    pthread_t thread;
    pthread_cond_t more;
    sgm__http_exchange *first, *last;
    bool made;   /* the thread, which is to be joined */
    bool acting; /* under the lock: a function runs on it */
} sgm__http_lane;

/* --- events (events.c) --- */
typedef struct sgm__http_event {
    atomic_size_t references;
    size_t length;
    char bytes[];
} sgm__http_event;
struct sgm__http_listener {
    /* under the lock */
    bool used;
    sgm__http_event *queue[SGM__HTTP_QUEUE];
    size_t first, count, bytes;
    uint64_t dropped; /* since it was told last */
    /* loop only */
    sgm__http *server;
    struct MHD_Connection *connection;
    sgm__http_event *current;
    size_t sent; /* of `current` */
    bool suspended, greeted, beat;
    double active;
};

struct sgm__http {
    sgm__http_options options;
    char token[129];
    char cookie_token[2 * SGM__HTTP_TOKEN_BYTES + 1]; /* the cookie's value, and ... */
    char page_token[2 * SGM__HTTP_TOKEN_BYTES + 1];   /* ... the other half: see guard.c */
    char *url, *public_host;
    const sgm__asset *page;
    int port, listener, wake, epoll;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    atomic_bool ending;
    atomic_size_t listeners;
    atomic_uint_least64_t dropped;
    atomic_size_t users; /* who holds this struct: the owner and each lane */
    sgm__http_connection connections[SGM__HTTP_CONNECTIONS];
    sgm__http_rate rates[SGM__HTTP_ADDRESSES];
    size_t adding; /* the place in `connections` that a new connection gets */

    pthread_mutex_t lock;
    pthread_cond_t left; /* a function has come back */
    sgm__http_lane lanes[2];
    sgm__http_exchange *done; /* to be answered */
    sgm__http_listener listener_places[SGM__HTTP_LISTENERS];
};

void sgm__http_wake(sgm__http *server);
void sgm__http_release(sgm__http *server); /* one of its users goes */

/* guard.c */
sgm_status sgm__http_random_token(char *text); /* 2 * SGM__HTTP_TOKEN_BYTES letters and a 0 */
/* Sets the exchange's standing, and its refusal if whoever asks may not. */
void sgm__http_guard(sgm__http_exchange *exchange);
/* The page token stands in the address, as it does right after the welcome. */
bool sgm__http_has_page_token(const sgm__http_exchange *exchange);

/* headers.c */
bool sgm__http_header(const sgm__http_exchange *exchange, const char *name,
                      const char **value); /* false: twice */
bool sgm__http_last_header(const sgm__http_exchange *exchange, const char *name,
                           const char **value); /* the last of that name; false: there is none */

/* forwarded.c: what a proxy says; false without one that is believed, and without a word of it */
bool sgm__http_forwarded_host(const sgm__http_exchange *exchange, char *host, size_t room);
bool sgm__http_forwarded_plain(const sgm__http_exchange *exchange); /* the browser came without TLS */
/* The client's address, as in sgm__http_rate. */
bool sgm__http_forwarded_for(const sgm__http_exchange *exchange, unsigned char key[16]);

/* connections.c */
void sgm__http_accept(sgm__http *server);
void sgm__http_cut_late(sgm__http *server);
void sgm__http_on_connection(void *user, struct MHD_Connection *connection, void **place,
                             enum MHD_ConnectionNotificationCode code);
void sgm__http_phase_set(const sgm__http *server, sgm__http_connection *place, sgm__http_phase phase,
                         double seconds); /* 0: without an end */
/* What a connection is in while it is busy with that request. */
sgm__http_phase sgm__http_busy_phase(const sgm__http_exchange *exchange);
/* The place of an address in `rates`. */
size_t sgm__http_rate_of(sgm__http *server, const unsigned char address[16]);
/* False: this address has asked too often. */
bool sgm__http_rate_allows(sgm__http *server, size_t address, sgm__http_standing standing);

/* request.c, respond.c, target.c */
void *sgm__http_on_target(void *user, const char *target, struct MHD_Connection *connection);
enum MHD_Result sgm__http_on_request(void *user, struct MHD_Connection *connection, const char *url,
                                     const char *method, const char *version, const char *data, size_t *size,
                                     void **state);
void sgm__http_on_completed(void *user, struct MHD_Connection *connection, void **state,
                            enum MHD_RequestTerminationCode code);
void sgm__http_exchange_free(sgm__http_exchange *exchange);
/* Cuts and decodes exchange->target; refuses what is no plain path. */
void sgm__http_target_read(sgm__http_exchange *exchange);
/* The refusal of an exchange, which stays as it was if there was one. */
void sgm__http_refuse(sgm__http_exchange *exchange, int code, const char *format, ...) SGM_PRINTF(3, 4);
enum MHD_Result sgm__http_respond_refusal(sgm__http_exchange *exchange);
enum MHD_Result sgm__http_respond_answer(sgm__http_exchange *exchange);
enum MHD_Result sgm__http_respond_asset(sgm__http_exchange *exchange, const sgm__asset *asset);
enum MHD_Result sgm__http_respond_page(sgm__http_exchange *exchange);
/* The cookie, and on to "/" with the page token. */
enum MHD_Result sgm__http_respond_welcome(sgm__http_exchange *exchange);
/* On to "/". */
enum MHD_Result sgm__http_respond_elsewhere(sgm__http_exchange *exchange);
enum MHD_Result sgm__http_respond(sgm__http_exchange *exchange, int code, struct MHD_Response *response);

/* body.c: a refusal if the body cannot be kept */
void sgm__http_body_open(sgm__http_exchange *exchange, size_t length);
void sgm__http_body_append(sgm__http_exchange *exchange, const char *bytes, size_t length);
void sgm__http_body_finish(sgm__http_exchange *exchange);
void sgm__http_body_free(sgm__http_exchange *exchange);

/* lanes.c */
sgm_status sgm__http_lanes_start(sgm__http *server);
void sgm__http_lanes_take(sgm__http *server, sgm__http_exchange *exchange);
/* Loop: what was done goes on its way. */
void sgm__http_lanes_deliver(sgm__http *server);
bool sgm__http_lanes_stop(sgm__http *server);
/* Loop, at the end: those that wait are answered with 503. */
void sgm__http_lanes_clear(sgm__http *server);

/* events.c */
enum MHD_Result sgm__http_events_open(sgm__http_exchange *exchange);
void sgm__http_events_close(sgm__http_listener *listener);
void sgm__http_events_deliver(sgm__http *server, bool all);
bool sgm__http_events_wait(sgm__http *server); /* some queue still holds events */

#endif
