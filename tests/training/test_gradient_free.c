/* Optimisers without gradients: on functions whose minima are known, in trainings, over a resume, and what
 * they refuse. */
#include "base/folder.h"
#include "training/waves.h"

#include "optim/gradient_free.h"

#define MAXIMUM 32

/* --- on functions --- */

typedef double (*function)(const double *x, size_t n);

static double sphere(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

/* Axes that differ by a factor of 1000, so that a search without a covariance takes a million times as long.
 */
static double ellipsoid(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += pow(1e6, (double)i / (double)(n - 1)) * x[i] * x[i];
    return sum;
}

/* The same in other axes: a reflection by (1, 2, ..., n). */
static double turned_ellipsoid(const double *x, size_t n)
{
    double dot = 0, squares = 0, y[MAXIMUM];
    for (size_t i = 0; i < n; i++) {
        dot += (double)(i + 1) * x[i];
        squares += (double)((i + 1) * (i + 1));
    }
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] - 2 * dot / squares * (double)(i + 1);
    return ellipsoid(y, n);
}

static double rosenbrock(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        double a = x[i + 1] - x[i] * x[i], b = 1 - x[i];
        sum += 100 * a * a + b * b;
    }
    return sum;
}

/* Calls of f until it is below `target`, or `most`. Begins at `start` in each direction. */
static int64_t minimise(const sgm_gradient_free_method *method, function f, size_t n, double start,
                        double rate, double target, int64_t most)
{
    static double memory[MAXIMUM * MAXIMUM * 8];
    double point[MAXIMUM], candidate[MAXIMUM], losses[64];
    const sgm_optimiser_options none = {.population = 0};
    memset(memory, 0, sizeof memory);
    sgm_gradient_free_call call = {.count = n,
                                   .candidates = sgm__gradient_free_candidates(&none, n),
                                   .learning_rate = rate,
                                   .point = point,
                                   .numbers = memory,
                                   .scratch = memory + method->numbers(n)};
    CHECK(method->numbers(n) + method->scratch(n) <= sizeof memory / sizeof *memory);
    for (size_t i = 0; i < n; i++)
        point[i] = start;
    for (int64_t calls = 0; calls < most; calls += call.candidates) {
        call.seed++;
        if (f(point, n) <= target)
            return calls;
        if (method->begin != NULL)
            method->begin(&call);
        for (int64_t k = 0; k < call.candidates; k++) {
            method->ask(&call, k, candidate);
            losses[k] = f(candidate, n);
        }
        method->tell(&call, f(point, n), losses);
    }
    return most;
}

/* Hansen's purecma.m, the program of his tutorial, gives up at 1000 n^2 calls and has found a minimum below
 * 1e-10; a linear rate of convergence on the sphere is about 10 n to 20 n calls for a factor of 1000 in the
 * distance (Hansen and Ostermeier, 2001). */
TEST(cma_es_finds_minima_as_it_should)
{
    const sgm_gradient_free_method *cma = &sgm__cma_es;
    int64_t calls = minimise(cma, sphere, 10, 1, 0.5, 1e-10, 100000);
    CHECK(calls > 500 && calls < 2500);
    calls = minimise(cma, rosenbrock, 8, 0, 0.5, 1e-10, 64000);
    CHECK(calls > 2000 && calls < 20000);
    int64_t straight = minimise(cma, ellipsoid, 8, 1, 0.5, 1e-10, 64000),
            turned = minimise(cma, turned_ellipsoid, 8, 1, 0.5, 1e-10, 64000);
    CHECK(straight < 10000);
    CHECK(turned < 10000);
}

TEST(random_search_gets_nearer)
{
    CHECK(minimise(&sgm__random_search, sphere, 4, 1, 0.1, 0.01, 20000) < 3000);
    CHECK_INT(minimise(&sgm__random_search, ellipsoid, 8, 1, 0.1, 1e-6, 20000), 20000);
}

/* --- in trainings --- */

/* Every state has the same bits. */
static void check_same_states(sgm_trainer *a, sgm_trainer *b)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(a->learner.session, i)) != NULL; i++) {
        sgm_tensor *x = sgm_trainer_get(a, name), *y = sgm_trainer_get(b, name);
        CHECK_OK(x);
        CHECK_OK(y);
        CHECK(sgm_shape_equal(sgm_tensor_shape(x), sgm_tensor_shape(y)));
        size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(x)) * sgm_dtype_size(sgm_tensor_dtype(x));
        if (memcmp(sgm_tensor_const_data(x), sgm_tensor_const_data(y), bytes) != 0)
            TEST_FAIL("%s differs", name);
        sgm_tensor_free(x);
        sgm_tensor_free(y);
    }
}

#define SMALL "input(6) + dense(4, tanh) + dense(3) + softmax_cross_entropy"

static wave_trainer searching(const char *type, int64_t batch)
{
    return make_wave_trainer((wave_options){.network = SMALL,
                                            .handler = "cpu",
                                            .batch = batch,
                                            .shuffle = true,
                                            .seed = 5,
                                            .optimiser = SGM_OPTIMISER(type, .population = 6)});
}

/* The loss of xor after so many generations, and how many of its four examples are right. */
static double xor_loss(const char *type, int64_t epochs, double *accuracy)
{
    sgm_env *env = sgm_env_create("search", .seed = 2);
    sgm_trainer *trainer = sgm_trainer_create(env, "xor");
    sgm_dataset *data = sgm_dataset_open("xor");
    CHECK_OK(
        sgm_trainer_set_network(trainer, "input(2) + dense(3, tanh) + dense(2) + softmax_cross_entropy"));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_full_batch(data)));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, SGM_OPTIMISER(type, .learning_rate = 0.3)));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = epochs));
    sgm_iterator *all = sgm_full_batch(data);
    sgm_metrics metrics;
    CHECK_OK(sgm_trainer_evaluate(trainer, all, &metrics));
    sgm_iterator_free(all);
    sgm_dataset_free(data);
    sgm_env_free(env);
    *accuracy = metrics.accuracy;
    return metrics.loss;
}

TEST(xor_is_learnt_without_gradients)
{
    double accuracy, first = xor_loss("random_search", 1, &accuracy);
    CHECK(first > 0.5);
    CHECK(xor_loss("random_search", 500, &accuracy) < 0.05);
    CHECK_NEAR(accuracy, 1, 0);
    CHECK(xor_loss("cma_es", 150, &accuracy) < 0.01);
    CHECK_NEAR(accuracy, 1, 0);
}

TEST(a_resume_without_gradients_is_exact)
{
    const char *const types[] = {"random_search", "cma_es"};
    for (int t = 0; t < 2; t++) {
        wave_trainer whole = searching(types[t], 10), first = searching(types[t], 10),
                     second = searching(types[t], 10);
        CHECK_OK(sgm_trainer_run(whole.trainer, .epochs = 3));
        CHECK_OK(sgm_trainer_run(first.trainer, .iterations = 6, .epochs = 3, .folder = open_folder()));
        CHECK_OK(sgm_trainer_run(second.trainer, .epochs = 3, .folder = folder, .resume = true));
        CHECK_INT(second.trainer->position.iteration, 12);
        check_same_states(whole.trainer, second.trainer);
        close_folder();
        free_wave_trainer(whole);
        free_wave_trainer(first);
        free_wave_trainer(second);
    }
}

TEST(a_reset_begins_anew_and_clearing_forgets)
{
    wave_trainer made = searching("cma_es", 40), other = searching("cma_es", 40);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5));
    CHECK_OK(sgm_trainer_reset(made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5));
    CHECK_OK(sgm_trainer_run(other.trainer, .epochs = 5));
    check_same_states(made.trainer, other.trainer);
    CHECK_OK(sgm_trainer_clear_optimiser(made.trainer));
    sgm_tensor *state = sgm_trainer_get(made.trainer, "optimiser.search.all.numbers");
    CHECK_OK(state);
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(state));
    double *all = malloc(count * sizeof *all);
    CHECK_OK(sgm_tensor_read(state, all, count));
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(all[i], 0, 0);
    free(all);
    sgm_tensor_free(state);
    free_wave_trainer(made);
    free_wave_trainer(other);
}

static void check_refused(const char *network, sgm_optimiser *optimiser, const char *message)
{
    wave_trainer made = make_wave_trainer((wave_options){.network = network, .optimiser = optimiser});
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1), message);
    free_wave_trainer(made);
}

TEST(what_needs_gradients_is_refused)
{
    check_refused(
        "input(6) + dense(60, tanh) + dense(3) + softmax_cross_entropy", sgm_cma_es(.population = 0),
        "the optimiser cma_es remembers how each pair of parameters goes together, of 400 parameters at "
        "most; the network trains 603");
    CHECK_ERROR(sgm_random_search(.clip_norm = 1),
                "the optimiser random_search has no clip_norm; it has learning_rate, population");
    CHECK_ERROR(sgm_cma_es(.weight_decay = 0.1), "the optimiser cma_es has no weight_decay");
    CHECK_ERROR(sgm_cma_es(.accumulate = 2), "the optimiser cma_es has no accumulate");
    wave_trainer shared = searching("random_search", 10);
    CHECK_OK(sgm_trainer_set_operator(shared.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_ERROR(sgm_trainer_run(shared.trainer, .epochs = 1),
                "the optimiser random_search has no gradients that workers or processes could share");
    free_wave_trainer(shared);
}
