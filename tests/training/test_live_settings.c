/* What may be set of an optimiser while it runs, the moment from which it counts, and that a resumed run goes
 * on with it. */
#include "by_name.h"

#include <stdlib.h>
#include <unistd.h>

/* --- every setting: what is refused, with identifier, type, bounds and value --- */

typedef struct refusal {
    const char *identifier;
    sgm_content content;
    const char *error;
} refusal;

TEST(what_does_not_fit_is_told_with_identifier_bounds_and_value)
{
    const refusal refusals[] = {
        {"optimiser.learning_rate", sgm_number_content(-1),
         "optimiser.learning_rate: expected a number of at least 0, got -1"},
        {"optimiser.beta1", sgm_number_content(1),
         "optimiser.beta1: expected a number from 0 to 0.9999999999, got 1"},
        {"optimiser.average", sgm_number_content(1), "optimiser.average: expected a number from 0 to"},
        {"optimiser.accumulate", sgm_integer_content(0),
         "optimiser.accumulate: expected an integer from 1 to 1000000 minibatches, got 0"},
        {"optimiser.accumulate", sgm_number_content(2.5),
         "optimiser.accumulate: expected an integer, got number 2.5"},
        {"optimiser.schedule.kind", sgm_text_content("cosin"),
         "optimiser.schedule.kind: expected one of 'constant', 'step', 'exponential', 'cosine', 'one_cycle', "
         "'plateau', got 'cosin'; did you mean 'cosine'?"},
        {"optimiser.schedule.kind", sgm_integer_content(3), "optimiser.schedule.kind: expected a text, got"},
        {"optimiser.schedule.factor", sgm_number_content(2), "optimiser.schedule.factor: expected a number"},
        {"optimiser.schedule.reductions", sgm_integer_content(2), "is read-only"},
        {"optimiser.frozen", sgm_text_content("*.wieghts"),
         "optimiser.frozen: freezing '*.wieghts' matches no parameter"},
        {"optimiser.frozen", sgm_text_content("*"), "freezing '*' matches no parameter"},
        {"optimiser.frozen", sgm_text_content("*.*"), "nothing would be left to train"},
        {"optimiser.frozen", sgm_text_content("1-dense.*,,"), "optimiser.frozen"},
        {"optimiser.frozen", sgm_boolean_content(true),
         "optimiser.frozen: expected a text, got boolean true"},
        {"optimiser.type", sgm_text_content("adam"), "optimiser.type is read-only"},
        {"seed", sgm_integer_content(2), "seed is read-only"},
        {"handler", sgm_text_content("cpu"), "handler is read-only"},
    };
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        CHECK_ERROR(set(made.trainer, refusals[i].identifier, refusals[i].content), refusals[i].error);
    CHECK_STR(described(made.trainer, "optimiser.frozen"), "''");
    CHECK_STR(described(made.trainer, "optimiser.schedule.kind"), "'constant'");
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1)); /* nothing of it has stayed */
    free_wave_trainer(made);
}

TEST(settings_of_other_optimisers_have_no_value_and_are_refused)
{
    wave_trainer made = make_wave_trainer((wave_options){.optimiser = sgm_adam()});
    sgm_content content;
    sgm_matches matches;
    CHECK_ERROR(
        set(made.trainer, "optimiser.momentum", sgm_number_content(0.5)),
        "the optimiser adam has no momentum; it has learning_rate, beta1, beta2, epsilon, weight_decay, "
        "clip_value, clip_norm, average, accumulate");
    CHECK_ERROR(
        sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "optimiser.decay_rate", &content),
        "the optimiser adam has no decay_rate");
    CHECK_OK(sgm_registry_resolve(sgm_trainer_registry(made.trainer), "optimiser.*rate", &matches));
    CHECK_INT(matches.count, 2);
    for (size_t i = 0; i < 2; i++)
        CHECK(strcmp(matches.items[i].identifier, "optimiser.decay_rate") != 0);
    sgm_matches_free(&matches);
    CHECK_OK(set(made.trainer, "optimiser.beta2", sgm_number_content(0.5)));
    CHECK_OK(set(made.trainer, "optimiser.weight_decay", sgm_number_content(0.5)));
    free_wave_trainer(made);
    made = make_wave_trainer((wave_options){.optimiser = sgm_rmsprop()});
    CHECK_ERROR(set(made.trainer, "optimiser.beta1", sgm_number_content(0.5)), "rmsprop has no beta1");
    CHECK_OK(set(made.trainer, "optimiser.decay_rate", sgm_number_content(0.5)));
    free_wave_trainer(made);
}

static void never_called(void *user, const char *identifier, const sgm_content *before,
                         const sgm_content *after)
{
    (void)user, (void)before, (void)after;
    TEST_FAIL("%s was told", identifier);
}

/* Observers are told of what is set; nobody sets a gradient. */
TEST(what_is_computed_cannot_be_observed)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_registry *registry = sgm_trainer_registry(made.trainer);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    CHECK_ERROR(
        sgm_registry_observe(registry, "optimiser.gradients.1-dense.weights", never_called, NULL, NULL),
        "optimiser.gradients.1-dense.weights is computed where it lives, and changes without being set: "
        "nobody would be told; read it in a hook instead");
    CHECK_ERROR(sgm_registry_observe(registry, "epoch", never_called, NULL, NULL),
                "read it in a hook instead");
    CHECK_OK(sgm_registry_observe(registry, "optimiser.*", never_called, NULL, NULL));
    CHECK_OK(sgm_registry_observe(registry, "network.layers.1-dense.weights", never_called, NULL, NULL));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    free_wave_trainer(made);
}

TEST(facts_can_be_read)
{
    wave_trainer made = make_wave_trainer((wave_options){.precision = SGM_FLOAT64, .seed = 77});
    CHECK_STR(described(made.trainer, "name"), "'waves'");
    CHECK_STR(described(made.trainer, "handler"), "'reference'");
    CHECK_STR(described(made.trainer, "precision"), "'float64'");
    CHECK_STR(described(made.trainer, "seed"), "77");
    CHECK_STR(described(made.trainer, "optimiser.type"), "'momentum'");
    free_wave_trainer(made);
}

/* --- changes at an iteration --- */

typedef struct change {
    int64_t iteration;
    const char *identifier;
    sgm_content content;
    sgm_trainer *trainer;
} change;

static bool make_change(void *user, const sgm_training_progress *progress)
{
    const change *self = user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == self->iteration)
        CHECK_OK(set(self->trainer, self->identifier, self->content));
    return true;
}

static void at_iteration(sgm_trainer *trainer, change *made)
{
    made->trainer = trainer;
    CHECK_OK(sgm_trainer_on_progress(trainer, make_change, made));
}

TEST(a_schedule_changes_the_next_iteration)
{
    wave_trainer made = make_wave_trainer((wave_options){0}); /* 4 batches an epoch, rate 0.1 */
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK_STR(described(made.trainer, "optimiser.current_learning_rate"), "0.1");
    CHECK_OK(set(made.trainer, "optimiser.schedule.kind", sgm_text_content("step")));
    CHECK_OK(set(made.trainer, "optimiser.schedule.factor", sgm_number_content(0.5)));
    CHECK_STR(described(made.trainer, "optimiser.current_learning_rate"), "0.05");
    CHECK_OK(set(made.trainer, "optimiser.schedule.period", sgm_integer_content(2)));
    CHECK_STR(described(made.trainer, "optimiser.current_learning_rate"), "0.1");
    CHECK_OK(set(made.trainer, "optimiser.schedule.warm_up", sgm_number_content(4)));
    CHECK_STR(described(made.trainer, "optimiser.current_learning_rate"), "0.025");
    free_wave_trainer(made);
}

/* Gradients of 4, then of 2 minibatches: the change in the middle of the first four waits for their update.
 */
TEST(accumulation_changes_after_the_update_that_it_is_in)
{
    sgm_optimiser *four = sgm_gradient_descent(.learning_rate = 0.1, .accumulate = 4);
    wave_trainer made = make_wave_trainer((wave_options){.optimiser = four});
    change to_two = {.iteration = 2, .identifier = "optimiser.accumulate", .content = sgm_integer_content(2)};
    at_iteration(made.trainer, &to_two);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 3));
    CHECK_STR(described(made.trainer, "updates"), "0");
    CHECK_STR(described(made.trainer, "optimiser.accumulate"), "2");
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 8));
    CHECK_STR(described(made.trainer, "updates"), "3");

    /* the same by hand: an update of four, and from there on a trainer that accumulates two */
    sgm_optimiser *first = sgm_gradient_descent(.learning_rate = 0.1, .accumulate = 4);
    wave_trainer other = make_wave_trainer((wave_options){.optimiser = first});
    CHECK_OK(sgm_trainer_run(other.trainer, .iterations = 4));
    CHECK_OK(sgm_trainer_set_optimiser(other.trainer,
                                       sgm_gradient_descent(.learning_rate = 0.1, .accumulate = 2)));
    CHECK_OK(sgm_trainer_run(other.trainer, .iterations = 8));
    CHECK(weight_of(made.trainer, "2-dense.weights") == weight_of(other.trainer, "2-dense.weights"));
    free_wave_trainer(made);
    free_wave_trainer(other);
}

TEST(what_is_frozen_stays_from_the_next_iteration_on)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    double first = weight_of(made.trainer, "1-dense.weights"),
           second = weight_of(made.trainer, "2-dense.weights");
    CHECK_OK(set(made.trainer, "optimiser.frozen", sgm_text_content(" 1-dense.* , 3-dense.biases")));
    CHECK_STR(described(made.trainer, "optimiser.frozen"), "'1-dense.*, 3-dense.biases'");
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK(weight_of(made.trainer, "1-dense.weights") == first);
    CHECK(weight_of(made.trainer, "2-dense.weights") != second);
    CHECK_OK(set(made.trainer, "optimiser.frozen", sgm_text_content("")));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5));
    CHECK(weight_of(made.trainer, "1-dense.weights") != first);
    free_wave_trainer(made);
}

TEST(an_average_that_is_switched_on_begins_with_the_parameters)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    double before = weight_of(made.trainer, "1-dense.weights");
    CHECK_OK(set(made.trainer, "optimiser.average", sgm_number_content(0.75)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 3));
    double after = weight_of(made.trainer, "1-dense.weights");
    CHECK_NEAR(weight_of(made.trainer, "average.1-dense.weights"), 0.75 * before + 0.25 * after, 1e-7);
    /* off, and on again: not from where it was */
    CHECK_OK(set(made.trainer, "optimiser.average", sgm_number_content(0)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 7));
    before = weight_of(made.trainer, "1-dense.weights");
    CHECK_OK(set(made.trainer, "optimiser.average", sgm_number_content(0.75)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 8));
    after = weight_of(made.trainer, "1-dense.weights");
    CHECK_NEAR(weight_of(made.trainer, "average.1-dense.weights"), 0.75 * before + 0.25 * after, 1e-7);
    free_wave_trainer(made);
}

/* --- resuming --- */

typedef struct live_case {
    const char *identifier, *now;
} live_case;

static wave_trainer resumable(void)
{
    return make_wave_trainer((wave_options){
        .optimiser = sgm_adam(.learning_rate = 0.01, .accumulate = 3, .weight_decay = 0.1), .shuffle = true});
}

static void change_all(sgm_trainer *trainer, const live_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sgm_content old, new;
        CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), cases[i].identifier, &old));
        CHECK_OK(sgm_content_parse(cases[i].now, old.kind, &new));
        CHECK_OK(set(trainer, cases[i].identifier, new));
        sgm_content_clear(&old);
        sgm_content_clear(&new);
    }
}

typedef struct changes {
    sgm_trainer *trainer;
    const live_case *cases;
    size_t count;
} changes;

static bool change_in_fourth(void *user, const sgm_training_progress *progress)
{
    const changes *self = user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 4)
        change_all(self->trainer, self->cases, self->count);
    return true;
}

/* Stopped in the middle of an accumulation with all of it changed; the new process knows nothing of that. */
TEST(a_resumed_run_goes_on_with_what_was_changed)
{
    static const live_case cases[] = {
        {"optimiser.learning_rate", "0.03125"}, {"optimiser.beta2", "0.5"},
        {"optimiser.weight_decay", "0"},        {"optimiser.clip_norm", "0.25"},
        {"optimiser.average", "0.5"},           {"optimiser.accumulate", "2"},
        {"optimiser.schedule.kind", "step"},    {"optimiser.schedule.factor", "0.25"},
        {"optimiser.frozen", "1-dense.*"},
    };
    enum { count = sizeof cases / sizeof *cases };
    char folder[64] = "/tmp/sigma-test-XXXXXX", command[128];
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer whole = resumable(), first = resumable(), second = resumable();
    changes in_whole = {whole.trainer, cases, count}, in_first = {first.trainer, cases, count};
    CHECK_OK(sgm_trainer_on_progress(whole.trainer, change_in_fourth, &in_whole));
    CHECK_OK(sgm_trainer_on_progress(first.trainer, change_in_fourth, &in_first));
    CHECK_OK(sgm_trainer_run(whole.trainer, .iterations = 15));
    CHECK_OK(sgm_trainer_run(first.trainer, .iterations = 5, .folder = folder));
    CHECK_OK(sgm_trainer_run(second.trainer, .iterations = 15, .folder = folder, .resume = true));
    for (size_t i = 0; i < count; i++) {
        char expected[256];
        snprintf(expected, sizeof expected, "%s", described(whole.trainer, cases[i].identifier));
        CHECK_STR(described(second.trainer, cases[i].identifier), expected);
    }
    CHECK_STR(described(second.trainer, "updates"), described(whole.trainer, "updates"));
    static const char *const states[] = {"1-dense.weights", "2-dense.weights", "average.2-dense.weights"};
    for (size_t i = 0; i < 3; i++)
        CHECK(weight_of(second.trainer, states[i]) == weight_of(whole.trainer, states[i]));
    free_wave_trainer(whole);
    free_wave_trainer(first);
    free_wave_trainer(second);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* Somebody who resumes with another number means it. */
TEST(what_a_program_gives_anew_counts_more_than_an_old_change)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", command[128];
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer first = resumable();
    CHECK_OK(set(first.trainer, "optimiser.learning_rate", sgm_number_content(0.5)));
    CHECK_OK(set(first.trainer, "optimiser.beta1", sgm_number_content(0.5)));
    CHECK_OK(sgm_trainer_run(first.trainer, .iterations = 2, .folder = folder));
    wave_trainer second = make_wave_trainer((wave_options){
        .optimiser = sgm_adam(.learning_rate = 0.02, .accumulate = 3, .weight_decay = 0.1), .shuffle = true});
    CHECK_OK(sgm_trainer_run(second.trainer, .iterations = 3, .folder = folder, .resume = true));
    CHECK_STR(described(second.trainer, "optimiser.learning_rate"), "0.02");
    CHECK_STR(described(second.trainer, "optimiser.beta1"), "0.5");
    free_wave_trainer(first);
    free_wave_trainer(second);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}
