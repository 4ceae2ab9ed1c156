/* Near ranks that divide the update: each makes its part of it, and all have all of it afterwards. */
#include "ranks_test.h"
#include "waves.h"

#include "parallel/collective/ranks.h"

#define NETWORK "input(6) + dense(64, tanh) + dense(32, relu) + dense(3) + softmax_cross_entropy"

static sgm_optimiser *descent(void)
{
    return sgm_gradient_descent(.learning_rate = 0.2, .weight_decay = 0.01, .clip_value = 0.05);
}

static sgm_optimiser *clipped(void)
{
    return sgm_gradient_descent(.learning_rate = 0.2, .clip_norm = 0.1);
}

static sgm_optimiser *averaged(void)
{
    return sgm_gradient_descent(.learning_rate = 0.2, .average = 0.9);
}

static sgm_optimiser *adam(void)
{
    return sgm_adam(.learning_rate = 0.01, .clip_norm = 0.2, .average = 0.9, .accumulate = 2);
}

typedef struct way {
    sgm_optimiser *(*optimiser)(void);
    int64_t batch;
    int32_t workers;
    bool sharded, divides;
} way;

/* What needs all gradients, or remembers, is not divided where nobody asks for it. */
static const way ways[] = {{descent, 10, 1, false, true},  {descent, 7, 2, false, true},
                           {clipped, 10, 1, false, false}, {averaged, 10, 1, false, false},
                           {descent, 10, 1, true, true},   {clipped, 10, 2, true, true},
                           {adam, 7, 2, true, true}};
#define WAYS (sizeof ways / sizeof *ways)

static wave_trainer make(const way *w)
{
    return make_wave_trainer((wave_options){.network = NETWORK,
                                            .handler = "cpu",
                                            .precision = SGM_FLOAT64,
                                            .optimiser = w->optimiser(),
                                            .shuffle = true,
                                            .seed = 3,
                                            .batch = w->batch});
}

static sgm__ranks *give_ranks(const way *w, sgm_trainer *trainer)
{
    sgm_operator *ranks =
        sgm_mpi_operator(.workers = w->workers, .timeout = 20, .check_every = 5, .sharded = w->sharded);
    CHECK_OK(ranks);
    CHECK_OK(sgm_trainer_set_operator(trainer, ranks));
    return sgm__trainer_ranks(trainer);
}

/* The last one knows it all, too, but for memory that has owners. */
static void save(const sgm__ranks *ranks, sgm_trainer *trainer, const char *path)
{
    if (ranks->rank == (ranks->options.sharded ? 0 : ranks->count - 1))
        CHECK_OK(sgm_trainer_save(trainer, path));
}

RANK_PART(train)
{
    for (size_t i = 0; i < WAYS; i++) {
        wave_trainer made = make(&ways[i]);
        sgm__ranks *ranks = give_ranks(&ways[i], made.trainer);
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 6));
        CHECK(ranks->node != NULL);
        CHECK(ranks->divides == ways[i].divides);
        save(ranks, made.trainer, rank_file(i));
        free_wave_trainer(made);
    }
}

static void check_equality(int count)
{
    need_ranks();
    open_folder();
    run_ranks(count, "train");
    for (size_t i = 0; i < WAYS; i++) {
        wave_trainer one = make(&ways[i]);
        CHECK_OK(sgm_trainer_run(one.trainer, .epochs = 6));
        check_wave_states(one.trainer, rank_file(i));
        free_wave_trainer(one);
    }
    close_folder();
}

TEST(two_ranks_that_divide_the_update_do_what_one_trainer_does)
{
    check_equality(2);
}

/* Of six parameters, so that one of them may have none. */
TEST(seven_ranks_that_divide_the_update_do_what_one_trainer_does)
{
    check_equality(7);
}

/* --- what happens meanwhile --- */

/* Each rank halves what it has: twice that would be a quarter. */
static bool halve(void *user, const sgm_training_progress *progress)
{
    sgm_trainer *trainer = user;
    if (progress->kind != SGM_PROGRESS_ITERATION || progress->iteration % 5 != 0)
        return true;
    static const char *const names[] = {"1-dense.weights", "2-dense.weights"};
    for (int i = 0; i < 2; i++) {
        double values[WAVE_MAXIMUM];
        sgm_tensor *value = sgm_trainer_get(trainer, names[i]);
        CHECK_OK(value);
        size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(value));
        CHECK(count <= WAVE_MAXIMUM);
        CHECK_OK(sgm_tensor_read(value, values, count));
        for (size_t k = 0; k < count; k++)
            values[k] *= 0.5;
        CHECK_OK(sgm_tensor_write(value, values, count));
        CHECK_OK(sgm_trainer_set(trainer, names[i], value));
        sgm_tensor_free(value);
    }
    return true;
}

/* Values that are set, parameters that come and go, states from a file. */
static void train_eventfully(sgm_trainer *trainer, const char *file)
{
    CHECK_OK(sgm_trainer_on_progress(trainer, halve, trainer));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_freeze(trainer, "2-dense.*"));
    CHECK_OK(sgm_trainer_save(trainer, file));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 5));
    CHECK_OK(sgm_trainer_load(trainer, file));
    CHECK_OK(sgm_trainer_unfreeze(trainer, "2-dense.*"));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 5));
}

RANK_PART(eventful)
{
    char name[32];
    wave_trainer made = make(&ways[0]);
    sgm__ranks *ranks = give_ranks(&ways[0], made.trainer);
    snprintf(name, sizeof name, "between.%d", ranks->rank);
    char *file = sgm__strdup(rank_path(name));
    train_eventfully(made.trainer, file);
    CHECK(ranks->divides);
    save(ranks, made.trainer, rank_path("end.safetensors"));
    sgm__free(file);
    free_wave_trainer(made);
}

TEST(what_is_set_frozen_and_loaded_reaches_the_divided_update)
{
    need_ranks();
    open_folder();
    run_ranks(3, "eventful");
    wave_trainer one = make(&ways[0]);
    char *file = sgm__strdup(rank_path("between"));
    train_eventfully(one.trainer, file);
    check_wave_states(one.trainer, rank_path("end.safetensors"));
    sgm__free(file);
    free_wave_trainer(one);
    close_folder();
}

/* --- gradients for who looks --- */

typedef struct watcher {
    sgm_trainer *trainer;
    const char *file; /* NULL: this one does not look */
} watcher;

static bool look(void *user, const sgm_training_progress *progress)
{
    static const char *const names[] = {"optimiser.gradients.1-dense.weights",
                                        "optimiser.gradients.3-dense.weights"};
    const watcher *w = user;
    if (progress->kind != SGM_PROGRESS_ITERATION || w->file == NULL ||
        (progress->iteration != 4 && progress->iteration != 9))
        return true;
    FILE *file = fopen(w->file, progress->iteration == 4 ? "w" : "a");
    CHECK(file != NULL);
    for (int i = 0; i < 2; i++) {
        double values[WAVE_MAXIMUM];
        sgm_content content;
        if (sgm_registry_resolve_one(sgm_trainer_registry(w->trainer), names[i], &content) != SGM_OK)
            continue; /* from now on */
        size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(content.as.tensor));
        CHECK(count <= WAVE_MAXIMUM);
        CHECK_OK(sgm_tensor_read(content.as.tensor, values, count));
        for (size_t k = 0; k < count; k++)
            fprintf(file, "%.17g\n", values[k]);
        sgm_content_clear(&content);
    }
    fclose(file);
    return true;
}

static void watch(sgm_trainer *trainer, const char *file)
{
    watcher w = {trainer, file};
    CHECK_OK(sgm_trainer_on_progress(trainer, look, &w));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 4));
}

RANK_PART(watched)
{
    wave_trainer made = make(&ways[0]);
    sgm__ranks *ranks = give_ranks(&ways[0], made.trainer);
    char *file = sgm__strdup(rank_path("gradients"));
    watch(made.trainer, ranks->rank == 0 ? file : NULL);
    CHECK(ranks->divides);
    save(ranks, made.trainer, rank_path("end.safetensors"));
    sgm__free(file);
    free_wave_trainer(made);
}

static void check_same_numbers(const char *path, const char *wanted)
{
    FILE *file = fopen(path, "r"), *other = fopen(wanted, "r");
    double number, expected;
    size_t count = 0;
    CHECK(file != NULL && other != NULL);
    for (; fscanf(other, "%lf", &expected) == 1; count++) {
        CHECK_INT(fscanf(file, "%lf", &number), 1);
        CHECK_NEAR(number, expected, 1e-10);
    }
    CHECK_INT(count, 6 * 64 + 32 * 3);
    fclose(file);
    fclose(other);
}

TEST(who_looks_sees_the_gradients_of_all_parameters)
{
    need_ranks();
    open_folder();
    run_ranks(2, "watched");
    wave_trainer one = make(&ways[0]);
    char *file = sgm__strdup(rank_path("wanted")), *seen = sgm__strdup(rank_path("gradients"));
    watch(one.trainer, file);
    check_same_numbers(seen, file);
    sgm__free(file);
    sgm__free(seen);
    free_wave_trainer(one);
    close_folder();
}
