/* BERT (Devlin et al., 2018) and those that differ from it in details: RoBERTa (Liu et al., 2019) and
 * DistilBERT (Sanh et al., 2019). MiniLM is a BERT by its config.json.
 *
 * Norms come behind each half of a block. A text is one segment, or a pair of texts two, by the field
 * "segments" of the data; it may be shorter than the input, by the field "lengths". */
#include "architectures/architectures.h"

#include <string.h>

/* What config.json says under names that differ. */
typedef struct encoder {
    int64_t features, layers, heads, hidden, first, places, segments;
    const char *activation;
    char epsilon[SGM__NUMBER_TEXT];
} encoder;

static void choose_task(sgm__description *d)
{
    sgm__describe_task(
        d, "embed classify fill",
        d->wanted_classes > 0 || sgm__setting_is_for(d, "ForSequenceClassification")        ? "classify"
        : sgm__setting_is_for(d, "ForMaskedLM") || sgm__setting_is_for(d, "ForPreTraining") ? "fill"
                                                                                            : "embed");
}

static void put_encoder(sgm__description *d, const encoder *e)
{
    int64_t tokens = sgm__describe_tokens(d, "vocab_size");
    sgm__describe_heads(d, e->heads, e->heads, e->features / e->heads);
    sgm__network_put(d, "input(%lld, lengths=lengths) + embedding(%lld, %lld, name=tokens)",
                     (long long)d->context, (long long)tokens, (long long)e->features);
    sgm__network_put(d, " + positions(%lld, first=%lld, name=positions)", (long long)e->places,
                     (long long)e->first);
    /* RoBERTa has one segment, whatever its tokenizer says of the second text. */
    if (e->segments > 0)
        sgm__network_put(d, " + positions(%lld, %s, name=segments)", (long long)e->segments,
                         d->pairs && e->segments > 1 ? "segments=segments" : "same");
    sgm__network_put(d, " + layer_norm(%s, name=embedding_norm)", e->epsilon);
    sgm__network_put(d, " + %lld * (add(identity, attention(%lld, name=attention#))", (long long)e->layers,
                     (long long)e->heads);
    sgm__network_put(d, " + layer_norm(%s, name=attention_norm#)", e->epsilon);
    sgm__network_put(d, " + add(identity, dense(%lld, %s, time_distributed, name=hidden#)",
                     (long long)e->hidden, e->activation);
    sgm__network_put(d, " + dense(%lld, time_distributed, name=projection#))", (long long)e->features);
    sgm__network_put(d, " + layer_norm(%s, name=hidden_norm#))", e->epsilon);
}

/* What follows the encoder; `pooler` is the activation of the layer before the classes. */
static void put_head(sgm__description *d, const encoder *e, const char *pooler, const char *activation)
{
    if (strcmp(d->task, "embed") == 0) {
        sgm__network_put(d, " + %s%s",
                         strcmp(d->pooling, "cls") == 0   ? "select"
                         : strcmp(d->pooling, "max") == 0 ? "global_max_pooling(steps)"
                                                          : "global_average_pooling(steps)",
                         d->normalised ? " + unit_norm" : "");
    } else if (strcmp(d->task, "classify") == 0) {
        int64_t classes = sgm__describe_classes(d);
        sgm__network_put(d, " + select + dense(%lld, %s, name=pooler) + dense(%lld, name=classifier)",
                         (long long)e->features, pooler, (long long)classes);
        sgm__network_cost(d, classes);
    } else {
        sgm__network_put(d, " + dense(%lld, %s, time_distributed, name=transform)", (long long)e->features,
                         activation);
        sgm__network_put(d, " + layer_norm(%s, name=transform_norm)", e->epsilon);
        sgm__network_put(d, " + tied_dense(of=tokens, bias, name=logits) + softmax_cross_entropy");
        sgm__setting_must_be(d, "tie_word_embeddings", true);
    }
}

/* The names that BERT and RoBERTa have in common. */
static encoder read_encoder(sgm__description *d)
{
    encoder e = {.features = sgm__setting_size(d, "hidden_size", 0),
                 .layers = sgm__setting_layers(d, "num_hidden_layers"),
                 .heads = sgm__setting_size(d, "num_attention_heads", 0),
                 .hidden = sgm__setting_size(d, "intermediate_size", 0),
                 .places = sgm__setting_size(d, "max_position_embeddings", 512),
                 .segments = sgm__setting_size(d, "type_vocab_size", 2),
                 .activation = sgm__setting_activation(d, "hidden_act", "gelu")};
    const char *positions = sgm__setting_text(d, "position_embedding_type", "absolute");
    if (strcmp(positions, "absolute") != 0)
        sgm__describe_fail(
            d, SGM_ERROR_UNSUPPORTED,
            "'position_embedding_type' is \"%.40s\"; models are only read where it is \"absolute\"",
            positions);
    sgm__setting_must_be(d, "is_decoder", false);
    sgm__network_number(sgm__setting_number(d, "layer_norm_eps", 1e-12), e.epsilon);
    return e;
}

static void describe_bert(sgm__description *d)
{
    encoder e = read_encoder(d);
    choose_task(d);
    sgm__describe_context(d, e.places);
    put_encoder(d, &e);
    put_head(d, &e, "tanh", e.activation);
}

/* The first vectors of the positions belong to padding, which has none of its own. */
static void describe_roberta(sgm__description *d)
{
    encoder e = read_encoder(d);
    e.first = sgm__setting_token(d, "pad_token_id", 1) + 1;
    choose_task(d);
    sgm__describe_context(d, e.places > e.first ? e.places - e.first : 1);
    put_encoder(d, &e);
    put_head(d, &e, "tanh", "gelu");
}

static void describe_distilbert(sgm__description *d)
{
    encoder e = {.features = sgm__setting_size(d, "dim", 0),
                 .layers = sgm__setting_layers(d, "n_layers"),
                 .heads = sgm__setting_size(d, "n_heads", 0),
                 .hidden = sgm__setting_size(d, "hidden_dim", 0),
                 .places = sgm__setting_size(d, "max_position_embeddings", 512),
                 .activation = sgm__setting_activation(d, "activation", "gelu"),
                 .epsilon = "1e-12"};
    choose_task(d);
    sgm__describe_context(d, e.places);
    put_encoder(d, &e);
    put_head(d, &e, "relu", e.activation);
}

/* --- the tables --- */

/* A matrix (outputs, inputs) and its biases; a norm, of which the oldest files have other names. */
#define DENSE(layer, module)                                                                                 \
    SGM__TRANSPOSED(layer ".weights", module ".weight"), SGM__AS_IS(layer ".biases", module ".bias")
#define NORM(layer, module)                                                                                  \
    SGM__AS_IS(layer ".gains", module ".weight"), SGM__AS_IS(layer ".biases", module ".bias"),               \
        SGM__AS_IS(layer ".gains", module ".gamma"), SGM__AS_IS(layer ".biases", module ".beta")
#define HEADS(q, k, v)                                                                                       \
    SGM__TRANSPOSED("attention#.weights", q ".weight", k ".weight", v ".weight"),                            \
        SGM__AS_IS("attention#.biases", q ".bias", k ".bias", v ".bias")
#define OUTPUT(module)                                                                                       \
    SGM__TRANSPOSED("attention#.output_weights", module ".weight"),                                          \
        SGM__AS_IS("attention#.output_biases", module ".bias")
#define EMBEDDINGS(module)                                                                                   \
    SGM__AS_IS("tokens.weights", module "word_embeddings.weight"),                                           \
        SGM__AS_IS("positions.weights", module "position_embeddings.weight"),                                \
        NORM("embedding_norm", module "LayerNorm")
#define ENCODER(prefix, block)                                                                               \
    EMBEDDINGS(prefix "embeddings."),                                                                        \
        SGM__AS_IS("segments.weights", prefix "embeddings.token_type_embeddings.weight"),                    \
        HEADS(block "attention.self.query", block "attention.self.key", block "attention.self.value"),       \
        OUTPUT(block "attention.output.dense"), NORM("attention_norm#", block "attention.output.LayerNorm"), \
        DENSE("hidden#", block "intermediate.dense"), DENSE("projection#", block "output.dense"),            \
        NORM("hidden_norm#", block "output.LayerNorm")

static const sgm__weight bert_weights[] = {
    ENCODER("bert.", "bert.encoder.layer.#."),
    SGM__BEFORE_HEAD("pooler", "bert.pooler.dense"),
    SGM__HEAD("classifier", "classifier"),
    DENSE("transform", "cls.predictions.transform.dense"),
    NORM("transform_norm", "cls.predictions.transform.LayerNorm"),
    SGM__AS_IS("logits.biases", "cls.predictions.bias"),
    SGM__COPY("tokens.weights", "cls.predictions.decoder.weight"),
    SGM__COPY("logits.biases", "cls.predictions.decoder.bias"),
};
static const char *const bert_unused[] = {
    "bert.embeddings.position_ids", "bert.pooler.*", "classifier.*", "cls.*", "qa_outputs.*", NULL};

static const sgm__weight roberta_weights[] = {
    ENCODER("roberta.", "roberta.encoder.layer.#."),       SGM__BEFORE_HEAD("pooler", "classifier.dense"),
    SGM__HEAD("classifier", "classifier.out_proj"),        DENSE("transform", "lm_head.dense"),
    NORM("transform_norm", "lm_head.layer_norm"),          SGM__AS_IS("logits.biases", "lm_head.bias"),
    SGM__COPY("tokens.weights", "lm_head.decoder.weight"), SGM__COPY("logits.biases", "lm_head.decoder.bias"),
};
static const char *const roberta_unused[] = {
    "roberta.embeddings.position_ids", "roberta.pooler.*", "classifier.*", "lm_head.*", "qa_outputs.*", NULL};

#define BLOCK "distilbert.transformer.layer.#."
static const sgm__weight distilbert_weights[] = {
    EMBEDDINGS("distilbert.embeddings."),
    HEADS(BLOCK "attention.q_lin", BLOCK "attention.k_lin", BLOCK "attention.v_lin"),
    OUTPUT(BLOCK "attention.out_lin"),
    NORM("attention_norm#", BLOCK "sa_layer_norm"),
    DENSE("hidden#", BLOCK "ffn.lin1"),
    DENSE("projection#", BLOCK "ffn.lin2"),
    NORM("hidden_norm#", BLOCK "output_layer_norm"),
    SGM__BEFORE_HEAD("pooler", "pre_classifier"),
    SGM__HEAD("classifier", "classifier"),
    DENSE("transform", "vocab_transform"),
    NORM("transform_norm", "vocab_layer_norm"),
    SGM__AS_IS("logits.biases", "vocab_projector.bias"),
    SGM__COPY("tokens.weights", "vocab_projector.weight"),
};
static const char *const distilbert_unused[] = {"distilbert.embeddings.position_ids",
                                                "pre_classifier.*",
                                                "classifier.*",
                                                "vocab_*",
                                                "qa_outputs.*",
                                                NULL};

#define ARCHITECTURE(name, text, class, like)                                                                \
    const sgm__architecture sgm__##name = {.type = text,                                                     \
                                           .classifier = class "ForSequenceClassification",                  \
                                           .prefix = #like ".",                                              \
                                           .describe = describe_##like,                                      \
                                           SGM__WEIGHTS(like##_weights),                                     \
                                           .unused = like##_unused}
ARCHITECTURE(bert, "bert", "Bert", bert);
ARCHITECTURE(roberta, "roberta", "Roberta", roberta);
ARCHITECTURE(xlm_roberta, "xlm-roberta", "XLMRoberta", roberta);
ARCHITECTURE(distilbert, "distilbert", "DistilBert", distilbert);
