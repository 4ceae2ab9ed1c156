/* What a trainer shows of itself: names for everything that may be watched or changed while it runs.
 *
 * Reading and setting wait for the step that is running; what is set counts from the next iteration on. */
#include "show/show.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"

/* --- values --- */

const char *sgm__option_effect(const sgm_option *option)
{
    return option != NULL && option->effect != NULL ? option->effect : "from the next iteration on";
}

sgm_status sgm__trainer_publish(sgm_trainer *trainer)
{
    sgm_registry *child, *root = sgm__registry_of(trainer);
    SGM_TRY(sgm_registry_tag(root, "trainer"));
    SGM_TRY(sgm__publish_values(trainer));
    SGM_TRY(sgm__publish_settings(trainer));
    return sgm__publish_child(root, "shared", "shared", &child);
}
