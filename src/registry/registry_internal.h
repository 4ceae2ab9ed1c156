/* What the files of the registry share. Internal.
 *
 * Every registry belongs to a tree, which has the lock. Putting a child moves it and all below it to the
 * parent's tree; parts that are taken out go on sharing the lock, which costs little and needs no memory.
 * At most two locks are held at once, by a put, in the order of their addresses. Nothing is released and
 * nothing of the program is called while a lock is held.
 */
#ifndef SGM_REGISTRY_INTERNAL_H
#define SGM_REGISTRY_INTERNAL_H

#include "base/name_index.h"
#include "registry/option_check.h"

#include <stdatomic.h>

#define SGM__MAXIMUM_LEVELS 64 /* of a tree: bounds every recursion */
#define SGM__MAXIMUM_NAME 200  /* bytes of a name or a tag */
#define SGM__MAXIMUM_TEXT 512  /* bytes of an identifier in a message */

typedef struct sgm__core sgm__core;

/* --- trees (tree.c) --- */
typedef struct sgm__tree {
    atomic_size_t references;
    pthread_mutex_t mutex;
    uint64_t generation; /* another one, never used before in this process, after each change of structure */
} sgm__tree;

/* --- registries (registry.c) --- */
/* An entry outlives its removal while a thread reads or sets it. */
typedef struct sgm__entry {
    atomic_size_t references;
    char *name;
    const sgm_option *option; /* NULL: made by a set or a put */
    sgm_kind kind;
    sgm_content content; /* under the lock; of kind nothing while a tensor or a registry is missing */
    sgm_binding binding; /* get NULL: none */
    bool gone;
} sgm__entry;

/* A registry and its read-only view are two handles of one core, which counts the references to both. */
struct sgm_registry {
    sgm__core *core;
    bool read_only;
};

typedef struct sgm__observer sgm__observer;

struct sgm__core {
    sgm_registry own, view;
    atomic_size_t references;
    _Atomic(sgm__tree *) tree;
    /* under the tree's lock */
    sgm__core *parent; /* not retained: it takes itself out before it goes */
    sgm__entry *place; /* the parent's entry that holds this one */
    sgm__entry **entries;
    size_t entry_count, entry_capacity;
    sgm__name_index index; /* of their names: the entries themselves */
    char **tags;
    size_t tag_count, tag_capacity;
    sgm__observer **observers;
    size_t observer_count, observer_capacity;
};

/* tree.c */
sgm__tree *sgm__tree_create(void);
void sgm__tree_release(sgm__tree *tree);
sgm__tree *sgm__tree_lock(sgm__core *core);
void sgm__tree_unlock(sgm__tree *tree);
/* Locks the trees of both, which may be one. */
void sgm__tree_lock_two(sgm__core *a, sgm__core *b, sgm__tree **tree_a, sgm__tree **tree_b);
void sgm__tree_unlock_two(sgm__tree *a, sgm__tree *b);
void sgm__tree_changed(sgm__tree *tree);
/* Moves a core and all below it to `tree`; both trees are locked. */
void sgm__tree_move(sgm__tree *tree, sgm__core *core);

/* registry.c */
void sgm__core_retain(sgm__core *core);
void sgm__core_release(sgm__core *core); /* without the lock */
sgm__entry *sgm__core_find(const sgm__core *core, const char *name);
bool sgm__core_has_tag(const sgm__core *core, const char *tag);
/* Makes room for one more entry, so that adding cannot fail. */
sgm_status sgm__core_reserve(sgm__core *core, size_t more);
void sgm__core_add(sgm__core *core, sgm__entry *entry); /* retains it; reserved before */
/* The core of a writable registry; fails for NULL and for views. */
sgm_status sgm__writable(sgm_registry *registry, sgm__core **core);
/* "a.b.name" from the root down, cut off at the front when too long; `name` may be NULL. Returns `buffer`. */
char *sgm__core_path(const sgm__core *core, const char *name, char buffer[SGM__MAXIMUM_TEXT]);
sgm_status sgm__no_entry(const sgm__core *core, const char *name);

/* entry.c */
sgm_status sgm__check_name(const char *what, const char *name);
sgm__entry *sgm__entry_create(const char *name, const sgm_option *option, sgm_kind kind);
sgm__entry *sgm__entry_retain(sgm__entry *entry);
void sgm__entry_release(sgm__entry *entry);           /* without the lock */
sgm__core *sgm__entry_child(const sgm__entry *entry); /* NULL: holds no registry */
/* Asks the binding; without the lock. */
sgm_status sgm__entry_read(sgm__entry *entry, const char *identifier, sgm_content *content);
/* A binding's get or set failed, with or without a message. */
sgm_status sgm__fail_binding(const char *identifier, sgm_status status);
/* Whether the content may go into the entry of `core`; `value` gets it in the entry's kind, borrowed. `own`:
 * read-only ones too. With the lock. */
sgm_status sgm__entry_check(const sgm__core *core, const sgm__entry *entry, bool own,
                            const sgm_content *content, sgm_content *value);

/* registry.c: removes what a registry holds, or a child of it, if it has that. */
void sgm__registry_clear(sgm_registry *registry);
void sgm__registry_clear_child(sgm_registry *registry, const char *name);

/* --- contents (content.c) --- */
sgm_status sgm__content_check(const sgm_content *content); /* a kind there is, and no NULL */
sgm_status sgm__content_copy(const sgm_content *content, bool read_only, sgm_content *copy);
/* Like describe, short, and never takes a lock. NULL without memory. */
char *sgm__content_text(const sgm_content *content);
/* Whether a set changes something; tensors always do: to compare them takes longer than a copy. */
bool sgm__content_same(const sgm_content *a, const sgm_content *b);
const char *sgm__kind_article(sgm_kind kind); /* "an integer" */
/* Borrows the content in this kind; messages begin with the identifier. */
sgm_status sgm__kind_convert(sgm_kind kind, const char *identifier, const sgm_content *content,
                             sgm_content *value);

/* --- identifiers (identifier.c) --- */
typedef struct sgm__part {
    const char *pattern;
    size_t first_tag, tag_count;
    size_t end; /* where the part ends in the text */
} sgm__part;
typedef struct sgm__identifier {
    char *text;    /* as given */
    char *storage; /* cut into patterns and tags */
    const char **tags;
    size_t tag_count, tag_capacity;
    sgm__part parts[SGM__MAXIMUM_LEVELS];
    size_t count;
} sgm__identifier;
sgm_status sgm__identifier_parse(const char *text, sgm__identifier **identifier);
void sgm__identifier_free(sgm__identifier *identifier);
/* `child`: the registry of this name, NULL for another entry. With the lock. */
bool sgm__identifier_matches(const sgm__identifier *identifier, size_t level, const char *name,
                             const sgm__core *child, bool is_registry);

/* --- changes (change.c) --- */
typedef struct sgm__call {
    sgm__observer *observer; /* retained */
    char *identifier;
} sgm__call;
typedef struct sgm__calls {
    sgm__call *items;
    size_t count, capacity;
} sgm__calls;

/* One entry that is set. Zero is empty; cleared without the lock. */
typedef struct sgm__change {
    sgm__core *core;   /* retained */
    sgm__entry *entry; /* retained */
    bool add;          /* the entry is new */
    bool skipped;      /* the entry went while bindings were set */
    bool has_changed;
    sgm_content value, before, after; /* owned */
    sgm__calls calls;
} sgm__change;
/* With the lock: finds the entry or makes one, checks the content and copies it. */
sgm_status sgm__change_make(sgm__change *change, sgm__core *core, const char *name, bool own,
                            const sgm_content *content);
/* Sets all or none. Called with `root`'s tree locked, which it unlocks; tells the observers. */
sgm_status sgm__changes_commit(sgm__core *root, sgm__tree *tree, sgm__change *changes, size_t count);
void sgm__change_clear(sgm__change *change);

/* --- observers (observe.c) --- */
void sgm__observer_release(sgm__observer *observer);
/* No call begins any more. */
void sgm__observer_end(sgm__observer *observer);
/* With the lock: who is to be told of this entry. */
sgm_status sgm__calls_collect(sgm__calls *calls, const sgm__core *core, const char *name,
                              const sgm__core *child, bool is_registry);
void sgm__calls_clear(sgm__calls *calls);
/* Without the lock. */
void sgm__calls_run(const sgm__calls *calls, const sgm_content *before, const sgm_content *after);

#endif
