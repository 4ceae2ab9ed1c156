/* Parts of the update's gradients: what comes from each worker. */
#include "handlers/session.h"
#include "training/operator.h"
#include "training/trainer.h"

void sgm__forget_update_parts(sgm_operator *team)
{
    for (size_t i = 0; i < team->part_count; i++)
        team->parts[i].to = NULL;
}

void sgm__free_update_parts(sgm_operator *team)
{
    for (size_t i = 0; i < team->part_count; i++)
        sgm__free(team->parts[i].inputs);
    sgm__free(team->parts);
    sgm__text_free(&team->part_name);
}

static sgm_status find_inputs(sgm_operator *team, size_t part, const sgm_program *apply)
{
    sgm__update_part *found = &team->parts[part];
    size_t count = team->name_count;
    SGM_TRY(sgm__reserve(&found->inputs, &found->capacity, count, sizeof(int32_t)));
    for (size_t i = 0; i < count; i++) {
        team->part_name.length = 0;
        sgm__text_append(&team->part_name, SGM__PART_PREFIX "%zu.%s", part, team->names[i]);
        if (team->part_name.failed)
            return SGM_ERROR_MEMORY;
        found->inputs[i] = sgm__program_input(apply, team->part_name.data);
    }
    found->to = apply;
    return SGM_OK;
}

/* Input `index` of a part; -1: an update that does not ask for it. */
static sgm_status find_input(sgm_operator *team, size_t part, const sgm_program *apply, size_t index,
                             int32_t *input)
{
    if (part >= team->part_count) {
        SGM_TRY(sgm__reserve(&team->parts, &team->part_capacity, part + 1, sizeof *team->parts));
        while (team->part_count <= part)
            team->parts[team->part_count++] = (sgm__update_part){0};
    }
    if (team->parts[part].to != apply)
        SGM_TRY(find_inputs(team, part, apply));
    *input = team->parts[part].inputs[index];
    return SGM_OK;
}

sgm_status sgm__feed_part(sgm_operator *team, size_t part, sgm_program *apply, size_t index,
                          const void *memory, const sgm_tensor *value)
{
    sgm_session *session = team->trainer->session;
    int32_t input;
    SGM_TRY(find_input(team, part, apply, index, &input));
    if (input < 0)
        return SGM_OK;
    return value == NULL ? sgm__session_lend(session, apply, input, memory)
                         : sgm__session_feed_at(session, apply, input, value);
}
