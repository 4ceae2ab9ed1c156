/* Turns rows of text cells into fields of numbers: columns by number, texts to numbers by mappings.
 *
 * sgm_csv_extractor reads from reader_csv.c with several threads (pass.h), or from any reader that gives
 * text, until a block is full. A field is made of one or more ranges of columns, in the order in which the
 * options name them; its examples are flat, (examples, columns). A cell is a number, or a text that a mapping
 * of its column knows, or missing. Everything else is an error that names line and column. Arrays are turned
 * into fields by extractor_array.c. */
#include "base/number/parse_double.h"
#include "data/csv/pass.h"
#include "data/read/extractor.h"
#include "data/read/reader.h"

#include <math.h>

#define MAX_GROUPS (sizeof((sgm_csv_extractor_options){.struct_size = 0}.fields) / sizeof(sgm_columns))
#define MAX_MAPPINGS                                                                                         \
    (sizeof((sgm_csv_extractor_options){.struct_size = 0}.mappings) / sizeof(sgm_value_mapping))

/* A range of columns, both ends included, that goes to field number `field`. */
typedef struct columns {
    int32_t field, first, last;
} columns;

/* For columns first to last: text number i becomes numbers[i], or i. */
typedef struct mapping {
    int32_t first, last;
    size_t count;
    char **texts;
    double *numbers; /* NULL: the position of the text */
} mapping;

/* Options, copied and put in order: groups[] in the order given, fields by first mention. */
typedef struct csv_extractor {
    sgm__pass_blocks rows;
    size_t group_count;
    columns groups[MAX_GROUPS];
    int32_t field_count;
    char names[SGM_MAX_FIELDS][SGM__FIELD_NAME];
    int32_t widths[SGM_MAX_FIELDS]; /* columns of the field in all */
    int32_t last_column;            /* highest that is used */
    size_t mapping_count;
    mapping mappings[MAX_MAPPINGS];
    bool has_missing;
    double missing; /* what a missing cell becomes, with has_missing */
} csv_extractor;

/* --- options --- */

/* Adds a range of columns to its field, which is made if it is new. Widths are added with a check, since
 * column numbers are the user's and their sum might overflow. */
static sgm_status add_group(csv_extractor *self, const sgm_columns *group)
{
    char name[SGM__FIELD_NAME];
    SGM_TRY(sgm__field_name(name, group->field, "sgm_csv_extractor"));
    if (group->first < 0 || group->last < group->first)
        return sgm_fail(SGM_ERROR_ARGUMENT, "field \"%s\": columns %d to %d are no range from 0 on", name,
                        (int)group->first, (int)group->last);
    int32_t field = 0;
    while (field < self->field_count && strcmp(self->names[field], name) != 0)
        field++;
    if (field == SGM_MAX_FIELDS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a block has at most %d fields", SGM_MAX_FIELDS);
    if (field == self->field_count) {
        memcpy(self->names[field], name, sizeof name);
        self->field_count++;
    }
    int32_t width = group->last - group->first;
    if (width >= INT32_MAX - self->widths[field])
        return sgm_fail(SGM_ERROR_ARGUMENT, "field \"%s\" has too many columns", name);
    self->widths[field] += width + 1;
    self->groups[self->group_count++] = (columns){field, group->first, group->last};
    if (group->last > self->last_column)
        self->last_column = group->last;
    return SGM_OK;
}

/* Copies a mapping. `count` of the copy rises with the texts that are there, so that csv_free can free a
 * mapping that was copied in part. */
static sgm_status add_mapping(csv_extractor *self, const sgm_value_mapping *given)
{
    if (given->first_column < 0 || given->last_column < given->first_column)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a mapping of columns %d to %d", (int)given->first_column,
                        (int)given->last_column);
    mapping *made = &self->mappings[self->mapping_count++];
    *made = (mapping){.first = given->first_column, .last = given->last_column};
    size_t count = 0;
    while (given->values[count])
        count++;
    made->texts = sgm__calloc(count, sizeof *made->texts);
    if (!made->texts)
        return SGM_ERROR_MEMORY;
    for (; made->count < count; made->count++) {
        made->texts[made->count] = sgm__strdup(given->values[made->count]);
        if (!made->texts[made->count])
            return SGM_ERROR_MEMORY;
    }
    if (given->numbers) {
        made->numbers = sgm__calloc(count, sizeof *made->numbers);
        if (!made->numbers)
            return SGM_ERROR_MEMORY;
        memcpy(made->numbers, given->numbers, count * sizeof *made->numbers);
    }
    return SGM_OK;
}

/* Copies the options; both lists end at their first empty entry. */
static sgm_status configure(csv_extractor *self, const sgm_csv_extractor_options *options)
{
    self->has_missing = options->has_missing;
    self->missing = options->missing;
    for (size_t i = 0; i < MAX_GROUPS && options->fields[i].field; i++)
        SGM_TRY(add_group(self, &options->fields[i]));
    if (self->group_count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "no fields; say which columns are what");
    for (size_t i = 0; i < MAX_MAPPINGS && options->mappings[i].values; i++)
        SGM_TRY(add_mapping(self, &options->mappings[i]));
    return SGM_OK;
}

/* Also frees an extractor that was configured only in part. */
static void csv_free(void *pointer)
{
    csv_extractor *self = pointer;
    for (size_t i = 0; i < self->mapping_count; i++) {
        for (size_t k = 0; k < self->mappings[i].count; k++)
            sgm__free(self->mappings[i].texts[k]);
        sgm__free(self->mappings[i].texts);
        sgm__free(self->mappings[i].numbers);
    }
    sgm__pass_blocks_free(&self->rows);
    sgm__free(self);
}

/* --- extraction --- */

/* The first mapping that covers the column, NULL if none does. */
static const mapping *mapping_of(const csv_extractor *self, int32_t column)
{
    for (size_t i = 0; i < self->mapping_count; i++)
        if (column >= self->mappings[i].first && column <= self->mappings[i].last)
            return &self->mappings[i];
    return NULL;
}

/* Texts are compared byte by byte; a linear search, since mappings are of a few classes. */
static bool map_text(const mapping *known, const char *text, double *value)
{
    for (size_t i = 0; i < known->count; i++) {
        if (strcmp(known->texts[i], text) == 0) {
            *value = known->numbers ? known->numbers[i] : (double)i;
            return true;
        }
    }
    return false;
}

/* Converts one cell into a float32. A finite double may be too large for float32; that is told apart from
 * text such as "nan" and "inf", which is refused, as it would spread through the whole network. */
static sgm_status convert(const csv_extractor *self, const char *cell, bool is_padded, const mapping *known,
                          float *target)
{
    double value = self->missing;
    if (!cell && !self->has_missing)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "the value is missing; leave the row out, or say what missing values become");
    if (cell && known && !map_text(known, cell, &value))
        return sgm_fail(SGM_ERROR_FORMAT, "\"%.60s\" is none of the %zu texts that are mapped", cell,
                        known->count);
    if (cell && !known &&
        !(is_padded ? sgm__parse_double_padded(cell, &value) : sgm__parse_double(cell, &value)))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "\"%.60s\" is not a number; skip rows that are headings, map texts to numbers", cell);
    *target = (float)value;
    if (cell && !isfinite(*target))
        return sgm_fail(SGM_ERROR_NUMERIC, "\"%.60s\" is %s", cell,
                        isfinite(value) ? "too large for float32" : "no finite number; mark it as missing");
    return SGM_OK;
}

/* Fills the columns of a group in all examples; `target` is the group's first column in the first new
 * example. Column by column, so that the mapping is looked up once for each. */
static sgm_status fill_group(const csv_extractor *self, const columns *group, const sgm__csv_rows *rows,
                             float *target)
{
    int32_t width = self->widths[group->field];
    for (int32_t column = group->first; column <= group->last; column++, target++) {
        const mapping *known = mapping_of(self, column);
        for (int64_t row = 0; row < rows->count; row++) {
            const char *cell = rows->cells[row * rows->columns + column];
            if (convert(self, cell, rows->are_padded, known, &target[row * width]) != SGM_OK)
                return sgm__fail_within("%s: line %lld, column %d (from 0)",
                                        sgm_reader_name(self->rows.reader), (long long)rows->lines[row],
                                        (int)column);
        }
    }
    return SGM_OK;
}

static sgm_status add_fields(const csv_extractor *self, sgm__builder *builder)
{
    for (int32_t i = 0; i < self->field_count; i++) {
        sgm_shape example = sgm_shape_of(self->widths[i]);
        SGM_TRY(sgm__builder_add_field(builder, self->names[i], &example));
    }
    return SGM_OK;
}

/* Appends rows to the builder. `done` counts the columns of each field that were filled, which is where the
 * next group of the field begins. The builder's count is raised last: an example that failed halfway is none.
 */
static sgm_status append(void *pointer, sgm__csv_rows *rows, sgm__builder *builder)
{
    const csv_extractor *self = pointer;
    if (self->last_column >= rows->columns)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: a field reads column %d, but the table has %d: columns 0 to %d",
                        sgm_reader_name(self->rows.reader), (int)self->last_column, (int)rows->columns,
                        (int)rows->columns - 1);
    if (builder->field_count == 0)
        SGM_TRY(add_fields(self, builder));
    SGM_TRY(sgm__builder_reserve(builder, rows->count));
    int32_t done[SGM_MAX_FIELDS] = {0};
    for (size_t i = 0; i < self->group_count; i++) {
        const columns *group = &self->groups[i];
        float *target = sgm__builder_end(builder, group->field) + done[group->field];
        SGM_TRY(fill_group(self, group, rows, target));
        done[group->field] += group->last - group->first + 1;
    }
    builder->count += rows->count;
    return SGM_OK;
}

static sgm_status build(csv_extractor *self, int64_t count, sgm__builder *builder)
{
    SGM_TRY(add_fields(self, builder));
    return sgm__pass_blocks_take(&self->rows, count, builder);
}

/* *block stays NULL at the end of the table. */
static sgm_status csv_extract(void *pointer, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    (void)parent;
    sgm__builder builder = {0};
    return sgm__builder_finish(&builder, build(pointer, count, &builder), block);
}

static sgm_status csv_rewind(void *pointer)
{
    csv_extractor *self = pointer;
    return sgm__pass_blocks_rewind(&self->rows);
}

static sgm_status csv_skip(void *pointer, int64_t count, int64_t *skipped)
{
    csv_extractor *self = pointer;
    return sgm__pass_blocks_skip(&self->rows, count, skipped);
}

static void describe_mapping(const mapping *m, sgm__key *key)
{
    sgm__key_add_number(key, m->first);
    sgm__key_add_number(key, m->last);
    for (size_t i = 0; i < m->count; i++) {
        sgm__key_add_text(key, m->texts[i]);
        sgm__key_add_number(key, m->numbers ? m->numbers[i] : (double)i);
    }
}

static void csv_describe(const void *pointer, sgm__key *key)
{
    const csv_extractor *self = pointer;
    sgm__reader_describe(self->rows.reader, key);
    for (size_t i = 0; i < self->group_count; i++) {
        sgm__key_add_text(key, self->names[self->groups[i].field]);
        sgm__key_add_number(key, self->groups[i].first);
        sgm__key_add_number(key, self->groups[i].last);
    }
    for (size_t i = 0; i < self->mapping_count; i++)
        describe_mapping(&self->mappings[i], key);
    sgm__key_add_number(key, self->has_missing);
    sgm__key_add_number(key, self->missing);
}

sgm_extractor *sgm_csv_extractor_with(sgm_reader *reader, const sgm_csv_extractor_options *options)
{
    static const sgm_extractor_type type = {
        .name = "csv extractor", .extract = csv_extract, .free = csv_free};
    if (!reader) {
        sgm__missing_part("sgm_csv_extractor: a reader");
        return NULL;
    }
    csv_extractor *self = sgm__calloc(1, sizeof *self);
    if (!self) {
        sgm_reader_free(reader);
        return NULL;
    }
    self->rows = (sgm__pass_blocks){.reader = reader, .convert = append, .user = self};
    sgm_csv_extractor_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, type.name) != SGM_OK ||
        configure(self, &copy) != SGM_OK) {
        csv_free(self);
        return NULL;
    }
    self->rows.threads = copy.threads;
    return sgm__extractor_create(&(sgm__extractor_parts){
        .type = &type, .self = self, .rewind = csv_rewind, .skip = csv_skip, .describe = csv_describe});
}
