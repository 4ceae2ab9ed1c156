/* The environment: ownership, the first failure, running. */
#include "test.h"

#include <sigma/sigma.h>

static sgm_dataset *line(void)
{
    static const char *const fields[] = {"inputs", "targets"};
    static const float x[] = {0, 1, 2, 3}, y[] = {1, 3, 5, 7};
    sgm_shape shape = sgm_shape_of(4, 1);
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &shape, x),
                             sgm_tensor_create_from(SGM_FLOAT32, &shape, y)};
    sgm_dataset *dataset = sgm_dataset_create_from("line", fields, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return dataset;
}

/* A trainer that can run; NULL when something failed. */
static sgm_trainer *good_trainer(sgm_env *env, const char *name)
{
    sgm_dataset *dataset = line();
    sgm_trainer *trainer = sgm_trainer_create(env, name);
    sgm_trainer_set_network(trainer, "input(1) + dense(1) + mean_squared");
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 4));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.1));
    sgm_dataset_free(dataset);
    return sgm_trainer_status(trainer) == SGM_OK ? trainer : NULL;
}

TEST(options_are_checked)
{
    CHECK_ERROR(sgm_env_create(""), "a name");
    CHECK_ERROR(sgm_env_create(NULL), "a name");
    CHECK_ERROR(sgm_env_create("e", .threads = -1), "e: threads: expected an integer from 1 to 1024, got -1");
    CHECK_ERROR(sgm_env_create("e", .precision = SGM_INT32),
                "expected float32, float64 or bfloat16, got int32");
    sgm_env_free(NULL);
}

TEST(an_unknown_handler_is_named_at_once)
{
    static const struct {
        const char *handler, *error;
    } cases[] = {
        {"cppu", "e: there is no handler 'cppu' (did you mean 'cpu'?)"},
        {"zzzz",
         "e: there is no handler 'zzzz'; there are cpu, reference, opencl, cuda, null, and debug:NAME"},
        {"gpu(device=1)", "e: there is no handler 'gpu(device=1)' (did you mean 'opencl' or 'cuda'?)"},
        {"debug:gpu", "e: there is no handler 'gpu' (did you mean 'opencl' or 'cuda'?)"},
        {"debug", "e: handler 'debug' watches another"},
        {"debug:refrence", "e: there is no handler 'refrence'"},
        {"debug:debug:cpu", "e: there is no handler 'debug:debug:cpu'"},
        {"reference(dense=own)", "e: handler 'reference(dense=own)': only cpu, opencl and cuda have options"},
        {"cpu(dens=own)", "there is no option 'dens'"},
        {"cpu(dense=own", "expected ')' at the end"},
        {"cpu(instructions=avx9)", "e: handler 'cpu(instructions=avx9)': "},
        {"debug:cpu(dense=fast)", "e: handler 'cpu(dense=fast)': "}};
    static const char *const good[] = {"cpu", "reference", "null", "debug:reference", "cpu(dense=own)"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_ERROR(sgm_env_create("e", .handler = cases[i].handler), cases[i].error);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        sgm_env *env = sgm_env_create("e", .handler = good[i]);
        CHECK_OK(env);
        CHECK_OK(sgm_env_handler(env));
        sgm_env_free(env);
    }
}

TEST(the_first_failure_stays)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = sgm_trainer_create(env, "a");
    sgm_trainer_set_network(trainer, "input(1) + desne(1) + mean_squared");
    sgm_trainer_set_optimiser(trainer, SGM_OPTIMISER("admm", .momentum = 0));
    CHECK_STR(sgm_env_error(env),
              "e: trainer 'a': network: column 12: unknown layer 'desne' (did you mean 'dense'?)");
    CHECK(sgm_env_status(env) == SGM_ERROR_NOT_FOUND || sgm_env_status(env) == SGM_ERROR_FORMAT ||
          sgm_env_status(env) == SGM_ERROR_ARGUMENT);
    CHECK_ERROR(sgm_env_run(env, .epochs = 1), "e: trainer 'a': network: column 12");
    CHECK_STR(sgm_env_error(env),
              "e: trainer 'a': network: column 12: unknown layer 'desne' (did you mean 'dense'?)");
    CHECK_ERROR(sgm_env_run(env, .epochs = 1), "column 12");
    CHECK(sgm_trainer_create(env, "b") == NULL);
    sgm_env_free(env);
}

TEST(names_of_trainers_differ)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    CHECK_OK(sgm_trainer_create(env, "a"));
    CHECK_ERROR(sgm_trainer_create(env, "a"), "there is a trainer 'a' already");
    sgm_env_free(env);
    env = sgm_env_create("e", .handler = "reference");
    CHECK_OK(sgm_trainer_create(env, "a.b"));
    CHECK_ERROR(sgm_trainer_create(env, "a_b"), "the trainers 'a.b' and 'a_b' would both be 'a_b' in "
                                                "identifiers; choose another name");
    CHECK(sgm_registry_has(sgm_env_registry(env), "a_b"));
    sgm_env_free(env);
    CHECK_ERROR(sgm_trainer_create(NULL, "a"), "an environment");
    env = sgm_env_create("e", .handler = "reference");
    CHECK_ERROR(sgm_trainer_create(env, "../a"), "must not begin with '.' and have no '/'");
    sgm_env_free(env);
}

TEST(nothing_to_run)
{
    sgm_env *env = sgm_env_create("e");
    CHECK_ERROR(sgm_env_run(env, .epochs = 1), "e: there is no trainer");
    sgm_env_free(env);
    CHECK_ERROR(sgm_env_run(NULL, .epochs = 1), "an environment");
}

/* A program that looks at the end only sees why there was no environment. */
TEST(what_went_wrong_first_is_told_by_what_lacks_it)
{
    sgm_env *env = sgm_env_create("e", .handler = "cpuu");
    CHECK(env == NULL);
    sgm_trainer *trainer = sgm_trainer_create(env, "a");
    sgm_dataset * xor = sgm_dataset_open("xor");
    CHECK(xor != NULL);
    sgm_trainer_set_network(trainer, "input(2) + dense(2) + softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(xor, .size = 4));
    sgm_env_add_monitor(env, sgm_terminal_monitor());
    CHECK(sgm_env_run(env, .epochs = 1) != SGM_OK);
    CHECK(strstr(sgm_last_error(), "there is no handler 'cpuu'") != NULL);
    sgm_dataset_free(xor);
    sgm_clear_error();
}

TEST(a_missing_monitor_is_a_failure)
{
    sgm_env *env = sgm_env_create("e");
    CHECK_ERROR(sgm_env_add_monitor(env, NULL), "monitor");
    CHECK(sgm_env_status(env) != SGM_OK);
    sgm_env_free(env);
}

TEST(all_trainers_run)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference", .precision = SGM_FLOAT64, .seed = 5);
    sgm_trainer *first = good_trainer(env, "first"), *second = good_trainer(env, "second");
    CHECK_OK(first);
    CHECK_OK(second);
    CHECK_OK(sgm_env_run(env, .epochs = 300));
    sgm_trainer *trainers[] = {first, second};
    for (int i = 0; i < 2; i++) {
        sgm_tensor *weights = sgm_trainer_get(trainers[i], "1-dense.weights");
        sgm_tensor *biases = sgm_trainer_get(trainers[i], "1-dense.biases");
        CHECK_OK(weights);
        CHECK_OK(biases);
        CHECK_INT(sgm_tensor_dtype(weights), SGM_FLOAT64);
        /* y = 2 x + 1 */
        CHECK_NEAR(sgm_tensor_get(weights, (const int64_t[]){0, 0}), 2, 1e-6);
        CHECK_NEAR(sgm_tensor_get(biases, (const int64_t[]){0}), 1, 1e-6);
        sgm_tensor_free(weights);
        sgm_tensor_free(biases);
    }
    CHECK_STR(sgm_handler_name(sgm_env_handler(env)), "reference");
    CHECK_OK(sgm_env_status(env));
    sgm_env_free(env);
}

static bool stop_at_third(void *user, const sgm_training_progress *progress)
{
    (void)user;
    return progress->iteration < 3;
}

TEST(an_interruption_is_no_failure)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = good_trainer(env, "t");
    CHECK_OK(sgm_trainer_on_progress(trainer, stop_at_third, NULL));
    CHECK_INT(sgm_env_run(env, .epochs = 10), SGM_ERROR_INTERRUPTED);
    CHECK_OK(sgm_env_status(env));
    CHECK_STR(sgm_env_error(env), "");
    sgm_env_free(env);
}

TEST(trainers_are_in_the_registry)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    good_trainer(env, "first.try");
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_set(sgm_env_registry(env), "*<trainer>.optimiser.learning_rate",
                                      sgm_number_content(0.25), NULL, NULL));
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(env), "first_try.optimiser.learning_rate", &content));
    CHECK_NEAR(content.as.number, 0.25, 0);
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(env), "first_try.epoch", &content));
    CHECK_INT(content.as.integer, 1);
    sgm_env_free(env);
}
