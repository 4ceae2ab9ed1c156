/* What was done to a run, as a list for programs (replay.h of the public headers). */
#include "journal/history.h"
#include "journal/run_lines.h"
#include "runs/origin.h"
#include "runs/remade.h"
#include "runs/replay.h"

/* What was asked for, and changed the training or its folder. */
static bool is_shown(const sgm__journal_entry *entry)
{
    return entry->asked && entry->kind < SGM__ENTRY_PAUSE;
}

static sgm_status show(const sgm__journal_entry *entry, sgm_intervention *shown)
{
    *shown = (sgm_intervention){.number = entry->line,
                                .branch = entry->branch,
                                .epoch = entry->epoch,
                                .iteration = entry->iteration,
                                .event = sgm__entry_event(entry->kind),
                                .who = sgm__strdup(entry->who),
                                .text = sgm__remade_told(entry),
                                .reason = sgm__strdup(entry->reason),
                                .removable = sgm__replay_can_leave_out(entry)};
    return shown->who != NULL && shown->text != NULL && shown->reason != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* A branch begins with an intervention of its own: the values that it was given. */
static sgm_status show_branched(const sgm__history *history, sgm_intervention **list, size_t *count)
{
    const json_t *branched = json_object_get(json_array_get(history->beginnings, 0), "branched");
    const sgm__journal_entry *first = &history->held.items[0];
    if (!json_is_object(branched))
        return SGM_OK;
    const char *who = json_string_value(json_object_get(branched, "who")),
               *reason = json_string_value(json_object_get(branched, "reason"));
    sgm_intervention *shown = &(*list)[(*count)++];
    *shown = (sgm_intervention){.number = first->line,
                                .branch = first->branch,
                                .epoch = first->epoch,
                                .iteration = first->iteration,
                                .event = "branched",
                                .who = sgm__strdup(who != NULL ? who : ""),
                                .reason = sgm__strdup(reason != NULL ? reason : ""),
                                .text = sgm__origin_told(branched)};
    return shown->who != NULL && shown->text != NULL && shown->reason != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status show_all(const sgm__history *history, sgm_intervention **list, size_t *count)
{
    *list = sgm__calloc(history->held.count + 1, sizeof **list);
    sgm_status status = *list != NULL ? show_branched(history, list, count) : SGM_ERROR_MEMORY;
    for (size_t i = 0; i < history->held.count && status == SGM_OK; i++)
        if (is_shown(&history->held.items[i]))
            status = show(&history->held.items[i], &(*list)[(*count)++]);
    return status;
}

sgm_status sgm_run_interventions(const char *folder, sgm_intervention **list, size_t *count)
{
    sgm__history history;
    *list = NULL;
    *count = 0;
    if (folder == NULL)
        return sgm__fail_null("the folder is NULL");
    sgm_status status = sgm__history_read(folder, NULL, &history);
    if (status == SGM_OK && history.held.count == 0)
        status = sgm_fail(SGM_ERROR_NOT_FOUND, "'%s' has no " SGM__JOURNAL_FILE, folder);
    if (status == SGM_OK)
        status = show_all(&history, list, count);
    sgm__history_free(&history);
    if (status != SGM_OK) {
        sgm_interventions_free(*list, *count);
        *list = NULL;
        *count = 0;
    }
    return status;
}

void sgm_interventions_free(sgm_intervention *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sgm__free((void *)(uintptr_t)list[i].who);
        sgm__free((void *)(uintptr_t)list[i].reason);
        sgm__free((void *)(uintptr_t)list[i].text);
    }
    sgm__free(list);
}
