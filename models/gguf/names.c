/* The tables between files of GGUF and folders of transformers. */
#include "gguf/names.h"
#include "text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK "model.layers.#."
#define PLAIN(own, theirs)                                                                                   \
    {                                                                                                        \
        own, theirs, NULL, false                                                                             \
    }
#define BOTH(own, theirs) PLAIN(own ".weight", theirs ".weight"), PLAIN(own ".bias", theirs ".bias")

/* --- Llama and its relatives --- */

static const sgm__gguf_setting llama_settings[] = {
    {"max_position_embeddings", "context_length", false, 0},
    {"hidden_size", "embedding_length", false, 0},
    {"num_hidden_layers", "block_count", false, 0},
    {"intermediate_size", "feed_forward_length", false, 0},
    {"num_attention_heads", "attention.head_count", false, 0},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", true, 1e-6},
    {NULL, NULL, false, 0}};

#define HEADS(own, theirs, heads)                                                                            \
    {own ".weight", theirs ".weight", heads, false},                                                         \
    {                                                                                                        \
        own ".bias", theirs ".bias", heads, false                                                            \
    }
#define LLAMA_NAMES(query_heads, key_heads)                                                                  \
    PLAIN("model.embed_tokens.weight", "token_embd.weight"),                                                 \
        PLAIN("model.norm.weight", "output_norm.weight"), PLAIN("lm_head.weight", "output.weight"),          \
        PLAIN(BLOCK "input_layernorm.weight", "blk.#.attn_norm.weight"),                                     \
        HEADS(BLOCK "self_attn.q_proj", "blk.#.attn_q", query_heads),                                        \
        HEADS(BLOCK "self_attn.k_proj", "blk.#.attn_k", key_heads),                                          \
        BOTH(BLOCK "self_attn.v_proj", "blk.#.attn_v"), BOTH(BLOCK "self_attn.o_proj", "blk.#.attn_output"), \
        PLAIN(BLOCK "self_attn.q_norm.weight", "blk.#.attn_q_norm.weight"),                                  \
        PLAIN(BLOCK "self_attn.k_norm.weight", "blk.#.attn_k_norm.weight"),                                  \
        PLAIN(BLOCK "post_attention_layernorm.weight", "blk.#.ffn_norm.weight"),                             \
        BOTH(BLOCK "mlp.gate_proj", "blk.#.ffn_gate"), BOTH(BLOCK "mlp.up_proj", "blk.#.ffn_up"),            \
        BOTH(BLOCK "mlp.down_proj", "blk.#.ffn_down"),                                                       \
    {                                                                                                        \
        NULL, NULL, NULL, false                                                                              \
    }
static const sgm__gguf_name llama_names[] = {LLAMA_NAMES("num_attention_heads", "num_key_value_heads")};
static const sgm__gguf_name qwen_names[] = {LLAMA_NAMES(NULL, NULL)};

/* --- GPT-2 --- */

static const sgm__gguf_setting gpt2_settings[] = {
    {"n_positions", "context_length", false, 1024},
    {"n_embd", "embedding_length", false, 0},
    {"n_layer", "block_count", false, 0},
    {"n_inner", "feed_forward_length", false, 0},
    {"n_head", "attention.head_count", false, 0},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", true, 1e-5},
    {NULL, NULL, false, 0}};

#define TRANSPOSED(own, theirs)                                                                              \
    {own ".weight", theirs ".weight", NULL, true}, PLAIN(own ".bias", theirs ".bias")
static const sgm__gguf_name gpt2_names[] = {PLAIN("transformer.wte.weight", "token_embd.weight"),
                                            PLAIN("transformer.wpe.weight", "position_embd.weight"),
                                            BOTH("transformer.ln_f", "output_norm"),
                                            PLAIN("lm_head.weight", "output.weight"),
                                            BOTH("transformer.h.#.ln_1", "blk.#.attn_norm"),
                                            TRANSPOSED("transformer.h.#.attn.c_attn", "blk.#.attn_qkv"),
                                            TRANSPOSED("transformer.h.#.attn.c_proj", "blk.#.attn_output"),
                                            BOTH("transformer.h.#.ln_2", "blk.#.ffn_norm"),
                                            TRANSPOSED("transformer.h.#.mlp.c_fc", "blk.#.ffn_up"),
                                            TRANSPOSED("transformer.h.#.mlp.c_proj", "blk.#.ffn_down"),
                                            {NULL, NULL, NULL, false}};

/* --- the architectures --- */

#define LLAMA(theirs, own, table)                                                                            \
    {                                                                                                        \
        .type = theirs, .model_type = own, .activation = "hidden_act", .activations = {"silu", "swish"},     \
        .settings = llama_settings, .names = table, .rotary = true                                           \
    }
/* llama.cpp knows no Mistral of its own. Of several with one type the first one is read. */
static const sgm__gguf_architecture architectures[] = {
    LLAMA("llama", "llama", llama_names),
    LLAMA("qwen2", "qwen2", qwen_names),
    LLAMA("qwen3", "qwen3", qwen_names),
    {.type = "gpt2",
     .model_type = "gpt2",
     .activation = "activation_function",
     .activations = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"},
     .settings = gpt2_settings,
     .names = gpt2_names},
    LLAMA("llama", "mistral", llama_names),
};

const sgm__gguf_architecture *sgm__gguf_architecture_at(size_t index)
{
    return index < sizeof architectures / sizeof *architectures ? &architectures[index] : NULL;
}

const sgm__gguf_architecture *sgm__gguf_architecture_of(const char *type, size_t size)
{
    const sgm__gguf_architecture *a;
    for (size_t i = 0; (a = sgm__gguf_architecture_at(i)) != NULL; i++)
        if (strlen(a->type) == size && memcmp(a->type, type, size) == 0)
            return a;
    return NULL;
}

const sgm__gguf_architecture *sgm__gguf_architecture_for(const char *model_type)
{
    const sgm__gguf_architecture *a;
    for (size_t i = 0; (a = sgm__gguf_architecture_at(i)) != NULL; i++)
        if (strcmp(a->model_type, model_type) == 0)
            return a;
    return NULL;
}

/* --- names of tensors --- */

/* Whether a name is the pattern with a number in the place of '#', whose digits are *digits. */
static bool matches(const char *pattern, const char *name, const char **digits, size_t *count)
{
    *digits = "";
    *count = 0;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != '#') {
            if (*name++ != *pattern)
                return false;
            continue;
        }
        *digits = name;
        while (isdigit((unsigned char)*name))
            name++;
        *count = (size_t)(name - *digits);
        if (*count == 0)
            return false;
    }
    return *name == '\0';
}

const sgm__gguf_name *sgm__gguf_name_of(const sgm__gguf_architecture *a, const char *theirs)
{
    const char *digits;
    size_t count;
    for (const sgm__gguf_name *row = a->names; row->own != NULL; row++)
        if (matches(row->theirs, theirs, &digits, &count))
            return row;
    return NULL;
}

const sgm__gguf_name *sgm__gguf_name_for(const sgm__gguf_architecture *a, const char *own)
{
    const char *digits;
    size_t count;
    for (const sgm__gguf_name *row = a->names; row->own != NULL; row++)
        if (matches(row->own, own, &digits, &count))
            return row;
    return NULL;
}

char *sgm__gguf_rename(const char *from, const char *to, const char *name)
{
    const char *digits, *place = strchr(to, '#');
    size_t count;
    if (!matches(from, name, &digits, &count) || place == NULL)
        return sgm__new_text("%s", to);
    return sgm__new_text("%.*s%.*s%s", (int)(place - to), to, (int)count, digits, place + 1);
}
