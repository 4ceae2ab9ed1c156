/* What is common to fitting pipelines of all kinds of files. */
#include "data/files/files.h"

#include <stdlib.h>

sgm_status sgm__files_check_fit(const sgm_files *files, const sgm__file_kind *kind,
                                const sgm__files_part *part, const char *who)
{
    if (files == NULL)
        return sgm__missing_part("a list of files");
    const sgm__class_folder *folder = &files->folder;
    if (files->kind != kind)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: %s were expected, a list of %s came", who,
                        kind->names->several, files->kind->names->several);
    if (files->transcripts != NULL || files->masks != NULL)
        return sgm__files_check_part(files, part);
    if (folder->class_count < 2)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: there is a single class, '%s'; at least two folders with %s were "
                        "expected, one for each class",
                        files->path, folder->classes[0], kind->names->several);
    if (folder->class_count > SGM_MAX_CATEGORIES)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: at most %d classes (folders) were expected, there are %zu; join some",
                        files->path, SGM_MAX_CATEGORIES, folder->class_count);
    return sgm__files_check_part(files, part);
}

/* The files of a part, by their numbers. */
typedef struct learning {
    const sgm_files *files;
    int64_t *numbers;
    sgm_status (*learn)(void *learner, int32_t thread, const sgm_file *file);
    void *learner;
} learning;

static sgm_status visit(void *pointer, int32_t thread, int64_t item)
{
    const learning *self = pointer;
    return self->learn(self->learner, thread,
                       &(const sgm_file){.name = sgm_files_path(self->files, self->numbers[item])});
}

sgm_status sgm__files_learn(const sgm_files *files, const sgm__files_part *part, int32_t threads,
                            sgm_status (*learn)(void *learner, int32_t thread, const sgm_file *file),
                            void *learner)
{
    int64_t count = 0;
    learning self = {files, sgm__calloc((size_t)sgm_files_count(files), sizeof(int64_t)), learn, learner};
    if (self.numbers == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < sgm_files_count(files); i++)
        if (sgm__files_is_of_part(part, i))
            self.numbers[count++] = i;
    sgm_status status = count > 0 ? sgm__files_visit(count, threads, visit, &self)
                                  : sgm_fail(SGM_ERROR_ARGUMENT, "%s: the part of the split has no %s",
                                             files->path, files->kind->names->one);
    sgm__free(self.numbers);
    return status;
}

/* Copies the names of the classes into a pipeline. */
static sgm_status name_classes(sgm_pipeline *pipeline, const sgm__class_folder *folder)
{
    char **names = sgm__calloc(folder->class_count + 1, sizeof *names);
    bool good = names != NULL;
    for (size_t i = 0; good && i < folder->class_count; i++) {
        names[i] = sgm__strdup(folder->classes[i]);
        good = names[i] != NULL;
    }
    if (good)
        return sgm__pipeline_set_classes(pipeline, names, folder->class_count);
    for (size_t i = 0; names != NULL && names[i] != NULL; i++)
        sgm__free(names[i]);
    sgm__free(names);
    return SGM_ERROR_MEMORY;
}

/* --- transcripts: their characters are the labels, in the order of their bytes --- */

static int by_bytes(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Adds the characters of a text that are not there yet; *longest becomes the largest number of them in one.
 */
static sgm_status add_characters(const char *text, char **characters, size_t *count, int32_t *longest)
{
    char character[5];
    int32_t length = 0;
    for (; (text = sgm__next_character(text, character)) != NULL; length++) {
        size_t i = 0;
        while (i < *count && strcmp(characters[i], character) != 0)
            i++;
        if (i < *count)
            continue;
        if (*count == SGM_MAX_CATEGORIES)
            return sgm_fail(SGM_ERROR_UNSUPPORTED, "the texts have more than %d different characters",
                            SGM_MAX_CATEGORIES);
        characters[*count] = sgm__strdup(character);
        if (characters[*count] == NULL)
            return SGM_ERROR_MEMORY;
        ++*count;
    }
    *longest = length > *longest ? length : *longest;
    return SGM_OK;
}

/* Those of all parts, as classes are. */
static sgm_status name_characters(sgm_pipeline *pipeline, const sgm_files *files)
{
    char **characters = sgm__calloc(SGM_MAX_CATEGORIES + 1, sizeof *characters);
    size_t count = 0;
    int32_t longest = 0;
    sgm_status status = characters != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (size_t i = 0; i < files->folder.count && status == SGM_OK; i++)
        status = add_characters(files->transcripts[i], characters, &count, &longest);
    if (status == SGM_OK) {
        qsort(characters, count, sizeof *characters, by_bytes);
        return sgm__pipeline_set_characters(pipeline, characters, count, longest);
    }
    for (size_t i = 0; i < count; i++)
        sgm__free(characters[i]);
    sgm__free(characters);
    return sgm__fail_within("%s", files->path);
}

sgm_pipeline *sgm__files_pipeline(const sgm_files *files, void *form)
{
    sgm_pipeline *pipeline = sgm__pipeline_of_files(files->kind, form);
    if (pipeline == NULL || (files->transcripts != NULL ? name_characters(pipeline, files)
                                                        : name_classes(pipeline, &files->folder)) == SGM_OK)
        return pipeline;
    sgm_pipeline_free(pipeline);
    return NULL;
}
