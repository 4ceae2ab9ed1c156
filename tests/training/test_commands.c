/* Commands to a trainer that is idle, runs or is paused: reset, restore. */
#include "commands_test.h"

/* --- reset --- */

TEST(an_idle_trainer_is_reset_to_its_beginning)
{
    wave_trainer fresh = make(), made = make();
    CHECK_OK(sgm_trainer_reset(made.trainer)); /* before anything is there */
    CHECK_OK(sgm_trainer_prepare(fresh.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 9));
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_NEAR(number_of(made.trainer, "iteration"), 0, 0);
    CHECK_NEAR(number_of(made.trainer, "epoch"), 0, 0);
    CHECK_NEAR(number_of(made.trainer, "running_time"), 0, 0);
    CHECK(isnan(number_of(made.trainer, "training.loss")));
    CHECK(isnan(number_of(made.trainer, "optimiser.loss")));
    CHECK(same_states(fresh.trainer, made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 9));
    CHECK_OK(sgm_trainer_run(fresh.trainer, .iterations = 9));
    CHECK(same_states(fresh.trainer, made.trainer));
    free_wave_trainer(fresh);
    free_wave_trainer(made);
}

TEST(a_paused_trainer_is_reset_and_stays_paused)
{
    wave_trainer fresh = make(), made = make();
    background run;
    begin(&run, made.trainer, NULL);
    pause_it(made.trainer);
    CHECK_OK(sgm_registry_resolve_set(made.trainer->registry, "optimiser.learning_rate",
                                      sgm_number_content(0.02), NULL, NULL));
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_INT(sgm_trainer_get_state(made.trainer), SGM_TRAINER_PAUSED);
    CHECK_NEAR(number_of(made.trainer, "iteration"), 0, 0);
    CHECK_NEAR(number_of(made.trainer, "running_time"), 0, 0);
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.02, 0); /* what was set stays */
    step(made.trainer, 7);
    CHECK_OK(sgm_registry_resolve_set(fresh.trainer->registry, "optimiser.learning_rate",
                                      sgm_number_content(0.02), NULL, NULL));
    CHECK_OK(sgm_trainer_run(fresh.trainer, .iterations = 7));
    CHECK(same_states(fresh.trainer, made.trainer));
    end(&run);
    free_wave_trainer(fresh);
    free_wave_trainer(made);
}

TEST(a_running_trainer_goes_on_from_the_beginning)
{
    wave_trainer made = make();
    background run;
    begin(&run, made.trainer, NULL);
    while (number_of(made.trainer, "iteration") < 400)
        usleep(1000);
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_INT(sgm_trainer_get_state(made.trainer), SGM_TRAINER_RUNNING);
    CHECK(number_of(made.trainer, "iteration") < 400);
    while (number_of(made.trainer, "iteration") < 20)
        usleep(1000);
    end(&run);
    free_wave_trainer(made);
}

/* A parameter that only every third iteration has begins anew when it comes again. */
static sgm_value now_and_then(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    sgm_shape shape = sgm_shape_of(8);
    (void)count;
    if (sgm_layer_iteration(call) % 3 != 2)
        return inputs[0];
    return sgm_multiply(
        graph, inputs[0],
        sgm_layer_parameter(call, graph, "factors", &shape, 8, 8, true, "uniform(minimum=0.5, maximum=1.5)"));
}

static const sgm_layer_type rare_layer = {.api = SGM_LAYER_API,
                                          .flags = SGM_LAYER_DYNAMIC,
                                          .name = "rare",
                                          .doc = "a factor now and then",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .forward = now_and_then};

TEST(parameters_that_come_later_begin_anew_then)
{
    CHECK_OK(sgm_register_layer(&rare_layer));
    wave_options options = {.network = "input(6) + dense(8, tanh) + rare + dense(3) + softmax_cross_entropy",
                            .seed = 8};
    wave_trainer made = make_wave_trainer(options), fresh = make_wave_trainer(options);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 10));
    sgm_tensor *trained = sgm_trainer_get(made.trainer, "2-rare.factors");
    CHECK_OK(trained);
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 7));
    CHECK_OK(sgm_trainer_run(fresh.trainer, .iterations = 7));
    CHECK(same_states(fresh.trainer, made.trainer));
    sgm_tensor_free(trained);
    free_wave_trainer(made);
    free_wave_trainer(fresh);
}

static sgm_operator *gradients(void)
{
    return sgm_gradient_operator(.workers = 2);
}

static sgm_operator *parameters(void)
{
    return sgm_parameter_operator(.workers = 2, .every = 3);
}

TEST(workers_are_reset_and_restored_with_their_trainer)
{
    sgm_operator *(*const kinds[])(void) = {gradients, parameters};
    for (int kind = 0; kind < 2; kind++) {
        open_folder();
        wave_trainer made = make(), fresh = make();
        background run;
        CHECK_OK(sgm_trainer_set_operator(made.trainer, kinds[kind]()));
        CHECK_OK(sgm_trainer_set_operator(fresh.trainer, kinds[kind]()));
        begin(&run, made.trainer, folder);
        pause_it(made.trainer);
        CHECK_OK(sgm_trainer_reset(made.trainer));
        step(made.trainer, 4);
        CHECK_OK(sgm_trainer_save(made.trainer, in_folder("four.safetensors")));
        step(made.trainer, 5);
        CHECK_OK(sgm_trainer_restore(made.trainer, "four"));
        step(made.trainer, 3);
        CHECK_OK(sgm_trainer_run(fresh.trainer, .iterations = 7));
        CHECK(same_states(fresh.trainer, made.trainer));
        end(&run);
        free_wave_trainer(made);
        free_wave_trainer(fresh);
        close_folder();
    }
}

TEST(validation_and_results_are_forgotten)
{
    sgm_content content;
    wave_trainer made = make();
    sgm_dataset *data = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_by_block(data)));
    sgm_dataset_free(data);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_accumulator("training.loss", .name = "sum")));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(number_of(made.trainer, "validation.loss") > 0);
    double sum = number_of(made.trainer, "shared.sum");
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_INT(sgm_registry_resolve_one(made.trainer->registry, "validation.loss", &content),
              SGM_ERROR_NOT_FOUND);
    CHECK_INT(sgm_registry_resolve_one(made.trainer->registry, "shared.sum", &content), SGM_ERROR_NOT_FOUND);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(number_of(made.trainer, "shared.sum") == sum); /* the hook began anew, too */
    CHECK(number_of(made.trainer, "validation.loss") > 0);
    free_wave_trainer(made);
}

TEST(hooks_begin_anew_and_those_that_lived_come_back)
{
    wave_trainer made = make();
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_rule_hook("after 6 iterations set optimiser.learning_rate += 0.5")));
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_rule_hook("at reset set optimiser.learning_rate += 0.125")));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 9));
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.51, 1e-12);
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5));
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 0.635, 1e-12);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 8));
    CHECK_NEAR(number_of(made.trainer, "optimiser.learning_rate"), 1.135, 1e-12);
    free_wave_trainer(made);
}

TEST(a_rule_resets_a_run)
{
    wave_trainer made = make(), fresh = make();
    CHECK_OK(sgm_trainer_attach_hook(made.trainer, sgm_rule_hook("at epoch 3 reset"), NULL));
    /* The rule comes back with the reset, so it has to be taken off. */
    background run;
    begin(&run, made.trainer, NULL);
    usleep(50000);
    CHECK(number_of(made.trainer, "epoch") <= 3); /* 3 while the reset is under way */
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, "rule"));
    pause_it(made.trainer);
    CHECK_OK(sgm_trainer_reset(made.trainer));
    step(made.trainer, 10);
    CHECK_OK(sgm_trainer_run(fresh.trainer, .iterations = 10));
    CHECK(same_states(made.trainer, fresh.trainer));
    end(&run);
    free_wave_trainer(made);
    free_wave_trainer(fresh);
}

TEST(a_reset_that_is_asked_for_at_the_end_is_done)
{
    wave_trainer made = make();
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook("at stop reset")));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_NEAR(number_of(made.trainer, "iteration"), 0, 0);
    free_wave_trainer(made);
}

/* --- restore --- */

TEST(restoring_keeps_what_it_leaves)
{
    open_folder();
    wave_trainer made = make(), other = make();
    background run;
    begin(&run, made.trainer, folder);
    pause_it(made.trainer);
    CHECK_OK(sgm_trainer_save(made.trainer, in_folder("old.safetensors")));
    double at = number_of(made.trainer, "iteration");
    step(made.trainer, 40);
    sgm_tensor *left = sgm_trainer_get(made.trainer, "1-dense.weights");
    CHECK_OK(sgm_trainer_restore(made.trainer, "old"));
    CHECK_INT(sgm_trainer_get_state(made.trainer), SGM_TRAINER_PAUSED);
    CHECK_NEAR(number_of(made.trainer, "iteration"), at, 0);
    CHECK_OK(sgm_trainer_load(other.trainer, in_folder("old.safetensors")));
    CHECK(same_states(other.trainer, made.trainer));
    CHECK_INT(lines_with("journal.jsonl", "\"event\":\"restore\"",
                         "\"who\":\"program\",\"name\":\"old\",\"of\":\""),
              1);
    CHECK_INT(lines_with("journal.jsonl", "\"branch\":0,", "\"begun\":1,"), 1);
    CHECK_INT(lines_with("journal.jsonl", "\"left_checkpoint\":\"before-branch-1\"", "\"begun_iteration\":"),
              1);
    CHECK_OK(sgm_trainer_load(other.trainer, in_folder("before-branch-1.safetensors")));
    CHECK_NEAR(number_of(other.trainer, "iteration"), at + 40, 0);
    sgm_tensor *kept = sgm_trainer_get(other.trainer, "1-dense.weights");
    CHECK(memcmp(sgm_tensor_const_data(left), sgm_tensor_const_data(kept), 6 * 8 * sizeof(float)) == 0);
    int lines = lines_with("metrics.jsonl", "\"branch\":0", "epoch");
    CHECK(lines >= 10);
    step(made.trainer, 40);
    CHECK_INT(lines_with("metrics.jsonl", "\"branch\":0", "epoch"), lines);
    CHECK_INT(lines_with("metrics.jsonl", "\"branch\":1", "epoch"), 10);
    end(&run);
    sgm_tensor_free(left);
    sgm_tensor_free(kept);

    /* A resume goes on with the newest branch, and cuts off its lines only. */
    wave_trainer resumed = make();
    int64_t epochs = (int64_t)number_of(made.trainer, "epoch") + 1;
    CHECK_OK(sgm_trainer_run(resumed.trainer, .epochs = epochs, .folder = folder, .resume = true));
    CHECK_INT(resumed.trainer->journal.branch, 1);
    CHECK_INT(lines_with("metrics.jsonl", "\"branch\":0", "epoch"), lines);
    CHECK_INT(lines_with("metrics.jsonl", "\"branch\":1", "epoch"), 11);
    free_wave_trainer(resumed);
    free_wave_trainer(other);
    free_wave_trainer(made);
    close_folder();
}

TEST(results_that_a_restored_checkpoint_lacks_are_forgotten)
{
    sgm_content content;
    wave_trainer made = make();
    sgm_dataset *data = wave_dataset();
    open_folder();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_by_block(data)));
    sgm_dataset_free(data);
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_accumulator("training.loss", .name = "sum", .when = sgm_every(1, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    CHECK_OK(sgm_trainer_save(made.trainer, in_folder("first.safetensors")));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(number_of(made.trainer, "validation.loss") > 0);
    CHECK(number_of(made.trainer, "shared.sum") > 0);
    CHECK_OK(sgm_trainer_restore(made.trainer, in_folder("first.safetensors")));
    CHECK_INT(sgm_registry_resolve_one(made.trainer->registry, "validation.loss", &content),
              SGM_ERROR_NOT_FOUND);
    CHECK_INT(sgm_registry_resolve_one(made.trainer->registry, "shared.sum", &content), SGM_ERROR_NOT_FOUND);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(number_of(made.trainer, "validation.loss") > 0);
    free_wave_trainer(made);
    close_folder();
}

/* The watch repeats the steps behind its snapshot, which must be one of the branch that the restore has
 * begun. */
TEST(after_a_restore_the_nan_watch_goes_back_no_further)
{
    open_folder();
    wave_trainer made = make(), bad = make();
    background run;
    CHECK_OK(sgm_trainer_run(bad.trainer, .iterations = 5));
    sgm_tensor *weights = sgm_trainer_get(bad.trainer, "3-dense.weights");
    CHECK_OK(weights);
    for (int i = 0; i < 8 * 3; i++)
        ((float *)sgm_tensor_data(weights))[i] = 3e38F;
    CHECK_OK(sgm_trainer_set(bad.trainer, "3-dense.weights", weights));
    sgm_tensor_free(weights);
    CHECK_OK(sgm_trainer_save(bad.trainer, in_folder("bad.safetensors")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_nan_watch(.every = 250)));
    begin(&run, made.trainer, folder);
    pause_it(made.trainer);
    CHECK_OK(sgm_trainer_restore(made.trainer, "bad"));
    CHECK_OK(sgm_trainer_resume(made.trainer));
    pthread_join(run.thread, NULL);
    CHECK_INT(run.status, SGM_ERROR_NUMERIC);
    CHECK(strstr(run.error, "matmul, layer 3-dense") != NULL);
    free_wave_trainer(bad);
    free_wave_trainer(made);
    close_folder();
}

TEST(a_checkpoint_that_cannot_be_taken_changes_nothing)
{
    open_folder();
    wave_trainer made = make(), same = make();
    background run;
    begin(&run, made.trainer, folder);
    pause_it(made.trainer);
    CHECK_OK(sgm_trainer_save(made.trainer, in_folder("good.safetensors")));
    CHECK_OK(sgm_trainer_load(same.trainer, in_folder("good.safetensors")));
    char *text;
    size_t length;
    CHECK_OK(sgm__file_read(in_folder("good.safetensors"), 1 << 20, &text, &length));
    for (size_t cut = 1; cut < length; cut += length / 7) {
        CHECK_OK(sgm__file_write_atomic(in_folder("cut.safetensors"), text, cut));
        CHECK(sgm_trainer_restore(made.trainer, "cut") != SGM_OK);
        CHECK(strstr(sgm_last_error(), "cut.safetensors"));
    }
    wave_trainer another = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_save(another.trainer, in_folder("another.safetensors")));
    CHECK_ERROR(sgm_trainer_restore(made.trainer, "another.safetensors"), "another.safetensors");
    CHECK_ERROR(sgm_trainer_restore(made.trainer, "missing"), "there is no checkpoint");
    CHECK_ERROR(sgm_trainer_restore(made.trainer, ""), "needs the name");
    CHECK(same_states(made.trainer, same.trainer));
    CHECK_INT(made.trainer->journal.branch, 0);
    CHECK(!sgm__file_exists(in_folder("before-branch-1.safetensors")));
    CHECK_INT(lines_with("journal.jsonl", "\"begun\"", ""), 0);
    end(&run);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = made.trainer->position.iteration + 3));
    sgm__free(text);
    free_wave_trainer(another);
    free_wave_trainer(same);
    free_wave_trainer(made);
    close_folder();
}

TEST(idle_and_running_trainers_are_restored_too)
{
    open_folder();
    wave_trainer made = make();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 9));
    CHECK_OK(sgm_trainer_save(made.trainer, in_folder("nine.safetensors")));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 20));
    CHECK_OK(sgm_trainer_restore(made.trainer, in_folder("nine.safetensors")));
    CHECK_NEAR(number_of(made.trainer, "iteration"), 9, 0);
    CHECK(!sgm__file_exists(in_folder("journal.jsonl"))); /* an idle trainer has no folder */
    background run;
    begin(&run, made.trainer, folder);
    while (number_of(made.trainer, "iteration") < 600)
        usleep(1000);
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_OK(sgm_trainer_restore(made.trainer, "nine"));
    CHECK_INT(sgm_trainer_get_state(made.trainer), SGM_TRAINER_RUNNING);
    CHECK(number_of(made.trainer, "iteration") >= 9);
    end(&run);
    CHECK_INT(made.trainer->journal.branch, 2);
    CHECK_INT(lines_with("journal.jsonl", "\"event\":\"reset\"",
                         "\"begun\":1,\"begun_epoch\":0,\"begun_iteration\":0"),
              1);
    CHECK_INT(lines_with("journal.jsonl", "\"name\":\"nine\"",
                         "\"begun\":2,\"begun_epoch\":2,\"begun_iteration\":9"),
              1);
    free_wave_trainer(made);
    close_folder();
}

/* --- from everywhere --- */

static sgm_status reset_once(void *self, sgm_hook_call *call)
{
    int *times = self;
    (void)call;
    return (*times)++ == 0 ? sgm_trainer_reset(*(sgm_trainer **)(void *)(times + 2)) : SGM_OK;
}

static const sgm_hook_type resetter = {.api = SGM_HOOK_API, .name = "resetter", .invoke = reset_once};

typedef struct resetter_self {
    int times, unused;
    sgm_trainer *trainer;
} resetter_self;

static bool reset_at_five(void *user, const sgm_training_progress *progress)
{
    resetter_self *self = user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 5 && self->times++ == 0)
        CHECK_OK(sgm_trainer_reset(self->trainer));
    return true;
}

/* The place does not wait for itself: it is done after the iteration. */
TEST(hooks_and_observers_may_reset)
{
    for (int kind = 0; kind < 3; kind++) {
        wave_trainer made = make(), fresh = make();
        resetter_self self = {.trainer = made.trainer};
        if (kind == 2)
            CHECK_OK(sgm_trainer_on_progress(made.trainer, reset_at_five, &self));
        else
            CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&resetter, &self,
                                                                        .when = sgm_every(5, SGM_ITERATION),
                                                                        .background = kind == 1)));
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 8));
        CHECK(self.times >= 1);
        if (kind == 1 && number_of(made.trainer, "iteration") == 0) /* it came after the last one */
            CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 8));
        CHECK_NEAR(number_of(made.trainer, "iteration"), 8, 0);
        CHECK_OK(sgm_trainer_run(fresh.trainer, .iterations = 8));
        CHECK(same_states(made.trainer, fresh.trainer));
        free_wave_trainer(made);
        free_wave_trainer(fresh);
    }
}

static sgm_status reset_other(void *self, sgm_hook_call *call)
{
    (void)call;
    sgm_status status = sgm_trainer_reset(self);
    return status == SGM_ERROR_STATE ? SGM_OK : status; /* changed by another thread just now */
}

static const sgm_hook_type other_resetter = {
    .api = SGM_HOOK_API, .name = "other_resetter", .invoke = reset_other};

TEST(two_runs_that_reset_each_other_do_not_stand_still)
{
    wave_trainer one = make(), two = make();
    background first, second;
    CHECK_OK(sgm_trainer_add_hook(
        one.trainer, sgm_hook_create(&other_resetter, two.trainer, .when = sgm_every(3, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_add_hook(
        two.trainer, sgm_hook_create(&other_resetter, one.trainer, .when = sgm_every(2, SGM_ITERATION))));
    first.trainer = one.trainer;
    second.trainer = two.trainer;
    first.options = second.options =
        (sgm_run_options){.struct_size = sizeof first.options, .iterations = 1000000000};
    CHECK_INT(pthread_create(&first.thread, NULL, run_there, &first), 0);
    CHECK_INT(pthread_create(&second.thread, NULL, run_there, &second), 0);
    while (sgm_trainer_get_state(one.trainer) == SGM_TRAINER_IDLE ||
           sgm_trainer_get_state(two.trainer) == SGM_TRAINER_IDLE)
        usleep(1000);
    usleep(100000);
    CHECK_OK(sgm_trainer_reset(one.trainer));
    CHECK_OK(sgm_trainer_stop(one.trainer, NULL));
    pthread_join(first.thread, NULL);
    CHECK_OK(sgm_trainer_reset(two.trainer));
    CHECK_OK(sgm_trainer_stop(two.trainer, NULL));
    pthread_join(second.thread, NULL);
    CHECK_INT(first.status, SGM_OK);
    CHECK_INT(second.status, SGM_OK);
    free_wave_trainer(one);
    free_wave_trainer(two);
}

TEST(each_command_says_what_is_wrong)
{
    wave_trainer made = make();
    CHECK_ERROR(sgm_trainer_pause(made.trainer), "is idle and cannot be paused");
    CHECK_ERROR(sgm_trainer_resume(made.trainer), "is idle and cannot be resumed");
    CHECK_ERROR(sgm_trainer_step(made.trainer, 2), "is idle and cannot be stepped");
    CHECK_ERROR(sgm_trainer_step(made.trainer, 0), "at least 1");
    CHECK_ERROR(sgm_trainer_stop(made.trainer, NULL), "is idle and cannot be stopped");
    CHECK_ERROR(sgm_trainer_restore(made.trainer, "nowhere"), "there is no checkpoint 'nowhere'");
    CHECK_ERROR(sgm_trainer_reset(NULL), "NULL");
    CHECK_ERROR(sgm_trainer_detach_hook(made.trainer, NULL), "NULL");
    background run;
    begin(&run, made.trainer, NULL);
    CHECK_OK(sgm_trainer_step(made.trainer, 4)); /* run on for 4, then pause */
    wait_for_pause(made.trainer);
    CHECK_OK(sgm_trainer_pause(made.trainer)); /* again does nothing */
    CHECK_OK(sgm_trainer_resume(made.trainer));
    end(&run);
    free_wave_trainer(made);
}
