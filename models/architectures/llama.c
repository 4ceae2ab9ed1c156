/* Llama (Touvron et al., 2023) and those that differ from it in details: Mistral, Qwen2, Qwen3. SmolLM and
 * TinyLlama are Llamas by their config.json. */
#include "architectures/architectures.h"

#include <string.h>

/* What differs between them. */
typedef struct variant {
    bool biased;       /* queries, keys and values have biases without being asked for */
    bool normed;       /* each head's queries and keys are normalised */
    bool windowed;     /* the key "sliding_window" counts by itself; otherwise with "use_sliding_window" */
    int64_t head_size; /* where config.json does not say it; 0: features / heads */
    int64_t window;    /* where config.json has no key "sliding_window"; null there is none. 0: none */
} variant;

/* Where config.json says how positions are rotated. transformers 5 writes "rope_parameters", but takes all of
 * an older "rope_scaling" in its place if that has members. */
static const char *rotary_group(sgm__description *d)
{
    return sgm__setting_has_members(d, "rope_scaling") ? "rope_scaling" : "rope_parameters";
}

/* The base of rotary positions: what the group does not say is beside it. */
static double rotary_base(sgm__description *d)
{
    char key[64];
    snprintf(key, sizeof key, "%s.rope_theta", rotary_group(d));
    return sgm__setting_number(d, sgm__setting_has(d, key) ? key : "rope_theta", 10000);
}

/* Positions rotate all numbers of a head. */
static void refuse_partial(sgm__description *d)
{
    char key[64];
    snprintf(key, sizeof key, "%s.partial_rotary_factor", rotary_group(d));
    const char *named = sgm__setting_has(d, key) ? key : "partial_rotary_factor";
    double factor = sgm__setting_number(d, named, 1);
    if (factor != 1)
        sgm__describe_fail(d, SGM_ERROR_UNSUPPORTED, "'%s' is %g; models are only read where it is 1", named,
                           factor);
}

/* The scaling of rotary positions, of which transformers has had three ways to say it. It has no usual values
 * for the numbers of one. */
static void put_scaling(sgm__description *d)
{
    const char *group = rotary_group(d);
    char key[64], low[SGM__NUMBER_TEXT], high[SGM__NUMBER_TEXT], factor[SGM__NUMBER_TEXT];
#define KEY(name) (snprintf(key, sizeof key, "%s.%s", group, name), key)
    const char *type = sgm__setting_text(d, KEY("rope_type"), NULL);
    if (type == NULL)
        type = sgm__setting_text(d, KEY("type"), "default");
    if (strcmp(type, "default") == 0)
        return;
    sgm__network_number(sgm__setting_number(d, KEY("factor"), 0), factor);
    sgm__network_put(d, ", rotary_factor=%s", factor);
    if (strcmp(type, "llama3") == 0) {
        sgm__network_number(sgm__setting_number(d, KEY("low_freq_factor"), 0), low);
        sgm__network_number(sgm__setting_number(d, KEY("high_freq_factor"), 0), high);
        sgm__network_put(d, ", rotary_bands=(%s, %s, %lld)", low, high,
                         (long long)sgm__setting_steps(d, KEY("original_max_position_embeddings"), 0));
    } else if (strcmp(type, "linear") != 0) {
        sgm__describe_fail(
            d, SGM_ERROR_UNSUPPORTED,
            "the scaling \"%.40s\" of rotary positions is not known; these are: default, linear, "
            "llama3",
            type);
    }
#undef KEY
}

static void put_attention(sgm__description *d, const variant *v, int64_t features, const char *epsilon)
{
    int64_t heads = sgm__setting_size(d, "num_attention_heads", 0);
    int64_t shared = sgm__setting_size(d, "num_key_value_heads", heads);
    int64_t usual = v->head_size > 0 ? v->head_size : features / heads;
    int64_t size = sgm__setting_size(d, "head_dim", usual > 0 ? usual : 1);
    char base[SGM__NUMBER_TEXT];
    bool biased = sgm__setting_flag(d, "attention_bias", false);
    sgm__describe_heads(d, heads, shared, size);
    refuse_partial(d);
    sgm__network_number(rotary_base(d), base);
    sgm__network_put(d, " + attention(%lld, causal, key_heads=%lld", (long long)heads, (long long)shared);
    if (heads * size != features)
        sgm__network_put(d, ", head_size=%lld", (long long)size);
    if (!biased)
        sgm__network_put(d, v->biased ? ", no_output_bias" : ", no_bias");
    if (v->normed)
        sgm__network_put(d, ", query_norm, epsilon=%s", epsilon);
    sgm__network_put(d, ", rotary, rotary_base=%s", base);
    put_scaling(d);
    sgm__network_put(d, ", name=attention#)");
}

/* Keys beyond the window are not seen by the original: a context within the window makes no difference. A
 * Llama has none by itself, but what transformers 5 remembers while it generates keeps to one that
 * config.json sets. */
static int64_t longest_context(sgm__description *d, const variant *v)
{
    int64_t longest = sgm__setting_steps(d, "max_position_embeddings", 2048);
    bool windowed = v->windowed || sgm__setting_flag(d, "use_sliding_window", false);
    bool usual = v->window > 0 && json_object_get(d->config, "sliding_window") == NULL;
    int64_t window = sgm__setting_steps(d, "sliding_window", usual ? v->window : longest);
    return windowed && window < longest ? window : longest;
}

static void describe_variant(sgm__description *d, const variant *v)
{
    int64_t features = sgm__setting_size(d, "hidden_size", 0);
    int64_t layers = sgm__setting_layers(d, "num_hidden_layers");
    int64_t hidden = sgm__setting_size(d, "intermediate_size", 0);
    const char *activation = sgm__setting_activation(d, "hidden_act", "silu");
    const char *bias = sgm__setting_flag(d, "mlp_bias", false) ? "" : ", no_bias";
    char epsilon[SGM__NUMBER_TEXT];
    sgm__network_number(sgm__setting_number(d, "rms_norm_eps", 1e-6), epsilon);
    sgm__setting_must_be(d, "is_causal", true);
    sgm__describe_task(d, "generate", "generate");
    sgm__describe_context(d, longest_context(d, v));

    sgm__network_put(d, "input(%lld) + embedding(%lld, %lld, name=tokens)", (long long)d->context,
                     (long long)sgm__describe_tokens(d, "vocab_size"), (long long)features);
    sgm__network_put(d, " + %lld * (add(identity, rms_norm(%s, name=attention_norm#)", (long long)layers,
                     epsilon);
    put_attention(d, v, features, epsilon);
    sgm__network_put(d, ") + add(identity, rms_norm(%s, name=hidden_norm#)", epsilon);
    sgm__network_put(d, " + dense(%lld, time_distributed%s, name=hidden#) + glu(%s)", (long long)(2 * hidden),
                     bias, activation);
    sgm__network_put(d, " + dense(%lld, time_distributed%s, name=projection#)))", (long long)features, bias);
    sgm__network_put(d, " + rms_norm(%s, name=norm)", epsilon);
    sgm__network_logits(d, sgm__setting_flag(d, "tie_word_embeddings", false));
}

#define BLOCK "model.layers.#."
/* Sigma's glu takes what is multiplied first, and what is activated second. */
static const sgm__weight weights[] = {
    SGM__AS_IS("tokens.weights", "model.embed_tokens.weight"),
    SGM__COPY("tokens.weights", "lm_head.weight"),
    SGM__AS_IS("attention_norm#.gains", BLOCK "input_layernorm.weight"),
    SGM__TRANSPOSED("attention#.weights", BLOCK "self_attn.q_proj.weight", BLOCK "self_attn.k_proj.weight",
                    BLOCK "self_attn.v_proj.weight"),
    SGM__AS_IS("attention#.biases", BLOCK "self_attn.q_proj.bias", BLOCK "self_attn.k_proj.bias",
               BLOCK "self_attn.v_proj.bias"),
    SGM__AS_IS("attention#.query_gains", BLOCK "self_attn.q_norm.weight"),
    SGM__AS_IS("attention#.key_gains", BLOCK "self_attn.k_norm.weight"),
    SGM__TRANSPOSED("attention#.output_weights", BLOCK "self_attn.o_proj.weight"),
    SGM__AS_IS("attention#.output_biases", BLOCK "self_attn.o_proj.bias"),
    SGM__AS_IS("hidden_norm#.gains", BLOCK "post_attention_layernorm.weight"),
    SGM__TRANSPOSED("hidden#.weights", BLOCK "mlp.up_proj.weight", BLOCK "mlp.gate_proj.weight"),
    SGM__AS_IS("hidden#.biases", BLOCK "mlp.up_proj.bias", BLOCK "mlp.gate_proj.bias"),
    SGM__TRANSPOSED("projection#.weights", BLOCK "mlp.down_proj.weight"),
    SGM__AS_IS("projection#.biases", BLOCK "mlp.down_proj.bias"),
    SGM__AS_IS("norm.gains", "model.norm.weight"),
    SGM__TRANSPOSED("logits.weights", "lm_head.weight"),
};

static const char *const unused[] = {BLOCK "self_attn.rotary_emb.inv_freq", NULL};

#define VARIANT(name, text, ...)                                                                             \
    static void describe_##name(sgm__description *d)                                                         \
    {                                                                                                        \
        describe_variant(d, &(const variant){__VA_ARGS__});                                                  \
    }                                                                                                        \
    const sgm__architecture sgm__##name = {.type = text,                                                     \
                                           .prefix = "model.",                                               \
                                           .describe = describe_##name,                                      \
                                           SGM__WEIGHTS(weights),                                            \
                                           .unused = unused}

VARIANT(llama, "llama", .windowed = true);
VARIANT(mistral, "mistral", .windowed = true, .window = 4096);
VARIANT(qwen2, "qwen2", .biased = true, .window = 4096);
VARIANT(qwen3, "qwen3", .normed = true, .head_size = 128, .window = 4096);
