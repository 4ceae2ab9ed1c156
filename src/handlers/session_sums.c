/* Sums of workers within a program (all_reduce): where they are made, and their memory. */
#include "handlers/session.h"
#include "ops/ops.h"

sgm_status sgm__program_sums(const sgm_program *program, sgm__program_sum **sums, size_t *count,
                             size_t *capacity)
{
    const sgm__plan *plan = program->plan;
    *count = 0;
    for (int32_t i = 0; i < plan->step_count; i++) {
        int32_t node = plan->order[plan->steps[i].first];
        if (plan->nodes[node].op != &sgm__op_all_reduce)
            continue;
        SGM_TRY(sgm__reserve(sums, capacity, *count + 1, sizeof **sums));
        int64_t elements = sgm_shape_elements(&plan->nodes[node].type.shape);
        (*sums)[(*count)++] = (sgm__program_sum){i + 1, node, (size_t)elements};
    }
    return SGM_OK;
}

/* The handler's buffer that the sum lies in, and where in it. */
static void *buffer_of(const sgm_program *program, const sgm__program_sum *sum, size_t *offset)
{
    const sgm__place *place = &program->plan->nodes[sum->node].place;
    *offset = (size_t)place->offset;
    return place->store == SGM__STORE_STATE ? program->memory.states[place->index] : program->memory.arena;
}

/* In the handler's type: memory for that, which the caller frees; NULL: failed. */
static void *stage(const sgm_program *program, const sgm__program_sum *sum, sgm_array *array)
{
    sgm_dtype dtype = program->plan->nodes[sum->node].type.dtype;
    void *memory = sgm__alloc(sum->elements * sgm_dtype_size(dtype));
    *array = (sgm_array){.dtype = dtype, .data = memory};
    return memory;
}

sgm_status sgm__session_read_sum(const sgm_session *session, const sgm_program *program,
                                 const sgm__program_sum *sum, double *values)
{
    const sgm_handler *handler = session->handler;
    sgm_array array;
    size_t offset;
    void *memory = stage(program, sum, &array), *buffer = buffer_of(program, sum, &offset);
    if (memory == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = handler->type->read(handler->self, buffer, offset, memory,
                                            sum->elements * sgm_dtype_size(array.dtype));
    for (size_t i = 0; i < sum->elements && status == SGM_OK; i++)
        values[i] = sgm_array_load(&array, (int64_t)i);
    sgm__free(memory);
    return status;
}

sgm_status sgm__session_write_sum(const sgm_session *session, const sgm_program *program,
                                  const sgm__program_sum *sum, const double *values)
{
    const sgm_handler *handler = session->handler;
    sgm_array array;
    size_t offset;
    void *memory = stage(program, sum, &array), *buffer = buffer_of(program, sum, &offset);
    if (memory == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < sum->elements; i++)
        sgm_array_store(&array, (int64_t)i, values[i]);
    sgm_status status = handler->type->write(handler->self, buffer, offset, memory,
                                             sum->elements * sgm_dtype_size(array.dtype));
    sgm__free(memory);
    return status;
}
