/* What a trainer has: identifiers with kind, value, bounds and meaning. */
#include "monitors/web/steer.h"

/* Values are not waited for one by one: all are read in between two iterations. */
sgm_status sgm__web_get_tree(void *web, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *identifier = sgm__http_query(request, "identifier", 0);
    sgm__web_trainer *watched;
    SGM_TRY(sgm__web_borrow(web, sgm__http_query(request, "trainer", 0), &watched));
    json_t *command = json_pack("{s:s, s:b}", "command", "list", "values", 1), *made = json_object();
    if (identifier != NULL)
        json_object_set_new(command, "identifier", json_string(identifier));
    sgm_status status = sgm__web_command(request, watched, command, made);
    sgm__web_give_back(watched);
    json_decref(command);
    if (status == SGM_OK)
        return sgm__http_answer_json(answer, made);
    json_decref(made);
    return status;
}
