/* Writes a model as a file of GGUF: the reverse of import/gguf.c. */
#include "import/pretrained.h"
#include "tokenizer/gguf/tokens.h"

#include <stdlib.h>
#include <string.h>

/* What a file has, and where its values are from. */
typedef struct gguf_export {
    sgm_pretrained *p;
    sgm_trainer *trainer;
    sgm__gguf_model model;
    const sgm__gguf_type *wanted; /* of the matrices; NULL: as the files have them */
    sgm__gguf_entry *entries;
    const sgm__stored **stored; /* of the entries; NULL: the factors of rotary positions */
    size_t count;
    sgm__gguf_draft metadata;
} gguf_export;

/* --- what is written --- */

/* The row of a tensor, whose name in the folder may lack the prefix. */
static const sgm__gguf_name *find_row(const gguf_export *e, const char *name, char full[300])
{
    snprintf(full, 300, "%.200s", name);
    const sgm__gguf_name *row = sgm__gguf_name_for(e->model.a, full);
    if (row != NULL)
        return row;
    snprintf(full, 300, "%.60s%.200s", e->p->architecture->prefix, name);
    return sgm__gguf_name_for(e->model.a, full);
}

/* The type that a tensor of the folder has. */
static uint32_t usual_type(const sgm__stored *stored)
{
    if (stored->blocks != NULL)
        return SGM__GGUF_Q8_0;
    if (stored->dtype == SGM_BFLOAT16)
        return SGM__GGUF_BF16;
    return stored->half ? SGM__GGUF_F16 : SGM__GGUF_F32;
}

static const sgm__gguf_type *type_of(const gguf_export *e, const sgm__stored *stored,
                                     const sgm__gguf_entry *entry)
{
    const sgm__gguf_type *type = e->wanted != NULL ? e->wanted : sgm__gguf_type_of(usual_type(stored));
    if (entry->shape.rank < 2 || strncmp(entry->name, "position_embd.", 14) == 0)
        return sgm__gguf_type_of(SGM__GGUF_F32);
    return entry->shape.dims[1] % type->block == 0 ? type : sgm__gguf_type_of(SGM__GGUF_F16);
}

static sgm_status add_entry(gguf_export *e, const sgm__stored *stored)
{
    sgm__gguf_entry *entry = &e->entries[e->count];
    char full[300];
    const sgm__gguf_name *row = find_row(e, stored->name, full);
    if (row == NULL)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "the tensor '%.100s' has no name in files of GGUF; 'sigma export --hf' writes the model",
            stored->name);
    entry->name = sgm__gguf_rename(row->own, row->theirs, full);
    if (entry->name == NULL)
        return SGM_ERROR_MEMORY;
    entry->shape = row->transposed && stored->shape.rank == 2
                       ? sgm_shape_of(stored->shape.dims[1], stored->shape.dims[0])
                       : stored->shape;
    entry->type = type_of(e, stored, entry);
    e->stored[e->count++] = stored;
    return SGM_OK;
}

/* The factors of rotary positions come last, if there are some. */
static sgm_status list_entries(gguf_export *e)
{
    sgm__gguf_bands bands;
    e->entries = calloc(e->p->stored_count + 1, sizeof *e->entries);
    e->stored = calloc(e->p->stored_count + 1, sizeof *e->stored);
    if (e->entries == NULL || e->stored == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of tensors");
    for (size_t i = 0; i < e->p->stored_count; i++)
        if (sgm__export_is_part(e->p, &e->p->stored[i]))
            SGM__TRY(add_entry(e, &e->p->stored[i]));
    if (!sgm__gguf_has_bands(&e->model, &bands))
        return SGM_OK;
    sgm__gguf_entry *factors = &e->entries[e->count];
    factors->name = sgm__new_text(SGM__GGUF_FREQUENCIES);
    factors->type = sgm__gguf_type_of(SGM__GGUF_F32);
    factors->shape = sgm_shape_of(e->model.head_size / 2);
    e->count++;
    return factors->name != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* --- values --- */

static sgm_tensor *make_factors(const gguf_export *e)
{
    const sgm_shape shape = sgm_shape_of(e->model.head_size / 2);
    sgm__gguf_bands bands;
    sgm_tensor *factors = sgm_tensor_create(SGM_FLOAT32, &shape);
    if (factors != NULL && sgm__gguf_has_bands(&e->model, &bands))
        sgm__gguf_bands_factors(&bands, sgm_tensor_data(factors), (size_t)shape.dims[0]);
    return factors;
}

/* As a file has it: rows of heads in pairs, outputs first. */
static sgm_tensor *rearrange(const gguf_export *e, const sgm__gguf_name *row, sgm_tensor *value)
{
    if (row->heads != NULL)
        return sgm__gguf_permute_heads(e->model.config, row, value, false);
    return row->transposed && sgm_tensor_shape(value)->rank == 2
               ? sgm_tensor_permute(value, (const int32_t[]){1, 0})
               : sgm_tensor_retain(value);
}

static sgm_tensor *make_value(void *user, size_t index)
{
    gguf_export *e = user;
    const sgm__stored *stored = e->stored[index];
    char full[300];
    if (stored == NULL)
        return make_factors(e);
    sgm_tensor *value = sgm__export_value(e->p, stored, e->trainer, SGM_FLOAT32);
    sgm_tensor *arranged = value != NULL ? rearrange(e, find_row(e, stored->name, full), value) : NULL;
    sgm_tensor *whole = arranged != NULL ? sgm_tensor_cast(arranged, SGM_FLOAT32) : NULL;
    sgm_tensor_free(arranged);
    sgm_tensor_free(value);
    return whole;
}

/* --- metadata --- */

/* Whether a key says how numbers are written, which is new for each file. */
static bool is_of_writing(const char *key)
{
    static const char *const keys[] = {"general.alignment", "general.file_type",
                                       "general.quantization_version"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* All else is as in the file that the model was read from. */
static sgm_status copy_metadata(gguf_export *e, const sgm__gguf *file)
{
    for (size_t i = 0; i < file->value_count; i++)
        if (!is_of_writing(file->values[i].key))
            sgm__gguf_put_copy(&e->metadata, file, &file->values[i]);
    return e->metadata.status;
}

static sgm_status copy_kept(gguf_export *e)
{
    char *path = sgm__folder_path(e->p->path, SGM__GGUF_KEPT);
    sgm__gguf *file = path != NULL ? sgm__gguf_open(path) : NULL;
    sgm_status status = file != NULL ? copy_metadata(e, file) : sgm_last_status();
    sgm__gguf_close(file);
    free(path);
    return status;
}

/* Of a folder; without a tokenizer llama.cpp reads numbers alone. */
static sgm_status make_metadata(gguf_export *e)
{
    SGM__TRY(sgm__gguf_put_config(&e->metadata, &e->model));
    if (e->p->tokenizer != NULL)
        return sgm__gguf_put_tokenizer(&e->metadata, e->p->path, e->p->config, (uint32_t)e->p->info.tokens);
    sgm__gguf_put_text(&e->metadata, "tokenizer.ggml.model", "no_vocab", strlen("no_vocab"));
    return e->metadata.status;
}

/* What most tensors are of, by the numbers that llama.cpp has for that. */
static void put_file_type(gguf_export *e)
{
    static const struct {
        uint32_t type, number;
    } numbers[] = {{SGM__GGUF_F32, 0}, {SGM__GGUF_F16, 1}, {SGM__GGUF_Q8_0, 7}, {SGM__GGUF_BF16, 32}};
    uint32_t counts[4] = {0}, most = 0;
    for (size_t i = 0; i < e->count; i++)
        for (uint32_t k = 0; k < 4; k++)
            counts[k] += e->entries[i].shape.rank == 2 && e->entries[i].type->number == numbers[k].type;
    for (uint32_t k = 1; k < 4; k++)
        most = counts[k] > counts[most] ? k : most;
    sgm__gguf_put_integer(&e->metadata, "general.file_type", numbers[most].number);
    if (counts[2] > 0)
        sgm__gguf_put_integer(&e->metadata, "general.quantization_version", 2);
}

static sgm_status collect_metadata(gguf_export *e)
{
    if (e->p->gguf != NULL)
        SGM__TRY(copy_metadata(e, e->p->gguf));
    else
        SGM__TRY(sgm__folder_has(e->p->path, SGM__GGUF_KEPT) ? copy_kept(e) : make_metadata(e));
    put_file_type(e);
    return e->metadata.status;
}

/* --- the way in --- */

static sgm_status choose_type(gguf_export *e, const sgm_gguf_options *given)
{
    sgm_gguf_options options = {.struct_size = sizeof options};
    SGM__TRY(sgm__take_options(&options, sizeof options, given));
    if (options.type == NULL)
        return SGM_OK;
    e->wanted = sgm__gguf_type_named(options.type);
    if (e->wanted != NULL && e->wanted->write != NULL)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "tensors of the type '%.40s' are not written; these are: f32, f16, bf16, q8_0",
                    options.type);
}

static sgm_status choose_model(gguf_export *e)
{
    const sgm_pretrained *p = e->p;
    const json_t *heads = json_object_get(p->config, "num_attention_heads");
    if (p->onnx)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "'%s' is an ONNX model, which has no architecture that a file of GGUF could name",
                        p->path);
    e->model.a = sgm__gguf_architecture_for(p->architecture->type);
    if (e->model.a == NULL)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "a model '%s' is not written as a file of GGUF; these are: llama, mistral, qwen2, qwen3, gpt2",
            p->architecture->type);
    e->model.config = p->config;
    e->model.head_size =
        json_integer_value(heads) > 0 ? p->description.queries / json_integer_value(heads) : 0;
    e->model.longest = p->info.longest;
    return SGM_OK;
}

static sgm_status write_file(gguf_export *e, const char *path, const sgm_gguf_options *options)
{
    SGM__TRY(choose_type(e, options));
    SGM__TRY(choose_model(e));
    SGM__TRY(sgm__export_refuse_adapters(e->trainer));
    SGM__TRY(list_entries(e));
    SGM__TRY(collect_metadata(e));
    return sgm__gguf_write(path, &e->metadata, e->entries, e->count, make_value, e);
}

sgm_status sgm_pretrained_export_gguf_with(sgm_pretrained *p, sgm_trainer *trainer, const char *path,
                                           const sgm_gguf_options *options)
{
    gguf_export e = {.p = p, .trainer = trainer};
    if (p == NULL || trainer == NULL || path == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "writing a model needs the model, a trainer and a path, got NULL");
    sgm_status status = write_file(&e, path, options);
    for (size_t i = 0; i < e.count; i++)
        free(e.entries[i].name);
    free(e.entries);
    free(e.stored);
    sgm__gguf_draft_free(&e.metadata);
    return status;
}
