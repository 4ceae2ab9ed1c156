/* positions: adds a learned vector for each place of a sequence. tied_dense(of=NAME): an embedding in the
 * other direction.
 *
 * positions is x + weights, x (batch, time, features) and weights (places, features), of which a sequence
 * that is shorter uses the rows from `first` on, with `same` this row alone, or with `segments` those that a
 * field of the data names. tied_dense is x table^T
 * with the weights of another layer, table (vocabulary, features), so that a model of language has one vector
 * for each token (Press and Wolf, 2016). */
#include "network/layers/blocks.h"

#include <stdio.h>

/* x plus the row that the data name for each step. */
static sgm_value add_segments(sgm_layer_call *call, sgm_graph *graph, sgm_value x, const char *field)
{
    sgm_shape shape = sgm_value_type(graph, x).shape;
    const int64_t places = sgm_layer_integer(call, "places");
    const sgm_shape all = sgm_shape_of(places, shape.dims[2]), example = sgm_shape_of(shape.dims[1]);
    if (places == 0 || sgm_layer_is_step(call) || sgm_layer_flag(call, "same"))
        return sgm_graph_fail(
            graph, SGM_ERROR_UNSUPPORTED,
            "positions: with segments expected a number of vectors, without `same`, and all "
            "steps at once");
    sgm_value weights = sgm_layer_parameter(call, graph, "weights", &all, 0, 0, true, "gaussian(0.02)");
    sgm_value numbers = sgm_layer_field(call, graph, field, &example);
    return sgm_add(graph, x,
                   sgm_gather(graph, weights, sgm__layer_index(call, graph, numbers, places - 1), 0));
}

/* The places of all steps in rows with several sequences, int64 (batch, time): each begins with 0. */
static sgm_value places_of_packed(const sgm_layer_call *call, sgm_graph *graph, int64_t time)
{
    const sgm_shape line = sgm_shape_of(1, time);
    return sgm_subtract(graph, sgm_iota(graph, SGM_INT64, &line, 1), call->network->starts);
}

/* The weights have a row for each step that the input declares, or `places` of them, also where single steps
 * are recorded, which gather their rows. */
static sgm_value forward_positions(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                   int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    int64_t places = sgm_layer_integer(call, "places"), first = sgm_layer_integer(call, "first");
    char text[128];
    if (shape.rank != 3)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "positions: expected a sequence (batch, time, features), got %s",
                              sgm_shape_text(&shape, text, sizeof text));
    const char *segments = sgm_layer_text(call, "segments");
    if (segments != NULL && segments[0] != '\0')
        return add_segments(call, graph, inputs[0], segments);
    bool step = sgm_layer_is_step(call), same = sgm_layer_flag(call, "same");
    int64_t steps = same ? 1 : step ? call->network->steps : shape.dims[1];
    if (places == 0)
        places = first + (!same && call->network->steps > 0 ? call->network->steps : steps);
    if (first + steps > places)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "positions: %lld steps do not fit into %lld places from place %lld on; at most "
                              "%lld do",
                              (long long)steps, (long long)places, (long long)first,
                              (long long)(places > first ? places - first : 0));
    sgm_shape all = sgm_shape_of(places, shape.dims[2]);
    sgm_value weights = sgm_layer_parameter(call, graph, "weights", &all, 0, 0, true, "gaussian(0.02)");
    if (steps < places)
        weights = sgm_slice(graph, weights, 0, first, first + steps, 1);
    if (!same && sgm_value_exists(call->network->starts))
        weights = sgm_gather(graph, weights, places_of_packed(call, graph, steps), 0);
    if (step && !same)
        weights = sgm_gather(graph, weights, sgm__layer_places(call, graph), 0);
    return sgm_add(graph, inputs[0], weights);
}

static const sgm_option positions_arguments[] = {
    {.name = "places",
     .kind = SGM_KIND_INTEGER,
     .minimum = 1,
     .maximum = 1e9,
     .doc =
         "how many vectors there are, for sequences of up to so many steps; as many as the input has steps "
         "if not given"},
    {.name = "first",
     .kind = SGM_KIND_INTEGER,
     .minimum = 0,
     .maximum = 1e9,
     .doc = "the vector of the first step, from 0; those before it are not used"},
    {.name = "same",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "every step gets the vector `first`, such as that of the only segment of a text"},
    {.name = "segments",
     .kind = SGM_KIND_TEXT,
     .doc = "the field of the data with the number of a vector for each step, such as which of two texts it "
            "is of"},
};

const sgm_layer_type sgm__layer_positions = {
    .api = SGM_LAYER_API,
    .name = "positions",
    .doc = "adds a learned vector to each position of a sequence",
    .arguments = positions_arguments,
    .argument_count = SGM__COUNT(positions_arguments),
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward_positions,
    .formula = "y[t] = x[t] + W[t]",
    .example = "positions",
};

/* The state "LAYER.weights" among the parameters that layers before this one have recorded; nothing if there
 * is none. */
static sgm_value find_weights(const sgm_layer_call *call, const char *layer)
{
    char name[2 * SGM__MAX_NAME + 16];
    snprintf(name, sizeof name, "%s.weights", layer);
    for (size_t i = 0; i < call->network->parameter_count; i++)
        if (strcmp(call->network->parameters[i].name, name) == 0)
            return call->network->parameters[i].value;
    return (sgm_value){-1};
}

/* x (..., features) times the transposed table gives (..., vocabulary), plus "biases" (vocabulary) with the
 * flag. Gradients of both uses of the table are added up, since both read one state. */
static sgm_value forward_tied(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    const char *of = sgm_layer_text(call, "of");
    sgm_value weights = find_weights(call, of);
    char a[128], b[128];
    if (!sgm_value_exists(weights))
        return sgm_graph_fail(graph, SGM_ERROR_NOT_FOUND,
                              "tied_dense: no layer '%s' with weights comes before it; give the embedding a "
                              "name: embedding(..., name=%s)",
                              of, of);
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape, table = sgm_value_type(graph, weights).shape;
    if (shape.rank < 2 || table.rank != 2 || shape.dims[shape.rank - 1] != table.dims[1])
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "tied_dense: the weights of '%s' are %s, which do not fit its input %s; their "
                              "last dimensions must be equal",
                              of, sgm_shape_text(&table, a, sizeof a), sgm_shape_text(&shape, b, sizeof b));
    weights = sgm__mixed_cast(graph, weights, sgm_layer_dtype(call));
    sgm_shape rows = sgm_shape_of(-1, table.dims[1]), line = sgm_shape_of(table.dims[0]);
    bool biased = sgm_layer_flag(call, "bias");
    /* Before the product, as in attention.c, so that product and sum fuse. */
    sgm_value biases =
        biased ? sgm_layer_parameter(call, graph, "biases", &line, 0, 0, true, "constant(0)") : weights;
    sgm_value y = sgm_matmul(graph, sgm_reshape(graph, inputs[0], &rows), sgm_transpose(graph, weights));
    if (biased)
        y = sgm_add(graph, y, biases);
    shape.dims[shape.rank - 1] = table.dims[0];
    return sgm_reshape(graph, y, &shape);
}

static const sgm_option tied_arguments[] = {
    {.name = "of",
     .kind = SGM_KIND_TEXT,
     .required = true,
     .doc = "the name of a layer before it, for example of an embedding"},
    {.name = "bias", .kind = SGM_KIND_BOOLEAN, .doc = "plus a bias of its own for each output"},
};

const sgm_layer_type sgm__layer_tied_dense = {
    .api = SGM_LAYER_API,
    .name = "tied_dense",
    .doc = "x * the transposed weights of another layer (Press and Wolf, 2016)",
    .arguments = tied_arguments,
    .argument_count = SGM__COUNT(tied_arguments),
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward_tied,
    .formula = "y = x W', with W the weights of another layer",
    .example = "tied_dense(of=tokens)",
};
