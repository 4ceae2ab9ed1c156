/* What the files of `sigma serve --openai` share: the server, and a request while it is answered. */
#ifndef SGM_CLI_OPENAI_ASKING_H
#define SGM_CLI_OPENAI_ASKING_H

#include "monitors/http/http.h"
#include "openai/openai.h"
#include "texts/texts.h"

/* Constant after the start but for what requests for texts change, which are answered one after the other. */
struct openai {
    saved *saved;
    char *name, *url, *token;
    int64_t created; /* seconds of Unix time */
    text_codec codec;
    sgm_generator *generator; /* of one text; NULL: it embeds */
    sgm_generator *several;   /* of texts side by side; NULL: no request had several yet */
    int64_t longest;          /* tokens of a text that is embedded; 0: it generates */
    int64_t vocabulary;       /* tokens of the network */
    sgm__http *http;
};

/* What a request is for; a parameter may belong to several. */
typedef enum endpoint { ENDPOINT_CHAT = 1, ENDPOINT_COMPLETION = 2, ENDPOINT_EMBEDDINGS = 4 } endpoint;

/* A request. What is wrong with it is noted in the last three. */
typedef struct asking {
    openai *server;
    const sgm__http_request *request;
    const json_t *body;
    endpoint endpoint;
    char param[80];   /* the parameter that is wrong; "": none is */
    const char *code; /* a word for programs; NULL: none */
    int status;       /* of HTTP */
} asking;

/* --- openai.c --- */
/* {"error": {"message": why, "type": ..., "param": null, "code": ...}} for a code of HTTP. */
json_t *openai_error(int status, const char *why);
int64_t unix_time(void); /* seconds */

/* --- parameters.c --- */
/* Refuses the request for a parameter, a text that is copied; returns a failure. */
sgm_status ask_refuse(asking *ask, const char *param, const char *format, ...) SGM_PRINTF(3, 4);
/* The callback of what takes long; `user` is the request. False: its client has left, or the server ends. */
bool ask_proceed(void *user);
/* A failure of the model or the machine, not of the request: it is answered with 500. Returns `status`. */
sgm_status ask_fail_inside(asking *ask, sgm_status status);
/* Reads the body, and refuses parameters that are not known, or would change the answer and are not done
 * here. */
sgm_status ask_begin(asking *ask);
/* A parameter, NULL if it is not given or null. */
const json_t *ask_value(const asking *ask, const char *name);
/* These leave *value alone if the parameter is not given. */
sgm_status ask_number(asking *ask, const char *name, double minimum, double maximum, double *value);
sgm_status ask_integer(asking *ask, const char *name, int64_t minimum, int64_t maximum, int64_t *value);
sgm_status ask_flag(asking *ask, const char *name, bool *value);

/* --- sampling.c --- */
#define MOST_STOPS 16
/* How a text is to be continued. */
typedef struct sampling_options {
    sgm_generation_options how;
    int64_t count;  /* tokens at most; 0: not given */
    bool is_seeded; /* else each text has a seed of its own */
    const char *stops[MOST_STOPS];
    size_t stop_count;
    bool streams, tells_usage; /* answers come as events; the last of them with the numbers of tokens */
} sampling_options;
sgm_status sampling_read(asking *ask, sampling_options *s);
/* A number that nobody knows before. */
sgm_status random_number(uint64_t *number);

/* --- messages.c --- */
/* The tokens of "messages", up to the beginning of the answer; the caller frees *tokens. */
sgm_status messages_read(asking *ask, sgm_tensor **tokens);

/* --- prompts.c --- */
/* The tokens of texts; all zero is none. */
typedef struct token_lists {
    sgm_tensor **items; /* int64 (count) each */
    size_t count;
} token_lists;
/* The tokens of a parameter that is a text, a list of texts, a list of tokens or a list of such lists, up to
 * `most` texts, none of them empty. What was read is freed with token_lists_free, also on failure. */
sgm_status ask_tokens(asking *ask, const char *name, size_t most, token_lists *lists);
void token_lists_free(token_lists *lists);
/* The texts of a parameter that is one or a list of them, up to `most`, none of them empty; borrowed, the
 * list is freed with sgm__free. */
sgm_status ask_texts(asking *ask, const char *name, size_t most, const char ***texts, size_t *count);

/* --- answers.c --- */
/* Continues each of the texts; `param` is the parameter that they are of. */
sgm_status answer_texts(asking *ask, const sampling_options *sampling, const char *param,
                        sgm_tensor *const *begins, size_t count, sgm__http_answer *answer);

/* --- embeddings.c --- */
sgm_status answer_embeddings(asking *ask, sgm__http_answer *answer);

#endif
