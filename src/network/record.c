/* Recording: the layers of a network, one after the other, into a graph.
 *
 * sgm_network_record resets the network's lists, calls `forward` of each entry in order with the values of
 * its inputs, reduces costs to one number each, adds them up times their importance, and then records the
 * outputs with the costs' `predict`. Each layer records under its name as label, so messages and profiles
 * name it. Before each layer the lengths of all lists are marked; rerecord.c goes back to these marks.
 * Recording is cheap, since nothing is computed: the trainer compiles the graph afterwards
 * (src/train/trainer_program.c) and records again for each batch size and purpose. */
#include "network/network_internal.h"

/* The argument "importance" of a cost; a cost from a program may have none, which counts as 1. */
static double importance_of(const sgm__entry *entry)
{
    const sgm_layer *layer = entry->layer;
    int32_t index = sgm__argument_find(layer->type, "importance");
    if (index < 0 || layer->type->arguments[index].kind != SGM_KIND_NUMBER)
        return 1;
    const sgm__argument_value *value = &sgm__entry_arguments(entry)[index];
    return value->given ? value->number : layer->type->arguments[index].default_value;
}

/* One number from what a cost layer gives: (batch, ...) is summed over all axes but the first, then averaged
 * over the examples; a value of rank 0 is taken as it is, which is how a cost defines its own reduction. */
static sgm_value reduce_cost(sgm_graph *graph, sgm_value cost, int64_t batch)
{
    sgm_shape shape = sgm_value_type(graph, cost).shape;
    if (!sgm_value_exists(cost) || shape.rank == 0)
        return cost;
    if (shape.dims[0] != batch) {
        char text[128];
        return sgm_graph_fail(
            graph, SGM_ERROR_SHAPE,
            "a cost must be one number or begin with the batch of %lld examples, but it is %s",
            (long long)batch, sgm_shape_text(&shape, text, sizeof text));
    }
    int32_t axes[SGM_MAX_RANK];
    for (int32_t i = 1; i < shape.rank; i++)
        axes[i - 1] = i;
    if (shape.rank > 1)
        cost = sgm_reduce_sum(graph, cost, axes, shape.rank - 1, false);
    return sgm_mean(graph, cost);
}

/* The values of the entry's inputs in the layer's type. Up to 8 fit the caller's array `few`; for more,
 * *inputs is allocated, and the caller frees it if it is not `few`. */
static sgm_status gather_inputs(const sgm_layer_call *call, sgm_value *few, sgm_value **inputs)
{
    const sgm_network *network = call->network;
    const sgm__entry *entry = call->entry;
    *inputs = few;
    if (entry->input_count > 8 &&
        (*inputs = sgm__calloc((size_t)entry->input_count, sizeof(sgm_value))) == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < entry->input_count; i++)
        (*inputs)[i] = sgm__mixed_cast(call->graph, network->values[network->slots[entry->first_input + i]],
                                       sgm_layer_dtype(call));
    return SGM_OK;
}

/* Calls the type's `forward`. A layer that returns nothing without a failure of its own gets one here. */
static sgm_value run_forward(sgm_layer_call *call)
{
    sgm_value few[8], *inputs;
    if (gather_inputs(call, few, &inputs) != SGM_OK)
        return sgm__record_fail(call->graph);
    sgm_value value = call->entry->layer->type->forward(call, call->graph, inputs, call->entry->input_count);
    if (inputs != few)
        sgm__free(inputs);
    if (!sgm_value_exists(value))
        return sgm_graph_fail(call->graph, SGM_ERROR_STATE, "its forward function of type '%s' gave no value",
                              call->entry->layer->type->name);
    return value;
}

/* The lengths of the first input that has some, int64 (batch); nothing if all steps of all inputs count. */
static sgm_value lengths_of_inputs(const sgm_network *network, const sgm__entry *entry)
{
    sgm_value lengths = {-1};
    for (int32_t i = 0; i < entry->input_count && !sgm_value_exists(lengths); i++)
        lengths = network->lengths[network->slots[entry->first_input + i]];
    return lengths;
}

/* The lengths that a layer's result has. They go on if the result (batch, steps, ...) has as many steps as
 * the first input and is a sequence still: a value of rank 2 has steps only where the input's rank was 2
 * already (numbers of tokens). A layer that has set lengths itself is taken at its word. */
static sgm_value lengths_after(const sgm_layer_call *call, sgm_value value)
{
    const sgm__entry *entry = call->entry;
    if (call->other_lengths || !sgm_value_exists(call->lengths) || entry->input_count == 0)
        return call->lengths;
    sgm_value input = call->network->values[call->network->slots[entry->first_input]];
    sgm_shape before = sgm_value_type(call->graph, input).shape,
              after = sgm_value_type(call->graph, value).shape;
    bool sequence = before.rank >= 2 && (after.rank >= 3 || (after.rank == 2 && before.rank == 2));
    return sequence && before.dims[1] == after.dims[1] ? call->lengths : (sgm_value){-1};
}

/* Opens the layer's label in the graph; the caller closes it with sgm_graph_pop_label. */
static sgm_layer_call begin(sgm_network *network, sgm_graph *graph, const sgm_recording_options *options,
                            int32_t entry)
{
    sgm_graph_push_label(graph, network->entries[entry].name);
    return (sgm_layer_call){.network = network,
                            .entry = &network->entries[entry],
                            .graph = graph,
                            .options = options,
                            .first_parameter = network->parameter_count,
                            .count = {-1},
                            .lengths = lengths_of_inputs(network, &network->entries[entry])};
}

/* Records one entry. Costs are left out unless they are wanted. A cost has no lengths, and `part` of its
 * named value is what it adds to the cost of the whole minibatch if workers share one. */
sgm_status sgm__network_record_layer(sgm_network *network, sgm_graph *graph,
                                     const sgm_recording_options *options, int32_t entry, sgm_value *total)
{
    bool cost = sgm__entry_is_cost(&network->entries[entry]);
    if (cost && !options->training && !options->costs)
        return SGM_OK;
    sgm_layer_call call = begin(network, graph, options, entry);
    sgm_value value = run_forward(&call);
    sgm__layer_check_share(&call, graph);
    if (cost)
        value = reduce_cost(graph, value, options->batch);
    network->values[entry] = value;
    network->lengths[entry] = !cost ? lengths_after(&call, value) : (sgm_value){-1};
    if (cost) {
        double importance = importance_of(call.entry);
        sgm_value weighted =
            importance == 1 ? value : sgm_multiply(graph, value, sgm_live_number(graph, importance));
        *total = network->cost_count == 0 ? weighted : sgm_add(graph, *total, weighted);
        sgm_named_value named = {call.entry->name, value, importance,
                                 options->part ? sgm__part_of_cost(&call, value) : value};
        if (sgm__network_add_named(network, &network->costs, &network->cost_count, &network->cost_capacity,
                                   named) != SGM_OK)
            sgm__record_fail(graph);
    }
    sgm_graph_pop_label(graph);
    return sgm_graph_status(graph);
}

/* The values that predicting returns, in the master type. A cost with `predict` turns the logits that it
 * judges into probabilities, also where the cost itself is not recorded; its label is open meanwhile. */
static sgm_status record_outputs(sgm_network *network, sgm_graph *graph, const sgm_recording_options *options)
{
    for (size_t i = 0; i < network->output_count; i++) {
        const sgm__network_output *output = &network->outputs[i];
        sgm_value value =
            sgm__mixed_cast(graph, network->values[output->producer], sgm__master_dtype(options));
        if (output->cost >= 0) {
            sgm_layer_call call = begin(network, graph, options, output->cost);
            value = call.entry->layer->type->predict(&call, graph, value);
            sgm_graph_pop_label(graph);
        }
        SGM_TRY(sgm_graph_status(graph));
        sgm_named_value named = {.name = network->entries[output->producer].name, .value = value};
        SGM_TRY(sgm__network_add_named(network, &network->predictions, &network->prediction_count,
                                       &network->prediction_capacity, named));
    }
    return SGM_OK;
}

/* The first cost in the order of recording says whether outputs and targets have an accuracy, and whether
 * there are standard deviations among the outputs. */
static bool first_cost_has(const sgm_network *network, unsigned flag)
{
    for (size_t i = 0; i < network->order_count; i++) {
        uint32_t flags = network->entries[network->order[i]].layer->type->flags;
        if ((flags & SGM_LAYER_COST) != 0)
            return (flags & flag) != 0;
    }
    return false;
}

/* Whether the first cost leaves negative targets out. */
static bool first_cost_ignores(const sgm_network *network)
{
    for (size_t i = 0; i < network->order_count; i++) {
        const sgm__entry *entry = &network->entries[network->order[i]];
        if (!sgm__entry_is_cost(entry))
            continue;
        int32_t index = sgm__argument_find(entry->layer->type, "ignore_negative");
        return index >= 0 && sgm__entry_arguments(entry)[index].integer != 0;
    }
    return false;
}

/* The lengths of the first output, which is the one that accuracies are measured of. */
static sgm_value lengths_of_output(const sgm_network *network)
{
    return network->output_count > 0 ? network->lengths[network->outputs[0].producer] : (sgm_value){-1};
}

sgm__layer_mark sgm__network_mark(const sgm_network *network, const sgm_graph *graph, sgm_value total)
{
    return (sgm__layer_mark){.graph = sgm__graph_mark_now(graph),
                             .parameter_count = network->parameter_count,
                             .input_count = network->input_count,
                             .target_count = network->target_count,
                             .cost_count = network->cost_count,
                             .string_count = network->string_next,
                             .index_count = network->index_count,
                             .rotation_count = network->rotation_count,
                             .streams = network->streams,
                             .total = total};
}

/* Keeps what rerecord.c needs to compare the next recording with this one. It is kept only for networks with
 * dynamic layers, and neither for averaged parameters nor if a cost is dynamic: rerecord.c re-records
 * `forward` of dynamic layers but not `predict` of dynamic costs, so a difference there would be missed. */
static void note_newest(sgm_network *network, const sgm_graph *graph, const sgm_recording_options *options,
                        const sgm_recording *recording)
{
    bool fit = network->dynamic && (options->prefix == NULL || *options->prefix == '\0');
    for (size_t i = 0; i < network->entry_count && fit; i++)
        fit = !sgm__entry_is_cost(&network->entries[i]) ||
              (network->entries[i].layer->type->flags & SGM_LAYER_DYNAMIC) == 0;
    network->newest = (sgm__newest){.graph = fit ? graph : NULL,
                                    .serial = graph->serial,
                                    .batch = options->batch,
                                    .dtype = options->dtype,
                                    .training = options->training,
                                    .costs = options->costs,
                                    .part = options->part,
                                    .step = options->step,
                                    .steps = options->steps,
                                    .recording = *recording};
}

const sgm_parameter *sgm__network_parameter(const sgm_network *network, const char *name)
{
    uintptr_t place;
    bool known = network != NULL && sgm__name_index_find(&network->parameter_index, name, &place);
    return known ? &network->parameters[place] : NULL;
}

static const sgm_parameter *part_of_matrix(const sgm_network *network, const char *matrix, const char *suffix)
{
    char name[3 * SGM__MAX_NAME + 32];
    snprintf(name, sizeof name, "%s%s", matrix, suffix);
    const sgm_parameter *found = sgm__network_parameter(network, name);
    return found != NULL && found->quantizes != NULL ? found : NULL;
}

const sgm_parameter *sgm__network_codes(const sgm_network *network, const char *matrix)
{
    return part_of_matrix(network, matrix, SGM__CODES_SUFFIX);
}

const sgm_parameter *sgm__network_scales(const sgm_network *network, const char *matrix)
{
    return part_of_matrix(network, matrix, SGM__SCALES_SUFFIX);
}

/* An index from names to parameters, since the trainer looks up each state of large networks by name. */
static sgm_status index_parameters(sgm_network *network)
{
    sgm__name_index_clear(&network->parameter_index);
    SGM_TRY(sgm__name_index_reserve(&network->parameter_index, network->parameter_count));
    for (size_t i = 0; i < network->parameter_count; i++)
        sgm__name_index_add(&network->parameter_index, network->parameters[i].name, i);
    return SGM_OK;
}

/* Everything from place `first` of the order on. The marks and the newest recording are written as it goes
 * on; if it fails, there is no newest recording. While training in parts, the total for gradients is that of
 * the parts. */
sgm_status sgm__network_record_from(sgm_network *network, sgm_graph *graph,
                                    const sgm_recording_options *options, size_t first, sgm_value *total,
                                    sgm_recording *recording)
{
    network->newest.graph = NULL;
    network->prediction_count = 0;
    for (size_t i = first; i < network->order_count; i++) {
        network->marks[i] = sgm__network_mark(network, graph, *total);
        SGM_TRY(sgm__network_record_layer(network, graph, options, network->order[i], total));
    }
    network->marks[network->order_count] = sgm__network_mark(network, graph, *total);
    SGM_TRY(record_outputs(network, graph, options));
    SGM_TRY(index_parameters(network));
    sgm_value part = options->part ? sgm__part_of_costs(graph, network->costs, network->cost_count) : *total;
    if (options->step)
        sgm__network_next_place(graph, sgm__step_count(options));
    *recording = (sgm_recording){.inputs = network->inputs,
                                 .targets = network->targets,
                                 .input_count = network->input_count,
                                 .target_count = network->target_count,
                                 .outputs = network->predictions,
                                 .output_count = network->prediction_count,
                                 .costs = network->costs,
                                 .cost_count = network->cost_count,
                                 .total = *total,
                                 .part = part,
                                 .parameters = network->parameters,
                                 .parameter_count = network->parameter_count,
                                 .classifies = first_cost_has(network, SGM_LAYER_CLASSIFIES),
                                 .deviates = first_cost_has(network, SGM_LAYER_DEVIATIONS),
                                 .lengths = lengths_of_output(network),
                                 .ignores = first_cost_ignores(network),
                                 .places = network->places,
                                 .random = network->streams > 0};
    note_newest(network, graph, options, recording);
    return SGM_OK;
}

/* Whatever a program may have set wrongly; the graph may not have failed before. */
static sgm_status check_options(const sgm_network *network, const sgm_graph *graph,
                                const sgm_recording_options *options, const sgm_recording *recording)
{
    if (network == NULL || graph == NULL || recording == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "recording needs a network, a graph and a place for its result");
    if (options->batch < 1)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a batch has at least 1 example, not %lld",
                        (long long)options->batch);
    if (options->step && (options->training || options->costs))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "steps are recorded to predict, not to train or to measure costs");
    if (!sgm_dtype_is_float(options->dtype))
        return sgm_fail(SGM_ERROR_TYPE, "networks are recorded in float32, float64 or bfloat16, not %s",
                        sgm_dtype_name(options->dtype));
    return sgm_graph_status(graph);
}

/* Records everything from the beginning. The counts of all lists go back to 0, which also makes an older
 * recording invalid. */
sgm_status sgm_network_record(sgm_network *network, sgm_graph *graph, const sgm_recording_options *given,
                              sgm_recording *recording)
{
    sgm_recording_options copy;
    const sgm_recording_options *options = &copy;
    SGM_TRY(sgm__options_read(&copy, sizeof copy, given, "sgm_network_record"));
    SGM_TRY(check_options(network, graph, options, recording));
    network->string_next = network->parameter_count = network->input_count = 0;
    network->target_count = network->cost_count = network->index_count = network->rotation_count = 0;
    network->streams = network->steps = network->places = 0;
    network->starts = (sgm_value){-1};
    network->packed = NULL;
    network->compares = false;
    sgm__adapters_begin(network);
    sgm_value total = {-1};
    SGM_TRY(sgm__network_record_from(network, graph, options, 0, &total, recording));
    return sgm__adapters_check(network);
}
