/* Creates, names and frees datasets that have an extractor or are made from memory, and holds what all kinds
 * of datasets share of that.
 *
 * Block size, memory limit and cache folder are set here once and never change. Views are created in
 * dataset_view.c, datasets by name in ready_made.c; fetching blocks is in dataset.c. A dataset is counted by
 * references: its creator, each view of it and each iterator hold one. */
#include "data/dataset_internal.h"
#include "data/table/pipeline.h"

#include <unistd.h>

#define MAXIMUM_BYTES ((size_t)128 << 20) /* of blocks that are kept, unless the program asks for more */

/* A dataset with one reference and nothing in it. `disk` is -1 until a cache file is open. */
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

/* Gives back one reference; the last one frees the dataset and gives back its own reference on its base. All
 * runs must have been released before. */
void sgm_dataset_free(sgm_dataset *dataset)
{
    if (!dataset || atomic_fetch_sub(&dataset->references, 1) > 1)
        return;
    for (size_t i = 0; i < dataset->slot_count; i++)
        if (dataset->slots[i].block)
            sgm_block_free(&dataset->slots[i].block->block);
    sgm__free(dataset->slots);
    sgm_extractor_free(dataset->extractor);
    sgm__kept_free(dataset);
    if (dataset->disk >= 0)
        close(dataset->disk);
    sgm__free(dataset->cache);
    sgm__free(dataset->mapped);
    for (int32_t i = 0; i < SGM_MAX_FIELDS; i++)
        sgm_tensor_free(dataset->room[i]);
    if (dataset->base)
        atomic_fetch_sub(&dataset->base->views, 1);
    sgm_dataset_free(dataset->base);
    pthread_cond_destroy(&dataset->idle);
    pthread_mutex_destroy(&dataset->mutex);
    sgm__free(dataset->name);
    free_texts(dataset->classes);
    sgm_pipeline_free(dataset->pipeline);
    sgm__free(dataset);
}

const char *sgm_dataset_name(const sgm_dataset *dataset)
{
    return dataset ? dataset->name : "";
}

/* Copies the names. May be called once, before other threads use the dataset: readers of the names take no
 * lock. */
sgm_status sgm_dataset_set_class_names(sgm_dataset *dataset, const char *const *names)
{
    size_t count = 0;
    if (!dataset || !names || !names[0])
        return sgm__missing_part("sgm_dataset_set_class_names: a dataset, and names of its classes");
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

/* A view has its base's names unless it was given names of its own. */
const char *const *sgm_dataset_get_class_names(const sgm_dataset *dataset)
{
    while (dataset && !dataset->classes && dataset->base)
        dataset = dataset->base;
    return dataset ? (const char *const *)dataset->classes : NULL;
}

sgm_status sgm_dataset_set_group(sgm_dataset *dataset, int64_t group)
{
    if (!dataset)
        return sgm__missing_part("sgm_dataset_set_group: a dataset");
    if (group < 1 || group > SGM_MAX_GROUP)
        return sgm_fail(SGM_ERROR_ARGUMENT, "dataset \"%s\": 1 to %d examples belong together, not %lld",
                        dataset->name, SGM_MAX_GROUP, (long long)group);
    if (dataset->group > 0 || dataset->base)
        return sgm_fail(SGM_ERROR_STATE,
                        "dataset \"%s\": which examples belong together is said once, before there are views",
                        dataset->name);
    dataset->group = group;
    return SGM_OK;
}

int64_t sgm_dataset_get_group(const sgm_dataset *dataset)
{
    while (dataset && dataset->base)
        dataset = dataset->base;
    return dataset && dataset->group > 0 ? dataset->group : 1;
}

sgm_status sgm_dataset_set_pipeline(sgm_dataset *dataset, sgm_pipeline *pipeline)
{
    if (!dataset || !pipeline)
        return sgm__missing_part("sgm_dataset_set_pipeline: a dataset and a pipeline");
    if (dataset->pipeline)
        return sgm_fail(SGM_ERROR_STATE, "dataset \"%s\" has a pipeline already", dataset->name);
    /* What no checkpoint can keep is refused here, and not after the first epoch. */
    char *text = sgm_pipeline_json(pipeline);
    if (!text)
        return sgm__fail_within("dataset \"%s\"", dataset->name);
    sgm_string_free(text);
    if (sgm_pipeline_classes(pipeline))
        SGM_TRY(sgm_dataset_set_class_names(dataset, sgm_pipeline_classes(pipeline)));
    dataset->pipeline = sgm_pipeline_retain(pipeline);
    return SGM_OK;
}

sgm_pipeline *sgm_dataset_get_pipeline(const sgm_dataset *dataset)
{
    while (dataset && !dataset->pipeline && dataset->base)
        dataset = dataset->base;
    return dataset ? dataset->pipeline : NULL;
}

/* A quarter of the memory that is free now, but at most MAXIMUM_BYTES. The division comes before the
 * multiplication, which might overflow. */
static size_t default_limit(void)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || size <= 0 || (size_t)pages / 4 > MAXIMUM_BYTES / (size_t)size)
        return MAXIMUM_BYTES;
    return (size_t)pages / 4 * (size_t)size;
}

/* Checks and takes over the options. A block_size of -1 (all examples in one block) becomes INT64_MAX, so
 * that the code that reads blocks needs no special case. Creates the cache folder, but no file in it yet. */
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
    if (options->keep)
        return sgm__kept_create(dataset, options);
    if (!options->cache)
        return SGM_OK;
    dataset->cache = sgm__strdup(options->cache);
    return dataset->cache ? sgm__make_folders(dataset->cache) : SGM_ERROR_MEMORY;
}

/* The extractor belongs to the dataset from here on, also when the call fails; but not where the options
 * cannot be read, as their members may mean anything then. */
sgm_dataset *sgm_dataset_create_with(const char *name, const sgm_dataset_options *options)
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

/* --- from memory --- */

/* The first tensor's first dimension is the number of examples; sgm_block_add refuses a tensor with another
 * one. */
sgm_block *sgm__block_of(const char *const *fields, sgm_tensor *const *tensors, size_t count)
{
    sgm_block *block = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!fields[i] || !tensors[i] || sgm_tensor_shape(tensors[i])->rank < 1) {
            sgm_fail(SGM_ERROR_ARGUMENT,
                     "field %zu needs a name and a tensor with examples as first dimension", i);
            break;
        }
        if (!block)
            block = sgm_block_create(sgm_tensor_shape(tensors[i])->dims[0]);
        sgm_tensor *values = block ? sgm_tensor_cast(tensors[i], SGM_FLOAT32) : NULL;
        if (!values || sgm_block_add(block, fields[i], values) != SGM_OK)
            break;
        if (i + 1 == count)
            return block;
    }
    if (count == 0)
        sgm_fail(SGM_ERROR_ARGUMENT, "a dataset needs at least one field");
    sgm_block_free(block);
    return NULL;
}

/* No lock is needed before the dataset is returned, since no other thread knows it. */
sgm_dataset *sgm_dataset_create_from(const char *name, const char *const *fields, sgm_tensor *const *tensors,
                                     size_t count)
{
    if (count > 0 && (!fields || !tensors)) {
        sgm__missing_part("sgm_dataset_create_from: lists of names and tensors");
        return NULL;
    }
    sgm_dataset *made = sgm__dataset_allocate(name, SGM__BLOCKS);
    if (!made)
        return NULL;
    sgm_block *block = sgm__block_of(fields, tensors, count);
    if (!block || sgm__dataset_add_slot(made, 0, block->count) != SGM_OK) {
        sgm__fail_within("dataset \"%s\"", made->name);
        sgm_block_free(block);
        sgm_dataset_free(made);
        return NULL;
    }
    sgm__dataset_learn_layout(&made->layout, block);
    sgm__dataset_insert(made, block, 0);
    made->ended = true;
    return made;
}
