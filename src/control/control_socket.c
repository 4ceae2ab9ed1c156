/* The control socket of a run: reads lines from clients, has the commands on them carried out, sends answers.
 *
 * Two threads. The server's thread (serve_all) polls all clients, reads and writes without waiting, and
 * carries out quick commands itself. The worker (work) carries out, one after the other, the commands that
 * must wait for a step to end. Only the worker waits for the trainer's lock, so a client that sends nothing
 * or does not read delays no step, and a long step delays no quick command.
 *
 * All clients belong to the server's thread. A client whose line is with the worker (`working`) is neither
 * read from nor dropped until the answer is there; its members request, done and answered, and the queue,
 * are guarded by server->lock. The worker writes to the eventfd `wake` when it has an answer. What
 * commands do is in control_command.c. */
#include "control/control_socket.h"
#include "base/clock.h"
#include "control/control.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAXIMUM_CLIENTS 16 /* one more takes the place of the client that has been silent for longest */
#define OWN_WAITS 2        /* the first descriptors of poll: wake-up and listener; clients follow */
#define PATIENCE 60.0      /* seconds that a command waits for a trainer which is busy */

/* One connection, or a free place for one. */
typedef struct client {
    int descriptor; /* -1: free */
    double active;  /* when bytes were last received or sent (sgm__now) */
    char *input;    /* SGM__LONGEST_COMMAND + 1 bytes */
    size_t length;
    char *output; /* NULL: nothing is left to send */
    size_t sent, output_length;
    bool leaving; /* the connection is closed once the output is sent */
    /* Guarded by the server's lock while `working`. */
    bool working;  /* its line is in the queue or being carried out, or its answer is not delivered yet */
    char *request; /* the line in the queue; freed by the worker */
    char *done;    /* the answer; NULL: not yet */
    bool answered; /* the worker is done, even if it had no memory for an answer */
    double asked;  /* when the line came; the worker's patience counts from then */
    struct client *next; /* in the queue */
} client;

/* The server of one run; from the start of the run to its end. */
struct sgm__control_server {
    sgm__control_call call;
    sgm__rate changes;
    atomic_bool ending;
    struct sockaddr_un address;
    int listener, wake;
    pthread_t thread, worker;
    client clients[MAXIMUM_CLIENTS];
    pthread_mutex_t lock;
    pthread_cond_t more;
    client *first, **last; /* the queue of the worker */
    bool closing;          /* the worker has ended, so the server's thread delivers what is left and ends */
};

/* --- clients --- */

/* Closes a connection and frees its place; not while it is `working`. */
static void drop(client *c)
{
    close(c->descriptor);
    sgm__free(c->input);
    sgm__free(c->output);
    *c = (client){.descriptor = -1};
}

/* Tells a client that all places are taken, if that can be sent without waiting, and closes its
 * connection. */
static void refuse(int descriptor)
{
    static const char text[] = "{\"ok\":false,\"error\":\"all places are taken by commands that wait for the "
                               "trainer: ask later\"}\n";
    ssize_t sent = send(descriptor, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* a client that does not hear of it finds the connection closed */
    close(descriptor);
}

/* Gives a new connection a free place, or that of the client that has been silent for longest and waits
 * for no answer. If accept fails for want of descriptors, the connection stays in the backlog and poll
 * would return at once, so this waits for up to 0.1 s. */
static void accept_client(sgm__control_server *server)
{
    int descriptor = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
            poll(&(struct pollfd){.fd = server->wake, .events = POLLIN}, 1, 100);
        return;
    }
    client *place = NULL;
    for (size_t i = 0; i < MAXIMUM_CLIENTS && (place == NULL || place->descriptor >= 0); i++) {
        client *c = &server->clients[i];
        if (!c->working && (place == NULL || c->descriptor < 0 || c->active < place->active))
            place = c;
    }
    if (place == NULL) {
        refuse(descriptor);
        return;
    }
    if (place->descriptor >= 0)
        drop(place);
    *place = (client){
        .descriptor = descriptor, .active = sgm__now(), .input = sgm__alloc(SGM__LONGEST_COMMAND + 1)};
    if (place->input == NULL)
        drop(place);
}

/* Sends as much of the output as the socket takes; the rest is sent when poll says so. */
static void send_rest(client *c)
{
    while (c->output != NULL) {
        ssize_t count =
            send(c->descriptor, c->output + c->sent, c->output_length - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
                drop(c);
            return;
        }
        c->active = sgm__now();
        c->sent += (size_t)count;
        if (c->sent == c->output_length) {
            sgm__free(c->output);
            c->output = NULL;
        }
    }
    if (c->leaving)
        drop(c);
}

/* Begins to send an answer, which is taken over; without one (no memory) the client is dropped. */
static void answer(client *c, char *text)
{
    c->output = text != NULL ? sgm__format("%s\n", text) : NULL;
    sgm__free(text);
    if (c->output == NULL) {
        drop(c);
        return;
    }
    c->sent = 0;
    c->output_length = strlen(c->output);
    send_rest(c);
}

/* Whether the client has closed its connection: then nobody can hear the answer, and the command is not
 * carried out. Called by the thread that waits, through the patience; a client is not dropped meanwhile. */
static bool has_left(const void *asker)
{
    const client *c = asker;
    struct pollfd look = {.fd = c->descriptor};
    return poll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLERR)) != 0;
}

/* Carries out a line for a client that waits since `asked`: for PATIENCE seconds, until the run ends, or
 * until the client leaves. */
static char *answer_with_patience(sgm__control_server *server, const client *c, double asked,
                                  const char *line, size_t length)
{
    const sgm__patience patience = {.asked = asked,
                                    .until = asked + PATIENCE,
                                    .ending = &server->ending,
                                    .has_left = has_left,
                                    .asker = c};
    sgm__patience_set(&patience);
    char *text = sgm__control_answer(&server->call, line, length);
    sgm__patience_set(NULL);
    return text;
}

/* Queues a copy of the line for the worker; false: no memory. */
static bool queue_line(sgm__control_server *server, client *c, size_t length)
{
    char *line = sgm__strndup(c->input, length);
    if (line == NULL)
        return false;
    pthread_mutex_lock(&server->lock);
    c->request = line;
    c->asked = sgm__now();
    c->working = true;
    c->answered = false;
    c->next = NULL;
    *server->last = c;
    server->last = &c->next;
    pthread_cond_signal(&server->more);
    pthread_mutex_unlock(&server->lock);
    return true;
}

/* Carries out a quick command here; hands any other to the worker. */
static void do_line(sgm__control_server *server, client *c, size_t length)
{
    if (sgm__control_is_quick(c->input, length))
        answer(c, answer_with_patience(server, c, sgm__now(), c->input, length));
    else if (!queue_line(server, c, length))
        answer(c, NULL);
}

/* Answers the complete lines of the input, one after the other; the next line waits until the answer to
 * the last is sent. Input without a newline that is longer than a command can be ends the connection. */
static void answer_lines(sgm__control_server *server, client *c)
{
    while (c->descriptor >= 0 && c->output == NULL && !c->working && !atomic_load(&server->ending)) {
        const char *end = memchr(c->input, '\n', c->length);
        if (end == NULL)
            break;
        size_t length = (size_t)(end - c->input);
        do_line(server, c, length);
        if (c->descriptor < 0)
            break;
        c->length -= length + 1;
        memmove(c->input, c->input + length + 1, c->length);
    }
    if (c->descriptor >= 0 && c->output == NULL && !c->working && c->length > SGM__LONGEST_COMMAND) {
        c->leaving = true;
        answer(c, sgm__format("{\"ok\":false,\"error\":\"a command has at most %zu bytes\"}",
                              SGM__LONGEST_COMMAND));
    }
}

/* Reads what has come; the end of the stream or an error drops the client. */
static void receive(sgm__control_server *server, client *c)
{
    ssize_t count =
        recv(c->descriptor, c->input + c->length, SGM__LONGEST_COMMAND + 1 - c->length, MSG_DONTWAIT);
    if (count > 0) {
        c->length += (size_t)count;
        c->active = sgm__now();
        answer_lines(server, c);
    } else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        drop(c);
    }
}

/* A client that has an answer to take is not read from, so a client that never reads cannot fill the
 * memory with answers. */
static void serve(sgm__control_server *server, client *c, short events)
{
    if (c->output == NULL && (events & (POLLIN | POLLHUP | POLLERR)) != 0) {
        receive(server, c);
    } else if (c->output != NULL && (events & (POLLOUT | POLLHUP | POLLERR)) != 0) {
        send_rest(c);
        if (c->descriptor >= 0)
            answer_lines(server, c);
    }
}

/* Takes the worker's answers to their clients, and goes on with these clients' next lines. */
static void deliver(sgm__control_server *server)
{
    for (size_t i = 0; i < MAXIMUM_CLIENTS; i++) {
        client *c = &server->clients[i];
        pthread_mutex_lock(&server->lock);
        bool answered = c->working && c->answered;
        char *text = answered ? c->done : NULL;
        if (answered) {
            c->done = NULL;
            c->working = false;
        }
        pthread_mutex_unlock(&server->lock);
        if (answered)
            answer(c, text);
        if (answered && c->descriptor >= 0)
            answer_lines(server, c);
    }
}

/* Called when the worker, or the end of the server, has written to the wake-up. False: the worker has
 * ended and its answers are delivered. `closing` is read first, so nothing that came before it is left
 * behind. */
static bool hear_worker(sgm__control_server *server)
{
    eventfd_t unused;
    pthread_mutex_lock(&server->lock);
    bool closing = server->closing;
    pthread_mutex_unlock(&server->lock);
    eventfd_read(server->wake, &unused);
    deliver(server);
    return !closing;
}

/* The server's thread. The listener is looked at last, so that clients that hang up free their places
 * first. Clients that wait for the worker are left out of poll: their hang-ups would wake it again and
 * again. */
static void *serve_all(void *user)
{
    sgm__control_server *server = user;
    for (;;) {
        struct pollfd waits[OWN_WAITS + MAXIMUM_CLIENTS] = {{.fd = server->wake, .events = POLLIN},
                                                            {.fd = server->listener, .events = POLLIN}};
        for (size_t i = 0; i < MAXIMUM_CLIENTS; i++) {
            const client *c = &server->clients[i];
            waits[OWN_WAITS + i] = (struct pollfd){.fd = c->working ? -1 : c->descriptor,
                                                   .events = c->output != NULL ? POLLOUT : POLLIN};
        }
        if (poll(waits, OWN_WAITS + MAXIMUM_CLIENTS, -1) < 0)
            continue;
        if (waits[0].revents != 0 && !hear_worker(server))
            return NULL;
        for (size_t i = 0; i < MAXIMUM_CLIENTS && !atomic_load(&server->ending); i++)
            if (waits[OWN_WAITS + i].revents != 0)
                serve(server, &server->clients[i], waits[OWN_WAITS + i].revents);
        if (waits[1].revents != 0)
            accept_client(server);
    }
}

/* --- the worker --- */

/* The client whose line is next; NULL: the server ends and the queue is empty. Lines that are still in the
 * queue then are answered with an error, as the patience is over. */
static client *take_line(sgm__control_server *server)
{
    pthread_mutex_lock(&server->lock);
    while (server->first == NULL && !atomic_load(&server->ending))
        pthread_cond_wait(&server->more, &server->lock);
    client *c = server->first;
    if (c != NULL)
        server->first = c->next;
    if (server->first == NULL)
        server->last = &server->first;
    pthread_mutex_unlock(&server->lock);
    return c;
}

/* The worker's thread. */
static void *work(void *user)
{
    sgm__control_server *server = user;
    for (client *c; (c = take_line(server)) != NULL;) {
        char *text = answer_with_patience(server, c, c->asked, c->request, strlen(c->request));
        pthread_mutex_lock(&server->lock);
        sgm__free(c->request);
        c->request = NULL;
        c->done = text;
        c->answered = true;
        pthread_mutex_unlock(&server->lock);
        eventfd_write(server->wake, 1);
    }
    return NULL;
}

/* --- start and end --- */

/* Removes a socket that a run left behind when it died. No other run can be using it, as the caller holds
 * the folder's lock; a file that is no socket is not removed. */
static sgm_status remove_stale(const char *path)
{
    struct stat about;
    if (lstat(path, &about) != 0)
        return SGM_OK;
    if (!S_ISSOCK(about.st_mode))
        return sgm_fail(SGM_ERROR_FILE, "'%s' is there already, and is no socket", path);
    return unlink(path) == 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FILE, "'%s' cannot be replaced: %s", path, sgm__errno_text(errno));
}

/* Makes the socket for this user only: its mode is set before it has a name, so that nobody else can
 * connect in between. The backlog is as long as the system allows: while the process is stopped by a
 * signal, connections of clients that gave up stay in it, and when it is full a client cannot even learn
 * whose socket it is. */
static sgm_status listen_here(sgm__control_server *server)
{
    const struct sockaddr *address = (const struct sockaddr *)&server->address;
    const char *path = server->address.sun_path;
    server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->wake < 0 || server->listener < 0 || fchmod(server->listener, 0600) != 0)
        return sgm_fail(SGM_ERROR_FILE, "a socket cannot be made: %s", sgm__errno_text(errno));
    SGM_TRY(remove_stale(path));
    if (bind(server->listener, address, sizeof server->address) != 0)
        return sgm_fail(SGM_ERROR_FILE, "the socket '%s' cannot be made: %s", path, sgm__errno_text(errno));
    if (chmod(path, 0600) == 0 && listen(server->listener, SOMAXCONN) == 0)
        return SGM_OK;
    sgm_status status =
        sgm_fail(SGM_ERROR_FILE, "the socket '%s' cannot be used: %s", path, sgm__errno_text(errno));
    unlink(path);
    return status;
}

/* From here on waits for the trainer's lock end, and so does the worker once its queue is empty. */
static void end_worker(sgm__control_server *server)
{
    atomic_store(&server->ending, true);
    pthread_mutex_lock(&server->lock);
    pthread_cond_broadcast(&server->more);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->worker, NULL);
}

static sgm_status start_threads(sgm__control_server *server)
{
    int error = sgm__thread_start(&server->worker, work, server);
    if (error == 0 && (error = sgm__thread_start(&server->thread, serve_all, server)) != 0)
        end_worker(server);
    if (error == 0)
        return SGM_OK;
    unlink(server->address.sun_path);
    return sgm_fail(SGM_ERROR_STATE, "its thread cannot be made: %s", sgm__errno_text(error));
}

static void free_server(sgm__control_server *server)
{
    if (server->listener >= 0)
        close(server->listener);
    if (server->wake >= 0)
        close(server->wake);
    pthread_cond_destroy(&server->more);
    pthread_mutex_destroy(&server->lock);
    sgm__rate_end(&server->changes);
    sgm__free(server);
}

static sgm_status start(sgm__control_server *server, const char *folder)
{
    size_t room = sizeof server->address.sun_path;
    int length = snprintf(server->address.sun_path, room, "%s/%s", folder, SGM__CONTROL_FILE);
    if (length < 0 || (size_t)length >= room)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the path of a socket has at most %zu bytes, '%s/%s' has %d; choose a shorter one",
                        room - 1, folder, SGM__CONTROL_FILE, length);
    server->address.sun_family = AF_UNIX;
    SGM_TRY(listen_here(server));
    return start_threads(server);
}

/* Without a socket the run goes on: steering it is a convenience, and some file systems have no sockets. */
sgm__control_server *sgm__control_server_start(sgm_trainer *trainer, const char *folder)
{
    sgm__control_server *server = sgm__calloc(1, sizeof *server);
    if (server != NULL) {
        server->listener = server->wake = -1;
        server->call = (sgm__control_call){.trainer = trainer,
                                           .who = "ctl",
                                           .role = SGM__ROLE_ADMIN,
                                           .changes = &server->changes,
                                           .files = true};
        sgm__rate_begin(&server->changes, SGM__RATE_OWNER);
        server->last = &server->first;
        pthread_mutex_init(&server->lock, NULL);
        pthread_cond_init(&server->more, NULL);
        for (size_t i = 0; i < MAXIMUM_CLIENTS; i++)
            server->clients[i].descriptor = -1;
        if (start(server, folder) == SGM_OK)
            return server;
        free_server(server);
    }
    sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "the run takes no commands from other processes: %s",
             sgm_last_error());
    return NULL;
}

/* In this order: the worker answers what is in its queue; the server's thread delivers that and ends; the
 * socket's name goes; connections are closed. */
void sgm__control_server_stop(sgm__control_server *server)
{
    if (server == NULL)
        return;
    end_worker(server); /* clients that wait are told that the run has ended */
    pthread_mutex_lock(&server->lock);
    server->closing = true;
    pthread_mutex_unlock(&server->lock);
    eventfd_write(server->wake, 1);
    pthread_join(server->thread, NULL);
    unlink(server->address.sun_path);
    for (size_t i = 0; i < MAXIMUM_CLIENTS; i++)
        if (server->clients[i].descriptor >= 0)
            drop(&server->clients[i]);
    free_server(server);
}
