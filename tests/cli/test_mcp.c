/* `sigma mcp`: the protocol's life, what its tools read of runs, what roles allow, and replays. Trainings
 * that run are in test_mcp_live.c. */
#include "mcp_client.h"

#include <sys/stat.h>

/* --- life --- */

TEST(the_handshake_settles_the_version)
{
    static const char *const versions[][2] = {{"2024-11-05", "2024-11-05"}, {"2025-03-26", "2025-03-26"},
                                              {"2025-06-18", "2025-06-18"}, {"2025-11-25", "2025-11-25"},
                                              {"2026-07-28", "2025-11-25"}, {"1999-01-01", "2025-11-25"}};
    const char *folder = new_folder();
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        client *c = start_server(folder, "look", NULL);
        json_t *answer = begin_as(c, versions[i][0]);
        CHECK_STR(text_at(answer, "result/protocolVersion"), versions[i][1]);
        CHECK_STR(text_at(answer, "result/serverInfo/name"), "sigma");
        CHECK(at(answer, "result/capabilities/tools") != NULL);
        json_decref(answer);
        is_error(begin_as(c, "2025-11-25"), -32600, "this was done already");
        json_decref(ask(c, "ping", "{}"));
        CHECK_INT(end_server(c), 0);
    }
    remove_folder(folder);
}

TEST(without_a_handshake_only_pings_are_answered)
{
    const char *folder = new_folder();
    client *c = start_server(folder, "look", NULL);
    is_error(ask(c, "tools/list", "{}"), -32600, "tools/list: 'initialize' must come first");
    is_error(ask(c, "server/discover", "{}"), -32602, "io.modelcontextprotocol/protocolVersion");
    is_error(ask(c, "initialize", "{}"), -32602, "initialize needs the text 'protocolVersion'");
    json_t *answer = ask(c, "ping", "{}");
    CHECK(json_is_object(at(answer, "result")));
    json_decref(answer);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

#define META(version)                                                                                        \
    "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":" version                                       \
    ",\"io.modelcontextprotocol/clientCapabilities\":{}}}"

TEST(later_revisions_say_who_they_are_in_each_request)
{
    const char *folder = new_folder();
    client *c = start_server(folder, "look", NULL);
    json_t *answer = ask(c, "server/discover", META("\"2026-07-28\""));
    CHECK_STR(text_at(answer, "result/supportedVersions/0"), "2026-07-28");
    CHECK_STR(text_at(answer, "result/resultType"), "complete");
    CHECK_STR(text_at(at(answer, "result/_meta"), "io.modelcontextprotocol~serverInfo"), "(none)");
    CHECK(json_object_get(at(answer, "result/_meta"), "io.modelcontextprotocol/serverInfo") != NULL);
    CHECK(json_is_integer(at(answer, "result/ttlMs")));
    json_decref(answer);
    answer = ask(c, "tools/list", META("\"2026-07-28\""));
    CHECK(json_array_size(at(answer, "result/tools")) > 5);
    CHECK_STR(text_at(answer, "result/cacheScope"), "private");
    json_decref(answer);
    answer = ask(c, "tools/list", META("\"1900-01-01\""));
    CHECK_STR(text_at(answer, "error/data/supported/0"), "2026-07-28");
    CHECK_STR(text_at(answer, "error/data/requested"), "1900-01-01");
    is_error(answer, -32022, "the protocol's version '1900-01-01' is not known here");
    is_error(ask(c, "tools/list", META("7")), -32602, "is not known here");
    is_error(ask(c, "tools/list", "{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}"),
             -32602, "_meta needs the object 'io.modelcontextprotocol/clientCapabilities'");
    is_error(ask(c, "ping", META("\"2026-07-28\"")), -32601,
             "there is no method 'ping' in version 2026-07-28");
    /* A handshake beside it is served, too. */
    json_decref(begin_as(c, "2025-06-18"));
    answer = ask(c, "tools/list", "{}");
    CHECK(at(answer, "result/tools") != NULL && at(answer, "result/resultType") == NULL);
    json_decref(answer);
    is_error(ask(c, "server/discover", "{}"), -32601, "in version 2025-06-18");
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

TEST(one_revision_has_batches)
{
    const char *folder = new_folder();
    client *c = start_server(folder, "look", NULL);
    json_decref(begin_as(c, "2025-03-26"));
    json_t *answer;
    send_line(
        c,
        "[{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"},"
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},7,"
        "{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"tools/call\",\"params\":{\"name\":\"list_runs\"}}]");
    const char *line = read_line(c, PATIENCE);
    CHECK(line != NULL);
    answer = json_loads(line, 0, NULL);
    CHECK_INT(json_array_size(answer), 3);
    CHECK_STR(text_at(answer, "0/id"), "a");
    CHECK_INT(json_integer_value(at(answer, "1/error/code")), -32600);
    CHECK_STR(text_at(answer, "2/id"), "b");
    CHECK_INT(json_integer_value(at(answer, "2/result/structuredContent/total")), 0);
    json_decref(answer);
    is_error(tell(c, "[]"), -32600, "the batch is empty");
    CHECK_INT(end_server(c), 0);
    c = begin_server(folder, "look");
    is_error(tell(c, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]"), -32600, "has no batches");
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

/* --- the list --- */

static json_t *tool_of(const json_t *answer, const char *name)
{
    size_t i;
    json_t *tool;
    json_array_foreach(at(answer, "result/tools"), i, tool)
    {
        if (strcmp(text_at(tool, "name"), name) == 0)
            return tool;
    }
    return NULL;
}

TEST(tools_are_those_of_the_role)
{
    static const struct {
        const char *role, *has, *has_not;
    } roles[] = {{"look", "get_curves", "set_value"},
                 {"steer", "stop_run", "replay_run"},
                 {"admin", "replay_run", NULL}};
    const char *folder = new_folder();
    for (size_t i = 0; i < 3; i++) {
        client *c = begin_server(folder, roles[i].role);
        json_t *answer = ask(c, "tools/list", "{}"), *tool;
        CHECK(tool_of(answer, roles[i].has) != NULL);
        CHECK(roles[i].has_not == NULL || tool_of(answer, roles[i].has_not) == NULL);
        size_t j;
        json_array_foreach(at(answer, "result/tools"), j, tool)
        {
            bool reads = json_is_true(at(tool, "annotations/readOnlyHint"));
            CHECK_STR(text_at(tool, "inputSchema/type"), "object");
            CHECK(json_is_false(at(tool, "inputSchema/additionalProperties")));
            CHECK(strlen(text_at(tool, "description")) > 20);
            CHECK(at(tool, "outputSchema") == NULL ||
                  strcmp(text_at(tool, "outputSchema/type"), "object") == 0);
            /* Whatever changes something wants a reason. */
            json_t *reason = json_string("reason");
            bool required = false;
            for (size_t k = 0; k < json_array_size(at(tool, "inputSchema/required")); k++)
                required |= json_equal(json_array_get(at(tool, "inputSchema/required"), k), reason);
            json_decref(reason);
            CHECK_INT(required, !reads);
        }
        CHECK(i < 2 || json_is_true(at(tool_of(answer, "stop_run"), "annotations/destructiveHint")));
        json_decref(answer);
        CHECK_INT(end_server(c), 0);
    }
    client *c = begin_server(folder, "look");
    refused(c, "set_value", "{}",
            "set_value needs the role 'steer', and this server has the role 'look'. Whoever starts it gives "
            "it another "
            "one by 'sigma mcp FOLDER --role steer'");
    refused(c, "replay_run", "{}", "--role admin");
    is_error(ask(c, "tools/list", "{\"cursor\":\"x\"}"), -32602, "there is one page");
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

TEST(arguments_are_checked)
{
    const char *folder = new_folder();
    client *c = begin_server(folder, "admin");
    is_error(ask(c, "tools/call", "{}"), -32602, "tools/call needs the text 'name'");
    is_error(ask(c, "tools/call", "{\"name\":7}"), -32602, "tools/call needs the text 'name'");
    is_error(ask(c, "tools/call", "{\"name\":\"list_run\"}"), -32602,
             "there is no tool 'list_run'; did you mean 'list_runs'?");
    is_error(ask(c, "tools/call", "{\"name\":\"list_runs\",\"arguments\":[]}"), -32602, "must be an object");
    refused(c, "list_runs", "{\"patern\":\"x\"}",
            "list_runs has no argument 'patern'; there is pattern, state,");
    refused(c, "list_runs", "{\"pattern\":1}", "'pattern' must be a text");
    refused(c, "list_runs", "{\"limit\":0}", "'limit' must be from 1 to 500, not 0");
    refused(c, "list_runs", "{\"limit\":1.5}", "'limit' must be a whole number");
    refused(c, "list_runs", "{\"limit\":1e300}", "'limit' must be a whole number");
    refused(c, "list_runs", "{\"state\":\"dead\"}",
            "'state' must be one of running, finished, stopped, failed, not 'dead'");
    refused(c, "list_runs", "{\"archived\":\"yes\"}", "'archived' must be true or false");
    refused(c, "list_runs", "{\"metrics\":[1]}", "'metrics' must be a list of texts");
    refused(c, "get_run", "{}", "get_run needs the argument 'run'");
    refused(c, "get_run", "{\"run\":null}", "get_run needs the argument 'run'");
    refused(c, "pause_run", "{\"run\":\"x\"}", "pause_run needs the argument 'reason'");
    refused(c, "pause_run", "{\"run\":\"x\",\"reason\":\"  \"}", "'reason' must say");
    refused(c, "replay_run", "{\"run\":\"x\",\"reason\":\"r\",\"without\":[1.5]}",
            "must be a list of whole numbers");
    refused(c, "get_run", "{\"run\":\"x\"}", "there is no run 'x'; list_runs has the names of all");
    json_decref(call(c, "list_runs", "{\"limit\":5.0,\"state\":null}", false));
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

/* --- reading --- */

/* The numbers of two members of a run's metrics.jsonl; the number of lines. */
static size_t read_metrics(const char *folder, const char *name, const char *x, const char *y,
                           double (*points)[2])
{
    char path[200], line[4096];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, name);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    for (; fgets(line, sizeof line, file) != NULL; count++) {
        json_t *values = json_loads(line, 0, NULL);
        points[count][0] = json_number_value(json_object_get(values, x));
        points[count][1] = json_number_value(json_object_get(values, y));
        json_decref(values);
    }
    fclose(file);
    return count;
}

TEST(curves_are_those_of_the_file)
{
    static double points[100][2];
    const char *folder = new_folder();
    train_whole(folder, "one", NULL);
    client *c = begin_server(folder, "look");
    size_t count = read_metrics(folder, "one", "epoch", "validation.loss", points);
    CHECK_INT(count, 20);
    json_t *all =
        call(c, "get_curves",
             "{\"run\":\"one\",\"metrics\":[\"validation.loss\"],\"by\":\"epoch\",\"points\":100}", false);
    CHECK_INT(json_array_size(at(all, "curves")), 1);
    CHECK_INT(json_array_size(at(all, "curves/0/x")), 20);
    CHECK_INT(json_integer_value(at(all, "curves/0/of")), 20);
    CHECK(at(all, "curves/0/branch") == NULL);
    size_t low = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK_NEAR(json_number_value(json_array_get(at(all, "curves/0/x"), i)), points[i][0], 0);
        CHECK_NEAR(json_number_value(json_array_get(at(all, "curves/0/y"), i)), points[i][1], 0);
        low = points[i][1] < points[low][1] ? i : low;
    }
    CHECK_NEAR(json_number_value(at(all, "curves/0/minimum/0")), points[low][0], 0);
    CHECK_NEAR(json_number_value(at(all, "curves/0/minimum/1")), points[low][1], 0);
    CHECK_NEAR(json_number_value(at(all, "curves/0/recent")), (points[18][1] + points[19][1]) / 2, 1e-12);
    json_decref(all);
    /* Fewer points are some of the file's, with the first, the last and the peak. */
    count = read_metrics(folder, "one", "iteration", "loss", points);
    json_t *few = call(c, "get_curves", "{\"run\":\"one\",\"metrics\":[\"loss\"],\"points\":5}", false);
    CHECK_INT(json_array_size(at(few, "curves/0/x")), 5);
    for (size_t i = 0, j = 0; i < 5; i++, j++) {
        double x = json_number_value(json_array_get(at(few, "curves/0/x"), i));
        while (j < count && points[j][0] < x)
            j++;
        CHECK_NEAR(points[j][0], x, 0);
        CHECK_NEAR(json_number_value(json_array_get(at(few, "curves/0/y"), i)), points[j][1], 0);
    }
    CHECK_NEAR(json_number_value(at(few, "curves/0/x/4")), points[count - 1][0], 0);
    json_decref(few);
    /* Smoothed: the mean of what came, weighed by powers of the share. */
    json_t *smooth = call(c, "get_curves",
                          "{\"run\":\"one\",\"metrics\":[\"loss\"],\"smoothing\":0.8,\"from\":30}", false);
    double sum = 0, weight = 0;
    for (size_t i = 0, j = 0; i < count; i++)
        if (points[i][0] >= 30) {
            sum = weight = 0;
            for (size_t k = 0; k <= i; k++)
                if (points[k][0] >= 30) {
                    sum += pow(0.8, (double)(i - k)) * points[k][1];
                    weight += pow(0.8, (double)(i - k));
                }
            CHECK_NEAR(json_number_value(json_array_get(at(smooth, "curves/0/y"), j)), sum / weight, 1e-12);
            j++;
        }
    json_decref(smooth);
    json_t *none = call(c, "get_curves", "{\"run\":\"one\",\"metrics\":[\"nothing\"]}", false);
    CHECK_INT(json_array_size(at(none, "curves")), 0);
    CHECK_STR(text_at(none, "metrics/0"), "loss");
    json_decref(none);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

TEST(runs_are_listed_told_of_and_compared)
{
    const char *folder = new_folder();
    train_whole(folder, "a", NULL);
    train_whole(folder, "b", "optimiser.learning_rate=0.1");
    client *c = begin_server(folder, "look");
    json_t *list = call(c, "list_runs", "{}", false);
    CHECK_INT(json_integer_value(at(list, "total")), 2);
    CHECK_STR(text_at(list, "runs/0/run"), "a");
    CHECK_STR(text_at(list, "runs/1/state"), "finished");
    CHECK_INT(json_integer_value(at(list, "runs/1/epoch")), 20);
    CHECK(json_is_number(at(list, "runs/0/metrics/validation.loss")));
    json_decref(list);
    list = call(c, "list_runs", "{\"pattern\":\"b*\",\"metrics\":[]}", false);
    CHECK_INT(json_integer_value(at(list, "total")), 1);
    CHECK_INT(json_object_size(at(list, "runs/0/metrics")), 0);
    json_decref(list);
    list = call(c, "list_runs", "{\"first\":1,\"limit\":1}", false);
    CHECK_STR(text_at(list, "runs/0/run"), "b");
    CHECK_INT(json_integer_value(at(list, "total")), 2);
    json_decref(list);
    json_t *run = call(c, "get_run", "{\"run\":\"b\"}", false);
    CHECK_NEAR(json_number_value(at(run, "configuration/optimiser.learning_rate")), 0.1, 0);
    CHECK(json_number_value(at(run, "minimum/loss")) <= json_number_value(at(run, "newest/loss")));
    CHECK_INT(json_integer_value(at(run, "interventions")), 0);
    CHECK(at(run, "now") == NULL);
    json_decref(run);
    json_t *compared = call(c, "compare_runs", "{\"runs\":[\"*\"],\"sort\":\"loss\"}", false);
    CHECK_INT(json_object_size(at(compared, "differences")), 1);
    CHECK_NEAR(json_number_value(at(compared, "differences/optimiser.learning_rate/a")), 0.01, 0);
    CHECK_NEAR(json_number_value(at(compared, "differences/optimiser.learning_rate/b")), 0.1, 0);
    CHECK(json_number_value(at(compared, "runs/0/metrics/loss/minimum")) <=
          json_number_value(at(compared, "runs/1/metrics/loss/minimum")));
    json_decref(compared);
    refused(c, "compare_runs", "{\"runs\":[\"z*\"]}", "0 runs match");
    json_t *log = call(c, "read_log", "{\"run\":\"a\",\"lines\":1}", false);
    CHECK(strstr(text_at(log, "lines/0"), "training ended after epoch 20") != NULL);
    CHECK_INT(json_array_size(at(log, "lines")), 1);
    CHECK(json_is_true(at(log, "older")));
    json_decref(log);
    refused(c, "get_values", "{\"run\":\"a\",\"identifier\":\"epoch\"}",
            "run 'a' does not train now (it is finished), so that nothing of it can be asked or changed");
    json_t *waited = call(c, "wait_for_run", "{\"run\":\"a\",\"state\":\"ended\"}", false);
    CHECK(json_is_true(at(waited, "reached")) && json_is_true(at(waited, "ended")));
    json_decref(waited);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

TEST(files_of_runs_are_resources)
{
    char path[200];
    const char *folder = new_folder();
    train_whole(folder, "a b", NULL);
    client *c = begin_server(folder, "look");
    json_t *list = ask(c, "resources/list", "{}");
    CHECK_INT(json_array_size(at(list, "result/resources")), 4);
    CHECK_STR(text_at(list, "result/resources/0/uri"), "sigma://run/a%20b/config.yaml");
    CHECK_STR(text_at(list, "result/resources/0/mimeType"), "application/yaml");
    CHECK(at(list, "result/nextCursor") == NULL);
    json_decref(list);
    json_t *read = ask(c, "resources/read", "{\"uri\":\"sigma://run/a%20b/config.yaml\"}");
    CHECK(strstr(text_at(read, "result/contents/0/text"), "learning_rate: 0.01") != NULL);
    json_decref(read);
    static const char *const wrong[] = {"sigma://run/a%20b/checkpoint.safetensors",
                                        "sigma://run/a%20b/../../etc/passwd",
                                        "sigma://run/../log.txt",
                                        "sigma://run/%2e%2e/log.txt",
                                        "sigma://run/a%00b/log.txt",
                                        "sigma://run/a%2/log.txt",
                                        "sigma://run//log.txt",
                                        "sigma://run/log.txt",
                                        "file:///etc/passwd",
                                        ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char params[200];
        snprintf(params, sizeof params, "{\"uri\":\"%s\"}", wrong[i]);
        is_error(ask(c, "resources/read", params), -32002, "there is no r");
    }
    /* A file that is a link is no file of the run. */
    snprintf(path, sizeof path, "%s/a b/log.txt", folder);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(symlink("/etc/passwd", path), 0);
    is_error(ask(c, "resources/read", "{\"uri\":\"sigma://run/a%20b/log.txt\"}"), -32002,
             "run 'a b' has no file 'log.txt'");
    json_t *log = call(c, "read_log", "{\"run\":\"a b\"}", false);
    CHECK_INT(json_array_size(at(log, "lines")), 0);
    json_decref(log);
    snprintf(path, sizeof path, "%s/a b/journal.jsonl", folder);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(symlink("/etc/passwd", path), 0);
    refused(c, "list_interventions", "{\"run\":\"a b\"}",
            "the journal.jsonl of run 'a b' is no regular file");
    is_error(ask(c, "resources/list", "{\"cursor\":\"-4\"}"), -32602, "this 'cursor' is none of ours");
    json_t *prompt = ask(c, "prompts/get", "{\"name\":\"review_run\",\"arguments\":{\"run\":\"a b\"}}");
    CHECK(strstr(text_at(prompt, "result/messages/0/content/text"), "the run 'a b'") != NULL);
    json_decref(prompt);
    is_error(ask(c, "prompts/get", "{\"name\":\"review_run\"}"), -32602, "needs the text 'run'");
    is_error(ask(c, "prompts/get", "{\"name\":\"none\"}"), -32602, "there is no prompt 'none'");
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

TEST(many_resources_come_in_pages)
{
    char path[200];
    const char *folder = new_folder();
    for (int i = 0; i < 60; i++) {
        snprintf(path, sizeof path,
                 "mkdir '%s/run-%02d' && cd '%s/run-%02d' && echo 'name: a' >config.yaml && echo "
                 "'{\"loss\":1}' >metrics.jsonl && touch journal.jsonl log.txt",
                 folder, i, folder, i);
        CHECK_INT(system(path), 0);
    }
    client *c = begin_server(folder, "look");
    json_t *page = ask(c, "resources/list", "{}");
    CHECK_INT(json_array_size(at(page, "result/resources")), 200);
    CHECK_STR(text_at(page, "result/nextCursor"), "200");
    json_decref(page);
    page = ask(c, "resources/list", "{\"cursor\":\"200\"}");
    CHECK_INT(json_array_size(at(page, "result/resources")), 40);
    CHECK_STR(text_at(page, "result/resources/0/uri"), "sigma://run/run-50/config.yaml");
    CHECK(at(page, "result/nextCursor") == NULL);
    json_decref(page);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

TEST(nothing_outside_of_the_folder_is_a_run)
{
    char path[200], link[200];
    const char *folder = new_folder();
    train_whole(folder, "out/secret", NULL);
    train_whole(folder, "in/one", NULL);
    snprintf(path, sizeof path, "%s/out/secret", folder);
    snprintf(link, sizeof link, "%s/in/link", folder);
    CHECK_INT(symlink(path, link), 0);
    snprintf(path, sizeof path, "%s/in", folder);
    client *c = begin_server(path, "admin");
    json_t *list = call(c, "list_runs", "{}", false);
    CHECK_INT(json_integer_value(at(list, "total")), 1);
    json_decref(list);
    static const char *const names[] = {"link", "../out/secret", "..", "one/..", "", "/tmp", "one/", "./one"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "{\"run\":\"%s\"}", names[i]);
        refused(c, "get_run", arguments, "there is no run '");
        refused(c, "get_curves", arguments, "there is no run '");
        snprintf(arguments, sizeof arguments, "{\"run\":\"%s\",\"reason\":\"r\"}", names[i]);
        refused(c, "stop_run", arguments, "there is no run '");
        refused(c, "replay_run", arguments, "there is no run '");
        snprintf(arguments, sizeof arguments, "{\"run\":\"one\",\"reason\":\"r\",\"into\":\"../%s\"}",
                 names[i]);
        refused(c, "replay_run", arguments, "a new run cannot be named '../");
    }
    refused(c, "replay_run", "{\"run\":\"one\",\"reason\":\"r\",\"into\":\"one\"}", "there is 'one' already");
    CHECK_INT(end_server(c), 0);
    /* A server of one run needs no name, and has no other one. */
    snprintf(path, sizeof path, "%s/in/one", folder);
    c = begin_server(path, "look");
    json_t *run = call(c, "get_run", "{}", false);
    CHECK_STR(text_at(run, "run"), "one");
    json_decref(run);
    list = call(c, "list_runs", "{}", false);
    CHECK_INT(json_integer_value(at(list, "total")), 1);
    json_decref(list);
    refused(c, "get_run", "{\"run\":\"link\"}", "there is no run 'link'");
    CHECK_INT(end_server(c), 0);
    /* Its replays are within it. */
    c = begin_server(path, "admin");
    json_t *begun = call(c, "replay_run", "{\"reason\":\"r\"}", false);
    CHECK_STR(text_at(begun, "run"), "one/one-replay-1");
    json_decref(begun);
    json_t *result = call(c, "replay_result", "{\"run\":\"one/one-replay-1\",\"wait_seconds\":60}", false);
    CHECK_STR(text_at(result, "state"), "done");
    json_decref(result);
    list = call(c, "list_runs", "{}", false);
    CHECK_INT(json_integer_value(at(list, "total")), 2);
    json_decref(list);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

/* --- replays --- */

/* A run whose replay takes a while. */
static void train_long(const char *folder)
{
    int status;
    waitpid(start_training(folder, "long", "epochs=40000", NULL), &status, 0);
    CHECK_INT(status, 0);
}

TEST(a_replay_is_a_job)
{
    const char *folder = new_folder();
    train_whole(folder, "one", NULL);
    client *c = begin_server(folder, "admin");
    json_t *checked = call(c, "replay_run", "{\"run\":\"one\",\"reason\":\"r\",\"dry_run\":true}", false);
    CHECK(json_is_true(at(checked, "possible")));
    CHECK(strstr(text_at(checked, "output"), "the replay can be done, bit for bit") != NULL);
    json_decref(checked);
    checked =
        call(c, "replay_run", "{\"run\":\"one\",\"reason\":\"r\",\"dry_run\":true,\"without\":[1]}", false);
    CHECK(json_is_false(at(checked, "possible")));
    CHECK(strstr(text_at(checked, "output"), "1 is no intervention that can be left out") != NULL);
    json_decref(checked);
    json_t *begun = call(c, "replay_run", "{\"run\":\"one\",\"reason\":\"r\"}", false);
    CHECK_STR(text_at(begun, "run"), "one-replay-1");
    json_decref(begun);
    json_t *result = call(c, "replay_result", "{\"run\":\"one-replay-1\",\"wait_seconds\":60}", false);
    CHECK_STR(text_at(result, "state"), "done");
    CHECK(strstr(text_at(result, "output"), "bit for bit") != NULL);
    json_decref(result);
    json_t *run = call(c, "get_run", "{\"run\":\"one-replay-1\"}", false);
    CHECK_STR(text_at(run, "state"), "finished");
    json_decref(run);
    /* One that trains ends when it is told to, and when the server ends. */
    train_long(folder);
    for (int i = 0; i < 2; i++)
        json_decref(call(c, "replay_run", "{\"run\":\"long\",\"reason\":\"r\"}", false));
    refused(c, "replay_run", "{\"run\":\"long\",\"reason\":\"r\"}",
            "2 replays train already; wait for one, or stop it");
    json_t *stopped = call(c, "stop_replay", "{\"run\":\"long-replay-1\",\"reason\":\"r\"}", false);
    CHECK_STR(text_at(stopped, "state"), "failed");
    json_decref(stopped);
    refused(c, "replay_result", "{\"run\":\"one\"}", "this server has begun no replay 'one'");
    refused(c, "stop_replay", "{\"run\":\"x\",\"reason\":\"r\"}", "this server has begun no replay 'x'");
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}

/* A file of metrics that one scan does not read whole is read whole before an answer is given. */
TEST(long_metrics_are_read_whole)
{
    char path[200];
    const char *folder = new_folder();
    snprintf(path, sizeof path, "%s/long", folder);
    CHECK_INT(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/long/metrics.jsonl", folder);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    for (int i = 1; i <= 500000; i++)
        fprintf(file, "{\"epoch\":%d,\"iteration\":%d,\"loss\":%d,\"seconds\":%d}\n", i, 10 * i, 1000000 - i,
                i);
    CHECK_INT(fclose(file), 0);
    client *c = begin_server(folder, "look");
    json_t *run = call(c, "get_run", "{\"run\":\"long\"}", false);
    CHECK_INT(json_integer_value(at(run, "newest/epoch")), 500000);
    CHECK_INT(json_integer_value(at(run, "minimum/loss")), 500000);
    json_decref(run);
    json_t *curves = call(c, "get_curves", "{\"run\":\"long\",\"metrics\":[\"loss\"],\"points\":100}", false);
    CHECK_INT(json_array_size(at(curves, "curves/0/x")), 100);
    CHECK_NEAR(json_number_value(at(curves, "curves/0/x/99")), 5000000, 0);
    json_decref(curves);
    CHECK_INT(end_server(c), 0);
    remove_folder(folder);
}
