/* The list of all kinds of files; see kind.h. */
#include "data/kinds/kind.h"
#include "data/kinds/masked_picture.h"

static const sgm__file_kind *const kinds[] = {&sgm__pictures, &sgm__sounds, &sgm__texts};

const sgm__file_kind *sgm__file_kind_at(size_t index)
{
    return index < sizeof kinds / sizeof *kinds ? kinds[index] : NULL;
}

char *sgm__file_kind_names(void)
{
    sgm__text names = {0};
    for (size_t i = 0; sgm__file_kind_at(i) != NULL; i++)
        sgm__text_append(&names, "%s%s", i > 0 ? ", " : "", kinds[i]->name);
    return sgm__text_take(&names);
}

const sgm__file_kind *sgm__file_kind_find(const char *name)
{
    if (strcmp(name, sgm__masked_pictures.name) == 0) /* in no folders of classes, so it is not in the list */
        return &sgm__masked_pictures;
    for (size_t i = 0; sgm__file_kind_at(i) != NULL; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    char *names = sgm__file_kind_names();
    if (names != NULL)
        sgm_fail(SGM_ERROR_ARGUMENT, "a kind of files was expected (%s), '%.40s' came", names, name);
    sgm__free(names);
    return NULL;
}
