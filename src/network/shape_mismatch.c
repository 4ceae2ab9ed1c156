/* The error for examples of the data that do not fit a network: which layer wants them otherwise, and what
 * would fit.
 *
 * The trainer (src/train/trainer_step.c) and the command (cli/config/experiment.c) call
 * sgm__network_shape_mismatch when a field's examples have another shape than the recording's input. The
 * advice distinguishes inputs, targets that are classes in one form where the cost takes the other, and
 * targets that should have the shape of a prediction. All shapes are of one example, without the batch. */
#include "network/network_internal.h"

#include "graph/graph_internal.h"
#include <stdio.h>

#define SHAPE_TEXT 128
#define ADVICE 400

/* The layer that asked for a field first, found by the label of the graph's input; NULL if there is none. */
static const sgm__entry *asks_for(const sgm_network *network, const sgm_graph *graph, const char *field)
{
    const char *label = "";
    for (size_t i = 0; i < graph->source_count; i++) {
        sgm_value value = {graph->sources[i]};
        if (sgm_value_op(graph, value) == &sgm__op_input && strcmp(sgm_value_name(graph, value), field) == 0)
            label = sgm_value_label(graph, value);
    }
    for (size_t i = 0; i < network->entry_count; i++)
        if (strcmp(network->entries[i].name, label) == 0)
            return &network->entries[i];
    return NULL;
}

/* Costs of classes have the flags "classes" and "shares" (layers/costs.h); a type from a program may have
 * both, too. */
static bool takes_classes(const sgm_layer_type *type)
{
    return sgm__argument_find(type, "classes") >= 0 && sgm__argument_find(type, "shares") >= 0;
}

/* The data has one dimension more than is wanted: a share for each class, such as one-hot, in the place of
 * each number. */
static bool are_shares(const sgm_shape *there, const sgm_shape *wanted)
{
    return there->rank == wanted->rank + 1 &&
           memcmp(there->dims, wanted->dims, (size_t)wanted->rank * sizeof *wanted->dims) == 0;
}

/* Targets are shares where the cost wants numbers of classes, or the other way round; writes the flag of the
 * cost that would take them. False: neither is the case, nothing is written. */
static bool advise_classes(const char *cost, const sgm_shape *there, const sgm_shape *wanted, char *advice)
{
    bool shares = are_shares(there, wanted);
    bool numbers = sgm_shape_elements(there) == 1 && wanted->rank == 1 && wanted->dims[0] > 1;
    if (shares)
        snprintf(advice, ADVICE, ": a share for each class fits %s(shares)", cost);
    else if (numbers)
        snprintf(
            advice, ADVICE,
            ": numbers of classes fit %s(classes), or become one-hot by 'classes' of the data in a file, "
            "by sgm_one_hot in C",
            cost);
    return shares || numbers;
}

/* Whether both are pictures of as many channels, (3, 36, 40) and (3, 32, 32). */
static bool are_pictures(const sgm_shape *there, const sgm_shape *wanted)
{
    return there->rank == 3 && wanted->rank == 3 && there->dims[0] == wanted->dims[0] &&
           (there->dims[0] == 1 || there->dims[0] == 3);
}

/* A shape for a message; rank 0 reads as "one number". */
static const char *shape_words(const sgm_shape *shape, char *buffer)
{
    return shape->rank == 0 ? "one number" : sgm_shape_text(shape, buffer, SHAPE_TEXT);
}

/* Whether what a layer gave in the newest recording has examples of that shape. */
static bool gives(const sgm_network *network, const sgm_graph *graph, int32_t layer, const sgm_shape *example)
{
    sgm_shape whole = sgm_value_type(graph, network->values[layer]).shape;
    sgm_shape own = sgm_shape_create(whole.rank > 0 ? whole.rank - 1 : 0, whole.dims + 1);
    return whole.rank > 0 && sgm_shape_equal(&own, example);
}

/* Writes what would help into `advice`, which stays "" if nothing is known. The first input of a cost is its
 * prediction. */
static void advise(const sgm_network *network, const sgm_graph *graph, const sgm__entry *entry,
                   const sgm_shape *there, const sgm_shape *wanted, char *advice)
{
    const sgm_layer_type *type = entry->layer->type;
    char shape[SHAPE_TEXT];
    const char *words = shape_words(there, shape);
    if ((type->flags & SGM_LAYER_COST) == 0) {
        if (wanted->rank > 0) /* none are lengths; one number fits input(1) */
            snprintf(advice, ADVICE, ": let it have the shape %s, or take other columns of the data%s",
                     there->rank > 0 ? words : "(1,)",
                     are_pictures(there, wanted) ? "; of pictures, 'size' scales them"
                     : are_shares(there, wanted) ? "; of a text, 'text: FILE' gives numbers in their place"
                                                 : "");
        return;
    }
    if (takes_classes(type) && advise_classes(type->name, there, wanted, advice))
        return;
    int32_t before = network->slots[entry->first_input];
    const char *name = network->entries[before].name;
    if (gives(network, graph, before, wanted))
        snprintf(
            advice, ADVICE,
            ": it compares them with what '%s' gives; let that give %s, or take other columns of the data",
            name, words);
    else if (takes_classes(type))
        snprintf(advice, ADVICE, ": a number of a class for each place of what '%s' gives", name);
}

sgm_status sgm__network_shape_mismatch(const sgm_network *network, const sgm_graph *graph, const char *field,
                                       const sgm_shape *there, const sgm_shape *wanted)
{
    char advice[ADVICE] = "", have[SHAPE_TEXT], want[SHAPE_TEXT];
    const sgm__entry *entry = asks_for(network, graph, field);
    if (entry != NULL)
        advise(network, graph, entry, there, wanted, advice);
    return sgm_fail(SGM_ERROR_SHAPE, "field '%s' has examples of the shape %s, layer '%s' wants %s%s", field,
                    sgm_shape_text(there, have, sizeof have), entry != NULL ? entry->name : "",
                    shape_words(wanted, want), advice);
}
