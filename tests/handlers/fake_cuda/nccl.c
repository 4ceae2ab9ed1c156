/* NCCL: sums over devices of this process and of others, by way of a file in memory that the invitation
 * names. It keeps the contract, and is strict: where the real one would hang or sum nonsense, it says so and
 * ends.
 *
 * SIGMA_FAKE_NCCL_SUMS=n: the n-th sum of a group, from 0 on, fails there, some time after it was asked for.
 */
#include "fake.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEATS 16
#define CHUNK ((size_t)64 << 10) /* bytes that a peer shows at once */
#define CALLS 4096               /* in a group of calls */

/* A peer's part of the file. */
typedef struct seat {
    _Atomic int of; /* 0: nobody has come */
    cu_identity identity;
    _Atomic uint64_t shown, seen; /* chunks, of its own; of all */
    size_t elements;              /* of the sum that it is in, */
    nccl_type type;               /* and of which type */
    _Alignas(64) unsigned char chunk[CHUNK];
} seat;

struct nccl_group_ {
    struct cu_context_ *context;
    seat *seats;
    char file[64];
    int number, of;
    nccl_result state;
    uint64_t chunks; /* that were summed */
    long sums;       /* that were asked for */
    int waiting;     /* of them */
    bool aborted;
};

static _Thread_local char last_error[256];
static _Thread_local int depth; /* of groups of calls */
static _Thread_local struct {
    nccl_group group;
    cu_stream stream;
    cu_pointer place;
    size_t count;
    nccl_type type;
} calls[CALLS];
static _Thread_local int call_count;

nccl_result ncclGetVersion(int *version)
{
    *version = 21805;
    return NCCL_DONE;
}

const char *ncclGetErrorString(nccl_result error)
{
    static const char *const texts[] = {[NCCL_DONE] = "no error",
                                        [NCCL_INVALID] = "invalid argument",
                                        [NCCL_INVALID_USAGE] = "invalid usage",
                                        [NCCL_REMOTE] = "remote process exited or there was a network error",
                                        [NCCL_UNDER_WAY] = "NCCL operation in progress"};
    return error < sizeof texts / sizeof *texts && texts[error] != NULL ? texts[error] : "unknown result";
}

const char *ncclGetLastError(nccl_group group)
{
    (void)group;
    return last_error;
}

nccl_result ncclGetUniqueId(nccl_invitation *invitation)
{
    int file;
    memset(invitation, 0, sizeof *invitation);
    snprintf(invitation->bytes, sizeof invitation->bytes, "/dev/shm/sigma-fake-nccl-XXXXXX");
    file = mkstemp(invitation->bytes);
    if (file < 0 || ftruncate(file, SEATS * sizeof(seat)) != 0)
        fake_wrong("%s cannot be made", invitation->bytes);
    close(file);
    return NCCL_DONE;
}

/* --- joining --- */

static seat *map(const char *path)
{
    int file = open(path, O_RDWR);
    void *memory = file >= 0 ? mmap(NULL, SEATS * sizeof(seat), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                             : MAP_FAILED;
    if (file >= 0)
        close(file);
    return memory != MAP_FAILED ? memory : NULL;
}

nccl_result ncclCommInitRankConfig(nccl_group *group, int of, nccl_invitation invitation, int number,
                                   nccl_settings *settings)
{
    if (settings == NULL || settings->magic != NCCL_MAGIC || settings->size < sizeof *settings ||
        settings->version < NCCL_SETTINGS_VERSION)
        return NCCL_INVALID;
    if (settings->blocking != 0)
        fake_wrong("a peer that blocks would wait for ever for one that does not come");
    *group = NULL;
    if (of < 1 || of > SEATS || number < 0 || number >= of) {
        snprintf(last_error, sizeof last_error, "Invalid rank requested : %d/%d", number, of);
        return NCCL_INVALID;
    }
    seat *seats = map(invitation.bytes);
    if (seats == NULL) {
        snprintf(last_error, sizeof last_error, "nobody is where the invitation says");
        return NCCL_REMOTE;
    }
    nccl_group made = calloc(1, sizeof *made);
    if (made == NULL)
        fake_wrong("the computer's memory is used up");
    *made = (struct nccl_group_){.context = fake_current(), .seats = seats, .number = number, .of = of};
    snprintf(made->file, sizeof made->file, "%.63s", invitation.bytes);
    made->context->groups++;
    made->state = NCCL_UNDER_WAY;
    cuDeviceGetUuid_v2(&seats[number].identity, made->context->number);
    int nobody = 0;
    if (!atomic_compare_exchange_strong(&seats[number].of, &nobody, of))
        fake_wrong("two peers have the number %d", number);
    *group = made;
    return NCCL_UNDER_WAY;
}

/* Whether all have come, and may be together. */
static nccl_result look_around(nccl_group group)
{
    for (int i = 0; i < group->of; i++) {
        int of = atomic_load(&group->seats[i].of);
        if (of == 0)
            return NCCL_UNDER_WAY;
        if (of != group->of)
            fake_wrong("peer %d expects %d, peer %d expects %d", group->number, group->of, i, of);
    }
    for (int i = 0; i < group->of; i++)
        for (int k = 0; k < i; k++)
            if (memcmp(&group->seats[i].identity, &group->seats[k].identity, sizeof(cu_identity)) == 0) {
                snprintf(last_error, sizeof last_error,
                         "Duplicate GPU detected : rank %d and rank %d both on one CUDA device", k, i);
                return NCCL_INVALID_USAGE;
            }
    unlink(group->file); /* whoever has it open keeps it */
    return NCCL_DONE;
}

nccl_result ncclCommGetAsyncError(nccl_group group, nccl_result *error)
{
    if (group->state == NCCL_UNDER_WAY)
        group->state = look_around(group);
    *error = group->state;
    return NCCL_DONE;
}

/* --- leaving --- */

static void forget(nccl_group group)
{
    munmap(group->seats, SEATS * sizeof(seat));
    free(group);
}

nccl_result ncclCommFinalize(nccl_group group)
{
    if (group->waiting > 0)
        fake_wrong("a peer leaves while %d of its sums wait", group->waiting);
    return NCCL_DONE;
}

nccl_result ncclCommDestroy(nccl_group group)
{
    if (group->context != fake_current())
        fake_wrong("a peer leaves on another device");
    if (group->state != NCCL_DONE)
        fake_wrong("a peer leaves a group that has failed, which only ncclCommAbort ends");
    ncclCommFinalize(group);
    group->context->groups--;
    forget(group);
    return NCCL_DONE;
}

/* The others are not told: they wait, for ever if nobody ends it. */
nccl_result ncclCommAbort(nccl_group group)
{
    unlink(group->file);
    group->aborted = true;
    group->context->groups--;
    if (group->waiting == 0)
        forget(group);
    return NCCL_DONE;
}

/* --- sums --- */

nccl_result ncclGroupStart(void)
{
    depth++;
    return NCCL_DONE;
}

/* What was asked for begins when somebody has asked whether it has begun. */
static void queue_call(int i)
{
    const char *failing = getenv("SIGMA_FAKE_NCCL_SUMS");
    nccl_group group = calls[i].group;
    fake_work *work = fake_enqueue(calls[i].stream, FAKE_SUM, 1);
    work->to = calls[i].place;
    work->bytes = calls[i].count;
    work->value = (unsigned char)calls[i].type;
    work->parameters[0] = group;
    group->waiting++;
    group->state = group->state == NCCL_DONE ? NCCL_UNDER_WAY : group->state;
    if (failing != NULL && group->sums == atol(failing)) {
        group->state = NCCL_REMOTE;
        snprintf(last_error, sizeof last_error, "NET/Socket : peer %d has closed the connection",
                 group->of - 1);
    }
    group->sums++;
}

nccl_result ncclGroupEnd(void)
{
    if (depth-- <= 0)
        fake_wrong("a group of calls ends that has not begun");
    for (int i = 0; i < call_count && depth == 0; i++)
        queue_call(i);
    nccl_result result = depth == 0 && call_count > 0 ? NCCL_UNDER_WAY : NCCL_DONE;
    call_count = depth == 0 ? 0 : call_count;
    return result;
}

static size_t size_of(nccl_type type)
{
    return type == NCCL_FLOAT64 ? 8 : type == NCCL_FLOAT32 ? 4 : 2;
}

nccl_result ncclAllReduce(const void *from, void *to, size_t count, nccl_type type, nccl_operation operation,
                          nccl_group group, cu_stream stream)
{
    if (from != to || operation != NCCL_ADD || (type != NCCL_FLOAT32 && type != NCCL_FLOAT64))
        fake_wrong("a sum that is not in place, or of another type than this stand-in knows");
    if (group->context != fake_current() || stream->context != group->context)
        fake_wrong("a peer on device %d sums while device %d is current", group->context->number,
                   fake_current()->number);
    if (stream->recording != NULL)
        fake_wrong("a sum is recorded");
    if (group->state != NCCL_DONE)
        fake_wrong("a sum in a group that is not there yet, or has failed");
    if (call_count == CALLS)
        fake_wrong("more than %d calls in a group", CALLS);
    fake_memory(group->context, (cu_pointer)(uintptr_t)to, count * size_of(type), "a sum");
    calls[call_count].group = group;
    calls[call_count].stream = stream;
    calls[call_count].place = (cu_pointer)(uintptr_t)to;
    calls[call_count].count = count;
    calls[call_count++].type = type;
    if (depth == 0) {
        depth++;
        return ncclGroupEnd();
    }
    return NCCL_DONE;
}

static bool all_at_least(nccl_group group, uint64_t chunks, bool seen)
{
    for (int i = 0; i < group->of; i++)
        if (atomic_load(seen ? &group->seats[i].seen : &group->seats[i].shown) < chunks)
            return false;
    return true;
}

static void check_alike(nccl_group group)
{
    const seat *own = &group->seats[group->number];
    for (int i = 0; i < group->of; i++)
        if (group->seats[i].elements != own->elements || group->seats[i].type != own->type)
            fake_wrong("peer %d sums %zu elements, peer %d sums %zu of them, or of another type",
                       group->number, own->elements, i, group->seats[i].elements);
}

/* In the order of the peers, so that all have the same bits. */
static void add_chunks(nccl_group group, void *to, nccl_type type, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        double wide = 0;
        float narrow = 0;
        for (int i = 0; i < group->of; i++) {
            const void *chunk = group->seats[i].chunk;
            if (type == NCCL_FLOAT64)
                wide += ((const double *)chunk)[k];
            else
                narrow += ((const float *)chunk)[k];
        }
        if (type == NCCL_FLOAT64)
            ((double *)to)[k] = wide;
        else
            ((float *)to)[k] = narrow;
    }
}

static void end_sum(nccl_group group)
{
    group->waiting--;
    if (group->aborted && group->waiting == 0)
        forget(group);
}

/* One chunk; false: a peer has not come so far. */
static bool sum_chunk(nccl_group group, fake_work *work, size_t size)
{
    seat *own = &group->seats[group->number];
    size_t done = (size_t)work->from, left = work->bytes - done;
    size_t count = left < CHUNK / size ? left : CHUNK / size;
    uint64_t chunk = group->chunks + 1;
    unsigned char *at = fake_memory(group->context, work->to, work->bytes * size, "a sum");
    at += done * size;
    if (atomic_load(&own->shown) < chunk) {
        if (!all_at_least(group, chunk - 1, true))
            return false;
        own->elements = work->bytes;
        own->type = work->value;
        memcpy(own->chunk, at, count * size);
        atomic_store(&own->shown, chunk);
    }
    if (!all_at_least(group, chunk, false))
        return false;
    check_alike(group);
    add_chunks(group, at, work->value, count);
    atomic_store(&own->seen, chunk);
    group->chunks = chunk;
    work->from += count;
    return true;
}

bool fake_sum(fake_work *work)
{
    nccl_group group = work->parameters[0];
    while (!group->aborted && (size_t)work->from < work->bytes)
        if (group->state != NCCL_DONE || !sum_chunk(group, work, size_of(work->value)))
            return false;
    end_sum(group);
    return true;
}
