/* Patterns of a trainer (frozen parameters, initialisers, modifiers), checked against the parameters of the
 * network; and which kind a state is.
 *
 * Patterns are set before the network is recorded, and a new network may come later, so they are checked when
 * a program is recorded (src/train/trainer_program.c). A dynamic network may record further parameters later,
 * so its patterns are not checked. */
#include "network/rerecord.h"
#include "registry/pattern.h"
#include "trainer/frozen.h"
#include "trainer/trainer_struct.h"

bool sgm__trainer_matches_any(const sgm_trainer *trainer, const char *pattern)
{
    for (size_t i = 0; i < trainer->learner.recording.parameter_count; i++)
        if (sgm__pattern_matches(pattern, trainer->learner.recording.parameters[i].name))
            return true;
    return false;
}

bool sgm__trainer_knows_parameters(const sgm_trainer *trainer)
{
    return trainer->learner.recording.parameter_count > 0 &&
           !sgm_network_is_dynamic(trainer->learner.network);
}

/* What a pattern may have been meant to be: names of parameters, all of a layer ("1-dense.*"), and all of a
 * kind ("*.weights"). Free the texts and the list. NULL: out of memory. */
static char **list_patterns(const sgm_trainer *trainer, size_t *count)
{
    const sgm_recording *recording = &trainer->learner.recording;
    char **list = sgm__calloc(3 * recording->parameter_count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; i < recording->parameter_count && list != NULL; i++) {
        const char *name = recording->parameters[i].name, *dot = strrchr(name, '.');
        list[*count] = sgm__strdup(name);
        *count += list[*count] != NULL;
        if (dot == NULL)
            continue;
        list[*count] = sgm__format("%.*s.*", (int)(dot - name), name);
        *count += list[*count] != NULL;
        if (strchr(name, '.') == dot) {
            list[*count] = sgm__format("*%s", dot);
            *count += list[*count] != NULL;
        }
    }
    return list;
}

/* The part of an identifier that is a parameter's name: "1-dense.*" of "network.layers.1-dense.*". */
static const char *without_place(const char *pattern)
{
    static const char *const places[] = {"network.layers.", "network."};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (sgm__begins_with(pattern, places[i]))
            return pattern + strlen(places[i]);
    return pattern;
}

/* Lists the first six parameters, for comparison. */
static sgm_status fail_unmatched(const sgm_trainer *trainer, const char *what, const char *pattern)
{
    sgm__text names = {0};
    size_t count = trainer->learner.recording.parameter_count, known;
    for (size_t i = 0; i < count && i < 6; i++)
        sgm__text_append(&names, "%s%s", i > 0 ? ", " : "", trainer->learner.recording.parameters[i].name);
    char **list = list_patterns(trainer, &known);
    const char *name = without_place(pattern), *near = NULL;
    char *whole = sgm__format("%s.*", name); /* a layer, without its parameters */
    if (name != pattern && sgm__trainer_matches_any(trainer, name))
        near = name;
    else if (whole != NULL && sgm__trainer_matches_any(trainer, whole))
        near = whole;
    else if (list != NULL)
        near = sgm__nearest(name, (const char *const *)list, known);
    sgm_status status = sgm_fail(
        SGM_ERROR_NOT_FOUND, "%s '%s' matches no parameter of the network%s%s%s; there are %s%s", what,
        pattern, near != NULL ? " (did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?)" : "",
        names.data != NULL ? names.data : "none", count > 6 ? ", ..." : "");
    for (size_t i = 0; i < known && list != NULL; i++)
        sgm__free(list[i]);
    sgm__free(list);
    sgm__free(whole);
    sgm__text_free(&names);
    return status;
}

sgm_status sgm__trainer_check_pattern(const sgm_trainer *trainer, const char *what, const char *pattern)
{
    SGM_TRY(sgm__pattern_check(pattern));
    return sgm__trainer_knows_parameters(trainer) && !sgm__trainer_matches_any(trainer, pattern)
               ? fail_unmatched(trainer, what, pattern)
               : SGM_OK;
}

/* A pattern that matches no parameter is a typing error, or belongs to another network. */
sgm_status sgm__trainer_check_patterns(const sgm_trainer *trainer)
{
    const sgm__trainer_patterns *patterns = &trainer->patterns;
    SGM_TRY(sgm__frozen_check_items(trainer, &patterns->frozen));
    for (size_t i = 0; i < patterns->rule_count; i++)
        SGM_TRY(sgm__trainer_check_pattern(trainer, "the initialiser for", patterns->rules[i].pattern));
    for (size_t i = 0; i < patterns->modifier_count; i++)
        SGM_TRY(sgm__trainer_check_pattern(trainer, "the modifier for", patterns->modifiers[i].pattern));
    return SGM_OK;
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
