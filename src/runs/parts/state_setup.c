/* What a program gave to a trainer, for a trainer to which nobody gives it again: the optimiser with its
 * settings, and the hooks that have a text.
 *
 * The sections of the optimiser and of the hooks (state_position.c, state_hooks.c) write it. Only a trainer
 * without an optimiser takes it (trainer_checkpoint.c): one that has an optimiser was set up by its program,
 * whose word counts. What is taken is as the program had given it at first; what was changed since comes with
 * the settings (src/journal/settings.c). */
#include "optim/optimiser.h"
#include "runs/parts/setup.h"
#include "runs/parts/state.h"
#include "train/train.h"

#define OPTIMISER_KEY "optimiser_settings"
#define TEXTS_KEY "set_up"
#define NAMES_KEY "set_up_without_text"

/* --- the optimiser: each setting by its name --- */

static json_t *content_json(const sgm_content *content)
{
    switch (content->kind) {
    case SGM_KIND_INTEGER:
        return json_integer(content->as.integer);
    case SGM_KIND_TEXT:
        return json_string(content->as.text);
    default:
        return sgm__state_number(content->as.number);
    }
}

/* `type`: only the rows that it uses; NULL: all. */
static sgm_status describe_rows(const sgm_setting *rows, size_t count, const sgm_optimiser_type *type,
                                const char *prefix, const void *options, json_t *settings)
{
    for (size_t i = 0; i < count; i++) {
        sgm_content content = {0};
        if (type != NULL && !sgm__optimiser_type_uses(type, &rows[i]))
            continue;
        char *name = sgm__format("%s%s", prefix, rows[i].option.name);
        sgm_status status = name != NULL ? sgm_setting_get(&rows[i], options, &content) : SGM_ERROR_MEMORY;
        if (status == SGM_OK)
            json_object_set_new(settings, name, content_json(&content));
        sgm_content_clear(&content);
        sgm__free(name);
        SGM_TRY(status);
    }
    return SGM_OK;
}

sgm_status sgm__setup_describe_optimiser(const sgm_trainer *trainer, json_t *state)
{
    const sgm_optimiser *optimiser = sgm__learner_of(trainer)->optimiser;
    if (optimiser == NULL || sgm__trainer_is_replica(trainer))
        return SGM_OK;
    size_t count;
    json_t *settings = json_object();
    const sgm_setting *rows = sgm_optimiser_settings(&count);
    sgm_status status = describe_rows(rows, count, optimiser->type, "", &optimiser->options, settings);
    rows = sgm_schedule_settings(&count);
    if (status == SGM_OK)
        status =
            describe_rows(rows, count, NULL, SGM__SCHEDULE_PREFIX, &optimiser->options.schedule, settings);
    json_object_set_new(state, OPTIMISER_KEY, settings);
    return status;
}

/* The value of a setting: the first one, if it was changed, as the changes come behind. */
static sgm_status read_setting(const sgm__saved_state *state, const char *name, const json_t *value,
                               sgm_kind kind, sgm_content *content)
{
    char *identifier = sgm__format("optimiser.%s", name);
    if (identifier == NULL)
        return SGM_ERROR_MEMORY;
    const char *first = json_string_value(
        json_array_get(json_object_get(json_object_get(state->json, "settings"), identifier), 0));
    sgm__free(identifier);
    if (first != NULL)
        return sgm_content_parse(first, kind, content);
    if (kind == SGM_KIND_INTEGER && json_is_integer(value)) {
        *content = sgm_integer_content(json_integer_value(value));
        return SGM_OK;
    }
    return json_is_string(value) ? sgm_content_parse(json_string_value(value), kind, content)
                                 : sgm_fail(SGM_ERROR_FORMAT, "it is no value");
}

static sgm_status set_option(const sgm__saved_state *state, sgm_optimiser *optimiser, const char *name,
                             const json_t *value)
{
    sgm_content content = {0};
    void *options;
    const sgm_setting *row = sgm__optimiser_setting(optimiser, name, &options);
    if (row == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "its optimiser has a setting '%.60s' that there is not", name);
    sgm_status status = read_setting(state, name, value, row->option.kind, &content);
    if (status == SGM_OK)
        status = sgm_optimiser_set(optimiser, name, &content);
    sgm_content_clear(&content);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("its optimiser's %.60s", name);
}

static sgm_optimiser *make_optimiser(const sgm__saved_state *state, const json_t *settings)
{
    json_t *all = (json_t *)(uintptr_t)settings; /* the macro changes nothing */
    const char *name;
    json_t *value;
    sgm_optimiser *optimiser = sgm_optimiser_create(state->optimiser, NULL);
    sgm_status status = optimiser != NULL ? SGM_OK : sgm_last_status();
    json_object_foreach(all, name, value)
    {
        if (status == SGM_OK)
            status = set_option(state, optimiser, name, value);
    }
    if (status == SGM_OK)
        return optimiser;
    sgm_optimiser_free(optimiser);
    return NULL;
}

bool sgm__setup_is_wanted(const sgm_trainer *trainer, const sgm__saved_state *state, const sgm__parts *wanted)
{
    unsigned parts = wanted->parts != 0 ? wanted->parts & state->parts : state->parts;
    return sgm__learner_of(trainer)->optimiser == NULL && sgm__data_of(trainer)->training != NULL &&
           !sgm__trainer_is_replica(trainer) && parts == SGM_PART_EVERYTHING && wanted->pattern_count == 0 &&
           state->optimiser != NULL && json_is_object(json_object_get(state->json, OPTIMISER_KEY));
}

sgm_status sgm__setup_take_optimiser(sgm_trainer *trainer, const sgm__saved_state *state)
{
    sgm_optimiser *optimiser = make_optimiser(state, json_object_get(state->json, OPTIMISER_KEY));
    if (optimiser == NULL)
        return sgm__last_failure();
    sgm__trainer_forget_programs(trainer);
    sgm__learner_of(trainer)->optimiser = optimiser;
    return SGM_OK;
}

void sgm__setup_give_back_optimiser(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    sgm__trainer_forget_programs(trainer);
    sgm_optimiser_free(learner->optimiser);
    learner->optimiser = NULL;
}

/* --- hooks --- */

static json_t *texts_json(char *const *texts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(texts[i]));
    return list;
}

/* Of the trainer, and of its workers' local hooks, which all have alike. */
static sgm_status find_setup(const sgm_trainer *trainer, sgm__hooks_setup *setup)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    SGM_TRY(sgm__hooks_set_up(sgm__hooks_of(trainer), setup));
    return strategy != NULL ? sgm__hooks_set_up(sgm__hooks_of(strategy->first_replica(trainer)), setup)
                            : SGM_OK;
}

sgm_status sgm__setup_describe_hooks(const sgm_trainer *trainer, json_t *state)
{
    sgm__hooks_setup setup = {0};
    if (sgm__trainer_is_replica(trainer))
        return SGM_OK;
    sgm_status status = find_setup(trainer, &setup);
    json_object_set_new(state, TEXTS_KEY, texts_json(setup.texts, setup.text_count));
    json_object_set_new(state, NAMES_KEY, texts_json(setup.names, setup.name_count));
    sgm__hooks_setup_clear(&setup);
    return status;
}

/* How often a name is in a list. */
static size_t count_of(char *const *names, size_t count, const char *name)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += strcmp(names[i], name) == 0;
    return found;
}

/* Each hook that no text describes must be here already, given by the program. */
static sgm_status check_names(const sgm__hooks_setup *here, const json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        size_t wanted = 0;
        for (size_t k = 0; name != NULL && k <= i; k++) {
            const char *other = json_string_value(json_array_get(names, k));
            wanted += other != NULL && strcmp(other, name) == 0;
        }
        if (name == NULL)
            return sgm_fail(SGM_ERROR_FORMAT, "the name of a hook is no text");
        if (count_of(here->names, here->name_count, name) < wanted)
            return sgm_fail(SGM_ERROR_STATE,
                            "it was trained with the hook '%.100s', which its program had made and no text "
                            "describes: attach that hook before loading, or set the trainer up with an "
                            "optimiser and hooks of its own",
                            name);
    }
    return SGM_OK;
}

static sgm_status attach(sgm_trainer *trainer, const char *text, sgm__set_up_hooks *made)
{
    bool attached = false;
    char *name = NULL, **grown = sgm__realloc(made->names, (made->count + 1) * sizeof *grown);
    if (grown == NULL)
        return SGM_ERROR_MEMORY;
    made->names = grown;
    sgm_hook *hook = text != NULL ? sgm_hook_parse(text) : NULL;
    sgm_status status = hook != NULL
                            ? sgm__trainer_attach_as(trainer, hook, SGM__ATTACHED_AS_SETUP, &attached, &name)
                        : text == NULL ? sgm_fail(SGM_ERROR_FORMAT, "it is no text")
                                       : sgm__last_failure();
    sgm_hook_free(hook);
    if (status != SGM_OK)
        sgm__fail_within("its hook '%.200s'", text != NULL ? text : "");
    if (attached && name != NULL)
        made->names[made->count++] = name;
    else
        sgm__free(name);
    return status;
}

sgm_status sgm__setup_take_hooks(sgm_trainer *trainer, const sgm__saved_state *state, sgm__set_up_hooks *made)
{
    const json_t *texts = json_object_get(state->json, TEXTS_KEY);
    sgm__hooks_setup here = {0};
    sgm_status status = find_setup(trainer, &here);
    if (status == SGM_OK)
        status = check_names(&here, json_object_get(state->json, NAMES_KEY));
    sgm__hooks_setup_clear(&here);
    for (size_t i = 0; i < json_array_size(texts) && status == SGM_OK; i++)
        status = attach(trainer, json_string_value(json_array_get(texts, i)), made);
    return status;
}

/* The newest first: a hook may be required by one that came later. */
static void detach(sgm_trainer *trainer, const sgm__set_up_hooks *made)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    for (size_t i = made->count; i-- > 0;) {
        char *full = NULL, *text = NULL;
        bool is_own =
            sgm__hooks_detach_named(sgm__hooks_of(trainer), made->names[i], &full, &text, NULL) == SGM_OK;
        sgm__free(full);
        sgm__free(text);
        if (is_own || strategy == NULL)
            continue;
        strategy->detach(trainer, made->names[i], &full, &text);
        sgm__free(full);
        sgm__free(text);
    }
}

void sgm__setup_end_hooks(sgm_trainer *trainer, sgm__set_up_hooks *made, sgm_status status)
{
    char *message = status != SGM_OK ? sgm__strdup(sgm_last_error()) : NULL;
    if (status != SGM_OK)
        detach(trainer, made);
    if (message != NULL)
        sgm_fail(status, "%s", message);
    sgm__free(message);
    for (size_t i = 0; i < made->count; i++)
        sgm__free(made->names[i]);
    sgm__free(made->names);
    *made = (sgm__set_up_hooks){0};
}
