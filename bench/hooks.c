/* What hooks cost an iteration: build/release/bench/hooks
 *
 * Nanoseconds of an iteration's event with 0, 1 and 10 hooks that are attached but not due, with hooks of
 * another scale, and with hooks that are due and do nothing. The least of several rounds, for neighbours only
 * ever add.
 */
#include "training/hooks.h"

#include <stdio.h>
#include <stdlib.h>

#define ITERATIONS 200000
#define ROUNDS 7

static int hook_numbers[1000];

static sgm_status do_nothing(void *self, sgm_hook_call *call)
{
    (void)self;
    (void)call;
    return SGM_OK;
}

static const sgm_hook_type idle_type = {.api = SGM_HOOK_API, .name = "idle", .invoke = do_nothing};

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "hooks: %s\n", sgm_last_error());
    exit(1);
}

static double time_round(sgm__hooks *hooks)
{
    double start = sgm__now();
    for (int64_t i = 0; i < ITERATIONS; i++)
        check(sgm__hooks_event(hooks, SGM_ITERATION, 0, i) == SGM_OK);
    return (sgm__now() - start) / ITERATIONS * 1e9;
}

static void print_cost(int count, sgm_time_step when, const char *what)
{
    sgm_registry *registry = sgm_registry_create();
    sgm__hooks *hooks = sgm__hooks_create("bench", registry, NULL);
    check(hooks != NULL);
    for (int i = 0; i < count; i++) {
        sgm_hook *hook = sgm_hook_create(&idle_type, &hook_numbers[i], .when = when);
        check(hook && sgm__hooks_attach(hooks, hook, NULL) == SGM_OK);
        sgm_hook_free(hook);
    }
    double best = time_round(hooks);
    for (int i = 1; i < ROUNDS; i++) {
        double now = time_round(hooks);
        best = now < best ? now : best;
    }
    printf("%4d hooks %-18s %10.1f ns an iteration\n", count, what, best);
    sgm__hooks_free(hooks);
    sgm_registry_free(registry);
}

int main(void)
{
    static const int counts[] = {0, 1, 10, 100};
    const sgm_time_step never = sgm_every(INT64_MAX, SGM_ITERATION);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        print_cost(counts[i], never, "not due");
    print_cost(10, sgm_every(1, SGM_EPOCH), "of another scale");
    print_cost(1, sgm_every(1, SGM_ITERATION), "due");
    print_cost(10, sgm_every(1, SGM_ITERATION), "due");
    return 0;
}
