/* Training follows curves that were computed elsewhere, and the same curve on every handler. */
#include "waves.h"

#include "golden/golden_mlp.h"

static void train_golden(const char *handler, sgm_dtype precision, loss_curve *curve)
{
    wave_trainer made = make_wave_trainer((wave_options){.handler = handler, .precision = precision});
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    set_golden_parameters(made.trainer, precision);
    CHECK_OK(sgm_trainer_on_progress(made.trainer, follow_losses, curve));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 25));
    CHECK_INT(curve->count, 100);
    free_wave_trainer(made);
}

static void check_golden(const char *handler, sgm_dtype precision, double tolerance)
{
    loss_curve curve = {0};
    train_golden(handler, precision, &curve);
    for (int i = 0; i < 100; i++)
        CHECK_NEAR(curve.losses[i] / golden_losses[i], 1, tolerance);
}

TEST(reference_in_float64_matches_numpy)
{
    check_golden("reference", SGM_FLOAT64, 1e-6); /* the data are float32 */
}

TEST(reference_in_float32_matches_numpy)
{
    check_golden("reference", SGM_FLOAT32, 1e-5);
}

TEST(cpu_in_float64_matches_numpy)
{
    check_golden("cpu", SGM_FLOAT64, 1e-6);
}

TEST(cpu_in_float32_matches_numpy)
{
    check_golden("cpu", SGM_FLOAT32, 1e-5);
}

TEST(cpu_follows_the_reference_in_float64)
{
    loss_curve reference = {0}, cpu = {0};
    train_golden("reference", SGM_FLOAT64, &reference);
    train_golden("cpu", SGM_FLOAT64, &cpu);
    for (int i = 0; i < 100; i++)
        CHECK_NEAR(cpu.losses[i] / reference.losses[i], 1, 1e-9);
}
