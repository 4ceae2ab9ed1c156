/* What a checkpoint has of metrics: losses and accuracies of validation data, results of metric hooks, and
 * the newest loss.
 *
 * One of the sections of state.c. A resumed run shows these values until it measures again, and rules that
 * compare with them go on as if the run had not ended. Sums of the epoch that is under way belong to the
 * position (state_position.c). */
#include "registry/pattern.h"
#include "registry/registry_internal.h"
#include "runs/parts/state.h"
#include "show/show.h"
#include "train/train.h"

#include <math.h>

/* --- writing --- */

/* Adds what metric hooks have left for a data set ("validation.f1") under the name of the set. Loss and
 * accuracy are in "metrics"; tensors, such as a confusion matrix, are not saved. */
static sgm_status append_scores_of(const sgm_trainer *trainer, const char *data, json_t *scores)
{
    sgm_matches matches;
    char *part = sgm__identifier_part(data), *pattern = part != NULL ? sgm__format("%s.*", part) : NULL;
    sgm_status status = pattern != NULL ? sgm_registry_resolve(sgm__registry_of(trainer), pattern, &matches)
                                        : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        json_t *own = json_object();
        for (size_t i = 0; i < matches.count; i++) {
            const char *name = matches.items[i].identifier + strlen(part) + 1;
            if (matches.items[i].content.kind == SGM_KIND_NUMBER && strcmp(name, "loss") != 0 &&
                strcmp(name, "accuracy") != 0)
                json_object_set_new(own, name, sgm__state_number(matches.items[i].content.as.number));
        }
        json_object_set_new(scores, data, own);
        sgm_matches_free(&matches);
    }
    sgm__free(pattern);
    sgm__free(part);
    return status;
}

/* {"training": {...}, NAME: {...}} for the training data and each validation set. */
static sgm_status append_scores(const sgm_trainer *trainer, json_t *state)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    json_t *scores = json_object();
    json_object_set_new(state, "scores", scores);
    SGM_TRY(append_scores_of(trainer, "training", scores));
    for (size_t i = 0; i < data->validation_count; i++)
        SGM_TRY(append_scores_of(trainer, data->validation[i].name, scores));
    return SGM_OK;
}

/* Loss, accuracy and number of examples of each validation set that was measured; and the loss of the
 * newest minibatch. */
static void append_metrics(const sgm_trainer *trainer, json_t *state)
{
    const sgm__trainer_data *data = sgm__data_of(trainer);
    json_t *metrics = json_object();
    for (size_t i = 0; i < data->validation_count; i++) {
        const sgm_named_metrics *own = &data->metrics[i];
        if (own->metrics.examples > 0)
            json_object_set_new(metrics, own->name,
                                json_pack("{s:o, s:o, s:I}", "loss", sgm__state_number(own->metrics.loss),
                                          "accuracy", sgm__state_number(own->metrics.accuracy), "examples",
                                          (json_int_t)own->metrics.examples));
    }
    json_object_set_new(state, "metrics", metrics);
    json_object_set_new(state, "loss", sgm__state_number(sgm__progress_of(trainer)->newest_loss));
}

static sgm_status describe(const sgm_trainer *trainer, json_t *state)
{
    append_metrics(trainer, state);
    return append_scores(trainer, state);
}

/* --- setting --- */

/* Results that a file lacks belong to another position, and rules would compare with them. */
void sgm__state_forget_validations(sgm_trainer *trainer)
{
    sgm__trainer_data *data = sgm__data_of(trainer);
    for (size_t i = 0; i < data->validation_count; i++) {
        char *part = sgm__identifier_part(data->validation[i].name);
        data->metrics[i].metrics = (sgm_metrics){0};
        if (part != NULL)
            sgm__registry_clear_child(sgm__registry_of(trainer), part);
        sgm__free(part);
    }
}

/* Sets results of metric hooks again, without an owner: detaching a hook does not remove them. Data sets
 * that this trainer does not have are passed over; a value that cannot be read becomes NaN. */
static void set_scores(sgm_trainer *trainer, json_t *scores)
{
    for (void *at = json_object_iter(scores); at != NULL; at = json_object_iter_next(scores, at)) {
        const char *data = json_object_iter_key(at);
        json_t *own = json_object_iter_value(at);
        for (void *of = json_object_iter(own); of != NULL; of = json_object_iter_next(own, of)) {
            double number;
            bool known = sgm__state_exact(json_object_iter_value(of), &number);
            sgm_content content = sgm_number_content(known ? number : (double)NAN);
            if (sgm__trainer_leave(trainer, NULL, data, json_object_iter_key(of), &content, SGM__QUIET) !=
                SGM_OK)
                break;
        }
    }
}

static sgm_status set(sgm_trainer *trainer, const sgm__saved_state *saved_state, unsigned parts)
{
    (void)parts;
    const json_t *state = saved_state->json;
    sgm__trainer_data *data = sgm__data_of(trainer);
    const json_t *metrics = json_object_get(state, "metrics");
    sgm__state_forget_validations(trainer);
    for (size_t i = 0; i < data->validation_count; i++) {
        const json_t *saved = json_object_get(metrics, data->metrics[i].name);
        sgm_metrics read;
        if (sgm__state_exact(json_object_get(saved, "loss"), &read.loss) &&
            sgm__state_exact(json_object_get(saved, "accuracy"), &read.accuracy) &&
            sgm__state_count(saved, "examples", &read.examples))
            data->metrics[i].metrics = read;
    }
    sgm__state_exact(json_object_get(state, "loss"), &sgm__progress_of(trainer)->newest_loss);
    set_scores(trainer, json_object_get(state, "scores"));
    return sgm__trainer_publish_metrics(trainer);
}

const sgm__section sgm__metrics_section = {.part = SGM_PART_METRICS, .describe = describe, .set = set};
