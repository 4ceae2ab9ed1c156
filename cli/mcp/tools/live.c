/* Tools that ask a training which runs: values, settings, layers, rules. */
#include "mcp/tools.h"

/* Asks, and gives the list of the answer that has this name; freed with json_decref. */
static sgm_status list_of(const mcp_call *call, json_t *question, const char *name, json_t **list)
{
    json_t *answer;
    *list = NULL;
    SGM_TRY(mcp_ask_run(call, question, &answer));
    *list = json_incref(json_object_get(answer, name));
    json_decref(answer);
    return json_is_array(*list) ? SGM_OK : sgm_fail(SGM_ERROR_FORMAT, "the answer has no list '%s'", name);
}

/* Gives the client the same list as it is, under the name `as`. */
static sgm_status pass_on(mcp_call *call, json_t *question, const char *name, const char *as)
{
    json_t *list;
    SGM_TRY(list_of(call, question, name, &list));
    json_object_set_new(call->answer, as, list);
    return SGM_OK;
}

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* --- get_values --- */

static const mcp_parameter value_parameters[] = {
    {"identifier", "of the values; '*' stands for any part of a name, as in 'network.layers.*.weights'",
     MCP_TEXT, .required = true},
    {0}};

static sgm_status get_values(mcp_call *call)
{
    return pass_on(call,
                   json_pack("{s:s, s:s*}", "command", "get", "identifier", mcp_text(call, "identifier")),
                   "values", "values");
}

/* --- list_settings --- */

static const mcp_parameter setting_parameters[] = {
    {"identifier", "only what is below, or matches: 'optimiser', 'network.layers.*'", .kind = MCP_TEXT},
    {"settable", "only what may be set; else all that may be read as well", MCP_FLAG, .default_json = "true"},
    {"tensors", "also parameters and other tensors", MCP_FLAG, .default_json = "false"},
    {0}};

/* Only what a reader of the list needs: members of the training's own list that say nothing are left out. */
static json_t *setting_of(const json_t *entry)
{
    static const char *const members[] = {"identifier", "kind",    "value",   "unit",   "minimum",
                                          "maximum",    "choices", "default", "effect", "doc"};
    json_t *setting = json_object();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(entry, members[i]);
        if (value != NULL && !json_is_null(value))
            json_object_set(setting, members[i], value);
    }
    return setting;
}

static sgm_status list_settings(mcp_call *call)
{
    json_t *list, *settings = json_array(), *entry;
    size_t i;
    json_t *question = json_pack("{s:s, s:s*, s:s*}", "command", "list", "identifier",
                                 mcp_text(call, "identifier"), "values", "true");
    json_object_set_new(call->answer, "settings", settings);
    SGM_TRY(list_of(call, question, "entries", &list));
    json_array_foreach(list, i, entry)
    {
        bool settable = json_is_true(json_object_get(entry, "settable")),
             tensor = strcmp(member(entry, "kind"), "tensor") == 0;
        if ((settable || !mcp_flag(call, "settable")) && (!tensor || mcp_flag(call, "tensors")))
            json_array_append_new(settings, setting_of(entry));
    }
    json_decref(list);
    return SGM_OK;
}

/* --- get_layers --- */

#define LAYERS "network.layers."

/* {"layer": "1-dense", "options": {"size": 16}, "tensors": {"weights": "float32 (4, 16)"}}, a new one when
 * the entry is of another layer than the last one. */
static void add_to_layer(json_t *layers, const json_t *entry)
{
    const char *identifier = member(entry, "identifier"), *name = identifier + strlen(LAYERS),
               *dot = strrchr(identifier, '.');
    if (strncmp(identifier, LAYERS, strlen(LAYERS)) != 0 || dot < name)
        return;
    json_t *layer = json_array_get(layers, json_array_size(layers) - 1),
           *own = json_stringn(name, (size_t)(dot - name));
    if (layer == NULL || !json_equal(json_object_get(layer, "layer"), own)) {
        layer = json_pack("{s:O, s:{}, s:{}}", "layer", own, "options", "tensors");
        json_array_append_new(layers, layer);
    }
    bool tensor = strcmp(member(entry, "kind"), "tensor") == 0;
    json_t *value = json_object_get(entry, tensor ? "text" : "value");
    if (value != NULL && !json_is_null(value))
        json_object_set(json_object_get(layer, tensor ? "tensors" : "options"), dot + 1, value);
    json_decref(own);
}

static sgm_status get_layers(mcp_call *call)
{
    json_t *list, *layers = json_array(), *entry;
    size_t i;
    json_object_set_new(call->answer, "layers", layers);
    SGM_TRY(list_of(
        call, json_pack("{s:s, s:s*, s:s*}", "command", "list", "identifier", LAYERS "*", "values", "true"),
        "entries", &list));
    json_array_foreach(list, i, entry)
    {
        add_to_layer(layers, entry);
    }
    json_decref(list);
    return SGM_OK;
}

/* --- list_changes, list_rules --- */

static sgm_status list_changes(mcp_call *call)
{
    return pass_on(call, json_pack("{s:s}", "command", "changes"), "changes", "changes");
}

static sgm_status list_rules(mcp_call *call)
{
    return pass_on(call, json_pack("{s:s}", "command", "hooks"), "hooks", "rules");
}

const mcp_tool mcp_live_tools[] = {
    {"get_values", "Values of a training",
     "Reads values of a training that runs, by identifier: training.loss, optimiser.learning_rate, "
     "'network.layers.*.weights'. Of a tensor the text tells type, shape, range and mean.",
     get_values, value_parameters, .of_run = true},
    {"list_settings", "What may be set",
     "Lists what may be set while a run trains: identifier, kind, present value, unit, bounds, choices, when "
     "a change takes effect, and what it means. set_value takes the identifiers.",
     list_settings, setting_parameters, .of_run = true},
    {"get_layers", "Layers of a network",
     "The layers of a training's network in their order, with options, and types and shapes of their "
     "tensors. Of a run that is over, get_run has the network as text in its configuration.",
     get_layers, NULL, .of_run = true},
    {"list_changes", "Changes since the training began",
     "What was changed since the process of a training began: numbers for undo_change, values before and "
     "after, who did it, why, and whether it can be taken back. list_interventions also knows of processes "
     "before it.",
     list_changes, NULL, .of_run = true},
    {"list_rules", "Rules and hooks",
     "The rules and other hooks that are attached to a training: name, text, when they run, condition, how "
     "often they ran, and the buttons that they wait for (press_button).",
     list_rules, NULL, .of_run = true},
    {0}};
