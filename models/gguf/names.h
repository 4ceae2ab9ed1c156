/* What files of GGUF and folders of transformers have in common: which key of metadata is which of
 * config.json, and which tensor is which, for each architecture.
 *
 * By this a file becomes a folder: config.json is put together, and tensors get the names that they have
 * there, so that whatever stands on folders goes for both. A new architecture is a table in names.c. */
#ifndef SIGMA_MODELS_GGUF_NAMES_H
#define SIGMA_MODELS_GGUF_NAMES_H

#include "gguf/gguf.h"

#include <jansson.h>

/* A key of config.json, and what stands behind the architecture's name in the metadata. */
typedef struct sgm__gguf_setting {
    const char *own;    /* "hidden_size" */
    const char *theirs; /* "embedding_length" */
    bool fraction;      /* a float, else a whole number */
    double otherwise;   /* what it is where it is not said; 0: it must be */
} sgm__gguf_setting;

/* A '#' stands for the number of the block. */
typedef struct sgm__gguf_name {
    const char *own;    /* "model.layers.#.self_attn.q_proj.weight" */
    const char *theirs; /* "blk.#.attn_q.weight" */
    /* llama.cpp has the n rows of each head in the order 0, n / 2, 1, n / 2 + 1, ...: the key of config.json
     * that says how many heads there are. NULL: they are in order. */
    const char *heads;
    bool transposed; /* (inputs, outputs) in a folder */
} sgm__gguf_name;

typedef struct sgm__gguf_architecture {
    const char *type;                  /* "general.architecture" */
    const char *model_type;            /* of config.json */
    const char *activation;            /* the key of config.json, and ... */
    const char *activations[3];        /* ... what it may be, the usual one first */
    const sgm__gguf_setting *settings; /* both end with a row of NULL */
    const sgm__gguf_name *names;
    bool rotary; /* its attention has rotary positions, and heads of a size of their own */
} sgm__gguf_architecture;

/* The architecture of a file, or that of "model_type" in config.json; NULL: it is not known. */
const sgm__gguf_architecture *sgm__gguf_architecture_of(const char *type, size_t size);
const sgm__gguf_architecture *sgm__gguf_architecture_for(const char *model_type);
/* Those of files, from 0; NULL past the last. Some are there several times, for several of config.json. */
const sgm__gguf_architecture *sgm__gguf_architecture_at(size_t index);

/* A tensor's row, by its name in a file, in a folder; NULL: there is none. */
const sgm__gguf_name *sgm__gguf_name_of(const sgm__gguf_architecture *a, const char *theirs);
const sgm__gguf_name *sgm__gguf_name_for(const sgm__gguf_architecture *a, const char *own);
/* The other name of a tensor: `to`, with the number that `name` has where `from` has '#'; free with free.
 * NULL and an error: out of memory. */
char *sgm__gguf_rename(const char *from, const char *to, const char *name);

/* --- config.json (config.c) --- */
/* What config.json of the same model would say; the caller releases it. */
sgm_status sgm__gguf_config(const sgm__gguf *file, const sgm__gguf_architecture *a, json_t **config);
/* A model of a folder, which has been read, as it is to be written. */
typedef struct sgm__gguf_model {
    const sgm__gguf_architecture *a;
    const json_t *config;
    int64_t head_size, longest; /* numbers of a head; steps that it was trained for */
} sgm__gguf_model;
/* Adds what config.json says to metadata; an error names what a file of GGUF does not have. */
sgm_status sgm__gguf_put_config(sgm__gguf_draft *draft, const sgm__gguf_model *model);

/* --- rotary positions that are stretched as those of Llama 3.1 (frequencies.c) --- */
#define SGM__GGUF_FREQUENCIES "rope_freqs.weight"
/* What the factors of each pair of numbers come of. */
typedef struct sgm__gguf_bands {
    double base, factor, low, high;
    int64_t steps; /* that the model was first trained for */
} sgm__gguf_bands;
/* Whether config.json has such ones. */
bool sgm__gguf_has_bands(const sgm__gguf_model *model, sgm__gguf_bands *bands);
void sgm__gguf_bands_factors(const sgm__gguf_bands *bands, float *factors, size_t count);
/* Finds all but the base by the factors; false: they come of no bands. */
bool sgm__gguf_bands_find(sgm__gguf_bands *bands, const float *factors, size_t count);

#endif
