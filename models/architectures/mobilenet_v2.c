/* MobileNetV2 (Sandler et al., 2018): inverted residual layers, which widen their channels, look through
 * windows of each channel by itself, and narrow them again. */
#include "architectures/architectures.h"

#include <math.h>

#define LAYERS 16
/* What becomes of the stem and of each layer, before the multiplier, and the strides of the layers. */
static const int64_t sizes[LAYERS + 1] = {16, 24, 24, 32, 32,  32,  64,  64, 64,
                                          64, 96, 96, 96, 160, 160, 160, 320};
static const int64_t strides[LAYERS] = {2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1};

typedef struct network {
    sgm__description *d;
    double multiplier, expansion;
    int64_t divisor, least; /* channels are multiples of it, and at least so many */
    int64_t output_stride;  /* by which pictures shrink at most; later strides become dilations */
    bool same;              /* padding as TensorFlow has it */
    const char *activation;
    char epsilon[SGM__NUMBER_TEXT];
} network;

/* Rounded to a multiple of the divisor, and not by more than a tenth down. */
static int64_t divisible(const network *n, double channels)
{
    double whole = floor((double)(int64_t)(channels + (double)n->divisor / 2) / (double)n->divisor);
    double rounded = fmax(whole * (double)n->divisor, (double)n->least);
    return (int64_t)(rounded < 0.9 * channels ? rounded + (double)n->divisor : rounded);
}

static int64_t multiplied(const network *n, int64_t channels)
{
    return divisible(n, rint((double)channels * n->multiplier));
}

/* A convolution of 1 x 1, or of 3 x 3. */
typedef struct unit {
    int64_t channels, kernel;
    int64_t stride, dilation, groups; /* 0: 1 */
} unit;

/* The share of a minibatch in the running statistics is that of transformers. */
static void put_unit(const network *n, const char *name, unit u)
{
    sgm__network_put(n->d, " + convolution(%lld, %lld", (long long)u.channels, (long long)u.kernel);
    if (u.stride > 1)
        sgm__network_put(n->d, ", stride=%lld", (long long)u.stride);
    if (u.dilation > 1)
        sgm__network_put(n->d, ", dilation=%lld", (long long)u.dilation);
    if (u.groups > 1)
        sgm__network_put(n->d, ", groups=%lld", (long long)u.groups);
    if (u.kernel > 1 && n->same)
        sgm__network_put(n->d, ", same");
    else if (u.kernel > 1)
        sgm__network_put(n->d, ", padding=%lld", (long long)(u.dilation > 1 ? u.dilation : 1));
    sgm__network_put(n->d, ", no_bias, name=%s) + batch_norm(0.997, %s, name=%s_norm)", name, n->epsilon,
                     name);
}

static void put_active(const network *n, const char *name, unit u)
{
    put_unit(n, name, u);
    sgm__network_put(n->d, " + activation(%s)", n->activation);
}

static void put_stem(const network *n)
{
    int64_t wide = multiplied(n, 32);
    put_active(n, "stem_first", (unit){.channels = wide, .kernel = 3, .stride = 2});
    if (!sgm__setting_flag(n->d, "first_layer_is_expansion", true))
        put_active(n, "stem_expand", (unit){.channels = wide, .kernel = 1});
    put_active(n, "stem_window", (unit){.channels = wide, .kernel = 3, .groups = wide});
    put_unit(n, "stem_reduce", (unit){.channels = multiplied(n, sizes[0]), .kernel = 1});
}

static void put_layer(const network *n, int layer, int64_t stride, int64_t dilation)
{
    int64_t before = multiplied(n, sizes[layer]), after = multiplied(n, sizes[layer + 1]);
    int64_t wide = divisible(n, rint((double)before * n->expansion));
    bool residual = stride == 1 && before == after;
    char name[32];
    if (residual)
        sgm__network_put(n->d, " + add(identity, identity"); /* units begin with " + " */
    snprintf(name, sizeof name, "layer%d_expand", layer);
    put_active(n, name, (unit){.channels = wide, .kernel = 1});
    snprintf(name, sizeof name, "layer%d_window", layer);
    put_active(n, name, (unit){wide, 3, stride, dilation, .groups = wide});
    snprintf(name, sizeof name, "layer%d_reduce", layer);
    put_unit(n, name, (unit){.channels = after, .kernel = 1});
    if (residual)
        sgm__network_put(n->d, ")");
}

static void put_layers(const network *n)
{
    int64_t dilation = 1, shrunk = 2;
    for (int i = 0; i < LAYERS; i++)
        if (shrunk == n->output_stride) {
            put_layer(n, i, 1, dilation);
            dilation *= strides[i];
        } else {
            put_layer(n, i, strides[i], 1);
            shrunk *= strides[i];
        }
}

static void describe(sgm__description *d)
{
    network n = {.d = d,
                 .multiplier = sgm__setting_number(d, "depth_multiplier", 1),
                 .expansion = sgm__setting_number(d, "expand_ratio", 6),
                 .divisor = sgm__setting_size(d, "depth_divisible_by", 8),
                 .least = sgm__setting_size(d, "min_depth", 8),
                 .output_stride = sgm__setting_steps(d, "output_stride", 32),
                 .same = sgm__setting_flag(d, "tf_padding", true),
                 .activation = sgm__setting_activation(d, "hidden_act", "relu6")};
    sgm__network_number(sgm__setting_number(d, "layer_norm_eps", 0.001), n.epsilon);
    if (n.multiplier > 16 || n.expansion > 64)
        sgm__describe_fail(d, SGM_ERROR_FORMAT,
                           "'depth_multiplier' is %g and 'expand_ratio' %g; at most 16 and 64 are possible",
                           n.multiplier, n.expansion);
    bool fixed = sgm__setting_flag(d, "finegrained_output", true) && n.multiplier < 1;
    sgm__describe_pictures(d, sgm__setting_steps(d, "image_size", 224));
    if (d->status != SGM_OK)
        return;
    put_stem(&n);
    put_layers(&n);
    put_active(&n, "last", (unit){.channels = fixed ? 1280 : multiplied(&n, 1280), .kernel = 1});
    sgm__network_put(d, " + global_average_pooling");
    sgm__network_classes(d);
}

#define UNIT(layer, module)                                                                                  \
    SGM__AS_IS(layer ".weights", module ".convolution.weight"),                                              \
        SGM__BATCH_NORM(layer "_norm", module ".normalization")
#define STEM "mobilenet_v2.conv_stem."
#define LAYER "mobilenet_v2.layer.@."
static const sgm__weight weights[] = {
    UNIT("stem_first", STEM "first_conv"),     UNIT("stem_expand", STEM "expand_1x1"),
    UNIT("stem_window", STEM "conv_3x3"),      UNIT("stem_reduce", STEM "reduce_1x1"),
    UNIT("layer@_expand", LAYER "expand_1x1"), UNIT("layer@_window", LAYER "conv_3x3"),
    UNIT("layer@_reduce", LAYER "reduce_1x1"), UNIT("last", "mobilenet_v2.conv_1x1"),
    SGM__HEAD("classifier", "classifier"),
};

#define COUNT(module) module ".normalization.num_batches_tracked"
static const char *const unused[] = {COUNT(STEM "first_conv"),
                                     COUNT(STEM "expand_1x1"),
                                     COUNT(STEM "conv_3x3"),
                                     COUNT(STEM "reduce_1x1"),
                                     COUNT(LAYER "expand_1x1"),
                                     COUNT(LAYER "conv_3x3"),
                                     COUNT(LAYER "reduce_1x1"),
                                     COUNT("mobilenet_v2.conv_1x1"),
                                     "classifier.*",
                                     NULL};

const sgm__architecture sgm__mobilenet_v2 = {.type = "mobilenet_v2",
                                             .classifier = "MobileNetV2ForImageClassification",
                                             .prefix = "mobilenet_v2.",
                                             .describe = describe,
                                             SGM__WEIGHTS(weights),
                                             .unused = unused};
