/* lora(8, alpha=16, on="*attention*"): low-rank adapters of other layers' matrices (Hu et al., 2021).
 *
 * y = x W + alpha / rank (x A) B, A (inputs, rank), B (rank, outputs). The sum W + A B is never made: two
 * thin products take its place, and where W is frozen, nothing of its size is needed for gradients either.
 * For some columns of W alone, as where queries, keys and values lie side by side, B has zeros on both sides.
 */
#include "network/layers/blocks.h"

#include <math.h>
#include <stdio.h>

/* What A x is multiplied by. With alpha / sqrt(rank) the sizes of updates do not depend on the rank
 * (Kalajdzievski, 2023). */
static double scale_of(const sgm_layer_call *call)
{
    double rank = (double)sgm_layer_integer(call, "rank"), alpha = sgm_layer_number(call, "alpha");
    return (alpha > 0 ? alpha : rank) / (sgm_layer_flag(call, "rank_stabilised") ? sqrt(rank) : rank);
}

/* The first column and how many there are, of `outputs`; false: the graph has failed. */
static bool columns_of(sgm_layer_call *call, sgm_graph *graph, int64_t outputs, int64_t *first,
                       int64_t *count)
{
    sgm_shape columns = sgm_layer_shape(call, "columns");
    *first = columns.rank > 0 ? columns.dims[0] : 0;
    *count = columns.rank > 1 ? columns.dims[1] : outputs;
    if (columns.rank == 0 || (columns.rank == 2 && *count >= 1 && *first <= outputs - *count))
        return true;
    sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                   "lora: columns wants two numbers, (first, count), within the %lld columns of '%s'",
                   (long long)outputs, sgm_layer_name(call));
    return false;
}

/* inputs: x (rows, inputs) and x W (rows, outputs). A is drawn as by PEFT: U(-l, l), l = 1 / sqrt(inputs). */
static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value x = inputs[0], y = inputs[1];
    int64_t features = sgm_value_type(graph, x).shape.dims[1], rank = sgm_layer_integer(call, "rank");
    int64_t outputs = sgm_value_type(graph, y).shape.dims[1], first, width;
    if (!columns_of(call, graph, outputs, &first, &width))
        return (sgm_value){-1};
    char drawn[80];
    double limit = 1 / sqrt((double)features);
    snprintf(drawn, sizeof drawn, "uniform(%.9g, %.9g)", -limit, limit);
    sgm_shape a_shape = sgm_shape_of(features, rank), b_shape = sgm_shape_of(rank, width);
    sgm_value a = sgm_layer_parameter(call, graph, "lora_a", &a_shape, features, rank, true, drawn);
    sgm_value b = sgm_layer_parameter(call, graph, "lora_b", &b_shape, rank, width, true, "constant(0)");
    x = sgm__layer_drop(call, graph, x, sgm_layer_number(call, "dropout"), 0);
    sgm_value low = sgm_multiply(graph, sgm_matmul(graph, x, a), sgm_number(graph, scale_of(call)));
    if (width < outputs)
        b = sgm_pad(graph, b, 1, first, outputs - first - width, 0);
    return sgm_add(graph, y, sgm_matmul(graph, low, b));
}

static const sgm_option arguments[] = {
    {.name = "rank",
     .kind = SGM_KIND_INTEGER,
     .required = true,
     .minimum = 1,
     .maximum = 1e6,
     .doc = "numbers that are learnt for each input and each output of a matrix"},
    {.name = "on",
     .kind = SGM_KIND_TEXT,
     .default_text = "*",
     .doc = "patterns of the parameters that are adapted, with spaces between them; one without a dot is for "
            "all of a layer. All matrices if not given"},
    {.name = "alpha",
     .kind = SGM_KIND_NUMBER,
     .minimum = 1e-9,
     .maximum = 1e9,
     .doc = "what is added is multiplied by alpha / rank; as the rank if not given"},
    {.name = "dropout",
     .kind = SGM_KIND_NUMBER,
     .minimum = 0,
     .maximum = 0.9999,
     .doc = "the share of a matrix' inputs that its adapter does not see while training"},
    {.name = "rank_stabilised",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "alpha / sqrt(rank) in the place of alpha / rank (Kalajdzievski, 2023)"},
    {.name = "train",
     .kind = SGM_KIND_TEXT,
     .doc = "patterns of parameters that are trained themselves: logits.* *norm*; none if not given"},
    {.name = "columns",
     .kind = SGM_KIND_INTEGER,
     .list = true,
     .minimum = 0,
     .maximum = 1e9,
     .doc = "(first, count): only these columns of a matrix are adapted"},
    {.name = "quantize",
     .kind = SGM_KIND_TEXT,
     .doc =
         "int8: matrices that are adapted, and not trained themselves, are kept as 8 bits, with a scale for "
         "each column"},
};

const sgm_layer_type sgm__layer_lora = {
    .api = SGM_LAYER_API,
    .flags = SGM_LAYER_ADAPTER,
    .name = "lora",
    .doc = "a statement of its own: low-rank adapters of other layers' matrices, which are frozen then "
           "(Hu et al., 2021)",
    .arguments = arguments,
    .argument_count = SGM__COUNT(arguments),
    .forward = forward,
    .formula = "y = x W + alpha / rank (x A) B",
    .example = "lora(8, alpha=16, on=\"*attention*\")",
};
