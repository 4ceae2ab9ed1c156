/* The pictures of a folder of classes, for programs; image_folder.c lists them. */
#include "data/pictures/picture.h"

sgm_picture_folder *sgm_picture_folder_open(const char *path)
{
    if (path == NULL || *path == '\0') {
        sgm_fail(SGM_ERROR_ARGUMENT, "sgm_picture_folder_open: the path of a folder was expected");
        return NULL;
    }
    sgm_picture_folder *folder = sgm__calloc(1, sizeof *folder);
    if (folder == NULL)
        return NULL;
    folder->path = sgm__strdup(path);
    if (folder->path != NULL && sgm__image_folder_list(&folder->images, path, true) == SGM_OK)
        return folder;
    sgm_picture_folder_free(folder);
    return NULL;
}

void sgm_picture_folder_free(sgm_picture_folder *folder)
{
    if (folder == NULL)
        return;
    sgm__image_folder_free(&folder->images);
    sgm__free(folder->path);
    sgm__free(folder);
}

int64_t sgm_picture_folder_count(const sgm_picture_folder *folder)
{
    return (int64_t)folder->images.count;
}

const char *const *sgm_picture_folder_classes(const sgm_picture_folder *folder)
{
    return (const char *const *)folder->images.classes;
}

static const sgm__image_file *file_at(const sgm_picture_folder *folder, int64_t picture)
{
    return picture >= 0 && picture < (int64_t)folder->images.count ? &folder->images.files[picture] : NULL;
}

const char *sgm_picture_folder_path(const sgm_picture_folder *folder, int64_t picture)
{
    const sgm__image_file *file = file_at(folder, picture);
    return file != NULL ? file->path : NULL;
}

int32_t sgm_picture_folder_class(const sgm_picture_folder *folder, int64_t picture)
{
    const sgm__image_file *file = file_at(folder, picture);
    return file != NULL ? file->class : -1;
}

sgm_status sgm_picture_size(const char *path, int32_t *width, int32_t *height)
{
    return sgm__image_size(path, width, height);
}

sgm_split *sgm_picture_folder_split_with(const sgm_picture_folder *folder, const sgm_split_options *options)
{
    if (folder == NULL) {
        sgm__missing_part("sgm_picture_folder_split: a folder");
        return NULL;
    }
    double *keys = sgm__calloc(folder->images.count, sizeof *keys);
    for (size_t i = 0; keys != NULL && i < folder->images.count; i++)
        keys[i] = folder->images.files[i].class;
    sgm_split *split =
        keys != NULL ? sgm_split_create_with((int64_t)folder->images.count, keys, options) : NULL;
    if (keys != NULL && split == NULL)
        sgm__fail_within("%s", folder->path);
    sgm__free(keys);
    return split;
}

bool sgm__picture_is_of_part(const sgm_split *split, int32_t part, bool others, int64_t picture)
{
    return split == NULL || (sgm_split_part_of(split, picture) == part) != others;
}

sgm_status sgm__picture_check_split(const sgm_picture_folder *folder, const sgm_split *split, int32_t part,
                                    bool others)
{
    if (split == NULL)
        return SGM_OK;
    int64_t count = sgm_picture_folder_count(folder), split_count = sgm_split_examples(split);
    if (count != split_count)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: there are %lld pictures, and %lld were split; the folder has changed",
                        folder->path, (long long)count, (long long)split_count);
    if (part < 0 || part >= sgm_split_parts(split) || (others && sgm_split_parts(split) < 2))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: a part from 0 to %d was expected, %d came", folder->path,
                        (int)sgm_split_parts(split) - 1, (int)part);
    return SGM_OK;
}
