/* ResNet (He et al., 2015), as transformers has it: a stem, then stages of residual layers, each of two
 * convolutions of 3 x 3 ("basic") or of three, of which the middle one has fewer channels ("bottleneck"). */
#include "architectures/architectures.h"

#include <string.h>

#define MOST_STAGES 16
#define REDUCTION 4 /* of the channels within a bottleneck */

/* A stage being written. */
typedef struct stage {
    int64_t number, layers, before, channels; /* channels that come in, and that go out */
    int64_t stride;                           /* of its first layer */
    bool bottleneck, first;                   /* first: the stride is that of the first convolution */
    const char *activation;
} stage;

/* A convolution whose result has the size of its input, or half of it, and its norm; " + " is before it
 * unless it begins a branch. */
static void put_unit(sgm__description *d, const char *name, const char *number, int64_t channels, int kernel,
                     int64_t stride)
{
    sgm__network_put(d, "convolution(%lld, %d, stride=%lld, padding=%d, no_bias, name=%sconvolution%s)",
                     (long long)channels, kernel, (long long)stride, kernel / 2, name, number);
    sgm__network_put(d, " + batch_norm(name=%snorm%s)", name, number);
}

static void put_activation(sgm__description *d, const char *activation)
{
    sgm__network_put(d, " + activation(%s)", activation);
}

/* Between the convolutions of a layer is relu, whatever the activation behind them. */
static void put_basic(sgm__description *d, const stage *s, const char *name, int64_t stride)
{
    put_unit(d, name, "0", s->channels, 3, stride);
    put_activation(d, "relu");
    sgm__network_put(d, " + ");
    put_unit(d, name, "1", s->channels, 3, 1);
}

static void put_bottleneck(sgm__description *d, const stage *s, const char *name, int64_t stride)
{
    int64_t channels = s->channels / REDUCTION;
    put_unit(d, name, "0", channels, 1, s->first ? stride : 1);
    put_activation(d, "relu");
    sgm__network_put(d, " + ");
    put_unit(d, name, "1", channels, 3, s->first ? 1 : stride);
    put_activation(d, "relu");
    sgm__network_put(d, " + ");
    put_unit(d, name, "2", s->channels, 1, 1);
}

static void put_layer(sgm__description *d, const stage *s, int64_t layer)
{
    char name[64];
    int64_t stride = layer == 0 ? s->stride : 1;
    snprintf(name, sizeof name, "stage%lld_layer%lld_", (long long)s->number, (long long)layer);
    sgm__network_put(d, " + add(");
    if (layer == 0 && (s->before != s->channels || stride != 1))
        put_unit(d, name, "_shortcut", s->channels, 1, stride);
    else
        sgm__network_put(d, "identity");
    sgm__network_put(d, ", ");
    (s->bottleneck ? put_bottleneck : put_basic)(d, s, name, stride);
    sgm__network_put(d, ")");
    put_activation(d, s->activation);
}

static bool read_bottleneck(sgm__description *d)
{
    const char *type = sgm__setting_text(d, "layer_type", "bottleneck");
    if (strcmp(type, "basic") != 0 && strcmp(type, "bottleneck") != 0)
        sgm__describe_fail(d, SGM_ERROR_UNSUPPORTED,
                           "'layer_type' is \"%.40s\"; basic and bottleneck are known", type);
    return strcmp(type, "bottleneck") == 0;
}

static void describe(sgm__description *d)
{
    int64_t channels[MOST_STAGES], layers[MOST_STAGES];
    size_t stages = sgm__setting_list(d, "hidden_sizes", d->elements, channels, MOST_STAGES);
    stage s = {.before = sgm__setting_size(d, "embedding_size", 64),
               .stride = sgm__setting_flag(d, "downsample_in_first_stage", false) ? 2 : 1,
               .bottleneck = read_bottleneck(d),
               .first = sgm__setting_flag(d, "downsample_in_bottleneck", false),
               .activation = sgm__setting_activation(d, "hidden_act", "relu")};
    if (sgm__setting_list(d, "depths", SGM__MOST_LAYERS, layers, MOST_STAGES) != stages)
        sgm__describe_fail(d, SGM_ERROR_FORMAT, "'depths' and 'hidden_sizes' differ in their length");
    sgm__describe_pictures(d, 224);
    sgm__network_put(d, " + ");
    put_unit(d, "stem_", "", s.before, 7, 2);
    put_activation(d, s.activation);
    sgm__network_put(d, " + max_pooling(3, stride=2, padding=1)");
    for (size_t i = 0; i < stages && d->status == SGM_OK; i++) {
        s.number = (int64_t)i;
        s.channels = channels[i];
        s.layers = layers[i];
        for (int64_t layer = 0; layer < s.layers; layer++)
            put_layer(d, &s, layer);
        s.before = s.channels;
        s.stride = 2;
    }
    sgm__network_put(d, " + global_average_pooling");
    sgm__network_classes(d);
}

#define UNIT(convolution, norm, module)                                                                      \
    SGM__AS_IS(convolution ".weights", module ".convolution.weight"),                                        \
        SGM__BATCH_NORM(norm, module ".normalization")
#define LAYER "resnet.encoder.stages.@.layers.@."
static const sgm__weight weights[] = {
    UNIT("stem_convolution", "stem_norm", "resnet.embedder.embedder"),
    UNIT("stage@_layer@_convolution@", "stage@_layer@_norm@", LAYER "layer.@"),
    UNIT("stage@_layer@_convolution_shortcut", "stage@_layer@_norm_shortcut", LAYER "shortcut"),
    SGM__HEAD("classifier", "classifier.1"),
};

static const char *const unused[] = {"resnet.embedder.embedder.normalization.num_batches_tracked",
                                     LAYER "layer.@.normalization.num_batches_tracked",
                                     LAYER "shortcut.normalization.num_batches_tracked", "classifier.*",
                                     NULL};

const sgm__architecture sgm__resnet = {.type = "resnet",
                                       .classifier = "ResNetForImageClassification",
                                       .prefix = "resnet.",
                                       .describe = describe,
                                       SGM__WEIGHTS(weights),
                                       .unused = unused};
