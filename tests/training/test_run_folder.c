/* What is left in the folder of a run that was killed, and how the next one goes on from it. */
#include "waves.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[64];

static void open_folder(void)
{
    strcpy(folder, "/tmp/sigma-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void close_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

static const char *path_of(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "wb");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
}

static const char *read_file(const char *name)
{
    static char text[8192];
    FILE *file = fopen(path_of(name), "rb");
    if (file == NULL)
        return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static bool is_there(const char *name)
{
    struct stat about;
    return stat(path_of(name), &about) == 0;
}

static void train(int64_t epochs, const char *rule)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
    if (rule != NULL)
        CHECK_OK(sgm_trainer_hook(made.trainer, sgm_rule_hook(rule)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = epochs, .folder = folder, .resume = true));
    free_wave_trainer(made);
}

TEST(what_was_half_written_goes)
{
    static const char *const leftovers[] = {"checkpoint.safetensors.tmp", "epoch-3.safetensors.tmp",
                                            "metrics.jsonl.tmp", "config.yaml.tmp"};
    open_folder();
    train(1, NULL);
    for (int i = 0; i < 4; i++)
        write_file(leftovers[i], "half");
    write_file("notes.tmp", "mine");
    train(2, NULL);
    for (int i = 0; i < 4; i++)
        CHECK(!is_there(leftovers[i]));
    CHECK_STR(read_file("notes.tmp"), "mine");
    close_folder();
}

static int lines_of(const char *text)
{
    int lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

/* Killed between the line of an epoch and its checkpoint, or while the system went down. */
TEST(metrics_are_those_of_the_checkpoint)
{
    static const struct {
        const char *added;
    } cases[] = {
        {"{\"epoch\":3,\"loss\":9}\n{\"epoch\":4,\"loss\":9}\n"},
        {"{\"epoch\":3,\"lo"},
        {"{\"epoch\":3,\"loss\":9}\n{\"epo"},
        {"null\n"},
        {"\n\n"},
        {"[1, 2]\nnothing\n{\"epoch\":\"three\"}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_folder();
        train(2, NULL);
        FILE *file = fopen(path_of("metrics.jsonl"), "ab");
        fputs(cases[i].added, file);
        fclose(file);
        train(4, NULL);
        const char *text = read_file("metrics.jsonl");
        CHECK_INT(lines_of(text), 4);
        CHECK(strstr(text, "\"loss\":9") == NULL && strstr(text, "three") == NULL);
        close_folder();
    }
}

TEST(a_torn_change_does_not_tear_the_next_one)
{
    open_folder();
    train(1, "after 2 iterations set optimiser.learning_rate = 0.05");
    FILE *file = fopen(path_of("changes.jsonl"), "ab");
    fputs("{\"when\":\"2", file);
    fclose(file);
    train(3, "after 6 iterations set optimiser.learning_rate = 0.02");
    const char *text = read_file("changes.jsonl");
    CHECK_INT(lines_of(text), 3);
    CHECK(strstr(text, "{\"when\":\"2\n{\"when\":\"20") != NULL);
    close_folder();
}

TEST(a_socket_that_was_left_is_replaced)
{
    open_folder();
    int left = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path_of("control.sock"), strlen(path_of("control.sock")) + 1);
    CHECK_INT(bind(left, (const struct sockaddr *)&address, sizeof address), 0);
    close(left);
    CHECK(is_there("control.sock"));
    train(1, NULL);
    CHECK(!is_there("control.sock"));
    close_folder();
}
