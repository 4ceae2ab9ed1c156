/* Searches that run: what is searched, and what is left of a search in its folder. */
#ifndef SIGMA_ENVIRONMENT_SEARCH_TEST_H
#define SIGMA_ENVIRONMENT_SEARCH_TEST_H

#include "base/folder.h"
#include "environment_test.h"

#include <unistd.h>

/* --- what is searched: a small regression; the objective is made up where a test wants one --- */

static double (*score)(int64_t trial, int64_t epoch);

__attribute__((unused)) static void publish_score(sgm_trainer *trainer, double value)
{
    sgm_content shared;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), "shared", &shared));
    CHECK_OK(sgm_registry_set(shared.as.registry, "score", sgm_number_content(value)));
    sgm_content_clear(&shared);
}

__attribute__((unused)) static bool make_score_up(void *user, const sgm_training_progress *progress)
{
    int64_t trial = strtoll(progress->trainer + strlen("trial-"), NULL, 10);
    if (progress->kind == SGM_PROGRESS_EPOCH && score != NULL)
        publish_score(user, score(trial, progress->epoch));
    return true;
}

__attribute__((unused)) static sgm_status fill(sgm_trainer *trainer)
{
    sgm_dataset *dataset = sine_dataset(24);
    sgm_trainer_set_network(trainer, "input(3) + dense(5, tanh) + dropout(0.2) + dense(1) + mean_squared");
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 8));
    sgm_trainer_add_data(trainer, "validation", sgm_by_block(dataset));
    sgm_dataset_free(dataset);
    return sgm_trainer_set_optimiser(trainer,
                                     sgm_momentum(.learning_rate = 0.05, .schedule = {.kind = SGM_COSINE}));
}

__attribute__((unused)) static sgm_status set_up(void *user, const sgm_trial *trial, sgm_trainer *trainer)
{
    (void)user;
    (void)trial;
    if (fill(trainer) != SGM_OK)
        return sgm_last_status();
    return sgm_trainer_on_progress(trainer, make_score_up, trainer);
}

__attribute__((unused)) static sgm_env *make_env(void)
{
    sgm_env *env = sgm_env_create("e", .seed = 3, .threads = 1);
    CHECK_OK(env);
    return env;
}

/* --- running --- */

static const char *const rates[] = {"0.01", "0.02", "0.03", "0.04", "0.05",
                                    "0.06", "0.07", "0.08", "0.09", NULL};

__attribute__((unused)) static sgm_search_options default_value(sgm_search_method method)
{
    return (sgm_search_options){.struct_size = sizeof(sgm_search_options),
                                .method = method,
                                .set_up = set_up,
                                .folder = folder,
                                .objective = "shared.score",
                                .epochs = 9,
                                .checkpoint_every = -1,
                                .values = {{"optimiser.learning_rate", rates}}};
}

__attribute__((unused)) static sgm_status run(const sgm_search_options *options, char **table)
{
    sgm_env *env = make_env();
    sgm_search *search = sgm_search_create_with(env, options);
    CHECK_OK(search);
    sgm_status status = sgm_search_run(search);
    if (table != NULL)
        *table = sgm_search_csv(search);
    sgm_search_free(search);
    char message[1024];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    sgm_env_free(env);
    return status == SGM_OK ? SGM_OK : sgm_fail(status, "%s", message);
}

/* Without the seconds, which are never the same. */
__attribute__((unused)) static void drop_seconds(char *table)
{
    char *out = table;
    for (char *line = strtok(table, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        int commas = 0;
        for (char *c = line; *c != '\0'; c++) {
            commas += *c == ',';
            if (commas != 4 || *c == ',')
                *out++ = *c;
        }
        *out++ = '\n';
    }
    *out = '\0';
}

typedef struct patience {
    int64_t events;
} patience;

__attribute__((unused)) static bool lose_patience(void *user, const sgm_search_progress *progress)
{
    patience *p = user;
    (void)progress;
    return p->events-- > 0;
}

__attribute__((unused)) static char *undisturbed(sgm_search_options *options)
{
    char *table;
    open_folder();
    options->folder = folder;
    CHECK_OK(run(options, &table));
    close_folder();
    drop_seconds(table);
    return table;
}

/* Keeps `lines` of search.jsonl, and half of the next one: what a crash leaves. */
__attribute__((unused)) static void cut_log(int lines)
{
    char path[128], text[65536];
    snprintf(path, sizeof path, "%s/search.jsonl", folder);
    FILE *file = fopen(path, "r+");
    CHECK(file != NULL);
    size_t length = fread(text, 1, sizeof text - 1, file), at = 0;
    text[length] = '\0';
    for (int i = 0; i < lines; i++)
        at += strcspn(text + at, "\n") + 1;
    CHECK(at < length);
    CHECK_INT(ftruncate(fileno(file), (off_t)(at + strcspn(text + at, "\n") / 2)), 0);
    fclose(file);
}

#endif
