/* What a run of a model of others has learnt: the parameters in its checkpoint, beside the folder that
 * sgm_pretrained_keep wrote, and the adapters of its network, which the original has not. */
#include "import/pretrained.h"

#include <stdlib.h>
#include <string.h>

/* The checkpoint beside the kept folder; free with free. */
static char *checkpoint_path(const sgm_pretrained *p)
{
    const size_t length = strlen(p->path) - strlen("/" SGM__KEPT_FOLDER);
    return sgm__new_text("%.*s/" SGM__CHECKPOINT, (int)length, p->path);
}

/* The network in a checkpoint; NULL and an error. */
static sgm_network *read_network(const char *path)
{
    char *text = path != NULL ? sgm_checkpoint_network(path) : NULL;
    sgm_network *network = text != NULL ? sgm_network_parse(text) : NULL;
    sgm_string_free(text);
    return network;
}

/* --- adapters --- */

static sgm_status list_adapters(sgm_pretrained *p, const sgm_network *network)
{
    const size_t count = sgm_network_adapters(network);
    p->adapters = calloc(count + 1, sizeof *p->adapters);
    if (p->adapters == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for the adapters of '%s'", p->path);
    for (size_t i = 0; i < count; i++) {
        p->adapters[i] = sgm_network_adapter_text(network, i);
        if (p->adapters[i] == NULL)
            return sgm_last_status();
        p->adapter_count++;
    }
    return SGM_OK;
}

static sgm_status append_adapters(sgm_pretrained *p)
{
    for (size_t i = 0; i < p->adapter_count; i++) {
        char *network = sgm__new_text("%s; %s", p->network, p->adapters[i]);
        if (network == NULL)
            return SGM_ERROR_MEMORY;
        free(p->network);
        p->network = network;
    }
    return SGM_OK;
}

/* A run without a checkpoint can be opened for its tokenizer and the names of its classes. */
sgm_status sgm__run_take_adapters(sgm_pretrained *p)
{
    char *path = checkpoint_path(p);
    sgm_network *network = path != NULL ? read_network(path) : NULL;
    sgm_status status = path != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (network != NULL)
        status = list_adapters(p, network);
    else if (path != NULL)
        sgm_clear_error();
    sgm_network_free(network);
    free(path);
    return status == SGM_OK ? append_adapters(p) : status;
}

static bool has_adapter(const sgm_network *network, const char *adapter)
{
    bool found = false;
    for (size_t i = 0; i < sgm_network_adapters(network) && !found; i++) {
        char *own = sgm_network_adapter_text(network, i);
        found = own != NULL && strcmp(own, adapter) == 0;
        sgm_string_free(own);
    }
    return found;
}

sgm_status sgm__run_check_adapters(const sgm_pretrained *p, sgm_trainer *trainer)
{
    char *text = sgm_trainer_network(trainer);
    sgm_network *network = text != NULL ? sgm_network_parse(text) : NULL;
    char *path = network != NULL ? checkpoint_path(p) : NULL;
    sgm_status status = path != NULL ? SGM_OK : sgm_last_status();
    for (size_t i = 0; i < p->adapter_count && status == SGM_OK; i++)
        if (!has_adapter(network, p->adapters[i]))
            status = sgm_fail(SGM_ERROR_UNSUPPORTED,
                              "'%s' has adapters, %.200s, which would be left out, as the network has none "
                              "like these: add them to it, or begin with what 'sigma export --hf' writes, "
                              "where they are part of the weights",
                              path, p->adapters[i]);
    free(path);
    sgm_network_free(network);
    sgm_string_free(text);
    return status;
}

/* --- parameters --- */

sgm_status sgm__run_open_checkpoint(sgm_pretrained *p)
{
    if (p->checkpoint != NULL)
        return SGM_OK;
    char *path = checkpoint_path(p);
    sgm_network *network = read_network(path);
    p->checkpoint = network != NULL ? sgm_tensor_file_open(path) : NULL;
    sgm_network_free(network);
    free(path);
    return p->checkpoint != NULL ? SGM_OK : sgm_last_status();
}

/* The number of a tensor in the checkpoint; SIZE_MAX: it has none of this name. */
static size_t find(const sgm_pretrained *p, const char *name)
{
    sgm_tensor_entry entry;
    for (size_t i = 0; p->kept && sgm_tensor_file_entry(p->checkpoint, i, &entry); i++)
        if (strcmp(entry.name, name) == 0)
            return i;
    return SIZE_MAX;
}

bool sgm__run_has_codes(const sgm_pretrained *p, const char *parameter)
{
    char *name = sgm__new_text("%s_codes", parameter);
    const bool has = name != NULL && find(p, name) != SIZE_MAX;
    free(name);
    return has;
}

static sgm_tensor *read_state(const sgm_pretrained *p, size_t index, sgm_dtype dtype)
{
    sgm_tensor *value = sgm_tensor_file_read(p->checkpoint, index);
    sgm_tensor *cast = value != NULL ? sgm_tensor_cast(value, dtype) : NULL;
    sgm_tensor_free(value);
    return cast;
}

sgm_tensor *sgm__run_read(sgm_pretrained *p, const sgm__made *made, sgm_dtype dtype)
{
    const size_t index = find(p, made->name);
    return index != SIZE_MAX ? read_state(p, index, dtype) : sgm__weights_read(p, made, dtype);
}

static bool is_anew(const sgm_pretrained *p, const char *parameter)
{
    for (size_t i = 0; i < p->made_count; i++)
        if (p->made[i].parts[0]->anew && strcmp(p->made[i].name, parameter) == 0)
            return true;
    return false;
}

sgm_status sgm__run_load_adapters(const sgm_pretrained *p, sgm_trainer *trainer)
{
    size_t count;
    const sgm_parameter *parameters = sgm_trainer_parameters(trainer, &count);
    for (size_t i = 0; i < count && p->adapter_count > 0; i++) {
        const sgm_parameter *own = &parameters[i];
        const bool is_state = own->adapts != NULL || own->quantizes != NULL;
        const size_t index = is_state ? find(p, own->name) : SIZE_MAX;
        if (own->frozen && is_anew(p, own->name))
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "'%s' begins anew, but the adapters of the run, %.200s, keep it as it is: begin "
                            "with what 'sigma export --hf' writes, where they are part of the weights",
                            own->name, p->adapters[0]);
        if (index == SIZE_MAX)
            continue;
        sgm_tensor *value = read_state(p, index, own->type.dtype);
        sgm_status status = value != NULL ? sgm_trainer_set(trainer, own->name, value) : sgm_last_status();
        sgm_tensor_free(value);
        SGM__TRY(status);
    }
    return SGM_OK;
}
