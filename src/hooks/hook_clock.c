/* Finds hooks that depend on the clock: what they do, or remember, is not the same in another run. */
#include "hooks/hooks_internal.h"

/* What changes with time alone, whatever the training does. */
static bool is_time(const char *identifier)
{
    return strcmp(identifier, "running_time") == 0 || sgm__begins_with(identifier, "shared.time_");
}

static const char *clock_of(const sgm_hook *hook)
{
    if (hook->background)
        return "it runs in the background, and ends when it does";
    if (hook->time_limit > 0)
        return "it has a time limit";
    for (size_t i = 0; i < hook->read_count; i++)
        if (is_time(hook->reads[i]))
            return "it reads the running time";
    return NULL;
}

void sgm__hook_describe_clock(const sgm_hook *hook, sgm__text *reasons)
{
    const char *clock = clock_of(hook);
    if (clock != NULL)
        sgm__text_append(reasons, "\n  the hook '%s' depends on the clock: %s",
                         hook->text != NULL ? hook->text : hook->type->name, clock);
}

void sgm__hooks_describe_clocks(sgm__hooks *hooks, sgm__text *reasons)
{
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count; i++)
        sgm__hook_describe_clock(hooks->entries[i]->hook, reasons);
    pthread_mutex_unlock(&hooks->lock);
}
