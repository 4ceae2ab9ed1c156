/* The files of a folder of a model: finding, checking and opening them.
 *
 * Files come from strangers. Names are plain, a file lies in the folder itself, and a link may lead only to
 * where Hugging Face's cache keeps the contents of its own folders. Tensors are listed by the headers of
 * their files, which sgm_tensor_file_open has checked against the files' sizes. */
#include "import/pretrained.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TENSORS "model.safetensors"
/* Bytes of a JSON file, and files of tensors, that are believed. */
#define MAXIMUM_JSON (64 << 20)
#define MAXIMUM_SHARDS 10000

const char *sgm__small_file_at(size_t index)
{
    static const char *const names[] = {"tokenizer.json",
                                        "tokenizer.model",
                                        "vocab.txt",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "chat_template.jinja",
                                        "generation_config.json",
                                        "preprocessor_config.json",
                                        "modules.json",
                                        "sentence_bert_config.json",
                                        "config_sentence_transformers.json",
                                        SGM__POOLING_CONFIG,
                                        SGM__INDEX,
                                        "config.json"};
    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

bool sgm__folder_has(const char *folder, const char *name)
{
    char *path = sgm__new_text("%s/%s", folder, name);
    struct stat information;
    bool there = path != NULL && stat(path, &information) == 0 && S_ISREG(information.st_mode);
    free(path);
    return there;
}

/* --- where a file may lie --- */

/* Cuts the last part of a path off. */
static void go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
}

/* Whether `file` lies in `folder`, there in `inner` ("/1_Pooling", or ""), or where the cache of Hugging Face
 * keeps the contents of its folders: models--NAME/snapshots/HASH has links to models--NAME/blobs. Both are
 * real paths, and `file` is cut. */
static bool lies_within(char *file, const char *folder, const char *inner)
{
    char blobs[PATH_MAX + 16], *slash;
    size_t length = strlen(folder);
    go_up(file);
    if (strncmp(file, folder, length) == 0 && strcmp(file + length, inner) == 0)
        return true;
    snprintf(blobs, PATH_MAX, "%s", folder);
    go_up(blobs);
    slash = strrchr(blobs, '/');
    if (slash == NULL || strcmp(slash, "/snapshots") != 0)
        return false;
    memcpy(slash, "/blobs", sizeof "/blobs");
    return strcmp(file, blobs) == 0;
}

char *sgm__folder_path(const char *folder, const char *name)
{
    char root[PATH_MAX], real[PATH_MAX];
    bool pooling = strcmp(name, SGM__POOLING_CONFIG) == 0;
    if ((strchr(name, '/') != NULL && !pooling) || name[0] == '.' || name[0] == '\0') {
        sgm_fail(SGM_ERROR_FORMAT, "'%s': the name '%.100s' is none of a file in this folder", folder, name);
        return NULL;
    }
    char *path = sgm__new_text("%s/%s", folder, name);
    if (path == NULL)
        return NULL;
    if (realpath(folder, root) == NULL || realpath(path, real) == NULL)
        sgm_fail(SGM_ERROR_FILE, "cannot read '%s': %s", path, strerror(errno));
    else if (!lies_within(real, root, pooling ? "/" SGM__POOLING_FOLDER : ""))
        sgm_fail(SGM_ERROR_FORMAT, "'%s' is a link that leads out of the folder; put the file itself there",
                 path);
    else
        return path;
    free(path);
    return NULL;
}

/* --- JSON --- */

static sgm_status read_json(const char *path, json_t **json)
{
    struct stat information;
    json_error_t error;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return sgm_fail(SGM_ERROR_FILE, "cannot read '%s': %s", path, strerror(errno));
    sgm_status status = SGM_OK;
    if (fstat(fileno(file), &information) != 0 || !S_ISREG(information.st_mode))
        status = sgm_fail(SGM_ERROR_FILE, "'%s' is not a regular file", path);
    else if (information.st_size > MAXIMUM_JSON)
        status = sgm_fail(SGM_ERROR_FORMAT, "'%s' has %lld bytes; at most %d are read", path,
                          (long long)information.st_size, MAXIMUM_JSON);
    else if ((*json = json_loadf(file, JSON_REJECT_DUPLICATES, &error)) == NULL)
        status = sgm_fail(SGM_ERROR_FORMAT, "'%s': line %d, column %d: %s", path, error.line, error.column,
                          error.text);
    fclose(file);
    return status;
}

sgm_status sgm__folder_json(const char *folder, const char *name, json_t **json)
{
    *json = NULL;
    char *path = sgm__folder_path(folder, name);
    sgm_status status = path != NULL ? read_json(path, json) : sgm_last_status();
    free(path);
    if (status == SGM_OK)
        return SGM_OK;
    json_decref(*json);
    *json = NULL;
    return status;
}

sgm_status sgm__folder_optional_json(const char *folder, const char *name, json_t **json)
{
    *json = NULL;
    return sgm__folder_has(folder, name) ? sgm__folder_json(folder, name, json) : SGM_OK;
}

/* --- the list of tensors --- */

sgm_status sgm__stored_add(sgm_pretrained *p, const char *name, sgm__stored stored)
{
    if ((p->stored_count & (p->stored_count - 1)) == 0) { /* room for a power of two */
        size_t room = p->stored_count > 0 ? 2 * p->stored_count : 1;
        sgm__stored *more = reallocarray(p->stored, room, sizeof *more);
        if (more == NULL)
            return sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of %zu tensors", room);
        p->stored = more;
    }
    stored.name = strdup(name);
    if (stored.name == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the name of a tensor");
    p->stored[p->stored_count++] = stored;
    return SGM_OK;
}

static int compare(const void *a, const void *b)
{
    const sgm__stored *first = a, *second = b;
    return strcmp(first->name, second->name);
}

sgm_status sgm__stored_sort(sgm_pretrained *p)
{
    if (p->stored_count > 0)
        qsort(p->stored, p->stored_count, sizeof *p->stored, compare);
    for (size_t i = 1; i < p->stored_count; i++)
        if (strcmp(p->stored[i - 1].name, p->stored[i].name) == 0)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "'%s': the tensor '%.100s' is in two files, '%.100s' and '%.100s'", p->path,
                            p->stored[i].name, p->shards[p->stored[i - 1].shard].name,
                            p->shards[p->stored[i].shard].name);
    return SGM_OK;
}

sgm__stored *sgm__stored_find(const sgm_pretrained *p, const char *name)
{
    const sgm__stored key = {.name = (char *)(uintptr_t)name};
    return p->stored_count > 0 ? bsearch(&key, p->stored, p->stored_count, sizeof key, compare) : NULL;
}

/* From the file of the tensors that a run's network does not use. Names there lack the prefix if those of the
 * model did, which has got it with a layer for classes. */
static sgm_tensor *read_rest(const sgm_pretrained *p, const sgm__stored *stored)
{
    const char *prefix = p->architecture->prefix;
    size_t length = strncmp(stored->name, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
    sgm_tensor_entry entry;
    for (size_t i = 0; sgm_tensor_file_entry(p->rest, i, &entry); i++)
        if (strcmp(entry.name, stored->name) == 0 || strcmp(entry.name, stored->name + length) == 0)
            return sgm_tensor_file_read(p->rest, i);
    sgm_fail(SGM_ERROR_NOT_FOUND, "'%s/" SGM__KEPT_REST "' has no tensor '%.100s'", p->path, stored->name);
    return NULL;
}

sgm_tensor *sgm__stored_read(const sgm_pretrained *p, const sgm__stored *stored)
{
    if (p->kept)
        return read_rest(p, stored);
    return p->gguf != NULL ? sgm__gguf_read_stored(p, stored)
                           : sgm_tensor_file_read(p->shards[stored->shard].file, stored->index);
}

/* --- opening --- */

/* A file that cannot be opened is mostly one that was not downloaded, or not to its end. */
static sgm_status fail_shard(const sgm_pretrained *p, const char *name)
{
    const bool indexed = strcmp(name, TENSORS) != 0 && sgm__folder_has(p->path, SGM__INDEX);
    const sgm_status status = sgm_last_status();
    if (status == SGM_ERROR_FORMAT && indexed)
        return sgm_fail(status, "%s; '%s/" SGM__INDEX "' names this file: download it again",
                        sgm_last_error(), p->path);
    if (status == SGM_ERROR_FORMAT)
        return sgm_fail(status, "%s; download this file again", sgm_last_error());
    if (status == SGM_ERROR_FILE && !sgm__folder_has(p->path, name))
        return indexed
                   ? sgm_fail(SGM_ERROR_NOT_FOUND,
                              "'%s/%.200s' is missing, which '%s/" SGM__INDEX "' names: download this file",
                              p->path, name, p->path)
                   : sgm_fail(SGM_ERROR_NOT_FOUND,
                              "'%s' has no tensors: neither " TENSORS ", nor " SGM__INDEX
                              " and the files that it names; download them",
                              p->path);
    return status;
}

/* Opens a file of tensors and lists what it has; the number of the file is *shard. */
static sgm_status open_shard(sgm_pretrained *p, const char *name)
{
    size_t shard = p->shard_count;
    sgm_tensor_entry entry;
    p->shards[shard].name = strdup(name);
    if (p->shards[shard].name == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the name of a file");
    p->shard_count++;
    char *path = sgm__folder_path(p->path, name);
    p->shards[shard].file = path != NULL ? sgm_tensor_file_open(path) : NULL;
    free(path);
    if (p->shards[shard].file == NULL)
        return fail_shard(p, name);
    for (size_t i = 0; sgm_tensor_file_entry(p->shards[shard].file, i, &entry); i++)
        SGM__TRY(sgm__stored_add(
            p, entry.name,
            (sgm__stored){
                .shard = shard, .index = i, .dtype = entry.dtype, .half = entry.half, .shape = entry.shape}));
    return SGM_OK;
}

static sgm_status make_shards(sgm_pretrained *p, size_t count)
{
    p->shards = calloc(count, sizeof *p->shards);
    return p->shards != NULL ? SGM_OK
                             : sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of %zu files", count);
}

static bool has_shard(const sgm_pretrained *p, const char *name)
{
    for (size_t i = p->shard_count; i-- > 0;) /* tensors of one file mostly stand together */
        if (p->shards[i].name != NULL && strcmp(p->shards[i].name, name) == 0)
            return true;
    return false;
}

/* Opens each file that the index names. */
static sgm_status open_named_shards(sgm_pretrained *p, json_t *map)
{
    const char *tensor;
    json_t *file;
    if (!json_is_object(map))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s/" SGM__INDEX "': 'weight_map' is missing or no object",
                        p->path);
    SGM__TRY(make_shards(p, MAXIMUM_SHARDS));
    json_object_foreach(map, tensor, file)
    {
        if (!json_is_string(file))
            return sgm_fail(SGM_ERROR_FORMAT, "'%s/" SGM__INDEX "': the file of '%.100s' is no text", p->path,
                            tensor);
        if (has_shard(p, json_string_value(file)))
            continue;
        if (p->shard_count == MAXIMUM_SHARDS)
            return sgm_fail(SGM_ERROR_FORMAT, "'%s/" SGM__INDEX "' names more than %d files", p->path,
                            MAXIMUM_SHARDS);
        SGM__TRY(open_shard(p, json_string_value(file)));
    }
    return SGM_OK;
}

/* Each tensor must be where the index says. */
static sgm_status check_index(const sgm_pretrained *p, json_t *map)
{
    const char *tensor;
    json_t *file;
    json_object_foreach(map, tensor, file)
    {
        const sgm__stored *stored = sgm__stored_find(p, tensor);
        if (stored == NULL || strcmp(p->shards[stored->shard].name, json_string_value(file)) != 0)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "'%s/%.100s' has no tensor '%.100s', which '" SGM__INDEX "' puts there", p->path,
                            json_string_value(file), tensor);
    }
    return SGM_OK;
}

static sgm_status open_by_index(sgm_pretrained *p)
{
    json_t *index;
    SGM__TRY(sgm__folder_json(p->path, SGM__INDEX, &index));
    json_t *map = json_object_get(index, "weight_map");
    sgm_status status = open_named_shards(p, map);
    if (status == SGM_OK)
        status = sgm__stored_sort(p);
    if (status == SGM_OK)
        status = check_index(p, map);
    json_decref(index);
    return status;
}

/* One file counts before an index, which may be that of an older model, as transformers has it. */
sgm_status sgm__folder_open_tensors(sgm_pretrained *p)
{
    const bool is_one = sgm__folder_has(p->path, TENSORS);
    if (!is_one && sgm__folder_has(p->path, SGM__INDEX))
        return open_by_index(p);
    if (!is_one && sgm__folder_has(p->path, "pytorch_model.bin"))
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s' has its tensors as pytorch_model.bin, which may run programs when it is read: write "
            "them with model.save_pretrained as safetensors",
            p->path);
    SGM__TRY(make_shards(p, 1));
    SGM__TRY(open_shard(p, TENSORS));
    return sgm__stored_sort(p);
}
