/* The keys `from` and `start_from`. See from.h.
 *
 * `from` is the folder of a model of others, which sigma_models reads, or a checkpoint or folder of a run.
 * What was imported before is a run that has a model kept in it. */
#include "config/from.h"
#include "config/saved.h"
#include <sigma/models.h>

#include <stdio.h>

/* Whether it is a run or a checkpoint; otherwise it is a folder of others. */
static bool is_run(const char *path)
{
    return !sgm__is_folder(path) || has_file(path, "checkpoint.safetensors");
}

/* NULL: out of memory, or nothing that can be read. */
static char *network_of(const char *path)
{
    if (is_run(path)) {
        char *checkpoint = saved_path(path);
        char *network = checkpoint != NULL ? sgm_checkpoint_network(checkpoint) : NULL;
        sgm__free(checkpoint);
        return network;
    }
    sgm_pretrained *model = sgm_pretrained_open(path);
    char *network = model != NULL ? sgm__strdup(sgm_pretrained_network(model)) : NULL;
    sgm_pretrained_free(model);
    return network;
}

sgm_status from_take_network(config *c)
{
    if (c->from == NULL || c->network != NULL)
        return SGM_OK;
    c->network = network_of(c->from);
    return c->network != NULL ? SGM_OK : sgm__last_failure();
}

static sgm_status load_model(sgm_trainer *trainer, const char *path, bool quiet)
{
    sgm_pretrained *model = sgm_pretrained_open(path);
    sgm_status status = model != NULL ? sgm_pretrained_load(model, trainer) : sgm__last_failure();
    if (status == SGM_OK && !quiet)
        printf("starting from %s: %s\n", path, sgm_pretrained_describe(model)->architecture);
    sgm_pretrained_free(model);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("from");
}

sgm_status from_load(sgm_trainer *trainer, const config *c, bool quiet)
{
    if (c->from != NULL && is_run(c->from))
        SGM_TRY(saved_start_from(trainer, &(const start_config){.run = c->from}, quiet));
    else if (c->from != NULL)
        SGM_TRY(load_model(trainer, c->from, quiet));
    return c->start_from.run != NULL ? saved_start_from(trainer, &c->start_from, quiet) : SGM_OK;
}

sgm_status from_keep(const config *c)
{
    bool kept = c->from != NULL && c->folder != NULL && has_file(c->from, "model/tensors.json");
    if (c->from == NULL || c->folder == NULL || (is_run(c->from) && !kept))
        return SGM_OK;
    sgm_pretrained *model = sgm_pretrained_open(c->from);
    sgm_status status = model != NULL ? sgm_pretrained_keep(model, c->folder) : sgm__last_failure();
    sgm_pretrained_free(model);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("from");
}
