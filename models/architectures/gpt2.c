/* GPT-2 (Radford et al., 2019). Its matrices are (inputs, outputs), as Sigma's. */
#include "architectures/architectures.h"

static void describe(sgm__description *d)
{
    int64_t features = sgm__setting_size(d, "n_embd", 0), layers = sgm__setting_layers(d, "n_layer");
    int64_t places = sgm__setting_size(d, "n_positions", 1024), heads = sgm__setting_size(d, "n_head", 0);
    int64_t hidden = sgm__setting_size(d, "n_inner", 4 * features);
    const char *activation = sgm__setting_activation(d, "activation_function", "gelu_new");
    char epsilon[SGM__NUMBER_TEXT];
    sgm__network_number(sgm__setting_number(d, "layer_norm_epsilon", 1e-5), epsilon);
    sgm__setting_must_be(d, "scale_attn_weights", true);
    sgm__setting_must_be(d, "scale_attn_by_inverse_layer_idx", false);
    sgm__setting_must_be(d, "add_cross_attention", false);
    sgm__setting_must_be(d, "is_causal", true);
    sgm__describe_task(d, "generate", "generate");
    sgm__describe_context(d, places);

    sgm__network_put(d, "input(%lld) + embedding(%lld, %lld, name=tokens) + positions(%lld, name=positions)",
                     (long long)d->context, (long long)sgm__describe_tokens(d, "vocab_size"),
                     (long long)features, (long long)places);
    sgm__network_put(d, " + %lld * (add(identity, layer_norm(%s, name=attention_norm#)", (long long)layers,
                     epsilon);
    sgm__network_put(d, " + attention(%lld, causal, name=attention#))", (long long)heads);
    sgm__network_put(d, " + add(identity, layer_norm(%s, name=hidden_norm#)", epsilon);
    sgm__network_put(d, " + dense(%lld, %s, time_distributed, name=hidden#)", (long long)hidden, activation);
    sgm__network_put(d, " + dense(%lld, time_distributed, name=projection#)))", (long long)features);
    sgm__network_put(d, " + layer_norm(%s, name=norm)", epsilon);
    sgm__network_logits(d, sgm__setting_flag(d, "tie_word_embeddings", true));
}

#define BLOCK "transformer.h.#."
static const sgm__weight weights[] = {
    SGM__AS_IS("tokens.weights", "transformer.wte.weight"),
    SGM__COPY("tokens.weights", "lm_head.weight"),
    SGM__AS_IS("positions.weights", "transformer.wpe.weight"),
    SGM__AS_IS("attention_norm#.gains", BLOCK "ln_1.weight"),
    SGM__AS_IS("attention_norm#.biases", BLOCK "ln_1.bias"),
    SGM__AS_IS("attention#.weights", BLOCK "attn.c_attn.weight"),
    SGM__AS_IS("attention#.biases", BLOCK "attn.c_attn.bias"),
    SGM__AS_IS("attention#.output_weights", BLOCK "attn.c_proj.weight"),
    SGM__AS_IS("attention#.output_biases", BLOCK "attn.c_proj.bias"),
    SGM__AS_IS("hidden_norm#.gains", BLOCK "ln_2.weight"),
    SGM__AS_IS("hidden_norm#.biases", BLOCK "ln_2.bias"),
    SGM__AS_IS("hidden#.weights", BLOCK "mlp.c_fc.weight"),
    SGM__AS_IS("hidden#.biases", BLOCK "mlp.c_fc.bias"),
    SGM__AS_IS("projection#.weights", BLOCK "mlp.c_proj.weight"),
    SGM__AS_IS("projection#.biases", BLOCK "mlp.c_proj.bias"),
    SGM__AS_IS("norm.gains", "transformer.ln_f.weight"),
    SGM__AS_IS("norm.biases", "transformer.ln_f.bias"),
    SGM__TRANSPOSED("logits.weights", "lm_head.weight"),
};

static const char *const unused[] = {BLOCK "attn.bias", BLOCK "attn.masked_bias", NULL};

const sgm__architecture sgm__gpt2 = {
    .type = "gpt2", .prefix = "transformer.", .describe = describe, SGM__WEIGHTS(weights), .unused = unused};
