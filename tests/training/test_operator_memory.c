/* Operators: no memory is taken in the steady state, and any allocation may fail. */
#include "memory_test.h"

TEST(workers_allocate_nothing_in_the_steady_state)
{
    allocator_start(0);
    check_steady_state("cpu", sgm_gradient_operator(.workers = 2));
    allocator_start(0);
    check_steady_state("cpu", sgm_parameter_operator(.every = 2));
}

static sgm_status do_nothing(void *self, sgm_hook_call *call)
{
    (void)self, (void)call;
    return SGM_OK;
}

static const sgm_hook_type idle = {.api = SGM_HOOK_API, .name = "idle", .invoke = do_nothing};

static void fill(sgm_trainer *trainer)
{
    sgm_trainer_set_network(trainer, "input(2) + dropout(0.5) + dense(2) + mean_squared");
    sgm_trainer_add_hook(trainer, sgm_hook_create(&idle, NULL, .local = true));
}

static void fill_with_gradients(sgm_trainer *trainer, sgm_dataset *dataset)
{
    (void)dataset;
    fill(trainer);
    sgm_trainer_set_operator(trainer, sgm_gradient_operator(.workers = 2));
}

static void fill_with_parameters(sgm_trainer *trainer, sgm_dataset *dataset)
{
    (void)dataset;
    fill(trainer);
    sgm_trainer_set_operator(trainer, sgm_parameter_operator(.workers = 2));
}

TEST(any_allocation_may_fail_in_a_short_run_with_workers)
{
    check_failing_allocations(fill_with_gradients);
    check_failing_allocations(fill_with_parameters);
}
