/* What several tools say of a run, and which names a pattern means. Internal to `sigma mcp`. */
#ifndef SIGMA_CLI_MCP_TOOLS_SUMMARY_H
#define SIGMA_CLI_MCP_TOOLS_SUMMARY_H

#include "monitors/runs/runs_internal.h"

/* Whether a name matches a pattern with '*' for any characters. */
bool mcp_matches(const char *name, const char *pattern);
/* Whether it matches any of a list of patterns. */
bool mcp_matches_any(const char *name, const json_t *patterns);

/* Values of a run's metrics. */
typedef enum mcp_figure { MCP_NEWEST, MCP_MINIMUM, MCP_MAXIMUM } mcp_figure;
/* Those of the metrics that match any of the patterns (NULL: of all), as an object of numbers by their names.
 */
json_t *mcp_numbers(const sgm__run *run, mcp_figure figure, const json_t *patterns);

/* A new object with the run's name, its state and why, when it began, how far it is, and what people noted of
 * it. */
json_t *mcp_summary(const sgm__run *run);

#endif
