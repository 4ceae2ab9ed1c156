/* The table of commands: what each is called, takes, needs and does. Internal.
 *
 * It is the one description of the protocol. The control socket and the page check requests by it
 * (control_command.c), `describe` answers with it (command_describe.c), `sigma ctl` takes its words and its
 * help from it. docs/manual/12-watching.md has the commands with examples. */
#ifndef SGM_CONTROL_COMMAND_TABLE_H
#define SGM_CONTROL_COMMAND_TABLE_H

#include "control/role.h"
#include <sigma/registry.h>

struct sgm__control_request;

/* Whether the trainer's lock is held while a command acts. */
typedef enum sgm__locking {
    SGM__OPEN,   /* the command needs no lock, or takes the lock itself */
    SGM__LOCKED, /* the lock is held; if it cannot be had in time the command fails */
    SGM__EITHER  /* the lock is held if it can be had soon; else the command does what is possible without */
} sgm__locking;

/* A row of the table. What changes the training is LOCKED, so that it is done between two iterations, and a
 * resumed run can do it there again. */
typedef struct sgm__command_row {
    const char *name;
    const char *words; /* what follows the name on a command line, "IDENTIFIER VALUE|FILE.npy"; "": nothing */
    const char *doc;   /* what it does, in a sentence without its stop */
    const char *when;  /* when it counts: "at once", "between two iterations"; NULL: it only reads */
    sgm__role role;    /* which an asker needs */
    const sgm_option *fields; /* of a request; on a command line the words are the first of them */
    size_t field_count;
    size_t minimum_words, maximum_words;
    sgm_status (*act)(struct sgm__control_request *c);
    sgm_status (*try)(
        struct sgm__control_request *c); /* tells what `act` would change; NULL: it only reads */
    sgm__locking lock;
    bool quick;  /* never waits for a step, or for a moment at most: the server's own thread does it */
    bool told;   /* the log has a line for each time */
    bool shared; /* in a run of several processes all of them do it, at the same iteration */
} sgm__command_row;

/* The row of that index, in the order of the manual; NULL: there are not so many. */
const sgm__command_row *sgm__command_at(size_t index);
/* The row of that name; the error names the nearest. */
sgm_status sgm__command_find(const char *name, const sgm__command_row **row);

/* The fields that every request may have: "within", "reason", "by", "role", "dry_run". */
extern const sgm_option sgm__request_terms[];
extern const size_t sgm__request_term_count;

#endif
