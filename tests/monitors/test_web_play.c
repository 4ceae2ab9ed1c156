/* Playing with a network over the web monitor: predictions, inputs for a class, text. */
#include "monitors/web_client.h"

#include <math.h>

typedef struct played {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_dataset *data;
    web_client client;
} played;

/* Paused before its first iteration, on examples of zeros. */
static void begin(played *p, const char *network, const sgm_shape *inputs, const sgm_shape *targets)
{
    sgm_tensor *tensors[] = {sgm_tensor_create(SGM_FLOAT32, inputs), sgm_tensor_create(SGM_FLOAT32, targets)};
    *p = (played){.env = sgm_env_create("played", .handler = "reference", .seed = 3)};
    p->trainer = sgm_trainer_create(p->env, "net");
    p->data = sgm_dataset_create_from("zeros", (const char *const[]){"inputs", "targets"}, tensors, 2);
    CHECK_OK(sgm_trainer_set_network(p->trainer, network));
    CHECK_OK(sgm_trainer_set_data(p->trainer, sgm_minibatches(p->data, .size = 2)));
    CHECK_OK(sgm_trainer_set_optimiser(p->trainer, sgm_gradient_descent(.learning_rate = 0.1)));
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    CHECK_OK(sgm_env_add_monitor(p->env, monitor));
    CHECK_OK(sgm_env_run_background(p->env, .epochs = 1000, .paused = true));
    while (sgm_trainer_get_state(p->trainer) != SGM_TRAINER_PAUSED)
        usleep(1000);
    p->client = web_client_of(sgm_web_monitor_url(monitor));
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
}

static void end(played *p)
{
    web_client_close(&p->client);
    CHECK_OK(sgm_env_stop(p->env, "seen enough"));
    CHECK_OK(sgm_env_wait(p->env));
    sgm_env_free(p->env);
    sgm_dataset_free(p->data);
}

static void set_weights(played *p, const char *values)
{
    char body[400];
    snprintf(body, sizeof body,
             "{\"command\":\"set\",\"identifier\":\"network.layers.1-dense.weights\",\"value\":\"%s\"}",
             values);
    web_posted(&p->client, "/api/command", body);
    CHECK_INT(p->client.code, 200);
}

static void begin_classes(played *p)
{
    sgm_shape inputs = sgm_shape_of(4, 2, 2), targets = sgm_shape_of(4, 3);
    begin(p, "input(2, 2) + dense(3) + softmax_cross_entropy", &inputs, &targets);
    set_weights(p, "[[1, 0, 0], [0, 2, 0], [0, 0, 3], [0, 0, 0]]");
}

TEST(what_hooks_have_said_is_told)
{
    played p;
    sgm_content shared = {0};
    begin_classes(&p);
    web_got(&p.client, "/api/samples?trainer=net");
    CHECK_INT(p.client.code, 200);
    CHECK_INT(json_array_size(json_object_get(p.client.answer, "samples")), 0);
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(p.trainer), "shared", &shared));
    CHECK_OK(sgm_registry_set(shared.as.registry, "samples",
                              sgm_text_content("[{\"epoch\":2,\"prompt\":\"a\",\"text\":\"b\"}]")));
    web_got(&p.client, "/api/samples?trainer=net");
    CHECK_NEAR(web_number(p.client.answer, "samples/0/epoch"), 2, 0);
    CHECK_OK(sgm_registry_set(shared.as.registry, "samples", sgm_text_content("no JSON")));
    web_got(&p.client, "/api/samples?trainer=net");
    CHECK_INT(json_array_size(json_object_get(p.client.answer, "samples")), 0);
    web_got(&p.client, "/api/play?trainer=net");
    CHECK(json_is_false(json_object_get(p.client.answer, "samples")));
    sgm_content_clear(&shared);
    end(&p);
}

TEST(an_input_gets_the_shares_of_classes)
{
    played p;
    begin_classes(&p);
    web_posted(&p.client, "/api/predict",
               "{\"trainer\":\"net\",\"inputs\":[[1, 1], [1, 5]]}"); /* sums 1, 2, 3 */
    CHECK_INT(p.client.code, 200);
    double sum = exp(1) + exp(2) + exp(3);
    CHECK_NEAR(web_number(p.client.answer, "outputs/0/0"), exp(1) / sum, 1e-6);
    CHECK_NEAR(web_number(p.client.answer, "outputs/0/2"), exp(3) / sum, 1e-6);
    CHECK_NEAR(web_number(p.client.answer, "ranked/0/0/class"), 2, 0);
    CHECK_NEAR(web_number(p.client.answer, "ranked/0/0/share"), exp(3) / sum, 1e-6);
    CHECK_NEAR(web_number(p.client.answer, "ranked/0/2/class"), 0, 0);
    CHECK_NEAR(web_number(p.client.answer, "shape/0"), 3, 0);
    end(&p);
}

TEST(several_examples_at_once_and_what_does_not_fit)
{
    played p;
    begin_classes(&p);
    web_posted(&p.client, "/api/predict", "{\"inputs\":[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]}");
    CHECK_INT(p.client.code, 200);
    for (int i = 0; i < 3; i++) {
        char path[40];
        snprintf(path, sizeof path, "outputs/%d/%d", i, i);
        CHECK_NEAR(web_number(p.client.answer, path), exp(i + 1) / (exp(i + 1) + 2), 1e-6);
    }
    CHECK_POST_REFUSED(&p.client, "/api/predict", "{\"inputs\":[1, 2, 3]}", 400,
                       "'inputs' has 3 numbers; expected 1 to 1000 examples of 4, of the shape (2, 2)");
    CHECK_POST_REFUSED(&p.client, "/api/predict", "{\"inputs\":[1, \"2\", 3, 4]}", 400,
                       "'inputs' must be a list of numbers");
    CHECK_POST_REFUSED(&p.client, "/api/predict", "{}", 400, "'inputs' must be a list of numbers");
    CHECK_POST_REFUSED(&p.client, "/api/predict", "{\"trainer\":\"other\",\"inputs\":[1, 2, 3, 4]}", 404,
                       "there is no trainer 'other'");
    end(&p);
}

TEST(what_can_be_played_with_is_said)
{
    played p;
    begin_classes(&p);
    web_got(&p.client, "/api/play?trainer=net");
    CHECK_INT(p.client.code, 200);
    CHECK_NEAR(web_number(p.client.answer, "input/0") * 10 + web_number(p.client.answer, "input/1"), 22, 0);
    CHECK_NEAR(web_number(p.client.answer, "output/0"), 3, 0);
    CHECK(json_is_true(web_at(p.client.answer, "classifies")));
    end(&p);
}

/* What was found, asked about, is what was wanted; and the trainer goes on afterwards. */
TEST(an_input_is_found_for_a_class)
{
    played p;
    char body[400];
    begin_classes(&p);
    web_posted(&p.client, "/api/maximise", "{\"class\":1,\"steps\":500}");
    CHECK_INT(p.client.code, 200);
    CHECK(json_is_true(web_at(p.client.answer, "found")));
    CHECK(web_number(p.client.answer, "cost") < 0.06);
    snprintf(body, sizeof body, "{\"inputs\":[%.9g, %.9g, %.9g, %.9g]}",
             web_number(p.client.answer, "values/0"), web_number(p.client.answer, "values/1"),
             web_number(p.client.answer, "values/2"), web_number(p.client.answer, "values/3"));
    web_posted(&p.client, "/api/predict", body);
    CHECK_NEAR(web_number(p.client.answer, "ranked/0/0/class"), 1, 0);
    CHECK(web_number(p.client.answer, "ranked/0/0/share") > 0.94);
    CHECK_POST_REFUSED(&p.client, "/api/maximise", "{\"class\":3}", 400, "there is no such class");
    CHECK_POST_REFUSED(&p.client, "/api/maximise", "{\"class\":1,\"steps\":1000000}", 400,
                       "'steps' must be a number from 1 to 5000");
    CHECK_POST_REFUSED(&p.client, "/api/maximise", "{\"class\":\"one\"}", 400, "'class' must be a number");
    end(&p);
}

/* Its parameters are zeros: nothing is found, and each step takes milliseconds. */
TEST(a_search_ends_with_the_run)
{
    played p;
    sgm_shape inputs = sgm_shape_of(4, 2, 2), targets = sgm_shape_of(4, 3), zeros = sgm_shape_of(1500, 3);
    begin(&p, "input(2, 2) + dense(1500) + dense(1500) + dense(3) + softmax_cross_entropy", &inputs,
          &targets);
    sgm_tensor *nothing = sgm_tensor_create(SGM_FLOAT32, &zeros);
    CHECK_OK(sgm_trainer_set(p.trainer, "3-dense.weights", nothing));
    sgm_tensor_free(nothing);
    const char body[] = "{\"class\":1,\"steps\":5000}";
    char *request = sgm__format("POST /api/maximise HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer "
                                "%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                p.client.port, p.client.token, strlen(body), body);
    int descriptor = client_connect(p.client.port);
    CHECK(client_send(descriptor, request, strlen(request)));
    sgm__free(request);
    usleep(500000);
    double begun = sgm__now();
    end(&p);
    CHECK(sgm__now() - begun < 4);
    close(descriptor);
}

/* A network that says of each byte that the next one in the alphabet follows. */
TEST(text_goes_on_as_the_network_says)
{
    played p;
    sgm_shape inputs = sgm_shape_of(4, 3), targets = sgm_shape_of(4, 3, 256), table = sgm_shape_of(256, 256);
    begin(&p, "input(3) + embedding(256, 256) + dense(256, time_distributed) + softmax_cross_entropy",
          &inputs, &targets);
    sgm_tensor *next = sgm_tensor_create(SGM_FLOAT32, &table), *same = sgm_tensor_create(SGM_FLOAT32, &table);
    for (int64_t i = 0; i < 256; i++) {
        sgm_tensor_set(next, (const int64_t[]){i, (i + 1) % 256}, 1);
        sgm_tensor_set(same, (const int64_t[]){i, i}, 40);
    }
    sgm_tensor_set(next, (const int64_t[]){'z', '{'}, 0);
    sgm_tensor_set(next, (const int64_t[]){'z', 0}, 1);
    sgm_registry *registry = sgm_trainer_registry(p.trainer);
    CHECK_OK(sgm_registry_resolve_set(registry, "network.layers.1-embedding.weights",
                                      sgm_tensor_content(next), NULL, NULL));
    CHECK_OK(sgm_registry_resolve_set(registry, "network.layers.2-dense.weights", sgm_tensor_content(same),
                                      NULL, NULL));
    web_posted(&p.client, "/api/sample", "{\"text\":\"a\",\"length\":6,\"temperature\":0.5}");
    CHECK_INT(p.client.code, 200);
    CHECK_STR(web_string(p.client.answer, "text"), "abcdefg");
    web_posted(&p.client, "/api/sample", "{\"text\":\"lmnop\",\"length\":3,\"temperature\":0}");
    CHECK_STR(web_string(p.client.answer, "text"), "lmnopqrs");
    web_posted(&p.client, "/api/sample", "{\"text\":\"yz\",\"length\":3,\"temperature\":0}");
    CHECK_STR(web_string(p.client.answer, "text"), "yz?\x01\x02");
    web_posted(&p.client, "/api/sample", "{\"text\":\"\u00fc\",\"length\":2,\"temperature\":0}");
    CHECK_STR(web_string(p.client.answer, "text"), "\u00fc??"); /* bytes that are no UTF-8 */
    CHECK_POST_REFUSED(&p.client, "/api/sample", "{\"text\":\"\"}", 400, "at least one character");
    CHECK_POST_REFUSED(&p.client, "/api/sample", "{\"text\":\"a\",\"length\":100000}", 400,
                       "'length' must be a number from 1 to 2000");
    sgm_tensor_free(next);
    sgm_tensor_free(same);
    end(&p);
}

TEST(other_networks_write_no_text)
{
    played p;
    begin_classes(&p);
    web_posted(&p.client, "/api/sample", "{\"text\":\"a\"}");
    CHECK_INT(p.client.code, 501);
    CHECK(strstr(web_string(p.client.answer, "error"), "this one makes (1, 3) of (2, 2)") != NULL);
    end(&p);
}
