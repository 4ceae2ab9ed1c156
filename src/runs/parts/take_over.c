/* The third step of loading: everything that changes the trainer, once the file was read and compared with
 * it.
 *
 * What can still be refused here (states of hooks and preprocessors) comes before the first tensor is set and
 * is put back by state.c. Parameters that are set are not drawn by their initialisers before, which takes
 * longer than reading them: some seconds of a network of 135 million. While states are defined the trainer
 * asks for each parameter (sgm__learner.comes); after a failure those that were left out are drawn. */
#include "network/rerecord.h"
#include "persistence/bundle.h"
#include "runs/parts/parts.h"
#include "show/show.h"
#include "train/train.h"
#include "trainer/trainer.h"

/* --- parameters that are not drawn --- */

/* By the tensors of the bundle, in its order: those that are taken, and those of them that were not drawn. */
typedef struct undrawn {
    const sgm_bundle *bundle;
    const bool *taken;
    bool *left_out;
} undrawn;

/* Whether the bundle's tensor of that name is set right after: then the parameter is left out. */
static bool comes(void *loading, const char *name, const sgm_tensor *parameter)
{
    undrawn *u = loading;
    size_t at;
    if (!sgm__bundle_find(u->bundle, name, &at) || !u->taken[at])
        return false;
    const sgm_tensor *value = u->bundle->tensors[at].tensor;
    u->left_out[at] = sgm_tensor_dtype(value) == sgm_tensor_dtype(parameter) &&
                      sgm_shape_equal(sgm_tensor_shape(value), sgm_tensor_shape(parameter));
    return u->left_out[at];
}

/* After a failure, which may have come before all were defined. */
static sgm_status draw(const undrawn *u, sgm_trainer *trainer)
{
    const sgm_session *session = sgm__learner_of(trainer)->session;
    for (size_t i = 0; i < u->bundle->count; i++)
        if (u->left_out[i] && sgm_session_has(session, u->bundle->tensors[i].name))
            SGM_TRY(sgm__trainer_draw(trainer, u->bundle->tensors[i].name));
    return SGM_OK;
}

/* --- taking over --- */

/* After a load that failed: a trainer that had no network before, and got the file's, is without one
 * again, with a new, empty session. */
static sgm_status take_back_network(sgm_trainer *trainer, sgm_status failure)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    sgm__trainer_forget_programs(trainer);
    sgm_network_free(learner->network);
    learner->network = NULL;
    learner->recording = (sgm_recording){0};
    if (strategy != NULL)
        strategy->recorded(trainer);
    sgm_session *session = sgm_session_create(sgm__settings_of(trainer)->handler);
    if (session == NULL)
        return sgm__trainer_keep(trainer, sgm_last_status());
    if (strategy != NULL && strategy->new_session(trainer) != SGM_OK) {
        sgm_session_free(session);
        return sgm__trainer_keep(trainer, sgm_last_status());
    }
    sgm_session_free(learner->session);
    learner->session = session;
    sgm_status status = sgm__trainer_keep(trainer, sgm__trainer_publish_network(trainer));
    return status == SGM_OK ? failure : status;
}

/* Defines all states before they are set, with the parameters of `u` left out. A trainer without a network
 * takes the one that the comparison has made from the file, and *is_new becomes true. A trainer with a
 * network first collects what its workers have learnt, as states that the file lacks keep it. */
static sgm_status prepare(sgm_trainer *trainer, sgm__fit *fit, undrawn *u, bool *is_new)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    sgm_status status = SGM_OK;
    *is_new = learner->network == NULL;
    if (*is_new) {
        learner->network = fit->network;
        fit->network = NULL;
        SGM_TRY(sgm__trainer_publish_network(trainer));
    }
    learner->comes = comes;
    learner->loading = u;
    status = *is_new ? sgm__trainer_define_states(trainer) : sgm__trainer_prepare(trainer);
    learner->comes = NULL;
    learner->loading = NULL;
    return status == SGM_OK && !*is_new ? sgm__trainer_collect(trainer) : status;
}

/* A parameter is also copied to workers, and its average begins anew; other states are set in the session
 * alone. */
static sgm_status set_state(sgm_trainer *trainer, const char *name, const sgm_tensor *value)
{
    if (sgm__part_of_state(name) == SGM_PART_PARAMETERS)
        return sgm__trainer_put_state(trainer, name, value);
    return sgm_session_set(sgm__learner_of(trainer)->session, name, value);
}

/* Sets the states that are taken. Averages come last: setting a parameter begins its average anew, and the
 * file's average must win. `taken` was decided before prepare() defined states, as sgm__fit_takes also
 * looks at which states the session has. */
static sgm_status set_states(sgm_trainer *trainer, const sgm_bundle *bundle, const bool *taken)
{
    for (int averages = 0; averages <= 1; averages++)
        for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
            const char *name = sgm_bundle_name_at(bundle, i);
            bool average = sgm__begins_with(name, SGM__AVERAGE_PREFIX);
            if (taken[i] && average == (averages == 1) && sgm__trainer_has_state(trainer, name))
                SGM_TRY(set_state(trainer, name, sgm_bundle_get(bundle, name)));
        }
    sgm__trainer_forget_programs(trainer);
    return SGM_OK;
}

/* In this order: states are defined; hooks and preprocessors take or refuse their numbers; tensors are set.
 */
static sgm_status take_states(sgm_trainer *trainer, sgm__fit *fit, const sgm__saved_state *state, undrawn *u,
                              bool *is_new)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    SGM_TRY(prepare(trainer, fit, u, is_new));
    SGM_TRY(sgm__state_set_learnt(trainer, state, fit->wanted->parts));
    SGM_TRY(set_states(trainer, fit->bundle, u->taken));
    return (fit->wanted->parts & SGM_PART_OPTIMISER) != 0 && strategy != NULL
               ? strategy->loaded(trainer, fit->bundle, u->taken)
               : SGM_OK;
}

/* A failure after the file's network was taken gives it back. */
static sgm_status take_or_give_back(sgm_trainer *trainer, sgm__fit *fit, const sgm__saved_state *state,
                                    undrawn *u)
{
    bool is_new = false;
    sgm_status status = take_states(trainer, fit, state, u, &is_new);
    if (status == SGM_OK)
        return SGM_OK;
    if (is_new)
        return take_back_network(trainer, status);
    return draw(u, trainer) == SGM_OK ? status : sgm__trainer_keep(trainer, sgm_last_status());
}

sgm_status sgm__take_over(sgm_trainer *trainer, sgm__fit *fit, const sgm__saved_state *state)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    size_t count = sgm_bundle_count(fit->bundle);
    bool *marks = sgm__calloc(2 * (count + 1), sizeof(bool)), *taken = marks;
    if (marks == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        taken[i] = sgm__fit_takes(fit, sgm_bundle_name_at(fit->bundle, i));
    undrawn u = {.bundle = fit->bundle, .taken = taken, .left_out = marks + count + 1};
    sgm_status status = take_or_give_back(trainer, fit, state, &u);
    sgm__free(marks);
    SGM_TRY(status);
    SGM_TRY(sgm__state_set_rest(trainer, state, fit->wanted->parts));
    bool all = sgm__parts_are_all(fit->wanted);
    return strategy != NULL ? strategy->take_over(trainer, fit->bundle, all ? state->json : NULL, fit->source)
                            : SGM_OK;
}
