/* Curves of a report as SVG: axes, a line for each run. */
#include "monitors/runs/report.h"

#include <math.h>

/* Pixels of the picture and its margins. */
#define WIDTH 720
#define HEIGHT 260
#define LEFT 70
#define RIGHT 14
#define TOP 12
#define BOTTOM 40
/* Longer curves are drawn by the extremes of so many pieces, in which no spike is lost. */
#define PIECES 600
#define MARKS 12 /* at most, on an axis */

void sgm__report_text(sgm__text *to, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        const char *as = *c == '<'    ? "&lt;"
                         : *c == '>'  ? "&gt;"
                         : *c == '&'  ? "&amp;"
                         : *c == '"'  ? "&quot;"
                         : *c == '\'' ? "&#39;"
                                      : NULL;
        if (as != NULL)
            sgm__text_append(to, "%s", as);
        else
            sgm__text_append_bytes(to, c, 1);
    }
}

/* --- points --- */

typedef struct points {
    double *x, *y;
    size_t count;
} points;

static void free_points(points *p)
{
    sgm__free(p->x);
    sgm__free(p->y);
    *p = (points){0};
}

/* A number of a column's row; NAN: it has none. */
static double number_at(const json_t *column, size_t row)
{
    const json_t *value = json_array_get(column, row);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Takes what is not behind `epoch` only: a reset or a restore went back there. */
static void go_back(points *p, double epoch)
{
    while (p->count > 0 && p->x[p->count - 1] >= epoch)
        p->count--;
}

/* The values of a metric over epochs, or over lines if there are none; without those that were left behind.
 */
static points points_of(const json_t *run, const char *metric)
{
    const json_t *columns = json_object_get(run, "columns"), *y = json_object_get(columns, metric);
    const json_t *x = json_object_get(columns, "epoch"), *branches = json_object_get(columns, "branch");
    size_t rows = json_array_size(y);
    points p = {.x = sgm__alloc(rows * sizeof(double) + 1), .y = sgm__alloc(rows * sizeof(double) + 1)};
    if (p.x == NULL || p.y == NULL) {
        free_points(&p);
        return p;
    }
    double branch = NAN;
    for (size_t row = 0; row < rows; row++) {
        double at = x != NULL ? number_at(x, row) : (double)row, value = number_at(y, row);
        double own = number_at(branches, row);
        if (!isnan(own) && !isnan(branch) && own != branch && !isnan(at))
            go_back(&p, at);
        branch = isnan(own) ? branch : own;
        if (isnan(at) || isnan(value))
            continue;
        p.x[p.count] = at;
        p.y[p.count++] = value;
    }
    return p;
}

/* Keeps the least and the greatest of each piece, in their order. */
static void thin(points *p)
{
    size_t kept = 0, length = p->count / PIECES + 1;
    if (p->count <= 2 * PIECES)
        return;
    for (size_t start = 0; start < p->count; start += length) {
        size_t end = start + length < p->count ? start + length : p->count, low = start, high = start;
        for (size_t i = start; i < end; i++) {
            low = p->y[i] < p->y[low] ? i : low;
            high = p->y[i] > p->y[high] ? i : high;
        }
        size_t pair[2] = {low < high ? low : high, low < high ? high : low};
        for (size_t i = 0; i < 2; i++)
            if (i == 0 || pair[1] != pair[0]) {
                p->x[kept] = p->x[pair[i]];
                p->y[kept++] = p->y[pair[i]];
            }
    }
    p->count = kept;
}

/* --- the picture --- */

typedef struct frame {
    double left, right, bottom, top; /* values at the edges */
} frame;

static double px(const frame *f, double x)
{
    return LEFT + (x - f->left) / (f->right - f->left) * (WIDTH - LEFT - RIGHT);
}

static double py(const frame *f, double y)
{
    return HEIGHT - BOTTOM - (y - f->bottom) / (f->top - f->bottom) * (HEIGHT - TOP - BOTTOM);
}

static void include(frame *f, const points *p)
{
    for (size_t i = 0; i < p->count; i++) {
        f->left = fmin(f->left, p->x[i]);
        f->right = fmax(f->right, p->x[i]);
        f->bottom = fmin(f->bottom, p->y[i]);
        f->top = fmax(f->top, p->y[i]);
    }
}

/* A distance between marks that is 1, 2 or 5 times a power of ten. */
static double unit_of(double span, double wanted)
{
    double power = pow(10, floor(log10(span / wanted))), rough = span / wanted / power;
    return power * (rough <= 1 ? 1 : rough <= 2 ? 2 : rough <= 5 ? 5 : 10);
}

static void put_axes(sgm__text *to, const frame *f)
{
    double unit = unit_of(f->right - f->left, 8), at = ceil(f->left / unit) * unit;
    for (int i = 0; i < MARKS && at <= f->right; i++, at += unit)
        sgm__text_append(to,
                         "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" "
                         "text-anchor=\"middle\">%.6g</text>\n",
                         px(f, at), TOP, HEIGHT - BOTTOM, px(f, at), HEIGHT - BOTTOM + 16, at);
    unit = unit_of(f->top - f->bottom, 5);
    at = ceil(f->bottom / unit) * unit;
    for (int i = 0; i < MARKS && at <= f->top; i++, at += unit)
        sgm__text_append(to,
                         "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
                         "text-anchor=\"end\">%.6g</text>\n",
                         LEFT, py(f, at), WIDTH - RIGHT, LEFT - 8, py(f, at) + 4,
                         fabs(at) < unit / 1e6 ? 0 : at);
    sgm__text_append(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">epoch</text>\n",
                     (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
}

/* The ninth run and those behind have the colours once more, in dashes. */
static void put_curve(sgm__text *to, const frame *f, const points *p, size_t index, const char *name)
{
    if (p->count == 0)
        return;
    sgm__text_append(to, "<polyline class=\"s%zu\"%s points=\"", index % 8,
                     index < 8 ? "" : " stroke-dasharray=\"6 3\"");
    for (size_t i = 0; i < p->count; i++)
        sgm__text_append(to, "%s%.1f,%.1f", i > 0 ? " " : "", px(f, p->x[i]), py(f, p->y[i]));
    sgm__text_append(to, "\"><title>");
    sgm__report_text(to, name);
    sgm__text_append(to, "</title></polyline>\n");
}

/* A span of 0 is widened, so that a constant lies in the middle. */
static void widen(frame *f)
{
    double room = f->top > f->bottom ? (f->top - f->bottom) * 0.05 : fmax(fabs(f->top) * 0.1, 1e-12);
    f->top += room;
    f->bottom -= room;
}

static void put_picture(sgm__text *to, const char *metric, const json_t *list, points *curves, frame f)
{
    size_t i;
    json_t *run;
    widen(&f);
    sgm__text_append(to, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    sgm__report_text(to, metric);
    sgm__text_append(to, " over epochs\">\n");
    put_axes(to, &f);
    json_array_foreach(list, i, run)
    {
        thin(&curves[i]);
        put_curve(to, &f, &curves[i], i, json_string_value(json_object_get(run, "name")));
    }
    sgm__text_append(to, "</svg>\n");
}

bool sgm__report_chart(sgm__text *to, const char *metric, const json_t *list)
{
    size_t count = json_array_size(list);
    points *curves = sgm__calloc(count + 1, sizeof *curves);
    frame f = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (size_t i = 0; curves != NULL && i < count; i++) {
        curves[i] = points_of(json_array_get(list, i), metric);
        include(&f, &curves[i]);
    }
    bool has_line = curves != NULL && f.right > f.left;
    if (has_line)
        put_picture(to, metric, list, curves, f);
    for (size_t i = 0; curves != NULL && i < count; i++)
        free_points(&curves[i]);
    sgm__free(curves);
    return has_line;
}
