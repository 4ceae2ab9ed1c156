/* Operators and checkpoints: a run that was interrupted goes on to the same bytes. */
#include "waves.h"

#include "parallel/operator.h"

#include <stdlib.h>
#include <unistd.h>

#define DROPPING "input(6) + dropout(0.2) + dense(8, tanh) + dropout(0.3) + dense(3) + softmax_cross_entropy"

typedef sgm_operator *(*operator_maker)(void);

static sgm_operator *gradients(void)
{
    return sgm_gradient_operator(.workers = 2);
}

static sgm_operator *parameters(void)
{
    return sgm_parameter_operator(.workers = 2, .every = 3);
}

static sgm_operator *three_once_an_epoch(void)
{
    return sgm_parameter_operator(.workers = 3, .reducer = sgm_reducer_parse("weighted(1, 2, 3)"));
}

static wave_trainer make(operator_maker maker)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = DROPPING,
                       .handler = "cpu",
                       .optimiser = sgm_adam(.learning_rate = 0.01, .average = 0.9, .accumulate = 2),
                       .shuffle = true,
                       .seed = 11,
                       .batch = 7});
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_hook_make_local(sgm_early_stopper("optimiser.loss", 1000, SGM_MINIMUM,
                                                                        sgm_every(1, SGM_ITERATION)))));
    CHECK_OK(sgm_trainer_set_operator(made.trainer, maker()));
    return made;
}

static void save(sgm_trainer *trainer, const char *name, char **data, size_t *length)
{
    char path[128];
    snprintf(path, sizeof path, "/tmp/sigma-operator-%d-%s", (int)getpid(), name);
    CHECK_OK(sgm_trainer_save(trainer, path));
    if (data != NULL) {
        CHECK_OK(sgm__file_read(path, 1 << 24, data, length));
        unlink(path);
    }
}

/* In the middle of an epoch, and of what is accumulated or merged. */
static void check_resume(operator_maker maker, int64_t until)
{
    char path[128], *whole, *resumed;
    size_t whole_length, resumed_length;
    wave_trainer one = make(maker), first = make(maker), second = make(maker);
    CHECK_OK(sgm_trainer_run(one.trainer, .iterations = 17));
    save(one.trainer, "whole", &whole, &whole_length);
    CHECK_OK(sgm_trainer_run(first.trainer, .iterations = until));
    save(first.trainer, "part", NULL, NULL);
    snprintf(path, sizeof path, "/tmp/sigma-operator-%d-part", (int)getpid());
    CHECK_OK(sgm_trainer_load(second.trainer, path));
    unlink(path);
    CHECK_OK(sgm_trainer_run(second.trainer, .iterations = 17));
    save(second.trainer, "resumed", &resumed, &resumed_length);
    CHECK_INT(resumed_length, whole_length);
    CHECK(memcmp(resumed, whole, whole_length) == 0);
    sgm__free(whole);
    sgm__free(resumed);
    free_wave_trainer(one);
    free_wave_trainer(first);
    free_wave_trainer(second);
}

TEST(a_run_that_merges_gradients_goes_on_to_the_same_bytes)
{
    for (int64_t until = 1; until < 17; until += 3)
        check_resume(gradients, until);
}

TEST(a_run_that_merges_parameters_goes_on_to_the_same_bytes)
{
    for (int64_t until = 1; until < 17; until += 3)
        check_resume(parameters, until);
    for (int64_t until = 2; until < 17; until += 3)
        check_resume(three_once_an_epoch, until);
}

/* Gradients and updates are kept for who reads them, by each worker: none of that is in a checkpoint. */
TEST(what_workers_keep_for_readers_is_no_part_of_a_checkpoint)
{
    char path[128];
    sgm_matches matches;
    wave_trainer one = make(parameters), other = make(parameters);
    CHECK_OK(sgm_trainer_add_hook(one.trainer, sgm_hook_parse("statistics(optimiser.gradients.*.weights)")));
    CHECK_OK(
        sgm_registry_resolve(sgm_trainer_registry(one.trainer), "optimiser.updates.*.weights", &matches));
    sgm_matches_free(&matches);
    CHECK_OK(sgm_trainer_run(one.trainer, .iterations = 7));
    CHECK_OK(
        sgm_registry_resolve(sgm_trainer_registry(one.trainer), "optimiser.gradients.*.weights", &matches));
    CHECK_INT(matches.count, 2);
    sgm_matches_free(&matches);
    save(one.trainer, "kept", NULL, NULL);
    snprintf(path, sizeof path, "/tmp/sigma-operator-%d-kept", (int)getpid());
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    CHECK(sgm_bundle_has(bundle, "workers.1.2-dense.weights"));
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++)
        CHECK(strstr(sgm_bundle_name_at(bundle, i), "trainer.") == NULL);
    sgm_bundle_free(bundle);
    CHECK_OK(sgm_trainer_load(other.trainer, path));
    CHECK_OK(sgm_trainer_run(other.trainer, .iterations = 9));
    unlink(path);
    free_wave_trainer(one);
    free_wave_trainer(other);
}

/* Without workers, or with others, training goes on from what they have learnt together. */
TEST(a_checkpoint_of_workers_is_good_for_a_trainer_without)
{
    char path[128];
    double learnt[24], seen[24];
    wave_trainer two = make(parameters), other[2];
    CHECK_OK(sgm_trainer_run(two.trainer, .iterations = 5));
    save(two.trainer, "other", NULL, NULL);
    snprintf(path, sizeof path, "/tmp/sigma-operator-%d-other", (int)getpid());
    sgm_tensor *value = sgm_trainer_get(two.trainer, "4-dense.weights");
    CHECK_OK(value);
    CHECK_OK(sgm_tensor_read(value, learnt, 24));
    sgm_tensor_free(value);
    other[0] = make(three_once_an_epoch);
    other[1] = make_wave_trainer((wave_options){.network = DROPPING, .optimiser = sgm_adam()});
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sgm_trainer_load(other[i].trainer, path));
        value = sgm_trainer_get(other[i].trainer, "4-dense.weights");
        CHECK_OK(value);
        CHECK_OK(sgm_tensor_read(value, seen, 24));
        sgm_tensor_free(value);
        for (int k = 0; k < 24; k++)
            CHECK_NEAR(seen[k], learnt[k], 0);
        CHECK_OK(sgm_trainer_run(other[i].trainer, .epochs = 3));
        CHECK(!sgm_session_has(other[i].trainer->learner.session, "workers.0.4-dense.weights"));
        free_wave_trainer(other[i]);
    }
    unlink(path);
    free_wave_trainer(two);
}

static sgm_status reset_once(void *self, sgm_hook_call *call)
{
    if (++*(int *)self == 1)
        CHECK_OK(sgm_hook_request_reset(call));
    return SGM_OK;
}

/* After a reset in the middle of an epoch, a run ends as one that had none. */
static void check_reset(operator_maker maker, bool while_it_runs)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "resetter", .invoke = reset_once};
    wave_trainer plain = make(maker), reset = make(maker);
    int calls = 0;
    CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 11));
    if (while_it_runs)
        CHECK_OK(sgm_trainer_add_hook(reset.trainer,
                                      sgm_hook_create(&type, &calls, .when = sgm_after(8, SGM_ITERATION))));
    else
        CHECK_OK(sgm_trainer_run(reset.trainer, .iterations = 8));
    if (!while_it_runs)
        CHECK_OK(sgm_trainer_reset(reset.trainer));
    CHECK_OK(sgm_trainer_run(reset.trainer, .iterations = 11));
    CHECK(!while_it_runs || calls >= 1);
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(plain.trainer->learner.session, i)) != NULL; i++) {
        sgm_tensor *one = sgm_trainer_get(plain.trainer, name), *other = sgm_trainer_get(reset.trainer, name);
        CHECK_OK(one);
        CHECK_OK(other);
        size_t size =
            (size_t)sgm_shape_elements(sgm_tensor_shape(one)) * sgm_dtype_size(sgm_tensor_dtype(one));
        CHECK(memcmp(sgm_tensor_const_data(one), sgm_tensor_const_data(other), size) == 0);
        sgm_tensor_free(one);
        sgm_tensor_free(other);
    }
    free_wave_trainer(plain);
    free_wave_trainer(reset);
}

TEST(a_reset_brings_workers_back_to_the_beginning)
{
    for (int running = 0; running < 2; running++) {
        check_reset(gradients, running);
        check_reset(parameters, running);
        check_reset(three_once_an_epoch, running);
    }
}

TEST(random_numbers_differ_from_worker_to_worker)
{
    wave_trainer made = make(gradients);
    int64_t seeds[2];
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    for (int i = 0; i < 2; i++) {
        sgm_tensor *seed = sgm_session_get(
            made.trainer->sharing.parallel->workers[i].replica->learner.session, "random.seed");
        CHECK_OK(seed);
        memcpy(&seeds[i], sgm_tensor_const_data(seed), sizeof seeds[i]);
        sgm_tensor_free(seed);
    }
    CHECK_INT(seeds[0], 11);
    CHECK(seeds[1] != seeds[0]);
    free_wave_trainer(made);
}

/* What a file has of workers is looked at before anything is taken over. */
TEST(states_of_workers_that_do_not_fit_are_refused)
{
    char path[128];
    sgm_shape scalar = sgm_scalar_shape();
    sgm_tensor *number = sgm_tensor_create_from(SGM_FLOAT32, &scalar, &(float){1});
    wave_trainer made = make(parameters), victim = make(parameters);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5));
    save(made.trainer, "workers", NULL, NULL);
    snprintf(path, sizeof path, "/tmp/sigma-operator-%d-workers", (int)getpid());
    static const char *const names[] = {"workers.0.surplus", "workers.1.4-dense.biases"};
    static const char *const messages[] = {"a worker has 'surplus', the trainer has not",
                                           "'workers.1.4-dense.biases' is of another type or shape"};
    for (int i = 0; i < 2; i++) {
        sgm_bundle *whole = sgm_bundle_load(path), *changed = sgm_bundle_create();
        CHECK_OK(whole);
        CHECK_OK(sgm_bundle_add(changed, names[i], number));
        for (size_t k = 0; k < sgm_bundle_count(whole); k++) {
            const char *name = sgm_bundle_name_at(whole, k);
            if (strcmp(name, names[i]) != 0)
                CHECK_OK(sgm_bundle_add(changed, name, sgm_bundle_get(whole, name)));
        }
        CHECK_OK(sgm_bundle_set_text(changed, "sigma.network", sgm_bundle_get_text(whole, "sigma.network")));
        CHECK_OK(sgm_bundle_set_text(changed, "sigma.state", sgm_bundle_get_text(whole, "sigma.state")));
        char bad[160];
        snprintf(bad, sizeof bad, "%s-bad", path);
        CHECK_OK(sgm_bundle_save(changed, bad));
        CHECK_ERROR(sgm_trainer_load(victim.trainer, bad), messages[i]);
        CHECK_INT(victim.trainer->position.iteration, 0);
        unlink(bad);
        sgm_bundle_free(changed);
        sgm_bundle_free(whole);
    }
    unlink(path);
    sgm_tensor_free(number);
    free_wave_trainer(made);
    free_wave_trainer(victim);
}

/* Amid an epoch each worker has parameters of its own: of what a load leaves alone, their mean stays. */
TEST(what_is_not_loaded_stays_as_workers_have_learnt_it)
{
    char path[128];
    double learnt[24], seen[24];
    wave_trainer made = make(three_once_an_epoch), other = make(three_once_an_epoch);
    CHECK_OK(sgm_trainer_run(other.trainer, .iterations = 1));
    save(other.trainer, "some", NULL, NULL);
    snprintf(path, sizeof path, "/tmp/sigma-operator-%d-some", (int)getpid());
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    wave_trainer same = make(three_once_an_epoch);
    CHECK_OK(sgm_trainer_run(same.trainer, .iterations = 4));
    CHECK_OK(
        sgm_trainer_load_parts(made.trainer, path, .parts = SGM_PART_PARAMETERS, .states = "4-dense.biases"));
    sgm_tensor *value = sgm_trainer_get(same.trainer, "4-dense.weights");
    CHECK_OK(sgm_tensor_read(value, learnt, 24));
    sgm_tensor_free(value);
    value = sgm_trainer_get(made.trainer, "4-dense.weights");
    CHECK_OK(sgm_tensor_read(value, seen, 24));
    sgm_tensor_free(value);
    for (int k = 0; k < 24; k++)
        CHECK_NEAR(seen[k], learnt[k], 0);
    unlink(path);
    free_wave_trainer(made);
    free_wave_trainer(same);
    free_wave_trainer(other);
}
