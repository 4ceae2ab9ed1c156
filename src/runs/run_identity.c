/* What a run is made of: see run_identity.h. */
#include "runs/run_identity.h"
#include "data/dataset.h"
#include "trainer/trainer.h"

#include <stdio.h>
#include <zlib.h>

#define MAXIMUM_SUMMED ((size_t)4 << 20) /* bytes of states in the checksum of a beginning */

/* The members, and how they are called in sentences. */
static const struct member_row {
    const char *key, *words;
} members[] = {
    {"sigma", "the version of Sigma"},
    {"computes", "how the handler computes"},
    {"precision", "the precision"},
    {"seed", "the seed"},
    {"network", "the network"},
    {"optimiser", "the optimiser"},
    {"data", "the checksum of the first training data"},
    {"parameters", "the checksum of what training begins with"},
};

/* Takes the text over; NULL: it could not be made. */
static sgm_status set_text(json_t *identity, const char *key, char *text)
{
    sgm_status status = text != NULL ? SGM_OK : sgm__last_failure();
    if (status == SGM_OK && json_object_set_new(identity, key, json_string(text)) != 0)
        status = sgm__fail_memory(64);
    sgm__free(text);
    return status;
}

/* The handler's name and what it says of itself that results depend on: neither the processor's name nor the
 * number of threads nor what was measured. */
static char *computes_text(const sgm_handler *handler)
{
    char *all = sgm_handler_describe(handler), *rest = all, *line;
    const char *name = sgm_handler_name(handler);
    sgm__text text = {0};
    sgm__text_append(&text, "%s", name);
    while (all != NULL && (line = strtok_r(rest, "\n", &rest)) != NULL)
        if (!sgm__begins_with(line, "cpu:") && !sgm__begins_with(line, "threads:") &&
            !sgm__begins_with(line, "measured:"))
            sgm__text_append(&text, "; %s", line);
    sgm_string_free(all);
    return sgm__text_take(&text);
}

/* Data that cannot be read are no member: training will tell what is wrong with them. */
static sgm_status set_data(json_t *identity, const sgm_trainer *trainer)
{
    uint32_t checksum;
    sgm_dataset *dataset = sgm_iterator_dataset(sgm__data_of(trainer)->training);
    if (sgm__dataset_checksum(dataset, &checksum) != SGM_OK)
        return SGM_OK;
    return set_text(identity, "data", sgm__format("%08x", (unsigned)checksum));
}

/* Of all states that checkpoints have, the first 4 MiB. */
static char *parameters_text(const sgm_trainer *trainer)
{
    sgm_session *session = sgm__learner_of(trainer)->session;
    uint32_t checksum = 0;
    size_t left = MAXIMUM_SUMMED;
    const char *name;
    for (size_t i = 0; left > 0 && (name = sgm_session_state_at(session, i)) != NULL; i++) {
        if (sgm__begins_with(name, "trainer."))
            continue;
        sgm_tensor *value = sgm_session_get(session, name);
        if (value == NULL)
            return NULL;
        size_t bytes =
            (size_t)sgm_shape_elements(sgm_tensor_shape(value)) * sgm_dtype_size(sgm_tensor_dtype(value));
        bytes = bytes < left ? bytes : left;
        if (bytes > 0)
            checksum = (uint32_t)crc32_z(checksum, sgm_tensor_const_data(value), bytes);
        left -= bytes;
        sgm_tensor_free(value);
    }
    return sgm__format("%08x", (unsigned)checksum);
}

static char *network_text(const sgm_trainer *trainer)
{
    char *text = sgm_network_text(sgm__learner_of(trainer)->network);
    char *copy = text != NULL ? sgm__strdup(text) : NULL;
    sgm_string_free(text);
    return copy;
}

json_t *sgm__run_identity(sgm_trainer *trainer)
{
    const sgm__trainer_settings *settings = sgm__settings_of(trainer);
    json_t *identity = json_object();
    sgm_status status = identity != NULL ? SGM_OK : sgm__fail_memory(64);
    if (status == SGM_OK)
        status = set_text(identity, "sigma", sgm__strdup(sgm_version()));
    if (status == SGM_OK)
        status = set_text(identity, "computes", computes_text(settings->handler));
    if (status == SGM_OK)
        status = set_text(identity, "precision", sgm__strdup(sgm_dtype_name(settings->precision)));
    if (status == SGM_OK)
        status = set_text(identity, "seed", sgm__format("%llu", (unsigned long long)settings->seed));
    if (status == SGM_OK)
        status = set_text(identity, "network", network_text(trainer));
    if (status == SGM_OK)
        status =
            set_text(identity, "optimiser", sgm__strdup(sgm__learner_of(trainer)->optimiser->type->name));
    if (status == SGM_OK)
        status = set_data(identity, trainer);
    if (status == SGM_OK)
        status = set_text(identity, "parameters", parameters_text(trainer));
    if (status == SGM_OK)
        return identity;
    json_decref(identity);
    return NULL;
}

void sgm__run_identity_compare(const json_t *was, const json_t *is, const char *moment,
                               bool without_parameters, sgm__text *reasons)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const char *key = members[i].key;
        const char *old = json_string_value(json_object_get(was, key));
        const char *new = json_string_value(json_object_get(is, key));
        if (old == NULL || new == NULL || strcmp(old, new) == 0 ||
            (without_parameters && strcmp(key, "parameters") == 0))
            continue;
        sgm__text_append(reasons, "\n  %s was '%s' %s, and is '%s'", members[i].words, old, moment, new);
    }
}
