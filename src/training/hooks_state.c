/* What hooks and their counts keep over a resume. As numbers: FORMAT, the number of records, and for each
 * hook its identity, whether it is attached, its count (left, used), and how many numbers of its own follow.
 */
#include "training/hooks_internal.h"

#define FORMAT 1
#define MOST_ATTEMPTS 16
#define SPARE_ROOM 64 /* numbers */
#define RECORD_SIZE 5
#define MOST 9007199254740992.0 /* 2^53: up to it, doubles hold every integer */

/* --- writing --- */

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

typedef struct record {
    uint32_t identity;
    int64_t number;
    sgm_time_count count;
    sgm_hook *hook; /* retained; NULL: its life is over */
} record;

/* The next one in order of attachment. */
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

/* Gives the room that is left, from `count` on; counts only when there is none. */
static double *room_for(const writer *to, size_t count)
{
    bool fits = to->numbers && to->count <= to->room && count <= to->room - to->count;
    return fits ? to->numbers + to->count : NULL;
}

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

static sgm_status put_record(const record *from, writer *to)
{
    put(to, from->identity);
    put(to, from->hook != NULL);
    put(to, (double)from->count.left);
    put(to, (double)from->count.used);
    if (!from->hook) {
        put(to, 0);
        return SGM_OK;
    }
    if (pthread_mutex_trylock(from->hook->turn) != 0) /* only a trainer that shares the hook may have it */
        pthread_mutex_lock(from->hook->turn);
    sgm_status status = put_numbers(from->hook, to);
    pthread_mutex_unlock(from->hook->turn);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("state of hook '%s'", from->hook->type->name);
}

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

/* A hook that comes in between needs more room than was counted. */
sgm_status sgm__hooks_copy_state(sgm__hooks *hooks, double **numbers, size_t *count)
{
    sgm_status status = SGM_ERROR_STATE;
    *numbers = NULL;
    for (int attempt = 0; attempt < MOST_ATTEMPTS && status == SGM_ERROR_STATE; attempt++) {
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

static bool is_whole(double number, double most)
{
    return number >= 0 && number <= most && number == (double)(int64_t)number;
}

static sgm_status check(const double *numbers, size_t count)
{
    if (count < 2 || numbers[0] != FORMAT || !is_whole(numbers[1], (double)count))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "the state of hooks does not begin with format %d and a number of "
                        "hooks; the checkpoint is damaged, or of another version",
                        FORMAT);
    size_t at = 2;
    for (size_t left = (size_t)numbers[1]; left > 0; left--) {
        const double *one = numbers + at;
        if (count - at < RECORD_SIZE || !is_whole(one[0], UINT32_MAX) || !is_whole(one[1], 1) ||
            !is_whole(one[2], MOST) || !is_whole(one[3], MOST) ||
            !is_whole(one[4], (double)(count - at - RECORD_SIZE)))
            return sgm_fail(SGM_ERROR_FORMAT, "the state of hooks is damaged at number %zu of %zu", at,
                            count);
        at += RECORD_SIZE + (size_t)one[4];
    }
    if (at != count)
        return sgm_fail(SGM_ERROR_FORMAT, "the state of hooks has %zu numbers, expected %zu", count, at);
    return SGM_OK;
}

/* How many records before `at` have its identity. */
static size_t earlier_ones(const double *numbers, size_t at)
{
    size_t earlier = 0;
    for (size_t i = 2; i < at; i += RECORD_SIZE + (size_t)numbers[i + 4])
        earlier += numbers[i] == numbers[at];
    return earlier;
}

/* Restores the count of the hook that a record is of; returns it retained, NULL: it is not attached. */
static sgm_hook *restore_count(sgm__hooks *hooks, const double *one, size_t earlier)
{
    sgm_hook *hook = NULL;
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count && !hook; i++) {
        sgm__hook_entry *entry = hooks->entries[i];
        if (entry->identity != (uint32_t)one[0] || earlier-- > 0)
            continue;
        entry->count = (sgm_time_count){.left = (int64_t)one[2], .used = (int64_t)one[3]};
        entry->cancelled = one[1] == 0;
        hook = sgm_hook_retain(entry->hook);
    }
    pthread_mutex_unlock(&hooks->lock);
    return hook;
}

/* With the hook's lock. */
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

static sgm_status restore_hook(sgm_hook *hook, const double *one)
{
    if (!hook || one[1] == 0)
        return SGM_OK;
    pthread_mutex_lock(hook->turn);
    sgm_status status = restore_numbers(hook, one + RECORD_SIZE, (size_t)one[4]);
    pthread_mutex_unlock(hook->turn);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("state of hook '%s'", hook->type->name);
}

/* With the lock: whether all that is to go could be noted. */
static sgm_status note_gone(sgm__hooks *hooks)
{
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->entries[i]->cancelled)
            SGM_TRY(sgm__hook_entry_note_taken_off(hooks, hooks->entries[i]));
    return SGM_OK;
}

/* With a state that was refused, none goes. */
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

/* How many copies of this identity the state knows: what a checkpoint brings along was attached after them.
 */
static size_t known_copies(const sgm__hooks *hooks, const double *numbers, size_t count, uint32_t identity)
{
    size_t known = 0, brought = 0;
    for (size_t at = 2; at < count; at += RECORD_SIZE + (size_t)numbers[at + 4])
        known += (uint32_t)numbers[at] == identity;
    for (size_t i = 0; i < hooks->count; i++)
        brought += hooks->entries[i]->identity == identity && !hooks->entries[i]->copied;
    return known > brought ? known - brought : 0;
}

static size_t earlier_copies(const sgm__hooks *hooks, const sgm__hook_entry *entry)
{
    size_t earlier = 0;
    for (size_t i = 0; i < hooks->count; i++)
        earlier += hooks->entries[i]->copied && hooks->entries[i]->identity == entry->identity &&
                   hooks->entries[i]->number < entry->number;
    return earlier;
}

/* Copies of hooks that were attached after the state was written, dependents first. */
static void take_off_unknown(sgm__hooks *hooks, const double *numbers, size_t count)
{
    sgm__hook_entry *garbage = NULL;
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count; i++) {
        sgm__hook_entry *entry = hooks->entries[i];
        entry->cancelled = entry->copied && earlier_copies(hooks, entry) >=
                                                known_copies(hooks, numbers, count, entry->identity);
    }
    for (size_t i = hooks->count; i-- > 0;)
        if (i < hooks->count && hooks->order[i]->cancelled &&
            !sgm__hook_entry_is_required(hooks, hooks->order[i]))
            sgm__hook_entry_take_off(hooks, hooks->order[i], false, &garbage);
    for (size_t i = 0; i < hooks->count; i++)
        hooks->entries[i]->copied = hooks->entries[i]->cancelled = false;
    sgm__hooks_arrange(hooks);
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(garbage);
}

sgm_status sgm__hooks_set_state(sgm__hooks *hooks, const double *numbers, size_t count)
{
    SGM_TRY(check(numbers, count));
    take_off_unknown(hooks, numbers, count);
    sgm_status status = sgm__hooks_restart(hooks); /* what the state does not know begins anew */
    for (size_t at = 2; at < count && status == SGM_OK; at += RECORD_SIZE + (size_t)numbers[at + 4]) {
        sgm_hook *hook = restore_count(hooks, numbers + at, earlier_ones(numbers, at));
        status = restore_hook(hook, numbers + at);
        sgm_hook_free(hook);
    }
    return take_off_gone(hooks, status);
}
