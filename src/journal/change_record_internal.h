/* What the files of the record of changes share. Internal to them. */
#ifndef SGM_JOURNAL_CHANGE_RECORD_INTERNAL_H
#define SGM_JOURNAL_CHANGE_RECORD_INTERNAL_H

#include "journal/change_record.h"

#define SGM__MAXIMUM_CHANGE_LISTENERS 8

typedef struct sgm__change_listener {
    sgm__change_function function; /* NULL: the place is free */
    void *user;
} sgm__change_listener;

/* Entries come and go with the trainer's lock and this one; either is enough to read them. */
struct sgm__change_record {
    pthread_mutex_t lock;
    sgm__noted_change *items; /* oldest first */
    size_t count, capacity;
    int64_t made;    /* so far */
    size_t bytes;    /* of tensors */
    int64_t group;   /* of the command that is at work; -1: it has made no change yet; 0: none is */
    int64_t undoing; /* number of the change that is being taken back; 0: none */
    sgm__change_listener listeners[SGM__MAXIMUM_CHANGE_LISTENERS];
};

/* With the record's lock; NULL: it is not kept. */
sgm__noted_change *sgm__change_find(sgm__change_record *record, int64_t number);
void sgm__change_tell(sgm_trainer *trainer, const sgm__noted_change *change);

#endif
