/* A file of GGUF as a model of others: its metadata become config.json, its tensors those of a folder. */
#include "import/pretrained.h"

#include <stdlib.h>
#include <string.h>

/* --- settings --- */

static sgm_status refuse_architecture(const sgm__gguf *file, const char *type, size_t size)
{
    char known[200] = "";
    const sgm__gguf_architecture *a;
    for (size_t i = 0, length = 0; (a = sgm__gguf_architecture_at(i)) != NULL && length < sizeof known; i++)
        if (sgm__gguf_architecture_of(a->type, strlen(a->type)) == a)
            length +=
                (size_t)snprintf(known + length, sizeof known - length, "%s%s", i > 0 ? ", " : "", a->type);
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "'%s': the architecture '%.*s' is not known; of files of GGUF these are: %s", file->path,
                    (int)(size < 60 ? size : 60), type, known);
}

/* A model may be cut into several files. */
static sgm_status refuse_parts(const sgm__gguf *file)
{
    int64_t parts = 1;
    sgm_status status = sgm__gguf_integer(file, "split.count", &parts);
    if (status != SGM_OK || parts <= 1)
        return status;
    return sgm__gguf_fail(
        file, "split.count",
        "is %lld: the model is cut into so many files; llama-gguf-split --merge makes one of them",
        (long long)parts);
}

static sgm_status read_settings(sgm_pretrained *p)
{
    const char *type = NULL;
    size_t size = 0;
    SGM__TRY(sgm__gguf_text(p->gguf, "general.architecture", &type, &size));
    if (type == NULL)
        return sgm__gguf_fail(p->gguf, "general.architecture",
                              "is missing; the file is no model, or not a whole one");
    p->gguf_architecture = sgm__gguf_architecture_of(type, size);
    if (p->gguf_architecture == NULL)
        return refuse_architecture(p->gguf, type, size);
    SGM__TRY(refuse_parts(p->gguf));
    return sgm__gguf_config(p->gguf, p->gguf_architecture, &p->config);
}

/* --- tensors --- */

static sgm_status add_tensor(sgm_pretrained *p, size_t index)
{
    const sgm__gguf_tensor *tensor = &p->gguf->tensors[index];
    const sgm__gguf_name *row = sgm__gguf_name_of(p->gguf_architecture, tensor->name);
    if (row == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "'%s': the tensor '%.100s' is not one that Sigma knows of a model '%s'; it may "
                        "change what the model computes",
                        p->path, tensor->name, p->gguf_architecture->type);
    sgm__stored stored = {.index = index,
                          .dtype = tensor->type->number == SGM__GGUF_BF16 ? SGM_BFLOAT16 : SGM_FLOAT32,
                          .half = tensor->type->number == SGM__GGUF_F16,
                          .blocks = tensor->type->block > 1 ? tensor->type->name : NULL,
                          .shape = tensor->shape};
    if (row->transposed && stored.shape.rank == 2)
        stored.shape = sgm_shape_of(tensor->shape.dims[1], tensor->shape.dims[0]);
    char *name = sgm__gguf_rename(row->theirs, row->own, tensor->name);
    sgm_status status = name != NULL ? sgm__stored_add(p, name, stored) : SGM_ERROR_MEMORY;
    free(name);
    return status;
}

/* The file that `sigma export --hf` writes them into is the usual one. */
static sgm_status list_tensors(sgm_pretrained *p)
{
    p->shards = calloc(1, sizeof *p->shards);
    if (p->shards == NULL || (p->shards[0].name = strdup("model.safetensors")) == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of tensors");
    p->shard_count = 1;
    for (size_t i = 0; i < p->gguf->tensor_count; i++)
        if (strcmp(p->gguf->tensors[i].name, SGM__GGUF_FREQUENCIES) != 0)
            SGM__TRY(add_tensor(p, i));
    return sgm__stored_sort(p);
}

static sgm_status find_tokenizer(sgm_pretrained *p)
{
    const char *model = NULL;
    size_t size = 0;
    SGM__TRY(sgm__gguf_text(p->gguf, "tokenizer.ggml.model", &model, &size));
    const bool none = model == NULL || (size == 4 && memcmp(model, "none", size) == 0) ||
                      (size == 8 && memcmp(model, "no_vocab", size) == 0);
    if (none)
        return SGM_OK;
    p->tokenizer = sgm__new_text("%s", p->path);
    return p->tokenizer != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__gguf_open_model(sgm_pretrained *p, const char *path)
{
    p->path = sgm__new_text("%s", path);
    p->settings = sgm__new_text("%s", path);
    p->says = "its metadata";
    if (p->path == NULL || p->settings == NULL)
        return SGM_ERROR_MEMORY;
    p->gguf = sgm__gguf_open(path);
    if (p->gguf == NULL)
        return sgm_last_status();
    SGM__TRY(read_settings(p));
    SGM__TRY(list_tensors(p));
    return find_tokenizer(p);
}

/* --- values --- */

/* How many heads a tensor's rows are of. */
static int64_t heads_of(const json_t *config, const char *key)
{
    const json_t *heads = json_object_get(config, key);
    return json_integer_value(json_is_integer(heads) ? heads
                                                     : json_object_get(config, "num_attention_heads"));
}

/* The n rows of a head stand in two halves in a folder, and in n / 2 pairs in a file. */
sgm_tensor *sgm__gguf_permute_heads(const json_t *config, const sgm__gguf_name *row, sgm_tensor *tensor,
                                    bool back)
{
    const sgm_shape *shape = sgm_tensor_shape(tensor);
    const int64_t heads = heads_of(config, row->heads), rows = shape->rank > 0 ? shape->dims[0] : 0;
    if (heads < 1 || rows % (2 * heads) != 0) {
        sgm_fail(SGM_ERROR_SHAPE, "%lld rows of '%s' are not those of %lld heads", (long long)rows,
                 row->theirs, (long long)heads);
        return NULL;
    }
    const int64_t pairs = rows / (2 * heads), columns = shape->rank > 1 ? shape->dims[1] : 1;
    const sgm_shape halves =
        back ? sgm_shape_of(heads, pairs, 2, columns) : sgm_shape_of(heads, 2, pairs, columns);
    sgm_tensor *split = sgm_tensor_reshape(tensor, &halves);
    sgm_tensor *permuted = split != NULL ? sgm_tensor_permute(split, (const int32_t[]){0, 2, 1, 3}) : NULL;
    sgm_tensor *result = permuted != NULL ? sgm_tensor_reshape(permuted, shape) : NULL;
    sgm_tensor_free(permuted);
    sgm_tensor_free(split);
    return result;
}

sgm_tensor *sgm__gguf_read_stored(const sgm_pretrained *p, const sgm__stored *stored)
{
    const sgm__gguf_tensor *tensor = &p->gguf->tensors[stored->index];
    const sgm__gguf_name *row = sgm__gguf_name_of(p->gguf_architecture, tensor->name);
    sgm_tensor *read = sgm__gguf_read(p->gguf, tensor), *result = NULL;
    if (read == NULL || (row->heads == NULL && !row->transposed))
        return read;
    if (row->heads != NULL)
        result = sgm__gguf_permute_heads(p->config, row, read, true);
    else if (tensor->shape.rank == 2)
        result = sgm_tensor_permute(read, (const int32_t[]){1, 0});
    sgm_tensor_free(read);
    return result;
}

const char *sgm__tensor_shown(const sgm_pretrained *p, const char *name, char room[128])
{
    const sgm__gguf_name *row = p->gguf != NULL ? sgm__gguf_name_for(p->gguf_architecture, name) : NULL;
    char *theirs = row != NULL ? sgm__gguf_rename(row->own, row->theirs, name) : NULL;
    snprintf(room, 128, "%.100s", theirs != NULL ? theirs : name);
    free(theirs);
    return room;
}

/* --- keeping --- */

/* All metadata, in a file without tensors. */
static sgm_status keep_metadata(const sgm_pretrained *p, const char *folder)
{
    sgm__gguf_draft metadata = {0};
    char *path = sgm__new_text("%s/" SGM__GGUF_KEPT, folder);
    for (size_t i = 0; i < p->gguf->value_count; i++)
        sgm__gguf_put_copy(&metadata, p->gguf, &p->gguf->values[i]);
    sgm_status status =
        path != NULL ? sgm__gguf_write(path, &metadata, NULL, 0, NULL, NULL) : SGM_ERROR_MEMORY;
    sgm__gguf_draft_free(&metadata);
    free(path);
    return status;
}

sgm_status sgm__gguf_write_config(const sgm_pretrained *p, const char *folder)
{
    char *text = json_dumps(p->config, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    sgm_status status = text != NULL ? sgm__write_file(folder, "config.json", text, strlen(text))
                                     : sgm_fail(SGM_ERROR_MEMORY, "no memory for config.json");
    free(text);
    return status;
}

sgm_status sgm__gguf_keep(const sgm_pretrained *p, const char *folder)
{
    SGM__TRY(sgm__gguf_write_config(p, folder));
    return p->tokenizer != NULL ? keep_metadata(p, folder) : SGM_OK;
}
