/* What tests of memory share: the steady state, and runs in which one allocation fails. */
#ifndef SIGMA_MEMORY_TEST_H
#define SIGMA_MEMORY_TEST_H

#include "base/allocator.h"
#include "train/train.h"
#include "waves.h"

typedef struct allocation_watch {
    long at_second_epoch, at_end;
} allocation_watch;

static bool watch_allocations(void *user, const sgm_training_progress *progress)
{
    allocation_watch *seen = user;
    if (progress->kind == SGM_PROGRESS_EPOCH && progress->epoch == 2)
        seen->at_second_epoch = atomic_load(&allocator_calls);
    if (progress->kind == SGM_PROGRESS_EPOCH && progress->epoch == 6)
        seen->at_end = atomic_load(&allocator_calls);
    return true;
}

/* From the second epoch on nothing is allocated, and at the end all is given back. Takes over the operator
 * (NULL: none), which is made after allocator_start(0). */
static void check_steady_state(const char *handler, sgm_operator *parallel)
{
    wave_trainer made = make_wave_trainer((wave_options){.handler = handler, .shuffle = true, .batch = 7});
    allocation_watch seen = {0};
    if (parallel != NULL)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, parallel));
    CHECK_OK(sgm_trainer_on_progress(made.trainer, watch_allocations, &seen));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 6));
    free_wave_trainer(made);
    allocator_stop();
    CHECK(seen.at_second_epoch > 0);
    CHECK_INT(seen.at_end, seen.at_second_epoch);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* A short run of a trainer that `fill` gives all but its data; true if it came to its end. */
static bool train_shortly(void (*fill)(sgm_trainer *trainer, sgm_dataset *dataset))
{
    static const char *const fields[] = {"inputs", "targets"};
    static const float numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    bool done = false;
    sgm_shape shape = sgm_shape_of(8, 2);
    sgm_handler *handler = sgm_handler_create("reference");
    sgm__trainer_settings settings = {.seed = 3, .handler = handler, .precision = SGM_FLOAT32};
    sgm_trainer *trainer = handler != NULL ? sgm__trainer_create("short", &settings) : NULL;
    sgm_tensor *values[2] = {sgm_tensor_create_from(SGM_FLOAT32, &shape, numbers),
                             sgm_tensor_create_from(SGM_FLOAT32, &shape, numbers)};
    sgm_dataset *dataset =
        values[0] != NULL && values[1] != NULL ? sgm_dataset_create_from("short", fields, values, 2) : NULL;
    if (trainer != NULL && dataset != NULL) {
        sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 3, .no_prefetch = true));
        sgm_trainer_set_optimiser(trainer, sgm_adam());
        fill(trainer, dataset);
        done = sgm_trainer_run(trainer, .epochs = 2) == SGM_OK;
    }
    sgm_tensor_free(values[0]);
    sgm_tensor_free(values[1]);
    sgm_dataset_free(dataset);
    sgm__trainer_free(trainer);
    sgm_handler_free(handler);
    return done;
}

/* With sanitizers, under which each run takes fifteen times as long, every third allocation of one training
 * fails, and others of the next one. */
#if defined SIGMA_ADDRESS_SANITIZER || defined SIGMA_THREAD_SANITIZER
#define FAILING_EVERY 3
#else
#define FAILING_EVERY 1
#endif

/* Each allocation of a short run fails once: nothing leaks, and a run that does not end says why. */
static void check_failing_allocations(void (*fill)(sgm_trainer *trainer, sgm_dataset *dataset))
{
    static long first;
    first = first % FAILING_EVERY + 1;
    allocator_start(0);
    bool whole = train_shortly(fill);
    long calls = atomic_load(&allocator_calls);
    CHECK(whole);
    CHECK_INT(atomic_load(&allocator_live), 0);
    for (long n = first; n <= calls; n += FAILING_EVERY) {
        allocator_start_once(n);
        sgm_clear_error();
        bool done = train_shortly(fill);
        bool told = sgm_last_status() != SGM_OK;
        long live = atomic_load(&allocator_live);
        if (live != 0 || (!done && !told)) {
            allocator_stop();
            TEST_FAIL("allocation %ld of %ld failed: %ld blocks leaked, error \"%s\"", n, calls, live,
                      sgm_last_error());
        }
    }
    allocator_stop();
}

#endif
