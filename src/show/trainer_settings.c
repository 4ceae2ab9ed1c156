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

/* --- what is frozen --- */

static const sgm_option frozen_row = {
    .name = "frozen",
    .kind = SGM_KIND_TEXT,
    .live = true,
    .doc = "parameters that stay as they are: patterns with commas between them, \"*.weights, 3-dense.*\""};

/* The patterns with commas between them, as set_frozen reads them. */
static sgm_status get_frozen(const sgm__bound *bound, sgm_content *content)
{
    const sgm_trainer *trainer = bound->trainer;
    sgm__text text = {0};
    sgm__text_append(&text, "%s", "");
    for (size_t i = 0; i < sgm__patterns_of(trainer)->frozen_count; i++)
        sgm__text_append(&text, "%s%s", i > 0 ? ", " : "", sgm__patterns_of(trainer)->frozen[i]);
    char *list = sgm__text_take(&text);
    *content = (sgm_content){SGM_KIND_TEXT, {.text = list}};
    return list != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* The patterns of a text, while they are checked. */
typedef struct pattern_list {
    char **items;
    size_t count, capacity;
} pattern_list;

static void free_list(pattern_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        sgm__free(list->items[i]);
    sgm__free(list->items);
}

/* Adds one pattern without the spaces around it. An empty one, between two commas, is refused by
 * sgm__pattern_check. */
static sgm_status add_pattern(pattern_list *list, const char *text, size_t length)
{
    while (length > 0 && (text[0] == ' ' || text[0] == '\t')) {
        text++;
        length--;
    }
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    SGM_TRY(sgm__reserve(&list->items, &list->capacity, list->count + 1, sizeof(char *)));
    char *pattern = sgm__strndup(text, length);
    if (pattern == NULL)
        return SGM_ERROR_MEMORY;
    list->items[list->count++] = pattern;
    return sgm__pattern_check(pattern);
}

/* Reads patterns with commas between them; a blank text is an empty list. */
static sgm_status read_patterns(const char *text, pattern_list *list)
{
    if (text[strspn(text, " \t")] == '\0')
        return SGM_OK;
    for (;; text++) {
        size_t length = strcspn(text, ",");
        SGM_TRY(add_pattern(list, text, length));
        text += length;
        if (*text == '\0')
            return SGM_OK;
    }
}

/* Sets the summed gradients of frozen parameters to zero: when such a parameter is trained again later, it
 * begins with none. */
static sgm_status drop_accumulated(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    for (size_t i = 0; i < learner->recording.parameter_count; i++) {
        const char *name = learner->recording.parameters[i].name;
        char *slot = sgm__format(SGM__SLOT_PREFIX "accumulated.%s", name);
        sgm_type type;
        sgm_status status = slot != NULL ? SGM_OK : SGM_ERROR_MEMORY;
        if (status == SGM_OK && sgm__trainer_is_frozen(trainer, name) &&
            sgm_session_has(learner->session, slot)) {
            status = sgm_session_state_type(learner->session, slot, &type);
            sgm_tensor *zeros = status == SGM_OK ? sgm_tensor_create(type.dtype, &type.shape) : NULL;
            if (zeros != NULL)
                status = sgm_session_set(learner->session, slot, zeros);
            if (zeros != NULL && status == SGM_OK)
                status = sgm__trainer_state_was_set(trainer, slot);
            else if (zeros == NULL && status == SGM_OK)
                status = SGM_ERROR_MEMORY;
            sgm_tensor_free(zeros);
        }
        sgm__free(slot);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* All patterns are read and checked before the old ones are replaced. */
static sgm_status set_frozen(const sgm__bound *bound, const sgm_content *content)
{
    sgm_trainer *trainer = bound->trainer;
    pattern_list list = {0};
    sgm_status status = read_patterns(content->as.text, &list);
    if (status == SGM_OK)
        status = sgm__trainer_check_frozen(trainer, list.items, list.count);
    if (status != SGM_OK) {
        free_list(&list);
        return status;
    }
    pattern_list old = {sgm__patterns_of(trainer)->frozen, sgm__patterns_of(trainer)->frozen_count,
                        sgm__patterns_of(trainer)->frozen_capacity};
    free_list(&old);
    sgm__patterns_of(trainer)->frozen = list.items;
    sgm__patterns_of(trainer)->frozen_count = list.count;
    sgm__patterns_of(trainer)->frozen_capacity = list.capacity;
    sgm__trainer_forget_programs(trainer);
    return sgm__journal_of(trainer)->restoring ? SGM_OK : drop_accumulated(trainer);
}

static const sgm__access frozen_access = {.get = get_frozen, .set = set_frozen};

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
    SGM_TRY(sgm__publish_value(trainer, optimiser, PREFIX, &frozen_row, &frozen_access, NULL));
    SGM_TRY(sgm__publish_child(optimiser, "schedule", "schedule", &schedule));
    rows = sgm_schedule_settings(&count);
    for (size_t i = 0; i < count; i++)
        SGM_TRY(sgm__publish_value(trainer, schedule, PREFIX SGM__SCHEDULE_PREFIX, &rows[i].option,
                                   &setting_access, NULL));
    return SGM_OK;
}
