/* The files of a folder as examples, by a pipeline: an extractor (../read/extractor.h). */
#include "data/dataset.h"
#include "data/files/files.h"
#include "data/read/extractor.h"
#include <sigma/picture.h>

/* Files that are read together: as many as threads share well. */
#define FILES_AT_ONCE 1024

typedef struct files_extractor {
    sgm_pipeline *pipeline;
    sgm_files *files;
    sgm_split *split; /* of `part`, owned; NULL: all files */
    sgm__files_part part;
    int32_t *classes; /* of the pipeline, for each class of the folder */
    int64_t next;     /* of the files */
    int32_t threads;
    sgm__bytes memory[SGM__MAXIMUM_FILE_THREADS]; /* of each thread */
    /* Files that are read together, and the builder that their examples go to. */
    int64_t wanted[FILES_AT_ONCE];
    const sgm__builder *builder;
} files_extractor;

/* Labels of the characters from 1 on, and 0 behind, which is the blank of ctc. */
static sgm_status write_labels(const files_extractor *self, int64_t file, float *target)
{
    const sgm_pipeline *pipeline = self->pipeline;
    const char *text = sgm_files_transcript(self->files, file);
    char character[5];
    int32_t count = 0;
    for (; (text = sgm__next_character(text, character)) != NULL; count++) {
        size_t at;
        const char *path = sgm_files_path(self->files, file);
        if (!sgm__text_index_find(&pipeline->parts[0].index, character, strlen(character), &at))
            return sgm_fail(SGM_ERROR_FORMAT,
                            "%s: its text has the character '%s', which no text had when the "
                            "network was trained",
                            path, character);
        if (count == pipeline->labels)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "%s: its text has more characters than the longest when the network "
                            "was trained, %d",
                            path, (int)pipeline->labels);
        target[count] = (float)(at + 1);
    }
    return SGM_OK;
}

/* One-hot classes, labels, or a mask. */
static sgm_status write_target(const files_extractor *self, int64_t file, sgm__bytes *memory,
                               sgm__builder *builder)
{
    int32_t field = builder->field_count - 1;
    float *target = sgm__builder_end(builder, field);
    memset(target, 0, builder->fields[field].elements * sizeof *target);
    if (self->pipeline->labels > 0)
        return write_labels(self, file, target);
    if (self->pipeline->kind->read_target != NULL)
        return self->pipeline->kind->read_target(self->pipeline->form, self->files->masks[file], memory,
                                                 target);
    target[self->classes[sgm_files_class(self->files, file)]] = 1;
    return SGM_OK;
}

/* The builder as it will be when the files before this one are in it. */
static sgm_status read_one(void *pointer, int32_t thread, int64_t item)
{
    files_extractor *self = pointer;
    int64_t file = self->wanted[item];
    sgm__builder builder = *self->builder;
    builder.count += item;
    SGM_TRY(sgm__pipeline_read_file(self->pipeline,
                                    &(const sgm_file){.name = sgm_files_path(self->files, file)},
                                    &self->memory[thread], &builder));
    return write_target(self, file, &self->memory[thread], &builder);
}

/* The next files of the part, at most so many. */
static int64_t choose(files_extractor *self, int64_t most)
{
    int64_t count = 0;
    for (; count < most && self->next < sgm_files_count(self->files); self->next++)
        if (sgm__files_is_of_part(&self->part, self->next))
            self->wanted[count++] = self->next;
    return count;
}

static sgm_status append(files_extractor *self, int64_t count, sgm__builder *builder)
{
    SGM_TRY(sgm__builder_reserve(builder, count));
    self->builder = builder;
    SGM_TRY(sgm__files_visit(count, self->threads, read_one, self));
    builder->count += count;
    return SGM_OK;
}

static sgm_status build(files_extractor *self, int64_t count, sgm__builder *builder)
{
    SGM_TRY(sgm__pipeline_begin(self->pipeline, false, builder));
    for (;;) {
        int64_t left = count - builder->count;
        int64_t chosen = choose(self, left < FILES_AT_ONCE ? left : FILES_AT_ONCE);
        if (chosen == 0)
            return SGM_OK;
        SGM_TRY(append(self, chosen, builder));
    }
}

/* *block stays NULL at the end of the folder. */
static sgm_status extract(void *pointer, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    (void)parent;
    sgm__builder builder = {0};
    return sgm__builder_finish(&builder, build(pointer, count, &builder), block);
}

static sgm_status rewind_folder(void *pointer)
{
    ((files_extractor *)pointer)->next = 0;
    return SGM_OK;
}

static sgm_status skip(void *pointer, int64_t count, int64_t *skipped)
{
    files_extractor *self = pointer;
    for (*skipped = 0; *skipped < count && self->next < sgm_files_count(self->files); self->next++)
        *skipped += sgm__files_is_of_part(&self->part, self->next);
    return SGM_OK;
}

static void describe(const void *pointer, sgm__key *key)
{
    const files_extractor *self = pointer;
    sgm__files_describe(self->files, key);
    sgm__pipeline_describe(self->pipeline, key);
    sgm__split_describe(self->split, self->part.part, self->part.others, key);
}

static void release(void *pointer)
{
    files_extractor *self = pointer;
    sgm_files_free(self->files);
    sgm_pipeline_free(self->pipeline);
    sgm_split_free(self->split);
    for (int32_t i = 0; i < SGM__MAXIMUM_FILE_THREADS; i++)
        sgm__bytes_free(&self->memory[i]);
    sgm__free(self->classes);
    sgm__free(self);
}

/* The error for a class that the network has not learnt, with those that it has. */
static sgm_status fail_class(const files_extractor *self, const char *class)
{
    sgm__text known = {0};
    for (const char *const *name = sgm_pipeline_classes(self->pipeline); *name != NULL; name++)
        sgm__text_append(&known, "%s%s", known.length > 0 ? ", " : "", *name);
    sgm_status status = sgm_fail(SGM_ERROR_FORMAT,
                                 "%s/%s: a class that no training %s had; the folders of classes are "
                                 "called %.400s: rename or remove it",
                                 self->files->path, class, self->files->kind->names->one,
                                 known.data != NULL ? known.data : "");
    sgm__text_free(&known);
    return status;
}

static sgm_status find_classes(files_extractor *self)
{
    const sgm__class_folder *folder = &self->files->folder;
    const sgm__pipeline_part *part = &self->pipeline->parts[0];
    self->classes = sgm__calloc(folder->class_count, sizeof *self->classes);
    if (self->classes == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < folder->class_count; i++) {
        size_t at;
        if (!sgm__text_index_find(&part->index, folder->classes[i], strlen(folder->classes[i]), &at))
            return fail_class(self, folder->classes[i]);
        self->classes[i] = (int32_t)at;
    }
    return SGM_OK;
}

static sgm_status open_folder(files_extractor *self, const char *path, const char *masks)
{
    const sgm__file_kind *kind = self->pipeline->kind;
    bool has_masks = kind->read_target != NULL;
    if (has_masks != (masks != NULL))
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            has_masks ? "%s: the folder with the masks of its pictures was expected, too, as the pipeline "
                        "is of pictures with masks"
                      : "%s: masks were given, but the pipeline is of files without them",
            path);
    self->files = has_masks ? sgm_masked_pictures_open(path, masks) : sgm_files_open(path, kind->name);
    if (self->files == NULL)
        return sgm_last_status();
    SGM_TRY(sgm__files_check_part(self->files, &self->part));
    bool has_texts = self->files->transcripts != NULL;
    if (has_texts != (self->pipeline->labels > 0))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the network was trained on %s; name such", path,
                        has_texts ? "a folder of classes" : "a table with the columns 'file' and 'text'");
    return has_texts || has_masks ? SGM_OK : find_classes(self);
}

sgm_extractor *sgm_files_extractor_with(sgm_pipeline *pipeline, const char *path,
                                        const sgm_files_extractor_options *given)
{
    static const sgm_extractor_type type = {.name = "files", .extract = extract, .free = release};
    sgm_files_extractor_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_files_extractor") != SGM_OK)
        return NULL;
    if (pipeline == NULL || path == NULL || pipeline->kind == NULL) {
        sgm__missing_part("sgm_files_extractor: a pipeline of files and a path");
        return NULL;
    }
    if (pipeline->part_count == 0) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "%s: the pipeline has no classes, so that folders of them are no data; it makes inputs of "
                 "single %s (sgm_pipeline_files)",
                 path, pipeline->kind->names->several);
        return NULL;
    }
    files_extractor *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    *self = (files_extractor){.pipeline = sgm_pipeline_retain(pipeline),
                              .split = options.split != NULL ? sgm_split_retain(options.split) : NULL,
                              .part = {options.split, options.part, options.other_parts},
                              .threads = sgm__files_threads(options.threads)};
    if (open_folder(self, path, options.masks) != SGM_OK) {
        release(self);
        return NULL;
    }
    return sgm__extractor_create(&(sgm__extractor_parts){
        .type = &type, .self = self, .rewind = rewind_folder, .skip = skip, .describe = describe});
}
