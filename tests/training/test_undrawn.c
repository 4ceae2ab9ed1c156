/* Parameters that somebody sets right after they are defined are not drawn before; if that fails, they are.
 */
#include "train/train.h"
#include "waves.h"

#include <unistd.h>

#define SMALL "input(6) + dense(4, tanh) + dense(3) + softmax_cross_entropy"

static int64_t drawn;

static double draw(void *user, const int64_t *indices, const sgm_shape *shape, double random)
{
    (void)user, (void)indices, (void)shape;
    drawn++;
    return random + 1;
}

/* Numbers that are drawn are counted. */
static wave_trainer make(uint64_t seed)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = SMALL, .seed = seed, .optimiser = sgm_adam(.average = 0.9)});
    CHECK_OK(sgm_trainer_add_initialiser(made.trainer, "*.*", sgm_custom_initialiser(.function = draw)));
    drawn = 0;
    return made;
}

static void read_state(sgm_trainer *trainer, const char *name, double values[24])
{
    sgm_tensor *tensor = sgm_trainer_get(trainer, name);
    CHECK_OK(tensor);
    CHECK_OK(sgm_tensor_read(tensor, values, (size_t)sgm_shape_elements(sgm_tensor_shape(tensor))));
    sgm_tensor_free(tensor);
}

static void check_equal(sgm_trainer *a, sgm_trainer *b, const char *name, int count)
{
    double x[24], y[24];
    read_state(a, name, x);
    read_state(b, name, y);
    for (int i = 0; i < count; i++)
        CHECK_NEAR(x[i], y[i], 0);
}

static sgm_status nothing(void *self, sgm_hook_call *call)
{
    (void)self, (void)call;
    return SGM_OK;
}

static sgm_status get_one(void *self, double *numbers, size_t *count)
{
    (void)self;
    if (numbers != NULL)
        *numbers = 1;
    *count = 1;
    return SGM_OK;
}

static sgm_status refuse(void *self, const double *numbers, size_t count)
{
    (void)self, (void)numbers, (void)count;
    return sgm_fail(SGM_ERROR_FORMAT, "this hook takes no numbers");
}

static const sgm_hook_type stubborn = {
    .api = SGM_HOOK_API, .name = "stubborn", .invoke = nothing, .get_state = get_one, .set_state = refuse};

/* A checkpoint with the hook `stubborn`; the path is the caller's, to unlink. */
static void save(const char *path)
{
    wave_trainer from = make(1);
    CHECK_OK(sgm_trainer_add_hook(from.trainer, sgm_hook_create(&stubborn, NULL)));
    CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 1));
    CHECK_OK(sgm_trainer_save(from.trainer, path));
    free_wave_trainer(from);
}

TEST(a_load_draws_only_what_the_file_lacks)
{
    char path[] = "/tmp/sigma-undrawn-XXXXXX";
    CHECK(mkdtemp(path) != NULL);
    char file[64];
    snprintf(file, sizeof file, "%s/a.safetensors", path);
    wave_trainer from = make(1), all = make(2), some = make(2);
    CHECK_OK(sgm_trainer_prepare(from.trainer));
    CHECK_INT(drawn, 6 * 4 + 4 + 4 * 3 + 3);
    CHECK_OK(sgm_trainer_save_parts(from.trainer, file, .parts = SGM_PART_PARAMETERS));
    drawn = 0;
    CHECK_OK(sgm_trainer_load_parts(all.trainer, file, .parts = SGM_PART_PARAMETERS));
    CHECK_INT(drawn, 0);
    check_equal(from.trainer, all.trainer, "1-dense.weights", 24);
    check_equal(from.trainer, all.trainer, "average.1-dense.weights", 24);
    CHECK_OK(sgm_trainer_load_parts(some.trainer, file, .parts = SGM_PART_PARAMETERS, .states = "1-*.*"));
    CHECK_INT(drawn, 4 * 3 + 3);
    wave_trainer other = make(2);
    check_equal(other.trainer, some.trainer, "2-dense.weights", 12);
    check_equal(from.trainer, some.trainer, "1-dense.weights", 24);
    free_wave_trainer(from);
    free_wave_trainer(all);
    free_wave_trainer(some);
    free_wave_trainer(other);
    unlink(file);
    CHECK_INT(rmdir(path), 0);
}

/* The hook refuses its numbers when all states are defined: then the trainer begins as one that never tried.
 */
TEST(a_load_that_fails_draws_what_it_left_out)
{
    char path[] = "/tmp/sigma-undrawn-XXXXXX";
    CHECK(mkdtemp(path) != NULL);
    char file[64];
    snprintf(file, sizeof file, "%s/a.safetensors", path);
    save(file);
    for (int workers = 0; workers <= 2; workers += 2) {
        wave_trainer never = make(2), tried = make(2);
        if (workers > 0) {
            CHECK_OK(sgm_trainer_set_operator(never.trainer, sgm_parameter_operator(.workers = workers)));
            CHECK_OK(sgm_trainer_set_operator(tried.trainer, sgm_parameter_operator(.workers = workers)));
        }
        CHECK_OK(sgm_trainer_add_hook(tried.trainer, sgm_hook_create(&stubborn, NULL)));
        CHECK_ERROR(sgm_trainer_load(tried.trainer, file), "this hook takes no numbers");
        CHECK_OK(sgm_trainer_prepare(never.trainer));
        check_equal(never.trainer, tried.trainer, "1-dense.weights", 24);
        check_equal(never.trainer, tried.trainer, "average.2-dense.weights", 12);
        CHECK_OK(sgm_trainer_run(never.trainer, .epochs = 1));
        CHECK_OK(sgm_trainer_run(tried.trainer, .epochs = 1));
        check_equal(never.trainer, tried.trainer, "1-dense.weights", 24);
        check_equal(never.trainer, tried.trainer, "average.2-dense.weights", 12);
        free_wave_trainer(never);
        free_wave_trainer(tried);
    }
    unlink(file);
    CHECK_INT(rmdir(path), 0);
}

TEST(parameters_that_the_caller_sets_are_not_drawn)
{
    static const char *const names[] = {"1-dense.weights", "2-dense.biases"};
    double values[24];
    wave_trainer made = make(1), other = make(1);
    CHECK_OK(sgm_trainer_prepare_undrawn(made.trainer, names, 2));
    CHECK_INT(drawn, 4 + 4 * 3);
    read_state(made.trainer, "1-dense.weights", values);
    for (int i = 0; i < 24; i++)
        CHECK_NEAR(values[i], 0, 0);
    check_equal(made.trainer, other.trainer, "2-dense.weights", 12);
    CHECK_ERROR(sgm_trainer_prepare_undrawn(made.trainer, NULL, 2), "expected 2 names, got NULL");
    free_wave_trainer(made);
    free_wave_trainer(other);
}

/* A matrix that is kept as 8 bits is named as the matrix that it stands for. */
TEST(matrices_of_8_bits_are_not_drawn)
{
    static const char *const names[] = {"1-dense.weights"};
    wave_trainer made = make(1);
    CHECK_OK(sgm_trainer_adapt(made.trainer, sgm_layer_parse("lora(2, on=\"1-dense\", quantize=int8)")));
    CHECK_OK(sgm_trainer_prepare_undrawn(made.trainer, names, 1));
    CHECK_INT(drawn, 4 + 4 * 3 + 3 + (6 + 4) * 2);
    free_wave_trainer(made);
}
