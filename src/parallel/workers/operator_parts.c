/* Inputs of the update's program: one for each parameter and each part. A part is what one worker adds to the
 * gradients, or, where ranks have summed them already, the only one.
 *
 * Places of inputs are found by name once for each program (sgm__update_part.to), as comparing names would
 * cost more than the update of a small network. In the steady state nothing here allocates. */
#include "handlers/session.h"
#include "parallel/workers/workers.h"
#include "trainer/trainer.h"

void sgm__forget_update_parts(sgm_operator *parallel)
{
    for (size_t i = 0; i < parallel->part_count; i++)
        parallel->parts[i].to = NULL;
}

void sgm__free_update_parts(sgm_operator *parallel)
{
    for (size_t i = 0; i < parallel->part_count; i++)
        sgm__free(parallel->parts[i].inputs);
    sgm__free(parallel->parts);
    sgm__text_free(&parallel->part_name);
}

/* Finds the inputs of one part by their names, "trainer.part.N.PARAMETER". */
static sgm_status find_inputs(sgm_operator *parallel, size_t part, const sgm_program *apply)
{
    sgm__update_part *found = &parallel->parts[part];
    size_t count = parallel->name_count;
    SGM_TRY(sgm__reserve(&found->inputs, &found->capacity, count, sizeof(int32_t)));
    for (size_t i = 0; i < count; i++) {
        parallel->part_name.length = 0;
        sgm__text_append(&parallel->part_name, SGM__PART_PREFIX "%zu.%s", part, parallel->names[i]);
        if (parallel->part_name.failed)
            return SGM_ERROR_MEMORY;
        found->inputs[i] = sgm__program_input(apply, parallel->part_name.data);
    }
    found->to = apply;
    return SGM_OK;
}

/* *input becomes the place of an input of a part; -1: the update has no such input, as another rank updates
 * the parameter. */
static sgm_status find_input(sgm_operator *parallel, size_t part, const sgm_program *apply, size_t index,
                             int32_t *input)
{
    if (part >= parallel->part_count) {
        SGM_TRY(sgm__reserve(&parallel->parts, &parallel->part_capacity, part + 1, sizeof *parallel->parts));
        while (parallel->part_count <= part)
            parallel->parts[parallel->part_count++] = (sgm__update_part){0};
    }
    if (parallel->parts[part].to != apply)
        SGM_TRY(find_inputs(parallel, part, apply));
    *input = parallel->parts[part].inputs[index];
    return SGM_OK;
}

sgm_status sgm__feed_part(sgm_operator *parallel, size_t part, sgm_program *apply, size_t index,
                          const void *memory, const sgm_tensor *value)
{
    sgm_session *session = sgm__learner_of(parallel->trainer)->session;
    int32_t input;
    SGM_TRY(find_input(parallel, part, apply, index, &input));
    if (input < 0)
        return SGM_OK;
    return value == NULL ? sgm__session_share_memory(session, apply, input, memory)
                         : sgm__session_feed_at(session, apply, input, value);
}
