/* Training on sequences of different lengths: what does not count changes neither costs nor accuracies. */
#include "test.h"

#include <sigma/sigma.h>

#define EXAMPLES 8
#define TIME 5

static sgm_tensor *field(int32_t rank, float (*value)(int64_t example, int64_t step))
{
    sgm_shape shape = sgm_shape_create(rank, (const int64_t[]){EXAMPLES, TIME});
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    int64_t steps = rank == 2 ? TIME : 1;
    for (int64_t i = 0; i < EXAMPLES * steps; i++)
        ((float *)sgm_tensor_data(tensor))[i] = value(i / steps, i % steps);
    return tensor;
}

static float rubbish; /* behind an example's end */
static double f1;     /* of the newest training */
static int64_t seen;  /* predictions that it is of */

static float length_of(int64_t example, int64_t step)
{
    (void)step;
    return (float)(1 + example % TIME);
}

static float token(int64_t example, int64_t step)
{
    return (float)step < length_of(example, 0) ? (float)((example * 3 + step * 2) % 4) : rubbish;
}

static float target(int64_t example, int64_t step)
{
    return (float)step < length_of(example, 0) ? (float)((example + step) % 4) : rubbish;
}

static void score(sgm_trainer *trainer, sgm_iterator *examples)
{
    sgm_registry *results = sgm_registry_create();
    CHECK_OK(sgm_trainer_evaluate_metrics(trainer, examples, "f1 confusion", results));
    sgm_content confusion;
    CHECK_OK(sgm_registry_get_number(results, "f1", &f1));
    CHECK_OK(sgm_registry_get(results, "confusion", &confusion));
    seen = 0;
    for (int64_t i = 0; i < 16; i++)
        seen += (int64_t)sgm_tensor_get(confusion.as.tensor, (const int64_t[]){i / 4, i % 4});
    sgm_content_clear(&confusion);
    sgm_registry_free(results);
}

/* The first token is all that is looked at, so the predictions can be counted. */
static sgm_metrics train(float behind, const char *network, int64_t epochs, bool scored)
{
    rubbish = behind;
    sgm_env *env = sgm_env_create("lengths", .seed = 3);
    sgm_trainer *trainer = sgm_trainer_create(env, "lengths");
    sgm_tensor *fields[] = {field(2, token), field(2, target), field(1, length_of)};
    sgm_dataset *data =
        sgm_dataset_create_from("words", (const char *const[]){"inputs", "targets", "lengths"}, fields, 3);
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 4, .no_shuffle = true));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.05));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = epochs));
    sgm_iterator *all = sgm_by_block(data);
    sgm_metrics metrics = {0};
    CHECK_OK(sgm_trainer_evaluate(trainer, all, &metrics));
    if (scored)
        score(trainer, all);
    sgm_iterator_free(all);
    sgm_env_free(env);
    sgm_dataset_free(data);
    for (size_t i = 0; i < 3; i++)
        sgm_tensor_free(fields[i]);
    return metrics;
}

TEST(what_lies_behind_the_end_changes_nothing)
{
    static const char network[] =
        "input(5, lengths=lengths) + embedding(4, 6) + gru(6, bidirectional) + dense(4, time_distributed)"
        " + softmax_cross_entropy";
    sgm_metrics zeros = train(0, network, 20, true), threes = train(3, network, 20, true);
    CHECK_NEAR(zeros.loss, threes.loss, 0);
    CHECK_NEAR(zeros.accuracy, threes.accuracy, 0);
}

/* Targets behind the end are below one half, then above. */
TEST(what_lies_behind_the_end_changes_no_accuracy_of_yes_or_no)
{
    static const char network[] = "input(5, lengths=lengths) + embedding(4, 6) + gru(6) + "
                                  "dense(1, time_distributed) + binary_cross_entropy";
    sgm_metrics zeros = train(0, network, 20, false), threes = train(3, network, 20, false);
    CHECK_NEAR(zeros.loss, threes.loss, 0);
    CHECK_NEAR(zeros.accuracy, threes.accuracy, 0);
    double right = zeros.accuracy * (1 + 2 + 3 + 4 + 5 + 1 + 2 + 3);
    CHECK_NEAR(right, rint(right), 1e-12);
}

TEST(the_accuracy_is_that_of_the_steps_that_count)
{
    /* what is learnt by heart is right wherever it counts; what does not count would be wrong */
    sgm_metrics metrics = train(
        2,
        "input(5, lengths=lengths) + embedding(4, 8) + lstm(24, bidirectional) + dense(4, time_distributed)"
        " + softmax_cross_entropy",
        200, true);
    CHECK_NEAR(metrics.accuracy, 1, 0);
    CHECK_NEAR(f1, 1, 0);
    CHECK_INT(seen, 1 + 2 + 3 + 4 + 5 + 1 + 2 + 3);
    CHECK(metrics.loss < 0.1);
}
