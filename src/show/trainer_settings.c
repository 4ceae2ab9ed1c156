/* The optimiser's settings in the registry: numbers, the schedule, the moving average, what is frozen.
 *
 * The optimiser's own tables (src/optim) have a row for each setting; get_setting and set_setting serve
 * them all. Three settings need more than a number, and have functions of their own: accumulate, which
 * takes effect between two updates; average, which begins with the parameters; and the patterns of frozen
 * parameters. All replicas of a trainer have its settings, so entries are bound to the owner. */
#include "optim/optimiser.h"
#include "registry/pattern.h"
#include "show/show.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"

#include <stdio.h>

#define PREFIX "optimiser."

static sgm_status no_optimiser(void)
{
    return sgm_fail(SGM_ERROR_STATE, "the trainer has no optimiser yet");
}

/* The name of a setting in the optimiser's own tables. */
static const char *setting_name(const sgm__bound *bound)
{
    return bound->identifier + strlen(PREFIX);
}

static sgm_status get_setting(const sgm__bound *bound, sgm_content *content)
{
    void *options;
    if (sgm__learner_of(bound->trainer)->optimiser == NULL)
        return no_optimiser();
    SGM_TRY(sgm__optimiser_check_used(sgm__learner_of(bound->trainer)->optimiser, setting_name(bound)));
    const sgm_setting *setting =
        sgm__optimiser_setting(sgm__learner_of(bound->trainer)->optimiser, setting_name(bound), &options);
    return sgm_setting_get(setting, options, content);
}

/* Whether programs are made for a setting's value. The learning rate, and the schedule that it follows, are
 * fed in each step. */
static bool is_recorded(const char *setting)
{
    return strcmp(setting, "learning_rate") != 0 && !sgm__begins_with(setting, SGM__SCHEDULE_PREFIX);
}

/* A setting that this optimiser does not use is refused, but passed over while a checkpoint is being
 * restored, which may come from a run with another optimiser. */
static bool is_passed_over(const sgm__bound *bound)
{
    bool is =
        sgm__journal_of(bound->trainer)->restoring &&
        sgm__optimiser_check_used(sgm__learner_of(bound->trainer)->optimiser, setting_name(bound)) != SGM_OK;
    if (is)
        sgm_clear_error();
    return is;
}

/* The programs are recorded anew where the setting is part of them. */
static sgm_status set_setting(const sgm__bound *bound, const sgm_content *content)
{
    if (is_passed_over(bound))
        return SGM_OK;
    SGM_TRY(sgm_optimiser_set(sgm__learner_of(bound->trainer)->optimiser, setting_name(bound), content));
    if (is_recorded(setting_name(bound)))
        sgm__trainer_forget_programs(bound->trainer);
    return SGM_OK;
}

static const sgm__access setting_access = {.get = get_setting, .set = set_setting};

/* --- gradients of several minibatches --- */

/* A number that was set and does not count yet is shown already. */
static sgm_status get_accumulate(const sgm__bound *bound, sgm_content *content)
{
    const sgm_trainer *trainer = bound->trainer;
    if (sgm__learner_of(trainer)->optimiser == NULL)
        return no_optimiser();
    SGM_TRY(sgm__optimiser_check_used(sgm__learner_of(trainer)->optimiser, setting_name(bound)));
    *content = sgm_integer_content(sgm__progress_of(trainer)->next_accumulate > 0
                                       ? sgm__progress_of(trainer)->next_accumulate
                                       : sgm__learner_of(trainer)->optimiser->options.accumulate);
    return SGM_OK;
}

static sgm_status set_accumulate(const sgm__bound *bound, const sgm_content *content)
{
    sgm_trainer *trainer = bound->trainer;
    if (is_passed_over(bound))
        return SGM_OK;
    SGM_TRY(sgm__optimiser_check_used(sgm__learner_of(trainer)->optimiser, setting_name(bound)));
    sgm__progress_of(trainer)->next_accumulate = content->as.integer;
    return SGM_OK;
}

static const sgm__access accumulate_access = {.get = get_accumulate, .set = set_accumulate};

/* Another number takes effect at the first minibatch of an update: in the middle, gradients that are
 * summed already would be lost or counted twice. */
bool sgm__trainer_updates_next(sgm_trainer *trainer)
{
    sgm__trainer_progress *progress = sgm__progress_of(trainer);
    sgm__training_position *position = sgm__position_of(trainer);
    sgm_optimiser_options *options = &sgm__learner_of(trainer)->optimiser->options;
    if (position->accumulated == 0 && progress->next_accumulate > 0) {
        if (options->accumulate != progress->next_accumulate)
            sgm__trainer_forget_programs(trainer);
        options->accumulate = progress->next_accumulate;
        progress->next_accumulate = 0;
    }
    return position->accumulated + 1 >= options->accumulate;
}

/* --- the moving average --- */

/* Sets every moving average to its parameter's value, also in workers. Called when averaging is switched
 * on: an average that was kept from an earlier time would mix parameters of long ago into evaluation. */
static sgm_status restart_averages(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const char *name;
    SGM_TRY(sgm__trainer_collect(trainer));
    for (size_t i = 0; (name = sgm_session_state_at(learner->session, i)) != NULL; i++) {
        if (!sgm__begins_with(name, SGM__AVERAGE_PREFIX))
            continue;
        sgm_tensor *value = sgm_session_get(learner->session, name + strlen(SGM__AVERAGE_PREFIX));
        sgm_status status =
            value != NULL ? sgm_session_set(learner->session, name, value) : sgm_last_status();
        sgm_tensor_free(value);
        if (status == SGM_OK)
            status = sgm__trainer_state_was_set(trainer, name);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* While a checkpoint is being restored, its averages are there already and stay. */
static sgm_status set_average(const sgm__bound *bound, const sgm_content *content)
{
    if (sgm__learner_of(bound->trainer)->optimiser->options.average == 0 &&
        !sgm__journal_of(bound->trainer)->restoring)
        SGM_TRY(restart_averages(bound->trainer));
    return set_setting(bound, content);
}

static const sgm__access average_access = {.get = get_setting, .set = set_average};

/* --- all --- */

static const sgm_option type_row = {
    .name = "type", .kind = SGM_KIND_TEXT, .read_only = true, .doc = "of the optimiser"};

static sgm_status get_type(const sgm__bound *bound, sgm_content *content)
{
    if (sgm__learner_of(bound->trainer)->optimiser == NULL)
        return no_optimiser();
    *content = (sgm_content){SGM_KIND_TEXT,
                             {.text = sgm__strdup(sgm__learner_of(bound->trainer)->optimiser->type->name)}};
    return content->as.text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static const sgm__access type_access = {.get = get_type};

/* The functions for a setting by its name. */
static const sgm__access *access_of(const char *name)
{
    return strcmp(name, "accumulate") == 0 ? &accumulate_access
           : strcmp(name, "average") == 0  ? &average_access
                                           : &setting_access;
}

/* Entries are made in the registry of `trainer`, which may be a replica, and bound to its owner. */
sgm_status sgm__publish_settings(sgm_trainer *trainer)
{
    size_t count;
    sgm_registry *optimiser, *schedule;
    SGM_TRY(sgm__publish_child(sgm__registry_of(trainer), "optimiser", "optimiser", &optimiser));
    trainer = sgm__sharing_of(trainer)->owner; /* all replicas have the settings of their owner */
    SGM_TRY(sgm__publish_value(trainer, optimiser, PREFIX, &type_row, &type_access, NULL));
    const sgm_setting *rows = sgm_optimiser_settings(&count);
    for (size_t i = 0; i < count; i++)
        SGM_TRY(sgm__publish_value(trainer, optimiser, PREFIX, &rows[i].option,
                                   access_of(rows[i].option.name), NULL));
    SGM_TRY(sgm__publish_value(trainer, optimiser, PREFIX, &sgm__frozen_row, &sgm__frozen_access, NULL));
    SGM_TRY(sgm__publish_child(optimiser, "schedule", "schedule", &schedule));
    rows = sgm_schedule_settings(&count);
    for (size_t i = 0; i < count; i++)
        SGM_TRY(sgm__publish_value(trainer, schedule, PREFIX SGM__SCHEDULE_PREFIX, &rows[i].option,
                                   &setting_access, NULL));
    return SGM_OK;
}
