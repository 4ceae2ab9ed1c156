/* Numbers for Prometheus. */
#include "environment/environment_test.h"
#include "monitors/web_client.h"

static client_answer ask_metrics(const web_client *client, const char *token)
{
    return client_ask(
        client->port,
        "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nConnection: "
        "close\r\n\r\n",
        client->port, token);
}

/* Behind "NAME{...} " at the beginning of a line. */
static double value_of(const char *body, const char *series)
{
    char line[200];
    snprintf(line, sizeof line, "\n%s ", series);
    const char *found = strstr(body, line);
    if (found == NULL)
        TEST_FAIL("there is no %s in:\n%s", series, body);
    return strtod(found + strlen(line), NULL);
}

static void check_form(char *body)
{
    for (char *line = strtok(body, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *end;
        const char *value = strrchr(line, ' ');
        if (strncmp(line, "# HELP ", 7) == 0 || strncmp(line, "# TYPE ", 7) == 0)
            continue;
        CHECK(value != NULL);
        strtod(value + 1, &end);
        if (*end != '\0' || end == value + 1)
            TEST_FAIL("no number at the end of: %s", line);
    }
}

TEST(each_trainer_has_its_numbers)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference", .seed = 1);
    sgm_trainer *trainer = line_trainer(env, "a \"b\"\\c");
    CHECK_OK(trainer);
    CHECK_OK(line_trainer(env, "other"));
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    CHECK_OK(sgm_env_add_monitor(env, monitor));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 3));
    CHECK_OK(sgm_env_prepare(env));
    web_client client = web_client_of(sgm_web_monitor_url(monitor));
    client_answer answer = ask_metrics(&client, client.token);
    char type[100];
    CHECK_INT(answer.code, 200);
    CHECK_STR(client_header(&answer, "Content-Type", type, sizeof type),
              "text/plain; version=0.0.4; charset=utf-8");
    char *body = strdup(answer.body);
    CHECK(strstr(body, "# HELP sigma_iterations_total Iterations trained\n"
                       "# TYPE sigma_iterations_total counter\n"));
    CHECK_NEAR(value_of(body, "sigma_iterations_total{trainer=\"a \\\"b\\\"\\\\c\"}"), 12, 0);
    CHECK_NEAR(value_of(body, "sigma_iterations_total{trainer=\"other\"}"), 0, 0);
    CHECK_NEAR(value_of(body, "sigma_epochs_total{trainer=\"a \\\"b\\\"\\\\c\"}"), 3, 0);
    CHECK_NEAR(value_of(body, "sigma_trainer_state{trainer=\"other\"}"), 0, 0);
    CHECK_NEAR(value_of(body, "sigma_learning_rate{trainer=\"a \\\"b\\\"\\\\c\"}"), 0.1, 1e-6);
    CHECK_NEAR(value_of(body, "sigma_dropped_events_total"), 0, 0);
    CHECK(value_of(body, "process_resident_memory_bytes") > 1e6);
    CHECK(value_of(body, "process_cpu_seconds_total") > 0);
    CHECK(strstr(body, "sigma_accuracy{") == NULL); /* means nothing here */
    check_form(body);
    free(body);
    client_free(&answer);
    sgm_env_free(env);
}

TEST(validation_is_that_of_the_newest_epoch)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference", .seed = 1);
    sgm_trainer *trainer = line_trainer(env, "a");
    sgm_dataset *data = line_dataset();
    CHECK_OK(sgm_trainer_add_data(trainer, "check", sgm_by_block(data)));
    CHECK_OK(sgm_trainer_add_data(trainer, "\"too\"", sgm_by_block(data)));
    sgm_iterator *all = sgm_by_block(data);
    sgm_dataset_free(data);
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    CHECK_OK(sgm_env_add_monitor(env, monitor));
    CHECK_OK(sgm_env_prepare(env));
    web_client client = web_client_of(sgm_web_monitor_url(monitor));
    client_answer answer = ask_metrics(&client, client.token);
    CHECK(strstr(answer.body, "sigma_validation_loss{") == NULL);
    client_free(&answer);
    double before = INFINITY;
    for (int epochs = 1; epochs <= 2; epochs++) {
        sgm_metrics measured;
        CHECK_OK(sgm_trainer_run(trainer, .epochs = epochs));
        CHECK_OK(sgm_trainer_evaluate(trainer, all, &measured));
        answer = ask_metrics(&client, client.token);
        double loss = value_of(answer.body, "sigma_validation_loss{trainer=\"a\",data=\"check\"}");
        CHECK_NEAR(loss, measured.loss, 1e-6 * measured.loss);
        CHECK(loss < before);
        before = loss;
        CHECK_NEAR(value_of(answer.body, "sigma_validation_loss{trainer=\"a\",data=\"\\\"too\\\"\"}"), loss,
                   1e-6 * loss);
        CHECK(strstr(answer.body, "sigma_validation_accuracy{") == NULL); /* means nothing here */
        client_free(&answer);
    }
    sgm_iterator_free(all);
    sgm_env_free(env);
}

TEST(not_without_the_token)
{
    sgm_env *env = sgm_env_create("e", .handler = "reference");
    CHECK_OK(line_trainer(env, "a"));
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    CHECK_OK(sgm_env_add_monitor(env, monitor));
    CHECK_OK(sgm_env_prepare(env));
    web_client client = web_client_of(sgm_web_monitor_url(monitor));
    client_answer answer = ask_metrics(&client, "0123456789abcdef0123456789abcdef");
    CHECK(answer.code == 401 || answer.code == 403);
    CHECK(strstr(answer.all, "sigma_") == NULL);
    client_free(&answer);
    sgm_env_free(env);
}
