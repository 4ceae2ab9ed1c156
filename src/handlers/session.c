/* Sessions: creating and freeing them, their states by name, and their programs by structure.
 *
 * Feeding, running and reading are in session_run.c; what sessions share with others is in session_share.c.
 * Recorded graphs come in through sgm_session_prepare, which plans them (plan/plan.c) and compiles them with
 * the handler unless an equal graph was compiled before. All memory is allocated here, when a program is
 * compiled, so that a run allocates nothing.
 */
#include "handlers/session.h"

#include "graph/passes.h"
#include "tensor/tensor_internal.h"
#include <sigma/base.h>

typedef sgm__session_state state;

/* The handler stays the caller's and must outlive the session. A NULL handler is what a failed
 * sgm_handler_create returns. */
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

/* Returns a buffer to the handler; NULL is allowed. */
static void release(sgm_session *session, void *buffer)
{
    if (buffer != NULL)
        session->handler->type->release(session->handler->self, buffer);
}

/* Frees a program that may be half made: `compile` fails at any allocation. */
static void free_program(sgm_program *program)
{
    sgm_session *session = program->session;
    if (program->executable != NULL)
        session->handler->type->discard(session->handler->self, program->executable);
    for (int32_t i = 0; program->plan != NULL && i < program->plan->input_count; i++) {
        if (program->memory.inputs != NULL && (program->shared == NULL || !program->shared[i]))
            release(session, program->memory.inputs[i]);
        if (program->input_stages != NULL)
            sgm_tensor_free(program->input_stages[i]);
    }
    for (int32_t i = 0; program->plan != NULL && i < program->plan->output_count; i++)
        if (program->output_stages != NULL)
            sgm_tensor_free(program->output_stages[i]);
    if (!sgm__session_is_host(session))
        release(session, program->memory.constants);
    sgm__free(program->memory.inputs);
    sgm__free(program->memory.states);
    sgm__free(program->input_stages);
    sgm__free(program->output_stages);
    sgm__free(program->fed);
    sgm__free(program->shared);
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
    sgm__name_index_free(&session->state_index);
    sgm__free(session->states);
    sgm__free(session);
}

/* The count starts again even after a failure, since `check` of a handler clears what it reports. The outputs
 * of a run with a failure must not be read, so no program is the newest one then. */
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

sgm__session_state *sgm__session_find(const sgm_session *session, const char *name)
{
    uintptr_t place;
    bool known = name != NULL && sgm__name_index_find(&session->state_index, name, &place);
    return known ? &session->states[place] : NULL;
}

sgm_status sgm__session_add(sgm_session *session, const char *name, const state *added)
{
    SGM_TRY(
        sgm__reserve(&session->states, &session->state_capacity, session->state_count + 1, sizeof(state)));
    SGM_TRY(sgm__name_index_reserve(&session->state_index, 1));
    char *copy = sgm__strdup(name);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    session->states[session->state_count] = *added;
    session->states[session->state_count].name = copy;
    sgm__name_index_add(&session->state_index, copy, session->state_count++);
    return SGM_OK;
}

/* Fails with the name of the state that is spelled most similarly, if there is one. */
static sgm_status unknown_state(const sgm_session *session, const char *name)
{
    const char *near = NULL;
    name = name != NULL ? name : "";
    const char **names = sgm__alloc((session->state_count + 1) * sizeof(char *));
    for (size_t i = 0; names != NULL && session->states != NULL && i < session->state_count; i++)
        names[i] = session->states[i].name;
    if (names != NULL)
        near = sgm__nearest(name, names, session->state_count);
    sgm__free(names);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "the session has no state '%s'%s%s%s", name,
                    near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                    near != NULL ? "'?" : "");
}

/* Adds a state with zeroed memory of the handler. */
static sgm_status define_state(sgm_session *session, const char *name, sgm_type type, state **defined)
{
    state added = {.type = type};
    if (session->handler->type->allocate(session->handler->self, sgm__type_bytes(&type), &added.buffer) !=
        SGM_OK)
        return sgm__fail_within("state '%s'", name);
    sgm_status status = sgm__session_add(session, name, &added);
    if (status != SGM_OK)
        release(session, added.buffer);
    else
        *defined = &session->states[session->state_count - 1];
    return status;
}

/* A value that is not contiguous is copied before the state is defined, so that a failure leaves no state
 * without a value. */
sgm_status sgm_session_set(sgm_session *session, const char *name, const sgm_tensor *value)
{
    if (session == NULL || name == NULL || value == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "setting a state wants a session, a name and a value");
    sgm_type type = {sgm_tensor_dtype(value), *sgm_tensor_shape(value)};
    state *known = sgm__session_find(session, name);
    if (known != NULL &&
        (known->type.dtype != type.dtype || !sgm_shape_equal(&known->type.shape, &type.shape))) {
        char is[128], wanted[128];
        return sgm_fail(SGM_ERROR_SHAPE, "state '%s' is %s %s; the value is %s %s", name,
                        sgm_dtype_name(known->type.dtype),
                        sgm_shape_text(&known->type.shape, wanted, sizeof wanted), sgm_dtype_name(type.dtype),
                        sgm_shape_text(&type.shape, is, sizeof is));
    }
    /* The copy comes first: if it fails, no state has been defined. */
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
                                               sgm_tensor_const_data(value), sgm__type_bytes(&type));
    sgm_tensor_free(copy);
    session->changes++;
    return status;
}

sgm_tensor *sgm_session_get(sgm_session *session, const char *name)
{
    sgm_type type;
    if (sgm_session_state_type(session, name, &type) != SGM_OK || sgm__session_check(session) != SGM_OK)
        return NULL;
    const state *known = sgm__session_find(session, name);
    sgm_tensor *tensor = sgm__tensor_create_unset(known->type.dtype, &known->type.shape);
    if (tensor == NULL)
        return NULL;
    if (session->handler->type->read(session->handler->self, known->buffer, 0, sgm_tensor_data(tensor),
                                     sgm__type_bytes(&known->type)) == SGM_OK)
        return tensor;
    sgm_tensor_free(tensor);
    return NULL;
}

bool sgm_session_has(const sgm_session *session, const char *name)
{
    return session != NULL && sgm__session_find(session, name) != NULL;
}

const char *sgm_session_state_at(const sgm_session *session, size_t index)
{
    return session != NULL && index < session->state_count ? session->states[index].name : NULL;
}

sgm_status sgm_session_state_type(const sgm_session *session, const char *name, sgm_type *type)
{
    const state *known = session != NULL ? sgm__session_find(session, name) : NULL;
    if (known == NULL)
        return session != NULL ? unknown_state(session, name)
                               : sgm_fail(SGM_ERROR_ARGUMENT, "the session is NULL");
    *type = known->type;
    return SGM_OK;
}

/* --- programs --- */

/* Points the program's memory.states to the buffers of the session's states, which must exist with equal
 * types. */
static sgm_status bind_states(sgm_program *program)
{
    const sgm__plan *plan = program->plan;
    for (int32_t i = 0; i < plan->state_count; i++) {
        const char *name = sgm__plan_string(plan, plan->states[i].name);
        const state *known = sgm__session_find(program->session, name);
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

/* Replaces the arena by one of `bytes` from a source, or from the handler if source->grow is NULL. The
 * handler's old arena is released only after the new one exists; one that came from a source is that source's
 * to release. */
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

/* Gives the handler the plan's constants; one of the host reads them where they are. */
static sgm_status place_constants(sgm_program *program)
{
    const sgm__plan *plan = program->plan;
    const sgm__handler_type *type = program->session->handler->type;
    void *self = program->session->handler->self;
    if (sgm__session_is_host(program->session)) {
        program->memory.constants = plan->constants;
        return SGM_OK;
    }
    SGM_TRY(type->allocate(self, (size_t)plan->constant_bytes, &program->memory.constants));
    return plan->constant_bytes > 0 ? type->write(self, program->memory.constants, 0, plan->constants,
                                                  (size_t)plan->constant_bytes)
                                    : SGM_OK;
}

/* Allocates what a program needs: inputs and constants of its own, and a larger arena for the session if this
 * plan needs more than all before. Arrays have one entry more than needed, so that no size is 0. */
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
        SGM_TRY(type->allocate(self, sgm__type_bytes(&plan->inputs[i].type), &program->memory.inputs[i]));
    SGM_TRY(place_constants(program));
    return session->arena != NULL && plan->arena_bytes <= session->arena_bytes
               ? SGM_OK
               : place_arena(session, &session->source, plan->arena_bytes);
}

/* Nothing happens if the arena has this source already. */
sgm_status sgm__session_take_arena_from(sgm_session *session, const sgm__arena_source *source)
{
    return session->source.grow == source->grow && session->source.user == source->user
               ? SGM_OK
               : place_arena(session, source, session->arena_bytes);
}

/* Adds to a failure for lack of memory how much the program needs of each kind. */
static void tell_sizes(const sgm__plan *plan)
{
    double states = 0, inputs = 0;
    char text[5][64];
    for (int32_t i = 0; i < plan->state_count; i++)
        states += (double)sgm__type_bytes(&plan->states[i].type);
    for (int32_t i = 0; i < plan->input_count; i++)
        inputs += (double)sgm__type_bytes(&plan->inputs[i].type);
    sgm__fail_within("a program with %s of state, %s of inputs, %s of constants and %s of arena (for %s of "
                     "activations)",
                     sgm_bytes_text(states, text[0], sizeof text[0]),
                     sgm_bytes_text(inputs, text[1], sizeof text[1]),
                     sgm_bytes_text((double)plan->constant_bytes, text[2], sizeof text[2]),
                     sgm_bytes_text((double)plan->arena_bytes, text[3], sizeof text[3]),
                     sgm_bytes_text((double)plan->activation_bytes, text[4], sizeof text[4]));
}

/* The plan of a graph whose constants are folded. */
static sgm_status plan_folded(sgm_program *program, const sgm_graph *graph, const sgm__memory_budget *budget)
{
    sgm_handler *handler = program->session->handler;
    sgm_graph *folded;
    SGM_TRY(sgm__session_fold(handler, graph, &folded));
    sgm_status status =
        sgm__plan_create_within(folded != NULL ? folded : graph, handler, budget, &program->plan);
    sgm_graph_free(folded);
    return status;
}

static sgm_status plan(sgm_program *program, const sgm_graph *graph, const sgm__memory_budget *budget)
{
    if (program->inference == 0)
        return plan_folded(program, graph, budget);
    sgm_graph *special;
    SGM_TRY(sgm__session_specialise(program->session, graph, program->inference, &special));
    sgm_status status = plan_folded(program, special, budget);
    sgm_graph_free(special);
    return status;
}

/* Memory is allocated before the handler compiles, which may take long, so that a program that does not fit
 * fails soon. */
static sgm_status compile(sgm_program *program, const sgm_graph *graph, const sgm__memory_budget *budget)
{
    sgm_handler *handler = program->session->handler;
    program->graph = sgm__graph_copy(graph);
    if (program->graph == NULL)
        return sgm_last_status() != SGM_OK ? sgm_last_status() : SGM_ERROR_MEMORY;
    SGM_TRY(plan(program, graph, budget));
    sgm_status status = allocate_memory(program);
    if (status == SGM_OK)
        status = bind_states(program);
    if (status == SGM_OK)
        status = handler->type->compile(handler->self, program->plan, &program->executable);
    sgm__plan_end_fills(program->plan);
    if (status == SGM_ERROR_MEMORY)
        tell_sizes(program->plan);
    return status;
}

/* Looks for a program with the hash of the graph's structure, then compares the graphs, as hashes may
 * collide. The list is usually short: one program for each purpose and batch size. */
sgm_program *sgm__session_prepare_as(sgm_session *session, const sgm_graph *graph,
                                     const sgm__memory_budget *budget, uint32_t inference)
{
    if (session == NULL)
        sgm_fail(SGM_ERROR_ARGUMENT, "the session is NULL");
    if (session == NULL || sgm_graph_status(graph) != SGM_OK)
        return NULL;
    uint64_t hash = sgm_graph_hash(graph);
    for (sgm_program *known = session->programs; known != NULL; known = known->next)
        if (known->hash == hash && known->inference == inference &&
            sgm__graph_structure_equal(known->graph, graph))
            return known;
    sgm_program *program = sgm__calloc(1, sizeof(sgm_program));
    if (program == NULL)
        return NULL;
    program->session = session;
    program->hash = hash;
    program->inference = inference;
    if (compile(program, graph, budget) != SGM_OK) {
        free_program(program);
        return NULL;
    }
    program->next = session->programs;
    session->programs = program;
    if (inference != 0) {
        session->inference_programs++;
        session->inference_changes = session->changes;
    }
    return program;
}

sgm_program *sgm__session_prepare_within(sgm_session *session, const sgm_graph *graph,
                                         const sgm__memory_budget *budget)
{
    return sgm__session_prepare_as(session, graph, budget, 0);
}

sgm_status sgm__session_drop_inference(sgm_session *session)
{
    sgm_status status = sgm__session_check(session);
    session->newest = NULL;
    for (sgm_program **at = &session->programs; *at != NULL;) {
        sgm_program *program = *at;
        if (program->inference == 0) {
            at = &program->next;
            continue;
        }
        *at = program->next;
        free_program(program);
    }
    session->inference_programs = 0;
    return status;
}

sgm_program *sgm_session_prepare(sgm_session *session, const sgm_graph *graph)
{
    return sgm__session_prepare_within(session, graph, NULL);
}
