/* Moves samples into series, on the monitor's thread.
 *
 * sgm__web_drain swaps the recording's buffer with an empty one under the `sampling` lock, which takes no
 * longer than exchanging pointers, then appends the values to their series under `store`, without holding
 * up the training. live.c calls it, and then sgm__web_sort_drained to push the same points to pages. */
#include "monitors/web/web_internal.h"

/* The training has gone back: every series forgets what is behind, also those that have no new value yet. */
static void cut_all(sgm__web_recording *recording, int64_t iteration)
{
    for (size_t i = 0; i < recording->drained_items; i++)
        sgm__series_cut(recording->item_copies[i]->series, iteration);
}

/* With the store lock. A sample before the newest stored one means a step back; recording->cut is the
 * earliest iteration that this drain went back to. */
static sgm_status store_sample(sgm__web_recording *recording, const sgm__web_sample *sample)
{
    int64_t iteration = sample->moment.iteration;
    const sgm__web_value *values = recording->drained.values + sample->first;
    if (iteration < recording->stored) {
        cut_all(recording, iteration);
        recording->cut = iteration < recording->cut ? iteration : recording->cut;
    }
    recording->stored = iteration;
    SGM_TRY(sgm__clock_append(recording->clock,
                              (sgm__clock_tick){iteration, sample->moment.epoch, sample->moment.seconds}));
    for (size_t i = 0; i < sample->count; i++)
        SGM_TRY(sgm__series_append(values[i].item->series, iteration, values[i].value));
    return SGM_OK;
}

/* With the sampling lock. The array of items may be reallocated by other threads, so the ticker has one of
 * its own; the items themselves never move. */
static sgm_status copy_items(sgm__web_recording *recording)
{
    SGM_TRY(sgm__reserve(&recording->item_copies, &recording->item_copy_capacity, recording->item_count,
                         sizeof(sgm__web_item *)));
    for (; recording->drained_items < recording->item_count; recording->drained_items++)
        recording->item_copies[recording->drained_items] = recording->items[recording->drained_items];
    return SGM_OK;
}

/* The buffers change roles, so that neither is allocated again. Without memory for the copy of items the
 * samples are lost, as nothing could refer to them. */
void sgm__web_drain(sgm__web_recording *recording)
{
    pthread_mutex_lock(&recording->sampling);
    sgm__web_samples taken = recording->samples;
    recording->samples = recording->drained;
    recording->samples.count = recording->samples.value_count = 0;
    recording->drained = taken;
    sgm_status status = copy_items(recording);
    recording->drained_stride = recording->status.stride;
    pthread_mutex_unlock(&recording->sampling);
    recording->cut = INT64_MAX;
    if (status != SGM_OK)
        recording->drained.count = recording->drained.value_count = 0;
    if (recording->drained.count == 0)
        return;
    pthread_mutex_lock(&recording->store);
    for (size_t i = 0; i < recording->drained.count && status == SGM_OK; i++)
        status = store_sample(recording, &recording->drained.samples[i]);
    pthread_mutex_unlock(&recording->store);
}

/* The index of the first sample after the last step back: earlier ones are void. */
static size_t first_after_cut(const sgm__web_samples *samples)
{
    size_t first = 0;
    for (size_t i = 1; i < samples->count; i++)
        if (samples->samples[i].moment.iteration < samples->samples[i - 1].moment.iteration)
            first = i;
    return first;
}

/* A counting sort by item: counts, prefix sums, then each point goes to the place of its item. `starts` is
 * shifted by one place during the last pass, so that at the end starts[i] is the beginning of item i. */
bool sgm__web_sort_drained(sgm__web_recording *recording)
{
    const sgm__web_samples *drained = &recording->drained;
    size_t items = recording->drained_items;
    if (drained->value_count == 0 ||
        sgm__reserve(&recording->points, &recording->point_capacity, drained->value_count,
                     sizeof *recording->points) != SGM_OK ||
        sgm__reserve(&recording->starts, &recording->start_capacity, items + 2, sizeof *recording->starts) !=
            SGM_OK)
        return false;
    size_t first_sample = first_after_cut(drained), first = drained->samples[first_sample].first;
    size_t *starts = recording->starts;
    memset(starts, 0, (items + 2) * sizeof *starts);
    for (size_t i = first; i < drained->value_count; i++)
        starts[drained->values[i].item->index + 2]++;
    for (size_t i = 2; i < items + 2; i++)
        starts[i] += starts[i - 1];
    for (size_t i = first_sample; i < drained->count; i++)
        for (size_t k = 0; k < drained->samples[i].count; k++) {
            const sgm__web_value *value = &drained->values[drained->samples[i].first + k];
            recording->points[starts[value->item->index + 1]++] =
                (sgm__web_point){&drained->samples[i], value->value};
        }
    return true;
}
