/* The curve of sparkline.h: means of growing width, and their drawing. Every mean divides each value
 * before it adds, so that sums of large numbers do not overflow. A value that comes after k halvings is
 * part of a mean of 2^k values, so all points of the curve cover the same number of values. */
#include "monitors/sparkline.h"

#include <math.h>

/* Ratio of maximum to minimum from which on the bars are logarithmic: on a linear scale everything after
 * the steep beginning of a loss would be one flat line. */
#define LOG_FROM 20

/* Merges neighbouring points into their means. */
static void halve(sgm__sparkline *line)
{
    line->count /= 2;
    for (size_t i = 0; i < line->count; i++)
        line->points[i] = line->points[2 * i] / 2 + line->points[2 * i + 1] / 2;
    line->each *= 2;
}

void sgm__sparkline_add(sgm__sparkline *line, double value)
{
    if (!isfinite(value))
        return;
    if (line->each == 0)
        line->each = 1;
    line->sum += value / (double)line->each;
    if (++line->pending < line->each)
        return;
    line->points[line->count++] = line->sum;
    line->pending = 0;
    line->sum = 0;
    if (line->count == SGM__SPARKLINE_POINTS)
        halve(line);
}

static double mean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i] / (double)count;
    return sum;
}

/* Each column is the mean of its share of the points: column i of n covers points [i*m/n, (i+1)*m/n). A
 * constant curve is drawn at the bottom. Heights are scaled to [0, 1] and quantised to 8 levels. */
void sgm__sparkline_append(sgm__text *to, const sgm__sparkline *line, size_t columns)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double shown[SGM__SPARKLINE_POINTS], minimum = INFINITY, maximum = -INFINITY;
    size_t count = line->count < columns ? line->count : columns;
    if (count < 2)
        return;
    for (size_t i = 0; i < count; i++) {
        size_t from = i * line->count / count, end = (i + 1) * line->count / count;
        shown[i] = mean(line->points + from, end - from);
        minimum = fmin(minimum, shown[i]);
        maximum = fmax(maximum, shown[i]);
    }
    if (minimum > 0 && maximum > LOG_FROM * minimum) {
        for (size_t i = 0; i < count; i++)
            shown[i] = log(shown[i]);
        minimum = log(minimum);
        maximum = log(maximum);
    }
    for (size_t i = 0; i < count; i++) {
        double height = maximum > minimum ? (shown[i] - minimum) / (maximum - minimum) : 0;
        sgm__text_append(to, "%s", bars[height < 1 ? (int)(height * 8) : 7]);
    }
}
