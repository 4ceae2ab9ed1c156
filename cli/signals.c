/* Servers run until Ctrl-C, or until they are told to end. */
#include "cli.h"

#include <signal.h>

static sigset_t ending(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
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
