/* What a proxy says of a request that it passes on: who asks, under which name, and by which way.
 *
 * Only a proxy that the program knows to be there (behind_proxy) is believed, and of a list only its end:
 * what stands before may be the client's own words. */
#include "monitors/http/http_internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

/* The last one of a header's list, without spaces; false: there is no such header, or it is too long. */
static bool last_of(const sgm__http_exchange *exchange, const char *name, char *last, size_t room)
{
    const char *list;
    if (!exchange->server->options.behind_proxy || !sgm__http_last_header(exchange, name, &list))
        return false;
    const char *comma = strrchr(list, ','), *begin = comma != NULL ? comma + 1 : list;
    begin += strspn(begin, " \t");
    size_t length = strlen(begin);
    while (length > 0 && strchr(" \t", begin[length - 1]) != NULL)
        length--;
    if (length == 0 || length >= room)
        return false;
    memcpy(last, begin, length);
    last[length] = '\0';
    return true;
}

bool sgm__http_forwarded_host(const sgm__http_exchange *exchange, char *host, size_t room)
{
    return last_of(exchange, "X-Forwarded-Host", host, room);
}

bool sgm__http_forwarded_plain(const sgm__http_exchange *exchange)
{
    char scheme[16];
    return last_of(exchange, "X-Forwarded-Proto", scheme, sizeof scheme) && strcasecmp(scheme, "https") != 0;
}

/* "192.0.2.1", "192.0.2.1:4711", "2001:db8::1", "[2001:db8::1]:4711" */
static bool read_address(char *text, unsigned char key[16])
{
    memset(key, 0, 16);
    if (text[0] == '[') {
        char *end = strchr(text, ']');
        if (end == NULL)
            return false;
        *end = '\0';
        return inet_pton(AF_INET6, text + 1, key) == 1;
    }
    char *colon = strchr(text, ':');
    if (colon != NULL && strchr(colon + 1, ':') != NULL)
        return inet_pton(AF_INET6, text, key) == 1;
    if (colon != NULL)
        *colon = '\0';
    return inet_pton(AF_INET, text, key) == 1;
}

bool sgm__http_forwarded_for(const sgm__http_exchange *exchange, unsigned char key[16])
{
    char text[64];
    return last_of(exchange, "X-Forwarded-For", text, sizeof text) && read_address(text, key);
}
