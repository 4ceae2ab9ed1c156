/* A network that predicts over HTTP: inputs, mistakes, many at once, and who may use it. */
#include "http_client.h"
#include "monitors/serve/serve.h"
#include <sigma/sigma.h>

#define TOKEN "0123456789abcdef-TOKEN"
#define KNOWN "Host: localhost\r\nAuthorization: Bearer " TOKEN "\r\n"

typedef struct served {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm__serve *serve;
} served;

static const char *const flowers[] = {"setosa", "versicolor", NULL};

static served start_with(const char *network, const char *const *classes, bool scales)
{
    served s = {.env = sgm_env_create("served", .seed = 3)};
    s.trainer = sgm_trainer_create(s.env, "served");
    CHECK_OK(sgm_trainer_set_network(s.trainer, network));
    s.serve = sgm__serve_start(&(sgm__serve_options){.trainer = s.trainer,
                                                     .network = network,
                                                     .classes = classes,
                                                     .scales = scales,
                                                     .minimum = 0,
                                                     .maximum = scales ? 255 : 0,
                                                     .token = TOKEN});
    if (s.serve == NULL)
        TEST_FAIL("%s", sgm_last_error());
    return s;
}

static void end(served *s)
{
    sgm__serve_stop(s->serve);
    sgm_env_free(s->env);
}

/* The body of an answer with this code. */
static json_t *post(const served *s, const char *body, int code)
{
    client_answer answer =
        client_ask(sgm__serve_port(s->serve),
                   "POST /api/predict HTTP/1.1\r\n" KNOWN "Content-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   strlen(body), body);
    if (answer.code != code)
        TEST_FAIL("code %d, expected %d: %s", answer.code, code, answer.body);
    json_t *made = json_loads(answer.body, 0, NULL);
    CHECK(json_is_object(made));
    client_free(&answer);
    return made;
}

static void check_refused(const served *s, const char *body, const char *part)
{
    json_t *made = post(s, body, 400);
    const char *why = json_string_value(json_object_get(made, "error"));
    if (why == NULL || strstr(why, part) == NULL)
        TEST_FAIL("\"%s\", expected \"%s\" in it", why != NULL ? why : "", part);
    json_decref(made);
}

/* The length of a text, and of a pair; a text "?" is refused. */
static sgm_tensor *measure(void *user, const char *const *texts, const char *const *pairs, size_t count)
{
    sgm_shape shape = sgm_shape_of((int64_t)count, *(const int *)user);
    sgm_tensor *made = sgm_tensor_create(SGM_FLOAT32, &shape);
    float *numbers = sgm_tensor_data(made);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(texts[i], "?") == 0) {
            sgm_tensor_free(made);
            sgm_fail(SGM_ERROR_ARGUMENT, "text %zu (from 0): no tokens", i);
            return NULL;
        }
        for (int64_t k = 0; k < shape.dims[1]; k++)
            numbers[(int64_t)i * shape.dims[1] + k] = k == 0             ? (float)strlen(texts[i])
                                                      : pairs[i] != NULL ? (float)strlen(pairs[i])
                                                                         : -1;
    }
    return made;
}

static double number_at(const json_t *made, size_t example, size_t element)
{
    return json_number_value(
        json_array_get(json_array_get(json_object_get(made, "output"), example), element));
}

/* What the library says to (4) floats. */
static void expect(const served *s, const float *inputs, double *numbers)
{
    sgm_shape shape = sgm_shape_of(1, 4);
    sgm_tensor *asked = sgm_tensor_create_from(SGM_FLOAT32, &shape, inputs);
    sgm_tensor *answer = sgm_trainer_predict(s->trainer, asked, NULL);
    CHECK(answer != NULL);
    CHECK_OK(sgm_tensor_read(answer, numbers, 2));
    sgm_tensor_free(answer);
    sgm_tensor_free(asked);
}

#define CLASSES "input(4) + dense(5, tanh) + dense(2) + softmax_cross_entropy"

TEST(texts_go_to_the_one_who_can_read_them)
{
    static const char network[] = "input(4) + dense(2) + softmax_cross_entropy";
    int outputs = 2;
    served s = {.env = sgm_env_create("served", .seed = 3)};
    s.trainer = sgm_trainer_create(s.env, "served");
    CHECK_OK(sgm_trainer_set_network(s.trainer, network));
    s.serve = sgm__serve_start(&(sgm__serve_options){.trainer = s.trainer,
                                                     .network = network,
                                                     .texts = {measure, &outputs},
                                                     .classes = flowers,
                                                     .token = TOKEN});
    CHECK(s.serve != NULL);
    json_t *made = post(&s, "{\"input\": [\"abc\", {\"text\": \"a\", \"pair\": \"bcde\"}]}", 200);
    CHECK(number_at(made, 0, 0) == 3 && number_at(made, 0, 1) == -1);
    CHECK(number_at(made, 1, 0) == 1 && number_at(made, 1, 1) == 4);
    CHECK_STR(json_string_value(json_array_get(json_object_get(made, "label"), 1)), "versicolor");
    json_decref(made);
    check_refused(&s, "{\"input\": [\"abc\", \"?\"]}", "'input': text 1 (from 0): no tokens");
    check_refused(&s, "{\"input\": [\"abc\", [1, 2, 3, 4]]}", "example 1 of 'input': expected a text");
    outputs = 3;
    check_refused(&s, "{\"input\": [\"abc\"]}", "gives something for each token, not for a text");
    end(&s);

    served without = start_with(network, NULL, false);
    check_refused(&without, "{\"input\": [\"abc\"]}", "is served without a tokenizer");
    end(&without);
}

TEST(answers_are_those_of_the_library)
{
    served s = start_with(CLASSES, flowers, false);
    json_t *made = post(&s, "{\"input\": [[1, 2, 3, 4], [-1, 0.5, 0, 2e-1], [0, 0, 0, 9]]}", 200);
    double numbers[2];
    expect(&s, (float[]){-1, 0.5f, 0, 0.2f}, numbers);
    CHECK_INT(json_array_size(json_object_get(made, "output")), 3);
    CHECK_NEAR(number_at(made, 1, 0), numbers[0], 1e-6);
    CHECK_NEAR(number_at(made, 1, 1), numbers[1], 1e-6);
    int64_t class = json_integer_value(json_array_get(json_object_get(made, "class"), 1));
    CHECK_INT(class, numbers[1] > numbers[0]);
    CHECK_STR(json_string_value(json_array_get(json_object_get(made, "label"), 1)), flowers[class]);
    json_decref(made);
    end(&s);
}

/* Exactly a half is the first class, as metrics count it. */
TEST(a_single_output_says_whether_it_is_the_second_class)
{
    served s = start_with("input(4) + dense(1) + binary_cross_entropy", flowers, false);
    json_t *made = post(&s, "{\"input\": [[0, 0, 0, 0]]}", 200);
    CHECK_NEAR(number_at(made, 0, 0), 0.5, 0);
    CHECK_STR(json_string_value(json_array_get(json_object_get(made, "label"), 0)), "setosa");
    json_decref(made);
    end(&s);
}

TEST(examples_are_nested_or_flat_and_scaled)
{
    served s = start_with("input(2, 2) + flatten + dense(3) + mean_squared", NULL, true);
    json_t *nested = post(&s, "{\"input\": [[[0, 51], [102, 255]]]}", 200);
    json_t *flat = post(&s, "{\"input\": [[0, 51, 102, 255]]}", 200);
    CHECK(json_equal(nested, flat));
    CHECK(json_object_get(nested, "class") == NULL);
    sgm_shape shape = sgm_shape_of(1, 2, 2);
    sgm_tensor *asked = sgm_tensor_create_from(SGM_FLOAT32, &shape, (float[]){0, 0.2f, 0.4f, 1});
    sgm_tensor *answer = sgm_trainer_predict(s.trainer, asked, NULL);
    for (int64_t i = 0; i < 3; i++)
        CHECK_NEAR(number_at(flat, 0, (size_t)i), sgm_tensor_get(answer, (int64_t[]){0, i}), 1e-6);
    sgm_tensor_free(answer);
    sgm_tensor_free(asked);
    json_decref(nested);
    json_decref(flat);
    end(&s);
}

/* What a model that is no network predicts: a half, and of the class 7, or of 1 where the first number is
 * above 0; `user` is room for the classes. */
static sgm_tensor *tell(void *user, const sgm_tensor *examples, const sgm_tensor **classes)
{
    int64_t count = sgm_tensor_shape(examples)->dims[0];
    sgm_shape shape = sgm_shape_of(count, 1), flat = sgm_shape_of(count);
    sgm_tensor **told = user;
    sgm_tensor_free(*told);
    *told = sgm_tensor_create(SGM_INT64, &flat);
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)sgm_tensor_data(*told))[i] = sgm_tensor_get(examples, (int64_t[]){i, 0}) > 0 ? 1 : 7;
    *classes = *told;
    sgm_tensor *halves = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; i < count; i++)
        ((float *)sgm_tensor_data(halves))[i] = 0.5f;
    return halves;
}

TEST(a_model_tells_its_classes_itself)
{
    sgm_tensor *told = NULL;
    served s = {.serve = sgm__serve_start(&(sgm__serve_options){.model = {tell, &told, sgm_shape_of(2)},
                                                                .network = "a model",
                                                                .precision = SGM_FLOAT32,
                                                                .classes = flowers,
                                                                .token = TOKEN})};
    CHECK(s.serve != NULL);
    json_t *made = post(&s, "{\"input\": [[1, 2], [0, 1], [3, 1]]}", 200),
           *class = json_object_get(made, "class");
    CHECK_INT(json_array_size(class), 3);
    CHECK_INT(json_integer_value(json_array_get(class, 0)), 1);
    CHECK_INT(json_integer_value(json_array_get(class, 1)), 7);
    CHECK_STR(json_string_value(json_array_get(json_object_get(made, "label"), 0)), "versicolor");
    CHECK(json_is_null(json_array_get(json_object_get(made, "label"), 1)));
    CHECK_NEAR(number_at(made, 2, 0), 0.5, 0);
    json_decref(made);
    check_refused(&s, "{\"input\": [\"abc\"]}", "is served without a tokenizer");
    check_refused(&s, "{\"input\": [{\"a\": 1}]}", "something that is no list of numbers");
    end(&s);
    sgm_tensor_free(told);
}

static sgm_tensor *repeat(void *user, const sgm_tensor *examples, const sgm_tensor **classes)
{
    (void)user;
    *classes = NULL;
    return sgm_tensor_cast(examples, SGM_FLOAT64);
}

/* As one of int64 or float64 takes them: float32 has none of these numbers. */
TEST(a_model_gets_all_digits)
{
    served s = {.serve = sgm__serve_start(&(sgm__serve_options){.model = {repeat, NULL, sgm_shape_of(2)},
                                                                .network = "a model",
                                                                .precision = SGM_FLOAT32,
                                                                .token = TOKEN})};
    CHECK(s.serve != NULL);
    json_t *made = post(&s, "{\"input\": [[16777217, 0.1]]}", 200);
    CHECK_NEAR(number_at(made, 0, 0), 16777217, 0);
    CHECK_NEAR(number_at(made, 0, 1), 0.1, 0);
    json_decref(made);
    end(&s);
}

/* Eight numbers for all examples together, so fewer for each of more of them. */
static sgm_tensor *divide(void *user, const sgm_tensor *examples, const sgm_tensor **classes)
{
    (void)user;
    *classes = NULL;
    int64_t count = sgm_tensor_shape(examples)->dims[0];
    sgm_shape shape = sgm_shape_of(count, 8 / count);
    return sgm_tensor_create(SGM_FLOAT32, &shape);
}

TEST(a_model_that_gives_other_shapes_for_more_examples_is_refused)
{
    served s = {.serve = sgm__serve_start(&(sgm__serve_options){.model = {divide, NULL, sgm_shape_of(2)},
                                                                .network = "a model",
                                                                .precision = SGM_FLOAT32,
                                                                .token = TOKEN})};
    CHECK(s.serve != NULL);
    json_t *made = post(&s, "{\"input\": [[1, 2]]}", 200);
    CHECK_INT(json_array_size(json_array_get(json_object_get(made, "output"), 0)), 8);
    json_decref(made);
    check_refused(&s, "{\"input\": [[1, 2], [0, 1], [3, 1]]}",
                  "the model gives (4, 2) for 3 examples, not the shape (8,) for each");
    end(&s);
}

TEST(sequences_have_a_class_for_each_step)
{
    served s = start_with("input(3) + embedding(4, 2) + dense(2, time_distributed) + softmax_cross_entropy",
                          flowers, false);
    json_t *made = post(&s, "{\"input\": [[0, 3, 1], [2, 2, 2]]}", 200);
    CHECK_INT(json_array_size(json_array_get(json_object_get(made, "class"), 1)), 3);
    CHECK_INT(json_array_size(json_array_get(json_object_get(made, "label"), 0)), 3);
    json_decref(made);
    check_refused(&s, "{\"input\": [[0, 4, 1]]}", "4 is out of range");
    end(&s);
}

TEST(steps_that_do_not_count_have_no_class)
{
    served s = start_with("input(3, lengths=steps) + embedding(4, 2) + dense(2, time_distributed) + "
                          "softmax_cross_entropy",
                          NULL, false);
    json_t *made = post(&s, "{\"input\": [[0, 3, 1], [2, 2, 2]], \"lengths\": [2, 3]}", 200);
    const json_t *classes = json_object_get(made, "class");
    CHECK_INT(json_array_size(json_array_get(classes, 0)), 2);
    CHECK_INT(json_array_size(json_array_get(classes, 1)), 3);
    json_decref(made);
    made = post(&s, "{\"input\": [[0, 3, 1]]}", 200);
    CHECK_INT(json_array_size(json_array_get(json_object_get(made, "class"), 0)), 3);
    json_decref(made);
    check_refused(&s, "{\"input\": [[0, 1, 1]], \"lengths\": [4]}",
                  "'lengths', example 0: expected a whole number from 0 to 3");
    check_refused(&s, "{\"input\": [[0, 1, 1]], \"lengths\": [1.5]}", "expected a whole number");
    check_refused(&s, "{\"input\": [[0, 1, 1]], \"lengths\": [1, 2]}", "a list of 1 numbers");
    end(&s);
    s = start_with(CLASSES, NULL, false);
    check_refused(&s, "{\"input\": [[1, 2, 3, 4]], \"lengths\": [1]}", "the network's input has none");
    end(&s);
}

/* The likeliest class of each step, without repetitions and the blank, of which the network knows no more
 * than what it is given. */
TEST(networks_with_ctc_answer_labels)
{
    served s = start_with("input(5, 3, lengths=steps) + ctc(2)", NULL, false);
    json_t *made = post(&s,
                        "{\"input\": [[[0,9,0],[0,9,0],[9,0,0],[0,9,0],[0,0,9]],"
                        " [[0,9,0],[0,9,0],[9,0,0],[0,9,0],[0,0,9]]], \"lengths\": [5, 2]}",
                        200);
    char *labels = json_dumps(json_object_get(made, "labels"), JSON_COMPACT);
    CHECK_STR(labels, "[[1,1,2],[1]]");
    free(labels);
    CHECK(json_object_get(made, "class") == NULL);
    json_decref(made);
    end(&s);
}

TEST(numbers_of_float32_have_no_more_digits_than_it_takes)
{
    served s = start_with("input(1) + mean_squared", NULL, false);
    const char *body = "{\"input\": [[0.1], [1e-20], [0.3333333333333]]}";
    client_answer answer = client_ask(sgm__serve_port(s.serve),
                                      "POST /api/predict HTTP/1.1\r\n" KNOWN
                                      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                      strlen(body), body);
    CHECK_STR(answer.body, "{\"output\":[[0.1],[1e-20],[0.33333334]]}");
    client_free(&answer);
    end(&s);
}

TEST(mistakes_are_named)
{
    served s = start_with(CLASSES, NULL, false);
    check_refused(&s, "{\"input\": [[1, 2, 3]]}", "example 0 of 'input': expected the shape (4,)");
    check_refused(&s, "{\"input\": [[1, 2, 3, 4], [1, 2, 3, \"4\"]]}", "example 1 of 'input'");
    check_refused(&s, "{\"input\": [[1, 2, 3, [4]]]}", "no number");
    check_refused(&s, "{\"input\": [1, 2, 3, 4]}", "a number in place of a list");
    check_refused(&s, "{\"input\": [{\"txt\": \"a\"}]}", "there is something that is no list of numbers");
    check_refused(&s, "{\"input\": [[1, 2, 3, null]]}", "no number");
    check_refused(&s, "{\"input\": []}",
                  "expected {\"input\": [EXAMPLE, ...]}, where an example has the shape (4,)");
    check_refused(&s, "{\"inputs\": [[1, 2, 3, 4]]}", "expected {\"input\"");
    check_refused(&s, "[[1, 2, 3, 4]]", "expected a JSON object");
    check_refused(&s, "{\"input\": [[1, 2, 3, 4]", "expected a JSON object");
    sgm__text many = {0};
    sgm__text_append(&many, "{\"input\": [[1, 2, 3, 4]");
    for (int i = 0; i < SGM__SERVE_MAXIMUM_EXAMPLES; i++)
        sgm__text_append(&many, ", [1, 2, 3, 4]");
    sgm__text_append(&many, "]}");
    check_refused(&s, many.data, "has 513 examples; at most 512");
    sgm__text_free(&many);
    json_decref(post(&s, "{\"input\": [[1, 2, 3, 4]]}", 200)); /* it goes on */
    end(&s);
}

TEST(the_model_is_described)
{
    served s = start_with(CLASSES, flowers, false);
    client_answer answer = client_ask(sgm__serve_port(s.serve), "GET /api/model HTTP/1.1\r\n" KNOWN "\r\n");
    CHECK_INT(answer.code, 200);
    json_t *model = json_loads(answer.body, 0, NULL);
    CHECK_STR(json_string_value(json_object_get(model, "network")), CLASSES);
    CHECK_INT(json_integer_value(json_array_get(json_object_get(model, "input"), 0)), 4);
    CHECK_INT(json_integer_value(json_array_get(json_object_get(model, "output"), 0)), 2);
    CHECK_STR(json_string_value(json_array_get(json_object_get(model, "classes"), 1)), "versicolor");
    CHECK_STR(json_string_value(json_object_get(model, "precision")), "float32");
    CHECK_INT(json_integer_value(json_object_get(model, "parameters")), 4 * 5 + 5 + 5 * 2 + 2);
    const json_t *layer = json_array_get(json_object_get(model, "layers"), 1);
    CHECK_STR(json_string_value(json_object_get(layer, "name")), "1-dense");
    CHECK_INT(json_integer_value(json_object_get(layer, "parameters")), 25);
    json_decref(model);
    client_free(&answer);
    end(&s);
}

static int code_of(const served *s, const char *request)
{
    client_answer answer = client_ask(sgm__serve_port(s->serve), "%s", request);
    int code = answer.code;
    client_free(&answer);
    return code;
}

TEST(only_who_knows_the_token_is_answered)
{
    served s = start_with(CLASSES, NULL, false);
    CHECK_INT(code_of(&s, "GET /api/model HTTP/1.1\r\nHost: localhost\r\n\r\n"), 401);
    CHECK_INT(code_of(&s, "GET /api/model HTTP/1.1\r\nHost: elsewhere.example\r\nAuthorization: Bearer " TOKEN
                          "\r\n\r\n"),
              403);
    CHECK_INT(code_of(&s, "GET /api/model HTTP/1.1\r\n" KNOWN "Origin: http://elsewhere.example\r\n\r\n"),
              403);
    CHECK_INT(code_of(&s, "GET /api/predict HTTP/1.1\r\n" KNOWN "\r\n"), 405);
    CHECK_INT(code_of(&s, "GET / HTTP/1.1\r\n" KNOWN "\r\n"), 200);
    CHECK_INT(code_of(&s, "POST /api/predict HTTP/1.1\r\n" KNOWN "Content-Type: application/json\r\n"
                          "Content-Length: 9000000\r\n\r\n"),
              413);
    end(&s);
}

TEST(what_cannot_answer_does_not_begin)
{
    sgm_env *env = sgm_env_create("served");
    sgm_trainer *trainer = sgm_trainer_create(env, "served");
    CHECK_OK(sgm_trainer_set_network(trainer, "input(4) + dense(2) + mean_squared"));
    const sgm__serve_options options = {
        .trainer = trainer, .network = "input(4) + dense(2) + mean_squared", .token = "short"};
    CHECK(sgm__serve_start(&options) == NULL);
    CHECK(strstr(sgm_last_error(), "token") != NULL);
    const sgm__serve_options wrong = {.trainer = trainer, .network = "input(4) + dense"};
    CHECK(sgm__serve_start(&wrong) == NULL);
    sgm__serve_stop(NULL);
    sgm_env_free(env);
}

/* --- many at once --- */

typedef struct asker {
    const served *served;
    int number, wrong;
    pthread_t thread;
} asker;

static void *ask_often(void *user)
{
    asker *own = user;
    for (int i = 1; i <= 20; i++) {
        sgm__text body = {0};
        int examples = 1 + (own->number * 7 + i) % 20;
        for (int k = 0; k < examples; k++)
            sgm__text_append(&body, "%s[%d, %d, 0, 0]", k > 0 ? ", " : "{\"input\": [", own->number, k);
        sgm__text_append(&body, "]}");
        json_t *made = post(own->served, body.data, 200), *alone;
        char last[64];
        snprintf(last, sizeof last, "{\"input\": [[%d, %d, 0, 0]]}", own->number, examples - 1);
        alone = post(own->served, last, 200);
        own->wrong += json_array_size(json_object_get(made, "output")) != (size_t)examples;
        own->wrong += !(fabs(number_at(made, (size_t)examples - 1, 0) - number_at(alone, 0, 0)) < 1e-6);
        json_decref(made);
        json_decref(alone);
        sgm__text_free(&body);
    }
    return NULL;
}

TEST(many_ask_at_once)
{
    served s = start_with(CLASSES, flowers, false);
    asker askers[6];
    for (int i = 0; i < 6; i++) {
        askers[i] = (asker){.served = &s, .number = i};
        CHECK_INT(pthread_create(&askers[i].thread, NULL, ask_often, &askers[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(askers[i].thread, NULL);
        CHECK_INT(askers[i].wrong, 0);
    }
    end(&s);
}
