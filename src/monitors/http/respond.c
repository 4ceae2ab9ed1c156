/* Builds the answers of the server, each with its headers.
 *
 * All go through sgm__http_respond, which adds the headers of security that every answer has, and starts
 * the time limit for reading the answer. The rest differs in the body: refusals, what functions of routes
 * gave, files of the page, redirections. Called on the loop's thread by request.c and events.c. */
#include "monitors/http/http_internal.h"
#include "text/json_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Time limit to read an answer: SGM__HTTP_ANSWER_SECONDS, and a second more for each ANSWER_RATE bytes. */
#define ANSWER_RATE 65536.0
#define PAGE_TOKEN_QUERY "?page-token="

static const struct {
    const char *name, *value;
} usual_headers[] = {
    {"Content-Security-Policy", "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
                                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

void sgm__http_refuse(sgm__http_exchange *exchange, int code, const char *format, ...)
{
    if (exchange->refusal != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    exchange->refusal = code;
    vsnprintf(exchange->why, sizeof exchange->why, format, arguments);
    va_end(arguments);
}

/* The HTTP code that belongs to a status; 500 for all others. */
static int code_of(sgm_status status)
{
    static const struct {
        sgm_status status;
        int code;
    } codes[] = {
        {SGM_ERROR_ARGUMENT, MHD_HTTP_BAD_REQUEST}, {SGM_ERROR_SHAPE, MHD_HTTP_BAD_REQUEST},
        {SGM_ERROR_TYPE, MHD_HTTP_BAD_REQUEST},     {SGM_ERROR_FORMAT, MHD_HTTP_BAD_REQUEST},
        {SGM_ERROR_NUMERIC, MHD_HTTP_BAD_REQUEST},  {SGM_ERROR_NOT_FOUND, MHD_HTTP_NOT_FOUND},
        {SGM_ERROR_STATE, MHD_HTTP_CONFLICT},       {SGM_ERROR_UNSUPPORTED, MHD_HTTP_NOT_IMPLEMENTED},
        {SGM_ERROR_NETWORK, MHD_HTTP_BAD_GATEWAY},  {SGM_ERROR_INTERRUPTED, MHD_HTTP_SERVICE_UNAVAILABLE},
        {SGM_ERROR_PERMISSION, MHD_HTTP_FORBIDDEN}, {SGM_ERROR_LIMIT, MHD_HTTP_TOO_MANY_REQUESTS},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].status == status)
            return codes[i].code;
    return MHD_HTTP_INTERNAL_SERVER_ERROR;
}

/* Takes the response; NULL, for want of memory, closes the connection. Nothing is cached unless a response
 * says otherwise. A stream of events has no time limit. */
enum MHD_Result sgm__http_respond(sgm__http_exchange *exchange, int code, struct MHD_Response *response)
{
    if (response == NULL)
        return MHD_NO;
    for (size_t i = 0; i < sizeof usual_headers / sizeof usual_headers[0]; i++)
        MHD_add_response_header(response, usual_headers[i].name, usual_headers[i].value);
    if (MHD_get_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL) == NULL)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    sgm__http_phase_set(exchange->server, exchange->place, sgm__http_busy_phase(exchange),
                        exchange->listener != NULL ? 0 : SGM__HTTP_ANSWER_SECONDS);
    enum MHD_Result result = MHD_queue_response(exchange->connection, (unsigned)code, response);
    MHD_destroy_response(response);
    return result;
}

/* A response that owns `body`, which is freed with it. NULL stays NULL. */
static struct MHD_Response *own_bytes(char *body, size_t length, const char *type)
{
    struct MHD_Response *response =
        body != NULL ? MHD_create_response_from_buffer_with_free_callback(length, body, sgm__free) : NULL;
    if (response == NULL) {
        sgm__free(body);
        return NULL;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return response;
}

/* --- refusals and errors --- */

/* {"error": why}, or what the server's options make of it. A text that is no UTF-8, for example because it
 * was cut, cannot be JSON. */
static struct MHD_Response *error_response(const sgm__http_exchange *exchange, int code, const char *why)
{
    json_t *text = json_string(why);
    if (text == NULL)
        why = "the reason cannot be told: it is no text";
    json_decref(text);
    json_t *error = exchange->server->options.error != NULL ? exchange->server->options.error(code, why)
                                                            : json_pack("{s:s}", "error", why);
    sgm__http_answer answer = {0};
    if (sgm__http_answer_json(&answer, error) != SGM_OK)
        return NULL;
    return own_bytes(answer.body, answer.length, "application/json");
}

/* The refusal of the page itself, for a person. A browser that has followed a link from another site does
 * not send the cookie (SameSite=Strict). With allow_retry the page loads itself again, and that request,
 * coming from here, has the cookie. */
static struct MHD_Response *error_page(const sgm__http_exchange *exchange)
{
    char again[160] = "";
    const sgm__http_token *token = sgm__http_page_token(exchange);
    if (exchange->allow_retry)
        snprintf(again, sizeof again, "<meta http-equiv=\"refresh\" content=\"0;url=/%s%s\">",
                 token != NULL ? PAGE_TOKEN_QUERY : "", token != NULL ? token->page : "");
    char *text = sgm__format("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Sigma</title>%s"
                             "<p>%s.</p></html>\n",
                             again, exchange->why);
    return own_bytes(text, text != NULL ? strlen(text) : 0, "text/html; charset=utf-8");
}

/* A client that is not the owner must open another connection for its next request: a connection that
 * stays takes all of CONNECTION_MEMORY (http.c), which libmicrohttpd clears between two requests. */
enum MHD_Result sgm__http_respond_refusal(sgm__http_exchange *exchange)
{
    int code = exchange->refusal;
    bool is_page =
        exchange->server->page != NULL && exchange->path != NULL && strcmp(exchange->path, "/") == 0;
    struct MHD_Response *response =
        is_page ? error_page(exchange) : error_response(exchange, code, exchange->why);
    if (response == NULL)
        return MHD_NO;
    if (exchange->standing != SGM__HTTP_OWNER)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (code == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (code == MHD_HTTP_TOO_MANY_REQUESTS || code == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
                                strcmp(exchange->request.method, "POST") == 0 ? "GET, HEAD" : "POST");
    return sgm__http_respond(exchange, code, response);
}

/* --- what functions gave --- */

sgm_status sgm__http_answer_json(sgm__http_answer *answer, json_t *json)
{
    sgm__text text = {0};
    if (json == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "out of memory for an answer, or a text in it is no UTF-8");
    sgm__json_append(&text, json);
    json_decref(json);
    size_t length = text.length;
    char *body = sgm__text_take(&text);
    if (body == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "out of memory for an answer");
    sgm__free(answer->body);
    answer->body = body;
    answer->length = length;
    return SGM_OK;
}

/* Makes the browser save the answer under this name. Characters that could end the quoted text, and
 * everything but printable ASCII, become '_'. */
static void name_file(struct MHD_Response *response, const char *name)
{
    char value[192];
    int length = snprintf(value, sizeof value, "attachment; filename=\"%.128s\"", name);
    for (char *c = value + strlen("attachment; filename=\""); c < value + length - 1; c++)
        if (*c == '"' || *c == '\\' || *c == '/' || *c < ' ' || *c > '~')
            *c = '_';
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, value);
}

/* The response to what a function gave. It takes over the body or the descriptor and marks that in the
 * answer, so that sgm__http_exchange_free does not free it again. */
static struct MHD_Response *answer_response(sgm__http_answer *answer)
{
    struct MHD_Response *response;
    if (answer->is_file) {
        response = MHD_create_response_from_fd64(answer->length, answer->descriptor);
        answer->is_file = response == NULL;
    } else if (answer->body != NULL) {
        response =
            MHD_create_response_from_buffer_with_free_callback(answer->length, answer->body, sgm__free);
        answer->body = response != NULL ? NULL : answer->body;
    } else {
        static const char nothing[] = "{}";
        response = MHD_create_response_from_buffer_with_free_callback(2, (void *)(uintptr_t)nothing, NULL);
    }
    return response;
}

/* Answers a request whose function has failed. */
static enum MHD_Result respond_failure(sgm__http_exchange *exchange)
{
    int code = code_of(exchange->status);
    struct MHD_Response *response = error_response(
        exchange, code, exchange->error != NULL ? exchange->error : sgm_status_text(exchange->status));
    if (response != NULL && code == MHD_HTTP_TOO_MANY_REQUESTS)
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    return sgm__http_respond(exchange, code, response);
}

/* Answers a request whose function has returned. Large answers get more time. */
enum MHD_Result sgm__http_respond_answer(sgm__http_exchange *exchange)
{
    sgm__http_answer *answer = &exchange->answer;
    if (exchange->status != SGM_OK)
        return respond_failure(exchange);
    size_t length = answer->length;
    struct MHD_Response *response = answer_response(answer);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            answer->type != NULL ? answer->type : "application/json");
    if (answer->file_name[0] != '\0')
        name_file(response, answer->file_name);
    enum MHD_Result result =
        sgm__http_respond(exchange, answer->code != 0 ? answer->code : MHD_HTTP_OK, response);
    exchange->place->deadline += (double)length / ANSWER_RATE / exchange->server->options.hurry;
    return result;
}

/* --- files --- */

static struct MHD_Response *own_static(const char *bytes, size_t length)
{
    return MHD_create_response_from_buffer(length, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
}

/* A file of the page. "no-cache" makes the browser ask each time, and an unchanged file costs a 304
 * without a body: after an update no browser runs a mixture of old and new files. */
enum MHD_Result sgm__http_respond_asset(sgm__http_exchange *exchange, const sgm__asset *asset)
{
    const char *known;
    sgm__http_header(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH, &known);
    bool is_known = known != NULL && strstr(known, asset->tag) != NULL;
    struct MHD_Response *response = is_known ? own_static("", 0) : own_static(asset->bytes, asset->length);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, asset->tag);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, asset->type);
    return sgm__http_respond(exchange, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, response);
}

/* The page itself, which is not cached at all: its address may have had a token in it. */
enum MHD_Result sgm__http_respond_page(sgm__http_exchange *exchange)
{
    const sgm__asset *page = exchange->server->page;
    struct MHD_Response *response = own_static(page->bytes, page->length);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page->type);
    return sgm__http_respond(exchange, MHD_HTTP_OK, response);
}

static struct MHD_Response *redirection(const char *address)
{
    struct MHD_Response *response = own_static("", 0);
    if (response != NULL)
        MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, address);
    return response;
}

enum MHD_Result sgm__http_respond_elsewhere(sgm__http_exchange *exchange)
{
    return sgm__http_respond(exchange, MHD_HTTP_SEE_OTHER, redirection("/"));
}

/* Answers the address with the token: sets the cookie and redirects, so that the token leaves the address
 * bar and the history. The page token takes its place until the page has stored it; it opens nothing
 * without the cookie. Secure behind a proxy, since browsers use https there. */
enum MHD_Result sgm__http_respond_welcome(sgm__http_exchange *exchange)
{
    const sgm__http *server = exchange->server;
    char cookie[256], address[64];
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s", exchange->cookie,
             server->cookie_token, server->options.behind_proxy ? "; Secure" : "");
    snprintf(address, sizeof address, "/%s%s", PAGE_TOKEN_QUERY, exchange->token->page);
    struct MHD_Response *response = redirection(address);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
    return sgm__http_respond(exchange, MHD_HTTP_SEE_OTHER, response);
}
