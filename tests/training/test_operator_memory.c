/* Operators: no memory is taken in the steady state, and any allocation may fail. */
#include "waves.h"

#include <stdlib.h>

typedef struct counter {
    long calls, fail_at, held;
} counter;

static void *count_reallocate(void *user, void *memory, size_t size)
{
    counter *count = user;
    if (__atomic_add_fetch(&count->calls, 1, __ATOMIC_RELAXED) == count->fail_at)
        return NULL;
    void *result = realloc(memory, size);
    if (memory == NULL && result != NULL)
        __atomic_add_fetch(&count->held, 1, __ATOMIC_RELAXED);
    return result;
}

static void count_release(void *user, void *memory)
{
    counter *count = user;
    __atomic_sub_fetch(&count->held, 1, __ATOMIC_RELAXED);
    free(memory);
}

typedef struct watch {
    const counter *count;
    long at_second_epoch, at_end;
} watch;

static bool watch_allocations(void *user, const sgm_training_progress *progress)
{
    watch *seen = user;
    if (progress->kind == SGM_PROGRESS_EPOCH && progress->epoch == 2)
        seen->at_second_epoch = seen->count->calls;
    if (progress->kind == SGM_PROGRESS_EPOCH && progress->epoch == 6)
        seen->at_end = seen->count->calls;
    return true;
}

static void check_steady_state(bool gradients)
{
    counter count = {0};
    sgm_allocator allocator = {count_reallocate, count_release, &count};
    sgm_set_allocator(&allocator);
    wave_trainer made = make_wave_trainer((wave_options){.handler = "cpu", .shuffle = true, .batch = 7});
    watch seen = {.count = &count};
    CHECK_OK(sgm_trainer_operator(made.trainer, gradients ? sgm_gradient_operator(.workers = 2)
                                                          : sgm_parameter_operator(.every = 2)));
    CHECK_OK(sgm_trainer_on_progress(made.trainer, watch_allocations, &seen));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 6));
    free_wave_trainer(made);
    sgm_set_allocator(NULL);
    CHECK(seen.at_second_epoch > 0);
    CHECK_INT(seen.at_end, seen.at_second_epoch);
    CHECK_INT(count.held, 0);
}

TEST(workers_allocate_nothing_in_the_steady_state)
{
    check_steady_state(true);
    check_steady_state(false);
}

static sgm_status do_nothing(void *self, sgm_hook_call *call)
{
    (void)self, (void)call;
    return SGM_OK;
}

static const sgm_hook_type idle = {.api = SGM_HOOK_API, .name = "idle", .invoke = do_nothing};

static bool train_shortly(bool gradients)
{
    static const char *const sections[] = {"inputs", "targets"};
    static const float numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    bool done = false;
    sgm_shape shape = sgm_shape_of(8, 2);
    sgm_handler *handler = sgm_handler_create("reference");
    sgm__trainer_settings settings = {3, handler, SGM_FLOAT32};
    sgm_trainer *trainer = handler != NULL ? sgm__trainer_create("short", &settings) : NULL;
    sgm_tensor *values[2] = {sgm_tensor_from(SGM_FLOAT32, &shape, numbers),
                             sgm_tensor_from(SGM_FLOAT32, &shape, numbers)};
    sgm_dataset *dataset =
        values[0] != NULL && values[1] != NULL ? sgm_dataset_from("short", sections, values, 2) : NULL;
    if (trainer != NULL && dataset != NULL) {
        sgm_trainer_network(trainer, "input(2) + dropout(0.5) + dense(2) + mean_squared");
        sgm_trainer_data(trainer, sgm_minibatches(dataset, .size = 3, .no_prefetch = true));
        sgm_trainer_optimiser(trainer, sgm_adam());
        sgm_trainer_hook(trainer, sgm_hook_create(&idle, NULL, .local = true));
        sgm_trainer_operator(trainer, gradients ? sgm_gradient_operator(.workers = 2)
                                                : sgm_parameter_operator(.workers = 2));
        done = sgm_trainer_run(trainer, .epochs = 1) == SGM_OK;
    }
    sgm_tensor_free(values[0]);
    sgm_tensor_free(values[1]);
    sgm_dataset_free(dataset);
    sgm__trainer_free(trainer);
    sgm_handler_free(handler);
    return done;
}

static void check_failing_allocations(bool gradients)
{
    counter count = {0};
    sgm_allocator allocator = {count_reallocate, count_release, &count};
    sgm_set_allocator(&allocator);
    bool whole = train_shortly(gradients);
    long calls = count.calls;
    CHECK(whole);
    CHECK_INT(count.held, 0);
    for (long n = 1; n <= calls; n++) {
        count = (counter){.fail_at = n};
        sgm_clear_error();
        bool done = train_shortly(gradients);
        bool told = sgm_last_status() != SGM_OK;
        if (count.held != 0 || (!done && !told)) {
            long held = count.held;
            sgm_set_allocator(NULL);
            TEST_FAIL("allocation %ld of %ld failed: %ld blocks leaked, error \"%s\"", n, calls, held,
                      sgm_last_error());
        }
    }
    sgm_set_allocator(NULL);
}

TEST(any_allocation_may_fail_in_a_short_run_with_workers)
{
    check_failing_allocations(true);
    check_failing_allocations(false);
}
