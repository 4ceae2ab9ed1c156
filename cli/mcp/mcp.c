/* `sigma mcp`: a server of the Model Context Protocol over standard input and output, by which agents look at
 * runs and steer trainings.
 *
 * It is a companion, no part of any training: it reads the files of runs, and asks trainings over the sockets
 * in their folders. Standard output has the protocol alone; messages go to standard error. */
#include "mcp/mcp.h"
#include "config/arguments.h"
#include "mcp/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Seconds for which requests that wait for a training still may wait when the input has ended: clients end a
 * server that stays for longer than about two. */
#define SECONDS_BEHIND_THE_END 1.0

static const char usage_text[] =
    "Usage: sigma mcp RUN|FOLDER [--role ROLE] [--by NAME]\n\n"
    "Serves a run, or the runs in a folder, to an agent, by the Model Context Protocol over standard input\n"
    "and output. A program that talks to agents starts it by itself, from a configuration such as\n\n"
    "  {\"mcpServers\": {\"sigma\": {\"command\": \"sigma\",\n"
    "                             \"args\": [\"mcp\", \"/home/me/runs\", \"--role\", \"steer\"]}}}\n\n"
    "The agent sees runs, curves, settings, layers, logs and journals and, as its role allows, changes\n"
    "trainings that run; their journals say who did it and why. Nothing outside of the folder is touched.\n\n"
    "  --role ROLE    what the agent may do: look (default), only read; steer, also set values, attach and\n"
    "                 detach rules, pause, save, restore, reset, stop; admin, also replay\n"
    "  --by NAME      how journals are to call the agent, after 'mcp:' (default: as its program says)\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* --- the loop --- */

/* Signals are blocked and read from a descriptor, so that the loop sees them beside its input. */
static int signals_descriptor(void)
{
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    signal(SIGPIPE, SIG_IGN); /* a client that has gone is an error of write */
    return pthread_sigmask(SIG_BLOCK, &ending, NULL) == 0 ? signalfd(-1, &ending, SFD_CLOEXEC) : -1;
}

/* Until the input ends (true), or a signal comes, or nobody reads the output any more. */
static bool serve(mcp_server *server)
{
    struct pollfd looks[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = server->output.ending, .events = POLLIN}};
    rpc_input input = {0};
    static char bytes[1 << 16];
    ssize_t count = 1;
    while (count > 0 && !atomic_load(&server->output.broken)) {
        if (poll(looks, 2, -1) < 0) {
            if (errno != EINTR)
                break;
            continue;
        }
        if (looks[1].revents != 0)
            break;
        count = read(STDIN_FILENO, bytes, sizeof bytes);
        if (count > 0)
            rpc_feed(&input, bytes, (size_t)count, mcp_take_line, server);
        else if (count < 0 && errno == EINTR)
            count = 1;
    }
    sgm__text_free(&input.line);
    return count == 0;
}

static int start(mcp_server *server, const char *path)
{
    server->output = (rpc_output){.descriptor = STDOUT_FILENO, .ending = signals_descriptor()};
    pthread_mutex_init(&server->output.lock, NULL);
    if (server->output.ending < 0)
        return usage_error("mcp", "no signals can be received: %s", sgm__errno_text(errno));
    if (mcp_folder_open(&server->folder, path) != SGM_OK)
        return report_error("mcp", CLI_USAGE);
    if (mcp_work_begin(server) != SGM_OK)
        return report_error("mcp", CLI_FAILED);
    bool ended = serve(server);
    mcp_work_end(server, ended ? SECONDS_BEHIND_THE_END : 0);
    return CLI_OK;
}

/* --- the command line --- */

int mcp_run_command(int argc, char **argv)
{
    const char *role = "look", *by = NULL;
    const argument_rule rules[] = {{"--role", ARGUMENT_TEXT, &role}, {"--by", ARGUMENT_TEXT, &by}};
    arguments a = {.rules = rules, .rule_count = 2, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        mcp_server *server = sgm__calloc(1, sizeof *server);
        if (server == NULL) {
            code = report_error("mcp", CLI_FAILED);
        } else if (a.word_count != 1) {
            code =
                usage_error("mcp", "expected one folder, of a run or of runs, got %zu words", a.word_count);
        } else if (sgm__role_parse(role, &server->role) != SGM_OK) {
            code = usage_error("mcp", "--role: expected look, steer or admin, got '%s'", role);
        } else if (by != NULL && by[strspn(by, " ")] == '\0') {
            code = usage_error("mcp", "--by: expected a name");
        } else {
            server->by = by;
            code = start(server, a.words[0]);
            mcp_folder_close(&server->folder);
            sgm__free(server->client);
        }
        sgm__free(server);
    }
    arguments_free(&a);
    return code;
}
