/* The part `steer`: commands to trainers, and the record of changes.
 *
 * A command from a page goes the same way as one from the control socket (control/control.h), so that both
 * check, record and log alike. Changes of values, whoever makes them, are pushed to pages as they happen,
 * by a listener to the trainer's journal (journal/change_record.h). The routes of tree.c and
 * checkpoints.c are in the table here. */
#include "monitors/web/steer.h"
#include "control/control.h"
#include "journal/change_record.h"

#include <stdio.h>

/* Limits of bodies in bytes: a command may hold a tensor as a list; a checkpoint is kept in a file. */
#define LONGEST_COMMAND ((size_t)16 << 20)
#define LONGEST_CHECKPOINT ((size_t)1 << 30)

/* --- commands --- */

sgm__control_call sgm__web_call(const sgm__web_trainer *watched, const sgm__http_request *request,
                                char who[SGM__MONITOR_WHO_SIZE])
{
    sgm__monitor_who(request, who);
    return (sgm__control_call){
        .trainer = watched->trainer, .who = who, .role = request->role, .changes = request->changes};
}

sgm_status sgm__web_command(const sgm__web_trainer *watched, const sgm__http_request *request,
                            json_t *command, sgm__http_answer *answer)
{
    char who[SGM__MONITOR_WHO_SIZE];
    const sgm__control_call call = sgm__web_call(watched, request, who);
    json_t *made = json_object();
    sgm_status status = sgm__control_obey(&call, command, made);
    if (status == SGM_OK) {
        answer->code =
            json_is_integer(json_object_get(made, "pending")) ? 202 : 0; /* it waits for approval */
        return sgm__http_answer_json(answer, made);
    }
    json_decref(made);
    return status;
}

/* POST /api/command {"trainer", "command", ...}; without "trainer": the only one. The rest of the body is
 * the command. */
static sgm_status do_command(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    json_t *body = sgm__http_object(request);
    json_object_del(body, "trainer");
    return sgm__web_command(watched, request, body, answer);
}

/* --- changes --- */

/* What is kept of one trainer. Its changes live in the trainer; they are copied when it goes. */
typedef struct steering {
    sgm__web *web;
    pthread_mutex_t lock;
    json_t *kept;     /* changes of a trainer that has gone; NULL: it exists */
    unsigned pending; /* version of the list of what waits for approval that pages know of; the ticker's */
} steering;

/* A deep copy, since JSON values must not be shared between threads. */
static json_t *kept_changes(steering *own)
{
    pthread_mutex_lock(&own->lock);
    json_t *list = own->kept != NULL ? json_deep_copy(own->kept) : json_array();
    pthread_mutex_unlock(&own->lock);
    return list;
}

/* GET /api/changes: from the trainer, or what is kept of it. */
static sgm_status get_changes(void *web, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *name = sgm__http_query(request, "trainer", 0);
    sgm__web_trainer *watched;
    json_t *list = NULL;
    if (sgm__web_borrow(web, name, &watched) == SGM_OK) {
        list = sgm__changes_json(watched->trainer, 0);
        sgm__web_give_back(watched);
    } else {
        SGM_TRY(sgm__web_find(web, name, &watched));
        list = kept_changes(watched->states[SGM__WEB_steer]);
    }
    return sgm__http_answer_json(answer, json_pack("{s:o}", "changes", list));
}

/* The listener. It is called with the trainer's lock, so it only puts the change into the queues of pages. */
static void tell_change(void *user, const json_t *change)
{
    const steering *own = user;
    sgm__web_push(own->web, "change", json_deep_copy(change));
}

/* --- what waits for approval --- */

/* Pages are told that the list is another one; they fetch it by the command "pending". */
static bool tell_pending(void *user, sgm__web_trainer *entry)
{
    sgm__web_trainer *watched;
    if (sgm__web_borrow(user, entry->name, &watched) != SGM_OK) {
        sgm_clear_error();
        return true;
    }
    steering *own = watched->states[SGM__WEB_steer];
    unsigned now = sgm__control_pending_version(watched->trainer);
    bool is_new = now != own->pending;
    own->pending = now;
    sgm__web_give_back(watched);
    if (is_new)
        sgm__web_push(user, "pending", json_pack("{s:s}", "trainer", entry->name));
    return true;
}

static void tick(sgm__web *web, void *state)
{
    (void)state;
    sgm__web_each(web, tell_pending, web);
}

/* --- the part --- */

/* A trainer under the name of one that has gone replaces that one's changes. */
static sgm_status attach(sgm__web_trainer *watched, void **state)
{
    steering *own = *state;
    if (own == NULL) {
        own = sgm__calloc(1, sizeof *own);
        if (own == NULL)
            return SGM_ERROR_MEMORY;
        own->web = watched->web;
        pthread_mutex_init(&own->lock, NULL);
        *state = own;
    }
    pthread_mutex_lock(&own->lock);
    json_decref(own->kept);
    own->kept = NULL;
    pthread_mutex_unlock(&own->lock);
    return sgm__changes_listen(watched->trainer, tell_change, own);
}

/* Keeps the changes; none of them can be undone any more. */
static void detach(sgm__web_trainer *watched, void *state)
{
    steering *own = state;
    sgm__changes_unlisten(watched->trainer, tell_change, own);
    json_t *list = sgm__changes_json(watched->trainer, 0), *change;
    size_t i;
    json_array_foreach(list, i, change)
    {
        json_object_set_new(change, "undoable", json_false());
    }
    pthread_mutex_lock(&own->lock);
    own->kept = list;
    pthread_mutex_unlock(&own->lock);
}

static void free_trainer(void *state)
{
    steering *own = state;
    json_decref(own->kept);
    pthread_mutex_destroy(&own->lock);
    sgm__free(own);
}

static const sgm__http_route routes[] = {
    {"POST", "/api/command", .act = sgm__web_on_trainer, .action = do_command,
     .longest_body = LONGEST_COMMAND},
    {"GET", "/api/changes", .act = get_changes, .quick = true},
    {"GET", "/api/tree", .act = sgm__web_on_trainer, .action = sgm__web_get_tree},
    {"GET", "/api/checkpoints", .act = sgm__web_on_trainer, .action = sgm__web_get_checkpoints},
    {"GET", "/api/checkpoint/", .act = sgm__web_on_trainer, .action = sgm__web_get_checkpoint},
    {"POST", "/api/checkpoint/", .act = sgm__web_on_trainer, .action = sgm__web_add_checkpoint,
     .role = SGM__ROLE_ADMIN, .longest_body = LONGEST_CHECKPOINT, .type = "application/octet-stream",
     .in_file = true},
    {"POST", "/api/checkpoint-delete", .act = sgm__web_on_trainer, .action = sgm__web_delete_checkpoint,
     .role = SGM__ROLE_ADMIN},
};

const sgm__web_part sgm__web_steer = {.routes = routes,
                                      .route_count = sizeof routes / sizeof *routes,
                                      .attach = attach,
                                      .detach = detach,
                                      .free_trainer = free_trainer,
                                      .tick = tick};
