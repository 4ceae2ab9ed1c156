/* What was measured of a trainer: scores of the epoch, and the values in the registry that hooks left, which
 * go when their hook is detached. */
#include "show/show.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"

/* --- scores of the epoch --- */

/* Appends a score without a value. Both of its texts lie in one piece of memory, "data\0name\0", which
 * score_texts owns and sgm_score points into. */
static sgm_status add_score(sgm_trainer *trainer, const char *data, const char *name)
{
    size_t count = trainer->results.score_count, data_size = strlen(data) + 1, name_size = strlen(name) + 1;
    SGM_TRY(sgm__reserve(&trainer->results.scores, &trainer->results.score_capacity, count + 1,
                         sizeof(sgm_score)));
    SGM_TRY(sgm__reserve(&trainer->results.score_texts, &trainer->results.score_text_capacity, count + 1,
                         sizeof(char *)));
    char *texts = sgm__alloc(data_size + name_size);
    if (texts == NULL)
        return SGM_ERROR_MEMORY;
    memcpy(texts, data, data_size);
    memcpy(texts + data_size, name, name_size);
    trainer->results.score_texts[count] = texts;
    trainer->results.scores[count] = (sgm_score){.data = texts, .name = texts + data_size};
    trainer->results.score_count++;
    return SGM_OK;
}

/* Keeps a number for the epoch's line of metrics.jsonl; a score with the same data and name is overwritten.
 * `headline`: the terminal shows the number, too. */
static sgm_status note_score(sgm_trainer *trainer, const char *data, const char *name, double value,
                             bool headline)
{
    size_t at = 0;
    while (at < trainer->results.score_count && (strcmp(trainer->results.scores[at].data, data) != 0 ||
                                                 strcmp(trainer->results.scores[at].name, name) != 0))
        at++;
    if (at == trainer->results.score_count)
        SGM_TRY(add_score(trainer, data, name));
    trainer->results.scores[at].value = value;
    trainer->results.scores[at].headline = headline;
    return SGM_OK;
}

void sgm__trainer_forget_scores(sgm_trainer *trainer)
{
    for (size_t i = 0; i < trainer->results.score_count; i++)
        sgm__free(trainer->results.score_texts[i]);
    trainer->results.score_count = 0;
}

/* --- values that go with their hook --- */

static bool is_left(const sgm__hook_result *left, const char *data, const char *name)
{
    return strcmp(left->data, data) == 0 && strcmp(left->name, name) == 0;
}

static void free_left(sgm__hook_result *left)
{
    sgm__free(left->data);
    sgm__free(left->name);
}

/* Notes that the hook `owner` left DATA.NAME in the registry. The caller holds hook_results_lock, which
 * guards the list, as other threads detach hooks while this one measures. */
static sgm_status add_left(sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name)
{
    for (size_t i = 0; i < trainer->results.hook_result_count; i++)
        if (trainer->results.hook_results[i].owner == owner &&
            is_left(&trainer->results.hook_results[i], data, name))
            return SGM_OK;
    SGM_TRY(sgm__reserve(&trainer->results.hook_results, &trainer->results.hook_result_capacity,
                         trainer->results.hook_result_count + 1, sizeof(sgm__hook_result)));
    sgm__hook_result left = {owner, sgm__strdup(data), sgm__strdup(name)};
    if (left.data == NULL || left.name == NULL) {
        free_left(&left);
        return SGM_ERROR_MEMORY;
    }
    trainer->results.hook_results[trainer->results.hook_result_count++] = left;
    return SGM_OK;
}

/* Whether another hook than `owner` has left a value of the same name. Such a value must stay when `owner` is
 * detached. The caller holds hook_results_lock. */
static bool is_anothers(const sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name)
{
    for (size_t i = 0; i < trainer->results.hook_result_count; i++)
        if (trainer->results.hook_results[i].owner != owner &&
            is_left(&trainer->results.hook_results[i], data, name))
            return true;
    return false;
}

/* Removes DATA.NAME from the registry unless another hook left a value of that name, too. It is called
 * without hook_results_lock: removing an entry tells the registry's observers, which may call anything that
 * takes the lock. */
static void drop(sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name)
{
    sgm_registry *registry;
    pthread_mutex_lock(&trainer->results.hook_results_lock);
    bool stays = is_anothers(trainer, owner, data, name);
    pthread_mutex_unlock(&trainer->results.hook_results_lock);
    if (stays || sgm__trainer_data_registry(trainer, data, &registry) != SGM_OK ||
        !sgm_registry_has(registry, name))
        return;
    if (sgm_registry_remove(registry, name) != SGM_OK)
        sgm__log(SGM_LOG_WARNING, trainer->name, "%s.%s stays, though its hook is gone: %s", data, name,
                 sgm_last_error());
}

static bool is_among(const sgm__detached *detached, const sgm_hook *hook)
{
    for (size_t i = 0; i < detached->count; i++)
        if (detached->hooks[i] == hook)
            return true;
    return false;
}

/* Values are dropped one by one. Each is taken out of the list with the lock, but removed from the registry
 * without it, since that calls the registry's observers, which may take the lock. */
void sgm__trainer_drop_left(sgm_trainer *trainer, const sgm__detached *hooks)
{
    sgm__trainer_results *results = &trainer->results;
    for (;;) {
        pthread_mutex_lock(&results->hook_results_lock);
        size_t at = 0;
        while (at < results->hook_result_count && !is_among(hooks, results->hook_results[at].owner))
            at++;
        bool found = at < results->hook_result_count;
        sgm__hook_result dropped = {0};
        if (found) {
            dropped = results->hook_results[at];
            memmove(&results->hook_results[at], &results->hook_results[at + 1],
                    (--results->hook_result_count - at) * sizeof dropped);
        }
        pthread_mutex_unlock(&results->hook_results_lock);
        if (!found)
            return;
        drop(trainer, dropped.owner, dropped.data, dropped.name);
        free_left(&dropped);
    }
}

void sgm__trainer_free_results(sgm_trainer *trainer)
{
    sgm__trainer_forget_scores(trainer);
    sgm__free(trainer->results.scores);
    sgm__free(trainer->results.score_texts);
    for (size_t i = 0; i < trainer->results.hook_result_count; i++)
        free_left(&trainer->results.hook_results[i]);
    sgm__free(trainer->results.hook_results);
    for (size_t i = 0; i < trainer->results.pass_count; i++) {
        sgm__free(trainer->results.passes[i].data);
        sgm__free(trainer->results.passes[i].output);
        sgm__free(trainer->results.passes[i].field);
    }
    sgm__free(trainer->results.passes);
    pthread_mutex_destroy(&trainer->results.hook_results_lock);
}

/* A hook can be detached by another thread while it measures. So the hook is tested twice: before the value
 * is set, under hook_results_lock, so that either this call notes the value in time for
 * sgm__trainer_drop_left or leaves nothing; and after it, as the thread that detached the hook between the
 * two tests may have found no value to remove yet, and the value is removed here. */
sgm_status sgm__trainer_leave(sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name,
                              const sgm_content *content, sgm__weight weight)
{
    sgm_registry *registry;
    sgm_iterator *iterator;
    SGM_TRY(sgm__trainer_find_data(trainer, data, &iterator));
    SGM_TRY(sgm__trainer_data_registry(trainer, data, &registry));
    if (owner != NULL) {
        pthread_mutex_lock(&trainer->results.hook_results_lock);
        bool gone = sgm__hook_is_taken_off(owner);
        sgm_status status = gone ? SGM_OK : add_left(trainer, owner, data, name);
        pthread_mutex_unlock(&trainer->results.hook_results_lock);
        if (gone || status != SGM_OK)
            return status;
    }
    SGM_TRY(sgm__leave_in_registry(registry, name, content, weight));
    if (owner != NULL && sgm__hook_is_taken_off(owner)) {
        drop(trainer, owner, data, name);
        return SGM_OK;
    }
    return weight != SGM__QUIET && content->kind == SGM_KIND_NUMBER
               ? note_score(trainer, data, name, content->as.number, weight == SGM__HEADLINE)
               : SGM_OK;
}
