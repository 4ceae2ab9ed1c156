/* A pipeline as JSON, so that it can be kept beside a network and read by people:
 *
 *     {"version":1,"header":true,"decimal":".","columns":[
 *       {"name":"age","kind":"number","field":"inputs","impute":4.9,"offset":4.9,"factor":2.5},
 *       {"name":"town","kind":"category","field":"inputs","impute":null,"categories":["Bonn","Ulm"]},
 *       {"name":"species","kind":"category","field":"targets","required":true,"categories":["cat","dog"]}]}
 *
 * or of pictures
 *
 *     {"version":1,"kind":"pictures","width":32,"height":32,"channels":3,"mean":[0.5,0.4,0.4],
 *      "deviation":[0.2,0.2,0.2],"classes":["cat","dog"]}
 *
 * A text is read strictly, since a program may get it from anywhere: kinds and types of members are checked,
 * numbers are finite, and what is not known is refused. See pipeline.h. */
#include "data/table/pipeline.h"
#include "text/json_text.h"

#include <float.h>
#include <math.h>

#define VERSION 1

/* --- writing --- */

/* A member without which the text would tell another pipeline: *failed says that one could not be added. */
static void put(json_t *object, const char *key, json_t *value, bool *failed)
{
    *failed |= json_object_set_new(object, key, value) != 0;
}

static json_t *categories_json(const sgm__pipeline_part *part, bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < part->category_count; i++)
        *failed |= json_array_append_new(list, json_string(part->categories[i])) != 0;
    return list;
}

static json_t *impute_json(const sgm__pipeline_part *part)
{
    if (part->kind != SGM_COLUMN_CATEGORY)
        return json_real(part->fill);
    return part->fill >= 0 ? json_string(part->categories[(size_t)part->fill]) : json_null();
}

static json_t *part_json(const sgm_pipeline *pipeline, const sgm__pipeline_part *part, bool *failed)
{
    json_t *object = json_object();
    put(object, "name", json_string(part->name), failed);
    put(object, "kind", json_string(sgm_column_kind_name(part->kind)), failed);
    put(object, "field", json_string(pipeline->fields[part->field].name), failed);
    if (part->is_required)
        put(object, "required", json_true(), failed);
    else
        put(object, "impute", impute_json(part), failed);
    if (part->has_flag)
        put(object, "flag", json_true(), failed);
    if (part->kind == SGM_COLUMN_CATEGORY) {
        put(object, "categories", categories_json(part, failed), failed);
        return object;
    }
    put(object, "offset", json_real(part->offset), failed);
    put(object, "factor", json_real(part->factor), failed);
    return object;
}

static void put_table(const sgm_pipeline *pipeline, json_t *object, bool *failed)
{
    json_t *columns = json_array();
    for (size_t i = 0; i < pipeline->part_count; i++)
        *failed |= json_array_append_new(columns, part_json(pipeline, &pipeline->parts[i], failed)) != 0;
    put(object, "header", json_boolean(pipeline->has_header), failed);
    put(object, "decimal", json_stringn(&pipeline->format.decimal, 1), failed);
    if (pipeline->format.missing != NULL)
        put(object, "missing", json_string(pipeline->format.missing), failed);
    put(object, "columns", columns, failed);
}

static json_t *numbers_json(const double *numbers, int32_t count, bool *failed)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < count; i++)
        *failed |= json_array_append_new(list, json_real(numbers[i])) != 0;
    return list;
}

static void put_pictures(const sgm_pipeline *pipeline, json_t *object, bool *failed)
{
    const sgm__picture_form *form = &pipeline->pictures;
    put(object, "kind", json_string("pictures"), failed);
    put(object, "width", json_integer(form->width), failed);
    put(object, "height", json_integer(form->height), failed);
    put(object, "channels", json_integer(form->channels), failed);
    put(object, "mean", numbers_json(form->mean, form->channels, failed), failed);
    put(object, "deviation", numbers_json(form->deviation, form->channels, failed), failed);
    put(object, "classes", categories_json(&pipeline->parts[0], failed), failed);
}

/* A text of the file that is not UTF-8 cannot be put into JSON. */
char *sgm_pipeline_json(const sgm_pipeline *pipeline)
{
    json_t *object = json_object();
    bool failed = false;
    put(object, "version", json_integer(VERSION), &failed);
    if (sgm__pipeline_is_of_pictures(pipeline))
        put_pictures(pipeline, object, &failed);
    else
        put_table(pipeline, object, &failed);
    char *text = failed ? NULL : sgm__json_text(object);
    json_decref(object);
    if (failed)
        sgm_fail(SGM_ERROR_FORMAT,
                 "the pipeline cannot be written: a name or a category of the table is not UTF-8");
    return text;
}

/* --- reading --- */

/* The members of an object must be among `known`, which NULL ends. */
static sgm_status check_members(json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL)
            return sgm_fail(SGM_ERROR_FORMAT, "'%.40s' is no member of it", key);
    }
    return SGM_OK;
}

static sgm_status fail_member(const char *member, const char *expected)
{
    return sgm_fail(SGM_ERROR_FORMAT, "'%s': %s was expected", member, expected);
}

static sgm_status take_flag(const json_t *object, const char *member, bool *flag)
{
    const json_t *value = json_object_get(object, member);
    if (value != NULL && !json_is_boolean(value))
        return fail_member(member, "true or false");
    *flag = json_is_true(value);
    return SGM_OK;
}

static sgm_status take_number(const json_t *object, const char *member, double *number)
{
    const json_t *value = json_object_get(object, member);
    if (!json_is_number(value))
        return fail_member(member, "a number");
    *number = json_number_value(value);
    return SGM_OK;
}

/* A list of texts, which the caller owns, NULL at the end. */
static sgm_status take_texts(const json_t *object, const char *member, char ***taken, size_t *count)
{
    const json_t *list = json_object_get(object, member);
    *count = json_array_size(list);
    if (*count == 0 || *count > SGM_MAX_CATEGORIES)
        return fail_member(member, "a list of 1 to 1,000 texts");
    char **texts = sgm__calloc(*count + 1, sizeof *texts);
    if (texts == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < *count && status == SGM_OK; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        texts[i] = sgm__strdup(text);
        if (texts[i] == NULL)
            status = text == NULL ? fail_member(member, "a list of texts") : SGM_ERROR_MEMORY;
    }
    for (size_t i = 0; status != SGM_OK && i < *count; i++)
        sgm__free(texts[i]);
    if (status == SGM_OK)
        *taken = texts;
    else
        sgm__free(texts);
    return status;
}

static sgm_status take_categories(const json_t *object, sgm__pipeline_part *part)
{
    char **texts;
    size_t count;
    SGM_TRY(take_texts(object, "categories", &texts, &count));
    return sgm__pipeline_set_categories(part, texts, count);
}

/* What a missing value becomes. */
static sgm_status take_impute(const json_t *object, sgm__pipeline_part *part)
{
    const json_t *impute = json_object_get(object, "impute");
    uintptr_t at;
    if (part->is_required)
        return impute == NULL ? SGM_OK : fail_member("impute", "nothing beside 'required'");
    if (part->kind != SGM_COLUMN_CATEGORY) {
        SGM_TRY(take_number(object, "impute", &part->fill));
        return fabs((part->fill - part->offset) / part->factor) <= (double)FLT_MAX
                   ? SGM_OK
                   : fail_member("impute", "a number that fits float32 when it is scaled");
    }
    part->fill = -1;
    if (json_is_null(impute))
        return SGM_OK;
    if (!json_is_string(impute) || !sgm__name_index_find(&part->index, json_string_value(impute), &at))
        return fail_member("impute", "one of the categories, or null");
    part->fill = (double)at;
    return SGM_OK;
}

static sgm_status take_kind(const json_t *object, sgm_column_kind *kind)
{
    static const sgm_column_kind kinds[] = {SGM_COLUMN_NUMBER, SGM_COLUMN_DATE, SGM_COLUMN_CATEGORY};
    const char *name = json_string_value(json_object_get(object, "kind"));
    for (size_t i = 0; name != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name, sgm_column_kind_name(kinds[i])) == 0) {
            *kind = kinds[i];
            return SGM_OK;
        }
    return fail_member("kind", "number, date or category");
}

/* Inputs before targets, a field of an embedding for one category alone, and targets of one kind. */
static sgm_status check_place(const sgm_pipeline *pipeline, const sgm__pipeline_part *part, const char *field)
{
    const sgm__pipeline_part *before = part > pipeline->parts ? part - 1 : NULL;
    bool is_own = !part->is_target && strcmp(field, "inputs") != 0;
    if (before != NULL && before->is_target && !part->is_target)
        return sgm_fail(SGM_ERROR_FORMAT, "columns of targets come last");
    if (before != NULL && before->is_target &&
        (part->kind == SGM_COLUMN_CATEGORY || before->kind == SGM_COLUMN_CATEGORY))
        return sgm_fail(SGM_ERROR_FORMAT, "several targets have to be numbers");
    if (is_own &&
        (part->kind != SGM_COLUMN_CATEGORY || part->has_flag || sgm_pipeline_width(pipeline, field) > 0))
        return sgm_fail(SGM_ERROR_FORMAT, "the field '%s' is for one column of categories alone", field);
    return SGM_OK;
}

static sgm_status take_part(sgm_pipeline *pipeline, json_t *object)
{
    static const char *const members[] = {"name", "kind",       "field",  "required", "impute",
                                          "flag", "categories", "offset", "factor",   NULL};
    sgm__pipeline_part *part = &pipeline->parts[pipeline->part_count++];
    const char *name = json_string_value(json_object_get(object, "name")),
               *field = json_string_value(json_object_get(object, "field"));
    int64_t number;
    if (name == NULL ||
        (!pipeline->has_header && (!sgm__parse_int64(name, &number) || number < 0 || number > INT32_MAX)))
        return fail_member("name", pipeline->has_header ? "a text" : "the number of a column");
    part->name = sgm__strdup(name);
    if (part->name == NULL)
        return SGM_ERROR_MEMORY;
    if (field == NULL)
        return fail_member("field", "a text");
    part->is_target = strcmp(field, "targets") == 0;
    SGM_TRY(check_members(object, members));
    SGM_TRY(take_kind(object, &part->kind));
    SGM_TRY(take_flag(object, "required", &part->is_required));
    SGM_TRY(take_flag(object, "flag", &part->has_flag));
    if (part->kind == SGM_COLUMN_CATEGORY) {
        SGM_TRY(take_categories(object, part));
    } else {
        SGM_TRY(take_number(object, "offset", &part->offset));
        SGM_TRY(take_number(object, "factor", &part->factor));
        if (!(part->factor > 0))
            return fail_member("factor", "a number above 0");
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
    if (!has_targets || pipeline->part_count == 0 || !pipeline->parts[pipeline->part_count - 1].is_target ||
        pipeline->parts[0].is_target)
        return fail_member("columns", "at least one column of inputs and one of targets");
    return SGM_OK;
}

static sgm_status take_format(sgm_pipeline *pipeline, const json_t *object)
{
    const char *decimal = json_string_value(json_object_get(object, "decimal"));
    const json_t *missing = json_object_get(object, "missing");
    SGM_TRY(take_flag(object, "header", &pipeline->has_header));
    if (decimal == NULL || (strcmp(decimal, ".") != 0 && strcmp(decimal, ",") != 0))
        return fail_member("decimal", "\".\" or \",\"");
    pipeline->format.decimal = decimal[0];
    if (missing != NULL && !json_is_string(missing))
        return fail_member("missing", "a text");
    pipeline->format.missing = sgm__strdup(json_string_value(missing));
    return missing != NULL && pipeline->format.missing == NULL ? SGM_ERROR_MEMORY : SGM_OK;
}

static sgm_status take_table(sgm_pipeline *pipeline, json_t *object)
{
    static const char *const members[] = {"version", "header", "decimal", "missing", "columns", NULL};
    SGM_TRY(check_members(object, members));
    SGM_TRY(take_format(pipeline, object));
    return take_columns(pipeline, json_object_get(object, "columns"));
}

/* One number for each channel. */
static sgm_status take_numbers(const json_t *object, const char *member, int32_t count, double *numbers)
{
    const json_t *list = json_object_get(object, member);
    bool good = json_array_size(list) == (size_t)count;
    for (int32_t i = 0; i < count && good; i++) {
        const json_t *number = json_array_get(list, (size_t)i);
        good = json_is_number(number);
        numbers[i] = json_number_value(number);
    }
    return good ? SGM_OK : fail_member(member, "a list of one number for each channel");
}

static sgm_status take_size(const json_t *object, const char *member, int32_t *size)
{
    const json_t *value = json_object_get(object, member);
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 1 || number > INT32_MAX)
        return fail_member(member, "a whole number above 0");
    *size = (int32_t)number;
    return SGM_OK;
}

static sgm_status take_pictures(sgm_pipeline *pipeline, json_t *object)
{
    static const char *const members[] = {"version", "kind",      "width",   "height", "channels",
                                          "mean",    "deviation", "classes", NULL};
    sgm__picture_form form = {0};
    char **classes;
    size_t count;
    SGM_TRY(check_members(object, members));
    SGM_TRY(take_size(object, "width", &form.width));
    SGM_TRY(take_size(object, "height", &form.height));
    SGM_TRY(take_size(object, "channels", &form.channels));
    if (form.channels != 1 && form.channels != 3)
        return fail_member("channels", "1 or 3");
    SGM_TRY(take_numbers(object, "mean", form.channels, form.mean));
    SGM_TRY(take_numbers(object, "deviation", form.channels, form.deviation));
    SGM_TRY(sgm__pipeline_set_pictures(pipeline, &form));
    SGM_TRY(take_texts(object, "classes", &classes, &count));
    return sgm__pipeline_set_classes(pipeline, classes, count);
}

/* A pipeline of a table says no kind. */
static sgm_pipeline *read_object(json_t *object)
{
    const json_t *version = json_object_get(object, "version"), *kind = json_object_get(object, "kind");
    bool is_pictures =
        kind != NULL && strcmp(json_is_string(kind) ? json_string_value(kind) : "", "pictures") == 0;
    if (!json_is_integer(version) || json_integer_value(version) != VERSION) {
        fail_member("version", "1, which this version of Sigma writes,");
        return NULL;
    }
    if (kind != NULL && !is_pictures) {
        fail_member("kind", "pictures, or nothing for a table,");
        return NULL;
    }
    sgm_pipeline *pipeline =
        sgm__pipeline_create(is_pictures ? 1 : json_array_size(json_object_get(object, "columns")));
    if (pipeline != NULL &&
        (is_pictures ? take_pictures(pipeline, object) : take_table(pipeline, object)) == SGM_OK)
        return pipeline;
    sgm_pipeline_free(pipeline);
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
