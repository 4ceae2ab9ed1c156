/* Patterns of a trainer (frozen parameters, initialisers, modifiers), checked against the parameters of the
 * network; and which kind a state is.
 *
 * Patterns are set before the network is recorded, and a new network may come later, so they are checked when
 * a program is recorded (src/train/trainer_program.c). A dynamic network may record further parameters later,
 * so its patterns are not checked. */
#include "network/rerecord.h"
#include "registry/pattern.h"
#include "trainer/trainer_struct.h"

bool sgm__trainer_matches_any(const sgm_trainer *trainer, const char *pattern)
{
    for (size_t i = 0; i < trainer->learner.recording.parameter_count; i++)
        if (sgm__pattern_matches(pattern, trainer->learner.recording.parameters[i].name))
            return true;
    return false;
}

/* The error of a pattern without a parameter: lists the first six parameters, for comparison. */
static sgm_status fail_unmatched(const sgm_trainer *trainer, const char *what, const char *pattern)
{
    sgm__text names = {0};
    size_t count = trainer->learner.recording.parameter_count;
    for (size_t i = 0; i < count && i < 6; i++)
        sgm__text_append(&names, "%s%s", i > 0 ? ", " : "", trainer->learner.recording.parameters[i].name);
    sgm_status status =
        sgm_fail(SGM_ERROR_NOT_FOUND, "%s '%s' matches no parameter of the network; there are %s%s", what,
                 pattern, names.data != NULL ? names.data : "none", count > 6 ? ", ..." : "");
    sgm__text_free(&names);
    return status;
}

/* A pattern that matches no parameter is a typing error, or belongs to another network. */
sgm_status sgm__trainer_check_patterns(const sgm_trainer *trainer)
{
    if (sgm_network_is_dynamic(trainer->learner.network))
        return SGM_OK;
    for (size_t i = 0; i < trainer->patterns.frozen_count; i++)
        if (!sgm__trainer_matches_any(trainer, trainer->patterns.frozen[i]))
            return fail_unmatched(trainer, "freezing", trainer->patterns.frozen[i]);
    for (size_t i = 0; i < trainer->patterns.rule_count; i++)
        if (!sgm__trainer_matches_any(trainer, trainer->patterns.rules[i].pattern))
            return fail_unmatched(trainer, "the initialiser for", trainer->patterns.rules[i].pattern);
    for (size_t i = 0; i < trainer->patterns.modifier_count; i++)
        if (!sgm__trainer_matches_any(trainer, trainer->patterns.modifiers[i].pattern))
            return fail_unmatched(trainer, "the modifier for", trainer->patterns.modifiers[i].pattern);
    return SGM_OK;
}

static bool is_among(const char *parameter, char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sgm__pattern_matches(patterns[i], parameter))
            return true;
    return false;
}

/* Before anything is recorded there are no parameters to compare with; the check at recording (find_trained
 * in src/train/trainer_program.c) then finds what is wrong. */
sgm_status sgm__trainer_check_frozen(const sgm_trainer *trainer, char *const *patterns, size_t count)
{
    const sgm_recording *recording = &trainer->learner.recording;
    bool any = recording->parameter_count == 0;
    for (size_t i = 0; i < count && !any && !sgm_network_is_dynamic(trainer->learner.network); i++)
        if (!sgm__trainer_matches_any(trainer, patterns[i]))
            return fail_unmatched(trainer, "freezing", patterns[i]);
    for (size_t i = 0; i < recording->parameter_count && !any; i++)
        any = recording->parameters[i].trainable && !recording->parameters[i].frozen &&
              !is_among(recording->parameters[i].name, patterns, count);
    return any ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE, "nothing would be left to train: all parameters would be frozen");
}

/* --- kinds of states --- */

bool sgm__trainer_trains(const sgm_trainer *trainer, const char *name)
{
    const sgm_parameter *parameter = sgm__network_parameter(trainer->learner.network, name);
    return parameter != NULL && parameter->trainable;
}

/* All states that are neither trained parameters nor the trainer's own (random generator, optimiser,
 * averages, kept gradients) belong to layers. */
bool sgm__trainer_is_layer_state(const sgm_trainer *trainer, const char *state)
{
    bool ours = sgm__begins_with(state, "random.") || sgm__begins_with(state, SGM__SLOT_PREFIX) ||
                sgm__begins_with(state, SGM__AVERAGE_PREFIX) || sgm__begins_with(state, SGM__KEPT_PREFIX);
    return !ours && !sgm__trainer_trains(trainer, state);
}
