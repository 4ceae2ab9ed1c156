/* Commands out of the same process, as monitors send them: also to a trainer without a folder. */
#include "requests_test.h"

#include "runs/checkpoints.h"
#include "runs/run_folder.h"
#include "show/show.h"

#include <sys/stat.h>

/* --- asking --- */

/* Of the same process, where no files can be named. */
#define MONITOR(of) (&(sgm__control_call){.trainer = of, .who = "monitor", .role = SGM__ROLE_ADMIN})
#define CHECK_ANSWER(trainer, request, part) CHECK_OBEYED(MONITOR(trainer), request, part)

/* One of its changes, by number from 1; free it. */
static json_t *change_of(sgm_trainer *trainer, int64_t number)
{
    json_t *list = sgm__changes_json(trainer, number - 1), *first = json_incref(json_array_get(list, 0));
    json_decref(list);
    CHECK_INT(json_integer_value(json_object_get(first, "number")), number);
    return first;
}

/* --- values and their record --- */

TEST(a_trainer_without_a_folder_is_steered)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, NULL);
    CHECK_ANSWER(made.trainer, "{\"command\":\"pause\"}", "{}");
    wait_for_pause(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"status\"}", "\"state\":\"paused\"");
    double before = number_of(made.trainer, "iteration");
    CHECK_ANSWER(made.trainer, "{\"command\":\"step\",\"iterations\":3}", "{}");
    for (int i = 0; i < 5000 && number_of(made.trainer, "iteration") < before + 3; i++)
        usleep(1000);
    wait_for_pause(made.trainer);
    CHECK_NEAR(number_of(made.trainer, "iteration"), before + 3, 0);
    CHECK_ANSWER(
        made.trainer, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.25}",
        "{\"values\":[{\"identifier\":\"optimiser.learning_rate\",\"kind\":\"number\",\"value\":0.25,"
        "\"text\":\"0.25\",\"effect\":\"from the next iteration on\"}]}");
    CHECK_ANSWER(made.trainer, "{\"command\":\"set\",\"identifier\":\"iterator.minibatch_size\",\"value\":8}",
                 "\"effect\":\"from the next epoch on\"");
    CHECK_ANSWER(made.trainer, "{\"command\":\"set\",\"identifier\":\"optimiser.accumulate\",\"value\":2}",
                 "\"effect\":\"from the first minibatch after the next update on\"");
    json_t *change = change_of(made.trainer, 1);
    CHECK_STR(text_of(change, "identifier"), "optimiser.learning_rate");
    CHECK_STR(text_of(change, "who"), "monitor");
    CHECK_STR(text_of(change, "trainer"), "waves");
    CHECK_NEAR(json_number_value(json_object_get(change, "before")), 0.01, 0);
    CHECK_NEAR(json_number_value(json_object_get(change, "after")), 0.25, 0);
    CHECK_NEAR(json_number_value(json_object_get(change, "iteration")), before + 3, 0);
    CHECK_NEAR(json_number_value(json_object_get(change, "epoch")), number_of(made.trainer, "epoch"), 0);
    CHECK(json_number_value(json_object_get(change, "seconds")) > 0);
    CHECK(json_number_value(json_object_get(change, "time")) > 1.6e9);
    CHECK(json_is_true(json_object_get(change, "undoable")));
    json_decref(change);
    CHECK_ANSWER(made.trainer, "{\"command\":\"changes\"}", "\"identifier\":\"iterator.minibatch_size\"");
    CHECK_ANSWER(made.trainer, "{\"command\":\"stop\",\"reason\":\"seen enough\"}", "{}");
    pthread_join(run.thread, NULL);
    CHECK_ANSWER(made.trainer, "{\"command\":\"pause\"}", "trainer 'waves' is idle and cannot be paused");
    free_wave_trainer(made);
}

TEST(errors_name_what_was_expected)
{
    wave_trainer made = make();
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_OK(sgm__trainer_publish_states(made.trainer));
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":\"much\"}",
                 "optimiser.learning_rate: expected a number, got 'much'");
    CHECK_ANSWER(made.trainer, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rat\",\"value\":1}",
                 "learning_rate");
    CHECK_ANSWER(made.trainer, "{\"command\":\"set\",\"identifier\":\"epoch\",\"value\":1}",
                 "epoch is read-only");
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":{}}",
                 "set: 'value' must be a text, a number, true or false");
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"set\",\"identifier\":\"network.layers.3-dense.biases\",\"value\":[1]}",
                 "network.layers.3-dense.biases: expected values of shape (3,), got (1,)");
    CHECK_ANSWER(made.trainer, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\"}",
                 "set needs a value");
    CHECK_ANSWER(
        made.trainer,
        "{\"command\":\"get\",\"identifier\":\"network.layers.3-dense.biases\",\"file\":\"/tmp/x.npy\"}",
        "get: files cannot be named from here");
    CHECK_ANSWER(made.trainer, "{\"command\":\"attach\",\"hook\":\"every 2 epochs if loss falls then stop\"}",
                 "column");
    CHECK_ANSWER(made.trainer, "{\"command\":\"pauze\"}", "unknown command 'pauze' (did you mean 'pause'?)");
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"number\":\"all\"}",
                 "undo: expected the number of a change, from 1, got 'all'");
    CHECK_INT(change_count(made.trainer), 0);
    free_wave_trainer(made);
}

TEST(a_rule_of_what_is_not_there_is_refused)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, NULL);
    pause_it(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"attach\",\"hook\":\"if foo.loss < 1 then stop\"}", "'foo");
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"attach\",\"hook\":\"after 1 epoch set optimiser.lerning_rate *= 0.5\"}",
                 "did you mean 'optimiser.learning_rate'?");
    CHECK_ANSWER(
        made.trainer,
        "{\"command\":\"attach\",\"hook\":\"after 1 epoch set optimiser.learning_rate = \\\"x\\\"\"}",
        "optimiser.learning_rate");
    CHECK_ANSWER(made.trainer, "{\"command\":\"hooks\"}", "\"hooks\":[]");
    end(&run);
    free_wave_trainer(made);
}

TEST(what_there_is_is_listed_with_values)
{
    wave_trainer made = make();
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_OK(sgm__trainer_publish_states(made.trainer));
    CHECK_ANSWER(
        made.trainer, "{\"command\":\"list\",\"values\":true}",
        "{\"identifier\":\"optimiser.learning_rate\",\"kind\":\"number\",\"settable\":true,\"minimum\":0.0,");
    CHECK(strstr(answer,
                 "\"live\":true,\"effect\":\"from the next iteration on\",\"value\":0.01,\"text\":\"0.01\","
                 "\"tags\":[\"optimiser\"]}") != NULL);
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"list\",\"identifier\":\"network.layers.1-dense.weights\",\"values\":true}",
                 "\"effect\":\"from the next iteration on\",\"value\":null,\"text\":\"float32 (6, "
                 "8)\",\"tags\":[\"dense\"");
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"list\",\"identifier\":\"optimiser.gradients\",\"values\":true}",
                 "\"value\":null,\"text\":\"float32 (6, 8)\"");
    CHECK(made.trainer->kept.gradients_until == 0); /* that was no reading */
    CHECK_ANSWER(made.trainer,
                 "{\"command\":\"list\",\"identifier\":\"optimiser.schedule.kind\",\"values\":true}",
                 "\"choices\":[\"constant\",\"step\"");
    CHECK_ANSWER(made.trainer, "{\"command\":\"list\",\"values\":\"yes\"}",
                 "list: 'values' is true or false, not 'yes'");
    free_wave_trainer(made);
}

typedef struct heard {
    int count;
    char newest[200];
} heard;

static void hear(void *user, const json_t *change)
{
    heard *all = user;
    all->count++;
    snprintf(all->newest, sizeof all->newest, "%s by %s", text_of(change, "identifier"),
             text_of(change, "who"));
}

TEST(listeners_are_told)
{
    wave_trainer made = make();
    heard all = {0};
    CHECK_OK(sgm__changes_listen(made.trainer, hear, &all));
    CHECK_OK(sgm_registry_resolve_set(made.trainer->registry, "optimiser.learning_rate",
                                      sgm_number_content(0.3), NULL, NULL));
    CHECK_INT(all.count, 0); /* the program puts its trainer together */
    obey(MONITOR(made.trainer),
         "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5}");
    CHECK_INT(all.count, 1);
    CHECK_STR(all.newest, "optimiser.learning_rate by monitor");
    obey(MONITOR(made.trainer),
         "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5}");
    CHECK_INT(all.count, 1); /* it was that already */
    sgm__changes_unlisten(made.trainer, hear, &all);
    obey(MONITOR(made.trainer),
         "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.6}");
    CHECK_INT(all.count, 1);
    free_wave_trainer(made);
}

/* --- taking back --- */

#define SET_RATE(value) "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":" value "}"

TEST(changes_are_taken_back_one_after_the_other)
{
    wave_trainer made = make();
    obey(MONITOR(made.trainer), SET_RATE("0.2"));
    obey(MONITOR(made.trainer), SET_RATE("0.3"));
    obey(MONITOR(made.trainer),
         "{\"command\":\"set\",\"identifier\":\"optimiser.frozen\",\"value\":\"*.biases\"}");
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "{\"undone\":3}");
    CHECK_ANSWER(made.trainer, "{\"command\":\"get\",\"identifier\":\"optimiser.frozen\"}", "\"value\":\"\"");
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "{\"undone\":2}");
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.2, 0);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "{\"undone\":1}");
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.01, 0);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "there is no change of a person to take back");
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"number\":2}",
                 "change 2 of optimiser.learning_rate was taken back already");
    CHECK_INT(change_count(made.trainer), 6); /* taking back is a change, too */
    json_t *change = change_of(made.trainer, 6);
    CHECK_INT(json_integer_value(json_object_get(change, "undoes")), 1);
    CHECK_STR(text_of(change, "who"), "monitor");
    json_decref(change);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"number\":6}", "{\"undone\":6}"); /* again as it was */
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.2, 0);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "{\"undone\":1}");
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.01, 0);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"number\":70}",
                 "trainer 'waves' has no change 70; the newest is 8");
    free_wave_trainer(made);
}

TEST(a_command_is_taken_back_as_a_whole)
{
    wave_trainer made = make();
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_OK(sgm__trainer_publish_states(made.trainer));
    obey(MONITOR(made.trainer), SET_RATE("0.2"));
    CHECK_ANSWER(made.trainer, "{\"command\":\"set\",\"identifier\":\"optimiser.beta*\",\"value\":0.5}",
                 "\"value\":0.5");
    CHECK_INT(change_count(made.trainer), 3);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "{\"undone\":3}");
    CHECK_NEAR(number_of(made.trainer, "optimiser.beta1"), 0.9, 0);
    CHECK_NEAR(number_of(made.trainer, "optimiser.beta2"), 0.999, 0);
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.2, 0);
    sgm_tensor *before = sgm_trainer_get(made.trainer, "3-dense.biases");
    obey(MONITOR(made.trainer),
         "{\"command\":\"set\",\"identifier\":\"network.layers.3-dense.biases\",\"value\":[1,2,3]}");
    json_t *change = change_of(made.trainer, 6);
    CHECK_STR(text_of(change, "identifier"), "network.layers.3-dense.biases");
    CHECK_NEAR(json_number_value(json_object_get(json_object_get(change, "after"), "norm")), sqrt(14), 1e-6);
    json_decref(change);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "{\"undone\":6}");
    sgm_tensor *after = sgm_trainer_get(made.trainer, "3-dense.biases");
    CHECK(memcmp(sgm_tensor_const_data(before), sgm_tensor_const_data(after), 3 * sizeof(float)) == 0);
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    free_wave_trainer(made);
}

TEST(a_command_is_taken_back_as_a_whole_or_not_at_all)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, NULL);
    pause_it(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"set\",\"identifier\":\"optimiser.beta*\",\"value\":0.5}",
                 "\"value\":0.5");
    CHECK_OK(sgm_registry_resolve_set(made.trainer->registry, "optimiser.beta1", sgm_number_content(0.4),
                                      NULL, NULL));
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "optimiser.beta1 was changed again after change 1");
    CHECK_NEAR(number_of(made.trainer, "optimiser.beta1"), 0.4, 0);
    CHECK_NEAR(number_of(made.trainer, "optimiser.beta2"), 0.5, 0);
    end(&run);
    free_wave_trainer(made);
}

static void check_biases(sgm_trainer *trainer, const char *name, const sgm_tensor *expected)
{
    sgm_tensor *now = sgm_trainer_get(trainer, name);
    CHECK(now != NULL);
    CHECK(memcmp(sgm_tensor_const_data(now), sgm_tensor_const_data(expected), 3 * sizeof(float)) == 0);
    sgm_tensor_free(now);
}

/* Setting one begins its average anew; that is taken back, too, else measurements would be others. */
TEST(a_parameter_that_is_put_back_has_its_average_again)
{
    static const float set[] = {1, 2, 3};
    const sgm_shape shape = sgm_shape_of(3);
    wave_trainer made = make_wave_trainer(
        (wave_options){.optimiser = sgm_gradient_descent(.learning_rate = 0.1, .average = 0.9)});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 7));
    sgm_tensor *biases = sgm_trainer_get(made.trainer, "3-dense.biases");
    sgm_tensor *average = sgm_trainer_get(made.trainer, "average.3-dense.biases");
    sgm_tensor *given = sgm_tensor_create_from(SGM_FLOAT32, &shape, set);
    CHECK(memcmp(sgm_tensor_const_data(biases), sgm_tensor_const_data(average), 3 * sizeof(float)) != 0);
    obey(MONITOR(made.trainer),
         "{\"command\":\"set\",\"identifier\":\"network.layers.3-dense.biases\",\"value\":[1,2,3]}");
    check_biases(made.trainer, "average.3-dense.biases", given);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "{\"undone\":1}");
    check_biases(made.trainer, "3-dense.biases", biases);
    check_biases(made.trainer, "average.3-dense.biases", average);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"number\":2}", "{\"undone\":2}"); /* set again */
    check_biases(made.trainer, "3-dense.biases", given);
    check_biases(made.trainer, "average.3-dense.biases", given);
    sgm_tensor_free(biases);
    sgm_tensor_free(average);
    sgm_tensor_free(given);
    free_wave_trainer(made);
}

#define RULE "if training.loss < 0 then stop"
#define ATTACH "{\"command\":\"attach\",\"hook\":\"" RULE "\"}"

/* Rules come and go as values do; one that was put back is found by its text. */
TEST(rules_are_taken_off_and_put_back)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, NULL);
    pause_it(made.trainer);
    CHECK_ANSWER(made.trainer, ATTACH, "{\"name\":\"rule#1\"}");
    CHECK_ANSWER(made.trainer, "{\"command\":\"hooks\"}", RULE);
    json_t *change = change_of(made.trainer, 1);
    CHECK_STR(text_of(change, "identifier"), "hook rule#1");
    CHECK_STR(text_of(change, "after"), RULE);
    CHECK(json_is_true(json_object_get(change, "undoable")));
    json_decref(change);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "{\"undone\":1}");
    CHECK_ANSWER(made.trainer, "{\"command\":\"hooks\"}", "{\"hooks\":[]}");
    change = change_of(made.trainer, 2);
    CHECK_INT(json_integer_value(json_object_get(change, "undoes")), 1);
    CHECK_STR(text_of(change, "after"), "none");
    json_decref(change);

    CHECK_ANSWER(made.trainer, ATTACH, "\"name\":\"rule#");                                       /* 3 */
    CHECK_ANSWER(made.trainer, "{\"command\":\"detach\",\"name\":\"rule\"}", "{}");               /* 4 */
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"number\":3}", "was changed again after"); /* by 4 */
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "\"undone\":4");
    CHECK_ANSWER(made.trainer, "{\"command\":\"hooks\"}", RULE);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "\"undone\":3");
    CHECK_ANSWER(made.trainer, "{\"command\":\"hooks\"}", "{\"hooks\":[]}");
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "there is no change of a person to take back");
    end(&run);
    free_wave_trainer(made);
}

TEST(what_others_changed_since_is_left_alone)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, NULL);
    pause_it(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"set\",\"identifier\":\"optimiser.beta1\",\"value\":0.5}",
                 "\"value\":0.5");
    obey(MONITOR(made.trainer), SET_RATE("0.2"));
    CHECK_OK(sgm_registry_resolve_set(made.trainer->registry, "optimiser.learning_rate",
                                      sgm_number_content(0.4), NULL, NULL));
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}",
                 "optimiser.learning_rate was changed again after change 2, by program (change 3): take that "
                 "back first, or set it; 'undo 1' takes back the one before it, of optimiser.beta1");
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"dry_run\":true}",
                 "'undo 1' takes back the one before");
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"number\":3}",
                 "change 3 of optimiser.learning_rate was made by "
                 "program: only what a person set");
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.4, 0);
    json_t *change = change_of(made.trainer, 2);
    CHECK(json_is_false(json_object_get(change, "undoable")));
    json_decref(change);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\",\"number\":1}", "\"undone\":1");
    CHECK_NEAR(number_of(made.trainer, "optimiser.beta1"), 0.9, 0);
    end(&run);
    free_wave_trainer(made);
}

/* The rule sets a value in each iteration. */
TEST(the_record_is_bounded_and_keeps_what_persons_did)
{
    wave_trainer made = make();
    background run;
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_rule_hook("every iteration set optimiser.accumulate += 1")));
    obey(MONITOR(made.trainer), SET_RATE("0.02"));
    begin(&run, made.trainer, NULL);
    for (int i = 0; i < 20000 && number_of(made.trainer, "iteration") < 2500; i++)
        usleep(1000);
    pause_it(made.trainer);
    CHECK(number_of(made.trainer, "iteration") >= 2500);
    CHECK(change_count(made.trainer) <= SGM__MAXIMUM_CHANGES);
    CHECK(change_count(made.trainer) >= SGM__MAXIMUM_CHANGES * 8 / 10);
    json_t *first = change_of(made.trainer, 1), *list = sgm__changes_json(made.trainer, 0);
    const json_t *newest = json_array_get(list, json_array_size(list) - 1);
    CHECK_STR(text_of(first, "who"), "monitor");
    CHECK(json_number_value(json_object_get(newest, "number")) >= 2500);
    CHECK_STR(text_of(newest, "who"), "rule");
    CHECK_STR(text_of(newest, "reason"), "every iteration set optimiser.accumulate += 1");
    CHECK_NEAR(json_number_value(json_object_get(newest, "after")) -
                   json_number_value(json_object_get(newest, "before")),
               1, 0);
    CHECK_ANSWER(made.trainer, "{\"command\":\"undo\"}", "{\"undone\":1}");
    json_decref(first);
    json_decref(list);
    end(&run);
    free_wave_trainer(made);
}

TEST(what_was_set_before_the_run_is_in_its_folder)
{
    wave_trainer made = make();
    background run;
    obey(MONITOR(made.trainer), SET_RATE("0.02"));
    obey(MONITOR(made.trainer), SET_RATE("0.03"));
    begin(&run, made.trainer, open_folder());
    end(&run);
    CHECK_INT(lines_with("journal.jsonl", "\"who\":\"monitor\",\"what\":\"optimiser.learning_rate\"",
                         "\"new\":0.03"),
              1);
    CHECK_INT(lines_with("journal.jsonl", "optimiser.learning_rate", "\"new\":0.02}"), 0);
    close_folder();
    free_wave_trainer(made);
}

/* A monitor's requests are a person's, as those of sigma ctl. */
TEST(a_resume_makes_them_again)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, open_folder());
    pause_it(made.trainer);
    CHECK_OK(sgm_trainer_save(made.trainer, in_folder("kept.safetensors")));
    obey(MONITOR(made.trainer), SET_RATE("0.07"));
    step(made.trainer, 2);
    end(&run);
    CHECK_INT(rename(in_folder("kept.safetensors"), "/tmp/sigma-test-kept"), 0);
    CHECK_INT(rename("/tmp/sigma-test-kept", in_folder("checkpoint.safetensors")), 0);
    free_wave_trainer(made);
    made = make();
    sgm_run_options options = {.struct_size = sizeof options, .folder = folder, .resume = true, .epochs = 4};
    CHECK_OK(sgm_trainer_run_with(made.trainer, &options));
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.07, 0);
    free_wave_trainer(made);
    close_folder();
}

/* --- checkpoints --- */

TEST(checkpoints_without_a_folder_go_with_the_trainer)
{
    wave_trainer made = make(), other = make();
    background run;
    char *path;
    begin(&run, made.trainer, NULL);
    pause_it(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"here\"}",
                 "trainer 'waves' has no checkpoint 'here'");
    double iteration = number_of(made.trainer, "iteration");
    CHECK_ANSWER(made.trainer, "{\"command\":\"save\",\"name\":\"here\"}", "{\"file\":\"here.safetensors\"}");
    CHECK_OK(sgm__checkpoint_path(made.trainer, "here", false, &path));
    CHECK_OK(sgm_trainer_load(other.trainer, path));
    step(made.trainer, 5);
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"her\"}", "did you mean 'here'?");
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"../here\"}",
                 "a checkpoint cannot be named '../here'");
    CHECK_ANSWER(made.trainer, "{\"command\":\"save\",\"name\":\"a/b\"}", "cannot be named 'a/b'");
    CHECK_ANSWER(made.trainer, "{\"command\":\"save\",\"name\":\".hidden\"}", "cannot be named '.hidden'");
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"here.safetensors\"}", "{}");
    CHECK_NEAR(number_of(made.trainer, "iteration"), iteration, 0);
    CHECK(same_states(made.trainer, other.trainer));
    json_t *change = change_of(made.trainer, 1);
    CHECK_STR(text_of(change, "identifier"), "position");
    CHECK_NEAR(json_number_value(json_object_get(change, "iteration")), iteration, 0);
    CHECK(strstr(text_of(change, "after"), "here") != NULL);
    CHECK(json_is_false(json_object_get(change, "undoable")));
    json_decref(change);
    end(&run);
    CHECK(sgm__file_exists(path));
    free_wave_trainer(made);
    CHECK(!sgm__file_exists(path));
    *strrchr(path, '/') = '\0';
    CHECK(!sgm__file_exists(path));
    sgm__free(path);
    free_wave_trainer(other);
}

TEST(a_restore_of_what_is_not_there_names_what_is)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, NULL);
    pause_it(made.trainer);
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"nothing\"}",
                 "has no checkpoint 'nothing'; there is none yet");
    obey(MONITOR(made.trainer), "{\"command\":\"save\",\"name\":\"early\"}");
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"nothing\"}",
                 "has no checkpoint 'nothing'; there is early");
    for (int i = 0; i < 7; i++) {
        char command[64];
        snprintf(command, sizeof command, "{\"command\":\"save\",\"name\":\"number-%d\"}", i);
        obey(MONITOR(made.trainer), command);
    }
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"nothing\"}", "and 3 more");
    end(&run);
    free_wave_trainer(made);
}

TEST(checkpoints_are_listed_with_their_place)
{
    wave_trainer made = make();
    background run;
    sgm__checkpoint *list;
    size_t count, at = 0;
    begin(&run, made.trainer, open_folder());
    pause_it(made.trainer);
    int64_t iteration = (int64_t)number_of(made.trainer, "iteration");
    int64_t epoch = (int64_t)number_of(made.trainer, "epoch"); /* ends behind its last iteration's pause */
    obey(MONITOR(made.trainer), "{\"command\":\"save\",\"name\":\"early\"}");
    step(made.trainer, 9);
    obey(MONITOR(made.trainer), "{\"command\":\"save\",\"name\":\"late\"}");
    CHECK_OK(sgm__file_write_atomic(in_folder("broken.safetensors"), "no checkpoint", 13));
    CHECK_INT(symlink("late.safetensors", in_folder("link.safetensors")), 0);
    CHECK_INT(mkfifo(in_folder("pipe.safetensors"), 0600), 0);
    CHECK_INT(mkdir(in_folder("folder.safetensors"), 0700), 0);
    CHECK_OK(sgm__checkpoints_list(made.trainer, &list, &count));
    for (size_t i = 0; i < count; i++) {
        CHECK(strcmp(list[i].name, "link") != 0 && strcmp(list[i].name, "pipe") != 0 &&
              strcmp(list[i].name, "folder") != 0);
        CHECK(list[i].newest == (i == 0));
        at = strcmp(list[i].name, "early") == 0 ? i : at;
        if (strcmp(list[i].name, "broken") == 0) {
            CHECK_INT(list[i].iteration, -1);
            CHECK_INT(list[i].bytes, 13);
        }
        if (strcmp(list[i].name, "late") == 0)
            CHECK_INT(list[i].iteration, iteration + 9);
    }
    CHECK_STR(list[at].name, "early");
    CHECK_INT(list[at].iteration, iteration);
    CHECK_INT(list[at].epoch, epoch);
    CHECK(epoch == iteration / 4 || (iteration % 4 == 0 && epoch == iteration / 4 - 1));
    CHECK(list[at].bytes > 1000);
    sgm__free(list);
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"broken\"}", "broken.safetensors'");
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"link\"}", "has no checkpoint 'link'");
    CHECK_NEAR(number_of(made.trainer, "iteration"), (double)iteration + 9, 0);
    CHECK_OK(sgm__checkpoint_remove(made.trainer, "early"));
    CHECK(!sgm__file_exists(in_folder("early.safetensors")));
    CHECK_ERROR(sgm__checkpoint_remove(made.trainer, "early"), "has no checkpoint 'early'");
    CHECK_OK(sgm_trainer_save(made.trainer, in_folder("checkpoint.safetensors")));
    CHECK_ERROR(sgm__checkpoint_remove(made.trainer, "checkpoint"), "goes on from when it is resumed");
    CHECK_ERROR(sgm__checkpoint_remove(made.trainer, "../x"), "cannot be named");
    end(&run);
    CHECK_OK(sgm__checkpoints_list(made.trainer, &list, &count)); /* after the run, too */
    CHECK(count >= 3);
    sgm__free(list);
    free_wave_trainer(made);
    close_folder();
}

static int files_in_folder(void)
{
    char command[128], text[32] = "";
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL && fgets(text, sizeof text, pipe) != NULL);
    pclose(pipe);
    return atoi(text);
}

static sgm_status add_bytes(sgm_trainer *trainer, const char *name, const void *bytes, size_t length)
{
    FILE *file = tmpfile();
    CHECK(file != NULL && fwrite(bytes, 1, length, file) == length && fflush(file) == 0);
    rewind(file);
    sgm_status status = sgm__checkpoint_add(trainer, name, "monitor", NULL, fileno(file));
    fclose(file);
    return status;
}

TEST(only_whole_checkpoints_are_added)
{
    wave_trainer made = make();
    background run;
    char *good;
    size_t length;
    begin(&run, made.trainer, open_folder());
    pause_it(made.trainer);
    obey(MONITOR(made.trainer), "{\"command\":\"save\",\"name\":\"here\"}");
    double iteration = number_of(made.trainer, "iteration");
    CHECK_OK(sgm__file_read(in_folder("here.safetensors"), 1 << 24, &good, &length));
    int before = files_in_folder();
    char *bad = sgm__alloc(length + 1);
    for (size_t cut = 0; cut < length; cut += cut < 12 ? 1 : length / 9)
        CHECK_ERROR(add_bytes(made.trainer, "bad", good, cut), "'bad' is no checkpoint: ");
    memcpy(bad, good, length);
    bad[length] = 'x';
    CHECK_ERROR(add_bytes(made.trainer, "bad", bad, length + 1), "'bad' is no checkpoint: ");
    for (size_t at = 0; at < length; at += 9) {
        bad[at] ^= (char)(1 + at % 255);
        CHECK_ERROR(add_bytes(made.trainer, "bad", bad, length), "'bad' is no checkpoint: ");
        bad[at] = good[at];
    }
    CHECK_ERROR(add_bytes(made.trainer, "bad", "{}", 2), "too few");
    CHECK_ERROR(add_bytes(made.trainer, "bad", "\x02\0\0\0\0\0\0\0{}", 10),
                "'bad' is no checkpoint: it has tensors, but does not say where a training stands");
    CHECK_ERROR(add_bytes(made.trainer, "here", good, length),
                "there is a checkpoint 'here' already; choose another name");
    CHECK_ERROR(add_bytes(made.trainer, "../there", good, length), "cannot be named");
    CHECK_ERROR(add_bytes(made.trainer, "a\nb", good, length), "cannot be named");
    CHECK(strstr(sgm_last_error(), "/tmp") == NULL);
    CHECK(files_in_folder() >= before);
    CHECK_OK(add_bytes(made.trainer, "there", good, length));
    step(made.trainer, 7);
    CHECK_ANSWER(made.trainer, "{\"command\":\"restore\",\"name\":\"there\"}", "{}");
    CHECK_NEAR(number_of(made.trainer, "iteration"), iteration, 0);
    sgm__free(bad);
    sgm__free(good);
    end(&run);
    free_wave_trainer(made);
    close_folder();
}
