/* The configuration of a run for those who list and compare runs: the page over a folder of runs, `sigma
 * mcp`. Internal. */
#ifndef SIGMA_CLI_RUNS_FLAT_H
#define SIGMA_CLI_RUNS_FLAT_H

#include "base/base.h"
#include <jansson.h>

/* The text of a config.yaml as one flat object, {"optimiser.type": "adam", ...}; one that is no map gives an
 * empty object. NULL and an error if it is no YAML. Any thread. */
json_t *flat_configuration(const char *text, size_t length);

#endif
