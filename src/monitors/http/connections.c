/* Connections: how many there may be, how long each may take, and how often an address may ask.
 *
 * All of it is on the loop's thread. There are SGM__HTTP_CONNECTIONS places; a client that finds none free
 * displaces the least worthy connection (sgm__http_phase gives the order), so that a stranger with many
 * connections cannot lock the owner out. Deadlines are enforced here, because libmicrohttpd's own limit
 * counts silence only and is evaded by sending a byte now and then. */
#include "monitors/http/http_internal.h"

#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* Seconds from a connection to the first line of its request. */
#define FIRST_SECONDS 10.0

/* Token buckets: requests a second in the long run, and how many may come at once. They are separate for
 * each standing, so that requests of strangers and visitors take nothing from the owner, who may have the
 * same address. */
static const struct {
    double rate, burst;
} limits[SGM__HTTP_STANDINGS] = {
    [SGM__HTTP_STRANGER] = {20, 200}, [SGM__HTTP_VISITOR] = {200, 1000}, [SGM__HTTP_OWNER] = {200, 1000}};

/* `since` changes only with the phase: a connection that repeats a phase stays as old as it is. */
void sgm__http_phase_set(const sgm__http *server, sgm__http_connection *place, sgm__http_phase phase,
                         double seconds)
{
    double now = sgm__now();
    place->deadline = seconds > 0 ? now + seconds / server->options.hurry : 0;
    if (place->phase != phase)
        place->since = now;
    place->phase = phase;
}

sgm__http_phase sgm__http_busy_phase(const sgm__http_exchange *exchange)
{
    if (exchange->refusal != 0)
        return SGM__HTTP_REFUSED;
    return exchange->standing == SGM__HTTP_OWNER ? SGM__HTTP_BUSY : SGM__HTTP_VISITING;
}

/* --- rates --- */

/* A new address takes the entry of the one that has been silent for longest, with full buckets. An index
 * remains valid, but may later belong to another address. */
size_t sgm__http_rate_of(sgm__http *server, const unsigned char address[16])
{
    size_t oldest = 0;
    for (size_t i = 0; i < SGM__HTTP_ADDRESSES; i++) {
        const sgm__http_rate *rate = &server->rates[i];
        if (rate->time > 0 && memcmp(rate->address, address, sizeof rate->address) == 0)
            return i;
        if (rate->time < server->rates[oldest].time)
            oldest = i;
    }
    sgm__http_rate *rate = &server->rates[oldest];
    *rate = (sgm__http_rate){.time = sgm__now()};
    for (size_t i = 0; i < SGM__HTTP_STANDINGS; i++)
        rate->left[i] = limits[i].burst;
    memcpy(rate->address, address, sizeof rate->address);
    return oldest;
}

/* Fills the buckets by the time passed and takes one request from that of `standing`. */
bool sgm__http_rate_allows(sgm__http *server, size_t address, sgm__http_standing standing)
{
    sgm__http_rate *rate = &server->rates[address];
    double now = sgm__now(), passed = now - rate->time;
    rate->time = now;
    for (size_t i = 0; i < SGM__HTTP_STANDINGS; i++)
        rate->left[i] = fmin(limits[i].burst, rate->left[i] + passed * limits[i].rate);
    if (rate->left[standing] < 1)
        return false;
    rate->left[standing] -= 1;
    return true;
}

/* --- new ones --- */

/* A free place, or that of the connection which goes first. Closing that takes a round of libmicrohttpd,
 * which reports the end and thereby frees the place. NULL: all places belong to the owner's busy requests. */
static sgm__http_connection *find_place(sgm__http *server)
{
    sgm__http_connection *first = NULL;
    for (size_t i = 0; i < SGM__HTTP_CONNECTIONS; i++) {
        sgm__http_connection *place = &server->connections[i];
        if (place->phase == SGM__HTTP_FREE)
            return place;
        if (place->phase != SGM__HTTP_BUSY && (first == NULL || place->phase < first->phase ||
                                               (place->phase == first->phase && place->since < first->since)))
            first = place;
    }
    if (first == NULL)
        return NULL;
    shutdown(first->descriptor, SHUT_RDWR);
    MHD_run(server->daemon);
    return first->phase == SGM__HTTP_FREE ? first : NULL;
}

/* Answers and closes without libmicrohttpd, and without waiting for the client. */
static void refuse(int descriptor)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
                               "Content-Type: application/json\r\nContent-Length: 32\r\n\r\n"
                               "{\"error\":\"too many connections\"}";
    send(descriptor, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(descriptor, SHUT_WR);
    close(descriptor);
}

/* Accepts at most as many clients as there are places, then the loop goes on with other work. MHD_run
 * after each, so that libmicrohttpd knows the connection before another one may displace it. */
void sgm__http_accept(sgm__http *server)
{
    for (int i = 0; i < SGM__HTTP_CONNECTIONS; i++) {
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof address;
        int descriptor =
            accept4(server->listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (descriptor < 0) {
            /* Without a free descriptor the client stays in the queue, and poll would return at once,
             * again and again. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                usleep(50000);
            return;
        }
        sgm__http_connection *place = find_place(server);
        if (place == NULL) {
            refuse(descriptor);
            continue;
        }
        unsigned char key[16] = SGM__HTTP_FOUR;
        if (address.ss_family == AF_INET6)
            memcpy(key, &((struct sockaddr_in6 *)&address)->sin6_addr, 16);
        else
            memcpy(key + SGM__HTTP_FOUR_LENGTH, &((struct sockaddr_in *)&address)->sin_addr, 4);
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        *place = (sgm__http_connection){.descriptor = descriptor, .address = sgm__http_rate_of(server, key)};
        server->adding = (size_t)(place - server->connections);
        sgm__http_phase_set(server, place, SGM__HTTP_OPENING, FIRST_SECONDS);
        if (MHD_add_connection(server->daemon, descriptor, (struct sockaddr *)&address, length) != MHD_YES)
            place->phase = SGM__HTTP_FREE;
        else
            MHD_run(server->daemon);
    }
}

/* Callback of libmicrohttpd at the beginning and end of a connection. The place is the connection's
 * context; it is known by `adding`, because the callback runs within MHD_add_connection or the next
 * MHD_run. */
void sgm__http_on_connection(void *user, struct MHD_Connection *connection, void **place,
                             enum MHD_ConnectionNotificationCode code)
{
    sgm__http *server = user;
    (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        *place = &server->connections[server->adding];
    else if (*place != NULL)
        ((sgm__http_connection *)*place)->phase = SGM__HTTP_FREE;
}

/* Shuts down connections whose deadline has passed, such as clients that send or read byte by byte.
 * shutdown, not close: libmicrohttpd owns the descriptor and sees the end. */
void sgm__http_cut_late(sgm__http *server)
{
    double now = sgm__now();
    for (size_t i = 0; i < SGM__HTTP_CONNECTIONS; i++) {
        sgm__http_connection *place = &server->connections[i];
        if (place->phase != SGM__HTTP_FREE && place->deadline > 0 && now > place->deadline)
            shutdown(place->descriptor, SHUT_RDWR);
    }
}
