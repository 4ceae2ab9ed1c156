/* What was changed in a trainer since it was made, and by whom: kept in memory, whether the run has a folder
 * or not, for those who show it and for taking it back. Internal. */
#ifndef SGM_JOURNAL_CHANGE_RECORD_H
#define SGM_JOURNAL_CHANGE_RECORD_H

#include "trainer/view.h"
#include <jansson.h>

#define SGM__MAXIMUM_CHANGES ((size_t)1000)          /* of older ones nothing is kept */
#define SGM__MAXIMUM_CHANGE_BYTES ((size_t)64 << 20) /* of tensors that can be put back */
#define SGM__POSITION_CHANGE "position"              /* the identifier of a reset or a restore */
#define SGM__HOOK_CHANGE "hook " /* the identifier of a hook that came or went, with its name */

typedef struct sgm__noted_change {
    int64_t number; /* from 1 */
    int64_t group;  /* number of the first change of the same command; 0: it came alone */
    int64_t undoes; /* number of the change that this one takes back; 0: none */
    double when;    /* seconds since 1970 */
    double seconds; /* that the trainer had been running */
    int64_t epoch, iteration, branch;
    char *identifier, *who; /* "monitor", "ctl", "program", or the name of a hook */
    json_t *before, *after; /* as in changes.jsonl */
    sgm_content old, new; /* nothing: it cannot be taken back; `new` nothing for a tensor, which trains on */
    sgm_content old_average; /* with `old`, of a parameter that has a moving average; else nothing */
    char *attached,
        *detached;        /* text of the hook that came, or went; NULL: none, or it cannot be taken back */
    bool undone, written; /* to changes.jsonl */
} sgm__noted_change;

typedef struct sgm__change_record sgm__change_record;
sgm__change_record *sgm__change_record_create(void);
void sgm__change_record_free(sgm__change_record *record);

/* A person, who sits at a monitor or types commands: what they set can be taken back, and a resume makes it
 * again. The program's own settings are made again, too. */
bool sgm__is_person(const char *who);
bool sgm__is_request(const char *who);

/* Notes a change, by who sets values just now; in the run's folder, too, if there is one. With the trainer's
 * lock. What the program sets before it runs, and what a checkpoint brings, is no change. */
sgm_status sgm__change_note(sgm_trainer *trainer, const char *identifier, const sgm_content *before,
                            const sgm_content *after);
/* Of a state; `average`: before, of a parameter that has one; NULL: none. */
sgm_status sgm__change_note_state(sgm_trainer *trainer, const char *identifier, sgm_tensor *before,
                                  sgm_tensor *after, sgm_tensor *average);
/* Of a hook: `before` or `after` is its text, or its name if it has none; the other one is NULL. `undoes`:
 * the number of the change that this one takes back; 0: none. */
sgm_status sgm__change_note_hook(sgm_trainer *trainer, const char *identifier, const char *before,
                                 const char *after, int64_t undoes);
/* A reset or a restore, which branches.jsonl tells of: only in memory. */
void sgm__change_note_position(sgm_trainer *trainer, const char *who, const char *before, const char *after);
/* Writes what persons set before the run had a folder, and what still holds. With the trainer's lock. */
void sgm__changes_write(sgm_trainer *trainer);

/* Changes from here to the end belong together: undoing takes all of them back. With the trainer's lock. */
void sgm__changes_begin(sgm_trainer *trainer);
void sgm__changes_end(sgm_trainer *trainer);
/* Takes back a change, and is one itself, by `who`. 0: all of the newest command of a person that was not
 * taken back. Refused where the value is another one by now. *first gets the number of the newest that was
 * taken back. That of a hook is only looked up, into *hook, whose texts are freed with sgm__free: it is done
 * without the lock. With the trainer's lock. */
typedef struct sgm__hook_undo {
    char *attach;        /* text of a hook; NULL: */
    char *detach, *name; /* the same, of the one that is there; its name when it came */
} sgm__hook_undo;
void sgm__hook_undo_clear(sgm__hook_undo *hook);
sgm_status sgm__changes_undo(sgm_trainer *trainer, int64_t number, const char *who, int64_t *first,
                             sgm__hook_undo *hook);

/* Whether that has something to take back, for number 0. Any thread; does not wait for a step. */
bool sgm__changes_can_undo(sgm_trainer *trainer);

/* [{"trainer", "number", "time", "iteration", "epoch", "seconds", "identifier", "before", "after", "who",
 * "person", "undoes" or null, "undone", "undoable"}], oldest first; those after `after`. Any thread; does not
 * wait for a step. NULL: no memory. */
json_t *sgm__changes_json(sgm_trainer *trainer, int64_t after);

/* Calls function(user, change) for each change from now on, on the thread that changes, with the trainer's
 * lock: it must neither wait nor call any of these. `change` is borrowed. A trainer has few listeners:
 * SGM_ERROR_STATE beyond. After sgm__changes_unlisten it is not called any more. */
typedef void (*sgm__change_function)(void *user, const json_t *change);
sgm_status sgm__changes_listen(sgm_trainer *trainer, sgm__change_function function, void *user);
void sgm__changes_unlisten(sgm_trainer *trainer, sgm__change_function function, const void *user);

#endif
