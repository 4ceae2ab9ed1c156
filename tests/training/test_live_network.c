/* Layers, costs and iterators by name: reading, and changing them while training runs. */
#include "by_name.h"

#include <stdlib.h>

#define TWO_COSTS                                                                                            \
    "body = input(6) + dense(8, tanh); body + dense(3) + softmax_cross_entropy;"                             \
    " body + dense(3) + mean_squared(importance=0.5)"

typedef struct shown {
    const char *identifier, *text;
} shown;

TEST(a_network_shows_its_layers_before_it_is_prepared)
{
    static const shown values[] = {
        {"network.notation", "'input(6) + dropout(0.25) + dense(3, no_bias=true) + softmax_cross_entropy'"},
        {"network.layers.0-input.shape", "'6'"},
        {"network.layers.1-dropout.rate", "0.25"},
        {"network.layers.2-dense.size", "3"},
        {"network.layers.2-dense.no_bias", "true"},
        {"network.layers.2-dense.activation", "''"},
        {"network.layers.3-softmax_cross_entropy.targets", "'targets'"},
        {"network.layers.3-softmax_cross_entropy.importance", "1"},
        {"optimiser.costs.3-softmax_cross_entropy.importance", "1"},
        {"optimiser.costs.3-softmax_cross_entropy.partial", "nan"},
    };
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = "input(6) + dropout(0.25) + dense(3, no_bias) + softmax_cross_entropy"});
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        CHECK_STR(described(made.trainer, values[i].identifier), values[i].text);
    sgm_content content;
    CHECK_ERROR(
        sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "network.parameter_count", &content),
        "network.parameter_count: the trainer is not prepared yet");
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_NEAR(number_of(made.trainer, "network.parameter_count"), 18, 0);
    free_wave_trainer(made);
}

TEST(tags_find_what_they_say)
{
    static const shown tags[] = {
        {"network.layers.*<dense>", "network.layers.1-dense network.layers.last"},
        {"network.layers.*<layer,external_input>", "network.layers.0-input"},
        {"network.layers.*<internal>", "network.layers.1-dense network.layers.last"},
        {"network.layers.*<external_output>", "network.layers.3-output"},
        {"network.layers.*<cost>", "network.layers.4-softmax_cross_entropy"},
        {"<optimiser>.<costs>.*", "optimiser.costs.4-softmax_cross_entropy"},
        {"<network>.<layers>.last", "network.layers.last"},
        {"<iterator>.minibatch_size", "iterator.minibatch_size"},
        {"<validation>.<iterator>.batches", "held_out.iterator.batches"},
        {"<optimiser>.<schedule>.factor", "optimiser.schedule.factor"},
    };
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = "input(6) + dense(8, tanh) + dense(3, name=last) + output + "
                                  "softmax_cross_entropy"});
    sgm_dataset *dataset = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "held_out", sgm_by_block(dataset)));
    CHECK_ERROR(sgm_trainer_add_data(made.trainer, "seed", sgm_by_block(dataset)), "choose another name");
    sgm_dataset_free(dataset);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        CHECK_STR(identifiers_of(made.trainer, tags[i].identifier), tags[i].text);
    CHECK(sgm_registry_has_tag(sgm_trainer_registry(made.trainer), "trainer"));
    free_wave_trainer(made);
}

TEST(another_network_replaces_what_is_shown)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    CHECK_OK(
        sgm_trainer_set_network(made.trainer, "input(6) + dropout(0.5) + dense(3) + softmax_cross_entropy"));
    CHECK_STR(identifiers_of(made.trainer, "network.layers.*<layer>"),
              "network.layers.0-input network.layers.1-dropout network.layers.2-dense "
              "network.layers.3-softmax_cross_entropy");
    CHECK_STR(identifiers_of(made.trainer, "optimiser.costs.*"), "optimiser.costs.3-softmax_cross_entropy");
    free_wave_trainer(made);
}

/* --- layers --- */

#define DROPPING "input(6) + dense(8, tanh) + dropout(0.5) + dense(3) + softmax_cross_entropy"

TEST(arguments_are_refused_by_their_tables)
{
    wave_trainer made = make_wave_trainer((wave_options){.network = DROPPING});
    CHECK_ERROR(set(made.trainer, "network.layers.2-dropout.rate", sgm_number_content(1)),
                "network.layers.2-dropout.rate: expected a number from 0 to 0.9999, got 1");
    CHECK_ERROR(set(made.trainer, "network.layers.1-dense.size", sgm_integer_content(3)),
                "network.layers.1-dense.size is read-only");
    CHECK_ERROR(set(made.trainer, "network.layers.*<cost>.importance", sgm_number_content(-1)),
                "network.layers.4-softmax_cross_entropy.importance: expected a number from 0");
    free_wave_trainer(made);
}

/* From the third iteration on as if there were no dropout. */
TEST(a_rate_changes_from_the_next_iteration_on)
{
    sgm_optimiser *slow[3];
    double weights[3];
    for (int i = 0; i < 3; i++)
        slow[i] = sgm_gradient_descent(.learning_rate = 0.1);
    wave_trainer dropping = make_wave_trainer((wave_options){.network = DROPPING, .optimiser = slow[0]});
    wave_trainer changed = make_wave_trainer((wave_options){.network = DROPPING, .optimiser = slow[1]});
    CHECK_OK(sgm_trainer_run(dropping.trainer, .iterations = 2));
    CHECK_OK(sgm_trainer_run(changed.trainer, .iterations = 2));
    CHECK(weight_of(dropping.trainer, "3-dense.weights") == weight_of(changed.trainer, "3-dense.weights"));
    CHECK_OK(set(changed.trainer, "network.layers.2-dropout.rate", sgm_integer_content(0)));

    /* a network without dropout that begins with these parameters */
    wave_trainer without = make_wave_trainer(
        (wave_options){.network = "input(6) + dense(8, tanh) + dropout(0) + dense(3) + softmax_cross_entropy",
                       .optimiser = slow[2]});
    static const char *const states[] = {"1-dense.weights", "1-dense.biases", "3-dense.weights",
                                         "3-dense.biases"};
    CHECK_OK(sgm_trainer_run(without.trainer, .iterations = 2));
    for (size_t i = 0; i < 4; i++) {
        sgm_tensor *value = sgm_trainer_get(changed.trainer, states[i]);
        CHECK_OK(sgm_trainer_set(without.trainer, states[i], value));
        sgm_tensor_free(value);
    }
    wave_trainer all[] = {dropping, changed, without};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(sgm_trainer_run(all[i].trainer, .iterations = 5));
        weights[i] = weight_of(all[i].trainer, "3-dense.weights");
    }
    CHECK(weights[1] == weights[2]);
    CHECK(weights[1] != weights[0]);
    for (int i = 0; i < 3; i++)
        free_wave_trainer(all[i]);
}

/* One of several copies of a description. */
TEST(a_repeated_layer_changes_alone)
{
    wave_trainer made = make_wave_trainer((wave_options){
        .network = "input(6) + 2 * (dense(8, tanh) + dropout(0.5)) + dense(3) + softmax_cross_entropy"});
    CHECK_OK(set(made.trainer, "network.layers.2-dropout.rate", sgm_number_content(0.125)));
    CHECK_STR(described(made.trainer, "network.layers.2-dropout.rate"), "0.125");
    CHECK_STR(described(made.trainer, "network.layers.4-dropout.rate"), "0.5");
    CHECK_OK(set(made.trainer, "network.layers.*<dropout>.rate", sgm_number_content(0.25)));
    CHECK_STR(described(made.trainer, "network.layers.4-dropout.rate"), "0.25");
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    free_wave_trainer(made);
}

/* --- costs --- */

TEST(costs_are_told_one_by_one)
{
    wave_trainer made = make_wave_trainer((wave_options){.network = TWO_COSTS});
    CHECK_STR(identifiers_of(made.trainer, "optimiser.costs.*"),
              "optimiser.costs.3-softmax_cross_entropy optimiser.costs.5-mean_squared");
    for (int i = 1; i < 4; i++) {
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = i));
        double entropy = number_of(made.trainer, "optimiser.costs.3-softmax_cross_entropy.partial"),
               squared = number_of(made.trainer, "optimiser.costs.5-mean_squared.partial");
        CHECK(entropy > 0 && squared > 0 && entropy != squared);
        CHECK_NEAR(number_of(made.trainer, "optimiser.loss"), entropy + 0.5 * squared, 1e-6);
    }
    CHECK_OK(set(made.trainer, "optimiser.costs.5-mean_squared.importance", sgm_number_content(4)));
    CHECK_STR(described(made.trainer, "network.layers.5-mean_squared.importance"), "4");
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK_NEAR(number_of(made.trainer, "optimiser.loss"),
               number_of(made.trainer, "optimiser.costs.3-softmax_cross_entropy.partial") +
                   4 * number_of(made.trainer, "optimiser.costs.5-mean_squared.partial"),
               1e-6);
    free_wave_trainer(made);
    made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    CHECK_NEAR(number_of(made.trainer, "optimiser.costs.4-softmax_cross_entropy.partial"),
               number_of(made.trainer, "optimiser.loss"), 0);
    free_wave_trainer(made);
}

/* --- iterators --- */

/* Counts each example of an epoch by its first input, which no other has. */
typedef struct census {
    sgm_trainer *trainer;
    int64_t sizes[64], examples_in_epoch[16], before;
    int64_t batches;
} census;

static bool count_batches(void *user, const sgm_training_progress *progress)
{
    census *self = user;
    if (progress->kind == SGM_PROGRESS_EPOCH) {
        self->examples_in_epoch[progress->epoch] = progress->training.examples;
        self->before = 0;
    }
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    self->sizes[self->batches++] = progress->training.examples - self->before;
    self->before = progress->training.examples;
    if (progress->iteration == 2) {
        CHECK_OK(set(self->trainer, "iterator.minibatch_size", sgm_integer_content(16)));
        CHECK_OK(set(self->trainer, "iterator.drop_last", sgm_boolean_content(true)));
    }
    if (progress->iteration == 5)
        CHECK_OK(set(self->trainer, "iterator.drop_last", sgm_boolean_content(false)));
    return true;
}

TEST(another_minibatch_size_counts_from_the_next_epoch_on)
{
    census counted = {0};
    wave_trainer made = make_wave_trainer((wave_options){.shuffle = true});
    counted.trainer = made.trainer;
    CHECK_OK(sgm_trainer_on_progress(made.trainer, count_batches, &counted));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    static const int64_t sizes[] = {10, 10, 10, 10, 16, 16, 16, 16, 8};
    CHECK_INT(counted.batches, 9);
    for (int i = 0; i < 9; i++)
        CHECK_INT(counted.sizes[i], sizes[i]);
    CHECK_INT(counted.examples_in_epoch[1], 40);
    CHECK_INT(counted.examples_in_epoch[2], 32);
    CHECK_INT(counted.examples_in_epoch[3], 40);
    CHECK_STR(described(made.trainer, "iterator.minibatch_size"), "16");
    CHECK_STR(described(made.trainer, "iterator.batches"), "3");
    CHECK_STR(described(made.trainer, "iterator.epoch"), "3");
    CHECK_STR(described(made.trainer, "iterator.batch"), "0");
    CHECK_ERROR(set(made.trainer, "iterator.minibatch_size", sgm_integer_content(0)),
                "iterator.minibatch_size: expected an integer from 1 to 10000000 examples, got 0");
    CHECK_ERROR(set(made.trainer, "iterator.shuffle", sgm_text_content("no")),
                "iterator.shuffle: expected a boolean (true or false), got text 'no'");
    free_wave_trainer(made);
}

/* The order of an epoch is that of its number, whatever the size of batches: only the cuts are others. */
TEST(a_schedule_knows_the_new_number_of_batches)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.optimiser = sgm_gradient_descent(.learning_rate = 1, .schedule = {SGM_COSINE, 4})});
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_OK(set(made.trainer, "iterator.minibatch_size", sgm_integer_content(20)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5)); /* one of two batches of the second epoch */
    CHECK_NEAR(number_of(made.trainer, "optimiser.current_learning_rate"),
               (1 + cos(3.14159265358979323846 * 1.5 / 4)) / 2, 1e-12);
    free_wave_trainer(made);
}

static bool change_much(void *user, const sgm_training_progress *progress)
{
    if (progress->kind != SGM_PROGRESS_ITERATION || progress->iteration != 2)
        return true;
    CHECK_OK(set(user, "iterator.minibatch_size", sgm_integer_content(7)));
    CHECK_OK(set(user, "iterator.shuffle", sgm_boolean_content(false)));
    CHECK_OK(set(user, "network.layers.2-dropout.rate", sgm_number_content(0.125)));
    CHECK_OK(set(user, "network.layers.<cost>.importance", sgm_number_content(3)));
    return true;
}

/* Stopped in the epoch of the change, and resumed by a program that knows nothing of it. */
TEST(a_resumed_run_goes_on_with_changed_layers_and_iterators)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", command[128];
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer made[3];
    for (int i = 0; i < 3; i++)
        made[i] = make_wave_trainer((wave_options){.network = DROPPING, .shuffle = true});
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_trainer_on_progress(made[i].trainer, change_much, made[i].trainer));
    CHECK_OK(sgm_trainer_run(made[0].trainer, .iterations = 12));
    CHECK_OK(sgm_trainer_run(made[1].trainer, .iterations = 3, .folder = folder));
    CHECK_OK(sgm_trainer_run(made[2].trainer, .iterations = 12, .folder = folder, .resume = true));
    static const char *const names[] = {"iterator.minibatch_size",
                                        "iterator.shuffle",
                                        "network.layers.2-dropout.rate",
                                        "network.layers.<cost>.importance",
                                        "epoch",
                                        "batch"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_STR(described(made[2].trainer, names[i]), described(made[0].trainer, names[i]));
    CHECK_STR(described(made[2].trainer, "iterator.minibatch_size"), "7");
    CHECK(weight_of(made[2].trainer, "3-dense.weights") == weight_of(made[0].trainer, "3-dense.weights"));
    for (int i = 0; i < 3; i++)
        free_wave_trainer(made[i]);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* --- rules --- */

TEST(rules_set_numbers_texts_and_booleans)
{
    static const char *const rules[] = {
        "after 3 iterations set optimiser.schedule.kind = \"cosine\" and set iterator.shuffle = false and "
        "set "
        "network.layers.*<dropout>.rate *= 0.5 and set optimiser.accumulate = 2",
        "after 4 iterations set optimiser.frozen = \"1-dense.*\" and set iterator.minibatch_size += 2",
    };
    /* none of these can be, which is said at the beginning */
    static const char *const wrong[][2] = {
        {"after 5 iterations set optimiser.schedule.kind = \"cosin\"", "did you mean 'cosine'?"},
        {"after 5 iterations set iterator.shuffle = 1", "'iterator.shuffle' is boolean"},
        {"after 5 iterations set optimiser.beta1 = true", "optimiser.beta1"},
    };
    static const shown values[] = {
        {"optimiser.schedule.kind", "'cosine'"},   {"iterator.shuffle", "false"},
        {"network.layers.2-dropout.rate", "0.25"}, {"optimiser.accumulate", "2"},
        {"optimiser.frozen", "'1-dense.*'"},       {"iterator.minibatch_size", "12"},
    };
    wave_trainer made = make_wave_trainer((wave_options){.network = DROPPING, .shuffle = true});
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rules[i])));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 8));
    CHECK_STR(described(made.trainer, "iteration"), "8");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        CHECK_STR(described(made.trainer, values[i].identifier), values[i].text);
    free_wave_trainer(made);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        made = make_wave_trainer((wave_options){.network = DROPPING});
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(wrong[i][0])));
        CHECK_ERROR(sgm_trainer_run(made.trainer, .iterations = 8), wrong[i][1]);
        free_wave_trainer(made);
    }
}

TEST(iterators_of_validation_change_too)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_dataset *dataset = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "held_out", sgm_minibatches(dataset, .size = 10)));
    sgm_dataset_free(dataset);
    CHECK_STR(described(made.trainer, "held_out.iterator.batches"), "4");
    CHECK_STR(described(made.trainer, "held_out.iterator.dataset"), "'waves'");
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_OK(set(made.trainer, "optimiser.learning_rate", sgm_number_content(0)));
    CHECK_OK(set(made.trainer, "optimiser.momentum", sgm_number_content(0)));
    double before = number_of(made.trainer, "held_out.loss");
    CHECK_OK(set(made.trainer, "held_out.iterator.minibatch_size", sgm_integer_content(16)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_STR(described(made.trainer, "held_out.iterator.batches"), "3");
    CHECK_NEAR(number_of(made.trainer, "held_out.loss"), before, 1e-6); /* of the same examples */
    free_wave_trainer(made);
}

/* What is no layer's is not shown among layers. */
TEST(states_are_shown_where_they_belong)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = DROPPING, .optimiser = sgm_momentum(.learning_rate = 0.1, .average = 0.5)});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    CHECK_STR(identifiers_of(made.trainer, "network.layers.*"),
              "network.layers.0-input network.layers.1-dense network.layers.2-dropout network.layers.3-dense "
              "network.layers.4-softmax_cross_entropy");
    CHECK_STR(identifiers_of(made.trainer, "network.averages.*.weights"),
              "network.averages.1-dense.weights network.averages.3-dense.weights");
    CHECK_STR(identifiers_of(made.trainer, "random.*"), "random.seed random.step");
    CHECK_STR(identifiers_of(made.trainer, "optimiser.slots.*.3-dense.biases"),
              "optimiser.slots.momentum.3-dense.biases");
    free_wave_trainer(made);
}
