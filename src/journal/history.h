/* What a journal tells of a run, read as a whole: what led to the state that it is in now, and what was asked
 * of it and got lost with a process that was killed. Internal.
 *
 * A resume goes back to a checkpoint. What came behind that checkpoint did not lead to the present state any
 * more; what persons and the program did there is made again, by which it becomes a line again. So the
 * journal is only ever appended to, and this file says which of its lines hold. */
#ifndef SGM_JOURNAL_HISTORY_H
#define SGM_JOURNAL_HISTORY_H

#include "base/base.h"
#include <jansson.h>

typedef enum sgm__entry_kind {
    SGM__ENTRY_VALUE,   /* `identifier` was set to the value that `text` means */
    SGM__ENTRY_TENSOR,  /* `identifier` was set to the tensor in the .npy file `text` of the folder */
    SGM__ENTRY_ATTACH,  /* the hook that `text` describes was attached */
    SGM__ENTRY_DETACH,  /* the hook with this text was detached */
    SGM__ENTRY_PRESS,   /* the button `text` was pressed */
    SGM__ENTRY_UNKNOWN, /* `identifier` was changed in a way that the journal does not have */
    SGM__ENTRY_RESET,
    SGM__ENTRY_RESTORE,    /* to the checkpoint `text` */
    SGM__ENTRY_SAVE,       /* a checkpoint was saved as `text` */
    SGM__ENTRY_UPLOAD,     /* a checkpoint came from elsewhere, as `text` */
    SGM__ENTRY_BRANCH,     /* the branch `text` began beside this training */
    SGM__ENTRY_PAUSE,      /* hooks of the pause have run */
    SGM__ENTRY_RESUME,     /* the same of the pause's end */
    SGM__ENTRY_BEGIN,      /* a process begins, or goes on from a checkpoint */
    SGM__ENTRY_END,        /* a process ends, not killed: hooks of the stop have run */
    SGM__ENTRY_CHECKPOINT, /* checkpoint.safetensors was written */
    SGM__ENTRY_KIND_COUNT
} sgm__entry_kind;

/* The event that lines of a kind name: "change", "press", "restore", ... */
const char *sgm__entry_event(sgm__entry_kind kind);
/* Whether something was changed at the position: one of the first six. */
bool sgm__entry_is_change(sgm__entry_kind kind);
/* Whether it is a reset or a restore, which ends branch `branch` and begins branch `begun`. */
bool sgm__entry_is_move(sgm__entry_kind kind);

/* One line that says what was done, when so many epochs and iterations of a branch were done. */
typedef struct sgm__journal_entry {
    sgm__entry_kind kind;
    bool asked;     /* by a person or the program; else the training did it by itself */
    bool undoes;    /* of a change: it takes back the newest one of the same entry that held */
    bool joins;     /* of a change: the command made it together with the line before */
    int64_t line;   /* number of the line, from 1 */
    int64_t branch; /* of a move: the one that is left */
    int64_t begun;  /* of a move: the branch that begins */
    int64_t epoch, iteration;
    char *identifier;           /* of a change: what was changed, "button go" of a press; else "" */
    char *text;                 /* see the kind; else "" */
    char *old, *new;            /* of a change: both values as the line has them, JSON; else "" */
    char *average;              /* of a tensor: the .npy file of the moving average that it got; "": none */
    char *who;                  /* "ctl", "monitor", "program", or a hook's name; "" */
    char *reason;               /* why, as `who` said; "" */
    char *checksum;             /* of the checkpoint that was written, restored, saved or uploaded; "" */
    double when;                /* seconds since 1970, to the second; 0: not told */
    int64_t epochs, iterations; /* of a beginning: how long the run was to be; 0: no limit */
} sgm__journal_entry;

typedef struct sgm__journal_entries {
    sgm__journal_entry *items;
    size_t count, capacity;
} sgm__journal_entries;

/* Frees the texts of an entry. */
void sgm__entry_clear(sgm__journal_entry *entry);
/* Appends a copy. */
sgm_status sgm__entries_add(sgm__journal_entries *list, const sgm__journal_entry *entry);
void sgm__entries_remove(sgm__journal_entries *list, size_t index);
void sgm__entries_clear(sgm__journal_entries *list);

typedef struct sgm__history {
    sgm__journal_entries held; /* what led to the present state, in order, without the changes of hooks */
    sgm__journal_entries lost; /* what was asked for behind the newest checkpoint, and not made again yet */
    json_t *beginnings;        /* the lines of all beginnings, as an array */
} sgm__history;

/* Reads a folder's journal. `warn_as`: as for sgm__journal_read. Freed with sgm__history_free, also after a
 * failure. */
sgm_status sgm__history_read(const char *folder, const char *warn_as, sgm__history *history);
/* The run goes on from a checkpoint of this position: what came behind it moves from `held` to `lost`, as far
 * as it was asked for. */
sgm_status sgm__history_go_back(sgm__history *history, int64_t branch, int64_t epoch, int64_t iteration);
void sgm__history_free(sgm__history *history);

#endif
