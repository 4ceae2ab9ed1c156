/* What a request asks for: a path and a query, decoded strictly. A path names nothing in a file system; all
 * the same what looks like a way out of it is refused here, for all routes. */
#include "monitors/http/http_internal.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of a UTF-8 sequence at `text`, which ends in a 0 byte; 0: it is none. As RFC 3629, section 4. */
static size_t utf8_length(const unsigned char *text)
{
    static const struct {
        unsigned char first, last, least, most; /* of the first byte; of the second */
        size_t length;
    } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                 {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                 {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last)
            continue;
        if (text[1] < forms[i].least || text[1] > forms[i].most)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if (text[k] < 0x80 || text[k] > 0xbf)
                return 0;
        return forms[i].length;
    }
    return 0;
}

/* Text of one line. */
static bool is_text(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        size_t length = *c < 0x80 ? (*c >= 0x20 && *c != 0x7f) : utf8_length(c);
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
             object == NULL ? error.text : "this is another value");
    json_decref(object);
    return NULL;
}
