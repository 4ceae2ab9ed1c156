/* Datasets: their options, and their life. */
#include "data/dataset_internal.h"

#include <unistd.h>

#define MAXIMUM_BYTES ((size_t)128 << 20) /* of blocks that are kept, unless the program asks for more */

sgm_dataset *sgm__dataset_allocate(const char *name, sgm__dataset_kind kind)
{
    sgm_dataset *made = sgm__calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->name = sgm__strdup(name ? name : "dataset");
    if (!made->name) {
        sgm__free(made);
        return NULL;
    }
    made->kind = kind;
    atomic_init(&made->references, 1);
    made->disk = -1;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->idle, NULL);
    return made;
}

sgm_dataset *sgm_dataset_retain(sgm_dataset *dataset)
{
    if (dataset)
        atomic_fetch_add(&dataset->references, 1);
    return dataset;
}

static void free_texts(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        sgm__free(texts[i]);
    sgm__free(texts);
}

void sgm_dataset_free(sgm_dataset *dataset)
{
    if (!dataset || atomic_fetch_sub(&dataset->references, 1) > 1)
        return;
    for (size_t i = 0; i < dataset->slot_count; i++)
        if (dataset->slots[i].block)
            sgm_block_free(&dataset->slots[i].block->block);
    sgm__free(dataset->slots);
    sgm_extractor_free(dataset->extractor);
    if (dataset->disk >= 0)
        close(dataset->disk);
    sgm__free(dataset->cache);
    sgm__free(dataset->mapped);
    sgm_dataset_free(dataset->base);
    pthread_cond_destroy(&dataset->idle);
    pthread_mutex_destroy(&dataset->mutex);
    sgm__free(dataset->name);
    free_texts(dataset->classes);
    sgm__free(dataset);
}

const char *sgm_dataset_name(const sgm_dataset *dataset)
{
    return dataset ? dataset->name : "";
}

sgm_status sgm_dataset_name_classes(sgm_dataset *dataset, const char *const *names)
{
    size_t count = 0;
    if (!dataset || !names || !names[0])
        return sgm__missing_part("sgm_dataset_name_classes: a dataset, and names of its classes");
    if (dataset->classes)
        return sgm_fail(SGM_ERROR_STATE, "the classes of dataset \"%s\" have names already", dataset->name);
    while (names[count])
        count++;
    char **copy = sgm__calloc(count + 1, sizeof *copy);
    if (!copy)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        copy[i] = sgm__strdup(names[i]);
        if (!copy[i]) {
            free_texts(copy);
            return SGM_ERROR_MEMORY;
        }
    }
    dataset->classes = copy;
    return SGM_OK;
}

const char *const *sgm_dataset_class_names(const sgm_dataset *dataset)
{
    while (dataset && !dataset->classes && dataset->base)
        dataset = dataset->base;
    return dataset ? (const char *const *)dataset->classes : NULL;
}

static size_t default_limit(void)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || size <= 0 || (size_t)pages / 4 > MAXIMUM_BYTES / (size_t)size)
        return MAXIMUM_BYTES;
    return (size_t)pages / 4 * (size_t)size;
}

static sgm_status configure(sgm_dataset *dataset, const sgm_dataset_options *options)
{
    if (options->block_size < -1 || options->memory_limit < 0)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "dataset \"%s\": block_size %lld and memory_limit %lld; expected 0 (default), more, or a "
            "block_size of -1 for all in one",
            dataset->name, (long long)options->block_size, (long long)options->memory_limit);
    dataset->block_size = options->block_size == -1 ? INT64_MAX : options->block_size;
    dataset->limit = options->memory_limit > 0 ? (size_t)options->memory_limit : default_limit();
    if (!options->cache)
        return SGM_OK;
    dataset->cache = sgm__strdup(options->cache);
    return dataset->cache ? sgm__make_folders(dataset->cache) : SGM_ERROR_MEMORY;
}

sgm_dataset *sgm_dataset_create_options(const char *name, const sgm_dataset_options *options)
{
    sgm_dataset_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, "sgm_dataset_create") != SGM_OK)
        return NULL;
    if (!copy.extractor) {
        sgm__missing_part("sgm_dataset_create: .extractor");
        return NULL;
    }
    sgm_dataset *made = sgm__dataset_allocate(name, SGM__BLOCKS);
    if (!made) {
        sgm_extractor_free(copy.extractor);
        return NULL;
    }
    made->extractor = copy.extractor;
    if (configure(made, &copy) != SGM_OK) {
        sgm_dataset_free(made);
        return NULL;
    }
    return made;
}
