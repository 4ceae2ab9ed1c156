/* Data that are numbers of something: what is no whole number, or none that there is, stops the run with the
 * name of the input, the place and the layer. */
#include "train/train.h"
#include "waves.h"

#include <math.h>

#define EXAMPLES 6

static sgm_tensor *tensor(const sgm_shape *shape, const double *values)
{
    sgm_tensor *made = sgm_tensor_create(SGM_FLOAT32, shape);
    CHECK_OK(made);
    CHECK_OK(sgm_tensor_write(made, values, (size_t)sgm_shape_elements(shape)));
    return made;
}

/* Six examples of tokens (3), lengths and targets (3, or `target_size` numbers), all of which are good. */
typedef struct problem {
    const char *network;
    double tokens[EXAMPLES * 3], lengths[EXAMPLES], targets[EXAMPLES * 3];
    int64_t target_size; /* 0: one number for each example */
    sgm_dtype precision;
    bool workers;
} problem;

static problem good(const char *network, int64_t target_size)
{
    problem p = {.network = network, .target_size = target_size};
    for (int i = 0; i < EXAMPLES * 3; i++) {
        p.tokens[i] = i % 4;
        p.targets[i] = i % 2;
    }
    for (int i = 0; i < EXAMPLES; i++)
        p.lengths[i] = 2 + i % 2;
    return p;
}

static sgm_dataset *dataset_of(const problem *p)
{
    static const char *const fields[] = {"inputs", "lengths", "targets"};
    sgm_shape tokens = sgm_shape_of(EXAMPLES, 3), one = sgm_shape_of(EXAMPLES),
              targets = sgm_shape_of(EXAMPLES, p->target_size);
    sgm_tensor *tensors[] = {tensor(&tokens, p->tokens), tensor(&one, p->lengths),
                             tensor(p->target_size > 0 ? &targets : &one, p->targets)};
    sgm_dataset *dataset = sgm_dataset_create_from("numbers", fields, tensors, 3);
    for (int i = 0; i < 3; i++)
        sgm_tensor_free(tensors[i]);
    CHECK_OK(dataset);
    return dataset;
}

/* `message` NULL: it is trained. */
static void check(const problem *p, const char *message)
{
    static const char *const handlers[] = {"reference", "cpu"};
    for (int i = 0; i < 2; i++) {
        wave_trainer made = {.handler = sgm_handler_create_with(handlers[i], NULL)};
        sgm__trainer_settings settings = {.seed = 5, .handler = made.handler, .precision = p->precision};
        made.trainer = sgm__trainer_create("numbers", &settings);
        sgm_dataset *dataset = dataset_of(p);
        CHECK_OK(sgm_trainer_set_network(made.trainer, p->network));
        CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 3, .no_shuffle = true)));
        sgm_dataset_free(dataset);
        CHECK_OK(sgm_trainer_set_optimiser(made.trainer, sgm_gradient_descent()));
        if (p->workers)
            CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
        if (message != NULL)
            CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1), message);
        else
            CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
        free_wave_trainer(made);
    }
}

#define TOKENS "input(3) + embedding(4, 2, name=words) + dense(2) + softmax_cross_entropy(classes)"

TEST(tokens)
{
    problem p = good(TOKENS, 0);
    check(&p, NULL);
    p.tokens[11] = 2.5;
    check(&p,
          "dataset \"numbers\", example 3 (from 0): input 'inputs' at [0, 2]: 2.5 is no whole number: layer "
          "'words' takes whole numbers from 0 to 3");
    p.workers = true;
    check(&p, "dataset \"numbers\", example 3 (from 0): worker 0: input 'inputs' at [0, 2]: 2.5 is no whole "
              "number: layer 'words'");
    p.tokens[11] = 3;
    p.tokens[15] = 7;
    check(&p,
          "dataset \"numbers\", example 5 (from 0): worker 1: input 'inputs' at [1, 0]: 7 is out of range");
    p.tokens[15] = 3;
    p.workers = false;
    p.precision = SGM_FLOAT64;
    p.tokens[11] = 4;
    check(&p, "input 'inputs' at [0, 2]: 4 is out of range: layer 'words' takes whole numbers from 0 to 3");
    p.precision = SGM_BFLOAT16;
    p.tokens[11] = -1;
    check(&p, "-1 is out of range");
    p.tokens[11] = NAN;
    check(&p, "nan is out of range");
    p.tokens[11] = INFINITY;
    check(&p, "inf is out of range");
}

TEST(classes)
{
    problem p = good(TOKENS, 0);
    p.targets[4] = 0.25;
    check(&p, "input 'targets' at [1]: 0.25 is no whole number: layer '3-softmax_cross_entropy' takes whole "
              "numbers from 0 to 1");
    p.targets[4] = 2;
    check(&p, "input 'targets' at [1]: 2 is out of range");
    p.targets[4] = -1;
    check(&p,
          "input 'targets' at [1]: -1 is out of range: layer '3-softmax_cross_entropy' takes whole numbers "
          "from 0 to 1; with ignore_negative it leaves negative ones out");
    p = good(
        "input(3) + embedding(4, 2) + dense(2, time_distributed) + negative_log_likelihood(targets=targets)",
        3);
    p.targets[3] = 0.75;
    check(&p, "input 'targets' at [1, 0]: 0.75 is no whole number");
}

TEST(classes_that_are_compared)
{
    problem p = good("input(3) + embedding(4, 2) + flatten + dense(2) + triplet", 0);
    check(&p, NULL);
    p.targets[4] = 0.5;
    check(&p, "input 'targets' at [1]: 0.5 is no whole number: layer '4-triplet'");
}

/* Behind an example's last step there may be anything, as long as it is a token. */
TEST(lengths_and_classes_of_steps)
{
    problem p = good(
        "input(3, lengths=lengths) + embedding(4, 2) + dense(2, time_distributed) + softmax_cross_entropy",
        3);
    p.targets[2] = 7.5;
    check(&p, NULL);
    p.targets[1] = 0.5;
    check(&p, "the number of a class is no whole number; there are 2 classes");
    p.targets[1] = -1;
    check(&p,
          "layer 3-softmax_cross_entropy: class -1 is out of range: there are 2 classes, numbered from 0; "
          "softmax_cross_entropy(ignore_negative) leaves negative ones out");
    p.network = "input(3, lengths=lengths) + embedding(4, 2) + dense(2, time_distributed) + "
                "softmax_cross_entropy(ignore_negative)";
    check(&p, NULL);
    p.targets[1] = 1;
    p.lengths[0] = 2.5;
    check(&p,
          "input 'lengths' at [0]: 2.5 is no whole number: layer '0-input' takes whole numbers from 0 to 3");
    p.lengths[0] = 4;
    check(&p, "input 'lengths' at [0]: 4 is out of range");
}

TEST(labels_without_times)
{
    problem p = good("input(3) + embedding(4, 2) + dense(3, time_distributed) + ctc(1)", 1);
    for (int i = 0; i < EXAMPLES; i++)
        p.targets[i] = 1;
    check(&p, NULL);
    p.targets[1] = 1.5;
    check(&p, "layer 3-ctc: label 0 of example 1 is no whole number");
    p.targets[1] = 1;
    p.targets[4] = 1.5;
    check(&p, "dataset \"numbers\", example 4 (from 0): instruction");
}

TEST(questions_are_checked_too)
{
    problem p = good(TOKENS, 0);
    sgm_shape shape = sgm_shape_of(1, 3);
    wave_trainer made = {.handler = sgm_handler_create("cpu")};
    sgm__trainer_settings settings = {.seed = 5, .handler = made.handler, .precision = SGM_FLOAT32};
    made.trainer = sgm__trainer_create("numbers", &settings);
    CHECK_OK(sgm_trainer_set_network(made.trainer, p.network));
    sgm_tensor *question = tensor(&shape, (const double[]){0, 1, 1.5});
    CHECK_ERROR(sgm_trainer_predict(made.trainer, question, NULL),
                "input 'inputs' at [0, 2]: 1.5 is no whole number");
    sgm_tensor_set(question, (const int64_t[]){0, 2}, 3);
    sgm_tensor *output = sgm_trainer_predict(made.trainer, question, NULL);
    CHECK_OK(output);
    sgm_tensor_free(output);
    sgm_tensor_free(question);
    free_wave_trainer(made);
}
