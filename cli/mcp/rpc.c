/* Lines in, lines out, and what makes a message of JSON-RPC 2.0. */
#include "mcp/rpc.h"
#include "text/json_text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

/* --- in --- */

static bool is_blank(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0')
            return false;
    return true;
}

/* Gives the line that has ended, and is ready for the next one. */
static void end_line(rpc_input *input, rpc_taker take, void *user)
{
    if (input->skipping || input->line.failed)
        take(user, NULL, 0);
    else if (!is_blank(input->line.data, input->line.length))
        take(user, input->line.data, input->line.length);
    input->skipping = false;
    sgm__text_free(&input->line);
}

void rpc_feed(rpc_input *input, const char *bytes, size_t count, rpc_taker take, void *user)
{
    while (count > 0) {
        const char *end = memchr(bytes, '\n', count);
        size_t length = end != NULL ? (size_t)(end - bytes) : count;
        if (input->line.length + length > RPC_LONGEST_LINE) {
            sgm__text_free(&input->line);
            input->skipping = true;
        }
        if (!input->skipping)
            sgm__text_append_bytes(&input->line, bytes, length);
        if (end != NULL)
            end_line(input, take, user);
        length += end != NULL;
        bytes += length;
        count -= length;
    }
}

/* How deep lists and objects are nested at most, brackets in texts apart. */
static size_t depth_of(const char *text, size_t length)
{
    size_t depth = 0, deepest = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (quoted) {
            i += text[i] == '\\'; /* the character behind it is no end of the text */
            quoted = i < length && text[i] != '"';
        } else if (text[i] == '"') {
            quoted = true;
        } else if (text[i] == '[' || text[i] == '{') {
            depth++;
            deepest = depth > deepest ? depth : deepest;
        } else if ((text[i] == ']' || text[i] == '}') && depth > 0) {
            depth--;
        }
    }
    return deepest;
}

json_t *rpc_parse(const char *text, size_t length, int *code)
{
    json_error_t error;
    *code = RPC_INVALID_REQUEST;
    if (depth_of(text, length) > RPC_DEEPEST) {
        sgm_fail(SGM_ERROR_FORMAT, "the message is nested more than %d deep", RPC_DEEPEST);
        return NULL;
    }
    json_t *message = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    *code = RPC_PARSE_ERROR;
    if (message == NULL)
        sgm_fail(SGM_ERROR_FORMAT, "the line is no JSON: column %d: %.200s", error.column,
                 sgm__json_mistake(&error));
    return message;
}

static rpc_kind fail_wrong(const char *what)
{
    sgm_fail(SGM_ERROR_FORMAT, "%s", what);
    return RPC_WRONG;
}

/* A request has an id, which is a text or a whole number; a notification has none. */
rpc_kind rpc_read(const json_t *message, const json_t **id, int *code)
{
    *id = NULL;
    *code = RPC_INVALID_REQUEST;
    if (!json_is_object(message))
        return fail_wrong("a message is a JSON object");
    const json_t *given = json_object_get(message, "id"), *method = json_object_get(message, "method"),
                 *params = json_object_get(message, "params");
    const char *version = json_string_value(json_object_get(message, "jsonrpc"));
    if (json_is_string(given) || json_is_integer(given))
        *id = given;
    if (version == NULL || strcmp(version, "2.0") != 0)
        return fail_wrong("the member 'jsonrpc' must be \"2.0\"");
    if (method == NULL && (json_object_get(message, "result") != NULL || json_object_get(message, "error")))
        return RPC_RESPONSE;
    if (given != NULL && *id == NULL)
        return fail_wrong("the member 'id' must be a text or a whole number");
    if (!json_is_string(method))
        return fail_wrong("the member 'method' must be a text");
    *code = RPC_INVALID_PARAMETERS;
    if (params != NULL && !json_is_object(params))
        return fail_wrong("the member 'params' must be an object");
    return *id != NULL ? RPC_REQUEST : RPC_NOTIFICATION;
}

/* --- out --- */

/* Waits until a pipe takes PIPE_BUF bytes, so that a write of no more cannot block; false: nobody is to wait
 * any more. */
static bool wait_to_write(const rpc_output *output)
{
    struct pollfd looks[] = {{.fd = output->descriptor, .events = POLLOUT},
                             {.fd = output->ending, .events = POLLIN}};
    while (poll(looks, 2, -1) < 0)
        if (errno != EINTR)
            return false;
    return looks[0].revents != 0;
}

static bool write_all(const rpc_output *output, const char *text, size_t length)
{
    while (length > 0) {
        if (!wait_to_write(output))
            return false;
        ssize_t count = write(output->descriptor, text, length < PIPE_BUF ? length : PIPE_BUF);
        if (count < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        text += count > 0 ? count : 0;
        length -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

/* With the lock. A message that there is no memory for is lost, so the other side would wait for ever: the
 * output is then broken. */
static void send_locked(rpc_output *output, const json_t *message)
{
    sgm__text line = {0};
    sgm__json_append(&line, message);
    sgm__text_append(&line, "\n");
    if (atomic_load(&output->broken) || line.failed || !write_all(output, line.data, line.length))
        atomic_store(&output->broken, true);
    sgm__text_free(&line);
}

void rpc_send(rpc_output *output, json_t *message)
{
    pthread_mutex_lock(&output->lock);
    send_locked(output, message);
    pthread_mutex_unlock(&output->lock);
    json_decref(message);
}

rpc_batch *rpc_batch_create(size_t count)
{
    rpc_batch *batch = sgm__calloc(1, sizeof *batch);
    if (batch != NULL)
        *batch = (rpc_batch){.answers = json_array(), .open = count};
    return batch;
}

void rpc_answer(rpc_output *output, rpc_batch *batch, json_t *answer)
{
    if (batch == NULL) {
        if (answer != NULL)
            rpc_send(output, answer);
        return;
    }
    pthread_mutex_lock(&output->lock);
    if (answer != NULL)
        json_array_append_new(batch->answers, answer);
    if (--batch->open == 0) {
        if (json_array_size(batch->answers) > 0)
            send_locked(output, batch->answers);
        json_decref(batch->answers);
        sgm__free(batch);
    }
    pthread_mutex_unlock(&output->lock);
}

/* jansson counts references, so that a request's id can be put into its answer. */
static json_t *answer_to(const json_t *id)
{
    json_t *answer = json_object();
    json_object_set_new(answer, "jsonrpc", json_string("2.0"));
    json_object_set_new(answer, "id", id != NULL ? json_deep_copy(id) : json_null());
    return answer;
}

json_t *rpc_result(const json_t *id, json_t *result)
{
    json_t *answer = answer_to(id);
    json_object_set_new(answer, "result", result);
    return answer;
}

/* Messages may quote what came in, and names of files, which need not be UTF-8. */
json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data)
{
    json_t *answer = answer_to(id), *error = json_object();
    char *text = sgm__strdup(message);
    json_object_set_new(error, "code", json_integer(code));
    json_object_set_new(error, "message", json_string(text != NULL ? sgm__make_printable(text) : ""));
    if (data != NULL)
        json_object_set_new(error, "data", data);
    json_object_set_new(answer, "error", error);
    sgm__free(text);
    return answer;
}

json_t *rpc_notification(const char *method, json_t *params)
{
    json_t *message = json_object();
    json_object_set_new(message, "jsonrpc", json_string("2.0"));
    json_object_set_new(message, "method", json_string(method));
    json_object_set_new(message, "params", params);
    return message;
}
