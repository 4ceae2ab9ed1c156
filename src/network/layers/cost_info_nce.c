/* info_nce: each example finds its like among those of the whole minibatch (van den Oord et al., 2018,
 * equation 4, with cosines as Chen et al., 2020, have them).
 *
 * Something a, its like p, and others that are like nothing here, n, belong together. With the cosines s of
 * a_i with all p and all n of the minibatch, divided by the temperature, the cost of i is -log softmax(s)_i:
 * the likes of the other examples are what it must not choose. Either every example has these rows (batch,
 * rows, features), or `group` examples in a row are a, p and n, (batch, features). */
#include "network/layers/blocks.h"
#include "network/layers/costs.h"
#include "network/network_internal.h"

/* (examples, rows, features) to (examples), the cost of each. */
static sgm_value cost_of(const sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    sgm_shape shape = sgm_value_type(graph, x).shape;
    const int64_t examples = shape.dims[0], rows = shape.dims[1], features = shape.dims[2];
    const sgm_shape one = sgm_shape_of(examples, features),
                    all = sgm_shape_of((rows - 1) * examples, features), numbers = sgm_shape_of(examples);
    x = sgm__layer_normalise_length(graph, x);
    sgm_value anchors = sgm_reshape(graph, sgm_slice(graph, x, 1, 0, 1, 1), &one);
    /* The likes of all examples come first, so that the one of example i is in place i. */
    sgm_value others = sgm_permute(graph, sgm_slice(graph, x, 1, 1, rows, 1), (const int32_t[]){1, 0, 2});
    sgm_value cosines = sgm_matmul(graph, anchors, sgm_transpose(graph, sgm_reshape(graph, others, &all)));
    sgm_value temperature = sgm_live_number(graph, sgm_layer_number(call, "temperature"));
    return sgm_class_cross_entropy(graph, sgm_divide(graph, cosines, temperature),
                                   sgm_iota(graph, SGM_INT64, &numbers, 0));
}

/* Groups of examples, (batch, features), become rows: one number. A single example, for which shapes are
 * looked at before there is data, has nothing that belongs to it. */
static sgm_value of_groups(const sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    const sgm_shape shape = sgm_value_type(graph, x).shape;
    const int64_t batch = shape.dims[0], group = sgm_layer_integer(call, "group");
    if (batch == 1)
        return sgm_multiply(graph, sgm_mean(graph, x), sgm_number(graph, 0));
    if (batch % group != 0)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "info_nce: %lld examples in a row belong together (group), and a minibatch of "
                              "%lld is no multiple of that; choose another size of minibatches",
                              (long long)group, (long long)batch);
    const sgm_shape rows = sgm_shape_of(batch / group, group, shape.dims[1]);
    return sgm_mean(graph, cost_of(call, graph, sgm_reshape(graph, x, &rows)));
}

/* Rank 2 and rank 3 tell the two forms apart. Workers that share a minibatch see only their parts, so they
 * are refused. */
static sgm_value info_nce(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    char text[128];
    const char *weights = sgm_layer_text(call, "weights");
    if (sgm_layer_is_part(call))
        return sgm_graph_fail(
            graph, SGM_ERROR_UNSUPPORTED,
            "info_nce: compares the examples of a minibatch, of which a worker of a gradient "
            "operator has a part: train without workers, or merge parameters, where each "
            "worker has minibatches of its own");
    if (weights != NULL && *weights != '\0')
        return sgm_graph_fail(
            graph, SGM_ERROR_UNSUPPORTED,
            "info_nce: compares examples with each other, which have no weights of their own");
    if (shape.rank == 2)
        return of_groups(call, graph, inputs[0]);
    if (shape.rank == 3 && shape.dims[1] >= 2)
        return cost_of(call, graph, inputs[0]);
    return sgm_graph_fail(
        graph, SGM_ERROR_SHAPE,
        "info_nce: expected (batch, features), of which some in a row belong together, or "
        "(batch, rows, features) with something, its like and others in each example; got %s",
        sgm_shape_text(&shape, text, sizeof text));
}

static const sgm_option arguments[] = {
    SGM__COST_ARGUMENTS,
    {.name = "temperature",
     .kind = SGM_KIND_NUMBER,
     .minimum = 1e-4,
     .maximum = 1e4,
     .default_value = 0.05,
     .doc = "cosines are divided by it: the smaller, the more the nearest others count",
     .live = true},
    {.name = "group",
     .kind = SGM_KIND_INTEGER,
     .minimum = 2,
     .maximum = 1000,
     .default_value = 2,
     .doc = "of (batch, features): how many examples in a row are something, its like, and others"},
};

SGM__COST(
    info_nce,
    "-log of the probability that each example finds its like among those of the minibatch, by cosines: "
    "of the rows of each (batch, rows, features), something, its like and others, or of examples in a row "
    "(batch, features)",
    arguments, 0, NULL, .formula = "-log softmax(cos(a, all likes and others) / temperature) of its like",
    .example = "info_nce(temperature=0.05)");
