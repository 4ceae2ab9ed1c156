/* Ready-made hooks as local ones: each worker has its own sums, times and series. */
#include "by_name.h"

#include <stdlib.h>
#include <unistd.h>

typedef sgm_operator *(*operator_maker)(void);

static sgm_operator *gradients(void)
{
    return sgm_gradient_operator(.workers = 2);
}

static sgm_operator *parameters(void)
{
    return sgm_parameter_operator(.workers = 2, .every = 3);
}

/* --- accumulators --- */

/* The costs of the workers, added up apart from any accumulator. */
static sgm_status add_costs(void *self, sgm_hook_call *call)
{
    double *sums = self, cost;
    for (int i = 0; i < 2; i++) {
        char identifier[64];
        snprintf(identifier, sizeof identifier, "operator.local.%d.cost", i);
        CHECK_OK(sgm_hook_number(call, identifier, &cost));
        sums[i] += cost;
    }
    return SGM_OK;
}

static const sgm_hook_type adder = {.api = SGM_HOOK_API, .name = "adder", .invoke = add_costs};

static wave_trainer make(operator_maker maker, bool before, double *sums)
{
    wave_trainer made = make_wave_trainer((wave_options){.shuffle = true, .seed = 3, .batch = 5});
    if (!before)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, maker()));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_hook_make_local(sgm_accumulator("optimiser.loss", .name = "all_costs"))));
    if (before)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, maker()));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&adder, sums, .failure = SGM_HOOK_STOP)));
    return made;
}

TEST(each_worker_has_a_sum_of_its_own)
{
    operator_maker makers[] = {gradients, parameters};
    for (int i = 0; i < 4; i++) {
        double sums[2] = {0};
        sgm_content content;
        wave_trainer made = make(makers[i % 2], i / 2 == 0, sums);
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
        CHECK_NEAR(number_of(made.trainer, "operator.local.0.shared.all_costs"), sums[0], 1e-9);
        CHECK_NEAR(number_of(made.trainer, "operator.local.1.shared.all_costs"), sums[1], 1e-9);
        CHECK(fabs(sums[0] - sums[1]) > 1e-4);
        CHECK_INT(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "shared.all_costs", &content),
                  SGM_ERROR_NOT_FOUND);
        CHECK_OK(sgm_trainer_reset(made.trainer));
        CHECK_INT(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer),
                                           "operator.local.0.shared.all_costs", &content),
                  SGM_ERROR_NOT_FOUND);
        sums[0] = sums[1] = 0;
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
        CHECK_NEAR(number_of(made.trainer, "operator.local.1.shared.all_costs"), sums[1], 1e-9);
        free_wave_trainer(made);
    }
}

TEST(each_worker_goes_on_from_its_own_sum_after_a_resume)
{
    operator_maker makers[] = {gradients, parameters};
    char path[64];
    snprintf(path, sizeof path, "/tmp/sigma-local-%d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        double sums[2] = {0}, rest[2] = {0};
        wave_trainer first = make(makers[i], true, sums), second = make(makers[i], true, rest);
        CHECK_OK(sgm_trainer_run(first.trainer, .iterations = 5));
        CHECK_OK(sgm_trainer_save(first.trainer, path));
        CHECK_OK(sgm_trainer_load(second.trainer, path));
        CHECK_NEAR(number_of(second.trainer, "operator.local.1.shared.all_costs"), sums[1], 1e-9);
        CHECK_OK(sgm_trainer_run(second.trainer, .iterations = 7));
        CHECK(rest[0] > 0 && sums[0] > rest[0]);
        CHECK_NEAR(number_of(second.trainer, "operator.local.0.shared.all_costs"), sums[0] + rest[0], 1e-9);
        CHECK_NEAR(number_of(second.trainer, "operator.local.1.shared.all_costs"), sums[1] + rest[1], 1e-9);
        free_wave_trainer(first);
        free_wave_trainer(second);
    }
    unlink(path);
}

/* --- reporters --- */

typedef struct heard {
    char lines[8][160];
    int count;
} heard;

static void hear(void *user, const char *line)
{
    heard *to = user;
    if (to->count < 8)
        snprintf(to->lines[to->count++], sizeof to->lines[0], "%s", line);
}

TEST(means_are_reported_of_each_worker)
{
    double sums[2] = {0};
    char expected[96];
    heard lines = {0};
    wave_trainer made = make(gradients, true, sums);
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_hook_make_local(sgm_mean_reporter("optimiser.loss", sgm_every(1, SGM_EPOCH),
                                                            .report = hear, .user = &lines))));
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_hook_make_local(sgm_value_reporter("worker", sgm_every(1, SGM_EPOCH),
                                                                         .report = hear, .user = &lines))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_INT(lines.count, 4);
    for (int i = 0; i < 2; i++) {
        snprintf(expected, sizeof expected, "worker %d: optimiser.loss = %.6g (mean of 8)", i, sums[i] / 8);
        CHECK_STR(lines.lines[2 * i], expected);
        snprintf(expected, sizeof expected, "worker %d: worker = %d", i, i);
        CHECK_STR(lines.lines[2 * i + 1], expected);
    }
    free_wave_trainer(made);
}

/* The beginning and the end of a run reach the hooks of each worker. */
TEST(hooks_of_workers_hear_of_start_and_stop)
{
    static const sgm_time_scale scales[] = {SGM_START, SGM_STOP};
    operator_maker makers[] = {gradients, parameters};
    for (int i = 0; i < 2; i++) {
        heard lines = {0};
        wave_trainer made = make_wave_trainer((wave_options){0});
        CHECK_OK(sgm_trainer_set_operator(made.trainer, makers[i]()));
        for (int k = 0; k < 2; k++)
            CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_make_local(sgm_value_reporter(
                                                            "worker iteration", sgm_every(1, scales[k]),
                                                            .report = hear, .user = &lines))));
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
        CHECK_INT(lines.count, 4);
        CHECK_STR(lines.lines[0], "worker 0: worker = 0, iteration = 0");
        CHECK_STR(lines.lines[1], "worker 1: worker = 1, iteration = 0");
        CHECK_STR(lines.lines[2], "worker 0: worker = 0, iteration = 2");
        CHECK_STR(lines.lines[3], "worker 1: worker = 1, iteration = 2");
        free_wave_trainer(made);
    }
}

/* A reset of a trainer that does not run reaches them, too. */
TEST(hooks_of_workers_hear_of_an_idle_reset)
{
    operator_maker makers[] = {gradients, parameters};
    for (int i = 0; i < 2; i++) {
        heard lines = {0};
        wave_trainer made = make_wave_trainer((wave_options){0});
        CHECK_OK(sgm_trainer_set_operator(made.trainer, makers[i]()));
        CHECK_OK(sgm_trainer_add_hook(
            made.trainer, sgm_hook_make_local(sgm_value_reporter("worker", sgm_every(1, SGM_RESET),
                                                                 .report = hear, .user = &lines))));
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
        CHECK_INT(lines.count, 0);
        CHECK_OK(sgm_trainer_reset(made.trainer));
        CHECK_INT(lines.count, 2);
        CHECK_STR(lines.lines[0], "worker 0: worker = 0");
        CHECK_STR(lines.lines[1], "worker 1: worker = 1");
        free_wave_trainer(made);
    }
}

/* --- times, series, files --- */

static int lines_of(const char *folder, const char *file, const char *word)
{
    char path[128], *text, *rest, *line;
    size_t length;
    int count = 0;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    CHECK_OK(sgm__file_read(path, 1 << 20, &text, &length));
    rest = text;
    while ((line = strtok_r(rest, "\n", &rest)))
        count += strstr(line, word) != NULL;
    sgm__free(text);
    return count;
}

TEST(series_times_and_statistics_of_each_worker)
{
    char folder[] = "/tmp/sigma-local-XXXXXX", command[64], identifier[96];
    double sums[2] = {0};
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer made = make(gradients, false, sums);
    sgm_hook *hooks[] = {
        sgm_time_series("optimiser.loss", sgm_every(1, SGM_ITERATION), .file = "costs", .capacity = 5),
        sgm_running_time(SGM_ITERATION), sgm_throughput(.every = 1),
        sgm_statistics("network.layers.1-dense.weights", sgm_every(1, SGM_EPOCH))};
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_make_local(hooks[i])));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 13, .folder = folder));
    CHECK_INT(lines_of(folder, "costs-worker0.csv", "optimiser.loss"), 13);
    CHECK_INT(lines_of(folder, "costs-worker1.csv", "optimiser.loss"), 13);
    CHECK_INT(lines_of(folder, "histograms.jsonl", "\"worker\":0"), 1);
    CHECK_INT(lines_of(folder, "histograms.jsonl", "\"worker\":1"), 1);
    double examples[2];
    for (int i = 0; i < 2; i++) {
        sgm_content series, cost;
        snprintf(identifier, sizeof identifier, "operator.local.%d.shared.optimiser_loss_series", i);
        CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), identifier, &series));
        CHECK_INT(sgm_tensor_shape(series.as.tensor)->dims[0], 5);
        snprintf(identifier, sizeof identifier, "operator.local.%d.cost", i);
        CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), identifier, &cost));
        const double *points = sgm_tensor_const_data(series.as.tensor);
        CHECK_NEAR(points[8], 13, 0);
        CHECK_NEAR(points[9], cost.as.number, 0);
        sgm_content_clear(&series);
        snprintf(identifier, sizeof identifier, "operator.local.%d.shared.time_iteration_last", i);
        CHECK(number_of(made.trainer, identifier) > 0);
        snprintf(identifier, sizeof identifier, "operator.local.%d.shared.time_throughput_examples", i);
        examples[i] = number_of(made.trainer, identifier);
        snprintf(identifier, sizeof identifier, "operator.local.%d.shared.time_throughput_iterations", i);
        examples[i] /= number_of(made.trainer, identifier);
    }
    CHECK_NEAR(examples[0] + examples[1], 5, 1e-9); /* of an iteration */
    CHECK_NEAR(fabs(examples[0] - examples[1]), 1, 1e-9);
    free_wave_trainer(made);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

/* --- what cannot be local --- */

TEST(hooks_of_the_whole_trainer_refuse_to_be_local)
{
    sgm_hook *hooks[] = {sgm_save_hook(sgm_every(1, SGM_EPOCH), "best"),
                         sgm_last_checkpoints(2, sgm_every(1, SGM_EPOCH)),
                         sgm_averages_saver("averages", sgm_every(1, SGM_EPOCH)),
                         sgm_nan_watch(.every = 5),
                         sgm_accuracy_reporter("validation", sgm_every(1, SGM_EPOCH), .threshold = 0.5),
                         sgm_metric("f1", "validation"),
                         sgm_modifier_hook("network.layers.*.weights", sgm_modifier_parse("scale(0.5)"),
                                           sgm_every(1, SGM_ITERATION)),
                         sgm_target_maximiser(1, sgm_every(1, SGM_EPOCH))};
    static const char *const reasons[] = {"hook 'save' cannot be local: it saves the trainer",
                                          "hook 'last_checkpoints' cannot be local: it saves",
                                          "hook 'averages_saver' cannot be local: it saves",
                                          "hook 'nan_watch' cannot be local: it watches the trainer",
                                          "hook 'accuracy_reporter' cannot be local: it measures the trainer",
                                          "hook 'f1' cannot be local: it measures the trainer",
                                          "hook 'modifier' cannot be local: it changes values of the trainer",
                                          "hook 'target_maximiser' cannot be local: it looks into"};
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        CHECK_OK(hooks[i]);
        CHECK_ERROR(sgm_hook_make_local(hooks[i]), reasons[i]);
    }
    static const sgm_hook_type own = {
        .api = SGM_HOOK_API, .name = "own", .invoke = add_costs, .only_global = "it is one of a kind"};
    CHECK_ERROR(sgm_hook_create(&own, NULL, .local = true),
                "hook 'own' cannot be local: it is one of a kind");
}

/* --- as text --- */

TEST(local_is_a_word_in_front_of_a_text)
{
    double sums[2] = {0};
    wave_trainer made = make_wave_trainer((wave_options){.shuffle = true, .seed = 3, .batch = 5});
    CHECK_OK(sgm_trainer_set_operator(made.trainer, gradients()));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_hook_parse("local every 2 iterations accumulator(optimiser.loss, name=odd)")));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_hook_parse("local every 1 iteration if worker >= 1 and iteration >= 6 then stop")));
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_hook_create(&adder, sums, .when = sgm_every(2, SGM_ITERATION),
                                                           .failure = SGM_HOOK_STOP)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_INT(made.trainer->position.iteration, 6);
    CHECK_NEAR(number_of(made.trainer, "operator.local.0.shared.odd"), sums[0], 1e-9);
    CHECK_NEAR(number_of(made.trainer, "operator.local.1.shared.odd"), sums[1], 1e-9);
    free_wave_trainer(made);
}

TEST(a_text_says_where_it_cannot_be_local)
{
    CHECK_ERROR(sgm_hook_parse(" local every 1 epoch save(\"best\")"),
                "column 2: hook 'save' cannot be local: it saves");
    CHECK_ERROR(sgm_hook_parse("local every 1 epoch accumlator(x)"), "column 21: ");
    CHECK_ERROR(sgm_hook_parse("local"), "column 6: ");
    sgm_hook *hook = sgm_hook_parse("local accumulator(x)"), *other = sgm_hook_parse("accumulator(x)");
    CHECK_OK(hook);
    CHECK_OK(other);
    sgm_hook_free(hook);
    sgm_hook_free(other);
}

/* Help and types say the same. */
TEST(help_shows_what_can_be_local)
{
    for (size_t i = 0; sgm_hook_name_at(i) != NULL; i++) {
        static const char *const tries[] = {"local %s", "local %s(x)", "local %s(\"x\", y)", "local %s(0)",
                                            "local %s(x, \"scale(0.5)\")"};
        char *help = sgm_hook_help(sgm_hook_name_at(i));
        CHECK_OK(help);
        bool possible = false, refused = false;
        for (size_t k = 0; k < sizeof tries / sizeof *tries; k++) {
            char text[120];
            snprintf(text, sizeof text, tries[k], sgm_hook_name_at(i));
            sgm_hook *hook = sgm_hook_parse(text);
            possible = possible || hook != NULL;
            refused = refused || (hook == NULL && strstr(sgm_last_error(), "cannot be local") != NULL);
            sgm_hook_free(hook);
        }
        CHECK(possible != refused);
        CHECK_INT(strncmp(help, "[local] [", strlen("[local] [")) == 0, possible);
        sgm_string_free(help);
    }
}

/* --- while it runs --- */

static sgm_status attach_one(void *self, sgm_hook_call *call)
{
    char **name = self;
    return sgm_trainer_attach_hook(sgm_hook_trainer(call),
                                   sgm_hook_parse("local accumulator(optimiser.loss, name=late)"), name);
}

TEST(a_local_text_that_was_attached_to_a_run_comes_back_with_its_checkpoint)
{
    static const sgm_hook_type attacher = {.api = SGM_HOOK_API, .name = "attacher", .invoke = attach_one};
    operator_maker makers[] = {gradients, parameters};
    char path[64];
    snprintf(path, sizeof path, "/tmp/sigma-local-%d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        char *name = NULL;
        double sums[2][2];
        wave_trainer made[2];
        for (int k = 0; k < 2; k++) {
            made[k] = make_wave_trainer((wave_options){.shuffle = true, .seed = 3, .batch = 5});
            CHECK_OK(sgm_trainer_set_operator(made[k].trainer, makers[i]()));
        }
        CHECK_OK(
            sgm_trainer_add_hook(made[0].trainer, sgm_hook_create(&attacher, &name, .failure = SGM_HOOK_STOP,
                                                                  .when = sgm_after(2, SGM_ITERATION))));
        CHECK_OK(sgm_trainer_run(made[0].trainer, .iterations = 4));
        CHECK_STR(name, "local accumulator#1");
        sgm_string_free(name);
        CHECK_OK(sgm_trainer_save(made[0].trainer, path));
        CHECK_OK(sgm_trainer_load(made[1].trainer, path));
        for (int k = 0; k < 2; k++) {
            CHECK_OK(sgm_trainer_run(made[k].trainer, .iterations = 7));
            sums[k][0] = number_of(made[k].trainer, "operator.local.0.shared.late");
            sums[k][1] = number_of(made[k].trainer, "operator.local.1.shared.late");
        }
        CHECK_NEAR(sums[1][0], sums[0][0], 1e-12);
        CHECK_NEAR(sums[1][1], sums[0][1], 1e-12);
        CHECK(sums[0][0] != sums[0][1]);
        sgm_attached_hook *list;
        size_t count;
        CHECK_OK(sgm_trainer_hooks(made[1].trainer, &list, &count));
        CHECK_INT(count, 1);
        CHECK_STR(list[0].name, "local accumulator#1");
        CHECK_STR(list[0].text, "local accumulator(optimiser.loss, name=late)");
        sgm_attached_hooks_free(list, count);
        CHECK_OK(sgm_trainer_detach_hook(made[1].trainer, "local accumulator#1"));
        CHECK_ERROR(sgm_trainer_detach_hook(made[1].trainer, "accumulator"), "no hook is named");
        free_wave_trainer(made[0]);
        free_wave_trainer(made[1]);
    }
    unlink(path);
}
