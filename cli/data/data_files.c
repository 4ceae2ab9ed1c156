/* `sigma data FOLDER/`: what a folder of files, such as pictures, holds before anything is trained on it: its
 * classes, how many files each has, and their sizes. Of each file only the beginning is read. */
#include "data/data.h"
#include "data/kinds/kind.h"

#include <stdio.h>

/* What is known of the files of one class, or of all. */
typedef struct class_summary {
    int64_t count;
    sgm__file_size least, most;
} class_summary;

static void add_size(class_summary *s, const sgm__file_size *size)
{
    if (s->count++ == 0)
        s->least = s->most = *size;
    for (size_t i = 0; i < sizeof size->numbers / sizeof *size->numbers; i++) {
        double number = size->numbers[i];
        s->least.numbers[i] = number < s->least.numbers[i] ? number : s->least.numbers[i];
        s->most.numbers[i] = number > s->most.numbers[i] ? number : s->most.numbers[i];
    }
}

static sgm_status measure(const sgm_files *files, const sgm__file_kind *kind, class_summary *classes,
                          class_summary *all)
{
    for (int64_t i = 0; i < sgm_files_count(files); i++) {
        sgm__file_size size;
        SGM_TRY(kind->measure(sgm_files_path(files, i), &size));
        add_size(&classes[sgm_files_class(files, i)], &size);
        add_size(all, &size);
    }
    return SGM_OK;
}

/* Prints what a function of the kind says of the sizes. */
static void print_sizes(const class_summary *s, void (*tell)(const sgm__file_size *least,
                                                             const sgm__file_size *most, sgm__text *text))
{
    sgm__text text = {0};
    tell(&s->least, &s->most, &text);
    printf("%s\n", text.data != NULL ? text.data : "");
    sgm__text_free(&text);
}

static void print_summary(const char *path, const sgm__file_kind *kind, const char *const *names,
                          const class_summary *classes, size_t count, const class_summary *all)
{
    char number[32];
    print_name(path);
    printf(": %s %s in %zu class%s, ", sgm_count_text(all->count, number, sizeof number),
           all->count == 1 ? kind->names->one : kind->names->several, count, count == 1 ? "" : "es");
    print_sizes(all, kind->tell);
    for (size_t i = 0; i < count; i++) {
        printf("  ");
        print_name(names[i]);
        printf(": %s, ", sgm_count_text(classes[i].count, number, sizeof number));
        print_sizes(&classes[i], kind->tell);
    }
    if (count == 1)
        printf("a single class: a network needs at least two to tell apart\n");
    if (sgm__file_sizes_differ(&all->least, &all->most))
        print_sizes(all, kind->advise);
}

/* The kind of which the folder has the most files; NULL and an error if it has none of any. */
static const sgm__file_kind *find_kind(const char *path)
{
    const sgm__file_kind *kind, *best = NULL;
    size_t most = 0;
    sgm__text formats = {0};
    for (size_t i = 0; (kind = sgm__file_kind_at(i)) != NULL; i++) {
        sgm__class_folder folder = {0};
        sgm__class_folder_list(&folder, path, kind->names, false);
        if (folder.count > most)
            best = kind;
        most = folder.count > most ? folder.count : most;
        sgm__class_folder_free(&folder);
        sgm__text_append(&formats, "%s%s %s", i > 0 ? ", or " : "", kind->names->formats,
                         kind->names->several);
    }
    if (best == NULL)
        sgm_fail(SGM_ERROR_NOT_FOUND,
                 "%s: %s were expected in folders with the names of the classes, such as "
                 "%s/CLASS/%s",
                 path, formats.data != NULL ? formats.data : "files", path,
                 sgm__file_kind_at(0)->names->example);
    sgm__text_free(&formats);
    return best;
}

const char *data_kind_of_files(const char *path)
{
    const sgm__file_kind *kind = find_kind(path);
    return kind != NULL ? kind->name : NULL;
}

int data_show_files(const char *path)
{
    const sgm__file_kind *kind = find_kind(path);
    sgm_files *files = kind != NULL ? sgm_files_open(path, kind->name) : NULL;
    if (files == NULL)
        return report_error("data", CLI_FAILED);
    const char *const *names = sgm_files_classes(files);
    size_t count = 0;
    while (names[count] != NULL)
        count++;
    class_summary all = {0}, *classes = sgm__calloc(count, sizeof *classes);
    sgm_status status = classes != NULL ? measure(files, kind, classes, &all) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        print_summary(path, kind, names, classes, count, &all);
    sgm__free(classes);
    sgm_files_free(files);
    return status == SGM_OK ? CLI_OK : report_error("data", CLI_FAILED);
}
