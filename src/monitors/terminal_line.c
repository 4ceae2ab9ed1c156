/* Lines about a training, in what room a terminal has. */
#include "monitors/terminal_line.h"

#include <math.h>
#include <stdio.h>

#define WIDEST_BAR 20
#define NARROWEST_BAR 4
#define WIDEST_CURVE 24
#define NARROWEST_CURVE 8

/* --- words --- */

static void append_count(sgm__text *line, int64_t number)
{
    char text[64];
    sgm__text_append(line, "%s", sgm_count_text(number, text, sizeof text));
}

static void append_duration(sgm__text *line, double seconds)
{
    char text[64];
    sgm__text_append(line, "%s", sgm_clock_text(seconds, text, sizeof text));
}

static void append_loss(sgm__text *line, const sgm_metrics *metrics)
{
    sgm__text_append(line, " loss %.4f", isnan(metrics->loss) ? NAN : metrics->loss); /* without a sign */
}

static void append_accuracy(sgm__text *line, const sgm_metrics *metrics)
{
    if (!isnan(metrics->accuracy))
        sgm__text_append(line, " accuracy %.1f %%", 100 * metrics->accuracy);
}

static void append_metrics(sgm__text *line, const sgm_metrics *metrics)
{
    append_loss(line, metrics);
    append_accuracy(line, metrics);
}

static void append_epoch(sgm__text *line, int64_t epoch, int64_t epochs)
{
    if (epochs > 0)
        sgm__text_append(line, "epoch %lld/%lld", (long long)epoch, (long long)epochs);
    else
        sgm__text_append(line, "epoch %lld", (long long)epoch);
}

static void append_rate(sgm__text *line, double rate)
{
    if (rate > 0 && rate < 1e15) {
        sgm__text_append(line, " ");
        append_count(line, (int64_t)(rate + 0.5));
        sgm__text_append(line, " examples/s");
    }
}

static void append_trainer(sgm__text *line, const sgm_training_progress *progress,
                           const sgm__terminal_look *look)
{
    if (look->named)
        sgm__text_append(line, "%s: ", progress->trainer);
}

/* --- the line that is drawn again --- */

/* In the order in which they are shown. */
typedef enum line_part { PLACE, BAR, LOSS, ACCURACY, RATE, LEFT, CURVE, PART_COUNT } line_part;

typedef struct line_plan {
    sgm__text parts[PART_COUNT];
    bool shown[PART_COUNT];
    size_t room;       /* left; all characters but the curve's take a byte */
    size_t bar, curve; /* columns */
} line_plan;

/* Takes room for a part, or leaves it out whole: half a number would be another one. */
static void fit(line_plan *plan, line_part part)
{
    plan->shown[part] = plan->parts[part].length <= plan->room;
    if (plan->shown[part])
        plan->room -= plan->parts[part].length;
}

static bool fit_picture(line_plan *plan, line_part part, size_t columns)
{
    plan->shown[part] = plan->room >= columns;
    if (plan->shown[part])
        plan->room -= columns;
    return plan->shown[part];
}

static size_t grow(line_plan *plan, size_t columns, size_t maximum, size_t room)
{
    size_t more = room < maximum - columns ? room : maximum - columns;
    plan->room -= more;
    return columns + more;
}

/* What the numbers leave is for the bar, with " []" around, and the curve, with " " before. Where these find
 * no room the rate goes, which each epoch's line has too; without a curve it counts more than the bar. */
static void fit_pictures(line_plan *plan, bool bar, bool curve)
{
    if (!curve)
        fit(plan, RATE);
    if (bar && fit_picture(plan, BAR, NARROWEST_BAR + 3))
        plan->bar = NARROWEST_BAR;
    if (curve && fit_picture(plan, CURVE, NARROWEST_CURVE + 1))
        plan->curve = NARROWEST_CURVE;
    if (curve)
        fit(plan, RATE);
    if (plan->bar > 0)
        plan->bar = grow(plan, plan->bar, WIDEST_BAR, plan->curve > 0 ? plan->room / 2 : plan->room);
    if (plan->curve > 0)
        plan->curve = grow(plan, plan->curve, WIDEST_CURVE, plan->room);
}

static void write_numbers(line_plan *plan, const sgm_training_progress *progress)
{
    sgm__text *parts = plan->parts;
    if (progress->batches <= 0) {
        sgm__text_append(&parts[PLACE], " batch ");
        append_count(&parts[PLACE], progress->batch);
    }
    append_loss(&parts[LOSS], &progress->training);
    append_accuracy(&parts[ACCURACY], &progress->training);
    if (progress->kind == SGM_PROGRESS_PAUSE) { /* what a step changes; nothing is fast or left now */
        sgm__text_append(&parts[LEFT], " iteration ");
        append_count(&parts[LEFT], progress->iteration);
        return;
    }
    append_rate(&parts[RATE], progress->rate);
    if (progress->seconds_left >= 0) {
        sgm__text_append(&parts[LEFT], " ");
        append_duration(&parts[LEFT], progress->seconds_left);
        sgm__text_append(&parts[LEFT], " left");
    }
}

static void write_bar(line_plan *plan, int64_t batch, int64_t batches)
{
    int width = (int)plan->bar, filled = batch >= batches ? width : (int)(batch * width / batches);
    char bar[WIDEST_BAR + 1];
    for (int i = 0; i < width; i++)
        bar[i] = i < filled ? '=' : i == filled ? '>' : ' ';
    bar[width] = '\0';
    sgm__text_append(&plan->parts[BAR], " [%s]", bar);
}

static void write_curve(line_plan *plan, const sgm__sparkline *losses)
{
    sgm__text_append(&plan->parts[CURVE], " ");
    sgm__sparkline_append(&plan->parts[CURVE], losses, plan->curve);
}

/* The note and the place are shown first, cut if they must be. */
static void write_place(sgm__text *line, line_plan *plan, const sgm__terminal_look *look)
{
    const sgm__text *place = &plan->parts[PLACE];
    size_t note = strlen(look->note);
    note = note < plan->room ? note : plan->room;
    if (note > 0) {
        sgm__text_append(line, "%s%.*s%s", look->colour ? "\033[1m" : "", (int)note, look->note,
                         look->colour ? "\033[0m" : "");
        plan->room -= note;
        if (plan->room > 0) {
            sgm__text_append(line, " ");
            plan->room--;
        }
    }
    size_t length = place->length < plan->room ? place->length : plan->room;
    sgm__text_append_bytes(line, place->data, length);
    plan->room -= length;
}

char *sgm__terminal_line(const sgm_training_progress *progress, const sgm__terminal_look *look)
{
    sgm__text line = {0};
    line_plan plan = {.room = look->columns > 1 ? look->columns - 1 : 1};
    append_trainer(&plan.parts[PLACE], progress, look);
    append_epoch(&plan.parts[PLACE], progress->epoch + 1, progress->epochs);
    write_numbers(&plan, progress);
    bool failed = false;
    for (int i = 0; i < PART_COUNT; i++)
        failed = failed || plan.parts[i].failed;
    if (!failed) {
        write_place(&line, &plan, look);
        fit(&plan, LOSS);
        fit(&plan, ACCURACY);
        fit(&plan, LEFT);
        fit_pictures(&plan, progress->batches > 0, look->losses != NULL && look->losses->count > 1);
        if (plan.shown[BAR])
            write_bar(&plan, progress->batch, progress->batches);
        if (plan.shown[CURVE])
            write_curve(&plan, look->losses);
        for (int i = BAR; i < PART_COUNT; i++)
            if (plan.shown[i])
                sgm__text_append_bytes(&line, plan.parts[i].data, plan.parts[i].length);
    }
    for (int i = 0; i < PART_COUNT; i++)
        sgm__text_free(&plan.parts[i]);
    return sgm__text_take(&line);
}

/* --- the line of an epoch --- */

/* Of these data, or of all that have no metrics in the line. */
static void append_scores(sgm__text *line, const sgm_training_progress *progress, const char *data)
{
    for (size_t i = 0; i < progress->score_count; i++) {
        const sgm_score *score = &progress->scores[i];
        if (!score->headline)
            continue;
        bool shown = false;
        for (size_t j = 0; j < progress->validation_count; j++)
            shown = shown || strcmp(progress->validation[j].name, score->data) == 0;
        if (data == NULL && !shown)
            sgm__text_append(line, ", %s %s %.4f", score->data, score->name, score->value);
        else if (data != NULL && strcmp(data, score->data) == 0)
            sgm__text_append(line, " %s %.4f", score->name, score->value);
    }
}

char *sgm__terminal_epoch(const sgm_training_progress *progress, int64_t epoch,
                          const sgm__terminal_look *look)
{
    const char *strong = look->colour ? "\033[1m" : "", *normal = look->colour ? "\033[0m" : "";
    sgm__text line = {0};
    append_trainer(&line, progress, look);
    sgm__text_append(&line, "%s", strong);
    append_epoch(&line, epoch, progress->epochs);
    sgm__text_append(&line, "%s", normal);
    if (progress->kind == SGM_PROGRESS_STOP) {
        sgm__text_append(&line, " (");
        append_count(&line, progress->batch);
        if (progress->batches > 0) {
            sgm__text_append(&line, " of ");
            append_count(&line, progress->batches);
        }
        sgm__text_append(&line, " batches)");
    }
    append_metrics(&line, &progress->training);
    for (size_t i = 0; i < progress->validation_count; i++) {
        sgm__text_append(&line, ", %s", progress->validation[i].name);
        append_metrics(&line, &progress->validation[i].metrics);
        append_scores(&line, progress, progress->validation[i].name);
    }
    append_scores(&line, progress, NULL);
    sgm__text_append(&line, ",");
    append_rate(&line, progress->rate);
    sgm__text_append(&line, " ");
    if (progress->seconds < 60)
        sgm__text_append(&line, "%.1f s", progress->seconds);
    else
        append_duration(&line, progress->seconds);
    return sgm__text_take(&line);
}
