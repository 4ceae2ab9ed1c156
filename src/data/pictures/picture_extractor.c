/* The pictures of a folder as examples, by a pipeline: an extractor (../read/extractor.h). */
#include "data/pictures/picture.h"
#include "data/read/extractor.h"

typedef struct picture_extractor {
    sgm_pipeline *pipeline;
    sgm_picture_folder *folder;
    sgm_split *split; /* NULL: all pictures */
    int32_t part;
    bool others;
    int32_t *classes; /* of the pipeline, for each class of the folder */
    int64_t next;     /* of the folder's pictures */
    sgm__bytes bytes;
} picture_extractor;

static bool is_wanted(const picture_extractor *self, int64_t picture)
{
    return sgm__picture_is_of_part(self->split, self->part, self->others, picture);
}

static sgm_status append(picture_extractor *self, int64_t picture, sgm__builder *builder)
{
    const sgm__image_file *file = &self->folder->images.files[picture];
    SGM_TRY(sgm__builder_reserve(builder, 1));
    SGM_TRY(sgm__picture_read(self->pipeline, &(const sgm_picture){.name = file->path}, &self->bytes,
                              sgm__builder_end(builder, 0)));
    float *target = sgm__builder_end(builder, 1);
    memset(target, 0, builder->fields[1].elements * sizeof *target);
    target[self->classes[file->class]] = 1;
    builder->count++;
    return SGM_OK;
}

static sgm_status build(picture_extractor *self, int64_t count, sgm__builder *builder)
{
    sgm_shape inputs, targets = sgm_shape_of(sgm_pipeline_width(self->pipeline, "targets"));
    sgm_pipeline_picture_shape(self->pipeline, &inputs);
    SGM_TRY(sgm__builder_add_field(builder, "inputs", &inputs));
    SGM_TRY(sgm__builder_add_field(builder, "targets", &targets));
    for (; builder->count < count && self->next < sgm_picture_folder_count(self->folder); self->next++)
        if (is_wanted(self, self->next))
            SGM_TRY(append(self, self->next, builder));
    return SGM_OK;
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
    ((picture_extractor *)pointer)->next = 0;
    return SGM_OK;
}

static sgm_status skip(void *pointer, int64_t count, int64_t *skipped)
{
    picture_extractor *self = pointer;
    for (*skipped = 0; *skipped < count && self->next < sgm_picture_folder_count(self->folder); self->next++)
        *skipped += is_wanted(self, self->next);
    return SGM_OK;
}

static void release(void *pointer)
{
    picture_extractor *self = pointer;
    sgm_picture_folder_free(self->folder);
    sgm_pipeline_free(self->pipeline);
    sgm_split_free(self->split);
    sgm__bytes_free(&self->bytes);
    sgm__free(self->classes);
    sgm__free(self);
}

/* The error for a class that the network has not learnt, with those that it has. */
static sgm_status fail_class(const picture_extractor *self, const char *class)
{
    sgm__text known = {0};
    for (const char *const *name = sgm_pipeline_classes(self->pipeline); *name != NULL; name++)
        sgm__text_append(&known, "%s%s", known.length > 0 ? ", " : "", *name);
    sgm_status status = sgm_fail(SGM_ERROR_FORMAT,
                                 "%s/%s: a class that no training picture had; the folders of classes are "
                                 "called %.400s: rename or remove it",
                                 self->folder->path, class, known.data != NULL ? known.data : "");
    sgm__text_free(&known);
    return status;
}

static sgm_status find_classes(picture_extractor *self)
{
    const sgm__image_folder *images = &self->folder->images;
    const sgm__pipeline_part *part = &self->pipeline->parts[0];
    self->classes = sgm__calloc(images->class_count, sizeof *self->classes);
    if (self->classes == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < images->class_count; i++) {
        uintptr_t at;
        if (!sgm__name_index_find(&part->index, images->classes[i], &at))
            return fail_class(self, images->classes[i]);
        self->classes[i] = (int32_t)at;
    }
    return SGM_OK;
}

static sgm_status open_folder(picture_extractor *self, const char *path)
{
    self->folder = sgm_picture_folder_open(path);
    if (self->folder == NULL)
        return sgm_last_status();
    SGM_TRY(sgm__picture_check_split(self->folder, self->split, self->part, self->others));
    return find_classes(self);
}

sgm_extractor *sgm_picture_extractor_with(sgm_pipeline *pipeline, const char *path,
                                          const sgm_picture_extractor_options *given)
{
    static const sgm_extractor_type type = {.name = "pictures", .extract = extract, .free = release};
    sgm_picture_extractor_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_picture_extractor") != SGM_OK)
        return NULL;
    if (pipeline == NULL || path == NULL || !sgm__pipeline_is_of_pictures(pipeline)) {
        sgm__missing_part("sgm_picture_extractor: a pipeline of pictures and a path");
        return NULL;
    }
    picture_extractor *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    *self = (picture_extractor){.pipeline = sgm_pipeline_retain(pipeline),
                                .split = options.split != NULL ? sgm_split_retain(options.split) : NULL,
                                .part = options.part,
                                .others = options.other_parts};
    if (open_folder(self, path) != SGM_OK) {
        release(self);
        return NULL;
    }
    return sgm__extractor_create(
        &(sgm__extractor_parts){.type = &type, .self = self, .rewind = rewind_folder, .skip = skip});
}
