/* Saves the moving averages of the parameters in their place.
 *
 * The averages themselves belong to the optimiser (option `average`), which updates them in each step; the
 * swap is made by src/train/trainer_predict.c. This hook only asks: invoke() runs in the middle of an
 * event, where other hooks still read the parameters, so the saving is an act (sgm__hook_request_act) that
 * the training's thread carries out when all hooks of the event have run. The file is a checkpoint whose
 * parameters are the averages; it suits prediction and export. */
#include "hooks/hook_text.h"
#include "runs/run_folder.h"
#include "train/measure.h"
#include "trainer/trainer_lock.h"

#include <sigma/hooks.h>

/* The act. The averages are swapped back also when saving failed; what went wrong is then in the log,
 * since the run goes on without the file. */
static sgm_status save(void *name, sgm_trainer *trainer)
{
    SGM_TRY(sgm__trainer_swap_averages(trainer));
    sgm_status status = sgm__run_folder_save_as(trainer, sgm__trainer_look(trainer).folder, name);
    if (status != SGM_OK)
        sgm__log(SGM_LOG_ERROR, sgm_trainer_name(trainer), "averages were not saved: %s", sgm_last_error());
    return sgm__trainer_swap_averages(trainer);
}

/* invoke(): the values in the name ({epoch}) are filled in here, while the registry still shows this
 * event. */
static sgm_status ask(void *name, sgm_hook_call *call)
{
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    if (!trainer || !sgm__trainer_look(trainer).folder)
        return sgm_fail(SGM_ERROR_STATE, "the run has no folder to save averages in: give it one");
    char *filled = sgm_registry_resolve_text(call->registry, name);
    return filled ? sgm__hook_request_act(call, save, filled, sgm__free) : sgm_last_status();
}

static bool equal_texts(const void *a, const void *b)
{
    return strcmp(a, b) == 0;
}

/* The self is the name alone. Without get_state(): nothing of it changes during a run. */
static const sgm_hook_type saver_type = {.api = SGM_HOOK_API,
                                         .name = "averages_saver",
                                         .doc = "saves the averaged parameters",
                                         .invoke = ask,
                                         .equal = equal_texts,
                                         .free = sgm__free,
                                         .only_global = "it saves the trainer, with all workers"};

/* Priority 9000: after all hooks that change or measure, before those that stop the run (10000). */
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

static sgm_hook *parse_saver(const sgm__call *call, sgm_time_step when)
{
    return sgm_averages_saver(sgm__call_text(call, "name"), when);
}

const sgm__hook_row sgm__averages_saver_row = {
    .name = "averages_saver",
    .example = "averages_saver(averages)",
    .doc = "writes NAME.safetensors into the folder of the run, with the averages as the parameters",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"name", SGM_KIND_TEXT, .required = true,
                   .doc = "in quotes it may have values in it, \"averages-{epoch}\""}},
    .create = parse_saver,
    .global = true,
};
