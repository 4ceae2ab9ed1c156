/* A client of `sigma mcp` for tests, over pipes, and trainings for it to look at. Included once by each test.
 */
#ifndef SIGMA_TESTS_CLI_MCP_CLIENT_H
#define SIGMA_TESTS_CLI_MCP_CLIENT_H

#include "test.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 60000 /* milliseconds for one answer */

typedef struct client {
    pid_t process;
    int in, out; /* of the server */
    char *line;  /* what was read and not taken yet */
    size_t length, capacity;
    int64_t id; /* of the newest request */
} client;

/* Starts `sigma` with these words, NULL at the end; `in` and `out` NULL: /dev/null. */
static pid_t start_sigma(const char *const *words, int *in, int *out)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    const char *build = getenv("SIGMA_BUILD_DIR"), *arguments[24] = {"sigma"};
    char program[512];
    CHECK(build != NULL);
    snprintf(program, sizeof program, "%s/sigma", build);
    for (size_t i = 0; words[i] != NULL && i < 22; i++)
        arguments[i + 1] = words[i];
    CHECK(in == NULL || (pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0));
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no training behind */
        int null = open("/dev/null", O_RDWR);
        dup2(in != NULL ? to[0] : null, STDIN_FILENO);
        dup2(in != NULL ? from[1] : null, STDOUT_FILENO);
        if (in == NULL || getenv("SIGMA_TEST_SHOW") == NULL)
            dup2(null, STDERR_FILENO);
        execv(program, (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    CHECK(process > 0);
    if (in != NULL) {
        close(to[0]);
        close(from[1]);
        *in = to[1];
        *out = from[0];
    }
    return process;
}

static client *start_server(const char *folder, const char *role, const char *by)
{
    const char *words[] = {"mcp", folder, "--role", role, by != NULL ? "--by" : NULL, by, NULL};
    client *c = calloc(1, sizeof *c);
    signal(SIGPIPE, SIG_IGN);
    CHECK(c != NULL);
    c->process = start_sigma(words, &c->in, &c->out);
    return c;
}

__attribute__((unused)) static void send_bytes(const client *c, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(c->in, bytes, count);
        CHECK(written > 0);
        bytes += written;
        count -= (size_t)written;
    }
}

static void send_line(const client *c, const char *text)
{
    send_bytes(c, text, strlen(text));
    send_bytes(c, "\n", 1);
}

/* The next line; NULL: there is none within so many milliseconds, or the server has closed its output. Lives
 * until the next call. */
static char *read_line(client *c, int milliseconds)
{
    static char *line;
    for (;;) {
        char *end = c->length > 0 ? memchr(c->line, '\n', c->length) : NULL;
        if (end != NULL) {
            size_t size = (size_t)(end - c->line);
            free(line);
            line = strndup(c->line, size);
            memmove(c->line, end + 1, c->length -= size + 1);
            return line;
        }
        struct pollfd look = {.fd = c->out, .events = POLLIN};
        if (poll(&look, 1, milliseconds) <= 0)
            return NULL;
        if (c->capacity < c->length + 65536)
            CHECK((c->line = realloc(c->line, c->capacity = 2 * c->length + 65536)) != NULL);
        ssize_t count = read(c->out, c->line + c->length, 65536);
        if (count <= 0)
            return NULL;
        c->length += (size_t)count;
    }
}

static json_t *read_message(client *c)
{
    const char *line = read_line(c, PATIENCE);
    json_t *message = line != NULL ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (message == NULL)
        TEST_FAIL("no message came, but '%.300s'", line != NULL ? line : "nothing");
    CHECK_STR(json_string_value(json_object_get(message, "jsonrpc")), "2.0");
    return message;
}

/* Sends a line and reads the answer, of which it must be the next one. */
__attribute__((unused)) static json_t *tell(client *c, const char *text)
{
    send_line(c, text);
    return read_message(c);
}

/* Sends a request; `params`: JSON as text. Its id is c->id. */
static void request(client *c, const char *method, const char *params)
{
    char *line = NULL;
    CHECK(asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"%s\",\"params\":%s}",
                   (long long)++c->id, method, params) > 0);
    send_line(c, line);
    free(line);
}

/* Sends a request and waits for its answer, over notifications. */
static json_t *ask(client *c, const char *method, const char *params)
{
    request(c, method, params);
    for (;;) {
        json_t *answer = read_message(c);
        if (json_integer_value(json_object_get(answer, "id")) == c->id)
            return answer;
        CHECK(json_object_get(answer, "method") != NULL);
        json_decref(answer);
    }
}

__attribute__((unused)) static json_t *begin_as(client *c, const char *version)
{
    char params[200];
    snprintf(params, sizeof params,
             "{\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{\"name\":\"tester\","
             "\"version\":\"1\"}}",
             version);
    json_t *answer = ask(c, "initialize", params);
    send_line(c, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    return answer;
}

/* A server that a handshake was made with. */
__attribute__((unused)) static client *begin_server(const char *folder, const char *role)
{
    client *c = start_server(folder, role, NULL);
    json_decref(begin_as(c, "2025-11-25"));
    return c;
}

/* Waits for the end of a server; returns the exit code, or -1 if it did not end in time. */
static int await_end(client *c)
{
    int status = 0;
    pid_t ended = 0;
    for (int i = 0; i < 500 && (ended = waitpid(c->process, &status, WNOHANG)) == 0; i++)
        usleep(10000);
    if (ended == 0) {
        kill(c->process, SIGKILL);
        waitpid(c->process, &status, 0);
    }
    close(c->out);
    free(c->line);
    free(c);
    return ended != 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Ends the input; returns as await_end. */
static int end_server(client *c)
{
    close(c->in);
    return await_end(c);
}

/* Sends a signal while the input is open; returns as await_end. */
__attribute__((unused)) static int terminate_server(client *c)
{
    int in = c->in;
    kill(c->process, SIGTERM);
    int code = await_end(c);
    close(in);
    return code;
}

/* The member of a path such as "result.tools"; NULL: there is none. */
static json_t *at(const json_t *value, const char *path)
{
    char part[100];
    json_t *found = (json_t *)(uintptr_t)value;
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        found =
            json_is_array(found) ? json_array_get(found, (size_t)atoi(part)) : json_object_get(found, part);
        path += length + (path[length] == '/');
    }
    return found;
}

static const char *text_at(const json_t *value, const char *path)
{
    const char *text = json_string_value(at(value, path));
    return text != NULL ? text : "(none)";
}

/* Calls a tool. What it says is taken out of the answer; `failed`: whether it is to say an error. Its text
 * must be what the object says. */
static json_t *call(client *c, const char *tool, const char *arguments, bool failed)
{
    char *params = NULL;
    CHECK(asprintf(&params, "{\"name\":\"%s\",\"arguments\":%s}", tool, arguments) > 0);
    json_t *answer = ask(c, "tools/call", params);
    free(params);
    if (json_is_true(at(answer, "result/isError")) != failed) {
        char *shown = json_dumps(answer, 0);
        TEST_FAIL("%s %s: %s", tool, arguments, shown);
    }
    json_t *result =
        json_incref(failed ? at(answer, "result/content/0/text") : at(answer, "result/structuredContent"));
    CHECK(result != NULL);
    if (!failed) {
        json_t *text = json_loads(text_at(answer, "result/content/0/text"), 0, NULL);
        CHECK(json_equal(text, result));
        json_decref(text);
    }
    json_decref(answer);
    return result;
}

/* Calls a tool that must say an error with this text. */
__attribute__((unused)) static void refused(client *c, const char *tool, const char *arguments,
                                            const char *part)
{
    json_t *text = call(c, tool, arguments, true);
    if (strstr(json_string_value(text), part) == NULL)
        TEST_FAIL("%s %s: '%s' has no '%s'", tool, arguments, json_string_value(text), part);
    json_decref(text);
}

/* Whether an answer is the error of a code, with a text. */
__attribute__((unused)) static void is_error(json_t *answer, int code, const char *part)
{
    CHECK_INT(json_integer_value(at(answer, "error/code")), code);
    if (strstr(text_at(answer, "error/message"), part) == NULL)
        TEST_FAIL("'%s' has no '%s'", text_at(answer, "error/message"), part);
    json_decref(answer);
}

/* --- trainings --- */

/* A new empty folder. */
static const char *new_folder(void)
{
    static char folder[32];
    strcpy(folder, "/tmp/sigma-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    return folder;
}

static void remove_folder(const char *folder)
{
    char command[200];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* Starts a training of iris flowers in FOLDER/NAME; with `last` NULL or another word of the command line. */
static pid_t start_training(const char *folder, const char *name, const char *epochs, const char *last)
{
    char place[200], file[512];
    snprintf(place, sizeof place, "folder=%s/%s", folder, name);
    snprintf(file, sizeof file, "%s/examples/iris.yaml", getenv("SIGMA_SOURCE_DIR"));
    const char *words[] = {"train",   file,        place, epochs, "checkpoint_every=1000",
                           "--quiet", "--no-keys", last,  NULL};
    return start_sigma(words, NULL, NULL);
}

__attribute__((unused)) static void train_whole(const char *folder, const char *name, const char *word)
{
    int status;
    waitpid(start_training(folder, name, "epochs=20", word), &status, 0);
    CHECK_INT(status, 0);
}

__attribute__((unused)) static void end_training(pid_t process, int signal_number)
{
    kill(process, signal_number);
    waitpid(process, NULL, 0);
}

#endif
