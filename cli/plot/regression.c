/* Predicted numbers against true ones: a point for each example, near the diagonal where the prediction is.
 */
#include "data/table/pipeline.h"
#include "plot/eval_plot.h"
#include "plot/plot.h"

#include <math.h>
#include <stdio.h>

#define MAXIMUM_POINTS 5000 /* of a panel: evenly spaced examples */
#define PANEL 420.0
#define LEFT 84.0
#define TOP 40.0
#define RIGHT 20.0
#define BOTTOM 52.0
#define TEXT 12.0
#define LONGEST_NAME 20
#define BLACK 0x222222u
#define GREY 0xcccccfu
#define BLUE 0x1f6fb4u

/* All examples: `targets` numbers each of what is true and of what was predicted. */
typedef struct examples {
    double *truth, *predicted;
    size_t truth_capacity, predicted_capacity, count;
    int64_t targets;
} examples;

/* The first `targets` numbers of each example, in the units of the table, appended to a list. */
static sgm_status append(const sgm_pipeline *pipeline, const sgm_tensor *values, int64_t targets,
                         size_t before, double **list, size_t *capacity)
{
    int64_t rows = sgm_tensor_shape(values)->dims[0], all = sgm_shape_elements(sgm_tensor_shape(values));
    double *numbers = sgm__calloc((size_t)all + 1, sizeof *numbers);
    sgm_status status = numbers != NULL ? sgm_tensor_read(values, numbers, (size_t)all) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__reserve(list, capacity, (before + (size_t)rows) * (size_t)targets, sizeof **list);
    for (int64_t i = 0; status == SGM_OK && i < rows * targets; i++) {
        double value = numbers[i / targets * (all / rows) + i % targets];
        (*list)[before * (size_t)targets + (size_t)i] =
            pipeline != NULL ? sgm_pipeline_restore(pipeline, (size_t)(i % targets), value) : value;
    }
    sgm__free(numbers);
    return status;
}

static sgm_status add_block(const saved *s, const sgm_block *block, examples *to)
{
    sgm_tensor *targets = sgm_block_field(block, "targets");
    sgm_tensor *outputs = targets != NULL ? sgm_trainer_predict_block(s->trainer, block, NULL) : NULL;
    if (outputs == NULL)
        return sgm__last_failure();
    to->targets = sgm_shape_elements(sgm_tensor_shape(targets)) / block->count;
    const sgm_pipeline *pipeline = s->c.data.pipeline;
    sgm_status status =
        sgm_shape_elements(sgm_tensor_shape(outputs)) / block->count < to->targets
            ? sgm_fail(SGM_ERROR_SHAPE, "--plot: the network predicts fewer numbers than there are targets")
            : append(pipeline, targets, to->targets, to->count, &to->truth, &to->truth_capacity);
    if (status == SGM_OK)
        status = append(pipeline, outputs, to->targets, to->count, &to->predicted, &to->predicted_capacity);
    to->count += status == SGM_OK ? (size_t)block->count : 0;
    sgm_tensor_free(outputs);
    return status;
}

static sgm_status read_all(const saved *s, sgm_iterator *iterator, examples *to)
{
    const sgm_block *block = NULL;
    for (;;) {
        SGM_TRY(sgm_iterator_next(iterator, &block));
        if (block == NULL)
            return to->count > 0 ? SGM_OK : sgm_fail(SGM_ERROR_STATE, "--plot: there are no examples");
        SGM_TRY(add_block(s, block, to));
    }
}

/* --- a panel --- */

/* A square with the same axis in both directions, whose upper left corner is at (x, y) of the plot. */
typedef struct panel {
    plot *drawing;
    const examples *all;
    int64_t target;
    double x, y, lowest, highest;
} panel;

static double across(const panel *p, double value)
{
    return p->x + LEFT + (value - p->lowest) / (p->highest - p->lowest) * (PANEL - LEFT - RIGHT);
}

static double up(const panel *p, double value)
{
    double height = PANEL - TOP - BOTTOM;
    return p->y + TOP + height - (value - p->lowest) / (p->highest - p->lowest) * height;
}

/* The smallest step of 1, 2 or 5 times a power of ten that divides the range into at most six parts. */
static double step_of(double range)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(range / 6)));
    size_t i = 0;
    while (i < 3 && steps[i] * power * 6 < range)
        i++;
    return steps[i] * power;
}

static void find_range(panel *p)
{
    const examples *all = p->all;
    p->lowest = INFINITY;
    p->highest = -INFINITY;
    for (size_t i = (size_t)p->target; i < all->count * (size_t)all->targets; i += (size_t)all->targets)
        if (isfinite(all->predicted[i])) {
            p->lowest = fmin(p->lowest, fmin(all->truth[i], all->predicted[i]));
            p->highest = fmax(p->highest, fmax(all->truth[i], all->predicted[i]));
        }
    if (!(p->highest > p->lowest)) {
        double middle = isfinite(p->lowest) ? p->lowest : 0;
        p->lowest = middle - 1;
        p->highest = middle + 1;
    }
    double space = 0.03 * (p->highest - p->lowest);
    p->lowest -= space;
    p->highest += space;
}

static void draw_axes(const panel *p)
{
    double step = step_of(p->highest - p->lowest), left = p->x + LEFT, bottom = p->y + PANEL - BOTTOM;
    char text[32];
    for (double k = ceil(p->lowest / step); k * step <= p->highest; k++) {
        double value = k * step;
        snprintf(text, sizeof text, "%.6g", value + 0.0);
        plot_line(p->drawing, across(p, value), bottom, across(p, value), p->y + TOP, GREY);
        plot_line(p->drawing, left, up(p, value), p->x + PANEL - RIGHT, up(p, value), GREY);
        plot_text(p->drawing, across(p, value), bottom + 12, TEXT, PLOT_MIDDLE, BLACK, text);
        plot_text(p->drawing, left - 6, up(p, value), TEXT, PLOT_RIGHT, BLACK, text);
    }
    plot_line(p->drawing, across(p, p->lowest), up(p, p->lowest), across(p, p->highest), up(p, p->highest),
              BLACK);
    plot_text(p->drawing, p->x + (LEFT + PANEL - RIGHT) / 2, bottom + 34, TEXT, PLOT_MIDDLE, BLACK, "true");
    plot_text(p->drawing, left - 6, p->y + TOP - 14, TEXT, PLOT_RIGHT, BLACK, "predicted");
}

/* As metrics have it; NaN where all targets are equal. */
static double r_squared(const panel *p)
{
    const examples *all = p->all;
    double mean = 0, residual = 0, total = 0;
    size_t end = all->count * (size_t)all->targets, step = (size_t)all->targets;
    for (size_t i = (size_t)p->target; i < end; i += step)
        mean += all->truth[i] / (double)all->count;
    for (size_t i = (size_t)p->target; i < end; i += step) {
        residual += (all->truth[i] - all->predicted[i]) * (all->truth[i] - all->predicted[i]);
        total += (all->truth[i] - mean) * (all->truth[i] - mean);
    }
    return total > 0 ? 1 - residual / total : NAN;
}

static void draw_panel(panel *p, const char *name)
{
    const examples *all = p->all;
    char text[128];
    find_range(p);
    draw_axes(p);
    size_t stride = all->count / MAXIMUM_POINTS + 1;
    for (size_t i = 0; i < all->count; i += stride) {
        size_t at = i * (size_t)all->targets + (size_t)p->target;
        if (isfinite(all->predicted[at]))
            plot_point(p->drawing, across(p, all->truth[at]), up(p, all->predicted[at]), 2.5, BLUE);
    }
    snprintf(text, sizeof text, "%.*s%sR squared %.4f (%zu)", (int)sgm__utf8_prefix(name, LONGEST_NAME), name,
             *name != '\0' ? ": " : "", r_squared(p), all->count);
    plot_text(p->drawing, p->x + LEFT, p->y + 12, TEXT + 3, PLOT_LEFT, BLACK, text);
}

/* Two panels in a row. */
static sgm_status draw_all(const examples *all, const sgm_pipeline *pipeline, const char *path)
{
    int columns = all->targets > 1 ? 2 : 1, rows = (int)(all->targets + columns - 1) / columns;
    plot *drawing = plot_create(columns * (int)PANEL, rows * (int)PANEL);
    if (drawing == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < all->targets; i++) {
        const sgm__pipeline_part *part = pipeline != NULL ? sgm__pipeline_target(pipeline, (size_t)i) : NULL;
        int64_t row = i / columns;
        panel p = {.drawing = drawing,
                   .all = all,
                   .target = i,
                   .x = PANEL * (double)(i % columns),
                   .y = PANEL * (double)row};
        draw_panel(&p, part != NULL ? part->name : "");
    }
    sgm_status status = plot_write(drawing, path);
    plot_free(drawing);
    return status;
}

sgm_status plot_regression(const saved *s, sgm_iterator *iterator, const char *path)
{
    examples all = {0};
    sgm_status status = read_all(s, iterator, &all);
    if (status == SGM_OK && all.targets > SGM_MAX_TARGETS)
        status = sgm_fail(SGM_ERROR_UNSUPPORTED, "--plot: at most %d targets can be drawn, there are %lld",
                          SGM_MAX_TARGETS, (long long)all.targets);
    if (status == SGM_OK)
        status = draw_all(&all, s->c.data.pipeline, path);
    sgm__free(all.truth);
    sgm__free(all.predicted);
    return status;
}
