/* Embeddings whose unused rows stay as they are: against PyTorch's sparse optimisers (used_rows_torch.py),
 * and with all of ours. */
#include "train/train.h"
#include "used_rows_torch.h"
#include "waves.h"

#define WORDS 40
#define SIZE 3
#define EXAMPLES 24
#define STEPS 4

static const sgm_dtype types[] = {SGM_FLOAT64, SGM_FLOAT64, SGM_FLOAT32};
static const char *const handlers[] = {"reference", "cpu", "cpu"};
static const double tolerances[] = {1e-10, 1e-10, 1e-5};

/* The same formula as in used_rows_torch.py. */
static sgm_tensor *numbers(sgm_dtype dtype, const sgm_shape *shape, int64_t which)
{
    double values[WORDS * SIZE];
    int64_t count = sgm_shape_elements(shape);
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)((i * 7919 + which * 104729 + 13) % 2003) / 1000 - 1;
    sgm_tensor *tensor = sgm_tensor_create(dtype, shape);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)count));
    return tensor;
}

/* Words 0 to `words` - 1 */
static sgm_dataset *texts(int64_t words)
{
    static const char *const fields[] = {"inputs", "targets"};
    double values[EXAMPLES * STEPS];
    for (int64_t i = 0; i < EXAMPLES * STEPS; i++)
        values[i] = (double)((i * 7919 + 13) % 2003 % words);
    sgm_shape shape = sgm_shape_of(EXAMPLES, STEPS), target = sgm_shape_of(EXAMPLES, 2);
    sgm_tensor *tensors[] = {sgm_tensor_create(SGM_FLOAT32, &shape), numbers(SGM_FLOAT32, &target, 5)};
    CHECK_OK(sgm_tensor_write(tensors[0], values, EXAMPLES * STEPS));
    sgm_dataset *dataset = sgm_dataset_create_from("texts", fields, tensors, 2);
    CHECK_OK(dataset);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return dataset;
}

static wave_trainer make(const char *handler, sgm_dtype precision, sgm_optimiser *optimiser, int64_t words)
{
    wave_trainer made = {.handler = sgm_handler_create_with(handler, NULL)};
    sgm__trainer_settings settings = {.seed = 7, .handler = made.handler, .precision = precision};
    made.trainer = sgm__trainer_create("words", &settings);
    CHECK_OK(sgm_trainer_set_network(made.trainer,
                                     "input(4) + embedding(40, 3, sparse) + dense(2) + mean_squared"));
    sgm_dataset *dataset = texts(words);
    CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 4, .no_shuffle = true)));
    sgm_dataset_free(dataset);
    CHECK_OK(sgm_trainer_set_optimiser(made.trainer, optimiser));
    sgm_shape shapes[] = {sgm_shape_of(WORDS, SIZE), sgm_shape_of(SIZE * STEPS, 2)};
    static const char *const names[] = {"1-embedding.weights", "2-dense.weights"};
    for (int i = 0; i < 2; i++) {
        sgm_tensor *values = numbers(precision, &shapes[i], i);
        CHECK_OK(sgm_trainer_set(made.trainer, names[i], values));
        sgm_tensor_free(values);
    }
    return made;
}

static void read(const wave_trainer *made, const char *state, double *values)
{
    sgm_tensor *now = sgm_trainer_get(made->trainer, state);
    CHECK_OK(now);
    CHECK_OK(sgm_tensor_read(now, values, WORDS * SIZE));
    sgm_tensor_free(now);
}

static void check(size_t way, sgm_optimiser *optimiser, const double *expected)
{
    double values[WORDS * SIZE];
    wave_trainer made = make(handlers[way], types[way], optimiser, WORDS);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    read(&made, "1-embedding.weights", values);
    for (int i = 0; i < WORDS * SIZE; i++)
        if (!test_near(values[i], expected[i], tolerances[way]))
            TEST_FAIL("element %d is %.17g, expected %.17g", i, values[i], expected[i]);
    free_wave_trainer(made);
}

TEST(rows_are_updated_as_by_pytorchs_sparse_optimisers)
{
    for (size_t way = 0; way < 3; way++) {
        check(way, sgm_gradient_descent(.learning_rate = 0.1), torch_sparse_sgd);
        check(way, sgm_adam(.learning_rate = 0.02, .epsilon = 1e-20), torch_sparse_adam);
    }
}

/* The words from 30 on are in no minibatch, and what is before them is not in all: what an optimiser
 * remembers of these goes on where it was. */
static void check_unused(const char *type, const char *slot)
{
    double values[WORDS * SIZE], before[WORDS * SIZE];
    sgm_optimiser *optimiser = sgm_optimiser_create(type, NULL);
    wave_trainer made = make("cpu", SGM_FLOAT32, optimiser, 30);
    read(&made, "1-embedding.weights", before);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    read(&made, "1-embedding.weights", values);
    bool moved = false;
    for (int i = 0; i < WORDS * SIZE; i++) {
        if (i >= 30 * SIZE)
            CHECK_NEAR(values[i], before[i], 0);
        moved |= values[i] != before[i];
    }
    CHECK(moved);
    if (slot != NULL) {
        char state[64];
        snprintf(state, sizeof state, "optimiser.%s.1-embedding.weights", slot);
        read(&made, state, before);
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 7));
        read(&made, state, values);
        static const int first_batch =
            16; /* tokens of the examples of the seventh minibatch, which is the first */
        for (int64_t word = 0; word < WORDS; word++) {
            bool used = false;
            for (int64_t i = 0; i < first_batch; i++)
                used |= (i * 7919 + 13) % 2003 % 30 == word;
            for (int k = 0; k < SIZE; k++)
                CHECK((values[word * SIZE + k] != before[word * SIZE + k]) == used);
        }
    }
    free_wave_trainer(made);
}

TEST(unused_rows_stay_whatever_the_optimiser)
{
    static const struct {
        const char *type, *slot;
    } all[] = {{"gradient_descent", NULL},
               {"momentum", "momentum"},
               {"nesterov", "momentum"},
               {"adagrad", "squared_gradient"},
               {"adadelta", "squared_update"},
               {"rmsprop", "squared_gradient"},
               {"adam", "momentum"},
               {"adamw", "squared_gradient"},
               {"lion", "momentum"},
               {"lamb", "momentum"},
               {"adafactor", NULL},
               {"muon", "momentum"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_unused(all[i].type, all[i].slot);
}

TEST(workers_whose_gradients_are_merged_leave_unused_rows)
{
    double values[WORDS * SIZE];
    wave_trainer made = make("cpu", SGM_FLOAT64, sgm_adam(.learning_rate = 0.02, .epsilon = 1e-20), WORDS);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    read(&made, "1-embedding.weights", values);
    for (int i = 0; i < WORDS * SIZE; i++)
        CHECK_NEAR(values[i], torch_sparse_adam[i], 1e-10);
    free_wave_trainer(made);
}

TEST(steps_of_all_parameters_together_have_no_unused_rows)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = "input(6) + embedding(9, 3, sparse) + dense(3) + softmax_cross_entropy",
                       .optimiser = sgm_lbfgs()});
    CHECK_ERROR(sgm_trainer_prepare(made.trainer), "'1-embedding.weights' is sparse");
    free_wave_trainer(made);
}
