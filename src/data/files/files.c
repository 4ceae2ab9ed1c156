/* The files of a folder of classes, for programs; class_folder.c lists them. */
#include "data/files/files.h"

/* A table is known by its name, as elsewhere. */
static sgm_status list(sgm_files *files)
{
    if (!sgm__table_is_name(files->path))
        return sgm__class_folder_list(&files->folder, files->path, files->kind->names, true);
    if (files->kind->read_sequence != NULL)
        return sgm__files_list_table(files);
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s: a folder with a folder of %s for each class was expected",
                    files->path, files->kind->names->several);
}

sgm_files *sgm_files_open(const char *path, const char *kind)
{
    if (path == NULL || *path == '\0' || kind == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "sgm_files_open: the path of a folder and a kind of files were expected");
        return NULL;
    }
    const sgm__file_kind *found = sgm__file_kind_find(kind);
    sgm_files *files = found != NULL ? sgm__calloc(1, sizeof *files) : NULL;
    if (files == NULL)
        return NULL;
    files->kind = found;
    files->path = sgm__strdup(path);
    if (files->path != NULL && list(files) == SGM_OK)
        return files;
    sgm_files_free(files);
    return NULL;
}

void sgm_files_free(sgm_files *files)
{
    if (files == NULL)
        return;
    for (size_t i = 0; files->transcripts != NULL && i < files->folder.count; i++)
        sgm__free(files->transcripts[i]);
    sgm__free(files->transcripts);
    for (size_t i = 0; files->masks != NULL && i < files->folder.count; i++)
        sgm__free(files->masks[i]);
    sgm__free(files->masks);
    sgm__class_folder_free(&files->folder);
    sgm__free(files->path);
    sgm__free(files);
}

int64_t sgm_files_count(const sgm_files *files)
{
    return (int64_t)files->folder.count;
}

const char *const *sgm_files_classes(const sgm_files *files)
{
    static const char *const none[] = {NULL};
    return files->transcripts == NULL ? (const char *const *)files->folder.classes : none;
}

static const sgm__class_file *file_at(const sgm_files *files, int64_t file)
{
    return file >= 0 && file < (int64_t)files->folder.count ? &files->folder.files[file] : NULL;
}

const char *sgm_files_path(const sgm_files *files, int64_t file)
{
    const sgm__class_file *found = file_at(files, file);
    return found != NULL ? found->path : NULL;
}

int32_t sgm_files_class(const sgm_files *files, int64_t file)
{
    const sgm__class_file *found = file_at(files, file);
    return found != NULL ? found->class : -1;
}

const char *sgm_files_transcript(const sgm_files *files, int64_t file)
{
    return files->transcripts != NULL && file_at(files, file) != NULL ? files->transcripts[file] : NULL;
}

sgm_split *sgm_files_split_with(const sgm_files *files, const sgm_split_options *options)
{
    if (files == NULL) {
        sgm__missing_part("sgm_files_split: a list of files");
        return NULL;
    }
    double *keys = sgm__calloc(files->folder.count, sizeof *keys);
    for (size_t i = 0; keys != NULL && i < files->folder.count; i++)
        keys[i] = files->folder.files[i].class;
    sgm_split *split =
        keys != NULL ? sgm_split_create_with((int64_t)files->folder.count, keys, options) : NULL;
    if (keys != NULL && split == NULL)
        sgm__fail_within("%s", files->path);
    sgm__free(keys);
    return split;
}

void sgm__files_describe(const sgm_files *files, sgm__key *key)
{
    sgm__key_add_text(key, files->kind->name);
    sgm__class_folder_describe(&files->folder, key);
    for (size_t i = 0; files->transcripts != NULL && i < files->folder.count; i++)
        sgm__key_add_text(key, files->transcripts[i]);
    for (size_t i = 0; files->masks != NULL && i < files->folder.count; i++)
        sgm__key_add_file(key, files->masks[i]);
}

bool sgm__files_is_of_part(const sgm__files_part *part, int64_t file)
{
    return part->split == NULL || (sgm_split_part_of(part->split, file) == part->part) != part->others;
}

sgm_status sgm__files_check_part(const sgm_files *files, const sgm__files_part *part)
{
    if (part->split == NULL)
        return SGM_OK;
    int64_t count = sgm_files_count(files), split_count = sgm_split_examples(part->split);
    int32_t parts = sgm_split_parts(part->split);
    if (count != split_count)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: there are %lld %s, and %lld were split; the folder has changed", files->path,
                        (long long)count, files->kind->names->several, (long long)split_count);
    if (part->part < 0 || part->part >= parts || (part->others && parts < 2))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: a part from 0 to %d was expected, %d came", files->path,
                        (int)parts - 1, (int)part->part);
    return SGM_OK;
}
