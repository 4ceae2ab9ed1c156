/* Sessions: state by name, programs by structure. In the steady state a run allocates nothing. */
#include "handlers/session.h"

#include "base/tensor_internal.h"
#include "graph/passes.h"
#include <sigma/units.h>

#include <stdio.h>

#define MOST_UNCHECKED 16 /* runs that nobody reads anything of */

typedef sgm__session_state state;

sgm_session *sgm_session_create(sgm_handler *handler)
{
    if (handler == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a session wants a handler; see why there is none");
        return NULL;
    }
    sgm_session *session = sgm__calloc(1, sizeof(sgm_session));
    if (session != NULL)
        session->handler = handler;
    return session;
}

static void release(sgm_session *session, void *buffer)
{
    if (buffer != NULL)
        session->handler->type->release(session->handler->self, buffer);
}

static void free_program(sgm_program *program)
{
    sgm_session *session = program->session;
    if (program->executable != NULL)
        session->handler->type->discard(session->handler->self, program->executable);
    for (int32_t i = 0; program->plan != NULL && i < program->plan->input_count; i++) {
        if (program->memory.inputs != NULL && (program->lent == NULL || !program->lent[i]))
            release(session, program->memory.inputs[i]);
        if (program->input_stages != NULL)
            sgm_tensor_free(program->input_stages[i]);
    }
    for (int32_t i = 0; program->plan != NULL && i < program->plan->output_count; i++)
        if (program->output_stages != NULL)
            sgm_tensor_free(program->output_stages[i]);
    release(session, program->memory.constants);
    sgm__free(program->memory.inputs);
    sgm__free(program->memory.states);
    sgm__free(program->input_stages);
    sgm__free(program->output_stages);
    sgm__free(program->fed);
    sgm__free(program->lent);
    sgm__index_rules_free(program);
    sgm__plan_free(program->plan);
    sgm_graph_free(program->graph);
    sgm__free(program);
}

void sgm_session_free(sgm_session *session)
{
    if (session == NULL)
        return;
    while (session->programs != NULL) {
        sgm_program *next = session->programs->next;
        free_program(session->programs);
        session->programs = next;
    }
    for (size_t i = 0; i < session->state_count; i++) {
        if (!session->states[i].shared)
            release(session, session->states[i].buffer);
        sgm__free(session->states[i].name);
    }
    if (session->source.grow == NULL)
        release(session, session->arena);
    sgm__free(session->states);
    sgm__free(session);
}

sgm_status sgm__session_check(sgm_session *session)
{
    const sgm_program *program = session->unchecked;
    const sgm_handler *handler = session->handler;
    session->unchecked = NULL;
    session->unchecked_runs = 0;
    if (program == NULL)
        return SGM_OK;
    sgm_status status = handler->type->check(handler->self, program->executable);
    if (status != SGM_OK)
        session->newest = NULL;
    return status;
}

/* --- state --- */

static state *find_state(const sgm_session *session, const char *name)
{
    for (size_t i = 0; i < session->state_count && name != NULL; i++)
        if (strcmp(session->states[i].name, name) == 0)
            return &session->states[i];
    return NULL;
}

static size_t bytes_of(const sgm_type *type)
{
    return (size_t)sgm_shape_elements(&type->shape) * sgm_dtype_size(type->dtype);
}

static sgm_status unknown_state(const sgm_session *session, const char *name)
{
    const char *near = NULL;
    name = name != NULL ? name : "";
    const char **names = sgm__alloc((session->state_count + 1) * sizeof(char *));
    for (size_t i = 0; names != NULL && i < session->state_count; i++)
        names[i] = session->states[i].name;
    if (names != NULL)
        near = sgm__nearest(name, names, session->state_count);
    sgm__free(names);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "the session has no state '%s'%s%s%s", name,
                    near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                    near != NULL ? "'?" : "");
}

static sgm_status define_state(sgm_session *session, const char *name, sgm_type type, state **defined)
{
    SGM_TRY(
        sgm__reserve(&session->states, &session->state_capacity, session->state_count + 1, sizeof(state)));
    state added = {.name = sgm__strdup(name), .type = type};
    if (added.name == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status =
        session->handler->type->allocate(session->handler->self, bytes_of(&type), &added.buffer);
    if (status != SGM_OK) {
        sgm__free(added.name);
        return sgm__fail_within("state '%s'", name);
    }
    session->states[session->state_count] = added;
    *defined = &session->states[session->state_count++];
    return SGM_OK;
}

sgm_status sgm_session_set(sgm_session *session, const char *name, const sgm_tensor *value)
{
    if (session == NULL || name == NULL || value == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "setting a state wants a session, a name and a value");
    sgm_type type = {sgm_tensor_dtype(value), *sgm_tensor_shape(value)};
    state *known = find_state(session, name);
    if (known != NULL &&
        (known->type.dtype != type.dtype || !sgm_shape_equal(&known->type.shape, &type.shape))) {
        char is[128], wanted[128];
        return sgm_fail(SGM_ERROR_SHAPE, "state '%s' is %s %s; the value is %s %s", name,
                        sgm_dtype_name(known->type.dtype),
                        sgm_shape_text(&known->type.shape, wanted, sizeof wanted), sgm_dtype_name(type.dtype),
                        sgm_shape_text(&type.shape, is, sizeof is));
    }
    /* What can fail comes first: a state is not defined without its value. */
    sgm_tensor *copy = NULL;
    if (!sgm_tensor_is_contiguous(value)) {
        copy = sgm_tensor_copy(value);
        if (copy == NULL)
            return SGM_ERROR_MEMORY;
        value = copy;
    }
    sgm_status status = known != NULL ? SGM_OK : define_state(session, name, type, &known);
    if (status == SGM_OK)
        status = session->handler->type->write(session->handler->self, known->buffer, 0,
                                               sgm_tensor_const_data(value), bytes_of(&type));
    sgm_tensor_free(copy);
    return status;
}

sgm_tensor *sgm_session_get(sgm_session *session, const char *name)
{
    sgm_type type;
    if (sgm_session_state_type(session, name, &type) != SGM_OK || sgm__session_check(session) != SGM_OK)
        return NULL;
    const state *known = find_state(session, name);
    sgm_tensor *tensor = sgm_tensor_create(known->type.dtype, &known->type.shape);
    if (tensor == NULL)
        return NULL;
    if (session->handler->type->read(session->handler->self, known->buffer, 0, sgm_tensor_data(tensor),
                                     bytes_of(&known->type)) == SGM_OK)
        return tensor;
    sgm_tensor_free(tensor);
    return NULL;
}

bool sgm_session_has(const sgm_session *session, const char *name)
{
    return session != NULL && find_state(session, name) != NULL;
}

const char *sgm_session_state_at(const sgm_session *session, size_t index)
{
    return session != NULL && index < session->state_count ? session->states[index].name : NULL;
}

sgm_status sgm_session_state_type(const sgm_session *session, const char *name, sgm_type *type)
{
    const state *known = session != NULL ? find_state(session, name) : NULL;
    if (known == NULL)
        return session != NULL ? unknown_state(session, name)
                               : sgm_fail(SGM_ERROR_ARGUMENT, "the session is NULL");
    *type = known->type;
    return SGM_OK;
}

/* --- programs --- */

static sgm_status bind_states(sgm_program *program)
{
    const sgm__plan *plan = program->plan;
    for (int32_t i = 0; i < plan->state_count; i++) {
        const char *name = sgm__plan_string(plan, plan->states[i].name);
        const state *known = find_state(program->session, name);
        if (known == NULL)
            return sgm_fail(SGM_ERROR_NOT_FOUND,
                            "the graph uses state '%s', which has no value yet: set it before", name);
        const sgm_type *wanted = &plan->states[i].type;
        if (known->type.dtype != wanted->dtype || !sgm_shape_equal(&known->type.shape, &wanted->shape)) {
            char a[128], b[128];
            return sgm_fail(
                SGM_ERROR_SHAPE, "the graph uses state '%s' as %s %s, the session has it as %s %s", name,
                sgm_dtype_name(wanted->dtype), sgm_shape_text(&wanted->shape, a, sizeof a),
                sgm_dtype_name(known->type.dtype), sgm_shape_text(&known->type.shape, b, sizeof b));
        }
        program->memory.states[i] = known->buffer;
    }
    return SGM_OK;
}

/* An arena that came from a source is the source's to release. */
static sgm_status place_arena(sgm_session *session, const sgm__arena_source *source, int64_t bytes)
{
    const sgm_handler *handler = session->handler;
    void *arena = NULL;
    if (source->grow == NULL)
        SGM_TRY(handler->type->allocate(handler->self, (size_t)bytes, &arena));
    else if ((arena = source->grow(source->user, (size_t)bytes)) == NULL)
        return sgm__last_failure();
    if (session->source.grow == NULL)
        release(session, session->arena);
    session->source = *source;
    session->arena = arena;
    session->arena_bytes = bytes;
    session->newest = NULL;
    return SGM_OK;
}

static sgm_status allocate_memory(sgm_program *program)
{
    sgm_session *session = program->session;
    const sgm__plan *plan = program->plan;
    const sgm__handler_type *type = session->handler->type;
    void *self = session->handler->self;
    size_t inputs = (size_t)plan->input_count + 1, outputs = (size_t)plan->output_count + 1;
    program->memory.inputs = sgm__calloc(inputs, sizeof(void *));
    program->memory.states = sgm__calloc((size_t)plan->state_count + 1, sizeof(void *));
    program->input_stages = sgm__calloc(inputs, sizeof(sgm_tensor *));
    program->output_stages = sgm__calloc(outputs, sizeof(sgm_tensor *));
    program->fed = sgm__calloc(inputs, sizeof(bool));
    if (program->memory.inputs == NULL || program->memory.states == NULL || program->input_stages == NULL ||
        program->output_stages == NULL || program->fed == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < plan->input_count; i++)
        SGM_TRY(type->allocate(self, bytes_of(&plan->inputs[i].type), &program->memory.inputs[i]));
    SGM_TRY(type->allocate(self, (size_t)plan->constant_bytes, &program->memory.constants));
    if (plan->constant_bytes > 0)
        SGM_TRY(
            type->write(self, program->memory.constants, 0, plan->constants, (size_t)plan->constant_bytes));
    return session->arena != NULL && plan->arena_bytes <= session->arena_bytes
               ? SGM_OK
               : place_arena(session, &session->source, plan->arena_bytes);
}

sgm_status sgm__session_take_arena_from(sgm_session *session, const sgm__arena_source *source)
{
    return session->source.grow == source->grow && session->source.user == source->user
               ? SGM_OK
               : place_arena(session, source, session->arena_bytes);
}

/* What a program that found no memory would have wanted. */
static void tell_sizes(const sgm__plan *plan)
{
    double states = 0, inputs = 0;
    char text[5][64];
    for (int32_t i = 0; i < plan->state_count; i++)
        states += (double)bytes_of(&plan->states[i].type);
    for (int32_t i = 0; i < plan->input_count; i++)
        inputs += (double)bytes_of(&plan->inputs[i].type);
    sgm__fail_within("a program with %s of state, %s of inputs, %s of constants and %s of arena (for %s of "
                     "activations)",
                     sgm_bytes_text(states, text[0], sizeof text[0]),
                     sgm_bytes_text(inputs, text[1], sizeof text[1]),
                     sgm_bytes_text((double)plan->constant_bytes, text[2], sizeof text[2]),
                     sgm_bytes_text((double)plan->arena_bytes, text[3], sizeof text[3]),
                     sgm_bytes_text((double)plan->activation_bytes, text[4], sizeof text[4]));
}

static sgm_status compile(sgm_program *program, const sgm_graph *graph)
{
    const sgm_handler *handler = program->session->handler;
    program->graph = sgm__graph_copy(graph);
    if (program->graph == NULL)
        return sgm_last_status() != SGM_OK ? sgm_last_status() : SGM_ERROR_MEMORY;
    SGM_TRY(sgm__plan_create(graph, handler, &program->plan));
    sgm_status status = allocate_memory(program);
    if (status == SGM_OK)
        status = bind_states(program);
    if (status == SGM_OK)
        status = handler->type->compile(handler->self, program->plan, &program->executable);
    if (status == SGM_ERROR_MEMORY)
        tell_sizes(program->plan);
    return status;
}

sgm_program *sgm_session_prepare(sgm_session *session, const sgm_graph *graph)
{
    if (session == NULL)
        sgm_fail(SGM_ERROR_ARGUMENT, "the session is NULL");
    if (session == NULL || sgm_graph_status(graph) != SGM_OK)
        return NULL;
    uint64_t hash = sgm_graph_hash(graph);
    for (sgm_program *known = session->programs; known != NULL; known = known->next)
        if (known->hash == hash && sgm__graph_structure_equal(known->graph, graph))
            return known;
    sgm_program *program = sgm__calloc(1, sizeof(sgm_program));
    if (program == NULL)
        return NULL;
    program->session = session;
    program->hash = hash;
    if (compile(program, graph) != SGM_OK) {
        free_program(program);
        return NULL;
    }
    program->next = session->programs;
    session->programs = program;
    return program;
}

/* --- running --- */

static int32_t find_binding(const sgm_program *program, const sgm__binding *bindings, int32_t count,
                            const char *name)
{
    for (int32_t i = 0; i < count && name != NULL; i++)
        if (strcmp(sgm__plan_string(program->plan, bindings[i].name), name) == 0)
            return i;
    return -1;
}

static int32_t find_input(const sgm_program *program, const char *name)
{
    return program != NULL ? find_binding(program, program->plan->inputs, program->plan->input_count, name)
                           : -1;
}

static int32_t find_output(const sgm_program *program, const char *name)
{
    return program != NULL ? find_binding(program, program->plan->outputs, program->plan->output_count, name)
                           : -1;
}

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

static sgm_status check_program(const sgm_session *session, const sgm_program *program)
{
    if (session == NULL || program == NULL || program->session != session)
        return sgm_fail(SGM_ERROR_ARGUMENT, "no session, no program, or a program of another session");
    return SGM_OK;
}

/* The tensor that converts between the program's type and the user's, made when first needed. */
static sgm_tensor *stage(sgm_tensor **stages, int32_t index, const sgm_type *type)
{
    if (stages[index] == NULL)
        stages[index] = sgm_tensor_create(type->dtype, &type->shape);
    return stages[index];
}

/* Records may come in another shape if their elements are as many and lie in order. */
static sgm_status check_fed_shape(const char *name, const sgm_shape *wanted, const sgm_tensor *value)
{
    const sgm_shape *given = sgm_tensor_shape(value);
    if (sgm_shape_equal(wanted, given))
        return SGM_OK;
    bool same_records = wanted->rank > 0 && given->rank > 0 && wanted->dims[0] == given->dims[0] &&
                        sgm_shape_elements(wanted) == sgm_shape_elements(given) &&
                        sgm_tensor_is_contiguous(value);
    if (same_records)
        return SGM_OK;
    char a[128], b[128];
    return sgm_fail(SGM_ERROR_SHAPE, "input '%s' wants shape %s, the tensor has %s%s", name,
                    sgm_shape_text(wanted, a, sizeof a), sgm_shape_text(given, b, sizeof b),
                    sgm_tensor_is_contiguous(value) ? "" : " and gaps in its memory: copy it first");
}

static sgm_status convert(sgm_tensor *target, const sgm_tensor *value)
{
    const sgm_shape *shape = sgm_tensor_shape(target);
    if (sgm_shape_equal(shape, sgm_tensor_shape(value)))
        return sgm_tensor_assign(target, value);
    const int64_t *strides = sgm_tensor_strides(target); /* both are contiguous */
    sgm__copy_strided(shape, sgm_tensor_dtype(target), sgm_tensor_data(target), strides,
                      sgm_tensor_dtype(value), sgm_tensor_const_data(value), strides);
    return SGM_OK;
}

static sgm_status check_input(const sgm_session *session, const sgm_program *program, const char *name,
                              int32_t *index)
{
    SGM_TRY(check_program(session, program));
    *index = find_input(program, name);
    return *index >= 0 ? SGM_OK
                       : unknown_name(program->plan, "input", program->plan->inputs,
                                      program->plan->input_count, name);
}

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
    if (program->rule_count > 0)
        SGM_TRY(sgm__program_check_index(program, index, sgm_tensor_const_data(value), type->dtype,
                                         &type->shape));
    SGM_TRY(session->handler->type->write(session->handler->self, program->memory.inputs[index], 0,
                                          sgm_tensor_const_data(value), bytes_of(type)));
    program->fed[index] = true;
    return SGM_OK;
}

sgm_status sgm_session_feed(sgm_session *session, sgm_program *program, const char *name,
                            const sgm_tensor *value)
{
    int32_t index;
    SGM_TRY(check_input(session, program, name, &index));
    return sgm__session_feed_at(session, program, index, value);
}

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
    SGM_TRY(session->handler->type->write(session->handler->self, program->memory.inputs[index], 0, memory,
                                          bytes_of(type)));
    program->fed[index] = true;
    return SGM_OK;
}

sgm_status sgm_session_feed_number(sgm_session *session, sgm_program *program, const char *name, double value)
{
    int32_t index;
    SGM_TRY(check_input(session, program, name, &index));
    return sgm__session_feed_number_at(session, program, index, value);
}

/* Where the handler cannot measure them by itself. */
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

static sgm_status begin_run(sgm_session *session, sgm_program *program)
{
    SGM_TRY(check_program(session, program));
    for (int32_t i = 0; i < program->plan->input_count; i++)
        if (!program->fed[i])
            return sgm_fail(SGM_ERROR_STATE, "input '%s' was never fed",
                            sgm__plan_string(program->plan, program->plan->inputs[i].name));
    /* What another program would do with states that were not written, nobody wants. */
    if (session->unchecked != program || session->unchecked_runs == MOST_UNCHECKED)
        SGM_TRY(sgm__session_check(session));
    if (session->handler->type->check != NULL) {
        session->unchecked = program;
        session->unchecked_runs++;
    }
    program->memory.arena = session->arena;
    session->newest = NULL;
    return SGM_OK;
}

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
        pieces->done(pieces->user, (size_t)piece);
    }
    return SGM_OK;
}

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

/* Copies output `index` to `host`, contiguous and in the program's type. */
static sgm_status read_output(sgm_session *session, const sgm_program *program, int32_t index, void *host)
{
    SGM_TRY(sgm__session_check(session));
    const sgm__node *node = &program->plan->nodes[program->plan->outputs[index].node];
    return session->handler->type->read(session->handler->self, session->arena, (size_t)node->place.offset,
                                        host, bytes_of(&node->type));
}

static sgm_status check_newest(const sgm_session *session, const sgm_program *program, int32_t index)
{
    return session->newest == program
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE,
                          "output '%s': the program did not run, failed, or another ran after it",
                          sgm__plan_string(program->plan, program->plan->outputs[index].name));
}

static sgm_status check_output(const sgm_session *session, const sgm_program *program, const char *name,
                               int32_t *index)
{
    SGM_TRY(check_program(session, program));
    *index = find_output(program, name);
    if (*index < 0)
        return unknown_name(program->plan, "output", program->plan->outputs, program->plan->output_count,
                            name);
    return check_newest(session, program, *index);
}

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
    return find_input(program, input) >= 0;
}

bool sgm_program_has_output(const sgm_program *program, const char *output)
{
    return find_output(program, output) >= 0;
}

const char *sgm_program_input_at(const sgm_program *program, size_t index)
{
    return program != NULL && index < (size_t)program->plan->input_count
               ? sgm__plan_string(program->plan, program->plan->inputs[index].name)
               : NULL;
}

sgm_type sgm_program_output_type(const sgm_program *program, const char *output)
{
    int32_t index = find_output(program, output);
    return index >= 0 ? program->plan->outputs[index].type : (sgm_type){.dtype = SGM_FLOAT32};
}

sgm_program_memory sgm_program_memory_of(const sgm_program *program)
{
    sgm_program_memory memory = {0};
    if (program == NULL)
        return memory;
    const sgm__plan *plan = program->plan;
    for (int32_t i = 0; i < plan->state_count; i++)
        memory.state += (int64_t)bytes_of(&plan->states[i].type);
    for (int32_t i = 0; i < plan->input_count; i++)
        memory.inputs += (int64_t)bytes_of(&plan->inputs[i].type);
    memory.constants = plan->constant_bytes;
    memory.activations = plan->activation_bytes;
    memory.arena = plan->arena_bytes;
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
    return memory;
}

char *sgm_program_text(const sgm_program *program)
{
    return program != NULL ? sgm__plan_text(program->plan) : NULL;
}
