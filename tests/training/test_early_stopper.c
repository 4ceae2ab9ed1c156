/* early_stopper: the weights that it leaves are those of the best check. The score that it watches is made
 * up, so that the best epoch is the third and the run ends after the sixth. */
#include "waves.h"

#include "base/folder.h"

#include <sigma/operator.h>

#define BEST 3
#define END 6
#define STOPPER "early_stopper(shared.score, patience=3, extremum=minimum)"
#define WEIGHTS "best_weights-shared.score-minimum-every_epoch.safetensors"

static sgm_status share_score(void *self, sgm_hook_call *call)
{
    static const double scores[] = {5, 4, 3, 3.5, 3.2, 4, 1, 1};
    (void)self;
    return sgm_hook_share(call, "score", sgm_number_content(scores[call->epoch <= 8 ? call->epoch - 1 : 7]));
}

static const sgm_hook_type scorer = {.api = SGM_HOOK_API, .name = "scorer", .doc = "", .invoke = share_score};

typedef struct making {
    const char *stopper; /* NULL: none */
    double average;
    bool workers;
} making;

static wave_trainer make(making options)
{
    wave_trainer made = make_wave_trainer((wave_options){
        .seed = 4,
        .shuffle = true,
        .optimiser = sgm_momentum(.learning_rate = 0.1, .momentum = 0.9, .average = options.average)});
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_hook_create(&scorer, NULL, .when = sgm_every(1, SGM_EPOCH))));
    if (options.stopper != NULL)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse(options.stopper)));
    if (options.workers)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    return made;
}

/* Compares a parameter, and its average if there is one, with those of a trainer without an early stopper. */
static void check_weights(sgm_trainer *trainer, making options, int64_t epochs)
{
    static const char *const names[] = {"2-dense.weights", "average.2-dense.weights"};
    options.stopper = NULL;
    wave_trainer other = make(options);
    CHECK_OK(sgm_trainer_run(other.trainer, .epochs = epochs));
    for (int i = 0; i < (options.average > 0 ? 2 : 1); i++) {
        sgm_tensor *own = sgm_trainer_get(trainer, names[i]),
                   *wanted = sgm_trainer_get(other.trainer, names[i]);
        check_near_tensors(own, wanted, 0);
        sgm_tensor_free(own);
        sgm_tensor_free(wanted);
    }
    free_wave_trainer(other);
}

static void check_run(making options, int64_t epochs_of_weights)
{
    open_folder();
    wave_trainer made = make(options), loaded = make(options);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 20, .folder = folder));
    CHECK_INT(made.trainer->position.epoch, END);
    check_weights(made.trainer, options, epochs_of_weights);
    CHECK_OK(sgm_trainer_load(loaded.trainer, in_folder("checkpoint.safetensors")));
    check_weights(loaded.trainer, options, epochs_of_weights);
    free_wave_trainer(loaded);
    free_wave_trainer(made);
    close_folder();
}

TEST(the_weights_are_those_of_the_best_epoch)
{
    check_run((making){.stopper = STOPPER}, BEST);
    check_run((making){.stopper = STOPPER, .average = 0.9}, BEST);
    check_run((making){.stopper = STOPPER, .workers = true}, BEST);
}

TEST(the_last_weights_stay_if_that_is_wanted)
{
    check_run(
        (making){.stopper = "early_stopper(shared.score, patience=3, extremum=minimum, keep_last=true)"},
        END);
}

TEST(a_run_without_a_folder_restores_too)
{
    wave_trainer made = make((making){.stopper = STOPPER});
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 20));
    CHECK_INT(made.trainer->position.epoch, END);
    check_weights(made.trainer, (making){0}, BEST);
    free_wave_trainer(made);
}

/* A run that ends by its epochs keeps its last weights, so that a longer one goes on from them. */
TEST(the_best_weights_survive_an_interruption)
{
    for (int64_t first = 1; first < END; first++) {
        open_folder();
        wave_trainer made = make((making){.stopper = STOPPER});
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = first, .folder = folder));
        check_weights(made.trainer, (making){0}, first);
        free_wave_trainer(made);
        made = make((making){.stopper = STOPPER});
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 20, .folder = folder, .resume = true));
        CHECK_INT(made.trainer->position.epoch, END);
        check_weights(made.trainer, (making){0}, BEST);
        free_wave_trainer(made);
        close_folder();
    }
}

TEST(checks_within_epochs_keep_no_weights)
{
    open_folder();
    wave_trainer made =
        make((making){.stopper = "every 1 iteration early_stopper(optimiser.loss, patience=1)"});
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 20, .folder = folder));
    CHECK(made.trainer->position.iteration < 80);
    size_t count;
    sgm_attached_hook *list;
    CHECK_OK(sgm_trainer_hooks(made.trainer, &list, &count));
    CHECK_INT(count, 2); /* the scorer is the other one */
    sgm_attached_hooks_free(list, count);
    free_wave_trainer(made);
    close_folder();
}

TEST(the_best_weights_can_be_loaded_alone)
{
    open_folder();
    wave_trainer made = make((making){.stopper = STOPPER}), other = make((making){0});
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4, .folder = folder));
    CHECK_OK(sgm_trainer_load_parts(other.trainer, in_folder(WEIGHTS), .parts = SGM_PART_PARAMETERS));
    check_weights(other.trainer, (making){0}, BEST);
    free_wave_trainer(other);
    free_wave_trainer(made);
    close_folder();
}
