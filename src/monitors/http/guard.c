/* Decides who may ask for what, from the headers of a request alone.
 *
 * - Host must be a name of this machine's loopback, or the public host, which a proxy may give in another
 *   header. A page from elsewhere whose name was made to point to 127.0.0.1 (DNS rebinding) sends its own.
 * - Origin and Sec-Fetch-Site, which browsers send and pages cannot forge, must be those of this server.
 * - The token comes as a bearer token, from programs, or in the address that a browser opens first. The
 *   browser gets two random values for it, which only together open anything but the page's files:
 *   - the cookie, which no script can read. Browsers send it to every port of the host that they visit, so
 *     another program of this machine may learn it. By itself it opens the files of the page, which are the
 *     same for everybody.
 *   - the page token, which the page keeps in the storage of its origin (port included) and sends in a header
 *     with each request for data. No other port receives it, and no form, image or link can send it.
 *   Both are new with each start, so a program that has the port afterwards learns nothing of use.
 * request.c calls sgm__http_guard. The manual's "Access" describes the attacks that this is against. */
#include "monitors/http/http_internal.h"

#include <arpa/inet.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <strings.h>

/* --- host and origin --- */

/* Splits "NAME:8080" or "[::1]:8080" into name and port; *port is "" if there is none. False: the name is
 * empty or too long, or what follows the colon is no port. `room` is the size of `name`. */
static bool split_host(const char *host, char *name, size_t room, const char **port)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    const char *colon = strchr(end != NULL ? end : host, ':');
    size_t length = colon != NULL ? (size_t)(colon - host) : strlen(host);
    if (length == 0 || length >= room)
        return false;
    memcpy(name, host, length);
    name[length] = '\0';
    *port = colon != NULL ? colon + 1 : "";
    size_t digits = strspn(*port, "0123456789");
    return colon == NULL || (digits > 0 && digits <= 5 && (*port)[digits] == '\0');
}

/* Any port is accepted: behind a tunnel (ssh -L) it differs from the server's. */
static bool is_loopback_host(const char *host)
{
    char name[64];
    const char *port;
    struct in_addr address;
    if (!split_host(host, name, sizeof name, &port))
        return false;
    return strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0 ||
           (inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

/* Cookies do not distinguish ports, so the name has the port that the browser uses: through tunnels,
 * several servers with the same port may be different ports of the browser's own machine. */
static void name_cookie(sgm__http_exchange *exchange, const char *host)
{
    char name[256];
    const char *port = "";
    split_host(host, name, sizeof name, &port);
    snprintf(exchange->cookie, sizeof exchange->cookie, *port != '\0' ? "sigma-%.5s" : "sigma", port);
}

/* Checks Host, X-Forwarded-Proto, Origin and Sec-Fetch-Site, in this order; the first refusal stays. A
 * browser sends the last two by itself, and a page cannot forge them. Other sites may link to the page
 * ("/", by navigation), as an address in a chat does, but not reach what is behind it. A request from a
 * foreign page comes without the cookie (SameSite=Strict), hence allow_retry. */
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
    name_cookie(exchange, host);
    if (sgm__http_forwarded_plain(exchange))
        sgm__http_refuse(exchange, MHD_HTTP_FORBIDDEN,
                         "tokens must not travel as they are: come by https (X-Forwarded-Proto)");
    const char *scheme = is_public ? "https://" : "http://";
    size_t length = strlen(scheme);
    if (!sgm__http_header(exchange, MHD_HTTP_HEADER_ORIGIN, &origin) ||
        (origin != NULL &&
         (strncasecmp(origin, scheme, length) != 0 || strcasecmp(origin + length, host) != 0)))
        sgm__http_refuse(exchange, MHD_HTTP_FORBIDDEN, "pages of other servers (Origin) get nothing here");
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

/* Whether the first `length` bytes of `cookie` are our name, '=' and our value. */
static bool is_right_cookie(const sgm__http_exchange *exchange, const char *cookie, size_t length)
{
    const char *right = exchange->server->cookie_token;
    size_t name_length = strlen(exchange->cookie), value_length = strlen(right);
    return length == name_length + 1 + value_length && memcmp(cookie, exchange->cookie, name_length) == 0 &&
           cookie[name_length] == '=' && memeql_sec(cookie + name_length + 1, right, value_length) != 0;
}

/* The argument of look_at_cookies. */
typedef struct cookie_search {
    const sgm__http_exchange *exchange;
    bool right;
} cookie_search;

/* Callback for each header. Cookies are parsed here, not by libmicrohttpd: servers at other ports of the
 * host can set cookies with any value, and a quote that one of them leaves open would end libmicrohttpd's
 * parsing, while it is an ordinary character by RFC 6265, section 5.2. Others may also have set a cookie
 * of our name, so one right cookie among several is enough. */
static enum MHD_Result look_at_cookies(void *user, enum MHD_ValueKind kind, const char *name,
                                       const char *value)
{
    (void)kind;
    cookie_search *search = user;
    if (strcasecmp(name, MHD_HTTP_HEADER_COOKIE) != 0 || value == NULL)
        return MHD_YES;
    for (const char *cookie = value; *cookie != '\0' && !search->right;) {
        cookie += strspn(cookie, "; \t");
        size_t length = strcspn(cookie, ";");
        search->right = is_right_cookie(search->exchange, cookie, length);
        cookie += length;
    }
    return MHD_YES;
}

static bool has_cookie(const sgm__http_exchange *exchange)
{
    cookie_search search = {.exchange = exchange};
    MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, look_at_cookies, &search);
    return search.right;
}

/* The token of "Authorization: Bearer TOKEN"; NULL: there is none, or it is wrong. */
static sgm__http_token *bearer_token(const sgm__http_exchange *exchange)
{
    const char *value;
    bool given = sgm__http_header(exchange, MHD_HTTP_HEADER_AUTHORIZATION, &value) && value != NULL &&
                 strncasecmp(value, "Bearer ", 7) == 0;
    return given ? sgm__http_token_find(exchange->server, value + 7, false) : NULL;
}

/* Whether the value of Content-Type is this type, with or without parameters. */
static bool is_media_type(const char *value, const char *type)
{
    size_t length = strlen(type);
    return value != NULL && strncasecmp(value, type, length) == 0 && strchr("; ", value[length]) != NULL;
}

static sgm__http_token *token_in_address(const sgm__http_exchange *exchange)
{
    return strcmp(exchange->path, "/") == 0
               ? sgm__http_token_find(exchange->server, sgm__http_query(&exchange->request, "token", 0),
                                      false)
               : NULL;
}

const sgm__http_token *sgm__http_page_token(const sgm__http_exchange *exchange)
{
    return sgm__http_token_find(exchange->server, sgm__http_query(&exchange->request, "page-token", 0), true);
}

/* What the request proves, and with which token. A browser that has only the cookie is a visitor. */
static sgm__http_standing standing_of(sgm__http_exchange *exchange)
{
    const char *value;
    exchange->token = bearer_token(exchange);
    if (exchange->token == NULL)
        exchange->token = token_in_address(exchange);
    if (exchange->token != NULL)
        return SGM__HTTP_OWNER;
    if (!has_cookie(exchange))
        return SGM__HTTP_STRANGER;
    if (sgm__http_header(exchange, "X-Sigma-Token", &value))
        exchange->token = sgm__http_token_find(exchange->server, value, true);
    return exchange->token != NULL ? SGM__HTTP_OWNER : SGM__HTTP_VISITOR;
}

/* What the token may do, for the route and for its function. */
static void check_role(sgm__http_exchange *exchange)
{
    const sgm__http_route *route = exchange->request.route;
    if (exchange->token == NULL)
        return;
    exchange->request.role = exchange->token->role;
    exchange->request.name = exchange->token->name;
    exchange->request.changes = &exchange->token->changes;
    if (route != NULL && sgm__role_check(route->path, exchange->token->role, route->role) != SGM_OK)
        sgm__http_refuse(exchange, MHD_HTTP_FORBIDDEN, "%s", sgm_last_error());
}

/* How often a token may change something; commands are counted one by one (control/control_command.c). */
static void check_changes(sgm__http_exchange *exchange)
{
    const sgm__http_route *route = exchange->request.route;
    if (exchange->refusal == 0 && route != NULL && route->role > SGM__ROLE_LOOK &&
        sgm__rate_take(exchange->request.changes) != SGM_OK)
        sgm__http_refuse(exchange, MHD_HTTP_TOO_MANY_REQUESTS, "%s", sgm_last_error());
}

/* Whether the request is for what a visitor may have: the page and its files, which are the same for
 * everybody. */
static bool is_file_of_page(const sgm__http_exchange *exchange)
{
    return exchange->request.route == NULL &&
           (strcmp(exchange->path, "/") == 0 || sgm__asset_find(exchange->path) != NULL);
}

static void check_standing(sgm__http_exchange *exchange)
{
    if (exchange->standing == SGM__HTTP_STRANGER)
        sgm__http_refuse(
            exchange, MHD_HTTP_UNAUTHORIZED,
            "the token is missing or wrong: open the address that the program printed, or send the "
            "printed token (api_key, Authorization: Bearer)");
    else if (exchange->standing == SGM__HTTP_VISITOR && !is_file_of_page(exchange))
        sgm__http_refuse(
            exchange, MHD_HTTP_FORBIDDEN,
            "the page's token (X-Sigma-Token) is missing or wrong: open the address that the program "
            "printed");
}

/* Whether the value is one of the types, which have blanks between them. */
static bool is_one_of(const char *value, const char *types)
{
    while (*types != '\0') {
        char type[64];
        int length = (int)strcspn(types, " ");
        snprintf(type, sizeof type, "%.*s", length, types);
        if (is_media_type(value, type))
            return true;
        types += length + (types[length] == ' ');
    }
    return false;
}

/* A POST must declare its media type. Those that a form can send are among them only where a route says so:
 * a form of another site is refused even if everything but the token were right. */
static void check_type(sgm__http_exchange *exchange)
{
    const char *value;
    const char *types = exchange->request.route != NULL && exchange->request.route->type != NULL
                            ? exchange->request.route->type
                            : "application/json";
    if (!sgm__http_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE, &value) || !is_one_of(value, types))
        sgm__http_refuse(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                         "expected a body of %s %s: the header Content-Type says which it is",
                         strchr(types, ' ') != NULL ? "one of the types" : "type", types);
    else
        snprintf(exchange->request.type, sizeof exchange->request.type, "%s", value);
}

/* The log says whom the server refused and why, for users who wonder. Nothing that a stranger has sent
 * goes into the log. */
static void log_refusal(const sgm__http_exchange *exchange, const unsigned char client[16])
{
    char text[INET6_ADDRSTRLEN] = "?";
    bool is_four = memcmp(client, SGM__HTTP_FOUR, SGM__HTTP_FOUR_LENGTH) == 0;
    inet_ntop(is_four ? AF_INET : AF_INET6, client + (is_four ? SGM__HTTP_FOUR_LENGTH : 0), text,
              sizeof text);
    sgm__log(SGM_LOG_DEBUG, "http", "%s: %d, %s", text, exchange->refusal, exchange->why);
}

/* Order: host and origin, standing, role, type of a POST, rates. The rate of all requests is checked last and
 * counts refused requests as a stranger's, so that guessing does not use up the owner's requests. Behind a
 * proxy the rate is that of the client which the proxy names. */
void sgm__http_guard(sgm__http_exchange *exchange)
{
    sgm__http *server = exchange->server;
    check_host(exchange);
    exchange->standing = standing_of(exchange);
    check_standing(exchange);
    check_role(exchange);
    if (strcmp(exchange->request.method, "POST") == 0)
        check_type(exchange);
    check_changes(exchange);
    sgm__http_standing counted = exchange->refusal == 0 ? exchange->standing : SGM__HTTP_STRANGER;
    unsigned char client[16];
    size_t address = sgm__http_forwarded_for(exchange, client) ? sgm__http_rate_of(server, client)
                                                               : exchange->place->address;
    if (!sgm__http_rate_allows(server, address, counted)) {
        exchange->refusal = 0;
        sgm__http_refuse(exchange, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests: wait a second");
    }
    if (exchange->refusal != 0)
        log_refusal(exchange, server->rates[address].address);
}
