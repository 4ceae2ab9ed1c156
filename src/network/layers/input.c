/* input(28, 28): a field of the data, named like the layer, or "inputs" if the layer has no name.
 *
 * The value is (batch, shape...). With lengths=FIELD the data also tells how many steps of each example
 * count; the lengths travel with the value through the layers (lengths_after in src/network/record.c). With
 * starts=FIELD several sequences stand in a row. */
#include "network/network_internal.h"

/* The lengths as int64 (batch). They are looked up among 0 to the number of steps, so another number is an
 * error at run time also where the field is not checked when it is fed. */
static sgm_value read_lengths(sgm_layer_call *call, sgm_graph *graph, const char *field,
                              const sgm_shape *example)
{
    const sgm_shape one = sgm_scalar_shape(), numbers = sgm_shape_of(example->dims[0] + 1);
    sgm_value given = sgm_layer_field(call, graph, field, &one);
    given = sgm__layer_index(call, graph, given, example->dims[0]);
    return sgm_gather(graph, sgm_iota(graph, SGM_INT64, &numbers, 0), given, 0);
}

/* Where the sequence of each step began, as int64 (batch, time), for all layers from here on. Predictions
 * have one sequence in a row, so it is read for costs alone. */
static sgm_status read_starts(sgm_layer_call *call, sgm_graph *graph, const char *field,
                              const sgm_shape *example)
{
    sgm_network *network = call->network;
    const sgm_shape steps = sgm_shape_of(example->rank > 0 ? example->dims[0] : 1);
    if (!call->options->training && !call->options->costs)
        return SGM_OK;
    if (network->packed != NULL && network->packed != call->entry)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "input: starts are of one input, and %s has some already",
                        network->packed->name);
    network->packed = call->entry;
    network->starts =
        sgm__layer_index(call, graph, sgm_layer_field(call, graph, field, &steps), steps.dims[0] - 1);
    return SGM_OK;
}

/* Makes `example` the steps of it that come in at a run. Its declared steps become the most that layers with
 * places can take, so all inputs must declare as many; an example that is one number has none. */
static sgm_status take_step(const sgm_layer_call *call, sgm_shape *example)
{
    sgm_network *network = call->network;
    int64_t steps = example->dims[0], wanted = sgm__step_count(call->options);
    if (example->rank == 0)
        return SGM_OK;
    if (network->steps > 0 && network->steps != steps)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "input: one step at a time is read of sequences of one length: this one declares %lld "
            "steps, an input before it %lld",
            (long long)steps, (long long)network->steps);
    if (wanted > steps)
        return sgm_fail(SGM_ERROR_ARGUMENT, "input: %lld steps at a time are wanted of sequences of %lld",
                        (long long)wanted, (long long)steps);
    network->steps = steps;
    example->dims[0] = wanted;
    return SGM_OK;
}

/* Cuts `example` to the steps that are wanted; layers with a parameter for each place find how many were
 * declared in the network. */
static sgm_status take_steps(sgm_layer_call *call, sgm_shape *example)
{
    int64_t steps = call->options->steps, declared = example->dims[0];
    if (steps == 0 || steps == declared)
        return SGM_OK;
    if (steps < 0 || steps > declared || call->options->training)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "input: %lld steps are wanted of sequences of %lld; fewer can be predicted",
                        (long long)steps, (long long)declared);
    call->network->steps = declared;
    example->dims[0] = steps;
    return SGM_OK;
}

/* Where steps are recorded, each run feeds those that come next. All steps that are fed count, so lengths are
 * not read. */
static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)inputs;
    (void)count;
    sgm_shape example = sgm_layer_shape(call, "shape");
    bool named = call->entry->layer->name != NULL;
    const char *lengths = sgm_layer_text(call, "lengths");
    if (sgm_layer_is_step(call)) {
        if (take_step(call, &example) != SGM_OK)
            return sgm__record_fail(graph);
    } else if (lengths != NULL) {
        if (take_steps(call, &example) != SGM_OK)
            return sgm__record_fail(graph);
        sgm__layer_set_lengths(call, read_lengths(call, graph, lengths, &example));
    }
    const char *starts = sgm_layer_text(call, "starts");
    if (starts != NULL && !sgm_layer_is_step(call) && read_starts(call, graph, starts, &example) != SGM_OK)
        return sgm__record_fail(graph);
    return sgm_layer_field(call, graph, named ? sgm_layer_name(call) : "inputs", &example);
}

static const sgm_option arguments[] = {
    {.name = "shape",
     .kind = SGM_KIND_INTEGER,
     .list = true,
     .required = true,
     .minimum = 1,
     .maximum = 1e9,
     .doc = "the dimensions of one example, without the batch"},
    {.name = "lengths",
     .kind = SGM_KIND_TEXT,
     .doc = "the field of the data with one number for each example, how many of its steps, the first "
            "dimension, count; those behind are not seen"},
    {.name = "starts",
     .kind = SGM_KIND_TEXT,
     .doc =
         "the field of the data with one number for each step of a row in which several sequences stand: the "
         "step that its sequence began with; attention sees none before, and places count from there"},
};

const char *sgm__network_sequence(const sgm_network *network, size_t layer, sgm_shape *declared)
{
    const sgm__entry *entry = &network->entries[layer];
    if (entry->layer->type != &sgm__layer_input)
        return NULL;
    const sgm__argument_value *values = sgm__entry_arguments(entry); /* in the order of the table */
    *declared = values[0].shape;
    if (!values[1].given || values[1].text == NULL)
        return NULL;
    return entry->layer->name != NULL ? entry->name : "inputs";
}

const sgm_layer_type sgm__layer_input = {
    .api = SGM_LAYER_API,
    .name = "input",
    .doc = "examples of the data: the field of the layer's name, or \"inputs\" if it has none",
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .min_inputs = 0,
    .max_inputs = 0,
    .forward = forward,
    .formula = "x as the data give it",
    .example = "input(28, 28)",
};
