/* Progress on stdout. On a terminal one line that is drawn again and again, and a line for each finished
 * epoch; elsewhere (a file, a pipe) only the latter. */
#include "monitors/monitor.h"
#include "monitors/sparkline.h"
#include "monitors/task_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_SECONDS 0.1
#define WIDEST_BAR 20
#define NARROWEST_BAR 4
#define WIDEST_CURVE 24
#define NARROWEST_CURVE 8

typedef struct terminal_monitor {
    sgm_monitor base;
    pthread_mutex_t lock;
    bool several; /* trainers side by side: each line has a name */
    bool is_terminal, colour;
    bool curves; /* the terminal can show them */
    sgm__sparkline losses;
    bool drawn;        /* an unfinished line is on the screen */
    double redrawn;    /* when */
    char trainer[100]; /* the one that lines are about */
} terminal_monitor;

static size_t terminal_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

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

static void append_metrics(sgm__text *line, const sgm_metrics *metrics)
{
    sgm__text_append(line, " loss %.4f", isnan(metrics->loss) ? NAN : metrics->loss); /* without a sign */
    if (!isnan(metrics->accuracy))
        sgm__text_append(line, " accuracy %.1f %%", 100 * metrics->accuracy);
}

static void append_epoch(sgm__text *line, int64_t epoch, int64_t epochs)
{
    if (epochs > 0)
        sgm__text_append(line, "epoch %lld/%lld", (long long)epoch, (long long)epochs);
    else
        sgm__text_append(line, "epoch %lld", (long long)epoch);
}

/* How far the epoch is, in what room there is. */
static void append_bar(sgm__text *line, int64_t batch, int64_t batches, int room)
{
    if (batches <= 0) {
        sgm__text_append(line, " batch ");
        append_count(line, batch);
        return;
    }
    int width = room < WIDEST_BAR ? room : WIDEST_BAR;
    if (width < NARROWEST_BAR)
        return;
    int filled = batch >= batches ? width : (int)(batch * width / batches);
    char bar[WIDEST_BAR + 1];
    for (int i = 0; i < width; i++)
        bar[i] = i < filled ? '=' : i == filled ? '>' : ' ';
    bar[width] = '\0';
    sgm__text_append(line, " [%s]", bar);
}

static void append_rate(sgm__text *line, double rate)
{
    if (rate > 0 && rate < 1e15) {
        sgm__text_append(line, " ");
        append_count(line, (int64_t)(rate + 0.5));
        sgm__text_append(line, " records/s");
    }
}

static void clear_line(terminal_monitor *self)
{
    if (self->drawn) {
        fputs("\r\033[K", stdout);
        sgm__log_line_is_open(false);
    }
    self->drawn = false;
}

static void append_now(sgm__text *line, const sgm_training_progress *progress)
{
    append_metrics(line, &progress->training);
    append_rate(line, progress->rate);
    if (progress->seconds_left >= 0) {
        sgm__text_append(line, " ");
        append_duration(line, progress->seconds_left);
        sgm__text_append(line, " left");
    }
}

static void append_trainer(sgm__text *line, const terminal_monitor *self,
                           const sgm_training_progress *progress)
{
    if (self->several)
        sgm__text_append(line, "%s: ", progress->trainer);
}

/* How the loss went, behind the numbers, where that leaves room. */
static void draw_curve(const terminal_monitor *self, size_t room)
{
    sgm__text curve = {0};
    if (!self->curves || self->several || room < NARROWEST_CURVE + 1)
        return;
    sgm__sparkline_append(&curve, &self->losses, room - 1 < WIDEST_CURVE ? room - 1 : WIDEST_CURVE);
    if (curve.length > 0 && !curve.failed)
        printf(" %s", curve.data);
    sgm__text_free(&curve);
}

/* A line longer than the terminal is wide would not be overdrawn by the next one: the bar takes what the
 * numbers leave. */
static void draw(terminal_monitor *self, const sgm_training_progress *progress)
{
    sgm__text line = {0}, now = {0};
    size_t width = terminal_width();
    append_now(&now, progress);
    append_trainer(&line, self, progress);
    append_epoch(&line, progress->epoch + 1, progress->epochs);
    append_bar(&line, progress->batch, progress->batches,
               (int)(width - 1) - (int)(line.length + now.length) - 3);
    sgm__text_append_bytes(&line, now.data, now.length);
    sgm__text_free(&now);
    char *text = sgm__text_take(&line);
    if (text == NULL)
        return;
    size_t length = strlen(text);
    if (length >= width)
        length = width - 1;
    clear_line(self);
    fwrite(text, 1, length, stdout);
    draw_curve(self, width - 1 - length);
    fflush(stdout);
    self->drawn = true;
    sgm__log_line_is_open(true);
    sgm__free(text);
}

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

/* One line that stays. */
static void print_epoch(terminal_monitor *self, const sgm_training_progress *progress, int64_t epoch)
{
    const char *strong = self->colour ? "\033[1m" : "", *normal = self->colour ? "\033[0m" : "";
    sgm__text line = {0};
    append_trainer(&line, self, progress);
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
    char *text = sgm__text_take(&line);
    clear_line(self);
    if (text != NULL)
        puts(text);
    fflush(stdout);
    sgm__free(text);
}

/* The lines of a second trainer that runs after the first get a heading. */
static void start(terminal_monitor *self, const sgm_training_progress *progress)
{
    bool other = !self->several && self->trainer[0] != '\0' && strcmp(self->trainer, progress->trainer) != 0;
    snprintf(self->trainer, sizeof self->trainer, "%s", progress->trainer);
    if (other)
        printf("%s:\n", self->trainer);
    self->redrawn = 0;
    self->losses = (sgm__sparkline){0};
    if (self->is_terminal)
        sgm__task_lines_hold(true);
}

static void stop(terminal_monitor *self, const sgm_training_progress *progress)
{
    if (self->is_terminal)
        sgm__task_lines_hold(false);
    /* An epoch that was not finished has a line too, so that nothing trained goes unseen; but not one of a
     * run before, on which nothing followed. */
    if (progress->batch > 0 && progress->rate > 0)
        print_epoch(self, progress, progress->epoch + 1);
    clear_line(self);
    if (progress->reason != NULL && self->several)
        printf("%s: stopped by %s\n", progress->trainer, progress->reason);
    else if (progress->reason != NULL)
        printf("stopped by %s\n", progress->reason);
    fflush(stdout);
}

static void show_locked(terminal_monitor *self, const sgm_training_progress *progress)
{
    double now = sgm__now();
    switch (progress->kind) {
    case SGM_PROGRESS_START:
        start(self, progress);
        break;
    case SGM_PROGRESS_ITERATION:
        if (self->is_terminal && now - self->redrawn >= REDRAW_SECONDS) {
            self->redrawn = now;
            sgm__sparkline_add(&self->losses, progress->training.loss);
            draw(self, progress);
        }
        break;
    case SGM_PROGRESS_EPOCH:
        print_epoch(self, progress, progress->epoch);
        break;
    case SGM_PROGRESS_STOP:
        stop(self, progress);
        break;
    case SGM_PROGRESS_PAUSE:
    case SGM_PROGRESS_RESUME:
    case SGM_PROGRESS_MOVE:
        break;
    }
}

static bool show(sgm_monitor *monitor, const sgm_training_progress *progress)
{
    terminal_monitor *self = (terminal_monitor *)monitor;
    pthread_mutex_lock(&self->lock);
    show_locked(self, progress);
    pthread_mutex_unlock(&self->lock);
    return true;
}

static void expect(sgm_monitor *monitor, size_t trainers)
{
    terminal_monitor *self = (terminal_monitor *)monitor;
    pthread_mutex_lock(&self->lock);
    self->several = trainers > 1;
    pthread_mutex_unlock(&self->lock);
}

static void release(sgm_monitor *monitor)
{
    terminal_monitor *self = (terminal_monitor *)monitor;
    clear_line(self);
    sgm__task_lines_end();
    pthread_mutex_destroy(&self->lock);
    sgm__free(monitor);
}

/* As locale(7) has it: the first of these that says something counts. */
static bool speaks_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && (locale == NULL || locale[0] == '\0'); i++)
        locale = getenv(names[i]);
    return locale != NULL && (strcasestr(locale, "utf-8") != NULL || strcasestr(locale, "utf8") != NULL);
}

sgm_monitor *sgm_terminal_monitor(void)
{
    terminal_monitor *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    const char *no_colour = getenv("NO_COLOR");
    pthread_mutex_init(&self->lock, NULL);
    self->base.expect = expect;
    self->base.progress = show;
    self->base.free = release;
    const char *kind = getenv("TERM");
    self->is_terminal = isatty(STDOUT_FILENO) && (kind == NULL || strcmp(kind, "dumb") != 0);
    self->colour = self->is_terminal && (no_colour == NULL || no_colour[0] == '\0');
    self->curves = self->is_terminal && speaks_utf8();
    sgm__task_lines_begin();
    return &self->base;
}
