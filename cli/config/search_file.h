/* An experiment with a section `search:`. */
#ifndef SGM_CLI_CONFIG_SEARCH_FILE_H
#define SGM_CLI_CONFIG_SEARCH_FILE_H

#include "config/config.h"

typedef struct search_config {
    char *method, *objective, *goal;
    text_map values; /* for the help only; they are read with their places */
    int64_t trials, seed, minimum_epochs, at_once;
    double factor;
} search_config;

typedef struct search_root {
    search_config search;
} search_root;

typedef struct search_file {
    char *path, *text; /* as it was when it was read */
    size_t length;
    const char **overrides; /* of the experiment; texts are the caller's */
    size_t override_count;
    search_root root;
    sgm_search_values values[SGM_SEARCH_VALUES];
    size_t value_count;
    config base; /* the experiment with the first choice of each value */
} search_file;

extern const option search_table[];
extern const size_t search_table_count;

/* The file, then arguments "key=value", those of the section as "search.key=value". On failure *f is empty.
 */
sgm_status search_file_load(search_file *f, const char *path, const char *const *arguments, size_t count);
void search_file_free(search_file *f);
/* The experiment with these values. On failure *c is empty. */
sgm_status search_file_config(const search_file *f, const sgm_trial_value *values, size_t count, config *c);
/* All of it as YAML, which can be read again; sgm_string_free. */
char *search_file_text(const search_file *f);
/* Method and goal as the library has them. */
sgm_search_method search_file_method(const search_file *f);
sgm_search_goal search_file_goal(const search_file *f);

#endif
