/* Values that are read and set by other threads, as fast as they can, while a trainer runs. */
#include "waves.h"

#include <stdatomic.h>
#include <unistd.h>

typedef struct bother {
    sgm_trainer *trainer;
    atomic_bool over;
    atomic_int sets, reads, copies;
} bother;

static void *set_values(void *user)
{
    static const struct {
        const char *identifier, *values[2];
        sgm_kind kind;
    } rows[] = {
        {"iterator.minibatch_size", {"7", "10"}, SGM_KIND_INTEGER},
        {"iterator.shuffle", {"true", "false"}, SGM_KIND_BOOLEAN},
        {"network.layers.*<dropout>.rate", {"0.25", "0"}, SGM_KIND_NUMBER},
        {"optimiser.costs.*.importance", {"2", "1"}, SGM_KIND_NUMBER},
        {"optimiser.frozen", {"1-dense.*", ""}, SGM_KIND_TEXT},
        {"optimiser.accumulate", {"3", "1"}, SGM_KIND_INTEGER},
        {"optimiser.average", {"0.5", "0"}, SGM_KIND_NUMBER},
        {"optimiser.schedule.kind", {"step", "cosine"}, SGM_KIND_TEXT},
        {"optimiser.learning_rate", {"0.01", "0.02"}, SGM_KIND_NUMBER},
    };
    bother *self = user;
    for (int round = 0; !atomic_load(&self->over); round++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            sgm_content content;
            CHECK_OK(sgm_content_parse(rows[i].values[round % 2], rows[i].kind, &content));
            CHECK_OK(sgm_resolve_set(sgm_trainer_registry(self->trainer), rows[i].identifier, content, NULL,
                                     NULL));
            sgm_content_clear(&content);
            atomic_fetch_add(&self->sets, 1);
        }
    return NULL;
}

static void *read_values(void *user)
{
    static const char *const identifiers[] = {"optimiser.gradients.*.*", "optimiser.updates.*.weights", "*.*",
                                              "network.layers.*<layer>.*", "optimiser.costs.*.*"};
    bother *self = user;
    while (!atomic_load(&self->over))
        for (size_t i = 0; i < sizeof identifiers / sizeof *identifiers; i++) {
            sgm_matches matches;
            if (sgm_resolve(sgm_trainer_registry(self->trainer), identifiers[i], &matches) == SGM_OK)
                sgm_matches_free(&matches);
            else
                CHECK_INT(sgm_last_status(), SGM_ERROR_STATE); /* nothing is kept yet, or all is frozen */
            atomic_fetch_add(&self->reads, 1);
        }
    return NULL;
}

static void *copy_values(void *user)
{
    bother *self = user;
    while (!atomic_load(&self->over)) {
        sgm_registry *copy = sgm_registry_copy(sgm_trainer_registry(self->trainer));
        CHECK_OK(copy);
        sgm_registry_free(copy);
        atomic_fetch_add(&self->copies, 1);
        usleep(1000);
    }
    return NULL;
}

static bool is_enough(void *user, const sgm_training_progress *progress)
{
    bother *self = user;
    (void)progress;
    return atomic_load(&self->sets) < 300 || atomic_load(&self->reads) < 100 ||
           atomic_load(&self->copies) < 5;
}

TEST(everything_is_read_and_set_while_it_runs)
{
    static void *(*const functions[])(void *) = {set_values, read_values, copy_values};
    pthread_t threads[3];
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = "input(6) + dense(8, tanh) + dropout(0.5) + dense(5, relu) + dense(3) + "
                                  "softmax_cross_entropy"});
    bother all = {.trainer = made.trainer};
    CHECK_OK(sgm_trainer_on_progress(made.trainer, is_enough, &all));
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, functions[i], &all), 0);
    CHECK_INT(sgm_trainer_run(made.trainer, .epochs = 1000000), SGM_ERROR_INTERRUPTED);
    atomic_store(&all.over, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    free_wave_trainer(made);
}
