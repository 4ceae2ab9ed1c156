/* The file of `sigma search`: an experiment (config.h) with a section `search:` that says which values to
 * try.
 *
 * The file's text is kept, because each trial's configuration is made by reading it again with that
 * trial's values as overrides (search_file_config): so a trial's values pass the same checks as arguments
 * of `sigma train`. */
#ifndef SGM_CLI_CONFIG_SEARCH_FILE_H
#define SGM_CLI_CONFIG_SEARCH_FILE_H

#include "config/config.h"

/* The section `search`, without its values. */
typedef struct search_config {
    char *method, *objective, *goal, *pruning;
    text_map values; /* for the help only; the values are read into search_file.values */
    int64_t trials, startup_trials, seed, minimum_epochs, prune_after_trials, prune_after_epochs, at_once;
    double factor;
} search_config;

/* A map with the one key `search`, so that messages and arguments name keys as search.trials. */
typedef struct search_root {
    search_config search;
} search_root;

/* A search as it was read. Everything is owned except the texts of `overrides`, which are the caller's.
 *
 *     search:
 *       method: random
 *       trials: 20
 *       values:
 *         optimiser.learning_rate: {from: 1e-4, to: 0.1, scale: log}
 *         data.batch: [16, 32, 64] */
typedef struct search_file {
    char *path, *text; /* text: of the whole file, when it was read */
    size_t length;
    const char **overrides; /* arguments for the experiment */
    size_t override_count;
    search_root root;
    sgm_search_values values[SGM_SEARCH_VALUES]; /* what is tried; names and choices are owned */
    size_t value_count;
    /* The experiment with the first choice (or the beginning of the range) of each value. */
    config base;
} search_file;

extern const option_table search_table;

/* Reads a file and arguments "key=value"; those of the section are "search.key=value". On failure *f is
 * empty. */
sgm_status search_file_load(search_file *f, const char *path, const char *const *arguments, size_t count);
void search_file_free(search_file *f);
/* The experiment with these values; free with config_free. On failure *c is empty. */
sgm_status search_file_config(const search_file *f, const sgm_trial_value *values, size_t count, config *c);
/* The whole search as YAML that search_file_load reads; sgm_string_free. */
char *search_file_text(const search_file *f);
/* Method, goal and pruning as the library's enumerations. */
sgm_search_method search_file_method(const search_file *f);
sgm_search_goal search_file_goal(const search_file *f);
sgm_search_pruning search_file_pruning(const search_file *f);

#endif
