/* input(28, 28): a section of the data; its name's, or "inputs". */
#include "network/network_internal.h"

/* Looked up among 0 to the number of steps, so that another number is an error at run time. */
static sgm_value read_lengths(sgm_layer_call *call, sgm_graph *graph, const char *section,
                              const sgm_shape *record)
{
    const sgm_shape one = sgm_shape_scalar(), numbers = sgm_shape_of(record->dims[0] + 1);
    sgm_value given = sgm_layer_section(call, graph, section, &one);
    given = sgm__layer_index(call, graph, given, record->dims[0]);
    return sgm_gather(graph, sgm_iota(graph, SGM_INT64, &numbers, 0), given, 0);
}

static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)inputs;
    (void)count;
    sgm_shape record = sgm_layer_shape(call, "shape");
    bool named = call->entry->layer->name != NULL;
    const char *lengths = sgm_layer_text(call, "lengths");
    if (sgm_layer_is_step(call)) { /* each has one; a record that is one number has no steps */
        call->network->steps = record.rank > 0 ? record.dims[0] : 0;
        record.dims[0] = record.rank > 0;
    } else if (lengths != NULL) {
        sgm__layer_set_lengths(call, read_lengths(call, graph, lengths, &record));
    }
    return sgm_layer_section(call, graph, named ? sgm_layer_name(call) : "inputs", &record);
}

static const sgm_argument arguments[] = {
    {.name = "shape",
     .kind = SGM_ARGUMENT_SHAPE,
     .required = true,
     .least = 1,
     .most = 1e9,
     .doc = "the dimensions of one record, without the batch"},
    {.name = "lengths",
     .kind = SGM_ARGUMENT_TEXT,
     .doc = "the section of the data with one number for each record, how many of its steps, the first "
            "dimension, count; those behind are not seen"},
};

const sgm_layer_type sgm__layer_input = {
    .api = SGM_LAYER_API,
    .name = "input",
    .doc = "records of the data: the section of the layer's name, or \"inputs\" if it has none",
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .min_inputs = 0,
    .max_inputs = 0,
    .forward = forward,
};
