/* The server as its parts see it: who asks, what may be done, which runs there are.
 *
 * Two threads. The main one (mcp.c) reads lines, and answers what needs no run at once (life.c); everything
 * else is a request that waits in a queue for the worker (work.c), which takes one after the other. So a
 * question that waits for a training delays neither pings nor cancellations. Internal to `sigma mcp`. */
#ifndef SIGMA_CLI_MCP_SERVER_H
#define SIGMA_CLI_MCP_SERVER_H

#include "control/role.h"
#include "mcp/folder.h"
#include "mcp/rpc.h"

/* A request that came, until it is answered. */
typedef struct mcp_request {
    json_t *id, *method, *params; /* params: an object, which may be empty */
    bool modern;                  /* of a revision that has no handshake */
    char *by;                     /* who asks, as journals are to say it: "mcp:NAME" */
    atomic_bool cancelled;
    rpc_batch *batch; /* NULL: the answer goes out by itself */
    struct mcp_request *next;
} mcp_request;

typedef struct mcp_work {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    mcp_request *first, **last, *current; /* the queue, and what is being done */
    size_t waiting;
    bool closing;          /* nothing more will come */
    _Atomic double ending; /* a time of sgm__now at which waits are over; 0: none */
} mcp_work;

typedef struct mcp_server {
    rpc_output output;
    mcp_work work;
    sgm__role role;      /* what the client may do; only an administrator begins replays */
    const char *by;      /* the option --by; NULL: what the client calls itself */
    const char *version; /* of the handshake; NULL: there was none */
    char *client;        /* what the client called itself in the handshake; NULL */
    mcp_folder folder;
} mcp_server;

/* --- life.c --- */
/* Takes a line as it came (rpc_taker); `user` is the server. Main thread. */
void mcp_take_line(void *user, const char *text, size_t length);
/* Answers a request, which stays the caller's. */
void mcp_obey(mcp_server *server, mcp_request *request);
void mcp_request_free(mcp_request *request);

/* What a method answers: a new object, or NULL with an error, whose code is in failure->code, and what
 * programs are to know of it in failure->data (taken over, NULL: nothing). */
typedef struct mcp_failure {
    int code;
    json_t *data;
} mcp_failure;
typedef json_t *(*mcp_method)(mcp_server *server, mcp_request *request, mcp_failure *failure);
/* Fails with RPC_INVALID_PARAMETERS, or another code; returns NULL. */
json_t *mcp_refuse(mcp_failure *failure, int code, const char *format, ...) SGM_PRINTF(3, 4);

/* --- tools.c, resources.c, prompts.c: what there is to call, to read, to begin with --- */
json_t *mcp_tools_list(mcp_server *server, mcp_request *request, mcp_failure *failure);
json_t *mcp_tools_call(mcp_server *server, mcp_request *request, mcp_failure *failure);
json_t *mcp_resources_list(mcp_server *server, mcp_request *request, mcp_failure *failure);
json_t *mcp_resources_templates(mcp_server *server, mcp_request *request, mcp_failure *failure);
json_t *mcp_resources_read(mcp_server *server, mcp_request *request, mcp_failure *failure);
json_t *mcp_prompts_list(mcp_server *server, mcp_request *request, mcp_failure *failure);
json_t *mcp_prompts_get(mcp_server *server, mcp_request *request, mcp_failure *failure);

/* --- work.c --- */
sgm_status mcp_work_begin(mcp_server *server);
/* Takes the request over; false: too many wait, and the request stays the caller's. */
bool mcp_work_add(mcp_server *server, mcp_request *request);
/* The request with this id is not wanted any more. */
void mcp_work_cancel(mcp_server *server, const json_t *id);
/* Nothing more will come. What waits is still answered, but waits for trainings are over after so many
 * seconds. Returns when the thread has ended. */
void mcp_work_end(mcp_server *server, double seconds);
/* Whether the answer to a request is not wanted any more, or the server ends. */
bool mcp_is_withdrawn(const mcp_server *server, const mcp_request *request);
/* Tells how far a request has come, if it wants to hear of it. `total` 0: not known. */
void mcp_tell_progress(mcp_server *server, const mcp_request *request, double progress, double total,
                       const char *message);

#endif
