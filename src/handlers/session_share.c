/* What sessions that train together share without copies: states, outputs and inputs read in place.
 *
 * The callers are workers and ranks in src/parallel/: a worker's session uses the states of the trainer's
 * session, the trainer's update reads gradients where the workers' sessions computed them, and ranks on one
 * machine keep states and arenas in memory that all of them map. Memory that is shared here belongs to
 * somebody else and must live longer than its use. Pointers can be used only with handlers whose buffers are
 * host memory; sgm__session_addend works with every handler.
 */
#include "handlers/session.h"

#include "tensor/tensor_internal.h"

bool sgm__session_is_host(const sgm_session *session)
{
    return (session->handler->type->flags & SGM__HANDLER_HOST) != 0;
}

void *sgm__session_state_memory(const sgm_session *session, const char *name)
{
    const sgm__session_state *known = sgm__session_is_host(session) ? sgm__session_find(session, name) : NULL;
    return known != NULL ? known->buffer : NULL;
}

sgm_status sgm__session_addend(const sgm_session *session, const char *name, sgm__addend *addend)
{
    const sgm__session_state *known = sgm__session_find(session, name);
    if (known == NULL)
        return sgm_fail(SGM_ERROR_STATE, "state '%s' cannot be summed: it has no value yet", name);
    *addend = (sgm__addend){known->buffer, sgm_shape_elements(&known->type.shape)};
    return SGM_OK;
}

sgm_status sgm__session_share(sgm_session *session, const sgm_session *owner, const char *name)
{
    const sgm__session_state *known = sgm__session_find(owner, name);
    if (known == NULL || sgm__session_find(session, name) != NULL)
        return sgm_fail(SGM_ERROR_STATE, "state '%s' cannot be shared: %s", name,
                        known == NULL ? "it has no value yet" : "there is one of that name");
    return sgm__session_add(
        session, name, &(sgm__session_state){.type = known->type, .buffer = known->buffer, .shared = true});
}

static bool is_read(const sgm_session *session, const char *name)
{
    for (const sgm_program *program = session->programs; program != NULL; program = program->next)
        for (int32_t i = 0; i < program->plan->state_count; i++)
            if (strcmp(sgm__plan_string(program->plan, program->plan->states[i].name), name) == 0)
                return true;
    return false;
}

/* Room in the index is there, as no name is added. */
sgm_status sgm__session_end_sharing(sgm_session *session)
{
    sgm_status status = SGM_OK;
    size_t kept = 0;
    for (size_t i = 0; i < session->state_count && status == SGM_OK; i++)
        if (session->states[i].shared && is_read(session, session->states[i].name))
            status = sgm__session_bring_home(session, session->states[i].name);
    sgm__name_index_clear(&session->state_index);
    for (size_t i = 0; i < session->state_count; i++) {
        sgm__session_state *known = &session->states[i];
        if (known->shared) {
            sgm__free(known->name);
            continue;
        }
        sgm__name_index_add(&session->state_index, known->name, kept);
        session->states[kept++] = *known;
    }
    session->state_count = kept;
    return status;
}

/* Programs keep copies of the pointer, so all of them are searched for states of this name. */
void sgm__session_place_state(sgm_session *session, const char *name, void *memory)
{
    sgm__session_state *known = sgm__session_find(session, name);
    if (!known->shared)
        session->handler->type->release(session->handler->self, known->buffer);
    known->buffer = memory;
    known->shared = true;
    session->changes++;
    for (sgm_program *program = session->programs; program != NULL; program = program->next)
        for (int32_t i = 0; i < program->plan->state_count; i++)
            if (strcmp(sgm__plan_string(program->plan, program->plan->states[i].name), name) == 0)
                program->memory.states[i] = memory;
}

sgm_status sgm__session_bring_home(sgm_session *session, const char *name)
{
    sgm__session_state *known = sgm__session_find(session, name);
    size_t bytes = sgm__type_bytes(&known->type);
    void *own = NULL;
    SGM_TRY(session->handler->type->allocate(session->handler->self, bytes, &own));
    memcpy(own, known->buffer, bytes);
    sgm__session_place_state(session, name, own);
    known->shared = false;
    return SGM_OK;
}

static int32_t find_binding(const sgm__plan *plan, const sgm__binding *bindings, int32_t count,
                            const char *name)
{
    for (int32_t i = 0; i < count && name != NULL; i++)
        if (strcmp(sgm__plan_string(plan, bindings[i].name), name) == 0)
            return i;
    return -1;
}

int32_t sgm__program_input(const sgm_program *program, const char *name)
{
    return program != NULL
               ? find_binding(program->plan, program->plan->inputs, program->plan->input_count, name)
               : -1;
}

int32_t sgm__program_output(const sgm_program *program, const char *name)
{
    return program != NULL
               ? find_binding(program->plan, program->plan->outputs, program->plan->output_count, name)
               : -1;
}

/* Outputs always lie in the arena. */
const void *sgm__session_output_memory(const sgm_session *session, const sgm_program *program, int32_t output)
{
    const sgm__node *node = &program->plan->nodes[program->plan->outputs[output].node];
    return (const unsigned char *)session->arena + node->place.offset;
}

/* The step that computes a node. -1: the node is a view or a source. */
static int32_t step_of(const sgm__plan *plan, int32_t node)
{
    for (int32_t i = 0; i < plan->step_count; i++)
        if (sgm__step_makes(plan, &plan->steps[i], node))
            return i;
    return -1;
}

/* An output that is a view is ready when the node whose memory it shows is. */
int32_t sgm__program_output_ready(const sgm_program *program, int32_t output)
{
    const sgm__plan *plan = program->plan;
    int32_t node = plan->outputs[output].node, step = step_of(plan, node);
    while (step < 0 && plan->nodes[node].input_count > 0) { /* a view shows its first operand's memory */
        node = plan->operands[plan->nodes[node].first_input];
        step = step_of(plan, node);
    }
    return step < 0 ? plan->step_count : step + 1;
}

/* The input's own buffer is released the first time; free_program releases only inputs that are not
 * shared. */
sgm_status sgm__session_share_memory(sgm_session *session, sgm_program *program, int32_t input,
                                     const void *memory)
{
    if (program->shared == NULL)
        program->shared = sgm__calloc((size_t)program->plan->input_count, sizeof(bool));
    if (program->shared == NULL)
        return SGM_ERROR_MEMORY;
    if (!program->shared[input])
        session->handler->type->release(session->handler->self, program->memory.inputs[input]);
    program->shared[input] = program->fed[input] = true;
    /* Handlers only read inputs, so the cast away from const is safe. */
    program->memory.inputs[input] = (void *)(uintptr_t)memory;
    return SGM_OK;
}

/* The fast way copies a contiguous range of bytes. Otherwise a slice of the tensor goes through
 * sgm_session_feed, which converts it or refuses its shape. */
sgm_status sgm__session_feed_part(sgm_session *session, sgm_program *program, const char *input,
                                  sgm_tensor *values, int64_t first, int64_t count)
{
    int32_t index = sgm__program_input(program, input);
    if (index < 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "the program has no input '%s'", input);
    const sgm_type *type = &program->plan->inputs[index].type;
    const sgm_shape *shape = sgm_tensor_shape(values);
    int64_t examples = shape->rank > 0 ? shape->dims[0] : 0, elements = sgm_shape_elements(shape);
    bool fits = examples > 0 && first >= 0 && count > 0 && first + count <= examples &&
                elements / examples * count == sgm_shape_elements(&type->shape);
    if (fits && sgm_tensor_is_contiguous(values) && sgm_tensor_dtype(values) == type->dtype) {
        size_t size = (size_t)(elements / examples) * sgm_dtype_size(type->dtype);
        const unsigned char *begin =
            (const unsigned char *)sgm_tensor_const_data(values) + (size_t)first * size;
        return sgm__session_write_input(session, program, index, begin);
    }
    sgm_tensor *part = sgm_tensor_slice(values, 0, first, first + count, 1);
    sgm_status status = part != NULL ? sgm_session_feed(session, program, input, part) : sgm_last_status();
    sgm_tensor_free(part);
    return status;
}
