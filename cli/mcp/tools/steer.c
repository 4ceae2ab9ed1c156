/* Tools that steer a training which runs. Each is a command of the control socket; the training says what
 * came of it, and its journal who asked and why. */
#include "mcp/tools.h"

#include "text/json_text.h"

/* --- values --- */

static const mcp_parameter set_parameters[] = {
    {"identifier", "of what is set, as list_settings has it; '*' for several", MCP_TEXT, .required = true},
    {"value", "the new value; a tensor takes a list, as deeply nested as it has dimensions", MCP_VALUE,
     .required = true},
    {0}};

/* Values travel as texts: the training knows their kinds. */
static sgm_status set_value(mcp_call *call)
{
    const json_t *value = json_object_get(call->arguments, "value");
    char *text = json_is_string(value) ? NULL : sgm__json_text(value);
    json_t *question =
        json_pack("{s:s, s:s*, s:s*}", "command", "set", "identifier", mcp_text(call, "identifier"), "value",
                  json_is_string(value) ? json_string_value(value) : text);
    sgm__free(text);
    return mcp_change(call, question);
}

static const mcp_parameter undo_parameters[] = {
    {"number", "of the change, as list_changes has it; left out: the newest one", MCP_INTEGER, .minimum = 1,
     .maximum = 9e15},
    {0}};

static sgm_status undo(mcp_call *call)
{
    json_t *question = json_pack("{s:s}", "command", "undo");
    if (mcp_has(call, "number"))
        json_object_set_new(question, "number", json_integer((json_int_t)mcp_integer(call, "number")));
    return mcp_change(call, question);
}

/* --- what is trained --- */

static const mcp_parameter pattern_parameters[] = {
    {"pattern", "of parameters: '1-dense.*', '*.weights'; '*' stands for any part of a name", MCP_TEXT,
     .required = true},
    {0}};

static sgm_status change_frozen(mcp_call *call, const char *command)
{
    return mcp_change(call,
                      json_pack("{s:s, s:s*}", "command", command, "pattern", mcp_text(call, "pattern")));
}

static sgm_status freeze_parameters(mcp_call *call)
{
    return change_frozen(call, "freeze");
}

static sgm_status unfreeze_parameters(mcp_call *call)
{
    return change_frozen(call, "unfreeze");
}

/* --- rules --- */

static const mcp_parameter attach_parameters[] = {
    {"rule",
     "a rule, or a hook with when it runs: 'if validation.loss increases 3 times then stop', 'every 2 epochs "
     "value_reporter(training.loss)'",
     MCP_TEXT, .required = true},
    {0}};

static sgm_status attach_rule(mcp_call *call)
{
    return mcp_change(call, json_pack("{s:s, s:s*}", "command", "attach", "hook", mcp_text(call, "rule")));
}

static const mcp_parameter name_parameters[] = {{"name", "as list_rules has it", MCP_TEXT, .required = true},
                                                {0}};

static sgm_status detach_rule(mcp_call *call)
{
    return mcp_change(call, json_pack("{s:s, s:s*}", "command", "detach", "name", mcp_text(call, "name")));
}

static const mcp_parameter press_parameters[] = {
    {"name", "of the button, as list_rules has it: rules with 'external NAME' see it at their next check",
     MCP_TEXT, .required = true},
    {0}};

static sgm_status press_button(mcp_call *call)
{
    return mcp_change(call, json_pack("{s:s, s:s*}", "command", "press", "name", mcp_text(call, "name")));
}

/* --- the clock --- */

static sgm_status pause_run(mcp_call *call)
{
    return mcp_change(call, json_pack("{s:s}", "command", "pause"));
}

static sgm_status resume_run(mcp_call *call)
{
    return mcp_change(call, json_pack("{s:s}", "command", "resume"));
}

static const mcp_parameter step_parameters[] = {
    {"iterations", "how many", MCP_INTEGER, .minimum = 1, .maximum = 1e9, .default_json = "1"}, {0}};

static sgm_status step_run(mcp_call *call)
{
    json_t *question = json_pack("{s:s}", "command", "step");
    json_object_set_new(question, "iterations", json_integer((json_int_t)mcp_integer(call, "iterations")));
    return mcp_change(call, question);
}

/* The training keeps the reason of a stop itself. */
static sgm_status stop_run(mcp_call *call)
{
    return mcp_change(call, json_pack("{s:s}", "command", "stop"));
}

static sgm_status reset_run(mcp_call *call)
{
    return mcp_change(call, json_pack("{s:s}", "command", "reset"));
}

/* --- checkpoints --- */

static const mcp_parameter save_parameters[] = {
    {"name", "of the checkpoint, without an ending; left out: 'iteration-N'", .kind = MCP_TEXT},
    {"replace", "replace a checkpoint that has this name; that takes the role admin", MCP_FLAG,
     .default_json = "false"},
    {0}};

static sgm_status save_checkpoint(mcp_call *call)
{
    return mcp_change(call, json_pack("{s:s, s:s*, s:s*}", "command", "save", "name", mcp_text(call, "name"),
                                      "replace", mcp_flag(call, "replace") ? "true" : NULL));
}

static const mcp_parameter restore_parameters[] = {
    {"name",
     "of a checkpoint of the run, without an ending: 'checkpoint', 'best', or as save_checkpoint named it",
     MCP_TEXT, .required = true},
    {0}};

static sgm_status restore_checkpoint(mcp_call *call)
{
    return mcp_change(call, json_pack("{s:s, s:s*}", "command", "restore", "name", mcp_text(call, "name")));
}

const mcp_tool mcp_steer_tools[] = {
    {"set_value", "Set a value",
     "Sets a value of a training, from the next iteration on: a learning rate, a batch size, a setting of a "
     "layer, or a tensor. All that match are set, or none. Look at list_settings first. Answers with the new "
     "values.",
     set_value, set_parameters, SGM__ROLE_STEER, .of_run = true, .idempotent = true},
    {"undo_change", "Take a change back",
     "Takes back a change of a value or a rule: the newest that a person or program made, or one by its "
     "number.",
     undo, undo_parameters, SGM__ROLE_STEER, .of_run = true},
    {"freeze_parameters", "Freeze parameters",
     "Has the parameters that a pattern matches stay as they are, from the next iteration on. Answers with "
     "all "
     "that is frozen.",
     freeze_parameters, pattern_parameters, SGM__ROLE_STEER, .of_run = true, .idempotent = true},
    {"unfreeze_parameters", "Train parameters again",
     "Trains the parameters that a pattern matches again, also a part of what a wider pattern froze. Answers "
     "with all that is still frozen.",
     unfreeze_parameters, pattern_parameters, SGM__ROLE_STEER, .of_run = true, .idempotent = true},
    {"attach_rule", "Attach a rule",
     "Attaches a rule (if CONDITION then ACTION) or another hook to a training, which from then on acts by "
     "itself.",
     attach_rule, attach_parameters, SGM__ROLE_STEER, .of_run = true},
    {"detach_rule", "Detach a rule", "Takes a rule or another hook off a training.", detach_rule,
     name_parameters, SGM__ROLE_STEER, .of_run = true},
    {"press_button", "Press a button", "Presses a button that a rule of the training waits for.",
     press_button, press_parameters, SGM__ROLE_STEER, .of_run = true},
    {"pause_run", "Pause a training",
     "Pauses a training after the iteration that runs now; resume_run lets it go on.", pause_run, NULL,
     SGM__ROLE_STEER, .of_run = true, .idempotent = true},
    {"resume_run", "Resume a training", "Lets a training that is paused go on.", resume_run, NULL,
     SGM__ROLE_STEER, .of_run = true, .idempotent = true},
    {"step_run", "Some iterations", "Does so many iterations of a training, then pauses it.", step_run,
     step_parameters, SGM__ROLE_STEER, .of_run = true},
    {"save_checkpoint", "Save a checkpoint",
     "Saves the state of a training under a name, to restore it later.", save_checkpoint, save_parameters,
     SGM__ROLE_STEER, .of_run = true},
    {"restore_checkpoint", "Go back to a checkpoint",
     "Takes a training back to a checkpoint. What it leaves is kept as a checkpoint, too, and the training "
     "goes on as a new branch: so set_value behind it tries another way from there.",
     restore_checkpoint, restore_parameters, SGM__ROLE_STEER, .of_run = true},
    {"reset_run", "Begin again",
     "Takes a training back to before its first iteration. What it leaves is kept as a checkpoint and a "
     "branch.",
     reset_run, NULL, SGM__ROLE_STEER, .of_run = true},
    {"stop_run", "Stop a training", "Ends a training for good, with a checkpoint.", stop_run, NULL,
     SGM__ROLE_STEER, .of_run = true, .destructive = true},
    {0}};
