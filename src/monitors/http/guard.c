/* Who may ask for what.
 *
 * - Host: a name of this machine's loopback, or the public one, which a proxy may say in another header. A
 * page from elsewhere whose name was pointed at 127.0.0.1 (DNS rebinding) sends its own.
 * - Origin, and Sec-Fetch-Site, which browsers send and pages cannot forge: this server's own.
 * - The token: in the address that is opened first, then in a cookie that no script reads and that comes only
 *   with requests from the page itself; or as a bearer, from programs.
 * - To change something: POST with the page token in a header, which a form or an image cannot send. */
#include "monitors/http/http_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <strings.h>
#include <sys/random.h>

sgm_status sgm__http_random_token(char *text)
{
    unsigned char bytes[SGM__HTTP_TOKEN_BYTES];
    for (size_t have = 0; have < sizeof bytes;) {
        ssize_t count = getrandom(bytes + have, sizeof bytes - have, 0);
        if (count < 0 && errno != EINTR)
            return sgm_fail(SGM_ERROR_STATE, "the system gives no random numbers for a token: %s",
                            sgm__errno_text(errno));
        have += count > 0 ? (size_t)count : 0;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)bytes[i]);
    return SGM_OK;
}

/* --- host and origin --- */

/* Cuts ":8080" off, which may be missing; false: what is there is no port. */
static bool split_host(const char *host, char *name, size_t room)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    const char *colon = strchr(end != NULL ? end : host, ':');
    size_t length = colon != NULL ? (size_t)(colon - host) : strlen(host);
    if (length == 0 || length >= room)
        return false;
    memcpy(name, host, length);
    name[length] = '\0';
    if (colon == NULL)
        return true;
    size_t digits = strspn(colon + 1, "0123456789");
    return digits > 0 && digits <= 5 && colon[1 + digits] == '\0';
}

/* Any port: behind a tunnel (ssh -L) it is another than the server's. */
static bool is_loopback_host(const char *host)
{
    char name[64];
    struct in_addr address;
    if (!split_host(host, name, sizeof name))
        return false;
    return strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0 ||
           (inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

static void check_host(sgm__http_exchange *exchange)
{
    const char *host, *origin, *site, *mode;
    const char *public_host = exchange->server->public_host;
    char forwarded[256];
    bool once = sgm__http_header(exchange, MHD_HTTP_HEADER_HOST, &host);
    if (once && sgm__http_forwarded_host(exchange, forwarded, sizeof forwarded))
        host = forwarded;
    bool is_public = host != NULL && public_host != NULL && strcasecmp(host, public_host) == 0;
    if (!once || host == NULL || (!is_public && !is_loopback_host(host))) {
        sgm__http_refuse(exchange, MHD_HTTP_FORBIDDEN,
                         "this server is not known under that name (Host): use the address that it printed");
        return;
    }
    if (sgm__http_forwarded_plain(exchange))
        sgm__http_refuse(exchange, MHD_HTTP_FORBIDDEN,
                         "tokens must not travel as they are: come by https (X-Forwarded-Proto)");
    const char *scheme = is_public ? "https://" : "http://";
    size_t length = strlen(scheme);
    if (!sgm__http_header(exchange, MHD_HTTP_HEADER_ORIGIN, &origin) ||
        (origin != NULL &&
         (strncasecmp(origin, scheme, length) != 0 || strcasecmp(origin + length, host) != 0)))
        sgm__http_refuse(exchange, MHD_HTTP_FORBIDDEN, "pages of other servers (Origin) get nothing here");
    /* Others may link to the page, as an address in a chat does, but not reach what is behind it. */
    sgm__http_header(exchange, "Sec-Fetch-Site", &site);
    sgm__http_header(exchange, "Sec-Fetch-Mode", &mode);
    bool is_foreign = site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
    bool is_link = strcmp(exchange->path, "/") == 0 && (mode == NULL || strcmp(mode, "navigate") == 0);
    if (is_foreign && !is_link)
        sgm__http_refuse(exchange, MHD_HTTP_FORBIDDEN,
                         "pages of other servers (Sec-Fetch-Site) get nothing here");
    exchange->allow_retry = is_foreign;
}

/* --- tokens --- */

/* Takes as long for a wrong token as for a right one; its length is no secret. */
static bool is_same(const char *given, const char *right)
{
    size_t length = strlen(right);
    return given != NULL && strlen(given) == length && memeql_sec(given, right, length) != 0;
}

typedef struct cookie_search {
    const sgm__http *server;
    bool right;
} cookie_search;

/* Another server of this machine can set a cookie of the same name: any that is right will do. */
static enum MHD_Result look_at_cookie(void *user, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    (void)kind;
    cookie_search *search = user;
    if (strcmp(name, search->server->cookie) == 0 && is_same(value, search->server->token))
        search->right = true;
    return MHD_YES;
}

static bool has_cookie(const sgm__http_exchange *exchange)
{
    cookie_search search = {.server = exchange->server};
    MHD_get_connection_values(exchange->connection, MHD_COOKIE_KIND, look_at_cookie, &search);
    return search.right;
}

static bool has_bearer(const sgm__http_exchange *exchange)
{
    const char *value;
    return sgm__http_header(exchange, MHD_HTTP_HEADER_AUTHORIZATION, &value) && value != NULL &&
           strncasecmp(value, "Bearer ", 7) == 0 && is_same(value + 7, exchange->server->token);
}

static bool is_media_type(const char *value, const char *type)
{
    size_t length = strlen(type);
    return value != NULL && strncasecmp(value, type, length) == 0 && strchr("; ", value[length]) != NULL;
}

static void check_change(sgm__http_exchange *exchange, bool is_program)
{
    const char *value;
    const char *type =
        exchange->route != NULL && exchange->route->type != NULL ? exchange->route->type : "application/json";
    if (!is_program && (!sgm__http_header(exchange, "X-Sigma-Token", &value) ||
                        !is_same(value, exchange->server->page_token)))
        sgm__http_refuse(exchange, MHD_HTTP_FORBIDDEN,
                         "changes need the page's token (X-Sigma-Token): reload the page");
    if (!sgm__http_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE, &value) || !is_media_type(value, type))
        sgm__http_refuse(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "expected a body of type %s", type);
}

/* For who wonders why, or who it was; a stranger's words are not repeated. */
static void log_refusal(const sgm__http_exchange *exchange, const unsigned char client[16])
{
    static const unsigned char none[12];
    char text[INET6_ADDRSTRLEN] = "?";
    bool is_four = memcmp(client + 4, none, sizeof none) == 0;
    inet_ntop(is_four ? AF_INET : AF_INET6, client, text, sizeof text);
    sgm__log(SGM_LOG_DEBUG, "http", "%s: %d, %s", text, exchange->refusal, exchange->why);
}

void sgm__http_guard(sgm__http_exchange *exchange)
{
    sgm__http *server = exchange->server;
    check_host(exchange);
    bool is_program = has_bearer(exchange);
    bool knows = is_program || has_cookie(exchange) ||
                 (strcmp(exchange->path, "/") == 0 &&
                  is_same(sgm__http_query(&exchange->request, "token", 0), server->token));
    if (!knows)
        sgm__http_refuse(exchange, MHD_HTTP_UNAUTHORIZED,
                         "the token is missing or wrong: open the address that the program printed");
    if (strcmp(exchange->request.method, "POST") == 0)
        check_change(exchange, is_program);
    bool is_good = knows && exchange->refusal == 0;
    unsigned char client[16];
    size_t address = sgm__http_forwarded_for(exchange, client) ? sgm__http_rate_of(server, client)
                                                               : exchange->place->address;
    if (!sgm__http_rate_allows(server, address, is_good)) {
        exchange->refusal = 0;
        sgm__http_refuse(exchange, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests: wait a second");
    }
    if (exchange->refusal != 0)
        log_refusal(exchange, server->rates[address].address);
}
