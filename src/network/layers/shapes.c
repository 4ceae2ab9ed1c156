/* reshape and permute: the elements of an example in another shape, or its dimensions in another order.
 * select: one place of its first dimension.
 *
 * All leave the batch in front. permute changes which dimension is time, so it drops the lengths of
 * sequences unless the first dimension stays. */
#include "network/network_internal.h"

/* (batch, ...) to (batch, shape...); the number of elements must be the same, and none is left to be found
 * out. */
static sgm_value reshape(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_shape before = sgm_value_type(graph, inputs[0]).shape, example = sgm_layer_shape(call, "shape");
    sgm_shape after = {.rank = example.rank + 1, .dims = {before.rank > 0 ? before.dims[0] : 1}};
    if (sgm__layer_refuses_step(call, graph, "its shape is that of all steps together"))
        return (sgm_value){-1};
    memcpy(after.dims + 1, example.dims, (size_t)example.rank * sizeof *example.dims);
    if (sgm_shape_elements(&after) == sgm_shape_elements(&before))
        return sgm_reshape(graph, inputs[0], &after);
    sgm_shape given = sgm_shape_create(before.rank > 0 ? before.rank - 1 : 0, before.dims + 1);
    char there[128], wanted[128];
    return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                          "an example of %s has %lld numbers, one of %s would have %lld: the product of the "
                          "dimensions stays",
                          sgm_shape_text(&given, there, sizeof there), (long long)sgm_shape_elements(&given),
                          sgm_shape_text(&example, wanted, sizeof wanted),
                          (long long)sgm_shape_elements(&example));
}

/* True if `order` has each dimension of an example once, from 1. */
static bool is_order(const sgm_shape *order, int32_t dimensions)
{
    uint32_t seen = 0;
    for (int32_t i = 0; i < order->rank; i++)
        if (order->dims[i] <= dimensions)
            seen |= 1U << order->dims[i];
    return order->rank == dimensions && seen == (2U << dimensions) - 2;
}

/* The numbers of the argument are axes of the value, since axis 0 is the batch. */
static sgm_value permute(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape, order = sgm_layer_shape(call, "order");
    int32_t axes[SGM_MAX_RANK] = {0};
    char text[128];
    if (!is_order(&order, shape.rank - 1)) {
        sgm_shape example = sgm_shape_create(shape.rank > 0 ? shape.rank - 1 : 0, shape.dims + 1);
        return sgm_graph_fail(
            graph, SGM_ERROR_SHAPE,
            "expected the numbers 1 to %d, each once, for the dimensions of an example of %s",
            (int)example.rank, sgm_shape_text(&example, text, sizeof text));
    }
    /* Another dimension takes the place of the steps. */
    if (order.dims[0] != 1) {
        if (sgm__layer_refuses_step(call, graph, "it puts another dimension in the place of the steps"))
            return (sgm_value){-1};
        sgm__layer_set_lengths(call, (sgm_value){-1});
    }
    for (int32_t i = 0; i < order.rank; i++)
        axes[i + 1] = (int32_t)order.dims[i];
    return sgm_permute(graph, inputs[0], axes);
}

/* (batch, steps, ...) to (batch, ...). */
static sgm_value select_place(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape, rest = {.rank = shape.rank - 1};
    int64_t place = sgm_layer_integer(call, "place");
    char text[128];
    if (sgm__layer_refuses_step(call, graph, "it takes one of all steps"))
        return (sgm_value){-1};
    if (shape.rank < 2 || place >= shape.dims[1])
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "select: there is no place %lld in %s, (batch, places, "
                              "...)",
                              (long long)place, sgm_shape_text(&shape, text, sizeof text));
    sgm__layer_set_lengths(call, (sgm_value){-1});
    rest.dims[0] = shape.dims[0];
    memcpy(rest.dims + 1, shape.dims + 2, (size_t)(rest.rank - 1) * sizeof *rest.dims);
    return sgm_reshape(graph, sgm_slice(graph, inputs[0], 1, place, place + 1, 1), &rest);
}

#define DIMENSIONS(argument, highest, words)                                                                 \
    {                                                                                                        \
        .name = argument, .kind = SGM_KIND_INTEGER, .list = true, .required = true, .minimum = 1,            \
        .maximum = highest, .doc = words                                                                     \
    }

static const sgm_option reshape_arguments[] = {
    DIMENSIONS("shape", 1e9, "the dimensions that an example gets, without the batch")};
static const sgm_option permute_arguments[] = {
    DIMENSIONS("order", SGM_MAX_RANK - 1, "which dimension of an example, from 1, comes first, second, ...")};

static const sgm_option select_arguments[] = {{.name = "place",
                                               .kind = SGM_KIND_INTEGER,
                                               .minimum = 0,
                                               .maximum = 1e9,
                                               .doc = "from 0, which it is if not given"}};

#define SHAPE_LAYER(text, words, function, table, ...)                                                       \
    const sgm_layer_type sgm__layer_##text = {.api = SGM_LAYER_API,                                          \
                                              .name = #text,                                                 \
                                              .doc = words,                                                  \
                                              .arguments = table,                                            \
                                              .argument_count = sizeof table / sizeof table[0],              \
                                              .min_inputs = 1,                                               \
                                              .max_inputs = 1,                                               \
                                              .forward = function,                                           \
                                              __VA_ARGS__}

SHAPE_LAYER(reshape, "the numbers of an example in another shape, in the same order", reshape,
            reshape_arguments, .formula = "the same numbers in another shape",
            .example = "reshape(1, 28, 28)");
SHAPE_LAYER(permute, "the dimensions of an example in another order", permute, permute_arguments,
            .formula = "y[i, j] = x[j, i]", .example = "permute(2, 1)");
SHAPE_LAYER(select, "one place of the first dimension of an example, such as the first step of a sequence",
            select_place, select_arguments, .formula = "y = x[place]", .example = "select(0)");
