/* The table of architectures: for each a network in notation, and which tensors are which parameters.
 *
 * A new architecture is a file here with one constant, and a row in table.c. Its function `describe` reads
 * config.json by the functions of architectures/settings.h, which keep the first failure, so that it needs no
 * checks, and writes the network. Its rows pair parameters with tensors. */
#ifndef SIGMA_MODELS_ARCHITECTURES_H
#define SIGMA_MODELS_ARCHITECTURES_H

#include "architectures/settings.h"

#include <stddef.h>

/* The most tensors that one parameter is made of. */
#define SGM__MOST_PARTS 3

/* How one parameter is made. A '#' in `own` stands for the number that the notation gives a layer
 * (name=norm#), in `theirs` for the number of the block, from 0; an '@' for a number that both names have, in
 * the same order: "stage@_layer@.weights" is of "stages.@.layers.@.weight". Where a name is given several
 * times in the table, the first one whose tensors are in the files counts. */
typedef struct sgm__weight {
    const char *own; /* "attention#.weights" */
    const char
        *theirs[SGM__MOST_PARTS]; /* "h.#.attn.c_attn.weight"; several lie side by side in the own one */
    bool transposed;              /* theirs are (outputs, inputs) */
    bool head;                    /* of the layer that another number of classes begins anew */
    bool before_head;             /* begun anew with that one where the files have no such tensor */
    bool copy;                    /* the same numbers again: not read, but written where the files had them */
} sgm__weight;

typedef struct sgm__architecture {
    const char *type;       /* "model_type" in config.json */
    const char *classifier; /* the class of transformers that tells classes apart; NULL: there is none */
    const char *prefix;     /* of names that files without a head leave out: "transformer." */
    void (*describe)(sgm__description *d);
    const sgm__weight *weights;
    size_t weight_count;
    /* Names of tensors that may be there and that a network does without, such as masks, or heads for other
     * tasks; a '*' at the end stands for anything. NULL at the end. */
    const char *const *unused;
} sgm__architecture;

/* Rows: a parameter, then the tensors that are side by side in it. Transposed ones are (outputs, inputs). */
#define SGM__AS_IS(parameter, ...)                                                                           \
    {                                                                                                        \
        .own = parameter, .theirs = { __VA_ARGS__ }                                                          \
    }
#define SGM__TRANSPOSED(parameter, ...)                                                                      \
    {                                                                                                        \
        .own = parameter, .theirs = {__VA_ARGS__}, .transposed = true                                        \
    }
#define SGM__HEAD(layer, module)                                                                             \
    {.own = layer ".weights", .theirs = {module ".weight"}, .transposed = true, .head = true},               \
    {                                                                                                        \
        .own = layer ".biases", .theirs = {module ".bias"}, .head = true                                     \
    }
#define SGM__BEFORE_HEAD(layer, module)                                                                      \
    {.own = layer ".weights", .theirs = {module ".weight"}, .transposed = true, .before_head = true},        \
    {                                                                                                        \
        .own = layer ".biases", .theirs = {module ".bias"}, .before_head = true                              \
    }
#define SGM__COPY(parameter, tensor)                                                                         \
    {                                                                                                        \
        .own = parameter, .theirs = {tensor}, .copy = true                                                   \
    }
/* What batch_norm has, of which the statistics are not trained. */
#define SGM__BATCH_NORM(layer, module)                                                                       \
    SGM__AS_IS(layer ".gains", module ".weight"), SGM__AS_IS(layer ".biases", module ".bias"),               \
        SGM__AS_IS(layer ".means", module ".running_mean"),                                                  \
        SGM__AS_IS(layer ".variances", module ".running_var")
#define SGM__WEIGHTS(table) .weights = table, .weight_count = sizeof(table) / sizeof *(table)

/* NULL past the last one. */
const sgm__architecture *sgm__architecture_at(size_t index);

extern const sgm__architecture sgm__gpt2, sgm__llama, sgm__mistral, sgm__qwen2, sgm__qwen3, sgm__bert,
    sgm__roberta, sgm__xlm_roberta, sgm__distilbert, sgm__vit, sgm__resnet, sgm__mobilenet_v2;

#endif
