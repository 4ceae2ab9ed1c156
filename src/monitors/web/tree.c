/* GET /api/tree: what a trainer has in its registry, with kind, value, bounds and description of each
 * entry. It is the command "list" of the control socket; steer.c has the route. */
#include "monitors/web/steer.h"

/* All values are read at one moment between two iterations, with the trainer's lock taken once, rather
 * than each on its own. */
sgm_status sgm__web_get_tree(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *identifier = sgm__http_query(request, "identifier", 0);
    json_t *command = json_pack("{s:s, s:b}", "command", "list", "values", 1);
    if (identifier != NULL)
        json_object_set_new(command, "identifier", json_string(identifier));
    sgm_status status = sgm__web_command(watched, request, command, answer);
    json_decref(command);
    return status;
}
