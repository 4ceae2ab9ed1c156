/* Memory: none is taken in the steady state, and any allocation may fail. */
#include "memory_test.h"

TEST(the_reference_allocates_nothing_in_the_steady_state)
{
    allocator_start(0);
    check_steady_state("reference", NULL);
}

TEST(the_cpu_allocates_nothing_in_the_steady_state)
{
    allocator_start(0);
    check_steady_state("cpu", NULL);
}

static void fill(sgm_trainer *trainer, sgm_dataset *dataset)
{
    sgm_trainer_set_network(trainer, "input(2) + dropout(0.5) + dense(3, tanh) + dense(2) + mean_squared");
    sgm_trainer_add_data(trainer, "validation", sgm_by_block(dataset));
}

TEST(any_allocation_may_fail_in_a_short_run)
{
    check_failing_allocations(fill);
}
