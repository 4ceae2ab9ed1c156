/* What is left in the folder of a run that was killed, and how the next one goes on from it. */
#include "base/folder.h"
#include "journal/journal_file.h"
#include "waves.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "wb");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
}

static const char *read_file(const char *name)
{
    static char text[8192];
    FILE *file = fopen(in_folder(name), "rb");
    if (file == NULL)
        return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static bool is_there(const char *name)
{
    struct stat about;
    return stat(in_folder(name), &about) == 0;
}

static void train(int64_t epochs, const char *rule)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
    if (rule != NULL)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rule)));
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

static void resume_to(const char *rule, int64_t epochs, int64_t expected, const char *reason)
{
    char stopped_by[64] = "";
    wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
    if (rule != NULL)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rule)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = epochs, .folder = folder, .resume = true));
    sgm__control_stops(&made.trainer->control, stopped_by, sizeof stopped_by);
    CHECK_INT(made.trainer->position.epoch, expected);
    CHECK_STR(stopped_by, reason);
    free_wave_trainer(made);
}

/* The checkpoint of the epoch is all that a killed process leaves of the stop. */
TEST(a_run_that_a_rule_ended_stays_ended_until_more_is_wanted)
{
    static const char rule[] = "after 3 epochs stop \"enough\"";
    open_folder();
    resume_to(rule, 9, 3, "rule: enough");
    resume_to(rule, 9, 3, "rule: enough");
    resume_to(rule, 10, 10, "");
    resume_to(rule, 12, 12, "");
    close_folder();
}

static bool stop_at_2(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_EPOCH && progress->epoch == 2)
        CHECK_OK(sgm_trainer_stop(user, "somebody"));
    return true;
}

TEST(a_run_that_somebody_stopped_goes_on)
{
    open_folder();
    wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
    CHECK_OK(sgm_trainer_on_progress(made.trainer, stop_at_2, made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5, .folder = folder));
    CHECK_INT(made.trainer->position.epoch, 2);
    free_wave_trainer(made);
    resume_to(NULL, 5, 5, "");
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
        FILE *file = fopen(in_folder("metrics.jsonl"), "ab");
        fputs(cases[i].added, file);
        fclose(file);
        train(4, NULL);
        const char *text = read_file("metrics.jsonl");
        CHECK_INT(lines_of(text), 4);
        CHECK(strstr(text, "\"loss\":9") == NULL && strstr(text, "three") == NULL);
        close_folder();
    }
}

static void add_change(int64_t iteration, const char *who, const char *what, const char *new)
{
    char line[256];
    snprintf(
        line, sizeof line,
        "{\"event\":\"change\",\"branch\":0,\"epoch\":1,\"iteration\":%lld,\"who\":\"%s\",\"what\":\"%s\","
        "\"old\":0.1,\"new\":%s}",
        (long long)iteration, who, what, new);
    CHECK_OK(sgm__journal_append(folder, line));
}

/* A line that a process writes when it goes on from the checkpoint of the first epoch. */
static void add_beginning(int64_t iteration)
{
    char line[256];
    snprintf(line, sizeof line,
             "{\"event\":\"begin\",\"branch\":0,\"epoch\":1,\"iteration\":%lld,\"resumed\":true}",
             (long long)iteration);
    CHECK_OK(sgm__journal_append(folder, line));
}

static bool watch_rate(void *user, const sgm_training_progress *progress)
{
    double *rates = user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration < 64)
        rates[progress->iteration] = progress->learning_rate;
    return true;
}

/* As after two times kill -9: the file has changes that the checkpoint has not. The second process was killed
 * before it came to where the first one had set the rate. */
TEST(what_was_set_after_the_checkpoint_is_made_again)
{
    double rates[64] = {0};
    open_folder();
    wave_trainer first = make_wave_trainer((wave_options){.seed = 4});
    CHECK_OK(sgm_trainer_run(first.trainer, .epochs = 1, .folder = folder));
    int64_t saved = first.trainer->position.iteration;
    free_wave_trainer(first);
    add_change(saved + 4, "ctl", "optimiser.learning_rate", "0.9"); /* of before the next, which is newer */
    add_beginning(saved);
    add_change(saved + 1, "a rule", "optimiser.learning_rate", "0.5");
    add_change(saved + 1, "ctl", "hook save#1", "\"none\"");
    add_change(saved + 2, "ctl", "optimiser.learning_rate", "0.003");
    wave_trainer second = make_wave_trainer((wave_options){.seed = 4});
    CHECK_OK(sgm_trainer_on_progress(second.trainer, watch_rate, rates));
    CHECK_OK(sgm_trainer_run(second.trainer, .iterations = saved + 6, .folder = folder, .resume = true));
    CHECK_NEAR(rates[saved + 1], 0.1, 1e-12);
    CHECK_NEAR(rates[saved + 3], 0.003, 1e-12);
    CHECK_NEAR(rates[saved + 6], 0.003, 1e-12);
    CHECK(strstr(read_file("journal.jsonl"),
                 "\"again\":true,\"who\":\"ctl\",\"what\":\"optimiser.learning_rate\","
                 "\"old\":0.1,\"new\":0.003,") != NULL);
    CHECK(strstr(read_file("log.txt"), "hook save#1 was changed by ctl") != NULL);
    free_wave_trainer(second);
    close_folder();
}

/* Killed before its first checkpoint: what it told is all that is left of it. */
TEST(without_a_checkpoint_what_is_there_is_kept)
{
    static const char lines[] = "{\"epoch\":1,\"iteration\":4,\"loss\":7.5,\"branch\":0}\n"
                                "{\"epoch\":2,\"iteration\":8,\"loss\":6.5,\"branch\":0}\n{\"ep";
    open_folder();
    write_file("run.json", "{\"version\":2}");
    for (int resume = 0; resume < 2; resume++) {
        write_file("metrics.jsonl", lines);
        write_file("histograms.jsonl", "{\"iteration\":4}\n");
        wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1, .folder = folder, .resume = resume == 1));
        free_wave_trainer(made);
        CHECK_STR(read_file(resume == 0 ? "metrics-before-1.jsonl" : "metrics-before-2.jsonl"), lines);
        CHECK_STR(read_file(resume == 0 ? "histograms-before-1.jsonl" : "histograms-before-2.jsonl"),
                  "{\"iteration\":4}\n");
        CHECK_INT(lines_of(read_file("metrics.jsonl")), 1);
        CHECK(!is_there("histograms.jsonl"));
        CHECK_INT(unlink(in_folder("checkpoint.safetensors")), 0);
        CHECK_INT(unlink(in_folder("metrics.jsonl")), 0);
    }
    train(1, NULL); /* nothing was there */
    CHECK(!is_there("metrics-before-3.jsonl"));
    train(2, NULL); /* a checkpoint is */
    CHECK(!is_there("metrics-before-3.jsonl"));
    CHECK_INT(lines_of(read_file("metrics.jsonl")), 2);
    close_folder();
}

TEST(the_time_goes_on_and_the_loss_of_an_epoch_stays)
{
    sgm_content content = {0};
    open_folder();
    train(1, NULL);
    FILE *file = fopen(in_folder("metrics.jsonl"), "wb");
    fputs("{\"epoch\":1,\"iteration\":1,\"seconds\":1000.5,\"branch\":0}\n", file);
    fclose(file);
    wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2, .folder = folder, .resume = true));
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "running_time", &content));
    CHECK(content.as.number > 1000.5 && content.as.number < 2000);
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "training.loss", &content));
    CHECK(content.as.number > 0);
    CHECK(strstr(read_file("metrics.jsonl"), "\"seconds\":1000.5") != NULL);
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "running_time", &content));
    CHECK(content.as.number < 1000);
    free_wave_trainer(made);
    close_folder();
}

static double loss_of(sgm_trainer *trainer)
{
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), "training.loss", &content));
    return content.as.number;
}

/* A checkpoint of an epoch's end, be it the run's or one that a hook asked for, has what that epoch told. */
TEST(before_its_first_step_it_shows_what_the_checkpoint_had)
{
    open_folder();
    wave_trainer first = make_wave_trainer((wave_options){.seed = 4});
    CHECK_OK(sgm_trainer_add_hook(first.trainer, sgm_rule_hook("at epoch 2 save \"hook\"")));
    CHECK_OK(sgm_trainer_run(first.trainer, .epochs = 2, .folder = folder));
    double loss = loss_of(first.trainer);
    wave_trainer second = make_wave_trainer((wave_options){.seed = 4});
    CHECK(isnan(loss_of(second.trainer)));
    CHECK_OK(sgm_trainer_load(second.trainer, in_folder("checkpoint.safetensors")));
    CHECK_NEAR(loss_of(second.trainer), loss, 0);
    CHECK_OK(sgm_trainer_run(second.trainer, .epochs = 3));
    CHECK(loss_of(second.trainer) != loss);
    CHECK_OK(sgm_trainer_restore(second.trainer, in_folder("hook.safetensors")));
    CHECK_NEAR(loss_of(second.trainer), loss, 0);
    CHECK_OK(sgm_trainer_reset(second.trainer));
    CHECK(isnan(loss_of(second.trainer)));
    free_wave_trainer(second);
    free_wave_trainer(first);
    close_folder();
}

/* Which lines there are: one letter for each. */
static sgm_status add_event(void *user, int64_t number, const json_t *line)
{
    char *events = user;
    (void)number;
    const char *event = json_string_value(json_object_get(line, "event"));
    events[strlen(events)] = event[0] == 'c' && event[2] == 'e' ? 'C' : event[0]; /* "checkpoint" */
    return SGM_OK;
}

TEST(a_torn_line_is_removed_from_the_journal)
{
    char events[64] = "";
    open_folder();
    train(1, "after 2 iterations set optimiser.learning_rate = 0.05");
    FILE *file = fopen(in_folder("journal.jsonl"), "ab");
    fputs("{\"event\":\"ch", file);
    fclose(file);
    CHECK_ERROR(sgm__journal_read(folder, NULL, add_event, events), "line 5: it is cut off");
    train(3, "after 6 iterations set optimiser.learning_rate = 0.02");
    memset(events, 0, sizeof events);
    CHECK_OK(sgm__journal_read(folder, NULL, add_event, events));
    CHECK_STR(events, "bcCebCcCe");
    close_folder();
}

static void refused(bool resume, const char *message)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1, .folder = folder, .resume = resume), message);
    free_wave_trainer(made);
}

TEST(folders_of_another_version_are_refused_and_left_as_they_are)
{
    static const char old[] = "{\"epoch\":1,\"iteration\":4,\"loss\":7.5,\"branch\":0}\n";
    open_folder();
    write_file("metrics.jsonl", old);
    for (int resume = 0; resume < 2; resume++)
        refused(resume == 1,
                "run.json': its version is 1, this library reads version 2; use the library that "
                "wrote it, or train anew in another folder");
    write_file("run.json", "{\"version\":3}\n");
    refused(true, "run.json': its version is 3, this library reads version 2");
    write_file("run.json", "{\"version\":");
    refused(true, "run.json': this is no JSON object");
    CHECK_STR(read_file("metrics.jsonl"), old);
    CHECK(!is_there("checkpoint.safetensors") && !is_there("metrics-before-1.jsonl"));
    CHECK_INT(unlink(in_folder("run.json")), 0);
    CHECK_INT(unlink(in_folder("metrics.jsonl")), 0);
    train(1, NULL);
    CHECK_STR(read_file("run.json"), "{\"version\":2}\n");
    close_folder();
}

/* Nor is it waited for, as a pipe without a writer would be. */
TEST(metrics_that_are_no_file_are_an_error)
{
    open_folder();
    train(1, NULL);
    CHECK_INT(unlink(in_folder("metrics.jsonl")), 0);
    CHECK_INT(mkfifo(in_folder("metrics.jsonl"), 0600), 0);
    wave_trainer made = make_wave_trainer((wave_options){.seed = 4});
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 2, .folder = folder, .resume = true),
                "metrics.jsonl': it is a named pipe, expected a file");
    free_wave_trainer(made);
    close_folder();
}

TEST(a_socket_that_was_left_is_replaced)
{
    open_folder();
    int left = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, in_folder("control.sock"), strlen(in_folder("control.sock")) + 1);
    CHECK_INT(bind(left, (const struct sockaddr *)&address, sizeof address), 0);
    close(left);
    CHECK(is_there("control.sock"));
    train(1, NULL);
    CHECK(!is_there("control.sock"));
    close_folder();
}
