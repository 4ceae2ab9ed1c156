/* Recording a network again: only dynamic layers are asked, and what they record and tell is compared.
 *
 * A layer that is not dynamic records the same as before as long as its inputs are the same, so it is not
 * called at all. For a dynamic one the graph and the network's lists go back to the mark before it, with
 * everything behind kept; its `forward` runs, and the graph (src/graph/rerecord.c) and the lists
 * (layer_call.c) compare each thing with the one kept in its place. If all dynamic layers record the same,
 * the graph goes forward to its end again and the old program serves. At the first difference everything
 * behind is dropped, and recording goes on as usual from there. src/train/trainer_program.c calls this
 * before each iteration of a dynamic network. */
#include "network/network_internal.h"

static bool is_dynamic(const sgm_network *network, size_t place)
{
    return (network->entries[network->order[place]].layer->type->flags & SGM_LAYER_DYNAMIC) != 0;
}

/* Whether the newest recording is of this graph, unchanged since, with the same options. Averaged parameters
 * are never compared (note_newest in record.c). */
static bool fits(const sgm_network *network, const sgm_graph *graph, const sgm_recording_options *options)
{
    const sgm__newest *newest = &network->newest;
    return newest->graph == graph && newest->serial == graph->serial && newest->batch == options->batch &&
           newest->dtype == options->dtype && newest->training == options->training &&
           newest->costs == options->costs && newest->part == options->part &&
           newest->step == options->step && newest->steps == options->steps &&
           (options->prefix == NULL || *options->prefix == '\0');
}

/* Sets the graph and all lists of the network to a mark, backwards or forwards. */
static void go_to(sgm_network *network, sgm_graph *graph, const sgm__layer_mark *mark)
{
    sgm__graph_go_to(graph, &mark->graph);
    network->parameter_count = mark->parameter_count;
    network->input_count = mark->input_count;
    network->target_count = mark->target_count;
    network->cost_count = mark->cost_count;
    network->string_next = mark->string_count;
    network->index_count = mark->index_count;
    network->rotation_count = mark->rotation_count;
    network->streams = mark->streams;
}

/* Whether two marks have the same lengths of all lists; their contents were compared one by one before. */
static bool marks_equal(const sgm__layer_mark *a, const sgm__layer_mark *b)
{
    return sgm__graph_marks_equal(&a->graph, &b->graph) && a->parameter_count == b->parameter_count &&
           a->input_count == b->input_count && a->target_count == b->target_count &&
           a->cost_count == b->cost_count && a->string_count == b->string_count &&
           a->index_count == b->index_count && a->rotation_count == b->rotation_count &&
           a->streams == b->streams && a->total.index == b->total.index;
}

/* Records the layer at a place of the order. *same becomes true if the layer has recorded the same
 * instructions, told the same parameters, fields and costs, and given the same value and lengths as before,
 * no less and no more. */
static sgm_status rerecord_layer(sgm_network *network, sgm_graph *graph, const sgm_recording_options *options,
                                 size_t place, sgm_value *total, bool *same)
{
    int32_t entry = network->order[place];
    sgm_value before = network->values[entry], lengths = network->lengths[entry];
    go_to(network, graph, &network->marks[place]);
    *total = network->marks[place].total;
    network->compares = true;
    network->differs = false;
    sgm_status status = sgm__network_record_layer(network, graph, options, entry, total);
    network->compares = false;
    SGM_TRY(status);
    sgm__layer_mark now = sgm__network_mark(network, graph, *total);
    *same = graph->compares && !network->differs && network->values[entry].index == before.index &&
            network->lengths[entry].index == lengths.index && marks_equal(&now, &network->marks[place + 1]);
    return SGM_OK;
}

/* Without a newest recording that fits, or if the graph cannot compare, everything is recorded anew.
 * `newest.graph` is NULL in between, so that a failure leaves nothing that a later call would compare with.
 */
sgm_status sgm__network_rerecord(sgm_network *network, sgm_graph *graph, const sgm_recording_options *options,
                                 sgm_recording *recording, bool *same)
{
    *same = false;
    if (!fits(network, graph, options) || !sgm__graph_compare(graph)) {
        sgm_graph_clear(graph);
        return sgm_network_record(network, graph, options, recording);
    }
    network->newest.graph = NULL; /* until this has gone well */
    for (size_t i = 0; i < network->order_count; i++) {
        sgm_value total;
        bool equal = false;
        if (!is_dynamic(network, i))
            continue;
        SGM_TRY(rerecord_layer(network, graph, options, i, &total, &equal));
        if (equal)
            continue;
        sgm__graph_drop_kept(graph);
        return sgm__network_record_from(network, graph, options, i + 1, &total, recording);
    }
    go_to(network, graph, &network->marks[network->order_count]);
    sgm__graph_restore(graph);
    network->newest.graph = graph;
    *recording = network->newest.recording;
    *same = true;
    return SGM_OK;
}
