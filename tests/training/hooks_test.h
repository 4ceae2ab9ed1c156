/* Hooks that note when they ran, and a holder to run them in. */
#ifndef SIGMA_HOOKS_TEST_H
#define SIGMA_HOOKS_TEST_H

#include "hooks/hooks.h"
#include "test.h"
#include <pthread.h>

/* --- what ran, and what was logged; any thread --- */

static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static char seen_runs[4096], seen_log[8192];

static void seen_append(char *text, size_t size, const char *more)
{
    pthread_mutex_lock(&seen_lock);
    size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s", length > 0 ? " " : "", more);
    pthread_mutex_unlock(&seen_lock);
}

__attribute__((unused)) static void seen_message(void *user, sgm_log_level level, const char *component,
                                                 const char *message)
{
    (void)user;
    (void)level;
    (void)component;
    seen_append(seen_log, sizeof seen_log, message);
}

static void seen_clear(void)
{
    seen_runs[0] = seen_log[0] = 0;
    sgm_set_logger(seen_message, NULL, SGM_LOG_WARNING);
}

/* --- a hook that notes its name --- */

typedef struct probe_self {
    const char *name;
    int alike;         /* probes with the same number do the same */
    sgm_status status; /* what invoke returns */
    double seconds;    /* how long it takes */
    int64_t runs;
    atomic_int frees;
    double state;
    sgm_status (*act)(struct probe_self *probe, sgm_hook_call *call); /* NULL: nothing */
    void *user;
} probe_self;

#define PROBE(probe_name, ...) PROBE_OF(probe_name, __VA_ARGS__, .runs = 0)
#define PROBE_OF(probe_name, number, ...)                                                                    \
    {                                                                                                        \
        .name = probe_name, .alike = number, __VA_ARGS__                                                     \
    }

static sgm_status probe_invoke(void *self, sgm_hook_call *call)
{
    probe_self *probe = self;
    seen_append(seen_runs, sizeof seen_runs, probe->name);
    probe->runs++;
    if (probe->seconds > 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(probe->seconds * 1e9)}, NULL);
    if (probe->act)
        return probe->act(probe, call);
    return probe->status == SGM_OK ? SGM_OK : sgm_fail(probe->status, "%s is broken", probe->name);
}

static bool probe_equal(const void *self, const void *other)
{
    return ((const probe_self *)self)->alike == ((const probe_self *)other)->alike;
}

static sgm_status probe_get_state(void *self, double *numbers, size_t *count)
{
    *count = 1;
    if (numbers)
        numbers[0] = ((probe_self *)self)->state;
    return SGM_OK;
}

static sgm_status probe_set_state(void *self, const double *numbers, size_t count)
{
    if (count != 1)
        return sgm_fail(SGM_ERROR_FORMAT, "a probe has one number, got %zu", count);
    ((probe_self *)self)->state = numbers[0];
    return SGM_OK;
}

static void probe_free(void *self)
{
    ((probe_self *)self)->frees++;
}

static const sgm_hook_type probe_type = {.api = SGM_HOOK_API,
                                         .name = "probe",
                                         .invoke = probe_invoke,
                                         .equal = probe_equal,
                                         .get_state = probe_get_state,
                                         .set_state = probe_set_state,
                                         .free = probe_free};

/* --- a holder --- */

typedef struct floor_of_test {
    sgm_registry *registry;
    sgm__hooks *hooks;
    int64_t iteration, epoch;
} floor_of_test;

static floor_of_test open_floor(void)
{
    floor_of_test made = {.registry = sgm_registry_create()};
    made.hooks = sgm__hooks_create("mnist", made.registry, NULL);
    if (!made.hooks)
        TEST_FAIL("no hooks: %s", sgm_last_error());
    seen_clear();
    return made;
}

static void close_floor(floor_of_test *made)
{
    sgm__hooks_free(made->hooks);
    sgm_registry_free(made->registry);
}

/* Attaches and lets go of it; true if it is new. */
static bool attach(floor_of_test *to, sgm_hook *hook)
{
    bool attached = false;
    CHECK(hook != NULL);
    CHECK_OK(sgm__hooks_attach(to->hooks, hook, &attached));
    sgm_hook_free(hook);
    return attached;
}

static void iterate(floor_of_test *made, int64_t count)
{
    while (count-- > 0)
        CHECK_OK(sgm__hooks_event(made->hooks, SGM_ITERATION, made->epoch, ++made->iteration));
}

__attribute__((unused)) static size_t save_state(sgm__hooks *hooks, double numbers[64])
{
    size_t needed = 0, count = 64;
    CHECK_OK(sgm__hooks_get_state(hooks, NULL, &needed));
    CHECK_OK(sgm__hooks_get_state(hooks, numbers, &count));
    CHECK_INT(count, needed);
    return count;
}

__attribute__((unused)) static double shared_number(floor_of_test *made, const char *name)
{
    char identifier[128];
    sgm_content content;
    snprintf(identifier, sizeof identifier, "shared.%s", name);
    if (sgm_registry_resolve_one(made->registry, identifier, &content) != SGM_OK)
        return NAN;
    double value = content.kind == SGM_KIND_INTEGER ? (double)content.as.integer : content.as.number;
    sgm_content_clear(&content);
    return value;
}

#endif
