/* Data whose examples do not fit the network: which layer wants them otherwise, and what would fit. */
#include "train/train.h"
#include "waves.h"

#define EXAMPLES 6

/* Examples of `inputs` and `targets` numbers; 0: one number without a dimension. */
static sgm_dataset *dataset_of(int64_t inputs, int64_t targets)
{
    static const char *const fields[] = {"inputs", "targets"};
    const int64_t widths[] = {inputs, targets};
    sgm_tensor *tensors[2];
    for (int i = 0; i < 2; i++) {
        sgm_shape one = sgm_shape_of(EXAMPLES), wide = sgm_shape_of(EXAMPLES, widths[i]);
        tensors[i] = sgm_tensor_create(SGM_FLOAT32, widths[i] > 0 ? &wide : &one);
        CHECK_OK(tensors[i]);
    }
    sgm_dataset *dataset = sgm_dataset_create_from("numbers", fields, tensors, 2);
    CHECK_OK(dataset);
    for (int i = 0; i < 2; i++)
        sgm_tensor_free(tensors[i]);
    return dataset;
}

static wave_trainer trainer_of(const char *network, bool workers)
{
    wave_trainer made = {.handler = sgm_handler_create("cpu", .threads = 1)};
    sgm__trainer_settings settings = {.seed = 5, .handler = made.handler, .precision = SGM_FLOAT32};
    made.trainer = sgm__trainer_create("shape mismatch", &settings);
    CHECK_OK(sgm_trainer_set_network(made.trainer, network));
    CHECK_OK(sgm_trainer_set_optimiser(made.trainer, sgm_gradient_descent()));
    if (workers)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    return made;
}

/* `message` NULL: it is trained. */
static void check(const char *network, int64_t inputs, int64_t targets, const char *message)
{
    for (int workers = 0; workers < 2; workers++) {
        wave_trainer made = trainer_of(network, workers != 0);
        sgm_dataset *dataset = dataset_of(inputs, targets);
        CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 3)));
        sgm_dataset_free(dataset);
        if (message != NULL)
            CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1), message);
        else
            CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
        free_wave_trainer(made);
    }
}

TEST(targets_of_numbers)
{
    check("input(4) + dense(3) + mean_squared", 4, 3, NULL);
    check("input(1) + dense(1) + mean_squared", 0, 0, NULL);
    check("input(2) + dense(1) + mean_squared", 0, 1,
          "field 'inputs' has examples of the shape (), layer '0-input' wants (2,): let it have the shape "
          "(1,), "
          "or take other columns");
    check("input(4) + dense(3, name=last) + mean_squared", 4, 2,
          "field 'targets' has examples of the shape (2,), layer '2-mean_squared' wants (3,): it compares "
          "them "
          "with what 'last' gives; let that give (2,), or take other columns of the data");
    check("input(4) + dense(2) + hinge", 4, 0,
          "field 'targets' has examples of the shape (), layer '2-hinge' wants (2,): it compares them with "
          "what "
          "'1-dense' gives; let that give one number");
}

TEST(targets_of_classes)
{
    static const char numbers[] =
        ": numbers of classes fit softmax_cross_entropy(classes), or become one-hot";
    check("input(4) + dense(3) + softmax_cross_entropy", 4, 1, numbers);
    check("input(4) + dense(3) + softmax_cross_entropy", 4, 0, numbers);
    check("input(4) + dense(3) + softmax_cross_entropy", 4, 2,
          "layer '2-softmax_cross_entropy' wants (3,): it compares them with what '1-dense' gives");
    check(
        "input(4) + dense(3) + softmax_cross_entropy(classes)", 4, 3,
        "has examples of the shape (3,), layer '2-softmax_cross_entropy' wants one number: a share for each "
        "class fits softmax_cross_entropy(shares)");
    check("input(4) + embedding(5, 2) + dense(3, time_distributed) + negative_log_likelihood", 4, 3,
          "wants (4,): a number of a class for each place of what '2-dense' gives");
}

TEST(targets_of_other_costs)
{
    wave_trainer made = trainer_of("input(4) + embedding(5, 2) + dense(3, time_distributed) + ctc(2)", false);
    sgm_dataset *dataset = dataset_of(4, 3);
    CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 3)));
    sgm_dataset_free(dataset);
    CHECK_INT(sgm_trainer_run(made.trainer, .epochs = 1), SGM_ERROR_SHAPE);
    CHECK_STR(sgm_last_error(),
              "trainer 'shape mismatch': field 'targets' has examples of the shape (3,), layer '3-ctc' "
              "wants (2,)");
    free_wave_trainer(made);
}

TEST(inputs)
{
    check("input(4) + dense(3) + mean_squared", 5, 3,
          "field 'inputs' has examples of the shape (5,), layer '0-input' wants (4,): let it have the shape "
          "(5,), or take other columns of the data");
    check("input(4, lengths=targets) + embedding(5, 2) + dense(5, time_distributed) + "
          "softmax_cross_entropy(targets=inputs)",
          4, 2, "field 'targets' has examples of the shape (2,), layer '0-input' wants one number");
}

TEST(predicted_inputs)
{
    wave_trainer made = trainer_of("input(4) + dense(3) + mean_squared", false);
    sgm_shape shape = sgm_shape_of(2, 7);
    sgm_tensor *examples = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_ERROR(sgm_trainer_predict(made.trainer, examples, NULL),
                "field 'inputs' has examples of the shape (7,), layer '0-input' wants (4,)");
    sgm_tensor_free(examples);
    free_wave_trainer(made);
}

/* A pass that fails goes back as one that ends does. */
TEST(a_failed_evaluation_leaves_the_iterator_where_it_was)
{
    wave_trainer made = trainer_of("input(4) + dense(3) + mean_squared", false);
    sgm_dataset *dataset = dataset_of(5, 3);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 1);
    const sgm_block *block;
    sgm_iterator_state state;
    sgm_metrics metrics;
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_iterator_next(iterator, &block));
    CHECK_ERROR(sgm_trainer_evaluate(made.trainer, iterator, &metrics), "field 'inputs' has examples of");
    sgm_iterator_get_state(iterator, &state);
    CHECK_INT(state.epoch, 0);
    CHECK_INT(state.batches, 2);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    free_wave_trainer(made);
}
