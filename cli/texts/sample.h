/* The hook `sample`: how a language model goes on with a text while it is trained. */
#ifndef SGM_CLI_TEXTS_SAMPLE_H
#define SGM_CLI_TEXTS_SAMPLE_H

#include "config/config.h"

/* Makes the hook known by its text, before anything reads one. */
void sample_register(void);
/* From then on the hook turns texts into tokens as this configuration says, which must live until
 * sample_end. A process has one training at a time, and its branches. */
void sample_begin(const config *c);
void sample_end(void);
/* Attaches a hook for each prompt of the key `sample`. */
sgm_status sample_attach(sgm_trainer *trainer, const config *c);

#endif
