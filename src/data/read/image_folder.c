/* Lists the images in folders of classes; see image_folder.h. */
#include "data/read/image_folder.h"
#include "data/read/source.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

/* As sgm__folder_list, with a message. */
static sgm_status list_entries(const char *path, struct dirent ***entries, int *count)
{
    *count = sgm__folder_list(path, entries);
    if (*count >= 0)
        return SGM_OK;
    return sgm_fail(errno == ENOENT ? SGM_ERROR_NOT_FOUND : SGM_ERROR_FILE,
                    "%s: the folder cannot be read: %s; it should have one folder of images for each class",
                    path, sgm__errno_text(errno));
}

static bool has_ending(const char *name, const char *const *endings, size_t count)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < count; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

bool sgm__is_image_name(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    return has_ending(name, endings, sizeof endings / sizeof *endings);
}

/* Pictures that are not read. */
static bool is_other_picture(const char *name)
{
    static const char *const endings[] = {".gif",  ".bmp",  ".webp", ".tif", ".tiff",
                                          ".heic", ".avif", ".svg",  ".ppm"};
    return has_ending(name, endings, sizeof endings / sizeof *endings);
}

/* What in the folder of a class was put there by mistake. */
static sgm_status check_entry(const char *path, const char *name)
{
    if (is_other_picture(name))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: PNG and JPEG pictures are read; convert it, or take it out of the folder", path);
    if (sgm__is_folder(path))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: a folder within the folder of a class; pictures lie in it directly, such as "
                        "CLASS/1.png: move them up, or the folder away",
                        path);
    return SGM_OK;
}

static sgm_status add_image(sgm__image_folder *folder, char *path, int32_t class)
{
    sgm_status status =
        sgm__reserve(&folder->files, &folder->capacity, folder->count + 1, sizeof *folder->files);
    if (status == SGM_OK)
        folder->files[folder->count++] = (sgm__image_file){.path = path, .class = class};
    else
        sgm__free(path);
    return status;
}

/* Appends the images among the entries of one class, and spreads their places evenly between 0 and 1. */
static sgm_status add_images(sgm__image_folder *folder, const char *class_path, struct dirent **entries,
                             int count, bool strict)
{
    size_t first = folder->count;
    for (int i = 0; i < count; i++) {
        char *path = sgm__format("%s/%s", class_path, entries[i]->d_name);
        if (path == NULL)
            return SGM_ERROR_MEMORY;
        if (sgm__is_image_name(entries[i]->d_name)) {
            SGM_TRY(add_image(folder, path, (int32_t)folder->class_count - 1));
            continue;
        }
        sgm_status status = strict ? check_entry(path, entries[i]->d_name) : SGM_OK;
        sgm__free(path);
        SGM_TRY(status);
    }
    for (size_t i = first; i < folder->count; i++)
        folder->files[i].place = ((double)(i - first) + 0.5) / (double)(folder->count - first);
    if (strict && folder->count == first)
        return sgm_fail(SGM_ERROR_NOT_FOUND,
                        "%s: the folder of a class has no picture; PNG or JPEG files were expected: put some "
                        "there, or remove the folder",
                        class_path);
    return SGM_OK;
}

/* A folder without images is a class nevertheless, so removing its images does not renumber the others. */
static sgm_status add_class(sgm__image_folder *folder, const char *path, const char *name, bool strict)
{
    struct dirent **entries;
    int count;
    SGM_TRY(sgm__reserve(&folder->classes, &folder->class_capacity, folder->class_count + 2,
                         sizeof *folder->classes));
    folder->classes[folder->class_count] = sgm__strdup(name);
    if (folder->classes[folder->class_count] == NULL)
        return SGM_ERROR_MEMORY;
    folder->classes[++folder->class_count] = NULL;
    SGM_TRY(list_entries(path, &entries, &count));
    sgm_status status = add_images(folder, path, entries, count, strict);
    sgm__folder_list_free(entries, count);
    return status;
}

/* Every folder among the entries is a class; files beside them are passed over. */
static sgm_status add_classes(sgm__image_folder *folder, const char *root, struct dirent **entries, int count,
                              bool strict)
{
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *path = sgm__format("%s/%s", root, name);
        if (path == NULL)
            return SGM_ERROR_MEMORY;
        sgm_status status = SGM_OK;
        if (sgm__is_folder(path))
            status = add_class(folder, path, name, strict);
        else if (strict && (sgm__is_image_name(name) || is_other_picture(name)))
            status = sgm_fail(SGM_ERROR_FORMAT,
                              "%s: the picture lies beside the folders of the classes, so it has no class; "
                              "move it into one of them, such as %s/CLASS/%s",
                              path, root, name);
        sgm__free(path);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* Orders images by place, and at equal places by class. Places are unique within a class, so the order is
 * total. */
static int compare_files(const void *a, const void *b)
{
    const sgm__image_file *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->class - y->class; /* in one class no place comes twice */
}

static sgm_status list_all(sgm__image_folder *folder, const char *path, bool strict)
{
    struct dirent **entries;
    int count;
    SGM_TRY(list_entries(path, &entries, &count));
    sgm_status status = add_classes(folder, path, entries, count, strict);
    sgm__folder_list_free(entries, count);
    SGM_TRY(status);
    if (folder->count == 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND,
                        "%s: no image was found; PNG and JPEG files were expected in folders with the "
                        "names of the classes, e.g. %s/cat/1.png",
                        path, path);
    qsort(folder->files, folder->count, sizeof *folder->files, compare_files);
    return SGM_OK;
}

sgm_status sgm__image_folder_list(sgm__image_folder *folder, const char *path, bool strict)
{
    sgm__image_folder_free(folder);
    sgm_status status = list_all(folder, path, strict);
    if (status != SGM_OK)
        sgm__image_folder_free(folder);
    return status;
}

void sgm__image_folder_free(sgm__image_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++)
        sgm__free(folder->files[i].path);
    for (size_t i = 0; i < folder->class_count; i++)
        sgm__free(folder->classes[i]);
    sgm__free(folder->files);
    sgm__free(folder->classes);
    *folder = (sgm__image_folder){0};
}
