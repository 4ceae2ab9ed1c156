/* Points of metrics, their moving averages, and fewer of them. */
#include "mcp/tools/curve.h"

#include <math.h>

sgm_status mcp_curve_read(const json_t *columns, const char *metric, const char *axis, double from, double to,
                          mcp_curve *curve)
{
    const json_t *xs = json_object_get(columns, axis), *ys = json_object_get(columns, metric),
                 *branches = json_object_get(columns, "branch");
    *curve = (mcp_curve){.points = sgm__calloc(json_array_size(ys) + 1, sizeof *curve->points)};
    if (curve->points == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < json_array_size(ys); i++) {
        const json_t *x = json_array_get(xs, i), *y = json_array_get(ys, i);
        double at = json_number_value(x);
        if (json_is_number(x) && json_is_number(y) && at >= from && at <= to)
            curve->points[curve->count++] =
                (mcp_point){at, json_number_value(y), json_number_value(json_array_get(branches, i))};
    }
    return SGM_OK;
}

void mcp_curve_free(mcp_curve *curve)
{
    sgm__free(curve->points);
    *curve = (mcp_curve){0};
}

void mcp_curve_smooth(mcp_curve *curve, double share)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < curve->count && share > 0; i++) {
        mcp_point *point = &curve->points[i];
        if (i > 0 && point->branch != point[-1].branch)
            sum = weight = 0;
        sum = share * sum + (1 - share) * point->y;
        weight = share * weight + (1 - share);
        point->y = sum / weight;
    }
}

/* The middle of the points from `begin` to before `end`. */
static mcp_point middle_of(const mcp_curve *curve, size_t begin, size_t end)
{
    mcp_point middle = {0};
    for (size_t i = begin; i < end; i++) {
        middle.x += curve->points[i].x / (double)(end - begin);
        middle.y += curve->points[i].y / (double)(end - begin);
    }
    return middle;
}

/* The point from `begin` to before `end` that spans the largest triangle with two others. */
static size_t largest(const mcp_curve *curve, size_t begin, size_t end, mcp_point before, mcp_point behind)
{
    size_t best = begin;
    double most = -1;
    for (size_t i = begin; i < end; i++) {
        mcp_point p = curve->points[i];
        double area =
            fabs((before.x - behind.x) * (p.y - before.y) - (before.x - p.x) * (behind.y - before.y));
        if (area > most) {
            most = area;
            best = i;
        }
    }
    return best;
}

void mcp_curve_thin(mcp_curve *curve, size_t limit)
{
    size_t count = curve->count;
    if (count <= limit || limit < 2)
        return;
    /* The first and the last point stay; between them lie limit - 2 stretches. The points that stay move to
     * the front, which is never ahead of what is still read. */
    mcp_point last = curve->points[count - 1];
    double stretch = (double)(count - 2) / (double)(limit - 2);
    for (size_t i = 0; i + 2 < limit; i++) {
        size_t begin = 1 + (size_t)((double)i * stretch), end = 1 + (size_t)((double)(i + 1) * stretch);
        size_t next = 1 + (size_t)((double)(i + 2) * stretch);
        mcp_point behind = i + 3 < limit ? middle_of(curve, end, next < count ? next : count) : last;
        curve->points[i + 1] = curve->points[largest(curve, begin, end, curve->points[i], behind)];
    }
    curve->points[limit - 1] = last;
    curve->count = limit;
}
