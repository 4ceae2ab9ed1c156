/* Signals that stop runs. Internal. */
#ifndef SGM_TRAINER_SIGNALS_H
#define SGM_TRAINER_SIGNALS_H

#include <stdbool.h>

/* SIGINT, SIGTERM and, where nothing else is done about them, SIGHUP, SIGXCPU, SIGUSR1 and
 * SIGUSR2 are caught from the first of these to the last release, by whichever threads; one signal stops all
 * runs that want it. */
void sgm__signals_catch(bool wanted);
void sgm__signals_release(bool wanted);
bool sgm__signals_came(void); /* since the first catch */

#endif
