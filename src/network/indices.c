/* Sections of the data that are numbers of something: tokens, classes, how many steps count. */
#include "network/again.h"
#include "network/network_internal.h"

#include "handlers/session.h"
#include "ops/ops.h"
#include <stdio.h>

#define MOST 16777216 /* of float32, in which data is fed, all whole numbers up to it */

static const char *section_of(const sgm_network *network, sgm_value x)
{
    for (size_t i = 0; i < network->input_count; i++)
        if (network->inputs[i].value.index == x.index)
            return network->inputs[i].name;
    for (size_t i = 0; i < network->target_count; i++)
        if (network->targets[i].value.index == x.index)
            return network->targets[i].name;
    return NULL;
}

/* An entry for each section and layer; a recording that is done again has the same ones. */
static sgm_status note(sgm_network *network, const char *section, const char *layer, int64_t most)
{
    for (size_t i = 0; i < network->index_count; i++)
        if (network->indices[i].layer == layer && strcmp(network->indices[i].section, section) == 0)
            return SGM_OK;
    SGM_TRY(sgm__reserve(&network->indices, &network->index_capacity, network->index_count + 1,
                         sizeof *network->indices));
    network->indices[network->index_count++] = (sgm__index_use){section, layer, most};
    return SGM_OK;
}

sgm_value sgm__layer_index(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int64_t most)
{
    /* numbers above 256 would not survive bfloat16 */
    x = sgm__mixed_cast(graph, x, sgm__master_dtype(call->options));
    const char *section = section_of(call->network, x);
    if (section != NULL &&
        note(call->network, section, call->entry->name, most < MOST ? most : MOST) != SGM_OK)
        return sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for what is known of section '%s'",
                              section);
    return sgm_cast(graph, x, SGM_INT64);
}

sgm_value sgm__layer_whole(sgm_graph *graph, sgm_value x)
{
    sgm_value whole = sgm_equal(graph, x, sgm_floor(graph, x));
    sgm_value number = sgm_cast(graph, x, SGM_INT64);
    return sgm_select(graph, whole, number, sgm_filled_like(graph, number, SGM__NO_WHOLE_NUMBER));
}

sgm_status sgm__network_expect_indices(const sgm_network *network, sgm_program *program)
{
    for (size_t i = 0; program != NULL && i < network->index_count; i++) {
        const sgm__index_use *use = &network->indices[i];
        char user[SGM__MAX_NAME + 16];
        snprintf(user, sizeof user, "layer '%s'", use->layer);
        SGM_TRY(sgm__program_expect_index(program, use->section, user, 0, (double)use->most));
    }
    return SGM_OK;
}

bool sgm__network_index_at(const sgm_network *network, size_t index, const char **section, const char **layer,
                           int64_t *most)
{
    if (index >= network->index_count)
        return false;
    *section = network->indices[index].section;
    *layer = network->indices[index].layer;
    *most = network->indices[index].most;
    return true;
}
