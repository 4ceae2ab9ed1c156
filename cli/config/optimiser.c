/* The section `optimiser`: its keys, its check, and the optimiser that is made of it. */
#include "optim/optimiser.h"
#include "config/config.h"
#include "config/config_checks.h"

#include <math.h>
#include <stdio.h>

/* --- its keys --- */

static const char *optimiser_at(size_t index)
{
    const sgm_optimiser_type *type = sgm_optimiser_type_at(index);
    return type != NULL ? type->name : NULL;
}

/* Keys below optimiser.schedule. */
static const option schedule_rows[] = {
    OPTION_SETTING_ROW(schedule_config, kind, sgm_schedule_settings),
    OPTION_SETTING_ROW(schedule_config, period, sgm_schedule_settings),
    OPTION_SETTING_ROW(schedule_config, factor, sgm_schedule_settings),
    OPTION_SETTING_ROW(schedule_config, warm_up, sgm_schedule_settings),
};
static const option_table schedule_table = OPTION_TABLE(schedule_rows);
/* Those that say nothing without the first one, the kind: a warm-up needs none. */
static const option_table keys_of_kind = {schedule_rows, 3};

/* For the help: ": adam, ...", all types of optimisers. */
static void list_types(const option *o, sgm__text *out)
{
    const sgm_optimiser_type *type;
    (void)o;
    for (size_t i = 0; (type = sgm_optimiser_type_at(i)) != NULL; i++)
        sgm__text_append(out, "%s%s", i > 0 ? ", " : ": ", type->name);
}

/* The value of a setting among a type's defaults, as a number. */
static double default_of(const sgm_optimiser_type *type, const sgm_setting *setting)
{
    sgm_content content = {0};
    sgm_setting_get(setting, &type->defaults, &content);
    return content.kind == SGM_KIND_INTEGER ? (double)content.as.integer : content.as.number;
}

/* For the help: "; adam, adamw 0.9; momentum 0.95", the defaults of a setting by optimiser. Types with the
 * same default are listed together, under the first of them (`told`: an earlier type had this default). A
 * default of 0 means that the type does not use the setting. */
static void list_defaults(const option *o, sgm__text *out)
{
    const sgm_optimiser_type *type, *other;
    size_t count;
    const sgm_setting *settings = sgm_optimiser_settings(&count);
    const sgm_setting *setting = sgm_setting_find(settings, count, o->row.name);
    for (size_t i = 0; (type = sgm_optimiser_type_at(i)) != NULL; i++) {
        double default_value = default_of(type, setting);
        bool told = false;
        for (size_t k = 0; k < i && (other = sgm_optimiser_type_at(k)) != NULL; k++)
            told |= default_of(other, setting) == default_value;
        if (default_value == 0 || told)
            continue;
        for (size_t k = i; (other = sgm_optimiser_type_at(k)) != NULL; k++)
            if (default_of(other, setting) == default_value)
                sgm__text_append(out, "%s%s", k == i ? "; " : ", ", other->name);
        sgm__text_append(out, " %.15g", default_value);
    }
}

/* A setting of the optimiser whose default depends on the type. */
#define OPTIMISER(member)                                                                                    \
    OPTION_ROW(optimiser_config, member, OPTION_SETTING, .settings = sgm_optimiser_settings,                 \
               .stays_unset = true, .more = list_defaults)

/* Keys below `optimiser`. Numbers have no default in the file's sense: what is not given stays unset, so
 * that the type's own default applies (`give`), and the help lists those defaults by type (list_defaults). */
static const option optimiser_rows[] = {
    OPTION_ROW(optimiser_config, type, OPTION_TEXT, .check = check_optimiser, .name_at = optimiser_at,
               .row.default_text = "adam", .row.doc = "how parameters are updated", .more = list_types),
    OPTIMISER(learning_rate),
    OPTIMISER(momentum),
    OPTIMISER(decay_rate),
    OPTIMISER(beta1),
    OPTIMISER(beta2),
    OPTIMISER(epsilon),
    OPTIMISER(tolerance),
    OPTIMISER(history),
    OPTIMISER(population),
    OPTIMISER(weight_decay),
    OPTIMISER(clip_value),
    OPTIMISER(clip_norm),
    OPTIMISER(average),
    OPTIMISER(accumulate),
    OPTION_GROUP_ROW(optimiser_config, schedule, schedule_table,
                     .row.doc = "of the learning rate; a kind or the keys below"),
};
const option_table optimiser_table = OPTION_TABLE(optimiser_rows);

/* --- what is made of it --- */

/* Sets what was given on an optimiser, by the library's names (`prefix` "schedule." for the schedule's).
 * What was not given keeps the type's default. Rows that only the command knows (type, schedule) are
 * skipped. */
static sgm_status give(const option_table *table, const void *base, const char *prefix,
                       sgm_optimiser *optimiser)
{
    for (size_t i = 0; i < table->count; i++) {
        const option whole = option_complete(&table->rows[i]);
        const void *value = (const char *)base + whole.offset;
        char name[64];
        sgm_content content = {0};
        if (table->rows[i].kind != OPTION_SETTING)
            continue;
        if (whole.kind == OPTION_INTEGER && *(const int64_t *)value != OPTION_UNSET)
            content = sgm_integer_content(*(const int64_t *)value);
        else if (whole.kind == OPTION_NUMBER && !isnan(*(const double *)value))
            content = sgm_number_content(*(const double *)value);
        else if (whole.kind == OPTION_TEXT && *(char *const *)value != NULL)
            content = sgm_text_content(*(char *const *)value);
        else
            continue;
        snprintf(name, sizeof name, "%s%s", prefix, whole.row.name);
        SGM_TRY(sgm_optimiser_set(optimiser, name, &content));
    }
    return SGM_OK;
}

/* Creates the optimiser of the given type with its defaults, then sets what was given. */
sgm_optimiser *config_optimiser(const optimiser_config *o)
{
    sgm_optimiser *optimiser = sgm_optimiser_create(o->type, NULL);
    if (optimiser == NULL)
        return NULL;
    if (give(&optimiser_table, o, "", optimiser) == SGM_OK &&
        give(&schedule_table, &o->schedule, "schedule.", optimiser) == SGM_OK)
        return optimiser;
    sgm_optimiser_free(optimiser);
    return NULL;
}

/* Fails, with its place, for a setting that the type of optimiser does not use. */
static sgm_status check_used(const sgm_optimiser *optimiser, const text_map *places)
{
    for (size_t i = 0; i < optimiser_table.count; i++) {
        const char *name = optimiser_table.rows[i].row.name;
        char key[64];
        snprintf(key, sizeof key, "optimiser.%s", name);
        const char *place = text_map_get(places, key);
        if (place != NULL && sgm__optimiser_check_used(optimiser, name) != SGM_OK)
            return sgm__fail_within("%s", place);
    }
    return SGM_OK;
}

/* The optimiser is made, since its values must go together. One of the type alone says what it uses. */
sgm_status optimiser_check(const char *name, const optimiser_config *o, const text_map *places)
{
    SGM_TRY(check_first_key(name, "optimiser.schedule", &keys_of_kind, &o->schedule));
    sgm_optimiser *bare = sgm_optimiser_create(o->type, NULL);
    sgm_status status = bare != NULL ? check_used(bare, places) : sgm__last_failure();
    sgm_optimiser_free(bare);
    SGM_TRY(status);
    sgm_optimiser *optimiser = config_optimiser(o);
    if (optimiser == NULL)
        return sgm__fail_within("%s: optimiser", name);
    sgm_optimiser_free(optimiser);
    return SGM_OK;
}
