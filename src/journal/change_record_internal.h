/* The inside of the record of changes, for change_record.c and change_undo.c. Internal.
 *
 * With the trainer's lock, or the record's own. */
#ifndef SGM_JOURNAL_CHANGE_RECORD_INTERNAL_H
#define SGM_JOURNAL_CHANGE_RECORD_INTERNAL_H

#include "journal/change_record.h"

#include <pthread.h>

#define SGM__MAXIMUM_LISTENERS 8 /* monitors and pages of one trainer */

typedef struct sgm__change_listener {
    sgm__change_function function; /* NULL: the place is free */
    void *user;
} sgm__change_listener;

/* All changes that are kept. `group` and `undoing` are set by the thread that has the trainer's lock, for
 * the time of a command. */
struct sgm__change_record {
    pthread_mutex_t lock;
    sgm__noted_change *items; /* oldest first */
    size_t count, capacity;
    int64_t made;  /* number of the newest change */
    size_t bytes;  /* of old tensors that are kept */
    int64_t group; /* the group of the present command's changes; -1: the command has made none yet; 0: there
                      is no command */
    int64_t undoing; /* number of the change that is being taken back; 0: none */
    sgm__change_listener listeners[SGM__MAXIMUM_LISTENERS];
};

/* Numbers the change, appends it, and tells listeners; takes it over, also on failure. Changes of one command
 * belong to a group, whose number is that of its first change. A change that takes back another marks that
 * one. */
sgm_status sgm__change_append(sgm_trainer *trainer, sgm__noted_change *change);
/* The number of the newest change of the entry that holds and undoes none; 0: there is none. */
int64_t sgm__change_holding(const sgm__change_record *record, const char *identifier);
/* The change of that number; NULL: there was none, or it is no longer kept. */
sgm__noted_change *sgm__change_find(sgm__change_record *record, int64_t number);
/* A change as sgm__changes_json has it. */
json_t *sgm__change_json(const sgm_trainer *trainer, const sgm__noted_change *change);
/* Whether the change has what is needed to take it back: an old value, or the text of a hook. */
bool sgm__change_can_be_undone(const sgm__noted_change *change);
/* The newest later change of the same entry that still holds, which must be taken back first; NULL: none. */
const sgm__noted_change *sgm__change_obstacle(const sgm__change_record *record,
                                              const sgm__noted_change *change);

#endif
