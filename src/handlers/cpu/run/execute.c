/* Runs compiled programs: goes through the list of steps, and allocates nothing.
 *
 * Runs of one handler exclude each other (`busy`), as they share the pool. Memory of values belongs to the
 * session; an executable owns the rest. */
#include "handlers/cpu/elementwise/step.h"
#include "handlers/cpu/flush.h"
#include "handlers/cpu/run/executable.h"

/* --- where everything is --- */

/* Whether all addresses are those of the run before. */
static bool same_memory(const sgm__executable *e, const sgm__memory *memory)
{
    size_t inputs = (size_t)e->plan->input_count, states = (size_t)e->plan->state_count;
    return e->memory[0] == memory->arena && e->memory[1] == memory->constants &&
           memcmp(e->memory + 2, memory->inputs, inputs * sizeof(void *)) == 0 &&
           memcmp(e->memory + 2 + inputs, memory->states, states * sizeof(void *)) == 0;
}

/* Sets the addresses of a step that is one operation. */
static void set_operand_addresses(const sgm__executable *e, sgm__cpu_step *step, const sgm__memory *memory)
{
    const sgm__plan *plan = e->plan;
    const sgm__node *node = step->call.node;
    for (int32_t k = 0; k < node->input_count; k++)
        step->call.inputs[k].data =
            sgm__place_address(&plan->nodes[plan->operands[node->first_input + k]].place, memory);
    step->call.output.data = sgm__place_address(&node->place, memory);
}

/* Tells all steps where their values lie, if that changed since the run before. It seldom does: when another
 * program of the session needed a larger arena, or an input is shared memory of another session. Interpreted
 * elementwise steps of several tiles find addresses as they run. */
static void set_addresses(sgm__executable *e, const sgm__memory *memory)
{
    size_t inputs = (size_t)e->plan->input_count, states = (size_t)e->plan->state_count;
    if (same_memory(e, memory))
        return;
    e->memory[0] = memory->arena;
    e->memory[1] = memory->constants;
    memcpy(e->memory + 2, memory->inputs, inputs * sizeof(void *));
    memcpy(e->memory + 2 + inputs, memory->states, states * sizeof(void *));
    for (int32_t i = 0; i < e->step_count; i++) {
        if (e->steps[i].bound != NULL)
            sgm__bound_place(e->steps[i].bound, memory);
        else if (e->steps[i].elementwise == NULL)
            set_operand_addresses(e, &e->steps[i], memory);
    }
}

/* --- running --- */

/* An error of a kernel is completed with the place in the graph where the operation was recorded. */
static sgm_status run_operation(const sgm__executable *e, sgm__cpu_step *step)
{
    const sgm__plan *plan = e->plan;
    const sgm__node *node = step->call.node;
    sgm_status status;
    if (step->kernel != NULL)
        status = step->kernel->run(&step->call);
    else
        status = node->op->forward(&(sgm_kernel_call){.inputs = step->call.inputs,
                                                      .input_count = node->input_count,
                                                      .output = step->call.output,
                                                      .attributes = &node->attributes});
    if (status == SGM_OK)
        return SGM_OK;
    char place[256];
    return sgm__fail_within("%s", sgm__plan_describe(plan, step->node, place, sizeof place));
}

/* Before a step of a program with several threads: tells the pool which loops the step needs. A step that
 * posts leaves the waiting to the pool; any other step waits here. */
static void begin_step(const sgm__cpu *cpu, const sgm__executable *e, int32_t index)
{
    const sgm__flow *flow = &e->flow[index];
    sgm__pool_alone(cpu->pool, false);
    sgm__pool_needs(cpu->pool, flow->needs >= 0 ? e->steps[flow->needs].posted : 0);
    if (!flow->posts)
        sgm__pool_ready(cpu->pool);
    sgm__pool_alone(cpu->pool, e->steps[index].alone);
}

/* Waits until the step is done and notes the time since the step before was. The way to the step counts with
 * it, so that the times of all steps add up to the whole run. Steps that were done together refer to the one
 * that did them (`with`). */
static void note_time(const sgm__cpu *cpu, const sgm__cpu_step *step, int32_t index, bool together,
                      sgm__step_time *times, double *since)
{
    sgm__pool_finish(cpu->pool);
    double now = sgm__now();
    times[index].seconds = now - *since;
    *since = now;
    if (together)
        times[step->partner].with = index;
    if (together && step->product >= 0)
        times[step->product].with = index;
}

/* Runs steps `first` to `first + count - 1`. `times`: NULL, or an array for all steps of the plan. Steps run
 * together only if all of them are in this range; else each runs alone, and its result goes to memory. */
static sgm_status run_steps(sgm__cpu *cpu, const sgm__executable *e, const sgm__memory *memory, int32_t first,
                            int32_t count, sgm__step_time *times)
{
    sgm_status status = SGM_OK;
    double since = times != NULL ? sgm__now() : 0;
    for (int32_t i = first; i < first + count && status == SGM_OK; i++) {
        sgm__cpu_step *step = &e->steps[i];
        bool together = step->partner >= first && step->partner < first + count;
        if (step->done || (together && !sgm__cpu_leads(step)))
            continue; /* the step that leads does this one */
        if (e->flow != NULL)
            begin_step(cpu, e, i);
        if (step->packer == i)
            sgm__packings_post(&e->packings, i);
        if (together && step->summed != NULL)
            sgm__summed_run(cpu, step->summed, step->product >= first, memory, step->scratch);
        else if (together)
            status = sgm__fused_run(cpu, e->plan, step->fused, memory, step->scratch);
        else if (step->bound != NULL)
            sgm__bound_run(step->bound, memory);
        else if (step->elementwise != NULL)
            sgm__elementwise_run(cpu, step->elementwise, memory, step->scratch);
        else
            status = run_operation(e, step);
        if (step->partner >= 0 && !sgm__cpu_leads(step))
            /* Its partner is not in this range. No later step waits for this one, since the flow counts on
             * the partner to do its work: so the wait is here. */
            sgm__pool_finish(cpu->pool);
        if (times != NULL)
            note_time(cpu, step, i, together, times, &since);
        step->posted = e->flow != NULL ? sgm__pool_posted(cpu->pool) : 0;
    }
    return status;
}

/* A run from lock to unlock, on the thread of a session. Results too small for full precision become zero
 * meanwhile. All loops are done on return, also after an error. */
static sgm_status run_part(void *self, void *compiled, const sgm__memory *memory, int32_t first,
                           int32_t count, sgm__step_time *times)
{
    sgm__cpu *cpu = self;
    pthread_mutex_lock(&cpu->busy);
    uint64_t before = sgm__flush_begin(cpu->keeps_subnormals);
    set_addresses(compiled, memory);
    sgm__pool_alone(cpu->pool, ((const sgm__executable *)compiled)->flow == NULL);
    sgm_status status = run_steps(cpu, compiled, memory, first, count, times);
    sgm__pool_alone(cpu->pool, false);
    sgm__pool_finish(cpu->pool);
    sgm__flush_end(before);
    pthread_mutex_unlock(&cpu->busy);
    return status;
}

sgm_status sgm__cpu_run(void *self, void *compiled, const sgm__memory *memory, int32_t first, int32_t count)
{
    return run_part(self, compiled, memory, first, count, NULL);
}

sgm_status sgm__cpu_time(void *self, void *compiled, const sgm__memory *memory, sgm__step_time *times)
{
    return run_part(self, compiled, memory, 0, ((const sgm__executable *)compiled)->step_count, times);
}
