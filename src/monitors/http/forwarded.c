/* What a reverse proxy says of a request that it passes on: the client's address, the host that was asked
 * for, and whether the client used TLS.
 *
 * Used by guard.c. A proxy is believed only if the program has said that there is one (behind_proxy). Each
 * header is a list to which every proxy appends; only the last entry is believed, since those before may
 * be the client's own words. De facto standard headers X-Forwarded-*. */
#include "monitors/http/http_internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

/* Copies the last entry of a header's list, without spaces, into `last`. False: no trusted proxy, no such
 * header, or an entry that is empty or does not fit. */
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

/* Parses "192.0.2.1", "192.0.2.1:4711", "2001:db8::1" or "[2001:db8::1]:4711" into the 16 bytes that
 * sgm__http_rate uses. Changes the text. */
static bool read_address(char *text, unsigned char key[16])
{
    memcpy(key, SGM__HTTP_FOUR, SGM__HTTP_FOUR_LENGTH);
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
    return inet_pton(AF_INET, text, key + SGM__HTTP_FOUR_LENGTH) == 1;
}

bool sgm__http_forwarded_for(const sgm__http_exchange *exchange, unsigned char key[16])
{
    char text[64];
    return last_of(exchange, "X-Forwarded-For", text, sizeof text) && read_address(text, key);
}
