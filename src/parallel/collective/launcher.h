/* Whether a launcher (mpirun, srun) started this process, and with how many others. Internal. */
#ifndef SGM_PARALLEL_COLLECTIVE_LAUNCHER_H
#define SGM_PARALLEL_COLLECTIVE_LAUNCHER_H

/* How many processes the launcher of this one has started, as it says; 0: there is no launcher. */
int sgm__launched_processes(void);
int sgm__launched_number(void);  /* which one this is, from 0; -1: there are not several */
const char *sgm__launcher(void); /* "mpirun" or "srun"; where there are several processes */

#endif
