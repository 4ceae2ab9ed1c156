/* JSON-RPC 2.0 over standard input and output: a message is a line of JSON in UTF-8.
 *
 * What comes in is cut into lines of a bounded length (rpc_feed) and read with a bounded depth (rpc_parse,
 * rpc_read); what goes out is written line by line from any thread (rpc_send). Nothing here knows methods.
 * Internal to `sigma mcp`. */
#ifndef SIGMA_CLI_MCP_RPC_H
#define SIGMA_CLI_MCP_RPC_H

#include "base/base.h"
#include <jansson.h>
#include <stdatomic.h>

enum {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_UNKNOWN_METHOD = -32601,
    RPC_INVALID_PARAMETERS = -32602,
    RPC_INTERNAL_ERROR = -32603
};

/* --- in --- */
#define RPC_LONGEST_LINE ((size_t)1 << 20) /* bytes; what is longer is refused, and not kept */
#define RPC_DEEPEST 64                     /* lists and objects within each other */

/* The beginning of a line whose end has not come. Zeroed, it is empty; `line.data` is freed with
 * sgm__text_free. */
typedef struct rpc_input {
    sgm__text line;
    bool skipping; /* the line is too long: its rest is passed over */
} rpc_input;
/* Gets a complete line without its end; `text` NULL: the line was too long, or there was no memory for it. */
typedef void (*rpc_taker)(void *user, const char *text, size_t length);
/* Takes bytes as they came, and gives each line that ends in them, but for blank ones. */
void rpc_feed(rpc_input *input, const char *bytes, size_t count, rpc_taker take, void *user);

/* The JSON of a line; NULL, with an error and its code in *code: RPC_PARSE_ERROR, or RPC_INVALID_REQUEST for
 * one that is nested too deeply. */
json_t *rpc_parse(const char *text, size_t length, int *code);

typedef enum rpc_kind {
    RPC_REQUEST,
    RPC_NOTIFICATION,
    RPC_RESPONSE, /* to a request of ours; there are none */
    RPC_WRONG     /* with an error */
} rpc_kind;
/* What a message is. *id: of a request, borrowed; of a wrong one too, if it has one, else NULL. *code: of the
 * error of a wrong one. */
rpc_kind rpc_read(const json_t *message, const json_t **id, int *code);

/* --- out --- */
/* Answers that go out together, as one list, when all of them are there. */
typedef struct rpc_batch {
    json_t *answers;
    size_t open; /* answers that are still to come */
} rpc_batch;
typedef struct rpc_output {
    pthread_mutex_t lock;
    int descriptor;
    int ending;         /* another descriptor: readable when nobody is to wait for the reader any more */
    atomic_bool broken; /* nothing more can be written */
} rpc_output;
/* Writes a message, which is taken over, as one line. After a failure `broken` is set. Any thread. */
void rpc_send(rpc_output *output, json_t *message);
/* Sends an answer, or adds it to its batch (NULL: it has none); `answer` NULL: there is none to send, as
 * the request was cancelled. The last answer of a batch sends and frees it. Any thread. */
void rpc_answer(rpc_output *output, rpc_batch *batch, json_t *answer);
/* A batch that waits for so many answers; NULL: no memory. */
rpc_batch *rpc_batch_create(size_t count);

/* An answer with a result, which is taken over, or an error; `id` NULL: it is not known. `data` (taken over)
 * may be NULL. */
json_t *rpc_result(const json_t *id, json_t *result);
json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data);
/* A notification; `params` is taken over. */
json_t *rpc_notification(const char *method, json_t *params);

#endif
