/* Tools: what a client may call. A tool is a row of a table; a group of tools is a file (tools/).
 *
 * Its parameters are a table as well, from which come the schema that clients see, the check of what they
 * send, and the defaults of what they leave out:
 *
 *     static const mcp_parameter lines[] = {
 *         {"lines", "how many, from the end", MCP_INTEGER, .minimum = 1, .maximum = 1000, .default_json =
 * "50"}, {0}};
 *     {"read_log", "The log", "The newest lines of a run's log.txt.", read_log, lines, .of_run = true}
 *
 * A failure is the thread's error: the client gets its text as a result that is marked as an error, so that a
 * model reads it. Internal to `sigma mcp`. */
#ifndef SIGMA_CLI_MCP_TOOLS_H
#define SIGMA_CLI_MCP_TOOLS_H

#include "mcp/server.h"

typedef enum mcp_kind {
    MCP_TEXT,
    MCP_INTEGER,
    MCP_NUMBER,
    MCP_FLAG,
    MCP_TEXTS,    /* a list of texts */
    MCP_INTEGERS, /* a list of whole numbers */
    MCP_VALUE,    /* of a setting: a text, a number, true, false, or a list of numbers */
    MCP_VALUES    /* an object of settings and their values */
} mcp_kind;

/* The last one of a table has no name. */
typedef struct mcp_parameter {
    const char *name, *doc;
    mcp_kind kind;
    bool required;
    double minimum, maximum;    /* of numbers; both 0: none */
    const char *const *choices; /* of a text; ends in NULL; NULL: any text */
    const char *default_json;   /* what it is if it is left out, as JSON; NULL: it is missing then */
} mcp_parameter;

/* One call of a tool. */
typedef struct mcp_call {
    mcp_server *server;
    mcp_request *request;
    const struct mcp_tool *tool;
    json_t *arguments; /* checked, with defaults */
    json_t *answer;    /* an object that the tool fills in */
} mcp_call;

/* The last one of a table has no name. */
typedef struct mcp_tool {
    const char *name, *title, *description;
    sgm_status (*act)(mcp_call *call);
    const mcp_parameter *parameters; /* NULL: none of its own */
    sgm__role role;                  /* that it needs; above SGM__ROLE_LOOK it changes something */
    bool of_run;                     /* it has the parameter `run`, too */
    bool destructive;                /* what it does cannot be taken back */
    bool idempotent;                 /* to do it twice is to do it once */
    const char *output;              /* the schema of its answer, as JSON; NULL: not told */
} mcp_tool;
extern const mcp_tool mcp_look_tools[], mcp_curve_tools[], mcp_compare_tools[], mcp_live_tools[],
    mcp_wait_tools[], mcp_steer_tools[], mcp_branch_tools[], mcp_replay_tools[];

/* --- arguments, by their names; a text is NULL and a list empty if it was left out and has no default --- */
const char *mcp_text(const mcp_call *call, const char *name);
int64_t mcp_integer(const mcp_call *call, const char *name);
double mcp_number(const mcp_call *call, const char *name);
bool mcp_flag(const mcp_call *call, const char *name);
const json_t *mcp_list(const mcp_call *call, const char *name);
bool mcp_has(const mcp_call *call, const char *name);
/* Opens the run that the call is about; as mcp_run_open. */
sgm_status mcp_call_run(const mcp_call *call, mcp_run *run);

/* --- arguments.c: the schema of a tool's arguments, and the check of what came --- */
json_t *mcp_schema(const mcp_server *server, const mcp_tool *tool);
/* Checks `given` (NULL: no arguments), and makes *arguments, a copy with defaults. */
sgm_status mcp_arguments_check(const mcp_server *server, const mcp_tool *tool, json_t *given,
                               json_t **arguments);

/* --- ask.c: questions to trainings --- */
/* Asks the training of a run; `question` (taken over) is an object with a member "command". *answer is what
 * it said, freed with json_decref. A run that does not train now is SGM_ERROR_STATE, and an error of the
 * training this call's. Waits for as long as the argument `timeout_seconds` says, or for a few seconds. */
sgm_status mcp_ask(const mcp_call *call, const mcp_run *run, json_t *question, json_t **answer);
/* The same of the run that the call is about. */
sgm_status mcp_ask_run(const mcp_call *call, json_t *question, json_t **answer);
/* The same for a question that changes something: says who asks, why, in which role, and whether it is only
 * to be told what would change. Moves the answer's members into the call's. */
sgm_status mcp_change(const mcp_call *call, json_t *question);
/* --- small things --- */
/* A text that need not be UTF-8, as JSON. */
json_t *mcp_json_text(const char *text);

#endif
