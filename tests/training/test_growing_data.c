/* Trainings whose data grow: a resume in the middle of an epoch, in a process that has all examples already,
 * gives the same bits. */
#include "base/folder.h"
#include "training/waves.h"

#define MORE 16

static const char *const fields[] = {"inputs", "targets"};

static void more(sgm_dataset *dataset)
{
    sgm_shape shape = sgm_shape_of(MORE, 3);
    sgm_tensor *tensors[2] = {wave(MORE, 6, 1.1, 1, SGM_FLOAT32), sgm_tensor_create(SGM_FLOAT32, &shape)};
    for (int64_t i = 0; i < MORE; i++)
        sgm_tensor_set(tensors[1], (const int64_t[]){i, i * 5 % 3}, 1);
    CHECK_OK(sgm_dataset_append(dataset, fields, tensors, 2));
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
}

/* An epoch has 4 minibatches. The examples come behind the fifth, in the second epoch. */
static wave_trainer train_until(int64_t iterations, const char *kept)
{
    wave_trainer made = make_wave_trainer((wave_options){.shuffle = true, .seed = 3});
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5));
    more(sgm_iterator_dataset(made.trainer->data.training));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = iterations, .epochs = 4, .folder = kept));
    return made;
}

TEST(a_resume_is_exact_where_data_have_grown)
{
    wave_trainer whole = train_until(0, NULL);
    /* 4 + 4 minibatches of 40 examples, then 6 of 56 */
    CHECK_INT(whole.trainer->position.iteration, 4 + 4 + 6 + 6);
    for (int64_t iterations = 6; iterations <= 9; iterations++) {
        wave_trainer first = train_until(iterations, open_folder());
        free_wave_trainer(first);
        wave_trainer second = make_wave_trainer((wave_options){.shuffle = true, .seed = 3});
        more(sgm_iterator_dataset(second.trainer->data.training));
        CHECK_OK(sgm_trainer_run(second.trainer, .epochs = 4, .folder = folder, .resume = true));
        CHECK_INT(second.trainer->position.iteration, 20);
        check_equal_states(whole.trainer, second.trainer, 0);
        free_wave_trainer(second);
        close_folder();
    }
    free_wave_trainer(whole);
}
