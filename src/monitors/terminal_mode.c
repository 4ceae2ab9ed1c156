/* The terminal's settings, and that they come back whatever ends the process. All but `kill -9` can be seen
 * coming: exit() by atexit, signals by handlers that do what is safe there (tcsetattr is, see
 * signal-safety(7)) and then let happen what would have happened. */
#include "monitors/terminal_mode.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static struct termios own;    /* as they were; written while `changed` is false only */
static atomic_bool changed;   /* the terminal gives single keys */
static atomic_bool busy;      /* a thread changes the settings, with all signals blocked */
static atomic_bool suspended; /* a signal is being acted upon: nobody changes them */
static atomic_bool exiting;   /* the same, for good */
static atomic_int process;    /* that claimed it; not the children it forks */
static atomic_int wake_up;    /* see sgm__terminal_mode_claim */

/* --- settings --- */

/* Elsewhere changing them would stop the process, or take them from who is in front. */
static bool is_in_front(void)
{
    pid_t front = tcgetpgrp(STDIN_FILENO);
    return front >= 0 && front == getpgrp();
}

/* Safe in a signal's handler. */
static void restore(void)
{
    if (atomic_load(&process) != getpid() || !atomic_exchange(&changed, false))
        return;
    if (is_in_front())
        tcsetattr(STDIN_FILENO, TCSANOW, &own);
}

static bool change(bool first)
{
    struct termios now;
    if (!is_in_front() || tcgetattr(STDIN_FILENO, &now) != 0)
        return false;
    /* After `kill -STOP` the shell may give us our own settings back: those are not the terminal's. */
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

/* A handler on another thread waits for `busy` a moment; none runs on this one. */
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

typedef enum signal_kind {
    ENDS,     /* unless a program handles it */
    MAY_END,  /* what a program does about it is nothing to us: left alone if it does something */
    SUSPENDS, /* the process stands until it goes on */
    GOES_ON,
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
static struct sigaction before_us[SIGNAL_COUNT];
static bool installed[SIGNAL_COUNT];

static void on_signal(int number, siginfo_t *info, void *context);

static bool is_function(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static void set_action(size_t index)
{
    const struct sigaction *old = &before_us[index];
    struct sigaction action = {.sa_sigaction = on_signal, .sa_mask = old->sa_mask};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (is_function(old) ? old->sa_flags & SA_RESTART : SA_RESTART);
    sigaction(signals[index].number, &action, NULL);
}

/* As if there were no handler. For one that stops the process this returns when it goes on. */
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

/* What the program, or the training, had for it. */
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

/* A thread that changes them now is waited for a moment. */
static void wait_for_threads(void)
{
    for (int i = 0; i < 100 && atomic_load(&busy); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void restore_at_exit(void)
{
    if (atomic_load(&process) != getpid())
        return;
    atomic_store(&exiting, true);
    wait_for_threads();
    restore();
}

static void wake(void)
{
    const uint64_t one = 1;
    if (write(atomic_load(&wake_up), &one, sizeof one) < 0)
        return; /* it is looked at now and then anyway */
}

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

static bool is_worth_it(signal_kind kind, const struct sigaction *now)
{
    if (is_function(now))
        return kind != MAY_END;
    return kind == GOES_ON || now->sa_handler != SIG_IGN;
}

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

/* One that was put over ours goes on to call it, which does no harm. */
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
