/* Hooks in checkpoints: how far each hook's time step has counted, what its criteria remember, and its own
 * numbers.
 *
 * The state is an array of doubles: FORMAT, the number of records, then for each hook, in order of
 * attachment, a record: its identity (kind, text), whether it is attached, its count (left, used), how many
 * numbers follow, and these: how many of them are of criteria, the criteria's, the hook's own. Records of
 * format 1 have no text. Hooks themselves are not in a checkpoint: the program, or a list of texts
 * (src/train/trainer_hooks.c), attaches them before their states are set, and records find their hooks by
 * identity.
 *
 * src/runs/parts/state_hooks.c writes and reads this, between two iterations. Other threads may attach and
 * detach hooks while it is written. */
#include "base/turn_lock.h"
#include "hooks/hooks_internal.h"

#define FORMAT 2
#define MAXIMUM_ATTEMPTS 16
#define SPARE_ROOM 64              /* numbers that hooks may add between counting and writing */
#define MAXIMUM 9007199254740992.0 /* 2^53: up to it, doubles hold every integer */

/* --- writing --- */

/* Appends numbers to an array of fixed room. Beyond the room it only counts, so that an error can say how
 * much is needed. */
typedef struct writer {
    double *numbers; /* NULL: only counts */
    size_t count, room;
} writer;

static void put(writer *to, double number)
{
    if (to->numbers && to->count < to->room)
        to->numbers[to->count] = number;
    to->count++;
}

/* What next_record copies of an entry, so that the hook's functions can be called without the holder's
 * lock. */
typedef struct record {
    sgm__hook_identity identity;
    int64_t number;
    sgm_time_count count;
    sgm_hook *hook; /* retained; NULL: its life is over */
} record;

/* The first attached or gone hook whose number is larger than `after`, with its hook retained; false:
 * there is none. Each call looks through both lists under the lock, since hooks may come and go between
 * two calls. */
static bool next_record(sgm__hooks *hooks, int64_t after, record *next)
{
    bool found = false;
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count; i++) {
        const sgm__hook_entry *entry = hooks->entries[i];
        if (entry->number <= after || (found && entry->number > next->number))
            continue;
        *next = (record){entry->identity, entry->number, entry->count, entry->hook};
        found = true;
    }
    for (size_t i = 0; i < hooks->gone_count; i++) {
        const sgm__gone *gone = &hooks->gone[i];
        if (gone->number <= after || (found && gone->number > next->number))
            continue;
        *next = (record){gone->identity, gone->number, gone->count, NULL};
        found = true;
    }
    if (found)
        sgm_hook_retain(next->hook);
    pthread_mutex_unlock(&hooks->lock);
    return found;
}

/* The place for the next `count` numbers; NULL: this pass only counts, or there is not enough room. */
static double *room_for(const writer *to, size_t count)
{
    bool fits = to->numbers && to->count <= to->room && count <= to->room - to->count;
    return fits ? to->numbers + to->count : NULL;
}

/* A hook that writes more or fewer numbers than it announced would shift all numbers behind its own. */
static sgm_status check_written(size_t count, size_t written)
{
    if (written != count)
        return sgm_fail(SGM_ERROR_STATE, "its state has %zu numbers, but it wrote %zu", count, written);
    return SGM_OK;
}

static sgm_status put_criteria(const sgm_criteria *criteria, size_t count, writer *to)
{
    size_t written = count;
    double *room = room_for(to, count);
    if (room)
        SGM_TRY(sgm_criteria_get_state(criteria, room, &written));
    to->count += count;
    return check_written(count, written);
}

static sgm_status put_own_numbers(const sgm_hook *hook, size_t count, writer *to)
{
    size_t written = count;
    double *room = room_for(to, count);
    if (room)
        SGM_TRY(hook->type->get_state(hook->self, room, &written));
    to->count += count;
    return check_written(count, written);
}

/* The numbers of one hook, behind the record's head; with hook->turn. */
static sgm_status put_numbers(const sgm_hook *hook, writer *to)
{
    size_t criteria = 0, own = 0;
    if (hook->criteria)
        SGM_TRY(sgm_criteria_get_state(hook->criteria, NULL, &criteria));
    if (hook->type->get_state)
        SGM_TRY(hook->type->get_state(hook->self, NULL, &own));
    put(to, (double)(1 + criteria + own));
    put(to, (double)criteria);
    if (criteria > 0)
        SGM_TRY(put_criteria(hook->criteria, criteria, to));
    return own > 0 ? put_own_numbers(hook, own, to) : SGM_OK;
}

/* Writes one record. A hook whose life is over has a head only: a resumed run takes it off again. */
static sgm_status put_record(const record *from, writer *to)
{
    put(to, from->identity.kind);
    put(to, from->identity.text);
    put(to, from->hook != NULL);
    put(to, (double)from->count.left);
    put(to, (double)from->count.used);
    if (!from->hook) {
        put(to, 0);
        return SGM_OK;
    }
    sgm__lock_giving_way(from->hook->turn); /* another trainer may be running it, and wait for this one */
    sgm_status status = put_numbers(from->hook, to);
    pthread_mutex_unlock(from->hook->turn);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("state of hook '%s'", from->hook->type->name);
}

/* --- holding --- */

void sgm__hooks_let_go(sgm__held_hooks *held)
{
    for (size_t i = 0; i < held->count; i++) {
        pthread_mutex_unlock(held->items[i]->turn);
        sgm_hook_free(held->items[i]);
    }
    sgm__free(held->items);
    *held = (sgm__held_hooks){0};
}

/* Takes one hook's turn without waiting; false: there is no room, or another thread has it, which *missing
 * then tells, retained. */
static bool hold_one(sgm_hook *hook, sgm__held_hooks *held, size_t room, sgm_hook **missing)
{
    sgm_hook_retain(hook);
    if (held->count < room && pthread_mutex_trylock(hook->turn) == 0) {
        held->items[held->count++] = hook;
        return true;
    }
    *missing = hook;
    return false;
}

/* Takes the turns of all attached hooks, and of those whose life is over, without waiting: a restart attaches
 * these again. False: hold_one failed, or background hooks run. */
static bool hold_all(sgm__hooks *hooks, sgm__held_hooks *held, size_t room, sgm_hook **missing)
{
    pthread_mutex_lock(&hooks->lock);
    bool good = hooks->busy_buckets == 0;
    for (size_t i = 0; i < hooks->count && good; i++)
        good = hold_one(hooks->entries[i]->hook, held, room, missing);
    for (size_t i = 0; i < hooks->gone_count && good; i++)
        if (hooks->gone[i].entry)
            good = hold_one(hooks->gone[i].entry->hook, held, room, missing);
    pthread_mutex_unlock(&hooks->lock);
    return good;
}

/* Room for the turns of all hooks, and a few that another thread may attach meanwhile. */
static size_t room_of_all(sgm__hooks *hooks)
{
    pthread_mutex_lock(&hooks->lock);
    size_t room = hooks->count + hooks->gone_count + SPARE_ROOM;
    pthread_mutex_unlock(&hooks->lock);
    return room;
}

/* Waits for one turn at a time while holding no other, then tries all (the scheme of C++'s std::lock):
 * threads that hold several do not wait for each other for ever. */
sgm_status sgm__hooks_hold(sgm__hooks *hooks, sgm__held_hooks *held)
{
    sgm_hook *wanted = NULL;
    for (;;) {
        sgm_hook *missing = NULL;
        sgm__hooks_wait_giving_way(hooks);
        if (wanted)
            sgm__lock_giving_way(wanted->turn);
        size_t room = room_of_all(hooks);
        *held = (sgm__held_hooks){.items = sgm__calloc(room, sizeof *held->items)};
        bool has_all = held->items && hold_all(hooks, held, room, &missing);
        if (wanted)
            pthread_mutex_unlock(wanted->turn);
        sgm_hook_free(wanted);
        if (has_all)
            return SGM_OK;
        if (!held->items)
            return SGM_ERROR_MEMORY;
        sgm__hooks_let_go(held);
        wanted = missing;
    }
}

/* --- the whole state --- */

/* With `numbers` NULL the same walk only counts. Waits for background hooks, whose numbers would change
 * while they are written. */
sgm_status sgm__hooks_get_state(sgm__hooks *hooks, double *numbers, size_t *count)
{
    sgm__hooks_wait(hooks);
    writer to = {.numbers = numbers, .room = numbers ? *count : 0};
    put(&to, FORMAT);
    put(&to, 0);
    record next = {.number = -1};
    size_t records = 0;
    for (; next_record(hooks, next.number, &next); records++) {
        sgm_status status = put_record(&next, &to);
        sgm_hook_free(next.hook);
        SGM_TRY(status);
    }
    if (numbers && to.count > to.room)
        return sgm_fail(SGM_ERROR_STATE, "the state of hooks has %zu numbers, but there is room for %zu",
                        to.count, to.room);
    if (numbers)
        numbers[1] = (double)records;
    *count = to.count;
    return SGM_OK;
}

/* Counts, then writes into new memory with spare room. A hook that another thread attaches in between may
 * need more than that, which is SGM_ERROR_STATE, and another attempt. */
sgm_status sgm__hooks_copy_state(sgm__hooks *hooks, double **numbers, size_t *count)
{
    sgm_status status = SGM_ERROR_STATE;
    *numbers = NULL;
    for (int attempt = 0; attempt < MAXIMUM_ATTEMPTS && status == SGM_ERROR_STATE; attempt++) {
        sgm__free(*numbers);
        *numbers = NULL;
        SGM_TRY(sgm__hooks_get_state(hooks, NULL, count));
        *count += SPARE_ROOM;
        *numbers = sgm__calloc(*count, sizeof **numbers);
        if (!*numbers)
            return SGM_ERROR_MEMORY;
        status = sgm__hooks_get_state(hooks, *numbers, count);
    }
    if (status == SGM_OK)
        return SGM_OK;
    sgm__free(*numbers);
    *numbers = NULL;
    return status;
}

/* --- reading --- */

/* Whether a number of a file is an integer from 0 to `maximum`; false for NaN. The cast is safe, since the
 * range is checked first. */
static bool is_whole(double number, double maximum)
{
    return number >= 0 && number <= maximum && number == (double)(int64_t)number;
}

/* A record as it was read; `own` points into the array of the checkpoint. */
typedef struct saved {
    sgm__hook_identity identity;
    bool attached, found; /* found: an attached hook takes this record */
    sgm_time_count count;
    const double *own;
    size_t own_count;
} saved;

/* Reads the record at numbers[*at] and moves *at behind it. Each number is checked before it is used, as
 * the file may be damaged. `kind` and `rest` skip the text's number in format 1. */
static sgm_status read_one(const double *numbers, size_t count, size_t *at, saved *one)
{
    const bool has_text = numbers[0] > 1;
    const size_t size = has_text ? 6 : 5;
    const double *kind = numbers + *at, *rest = kind + 1 + has_text;
    if (count - *at < size || !is_whole(kind[0], UINT32_MAX) ||
        (has_text && !is_whole(kind[1], UINT32_MAX)) || !is_whole(rest[0], 1) ||
        !is_whole(rest[1], MAXIMUM) || !is_whole(rest[2], MAXIMUM) ||
        !is_whole(rest[3], (double)(count - *at - size)))
        return sgm_fail(SGM_ERROR_FORMAT, "the state of hooks is damaged at number %zu of %zu", *at, count);
    *one = (saved){.identity = {(uint32_t)kind[0], has_text ? (uint32_t)kind[1] : 0},
                   .attached = rest[0] != 0,
                   .count = {.left = (int64_t)rest[1], .used = (int64_t)rest[2]},
                   .own = rest + 4,
                   .own_count = (size_t)rest[3]};
    *at += size + one->own_count;
    return SGM_OK;
}

/* Reads all records of a state. *list is freed with sgm__free, also on failure; its entries point into
 * `numbers`. */
static sgm_status read_all(const double *numbers, size_t count, saved **list, size_t *records)
{
    *list = NULL;
    if (count < 2 || !is_whole(numbers[0], FORMAT) || numbers[0] < 1 || !is_whole(numbers[1], (double)count))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "the state of hooks does not begin with a format from 1 to %d and a number of hooks; "
                        "the checkpoint is damaged, or of another version",
                        FORMAT);
    *records = (size_t)numbers[1];
    *list = sgm__calloc(*records + 1, sizeof **list);
    sgm_status status = *list ? SGM_OK : SGM_ERROR_MEMORY;
    size_t at = 2;
    for (size_t i = 0; i < *records && status == SGM_OK; i++)
        status = read_one(numbers, count, &at, &(*list)[i]);
    if (status == SGM_OK && at != count)
        status = sgm_fail(SGM_ERROR_FORMAT, "the state of hooks has %zu numbers, expected %zu", count, at);
    return status;
}

/* Gives each record to an attached hook of the same kind, the first record to the first of several that
 * are alike. The first pass (`by_text`) gives records to hooks with the same text. The second pass gives
 * what is left to hooks of the same kind: a hook whose text was edited between two runs keeps its counts
 * and its memory. But a record of a hook that was taken off does not take off one with another text: that
 * is a new hook in its place. */
static void match(sgm__hooks *hooks, saved *list, size_t count, bool by_text)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < hooks->count && !list[i].found; k++) {
            sgm__hook_entry *entry = hooks->entries[k];
            bool same_text = entry->identity.text == list[i].identity.text;
            bool fits = by_text ? same_text : same_text || list[i].attached || list[i].identity.text == 0;
            if (entry->record > 0 || entry->identity.kind != list[i].identity.kind || !fits)
                continue;
            entry->record = i + 1;
            list[i].found = true;
        }
}

/* The entry that takes record `which`, counted from 1; NULL: no attached hook has it. With the lock. */
static sgm__hook_entry *find_entry(const sgm__hooks *hooks, size_t which)
{
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->entries[i]->record == which)
            return hooks->entries[i];
    return NULL;
}

/* Gives hooks with records the order of attachment that the checkpoint had, by exchanging their numbers: a
 * hook that was taken off and attached again stood behind the others there. Among equal priorities the
 * order of attachment is the order of running. With the lock. */
static void restore_order(sgm__hooks *hooks, size_t count)
{
    for (size_t i = 1; i <= count; i++) {
        sgm__hook_entry *first = find_entry(hooks, i);
        for (size_t k = 0; first && k < hooks->count; k++) {
            sgm__hook_entry *later = hooks->entries[k];
            int64_t number = first->number;
            if (later->record <= i || later->number > number)
                continue;
            first->number = later->number;
            later->number = number;
        }
    }
}

/* Sets the count of the hook that has record `which`, and marks it as `cancelled` if the checkpoint says
 * that its life was over. Returns the hook, retained; NULL: no attached hook has the record. */
static sgm_hook *restore_count(sgm__hooks *hooks, const saved *one, size_t which)
{
    sgm_hook *hook = NULL;
    pthread_mutex_lock(&hooks->lock);
    sgm__hook_entry *entry = find_entry(hooks, which);
    if (entry) {
        entry->count = one->count;
        entry->cancelled = !one->attached;
        hook = sgm_hook_retain(entry->hook);
    }
    pthread_mutex_unlock(&hooks->lock);
    return hook;
}

/* Sets the memory of criteria, then the hook's own numbers; with hook->turn. The first number says where
 * one ends and the other begins. */
static sgm_status restore_numbers(sgm_hook *hook, const double *numbers, size_t count)
{
    if (count == 0 || !is_whole(numbers[0], (double)(count - 1)))
        return sgm_fail(SGM_ERROR_FORMAT, "it does not say how many numbers are of criteria");
    size_t criteria = (size_t)numbers[0];
    if (criteria > 0 && !hook->criteria)
        return sgm_fail(SGM_ERROR_FORMAT, "it is of a hook with criteria, but this one has none");
    if (hook->criteria)
        SGM_TRY(sgm_criteria_set_state(hook->criteria, numbers + 1, criteria));
    if (!hook->type->set_state)
        return SGM_OK;
    return hook->type->set_state(hook->self, numbers + 1 + criteria, count - 1 - criteria);
}

/* A hook that will be taken off keeps its present numbers. */
static sgm_status restore_hook(sgm_hook *hook, const saved *one)
{
    if (!hook || !one->attached)
        return SGM_OK;
    pthread_mutex_lock(hook->turn);
    sgm_status status = restore_numbers(hook, one->own, one->own_count);
    pthread_mutex_unlock(hook->turn);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("state of hook '%s'", hook->type->name);
}

/* Notes the texts of all hooks that are about to be taken off, for branches. With the lock; an error means
 * that there was no memory for one. */
static sgm_status note_gone(sgm__hooks *hooks)
{
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->entries[i]->cancelled)
            SGM_TRY(sgm__hook_entry_note_taken_off(hooks, hooks->entries[i]));
    return SGM_OK;
}

/* Takes off the hooks that restore_count has marked, dependents first. If the state was refused
 * (`status`), no hook goes, and the marks are removed. A marked hook that an unmarked one requires stays,
 * no longer chosen. */
static sgm_status take_off_gone(sgm__hooks *hooks, sgm_status status)
{
    sgm__hook_entry *garbage = NULL;
    pthread_mutex_lock(&hooks->lock);
    if (status == SGM_OK)
        status = note_gone(hooks);
    for (size_t i = hooks->count; i-- > 0;) {
        if (i < hooks->count && status != SGM_OK)
            hooks->order[i]->cancelled = false;
        if (i >= hooks->count || !hooks->order[i]->cancelled)
            continue;
        sgm__hook_entry *entry = hooks->order[i];
        if (sgm__hook_entry_is_required(hooks, entry))
            entry->cancelled = entry->chosen = false;
        else
            sgm__hook_entry_take_off(hooks, entry, true, &garbage);
    }
    sgm__hooks_arrange(hooks);
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(garbage);
    return status;
}

/* Takes off copies of another trainer's hooks that the state does not know: that trainer attached them
 * after the state was written. With the lock; dependents first. */
static void take_off_unknown(sgm__hooks *hooks, sgm__hook_entry **garbage)
{
    for (size_t i = hooks->count; i-- > 0;) {
        if (i >= hooks->count)
            continue;
        sgm__hook_entry *entry = hooks->order[i];
        if (entry->copied && entry->record == 0 && !sgm__hook_entry_is_required(hooks, entry))
            sgm__hook_entry_take_off(hooks, entry, false, garbage);
    }
    for (size_t i = 0; i < hooks->count; i++)
        hooks->entries[i]->copied = false;
}

/* Decides which hook takes which record, then takes off copies without one, and restores the order. */
static void arrange(sgm__hooks *hooks, saved *list, size_t count)
{
    sgm__hook_entry *garbage = NULL;
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count; i++)
        hooks->entries[i]->record = 0;
    match(hooks, list, count, true);
    match(hooks, list, count, false);
    take_off_unknown(hooks, &garbage);
    restore_order(hooks, count);
    sgm__hooks_arrange(hooks);
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(garbage);
}

/* First everything goes back to its beginning, which is what a hook without a record is to have; then each
 * record is set. */
static sgm_status restore_all(sgm__hooks *hooks, saved *list, size_t count)
{
    sgm_status status = sgm__hooks_restart(hooks); /* hooks without a record begin anew */
    if (status == SGM_OK)
        arrange(hooks, list, count);
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        sgm_hook *hook = restore_count(hooks, &list[i], i + 1);
        status = restore_hook(hook, &list[i]);
        sgm_hook_free(hook);
    }
    return take_off_gone(hooks, status);
}

sgm_status sgm__hooks_set_state(sgm__hooks *hooks, const double *numbers, size_t count)
{
    saved *list;
    size_t records;
    sgm_status status = read_all(numbers, count, &list, &records);
    if (status == SGM_OK)
        status = restore_all(hooks, list, records);
    sgm__free(list);
    return status;
}
