/* A recurrent network learns a text by heart: the way from numbers of letters to a loss at each step and
 * back. */
#include "test.h"

#include <sigma/sigma.h>

#define TIME 12
#define LETTERS "abcdefghijklmnopqrstuvwxyz ."

static sgm_dataset *text_dataset(const char *text)
{
    int64_t length = (int64_t)strlen(text);
    sgm_shape shape = sgm_shape_of(length, TIME);
    sgm_tensor *now = sgm_tensor_create(SGM_UINT8, &shape), *next = sgm_tensor_create(SGM_INT64, &shape);
    CHECK_OK(now);
    CHECK_OK(next);
    for (int64_t i = 0; i < length; i++)
        for (int64_t t = 0; t < TIME; t++) {
            const char *at = strchr(LETTERS, text[(i + t) % length]),
                       *after = strchr(LETTERS, text[(i + t + 1) % length]);
            sgm_tensor_set(now, (const int64_t[]){i, t}, (double)(at - LETTERS));
            sgm_tensor_set(next, (const int64_t[]){i, t}, (double)(after - LETTERS));
        }
    sgm_dataset *data = sgm_dataset_create_from("text", (const char *const[]){"inputs", "targets"},
                                                (sgm_tensor *const[]){now, next}, 2);
    CHECK_OK(data);
    sgm_tensor_free(now);
    sgm_tensor_free(next);
    return data;
}

static sgm_metrics learn(const char *layers, int64_t epochs)
{
    char notation[200];
    sgm_metrics metrics;
    snprintf(notation, sizeof notation,
             "input(12) + embedding(28, 12) + %s + dense(28, time_distributed) + softmax_cross_entropy",
             layers);
    sgm_dataset *data = text_dataset("the cat sat on the mat. the dog sat on the log. ");
    sgm_env *env = sgm_env_create("text", .seed = 3, .threads = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "text");
    sgm_trainer_set_network(trainer, notation);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 12));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.02));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = epochs));
    sgm_iterator *all = sgm_by_block(data);
    CHECK_OK(sgm_trainer_evaluate(trainer, all, &metrics));
    sgm_iterator_free(all);
    sgm_env_free(env);
    sgm_dataset_free(data);
    return metrics;
}

/* The first letters of a part cannot be known: "t" may go on with "h" or ".". */
TEST(networks_learn_a_text)
{
    static const char *const layers[] = {"lstm(32, forget_bias=1)", "gru(32)", "rnn(32)"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        sgm_metrics metrics = learn(layers[i], 40);
        if (!(metrics.accuracy > 0.85 && metrics.loss < 0.45))
            TEST_FAIL("%s: loss %g, accuracy %g", layers[i], metrics.loss, metrics.accuracy);
    }
}

TEST(before_it_knows_nothing)
{
    sgm_metrics metrics = learn("lstm(32)", 1);
    CHECK(metrics.loss > 1.5 && metrics.loss < log(28) + 0.5);
}
