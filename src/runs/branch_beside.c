/* Begins branches for rules: the moment is that of the rule, so its state is saved first, by the training's
 * thread; then the environment makes a trainer of it (src/environment/env_branch.c).
 *
 * Making the trainer takes locks of both, and must not be done with the lock of the first. So another thread
 * does it, while the training's thread has given its locks away and waits: the training goes on when the
 * branch has begun. */
#include "runs/branch_beside.h"
#include "base/turn_lock.h"
#include "journal/run_lines.h"
#include "persistence/bundle.h"
#include "runs/checkpoints.h"
#include "runs/origin.h"
#include "trainer/trainer.h"

#include <pthread.h>
#include <unistd.h>

sgm_status sgm__branch_check(const sgm_trainer *trainer)
{
    const sgm_trainer *owner = sgm__sharing_of(trainer)->owner;
    if (sgm__trainer_has_ranks(owner))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "a rule begins no branch where several processes train together");
    return sgm__membership_of(owner)->branch != NULL
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE,
                          "a rule begins branches of trainers that an environment runs (sgm_env_run), and "
                          "this one has none");
}

sgm_status sgm__branch_tell(const sgm_trainer *trainer, const sgm__branch_request *request)
{
    const char *slash = strrchr(request->checkpoint, '/');
    char checksum[SGM__CHECKSUM_DIGITS + 1] = "";
    sgm__checksum_of_file(request->checkpoint, checksum);
    return sgm__run_folder_event(trainer, SGM__ENTRY_BRANCH,
                                 json_pack("{s:s, s:s*, s:s, s:s, s:s, s:o}", "who", request->who, "reason",
                                           request->reason, "name", request->name, "checkpoint",
                                           slash != NULL ? slash + 1 : request->checkpoint, "of", checksum,
                                           "set", sgm__branch_values(request)));
}

/* What the other thread is told, and what it tells. */
typedef struct task {
    sgm_trainer *from;
    const sgm__branch_request *request;
    sgm_status status;
    char message[800];
} task;

static void *make(void *argument)
{
    task *t = argument;
    const sgm__membership *membership = sgm__membership_of(t->from);
    t->status = membership->branch(membership->env, t->from, t->request);
    if (t->status != SGM_OK)
        snprintf(t->message, sizeof t->message, "%s", sgm_last_error());
    return NULL;
}

static sgm_status make_on_thread(sgm_trainer *trainer, const sgm__branch_request *request)
{
    task t = {.from = trainer, .request = request};
    pthread_t thread;
    if (pthread_create(&thread, NULL, make, &t) != 0)
        return sgm_fail(SGM_ERROR_MEMORY, "the system refused a thread that makes the branch '%s'",
                        request->name);
    sgm__give_way_begin();
    pthread_join(thread, NULL);
    sgm__give_way_end();
    return t.status == SGM_OK ? SGM_OK : sgm_fail(t.status, "%s", t.message);
}

static sgm_status begin_from(sgm_trainer *trainer, const sgm__branch_request *asked, const char *path)
{
    sgm__branch_request request = *asked;
    request.checkpoint = path;
    SGM_TRY(sgm_trainer_save(trainer, path));
    if (sgm__journal_of(trainer)->replay == NULL) {
        sgm_status status = make_on_thread(trainer, &request);
        if (status != SGM_OK)
            unlink(path); /* a later try may have the same name */
        return status;
    }
    sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer), "the branch '%s' is not begun: this is a replay",
             request.name);
    return sgm__branch_tell(trainer, &request);
}

sgm_status sgm__branch_begin(sgm_trainer *trainer, const sgm__branch_request *request)
{
    char *path = NULL;
    if (sgm__journal_of(trainer)->branched != NULL)
        return SGM_OK;
    SGM_TRY(sgm__branch_check(trainer));
    SGM_TRY(sgm__checkpoint_path(trainer, request->name, true, &path));
    sgm_status status = begin_from(trainer, request, path);
    sgm__free(path);
    return status;
}
