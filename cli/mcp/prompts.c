/* Prompts: ways to begin that a person chooses from in the program that uses this server. */
#include "mcp/server.h"

typedef struct prompt_row {
    const char *name, *title, *doc;
    const char *argument, *argument_doc; /* the only one, which is required */
    const char *before, *behind;         /* the text, around the argument */
} prompt_row;

static const prompt_row prompts[] = {
    {"review_run", "Review a run", "How a training does, what is wrong with it, and what to try", "run",
     "name of the run", "Look at the run '",
     "' with get_run, get_curves and list_interventions, and at its log for warnings. Say how far it is, "
     "whether it still learns, whether it overfits (training and validation apart), and what you would "
     "change and why. Change nothing."},
    {"compare", "Compare runs", "Which of several trainings is best, and which setting made the difference",
     "runs", "names or a pattern, such as digits-*", "Compare the runs '",
     "' with compare_runs and get_curves. Say which is best by its validation values, which differences of "
     "the configurations explain it, and what is not known because it was not varied."},
    {"steer_run", "Steer a training", "Look after a training while it runs", "run", "name of the run",
     "Look after the training '",
     "'. Read list_settings first. Change one thing at a time, with a reason, after a dry run; save a "
     "checkpoint before a change that may do harm; then wait_for_run for a few epochs, and compare the "
     "curves before and behind it. Take back what did not help with undo_change. Stop when the validation "
     "values do not get better any more, and say what you did."},
};
#define PROMPT_COUNT (sizeof prompts / sizeof *prompts)

json_t *mcp_prompts_list(mcp_server *server, mcp_request *request, mcp_failure *failure)
{
    (void)server;
    if (json_object_get(request->params, "cursor") != NULL)
        return mcp_refuse(failure, RPC_INVALID_PARAMETERS,
                          "prompts/list: there is one page, and no 'cursor'");
    json_t *list = json_array();
    for (size_t i = 0; i < PROMPT_COUNT; i++) {
        const prompt_row *p = &prompts[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:[{s:s, s:s, s:b}]}", "name", p->name,
                                              "title", p->title, "description", p->doc, "arguments", "name",
                                              p->argument, "description", p->argument_doc, "required", 1));
    }
    return json_pack("{s:o}", "prompts", list);
}

json_t *mcp_prompts_get(mcp_server *server, mcp_request *request, mcp_failure *failure)
{
    (void)server;
    const char *name = json_string_value(json_object_get(request->params, "name"));
    for (size_t i = 0; name != NULL && i < PROMPT_COUNT; i++) {
        const prompt_row *p = &prompts[i];
        const char *given =
            json_string_value(json_object_get(json_object_get(request->params, "arguments"), p->argument));
        if (strcmp(p->name, name) != 0)
            continue;
        if (given == NULL)
            return mcp_refuse(failure, RPC_INVALID_PARAMETERS, "the prompt %s needs the text '%s': %s", name,
                              p->argument, p->argument_doc);
        char *text = sgm__format("%s%s%s", p->before, given, p->behind);
        json_t *result =
            json_pack("{s:s, s:[{s:s, s:{s:s, s:s}}]}", "description", p->doc, "messages", "role", "user",
                      "content", "type", "text", "text", text != NULL ? text : "");
        sgm__free(text);
        return result;
    }
    return mcp_refuse(failure, RPC_INVALID_PARAMETERS, "there is no prompt '%.100s'; prompts/list has all",
                      name != NULL ? name : "");
}
