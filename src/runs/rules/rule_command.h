/* Programs that rules run beside a training. Internal.
 *
 * With the trainer's lock. */
#ifndef SGM_RUNS_RULES_RULE_COMMAND_H
#define SGM_RUNS_RULES_RULE_COMMAND_H

#include "trainer/view.h"

/* Starts the program that `command` names (src/text/command_words.h), with the run's values in its
 * environment; what it writes goes to the log, and it is killed after as many seconds as the trainer allows.
 * Fails if it cannot be started, or is not allowed. In a replay nothing is started. */
sgm_status sgm__rule_command_start(sgm_trainer *trainer, const char *command);
/* At the end of a run: waits for the programs that it has started, each no longer than it may run. */
void sgm__rule_commands_end(sgm_trainer *trainer);

#endif
