/* The rows of a file as examples, by a pipeline: an extractor (../read/extractor.h). */
#include "data/csv/pass.h"
#include "data/read/extractor.h"
#include "data/read/reader.h"
#include "data/table/pipeline.h"

#include <stdlib.h>

typedef struct pipeline_extractor {
    sgm_pipeline *pipeline;
    char *name; /* of the file, for messages */
    sgm__pass_blocks rows;
    int32_t *columns;   /* of the pipeline's parts in a row, found in the header */
    sgm__needed needed; /* the columns of targets without which a row is left out */
    bool has_begun;     /* the header was read */
    bool inputs_only, ignore_unknown;
    atomic_bool has_skipped; /* a row was left out */
    bool has_given;          /* a row was not */
} pipeline_extractor;

/* Names of a table without a header are the numbers of its columns. */
static void find_numbered(pipeline_extractor *self)
{
    for (size_t i = 0; i < self->pipeline->part_count; i++)
        self->columns[i] = (int32_t)strtol(self->pipeline->parts[i].name, NULL, 10);
}

static sgm_status find_named(pipeline_extractor *self)
{
    sgm_examples header;
    SGM_TRY(sgm__pass_blocks_header(&self->rows, &header));
    if (header.count == 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: the table is empty: it has no line with a cell", self->name);
    return sgm__pipeline_find(self->pipeline, self->name, header.cells, (size_t)header.columns,
                              self->inputs_only, self->columns);
}

/* Whoever asks for inputs alone has no use for targets. */
static void find_needed(pipeline_extractor *self)
{
    self->needed.count = 0;
    for (size_t i = 0; !self->inputs_only && i < self->pipeline->part_count; i++)
        if (self->pipeline->parts[i].skips_missing)
            self->needed.columns[self->needed.count++] = self->columns[i];
}

/* Before the first row: reads the header, which says where the columns are. */
static sgm_status begin(pipeline_extractor *self)
{
    if (self->has_begun)
        return SGM_OK;
    if (self->pipeline->has_header)
        SGM_TRY(find_named(self));
    else
        find_numbered(self);
    find_needed(self);
    self->has_begun = true;
    return SGM_OK;
}

/* Appends rows to a builder, on a thread of the pass. */
static sgm_status append(void *pointer, sgm__csv_rows *rows, sgm__builder *builder)
{
    pipeline_extractor *self = pointer;
    for (size_t i = 0; i < self->pipeline->part_count; i++)
        if (self->columns[i] >= rows->columns &&
            !(self->inputs_only && !sgm__pipeline_is_input(&self->pipeline->parts[i])))
            return sgm_fail(SGM_ERROR_FORMAT,
                            "%s: the pipeline reads column %d (from 0), but the table has %d", self->name,
                            (int)self->columns[i], (int)rows->columns);
    if (sgm__needed_leave_out(&self->needed, &self->pipeline->format, rows) > 0)
        atomic_store(&self->has_skipped, true);
    if (rows->count == 0)
        return SGM_OK;
    const sgm__pipeline_rows how = {.columns = self->columns,
                                    .inputs_only = self->inputs_only,
                                    .ignore_unknown = self->ignore_unknown,
                                    .name = self->name};
    if (builder->field_count == 0)
        SGM_TRY(sgm__pipeline_begin(self->pipeline, self->inputs_only, builder));
    return sgm__pipeline_append(self->pipeline, &how, rows, builder);
}

/* A file of which no row is left has none that anybody meant. */
static sgm_status note_given(pipeline_extractor *self, int64_t count)
{
    self->has_given = self->has_given || count > 0;
    return self->has_given || !atomic_load(&self->has_skipped)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FORMAT,
                          "%s: all rows are left out, as none has a target; fill some in: the pipeline "
                          "skips rows without one",
                          self->name);
}

static sgm_status build(pipeline_extractor *self, int64_t count, sgm__builder *builder)
{
    SGM_TRY(begin(self));
    SGM_TRY(sgm__pipeline_begin(self->pipeline, self->inputs_only, builder));
    SGM_TRY(sgm__pass_blocks_take(&self->rows, count, builder));
    return note_given(self, builder->count);
}

/* *block stays NULL at the end of the file. */
static sgm_status extract(void *pointer, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    (void)parent;
    sgm__builder builder = {0};
    return sgm__builder_finish(&builder, build(pointer, count, &builder), block);
}

static sgm_status rewind_file(void *pointer)
{
    pipeline_extractor *self = pointer;
    SGM_TRY(sgm__pass_blocks_rewind(&self->rows));
    self->has_begun = self->has_given = false;
    atomic_store(&self->has_skipped, false);
    return SGM_OK;
}

static sgm_status skip(void *pointer, int64_t count, int64_t *skipped)
{
    pipeline_extractor *self = pointer;
    SGM_TRY(begin(self));
    SGM_TRY(sgm__pass_blocks_skip(&self->rows, count, skipped));
    return note_given(self, *skipped);
}

static void describe(const void *pointer, sgm__key *key)
{
    const pipeline_extractor *self = pointer;
    sgm__reader_describe(self->rows.reader, key);
    sgm__pipeline_describe(self->pipeline, key);
    sgm__key_add_number(key, self->inputs_only);
    sgm__key_add_number(key, self->ignore_unknown);
}

static void release(void *pointer)
{
    pipeline_extractor *self = pointer;
    sgm__pass_blocks_free(&self->rows);
    sgm_pipeline_free(self->pipeline);
    sgm__free(self->columns);
    sgm__free(self->name);
    sgm__free(self);
}

static double numbers_per_cell(const sgm_pipeline *pipeline)
{
    double numbers = 0;
    for (int32_t i = 0; i < pipeline->field_count; i++)
        numbers += pipeline->fields[i].width;
    return numbers / (double)pipeline->part_count;
}

sgm_extractor *sgm__pipeline_extractor_of(sgm_pipeline *pipeline, sgm_source *source,
                                          const sgm_pipeline_extractor_options *given)
{
    static const sgm_extractor_type type = {.name = "pipeline", .extract = extract, .free = release};
    sgm_pipeline_extractor_options options;
    bool good = sgm__options_read(&options, sizeof options, given, "sgm_pipeline_extractor") == SGM_OK &&
                sgm__pipeline_expect_table(pipeline) == SGM_OK;
    pipeline_extractor *self = good && source != NULL ? sgm__calloc(1, sizeof *self) : NULL;
    if (self == NULL) {
        sgm_source_free(source);
        return NULL;
    }
    char separator = options.separator;
    self->pipeline = sgm_pipeline_retain(pipeline);
    self->inputs_only = options.inputs_only;
    self->ignore_unknown = options.ignore_unknown;
    self->name = sgm__strdup(sgm_source_name(source));
    self->columns = sgm__calloc(pipeline->part_count, sizeof *self->columns);
    self->rows = (sgm__pass_blocks){.reader = sgm__table_reader(source, &separator, options.skip_ragged),
                                    .convert = append,
                                    .user = self,
                                    .threads = options.threads,
                                    .numbers_per_cell = numbers_per_cell(pipeline)};
    if (self->name == NULL || self->columns == NULL || self->rows.reader == NULL) {
        release(self);
        return NULL;
    }
    return sgm__extractor_create(&(sgm__extractor_parts){
        .type = &type, .self = self, .rewind = rewind_file, .skip = skip, .describe = describe});
}

sgm_extractor *sgm_pipeline_extractor_with(sgm_pipeline *pipeline, const char *path,
                                           const sgm_pipeline_extractor_options *options)
{
    if (pipeline != NULL && path != NULL)
        return sgm__pipeline_extractor_of(pipeline, sgm__unpacked_path_source(path), options);
    sgm__missing_part(path == NULL ? "sgm_pipeline_extractor: a path" : "sgm_pipeline_extractor: a pipeline");
    return NULL;
}
