/* Values of a JSON file, whose errors name the file and the place. */
#ifndef SIGMA_MODELS_JSON_H
#define SIGMA_MODELS_JSON_H

#include "tokenizer/tokenizer.h"

#include <jansson.h>

/* Sequences may hold sequences, so many deep; a file has so many steps at most. */
#define SGM__DEEPEST 8
#define SGM__MOST_STEPS 256

/* Numbers of tokens may have gaps, but not so many that a small file takes much memory. */
#define SGM__MOST_GAPS (1u << 20)

/* A value and where it is: "pre_tokenizer.pretokenizers[1]". */
typedef struct sgm__node {
    const json_t *value; /* NULL: there is none */
    const char *file;
    char place[120];
} sgm__node;

/* Reads a file that holds an object; the caller frees it with json_decref. NULL and an error if it does not.
 */
json_t *sgm__json_load(const char *path);
/* The same of a tokenizer_config.json, whose numbers are real ones: where the length of texts has no limit
 * transformers writes 1000000000000000019884624838656, which no integer holds. */
json_t *sgm__json_load_settings(const char *path);
sgm__node sgm__node_get(const sgm__node *parent, const char *key);
sgm__node sgm__node_at(const sgm__node *parent, size_t index);
/* An error at a place: "FILE: PLACE: ...". */
sgm_status sgm__node_fail(const sgm__node *node, sgm_status status, const char *format, ...) SGM_PRINTF(3, 4);
/* The newest error, with the place in front. */
sgm_status sgm__node_within(const sgm__node *node, sgm_status status);

/* Members of an object. What is missing or null has the default; what has another type is an error. */
sgm_status sgm__node_bool(const sgm__node *parent, const char *key, bool missing, bool *out);
/* From 0 to `most`. */
sgm_status sgm__node_count(const sgm__node *parent, const char *key, uint64_t most, uint64_t *out);
/* A text that must be there; it lives as long as the file, `size` as given by JSON. */
sgm_status sgm__node_text(const sgm__node *parent, const char *key, const char **out, size_t *size);
/* A copy of a text; NULL where there is none. */
sgm_status sgm__node_copy(const sgm__node *parent, const char *key, char **out, size_t *size);
/* An array that must be there. */
sgm_status sgm__node_array(const sgm__node *parent, const char *key, sgm__node *out);

/* Parts of tokenizer.json. */
/* The member "vocab": tokens and their numbers. */
sgm_status sgm__read_vocabulary(sgm__vocabulary *vocabulary, const sgm__node *node);
sgm_status sgm__read_model(sgm_pretrained_tokenizer *tokenizer, const sgm__node *node);
sgm_status sgm__read_normalizer(sgm__normalizers *normalizers, const sgm__node *node, int depth);
sgm_status sgm__read_splitter(sgm__splitters *splitters, const sgm__node *node, int depth);
sgm_status sgm__read_decoder(sgm__decoders *decoders, const sgm__node *node, int depth);
sgm_status sgm__read_template(sgm_pretrained_tokenizer *tokenizer, const sgm__node *node, int depth);
/* {"String": "..."} or {"Regex": "..."}. */
sgm_status sgm__read_pattern(const sgm__node *parent, sgm__pattern *pattern);
/* Calls `read` for each member of an array within a Sequence. */
#define SGM__READ_SEQUENCE(node, key, depth, read, into)                                                     \
    do {                                                                                                     \
        sgm__node list;                                                                                      \
        if ((depth) >= SGM__DEEPEST)                                                                         \
            return sgm__node_fail(node, SGM_ERROR_LIMIT, "more than %d sequences within each other",         \
                                  SGM__DEEPEST);                                                             \
        SGM__PASS(sgm__node_array(node, key, &list));                                                        \
        for (size_t step = 0; step < json_array_size(list.value); step++) {                                  \
            const sgm__node one = sgm__node_at(&list, step);                                                 \
            SGM__PASS(read(into, &one, (depth) + 1));                                                        \
        }                                                                                                    \
    } while (0)

#endif
