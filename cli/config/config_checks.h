/* Checks of texts in a configuration file. The tables of config.h name them as `check` of an option.
 *
 * Each takes one text (a value, an item of a list, a value of a map) and fails with an error that says
 * what was expected; options.c puts the place in the file in front. Most ask the library's own parser and
 * throw away what it makes. Checks that need several options at once are in data/checks.c and config.c. */
#ifndef SGM_CLI_CONFIG_CONFIG_CHECKS_H
#define SGM_CLI_CONFIG_CONFIG_CHECKS_H

#include "config/config.h"
#include <sigma/base.h>

/* Names of sgm_scale, sgm_impute, sgm_sound_features and sgm_date_form, in their order. */
#define SCALE_NAMES 4
#define FEATURES_NAMES 2
#define IMPUTE_NAMES 5
#define DATE_NAMES 3
extern const char *const scale_names[SCALE_NAMES];
extern const char *const features_names[FEATURES_NAMES];
extern const char *const impute_names[IMPUTE_NAMES];
extern const char *const date_names[DATE_NAMES];

sgm_status check_network(const char *value);
sgm_status check_network_or_auto(const char *value);
/* The notation written anew, with the names that its layers have here; sgm__free. */
char *real_network(const char *value);
sgm_status check_column_scale(const char *value);
sgm_status check_impute(const char *value);
sgm_status check_missing_target(const char *value);
sgm_status check_embedding(const char *value);
sgm_status check_dates(const char *value);
sgm_status check_decimal(const char *value);
sgm_status check_modifier(const char *value);
sgm_status check_initialiser(const char *value);
/* A text that a language model can begin with. */
sgm_status check_prompt(const char *value);
sgm_status check_freeze(const char *value);
sgm_status check_reducer(const char *value);
sgm_status check_adapter(const char *value);
sgm_status check_rule(const char *value);
sgm_status check_hook(const char *value);
sgm_status check_part(const char *value);
sgm_status check_optimiser(const char *value);
sgm_status check_name(const char *value);
sgm_status check_operator(const char *value);
sgm_status check_handlers(const char *value);
sgm_status check_dataset(const char *value);
sgm_status check_texts(const char *value);
sgm_status check_separator(const char *value);
sgm_status check_range_number(const char *value);
sgm_status check_columns(const char *value);
#define CLASS_WEIGHTS_OF_ONES_OWN                                                                            \
    "weights of one's own are an argument of the cost, in the order of the classes: "                        \
    "softmax_cross_entropy(class_weights=(1, 2.5))"
sgm_status check_class_weights(const char *value);
sgm_status check_share(const char *value);
sgm_status check_features(const char *value);
sgm_status check_split_by(const char *value);
sgm_status check_cache(const char *value);
sgm_status check_side(const char *value);
/* Fails with the nearest of the names, or all of them, if the value is none. */
sgm_status check_choice(const char *value, const char *const *names, size_t count);
/* The first key of a group says what the others refine: fails if another is given without it. */
sgm_status check_first_key(const char *name, const char *group, const option_table *table, const void *base);
/* Checks the section optimiser of the file `name`, whose keys were given at `places` (optimiser.c). */
sgm_status optimiser_check(const char *name, const optimiser_config *o, const text_map *places);
/* Checks training, validation and test of the section data of the file `name`, each for itself and with the
 * others (data/checks.c). `from` is the model that the training begins with; NULL: none. */
sgm_status check_datasets(const char *name, const data_group *group, const char *from);
/* Checks the section data.split of the file `name` with what it splits (data/split.c). */
sgm_status split_check(const char *name, const data_group *group);
/* Checks data.ROLE.texts of the file `name`: keys are columns, which a map's check does not see. */
sgm_status check_texts_of(const char *name, const char *role, const data_config *data);

#endif
