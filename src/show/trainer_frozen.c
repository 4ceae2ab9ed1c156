/* What is frozen, as an entry of the registry: optimiser.frozen, a text that lists patterns in an order
 * (src/trainer/frozen.h).
 *
 * Freezing and unfreezing set this entry, so that they are noted, undone, kept by checkpoints and repeated by
 * a replay as any other value. */
#include "show/show.h"
#include "show/trainer_publish.h"
#include "trainer/frozen.h"
#include "trainer/trainer.h"

const sgm_option sgm__frozen_row = {
    .name = "frozen",
    .kind = SGM_KIND_TEXT,
    .live = true,
    .doc = "parameters that stay as they are: patterns with commas between them, "
           "\"*.weights, 3-dense.*\"; one with ! in front is an exception of "
           "those before it"};

static sgm_status get_frozen(const sgm__bound *bound, sgm_content *content)
{
    char *list = sgm__frozen_text(&sgm__patterns_of(bound->trainer)->frozen);
    *content = (sgm_content){SGM_KIND_TEXT, {.text = list}};
    return list != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Sets the summed gradients of frozen parameters to zero: when such a parameter is trained again later, it
 * begins with none. */
static sgm_status drop_accumulated(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    for (size_t i = 0; i < learner->recording.parameter_count; i++) {
        const char *name = learner->recording.parameters[i].name;
        char *slot = sgm__format(SGM__SLOT_PREFIX "accumulated.%s", name);
        sgm_type type;
        sgm_status status = slot != NULL ? SGM_OK : SGM_ERROR_MEMORY;
        if (status == SGM_OK && sgm__trainer_is_frozen(trainer, name) &&
            sgm_session_has(learner->session, slot)) {
            status = sgm_session_state_type(learner->session, slot, &type);
            sgm_tensor *zeros = status == SGM_OK ? sgm_tensor_create(type.dtype, &type.shape) : NULL;
            if (zeros != NULL)
                status = sgm_session_set(learner->session, slot, zeros);
            if (zeros != NULL && status == SGM_OK)
                status = sgm__trainer_state_was_set(trainer, slot);
            else if (zeros == NULL && status == SGM_OK)
                status = SGM_ERROR_MEMORY;
            sgm_tensor_free(zeros);
        }
        sgm__free(slot);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* All patterns are read and checked before the old ones are replaced. */
static sgm_status set_frozen(const sgm__bound *bound, const sgm_content *content)
{
    sgm_trainer *trainer = bound->trainer;
    sgm__frozen frozen = {0};
    sgm_status status = sgm__frozen_read(content->as.text, &frozen);
    if (status == SGM_OK)
        status = sgm__frozen_check(trainer, &frozen);
    if (status != SGM_OK) {
        sgm__frozen_clear(&frozen);
        return status;
    }
    sgm__frozen old = sgm__patterns_of(trainer)->frozen;
    sgm__patterns_of(trainer)->frozen = frozen;
    sgm__trainer_forget_programs(trainer);
    if (!sgm__journal_of(trainer)->restoring)
        status = drop_accumulated(trainer);
    if (status != SGM_OK)
        sgm__patterns_of(trainer)->frozen = old;
    sgm__frozen_clear(status == SGM_OK ? &old : &frozen);
    return status;
}

const sgm__access sgm__frozen_access = {.get = get_frozen, .set = set_frozen};

char *sgm__trainer_frozen_with(const sgm_trainer *trainer, const char *pattern, bool freeze)
{
    sgm__frozen changed = {0};
    char *text = sgm__frozen_change(trainer, pattern, freeze, &changed) == SGM_OK &&
                         sgm__frozen_check(trainer, &changed) == SGM_OK
                     ? sgm__frozen_text(&changed)
                     : NULL;
    sgm__frozen_clear(&changed);
    return text;
}

sgm_status sgm__trainer_set_frozen(sgm_trainer *trainer, const char *pattern, bool freeze)
{
    trainer = sgm__sharing_of(trainer)->owner;
    char *text = sgm__trainer_frozen_with(trainer, pattern, freeze);
    if (text == NULL)
        return sgm__last_failure();
    sgm_status status =
        sgm_registry_resolve_set(sgm__registry_of(trainer), SGM__FROZEN, sgm_text_content(text), NULL, NULL);
    sgm__free(text);
    return status;
}
