/* A terminal that gives single keys: no lines, no echo; Ctrl-C and Ctrl-Z stay signals. Of the process.
 * Internal to the monitors. */
#ifndef SGM_MONITORS_TERMINAL_MODE_H
#define SGM_MONITORS_TERMINAL_MODE_H

#include "base/base.h"

/* Stdin and stdout are terminals, and nobody else has claimed it; false: no keys. From then on everything
 * that ends or stops the process by a signal, and exit(), brings the terminal's own settings back before.
 * `wake` is a file descriptor of an eventfd that is written to when the process goes on. */
bool sgm__terminal_mode_claim(int wake);
void sgm__terminal_mode_give_up(void);

/* After a claim. False: the process is in the background, or about to end: try again when woken, or later.
 * `first`: what was typed before is dropped. */
bool sgm__terminal_mode_enter(bool first);

#endif
