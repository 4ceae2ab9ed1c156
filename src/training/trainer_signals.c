/* Interruption: one signal stops all runs that want it. */
#include "training/trainer.h"

#include <signal.h>

/* SIGHUP comes when a terminal is closed; the others from schedulers, before the time of a job is over. */
static const struct {
    int number;
    bool always; /* else only where nothing else is done about it: nohup ignores SIGHUP */
} endings[] = {{SIGINT, true},   {SIGTERM, true},  {SIGHUP, false},
               {SIGXCPU, false}, {SIGUSR1, false}, {SIGUSR2, false}};
#define ENDING_COUNT (sizeof endings / sizeof *endings)

static atomic_bool interrupt_wanted; /* without a lock inside, as a signal's function needs it */
static pthread_mutex_t catching = PTHREAD_MUTEX_INITIALIZER;
static size_t catchers; /* guarded by `catching`, as the next */
static struct sigaction before[ENDING_COUNT];

static void on_signal(int number)
{
    (void)number;
    atomic_store(&interrupt_wanted, true);
}

static bool is_caught(size_t index)
{
    bool is_default = (before[index].sa_flags & SA_SIGINFO) == 0 && before[index].sa_handler == SIG_DFL;
    return endings[index].always || is_default;
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
        for (size_t i = 0; i < ENDING_COUNT; i++) {
            sigaction(endings[i].number, NULL, &before[i]);
            if (is_caught(i))
                sigaction(endings[i].number, &action, NULL);
        }
    }
    pthread_mutex_unlock(&catching);
}

void sgm__signals_release(bool wanted)
{
    if (!wanted)
        return;
    pthread_mutex_lock(&catching);
    if (--catchers == 0)
        for (size_t i = 0; i < ENDING_COUNT; i++)
            if (is_caught(i))
                sigaction(endings[i].number, &before[i], NULL);
    pthread_mutex_unlock(&catching);
}

bool sgm__signals_came(void)
{
    return atomic_load(&interrupt_wanted);
}
