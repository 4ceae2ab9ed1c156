/* `sigma mcp` with input that no client should send: it answers with errors, keeps its memory, and goes on.
 */
#include "mcp_client.h"

/* The server still answers, which a request shows that comes behind the rest. */
static void still_answers(client *c)
{
    json_t *answer = ask(c, "ping", "{}");
    CHECK(json_is_object(at(answer, "result")));
    json_decref(answer);
}

TEST(lines_that_are_no_messages)
{
    static const struct {
        const char *line;
        int code;
        const char *part;
    } wrong[] = {
        {"{", -32700, "the line is no JSON: column 1"},
        {"hello", -32700, "the line is no JSON"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", -32700, "duplicate"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} 1", -32700, "the line is no JSON"},
        {"{\"a\":\"\xff\"}", -32700, "the line is no JSON"},
        {"{\"a\":\"\xc0\xaf\"}", -32700, "the line is no JSON"},
        {"{\"a\":\"\xed\xa0\x80\"}", -32700, "the line is no JSON"},
        {"{\"a\":\"\\ud800\"}", -32700, "the line is no JSON"},
        {"{\"a\":\"\\u0000\"}", -32700, "the line is no JSON"},
        {"{\"a\":1e999}", -32700, "the line is no JSON"},
        {"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"ping\"}", -32700,
         "the line is no JSON"},
        {"\xef\xbb\xbf{}", -32700, "the line is no JSON"},
        {"1", -32600, "a message is a JSON object"},
        {"null", -32600, "a message is a JSON object"},
        {"\"ping\"", -32600, "a message is a JSON object"},
        {"[]", -32600, "has no batches"},
        {"{}", -32600, "the member 'jsonrpc' must be"},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600, "the member 'jsonrpc' must be"},
        {"{\"jsonrpc\":2,\"id\":1,\"method\":\"ping\"}", -32600, "the member 'jsonrpc' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", -32600, "the member 'method' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -32600, "the member 'method' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600, "the member 'id' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600, "the member 'id' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600, "the member 'id' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", -32600, "the member 'id' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", -32600, "the member 'id' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", -32602,
         "the member 'params' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":\"x\"}", -32602,
         "the member 'params' must be"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"\"}", -32601, "there is no method ''"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/steal\"}", -32601,
         "there is no method 'tools/steal'"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"logging/setLevel\"}", -32601, "there is no method"},
    };
    const char *folder = new_folder();
    client *c = begin_server(folder, "look");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        is_error(tell(c, wrong[i].line), wrong[i].code, wrong[i].part);
    /* What is no request gets no answer: notifications, answers, blank lines. */
    static const char *const quiet[] = {
        "",
        "  \t \r",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/none\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":1,\"message\":\"x\"}}"};
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
        send_line(c, quiet[i]);
    still_answers(c);
    /* An id of any kind that is allowed comes back as it was. */
    json_t *answer = tell(c, "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\"}\r");
    CHECK_STR(text_at(answer, "id"), "");
    json_decref(answer);
    answer = tell(c, "{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"method\":\"ping\"}");
    CHECK(json_integer_value(at(answer, "id")) == INT64_MIN);
    json_decref(answer);
    answer = tell(c, "{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\xa4\\n\",\"method\":\"ping\"}");
    CHECK_STR(text_at(answer, "id"), "\xc3\xa4\n");
    json_decref(answer);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

TEST(nesting_is_bounded_and_brackets_in_texts_do_not_count)
{
    char line[4096] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":";
    size_t begin = strlen(line);
    const char *folder = new_folder();
    client *c = begin_server(folder, "look");
    for (size_t depth = 62; depth <= 63; depth++) { /* two more are around it */
        memset(line + begin, '[', depth);
        memset(line + begin + depth, ']', depth);
        strcpy(line + begin + 2 * depth, "}}");
        json_t *answer = tell(c, line);
        CHECK((at(answer, "result") != NULL) == (depth == 62));
        json_decref(answer);
    }
    strcpy(line + begin, "\"");
    memset(line + begin + 1, '[', 1000);
    strcpy(line + begin + 1001, "\\\"[\"}}");
    json_t *answer = tell(c, line);
    CHECK(at(answer, "result") != NULL);
    json_decref(answer);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

/* Bytes of memory that a process has in use. */
static long memory_of(pid_t process)
{
    char path[64];
    long pages = 0, resident = 0;
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)process);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &pages, &resident) == 2);
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

TEST(a_line_of_100_megabytes_is_refused_and_not_kept)
{
    static char part[1 << 20];
    const char *folder = new_folder();
    client *c = begin_server(folder, "look");
    memset(part, '[', sizeof part);
    still_answers(c);
    long before = memory_of(c->process);
    for (int i = 0; i < 100; i++)
        send_bytes(c, part, sizeof part);
    CHECK(memory_of(c->process) < before + (16l << 20));
    is_error(tell(c, ""), -32600, "the line has more than 1048576 bytes");
    still_answers(c);
    /* The longest line that is taken. */
    memset(part, ' ', sizeof part);
    static const char small[] = "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"ping\"}";
    memcpy(part, small, sizeof small - 1);
    send_bytes(c, part, sizeof part);
    json_t *answer = tell(c, "");
    CHECK_STR(text_at(answer, "id"), "x");
    json_decref(answer);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

TEST(a_line_may_come_byte_by_byte_and_its_end_may_not_come)
{
    const char *folder = new_folder(), *line = "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"ping\"}\n";
    client *c = begin_server(folder, "look");
    for (const char *at = line; *at != '\0'; at++) {
        send_bytes(c, at, 1);
        usleep(1000);
    }
    json_t *answer = read_message(c);
    CHECK_STR(text_at(answer, "id"), "x");
    json_decref(answer);
    send_bytes(c, line, strlen(line) - 1); /* without its end it is no message */
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

/* A client that does not read its answers stops the server from taking more, and neither fills its memory nor
 * keeps it from ending. */
TEST(a_client_that_does_not_read_is_waited_for)
{
    const char *folder = new_folder();
    client *c = begin_server(folder, "look");
    CHECK(fcntl(c->in, F_SETFL, O_NONBLOCK) == 0);
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
    ssize_t sent = 0, all = 0;
    for (int i = 0; i < 200000 && sent >= 0; i++)
        all += (sent = write(c->in, line, sizeof line - 1)) > 0 ? sent : 0;
    CHECK(sent < 0 && all < 1000000); /* the pipe is full */
    usleep(100000);
    CHECK(memory_of(c->process) < (200l << 20));
    CHECK_INT(terminate_server(c), 0);
    remove_folder(folder);
}

/* More requests than may wait, while one of them waits for a while: each has its answer, some of them errors.
 */
TEST(many_requests_at_once_are_answered)
{
    const char *folder = new_folder();
    train_whole(folder, "one", NULL);
    client *c = begin_server(folder, "look");
    pid_t process = start_training(folder, "live", "epochs=100000000", NULL);
    bool waits = false;
    for (int i = 0; i < 400 && !waits; i++) {
        json_t *list = call(c, "list_runs", "{\"state\":\"running\"}", false);
        waits = json_integer_value(at(list, "total")) == 1;
        json_decref(list);
        usleep(10000);
    }
    CHECK(waits);
    request(c, "tools/call",
            "{\"name\":\"wait_for_run\",\"arguments\":{\"run\":\"live\",\"iteration\":900000000000,"
            "\"seconds\":1}}");
    for (int i = 0; i < 200; i++)
        request(c, "tools/call", "{\"name\":\"list_runs\"}");
    size_t good = 0, late = 0;
    for (int i = 0; i < 201; i++) {
        json_t *answer = read_message(c);
        good += at(answer, "result") != NULL;
        late += json_integer_value(at(answer, "error/code")) == -32603 &&
                strstr(text_at(answer, "error/message"), "too many requests wait") != NULL;
        json_decref(answer);
    }
    CHECK_INT(good + late, 201);
    CHECK(good >= 64 && late > 0);
    end_training(process, SIGKILL);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

/* --- mutated lines --- */

static uint64_t state = 20260728;

static size_t random_below(size_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % limit);
}

/* Changes some bytes: others, none, twice, or a piece that means something. */
static size_t mutate(char *line, size_t length, size_t room)
{
    static const char *const pieces[] = {"\"",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "\\u0000",
                                         "null",
                                         "-1",
                                         "1e308",
                                         "..",
                                         "%2e",
                                         "\xff",
                                         "\\",
                                         "true",
                                         "99999999999999999999",
                                         "\"run\":",
                                         "/",
                                         "*"};
    for (size_t i = 1 + random_below(4); i > 0 && length > 1; i--) {
        size_t where = random_below(length);
        const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
        switch (random_below(4)) {
        case 0:
            line[where] = (char)(1 + random_below(255));
            break;
        case 1:
            memmove(line + where, line + where + 1, length-- - where - 1);
            break;
        case 2:
            if (length + strlen(piece) < room) {
                memmove(line + where + strlen(piece), line + where, length - where);
                memcpy(line + where, piece, strlen(piece));
                length += strlen(piece);
            }
            break;
        default:
            length = where > 0 ? where : length;
        }
    }
    for (size_t i = 0; i < length; i++)
        line[i] = line[i] == '\n' ? ' ' : line[i];
    return length;
}

/* All that comes until the ping's answer is JSON with an error or a result. The role is admin, so that every
 * tool can be reached; no training runs, and nothing is replayed, as the folder has no journal. */
TEST(mutated_lines_end_in_answers)
{
    static const struct {
        const char *method, *params;
    } seeds[] = {
        {"tools/call",
         "{\"name\":\"get_curves\",\"arguments\":{\"run\":\"one\",\"metrics\":[\"loss\",\"val*\"],"
         "\"by\":\"epoch\",\"points\":7,\"smoothing\":0.5}}"},
        {"tools/call", "{\"name\":\"set_value\",\"arguments\":{\"run\":\"one\",\"identifier\":\"epoch\","
                       "\"value\":[0.1,2],\"reason\":\"r\"}}"},
        {"tools/call",
         "{\"name\":\"compare_runs\",\"arguments\":{\"runs\":[\"*\"],\"sort\":\"loss\",\"largest\":"
         "true},\"_meta\":{\"progressToken\":1}}"},
        {"resources/read", "{\"uri\":\"sigma://run/one/config.yaml\"}"},
        {"prompts/get", "{\"name\":\"compare\",\"arguments\":{\"runs\":\"*\"}}"},
        {"tools/list", "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                       "\"io.modelcontextprotocol/clientCapabilities\":{}}}"},
        {"ping", "{}"},
    };
    char line[2048];
    const char *folder = new_folder();
    train_whole(folder, "one", NULL);
    snprintf(line, sizeof line, "rm '%s/one/journal.jsonl'", folder);
    CHECK_INT(system(line), 0);
    client *c = start_server(folder, "admin", NULL);
    json_decref(begin_as(c, "2025-03-26"));
    for (int i = 0; i < 6000; i++) {
        size_t seed = random_below(sizeof seeds / sizeof *seeds);
        bool batch = random_below(8) == 0;
        snprintf(line, sizeof line, "%s{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":%s}%s",
                 batch ? "[" : "", seeds[seed].method, seeds[seed].params, batch ? "]" : "");
        send_bytes(c, line, mutate(line, strlen(line), sizeof line));
        send_bytes(c, "\n", 1);
        if (i % 20 != 19)
            continue;
        request(c, "ping", "{\"last\":1}");
        for (bool last = false; !last;) {
            const char *text = read_line(c, PATIENCE);
            json_t *answer = text != NULL ? json_loads(text, 0, NULL) : NULL;
            if (answer == NULL)
                TEST_FAIL("no JSON came: '%.300s'", text != NULL ? text : "nothing");
            for (size_t j = 0; j < (json_is_array(answer) ? json_array_size(answer) : 1); j++) {
                json_t *one = json_is_array(answer) ? json_array_get(answer, j) : answer;
                CHECK((at(one, "result") != NULL) + (at(one, "error") != NULL) +
                          (at(one, "method") != NULL) ==
                      1);
                last |=
                    json_integer_value(at(one, "id")) == c->id && json_object_size(at(one, "result")) == 0;
            }
            json_decref(answer);
        }
    }
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}
