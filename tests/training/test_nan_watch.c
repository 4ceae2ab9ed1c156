/* The NaN watch: names the step, the instruction and the layer, keeps the state before, and changes nothing.
 */
#include "base/folder.h"
#include "waves.h"

#include <unistd.h>

/* Weights of 1e25 in the second layer: squared by those of the third they are beyond float32. */
static wave_trainer overflowing_trainer(const char *handler)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.handler = handler,
                       .network = "input(6) + dense(8, tanh) + dense(5) + dense(4) + dense(3) + "
                                  "softmax_cross_entropy"});
    CHECK_OK(sgm_trainer_add_initialiser(made.trainer, "2-dense.weights", sgm_constant_value(.value = 1e25)));
    CHECK_OK(sgm_trainer_add_initialiser(made.trainer, "3-dense.weights", sgm_constant_value(.value = 1e25)));
    return made;
}

TEST(the_layer_that_overflows_is_named)
{
    static const char *const handlers[] = {"reference", "cpu"};
    for (int i = 0; i < 2; i++) {
        open_folder();
        wave_trainer made = overflowing_trainer(handlers[i]);
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_nan_watch()));
        CHECK_INT(sgm_trainer_run(made.trainer, .iterations = 5, .folder = folder), SGM_ERROR_NUMERIC);
        const char *message = sgm_last_error();
        CHECK(strstr(message, "at iteration 1, in epoch 1") != NULL);
        CHECK(strstr(message, "infinity at (") != NULL);
        CHECK(strstr(message, "matmul") != NULL);
        CHECK(strstr(message, "3-dense") != NULL);
        CHECK(strstr(message, "nan-1.safetensors") != NULL);
        free_wave_trainer(made);
        close_folder();
    }
}

#define LINEAR                                                                                               \
    (wave_options)                                                                                           \
    {                                                                                                        \
        .handler = "cpu", .shuffle = true,                                                                   \
        .network = "input(6) + dense(8) + dense(5) + dense(5) + dense(3) + softmax_cross_entropy"            \
    }

static sgm_status raise_rate(void *self, sgm_hook_call *call)
{
    (void)self;
    return sgm_hook_request_set(call, "optimiser.learning_rate", sgm_number_content(1e6));
}
static const sgm_hook_type raising = {.api = SGM_HOOK_API, .name = "raise", .invoke = raise_rate};

static wave_trainer raising_trainer(bool pause)
{
    wave_trainer made = make_wave_trainer(LINEAR);
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_hook_create(&raising, NULL, .when = sgm_after(17, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_nan_watch(.every = 7, .pause = pause)));
    return made;
}

/* Three epochs in, the learning rate is ruined: two steps later the parameters overflow. */
TEST(steps_are_done_again_with_the_rates_they_had)
{
    open_folder();
    wave_trainer made = raising_trainer(false);
    CHECK_INT(sgm_trainer_run(made.trainer, .iterations = 40, .folder = folder), SGM_ERROR_NUMERIC);
    const char *message = sgm_last_error();
    CHECK(strstr(message, "at iteration 20, in epoch 5") != NULL);
    CHECK(strstr(message, "matmul, layer 2-dense") != NULL);
    CHECK_INT(made.trainer->position.iteration, 19);
    char path[128];
    snprintf(path, sizeof path, "%s/nan-20.safetensors", folder);

    /* What it kept is where the training stands after 19 steps that was not watched. */
    wave_trainer kept = make_wave_trainer(LINEAR);
    CHECK_OK(sgm_trainer_load(kept.trainer, path));
    CHECK_INT(kept.trainer->position.iteration, 19);
    wave_trainer calm = make_wave_trainer(LINEAR);
    CHECK_OK(sgm_trainer_add_hook(calm.trainer,
                                  sgm_hook_create(&raising, NULL, .when = sgm_after(17, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_run(calm.trainer, .iterations = 19));
    static const char *const names[] = {"2-dense.weights", "optimiser.momentum.2-dense.weights"};
    for (int i = 0; i < 2; i++) {
        sgm_tensor *a = sgm_trainer_get(kept.trainer, names[i]), *b = sgm_trainer_get(calm.trainer, names[i]);
        CHECK(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), 40 * sizeof(float)) == 0);
        sgm_tensor_free(a);
        sgm_tensor_free(b);
    }
    free_wave_trainer(kept);
    free_wave_trainer(calm);

    snprintf(path, sizeof path, "%s/nan-20-batch.safetensors", folder);
    sgm_bundle *batch = sgm_bundle_load(path);
    CHECK_OK(batch);
    CHECK(sgm_bundle_get(batch, "inputs") != NULL && sgm_bundle_get(batch, "targets") != NULL);
    sgm_bundle_free(batch);
    free_wave_trainer(made);
    close_folder();
}

/* While it is paused, everything is set right: parameters, momentum and the rate. */
static sgm_status mend(void *self, sgm_hook_call *call)
{
    sgm_trainer *trainer = sgm_hook_trainer(call);
    const char *name;
    ++*(int *)self;
    CHECK_INT(call->iteration, 19);
    CHECK_INT(trainer->position.batch, 3);
    for (size_t i = 0; (name = sgm_session_state_at(trainer->learner.session, i)) != NULL; i++) {
        sgm_tensor *value = sgm_trainer_get(trainer, name);
        CHECK(isfinite(*(const float *)sgm_tensor_const_data(value)));
        memset(sgm_tensor_data(value), 0,
               sizeof(float) * (size_t)sgm_shape_elements(sgm_tensor_shape(value)));
        CHECK_OK(sgm_trainer_set(trainer, name, value));
        sgm_tensor_free(value);
    }
    SGM_TRY(sgm_registry_resolve_set(call->registry, "optimiser.learning_rate", sgm_number_content(0.1), NULL,
                                     NULL));
    return sgm_trainer_resume(trainer);
}
static const sgm_hook_type mending = {.api = SGM_HOOK_API, .name = "mend", .invoke = mend};

TEST(a_pause_stands_before_the_bad_step)
{
    int pauses = 0;
    wave_trainer made = raising_trainer(true);
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_hook_create(&mending, &pauses, .when = sgm_every(1, SGM_PAUSE))));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 40));
    CHECK_INT(pauses, 1);
    CHECK_INT(made.trainer->position.iteration, 40);
    free_wave_trainer(made);
}

TEST(nothing_changes_when_all_is_well)
{
    wave_trainer watched = make_wave_trainer(LINEAR);
    wave_trainer plain = make_wave_trainer(LINEAR);
    CHECK_OK(sgm_trainer_add_hook(watched.trainer, sgm_nan_watch(.every = 1)));
    CHECK_OK(sgm_trainer_run(watched.trainer, .iterations = 9));
    CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 9));
    sgm_tensor *a = sgm_trainer_get(watched.trainer, "1-dense.weights");
    sgm_tensor *b = sgm_trainer_get(plain.trainer, "1-dense.weights");
    CHECK(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), 48 * sizeof(float)) == 0);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    free_wave_trainer(watched);
    free_wave_trainer(plain);
    CHECK_ERROR(sgm_nan_watch(.every = 251), "1 to 250");
}

/* What was bad is told, steps are not done again. */
TEST(several_workers_are_told_of)
{
    wave_trainer made = overflowing_trainer("cpu");
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_nan_watch()));
    CHECK_ERROR(sgm_trainer_find_learning_rate(made.trainer), "one worker");
    CHECK_INT(sgm_trainer_run(made.trainer, .iterations = 5), SGM_ERROR_NUMERIC);
    CHECK(strstr(sgm_last_error(), "several workers") != NULL);
    free_wave_trainer(made);
}
