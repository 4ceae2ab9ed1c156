/* Parses what a request asks for: a path and a query, decoded strictly.
 *
 * Paths of this server name routes and assets, never files of a file system. Even so, anything that looks
 * like an escape from a folder is refused here, for all routes at once, so that no function of a route has
 * to think of it. Decoding happens once: what is decoded is not decoded again by anybody. */
#include "monitors/http/http_internal.h"
#include "text/json_text.h"
#include "text/web_address.h"

/* Decodes percent sequences in place, in a query also '+' as a space. False: a broken sequence, a 0 byte,
 * or a result that is not text. */
static bool decode(char *text, bool is_query)
{
    for (char *c = text; is_query && *c != '\0'; c++)
        *c = *c == '+' ? ' ' : *c;
    return sgm__percent_decode(text) && sgm__is_line(text);
}

/* A path without empty segments, segments that begin with a dot, or backslashes. */
static bool is_plain_path(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *c = path; *c != '\0'; c++)
        if (*c == '\\' || (*c == '/' && (c[1] == '/' || c[1] == '.')))
            return false;
    return true;
}

/* Splits "A=1&B=2" in place into the exchange's parameters. Splitting comes before decoding, so an encoded
 * '&' or '=' is part of its value. */
static bool read_query(sgm__http_exchange *exchange, char *query)
{
    char *rest = query;
    for (char *part = strsep(&rest, "&"); part != NULL; part = strsep(&rest, "&")) {
        if (*part == '\0')
            continue;
        char *value = strchr(part, '=');
        if (value != NULL)
            *value++ = '\0';
        else
            value = part + strlen(part);
        if (exchange->parameter_count == SGM__HTTP_PARAMETERS || !decode(part, true) || !decode(value, true))
            return false;
        exchange->parameters[exchange->parameter_count++] = (sgm__http_parameter){part, value};
    }
    return true;
}

void sgm__http_target_read(sgm__http_exchange *exchange)
{
    char *query = strchr(exchange->target, '?');
    if (query != NULL)
        *query++ = '\0';
    exchange->path = exchange->target;
    if (!decode(exchange->target, false) || !is_plain_path(exchange->target))
        sgm__http_refuse(exchange, MHD_HTTP_BAD_REQUEST, "this is no path that the server knows of");
    else if (query != NULL && !read_query(exchange, query))
        sgm__http_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                         "the query must be at most %d parts NAME=VALUE, percent-encoded UTF-8",
                         SGM__HTTP_PARAMETERS);
}

const char *sgm__http_query(const sgm__http_request *request, const char *name, size_t nth)
{
    const sgm__http_exchange *exchange = (const sgm__http_exchange *)request;
    for (size_t i = 0; i < exchange->parameter_count; i++)
        if (strcmp(exchange->parameters[i].name, name) == 0 && nth-- == 0)
            return exchange->parameters[i].value;
    return NULL;
}

json_t *sgm__http_object(const sgm__http_request *request)
{
    json_error_t error;
    sgm__http_exchange *exchange = (sgm__http_exchange *)(uintptr_t)request;
    if (exchange->object == NULL)
        exchange->object = json_loadb(request->body, request->length, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(exchange->object))
        return exchange->object;
    sgm_fail(SGM_ERROR_ARGUMENT, "expected a JSON object: %s",
             exchange->object == NULL ? sgm__json_mistake(&error) : "this is another value");
    return NULL;
}
