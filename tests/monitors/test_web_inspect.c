/* What the web monitor tells of a network: compared with what was computed by hand. */
#include "environment/environment_test.h"
#include "monitors/web_client.h"

static web_client serve(sgm_env *env)
{
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    CHECK_OK(sgm_env_add_monitor(env, monitor));
    CHECK_OK(sgm_env_prepare(env));
    return web_client_of(sgm_web_monitor_url(monitor));
}

static void check_refused(web_client *client, const char *path, int code, const char *error)
{
    json_t *answer = web_get(client, path);
    CHECK_INT(client->code, code);
    if (strstr(web_string(answer, "error"), error) == NULL)
        TEST_FAIL("%s: '%s' is not in '%s'", path, error, web_string(answer, "error"));
    json_decref(answer);
}

static void check_list(const json_t *list, size_t count, const double *wanted)
{
    CHECK_INT(json_array_size(list), count);
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(json_number_value(json_array_get(list, i)), wanted[i], 1e-6);
}
#define CHECK_LIST(json, path, ...)                                                                          \
    check_list(web_at(json, path), sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__})

/* --- the network --- */

TEST(layers_have_shapes_parameters_and_inputs)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    web_client client = serve(env);
    sgm_trainer *trainer = sgm_trainer_create(env, "a");
    CHECK_OK(sgm_trainer_set_network(
        trainer, "input(1, 6, 6) + convolution(2, 3, 3, activation=tanh) + batch_norm + activation(relu) + "
                 "add(identity, activation(tanh)) + dense(5) + softmax_cross_entropy"));
    json_t *network = web_get(&client, "/api/network");
    CHECK_INT(client.code, 200);
    CHECK_INT(json_array_size(web_at(network, "layers")), 9);
    CHECK_STR(web_string(network, "layers/0/type"), "input");
    CHECK_STR(web_string(network, "layers/0/arguments"), "1, 6, 6");
    CHECK_INT(json_array_size(web_at(network, "layers/0/inputs")), 0);
    CHECK_LIST(network, "layers/0/shape", 1, 6, 6);
    CHECK_STR(web_string(network, "layers/1/name"), "1-convolution");
    CHECK_STR(web_string(network, "layers/1/arguments"), "size=2, kernel=(3, 3), activation=tanh");
    CHECK_STR(web_string(network, "layers/1/inputs/0"), web_string(network, "layers/0/name"));
    CHECK_LIST(network, "layers/1/shape", 2, 4, 4);
    CHECK_NEAR(web_number(network, "layers/1/parameters"), 2 * 9 + 2, 0);
    CHECK_NEAR(web_number(network, "layers/1/bytes"), 80, 0);
    CHECK_NEAR(web_number(network, "layers/1/activation"), 128, 0);
    CHECK_STR(web_string(network, "layers/1/tensors/0/identifier"), "network.layers.1-convolution.weights");
    CHECK_LIST(network, "layers/1/tensors/0/shape", 2, 1, 3, 3);
    CHECK_NEAR(web_number(network, "layers/2/parameters"), 4, 0); /* two more tensors are not trained */
    CHECK_NEAR(web_number(network, "layers/2/bytes"), 32, 0);
    CHECK_NEAR(web_number(network, "parameters"), 20 + 4 + 165, 0);
    CHECK(json_is_true(web_at(network, "layers/8/cost")));
    CHECK(strncmp(web_string(network, "notation"), "input(1, 6, 6) + ", 17) == 0);
    json_decref(network);
    sgm_env_free(env);
}

static void check_times(const json_t *network)
{
    double sum = web_number(network, "time/other/milliseconds"),
           share = web_number(network, "time/other/share");
    for (size_t i = 0; i < json_array_size(web_at(network, "layers")); i++) {
        char path[64];
        snprintf(path, sizeof path, "layers/%zu/milliseconds", i);
        sum += web_number(network, path);
        snprintf(path, sizeof path, "layers/%zu/share", i);
        share += web_number(network, path);
    }
    CHECK(web_number(network, "time/milliseconds") > 0);
    CHECK_NEAR(sum / web_number(network, "time/milliseconds"), 1, 1e-6);
    CHECK_NEAR(share, 1, 1e-6);
    CHECK(web_number(network, "layers/1/update") > 0);
    CHECK_NEAR(web_number(network, "layers/1/forward") + web_number(network, "layers/1/backward") +
                   web_number(network, "layers/1/update"),
               web_number(network, "layers/1/milliseconds"), 1e-6);
    CHECK_NEAR(web_number(network, "layers/0/milliseconds"), 0, 0);
}

TEST(layers_tell_how_long_they_take_when_asked)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    web_client client = serve(env);
    CHECK_OK(line_trainer(env, "a"));
    json_t *network = web_get(&client, "/api/network");
    CHECK(web_at(network, "time") == NULL && web_at(network, "layers/1/milliseconds") == NULL);
    json_decref(network);
    network = web_get(&client, "/api/network?time=1"); /* nothing has run */
    CHECK(json_is_null(web_at(network, "layers/1/milliseconds")));
    CHECK(json_is_null(web_at(network, "time/milliseconds")));
    json_decref(network);
    CHECK_OK(sgm_env_run(env, .epochs = 2));
    network = web_get(&client, "/api/network?trainer=a&time=1");
    check_times(network);
    json_decref(network);
    check_refused(&client, "/api/network?time=2", 400, "'time' must be a whole number from 0 to 1");
    sgm_env_free(env);
}

TEST(what_cannot_be_drawn_is_refused_by_name)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    web_client client = serve(env);
    sgm_trainer *empty = sgm_trainer_create(env, "a");
    check_refused(&client, "/api/network?trainer=a", 409, "trainer 'a' has no network yet");
    check_refused(&client, "/api/network?trainer=b", 404, "there is no trainer 'b'");
    json_t *answer = web_post(&client, "/api/maximise", "{\"trainer\":\"a\",\"class\":1}");
    CHECK_INT(client.code, 409);
    CHECK_STR(web_string(answer, "error"), "trainer 'a' has no network yet");
    json_decref(answer);
    json_decref(web_get(&client, "/api/tree?trainer=a")); /* the lock was given back */
    CHECK_INT(client.code, 200);
    sgm_trainer_set_network(empty, "input(1) + dense(1) + mean_squared");
    check_refused(&client, "/api/data?trainer=a", 409, "trainer 'a' has no data yet");
    CHECK_OK(sgm_trainer_status(empty));
    sgm_env_free(env);
}

/* --- histograms --- */

static void set(sgm_trainer *trainer, const char *state, int64_t rows, int64_t columns, const float *values)
{
    sgm_shape shape = sgm_shape_of(rows, columns);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
    CHECK_OK(sgm_trainer_set(trainer, state, tensor));
    sgm_tensor_free(tensor);
}

static sgm_trainer *spread_trainer(sgm_env *env)
{
    sgm_trainer *trainer = sgm_trainer_create(env, "a");
    sgm_dataset *dataset = line_dataset();
    sgm_trainer_set_network(trainer, "input(1) + dense(8) + dense(1) + mean_squared");
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 10));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.01));
    sgm_dataset_free(dataset);
    CHECK_OK(sgm_trainer_prepare(trainer));
    return trainer;
}

TEST(a_histogram_counts_numbers)
{
    static const float values[] = {0, 1, 1.5F, 2.5F, 3.99F, 4, 2, NAN};
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = spread_trainer(env);
    web_client client = serve(env);
    CHECK_OK(sgm_env_run(env, .iterations = 1)); /* parameters have names from the first run on */
    set(trainer, "1-dense.weights", 1, 8, values);
    json_t *found = web_get(&client, "/api/histogram?id=network.layers.1-dense.weights&bins=4");
    CHECK_STR(web_string(found, "error"), "(none)");
    CHECK_LIST(found, "bins", 1, 2, 2, 2);
    CHECK_NEAR(web_number(found, "minimum"), 0, 0);
    CHECK_NEAR(web_number(found, "maximum"), 4, 0);
    CHECK_NEAR(web_number(found, "count"), 7, 0);
    CHECK_NEAR(web_number(found, "others"), 1, 0);
    CHECK_NEAR(web_number(found, "mean"), 14.99 / 7, 1e-6);
    CHECK_NEAR(web_number(found, "standard_deviation"), 1.3794453, 1e-6);
    json_decref(found);
    check_refused(&client, "/api/histogram", 400, "expected the identifier of a tensor, as 'id'");
    check_refused(&client, "/api/histogram?id=optimiser.learning_rate", 400,
                  "optimiser.learning_rate is no tensor");
    check_refused(&client, "/api/histogram?id=network.layers.1-dense.weights&bins=0", 400,
                  "'bins' must be a whole number from 1 to 512");
    check_refused(&client, "/api/histogram?id=network.layers.9-dense.weights", 404, "9-dense");
    sgm_env_free(env);
}

/* Iterations of the columns go up, to `newest` in the end; the answer. */
static json_t *await_column(web_client *client, const char *path, double newest)
{
    double end = sgm__now() + 20;
    for (;;) {
        json_t *found = web_get(client, path);
        const json_t *history = web_at(found, "history");
        double last = -1;
        for (size_t i = 0; i < json_array_size(history); i++) {
            double iteration = web_number(json_array_get(history, i), "iteration");
            CHECK(iteration > last);
            last = iteration;
        }
        if (last == newest)
            return found;
        json_decref(found);
        if (sgm__now() > end)
            TEST_FAIL("%s has columns up to %g, not %g", path, last, newest);
        usleep(20000);
    }
}

TEST(what_is_watched_has_a_history)
{
    static const char watch[] = "{\"trainer\": \"a\", \"identifier\": \"optimiser.updates.2-dense.weights\"}";
    static const char path[] = "/api/histogram?trainer=a&id=optimiser.updates.2-dense.weights&history=1";
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = spread_trainer(env);
    web_client client = serve(env);
    CHECK_OK(sgm_env_run_background(env, .iterations = 1000000, .paused = true));
    while (sgm_trainer_get_state(trainer) != SGM_TRAINER_PAUSED)
        usleep(1000);
    json_decref(web_post(&client, "/api/histogram-watch", watch));
    CHECK_INT(client.code, 200);
    for (int i = 1; i <= 3; i++) {
        CHECK_OK(sgm_trainer_step(trainer, 2));
        json_decref(await_column(&client, path, 2 * i));
    }
    json_t *found = web_get(&client, path);
    json_t *now = web_get(&client, "/api/histogram?trainer=a&id=optimiser.updates.2-dense.weights");
    CHECK(json_is_true(web_at(found, "watched")));
    CHECK(json_array_size(web_at(found, "history")) >= 3);
    CHECK_NEAR(web_number(found, "minimum"), web_number(now, "minimum"), 1e-9);
    CHECK(json_equal(web_at(found, "bins"), web_at(now, "bins")));
    CHECK(web_number(found, "history/0/minimum") != web_number(found, "minimum"));
    json_decref(found);
    json_decref(now);
    CHECK_OK(sgm_trainer_reset(trainer));
    CHECK_OK(sgm_trainer_step(trainer, 1));
    json_decref(await_column(&client, path, 1)); /* what came later is no part of it any more */
    json_decref(web_post(&client, "/api/histogram-watch", "{\"identifier\": \"nothing.here\"}"));
    CHECK_INT(client.code, 404);
    CHECK_OK(sgm_env_stop(env, "enough"));
    CHECK_OK(sgm_env_wait(env));
    sgm_env_free(env);
}

/* --- data, and mistakes --- */

/* Two inputs are shares of two classes as they are: the weights are one in each class, so the answer is the
 * larger input. Examples 0 to 5; of class 0: 0, 1, 2, of which 2 is mistaken; of class 1: 3, 4, 5, of which 4
 * and 5 are. */
static sgm_trainer *mistaken_trainer(sgm_env *env)
{
    static const char *const fields[] = {"inputs", "targets"};
    static const float x[] = {3, 1, 2, 0, 1, 5, 0, 1, 4, 2, 9, 8};
    static const float y[] = {1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1};
    sgm_shape shape = sgm_shape_of(6, 2);
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &shape, x),
                             sgm_tensor_create_from(SGM_FLOAT32, &shape, y)};
    sgm_dataset *dataset = sgm_dataset_create_from("pairs", fields, tensors, 2);
    sgm_trainer *trainer = sgm_trainer_create(env, "a");
    sgm_trainer_set_network(trainer, "input(2) + dense(2, no_bias) + softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 3));
    sgm_trainer_add_data(trainer, "check", sgm_by_block(dataset));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.1));
    sgm_dataset_free(dataset);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    CHECK_OK(sgm_trainer_status(trainer));
    return trainer;
}

TEST(mistakes_are_counted_and_shown)
{
    static const float same[] = {1, 0, 0, 1};
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = mistaken_trainer(env);
    web_client client = serve(env);
    CHECK_OK(sgm_env_run(env, .iterations = 4));
    set(trainer, "1-dense.weights", 2, 2, same);
    json_t *found = web_get(&client, "/api/confusion?data=check");
    CHECK_STR(web_string(found, "error"), "(none)");
    CHECK_LIST(found, "matrix/0", 2, 1);
    CHECK_LIST(found, "matrix/1", 2, 1);
    CHECK_NEAR(web_number(found, "counted"), 6, 0);
    CHECK_NEAR(web_number(found, "right"), 3, 0);
    CHECK_NEAR(web_number(found, "iteration"), 4, 0);
    CHECK_STR(web_string(found, "data/0"), "training");
    CHECK_STR(web_string(found, "data/1"), "check");
    CHECK_INT(json_array_size(web_at(found, "examples")), 3);
    CHECK_LIST(found, "examples/0", 0, 1, 2);
    CHECK_LIST(found, "examples/1", 1, 0, 4);
    CHECK_LIST(found, "examples/2", 1, 0, 5);
    json_decref(found);
    found = web_get(&client, "/api/confusion?examples=3"); /* 0, 2 and 4 */
    CHECK_LIST(found, "matrix/0", 1, 1);
    CHECK_LIST(found, "matrix/1", 1, 0);
    json_decref(found);

    found = web_get(&client, "/api/data?data=training&class=1&from=4&count=5");
    CHECK_STR(web_string(found, "error"), "(none)");
    CHECK_INT(json_array_size(web_at(found, "items")), 2);
    CHECK_NEAR(web_number(found, "items/0/index"), 4, 0);
    CHECK_LIST(found, "items/0/inputs", 4, 2);
    CHECK_NEAR(web_number(found, "items/0/target"), 1, 0);
    CHECK_NEAR(web_number(found, "items/0/prediction"), 0, 0);
    CHECK_NEAR(web_number(found, "items/0/outputs/0"), 1 / (1 + exp(-2)), 1e-4);
    CHECK_NEAR(web_number(found, "examples"), 6, 0);
    CHECK_NEAR(web_number(found, "classes"), 2, 0);
    CHECK_LIST(found, "shape", 2);
    json_decref(found);
    found = web_get(&client, "/api/data?example=5&example=0");
    CHECK_INT(json_array_size(web_at(found, "items")), 2);
    CHECK_NEAR(web_number(found, "items/1/index"), 5, 0);
    json_decref(found);
    found = web_get(&client, "/api/data?example=1&example=1");
    CHECK_INT(json_array_size(web_at(found, "items")), 1);
    CHECK_NEAR(web_number(found, "next"), 2, 0); /* nothing behind it was looked at */
    json_decref(found);
    check_refused(&client, "/api/data?data=other", 404, "other");
    check_refused(&client, "/api/data?example=-1", 400,
                  "'example' must be the number of an example, not '-1'");
    check_refused(&client, "/api/confusion?examples=0", 400, "'examples' must be a whole number from 1");
    sgm_env_free(env);
}

TEST(a_matrix_is_for_classes)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    line_trainer(env, "a");
    web_client client = serve(env);
    CHECK_OK(sgm_env_run(env, .iterations = 4));
    check_refused(&client, "/api/confusion", 501,
                  "networks that put each example in one of at most 256 classes");
    json_t *found = web_get(&client, "/api/data?count=1&from=10");
    CHECK_LIST(found, "items/0/inputs", 0.25);
    CHECK_LIST(found, "items/0/targets", 1.5);
    CHECK(json_is_null(web_at(found, "classes")));
    json_decref(found);
    sgm_env_free(env);
}

/* --- what a layer gives --- */

TEST(a_layer_gives_what_it_computes)
{
    static const float weights[] = {1, 2, 0, -1};
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = mistaken_trainer(env);
    web_client client = serve(env);
    CHECK_OK(sgm_env_run(env, .iterations = 4));
    set(trainer, "1-dense.weights", 2, 2, weights);
    json_t *found = web_get(&client, "/api/layer?data=check&layer=1-dense");
    CHECK_STR(web_string(found, "error"), "(none)");
    CHECK_INT(json_array_size(web_at(found, "items")), 6);
    CHECK_NEAR(web_number(found, "items/4/index"), 4, 0);
    CHECK_LIST(found, "items/0/values", 3, 5); /* (3, 1) times the weights */
    CHECK_LIST(found, "items/4/values", 4, 6); /* (4, 2) */
    CHECK_NEAR(web_number(found, "items/4/target"), 1, 0);
    CHECK_NEAR(web_number(found, "items/4/prediction"), 1, 0);
    CHECK_NEAR(web_number(found, "items/3/prediction"), 0, 0); /* (0, 1) gives (0, -1) */
    CHECK_STR(web_string(found, "layer"), "1-dense");
    CHECK_INT(json_array_size(web_at(found, "layers")), 2);
    CHECK_STR(web_string(found, "data/1"), "check");
    CHECK_NEAR(web_number(found, "iteration"), 4, 0);
    CHECK_NEAR(web_number(found, "width"), 2, 0);
    CHECK_NEAR(web_number(found, "columns"), 2, 0);
    CHECK_NEAR(web_number(found, "classes"), 2, 0);
    json_decref(found);
    found = web_get(&client, "/api/layer"); /* before the cost makes it a share */
    CHECK_LIST(found, "items/0/values", 3, 5);
    json_decref(found);
    found = web_get(&client, "/api/layer?examples=3&layer=0-input"); /* 0, 2 and 4 */
    CHECK_INT(json_array_size(web_at(found, "items")), 3);
    CHECK_LIST(found, "items/2/values", 4, 2);
    json_decref(found);
    check_refused(&client, "/api/layer?layer=9-dense", 404,
                  "no layer '9-dense': ask for one that GET /api/network names, such as '1-dense'");
    check_refused(&client, "/api/layer?layer=2-softmax_cross_entropy", 501,
                  "layer '2-softmax_cross_entropy' gives nothing for each example: ask for another, such as "
                  "'1-dense'");
    check_refused(&client, "/api/layer?examples=2001", 400,
                  "'examples' must be a whole number from 1 to 2000");
    sgm_env_free(env);
}

static double distance(const json_t *found, size_t a, size_t b)
{
    const json_t *items = web_at(found, "items");
    const json_t *first = json_object_get(json_array_get(items, a), "values"),
                 *second = json_object_get(json_array_get(items, b), "values");
    double sum = 0;
    for (size_t i = 0; i < json_array_size(first); i++)
        sum += pow(json_number_value(json_array_get(first, i)) - json_number_value(json_array_get(second, i)),
                   2);
    return sqrt(sum);
}

/* A wide layer comes in fewer numbers, between which the distances are about the same. */
TEST(a_wide_layer_keeps_its_distances)
{
    static float weights[2 * 4000]; /* all of one sign: sums without signs of their own would grow */
    for (int i = 0; i < 8000; i++)
        weights[i] = 0.01F * (float)(1 + i % 7);
    sgm_env *env = sgm_env_create("e", .handler = "reference", .seed = 5);
    sgm_trainer *trainer = mistaken_trainer(env);
    CHECK_OK(
        sgm_trainer_set_network(trainer, "input(2) + dense(4000, tanh) + dense(2) + softmax_cross_entropy"));
    web_client client = serve(env);
    CHECK_OK(sgm_env_run(env, .iterations = 1));
    set(trainer, "1-dense.weights", 2, 4000, weights);
    json_t *exact = web_get(&client, "/api/layer?layer=1-dense&examples=200"),
           *gathered = web_get(&client, "/api/layer?layer=1-dense&examples=2000");
    CHECK_NEAR(web_number(exact, "columns"), 4000, 0);
    CHECK_NEAR(web_number(gathered, "columns"), 524, 0);
    CHECK_NEAR(web_number(gathered, "width"), 4000, 0);
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < i; k++)
            CHECK_NEAR(distance(gathered, i, k) / distance(exact, i, k), 1, 0.15);
    json_decref(exact);
    json_decref(gathered);
    sgm_env_free(env);
}

TEST(a_layer_may_be_too_wide)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = mistaken_trainer(env);
    CHECK_OK(sgm_trainer_set_network(trainer, "input(2) + dense(65537) + dense(2) + softmax_cross_entropy"));
    web_client client = serve(env);
    CHECK_OK(sgm_env_run(env, .iterations = 1));
    check_refused(&client, "/api/layer?layer=1-dense", 501,
                  "layer '1-dense' gives 65537 numbers for each example, more than 65536: ask for a narrower "
                  "one, such as '2-dense'");
    sgm_env_free(env);
}

/* --- the loss of each example --- */

TEST(each_example_has_a_loss)
{
    static const float same[] = {1, 0, 0, 1};
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = mistaken_trainer(env);
    web_client client = serve(env);
    CHECK_OK(sgm_env_run(env, .iterations = 4));
    set(trainer, "1-dense.weights", 2, 2, same);
    json_t *found = web_get(&client, "/api/losses?data=check");
    CHECK_INT(json_array_size(web_at(found, "items")), 6);
    CHECK_NEAR(web_number(found, "items/0/3"), log(1 + exp(-2)), 1e-4); /* (3, 1), of class 0 */
    CHECK_NEAR(web_number(found, "items/4/3"), log(1 + exp(2)), 1e-3);  /* (4, 2), of class 1 */
    CHECK_NEAR(web_number(found, "items/4/0"), 4, 0);
    CHECK_NEAR(web_number(found, "items/4/1"), 1, 0);
    CHECK_NEAR(web_number(found, "items/4/2"), 0, 0);
    json_decref(found);
    found = web_get(&client, "/api/losses?examples=2"); /* 0 and 3 */
    CHECK_INT(json_array_size(web_at(found, "items")), 2);
    CHECK_NEAR(web_number(found, "items/1/0"), 3, 0);
    json_decref(found);
    check_refused(&client, "/api/losses?examples=10001", 400,
                  "'examples' must be a whole number from 1 to 10000");
    sgm_env_free(env);

    env = sgm_env_create("e", .handler = "reference");
    CHECK_OK(line_trainer(env, "a"));
    client = serve(env);
    CHECK_OK(sgm_env_run(env, .iterations = 4));
    found = web_get(&client, "/api/losses");
    json_t *data = web_get(&client, "/api/data?example=10");
    double difference = web_number(data, "items/0/outputs/0") - 1.5;
    CHECK_NEAR(web_number(found, "items/10/3"), difference * difference,
               2e-3 * difference * difference + 1e-9);
    CHECK(json_is_null(web_at(found, "items/10/1")));
    json_decref(data);
    json_decref(found);
    sgm_env_free(env);
}

/* --- pictures --- */

TEST(weights_are_pictures_of_the_input)
{
    static const char *const fields[] = {"inputs", "targets"};
    static float values[4 * 6 * 2], x[2 * 24], y[2 * 2];
    for (int i = 0; i < 48; i++)
        values[i] = (float)i / 4;
    sgm_shape inputs = sgm_shape_of(2, 4, 6), targets = sgm_shape_of(2, 2);
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &inputs, x),
                             sgm_tensor_create_from(SGM_FLOAT32, &targets, y)};
    sgm_dataset *dataset = sgm_dataset_create_from("images", fields, tensors, 2);
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    sgm_trainer *trainer = sgm_trainer_create(env, "a");
    sgm_trainer_set_network(trainer, "input(4, 6) + dense(2) + dense(2) + mean_squared");
    sgm_trainer_set_data(trainer, sgm_by_block(dataset));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.1));
    sgm_dataset_free(dataset);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    web_client client = serve(env);
    CHECK_OK(sgm_env_run(env, .iterations = 1));
    set(trainer, "1-dense.weights", 24, 2, values);
    json_t *found = web_get(&client, "/api/picture?id=network.layers.1-dense.weights&index=1");
    CHECK_STR(web_string(found, "error"), "(none)");
    CHECK_NEAR(web_number(found, "pictures"), 2, 0);
    CHECK_NEAR(web_number(found, "count"), 1, 0);
    CHECK_NEAR(web_number(found, "rows"), 4, 0);
    CHECK_NEAR(web_number(found, "columns"), 6, 0);
    CHECK_INT(json_array_size(web_at(found, "values")), 24);
    CHECK_NEAR(web_number(found, "values/0"), 0.25, 0); /* what the second unit gets from (0, 0) */
    CHECK_NEAR(web_number(found, "values/7"), 3.75, 0); /* and from (1, 1) */
    CHECK_NEAR(web_number(found, "maximum"), 11.75, 0);
    json_decref(found);
    found = web_get(&client, "/api/picture?id=network.layers.2-dense.weights");
    CHECK_NEAR(web_number(found, "pictures"), 1, 0); /* a matrix */
    CHECK_NEAR(web_number(found, "rows"), 2, 0);
    json_decref(found);
    sgm_content shared;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), "shared", &shared));
    sgm_shape none = sgm_shape_of(3, 0, 0);
    sgm_tensor *nothing = sgm_tensor_create(SGM_FLOAT32, &none);
    CHECK_OK(sgm_registry_set(shared.as.registry, "nothing", sgm_tensor_content(nothing)));
    found = web_get(&client, "/api/picture?id=shared.nothing");
    CHECK_STR(web_string(found, "error"), "(none)");
    CHECK_NEAR(web_number(found, "rows"), 0, 0);
    CHECK_INT(json_array_size(web_at(found, "values")), 0);
    json_decref(found);
    sgm_tensor_free(nothing);
    sgm_content_clear(&shared);
    check_refused(&client, "/api/picture", 400, "expected the identifier of a tensor, as 'id'");
    check_refused(&client, "/api/picture?id=iteration", 400, "iteration is no tensor");
    sgm_env_free(env);
}
