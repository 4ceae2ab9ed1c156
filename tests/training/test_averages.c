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
    sgm_tensor *left = sgm_session_get(a->learner.session, x),
               *right = sgm_session_get(b->learner.session, y);
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
    CHECK(sgm_trainer_has_swapped_averages(made.trainer));
    CHECK(equal(made.trainer, "1-dense.weights", plain.trainer, "average.1-dense.weights"));
    CHECK(equal(made.trainer, "average.1-dense.weights", plain.trainer, "1-dense.weights"));
    sgm_dataset *dataset = wave_dataset();
    sgm_metrics with, without;
    sgm_iterator *iterator = sgm_by_block(dataset);
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
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_averages_saver("smooth", sgm_after(2, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3, .folder = folder));
    CHECK(!sgm_trainer_has_swapped_averages(made.trainer));
    CHECK_OK(sgm_trainer_run(plain.trainer, .epochs = 2));
    wave_trainer loaded = averaging_trainer();
    snprintf(path, sizeof path, "%s/smooth.safetensors", folder);
    CHECK_OK(sgm_trainer_load(loaded.trainer, path));
    CHECK(sgm_trainer_has_swapped_averages(loaded.trainer));
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

/* --- parameters that are set --- */

static sgm_tensor *weights_of_ones(void)
{
    sgm_shape shape = sgm_shape_of(6, 8);
    double ones[48];
    for (int i = 0; i < 48; i++)
        ones[i] = 1;
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_OK(tensor);
    CHECK_OK(sgm_tensor_write(tensor, ones, 48));
    return tensor;
}

static void set_in_c(wave_trainer made)
{
    sgm_tensor *ones = weights_of_ones();
    CHECK_OK(sgm_trainer_set(made.trainer, "1-dense.weights", ones));
    sgm_tensor_free(ones);
}

/* As the page and `sigma ctl` do it. */
static void set_in_the_registry(wave_trainer made)
{
    sgm_tensor *ones = weights_of_ones();
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    sgm_content found;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "network.layers.1-dense", &found));
    CHECK_OK(sgm_registry_set(found.as.registry, "weights", sgm_tensor_content(ones)));
    sgm_content_clear(&found);
    sgm_tensor_free(ones);
}

/* From a checkpoint that has averages, which are not asked for. */
static void load_only_it(wave_trainer made)
{
    char folder[] = "/tmp/sigma-averages-XXXXXX", path[128];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/other.safetensors", folder);
    wave_trainer other = averaging_trainer();
    CHECK_OK(sgm_trainer_run(other.trainer, .iterations = 2));
    CHECK_OK(sgm_trainer_save(other.trainer, path));
    CHECK_OK(sgm_trainer_load_parts(made.trainer, path, .parts = SGM_PART_PARAMETERS,
                                    .states = "1-dense.weights", .skip_mismatch = true));
    free_wave_trainer(other);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0);
}

static sgm_status set_in_a_hook(void *user, sgm_hook_call *call)
{
    const int *at = user;
    if (sgm_hook_trainer(call)->position.iteration != *at)
        return SGM_OK;
    sgm_tensor *ones = weights_of_ones();
    sgm_status status = sgm_trainer_set(sgm_hook_trainer(call), "1-dense.weights", ones);
    sgm_tensor_free(ones);
    return status;
}

/* Its average is what was set, until training goes on; other averages stay. */
static void check_set(void (*set)(wave_trainer made), sgm_operator *workers)
{
    wave_trainer made = averaging_trainer(), plain = averaging_trainer();
    if (workers != NULL)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, workers));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    CHECK_OK(sgm_trainer_copy_parts(plain.trainer, made.trainer));
    set(made);
    sgm_tensor *value = sgm_trainer_get(made.trainer, "1-dense.weights"),
               *average = sgm_trainer_get(made.trainer, "average.1-dense.weights");
    CHECK_OK(value);
    CHECK_OK(average);
    CHECK(memcmp(sgm_tensor_const_data(value), sgm_tensor_const_data(average), 48 * sizeof(float)) == 0);
    CHECK(equal(made.trainer, "average.2-dense.weights", plain.trainer, "average.2-dense.weights"));
    CHECK(!equal(made.trainer, "average.1-dense.weights", plain.trainer, "average.1-dense.weights"));
    sgm_tensor_free(value);
    sgm_tensor_free(average);
    free_wave_trainer(made);
    free_wave_trainer(plain);
}

TEST(what_is_set_is_evaluated)
{
    check_set(set_in_c, NULL);
    check_set(set_in_the_registry, NULL);
    check_set(load_only_it, NULL);
    check_set(set_in_c, sgm_parameter_operator(.workers = 2, .every = 2));
    check_set(set_in_the_registry, sgm_parameter_operator(.workers = 2, .every = 2));
    check_set(set_in_c, sgm_gradient_operator(.workers = 2));
}

TEST(what_is_set_is_measured_as_without_averages)
{
    wave_trainer made = averaging_trainer(), none = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    CHECK_OK(sgm_trainer_prepare(none.trainer));
    size_t count;
    const sgm_parameter *parameters = sgm_trainer_parameters(none.trainer, &count);
    CHECK_INT(count, 6);
    for (size_t i = 0; i < count; i++) {
        sgm_tensor *value = sgm_trainer_get(none.trainer, parameters[i].name);
        CHECK_OK(sgm_trainer_set(made.trainer, parameters[i].name, value));
        sgm_tensor_free(value);
    }
    sgm_dataset *dataset = wave_dataset();
    sgm_iterator *iterator = sgm_by_block(dataset);
    sgm_metrics set, expected;
    CHECK_OK(sgm_trainer_evaluate(made.trainer, iterator, &set));
    CHECK_OK(sgm_trainer_evaluate(none.trainer, iterator, &expected));
    CHECK_NEAR(set.loss, expected.loss, 0);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    free_wave_trainer(made);
    free_wave_trainer(none);
}

/* Set after iteration 3: after one more update an average is 0.8 of the ones and 0.2 of the parameter. */
TEST(an_average_begins_anew_at_what_a_hook_sets)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "setter", .invoke = set_in_a_hook};
    int at = 3;
    wave_trainer made = averaging_trainer();
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&type, &at, .failure = SGM_HOOK_STOP)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    sgm_tensor *value = sgm_trainer_get(made.trainer, "1-dense.weights"),
               *average = sgm_trainer_get(made.trainer, "average.1-dense.weights");
    const float *w = sgm_tensor_const_data(value), *a = sgm_tensor_const_data(average);
    for (int i = 0; i < 48; i++)
        CHECK_NEAR(a[i], 0.8 + 0.2 * w[i], 1e-6);
    sgm_tensor_free(value);
    sgm_tensor_free(average);
    free_wave_trainer(made);
}

TEST(an_average_can_be_set_alone)
{
    wave_trainer made = averaging_trainer(), plain = averaging_trainer();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 2));
    CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 2));
    sgm_tensor *ones = weights_of_ones();
    CHECK_OK(sgm_trainer_set(made.trainer, "average.1-dense.weights", ones));
    CHECK(equal(made.trainer, "1-dense.weights", plain.trainer, "1-dense.weights"));
    CHECK(!equal(made.trainer, "average.1-dense.weights", plain.trainer, "average.1-dense.weights"));
    sgm_tensor_free(ones);
    free_wave_trainer(made);
    free_wave_trainer(plain);
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
