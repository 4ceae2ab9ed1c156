/* States that go on from one run to the next: the index of a step, and the memories of layers.
 *
 * There are two kinds, and neither is trained. Where steps are recorded (options.step, for
 * src/infer/generator.c), every run reads one or a few steps of a sequence; the state "step.place" counts
 * them, and layers keep keys, values or hidden states of the steps before. While training, recurrent layers
 * with `streams` remember where each example ended, to go on from there with the next minibatch. The trainer
 * empties these memories at the beginning of each epoch (sgm__network_memory_at). */
#include "network/network_internal.h"

bool sgm_layer_is_step(const sgm_layer_call *call)
{
    return call->options->step;
}

/* One state for all layers together. Its name is not that of a layer, so it collides with no parameter. */
#define PLACE "step.place"

sgm_value sgm__layer_place(sgm_layer_call *call, sgm_graph *graph)
{
    const sgm_shape scalar = sgm_scalar_shape();
    call->network->places = call->network->steps;
    return sgm_state(graph, PLACE, SGM_INT64, &scalar);
}

int64_t sgm__step_count(const sgm_recording_options *options)
{
    return options->steps > 0 ? options->steps : 1;
}

sgm_value sgm__layer_places(sgm_layer_call *call, sgm_graph *graph)
{
    int64_t count = sgm__step_count(call->options);
    sgm_value first = sgm__layer_place(call, graph);
    const sgm_shape line = sgm_shape_of(count);
    return count == 1 ? first : sgm_add(graph, sgm_iota(graph, SGM_INT64, &line, 0), first);
}

bool sgm__layer_refuses_packing(const sgm_layer_call *call, sgm_graph *graph, const char *why)
{
    if (!sgm_value_exists(call->network->starts))
        return false;
    sgm_graph_fail(graph, SGM_ERROR_UNSUPPORTED,
                   "%s: it takes no rows of several sequences (starts of %s; packing): %s",
                   call->entry->layer->type->name, call->network->packed->name, why);
    return true;
}

bool sgm__layer_refuses_step(const sgm_layer_call *call, sgm_graph *graph, const char *why)
{
    if (sgm__layer_refuses_packing(call, graph, why))
        return true;
    if (!call->options->step)
        return false;
    sgm_graph_fail(graph, SGM_ERROR_UNSUPPORTED, "%s: sequences cannot be read step by step: %s",
                   call->entry->layer->type->name, why);
    return true;
}

void sgm__network_next_place(sgm_graph *graph, int64_t steps)
{
    const sgm_shape scalar = sgm_scalar_shape();
    sgm_value place = sgm_state(graph, PLACE, SGM_INT64, &scalar);
    sgm_assign(graph, place, sgm_add(graph, place, sgm_number(graph, (double)steps)));
}

/* Adds the state's name to the network's memories, once. The list is never cleared: a recording to predict
 * does not have the memories of training, which the trainer still has to empty. */
static sgm_status note(sgm_network *network, const char *layer, const char *name)
{
    char *full = sgm__format("%s.%s", layer, name);
    if (full == NULL)
        return SGM_ERROR_MEMORY;
    bool known = false;
    for (size_t i = 0; i < network->memory_count && !known; i++)
        known = strcmp(network->memories[i], full) == 0;
    sgm_status status = known ? SGM_OK
                              : sgm__reserve(&network->memories, &network->memory_capacity,
                                             network->memory_count + 1, sizeof *network->memories);
    if (status == SGM_OK && !known)
        network->memories[network->memory_count++] = full;
    else
        sgm__free(full);
    return status;
}

sgm_value sgm__layer_memory(sgm_layer_call *call, sgm_graph *graph, const char *name, const sgm_shape *shape)
{
    if (note(call->network, call->entry->name, name) != SGM_OK)
        return sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for what is remembered");
    return sgm_layer_parameter(call, graph, name, shape, 0, 0, false, "constant(0)");
}

/* The name of a memory, NULL past the last one. */
const char *sgm__network_memory_at(const sgm_network *network, size_t index)
{
    return index < network->memory_count ? network->memories[index] : NULL;
}
