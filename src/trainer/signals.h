/* Signals that stop runs. Internal. */
#ifndef SGM_TRAINER_SIGNALS_H
#define SGM_TRAINER_SIGNALS_H

#include <stdbool.h>

/* From the first catch to the last release, by any threads, SIGINT and SIGTERM are caught, and SIGHUP,
 * SIGXCPU, SIGUSR1 and SIGUSR2 where the program has no handler for them. One signal stops all runs that want
 * it. */
void sgm__signals_catch(bool wanted);
void sgm__signals_release(bool wanted);
/* Whether a signal has come since the first catch. */
bool sgm__signals_came(void);

#endif
