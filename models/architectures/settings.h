/* Reading config.json for an architecture, and writing its network: what architectures/ stands on.
 *
 * The functions keep the first failure in the description and give a harmless value after it, so that who
 * describes an architecture needs no checks in between. */
#ifndef SIGMA_MODELS_SETTINGS_H
#define SIGMA_MODELS_SETTINGS_H

#include "gguf/names.h"

#include <sigma/base.h>

#include <jansson.h>
#include <stdio.h>

/* Bytes that hold a number as text. */
#define SGM__NUMBER_TEXT 32
/* The largest size that is believed: of a layer, of a sequence. */
#define SGM__LARGEST_SIZE (1 << 24)
#define SGM__MOST_LAYERS 1000

/* What a network of pictures takes, and what is done with a picture before, by preprocessor_config.json. */
typedef struct sgm__picture {
    int64_t width, height, channels;
    bool processed; /* the rest is said, and Sigma can do it */
    char filter[16];
    int64_t shortest; /* of the shorter side, before the middle is cut out; 0: the whole picture is taken */
    double mean[3], deviation[3]; /* of bytes that are divided by 255 */
} sgm__picture;

/* An architecture being described: what config.json says, what the caller wants, and what comes of it. */
typedef struct sgm__description {
    const json_t *config;
    const json_t *processor; /* preprocessor_config.json; NULL: there is none */
    /* Of a file of GGUF, whose metadata have become `config`: messages name its keys. NULL: it is none. */
    const sgm__gguf_architecture *gguf;
    char named[128];            /* a key, for messages */
    const char *path;           /* of config.json, for messages ... */
    const char *processor_path; /* ... and of preprocessor_config.json */
    const char *wanted_task;    /* NULL: what the folder says */
    int64_t wanted_context;     /* 0: as the model */
    bool pairs;                 /* texts come in pairs, of two segments */
    int64_t wanted_classes;     /* 0: as the model; else its last layer is begun anew, with so many outputs */
    const char *const *wanted_names; /* of these classes; NULL: LABEL_0, ... */
    int64_t elements;                /* of all tensors together: no dimension of one is larger */
    int64_t tensor_count;            /* each layer has some */
    /* As files of sentence-transformers say: vectors of texts have length 1; how they come of those of tokens
     * ("mean", "cls", "max"); and how many tokens are read (0: not said). */
    bool normalised;
    const char *pooling;
    int64_t usual_context;
    sgm_status status;

    char task[16];
    int64_t context, longest, tokens, classes;
    sgm__picture picture;
    int64_t queries,
        keys;   /* columns of queries, and of keys and of values each, where three lie side by side */
    FILE *text; /* the network */
} sgm__description;

/* Keeps the first failure: "'PATH': ..." before the message. */
void sgm__describe_fail(sgm__description *d, sgm_status status, const char *format, ...) SGM_PRINTF(3, 4);

/* --- values of config.json; "a.b" is the key b within a. One that is absent or null is `otherwise` --- */
bool sgm__setting_has(const sgm__description *d, const char *key);
/* Whether the key is an object with members; what is there and no object is an error. */
bool sgm__setting_has_members(sgm__description *d, const char *key);
/* A dimension of a tensor, from 1; `otherwise` 0: it must be there. */
int64_t sgm__setting_size(sgm__description *d, const char *key, int64_t otherwise);
/* The steps of a sequence, from 1 to SGM__LARGEST_SIZE; `otherwise` as above. */
int64_t sgm__setting_steps(sgm__description *d, const char *key, int64_t otherwise);
/* From 1 to SGM__MOST_LAYERS; it must be there. */
int64_t sgm__setting_layers(sgm__description *d, const char *key);
/* The number of a token, from 0 to SGM__LARGEST_SIZE. */
int64_t sgm__setting_token(sgm__description *d, const char *key, int64_t otherwise);
/* How many members an object has, at most SGM__LARGEST_SIZE. */
int64_t sgm__setting_members(sgm__description *d, const char *key, int64_t otherwise);
/* Whole numbers from 1 to `most`, a list of at least one and at most `room`; how many. */
size_t sgm__setting_list(sgm__description *d, const char *key, int64_t most, int64_t *numbers, size_t room);
/* A finite number above 0; `otherwise` 0: it must be there. */
double sgm__setting_number(sgm__description *d, const char *key, double otherwise);
bool sgm__setting_flag(sgm__description *d, const char *key, bool otherwise);
/* Belongs to the configuration. */
const char *sgm__setting_text(sgm__description *d, const char *key, const char *otherwise);
/* An activation, by Sigma's name for it. */
const char *sgm__setting_activation(sgm__description *d, const char *key, const char *otherwise);
/* Fails if the flag is there and another one, of which Sigma knows no network. */
void sgm__setting_must_be(sgm__description *d, const char *key, bool value);
/* Whether "architectures" has a class whose name ends so: "ForMaskedLM". */
bool sgm__setting_is_for(const sgm__description *d, const char *ending);

/* --- what comes of it --- */
/* What the model is for: what the caller wants, which must be among `tasks` ("generate embed"), else `usual`.
 */
void sgm__describe_task(sgm__description *d, const char *tasks, const char *usual);
/* The steps of a sequence: what the caller wants, else `longest`, at most 1024. */
void sgm__describe_context(sgm__description *d, int64_t longest);
/* The tokens of the vocabulary, which the key must say. */
int64_t sgm__describe_tokens(sgm__description *d, const char *key);
/* The classes that it tells apart, by "id2label" unless others are wanted. */
int64_t sgm__describe_classes(sgm__description *d);
/* The pictures that it takes (pictures.c): of the size that preprocessor_config.json makes them, else
 * `size`. */
void sgm__describe_pictures(sgm__description *d, int64_t size);
/* The end of a network of pictures, behind a vector of features: classes, and their cost, if it is for
 * these. */
void sgm__network_classes(sgm__description *d);
/* Heads of queries, and of keys and values, of so many columns each. */
void sgm__describe_heads(sgm__description *d, int64_t heads, int64_t shared, int64_t size);
/* Appends to the network. */
void sgm__network_put(sgm__description *d, const char *format, ...) SGM_PRINTF(2, 3);
/* The end of a model of language: a score for each token, and its cost. `tied`: by the weights of `tokens`.
 */
void sgm__network_logits(sgm__description *d, bool tied);
/* The cost of so many classes, by "problem_type", which also says what the network's scores become. */
void sgm__network_cost(sgm__description *d, int64_t classes);
/* A number as the notation has it, in as few digits as say it exactly. */
void sgm__network_number(double number, char text[SGM__NUMBER_TEXT]);

#endif
