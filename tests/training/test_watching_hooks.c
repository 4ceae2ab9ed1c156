/* Time series, reporters of progress, times and means, modifiers at a step. */
#include "waves.h"

#include <unistd.h>

static char said[2048];

static void listen(void *user, const char *line)
{
    (void)user;
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s\n", line);
}

/* One more at each iteration. */
static sgm_status count_up(void *self, sgm_hook_call *call)
{
    (void)self;
    return sgm_hook_share(call, "x", sgm_number_content((double)call->iteration * 2));
}
static const sgm_hook_type counting = {.api = SGM_HOOK_API, .name = "count", .invoke = count_up};

static wave_trainer counting_trainer(void)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&counting, NULL, .priority = -900)));
    return made;
}

static void check_series(sgm_trainer *trainer, int64_t first, int64_t count)
{
    sgm_content content;
    double points[16];
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), "shared.shared_x_series", &content));
    CHECK_INT(sgm_tensor_shape(content.as.tensor)->dims[0], count);
    CHECK_OK(sgm_tensor_read(content.as.tensor, points, (size_t)count * 2));
    for (int64_t i = 0; i < count; i++) {
        CHECK_NEAR(points[2 * i], (double)(first + i), 0);
        CHECK_NEAR(points[2 * i + 1], 2 * (double)(first + i), 0);
    }
    sgm_content_clear(&content);
}

TEST(the_newest_values_stay_over_a_resume)
{
    char folder[] = "/tmp/sigma-series-XXXXXX", path[128], text[1024] = "";
    CHECK(mkdtemp(folder) != NULL);
    for (int part = 0; part < 2; part++) {
        wave_trainer made = counting_trainer();
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_time_series("shared.x", sgm_every(1, SGM_ITERATION),
                                                                    .capacity = 5, .file = "x")));
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = part == 0 ? 3 : 7, .folder = folder,
                                 .resume = part == 1));
        check_series(made.trainer, part == 0 ? 1 : 3, part == 0 ? 3 : 5);
        free_wave_trainer(made);
        if (part == 0) { /* as after a crash that came later than the checkpoint */
            snprintf(path, sizeof path, "%s/x.csv", folder);
            FILE *file = fopen(path, "a");
            CHECK(file != NULL);
            fputs("4,shared.x,99\n5,sha", file);
            fclose(file);
        }
    }
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    CHECK_STR(text, "iteration,identifier,value\n1,shared.x,2\n2,shared.x,4\n3,shared.x,6\n4,shared.x,8\n"
                    "5,shared.x,10\n6,shared.x,12\n7,shared.x,14\n");
    snprintf(path, sizeof path, "rm -r %s", folder);
    CHECK_INT(system(path), 0);
    CHECK_ERROR(sgm_time_series("", sgm_every(1, SGM_EPOCH)), "got none");
    CHECK_ERROR(sgm_time_series("a", sgm_every(1, SGM_EPOCH), .file = "../a"), "../a");
}

TEST(means_are_of_the_iterations_since_the_last_report)
{
    said[0] = '\0';
    wave_trainer made = counting_trainer();
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_mean_reporter("shared.x", sgm_every(1, SGM_EPOCH), .report = listen)));
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_progress_reporter(sgm_every(2, SGM_EPOCH), .report = listen)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    /* 2 4 6 8, then 10 12 14 16 */
    CHECK_STR(said, "shared.x = 5 (mean of 4)\nepoch 2, iteration 8\nshared.x = 13 (mean of 4)\n");
    free_wave_trainer(made);
    CHECK_ERROR(sgm_mean_reporter("", sgm_every(1, SGM_EPOCH)), "got none");
}

TEST(running_times_are_reported)
{
    said[0] = '\0';
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_running_time_reporter(sgm_every(6, SGM_ITERATION),
                                                                     .report = listen, .with_time = true)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 7));
    CHECK(strstr(said, "epoch 1, iteration 6: ") == said);
    CHECK(strstr(said, "iterations/s, on average ") != NULL);
    CHECK(strstr(said, ", last ") != NULL);
    free_wave_trainer(made);
    CHECK_ERROR(sgm_running_time_reporter(sgm_every(1, SGM_STOP)), "iterations or epochs");
}

TEST(modifiers_act_at_their_step)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_modifier_hook("network.layers.*<dense>.weights",
                                                                  sgm_modifier_parse("clip(-0.01, 0.02)"),
                                                                  sgm_every(3, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_modifier_hook("optimiser.learning_rate",
                                                                  sgm_modifier_parse("scale(0.5)"),
                                                                  sgm_every(2, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    double values[48];
    sgm_tensor *weights = sgm_trainer_get(made.trainer, "1-dense.weights");
    CHECK_OK(sgm_tensor_read(weights, values, 48));
    for (int i = 0; i < 48; i++)
        CHECK(values[i] >= -0.0100001 && values[i] <= 0.0200001);
    sgm_tensor_free(weights);
    sgm_content content;
    CHECK_OK(
        sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "optimiser.learning_rate", &content));
    CHECK_NEAR(content.as.number, 0.1 / 8, 1e-12);
    free_wave_trainer(made);
    CHECK_ERROR(sgm_modifier_hook("", sgm_modifier_parse("scale(0.5)"), sgm_every(1, SGM_EPOCH)), "got none");
    CHECK_ERROR(sgm_hook_parse("modifier(optimiser.learning_rate, \"scall(0.5)\")"),
                "column 35: modifier: by: ");
}

/* As of all hooks that do the same, one is attached. */
TEST(modifiers_that_do_the_same_are_one)
{
    static const char *const texts[] = {
        "every 1 iteration modifier(optimiser.learning_rate, \"scale(0.5)\")",
        "every 1 iteration modifier(optimiser.learning_rate, \"scale(0.50)\")",
        "every 1 iteration modifier(optimiser.momentum, \"scale(0.5)\")",
        "every 1 iteration modifier(optimiser.learning_rate, \"clip(0, 0.5)\")"};
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_attached_hook *list;
    size_t count;
    for (size_t i = 0; i < 4; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse(texts[i])));
    CHECK_OK(sgm_trainer_hooks(made.trainer, &list, &count));
    CHECK_INT(count, 3);
    sgm_attached_hooks_free(list, count);
    CHECK_ERROR(sgm_trainer_attach_hook(made.trainer, sgm_hook_parse(texts[1]), NULL),
                "an equal hook is attached already, as 'modifier#1'");
    free_wave_trainer(made);
}
