/* Declares what the files of the registry share: the structs of trees, registries, entries, identifiers and
 * changes. Internal.
 *
 * Every registry belongs to a tree, which has the lock for all registries in it. Putting a child moves the
 * child and all below it to the parent's tree; parts that are taken out go on sharing the lock with the tree
 * that they came from, which costs little and needs no memory (so removing cannot fail). At most two trees'
 * locks are held at once, by a put, in the order of their addresses. While a lock is held nothing is released
 * and no function of the program is called: a release may end in a function of the program, which may use the
 * registry. Comments below say "with the lock" for functions whose caller holds the tree's lock, "without the
 * lock" for functions that may take it or call the program.
 *
 * Files: tree.c (locks), registry.c (registries), entry.c (entries and bindings), content.c (values),
 * identifier.c and pattern.c (names with wildcards), resolver.c (finding), change.c (setting), observe.c
 * (observers), setting.c (options in structs), copy.c (snapshots, texts). */
#ifndef SGM_REGISTRY_INTERNAL_H
#define SGM_REGISTRY_INTERNAL_H

#include "base/name_index.h"
#include "registry/option_check.h"

#include <stdatomic.h>

#define SGM__MAXIMUM_LEVELS 64 /* of registries in a tree: bounds every recursion */
#define SGM__MAXIMUM_NAME 200  /* bytes of a name or a tag */
#define SGM__MAXIMUM_TEXT 512  /* bytes of an identifier in a message */

typedef struct sgm__core sgm__core;

/* --- trees (tree.c) --- */
/* The lock of a tree, counted: each core of the tree has a reference, and so has each thread that holds the
 * lock. */
typedef struct sgm__tree {
    atomic_size_t references;
    pthread_mutex_t mutex;
    uint64_t generation; /* a new number, unique in the process, after each change of structure: resolvers
                            compare it */
} sgm__tree;

/* --- registries (registry.c) --- */
/* A name with its content in one registry. Counted, as an entry outlives its removal while a thread reads or
 * sets it without the lock. */
typedef struct sgm__entry {
    atomic_size_t references;
    char *name;
    const sgm_option *option; /* the row that defined it; NULL: made by a set or a put, without a row */
    sgm_kind kind;
    sgm_content content; /* guarded by the lock; of kind nothing for bound entries, and while a tensor or
                            registry was not set */
    sgm_binding binding; /* get NULL: the entry is not bound */
    bool gone;           /* removed from its registry */
} sgm__entry;

/* A handle of a core. A registry and its read-only view are two handles of one core, which counts the
 * references to both; both are members of the core, so that a handle needs no memory of its own. */
struct sgm_registry {
    sgm__core *core;
    bool read_only;
};

typedef struct sgm__observer sgm__observer;

/* A registry itself. `tree` may be read without the lock (tree.c says how), all members behind it only with
 * the lock. */
struct sgm__core {
    sgm_registry own, view;
    atomic_size_t references;
    _Atomic(sgm__tree *) tree;
    /* Not retained, as a child does not keep its parent alive: let_children_go (registry.c) resets it before
     * the parent is freed. */
    sgm__core *parent;    /* NULL: a root */
    sgm__entry *place;    /* the parent's entry that holds this registry */
    sgm__entry **entries; /* in the order of definition */
    size_t entry_count, entry_capacity;
    sgm__name_index index; /* from names to entries */
    char **tags;
    size_t tag_count, tag_capacity;
    sgm__observer **observers;
    size_t observer_count, observer_capacity;
};

/* tree.c */
sgm__tree *sgm__tree_create(void);
void sgm__tree_release(sgm__tree *tree);
/* Locks the tree that the core belongs to at this moment; the core cannot be moved to another tree until the
 * unlock. */
sgm__tree *sgm__tree_lock(sgm__core *core);
void sgm__tree_unlock(sgm__tree *tree);
/* Locks the trees of both cores, which may be one tree. */
void sgm__tree_lock_two(sgm__core *a, sgm__core *b, sgm__tree **tree_a, sgm__tree **tree_b);
void sgm__tree_unlock_two(sgm__tree *a, sgm__tree *b);
/* Gives the tree a new generation, after entries, children or tags have changed. With the lock. */
void sgm__tree_changed(sgm__tree *tree);
/* Moves a core and all below it to `tree`. Both trees are locked, or no other thread knows the core. */
void sgm__tree_move(sgm__tree *tree, sgm__core *core);

/* registry.c */
void sgm__core_retain(sgm__core *core);
void sgm__core_release(sgm__core *core); /* without the lock */
sgm__entry *sgm__core_find(const sgm__core *core, const char *name);
bool sgm__core_has_tag(const sgm__core *core, const char *tag);
/* Makes room for so many more entries, so that sgm__core_add cannot fail. */
sgm_status sgm__core_reserve(sgm__core *core, size_t more);
/* Retains the entry. The caller has reserved room, and the name is new. */
void sgm__core_add(sgm__core *core, sgm__entry *entry);
/* The core of a writable registry; fails for NULL and for views. */
sgm_status sgm__writable(sgm_registry *registry, sgm__core **core);
/* Writes "a.b.name" from the root down, cut off at the front with "..." when it is too long; `name` may be
 * NULL. Returns `buffer`. With the lock. */
char *sgm__core_path(const sgm__core *core, const char *name, char buffer[SGM__MAXIMUM_TEXT]);
/* Fails with SGM_ERROR_NOT_FOUND and the nearest name of an entry. With the lock. */
sgm_status sgm__no_entry(const sgm__core *core, const char *name);

/* `what` is "name" or "tag", for the message. */
sgm_status sgm__check_name(const char *what, const char *name);
sgm__entry *sgm__entry_create(const char *name, const sgm_option *option, sgm_kind kind);
sgm__entry *sgm__entry_retain(sgm__entry *entry);
void sgm__entry_release(sgm__entry *entry);           /* without the lock */
sgm__core *sgm__entry_child(const sgm__entry *entry); /* NULL: holds no registry */
/* Calls the binding's get; the content belongs to the caller. Without the lock. */
sgm_status sgm__entry_read(sgm__entry *entry, const char *identifier, sgm_content *content);
/* Reports that a binding's function failed with `status`, keeping its message if it set one. */
sgm_status sgm__fail_binding(const char *identifier, sgm_status status);
/* Checks whether the content may be set in the entry of `core`. *value gets it in the entry's kind, borrowed.
 * `own`: the caller is the owner and may set read-only entries, too. With the lock. */
sgm_status sgm__entry_check(const sgm__core *core, const sgm__entry *entry, bool own,
                            const sgm_content *content, sgm_content *value);

/* registry.c: removes all entries of a registry, or of the child of this name if there is one. Without the
 * lock. */
void sgm__registry_clear(sgm_registry *registry);
void sgm__registry_clear_child(sgm_registry *registry, const char *name);

/* --- contents (content.c) --- */
/* Fails for unknown kinds and for texts, tensors and registries that are NULL. */
sgm_status sgm__content_check(const sgm_content *content);
/* Copies a text, retains a tensor or registry; `read_only`: as a read-only view. The copy is cleared with
 * sgm_content_clear. */
sgm_status sgm__content_copy(const sgm_content *content, bool read_only, sgm_content *copy);
/* Short text for messages, as sgm_content_describe but without taking a lock. NULL: out of memory. */
char *sgm__content_text(const sgm_content *content);
/* Whether setting `b` where `a` is would change nothing. Tensors always count as changed: comparing them
 * takes longer than telling the observers. */
bool sgm__content_same(const sgm_content *a, const sgm_content *b);
const char *sgm__kind_article(sgm_kind kind); /* "an integer" */
/* Borrows the content in this kind; only integers are converted, to numbers. Messages begin with the
 * identifier. */
sgm_status sgm__kind_convert(sgm_kind kind, const char *identifier, const sgm_content *content,
                             sgm_content *value);

/* --- identifiers (identifier.c) --- */
/* One part between dots: a pattern for the name, and tags tags[first_tag ... first_tag + tag_count - 1] of
 * the identifier that a registry must have. */
typedef struct sgm__part {
    const char *pattern;
    size_t first_tag, tag_count;
    size_t end; /* offset in the identifier's text of the dot or the end behind the part */
} sgm__part;
typedef struct sgm__identifier {
    char *text;    /* as given */
    char *storage; /* a copy of the text, cut into patterns and tags, which point into it */
    const char **tags;
    size_t tag_count, tag_capacity;
    sgm__part parts[SGM__MAXIMUM_LEVELS];
    size_t count;
} sgm__identifier;
sgm_status sgm__identifier_parse(const char *text, sgm__identifier **identifier);
void sgm__identifier_free(sgm__identifier *identifier);
/* Whether part `level` matches an entry of this name. `child` is the registry that the entry holds, NULL if
 * it holds none; `is_registry` says that the entry's kind is a registry. A part that is not the last one
 * needs a child. With the lock. */
bool sgm__identifier_matches(const sgm__identifier *identifier, size_t level, const char *name,
                             const sgm__core *child, bool is_registry);

/* --- changes (change.c) --- */
/* An observer that has to be told, and the identifier to tell it, relative to the registry that it observes.
 */
typedef struct sgm__notification {
    sgm__observer *observer; /* retained */
    char *identifier;
} sgm__notification;
typedef struct sgm__notifications {
    sgm__notification *items;
    size_t count, capacity;
} sgm__notifications;

/* The setting of one entry, from the check to the observers' calls. Zeroed, it is empty; sgm__change_clear is
 * called without the lock. */
typedef struct sgm__change {
    sgm__core *core;   /* retained */
    sgm__entry *entry; /* retained */
    bool add;          /* the entry is new */
    bool skipped;      /* the entry was removed or replaced while bindings were set, without the lock */
    bool has_changed;  /* the new content differs, so observers are told */
    sgm_content value, before, after; /* owned */
    sgm__notifications calls;
} sgm__change;
/* Finds the entry or makes one, checks the content and copies it. With the lock. */
sgm_status sgm__change_make(sgm__change *change, sgm__core *core, const char *name, bool own,
                            const sgm_content *content);
/* Sets all changes or none, and tells the observers. Called with the lock of `root`'s tree, which it
 * releases. */
sgm_status sgm__changes_commit(sgm__core *root, sgm__tree *tree, sgm__change *changes, size_t count);
void sgm__change_clear(sgm__change *change);

/* --- observers (observe.c) --- */
void sgm__observer_release(sgm__observer *observer);
/* No call of this observer's function begins any more; waits for those that run, except on a thread that is
 * inside an observer itself. */
void sgm__observer_end(sgm__observer *observer);
/* Adds all observers that have to be told about this entry: those of `core` and of all registries above it.
 * With the lock. */
sgm_status sgm__calls_collect(sgm__notifications *calls, const sgm__core *core, const char *name,
                              const sgm__core *child, bool is_registry);
void sgm__calls_clear(sgm__notifications *calls);
/* Calls the observers. Without the lock. */
void sgm__calls_run(const sgm__notifications *calls, const sgm_content *before, const sgm_content *after);

#endif
