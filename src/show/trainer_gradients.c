/* Gradients and updates in the registry. Nobody pays for them until somebody reads one: then the training
 * step is recorded anew, with states that keep them from the next iteration on. It is recorded without them
 * again when all who have read them said for how long, and that is over. */
#include "network/rerecord.h"
#include "optim/optimiser.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"

#include <math.h>

typedef struct kept_kind {
    sgm_option option;  /* but for the name */
    const char *prefix; /* of the identifier */
    const char *state_prefix;
    bool updates;
} kept_kind;

static const kept_kind kinds[] = {
    {{.kind = SGM_KIND_TENSOR,
      .read_only = true,
      .doc =
          "gradient of the newest update, averaged over its minibatches, before clipping and weight decay"},
     "optimiser.gradients.",
     SGM__GRADIENT_PREFIX,
     false},
    {{.kind = SGM_KIND_TENSOR,
      .read_only = true,
      .doc = "the step that the newest update took: the parameter after it less the one before"},
     "optimiser.updates.",
     SGM__STEP_PREFIX,
     true},
};

/* Asks for gradients or updates from the next iteration on, until the time that the reader has given
 * (sgm__trainer_read_for), or for good. */
static void ask(sgm_trainer *trainer, const kept_kind *kind)
{
    double *until =
        kind->updates ? &sgm__kept_of(trainer)->updates_until : &sgm__kept_of(trainer)->gradients_until;
    bool kept = *until > 0;
    *until = fmax(*until, sgm__kept_of(trainer)->read_for > 0 ? sgm__now() + sgm__kept_of(trainer)->read_for
                                                              : INFINITY);
    if (kept)
        return;
    sgm__kept_of(trainer)->from = sgm__position_of(trainer)->updates;
    sgm__trainer_forget_programs(trainer);
}

/* Between two iterations: stops keeping what nobody has read for as long as its readers said. */
void sgm__trainer_let_go_of_kept(sgm_trainer *trainer)
{
    sgm__trainer_kept *kept = sgm__kept_of(trainer);
    double *const ends[] = {&kept->gradients_until, &kept->updates_until};
    for (size_t i = 0; i < 2; i++)
        if (*ends[i] > 0 && isfinite(*ends[i]) && sgm__now() > *ends[i]) {
            *ends[i] = 0;
            sgm__trainer_forget_programs(trainer);
        }
}

/* The value of the newest update since keeping began; before that there is none, and the error says to read
 * again after the next one. */
static sgm_status get_kept(const sgm__bound *bound, sgm_content *content)
{
    sgm_trainer *trainer = bound->trainer, *owner = sgm__sharing_of(trainer)->owner;
    const kept_kind *kind = bound->row;
    const char *what = kind->updates ? "updates" : "gradients";
    const char *name = bound->identifier + strlen(kind->prefix);
    const sgm_parameter *parameter = sgm__network_parameter(sgm__learner_of(trainer)->network, name);
    if (parameter == NULL || sgm__trainer_is_frozen(trainer, name))
        return sgm_fail(SGM_ERROR_STATE, "%s is frozen and has no %s", name, what);
    if (sgm__sharing_of(owner)->strategy != NULL)
        SGM_TRY(sgm__sharing_of(owner)->strategy->find_kept(bound->trainer, name, what, &trainer));
    ask(owner, kind);
    SGM_TRY(sgm__trainer_collect(trainer));
    char *state = sgm__format("%s%s", kind->state_prefix, name);
    if (state == NULL)
        return SGM_ERROR_MEMORY;
    bool is_there = sgm__position_of(trainer)->updates > sgm__kept_of(owner)->from &&
                    sgm_session_has(sgm__learner_of(trainer)->session, state);
    sgm_tensor *value = is_there ? sgm_session_get(sgm__learner_of(trainer)->session, state) : NULL;
    sgm__free(state);
    if (!is_there)
        return sgm_fail(
            SGM_ERROR_STATE,
            "%s are kept from now on, as somebody reads them: there are some after the next update", what);
    *content = sgm_tensor_content(value);
    return value != NULL ? SGM_OK : sgm_last_status();
}

static const sgm__access kept_access = {.get = get_kept};

/* "2-dense.weights" becomes PREFIX2-dense.weights. */
static sgm_status publish_kept(sgm_trainer *trainer, sgm_registry *parent, const kept_kind *kind,
                               const char *parameter)
{
    const char *dot = strrchr(parameter, '.');
    const char *entry = dot != NULL ? dot + 1 : parameter;
    sgm_option row = kind->option;
    row.name = entry;
    const sgm_option *kept = sgm__trainer_keep_row(trainer, &row);
    char *prefix = sgm__format("%s%.*s", kind->prefix, (int)(entry - parameter), parameter);
    sgm_status status = kept != NULL && prefix != NULL
                            ? sgm__publish_path(parent, prefix + strlen(kind->prefix), &parent)
                            : SGM_ERROR_MEMORY;
    if (status == SGM_OK && !sgm_registry_has(parent, entry))
        status = sgm__publish_value(trainer, parent, prefix, kept, &kept_access, kind);
    sgm__free(prefix);
    return status;
}

sgm_status sgm__publish_kept(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    static const char *const names[] = {"gradients", "updates"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        sgm_registry *parent;
        SGM_TRY(sgm__publish_child(sgm__registry_of(trainer), "optimiser", "optimiser", &parent));
        SGM_TRY(sgm__publish_child(parent, names[k], names[k], &parent));
        for (size_t i = 0; i < learner->recording.parameter_count; i++)
            if (learner->recording.parameters[i].trainable)
                SGM_TRY(publish_kept(trainer, parent, &kinds[k], learner->recording.parameters[i].name));
    }
    return SGM_OK;
}
