/* Averages in place of the parameters. */
#include "waves.h"

#include <unistd.h>

static wave_trainer averaging_trainer(void)
{
    return make_wave_trainer(
        (wave_options){.shuffle = true, .optimiser = sgm_adam(.learning_rate = 0.05, .average = 0.8)});
}

static bool equal(sgm_trainer *a, const char *x, sgm_trainer *b, const char *y)
{
    sgm_tensor *left = sgm_session_get(a->session, x), *right = sgm_session_get(b->session, y);
    CHECK_OK(left);
    CHECK_OK(right);
    size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(left)) * sizeof(float);
    bool same = memcmp(sgm_tensor_const_data(left), sgm_tensor_const_data(right), bytes) == 0;
    sgm_tensor_free(left);
    sgm_tensor_free(right);
    return same;
}

TEST(twice_is_as_before_and_training_goes_on)
{
    wave_trainer made = averaging_trainer(), plain = averaging_trainer();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 6));
    CHECK(!equal(made.trainer, "1-dense.weights", made.trainer, "average.1-dense.weights"));
    CHECK_OK(sgm_trainer_swap_averages(made.trainer));
    CHECK(sgm_trainer_averages_are_in(made.trainer));
    CHECK(equal(made.trainer, "1-dense.weights", plain.trainer, "average.1-dense.weights"));
    CHECK(equal(made.trainer, "average.1-dense.weights", plain.trainer, "1-dense.weights"));
    sgm_dataset *dataset = wave_dataset();
    sgm_metrics with, without;
    sgm_iterator *iterator = sgm_undivided(dataset);
    CHECK_OK(sgm_trainer_evaluate(made.trainer, iterator, &with));
    CHECK_OK(sgm_trainer_evaluate(plain.trainer, iterator, &without));
    CHECK_NEAR(with.loss, without.loss, 0); /* validation uses averages anyway */
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    CHECK_OK(sgm_trainer_swap_averages(made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 11));
    CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 11));
    CHECK(equal(made.trainer, "2-dense.weights", plain.trainer, "2-dense.weights"));
    CHECK(equal(made.trainer, "average.2-dense.weights", plain.trainer, "average.2-dense.weights"));
    free_wave_trainer(made);
    free_wave_trainer(plain);
}

TEST(a_checkpoint_says_which_it_holds)
{
    char folder[] = "/tmp/sigma-averages-XXXXXX", path[128];
    CHECK(mkdtemp(folder) != NULL);
    wave_trainer made = averaging_trainer(), plain = averaging_trainer();
    CHECK_OK(sgm_trainer_hook(made.trainer, sgm_averages_saver("smooth", sgm_after(2, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3, .folder = folder));
    CHECK(!sgm_trainer_averages_are_in(made.trainer));
    CHECK_OK(sgm_trainer_run(plain.trainer, .epochs = 2));
    wave_trainer loaded = averaging_trainer();
    snprintf(path, sizeof path, "%s/smooth.safetensors", folder);
    CHECK_OK(sgm_trainer_load(loaded.trainer, path));
    CHECK(sgm_trainer_averages_are_in(loaded.trainer));
    CHECK(equal(loaded.trainer, "1-dense.weights", plain.trainer, "average.1-dense.weights"));
    CHECK_OK(sgm_trainer_swap_averages(loaded.trainer));
    CHECK_OK(sgm_trainer_run(loaded.trainer, .epochs = 3));
    CHECK(equal(loaded.trainer, "1-dense.weights", made.trainer, "1-dense.weights"));
    free_wave_trainer(made);
    free_wave_trainer(plain);
    free_wave_trainer(loaded);
    snprintf(path, sizeof path, "rm -r %s", folder);
    CHECK_INT(system(path), 0);
}

TEST(training_on_averages_is_refused)
{
    wave_trainer made = averaging_trainer();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    CHECK_OK(sgm_trainer_swap_averages(made.trainer));
    CHECK_ERROR(sgm_trainer_run(made.trainer, .iterations = 3), "put them back before training");
    free_wave_trainer(made);
    wave_trainer none = make_wave_trainer((wave_options){0});
    CHECK_ERROR(sgm_trainer_swap_averages(none.trainer), "there are no averages");
    free_wave_trainer(none);
}
