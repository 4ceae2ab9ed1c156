/* The logger: levels, sinks, lines, files that are rotated, several threads and processes. */
#include "base/allocator.h"
#include "base/base.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    if (folder[0] == '\0') {
        strcpy(folder, "/tmp/sigma-log-XXXXXX");
        CHECK(mkdtemp(folder) != NULL);
    }
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Also removes what was in it, so that every test begins with none. */
static void remove_folder(void)
{
    char command[256];
    snprintf(command, sizeof command, "chmod -R u+w %s && rm -rf %s", folder, folder);
    if (folder[0] != '\0')
        CHECK_INT(system(command), 0);
    folder[0] = '\0';
}

/* The text of a file, "" if there is none; at most one at a time. */
static const char *text_of(const char *path)
{
    static char *text;
    size_t length;
    sgm__free(text);
    if (sgm__file_read(path, (size_t)1 << 24, &text, &length) != SGM_OK)
        return "";
    return text;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

typedef struct seen {
    int calls;
    sgm_log_level level;
    char source[64], message[256];
    sgm_log_sink *ends; /* in its call */
} seen;

static void remember(void *user, sgm_log_level level, const char *source, const char *message)
{
    seen *self = user;
    self->calls++;
    self->level = level;
    snprintf(self->source, sizeof self->source, "%s", source);
    snprintf(self->message, sizeof self->message, "%s", message);
    sgm_log_remove_sink(self->ends);
    self->ends = NULL;
}

TEST(every_sink_has_its_level)
{
    static const sgm_log_level levels[] = {SGM_LOG_DEBUG, SGM_LOG_INFO, SGM_LOG_WARNING, SGM_LOG_ERROR,
                                           SGM_LOG_NONE};
    seen all[5] = {0};
    sgm_log_sink *sinks[5];
    for (int i = 0; i < 5; i++)
        CHECK_OK(sinks[i] = sgm_log_add_sink(remember, &all[i], levels[i]));
    for (int i = 0; i < 4; i++)
        sgm_log_message(levels[i], "test", "message %d", i);
    sgm_log_message(SGM_LOG_NONE, "test", "none");
    for (int i = 0; i < 5; i++)
        CHECK_INT(all[i].calls, 4 - i);
    sgm_log_set_level(sinks[4], SGM_LOG_ERROR);
    sgm_log_set_level(sinks[0], SGM_LOG_NONE);
    sgm_log_message(SGM_LOG_ERROR, "test", "late");
    CHECK_STR(all[4].message, "late");
    CHECK_STR(all[0].message, "message 3");
    for (int i = 0; i < 5; i++)
        sgm_log_remove_sink(sinks[i]);
    sgm_log_message(SGM_LOG_ERROR, "test", "later");
    CHECK_STR(all[4].message, "late");
}

TEST(a_sink_may_end_in_its_own_call)
{
    seen self = {0};
    CHECK_OK(self.ends = sgm_log_add_sink(remember, &self, SGM_LOG_DEBUG));
    sgm_log_message(SGM_LOG_INFO, "test", "first");
    sgm_log_message(SGM_LOG_INFO, "test", "second");
    CHECK_INT(self.calls, 1);
    sgm_log_remove_sink(NULL);
}

TEST(levels_have_names)
{
    sgm_log_level level;
    for (int i = 0; i <= SGM_LOG_NONE; i++) {
        CHECK_OK(sgm_log_level_parse(sgm_log_level_name((sgm_log_level)i), &level));
        CHECK_INT(level, i);
    }
    CHECK_STR(sgm_log_level_name(SGM_LOG_NONE), "off");
    CHECK_ERROR(sgm_log_level_parse("warnings", &level), "did you mean 'warning'?");
    CHECK_ERROR(sgm_log_level_parse(NULL, &level), "there are debug, info, warning, error and off");
}

TEST(a_message_nobody_wants_takes_no_memory)
{
    seen self = {0};
    sgm_log_sink *sink = sgm_log_add_sink(remember, &self, SGM_LOG_WARNING);
    allocator_start(1);
    for (int i = 0; i < 1000; i++)
        sgm_log_message(SGM_LOG_DEBUG, "test", "message %d", i);
    sgm_log_message(SGM_LOG_ERROR, "test", "this one neither");
    long calls = atomic_load(&allocator_calls);
    allocator_stop();
    CHECK_INT(calls, 0);
    CHECK_INT(self.calls, 1);
    sgm_log_remove_sink(sink);
}

TEST(sinks_fail_without_memory)
{
    seen self = {0};
    allocator_start(1);
    sgm_log_sink *sink = sgm_log_add_sink(remember, &self, SGM_LOG_WARNING);
    CHECK(sink == NULL);
    CHECK(sgm_log_add_file(in_folder("a.log")) == NULL);
    CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
    allocator_stop();
    CHECK_ERROR(sgm_log_add_sink(NULL, NULL, SGM_LOG_INFO), "expected a function");
    remove_folder();
}

TEST(lines_of_a_file_have_time_process_level_and_source)
{
    char expected[64];
    const char *path = in_folder("a.log");
    sgm_log_sink *sink = sgm_log_add_file(path, .level = SGM_LOG_INFO);
    CHECK_OK(sink);
    sgm_log_message(SGM_LOG_DEBUG, "data", "unwanted");
    sgm_log_message(SGM_LOG_WARNING, "data", "four rows\nare \033[2Jempty\r\n");
    sgm_log_message(SGM_LOG_INFO, "", "%3000s", "");
    sgm_log_remove_sink(sink);
    const char *text = text_of(path);
    snprintf(expected, sizeof expected, " [%d] warning data: four rows\n    are ?[2Jempty?\n    \n",
             (int)getpid());
    CHECK(strstr(text, expected) != NULL);
    CHECK(strstr(text, "unwanted") == NULL);
    CHECK_INT(strspn(text, "0123456789-:. "), strlen("2026-11-21 10:07:40.123 "));
    CHECK_STR(text + strlen(text) - 5, " ...\n");
    remove_folder();
}

TEST(messages_all_of_line_breaks_fit)
{
    char message[3000];
    memset(message, '\n', sizeof message);
    message[sizeof message - 1] = '\0';
    sgm_log_sink *sink = sgm_log_add_file(in_folder("a.log"));
    sgm_log_message(SGM_LOG_INFO, message, "%s", message);
    sgm_log_remove_sink(sink);
    CHECK(strlen(text_of(in_folder("a.log"))) > 1000);
    remove_folder();
}

TEST(a_large_file_is_rotated_and_the_oldest_goes)
{
    sgm_log_sink *sink = sgm_log_add_file(in_folder("a.log"), .bytes = 1000, .files = 2);
    for (int i = 0; i < 100; i++)
        sgm_log_message(SGM_LOG_INFO, "test", "message %03d", i);
    sgm_log_remove_sink(sink);
    CHECK(!sgm__file_exists(in_folder("a.log.3")));
    char all[8000];
    all[0] = '\0';
    for (int i = 2; i >= 0; i--) {
        char name[16];
        snprintf(name, sizeof name, i > 0 ? "a.log.%d" : "a.log", i);
        const char *text = text_of(in_folder(name));
        CHECK(strlen(text) > 0 && strlen(text) <= 1000);
        strcat(all, text);
    }
    /* The newest, in order, without a gap. */
    int first = 100 - count_of(all, "message ");
    CHECK(first > 40 && first < 80);
    const char *place = all;
    for (int i = first; i < 100; i++) {
        char message[32];
        snprintf(message, sizeof message, "message %03d\n", i);
        place = strstr(place, message);
        if (place == NULL)
            TEST_FAIL("message %d is missing", i);
    }
    remove_folder();
}

TEST(old_files_may_be_unwanted_and_rotation_too)
{
    sgm_log_sink *sink = sgm_log_add_file(in_folder("a.log"), .bytes = 200, .files = -1);
    sgm_log_sink *other = sgm_log_add_file(in_folder("b.log"), .bytes = -1);
    for (int i = 0; i < 20; i++)
        sgm_log_message(SGM_LOG_INFO, "test", "message %03d", i);
    sgm_log_remove_sink(sink);
    sgm_log_remove_sink(other);
    CHECK(strlen(text_of(in_folder("a.log"))) <= 200);
    CHECK(strstr(text_of(in_folder("a.log")), "message 019\n") != NULL);
    CHECK(!sgm__file_exists(in_folder("a.log.1")));
    CHECK_INT(count_of(text_of(in_folder("b.log")), "message"), 20);
    remove_folder();
}

TEST(failure_to_rotate_is_told_once_and_logging_goes_on)
{
    seen self = {0};
    CHECK_INT(mkdir(in_folder("a.log.1"), 0777), 0); /* no file can take its place */
    sgm_log_sink *watcher = sgm_log_add_sink(remember, &self, SGM_LOG_WARNING);
    sgm_log_sink *sink = sgm_log_add_file(in_folder("a.log"), .bytes = 300, .files = 1);
    for (int i = 0; i < 50; i++)
        sgm_log_message(SGM_LOG_INFO, "test", "message %03d", i);
    sgm_log_remove_sink(sink);
    sgm_log_remove_sink(watcher);
    CHECK_INT(self.calls, 1);
    CHECK(strstr(self.message, "a.log' cannot be rotated and grows on: ") != NULL);
    const char *text = text_of(in_folder("a.log"));
    CHECK_INT(count_of(text, "message "), 50);
    CHECK_INT(count_of(text, "cannot be rotated"), 1);
    remove_folder();
}

TEST(a_file_that_is_taken_away_comes_again)
{
    sgm_log_sink *sink = sgm_log_add_file(in_folder("a.log"));
    sgm_log_message(SGM_LOG_INFO, "test", "first");
    CHECK_INT(rename(in_folder("a.log"), in_folder("away.log")), 0);
    sgm_log_message(SGM_LOG_INFO, "test", "second");
    sgm_log_remove_sink(sink);
    CHECK(strstr(text_of(in_folder("away.log")), "first") != NULL);
    CHECK(strstr(text_of(in_folder("a.log")), "second") != NULL);
    remove_folder();
}

TEST(a_file_that_cannot_be_written_is_told_once)
{
    seen self = {0};
    if (access("/dev/full", W_OK) != 0)
        SKIP("there is no /dev/full");
    sgm_log_sink *watcher = sgm_log_add_sink(remember, &self, SGM_LOG_WARNING);
    sgm_log_sink *sink = sgm_log_add_file("/dev/full");
    for (int i = 0; i < 10; i++)
        sgm_log_message(SGM_LOG_INFO, "test", "message %d", i);
    sgm_log_remove_sink(sink);
    sgm_log_remove_sink(watcher);
    CHECK_INT(self.calls, 1);
    CHECK(strstr(self.message, "the file '/dev/full' cannot be written: No space left on device") != NULL);
    CHECK_ERROR(sgm_log_add_file("/nowhere/at/all.log"),
                "'/nowhere/at/all.log' cannot be opened: No such file");
    CHECK_ERROR(sgm_log_add_file("a.log", .bytes = -2), "expected at least -1 bytes");
    CHECK_ERROR(sgm_log_add_file("a.log", .files = 1000), "-1 to 999 old files");
    CHECK_ERROR(sgm_log_add_file(""), "expected a path");
}

/* --- several threads, several processes --- */

#define WRITERS 4
#define MESSAGES 500

static void write_many(int writer)
{
    for (int i = 0; i < MESSAGES; i++)
        sgm_log_message(SGM_LOG_INFO, "test", "writer %d message %03d end", writer, i);
}

static void *write_in_thread(void *user)
{
    write_many(*(int *)user);
    return NULL;
}

/* Every message is in a.log or one of its old files, whole and once. */
static void check_all_messages(int files)
{
    static char seen_messages[WRITERS][MESSAGES];
    int lines = 0;
    memset(seen_messages, 0, sizeof seen_messages);
    for (int i = 0; i <= files; i++) {
        char name[16];
        snprintf(name, sizeof name, i > 0 ? "a.log.%d" : "a.log", i);
        const char *text = sgm__file_exists(in_folder(name)) ? text_of(in_folder(name)) : "";
        for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
            int year, writer, message, end = 0;
            if (sscanf(line, "%d-%*d-%*d %*d:%*d:%*f [%*d] info test: writer %d message %d end%n", &year,
                       &writer, &message, &end) != 3 ||
                line[end] != '\n' || writer < 0 || writer >= WRITERS || message < 0 || message >= MESSAGES)
                TEST_FAIL("%s has the line '%.100s'", name, line);
            seen_messages[writer][message]++;
            lines++;
        }
    }
    CHECK_INT(lines, WRITERS * MESSAGES);
    for (int i = 0; i < WRITERS; i++)
        for (int k = 0; k < MESSAGES; k++)
            if (seen_messages[i][k] != 1)
                TEST_FAIL("message %d of writer %d is there %d times", k, i, seen_messages[i][k]);
}

TEST(threads_lose_and_mix_no_lines)
{
    pthread_t threads[WRITERS];
    int numbers[WRITERS];
    seen self = {0};
    sgm_log_sink *sink = sgm_log_add_file(in_folder("a.log"), .bytes = 20000, .files = 50);
    sgm_log_sink *other = sgm_log_add_sink(remember, &self, SGM_LOG_INFO);
    for (int i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        CHECK_INT(pthread_create(&threads[i], NULL, write_in_thread, &numbers[i]), 0);
    }
    for (int i = 0; i < 100; i++) { /* sinks come and go meanwhile */
        sgm_log_sink *passing = sgm_log_add_file(in_folder("b.log"), .bytes = 5000);
        sgm_log_set_level(passing, SGM_LOG_ERROR);
        sgm_log_remove_sink(passing);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    sgm_log_remove_sink(other);
    sgm_log_remove_sink(sink);
    CHECK_INT(self.calls, WRITERS * MESSAGES);
    check_all_messages(50);
    remove_folder();
}

/* Half of them write through a sink that was opened before the fork, half through one of their own. */
TEST(processes_lose_and_mix_no_lines)
{
    pid_t children[WRITERS];
    const char *path = in_folder("a.log");
    sgm_log_sink *sink = sgm_log_add_file(path, .bytes = 15000, .files = 60);
    CHECK_OK(sink);
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            if (i % 2 == 1) {
                sgm_log_remove_sink(sink);
                sink = sgm_log_add_file(path, .bytes = 15000, .files = 60);
            }
            write_many(i);
            _exit(sink != NULL ? 0 : 1);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        CHECK_INT(waitpid(children[i], &status, 0), children[i]);
        CHECK_INT(status, 0);
    }
    sgm_log_remove_sink(sink);
    check_all_messages(60);
    CHECK(sgm__file_exists(in_folder("a.log.3")));
    remove_folder();
}

/* --- stderr, and what the user's environment says: in a child, as both are settled once --- */

static const char *child_stderr(void (*act)(void), const char *level, const char *file)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int out = open(in_folder("stderr"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        dup2(out, STDERR_FILENO);
        if (level != NULL)
            setenv("SIGMA_LOG", level, 1);
        if (file != NULL)
            setenv("SIGMA_LOG_FILE", file, 1);
        act();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return text_of(in_folder("stderr"));
}

static void log_one_of_each(void)
{
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    for (int i = 0; i < 4; i++)
        sgm_log_message((sgm_log_level)i, "test", "message %d", i);
}

TEST(stderr_gets_warnings_without_colour_when_it_is_no_terminal)
{
    in_folder("");
    const char *text = child_stderr(log_one_of_each, NULL, NULL);
    CHECK(strstr(text, " warning test: message 2\n") != NULL);
    CHECK(strstr(text, " error test: message 3\n") != NULL);
    CHECK(strstr(text, "message 1") == NULL && strchr(text, '\033') == NULL);
    CHECK_INT(strspn(text, "0123456789:. "), strlen("10:07:40.123 "));
    remove_folder();
}

/* What stderr shows when it is a terminal. */
static const char *terminal_text(bool no_colour)
{
    static char text[4096];
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int shown = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    CHECK(shown >= 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(shown, STDERR_FILENO);
        setenv("TERM", "xterm", 1);
        unsetenv("NO_COLOR");
        if (no_colour)
            setenv("NO_COLOR", "1", 1);
        log_one_of_each();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    ssize_t length = read(terminal, text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    close(shown);
    close(terminal);
    return text;
}

TEST(a_terminal_shows_levels_in_colours_unless_it_should_not)
{
    const char *text = terminal_text(false);
    CHECK(strstr(text, "\033[33mwarning\033[0m") != NULL);
    CHECK(strstr(text, "\033[1;31merror\033[0m") != NULL);
    text = terminal_text(true);
    CHECK(strstr(text, "warning test: message 2") != NULL && strchr(text, '\033') == NULL);
}

/* Without options a file has 15 MB, and there are 5 older ones. */
TEST(files_have_a_size_and_a_number_of_their_own)
{
    char message[2000];
    memset(message, 'x', sizeof message - 1);
    message[sizeof message - 1] = '\0';
    sgm_log_sink *sink = sgm_log_add_file(in_folder("a.log"));
    for (int i = 0; i < 60000; i++)
        sgm_log_message(SGM_LOG_INFO, "test", "%s", message);
    sgm_log_remove_sink(sink);
    CHECK(sgm__file_exists(in_folder("a.log.5")));
    CHECK(!sgm__file_exists(in_folder("a.log.6")));
    struct stat info;
    CHECK_INT(stat(in_folder("a.log.5"), &info), 0);
    CHECK(info.st_size <= 15000000 && info.st_size > 15000000 - 4000);
    remove_folder();
}
