/* The list of patterns that says which parameters are frozen: see frozen.h. */
#include "trainer/frozen.h"
#include "network/rerecord.h"
#include "registry/pattern.h"
#include "trainer/trainer_struct.h"

static bool is_trained(const char *item)
{
    return item[0] == SGM__TRAINED_MARK;
}

static const char *pattern_of(const char *item)
{
    return item + (is_trained(item) ? 1 : 0);
}

bool sgm__frozen_has(const sgm__frozen *frozen, const char *parameter)
{
    for (size_t i = frozen->count; i-- > 0;)
        if (sgm__pattern_matches(pattern_of(frozen->items[i]), parameter))
            return !is_trained(frozen->items[i]);
    return false;
}

void sgm__frozen_clear(sgm__frozen *frozen)
{
    for (size_t i = 0; i < frozen->count; i++)
        sgm__free(frozen->items[i]);
    sgm__free(frozen->items);
    *frozen = (sgm__frozen){0};
}

/* Takes the text; NULL: out of memory. */
static sgm_status append(sgm__frozen *frozen, char *item)
{
    sgm_status status = item != NULL ? sgm__reserve(&frozen->items, &frozen->capacity, frozen->count + 1,
                                                    sizeof *frozen->items)
                                     : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        frozen->items[frozen->count++] = item;
    else
        sgm__free(item);
    return status;
}

static void drop(sgm__frozen *frozen, size_t index)
{
    sgm__free(frozen->items[index]);
    frozen->count--;
    memmove(frozen->items + index, frozen->items + index + 1,
            (frozen->count - index) * sizeof *frozen->items);
}

bool sgm__frozen_equal(const sgm__frozen *a, const sgm__frozen *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; i < a->count && equal; i++)
        equal = strcmp(a->items[i], b->items[i]) == 0;
    return equal;
}

/* --- as text --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Adds one pattern without the spaces around it. An empty one, between two commas, is refused by
 * sgm__pattern_check. */
static sgm_status read_item(sgm__frozen *frozen, const char *text, size_t length)
{
    for (; length > 0 && is_blank(*text); length--)
        text++;
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    SGM_TRY(append(frozen, sgm__strndup(text, length)));
    return sgm__pattern_check(pattern_of(frozen->items[frozen->count - 1]));
}

sgm_status sgm__frozen_read(const char *text, sgm__frozen *frozen)
{
    if (text[strspn(text, " \t")] == '\0')
        return SGM_OK;
    for (;; text++) {
        size_t length = strcspn(text, ",");
        SGM_TRY(read_item(frozen, text, length));
        text += length;
        if (*text == '\0')
            return SGM_OK;
    }
}

char *sgm__frozen_text(const sgm__frozen *frozen)
{
    sgm__text text = {0};
    sgm__text_append(&text, "%s", "");
    for (size_t i = 0; i < frozen->count; i++)
        sgm__text_append(&text, "%s%s", i > 0 ? ", " : "", frozen->items[i]);
    return sgm__text_take(&text);
}

/* --- checks --- */

static const char *verb_of(bool trains)
{
    return trains ? "unfreezing" : "freezing";
}

sgm_status sgm__frozen_check_items(const sgm_trainer *trainer, const sgm__frozen *frozen)
{
    for (size_t i = 0; i < frozen->count; i++)
        SGM_TRY(sgm__trainer_check_pattern(trainer, verb_of(is_trained(frozen->items[i])),
                                           pattern_of(frozen->items[i])));
    return SGM_OK;
}

/* Before anything is recorded there are no parameters to compare with; the check at recording (find_trained
 * in src/train/trainer_program.c) then finds what is wrong. */
sgm_status sgm__frozen_check(const sgm_trainer *trainer, const sgm__frozen *frozen)
{
    const sgm_recording *recording = &trainer->learner.recording;
    bool any = recording->parameter_count == 0;
    SGM_TRY(sgm__frozen_check_items(trainer, frozen));
    for (size_t i = 0; i < recording->parameter_count && !any; i++)
        any = recording->parameters[i].trainable && !recording->parameters[i].frozen &&
              !sgm__frozen_has(frozen, recording->parameters[i].name);
    return any ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE, "nothing would be left to train: all parameters would be frozen");
}

sgm_status sgm__frozen_fail(const sgm__frozen *frozen)
{
    for (size_t i = frozen->count; i-- > 0;)
        if (!is_trained(frozen->items[i]))
            return sgm_fail(SGM_ERROR_STATE,
                            "freezing '%s': nothing is left to train: all parameters are frozen; leave out "
                            "those that go on, or except them, as in \"!3-dense.*\"",
                            frozen->items[i]);
    return sgm_fail(SGM_ERROR_STATE,
                    "nothing is left to train: the network has no parameters, or all are frozen");
}

/* Adapters freeze by the network, which no pattern ends. */
static sgm_status check_adapters(const sgm_trainer *trainer, const char *pattern)
{
    const sgm_recording *recording = &trainer->learner.recording;
    const char *adapted = NULL;
    for (size_t i = 0; i < recording->parameter_count; i++) {
        const sgm_parameter *parameter = &recording->parameters[i];
        if (!sgm__pattern_matches(pattern, parameter->name))
            continue;
        if (!parameter->frozen)
            return SGM_OK;
        adapted = parameter->name;
    }
    return adapted == NULL ? SGM_OK
                           : sgm_fail(SGM_ERROR_STATE,
                                      "unfreezing '%s': %s is frozen by the network's adapters; they train "
                                      "what their argument 'train' matches",
                                      pattern, adapted);
}

/* --- changing --- */

sgm_status sgm__frozen_copy(const sgm__frozen *from, sgm__frozen *to)
{
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < from->count && status == SGM_OK; i++)
        status = append(to, sgm__strdup(from->items[i]));
    return status;
}

/* Whether both freeze the same parameters of the network. */
static bool is_same(const sgm_trainer *trainer, const sgm__frozen *a, const sgm__frozen *b)
{
    const sgm_recording *recording = &trainer->learner.recording;
    bool same = sgm__trainer_knows_parameters(trainer);
    for (size_t i = 0; i < recording->parameter_count && same; i++)
        same = sgm__frozen_has(a, recording->parameters[i].name) ==
               sgm__frozen_has(b, recording->parameters[i].name);
    return same;
}

/* Whether a parameter that matches is frozen; where they are not known, whether one may be. */
static bool freezes_any(const sgm_trainer *trainer, const sgm__frozen *frozen, const char *pattern)
{
    const sgm_recording *recording = &trainer->learner.recording;
    if (!sgm__trainer_knows_parameters(trainer))
        return frozen->count > 0;
    for (size_t i = 0; i < recording->parameter_count; i++)
        if (sgm__pattern_matches(pattern, recording->parameters[i].name) &&
            sgm__frozen_has(frozen, recording->parameters[i].name))
            return true;
    return false;
}

/* Whether all patterns together leave nothing frozen. */
static bool freezes_nothing(const sgm_trainer *trainer, const sgm__frozen *frozen)
{
    const sgm_recording *recording = &trainer->learner.recording;
    bool none = sgm__trainer_knows_parameters(trainer);
    for (size_t i = 0; i < recording->parameter_count && none; i++)
        none = !sgm__frozen_has(frozen, recording->parameters[i].name);
    return none;
}

/* The new pattern decides for all that it matches, so an older one with the same text decides nothing any
 * more. Neither does an exception in front of all others. */
sgm_status sgm__frozen_put(const sgm_trainer *trainer, const char *pattern, bool freeze, sgm__frozen *frozen)
{
    SGM_TRY(sgm__frozen_copy(&trainer->patterns.frozen, frozen));
    for (size_t i = frozen->count; i-- > 0;)
        if (strcmp(pattern_of(frozen->items[i]), pattern) == 0)
            drop(frozen, i);
    while (frozen->count > 0 && is_trained(frozen->items[0]))
        drop(frozen, 0);
    if (freeze)
        return append(frozen, sgm__strdup(pattern));
    return freezes_any(trainer, frozen, pattern)
               ? append(frozen, sgm__format("%c%s", SGM__TRAINED_MARK, pattern))
               : SGM_OK;
}

/* A pattern that matches all parameters would leave nothing to train whenever it is frozen, whatever is
 * frozen by then. */
static sgm_status check_leaves_any(const sgm_trainer *trainer, const char *pattern)
{
    const sgm_recording *recording = &trainer->learner.recording;
    bool any = recording->parameter_count == 0;
    for (size_t i = 0; i < recording->parameter_count && !any; i++) {
        const sgm_parameter *parameter = &recording->parameters[i];
        any = parameter->trainable && !parameter->frozen && !sgm__pattern_matches(pattern, parameter->name);
    }
    return any ? SGM_OK
               : sgm_fail(
                     SGM_ERROR_STATE,
                     "freezing '%s': nothing would be left to train: all parameters would be frozen; leave "
                     "out those that go on, as in \"1-dense.*\"",
                     pattern);
}

sgm_status sgm__trainer_check_freeze(const sgm_trainer *trainer, const char *pattern, bool freeze)
{
    SGM_TRY(sgm__trainer_check_pattern(trainer, verb_of(!freeze), pattern));
    return freeze ? check_leaves_any(trainer, pattern) : check_adapters(trainer, pattern);
}

sgm_status sgm__frozen_change(const sgm_trainer *trainer, const char *pattern, bool freeze,
                              sgm__frozen *changed)
{
    const sgm__frozen *now = &trainer->patterns.frozen;
    SGM_TRY(sgm__trainer_check_freeze(trainer, pattern, freeze));
    SGM_TRY(sgm__frozen_put(trainer, pattern, freeze, changed));
    bool same = is_same(trainer, now, changed), none = freezes_nothing(trainer, changed);
    if (same || none)
        sgm__frozen_clear(changed);
    return same ? sgm__frozen_copy(now, changed) : SGM_OK;
}
