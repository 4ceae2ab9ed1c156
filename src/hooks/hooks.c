/* The holder of one trainer's hooks: attaching, detaching, and the order in which hooks run.
 *
 * Each attached hook has an entry, which counts its events and its references. `entries` is in order of
 * attachment; `order` is in order of running: by priority, then by attachment, but each hook behind those
 * that it requires. Everything here is guarded by hooks->lock, which is held while no function of a hook runs
 * but equal(); events and runs are in hooks_run.c and hooks_background.c, lists and names in hooks_list.c,
 * states in hooks_state.c.
 *
 * An entry is freed when the list, events and batches have all let go of it. Freeing calls the hook's free(),
 * which may do anything, so functions with the lock only collect entries in a list `garbage`, and their
 * callers pass it to sgm__hook_entries_free once the lock is released.
 *
 * An event must not fail for want of memory, so attaching reserves whatever taking off needs later. */
#include "hooks/hooks_internal.h"

/* --- entries --- */

/* An entry with one reference, that of the list; required entries are filled in by plan(). */
static sgm__hook_entry *create_entry(sgm_hook *hook)
{
    sgm__hook_entry *entry = sgm__calloc(1, sizeof *entry);
    if (entry && !(entry->required = sgm__calloc(hook->required_count, sizeof(sgm__hook_entry *)))) {
        sgm__free(entry);
        entry = NULL;
    }
    if (!entry)
        return NULL;
    entry->hook = sgm_hook_retain(hook);
    entry->background = hook->background;
    entry->identity = sgm__hook_identify(hook);
    entry->references = 1;
    return entry;
}

void sgm__hook_entries_free(sgm__hook_entry *garbage)
{
    while (garbage) {
        sgm__hook_entry *next = garbage->next;
        sgm_hook_free(garbage->hook);
        sgm__free(garbage->required);
        sgm__free(garbage);
        garbage = next;
    }
}

void sgm__hook_entry_drop(sgm__hook_entry *entry, sgm__hook_entry **garbage)
{
    if (--entry->references > 0)
        return;
    entry->next = *garbage;
    *garbage = entry;
}

/* Whether `entry` directly requires `wanted`. */
static bool requires(const sgm__hook_entry *entry, const sgm__hook_entry *wanted)
{
    for (size_t i = 0; i < entry->required_count; i++)
        if (entry->required[i] == wanted)
            return true;
    return false;
}

sgm__hook_entry *sgm__hook_entry_requiring(const sgm__hooks *hooks, const sgm__hook_entry *entry)
{
    for (size_t i = 0; i < hooks->count; i++)
        if (requires(hooks->entries[i], entry))
            return hooks->entries[i];
    return NULL;
}

bool sgm__hook_entry_is_required(const sgm__hooks *hooks, const sgm__hook_entry *entry)
{
    return sgm__hook_entry_requiring(hooks, entry) != NULL;
}

/* --- order --- */

/* The order among hooks that do not depend on each other. */
static bool goes_before(const sgm__hook_entry *a, const sgm__hook_entry *b)
{
    if (a->hook->priority != b->hook->priority)
        return a->hook->priority < b->hook->priority;
    return a->number < b->number;
}

static sgm__hook_entry *first_unvisited(sgm__hook_entry *const *entries, size_t count)
{
    sgm__hook_entry *first = NULL;
    for (size_t i = 0; i < count; i++)
        if (!entries[i]->visited && (!first || goes_before(entries[i], first)))
            first = entries[i];
    return first;
}

/* Puts an entry into `order`, after the entries that it requires and that have no place yet: a depth-first
 * topological sort. Circles do not occur (sgm_hook_require). */
static void place(sgm__hooks *hooks, sgm__hook_entry *entry, size_t *placed)
{
    entry->visited = true;
    sgm__hook_entry *required;
    while ((required = first_unvisited(entry->required, entry->required_count)))
        place(hooks, required, placed);
    hooks->order[(*placed)++] = entry;
}

/* Makes one group of two, among the first `count` entries of `order`. A group is named by the place of its
 * first member, so the smaller name remains. */
static void join_groups(sgm__hooks *hooks, size_t a, size_t b, size_t count)
{
    size_t minimum = a < b ? a : b, other = a < b ? b : a;
    for (size_t i = 0; i < count; i++)
        if (hooks->order[i]->group == other)
            hooks->order[i]->group = minimum;
}

/* Finds the background groups: entries that depend on each other, directly or through others, run on one
 * thread in order. An entry that requires a background entry runs in the background too, since it must not
 * run before it; `order` has required entries first, so one pass suffices. */
static void find_groups(sgm__hooks *hooks)
{
    for (size_t i = 0; i < hooks->count; i++) {
        sgm__hook_entry *entry = hooks->order[i];
        entry->group = i;
        for (size_t j = 0; j < entry->required_count; j++)
            entry->background = entry->background || entry->required[j]->background;
        for (size_t j = 0; entry->background && j < entry->required_count; j++)
            if (entry->required[j]->background)
                join_groups(hooks, entry->group, entry->required[j]->group, i + 1);
    }
}

/* Must follow every change of `entries`. The new `version` tells an event that runs meanwhile to look at
 * `order` from its beginning (run_foreground); `wanted` lets sgm__hooks_event leave without the lock when
 * no hook has the event's scale. */
void sgm__hooks_arrange(sgm__hooks *hooks)
{
    unsigned wanted = hooks->stop_status != SGM_OK ? SGM__ATTENTION : 0;
    for (size_t i = 0; i < hooks->count; i++) {
        hooks->entries[i]->visited = false;
        wanted |= 1u << hooks->entries[i]->hook->when.scale;
    }
    size_t placed = 0;
    sgm__hook_entry *next;
    while ((next = first_unvisited(hooks->entries, hooks->count)))
        place(hooks, next, &placed);
    find_groups(hooks);
    hooks->version++;
    atomic_store(&hooks->wanted, wanted);
}

/* How many background groups there are; each needs a bucket, that is, a thread. */
size_t sgm__hooks_group_count(const sgm__hooks *hooks)
{
    size_t groups = 0;
    for (size_t i = 0; i < hooks->count; i++)
        groups += hooks->order[i]->background && hooks->order[i]->group == i;
    return groups;
}

/* --- attaching --- */

/* Attaching has two halves. plan() makes entries and may fail, without changing the holder; commit() adds
 * them and cannot fail. */
typedef struct attachment {
    sgm__hooks *hooks;
    sgm__hook_entry *first, **last; /* new entries, required ones first */
    size_t count;
} attachment;

/* The entry that stands for `hook` already, among those attached and those planned. One whose life is over
 * does not count: it is attached only until its dependents go. */
static sgm__hook_entry *find_equal(const attachment *made, const sgm_hook *hook)
{
    for (size_t i = 0; i < made->hooks->count; i++) {
        sgm__hook_entry *entry = made->hooks->entries[i];
        if (!sgm_time_count_is_dead(&entry->hook->when, &entry->count) && sgm__hook_equal(entry->hook, hook))
            return entry;
    }
    for (sgm__hook_entry *entry = made->first; entry; entry = entry->next)
        if (sgm__hook_equal(entry->hook, hook))
            return entry;
    return NULL;
}

/* Refuses a required hook that could not run before its dependent whenever that one is due. */
static sgm_status check_dependency(const sgm_hook *hook, const sgm_hook *required)
{
    char when[64], other[64];
    if (hook->background != required->background)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "hook '%s' runs in the %s, but '%s', which it requires, in the %s: let both run in "
                        "the same place",
                        hook->type->name, hook->background ? "background" : "foreground",
                        required->type->name, required->background ? "background" : "foreground");
    if (hook->local != required->local)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "hook '%s' is %s, but '%s', which it requires, is %s: a worker's hooks see nothing of "
            "the others",
            hook->type->name, hook->local ? "local" : "global", required->type->name,
            required->local ? "local" : "global");
    if (!sgm_time_step_covers(&required->when, &hook->when))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "hook '%s' (%s) requires '%s' (%s), which is not due each time: let it run as often",
                        hook->type->name, sgm_time_step_text(&hook->when, when, sizeof when),
                        required->type->name, sgm_time_step_text(&required->when, other, sizeof other));
    return SGM_OK;
}

/* Plans the entries of a hook and of all that it requires, and gives the hook's own entry in *planned: a
 * new one at the end of the list, or the one that is equal. On failure `made` keeps the entries of
 * required hooks, which the caller frees. */
static sgm_status plan(attachment *made, sgm_hook *hook, sgm__hook_entry **planned)
{
    if ((*planned = find_equal(made, hook)))
        return SGM_OK;
    sgm__hook_entry *entry = create_entry(hook);
    if (!entry)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < hook->required_count && status == SGM_OK; i++) {
        status = check_dependency(hook, hook->required[i]);
        if (status == SGM_OK)
            status = plan(made, hook->required[i], &entry->required[i]);
        if (status == SGM_OK)
            entry->required_count++;
    }
    if (status != SGM_OK) {
        sgm__hook_entries_free(entry);
        return status;
    }
    *made->last = entry;
    made->last = &entry->next;
    made->count++;
    *planned = entry;
    return SGM_OK;
}

/* Room for the new entries, also for the day when each of them is gone, and a thread for one more
 * background group. */
static sgm_status reserve(sgm__hooks *hooks, size_t added, bool background)
{
    size_t needed = hooks->count + added;
    SGM_TRY(sgm__reserve(&hooks->entries, &hooks->entry_capacity, needed, sizeof *hooks->entries));
    SGM_TRY(sgm__reserve(&hooks->order, &hooks->order_capacity, needed, sizeof *hooks->order));
    SGM_TRY(
        sgm__reserve(&hooks->gone, &hooks->gone_capacity, hooks->gone_count + needed, sizeof *hooks->gone));
    return background ? sgm__buckets_reserve(hooks, sgm__hooks_group_count(hooks) + 1) : SGM_OK;
}

/* The record of an early hook whose life is over; NULL: there is none. */
static sgm__gone *find_gone(const sgm__hooks *hooks, sgm__hook_identity identity)
{
    for (size_t i = 0; i < hooks->gone_count; i++)
        if (hooks->gone[i].identity.kind == identity.kind && hooks->gone[i].identity.text == identity.text)
            return &hooks->gone[i];
    return NULL;
}

/* Notes the text of a hook that was attached before the first event and goes now. A branch off an earlier
 * checkpoint must begin with that hook, and makes it anew from the text (src/runs/trainer_copy.c). The
 * hook itself is not kept: the caller who takes it off expects its self to be freed. */
static sgm_status note_text(sgm__hooks *hooks, const sgm__hook_entry *entry)
{
    if (!entry->early || !entry->hook->text)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&hooks->taken_off, &hooks->taken_off_capacity, hooks->taken_off_count + 1,
                         sizeof *hooks->taken_off));
    char *text = sgm__strdup(entry->hook->text);
    if (!text)
        return SGM_ERROR_MEMORY;
    hooks->taken_off[hooks->taken_off_count++] = (sgm__taken_off){entry->number, text};
    return SGM_OK;
}

/* A hook whose life is over may be attached again; commit() then forgets the record of the first one. A
 * branch begins with the first one all the same, so its text is noted before. */
static sgm_status note_lived(sgm__hooks *hooks, const sgm__hook_entry *first)
{
    for (; first; first = first->next) {
        const sgm__gone *gone = find_gone(hooks, first->identity);
        if (gone && gone->entry)
            SGM_TRY(note_text(hooks, gone->entry));
    }
    return SGM_OK;
}

/* An equal hook is attached again, so a checkpoint must not say any more that its life is over. */
static void forget_gone(sgm__hooks *hooks, sgm__hook_identity identity, sgm__hook_entry **garbage)
{
    sgm__gone *gone = find_gone(hooks, identity);
    if (!gone)
        return;
    if (gone->entry)
        sgm__hook_entry_drop(gone->entry, garbage);
    hooks->gone_count--;
    memmove(gone, gone + 1, (hooks->gone_count - (size_t)(gone - hooks->gone)) * sizeof *gone);
}

/* The smallest number from 1 that no other attached hook of that name has: the 2 of "save#2". */
static int free_ordinal(const sgm__hooks *hooks, const char *name)
{
    for (int ordinal = 1;; ordinal++) {
        bool taken = false;
        for (size_t i = 0; i < hooks->count && !taken; i++)
            taken = hooks->entries[i]->ordinal == ordinal &&
                    strcmp(hooks->entries[i]->hook->type->name, name) == 0;
        if (!taken)
            return ordinal;
    }
}

/* Whether checkpoints bring the hook back. */
static bool is_stored(sgm__attachment how)
{
    return how == SGM__ATTACHED_STORED || how == SGM__ATTACHED_AGAIN;
}

/* Adds the planned entries, required ones first, to the list of what is attached; reserve() has made room.
 * Attaching a hook ends `taken_off`, so its results are taken again. */
static void commit(sgm__hooks *hooks, sgm__hook_entry *first, sgm__attachment how, sgm__hook_entry **garbage)
{
    while (first) {
        sgm__hook_entry *next = first->next;
        first->next = NULL;
        first->number = hooks->attachments++;
        first->early = !hooks->had_event && !is_stored(how);
        first->attached = true;
        first->copied = how == SGM__ATTACHED_COPY;
        atomic_store(&first->hook->was_attached, true);
        first->ordinal = free_ordinal(hooks, first->hook->type->name);
        forget_gone(hooks, first->identity, garbage);
        atomic_store(&first->hook->taken_off, false);
        hooks->entries[hooks->count++] = first;
        first = next;
    }
    sgm__hooks_arrange(hooks);
}

/* The first state is noted before the lock is taken, as that calls the type's get_state. An equal hook
 * that was attached only because another one requires it becomes `chosen`: it stays when that other one
 * goes. */
sgm_status sgm__hooks_attach_as(sgm__hooks *hooks, sgm_hook *hook, sgm__attachment how, bool *attached,
                                char **name)
{
    if (attached)
        *attached = false;
    if (!hook)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a hook to attach is NULL; see why its constructor failed");
    SGM_TRY(sgm__hook_remember_first(hook));
    attachment made = {.hooks = hooks};
    made.last = &made.first;
    sgm__hook_entry *entry = NULL, *garbage = NULL;
    pthread_mutex_lock(&hooks->lock);
    sgm_status status = plan(&made, hook, &entry);
    if (status == SGM_OK && made.count > 0)
        status = reserve(hooks, made.count, hook->background);
    if (status == SGM_OK)
        status = note_lived(hooks, made.first);
    if (status == SGM_OK) {
        entry->chosen = true;
        if (made.count > 0) {
            entry->stored = is_stored(how);
            commit(hooks, made.first, how, &garbage);
        } else if (how == SGM__ATTACHED_AGAIN) {
            entry->stored = true;
            entry->early = false;
        }
        if (name)
            *name = sgm__format("%s#%d", hook->type->name, entry->ordinal);
        if (attached)
            *attached = made.count > 0;
        made.first = NULL;
    }
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(made.first);
    sgm__hook_entries_free(garbage);
    return status;
}

sgm_status sgm__hooks_attach(sgm__hooks *hooks, sgm_hook *hook, bool *attached)
{
    return sgm__hooks_attach_as(hooks, hook, SGM__ATTACHED_AS_SETUP, attached, NULL);
}

/* --- detaching --- */

/* Removes an entry from a list of `count`, and closes the gap. */
static void remove_from(sgm__hook_entry **list, size_t count, const sgm__hook_entry *entry)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] != entry)
            continue;
        memmove(&list[i], &list[i + 1], (count - i - 1) * sizeof *list);
        return;
    }
}

/* Recursive, with required entries that nobody chose and nobody else needs. With `remember`, an early
 * entry leaves a record for checkpoints and resets; an entry whose life is over is kept with its record,
 * since a reset attaches it again. The record's place was reserved when the hook was attached.
 * sgm__hooks_arrange must follow. */
void sgm__hook_entry_take_off(sgm__hooks *hooks, sgm__hook_entry *entry, bool remember,
                              sgm__hook_entry **garbage)
{
    remove_from(hooks->entries, hooks->count, entry);
    remove_from(hooks->order, hooks->count, entry);
    hooks->count--;
    entry->attached = false;
    if (remember && entry->early) {
        bool lived = sgm_time_count_is_dead(&entry->hook->when, &entry->count);
        entry->references += lived;
        hooks->gone[hooks->gone_count++] =
            (sgm__gone){lived ? entry : NULL, entry->identity, entry->number, entry->count};
    }
    for (size_t i = 0; i < entry->required_count; i++) {
        sgm__hook_entry *required = entry->required[i];
        if (required->attached && !required->chosen && !sgm__hook_entry_is_required(hooks, required))
            sgm__hook_entry_take_off(hooks, required, false, garbage);
    }
    sgm__hook_entry_drop(entry, garbage);
}

/* The same object if it is attached, else an equal hook: a program may detach by a second hook that it
 * made alike. */
static sgm__hook_entry *find_attached(const sgm__hooks *hooks, const sgm_hook *hook)
{
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->entries[i]->hook == hook)
            return hooks->entries[i];
    for (size_t i = 0; i < hooks->count; i++)
        if (sgm__hook_equal(hooks->entries[i]->hook, hook))
            return hooks->entries[i];
    return NULL;
}

/* Required hooks that the program did not attach itself come back with their dependents, so they need no
 * note. */
sgm_status sgm__hook_entry_note_taken_off(sgm__hooks *hooks, const sgm__hook_entry *entry)
{
    return entry->chosen ? note_text(hooks, entry) : SGM_OK;
}

/* `cancelled` tells a background batch that holds the entry to leave the hook out. */
sgm_status sgm__hook_entry_detach(sgm__hooks *hooks, sgm__hook_entry *entry, sgm__hook_entry **garbage)
{
    for (size_t i = 0; i < hooks->count; i++)
        if (requires(hooks->entries[i], entry))
            return sgm_fail(SGM_ERROR_STATE, "hook '%s' is required by '%s': detach that one first",
                            entry->hook->type->name, hooks->entries[i]->hook->type->name);
    SGM_TRY(sgm__hook_entry_note_taken_off(hooks, entry));
    entry->cancelled = true;
    sgm__hook_entry_take_off(hooks, entry, true, garbage);
    sgm__hooks_arrange(hooks);
    return SGM_OK;
}

sgm_status sgm__hooks_detach(sgm__hooks *hooks, sgm_hook *hook)
{
    if (!hook)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a hook to detach is NULL");
    sgm__hook_entry *garbage = NULL;
    pthread_mutex_lock(&hooks->lock);
    sgm__hook_entry *entry = find_attached(hooks, hook);
    sgm_status status = entry ? sgm__hook_entry_detach(hooks, entry, &garbage)
                              : sgm_fail(SGM_ERROR_NOT_FOUND, "hook '%s' is not attached to trainer '%s'",
                                         hook->type->name, hooks->trainer);
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(garbage);
    return status;
}

/* --- the holder --- */

/* The registry "shared" of the trainer, where hooks leave results; it is made if the trainer has none. */
static sgm_status find_shared(sgm__hooks *hooks)
{
    sgm_content content;
    if (!sgm_registry_has(hooks->registry, "shared")) {
        if (!(hooks->shared = sgm_registry_create()))
            return sgm_last_status();
        SGM_TRY(sgm_registry_add_tag(hooks->shared, "shared"));
        return sgm_registry_put(hooks->registry, "shared", hooks->shared);
    }
    SGM_TRY(sgm_registry_get(hooks->registry, "shared", &content));
    if (content.kind == SGM_KIND_REGISTRY) {
        hooks->shared = content.as.registry;
        return SGM_OK;
    }
    sgm_status status = sgm_fail(SGM_ERROR_TYPE, "'shared' is %s, expected a registry for results of hooks",
                                 sgm_kind_name(content.kind));
    sgm_content_clear(&content);
    return status;
}

sgm__hooks *sgm__hooks_create(const char *trainer, sgm_registry *registry, sgm_trainer *owner)
{
    sgm__hooks *hooks = sgm__calloc(1, sizeof *hooks);
    if (!hooks)
        return NULL;
    pthread_mutex_init(&hooks->lock, NULL);
    pthread_mutex_init(&hooks->command_lock, NULL);
    pthread_cond_init(&hooks->idle, NULL);
    hooks->registry = sgm_registry_retain(registry);
    hooks->owner = owner;
    hooks->trainer = sgm__strdup(trainer ? trainer : "");
    if (!hooks->trainer || find_shared(hooks) != SGM_OK) {
        sgm__hooks_free(hooks);
        return NULL;
    }
    return hooks;
}

/* Makes sgm_hook_share write each result twice: into the replica's own "shared", and into `results`, which
 * the trainer shows as the worker's. */
void sgm__hooks_of_worker(sgm__hooks *hooks, int32_t worker, sgm_registry *results)
{
    sgm_registry_free(hooks->mirror);
    hooks->mirror = sgm_registry_retain(results);
    hooks->worker = worker;
}

/* Ends the threads first: after that no other thread has this holder, and no lock is needed. */
void sgm__hooks_free(sgm__hooks *hooks)
{
    if (!hooks)
        return;
    sgm__buckets_end(hooks);
    if (hooks->skipped > 0)
        sgm__log(SGM_LOG_INFO, "hooks",
                 "trainer '%s': background hooks were left out %lld times, as they still ran", hooks->trainer,
                 (long long)hooks->skipped);
    sgm__hook_entry *garbage = NULL;
    for (size_t i = 0; i < hooks->gone_count; i++)
        if (hooks->gone[i].entry)
            sgm__hook_entry_drop(hooks->gone[i].entry, &garbage);
    for (size_t i = 0; i < hooks->count; i++)
        sgm__hook_entry_drop(hooks->entries[i], &garbage);
    sgm__hook_entries_free(garbage);
    sgm__command *command;
    while ((command = sgm__hooks_take_command(hooks)))
        sgm__command_free(command);
    sgm__free(hooks->entries);
    sgm__free(hooks->order);
    for (size_t i = 0; i < hooks->taken_off_count; i++)
        sgm__free(hooks->taken_off[i].text);
    sgm__free(hooks->taken_off);
    sgm__free(hooks->gone);
    sgm__free(hooks->buckets);
    sgm__free(hooks->stop_text);
    sgm__free(hooks->trainer);
    sgm_registry_free(hooks->shared);
    sgm_registry_free(hooks->mirror);
    sgm_registry_free(hooks->registry);
    pthread_cond_destroy(&hooks->idle);
    pthread_mutex_destroy(&hooks->command_lock);
    pthread_mutex_destroy(&hooks->lock);
    sgm__free(hooks);
}

void *sgm__hooks_find(sgm__hooks *hooks, const sgm_hook_type *type)
{
    void *self = NULL;
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count && !self; i++)
        if (hooks->entries[i]->hook->type == type)
            self = hooks->entries[i]->hook->self;
    pthread_mutex_unlock(&hooks->lock);
    return self;
}

bool sgm__hook_is_attached(const sgm__hooks *hooks, const sgm_hook *hook)
{
    bool has = false;
    for (size_t i = 0; i < hooks->count && !has; i++)
        has = hooks->entries[i]->hook == hook;
    return has;
}

bool sgm__hook_is_taken_off(const sgm_hook *hook)
{
    return atomic_load(&hook->taken_off);
}

bool sgm__hooks_has(sgm__hooks *hooks, const sgm_hook *hook)
{
    pthread_mutex_lock(&hooks->lock);
    bool has = sgm__hook_is_attached(hooks, hook);
    pthread_mutex_unlock(&hooks->lock);
    return has;
}

size_t sgm__hooks_count(sgm__hooks *hooks)
{
    pthread_mutex_lock(&hooks->lock);
    size_t count = hooks->count;
    pthread_mutex_unlock(&hooks->lock);
    return count;
}

int64_t sgm__hooks_skipped(sgm__hooks *hooks)
{
    pthread_mutex_lock(&hooks->lock);
    int64_t skipped = hooks->skipped;
    pthread_mutex_unlock(&hooks->lock);
    return skipped;
}
