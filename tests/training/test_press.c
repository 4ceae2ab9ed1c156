/* Buttons: criteria `external` that somebody presses while a trainer runs. A press acts once, in all hooks
 * and workers, and comes again after a kill and in a replay. */
#include "requests_test.h"

#include <sigma/replay.h>

#define RATE "optimiser.learning_rate"
#define RULE "every iteration if external \"go\" then set " RATE " = 0.5"
#define HALVING "every 2 iterations if external \"half\" then set " RATE " *= 0.5"

static void add(sgm_trainer *trainer, const char *text)
{
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_hook_parse(text)));
}

static void begin_paused(background *run, sgm_trainer *trainer, const char *where)
{
    begin(run, trainer, where);
    pause_it(trainer);
}

TEST(a_press_is_seen_by_one_check)
{
    open_folder();
    wave_trainer made = make();
    background run;
    add(made.trainer, RULE);
    add(made.trainer, "every iteration accumulator(training.loss, sum) if external \"go\"");
    begin_paused(&run, made.trainer, folder);
    CHECK_NEAR(number_of(made.trainer, RATE), 0.01, 1e-9);
    CHECK_OK(sgm_trainer_press(made.trainer, "go"));
    CHECK_NEAR(number_of(made.trainer, RATE), 0.01, 1e-9); /* nothing was checked yet */
    step(made.trainer, 1);
    CHECK_NEAR(number_of(made.trainer, RATE), 0.5, 1e-9);
    CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(made.trainer), RATE, sgm_number_content(0.02),
                                      NULL, NULL));
    step(made.trainer, 3);
    CHECK_NEAR(number_of(made.trainer, RATE), 0.02, 1e-9); /* it was let fire once */
    sgm_attached_hook *hooks;
    size_t count;
    CHECK_OK(sgm_trainer_hooks(made.trainer, &hooks, &count));
    for (size_t i = 0; i < count; i++) {
        CHECK_INT(hooks[i].runs, 1);
        CHECK_STR(hooks[i].buttons[0], "go");
        CHECK(hooks[i].buttons[1] == NULL);
    }
    sgm_attached_hooks_free(hooks, count);
    CHECK_INT(count, 2);
    CHECK_INT(lines_with("journal.jsonl", "\"event\":\"press\"", "\"who\":\"program\",\"name\":\"go\""), 1);
    end(&run);
    free_wave_trainer(made);
    close_folder();
}

TEST(presses_are_counted_and_forgotten_by_a_reset)
{
    wave_trainer made = make();
    background run;
    add(made.trainer, RULE);
    add(made.trainer, "every iteration accumulator(iteration, sum) if external \"go\"");
    begin_paused(&run, made.trainer, NULL);
    CHECK_OK(sgm_trainer_press(made.trainer, "go"));
    CHECK_OK(sgm_trainer_press(made.trainer, "go"));
    step(made.trainer, 5);
    sgm_attached_hook *hooks;
    size_t count;
    CHECK_OK(sgm_trainer_hooks(made.trainer, &hooks, &count));
    CHECK_INT(hooks[0].runs, 2);
    CHECK_INT(hooks[1].runs, 2);
    sgm_attached_hooks_free(hooks, count);
    CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(made.trainer), RATE, sgm_number_content(0.02),
                                      NULL, NULL));
    CHECK_OK(sgm_trainer_press(made.trainer, "go"));
    CHECK_OK(sgm_trainer_reset(made.trainer));
    step(made.trainer, 2);
    CHECK_NEAR(number_of(made.trainer, RATE), 0.02, 1e-9);
    end(&run);
    free_wave_trainer(made);
}

TEST(a_name_that_no_rule_has_is_an_error_with_those_there_are)
{
    wave_trainer made = make();
    CHECK_ERROR(sgm_trainer_press(made.trainer, "go"),
                "no rule waits for external \"go\", nor for any other: attach one, such as 'if external "
                "\"go\" then pause'");
    add(made.trainer, RULE);
    add(made.trainer, "if external \"more\" and (external \"go\" or external \"more\") then pause");
    CHECK_ERROR(sgm_trainer_press(made.trainer, "gone"),
                "no rule waits for external \"gone\": there are \"go\", \"more\"");
    CHECK_ERROR(sgm_trainer_press(made.trainer, ""), "pressing needs the name of a button");
    CHECK_ERROR(sgm_trainer_press(made.trainer, NULL), "pressing needs the name of a button");
    CHECK_ERROR(sgm_trainer_press(NULL, "go"), "the trainer is NULL");
    CHECK_OK(sgm_trainer_status(made.trainer)); /* not the trainer's failure */
    free_wave_trainer(made);
}

/* What is sent is JSON, which is UTF-8: no one could press another name. */
TEST(a_button_that_nobody_can_press_is_refused)
{
    CHECK_ERROR(sgm_hook_parse("if external then stop"), "column 13: expected a name in quotes");
    CHECK_ERROR(sgm_hook_parse("if external \"\" then stop"), "need a name of 1 to 255 bytes of UTF-8");
    CHECK_ERROR(sgm_hook_parse("if external \"a\xff\" then stop"), "by which somebody presses them");
    CHECK_ERROR(sgm_hook_parse("if external \"a\xc3\" then stop"), "by which somebody presses them");
    sgm_hook *hook = sgm_hook_parse("if external \"größer\" then stop");
    CHECK_OK(hook);
    CHECK_STR(sgm_criteria_external_at(sgm_hook_criteria(hook), 0), "größer");
    CHECK(sgm_criteria_external_at(sgm_hook_criteria(hook), 1) == NULL);
    sgm_hook_free(hook);
}

/* Each worker checks for itself, with criteria of its own. */
TEST(all_workers_see_it)
{
    wave_trainer made = make_wave_trainer((wave_options){.shuffle = true, .seed = 3, .batch = 5});
    background run;
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    add(made.trainer, "local every iteration accumulator(iteration, sum) if external \"go\"");
    begin_paused(&run, made.trainer, NULL);
    CHECK_ERROR(sgm_trainer_press(made.trainer, "no"), "there are \"go\"");
    CHECK_OK(sgm_trainer_press(made.trainer, "go"));
    double at = number_of(made.trainer, "iteration") + 1;
    step(made.trainer, 3);
    CHECK_NEAR(number_of(made.trainer, "operator.local.0.shared.sum"), at, 0);
    CHECK_NEAR(number_of(made.trainer, "operator.local.1.shared.sum"), at, 0);
    end(&run);
    free_wave_trainer(made);
}

/* --- again --- */

static void copy_folder(const char *from, const char *to)
{
    char command[400];
    snprintf(command, sizeof command, "cp -r '%s/%s' '%s/%s'", folder, from, folder, to);
    CHECK_INT(system(command), 0);
}

/* An epoch has four iterations. One press comes before the checkpoint of iteration 8 and is seen behind it,
 * two come behind it. The folder is copied after iteration 11, as kill -9 would leave it. */
static bool press_at_times(void *user, const sgm_training_progress *progress)
{
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    if (progress->iteration == 6 || progress->iteration == 9 || progress->iteration == 11)
        CHECK_OK(ask(user, "{\"command\":\"press\",\"name\":\"half\"}"));
    if (progress->iteration == 9)
        CHECK_OK(sgm_trainer_press(user, "go"));
    if (progress->iteration == 11)
        copy_folder("run", "killed");
    return true;
}

static sgm_status run_to(const char *name, bool presses, bool resume, const sgm_replay *replay,
                         wave_trainer *made)
{
    char where[160];
    snprintf(where, sizeof where, "%s/%s", folder, name);
    *made = make();
    add(made->trainer, HALVING);
    add(made->trainer, "every 3 iterations if external \"go\" then set optimiser.beta1 = 0.8");
    if (presses)
        CHECK_OK(sgm_trainer_on_progress(made->trainer, press_at_times, made->trainer));
    return sgm_trainer_run(made->trainer, .iterations = 20, .folder = where, .resume = resume,
                           .replay = replay, .checkpoint_every = 2);
}

static void check_same_files(const char *one, const char *other)
{
    char command[400];
    snprintf(command, sizeof command, "cmp '%s/%s' '%s/%s'", folder, one, folder, other);
    CHECK_INT(system(command), 0);
}

TEST(a_killed_run_is_pressed_again)
{
    wave_trainer whole, again;
    open_folder();
    CHECK_OK(run_to("run", true, false, NULL, &whole));
    CHECK_NEAR(number_of(whole.trainer, RATE), 0.01 / 8, 1e-12);
    CHECK_NEAR(number_of(whole.trainer, "optimiser.beta1"), 0.8, 1e-7);
    CHECK_OK(run_to("killed", false, true, NULL, &again));
    CHECK(same_states(whole.trainer, again.trainer));
    check_same_files("run/checkpoint.safetensors", "killed/checkpoint.safetensors");
    free_wave_trainer(again);
    free_wave_trainer(whole);
    /* Two presses of one button are two, also where they are made again. */
    CHECK_INT(lines_with("killed/journal.jsonl", "\"event\":\"press\"", "\"again\":true"), 3);
    CHECK_INT(lines_with("killed/log.txt", "button half was pressed by ctl", "made again at iteration 9"), 1);
    close_folder();
}

TEST(a_replay_presses_again_and_can_go_without)
{
    wave_trainer made;
    char run[160];
    sgm_intervention *list;
    size_t count;
    open_folder();
    snprintf(run, sizeof run, "%s/run", folder);
    CHECK_OK(run_to("run", true, false, NULL, &made));
    free_wave_trainer(made);
    CHECK_OK(run_to("again", false, false, sgm_replay_of(.run = run), &made));
    free_wave_trainer(made);
    check_same_files("run/checkpoint.safetensors", "again/checkpoint.safetensors");
    CHECK_INT(lines_with("again/journal.jsonl", "\"event\":\"press\"", "\"name\":\"half\""), 3);
    CHECK_OK(sgm_run_interventions(run, &list, &count));
    CHECK_INT(count, 4);
    CHECK_STR(list[0].event, "press");
    CHECK_STR(list[0].text, "button half was pressed");
    CHECK_INT(list[0].iteration, 6);
    CHECK_STR(list[0].who, "ctl");
    CHECK(list[0].removable);
    int64_t without = list[0].number;
    sgm_interventions_free(list, count);
    CHECK_OK(run_to("without", false, false,
                    sgm_replay_of(.run = run, .without = &without, .without_count = 1), &made));
    CHECK_NEAR(number_of(made.trainer, RATE), 0.01 / 4, 1e-12);
    free_wave_trainer(made);
    close_folder();
}

/* Before the run has a folder: the press is a line of it, as its first criterion was not checked yet. */
TEST(a_press_before_the_run_is_in_its_folder)
{
    wave_trainer made = make(), again = make();
    char run[160];
    open_folder();
    snprintf(run, sizeof run, "%s/run", folder);
    add(made.trainer, HALVING);
    CHECK_OK(ask(made.trainer, "{\"command\":\"press\",\"name\":\"half\"}"));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2, .folder = run));
    CHECK_NEAR(number_of(made.trainer, RATE), 0.005, 1e-12);
    add(again.trainer, HALVING);
    CHECK_OK(
        sgm_trainer_run(again.trainer, .folder = in_folder("again"), .replay = sgm_replay_of(.run = run)));
    CHECK_NEAR(number_of(again.trainer, RATE), 0.005, 1e-12);
    check_same_files("run/checkpoint.safetensors", "again/checkpoint.safetensors");
    free_wave_trainer(again);
    free_wave_trainer(made);
    close_folder();
}

/* A person sees it among the changes; there is nothing to take back. */
TEST(it_is_a_change_that_stays)
{
    wave_trainer made = make();
    add(made.trainer, RULE);
    CHECK_OK(ask(made.trainer, "{\"command\":\"press\",\"name\":\"go\"}"));
    json_t *list = sgm__changes_json(made.trainer, 0), *change = json_array_get(list, 0);
    CHECK_STR(text_of(change, "identifier"), "button go");
    CHECK_STR(text_of(change, "after"), "pressed");
    CHECK(json_is_false(json_object_get(change, "undoable")));
    CHECK_ERROR(ask(made.trainer, "{\"command\":\"undo\"}"), "there is no change of a person to take back");
    json_decref(list);
    free_wave_trainer(made);
}
