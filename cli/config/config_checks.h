/* Checks of the texts in a file, that its table names: an error says what was expected. */
#ifndef SGM_CLI_CONFIG_CONFIG_CHECKS_H
#define SGM_CLI_CONFIG_CONFIG_CHECKS_H

#include "config/config.h"
#include <sigma/status.h>

sgm_status check_network(const char *value);
sgm_status check_modifier(const char *value);
sgm_status check_initialiser(const char *value);
sgm_status check_reducer(const char *value);
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
/* Of data.`role` in the file `name`. */
sgm_status check_texts_of(const char *name, const char *role, const data_config *data);

#endif
