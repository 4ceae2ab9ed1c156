/* Lists the files in folders of classes; see class_folder.h. */
#include "data/read/class_folder.h"
#include "data/read/source.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

const sgm__file_names sgm__picture_names = {
    .one = "picture",
    .several = "pictures",
    .formats = "PNG and JPEG",
    .file = "a PNG or JPEG file",
    .example = "1.png",
    .question = "cat.png",
    .endings = (const char *const[]){".png", ".jpg", ".jpeg", NULL},
    .unreadable = (const char *const[]){".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".avif", ".svg",
                                        ".ppm", NULL},
};

const sgm__file_names sgm__sound_names = {
    .one = "sound",
    .several = "sounds",
    .formats = "WAV and FLAC",
    .file = "a WAV or FLAC file",
    .example = "1.wav",
    .question = "tone.wav",
    .endings = (const char *const[]){".wav", ".flac", NULL},
    .unreadable =
        (const char *const[]){".mp3", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".wma", ".aif", ".aiff", NULL},
};

const sgm__file_names sgm__text_names = {
    .one = "text",
    .several = "texts",
    .formats = "TXT",
    .file = "a TXT file",
    .example = "1.txt",
    .question = "letter.txt",
    .endings = (const char *const[]){".txt", NULL},
    .unreadable =
        (const char *const[]){".pdf", ".doc", ".docx", ".odt", ".rtf", ".html", ".htm", ".gz", NULL},
};

/* What is being listed, and how. */
typedef struct listing {
    sgm__class_folder *folder;
    const char *path; /* of the folder */
    const sgm__file_names *names;
    bool strict;
} listing;

/* As sgm__folder_list, with a message. */
static sgm_status list_entries(const listing *l, const char *path, struct dirent ***entries, int *count)
{
    *count = sgm__folder_list(path, entries);
    if (*count >= 0)
        return SGM_OK;
    return sgm_fail(errno == ENOENT ? SGM_ERROR_NOT_FOUND : SGM_ERROR_FILE,
                    "%s: the folder cannot be read: %s; it should have one folder of %s for each class", path,
                    sgm__errno_text(errno), l->names->several);
}

static bool has_ending(const char *name, const char *const *endings)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && endings[i] != NULL; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

bool sgm__has_file_name(const sgm__file_names *names, const char *name)
{
    return has_ending(name, names->endings);
}

/* What in the folder of a class was put there by mistake. */
static sgm_status check_entry(const listing *l, const char *path, const char *name)
{
    if (has_ending(name, l->names->unreadable))
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s: %s %s are read; convert it, or take it out of the folder",
                        path, l->names->formats, l->names->several);
    if (sgm__is_folder(path))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: a folder within the folder of a class; %s lie in it directly, such as "
                        "CLASS/%s: move them up, or the folder away",
                        path, l->names->several, l->names->example);
    return SGM_OK;
}

static sgm_status add_file(sgm__class_folder *folder, char *path, int32_t class)
{
    sgm_status status =
        sgm__reserve(&folder->files, &folder->capacity, folder->count + 1, sizeof *folder->files);
    if (status == SGM_OK)
        folder->files[folder->count++] = (sgm__class_file){.path = path, .class = class};
    else
        sgm__free(path);
    return status;
}

/* Appends the files among the entries of one class, and spreads their places evenly between 0 and 1. */
static sgm_status add_files(const listing *l, const char *class_path, struct dirent **entries, int count)
{
    sgm__class_folder *folder = l->folder;
    size_t first = folder->count;
    for (int i = 0; i < count; i++) {
        char *path = sgm__format("%s/%s", class_path, entries[i]->d_name);
        if (path == NULL)
            return SGM_ERROR_MEMORY;
        if (sgm__has_file_name(l->names, entries[i]->d_name)) {
            SGM_TRY(add_file(folder, path, (int32_t)folder->class_count - 1));
            continue;
        }
        sgm_status status = l->strict ? check_entry(l, path, entries[i]->d_name) : SGM_OK;
        sgm__free(path);
        SGM_TRY(status);
    }
    for (size_t i = first; i < folder->count; i++)
        folder->files[i].place = ((double)(i - first) + 0.5) / (double)(folder->count - first);
    if (l->strict && folder->count == first)
        return sgm_fail(SGM_ERROR_NOT_FOUND,
                        "%s: the folder of a class has no %s; %s files were expected: put some there, or "
                        "remove the folder",
                        class_path, l->names->one, l->names->formats);
    return SGM_OK;
}

/* A folder without files is a class nevertheless, so removing its files does not renumber the others. */
static sgm_status add_class(const listing *l, const char *path, const char *name)
{
    sgm__class_folder *folder = l->folder;
    struct dirent **entries;
    int count;
    SGM_TRY(sgm__reserve(&folder->classes, &folder->class_capacity, folder->class_count + 2,
                         sizeof *folder->classes));
    folder->classes[folder->class_count] = sgm__strdup(name);
    if (folder->classes[folder->class_count] == NULL)
        return SGM_ERROR_MEMORY;
    folder->classes[++folder->class_count] = NULL;
    SGM_TRY(list_entries(l, path, &entries, &count));
    sgm_status status = add_files(l, path, entries, count);
    sgm__folder_list_free(entries, count);
    return status;
}

/* Every folder among the entries is a class; files beside them are passed over. */
static sgm_status add_classes(const listing *l, struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *path = sgm__format("%s/%s", l->path, name);
        if (path == NULL)
            return SGM_ERROR_MEMORY;
        sgm_status status = SGM_OK;
        if (sgm__is_folder(path))
            status = add_class(l, path, name);
        else if (l->strict && (sgm__has_file_name(l->names, name) || has_ending(name, l->names->unreadable)))
            status = sgm_fail(SGM_ERROR_FORMAT,
                              "%s: the %s lies beside the folders of the classes, so it has no class; move "
                              "it into one of them, such as %s/CLASS/%s",
                              path, l->names->one, l->path, name);
        sgm__free(path);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* Orders files by place, and at equal places by class. Places are unique within a class, so the order is
 * total. */
static int compare_files(const void *a, const void *b)
{
    const sgm__class_file *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->class - y->class; /* in one class no place comes twice */
}

static sgm_status list_all(const listing *l)
{
    struct dirent **entries;
    sgm__class_folder *folder = l->folder;
    int count;
    SGM_TRY(list_entries(l, l->path, &entries, &count));
    sgm_status status = add_classes(l, entries, count);
    sgm__folder_list_free(entries, count);
    SGM_TRY(status);
    if (folder->count == 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND,
                        "%s: no %s was found; %s files were expected in folders with the names of the "
                        "classes, such as %s/CLASS/%s",
                        l->path, l->names->one, l->names->formats, l->path, l->names->example);
    qsort(folder->files, folder->count, sizeof *folder->files, compare_files);
    return SGM_OK;
}

sgm_status sgm__class_folder_list(sgm__class_folder *folder, const char *path, const sgm__file_names *names,
                                  bool strict)
{
    const listing l = {.folder = folder, .path = path, .names = names, .strict = strict};
    sgm__class_folder_free(folder);
    sgm_status status = list_all(&l);
    if (status != SGM_OK)
        sgm__class_folder_free(folder);
    return status;
}

void sgm__class_folder_free(sgm__class_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++)
        sgm__free(folder->files[i].path);
    for (size_t i = 0; i < folder->class_count; i++)
        sgm__free(folder->classes[i]);
    sgm__free(folder->files);
    sgm__free(folder->classes);
    *folder = (sgm__class_folder){0};
}

void sgm__class_folder_describe(const sgm__class_folder *folder, sgm__key *key)
{
    sgm__key_add_texts(key, (const char *const *)folder->classes);
    for (size_t i = 0; i < folder->count; i++) {
        sgm__key_add_file(key, folder->files[i].path);
        sgm__key_add_number(key, folder->files[i].class);
    }
}
