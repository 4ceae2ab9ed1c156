/* The registry: everything that may be watched or changed has a name here.
 *
 *     static const sgm_option rate = {.name = "learning_rate", .kind = SGM_KIND_NUMBER, .maximum = 1e6,
 *                                     .default_value = 0.01, .live = true, .doc = "size of a step"};
 *     sgm_registry *optimiser = sgm_registry_create();
 *     sgm_registry_add_tag(optimiser, "optimiser");
 *     sgm_registry_define(optimiser, &rate);
 *     sgm_registry_put(trainer, "optimiser", optimiser);
 *     sgm_registry_resolve_set(root, "*<trainer>.optimiser.learning_rate", sgm_number_content(0.001), NULL,
 *                              NULL);
 *
 * A registry maps names to typed contents, which may be registries: together a tree. Names and tags have
 * letters, digits, '_' and '-'. Every function may be called from any thread; a tree has one lock, which is
 * held for no longer than a copy takes, and never while a callback runs.
 */
#ifndef SIGMA_REGISTRY_H
#define SIGMA_REGISTRY_H

#include <sigma/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names and what they stand for; reference-counted. */
typedef struct sgm_registry sgm_registry;

/* What kind of content an entry has. */
typedef enum sgm_kind {
    SGM_KIND_NOTHING, /* no content yet */
    SGM_KIND_BOOLEAN, /* true or false */
    SGM_KIND_INTEGER, /* 64 bits */
    SGM_KIND_NUMBER,  /* a double */
    SGM_KIND_TEXT,    /* UTF-8 */
    SGM_KIND_TENSOR,  /* of any type and shape */
    SGM_KIND_REGISTRY /* a tree below */
} sgm_kind;
/* "number" and so on. */
SGM_API const char *sgm_kind_name(sgm_kind kind);

/* What an entry holds. */
typedef struct sgm_content {
    sgm_kind kind; /* which member of `as` counts */
    union {
        bool boolean;           /* SGM_KIND_BOOLEAN */
        int64_t integer;        /* SGM_KIND_INTEGER */
        double number;          /* SGM_KIND_NUMBER */
        const char *text;       /* SGM_KIND_TEXT */
        sgm_tensor *tensor;     /* SGM_KIND_TENSOR */
        sgm_registry *registry; /* SGM_KIND_REGISTRY */
    } as;                       /* the content itself */
} sgm_content;

/* True or false as a content. This and the next ones borrow what they are given; the registry copies texts
 * and retains tensors and registries. */
SGM_API sgm_content sgm_boolean_content(bool value);
/* An integer as a content. */
SGM_API sgm_content sgm_integer_content(int64_t value);
/* A number as a content. */
SGM_API sgm_content sgm_number_content(double value);
/* A text as a content. */
SGM_API sgm_content sgm_text_content(const char *value);
/* A tensor as a content. */
SGM_API sgm_content sgm_tensor_content(sgm_tensor *value);
/* A registry as a content. */
SGM_API sgm_content sgm_registry_content(sgm_registry *value);
/* Lets go of a content that a get gave, which belongs to the caller: a text is a copy, tensors and registries
 * are retained. */
SGM_API void sgm_content_clear(sgm_content *content);
/* Whether two contents have one kind and one value; NaN equals NaN. */
SGM_API bool sgm_content_equal(const sgm_content *a, const sgm_content *b);
/* "0.01", "true", "'text'", "float32 (784, 100)", "registry of 3"; free with sgm_string_free. */
SGM_API char *sgm_content_describe(const sgm_content *content);
/* Reads text as a content of this kind: what a command line or a browser sends. */
SGM_API sgm_status sgm_content_parse(const char *text, sgm_kind kind, sgm_content *content);

/* One row says all there is to say of an entry, or of an argument in a text such as "he(gain=2)" or
 * "dense(100, relu)": registry, configuration files, layers, hooks, --help and monitors read it. The row must
 * outlive the registry (a static table). */
typedef struct sgm_option {
    const char *name;           /* snake_case */
    sgm_kind kind;              /* of its contents */
    const char *unit;           /* "seconds", "examples"; NULL: none */
    double minimum, maximum;    /* integers and numbers; equal: no bounds */
    double default_value;       /* default of booleans, integers, numbers */
    const char *default_text;   /* default of texts; NULL: "" */
    const char *const *choices; /* of a text, NULL at the end; NULL: any text */
    bool read_only;             /* for everyone but its owner (sgm_registry_set_own) */
    bool live;                  /* may be changed while training runs, from the next iteration on */
    const char *doc;            /* what it is, in a line */
    const char *effect; /* when it is later that a change counts: "from the next epoch on"; NULL: it is not */
    /* Of arguments in texts. An optional number has no default if default_value is NAN or out of bounds. */
    bool required;
    bool list; /* several: numbers, integers (of a layer: a shape), identifiers; its default is a text */
    bool identifier; /* a text that names something in a registry, "training.loss" */
} sgm_option;

/* A row whose value is a member of a struct of options. The library has a table of them for each of these
 * structs (sgm_optimiser_settings and so on): bounds, defaults and words stand there and nowhere else. The
 * row is about values that are given; in the structs 0 means that none is. */
typedef struct sgm_setting {
    sgm_option option;   /* name, kind, bounds, default, words */
    size_t offset, size; /* of the member: bool, int64_t, int, double, const char *; an int for a text with
                          * choices is the number of the choice */
    bool inverted;       /* the member says the opposite: "shuffle" is no_shuffle */
    const int *numbers;  /* of the choices, if they are not 0, 1, 2 and so on */
} sgm_setting;
/* Place and size of a member, in the row of a sgm_setting. */
#define SGM_MEMBER(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
/* The row of this name; NULL: the table has none. */
SGM_API const sgm_setting *sgm_setting_find(const sgm_setting *settings, size_t count, const char *name);
/* The member as it is, in the row's kind; the content belongs to the caller. */
SGM_API sgm_status sgm_setting_get(const sgm_setting *setting, const void *options, sgm_content *content);
/* Checks kind, bounds and choices; messages begin with `identifier` (NULL: the row's name). A text without
 * choices is borrowed. */
SGM_API sgm_status sgm_setting_set(const sgm_setting *setting, void *options, const char *identifier,
                                   const sgm_content *content);

/* Reference-counted; the last release frees it and lets go of its children. */
SGM_API sgm_registry *sgm_registry_create(void);
SGM_API sgm_registry *sgm_registry_retain(sgm_registry *registry);
/* Gives back one reference; the last one frees it. NULL: nothing happens. */
SGM_API void sgm_registry_free(sgm_registry *registry);
/* A view of the same entries through which nothing can be set, also not in the registries that are got
 * through it; it follows all changes. One more reference. */
SGM_API sgm_registry *sgm_registry_create_read_only(sgm_registry *registry);
/* A copy of all below, as it is at one moment: tags, rows, values (of tensors too); bound entries become
 * values, which are read afterwards; those that have none just now (SGM_ERROR_STATE) are left out. Observers
 * stay behind. */
SGM_API sgm_registry *sgm_registry_copy(sgm_registry *registry);

/* Copies what is below `from`, as sgm_registry_copy does, into a registry that is there: tags and entries
 * that it lacks are added, values of the others set as their owner would, and registries that both have are
 * gone into. Ends at the first entry that is of another kind or out of bounds there, with an error; those
 * before it are copied. */
SGM_API sgm_status sgm_registry_copy_into(sgm_registry *from, sgm_registry *to);

/* Gives a registry a tag; one that it has already changes nothing. */
SGM_API sgm_status sgm_registry_add_tag(sgm_registry *registry, const char *tag);
/* Whether it has this tag. */
SGM_API bool sgm_registry_has_tag(sgm_registry *registry, const char *tag);
/* All tags, copied: free with sgm_names_free. */
SGM_API sgm_status sgm_registry_tags(sgm_registry *registry, char ***tags, size_t *count);
/* Puts a child under a name: a tree has no circles, and a registry one parent. Replaces a child of that name.
 * The caller keeps its own reference. */
SGM_API sgm_status sgm_registry_put(sgm_registry *registry, const char *name, sgm_registry *child);

/* A new entry with its row and its default; a tensor or a registry is nothing until it is set. */
SGM_API sgm_status sgm_registry_define(sgm_registry *registry, const sgm_option *option);
/* An entry whose content lives elsewhere: `get` fills in a content that the caller clears, `set` NULL:
 * read-only. Both are called without the tree's lock. `release(user)` once, when the entry goes, also when
 * binding fails; a thread that is just reading the entry may delay it. */
typedef struct sgm_binding {
    sgm_status (*get)(void *user, sgm_content *content);       /* gives the content of now */
    sgm_status (*set)(void *user, const sgm_content *content); /* changes it */
    void (*release)(void *user);                               /* lets go of `user`; NULL: nothing to do */
    void *user;                                                /* passed to all */
} sgm_binding;
/* A new entry with its row, bound to functions. */
SGM_API sgm_status sgm_registry_bind(sgm_registry *registry, const sgm_option *option,
                                     const sgm_binding *binding);

/* Sets an entry, or makes one of the content's kind. Another kind than the entry's, a value out of bounds, a
 * text that is no choice, a read-only entry: an error that names identifier, what was expected and what came.
 * Integers become numbers. */
SGM_API sgm_status sgm_registry_set(sgm_registry *registry, const char *name, sgm_content content);
/* Sets an entry as its owner, also a read-only one. */
SGM_API sgm_status sgm_registry_set_own(sgm_registry *registry, const char *name, sgm_content content);
/* A copy of an entry's content, which the caller clears. */
SGM_API sgm_status sgm_registry_get(sgm_registry *registry, const char *name, sgm_content *content);
/* The number of an entry; integers are numbers too. */
SGM_API sgm_status sgm_registry_get_number(sgm_registry *registry, const char *name, double *value);
/* The integer of an entry. */
SGM_API sgm_status sgm_registry_get_integer(sgm_registry *registry, const char *name, int64_t *value);
/* Whether there is such an entry. */
SGM_API bool sgm_registry_has(sgm_registry *registry, const char *name);
/* Removes an entry, or a registry with all below; none of this name is an error. */
SGM_API sgm_status sgm_registry_remove(sgm_registry *registry, const char *name);
/* The row of an entry; NULL: it has none. */
SGM_API const sgm_option *sgm_registry_option(sgm_registry *registry, const char *name);
/* How many entries there are. */
SGM_API size_t sgm_registry_count(sgm_registry *registry);
/* Names in order of definition, copied: free with sgm_names_free. */
SGM_API sgm_status sgm_registry_names(sgm_registry *registry, char ***names, size_t *count);
SGM_API void sgm_names_free(char **names, size_t count);
/* "mnist.optimiser" from the root down, "" of the root itself; free with sgm_string_free. */
SGM_API char *sgm_registry_path(sgm_registry *registry);

/* --- resolving ---
 * An identifier has one part for each level, separated by dots; spaces around a part do not count. In a part
 * `*` stands for any run of characters, anywhere; `*<a,b>` or `name*<a,b>` matches only registries that have
 * all these tags (tags do not concern other entries). `<a>` is short for `*<a>`. */
typedef struct sgm_match {
    char *identifier;    /* from the registry that was resolved in */
    sgm_content content; /* a registry where the identifier ends above the values: look at its kind */
} sgm_match;
/* What an identifier has found. */
typedef struct sgm_matches {
    sgm_match *items; /* the matches */
    size_t count;     /* how many */
} sgm_matches;
/* All that match, in the order of the tree. None is no error: count 0. Where the identifier has a `*` or
 * tags, bindings that have no value just now (SGM_ERROR_STATE) are left out; if all are, that is the error.
 */
SGM_API sgm_status sgm_registry_resolve(sgm_registry *root, const char *identifier, sgm_matches *matches);
/* The first one; none is an error with the nearest identifier. */
SGM_API sgm_status sgm_registry_resolve_one(sgm_registry *root, const char *identifier, sgm_content *content);
SGM_API void sgm_matches_free(sgm_matches *matches);
/* Fills in what is between braces, as in "mnist-{*<trainer>.epoch}": the first match, texts without quotes.
 * "{{" and "}}" stand for braces. Free with sgm_string_free. */
SGM_API char *sgm_registry_resolve_text(sgm_registry *root, const char *format);
/* Options of sgm_registry_resolve_set. */
typedef struct sgm_resolve_set_options {
    size_t struct_size;
    bool add_if_missing; /* in the last-level registries that were reached; not with `*` in the last part */
    /* Nothing is set: only kinds, bounds and words are checked. A binding may refuse the value all the same.
     */
    bool check_only;
} SGM_BY_NAME sgm_resolve_set_options;
/* Sets all that match, or none: every one is checked first, and when a binding refuses, those before it are
 * set back. `count` (may be NULL) gets how many; none is an error. */
SGM_API sgm_status sgm_registry_resolve_set(sgm_registry *root, const char *identifier, sgm_content content,
                                            const sgm_resolve_set_options *options, size_t *count);
/* A resolver remembers which registries an identifier led to, and forgets when the tree changes; one thread
 * at a time. */
typedef struct sgm_resolver sgm_resolver;
/* A resolver of an identifier from `root` on; NULL on failure. */
SGM_API sgm_resolver *sgm_resolver_create(sgm_registry *root, const char *identifier);
/* All that match now, as sgm_registry_resolve has it. */
SGM_API sgm_status sgm_resolver_get(sgm_resolver *resolver, sgm_matches *matches);
SGM_API void sgm_resolver_free(sgm_resolver *resolver);

/* --- observing --- */
/* Called after a set or a put that changed something, on the setter's thread, without the lock; the contents
 * are borrowed. It may set and unobserve. A new tensor always is a change, an entry that was added changed
 * from nothing. */
typedef void (*sgm_observer_function)(void *user, const char *identifier, const sgm_content *before,
                                      const sgm_content *after);
/* `identifier` as in resolving, from `root`; entries that come later count too. The observer goes with
 * `root`, or with sgm_registry_unobserve of its id (may be NULL). Either waits until the function has
 * returned, except when called out of an observer. A single entry that is bound and cannot be set, such as a
 * trainer's epoch or gradient, is refused: it changes without being set. */
SGM_API sgm_status sgm_registry_observe(sgm_registry *root, const char *identifier,
                                        sgm_observer_function function, void *user, int64_t *id);
/* Ends the observer with this id, and waits until its function has returned. */
SGM_API void sgm_registry_unobserve(sgm_registry *root, int64_t id);

#ifdef __cplusplus
}
#endif
#endif
