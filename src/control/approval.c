/* Requests that wait for an administrator's leave: keeping them, listing, approving, denying. See approval.h.
 *
 * They are JSON objects in a list of the trainer's control, guarded by its lock: {"number", "state", "who",
 * "reason", "command", "request", "asked", "expires", "by", "because", "error"}. `state` is pending,
 * approved, denied, expired or failed. An approved request is carried out by the thread of who approves, in
 * the name of who asked; the reason in the journal also tells who approved. */
#include "control/approval.h"
#include "base/clock.h"
#include "registry/pattern.h"
#include "show/show.h"
#include "text/names.h"
#include "trainer/trainer.h"

#define MAXIMUM_PENDING 32
#define MOST_KEPT 64              /* of those that are decided */
#define LONGEST ((size_t)1 << 16) /* bytes of a request that is kept */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* --- what has to wait --- */

static bool is_command(const char *text)
{
    const sgm__command_row *row;
    for (size_t i = 0; (row = sgm__command_at(i)) != NULL; i++)
        if (strcmp(row->name, text) == 0)
            return true;
    return false;
}

/* A pattern without a dot is of commands, or a value such as `seed`. One that neither has would protect
 * nothing, and nobody would notice. */
static sgm_status check_pattern(const sgm_trainer *trainer, const char *pattern)
{
    const sgm__command_row *row;
    SGM_TRY(sgm__pattern_check(pattern));
    if (sgm_registry_has(sgm__registry_of(trainer), pattern))
        return SGM_OK;
    for (size_t i = 0; strchr(pattern, '.') == NULL; i++) {
        if ((row = sgm__command_at(i)) == NULL)
            return sgm__command_find(pattern, &row) == SGM_OK ? SGM_OK
                                                              : sgm__fail_within("what needs approval");
        if (sgm__pattern_matches(pattern, row->name))
            break;
    }
    return SGM_OK;
}

sgm_status sgm_trainer_require_approval(sgm_trainer *trainer, const char *pattern)
{
    if (trainer == NULL || pattern == NULL)
        return sgm__fail_null("the trainer or the pattern is NULL");
    sgm__control *control = sgm__control_of(trainer);
    if (sgm_trainer_get_state(trainer) != SGM_TRAINER_IDLE)
        return sgm_fail(SGM_ERROR_STATE, "what needs approval is said before a run of trainer '%s'",
                        sgm_trainer_name(trainer));
    const char *real = sgm__name_value(pattern);
    pattern = real != NULL ? real : pattern;
    SGM_TRY(check_pattern(trainer, pattern));
    if (control->approve == NULL)
        control->approve = json_array();
    return json_array_append_new(control->approve, json_string(pattern)) == 0 ? SGM_OK : sgm__fail_memory(64);
}

void sgm__approval_check(sgm_trainer *trainer)
{
    const json_t *patterns = sgm__control_of(trainer)->approve, *item;
    size_t index;
    json_array_foreach(patterns, index, item)
    {
        const char *pattern = json_string_value(item);
        sgm_matches found = {0};
        bool known =
            strchr(pattern, '.') == NULL ||
            (sgm_registry_resolve(sgm__registry_of(trainer), pattern, &found) == SGM_OK && found.count > 0);
        sgm_matches_free(&found);
        if (!known)
            sgm__log(
                SGM_LOG_WARNING, sgm_trainer_name(trainer),
                "approve: nothing is called '%s', so that protects nothing yet; 'sigma ctl RUN list' tells "
                "names",
                pattern);
    }
}

/* An identifier that may stand for several (NULL: for any) may touch what a pattern of identifiers protects.
 * So may one with spaces, which the registry passes over. One of another program, "learning_rate", is looked
 * up as the registry does it: by another name, nothing is done that its own name would have to wait for. */
static bool may_match(const char *pattern, const char *identifier)
{
    if (identifier == NULL || strpbrk(identifier, "*< \t\n\v\f\r") != NULL)
        return !is_command(pattern);
    const char *real = sgm__name_value(identifier);
    return sgm__pattern_matches(pattern, identifier) || (real != NULL && sgm__pattern_matches(pattern, real));
}

/* Hooks and actions of rules that do what a command does, though their texts do not have its name. */
static const struct {
    const char *word, *command;
} hidden[] = {
    {"early_stopper", "stop"},     {"early_stopper", "restore"}, {"early_stopping", "stop"},
    {"early_stopping", "restore"}, {"nan_watch", "pause"},
};

/* Whether a command or an action of a rule sets the list of what is frozen. */
static bool freezes(const char *word)
{
    return strcmp(word, "freeze") == 0 || strcmp(word, "unfreeze") == 0;
}

/* A rule that restores or resets may bring any value, as these commands do. */
static bool acts_like_protected(const char *pattern, const char *word)
{
    bool any = strcmp(word, "restore") == 0 || strcmp(word, "reset") == 0;
    if (freezes(word) && may_match(pattern, SGM__FROZEN))
        return true;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (strcmp(hidden[i].word, word) == 0) {
            any = any || strcmp(hidden[i].command, "restore") == 0;
            if (sgm__pattern_matches(pattern, hidden[i].command))
                return true;
        }
    return any && may_match(pattern, NULL);
}

/* A rule names what it sets, somewhere in its text: so each of its words is taken for an identifier. */
static bool may_match_word(const char *pattern, const char *text)
{
    char word[256];
    const char *between = " \t\r\n,;:=()[]{}\"'";
    for (text += strspn(text, between); *text != '\0'; text += strspn(text, between)) {
        size_t length = strcspn(text, between);
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), text);
        if (length >= sizeof word || may_match(pattern, word) || acts_like_protected(pattern, word))
            return true;
        text += length;
    }
    return false;
}

/* Whether one of the values that a branch is to have is protected. */
static bool may_match_key(const char *pattern, const json_t *values)
{
    const char *identifier;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)values, identifier, value) /* the macro changes nothing */
    {
        if (may_match(pattern, identifier))
            return true;
    }
    return false;
}

/* Undoing, and going back to another state, may bring any value. */
static bool matches(const sgm__control_request *c, const char *pattern)
{
    sgm_status (*act)(sgm__control_request *) = c->row->act;
    if (sgm__pattern_matches(pattern, c->row->name))
        return true;
    if (act == sgm__control_set)
        return may_match(pattern, sgm__control_field(c, "identifier"));
    if (freezes(c->row->name))
        return may_match(pattern, SGM__FROZEN);
    if (act == sgm__control_attach)
        return may_match_word(pattern, sgm__control_field(c, "hook"));
    if (act == sgm__control_branch)
        return may_match_key(pattern, json_object_get(c->request, "set"));
    return (act == sgm__control_undo || act == sgm__control_restore || act == sgm__control_reset) &&
           may_match(pattern, NULL);
}

bool sgm__approval_needed(const sgm__control_request *c)
{
    const json_t *patterns = sgm__control_of(c->call->trainer)->approve;
    if (c->row->when == NULL || c->call->role >= SGM__ROLE_ADMIN || c->call->approved)
        return false;
    for (size_t i = 0; i < json_array_size(patterns); i++)
        if (matches(c, json_string_value(json_array_get(patterns, i))))
            return true;
    return false;
}

/* --- the list; with the control's lock --- */

static double seconds_of(const sgm__control *control)
{
    return control->approval_seconds > 0 ? control->approval_seconds : SGM__APPROVAL_SECONDS;
}

static bool is_pending(const json_t *item)
{
    return strcmp(text_of(item, "state"), "pending") == 0;
}

static void decide(sgm__control *control, json_t *item, const char *state)
{
    json_object_set_new(item, "state", json_string(state));
    atomic_fetch_add(&control->pending_version, 1);
}

/* Marks what has expired, and drops the oldest that are decided. */
static void tidy(sgm__control *control)
{
    size_t decided = 0;
    for (size_t i = json_array_size(control->pending); i-- > 0;) {
        json_t *item = json_array_get(control->pending, i);
        if (is_pending(item) && json_number_value(json_object_get(item, "expires")) < sgm__wall_time())
            decide(control, item, "expired");
        if (!is_pending(item) && ++decided > MOST_KEPT)
            json_array_remove(control->pending, i);
    }
}

static size_t count_pending(const sgm__control *control)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(control->pending); i++)
        count += is_pending(json_array_get(control->pending, i));
    return count;
}

static json_t *find(const sgm__control *control, int64_t number)
{
    for (size_t i = 0; i < json_array_size(control->pending); i++) {
        json_t *item = json_array_get(control->pending, i);
        if (json_integer_value(json_object_get(item, "number")) == number)
            return item;
    }
    return NULL;
}

static sgm_status keep(sgm__control *control, const sgm__control_request *c, int64_t *number, double *expires)
{
    if (control->pending == NULL)
        control->pending = json_array();
    tidy(control);
    if (json_dumpb(c->request, NULL, 0, 0) > LONGEST)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a request that waits for approval has at most %zu bytes",
                        LONGEST);
    if (count_pending(control) >= MAXIMUM_PENDING)
        return sgm_fail(SGM_ERROR_LIMIT, "%d requests wait for approval already: wait until some are decided",
                        MAXIMUM_PENDING);
    double now = sgm__wall_time();
    *expires = now + seconds_of(control);
    json_t *item = json_pack("{s:I, s:s, s:s, s:s*, s:s, s:O, s:f, s:f}", "number",
                             (json_int_t)(control->pending_made + 1), "state", "pending", "who", c->call->who,
                             "reason", c->reason, "command", c->row->name, "request", c->request, "asked",
                             now, "expires", *expires);
    json_t *own = json_deep_copy(item); /* the request belongs to another thread */
    json_decref(item);
    if (own == NULL || json_array_append_new(control->pending, own) != 0)
        return sgm__fail_memory(128);
    *number = ++control->pending_made;
    atomic_fetch_add(&control->pending_version, 1);
    return SGM_OK;
}

sgm_status sgm__approval_ask(sgm__control_request *c)
{
    sgm__control *control = sgm__control_of(c->call->trainer);
    int64_t number = 0;
    double expires = 0;
    pthread_mutex_lock(&control->lock);
    sgm_status status = keep(control, c, &number, &expires);
    pthread_mutex_unlock(&control->lock);
    SGM_TRY(status);
    json_object_set_new(c->answer, "pending", json_integer(number));
    json_object_set_new(c->answer, "expires", json_real(expires));
    sgm__log(SGM_LOG_INFO, sgm_trainer_name(c->call->trainer),
             "%s: %s waits for approval, as number %lld%s%s", c->call->who, c->row->name, (long long)number,
             c->reason != NULL ? ": " : "", c->reason != NULL ? c->reason : "");
    return SGM_OK;
}

/* --- commands --- */

sgm_status sgm__control_pending(sgm__control_request *c)
{
    sgm__control *control = sgm__control_of(c->call->trainer);
    pthread_mutex_lock(&control->lock);
    tidy(control);
    json_t *list = control->pending != NULL ? json_deep_copy(control->pending) : json_array();
    pthread_mutex_unlock(&control->lock);
    return json_object_set_new(c->answer, "requests", list) == 0 ? SGM_OK : sgm__fail_memory(64);
}

/* Takes a request out of waiting, as `state`, and gives a copy of it; a dry run leaves it there. */
static sgm_status take(const sgm__control_request *c, const char *state, json_t **copy)
{
    sgm__control *control = sgm__control_of(c->call->trainer);
    const char *text = sgm__control_field(c, "number");
    int64_t number = 0;
    if (!sgm__parse_int64(text, &number) || number < 1)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected the number of a request, from 1, got '%.100s'",
                        c->row->name, text);
    pthread_mutex_lock(&control->lock);
    tidy(control);
    json_t *item = find(control, number);
    char was[16];
    snprintf(was, sizeof was, "%s", item != NULL ? text_of(item, "state") : "");
    if (item != NULL && is_pending(item) && c->dry) {
        *copy = json_deep_copy(item);
    } else if (item != NULL && is_pending(item)) {
        json_object_set_new(item, "by", json_string(c->call->who));
        if (c->reason != NULL)
            json_object_set_new(item, "because", json_string(c->reason));
        decide(control, item, state);
        *copy = json_deep_copy(item);
    }
    pthread_mutex_unlock(&control->lock);
    if (*copy != NULL)
        return SGM_OK;
    return was[0] == '\0' ? sgm_fail(SGM_ERROR_NOT_FOUND,
                                     "there is no request %lld; 'pending' tells those that "
                                     "wait",
                                     (long long)number)
                          : sgm_fail(SGM_ERROR_STATE, "request %lld does not wait any more: it is %s",
                                     (long long)number, was);
}

/* Keeps why an approved request was not carried out. */
static void note_failure(const sgm__control_request *c, int64_t number)
{
    sgm__control *control = sgm__control_of(c->call->trainer);
    pthread_mutex_lock(&control->lock);
    json_t *item = find(control, number);
    if (item != NULL) {
        json_object_set_new(item, "error", sgm__answer_text(sgm_last_error()));
        decide(control, item, "failed");
    }
    pthread_mutex_unlock(&control->lock);
}

/* "too slow (approved by ctl: go ahead)": the reason that the journal gets; sgm__free. */
static char *whole_reason(const sgm__control_request *c, const json_t *item)
{
    const char *asked = text_of(item, "reason");
    return sgm__format("%s%sapproved by %s%s%s%s", asked, asked[0] != '\0' ? " (" : "", c->call->who,
                       c->reason != NULL ? ": " : "", c->reason != NULL ? c->reason : "",
                       asked[0] != '\0' ? ")" : "");
}

sgm_status sgm__control_approve(sgm__control_request *c)
{
    json_t *item = NULL;
    SGM_TRY(take(c, "approved", &item));
    int64_t number = json_integer_value(json_object_get(item, "number"));
    char *reason = whole_reason(c, item);
    json_t *request = json_object_get(item, "request");
    const sgm__control_call call = {.trainer = c->call->trainer,
                                    .who = text_of(item, "who"),
                                    .role = SGM__ROLE_STEER,
                                    .approved = reason};
    sgm_status status = reason != NULL ? sgm__control_obey(&call, request, c->answer) : SGM_ERROR_MEMORY;
    if (status != SGM_OK)
        note_failure(c, number);
    sgm__free(reason);
    json_decref(item);
    return status;
}

sgm_status sgm__control_deny(sgm__control_request *c)
{
    json_t *item = NULL;
    sgm_status status = take(c, "denied", &item);
    json_decref(item);
    return status;
}

static sgm_status try_decide(sgm__control_request *c, const char *state)
{
    json_t *item = NULL;
    SGM_TRY(take(c, state, &item));
    json_decref(item);
    char *what = sgm__format("request %s", sgm__control_field(c, "number"));
    sgm_status status = sgm__would_change(c, what, json_string("pending"), json_string(state), NULL);
    sgm__free(what);
    return status;
}

sgm_status sgm__control_try_approve(sgm__control_request *c)
{
    return try_decide(c, "approved");
}

sgm_status sgm__control_try_deny(sgm__control_request *c)
{
    return try_decide(c, "denied");
}

unsigned sgm__control_pending_version(const sgm_trainer *trainer)
{
    return atomic_load(&sgm__control_of(trainer)->pending_version);
}
