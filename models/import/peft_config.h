/* adapter_config.json of the library PEFT: how large low-rank adapters are, and what multiplies them. */
#ifndef SIGMA_MODELS_PEFT_CONFIG_H
#define SIGMA_MODELS_PEFT_CONFIG_H

#include "tokenizer/text/pattern.h"

/* What PEFT can do with adapters that are not read here: it writes a model without any. */
#define SGM__PEFT_REMEDY                                                                                     \
    "; PEFT can make such adapters a part of the model: write model.merge_and_unload() with "                \
    "save_pretrained, and import that folder"

/* "rank_pattern" or "alpha_pattern": other numbers for the modules that an expression matches. */
typedef struct sgm__peft_pattern {
    sgm__pattern expression;
    char *text; /* as it is in the file */
    double number;
} sgm__peft_pattern;

typedef struct sgm__peft_patterns {
    sgm__peft_pattern *list;
    size_t count;
} sgm__peft_patterns;

typedef struct sgm__peft_config {
    const char *folder;
    int64_t rank;
    double alpha, dropout;
    bool stabilised; /* alpha / sqrt(rank) in the place of alpha / rank */
    sgm__peft_patterns ranks, alphas;
    sgm__matcher matcher;
} sgm__peft_config;

/* Reads the file of a folder, whose name must live as long. What is read until an error is there to be
 * cleared. */
sgm_status sgm__peft_config_read(sgm__peft_config *config, const char *folder);
void sgm__peft_config_clear(sgm__peft_config *config);
/* Rank and alpha of the adapter of one module, "model.layers.0.self_attn.q_proj". */
sgm_status sgm__peft_config_sizes(sgm__peft_config *config, const char *module, int64_t *rank, double *alpha);

#endif
