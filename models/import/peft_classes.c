/* The classes of a folder of PEFT: their number is that of the rows of its last layer. PEFT does not write
 * their names; export/adapters.c does, into a file of its own beside PEFT's. */
#include "import/pretrained.h"

#include <stdlib.h>
#include <string.h>

/* Rows of a tensor of the last layer, by its name in PEFT's file; 0: the file has none of this name. */
static int64_t rows_of(const sgm_tensor_file *file, const char *tensor)
{
    const size_t prefix = strlen(SGM__PEFT_PREFIX);
    sgm_tensor_entry entry;
    for (size_t i = 0; sgm_tensor_file_entry(file, i, &entry); i++)
        if (strncmp(entry.name, SGM__PEFT_PREFIX, prefix) == 0 && strcmp(entry.name + prefix, tensor) == 0)
            return entry.shape.rank > 0 ? entry.shape.dims[0] : 0;
    return 0;
}

/* How many classes the file is for, and in *is_own whether the model's last layer is for as many. */
static int64_t count_classes(const sgm_pretrained *p, const sgm_tensor_file *file, bool *is_own)
{
    const sgm__architecture *a = p->architecture;
    for (size_t i = 0; i < a->weight_count; i++) {
        const char *name = a->weights[i].theirs[0];
        const int64_t rows = a->weights[i].head ? rows_of(file, name) : 0;
        const sgm__stored *stored = rows > 0 ? sgm__stored_find(p, name) : NULL;
        *is_own = stored != NULL && stored->shape.rank > 0 && stored->shape.dims[0] == rows;
        if (rows > 0)
            return rows;
    }
    *is_own = false;
    return 0;
}

static sgm_status fail_names(const char *folder, int64_t count)
{
    return sgm_fail(SGM_ERROR_FORMAT,
                    "'%s/" SGM__PEFT_CLASSES "': a list of the names of %lld classes, [\"bad\", \"good\"], "
                    "which differ, is wanted; without the file they have none",
                    folder, (long long)count);
}

/* Fills p->class_names, if the folder has names. */
static sgm_status read_names(sgm_pretrained *p, const char *folder, int64_t count)
{
    SGM__TRY(sgm__folder_optional_json(folder, SGM__PEFT_CLASSES, &p->peft_classes));
    if (p->peft_classes == NULL)
        return SGM_OK;
    const size_t size = json_array_size(p->peft_classes);
    if (size == 0 || (int64_t)size != count)
        return fail_names(folder, count);
    p->class_names = calloc(size, sizeof *p->class_names);
    if (p->class_names == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of %zu classes", size);
    json_t *seen = json_object();
    bool is_good = seen != NULL;
    for (size_t i = 0; i < size && is_good; i++) {
        p->class_names[i] = json_string_value(json_array_get(p->peft_classes, i));
        is_good = p->class_names[i] != NULL && p->class_names[i][0] != '\0' &&
                  json_object_get(seen, p->class_names[i]) == NULL &&
                  json_object_set_new(seen, p->class_names[i], json_true()) == 0;
    }
    json_decref(seen);
    return is_good ? SGM_OK : fail_names(folder, count);
}

sgm_status sgm__peft_classes(sgm_pretrained *p, sgm_pretrained_options *options)
{
    if (options->task != NULL && strcmp(options->task, "classify") != 0)
        return SGM_OK;
    char *path = sgm__folder_path(options->peft, SGM__PEFT_WEIGHTS);
    sgm_tensor_file *file = path != NULL ? sgm_tensor_file_open(path) : NULL;
    free(path);
    if (file == NULL)
        return sgm_last_status();
    bool is_own;
    const int64_t count = count_classes(p, file, &is_own);
    sgm_tensor_file_close(file);
    if (count == 0 || (options->classes > 0 && options->classes != count))
        return SGM_OK; /* what does not fit is told when the adapters are read */
    if (options->class_names == NULL)
        SGM__TRY(read_names(p, options->peft, count));
    if (p->class_names != NULL)
        options->class_names = p->class_names;
    if (!is_own || p->class_names != NULL)
        options->classes = count;
    return SGM_OK;
}
