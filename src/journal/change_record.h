/* The record of changes of a trainer: which values were changed since it was made, by whom, and what they
 * were before. It is kept in memory, with or without a run folder, for monitors and for undo; a resume fills
 * it from the journal. Internal. */
#ifndef SGM_JOURNAL_CHANGE_RECORD_H
#define SGM_JOURNAL_CHANGE_RECORD_H

#include "journal/history.h"
#include "trainer/view.h"
#include <jansson.h>

#define SGM__MAXIMUM_CHANGES ((size_t)1000)          /* beyond, old ones go, those of persons last */
#define SGM__MAXIMUM_CHANGE_BYTES ((size_t)64 << 20) /* of old tensors, which can be put back */
#define SGM__POSITION_CHANGE "position"              /* the identifier of a reset or a restore */
#define SGM__HOOK_CHANGE "hook "    /* before a hook's name: the identifier of its coming or going */
#define SGM__PRESS_CHANGE "button " /* before the name of a button: the identifier of its being pressed */
#define SGM__NO_HOOK "none"         /* what stands for the hook before it comes, and after it went */

/* One change. Texts and values belong to it. */
typedef struct sgm__noted_change {
    int64_t number; /* from 1 */
    int64_t group;  /* number of the first change of the same command; 0: the command made this one alone */
    int64_t undoes; /* number of the change that this one takes back; 0: none */
    double when;    /* seconds since 1970 */
    double seconds; /* running time of the trainer at the change, without pauses */
    int64_t epoch, iteration, branch;
    char *identifier, *who;  /* "monitor", "ctl", "mcp:NAME", "program", or the name of a hook */
    char *reason;            /* why, as `who` says; NULL: that is not said */
    json_t *before, *after;  /* both values as journal.jsonl shows them */
    sgm_content old, new;    /* both values themselves. `old` empty: the change cannot be taken back. `new` is
                                empty for tensors, as training goes on changing them */
    sgm_content old_average; /* the parameter's moving average before the change; empty: it has none */
    char *attached,
        *detached; /* text of the hook that was attached, or detached; NULL: none, or the hook has no text */
    bool undone, written; /* taken back; appended to journal.jsonl */
    bool takes_back;      /* what it undoes did not itself undo another one */
    bool again;           /* a resumed run has made it again */
} sgm__noted_change;

typedef struct sgm__change_record sgm__change_record;
sgm__change_record *sgm__change_record_create(void);
void sgm__change_record_free(sgm__change_record *record);

/* sgm__is_person: whether `who` asks from outside (a person at a monitor or with sigma ctl, or an agent in a
 * person's name), so that the changes can be undone; "ctl:anna" is as "ctl". sgm__is_request: whether `who`
 * is such or the program. A resumed run makes the changes of both again; hooks make theirs again by
 * themselves. */
bool sgm__is_person(const char *who);
bool sgm__is_request(const char *who);

/* Notes a change in the name of sgm__trainer_journal.changed_by, and writes it to the run's folder, if
 * there is one. With the trainer's lock. What the program sets before a run, and what a checkpoint brings,
 * is no change. */
sgm_status sgm__change_note(sgm_trainer *trainer, const char *identifier, const sgm_content *before,
                            const sgm_content *after);
/* Notes that a state was set. `average`: the parameter's moving average before; NULL: it has none. */
sgm_status sgm__change_note_state(sgm_trainer *trainer, const char *identifier, sgm_tensor *before,
                                  sgm_tensor *after, sgm_tensor *average);
/* Notes, in the name of `who`, that a hook was attached (`after` is its text, or its name if it has none) or
 * detached (`before` is). The other of the two is NULL. `undoes`: the number of the change that this one
 * takes back; 0: none. */
sgm_status sgm__change_note_hook(sgm_trainer *trainer, const char *who, const char *identifier,
                                 const char *before, const char *after, int64_t undoes);
/* Notes that `who` has pressed a button. It cannot be taken back. */
sgm_status sgm__change_note_press(sgm_trainer *trainer, const char *who, const char *button);
/* Notes a reset or a restore, in memory alone: journal.jsonl has a line of another kind for it. */
void sgm__change_note_position(sgm_trainer *trainer, const char *who, const char *before, const char *after);
/* Writes to a new run folder what persons set before there was one, as far as it still holds. With the
 * trainer's lock. */
void sgm__changes_write(sgm_trainer *trainer);

/* After a resume: notes what the journal tells of changes by persons and the program that led to the present
 * state, so that they are shown and can be taken back as before. What a tensor was before, the journal does
 * not have. Does nothing if changes are noted already. With the trainer's lock. */
sgm_status sgm__changes_recall(sgm_trainer *trainer, const sgm__journal_entries *held);

/* Changes between these two calls belong to one command: undo takes all of them back. With the lock. */
void sgm__changes_begin(sgm_trainer *trainer);
void sgm__changes_end(sgm_trainer *trainer);
/* What the undo of a hook's change has to do: attach the hook with this text, or detach the hook that has
 * this text, and had this name when it was attached. The texts are freed by sgm__hook_undo_clear. */
typedef struct sgm__hook_undo {
    char *attach; /* NULL: a hook is to be detached */
    char *detach, *name;
} sgm__hook_undo;
void sgm__hook_undo_clear(sgm__hook_undo *hook);
/* Takes back the change of this number; 0: all changes of the newest command of a person that is not taken
 * back yet. The undo is itself a change, by `who`. Fails where the value has been changed since. *first: the
 * number of the newest change that is taken back, or that cannot be. A hook's change is only looked up, into
 * *hook: who asks attaches or detaches it. With the trainer's lock. */
sgm_status sgm__changes_undo(sgm_trainer *trainer, int64_t number, const char *who, int64_t *first,
                             sgm__hook_undo *hook);

/* Adds what sgm__changes_undo would take back to `list`, newest first, each as sgm__changes_json has it, and
 * fails where that would. *first and *hook as it has them, too; *first also where it fails, but not for want
 * of a change. */
sgm_status sgm__changes_would_undo(sgm_trainer *trainer, int64_t number, json_t *list, int64_t *first,
                                   sgm__hook_undo *hook);

/* Whether sgm__changes_undo of number 0 has something to take back. Any thread; does not wait for a step. */
bool sgm__changes_can_undo(sgm_trainer *trainer);

/* The changes after number `after`, oldest first, as a JSON array of {"trainer", "number", "time",
 * "iteration", "epoch", "seconds", "identifier", "before", "after", "who", "reason" or null, "person",
 * "undoes" or null, "undone", "undoable"}. Any thread; does not wait for a step. NULL: out of memory. */
json_t *sgm__changes_json(sgm_trainer *trainer, int64_t after);

/* Calls function(user, change) for each change from now on, on the thread that makes the change, with the
 * trainer's lock: the function must neither wait nor call functions of this header. `change` is borrowed. A
 * trainer has room for a few listeners: SGM_ERROR_STATE beyond. sgm__changes_unlisten ends the calls. */
typedef void (*sgm__change_function)(void *user, const json_t *change);
sgm_status sgm__changes_listen(sgm_trainer *trainer, sgm__change_function function, void *user);
void sgm__changes_unlisten(sgm_trainer *trainer, sgm__change_function function, const void *user);

#endif
