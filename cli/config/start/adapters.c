/* Adapters of the network that a training begins with, where this is a run that has some: they are statements
 * of its notation, behind the layers. */
#include "config/saved.h"

sgm_network *adapted_network_of_run(const char *path)
{
    char *checkpoint = is_model_of_others(path) ? NULL : saved_path(path);
    char *notation = checkpoint != NULL ? sgm_checkpoint_network(checkpoint) : NULL;
    sgm_network *network = notation != NULL ? sgm_network_parse(notation) : NULL;
    if (network == NULL)
        sgm_clear_error();
    if (sgm_network_adapters(network) == 0) {
        sgm_network_free(network);
        network = NULL;
    }
    sgm_string_free(notation);
    sgm__free(checkpoint);
    return network;
}

/* All of them, each behind `separator`. */
static void append_all(sgm__text *text, const sgm_network *network, const char *separator)
{
    for (size_t i = 0; i < sgm_network_adapters(network); i++) {
        char *adapter = sgm_network_adapter_text(network, i);
        sgm__text_append(text, "%s%s", separator, adapter != NULL ? adapter : "");
        text->failed |= adapter == NULL;
        sgm_string_free(adapter);
    }
}

char *adapters_of_run(const char *path)
{
    static const char separator[] = ", ";
    sgm_network *network = adapted_network_of_run(path);
    sgm__text text = {0};
    append_all(&text, network, separator);
    char *all = network != NULL ? sgm__text_take(&text) : NULL;
    char *shown = all != NULL ? sgm__strdup(all + strlen(separator)) : NULL;
    sgm__free(all);
    sgm_network_free(network);
    return shown;
}

char *network_with_layer(const char *notation, const char *layer)
{
    sgm_network *network = sgm_network_parse(notation);
    if (network == NULL)
        return NULL;
    if (sgm_network_adapters(network) == 0) {
        sgm_network_free(network);
        return sgm__format("%s%s", notation, layer);
    }
    sgm__text adapters = {0};
    append_all(&adapters, network, "; ");
    char *behind = sgm__text_take(&adapters);
    sgm_network_drop_adapters(network);
    char *front = sgm_network_text(network);
    char *whole = behind != NULL && front != NULL ? sgm__format("%s%s%s", front, layer, behind) : NULL;
    sgm_string_free(front);
    sgm__free(behind);
    sgm_network_free(network);
    return whole;
}

/* An adapter as the notation of a network has it; sgm_string_free. NULL: it is none. */
static char *written_anew(const char *adapter)
{
    sgm_network *network = sgm_network_parse("input(1) + dense(1)");
    char *text = network != NULL && sgm_network_adapt(network, sgm_layer_parse(adapter)) == SGM_OK
                     ? sgm_network_adapter_text(network, 0)
                     : NULL;
    sgm_network_free(network);
    return text;
}

static bool has_adapter(const sgm_network *network, const char *adapter)
{
    char *wanted = written_anew(adapter);
    bool found = false;
    for (size_t i = 0; wanted != NULL && i < sgm_network_adapters(network) && !found; i++) {
        char *own = sgm_network_adapter_text(network, i);
        found = own != NULL && strcmp(own, wanted) == 0;
        sgm_string_free(own);
    }
    sgm_string_free(wanted);
    return found;
}

void adapters_take_known(config *c)
{
    sgm_network *network = c->network != NULL && c->adapters.count > 0 ? sgm_network_parse(c->network) : NULL;
    size_t kept = 0;
    for (size_t i = 0; network != NULL && i < c->adapters.count; i++)
        if (has_adapter(network, c->adapters.items[i]))
            sgm__free(c->adapters.items[i]);
        else
            c->adapters.items[kept++] = c->adapters.items[i];
    if (network != NULL)
        c->adapters.count = kept;
    sgm_network_free(network);
    sgm_clear_error(); /* a network that cannot be read is told by who uses it */
}
