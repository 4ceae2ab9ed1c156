/* The fields that every request may have, whatever its command: how long the asker waits, why it asks, under
 * which name and role, and whether it only wants to know what would change.
 *
 * All are checked before the command is looked at, so that a mistake in one changes nothing. A name and a
 * reason go into the journal, where people read them: they are short, and on one line. Here is also what
 * commands need of their request: its fields, and the answer to a dry run. */
#include "control/control_internal.h"

#include <math.h>

#define LONGEST_WAIT 86400.0 /* seconds */
#define LONGEST_NAME 64      /* bytes */
#define LONGEST_REASON 500   /* bytes */
#define AGENT "mcp:"         /* the name of an agent begins so, and stands for the whole asker */

static const char *const roles[] = {"look", "steer", "admin", NULL};

const sgm_option sgm__request_terms[] = {
    {.name = "within",
     .kind = SGM_KIND_NUMBER,
     .unit = "seconds",
     .minimum = 0,
     .maximum = LONGEST_WAIT,
     .default_value = NAN,
     .doc = "how long the asker waits for the trainer; then nothing is changed"},
    {.name = "reason", .kind = SGM_KIND_TEXT, .doc = "why, at most 500 bytes; the journal keeps it"},
    {.name = "by",
     .kind = SGM_KIND_TEXT,
     .doc = "the asker's name, at most 64 bytes; the journal has 'ctl:NAME', 'monitor:NAME' from the page, "
            "of an agent 'mcp:NAME'"},
    {.name = "role",
     .kind = SGM_KIND_TEXT,
     .choices = roles,
     .default_text = "admin",
     .doc = "the request is to have no more than this role; the asker's own is the most that it can have"},
    {.name = "dry_run", .kind = SGM_KIND_BOOLEAN, .doc = "tells what would change, and changes nothing"},
};
const size_t sgm__request_term_count = sizeof sgm__request_terms / sizeof *sgm__request_terms;

/* A text of 1 to `longest` bytes; *text NULL: it is not given. */
static sgm_status read_line(const json_t *request, const char *key, size_t longest, const char **text)
{
    const json_t *value = json_object_get(request, key);
    *text = json_string_value(value);
    if (value == NULL)
        return SGM_OK;
    if (*text == NULL || **text == '\0' || strlen(*text) > longest || !sgm__is_line(*text))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'%s' is a text of 1 to %zu bytes on one line, without control characters", key,
                        longest);
    return SGM_OK;
}

static sgm_status read_within(const json_t *request, double *seconds)
{
    const json_t *value = json_object_get(request, "within");
    *seconds = json_is_number(value) ? json_number_value(value) : 0;
    if (value == NULL || (*seconds > 0 && *seconds <= LONGEST_WAIT))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "'within' must be a number of seconds, more than 0 and at most %.0f",
                    LONGEST_WAIT);
}

static sgm_status read_role(const sgm__control_call *call, const json_t *request, sgm__role *role)
{
    const json_t *value = json_object_get(request, "role");
    *role = call->role;
    if (value == NULL)
        return SGM_OK;
    SGM_TRY(sgm__role_parse(json_string_value(value), role));
    if (*role <= call->role)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_PERMISSION, "a request cannot raise its role: this is '%s', not '%s'",
                    sgm__role_name(call->role), sgm__role_name(*role));
}

static sgm_status read_dry(const json_t *request, bool *dry)
{
    const json_t *value = json_object_get(request, "dry_run");
    *dry = json_is_true(value);
    return value == NULL || json_is_boolean(value) ? SGM_OK
                                                   : sgm_fail(SGM_ERROR_TYPE, "'dry_run' is true or false");
}

/* "ctl", "ctl:anna", "mcp:claude". A token that has a name ("monitor:anna") keeps it, whoever asks with it.
 */
static sgm_status make_who(const char *from, const char *name, char **who)
{
    bool is_agent = name != NULL && strchr(from, ':') == NULL && sgm__begins_with(name, AGENT) &&
                    name[strlen(AGENT)] != '\0';
    *who = name == NULL || is_agent ? sgm__strdup(is_agent ? name : from) : sgm__format("%s:%s", from, name);
    return *who != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__terms_read(const sgm__control_call *call, json_t *request, sgm__terms *terms)
{
    const char *name;
    *terms = (sgm__terms){0};
    SGM_TRY(read_within(request, &terms->within));
    SGM_TRY(read_line(request, "reason", LONGEST_REASON, &terms->reason));
    SGM_TRY(read_line(request, "by", LONGEST_NAME, &name));
    SGM_TRY(read_role(call, request, &terms->role));
    SGM_TRY(read_dry(request, &terms->dry));
    SGM_TRY(make_who(call->who, name, &terms->who));
    for (size_t i = 0; i < sgm__request_term_count; i++)
        if (strcmp(sgm__request_terms[i].name, "reason") != 0)
            json_object_del(request, sgm__request_terms[i].name);
    return SGM_OK;
}

/* --- for commands --- */

const char *sgm__control_field(const sgm__control_request *c, const char *name)
{
    return json_string_value(json_object_get(c->request, name));
}

sgm_status sgm__would_change(sgm__control_request *c, const char *identifier, json_t *old, json_t *new,
                             const char *when)
{
    json_t *item = json_object(), *list = json_object_get(c->answer, "would_change");
    json_object_set_new(item, "identifier", sgm__answer_text(identifier != NULL ? identifier : ""));
    json_object_set_new(item, "old", old);
    json_object_set_new(item, "new", new);
    json_object_set_new(item, "effect", sgm__answer_text(when != NULL ? when : c->row->when));
    return json_array_append_new(list, item) == 0 ? SGM_OK : sgm__fail_memory(64);
}
