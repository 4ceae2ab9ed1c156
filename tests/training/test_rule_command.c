/* Programs that rules run: only where they are allowed, without a shell, for a limited time. */
#include "commands_test.h"

#include "control/control.h"
#include "text/command_words.h"

#include <sigma/replay.h>
#include <stdlib.h>
#include <sys/stat.h>

static char seen_log[16000];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_log(void *user, sgm_log_level level, const char *source, const char *message)
{
    (void)user;
    pthread_mutex_lock(&log_lock);
    size_t length = strlen(seen_log);
    snprintf(seen_log + length, sizeof seen_log - length, "%d %s: %s\n", (int)level, source, message);
    pthread_mutex_unlock(&log_lock);
}

static bool logged(const char *words)
{
    pthread_mutex_lock(&log_lock);
    bool has = strstr(seen_log, words) != NULL;
    pthread_mutex_unlock(&log_lock);
    return has;
}

static void watch_log(void)
{
    seen_log[0] = '\0';
    sgm_set_logger(keep_log, NULL, SGM_LOG_INFO);
}

/* A script in the test's folder, which the rule runs by its path. */
static const char *script(const char *name, const char *text)
{
    static char path[256];
    FILE *file = fopen(in_folder(name), "w");
    CHECK(file != NULL);
    fprintf(file, "#!/bin/sh\n%s", text);
    fclose(file);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_INT(chmod(path, 0755), 0);
    return path;
}

static wave_trainer make_allowing(double seconds)
{
    wave_trainer made = make();
    CHECK_OK(sgm_trainer_allow_commands(made.trainer, seconds));
    return made;
}

static void add_run(sgm_trainer *trainer, const char *step, const char *command)
{
    char text[600];
    snprintf(text, sizeof text, "%s run \"%s\"", step, command);
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_rule_hook(text)));
}

static void check_file(const char *name, const char *expected)
{
    char *text;
    size_t length;
    CHECK_OK(sgm__file_read(in_folder(name), 1 << 16, &text, &length));
    CHECK_STR(text, expected);
    sgm__free(text);
}

/* --- what it sees --- */

TEST(it_gets_the_run_s_values_and_words_as_they_are)
{
    char command[400], run[160], expected[600];
    open_folder();
    watch_log();
    const char *path = script("tell", "cd \"$(dirname \"$0\")\"\n"
                                      "printf '%s\\n' \"$SIGMA_TRAINER\" \"$SIGMA_EPOCH\" "
                                      "\"$SIGMA_ITERATION\" \"$SIGMA_FOLDER\" $# \"$@\" > told\n"
                                      "[ -n \"$SIGMA_LOSS\" ] && echo loss >> told\n"
                                      "[ -e \"$SIGMA_FOLDER/now.safetensors\" ] && echo saved >> told\n");
    snprintf(command, sizeof command, "%s 'two words' $HOME; *.c '' a'b'c > x", path);
    snprintf(run, sizeof run, "%s/run", folder);
    wave_trainer made = make_allowing(20);
    CHECK_INT(setenv("SIGMA_EPOCH", "stale", 1), 0);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook("after 6 iterations save \"now\"")));
    add_run(made.trainer, "after 6 iterations", command);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3, .folder = run));
    CHECK_INT(unsetenv("SIGMA_EPOCH"), 0);
    char *whole = realpath(run, NULL);
    snprintf(expected, sizeof expected,
             "waves\n1\n6\n%s\n7\ntwo words\n$HOME;\n*.c\n\nabc\n>\nx\nloss\nsaved\n", whole);
    free(whole);
    check_file("told", expected);
    CHECK(logged("was started, after epoch 1, iteration 6"));
    CHECK(logged("has ended"));
    CHECK_INT(lines_with("run/log.txt", "has ended", "run '"), 1);
    sgm_set_logger(NULL, NULL, SGM_LOG_INFO);
    free_wave_trainer(made);
    close_folder();
}

/* --- how it ends --- */

TEST(its_output_and_its_end_are_logged)
{
    char exits[300], noisy[300], lines[300];
    open_folder();
    watch_log();
    snprintf(exits, sizeof exits, "%s", script("exits", "echo to out; echo to err >&2; exit 3"));
    snprintf(noisy, sizeof noisy, "%s", script("noisy", "printf 'a\\033[2Jb\\nno end'"));
    snprintf(lines, sizeof lines, "%s", script("lines", "seq 1000 1 2000"));
    wave_trainer made = make_allowing(20);
    add_run(made.trainer, "after 1 iteration", exits);
    add_run(made.trainer, "after 2 iterations", noisy);
    add_run(made.trainer, "after 3 iterations", lines);
    add_run(made.trainer, "after 4 iterations", "/no/such/program");
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(logged(": to out\n"));
    CHECK(logged(": to err\n"));
    CHECK(logged("ended with exit code 3"));
    CHECK(logged(": a?[2Jb\n"));
    CHECK(logged(": no end\n"));
    CHECK(logged(": 1199\n"));
    CHECK(!logged(": 1200\n"));
    CHECK(logged("what it writes more is left out"));
    CHECK(logged("'/no/such/program' cannot be started: No such file"));
    sgm_set_logger(NULL, NULL, SGM_LOG_INFO);
    free_wave_trainer(made);
    close_folder();
}

/* With what it has started, also if that holds its output open. */
TEST(one_that_takes_too_long_is_killed)
{
    open_folder();
    watch_log();
    wave_trainer made = make_allowing(0.3);
    add_run(
        made.trainer, "after 1 iteration",
        script("sleeps", "trap '' TERM INT\n(sleep 7; touch \"$0.late\") &\nsleep 7; touch \"$0.late\"\n"));
    double began = sgm__now();
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(sgm__now() - began < 5);
    CHECK_NEAR(number_of(made.trainer, "epoch"), 2, 0);
    CHECK(logged("sleeps' was killed: it took longer than 0.3 s"));
    sgm_set_logger(NULL, NULL, SGM_LOG_INFO);
    free_wave_trainer(made);
    close_folder();
}

/* The training goes on meanwhile, and no more than so many run at a time. */
TEST(the_training_does_not_wait_for_it)
{
    open_folder();
    watch_log();
    wave_trainer made = make_allowing(20);
    const char *path = script("waits", "while [ ! -e \"$(dirname \"$0\")/go\" ]; do sleep 0.05; done\n");
    background run;
    add_run(made.trainer, "every iteration", path);
    begin(&run, made.trainer, NULL);
    for (int i = 0; i < 5000 && number_of(made.trainer, "iteration") < 20; i++)
        usleep(1000);
    CHECK(number_of(made.trainer, "iteration") >= 20);
    CHECK(logged("is left out: 8 commands are running"));
    CHECK(!logged("has ended"));
    FILE *go = fopen(in_folder("go"), "w");
    CHECK(go != NULL);
    fclose(go);
    end(&run); /* waits for those that run */
    CHECK(made.trainer->progress.commands == NULL);
    CHECK(logged("has ended"));
    sgm_set_logger(NULL, NULL, SGM_LOG_INFO);
    free_wave_trainer(made);
    close_folder();
}

/* --- who may --- */

#define REMEDY                                                                                               \
    "runs a command, which this training does not allow: say allow_commands: true in its file, or "          \
    "sgm_trainer_allow_commands in its program"
#define TOUCH "every iteration run \"touch never\""

static sgm_status ask_attach(sgm_trainer *trainer, const char *hook)
{
    const sgm__control_call call = {.trainer = trainer, .who = "monitor", .role = SGM__ROLE_ADMIN};
    json_t *asked = json_pack("{s:s, s:s}", "command", "attach", "hook", hook), *answer = json_object();
    sgm_status status = sgm__control_obey(&call, asked, answer);
    json_decref(asked);
    json_decref(answer);
    return status;
}

TEST(nobody_attaches_what_is_not_allowed)
{
    wave_trainer made = make(), other = make();
    background run;
    CHECK_ERROR(sgm_trainer_attach_hook(made.trainer, sgm_hook_parse(TOUCH), NULL), "'" TOUCH "' " REMEDY);
    CHECK_ERROR(ask_attach(made.trainer, TOUCH), REMEDY); /* also before it runs */
    CHECK_ERROR(ask_attach(made.trainer, "if external \"go\" then stop and run \"x\""), REMEDY);
    sgm_hook *outer = sgm_accumulator("training.loss");
    CHECK_OK(sgm_hook_require(outer, sgm_hook_parse(TOUCH)));
    CHECK_ERROR(sgm_trainer_attach_hook(made.trainer, outer, NULL), REMEDY);
    begin(&run, made.trainer, NULL);
    pause_it(made.trainer);
    CHECK_ERROR(ask_attach(made.trainer, TOUCH), REMEDY);
    CHECK_ERROR(sgm_trainer_allow_commands(made.trainer, 1), "runs: commands are allowed before");
    size_t count;
    sgm_attached_hook *hooks;
    CHECK_OK(sgm_trainer_hooks(made.trainer, &hooks, &count));
    CHECK_INT(count, 0);
    sgm_attached_hooks_free(hooks, count);
    end(&run);
    CHECK_ERROR(sgm_trainer_allow_commands(made.trainer, -1), "expected 0 to 86400 seconds, got -1");
    CHECK_ERROR(sgm_trainer_allow_commands(NULL, 1), "the trainer is NULL");
    CHECK_OK(sgm_trainer_status(made.trainer));
    CHECK_ERROR(sgm_trainer_add_hook(other.trainer, sgm_hook_parse(TOUCH)), REMEDY);
    free_wave_trainer(other);
    free_wave_trainer(made);
}

/* A checkpoint of a stranger is no permission, whichever way it brings the rule. */
TEST(a_checkpoint_is_no_permission)
{
    open_folder();
    watch_log();
    wave_trainer made = make_allowing(20), with = make(), bare = make();
    sgm_optimiser_free(bare.trainer->learner.optimiser);
    bare.trainer->learner.optimiser = NULL;
    add_run(made.trainer, "every 3 iterations", "true");
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5));
    CHECK_OK(sgm_trainer_save(made.trainer, in_folder("of.safetensors")));
    CHECK_ERROR(sgm_trainer_load(bare.trainer, in_folder("of.safetensors")), REMEDY);
    CHECK_OK(sgm_trainer_allow_commands(bare.trainer, 20));
    CHECK_OK(sgm_trainer_load(bare.trainer, in_folder("of.safetensors")));
    background run;
    begin(&run, made.trainer, NULL);
    pause_it(made.trainer);
    CHECK_OK(ask_attach(made.trainer, "every 4 iterations run \"true\""));
    CHECK_OK(sgm_trainer_save(made.trainer, in_folder("of.safetensors")));
    end(&run);
    CHECK_OK(sgm_trainer_load(with.trainer, in_folder("of.safetensors")));
    CHECK(logged("the checkpoint's hook 'every 4 iterations run \"true\"' is left out: "));
    size_t count;
    sgm_attached_hook *hooks;
    CHECK_OK(sgm_trainer_hooks(with.trainer, &hooks, &count));
    CHECK_INT(count, 0);
    sgm_attached_hooks_free(hooks, count);
    sgm_set_logger(NULL, NULL, SGM_LOG_INFO);
    free_wave_trainer(bare);
    free_wave_trainer(with);
    free_wave_trainer(made);
    close_folder();
}

/* The bits are those of a run without it, and a replay leaves it out. */
TEST(a_replay_does_not_run_it_again)
{
    char run[160];
    open_folder();
    watch_log();
    const char *path = script("counts", "echo once >> \"$0.out\"\n");
    snprintf(run, sizeof run, "%s/run", folder);
    wave_trainer made = make_allowing(20), again = make_allowing(20), without = make();
    add_run(made.trainer, "after 5 iterations", path);
    add_run(again.trainer, "after 5 iterations", path);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3, .folder = run));
    CHECK_OK(
        sgm_trainer_run(again.trainer, .folder = in_folder("again"), .replay = sgm_replay_of(.run = run)));
    CHECK(logged("is left out: this is a replay"));
    check_file("counts.out", "once\n");
    CHECK_OK(sgm_trainer_run(without.trainer, .epochs = 3));
    CHECK(same_states(made.trainer, without.trainer));
    CHECK(same_states(made.trainer, again.trainer));
    sgm_set_logger(NULL, NULL, SGM_LOG_INFO);
    free_wave_trainer(without);
    free_wave_trainer(again);
    free_wave_trainer(made);
    close_folder();
}

/* --- words --- */

TEST(words_are_split_at_spaces_alone)
{
    char **words;
    CHECK_OK(sgm__command_words("  a  'b c' d'e f'g '' \"h $(i) `j` ", &words));
    static const char *const expected[] = {"a", "b c", "de fg", "", "\"h", "$(i)", "`j`"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK_STR(words[i], expected[i]);
    CHECK(words[7] == NULL);
    sgm__command_words_free(words);
    CHECK_ERROR(sgm_rule_parse("at start run \"a 'b\""),
                "column 14: the command has a ' without another one behind");
    CHECK_ERROR(sgm_rule_parse("at start run \"  \""), "column 14: the command names no program");
    CHECK_ERROR(sgm_rule_parse("at start run \"'' a\""), "column 14: the command names no program");
    CHECK_ERROR(sgm_rule_parse("at start run"), "column 13: expected a command in quotes");
    CHECK_ERROR(sgm_rule_parse("at start run \"a\tb\""), "column 16: a text has no control characters");
    CHECK_ERROR(sgm_hook_parse("local at start run \"a\""), "cannot be local: what it restores, runs");
}
