/* What a network sees: inputs that it takes for a class, as text, and passes in the background. */
#include "waves.h"

#include <pthread.h>

static sgm_content get(sgm_trainer *trainer, const char *identifier)
{
    sgm_content content = {0};
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), identifier, &content));
    return content;
}

static char said[8192];

static void listen(void *user, const char *line)
{
    (void)user;
    snprintf(said, sizeof said, "%s", line);
}

/* The network itself says whether the input is what was wanted: cost below 0.06 is a probability above 0.94.
 */
TEST(an_input_is_found_that_the_network_takes_for_the_class)
{
    static const char *const handlers[] = {"reference", "cpu"};
    for (int i = 0; i < 2; i++) {
        wave_trainer made = make_wave_trainer(
            (wave_options){.handler = handlers[i],
                           .network = "input(6) + dense(8) + dense(3) + softmax_cross_entropy",
                           .optimiser = sgm_adam(.learning_rate = 0.02)});
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_target_maximiser(2, sgm_after(3, SGM_EPOCH))));
        CHECK_OK(
            sgm_trainer_add_hook(made.trainer, sgm_art_reporter("shared.target_2_input",
                                                                sgm_after(3, SGM_EPOCH), .report = listen)));
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
        sgm_content found = get(made.trainer, "shared.target_2_found"),
                    cost = get(made.trainer, "shared.target_2_cost"),
                    input = get(made.trainer, "shared.target_2_input");
        CHECK(found.as.boolean);
        CHECK(cost.as.number < 0.06 && cost.as.number > 0);
        CHECK_INT(sgm_tensor_shape(input.as.tensor)->rank, 1);
        sgm_shape shape = sgm_shape_of(1, 6);
        sgm_tensor *example = sgm_tensor_reshape(input.as.tensor, &shape);
        sgm_tensor *output = sgm_trainer_predict(made.trainer, example, NULL);
        CHECK_OK(output);
        CHECK_NEAR(-log(sgm_tensor_get(output, (const int64_t[]){0, 2})), cost.as.number, 1e-3);
        CHECK(strstr(said, "shared.target_2_input\n") == said);
        CHECK_INT(strlen(said), strlen("shared.target_2_input\n") + 12 + 1);
        sgm_tensor_free(output);
        sgm_tensor_free(example);
        sgm_content_clear(&input);
        free_wave_trainer(made);
    }
    CHECK_ERROR(sgm_target_maximiser(-1, sgm_every(1, SGM_EPOCH)), "class from 0");
}

TEST(looking_for_an_input_changes_no_training)
{
    wave_trainer looking = make_wave_trainer((wave_options){.shuffle = true});
    wave_trainer plain = make_wave_trainer((wave_options){.shuffle = true});
    CHECK_OK(sgm_trainer_add_hook(looking.trainer,
                                  sgm_target_maximiser(0, sgm_every(3, SGM_ITERATION), .steps = 5)));
    CHECK_OK(sgm_trainer_run(looking.trainer, .iterations = 10));
    CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 10));
    sgm_tensor *a = sgm_trainer_get(looking.trainer, "1-dense.weights");
    sgm_tensor *b = sgm_trainer_get(plain.trainer, "1-dense.weights");
    CHECK(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), 48 * sizeof(float)) == 0);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    free_wave_trainer(looking);
    free_wave_trainer(plain);
}

TEST(tensors_as_pictures)
{
    const float values[6] = {0, 1, 2, 3, 4, 9};
    sgm_shape shape = sgm_shape_of(2, 3);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
    char *art = sgm_tensor_art(tensor);
    CHECK_STR(art, "  ..::\n--==@@\n");
    sgm_string_free(art);
    sgm_tensor_free(tensor);
    shape = sgm_shape_of(1, 1, 1, 1);
    tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_ERROR(sgm_tensor_art(tensor), "rank 1 to 3");
    sgm_tensor_free(tensor);
}

typedef struct received {
    pthread_mutex_t lock;
    int64_t iteration;
    double values[6];
} received;

static void receive(void *user, int64_t iteration, sgm_tensor *output)
{
    received *to = user;
    pthread_mutex_lock(&to->lock);
    to->iteration = iteration;
    CHECK_OK(sgm_tensor_read(output, to->values, 6));
    pthread_mutex_unlock(&to->lock);
}

/* The last pass is of the parameters that are there at the end. */
TEST(a_pass_runs_beside_the_training)
{
    received got = {.lock = PTHREAD_MUTEX_INITIALIZER};
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_block *block = sgm_block_create(2);
    sgm_tensor *inputs = wave(2, 6, 0.7, 1, SGM_FLOAT32);
    CHECK_OK(sgm_block_add(block, "inputs", sgm_tensor_retain(inputs)));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_network_pass_hook(WAVE_NETWORK, block, receive, &got, sgm_every(1, SGM_STOP))));
    sgm_block_free(block);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 7));
    CHECK_INT(got.iteration, 7);
    sgm_tensor *wanted = sgm_trainer_predict(made.trainer, inputs, NULL);
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(got.values[i], sgm_tensor_get(wanted, (const int64_t[]){i / 3, i % 3}), 1e-5);
    sgm_tensor_free(wanted);
    sgm_tensor_free(inputs);
    free_wave_trainer(made);
}
