/* Connects to a training of another process, sends a question and receives the answer, without ever
 * waiting without a limit.
 *
 * The training may be stopped (Ctrl-Z, a debugger), hang, or be in an iteration that takes long, so the
 * socket does not block: each wait is a poll of LOOK_MILLISECONDS, and check_patience decides between them
 * whether to go on. The question itself says how long the other side may take (`within`, put in by the
 * asker), so that both sides give up at about the same time and a command that nobody waits for any more is
 * withdrawn. */
#include "ctl_ask.h"
#include "config/saved.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Far above any list of values; bounds the memory that a wrong peer can make us take. */
#define MAXIMUM_ANSWER ((size_t)64 << 20)
/* Time between two looks at the clock and at the other process. */
#define LOOK_MILLISECONDS 100
/* Seconds of silence after which a process that is stopped is not waited for. */
#define STOPPED_SECONDS 1.0
/* Seconds beyond the limit in which the other side's own message about it may come: that one says more. */
#define GRACE_SECONDS 2.0

/* A connection and how long it may last. */
typedef struct way {
    const ctl_question *question;
    int descriptor; /* does not block */
    long process;   /* number of the process at the other end; 0: not connected yet */
    double began;   /* a time of sgm__now */
} way;

/* --- what may go wrong --- */

/* The folder may be one of runs, of which one was meant. */
static sgm_status nothing_runs(const char *folder)
{
    if (has_file(folder, "config.yaml"))
        return sgm_fail(SGM_ERROR_STATE,
                        "nothing runs in '%s' now; 'sigma train %s --resume' goes on with that run", folder,
                        folder);
    char *run = newest_run(folder, "journal.jsonl");
    sgm_status status = run != NULL ? sgm_fail(SGM_ERROR_NOT_FOUND, FOLDER_OF_RUNS, folder, run)
                                    : sgm_fail(SGM_ERROR_STATE, "nothing runs in '%s' now", folder);
    sgm__free(run);
    return status;
}

/* Translates the error of connect. A socket file without a listener (ECONNREFUSED) is left by a run that
 * was killed. */
static sgm_status no_connection(const char *folder, int error)
{
    if (error == ENOENT && !sgm__file_exists(folder))
        return sgm_fail(SGM_ERROR_NOT_FOUND, "there is no folder '%s'", folder);
    if (error == ENOENT || error == ECONNREFUSED)
        return nothing_runs(folder);
    return sgm_fail(SGM_ERROR_FILE, "the training in '%s' cannot be reached: %s", folder,
                    sgm__errno_text(error));
}

static sgm_status cut_off(void)
{
    return sgm_fail(SGM_ERROR_STATE, "the run ended before it answered");
}

/* Whether Linux shows the process in state 'T' (stopped) or 't' (traced). The state follows the name,
 * which stands in parentheses in /proc/PID/stat and may itself contain one; so the last one counts. */
static bool is_stopped(long process)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = process > 0 ? fopen(path, "r") : NULL;
    size_t length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[length] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && strncasecmp(name_end, ") t", 3) == 0;
}

/* Fails if it is no use to wait longer, with a message that says what became of the command. */
static sgm_status check_patience(const way *w)
{
    const ctl_question *q = w->question;
    double waited = sgm__now() - w->began;
    if (q->is_withdrawn != NULL && q->is_withdrawn(q->user))
        return sgm_fail(SGM_ERROR_INTERRUPTED, "the command was withdrawn, unless it had begun, as log.txt "
                                               "tells then");
    if (waited > STOPPED_SECONDS && is_stopped(w->process))
        return sgm_fail(SGM_ERROR_STATE,
                        "process %ld, which trains in '%s', is stopped and does not answer; 'kill -CONT %ld' "
                        "lets it go on. The command is withdrawn, unless it had begun, as log.txt tells then",
                        w->process, q->folder, w->process);
    if (waited <= q->seconds + GRACE_SECONDS)
        return SGM_OK;
    if (w->process == 0)
        return sgm_fail(SGM_ERROR_STATE,
                        "the training in '%s' has let nobody in for %.0f seconds (%s), and many wait; is "
                        "its process stopped? The command was not sent",
                        q->folder, waited, q->limit);
    return sgm_fail(SGM_ERROR_STATE,
                    "the training in '%s' (process %ld) has not answered for %.0f seconds (%s). The "
                    "command is withdrawn, unless it has begun, as log.txt tells then",
                    q->folder, w->process, waited, q->limit);
}

/* Waits until the socket can be read or written, as `events` says, or patience ends. */
static sgm_status wait_for(const way *w, short events)
{
    struct pollfd look = {.fd = w->descriptor, .events = events};
    while (poll(&look, 1, LOOK_MILLISECONDS) <= 0)
        SGM_TRY(check_patience(w));
    return SGM_OK;
}

/* --- there and back --- */

/* Connects; the kernel's queue of waiting connections may be full for a while (EAGAIN on a socket of this
 * kind). The peer's process number comes from the kernel, not from the peer. */
static sgm_status connect_patiently(way *w, const struct sockaddr_un *address)
{
    struct ucred who;
    socklen_t size = sizeof who;
    while (connect(w->descriptor, (const struct sockaddr *)address, sizeof *address) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            return no_connection(w->question->folder, errno);
        SGM_TRY(check_patience(w));
        poll(NULL, 0, LOOK_MILLISECONDS);
    }
    if (getsockopt(w->descriptor, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
        w->process = who.pid;
    return SGM_OK;
}

/* The path of a Unix socket has room for about 100 bytes only. */
static sgm_status connect_to(way *w)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t room = sizeof address.sun_path;
    const char *reach = w->question->reach != NULL ? w->question->reach : w->question->folder;
    int length = snprintf(address.sun_path, room, "%s/control.sock", reach);
    if (length < 0 || (size_t)length >= room)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the path of a socket has at most %zu bytes, '%s/control.sock' has %d; go nearer, or "
                        "make a link",
                        room - 1, reach, length);
    w->descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return w->descriptor >= 0 ? connect_patiently(w, &address) : no_connection(w->question->folder, errno);
}

/* Whether errno says that the socket is only not ready yet. */
static bool has_to_wait(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* MSG_NOSIGNAL: a peer that closed its end is an error, not a SIGPIPE. */
static sgm_status send_all(const way *w, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t count = send(w->descriptor, text, length, MSG_NOSIGNAL);
        if (count < 0 && !has_to_wait())
            return cut_off();
        if (count < 0) {
            SGM_TRY(wait_for(w, POLLOUT));
            continue;
        }
        text += count;
        length -= (size_t)count;
    }
    return SGM_OK;
}

/* Appends up to the first line end; bytes behind it are dropped, as one question has one answer. */
static sgm_status receive_line(const way *w, sgm__text *line)
{
    char part[4096];
    for (;;) {
        ssize_t count = recv(w->descriptor, part, sizeof part, 0);
        if (count == 0 || (count < 0 && !has_to_wait()))
            return cut_off();
        if (count < 0) {
            SGM_TRY(wait_for(w, POLLIN));
            continue;
        }
        const char *end = memchr(part, '\n', (size_t)count);
        sgm__text_append_bytes(line, part, end != NULL ? (size_t)(end - part) : (size_t)count);
        if (line->failed)
            return SGM_ERROR_MEMORY;
        if (end != NULL)
            return SGM_OK;
        if (line->length > MAXIMUM_ANSWER)
            return sgm_fail(SGM_ERROR_FORMAT, "the answer has more than %zu bytes", MAXIMUM_ANSWER);
    }
}

/* One connection for one question; it is closed on every way out. */
sgm_status ctl_ask(const ctl_question *question, sgm__text *line)
{
    way w = {.question = question, .descriptor = -1, .began = sgm__now()};
    sgm_status status = connect_to(&w);
    if (status == SGM_OK)
        status = send_all(&w, question->text, strlen(question->text));
    if (status == SGM_OK)
        status = send_all(&w, "\n", 1);
    if (status == SGM_OK)
        status = receive_line(&w, line);
    if (w.descriptor >= 0)
        close(w.descriptor);
    return status;
}
