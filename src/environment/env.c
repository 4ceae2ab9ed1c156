/* Makes environments, and everything that an environment owns: handler, monitors, trainers.
 *
 * The public functions here are for the thread that sets the environment up. Running is in env_run.c, the
 * table of environments and the end in env_life.c, the first failure in env_status.c, models in model.c.
 * An object that is made here is handed to sgm__env_own, so sgm_env_free releases all of them in the
 * reverse order of creation; an object may therefore use those that were made before it. */
#include "environment/environment.h"
#include "handlers/handler.h"
#include "monitors/monitor.h"
#include "registry/option_check.h"
#include "registry/pattern.h"
#include "train/train.h"
#include "trainer/trainer.h"

int64_t sgm__env_number(sgm_env *env)
{
    return ++env->number;
}

uint64_t sgm__env_seed(const sgm_env *env)
{
    return env->seed;
}

/* Puts the seed into the registry as "env.seed", read-only, for code that has no more than the registry.
 * The registry has signed integers: a seed of 2^63 or more shows as a negative number with the same bits. */
static sgm_status publish_seed(const sgm_env *env)
{
    static const sgm_option row = {
        .name = "seed", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "of all random numbers"};
    sgm_registry *own = sgm_registry_create();
    if (own == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm_registry_define(own, &row);
    if (status == SGM_OK)
        status = sgm_registry_set_own(own, row.name, sgm_integer_content((int64_t)env->seed));
    if (status == SGM_OK)
        status = sgm_registry_put(env->registry, "env", own);
    sgm_registry_free(own);
    return status;
}

/* Checks what sgm_env_create was given; false, with an error. The handler's name is checked here although
 * the handler is made later, so that a wrong name is reported where it was written. */
static bool options_are_good(const char *name, const sgm_env_options *options)
{
    size_t count;
    sgm__memory_budget memory;
    const sgm_setting *rows = sgm_env_settings(&count);
    if (name == NULL || name[0] == '\0' || strlen(name) > 200)
        sgm_fail(SGM_ERROR_ARGUMENT, "an environment expects a name of 1 to 200 characters");
    else if (sgm__setting_check(sgm_setting_find(rows, count, "threads"), options, name) != SGM_OK)
        return false;
    else if (!sgm_dtype_is_float(options->precision))
        sgm_fail(SGM_ERROR_TYPE, "%s: precision: expected float32, float64 or bfloat16, got %s (%d)", name,
                 sgm_dtype_name(options->precision), (int)options->precision);
    else if (options->handler != NULL && sgm__handler_check(options->handler) != SGM_OK)
        sgm__fail_within("%s", name);
    else if (sgm__memory_budget_parse(options->memory, &memory) != SGM_OK)
        sgm__fail_within("%s: memory", name);
    else
        return true;
    return false;
}

/* An environment enters the table only once it is complete. sgm_env_free copes with one that is not. */
sgm_env *sgm_env_create_with(const char *name, const sgm_env_options *given)
{
    sgm_env_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_env_create") != SGM_OK ||
        !options_are_good(name, &options))
        return NULL;
    sgm_env *env = sgm__calloc(1, sizeof *env);
    if (env == NULL)
        return NULL;
    pthread_mutex_init(&env->branches.adding, NULL);
    env->registry = sgm_registry_create();
    env->name = sgm__strdup(name);
    env->handler_name = sgm__strdup(options.handler != NULL ? options.handler : "cpu");
    env->seed = options.seed;
    env->threads = options.threads;
    env->precision = options.precision;
    sgm__memory_budget_parse(options.memory, &env->memory); /* which options_are_good has checked */
    if (env->registry == NULL || env->name == NULL || env->handler_name == NULL ||
        publish_seed(env) != SGM_OK) {
        sgm_env_free(env);
        return NULL;
    }
    sgm__env_enter(env);
    return env;
}

/* The order matters. First nobody can find the environment any more, then its run ends, then monitors let
 * go of trainers and the program's shutdown functions are called, all while every object still exists. The
 * registry goes before the objects whose values it shows. */
void sgm_env_free(sgm_env *env)
{
    if (env == NULL)
        return;
    sgm__env_leave(env);
    sgm__env_end(env);
    sgm__env_leave_monitors(env);
    sgm__env_shut_down(env);
    sgm_registry_free(env->registry);
    while (env->object_count > 0) {
        sgm__owned_object *last = &env->objects[--env->object_count];
        last->release(last->object);
    }
    sgm__free(env->objects);
    sgm__free(env->trainers);
    sgm__free(env->monitors);
    sgm__free(env->shutdowns);
    sgm__env_free_branches(env);
    sgm__free(env->handler_name);
    sgm__free(env->name);
    sgm__free(env);
}

sgm_status sgm__env_own(sgm_env *env, void *object, void (*release)(void *object))
{
    sgm_status status =
        sgm__reserve(&env->objects, &env->object_capacity, env->object_count + 1, sizeof *env->objects);
    if (status != SGM_OK) {
        release(object);
        return status;
    }
    env->objects[env->object_count++] = (sgm__owned_object){object, release};
    return SGM_OK;
}

/* sgm_handler_free as a function of void *, for sgm__env_own. */
static void release_handler(void *handler)
{
    sgm_handler_free(handler);
}

/* Made at the first call, so that an environment without trainers starts no threads and claims no device.
 * A failure is kept as the environment's. */
sgm_handler *sgm_env_handler(sgm_env *env)
{
    if (env == NULL || sgm__env_check(env) != SGM_OK)
        return NULL;
    if (env->handler != NULL)
        return env->handler;
    sgm_handler *handler = sgm_handler_create(env->handler_name, .threads = env->threads);
    if (handler == NULL || sgm__env_own(env, handler, release_handler) != SGM_OK) {
        sgm__env_keep(env, sgm_last_status());
        return NULL;
    }
    env->handler = handler;
    return handler;
}

sgm_registry *sgm_env_registry(sgm_env *env)
{
    return env != NULL ? env->registry : NULL;
}

/* --- monitors --- */

/* The observer that stands for a monitor in each trainer. */
static bool tell_monitor(void *monitor, const sgm_training_progress *progress)
{
    sgm_monitor *self = monitor;
    return self->progress(self, progress);
}

/* Frees a monitor that no environment has taken; of one that an environment has taken it does nothing. */
void sgm_monitor_free(sgm_monitor *monitor)
{
    if (monitor != NULL && !monitor->owned)
        monitor->free(monitor);
}

static void release_monitor(void *monitor)
{
    sgm_monitor *self = monitor;
    self->free(self);
}

/* Introduces the environment to a monitor. */
static sgm_status join(sgm_env *env, sgm_monitor *monitor)
{
    const sgm__monitor_host host = {.name = env->name,
                                    .handler = env->handler_name,
                                    .seed = env->seed,
                                    .threads = env->threads,
                                    .precision = env->precision,
                                    .registry = env->registry,
                                    .env = env};
    return monitor->join(monitor, &host);
}

/* Attaches a monitor to one trainer, then makes it an observer. */
static sgm_status show_to(sgm_monitor *monitor, sgm_trainer *trainer)
{
    if (monitor->attach != NULL)
        SGM_TRY(monitor->attach(monitor, trainer));
    return monitor->progress != NULL ? sgm__trainer_add_observer(trainer, tell_monitor, monitor) : SGM_OK;
}

/* Takes the monitor: also on failure the caller must not free it. The one exception is a monitor that
 * belongs to an environment already, which stays that environment's. A monitor that came while trainers
 * run is freed at once. Trainers that exist already are shown to the monitor. */
sgm_status sgm_env_add_monitor(sgm_env *env, sgm_monitor *monitor)
{
    if (env == NULL) {
        sgm_monitor_free(monitor);
        return sgm__fail_null("a monitor expects an environment, got NULL");
    }
    if (monitor == NULL)
        return sgm__env_keep(env, sgm__fail_null("expected a monitor, got NULL"));
    if (!monitor->owned && !sgm__env_is_free(env, "monitor")) {
        monitor->free(monitor);
        return SGM_ERROR_STATE;
    }
    if (monitor->owned)
        return sgm__env_keep(
            env,
            sgm_fail(SGM_ERROR_STATE, "this monitor belongs to an environment already; make another one"));
    sgm_status status =
        sgm__reserve(&env->monitors, &env->monitor_capacity, env->monitor_count + 1, sizeof *env->monitors);
    if (status != SGM_OK) {
        monitor->free(monitor);
        return sgm__env_keep(env, status);
    }
    monitor->owned = true;
    status = sgm__env_own(env, monitor, release_monitor);
    if (status == SGM_OK && monitor->join != NULL)
        status = join(env, monitor);
    if (status != SGM_OK)
        return sgm__env_keep(env, status);
    env->monitors[env->monitor_count++] = monitor;
    for (size_t i = 0; i < env->trainer_count && status == SGM_OK; i++)
        status = show_to(monitor, env->trainers[i]);
    return sgm__env_keep(env, status);
}

/* Which monitor it is in the list; SIZE_MAX: none of this environment. */
static size_t monitor_index(const sgm_env *env, const sgm_monitor *monitor)
{
    for (size_t i = 0; i < env->monitor_count; i++)
        if (env->monitors[i] == monitor)
            return i;
    return SIZE_MAX;
}

/* The object leaves the list of those that go with the environment; it is not freed. */
static void disown(sgm_env *env, const void *object)
{
    size_t i = 0;
    while (i < env->object_count && env->objects[i].object != object)
        i++;
    for (; i + 1 < env->object_count; i++)
        env->objects[i] = env->objects[i + 1];
    env->object_count--;
}

sgm_status sgm_env_remove_monitor(sgm_env *env, sgm_monitor *monitor)
{
    if (env == NULL || monitor == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_env_remove_monitor: expected %s, got NULL",
                        env == NULL ? "an environment" : "a monitor");
    if (!sgm__env_is_free(env, "monitor"))
        return SGM_ERROR_STATE;
    size_t index = monitor_index(env, monitor);
    if (index == SIZE_MAX)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the monitor to remove is none of this environment's",
                        env->name);
    if (monitor->finish != NULL)
        monitor->finish(monitor);
    for (size_t i = env->trainer_count; i-- > 0;) {
        if (monitor->progress != NULL)
            sgm__trainer_remove_observer(env->trainers[i], tell_monitor, monitor);
        if (monitor->detach != NULL)
            monitor->detach(monitor, env->trainers[i]);
    }
    env->monitors_started -= index < env->monitors_started;
    for (env->monitor_count--; index < env->monitor_count; index++)
        env->monitors[index] = env->monitors[index + 1];
    disown(env, monitor);
    monitor->free(monitor);
    return SGM_OK;
}

/* --- trainers --- */

/* sgm__trainer_free as a function of void *, for sgm__env_own. */
static void release_trainer(void *trainer)
{
    sgm__trainer_free(trainer);
}

/* Fails if a trainer with the name `added` would be, by its name or by its part of identifiers, the one
 * that is there already. */
static sgm_status compare_names(const char *there, const char *added)
{
    if (strcmp(there, added) == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "there is a trainer '%.100s' already; names must differ", added);
    char *one = sgm__identifier_part(there), *other = sgm__identifier_part(added);
    sgm_status status = one != NULL && other != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && strcmp(one, other) == 0)
        status = sgm_fail(SGM_ERROR_ARGUMENT,
                          "the trainers '%.100s' and '%.100s' would both be '%.100s' in identifiers; choose "
                          "another name",
                          there, added, one);
    sgm__free(one);
    sgm__free(other);
    return status;
}

/* A trainer's name is also the name of a folder and a part of registry identifiers, so it must be usable
 * as both. */
static sgm_status check_trainer_name(const sgm_env *env, const char *name)
{
    if (name == NULL || name[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "a trainer expects a name");
    if (strchr(name, '/') != NULL || name[0] == '.')
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the trainer's name '%.100s' must not begin with '.' and have no '/'", name);
    if (strcmp(name, "env") == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'env' is the environment's own name in the registry; choose "
                                            "another one for the trainer");
    for (size_t i = 0; i < env->trainer_count; i++)
        SGM_TRY(compare_names(sgm_trainer_name(env->trainers[i]), name));
    return SGM_OK;
}

/* Puts the trainer's registry into the environment's. What an identifier's part cannot hold in the name
 * becomes an underscore there. */
static sgm_status publish(sgm_env *env, sgm_trainer *trainer)
{
    char *part = sgm__identifier_part(sgm_trainer_name(trainer));
    if (part == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm_registry_put(env->registry, part, sgm_trainer_registry(trainer));
    sgm__free(part);
    return status;
}

/* The trainer gets the environment's seed, handler, precision and memory. */
sgm_status sgm__env_make_trainer(sgm_env *env, const char *name, sgm_trainer **made)
{
    SGM_TRY(check_trainer_name(env, name));
    sgm__trainer_settings settings = {.seed = env->seed,
                                      .handler = sgm_env_handler(env),
                                      .precision = env->precision,
                                      .memory = env->memory};
    if (settings.handler == NULL)
        return sgm_last_status();
    *made = sgm__trainer_create(name, &settings);
    if (*made == NULL)
        return sgm__last_failure();
    sgm__membership_of(*made)->branch = sgm__env_branch;
    sgm__membership_of(*made)->env = env;
    return SGM_OK;
}

/* Drops a trainer because of the thread's newest error, which stays that. */
static void drop_failed(sgm_env *env, sgm_trainer *trainer, sgm_status status)
{
    char *message = sgm__strdup(sgm_last_error());
    sgm__env_drop_trainer(env, trainer);
    sgm_fail(status, "%s", message != NULL ? message : "no memory");
    sgm__free(message);
}

/* Monitors see the trainer last, when it is complete. */
sgm_status sgm__env_enter_trainer(sgm_env *env, sgm_trainer *trainer)
{
    sgm_status status =
        sgm__reserve(&env->trainers, &env->trainer_capacity, env->trainer_count + 1, sizeof *env->trainers);
    if (status != SGM_OK) {
        sgm__trainer_free(trainer);
        return status;
    }
    SGM_TRY(sgm__env_own(env, trainer, release_trainer));
    status = publish(env, trainer);
    if (status == SGM_OK)
        env->trainers[env->trainer_count++] = trainer;
    for (size_t i = 0; i < env->monitor_count && status == SGM_OK; i++)
        status = show_to(env->monitors[i], trainer);
    if (status != SGM_OK)
        drop_failed(env, trainer, status);
    return status;
}

sgm_status sgm__env_add_trainer(sgm_env *env, const char *name, bool unscheduled, sgm_trainer **added)
{
    sgm_trainer *trainer = NULL;
    sgm_status status = sgm__env_make_trainer(env, name, &trainer);
    if (status != SGM_OK || trainer == NULL)
        return status;
    sgm__membership_of(trainer)->unscheduled = unscheduled;
    SGM_TRY(sgm__env_enter_trainer(env, trainer));
    *added = trainer;
    return SGM_OK;
}

/* Undoes sgm__env_enter_trainer, each part only where it was done. `objects` keeps its order, which is the
 * order of release. */
void sgm__env_drop_trainer(sgm_env *env, sgm_trainer *trainer)
{
    sgm__env_hide_trainer(env, trainer);
    char *part = sgm__identifier_part(sgm_trainer_name(trainer));
    if (part != NULL && sgm_registry_has(env->registry, part))
        sgm_registry_remove(env->registry, part);
    sgm__free(part);
    for (size_t i = 0; i < env->trainer_count; i++)
        if (env->trainers[i] == trainer) {
            memmove(&env->trainers[i], &env->trainers[i + 1],
                    (--env->trainer_count - i) * sizeof *env->trainers);
            break;
        }
    for (size_t i = 0; i < env->object_count; i++)
        if (env->objects[i].object == trainer) {
            memmove(&env->objects[i], &env->objects[i + 1], (--env->object_count - i) * sizeof *env->objects);
            sgm__trainer_free(trainer);
            break;
        }
}

/* The checks of the two public functions below. NULL while the environment has failed or runs. */
static sgm_trainer *create_trainer(sgm_env *env, const char *name, bool unscheduled)
{
    sgm_trainer *trainer = NULL;
    if (env == NULL) {
        sgm__fail_null("a trainer expects an environment, got NULL");
        return NULL;
    }
    if (sgm__env_check(env) != SGM_OK || !sgm__env_is_free(env, "trainer") ||
        sgm__env_keep(env, sgm__env_add_trainer(env, name, unscheduled, &trainer)) != SGM_OK)
        return NULL;
    return trainer;
}

sgm_trainer *sgm_trainer_create(sgm_env *env, const char *name)
{
    return create_trainer(env, name, false);
}

sgm_trainer *sgm_trainer_create_unscheduled(sgm_env *env, const char *name)
{
    return create_trainer(env, name, true);
}
