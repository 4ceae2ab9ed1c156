/* Steps without a kernel: their operands come to the host, the reference handler computes them, the results
 * go back.
 *
 * So there is no operation, not even a user's own, that a device could not run. The host has a shadow of each
 * memory of the plan (arena, inputs, states) with the same layout, of which only the bytes that are
 * transferred are ever touched; the system backs no more than those. Transfers wait for the queue, so such
 * steps are slow. run.c calls sgm__device_host_run.
 */
#include "handlers/device/run/device.h"

/* The steps of one executable that run on the host. */
struct sgm__device_host {
    const sgm__plan *plan;
    sgm__plan part; /* a copy of the plan's struct with these steps only; it shares all arrays but `steps` */
    void *executable;   /* of the reference handler, for `part` */
    sgm__memory shadow; /* laid out like the device's memory; NULL where no step needs it */
};

void sgm__device_host_free(sgm__device_host *host)
{
    if (host == NULL)
        return;
    if (host->executable != NULL)
        sgm__reference_handler.discard(NULL, host->executable);
    sgm__free_aligned(host->shadow.arena);
    for (int32_t i = 0; host->shadow.inputs != NULL && i < host->plan->input_count; i++)
        sgm__free_aligned(host->shadow.inputs[i]);
    for (int32_t i = 0; host->shadow.states != NULL && i < host->plan->state_count; i++)
        sgm__free_aligned(host->shadow.states[i]);
    sgm__free(host->shadow.inputs);
    sgm__free(host->shadow.states);
    sgm__free(host->part.steps);
    sgm__free(host);
}

/* Allocates the shadow of the memory that a place refers to, once. */
static sgm_status make_room(sgm__device_host *host, const sgm__place *place)
{
    sgm__memory *shadow = &host->shadow;
    void **room = place->store == SGM__STORE_ARENA   ? &shadow->arena
                  : place->store == SGM__STORE_INPUT ? &shadow->inputs[place->index]
                  : place->store == SGM__STORE_STATE ? &shadow->states[place->index]
                                                     : NULL;
    if (room != NULL && *room == NULL)
        *room = sgm__alloc_aligned((size_t)sgm__plan_memory_bytes(host->plan, place));
    return room == NULL || *room != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* The same for all results and operands of a step. */
static sgm_status make_rooms(sgm__device_host *host, const sgm__step *step)
{
    const sgm__plan *plan = host->plan;
    for (int32_t p = 0; p < step->count; p++) {
        const sgm__node *node = &plan->nodes[plan->order[step->first + p]];
        SGM_TRY(make_room(host, &node->place));
        for (int32_t k = 0; k < node->input_count; k++)
            SGM_TRY(make_room(host, &plan->nodes[plan->operands[node->first_input + k]].place));
    }
    return SGM_OK;
}

/* Constants need no shadow: the plan has their contents on the host. */
static sgm_status fill(sgm__device_host *host, const int32_t *steps, int32_t count)
{
    const sgm__plan *plan = host->plan;
    host->part = *plan;
    host->part.step_count = count;
    host->part.steps = sgm__calloc((size_t)count, sizeof(sgm__step));
    host->shadow.inputs = sgm__calloc((size_t)plan->input_count + 1, sizeof(void *));
    host->shadow.states = sgm__calloc((size_t)plan->state_count + 1, sizeof(void *));
    host->shadow.constants = plan->constants;
    if (host->part.steps == NULL || host->shadow.inputs == NULL || host->shadow.states == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        host->part.steps[i] = plan->steps[steps[i]];
        SGM_TRY(make_rooms(host, &host->part.steps[i]));
    }
    return sgm__reference_handler.compile(NULL, &host->part, &host->executable);
}

sgm_status sgm__device_host_create(const sgm__plan *plan, const int32_t *steps, int32_t count,
                                   sgm__device_host **created)
{
    sgm__device_host *host = sgm__calloc(1, sizeof *host);
    if (host == NULL)
        return SGM_ERROR_MEMORY;
    host->plan = plan;
    sgm_status status = fill(host, steps, count);
    if (status == SGM_OK)
        *created = host;
    else
        sgm__device_host_free(host);
    return status;
}

/* --- transfers --- */

/* The bytes of a node on the device and on the host. `bytes` 0: there is nothing to transfer, as the value is
 * not in memory or is a constant. */
typedef struct transfer {
    sgm_device_place place;
    unsigned char *shadow;
    uint64_t bytes;
} transfer;

static transfer transfer_of(const sgm__device_host *host, int32_t number, const sgm__memory *memory)
{
    const sgm__node *node = &host->plan->nodes[number];
    const sgm__device_buffer *buffer = sgm__place_memory(&node->place, memory);
    sgm__span span = sgm__node_span(node);
    if (buffer == NULL || node->place.store == SGM__STORE_CONSTANT)
        return (transfer){0};
    return (transfer){.place = {buffer->memory, (uint64_t)span.first},
                      .shadow =
                          sgm__place_address(&node->place, &host->shadow) - node->place.offset + span.first,
                      .bytes = (uint64_t)(span.last - span.first)};
}

static sgm_status fetch(sgm__device *device, const sgm__device_host *host, int32_t number,
                        const sgm__memory *memory)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    const transfer t = transfer_of(host, number, memory);
    if (t.bytes > 0)
        SGM__DEVICE_TRY(device, device->driver->read(device->self, t.place, t.shadow, t.bytes, message));
    return SGM_OK;
}

static sgm_status bring_back(sgm__device *device, const sgm__device_host *host, int32_t number,
                             const sgm__memory *memory)
{
    char message[SGM_DEVICE_MESSAGE] = "";
    const transfer t = transfer_of(host, number, memory);
    if (t.bytes > 0)
        SGM__DEVICE_TRY(device, device->driver->write(device->self, t.place, t.shadow, t.bytes, message));
    return SGM_OK;
}

/* Reads all operands from outside the step. A result with gaps is read, too: it is written back as one range
 * of bytes, and what lies in the gaps must not change. */
static sgm_status fetch_operands(sgm__device *device, const sgm__device_host *host, const sgm__step *step,
                                 const sgm__memory *memory)
{
    const sgm__plan *plan = host->plan;
    for (int32_t p = 0; p < step->count; p++) {
        int32_t number = plan->order[step->first + p];
        const sgm__node *node = &plan->nodes[number];
        for (int32_t k = 0; k < node->input_count; k++) {
            int32_t operand = plan->operands[node->first_input + k];
            if (!sgm__step_makes(plan, step, operand))
                SGM_TRY(fetch(device, host, operand, memory));
        }
        if (sgm__node_span(node).gaps)
            SGM_TRY(fetch(device, host, number, memory));
    }
    return SGM_OK;
}

/* The lock is released during the computation, as a user's own operation may itself use this handler. */
sgm_status sgm__device_host_run(sgm__device *device, sgm__device_host *host, const sgm__memory *memory,
                                int32_t which)
{
    const sgm__plan *plan = host->plan;
    const sgm__step *step = &host->part.steps[which];
    SGM_TRY(fetch_operands(device, host, step, memory));
    /* The operation may be a user's code that uses this handler. */
    pthread_mutex_unlock(&device->lock);
    sgm_status status = sgm__reference_handler.run(NULL, host->executable, &host->shadow, which, 1);
    pthread_mutex_lock(&device->lock);
    SGM_TRY(status);
    for (int32_t p = 0; p < step->count; p++)
        SGM_TRY(bring_back(device, host, plan->order[step->first + p], memory));
    return SGM_OK;
}
