/* The terminal monitor: shows the progress of trainings on stdout.
 *
 * On a terminal there is one line that is redrawn in place, and a permanent line for each finished epoch;
 * into a file or a pipe only the permanent lines go. terminal_line.c formats the lines, terminal_keys.c
 * reads keys, task_lines.c shows downloads and the like on stderr. The environment calls `show` on the
 * trainers' threads; the thread of the keys calls show_note, switch_curve and show_help. `lock` guards all
 * members and every output to stdout. Lock order: this lock may be held while the `mode` lock of the keys
 * is taken, never the other way round. */
#include "monitors/monitor.h"
#include "monitors/task_lines.h"
#include "monitors/terminal_keys.h"
#include "monitors/terminal_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Shortest time between two redraws of the line: faster changes cannot be read, and each costs a write. */
#define REDRAW_SECONDS 0.1

/* The monitor. `newest` keeps what is on the screen, so that a key can have it redrawn between two events. */
typedef struct terminal_monitor {
    sgm_monitor base;
    pthread_mutex_t lock;
    bool several; /* several trainers run side by side: each line begins with a name */
    bool is_terminal, colour;
    bool can_curve, curves; /* the terminal can show the loss curve; it is switched on */
    sgm__sparkline losses;
    bool drawn;               /* an unfinished line is on the screen */
    double redrawn;           /* sgm__now() at the last redraw */
    char trainer[100];        /* the trainer of the newest line, possibly cut */
    size_t running;           /* trainers that run now */
    sgm__terminal_keys *keys; /* NULL: no keys were asked for */
    /* What the redrawn line shows; `trainer` points to the member above. */
    sgm_training_progress newest;
    char note[24]; /* what a key has set in motion, for example "pausing" */
} terminal_monitor;

/* Asked at each redraw, since windows are resized. */
static size_t terminal_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* Removes the unfinished line, so that other output starts in the first column. The log is told, because a
 * log message on stderr would otherwise have to clear the line itself. */
static void clear_line(terminal_monitor *self)
{
    if (self->drawn) {
        fputs("\r\033[K", stdout);
        sgm__log_line_is_open(false);
    }
    self->drawn = false;
}

/* No curve with several trainers: the points of different losses would mix. */
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

/* Copies the progress for later redraws. Pointers into the progress are valid during the call only and are
 * cleared; the name is copied. */
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

/* Prints a line that stays, in place of the redrawn one. */
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

/* The event START. A second trainer that runs after the first gets a heading with its name, since its
 * lines have none. Keys are read from the first start to the last stop, and their line of help is printed
 * once for all trainers that run at once. */
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

/* Prints why a run has stopped or paused, if somebody gave a reason. */
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

/* The event STOP. Holds and keys are released as often as `start` has taken them. */
static void stop(terminal_monitor *self, const sgm_training_progress *progress)
{
    if (self->is_terminal)
        sgm__task_lines_hold(false);
    if (self->running > 0 && self->keys != NULL)
        sgm__terminal_keys_end(self->keys);
    self->running -= self->running > 0;
    self->note[0] = '\0';
    self->newest.kind = SGM_PROGRESS_STOP;
    /* An epoch that was not finished has a line too, so that all training is accounted for. Without a rate
     * nothing was trained since the start: the batch is a position that was restored. */
    if (progress->batch > 0 && progress->rate > 0)
        print_epoch(self, progress, progress->epoch + 1);
    clear_line(self);
    tell_reason(self, progress, "stopped");
}

/* A person who has paused a trainer with a key or a command knows that; a hook pauses unseen, and gives a
 * reason, which is printed also into files. */
static void show_pause(terminal_monitor *self, const sgm_training_progress *progress)
{
    self->note[0] = '\0';
    tell_reason(self, progress, "paused");
    if (self->is_terminal)
        draw_newest(self, progress);
}

/* The loss enters the curve at each redraw rather than each iteration, so the curve's axis is time. */
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

/* Called by the environment around each run. */
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

/* Takes the lock for a change by a key. False: no trainer runs any more, so the key changes nothing; the
 * lock is taken all the same, and end_change releases it. */
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

/* Function of sgm__terminal_view. "pausing" may come after the pause itself, which clears the note; it
 * would then never be cleared, so it is dropped. */
static void show_note(void *user, const char *text)
{
    terminal_monitor *self = user;
    bool runs = begin_change(self);
    bool late = self->newest.kind == SGM_PROGRESS_PAUSE && strcmp(text, "pausing") == 0;
    if (runs)
        snprintf(self->note, sizeof self->note, "%s", late ? "" : text);
    end_change(self, runs);
}

/* Function of sgm__terminal_view. */
static void switch_curve(void *user)
{
    terminal_monitor *self = user;
    bool runs = begin_change(self);
    self->curves = self->can_curve && !self->curves;
    end_change(self, runs);
}

/* Function of sgm__terminal_view. */
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

/* Frees the keys first: their thread uses the monitor. */
static void release(sgm_monitor *monitor)
{
    terminal_monitor *self = (terminal_monitor *)monitor;
    sgm__terminal_keys_free(self->keys);
    clear_line(self);
    sgm__task_lines_end();
    pthread_mutex_destroy(&self->lock);
    sgm__free(monitor);
}

static sgm_status add_keys(terminal_monitor *self)
{
    self->keys = sgm__terminal_keys_create(&(const sgm__terminal_view){
        .user = self, .help = show_help, .curve = switch_curve, .note = show_note});
    self->base.attach = attach;
    self->base.detach = detach;
    return self->keys != NULL ? SGM_OK : sgm_last_status();
}

/* Colour follows the convention of no-color.org: a NO_COLOR that is not empty switches it off. */
sgm_monitor *sgm_terminal_monitor_with(const sgm_terminal_monitor_options *given)
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
    self->curves = self->can_curve = self->is_terminal && sgm__locale_is_utf8();
    self->newest.kind = SGM_PROGRESS_STOP;
    sgm__task_lines_begin();
    if (!options.keys || !self->is_terminal || add_keys(self) == SGM_OK)
        return &self->base;
    release(&self->base);
    return NULL;
}
