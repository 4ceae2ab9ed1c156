/* A curve as one line of text: how a number went since the beginning. Internal. */
#ifndef SGM_MONITORS_SPARKLINE_H
#define SGM_MONITORS_SPARKLINE_H

#include "base/base.h"

#define SGM__SPARKLINE_POINTS 64 /* that are kept; even */

/* Means of `each` values, of which there are twice as many whenever all points are taken. All zero: empty. */
typedef struct sgm__sparkline {
    double points[SGM__SPARKLINE_POINTS];
    size_t count;
    int64_t each, pending; /* values that make a point (0 at first: 1), values in `sum` */
    double sum;
} sgm__sparkline;

void sgm__sparkline_add(sgm__sparkline *line, double value); /* what is not finite is left out */
/* Draws at most `columns` bars from ▁ (minimum) to █ (maximum), in UTF-8, logarithmic if the
 * maximum is more than 20 times the minimum; nothing for less than two points. */
void sgm__sparkline_append(sgm__text *to, const sgm__sparkline *line, size_t columns);

#endif
