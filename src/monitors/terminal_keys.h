/* Single keys on the terminal that steer the trainers of one terminal monitor.
 *
 * terminal.c creates one of these if keys were asked for, tells it which trainers exist and when runs
 * begin and end, and receives through sgm__terminal_view what is to be shown. Which settings the terminal
 * has meanwhile is the business of terminal_mode.h. Internal to the monitors. */
#ifndef SGM_MONITORS_TERMINAL_KEYS_H
#define SGM_MONITORS_TERMINAL_KEYS_H

#include "base/base.h"
#include <sigma/training.h>

typedef struct sgm__terminal_keys sgm__terminal_keys;
/* Functions of the owner that show what keys have done. All are called on the thread of the keys, without
 * its locks. */
typedef struct sgm__terminal_view {
    void *user;
    /* Shows the list of keys. */
    void (*help)(void *user);
    void (*curve)(void *user); /* switches the loss curve on or off */
    /* Shows a short text in front of the line: "pausing", the digits typed so far, or "" for none. The
     * text stays until the next call or until the training reports a pause or its end. */
    void (*note)(void *user, const char *text);
} sgm__terminal_view;

/* Starts the thread of the keys, which waits until a run begins. NULL: failed, with an error. */
sgm__terminal_keys *sgm__terminal_keys_create(const sgm__terminal_view *view);
/* Ends the thread and restores the terminal; NULL is allowed. */
void sgm__terminal_keys_free(sgm__terminal_keys *keys);
/* Trainers that keys steer. A trainer must be detached before it is freed. */
sgm_status sgm__terminal_keys_attach(sgm__terminal_keys *keys, sgm_trainer *trainer);
void sgm__terminal_keys_detach(sgm__terminal_keys *keys, const sgm_trainer *trainer);
/* Called at the beginning and at the end of each trainer's run; calls nest, and keys are read from the
 * first beginning to the last end. True: keys are read from this moment. False: they are not read, or only
 * once the process comes into the foreground. */
bool sgm__terminal_keys_begin(sgm__terminal_keys *keys);
void sgm__terminal_keys_end(sgm__terminal_keys *keys);

#endif
