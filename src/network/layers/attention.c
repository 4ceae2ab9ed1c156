/* attention(heads=4, causal) and transformer(heads=4, causal, hidden=512), for sequences (batch, time,
 * features).
 *
 * attention: a projection of each position to queries, keys and values, side by side in (features + 2 * key
 * features) columns; what the heads do with them, softmax(q k^T / sqrt(size)) v (heads.c); and a projection
 * back to features (Vaswani et al., 2017). transformer: a block of attention and two dense layers with
 * residual connections. Everything between input and result is in rows (batch * time, features), so that a
 * handler fuses sums and activations into the products before them. */
#include "network/layers/blocks.h"

#include <stdio.h>

/* The initialiser of all matrices here: standard deviation 0.02, as in GPT-2 (Radford et al., 2019). */
#define WEIGHTS "gaussian(0.02)"
#define EPSILON 1e-5 /* of the norms in a transformer */

/* (..., features) as (rows, features). */
static sgm_value as_rows(sgm_graph *graph, sgm_value x)
{
    sgm_shape shape = sgm_value_type(graph, x).shape;
    sgm_shape rows = sgm_shape_of(-1, shape.rank > 0 ? shape.dims[shape.rank - 1] : 1);
    return shape.rank == 2 ? x : sgm_reshape(graph, x, &rows);
}

/* x weights + biases for rows (rows, features), giving (rows, size); parameters "PREFIXweights" and
 * "PREFIXbiases". */
static sgm_value project(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int64_t size,
                         const char *prefix, bool biased)
{
    sgm_shape weights_shape = sgm_shape_of(sgm_value_type(graph, x).shape.dims[1], size);
    sgm_shape biases_shape = sgm_shape_of(size);
    sgm_value weights = sgm__layer_prefixed(call, graph, prefix, "weights", &weights_shape, WEIGHTS);
    if (!biased)
        return sgm_layer_matmul(call, graph, x, weights);
    /* The cast of the biases is recorded before the product, so that nothing lies between product and sum,
     * which then fuse. */
    sgm_value biases = sgm__layer_prefixed(call, graph, prefix, "biases", &biases_shape, "constant(0)");
    return sgm_add(graph, sgm_layer_matmul(call, graph, x, weights), biases);
}

/* Whether rotary_bands, if given, are (low, high, places) in order; otherwise the graph fails. */
static bool bands_are_right(sgm_layer_call *call, sgm_graph *graph)
{
    size_t count;
    const double *bands = sgm_layer_numbers(call, "rotary_bands", &count);
    if (bands == NULL || (count == 3 && bands[0] < bands[1]))
        return true;
    sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                   "%s: rotary_bands wants three numbers, (low, high, places), with low below high",
                   call->entry->layer->type->name);
    return false;
}

/* Whether `x` is a sequence whose features the heads divide; otherwise the graph fails with what would fit.
 */
static bool is_sequence(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    sgm_shape shape = sgm_value_type(graph, x).shape;
    const char *layer = call->entry->layer->type->name;
    int64_t heads = sgm_layer_integer(call, "heads");
    char text[128];
    if (shape.rank != 3) {
        sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                       "%s: expected a sequence (batch, time, features), got %s: put an embedding, or "
                       "input(TIME, FEATURES), before it",
                       layer, sgm_shape_text(&shape, text, sizeof text));
        return false;
    }
    int64_t size = sgm__layer_head_size(call, shape.dims[2]);
    if (sgm_layer_integer(call, "head_size") == 0 && shape.dims[2] % heads != 0) {
        sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                       "%s: %lld heads do not divide the %lld features of a position; choose a number of "
                       "heads that does, or give a head_size",
                       layer, (long long)heads, (long long)shape.dims[2]);
        return false;
    }
    if (heads % sgm__layer_key_heads(call) != 0) {
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                       "%s: %lld key_heads do not divide the %lld heads that share them", layer,
                       (long long)sgm__layer_key_heads(call), (long long)heads);
        return false;
    }
    if (sgm_layer_flag(call, "rotary") && size % 2 != 0) {
        sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: rotary turns pairs, but a head has %lld features", layer,
                       (long long)size);
        return false;
    }
    return bands_are_right(call, graph);
}

/* Attention with its two projections, for rows of sequences of `time` steps each. Parameters:
 * "PREFIXweights" (features, queries + keys + values), "PREFIXbiases", "PREFIXoutput_weights" (queries,
 * features), "PREFIXoutput_biases". With fewer heads of keys than of queries the columns of keys and values
 * are fewer. */
static sgm_value attend(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int64_t time, const char *prefix)
{
    int64_t features = sgm_value_type(graph, x).shape.dims[1], heads = sgm_layer_integer(call, "heads");
    int64_t size = sgm__layer_head_size(call, features);
    bool biased = !sgm_layer_flag(call, "no_bias");
    char output[64];
    snprintf(output, sizeof output, "%soutput_", prefix);
    int64_t wide = (heads + 2 * sgm__layer_key_heads(call)) * size;
    sgm_value all = project(call, graph, x, wide, prefix, biased);
    sgm_value y = sgm__layer_look(call, graph, all, time, size, prefix);
    return project(call, graph, y, features, output, biased && !sgm_layer_flag(call, "no_output_bias"));
}

static sgm_value forward_attention(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                   int32_t count)
{
    (void)count;
    if (!is_sequence(call, graph, inputs[0]))
        return (sgm_value){-1};
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    sgm_value y = attend(call, graph, as_rows(graph, inputs[0]), shape.dims[1], "");
    return sgm_reshape(graph, y, &shape);
}

/* x = x + drop(attention(norm(x))), then x = x + drop(dense(activation(dense(norm(x))))). The norms come
 * before each half, not after it, which trains without a warm-up of the learning rate (Xiong et al., 2020).
 * The hidden layer has 4 times the features unless `hidden` is given. */
static sgm_value forward_transformer(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                     int32_t count)
{
    (void)count;
    if (!is_sequence(call, graph, inputs[0]))
        return (sgm_value){-1};
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    int64_t features = shape.dims[2], hidden = sgm_layer_integer(call, "hidden");
    bool biased = !sgm_layer_flag(call, "no_bias");
    double rate = sgm_layer_number(call, "dropout");
    sgm_value x = as_rows(graph, inputs[0]);
    sgm_value y = sgm__layer_normalise(call, graph, x, true, biased, "attention_norm_", EPSILON);
    y = attend(call, graph, y, shape.dims[1], "attention_");
    x = sgm_add(graph, x, sgm__layer_drop(call, graph, y, rate, 0));
    y = sgm__layer_normalise(call, graph, x, true, biased, "hidden_norm_", EPSILON);
    y = project(call, graph, y, hidden > 0 ? hidden : 4 * features, "hidden_", biased);
    y = sgm_layer_activate(call, graph, sgm_layer_text(call, "activation"), y);
    y = project(call, graph, y, features, "output_", biased);
    x = sgm_add(graph, x, sgm__layer_drop(call, graph, y, rate, 0));
    return sgm_reshape(graph, x, &shape);
}

#define HEADS                                                                                                \
    {                                                                                                        \
        .name = "heads", .kind = SGM_KIND_INTEGER, .minimum = 1, .maximum = 1e6, .default_value = 1,         \
        .doc = "which share the features equally; 1 if not given"                                            \
    }
#define CAUSAL                                                                                               \
    {                                                                                                        \
        .name = "causal", .kind = SGM_KIND_BOOLEAN, .doc = "a position sees itself and those before it"      \
    }
#define MORE_OF_HEADS                                                                                        \
    {.name = "key_heads",                                                                                    \
     .kind = SGM_KIND_INTEGER,                                                                               \
     .minimum = 1,                                                                                           \
     .maximum = 1e6,                                                                                         \
     .doc = "heads of keys and values, each for as many heads as share it (Ainslie et al., 2023); as many "  \
            "as heads if not given"},                                                                        \
        {.name = "rotary",                                                                                   \
         .kind = SGM_KIND_BOOLEAN,                                                                           \
         .doc = "rotary position embedding: queries and keys are rotated by their positions, halves of a "   \
                "head together (Su et al., 2021)"},                                                          \
        {.name = "rotary_base",                                                                              \
         .kind = SGM_KIND_NUMBER,                                                                            \
         .minimum = 1,                                                                                       \
         .maximum = 1e12,                                                                                    \
         .default_value = 10000,                                                                             \
         .doc = "the slowest turns take almost this many steps times 2 pi"},                                 \
        {.name = "rotary_factor",                                                                            \
         .kind = SGM_KIND_NUMBER,                                                                            \
         .minimum = 1e-6,                                                                                    \
         .maximum = 1e6,                                                                                     \
         .default_value = 1,                                                                                 \
         .doc = "all turns are so many times slower, to look farther back (Chen et al., 2023)"},             \
        {.name = "rotary_bands",                                                                             \
         .kind = SGM_KIND_NUMBER,                                                                            \
         .list = true,                                                                                       \
         .minimum = 1e-6,                                                                                    \
         .maximum = 1e9,                                                                                     \
         .doc = "(low, high, places): rotary_factor is for what turns less than `low` times in `places`, "   \
                "and fades out up to `high` times, as in Llama 3.1"},                                        \
        {.name = "head_size",                                                                                \
         .kind = SGM_KIND_INTEGER,                                                                           \
         .minimum = 1,                                                                                       \
         .maximum = 1e6,                                                                                     \
         .doc = "features of a head; those of a position, divided by the heads, if not given"},              \
        {.name = "no_output_bias",                                                                           \
         .kind = SGM_KIND_BOOLEAN,                                                                           \
         .doc = "biases of queries, keys and values, but none of what the heads give"},                      \
        {.name = "query_norm",                                                                               \
         .kind = SGM_KIND_BOOLEAN,                                                                           \
         .doc = "rms_norm of each head's queries and keys, with a gain for each feature of a head"},         \
    {                                                                                                        \
        .name = "epsilon", .kind = SGM_KIND_NUMBER, .minimum = 0, .maximum = 1, .default_value = 1e-5,       \
        .doc = "of query_norm: is added to the mean of the squares"                                          \
    }
#define NO_BIAS                                                                                              \
    {                                                                                                        \
        .name = "no_bias", .kind = SGM_KIND_BOOLEAN, .doc = "no biases anywhere in the layer"                \
    }

static const sgm_option attention_arguments[] = {HEADS, CAUSAL, NO_BIAS, MORE_OF_HEADS};

const sgm_layer_type sgm__layer_attention = {
    .api = SGM_LAYER_API,
    .name = "attention",
    .doc = "each position takes from the others what its query finds, with several heads, between two dense "
           "layers (Vaswani et al., 2017)",
    .arguments = attention_arguments,
    .argument_count = sizeof attention_arguments / sizeof attention_arguments[0],
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward_attention,
    .formula = "y = softmax(Q K' / sqrt(d)) V O, with Q, K, V = x W for each head",
    .example = "attention(4)",
};

static const sgm_option transformer_arguments[] = {
    HEADS,
    {.name = "hidden",
     .kind = SGM_KIND_INTEGER,
     .minimum = 1,
     .maximum = 1e9,
     .doc = "the size of the hidden layer; 4 times the features if not given"},
    CAUSAL,
    {.name = "activation",
     .kind = SGM_KIND_TEXT,
     .default_text = "gelu",
     .doc = "of the hidden layer; gelu if not given"},
    {.name = "dropout",
     .kind = SGM_KIND_NUMBER,
     .minimum = 0,
     .maximum = 0.9999,
     .doc = "the share of what both halves add that is forgotten while training",
     .live = true},
    NO_BIAS,
    MORE_OF_HEADS,
};

const sgm_layer_type sgm__layer_transformer = {
    .api = SGM_LAYER_API,
    .name = "transformer",
    .doc =
        "a block of attention and two dense layers, each after a layer_norm and with a residual connection",
    .arguments = transformer_arguments,
    .argument_count = sizeof transformer_arguments / sizeof transformer_arguments[0],
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward_transformer,
    .formula = "z = x + attention(norm(x)), y = z + dense(activation(dense(norm(z))))",
    .example = "transformer(4)",
};
