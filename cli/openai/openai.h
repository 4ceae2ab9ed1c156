/* `sigma serve --openai`: a network that continues or embeds texts, under the addresses and with the fields
 * that client programs of OpenAI's API expect.
 *
 *     GET  /v1/models, /v1/models/NAME    the one model
 *     POST /v1/chat/completions           an answer in a chat, whole or as server-sent events
 *     POST /v1/completions                a text goes on, whole or as server-sent events
 *     POST /v1/embeddings                 a vector for each text
 *
 * The server is that of monitors/http/, with its rules of access and its limits. Requests for texts wait in
 * one queue and are answered one after the other. A parameter of the API that would change the answer and is
 * not done here is refused by name. */
#ifndef SGM_CLI_OPENAI_OPENAI_H
#define SGM_CLI_OPENAI_OPENAI_H

#include "config/saved.h"

typedef struct openai openai;

typedef struct openai_options {
    saved *saved;          /* loaded, for inference; must exist until openai_stop */
    const char *path;      /* what the user called it; its last part is the model's name */
    const char *tokenizer; /* the path of another tokenizer than its own; NULL: its own */
    int port;              /* 0: the first free one from 8080 on */
    const char *token;     /* NULL: a random one */
} openai_options;
/* NULL: failed, with an error, for instance that the network does neither. */
openai *openai_start(const openai_options *options);
/* Where clients find it, "http://127.0.0.1:8080/v1" (their base_url), and their api_key. */
const char *openai_url(const openai *server);
const char *openai_token(const openai *server);
/* The name of the model, and whether it embeds texts and does not continue them. */
const char *openai_model(const openai *server);
bool openai_embeds(const openai *server);
/* Ends what is being answered. False: it does not end in time; its thread still uses `saved`, which must not
 * be closed. NULL is allowed. */
bool openai_stop(openai *server);

#endif
