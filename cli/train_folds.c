/* K-fold cross-validation (data.split.folds): one training for each part of the data, which validates it.
 *
 * DIR holds config.yaml, a folder for each training, fold-0, fold-1, ..., which is a run like any other, and
 * folds.jsonl with what each was measured with. The source of the method: Stone, "Cross-Validatory Choice and
 * Assessment of Statistical Predictions", 1974. */
#include "cli.h"

#include <math.h>
#include <stdio.h>

/* The results of all folds that have ended. */
typedef struct results {
    double losses[SGM_MAX_PARTS], accuracies[SGM_MAX_PARTS];
    int64_t count;
} results;

static double mean_of(const double *numbers, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += numbers[i];
    return sum / (double)count;
}

/* Of a sample: divides by count - 1. */
static double deviation_of(const double *numbers, int64_t count)
{
    double mean = mean_of(numbers, count), squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (numbers[i] - mean) * (numbers[i] - mean);
    return sqrt(squares / (double)(count - 1));
}

static void print_results(const results *r)
{
    printf("%lld folds: loss %.4f, deviation %.4f", (long long)r->count, mean_of(r->losses, r->count),
           deviation_of(r->losses, r->count));
    if (!isnan(r->accuracies[0]))
        printf("; accuracy %.2f %%, deviation %.2f %%", 100 * mean_of(r->accuracies, r->count),
               100 * deviation_of(r->accuracies, r->count));
    printf("\n");
}

static sgm_status save_results(const results *r, const char *folder)
{
    sgm__text text = {0};
    for (int64_t i = 0; i < r->count; i++) {
        sgm__text_append(&text, "{\"fold\": %lld, \"loss\": %.9g", (long long)i, r->losses[i]);
        if (!isnan(r->accuracies[i]))
            sgm__text_append(&text, ", \"accuracy\": %.9g", r->accuracies[i]);
        sgm__text_append(&text, "}\n");
    }
    return save_text(folder, "folds.jsonl", sgm__text_take(&text));
}

/* Loads the description once more, as the training of one fold in a folder of its own. */
static sgm_status load_fold(config *c, const fold_source *source, const char *folder, int64_t fold)
{
    const char **overrides = sgm__calloc(source->count + 2, sizeof *overrides);
    char *own_folder = sgm__format("folder=%s/fold-%lld", folder, (long long)fold);
    char *own_fold = sgm__format("data.split.fold=%lld", (long long)fold);
    sgm_status status = SGM_ERROR_MEMORY;
    if (overrides != NULL && own_folder != NULL && own_fold != NULL) {
        for (size_t i = 0; i < source->count; i++)
            overrides[i] = source->overrides[i];
        overrides[source->count] = own_folder;
        overrides[source->count + 1] = own_fold;
        status = description_load(c, source->description, overrides, source->count + 2);
    }
    sgm__free(overrides);
    sgm__free(own_folder);
    sgm__free(own_fold);
    return status;
}

static int train_fold(const fold_source *source, const config *all, int64_t fold, results *r)
{
    config c;
    sgm_metrics measured = {0};
    if (load_fold(&c, source, all->folder, fold) != SGM_OK)
        return report_error("train", CLI_FAILED);
    printf("fold %lld of %lld\n", (long long)fold, (long long)all->data.split.folds);
    fflush(stdout);
    int code = source->train(&c, source->resume && train_has_checkpoint(&c), &measured, source->user);
    config_free(&c);
    if (code == CLI_OK) {
        r->losses[r->count] = measured.loss;
        r->accuracies[r->count++] = measured.accuracy;
    }
    return code;
}

int train_folds(config *all, const fold_source *source)
{
    results r = {0};
    if (all->operator.type != NULL && strcmp(all->operator.type, "mpi") == 0)
        return usage_error(
            "train", "data.split.folds is for one process; with operator mpi name one, data.split.fold");
    if (train_has_checkpoint(all))
        return usage_error("train",
                           "%s has a checkpoint, so it is no folder of folds; name another with --folder",
                           all->folder);
    if (all->folder == NULL ? train_new_folder(all, "--folder") != SGM_OK
                            : sgm__make_folders(all->folder) != SGM_OK)
        return report_error("train", CLI_FAILED);
    if (train_save_config(all) != SGM_OK)
        return report_error("train", CLI_FAILED);
    int code = CLI_OK;
    for (int64_t fold = 0; fold < all->data.split.folds && code == CLI_OK; fold++)
        code = train_fold(source, all, fold, &r);
    if (code == CLI_INTERRUPTED)
        printf("all folds go on with: sigma train %s --resume\n", all->folder);
    if (code != CLI_OK)
        return code;
    print_results(&r);
    return save_results(&r, all->folder) == SGM_OK ? CLI_OK : report_error("train", CLI_FAILED);
}
