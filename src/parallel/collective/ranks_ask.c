/* Rank 0 asks the others for optimiser state that they have, amid a meeting. */
#include "parallel/collective/ranks.h"

sgm_status sgm__ranks_ask(sgm__ranks *ranks, const char *state)
{
    size_t length = state != NULL ? strlen(state) : 0;
    sgm__rank_message message = {
        .bytes = length, .asks = 1, .owner = state != NULL ? sgm__ranks_slot_owner(ranks, state) : 0};
    char *name = sgm__strdup(state != NULL ? state : "");
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__ranks_send(ranks, &message, sizeof message, "a meeting");
    if (status == SGM_OK && length > 0)
        status = sgm__ranks_send(ranks, name, length, "a meeting");
    sgm__free(name);
    return status;
}
