/* The learning rate finder: its curve, its proposal, and that it leaves no trace. */
#include "train/train.h"
#include "waves.h"

#include <unistd.h>

static void check_equal(sgm_trainer *a, sgm_trainer *b)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(a->learner.session, i)) != NULL; i++) {
        sgm_tensor *left = sgm_session_get(a->learner.session, name),
                   *right = sgm_session_get(b->learner.session, name);
        CHECK_OK(right);
        size_t bytes =
            (size_t)sgm_shape_elements(sgm_tensor_shape(left)) * sgm_dtype_size(sgm_tensor_dtype(left));
        CHECK(memcmp(sgm_tensor_const_data(left), sgm_tensor_const_data(right), bytes) == 0);
        sgm_tensor_free(left);
        sgm_tensor_free(right);
    }
}

static wave_trainer adam_trainer(void)
{
    return make_wave_trainer((wave_options){
        .shuffle = true,
        .seed = 5,
        .network = "input(6) + dense(8, tanh) + dropout(0.3) + dense(3) + softmax_cross_entropy",
        .optimiser = sgm_adam(.learning_rate = 0.01, .average = 0.9)});
}

TEST(training_goes_on_as_if_nothing_had_been)
{
    for (int before = 0; before <= 6; before += 3) { /* 6: within an epoch, whose fourth minibatch is next */
        wave_trainer searched = adam_trainer(), plain = adam_trainer();
        if (before > 0) {
            CHECK_OK(sgm_trainer_run(searched.trainer, .iterations = before));
            CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = before));
        }
        sgm_rate_curve *curve = sgm_trainer_find_learning_rate(searched.trainer, .iterations = 33);
        CHECK_OK(curve);
        sgm_rate_curve_free(curve);
        CHECK_INT(searched.trainer->position.iteration, before);
        CHECK_OK(sgm_trainer_run(searched.trainer, .iterations = 13));
        CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 13));
        check_equal(searched.trainer, plain.trainer);
        free_wave_trainer(searched);
        free_wave_trainer(plain);
    }
}

TEST(rates_rise_geometrically_and_the_proposal_is_between)
{
    wave_trainer made = make_wave_trainer((wave_options){.batch = 40});
    sgm_rate_curve *curve = sgm_trainer_find_learning_rate(made.trainer, .minimum = 1e-4, .maximum = 100,
                                                           .iterations = 61, .smoothing = 0.5);
    CHECK_OK(curve);
    CHECK(curve->count > 30);
    CHECK_NEAR(curve->points[0].rate, 1e-4, 1e-18);
    CHECK_NEAR(curve->points[10].rate, 1e-3, 1e-12);
    CHECK_NEAR(curve->points[30].rate, 0.1, 1e-9);
    CHECK_NEAR(curve->points[0].smoothed, curve->points[0].loss, 1e-12);
    double second = (0.5 * (0.5 * curve->points[0].loss) + 0.5 * curve->points[1].loss) / 0.75;
    CHECK_NEAR(curve->points[1].smoothed, second, 1e-12);
    CHECK(curve->proposed > 1e-3 && curve->proposed <= curve->lowest);

    char path[] = "/tmp/sigma-rates-XXXXXX", line[256];
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0);
    close(descriptor);
    CHECK_OK(sgm_rate_curve_save(curve, path));
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fgets(line, sizeof line, file) != NULL);
    CHECK(strstr(line, "{\"iteration\":1,\"rate\":0.0001,\"loss\":") == line);
    fclose(file);
    unlink(path);
    char *text = sgm_rate_curve_text(curve, 60, 10);
    CHECK_OK(text);
    CHECK(strchr(text, 'O') != NULL && strchr(text, '*') != NULL);
    CHECK(strstr(text, "0.0001") != NULL);
    sgm_string_free(text);
    CHECK_ERROR(sgm_rate_curve_text(curve, 10, 10), "20 to 200");
    sgm_rate_curve_free(curve);
    free_wave_trainer(made);
}

/* (w x - y)^2 with one parameter: training diverges beyond a rate of 1 / x^2 or so. */
TEST(it_ends_where_training_diverges)
{
    wave_trainer made =
        make_wave_trainer((wave_options){.batch = 40,
                                         .network = "input(6) + dense(3) + mean_squared",
                                         .optimiser = sgm_gradient_descent(.learning_rate = 0.1)});
    sgm_rate_curve *curve = sgm_trainer_find_learning_rate(made.trainer, .minimum = 1e-3, .maximum = 1e6);
    CHECK_OK(curve);
    CHECK(curve->diverged);
    CHECK(curve->count < 100);
    CHECK(curve->proposed < 10);
    sgm_rate_curve_free(curve);
    free_wave_trainer(made);
}

/* Rates that are too low for anything to happen: with single examples the loss only wanders, with all of them
 * it hardly moves. */
TEST(nothing_is_proposed_where_the_loss_does_not_fall)
{
    wave_trainer made = make_wave_trainer((wave_options){.batch = 1, .shuffle = true, .seed = 4});
    for (uint64_t seed = 1; seed <= 5; seed++) {
        sgm_rate_curve *curve =
            sgm_trainer_find_learning_rate(made.trainer, .minimum = 1e-9, .maximum = 1e-6);
        CHECK_OK(curve);
        CHECK(isnan(curve->proposed));
        CHECK(curve->noise > 0 && curve->fall < 1.5 * curve->noise);
        sgm_rate_curve_free(curve);
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = (int64_t)seed * 7));
    }
    free_wave_trainer(made);
    made = make_wave_trainer((wave_options){.batch = 40});
    sgm_rate_curve *curve = sgm_trainer_find_learning_rate(made.trainer, .minimum = 1e-9, .maximum = 1e-6);
    CHECK_OK(curve);
    CHECK(curve->fall > 0 && curve->fall < 1e-4);
    CHECK(isnan(curve->proposed));
    sgm_rate_curve_free(curve);
    free_wave_trainer(made);
}

/* The first minibatch has a loss of 25 where the others have 9: the smoothed loss falls most steeply behind
 * it, at rates that change nothing. */
TEST(a_high_first_loss_proposes_nothing)
{
    enum { EXAMPLES = 400 };
    float x[EXAMPLES], y[EXAMPLES];
    for (int i = 0; i < EXAMPLES; i++) {
        x[i] = i % 2 == 0 ? 1 : -1;
        y[i] = (i < 4 ? 5 : 3) * x[i];
    }
    sgm_shape shape = sgm_shape_of(EXAMPLES, 1);
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &shape, x),
                             sgm_tensor_create_from(SGM_FLOAT32, &shape, y)};
    sgm_dataset *line =
        sgm_dataset_create_from("line", (const char *const[]){"inputs", "targets"}, tensors, 2);
    sgm_env *env = sgm_env_create("line", .handler = "reference");
    sgm_trainer *trainer = sgm_trainer_create(env, "line");
    CHECK_OK(sgm_trainer_set_network(trainer, "input(1) + dense(1, no_bias) + mean_squared"));
    CHECK_OK(sgm_trainer_add_initialiser(trainer, "*.weights", sgm_constant_value(.value = 0)));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(line, .size = 4, .no_shuffle = true)));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.1)));
    sgm_rate_curve *curve = sgm_trainer_find_learning_rate(trainer);
    CHECK_OK(curve);
    CHECK_NEAR(curve->points[0].loss, 25, 1e-4);
    CHECK_NEAR(curve->points[1].loss, 9, 1e-3);
    CHECK(curve->proposed > 1e-3 && curve->proposed < 1);
    sgm_rate_curve_free(curve);
    sgm_env_free(env);
    sgm_dataset_free(line);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
}

TEST(wrong_requests_are_refused)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_ERROR(sgm_trainer_find_learning_rate(made.trainer, .minimum = 2, .maximum = 1),
                "0 < minimum < maximum");
    CHECK_ERROR(sgm_trainer_find_learning_rate(made.trainer, .iterations = 3), "10 to 100000 iterations");
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 1));
    free_wave_trainer(made);
    sgm_handler *handler = sgm_handler_create("reference");
    sgm__trainer_settings settings = {.handler = handler};
    sgm_trainer *empty = sgm__trainer_create("empty", &settings);
    CHECK_ERROR(sgm_trainer_find_learning_rate(empty), "has no data yet");
    sgm__trainer_free(empty);
    sgm_handler_free(handler);
}
