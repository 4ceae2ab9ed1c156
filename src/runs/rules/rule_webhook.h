/* Messages that rules send to an address of the web, beside a training. Internal.
 *
 * With the trainer's lock. */
#ifndef SGM_RUNS_RULES_RULE_WEBHOOK_H
#define SGM_RUNS_RULES_RULE_WEBHOOK_H

#include "trainer/view.h"

/* Begins to send {"text", "trainer", "folder", "epoch", "iteration", "loss"} to an address by POST; what
 * comes of it goes to the log; without a text (NULL) it is the moment. Fails if the address is not allowed,
 * or too many are on their way. In a replay nothing is sent. */
sgm_status sgm__rule_webhook_send(sgm_trainer *trainer, const char *address, const char *text);
/* At the end of a run: waits for those that are on their way, which is bounded. */
void sgm__rule_webhooks_end(sgm_trainer *trainer);

#endif
