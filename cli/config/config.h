/* An experiment as a configuration file describes it: the structs that the tables of a file fill, and
 * functions that read, check and write them.
 *
 * Members mirror the keys of the file; their meanings, bounds and defaults are in these tables and
 * in those of the library. A member without a value is NULL, NAN or OPTION_UNSET, an empty list or map. All
 * texts are owned by the config and freed by config_free. What the library makes of a config is in
 * experiment.h. */
#ifndef SGM_CLI_CONFIG_CONFIG_H
#define SGM_CLI_CONFIG_CONFIG_H

#include "config/options.h"
#include <sigma/sigma.h>
#include <stddef.h>

/* Rows of a table whose keys are called like their members: a value, and a group with a table of its own. */
#define OPTION_ROW(type, member, kind_of_value, ...)                                                         \
    {                                                                                                        \
        .row.name = #member, .kind = kind_of_value, .offset = offsetof(type, member), __VA_ARGS__            \
    }
#define OPTION_GROUP_ROW(type, member, table, ...)                                                           \
    OPTION_ROW(type, member, OPTION_GROUP, .children = &(table), __VA_ARGS__)
/* A member of the same name as the library's setting. */
#define OPTION_SETTING_ROW(type, member, table) OPTION_ROW(type, member, OPTION_SETTING, .settings = table)

/* The key of a map of columns that stands for all columns which the map does not name. */
#define EVERY_COLUMN "*"
/* In front of a pattern of `freeze`: what matches is trained, whatever patterns before it say. */
#define TRAINED_MARK '!'

/* One dataset (data.training, .validation, .test). At most one of dataset, csv, inputs (with targets),
 * images, sounds, text, chats, labelled_texts, text_pairs says where it comes from; the other members refine
 * that. */
typedef struct data_config {
    char *dataset;          /* the name of a ready-made one, or text:PATH */
    char *csv;              /* path of a table */
    char *inputs, *targets; /* paths of arrays */
    text_map arrays;        /* more of them, by the fields that they become */
    char *text;             /* path of a text, read as tokens */
    char *chats;            /* path of chats and other texts, read as tokens of a model of others */
    char *labelled_texts, *text_pairs; /* paths of texts for encoders, read as such tokens, too */
    /* Path of a folder with pictures of classes. With data.training only: to which width and height they are
     * scaled (empty: all are of one size), how many channels they have. */
    char *images, *masks; /* masks: of a folder with the masks of all pictures, which have no classes then */
    text_list size;
    int64_t channels;
    /* Path of a folder with sounds of classes. With data.training only: samples a second and seconds to which
     * they are brought, log_mel or waveform, bands, and samples from frame to frame; `window`, which texts
     * have too, are the samples of a frame. */
    char *sounds, *features;
    int64_t rate, mels, hop;
    double seconds;
    /* Path of a folder with texts of classes. */
    char *text_folder;
    /* Of a text, of columns and of folders of texts: file of the tokenizer (NULL: bytes; of chats and of
     * texts for encoders a folder), tokens of an example; of a text alone tokens from one example to the
     * next, parts that go on from minibatch to minibatch. */
    char *tokenizer;
    int64_t window, step, streams;
    bool packing; /* of chats: several examples in a row */
    /* Of a table by the names of its columns, data.training only: what is predicted, what is not used,
     * numbers that are categories, texts; by column the sizes of embeddings, how numbers are scaled, what
     * missing values become ("*": of all other columns), what dates become; the sign before decimals. */
    text_list target, drop, categorical, text_columns;
    text_map embedding, scale, impute, dates;
    char *missing_target; /* refuse or skip */
    char *weights;        /* the column that says how much each row counts */
    char *decimal;
    /* Of a table: rows before the data, the character between cells, the text of missing cells. */
    int64_t skip_rows;
    char *separator, *missing;
    bool skip_ragged;
    bool ignores_unknown; /* no key, but `sigma eval --unknown`: categories that are not known are missing */
    /* Of a table: field names to columns ("0-3"), names of the classes in the targets (of labelled texts
     * their labels), and texts of other columns by column ("1" to "red, green"). */
    text_map fields;
    text_list class_names;
    text_map texts;
    /* Targets that are class numbers: how many classes; and the range of inputs that is brought to 0..1,
     * as two numbers. */
    int64_t classes;
    text_list input_range;
    bool shuffled;
    /* Which part of the examples is used, as shares of each block: `share` of it, behind the first
     * `begin`. */
    double begin, share;
} data_config;

/* The section optimiser.schedule, by the names of the library's settings. */
typedef struct schedule_config {
    char *kind;
    double period, factor, warm_up;
} schedule_config;

/* The section `optimiser`. Members have the names of the library's settings; NAN or OPTION_UNSET leaves
 * the type's default. */
typedef struct optimiser_config {
    char *type;
    double learning_rate, momentum, decay_rate, beta1, beta2, epsilon, weight_decay, clip_value, clip_norm,
        average, tolerance;
    int64_t accumulate, history, population;
    schedule_config schedule;
} optimiser_config;

/* The section data.split: training, validation and test as parts of data.training. */
typedef struct split_config {
    text_list share;     /* numbers: of training, validation, test */
    int64_t folds, fold; /* instead of shares: as many parts, of which `fold` validates */
    char *by;            /* random or stratified */
    char *group, *time;  /* columns, one of them at most */
} split_config;

/* The section `data`: datasets, and how training goes through them. */
typedef struct data_group {
    data_config training, validation, test;
    split_config split;
    int64_t batch;
    bool shuffle, drop_last;
    char *augment;
    int64_t prefetch_threads;
    /* Whether extracted blocks are kept for other runs, "true" or "false" (NULL: where they take long), and
     * in which folder (NULL: the library's). */
    char *cache, *cache_folder;
    /* Of tables by names and of files: fitted to the training data or read from a checkpoint
     * (experiment_prepare), owned; NULL: there is none. No key of a file. */
    sgm_pipeline *pipeline;
    /* Of data.split (experiment_split), owned; NULL: there is none. No key of a file. */
    sgm_split *parts;
    /* Those of the run, which also decode files; 0: the library's. No key of a file. */
    int32_t threads;
} data_group;

/* The section `start_from`: another training whose parameters this one begins with. */
typedef struct start_config {
    char *run; /* a folder or a checkpoint; NULL: there is no section */
    text_list parts, states;
    bool skip_mismatch;
    char *names;
} start_config;

/* The section `operator`: several workers or ranks. Without a type there is none. */
typedef struct operator_config {
    char *type;
    int64_t workers, every, threads, check_every, bucket;
    double timeout, share;
    bool bfloat16;
    bool sharded;
    char *reducer, *handlers;
    text_map reducers;
} operator_config;

/* Texts that a language model goes on with after each epoch. */
typedef struct sample_config {
    text_list prompts;
    int64_t count;
    /* How tokens are drawn (sgm_generation_settings); NaN or OPTION_UNSET: as the hook does. */
    double temperature, top_p, min_p, repetition_penalty;
    int64_t top_k, seed;
    bool greedy, chat;
} sample_config;
#define SAMPLE_COUNT 40 /* tokens, if not given */
/* The hook's text for a prompt; sgm__free. NULL: out of memory. */
char *sample_text(const sample_config *s, const char *prompt);

/* The whole file without its section `search`, which search_file.c reads. */
typedef struct config {
    text_list plugins; /* absolute paths; config_load has loaded them */
    char *name, *network;
    data_group data;
    optimiser_config optimiser;
    text_map initialisers, modifiers; /* by pattern of parameter names */
    text_list adapters;               /* layers such as lora(8) */
    text_list freeze;                 /* patterns of parameter names; TRAINED_MARK in front: an exception */
    text_list approve;                /* patterns of what needs an administrator's approval */
    bool allow_commands;              /* rules may run programs */
    double command_seconds;           /* that a command of a rule may take */
    text_list webhooks;               /* addresses that rules may send to */
    sample_config sample;
    text_list rules, hooks; /* each a text in the library's notation */
    text_list monitors;     /* of plug-ins: NAME or NAME:ARGUMENT */
    operator_config operator;
    char *from; /* a model of others, or another run: its network, unless there is one, and its parameters */
    start_config start_from;
    int64_t epochs, iterations, seed, threads, checkpoint_every;
    char *handler, *precision, *memory, *folder;
    char *class_weights; /* "balanced", until experiment_balance has put them into the network */
    text_map
        places; /* of what was given, by its key: "digits.yaml:3:7: optimiser.momentum". No key of a file */
} config;

/* The outermost keys of a file, and the sections that have files of their own: data/keys.c (data_table: of
 * one dataset) and optimiser.c. */
extern const option_table config_table, data_group_table, data_table, optimiser_table;

/* Reads a file, applies overrides "key=value" in order, then checks the whole. On failure *c is empty.
 * config_parse takes the file's text; `name` stands for the path in messages, and its folder is where
 * relative paths begin. */
sgm_status config_load(config *c, const char *path, const char *const *arguments, size_t count);
sgm_status config_parse(config *c, const char *name, const char *text, size_t length,
                        const char *const *arguments, size_t count);
void config_free(config *c);
/* Where the value of a key was given, for messages: "digits.yaml:3:7: optimiser.momentum", or the key alone
 * if it was not given. Valid as long as *c. */
const char *config_place(const config *c, const char *key);
/* Puts where it stands in front of the newest error, if that is about a rule, a hook or a pattern that is
 * frozen: the library, which finds it beside the network, knows no file. Returns the error's status. */
sgm_status config_fail_at_item(const config *c);
/* Everything that has a value, as YAML that config_load reads; sgm_string_free. */
char *config_text(const config *c);
/* The same of one dataset alone. */
char *config_data_text(const data_config *data);
/* The library's optimiser; the caller owns it. NULL and an error if the values do not go together. */
sgm_optimiser *config_optimiser(const optimiser_config *o);
sgm_dtype config_precision(const config *c);
/* Whether the data is a table whose columns are found by their names: a pipeline makes its examples. */
bool data_config_is_named(const data_config *data);
/* Whether a pipeline makes its examples: it is such a table, or files. */
bool data_config_has_pipeline(const data_config *data);
/* Whether it is texts for an encoder: with classes, or pairs. */
bool data_config_has_texts(const data_config *data);
/* Whether a tokenizer of a model of others reads it: it is such texts, or chats. */
bool data_config_is_of_model(const data_config *data);
/* Whether no source of data is named. */
bool data_config_is_empty(const data_config *data);
/* Whether data.split divides the training data. */
bool data_group_is_split(const data_group *group);
/* Whether there is such data, one of the group's three: named, or a part of a split. */
bool data_group_has(const data_group *group, const data_config *data);

#endif
