/* Writes a model back as a folder of the library transformers: the reverse of import/weights.c. */
#include "import/pretrained.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The parameter that a tensor is a part of, and which part; NULL: none. Tensors with the numbers of a
 * parameter again are the whole of it. */
static const sgm__made *find_made(const sgm_pretrained *p, const sgm__stored *stored, size_t *part)
{
    for (size_t i = 0; i < p->made_count; i++)
        for (*part = 0; *part < sgm__part_count(p->made[i].weight); ++*part)
            if (p->made[i].parts[*part] == stored)
                return &p->made[i];
    return NULL;
}

bool sgm__export_is_part(const sgm_pretrained *p, const sgm__stored *stored)
{
    size_t part;
    return find_made(p, stored, &part) != NULL;
}

/* The parameter whose numbers a tensor has again. */
static const sgm__made *find_original(const sgm_pretrained *p, const sgm__stored *stored)
{
    for (size_t i = 0; i < p->made_count; i++)
        if (sgm__weights_is_copy(p, &p->made[i], stored))
            return &p->made[i];
    return NULL;
}

/* Columns of a parameter, transposed as the files have them, in the shape of the file. */
static sgm_tensor *cut_part(const sgm_pretrained *p, const sgm__made *made, size_t part, sgm_tensor *own,
                            const sgm__stored *stored, sgm_dtype dtype)
{
    int32_t rank = made->shape.rank;
    int64_t start, columns = sgm__part_columns(p, made, part, &start);
    sgm_tensor *cut =
        rank > 0 ? sgm_tensor_slice(own, rank - 1, start, start + columns, 1) : sgm_tensor_retain(own);
    sgm_tensor *transposed = NULL, *cast = NULL;
    if (cut != NULL)
        transposed = made->weight->transposed && rank == 2 ? sgm_tensor_permute(cut, (const int32_t[]){1, 0})
                                                           : sgm_tensor_retain(cut);
    if (transposed != NULL)
        cast = sgm_tensor_cast(transposed, dtype);
    sgm_tensor *result = cast != NULL ? sgm_tensor_reshape(cast, &stored->shape) : NULL;
    sgm_tensor_free(cast);
    sgm_tensor_free(transposed);
    sgm_tensor_free(cut);
    return result;
}

sgm_tensor *sgm__export_value(sgm_pretrained *p, const sgm__stored *stored, sgm_trainer *trainer,
                              sgm_dtype dtype)
{
    size_t part = 0;
    const sgm__made *made = find_made(p, stored, &part);
    if (made == NULL) {
        part = 0;
        made = find_original(p, stored);
    }
    if (made == NULL)
        return sgm__stored_read(p, stored);
    sgm_tensor *own = sgm_trainer_get(trainer, made->name);
    sgm_tensor *value = NULL;
    if (own != NULL && sgm_shape_equal(sgm_tensor_shape(own), &made->shape))
        value = cut_part(p, made, part, own, stored, dtype);
    else if (own != NULL)
        sgm_fail(SGM_ERROR_SHAPE, "the parameter '%s' has another shape than in the model", made->name);
    sgm_tensor_free(own);
    return value;
}

static sgm_status add_tensor(sgm_pretrained *p, const sgm__stored *stored, sgm_trainer *trainer,
                             sgm_bundle *bundle)
{
    sgm_tensor *value = sgm__export_value(p, stored, trainer, stored->dtype);
    sgm_status status = value != NULL ? sgm_bundle_add(bundle, stored->name, value) : sgm_last_status();
    sgm_tensor_free(value);
    return status == SGM_OK && stored->half ? sgm_bundle_set_half(bundle, stored->name, true) : status;
}

/* The text "format": "pt" is what readers of such files ask for. */
static sgm_status write_shard(sgm_pretrained *p, size_t shard, sgm_trainer *trainer, const char *folder)
{
    sgm_bundle *bundle = sgm_bundle_create();
    char *path = sgm__new_text("%s/%s", folder, p->shards[shard].name);
    sgm_status status =
        bundle != NULL && path != NULL ? sgm_bundle_set_text(bundle, "format", "pt") : SGM_ERROR_MEMORY;
    for (size_t i = 0; i < p->stored_count && status == SGM_OK; i++)
        if (p->stored[i].shard == shard)
            status = add_tensor(p, &p->stored[i], trainer, bundle);
    if (status == SGM_OK)
        status = sgm_bundle_save(bundle, path);
    free(path);
    sgm_bundle_free(bundle);
    return status;
}

sgm_status sgm__export_refuse_adapters(sgm_trainer *trainer)
{
    char *text = sgm_trainer_network(trainer);
    sgm_network *network = text != NULL ? sgm_network_parse(text) : NULL;
    size_t adapters = sgm_network_adapters(network);
    sgm_network_free(network);
    sgm_string_free(text);
    return adapters == 0 ? SGM_OK
                         : sgm_fail(SGM_ERROR_STATE,
                                    "the trainer '%s' has adapters: merge them before, by sgm_trainer_merge",
                                    sgm_trainer_name(trainer));
}

sgm_status sgm_pretrained_export(sgm_pretrained *p, sgm_trainer *trainer, const char *folder)
{
    if (p == NULL || trainer == NULL || folder == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "writing a model needs the model, a trainer and a folder, got NULL");
    if (p->onnx)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "'%s' is an ONNX model, not a folder; sgm_trainer_export_onnx writes one", p->path);
    if (sgm__folder_has(folder, "config.json"))
        return sgm_fail(SGM_ERROR_FILE, "'%s' has a config.json already; choose another folder", folder);
    SGM__TRY(sgm__export_refuse_adapters(trainer));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return sgm_fail(SGM_ERROR_FILE, "cannot make '%s': %s", folder, strerror(errno));
    for (size_t i = 0; i < p->shard_count; i++)
        SGM__TRY(write_shard(p, i, trainer, folder));
    if (p->gguf != NULL)
        return sgm__gguf_write_config(p, folder);
    SGM__TRY(sgm__copy_small_files(p, folder));
    return sgm__export_pictures(p, trainer, folder);
}
