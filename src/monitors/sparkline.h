/* A curve of a number over time as one line of block characters, in constant memory.
 *
 * terminal.c adds the training loss to one at each redraw; terminal_line.c draws it. Internal. */
#ifndef SGM_MONITORS_SPARKLINE_H
#define SGM_MONITORS_SPARKLINE_H

#include "base/base.h"

#define SGM__SPARKLINE_POINTS 64 /* points that are kept; even, so that they can be halved */

/* Each point is the mean of `each` consecutive values. When all points are used, neighbours are merged and
 * `each` doubles, so the curve always reaches back to the beginning. All members zero: empty. */
typedef struct sgm__sparkline {
    double points[SGM__SPARKLINE_POINTS];
    size_t count;
    /* Values per point (0 at first, which means 1); values that are in `sum` so far. */
    int64_t each, pending;
    double sum; /* mean of the pending values, scaled by pending / each */
} sgm__sparkline;

/* Values that are not finite are left out. */
void sgm__sparkline_add(sgm__sparkline *line, double value);
/* Draws at most `columns` characters in UTF-8, from ▁ (minimum) to █ (maximum). The scale is logarithmic
 * if the maximum is more than 20 times the minimum. Draws nothing for fewer than two points. */
void sgm__sparkline_append(sgm__text *to, const sgm__sparkline *line, size_t columns);

#endif
