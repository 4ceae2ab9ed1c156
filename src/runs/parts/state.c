/* The JSON text of a checkpoint: everything that is no tensor, from a table of sections.
 *
 * Writing goes through the table and lets each wanted section write its keys. Loading goes through it three
 * times: first all sections check what they need, then those whose owners may refuse it set it (preprocessors
 * and hooks judge their own states), and then the rest is set, which cannot fail but for memory. So a file
 * that does not fit leaves the trainer as it was. Callers are trainer_checkpoint.c, and the parallel
 * strategies for what replicas have of their own. */
#include "runs/parts/state.h"
#include "journal/changes.h"
#include "journal/temporary.h"
#include "runs/parts/files_version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST_COUNT ((int64_t)1 << 53) /* larger numbers of iterations or epochs are damage */

/* --- settings: the section only calls src/journal/settings.c and temporary.c --- */

static sgm_status describe_settings(const sgm_trainer *trainer, json_t *state)
{
    json_object_set_new(state, "settings", sgm__settings_describe(trainer));
    json_t *temporary = sgm__temporary_describe(trainer);
    if (temporary != NULL)
        json_object_set_new(state, "temporary", temporary);
    return SGM_OK;
}

static bool check_settings(sgm__saved_state *state)
{
    return sgm__temporary_is_readable(json_object_get(state->json, "temporary"));
}

static sgm_status set_settings(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    (void)parts;
    sgm__settings_restore(trainer, json_object_get(state->json, "settings"));
    return sgm__temporary_restore(trainer, json_object_get(state->json, "temporary"));
}

static const sgm__section settings_section = {
    .part = SGM_PART_SETTINGS, .describe = describe_settings, .check = check_settings, .set = set_settings};

/* --- the table --- */

/* The sections in the order in which they are set: preprocessors before hooks, as preprocessors can be put
 * back when hooks refuse, not the other way round; settings before the position, which counts by the
 * number of accumulated minibatches; the position last, as it sets the place in the data. */
static const sgm__section *const sections[] = {
    &sgm__pipeline_section, &sgm__averages_section, &sgm__optimiser_section, &sgm__preprocessors_section,
    &sgm__hooks_section,    &settings_section,      &sgm__metrics_section,   &sgm__position_section,
};
#define SECTION_COUNT (sizeof sections / sizeof *sections)

/* --- values --- */

/* Seventeen digits give back the same double. */
json_t *sgm__state_number(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    return json_string(text);
}

bool sgm__state_count(const json_t *state, const char *key, int64_t *value)
{
    const json_t *number = json_object_get(state, key);
    *value = json_is_integer(number) ? json_integer_value(number) : -1;
    return *value >= 0 && *value <= LARGEST_COUNT;
}

bool sgm__state_exact(const json_t *text, double *value)
{
    return json_is_string(text) && sgm__parse_double(json_string_value(text), value);
}

/* Numbers are JSON numbers, or texts where JSON has no number for them (infinities). */
sgm_status sgm__state_read_list(const json_t *json, const char *what, sgm__number_list *list)
{
    size_t count = json_array_size(json);
    *list = (sgm__number_list){sgm__calloc(count + 1, sizeof(double)), count};
    if (list->items == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(json, i);
        if (json_is_number(item))
            list->items[i] = json_number_value(item);
        else if (!sgm__state_exact(item, &list->items[i]))
            return sgm_fail(SGM_ERROR_FORMAT, "number %zu of the state of the %s is none", i, what);
    }
    return SGM_OK;
}

/* --- writing --- */

/* Writes the version, the names of the parts, and the keys of each wanted section into one flat object. */
sgm_status sgm__state_describe(const sgm_trainer *trainer, unsigned parts, json_t *state)
{
    json_t *names = json_array();
    for (unsigned part = 1; part <= parts; part <<= 1)
        if ((parts & part) != 0)
            json_array_append_new(names, json_string(sgm_part_name(part)));
    json_object_set_new(state, "version", json_integer(SGM__FILES_VERSION));
    json_object_set_new(state, "parts", names);
    for (size_t i = 0; i < SECTION_COUNT; i++)
        if ((parts & sections[i]->part) != 0)
            SGM_TRY(sections[i]->describe(trainer, state));
    return SGM_OK;
}

/* Keys are sorted, so equal trainings write equal files. What workers have of their own goes along only in
 * a whole checkpoint. */
sgm_status sgm__state_add(sgm_trainer *trainer, unsigned parts, sgm_bundle *bundle)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    json_t *state = json_object();
    sgm_status status = sgm__state_describe(trainer, parts, state);
    if (status == SGM_OK && parts == SGM_PART_EVERYTHING && strategy != NULL)
        status = strategy->describe_state(trainer, state);
    char *text =
        status == SGM_OK ? json_dumps(state, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(state);
    if (text == NULL)
        return status != SGM_OK ? status : sgm__fail_memory(1024);
    status = sgm_bundle_set_text(bundle, SGM__STATE_KEY, text);
    free(text);
    return status;
}

/* --- reading --- */

/* Checks all sections of the parts that the file has before anything is set. */
sgm_status sgm__state_read(sgm__saved_state *state, const char *source)
{
    state->position.best_loss = INFINITY;
    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if ((state->parts & sections[i]->part) == 0)
            continue;
        if (sections[i]->check != NULL && !sections[i]->check(state))
            return sgm_fail(SGM_ERROR_FORMAT,
                            "'%s': its training state lacks a number, or one is out of bounds", source);
        if (sections[i]->read != NULL && sections[i]->read(state) != SGM_OK)
            return sgm__fail_within("'%s'", source);
    }
    return SGM_OK;
}

/* Reads the list of part names. An unknown name is refused: a later version may have written it, and what
 * it means cannot be guessed. */
static sgm_status read_parts(sgm__saved_state *state, const char *source)
{
    const json_t *names = json_object_get(state->json, "parts");
    if (!json_is_array(names))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': its training state does not name its parts", source);
    state->parts = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        unsigned part = 0;
        if (name == NULL || sgm_parts_parse(name, &part) != SGM_OK)
            return sgm_fail(SGM_ERROR_FORMAT, "'%s': its training state names an unknown part '%.40s'",
                            source, name != NULL ? name : "");
        state->parts |= part;
    }
    return SGM_OK;
}

/* A file without the JSON text is one of another program, or of a program that saved a bundle itself: it
 * has parameters, and a network if it says so. */
sgm_status sgm__state_open(sgm__saved_state *state, const sgm_bundle *bundle, const char *source)
{
    const char *text = sgm_bundle_get_text(bundle, SGM__STATE_KEY);
    *state = (sgm__saved_state){.json = text != NULL ? json_loads(text, 0, NULL) : NULL};
    bool has_network = sgm_bundle_get_text(bundle, SGM__NETWORK_KEY) != NULL;
    if (text == NULL) {
        state->parts = SGM_PART_PARAMETERS | (has_network ? SGM_PART_NETWORK : 0);
        return SGM_OK;
    }
    if (!json_is_object(state->json))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' is no checkpoint: its training state is not readable",
                        source);
    if (sgm__files_version_check(state->json) != SGM_OK)
        return sgm__fail_within("'%s'", source);
    SGM_TRY(read_parts(state, source));
    if ((state->parts & SGM_PART_NETWORK) != 0 && !has_network)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' is no checkpoint: it has tensors, but no network", source);
    return sgm__state_read(state, source);
}

void sgm__state_close(sgm__saved_state *state)
{
    json_decref(state->json);
    sgm_pipeline_free(state->pipeline);
    state->json = NULL;
    state->pipeline = NULL;
}

/* --- setting --- */

/* Puts back what the sections in front of `count` have learnt; the reported error stays that of the
 * refusal. */
static void put_back(sgm_trainer *trainer, const sgm__number_list *before, size_t count)
{
    char message[1024];
    sgm_status status = sgm_last_status();
    snprintf(message, sizeof message, "%s", sgm_last_error());
    for (size_t i = 0; i < count; i++)
        if (before[i].items != NULL && sections[i]->put_back != NULL)
            sections[i]->put_back(trainer, &before[i]);
    sgm_fail(status, "%s", message);
}

/* Sets what may be refused, section by section; a refusal puts back the sections before it, which have
 * noted in `before` what they had. */
sgm_status sgm__state_set_learnt(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    sgm__number_list before[SECTION_COUNT] = {{0}};
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < SECTION_COUNT && status == SGM_OK; i++) {
        if ((parts & sections[i]->part) == 0 || sections[i]->learn == NULL)
            continue;
        status = sections[i]->learn(trainer, state, &before[i]);
        if (status != SGM_OK)
            put_back(trainer, before, i);
    }
    for (size_t i = 0; i < SECTION_COUNT; i++)
        sgm__free(before[i].items);
    return status;
}

/* Sets what cannot be refused: when this begins, the file has been checked and tensors have been taken. */
sgm_status sgm__state_set_rest(sgm_trainer *trainer, const sgm__saved_state *state, unsigned parts)
{
    for (size_t i = 0; i < SECTION_COUNT; i++)
        if ((parts & sections[i]->part) != 0 && sections[i]->set != NULL)
            SGM_TRY(sections[i]->set(trainer, state, parts));
    return SGM_OK;
}
