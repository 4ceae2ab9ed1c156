/* Curves of metrics: points of a run's metrics.jsonl over iterations, epochs or seconds. Internal to
 * `sigma mcp`. */
#ifndef SIGMA_CLI_MCP_TOOLS_CURVE_H
#define SIGMA_CLI_MCP_TOOLS_CURVE_H

#include "base/base.h"
#include <jansson.h>

typedef struct mcp_point {
    double x, y, branch;
} mcp_point;
typedef struct mcp_curve {
    mcp_point *points; /* in the order of the file */
    size_t count;
} mcp_curve;

/* The points of a metric that lie from `from` to `to`; `columns` as sgm__run_columns gives them. Freed with
 * mcp_curve_free, also after a failure. */
sgm_status mcp_curve_read(const json_t *columns, const char *metric, const char *axis, double from, double to,
                          mcp_curve *curve);
void mcp_curve_free(mcp_curve *curve);
/* Replaces each value by the moving average of those up to it: `share` of the average stays at each point,
 * 0: nothing is done. The first points are weighed so that the average does not begin at 0; a new branch
 * begins anew. */
void mcp_curve_smooth(mcp_curve *curve, double share);
/* Keeps at most so many points (at least 2), each one of the curve's own: of each stretch the one that spans
 * the largest triangle with its neighbours, so that peaks stay (Steinarsson's
 * largest-triangle-three-buckets). */
void mcp_curve_thin(mcp_curve *curve, size_t limit);

#endif
