/* A trained network that answers over HTTP: by the monitor's server, so with its rules of safety.
 *
 * Questions are answered one after the other, by one thread, with all threads of the trainer's handler; what
 * the network is, is told beside that. Programs are compiled for 1, 2, 4, ... examples, so however many come
 * at once, there are few. Internal. */
#ifndef SGM_MONITORS_SERVE_SERVE_H
#define SGM_MONITORS_SERVE_SERVE_H

#include "base/base.h"
#include <sigma/training.h>

#define SGM__SERVE_MAXIMUM_EXAMPLES 512 /* of one question */

typedef struct sgm__serve sgm__serve;

typedef struct sgm__serve_options {
    sgm_trainer *trainer; /* stays; nobody trains it meanwhile */
    const char *network;  /* its notation */
    sgm_dtype precision;  /* that it is computed in, to be told */
    /* Names of the classes, NULL behind the last; NULL: numbers alone. Copied. */
    const char *const *classes;
    bool scales;             /* inputs from this range to 0 to 1, as the run's own were */
    double minimum, maximum; /* of it */
    int port;                /* 0: the first free one from 8080 on */
    const char *token;       /* NULL: a random one */
    double hurry;            /* tests, as in sgm__http_options */
} sgm__serve_options;
/* Asks the network once, so that one that cannot answer is found now. NULL: an error says why. */
sgm__serve *sgm__serve_start(const sgm__serve_options *options);
const char *sgm__serve_url(const sgm__serve *serve); /* opens a page by one click */
int sgm__serve_port(const sgm__serve *serve);
int64_t sgm__serve_elements(const sgm__serve *serve); /* of an example of the input */
void sgm__serve_stop(sgm__serve *serve);              /* NULL: nothing to do */

#endif
