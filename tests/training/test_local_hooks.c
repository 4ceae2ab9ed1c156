/* Ready-made hooks as local ones: each worker has its own sums, times and series. */
#include "waves.h"

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

static double number_of(sgm_trainer *trainer, const char *identifier)
{
    sgm_content content;
    CHECK_OK(sgm_resolve_one(sgm_trainer_registry(trainer), identifier, &content));
    return content.as.number;
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
        CHECK_OK(sgm_trainer_operator(made.trainer, maker()));
    CHECK_OK(sgm_trainer_hook(
        made.trainer, sgm_hook_make_local(sgm_accumulator("optimiser.cost_total", .name = "all_costs"))));
    if (before)
        CHECK_OK(sgm_trainer_operator(made.trainer, maker()));
    CHECK_OK(sgm_trainer_hook(made.trainer, sgm_hook_create(&adder, sums, .failure = SGM_HOOK_STOP)));
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
        CHECK_INT(sgm_resolve_one(sgm_trainer_registry(made.trainer), "shared.all_costs", &content),
                  SGM_ERROR_NOT_FOUND);
        CHECK_OK(sgm_trainer_reset(made.trainer));
        CHECK_INT(sgm_resolve_one(sgm_trainer_registry(made.trainer), "operator.local.0.shared.all_costs",
                                  &content),
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
    CHECK_OK(sgm_trainer_hook(
        made.trainer, sgm_hook_make_local(sgm_mean_reporter("optimiser.cost_total", sgm_every(1, SGM_EPOCH),
                                                            .report = hear, .user = &lines))));
    CHECK_OK(sgm_trainer_hook(made.trainer,
                              sgm_hook_make_local(sgm_value_reporter("worker", sgm_every(1, SGM_EPOCH),
                                                                     .report = hear, .user = &lines))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_INT(lines.count, 4);
    for (int i = 0; i < 2; i++) {
        snprintf(expected, sizeof expected, "worker %d: optimiser.cost_total = %.6g (mean of 8)", i,
                 sums[i] / 8);
        CHECK_STR(lines.lines[2 * i], expected);
        snprintf(expected, sizeof expected, "worker %d: worker = %d", i, i);
        CHECK_STR(lines.lines[2 * i + 1], expected);
    }
    free_wave_trainer(made);
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
        sgm_time_series("optimiser.cost_total", sgm_every(1, SGM_ITERATION), .file = "costs", .capacity = 5),
        sgm_running_time(SGM_ITERATION), sgm_throughput(.every = 1),
        sgm_statistics("network.layers.1-dense.weights", sgm_every(1, SGM_EPOCH))};
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        CHECK_OK(sgm_trainer_hook(made.trainer, sgm_hook_make_local(hooks[i])));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 13, .folder = folder));
    CHECK_INT(lines_of(folder, "costs-worker0.csv", "optimiser.cost_total"), 13);
    CHECK_INT(lines_of(folder, "costs-worker1.csv", "optimiser.cost_total"), 13);
    CHECK_INT(lines_of(folder, "histograms.jsonl", "\"worker\":0"), 1);
    CHECK_INT(lines_of(folder, "histograms.jsonl", "\"worker\":1"), 1);
    double records[2];
    for (int i = 0; i < 2; i++) {
        sgm_content series, cost;
        snprintf(identifier, sizeof identifier, "operator.local.%d.shared.optimiser_cost_total_series", i);
        CHECK_OK(sgm_resolve_one(sgm_trainer_registry(made.trainer), identifier, &series));
        CHECK_INT(sgm_tensor_shape(series.as.tensor)->dims[0], 5);
        snprintf(identifier, sizeof identifier, "operator.local.%d.cost", i);
        CHECK_OK(sgm_resolve_one(sgm_trainer_registry(made.trainer), identifier, &cost));
        const double *points = sgm_tensor_const_data(series.as.tensor);
        CHECK_NEAR(points[8], 13, 0);
        CHECK_NEAR(points[9], cost.as.number, 0);
        sgm_content_clear(&series);
        snprintf(identifier, sizeof identifier, "operator.local.%d.shared.time_iteration_last", i);
        CHECK(number_of(made.trainer, identifier) > 0);
        snprintf(identifier, sizeof identifier, "operator.local.%d.shared.time_throughput_records", i);
        records[i] = number_of(made.trainer, identifier);
        snprintf(identifier, sizeof identifier, "operator.local.%d.shared.time_throughput_iterations", i);
        records[i] /= number_of(made.trainer, identifier);
    }
    CHECK_NEAR(records[0] + records[1], 5, 1e-9); /* of an iteration */
    CHECK_NEAR(fabs(records[0] - records[1]), 1, 1e-9);
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
                         sgm_f1_metric("validation"),
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
