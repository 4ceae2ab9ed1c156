/* The images in folders of classes: FOLDER/CLASS/IMAGE, PNG or JPEG. Internal to src/data.
 *
 * Classes are numbered in the byte order of their folders' names. The images of the classes alternate in
 * proportion to their numbers, so every stretch of the list has them all. */
#ifndef SGM_DATA_READ_IMAGE_FOLDER_H
#define SGM_DATA_READ_IMAGE_FOLDER_H

#include "base/base.h"

/* One image. `place` orders the images of all classes: image i of n has (i + 1/2) / n. */
typedef struct sgm__image_file {
    char *path;
    double place; /* in its class, from 0 to 1 */
    int32_t class;
} sgm__image_file;

typedef struct sgm__image_folder {
    sgm__image_file *files;
    char **classes; /* names of the folders, NULL at the end */
    size_t count, capacity, class_count, class_capacity;
} sgm__image_folder;

/* Lists the images of `path` into an empty or zeroed folder. What has another name than an image is passed
 * over; `strict`, what people put there by mistake is an error: an image beside the classes, a picture of
 * another format, a folder within a class, a class without an image. On failure the folder is empty. */
sgm_status sgm__image_folder_list(sgm__image_folder *folder, const char *path, bool strict);
void sgm__image_folder_free(sgm__image_folder *folder);
/* Decides by the name's ending, in upper or lower case; the content is checked when it is decoded. */
bool sgm__is_image_name(const char *name);

#endif
