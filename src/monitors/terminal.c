/* Progress on stdout. On a terminal one line that is drawn again and again, and a line for each finished
 * epoch; elsewhere (a file, a pipe) only the latter. */
#include "monitors/monitor.h"
#include "monitors/task_lines.h"
#include "monitors/terminal_keys.h"
#include "monitors/terminal_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_SECONDS 0.1

typedef struct terminal_monitor {
    sgm_monitor base;
    pthread_mutex_t lock;
    bool several; /* trainers side by side: each line has a name */
    bool is_terminal, colour;
    bool can_curve, curves; /* the terminal can show them; it shall */
    sgm__sparkline losses;
    bool drawn;                   /* an unfinished line is on the screen */
    double redrawn;               /* when */
    char trainer[100];            /* the one that lines are about */
    size_t running;               /* trainers */
    sgm__terminal_keys *keys;     /* NULL: none */
    sgm_training_progress newest; /* what is drawn */
    char note[24];                /* what keys have set in motion */
} terminal_monitor;

static size_t terminal_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void clear_line(terminal_monitor *self)
{
    if (self->drawn) {
        fputs("\r\033[K", stdout);
        sgm__log_line_is_open(false);
    }
    self->drawn = false;
}

static sgm__terminal_look look_of(const terminal_monitor *self)
{
    const char *note = self->note[0] != '\0'                     ? self->note
                       : self->newest.kind == SGM_PROGRESS_PAUSE ? "paused"
                                                                 : "";
    return (sgm__terminal_look){.columns = terminal_width(),
                                .named = self->several,
                                .colour = self->colour,
                                .note = note,
                                .losses = self->curves && !self->several ? &self->losses : NULL};
}

static void draw(terminal_monitor *self)
{
    const sgm__terminal_look look = look_of(self);
    char *line = sgm__terminal_line(&self->newest, &look);
    if (line == NULL)
        return;
    clear_line(self);
    fputs(line, stdout);
    fflush(stdout);
    self->drawn = true;
    sgm__log_line_is_open(true);
    sgm__free(line);
}

/* Kept, so that keys can have it drawn again. */
static void draw_newest(terminal_monitor *self, const sgm_training_progress *progress)
{
    self->newest = *progress;
    self->newest.validation = NULL;
    self->newest.scores = NULL;
    self->newest.reason = NULL;
    self->newest.trainer = self->trainer;
    snprintf(self->trainer, sizeof self->trainer, "%s", progress->trainer);
    draw(self);
}

/* One line that stays. */
static void print_epoch(terminal_monitor *self, const sgm_training_progress *progress, int64_t epoch)
{
    const sgm__terminal_look look = look_of(self);
    char *text = sgm__terminal_epoch(progress, epoch, &look);
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
    self->running++;
    self->note[0] = '\0';
    if (self->keys != NULL && sgm__terminal_keys_begin(self->keys) && self->running == 1) {
        puts("keys: space pause, s step, q stop, h help");
        fflush(stdout);
    }
}

static void tell_reason(terminal_monitor *self, const sgm_training_progress *progress, const char *what)
{
    if (progress->reason != NULL)
        clear_line(self);
    if (progress->reason != NULL && self->several)
        printf("%s: %s by %s\n", progress->trainer, what, progress->reason);
    else if (progress->reason != NULL)
        printf("%s by %s\n", what, progress->reason);
    fflush(stdout);
}

static void stop(terminal_monitor *self, const sgm_training_progress *progress)
{
    if (self->is_terminal)
        sgm__task_lines_hold(false);
    if (self->running > 0 && self->keys != NULL)
        sgm__terminal_keys_end(self->keys);
    self->running -= self->running > 0;
    self->note[0] = '\0';
    self->newest.kind = SGM_PROGRESS_STOP;
    /* An epoch that was not finished has a line too, so that nothing trained goes unseen; but not one of a
     * run before, on which nothing followed. */
    if (progress->batch > 0 && progress->rate > 0)
        print_epoch(self, progress, progress->epoch + 1);
    clear_line(self);
    tell_reason(self, progress, "stopped");
}

/* Who has paused it with a key or a command knows that; a hook does it unseen, and so has a line in files,
 * too.
 */
static void show_pause(terminal_monitor *self, const sgm_training_progress *progress)
{
    self->note[0] = '\0';
    tell_reason(self, progress, "paused");
    if (self->is_terminal)
        draw_newest(self, progress);
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
            draw_newest(self, progress);
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
        show_pause(self, progress);
        break;
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

/* --- keys --- */

static sgm_status attach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    return sgm__terminal_keys_attach(((terminal_monitor *)monitor)->keys, trainer);
}

static void detach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    sgm__terminal_keys_detach(((terminal_monitor *)monitor)->keys, trainer);
}

/* A key that came when the last run had just ended changes nothing. */
static bool begin_change(terminal_monitor *self)
{
    pthread_mutex_lock(&self->lock);
    return self->running > 0;
}

static void end_change(terminal_monitor *self, bool changed)
{
    if (changed && self->newest.kind != SGM_PROGRESS_STOP)
        draw(self);
    pthread_mutex_unlock(&self->lock);
}

static void show_note(void *user, const char *text)
{
    terminal_monitor *self = user;
    bool runs = begin_change(self);
    bool late = self->newest.kind == SGM_PROGRESS_PAUSE && strcmp(text, "pausing") == 0; /* it has paused */
    if (runs)
        snprintf(self->note, sizeof self->note, "%s", late ? "" : text);
    end_change(self, runs);
}

static void switch_curve(void *user)
{
    terminal_monitor *self = user;
    bool runs = begin_change(self);
    self->curves = self->can_curve && !self->curves;
    end_change(self, runs);
}

static void show_help(void *user)
{
    terminal_monitor *self = user;
    bool runs = begin_change(self);
    if (runs) {
        clear_line(self);
        puts("  space, p  pause, or go on\n"
             "  s, 10s    one iteration, or ten; pause\n"
             "  q         stop here, as at the end\n"
             "  c         curve of the loss on or off\n"
             "  h, ?      this help");
        fflush(stdout);
    }
    end_change(self, runs);
}

static void release(sgm_monitor *monitor)
{
    terminal_monitor *self = (terminal_monitor *)monitor;
    sgm__terminal_keys_free(self->keys);
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

static sgm_status add_keys(terminal_monitor *self)
{
    self->keys = sgm__terminal_keys_create(&(const sgm__terminal_view){
        .user = self, .help = show_help, .curve = switch_curve, .note = show_note});
    self->base.attach = attach;
    self->base.detach = detach;
    return self->keys != NULL ? SGM_OK : sgm_last_status();
}

sgm_monitor *sgm_terminal_monitor_create(const sgm_terminal_monitor_options *given)
{
    sgm_terminal_monitor_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_terminal_monitor") != SGM_OK)
        return NULL;
    terminal_monitor *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    const char *no_colour = getenv("NO_COLOR");
    pthread_mutex_init(&self->lock, NULL);
    self->base.expect = expect;
    self->base.progress = show;
    self->base.free = release;
    self->is_terminal = sgm__is_terminal(STDOUT_FILENO);
    self->colour = self->is_terminal && (no_colour == NULL || no_colour[0] == '\0');
    self->curves = self->can_curve = self->is_terminal && speaks_utf8();
    self->newest.kind = SGM_PROGRESS_STOP;
    sgm__task_lines_begin();
    if (!options.keys || !self->is_terminal || add_keys(self) == SGM_OK)
        return &self->base;
    release(&self->base);
    return NULL;
}
