/* What a model of others is for, so that a command for which it is the wrong one says so in its words. */
#include "config/saved.h"
#include "texts/texts.h"

#include <sigma/models.h>

/* The folder of a model of others, or of a run that began with one, also where `path` is a checkpoint in it;
 * sgm__free. NULL: it is neither. */
static char *model_of(const char *path)
{
    if (is_model_of_others(path) || is_run_of_model(path))
        return sgm__strdup(path);
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? sgm__strndup(path, (size_t)(slash - path)) : sgm__strdup(".");
    if (folder != NULL && !sgm__is_folder(path) && is_run_of_model(folder))
        return folder;
    sgm__free(folder);
    return NULL;
}

/* A verb and its objects. */
static const char *words_of(const sgm_pretrained_info *info)
{
    if (strcmp(info->task, "generate") == 0)
        return "continues texts";
    if (strcmp(info->task, "embed") == 0)
        return info->height > 0 ? "makes vectors of pictures" : "makes vectors of texts";
    if (strcmp(info->task, "fill") == 0)
        return "fills in words that are masked";
    if (strcmp(info->task, "classify") == 0)
        return info->height > 0   ? "tells classes of pictures"
               : info->tokens > 0 ? "tells classes of texts"
                                  : "tells classes";
    return NULL;
}

/* A model that cannot be opened has an error of its own where it is used. */
const char *purpose_of(const char *path)
{
    char *folder = model_of(path);
    sgm_pretrained *model = folder != NULL ? sgm_pretrained_open(folder) : NULL;
    const char *words = model != NULL ? words_of(sgm_pretrained_describe(model)) : NULL;
    sgm_pretrained_free(model);
    sgm__free(folder);
    return words;
}

bool purpose_is_to_continue(const char *purpose)
{
    return purpose == NULL || strcmp(purpose, "continues texts") == 0;
}

/* Such a network begins with a vector for each number. */
bool network_takes_tokens(const char *notation)
{
    sgm_network *network = sgm_network_parse(notation);
    bool found = network == NULL;
    for (size_t i = 0; network != NULL && i < sgm_network_layers(network); i++)
        found |= strstr(sgm_network_layer_type(network, i)->name, "embedding") != NULL;
    sgm_network_free(network);
    return found;
}
