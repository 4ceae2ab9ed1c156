/* The keys `from` and `start_from`: a training that begins with the parameters of a model of others, or of
 * another training. */
#ifndef SGM_CLI_CONFIG_FROM_H
#define SGM_CLI_CONFIG_FROM_H

#include "config/config.h"

/* Gives a configuration without a network that of `from`. */
sgm_status from_take_network(config *c);
/* Loads the parameters of `from`, then those of `start_from`, and prints so unless `quiet`. */
sgm_status from_load(sgm_trainer *trainer, const config *c, bool quiet);
/* Keeps in the run's folder what writes a model of others back, if `from` is one. */
sgm_status from_keep(const config *c);

#endif
