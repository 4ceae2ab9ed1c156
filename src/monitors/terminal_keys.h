/* Keys on the terminal that steer trainers. Internal to the monitors. */
#ifndef SGM_MONITORS_TERMINAL_KEYS_H
#define SGM_MONITORS_TERMINAL_KEYS_H

#include "base/base.h"
#include <sigma/training.h>

typedef struct sgm__terminal_keys sgm__terminal_keys;
/* What is to be shown; called on the thread of the keys. */
typedef struct sgm__terminal_view {
    void *user;
    void (*help)(void *user);
    void (*curve)(void *user); /* on or off */
    void (*note)(void *user,
                 const char *text); /* "pausing", "10", ""; until the next one, a pause or its end */
} sgm__terminal_view;

/* NULL: failed. */
sgm__terminal_keys *sgm__terminal_keys_create(const sgm__terminal_view *view);
void sgm__terminal_keys_free(sgm__terminal_keys *keys);
sgm_status sgm__terminal_keys_attach(sgm__terminal_keys *keys, sgm_trainer *trainer);
void sgm__terminal_keys_detach(sgm__terminal_keys *keys, const sgm_trainer *trainer);
/* Around each run. True: keys are read from now on; also later, if the process comes to the front. */
bool sgm__terminal_keys_begin(sgm__terminal_keys *keys);
void sgm__terminal_keys_end(sgm__terminal_keys *keys);

#endif
