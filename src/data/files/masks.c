/* Pictures with masks: two folders with files of the same names, and the classes that the masks have. */
#include "data/files/files.h"
#include "data/kinds/masked_picture.h"
#include "data/read/source.h"
#include <sigma/picture.h>

#include <errno.h>

/* --- listing --- */

static sgm_status list(const char *path, struct dirent ***entries, int *count)
{
    *count = sgm__folder_list(path, entries);
    return *count >= 0 ? SGM_OK
                       : sgm_fail(errno == ENOENT ? SGM_ERROR_NOT_FOUND : SGM_ERROR_FILE,
                                  "%s: the folder cannot be read: %s", path, sgm__errno_text(errno));
}

/* MASKS/STEM.png of a picture NAME. NULL without memory. */
static char *mask_path(const char *masks, const char *name)
{
    const char *dot = strrchr(name, '.');
    return sgm__format("%s/%.*s.png", masks, (int)(dot - name), name);
}

static sgm_status add_pair(sgm_files *files, const char *path, const char *masks, const char *name)
{
    sgm__class_folder *folder = &files->folder;
    char *picture = sgm__format("%s/%s", path, name), *mask = mask_path(masks, name);
    sgm_status status = picture != NULL && mask != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && !sgm__file_exists(mask))
        status =
            sgm_fail(SGM_ERROR_NOT_FOUND, "%s: its mask was expected as %s, and is not there", picture, mask);
    if (status == SGM_OK)
        status = sgm__reserve(&folder->files, &folder->capacity, folder->count + 1, sizeof *folder->files);
    if (status == SGM_OK)
        status = sgm__reserve(&files->masks, &files->mask_capacity, folder->count + 1, sizeof *files->masks);
    if (status != SGM_OK) {
        sgm__free(picture);
        sgm__free(mask);
        return status;
    }
    files->masks[folder->count] = mask;
    folder->files[folder->count++] = (sgm__class_file){.path = picture};
    return SGM_OK;
}

static sgm_status list_pairs(sgm_files *files, const char *path, const char *masks)
{
    struct dirent **entries;
    int count;
    SGM_TRY(list(path, &entries, &count));
    sgm_status status = SGM_OK;
    for (int i = 0; i < count && status == SGM_OK; i++)
        if (sgm__has_file_name(files->kind->names, entries[i]->d_name))
            status = add_pair(files, path, masks, entries[i]->d_name);
    sgm__folder_list_free(entries, count);
    SGM_TRY(status);
    if (files->folder.count == 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND,
                        "%s: there is no picture; PNG and JPEG files were expected, whose masks lie in %s",
                        path, masks);
    return SGM_OK;
}

sgm_files *sgm_masked_pictures_open(const char *path, const char *masks)
{
    if (path == NULL || *path == '\0' || masks == NULL || *masks == '\0') {
        sgm_fail(
            SGM_ERROR_ARGUMENT,
            "sgm_masked_pictures_open: the paths of a folder of pictures and of one of masks were expected");
        return NULL;
    }
    sgm_files *files = sgm__calloc(1, sizeof *files);
    if (files == NULL)
        return NULL;
    files->kind = &sgm__masked_pictures;
    files->path = sgm__strdup(path);
    files->folder.classes = sgm__calloc(1, sizeof *files->folder.classes);
    if (files->path != NULL && files->folder.classes != NULL && list_pairs(files, path, masks) == SGM_OK)
        return files;
    sgm_files_free(files);
    return NULL;
}

/* --- fitting --- */

/* Which values pixels have, as each thread has seen them. */
typedef struct values {
    const sgm_files *files;
    sgm__bytes bytes[SGM__MAXIMUM_FILE_THREADS];
    bool seen[SGM__MAXIMUM_FILE_THREADS][SGM__MASK_VALUES];
} values;

/* In its own size, in which no small thing is lost; and that is the picture's. */
static sgm_status look(void *pointer, int32_t thread, int64_t file)
{
    values *self = pointer;
    sgm__bytes *bytes = &self->bytes[thread];
    const char *mask = self->files->masks[file], *picture = sgm_files_path(self->files, file);
    int32_t width = 0, height = 0, picture_width, picture_height;
    bytes->length = 0;
    SGM_TRY(sgm__mask_decode(mask, &width, &height, bytes));
    SGM_TRY(sgm__image_size(picture, &picture_width, &picture_height));
    if (width != picture_width || height != picture_height)
        return sgm_fail(SGM_ERROR_SHAPE, "%s is %d x %d pixels, but its picture %s is %d x %d", mask,
                        (int)width, (int)height, picture, (int)picture_width, (int)picture_height);
    for (size_t i = 0; i < bytes->length; i++)
        self->seen[thread][bytes->data[i]] = true;
    return SGM_OK;
}

static void take_values(const values *seen, sgm__masked_form *form)
{
    for (int value = 0; value < SGM__MASK_VALUES; value++) {
        bool any = false;
        for (int32_t i = 0; i < SGM__MAXIMUM_FILE_THREADS; i++)
            any |= seen->seen[i][value];
        if (any)
            form->values[form->class_count++] = (unsigned char)value;
    }
}

/* Classes are those of all masks, also of parts that are not trained on: they are no secret that a network
 * could learn from. */
static sgm_status find_values(const sgm_files *files, int32_t threads, sgm__masked_form *form)
{
    values *seen = sgm__calloc(1, sizeof *seen);
    if (seen == NULL)
        return SGM_ERROR_MEMORY;
    seen->files = files;
    sgm_status status = sgm__files_visit(sgm_files_count(files), threads, look, seen);
    if (status == SGM_OK)
        take_values(seen, form);
    for (int32_t i = 0; i < SGM__MAXIMUM_FILE_THREADS; i++)
        sgm__bytes_free(&seen->bytes[i]);
    sgm__free(seen);
    if (status == SGM_OK && form->class_count < 2)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: all pixels of all masks have the same value, %d: there is nothing "
                        "to tell apart",
                        files->path, (int)form->values[0]);
    return status;
}

/* Classes are called as their values unless they have names. */
static sgm_status name_classes(sgm_pipeline *pipeline, const sgm__masked_form *form)
{
    size_t count = (size_t)form->class_count;
    char **names = sgm__calloc(count + 1, sizeof *names);
    bool good = names != NULL;
    for (size_t i = 0; good && i < count; i++) {
        names[i] = sgm__format("%d", (int)form->values[i]);
        good = names[i] != NULL;
    }
    if (good)
        return sgm__pipeline_set_classes(pipeline, names, count);
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        sgm__free(names[i]);
    sgm__free(names);
    return SGM_ERROR_MEMORY;
}

sgm_pipeline *sgm__masked_pipeline(const sgm_files *files, const sgm__picture_form *picture, int32_t threads)
{
    sgm__masked_form form = {.picture = *picture};
    if (find_values(files, threads, &form) != SGM_OK)
        return NULL;
    sgm_pipeline *pipeline = sgm__pipeline_of_files(&sgm__masked_pictures, &form);
    if (pipeline == NULL || name_classes(pipeline, &form) == SGM_OK)
        return pipeline;
    sgm_pipeline_free(pipeline);
    return NULL;
}
