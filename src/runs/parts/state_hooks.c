/* What a checkpoint has of hooks: texts of hooks that were attached while the trainer ran, what all hooks
 * remember, and the results that they share.
 *
 * One of the sections of state.c. Numbers of hooks are written and matched by src/hooks/hooks_state.c,
 * texts by src/train/trainer_hooks.c; this file turns both into keys of the JSON text ("hooks",
 * "attached") and adds "shared", as a rule may read a shared result before the hook that makes it has run
 * again. */
#include "registry/pattern.h"
#include "registry/registry_internal.h"
#include "runs/parts/setup.h"
#include "runs/parts/state.h"
#include "train/trainer_hooks.h"

#include <stdio.h>

#define TIME_PREFIX "time_" /* shared results that begin so depend on the clock, and are not saved */

/* --- what hooks remember --- */

/* The numbers as texts: criteria remember infinities, which JSON does not have. */
static sgm_status append_numbers(const sgm_trainer *trainer, json_t *state)
{
    size_t count = 0;
    double *numbers = NULL;
    SGM_TRY(sgm__hooks_copy_state(sgm__hooks_of(trainer), &numbers, &count));
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, sgm__state_number(numbers[i]));
    json_object_set_new(state, "hooks", list);
    sgm__free(numbers);
    return SGM_OK;
}

/* Sets hooks' states again after a failure, whose message stays the reported one. If that fails too, its
 * own error is reported. */
static void restore(sgm__hooks *hooks, const sgm__number_list *before)
{
    char message[1024];
    sgm_status status = sgm_last_status();
    snprintf(message, sizeof message, "%s", sgm_last_error());
    if (sgm__hooks_set_state(hooks, before->items, before->count) == SGM_OK)
        sgm_fail(status, "%s", message);
}

/* Sets the numbers of all hooks; after a refusal they have those that they had before. A checkpoint
 * without numbers changes nothing. */
static sgm_status set_numbers(sgm__hooks *hooks, const json_t *json)
{
    sgm__number_list list = {0}, before = {0};
    sgm_status status = sgm__state_read_list(json, "hooks", &list);
    if (status == SGM_OK && list.count > 0) {
        status = sgm__hooks_copy_state(hooks, &before.items, &before.count);
        if (status == SGM_OK)
            status = sgm__hooks_set_state(hooks, list.items, list.count);
        if (status != SGM_OK && before.items != NULL)
            restore(hooks, &before);
    }
    sgm__free(list.items);
    sgm__free(before.items);
    return status;
}

/* Attaches the hooks of the checkpoint's list, and gives all hooks what they remember. After a refusal both
 * are as before, so nothing has to be put back later: this is the last section that learns. */
static sgm_status learn(sgm_trainer *trainer, const sgm__saved_state *state, sgm__number_list *before)
{
    (void)before;
    sgm__loaded_hooks loaded = {0};
    sgm__trainer_load_hooks(trainer, state->json, &loaded);
    sgm_status status = set_numbers(sgm__hooks_of(trainer), json_object_get(state->json, "hooks"));
    sgm__loaded_hooks_end(trainer, &loaded, status == SGM_OK);
    return status;
}

/* --- what hooks share --- */

/* A shared result as JSON; NULL: tensors and registries are not saved. A number is the text in a list of
 * one, so that it can be told from a text. */
static json_t *shared_value(const sgm_content *content)
{
    switch (content->kind) {
    case SGM_KIND_BOOLEAN:
        return json_boolean(content->as.boolean);
    case SGM_KIND_INTEGER:
        return json_integer(content->as.integer);
    case SGM_KIND_NUMBER:
        return json_pack("[o]", sgm__state_number(content->as.number)); /* a list: no text */
    case SGM_KIND_TEXT:
        return json_string(content->as.text);
    default:
        return NULL;
    }
}

/* Saves shared results, as a hook that reads one may be due before the hook that makes it. */
static sgm_status append_shared(const sgm_trainer *trainer, json_t *state)
{
    sgm_matches matches;
    SGM_TRY(sgm_registry_resolve(sgm__registry_of(trainer), "shared.*", &matches));
    json_t *shared = json_object();
    for (size_t i = 0; i < matches.count; i++) {
        const char *name = matches.items[i].identifier + strlen("shared.");
        json_t *value = !sgm__begins_with(name, TIME_PREFIX) ? shared_value(&matches.items[i].content) : NULL;
        if (value != NULL)
            json_object_set_new(shared, name, value);
    }
    sgm_matches_free(&matches);
    json_object_set_new(state, "shared", shared);
    return SGM_OK;
}

/* Sets one shared result as shared_value has written it; anything else is passed over. */
static sgm_status share_again(sgm_registry *shared, const char *name, const json_t *value)
{
    double number;
    if (json_is_boolean(value))
        return sgm_registry_set(shared, name, sgm_boolean_content(json_is_true(value)));
    if (json_is_integer(value))
        return sgm_registry_set(shared, name, sgm_integer_content(json_integer_value(value)));
    if (json_is_string(value))
        return sgm_registry_set(shared, name, sgm_text_content(json_string_value(value)));
    if (sgm__state_exact(json_array_get(value, 0), &number))
        return sgm_registry_set(shared, name, sgm_number_content(number));
    return SGM_OK;
}

static void share_all_again(const sgm_trainer *trainer, sgm_registry *shared, json_t *json)
{
    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        const char *name = json_object_iter_key(at);
        if (share_again(shared, name, json_object_iter_value(at)) != SGM_OK)
            sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                     "shared.%.60s of the checkpoint is left out: %s", name, sgm_last_error());
    }
}

/* Results of hooks, as shared.NAME; those of a worker are also shown by its trainer. Results that the file
 * lacks are forgotten, as they belong to another position. */
static void set_shared(const sgm_trainer *trainer, json_t *json)
{
    sgm_content shared;
    if (sgm__trainer_is_replica(trainer)) {
        sgm_registry *results = sgm__sharing_of(sgm__sharing_of(trainer)->owner)->strategy->results(trainer);
        sgm__registry_clear(results);
        share_all_again(trainer, results, json);
    }
    if (sgm_registry_get(sgm__registry_of(trainer), "shared", &shared) != SGM_OK)
        return;
    sgm__registry_clear(shared.as.registry);
    share_all_again(trainer, shared.as.registry, json);
    sgm_content_clear(&shared);
}

/* --- the section --- */

/* Copying what hooks remember waits for those in the background, so it comes before their results. */
static sgm_status describe(const sgm_trainer *trainer, json_t *state)
{
    SGM_TRY(append_numbers(trainer, state));
    SGM_TRY(sgm__trainer_save_hooks(trainer, state));
    SGM_TRY(sgm__setup_describe_hooks(trainer, state));
    return append_shared(trainer, state);
}

/* Results may be set last: nobody can refuse them. */
static sgm_status set(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    (void)parts;
    set_shared(trainer, json_object_get(state->json, "shared"));
    return SGM_OK;
}

const sgm__section sgm__hooks_section = {
    .part = SGM_PART_HOOKS, .describe = describe, .learn = learn, .set = set};
