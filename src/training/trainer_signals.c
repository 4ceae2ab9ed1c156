/* Interruption: one signal stops all runs that want it. */
#include "training/trainer.h"

#include <signal.h>

static atomic_bool interrupt_wanted; /* without a lock inside, as a signal's function needs it */
static pthread_mutex_t catching = PTHREAD_MUTEX_INITIALIZER;
static size_t catchers; /* guarded by `catching`, as the next */
static struct sigaction old_interrupt, old_terminate;

static void on_signal(int number)
{
    (void)number;
    atomic_store(&interrupt_wanted, true);
}

/* A second signal acts as it did before: nothing can hold a user who means it. */
void sgm__signals_catch(bool wanted)
{
    if (!wanted)
        return;
    pthread_mutex_lock(&catching);
    if (catchers++ == 0) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
        sigemptyset(&action.sa_mask);
        atomic_store(&interrupt_wanted, false);
        sigaction(SIGINT, &action, &old_interrupt);
        sigaction(SIGTERM, &action, &old_terminate);
    }
    pthread_mutex_unlock(&catching);
}

void sgm__signals_release(bool wanted)
{
    if (!wanted)
        return;
    pthread_mutex_lock(&catching);
    if (--catchers == 0) {
        sigaction(SIGINT, &old_interrupt, NULL);
        sigaction(SIGTERM, &old_terminate, NULL);
    }
    pthread_mutex_unlock(&catching);
}

bool sgm__signals_came(void)
{
    return atomic_load(&interrupt_wanted);
}
