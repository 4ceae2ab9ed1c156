/* What optimisers, schedules and runs can be set to: the one place where bounds, defaults and descriptions of
 * their options stand.
 *
 * Each row binds a member of an options struct (sgm_optimiser_options, sgm_schedule, sgm_run_options) to a
 * name, a kind and bounds. The command, files of settings and the registry read the tables by
 * sgm_optimiser_settings and its like; constructors check options by them (sgm__optimiser_check). Defaults
 * that depend on the type of optimiser are in the list of types (optimisers.c). */
#include "optim/optimiser.h"

#include <sigma/registry.h>
#include <stdio.h>

#define BELOW_ONE 0.9999999999 /* shares that stay are less than 1; bounds include their ends */
#define OPTIMISER(member, lowest, highest, words)                                                            \
    {                                                                                                        \
        .option = {.name = #member,                                                                          \
                   .kind = SGM_KIND_NUMBER,                                                                  \
                   .minimum = lowest,                                                                        \
                   .maximum = highest,                                                                       \
                   .live = true,                                                                             \
                   .doc = words},                                                                            \
        SGM_MEMBER(sgm_optimiser_options, member)                                                            \
    }

/* The rows of all optimisers together; which of them one type reads, sgm__optimiser_type_uses says. */
static const sgm_setting optimiser_rows[] = {
    OPTIMISER(learning_rate, 0, 1e30, "size of a step, before the schedule"),
    OPTIMISER(momentum, 0, BELOW_ONE, "share of the velocity that stays"),
    OPTIMISER(decay_rate, 0, BELOW_ONE, "share of the mean square that stays"),
    OPTIMISER(beta1, 0, BELOW_ONE, "share of the mean gradient that stays"),
    OPTIMISER(beta2, 0, BELOW_ONE, "share of the mean square that stays"),
    OPTIMISER(epsilon, 0, 1, "keeps divisions finite"),
    OPTIMISER(tolerance, 0, 1e30, "a gradient whose largest element is not above this makes no step"),
    {.option = {.name = "history",
                .kind = SGM_KIND_INTEGER,
                .unit = "steps",
                .minimum = 1,
                .maximum = 100,
                .live = true,
                .doc = "number of past steps that are kept"},
     SGM_MEMBER(sgm_optimiser_options, history)},
    {.option = {.name = "population",
                .kind = SGM_KIND_INTEGER,
                .unit = "candidates",
                .minimum = 0,
                .maximum = 1e6,
                .live = true,
                .doc = "points that an update without gradients looks at; 0: 4 + 3 ln(parameters)"},
     SGM_MEMBER(sgm_optimiser_options, population)},
    OPTIMISER(weight_decay, 0, 1e30, "pull of the parameters towards 0"),
    OPTIMISER(clip_value, 0, 1e30, "largest absolute gradient; 0: any"),
    OPTIMISER(clip_norm, 0, 1e30, "largest norm of all gradients together; 0: any"),
    OPTIMISER(average, 0, BELOW_ONE,
              "share of the moving average of the parameters that stays, used for validation; 0: none"),
    {.option = {.name = "accumulate",
                .kind = SGM_KIND_INTEGER,
                .unit = "minibatches",
                .minimum = 1,
                .maximum = 1e6,
                .default_value = 1,
                .live = true,
                .doc = "gradients that are averaged for one update",
                .effect = "from the first minibatch after the next update on"},
     SGM_MEMBER(sgm_optimiser_options, accumulate)},
};

const sgm_setting *sgm_optimiser_settings(size_t *count)
{
    *count = sizeof optimiser_rows / sizeof *optimiser_rows;
    return optimiser_rows;
}

#define SCHEDULE(member, words, ...)                                                                         \
    {                                                                                                        \
        .option = {.name = #member, .live = true, .doc = words, __VA_ARGS__},                                \
        SGM_MEMBER(sgm_schedule, member)                                                                     \
    }

static const sgm_setting schedule_rows[] = {
    SCHEDULE(kind, "how the learning rate changes", .kind = SGM_KIND_TEXT,
             .choices = sgm__schedule_kind_names),
    SCHEDULE(period,
             "step: from one reduction to the next (0: 1); plateau: patience (0: 5); exponential: of one "
             "factor (0: 1); cosine, one_cycle: whole length (0: the run's)",
             .kind = SGM_KIND_NUMBER, .unit = "epochs", .maximum = 1e9),
    SCHEDULE(factor, "of the learning rate; 0: step, plateau 0.1, exponential 0.95, one_cycle 0.04, cosine 0",
             .kind = SGM_KIND_NUMBER, .maximum = 1),
    SCHEDULE(warm_up, "linear rise at the beginning", .kind = SGM_KIND_NUMBER, .unit = "epochs",
             .maximum = 1e9),
};

const sgm_setting *sgm_schedule_settings(size_t *count)
{
    *count = sizeof schedule_rows / sizeof *schedule_rows;
    return schedule_rows;
}

#define RUN(member, words, ...)                                                                              \
    {                                                                                                        \
        .option = {.name = #member, .doc = words, __VA_ARGS__}, SGM_MEMBER(sgm_run_options, member)          \
    }

static const sgm_setting run_rows[] = {
    RUN(epochs, "through the data; 1 if there are no iterations either", .kind = SGM_KIND_INTEGER,
        .minimum = 1, .maximum = 1e9),
    RUN(iterations, "minibatches in all", .kind = SGM_KIND_INTEGER, .minimum = 1, .maximum = 1e15),
    RUN(folder, "where checkpoints and metrics go", .kind = SGM_KIND_TEXT),
    RUN(checkpoint_every, "from one checkpoint to the next; -1: only at the end", .kind = SGM_KIND_INTEGER,
        .unit = "epochs", .minimum = -1, .maximum = 1e9, .default_value = 1),
    RUN(resume, "go on from the folder's checkpoint if there is one", .kind = SGM_KIND_BOOLEAN),
    RUN(catch_interrupt, "SIGINT, SIGTERM and the like stop the run, with a checkpoint",
        .kind = SGM_KIND_BOOLEAN),
    RUN(paused, "begin paused, and wait for a command", .kind = SGM_KIND_BOOLEAN),
};

const sgm_setting *sgm_run_settings(size_t *count)
{
    *count = sizeof run_rows / sizeof *run_rows;
    return run_rows;
}

/* --- settings of one optimiser --- */

/* Names of the schedule's settings begin with "schedule.", as its options are a struct within the
 * optimiser's. */
const sgm_setting *sgm__optimiser_setting(sgm_optimiser *optimiser, const char *name, void **options)
{
    size_t count;
    if (sgm__begins_with(name, SGM__SCHEDULE_PREFIX)) {
        const sgm_setting *rows = sgm_schedule_settings(&count);
        *options = &optimiser->options.schedule;
        return sgm_setting_find(rows, count, name + strlen(SGM__SCHEDULE_PREFIX));
    }
    const sgm_setting *rows = sgm_optimiser_settings(&count);
    *options = &optimiser->options;
    return sgm_setting_find(rows, count, name);
}

/* Whether the option at this offset is a number of some methods only, such as momentum. A type uses those of
 * them that have a default other than 0. */
static bool is_of_method(size_t offset)
{
    return offset == offsetof(sgm_optimiser_options, momentum) ||
           offset == offsetof(sgm_optimiser_options, decay_rate) ||
           offset == offsetof(sgm_optimiser_options, beta1) ||
           offset == offsetof(sgm_optimiser_options, beta2) ||
           offset == offsetof(sgm_optimiser_options, epsilon) ||
           offset == offsetof(sgm_optimiser_options, tolerance) ||
           offset == offsetof(sgm_optimiser_options, history);
}

/* Whether the option at this offset concerns gradients, or the updates that are made of them. */
static bool is_of_gradients(size_t offset)
{
    return offset == offsetof(sgm_optimiser_options, weight_decay) ||
           offset == offsetof(sgm_optimiser_options, clip_value) ||
           offset == offsetof(sgm_optimiser_options, clip_norm) ||
           offset == offsetof(sgm_optimiser_options, average) ||
           offset == offsetof(sgm_optimiser_options, accumulate);
}

static bool is_zero(const sgm_setting *setting, const sgm_optimiser_options *options)
{
    static const char zero[sizeof(double)];
    return memcmp((const char *)options + setting->offset, zero, setting->size) == 0;
}

bool sgm__optimiser_type_uses(const sgm_optimiser_type *type, const sgm_setting *setting)
{
    if (setting->offset == offsetof(sgm_optimiser_options, population))
        return type->search != NULL;
    if (is_of_gradients(setting->offset))
        return type->search == NULL;
    return !is_of_method(setting->offset) || !is_zero(setting, &type->defaults);
}

char *sgm__optimiser_type_settings(const sgm_optimiser_type *type)
{
    sgm__text known = {0};
    for (size_t i = 0; i < sizeof optimiser_rows / sizeof *optimiser_rows; i++)
        if (sgm__optimiser_type_uses(type, &optimiser_rows[i]))
            sgm__text_append(&known, "%s%s", known.length > 0 ? ", " : "", optimiser_rows[i].option.name);
    return sgm__text_take(&known);
}

/* A setting that the optimiser never reads would be accepted without effect; the error lists the settings
 * that it has. */
static sgm_status check_used(const sgm_optimiser_type *type, const sgm_setting *setting)
{
    if (sgm__optimiser_type_uses(type, setting))
        return SGM_OK;
    char *known = sgm__optimiser_type_settings(type);
    sgm_status status = sgm_fail(SGM_ERROR_STATE, "the optimiser %s has no %s; it has %s", type->name,
                                 setting->option.name, known != NULL ? known : "");
    sgm__free(known);
    return status;
}

sgm_status sgm__optimiser_check_used(const sgm_optimiser *optimiser, const char *name)
{
    size_t count;
    const sgm_setting *rows = sgm_optimiser_settings(&count), *setting = sgm_setting_find(rows, count, name);
    return optimiser == NULL || setting == NULL ? SGM_OK : check_used(optimiser->type, setting);
}

sgm_status sgm__optimiser_check_given(const sgm_optimiser_type *type, const sgm_optimiser_options *options)
{
    for (size_t i = 0; i < sizeof optimiser_rows / sizeof *optimiser_rows; i++)
        if (!is_zero(&optimiser_rows[i], options))
            SGM_TRY(check_used(type, &optimiser_rows[i]));
    return SGM_OK;
}

sgm_status sgm_optimiser_set(sgm_optimiser *optimiser, const char *name, const sgm_content *content)
{
    void *options;
    if (optimiser == NULL || name == NULL || content == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_optimiser_set: expected an optimiser, a name and a content, "
                                            "got NULL");
    const sgm_setting *setting = sgm__optimiser_setting(optimiser, name, &options);
    if (setting == NULL)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "optimiser %s: there is no setting '%s'", optimiser->type->name,
                        name);
    SGM_TRY(sgm__optimiser_check_used(optimiser, name));
    return sgm_setting_set(setting, options, name, content);
}

/* --- checks --- */

/* The schedule's kind is checked first, as a program may have set any number. Messages begin with the
 * optimiser's type. */
sgm_status sgm__optimiser_check(const char *type, const sgm_optimiser_options *options)
{
    char what[128], schedule[160];
    snprintf(what, sizeof what, "optimiser %s", type);
    snprintf(schedule, sizeof schedule, "%s: schedule", what);
    if ((unsigned)options->schedule.kind > SGM_PLATEAU)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: there is no kind %d", schedule, (int)options->schedule.kind);
    for (size_t i = 0; i < sizeof optimiser_rows / sizeof *optimiser_rows; i++)
        SGM_TRY(sgm__setting_check(&optimiser_rows[i], options, what));
    for (size_t i = 0; i < sizeof schedule_rows / sizeof *schedule_rows; i++)
        SGM_TRY(sgm__setting_check(&schedule_rows[i], &options->schedule, schedule));
    return SGM_OK;
}

sgm_status sgm__run_options_check(const sgm_run_options *options)
{
    for (size_t i = 0; i < sizeof run_rows / sizeof *run_rows; i++)
        SGM_TRY(sgm__setting_check(&run_rows[i], options, "sgm_trainer_run"));
    return SGM_OK;
}
