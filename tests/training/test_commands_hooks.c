/* Commands to a trainer: hooks that come and go. */
#include "commands_test.h"

static sgm_attached_hook *hooks_of(sgm_trainer *trainer, size_t *count)
{
    sgm_attached_hook *list;
    CHECK_OK(sgm_trainer_hooks(trainer, &list, count));
    return list;
}

TEST(hooks_have_names_of_their_own)
{
    wave_trainer made = make();
    char *name;
    size_t count;
    CHECK_OK(
        sgm_trainer_attach_hook(made.trainer, sgm_hook_parse("early_stopper(training.loss, 1000)"), &name));
    CHECK_STR(name, "early_stopper#1");
    sgm_string_free(name);
    CHECK_OK(
        sgm_trainer_attach_hook(made.trainer, sgm_hook_parse("early_stopper(training.loss, 2000)"), &name));
    CHECK_STR(name, "early_stopper#2");
    sgm_string_free(name);
    CHECK_ERROR(
        sgm_trainer_attach_hook(made.trainer, sgm_hook_parse("early_stopper(training.loss, 2000)"), &name),
        "an equal hook is attached already, as 'early_stopper#2'");
    CHECK(name == NULL);
    CHECK_ERROR(sgm_trainer_attach_hook(made.trainer, sgm_hook_parse("early_stoper(a)"), NULL), "column 1");
    CHECK_OK(sgm_trainer_status(made.trainer)); /* not the trainer's failure */
    CHECK_OK(sgm_trainer_attach_hook(made.trainer, sgm_accumulator("training.loss"), NULL));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    sgm_attached_hook *list = hooks_of(made.trainer, &count);
    CHECK_INT(count, 4);
    CHECK_STR(list[0].name, "accumulator#1");
    CHECK_STR(list[0].text, "");
    CHECK_STR(list[0].condition, "");
    CHECK_INT(list[0].due, 12);
    CHECK_INT(list[0].runs, 12);
    CHECK(list[0].seconds > 0 && list[0].seconds < 1);
    CHECK_STR(list[1].name, "best_weights#1"); /* both early stoppers require it */
    CHECK_STR(list[1].condition, "training.loss reaches minimum");
    CHECK_STR(list[2].text, "early_stopper(training.loss, 1000)");
    CHECK_STR(list[2].when, "every epoch");
    CHECK_STR(list[2].condition, "training.loss stalls 1000 epochs");
    CHECK_INT(list[2].due, 3);
    CHECK_INT(list[2].runs, 0);
    CHECK(!list[2].background);
    sgm_attached_hooks_free(list, count);
    CHECK_ERROR(sgm_trainer_detach_hook(made.trainer, "early_stopper"), "early_stopper#1, early_stopper#2");
    CHECK_ERROR(sgm_trainer_detach_hook(made.trainer, "early_stopper#3"),
                "no hook is named 'early_stopper#3'");
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, "early_stopper#1"));
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, "early_stopper"));
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, "accumulator"));
    CHECK_ERROR(sgm_trainer_detach_hook(made.trainer, "accumulator"), "there are none");
    free_wave_trainer(made);
}

TEST(what_was_attached_to_a_run_comes_back_with_a_resume)
{
    open_folder();
    wave_trainer made = make();
    sgm_hook *own = sgm_accumulator("training.loss", .name = "own");
    CHECK_OK(sgm_trainer_add_hook(made.trainer, own));
    background run;
    begin(&run, made.trainer, folder);
    pause_it(made.trainer);
    CHECK_OK(sgm_trainer_attach_hook(made.trainer, sgm_hook_parse("accumulator(training.loss, text)"), NULL));
    CHECK_OK(sgm_trainer_attach_hook(made.trainer, sgm_hook_parse("save(gone)"), NULL));
    CHECK_OK(
        sgm_trainer_attach_hook(made.trainer, sgm_accumulator("training.loss", .name = "program"), NULL));
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, "save"));
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, "accumulator#1"));
    step(made.trainer, 8);
    double sum = number_of(made.trainer, "shared.text"), iteration = number_of(made.trainer, "iteration");
    end(&run);
    CHECK_NEAR(number_of(made.trainer, "iteration"), iteration, 0);
    CHECK_INT(lines_with("journal.jsonl",
                         "\"who\":\"program\",\"what\":\"hook accumulator#2\",\"old\":\"none\","
                         "\"new\":\"accumulator(training.loss, text)\"",
                         ""),
              1);
    CHECK_INT(
        lines_with("journal.jsonl", "\"what\":\"hook save#1\",\"old\":\"save(gone)\",\"new\":\"none\"", ""),
        1);

    wave_trainer second = make();
    CHECK_OK(sgm_trainer_add_hook(second.trainer, sgm_accumulator("training.loss", .name = "own")));
    CHECK_OK(sgm_trainer_run(second.trainer, .iterations = (int64_t)iteration + 1, .folder = folder,
                             .resume = true));
    size_t count;
    sgm_attached_hook *list = hooks_of(second.trainer, &count);
    CHECK_INT(count, 1); /* the program's own was detached, its late one is its own business */
    CHECK_STR(list[0].text, "accumulator(training.loss, text)");
    sgm_attached_hooks_free(list, count);
    CHECK_NEAR(number_of(second.trainer, "shared.text") - number_of(second.trainer, "training.loss"), sum,
               1e-9);

    wave_trainer third = make();
    CHECK_OK(sgm_trainer_add_hook(third.trainer, sgm_accumulator("training.loss", .name = "own")));
    CHECK_OK(sgm_trainer_run(third.trainer, .iterations = (int64_t)iteration + 2, .folder = folder,
                             .resume = true));
    sgm_attached_hooks_free(hooks_of(third.trainer, &count), count);
    CHECK_INT(count, 1);
    free_wave_trainer(third);
    free_wave_trainer(second);
    free_wave_trainer(made);
    close_folder();
}
