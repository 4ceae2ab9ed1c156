/* POST /api/branch: makes another trainer that goes on from a checkpoint, with some values set differently.
 *
 * Checks the request and hands it to the environment through sgm__monitor_host.branch
 * (src/environment/env_branch.c), which makes and starts the trainer. The new trainer comes to the page as
 * every trainer does, by `attach` of the monitor. */
#include "control/control.h"
#include "monitors/web/steer.h"
#include "runs/checkpoints.h"
#include "text/json_text.h"

#define MAXIMUM_VALUES 64 /* that are set by one request */

/* The request: {"trainer", "checkpoint", "name", "set": {IDENTIFIER: VALUE}, "paused"}. Texts are borrowed
 * from its body, but for `made`. */
typedef struct branch_request {
    const char *checkpoint, *name;
    const char *identifiers[MAXIMUM_VALUES], *texts[MAXIMUM_VALUES];
    char *made[MAXIMUM_VALUES]; /* JSON of values that are no texts; owned */
    size_t count;
    bool paused;
} branch_request;

/* The name becomes a part of identifiers, and of the name of a folder. */
static sgm_status check_name(const char *name)
{
    return sgm__is_plain_name(name)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT,
                          "the branch cannot be named '%.100s': expected 1 to %d letters, digits, '-', '_' "
                          "and '.', beginning with a letter, a digit or '_'",
                          name, SGM__PLAIN_NAME_LONGEST);
}

/* Values are passed on as text, which the registry parses; numbers, booleans and lists as their JSON. */
static sgm_status read_value(branch_request *b, const char *identifier, const json_t *value)
{
    if (b->count == MAXIMUM_VALUES)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a branch begins with at most %d values", MAXIMUM_VALUES);
    if (json_is_null(value) || json_is_object(value))
        return sgm_fail(SGM_ERROR_TYPE, "%.100s: expected a text, a number, true, false or a list",
                        identifier);
    if (!json_is_string(value)) {
        b->made[b->count] = sgm__json_text(value);
        if (b->made[b->count] == NULL)
            return sgm__fail_memory(64);
    }
    b->identifiers[b->count] = identifier;
    b->texts[b->count] = json_is_string(value) ? json_string_value(value) : b->made[b->count];
    b->count++;
    return SGM_OK;
}

static sgm_status read_request(branch_request *b, json_t *body)
{
    const char *identifier;
    json_t *value, *set = json_object_get(body, "set");
    SGM_TRY(sgm__web_text(body, "checkpoint", true, &b->checkpoint));
    SGM_TRY(sgm__web_text(body, "name", true, &b->name));
    SGM_TRY(check_name(b->name));
    b->paused = json_is_true(json_object_get(body, "paused"));
    if (set != NULL && !json_is_null(set) && !json_is_object(set))
        return sgm_fail(SGM_ERROR_TYPE, "'set' must be an object of identifiers and values");
    json_object_foreach(set, identifier, value)
    {
        SGM_TRY(read_value(b, identifier, value));
    }
    return SGM_OK;
}

/* The trainer is borrowed, but not locked, as sgm__monitor_host.branch requires. */
static sgm_status make(const sgm__web_trainer *watched, const branch_request *b, const sgm__terms *terms)
{
    const sgm__monitor_host *host = sgm__web_host(watched->web);
    char *path;
    if (host->branch == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "this program has no branches");
    SGM_TRY(sgm__checkpoint_path(watched->trainer, b->checkpoint, false, &path));
    const sgm__branch_request request = {.name = b->name,
                                         .checkpoint = path,
                                         .who = terms->who,
                                         .reason = terms->reason,
                                         .identifiers = b->identifiers,
                                         .values = b->texts,
                                         .count = b->count,
                                         .paused = b->paused};
    sgm_status status = host->branch(host->env, watched->trainer, &request);
    sgm__free(path);
    return status;
}

/* The answer names what was made: {"trainer", "from", "checkpoint"}. */
sgm_status sgm__web_branch(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    const sgm__web_trainer *watched = user;
    branch_request b = {0};
    sgm__terms terms = {0};
    json_t *body = sgm__http_object(request);
    sgm_status status = read_request(&b, body);
    if (status == SGM_OK)
        status = sgm__monitor_terms(request, body, &terms);
    if (status == SGM_OK)
        status = sgm__control_check_branch(watched->trainer, terms.role, b.identifiers, b.count);
    if (status == SGM_OK)
        status = make(watched, &b, &terms);
    if (status == SGM_OK)
        status = sgm__http_answer_json(answer, json_pack("{s:s, s:s, s:s}", "trainer", b.name, "from",
                                                         watched->name, "checkpoint", b.checkpoint));
    for (size_t i = 0; i < b.count; i++)
        sgm__free(b.made[i]);
    sgm__free(terms.who);
    return status;
}
