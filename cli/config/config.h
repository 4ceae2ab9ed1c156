/* An experiment as a file describes it. */
#ifndef SGM_CLI_CONFIG_CONFIG_H
#define SGM_CLI_CONFIG_CONFIG_H

#include "config/options.h"
#include <sigma/sigma.h>

typedef struct data_config {
    char *dataset;          /* the name of a ready-made one, */
    char *csv;              /* or a table, */
    char *inputs, *targets; /* or files of arrays, */
    char *text;             /* or a text as tokens */
    char *tokenizer;
    int64_t window, step, streams;
    int64_t skip_rows;
    char *separator, *missing;
    bool skip_ragged;
    text_map fields;
    text_list class_names;
    text_map texts; /* by column */
    int64_t classes;
    text_list input_range;
    bool shuffled;
    double begin, share;
} data_config;

typedef struct schedule_config {
    char *kind;
    double period, factor, warm_up;
} schedule_config;

typedef struct optimiser_config {
    char *type;
    double learning_rate, momentum, decay_rate, beta1, beta2, epsilon, weight_decay, clip_value, clip_norm,
        average, tolerance;
    int64_t accumulate, history;
    schedule_config schedule;
} optimiser_config;

typedef struct data_group {
    data_config training, validation, test;
    int64_t batch;
    bool shuffle, drop_last;
    char *augment;
    int64_t prefetch_threads;
} data_group;

typedef struct start_config {
    char *run; /* a folder or a checkpoint */
    text_list parts, states;
    bool skip_mismatch;
    char *names;
} start_config;

typedef struct operator_config {
    char *type;
    int64_t workers, every, threads, check_every, bucket;
    double timeout;
    bool bfloat16;
    bool sharded;
    char *reducer, *handlers;
    text_map reducers;
} operator_config;

typedef struct config {
    char *name, *network;
    data_group data;
    optimiser_config optimiser;
    text_map initialisers, modifiers;
    text_list freeze;
    text_list rules, hooks;
    operator_config operator; /* of workers; without a type: none */
    start_config start_from;
    int64_t epochs, iterations, seed, threads, checkpoint_every;
    char *handler, *precision, *folder;
} config;

extern const option config_table[];
extern const size_t config_table_count;

/* Whether there is one: a type that is not none. */
bool config_has_operator(const operator_config *o);
sgm_operator *config_operator(const operator_config *o);
/* The file (NULL: none), then the arguments "key=value". On failure *c is empty. */
sgm_status config_load(config *c, const char *path, const char *const *arguments, size_t count);
sgm_status config_parse(config *c, const char *name, const char *text, size_t length,
                        const char *const *arguments, size_t count);
void config_free(config *c);
char *config_text(const config *c); /* sgm_string_free */
sgm_optimiser *config_optimiser(const optimiser_config *o);
sgm_dtype config_precision(const config *c);
bool data_config_is_empty(const data_config *data);

#endif
