/* What the web monitor tells of a network: compared with what was computed by hand. */
#include "environment/environment_test.h"
#include "monitors/web_client.h"

static web_client serve(sgm_env *env)
{
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    CHECK_OK(sgm_env_monitor(env, monitor));
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
    CHECK_OK(sgm_trainer_network(
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

TEST(what_cannot_be_drawn_is_refused_by_name)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    web_client client = serve(env);
    sgm_trainer *empty = sgm_trainer_create(env, "a");
    check_refused(&client, "/api/network?trainer=a", 409, "trainer 'a' has no network yet");
    check_refused(&client, "/api/network?trainer=b", 404, "there is no trainer 'b'");
    CHECK_OK(sgm_trainer_status(empty));
    sgm_env_free(env);
}
