/* The control socket of a run: a thread that polls its clients. Only an answer takes the trainer's lock, so
 * that a client that sends nothing, or does not read, delays no step. */
#include "training/control_socket.h"
#include "training/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST_CLIENTS 16 /* of one more, the one that has been silent for longest goes */
#define OWN_WAITS 2     /* of poll: the wake-up and the listener, before the clients */

typedef struct client {
    int descriptor; /* -1: free */
    double active;  /* when it sent or took something last */
    char *input;    /* SGM__LONGEST_COMMAND + 1 bytes */
    size_t length;
    char *output; /* NULL: nothing is left to send */
    size_t sent, output_length;
    bool leaving; /* once the output is sent */
} client;

struct sgm__control_server {
    sgm__control_call call;
    atomic_bool ending;
    struct sockaddr_un address;
    int listener, wake;
    pthread_t thread;
    client clients[MOST_CLIENTS];
};

/* --- clients --- */

static void drop(client *c)
{
    close(c->descriptor);
    sgm__free(c->input);
    sgm__free(c->output);
    *c = (client){.descriptor = -1};
}

/* Without a descriptor to spare the client stays in the queue, and poll would come back at once. */
static void accept_client(sgm__control_server *server)
{
    int descriptor = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
            poll(&(struct pollfd){.fd = server->wake, .events = POLLIN}, 1, 100);
        return;
    }
    client *place = &server->clients[0];
    for (size_t i = 0; i < MOST_CLIENTS && place->descriptor >= 0; i++) {
        client *c = &server->clients[i];
        if (c->descriptor < 0 || c->active < place->active)
            place = c;
    }
    if (place->descriptor >= 0)
        drop(place);
    *place = (client){
        .descriptor = descriptor, .active = sgm__now(), .input = sgm__alloc(SGM__LONGEST_COMMAND + 1)};
    if (place->input == NULL)
        drop(place);
}

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

/* Takes `text` over. */
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

/* Answers the lines that are there, one after the other; the next one when the answer is on its way. */
static void answer_lines(sgm__control_server *server, client *c)
{
    while (c->descriptor >= 0 && c->output == NULL && !atomic_load(&server->ending)) {
        const char *end = memchr(c->input, '\n', c->length);
        if (end == NULL)
            break;
        size_t length = (size_t)(end - c->input);
        char *text = sgm__control_answer(&server->call, c->input, length);
        c->length -= length + 1;
        memmove(c->input, end + 1, c->length);
        answer(c, text);
    }
    if (c->descriptor >= 0 && c->output == NULL && c->length > SGM__LONGEST_COMMAND) {
        c->leaving = true;
        answer(c, sgm__format("{\"ok\":false,\"error\":\"a command has at most %zu bytes\"}",
                              SGM__LONGEST_COMMAND));
    }
}

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

/* A client that has an answer to take is not read from. */
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

static void *serve_all(void *user)
{
    sgm__control_server *server = user;
    while (!atomic_load(&server->ending)) {
        struct pollfd waits[OWN_WAITS + MOST_CLIENTS] = {{.fd = server->wake, .events = POLLIN},
                                                         {.fd = server->listener, .events = POLLIN}};
        for (size_t i = 0; i < MOST_CLIENTS; i++) {
            const client *c = &server->clients[i];
            waits[OWN_WAITS + i] =
                (struct pollfd){.fd = c->descriptor, .events = c->output != NULL ? POLLOUT : POLLIN};
        }
        if (poll(waits, OWN_WAITS + MOST_CLIENTS, -1) < 0)
            continue;
        for (size_t i = 0; i < MOST_CLIENTS && !atomic_load(&server->ending); i++)
            if (waits[OWN_WAITS + i].revents != 0)
                serve(server, &server->clients[i], waits[OWN_WAITS + i].revents);
        if (waits[1].revents != 0)
            accept_client(server);
    }
    return NULL;
}

/* --- start and end --- */

/* Only what a run that has died left behind is in the way: the folder's lock keeps living ones out. */
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

/* The mode is set before there is a name, so that nobody else can connect in between. */
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
    if (chmod(path, 0600) == 0 && listen(server->listener, MOST_CLIENTS) == 0)
        return SGM_OK;
    sgm_status status =
        sgm_fail(SGM_ERROR_FILE, "the socket '%s' cannot be used: %s", path, sgm__errno_text(errno));
    unlink(path);
    return status;
}

/* Signals are for the program's own threads. */
static sgm_status start_thread(sgm__control_server *server)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&server->thread, NULL, serve_all, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
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
    return start_thread(server);
}

sgm__control_server *sgm__control_server_start(sgm_trainer *trainer, const char *folder)
{
    sgm__control_server *server = sgm__calloc(1, sizeof *server);
    if (server != NULL) {
        server->listener = server->wake = -1;
        server->call =
            (sgm__control_call){.trainer = trainer, .who = "ctl", .files = true, .ending = &server->ending};
        for (size_t i = 0; i < MOST_CLIENTS; i++)
            server->clients[i].descriptor = -1;
        if (start(server, folder) == SGM_OK)
            return server;
        free_server(server);
    }
    sgm__log(SGM_LOG_WARNING, trainer->name, "the run takes no commands from other processes: %s",
             sgm_last_error());
    return NULL;
}

void sgm__control_server_stop(sgm__control_server *server)
{
    if (server == NULL)
        return;
    atomic_store(&server->ending, true);
    eventfd_write(server->wake, 1);
    pthread_join(server->thread, NULL);
    unlink(server->address.sun_path);
    for (size_t i = 0; i < MOST_CLIENTS; i++)
        if (server->clients[i].descriptor >= 0)
            drop(&server->clients[i]);
    free_server(server);
}
