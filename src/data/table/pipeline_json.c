/* A pipeline as JSON, so that it can be kept beside a network and read by people:
 *
 *     {"version":1,"header":true,"decimal":".","columns":[
 *       {"name":"age","kind":"number","field":"inputs","impute":4.9,"offset":4.9,"factor":2.5},
 *       {"name":"town","kind":"category","field":"inputs","impute":null,"categories":["Bonn","Ulm"]},
 *       {"name":"story","kind":"text","field":"story","window":200},
 *       {"name":"species","kind":"category","field":"targets","required":true,"categories":["cat","dog"]}]}
 *
 * with "tokenizer":[[116,104],[256,101]], the pairs of tokens that are tokens from 256 on, where texts have
 * such; or of files
 *
 *     {"version":1,"kind":"pictures","width":32,"height":32,"channels":3,"mean":[0.5,0.4,0.4],
 *      "deviation":[0.2,0.2,0.2],"classes":["cat","dog"]}
 *
 * where the kind (src/data/kinds) writes and reads what is between its name and the classes.
 *
 * A date has "dates":"age" with a "reference", in days, or "dates":"parts", with "time":true where the hour
 * is one of them; a category of a field of its own may have an "embedding", the size; a column of weights has
 * the field "weights"; a target has "skip":true where rows without it are left out. All these are version 2,
 * and what has none of them is written as version 1. A text is read strictly (text/json_members.h). See
 * pipeline.h. */
#include "data/table/pipeline.h"
#include "text/json_members.h"
#include "text/json_text.h"

#include <float.h>
#include <math.h>

#define NEWEST_VERSION 2

/* In the order of sgm_date_form. */
static const char *const form_names[] = {"days", "age", "parts"};

/* --- writing --- */

static void put_categories(const sgm__pipeline_part *part, const char *member, json_t *object, bool *failed)
{
    sgm__json_put_texts(object, member, (const char *const *)part->categories, part->category_count, failed);
}

static json_t *impute_json(const sgm__pipeline_part *part)
{
    if (part->kind != SGM_COLUMN_CATEGORY)
        return json_real(part->fill);
    return part->fill >= 0 ? json_string(part->categories[(size_t)part->fill]) : json_null();
}

/* Days, which are the default, are not said. */
static void put_dates(json_t *object, const sgm__pipeline_part *part, bool *failed)
{
    if (part->form == SGM_DATE_DAYS)
        return;
    sgm__json_put(object, "dates", json_string(form_names[part->form]), failed);
    if (part->form == SGM_DATE_AGE)
        sgm__json_put(object, "reference", json_real(part->reference), failed);
    if (part->has_time)
        sgm__json_put(object, "time", json_true(), failed);
}

static json_t *part_json(const sgm_pipeline *pipeline, const sgm__pipeline_part *part, bool *failed)
{
    json_t *object = json_object();
    sgm__json_put(object, "name", json_string(part->name), failed);
    sgm__json_put(object, "kind", json_string(sgm_column_kind_name(part->kind)), failed);
    sgm__json_put(object, "field", json_string(pipeline->fields[part->field].name), failed);
    if (part->is_required)
        sgm__json_put(object, "required", json_true(), failed);
    else if (part->kind != SGM_COLUMN_TEXT)
        sgm__json_put(object, "impute", impute_json(part), failed);
    if (part->skips_missing)
        sgm__json_put(object, "skip", json_true(), failed);
    if (part->kind == SGM_COLUMN_TEXT) {
        sgm__json_put(object, "window", json_integer(part->width), failed);
        return object;
    }
    if (part->has_flag)
        sgm__json_put(object, "flag", json_true(), failed);
    if (part->kind == SGM_COLUMN_CATEGORY) {
        if (part->embedding_size > 0)
            sgm__json_put(object, "embedding", json_integer(part->embedding_size), failed);
        put_categories(part, "categories", object, failed);
        return object;
    }
    put_dates(object, part, failed);
    sgm__json_put(object, "offset", json_real(part->offset), failed);
    sgm__json_put(object, "factor", json_real(part->factor), failed);
    return object;
}

static void put_table(const sgm_pipeline *pipeline, json_t *object, bool *failed)
{
    json_t *columns = json_array();
    for (size_t i = 0; i < pipeline->part_count; i++)
        *failed |= json_array_append_new(columns, part_json(pipeline, &pipeline->parts[i], failed)) != 0;
    sgm__json_put(object, "header", json_boolean(pipeline->has_header), failed);
    sgm__json_put(object, "decimal", json_stringn(&pipeline->format.decimal, 1), failed);
    if (pipeline->format.missing != NULL)
        sgm__json_put(object, "missing", json_string(pipeline->format.missing), failed);
    if (pipeline->tokenizer != NULL)
        sgm__tokenizer_put(pipeline->tokenizer, object, failed);
    sgm__json_put(object, "columns", columns, failed);
}

static void put_files(const sgm_pipeline *pipeline, json_t *object, bool *failed)
{
    sgm__json_put(object, "kind", json_string(pipeline->kind->name), failed);
    pipeline->kind->put(pipeline->form, object, failed);
    if (pipeline->part_count > 0)
        put_categories(&pipeline->parts[0], pipeline->labels > 0 ? "characters" : "classes", object, failed);
    if (pipeline->labels > 0)
        sgm__json_put(object, "labels", json_integer(pipeline->labels), failed);
}

/* The oldest one that can say it, so that older programs read what they understand. */
static int version_of(const sgm_pipeline *pipeline)
{
    bool is_new = false;
    for (size_t i = 0; i < pipeline->part_count; i++) {
        const sgm__pipeline_part *part = &pipeline->parts[i];
        is_new |=
            part->form != SGM_DATE_DAYS || part->embedding_size > 0 || part->is_weight || part->skips_missing;
    }
    return is_new ? NEWEST_VERSION : 1;
}

/* A text of the file that is not UTF-8 cannot be put into JSON. */
char *sgm_pipeline_json(const sgm_pipeline *pipeline)
{
    json_t *object = json_object();
    bool failed = false;
    sgm__json_put(object, "version", json_integer(version_of(pipeline)), &failed);
    if (pipeline->kind != NULL)
        put_files(pipeline, object, &failed);
    else
        put_table(pipeline, object, &failed);
    char *text = failed ? NULL : sgm__json_text(object);
    json_decref(object);
    if (failed)
        sgm_fail(SGM_ERROR_FORMAT,
                 "the pipeline cannot be written: a name or a category of the table is not UTF-8");
    return text;
}

/* The text has all, digits included, so that pipelines of equal texts are equal. */
void sgm__pipeline_describe(const sgm_pipeline *pipeline, sgm__key *key)
{
    char *text = sgm_pipeline_json(pipeline);
    sgm__key_add_text(key, text);
    if (text == NULL) {
        sgm__key_refuse(key, "pipeline");
        sgm_clear_error();
    }
    sgm__free(text);
}

/* --- reading --- */

static sgm_status take_categories(const json_t *object, sgm__pipeline_part *part)
{
    char **texts;
    size_t count;
    SGM_TRY(sgm__json_take_texts(object, "categories", SGM_MAX_CATEGORIES, &texts, &count));
    return sgm__pipeline_set_categories(part, texts, count);
}

/* What a missing value becomes. */
static sgm_status take_impute(const json_t *object, sgm__pipeline_part *part)
{
    const json_t *impute = json_object_get(object, "impute");
    size_t at;
    if (part->is_required)
        return impute == NULL ? SGM_OK : sgm__json_fail_member("impute", "nothing beside 'required'");
    if (part->kind != SGM_COLUMN_CATEGORY) {
        SGM_TRY(sgm__json_take_number(object, "impute", &part->fill));
        if (part->form == SGM_DATE_PARTS && !sgm__date_can_split(part->fill))
            return sgm__json_fail_member("impute", "a day of the years 0 to 9999");
        return fabs((sgm__pipeline_number(part, part->fill) - part->offset) / part->factor) <= (double)FLT_MAX
                   ? SGM_OK
                   : sgm__json_fail_member("impute", "a number that fits float32 when it is scaled");
    }
    part->fill = -1;
    if (json_is_null(impute))
        return SGM_OK;
    if (!json_is_string(impute) || !sgm__text_index_find(&part->index, json_string_value(impute),
                                                         strlen(json_string_value(impute)), &at))
        return sgm__json_fail_member("impute", "one of the categories, or null");
    part->fill = (double)at;
    return SGM_OK;
}

static sgm_status take_kind(const json_t *object, sgm_column_kind *kind)
{
    static const sgm_column_kind kinds[] = {SGM_COLUMN_NUMBER, SGM_COLUMN_DATE, SGM_COLUMN_CATEGORY,
                                            SGM_COLUMN_TEXT};
    const char *name = json_string_value(json_object_get(object, "kind"));
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name, sgm_column_kind_name(kinds[i])) == 0) {
            *kind = kinds[i];
            return SGM_OK;
        }
    return sgm__json_fail_member("kind", "number, date, category or text");
}

/* Inputs, targets, weights. */
static int rank_of(const sgm__pipeline_part *part)
{
    return part->is_weight ? 2 : part->is_target;
}

/* Inputs before targets, and weights last; a field of its own for one category or text alone,
 * targets of one
 * kind. */
static sgm_status check_place(const sgm_pipeline *pipeline, const sgm__pipeline_part *part, const char *field)
{
    const sgm__pipeline_part *before = part > pipeline->parts ? part - 1 : NULL;
    bool is_own = sgm__pipeline_is_input(part) && strcmp(field, "inputs") != 0;
    if (before != NULL && rank_of(before) > rank_of(part))
        return sgm_fail(SGM_ERROR_FORMAT, "columns of targets come last, but for weights");
    if (part->is_weight && (part->kind != SGM_COLUMN_NUMBER || !part->is_required || part->has_flag ||
                            part->offset != 0 || (before != NULL && before->is_weight)))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "weights are one column of numbers that is required, without an offset");
    if (before != NULL && before->is_target && part->is_target &&
        (part->kind == SGM_COLUMN_CATEGORY || before->kind == SGM_COLUMN_CATEGORY))
        return sgm_fail(SGM_ERROR_FORMAT, "several targets have to be numbers");
    bool is_text = part->kind == SGM_COLUMN_TEXT;
    if (is_own && ((part->kind != SGM_COLUMN_CATEGORY && !is_text) || part->has_flag ||
                   sgm_pipeline_width(pipeline, field) > 0))
        return sgm_fail(SGM_ERROR_FORMAT, "the field '%s' is for one column of categories or texts alone",
                        field);
    return is_own || !is_text
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FORMAT, "the field '%s' is for no texts, which have fields of their own",
                          field);
}

/* The rest of a column of texts. */
static sgm_status take_text(sgm_pipeline *pipeline, json_t *object, sgm__pipeline_part *part,
                            const char *field)
{
    static const char *const members[] = {"name", "kind", "field", "required", "window", NULL};
    int32_t window;
    SGM_TRY(sgm__json_check_members(object, members, NULL));
    SGM_TRY(sgm__json_take_flag(object, "required", &part->is_required));
    SGM_TRY(sgm__json_take_size(object, "window", &window));
    SGM_TRY(check_place(pipeline, part, field));
    return sgm__pipeline_place_text(pipeline, part, field, window);
}

static sgm_status take_dates(const json_t *object, sgm__pipeline_part *part)
{
    const json_t *dates = json_object_get(object, "dates");
    const char *name = json_string_value(dates);
    bool is_age = name != NULL && strcmp(name, form_names[SGM_DATE_AGE]) == 0,
         is_parts = name != NULL && strcmp(name, form_names[SGM_DATE_PARTS]) == 0;
    if (dates != NULL &&
        (part->kind != SGM_COLUMN_DATE || !sgm__pipeline_is_input(part) || !(is_age || is_parts)))
        return sgm__json_fail_member("dates", "age or parts, of a date that is no target,");
    part->form = is_age ? SGM_DATE_AGE : is_parts ? SGM_DATE_PARTS : SGM_DATE_DAYS;
    if (is_parts)
        return sgm__json_take_flag(object, "time", &part->has_time);
    return is_age ? sgm__json_take_number(object, "reference", &part->reference) : SGM_OK;
}

static sgm_status take_embedding(const json_t *object, sgm__pipeline_part *part, const char *field)
{
    const json_t *size = json_object_get(object, "embedding");
    json_int_t number = json_integer_value(size);
    bool is_own = sgm__pipeline_is_input(part) && strcmp(field, "inputs") != 0;
    if (size != NULL && (!is_own || number < 1 || number > SGM__LARGEST_EMBEDDING))
        return sgm__json_fail_member("embedding", "a whole number from 1 to 10,000, of a field of its own,");
    part->embedding_size = (int32_t)number;
    return SGM_OK;
}

static sgm_status take_part(sgm_pipeline *pipeline, json_t *object)
{
    static const char *const members[] = {"name",      "kind",       "field",     "required", "impute",
                                          "flag",      "categories", "offset",    "factor",   "dates",
                                          "reference", "time",       "embedding", "skip",     NULL};
    sgm__pipeline_part *part = &pipeline->parts[pipeline->part_count++];
    const char *name = json_string_value(json_object_get(object, "name")),
               *field = json_string_value(json_object_get(object, "field"));
    int64_t number;
    if (name == NULL ||
        (!pipeline->has_header && (!sgm__parse_int64(name, &number) || number < 0 || number > INT32_MAX)))
        return sgm__json_fail_member("name", pipeline->has_header ? "a text" : "the number of a column");
    part->name = sgm__strdup(name);
    if (part->name == NULL)
        return SGM_ERROR_MEMORY;
    if (field == NULL)
        return sgm__json_fail_member("field", "a text");
    part->is_target = strcmp(field, "targets") == 0;
    part->is_weight = strcmp(field, "weights") == 0;
    SGM_TRY(take_kind(object, &part->kind));
    if (part->kind == SGM_COLUMN_TEXT)
        return take_text(pipeline, object, part, field);
    SGM_TRY(sgm__json_check_members(object, members, NULL));
    SGM_TRY(sgm__json_take_flag(object, "required", &part->is_required));
    SGM_TRY(sgm__json_take_flag(object, "flag", &part->has_flag));
    SGM_TRY(sgm__json_take_flag(object, "skip", &part->skips_missing));
    if (part->skips_missing && !(part->is_target && part->is_required))
        return sgm__json_fail_member("skip", "it in a target that is required alone");
    if (part->kind == SGM_COLUMN_CATEGORY) {
        SGM_TRY(take_categories(object, part));
        SGM_TRY(take_embedding(object, part, field));
    } else {
        SGM_TRY(take_dates(object, part));
        SGM_TRY(sgm__json_take_number(object, "offset", &part->offset));
        SGM_TRY(sgm__json_take_number(object, "factor", &part->factor));
        if (!(part->factor > 0))
            return sgm__json_fail_member("factor", "a number above 0");
    }
    SGM_TRY(take_impute(object, part));
    SGM_TRY(check_place(pipeline, part, field));
    return sgm__pipeline_place(pipeline, part, field);
}

static sgm_status take_columns(sgm_pipeline *pipeline, const json_t *columns)
{
    size_t index;
    json_t *object;
    json_array_foreach(columns, index, object) if (take_part(pipeline, object) !=
                                                   SGM_OK) return sgm__fail_within("column %zu (from 0)",
                                                                                   index);
    bool has_targets = sgm_pipeline_width(pipeline, "targets") > 0;
    if (!has_targets || pipeline->part_count == 0 || !sgm__pipeline_is_input(&pipeline->parts[0]))
        return sgm__json_fail_member("columns", "at least one column of inputs and one of targets");
    if (sgm__pipeline_target(pipeline, SGM_MAX_TARGETS) != NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "at most %d columns of targets were expected", SGM_MAX_TARGETS);
    return SGM_OK;
}

static sgm_status take_format(sgm_pipeline *pipeline, const json_t *object)
{
    const char *decimal = json_string_value(json_object_get(object, "decimal"));
    const json_t *missing = json_object_get(object, "missing");
    SGM_TRY(sgm__json_take_flag(object, "header", &pipeline->has_header));
    if (decimal == NULL || (strcmp(decimal, ".") != 0 && strcmp(decimal, ",") != 0))
        return sgm__json_fail_member("decimal", "\".\" or \",\"");
    pipeline->format.decimal = decimal[0];
    if (missing != NULL && !json_is_string(missing))
        return sgm__json_fail_member("missing", "a text");
    pipeline->format.missing = sgm__strdup(json_string_value(missing));
    return missing != NULL && pipeline->format.missing == NULL ? SGM_ERROR_MEMORY : SGM_OK;
}

static sgm_status take_table(sgm_pipeline *pipeline, json_t *object)
{
    static const char *const members[] = {"version",   "header",  "decimal", "missing",
                                          "tokenizer", "columns", NULL};
    SGM_TRY(sgm__json_check_members(object, members, NULL));
    SGM_TRY(take_format(pipeline, object));
    pipeline->tokenizer = sgm__tokenizer_take(object);
    if (pipeline->tokenizer == NULL)
        return sgm__last_failure();
    return take_columns(pipeline, json_object_get(object, "columns"));
}

static sgm_pipeline *read_table(json_t *object)
{
    sgm_pipeline *pipeline = sgm__pipeline_create(json_array_size(json_object_get(object, "columns")));
    if (pipeline == NULL || take_table(pipeline, object) == SGM_OK)
        return pipeline;
    sgm_pipeline_free(pipeline);
    return NULL;
}

/* --- pipelines of files --- */

static sgm_status take_form(const sgm__file_kind *kind, json_t *object, void *form)
{
    static const char *const classes[] = {"version", "kind", "classes", NULL}, *const characters[] = {
                                                                                   "version", "kind",
                                                                                   "characters", "labels",
                                                                                   NULL};
    bool has_characters = kind->make_sequence != NULL && json_object_get(object, "characters") != NULL;
    SGM_TRY(sgm__json_check_members(object, has_characters ? characters : classes, kind->members));
    SGM_TRY(kind->take(form, object));
    if (has_characters)
        kind->make_sequence(form);
    return SGM_OK;
}

static sgm_status take_characters(sgm_pipeline *pipeline, const json_t *object)
{
    char **characters;
    size_t count;
    int32_t labels;
    SGM_TRY(sgm__json_take_size(object, "labels", &labels));
    SGM_TRY(sgm__json_take_texts(object, "characters", SGM_MAX_CATEGORIES, &characters, &count));
    return sgm__pipeline_set_characters(pipeline, characters, count, labels);
}

/* The classes, or the characters, of the targets. Pictures of a network that tells no classes have none. */
static sgm_status take_classes(sgm_pipeline *pipeline, const json_t *object)
{
    if (json_object_get(object, "characters") != NULL)
        return take_characters(pipeline, object);
    if (json_object_get(object, "classes") == NULL && pipeline->kind == &sgm__pictures)
        return SGM_OK;
    char **classes;
    size_t count;
    SGM_TRY(sgm__json_take_texts(object, "classes", SGM_MAX_CATEGORIES, &classes, &count));
    return sgm__pipeline_set_classes(pipeline, classes, count);
}

static sgm_pipeline *read_files(const sgm__file_kind *kind, json_t *object)
{
    void *form = sgm__calloc(1, kind->form_size);
    sgm_status status = form != NULL ? take_form(kind, object, form) : SGM_ERROR_MEMORY;
    sgm_pipeline *pipeline = status == SGM_OK ? sgm__pipeline_of_files(kind, form) : NULL;
    if (status != SGM_OK && form != NULL && kind->release != NULL)
        kind->release(form);
    sgm__free(form);
    if (pipeline == NULL || take_classes(pipeline, object) == SGM_OK)
        return pipeline;
    sgm_pipeline_free(pipeline);
    return NULL;
}

/* --- both --- */

static void fail_kind(void)
{
    char *names = sgm__file_kind_names(),
         *expected = names != NULL ? sgm__format("one of %s, or nothing for a table,", names) : NULL;
    if (expected != NULL)
        sgm__json_fail_member("kind", expected);
    sgm__free(expected);
    sgm__free(names);
}

/* A pipeline of a table says no kind. */
static sgm_pipeline *read_object(json_t *object)
{
    const json_t *version = json_object_get(object, "version"), *kind = json_object_get(object, "kind");
    if (!json_is_integer(version) || json_integer_value(version) < 1 ||
        json_integer_value(version) > NEWEST_VERSION) {
        sgm__json_fail_member("version", "1 or 2, which this version of Sigma reads,");
        return NULL;
    }
    if (kind == NULL)
        return read_table(object);
    const sgm__file_kind *found = json_is_string(kind) ? sgm__file_kind_find(json_string_value(kind)) : NULL;
    if (found != NULL)
        return read_files(found, object);
    fail_kind();
    return NULL;
}

sgm_pipeline *sgm_pipeline_parse(const char *json)
{
    json_error_t error;
    json_t *object = json != NULL ? json_loads(json, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (json == NULL) {
        sgm__missing_part("sgm_pipeline_parse: a text");
        return NULL;
    }
    if (object == NULL) {
        sgm_fail(SGM_ERROR_FORMAT, "a pipeline: line %d: %s", error.line, sgm__json_mistake(&error));
        return NULL;
    }
    sgm_pipeline *pipeline = read_object(object);
    if (pipeline == NULL)
        sgm__fail_within("a pipeline");
    json_decref(object);
    return pipeline;
}
