/* Resolves identifiers with wildcards in a tree: gets or sets all entries that match.
 *
 * walk_level descends through the tree with the lock held, one part of the identifier for each level, and
 * collects the matches. A resolver that the program keeps (sgm_resolver_create) remembers them together with
 * the tree's generation, and walks again only after the structure has changed, so that asking repeatedly is
 * cheap. Matches point to cores and entries without retaining them: valid only with the lock, and only at
 * that generation. As everywhere, bound entries are read without the lock. Setting goes on in change.c. If
 * nothing matches, the place where the walk came deepest gives the suggestion of the message. */
#include "registry/registry_internal.h"
#include "text/names.h"

/* An entry that the identifier led to. `entry` NULL: a registry that lacks an entry of the last part's name,
 * for add_if_missing. */
typedef struct found {
    char *identifier;
    sgm__core *core;
    sgm__entry *entry;
} found;

/* A walk and its matches. The pointers in it are not retained: they are valid while the lock is held, or as
 * long as the tree's generation is the same. */
typedef struct walking {
    const sgm__identifier *identifier;
    size_t maximum; /* stops after so many matches */
    bool missing;   /* collects registries that lack the last name, too */
    sgm__text way;  /* the identifier from the root to the current level */
    found *items;
    size_t count, capacity;
    /* For a suggestion: the registry where the walk came deepest; of several at that level the one with the
     * most entries. */
    const sgm__core *stuck;
    size_t stuck_level;
} walking;

/* Forgets all matches; the pointers in them are not retained, so only texts and lists are freed. */
static void clear_found(walking *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        sgm__free(walk->items[i].identifier);
    sgm__free(walk->items);
    sgm__text_free(&walk->way);
    walk->items = NULL;
    walk->count = walk->capacity = 0;
    walk->stuck = NULL;
}

/* Adds a match with a copy of the way to it. */
static sgm_status add_found(walking *walk, sgm__core *core, sgm__entry *entry)
{
    SGM_TRY(sgm__reserve(&walk->items, &walk->capacity, walk->count + 1, sizeof *walk->items));
    char *identifier = sgm__strdup(walk->way.data);
    if (identifier == NULL)
        return SGM_ERROR_MEMORY;
    walk->items[walk->count++] = (found){identifier, core, entry};
    return SGM_OK;
}

/* Appends a name to the way; false: out of memory. */
static bool go_to(walking *walk, const char *name)
{
    sgm__text_append(&walk->way, "%s%s", walk->way.length > 0 ? "." : "", name);
    return !walk->way.failed;
}

/* Cuts the way back to the length that it had at this level. */
static void go_back(walking *walk, size_t length)
{
    walk->way.length = length;
    if (walk->way.data != NULL)
        walk->way.data[length] = '\0';
}

/* Matches part `level` against the entries of `core`, and recurses into children for all parts but the last.
 * The depth is bounded by SGM__MAXIMUM_LEVELS, the number of parts. With the lock. */
static sgm_status walk_level(walking *walk, sgm__core *core, size_t level)
{
    size_t length = walk->way.length;
    bool is_last = level + 1 == walk->identifier->count, any = false;
    for (size_t i = 0; i < core->entry_count && walk->count < walk->maximum; i++) {
        sgm__entry *entry = core->entries[i];
        sgm__core *child = sgm__entry_child(entry);
        if (!sgm__identifier_matches(walk->identifier, level, entry->name, child,
                                     entry->kind == SGM_KIND_REGISTRY))
            continue;
        any = true;
        if (!go_to(walk, entry->name))
            return SGM_ERROR_MEMORY;
        SGM_TRY(is_last ? add_found(walk, core, entry) : walk_level(walk, child, level + 1));
        go_back(walk, length);
    }
    if (!any && is_last && walk->missing) {
        if (!go_to(walk, walk->identifier->parts[level].pattern))
            return SGM_ERROR_MEMORY;
        SGM_TRY(add_found(walk, core, NULL));
        go_back(walk, length);
    }
    if (walk->stuck == NULL || level > walk->stuck_level ||
        (level == walk->stuck_level && core->entry_count > walk->stuck->entry_count)) {
        walk->stuck = core;
        walk->stuck_level = level;
    }
    return SGM_OK;
}

static sgm_status check_root(const sgm_registry *root)
{
    return root != NULL ? SGM_OK : sgm_fail(SGM_ERROR_ARGUMENT, "expected a registry, got NULL");
}

/* Appends the names from below `root` down to `core`, each with a dot behind it. */
static void add_way(sgm__text *text, const sgm__core *core, const sgm__core *root)
{
    const char *way[SGM__MAXIMUM_LEVELS];
    size_t count = 0;
    for (; core != root; core = core->parent)
        way[count++] = core->place->name;
    while (count-- > 0)
        sgm__text_append(text, "%s.", way[count]);
}

/* Characters of the names from below `root` down to `core`. */
static size_t way_length(const sgm__core *core, const sgm__core *root)
{
    size_t length = 0;
    for (; core != root; core = core->parent)
        length += strlen(core->place->name);
    return length;
}

/* The registry `levels` below `core` that has an entry of exactly this name; of several, and of those and
 * `best` (may be NULL), the one with the shortest way from `root`. The depth of the recursion is `levels`. */
static const sgm__core *find_below(const sgm__core *root, const sgm__core *core, const char *name,
                                   size_t levels, const sgm__core *best)
{
    for (size_t i = 0; i < core->entry_count; i++) {
        const sgm__core *child = sgm__entry_child(core->entries[i]);
        if (levels == 0 && strcmp(core->entries[i]->name, name) == 0)
            return best == NULL || way_length(core, root) < way_length(best, root) ? core : best;
        if (levels > 0 && child != NULL)
            best = find_below(root, child, name, levels - 1, best);
    }
    return best;
}

/* A user has often forgotten the first levels, as in "learning_rate" for "optimiser.learning_rate", or takes
 * the name that a checkpoint has: "1-dense.weights" for "network.layers.1-dense.weights". */
static const sgm__core *below_here(const sgm__core *core, const char *name)
{
    const sgm__core *holder = find_below(core, core, name, 1, NULL);
    return holder != NULL ? holder : find_below(core, core, name, 2, NULL);
}

/* An identifier that would match: "mnist.optimiser.rate" for "mnist.optimizer.rate", "optimiser.rate" for
 * "rate". NULL: none is near enough. A name that is equal is no suggestion: it then fails for its tags, or
 * further down. With the lock. */
static char *suggest(const walking *walk, const sgm__core *root)
{
    const sgm__core *core = walk->stuck;
    const char **names = core != NULL ? sgm__calloc(core->entry_count, sizeof *names) : NULL;
    if (names == NULL)
        return NULL;
    for (size_t i = 0; i < core->entry_count; i++)
        names[i] = core->entries[i]->name;
    const sgm__part *part = &walk->identifier->parts[walk->stuck_level];
    const sgm__core *below = below_here(core, part->pattern);
    const char *near = below != NULL ? part->pattern : sgm__nearest(part->pattern, names, core->entry_count);
    sgm__free((void *)names);
    if (near == NULL || (below == NULL && strcmp(near, part->pattern) == 0))
        return NULL;
    sgm__text text = {0};
    add_way(&text, below != NULL ? below : core, root);
    sgm__text_append(&text, "%s%s", near, walk->identifier->text + part->end);
    return sgm__text_take(&text);
}

/* With the lock, as the suggestion reads the tree. */
static sgm_status fail_without_match(const walking *walk, const sgm__core *root)
{
    char *near = suggest(walk, root);
    sgm_status status =
        sgm_fail(SGM_ERROR_NOT_FOUND, "nothing matches '%s'%s%s%s", walk->identifier->text,
                 near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
    sgm__free(near);
    return status;
}

/* --- getting --- */

/* An identifier with what it led to. It retains the root; the matches in `walk` are not retained. */
struct sgm_resolver {
    sgm_registry *root;
    sgm__identifier *identifier;
    uint64_t generation; /* of the tree when `walk` was made; 0: nothing is remembered */
    walking walk;
};

static sgm_status refresh(sgm_resolver *resolver, const sgm__tree *tree);

/* An identifier of another program ("val_loss") becomes the real one, unless there is something of that name.
 * The note is without the lock, as it calls functions of the program. */
static sgm_status take_real_name(sgm_resolver *resolver)
{
    const char *word = resolver->identifier->text, *real = sgm__name_value(word);
    sgm__identifier *identifier = NULL;
    if (real == NULL)
        return SGM_OK;
    sgm__tree *tree = sgm__tree_lock(resolver->root->core);
    sgm_status status = refresh(resolver, tree);
    bool exists = resolver->walk.count > 0;
    sgm__tree_unlock(tree);
    if (status != SGM_OK || exists)
        return status;
    SGM_TRY(sgm__identifier_parse(real, &identifier));
    sgm__name_note(word, real);
    sgm__identifier_free(resolver->identifier);
    resolver->identifier = identifier;
    resolver->walk.identifier = identifier;
    resolver->generation = 0;
    return SGM_OK;
}

/* On failure the resolver is in a state that close_resolver accepts. */
static sgm_status open_resolver(sgm_resolver *resolver, sgm_registry *root, const char *identifier,
                                size_t maximum)
{
    *resolver = (sgm_resolver){0};
    SGM_TRY(check_root(root));
    SGM_TRY(sgm__identifier_parse(identifier, &resolver->identifier));
    resolver->walk.identifier = resolver->identifier;
    resolver->walk.maximum = maximum;
    resolver->root = sgm_registry_retain(root);
    return take_real_name(resolver);
}

static void close_resolver(sgm_resolver *resolver)
{
    clear_found(&resolver->walk);
    sgm__identifier_free(resolver->identifier);
    sgm_registry_free(resolver->root);
}

/* Walks again if the tree has another generation. A failed walk is not remembered. With the lock. */
static sgm_status refresh(sgm_resolver *resolver, const sgm__tree *tree)
{
    if (resolver->generation == tree->generation)
        return SGM_OK;
    resolver->generation = 0;
    clear_found(&resolver->walk);
    SGM_TRY(walk_level(&resolver->walk, resolver->root->core, 0));
    resolver->generation = tree->generation;
    return SGM_OK;
}

/* Copies the contents of the matches with the lock; bound entries are only retained, in (*bound)[i] for match
 * i, to be read later by read_bound. `matches->count` grows with the loop, so that a failure frees exactly
 * what was copied. */
static sgm_status copy_found(const sgm_resolver *resolver, sgm_matches *matches, sgm__entry ***bound)
{
    const walking *walk = &resolver->walk;
    matches->items = sgm__calloc(walk->count, sizeof *matches->items);
    *bound = sgm__calloc(walk->count, sizeof **bound);
    if (matches->items == NULL || *bound == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < walk->count; i++) {
        sgm__entry *entry = walk->items[i].entry;
        sgm_match *match = &matches->items[i];
        matches->count = i + 1;
        match->identifier = sgm__strdup(walk->items[i].identifier);
        if (match->identifier == NULL)
            return SGM_ERROR_MEMORY;
        if (entry->binding.get != NULL)
            (*bound)[i] = sgm__entry_retain(entry);
        else
            SGM_TRY(sgm__content_copy(&entry->content, resolver->root->read_only, &match->content));
    }
    return SGM_OK;
}

/* Removes the matches that read_bound has emptied (identifier NULL). */
static void close_gaps(sgm_matches *matches)
{
    size_t kept = 0;
    for (size_t i = 0; i < matches->count; i++)
        if (matches->items[i].identifier != NULL)
            matches->items[kept++] = matches->items[i];
    matches->count = kept;
}

/* Reads the bound entries without the lock, and releases all of them. Entries that have no value at the
 * moment (SGM_ERROR_STATE, such as the gradient of a frozen parameter) are left out; if nothing is left then,
 * that is the failure. */
static sgm_status read_bound(sgm_matches *matches, sgm__entry **bound, sgm_status status)
{
    size_t missing = 0;
    for (size_t i = 0; bound != NULL && i < matches->count; i++) {
        sgm_match *match = &matches->items[i];
        if (bound[i] == NULL)
            continue;
        sgm_status read =
            status == SGM_OK ? sgm__entry_read(bound[i], match->identifier, &match->content) : status;
        if (read == SGM_ERROR_STATE && status == SGM_OK) {
            sgm__free(match->identifier);
            match->identifier = NULL;
            missing++;
        } else {
            status = read;
        }
        sgm__entry_release(bound[i]);
    }
    sgm__free(bound);
    if (missing > 0)
        close_gaps(matches);
    return status == SGM_OK && missing > 0 && matches->count == 0 ? SGM_ERROR_STATE : status;
}

/* The one way for all three kinds of get. `must_match`: no match is an error with a suggestion. */
static sgm_status get_matches(sgm_resolver *resolver, bool must_match, sgm_matches *matches)
{
    sgm__entry **bound = NULL;
    sgm__tree *tree = sgm__tree_lock(resolver->root->core);
    sgm_status status = refresh(resolver, tree);
    if (status == SGM_OK && must_match && resolver->walk.count == 0)
        status = fail_without_match(&resolver->walk, resolver->root->core);
    if (status == SGM_OK)
        status = copy_found(resolver, matches, &bound);
    sgm__tree_unlock(tree);
    status = read_bound(matches, bound, status);
    if (status != SGM_OK)
        sgm_matches_free(matches);
    return status;
}

/* No match is no error here: *matches is empty then. */
sgm_status sgm_registry_resolve(sgm_registry *root, const char *identifier, sgm_matches *matches)
{
    sgm_resolver resolver;
    if (matches == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected where to put the matches, got NULL");
    *matches = (sgm_matches){0};
    sgm_status status = open_resolver(&resolver, root, identifier, SIZE_MAX);
    if (status == SGM_OK)
        status = get_matches(&resolver, false, matches);
    close_resolver(&resolver);
    return status;
}

/* Stops at the first match, and takes its content out of the list. */
sgm_status sgm_registry_resolve_one(sgm_registry *root, const char *identifier, sgm_content *content)
{
    sgm_resolver resolver;
    sgm_matches matches = {0};
    if (content == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a content to get into, got NULL");
    *content = (sgm_content){0};
    sgm_status status = open_resolver(&resolver, root, identifier, 1);
    if (status == SGM_OK)
        status = get_matches(&resolver, true, &matches);
    if (status == SGM_OK) {
        *content = matches.items[0].content;
        matches.items[0].content = (sgm_content){0};
    }
    sgm_matches_free(&matches);
    close_resolver(&resolver);
    return status;
}

void sgm_matches_free(sgm_matches *matches)
{
    if (matches == NULL)
        return;
    for (size_t i = 0; i < matches->count; i++) {
        sgm__free(matches->items[i].identifier);
        sgm_content_clear(&matches->items[i].content);
    }
    sgm__free(matches->items);
    *matches = (sgm_matches){0};
}

/* The identifier is parsed once; the first get walks. */
sgm_resolver *sgm_resolver_create(sgm_registry *root, const char *identifier)
{
    sgm_resolver *resolver = sgm__calloc(1, sizeof *resolver);
    if (resolver == NULL)
        return NULL;
    if (open_resolver(resolver, root, identifier, SIZE_MAX) != SGM_OK) {
        sgm_resolver_free(resolver);
        return NULL;
    }
    return resolver;
}

sgm_status sgm_resolver_get(sgm_resolver *resolver, sgm_matches *matches)
{
    if (resolver == NULL || matches == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a resolver and where to put the matches, got NULL");
    *matches = (sgm_matches){0};
    return get_matches(resolver, false, matches);
}

void sgm_resolver_free(sgm_resolver *resolver)
{
    if (resolver == NULL)
        return;
    close_resolver(resolver);
    sgm__free(resolver);
}

/* --- setting --- */

/* Checks everything that does not depend on the tree. An entry that may have to be added needs a name:
 * neither '*' nor tags. */
static sgm_status check_set(sgm_registry *root, const sgm_resolve_set_options *options,
                            const sgm__identifier *identifier, const sgm_content *content)
{
    sgm__core *core;
    SGM_TRY(sgm__writable(root, &core));
    if (sgm__content_check(content) != SGM_OK)
        return sgm__fail_within("%s", identifier->text);
    if (content->kind == SGM_KIND_REGISTRY)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: a registry has one place; use sgm_registry_put",
                        identifier->text);
    const char *last = identifier->parts[identifier->count - 1].pattern;
    if (options->add_if_missing) {
        if (strchr(last, '*') != NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s: an entry to be added needs a name without '*'",
                            identifier->text);
        return sgm__check_name("name", last);
    }
    return SGM_OK;
}

/* Checks the content against every match before any of them is set. With the lock. */
static sgm_status make_changes(const walking *walk, const sgm_content *content, sgm__change *changes)
{
    const char *last = walk->identifier->parts[walk->identifier->count - 1].pattern;
    for (size_t i = 0; i < walk->count; i++) {
        const sgm__entry *entry = walk->items[i].entry;
        SGM_TRY(sgm__change_make(&changes[i], walk->items[i].core, entry != NULL ? entry->name : last, false,
                                 content));
    }
    return SGM_OK;
}

/* sgm__changes_commit releases the lock; where it is not called, this function does. Changes are cleared
 * without the lock. */
static sgm_status set_found(sgm__core *root, walking *walk, const sgm_content *content, bool check_only)
{
    sgm__change *changes = NULL;
    sgm__tree *tree = sgm__tree_lock(root);
    sgm_status status = walk_level(walk, root, 0);
    size_t count = walk->count;
    if (status == SGM_OK && count == 0)
        status = fail_without_match(walk, root);
    if (status == SGM_OK) {
        changes = sgm__calloc(count, sizeof *changes);
        status = changes != NULL ? make_changes(walk, content, changes) : SGM_ERROR_MEMORY;
    }
    if (status == SGM_OK && !check_only)
        status = sgm__changes_commit(root, tree, changes, count);
    else
        sgm__tree_unlock(tree);
    for (size_t i = 0; changes != NULL && i < count; i++)
        sgm__change_clear(&changes[i]);
    sgm__free(changes);
    return status;
}

/* The resolver is used for its identifier and its walk; nothing is remembered. */
sgm_status sgm_registry_resolve_set(sgm_registry *root, const char *identifier, sgm_content content,
                                    const sgm_resolve_set_options *given, size_t *count)
{
    sgm_resolver resolver;
    sgm_resolve_set_options options;
    if (count != NULL)
        *count = 0;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_registry_resolve_set"));
    sgm_status status = open_resolver(&resolver, root, identifier, SIZE_MAX);
    if (status == SGM_OK)
        status = check_set(root, &options, resolver.identifier, &content);
    if (status == SGM_OK) {
        resolver.walk.missing = options.add_if_missing;
        status = set_found(root->core, &resolver.walk, &content, options.check_only);
    }
    if (status == SGM_OK && count != NULL)
        *count = resolver.walk.count;
    close_resolver(&resolver);
    return status;
}
