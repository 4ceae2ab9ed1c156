/* The files in folders of classes: FOLDER/CLASS/FILE. Internal to src/data.
 *
 * Classes are numbered in the byte order of their folders' names. The files of the classes alternate in
 * proportion to their numbers, so every stretch of the list has them all. */
#ifndef SGM_DATA_READ_CLASS_FOLDER_H
#define SGM_DATA_READ_CLASS_FOLDER_H

#include "base/base.h"
#include "data/cache/key.h"

/* Which files are listed, and how they are told. Names are compared by their endings, in upper or lower case;
 * the content is checked when it is read. */
typedef struct sgm__file_names {
    const char *one, *several;     /* "picture", "pictures" */
    const char *formats;           /* "PNG and JPEG" */
    const char *file;              /* "a PNG or JPEG file" */
    const char *example;           /* "1.png", one of a class */
    const char *question;          /* "cat.png", one that is asked about */
    const char *const *endings;    /* ".png"; NULL at the end */
    const char *const *unreadable; /* of the same kind, but of a format that is not read: ".gif" */
} sgm__file_names;

extern const sgm__file_names sgm__picture_names, sgm__sound_names, sgm__text_names;

/* One file. `place` orders the files of all classes: file i of n has (i + 1/2) / n. */
typedef struct sgm__class_file {
    char *path;
    double place; /* in its class, from 0 to 1 */
    int32_t class;
} sgm__class_file;

typedef struct sgm__class_folder {
    sgm__class_file *files;
    char **classes; /* names of the folders, NULL at the end */
    size_t count, capacity, class_count, class_capacity;
} sgm__class_folder;

/* Lists the files of `path` into an empty or zeroed folder. What has another ending is passed over; `strict`,
 * what people put there by mistake is an error: a file beside the classes, one of another format, a folder
 * within a class, a class without a file. On failure the folder is empty. */
sgm_status sgm__class_folder_list(sgm__class_folder *folder, const char *path, const sgm__file_names *names,
                                  bool strict);
void sgm__class_folder_free(sgm__class_folder *folder);
/* Adds the files, in their order, and their classes. */
void sgm__class_folder_describe(const sgm__class_folder *folder, sgm__key *key);
/* Whether a file has one of the endings. */
bool sgm__has_file_name(const sgm__file_names *names, const char *name);

#endif
