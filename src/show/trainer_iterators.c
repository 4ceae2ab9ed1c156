/* Settings and places of the iterators, as iterator.* for the training data and DATA.iterator.* for
 * validation data.
 *
 * One set of functions serves all iterators: the row of an entry says which, by the name of the validation
 * data, NULL for the training data. The name is compared as a pointer, since the entry keeps the trainer's
 * own string. What the settings mean is in src/data; here they are only passed on. */
#include "data/dataset.h"
#include "registry/pattern.h"
#include "show/show.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"

/* --- which one: the bound row is the name of validation data, NULL for training --- */

/* Looks the iterator up each time, as a program may set other training data. */
static sgm_iterator *iterator_of(const sgm__bound *bound)
{
    const sgm_trainer *trainer = bound->trainer;
    if (bound->row == NULL)
        return sgm__data_of(trainer)->training;
    for (size_t i = 0; i < sgm__data_of(trainer)->validation_count; i++)
        if (sgm__data_of(trainer)->validation[i].name == bound->row)
            return sgm__data_of(trainer)->validation[i].iterator;
    return NULL;
}

/* The setting's name in the iterator's own table. */
static const char *last_part(const sgm__bound *bound)
{
    return strrchr(bound->identifier, '.') + 1;
}

static sgm_status get_setting(const sgm__bound *bound, sgm_content *content)
{
    return sgm_iterator_get(iterator_of(bound), last_part(bound), content);
}

/* A new minibatch size takes effect in the next epoch, or at once before the first minibatch of an epoch. In
 * the second case this epoch has another number of minibatches, so the number in the progress is updated. */
static sgm_status set_setting(const sgm__bound *bound, const sgm_content *content)
{
    sgm_trainer *trainer = bound->trainer;
    SGM_TRY(sgm_iterator_set(iterator_of(bound), last_part(bound), content));
    return bound->row == NULL && sgm__progress_of(trainer)->batches > 0
               ? sgm_iterator_batches(sgm__data_of(trainer)->training, &sgm__progress_of(trainer)->batches)
               : SGM_OK;
}

static const sgm__access setting_access = {.get = get_setting, .set = set_setting};

/* --- which data, and where it stands in them --- */

static const sgm_option epoch_row = {
    .name = "epoch", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "epochs that have ended"};
static const sgm_option batch_row = {
    .name = "batch", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "batches of this epoch so far"};
static const sgm_option batches_row = {
    .name = "batches", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "batches of this epoch in all"};

static const sgm_option dataset_row = {
    .name = "dataset", .kind = SGM_KIND_TEXT, .read_only = true, .doc = "name of the data"};

static sgm_status get_epoch(const sgm__bound *bound, sgm_content *content)
{
    sgm_iterator_state state;
    sgm_iterator_get_state(iterator_of(bound), &state);
    *content = sgm_integer_content(state.epoch);
    return SGM_OK;
}

static sgm_status get_batch(const sgm__bound *bound, sgm_content *content)
{
    sgm_iterator_state state;
    sgm_iterator_get_state(iterator_of(bound), &state);
    *content = sgm_integer_content(state.batches);
    return SGM_OK;
}

static sgm_status get_batches(const sgm__bound *bound, sgm_content *content)
{
    int64_t batches = 0;
    SGM_TRY(sgm_iterator_batches(iterator_of(bound), &batches));
    *content = sgm_integer_content(batches);
    return SGM_OK;
}

static sgm_status get_dataset(const sgm__bound *bound, sgm_content *content)
{
    *content = (sgm_content){
        SGM_KIND_TEXT, {.text = sgm__strdup(sgm_dataset_name(sgm_iterator_dataset(iterator_of(bound))))}};
    return content->as.text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static const sgm__access dataset_access = {.get = get_dataset};
static const sgm__access epoch_access = {.get = get_epoch}, batch_access = {.get = get_batch},
                         batches_access = {.get = get_batches};

/* --- publishing --- */

/* Rows of validation data say that a change takes effect from the next validation on; the iterator's own
 * rows speak of epochs. */
static sgm_status publish_settings(sgm_trainer *trainer, sgm_registry *registry, const char *prefix,
                                   sgm_iterator *iterator, const char *name)
{
    size_t all;
    const sgm_setting *settings = sgm_iterator_settings(&all);
    for (size_t i = 0; i < sgm__iterator_setting_count(iterator); i++) {
        sgm_option row = settings[i].option;
        if (name != NULL)
            row.effect = "from the next validation on";
        const sgm_option *kept = name != NULL ? sgm__trainer_keep_row(trainer, &row) : &settings[i].option;
        if (kept == NULL)
            return SGM_ERROR_MEMORY;
        SGM_TRY(sgm__publish_value(trainer, registry, prefix, kept, &setting_access, name));
    }
    return SGM_OK;
}

/* Shows an iterator in place of the one that was shown before. */
static sgm_status publish(sgm_trainer *trainer, sgm_registry *parent, const char *prefix,
                          sgm_iterator *iterator, const char *name)
{
    sgm_registry *registry;
    if (sgm_registry_has(parent, "iterator"))
        SGM_TRY(sgm_registry_remove(parent, "iterator"));
    SGM_TRY(sgm__publish_child(parent, "iterator", "iterator", &registry));
    SGM_TRY(sgm__publish_value(trainer, registry, prefix, &dataset_row, &dataset_access, name));
    SGM_TRY(publish_settings(trainer, registry, prefix, iterator, name));
    if (name == NULL) { /* iterators of validation data are at their beginning whenever the lock is free */
        SGM_TRY(sgm__publish_value(trainer, registry, prefix, &epoch_row, &epoch_access, name));
        SGM_TRY(sgm__publish_value(trainer, registry, prefix, &batch_row, &batch_access, name));
    }
    return sgm__publish_value(trainer, registry, prefix, &batches_row, &batches_access, name);
}

sgm_status sgm__trainer_publish_training(sgm_trainer *trainer)
{
    return publish(trainer, sgm__registry_of(trainer), "iterator.", sgm__data_of(trainer)->training, NULL);
}

sgm_status sgm__trainer_publish_validation(sgm_trainer *trainer, const char *name, sgm_iterator *iterator)
{
    sgm_registry *parent;
    char *part = sgm__identifier_part(name);
    char *prefix = part != NULL ? sgm__format("%s.iterator.", part) : NULL;
    sgm_status status = prefix != NULL
                            ? sgm__publish_child(sgm__registry_of(trainer), part, "validation", &parent)
                            : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = publish(trainer, parent, prefix, iterator, name);
    sgm__free(prefix);
    sgm__free(part);
    return status;
}
