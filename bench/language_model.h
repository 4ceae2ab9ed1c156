/* Networks of the size of small language models, with random weights. */
#ifndef SIGMA_BENCH_LANGUAGE_MODEL_H
#define SIGMA_BENCH_LANGUAGE_MODEL_H

#include <sigma/sigma.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* That of SmolLM-135M: 30 blocks of 576 features, 9 heads, 3 of keys. */
#define SMALL_TOKENS 49152
#define SMALL                                                                                                \
    "input(1024) + embedding(49152, 576, name=tokens) + 30 * (add(identity, rms_norm(1e-5) + attention(9, "  \
    "causal, key_heads=3, no_bias, rotary)) + add(identity, rms_norm(1e-5) + dense(3072, time_distributed, " \
    "no_bias) + glu(silu) + dense(576, time_distributed, no_bias))) + rms_norm(1e-5) + "                     \
    "tied_dense(of=tokens) + softmax_cross_entropy"
#define SMALL_PARAMETERS (49152LL * 576 + 30 * (2 * 576 * 576 + 2 * 192 * 576 + 3 * 1536 * 576))
/* 24 blocks of 1024, 16 heads, 4 of keys, so that weights of 8 bits are more than most third-level caches
 * hold. */
#define LARGE_TOKENS 32000
#define LARGE                                                                                                \
    "input(1024) + embedding(32000, 1024, name=tokens) + 24 * (add(identity, rms_norm(1e-5) + "              \
    "attention(16, "                                                                                         \
    "causal, key_heads=4, no_bias, rotary)) + add(identity, rms_norm(1e-5) + dense(8192, time_distributed, " \
    "no_bias) + glu(silu) + dense(1024, time_distributed, no_bias))) + rms_norm(1e-5) + "                    \
    "tied_dense(of=tokens) + softmax_cross_entropy"
#define LARGE_PARAMETERS (32000LL * 1024 + 24 * (2 * 1024 * 1024 + 2 * 256 * 1024 + 3 * 4096 * 1024))

/* A trainer of one of them, whose precision is "float32", "bfloat16" or "int8"; NULL: an error. */
static inline sgm_trainer *language_model(sgm_env **env, int threads, const char *precision, bool large)
{
    *env = sgm_env_create("model", .seed = 1, .threads = threads,
                          .precision = strcmp(precision, "bfloat16") == 0 ? SGM_BFLOAT16 : SGM_FLOAT32);
    sgm_trainer *trainer = sgm_trainer_create(*env, "model");
    if (sgm_trainer_set_network(trainer, large ? LARGE : SMALL) != SGM_OK)
        return NULL;
    if (strcmp(precision, "int8") == 0 && sgm_trainer_set_inference(trainer, .quantize = "int8") != SGM_OK)
        return NULL;
    return trainer;
}

#endif
