/* Values that are read and set by other threads, as fast as they can, while a trainer runs. */
#include "waves.h"

#include "control/control.h"
#include "train/train.h"

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
            CHECK_OK(sgm_registry_resolve_set(sgm_trainer_registry(self->trainer), rows[i].identifier,
                                              content, NULL, NULL));
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
            if (sgm_registry_resolve(sgm_trainer_registry(self->trainer), identifiers[i], &matches) == SGM_OK)
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

/* --- a monitor looks from the moment that the trainer is made, whatever its program does meanwhile --- */

static void obey(sgm_trainer *trainer, const char *request)
{
    const sgm__control_call call = {
        .trainer = trainer, .who = "monitor", .role = SGM__ROLE_ADMIN, .files = true};
    sgm__free(sgm__control_answer(&call, request, strlen(request))); /* some are refused */
}

static void *look(void *user)
{
    static const char *const requests[] = {
        "{\"command\":\"list\",\"values\":true}",
        "{\"command\":\"hooks\"}",
        "{\"command\":\"attach\",\"hook\":\"accumulator(training.loss)\"}",
        "{\"command\":\"status\"}",
        "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.125}",
        "{\"command\":\"save\",\"name\":\"look\",\"replace\":true}",
        "{\"command\":\"undo\"}",
        "{\"command\":\"changes\"}",
        "{\"command\":\"detach\",\"name\":\"accumulator\"}",
        "{\"command\":\"get\",\"identifier\":\"network.layers.*.*\"}"};
    bother *self = user;
    while (!atomic_load(&self->over))
        for (size_t i = 0; i < sizeof requests / sizeof *requests && !atomic_load(&self->over); i++) {
            sgm_matches matches;
            obey(self->trainer, requests[i]);
            if (sgm_registry_resolve(sgm_trainer_registry(self->trainer), "*.*", &matches) == SGM_OK)
                sgm_matches_free(&matches);
            sgm_tensor_free(sgm_trainer_get(self->trainer, "1-dense.weights"));
            (void)sgm_trainer_status(self->trainer);
            atomic_fetch_add(&self->reads, 1);
        }
    return NULL;
}

static bool go_on(void *user, const sgm_training_progress *progress)
{
    (void)user, (void)progress;
    return true;
}

static void put_together(sgm_trainer *trainer, sgm_dataset *data, bool workers)
{
    CHECK_OK(sgm_trainer_on_progress(trainer, go_on, NULL));
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_value_reporter("epoch", sgm_every(2, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_set_network(trainer, WAVE_NETWORK));
    CHECK_OK(sgm_trainer_add_initialiser(trainer, "*.biases", sgm_initialiser_parse("constant(0.5)")));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 10)));
    CHECK_OK(sgm_trainer_add_data(trainer, "validation", sgm_by_block(data)));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_momentum(.learning_rate = 0.1)));
    CHECK_OK(sgm_trainer_add_modifier(trainer, "*.weights", sgm_modifier_parse("clip(-2, 2)")));
    CHECK_OK(sgm_trainer_freeze(trainer, "1-dense.*"));
    if (workers)
        CHECK_OK(sgm_trainer_set_operator(trainer, sgm_parameter_operator(.workers = 2, .every = 3)));
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_metric("f1", "validation")));
}

static void use(sgm_trainer *trainer, sgm_dataset *data)
{
    sgm_iterator *iterator = sgm_by_block(data);
    sgm_registry *results = sgm_registry_create();
    sgm_metrics metrics;
    CHECK_OK(sgm_trainer_evaluate(trainer, iterator, &metrics));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_evaluate_metrics(trainer, iterator, NULL, results));
    CHECK_OK(sgm_trainer_unfreeze(trainer, "1-dense.*"));
    CHECK_OK(sgm_trainer_on_progress(trainer, go_on, NULL));
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_value_reporter("iteration", sgm_every(3, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_save(trainer, "/tmp/sigma-live-threads.safetensors"));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_load(trainer, "/tmp/sigma-live-threads.safetensors"));
    CHECK_OK(sgm_trainer_evaluate(trainer, iterator, &metrics));
    CHECK_OK(sgm_trainer_set_network(
        trainer, "input(6) + dense(8, relu) + dense(5) + dense(3) + softmax_cross_entropy"));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 4));
    sgm_registry_free(results);
    sgm_iterator_free(iterator);
}

static void look_at_everything(bool workers)
{
    sgm_handler *handler = sgm_handler_create("reference");
    sgm_dataset *data = wave_dataset();
    int looks = 0;
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    for (int round = 0; round < 5; round++) {
        pthread_t threads[2];
        sgm__trainer_settings settings = {.handler = handler, .precision = SGM_FLOAT32};
        bother all = {.trainer = sgm__trainer_create("waves", &settings)};
        CHECK_OK(all.trainer);
        for (int i = 0; i < 2; i++)
            CHECK_INT(pthread_create(&threads[i], NULL, look, &all), 0);
        put_together(all.trainer, data, workers);
        use(all.trainer, data);
        atomic_store(&all.over, true);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        looks += atomic_load(&all.reads);
        sgm__trainer_free(all.trainer);
    }
    CHECK(looks > 10);
    unlink("/tmp/sigma-live-threads.safetensors");
    sgm_dataset_free(data);
    sgm_handler_free(handler);
}

TEST(a_trainer_is_looked_at_while_its_program_uses_it)
{
    look_at_everything(false);
}

TEST(so_is_one_with_workers)
{
    look_at_everything(true);
}
