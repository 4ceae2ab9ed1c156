/* What the subcommands do about signals. A training run handles SIGINT and SIGTERM itself (the library's
 * catch_interrupt).
 *
 * Three needs are met: servers (monitor.c, serve.c) block the signals and wait for one; work before a
 * training begins (train.c) ends at once with a message; output to a closed pipe must not end a training.
 * Declared in cli.h. */
#include "cli.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* The signals that end a server. SIGHUP is left alone where it is ignored: `nohup` asks for that. */
static sigset_t ending(void)
{
    sigset_t signals;
    struct sigaction hangup;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(&signals, SIGHUP);
    return signals;
}

void signals_hold(void)
{
    sigset_t signals = ending();
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

void signals_wait(void)
{
    sigset_t signals = ending();
    int came;
    sigwait(&signals, &came);
}

/* State of signals_end_at_once. The text is formatted in advance, since a signal handler may not call
 * printf; `before` has the actions to restore, in the order of `endings`. */
static char last_words[256];
static struct sigaction before[2];
static const int endings[] = {SIGINT, SIGTERM};

/* The signal handler: only calls that are safe in one. */
static void end_at_once(int number)
{
    (void)number;
    ssize_t written = write(STDERR_FILENO, last_words, strlen(last_words));
    (void)written; /* nobody is left who could be told */
    _exit(CLI_INTERRUPTED);
}

/* A signal that is ignored (SIGINT in a background job of a shell) stays ignored. */
void signals_end_at_once(const char *command, const char *words)
{
    const struct sigaction action = {.sa_handler = end_at_once, .sa_flags = (int)SA_RESETHAND};
    char who[96];
    snprintf(last_words, sizeof last_words, "sigma %s: %s%s\n", command, this_process(who, sizeof who),
             words);
    for (int i = 0; i < 2; i++) {
        sigaction(endings[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(endings[i], &action, NULL);
    }
}

void signals_as_before(void)
{
    for (int i = 0; i < 2; i++)
        sigaction(endings[i], &before[i], NULL);
}

void signals_outlive_readers(void)
{
    signal(SIGPIPE, SIG_IGN);
}
