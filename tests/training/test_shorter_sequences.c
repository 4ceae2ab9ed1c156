/* Predictions of sequences with fewer steps than the network's input declares: what is computed for these
 * alone is what all steps give, where the field of lengths says that the others do not count. */
#include "test.h"

#include <sigma/sigma.h>

/* Whole numbers below 5 as inputs (count, steps), and lengths of `length` steps. */
static sgm_block *sequences(int64_t count, int64_t steps, int64_t length)
{
    sgm_shape shape = sgm_shape_of(count, steps), line = sgm_shape_of(count);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    sgm_tensor *lengths = sgm_tensor_create(SGM_FLOAT32, &line);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < steps; k++)
            sgm_tensor_set(inputs, (int64_t[]){i, k}, (double)((i + k * k) % 5));
        sgm_tensor_set(lengths, &i, (double)length);
    }
    sgm_block *block = sgm_block_create(count);
    CHECK_OK(sgm_block_add(block, "inputs", inputs));
    CHECK_OK(sgm_block_add(block, "n", lengths));
    return block;
}

static sgm_tensor *predict(sgm_trainer *trainer, int64_t count, int64_t steps, int64_t length)
{
    sgm_block *block = sequences(count, steps, length);
    sgm_tensor *result = sgm_trainer_predict_block(trainer, block, NULL);
    sgm_block_free(block);
    return result;
}

TEST(fewer_steps_give_what_all_give)
{
    static const char *const networks[] = {
        "input(8, lengths=n) + embedding(5, 4) + positions + attention(2) + layer_norm + "
        "global_average_pooling(steps) + dense(2)",
        "input(8, lengths=n) + embedding(5, 4) + learned_tokens(2) + attention(2, rotary) + "
        "global_max_pooling(steps)",
        "input(8, lengths=n) + embedding(5, 4) + positions(9, first=1) + gru(3) + select + dense(2)"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        sgm_env *env = sgm_env_create("shorter");
        sgm_trainer *trainer = sgm_trainer_create(env, "shorter");
        CHECK_OK(sgm_trainer_set_network(trainer, networks[i]));
        for (int64_t steps = 8; steps >= 2; steps -= 3) { /* programs of all, and of fewer */
            sgm_tensor *all = predict(trainer, 3, 8, 2), *some = predict(trainer, 3, steps, 2);
            CHECK_OK(all);
            CHECK_OK(some);
            CHECK(sgm_shape_equal(sgm_tensor_shape(all), sgm_tensor_shape(some)));
            for (int64_t row = 0; row < 3; row++)
                for (int64_t k = 0; k < sgm_tensor_shape(all)->dims[1]; k++)
                    CHECK_NEAR(sgm_tensor_get(all, (int64_t[]){row, k}),
                               sgm_tensor_get(some, (int64_t[]){row, k}), 1e-6);
            sgm_tensor_free(all);
            sgm_tensor_free(some);
        }
        sgm_env_free(env);
    }
}

TEST(what_is_made_for_all_steps_is_told)
{
    static const struct {
        const char *network, *message;
    } cases[] = {
        {"input(8) + embedding(5, 4) + gru(3, last) + dense(2)", "(8"},
        {"input(8, lengths=n) + embedding(5, 4) + dense(2)", "weights"},
    };
    for (size_t i = 0; i < 2; i++) {
        sgm_env *env = sgm_env_create("told");
        sgm_trainer *trainer = sgm_trainer_create(env, "told");
        CHECK_OK(sgm_trainer_set_network(trainer, cases[i].network));
        CHECK_OK(sgm_trainer_prepare(trainer));
        CHECK_ERROR(predict(trainer, 3, 4, 2), cases[i].message);
        sgm_env_free(env);
    }
}
