/* What counts as an address of the web. */
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
                           "host, and "
                           "has neither blanks nor letters beyond ASCII",
                           address != NULL ? address : "");
}
