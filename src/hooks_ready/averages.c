/* The moving averages of the parameters in their place, and back. */
#include "hooks/hook_text.h"
#include "runs/run_folder.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"

#include <sigma/diagnostics.h>

static sgm_status exchange(sgm_session *session, const char *average)
{
    const char *parameter = average + strlen(SGM__AVERAGE_PREFIX);
    sgm_tensor *a = sgm_session_get(session, average), *b = sgm_session_get(session, parameter);
    sgm_status status = a && b ? sgm_session_set(session, parameter, a) : sgm_last_status();
    if (status == SGM_OK)
        status = sgm_session_set(session, average, b);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    return status;
}

static sgm_status swap(sgm_trainer *trainer)
{
    const char *name;
    size_t count = 0;
    if (trainer->strategy)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "averages are not swapped while several workers train");
    for (size_t i = 0; (name = sgm_session_state_at(trainer->session, i)); i++) {
        if (strncmp(name, SGM__AVERAGE_PREFIX, strlen(SGM__AVERAGE_PREFIX)) != 0)
            continue;
        SGM_TRY(exchange(trainer->session, name));
        count++;
    }
    if (count == 0)
        return sgm_fail(SGM_ERROR_STATE, "there are no averages of parameters: set the optimiser's average "
                                         "to a number such as 0.999");
    trainer->averages_in = !trainer->averages_in;
    sgm__trainer_forget_programs(trainer);
    return SGM_OK;
}

sgm_status sgm_trainer_swap_averages(sgm_trainer *trainer)
{
    SGM_TRY(sgm_trainer_status(trainer));
    SGM_TRY(sgm__trainer_enter(trainer));
    sgm_status status = trainer->averages_in ? SGM_OK : sgm__trainer_prepare(trainer);
    if (status == SGM_OK)
        status = swap(trainer);
    sgm__trainer_unlock(trainer);
    return status;
}

bool sgm_trainer_averages_are_in(const sgm_trainer *trainer)
{
    return trainer && trainer->averages_in;
}

/* --- the hook --- */

/* After all hooks of the event. Saving prepares a trainer, which stands prepared already. */
static sgm_status save(void *name, sgm_trainer *trainer)
{
    SGM_TRY(swap(trainer));
    sgm_status status = sgm__run_folder_save_as(trainer, trainer->folder, name);
    if (status != SGM_OK)
        sgm__log(SGM_LOG_ERROR, trainer->name, "averages were not saved: %s", sgm_last_error());
    return swap(trainer);
}

static sgm_status ask(void *name, sgm_hook_call *call)
{
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    if (!trainer || !trainer->folder)
        return sgm_fail(SGM_ERROR_STATE, "the run has no folder to save averages in: give it one");
    char *filled = sgm_resolve_text(call->registry, name);
    return filled ? sgm__hook_request_act(call, save, filled, sgm__free) : sgm_last_status();
}

static bool equal_texts(const void *a, const void *b)
{
    return strcmp(a, b) == 0;
}

static const sgm_hook_type saver_type = {.api = SGM_HOOK_API,
                                         .name = "averages_saver",
                                         .doc = "saves the averaged parameters",
                                         .invoke = ask,
                                         .equal = equal_texts,
                                         .free = sgm__free,
                                         .only_global = "it saves the trainer, with all workers"};

sgm_hook *sgm_averages_saver(const char *name, sgm_time_step when)
{
    if (!name || !name[0] || name[0] == '.' || strchr(name, '/')) {
        sgm_fail(SGM_ERROR_ARGUMENT, "'%s' is no name to save under: no slash, no dot in front",
                 name ? name : "");
        return NULL;
    }
    char *copy = sgm__strdup(name);
    return copy ? sgm_hook_create(&saver_type, copy, .when = when, .priority = 9000) : NULL;
}

/* --- as text --- */

static sgm_hook *parse_saver(const sgm__hook_text *call)
{
    return sgm_averages_saver(sgm__hook_text_of(call, "name"), call->when);
}

const sgm__hook_row sgm__averages_saver_row = {
    .name = "averages_saver",
    .doc = "writes NAME.safetensors into the folder of the run, with the averages as the parameters",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"name", SGM__ARGUMENT_WORD, .needed = true,
                   .doc = "in quotes it may have values in it, \"averages-{epoch}\""}},
    .create = parse_saver,
    .global = true,
};
