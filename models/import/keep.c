/* What of a model is kept beside the checkpoint of a run, so that the model can be written back without the
 * folder that it came from: its small files, a list of its tensors, and the tensors that the network does not
 * use.
 *
 * The list is JSON: {"task": "generate", "tensors": {"TENSOR": {"file": "model.safetensors", "type": "F16",
 * "shape": [2, 3]}, ...}}. */
#include "import/pretrained.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    sgm_dtype dtype;
    bool half, blocks;
} types[] = {{"F32", SGM_FLOAT32, false, false},   {"F16", SGM_FLOAT32, true, false},
             {"BF16", SGM_BFLOAT16, false, false}, {"F64", SGM_FLOAT64, false, false},
             {"I64", SGM_INT64, false, false},     {"I32", SGM_INT32, false, false},
             {"U8", SGM_UINT8, false, false},      {"BOOL", SGM_BOOL, false, false},
             {"Q8_0", SGM_FLOAT32, false, true},   {"Q4_0", SGM_FLOAT32, false, true}};
#define TYPE_COUNT (sizeof types / sizeof *types)

/* --- files --- */

sgm_status sgm__write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char *path = sgm__new_text("%s/%s", folder, name), *partial = sgm__new_text("%s/%s.tmp", folder, name);
    FILE *file = path != NULL && partial != NULL ? fopen(partial, "wb") : NULL;
    sgm_status status = path != NULL && partial != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && (file == NULL || fwrite(bytes, 1, size, file) != size || fflush(file) != 0 ||
                             fsync(fileno(file)) != 0))
        status = sgm_fail(SGM_ERROR_FILE, "cannot write '%s': %s", path, strerror(errno));
    if (file != NULL && fclose(file) != 0 && status == SGM_OK)
        status = sgm_fail(SGM_ERROR_FILE, "cannot write '%s': %s", path, strerror(errno));
    if (status == SGM_OK && rename(partial, path) != 0)
        status = sgm_fail(SGM_ERROR_FILE, "cannot write '%s': %s", path, strerror(errno));
    if (status != SGM_OK && file != NULL)
        unlink(partial);
    free(partial);
    free(path);
    return status;
}

static sgm_status copy_file(const sgm_pretrained *p, const char *name, const char *folder)
{
    char *path = sgm__folder_path(p->path, name), *bytes = NULL;
    struct stat information = {0};
    FILE *file = path != NULL ? fopen(path, "rb") : NULL;
    sgm_status status = path != NULL ? SGM_OK : sgm_last_status();
    if (status == SGM_OK && (file == NULL || fstat(fileno(file), &information) != 0))
        status = sgm_fail(SGM_ERROR_FILE, "cannot read '%s': %s", path, strerror(errno));
    size_t size = status == SGM_OK ? (size_t)information.st_size : 0;
    if (status == SGM_OK && (bytes = malloc(size + 1)) == NULL)
        status = sgm_fail(SGM_ERROR_MEMORY, "no memory for the %zu bytes of '%s'", size, path);
    if (status == SGM_OK && fread(bytes, 1, size, file) != size)
        status = sgm_fail(SGM_ERROR_FILE, "cannot read '%s'", path);
    if (status == SGM_OK)
        status = sgm__write_file(folder, name, bytes, size);
    if (file != NULL)
        fclose(file);
    free(bytes);
    free(path);
    return status;
}

static sgm_status make_pooling_folder(const char *folder)
{
    char *path = sgm__new_text("%s/" SGM__POOLING_FOLDER, folder);
    sgm_status status = path == NULL ? SGM_ERROR_MEMORY
                        : mkdir(path, 0777) == 0 || errno == EEXIST
                            ? SGM_OK
                            : sgm_fail(SGM_ERROR_FILE, "cannot make '%s': %s", path, strerror(errno));
    free(path);
    return status;
}

/* That of other classes than the file has. */
static sgm_status write_config(const sgm_pretrained *p, const char *folder)
{
    char *text = json_dumps(p->config, JSON_INDENT(2));
    sgm_status status = text != NULL ? sgm__write_file(folder, "config.json", text, strlen(text))
                                     : sgm_fail(SGM_ERROR_MEMORY, "no memory for config.json");
    free(text);
    return status;
}

/* --- the index --- */

/* {TENSOR: FILE} of all tensors; NULL: out of memory. */
static json_t *map_tensors(const sgm_pretrained *p)
{
    json_t *map = json_object();
    for (size_t i = 0; map != NULL && i < p->stored_count; i++)
        if (json_object_set_new(map, p->stored[i].name, json_string(p->shards[p->stored[i].shard].name)) !=
            0) {
            json_decref(map);
            return NULL;
        }
    return map;
}

/* "total_size" are the bytes of all tensors, and newer files have "total_parameters". */
static bool count_tensors(const sgm_pretrained *p, json_t *metadata)
{
    json_int_t bytes = 0, numbers = 0;
    for (size_t i = 0; i < p->stored_count; i++) {
        const sgm__stored *stored = &p->stored[i];
        const json_int_t count = sgm_shape_elements(&stored->shape);
        numbers += count;
        bytes += count * (json_int_t)(stored->half ? 2 : sgm_dtype_size(stored->dtype));
    }
    return json_object_set_new(metadata, "total_size", json_integer(bytes)) == 0 &&
           (json_object_get(metadata, "total_parameters") == NULL ||
            json_object_set_new(metadata, "total_parameters", json_integer(numbers)) == 0);
}

/* A last layer for other classes has tensors that the index of the folder does not list, or under other
 * names: then it is written anew, else copied. */
static sgm_status write_index(const sgm_pretrained *p, const char *folder)
{
    json_t *index;
    SGM__TRY(sgm__folder_json(p->path, SGM__INDEX, &index));
    json_t *map = map_tensors(p);
    char *text = NULL;
    const bool is_same = map != NULL && json_equal(map, json_object_get(index, "weight_map"));
    if (map != NULL && !is_same && json_object_set(index, "weight_map", map) == 0) {
        json_t *metadata = json_object_get(index, "metadata");
        if (!json_is_object(metadata) || count_tensors(p, metadata))
            text = json_dumps(index, JSON_INDENT(2) | JSON_SORT_KEYS);
    }
    sgm_status status = is_same        ? copy_file(p, SGM__INDEX, folder)
                        : text != NULL ? sgm__write_file(folder, SGM__INDEX, text, strlen(text))
                                       : sgm_fail(SGM_ERROR_MEMORY, "no memory for " SGM__INDEX);
    free(text);
    json_decref(map);
    json_decref(index);
    return status;
}

/* --- all of them --- */

sgm_status sgm__copy_small_files(const sgm_pretrained *p, const char *folder)
{
    const char *name;
    for (size_t i = 0; (name = sgm__small_file_at(i)) != NULL; i++)
        if (strcmp(name, "config.json") == 0 && p->description.wanted_classes > 0)
            SGM__TRY(write_config(p, folder));
        else if (strcmp(name, SGM__INDEX) == 0 && sgm__folder_has(p->path, name))
            SGM__TRY(write_index(p, folder));
        else if (sgm__folder_has(p->path, name)) {
            if (strchr(name, '/') != NULL)
                SGM__TRY(make_pooling_folder(folder));
            SGM__TRY(copy_file(p, name, folder));
        }
    return SGM_OK;
}

/* --- keeping --- */

static const char *type_name(const sgm__stored *stored)
{
    if (stored->blocks != NULL)
        return stored->blocks;
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (types[i].dtype == stored->dtype && types[i].half == stored->half)
            return types[i].name;
    return "";
}

/* NULL: out of memory. */
static json_t *describe_tensors(const sgm_pretrained *p)
{
    json_t *all = json_object();
    for (size_t i = 0; i < p->stored_count; i++) {
        const sgm__stored *stored = &p->stored[i];
        json_t *shape = json_array();
        for (int32_t k = 0; k < stored->shape.rank; k++)
            json_array_append_new(shape, json_integer(stored->shape.dims[k]));
        json_t *entry = json_pack("{s:s, s:s, s:o}", "file", p->shards[stored->shard].name, "type",
                                  type_name(stored), "shape", shape);
        if (json_object_set_new(all, stored->name, entry) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* Adds the tensors that no parameter is made of. */
static sgm_status collect_rest(sgm_pretrained *p, sgm_bundle *rest)
{
    for (size_t i = 0; i < p->stored_count; i++) {
        const sgm__stored *stored = &p->stored[i];
        if (stored->used)
            continue;
        sgm_tensor *tensor = sgm__stored_read(p, stored);
        sgm_status status = tensor != NULL ? sgm_bundle_add(rest, stored->name, tensor) : sgm_last_status();
        sgm_tensor_free(tensor);
        SGM__TRY(status);
        if (stored->half)
            SGM__TRY(sgm_bundle_set_half(rest, stored->name, true));
    }
    return SGM_OK;
}

static sgm_status keep_rest(sgm_pretrained *p, const char *folder)
{
    sgm_bundle *rest = sgm_bundle_create();
    sgm_status status = rest != NULL ? collect_rest(p, rest) : sgm_last_status();
    char *path = sgm__new_text("%s/" SGM__KEPT_REST, folder);
    if (status == SGM_OK && sgm_bundle_count(rest) > 0)
        status = path != NULL ? sgm_bundle_save(rest, path) : SGM_ERROR_MEMORY;
    free(path);
    sgm_bundle_free(rest);
    return status;
}

static sgm_status keep_list(const sgm_pretrained *p, const char *folder)
{
    json_t *tensors = json_pack("{s:s, s:o*}", "task", p->description.task, "tensors", describe_tensors(p));
    char *text = tensors != NULL ? json_dumps(tensors, JSON_INDENT(1)) : NULL;
    sgm_status status = text != NULL ? sgm__write_file(folder, SGM__KEPT_TENSORS, text, strlen(text))
                                     : sgm_fail(SGM_ERROR_MEMORY, "no memory for the list of tensors");
    free(text);
    json_decref(tensors);
    return status;
}

static sgm_status keep_in(sgm_pretrained *p, const char *folder)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return sgm_fail(SGM_ERROR_FILE, "cannot make '%s': %s", folder, strerror(errno));
    SGM__TRY(p->gguf != NULL ? sgm__gguf_keep(p, folder) : sgm__copy_small_files(p, folder));
    if (p->kept && sgm__folder_has(p->path, SGM__GGUF_KEPT))
        SGM__TRY(copy_file(p, SGM__GGUF_KEPT, folder));
    if (!p->kept)
        SGM__TRY(keep_rest(p, folder));
    else if (p->rest != NULL)
        SGM__TRY(copy_file(p, SGM__KEPT_REST, folder));
    return keep_list(p, folder);
}

sgm_status sgm_pretrained_keep(sgm_pretrained *p, const char *folder)
{
    if (p == NULL || folder == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "keeping a model needs the model and a folder, got NULL");
    if (p->onnx)
        return SGM_OK; /* network and parameters are all that it had */
    char *kept = sgm__new_text("%s/" SGM__KEPT_FOLDER, folder);
    sgm_status status = kept != NULL ? keep_in(p, kept) : SGM_ERROR_MEMORY;
    free(kept);
    return status;
}

/* --- opening what was kept --- */

static sgm_status fail_entry(const sgm_pretrained *p, const char *name)
{
    return sgm_fail(SGM_ERROR_FORMAT,
                    "'%s/" SGM__KEPT_TENSORS "': the entry '%.100s' wants \"file\", \"type\" and \"shape\"",
                    p->path, name);
}

/* The number of a file among the shards, which gets it if it is new. */
static sgm_status number_of_shard(sgm_pretrained *p, const char *name, size_t *shard)
{
    for (*shard = 0; *shard < p->shard_count; ++*shard)
        if (strcmp(p->shards[*shard].name, name) == 0)
            return SGM_OK;
    if (strchr(name, '/') != NULL || name[0] == '.' || name[0] == '\0')
        return sgm_fail(SGM_ERROR_FORMAT, "'%s/" SGM__KEPT_TENSORS "': '%.100s' is no name of a file",
                        p->path, name);
    sgm__shard *more = reallocarray(p->shards, p->shard_count + 1, sizeof *more);
    if (more == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of files");
    p->shards = more;
    more[p->shard_count] = (sgm__shard){.name = strdup(name)};
    return more[p->shard_count++].name != NULL
               ? SGM_OK
               : sgm_fail(SGM_ERROR_MEMORY, "no memory for the name of a file");
}

static sgm_status read_entry(sgm_pretrained *p, const char *name, const json_t *entry)
{
    const char *file = json_string_value(json_object_get(entry, "file"));
    const char *type = json_string_value(json_object_get(entry, "type"));
    const json_t *shape = json_object_get(entry, "shape");
    sgm__stored stored = {.shape.rank = (int32_t)json_array_size(shape)};
    size_t t = 0;
    while (t < TYPE_COUNT && (type == NULL || strcmp(types[t].name, type) != 0))
        t++;
    if (file == NULL || t == TYPE_COUNT || !json_is_array(shape) || json_array_size(shape) > SGM_MAX_RANK)
        return fail_entry(p, name);
    for (int32_t i = 0; i < stored.shape.rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return fail_entry(p, name);
        stored.shape.dims[i] = json_integer_value(dim);
    }
    stored.dtype = types[t].dtype;
    stored.half = types[t].half;
    stored.blocks = types[t].blocks ? types[t].name : NULL;
    SGM__TRY(number_of_shard(p, file, &stored.shard));
    return sgm__stored_add(p, name, stored);
}

/* Where the tensors that the network does not use are, in the file of the rest. */
static sgm_status open_rest(sgm_pretrained *p)
{
    if (!sgm__folder_has(p->path, SGM__KEPT_REST))
        return SGM_OK;
    char *path = sgm__folder_path(p->path, SGM__KEPT_REST);
    p->rest = path != NULL ? sgm_tensor_file_open(path) : NULL;
    free(path);
    return p->rest != NULL ? SGM_OK : sgm_last_status();
}

/* The task that the model was opened for is the one that its run is for. */
static sgm_status read_list(sgm_pretrained *p, const json_t *list)
{
    const char *task = json_string_value(json_object_get(list, "task")), *name;
    json_t *tensors = json_object_get(list, "tensors"), *entry;
    if (task == NULL || strlen(task) >= sizeof p->description.task || !json_is_object(tensors))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s/" SGM__KEPT_TENSORS "': \"task\" and \"tensors\" are wanted",
                        p->path);
    memcpy(p->description.task, task, strlen(task) + 1);
    json_object_foreach(tensors, name, entry) SGM__TRY(read_entry(p, name, entry));
    return SGM_OK;
}

sgm_status sgm__kept_open_tensors(sgm_pretrained *p)
{
    json_t *list;
    SGM__TRY(sgm__folder_json(p->path, SGM__KEPT_TENSORS, &list));
    sgm_status status = read_list(p, list);
    json_decref(list);
    SGM__TRY(status);
    SGM__TRY(sgm__stored_sort(p));
    return open_rest(p);
}
