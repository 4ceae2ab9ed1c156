/* Formats progress as text that fits into the columns of a terminal; see terminal_line.h.
 *
 * The redrawn line consists of parts (enum line_part). Each part is first written into a text of its own;
 * then `fit` and `fit_pictures` give the room to the parts in order of importance: place, loss, accuracy,
 * time left, a bar, a curve, the rate. Numbers are shown whole or not at all, since half a number reads as
 * another number. Bar and curve grow into the room that is left. Widths are counted in bytes, which are
 * columns because everything but the curve and names is ASCII. */
#include "monitors/terminal_line.h"

#include <math.h>
#include <stdio.h>

/* Columns of the bar (without brackets) and of the loss curve. */
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

/* NAN as a literal: the NaN of a computation may have its sign bit set, and would print as "-nan". */
static void append_loss(sgm__text *line, const sgm_metrics *metrics)
{
    sgm__text_append(line, " loss %.4f", isnan(metrics->loss) ? NAN : metrics->loss);
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

/* Examples per second, rounded; left out where it is unknown or would not fit into an integer. */
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

/* The parts of the line, in the order in which they are shown. */
typedef enum line_part { PLACE, BAR, LOSS, ACCURACY, RATE, LEFT, CURVE, PART_COUNT } line_part;

/* Which parts are shown. `room` is what is left of the line; it shrinks as parts take theirs. */
typedef struct line_plan {
    sgm__text parts[PART_COUNT];
    bool shown[PART_COUNT];
    size_t room;       /* columns not yet given to a part */
    size_t bar, curve; /* widths in columns, without brackets and spaces; 0: not shown */
} line_plan;

/* Takes the room of a part, or leaves the part out whole. */
static void fit(line_plan *plan, line_part part)
{
    plan->shown[part] = plan->parts[part].length <= plan->room;
    if (plan->shown[part])
        plan->room -= plan->parts[part].length;
}

/* As fit, for a part whose width is chosen rather than given by its text. */
static bool fit_picture(line_plan *plan, line_part part, size_t columns)
{
    plan->shown[part] = plan->room >= columns;
    if (plan->shown[part])
        plan->room -= columns;
    return plan->shown[part];
}

/* Widens a picture up to `maximum` columns, by at most `room`; returns its new width. */
static size_t grow(line_plan *plan, size_t columns, size_t maximum, size_t room)
{
    size_t more = room < maximum - columns ? room : maximum - columns;
    plan->room -= more;
    return columns + more;
}

/* Shares what the numbers leave. The bar takes 3 columns for " []" beside its width, the curve 1 for " ".
 * Both get their smallest width first, then the bar up to half of the rest (all of it without a curve),
 * then the curve. The rate yields to the pictures when there is a curve, because each line of an epoch
 * shows it too; without a curve it comes before the bar. */
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

/* Fills in the texts of all parts that are numbers. During a pause the rate and the time left mean
 * nothing, so the line shows the iteration, which single steps change. */
static void write_numbers(line_plan *plan, const sgm_training_progress *progress)
{
    sgm__text *parts = plan->parts;
    if (progress->batches <= 0) {
        sgm__text_append(&parts[PLACE], " batch ");
        append_count(&parts[PLACE], progress->batch);
    }
    append_loss(&parts[LOSS], &progress->training);
    append_accuracy(&parts[ACCURACY], &progress->training);
    if (progress->kind == SGM_PROGRESS_PAUSE) {
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

/* '=' for what is done, '>' at the position, in proportion to the batches of the epoch. */
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

/* Note and place come first and take the room of all others; they are cut when the terminal is narrower
 * than they are. The escape sequences for bold take no columns. */
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
    size_t columns = sgm__utf8_count(place->data);
    sgm__text_append_bytes(line, place->data, sgm__utf8_prefix(place->data, plan->room));
    plan->room -= columns < plan->room ? columns : plan->room;
}

/* In three phases: texts of all parts, choice of the parts that fit, then the line in the order of
 * display. The last column stays free, so that the terminal does not wrap the line. */
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

/* Scores (metrics of hooks) that are marked for the headline. `data` names the dataset whose metrics were
 * just written. With NULL, all scores of datasets that have no metrics in this line. */
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

/* Training metrics, then each validation set with its scores, then rate and duration of the epoch. */
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
