/* Fields of the data that are whole numbers of something: tokens, classes, how many steps count.
 *
 * Data is fed as floats. A layer that uses a field as indices calls sgm__layer_index, which casts it to
 * int64 and notes field, layer and largest number. The trainer hands the notes to its program
 * (sgm__network_expect_indices), which checks every minibatch before it runs: a fraction or a number out of
 * range is an error that names field and layer, where a cast would silently round. The command compares the
 * notes with the size of a tokenizer before it trains (sgm__network_index_at). */
#include "network/network_internal.h"
#include "network/rerecord.h"

#include "handlers/session.h"
#include "ops/ops.h"
#include <stdio.h>

/* 2^24: float32, in which data is fed, represents all whole numbers up to it, and not all beyond. */
#define MAXIMUM 16777216

#define IGNORE "ignore_negative"

/* The field of the data that `x` is the input of; NULL if a layer has computed `x`, which then is not
 * checked when fed. */
static const char *field_of(const sgm_network *network, sgm_value x)
{
    for (size_t i = 0; i < network->input_count; i++)
        if (network->inputs[i].value.index == x.index)
            return network->inputs[i].name;
    for (size_t i = 0; i < network->target_count; i++)
        if (network->targets[i].value.index == x.index)
            return network->targets[i].name;
    return NULL;
}

/* One entry for each pair of field and layer; a recording that is done again adds none. Layers' names are
 * compared by address, as they belong to the entries. */
static sgm_status note(sgm_network *network, const char *field, const sgm__entry *entry, int64_t maximum)
{
    const char *layer = entry->name;
    for (size_t i = 0; i < network->index_count; i++)
        if (network->indices[i].layer == layer && strcmp(network->indices[i].field, field) == 0)
            return SGM_OK;
    SGM_TRY(sgm__reserve(&network->indices, &network->index_capacity, network->index_count + 1,
                         sizeof *network->indices));
    network->indices[network->index_count++] =
        (sgm__index_use){field, layer, maximum, sgm__argument_find(entry->layer->type, IGNORE) >= 0};
    return SGM_OK;
}

sgm_value sgm__layer_index(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int64_t maximum)
{
    /* numbers above 256 would not survive bfloat16 */
    x = sgm__mixed_cast(graph, x, sgm__master_dtype(call->options));
    const char *field = field_of(call->network, x);
    if (field != NULL &&
        note(call->network, field, call->entry, maximum < MAXIMUM ? maximum : MAXIMUM) != SGM_OK)
        return sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for what is known of field '%s'", field);
    return sgm_cast(graph, x, SGM_INT64);
}

/* floor(x) == x selects the cast, otherwise a number so large that one_hot and ctc refuse it. Fractions in
 * places that do not count are therefore harmless, and in places that count they are an error when the
 * program runs. */
sgm_value sgm__layer_whole(sgm_graph *graph, sgm_value x)
{
    sgm_value whole = sgm_equal(graph, x, sgm_floor(graph, x));
    sgm_value number = sgm_cast(graph, x, SGM_INT64);
    return sgm_select(graph, whole, number, sgm_filled_like(graph, number, SGM__NO_WHOLE_NUMBER));
}

/* Tells the program of the newest recording what to check in what is fed; without a program nothing happens.
 */
sgm_status sgm__network_expect_indices(const sgm_network *network, sgm_program *program)
{
    for (size_t i = 0; program != NULL && i < network->index_count; i++) {
        const sgm__index_use *use = &network->indices[i];
        char user[SGM__MAX_NAME + 16];
        snprintf(user, sizeof user, "layer '%s'", use->layer);
        SGM_TRY(sgm__program_expect_index(program, use->field, user, 0, (double)use->maximum,
                                          use->may_ignore ? "with " IGNORE " it leaves negative ones out"
                                                          : NULL));
    }
    return SGM_OK;
}

bool sgm__network_index_at(const sgm_network *network, size_t index, const char **field, const char **layer,
                           int64_t *maximum)
{
    if (index >= network->index_count)
        return false;
    *field = network->indices[index].field;
    *layer = network->indices[index].layer;
    *maximum = network->indices[index].maximum;
    return true;
}
