/* The server: its model, its routes, and errors as the API has them. */
#include "openai/openai.h"
#include "openai/asking.h"

#include <stdlib.h>
#include <time.h>

#define MOST_PROMPTS 128
#define LONGEST_BODY ((size_t)8 << 20)

int64_t unix_time(void)
{
    return (int64_t)time(NULL);
}

/* --- errors --- */

static const char *type_of(int status)
{
    return status == 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
}

static json_t *error_object(int status, const char *why, const char *param, const char *code)
{
    return json_pack("{s:{s:s, s:s, s:s?, s:s?}}", "error", "message", why, "type", type_of(status), "param",
                     param, "code", code);
}

json_t *openai_error(int status, const char *why)
{
    return error_object(status, why, NULL, status == 401 ? "invalid_api_key" : NULL);
}

/* Answers a request that `act` has served. A failure with a status of its own is answered here, others by the
 * server, with openai_error. */
static sgm_status answer_with(sgm_status (*act)(asking *ask, sgm__http_answer *answer), asking *ask,
                              sgm__http_answer *answer)
{
    double begun = sgm__now();
    sgm_status status = sgm__http_has_left(ask->request)
                            ? sgm_fail(SGM_ERROR_INTERRUPTED, "the client has left while its request waited")
                            : ask_begin(ask);
    if (status == SGM_OK)
        status = act(ask, answer);
    if (status == SGM_OK) {
        sgm_log_message(SGM_LOG_DEBUG, "serve", "answered %s in %.3f s", ask->request->route->path,
                        sgm__now() - begun);
        return SGM_OK;
    }
    sgm_log_message(SGM_LOG_DEBUG, "serve", "refused %s: %s", ask->request->route->path, sgm_last_error());
    if (ask->status == 0)
        return status;
    const char *param = ask->param[0] != '\0' ? ask->param : NULL;
    answer->code = ask->status;
    return sgm__http_answer_json(answer, error_object(ask->status, sgm_last_error(), param, ask->code));
}

/* --- routes --- */

static sgm_status check_generates(asking *ask, const char *param)
{
    return ask->server->generator != NULL
               ? SGM_OK
               : ask_refuse(ask, param,
                            "this model embeds texts, by /v1/embeddings; it does not continue them");
}

static sgm_status act_chat(asking *ask, sgm__http_answer *answer)
{
    sampling_options sampling;
    sgm_tensor *begin = NULL;
    SGM_TRY(check_generates(ask, "messages"));
    SGM_TRY(sampling_read(ask, &sampling));
    SGM_TRY(messages_read(ask, &begin));
    sgm_status status = answer_texts(ask, &sampling, "messages", &begin, 1, answer);
    sgm_tensor_free(begin);
    return status;
}

static sgm_status act_complete(asking *ask, sgm__http_answer *answer)
{
    sampling_options sampling;
    token_lists prompts = {0};
    SGM_TRY(check_generates(ask, "prompt"));
    SGM_TRY(sampling_read(ask, &sampling));
    sgm_status status = ask_tokens(ask, "prompt", MOST_PROMPTS, &prompts);
    if (status == SGM_OK)
        status = answer_texts(ask, &sampling, "prompt", prompts.items, prompts.count, answer);
    token_lists_free(&prompts);
    return status;
}

static sgm_status act_embed(asking *ask, sgm__http_answer *answer)
{
    return openai_embeds(ask->server)
               ? answer_embeddings(ask, answer)
               : ask_refuse(ask, "input", "this model continues texts; it gives no embeddings");
}

static sgm_status chat(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    return answer_with(act_chat, &(asking){.server = user, .request = request, .endpoint = ENDPOINT_CHAT},
                       answer);
}

static sgm_status complete(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    return answer_with(
        act_complete, &(asking){.server = user, .request = request, .endpoint = ENDPOINT_COMPLETION}, answer);
}

static sgm_status embed(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    return answer_with(
        act_embed, &(asking){.server = user, .request = request, .endpoint = ENDPOINT_EMBEDDINGS}, answer);
}

static json_t *model_object(const openai *server)
{
    return json_pack("{s:s, s:s, s:I, s:s}", "id", server->name, "object", "model", "created",
                     (json_int_t)server->created, "owned_by", "sigma");
}

static sgm_status list_models(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)request;
    return sgm__http_answer_json(answer,
                                 json_pack("{s:s, s:[o]}", "object", "list", "data", model_object(user)));
}

static sgm_status describe_model(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    const openai *server = user;
    if (strcmp(request->path, server->name) == 0)
        return sgm__http_answer_json(answer, model_object(server));
    return sgm_fail(SGM_ERROR_NOT_FOUND, "there is no such model here; the model is '%s'", server->name);
}

static const sgm__http_route routes[] = {
    {"GET", "/v1/models", .act = list_models, .quick = true},
    {"GET", "/v1/models/", .act = describe_model, .quick = true},
    {"POST", "/v1/chat/completions", .act = chat, .longest_body = LONGEST_BODY},
    {"POST", "/v1/completions", .act = complete, .longest_body = LONGEST_BODY},
    {"POST", "/v1/embeddings", .act = embed, .longest_body = LONGEST_BODY},
};

/* --- beginning and end --- */

/* The last part of the path; of "." that of the folder. */
static char *name_of(const char *path)
{
    char *whole = realpath(path, NULL);
    const char *slash = strrchr(whole != NULL ? whole : path, '/');
    char *name = sgm__strdup(slash != NULL && slash[1] != '\0' ? slash + 1 : "model");
    free(whole);
    return name != NULL ? sgm__make_printable(name) : NULL;
}

/* Whether the model is one of others that embeds texts, and how many tokens of them. */
static sgm_status look_at_model(openai *server)
{
    char *path = saved_model(server->saved);
    if (path == NULL)
        return SGM_OK;
    sgm_pretrained *model = sgm_pretrained_open(path);
    const sgm_pretrained_info *info = model != NULL ? sgm_pretrained_describe(model) : NULL;
    if (info != NULL && strcmp(info->task, "embed") == 0) {
        server->longest = info->context;
        server->vocabulary = info->tokens;
    }
    sgm_pretrained_free(model);
    sgm__free(path);
    return info != NULL ? SGM_OK : sgm__last_failure();
}

/* Of a model that embeds texts this is not asked. */
static sgm_status check_purpose(const char *path)
{
    const char *purpose = purpose_of(path);
    return purpose_is_to_continue(purpose)
               ? SGM_OK
               : sgm_fail(
                     SGM_ERROR_UNSUPPORTED,
                     "--openai: '%s' neither continues texts nor makes vectors of them, it %s: use 'sigma "
                     "serve' without --openai, or 'sigma predict'",
                     path, purpose);
}

static sgm_status open_model(openai *server, const char *path, const char *tokenizer)
{
    SGM_TRY(look_at_model(server));
    if (server->longest == 0)
        SGM_TRY(check_purpose(path));
    SGM_TRY(text_codec_open(&server->codec, server->saved, tokenizer));
    if (server->longest > 0)
        return server->codec.others != NULL
                   ? SGM_OK
                   : sgm_fail(SGM_ERROR_ARGUMENT, "--tokenizer: the model takes the tokens of one of others");
    server->generator = sgm_generator_create(server->saved->trainer);
    server->vocabulary = sgm_generator_vocabulary(server->generator);
    if (server->generator == NULL && sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "--openai: the network does not continue texts, 'sigma serve' without --openai is for "
            "it: %s",
            sgm_last_error());
    return server->generator != NULL ? SGM_OK : sgm__last_failure();
}

/* The server's address is "http://127.0.0.1:8080/?token=TOKEN". */
static sgm_status split_address(openai *server)
{
    const char *address = sgm__http_url(server->http), *end = strstr(address, "?token=");
    server->url = sgm__format("%.*sv1", (int)(end - address), address);
    server->token = sgm__strdup(end + strlen("?token="));
    return server->url != NULL && server->token != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status start(openai *server, const openai_options *options)
{
    server->saved = options->saved;
    server->created = unix_time();
    server->name = name_of(options->path);
    if (server->name == NULL)
        return SGM_ERROR_MEMORY;
    SGM_TRY(open_model(server, options->path, options->tokenizer));
    server->http = sgm__http_start(&(sgm__http_options){.port = options->port,
                                                        .token = options->token,
                                                        .page = "",
                                                        .error = openai_error,
                                                        .routes = routes,
                                                        .route_count = sizeof routes / sizeof *routes,
                                                        .user = server});
    return server->http != NULL ? split_address(server) : sgm__last_failure();
}

openai *openai_start(const openai_options *options)
{
    openai *server = sgm__calloc(1, sizeof *server);
    if (server != NULL && start(server, options) == SGM_OK)
        return server;
    openai_stop(server);
    return NULL;
}

const char *openai_url(const openai *server)
{
    return server->url;
}

const char *openai_token(const openai *server)
{
    return server->token;
}

const char *openai_model(const openai *server)
{
    return server->name;
}

bool openai_embeds(const openai *server)
{
    return server->generator == NULL;
}

/* If a request is not done in time, its thread still uses `server`, which then stays allocated. */
bool openai_stop(openai *server)
{
    if (server == NULL)
        return true;
    if (!sgm__http_stop(server->http))
        return false;
    sgm_generator_free(server->generator);
    sgm_generator_free(server->several);
    text_codec_close(&server->codec);
    sgm__free(server->token);
    sgm__free(server->url);
    sgm__free(server->name);
    sgm__free(server);
    return true;
}
