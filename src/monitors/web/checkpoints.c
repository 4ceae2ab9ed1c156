/* Routes for checkpoints: list, download, upload, delete.
 *
 * runs/checkpoints.h does the work and knows the folder; requests name checkpoints, never paths. An upload
 * arrives in a temporary file (monitors/http/body.c) and is checked completely before it appears under its
 * name. steer.c has the routes. */
#include "runs/checkpoints.h"
#include "monitors/web/steer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* An iteration or epoch; negative: not known, null. */
static json_t *place_json(int64_t place)
{
    return place >= 0 ? json_integer(place) : json_null();
}

/* A name that is no UTF-8 cannot be in JSON, nor be asked for, and is left out. */
static void add_checkpoint(json_t *list, const sgm__checkpoint *checkpoint)
{
    json_t *shown = json_object();
    if (json_object_set_new(shown, "name", json_string(checkpoint->name)) != 0) {
        json_decref(shown);
        return;
    }
    json_object_set_new(shown, "bytes", json_integer((json_int_t)checkpoint->bytes));
    json_object_set_new(shown, "time", json_real(checkpoint->time));
    json_object_set_new(shown, "iteration", place_json(checkpoint->iteration));
    json_object_set_new(shown, "epoch", place_json(checkpoint->epoch));
    json_object_set_new(shown, "newest", json_boolean(checkpoint->newest));
    json_array_append_new(list, shown);
}

/* GET /api/checkpoints?trainer=..: newest first. */
sgm_status sgm__web_get_checkpoints(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__checkpoint *found;
    size_t count;
    (void)request;
    SGM_TRY(sgm__checkpoints_list(((sgm__web_trainer *)watched)->trainer, &found, &count));
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        add_checkpoint(list, &found[i]);
    sgm__free(found);
    return sgm__http_answer_json(answer, json_pack("{s:o}", "checkpoints", list));
}

/* The answer is the open file itself: if the checkpoint is replaced meanwhile, the former one is sent
 * completely. O_NONBLOCK and the test for a regular file keep a FIFO under that name from blocking the
 * lane. */
static sgm_status give_file(const char *path, const char *name, sgm__http_answer *answer)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        int error = errno;
        if (file >= 0)
            close(file);
        return sgm_fail(SGM_ERROR_FILE, "checkpoint '%s' cannot be read: %s", name, sgm__errno_text(error));
    }
    answer->is_file = true;
    answer->descriptor = file;
    answer->length = (size_t)about.st_size;
    answer->type = "application/octet-stream";
    snprintf(answer->file_name, sizeof answer->file_name, "%.100s.safetensors", name);
    return SGM_OK;
}

/* GET /api/checkpoint/NAME?trainer=.. */
sgm_status sgm__web_get_checkpoint(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    char *path;
    SGM_TRY(sgm__checkpoint_path(((sgm__web_trainer *)watched)->trainer, request->path, false, &path));
    sgm_status status = give_file(path, request->path, answer);
    sgm__free(path);
    return status;
}

/* The terms of an upload, whose body is a file, are in its address; NULL: no memory, or no UTF-8. */
static json_t *terms_in_address(const sgm__http_request *request)
{
    static const char *const texts[] = {"reason", "by", "role"};
    const char *dry = sgm__http_query(request, "dry_run", 0);
    json_t *given = json_object();
    bool whole = given != NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = sgm__http_query(request, texts[i], 0);
        whole = whole && (text == NULL || json_object_set_new(given, texts[i], json_string(text)) == 0);
    }
    if (whole && dry != NULL && strcmp(dry, "false") != 0)
        json_object_set_new(given, "dry_run", json_true());
    if (whole)
        return given;
    json_decref(given);
    sgm_fail(SGM_ERROR_ARGUMENT, "the address has a 'reason', 'by' or 'role' that is no UTF-8");
    return NULL;
}

/* POST /api/checkpoint/NAME?trainer=..&reason=..&by=..&role=.., the body is the file. */
sgm_status sgm__web_add_checkpoint(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    const sgm__web_trainer *watched = user;
    sgm__terms terms = {0};
    json_t *given = terms_in_address(request);
    sgm_status status = given != NULL ? sgm__monitor_terms(request, given, &terms) : sgm__last_failure();
    if (status == SGM_OK)
        status = sgm__checkpoint_add(watched->trainer, request->path, terms.who, terms.reason, request->file);
    if (status == SGM_OK) {
        sgm__log(SGM_LOG_INFO, watched->name, "%s: checkpoint %s, of %zu bytes, was added", terms.who,
                 request->path, request->length);
        status = sgm__http_answer_json(answer, json_pack("{s:s}", "name", request->path));
    }
    sgm__free(terms.who);
    json_decref(given);
    return status;
}

/* POST /api/checkpoint-delete {"trainer", "name"}. */
sgm_status sgm__web_delete_checkpoint(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    const sgm__web_trainer *watched = user;
    const char *name;
    sgm__terms terms = {0};
    json_t *body = sgm__http_object(request);
    (void)answer;
    SGM_TRY(sgm__web_text(body, "name", true, &name));
    sgm_status status = sgm__monitor_terms(request, body, &terms);
    if (status == SGM_OK)
        status = sgm__checkpoint_remove(watched->trainer, name);
    if (status == SGM_OK)
        sgm__terms_log(watched->name, &terms, "checkpoint %s was deleted", name);
    sgm__free(terms.who);
    return status;
}
