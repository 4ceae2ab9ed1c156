/* Gradients and updates by name: kept for who reads them, of workers too. */
#include "by_name.h"

#include <stdlib.h>
#include <unistd.h>

TEST(gradients_are_kept_for_who_reads_them)
{
    wave_trainer made =
        make_wave_trainer((wave_options){.optimiser = sgm_gradient_descent(.learning_rate = 0.5)});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    sgm_content content;
    sgm_registry *registry = sgm_trainer_registry(made.trainer);
    CHECK_ERROR(sgm_registry_resolve_one(registry, "optimiser.gradients.2-dense.weights", &content),
                "optimiser.gradients.2-dense.weights: gradients are kept from now on");
    CHECK_INT(sgm_last_status(), SGM_ERROR_STATE);
    CHECK_ERROR(sgm_registry_resolve_one(registry, "optimiser.updates.2-dense.weights", &content),
                "updates are kept");
    double before = weight_of(made.trainer, "2-dense.weights");
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    double after = weight_of(made.trainer, "2-dense.weights");
    CHECK_NEAR(element_of(made.trainer, "optimiser.updates.2-dense.weights"), after - before, 1e-7);
    CHECK_NEAR(element_of(made.trainer, "optimiser.gradients.2-dense.weights"), (before - after) / 0.5, 1e-6);
    CHECK_OK(set(made.trainer, "optimiser.frozen", sgm_text_content("1-dense.*")));
    CHECK_ERROR(sgm_registry_resolve_one(registry, "optimiser.gradients.1-dense.weights", &content),
                "1-dense.weights is frozen and has no gradients");
    CHECK_ERROR(set(made.trainer, "optimiser.gradients.2-dense.weights", sgm_number_content(1)),
                "is read-only");
    free_wave_trainer(made);
}

static bool keeps(sgm_trainer *trainer, const char *what)
{
    char *text = sgm_trainer_graph_text(trainer, 10);
    CHECK(text != NULL);
    bool found = strstr(text, what) != NULL;
    sgm_string_free(text);
    return found;
}

/* Who says for how long they are wanted, as a monitor does, does not have them kept for good; a program does,
 * which may read them once an epoch. */
TEST(gradients_are_let_go_of_after_a_while)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_registry *registry = sgm_trainer_registry(made.trainer);
    sgm_content content;
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    made.trainer->kept.read_for = 0.05;
    CHECK_ERROR(sgm_registry_resolve_one(registry, "optimiser.gradients.2-dense.weights", &content),
                "from now on");
    made.trainer->kept.read_for = 0;
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    CHECK(keeps(made.trainer, "trainer.gradients.2-dense.weights"));
    usleep(60000);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK(!keeps(made.trainer, "trainer.gradients.2-dense.weights"));
    CHECK_ERROR(sgm_registry_resolve_one(registry, "optimiser.gradients.2-dense.weights", &content),
                "from now on");
    made.trainer->kept.read_for = 0.01;
    CHECK_ERROR(sgm_registry_resolve_one(registry, "optimiser.gradients.2-dense.weights", &content),
                "from now on");
    made.trainer->kept.read_for = 0;
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5));
    usleep(20000);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 7));
    CHECK(keeps(made.trainer, "trainer.gradients.2-dense.weights"));
    CHECK_OK(sgm_registry_resolve_one(registry, "optimiser.gradients.2-dense.weights", &content));
    sgm_content_clear(&content);
    free_wave_trainer(made);
}

/* Nobody reads: nothing is kept, and the step is the one that it was. */
TEST(what_nobody_reads_is_not_recorded)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    char *text = sgm_trainer_graph_text(made.trainer, 10);
    CHECK(text != NULL && strstr(text, "trainer.gradients") == NULL && strstr(text, "trainer.cost") == NULL);
    sgm_string_free(text);
    sgm_registry *copy = sgm_registry_copy(sgm_trainer_registry(made.trainer)); /* reads all there is */
    CHECK_OK(copy);
    CHECK_STR(described(made.trainer, "iteration"), "2");
    sgm_registry_free(copy);
    text = sgm_trainer_graph_text(made.trainer, 10);
    CHECK(strstr(text, "trainer.gradients.2-dense.weights") != NULL);
    sgm_string_free(text);
    free_wave_trainer(made);
}

/* The mean over the minibatches of an update, before it is clipped. */
TEST(accumulated_gradients_are_those_of_the_update)
{
    double whole = 0, parts = 0;
    static const char *const name = "optimiser.gradients.2-dense.weights";
    for (int i = 0; i < 2; i++) {
        sgm_optimiser *plain = sgm_gradient_descent(.learning_rate = 0.5, .clip_norm = 1e-3),
                      *in_two =
                          sgm_gradient_descent(.learning_rate = 0.5, .clip_norm = 1e-3, .accumulate = 2);
        wave_trainer made = make_wave_trainer(
            (wave_options){.optimiser = i == 0 ? plain : in_two, .batch = i == 0 ? 20 : 10});
        sgm_optimiser_free(i == 0 ? in_two : plain);
        sgm_content content;
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
        CHECK_ERROR(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), name, &content), "are kept");
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
        *(i == 0 ? &whole : &parts) = element_of(made.trainer, name);
        free_wave_trainer(made);
    }
    CHECK(fabs(whole) > 1e-4);
    CHECK_NEAR(parts, whole, 1e-7);
}

static sgm_status look_at_updates(void *self, sgm_hook_call *call)
{
    sgm_content content;
    SGM_TRY(sgm_hook_get(call, "optimiser.updates.2-dense.weights", &content));
    sgm_content_clear(&content);
    ++*(int *)self;
    return SGM_OK;
}

static const sgm_hook_type looker = {.api = SGM_HOOK_API, .name = "looker", .invoke = look_at_updates};

TEST(a_hook_that_names_them_has_them_from_the_first_iteration_on)
{
    static const char *const reads[] = {"optimiser.updates.*.weights", NULL};
    for (int background = 0; background < 2; background++) {
        int looks = 0;
        wave_trainer made = make_wave_trainer((wave_options){0});
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&looker, &looks, .reads = reads,
                                                                    .failure = SGM_HOOK_STOP,
                                                                    .background = background == 1)));
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 3));
        CHECK(background == 1 ? looks >= 1 : looks == 3);
        free_wave_trainer(made);
    }
}

TEST(checkpoints_do_without_what_is_kept)
{
    char folder[64] = "/tmp/sigma-test-XXXXXX", path[2][128], command[128], *bytes[2];
    size_t lengths[2];
    CHECK(mkdtemp(folder) != NULL);
    for (int i = 0; i < 2; i++) {
        wave_trainer made = make_wave_trainer((wave_options){0});
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
        sgm_matches matches;
        if (i == 1)
            CHECK_ERROR(
                sgm_registry_resolve(sgm_trainer_registry(made.trainer), "optimiser.updates.*.*", &matches),
                "updates are kept from now on");
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
        snprintf(path[i], sizeof path[i], "%s/%d.safetensors", folder, i);
        CHECK_OK(sgm_trainer_save(made.trainer, path[i]));
        CHECK_OK(sgm__file_read(path[i], 1 << 20, &bytes[i], &lengths[i]));
        free_wave_trainer(made);
    }
    CHECK_INT(lengths[0], lengths[1]);
    CHECK(memcmp(bytes[0], bytes[1], lengths[0]) == 0);
    sgm__free(bytes[0]);
    sgm__free(bytes[1]);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* --- workers --- */

static bool change_for_workers(void *user, const sgm_training_progress *progress)
{
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    if (progress->iteration == 2) {
        CHECK_OK(set(user, "iterator.minibatch_size", sgm_integer_content(8)));
        CHECK_OK(set(user, "optimiser.costs.*.importance", sgm_number_content(2)));
        CHECK_OK(set(user, "optimiser.accumulate", sgm_integer_content(2)));
    }
    if (progress->iteration == 6)
        CHECK_OK(set(user, "optimiser.frozen", sgm_text_content("1-dense.*")));
    return true;
}

/* Two workers do what one does, to rounding, whatever is changed and looked at. */
TEST(changes_reach_all_workers)
{
    static const char *const reads[] = {"optimiser.updates.*.weights", "optimiser.gradients.*.weights", NULL};
    static const char *const tensors[] = {"optimiser.gradients.2-dense.weights",
                                          "optimiser.updates.2-dense.weights",
                                          "network.layers.1-dense.weights", "network.layers.2-dense.weights"};
    static const char *const numbers[] = {"updates", "iterator.batches", "optimiser.loss",
                                          "optimiser.costs.4-softmax_cross_entropy.partial"};
    wave_trainer made[2];
    int looks[2] = {0};
    for (int i = 0; i < 2; i++) {
        made[i] = make_wave_trainer((wave_options){.shuffle = true, .precision = SGM_FLOAT64});
        if (i == 1)
            CHECK_OK(sgm_trainer_set_operator(made[i].trainer, sgm_gradient_operator(.workers = 2)));
        CHECK_OK(sgm_trainer_on_progress(made[i].trainer, change_for_workers, made[i].trainer));
        CHECK_OK(sgm_trainer_add_hook(
            made[i].trainer, sgm_hook_create(&looker, &looks[i], .reads = reads, .failure = SGM_HOOK_STOP)));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .iterations = 12));
        CHECK_INT(looks[i], 12);
    }
    for (size_t i = 0; i < 4; i++) {
        CHECK_NEAR(element_of(made[1].trainer, tensors[i]), element_of(made[0].trainer, tensors[i]), 1e-9);
        CHECK_NEAR(number_of(made[1].trainer, numbers[i]), number_of(made[0].trainer, numbers[i]), 1e-9);
    }
    CHECK_STR(described(made[1].trainer, "iterator.batches"), "5");
    free_wave_trainer(made[0]);
    free_wave_trainer(made[1]);
}

/* Workers that merge parameters each have gradients of their own; the trainer's are their mean. */
TEST(workers_that_merge_parameters_have_gradients_too)
{
    static const char *const reads[] = {"optimiser.updates.*.weights", NULL};
    int looks = 0;
    wave_trainer made = make_wave_trainer((wave_options){.batch = 20});
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_parameter_operator(.workers = 2, .every = 1)));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_hook_create(&looker, &looks, .reads = reads, .failure = SGM_HOOK_STOP)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 3));
    CHECK_INT(looks, 3);
    double before = weight_of(made.trainer, "2-dense.weights");
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK_NEAR(element_of(made.trainer, "optimiser.updates.2-dense.weights"),
               weight_of(made.trainer, "2-dense.weights") - before, 1e-6);
    free_wave_trainer(made);
}
