/* Sequences that go on from minibatch to minibatch: pieces cost what the whole does, epochs begin anew, a run
 * that is resumed goes on; mistakes. */
#include "test.h"
#include "trainer/trainer_struct.h"

#include <sigma/sigma.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define TOKENS 33 /* two streams of 16 and what follows */
#define NETWORK(steps, streams)                                                                              \
    "input(" #steps ") + embedding(8, 3) + lstm(5" streams ", name=r) + gru(4" streams                       \
    ") + dense(8, time_distributed)"                                                                         \
    " + softmax_cross_entropy"

static sgm_env *env;

typedef struct losses {
    double of[8];
    int64_t count;
} losses;

static bool note(void *user, const sgm_training_progress *progress)
{
    losses *noted = user;
    if (progress->kind == SGM_PROGRESS_EPOCH && noted->count < 8)
        noted->of[noted->count++] = progress->training.loss;
    return true;
}

static sgm_trainer *trainer_of(const char *network, int64_t window, double rate)
{
    char text[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        text[i] = (char)((i * i + i / 3) % 8);
    sgm_tokenizer *bytes = sgm_byte_tokenizer();
    sgm_dataset *data =
        sgm_token_dataset("text", bytes, text, TOKENS, SGM_TOKENS(.window = window, .streams = 2));
    CHECK_OK(data);
    env = sgm_env_create("streams", .seed = 2, .precision = SGM_FLOAT64, .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "streams");
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 2, .no_shuffle = true));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = rate));
    sgm_dataset_free(data);
    sgm_tokenizer_free(bytes);
    return trainer;
}

/* Learns next to nothing, so that losses can be compared. */
static losses losses_of(const char *network, int64_t window)
{
    losses noted = {.count = 0};
    sgm_trainer *trainer = trainer_of(network, window, 1e-30);
    CHECK_OK(sgm_trainer_on_progress(trainer, note, &noted));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 2));
    sgm_env_free(env);
    CHECK_INT(noted.count, 2);
    return noted;
}

TEST(pieces_that_go_on_cost_what_the_whole_does)
{
    losses whole = losses_of(NETWORK(16, ""), 16), pieces = losses_of(NETWORK(4, ", streams=2"), 4);
    losses apart = losses_of(NETWORK(4, ""), 4);
    for (int epoch = 0; epoch < 2; epoch++) /* the second one begins as the first did */
        CHECK_NEAR(pieces.of[epoch], whole.of[epoch], 1e-12);
    CHECK(fabs(apart.of[0] - whole.of[0]) > 1e-4);
}

TEST(an_epoch_ends_with_zeros)
{
    sgm_trainer *trainer = trainer_of(NETWORK(4, ", streams=2"), 4, 0.1);
    CHECK_OK(sgm_trainer_run(trainer, .iterations = 3));
    double sum[2] = {0};
    for (int round = 0; round < 2; round++) {
        sgm_tensor *memory = sgm_trainer_get(trainer, "r.cell_memory");
        CHECK_OK(memory);
        CHECK_INT(sgm_tensor_shape(memory)->dims[0], 2);
        for (int64_t i = 0; i < 10; i++)
            sum[round] += fabs(sgm_tensor_get(memory, (const int64_t[]){i / 5, i % 5}));
        sgm_tensor_free(memory);
        if (round == 0)
            CHECK_OK(sgm_trainer_run(trainer, .epochs = 1));
    }
    CHECK(sum[0] > 0.01);
    CHECK_NEAR(sum[1], 0, 0);
    sgm_env_free(env);
}

static void check_same(sgm_trainer *a, sgm_trainer *b, const char *name)
{
    sgm_tensor *x = sgm_trainer_get(a, name), *y = sgm_trainer_get(b, name);
    CHECK_OK(x);
    CHECK_OK(y);
    CHECK_INT(memcmp(sgm_tensor_const_data(x), sgm_tensor_const_data(y),
                     (size_t)sgm_shape_elements(sgm_tensor_shape(x)) * sizeof(double)),
              0);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
}

TEST(a_checkpoint_in_the_middle_has_what_is_remembered)
{
    char path[] = "/tmp/sigma-streams-XXXXXX";
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0 && close(descriptor) == 0);
    sgm_trainer *whole = trainer_of(NETWORK(4, ", streams=2"), 4, 0.1);
    sgm_env *first = env;
    CHECK_OK(sgm_trainer_run(whole, .iterations = 3));
    CHECK_OK(sgm_trainer_save(whole, path));
    sgm_trainer *again = trainer_of(NETWORK(4, ", streams=2"), 4, 0.1);
    CHECK_OK(sgm_trainer_load(again, path));
    CHECK_OK(sgm_trainer_run(again, .iterations = 6));
    CHECK_OK(sgm_trainer_run(whole, .iterations = 6));
    check_same(whole, again, "r.hidden_memory");
    check_same(whole, again, "r.recurrent");
    /* and what it reads to predict begins as zeros, step by step too */
    sgm_generator *generator = sgm_generator_create(again);
    CHECK_OK(generator);
    const double *shares;
    CHECK_OK(sgm_generator_read(generator, 3, &shares));
    sgm_shape shape = sgm_shape_of(1, 4);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    sgm_tensor_set(inputs, (const int64_t[]){0, 0}, 3);
    sgm_tensor *all = sgm_trainer_predict(again, inputs, NULL);
    CHECK_OK(all);
    for (int64_t k = 0; k < 8; k++)
        CHECK_NEAR(shares[k], sgm_tensor_get(all, (const int64_t[]){0, 0, k}), 1e-12);
    sgm_tensor_free(all);
    sgm_tensor_free(inputs);
    sgm_generator_free(generator);
    sgm_env_free(env);
    sgm_env_free(first);
    unlink(path);
}

static sgm_status ruin_rate(void *self, sgm_hook_call *call)
{
    (void)self;
    return sgm_hook_request_set(call, "optimiser.learning_rate", sgm_number_content(1e6));
}
static const sgm_hook_type ruining = {.api = SGM_HOOK_API, .name = "ruin", .invoke = ruin_rate};

/* Products of three layers overflow soon. */
#define LINEAR                                                                                               \
    "input(4) + embedding(8, 3) + lstm(5, streams=2, name=r) + 3 * dense(8, time_distributed) + "            \
    "softmax_cross_entropy"

/* The NaN watch goes back to iteration 7 and repeats steps, of which the 9th begins an epoch, with zeros. */
TEST(steps_are_repeated_across_an_epochs_end)
{
    char folder[] = "/tmp/sigma-streams-XXXXXX", path[80];
    CHECK(mkdtemp(folder) != NULL);
    sgm_trainer *watched = trainer_of(LINEAR, 4, 0.1);
    sgm_env *first = env;
    sgm_trainer_add_hook(watched, sgm_hook_create(&ruining, NULL, .when = sgm_after(8, SGM_ITERATION)));
    sgm_trainer_add_hook(watched, sgm_nan_watch(.every = 7));
    CHECK_INT(sgm_trainer_run(watched, .iterations = 14, .folder = folder), SGM_ERROR_NUMERIC);
    CHECK(strstr(sgm_last_error(), "at iteration 14, in epoch 4") != NULL);
    snprintf(path, sizeof path, "%s/nan-14.safetensors", folder);

    sgm_trainer *kept = trainer_of(LINEAR, 4, 0.1);
    sgm_env *second = env;
    CHECK_OK(sgm_trainer_load(kept, path));
    sgm_trainer *calm = trainer_of(LINEAR, 4, 0.1);
    sgm_trainer_add_hook(calm, sgm_hook_create(&ruining, NULL, .when = sgm_after(8, SGM_ITERATION)));
    CHECK_OK(sgm_trainer_run(calm, .iterations = 13));
    check_same(kept, calm, "r.cell_memory");
    check_same(kept, calm, "r.recurrent");
    sgm_env_free(env);
    sgm_env_free(second);
    sgm_env_free(first);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

TEST(mistakes_are_told)
{
    sgm_trainer *trainer = trainer_of(
        "input(4) + embedding(8, 3) + rnn(4, streams=1) + dense(8, time_distributed) + softmax_cross_entropy",
        4, 0.1);
    CHECK_ERROR(sgm_trainer_run(trainer, .epochs = 1),
                "rnn: a minibatch of 2 examples does not fit 1 streams");
    sgm_env_free(env);
    trainer = trainer_of("input(4) + embedding(8, 3) + rnn(4, streams=2, reverse) + dense(8, "
                         "time_distributed) + softmax_cross_entropy",
                         4, 0.1);
    CHECK_ERROR(sgm_trainer_run(trainer, .epochs = 1), "rnn: streams go on forwards");
    sgm_env_free(env);
    trainer = trainer_of(NETWORK(4, ", streams=2"), 4, 0.1);
    sgm_trainer_set_operator(trainer, sgm_gradient_operator(.workers = 2));
    CHECK_ERROR(sgm_trainer_run(trainer, .epochs = 1), "train them without workers");
    sgm_env_free(env);
    trainer = trainer_of(NETWORK(4, ", streams=2"), 4, 0.1);
    sgm_content on = sgm_boolean_content(true);
    CHECK_OK(sgm_iterator_set(trainer->data.training, "shuffle", &on));
    CHECK_ERROR(sgm_trainer_run(trainer, .epochs = 1), "the training data are shuffled");
    sgm_env_free(env);
}
