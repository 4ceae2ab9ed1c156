/* Sums over workers within a program (the operation all_reduce): where they are, and access to their memory.
 *
 * A worker's run is cut into pieces at these sums (sgm__session_run_pieces). src/parallel/operator_reduce.c
 * reads each worker's addend, adds them up in double precision in the order of the workers, and writes the
 * sum into every worker's memory. A program that is run without workers leaves the addend as it is: the sum
 * over one.
 */
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

/* The memory of a sum in the arena, where results of kernels lie, and room for its elements on the host in
 * the same type. */
typedef struct staged {
    void *buffer;
    size_t offset, bytes;
    sgm_array host; /* its .data is freed by the caller of `stage` */
} staged;

static sgm_status stage(const sgm_program *program, const sgm__program_sum *sum, staged *made)
{
    const sgm__node *node = &program->plan->nodes[sum->node];
    *made = (staged){.buffer = program->memory.arena,
                     .offset = (size_t)node->place.offset,
                     .bytes = sum->elements * sgm_dtype_size(node->type.dtype)};
    made->host = (sgm_array){.dtype = node->type.dtype, .data = sgm__alloc(made->bytes)};
    return made->host.data != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__session_read_sum(const sgm_session *session, const sgm_program *program,
                                 const sgm__program_sum *sum, double *values)
{
    const sgm_handler *handler = session->handler;
    staged s;
    SGM_TRY(stage(program, sum, &s));
    sgm_status status = handler->type->read(handler->self, s.buffer, s.offset, s.host.data, s.bytes);
    for (size_t i = 0; i < sum->elements && status == SGM_OK; i++)
        values[i] = sgm_array_load(&s.host, (int64_t)i);
    sgm__free(s.host.data);
    return status;
}

sgm_status sgm__session_write_sum(const sgm_session *session, const sgm_program *program,
                                  const sgm__program_sum *sum, const double *values)
{
    const sgm_handler *handler = session->handler;
    staged s;
    SGM_TRY(stage(program, sum, &s));
    for (size_t i = 0; i < sum->elements; i++)
        sgm_array_store(&s.host, (int64_t)i, values[i]);
    sgm_status status = handler->type->write(handler->self, s.buffer, s.offset, s.host.data, s.bytes);
    sgm__free(s.host.data);
    return status;
}
