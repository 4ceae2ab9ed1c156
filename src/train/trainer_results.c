/* What hooks measured: values of the registry, and scores of the epoch's line. */
#include "metrics/metrics.h"
#include "show/show.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"

/* --- scores of the epoch --- */

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

static bool is_left(const sgm__left *left, const char *data, const char *name)
{
    return strcmp(left->data, data) == 0 && strcmp(left->name, name) == 0;
}

static void free_left(sgm__left *left)
{
    sgm__free(left->data);
    sgm__free(left->name);
}

/* With the lock. */
static sgm_status add_left(sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name)
{
    for (size_t i = 0; i < trainer->results.left_count; i++)
        if (trainer->results.left[i].owner == owner && is_left(&trainer->results.left[i], data, name))
            return SGM_OK;
    SGM_TRY(sgm__reserve(&trainer->results.left, &trainer->results.left_capacity,
                         trainer->results.left_count + 1, sizeof(sgm__left)));
    sgm__left left = {owner, sgm__strdup(data), sgm__strdup(name)};
    if (left.data == NULL || left.name == NULL) {
        free_left(&left);
        return SGM_ERROR_MEMORY;
    }
    trainer->results.left[trainer->results.left_count++] = left;
    return SGM_OK;
}

/* Another hook left it too. */
static bool is_anothers(const sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name)
{
    for (size_t i = 0; i < trainer->results.left_count; i++)
        if (trainer->results.left[i].owner != owner && is_left(&trainer->results.left[i], data, name))
            return true;
    return false;
}

static void drop(sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name)
{
    sgm_registry *registry;
    pthread_mutex_lock(&trainer->results.left_lock);
    bool stays = is_anothers(trainer, owner, data, name);
    pthread_mutex_unlock(&trainer->results.left_lock);
    if (stays || sgm__trainer_data_registry(trainer, data, &registry) != SGM_OK ||
        !sgm_registry_has(registry, name))
        return;
    if (sgm_registry_remove(registry, name) != SGM_OK)
        sgm__log(SGM_LOG_WARNING, trainer->name, "%s.%s stays, though its hook is gone: %s", data, name,
                 sgm_last_error());
}

static bool has(const sgm__detached *detached, const sgm_hook *hook)
{
    for (size_t i = 0; i < detached->count; i++)
        if (detached->hooks[i] == hook)
            return true;
    return false;
}

void sgm__trainer_drop_left(sgm_trainer *trainer, const sgm__detached *hooks)
{
    sgm__left *dropped = NULL;
    size_t count = 0, kept = 0;
    pthread_mutex_lock(&trainer->results.left_lock);
    for (size_t i = 0; i < trainer->results.left_count; i++)
        count += has(hooks, trainer->results.left[i].owner);
    dropped = count > 0 ? sgm__alloc(count * sizeof *dropped) : NULL;
    count = 0;
    for (size_t i = 0; i < trainer->results.left_count; i++)
        if (dropped != NULL && has(hooks, trainer->results.left[i].owner))
            dropped[count++] = trainer->results.left[i];
        else
            trainer->results.left[kept++] = trainer->results.left[i];
    trainer->results.left_count = kept;
    pthread_mutex_unlock(&trainer->results.left_lock);
    for (size_t i = 0; i < count; i++) { /* observers are told, which may ask for anything */
        drop(trainer, dropped[i].owner, dropped[i].data, dropped[i].name);
        free_left(&dropped[i]);
    }
    sgm__free(dropped);
}

void sgm__trainer_free_results(sgm_trainer *trainer)
{
    sgm__trainer_forget_scores(trainer);
    sgm__free(trainer->results.scores);
    sgm__free(trainer->results.score_texts);
    for (size_t i = 0; i < trainer->results.left_count; i++)
        free_left(&trainer->results.left[i]);
    sgm__free(trainer->results.left);
    pthread_mutex_destroy(&trainer->results.left_lock);
}

sgm_status sgm__trainer_leave(sgm_trainer *trainer, const sgm_hook *owner, const char *data, const char *name,
                              const sgm_content *content, sgm__weight weight)
{
    sgm_registry *registry;
    sgm_iterator *iterator;
    SGM_TRY(sgm__trainer_find_data(trainer, data, &iterator));
    SGM_TRY(sgm__trainer_data_registry(trainer, data, &registry));
    if (owner != NULL) {
        pthread_mutex_lock(&trainer->results.left_lock);
        bool gone = sgm__hook_is_taken_off(owner); /* while it measured */
        sgm_status status = gone ? SGM_OK : add_left(trainer, owner, data, name);
        pthread_mutex_unlock(&trainer->results.left_lock);
        if (gone || status != SGM_OK)
            return status;
    }
    SGM_TRY(sgm__leave_in_registry(registry, name, content, weight));
    if (owner != NULL &&
        sgm__hook_is_taken_off(owner)) { /* who did that just now may have seen no value yet */
        drop(trainer, owner, data, name);
        return SGM_OK;
    }
    return weight != SGM__QUIET && content->kind == SGM_KIND_NUMBER
               ? note_score(trainer, data, name, content->as.number, weight == SGM__HEADLINE)
               : SGM_OK;
}
