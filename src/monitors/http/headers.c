/* Looks up headers of a request, and notices repeated ones.
 *
 * A header that decides about access must not be there twice, because a proxy and this server might each
 * believe another one. MHD_lookup_connection_value would return only one of them, hence the walk over all. */
#include "monitors/http/http_internal.h"

#include <strings.h>

/* The argument of look_at_header: the name to find, the newest value, how many were found. */
typedef struct header_search {
    const char *name, *value;
    size_t count;
} header_search;

static enum MHD_Result look_at_header(void *user, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    (void)kind;
    header_search *search = user;
    if (strcasecmp(name, search->name) == 0) {
        search->value = value != NULL ? value : "";
        search->count++;
    }
    return MHD_YES;
}

/* With several headers of that name, *value is the last one. */
bool sgm__http_header(const sgm__http_exchange *exchange, const char *name, const char **value)
{
    header_search search = {.name = name};
    MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, look_at_header, &search);
    *value = search.value;
    return search.count <= 1;
}

bool sgm__http_last_header(const sgm__http_exchange *exchange, const char *name, const char **value)
{
    sgm__http_header(exchange, name, value);
    return *value != NULL;
}
