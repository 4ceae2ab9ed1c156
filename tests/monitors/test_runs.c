/* The page over a folder of runs: what is found, read, noted, renamed, deleted, and what is refused. */
#include "monitors/runs/runs.h"
#include "monitors/web_client.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

typedef struct place {
    char folder[64];
    sgm__runs *runs;
    web_client client;
} place;

/* Lines of "key value". */
static json_t *read_pairs(const char *text, size_t length)
{
    (void)length;
    char key[32];
    int value;
    if (sscanf(text, "%31s %d", key, &value) == 2)
        return json_pack("{s:i}", key, value);
    sgm_fail(SGM_ERROR_FORMAT, "this is no pair");
    return NULL;
}

static void write_file(const place *p, const char *run, const char *file, const char *mode, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", p->folder, run);
    CHECK_OK(sgm__make_folders(path));
    snprintf(path, sizeof path, "%s/%s/%s", p->folder, run, file);
    FILE *out = fopen(path, mode);
    CHECK(out != NULL);
    fputs(text, out);
    CHECK_INT(fclose(out), 0);
}

static void begin(place *p)
{
    *p = (place){.folder = "/tmp/sigma-runs-XXXXXX"};
    CHECK(mkdtemp(p->folder) != NULL);
    p->runs = sgm__runs_start(&(sgm__runs_options){.folder = p->folder, .configuration = read_pairs});
    if (p->runs == NULL)
        TEST_FAIL("%s", sgm_last_error());
    p->client = web_client_of(sgm__runs_url(p->runs));
}

static void end(place *p)
{
    char command[128];
    web_client_close(&p->client);
    sgm__runs_stop(p->runs);
    snprintf(command, sizeof command, "rm -rf '%s'", p->folder);
    CHECK_INT(system(command), 0);
}

static const json_t *run_named(place *p, const char *name)
{
    size_t i;
    json_t *run;
    json_array_foreach(web_at(web_got(&p->client, "/api/runs"), "runs"), i,
                       run) if (strcmp(json_string_value(json_object_get(run, "name")), name) ==
                                0) return run;
    return NULL;
}

static size_t count_runs(place *p)
{
    return json_array_size(web_at(web_got(&p->client, "/api/runs"), "runs"));
}

static const char *state_of(place *p, const char *name)
{
    return json_string_value(json_object_get(run_named(p, name), "state"));
}

static double number(const json_t *run, const char *part, const char *key)
{
    const json_t *value = json_object_get(json_object_get(run, part), key);
    return json_is_number(value) ? json_number_value(value) : -999;
}

#define LINE(epoch, loss)                                                                                    \
    "{\"epoch\":" #epoch ",\"iteration\":" #epoch "0,\"loss\":" #loss ",\"seconds\":1.5}\n"

TEST(the_log_of_a_run_is_shown_line_by_line)
{
    place p;
    begin(&p);
    write_file(&p, "a", "metrics.jsonl", "w", "{\"loss\":1}\n");
    CHECK_INT(json_array_size(web_at(web_got(&p.client, "/api/run-log/a"), "lines")), 0);
    write_file(&p, "a", "log.txt", "w", "first\nnot \xff text\nthe last has no end");
    const json_t *lines = web_at(web_got(&p.client, "/api/run-log/a"), "lines");
    CHECK_INT(json_array_size(lines), 3);
    CHECK_STR(json_string_value(json_array_get(lines, 1)), "not ? text");
    CHECK_STR(json_string_value(json_array_get(lines, 2)), "the last has no end");
    CHECK(json_is_false(json_object_get(p.client.answer, "cut")));

    char line[1025];
    memset(line, 'x', 1023);
    memcpy(line + 1023, "\n", 2);
    for (int i = 0; i < 200; i++)
        write_file(&p, "a", "log.txt", "a", line);
    lines = web_at(web_got(&p.client, "/api/run-log/a"), "lines");
    CHECK(json_is_true(json_object_get(p.client.answer, "cut")));
    CHECK_INT(json_string_length(json_array_get(lines, 0)), 1023); /* never a part of one */
    web_got(&p.client, "/api/run-log/b");
    CHECK_INT(p.client.code, 404);
    end(&p);
}

TEST(metrics_are_read_as_they_grow)
{
    place p;
    begin(&p);
    CHECK_INT(count_runs(&p), 0);
    write_file(&p, "digits", "metrics.jsonl", "w", LINE(1, 0.5) LINE(2, 0.25));
    write_file(&p, "digits", "config.yaml", "w", "epochs 40\n");
    write_file(&p, "group/inner", "metrics.jsonl", "w", LINE(1, 0.75));
    write_file(&p, "group/inner/too/deep", "metrics.jsonl", "w", LINE(1, 0.75));
    write_file(&p, "no-run", "notes.txt", "w", "hello\n");
    CHECK_INT(count_runs(&p), 2);
    CHECK(run_named(&p, "group/inner") != NULL);
    const json_t *run = run_named(&p, "digits");
    CHECK_NEAR(number(run, "metrics", "loss"), 0.25, 0);
    CHECK_NEAR(number(run, "maximum", "loss"), 0.5, 0);
    CHECK_NEAR(number(run, "configuration", "epochs"), 40, 0);
    CHECK_INT(json_integer_value(json_object_get(run, "epochs")), 2);
    CHECK_NEAR(json_number_value(json_object_get(run, "seconds")), 1.5, 0);

    /* a line in two parts, and lines that are none */
    write_file(&p, "digits", "metrics.jsonl", "a", "not json\n[1,2]\n{\"epoch\":3,\"loss\":");
    run = run_named(&p, "digits");
    CHECK_INT(json_integer_value(json_object_get(run, "epochs")), 2);
    CHECK_INT(json_integer_value(json_object_get(run, "bad")), 2);
    write_file(&p, "digits", "metrics.jsonl", "a", "0.125}\n");
    run = run_named(&p, "digits");
    CHECK_INT(json_integer_value(json_object_get(run, "epochs")), 3);
    CHECK_INT(json_integer_value(json_object_get(run, "lines")), 3);
    CHECK_NEAR(number(run, "minimum", "loss"), 0.125, 0);

    const json_t *columns = web_at(web_got(&p.client, "/api/run/digits"), "columns");
    CHECK_INT(json_array_size(json_object_get(columns, "epoch")), 3);
    CHECK_INT(json_array_size(json_object_get(columns, "seconds")), 3);
    CHECK(json_is_null(json_array_get(json_object_get(columns, "seconds"), 2)));
    CHECK_NEAR(json_number_value(json_array_get(json_object_get(columns, "loss"), 2)), 0.125, 0);

    /* cut back, as by a resume */
    write_file(&p, "digits", "metrics.jsonl", "w", LINE(1, 0.5));
    run = run_named(&p, "digits");
    CHECK_INT(json_integer_value(json_object_get(run, "epochs")), 1);
    CHECK_INT(json_integer_value(json_object_get(run, "bad")), 0);
    end(&p);
}

/* More than is read for one request: the next ones go on where that ended. */
TEST(long_metrics_are_read_to_their_end)
{
    enum { LENGTH = 1 << 20, LINES = 130 };
    place p;
    begin(&p);
    char *text = malloc(LENGTH + 1);
    CHECK(text != NULL);
    for (int i = 1; i <= LINES; i++) {
        int head = snprintf(text, LENGTH, "{\"epoch\":%d,\"loss\":%d,\"note\":\"", i, LINES - i);
        memset(text + head, 'x', (size_t)(LENGTH - head));
        snprintf(text + LENGTH - 3, 4, "\"}\n");
        write_file(&p, "long", "metrics.jsonl", i == 1 ? "w" : "a", text);
    }
    free(text);
    int64_t lines = 0;
    for (int i = 0; i < 5 && lines < LINES; i++) {
        int64_t now = json_integer_value(json_object_get(run_named(&p, "long"), "lines"));
        CHECK(now > lines);
        lines = now;
    }
    const json_t *run = run_named(&p, "long");
    CHECK_INT(json_integer_value(json_object_get(run, "lines")), LINES);
    CHECK_INT(json_integer_value(json_object_get(run, "bad")), 0);
    CHECK_NEAR(number(run, "metrics", "loss"), 0, 0);
    CHECK_NEAR(number(run, "maximum", "loss"), LINES - 1, 0);
    long long revision = json_integer_value(web_at(web_got(&p.client, "/api/runs"), "revision"));
    char path[64];
    snprintf(path, sizeof path, "/api/runs?after=%lld", revision);
    CHECK(json_is_true(web_at(web_got(&p.client, path), "same"))); /* nothing is read again */
    write_file(&p, "long", "metrics.jsonl", "a", LINE(131, 0.5));
    CHECK_INT(json_integer_value(json_object_get(run_named(&p, "long"), "lines")), LINES + 1);
    end(&p);
}

TEST(nothing_new_is_answered_briefly)
{
    place p;
    char path[64];
    begin(&p);
    write_file(&p, "digits", "metrics.jsonl", "w", LINE(1, 0.5));
    long long revision = json_integer_value(web_at(web_got(&p.client, "/api/runs"), "revision"));
    snprintf(path, sizeof path, "/api/runs?after=%lld", revision);
    CHECK(json_is_true(web_at(web_got(&p.client, path), "same")));
    write_file(&p, "digits", "metrics.jsonl", "a", LINE(2, 0.25));
    CHECK_INT(json_array_size(web_at(web_got(&p.client, path), "runs")), 1);
    end(&p);
}

TEST(states_are_told_by_lock_and_log)
{
    place p;
    char path[128];
    begin(&p);
    write_file(&p, "a", "log.txt", "w",
               "2026-11-21 18:17:59.196 [1] info a: training begins after epoch 0, iteration 0: seed 0\n");
    write_file(&p, "a", "checkpoint.safetensors", "w", "x");
    CHECK_STR(state_of(&p, "a"), "failed"); /* its process is gone without a word */
    snprintf(path, sizeof path, "%s/a", p.folder);
    int lock = open(path, O_RDONLY | O_DIRECTORY);
    CHECK_INT(flock(lock, LOCK_EX | LOCK_NB), 0);
    CHECK_STR(state_of(&p, "a"), "running");
    web_posted(&p.client, "/api/run-delete", "{\"name\":\"a\",\"confirmation\":\"a\"}");
    CHECK_INT(p.client.code, 409);
    web_posted(&p.client, "/api/run-rename", "{\"name\":\"a\",\"to\":\"b\"}");
    CHECK_INT(p.client.code, 409);
    close(lock);
    write_file(&p, "a", "log.txt", "a",
               "2026-11-21 18:18:00.419 [1] info a: training ended after epoch 8, iteration 376, in 1.4 s\n");
    CHECK_STR(state_of(&p, "a"), "finished");
    write_file(
        &p, "a", "log.txt", "a",
        "2026-11-21 18:19:00.419 [1] info a: training ended after epoch 9, iteration 400, in 1 s, stopped "
        "by ctl\n");
    CHECK_STR(state_of(&p, "a"), "stopped");
    CHECK(strstr(json_string_value(json_object_get(run_named(&p, "a"), "reason")), "stopped by ctl") != NULL);
    write_file(&p, "a", "log.txt", "a",
               "2026-11-21 18:20:00.000 [1] info a: training failed after 2 s: the loss is not finite\n");
    const json_t *run = run_named(&p, "a");
    CHECK_STR(json_string_value(json_object_get(run, "state")), "failed");
    CHECK(strstr(json_string_value(json_object_get(run, "reason")), "the loss is not finite") != NULL);
    CHECK(json_number_value(json_object_get(run, "started")) > 1.7e9);
    end(&p);
}

#define BEGINS "2026-11-21 18:17:59.196 [1] info %s: training begins after epoch 0, iteration 0: seed 0\n"
#define ENDS "2026-11-21 18:18:00.419 [1] info %s: training ended after epoch 8, iteration 376, in 1.4 s\n"

static void log_line(const place *p, const char *run, const char *format, const char *trainer)
{
    char *line = sgm__format(format, trainer);
    write_file(p, run, "log.txt", "a", line);
    sgm__free(line);
}

/* The logs of a process have the lines of all its trainers. */
TEST(another_trainer_ends_no_run)
{
    static const char *const runs[] = {"x", "x-warm", "both/one", "both/two"};
    static const char *const trainers[] = {"digits", "warm", "one", "two"};
    place p;
    begin(&p);
    for (size_t i = 0; i < 4; i++)
        write_file(&p, runs[i], "checkpoint.safetensors", "w", "x");
    log_line(&p, "x", BEGINS, "digits");
    log_line(&p, "x-warm", BEGINS, "warm");
    log_line(&p, "both/one", BEGINS, "two"); /* at the same time: any order */
    log_line(&p, "both/one", BEGINS, "one");
    log_line(&p, "both/two", BEGINS, "two");
    for (size_t i = 0; i < 4; i++)
        log_line(&p, runs[i], ENDS, trainers[i ^ 1]);
    for (size_t i = 0; i < 4; i++)
        CHECK_STR(state_of(&p, runs[i]),
                  "failed"); /* the process is gone, and never said that this one ended */
    for (size_t i = 0; i < 4; i++)
        log_line(&p, runs[i], ENDS, trainers[i]);
    for (size_t i = 0; i < 4; i++)
        CHECK_STR(state_of(&p, runs[i]), "finished");
    end(&p);
}

TEST(a_long_log_hides_no_beginning)
{
    place p;
    begin(&p);
    write_file(&p, "a", "checkpoint.safetensors", "w", "x");
    log_line(&p, "a", BEGINS, "a");
    for (int i = 0; i < 2000; i++)
        log_line(&p, "a", "2026-11-21 18:18:00.419 [1] warning %s: a line of some 80 characters of a hook\n",
                 "a");
    CHECK_STR(state_of(&p, "a"), "failed");
    end(&p);
}

TEST(runs_so_far_down_that_they_are_not_listed_are_kept)
{
    place p;
    begin(&p);
    write_file(&p, "a/b", "metrics.jsonl", "w", LINE(1, 0.5));
    write_file(&p, "a/b/c", "notes.txt", "w", "x");
    write_file(&p, "a/b/c/d", "metrics.jsonl", "w", LINE(1, 0.5));
    web_posted(&p.client, "/api/run-delete", "{\"name\":\"a/b\",\"confirmation\":\"a/b\"}");
    CHECK_INT(p.client.code, 409);
    web_posted(&p.client, "/api/run-rename", "{\"name\":\"a/b\",\"to\":\"e\"}");
    CHECK_INT(p.client.code, 409);
    CHECK_INT(count_runs(&p), 1);
    end(&p);
}

/* The answer's "before" of one member, as text. */
static const char *before_of(const place *p, const char *key)
{
    static char text[128];
    char *made = json_dumps(json_object_get(json_object_get(p->client.answer, "before"), key),
                            JSON_ENCODE_ANY | JSON_COMPACT);
    snprintf(text, sizeof text, "%s", made != NULL ? made : "none");
    free(made);
    return text;
}

static char *file_of(const place *p, const char *run)
{
    char path[300], *text = NULL;
    size_t length;
    snprintf(path, sizeof path, "%s/%s/notes.json", p->folder, run);
    CHECK_OK(sgm__file_read(path, 4096, &text, &length));
    return text;
}

TEST(what_is_noted_of_a_run_is_in_its_folder)
{
    place p;
    begin(&p);
    write_file(&p, "a", "metrics.jsonl", "w", LINE(1, 0.5));
    const json_t *run = run_named(&p, "a");
    CHECK_STR(json_string_value(json_object_get(run, "note")), "");
    CHECK_INT(json_array_size(json_object_get(run, "tags")), 0);
    CHECK(json_is_false(json_object_get(run, "starred")));
    long long revision = json_integer_value(web_at(web_got(&p.client, "/api/runs"), "revision"));

    /* All at once; what was is answered, and sending it takes it back. */
    web_posted(&p.client, "/api/run-notes",
               "{\"name\":\"a\",\"note\":\"too fast\",\"tags\":[\"first\",\"\u00fcb\"],\"starred\":true}");
    CHECK_INT(p.client.code, 200);
    CHECK_STR(before_of(&p, "note"), "\"\"");
    CHECK_STR(before_of(&p, "tags"), "[]");
    CHECK_STR(before_of(&p, "starred"), "false");
    CHECK_STR(before_of(&p, "archived"), "none");
    CHECK(json_integer_value(web_at(web_got(&p.client, "/api/runs"), "revision")) > revision);
    run = run_named(&p, "a");
    CHECK_STR(json_string_value(json_object_get(run, "note")), "too fast");
    CHECK_STR(json_string_value(json_array_get(json_object_get(run, "tags"), 1)), "\u00fcb");
    CHECK(json_is_true(json_object_get(run, "starred")));
    web_posted(&p.client, "/api/run-notes", "{\"name\":\"a\",\"note\":\"slower\"}");
    CHECK_STR(before_of(&p, "note"), "\"too fast\"");
    CHECK_INT(json_array_size(json_object_get(run_named(&p, "a"), "tags")), 2);

    /* Members of others stay; a renamed run keeps its notes. */
    write_file(&p, "a", "notes.json", "w", "{\"note\":\"by hand\",\"cost\":12}");
    web_posted(&p.client, "/api/run-notes", "{\"name\":\"a\",\"archived\":true}");
    CHECK_INT(p.client.code, 200);
    char *text = file_of(&p, "a");
    CHECK(strstr(text, "\"cost\": 12") != NULL && strstr(text, "\"note\": \"by hand\"") != NULL);
    sgm__free(text);
    web_posted(&p.client, "/api/run-rename", "{\"name\":\"a\",\"to\":\"best one\"}");
    CHECK(json_is_true(json_object_get(run_named(&p, "best one"), "archived")));
    end(&p);
}

TEST(what_cannot_be_noted_is_refused_and_changes_nothing)
{
    static const struct {
        const char *members, *why;
    } wrong[] = {
        {"\"note\":7", "'note' is a text of 32768 bytes at most"},
        {"\"tags\":\"a\"", "'tags' is a list of 32 texts at most"},
        {"\"tags\":[\"two words\"]", "without blanks and commas, not 'two words'"},
        {"\"tags\":[\"\"]", "a tag is a word of 1 to 60 bytes"},
        {"\"starred\":1", "'starred' is true or false"},
        {"\"colour\":\"red\"", "a run has no 'colour' to be noted: it has note, tags, starred and archived"},
        {"\"name\":\"a\"", "nothing is to be noted"},
    };
    place p;
    char body[200], path[128];
    begin(&p);
    write_file(&p, "a", "metrics.jsonl", "w", LINE(1, 0.5));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"name\":\"a\",\"archived\":true,%s}", wrong[i].members);
        if (strstr(wrong[i].members, "\"name\"") != NULL)
            snprintf(body, sizeof body, "{\"name\":\"a\"}");
        web_posted(&p.client, "/api/run-notes", body);
        CHECK_INT(p.client.code, 400);
        const char *why = web_string(p.client.answer, "error");
        if (why == NULL || strstr(why, wrong[i].why) == NULL)
            TEST_FAIL("%s: %s", wrong[i].members, why);
    }
    web_posted(&p.client, "/api/run-notes", "{\"name\":\"b\",\"archived\":true}");
    CHECK_INT(p.client.code, 404);
    web_posted(&p.client, "/api/run-notes", "{\"archived\":true}");
    CHECK_INT(p.client.code, 400);
    snprintf(path, sizeof path, "%s/a/notes.json", p.folder);
    CHECK(!sgm__file_exists(path));

    /* A file of somebody's that is none of ours stays as it is, and so does what a link leads to. */
    write_file(&p, "a", "notes.json", "w", "groceries");
    web_posted(&p.client, "/api/run-notes", "{\"name\":\"a\",\"archived\":true}");
    CHECK_INT(p.client.code, 400);
    CHECK_STR(web_string(p.client.answer, "error"),
              "notes.json of 'a' is no JSON object: mend or remove it in the run's folder");
    char *text = file_of(&p, "a");
    CHECK_STR(text, "groceries");
    sgm__free(text);
    CHECK_INT(unlink(path), 0);
    write_file(&p, "b", "outside.json", "w", "{\"note\":\"of b\"}");
    CHECK_INT(symlink("../b/outside.json", path), 0);
    CHECK_STR(json_string_value(json_object_get(run_named(&p, "a"), "note")), "");
    web_posted(&p.client, "/api/run-notes", "{\"name\":\"a\",\"note\":\"mine\"}");
    CHECK_INT(p.client.code, 200);
    CHECK_STR(json_string_value(json_object_get(run_named(&p, "a"), "note")), "mine");
    snprintf(path, sizeof path, "%s/b/outside.json", p.folder);
    size_t length;
    CHECK_OK(sgm__file_read(path, 4096, &text, &length));
    CHECK_STR(text, "{\"note\":\"of b\"}");
    sgm__free(text);
    end(&p);
}

TEST(a_report_is_one_file)
{
    place p;
    begin(&p);
    write_file(&p, "a", "metrics.jsonl", "w", LINE(1, 0.5) LINE(2, 0.25));
    write_file(&p, "group/b", "metrics.jsonl", "w", LINE(1, 0.75));
    write_file(&p, "a", "journal.jsonl", "w", "{\"event\":\"set\"}\n"); /* without a checksum: damaged */
    client_answer answer =
        client_ask(p.client.port,
                   "GET /api/report?run=a&run=group%%2Fb HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                   "Authorization: Bearer %s\r\nConnection: close\r\n\r\n",
                   p.client.port, p.client.token);
    const char *text = answer.all;
    CHECK_INT(answer.code, 200);
    CHECK(strstr(text, "Content-Type: text/html; charset=utf-8") != NULL);
    CHECK(strstr(text, "attachment; filename=\"report.html\"") != NULL);
    CHECK(strstr(text, "</span>group/b</th>") != NULL && strstr(text, "<polyline class=\"s0\"") != NULL);
    CHECK(strstr(text, "line 1: ") != NULL); /* why the journal cannot be read */
    client_free(&answer);
    web_got(&p.client, "/api/report?run=c");
    CHECK_INT(p.client.code, 404);
    web_got(&p.client, "/api/report");
    CHECK_INT(p.client.code, 400);
    CHECK_STR(web_string(p.client.answer, "error"), "which runs? expected ?run=NAME");
    end(&p);
}

TEST(runs_are_renamed_and_deleted)
{
    place p;
    char path[128];
    begin(&p);
    write_file(&p, "a", "metrics.jsonl", "w", LINE(1, 0.5));
    write_file(&p, "a/more", "notes.txt", "w", "x");
    write_file(&p, "b", "metrics.jsonl", "w", LINE(1, 0.5));
    web_posted(&p.client, "/api/run-rename", "{\"name\":\"a\",\"to\":\"b\"}");
    CHECK_INT(p.client.code, 409);
    web_posted(&p.client, "/api/run-rename", "{\"name\":\"a\",\"to\":\"best one\"}");
    CHECK_INT(p.client.code, 200);
    CHECK(run_named(&p, "a") == NULL);
    web_got(&p.client, "/api/run/best%20one");
    CHECK_INT(p.client.code, 200);

    web_posted(&p.client, "/api/run-delete", "{\"name\":\"best one\",\"confirmation\":\"b\"}");
    CHECK_INT(p.client.code, 400);
    CHECK_INT(count_runs(&p), 2);
    web_posted(&p.client, "/api/run-delete", "{\"name\":\"best one\",\"confirmation\":\"best one\"}");
    CHECK_INT(p.client.code, 200);
    CHECK_INT(count_runs(&p), 1);
    snprintf(path, sizeof path, "%s/best one", p.folder);
    CHECK(!sgm__file_exists(path));
    end(&p);
}

TEST(a_folder_that_is_too_deep_is_not_deleted)
{
    place p;
    char inner[128] = "a";
    begin(&p);
    write_file(&p, "a", "metrics.jsonl", "w", LINE(1, 0.5));
    for (int i = 0; i < 33; i++)
        strcat(inner, "/b");
    write_file(&p, inner, "notes.txt", "w", "x");
    CHECK_POST_REFUSED(&p.client, "/api/run-delete", "{\"name\":\"a\",\"confirmation\":\"a\"}", 500,
                       "'b' is more than 32 folders deep: delete it by hand");
    end(&p);
}

TEST(changes_have_terms)
{
    static const char *const changes[][2] = {
        {"/api/run-delete", "\"confirmation\":\"a\""},
        {"/api/run-rename", "\"to\":\"b\""},
        {"/api/run-notes", "\"note\":\"x\""},
        {"/api/run-replay", "\"inexact\":true"},
    };
    place p;
    char body[200], expected[100];
    begin(&p);
    write_file(&p, "a", "metrics.jsonl", "w", LINE(1, 0.5));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        snprintf(body, sizeof body, "{\"name\":\"a\",%s,\"dry_run\":true}", changes[i][1]);
        web_posted(&p.client, changes[i][0], body);
        CHECK_INT(p.client.code, 400);
        snprintf(expected, sizeof expected, "%s cannot be tried: leave 'dry_run' out", changes[i][0]);
        CHECK_STR(web_string(p.client.answer, "error"), expected);
        snprintf(body, sizeof body, "{\"name\":\"a\",%s,\"role\":\"look\"}", changes[i][1]);
        web_posted(&p.client, changes[i][0], body);
        CHECK_INT(p.client.code, 403);
        snprintf(body, sizeof body, "{\"name\":\"a\",%s,\"by\":\"two\\nlines\"}", changes[i][1]);
        web_posted(&p.client, changes[i][0], body);
        CHECK_INT(p.client.code, 400);
    }
    CHECK(run_named(&p, "a") != NULL);
    web_posted(&p.client, "/api/run-notes",
               "{\"name\":\"a\",\"note\":\"x\",\"by\":\"anna\",\"reason\":\"for later\"}");
    CHECK_INT(p.client.code, 200);
    CHECK_STR(json_string_value(json_object_get(run_named(&p, "a"), "note")), "x");
    end(&p);
}

TEST(names_lead_nowhere_else)
{
    static const char *const bad[] = {"..", ".", "../x", "a/b", "", ".hidden", "a\\nb"};
    place p;
    char path[128], to[128], body[128];
    begin(&p);
    write_file(&p, "a", "metrics.jsonl", "w", LINE(1, 0.5));
    write_file(&p, "outer", "metrics.jsonl", "w", LINE(1, 0.5));
    write_file(&p, "outer/inner", "metrics.jsonl", "w", LINE(1, 0.5));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(body, sizeof body, "{\"name\":\"a\",\"to\":\"%s\"}", bad[i]);
        web_posted(&p.client, "/api/run-rename", body);
        CHECK_INT(p.client.code, 400);
        snprintf(body, sizeof body, "{\"name\":\"%s\",\"confirmation\":\"%s\"}", bad[i], bad[i]);
        web_posted(&p.client, "/api/run-delete", body);
        CHECK_INT(p.client.code, 404);
    }
    web_posted(&p.client, "/api/run-delete", "{\"name\":\"outer\",\"confirmation\":\"outer\"}");
    CHECK_INT(p.client.code, 409); /* another run is in it */
    web_posted(&p.client, "/api/run-delete", "{\"name\":7}");
    CHECK_INT(p.client.code, 400);
    web_got(&p.client, "/api/run/..%2f..%2fetc");
    CHECK(p.client.code >= 400);

    /* links are no runs, and what they lead to stays */
    char elsewhere[] = "/tmp/sigma-elsewhere-XXXXXX";
    CHECK(mkdtemp(elsewhere) != NULL);
    snprintf(path, sizeof path, "%s/metrics.jsonl", elsewhere);
    fclose(fopen(path, "w"));
    snprintf(to, sizeof to, "%s/link", p.folder);
    CHECK_INT(symlink(elsewhere, to), 0);
    CHECK(run_named(&p, "link") == NULL);
    snprintf(to, sizeof to, "%s/a/link", p.folder);
    CHECK_INT(symlink(elsewhere, to), 0);
    web_posted(&p.client, "/api/run-delete", "{\"name\":\"a\",\"confirmation\":\"a\"}");
    CHECK_INT(p.client.code, 200);
    CHECK(sgm__file_exists(path));
    unlink(path);
    rmdir(elsewhere);
    end(&p);
}

/* The description of a branch is a copy; what it began with is in its journal. */
TEST(a_branch_is_shown_with_the_values_that_it_has)
{
    place p;
    begin(&p);
    write_file(&p, "a-slow", "config.yaml", "w", "rate 5");
    CHECK_NEAR(number(run_named(&p, "a-slow"), "configuration", "rate"), 5, 0);
    write_file(&p, "a-slow", "journal.jsonl", "w",
               "{\"event\":\"begin\",\"branched\":{\"from\":\"a\",\"set\":{\"rate\":\"0.25\",\"kind\":"
               "\"cosine\"}}}\n"
               "{\"event\":\"end\"}\n");
    CHECK_NEAR(number(run_named(&p, "a-slow"), "configuration", "rate"), 0.25, 0);
    CHECK_STR(
        json_string_value(json_object_get(json_object_get(run_named(&p, "a-slow"), "configuration"), "kind")),
        "cosine");
    end(&p);
}

TEST(a_configuration_that_is_none_is_told)
{
    place p;
    begin(&p);
    write_file(&p, "a", "config.yaml", "w", "no-pair");
    const json_t *run = run_named(&p, "a");
    CHECK_STR(json_string_value(json_object_get(run, "configuration_error")), "this is no pair");
    CHECK_INT(json_object_size(json_object_get(run, "configuration")), 0);
    end(&p);
}

TEST(of_runs_of_another_version_nothing_is_read)
{
    static const char message[] = "its version is 3, this library reads version 2";
    place p;
    begin(&p);
    write_file(&p, "a", "run.json", "w", "{\"version\":3}");
    write_file(&p, "a", "metrics.jsonl", "w", LINE(1, 0.5));
    const json_t *run = run_named(&p, "a");
    const char *error = json_string_value(json_object_get(run, "configuration_error"));
    CHECK(error != NULL && strstr(error, message) == error);
    CHECK_INT(json_object_size(json_object_get(run, "metrics")), 0);
    const json_t *answer = web_got(&p.client, "/api/run/a");
    CHECK_INT(p.client.code, 400);
    CHECK(strstr(web_string(answer, "error"), message) != NULL);
    write_file(&p, "a", "run.json", "w", "{\"version\":2}");
    CHECK_NEAR(number(run_named(&p, "a"), "metrics", "loss"), 0.5, 0);
    CHECK_INT(json_array_size(json_object_get(web_at(web_got(&p.client, "/api/run/a"), "columns"), "loss")),
              1);
    end(&p);
}

/* Bytes that this process has read so far, from files and connections. */
static int64_t bytes_read(void)
{
    char line[64];
    long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    if (file == NULL || fgets(line, sizeof line, file) == NULL || sscanf(line, "rchar: %lld", &bytes) != 1)
        TEST_FAIL("/proc/self/io does not begin with what was read");
    fclose(file);
    return bytes;
}

/* What has not changed is not read again: a listing takes a small part of the first one's time. */
TEST(a_thousand_runs_are_read_once)
{
    place p;
    begin(&p);
    char *metrics = sgm__alloc(40 * 160), name[32];
    size_t length = 0;
    for (int epoch = 1; epoch <= 40; epoch++)
        length +=
            (size_t)snprintf(metrics + length, 160,
                             "{\"epoch\":%d,\"iteration\":%d,\"loss\":%g,\"accuracy\":0.9,\"learning_rate\":"
                             "0.001,\"seconds\":%d,\"validation.loss\":%g,\"branch\":0}\n",
                             epoch, epoch * 47, 1.0 / epoch, epoch, 2.0 / epoch);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "run-%04d", i);
        write_file(&p, name, "metrics.jsonl", "w", metrics);
        write_file(&p, name, "config.yaml", "w", "epochs 40\n");
    }
    double before = sgm__now();
    int64_t read = bytes_read();
    CHECK_INT(count_runs(&p), 1000);
    double first = sgm__now() - before;
    int64_t first_read = bytes_read() - read;
    before = sgm__now();
    read = bytes_read();
    CHECK_INT(count_runs(&p), 1000);
    double second = sgm__now() - before;
    int64_t second_read = bytes_read() - read;
    printf("1,000 runs of 40 epochs: listed in %.3f s, %.1f MB read; once more in %.3f s, %.1f MB\n", first,
           (double)first_read * 1e-6, second, (double)second_read * 1e-6);
    CHECK(first_read > 1000 * (int64_t)length && second_read < first_read / 4);
    sgm__free(metrics);
    end(&p);
}
