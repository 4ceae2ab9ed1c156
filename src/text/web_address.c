/* What counts as an address of a webhook, and percent sequences in addresses. */
#include "text/web_address.h"
#include "base/characters.h"

#define LONGEST_ADDRESS 2000 /* bytes */

sgm_status sgm__web_address_check(const char *address)
{
    size_t scheme = address == NULL                        ? 0
                    : strncmp(address, "http://", 7) == 0  ? 7
                    : strncmp(address, "https://", 8) == 0 ? 8
                                                           : 0;
    bool good = scheme > 0 && sgm__is_alphanumeric(address[scheme]) && strlen(address) <= LONGEST_ADDRESS;
    for (const char *c = address; good && *c != '\0'; c++)
        good = *c > ' ' && *c < 127;
    return good ? SGM_OK
                : sgm_fail(SGM_ERROR_ARGUMENT,
                           "'%.200s' is no address of a webhook: it begins with http:// or https:// and a "
                           "host, and has neither blanks nor letters beyond ASCII",
                           address != NULL ? address : "");
}

/* The value of a hexadecimal digit; -1: it is none. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sgm__percent_decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = digit_of(from[1]), low = high >= 0 ? digit_of(from[2]) : -1;
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return true;
}
