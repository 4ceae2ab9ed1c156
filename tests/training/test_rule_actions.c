/* What rules do to a training that runs, beyond stopping, saving and setting for good. */
#include "by_name.h"

#define RATE "optimiser.learning_rate"

/* The learning rate after each iteration and epoch, times 1000. */
typedef struct rates {
    char text[2000];
} rates;

static bool note_rate(void *user, const sgm_training_progress *progress)
{
    rates *to = user;
    if (progress->kind != SGM_PROGRESS_ITERATION && progress->kind != SGM_PROGRESS_EPOCH)
        return true;
    size_t length = strlen(to->text);
    snprintf(to->text + length, sizeof to->text - length, "%s%g",
             progress->kind == SGM_PROGRESS_EPOCH ? "|"
             : length > 0                         ? " "
                                                  : "",
             progress->learning_rate * 1000);
    return true;
}

/* Trains for 4 epochs of 4 iterations with these rules, and compares what the rate is after each iteration
 * and, behind '|', each epoch. The rate is 100 at first. */
static void check_rates(const char *const *rules, size_t count, const char *expected)
{
    rates seen = {.text = ""};
    wave_trainer made = make_wave_trainer((wave_options){.seed = 5, .shuffle = true});
    for (size_t i = 0; i < count; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rules[i])));
    CHECK_OK(sgm_trainer_on_progress(made.trainer, note_rate, &seen));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
    CHECK_STR(seen.text, expected);
    free_wave_trainer(made);
}

TEST(a_value_that_is_set_for_a_time_goes_back)
{
    static const struct {
        const char *rules[3], *rates;
    } cases[] = {
        {{"after 2 iterations set " RATE " *= 0.5 for 3 iterations"},
         "100 50 50 50|50 100 100 100 100|100 100 100 100 100|100 100 100 100 100|100"},
        {{"at start set " RATE " = 0.01 for 2 epochs"},
         "10 10 10 10|10 10 10 10 10|100 100 100 100 100|100 100 100 100 100|100"},
        {{"at epoch 1 set " RATE " = 0.01 for 1 epoch"},
         "100 100 100 100|10 10 10 10 10|100 100 100 100 100|100 100 100 100 100|100"},
        /* a rule that fires again begins its time anew, and starts from the value of before */
        {{"every 2 iterations, 3 times set " RATE " *= 0.5 for 3 iterations"},
         "100 50 50 50|50 50 50 50 50|50 100 100 100 100|100 100 100 100 100|100"},
        /* so does another rule for the same value */
        {{"after 1 iteration set " RATE " *= 0.5 for 3 iterations",
          "after 2 iterations set " RATE " *= 0.25 for 4 iterations"},
         "50 25 25 25|25 25 100 100 100|100 100 100 100 100|100 100 100 100 100|100"},
        /* what somebody else sets meanwhile stays */
        {{"after 1 iteration set " RATE " *= 0.5 for 3 iterations", "after 2 iterations set " RATE " = 0.02"},
         "50 20 20 20|20 20 20 20 20|20 20 20 20 20|20 20 20 20 20|20"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_rates(cases[i].rules, cases[i].rules[1] == NULL ? 1 : 2, cases[i].rates);
}

TEST(a_reset_sets_back_what_was_set_for_a_time)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 5, .shuffle = true});
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_rule_hook("after 3 iterations set " RATE " = 0.01 for 100 epochs")));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK_NEAR(number_of(made.trainer, RATE), 0.01, 0);
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_NEAR(number_of(made.trainer, RATE), 0.1, 0);
    free_wave_trainer(made);
}

TEST(a_rule_for_a_time_is_of_the_trainer)
{
    CHECK_ERROR(sgm_hook_parse("local every epoch set " RATE " = 1 for 3 epochs"), "cannot be local");
}
