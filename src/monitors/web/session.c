/* GET /api/session: what the environment is, and where each trainer stands; POST /api/finish: a person has
 * finished watching.
 *
 * The state of a trainer is written here for the session and for the event "progress" (live.c), in the
 * same form. It consists of the status, which sampler.c keeps, and the standing, which web.c asks for.
 * JSON is written as text, since the event goes out up to ten times a second for each trainer. */
#include "monitors/terms.h"
#include "monitors/web/web_internal.h"
#include "text/json_text.h"

#include <math.h>

/* --- trainers --- */

sgm__web_moment sgm__web_now(sgm__web_trainer *watched)
{
    sgm__web_recording *recording = sgm__web_recording_of(watched);
    pthread_mutex_lock(&recording->sampling);
    sgm__web_moment moment = recording->status.moment;
    pthread_mutex_unlock(&recording->sampling);
    return moment;
}

/* The members that come from the progress. The time left and the reason of a stop mean something only in
 * certain states, otherwise they are null. */
static void append_status(sgm__text *text, const sgm__web_status *status, sgm_trainer_state state)
{
    const sgm_training_progress *progress = &status->progress;
    sgm__web_append_member(text, "epoch", (double)progress->epoch);
    sgm__web_append_member(text, "epochs", (double)progress->epochs);
    sgm__web_append_member(text, "batch", (double)progress->batch);
    sgm__web_append_member(text, "batches", (double)progress->batches);
    sgm__web_append_member(text, "iteration", (double)progress->iteration);
    sgm__web_append_member(text, "seconds", status->moment.seconds);
    sgm__web_append_member(text, "rate", progress->rate);
    sgm__web_append_member(text, "seconds_left",
                           state != SGM_TRAINER_IDLE && progress->seconds_left >= 0 ? progress->seconds_left
                                                                                    : NAN);
    sgm__web_append_member(text, "loss", progress->training.loss);
    sgm__web_append_member(text, "accuracy", progress->training.accuracy);
    sgm__web_append_member(text, "learning_rate", progress->learning_rate);
    sgm__web_append_member(text, "parameters", (double)status->parameters);
    sgm__web_append_member(text, "stride", (double)status->stride);
    sgm__text_append(text, ",\"folder\":%s,\"network\":", status->has_folder ? "true" : "false");
    sgm__web_append_text(text, status->network != NULL ? status->network : "");
    sgm__web_append_named(text, "reason",
                          status->reason[0] != '\0' && state == SGM_TRAINER_IDLE ? status->reason : NULL);
}

/* The notation is copied because the next run may replace it. */
sgm__web_status sgm__web_copy_status(sgm__web_recording *recording)
{
    pthread_mutex_lock(&recording->sampling);
    sgm__web_status status = recording->status;
    status.network = sgm__strdup(status.network);
    pthread_mutex_unlock(&recording->sampling);
    return status;
}

void sgm__web_append_status(sgm__text *text, const sgm__web_trainer *watched, const sgm__web_status *status,
                            const sgm__web_standing *standing)
{
    static const char *const names[] = {"idle", "running", "paused"};
    sgm__text_append(text, "{\"name\":");
    sgm__web_append_text(text, watched->name);
    sgm__text_append(text, ",\"state\":\"%s\",\"unscheduled\":%s,\"gone\":%s", names[standing->state],
                     standing->unscheduled ? "true" : "false", standing->gone ? "true" : "false");
    append_status(text, status, standing->state);
    sgm__text_append(text, ",\"undoable\":%s", standing->undoable ? "true" : "false");
    sgm__web_append_named(text, "held", standing->held[0] != '\0' ? standing->held : NULL);
    sgm__text_append(text, "}");
}

static void append_trainer(sgm__text *text, sgm__web_trainer *watched)
{
    sgm__web_standing standing = sgm__web_standing_of(watched);
    sgm__web_status status = sgm__web_copy_status(sgm__web_recording_of(watched));
    sgm__web_append_status(text, watched, &status, &standing);
    sgm__free(status.network);
}

/* --- the session --- */

/* For sgm__web_each: one trainer, with a comma unless it is the first. */
static bool append_listed(void *user, sgm__web_trainer *watched)
{
    sgm__text *text = user;
    sgm__web_separate(text);
    append_trainer(text, watched);
    return true;
}

/* The JSON of an option that is called `name`; *json stays NULL if it was not given. */
static sgm_status read_json(const char *text, const char *name, json_t **json)
{
    json_error_t error;
    if (text == NULL)
        return SGM_OK;
    *json = json_loads(text, 0, &error);
    if (*json != NULL)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_FORMAT, "the web monitor's %s are no JSON: line %d, column %d: %s", name,
                    error.line, error.column, sgm__json_mistake(&error));
}

static sgm_status read_tabs(sgm__web *web)
{
    SGM_TRY(read_json(web->options.tabs, "tabs", &web->tabs));
    if (web->tabs != NULL && !json_is_array(web->tabs))
        return sgm_fail(SGM_ERROR_FORMAT, "the web monitor's tabs are a JSON array of tabs");
    return SGM_OK;
}

static bool is_colour(const json_t *value)
{
    const char *text = json_string_value(value);
    if (json_is_integer(value))
        return json_integer_value(value) >= 1 && json_integer_value(value) <= 8;
    return text != NULL && text[0] == '#' && strlen(text) == 7 &&
           strspn(text + 1, "0123456789abcdefABCDEF") == 6;
}

static sgm_status read_colours(sgm__web *web)
{
    const char *name;
    json_t *value;
    SGM_TRY(read_json(web->options.colours, "colours", &web->colours));
    if (web->colours != NULL && !json_is_object(web->colours))
        return sgm_fail(SGM_ERROR_FORMAT, "the web monitor's colours are a JSON object of names of trainers");
    json_object_foreach(web->colours, name, value)
    {
        if (!is_colour(value))
            return sgm_fail(SGM_ERROR_FORMAT,
                            "the web monitor's colour of '%s' is a number from 1 to 8, or a text as #2cc4ab",
                            name);
    }
    return SGM_OK;
}

/* What the options say of the session, so that mistakes are reported when the monitor is made. */
sgm_status sgm__web_read_session(sgm__web *web)
{
    SGM_TRY(read_tabs(web));
    return read_colours(web);
}

/* No lock is held over the whole answer: trainers that come meanwhile are in it or not. */
sgm_status sgm__web_get_session(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__web *web = user;
    sgm__text text = {0};
    char *tabs = web->tabs != NULL ? sgm__json_text(web->tabs) : NULL;
    char *colours = web->colours != NULL ? sgm__json_text(web->colours) : NULL;
    sgm__text_append(&text, "{\"name\":");
    sgm__web_append_text(&text, web->host.name);
    sgm__web_append_named(&text, "role", sgm__role_name(request->role));
    sgm__web_append_named(&text, "version", sgm_version());
    sgm__web_append_named(&text, "handler", web->host.handler);
    sgm__web_append_named(&text, "precision", sgm_dtype_name(web->host.precision));
    sgm__web_append_member(&text, "threads", web->host.threads > 0 ? web->host.threads : sgm__processors());
    sgm__web_append_named(&text, "title", web->options.title != NULL ? web->options.title : web->host.name);
    sgm__text_append(&text, ",\"tabs\":%s,\"language\":null,\"waiting\":%s,\"panels\":",
                     tabs != NULL ? tabs : "null", sgm__web_waits(web) ? "true" : "false");
    sgm__free(tabs);
    sgm__web_append_panels(&text);
    sgm__text_append(&text, ",\"colours\":%s,\"trainers\":[", colours != NULL ? colours : "{}");
    sgm__free(colours);
    if (!text.failed)
        sgm__web_each(web, append_listed, &text);
    sgm__text_append(&text, "]}");
    return sgm__web_answer(answer, &text);
}

/* Ends the wait of web.c (wait_for_people). */
sgm_status sgm__web_end_waiting(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)answer;
    sgm__terms terms = {0};
    json_t *body = sgm__http_object(request);
    if (body == NULL)
        return sgm__last_failure();
    sgm_status status = sgm__monitor_terms(request, body, &terms);
    if (status == SGM_OK && !sgm__web_waits(user))
        status = sgm_fail(SGM_ERROR_STATE, "the program does not wait for anybody");
    if (status == SGM_OK) {
        sgm__terms_log("page", &terms, "the page is not watched any more");
        sgm__web_finish(user);
        sgm__web_trainers_changed(user);
    }
    sgm__free(terms.who);
    return status;
}
