/* What a request asks for: a path and a query, decoded strictly. A path names nothing in a file system; all
 * the same what looks like a way out of it is refused here, for all routes. */
#include "monitors/http/http_internal.h"
#include "text/json_text.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Text of one line. */
static bool is_text(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        size_t length = *c < 0x80 ? (*c >= 0x20 && *c != 0x7f) : sgm__utf8_length(c);
        if (length == 0)
            return false;
        c += length;
    }
    return true;
}

/* In place; false: not so encoded, or not a text. */
static bool decode(char *text, bool is_query)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        char c = *from;
        if (c == '%') {
            int high = hex(from[1]), low = high >= 0 ? hex(from[2]) : -1;
            if (low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(high * 16 + low);
            from += 2;
        } else if (c == '+' && is_query) {
            c = ' ';
        }
        *to++ = c;
    }
    *to = '\0';
    return is_text(text);
}

/* No empty segment, none that begins with a dot, no backslash. */
static bool is_plain_path(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *c = path; *c != '\0'; c++)
        if (*c == '\\' || (*c == '/' && (c[1] == '/' || c[1] == '.')))
            return false;
    return true;
}

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
    json_t *object = json_loadb(request->body, request->length, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(object))
        return object;
    sgm_fail(SGM_ERROR_ARGUMENT, "expected a JSON object: %s",
             object == NULL ? sgm__json_mistake(&error) : "this is another value");
    json_decref(object);
    return NULL;
}
