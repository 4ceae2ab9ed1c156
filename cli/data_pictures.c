/* `sigma data FOLDER/`: what a folder of pictures holds, before anything is trained on it: its classes, how
 * many pictures each has, and their sizes. Of each file only the beginning is read. */
#include "cli.h"

#include <stdio.h>

/* What is known of the pictures of one class, or of all. */
typedef struct class_summary {
    int64_t count;
    int32_t narrowest, widest, lowest, highest; /* in pixels */
} class_summary;

static void add_size(class_summary *s, int32_t width, int32_t height)
{
    if (s->count == 0)
        *s = (class_summary){.narrowest = width, .widest = width, .lowest = height, .highest = height};
    s->narrowest = width < s->narrowest ? width : s->narrowest;
    s->widest = width > s->widest ? width : s->widest;
    s->lowest = height < s->lowest ? height : s->lowest;
    s->highest = height > s->highest ? height : s->highest;
    s->count++;
}

/* "32 x 32", or "20 x 16 to 64 x 48" where widths or heights differ. */
static const char *size_text(const class_summary *s, char *text, size_t size)
{
    if (s->narrowest == s->widest && s->lowest == s->highest)
        snprintf(text, size, "%d x %d", (int)s->widest, (int)s->highest);
    else
        snprintf(text, size, "%d x %d to %d x %d", (int)s->narrowest, (int)s->lowest, (int)s->widest,
                 (int)s->highest);
    return text;
}

static sgm_status measure(const sgm_picture_folder *folder, class_summary *classes, class_summary *all)
{
    for (int64_t i = 0; i < sgm_picture_folder_count(folder); i++) {
        int32_t width, height;
        SGM_TRY(sgm_picture_size(sgm_picture_folder_path(folder, i), &width, &height));
        add_size(&classes[sgm_picture_folder_class(folder, i)], width, height);
        add_size(all, width, height);
    }
    return SGM_OK;
}

static void print_summary(const char *path, const char *const *names, const class_summary *classes,
                          size_t count, const class_summary *all)
{
    char text[64], number[32];
    print_name(path);
    printf(": %s picture%s in %zu class%s, %s pixels\n", sgm_count_text(all->count, number, sizeof number),
           all->count == 1 ? "" : "s", count, count == 1 ? "" : "es", size_text(all, text, sizeof text));
    for (size_t i = 0; i < count; i++) {
        printf("  ");
        print_name(names[i]);
        printf(": %s, %s\n", sgm_count_text(classes[i].count, number, sizeof number),
               size_text(&classes[i], text, sizeof text));
    }
    if (count == 1)
        printf("a single class: a network needs at least two to tell apart\n");
    if (all->narrowest != all->widest || all->lowest != all->highest)
        printf("sizes differ: say to which all are scaled, such as size: [%d, %d] in data.training\n",
               (int)all->narrowest, (int)all->lowest);
}

int data_show_pictures(const char *path)
{
    sgm_picture_folder *folder = sgm_picture_folder_open(path);
    if (folder == NULL)
        return report_error("data", CLI_FAILED);
    const char *const *names = sgm_picture_folder_classes(folder);
    size_t count = 0;
    while (names[count] != NULL)
        count++;
    class_summary all = {0}, *classes = sgm__calloc(count, sizeof *classes);
    sgm_status status = classes != NULL ? measure(folder, classes, &all) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        print_summary(path, names, classes, count, &all);
    sgm__free(classes);
    sgm_picture_folder_free(folder);
    return status == SGM_OK ? CLI_OK : report_error("data", CLI_FAILED);
}
