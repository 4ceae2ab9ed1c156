/* What hooks are told that cannot be: said before the first iteration, or once it is due. */
#include "waves.h"

static char messages[4096];

static void note_message(void *user, sgm_log_level level, const char *component, const char *message)
{
    (void)user;
    (void)level;
    (void)component;
    size_t length = strlen(messages);
    snprintf(messages + length, sizeof messages - length, "%s\n", message);
}

/* Four iterations are an epoch. */
static wave_trainer watched(const char *const *texts)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_dataset *dataset = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_minibatches(dataset, .size = 10)));
    sgm_dataset_free(dataset);
    for (size_t i = 0; texts[i] != NULL; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse(texts[i])));
    messages[0] = '\0';
    sgm_set_logger(note_message, NULL, SGM_LOG_WARNING);
    return made;
}

static void refuses(const char *text, const char *message)
{
    wave_trainer made = watched((const char *const[]){text, NULL});
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 2), message);
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "iteration", &content));
    CHECK_INT(content.as.integer, 0);
    free_wave_trainer(made);
}

TEST(what_cannot_be_done_is_said_before_the_first_iteration)
{
    refuses("every epoch set optimiser.learning_rat *= 0.5", "did you mean 'optimiser.learning_rate'?");
    refuses("every epoch set optimiser.learning_rate = -1", "expected a number of at least 0");
    refuses("every epoch set optimiser.learning_rate = \"high\"", "is number, and the rule sets it to text");
    refuses("every epoch set epoch = 1", "read-only");
    refuses("save(\"b-{epochh}\")", "did you mean 'epoch'?");
    refuses("top_k(test)", "no data 'test'; it has validation, training");
    refuses("time_series(network.layers.*.weights)", "expected a number");
}

TEST(what_may_still_come_is_not_refused)
{
    static const char *const texts[] = {"every 1 epoch time_series(validation.loss shared.x)",
                                        "after 100 epochs set shared.x = 3",
                                        "every epoch set optimiser.learning_rate *= 0.5", NULL};
    wave_trainer made = watched(texts);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_NEAR(made.trainer->learner.optimiser->options.learning_rate, 0.025, 1e-9);
    free_wave_trainer(made);
}

TEST(a_failure_says_which_hook_and_when)
{
    static const char *const texts[] = {"every 100 epochs stop", "every 2 epochs set shared.x = 3", NULL};
    wave_trainer made = watched(texts);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    CHECK(strstr(messages, "hook 'rule#2' failed and is taken off") != NULL);
    CHECK(strstr(messages, "(at epoch 2, iteration 8: 'every 2 epochs set shared.x = 3')") != NULL);
    free_wave_trainer(made);
}
