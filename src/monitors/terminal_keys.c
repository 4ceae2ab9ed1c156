/* The thread that reads keys from the terminal and gives commands to trainers.
 *
 * One thread, started with the monitor, sleeps in poll on stdin and on an eventfd (`wake`). The eventfd is
 * written when a run begins, when the process continues after a stop (terminal_mode.c) and at the end. Keys
 * act on all attached trainers through the public commands (sgm_trainer_pause and others), which only leave a
 * request, so this thread never waits for a training step.
 *
 * Two locks. `lock` guards the list of trainers and is held while commands are given, so that no trainer
 * is freed meanwhile. `mode` guards whether and how the terminal is claimed; it is never held while a
 * trainer is waited for or something is drawn, since runs begin and end under the monitor's lock. */
#include "monitors/terminal_keys.h"
#include "base/clock.h"
#include "monitors/terminal_mode.h"
#include "trainer/view.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Time between two checks of whether the process is in the foreground again: no signal tells of that. */
#define LOOK_MILLISECONDS 500
/* Bytes of one read above which the input is taken for pasted text and ignored. */
#define LONGEST_TYPED 16
#define MAXIMUM_STEPS 1000000000

/* The state of the keys of one monitor. */
struct sgm__terminal_keys {
    sgm__terminal_view view;
    pthread_t thread;
    int wake;               /* eventfd that ends the thread's poll */
    pthread_mutex_t lock;   /* guards the list of trainers */
    sgm_trainer **trainers; /* borrowed */
    size_t count, capacity;
    pthread_mutex_t mode; /* guards `runs` to `ending` */
    size_t runs;          /* trainers that run now */
    /* This process has claimed the terminal; single keys were switched on at least once. */
    bool claimed, entered;
    bool lost; /* the terminal has hung up: no more keys */
    bool ending;
    int64_t number; /* digits typed before s, for a number of steps; used by the thread alone */
};

/* --- what keys do --- */

static bool runs(sgm_trainer *trainer)
{
    return sgm_trainer_get_state(trainer) != SGM_TRAINER_IDLE;
}

/* A trainer that runs and has no pause pending. One that is counting the iterations of a step counts as
 * paused. */
static bool goes(sgm_trainer *trainer)
{
    return runs(trainer) && !sgm__trainer_is_held(trainer);
}

/* If any trainer goes on, all running trainers pause; if none does, all go on. Results are ignored: a
 * trainer may have ended since it was asked. Returns the note to be shown, as `step` and `stop` do. */
static const char *pause_or_resume(sgm__terminal_keys *keys)
{
    bool any = false;
    for (size_t i = 0; i < keys->count; i++)
        any = any || goes(keys->trainers[i]);
    for (size_t i = 0; i < keys->count; i++)
        if (runs(keys->trainers[i]))
            (void)(any ? sgm_trainer_pause(keys->trainers[i]) : sgm_trainer_resume(keys->trainers[i]));
    return any ? "pausing" : "";
}

static const char *step(sgm__terminal_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        if (runs(keys->trainers[i]))
            sgm_trainer_step(keys->trainers[i], keys->number > 0 ? keys->number : 1);
    return "";
}

static const char *stop(sgm__terminal_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        if (runs(keys->trainers[i]))
            sgm_trainer_stop(keys->trainers[i], "key q");
    return "stopping";
}

/* Carries out a command with the list locked, and shows the note after the lock is released, because the
 * view takes the monitor's lock. */
static void steer(sgm__terminal_keys *keys, const char *(*act)(sgm__terminal_keys *))
{
    pthread_mutex_lock(&keys->lock);
    const char *note = act(keys);
    pthread_mutex_unlock(&keys->lock);
    keys->view.note(keys->view.user, note);
}

/* A digit that would lead beyond MAXIMUM_STEPS is ignored. */
static void add_digit(sgm__terminal_keys *keys, int digit)
{
    char text[24];
    if (keys->number <= MAXIMUM_STEPS / 10 - 1)
        keys->number = keys->number * 10 + digit;
    snprintf(text, sizeof text, "%lld", (long long)keys->number);
    keys->view.note(keys->view.user, text);
}

/* One key. Every key but a digit uses up the typed number; a key that does not show a note of its own
 * clears the digits from the line. */
static void press(sgm__terminal_keys *keys, char key)
{
    if (key >= '0' && key <= '9') {
        add_digit(keys, key - '0');
        return;
    }
    int64_t number = keys->number;
    if (key == ' ' || key == 'p')
        steer(keys, pause_or_resume);
    else if (key == 's')
        steer(keys, step);
    else if (key == 'q')
        steer(keys, stop);
    else if (key == 'c')
        keys->view.curve(keys->view.user);
    else if (key == 'h' || key == '?')
        keys->view.help(keys->view.user);
    keys->number = 0;
    if (number > 0 && strchr(" psq", key) == NULL)
        keys->view.note(keys->view.user, "");
}

/* What one read has returned. Arrow and function keys are sequences that begin with Escape and end with
 * letters; everything from an Escape on is dropped, so that these letters are not taken for commands. */
static void press_all(sgm__terminal_keys *keys, const char *typed, size_t count)
{
    for (size_t i = 0; i < count && count <= LONGEST_TYPED && typed[i] != '\033'; i++)
        press(keys, typed[i]);
}

/* --- the thread --- */

/* Switches the terminal to single keys if it is time to, and returns whether stdin is to be read. *ending:
 * the thread shall end. *waits: the terminal is claimed, so the check has to be repeated regularly, even
 * when no key may be read now. */
static bool look(sgm__terminal_keys *keys, bool *ending, bool *waits)
{
    pthread_mutex_lock(&keys->mode);
    bool reads = keys->claimed && !keys->lost && sgm__terminal_mode_enter(!keys->entered);
    keys->entered = keys->entered || reads;
    *ending = keys->ending;
    *waits = keys->claimed && !keys->lost;
    pthread_mutex_unlock(&keys->mode);
    return reads;
}

/* The terminal is gone: reading it again would return at once for ever. */
static void lose(sgm__terminal_keys *keys)
{
    pthread_mutex_lock(&keys->mode);
    keys->lost = true;
    pthread_mutex_unlock(&keys->mode);
}

/* Reads without blocking (VMIN and VTIME are 0). Nothing may come although poll reported input, if another
 * process of the terminal read it first. EIO comes when the process has moved into the background; that is
 * temporary. */
static void read_keys(sgm__terminal_keys *keys, bool hung_up)
{
    char typed[64];
    ssize_t got = read(STDIN_FILENO, typed, sizeof typed);
    if (got > 0)
        press_all(keys, typed, (size_t)got);
    else if (hung_up || (got < 0 && errno != EINTR && errno != EAGAIN && errno != EIO))
        lose(keys);
}

/* The thread. In each round it looks whether keys are wanted and then polls; a descriptor of -1 is ignored
 * by poll. The timeout applies only while the terminal is claimed, so that a monitor without a run sleeps. */
static void *run(void *argument)
{
    sgm__terminal_keys *keys = argument;
    bool ending, waits;
    for (;;) {
        uint64_t times;
        bool reads = look(keys, &ending, &waits);
        if (ending)
            return NULL;
        struct pollfd from[] = {{.fd = keys->wake, .events = POLLIN},
                                {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};
        if (poll(from, 2, waits ? LOOK_MILLISECONDS : -1) <= 0)
            continue;
        if (from[0].revents != 0 && read(keys->wake, &times, sizeof times) < 0)
            continue;
        if ((from[1].revents & POLLIN) != 0)
            read_keys(keys, (from[1].revents & POLLHUP) != 0);
        else if (from[1].revents != 0)
            lose(keys);
    }
}

/* Ends the current poll of the thread. */
static void wake(const sgm__terminal_keys *keys)
{
    const uint64_t one = 1;
    if (write(keys->wake, &one, sizeof one) < 0)
        return;
}

/* --- from outside --- */

/* All signals are blocked in the thread. The handlers of terminal_mode.c then never run on it, and so
 * never wait for a change of settings that this very thread is making. */
sgm__terminal_keys *sgm__terminal_keys_create(const sgm__terminal_view *view)
{
    sgm__terminal_keys *keys = sgm__calloc(1, sizeof *keys);
    if (keys == NULL)
        return NULL;
    keys->view = *view;
    pthread_mutex_init(&keys->lock, NULL);
    pthread_mutex_init(&keys->mode, NULL);
    keys->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (keys->wake >= 0 && sgm__thread_start(&keys->thread, run, keys) == 0)
        return keys;
    sgm_fail(SGM_ERROR_MEMORY, "the system refused a %s for keys on the terminal",
             keys->wake >= 0 ? "thread" : "file descriptor");
    if (keys->wake >= 0)
        close(keys->wake);
    pthread_mutex_destroy(&keys->mode);
    pthread_mutex_destroy(&keys->lock);
    sgm__free(keys);
    return NULL;
}

/* The thread is joined before the terminal is given up, so that nobody switches single keys on again. */
void sgm__terminal_keys_free(sgm__terminal_keys *keys)
{
    if (keys == NULL)
        return;
    pthread_mutex_lock(&keys->mode);
    keys->ending = true;
    pthread_mutex_unlock(&keys->mode);
    wake(keys);
    pthread_join(keys->thread, NULL);
    if (keys->claimed)
        sgm__terminal_mode_give_up();
    close(keys->wake);
    pthread_mutex_destroy(&keys->mode);
    pthread_mutex_destroy(&keys->lock);
    sgm__free(keys->trainers);
    sgm__free(keys);
}

sgm_status sgm__terminal_keys_attach(sgm__terminal_keys *keys, sgm_trainer *trainer)
{
    pthread_mutex_lock(&keys->lock);
    sgm_status status =
        sgm__reserve(&keys->trainers, &keys->capacity, keys->count + 1, sizeof *keys->trainers);
    if (status == SGM_OK)
        keys->trainers[keys->count++] = trainer;
    pthread_mutex_unlock(&keys->lock);
    return status;
}

void sgm__terminal_keys_detach(sgm__terminal_keys *keys, const sgm_trainer *trainer)
{
    size_t kept = 0;
    pthread_mutex_lock(&keys->lock);
    for (size_t i = 0; i < keys->count; i++)
        if (keys->trainers[i] != trainer)
            keys->trainers[kept++] = keys->trainers[i];
    keys->count = kept;
    pthread_mutex_unlock(&keys->lock);
}

/* Enters the mode here rather than on the thread, so that the caller knows whether to print the line about
 * keys. It drops what was typed before the run. */
bool sgm__terminal_keys_begin(sgm__terminal_keys *keys)
{
    pthread_mutex_lock(&keys->mode);
    if (keys->runs++ == 0) {
        keys->claimed = sgm__terminal_mode_claim(keys->wake);
        keys->entered = keys->claimed && sgm__terminal_mode_enter(true);
    }
    bool entered = keys->entered;
    pthread_mutex_unlock(&keys->mode);
    wake(keys);
    return entered;
}

void sgm__terminal_keys_end(sgm__terminal_keys *keys)
{
    pthread_mutex_lock(&keys->mode);
    if (--keys->runs == 0 && keys->claimed) {
        sgm__terminal_mode_give_up();
        keys->claimed = keys->entered = false;
    }
    pthread_mutex_unlock(&keys->mode);
}
