/* ViT (Dosovitskiy et al., 2021): a picture as a sequence of patches, and a token in front whose result is
 * that of the picture. */
#include "architectures/architectures.h"

/* Both sides, where config.json has one number or two. */
static int64_t read_square(sgm__description *d, const char *key, int64_t otherwise)
{
    int64_t size = sgm__setting_steps(d, key, otherwise);
    return size > 0 ? size : 1;
}

/* The patches side by side in `pixels`. */
static int64_t count_patches(sgm__description *d, int64_t pixels, int64_t patch)
{
    if (pixels < patch)
        sgm__describe_fail(d, SGM_ERROR_FORMAT,
                           "'patch_size' is %lld, more than the %lld pixels of a picture", (long long)patch,
                           (long long)pixels);
    return pixels / patch;
}

static void describe(sgm__description *d)
{
    int64_t features = sgm__setting_size(d, "hidden_size", 0),
            layers = sgm__setting_layers(d, "num_hidden_layers");
    int64_t heads = sgm__setting_size(d, "num_attention_heads", 0);
    int64_t hidden = sgm__setting_size(d, "intermediate_size", 0);
    int64_t size = read_square(d, "image_size", 224), patch = read_square(d, "patch_size", 16);
    const char *activation = sgm__setting_activation(d, "hidden_act", "gelu");
    char epsilon[SGM__NUMBER_TEXT];
    sgm__network_number(sgm__setting_number(d, "layer_norm_eps", 1e-12), epsilon);
    sgm__setting_must_be(d, "qkv_bias", true);
    sgm__describe_heads(d, heads, heads, heads > 0 ? features / heads : 1);
    sgm__describe_pictures(d, size);
    if (d->picture.width != size || d->picture.height != size)
        sgm__describe_fail(
            d, SGM_ERROR_UNSUPPORTED,
            "'image_size' is %lld, but preprocessor_config.json makes pictures of %lld x %lld; "
            "positions between those that were learnt are not made",
            (long long)size, (long long)d->picture.width, (long long)d->picture.height);
    int64_t across = count_patches(d, size, patch);

    sgm__network_put(d, " + convolution(%lld, %lld, stride=%lld, name=patches)", (long long)features,
                     (long long)patch, (long long)patch);
    sgm__network_put(d, " + reshape(%lld, %lld) + permute(2, 1)", (long long)features,
                     (long long)(across * across));
    sgm__network_put(d, " + learned_tokens(name=class_token) + positions(name=positions)");
    sgm__network_put(d, " + %lld * (add(identity, layer_norm(%s, name=attention_norm#)", (long long)layers,
                     epsilon);
    sgm__network_put(d, " + attention(%lld, name=attention#))", (long long)heads);
    sgm__network_put(d, " + add(identity, layer_norm(%s, name=hidden_norm#)", epsilon);
    sgm__network_put(d, " + dense(%lld, %s, time_distributed, name=hidden#)", (long long)hidden, activation);
    sgm__network_put(d, " + dense(%lld, time_distributed, name=projection#)))", (long long)features);
    sgm__network_put(d, " + layer_norm(%s, name=norm) + select", epsilon);
    sgm__network_classes(d);
}

/* Biases are vectors and gains too, so only weights are transposed. */
#define DENSE(layer, module)                                                                                 \
    SGM__TRANSPOSED(layer ".weights", module ".weight"), SGM__AS_IS(layer ".biases", module ".bias")
#define NORM(layer, module)                                                                                  \
    SGM__AS_IS(layer ".gains", module ".weight"), SGM__AS_IS(layer ".biases", module ".bias")
#define BLOCK "vit.encoder.layer.#."
#define HEADS BLOCK "attention.attention."
static const sgm__weight weights[] = {
    SGM__AS_IS("patches.weights", "vit.embeddings.patch_embeddings.projection.weight"),
    SGM__AS_IS("patches.biases", "vit.embeddings.patch_embeddings.projection.bias"),
    SGM__AS_IS("class_token.weights", "vit.embeddings.cls_token"),
    SGM__AS_IS("positions.weights", "vit.embeddings.position_embeddings"),
    NORM("attention_norm#", BLOCK "layernorm_before"),
    SGM__TRANSPOSED("attention#.weights", HEADS "query.weight", HEADS "key.weight", HEADS "value.weight"),
    SGM__AS_IS("attention#.biases", HEADS "query.bias", HEADS "key.bias", HEADS "value.bias"),
    SGM__TRANSPOSED("attention#.output_weights", BLOCK "attention.output.dense.weight"),
    SGM__AS_IS("attention#.output_biases", BLOCK "attention.output.dense.bias"),
    NORM("hidden_norm#", BLOCK "layernorm_after"),
    DENSE("hidden#", BLOCK "intermediate.dense"),
    DENSE("projection#", BLOCK "output.dense"),
    NORM("norm", "vit.layernorm"),
    SGM__HEAD("classifier", "classifier"),
};

static const char *const unused[] = {"vit.pooler.*", "vit.embeddings.mask_token", "decoder.*", "classifier.*",
                                     NULL};

const sgm__architecture sgm__vit = {.type = "vit",
                                    .classifier = "ViTForImageClassification",
                                    .prefix = "vit.",
                                    .describe = describe,
                                    SGM__WEIGHTS(weights),
                                    .unused = unused};
