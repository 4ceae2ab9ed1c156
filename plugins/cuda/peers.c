/* Sums over several devices, by NCCL (all-reduce), in one process or in several.
 *
 * A group of devices is asked for without blocking (settings.blocking = 0), so that a thread that waits
 * for a peer which does not come can stop waiting: it looks again and again (wait_on) until NCCL is done,
 * the time is over, or another thread has called cuda_give_up. After a failure the group is aborted, since
 * NCCL's group cannot be used any more; all peers must join anew. Which devices sum what, and when, is
 * decided by src/parallel/operator_peers.c. */
#include "plugin.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#define QUICK_LOOKS 200       /* looks without sleeping: most sums are done by then */
#define NAP_NANOSECONDS 20000 /* between two looks after that */
#define LEAVING_SECONDS 10.0  /* that leaving waits for peers, which leave at the same time */

/* Seconds of a clock that nobody sets. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The device's UUID, by which processes find out whether they use the same one, which NCCL cannot sum
 * over. */
sgm_device_result cuda_identify(void *self, unsigned char identity[SGM_DEVICE_IDENTITY], char *message)
{
    const cuda_device *device = self;
    cu_identity own;
    if (!cuda_load_nccl(message))
        return SGM_DEVICE_ABSENT;
    sgm_device_result status = cuda_check(
        device, device->library->cuda.cuDeviceGetUuid_v2(&own, device->number), "asking who it is", message);
    memcpy(identity, own.bytes, sizeof own.bytes);
    return status;
}

/* An error of NCCL as a sentence. Beside the error's name NCCL keeps a sentence of its own about the
 * newest one. */
static sgm_device_result check(const cuda_libraries *l, nccl_group group, nccl_result result,
                               const char *doing, char *message)
{
    if (result == NCCL_DONE)
        return SGM_DEVICE_OK;
    const char *text = l->nccl.ncclGetErrorString(result), *more = l->nccl.ncclGetLastError(group);
    bool said = more != NULL && *more != '\0';
    cuda_say(message, "%s failed: NCCL: %s%s%.600s (NCCL_DEBUG=WARN tells more)", doing,
             text != NULL ? text : "it gives no reason", said ? ": " : "", said ? more : "");
    return SGM_DEVICE_FAILED;
}

/* NCCL's unique id: whoever has it can join. */
sgm_device_result cuda_invite(unsigned char invitation[SGM_DEVICE_INVITATION], char *message)
{
    nccl_invitation made;
    const cuda_libraries *l = cuda_load_nccl(message) ? cuda_load(message) : NULL;
    if (l == NULL)
        return SGM_DEVICE_ABSENT;
    sgm_device_result status =
        check(l, NULL, l->nccl.ncclGetUniqueId(&made), "inviting other devices", message);
    memcpy(invitation, made.bytes, sizeof made.bytes);
    return status;
}

/* --- waiting --- */

/* A wait that has begun: what for, until when, and how often it has looked. */
typedef struct patience {
    const char *doing;
    double seconds, until;
    int looks;
} patience;

/* The time counts from here. */
static patience begin_patience(const char *doing, double seconds)
{
    return (patience){.doing = doing, .seconds = seconds, .until = now() + seconds};
}

/* Between two looks: sleeps a little. Fails when waiting is no use any more: given up by another thread,
 * or the time is over. */
static sgm_device_result wait_on(const cuda_device *device, patience *p, char *message)
{
    const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    if (atomic_load(&device->given_up)) {
        cuda_say(message, "%s was given up, as one of the other devices has failed", p->doing);
        return SGM_DEVICE_FAILED;
    }
    if (now() > p->until) {
        cuda_say(
            message,
            "%s has taken more than %g seconds: one of the %u devices has failed, does something else, or "
            "takes longer than that",
            p->doing, p->seconds, (unsigned)device->peers);
        return SGM_DEVICE_FAILED;
    }
    if (p->looks++ < QUICK_LOOKS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
    return SGM_DEVICE_OK;
}

/* Waits until NCCL has done what it was asked for on the host's side; the sum itself is queued then, not
 * done. */
static sgm_device_result settle(const cuda_device *device, nccl_result result, patience *p, char *message)
{
    const cuda_libraries *l = device->library;
    while (result == NCCL_UNDER_WAY) {
        sgm_device_result status = wait_on(device, p, message);
        if (status != SGM_DEVICE_OK)
            return status;
        nccl_result asked = l->nccl.ncclCommGetAsyncError(device->group, &result);
        result = asked != NCCL_DONE ? asked : result;
    }
    return check(l, device->group, result, p->doing, message);
}

/* Waits until the queue is empty. A device that waits for a peer looks like one that works, so NCCL is
 * asked for errors, too. */
static sgm_device_result drain(const cuda_device *device, patience *p, char *message)
{
    const cuda_libraries *l = device->library;
    cu_result queue;
    while ((queue = l->cuda.cuStreamQuery(device->stream)) == CU_NOT_READY) {
        nccl_result state = NCCL_DONE, asked = l->nccl.ncclCommGetAsyncError(device->group, &state);
        state = asked != NCCL_DONE ? asked : state;
        sgm_device_result status = state == NCCL_DONE || state == NCCL_UNDER_WAY
                                       ? wait_on(device, p, message)
                                       : check(l, device->group, state, p->doing, message);
        if (status != SGM_DEVICE_OK)
            return status;
    }
    return cuda_check(device, queue, p->doing, message);
}

/* --- the group --- */

/* Ends also what is under way on the device, where a kernel may wait for a peer. */
static void abort_group(cuda_device *device)
{
    if (device->group != NULL)
        device->library->nccl.ncclCommAbort(device->group);
    device->group = NULL;
}

/* Joins the group of an invitation, as device `number` of `of`, and waits for the others. A group from
 * before is left without their consent. */
sgm_device_result cuda_join(void *self, const unsigned char *invitation, uint32_t number, uint32_t of,
                            double seconds, char *message)
{
    cuda_device *device = self;
    const cuda_libraries *l = device->library;
    nccl_settings settings = {.size = sizeof settings,
                              .magic = NCCL_MAGIC,
                              .version = NCCL_SETTINGS_VERSION,
                              .blocking = 0,
                              .unset = NCCL_UNSET};
    nccl_invitation given;
    patience p = begin_patience("joining the other devices", seconds);
    if (!cuda_load_nccl(message))
        return SGM_DEVICE_ABSENT;
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    abort_group(device);
    memcpy(given.bytes, invitation, sizeof given.bytes);
    device->peers = of;
    status =
        settle(device, l->nccl.ncclCommInitRankConfig(&device->group, (int)of, given, (int)number, &settings),
               &p, message);
    if (status != SGM_DEVICE_OK)
        abort_group(device);
    cuda_leave(device);
    return status;
}

/* Sums of bfloat16 are made in NCCL's way, rounded at each step. */
static nccl_type type_of(sgm_device_type type)
{
    static const nccl_type types[] = {[SGM_DEVICE_FLOAT32] = NCCL_FLOAT32,
                                      [SGM_DEVICE_FLOAT64] = NCCL_FLOAT64,
                                      [SGM_DEVICE_BFLOAT16] = NCCL_BFLOAT16};
    return types[type];
}

/* Queues all sums in place, as one group of calls, of which NCCL makes few large transfers. ncclGroupEnd
 * is called also after a failure, as every start needs its end. */
static nccl_result queue_sums(const cuda_device *device, const sgm_device_addend *addends, uint32_t count,
                              sgm_device_type type)
{
    const cuda_libraries *l = device->library;
    nccl_result result = l->nccl.ncclGroupStart();
    if (result != NCCL_DONE)
        return result;
    for (uint32_t i = 0; i < count && (result == NCCL_DONE || result == NCCL_UNDER_WAY); i++) {
        void *place = (void *)(uintptr_t)cuda_address(addends[i].place);
        result = l->nccl.ncclAllReduce(place, place, addends[i].count, type_of(type), NCCL_ADD, device->group,
                                       device->stream);
    }
    nccl_result end = l->nccl.ncclGroupEnd();
    return result == NCCL_DONE || result == NCCL_UNDER_WAY ? end : result;
}

/* Done on return, unlike other work: the caller wants to know whether the peers came. */
sgm_device_result cuda_sum(void *self, const sgm_device_addend *addends, uint32_t count, sgm_device_type type,
                           double seconds, char *message)
{
    cuda_device *device = self;
    patience p = begin_patience("a sum with the other devices", seconds);
    if (device->group == NULL || device->recording) {
        cuda_say(message, device->recording ? "sums with other devices are not recorded"
                                            : "the device has not joined others, or has left them");
        return SGM_DEVICE_FAILED;
    }
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    status = settle(device, queue_sums(device, addends, count, type), &p, message);
    if (status == SGM_DEVICE_OK)
        status = drain(device, &p, message);
    if (status != SGM_DEVICE_OK)
        abort_group(device);
    cuda_leave(device);
    return status;
}

/* Any thread. The flag is seen by the next look of wait_on. */
void cuda_give_up(void *self)
{
    cuda_device *device = self;
    atomic_store(&device->given_up, true);
}

/* Leaves together with the others if all is well; else aborts, which needs nobody. */
void cuda_leave_peers(void *self)
{
    cuda_device *device = self;
    char message[SGM_DEVICE_MESSAGE];
    patience p = begin_patience("leaving the other devices", LEAVING_SECONDS);
    if (device->group != NULL && cuda_enter(device, message) == SGM_DEVICE_OK) {
        bool ends = !atomic_load(&device->given_up) &&
                    settle(device, device->library->nccl.ncclCommFinalize(device->group), &p, message) ==
                        SGM_DEVICE_OK;
        if (ends)
            device->library->nccl.ncclCommDestroy(device->group);
        else
            abort_group(device);
        device->group = NULL;
        cuda_leave(device);
    }
    atomic_store(&device->given_up, false);
}
