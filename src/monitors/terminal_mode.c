/* The terminal's settings for single keys, and their restoration whatever ends the process.
 *
 * Everything but SIGKILL can be foreseen: exit() by atexit, signals by handlers. A handler calls only what is
 * async-signal-safe (tcsetattr is, see signal-safety(7)), restores the settings, and then does what would
 * have happened without it: calls the program's handler or lets the default action take place. All state is
 * static and atomic, as it belongs to the process and handlers read it.
 *
 * Protocol between threads and handlers: a thread that changes settings blocks all signals and sets
 * `busy`. A handler sets `suspended`, which keeps threads from changing anything, then waits a moment for
 * `busy` to become false. Neither waits without a limit. */
#include "monitors/terminal_mode.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static struct termios own;    /* the terminal's own settings; written only while `changed` is false */
static atomic_bool changed;   /* single keys are switched on */
static atomic_bool busy;      /* a thread is changing the settings, with all signals blocked */
static atomic_bool suspended; /* a handler is at work: nobody changes the settings */
static atomic_bool exiting;   /* exit() has begun: nobody changes the settings any more */
/* The process that has the claim; children that it forks must not restore anything. */
static atomic_int process;
static atomic_int wake_up; /* the descriptor given to sgm__terminal_mode_claim */

/* --- settings --- */

/* Whether this process group is in the foreground. A background process that changes the settings would be
 * stopped by SIGTTOU, or would change them under the process in the foreground. */
static bool is_in_front(void)
{
    pid_t front = tcgetpgrp(STDIN_FILENO);
    return front >= 0 && front == getpgrp();
}

/* Brings the terminal's own settings back; safe in a signal handler. The exchange makes sure that only one
 * caller does so. A process in the background leaves the terminal alone: the shell has set it for the
 * foreground. */
static void restore(void)
{
    if (atomic_load(&process) != getpid() || !atomic_exchange(&changed, false))
        return;
    if (is_in_front())
        tcsetattr(STDIN_FILENO, TCSANOW, &own);
}

/* Switches to single keys. `changed` is set before tcsetattr, so that a handler that comes in between
 * restores the settings rather than leaving the terminal without echo. */
static bool change(bool first)
{
    struct termios now;
    if (!is_in_front() || tcgetattr(STDIN_FILENO, &now) != 0)
        return false;
    /* After `kill -STOP` and `fg` the shell may hand back the settings of single keys, since it saved
     * those; they are not the terminal's own. */
    if (first || (now.c_lflag & (tcflag_t)(ICANON | ECHO)) != 0)
        own = now;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    atomic_store(&changed, true);
    if (tcsetattr(STDIN_FILENO, TCSANOW, &now) != 0) {
        atomic_store(&changed, false);
        return false;
    }
    if (first)
        tcflush(STDIN_FILENO, TCIFLUSH);
    return true;
}

/* All signals are blocked while the settings change, so no handler runs on this thread in the middle of
 * it. A handler on another thread waits for `busy`. */
bool sgm__terminal_mode_enter(bool first)
{
    sigset_t all, before;
    if (atomic_load(&changed))
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&busy, true);
    bool done = !atomic_load(&suspended) && !atomic_load(&exiting) && change(first);
    atomic_store(&busy, false);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

/* The counterpart of sgm__terminal_mode_enter. */
static void leave(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&busy, true);
    restore();
    atomic_store(&busy, false);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- signals --- */

/* What a signal usually does to the process. */
typedef enum signal_kind {
    ENDS, /* ends the process, unless the program handles the signal */
    /* Ends the process by default, but programs often use it: a handler of the program is left alone. */
    MAY_END,
    SUSPENDS, /* stops the process until SIGCONT */
    GOES_ON,  /* SIGCONT: the process continues after a stop */
} signal_kind;

static const struct {
    int number;
    signal_kind kind;
} signals[] = {
    {SIGHUP, ENDS},     {SIGINT, ENDS},      {SIGQUIT, ENDS},    {SIGTERM, ENDS},    {SIGABRT, ENDS},
    {SIGSEGV, ENDS},    {SIGBUS, ENDS},      {SIGFPE, ENDS},     {SIGILL, ENDS},     {SIGPIPE, MAY_END},
    {SIGALRM, MAY_END}, {SIGUSR1, MAY_END},  {SIGUSR2, MAY_END}, {SIGXCPU, MAY_END}, {SIGXFSZ, MAY_END},
    {SIGSYS, MAY_END},  {SIGTSTP, SUSPENDS}, {SIGCONT, GOES_ON},
};
#define SIGNAL_COUNT (sizeof signals / sizeof *signals)
/* The actions that the process had before install(), and which of them have been replaced. */
static struct sigaction before_us[SIGNAL_COUNT];
static bool installed[SIGNAL_COUNT];

static void on_signal(int number, siginfo_t *info, void *context);

/* Whether the program has a handler, as opposed to SIG_DFL or SIG_IGN. */
static bool is_function(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* Installs our handler. It runs on the alternative stack if there is one (a stack overflow raises
 * SIGSEGV), with the mask of the replaced handler. System calls are restarted as with that handler, and
 * always where there was none. */
static void set_action(size_t index)
{
    const struct sigaction *old = &before_us[index];
    struct sigaction action = {.sa_sigaction = on_signal, .sa_mask = old->sa_mask};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (is_function(old) ? old->sa_flags & SA_RESTART : SA_RESTART);
    sigaction(signals[index].number, &action, NULL);
}

/* Takes the default action of the signal: restores SIG_DFL, raises the signal again and unblocks it (it is
 * blocked while its handler runs). For a signal that ends the process this does not return; for one that
 * stops it, this returns when the process continues. */
static void act_by_default(int number)
{
    struct sigaction default_action = {.sa_handler = SIG_DFL};
    sigset_t set;
    sigemptyset(&default_action.sa_mask);
    sigaction(number, &default_action, NULL);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Does what the process would have done without our handler: its own handler (of the program, or of a run
 * that catches interrupts), else the default action. SIGCONT has no default action that is left to do.
 * SA_RESETHAND is honoured, since the handler was not installed by sigaction and the kernel does not reset
 * it. */
static void act_as_before(size_t index, siginfo_t *info, void *context)
{
    struct sigaction *old = &before_us[index];
    int number = signals[index].number;
    struct sigaction copy = *old;
    if ((copy.sa_flags & (int)SA_RESETHAND) != 0)
        *old = (struct sigaction){.sa_handler = SIG_DFL};
    if ((copy.sa_flags & SA_SIGINFO) != 0)
        copy.sa_sigaction(number, info, context);
    else if (is_function(&copy))
        copy.sa_handler(number);
    else if (copy.sa_handler == SIG_DFL && signals[index].kind != GOES_ON)
        act_by_default(number);
}

/* Waits up to 100 ms for a thread that is changing the settings. The limit keeps a handler from hanging
 * for ever if that very thread is the one that crashed. */
static void wait_for_threads(void)
{
    for (int i = 0; i < 100 && atomic_load(&busy); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The function for atexit: stays registered for the life of the process. */
static void restore_at_exit(void)
{
    if (atomic_load(&process) != getpid())
        return;
    atomic_store(&exiting, true);
    wait_for_threads();
    restore();
}

/* Wakes the thread of the keys. A failure does not matter: that thread also looks regularly. */
static void wake(void)
{
    const uint64_t one = 1;
    if (write(atomic_load(&wake_up), &one, sizeof one) < 0)
        return;
}

/* The handler of all signals in the table. Restores the settings unless the process continues, acts as
 * before, then lets the threads change settings again. After a stop by default the handler is installed
 * anew, because act_by_default has replaced it. errno is kept for the code that was interrupted. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    int error = errno;
    size_t index = 0;
    while (index < SIGNAL_COUNT && signals[index].number != number)
        index++;
    if (index == SIGNAL_COUNT)
        return;
    if (signals[index].kind != GOES_ON) {
        atomic_store(&suspended, true);
        wait_for_threads();
        restore();
    }
    act_as_before(index, info, context);
    if (signals[index].kind == SUSPENDS && !is_function(&before_us[index]))
        set_action(index);
    atomic_store(&suspended, false);
    wake();
    errno = error;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == on_signal;
}

/* Whether a signal needs our handler. Not one that the program ignores, and not MAY_END where the program
 * has a handler, which presumably does not end the process. SIGCONT always: it tells the thread to switch
 * on single keys again. */
static bool is_worth_it(signal_kind kind, const struct sigaction *now)
{
    if (is_function(now))
        return kind != MAY_END;
    return kind == GOES_ON || now->sa_handler != SIG_IGN;
}

/* Installs the handler for each signal that needs it. A signal that is already ours (the claim was given
 * up while a later handler was in place) keeps what it has in before_us. */
static void install(void)
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction now;
        if (sigaction(signals[i].number, NULL, &now) != 0)
            continue;
        installed[i] = is_ours(&now) || is_worth_it(signals[i].kind, &now);
        if (is_ours(&now) || !installed[i])
            continue;
        before_us[i] = now;
        set_action(i);
    }
}

/* Restores the actions. Where the program has put a handler of its own over ours since, that one stays; if
 * it calls ours, ours restores nothing and does as before. */
static void uninstall(void)
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction now;
        if (installed[i] && sigaction(signals[i].number, NULL, &now) == 0 && is_ours(&now))
            sigaction(signals[i].number, &before_us[i], NULL);
        installed[i] = false;
    }
}

/* --- claims --- */

static atomic_flag claimed = ATOMIC_FLAG_INIT;

/* atexit cannot be undone, so it is called once per process. */
bool sgm__terminal_mode_claim(int fd)
{
    static atomic_bool at_exit;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || atomic_flag_test_and_set(&claimed))
        return false;
    if (!atomic_exchange(&at_exit, true) && atexit(restore_at_exit) != 0) {
        atomic_store(&at_exit, false);
        atomic_flag_clear(&claimed);
        return false;
    }
    atomic_store(&wake_up, fd);
    atomic_store(&process, getpid());
    install();
    return true;
}

void sgm__terminal_mode_give_up(void)
{
    leave();
    uninstall();
    atomic_store(&wake_up, -1);
    atomic_flag_clear(&claimed);
}
