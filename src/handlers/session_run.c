/* Sessions at work: feeding a program's inputs, running it, reading its outputs and describing it.
 *
 * The functions for users find inputs and outputs by name; those that trainers call in each step take numbers
 * (..._at). Runs may be queued by the handler and end later: reads are ordered after them, and failures that
 * are known only later are asked for by sgm__session_check before anything is read. Outputs lie in the arena,
 * so only those of the newest run can be read.
 */
#include "handlers/session.h"

#include "tensor/tensor_internal.h"

#include <stdio.h>

/* Runs in a row before the handler's `check` is called though nothing was read. `check` waits for a device,
 * so it must be rare; the bound limits how late an index out of range is reported. */
#define MAXIMUM_UNCHECKED 16

/* --- feeding and running --- */

/* Fails with a list of the inputs or outputs that the program has. */
static sgm_status unknown_name(const sgm__plan *plan, const char *kind, const sgm__binding *bindings,
                               int32_t count, const char *name)
{
    char list[256] = "none";
    for (int32_t i = 0, length = 0; i < count && length < (int32_t)sizeof list; i++)
        length += snprintf(list + length, sizeof list - (size_t)length, "%s'%s'", i > 0 ? ", " : "",
                           sgm__plan_string(plan, bindings[i].name));
    return sgm_fail(SGM_ERROR_NOT_FOUND, "the program has no %s '%s'; it has %s", kind,
                    name != NULL ? name : "", list);
}

/* Programs cannot be moved between sessions: their memory and executable belong to one. */
static sgm_status check_program(const sgm_session *session, const sgm_program *program)
{
    if (session == NULL || program == NULL || program->session != session)
        return sgm_fail(SGM_ERROR_ARGUMENT, "no session, no program, or a program of another session");
    return SGM_OK;
}

/* The tensor on the host that converts between the program's type and the caller's; it is made when first
 * needed and kept. */
static sgm_tensor *stage(sgm_tensor **stages, int32_t index, const sgm_type *type)
{
    if (stages[index] == NULL)
        stages[index] = sgm_tensor_create(type->dtype, &type->shape);
    return stages[index];
}

/* A tensor may also have another shape with equal first axis (the examples) and equally many elements, if it
 * is contiguous: images fed to a dense layer, for instance. */
static sgm_status check_fed_shape(const char *name, const sgm_shape *wanted, const sgm_tensor *value)
{
    const sgm_shape *given = sgm_tensor_shape(value);
    if (sgm_shape_equal(wanted, given))
        return SGM_OK;
    bool same_examples = wanted->rank > 0 && given->rank > 0 && wanted->dims[0] == given->dims[0] &&
                         sgm_shape_elements(wanted) == sgm_shape_elements(given) &&
                         sgm_tensor_is_contiguous(value);
    if (same_examples)
        return SGM_OK;
    char a[128], b[128];
    return sgm_fail(SGM_ERROR_SHAPE, "input '%s' wants shape %s, the tensor has %s%s", name,
                    sgm_shape_text(wanted, a, sizeof a), sgm_shape_text(given, b, sizeof b),
                    sgm_tensor_is_contiguous(value) ? "" : " and gaps in its memory: copy it first");
}

/* Copies `value` with its type converted into `target`. If the shapes differ, both are contiguous
 * (check_fed_shape), so the strides of the target fit both. */
static sgm_status convert(sgm_tensor *target, const sgm_tensor *value)
{
    const sgm_shape *shape = sgm_tensor_shape(target);
    if (sgm_shape_equal(shape, sgm_tensor_shape(value)))
        return sgm_tensor_assign(target, value);
    const int64_t *strides = sgm_tensor_strides(target); /* `value` is contiguous, too */
    sgm__copy_strided(shape, sgm_tensor_dtype(target), sgm_tensor_data(target), strides,
                      sgm_tensor_dtype(value), sgm_tensor_const_data(value), strides);
    return SGM_OK;
}

static sgm_status check_input(const sgm_session *session, const sgm_program *program, const char *name,
                              int32_t *index)
{
    SGM_TRY(check_program(session, program));
    *index = sgm__program_input(program, name);
    return *index >= 0 ? SGM_OK
                       : unknown_name(program->plan, "input", program->plan->inputs,
                                      program->plan->input_count, name);
}

sgm_status sgm__session_write_input(sgm_session *session, sgm_program *program, int32_t index,
                                    const void *data)
{
    SGM_TRY(sgm__program_check_index(program, index, data));
    SGM_TRY(session->handler->type->write(session->handler->self, program->memory.inputs[index], 0, data,
                                          sgm__type_bytes(&program->plan->inputs[index].type)));
    program->fed[index] = true;
    return SGM_OK;
}

/* A value of another type or layout goes through a tensor on the host that is made once and kept. Indices are
 * checked in the program's own type, after conversion. */
sgm_status sgm__session_feed_at(sgm_session *session, sgm_program *program, int32_t index,
                                const sgm_tensor *value)
{
    const char *name = sgm__plan_string(program->plan, program->plan->inputs[index].name);
    if (value == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "input '%s' was given no tensor", name);
    const sgm_type *type = &program->plan->inputs[index].type;
    SGM_TRY(check_fed_shape(name, &type->shape, value));
    if (sgm_tensor_dtype(value) != type->dtype || !sgm_tensor_is_contiguous(value)) {
        sgm_tensor *converted = stage(program->input_stages, index, type);
        if (converted == NULL)
            return SGM_ERROR_MEMORY;
        SGM_TRY(convert(converted, value));
        value = converted;
    }
    return sgm__session_write_input(session, program, index, sgm_tensor_const_data(value));
}

sgm_status sgm_session_feed(sgm_session *session, sgm_program *program, const char *name,
                            const sgm_tensor *value)
{
    int32_t index;
    SGM_TRY(check_input(session, program, name, &index));
    return sgm__session_feed_at(session, program, index, value);
}

/* Eight bytes hold one number of any type. There is no tensor and no conversion, as learning rates are fed in
 * each step. */
sgm_status sgm__session_feed_number_at(sgm_session *session, sgm_program *program, int32_t index,
                                       double value)
{
    const sgm_type *type = &program->plan->inputs[index].type;
    if (type->shape.rank != 0)
        return sgm_fail(SGM_ERROR_SHAPE, "input '%s' is no single number; feed a tensor",
                        sgm__plan_string(program->plan, program->plan->inputs[index].name));
    double memory[1] = {0};
    sgm_array array = {.dtype = type->dtype, .data = memory};
    sgm_array_store(&array, 0, value);
    return sgm__session_write_input(session, program, index, memory);
}

sgm_status sgm_session_feed_number(sgm_session *session, sgm_program *program, const char *name, double value)
{
    int32_t index;
    SGM_TRY(check_input(session, program, name, &index));
    return sgm__session_feed_number_at(session, program, index, value);
}

/* Times each step by waiting after it, for handlers without a function `time`. */
static sgm_status time_steps(const sgm_handler *handler, sgm_program *program, sgm__step_time *times)
{
    double since = sgm__now();
    for (int32_t i = 0; i < program->plan->step_count; i++) {
        SGM_TRY(handler->type->run(handler->self, program->executable, &program->memory, i, 1));
        SGM_TRY(handler->type->wait(handler->self));
        double now = sgm__now();
        times[i].seconds = now - since;
        since = now;
    }
    return SGM_OK;
}

/* Runs all steps, with or without timing. */
static sgm_status execute(const sgm_handler *handler, sgm_program *program, sgm__step_time *times)
{
    const sgm__plan *plan = program->plan;
    if (times == NULL)
        return handler->type->run(handler->self, program->executable, &program->memory, 0, plan->step_count);
    for (int32_t i = 0; i < plan->step_count; i++)
        times[i] = (sgm__step_time){.with = -1};
    return handler->type->time != NULL
               ? handler->type->time(handler->self, program->executable, &program->memory, times)
               : time_steps(handler, program, times);
}

/* What precedes every run: all inputs were fed, failures of earlier runs are known, the arena is set. A
 * failed run of another program left states unwritten, so another program must not run on them unchecked. */
static sgm_status begin_run(sgm_session *session, sgm_program *program)
{
    SGM_TRY(check_program(session, program));
    for (int32_t i = 0; i < program->plan->input_count; i++)
        if (!program->fed[i])
            return sgm_fail(SGM_ERROR_STATE, "input '%s' was never fed",
                            sgm__plan_string(program->plan, program->plan->inputs[i].name));
    if (session->unchecked != program || session->unchecked_runs == MAXIMUM_UNCHECKED)
        SGM_TRY(sgm__session_check(session));
    if (session->handler->type->check != NULL) {
        session->unchecked = program;
        session->unchecked_runs++;
    }
    program->memory.arena = session->arena;
    session->changes += program->graph->assignment_count > 0;
    session->newest = NULL;
    return SGM_OK;
}

/* Between two pieces the handler has finished its work, so `done` may read and write the arena. `newest` is
 * set before `done` is called for the whole run, since the caller reads outputs there. */
sgm_status sgm__session_run_pieces(sgm_session *session, sgm_program *program, const sgm__pieces *pieces)
{
    SGM_TRY(begin_run(session, program));
    const sgm_handler *handler = session->handler;
    for (int32_t piece = 0, first = 0; piece <= (int32_t)pieces->count; piece++) {
        bool last = piece == (int32_t)pieces->count;
        int32_t end = last ? program->plan->step_count : pieces->ends[piece];
        if (end > first)
            SGM_TRY(
                handler->type->run(handler->self, program->executable, &program->memory, first, end - first));
        SGM_TRY(handler->type->wait(handler->self));
        first = end;
        if (last)
            session->newest = program;
        SGM_TRY(pieces->done(pieces->user, (size_t)piece));
    }
    return SGM_OK;
}

/* `newest` is set only when the run has succeeded: the outputs of a failed one cannot be read. */
sgm_status sgm__session_run_timed(sgm_session *session, sgm_program *program, sgm__step_time *times)
{
    SGM_TRY(begin_run(session, program));
    const sgm_handler *handler = session->handler;
    SGM_TRY(execute(handler, program, times));
    SGM_TRY(handler->type->wait(handler->self));
    session->newest = program;
    return SGM_OK;
}

sgm_status sgm_session_run(sgm_session *session, sgm_program *program)
{
    return sgm__session_run_timed(session, program, NULL);
}

/* Copies output `index` to `host`, contiguous and in the program's type. Outputs always lie in the arena (see
 * add_outputs in plan/plan_nodes.c). */
static sgm_status read_output(sgm_session *session, const sgm_program *program, int32_t index, void *host)
{
    SGM_TRY(sgm__session_check(session));
    const sgm__node *node = &program->plan->nodes[program->plan->outputs[index].node];
    return session->handler->type->read(session->handler->self, session->arena, (size_t)node->place.offset,
                                        host, sgm__type_bytes(&node->type));
}

/* Another program that ran since has overwritten the arena. */
static sgm_status check_newest(const sgm_session *session, const sgm_program *program, int32_t index)
{
    return session->newest == program
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE,
                          "output '%s': the program did not run, failed, or another ran after it",
                          sgm__plan_string(program->plan, program->plan->outputs[index].name));
}

/* Finds the output of that name and makes sure that it can be read. */
static sgm_status check_output(const sgm_session *session, const sgm_program *program, const char *name,
                               int32_t *index)
{
    SGM_TRY(check_program(session, program));
    *index = sgm__program_output(program, name);
    if (*index < 0)
        return unknown_name(program->plan, "output", program->plan->outputs, program->plan->output_count,
                            name);
    return check_newest(session, program, *index);
}

/* Converts through a tensor that is kept if the caller's tensor has another type or is not contiguous. */
sgm_status sgm_session_read(sgm_session *session, sgm_program *program, const char *name, sgm_tensor *value)
{
    int32_t index;
    SGM_TRY(check_output(session, program, name, &index));
    const sgm_type *type = &program->plan->outputs[index].type;
    if (value == NULL || !sgm_shape_equal(&type->shape, sgm_tensor_shape(value))) {
        char a[128];
        return sgm_fail(SGM_ERROR_SHAPE, "output '%s' has shape %s, the tensor has not", name,
                        sgm_shape_text(&type->shape, a, sizeof a));
    }
    if (sgm_tensor_dtype(value) == type->dtype && sgm_tensor_is_contiguous(value))
        return read_output(session, program, index, sgm_tensor_data(value));
    sgm_tensor *read = stage(program->output_stages, index, type);
    if (read == NULL)
        return SGM_ERROR_MEMORY;
    SGM_TRY(read_output(session, program, index, sgm_tensor_data(read)));
    return sgm_tensor_assign(value, read);
}

/* Eight bytes hold one element of any type. */
sgm_status sgm__session_read_number_at(sgm_session *session, sgm_program *program, int32_t index,
                                       double *value)
{
    SGM_TRY(check_newest(session, program, index));
    const sgm_type *type = &program->plan->outputs[index].type;
    if (sgm_shape_elements(&type->shape) != 1)
        return sgm_fail(SGM_ERROR_SHAPE, "output '%s' is no single number; read a tensor",
                        sgm__plan_string(program->plan, program->plan->outputs[index].name));
    double memory[1] = {0};
    SGM_TRY(read_output(session, program, index, memory));
    sgm_array array = {.dtype = type->dtype, .data = memory};
    *value = sgm_array_load(&array, 0);
    return SGM_OK;
}

sgm_status sgm_session_read_number(sgm_session *session, sgm_program *program, const char *name,
                                   double *value)
{
    int32_t index;
    SGM_TRY(check_output(session, program, name, &index));
    return sgm__session_read_number_at(session, program, index, value);
}

/* --- looking --- */

bool sgm_program_has_input(const sgm_program *program, const char *input)
{
    return sgm__program_input(program, input) >= 0;
}

bool sgm_program_has_output(const sgm_program *program, const char *output)
{
    return sgm__program_output(program, output) >= 0;
}

const char *sgm_program_input_at(const sgm_program *program, size_t index)
{
    return program != NULL && index < (size_t)program->plan->input_count
               ? sgm__plan_string(program->plan, program->plan->inputs[index].name)
               : NULL;
}

sgm_type sgm_program_output_type(const sgm_program *program, const char *output)
{
    int32_t index = sgm__program_output(program, output);
    return index >= 0 ? program->plan->outputs[index].type : (sgm_type){.dtype = SGM_FLOAT32};
}

/* `fused` counts the nodes that are computed within the step of another node. */
sgm_program_memory sgm_program_get_memory(const sgm_program *program)
{
    sgm_program_memory memory = {0};
    if (program == NULL)
        return memory;
    const sgm__plan *plan = program->plan;
    for (int32_t i = 0; i < plan->state_count; i++)
        memory.state += (int64_t)sgm__type_bytes(&plan->states[i].type);
    for (int32_t i = 0; i < plan->input_count; i++)
        memory.inputs += (int64_t)sgm__type_bytes(&plan->inputs[i].type);
    memory.constants = plan->constant_bytes - plan->unread_bytes;
    memory.activations = plan->activation_bytes;
    memory.arena = plan->arena_bytes;
    memory.unsaved = plan->unsaved_bytes;
    memory.again = plan->again_count;
    memory.instructions = plan->node_count;
    memory.steps = plan->step_count;
    memory.fused = plan->order_count - plan->step_count;
    sgm__estimate estimate = {0};
    const sgm_handler *handler = program->session->handler;
    if (handler->type->estimate != NULL)
        handler->type->estimate(handler->self, program->executable, &estimate);
    memory.threads = estimate.threads;
    memory.seconds_of_one = estimate.alone;
    memory.seconds_of_threads = estimate.shared;
    memory.packed = estimate.packed;
    memory.packed_by_all = estimate.packed_by_all;
    return memory;
}

char *sgm_program_text(const sgm_program *program)
{
    return program != NULL ? sgm__plan_text(program->plan) : NULL;
}
