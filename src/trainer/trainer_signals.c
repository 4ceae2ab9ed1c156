/* Signals that end a run: the run stops after its iteration, writes its checkpoint, and the process goes
 * on.
 *
 * Handlers are installed with the first run that wants them and taken away with the last one, whichever
 * threads the runs are on; one signal stops all of them. The handler only sets an atomic flag, which runs
 * read between two iterations. */
#include "trainer/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

/* SIGHUP comes when a terminal is closed; the others from schedulers, before the time of a job is over. */
static const struct {
    int number;
    bool always;  /* false: only where the program has the default action (nohup ignores SIGHUP, say) */
    bool insists; /* a second signal of this kind has its default action again */
} endings[] = {{SIGINT, true, true},    {SIGTERM, true, false},  {SIGHUP, false, false},
               {SIGXCPU, false, false}, {SIGUSR1, false, false}, {SIGUSR2, false, false}};
#define ENDING_COUNT (sizeof endings / sizeof *endings)

static atomic_bool interrupt_wanted; /* lock-free, as a signal handler needs it */
static pthread_mutex_t catching = PTHREAD_MUTEX_INITIALIZER;
static size_t catchers; /* runs that want signals; this and `before` are guarded by `catching` */
static struct sigaction before[ENDING_COUNT];

static void on_signal(int number)
{
    (void)number;
    atomic_store(&interrupt_wanted, true);
}

/* Whether the library handles the signal at this place of the table: always, or only where the program has
 * left it to the system. */
static bool is_caught(size_t index)
{
    bool is_default = (before[index].sa_flags & SA_SIGINFO) == 0 && before[index].sa_handler == SIG_DFL;
    return endings[index].always || is_default;
}

/* The second SIGINT acts as if there were no handler (SA_RESETHAND), so that a user can end a program whose
 * run does not stop. The other signals may come again before the checkpoint is written without anybody
 * meaning it: a shell whose terminal is closed passes on the SIGHUP that its jobs have got already,
 * timeout(1) sends SIGTERM to its child and then to the group, and SIGXCPU comes each second. */
void sgm__signals_catch(bool wanted)
{
    if (!wanted)
        return;
    pthread_mutex_lock(&catching);
    if (catchers++ == 0) {
        struct sigaction action = {.sa_handler = on_signal};
        sigemptyset(&action.sa_mask);
        atomic_store(&interrupt_wanted, false);
        for (size_t i = 0; i < ENDING_COUNT; i++) {
            action.sa_flags = SA_RESTART | (endings[i].insists ? (int)SA_RESETHAND : 0);
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
