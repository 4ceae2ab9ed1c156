/* Switches the terminal to single keys (neither line editing nor echo) and guarantees that its settings come
 * back.
 *
 * Ctrl-C and Ctrl-Z still raise signals. The settings of a terminal belong to the whole process, so these
 * functions keep static state and only one caller (terminal_keys.c) can have the claim. Internal to the
 * monitors. */
#ifndef SGM_MONITORS_TERMINAL_MODE_H
#define SGM_MONITORS_TERMINAL_MODE_H

#include "base/base.h"

/* Claims the terminal; false: stdin and stdout are not both terminals, or the claim is taken. From this
 * call on, exit() and every signal that ends or suspends the process first bring the terminal's own
 * settings back. `wake` is an eventfd, which a signal handler writes to when the process continues. */
bool sgm__terminal_mode_claim(int wake);
/* Restores settings and signal handlers and releases the claim. */
void sgm__terminal_mode_give_up(void);

/* Switches to single keys; needs the claim. True also if they are switched on already. False: the process
 * is in the background or about to end; call again when `wake` was written or after a while. `first`: what
 * was typed before is dropped. */
bool sgm__terminal_mode_enter(bool first);

#endif
