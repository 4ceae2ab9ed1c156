/* Runs that were steered at random are replayed, and end with the same checkpoint, byte for byte. */
#include "requests_test.h"

#include "journal/journal_file.h"
#include "runs/checkpoints.h"

#include <fcntl.h>
#include <sigma/replay.h>

#define RUNS 20
#define EPOCHS 32 /* more than the steps below can train */
#define LEARNING_RATE "optimiser.learning_rate"
#define BIASES "network.layers.3-dense.biases"

/* --- steering --- */

/* A run that a person steers: every so many iterations it is paused, and something is done to it. */
typedef struct steered {
    background run;
    wave_trainer made;
    bool workers;
    uint64_t random;
    int saved, uploaded; /* so many checkpoints were saved and uploaded */
} steered;

/* splitmix64, by Steele, Lea and Flood (2014). */
static int64_t draw(steered *s, int64_t below)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)below);
}

/* The program's part: what every process of the run sets up. A rule changes a value, another one keeps
 * checkpoints; hooks act on the run's life. */
static wave_trainer set_up(bool workers)
{
    wave_trainer made = make();
    if (workers)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse("every 3 iterations, 9 times set "
                                                               "optimiser.beta1 *= 0.99")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse("every 2 epochs save(regular)")));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer,
        sgm_hook_parse("every 3 iterations if external \"go\" then set optimiser.weight_decay += 0.02")));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer,
        sgm_hook_parse("every 7 iterations set optimiser.weight_decay += 0.01 for 3 iterations")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse("at pause set optimiser.beta2 *= 0.999")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse("at stop set optimiser.epsilon *= 1.5")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse("at start set optimiser.epsilon *= 1.25")));
    return made;
}

static void begin_paused(steered *s, bool resume)
{
    s->made = set_up(s->workers);
    s->run.trainer = s->made.trainer;
    s->run.options = (sgm_run_options){.struct_size = sizeof s->run.options,
                                       .epochs = EPOCHS,
                                       .folder = strdup(in_folder("run")),
                                       .resume = resume,
                                       .paused = true};
    CHECK_INT(pthread_create(&s->run.thread, NULL, run_there, &s->run), 0);
    wait_for_pause(s->made.trainer);
}

static void end_process(steered *s)
{
    pthread_join(s->run.thread, NULL);
    CHECK_STR(s->run.status == SGM_OK ? "" : s->run.error, "");
    free((char *)(uintptr_t)s->run.options.folder);
    free_wave_trainer(s->made);
}

/* A person's request; whether it was done. */
static bool person_asks(steered *s, const char *format, ...)
{
    char request[512];
    va_list values;
    va_start(values, format);
    vsnprintf(request, sizeof request, format, values);
    va_end(values);
    return ask(s->made.trainer, request) == SGM_OK;
}

static void set_rate(steered *s)
{
    CHECK(person_asks(s, "{\"command\":\"set\",\"identifier\":\"" LEARNING_RATE "\",\"value\":%.17g}",
                      0.001 + 0.001 * (double)draw(s, 40) / 3));
}

static void set_batch(steered *s)
{
    CHECK(person_asks(s, "{\"command\":\"set\",\"identifier\":\"iterator.minibatch_size\",\"value\":%d}",
                      (int)(4 + draw(s, 12))));
}

static void set_tensor(steered *s)
{
    CHECK(person_asks(s, "{\"command\":\"set\",\"identifier\":\"" BIASES "\",\"value\":[%g,%g,%g]}",
                      (double)draw(s, 100) / 50, (double)draw(s, 100) / 70, -0.5));
}

static const char *const hooks[] = {
    "every 2 iterations set optimiser.learning_rate *= 0.97",
    "every epoch set optimiser.weight_decay += 0.001", "every 4 iterations save(often)",
    "every iteration accumulator(training.loss)",
    "every 2 iterations if training.loss < 1 then set optimiser.beta1 = 0.85"};

static void attach(steered *s)
{
    CHECK(person_asks(s, "{\"command\":\"attach\",\"hook\":\"%s\"}",
                      hooks[draw(s, sizeof hooks / sizeof *hooks)]) ||
          strstr(answer, "is attached already") != NULL);
}

static void detach(steered *s)
{
    static const char *const names[] = {"rule#1", "rule#3", "rule#6", "save#1", "accumulator#1"};
    CHECK(person_asks(s, "{\"command\":\"detach\",\"name\":\"%s\"}",
                      names[draw(s, sizeof names / sizeof *names)]) ||
          strstr(answer, "no hook is named") != NULL);
}

static void freeze(steered *s)
{
    CHECK(person_asks(s, "{\"command\":\"%s\",\"pattern\":\"%d-dense.%s\"}",
                      draw(s, 2) == 0 ? "freeze" : "unfreeze", draw(s, 2) == 0 ? 1 : 3,
                      draw(s, 2) == 0 ? "*" : "weights") ||
          strstr(answer, "nothing would be left to train") != NULL);
}

static void press(steered *s)
{
    CHECK(person_asks(s, "{\"command\":\"press\",\"name\":\"go\"}") ||
          strstr(answer, "no rule waits") != NULL); /* it may be detached */
}

static void undo(steered *s)
{
    person_asks(s, "{\"command\":\"undo\"}"); /* there may be nothing to take back */
}

static void save(steered *s)
{
    CHECK(person_asks(s, "{\"command\":\"save\",\"name\":\"saved-%d\"}", s->saved++));
}

static void upload(steered *s)
{
    char name[32];
    if (s->saved == 0)
        return;
    snprintf(name, sizeof name, "run/saved-%d.safetensors", (int)draw(s, s->saved));
    int file = open(in_folder(name), O_RDONLY);
    CHECK(file >= 0);
    snprintf(name, sizeof name, "uploaded-%d", s->uploaded++);
    CHECK_OK(sgm__checkpoint_add(s->made.trainer, name, "monitor", NULL, file));
    close(file);
}

static void restore(steered *s)
{
    if (s->uploaded > 0 && draw(s, 2) == 0)
        CHECK(
            person_asks(s, "{\"command\":\"restore\",\"name\":\"uploaded-%d\"}", (int)draw(s, s->uploaded)));
    else if (s->saved > 0)
        CHECK(person_asks(s, "{\"command\":\"restore\",\"name\":\"saved-%d\"}", (int)draw(s, s->saved)));
}

static void reset(steered *s)
{
    CHECK(person_asks(s, "{\"command\":\"reset\"}"));
}

/* Stops the run as a person does, and resumes it. */
static void stop(steered *s)
{
    CHECK_OK(sgm_trainer_stop(s->made.trainer, "later"));
    end_process(s);
    begin_paused(s, true);
}

static void shell(const char *format, ...)
{
    char command[512];
    va_list values;
    va_start(values, format);
    vsnprintf(command, sizeof command, format, values);
    va_end(values);
    CHECK_INT(system(command), 0);
}

/* Goes on from the folder as it is now, which is what kill -9 leaves. */
static void be_killed(steered *s)
{
    if (!sgm__file_exists(in_folder("run/checkpoint.safetensors")))
        return;
    shell("cp -r '%s/run' '%s/killed'", folder, folder);
    CHECK_OK(sgm_trainer_stop(s->made.trainer, "killed"));
    end_process(s);
    shell("rm -r '%s/run' && mv '%s/killed' '%s/run'", folder, folder, folder);
    begin_paused(s, true);
}

static void (*const deeds[])(steered *) = {set_rate, set_rate,  set_batch, set_tensor, set_tensor, attach,
                                           attach,   detach,    freeze,    freeze,     press,      press,
                                           undo,     undo,      save,      upload,     restore,    reset,
                                           stop,     be_killed, be_killed};

static void steer(uint64_t seed, bool workers)
{
    steered s = {.random = seed, .workers = workers};
    begin_paused(&s, false);
    for (int i = 0; i < 14; i++) {
        deeds[draw(&s, sizeof deeds / sizeof *deeds)](&s);
        if (draw(&s, 3) > 0)
            step(s.made.trainer, 1 + draw(&s, 6));
    }
    CHECK_OK(sgm_trainer_resume(s.made.trainer));
    end_process(&s);
}

/* --- replaying --- */

static sgm_status replay(const char *name, bool workers, const sgm_replay *options)
{
    wave_trainer made = set_up(workers);
    sgm_status status =
        sgm_trainer_run(made.trainer, .epochs = EPOCHS, .folder = in_folder(name), .replay = options);
    char *message = strdup(sgm_last_error());
    free_wave_trainer(made);
    if (status != SGM_OK)
        sgm_fail(status, "%s", message);
    free(message);
    return status;
}

static bool same_files(const char *one, const char *other)
{
    char command[400];
    snprintf(command, sizeof command, "cmp -s '%s/%s' '%s/%s'", folder, one, folder, other);
    return system(command) == 0;
}

static void check_replay(uint64_t seed, bool workers)
{
    open_folder();
    char run[128];
    snprintf(run, sizeof run, "%s/run", folder);
    steer(seed, workers);
    sgm_status status = replay("again", workers, sgm_replay_of(.run = run));
    if (status != SGM_OK || !same_files("run/checkpoint.safetensors", "again/checkpoint.safetensors")) {
        printf("seed %llu, %s: %s\n", (unsigned long long)seed, folder,
               status == SGM_OK ? "" : sgm_last_error());
        CHECK(false);
    }
    close_folder();
}

TEST(steered_runs_end_alike)
{
    for (uint64_t seed = 1; seed <= RUNS; seed++)
        check_replay(seed, seed % 4 == 0);
}

/* --- where processes begin and end --- */

/* One process of the run in run/: a person's request before the first iteration, if there is one. */
static void run_process(const char *rule, bool workers, bool resume, int64_t epochs, const char *request)
{
    steered s = {.made = set_up(workers)};
    char *where = strdup(in_folder("run"));
    if (rule != NULL)
        CHECK_OK(sgm_trainer_add_hook(s.made.trainer, sgm_hook_parse(rule)));
    s.run.trainer = s.made.trainer;
    s.run.options = (sgm_run_options){.struct_size = sizeof s.run.options,
                                      .epochs = epochs,
                                      .folder = where,
                                      .resume = resume,
                                      .paused = request != NULL};
    CHECK_INT(pthread_create(&s.run.thread, NULL, run_there, &s.run), 0);
    if (request != NULL) {
        wait_for_pause(s.made.trainer);
        CHECK(person_asks(&s, "%s", request));
        person_asks(&s, "{\"command\":\"resume\"}"); /* a stop has ended the pause */
    }
    end_process(&s);
}

static void check_processes(const char *rule, bool workers)
{
    char run[160];
    snprintf(run, sizeof run, "%s/run", folder);
    wave_trainer made = set_up(workers);
    if (rule != NULL)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse(rule)));
    CHECK_OK(
        sgm_trainer_run(made.trainer, .folder = in_folder("again"), .replay = sgm_replay_of(.run = run)));
    free_wave_trainer(made);
    CHECK(same_files("run/checkpoint.safetensors", "again/checkpoint.safetensors"));
    close_folder();
}

TEST(what_a_hook_ended_goes_on_where_it_was_resumed)
{
    open_folder();
    run_process("every 3 epochs stop", false, false, 5, NULL);
    run_process("every 3 epochs stop", false, true, 7, NULL);
    check_processes("every 3 epochs stop", false);
}

TEST(what_was_done_to_a_finished_run_is_done_again)
{
    open_folder();
    run_process(NULL, false, false, 2, NULL);
    run_process(NULL, false, true, 2,
                "{\"command\":\"set\",\"identifier\":\"" LEARNING_RATE "\",\"value\":0.01}");
    check_processes(NULL, false);
}

TEST(a_process_that_trains_nothing_saves_its_workers)
{
    open_folder();
    run_process(NULL, true, false, 2, "{\"command\":\"reset\"}");
    run_process(NULL, true, true, 2, "{\"command\":\"reset\"}");
    run_process(NULL, true, true, 2, "{\"command\":\"stop\"}");
    run_process(NULL, true, true, 3, NULL);
    check_processes(NULL, true);
}

static bool stop_at_six(void *user, const sgm_training_progress *progress)
{
    if (progress->iteration == 6 && progress->kind == SGM_PROGRESS_ITERATION)
        CHECK_OK(sgm_trainer_stop(user, "a visitor"));
    return true;
}

/* Whoever stops a replay is told that it is not whole. */
TEST(a_replay_that_was_stopped_has_failed)
{
    char run[160];
    open_folder();
    run_process(NULL, false, false, 4, NULL);
    snprintf(run, sizeof run, "%s/run", folder);
    wave_trainer made = set_up(false);
    CHECK_OK(sgm_trainer_on_progress(made.trainer, stop_at_six, made.trainer));
    CHECK_ERROR(
        sgm_trainer_run(made.trainer, .folder = in_folder("again"), .replay = sgm_replay_of(.run = run)),
        "ended after epoch 1, iteration 6, stopped by a visitor, before all was done");
    free_wave_trainer(made);
    close_folder();
}

/* --- one run, of which all is known --- */

/* What a person does after so many iterations. */
static const struct deed {
    int64_t iteration;
    const char *request;
} known_deeds[] = {
    {7, "{\"command\":\"set\",\"identifier\":\"" LEARNING_RATE "\",\"value\":0.003}"},
    {9, "{\"command\":\"attach\",\"hook\":\"every 2 iterations set optimiser.learning_rate *= 0.9\"}"},
    {12, "{\"command\":\"set\",\"identifier\":\"" BIASES "\",\"value\":[1,2,3]}"},
};
#define KNOWN_DEEDS ((int)(sizeof known_deeds / sizeof *known_deeds))

typedef struct known {
    steered person;
    int without; /* the deed that is left out; -1: none */
} known;

static bool do_deeds(void *user, const sgm_training_progress *progress)
{
    known *k = user;
    for (int i = 0; i < KNOWN_DEEDS; i++)
        if (progress->kind == SGM_PROGRESS_ITERATION && i != k->without &&
            progress->iteration == known_deeds[i].iteration)
            CHECK(person_asks(&k->person, "%s", known_deeds[i].request));
    return true;
}

static void run_known(const char *name, int without)
{
    known k = {.person.made = set_up(false), .without = without};
    sgm_trainer *trainer = k.person.made.trainer;
    CHECK_OK(sgm_trainer_on_progress(trainer, do_deeds, &k));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 4, .folder = in_folder(name)));
    free_wave_trainer(k.person.made);
}

/* The path of the run that is replayed. */
static const char *known_path(void)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/run", folder);
    return path;
}

TEST(what_was_done_is_listed)
{
    sgm_intervention *list;
    size_t count;
    open_folder();
    run_known("run", -1);
    CHECK_OK(sgm_run_interventions(known_path(), &list, &count));
    CHECK_INT(count, KNOWN_DEEDS);
    CHECK_STR(list[0].text, LEARNING_RATE " was set to 0.003");
    CHECK_STR(list[1].text,
              "hook rule#7 was attached: every 2 iterations set optimiser.learning_rate *= 0.9");
    CHECK_STR(list[2].text, BIASES " was set");
    for (int i = 0; i < KNOWN_DEEDS; i++) {
        CHECK_INT(list[i].iteration, known_deeds[i].iteration);
        CHECK_STR(list[i].event, "change");
        CHECK_STR(list[i].who, "ctl");
        CHECK(list[i].removable);
    }
    sgm_interventions_free(list, count);
    CHECK_ERROR(sgm_run_interventions(in_folder("none"), &list, &count), "has no journal.jsonl");
    close_folder();
}

/* The run that nobody did it to is what a replay without it gives. */
TEST(what_would_have_been_is_what_is_left_out)
{
    sgm_intervention *list;
    size_t count;
    open_folder();
    run_known("run", -1);
    CHECK_OK(sgm_run_interventions(known_path(), &list, &count));
    for (int i = 0; i < KNOWN_DEEDS; i++) {
        const int64_t number = list[i].number;
        run_known("other", i);
        CHECK_OK(replay("again", false,
                        sgm_replay_of(.run = known_path(), .without = &number, .without_count = 1)));
        CHECK(same_files("other/checkpoint.safetensors", "again/checkpoint.safetensors"));
        CHECK(!same_files("run/checkpoint.safetensors", "again/checkpoint.safetensors"));
        shell("rm -r '%s/other' '%s/again'", folder, folder);
    }
    sgm_interventions_free(list, count);
    close_folder();
}

TEST(a_replay_ends_where_it_is_told_to)
{
    open_folder();
    run_known("run", -1);
    CHECK_OK(replay("again", false, sgm_replay_of(.run = known_path(), .until = 10)));
    known k = {.person.made = set_up(false), .without = 2};
    CHECK_OK(sgm_trainer_on_progress(k.person.made.trainer, do_deeds, &k));
    CHECK_OK(sgm_trainer_run(k.person.made.trainer, .iterations = 10));
    wave_trainer loaded = set_up(false);
    CHECK_OK(sgm_trainer_load(loaded.trainer, in_folder("again/checkpoint.safetensors")));
    CHECK(same_states(k.person.made.trainer, loaded.trainer));
    free_wave_trainer(loaded);
    free_wave_trainer(k.person.made);
    CHECK_ERROR(replay("third", false, sgm_replay_of(.run = known_path(), .until = 99)),
                "has 16 iterations up to its newest checkpoint, got 99");
    close_folder();
}

/* A replay has a journal of its own, with the same lines but for their times, and can be replayed. */
TEST(a_replay_can_be_replayed)
{
    char again[160];
    open_folder();
    run_known("run", -1);
    CHECK_OK(replay("again", false, sgm_replay_of(.run = known_path())));
    shell("cd '%s' && for i in run again; do sed -E 's/\"(when|checksum)\":\"[^\"]*\"//g' $i/journal.jsonl "
          ">$i.lines; "
          "done && cmp run.lines again.lines",
          folder);
    snprintf(again, sizeof again, "%s/again", folder);
    CHECK_OK(replay("third", false, sgm_replay_of(.run = again)));
    CHECK(same_files("run/checkpoint.safetensors", "third/checkpoint.safetensors"));
    close_folder();
}

/* --- what cannot be the same --- */

static sgm_status replay_of_another(const char *what, bool inexact)
{
    wave_trainer made = make_wave_trainer((wave_options){
        .network = strcmp(what, "network") == 0
                       ? "input(6) + dense(9, tanh) + dropout(0.3) + dense(3) + softmax_cross_entropy"
                       : "input(6) + dense(8, tanh) + dropout(0.3) + dense(3) + softmax_cross_entropy",
        .handler = strcmp(what, "handler") == 0 ? "cpu" : NULL,
        .optimiser = strcmp(what, "optimiser") == 0 ? sgm_gradient_descent(.learning_rate = 0.01)
                                                    : sgm_adam(.learning_rate = 0.01, .average = 0.9),
        .shuffle = true,
        .seed = strcmp(what, "seed") == 0 ? 6 : 5});
    if (strcmp(what, "clock") == 0)
        CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                      sgm_hook_parse("every iteration if running_time > 3 then stop")));
    if (strcmp(what, "trained") == 0)
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    sgm_status status = sgm_trainer_run(made.trainer, .epochs = 4, .folder = in_folder("again"),
                                        .replay = sgm_replay_of(.run = known_path(), .inexact = inexact));
    char *message = strdup(sgm_last_error());
    free_wave_trainer(made);
    sgm_fail(status, "%s", message);
    free(message);
    return status;
}

/* Everything is told before anything is trained. */
TEST(reasons_are_told_beforehand)
{
    open_folder();
    run_known("run", -1);
    CHECK_ERROR(replay_of_another("network", false), "the network was 'input(6) + dense(8, tanh)");
    CHECK_ERROR(replay_of_another("handler", false), "how the handler computes was 'reference");
    CHECK_ERROR(replay_of_another("optimiser", false), "the optimiser was 'adam' when it began, and is");
    CHECK_ERROR(replay_of_another("seed", false), "the seed was '5' when it began, and is '6'");
    CHECK_ERROR(replay_of_another("clock", false), "depends on the clock: it reads the running time");
    CHECK_ERROR(replay_of_another("trained", false), "has trained already");
    CHECK(!sgm__file_exists(in_folder("again")));
    CHECK_OK(replay_of_another("clock", true));
    close_folder();
}

TEST(what_the_folder_lacks_is_told)
{
    open_folder();
    run_known("run", -1);
    shell("rm '%s/run/changes/12-1.npy'", folder);
    CHECK_ERROR(replay("again", false, sgm_replay_of(.run = known_path())),
                "line 14: " BIASES " was set by ctl, to a tensor whose file is gone");
    CHECK_ERROR(replay("again", false, sgm_replay_of(.run = in_folder("none"))), "has no journal.jsonl");
    CHECK_ERROR(replay("again", false, sgm_replay_of(.until = 3)), ".run must be the folder of a run");
    const int64_t number = 1;
    CHECK_ERROR(
        replay("again", false, sgm_replay_of(.run = known_path(), .without = &number, .without_count = 1)),
        "1 is no intervention that can be left out; there are: ");
    close_folder();
}

/* A difference that nobody could know of is found at the next checkpoint, and ends the replay. */
TEST(another_training_is_found_out)
{
    open_folder();
    run_known("run", -1);
    wave_trainer made = make();
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 4, .folder = in_folder("again"),
                                .replay = sgm_replay_of(.run = known_path())),
                "the checkpoint after epoch 1, iteration 4 is not that of");
    free_wave_trainer(made);
    close_folder();
}

/* --- damage --- */

typedef struct damage {
    const char *words; /* what is done, as a command of sed, or of the shell behind '!' */
    const char *message;
} damage;

static const damage damages[] = {
    {"7s/0.003/0.004/", "line 7: its checksum is another"},
    {"7s/\"iteration\":7/\"iteration\":8/", "line 7: its checksum is another"},
    {"3d", "line 3: its checksum is another"},
    {"1d", "line 1: its checksum is another"},
    {"4{h;d};5{G}", "line 4: its checksum is another"},
    {"5p", "line 6: its checksum is another"},
    {"5s/.$//", "line 5: it does not end in a checksum"},
    {"5s/\"checksum.*/}/", "line 5: it does not end in a checksum"},
    {"5i nothing", "line 5: it does not end in a checksum"},
    {"5s/^{/[/", "line 5: its checksum is another"},
    {"!truncate -s -3 journal.jsonl", "line 22: it is cut off"},
    {"!head -n 9 journal.jsonl >short && mv short journal.jsonl",
     "its last lines are gone, or that file was replaced"},
    {"!printf '\\0' | dd of=journal.jsonl bs=1 seek=40 conv=notrunc 2>/dev/null",
     "line 1: its checksum is another"},
    {"!: >journal.jsonl", "has no journal.jsonl"},
};

TEST(damage_is_told_with_its_line)
{
    open_folder();
    run_known("run", -1);
    shell("cp '%s/run/journal.jsonl' '%s/whole'", folder, folder);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const char *words = damages[i].words;
        shell("cp '%s/whole' '%s/run/journal.jsonl'", folder, folder);
        if (words[0] == '!')
            shell("cd '%s/run' && %s", folder, words + 1);
        else
            shell("sed -i '%s' '%s/run/journal.jsonl'", words, folder);
        CHECK_ERROR(replay("again", false, sgm_replay_of(.run = known_path())), damages[i].message);
    }
    close_folder();
}
